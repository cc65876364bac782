/* SPDX-License-Identifier: PostgreSQL
 * link_cancel.c: forwards a cancel request to the server of a link.
 * The request travels on a connection of its own, and the server acts on it some time after it has
 * closed that connection. Until then the link is marked in_cancel and is lent to nobody: a cancel
 * never hits another client's query. A server process that has not read the query yet takes no
 * notice of it: as long as the same exchange runs on, it is told again a few times.
 * Whoever asked hears of it (its connection is closed) when what it was for has ended, or nothing
 * is told the server about it any more: else it might hit what the client sends next, its ROLLBACK.
 */
#include "config.h"

#include <string.h>
#include <unistd.h>

#include "backend/pool.h"
#include "base/log.h"
#include "base/mem.h"
#include "config/conf.h"
#include "net/dial.h"
#include "wire/startup.h"

#include "link_int.h"

#define RESTS_MAX     3
#define FIRST_REST_MS 100 /* each one is twice as long */
/* With so many under way a link has one at a time. */
#define CANCELS_MAX 100

enum cancel_phase {
    CANCEL_DUE,     /* nothing was told: what runs is ours, and in front of what it is for */
    CANCEL_DIALING, /* the connection is being opened; from here the link is in_cancel */
    CANCEL_SENT,    /* the server has not closed it yet */
    CANCEL_OVER,    /* it has; the link is not in_cancel any more */
    CANCEL_RESTS    /* it is told again, should what it is for still run */
};

struct cancel {
    struct list be_node; /* be->cancels */
    struct stream stream;
    struct timer timer;
    struct dial *dial;
    struct backend *be;
    struct link *link; /* NULL: it is gone */
    int canceller_fd;
    int node;
    uint8_t phase;  /* enum cancel_phase */
    uint8_t nrests; /* it was told so often, and nothing came of it yet */
    bool wants_tls; /* as its link */
    uint32_t last;  /* the op with which ends what is to be cancelled */
    struct buf packet;
};

static bool cancel_waits(const struct cancel *c)
{
    return c->phase == CANCEL_DUE || c->phase == CANCEL_RESTS;
}

/* The link may be lent again. May end it. */
static void cancel_unmark(struct cancel *c)
{
    struct link *link = c->link;

    timer_stop(c->be->loop, &c->timer);
    c->phase = CANCEL_OVER;
    if (link == NULL)
        return;
    link->in_cancel = false;
    if (link->phase == LINK_CLEANING && expect_is_quiet(&link->expect))
        link_clean_step(link);
}

static void cancel_free(struct cancel *c)
{
    timer_stop(c->be->loop, &c->timer);
    list_remove(&c->be_node);
    c->be->ncancels--;
    if (c->canceller_fd != -1)
        close(c->canceller_fd);
    buf_free(&c->packet);
    mem_free(c);
}

/* The end of the query or sequence that the link is at. */
static uint32_t exchange_end(const struct expect *owed)
{
    unsigned at;
    unsigned op;

    for (at = 0; at + 1 < owed->len; at++) {
        op = expect_peek(owed, at) & OP_MASK;
        if (op == OP_SYNC || op == OP_QUERY)
            break;
    }
    return expect_head_serial(owed) + at;
}

/* Whether what was cancelled still runs: not the client's next statement, which nobody has
 * cancelled. */
static bool still_runs(const struct cancel *c)
{
    const struct link *link = c->link;

    return link != NULL && link->phase == LINK_LENT && link->owner != NULL &&
           !expect_is_quiet(&link->expect) && !expect_exchange_is_ours(&link->expect) &&
           (int32_t)(c->last - expect_head_serial(&link->expect)) >= 0;
}

/* The server waits until its client reads: it has read what it runs, and knows of the cancel. */
static bool is_answering(const struct link *link)
{
    return !stream_is_reading(&link->stream);
}

static void tell_failed(const struct cancel *c, const char *why)
{
    log_caused_detail(LVL_WARNING, NULL,
        "What the client ran goes on at the server: pg_cancel_backend there, or KILL CLIENT here.",
        "cancel request could not be forwarded to node %d: %s", c->node, why);
}

static void cancel_send(struct cancel *c)
{
    c->phase = CANCEL_SENT;
    if (stream_send(&c->stream, c->packet.data, c->packet.len) == -1)
        stream_close(&c->stream);
}

/* The request is as secret as the session: with TLS, or not at all. */
static void cancel_ask_tls(struct cancel *c)
{
    enum backend_tls_verdict v;
    struct err err;

    err_clear(&err);
    v = backend_tls_step(c->be, c->node, &c->stream, &err);
    if (v == BACKEND_TLS_READY)
        cancel_send(c);
    if (v == BACKEND_TLS_FAILED || v == BACKEND_TLS_REFUSED) {
        tell_failed(c, v == BACKEND_TLS_REFUSED ? "it does not support TLS any more" : err.msg);
        stream_close(&c->stream);
    }
}

static void cancel_on_readable(struct stream *s)
{
    struct cancel *c = LIST_ENTRY(s, struct cancel, stream);
    char ignored[64];

    if (c->phase == CANCEL_DIALING) {
        cancel_ask_tls(c);
        return;
    }
    if (stream_recv(s, ignored, sizeof ignored) == -1)
        stream_close(&c->stream);
}

static void cancel_on_drained(struct stream *s)
{
    (void)s;
}

static void cancel_on_rested(struct timer *t);

static void cancel_rest(struct cancel *c)
{
    c->phase = CANCEL_RESTS;
    c->link->loan.cancel_due = true;
    timer_init(&c->timer, cancel_on_rested);
    timer_start(c->be->loop, &c->timer, (int64_t)FIRST_REST_MS << c->nrests++);
}

static void cancel_on_closed(struct stream *s)
{
    struct cancel *c = LIST_ENTRY(s, struct cancel, stream);
    bool is_sent = c->phase == CANCEL_SENT;

    cancel_unmark(c);
    if (is_sent && c->nrests < RESTS_MAX && still_runs(c) && !is_answering(c->link))
        cancel_rest(c);
    else
        cancel_free(c);
}

static const struct stream_ops cancel_ops = {.on_readable = cancel_on_readable,
    .on_drained = cancel_on_drained,
    .on_closed = cancel_on_closed};

static void cancel_on_timer(struct timer *t)
{
    struct cancel *c = LIST_ENTRY(t, struct cancel, timer);

    if (c->link != NULL && c->phase == CANCEL_SENT)
        c->link->is_retired = true; /* the server may read it yet, and strike whoever is there */
    tell_failed(c, "the server did not take it within cancel_wait_timeout");
    if (c->dial != NULL) {
        dial_cancel(&c->dial);
        cancel_unmark(c);
        cancel_free(c);
    } else {
        stream_close(&c->stream);
    }
}

static void cancel_on_dialed(int fd, const struct err *err, void *ctx)
{
    struct cancel *c = ctx;
    struct err why;

    c->dial = NULL;
    if (fd == -1) {
        tell_failed(c, err->msg);
        cancel_unmark(c);
        cancel_free(c);
        return;
    }
    stream_open(c->be->loop, &c->stream, fd, &cancel_ops);
    err_clear(&why);
    if (!c->wants_tls)
        cancel_send(c);
    else if (backend_tls_begin(c->be, c->node, &c->stream, &why) == -1) {
        tell_failed(c, why.msg);
        stream_close(&c->stream);
    }
}

static void cancel_dial(struct cancel *c)
{
    struct link *link = c->link;
    const struct backend *be = c->be;
    char peer[NET_PEER_BYTES];
    const char *host = "";
    int64_t limit_ms = 0;
    int port = 0;

    stream_init_closed(&c->stream);
    c->phase = CANCEL_DIALING;
    link->in_cancel = true;
    timer_init(&c->timer, cancel_on_timer);
    if (be->conf->cancel_wait_timeout_ms > 0) /* 0: for ever */
        timer_start(be->loop, &c->timer, be->conf->cancel_wait_timeout_ms);
    (void)pools_conf_address(be->conf, c->node, &host, &port, &limit_ms);
    if (net_peer(stream_fd(&link->stream), peer, &port))
        host = peer; /* its name may lead to another server */
    c->dial = dial_start(be->loop, host, port, limit_ms, cancel_on_dialed, c);
}

static void cancel_on_rested(struct timer *t)
{
    struct cancel *c = LIST_ENTRY(t, struct cancel, timer);

    if (!still_runs(c) || is_answering(c->link) || (c->link->in_cancel && c->nrests == RESTS_MAX))
        cancel_free(c);
    else if (c->link->in_cancel)
        cancel_rest(c);
    else
        cancel_dial(c);
}

/* The exchange at the head is to be cancelled. */
static void cancel_start(struct cancel *c)
{
    c->last = exchange_end(&c->link->expect);
    if (c->link->in_cancel)
        cancel_rest(c); /* the one under way may be for what ran before */
    else
        cancel_dial(c);
}

/* NULL: there is no more to be told; `fd` is closed. */
static struct cancel *cancel_new(struct link *link, int fd)
{
    struct backend *be = link->be;
    struct cancel *c;

    if (link->key_len == 0 ||
        ((link->in_cancel || link->loan.cancel_due) && be->ncancels >= CANCELS_MAX)) {
        if (fd != -1)
            close(fd);
        return NULL;
    }
    c = mem_alloc_zero(sizeof *c);
    c->be = be;
    c->link = link;
    c->canceller_fd = fd;
    c->node = link->pool->cluster_node;
    c->wants_tls = stream_is_tls(&link->stream);
    stream_init_closed(&c->stream);
    timer_init(&c->timer, cancel_on_timer);
    startup_encode_cancel(&c->packet, link->server_pid, link_key(link));
    list_push_back(&be->cancels, &c->be_node);
    be->ncancels++;
    return c;
}

void link_cancel(struct link *link, int fd)
{
    struct cancel *c = cancel_new(link, fd);

    if (c != NULL)
        cancel_start(c);
}

void link_cancel_owner(struct link *link, int fd)
{
    struct cancel *c;

    c = cancel_new(link, fd);
    if (c == NULL)
        return;
    link->loan.cancel_due = true;
    link_cancel_look(link);
}

/* One that waited for an end of what the link runs. */
static void cancel_look(struct cancel *c)
{
    const struct link *link = c->link;

    if (c->phase == CANCEL_RESTS) {
        if (!still_runs(c))
            cancel_free(c);
    } else if (link->phase != LINK_LENT || link->owner == NULL ||
               (link->expect.len == 0 && !link->expect.lost)) {
        cancel_free(c);
    } else if (!expect_exchange_is_ours(&link->expect)) {
        cancel_start(c);
    }
}

void link_cancel_look(struct link *link)
{
    struct list *n;
    struct list *tmp;
    struct cancel *c;

    link->loan.cancel_due = false;
    LIST_FOREACH_SAFE(n, tmp, &link->be->cancels)
    {
        c = LIST_ENTRY(n, struct cancel, be_node);
        if (c->link == link && cancel_waits(c))
            cancel_look(c);
    }
    LIST_FOREACH(n, &link->be->cancels)
    {
        c = LIST_ENTRY(n, struct cancel, be_node);
        if (c->link == link && cancel_waits(c))
            link->loan.cancel_due = true;
    }
}

void link_cancel_forget(struct link *link, bool is_gone)
{
    struct list *n;
    struct list *tmp;
    struct cancel *c;

    LIST_FOREACH_SAFE(n, tmp, &link->be->cancels)
    {
        c = LIST_ENTRY(n, struct cancel, be_node);
        if (c->link != link)
            continue;
        if (cancel_waits(c))
            cancel_free(c);
        else if (is_gone)
            c->link = NULL;
    }
}
