/* SPDX-License-Identifier: PostgreSQL
 * balance_state.c: what a session changed of its own state, so that the reader can be brought to
 * it. SET and RESET statements are kept as text and replayed in order, those of a transaction only
 * after it was committed. What cannot be replayed (set_config(), DO, CALL, LOAD, a rolled back
 * savepoint) makes the session read from the primary until DISCARD ALL, and PGPOOL EXPLAIN says so.
 */
#include "config.h"

#include <string.h>

#include "parser/parser.h"
#include "route/route_oracle.h"
#include "wire/writer.h"

#include "balance_int.h"

static void log_add(struct client *c, struct buf *to, struct slice text)
{
    if (to->len + text.n + 1 > BALANCE_LOG_MAX) {
        c->balance->rs.state_unknown = true;
        return;
    }
    buf_put(to, text.p, text.n);
    buf_put_byte(to, '\0');
}

static void note_setting(struct client *c, struct slice text, bool in_tx)
{
    struct balance *b = c->balance;

    log_add(c, in_tx ? &b->pending : &b->log, text);
}

static void note_discard_all(struct client *c)
{
    struct balance *b = c->balance;

    buf_free(&b->log);
    buf_free(&b->pending);
    b->rs.state_unknown = false;
    b->rs.has_temp_tables = false;
    b->rs.search_path_changed = false;
    route_trace_on_discard(b->trace);
    statements_free(&c->statements);
    if (b->phase != READER_NONE && c->target != b->reader)
        balance_drop_reader(c, true); /* it is reset on its way back */
}

static void note_set(struct client *c, const struct sql_stmt *s, struct slice text, bool in_tx)
{
    switch (s->set.scope) {
    case SQL_SET_SESSION:
    case SQL_SET_CHARACTERISTICS:
        note_setting(c, text, in_tx);
        break;
    case SQL_SET_NONE:
    case SQL_SET_LOCAL:
    case SQL_SET_TRANSACTION:
    case SQL_SET_CONSTRAINTS:
        break;
    }
}

/* Settings that give names another meaning. */
static void note_path(struct client *c, const struct sql_stmt *s)
{
    if (slice_eq_str(s->set.name, "search_path") || slice_eq_str(s->set.name, "role") ||
        slice_eq_str(s->set.name, "session_authorization") || (s->flags & SQL_F_ALL) != 0)
        c->balance->rs.search_path_changed = true;
}

static void note_functions(struct client *c, const struct sql_stmt *s)
{
    uint32_t i;

    for (i = 0; i < s->nfuncs; i++)
        if (slice_eq_str(s->funcs[i].name, "set_config"))
            c->balance->rs.state_unknown = true;
}

static void note_statement_facts(
    struct client *c, const struct sql_stmt *s, struct slice text, bool in_tx)
{
    struct balance *b = c->balance;

    switch (s->kind) {
    case SQL_SET:
        note_path(c, s);
        note_set(c, s, text, in_tx);
        break;
    case SQL_RESET:
        note_path(c, s);
        note_setting(c, text, in_tx);
        break;
    case SQL_COMMIT:
    case SQL_ROLLBACK:
        b->tx_end = (uint8_t)s->kind;
        break;
    case SQL_SAVEPOINT:
        if (s->tx.op == SQL_TX_ROLLBACK_TO && b->pending.len > 0)
            b->rs.state_unknown = true;
        if (s->tx.op == SQL_TX_ROLLBACK_TO)
            route_trace_on_rollback_to(b->trace);
        break;
    case SQL_DEALLOCATE:
        if ((s->flags & SQL_F_ALL) != 0)
            statements_free(&c->statements);
        else if (c->statements != NULL)
            statements_remove(c->statements, s->name);
        break;
    default:
        if (s->verb == SQL_VERB_LOAD)
            b->rs.state_unknown = true;
        if (s->verb == SQL_VERB_DISCARD && slice_ieq_str(s->name, "all"))
            note_discard_all(c);
        break;
    }
    if ((s->flags & SQL_F_TEMP) != 0)
        b->rs.has_temp_tables = true;
    if (s->kind == SQL_DDL)
        route_cache_clear(c->ss->answers);
    route_trace_note(&b->trace, c->ss->rules, text, s, in_tx);
    note_functions(c, s);
}

void balance_note_facts(struct client *c, struct slice sql, const struct sql_facts *facts)
{
    bool is_implicit = c->link->tx_status == 'I' && facts->nstmts > 1;
    bool in_tx = c->link->tx_status != 'I' || is_implicit;
    uint32_t i;

    for (i = 0; i < facts->nstmts; i++) {
        const struct sql_stmt *s = &facts->stmts[i];
        struct slice text = slice_of("", 0);

        if (s->kind == SQL_BEGIN)
            in_tx = true;
        if ((size_t)s->offset + s->len <= sql.n)
            text = slice_of(sql.p + s->offset, s->len);
        note_statement_facts(c, s, text, in_tx);
    }
    /* Several statements in one string are one transaction unless they say otherwise. */
    if (is_implicit && c->balance->tx_end == 0)
        c->balance->tx_end = SQL_COMMIT;
}

/* The own link's transaction ended, or none was open. */
void balance_end_tx(struct client *c)
{
    struct balance *b = c->balance;
    bool is_open = c->link->tx_status != 'I';

    if (b->tx_was_open && !is_open) {
        b->rs.wrote_in_tx = false;
        if (b->tx_end == SQL_COMMIT && !b->saw_error)
            route_trace_on_commit(b->trace);
        else
            route_trace_on_rollback(b->trace);
    }
    if (!is_open && b->pending.len > 0) {
        if (b->tx_end == SQL_COMMIT && !b->saw_error) {
            if (b->log.len + b->pending.len > BALANCE_LOG_MAX)
                b->rs.state_unknown = true;
            else
                buf_put(&b->log, b->pending.data, b->pending.len);
        }
        buf_free(&b->pending);
    }
    if (!is_open)
        b->tx_end = 0;
    b->tx_was_open = is_open;
}

void balance_replay(struct client *c)
{
    struct balance *b = c->balance;
    struct buf out = {0};

    while (b->replayed < b->log.len) {
        const char *text = b->log.data + b->replayed;
        size_t n = strlen(text);

        wire_put_query(&out, slice_of(text, n));
        link_expect(b->reader, OP_QUERY | OP_SWALLOW);
        b->replayed += (uint32_t)n + 1;
    }
    if (out.len > 0)
        (void)link_send(b->reader, out.data, out.len);
    buf_free(&out);
}
