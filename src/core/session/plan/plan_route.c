/* SPDX-License-Identifier: PostgreSQL
 * plan_route.c: what the router has to know of what a client does: of statements that go where
 * writes go, and of the ends of transactions. Runs in: workers. */
#include "config.h"

#include "base/hot.h"

#include "sstate_int.h"

/* Behind it a transaction is open again: COMMIT AND CHAIN, or one of several statements. */
static bool commits_midway(const struct sql_facts *facts, uint32_t i)
{
    return facts->stmts[i].kind == SQL_COMMIT &&
           ((facts->stmts[i].flags & SQL_F_CHAIN) != 0 || facts->nstmts > 1);
}

static void note_discard(struct plan *b)
{
    route_tie(&b->rs, ROUTE_TIE_STATE | ROUTE_TIE_TEMP, false);
    route_trace_on_discard(b->rs.trace);
    plan_drop_doubts(b);
}

/* What the router has to know of a statement that is sent to where writes go. */
/* The statement is sent; NULL: one that could not be looked at. If it may change the schema, all
 * workers forget their answers now, and when its transaction is over. */
WARM static void note_schema(struct client *c, const struct sql_stmt *s)
{
    if (s != NULL && !route_changes_schema(s))
        return;
    c->plan->did_ddl = true;
    known_ddl(c->ss->known);
}

WARM void plan_route_note(struct client *c, struct slice sql)
{
    struct plan *b = c->plan;
    const struct sql_facts *facts;
    struct route_decision d;
    uint32_t i;

    if (c->link->pool->cluster_node != c->pool->cluster_node)
        return;
    facts = plan_decide_again(c, sql, &d);
    plan_note_write(c, &d);
    if (facts->nstmts == 1 && facts->stmts[0].kind == SQL_ROLLBACK &&
        facts->stmts[0].tx.op == SQL_TX_ROLLBACK && expect_is_quiet(&c->link->expect))
        b->end = PLAN_ROLLS_BACK;
    else if (b->end == PLAN_ROLLS_BACK)
        b->end = PLAN_END_NONE;
    if (facts->status != SQL_OK)
        note_schema(c, NULL);
    for (i = 0; i < facts->nstmts; i++) {
        route_trace_note(&b->rs.trace, c->ss->rules, sql, &facts->stmts[i], true);
        if (facts->stmts[i].tx.op == SQL_TX_ROLLBACK_TO)
            route_trace_on_rollback_to(b->rs.trace);
        b->rs.locked_in_tx = b->rs.locked_in_tx || route_locks_standbys(&facts->stmts[i]);
        plan_note_marks(c, &facts->stmts[i]);
        if (commits_midway(facts, i))
            b->end = PLAN_COMMITS_MIDWAY;
        plan_away_note_home(c, &facts->stmts[i]);
        note_schema(c, &facts->stmts[i]);
        if ((facts->stmts[i].flags & SQL_F_TEMP) != 0)
            route_tie(&b->rs, ROUTE_TIE_TEMP, true);
    }
    if (lent_keeps(c->sstate))
        plan_note_doubt(c, sql, &d); /* last: the facts are gone */
    else if (c->sstate->pins == 0)
        route_tie(&b->rs, ROUTE_TIE_STATE, false); /* what is not followed ties the session */
}

/* What others have to know of the transaction that is over. One that failed is not told from one
 * that was committed: that costs balance only. */
static void tell_others(struct client *c)
{
    struct plan *b = c->plan;

    if (b->end != PLAN_ROLLS_BACK && b->nmarks > 0)
        known_mark(c->ss->known, c->ss->conf, b->mark, b->nmarks, backend_wall_us(&c->ss->be));
    if (b->did_ddl)
        known_ddl(c->ss->known); /* now it can be seen */
}

WARM static void note_end(struct plan *b, bool commit)
{
    b->rs.tx_read_only = false;
    b->rs.wrote_in_tx = false;
    b->rs.locked_in_tx = false;
    route_tie(&b->rs, ROUTE_TIE_DOUBT, false);
    if (commit)
        route_trace_on_commit(b->rs.trace);
    else
        route_trace_on_rollback(b->rs.trace);
}

WARM static void settle(struct client *c)
{
    struct plan *b = c->plan;
    bool is_open = sstate_tx_status(c) != 'I';
    bool rolled_back = b->end == PLAN_ROLLS_BACK;

    b->tx_status = sstate_tx_status(c);
    if (!is_open || b->end == PLAN_COMMITS_MIDWAY)
        tell_others(c);
    if (!is_open || !rolled_back)
        b->end = PLAN_END_NONE;
    if (is_open)
        return; /* whether it was committed is not certain: it is all told again at the end */
    b->nmarks = 0;
    b->did_ddl = false;
    note_end(b, true);
    if (b->doubts != NULL && rolled_back)
        plan_drop_doubts(b);
    route_tie(&b->rs, ROUTE_TIE_DOUBT, b->doubts != NULL);
    b->rs.search_path_changed =
        varset_get(c->sstate->vars.client, slice_of_str("search_path")).p != NULL ||
        varset_get(c->sstate->vars.client, slice_of_str("role")).p != NULL;
    route_tie(&b->rs, ROUTE_TIE_SERIALIZABLE,
        route_says_serializable(
            varset_get(c->sstate->vars.client, slice_of_str("default_transaction_isolation"))));
}

static void note_unread(struct client *c, enum route_code code)
{
    struct route_session *rs = &c->plan->rs;
    struct route_decision d = {.is_write = !route_in_tx(rs) || !rs->tx_read_only,
        .writes_unnamed = true,
        .must_ask = true,
        .runs_code = code};

    plan_note_write(c, &d);
    plan_mark_all(c);
}

WARM void plan_routed(struct client *c, enum route_event event)
{
    struct plan *b = c->plan;

    switch (event) {
    case ROUTED_UNREAD:
    case ROUTED_CALL: /* which tables it writes nobody looks up */
        note_unread(c, ROUTE_CODE_NONE);
        break;
    case ROUTED_UNKNOWN:
        note_unread(c, ROUTE_CODE_NONE);
        note_schema(c, NULL);
        break;
    case ROUTED_CODE:
        note_unread(c, ROUTE_CODE_SETS);
        break;
    case ROUTED_SETTLED:
        settle(c);
        break;
    case ROUTED_REFUSED:
        plan_wait_settle(c);
        break;
    case ROUTED_CANCELED:
        plan_ask_reset(b);
        break;
    case ROUTED_DISCARD:
        note_discard(b);
        break;
    case ROUTED_VIRTUAL_END:
        b->tx_status = 'I';
        note_end(b, false);
        break;
    case ROUTED_COMMIT:
        note_end(b, true);
        break;
    }
}
