/* SPDX-License-Identifier: PostgreSQL
 * client_place.c: a client's pool becomes that of another server: the primary has changed, or a
 * reload of pools.conf has put its database elsewhere. Runs in: workers. Nothing of a client may be
 * lent by the old pool at that moment. */
#include "config.h"

#include "auth/auth_book.h"

#include "sstate_int.h"

void place_learn_secret(struct pool *pool)
{
    struct auth_book *book = pool->be->book;
    struct auth_stored stored;

    if (book != NULL && auth_book_find_passwd(book, pool_user(pool), &stored) &&
        stored.cred != NULL)
        auth_book_learn_cred(book, pool_book_name(pool), stored.cred);
}

void client_place_move(struct client *c, int node)
{
    struct pool *old = c->pool;

    c->pool = pool_attach(&c->ss->be, pool_user(old), pool_database(old), node);
    if (node < POOLS_FIRST_TARGET && old->cluster_node < POOLS_FIRST_TARGET)
        pool_learn_role(c->pool, old);
    pool_detach(old);
}

void client_place_follow(struct client *c)
{
    client_place_move(c, c->pool->set->target);
    place_learn_secret(c->pool);
    if (c->proof.proved != LOGIN_PROVED_HERE)
        c->proof.proved = LOGIN_PROVED_NOT;
    /* Another server has greeted the client: it is told what this one says. */
    c->sstate->parameters = PARAMETERS_UNKNOWN;
}

void client_place_login_at(struct client *c, int node)
{
    struct client_login *login = c->login;
    bool is_mapped = login->startup.user.p == pool_user(c->pool).p;

    pool_request_cancel(&login->req);
    client_place_move(c, node);
    if (is_mapped)
        login->startup.user = pool_user(c->pool);
    login->req.pool = c->pool;
}

/* Whom the server before knew by the client's name may be somebody else at the new one: what is
 * known of that user there must not log the client in, nor may a connection of his be lent. */
bool client_place_login(struct client *c)
{
    if (!c->pool->is_moved)
        return true;
    client_place_login_at(c, c->pool->set->target);
    place_learn_secret(c->pool);
    if (c->login->auth != NULL)
        client_auth_on_move(c->login->auth);
    if (c->proof.proved != LOGIN_PROVED_THERE)
        return true;
    client_end_text(c, "08001",
        "database \"%s\" has moved to another server during the login: connect again",
        c->pool->names + c->pool->user_len + 1);
    return false;
}
