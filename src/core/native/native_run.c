/* SPDX-License-Identifier: PostgreSQL
 * native_run.c: the steps of an exchange of native replication. Runs in: workers.
 *
 * The main node first, then the others; what it did is undone on all when one cannot do it. Must
 * never: tell the client of something done that the main node has not done. */
#include "config.h"

#include <string.h>

#include "base/arena.h"
#include "base/log.h"
#include "base/mem.h"
#include "config/conf.h"
#include "replicate/locks.h"
#include "wire/message.h"
#include "wire/writer.h"

#include "native_int.h"

static struct native_leg *main_leg(struct native *n)
{
    return &n->leg[n->main];
}

/* The node that is asked first: the one on which the transaction failed says so itself. */
static unsigned first_leg(const struct native *n)
{
    return n->failed >= 0 ? (unsigned)n->failed : n->main;
}

static const struct sql_stmt *statement(const struct native *n)
{
    return n->ex.is_batch || n->facts.nstmts == 0 ? NULL : &n->facts.stmts[n->at];
}

static bool is_copy(const struct native *n)
{
    const struct sql_stmt *s = statement(n);

    return s != NULL && s->kind == SQL_COPY_FROM;
}

/* ---- the end ---- */

static void undo(struct native *n)
{
    native_round(n, STEP_UNDO, true, -1);
    for (unsigned i = 0; i < n->nlegs; i++) {
        if (native_is_up(&n->leg[i]) && n->leg[i].begun && n->leg[i].link->tx_status != 'I')
            native_ask(n, &n->leg[i], slice_of_str("ROLLBACK"));
        n->leg[i].begun = false;
    }
    n->wrapped = false;
    native_wait(n);
}

/* The client's transaction has to fail wherever it has not: what has failed holds no locks. */
static void spoil(struct native *n)
{
    native_round(n, STEP_SPOIL, true, -1);
    native_put_query(n, slice_of_str("SELECT pg_catalog.refused_by_pgpool()"));
    if (n->failed < 0)
        native_send(n, main_leg(n), false);
    for (struct native_leg *leg = n->leg; leg < n->leg + n->nlegs; leg++) {
        if (native_is_up(leg) && !leg->is_asked && leg->link->tx_status == 'T')
            native_ask(n, leg, slice_of_str("SELECT pg_catalog.failed_on_another_node()"));
    }
    native_wait(n);
}

void native_fail(struct native *n)
{
    n->ex.failing = true;
    if (n->wrapped)
        undo(n);
    else if (native_tx(n) != 'I')
        spoil(n);
    else
        native_finish(n);
}

/* A node has said an error: the client is told, and the transaction has failed there. */
static void fail_of(struct native *n, struct native_leg *leg)
{
    if (n->speaker != (int)(leg - n->leg) || n->ex.ours)
        buf_put(&n->held, leg->error.data, leg->error.len);
    if (leg->link != NULL && leg->link->tx_status == 'E' && !n->wrapped)
        n->failed = (int)(leg - n->leg);
    native_fail(n);
}

static void fail_with(struct native *n, const char *sqlstate, const char *text, const char *hint)
{
    struct err err;

    err_clear(&err);
    err_set(&err, sqlstate, "%s", text);
    if (hint != NULL)
        err_hint(&err, "%s", hint);
    wire_put_err(&n->held, &err);
    native_fail(n);
}

/* The main node is about to commit: who has to do it, too. False: it waits, and go_on is called;
 * or `fail`, with the error in n->held. */
static bool may_commit(
    struct native *n, void (*go_on)(struct native *n), void (*fail)(struct native *n))
{
    if (!native_owe(n, fail))
        return false;
    if (n->commit.wrote)
        native_flight_begin(n);
    return n->gate.ops == NULL || !n->commit.wrote || n->gate.ops->commit(n, go_on, fail);
}

static void commit_wrapped(struct native *n)
{
    native_tell_schema(n);
    native_round(n, STEP_FIRST_END, true, -1);
    native_ask(n, main_leg(n), slice_of_str("COMMIT"));
    main_leg(n)->begun = false;
}

/* COMMIT of our transaction. */
static void end_wrapped(struct native *n)
{
    if (n->gate.ops != NULL && !n->commit.wrote && !n->place.everywhere)
        native_end_all(n, STEP_READ_ENDS, "COMMIT");
    else if (!n->commit.ops->wrapped(n) && may_commit(n, commit_wrapped, native_fail))
        commit_wrapped(n);
}

/* All of the exchange has run. */
static void end(struct native *n)
{
    if (n->wrapped && n->ex.ends_in_sync)
        end_wrapped(n);
    else
        native_finish(n);
}

/* The client's COMMIT could not begin. */
static void roll_back(struct native *n)
{
    n->ex.failing = true;
    native_end_all(n, STEP_UNDO, "ROLLBACK");
}

static void end_others(struct native *n)
{
    native_round(n, STEP_OTHER_ENDS, true, -1);
    for (unsigned i = 0; i < n->nlegs; i++) {
        if (i != n->main && native_is_up(&n->leg[i]) && n->leg[i].begun) {
            native_ask(n, &n->leg[i], slice_of_str("COMMIT"));
            n->leg[i].begun = false;
        }
    }
    native_wait(n);
}

/* ---- sending ---- */

static void run_on_one(struct native *n)
{
    int one = native_one_leg(n);

    native_round(n, STEP_ONE, false, one);
    n->ex.streams = n->ex.is_batch || n->facts.nstmts <= 1;
    if (n->ex.is_batch) {
        n->portal = one;
        n->unnamed = n->unnamed == NATIVE_HERE ? one : n->unnamed;
    }
    count_statement(n->ss, n->leg[one].node, COUNT_SELECT);
    native_put_statement(n, statement(n));
    native_send(n, &n->leg[one], n->wrapped);
}

static void run_on_main(struct native *n)
{
    unsigned first = first_leg(n);

    if (n->ex.is_commit && !n->commit.is_clients)
        native_tell_schema(n);
    native_round(n, STEP_MAIN, false, (int)first);
    native_put_statement(n, statement(n));
    native_send(n, &n->leg[first], n->wrapped);
}

/* The transaction failed on one node, or could not be committed: COMMIT is a ROLLBACK there. */
static bool has_rolled_back(struct native *n)
{
    return n->ex.is_commit && (n->failed >= 0 || n->leg[first_leg(n)].kind == 'E');
}

static void run_on_others(struct native *n)
{
    unsigned first = first_leg(n);
    bool rolls_back = has_rolled_back(n);

    if (!native_fence(n, run_on_others))
        return;
    native_round(n, STEP_OTHERS, false, (int)first);
    if (rolls_back)
        native_put_query(n, slice_of_str("ROLLBACK"));
    for (unsigned i = 0; i < n->nlegs; i++) {
        if (i == first || !native_is_up(&n->leg[i]) || native_begin_skips(n, i))
            continue;
        native_send(n, &n->leg[i], n->wrapped);
    }
    n->guards->begins(n);
    native_wait(n);
}

/* What the main node is asked before: its time, and the lock of a table. */
static bool ask_values(struct native *n)
{
    const struct sql_stmt *s = statement(n);
    bool ahead;
    struct buf sql = {0};

    if (n->values != NULL || (s == NULL && !n->ex.is_call))
        return false;
    native_values_sql(n, s, &sql);
    if (sql.len == 0)
        return false;
    n->values = arena_alloc_zero(n->arena, (n->plan.nasks + 1) * sizeof *n->values);
    ahead = native_goes_ahead(n, s);
    native_round(n, ahead ? STEP_MAIN : STEP_VALUES, !ahead, ahead ? (int)n->main : -1);
    native_put_query(n, buf_slice(&sql));
    if (ahead) {
        wire_put_query(&n->out, slice_of(n->text.p + s->offset, s->len));
        buf_put_byte(&n->ops, OP_QUERY);
    }
    native_send(n, main_leg(n), n->wrapped);
    if (ahead)
        main_leg(n)->glue = GLUE_VALUES;
    buf_free(&sql);
    return true;
}

void native_values_came(struct native *n)
{
    native_numbers_take_values(n);
    native_put_statement(n, statement(n));
}

static void run(struct native *n);

/* Snapshot isolation: what is not in the client's transaction has its snapshot on all nodes that
 * it may touch. False: it is being taken, and `run` comes again. */
static bool has_snapshot(struct native *n)
{
    uint32_t legs = UINT32_MAX;

    if (n->gate.ops == NULL || n->failed >= 0)
        return true;
    if (!n->place.everywhere && n->place.reads && native_is_outside(n)) {
        n->wrapped = true;
        if (n->ex.is_batch || n->facts.nstmts == 1)
            legs = 1U << native_one_leg(n);
    }
    return !n->wrapped || n->gate.ops->snapshot(n, legs, run);
}

static void run(struct native *n)
{
    if (!n->place.everywhere) {
        if (has_snapshot(n))
            run_on_one(n);
        return;
    }
    n->ex.compares = native_compares(n);
    n->commit.wrote = n->commit.wrote || n->place.writes;
    if (n->place.wraps && (n->wrapped || native_is_outside(n)))
        n->wrapped = true;
    if (!has_snapshot(n) || (n->failed < 0 && !n->ex.is_batch && ask_values(n)))
        return;
    if (!n->ex.is_commit || n->commit.is_clients || n->failed >= 0 ||
        may_commit(n, run_on_main, roll_back))
        run_on_main(n);
}

/* Within a failed transaction only its end goes to all nodes. */
static void place_failed(struct native *n)
{
    const struct sql_stmt *s = statement(n);
    enum sql_tx_op op = s == NULL ? SQL_TX_NONE : s->tx.op;

    n->place = (struct native_place){0};
    n->plan = (struct repl_plan){0};
    n->numbers = (struct repl_numbers){0};
    n->ex.is_commit = op == SQL_TX_COMMIT;
    n->ex.forgets = NULL;
    n->place.everywhere = op == SQL_TX_COMMIT || op == SQL_TX_ROLLBACK || op == SQL_TX_ROLLBACK_TO;
    native_note_failed(n, op);
}

/* ---- the exchange ---- */

static void next_query(struct native *n)
{
    enum native_verdict v = NATIVE_GO;

    if (n->facts.nstmts > 0 && n->at == n->facts.nstmts) {
        end(n);
        return;
    }
    if (native_begin_answers(n)) {
        native_finish(n);
        return;
    }
    if (n->failed >= 0)
        place_failed(n);
    else
        v = native_plan(n);
    if (v == NATIVE_GO)
        run(n);
}

static void next_batch(struct native *n)
{
    if (n->at > 0) {
        end(n);
        return;
    }
    if (native_batch_plan(n) != NATIVE_GO)
        return;
    if (n->ops.len == 0)
        native_local_done(n); /* a Flush, and nothing is owed */
    else
        run(n);
}

static void next_call(struct native *n)
{
    if (n->at > 0) {
        end(n);
        return;
    }
    if (n->failed >= 0)
        place_failed(n);
    else
        native_call_plan(n);
    run(n);
}

/* Outside of a transaction, which an error of ours would spoil. */
static bool ask_functions(struct native *n)
{
    struct buf sql = {0};

    if (native_functions_are_known(n) || native_tx(n) != 'I' || n->wrapped)
        return false;
    native_functions_sql(&sql);
    native_round(n, STEP_FUNCTIONS, true, -1);
    native_ask(n, main_leg(n), buf_slice(&sql));
    buf_free(&sql);
    return true;
}

static void functions_answered(struct native *n)
{
    native_functions_take(n);
    if (main_leg(n)->kind == 'E' && !native_functions_are_known(n))
        fail_of(n, main_leg(n)); /* what is to be refused is not known: a cancel is the client's */
    else
        native_next(n);
}

void native_next(struct native *n)
{
    if (n->step <= STEP_OPEN && (!native_may_begin(n) || native_legs_open(n) != 0))
        return;
    if (ask_functions(n) || (n->gate.ops != NULL && !n->gate.ops->may_begin(n)))
        return;
    if (native_begin_must_go(n, false))
        native_begin_all(n);
    else if (n->ex.is_batch)
        next_batch(n);
    else if (n->ex.is_call)
        next_call(n);
    else
        next_query(n);
}

void native_next_statement(struct native *n)
{
    native_note_ahead(n, true);
    native_gate_leave(n);
    n->at = n->ex.is_batch || n->facts.nstmts == 0 ? 1 : n->at + 1;
    n->values = NULL;
    if (!n->ex.is_batch && !n->ex.is_call && n->facts.nstmts == 0)
        end(n);
    else
        native_next(n);
}

/* How many prepared statements the exchange has made or closed there. */
static uint32_t changes_done(const struct native *n, const struct native_leg *leg)
{
    return n->ex.is_batch ? leg->nchanges : leg->kind == 'C';
}

/* A read on one node. */
static void one_answered(struct native *n)
{
    struct native_leg *leg = &n->leg[n->speaker];

    if (leg->is_lost) {
        fail_with(n, "40000", "the node that answered was lost", NULL);
        return;
    }
    native_prepared_settle(n, changes_done(n, leg), leg->kind != 'E');
    if (leg->kind != 'E') {
        native_next_statement(n);
        return;
    }
    fail_of(n, leg);
}

/* Whether tables are still what was planned for is being asked. */
static bool verify_tables(struct native *n)
{
    struct buf sql = {0};
    bool asks = !native_copies(main_leg(n)) && native_table_to_verify(n, &sql);

    if (asks) {
        native_round(n, STEP_VERIFY, true, (int)n->main);
        native_ask(n, main_leg(n), buf_slice(&sql));
    }
    buf_free(&sql);
    return asks;
}

/* The exchange fails, and the others will not see it: what it has prepared is told to them. */
static bool prepare_on_others(struct native *n, const struct native_leg *first)
{
    if (!n->ex.is_batch || !native_prepared_put(n, first->nchanges))
        return false;
    native_round(n, STEP_PARSE, true, -1);
    for (unsigned i = 0; i < n->nlegs; i++) {
        if (&n->leg[i] != first && native_is_up(&n->leg[i]))
            native_send(n, &n->leg[i], false);
    }
    native_wait(n);
    return true;
}

static void parse_answered(struct native *n)
{
    if (native_asks_committed(n))
        return;
    if (main_leg(n)->link->tx_status == 'E' && !n->wrapped)
        n->failed = (int)n->main;
    native_fail(n);
}

static void main_answered(struct native *n)
{
    struct native_leg *first = &n->leg[first_leg(n)];

    if (first->is_lost) {
        native_cut_short(n, true);
        fail_with(n, "40000", "a node was lost in the transaction", NULL);
        return;
    }
    if (first->glue == GLUE_REFUSED) {
        fail_of(n, first);
        return;
    }
    if (n->commit.is_clients)
        n->commit.ops->main_answered(n);
    /* What has taken numbers, or committed, before it failed is to do so on the others, too. */
    native_prepared_settle(n, changes_done(n, first), first->kind != 'E');
    /* A COPY that is refused when it begins has not: the others would wait for its data. */
    if (first->kind == 'E' && !n->ex.is_commit &&
        (!native_leaves_some(n) || is_copy(n) || agree_is_lock_trouble(buf_slice(&first->said)))) {
        native_cut_short(n, true);
        if (!prepare_on_others(n, first) && !native_asks_committed(n))
            fail_of(n, first);
        return;
    }
    if (!verify_tables(n))
        run_on_others(n);
}

static void verify_answered(struct native *n)
{
    if (!native_tables_are_same(n))
        fail_with(n, "40001", "a table was changed while the statement waited for it", NULL);
    else if (verify_tables(n))
        return;
    else if (is_copy(n))
        run_on_main(n); /* it is asked before, for it takes no question later */
    else
        run_on_others(n);
}

static void end_with_mismatch(struct native *n, const struct agree_answer *answers, unsigned count,
    const struct agree_result *result, enum agree_action action)
{
    struct buf text = {0};
    bool is_known = !n->wrapped && native_is_outside(n); /* done already where it could be done */

    agree_put_error(answers, count, result, n->text, &text);
    buf_put_byte(&text, '\0');
    CLIENT_LOG(n->c, LVL_WARNING, "%s", text.data);
    if (action == AGREE_REFUSE && !is_known)
        fail_with(n, "XX001", text.data, agree_hint(result));
    else
        client_end_text(n->c, "XX001", "%s", text.data);
    buf_free(&text);
}

static void detach_minority(struct native *n, const struct agree_answer *answers, unsigned count,
    struct native_leg **legs, const struct agree_result *result)
{
    struct buf why = {0};

    agree_put_error(answers, count, result, slice_of("", 0), &why);
    buf_put_byte(&why, '\0');
    for (unsigned i = 0; i < count; i++) {
        if ((result->minority >> i & 1) == 0)
            continue;
        native_detach(n, legs[i], why.data);
        if (legs[i] != main_leg(n))
            native_leg_drop(legs[i], true);
    }
    buf_free(&why);
    if (result->main_differs)
        client_end_text(n->c, "XX001", "the main node answered otherwise than most");
    else
        native_next_statement(n);
}

/* Some were lost: what they did is gone with a transaction, and done or not without one. */
static bool has_lost_some(struct native *n)
{
    bool is_known = !n->wrapped && native_is_outside(n);
    bool some = false;

    for (unsigned i = 0; i < n->nlegs; i++) {
        if (!(n->leg[i].did && n->leg[i].is_lost) && !native_lacks(n, i, is_known))
            continue;
        if (is_known)
            native_detach(n, &n->leg[i], "it was lost while it did what others had done");
        some = true;
    }
    if (!some || is_known)
        return false;
    native_cut_short(n, true);
    fail_with(n, "40000", "a node was lost in the transaction", NULL);
    return true;
}

/* A lock that one node could not give undoes it on all. */
static bool has_lock_trouble(struct native *n)
{
    for (unsigned i = 0; i < n->nlegs; i++) {
        struct native_leg *leg = &n->leg[i];

        if (i == first_leg(n) || !leg->did || leg->kind != 'E' ||
            !(n->guards->was_cut(n, leg) || agree_is_lock_trouble(buf_slice(&leg->said))))
            continue;
        if (!n->wrapped && native_is_outside(n)) {
            native_detach(n, leg, "it could not do what the main node had done");
            native_leg_drop(leg, true);
            continue;
        }
        buf_clear(&n->held);
        native_cut_short(n, true);
        fail_of(n, leg);
        return true;
    }
    return false;
}

/* The transaction is over, one way or the other, on all nodes. */
static void end_answered(struct native *n)
{
    n->failed = -1;
    for (unsigned i = 0; i < n->nlegs; i++) {
        if (native_is_up(&n->leg[i]) && n->leg[i].link->tx_status == 'E')
            n->failed = (int)i;
    }
    if (n->leg[n->main].kind == 'E')
        n->ex.failing = true;
    if (n->ex.failing)
        native_finish(n);
    else
        native_next_statement(n);
}

static void others_answered(struct native *n)
{
    const struct conf *conf = n->ss->conf;
    struct agree_rules rules = {.stop_on_mismatch = conf->replication_stop_on_mismatch,
        .failover_if_tuples = conf->failover_if_affected_tuples_mismatch,
        .compares_rows = n->ex.compares};
    struct agree_answer answers[NATIVE_MAX_NODES];
    struct native_leg *legs[NATIVE_MAX_NODES];
    struct agree_result result;
    enum agree_action action;
    unsigned count;

    if (n->commit.is_clients) {
        n->commit.ops->prepared(n);
        return;
    }
    if (n->failed >= 0 || has_rolled_back(n)) {
        end_answered(n);
        return;
    }
    if (main_leg(n)->kind == 'E') {
        fail_of(n, main_leg(n));
        return;
    }
    if (native_copies(main_leg(n))) {
        n->copies->begin(n);
        return;
    }
    if (has_lost_some(n) || has_lock_trouble(n))
        return;
    count = native_collect(n, first_leg(n), answers, legs);
    agree_judge(answers, count, 0, &rules, &result);
    action = agree_what_to_do(&result, &rules);
    if (n->apart->asks(n, action == AGREE_GO_ON))
        return;
    if (action == AGREE_GO_ON) {
        end_answered(n);
        return;
    }
    native_log_mismatch(n, answers, count, &result);
    if (action == AGREE_DETACH)
        detach_minority(n, answers, count, legs, &result);
    else
        end_with_mismatch(n, answers, count, &result, action);
}

static void values_answered(struct native *n)
{
    if (main_leg(n)->kind == 'E') {
        fail_of(n, main_leg(n));
        return;
    }
    native_numbers_take_values(n);
    if (n->ex.is_batch)
        native_next(n);
    else if (!is_copy(n) || !verify_tables(n))
        run_on_main(n);
}

static void first_end_answered(struct native *n)
{
    if (main_leg(n)->kind == 'E') {
        if (!n->ex.is_batch && n->ex.tag_at < n->held.len &&
            n->held.data[n->ex.tag_at] == BE_COMMAND_COMPLETE) /* it is not done */
            wire_drop(&n->held, n->ex.tag_at);
        fail_of(n, main_leg(n));
        return;
    }
    end_others(n);
}

static void other_ends_answered(struct native *n)
{
    for (unsigned i = 0; i < n->nlegs; i++) {
        struct native_leg *leg = &n->leg[i];

        if ((!leg->did || (leg->kind != 'E' && !leg->is_lost)) && !native_is_owed_and_gone(n, i))
            continue;
        native_detach(n, leg, "it could not commit what the main node had committed");
        native_leg_drop(leg, true);
    }
    n->wrapped = false;
    native_finish(n);
}

static void question_answered(struct native *n)
{
    if (main_leg(n)->kind == 'E') { /* what it was asked for fails, too */
        native_forget_tables(n);
        fail_of(n, main_leg(n));
        return;
    }
    if (n->step == STEP_LOOK)
        native_take_answers(n);
    else
        native_take_columns(n);
    native_next(n);
}

/* A node could not do what was asked: the exchange fails, without what is held from `held` on. */
static bool some_failed(struct native *n, uint32_t held)
{
    for (struct native_leg *leg = n->leg; leg < n->leg + n->nlegs; leg++) {
        if (!leg->did || (leg->kind != 'E' && !leg->is_lost))
            continue;
        n->held.len = held;
        if (leg->is_lost)
            fail_with(n, "40000", "a node was lost in the transaction", NULL);
        else
            fail_of(n, leg);
        return true;
    }
    return false;
}

static void begin_answered(struct native *n)
{
    if (!some_failed(n, n->held.len))
        native_next(n);
}

static void spoil_answered(struct native *n)
{
    if (n->failed < 0 && main_leg(n)->link->tx_status != 'E') {
        client_end_text(n->c, "XX000", "the main node could not begin the transaction");
        return;
    }
    n->failed = n->failed < 0 ? (int)n->main : n->failed;
    native_finish(n);
}

static void (*const answered[])(struct native *n) = {
    [STEP_BEGIN] = begin_answered,
    [STEP_LOOK] = question_answered,
    [STEP_COLUMNS] = question_answered,
    [STEP_VALUES] = values_answered,
    [STEP_ONE] = one_answered,
    [STEP_QUICK] = one_answered, /* it was lost */
    [STEP_MAIN] = main_answered,
    [STEP_OTHERS] = others_answered,
    [STEP_FIRST_END] = first_end_answered,
    [STEP_OTHER_ENDS] = other_ends_answered,
    [STEP_UNDO] = native_finish,
    [STEP_SPOIL] = spoil_answered,
    [STEP_PARSE] = parse_answered,
    [STEP_READ_ENDS] = native_finish,
    [STEP_VERIFY] = verify_answered,
    [STEP_FUNCTIONS] = functions_answered,
    [STEP_COMMITTED] = native_committed_answered,
};

void native_answered(struct native *n)
{
    switch (n->step) {
    case STEP_PREPARE:
        n->commit.ops->main_prepared(n);
        break;
    case STEP_PREPARE_OTHERS:
        n->commit.ops->prepared(n);
        break;
    case STEP_UNPREPARE:
        n->commit.ops->undone(n);
        break;
    case STEP_COMMIT:
        n->commit.ops->committed(n);
        break;
    case STEP_COPY_END:
        n->copies->ended(n);
        break;
    case STEP_COPY_STOP:
        n->copies->stopped(n);
        break;
    case STEP_WHERE:
        if (!some_failed(n, 0))
            n->apart->told(n, end_answered);
        break;
    case STEP_FORWARD:
        if (!some_failed(n, 0))
            n->apart->brought(n);
        break;
    case STEP_SNAPSHOT:
        n->gate.ops->taken(n);
        break;
    default:
        if (answered[n->step] != NULL) /* else nobody was asked */
            answered[n->step](n);
        break;
    }
}
