/* SPDX-License-Identifier: PostgreSQL
 * auth_nopam.c: PAM in a build without it: pool_hba.conf refuses the method, so nobody comes here.
 * Runs in: workers. */
#include "config.h"

#include "auth/auth_helper.h"

enum auth_opinion auth_pam_check(
    const char *service, const char *user, const char *password, const char *rhost, struct err *err)
{
    err_set(err, "0A000", "not built with PAM");
    return AUTH_OPINION_BROKEN;
}

bool auth_pam_is_built(void)
{
    return false;
}
