/* SPDX-License-Identifier: PostgreSQL
 * link_cancel.c: forwards a cancel request to the server of a link.
 * The request travels on a connection of its own, and the server acts on it some time after it has
 * closed that connection. Until then the link is marked in_cancel and is lent to nobody: a cancel
 * never hits another client's query. A server process that has not read the query yet takes no
 * notice of it: as long as the same exchange runs on, it is told again a few times.
 * Whoever asked hears of it (its connection is closed) when the request has been sent, also where
 * it has to wait for messages of ours: else it would hit what the client sends next, its ROLLBACK.
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
/* How often is looked whether one that had to wait is over. */
#define LOOK_MS 2

struct cancel {
    struct stream stream;
    struct timer timer;
    struct dial *dial;
    struct backend *be;
    struct link *link;
    uint64_t link_id; /* another link may come to lie at the address of one that is gone */
    int canceller_fd;
    int node;
    bool wants_tls; /* as its link */
    bool is_sent;
    bool marks;     /* it has set link->in_cancel */
    uint8_t nrests; /* it was told so often, and nothing came of it yet */
    uint32_t last;  /* the op with which ends what is to be cancelled */
    struct buf packet;
};

/* Who asked for one that has to wait for messages of ours. */
struct canceller {
    struct timer timer;
    struct backend *be;
    struct link *link;
    uint64_t link_id;
    uint64_t epoch; /* of the loan */
    int fd;
};

/* The link may be gone meanwhile: look for it among the living. It does not become idle before. */
static struct link *find_link(const struct backend *be, struct link *link, uint64_t id)
{
    struct list *n;

    LIST_FOREACH(n, &be->links)
    {
        if (LIST_ENTRY(n, struct link, be_node) == link && link->id == id)
            return link;
    }
    return NULL;
}

static struct link *cancel_find_link(const struct cancel *c)
{
    return find_link(c->be, c->link, c->link_id);
}

/* The client may hear of it, and the link be lent again. */
static void cancel_is_told(struct cancel *c)
{
    struct link *link = cancel_find_link(c);

    timer_stop(c->be->loop, &c->timer);
    if (c->canceller_fd != -1)
        close(c->canceller_fd);
    c->canceller_fd = -1;
    if (link != NULL && c->marks) {
        link->in_cancel = false;
        if (link->phase == LINK_CLEANING && expect_is_quiet(&link->expect))
            link_clean_step(link);
    }
    c->marks = false;
}

static void cancel_free(struct cancel *c)
{
    cancel_is_told(c);
    c->be->ncancels--;
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

/* Not the next one of the client's: that nobody has cancelled. */
static bool still_runs(const struct link *link, const struct cancel *c)
{
    return link != NULL && link->phase == LINK_LENT && link->owner != NULL &&
           !expect_is_quiet(&link->expect) && !expect_exchange_is_ours(&link->expect) &&
           (int32_t)(c->last - expect_head_serial(&link->expect)) >= 0;
}

/* Nothing of ours is in front of it any more, and no request is under way. */
static bool is_over(const struct canceller *k)
{
    const struct link *link = find_link(k->be, k->link, k->link_id);

    return link == NULL || link->phase != LINK_LENT || link->epoch != k->epoch ||
           (!link->loan.cancel_due && !link->in_cancel);
}

static void canceller_look(struct timer *t)
{
    struct canceller *k = LIST_ENTRY(t, struct canceller, timer);

    if (!is_over(k)) {
        timer_start(k->be->loop, &k->timer, LOOK_MS);
        return;
    }
    close(k->fd);
    k->be->ncancels--;
    mem_free(k);
}

static void canceller_wait(struct link *link, int fd)
{
    struct canceller *k = mem_alloc_zero(sizeof *k);

    k->be = link->be;
    k->link = link;
    k->link_id = link->id;
    k->epoch = link->epoch;
    k->fd = fd;
    k->be->ncancels++;
    timer_init(&k->timer, canceller_look);
    timer_start(k->be->loop, &k->timer, LOOK_MS);
}

static void tell_failed(const struct cancel *c, const char *why)
{
    log_caused_detail(LVL_WARNING, NULL,
        "What the client ran goes on at the server: pg_cancel_backend there, or KILL CLIENT here.",
        "cancel request could not be forwarded to node %d: %s", c->node, why);
}

static void cancel_send(struct cancel *c)
{
    c->is_sent = true;
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

    if (!c->is_sent) {
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
    timer_init(&c->timer, cancel_on_rested);
    timer_start(c->be->loop, &c->timer, (int64_t)FIRST_REST_MS << c->nrests++);
}

static void cancel_on_closed(struct stream *s)
{
    struct cancel *c = LIST_ENTRY(s, struct cancel, stream);

    cancel_is_told(c);
    if (!c->is_sent || c->nrests == RESTS_MAX || !still_runs(cancel_find_link(c), c)) {
        cancel_free(c);
        return;
    }
    cancel_rest(c);
}

static const struct stream_ops cancel_ops = {.on_readable = cancel_on_readable,
    .on_drained = cancel_on_drained,
    .on_closed = cancel_on_closed};

static void cancel_on_timer(struct timer *t)
{
    struct cancel *c = LIST_ENTRY(t, struct cancel, timer);
    struct link *link = cancel_find_link(c);

    if (link != NULL && c->is_sent)
        link->is_retired = true; /* the server may read it yet, and strike whoever is there then */
    tell_failed(c, "the server did not take it within cancel_wait_timeout");
    if (c->dial != NULL) {
        dial_cancel(&c->dial);
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

static void cancel_dial(struct cancel *c, struct link *link)
{
    const struct backend *be = c->be;
    char peer[NET_PEER_BYTES];
    const char *host = "";
    int64_t limit_ms = 0;
    int port = 0;

    stream_init_closed(&c->stream);
    c->is_sent = false;
    c->marks = true;
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
    struct link *link = cancel_find_link(c);

    if (!still_runs(link, c) || (link->in_cancel && c->nrests == RESTS_MAX))
        cancel_free(c);
    else if (link->in_cancel)
        cancel_rest(c);
    else
        cancel_dial(c, link);
}

void link_cancel_owner(struct link *link, int fd)
{
    link->loan.cancel_due = expect_exchange_is_ours(&link->expect);
    if (!link->loan.cancel_due && (link->expect.len > 0 || link->expect.lost))
        link_cancel(link, fd);
    else if (link->loan.cancel_due && fd != -1 && link->be->ncancels < CANCELS_MAX)
        canceller_wait(link, fd);
    else if (fd != -1)
        close(fd);
}

void link_cancel(struct link *link, int fd)
{
    struct backend *be = link->be;
    struct cancel *c;

    if (link->key_len == 0 || (link->in_cancel && be->ncancels >= CANCELS_MAX)) {
        if (fd != -1)
            close(fd);
        return;
    }
    c = mem_alloc_zero(sizeof *c);
    c->be = be;
    c->link = link;
    c->link_id = link->id;
    c->canceller_fd = fd;
    c->node = link->pool->cluster_node;
    c->wants_tls = stream_is_tls(&link->stream);
    c->last = exchange_end(&link->expect);
    startup_encode_cancel(&c->packet, link->server_pid, link_key(link));
    be->ncancels++;
    if (link->in_cancel) {
        stream_init_closed(&c->stream);
        cancel_rest(c); /* the one under way may be for what ran before */
    } else {
        cancel_dial(c, link);
    }
}
