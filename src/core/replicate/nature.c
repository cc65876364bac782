/* SPDX-License-Identifier: PostgreSQL
 * nature.c: kinds of statements, as native replication sees them. Runs in: workers. Pure. */
#include "config.h"

#include "replicate/nature.h"

#include <string.h>

bool repl_leaves_state(const struct sql_stmt *s)
{
    switch (s->kind) {
    case SQL_SET:
        return s->set.scope != SQL_SET_LOCAL && s->set.scope != SQL_SET_TRANSACTION;
    case SQL_RESET:
    case SQL_PREPARE:
    case SQL_DEALLOCATE:
    case SQL_LISTEN:
    case SQL_OTHER:
    case SQL_CALL:
    case SQL_DO:
        return true;
    case SQL_DECLARE:
        return (s->flags & SQL_F_WITH_HOLD) != 0;
    default:
        return (s->flags & SQL_F_TEMP) != 0;
    }
}

bool repl_changes_nothing(const struct sql_stmt *s)
{
    switch (s->kind) {
    case SQL_SET:
    case SQL_RESET:
    case SQL_PREPARE:
    case SQL_DEALLOCATE:
        return true;
    default:
        return s->tx.op != SQL_TX_NONE || s->verb == SQL_VERB_DISCARD ||
               (s->flags & SQL_F_TEMP) != 0;
    }
}

bool repl_hides_execute(const struct sql_stmt *s)
{
    return s->inner == SQL_EXECUTE && s->kind != SQL_EXECUTE &&
           (s->kind == SQL_DDL || (s->flags & SQL_F_ANALYZE) != 0);
}

/* As PostgreSQL has it, which lets a transaction choose its level and lock before. */
bool repl_takes_no_snapshot(const struct sql_stmt *s)
{
    switch (s->kind) {
    case SQL_SET:
    case SQL_RESET:
    case SQL_SHOW:
    case SQL_LISTEN:
    case SQL_NOTIFY:
    case SQL_LOCK:
    case SQL_FETCH:
        return true;
    default:
        return s->tx.op != SQL_TX_NONE || s->verb == SQL_VERB_UNLISTEN ||
               s->verb == SQL_VERB_CHECKPOINT;
    }
}

bool repl_changes_names(const struct sql_stmt *s)
{
    if (s->kind == SQL_SET || s->kind == SQL_RESET || s->kind == SQL_OTHER ||
        s->tx.op == SQL_TX_ROLLBACK_TO)
        return true;
    for (uint32_t i = 0; i < s->nfuncs; i++) {
        if (slice_eq_str(s->funcs[i].name, "set_config"))
            return true;
    }
    return false;
}

/* No dollar begins a string: behind each is the number of a parameter, or the rest of a name. */
static bool has_parameters_alone(struct slice text)
{
    const char *end = text.p + text.n;
    const char *p = text.p;

    while ((p = memchr(p, '$', (size_t)(end - p))) != NULL) {
        p++;
        if (p == end || *p < '0' || *p > '9')
            return false;
    }
    return true;
}

bool repl_has_numbers_alone(struct slice text)
{
    return text.n > 0 && memchr(text.p, '\'', text.n) == NULL && has_parameters_alone(text) &&
           memchr(text.p, '\\', text.n) == NULL && memmem(text.p, text.n, "--", 2) == NULL &&
           memmem(text.p, text.n, "/*", 2) == NULL;
}

bool repl_is_plain(struct slice text, const struct sql_stmt *s)
{
    if (s->ntimes > 0 || s->nfuncs > 0 || (s->flags & ~(SQL_F_READ_ONLY | SQL_F_RETURNING)) != 0)
        return false;
    switch (s->kind) {
    case SQL_SELECT:
    case SQL_UPDATE:
    case SQL_DELETE:
        return repl_has_numbers_alone(text);
    default:
        return (s->tx.op == SQL_TX_BEGIN || s->tx.op == SQL_TX_COMMIT ||
                   s->tx.op == SQL_TX_ROLLBACK) &&
               repl_has_numbers_alone(text);
    }
}
