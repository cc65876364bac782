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

/* Kept apart until the link is quiet: only then is it known how it went. */
static void note_setting(struct client *c, struct slice text)
{
    log_add(c, &c->balance->pending, text);
}

static void note_discard_all(struct client *c)
{
    struct balance *b = c->balance;

    buf_free(&b->log);
    buf_free(&b->pending);
    b->rs.state_unknown = false;
    b->rs.has_temp_tables = false;
    b->rs.search_path_changed = false;
    buf_free(&b->path);
    route_trace_on_discard(b->trace);
    statements_free(&c->statements);
    if (b->phase != READER_NONE && c->target != b->reader)
        balance_drop_reader(c, true); /* it is reset on its way back */
}

static bool is_transaction_default(struct slice name)
{
    static const char prefix[] = "default_transaction_";

    return name.n > sizeof prefix - 1 && memcmp(name.p, prefix, sizeof prefix - 1) == 0;
}

static void note_set(struct client *c, const struct sql_stmt *s, struct slice text)
{
    switch (s->set.scope) {
    case SQL_SET_SESSION:
        note_setting(c, text);
        if (is_transaction_default(s->set.name))
            c->balance->rs.state_unknown = true; /* a standby may refuse what the primary takes */
        break;
    case SQL_SET_CHARACTERISTICS:
        c->balance->rs.state_unknown = true;
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

static void note_statement_facts(struct client *c, const struct sql_stmt *s, struct slice text)
{
    struct balance *b = c->balance;

    switch (s->kind) {
    case SQL_SET:
        note_path(c, s);
        note_set(c, s, text);
        break;
    case SQL_RESET:
        note_path(c, s);
        note_setting(c, text);
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
    route_trace_note(&b->trace, c->ss->rules, text, s, true);
    note_functions(c, s);
}

void balance_note_facts(struct client *c, struct slice sql, const struct sql_facts *facts)
{
    bool is_open = balance_tx_status(c) != 'I';
    uint32_t nends = 0;
    uint32_t i;

    for (i = 0; i < facts->nstmts; i++) {
        const struct sql_stmt *s = &facts->stmts[i];
        struct slice text = slice_of("", 0);

        if (s->kind == SQL_BEGIN)
            is_open = true;
        else if (s->kind == SQL_COMMIT || s->kind == SQL_ROLLBACK)
            is_open = (s->flags & SQL_F_CHAIN) != 0, nends++;
        if ((size_t)s->offset + s->len <= sql.n)
            text = slice_of(sql.p + s->offset, s->len);
        note_statement_facts(c, s, text);
    }
    /* Outside a transaction block the string is a transaction of its own, unless it says otherwise.
     */
    if (!is_open && c->balance->tx_end == 0)
        c->balance->tx_end = SQL_COMMIT;
    /* Settings before and behind the end of a transaction in one string share one fate here. */
    if (nends > 0 && facts->nstmts > 1 && c->balance->pending.len > 0)
        c->balance->rs.state_unknown = true;
}

/* The settings of the transaction that just ended are the session's, or never were. */
static void settle_pending(struct client *c, bool committed)
{
    struct balance *b = c->balance;

    if (committed) {
        route_trace_on_commit(b->trace);
        if (b->log.len + b->pending.len > BALANCE_LOG_MAX)
            b->rs.state_unknown = true;
        else
            buf_put(&b->log, b->pending.data, b->pending.len);
    } else {
        route_trace_on_rollback(b->trace);
        /* With several statements under way it is not known which of them failed. */
        if (b->saw_error && b->nexchanges > 1 && b->pending.len > 0)
            b->rs.state_unknown = true;
    }
    buf_free(&b->pending);
    b->rs.wrote_in_tx = false;
}

/* The own link is quiet: has a transaction ended (also one with AND CHAIN, or one within a string
 * of several statements)? */
void balance_end_tx(struct client *c)
{
    struct balance *b = c->balance;
    bool is_open = balance_tx_status(c) != 'I';
    bool committed = b->tx_end == SQL_COMMIT && !b->saw_error && !b->tx_failed;

    if (b->tx_end != 0 || (b->tx_was_open && !is_open) || (!is_open && b->pending.len > 0))
        settle_pending(c, committed);
    b->tx_end = 0;
    b->tx_was_open = is_open;
    if (balance_tx_status(c) != 'E')
        b->tx_failed = false;
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
