/* SPDX-License-Identifier: PostgreSQL
 * route_reads.c: the plain case of routing, reads that are balanced, as a table. Runs in: workers.
 * What route_choose.c finds out of the servers and the settings for every read is the same until
 * one of them changes. The rules that look at the session stay with each read. */
#include "config.h"

#include <string.h>

#include "base/hot.h"
#include "route/route_reads.h"
#include "route/route_trace.h"
#include "route_int.h"

/* Sessions ask what a standby must have replayed, and this node's position tells it. */
static bool tells_position(const struct route_input *in, int node)
{
    return in->conf->read_consistency == CONF_READ_EVENTUAL ||
           !route_is_on_other_timeline(in->view, node, view_write_node(in->view));
}

static bool is_open(const struct route_input *in, int node, int primary)
{
    if (!conf_has_node(in->conf, node) || !route_is_candidate(in->view, node))
        return false;
    return node == primary ||
           (!route_node_lags(in->conf, in->view, node) && tells_position(in, node));
}

/* Reads depend on what is not in here: which tables were written lately, the newest write of any
 * session. */
static bool is_in_reach(const struct conf *conf)
{
    return conf->disable_load_balance_on_write != CONF_WRITE_DML_ADAPTIVE_GLOBAL &&
           conf->read_consistency != CONF_READ_GLOBAL;
}

/* Each server has the share of a unit that a draw by weight in route_choose.c gives it. */
static void make_draws(struct route_reads *r, const struct route_input *in)
{
    double total = 0.0;
    double sum = 0.0;
    unsigned n = 0;
    int i;

    for (i = 0; i < in->view->nnodes; i++)
        if (route_is_candidate(in->view, i))
            total += in->conf->nodes[i].backend_weight;
    for (i = 0; i < in->view->nnodes; i++) {
        double weight = in->conf->nodes[i].backend_weight;

        if (weight <= 0.0 || !route_is_candidate(in->view, i))
            continue;
        if (n == ROUTE_READS_DRAWN)
            return;
        sum += weight;
        r->node[n] = (int16_t)i;
        r->upto[n++] = sum / total;
    }
    r->ndrawn = (uint8_t)n;
}

static bool has_preferences(const struct route_rules *rules)
{
    return rules->by_app.n > 0 || rules->by_database.n > 0 || rules->by_user.n > 0;
}

void route_reads_make(struct route_reads *r, const struct route_input *in)
{
    const struct conf *conf = in->conf;
    int i;

    memset(r, 0, sizeof *r);
    r->primary = (int16_t)view_write_node(in->view);
    r->is_by_statement = conf->statement_level_load_balance;
    r->sticks_to_writes = conf->disable_load_balance_on_write == CONF_WRITE_ALWAYS;
    r->awaits_replay = conf->read_consistency != CONF_READ_EVENTUAL;
    r->has_patterns = in->rules != NULL && in->rules->primary_queries.n > 0;
    if (!is_in_reach(conf))
        return;
    for (i = 0; i < in->view->nnodes; i++)
        if (is_open(in, i, r->primary))
            r->open[i / 64] |= UINT64_C(1) << (i % 64);
    if (r->is_by_statement && (in->rules == NULL || !has_preferences(in->rules)))
        make_draws(r, in);
}

/* Nothing of the session keeps its reads on the primary. */
static bool is_free(const struct route_reads *r, const struct route_session *s)
{
    return s->ties == 0 && (s->trace == NULL || !route_trace_has_temp(s->trace)) &&
           (!r->sticks_to_writes || s->wrote == ROUTE_WROTE_NOTHING);
}

static int draw(const struct route_reads *r, uint64_t random)
{
    double at = route_unit_of(random);
    unsigned i;

    for (i = 0; i < r->ndrawn; i++)
        if (at < r->upto[i])
            return r->node[i];
    return VIEW_NO_NODE;
}

HOT int route_reads_node(const struct route_reads *r, const struct view *v,
    const struct route_session *s, uint64_t random)
{
    int node;

    if (!is_free(r, s))
        return VIEW_NO_NODE;
    node = r->is_by_statement ? draw(r, random) : s->balance_node;
    if (node < 0 || !view_has_node(r->open, node) ||
        (r->awaits_replay && node != r->primary && s->last_write_lsn > v->node[node].replayed_lsn))
        return VIEW_NO_NODE;
    return node;
}
