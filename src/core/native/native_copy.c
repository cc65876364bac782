/* SPDX-License-Identifier: PostgreSQL
 * native_copy.c: COPY FROM STDIN. Runs in: workers.
 *
 * When all nodes wait for data, the client's goes to all of them as it comes, with the columns
 * filled in that would differ. Its end is told to the main node first and to the others when that
 * has answered; whoever breaks it off ends it on all, and what was copied is undone with the
 * transaction, ours or the client's. */
#include "config.h"

#include <string.h>

#include "base/arena.h"
#include "wire/message.h"
#include "wire/writer.h"

#include "native_int.h"

static const char copy_done[] = {FE_COPY_DONE, 0, 0, 0, 4};

static void put_copy_fail(struct buf *out)
{
    uint32_t start = wire_begin(out, FE_COPY_FAIL);

    buf_put_cstr(out, "the COPY ended on another node");
    wire_end(out, start);
}

/* ---- breaking off ---- */

/* What the client is told is in n->held. */
static void stop_copies(struct native *n)
{
    native_round(n, STEP_COPY_STOP, true, -1);
    for (unsigned i = 0; i < n->nlegs; i++) {
        struct native_leg *leg = &n->leg[i];
        struct buf out = {0};

        if (!native_copies(leg))
            continue;
        put_copy_fail(&out);
        leg->is_asked = true;
        link_expect(leg->link, OP_COPY_END);
        (void)link_send(leg->link, out.data, out.len);
        buf_free(&out);
    }
    native_wait(n);
}

static void copy_stopped(struct native *n)
{
    for (unsigned i = n->nlegs; !n->wrapped && i-- > 0;) {
        if (native_is_up(&n->leg[i]) && n->leg[i].link->tx_status == 'E')
            n->failed = (int)i;
    }
    native_fail(n);
}

static void stop_for(struct native *n, const struct native_leg *leg)
{
    struct err err;

    buf_clear(&n->held);
    if (leg->error.len > 0 && !leg->is_lost) {
        buf_put(&n->held, leg->error.data, leg->error.len);
    } else {
        err_clear(&err);
        err_set(&err, "40000", "node %d could not go on with the COPY", leg->node);
        err_hint(&err, "Roll back; SHOW POOL_NODES and SHOW POOL_EVENTS tell what became of it.");
        wire_put_err(&n->held, &err);
    }
    stop_copies(n);
}

/* A node that takes part and does not wait for data; NULL: there is none. */
static const struct native_leg *broken_leg(const struct native *n, unsigned but)
{
    for (unsigned i = 0; i < n->nlegs; i++) {
        const struct native_leg *leg = &n->leg[i];

        if (i != but &&
            (leg->is_lost || (n->gone >> i & 1) != 0 || (native_is_up(leg) && !native_copies(leg))))
            return leg;
    }
    return NULL;
}

static void copy_broke(struct native_leg *leg)
{
    if (leg->n->step == STEP_COPY)
        stop_for(leg->n, leg);
}

/* ---- data ---- */

static void send_to_all(struct native *n, const char *p, size_t len)
{
    bool is_clogged = false;

    for (unsigned i = 0; i < n->nlegs; i++) {
        struct native_leg *leg = &n->leg[i];

        if (native_copies(leg) && link_send(leg->link, p, len) == 0)
            is_clogged = stream_is_clogged(&leg->link->stream) || is_clogged;
    }
    if (is_clogged)
        client_pause(n->c);
}

static void send_rows(struct native *n, struct buf *rows)
{
    struct buf out = {0};
    uint32_t start = wire_begin(&out, FE_COPY_DATA);

    buf_put(&out, rows->data, rows->len);
    wire_end(&out, start);
    if (rows->len > 0)
        send_to_all(n, out.data, out.len);
    buf_free(&out);
    buf_free(rows);
}

static void end_on(struct native_leg *leg, struct slice message)
{
    leg->is_asked = true;
    leg->did = true;
    link_expect(leg->link, OP_COPY_END);
    (void)link_send(leg->link, message.p, message.n);
}

/* CopyDone, or CopyFail, which the main node answers with an error of its own. */
static void end_on_main(struct native *n, struct slice message)
{
    struct buf rest = {0};

    if (n->copy != NULL && message.p[0] == FE_COPY_DONE)
        repl_copy_end(n->copy, &rest);
    if (rest.len > 0)
        send_rows(n, &rest);
    native_round(n, STEP_COPY_END, false, (int)n->main);
    end_on(&n->leg[n->main], message);
}

static void copy_ended(struct native *n)
{
    const struct native_leg *broken = broken_leg(n, n->main);

    if (n->leg[n->main].kind == 'E') {
        stop_copies(n); /* its error is held */
        return;
    }
    if (broken != NULL) {
        stop_for(n, broken);
        return;
    }
    native_round(n, STEP_OTHERS, false, (int)n->main);
    for (unsigned i = 0; i < n->nlegs; i++) {
        if (i != n->main && native_is_up(&n->leg[i]))
            end_on(&n->leg[i], slice_of(copy_done, sizeof copy_done));
    }
    native_wait(n);
}

/* Takes the messages of the data from n->in, which holds them behind the exchange. */
static void copy_feed(struct native *n)
{
    uint32_t at = n->scanned;
    uint32_t run = at;
    char last = FE_COPY_DATA;
    struct buf rows = {0};
    struct buf end = {0};

    while (last == FE_COPY_DATA && n->in.len - at >= PROTO_HEADER_BYTES) {
        const char *p = n->in.data + at;
        size_t bytes = message_bytes(p);

        if (!message_may_be(bytes) || bytes > NATIVE_IN_MAX) {
            buf_free(&rows);
            buf_free(&end);
            client_end_text(n->c, "54000", "a row is too long for native replication");
            return;
        }
        if (n->in.len - at < bytes)
            break;
        last = *p;
        if (last == FE_COPY_DATA && n->copy != NULL)
            repl_copy_fill(n->copy, message_body(slice_of(p, bytes)), &rows);
        if (last == FE_COPY_DONE || last == FE_COPY_FAIL)
            buf_put(&end, p, bytes);
        if (last != FE_COPY_DATA && n->copy == NULL && at > run)
            send_to_all(n, n->in.data + run, at - run);
        at += (uint32_t)bytes;
        if (last != FE_COPY_DATA)
            run = at;
        if (last == FE_FLUSH || last == FE_SYNC)
            last = FE_COPY_DATA; /* of no meaning here, as for a server */
    }
    if (n->copy != NULL)
        send_rows(n, &rows);
    else if (at > run)
        send_to_all(n, n->in.data + run, at - run);
    memmove(n->in.data + n->scanned, n->in.data + at, n->in.len - at);
    n->in.len -= at - n->scanned;
    if (end.len > 0)
        end_on_main(n, buf_slice(&end));
    else if (last != FE_COPY_DATA)
        client_end_text(n->c, "08P01", "unexpected message type 0x%02X during COPY from stdin",
            (unsigned char)last);
    buf_free(&end);
}

/* What is written into each row, as the main node said. */
static bool prepare_rows(struct native *n)
{
    const struct repl_copy_plan *plan = n->plan.copy;
    struct buf row = {0};
    struct buf head = {0};

    n->copy = NULL;
    if (plan == NULL)
        return true;
    for (uint32_t i = 0; i < plan->n; i++) {
        if (n->values[i].p == NULL)
            return false;
    }
    n->copy = arena_alloc_zero(n->arena, sizeof *n->copy);
    n->copy->form = plan->form;
    repl_copy_put_row(&plan->form, n->values, plan->n, &row);
    repl_copy_put_row(&plan->form, plan->names, plan->n, &head);
    n->copy->row = slice_of(arena_strndup(n->arena, row.data, row.len), row.len);
    n->copy->header = slice_of(arena_strndup(n->arena, head.data, head.len), head.len);
    buf_free(&row);
    buf_free(&head);
    return true;
}

static void copy_begin(struct native *n)
{
    const struct native_leg *broken = broken_leg(n, n->nlegs);
    struct err err;
    struct buf held = n->held;

    if (broken != NULL) {
        stop_for(n, broken);
        return;
    }
    if (!prepare_rows(n)) {
        err_clear(&err);
        err_set(&err, "0A000", "a default that is NULL cannot be replicated with COPY");
        buf_clear(&n->held);
        wire_put_err(&n->held, &err);
        stop_copies(n);
        return;
    }
    n->step = STEP_COPY;
    memset(&n->held, 0, sizeof n->held);
    client_send(n->c, &held); /* it begins */
    client_resume(n->c);
    copy_feed(n);
}

const struct native_copy_ops native_copy_ops = {
    .begin = copy_begin,
    .feed = copy_feed,
    .broke = copy_broke,
    .ended = copy_ended,
    .stopped = copy_stopped,
};
