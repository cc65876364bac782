/* SPDX-License-Identifier: PostgreSQL
 * nature.c: kinds of statements, as native replication sees them. Runs in: workers. Pure. */
#include "config.h"

#include "replicate/nature.h"

#include <string.h>
#include <strings.h>

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

static bool word_is(struct slice text, const struct sql_stmt *s, const char *word)
{
    const char *p = text.p + s->offset;
    const char *end = p + s->len;
    size_t n = strlen(word);

    while (p < end && *p != ' ' && *p != '\t' && *p != '\n')
        p++;
    while (p < end && (*p == ' ' || *p == '\t' || *p == '\n'))
        p++;
    return (size_t)(end - p) >= n && strncasecmp(p, word, n) == 0;
}

bool repl_fits_in_transaction(struct slice text, const struct sql_stmt *s, bool isolates)
{
    if ((s->flags & SQL_F_CONCURRENTLY) != 0)
        return false;
    switch (s->kind) {
    case SQL_CALL:
    case SQL_DO:
        return isolates;
    case SQL_DECLARE:
        return isolates && (s->flags & SQL_F_WITH_HOLD) != 0;
    case SQL_INSERT:
    case SQL_UPDATE:
    case SQL_DELETE:
    case SQL_MERGE:
    case SQL_SELECT:
    case SQL_VALUES:
    case SQL_TRUNCATE:
    case SQL_COPY_FROM:
    case SQL_EXPLAIN:
    case SQL_EXECUTE:
        return true;
    case SQL_DDL:
        return s->verb != SQL_VERB_CREATE_DATABASE && s->verb != SQL_VERB_DROP_DATABASE &&
               !word_is(text, s, "tablespace") && !word_is(text, s, "subscription");
    default:
        return false;
    }
}

/* What may begin a string or a comment. A dollar begins none where the number of a parameter, or
 * the rest of a name, is behind it. */
static bool begins_string(const char *p, const char *end)
{
    char next = p + 1 < end ? p[1] : '\0';

    return *p == '\'' || *p == '\\' || (*p == '$' && (next < '0' || next > '9')) ||
           (*p == '-' && next == '-') || (*p == '/' && next == '*');
}

/* Each text that is read or changed is looked through: the library does that by many bytes at once.
 */
bool repl_has_numbers_alone(struct slice text)
{
    static const char telling[] = {'\'', '\\', '$', '-', '/'};
    const char *end = text.p + text.n;
    const char *p;

    for (size_t i = 0; text.n > 0 && i < sizeof telling; i++) {
        for (p = text.p; (p = memchr(p, telling[i], (size_t)(end - p))) != NULL; p++) {
            if (begins_string(p, end))
                return false;
        }
    }
    return text.n > 0;
}

bool repl_kind_is_plain(const struct sql_stmt *s)
{
    if (s->ntimes > 0 || s->nfuncs > 0 || (s->flags & ~(SQL_F_READ_ONLY | SQL_F_RETURNING)) != 0)
        return false;
    switch (s->kind) {
    case SQL_SELECT:
    case SQL_UPDATE:
    case SQL_DELETE:
        return true;
    default:
        return s->tx.op == SQL_TX_BEGIN || s->tx.op == SQL_TX_COMMIT || s->tx.op == SQL_TX_ROLLBACK;
    }
}

bool repl_is_plain(struct slice text, const struct sql_stmt *s)
{
    return repl_kind_is_plain(s) && repl_has_numbers_alone(text);
}
