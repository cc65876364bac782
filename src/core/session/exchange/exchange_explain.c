/* SPDX-License-Identifier: PostgreSQL
 * exchange_explain.c: where a statement would go in this session, and why (session/answering.h);
 * and what is said of sessions that no standby lets in. */
#include "config.h"

#include "auth/auth_plan.h"
#include "base/arena.h"
#include "base/log.h"
#include "parser/sql_cache.h"

#include "sstate_int.h"

bool exchange_explain_asks(struct client *c, struct slice sql)
{
    bool asks = c->plan->asking != ASKING_NONE || exchange_asks_first(c, sql);

    c->plan->keeps_random = true; /* what is explained is what would run next */
    if (!asks)
        plan_ask_reset(c->plan);
    return asks;
}

/* A client that has a link stays on it: its transaction lives there, or it is tied to it. */
static void explain_present_link(
    const struct client *c, const struct route_decision *d, struct explained *out)
{
    if (c->sstate->phase != PHASE_ATTACHED)
        return;
    if (plan_aside_may(c) && d->may_leave_tx && !d->must_wait && !d->must_ask) {
        out->node = d->leave_node;
        out->reason = route_reason_text(ROUTE_R_BALANCED);
        return;
    }
    out->node = c->link->pool->cluster_node;
    if (out->node != d->node || d->must_ask)
        out->reason = route_reason_text(sstate_tx_status(c) == 'I' ? ROUTE_R_STATE_UNKNOWN
                                        : c->plan->rs.tx_read_only ? ROUTE_R_READ_ONLY_TX
                                                                   : ROUTE_R_TX_PRIMARY);
}

void exchange_note_no_login(struct client *c, const struct link *link, const struct err *refusal)
{
    struct client_log_scope scope;
    struct buf detail = {0};
    struct buf hint = {0};
    bool is_due =
        session_tells_again(c->ss->shared, pool_user(c->pool), backend_wall_us(&c->ss->be));

    if (c->row != NULL) {
        shm_write_begin(&c->row->seq);
        c->row->lacks_login = 1;
        shm_write_end(&c->row->seq);
    }
    client_log_enter(&scope, c);
    if (refusal != NULL)
        buf_printf(&detail, "%s%c", refusal->msg, '\0');
    else
        buf_printf(&detail, "It asks for %s, and nothing that is known of the user answers that.%c",
            auth_server_text((enum auth_server)link->asks), '\0');
    buf_printf(&hint,
        "Let sr_check_user read pg_authid (see auth_learn_keys), let passwords be looked up "
        "(auth_user = '%s' will do where that role may read pg_authid), or add the user to "
        "pool_passwd. PGPOOL EXPLAIN and SHOW POOL_CLIENTS tell whom it concerns; the log tells of "
        "a user once an hour.%c",
        c->ss->conf->sr_check_user[0] == '\0' ? "..." : c->ss->conf->sr_check_user, '\0');
    log_caused_detail(is_due ? LVL_LOG : LVL_DEBUG1, detail.data, hint.data,
        "node %d %s user \"%s\"%s: reads of this session stay on node %d", link->pool->cluster_node,
        refusal != NULL ? "refuses" : "asks", c->pool->names,
        refusal != NULL ? "" : " for a password", c->pool->cluster_node);
    client_log_leave(&scope);
    buf_free(&detail);
    buf_free(&hint);
}

/* A read that does not get the standby that was chosen for it. */
static void explain_what_was_found(struct client *c, struct explained *out)
{
    int home = c->pool->cluster_node;
    bool lacks = c->plan->wait == PLAN_WAIT_OVER;
    int64_t until_us = sstate_is_avoided(c, out->node) ? c->sstate->avoid_until_us : 0;

    if (out->node == home || out->node == VIEW_NO_NODE || (!lacks && until_us == 0))
        return;
    out->node = home;
    out->reason = route_reason_text(until_us == INT64_MAX ? ROUTE_R_NO_LOGIN
                                    : lacks               ? ROUTE_R_CONSISTENCY
                                                          : ROUTE_R_LOST);
}

const struct sql_facts *exchange_explain_home(
    struct client *c, struct slice sql, struct explained *out)
{
    bool same_layout;

    out->reason = "load balancing is off, or there is one server only";
    c->ss->nfacts++;
    arena_reset(c->ss->scratch);
    return sql_cache_get(c->ss->sql_cache, c->ss->scratch, sql, &same_layout);
}

const struct sql_facts *exchange_explain_away(
    struct client *c, struct slice sql, struct explained *out)
{
    struct route_decision d;
    const struct sql_facts *facts = plan_decide(c, sql, &d);
    int home = d.node;
    struct plan_case in;

    plan_case_of(c, &in);
    out->node = plan_leave_node(&in, &d);
    if (out->node == VIEW_NO_NODE)
        out->node = home;
    out->class = route_class_text(d.class);
    out->reason = route_reason_text(out->node == home ? d.reason : ROUTE_R_BALANCED);
    explain_what_was_found(c, out);
    explain_present_link(c, &d, out);
    if (out->node != view_write_node(&c->ss->view))
        out->role = "standby";
    plan_undraw(c);
    plan_wait_settle(c);
    return facts;
}

bool client_explain_asks(struct client *c, struct slice sql)
{
    return c->kind->explain_asks(c, sql);
}

const struct sql_facts *client_explain(struct client *c, struct slice sql, struct explained *out)
{
    *out = (struct explained){.node = c->pool->cluster_node, .role = "primary", .class = "primary"};
    return c->kind->explain(c, sql, out);
}
