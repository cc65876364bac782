/* SPDX-License-Identifier: PostgreSQL
 * client_adrift.c: a client whose own link died. Runs in: workers. As long as everything that makes
 * its session is known (settings, prepared statements), it does not notice: the next message finds
 * a link of the present primary, brought to the same state. What was under way is answered with an
 * error; an open transaction is a failed one until ROLLBACK. Must never: go on with a session of
 * which something is lost. */
#include "config.h"

#include <string.h>

#include "admin/admin.h"
#include "base/log.h"
#include "base/mem.h"
#include "config/conf.h"
#include "wire/batch.h"
#include "wire/writer.h"

#include "client_lost_int.h"
#include "client_word_int.h"
#include "share_int.h"

#define ADRIFT_LOOK_MS 50
/* A probe of a server that is near takes so long. */
#define ADRIFT_PROBE_MS 5

struct client_adrift {
    struct client *client;
    struct timer timer;
    struct pool_request req;
    struct link_startup startup;
    int64_t until_us; /* 0: nobody asked for a link yet */
    int64_t lost_us;  /* wall clock */
    int lost_node;
    bool only_reads; /* what waits may be answered by a standby */
    bool in_tx;
    bool is_untold; /* in_tx, and the client has not been told */
    bool is_restoring;
    struct paramset told; /* what the client believes of its parameters */
    struct err last_words;
};

static const struct link_owner_ops adrift_ops;
static void adrift_try(struct client *c);

/* True when the session can be made anew from what is known of it. */
static bool can_restore(const struct client *c)
{
    const struct balance *b = c->balance;
    const struct list *n;

    if (b != NULL && b->own->discards)
        return true; /* nothing is to be left of it */
    if (b == NULL || c->is_tied || b->rs.state_unknown || b->rs.has_temp_tables ||
        b->own->holds_cursors)
        return false;
    if (c->statements != NULL)
        LIST_FOREACH(n, &c->statements->order)
        {
            if (LIST_ENTRY(n, struct statement, order)->msg_len == 0)
                return false; /* too long to be kept */
        }
    return true;
}

bool client_adrift_is_possible(const struct client *c, const struct link *link)
{
    return c->phase == CL_ACTIVE && c->share == NULL && !link->is_private && c->body_left == 0 &&
           !c->is_half_closed && c->ss->stop == SESSION_RUNNING &&
           (link != c->link || !link->expect.lost) && /* what it has set is not known to the end */
           (link->body_left == 0 || link->swallow_body) && can_restore(c);
}

static void adrift_on_timer(struct timer *t)
{
    adrift_try(LIST_ENTRY(t, struct client_adrift, timer)->client);
}

static void adrift_on_turn(struct pool_request *req)
{
    adrift_try(req->owner);
}

static struct client_adrift *adrift_new(struct client *c)
{
    struct client_adrift *a = mem_alloc_zero(sizeof *a);

    a->client = c;
    timer_init(&a->timer, adrift_on_timer);
    pool_request_init(&a->req);
    return a;
}

void client_adrift_keep_words(struct client *c, const struct errmsg *m)
{
    if (client_rare(c)->adrift == NULL)
        c->rare->adrift = adrift_new(c);
    err_clear(&c->rare->adrift->last_words);
    errmsg_to_err(m, &c->rare->adrift->last_words);
}

/* What the own link was doing never happened. What runs on a reader goes on, and with it the
 * transaction that lives there. */
static void adrift_forget_exchange(struct client *c, bool on_reader)
{
    struct balance *b = c->balance;

    b->asking = ASKING_NONE;
    b->lsn_is_fresh = false;
    b->own->own_is_guest = false;
    b->own->own_ends = false;
    if (on_reader && b->own->home != NULL)
        return;
    b->own->has_new_setting = false;
    b->own->has_tx_end = false;
    b->own->has_begun = false;
    b->own->is_failing = false;
    b->own->is_untold = false;
    b->own->end_is_told = false;
    b->own->level_next = 0;
    b->own->tx_end = 0;
    b->tx_failed = false;
    b->own->tx_was_open = false;
    b->own->saw_error = false;
    b->own->nexchanges = 0;
    balance_forget_tx_log(b->own);
    buf_free(&b->own->pending);
    route_trace_on_rollback(b->rs.trace);
    balance_drop_doubts(b->own);
    b->rs.doubtful = false;
    c->server_batch = c->server_batch && on_reader;
    if (!on_reader)
        balance_drop_readers(c, true);
}

/* What a link has reported was told to the client. */
void client_adrift_keep_told(struct client *c, const struct link *link)
{
    struct slice name;
    struct slice value;
    uint32_t at = 0;

    while (paramset_next(&link->reported, &at, &name, &value))
        (void)paramset_set(&client_adrift(c)->told, name, value);
}

/* What was SET in a transaction that is lost is not so any more. */
static void adrift_tell_parameters(struct client *c)
{
    const struct paramset *told = &client_adrift(c)->told;
    struct buf out = {0};
    struct slice before;
    struct slice value;
    struct slice name;
    uint32_t at = 0;

    while (paramset_next(&c->link->reported, &at, &name, &value)) {
        before = paramset_get(told, name);
        if (before.p == NULL || !slice_eq(before, value))
            wire_put_parameter_status(&out, name, value);
    }
    client_send(c, &out);
}

/* True when something of the client's waits for an answer. */
static bool owes_client(const struct link *link)
{
    unsigned i;

    for (i = 0; i < link->expect.len; i++)
        if ((expect_peek(&link->expect, i) & OP_SWALLOW) == 0)
            return true;
    return false;
}

/* Its status says nothing yet of one that is being made to fail there, in place of a home that was
 * lost. */
static bool had_transaction(const struct client *c, const struct link *link, bool on_reader)
{
    const struct balance_own *own = c->balance->own;

    if (own->home != NULL)
        return !on_reader;
    if (own->own_ends || own->end_is_told)
        return false; /* it was a guest, or stood for one, and is only told of the end */
    return link->tx_status != 'I' ||
           (own->is_failing && (int32_t)(own->fails_at - expect_head_serial(&link->expect)) >= 0);
}

/* In a sequence whose messages so far are answered, its Sync not sent: what they did is not
 * committed, and the rest is skipped. When its transaction is told of at the next message, that
 * does. */
static void fail_sequence(struct client *c, const struct link *link, const struct err *err)
{
    struct client_adrift *a = client_adrift(c);
    struct buf out = {0};

    if (a->in_tx && !link->expect.failed)
        return;
    if (!link->expect.failed)
        wire_put_err(&out, err);
    client_send(c, &out);
    a->is_untold = false;
    c->local_error = true;
}

void client_adrift_begin(struct client *c, struct link *link, const struct err *err)
{
    struct balance *b = c->balance;
    struct client_adrift *a = client_adrift(c) == NULL ? adrift_new(c) : client_adrift(c);
    struct err reason = err_is_set(&a->last_words) ? a->last_words : *err;
    bool on_reader = c->target != link;
    bool was_restoring = a->is_restoring; /* it died before the client had it */
    bool is_over =
        !on_reader && !was_restoring && b->asking == ASKING_NONE && balance_again_ends(c, link);
    bool is_again = !on_reader && !is_over && balance_again_on_lost(c, link);
    bool owes = owes_client(link) && b->asking == ASKING_NONE && !is_again && !is_over;
    bool in_sequence = c->server_batch && !owes && !is_again && !is_over && !on_reader;

    client_row_keep_statement(c);
    if (is_over && link->expect.len <= 1)
        statements_answered(c->statements, 0);
    else /* nothing is left of those that are made again */
        statements_failed(c->statements, 0, expect_head_serial(&link->expect),
            expect_head_serial(&link->expect) + STATEMENTS_ALL_OPS);
    if (b->own->discards) {
        balance_discard(c);
        statements_free(&c->statements);
    }
    client_rare(c)->adrift = a;
    a->lost_us = backend_wall_us(&c->ss->be);
    a->lost_node = link->pool->cluster_node;
    if (!was_restoring) {
        client_adrift_keep_told(c, link);
        if (b->own->home != NULL && b->own->home->link != NULL)
            client_adrift_keep_told(c, b->own->home->link); /* ... spoke last */
        a->in_tx = had_transaction(c, link, on_reader);
        a->is_untold = a->in_tx && !owes;
    }
    a->is_restoring = false;
    a->until_us = 0;
    reason.severity = ERR_ERROR;
    if (!err_is_set(&a->last_words))
        memcpy(reason.sqlstate, "08006", 6);
    CLIENT_LOG(c, LVL_LOG, "session of user \"%s\" goes on without its server connection: %s",
        c->pool->names, reason.msg);
    c->link = NULL;
    if (!on_reader)
        c->target = NULL;
    adrift_forget_exchange(c, on_reader);
    client_patch_free(c);
    if (owes)
        client_answer_owed(c, &link->expect, 0, &reason, a->in_tx ? 'E' : 'I');
    if (in_sequence && !was_restoring)
        fail_sequence(c, link, &reason);
    if (is_over && link->expect.len > 0)
        client_say_ready(c, 'I');
    if (is_over && link->expect.len > 1)
        client_answer_owed(c, &link->expect, 1, &reason, 'I');
    if (on_reader)
        return; /* a standby is answering: its reader goes on */
    client_note_idle(c);
    if (c->is_parked)
        client_unpark(c);
    client_read_on(c);
}

/* Other links to the server may be as dead as the one that was lost: it has to answer a probe
 * first.
 */
static bool is_doubtful(const struct client *c, int node)
{
    const struct view *v = &c->ss->view;

    return v->is_streaming && node == client_adrift(c)->lost_node && node < v->nnodes &&
           v->node[node].probed_us <= client_adrift(c)->lost_us;
}

static void adrift_wait(struct client *c)
{
    sessions_look_again(c->ss, c->pool->cluster_node);
    client_stats_on_wait_begin(c);
    client_row_state(c, CLIENT_STATE_WAITING, WAIT_REASON_NO_PRIMARY);
    timer_start(c->ss->loop, &client_adrift(c)->timer,
        is_doubtful(c, client_adrift(c)->lost_node) ? ADRIFT_PROBE_MS : ADRIFT_LOOK_MS);
}

static void adrift_give_up(struct client *c)
{
    client_end_text(c, "57P03",
        "the session's server connection was lost, and no server that accepts writes was found "
        "within failover_wait (%d s)",
        (int)(c->ss->conf->failover_wait_ms / 1000));
}

static void restore_settings(struct client *c, struct feed_run *run)
{
    const struct buf *log = &c->balance->own->log;
    uint32_t at = 0;

    while (at < log->len) {
        struct slice text = slice_of_str(log->data + at);

        share_put_own_query(c, run, text);
        at += (uint32_t)text.n + 1;
    }
}

static void put_sync(struct client *c, struct feed_run *run)
{
    struct buf sync = {0};

    wire_put_empty(&sync, FE_SYNC);
    link_expect(c->link, OP_SYNC | OP_SWALLOW);
    feed_put(run, sync.data, sync.len);
    buf_free(&sync);
}

/* Statements of the protocol, and those of PREPARE, in the order in which they were made. */
static void restore_statements(struct client *c, struct feed_run *run)
{
    bool is_open = false;
    struct list *n;

    if (c->statements == NULL)
        return;
    LIST_FOREACH(n, &c->statements->order)
    {
        struct statement *st = LIST_ENTRY(n, struct statement, order);
        struct slice msg = statement_message(st);
        bool is_query = msg.p[0] == FE_QUERY;

        st->on_own = !st->is_doubtful;
        if (st->is_doubtful)
            continue;
        if (is_query && is_open)
            put_sync(c, run);
        is_open = !is_query;
        link_expect(c->link, (is_query ? OP_QUERY : OP_PARSE) | OP_SWALLOW);
        feed_put(run, msg.p, msg.n);
    }
    if (is_open)
        put_sync(c, run);
}

static void adrift_adopt(struct client *c, struct link *link)
{
    struct client_adrift *a = client_adrift(c);
    struct feed_run run = {0};

    c->link = link;
    c->target = link;
    c->epoch = link->epoch;
    link->ops = &client_link_ops;
    link_forget_failure(link);
    a->is_restoring = true;
    client_row_link(c);
    client_stats_on_link(c);
    restore_settings(c, &run);
    restore_statements(c, &run);
    if (a->in_tx) {
        share_put_own_query(c, &run, slice_of_str("BEGIN"));
        share_put_own_query(c, &run,
            slice_of_str("SELECT pg_catalog.the_transaction_was_lost_with_its_connection()"));
    }
    if (run.out.len == 0)
        client_adrift_on_quiet(c);
    else
        feed_flush(c, &run);
}

void client_adrift_on_quiet(struct client *c)
{
    struct client_adrift *a = client_adrift(c);

    if (a->in_tx ? c->link->tx_status != 'E' : link_own_failed(c->link)) {
        client_end_text(c, "08006",
            "the session's server connection was lost, and its state could not be restored");
        return;
    }
    adrift_tell_parameters(c);
    client_adrift_free(c);
    client_note_idle(c);
    client_unpark(c);
}

/* A standby that may answer while there is no primary; VIEW_NO_NODE: none may. */
static int reading_node(const struct client *c)
{
    const struct sessions *ss = c->ss;
    const struct view *v = &ss->view;
    bool sees_enough =
        ss->conf->read_consistency == CONF_READ_EVENTUAL ||
        (ss->conf->read_consistency == CONF_READ_SESSION && !c->balance->rs.wrote_in_session);
    int i;

    for (i = 0; i < v->nnodes && client_adrift(c)->only_reads && sees_enough; i++) {
        int node = (int)((balance_choice(c->balance) % (uint64_t)v->nnodes + (uint64_t)i) %
                         (uint64_t)v->nnodes);

        if (view_can_read(v, node) && v->node[node].pg_role == VIEW_ROLE_STANDBY &&
            conf_has_node(ss->conf, node))
            return node;
    }
    return VIEW_NO_NODE;
}

static void adrift_try(struct client *c)
{
    struct client_adrift *a = client_adrift(c);
    struct sessions *ss = c->ss;
    int node = sessions_write_node(ss);
    struct pool *pool = c->pool;

    timer_stop(ss->loop, &a->timer);
    if (c->link != NULL)
        return; /* one logs in */
    if (a->until_us == 0)
        a->until_us = loop_now_us(ss->loop) + ss->conf->failover_wait_ms * 1000;
    if (loop_now_us(ss->loop) >= a->until_us) {
        adrift_give_up(c);
        return;
    }
    if (node == VIEW_NO_NODE || view_must_hold_writes(&ss->view) || is_doubtful(c, node))
        node = reading_node(c);
    if (node == VIEW_NO_NODE) {
        adrift_wait(c);
        return;
    }
    if (pool->cluster_node != node) {
        pool_request_cancel(&a->req);
        client_place_move(c, node);
    }
    a->startup.version = c->row == NULL ? PROTO_3_0 : c->row->protocol;
    a->startup.user = pool_user(c->pool);
    a->startup.database = pool_database(c->pool);
    a->startup.params = &c->balance->own->params;
    a->req.pool = c->pool;
    client_auth_entitle(c, &a->req); /* the trust of the lost server is not that of the next */
    a->req.startup = &a->startup;
    a->req.no_patch = true;
    a->req.on_turn = adrift_on_turn;
    a->req.owner = c;
    a->req.ops = &adrift_ops;
    a->req.link = NULL;
    switch (pool_acquire(&a->req)) {
    case ACQUIRE_GRANTED:
        adrift_adopt(c, a->req.link);
        break;
    case ACQUIRE_OPENING:
        c->link = a->req.link;
        c->epoch = c->link->epoch;
        client_stats_on_wait_begin(c);
        client_row_state(c, CLIENT_STATE_WAITING, WAIT_REASON_CONNECTING);
        break;
    case ACQUIRE_WAITING:
        client_stats_on_wait_begin(c);
        client_row_state(c, CLIENT_STATE_WAITING, (enum wait_reason)a->req.reason);
        timer_start(ss->loop, &a->timer, ADRIFT_LOOK_MS); /* the cluster may change meanwhile */
        break;
    }
}

/* The client is told of its transaction by the first message that is not its end. */
static enum feed_step adrift_tell(struct client *c, char type)
{
    struct client_adrift *a = client_adrift(c);
    struct buf out = {0};

    a->is_untold = false;
    client_lost_put(&a->last_words, &out);
    if (type == FE_QUERY || type == FE_FUNCTION_CALL || type == FE_SYNC)
        wire_put_ready(&out, 'E');
    else
        c->local_error = true;
    client_send(c, &out);
    return FEED_LOCAL;
}

/* Of all of the transaction, not to a savepoint; whatever else a string does behind it. */
static bool is_rollback(struct client *c, char type, struct slice msg, const char *end)
{
    const struct sql_facts *facts;
    struct client_word w;

    if (type != FE_QUERY)
        return client_lost_ends(c, msg.p, end, &w) == SQL_TX_ROLLBACK;
    if (msg.n <= PROTO_HEADER_BYTES)
        return false;
    facts =
        balance_facts(c->ss, slice_of(msg.p + PROTO_HEADER_BYTES, msg.n - PROTO_HEADER_BYTES - 1));
    return facts->nstmts > 0 && facts->stmts[0].kind == SQL_ROLLBACK;
}

/* A command of ours needs no server, whatever has become of them. EXPLAIN may have to ask one. */
static bool is_ours(const struct client *c, char type, struct slice msg)
{
    struct slice body = slice_of(msg.p + PROTO_HEADER_BYTES, msg.n - PROTO_HEADER_BYTES);
    struct slice sql = type == FE_PARSE ? feed_parse_sql(body) : body;
    struct admin_cmd cmd;

    if (type != FE_QUERY && type != FE_PARSE)
        return client_local(c) != NULL && type != FE_FUNCTION_CALL;
    if (sql.n > 0 && sql.p[sql.n - 1] == '\0')
        sql.n--;
    return client_local_is_likely(sql) && admin_recognise(sql, &cmd) &&
           cmd.kind != ADMIN_KIND_EXPLAIN;
}

/* LOCAL_NO: it needs a server. */
static enum local_verdict answer_here(struct client *c, char type, struct slice msg)
{
    struct slice body = slice_of(msg.p + PROTO_HEADER_BYTES, msg.n - PROTO_HEADER_BYTES);

    if (type == FE_SYNC)
        return client_local_extended(c, type, slice_of(NULL, 0));
    if (!is_ours(c, type, msg))
        return LOCAL_NO;
    if (type != FE_QUERY)
        return client_local_extended(c, type, body);
    return client_local_query(c, slice_of(body.p, body.n - 1));
}

/* Its transaction has outlived the own link on a reader, no more. */
static void leave_home(struct client *c)
{
    struct client_adrift *a = client_adrift(c);

    if (c->balance->own->home == NULL)
        return;
    client_adrift_keep_told(c, c->balance->own->home->link);
    adrift_forget_exchange(c, false);
    a->in_tx = a->is_untold = true;
}

bool client_adrift_is_untold(const struct client *c)
{
    const struct client_adrift *a = client_adrift(c);

    return a->until_us == 0 && !a->is_restoring && (a->is_untold || c->balance->own->home != NULL);
}

void client_adrift_end(struct client *c)
{
    leave_home(c);
    client_adrift(c)->in_tx = client_adrift(c)->is_untold = false;
}

enum feed_step client_adrift_message(
    struct client *c, char type, struct slice msg, bool is_whole, const char *end)
{
    struct client_adrift *a = client_adrift(c);
    enum local_verdict v;

    if (type == FE_COPY_DATA || type == FE_COPY_DONE || type == FE_COPY_FAIL)
        return FEED_SKIP; /* of a COPY that was answered with an error: ignored, as servers do */
    leave_home(c);
    if (a->until_us != 0 || a->is_restoring)
        return FEED_PARK; /* on its way */
    if (c->local_error && type != FE_SYNC)
        return is_whole ? FEED_LOCAL : FEED_SKIP;
    v = is_whole && (!a->in_tx || type == FE_SYNC) ? answer_here(c, type, msg) : LOCAL_NO;
    if (v != LOCAL_NO)
        return feed_of_verdict(v);
    if (a->is_untold && !(is_whole && is_rollback(c, type, msg, end)))
        return adrift_tell(c, type); /* the rest of a Bind that comes in parts is skipped */
    a->is_untold = false;
    if (is_whole && type != FE_QUERY)
        msg = batch_to_sync(msg.p, end, BALANCE_RETRY_MAX);
    a->only_reads = is_whole && !a->in_tx && balance_again_is_read(c, msg);
    adrift_try(c);
    if (c->phase != CL_ACTIVE)
        return FEED_STOP;
    return client_adrift(c) == NULL ? FEED_AGAIN : FEED_PARK;
}

bool client_adrift_is_restoring(const struct client *c)
{
    return client_adrift(c) != NULL && client_adrift(c)->is_restoring;
}

char client_adrift_tx_status(const struct client *c)
{
    return client_adrift(c)->in_tx ? 'E' : 'I';
}

void client_adrift_lose_home(struct client *c, bool told)
{
    client_adrift(c)->in_tx = true;
    client_adrift(c)->is_untold = !told;
}

void client_adrift_stop(struct client *c)
{
    struct client_adrift *a = client_adrift(c);

    if (a == NULL)
        return;
    timer_stop(c->ss->loop, &a->timer);
    pool_request_cancel(&a->req);
}

void client_adrift_free(struct client *c)
{
    struct client_adrift *a = client_adrift(c);

    if (a == NULL)
        return;
    client_adrift_stop(c);
    c->rare->adrift = NULL;
    paramset_free(&a->told);
    mem_free(a);
    client_rare_trim(c);
}

/* While a link logs in for the client. */

static void on_auth(void *owner, struct link *link, const char *msg, size_t n)
{
    struct client *c = owner;

    if (message_is_auth_ok(msg, n))
        return;
    c->link = NULL;
    link_close(link);
    if (client_adrift(c)->only_reads) {
        client_adrift(c)->only_reads = false; /* it was a standby perhaps */
        adrift_wait(c);
        return;
    }
    client_end_text(c, "08006",
        "the session's server connection was lost, and the server asks for a password that "
        "pgpool does not know");
}

static bool on_refused(void *owner, struct link *link)
{
    struct client *c = owner;

    (void)link;
    c->link = NULL;
    adrift_try(c);
    return true;
}

static void on_login_done(void *owner, struct link *link)
{
    adrift_adopt(owner, link);
}

static void on_bytes(void *owner, struct link *link, const char *p, size_t n)
{
    (void)owner;
    (void)link;
    (void)p;
    (void)n;
}

static void on_lost(void *owner, struct link *link, const struct err *err, bool told)
{
    struct client *c = owner;

    (void)told;
    c->link = NULL;
    CLIENT_LOG(c, LVL_DEBUG1, "no new server connection for user \"%s\" yet: %s", c->pool->names,
        err->msg);
    sessions_suspect_node(c->ss, link->pool->cluster_node);
    adrift_wait(c);
}

static const struct link_owner_ops adrift_ops = {
    .on_log = client_log_link,
    .on_auth = on_auth,
    .on_refused = on_refused,
    .on_login_done = on_login_done,
    .on_bytes = on_bytes,
    .on_lost = on_lost,
};
