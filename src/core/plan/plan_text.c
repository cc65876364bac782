/* SPDX-License-Identifier: PostgreSQL
 * plan_text.c: what is made of what the router says of one text. Runs in: workers. Must never: let
 * go of a statement that may write, or of a read that would be answered otherwise within its
 * transaction. */
#include "config.h"

#include "base/hot.h"
#include "config/conf.h"

#include "plan_core_int.h"

bool plan_keeps_reads(const struct conf *conf, const struct route_session *s, bool lsn_due)
{
    /* What it may have locked a standby waits for, too, until it ends. */
    if (s->locked_in_tx || (s->ties & ROUTE_TIE_DOUBT) != 0 ||
        conf->read_consistency == CONF_READ_GLOBAL)
        return true;
    if (conf->read_consistency == CONF_READ_SESSION && (s->wrote_in_tx || lsn_due))
        return true;
    switch (conf->disable_load_balance_on_write) {
    case CONF_WRITE_ALWAYS:
        return s->wrote != ROUTE_WROTE_NOTHING;
    case CONF_WRITE_TRANSACTION:
    case CONF_WRITE_TRANS_TRANSACTION:
        return s->wrote_in_tx;
    case CONF_WRITE_OFF:
    case CONF_WRITE_DML_ADAPTIVE:
    case CONF_WRITE_DML_ADAPTIVE_GLOBAL:
        break;
    }
    return false;
}

static bool is_avoided(const struct plan_case *in, int node)
{
    return in->avoid_node != VIEW_NO_NODE && node == in->avoid_node;
}

WARM void plan_choice_init(const struct plan_case *in, struct plan_choice *out)
{
    out->verdict = PLAN_GO;
    out->asks = PLAN_ASKS_CATALOGUE;
    out->snapshot = in->snapshot;
    out->node = in->tx == PLAN_TX_ASIDE ? in->home_node : in->write_node;
    out->retry = in->may_replan && in->tx != PLAN_TX_LOST ? PLAN_RETRY_REPLAN : 0;
    out->way = PLAN_STAYS;
    out->is_cut = false;
    out->kept = 0;
    out->facts = NULL;
}

static void ask(struct plan_choice *out, enum plan_asks what, int node)
{
    out->verdict = node == VIEW_NO_NODE ? PLAN_WAIT : PLAN_ASK;
    out->asks = what;
    out->node = node;
}

/* May a read be made again that names what may be a view? The primary knows. */
static void ask_kept(const struct plan_case *in, struct plan_choice *out)
{
    if (in->write_node == VIEW_NO_NODE || view_must_hold_writes(in->view))
        out->verdict = PLAN_WAIT;
    else
        ask(out, PLAN_ASKS_KEPT, in->write_node);
}

bool plan_is_settled(const struct plan_case *in, struct plan_choice *out)
{
    if (in->asking == PLAN_ASK_KEPT) {
        ask_kept(in, out);
        return true;
    }
    if (in->tx != PLAN_TX_ASIDE || in->home_node == in->own_node)
        return false;
    plan_take_read(in, in->write_node, true, out);
    out->retry = 0; /* at home it can only fail */
    return true;
}

/* The node that is asked about the catalogue: as relcache_query_target says, or the one that takes
 * writes; in a transaction that has its link another link of that server. */
static int ask_node(const struct plan_case *in, const struct route_decision *d)
{
    if (in->tx == PLAN_TX_ASIDE)
        return in->home_node;
    if (!conf_has_node(in->conf, d->ask_node) || is_avoided(in, d->ask_node))
        return in->write_node;
    return d->ask_node;
}

/* What keeps a read in a transaction that has its link is only that something is not known yet: of
 * what it names, or the isolation level of who says none. */
static bool may_ask(const struct plan_case *in, const struct route_decision *d)
{
    if (in->asking == PLAN_ASK_FAILED || in->tx == PLAN_TX_LOST)
        return false;
    return in->tx != PLAN_TX_ASIDE ||
           (in->leave == PLAN_LEAVE_ASK &&
               (d->reason == ROUTE_R_ASK || d->reason == ROUTE_R_TX_PRIMARY));
}

/* dml_adaptive_global: the tables that the statement writes to have to be known by number. */
static void ask_of_tables(
    const struct plan_case *in, const struct sql_stmt *s, struct route_decision *d)
{
    uint32_t bits;
    uint32_t i;

    for (i = 0; i < s->ntables && d->nquestions < ROUTE_MAX_QUESTIONS; i++) {
        struct route_question q = {
            .kind = ROUTE_Q_OID, .schema = s->tables[i].schema, .name = s->tables[i].name};

        if ((s->tables[i].flags & SQL_TABLE_TARGET) != 0 && in->lookup(in->ctx, &q, &bits) == -1)
            d->question[d->nquestions++] = q;
    }
}

static bool lacks_numbers(
    const struct plan_case *in, const struct sql_facts *facts, struct route_decision *d)
{
    uint32_t i;

    if (in->conf->disable_load_balance_on_write != CONF_WRITE_DML_ADAPTIVE_GLOBAL ||
        in->lookup == NULL || in->tx == PLAN_TX_ASIDE || in->asking == PLAN_ASK_FAILED)
        return false;
    d->nquestions = 0;
    for (i = 0; i < facts->nstmts; i++)
        ask_of_tables(in, &facts->stmts[i], d);
    if (d->nquestions == 0)
        return false;
    d->must_ask = true;
    d->ask_node = VIEW_NO_NODE;
    return true;
}

WARM bool plan_judge_text(const struct plan_case *in, struct slice sql, struct plan_choice *out)
{
    struct route_decision *d = &out->route;

    out->facts = in->judge(in->ctx, sql, d);
    if ((d->must_ask && may_ask(in, d)) || (!d->must_ask && lacks_numbers(in, out->facts, d))) {
        ask(out, PLAN_ASKS_CATALOGUE, ask_node(in, d));
        return false;
    }
    out->asks = d->must_ask && in->tx == PLAN_TX_ASIDE ? PLAN_ASKS_LATER : PLAN_ASKS_CATALOGUE;
    return true;
}

WARM int plan_leave_node(const struct plan_case *in, const struct route_decision *d)
{
    if (!plan_tx_is_open(in) || in->leave == PLAN_LEAVE_NO || !d->may_leave_tx || d->must_ask ||
        (in->tx == PLAN_TX_ASIDE && d->must_wait))
        return VIEW_NO_NODE;
    return d->leave_node;
}

WARM bool plan_leaves(const struct plan_case *in, struct plan_choice *out)
{
    int node = plan_leave_node(in, &out->route);

    if (node == VIEW_NO_NODE)
        return false;
    out->route.node = node;
    return true;
}

/* A read, or what begins a transaction that only reads: the router names the primary for all else.
 */
WARM static bool is_decided_read(const struct plan_case *in, const struct route_decision *d)
{
    return !d->must_ask && in->wal != PLAN_WAL_IS_OVER && conf_has_node(in->conf, d->node) &&
           (d->class == ROUTE_EITHER || (d->class != ROUTE_PRIMARY && d->node != in->own_node));
}

WARM bool plan_may_go_there(const struct plan_case *in, const struct route_decision *d)
{
    return is_decided_read(in, d) && !d->must_wait;
}

/* While there is no primary a standby stands in for it, which may lack what the session wrote. */
static bool stand_in_lacks(const struct plan_case *in, int node)
{
    return in->view->primary != node && view_must_hold_writes(in->view) &&
           in->conf->read_consistency != CONF_READ_EVENTUAL &&
           (in->wal == PLAN_WAL_DUE || in->replayed_lsn[node] < in->session->last_write_lsn);
}

/* The standby has to know enough. */
static void ask_how_far(
    const struct plan_case *in, const struct route_decision *d, struct plan_choice *out)
{
    if (in->wal != PLAN_WAL_DUE)
        ask(out, PLAN_ASKS_REPLAYED, d->node);
    else if (in->write_node == VIEW_NO_NODE || view_must_hold_writes(in->view))
        out->verdict = PLAN_WAIT;
    else
        ask(out, PLAN_ASKS_WRITTEN, in->write_node);
}

WARM bool plan_sees_enough(const struct plan_case *in, struct plan_choice *out)
{
    const struct route_decision *d = &out->route;
    int primary = in->write_node;
    bool is_avoided_now = is_avoided(in, d->node);

    if (in->tx == PLAN_TX_ASIDE || !is_decided_read(in, d))
        return true; /* what had to be asked would not leave */
    if ((d->node == primary || is_avoided_now) && primary != VIEW_NO_NODE) {
        if (stand_in_lacks(in, primary))
            out->verdict = PLAN_WAIT;
    } else if (!is_avoided_now && (in->wal == PLAN_WAL_DUE || d->must_wait)) {
        ask_how_far(in, d, out);
    }
    return out->verdict == PLAN_GO;
}

/* In a transaction a read has left it, or the transaction begins with it: one that may write, where
 * writes go, also while there is no primary and something else stands in for it. */
WARM void plan_take_read(const struct plan_case *in, int to, bool is_out, struct plan_choice *out)
{
    uint8_t retry = out->retry & ~PLAN_RETRY_READ & 0xffU;

    out->retry = retry;
    if (!is_out && in->tx == PLAN_TX_VIRTUAL && !in->session->tx_read_only &&
        view_must_hold_writes(in->view))
        return;
    if (is_avoided(in, to))
        is_out = false;
    else
        out->node = to;
    out->way = is_out ? PLAN_LEAVES : PLAN_READS;
    if (is_out || !plan_tx_is_open(in))
        out->retry = retry | PLAN_RETRY_READ;
}

void plan_note_left(const struct sql_facts *facts, struct plan_choice *out)
{
    if (out->snapshot == PLAN_SNAPSHOT_NONE && route_takes_snapshot(facts))
        out->snapshot = PLAN_SNAPSHOT_READ;
}

/* Whether the transaction has read matters to what follows in it. */
static bool ends_transaction(const struct sql_facts *facts)
{
    return facts->nstmts == 1 &&
           (facts->stmts->tx.op == SQL_TX_COMMIT || facts->stmts->tx.op == SQL_TX_ROLLBACK);
}

WARM void plan_note_stays(
    const struct plan_case *in, const struct sql_facts *facts, struct plan_choice *out)
{
    if (!plan_tx_is_open(in) || out->snapshot != PLAN_SNAPSHOT_READ)
        return;
    out->snapshot = route_takes_snapshot(facts) || ends_transaction(facts) ? PLAN_SNAPSHOT_NONE
                                                                           : PLAN_SNAPSHOT_DUE;
}
