/* SPDX-License-Identifier: PostgreSQL
 * plan_query.c: the choice for a simple query. Runs in: workers. */
#include "config.h"

#include "base/hot.h"
#include "config/conf.h"

#include "plan_core_int.h"

/* pg_terminate_backend() and the like go where the process is that they end. */
static bool ends_process(const struct plan_case *in, const struct route_decision *d)
{
    return d->reason == ROUTE_R_BACKEND_PID && conf_has_node(in->conf, d->node) &&
           in->tx == PLAN_TX_NONE;
}

/* Where the router wants it, when that may be; else where the transaction lives, or writes go. */
WARM static void follow_route(const struct plan_case *in, bool is_out, struct plan_choice *out)
{
    const struct route_decision *d = &out->route;
    bool is_read = d->class == ROUTE_EITHER && in->tx != PLAN_TX_VIRTUAL;

    if (ends_process(in, d)) {
        out->node = d->node;
        out->way = PLAN_READS;
        return;
    }
    /* What it calls is known to change nothing; a view may. */
    if (is_read && !d->must_ask && in->tx != PLAN_TX_ASIDE)
        out->retry |= PLAN_RETRY_READ;
    else if (d->reason == ROUTE_R_VOLATILE_VIEW)
        out->retry &= (uint8_t)~PLAN_RETRY_READ;
    if (plan_may_go_there(in, d) && (is_out || is_read || !in->is_tied)) {
        plan_take_read(in, d->node, is_out, out);
        if (out->way == PLAN_LEAVES)
            plan_note_left(out->facts, out);
        return;
    }
    plan_note_stays(in, out->facts, out);
    out->way = PLAN_WRITES;
}

WARM static void judge(const struct plan_case *in, struct slice sql, struct plan_choice *out)
{
    bool is_out;

    if (!plan_judge_text(in, sql, out))
        return;
    is_out = plan_leaves(in, out);
    if (in->tx == PLAN_TX_ASIDE && !is_out)
        plan_note_stays(in, out->facts, out);
    else if (plan_sees_enough(in, out))
        follow_route(in, is_out, out);
}

WARM void plan_query(const struct plan_case *in, struct slice sql, const struct sql_facts *facts,
    struct plan_choice *out)
{
    plan_choice_init(in, out);
    out->facts = facts;
    if (plan_is_settled(in, out) || facts == NULL || in->tx == PLAN_TX_LOST)
        return;
    if (route_is_plain_read(facts) && !plan_tx_is_open(in))
        out->retry |= PLAN_RETRY_READ;
    if (in->judge != NULL)
        judge(in, sql, out);
}
