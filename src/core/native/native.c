/* SPDX-License-Identifier: PostgreSQL
 * native.c: a session of native replication: its messages, the end of an exchange, its own end.
 * Runs in: workers. */
#include "config.h"

#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/log.h"
#include "base/mem.h"
#include "config/conf.h"
#include "ipc/hold.h"
#include "native/native.h"
#include "wire/message.h"
#include "wire/writer.h"

#include "native_int.h"

/* How often who is held looks whether it may go on. */
#define HELD_LOOK_MS 200

static void go_on(struct client *c);

/* What came while an exchange ran. */
static void on_again(struct task *t)
{
    go_on(LIST_ENTRY(t, struct native, again)->c);
}

static void on_timer(struct timer *t)
{
    struct native *n = LIST_ENTRY(t, struct native, timer);

    if (n->step == STEP_GATE) {
        n->gate.ops->on_timer(n);
        return;
    }
    if (n->step == STEP_OTHERS)
        n->guards->looks(n);
    if (n->step == STEP_FENCE && native_fence_gives_up(n)) {
        native_warn(n,
            "a commit of another session takes long on some node: the rows that the statement "
            "changes may differ between nodes",
            true);
        n->gate.go_on(n);
        return;
    }
    if (n->step == STEP_HELD)
        native_next(n);
    if (n->step != STEP_OPEN)
        return;
    if (loop_now_us(n->ss->loop) >= n->wait_until_us) {
        client_end_text(n->c, "57P03", "not all nodes in use could be reached");
        return;
    }
    for (unsigned i = 0; i < n->nlegs; i++) {
        struct native_leg *leg = &n->leg[i];

        if (leg->phase == LEG_NONE && leg->pool == NULL && view_is_usable(&n->ss->view, leg->node))
            sessions_look_again(n->ss, leg->node);
    }
    native_next(n);
}

/* ---- online recovery ---- */

bool native_may_begin(struct native *n)
{
    struct client *c = n->c;

    if (n->is_counted)
        return true;
    n->is_counted = hold_enter(n->ss->env->shm, n->ss->env->ordinal);
    if (!n->is_counted) {
        if (n->step != STEP_HELD)
            client_row_held(c, WAIT_REASON_RECOVERY);
        n->step = STEP_HELD;
        timer_start(n->ss->loop, &n->timer, HELD_LOOK_MS);
    } else if (n->step == STEP_HELD) {
        client_row_state(c, CLIENT_STATE_ACTIVE, WAIT_REASON_NONE);
    }
    return n->is_counted;
}

/* Nothing of it runs, and no transaction is open. */
static void leave_work(struct native *n)
{
    if (n->is_counted)
        hold_leave(n->ss->env->shm, n->ss->env->ordinal);
    n->is_counted = false;
}

/* Until the others have answered, nobody else would know of it if this process died. */
static bool is_ahead(const struct native *n)
{
    switch (n->step) {
    case STEP_MAIN:
        return n->commit.wrote && n->failed < 0 && !n->commit.is_clients &&
               (n->wrapped || native_tx(n) != 'I' ? n->ex.is_commit : n->place.writes);
    case STEP_FIRST_END:
        return n->commit.wrote;
    default:
        return n->nahead > 0 && n->step != STEP_ONE && n->step != STEP_UNDO;
    }
}

void native_note_ahead(struct native *n, bool is_over)
{
    uint32_t before = n->nahead;

    if (before == 0 && n->step != STEP_MAIN && n->step != STEP_FIRST_END)
        return; /* most rounds */
    n->nahead = !is_over && is_ahead(n);
    if (n->nahead > before)
        hold_ahead(n->ss->env->shm, n->ss->env->ordinal, n->leg[n->main].node);
    else if (n->nahead < before)
        hold_ahead_over(n->ss->env->shm, n->ss->env->ordinal);
}

bool native_is_held(const struct client *c)
{
    return client_native(c)->step == STEP_HELD;
}

/* A session of pools.conf's own servers, or of replication, has one server. */
static bool is_native(const struct client *c)
{
    return conf_writes_everywhere(client_sessions(c)->conf) && client_link(c) != NULL &&
           !client_link(c)->is_private && client_pool(c)->cluster_node < POOLS_FIRST_TARGET;
}

static void choose_reader(struct native *n)
{
    struct sessions *ss = n->ss;
    double sum = 0;
    double at;
    unsigned i;

    for (i = 0; i < n->nlegs; i++)
        sum += ss->conf->nodes[n->leg[i].node].backend_weight;
    at = (double)(session_next_choice(ss->shared) >> 11) / 9007199254740992.0 * sum;
    n->reader = (int)n->main;
    for (i = 0; i < n->nlegs; i++) {
        at -= ss->conf->nodes[n->leg[i].node].backend_weight;
        if (at < 0) {
            n->reader = (int)i;
            return;
        }
    }
}

static int read_leg(const struct native *n)
{
    if (n->failed >= 0)
        return n->failed;
    /* Only the gate makes snapshots of several nodes one; SERIALIZABLE needs all reads in one
     * place. */
    if (n->gate.ops == NULL && (n->wrapped || !native_is_outside(n)))
        return (int)n->main;
    if (n->commit.wrote || n->place.on_main || !n->ss->conf->load_balance_mode || n->reader < 0 ||
        !native_is_up(&n->leg[n->reader]))
        return (int)n->main;
    return n->reader;
}

int native_one_leg(const struct native *n)
{
    int one = n->ex.is_batch && n->portal >= 0 ? n->portal : read_leg(n);

    return native_is_up(&n->leg[one]) ? one : (int)n->main;
}

void native_begin(struct client *c)
{
    struct native *n;
    const struct view *v = &client_sessions(c)->view;

    if (!is_native(c))
        return;
    n = mem_alloc_zero(sizeof *n);
    client_serve(c, n);
    n->c = c;
    n->ss = client_sessions(c);
    n->commit.ops = &native_commit_ops;
    n->apart = &native_apart_ops;
    n->guards = &native_guard_ops;
    n->copies = &native_copy_ops;
    native_fence_init(n);
    if (n->ss->conf->backend_clustering_mode == CONF_CLUSTER_SNAPSHOT) {
        n->gate.ops = &native_gate_ops;
        n->gate.ops->init(n);
    }
    n->failed = -1;
    n->unnamed = NATIVE_ALL;
    n->portal = NATIVE_ALL;
    n->arena = arena_new("native", 0);
    list_init(&n->prepared);
    list_init(&n->tables);
    timer_init(&n->timer, on_timer);
    task_init(&n->again, on_again);
    paramset_copy(&n->params, client_startup_params(c));
    native_names_begin(n);
    n->nlegs = 1;
    n->leg[0] = (struct native_leg){.n = n,
        .node = client_pool(c)->cluster_node,
        .link = client_link(c),
        .epoch = client_link(c)->epoch,
        .phase = LEG_READY};
    for (int node = 0; node < v->nnodes && n->nlegs < NATIVE_MAX_NODES; node++) {
        if (!view_is_usable(v, node) || node == n->leg[0].node)
            continue;
        n->leg[n->nlegs].n = n;
        n->leg[n->nlegs++].node = node;
    }
    choose_reader(n);
    client_link(c)->owner = &n->leg[0];
    client_link(c)->ops = &native_link_ops;
}

void native_free(struct client *c)
{
    struct native *n = client_native(c);

    if (n == NULL)
        return;
    if (client_link(c) != NULL)
        client_link(c)->ready_as = 0;
    n->commit.ops->leave(n);
    native_note_ahead(n, true);
    if (n->gate.ops != NULL)
        n->gate.ops->quit(n);
    native_fence_quit(n);
    native_flight_end(n->ss, n->flight);
    leave_work(n);
    native_begin_over(n);
    n->guards->over(n);
    timer_stop(n->ss->loop, &n->timer);
    task_cancel(&n->again);
    client_serve_no_more(c);
    native_legs_close(n, true);
    native_prepared_clear(n);
    native_forget_tables(n);
    paramset_free(&n->params);
    arena_free(&n->arena);
    buf_free(&n->in);
    buf_free(&n->begin);
    buf_free(&n->kept.out);
    buf_free(&n->kept.ops);
    buf_free(&n->copy_sql);
    buf_free(&n->rows);
    buf_free(&n->held);
    buf_free(&n->out);
    buf_free(&n->ops);
    mem_free(n->last_words);
    mem_free(n);
}

char native_tx(const struct native *n)
{
    const struct link *link = n->leg[n->main].link;

    if (n->failed >= 0)
        return 'E';
    if (native_lacks_begin(n, n->main))
        return 'T';
    return n->wrapped || link == NULL ? 'I' : link->tx_status;
}

/* What the main node has done for good, or undone, is done on all: who cannot is taken out of
 * service, so nobody cancels it. */
static bool is_too_late(const struct native *n)
{
    switch (n->step) {
    case STEP_OTHERS:
        return !n->wrapped && !n->commit.is_clients && native_tx(n) == 'I';
    case STEP_OTHER_ENDS:
    case STEP_UNDO:
    case STEP_READ_ENDS:
    case STEP_COMMITTED:
    case STEP_UNPREPARE:
    case STEP_COMMIT:
        return true;
    default:
        return false;
    }
}

bool native_cancel(struct client *c, int fd)
{
    struct native *n = client_native(c);
    bool waits = n->step == STEP_HELD || n->step == STEP_FENCE;
    bool is_here = waits || n->step == STEP_GATE || is_too_late(n);
    bool some = is_here;

    if (waits) {
        native_fence_quit(n);
        buf_clear(&n->held); /* what the main node has done is undone */
        native_refuse(n, "57014", "canceling statement due to user request");
    } else if (n->step == STEP_GATE && !n->gate.ops->cancel(n)) {
        return false; /* `fd` is still the caller's */
    }
    for (unsigned i = 0; i < n->nlegs && !is_here; i++) {
        if ((!n->leg[i].is_asked && !native_copies(&n->leg[i])) || n->leg[i].link == NULL)
            continue;
        link_cancel(n->leg[i].link, fcntl(fd, F_DUPFD_CLOEXEC, 0)); /* it hears of the last one */
        some = true;
    }
    if (some && fd != -1)
        close(fd);
    return some;
}

void native_refuse(struct native *n, const char *sqlstate, const char *fmt, ...)
{
    struct err err;
    char text[512];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    err_clear(&err);
    err_set(&err, sqlstate, "%s", text);
    wire_put_err(&n->held, &err);
    native_fail(n);
}

static void drop_exchange(struct native *n);

static void end_exchange(struct native *n)
{
    struct client *c = n->c;

    n->step = STEP_IDLE;
    n->gone = 0;
    n->ex = (struct native_exchange){0};
    native_prepared_begin(n);
    n->has_warned = false;
    n->values = NULL;
    n->copy = NULL;
    n->at = 0;
    if (!n->is_open && native_tx(n) == 'I')
        leave_work(n);
    buf_clear(&n->out);
    buf_clear(&n->ops);
    drop_exchange(n);
    if (n->ntables > NATIVE_TABLES_MAX)
        native_forget_tables(n);
    arena_reset(n->arena);
    client_target(c, client_link(c));
    client_note_idle(c);
    if (client_is_leaving(c))
        client_after_quiet(c);
    if (client_native(c) == NULL || !client_is_active(c))
        return;
    if (n->in.len > 0)
        task_post(n->ss->loop, &n->again);
    client_read_on(c);
}

void native_local_done(struct native *n)
{
    end_exchange(n);
}

void native_park(struct native *n)
{
    client_park(n->c, buf_slice(&n->in));
    buf_clear(&n->in);
    n->scanned = 0;
    arena_reset(n->arena);
}

void native_finish(struct native *n)
{
    struct client *c = n->c;
    struct buf held = n->held;
    char tx = native_tx(n);

    memset(&n->held, 0, sizeof n->held);
    client_send(c, &held);
    native_note_ahead(n, true);
    native_gate_leave(n);
    n->commit.owed = 0;
    if (tx == 'I' && !n->wrapped) {
        native_begin_over(n);
        n->commit.wrote = false;
        native_settle_schema(n);
    }
    n->is_open = !n->ex.ends_in_sync;
    if (!n->is_open && tx == 'I')
        buf_clear(&n->copy_sql); /* its portal ends */
    n->skips = n->is_open && (n->skips || n->ex.failing);
    if (!n->is_open)
        client_say_ready(c, tx);
    end_exchange(n);
}

/* ---- what comes ---- */

/* Messages that a client may send: 'e' ends an exchange, 'c' is of a COPY, 'm' is another. */
static const char kinds[UCHAR_MAX + 1] = {[FE_QUERY] = 'e',
    [FE_SYNC] = 'e',
    [FE_FLUSH] = 'e',
    [FE_FUNCTION_CALL] = 'e',
    [FE_TERMINATE] = 'e',
    [FE_PARSE] = 'm',
    [FE_BIND] = 'm',
    [FE_DESCRIBE] = 'm',
    [FE_EXECUTE] = 'm',
    [FE_CLOSE] = 'm',
    [FE_COPY_DATA] = 'c',
    [FE_COPY_DONE] = 'c',
    [FE_COPY_FAIL] = 'c'};

/* Looks for the end of an exchange in what has come; false: it has not all come, or the client is
 * gone. */
static bool find_exchange(struct native *n)
{
    while (n->in.len - n->scanned >= PROTO_HEADER_BYTES) {
        const char *p = n->in.data + n->scanned;
        char kind = kinds[(unsigned char)*p];
        size_t bytes = message_bytes(p);

        if (!message_may_be(bytes) || n->scanned + bytes > NATIVE_IN_MAX) {
            client_end_text(n->c, "54000", "a statement is too long for native replication");
            return false;
        }
        if (kind == 0) {
            client_end_text(n->c, "08P01", "invalid frontend message type %d", (unsigned char)*p);
            return false;
        }
        if (n->in.len - n->scanned < bytes)
            return false;
        if (n->scanned == 0 && kind == 'c') {
            n->scanned = (uint32_t)bytes; /* of a COPY that has ended: nobody reads it */
            drop_exchange(n);
            continue;
        }
        if ((*p == FE_QUERY || *p == FE_FUNCTION_CALL || *p == FE_TERMINATE) && n->scanned > 0)
            return true; /* what is in front of it comes first */
        n->scanned += (uint32_t)bytes;
        if (kind == 'e')
            return true;
    }
    return false;
}

/* Takes the bytes of the exchange that is over away. */
static void drop_exchange(struct native *n)
{
    uint32_t left = n->in.len - n->scanned;

    memmove(n->in.data, n->in.data + n->scanned, left);
    n->in.len = left;
    n->scanned = 0;
    if (left == 0 && n->in.cap > BACKEND_READ_BYTES)
        buf_free(&n->in);
}

static void begin_text(struct native *n)
{
    client_stats_on_query(n->c);
    client_note_statement(n->c, n->text);
    if (client_log_statements(n->c))
        client_log_statement(n->c, "", n->text);
    native_parse(n, n->text, &n->facts);
    native_next(n);
}

static void begin_query(struct native *n)
{
    struct client *c = n->c;

    buf_clear(&n->copy_sql);
    n->text = slice_of(n->in.data + PROTO_HEADER_BYTES, n->scanned - PROTO_HEADER_BYTES);
    if (n->text.n > 0 && n->text.p[n->text.n - 1] == '\0')
        n->text.n--;
    n->text.p = arena_strndup(n->arena, n->text.p, n->text.n); /* n->in may grow meanwhile */
    if (client_local_is_likely(n->text)) {
        enum local_verdict v = client_local_query(c, n->text);

        if (v == LOCAL_DONE) {
            native_local_done(n);
            return;
        }
        if (v == LOCAL_PARK) {
            native_park(n);
            return;
        }
    }
    begin_text(n);
}

static void start(struct native *n)
{
    char type = n->in.data[0];

    n->at = 0;
    n->values = NULL;
    n->ex.is_batch = type != FE_QUERY && type != FE_FUNCTION_CALL;
    n->ex.is_call = type == FE_FUNCTION_CALL;
    n->ex.ends_in_sync = true;
    n->facts = (struct sql_facts){0};
    n->text = slice_of("", 0);
    if (type == FE_QUERY) {
        n->skips = false;
        begin_query(n);
        return;
    }
    if (type == FE_EXECUTE && native_batch_copies(n)) {
        n->ex.is_batch = false;
        begin_text(n);
        return;
    }
    client_stats_on_query(n->c);
    client_note_statement(n->c, slice_of(NULL, 0));
    native_next(n);
}

static void go_on(struct client *c)
{
    struct native *n = client_native(c);

    while (n != NULL && client_is_active(c) && n->step == STEP_IDLE && find_exchange(n)) {
        if (client_hold(c)) {
            native_park(n);
            return;
        }
        if (n->in.data[0] == FE_TERMINATE) {
            client_say_goodbye(c);
            return;
        }
        start(n);
        n = client_native(c);
    }
}

void native_feed(struct client *c, const char *p, const char *end)
{
    struct native *n = client_native(c);

    buf_put(&n->in, p, (size_t)(end - p));
    if (n->step == STEP_IDLE)
        go_on(c);
    else if (n->step == STEP_COPY)
        n->copies->feed(n);
    else if (n->in.len > NATIVE_AHEAD_MAX)
        client_pause(c); /* until what runs is over */
}

void native_on_gate(struct sessions *ss)
{
    native_gate_ops.opened(ss);
    native_fence_look(ss);
}
