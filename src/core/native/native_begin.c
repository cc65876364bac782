/* SPDX-License-Identifier: PostgreSQL
 * native_begin.c: a plain BEGIN is answered here (virtual_begin): each node is told it with the
 * first statement that it runs, in one message, so that a BEGIN that fails leaves nothing behind
 * it to run by itself. Runs in: workers. Must never: tell a node the end of a transaction that it
 * has not begun. */
#include "config.h"

#include "config/conf.h"
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

static bool begins(struct native *n, const struct sql_stmt *s)
{
    struct slice text = slice_of(n->text.p + s->offset, s->len);

    if (s->tx.op != SQL_TX_BEGIN || !n->ss->conf->virtual_begin || n->gate.ops != NULL ||
        n->wrapped || n->is_open || n->leg[n->main].link->tx_status != 'I' || !is_ascii(text))
        return false;
    buf_clear(&n->begin);
    buf_put(&n->begin, text.p, text.n);
    buf_put_byte(&n->begin, ';');
    n->unbegun = (1U << n->nlegs) - 1;
    n->leg[n->main].link->ready_as = 'T';
    wire_put_command_complete(&n->held, (text.p[0] | 0x20) == 's' ? "START TRANSACTION" : "BEGIN");
    return true;
}

bool native_begin_answers(struct native *n)
{
    const struct sql_stmt *s = lone_statement(n);

    if (s == NULL || n->failed >= 0)
        return false;
    if (!native_lacks_begin(n, n->main))
        return begins(n, s);
    if (!ends_all(s))
        return false;
    native_begin_over(n);
    wire_put_command_complete(&n->held, s->tx.op == SQL_TX_COMMIT ? "COMMIT" : "ROLLBACK");
    return true;
}

bool native_begin_must_go(const struct native *n)
{
    const struct sql_stmt *s = lone_statement(n);
    uint32_t up = 0;

    for (unsigned i = 0; i < n->nlegs; i++)
        up |= (uint32_t)(n->leg[i].phase == LEG_READY) << i;
    if ((n->unbegun & up) == 0 || n->failed >= 0)
        return false;
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

    return native_lacks_begin(n, i) && (n->failed >= 0 || (s != NULL && ends_all(s)));
}

bool native_begin_put(const struct native *n, unsigned i, struct slice sql, struct buf *out)
{
    struct buf both = {0};

    if (!native_lacks_begin(n, i)) {
        wire_put_query(out, sql);
        return false;
    }
    buf_put(&both, n->begin.data, n->begin.len);
    buf_put(&both, sql.p, sql.n);
    wire_put_query(out, buf_slice(&both));
    buf_free(&both);
    return true;
}

void native_begin_put_error(const struct native *n, struct buf *error)
{
    struct buf moved = {0};

    errmsg_put_moved(&moved, buf_slice(error), n->begin.len);
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
