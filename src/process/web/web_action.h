/* SPDX-License-Identifier: PostgreSQL
 * web_action.h: what an operator may do in the console, and its sessions. Runs in: web. */
#ifndef PGP_PROCESS_WEB_ACTION_H
#define PGP_PROCESS_WEB_ACTION_H

#include "web_int.h"

/* --- web_action.c --- */
web_page_fn web_action_page;
/* Puts among the events (and into the log) what is not about a server and was ordered by `who`; the
 * monitor tells the rest itself. 0, or -1 and *err. */
int web_action_note(
    struct web *w, const char *name, const char *text, const char *who, struct err *err);

/* --- web_session.c --- */
web_page_fn web_login_page;
web_page_fn web_logout_page;
web_page_fn web_session_page;

/* --- web_form.c --- */
/* Puts the value of a field of a form (name=value&...), decoded and with a NUL; false, and an empty
 * one, when there is none, it does not fit or holds a NUL. Pure. */
bool web_form_field(struct slice body, const char *name, char *out, size_t size);

#endif
