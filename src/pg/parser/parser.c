/* SPDX-License-Identifier: PostgreSQL
 * parser.c: the public entry: one parse, or one more with the words of PostgreSQL 15.
 * Runs in: workers, tools. Pure. A word that became a key word after 15 may have been a plain name
 * in a statement that older servers take: such a text is tried again, with those words as names. */
#include "config.h"

#include "parser/parser.h"

#include "base/arena.h"
#include "sqlgram.h"
#include "sqlp_int.h"

#include <string.h>

#define MAX_TEXT (1u << 30)

/* The copy that the scanner writes to: two NULs end it, and key words are read 24 bytes at once. */
const char *sqlp_copy_text(struct arena *a, struct slice text)
{
    char *copy = arena_alloc(a, text.n + 32);

    if (copy == NULL)
        return NULL;
    if (text.n != 0)
        memcpy(copy, text.p, text.n);
    memset(copy + text.n, 0, 32);
    return copy;
}

static enum sql_status run(struct sqlp *st, bool old_words)
{
    struct arena *a = st->arena;
    const char *text = st->text;
    const char *base = st->base;
    uint32_t size = st->size;
    int rc;

    memset(st, 0, sizeof(*st));
    st->arena = a;
    st->text = text;
    st->base = base;
    st->size = size;
    st->old_words = old_words;
    if (sqlscan_open(st) == -1)
        return SQL_NO_MEMORY;
    rc = sqlgram_parse(st);
    if (st->no_memory)
        return SQL_NO_MEMORY;
    if (st->odd_name && rc == 0) {
        st->error = "a name in an encoding that is not known";
        return SQL_SYNTAX;
    }
    return rc == 0 ? SQL_OK : rc == 2 ? SQL_TOO_DEEP : SQL_SYNTAX;
}

static int fail(struct sql_facts *out, enum sql_status status, const char *why, uint32_t offset)
{
    out->status = status;
    out->error = why;
    out->error_offset = offset;
    return -1;
}

int sql_parse(struct arena *a, struct slice text, struct sql_facts *out)
{
    struct sqlp st;
    const char *nul;
    struct arena_mark mark;
    enum sql_status status;

    *out = (struct sql_facts){0};
    if (text.n > MAX_TEXT)
        return fail(out, SQL_NO_MEMORY, "statement is too long", 0);
    nul = text.n == 0 ? NULL : memchr(text.p, '\0', text.n);
    if (nul != NULL)
        return fail(out, SQL_SYNTAX, "zero byte in statement", (uint32_t)(nul - text.p));
    st.arena = a;
    st.text = text.p;
    st.base = sqlp_copy_text(a, text);
    st.size = (uint32_t)text.n;
    if (st.base == NULL)
        return fail(out, SQL_NO_MEMORY, "out of memory", 0);
    mark = arena_mark(a);
    status = run(&st, false);
    if (status == SQL_SYNTAX && st.saw_new_word) {
        const char *why = st.error;
        uint32_t offset = st.error_offset;

        arena_release(a, mark);
        memcpy((char *)(uintptr_t)st.base, text.p, text.n);
        status = run(&st, true);
        if (status == SQL_SYNTAX)
            return fail(out, status, why, offset);
    }
    if (status != SQL_OK) {
        const char *why = status == SQL_TOO_DEEP ? "statement is nested too deep" : st.error;
        return fail(out, status, why != NULL ? why : "out of memory", st.last_off);
    }
    out->nstmts = st.stmts.count;
    out->stmts = st.stmts.items;
    return 0;
}

const char *sql_kind_text(enum sql_kind kind)
{
    static const char *const names[SQL_KIND_COUNT] = {[SQL_OTHER] = "other",
        [SQL_SELECT] = "select",
        [SQL_VALUES] = "values",
        [SQL_INSERT] = "insert",
        [SQL_UPDATE] = "update",
        [SQL_DELETE] = "delete",
        [SQL_MERGE] = "merge",
        [SQL_COPY_TO] = "copy_to",
        [SQL_COPY_FROM] = "copy_from",
        [SQL_EXPLAIN] = "explain",
        [SQL_BEGIN] = "begin",
        [SQL_COMMIT] = "commit",
        [SQL_ROLLBACK] = "rollback",
        [SQL_SAVEPOINT] = "savepoint",
        [SQL_SET] = "set",
        [SQL_RESET] = "reset",
        [SQL_SHOW] = "show",
        [SQL_PREPARE] = "prepare",
        [SQL_EXECUTE] = "execute",
        [SQL_DEALLOCATE] = "deallocate",
        [SQL_DECLARE] = "declare",
        [SQL_FETCH] = "fetch",
        [SQL_CLOSE] = "close",
        [SQL_LISTEN] = "listen",
        [SQL_NOTIFY] = "notify",
        [SQL_LOCK] = "lock",
        [SQL_TRUNCATE] = "truncate",
        [SQL_CALL] = "call",
        [SQL_DO] = "do",
        [SQL_DDL] = "ddl"};

    return (unsigned)kind < SQL_KIND_COUNT ? names[kind] : "other";
}
