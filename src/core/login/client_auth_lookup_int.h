/* SPDX-License-Identifier: PostgreSQL
 * client_auth_lookup_int.h: a question about a user, and what becomes of its answer. */
#ifndef PGP_LOGIN_CLIENT_AUTH_LOOKUP_INT_H
#define PGP_LOGIN_CLIENT_AUTH_LOOKUP_INT_H

#include "client_auth_int.h"

/* The row of an answer: name and secret, or state. */
enum lookup_row { LOOKUP_NO_ROW, LOOKUP_NAME, LOOKUP_NAME_AND_SECRET, LOOKUP_WRONG_ROW };

struct lookup {
    struct list node;    /* in the queue of who asks */
    struct list waiters; /* struct auth_wait */
    enum auth_lookup_kind kind;
    enum lookup_row row;
    struct secret secret;
    char *user;
    char *role;           /* AUTH_LOOKUP_ROLE, else NULL */
    struct buf book_name; /* of the user */
};

/* Nobody waits any more. */
void lookup_free(struct lookup *l);
/* A row of the answer; one about another user makes it wrong. */
void lookup_take_row(struct lookup *l, struct slice body);
/* Puts down what was answered by `node`, for later logins; `key` says by whom and how it was asked.
 * Links that were opened by what does not hold any more are closed; no client ends. */
void lookup_keep(struct login_auth *sa, struct lookup *l, struct slice key, int node);

#endif
