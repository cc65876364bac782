/* SPDX-License-Identifier: PostgreSQL
 * balance_reader.c: the life of a client's reader links, one per node: opened at the first read
 * that goes there, given back at the end or when they fail. Their failure is never the client's:
 * what a reader has not begun to answer is sent again on the client's own link. Runs in: workers.
 */
#include "config.h"

#include <string.h>

#include "base/hot.h"
#include "base/log.h"
#include "base/mem.h"
#include "wire/message.h"
#include "wire/writer.h"

#include "balance_int.h"

static const struct link_owner_ops reader_ops;

struct reader *balance_reader_at(const struct client *c, int node)
{
    const struct balance *b = c->balance;
    unsigned i;

    for (i = 0; i < b->own->nreaders; i++)
        if (b->own->reader[i]->node == node)
            return b->own->reader[i];
    return NULL;
}

struct reader *balance_reader_of_target(const struct client *c)
{
    const struct balance *b = c->balance;
    unsigned i;

    for (i = 0; c->target != c->link && i < b->own->nreaders; i++)
        if (b->own->reader[i]->link == c->target)
            return b->own->reader[i];
    return NULL;
}

static struct reader *reader_new(struct client *c, int node)
{
    struct balance *b = c->balance;
    struct reader *r;

    if (b->own->nreaders == BALANCE_MAX_READERS)
        return NULL;
    r = mem_alloc_zero(sizeof *r);
    r->client = c;
    r->node = node;
    r->bit = (uint64_t)1 << b->own->nreaders;
    pool_request_init(&r->req);
    b->own->reader = mem_resize(b->own->reader, (b->own->nreaders + 1) * sizeof b->own->reader[0]);
    b->own->reader[b->own->nreaders++] = r;
    return r;
}

void balance_drop_reader(struct client *c, struct reader *r, bool boundary)
{
    struct balance *b = c->balance;
    struct link *link = r->link;

    if (r->is_asking && b->asking == ASKING_CATALOGUE)
        balance_ask_lost(c);
    pool_request_cancel(&r->req);
    statements_forget_reader(c->statements, r->bit);
    balance_portals_forget(c, r);
    r->link = NULL;
    r->phase = READER_NONE;
    r->replayed = 0;
    r->is_asking = false;
    r->in_tx = false;
    if (b->own->home == r)
        b->own->home = NULL;
    if (link != NULL && c->target == link) {
        c->target = c->link;
        buf_free(&b->own->retry);
        buf_free(&b->own->early);
    }
    if (link != NULL)
        (c->leaves_traces ? link_release : link_release_untouched)(link, boundary);
    if (r->pool != NULL)
        pool_detach(r->pool);
    r->pool = NULL;
}

void balance_drop_readers(struct client *c, bool boundary)
{
    struct balance *b = c->balance;

    /* What is sent on a reader goes whole, but within its own transaction. */
    while (b->own->nreaders > 0) {
        struct reader *r = b->own->reader[--b->own->nreaders];

        balance_drop_reader(c, r, boundary);
        mem_free(r);
    }
}

/* It did not work out: reads stay on the own link for a while. */
static void reader_avoid(struct reader *r)
{
    r->avoid_until_us = loop_now_us(r->client->ss->loop) + BALANCE_RETRY_US;
}

static void reader_is_ready(struct reader *r)
{
    r->phase = READER_READY;
    r->epoch = r->link->epoch;
    r->replayed = 0;
    r->link->hide_parameters = true;
    link_row_update(r->link, r->client->row_index);
}

static enum balance_verdict reader_acquire(struct reader *r)
{
    struct client *c = r->client;

    client_auth_entitle(c, &r->req);
    switch (pool_acquire(&r->req)) {
    case ACQUIRE_GRANTED:
        r->link = r->req.link;
        reader_is_ready(r);
        return BALANCE_GO;
    case ACQUIRE_OPENING:
        r->link = r->req.link;
        r->epoch = r->link->epoch;
        r->phase = READER_OPENING;
        timer_start(c->ss->loop, &r->link->timer, BALANCE_LOGIN_MS);
        return BALANCE_PARK;
    case ACQUIRE_WAITING:
        break;
    }
    if (r->req.reason == WAIT_REASON_CONNECTING) {
        r->phase = READER_OPENING; /* one is being cleaned: it is ours in a moment */
        return BALANCE_PARK;
    }
    /* The node is full: the own link can answer now. */
    balance_drop_reader(c, r, true);
    reader_avoid(r);
    return BALANCE_GO;
}

static void reader_on_turn(struct pool_request *req)
{
    struct reader *r = req->owner;

    if (reader_acquire(r) == BALANCE_GO)
        client_unpark(r->client);
}

enum balance_verdict balance_open_reader(struct client *c, int node, struct reader **rp)
{
    struct reader *r = balance_reader_at(c, node);
    enum balance_verdict v;

    *rp = NULL;
    if (r == NULL)
        r = reader_new(c, node);
    if (r == NULL)
        return BALANCE_GO;
    /* It answers us first, or logs in: whatever woke the client meanwhile, that unparks it. */
    if (r->is_asking || r->phase == READER_OPENING)
        return BALANCE_PARK;
    if (r->phase == READER_READY) {
        *rp = r;
        return BALANCE_GO;
    }
    balance_drop_reader(c, r, true);
    if (loop_now_us(c->ss->loop) < r->avoid_until_us)
        return BALANCE_GO;
    r->pool = pool_attach(&c->ss->be, pool_user(c->pool), pool_database(c->pool), node);
    pool_request_init(&r->req);
    r->startup.version = c->link->version;
    r->startup.user = pool_user(c->pool);
    r->startup.database = pool_database(c->pool);
    r->startup.params = &c->balance->own->params;
    r->req.pool = r->pool;
    r->req.startup = &r->startup;
    r->req.no_patch = true;
    r->req.on_turn = reader_on_turn;
    r->req.owner = r;
    r->req.ops = &reader_ops;
    v = reader_acquire(r);
    if (r->phase == READER_READY)
        *rp = r;
    return v;
}

/* Login of a fresh reader: only a server that lets us in without asking will do, for the client has
 * nothing more to say. */
static void reader_on_auth(void *owner, struct link *link, const char *msg, size_t n)
{
    struct reader *r = owner;
    struct client *c = r->client;

    if (message_is_auth_ok(msg, n))
        return;
    balance_note_no_login(c, link);
    r->avoid_until_us = INT64_MAX;
    balance_drop_reader(c, r, false);
    client_unpark(c);
}

static void reader_on_login_done(void *owner, struct link *link)
{
    struct reader *r = owner;

    (void)link;
    reader_is_ready(r);
    client_unpark(r->client);
}

HOT static void reader_on_bytes(void *owner, struct link *link, const char *p, size_t n)
{
    struct reader *r = owner;
    struct client *c = r->client;
    struct balance *b = c->balance;
    size_t skip;

    if (link != r->link || link->epoch != r->epoch) {
        link->be->epoch_mismatches++;
        CLIENT_LOG(c, LVL_ERROR, "a reply of a reader met another client: dropped");
        link_close(link);
        return;
    }
    if (c->target != link) {
        if (b->own->home == r && c->target->body_left == 0)
            balance_pick_parameters(c, link, p, n, NULL); /* it was made to fail with its guest */
        return; /* a notice between two reads: not for the client */
    }
    if (!b->own->reply_begun) {
        skip = balance_notified_bytes(link, p, n); /* nobody has listened there, whatever it says */
        p += skip;
        n -= skip;
        if (balance_is_no_answer(p, n)) {
            buf_put(&b->own->early, p, n);
            return;
        }
        b->own->reply_begun = true;
        client_send(c, &b->own->early);
    }
    client_pass_reply(c, link, p, n);
}

HOT void balance_to_own(struct client *c)
{
    struct balance *b = c->balance;
    struct buf held = b->own->held;

    c->target = c->link;
    b->own->is_cut = false;
    b->own->reply_begun = false;
    balance_forget_retry(b->own);
    if (held.len > 0) {
        memset(&b->own->held, 0, sizeof b->own->held);
        client_send(c, &held);
    }
    if (c->link != NULL && !stream_lags(&c->stream))
        link_resume(c->link);
    client_read_on(c); /* the reader may not have read all: nobody waits for that */
}

/* The answer of a reader is complete. */
HOT static void reader_on_quiet(void *owner, struct link *link)
{
    struct reader *r = owner;
    struct client *c = r->client;
    struct balance *b = c->balance;

    if (r->is_asking && b->asking == ASKING_CATALOGUE) {
        r->is_asking = false;
        if (link_own_failed(link) && r->is_synced)
            b->rs.state_unknown = true; /* a setting could not be replayed */
        balance_ask_done(c, link);
        client_unpark(c);
        return;
    }
    if (r->is_asking) {
        balance_wait_answered(r);
        return;
    }
    statements_answered(c->statements, r->bit);
    link->see_tags = false;
    if (b->own->home == r && b->own->home_fails) {
        b->own->home_fails = false;
        link_forget_failure(link); /* as it was to */
    }
    if (c->target != link || c->body_left > 0)
        return; /* the rest of a message that began here is sent here: balance_on_body_end */
    if (link_own_failed(link))
        b->rs.state_unknown = true; /* a setting could not be replayed */
    if (b->own->home == r) {
        if (link->tx_status == 'E')
            b->tx_failed = true;
        balance_end_tx(c);
        balance_settle_tx_log(b->own, b->own->saw_error);
        b->own->saw_error = false;
        b->own->nexchanges = 0;
    }
    if (!b->own->reply_begun)
        client_send(c, &b->own->early); /* the ReadyForQuery behind it was ours */
    c->local_error = c->local_error || (b->own->is_cut && b->own->cut_failed);
    c->server_batch = false;
    client_note_idle(c);
    link_resume(link); /* the client is slow: who waits for it from now on is the own link */
    balance_to_own(c);
    client_after_quiet(c);
}

void balance_on_body_end(struct client *c)
{
    struct reader *r = c->target == c->link ? NULL : balance_reader_of_target(c);

    if (r != NULL && expect_is_quiet(&r->link->expect))
        reader_on_quiet(r, r->link);
}

/* Everything owed arrived after a Flush. Only a sequence within a transaction of the reader's own
 * is sent in parts. */
static void reader_on_settled(void *owner, struct link *link)
{
    struct client *c = ((struct reader *)owner)->client;

    if (c->target == link && !c->balance->own->reply_begun) {
        c->balance->own->reply_begun = true;
        client_send(c, &c->balance->own->early);
    }
    if (c->is_parked)
        client_unpark(c);
}

static void reader_on_parameter(
    void *owner, struct link *link, struct slice name, struct slice value)
{
    (void)owner;
    (void)link;
    (void)name;
    (void)value;
}

static void reader_on_tag(void *owner, struct link *link, struct slice tag)
{
    struct reader *r = owner;
    struct client *c = r->client;

    if (c->balance->own->home == r && link->see_tags && !expect_head_is_ours(&link->expect))
        balance_again_on_tag(c, link, tag);
}

static bool is_fatal(const struct errmsg *m)
{
    return slice_eq_str(m->severity, "FATAL") || slice_eq_str(m->severity, "PANIC");
}

/* Replay needed what the read holds. The client has seen nothing of it: it is made on the own link,
 * as when the reader dies. */
static bool reader_yields(struct reader *r, struct link *link, const struct errmsg *m)
{
    struct client *c = r->client;
    const struct balance_own *own = c->balance->own;

    if (!slice_eq_str(m->sqlstate, BALANCE_CONFLICT) || link_error_is_ours(link) ||
        own->home == r || r->in_tx || own->reply_begun || own->retry.len == 0)
        return false;
    CLIENT_LOG(c, LVL_LOG, "node %d gives up a read of user \"%s\": %.*s", r->node, c->pool->names,
        (int)m->message.n, m->message.p);
    link_fail_text(link, BALANCE_CONFLICT, "conflict with recovery");
    return true;
}

/* The end of a standby's server process is not that of the session: what it means for the client is
 * said when the link is gone. */
static bool reader_on_error(void *owner, struct link *link, const struct errmsg *m)
{
    struct reader *r = owner;
    struct client *c = r->client;
    struct balance *b = c->balance;

    count_statement(c->ss, link->pool->cluster_node, is_fatal(m) ? COUNT_FATAL : COUNT_ERROR);
    client_stmts_error(c);
    if (is_fatal(m))
        return true;
    statements_failed(c->statements, r->bit, link->expect.refused, expect_error_end(&link->expect));
    if (c->target != link)
        return false;
    if (reader_yields(r, link, m))
        return true;
    b->own->cut_failed = b->own->is_cut;
    if (b->own->home == r && link_error_is_ours(link) && b->own->home_fails)
        return false; /* the client was told by the guest, in an exchange before this one */
    if (b->own->home == r)
        b->own->saw_error = true;
    else if (r->in_tx)
        balance_fail_home(c);
    return false;
}

static void reader_on_own_row(void *owner, struct link *link, struct slice body)
{
    struct reader *r = owner;
    struct slice value;

    (void)link;
    if (r->is_asking && r->client->balance->asking == ASKING_CATALOGUE)
        balance_on_row(r->client, body);
    else if (r->is_asking && balance_row_values(body, &value, 1))
        balance_wait_row(r->client->ss, r->node, value);
}

static void reader_on_drained(void *owner, struct link *link)
{
    struct client *c = ((struct reader *)owner)->client;

    if (c->target == link && !c->is_parked && !c->is_half_closed)
        stream_resume(&c->stream);
}

/* Sends again, on the own link, what the dead reader did not begin to answer. */
static void reader_retry_on_own(struct client *c, struct buf *retry, bool is_open)
{
    CLIENT_LOG(c, LVL_LOG, "a read of user \"%s\" is sent again to node %d: its standby was lost",
        c->pool->names, c->pool->cluster_node);
    balance_again_join(c, retry, is_open);
    c->is_parked = false;
    client_feed(c, retry->data + retry->pos, retry->data + retry->len);
    if (c->phase == CL_ACTIVE && !c->is_parked && !c->is_half_closed)
        stream_resume(&c->stream);
}

/* The client saw part of an answer, or its transaction is gone: it has to be told that no more
 * comes. `is_open`: its sequence has no Sync yet. */
static void reader_tell_lost(struct client *c, const struct err *err, bool in_message, bool is_open)
{
    bool is_adrift = client_adrift(c) != NULL && client_adrift_tx_status(c) == 'E';
    struct err told;
    struct buf out = {0};

    if (in_message) {
        client_end(c, NULL); /* in the middle of a message: nothing can follow it */
        return;
    }
    err_clear(&told);
    err_set(&told, "08006", "%s", err->msg);
    err_detail(&told, "%s",
        c->balance->tx_failed ? "The transaction had begun on a standby."
                              : "The read had begun to return rows from a standby.");
    wire_put_err(&out, &told);
    c->local_error = is_open;
    if (!is_open)
        wire_put_ready(&out, c->balance->tx_failed || is_adrift ? 'E' : 'I');
    if (is_adrift)
        client_adrift_lose_home(c, true); /* of that, too */
    client_send(c, &out);
    client_note_idle(c);
}

/* All of it was said but for its end, which is owed or will be asked for. */
static void reader_say_end(struct client *c, bool is_owed, bool has_ended)
{
    char own = c->link == NULL ? client_adrift_tx_status(c) : c->link->tx_status;

    c->server_batch = false;
    balance_to_own(c);
    if (is_owed)
        client_say_ready(c, has_ended ? 'I' : own);
    client_note_idle(c);
}

/* What was SET in a transaction that is lost with its reader was told to the client. */
static void reader_take_back(struct client *c, const struct link *lost)
{
    struct buf out = {0};
    struct slice name;
    struct slice value;
    uint32_t at = 0;

    while (paramset_next(&c->link->reported, &at, &name, &value))
        if (!slice_eq(paramset_get(&lost->reported, name), value))
            wire_put_parameter_status(&out, name, value);
    client_send(c, &out);
}

/* The reader of the present exchange, on `node`, is lost. */
static void reader_lost_answer(struct client *c, struct buf *retry, int node, bool was_home,
    const struct err *err, bool in_message)
{
    struct balance *b = c->balance;
    bool begun = b->own->reply_begun;
    bool is_open = c->server_batch || b->own->is_cut;

    buf_free(&b->own->early);
    c->server_batch = false;
    if (!was_home && (begun || retry->len == 0) && c->link != NULL && c->link->tx_status == 'T')
        balance_fail_home(c);
    balance_to_own(c);
    if (was_home || begun || retry->len == 0)
        reader_tell_lost(c, err, in_message, is_open);
    else {
        balance_uncount(c, node, buf_slice(retry));
        reader_retry_on_own(c, retry, is_open);
    }
}

/* All that the home was to do yet is begin the transaction: another can. */
static bool is_unbegun(const struct balance *b, const struct link *link)
{
    return link->tx_status == 'I' && b->own->nexchanges == 1 && !b->own->reply_begun &&
           b->own->retry.len > 0;
}

static void reader_on_lost(void *owner, struct link *link, const struct err *err, bool told)
{
    struct reader *r = owner;
    struct client *c = r->client;
    struct balance *b = c->balance;
    struct buf retry = b->own->retry;
    bool was_opening = r->phase == READER_OPENING || r->is_asking;
    bool was_target = c->target == link;
    bool was_home = b->own->home == r;
    bool in_message = was_target && link->body_left > 0 && !link->swallow_body;
    bool is_over = was_target && !was_home && b->own->reply_begun && !b->own->is_cut &&
                   !in_message && balance_again_is_over(c, link, buf_slice(&retry));
    bool has_ended;

    (void)told;
    if (strcmp(err->sqlstate, BALANCE_CONFLICT) != 0)
        sessions_suspect_node(c->ss, r->node);
    if (was_target && was_home && is_unbegun(b, link)) {
        was_home = false;
        b->own->nexchanges = 0;
    }
    if (was_target)
        memset(&b->own->retry, 0, sizeof b->own->retry);
    else
        memset(&retry, 0, sizeof retry);
    if (was_target) {
        c->target = c->link;
        c->body_skip += c->body_left; /* the rest of that message is for nobody */
        c->body_left = 0;
    }
    has_ended = was_target && was_home && !in_message && balance_again_home_ends(c, link);
    is_over = is_over || has_ended;
    was_home = was_home && !has_ended;
    r->link = NULL;
    if (is_over)
        statements_answered(c->statements, r->bit);
    else if (was_target && b->own->reply_begun) /* else the client has not seen any of it */
        statements_failed(c->statements, r->bit, expect_head_serial(&link->expect),
            expect_head_serial(&link->expect) + STATEMENTS_ALL_OPS);
    balance_drop_reader(c, r, false);
    reader_avoid(r);
    if (was_home) {
        balance_lose_home(c);
        b->own->is_untold = !was_target && c->link != NULL;
        if (c->link == NULL)
            client_adrift_lose_home(c, was_target);
    }
    if (was_home && c->link == NULL)
        client_adrift_keep_told(c, link);
    else if (was_home && !in_message)
        reader_take_back(c, link);
    if (is_over)
        reader_say_end(c, link->expect.len > 0, has_ended);
    else if (was_target)
        reader_lost_answer(c, &retry, r->node, was_home, err, in_message);
    buf_free(&retry);
    if (c->phase == CL_ACTIVE && (was_opening || c->is_parked) && c->target == c->link &&
        (c->link == NULL || expect_is_quiet(&c->link->expect)))
        client_unpark(c);
}

static void reader_on_log(
    void *owner, const struct log_place *place, enum log_level level, const char *text)
{
    const struct reader *r = owner;

    client_log_link(r->client, place, level, text);
}

static const struct link_owner_ops reader_ops = {
    .says_unanswered = true,
    .on_log = reader_on_log,
    .on_auth = reader_on_auth,
    .on_login_done = reader_on_login_done,
    .on_bytes = reader_on_bytes,
    .on_quiet = reader_on_quiet,
    .on_settled = reader_on_settled,
    .on_parameter = reader_on_parameter,
    .on_tag = reader_on_tag,
    .on_error = reader_on_error,
    .on_own_row = reader_on_own_row,
    .on_drained = reader_on_drained,
    .on_lost = reader_on_lost,
};
