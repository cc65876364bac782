/* SPDX-License-Identifier: PostgreSQL
 * auth_pam.c: asks PAM whether a password is right.
 * Runs in: workers, on a thread of its own (modules may wait for anything). Must never: log what a
 * module asks or is told. */
#include "config.h"

#include <security/pam_appl.h>
#include <stdlib.h>
#include <string.h>

#include "auth/auth_helper.h"

/* pam_conv: every question without echo is answered with the password. PAM frees the answers with
 * free(3), so they have to come from the C library's heap. */
static int pam_answer(
    int n, const struct pam_message **msg, struct pam_response **out, void *password)
{
    struct pam_response *r;
    int i;

    if (n <= 0 || n > PAM_MAX_NUM_MSG)
        return PAM_CONV_ERR;
    r = calloc((size_t)n, sizeof *r); /* ban: PAM frees it */
    if (r == NULL)
        return PAM_BUF_ERR;
    for (i = 0; i < n; i++) {
        if (msg[i]->msg_style == PAM_PROMPT_ECHO_OFF)
            r[i].resp = strdup(password); /* ban: PAM frees it */
        else if (msg[i]->msg_style == PAM_PROMPT_ECHO_ON)
            r[i].resp = strdup(""); /* ban: PAM frees it */
    }
    *out = r;
    return PAM_SUCCESS;
}

enum auth_opinion auth_pam_check(
    const char *service, const char *user, const char *password, const char *rhost, struct err *err)
{
    struct pam_conv conv = {pam_answer, NULL};
    enum auth_opinion opinion = AUTH_OPINION_NO;
    pam_handle_t *pam = NULL;
    const char *step = "pam_start";
    char *copy = strdup(password); /* ban: the conversation's pointer is not const */
    int rc;

    if (copy == NULL)
        return AUTH_OPINION_BROKEN;
    conv.appdata_ptr = copy;
    rc = pam_start(service, user, &conv, &pam);
    if (rc == PAM_SUCCESS && rhost != NULL)
        rc = pam_set_item(pam, PAM_RHOST, rhost);
    if (rc == PAM_SUCCESS) {
        step = "pam_authenticate";
        rc = pam_authenticate(pam, 0);
    }
    if (rc == PAM_SUCCESS) {
        step = "pam_acct_mgmt";
        rc = pam_acct_mgmt(pam, 0);
    }
    if (rc == PAM_SUCCESS)
        opinion = AUTH_OPINION_YES;
    else
        err_set(
            err, "28000", "%s of service \"%s\" failed: %s", step, service, pam_strerror(pam, rc));
    if (rc == PAM_SYSTEM_ERR || rc == PAM_SERVICE_ERR || rc == PAM_AUTHINFO_UNAVAIL)
        opinion = AUTH_OPINION_BROKEN;
    if (pam != NULL)
        pam_end(pam, rc);
    explicit_bzero(copy, strlen(copy));
    free(copy); /* ban: from strdup above */
    return opinion;
}

bool auth_pam_is_built(void)
{
    return true;
}
