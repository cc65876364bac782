/* SPDX-License-Identifier: PostgreSQL
 * sstate_facts.c: questions about a session that is followed: its transaction, its mode, which
 * servers it may use. Runs in: workers. Changes nothing. */
#include "config.h"

#include "base/hot.h"
#include "config/conf.h"

#include "sstate_int.h"

bool sstate_is_tied(const struct client *c)
{
    const struct sstate *s = c->sstate;

    if (lent_keeps(s) && s->ran_made && c->kind == &c->ss->kinds->followed)
        return true; /* no router looks at what that does */
    return s->pins != 0 || (lent_keeps(s) && (c->plan->rs.ties & ROUTE_TIE_STATE) != 0);
}

char sstate_tx_status(const struct client *c)
{
    const struct sstate *s = c->sstate;

    if (sstate_tx_is_lost(s))
        return 'E';
    if (s->tx == SSTATE_TX_VIRTUAL || (s->errand != NULL && s->errand->home != NULL))
        return 'T';
    return s->phase >= PHASE_SYNCING ? c->link->tx_status : 'I';
}

uint64_t sstate_link_to_avoid(const struct client *c)
{
    return c->ss->conf->pool_test_rotate ? c->sstate->last_link : 0;
}

bool sstate_has_ready_link(struct client *c)
{
    return client_may_reuse(c, c->pool) &&
           pool_has_ready(c->pool, c->sstate->vars.client, sstate_link_to_avoid(c));
}

bool sstate_is_busy(const struct client *c)
{
    const struct sstate *s = c->sstate;

    if (s->phase == PHASE_ATTACHED)
        return !expect_is_quiet(&c->link->expect);
    return s->phase != PHASE_DETACHED;
}

bool sstate_is_followed(const struct client *c)
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

HOT int sstate_write_node(struct client *c)
{
    int node;

    if (c->pool->is_moved && c->link == NULL && c->sstate->kept == NULL)
        client_place_follow(c);
    if (c->pool->cluster_node >= POOLS_FIRST_TARGET)
        return c->pool->cluster_node; /* a cluster of its own, by pools.conf */
    if (c->sstate->kept != NULL && sstate_is_tied(c))
        return c->sstate->kept->pool->cluster_node; /* what was done there is nowhere else */
    node = sessions_write_node(c->ss);
    if (node != VIEW_NO_NODE && node != c->pool->cluster_node)
        client_place_move(c, node);
    return node;
}

/* A node that just failed this client: the view will know in a moment. */
bool sstate_is_avoided(const struct client *c, int node)
{
    const struct sstate *s = c->sstate;

    return s->avoid_until_us != 0 && node == s->avoid_node &&
           loop_now_us(c->ss->loop) < s->avoid_until_us;
}

bool sstate_names_a_statement(const struct sql_stmt *st)
{
    return st->kind == SQL_PREPARE || st->kind == SQL_EXECUTE || st->inner == SQL_EXECUTE ||
           (st->kind == SQL_DEALLOCATE && (st->flags & SQL_F_ALL) == 0);
}
