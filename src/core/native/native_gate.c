/* SPDX-License-Identifier: PostgreSQL
 * native_gate.c: backend_clustering_mode = snapshot_isolation: a transaction takes its snapshot on
 * all nodes that it may touch while nobody commits on several, and the other way round
 * (ipc/gate.h). Runs in: workers.
 *
 * The snapshot is taken by a question of ours, before the first statement that would take one;
 * whoever waits for a lock of the servers is outside of the gate. Must never: let a statement run
 * whose snapshots are of different moments, or in a transaction that takes one per statement. */
#include "config.h"

#include <string.h>

#include "base/log.h"
#include "config/conf.h"
#include "ipc/gate.h"
#include "ipc/proc.h"
#include "replicate/nature.h"
#include "wire/batch.h"
#include "wire/reader.h"
#include "wire/writer.h"

#include "native_int.h"

/* ---- waiting ---- */

/* Takes it from the list: it was let in, or gives up. */
static void wait_no_longer(struct native *n, bool gave_up)
{
    struct sessions *ss = n->ss;

    list_remove(&n->gate.node);
    ss->native_waiters->count[n->gate.waits]--;
    timer_stop(ss->loop, &n->timer);
    gate_count_wait(ss->env->shm, n->gate.waits, loop_now_us(ss->loop) - n->gate.since_us, gave_up);
    n->gate.waits = GATE_NONE;
    client_row_state(n->c, CLIENT_STATE_ACTIVE, WAIT_REASON_NONE);
}

/* Whoever shared memory does not count as waiting any more is inside. */
static void let_in(struct sessions *ss)
{
    struct native_waiters *w = native_waiters(ss);

    for (int side = 0; side < GATE_SIDES; side++) {
        while (
            w->count[side] > gate_waiting(ss->env->shm, ss->env->ordinal, (enum gate_side)side)) {
            struct native *n = LIST_ENTRY(list_first(&w->side[side]), struct native, gate.node);

            n->gate.inside = (enum gate_side)side;
            wait_no_longer(n, false);
            task_post(ss->loop, &n->gate.task);
        }
    }
}

static void on_wake(void *ctx, int ordinal)
{
    struct sessions *ss = ctx;
    const struct proc_env *env = ss->env;

    if (ordinal == env->ordinal)
        let_in(ss);
    else /* who has a full box looks when its time is up */
        (void)mailbox_post(
            env->boxes, env->first_worker_slot + ordinal, MAIL_GATE_OPEN, NULL, 0, -1);
}

static bool enter(struct native *n, enum gate_side side)
{
    struct sessions *ss = n->ss;
    struct native_waiters *w = native_waiters(ss);

    if (n->gate.inside == side)
        return true;
    let_in(ss);
    if (gate_enter(ss->env->shm, ss->env->ordinal, side)) {
        n->gate.inside = side;
        return true;
    }
    n->gate.waits = side;
    n->gate.since_us = loop_now_us(ss->loop);
    n->step = STEP_GATE;
    list_push_back(&w->side[side], &n->gate.node);
    w->count[side]++;
    client_row_held(n->c, side == GATE_COMMIT ? WAIT_REASON_COMMIT : WAIT_REASON_SNAPSHOT);
    timer_start(ss->loop, &n->timer, ss->conf->snapshot_wait_timeout_ms);
    return false;
}

static void leave_one(struct sessions *ss, enum gate_side side)
{
    gate_leave(ss->env->shm, ss->env->ordinal, side, on_wake, ss);
}

static void leave(struct native *n)
{
    enum gate_side side = n->gate.inside;

    n->gate.inside = GATE_NONE;
    if (side == GATE_NONE)
        return;
    if (n->gate.nkept > 0)
        gate_end_kept(n->ss->env->shm, n->ss->env->ordinal);
    n->gate.nkept = 0;
    leave_one(n->ss, side);
}

static void keep(struct native *n)
{
    gate_begin_kept(n->ss->env->shm, n->ss->env->ordinal);
    n->gate.nkept = 1;
}

static void leave_to_control(struct native *n)
{
    if (n->gate.nkept == 0) {
        leave(n);
        return;
    }
    gate_leave_to_control(n->ss->env->shm, n->ss->env->ordinal);
    n->gate.inside = GATE_NONE;
    n->gate.nkept = 0;
}

/* The session waits no longer; false: it is inside by now, and goes on. It is off the list before
 * others are told, who are counted by that. */
static bool give_up(struct native *n)
{
    struct sessions *ss = n->ss;
    enum gate_side side;

    let_in(ss);
    side = n->gate.waits;
    if (side == GATE_NONE)
        return false;
    wait_no_longer(n, true);
    if (gate_give_up(ss->env->shm, ss->env->ordinal, side, on_wake, ss))
        return true;
    n->gate.inside = side;
    task_post(ss->loop, &n->gate.task);
    return false;
}

static void fail_with(struct native *n, const struct err *err)
{
    wire_put_err(&n->held, err);
    n->gate.fail(n);
}

static void on_timer(struct native *n)
{
    enum gate_side side = n->gate.waits;
    struct err err;

    if (!give_up(n))
        return;
    err_clear(&err);
    err_set(&err, "55P03", "%s",
        side == GATE_COMMIT ? "transactions that take snapshots have kept this one from its COMMIT"
                            : "transactions that commit have kept this one from its snapshot");
    err_hint(&err, "Nothing of it is committed: do it again. A server that hangs keeps all others "
                   "waiting: see SHOW POOL_NODES; the limit is snapshot_wait_timeout.");
    CLIENT_LOG(n->c, LVL_WARNING, "%s", err.msg);
    fail_with(n, &err);
}

static bool cancel(struct native *n)
{
    struct err err;

    if (!give_up(n))
        return false;
    err_clear(&err);
    err_set(&err, "57014", "canceling statement due to user request");
    fail_with(n, &err);
    return true;
}

/* The session's client is gone. */
static void quit(struct native *n)
{
    if (n->gate.waits != GATE_NONE)
        (void)give_up(n);
    task_cancel(&n->gate.task);
    leave_to_control(n);
}

/* ---- snapshots ---- */

static uint32_t legs_without(struct native *n, uint32_t legs)
{
    uint32_t lack = 0;

    for (unsigned i = 0; i < n->nlegs; i++) {
        const struct native_leg *leg = &n->leg[i];

        if (!native_is_up(leg) || leg->link->tx_status == 'I')
            n->gate.has &= ~(1U << i);
        if (native_is_up(leg) && (legs >> i & 1) != 0 && (n->gate.has >> i & 1) == 0)
            lack |= 1U << i;
    }
    return lack;
}

static void take(struct native *n)
{
    native_round(n, STEP_SNAPSHOT, true, -1);
    for (unsigned i = 0; i < n->nlegs; i++) {
        struct native_leg *leg = &n->leg[i];
        struct buf sql = {0};

        if ((n->gate.legs >> i & 1) == 0 || !native_is_up(leg))
            continue;
        buf_printf(&sql, "%sSELECT pg_catalog.current_setting('transaction_isolation'), %d",
            n->wrapped && !leg->begun ? "BEGIN;" : "", leg->node);
        leg->begun = leg->begun || n->wrapped;
        native_ask(n, leg, buf_slice(&sql));
        buf_free(&sql);
    }
    native_wait(n);
}

/* A snapshot that holds for one statement alone is none. */
static bool are_kept(struct native *n, struct err *err)
{
    static const char level[] = "repeatable read";
    struct slice value[2]; /* the level, the node */
    uint32_t at = 0;

    while (native_next_row(n, &at, value, 2)) {
        if (slice_eq(value[0], slice_of(level, sizeof level - 1)))
            continue;
        err_set(err, "55000",
            "snapshot_isolation needs transactions that are repeatable read: on node %.*s this one "
            "is %.*s",
            (int)value[1].n, value[1].p, (int)value[0].n, value[0].p);
        err_hint(err, "Set default_transaction_isolation = 'repeatable read' on all servers, and "
                      "name no other level.");
        return false;
    }
    return true;
}

/* What made it fail; false: nothing did. */
static bool has_failed(struct native *n, struct err *err)
{
    for (unsigned i = 0; i < n->nlegs; i++) {
        struct native_leg *leg = &n->leg[i];

        if ((n->gate.legs >> i & 1) == 0)
            continue;
        if (leg->is_lost || !native_is_up(leg)) {
            native_set_lost(err);
            return true;
        }
        if (leg->kind != 'E')
            continue;
        if (leg->link->tx_status == 'E' && !n->wrapped)
            n->failed = (int)i;
        buf_put(&n->held, leg->error.data, leg->error.len);
        return true;
    }
    return !are_kept(n, err);
}

static void taken(struct native *n)
{
    struct err err;

    leave(n);
    err_clear(&err);
    if (!has_failed(n, &err)) {
        n->gate.has |= n->gate.legs;
        n->gate.go_on(n);
        return;
    }
    if (err.sqlstate[0] != '\0')
        wire_put_err(&n->held, &err);
    native_fail(n);
}

static bool snapshot(struct native *n, uint32_t legs, void (*go_on)(struct native *n))
{
    n->gate.legs = legs_without(n, legs);
    if (n->gate.legs == 0)
        return true;
    n->gate.go_on = go_on;
    n->gate.fail = native_fail;
    if (enter(n, GATE_SNAPSHOT))
        take(n);
    return false;
}

/* ---- which statements take one ---- */

static bool text_takes_none(struct native *n, struct slice sql)
{
    struct sql_facts facts;

    native_parse(n, sql, &facts);
    return facts.status == SQL_OK && (facts.nstmts == 0 || repl_takes_no_snapshot(&facts.stmts[0]));
}

static bool batch_takes_none(struct native *n)
{
    const char *p = n->in.data;
    const char *end = p + n->scanned;
    const struct native_change *st;
    struct batch_msg m;

    while (batch_next(&p, end, &m)) {
        if (m.is_bad)
            continue;
        if (m.type == FE_DESCRIBE && m.what == 'S')
            return false;
        if (m.type == FE_PARSE && !text_takes_none(n, m.sql))
            return false;
        if (m.type == FE_BIND && (st = native_prepared_find(n, m.name)) != NULL &&
            !text_takes_none(n, st->sql))
            return false;
    }
    return true;
}

static bool exchange_takes_none(struct native *n)
{
    if (n->ex.is_call)
        return n->at > 0;
    if (n->ex.is_batch)
        return n->at > 0 || batch_takes_none(n);
    if (n->facts.nstmts == 0)
        return n->at > 0;
    return n->at == n->facts.nstmts || repl_takes_no_snapshot(&n->facts.stmts[n->at]);
}

/* In the client's own transaction: before anything of the statement is asked. */
static bool may_begin(struct native *n)
{
    return n->wrapped || n->failed >= 0 || native_tx(n) != 'T' ||
           legs_without(n, UINT32_MAX) == 0 || exchange_takes_none(n) ||
           snapshot(n, UINT32_MAX, native_next);
}

/* ---- commits ---- */

static bool commit(
    struct native *n, void (*go_on)(struct native *n), void (*fail)(struct native *n))
{
    n->gate.go_on = go_on;
    n->gate.fail = fail;
    return enter(n, GATE_COMMIT);
}

static void on_let_in(struct task *t)
{
    struct native *n = LIST_ENTRY(t, struct native, gate.task);
    struct err err;

    if (n->gate.inside == GATE_SNAPSHOT) {
        take(n);
        return;
    }
    for (unsigned i = 0; i < n->nlegs; i++) {
        if ((n->commit.owed >> i & 1) == 0 || native_is_up(&n->leg[i]))
            continue;
        native_set_lost(&err);
        fail_with(n, &err);
        return;
    }
    n->gate.go_on(n);
}

static void init(struct native *n)
{
    n->gate.waits = GATE_NONE;
    n->gate.inside = GATE_NONE;
    task_init(&n->gate.task, on_let_in);
}

static void join(struct sessions *ss)
{
    gate_join(ss->env->shm, ss->env->ordinal, GATE_COMMIT);
}

const struct native_gate_ops native_gate_ops = {
    .init = init,
    .may_begin = may_begin,
    .snapshot = snapshot,
    .taken = taken,
    .commit = commit,
    .keep = keep,
    .leave_to_control = leave_to_control,
    .leave = leave,
    .on_timer = on_timer,
    .cancel = cancel,
    .quit = quit,
    .join = join,
    .leave_one = leave_one,
    .opened = let_in,
};
