/* SPDX-License-Identifier: PostgreSQL
 * web_session.c: logging in to the console and out of it.
 * Runs in: web. A form of another site cannot log anybody in: it cannot set our header. */
#include "config.h"

#include <string.h>

#include "base/mem.h"

#include "web_action.h"
#include "web_json.h"
#include "web_login.h"

#define STATUS_WRONG   401
#define STATUS_FOREIGN 403
#define STATUS_SLOWER  429
#define PASSWORD_BYTES 1024

static void tell(struct web_answer *a, const struct web_who *who)
{
    struct web_json j = {.out = &a->body};

    web_json_open(&j, '{');
    web_json_member(&j, "user", who->user);
    web_json_member(&j, "role", who->is_operator ? "operator" : "viewer");
    web_json_member(&j, "csrf", who->csrf);
    web_json_member(&j, "version", PACKAGE_VERSION);
    web_json_close(&j, '}');
    a->type = WEB_TYPE_JSON;
}

void web_login_page(const struct web_request *r, struct web_answer *a)
{
    char user[WEB_USER_BYTES + 1] = "";
    char password[PASSWORD_BYTES] = "";
    struct web_who who;

    if (web_request_header(r, "X-Pgpool-Console") == NULL) {
        web_answer_text(a, STATUS_FOREIGN, "this is for the console's own page\n");
        return;
    }
    (void)web_form_field(r->body, "user", user, sizeof user);
    (void)web_form_field(r->body, "password", password, sizeof password);
    switch (web_login_begin(r, slice_of_str(user), slice_of_str(password), a, &who)) {
    case WEB_LOGIN_DONE:
        tell(a, &who);
        break;
    case WEB_LOGIN_WRONG:
        web_answer_text(a, STATUS_WRONG, "wrong user or password\n");
        break;
    case WEB_LOGIN_BLOCKED:
        web_answer_text(a, STATUS_SLOWER, "too many wrong passwords: wait for a minute\n");
        break;
    }
    mem_wipe(password, sizeof password);
}

void web_logout_page(const struct web_request *r, struct web_answer *a)
{
    web_login_end(r, a);
    web_answer_text(a, 0, "logged out\n");
}

void web_session_page(const struct web_request *r, struct web_answer *a)
{
    tell(a, r->who);
}
