/* SPDX-License-Identifier: PostgreSQL
 * balance_again.c: what was sent to the client's own link and is made again elsewhere. Runs in:
 * workers.
 *
 * Two things can be: a read whose link died before it was answered, and what a server refused
 * because it takes no writes (25006): that was not done. A refusal makes the monitor look; the
 * client waits until it has, or failover_wait. When another server is the primary the session moves
 * there (client_adrift.c) and asks again; when a probe after the refusal found that nothing has
 * changed, the client gets the server's error: it is its own doing. Must never: make anything again
 * that may have been done, in whole or in part. */
#include "config.h"

#include <string.h>

#include "base/hot.h"
#include "base/log.h"
#include "config/conf.h"
#include "wire/batch.h"
#include "wire/errmsg.h"
#include "wire/writer.h"

#include "client_word_int.h"
#include "share_int.h"

/* In a row, for one exchange. */
#define AGAIN_MAX 3

/* The server's last words to all, when it was crashed or is stopped at once: they end the
 * connection, and answer nothing. */
static bool is_crash(struct slice body)
{
    struct errmsg m;

    (void)errmsg_decode(body, &m);
    return slice_eq_str(m.sqlstate, "57P02") || slice_eq_str(m.sqlstate, "57P01");
}

/* Mostly all of an answer is there at once. Bytes that only look like its end count as one: then
 * nothing is made again that might have been. */
static inline bool ends_with_ready(const char *p, size_t n)
{
    return n > PROTO_HEADER_BYTES && p[n - PROTO_HEADER_BYTES - 1] == BE_READY &&
           message_bytes(p + n - PROTO_HEADER_BYTES - 1) == PROTO_HEADER_BYTES + 1;
}

HOT bool balance_is_no_answer(const char *p, size_t n)
{
    const char *end = p + n;
    struct message m;

    if (ends_with_ready(p, n))
        return false;
    while (message_next(&p, end, &m)) {
        switch (m.type) {
        case BE_PARSE_COMPLETE:
        case BE_BIND_COMPLETE:
        case BE_NO_DATA:
        case BE_ROW_DESCRIPTION:
        case BE_PARAMETER_DESCRIPTION:
            break;
        case BE_NOTICE:
            if (!is_crash(m.body))
                return false;
            break;
        default:
            return false;
        }
    }
    return p == end;
}

static struct balance_own *own_of(const struct client *c)
{
    return c->balance == NULL ? NULL : c->balance->own;
}

/* Not to be made again; but what it was is still known. */
static void again_begun(struct client *c)
{
    struct balance_own *own = own_of(c);

    own->keeps = false;
    client_send(c, &own->early);
}

static void again_stop(struct client *c)
{
    again_begun(c);
    balance_forget_retry(own_of(c));
}

/* A sequence that ends the transaction, and does nothing else. */
static bool is_end_word(struct client *c, struct slice msgs)
{
    struct client_word w;

    return msgs.n > 0 && msgs.p[0] != FE_QUERY &&
           client_word_read(c, msgs.p, msgs.p + msgs.n, &w) && w.syncs &&
           client_word_ends(balance_facts(c->ss, w.sql)) != SQL_TX_NONE;
}

WARM void balance_again_begin(struct client *c, struct slice msgs)
{
    struct balance_own *own = own_of(c);

    own->is_word = c->target->tx_status != 'I' && is_end_word(c, msgs);
    if (c->target == c->link)
        again_stop(c); /* what ran is not alone any more */
    if (c->target != c->link || own->home != NULL || c->server_batch || msgs.n == 0 ||
        msgs.n > BALANCE_RETRY_MAX || c->link->tx_status != 'I' ||
        (!balance_is_quiet(c) && !balance_is_quiet_soon(c)))
        return;
    buf_clear(&own->retry);
    buf_put(&own->retry, msgs.p, msgs.n);
    own->keeps = true;
}

bool balance_again_takes_copy(struct client *c)
{
    struct balance_own *own = own_of(c);

    if (own == NULL || !own->keeps)
        return true;
    if (own->is_refused)
        return false;
    if (c->target == c->link)
        again_stop(c);
    return true;
}

void balance_pick_parameters(
    struct client *c, const struct link *link, const char *p, size_t n, struct buf *others)
{
    const char *end = p + n;
    struct buf told = {0};
    size_t take = link->in_body;
    struct buf *to = others;

    for (; p < end; p += take, take = 0) {
        if (take == 0) {
            /* Whole, or at least its length: the reader of links sees to that. */
            take = message_bytes(p);
            to = p[0] == BE_PARAMETER_STATUS ? &told : others;
        }
        if (take > (size_t)(end - p))
            take = (size_t)(end - p);
        if (to != NULL)
            buf_put(to, p, take);
    }
    client_send(c, &told);
}

WARM bool balance_again_holds(struct client *c, struct link *link, const char *p, size_t n)
{
    struct balance_own *own = own_of(c);
    size_t aside;

    if (own == NULL || !own->keeps)
        return false;
    if (own->is_refused) {
        balance_pick_parameters(c, link, p, n, &own->early);
        return true;
    }
    aside = balance_notified_bytes(link, p, n);
    if (aside > 0)
        client_pass_reply(c, link, p, aside);
    if (balance_is_no_answer(p + aside, n - aside)) {
        buf_put(&own->early, p + aside, n - aside);
        return true;
    }
    again_begun(c);
    client_pass_reply(c, link, p + aside, n - aside);
    return true;
}

/* What may be done in part, or ends a transaction, although it fails. */
static bool is_whole_sql(struct client *c, struct slice sql)
{
    const struct sql_facts *facts = balance_facts(c->ss, sql);
    const struct sql_stmt *s = &facts->stmts[0];

    return facts->status == SQL_OK && facts->nstmts == 1 && s->kind != SQL_CALL &&
           s->kind != SQL_DO && s->tx.op == SQL_TX_NONE;
}

/* What a simple query commits before it says that it is done. BEGIN does not. */
static bool is_lone_sql(struct client *c, struct slice sql)
{
    const struct sql_facts *facts = balance_facts(c->ss, sql);

    if (share_text_is_doubtful(c, sql))
        return false;
    return facts->status == SQL_OK && facts->nstmts <= 1 &&
           (facts->nstmts == 0 || facts->stmts[0].tx.op == SQL_TX_NONE);
}

/* It reads, and nothing but that. */
static bool is_read_sql(struct client *c, struct slice sql)
{
    const struct sql_facts *facts = balance_facts(c->ss, sql);
    const struct sql_stmt *s = &facts->stmts[0];
    struct route_decision d;

    if (facts->status != SQL_OK || facts->nstmts != 1 || share_text_is_doubtful(c, sql))
        return false;
    if ((s->kind == SQL_SELECT || s->kind == SQL_SHOW) && (s->flags & SQL_F_READ_ONLY) != 0 &&
        s->nfuncs == 0)
        return true;
    if (c->balance == NULL)
        return false;
    (void)balance_decide(c, sql, &d);
    return d.class == ROUTE_EITHER && !d.must_ask;
}

typedef bool judge_fn(struct client *c, struct slice sql);

/* What is sent as a whole. */
struct again {
    struct slice msgs;
    judge_fn *judge;
};

/* A statement that is parsed among the messages is judged there. */
static bool is_parsed_here(const struct again *a, struct slice name)
{
    const char *p = a->msgs.p;
    struct batch_msg m;

    while (batch_next(&p, a->msgs.p + a->msgs.n, &m))
        if (m.type == FE_PARSE && prep_is_same_name(m.name, name))
            return true;
    return false;
}

/* The statement that a Bind names, as it was when it was parsed. */
static bool judge_named(struct client *c, const struct again *a, struct slice name)
{
    const struct statement *st;
    const struct share_name *n;

    if (is_parsed_here(a, name))
        return true;
    if (c->share == NULL) {
        st = statements_find(c->statements, name);
        return st != NULL && st->msg_len > 0 && a->judge(c, statement_sql(st));
    }
    if (name.n == 0)
        return c->share->unnamed != NULL && a->judge(c, prep_sql(c->share->unnamed));
    n = share_name_find(c->share, name);
    return n != NULL && n->prep != NULL && a->judge(c, prep_sql(n->prep));
}

static bool judge_message(struct client *c, const struct again *a, const struct batch_msg *m)
{
    switch (m->type) {
    case FE_QUERY:
    case FE_PARSE:
        return !m->is_bad && a->judge(c, m->sql);
    case FE_BIND:
        return !m->is_bad && judge_named(c, a, m->name);
    default:
        return true;
    }
}

static bool judge_all(struct client *c, struct slice msgs, judge_fn *judge)
{
    const struct again a = {msgs, judge};
    const char *p = msgs.p;
    struct batch_msg m;

    while (batch_next(&p, msgs.p + msgs.n, &m))
        if (!judge_message(c, &a, &m))
            return false;
    return msgs.n > 0 && p == msgs.p + msgs.n;
}

bool balance_again_is_whole(struct client *c, struct slice msgs)
{
    return judge_all(c, msgs, is_whole_sql);
}

bool balance_again_is_read(struct client *c, struct slice msgs)
{
    return judge_all(c, msgs, is_read_sql);
}

bool balance_again_is_over(struct client *c, const struct link *link, struct slice msgs)
{
    const struct expect *owed = &link->expect;

    if (owed->len != 1 || owed->lost || owed->failed || expect_head_is_ours(owed) ||
        link->tx_status != 'I')
        return false;
    if (expect_head(owed) == OP_QUERY)
        return expect_head_has_done(owed) && judge_all(c, msgs, is_lone_sql);
    return expect_head(owed) == OP_SYNC && judge_all(c, msgs, is_read_sql);
}

WARM void balance_again_on_tag(struct client *c, const struct link *link, struct slice tag)
{
    struct balance_own *own = own_of(c);

    own->ended_well = slice_eq_str(tag, "COMMIT") || slice_eq_str(tag, "PREPARE TRANSACTION");
    own->ended = own->ended_well || slice_eq_str(tag, "ROLLBACK")
                     ? expect_head_serial(&link->expect) + 1
                     : 0;
}

/* The client was told that its transaction is over. Its Sync may be still to come, and what was
 * sent behind it has come to nothing: nothing of that is known here when there is nothing to
 * settle. */
static bool has_ended(const struct balance_own *own, const struct link *link)
{
    const struct expect *owed = &link->expect;
    bool is_alone = own->nexchanges <= 1 && owed->len <= 1 && !own->saw_error;

    if (own->ended == 0 || owed->lost ||
        (own->saw_error && own->pending.len > 0 && own->ended_well) || /* else it is all undone */
        (!is_alone && (own->home != NULL || own->pending.len != own->ends_at ||
                          (own->level_next != 0 && own->ended_well))))
        return false;
    if (owed->len == 0)
        return !owed->skipping && own->ended == owed->nended;
    return expect_head(owed) == OP_QUERY
               ? own->ended == owed->nended + 1
               : expect_head(owed) == OP_SYNC && !owed->failed && own->ended == owed->nended;
}

/* All that is owed are answers to the client's one sequence, or to what was put in for it: an
 * Execute and a Sync are the last of them. */
static bool owes_word(const struct balance_own *own, const struct expect *owed)
{
    unsigned i;

    if (!own->is_word || owed->len < 2 || owed->skipping || owed->failed ||
        expect_peek(owed, owed->len - 2) != OP_EXECUTE ||
        expect_peek(owed, owed->len - 1) != OP_SYNC)
        return false;
    for (i = 0; i + 2 < owed->len; i++)
        switch (expect_peek(owed, i) & OP_MASK) {
        case OP_PARSE:
        case OP_BIND:
        case OP_DESCRIBE:
        case OP_CLOSE:
            break;
        default:
            return false;
        }
    return true;
}

/* All that is owed is the answer to a ROLLBACK by itself, or to the COMMIT of a failed transaction:
 * that is over, whatever becomes of the server's word. */
static bool owes_rollback(const struct balance_own *own, const struct link *link)
{
    const struct expect *owed = &link->expect;
    bool is_query = owed->len == 1 && expect_peek(owed, 0) == OP_QUERY;

    return own->ends_plainly && own->ended == 0 && own->nexchanges <= 1 && !own->saw_error &&
           owed->last == 0 && expect_is_certain(owed) && link->tx_status != 'I' &&
           (is_query || owes_word(own, owed)) &&
           (own->tx_end == SQL_ROLLBACK || (own->tx_end == SQL_COMMIT && link->tx_status == 'E'));
}

/* Answers it, as the server would have, but for its end. */
static void answer_rollback(struct client *c, struct expect *owed)
{
    static const char answer[] = {[OP_PARSE] = BE_PARSE_COMPLETE,
        [OP_BIND] = BE_BIND_COMPLETE,
        [OP_DESCRIBE] = BE_NO_DATA,
        [OP_CLOSE] = BE_CLOSE_COMPLETE};
    struct buf out = {0};
    unsigned op;

    client_send(c, &own_of(c)->early);
    for (op = expect_head(owed); op != OP_QUERY && op != OP_EXECUTE; op = expect_head(owed))
        if (expect_reply(owed, answer[op]) == EXPECT_FORWARD)
            wire_put_empty(&out, answer[op]);
    (void)expect_reply(owed, BE_COMMAND_COMPLETE);
    wire_put_command_complete(&out, "ROLLBACK");
    client_send(c, &out);
}

/* The same as has_ended; who was not told yet is told. */
static bool ends(struct client *c, struct link *link)
{
    struct balance_own *own = own_of(c);

    if (has_ended(own, link))
        return true;
    if (!owes_rollback(own, link))
        return false;
    own->ended_well = false;
    answer_rollback(c, &link->expect);
    return true;
}

bool balance_again_ends(struct client *c, struct link *link)
{
    struct balance_own *own = own_of(c);
    bool has_lived = link->tx_status != 'I';

    if (own->home != NULL || c->target != link || own->is_refused || own->keeps ||
        !(has_lived ? ends(c, link) : balance_again_is_over(c, link, buf_slice(&own->retry))))
        return false;
    if (has_lived && !own->ended_well) {
        c->balance->tx_failed = true; /* what it has SET is gone */
        own->saw_error = false;       /* ... whichever of it has failed */
    }
    link->tx_status = 'I';
    balance_end_tx(c);
    again_stop(c);
    own->nagain = 0;
    return true;
}

bool balance_again_home_ends(struct client *c, struct link *link)
{
    if (!ends(c, link))
        return false;
    if (!own_of(c)->ended_well)
        c->balance->tx_failed = true;
    link->tx_status = 'I';
    balance_end_tx(c);
    return true;
}

bool balance_again_on_error(struct client *c, struct link *link, const struct errmsg *m)
{
    struct balance_own *own = own_of(c);

    if (own == NULL || !own->keeps || own->is_refused || link != c->link ||
        link_error_is_ours(link) || c->server_batch || !slice_eq_str(m->sqlstate, "25006") ||
        own->nagain >= AGAIN_MAX)
        return false; /* a sequence of which the Sync was not sent would wait for itself */
    (void)view_refresh(c->ss->env->shm, &c->ss->view);
    if (!c->ss->view.is_streaming || link->pool->cluster_node >= c->ss->view.nnodes ||
        !client_adrift_is_possible(c, link) || !balance_again_is_whole(c, buf_slice(&own->retry)))
        return false;
    own->is_refused = true;
    own->saw_change = false;
    own->refused_us = backend_wall_us(&c->ss->be);
    own->refused_from = link->expect.refused;
    own->refused_to = expect_error_end(&link->expect);
    buf_put(&own->early, m->whole.p, m->whole.n);
    expect_hold(&link->expect);
    return true;
}

bool balance_again_is_waiting(const struct client *c)
{
    const struct balance_own *own = own_of(c);

    return own != NULL && own->is_refused;
}

WARM bool balance_again_on_quiet(struct client *c)
{
    struct balance_own *own = own_of(c);

    if (own == NULL)
        return false;
    if (!own->is_refused) {
        if (c->target == c->link)
            again_stop(c);
        own->nagain = 0;
        return false;
    }
    c->server_batch = false;
    c->is_parked = true;
    (void)expect_take_hold(&c->link->expect);
    if (list_is_detached(&own->held_node))
        sessions_hold_refused(c);
    return true;
}

void balance_again_join(struct client *c, struct buf *kept, bool is_open)
{
    struct slice rest = buf_slice(&c->carry);
    struct slice unsent =
        is_open ? batch_to_sync(rest.p, rest.p + rest.n, BALANCE_RETRY_MAX) : slice_of("", 0);

    if (unsent.n > 0 && unsent.n <= buf_unread(kept) &&
        memcmp(kept->data + kept->len - unsent.n, unsent.p, unsent.n) == 0)
        kept->len -= (uint32_t)unsent.n;
    buf_put(kept, rest.p, rest.n);
    buf_free(&c->carry);
}

/* The kind that an Execute behind this Bind counts as. */
static enum count_kind kind_of_bind(
    const struct client *c, struct slice name, enum count_kind parsed)
{
    const struct statement *st = name.n == 0 ? NULL : statements_find(c->statements, name);

    return st == NULL ? parsed : (enum count_kind)st->count;
}

void balance_uncount(struct client *c, int node, struct slice messages)
{
    const char *p = messages.p;
    enum count_kind parsed = COUNT_OTHER;
    enum count_kind bound = COUNT_OTHER;
    struct batch_msg m;

    while (batch_next(&p, messages.p + messages.n, &m) && !m.is_bad) {
        if (m.type == FE_QUERY)
            count_take_back(c->ss, node, count_kind_of(m.sql));
        else if (m.type == FE_PARSE)
            parsed = count_kind_of(m.sql);
        else if (m.type == FE_BIND)
            bound = kind_of_bind(c, m.name, parsed);
        else if (m.type == FE_EXECUTE)
            count_take_back(c->ss, node, bound);
    }
}

/* In front of what the client sent since. */
static void take_again(struct client *c, int node)
{
    struct balance_own *own = own_of(c);
    struct buf all = own->retry;
    bool is_open = c->server_batch;

    memset(&own->retry, 0, sizeof own->retry);
    buf_free(&own->early);
    own->keeps = false;
    own->is_refused = false;
    own->nagain++;
    own->hold_until_us = 0;
    statements_undone(c->statements, 0);
    balance_uncount(c, node, buf_slice(&all));
    balance_again_join(c, &all, is_open);
    c->carry = all;
    c->is_parked = true;
    c->server_batch = false;
}

bool balance_again_on_lost(struct client *c, struct link *link)
{
    struct balance_own *own = own_of(c);
    int node = link->pool->cluster_node;
    bool is_read;

    if (!own->keeps)
        return false;
    is_read = !own->is_refused && own->nagain < AGAIN_MAX && link->expect.len > 0 &&
              balance_again_is_read(c, buf_slice(&own->retry));
    if (!own->is_refused && !is_read) {
        again_stop(c);
        own->nagain = 0;
        return false;
    }
    CLIENT_LOG(c, LVL_LOG, "%s of user \"%s\" is made again: %s", is_read ? "a read" : "a write",
        c->pool->names,
        is_read ? "its server connection was lost" : "its server was not the primary any more");
    take_again(c, node);
    return true;
}

void balance_again_tell(struct client *c)
{
    struct balance_own *own = own_of(c);

    own->is_refused = false;
    own->nagain = 0;
    statements_failed(c->statements, 0, own->refused_from, own->refused_to);
    statements_answered(c->statements, 0);
    wire_put_ready(&own->early, c->link->tx_status);
    again_stop(c);
    client_note_idle(c);
    client_after_quiet(c);
}
