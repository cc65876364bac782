/* SPDX-License-Identifier: PostgreSQL
 * feed_notes.c: the books that a client's messages open: what is counted, which statements
 * are made and named, what a session may leave behind, and what the server owes.
 * Runs in: workers. Where it can be, they are opened once for all messages of a read, or of a
 * sequence that goes to its server as it is. */
#include "config.h"

#include <string.h>

#include "base/hot.h"
#include "wire/message.h"
#include "wire/reader.h"

#include "feed_int.h"
#include "feed/client_named_int.h"
#include "client/client_orders_int.h"
#include "sstate_int.h"

/* What anything but a plain read may leave behind in its session is undone as soon as the client
 * leaves (link_reset.c). Others than function calls cannot do anything at once; should a view or an
 * operator hide one, it is undone a little later, before anybody else has the session. Returns true
 * when the text is one statement that reads: no DROP hides in it. */
HOT static bool note_traces(struct client *c, struct slice sql, enum count_kind kind)
{
    bool is_lone;

    c->target->is_retired = c->target->is_retired || route_leaves_traces(sql); /* no reset helps */
    if (kind != COUNT_SELECT) {
        c->traces = TRACES_MORE;
        return false;
    }
    is_lone = memchr(sql.p, ';', sql.n - 1) == NULL; /* behind the last one is nothing */
    if (!is_lone || memchr(sql.p, '(', sql.n) != NULL)
        c->traces = TRACES_MORE;
    return is_lone && (sql.p[0] | 0x20) >= 'a'; /* no comment in front of it */
}

/* Takes the name and the text out of a Parse; false when it is malformed. */
static bool feed_read_parse(struct slice msg, struct slice *name, struct slice *sql)
{
    struct wire_reader r;

    wire_reader_init(&r, slice_of(msg.p + PROTO_HEADER_BYTES, msg.n - PROTO_HEADER_BYTES));
    *name = wire_get_cstr(&r);
    *sql = wire_get_cstr(&r);
    return !r.bad;
}

HOT static void feed_note_bind(struct client *c, struct slice msg)
{
    struct named_statement *st;
    struct slice name;
    struct wire_reader r;

    wire_reader_init(&r, slice_of(msg.p + PROTO_HEADER_BYTES, msg.n - PROTO_HEADER_BYTES));
    (void)wire_get_cstr(&r);
    name = wire_get_cstr(&r);
    st = name.n == 0 ? NULL : client_named_find(c->named, name);
    c->bound_count = st == NULL ? c->parsed_count : st->kind;
    if (st != NULL && st->may_concern_others)
        client_orders_on_relayed(c, slice_of_str(st->sql));
    if (c->ss->stmts == NULL)
        return;
    if (st == NULL && name.n > 0)
        client_stmts_unknown(c);
    else if (st != NULL && !client_stmts_is_known(c, st->counted))
        st->counted = client_stmts_bound(c, slice_of_str(st->sql));
}

static void feed_note_close(struct client *c, struct slice msg)
{
    struct slice name;
    struct wire_reader r;

    wire_reader_init(&r, slice_of(msg.p + PROTO_HEADER_BYTES, msg.n - PROTO_HEADER_BYTES));
    if (c->named == NULL || wire_get_u8(&r) != 'S')
        return;
    name = wire_get_cstr(&r);
    client_named_remove(c->named, name);
}

HOT static void feed_note_execute(struct client *c)
{
    count_statement(c->ss, c->target->pool->cluster_node, (enum count_kind)c->bound_count);
}

/* What the messages of one read ask of the books, taken together. */
struct feed_books {
    struct slice sql;  /* the last text; p is NULL: there was none */
    unsigned nqueries; /* Queries and Executes */
    bool is_said;      /* one of those, or a Parse */
};

HOT bool feed_is_own(struct client *c)
{
    return client_local(c) == NULL && c->target != NULL && c->body_left == 0 && c->body_skip == 0 &&
           c->local_part == LOCAL_PART_NONE && !client_log_statements(c) && !c->trace.client;
}

/* A text that is new, or the beginning of one; the statement of a Parse gets `name`. */
HOT static void note_text(struct client *c, struct feed_books *books, char type, struct slice name,
    struct slice sql, bool is_whole)
{
    enum count_kind kind = count_kind_of(sql);

    if (!note_traces(c, sql, is_whole ? kind : COUNT_OTHER))
        client_orders_on_relayed(c, sql);
    books->sql = sql;
    books->is_said = true;
    if (type == FE_QUERY) {
        books->nqueries++;
        count_statement(c->ss, c->target->pool->cluster_node, kind);
        return;
    }
    c->parsed_count = (uint8_t)kind;
    if (name.n > 0)
        client_named_add(&c->named, name, sql, kind);
}

static struct slice query_text(struct slice msg)
{
    struct slice sql = slice_of(msg.p + PROTO_HEADER_BYTES, msg.n - PROTO_HEADER_BYTES);

    if (sql.n > 0 && sql.p[sql.n - 1] == '\0')
        sql.n--;
    return sql;
}

/* One message, whole. False: it has to be looked at by itself: it may be for us (not one that is
 * known to be the server's), is malformed, or asks for nothing that is in the books. */
static inline bool note_message(
    struct client *c, struct feed_books *books, struct slice msg, bool is_servers)
{
    struct slice name = slice_of(NULL, 0);
    struct slice sql;

    switch (msg.p[0]) {
    case FE_QUERY:
    case FE_PARSE:
        if (msg.p[0] == FE_QUERY)
            sql = query_text(msg);
        else if (!feed_read_parse(msg, &name, &sql))
            return false;
        if (!is_servers && client_local_is_likely(sql))
            return false;
        note_text(c, books, msg.p[0], name, sql, true);
        return true;
    case FE_BIND:
        feed_note_bind(c, msg);
        return true;
    case FE_CLOSE:
        feed_note_close(c, msg);
        return true;
    case FE_EXECUTE:
        feed_note_execute(c);
        books->nqueries++;
        books->is_said = true;
        return true;
    case FE_DESCRIBE:
    case FE_SYNC:
        return true;
    default:
        return false;
    }
}

/* It goes in parts: this is the first. */
static void note_part(struct client *c, struct feed_books *books, struct slice msg)
{
    if (msg.p[0] == FE_QUERY)
        note_text(c, books, FE_QUERY, slice_of(NULL, 0), query_text(msg), false);
    if (msg.p[0] == FE_PARSE)
        c->traces = TRACES_MORE;
    if (msg.p[0] == FE_EXECUTE) {
        books->nqueries++;
        books->is_said = true;
    }
}

/* What the server owes for a message of this type. */
HOT static void note_owed(struct client *c, char type, unsigned op)
{
    if (type == FE_QUERY)
        op = OP_QUERY;
    else if (op != 0)
        c->server_batch = type != FE_SYNC;
    if (op != 0)
        link_expect(c->target, op);
}

HOT static void books_close(struct client *c, const struct feed_books *books)
{
    if (books->nqueries > 0)
        client_stats_on_queries(c, books->nqueries);
    if (books->is_said)
        client_note_sent(c, books->sql);
}

void feed_note(struct client *c, struct slice msg, bool is_whole)
{
    struct feed_books books = {.nqueries = 0};
    char type = msg.p[0];

    if (!is_whole)
        note_part(c, &books, msg);
    else if (!note_message(c, &books, msg, true) && type == FE_PARSE)
        c->traces = TRACES_MORE;
    note_owed(c, type, feed_is_bad_flush(c->target, type, msg) ? OP_CLOSE : expect_op_of(type));
    books_close(c, &books);
    if (!client_log_statements(c))
        return;
    if (type == FE_QUERY)
        client_log_statement(c, "", query_text(msg));
    else
        client_said(c, type, message_body(msg));
}

HOT const char *feed_own(struct client *c, const char *p, const char *end)
{
    struct feed_books books = {.nqueries = 0};
    size_t len;

    for (; end - p > PROTO_HEADER_BYTES - 1; p += len) {
        len = message_bytes(p);
        if (len < PROTO_HEADER_BYTES || len > (size_t)(end - p) || len > CLIENT_COLLECT_MAX ||
            !note_message(c, &books, slice_of(p, len), false))
            break;
        note_owed(c, *p, expect_op_of(*p));
    }
    books_close(c, &books);
    return p;
}
