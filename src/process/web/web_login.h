/* SPDX-License-Identifier: PostgreSQL
 * web_login.h: who asks over HTTP, and what he may. Runs in: web. */
#ifndef PGP_PROCESS_WEB_LOGIN_H
#define PGP_PROCESS_WEB_LOGIN_H

#include <stdint.h>

#include "crypto/crypto.h"

#include "web_int.h"

#define WEB_USER_BYTES 128
#define WEB_TOKEN_TEXT 49 /* with its NUL */

enum web_right {
    WEB_FOR_ANYONE,
    WEB_FOR_SCRAPERS, /* as viewers, or anyone with http_metrics_open */
    WEB_FOR_VIEWERS,  /* users of pcp.conf */
    WEB_FOR_SESSIONS, /* those who are logged in, by their token: no page of another site */
    WEB_FOR_OPERATORS /* those of them whom http_operators names */
};

struct web_who {
    char user[WEB_USER_BYTES + 1]; /* "" nobody */
    bool is_operator;
    char csrf[WEB_TOKEN_TEXT];
    uint8_t lines[CRYPTO_SHA256_BYTES]; /* of what pcp.conf had for the user */
};

enum web_login_result { WEB_LOGIN_DONE, WEB_LOGIN_WRONG, WEB_LOGIN_BLOCKED };

struct web_login *web_login_new(void);
/* Wipes all sessions. */
void web_login_free(struct web_login **lp);
/* True when whoever asks may; else *a is the refusal. Fills *who in any case. Orders need a session
 * and its token in X-CSRF-Token. */
bool web_login_may(
    const struct web_request *r, enum web_right right, struct web_answer *a, struct web_who *who);
/* Begins a session: with DONE *a has its cookie and *who its token. */
enum web_login_result web_login_begin(const struct web_request *r, struct slice user,
    struct slice password, struct web_answer *a, struct web_who *who);
/* Ends the session, if there is one. */
void web_login_end(const struct web_request *r, struct web_answer *a);
/* The address of who asks, without a port. */
void web_login_peer(const struct web_request *r, char *out, size_t size);

#endif
