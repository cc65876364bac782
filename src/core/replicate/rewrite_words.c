/* SPDX-License-Identifier: PostgreSQL
 * rewrite_words.c: constants that PostgreSQL reads by its clock where a time is meant: 'now',
 * 'today 10:00', '[now,)'. Runs in: workers. Pure.
 *
 * Where the type is written, or is known of the column, they are replaced (rewrite_time.c). What
 * the server finds out by itself is named: too much rather than too little. */
#include "config.h"

#include "base/arena.h"
#include "rewrite_int.h"

#include <string.h>
#include <strings.h>

/* More words beside the one that moves are no time: a zone, and AM or PM. */
#define OTHER_WORDS 2

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool word_moves(struct slice s)
{
    static const char *const word[] = {"now", "today", "tomorrow", "yesterday"};

    for (unsigned k = 0; k < sizeof word / sizeof word[0]; k++) {
        if (slice_ieq_str(s, word[k]))
            return true;
    }
    return false;
}

/* Times, arrays and ranges of them are made of digits, words and these. */
static bool may_stand_in_time(struct slice s, size_t i)
{
    if (s.p[i] == ':') /* of hours and minutes; not of a document */
        return i > 0 && is_digit(s.p[i - 1]) && i + 1 < s.n && is_digit(s.p[i + 1]);
    return is_digit(s.p[i]) || strchr(" \t\r\n\v\f.,+-/_{}[]()\"", s.p[i]) != NULL;
}

bool repl_word_moves(struct slice s)
{
    unsigned others = 0;
    bool moves = false;

    for (size_t i = 0; i < s.n; i++) {
        size_t from = i;

        if (s.p[i] == '\0' || (!is_letter(s.p[i]) && !may_stand_in_time(s, i)))
            return false;
        while (i < s.n && is_letter(s.p[i]))
            i++;
        if (i == from)
            continue;
        if (word_moves(slice_of(s.p + from, i - from)))
            moves = true;
        else if (++others > OTHER_WORDS)
            return false;
        i--;
    }
    return moves;
}

struct slice repl_inside(struct slice quoted)
{
    size_t from = 1;

    while (from < quoted.n && quoted.p[from] != quoted.p[0] && quoted.p[0] == '$')
        from++; /* its tag */
    if (quoted.n > 0 && quoted.p[0] == '$')
        return from + 1 + from + 1 > quoted.n
                   ? slice_of("", 0)
                   : slice_of(quoted.p + from + 1, quoted.n - 2 * (from + 1));
    for (from = 0; from < quoted.n && quoted.p[from] != '\'';)
        from++;
    return from + 2 > quoted.n ? slice_of("", 0)
                               : slice_of(quoted.p + from + 1, quoted.n - from - 2);
}

bool repl_constant_moves(struct slice quoted)
{
    return repl_word_moves(repl_inside(quoted));
}

void repl_settle(struct repl_work *w, uint32_t i)
{
    if (w->settled == NULL)
        w->settled = arena_alloc_zero(w->arena, (w->to + 1) * sizeof *w->settled);
    if (w->settled != NULL)
        w->settled[i] = true;
}

bool repl_is_settled(const struct repl_work *w, uint32_t i)
{
    return w->settled != NULL && w->settled[i];
}

bool repl_is_text_type(struct slice type)
{
    static const char *const name[] = {"text", "character", "character varying", "name", "citext",
        "json", "jsonb", "xml", "bytea"};

    for (unsigned k = 0; k < sizeof name / sizeof name[0]; k++) {
        size_t n = strlen(name[k]);

        if (type.n >= n && memcmp(type.p, name[k], n) == 0 &&
            (type.n == n || type.p[n] == '(' || type.p[n] == '['))
            return true;
    }
    return false;
}
