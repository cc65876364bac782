/* SPDX-License-Identifier: PostgreSQL
 * auth_noldap.c: LDAP in a build without it: pool_hba.conf refuses the method, so nobody comes
 * here. Runs in: workers. */
#include "config.h"

#include "auth/auth_helper.h"

enum auth_opinion auth_ldap_check(const struct hba_ldap *opts, const char *user,
    const char *password, int64_t timeout_ms, struct err *err)
{
    err_set(err, "0A000", "not built with LDAP");
    return AUTH_OPINION_BROKEN;
}

const char *auth_ldap_read_url(const char *url, struct arena *arena, struct hba_ldap *out)
{
    (void)arena;
    (void)out;
    return url[0] == '\0' ? "an empty LDAP URL" : "not built with LDAP, which reads %";
}

bool auth_ldap_is_built(void)
{
    return false;
}
