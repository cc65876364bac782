/* SPDX-License-Identifier: PostgreSQL
 * native_commit.c: replication_commit = two_phase: a transaction that wrote is prepared on the main
 * node, then on the others; the decision to commit it is written to disk; then it is committed on
 * all of them. Runs in: workers.
 *
 * What is prepared and not decided is rolled back, here or by the control process when this worker
 * has gone; what is decided is committed, here or there. Must never: tell a client of a commit that
 * is not decided, nor roll back what is. */
#include "config.h"

#include <string.h>

#include "base/log.h"
#include "config/conf.h"
#include "config/conf_param.h"
#include "wire/writer.h"

#include "native_int.h"

static const char prepare_tag[] = "PREPARE TRANSACTION";

static bool is_two_phase(const struct native *n)
{
    return client_conf(n->c)->replication_commit == CONF_COMMIT_TWO_PHASE;
}

/* Gives the transaction its name; false: it cannot have one, and the exchange has failed. */
static bool name_it(struct native *n)
{
    struct err err = {0};

    if (native_decision_begin(n, &err) != NULL)
        return true;
    native_refuse(n, "58030", "the transaction cannot be prepared on all nodes: %s", err.msg);
    return false;
}

static void tell_all(struct native *n, struct native_leg *leg, const char *what)
{
    struct buf sql = {0};

    buf_printf(&sql, "%s '%s'", what, native_decision_name(n));
    native_ask(n, leg, buf_slice(&sql));
    buf_free(&sql);
}

/* ---- the client's COMMIT ---- */

static enum native_verdict choose(struct native *n, const struct sql_stmt *s, bool is_alone)
{
    if (s == NULL || s->tx.op != SQL_TX_COMMIT || n->failed >= 0 || !n->commit.wrote ||
        native_tx(n) != 'T' || !is_two_phase(n))
        return NATIVE_GO;
    if (!is_alone || (s->flags & SQL_F_CHAIN) != 0) {
        native_refuse(n, "0A000",
            is_alone ? "COMMIT AND CHAIN is not supported with replication_commit = two_phase"
                     : "COMMIT that is bound together with another statement and executed behind "
                       "that is not supported with replication_commit = two_phase");
        return NATIVE_REFUSED;
    }
    if (!name_it(n))
        return NATIVE_REFUSED;
    n->commit.is_clients = true;
    return NATIVE_GO;
}

static void put(const struct native *n, struct buf *sql)
{
    buf_printf(sql, "%s '%s'", prepare_tag, native_decision_name(n));
}

static bool is_tag(const struct native *n, struct slice body)
{
    return n->commit.is_clients && slice_eq(body, slice_of(prepare_tag, sizeof prepare_tag));
}

/* ---- our transaction around a statement ---- */

static bool wrapped(struct native *n)
{
    if (!n->commit.wrote || !is_two_phase(n))
        return false;
    if (!name_it(n))
        return true;
    native_round(n, STEP_PREPARE, true, -1);
    n->leg[n->main].begun = false;
    tell_all(n, &n->leg[n->main], prepare_tag);
    return true;
}

static void main_prepared(struct native *n)
{
    struct native_leg *leg = &n->leg[n->main];

    if (leg->kind == 'E') {
        native_decision_end(n, true);
        buf_put(&n->held, leg->error.data, leg->error.len);
        native_fail(n);
        return;
    }
    native_commit_step(n, 1);
    native_round(n, STEP_PREPARE_OTHERS, true, -1);
    for (unsigned i = 0; i < n->nlegs; i++) {
        if (i == n->main || !native_is_up(&n->leg[i]) || !n->leg[i].begun)
            continue;
        n->leg[i].begun = false;
        tell_all(n, &n->leg[i], prepare_tag);
    }
    native_wait(n);
}

/* ---- all have answered ---- */

static void commit_failed(struct native *n, const struct native_leg *leg)
{
    struct err err;

    buf_clear(&n->held);
    if (leg != NULL && !leg->is_lost && leg->error.len > 0) {
        buf_put(&n->held, leg->error.data, leg->error.len);
        return;
    }
    native_set_lost(&err);
    wire_put_err(&n->held, &err);
}

static void unprepare(struct native *n)
{
    n->ex.failing = true;
    native_round(n, STEP_UNPREPARE, true, -1);
    for (unsigned i = 0; i < n->nlegs; i++) {
        if ((n->commit.prepared >> i & 1) != 0 && native_is_up(&n->leg[i]))
            tell_all(n, &n->leg[i], "ROLLBACK PREPARED");
    }
    native_wait(n);
}

static void decided(struct native *n, const struct err *err, bool is_unknown)
{
    if (is_unknown) {
        native_decision_end(n, false);
        client_end_text(
            n->c, "08007", "whether the transaction is committed is not known: %s", err->msg);
        return;
    }
    if (err != NULL) {
        buf_clear(&n->held);
        wire_put_err(&n->held, err);
        unprepare(n);
        return;
    }
    native_commit_step(n, 3);
    native_flight_begin(n);
    native_tell_schema(n);
    native_round(n, STEP_COMMIT, true, -1);
    for (unsigned i = 0; i < n->nlegs; i++) {
        if ((n->commit.prepared >> i & 1) != 0 && native_is_up(&n->leg[i]))
            tell_all(n, &n->leg[i], "COMMIT PREPARED");
    }
    native_commit_step(n, 4);
    native_wait(n);
}

static void decide(struct native *n)
{
    uint64_t nodes = 0;

    for (unsigned i = 0; i < n->nlegs; i++) {
        if ((n->commit.prepared >> i & 1) != 0)
            nodes |= UINT64_C(1) << n->leg[i].node;
    }
    n->step = STEP_DECIDE;
    if (n->gate.ops != NULL)
        n->gate.ops->keep(n);
    native_decide(n, nodes, decided);
}

static void prepared(struct native *n)
{
    const struct native_leg *bad = NULL;

    n->commit.prepared = 1U << n->main;
    for (unsigned i = 0; i < n->nlegs; i++) {
        const struct native_leg *leg = &n->leg[i];

        n->commit.is_lost = n->commit.is_lost || (leg->did && leg->is_lost);
        if (i == n->main)
            continue;
        if (leg->did ? leg->kind != 'C' || leg->is_lost : (n->gone >> i & 1) != 0)
            bad = leg;
        else if (leg->did)
            n->commit.prepared |= 1U << i;
    }
    native_commit_step(n, 2);
    if (bad != NULL) {
        CLIENT_LOG(n->c, LVL_LOG, "node %d could not prepare transaction %s: %.*s", bad->node,
            native_decision_name(n), (int)bad->said.len, bad->said.len > 0 ? bad->said.data : "");
        commit_failed(n, bad);
        unprepare(n);
        return;
    }
    if (n->gate.ops == NULL || n->gate.ops->commit(n, decide, unprepare))
        decide(n);
}

/* The node has done what it was told, or somebody else has told it before. */
static bool has_ended(const struct native_leg *leg)
{
    static const char gone[] = "42704";

    if (!leg->did || leg->is_lost)
        return false;
    return leg->kind == 'C' ||
           (leg->said.len >= sizeof gone - 1 && memcmp(leg->said.data, gone, sizeof gone - 1) == 0);
}

static bool is_everywhere(const struct native *n)
{
    for (unsigned i = 0; i < n->nlegs; i++) {
        if ((n->commit.prepared >> i & 1) != 0 && !has_ended(&n->leg[i]))
            return false;
    }
    return !n->commit.is_lost;
}

static void committed(struct native *n)
{
    bool all = is_everywhere(n);
    bool is_clients = n->commit.is_clients;

    native_commit_step(n, 5);
    if (!all)
        CLIENT_LOG(n->c, LVL_WARNING,
            "transaction %s is decided and not committed on all nodes yet: see SHOW POOL_IN_DOUBT",
            native_decision_name(n));
    if (!all && n->gate.ops != NULL)
        n->gate.ops->leave_to_control(n);
    native_decision_end(n, all);
    n->wrapped = false;
    n->failed = -1;
    if (is_clients)
        native_next_statement(n);
    else
        native_finish(n);
}

static void undone(struct native *n)
{
    native_decision_end(n, is_everywhere(n));
    n->wrapped = false;
    n->failed = -1;
    native_finish(n);
}

static void leave(struct native *n)
{
    if (n->commit.decision != NULL)
        native_decision_end(n, false);
    else
        native_leave_behind(n);
}

static void main_answered(struct native *n)
{
    if (n->leg[n->main].kind == 'C')
        native_commit_step(n, 1);
    else
        native_decision_end(n, true); /* it could not prepare it, and has rolled back */
}

const struct native_commit_ops native_commit_ops = {
    .choose = choose,
    .put = put,
    .is_tag = is_tag,
    .main_answered = main_answered,
    .wrapped = wrapped,
    .main_prepared = main_prepared,
    .prepared = prepared,
    .committed = committed,
    .undone = undone,
    .leave = leave,
};
