/* SPDX-License-Identifier: PostgreSQL
 * rewrite_work.c: what the parts of the rewriting stand on: tokens, values that are asked for,
 * splices, constants and names. Runs in: workers. Pure. */
#include "config.h"

#include "base/arena.h"
#include "rewrite_int.h"

#include <stdarg.h>
#include <string.h>

struct slice repl_tok(const struct repl_work *w, uint32_t i)
{
    if (i >= w->to)
        return slice_of("", 0);
    return slice_of(w->text.p + w->tok[i].offset, w->tok[i].len);
}

bool repl_is(const struct repl_work *w, uint32_t i, const char *word)
{
    return i < w->to && w->tok[i].kind == SQL_TOKEN_WORD &&
           (w->text.p[w->tok[i].offset] | 0x20) == word[0] && slice_ieq_str(repl_tok(w, i), word);
}

bool repl_is_sign(const struct repl_work *w, uint32_t i, char sign)
{
    return i < w->to && w->tok[i].kind == SQL_TOKEN_SIGN && w->tok[i].len == 1 &&
           w->text.p[w->tok[i].offset] == sign;
}

bool repl_is_name(const struct repl_work *w, uint32_t i)
{
    return i < w->to && (w->tok[i].kind == SQL_TOKEN_WORD || w->tok[i].kind == SQL_TOKEN_NAME);
}

uint32_t repl_skip_parens(const struct repl_work *w, uint32_t i)
{
    uint32_t depth = 0;

    for (; i < w->to; i++) {
        if (repl_is_sign(w, i, '(') || repl_is_sign(w, i, '['))
            depth++;
        else if ((repl_is_sign(w, i, ')') || repl_is_sign(w, i, ']')) && --depth == 0)
            return i + 1;
    }
    return w->to;
}

uint32_t repl_item_end(const struct repl_work *w, uint32_t i, uint32_t end)
{
    while (i < end && !repl_is_sign(w, i, ',')) {
        if (repl_is_sign(w, i, '(') || repl_is_sign(w, i, '['))
            i = repl_skip_parens(w, i);
        else
            i++;
    }
    return i < end ? i : end;
}

uint32_t repl_token_at(const struct repl_work *w, uint32_t offset)
{
    uint32_t lo = w->from;
    uint32_t hi = w->to;

    while (lo < hi) {
        uint32_t mid = lo + (hi - lo) / 2;

        if (w->tok[mid].offset < offset)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

bool repl_names_column(struct slice written, const struct repl_column *column)
{
    size_t at = 0;

    if (written.n == 0 || written.p[0] != '"') {
        if (written.n != column->name.n)
            return false;
        for (size_t i = 0; i < written.n; i++) {
            char c = written.p[i];

            if ((c >= 'A' && c <= 'Z' ? (char)(c | 0x20) : c) != column->name.p[i])
                return false;
        }
        return true;
    }
    for (size_t i = 1; i + 1 < written.n; i++) {
        if (written.p[i] == '"')
            i++;
        if (at == column->name.n || column->name.p[at++] != written.p[i])
            return false;
    }
    return at == column->name.n;
}

static void *grow(struct repl_work *w, void *items, uint32_t n, uint32_t *cap, size_t size)
{
    void *more;

    if (n < *cap)
        return items;
    *cap = *cap == 0 ? 8 : *cap * 2;
    more = arena_alloc(w->arena, *cap * size);
    if (more == NULL) {
        w->failed = true;
        *cap = n;
        return NULL;
    }
    if (n > 0)
        memcpy(more, items, n * size);
    return more;
}

uint32_t repl_ask(struct repl_work *w, struct slice expr, struct slice cast, bool once)
{
    struct repl_plan *p = w->plan;
    struct repl_ask *asks;

    for (uint32_t i = 0; once && i < p->nasks; i++) {
        if (slice_eq(p->asks[i].expr, expr) && slice_eq(p->asks[i].cast, cast))
            return i;
    }
    if (p->nasks == (p->as_params ? REPL_MAX_ASK_PARAMS : REPL_MAX_ASKS)) {
        w->failed = true; /* never another one's value */
        return 0;
    }
    asks = grow(w, p->asks, p->nasks, &w->ask_cap, sizeof *asks);
    if (asks == NULL)
        return 0;
    p->asks = asks;
    asks[p->nasks] = (struct repl_ask){expr, cast};
    return p->nasks++;
}

struct slice repl_plain(struct repl_work *w, struct slice s)
{
    if (s.n > 0 && memchr(s.p, '\1', s.n) != NULL)
        w->failed = true;
    return s;
}

void repl_splice_text(struct repl_work *w, uint32_t offset, uint32_t len, struct slice text)
{
    struct repl_plan *p = w->plan;
    struct repl_splice *splices = grow(w, p->splices, p->nsplices, &w->splice_cap, sizeof *splices);

    if (splices == NULL)
        return;
    p->splices = splices;
    splices[p->nsplices] = (struct repl_splice){offset, len, p->nsplices, text};
    p->nsplices++;
}

void repl_splice(struct repl_work *w, uint32_t offset, uint32_t len, const char *fmt, ...)
{
    struct buf out = {0};
    va_list ap;
    const char *copy;

    va_start(ap, fmt);
    buf_vprintf(&out, fmt, ap);
    va_end(ap);
    copy = arena_strndup(w->arena, buf_slice(&out).p, out.len);
    if (copy == NULL)
        w->failed = true;
    else
        repl_splice_text(w, offset, len, slice_of(copy, out.len));
    buf_free(&out);
}

void repl_differs(struct repl_work *w, struct slice what)
{
    if (w->plan->differs.n == 0)
        w->plan->differs = what;
}

void repl_put(struct buf *out, const char *text)
{
    buf_put(out, text, strlen(text));
}

void repl_put_mark(struct buf *out, uint32_t ask)
{
    char digits[12];
    size_t at = sizeof digits;

    digits[--at] = '\2';
    do {
        digits[--at] = (char)('0' + ask % 10);
        ask /= 10;
    } while (ask > 0 && at > 1);
    digits[--at] = '\1';
    buf_put(out, digits + at, sizeof digits - at);
}

void repl_put_literal(struct buf *out, struct slice value)
{
    bool escapes = value.n > 0 && memchr(value.p, '\\', value.n) != NULL;
    size_t from = 0;

    repl_put(out, escapes ? " E'" : "'");
    for (size_t i = 0; i < value.n; i++) {
        if (value.p[i] != '\'' && value.p[i] != '\\')
            continue;
        buf_put(out, value.p + from, i + 1 - from);
        from = i; /* once more */
    }
    buf_put(out, value.p + from, value.n - from);
    buf_put_byte(out, '\'');
}

void repl_put_name(struct buf *out, struct slice name)
{
    const char *quote;

    buf_put_byte(out, '"');
    while (name.n > 0 && (quote = memchr(name.p, '"', name.n)) != NULL) {
        size_t n = (size_t)(quote + 1 - name.p);

        buf_put(out, name.p, n);
        buf_put_byte(out, '"');
        name = slice_of(name.p + n, name.n - n);
    }
    buf_put(out, name.p, name.n);
    buf_put_byte(out, '"');
}
