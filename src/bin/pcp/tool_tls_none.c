/* SPDX-License-Identifier: PostgreSQL
 * tool_tls_none.c: the pcp_* tools of a build without OpenSSL: TLS is refused with the reason. */
#include "config.h"

#include <errno.h>
#include <stdio.h>

#include "pcp_tool.h"

bool tool_tls_start(struct tool_link *l, const char *host, const char *ca_file)
{
    fprintf(stderr, "ERROR: this program was built without OpenSSL: there is no TLS\n");
    return false;
}

ssize_t tool_tls_recv(struct tool_link *l, char *p, size_t n)
{
    return 0;
}

ssize_t tool_tls_send(struct tool_link *l, const char *p, size_t n)
{
    errno = EPIPE;
    return -1;
}

void tool_tls_server_cert(const struct tool_link *l, struct buf *der)
{
}

void tool_tls_end(struct tool_link *l)
{
}
