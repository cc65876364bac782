/* SPDX-License-Identifier: PostgreSQL
 * route_tx.c: what a read asks of its own transaction: when it began, who and what it is. Asked
 * elsewhere, the answer would be that of another transaction. Runs in: workers, for reads that are
 * about to leave a read-write transaction. */
#include "config.h"

#include "base/hot.h"

#include "route_int.h"

#include <strings.h>

/* Functions about the transaction itself. They have no arguments, but for age(), which with one
 * argument counts from today. */
static bool asks_of_tx(const struct sql_func *f)
{
    static const char *const name[] = {"pg_current_snapshot", "pg_current_xact_id_if_assigned",
        "txid_current_if_assigned", "txid_current_snapshot"};
    size_t i;

    if (slice_eq_str(f->name, "age"))
        return f->nargs == 1;
    for (i = 0; i < sizeof name / sizeof name[0]; i++)
        if (slice_eq_str(f->name, name[i]))
            return true;
    return false;
}

static bool begins_with(const char *p, const char *end, const char *word)
{
    size_t n = strlen(word);

    return (size_t)(end - p) >= n && strncasecmp(p, word, n) == 0;
}

/* 'now', 'today' and the like are times when they become one; transaction_isolation and its like
 * are read by current_setting(). */
static bool says_so(struct slice text)
{
    static const char *const word[] = {"now", "today", "tomorrow", "yesterday", "transaction_"};
    const char *end = text.p + text.n;
    const char *p = text.p;
    size_t i;

    while (p < end && (p = memchr(p, '\'', (size_t)(end - p))) != NULL) {
        for (p++; p < end && *p == ' ';)
            p++;
        for (i = 0; i < sizeof word / sizeof word[0]; i++)
            if (begins_with(p, end, word[i]))
                return true;
    }
    return false;
}

/* ACCESS EXCLUSIVE is taken while the standby replays, and held until the end of the transaction is
 * replayed: a read of the same client would wait for itself. */
WARM bool route_locks_standbys(const struct sql_stmt *s)
{
    switch (s->kind) {
    case SQL_DDL:
    case SQL_TRUNCATE:
        return true;
    case SQL_LOCK:
        return s->lock_mode == SQL_LOCK_NONE || s->lock_mode == SQL_LOCK_ACCESS_EXCLUSIVE;
    case SQL_OTHER:
        return s->verb != SQL_VERB_DISCARD && s->verb != SQL_VERB_LOAD &&
               s->verb != SQL_VERB_UNLISTEN && s->verb != SQL_VERB_ANALYZE;
    default:
        return false;
    }
}

bool route_takes_snapshot(const struct sql_facts *facts)
{
    if (facts->nstmts == 0)
        return false;
    switch (facts->stmts[0].kind) {
    case SQL_SELECT:
    case SQL_VALUES:
    case SQL_INSERT:
    case SQL_UPDATE:
    case SQL_DELETE:
    case SQL_MERGE:
    case SQL_COPY_TO:
    case SQL_EXPLAIN:
    case SQL_EXECUTE:
        return true;
    default:
        return false;
    }
}

bool route_changes_schema(const struct sql_stmt *s)
{
    if (s->tx.op == SQL_TX_COMMIT_PREPARED || (s->flags & SQL_F_INTO) != 0)
        return true;
    if (s->kind == SQL_EXPLAIN && s->inner == SQL_DDL)
        return (s->flags & SQL_F_ANALYZE) != 0;
    return s->kind == SQL_DDL || s->kind == SQL_DO || s->verb == SQL_VERB_ALTER_SYSTEM;
}

static bool has_word(struct slice text, const char *word)
{
    size_t n = strlen(word);
    size_t i;

    for (i = 0; i + n <= text.n; i++)
        if (strncasecmp(text.p + i, word, n) == 0)
            return true;
    return false;
}

/* A table that is dropped takes types along, and so does a type. What is only added may hide what
 * statements meant by a name, or fit their parameters better; a server does not look again at a
 * statement that it has parsed for the sake of that. */
unsigned route_ddl_of(const struct sql_stmt *s, struct slice text, bool has_temp)
{
    if (s->kind == SQL_DO || s->tx.op == SQL_TX_COMMIT_PREPARED)
        return ROUTE_DDL_TYPES | ROUTE_DDL_NAMES;
    if ((s->flags & SQL_F_TEMP) != 0)
        return 0;
    if ((s->flags & SQL_F_INTO) != 0 || s->verb == SQL_VERB_CREATE_AS)
        return ROUTE_DDL_NAMES;
    if (s->kind != SQL_DDL)
        return 0;
    if (s->verb == SQL_VERB_DROP)
        return has_temp ? 0 : ROUTE_DDL_TYPES;
    if (s->verb == SQL_VERB_CREATE)
        return ROUTE_DDL_TYPES | ROUTE_DDL_NAMES;
    if (s->verb != SQL_VERB_ALTER)
        return 0;
    return has_word(text, "rename") || has_word(text, "schema") ? ROUTE_DDL_TYPES | ROUTE_DDL_NAMES
                                                                : ROUTE_DDL_TYPES;
}

bool route_asks_of_tx(struct slice text, const struct sql_stmt *s)
{
    uint32_t i;

    for (i = 0; i < s->ntimes; i++)
        if (s->times[i].kind != SQL_TIME_STATEMENT && s->times[i].kind != SQL_TIME_CLOCK)
            return true;
    for (i = 0; i < s->nfuncs; i++)
        if (asks_of_tx(&s->funcs[i]))
            return true;
    if (s->kind == SQL_SHOW)
        return begins_with(s->set.name.p, s->set.name.p + s->set.name.n, "transaction_");
    return says_so(text);
}

bool route_begins_tx(const struct sql_facts *facts)
{
    uint32_t i;

    for (i = 0; i < facts->nstmts; i++)
        if (facts->stmts[i].tx.op == SQL_TX_BEGIN)
            return true;
    return false;
}

bool route_is_plain_read(const struct sql_facts *facts)
{
    const struct sql_stmt *s = facts->stmts; /* NULL where there are none */

    return facts->nstmts == 1 && (s->kind == SQL_SELECT || s->kind == SQL_SHOW) &&
           (s->flags & SQL_F_READ_ONLY) != 0 && s->nfuncs == 0;
}

bool route_says_serializable(struct slice value)
{
    static const char word[] = "serializable";
    size_t i;

    for (i = 0; value.p != NULL && i + sizeof word - 1 <= value.n; i++)
        if (strncasecmp(value.p + i, word, sizeof word - 1) == 0)
            return true;
    return false;
}
