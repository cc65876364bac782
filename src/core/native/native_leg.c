/* SPDX-License-Identifier: PostgreSQL
 * native_leg.c: the connections of a session of native replication, and rounds: who was asked, and
 * what came back. Runs in: workers. Must never: pass to a client what another node than the one
 * that speaks said. */
#include "config.h"

#include <stdio.h>
#include <string.h>

#include "base/hot.h"
#include "base/log.h"
#include "base/mem.h"
#include "cluster/command.h"
#include "config/conf.h"
#include "wire/errmsg.h"
#include "wire/message.h"
#include "wire/writer.h"

#include "native_int.h"

/* A login takes no longer than this. */
#define OPEN_MAX_US INT64_C(30000000)
/* How often a node is tried that cannot be reached and is not known to be down. */
#define OPEN_AGAIN_MS 200

bool native_owe(struct native *n, void (*fail)(struct native *n))
{
    struct err err;

    n->commit.owed = 0;
    if (n->gone != 0 && n->commit.wrote) {
        native_set_lost(&err);
        wire_put_err(&n->held, &err);
        fail(n);
        return false;
    }
    for (unsigned i = 0; i < n->nlegs; i++) {
        if (i != n->main && native_is_up(&n->leg[i]) && n->leg[i].link->tx_status == 'T')
            n->commit.owed |= 1U << i;
    }
    return true;
}

bool native_is_owed_and_gone(const struct native *n, unsigned i)
{
    return (n->commit.owed >> i & 1) != 0 && !native_is_up(&n->leg[i]);
}

bool native_lacks(const struct native *n, unsigned i, bool is_known)
{
    bool is_written =
        n->failed < 0 && n->commit.wrote && (!is_known || n->place.writes || n->ex.is_commit);

    return (is_written && (n->gone >> i & 1) != 0) || (is_known && native_is_owed_and_gone(n, i));
}

void native_set_lost(struct err *err)
{
    err_clear(err);
    err_set(err, "40000", "a node was lost in the transaction");
    err_hint(err, "Nothing of it is committed: do it again. SHOW POOL_NODES tells which are left.");
}

void native_detach(struct native *n, struct native_leg *leg, const char *why)
{
    struct node_command cmd = {.order = NODE_DETACH, .node = leg->node};

    n->gone &= ~(1U << (leg - n->leg)); /* nobody expects more of it */
    (void)view_refresh(n->ss->env->shm, &n->ss->view);
    if (view_is_usable(&n->ss->view, leg->node)) /* else somebody has said so */
        CLIENT_LOG(n->c, LVL_WARNING, "node %d is detached: %s", leg->node, why);
    snprintf(cmd.who, sizeof cmd.who, "%s", "native replication");
    snprintf(cmd.why, sizeof cmd.why, "%s", why);
    sessions_mail_monitor(n->ss, MAIL_NODE_COMMAND, &cmd, sizeof cmd);
}

void native_leg_drop(struct native_leg *leg, bool boundary)
{
    struct native *n = leg->n;
    struct link *link = leg->link;

    n->opened = 0;
    leg->link = NULL;
    leg->phase = LEG_NONE;
    leg->begun = false;
    leg->left = 0;
    buf_free(&leg->part);
    if (leg->pool == NULL) /* the client's own is given back by the client */
        return;
    client_untarget(n->c, link);
    pool_request_cancel(&leg->req);
    if (link != NULL)
        link_release(link, boundary);
    pool_detach(leg->pool);
    leg->pool = NULL;
}

void native_legs_close(struct native *n, bool boundary)
{
    for (unsigned i = 0; i < n->nlegs; i++) {
        native_leg_drop(&n->leg[i], boundary);
        buf_free(&n->leg[i].said);
        buf_free(&n->leg[i].error);
    }
}

/* ---- opening ---- */

static void leg_is_ready(struct native_leg *leg)
{
    leg->phase = LEG_READY;
    leg->epoch = leg->link->epoch;
    leg->link->loan.tells = LINK_TELLS_ANSWERS;
    link_row_update(leg->link, client_row_index(leg->n->c));
}

static void go_on_opening(struct native *n)
{
    if (n->step == STEP_OPEN)
        native_next(n);
}

static void leg_acquire(struct native_leg *leg)
{
    client_entitle(leg->n->c, &leg->req);
    switch (pool_acquire(&leg->req)) {
    case ACQUIRE_GRANTED:
        leg->link = leg->req.link;
        leg_is_ready(leg);
        break;
    case ACQUIRE_OPENING:
        leg->link = leg->req.link;
        leg->epoch = leg->link->epoch;
        leg->phase = LEG_OPENING;
        break;
    case ACQUIRE_WAITING:
        leg->phase = LEG_OPENING;
        break;
    }
}

static void leg_on_turn(struct pool_request *req)
{
    struct native_leg *leg = req->owner;

    leg_acquire(leg);
    if (leg->phase == LEG_READY)
        go_on_opening(leg->n);
}

static void leg_open(struct native_leg *leg)
{
    struct client *c = leg->n->c;

    leg->pool = pool_attach(
        &leg->n->ss->be, pool_user(client_pool(c)), pool_database(client_pool(c)), leg->node);
    pool_request_init(&leg->req);
    leg->startup.version = client_link(c)->version;
    leg->startup.user = pool_user(client_pool(c));
    leg->startup.database = pool_database(client_pool(c));
    leg->startup.params = &leg->n->params;
    leg->req.pool = leg->pool;
    leg->req.startup = &leg->startup;
    leg->req.no_patch = true;
    leg->req.on_turn = leg_on_turn;
    leg->req.owner = leg;
    leg->req.ops = &native_link_ops;
    leg_acquire(leg);
}

static struct native_leg *leg_at(struct native *n, int node)
{
    for (unsigned i = 0; i < n->nlegs; i++) {
        if (n->leg[i].node == node)
            return &n->leg[i];
    }
    return NULL;
}

/* A node that was not there before has not what this session has done. */
static int leg_add(struct native *n, int node)
{
    struct native_leg *leg = leg_at(n, node);

    if (n->has_state || n->wrapped || native_tx(n) != 'I') {
        client_end_text(
            n->c, "57P01", "node %d is in use again: the session has to begin anew", node);
        return -1;
    }
    if (leg == NULL) {
        if (n->nlegs == NATIVE_MAX_NODES) {
            client_end_text(
                n->c, "54000", "native replication is for %d nodes at most", NATIVE_MAX_NODES);
            return -1;
        }
        leg = &n->leg[n->nlegs++];
        leg->n = n;
        leg->node = node;
    }
    leg_open(leg);
    return client_is_active(n->c) ? 0 : -1;
}

static int legs_follow_view(struct native *n)
{
    const struct view *v = &n->ss->view;

    for (int node = 0; node < v->nnodes; node++) {
        struct native_leg *leg = leg_at(n, node);
        bool is_used = view_is_usable(v, node);

        if (is_used && node < n->leg[n->main].node) {
            client_end_text(
                n->c, "57P01", "node %d is the main node now: the session has to begin anew", node);
            return -1;
        }
        if (is_used && (leg == NULL || leg->phase == LEG_NONE)) {
            if (leg_add(n, node) == -1)
                return -1;
        } else if (!is_used && leg != NULL && leg == &n->leg[n->main]) {
            client_end_text(n->c, "57P01", "node %d, the main node, is not in use any more", node);
            return -1;
        } else if (!is_used && leg != NULL && leg->phase != LEG_NONE) {
            native_leg_drop(leg, true);
        }
    }
    if (n->failed >= 0 && !native_is_up(&n->leg[n->failed])) /* it has failed on all */
        n->failed = (int)n->main;
    return 0;
}

int native_legs_open(struct native *n)
{
    bool waits = false;

    (void)view_refresh(n->ss->env->shm, &n->ss->view);
    if (n->opened != 0 && n->opened == n->ss->view.version && n->step != STEP_HELD)
        return 0;
    if (legs_follow_view(n) == -1)
        return -1;
    for (unsigned i = 0; i < n->nlegs; i++)
        waits = waits || n->leg[i].phase == LEG_OPENING;
    if (!waits) {
        n->opened = n->ss->view.version;
        n->wait_until_us = 0;
        timer_stop(n->ss->loop, &n->timer);
        return 0;
    }
    if (n->wait_until_us == 0)
        n->wait_until_us = loop_now_us(n->ss->loop) + OPEN_MAX_US;
    n->step = STEP_OPEN;
    timer_start(n->ss->loop, &n->timer, OPEN_AGAIN_MS);
    return 1;
}

/* ---- rounds ---- */

static void leg_forget_answer(struct native_leg *leg)
{
    leg->kind = 0;
    leg->has_tuples = false;
    leg->ntuples = 0;
    leg->rows = (struct agree_rows){0};
    leg->nchanges = 0;
    leg->did = false;
    leg->is_lost = false;
    buf_clear(&leg->said);
    buf_clear(&leg->error);
}

void native_round(struct native *n, enum native_step step, bool ours, int speaker)
{
    n->step = step;
    n->ex.ours = ours;
    n->speaker = speaker;
    buf_clear(&n->rows);
    for (unsigned i = 0; i < n->nlegs; i++) {
        if (step != STEP_OTHERS || i != n->main) /* the main node's is compared with theirs */
            leg_forget_answer(&n->leg[i]);
    }
    if (speaker >= 0)
        client_target(n->c, n->leg[speaker].link);
    native_note_ahead(n, false);
}

/* In front of what it is asked, where they are not in one message with it. */
static void put_numbers(struct native_leg *leg)
{
    struct buf sql = {0};
    struct buf out = {0};

    native_numbers_sql(leg, &sql);
    leg->front = sql.len;
    if (sql.len > 0) {
        link_expect(leg->link, OP_QUERY | OP_QUIET | OP_ROWS);
        wire_put_query(&out, buf_slice(&sql));
        (void)link_send(leg->link, out.data, out.len);
    }
    buf_free(&sql);
    buf_free(&out);
}

void native_send(struct native *n, struct native_leg *leg, bool wraps)
{
    struct buf with_begin = {0};
    struct slice out = buf_slice(&n->out);
    bool begins = (wraps && !leg->begun) ||
                  (n->failed < 0 && native_lacks_begin(n, (unsigned)(leg - n->leg)));
    bool locks = n->step == STEP_OTHERS && n->plan.nlocks > 0 && leg->link->tx_status == 'T';
    bool glues =
        (begins || (locks && !n->ex.is_batch)) && n->ops.len == 1 && n->ops.data[0] == OP_QUERY;

    leg->glue = GLUE_NONE;
    if (!glues)
        put_numbers(leg);
    if (begins || glues) {
        native_begin_put(n, leg, begins, &with_begin);
        out = buf_slice(&with_begin);
    }
    leg->begun = leg->begun || wraps;
    for (uint32_t i = 0; i < n->ops.len; i++) {
        unsigned op = (unsigned char)n->ops.data[i];

        link_expect(leg->link, (op & OP_NOTE) != 0 ? (op ^ OP_NOTE) | OP_ROWS : op);
    }
    leg->is_asked = true;
    leg->did = true;
    (void)link_send(leg->link, out.p, out.n);
    buf_free(&with_begin);
}

void native_ask(struct native *n, struct native_leg *leg, struct slice sql)
{
    struct buf out = {0};

    (void)n;
    link_expect(leg->link, OP_QUERY);
    wire_put_query(&out, sql);
    leg->glue = GLUE_NONE;
    leg->is_asked = true;
    leg->did = true;
    (void)link_send(leg->link, out.data, out.len);
    buf_free(&out);
}

void native_wait(struct native *n)
{
    for (unsigned i = 0; i < n->nlegs; i++) {
        if (n->leg[i].is_asked)
            return;
    }
    if (n->guards->done(n))
        native_answered(n);
}

void native_end_all(struct native *n, enum native_step step, const char *sql)
{
    native_round(n, step, true, -1);
    for (unsigned i = 0; i < n->nlegs; i++) {
        if (native_is_up(&n->leg[i]) && n->leg[i].link->tx_status != 'I')
            native_ask(n, &n->leg[i], slice_of_str(sql));
        n->leg[i].begun = false;
    }
    n->wrapped = false;
    native_wait(n);
}

void native_begin_all(struct native *n)
{
    native_round(n, STEP_BEGIN, true, -1);
    for (unsigned i = 0; i < n->nlegs; i++) {
        if (native_is_up(&n->leg[i]) && native_lacks_begin(n, i))
            native_ask(n, &n->leg[i], buf_slice(&n->begin));
    }
    native_wait(n);
}

static void leg_answered(struct native_leg *leg)
{
    if (!leg->is_asked)
        return;
    leg->is_asked = false;
    native_begin_note(leg->n, (unsigned)(leg - leg->n->leg));
    native_wait(leg->n);
}

/* ---- what comes back ---- */

static void tell(struct native_leg *leg, const char *p, size_t n)
{
    struct native *nat = leg->n;

    if (nat->ex.ours || nat->speaker != (int)(leg - nat->leg))
        return;
    if (nat->ex.streams)
        client_pass_reply(nat->c, leg->link, p, n);
    else
        buf_put(&nat->held, p, n);
}

/* A part of a row; an answer of many is not kept whole. */
static void tell_rows(struct native_leg *leg, const char *p, size_t n)
{
    leg->left -= (uint32_t)n;
    if (leg->n->ex.compares && !leg->n->ex.ours)
        agree_rows_add(&leg->rows, p, n);
    if (leg->left == 0)
        agree_rows_end(&leg->rows);
    tell(leg, p, n);
    if (leg->n->held.len > NATIVE_HELD_MAX && !leg->n->ex.ours) {
        client_send(leg->n->c, &leg->n->held);
        memset(&leg->n->held, 0, sizeof leg->n->held);
    }
}

static void on_error_answer(struct native_leg *leg, struct slice whole, struct slice body)
{
    const struct native *n = leg->n;
    struct errmsg m;
    bool is_sound = errmsg_decode(body, &m) == 0;

    if (leg->kind == 'E')
        return; /* what follows it in a pipeline says less */
    leg->kind = 'E';
    if (leg->glue == GLUE_VALUES)
        leg->glue = GLUE_REFUSED;
    buf_clear(&leg->error);
    m.whole = whole;
    if (n->ex.ours || n->ex.is_batch || n->ex.is_call ||
        !client_failed_put(&leg->error, &m, n->text))
        buf_put(&leg->error, whole.p, whole.n);
    if (leg->glue >= GLUE_BEGIN && leg->glue <= GLUE_BEGUN && is_sound)
        native_begin_put_error(leg, &leg->error);
    if (is_sound)
        buf_printf(&leg->said, "%.*s: %.*s", (int)m.sqlstate.n, m.sqlstate.p, (int)m.message.n,
            m.message.p);
    /* What ends its connection is not the client's: the loss is told. */
    if (!is_sound || !(slice_eq_str(m.severity, "FATAL") || slice_eq_str(m.severity, "PANIC")))
        tell(leg, leg->error.data, leg->error.len);
}

/* The client is told that its transaction is committed when it is, everywhere. */
static void tell_commit(struct native_leg *leg)
{
    struct buf out = {0};

    wire_put_command_complete(&out, "COMMIT");
    tell(leg, out.data, out.len);
    buf_free(&out);
}

/* A row of an answer for us. */
static void keep_row(struct native *n, struct slice body)
{
    buf_put_u32(&n->rows, (uint32_t)body.n);
    buf_put(&n->rows, body.p, body.n);
}

/* An answer to what stands in front of what was asked; false: it is none. */
static bool on_front(struct native_leg *leg, char type, struct slice body)
{
    if (leg->glue == GLUE_NUMBERS && type != BE_ERROR) { /* BEGIN, and a SELECT of one row */
        if (type == BE_DATA_ROW) {
            repl_numbers_compare(body, &leg->n->numbers);
            leg->glue = GLUE_BEGIN;
        }
        return true;
    }
    if (leg->glue == GLUE_BEGIN && type == BE_COMMAND_COMPLETE) {
        leg->glue = GLUE_BEGUN;
        return true;
    }
    if (leg->glue != GLUE_VALUES || type == BE_ERROR || type == BE_PARAMETER_STATUS ||
        type == BE_NOTIFICATION)
        return false;
    if (type == BE_DATA_ROW) {
        keep_row(leg->n, body);
    } else if (type == BE_READY) {
        leg->glue = GLUE_NONE;
        native_values_came(leg->n);
    }
    return true;
}

static void on_tag(struct native_leg *leg, struct slice body)
{
    uint64_t ntuples;

    if (leg->kind != 'E')
        leg->kind = 'C';
    if (!leg->n->ex.ours && leg->n->speaker == (int)(leg - leg->n->leg))
        leg->n->ex.tag_at = leg->n->held.len;
    if (body.n > 0 && agree_tag_tuples(slice_of(body.p, body.n - 1), &ntuples)) {
        leg->has_tuples = true;
        leg->ntuples += ntuples;
    }
}

static void on_whole(struct native_leg *leg, char type, struct slice whole)
{
    struct slice body = message_body(whole);

    if (on_front(leg, type, body))
        return;
    switch (type) {
    case BE_READY:
        return; /* told when all have answered */
    case BE_ERROR:
        on_error_answer(leg, whole, body);
        return;
    case BE_COMMAND_COMPLETE:
        on_tag(leg, body);
        if (leg->n->commit.ops->is_tag(leg->n, body)) {
            tell_commit(leg);
            return;
        }
        break;
    case BE_DATA_ROW:
        if (leg->n->ex.ours) {
            keep_row(leg->n, body);
        } else if (leg->n->ex.compares) {
            agree_rows_add(&leg->rows, whole.p, whole.n);
            agree_rows_end(&leg->rows);
        }
        break;
    case BE_FUNCTION_RESULT:
        leg->kind = type;
        agree_rows_add(&leg->rows, whole.p, whole.n);
        agree_rows_end(&leg->rows);
        break;
    case BE_PARAMETER_STATUS:
    case BE_NOTIFICATION:
        if (leg == &leg->n->leg[leg->n->main]) {
            if (leg->n->step == STEP_IDLE)
                client_pass_reply(leg->n->c, leg->link, whole.p, whole.n);
            else
                buf_put(&leg->n->held, whole.p, whole.n);
        }
        return;
    default:
        leg->nchanges += type == BE_PARSE_COMPLETE || type == BE_CLOSE_COMPLETE;
        if (leg->kind == 0)
            leg->kind = type;
        break;
    }
    tell(leg, whole.p, whole.n);
}

/* Rows are passed on as they come; all else is seen whole. */
static const char *take_message(struct native_leg *leg, const char *p, const char *end)
{
    size_t n = (size_t)(end - p);
    size_t bytes;

    if (leg->part.len > 0 && leg->part.len < PROTO_HEADER_BYTES) {
        size_t lack = PROTO_HEADER_BYTES - leg->part.len;

        lack = lack > n ? n : lack;
        buf_put(&leg->part, p, lack);
        return p + lack;
    }
    if (leg->part.len == 0 && n < PROTO_HEADER_BYTES) {
        buf_put(&leg->part, p, n);
        return end;
    }
    bytes = message_bytes(leg->part.len > 0 ? leg->part.data : p);
    if (leg->part.len == 0 && (*p == BE_DATA_ROW || *p == BE_COPY_DATA) && !leg->n->ex.ours &&
        leg->glue != GLUE_VALUES && leg->glue != GLUE_NUMBERS) {
        size_t take = n < bytes ? n : bytes;

        leg->left = (uint32_t)bytes;
        tell_rows(leg, p, take);
        return p + take;
    }
    if (leg->part.len == 0 && n >= bytes) {
        on_whole(leg, *p, slice_of(p, bytes));
        return p + bytes;
    }
    bytes -= leg->part.len;
    bytes = bytes > n ? n : bytes;
    buf_put(&leg->part, p, bytes);
    if (leg->part.len == message_bytes(leg->part.data)) {
        struct buf whole = leg->part;

        memset(&leg->part, 0, sizeof leg->part);
        on_whole(leg, whole.data[0], buf_slice(&whole));
        buf_free(&whole);
    }
    return p + bytes;
}

static void leg_on_bytes(void *owner, struct link *link, const char *p, size_t n)
{
    struct native_leg *leg = owner;
    const char *end = p + n;

    if (link != leg->link || link->epoch != leg->epoch) {
        link->be->epoch_mismatches++;
        log_at_detail(LVL_ERROR, NULL,
            "This must not happen: please report it, with the lines before.",
            "a reply met another client: dropped");
        link_close(link);
        return;
    }
    if (leg->n->step == STEP_QUICK && leg->is_asked) {
        client_pass_reply(leg->n->c, link, p, n);
        return;
    }
    while (p < end) {
        if (leg->left > 0) {
            size_t take = (size_t)(end - p) < leg->left ? (size_t)(end - p) : leg->left;

            tell_rows(leg, p, take);
            p += take;
        } else {
            p = take_message(leg, p, end);
        }
    }
}

/* ---- what links tell ---- */

static void leg_on_auth(void *owner, struct link *link, const char *msg, size_t n)
{
    struct native_leg *leg = owner;

    (void)link;
    if (message_is_auth_ok(msg, n))
        return;
    client_end_text(
        leg->n->c, "28000", "node %d asks for a password that is not known here", leg->node);
}

static void leg_on_login_done(void *owner, struct link *link)
{
    struct native_leg *leg = owner;

    (void)link;
    leg_is_ready(leg);
    go_on_opening(leg->n);
}

/* The answer to a read that needed no round. */
HOT static void quick_ended(struct native_leg *leg)
{
    leg->is_asked = false;
    native_prepared_settle_lone(leg->n, leg->link);
    if (leg->n->held.len > 0) /* what the main node said beside it */
        client_send(leg->n->c, &leg->n->held);
    native_local_done(leg->n);
}

static void leg_on_quiet(void *owner, struct link *link)
{
    struct native_leg *leg = owner;
    struct client *c = leg->n->c;

    if (leg->n->step == STEP_QUICK && leg->is_asked)
        quick_ended(leg);
    else if (leg->n->step == STEP_COPY)
        leg->n->copies->broke(leg);
    else if (!leg->is_asked && link == client_link(c) && client_is_parked(c) &&
             leg->n->step == STEP_IDLE)
        client_unpark(c);
    else
        leg_answered(leg);
}

/* The leg's server waits for the data of a COPY. */
static void leg_on_no_wait(void *owner, struct link *link)
{
    struct native_leg *leg = owner;

    if (expect_is_copying(&link->expect))
        leg_answered(leg);
}

static void leg_on_parameter(void *owner, struct link *link, struct slice name, struct slice value)
{
    struct native_leg *leg = owner;

    (void)link;
    if (leg == &leg->n->leg[leg->n->main] && slice_ieq_str(name, "application_name"))
        client_row_application(leg->n->c, value);
}

static bool leg_on_error(void *owner, struct link *link, const struct errmsg *m)
{
    struct native_leg *leg = owner;
    struct native *n = leg->n;
    bool is_last = slice_eq_str(m->severity, "FATAL") || slice_eq_str(m->severity, "PANIC");

    if (leg == &n->leg[n->main] && is_last) {
        if (n->last_words == NULL)
            n->last_words = mem_alloc(sizeof *n->last_words);
        err_clear(n->last_words);
        errmsg_to_err(m, n->last_words);
    }
    count_statement(n->ss, link->pool->cluster_node, COUNT_ERROR);
    return is_last && leg->is_asked && n->step == STEP_QUICK; /* the loss is told */
}

static void leg_on_own_row(void *owner, struct link *link, struct slice body)
{
    struct native_leg *leg = owner;

    (void)link;
    if (leg == &leg->n->leg[leg->n->main])
        repl_numbers_take_row(leg->n->arena, body, &leg->n->numbers);
    else if (leg->front > 0)
        repl_numbers_compare(body, &leg->n->numbers);
    leg->front = 0;
}

static void leg_on_drained(void *owner, struct link *link)
{
    struct native_leg *leg = owner;

    (void)link;
    for (unsigned i = 0; i < leg->n->nlegs; i++) {
        if (native_copies(&leg->n->leg[i]) && stream_is_clogged(&leg->n->leg[i].link->stream))
            return; /* the data of a COPY goes to all */
    }
    client_read_on(leg->n->c);
}

/* What the main node was about to do may be done for good, or part of it. */
static bool may_be_done(const struct native *n)
{
    bool may_commit = (n->step == STEP_MAIN || n->step == STEP_COMMITTED) && n->place.commits > 0;

    return n->step == STEP_FIRST_END || n->ex.is_commit || (may_commit && !n->wrapped);
}

/* The main node's own words, if nothing of what runs is done for good: "terminated" behind a COMMIT
 * that is done would be taken for one that is not. */
static struct err why_it_ends(
    const struct native *n, const struct link *link, const struct err *err)
{
    bool is_undone = !may_be_done(n) && (n->leg[n->main].is_asked || link->tx_status != 'I');

    return n->last_words != NULL && (n->step == STEP_IDLE || is_undone) ? *n->last_words : *err;
}

static void leg_on_lost(void *owner, struct link *link, const struct err *err, bool told)
{
    struct native_leg *leg = owner;
    struct native *n = leg->n;
    struct client *c = n->c;
    struct err why;
    bool is_torn =
        leg->is_asked && n->speaker == (int)(leg - n->leg) &&
        (leg->left > 0 || (n->step == STEP_QUICK && link->body_left > 0 && !link->swallow_body));

    (void)told;
    sessions_suspect_node(n->ss, leg->node);
    if (leg == &n->leg[n->main]) {
        leg->link = NULL;
        leg->phase = LEG_NONE; /* nobody looks for its answer behind the session */
        why = why_it_ends(n, link, err);
        client_lose_link(c);
        CLIENT_LOG(c, LVL_LOG, "session of user \"%s\" ends: %s", client_pool(c)->names, why.msg);
        if (n->commit.decision == NULL && n->step != STEP_GATE && may_be_done(n))
            native_detach(n, leg, "it was lost while it committed");
        client_end(c, &why);
        return;
    }
    CLIENT_LOG(c, LVL_LOG, "connection to node %d was lost: %s", leg->node, err->msg);
    leg->link = NULL;
    leg->is_lost = true;
    native_leg_drop(leg, false);
    if (n->step > STEP_OPEN)
        n->gone |= 1U << (leg - n->leg); /* also who was not asked: it is passed over from now on */
    if (n->step == STEP_OPEN)
        return; /* tried again, or the view says that it is down */
    if (is_torn)
        client_end(c, NULL); /* what comes next would be taken for the rest of a message */
    else if (n->step == STEP_COPY)
        leg->n->copies->broke(leg);
    else
        leg_answered(leg);
}

const struct link_owner_ops native_link_ops = {
    .on_auth = leg_on_auth,
    .on_login_done = leg_on_login_done,
    .on_bytes = leg_on_bytes,
    .on_quiet = leg_on_quiet,
    .on_settled = leg_on_quiet,
    .on_no_wait = leg_on_no_wait,
    .on_parameter = leg_on_parameter,
    .on_error = leg_on_error,
    .on_own_row = leg_on_own_row,
    .on_drained = leg_on_drained,
    .on_lost = leg_on_lost,
};
