/* SPDX-License-Identifier: PostgreSQL
 * client_auth_known.c: what is known without asking anybody: how the server asked lately, whether
 * it may judge. Runs in: workers. */
#include "config.h"

#include "client_auth_int.h"

/* What the server asked lately; unknown is always safe. */
enum auth_server client_auth_remembered(const struct client_auth *a)
{
    const struct pool *pool = a->who.req->pool;

    if (a->who.req->is_private)
        return AUTH_SERVER_UNKNOWN; /* sessions have told nothing about replication */
    if (pool_is_trusted(pool))
        return AUTH_SERVER_TRUST;
    return pool->auth == LINK_AUTH_ASKED ? (enum auth_server)pool->asks : AUTH_SERVER_UNKNOWN;
}

bool client_auth_asks_servers(const struct client_auth *a)
{
    return auth_lookup_is_possible(
        a->sa, AUTH_LOOKUP_SECRET, a->who.startup->database, client_auth_user(a));
}

bool client_auth_may_relay(const struct client_auth *a)
{
    return a->who.console == NULL && a->answer == AUTH_ANSWER_NONE && !a->is_asked &&
           login_auth_may_relay(a->sa->be->conf, client_auth_asks_servers(a), a->sa->file_judges);
}
