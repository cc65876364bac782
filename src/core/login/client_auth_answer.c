/* SPDX-License-Identifier: PostgreSQL
 * client_auth_answer.c: what a look-up of a user was answered, and what follows from it.
 * Runs in: workers. Must never: believe an answer about another user than asked for. */
#include "config.h"

#include "base/log.h"
#include "base/mem.h"
#include "wire/reader.h"

#include "client_auth_lookup_int.h"

void lookup_free(struct lookup *l)
{
    list_remove(&l->node);
    secret_free(&l->secret);
    mem_free(l->user);
    mem_free(l->role);
    buf_free(&l->book_name);
    mem_free(l);
}

void lookup_take_row(struct lookup *l, struct slice body)
{
    struct wire_reader r;
    struct slice name;
    struct slice secret;
    bool name_is_null = false;
    bool secret_is_null = false;

    wire_reader_init(&r, body);
    if (wire_get_u16(&r) < 2) {
        l->row = LOOKUP_WRONG_ROW;
        return;
    }
    name = wire_get_value(&r, &name_is_null);
    secret = wire_get_value(&r, &secret_is_null);
    if (r.bad || name_is_null || l->row != LOOKUP_NO_ROW ||
        !slice_eq_str(name, l->kind == AUTH_LOOKUP_ROLE ? l->role : l->user)) {
        l->row = LOOKUP_WRONG_ROW;
        return;
    }
    l->row = secret_is_null ? LOOKUP_NAME : LOOKUP_NAME_AND_SECRET;
    if (!secret_is_null)
        secret_set(&l->secret, secret);
}

/* A link that was opened by what does not hold any more. */
static bool is_opened_by(const struct link *link, struct slice user, struct slice book_name)
{
    return book_name.n > user.n ? slice_eq(pool_book_name(link->pool), book_name)
                                : slice_eq(pool_user(link->pool), user);
}

/* The password was changed, or the role is gone or another one of that name: idle links were opened
 * by what does not hold any more, and so were those that are in use or made ready for the next
 * client, which go when they are free. What is kept apart for one database says nothing of others.
 */
static void close_links_of(struct backend *be, struct slice user, struct slice book_name)
{
    struct link *link;
    struct list *n;
    struct list *tmp;

    LIST_FOREACH(n, &be->links)
    {
        link = LIST_ENTRY(n, struct link, be_node);
        if (link->phase >= LINK_LENT && is_opened_by(link, user, book_name))
            link->is_retired = true;
    }
    LIST_FOREACH_SAFE(n, tmp, &be->idle_lru)
    {
        link = LIST_ENTRY(n, struct link, be_node);
        if (is_opened_by(link, user, book_name))
            link_close(link);
    }
}

static void keep_login(struct login_auth *sa, struct slice user, const struct lookup *l)
{
    enum auth_told told = AUTH_TOLD_YES;

    if (l->row == LOOKUP_NO_ROW)
        told = AUTH_TOLD_NO_ROLE;
    else if (l->row == LOOKUP_NAME_AND_SECRET)
        told = slice_eq_str(secret_slice(&l->secret), "locked") ? AUTH_TOLD_NO : AUTH_TOLD_EXPIRED;
    login_auth_put_told(sa, AUTH_LOOKUP_LOGIN, user, slice_of("", 0), told);
    if (told == AUTH_TOLD_NO || told == AUTH_TOLD_NO_ROLE)
        close_links_of(sa->be, user, user); /* it may come back as another role of that name */
}

void lookup_keep(struct login_auth *sa, struct lookup *l, struct slice key, int node)
{
    struct slice user = slice_of_str(l->user);

    if (l->row == LOOKUP_WRONG_ROW && l->kind == AUTH_LOOKUP_ROLE) {
        log_caused_detail(LVL_WARNING, NULL,
            "Does search_path of auth_user put something before pg_catalog?",
            "node %d answered something else than was asked about role \"%s\": user \"%s\" is "
            "taken for no member of it",
            node, l->role, l->user);
        l->row = LOOKUP_NO_ROW;
    } else if (l->row == LOOKUP_WRONG_ROW) {
        log_caused_detail(LVL_WARNING, NULL,
            "Run it by hand as auth_user: it has to give name and secret of user $1.",
            "auth_query did not return one row (name, secret) for the user asked for: "
            "user \"%s\" is taken for unknown",
            l->user);
        l->row = LOOKUP_NO_ROW;
    }
    if (l->kind == AUTH_LOOKUP_ROLE)
        login_auth_put_told(sa, AUTH_LOOKUP_ROLE, user, slice_of_str(l->role),
            l->row != LOOKUP_NO_ROW ? AUTH_TOLD_YES : AUTH_TOLD_NO);
    else if (l->kind == AUTH_LOOKUP_LOGIN)
        keep_login(sa, user, l);
    else if (l->kind == AUTH_LOOKUP_KEYS)
        login_learn_take(sa, user, &l->waiters, secret_slice(&l->secret));
    else if (auth_book_put_answer(sa->book, buf_slice(&l->book_name), key, l->row != LOOKUP_NO_ROW,
                 l->row == LOOKUP_NAME_AND_SECRET ? secret_slice(&l->secret) : slice_of(NULL, 0),
                 loop_now_us(sa->be->loop)))
        close_links_of(sa->be, user, buf_slice(&l->book_name));
}
