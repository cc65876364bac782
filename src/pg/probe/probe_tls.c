/* SPDX-License-Identifier: PostgreSQL
 * probe_tls.c: what libpq is told about TLS, and whether a failure leaves a way without it.
 * Runs in: monitor, control, the command line. The words looked for are libpq's and OpenSSL's own:
 * no process here sets a locale, so they are not translated, and words that are not known leave no
 * way. */
#include "config.h"

#include "probe/probe_tls.h"

#include <string.h>

#include "probe_int.h"

static bool is(const char *mode, const char *word)
{
    return strcmp(mode, word) == 0;
}

const char *probe_tls_word(const char *mode, const char *ca, bool in_clear)
{
    if (in_clear)
        return "disable";
    if (!is(mode, "prefer") && !is(mode, "require"))
        return mode;
    return ca[0] == '\0' ? "require" : "verify-ca";
}

const char *probe_tls_min_key(void)
{
    return PQlibVersion() >= 130000 ? "ssl_min_protocol_version" : NULL;
}

bool probe_tls_failed_harmlessly(const char *message)
{
    if (strstr(message, "server does not support SSL") != NULL)
        return true;
    return (strstr(message, "SSL error: ") != NULL ||
               strstr(message, "SSL SYSCALL error: ") != NULL) &&
           strstr(message, "certificate verify failed") == NULL;
}

bool probe_tls_may_go_in_clear(const char *mode, const PGconn *conn, ConnStatusType was)
{
    const char *message = PQerrorMessage(conn);
    char state[6];

    if (!is(mode, "prefer"))
        return false;
    if (was == CONNECTION_SSL_STARTUP)
        return probe_tls_failed_harmlessly(message);
    /* pg_hba.conf has no line for connections with TLS: it may have one for others. */
    return PQconnectionUsedPassword(conn) == 0 && probe_class_find_sqlstate(message, state) &&
           is(state, "28000");
}
