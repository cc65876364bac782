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
#include "client/client_watch_int.h"
#include "sstate_int.h"

HOT bool feed_note_text(struct client *c, struct slice sql, enum count_kind kind)
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

/* Returns the text. */
static struct slice feed_note_parse(struct client *c, struct slice msg)
{
    struct slice name;
    struct slice sql;
    bool is_good = feed_read_parse(msg, &name, &sql);

    c->parsed_count = (uint8_t)count_kind_of(sql);
    (void)feed_note_text(c, sql, (enum count_kind)c->parsed_count);
    if (is_good && name.n > 0)
        client_named_add(&c->named, name, sql, (enum count_kind)c->parsed_count);
    return sql;
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
    if (st != NULL &&
        !count_is_of_rows((enum count_kind)st->kind)) /* a role or a database may be dropped */
        client_watch_relayed(c, slice_of_str(st->sql));
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

struct slice feed_note_extended(struct client *c, char type, struct slice msg)
{
    struct slice sql = slice_of(NULL, 0);

    if (type == FE_PARSE) {
        sql = feed_note_parse(c, msg);
    } else if (type == FE_BIND) {
        feed_note_bind(c, msg);
    } else if (type == FE_CLOSE) {
        feed_note_close(c, msg);
    } else if (type == FE_EXECUTE) {
        feed_note_execute(c);
    }
    return sql;
}

/* What the messages of one read ask of the books, taken together. */
struct feed_books {
    struct slice sql;  /* the last text; p is NULL: there was none */
    unsigned nqueries; /* Queries and Executes */
    bool is_said;      /* one of those, or a Parse */
};

HOT bool feed_is_own(struct client *c)
{
    return !client_has_console(c) && (client_patch(c) == NULL || !client_patch_is_behind(c)) &&
           c->target != NULL && c->body_left == 0 && c->body_skip == 0 &&
           c->local_part == LOCAL_PART_NONE && !client_log_statements(c) && !c->trace.client;
}

/* A text that is new. False: it may be for us, or the message is malformed. */
HOT static bool feed_note_own_text(struct client *c, struct feed_books *books, struct slice name,
    struct slice msg, struct slice sql)
{
    enum count_kind kind;

    if (client_local_is_likely(sql) || (client_patch(c) != NULL && client_patch_minds(sql)))
        return false;
    kind = count_kind_of(sql);
    if (!feed_note_text(c, sql, kind))
        client_watch_relayed(c, sql);
    books->sql = sql;
    books->is_said = true;
    if (msg.p[0] == FE_QUERY) {
        books->nqueries++;
        count_statement(c->ss, c->target->pool->cluster_node, kind);
        return true;
    }
    c->parsed_count = (uint8_t)kind;
    if (name.n > 0)
        client_named_add(&c->named, name, sql, kind);
    return true;
}

/* One message of feed_own, whole. False: it has to be looked at by itself. */
static bool feed_note_own(struct client *c, struct feed_books *books, struct slice msg)
{
    struct slice name = slice_of(NULL, 0);
    struct slice sql;

    switch (msg.p[0]) {
    case FE_QUERY:
        sql = slice_of(msg.p + PROTO_HEADER_BYTES, msg.n - PROTO_HEADER_BYTES);
        if (sql.n > 0 && sql.p[sql.n - 1] == '\0')
            sql.n--;
        return feed_note_own_text(c, books, name, msg, sql);
    case FE_PARSE:
        return feed_read_parse(msg, &name, &sql) && feed_note_own_text(c, books, name, msg, sql);
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

HOT const char *feed_own(struct client *c, const char *p, const char *end)
{
    struct feed_books books = {.nqueries = 0};
    size_t len;

    for (; end - p > PROTO_HEADER_BYTES - 1; p += len) {
        len = message_bytes(p);
        if (len < PROTO_HEADER_BYTES || len > (size_t)(end - p) || len > CLIENT_COLLECT_MAX ||
            !feed_note_own(c, &books, slice_of(p, len)))
            break;
        if (*p == FE_QUERY) {
            link_expect(c->target, OP_QUERY);
        } else {
            link_expect(c->target, expect_op_of(*p));
            c->server_batch = *p != FE_SYNC;
        }
    }
    if (books.nqueries > 0)
        client_stats_on_queries(c, books.nqueries);
    if (books.is_said)
        client_note_sent(c, books.sql);
    return p;
}
