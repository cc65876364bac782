/* SPDX-License-Identifier: PostgreSQL
 * admin_lex.c: the few tokens that SHOW and PGPOOL commands are made of.
 * Runs in: worker. Not the SQL parser: it has to say "not ours" about any text in a few
 * nanoseconds, and to read PGPOOL, which is no SQL. Pure; linear in the length of what it skips. */
#include "config.h"

#include "admin_int.h"

#include <string.h>

static bool is_blank(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_word_start(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || (unsigned char)c >= 0x80;
}

static bool is_word_char(char c)
{
    return is_word_start(c) || is_digit(c) || c == '$';
}

static char fold(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

/* Length of the (nested) comment at the start of `s`; 0 when it has no end. */
static size_t block_comment(struct slice s)
{
    unsigned depth = 0;
    size_t i = 0;

    while (i + 1 < s.n) {
        if (s.p[i] == '/' && s.p[i + 1] == '*') {
            depth++;
            i += 2;
        } else if (s.p[i] == '*' && s.p[i + 1] == '/') {
            i += 2;
            if (--depth == 0)
                return i;
        } else {
            i++;
        }
    }
    return 0;
}

/* Skips blanks and comments; false at a comment without end. */
static bool skip_blanks(struct slice *rest)
{
    const char *newline;
    size_t n;

    for (;;) {
        while (rest->n > 0 && is_blank(rest->p[0]))
            *rest = slice_of(rest->p + 1, rest->n - 1);
        if (rest->n < 2)
            return true;
        if (rest->p[0] == '-' && rest->p[1] == '-') {
            newline = memchr(rest->p, '\n', rest->n);
            n = newline == NULL ? rest->n : (size_t)(newline - rest->p) + 1;
        } else if (rest->p[0] == '/' && rest->p[1] == '*') {
            n = block_comment(*rest);
            if (n == 0)
                return false;
        } else {
            return true;
        }
        *rest = slice_of(rest->p + n, rest->n - n);
    }
}

/* Length of the literal whose opening quote is at `from`; 0 when it has no end. */
static size_t quoted_len(struct slice s, size_t from, char quote, bool backslash)
{
    size_t i = from + 1;

    while (i < s.n) {
        if (backslash && s.p[i] == '\\') {
            i += 2;
        } else if (s.p[i] != quote) {
            i++;
        } else if (i + 1 < s.n && s.p[i + 1] == quote) {
            i += 2;
        } else {
            return i + 1;
        }
    }
    return 0;
}

static size_t number_len(struct slice s)
{
    size_t i = 1;

    while (i < s.n && (is_word_char(s.p[i]) || s.p[i] == '.'))
        i++;
    return i;
}

static size_t word_len(struct slice s)
{
    size_t i = 1;

    while (i < s.n && is_word_char(s.p[i]))
        i++;
    return i;
}

struct admin_token admin_lex(struct slice *rest)
{
    struct admin_token t = {ADMIN_TOKEN_END, {"", 0}};
    size_t n = 0;
    char c;

    if (!skip_blanks(rest)) {
        t.kind = ADMIN_TOKEN_BAD;
        t.raw = *rest;
        return t;
    }
    if (rest->n == 0)
        return t;
    c = rest->p[0];
    if (fold(c) == 'e' && rest->n > 1 && rest->p[1] == '\'') {
        t.kind = ADMIN_TOKEN_ESCAPED;
        n = quoted_len(*rest, 1, '\'', true);
    } else if (is_word_start(c)) {
        t.kind = ADMIN_TOKEN_WORD;
        n = word_len(*rest);
    } else if (c == '\'' || c == '"') {
        t.kind = c == '"' ? ADMIN_TOKEN_QUOTED : ADMIN_TOKEN_STRING;
        n = quoted_len(*rest, 0, c, false);
    } else if (is_digit(c) || (c == '.' && rest->n > 1 && is_digit(rest->p[1]))) {
        t.kind = ADMIN_TOKEN_NUMBER;
        n = number_len(*rest);
    } else {
        t.kind = ADMIN_TOKEN_SYMBOL;
        n = 1;
    }
    if (n == 0) {
        t.kind = ADMIN_TOKEN_BAD;
        n = rest->n;
    }
    t.raw = slice_of(rest->p, n);
    *rest = slice_of(rest->p + n, rest->n - n);
    return t;
}

bool admin_token_is_word(const struct admin_token *t, const char *word)
{
    return t->kind == ADMIN_TOKEN_WORD && slice_ieq_str(t->raw, word);
}

bool admin_token_is_symbol(const struct admin_token *t, char symbol)
{
    return t->kind == ADMIN_TOKEN_SYMBOL && t->raw.p[0] == symbol;
}

/* Undoes the quoting of `inner` into `out`, which has room for inner.n bytes; returns the length.
 */
static size_t unquote(struct slice inner, char quote, bool backslash, char *out)
{
    size_t n = 0;
    size_t i;
    char c;

    for (i = 0; i < inner.n; i++) {
        c = inner.p[i];
        if (backslash && c == '\\' && i + 1 < inner.n) {
            c = inner.p[++i];
            c = c == 'n' ? '\n' : c == 't' ? '\t' : c == 'r' ? '\r' : c;
        } else if (c == quote && i + 1 < inner.n) {
            i++; /* the second of two */
        }
        out[n++] = c;
    }
    return n;
}

static struct slice inside_quotes(struct slice raw, size_t prefix)
{
    return slice_of(raw.p + prefix + 1, raw.n - prefix - 2);
}

int admin_token_name(const struct admin_token *t, char *out, size_t size)
{
    size_t n;
    size_t i;

    if ((t->kind != ADMIN_TOKEN_WORD && t->kind != ADMIN_TOKEN_QUOTED) || t->raw.n >= size)
        return -1;
    if (t->kind == ADMIN_TOKEN_QUOTED) {
        n = unquote(inside_quotes(t->raw, 0), '"', false, out);
    } else {
        n = t->raw.n;
        for (i = 0; i < n; i++)
            out[i] = fold(t->raw.p[i]);
    }
    out[n] = '\0';
    return n == 0 || memchr(out, '\0', n) != NULL ? -1 : (int)n;
}

char *admin_token_text(const struct admin_token *t, struct arena *a)
{
    char *out = arena_alloc(a, t->raw.n + 1);
    size_t n = 0;

    if (out == NULL)
        return NULL;
    switch (t->kind) {
    case ADMIN_TOKEN_STRING:
        n = unquote(inside_quotes(t->raw, 0), '\'', false, out);
        break;
    case ADMIN_TOKEN_ESCAPED:
        n = unquote(inside_quotes(t->raw, 1), '\'', true, out);
        break;
    case ADMIN_TOKEN_QUOTED:
        n = unquote(inside_quotes(t->raw, 0), '"', false, out);
        break;
    case ADMIN_TOKEN_WORD:
        for (n = 0; n < t->raw.n; n++)
            out[n] = fold(t->raw.p[n]);
        break;
    case ADMIN_TOKEN_NUMBER:
    case ADMIN_TOKEN_SYMBOL:
    case ADMIN_TOKEN_BAD:
    case ADMIN_TOKEN_END:
        memcpy(out, t->raw.p, t->raw.n);
        n = t->raw.n;
        break;
    }
    out[n] = '\0';
    return out;
}
