/* SPDX-License-Identifier: PostgreSQL
 * route_choose.c: the node for a session's reads: preference lists, weights, lag, consistency.
 * Runs in: workers. Primary, chosen node and lowest number are three different things here. */
#include "config.h"

#include "base/hot.h"

#include "route_int.h"

/* Which nodes are drawn from. */
enum pool_of { ANY_NODE, STANDBYS, ANY_BUT_ONE };

/* From 0 up to, but without, 1. One number decides all: what a ratio leaves of it is spread over
 * the whole range again. So callers that give an even sequence instead of random numbers get an
 * even distribution whatever the lists say. */
double route_unit_of(uint64_t random)
{
    return (double)(random >> 11) * (1.0 / 9007199254740992.0);
}

static bool is_within(double *at, double ratio)
{
    bool within = *at < ratio;

    *at = within ? *at / ratio : (*at - ratio) / (1.0 - ratio);
    return within;
}

/* May reads go there at all? A second primary (a server that was not rewound) never gets any. */
WARM bool route_is_candidate(const struct view *v, int node)
{
    if (!view_is_usable(v, node))
        return false;
    return node == v->primary || v->primary == VIEW_NO_NODE ||
           v->node[node].role != VIEW_ROLE_PRIMARY;
}

static bool is_standby(const struct view *v, int node)
{
    return route_is_candidate(v, node) && node != view_write_node(v);
}

static bool is_in_pool(const struct view *v, int node, enum pool_of pool, int except)
{
    if (pool == STANDBYS)
        return is_standby(v, node);
    return route_is_candidate(v, node) && (pool == ANY_NODE || node != except);
}

/* A draw by weight; VIEW_NO_NODE when no node of the pool has a weight. */
static int draw_node(const struct route_input *in, enum pool_of pool, int except, double at)
{
    const struct view *v = in->view;
    double total = 0.0;
    int last = VIEW_NO_NODE;
    int i;

    for (i = 0; i < v->nnodes; i++)
        if (is_in_pool(v, i, pool, except))
            total += in->conf->nodes[i].backend_weight;
    if (total <= 0.0)
        return VIEW_NO_NODE;
    at *= total;
    for (i = 0; i < v->nnodes; i++) {
        double weight = in->conf->nodes[i].backend_weight;
        if (weight <= 0.0 || !is_in_pool(v, i, pool, except))
            continue;
        last = i;
        if (at < weight)
            return i;
        at -= weight;
    }
    return last; /* rounding */
}

static const struct route_preference *preference_for(const struct route_input *in)
{
    const struct route_rules *r = in->rules;
    const struct route_preference *p;

    if (r == NULL || (r->by_app.n == 0 && r->by_database.n == 0 && r->by_user.n == 0))
        return NULL;
    p = route_preference_of(&r->by_app, in->who.application_name);
    if (p == NULL)
        p = route_preference_of(&r->by_database, in->who.database);
    if (p == NULL)
        p = route_preference_of(&r->by_user, in->who.user);
    return p;
}

/* The preferred node by its ratio, or another; VIEW_NO_NODE when the preference cannot be met. */
static int draw_preferred(const struct route_input *in, const struct route_preference *p, double at)
{
    const struct view *v = in->view;
    bool wanted = is_within(&at, p->is.ratio);
    int primary = view_write_node(v);
    int target;
    int other;

    if (p->is.what == CONF_PREFER_STANDBY) {
        if (!wanted)
            return primary;
        return draw_node(in, STANDBYS, VIEW_NO_NODE, at);
    }
    target = p->is.what == CONF_PREFER_PRIMARY ? primary : p->is.node;
    if (!route_is_candidate(v, target))
        return VIEW_NO_NODE;
    if (wanted)
        return target;
    other = draw_node(in, ANY_BUT_ONE, target, at);
    return other == VIEW_NO_NODE ? target : other;
}

WARM static int choose(const struct route_input *in, enum route_reason *reason)
{
    double at = route_unit_of(in->random);
    const struct route_preference *p = preference_for(in);
    int node = VIEW_NO_NODE;

    if (p != NULL)
        node = draw_preferred(in, p, at);
    if (node != VIEW_NO_NODE) {
        *reason = ROUTE_R_PREFERENCE;
        return node;
    }
    *reason = ROUTE_R_BALANCED;
    node = draw_node(in, ANY_NODE, VIEW_NO_NODE, at);
    return node == VIEW_NO_NODE ? view_write_node(in->view) : node;
}

int route_choose_balance_node(const struct route_input *in)
{
    enum route_reason reason;

    return choose(in, &reason);
}

bool route_node_lags(const struct conf *conf, const struct view *view, int node)
{
    const struct view_node *n = &view->node[node];

    if (conf->backend_clustering_mode != CONF_CLUSTER_STREAMING || conf->sr_check_period_ms == 0 ||
        node == view->primary)
        return false;
    if (conf->delay_threshold_by_time_ms > 0)
        return n->delay_us > conf->delay_threshold_by_time_ms * 1000;
    return conf->delay_threshold_bytes > 0 && n->delay_bytes > conf->delay_threshold_bytes;
}

/* The standby that lags least and not too much; VIEW_NO_NODE when there is none. */
static int least_lagging(const struct route_input *in)
{
    const struct view *v = in->view;
    bool by_time = in->conf->delay_threshold_by_time_ms > 0;
    int64_t least = INT64_MAX;
    int best = VIEW_NO_NODE;
    int i;

    for (i = 0; i < v->nnodes; i++) {
        int64_t delay = by_time ? v->node[i].delay_us : v->node[i].delay_bytes;
        if (!is_standby(v, i) || in->conf->nodes[i].backend_weight <= 0.0 ||
            route_node_lags(in->conf, v, i) || delay >= least)
            continue;
        least = delay;
        best = i;
    }
    return best;
}

static uint64_t wanted_lsn(const struct route_input *in)
{
    const struct route_session *s = in->session;

    switch (in->conf->read_consistency) {
    case CONF_READ_SESSION:
        return s->last_write_lsn;
    case CONF_READ_GLOBAL:
        return s->last_write_lsn > s->global_write_lsn ? s->last_write_lsn : s->global_write_lsn;
    case CONF_READ_EVENTUAL:
        break;
    }
    return 0;
}

static bool has_replayed(const struct route_input *in, int node, uint64_t lsn)
{
    return lsn <= in->view->node[node].replayed_lsn ||
           (in->replayed_lsn != NULL && lsn <= in->replayed_lsn[node]);
}

/* What it replays is not what the primary writes: one that had received more of a former primary
 * has a position that says nothing. */
bool route_is_on_other_timeline(const struct view *v, int node, int primary)
{
    return primary != VIEW_NO_NODE && v->node[node].timeline != 0 &&
           v->node[primary].timeline != 0 && v->node[node].timeline != v->node[primary].timeline;
}

WARM void route_place_read(const struct route_input *in, struct route_decision *out)
{
    const struct view *v = in->view;
    int primary = view_write_node(v);
    int node = in->session->balance_node;
    bool is_astray;
    uint64_t lsn;

    out->reason = in->session->is_preferred ? ROUTE_R_PREFERENCE : ROUTE_R_BALANCED;
    if (in->conf->statement_level_load_balance || !route_is_candidate(v, node)) {
        node = choose(in, &out->reason);
        out->balance_node = node;
        out->is_preferred = out->reason == ROUTE_R_PREFERENCE;
    }
    out->node = node;
    if (node == VIEW_NO_NODE || node == primary)
        return;
    if (route_node_lags(in->conf, v, node)) {
        node = in->conf->prefer_lower_delay_standby ? least_lagging(in) : VIEW_NO_NODE;
        out->reason = node == VIEW_NO_NODE ? ROUTE_R_LAG : ROUTE_R_LOWER_LAG;
        out->node = node == VIEW_NO_NODE ? primary : node;
        if (out->node == primary)
            return;
    }
    lsn = wanted_lsn(in);
    is_astray = lsn > 0 && route_is_on_other_timeline(v, node, primary);
    if (!is_astray && has_replayed(in, node, lsn))
        return;
    if (!is_astray && in->conf->read_consistency_wait_ms > 0) {
        out->must_wait = true;
        out->wait_lsn = lsn;
        out->reason = ROUTE_R_WAIT;
        return;
    }
    out->node = primary;
    out->reason = ROUTE_R_CONSISTENCY;
}
