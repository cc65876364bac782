/* SPDX-License-Identifier: PostgreSQL
 * share_facts.c: questions about a session that shares links: its transaction, its mode, which
 * servers it may use. Runs in: workers. Changes nothing. */
#include "config.h"

#include "base/hot.h"
#include "config/conf.h"

#include "share_again_int.h"
#include "share_names_int.h"

bool share_is_tied(const struct client *c)
{
    const struct share *s = c->share;

    return s->pins != 0 || (share_keeps(s) && c->balance->rs.state_unknown);
}

char share_tx_status(const struct client *c)
{
    const struct share *s = c->share;

    if (share_tx_is_lost(s))
        return 'E';
    if (s->tx == SHARE_TX_VIRTUAL || (s->turn != NULL && s->turn->home != NULL))
        return 'T';
    return s->phase >= SHARE_SYNCING ? c->link->tx_status : 'I';
}

uint64_t share_link_to_avoid(const struct client *c)
{
    return c->ss->conf->pool_test_rotate ? c->share->last_link : 0;
}

bool share_has_ready_link(struct client *c)
{
    return client_may_reuse(c, c->pool) &&
           pool_has_ready(c->pool, c->share->vars.client, share_link_to_avoid(c));
}

bool share_is_busy(const struct client *c)
{
    const struct share *s = c->share;

    if (s->phase == SHARE_ATTACHED)
        return !expect_is_quiet(&c->link->expect);
    return s->phase != SHARE_DETACHED;
}

bool share_login_follows(const struct client *c)
{
    const struct conf *conf = c->ss->conf;
    int nodes = 0;
    int i;

    for (i = 0; i < conf->nnodes; i++)
        nodes += conf_has_node(conf, i) ? 1 : 0;
    return nodes > 1 && c->ss->rules != NULL && c->pool->cluster_node < POOLS_FIRST_TARGET &&
           (conf->backend_clustering_mode == CONF_CLUSTER_STREAMING ||
               conf->backend_clustering_mode == CONF_CLUSTER_LOGICAL);
}

HOT int share_write_node(struct client *c)
{
    int node;

    if (c->pool->is_moved && c->link == NULL && c->share->kept == NULL)
        client_place_follow(c);
    if (c->pool->cluster_node >= POOLS_FIRST_TARGET)
        return c->pool->cluster_node; /* a cluster of its own, by pools.conf */
    if (c->share->kept != NULL && share_is_tied(c))
        return c->share->kept->pool->cluster_node; /* what was done there is nowhere else */
    node = sessions_write_node(c->ss);
    if (node != VIEW_NO_NODE && node != c->pool->cluster_node)
        client_place_move(c, node);
    return node;
}

/* A node that just failed this client: the view will know in a moment. */
bool share_is_avoided(const struct client *c, int node)
{
    const struct share *s = c->share;

    return s->avoid_until_us != 0 && node == s->avoid_node &&
           loop_now_us(c->ss->loop) < s->avoid_until_us;
}

bool share_names_a_statement(const struct sql_stmt *st)
{
    return st->kind == SQL_PREPARE || st->kind == SQL_EXECUTE || st->inner == SQL_EXECUTE ||
           (st->kind == SQL_DEALLOCATE && (st->flags & SQL_F_ALL) == 0);
}
