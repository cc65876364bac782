/* SPDX-License-Identifier: PostgreSQL
 * nature.c: kinds of statements, as native replication sees them. Runs in: workers. Pure. */
#include "config.h"

#include "replicate/nature.h"

#include <string.h>
#include <strings.h>

#include "base/arena.h"
#include "replicate/locks.h"

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

/* PostgreSQL, too, lets a transaction choose its level and lock before its snapshot. */
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

static bool is_around(char c)
{
    return c == ';' || c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

void repl_place_alone(struct slice text, struct sql_stmt *s)
{
    s->offset = 0;
    s->len = (uint32_t)text.n;
    while (s->len > 0 && is_around(text.p[s->len - 1]))
        s->len--;
    while (s->len > 0 && is_around(text.p[s->offset])) {
        s->offset++;
        s->len--;
    }
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

bool repl_is_of_main(const struct sql_stmt *s)
{
    return s->kind == SQL_LISTEN || s->kind == SQL_NOTIFY || s->verb == SQL_VERB_UNLISTEN ||
           s->kind == SQL_SHOW ||
           (s->kind == SQL_SET && slice_eq_str(s->set.name, "transaction_snapshot"));
}

bool repl_only_reads(const struct sql_stmt *s)
{
    return s->kind == SQL_SELECT && s->flags == SQL_F_READ_ONLY;
}

bool repl_is_one_read(const struct sql_facts *facts)
{
    return facts->status == SQL_OK && facts->nstmts == 1 && repl_only_reads(facts->stmts);
}

const char *repl_unsupported(const struct sql_stmt *s)
{
    if (s->kind == SQL_COPY_FROM && (s->flags & SQL_F_COPY_STDIO) == 0)
        return "COPY FROM a file of the server, which each has or has not: use COPY FROM STDIN, or "
               "\\copy of psql";
    if (s->kind == SQL_COPY_TO && (s->flags & SQL_F_COPY_STDIO) == 0)
        return "COPY TO a file of the server: use COPY TO STDOUT, or \\copy of psql";
    if (s->tx.op >= SQL_TX_PREPARE)
        return "PREPARE TRANSACTION";
    if (repl_imports_lobj(s))
        return "lo_import of a file of the server, which each has or has not: use that of libpq, "
               "or \\lo_import of psql";
    return NULL;
}

/* ---- what only looks ---- */

static bool only_looks(const struct sql_func *f)
{
    static const char *const name[] = {"pg_backend_pid", "pg_database_size", "pg_indexes_size",
        "pg_partition_ancestors", "pg_partition_tree", "pg_relation_size", "pg_table_size",
        "pg_tablespace_size", "pg_total_relation_size"};

    if (f->schema.n > 0 && !slice_eq_str(f->schema, "pg_catalog"))
        return false;
    for (unsigned i = 0; i < sizeof name / sizeof name[0]; i++) {
        if (slice_eq_str(f->name, name[i]))
            return true;
    }
    return f->name.n > 12 && memcmp(f->name.p, "pg_stat_get_", 12) == 0;
}

bool repl_shows_numbers(struct slice text)
{
    static const char *const name[] = {
        "class", "type", "proc", "oper", "namespace", "role", "config", "dictionary", "collation"};
    const char *end = text.p + text.n;

    for (const char *p = text.p; p + 3 < end; p++) {
        if ((*p | 0x20) != 'r' || strncasecmp(p, "reg", 3) != 0)
            continue;
        for (unsigned i = 0; i < sizeof name / sizeof name[0]; i++) {
            size_t len = strlen(name[i]);

            if ((size_t)(end - p) >= 3 + len && strncasecmp(p + 3, name[i], len) == 0)
                return true;
        }
    }
    return false;
}

bool repl_leave_out_looks(struct arena *a, struct sql_facts *facts, uint32_t i)
{
    const struct sql_stmt *s = &facts->stmts[i];
    struct sql_stmt *stmts;
    struct sql_func *funcs;
    uint32_t nfuncs = 0;
    uint32_t k = 0;

    while (k < s->nfuncs && !only_looks(&s->funcs[k]))
        k++;
    if (k == s->nfuncs)
        return false;
    stmts = arena_alloc(a, facts->nstmts * sizeof *stmts);
    funcs = arena_alloc(a, s->nfuncs * sizeof *funcs);
    if (stmts == NULL || funcs == NULL)
        return false;
    memcpy(stmts, facts->stmts, facts->nstmts * sizeof *stmts);
    for (k = 0; k < s->nfuncs; k++) {
        if (!only_looks(&s->funcs[k]))
            funcs[nfuncs++] = s->funcs[k];
    }
    stmts[i].funcs = funcs;
    stmts[i].nfuncs = nfuncs;
    facts->stmts = stmts;
    facts->verdict = NULL; /* it is not that of this */
    return true;
}

/* ---- by what a write chooses its rows ---- */

static bool is_word(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '$' || (unsigned char)c >= 0x80;
}

/* Words, quoted or not, are words; the rest are single characters. An end, or a semicolon, is an
 * empty one. */
static struct slice next_word(struct slice *rest)
{
    struct slice word;

    while (rest->n > 0 && (*rest->p == ' ' || *rest->p == '\t' || *rest->p == '\n' ||
                              *rest->p == '\r' || *rest->p == '"'))
        *rest = slice_of(rest->p + 1, rest->n - 1);
    word = slice_of(rest->p, rest->n > 0 && *rest->p != ';');
    while (word.n < rest->n && is_word(*word.p) && is_word(rest->p[word.n]))
        word.n++;
    *rest = slice_of(rest->p + word.n, rest->n - word.n);
    return word;
}

static bool slice_is(struct slice word, const char *text)
{
    return word.n == strlen(text) && strncasecmp(word.p, text, word.n) == 0;
}

/* A number, a parameter, a string without quotes in it. */
static bool take_value(struct slice *rest)
{
    struct slice word = next_word(rest);

    if (!slice_is(word, "'"))
        return word.n > 0 && (*word.p == '$' || (*word.p >= '0' && *word.p <= '9'));
    while (rest->n > 0 && *rest->p != '\'' && *rest->p != '\\')
        *rest = slice_of(rest->p + 1, rest->n - 1);
    return slice_is(next_word(rest), "'");
}

static bool has_word(struct slice text, struct slice name)
{
    struct slice word;

    while ((word = next_word(&text)).n > 0) {
        if (word.n == name.n && strncasecmp(word.p, name.p, name.n) == 0)
            return true;
    }
    return false;
}

/* `... WHERE [table.]column = value [RETURNING ...]`, as programs write it that have a key; a
 * comment is taken for something else. */
static bool is_by_one_value(struct slice text)
{
    struct slice rest = text;
    struct slice where = slice_of("", 0);
    struct slice word;
    struct slice column;

    while ((word = next_word(&rest)).n > 0) {
        if (slice_is(word, "where"))
            where = word;
        if (rest.n > 0 &&
            ((slice_is(word, "-") && *rest.p == '-') || (slice_is(word, "/") && *rest.p == '*')))
            return false;
    }
    if (where.n == 0)
        return false;
    rest = slice_of(where.p + where.n, (size_t)(text.p + text.n - where.p) - where.n);
    column = next_word(&rest);
    while (slice_is(word = next_word(&rest), "."))
        column = next_word(&rest);
    if (column.n == 0 || !is_word(*column.p) || !slice_is(word, "=") || !take_value(&rest))
        return false;
    word = next_word(&rest);
    return (word.n == 0 || slice_is(word, "returning")) &&
           !has_word(slice_of(text.p, (size_t)(where.p - text.p)), column);
}

enum repl_choice repl_choice_of(struct slice text, const struct sql_stmt *s)
{
    switch (s->kind) {
    case SQL_UPDATE:
    case SQL_DELETE:
        /* The length of `s` may be that of a text with other numbers. */
        return s->offset < text.n &&
                       is_by_one_value(slice_of(text.p + s->offset, text.n - s->offset))
                   ? REPL_CHOICE_VALUE
                   : REPL_CHOICE_FREE;
    case SQL_MERGE:
        return REPL_CHOICE_FREE;
    default:
        return (s->flags & SQL_F_DML_IN_CTE) != 0 ||
                       (s->kind == SQL_EXPLAIN && (s->flags & SQL_F_ANALYZE) != 0)
                   ? REPL_CHOICE_FREE
                   : REPL_CHOICE_NONE;
    }
}
