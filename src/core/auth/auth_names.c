/* SPDX-License-Identifier: PostgreSQL
 * auth_names.c: names of the operating system: the user behind a uid, the host behind an address.
 * Runs in: workers, on a thread of its own: both may ask a server far away. */
#include "config.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <pwd.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

#include "auth/auth_helper.h"
#include "base/mem.h"

#define PASSWD_BYTES 16384

enum auth_opinion auth_peer_name(uint32_t uid, char name[AUTH_HELPER_NAME_BYTES], struct err *err)
{
    char *space = mem_alloc(PASSWD_BYTES);
    struct passwd *found = NULL;
    struct passwd pw;
    int rc = getpwuid_r((uid_t)uid, &pw, space, PASSWD_BYTES, &found);
    enum auth_opinion opinion = AUTH_OPINION_YES;
    int n = -1;

    if (found != NULL)
        n = snprintf(name, AUTH_HELPER_NAME_BYTES, "%s", found->pw_name);
    if (n < 0 || n >= AUTH_HELPER_NAME_BYTES) {
        err_set(err, "28000", "could not find the name of operating system user %u%s%s", uid,
            rc == 0 ? "" : ": ", rc == 0 ? "" : strerror(rc));
        opinion = rc == 0 ? AUTH_OPINION_NO : AUTH_OPINION_BROKEN;
    }
    mem_free(space);
    return opinion;
}

static socklen_t make_sockaddr(const struct hba_addr *a, struct sockaddr_storage *out)
{
    struct sockaddr_in *in4 = (void *)out;
    struct sockaddr_in6 *in6 = (void *)out;

    memset(out, 0, sizeof *out);
    if (a->n == 4) {
        in4->sin_family = AF_INET;
        memcpy(&in4->sin_addr, a->bytes, 4);
        return sizeof *in4;
    }
    in6->sin6_family = AF_INET6;
    memcpy(&in6->sin6_addr, a->bytes, 16);
    return sizeof *in6;
}

static bool name_fits(const char *host, const char *name)
{
    size_t nh = strlen(host);
    size_t nn = strlen(name);

    if (name[0] == '.')
        return nh > nn && strcasecmp(host + nh - nn, name) == 0;
    return strcasecmp(host, name) == 0;
}

/* The reverse name is whatever the owner of the address says: only the forward one proves it. */
static enum hba_answer is_forward(const char *host, const struct hba_addr *addr)
{
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM};
    struct addrinfo *all = NULL;
    struct addrinfo *i;
    struct hba_addr a;
    enum hba_answer answer = HBA_NO;
    int rc = getaddrinfo(host, NULL, &hints, &all);

    if (rc == EAI_NONAME)
        return HBA_NO;
    if (rc != 0)
        return HBA_FAIL;
    for (i = all; i != NULL; i = i->ai_next) {
        a = hba_addr_of(i->ai_addr);
        if (a.n == addr->n && memcmp(a.bytes, addr->bytes, a.n) == 0)
            answer = HBA_YES;
    }
    freeaddrinfo(all);
    return answer;
}

enum hba_answer auth_host_check(const struct hba_addr *addr, const char *name)
{
    struct sockaddr_storage ss;
    char host[NI_MAXHOST];
    socklen_t len = make_sockaddr(addr, &ss);
    int rc =
        getnameinfo((const struct sockaddr *)&ss, len, host, sizeof host, NULL, 0, NI_NAMEREQD);

    if (rc == EAI_NONAME)
        return HBA_NO;
    if (rc != 0)
        return HBA_FAIL;
    return name_fits(host, name) ? is_forward(host, addr) : HBA_NO;
}

const char *auth_host_text(
    const struct hba_addr *addr, bool by_name, char out[AUTH_HELPER_NAME_BYTES])
{
    struct sockaddr_storage ss;
    socklen_t len;

    if (addr->n == 0)
        return NULL;
    len = make_sockaddr(addr, &ss);
    if (getnameinfo((const struct sockaddr *)&ss, len, out, AUTH_HELPER_NAME_BYTES, NULL, 0,
            by_name ? 0 : NI_NUMERICHOST) != 0)
        return NULL;
    return out;
}
