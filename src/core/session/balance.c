/* SPDX-License-Identifier: PostgreSQL
 * balance.c: which of a client's links the next exchange uses.
 * The choice is made at the beginning of an exchange, when nothing is owed on any link: for a
 * simple query by its facts, for a sequence of the extended protocol by the strictest of its
 * messages up to Sync. What cannot be judged goes to the own link: always right, only not balanced.
 * A named statement is parsed on the own link, and on the reader when it is first executed there.
 */
#include "config.h"

#include <string.h>

#include "admin/admin.h"
#include "config/conf.h"
#include "wire/reader.h"
#include "wire/writer.h"

#include "balance_int.h"

/* A sequence longer than this is not looked through. */
#define BATCH_LOOK_MAX 64

static bool links_are_quiet(const struct client *c)
{
    return expect_is_quiet(&c->link->expect) && c->link->body_left == 0 && c->target == c->link;
}

/* Sends what the reader has to know, and makes it the target. */
static enum balance_verdict balance_go_reader(struct client *c, int node, struct slice msg)
{
    struct balance *b = c->balance;

    if (b->phase == READER_READY && b->is_fresh)
        node = b->node; /* opened for this very statement */
    if (balance_open_reader(c, node) == BALANCE_PARK)
        return BALANCE_PARK;
    if (b->phase != READER_READY)
        return BALANCE_GO; /* it did not work: on the own link then */
    balance_replay(c);
    c->target = b->reader;
    b->is_fresh = false;
    b->reply_begun = false;
    buf_free(&b->retry);
    if (msg.n <= BALANCE_RETRY_MAX)
        buf_put(&b->retry, msg.p, msg.n);
    return BALANCE_GO;
}

enum balance_verdict balance_query(struct client *c, struct slice sql, struct slice msg)
{
    struct balance *b = c->balance;
    const struct sql_facts *facts;
    struct route_decision d;

    if (c->target != c->link)
        return BALANCE_PARK; /* the reader has not finished */
    facts = balance_decide(c, sql, &d);
    statements_remove(c->statements == NULL ? NULL : c->statements, slice_of("", 0));
    if (!d.must_ask)
        b->ask_failed = false;
    if (links_are_quiet(c) && c->link->tx_status == 'I') {
        if (d.must_ask && !b->ask_failed) {
            balance_ask(c, c->link, &d);
            return BALANCE_PARK;
        }
        b->ask_failed = false;
        if (d.class == ROUTE_EITHER && !d.must_ask && !d.must_wait &&
            conf_has_node(c->ss->conf, d.node) && d.node != c->pool->cluster_node) {
            if (balance_go_reader(c, d.node, msg) == BALANCE_PARK)
                return BALANCE_PARK;
            if (c->target != c->link)
                return BALANCE_GO;
        }
    }
    b->nexchanges++;
    balance_note_write(c, &d);
    balance_note_facts(c, sql, facts);
    return BALANCE_GO;
}

enum balance_verdict balance_unread_query(struct client *c)
{
    struct route_session *rs = &c->balance->rs;

    if (c->target != c->link)
        return BALANCE_PARK;
    rs->state_unknown = true;
    rs->has_temp_tables = true;
    rs->wrote_in_session = true;
    rs->wrote_in_tx = rs->in_tx;
    return BALANCE_GO;
}

/* What a look ahead over a sequence found. */
struct batch_look {
    bool is_closed; /* ends with Sync within what has arrived */
    bool has_execute;
    bool may_leave;   /* everything in it may run on a standby */
    bool has_unnamed; /* the unnamed statement is parsed in this sequence */
    const char *end;  /* behind the Sync */
    int node;
};

/* Judges one SQL text of a sequence. */
static bool look_at_sql(struct client *c, struct slice sql, struct batch_look *look, bool *ask)
{
    struct route_decision d;
    struct admin_cmd cmd;

    if (client_local_is_likely(sql) && admin_recognise(sql, &cmd))
        return false; /* answered here, next to the own link */
    (void)balance_decide(c, sql, &d);
    if (d.must_ask && !c->balance->ask_failed) {
        balance_ask(c, c->link, &d);
        *ask = true;
        return false;
    }
    if (d.class != ROUTE_EITHER || d.must_ask || d.must_wait ||
        !conf_has_node(c->ss->conf, d.node) || d.node == c->pool->cluster_node)
        return false;
    look->node = d.node;
    return true;
}

static bool look_at_message(
    struct client *c, char type, struct slice body, struct batch_look *look, bool *ask)
{
    struct wire_reader r;
    struct slice name;
    struct slice sql;
    struct statement *st;

    wire_reader_init(&r, body);
    switch (type) {
    case FE_PARSE:
        name = wire_get_cstr(&r);
        sql = wire_get_cstr(&r);
        look->has_unnamed = name.n == 0;
        return !r.bad && name.n == 0 && body.n < STATEMENT_MSG_MAX - PROTO_HEADER_BYTES &&
               look_at_sql(c, sql, look, ask);
    case FE_BIND:
        (void)wire_get_cstr(&r);
        name = wire_get_cstr(&r);
        st = statements_find(c->statements, name);
        if (r.bad)
            return false;
        if (name.n == 0)
            return look->has_unnamed;
        return st != NULL && st->msg_len > 0 && look_at_sql(c, statement_sql(st), look, ask);
    case FE_DESCRIBE:
        return body.n > 0 && body.p[0] == 'P';
    case FE_EXECUTE:
        look->has_execute = true;
        return true;
    case FE_SYNC:
        look->is_closed = true;
        return true;
    default:
        return false; /* Close, Flush, a simple query in between: the own link knows best */
    }
}

static void look_ahead(
    struct client *c, const char *p, const char *end, struct batch_look *look, bool *ask)
{
    uint32_t len;
    int n;

    look->may_leave = true;
    for (n = 0; n < BATCH_LOOK_MAX && end - p >= PROTO_HEADER_BYTES; n++) {
        len = proto_get_u32(p + 1);
        if (len < 4 || (size_t)(end - p) < len + 1U)
            break;
        if (!look_at_message(c, p[0], slice_of(p + PROTO_HEADER_BYTES, len - 4), look, ask)) {
            look->may_leave = false;
            return;
        }
        p += len + 1U;
        look->end = p;
        if (look->is_closed)
            break;
    }
    look->may_leave = look->is_closed && look->has_execute;
}

enum balance_verdict balance_batch(struct client *c, const char *p, const char *end)
{
    struct balance *b = c->balance;
    struct batch_look look = {.node = VIEW_NO_NODE};
    bool ask = false;

    if (c->target != c->link)
        return BALANCE_PARK; /* the reader has not finished an earlier sequence */
    b->batch++;
    b->nexchanges++;
    if (!links_are_quiet(c) || c->link->tx_status != 'I')
        return BALANCE_GO;
    look_ahead(c, p, end, &look, &ask);
    if (ask)
        return BALANCE_PARK;
    b->ask_failed = false;
    if (!look.may_leave || look.node == VIEW_NO_NODE)
        return BALANCE_GO;
    return balance_go_reader(c, look.node, slice_of(p, (size_t)(look.end - p)));
}

/* Parses a named statement on the reader before it is bound there for the first time. */
static void note_reader_bind(struct client *c, struct slice name)
{
    struct balance *b = c->balance;
    struct statement *st = statements_find(c->statements, name);
    struct buf out = {0};

    if (name.n == 0 || st == NULL || st->reader_epoch == b->epoch)
        return;
    wire_put_close(&out, 'S', name); /* an older one of the same name may be there */
    link_expect(b->reader, OP_CLOSE | OP_SWALLOW);
    buf_put(&out, statement_message(st).p, statement_message(st).n);
    link_expect(b->reader, OP_PARSE | OP_QUIET);
    (void)link_send(b->reader, out.data, out.len);
    buf_free(&out);
    st->reader_epoch = b->epoch;
}

/* The unnamed statement was parsed on the reader, and is now bound on the own link. */
static void note_own_bind(struct client *c, struct statement *st)
{
    struct slice msg = statement_message(st);

    link_expect(c->link, OP_PARSE | OP_QUIET);
    (void)link_send(c->link, msg.p, msg.n);
    st->on_own = true;
}

static void note_own_execution(struct client *c, struct slice sql)
{
    struct route_decision d;
    const struct sql_facts *facts = balance_decide(c, sql, &d);

    balance_note_write(c, &d);
    balance_note_facts(c, sql, facts);
}

void balance_note_message(struct client *c, char type, struct slice msg)
{
    struct balance *b = c->balance;
    struct wire_reader r;
    struct slice name;
    struct statement *st;

    wire_reader_init(&r, slice_of(msg.p + PROTO_HEADER_BYTES, msg.n - PROTO_HEADER_BYTES));
    name = wire_get_cstr(&r);
    if (type == FE_PARSE && c->target == c->link) {
        st = statements_find(c->statements, name);
        if (st != NULL)
            st->batch = b->batch;
    } else if (type == FE_BIND && c->target == c->link) {
        name = wire_get_cstr(&r);
        st = statements_find(c->statements, name);
        if (r.bad || st == NULL || st->msg_len == 0)
            return;
        if (!st->on_own)
            note_own_bind(c, st);
        note_own_execution(c, statement_sql(st));
    } else if (type == FE_BIND) {
        name = wire_get_cstr(&r);
        if (!r.bad)
            note_reader_bind(c, name);
    }
}

void balance_note_partial(struct client *c, char type)
{
    struct statement *st;

    if (type == FE_PARSE) {
        /* Its name may be in the part that is still to come: forget them all. The own link knows
         * them. */
        statements_free(&c->statements);
    } else if (type == FE_BIND && c->target == c->link) {
        st = statements_find(c->statements, slice_of("", 0));
        if (st != NULL && !st->on_own && st->msg_len > 0)
            note_own_bind(c, st);
    }
}

bool balance_on_own_quiet(struct client *c)
{
    struct balance *b = c->balance;

    if (b->is_asking) {
        balance_ask_done(c, c->link);
        client_unpark(c);
        return true;
    }
    if (c->link->tx_status == 'E')
        b->tx_failed = true;
    balance_end_tx(c);
    b->saw_error = false;
    b->nexchanges = 0;
    return false;
}
