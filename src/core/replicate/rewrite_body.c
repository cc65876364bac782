/* SPDX-License-Identifier: PostgreSQL
 * rewrite_body.c: bodies of functions that are made, and of DO: what in them is another thing on
 * each node is named, by its words. Runs in: workers. Pure.
 *
 * A function runs on the servers alone, where nothing can be replaced; the text that makes it is
 * the only one that is ever seen of it, a trigger's for instance. */
#include "config.h"

#include "base/arena.h"
#include "rewrite_int.h"

#include <string.h>
#include <strings.h>

static const char *const no_call[] = {
    "current_timestamp", "current_date", "current_time", "localtime", "localtimestamp"};
static const char *const call[] = {
    "now", "transaction_timestamp", "statement_timestamp", "clock_timestamp", "timeofday"};

static bool is_of(struct slice word, const char *const *list, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (slice_ieq_str(word, list[i]))
            return true;
    }
    return false;
}

static bool call_differs(struct repl_work *w, struct slice word)
{
    struct sql_func f = {.name = word};
    char *low = arena_strndup(w->arena, word.p, word.n);
    const char *type;

    if (low == NULL)
        return false;
    for (size_t i = 0; i < word.n; i++)
        low[i] = (char)(low[i] | ((low[i] >= 'A' && low[i] <= 'Z') ? 0x20 : 0));
    f.name.p = low;
    return repl_call_kind(&f, &type) != REPL_CALL_SAME;
}

/* A body is a constant of the statement, or stands in it; what is quoted `within` is not looked
 * into. */
static void look(struct repl_work *w, struct slice text, uint32_t from, uint32_t to,
    const struct sql_token *tok, bool within)
{
    for (uint32_t i = from; i < to; i++) {
        struct slice word = slice_of(text.p + tok[i].offset, tok[i].len);
        bool is_called = i + 1 < to && text.p[tok[i + 1].offset] == '(';
        const struct sql_token *inner;
        struct slice body;
        uint32_t n;

        if (tok[i].kind == SQL_TOKEN_STRING && !within) {
            body = repl_inside(word);
            if (sql_tokens(w->arena, body, &inner, &n) == 0)
                look(w, body, 0, n, inner, true);
        } else if (tok[i].kind == SQL_TOKEN_WORD &&
                   (is_of(word, no_call, sizeof no_call / sizeof no_call[0]) ||
                       (is_called && (is_of(word, call, sizeof call / sizeof call[0]) ||
                                         call_differs(w, word))))) {
            repl_differs(w, word);
        }
    }
}

static bool makes_function(const struct repl_work *w)
{
    uint32_t i = w->from + 1;

    if (w->stmt->kind == SQL_DO)
        return true;
    if (w->stmt->kind != SQL_DDL || !repl_is(w, w->from, "create"))
        return false;
    if (repl_is(w, i, "or"))
        i += 2;
    return repl_is(w, i, "function") || repl_is(w, i, "procedure");
}

bool repl_bodies(struct repl_work *w)
{
    if (!makes_function(w))
        return false;
    look(w, w->text, w->from, w->to, w->tok, false);
    return true;
}
