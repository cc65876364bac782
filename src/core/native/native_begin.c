/* SPDX-License-Identifier: PostgreSQL
 * native_begin.c: a plain BEGIN is answered here (virtual_begin): each node is told it with the
 * first statement that it runs; and the BEGIN of ours around a single write. With a Query it is in
 * one text, with a sequence of the extended protocol in front within it, so that a BEGIN that fails
 * leaves nothing behind it to run by itself. Runs in: workers. Must never: tell a node the end of a
 * transaction that it has not begun. */
#include "config.h"

#include <string.h>

#include "config/conf.h"
#include "wire/batch.h"
#include "wire/errmsg.h"
#include "wire/writer.h"

#include "native_int.h"

static const struct sql_stmt *lone_statement(const struct native *n)
{
    if (n->ex.is_batch || n->ex.is_call || n->facts.status != SQL_OK || n->facts.nstmts != 1)
        return NULL;
    return &n->facts.stmts[0];
}

static bool ends_all(const struct sql_stmt *s)
{
    return (s->tx.op == SQL_TX_COMMIT || s->tx.op == SQL_TX_ROLLBACK) &&
           (s->flags & SQL_F_CHAIN) == 0;
}

/* Positions in errors are counted in characters. */
static bool is_ascii(struct slice s)
{
    size_t i = 0;

    while (i < s.n && (unsigned char)s.p[i] < 0x80)
        i++;
    return i == s.n;
}

bool native_lacks_begin(const struct native *n, unsigned i)
{
    return (n->unbegun >> i & 1) != 0;
}

static bool begins(struct native *n, struct slice text, const struct sql_stmt *s)
{
    text = slice_of(text.p + s->offset, s->len);
    if (s->tx.op != SQL_TX_BEGIN || native_lacks_begin(n, n->main) || !n->ss->conf->virtual_begin ||
        n->gate.ops != NULL || n->wrapped || n->is_open || n->leg[n->main].link->tx_status != 'I' ||
        !is_ascii(text))
        return false;
    native_note_schema(n, text, s);
    buf_clear(&n->begin);
    buf_put(&n->begin, text.p, text.n);
    buf_put_byte(&n->begin, ';');
    n->unbegun = (1U << n->nlegs) - 1;
    n->leg[n->main].link->ready_as = 'T';
    return true;
}

static void put_tag(struct native *n)
{
    wire_put_command_complete(
        &n->held, (n->begin.data[0] | 0x20) == 's' ? "START TRANSACTION" : "BEGIN");
}

bool native_begin_answers(struct native *n)
{
    const struct sql_stmt *s = lone_statement(n);

    if (s == NULL || n->failed >= 0)
        return false;
    if (!native_lacks_begin(n, n->main)) {
        if (!begins(n, n->text, s))
            return false;
        put_tag(n);
        return true;
    }
    if (!ends_all(s))
        return false;
    native_begin_over(n);
    wire_put_command_complete(&n->held, s->tx.op == SQL_TX_COMMIT ? "COMMIT" : "ROLLBACK");
    return true;
}

bool native_begin_answers_batch(struct native *n, struct slice text, const struct sql_stmt *s)
{
    const char *end = n->in.data + n->scanned;
    struct batch_lone l;

    if (!batch_lone_read(&l, n->in.data, end) || l.end != end ||
        (l.parse.p != NULL && l.name.n > 0) || !batch_lone_is_bare(&l) || !begins(n, text, s))
        return false;
    if (l.parse.p != NULL)
        wire_put_empty(&n->held, BE_PARSE_COMPLETE);
    wire_put_empty(&n->held, BE_BIND_COMPLETE);
    if (l.describes)
        wire_put_empty(&n->held, BE_NO_DATA);
    put_tag(n);
    return true;
}

bool native_begin_must_go(const struct native *n, bool changes_it)
{
    const struct sql_stmt *s = lone_statement(n);
    uint32_t up = 0;

    if (n->unbegun == 0)
        return false;
    for (unsigned i = 0; i < n->nlegs && i < NATIVE_MAX_NODES; i++)
        up |= (uint32_t)(n->leg[i].phase == LEG_READY) << i;
    if ((n->unbegun & up) == 0 || n->failed >= 0)
        return false;
    if (n->ex.is_batch)
        return changes_it;
    if (s == NULL)
        return true;
    switch (s->kind) {
    case SQL_SELECT:
    case SQL_VALUES:
    case SQL_INSERT:
    case SQL_UPDATE:
    case SQL_DELETE:
    case SQL_MERGE:
        return false;
    default:
        return !ends_all(s);
    }
}

bool native_begin_skips(const struct native *n, unsigned i)
{
    const struct sql_stmt *s = lone_statement(n);

    return native_lacks_begin(n, i) && !n->ex.is_batch &&
           (n->failed >= 0 || (s != NULL && ends_all(s)));
}

/* The client's, or ours. */
static struct slice text_of(const struct native *n)
{
    return n->wrapped ? slice_of_str("BEGIN;") : buf_slice(&n->begin);
}

/* What stands in front of the client's text, in one message with it. */
static void put_front(struct native_leg *leg, bool begins, struct buf *out)
{
    struct slice begin = begins ? text_of(leg->n) : slice_of("", 0);

    buf_put(out, begin.p, begin.n);
    native_numbers_sql(leg, out);
    leg->glue = out->len > begin.n ? GLUE_NUMBERS : GLUE_BEGIN;
    if (out->data[out->len - 1] != ';')
        buf_put_byte(out, ';');
    leg->front = out->len;
}

void native_begin_put(const struct native *n, struct native_leg *leg, bool begins, struct buf *out)
{
    struct slice begin = text_of(n);
    struct buf both = {0};

    if (n->ops.len == 1 && n->ops.data[0] == OP_QUERY) {
        put_front(leg, begins, &both);
        buf_put(&both, n->out.data + PROTO_HEADER_BYTES, n->out.len - PROTO_HEADER_BYTES - 1);
        wire_put_query(out, buf_slice(&both));
        buf_free(&both);
        return;
    }
    begin.n--;
    if (n->ex.is_batch) {
        native_put_own(out, &both, "pgpool_native_begin", begin);
        for (uint32_t i = 0; i < both.len; i++)
            link_expect(leg->link, (unsigned char)both.data[i]);
    } else {
        link_expect(leg->link, OP_QUERY | OP_SWALLOW);
        wire_put_query(out, begin);
    }
    buf_put(out, n->out.data, n->out.len);
    buf_free(&both);
}

void native_begin_put_error(const struct native_leg *leg, struct buf *error)
{
    struct buf moved = {0};

    errmsg_put_moved(&moved, buf_slice(error), leg->front);
    buf_free(error);
    *error = moved;
}

void native_begin_note(struct native *n, unsigned i)
{
    struct link *link = n->leg[i].link;

    if (link == NULL || link->tx_status == 'I')
        return;
    n->unbegun &= ~(1U << i);
    link->ready_as = 0;
}

void native_begin_over(struct native *n)
{
    struct link *link = n->leg[n->main].link;

    if (link != NULL && native_lacks_begin(n, n->main))
        link->ready_as = 0;
    n->unbegun = 0;
    buf_clear(&n->begin);
}

bool native_goes_ahead(const struct native *n, const struct sql_stmt *s)
{
    return s != NULL && n->planned_stmt == s && !n->wrapped &&
           n->leg[n->main].link->tx_status == 'T' &&
           (s->kind == SQL_INSERT || s->kind == SQL_UPDATE || s->kind == SQL_DELETE ||
               s->kind == SQL_MERGE) &&
           repl_asks_of_transaction(&n->plan);
}
