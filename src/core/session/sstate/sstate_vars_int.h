/* SPDX-License-Identifier: PostgreSQL
 * sstate_vars_int.h: settings as they are written: calls of set_config(), and start-up parameters.
 * sstate_vars.c has them, sstate_bound.c those with parameters. */
#ifndef PGP_SESSION_SSTATE_VARS_INT_H
#define PGP_SESSION_SSTATE_VARS_INT_H

#include "sstate_int.h"

/* What a call of set_config() does, as it is written: its third argument is true; or literals, then
 * the setting's folded name and an equal call are appended to *name and *sql. DEFAULT: the value is
 * NULL. */
enum set_config_call {
    SET_CONFIG_UNKNOWN,
    SET_CONFIG_LOCAL,
    SET_CONFIG_SESSION,
    SET_CONFIG_DEFAULT
};
enum set_config_call sstate_set_config(struct slice call, struct buf *name, struct buf *sql);
static inline bool effects_is_session_call(enum set_config_call is)
{
    return is == SET_CONFIG_SESSION || is == SET_CONFIG_DEFAULT;
}
/* The argument of a call that begins at `p`, without the space around it. Returns its end, a comma
 * or a parenthesis; NULL: it is not understood. */
const char *sstate_argument(const char *p, const char *end, struct slice *arg);
const char *sstate_skip_space(const char *p, const char *end);
/* The statement is a list of calls of set_config() and current_setting() and nothing besides: each
 * of them is made, once, in this order. With a WHERE, a CASE or the like that is not known. */
bool sstate_calls_are_made(const struct sql_stmt *st, struct slice text);
/* A call of set_config() with literals, as written. False when it cannot be followed: whether it is
 * made is not known, say. */
bool sstate_vars_note_call(struct sstate *s, struct slice call, bool is_made);

/* sstate_bound.c: set_config() with parameters. True when there may be something to put in. */
bool sstate_bound_may_matter(struct slice sql);
/* `sql`, whose facts these are, with the parameters of its calls of set_config() as literals, as
 * far as these are known, appended to *out. `types`: those of its Parse, with their count. `bind`:
 * the body of the Bind; p == NULL: what can be followed when the values are such. False: it stays
 * as it is. */
bool sstate_bound_sql(const struct sql_facts *facts, struct slice sql, struct slice types,
    struct slice bind, struct buf *out);

/* One word of "options": white space ends it, a backslash takes the next character as it is.
 * Returns where to go on. */
const char *sstate_options_word(const char *p, const char *end, struct buf *word);
/* Start-up parameters as settings; false when they cannot be. */
bool sstate_vars_of_startup(
    struct varset_store *store, const struct paramset *params, struct varset **out);

#endif
