/* SPDX-License-Identifier: PostgreSQL
 * scan_text.c: the bodies of strings, quoted names, comments and operators.
 * Runs in: workers. Each function gets the place behind the opening mark and the end of the text
 * (a NUL stands there) and returns the place behind the closing mark, NULL when it never comes or
 * when PostgreSQL's scanner would refuse the content. All are linear. */
#include "config.h"

#include "sqlp_int.h"
#include "base/arena.h"

#include <string.h>

const char *sqltext_skip_line_comment(const char *p, const char *end)
{
    while (p < end && *p != '\n' && *p != '\r')
        p++;
    return p;
}

/* Comments nest; `p` is at the opening mark. */
const char *sqltext_skip_block_comment(const char *p, const char *end)
{
    unsigned depth = 0;

    while (p < end) {
        if (p[0] == '/' && p[1] == '*') {
            depth++;
            p += 2;
        } else if (p[0] == '*' && p[1] == '/') {
            p += 2;
            if (--depth == 0)
                return p;
        } else {
            p++;
        }
    }
    return NULL;
}

static bool is_space(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

/* Strings go on in the next quotes when only white space with a line break stands between; line
 * comments count as white space. Returns the place behind the new opening quote, or NULL. */
static const char *continuation(const char *p, const char *end)
{
    bool newline = false;

    while (p < end) {
        if (*p == '\n' || *p == '\r')
            newline = true;
        if (is_space(*p))
            p++;
        else if (p[0] == '-' && p[1] == '-')
            p = sqltext_skip_line_comment(p, end);
        else
            break;
    }
    return newline && *p == '\'' ? p + 1 : NULL;
}

/* Behind the quote that ends the present piece, at `p`: sees whether another piece follows. */
static const char *next_piece(const char **p, const char *end)
{
    const char *more = continuation(*p, end);

    if (more != NULL)
        *p = more;
    return more;
}

const char *sqltext_string_end(const char *p, const char *end, uint32_t *flags)
{
    for (;;) {
        p = memchr(p, '\'', (size_t)(end - p));
        if (p == NULL)
            return NULL;
        p++;
        if (*p == '\'') {
            *flags |= TOK_ESCAPED;
            p++;
            continue;
        }
        if (!next_piece(&p, end))
            return p;
        *flags |= TOK_ESCAPED;
    }
}

/* Bit strings have no doubled quotes: the first quote ends the piece. */
const char *sqltext_bits_end(const char *p, const char *end)
{
    do {
        p = memchr(p, '\'', (size_t)(end - p));
        if (p == NULL)
            return NULL;
        p++;
    } while (next_piece(&p, end));
    return p;
}

static int hex_value(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c |= 0x20;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Reads exactly `n` hex digits; -1 when there are fewer. */
static int64_t hex_number(const char *p, int n)
{
    int64_t value = 0;

    for (int i = 0; i < n; i++) {
        int h = hex_value(p[i]);
        if (h < 0)
            return -1;
        value = value * 16 + h;
    }
    return value;
}

/* A code point in an escape: `*high` is the first half of a surrogate pair that waits for its
 * second half, or 0. Returns the whole code point, 0 when half a pair was read, -1 when invalid. */
static int64_t take_code_point(int64_t c, int64_t *high)
{
    bool is_second = c >= 0xdc00 && c <= 0xdfff;

    if (c <= 0 || c > 0x10ffff || is_second != (*high != 0))
        return -1;
    if (is_second) {
        c = 0x10000 + ((*high & 0x3ff) << 10) + (c & 0x3ff);
        *high = 0;
        return c;
    }
    if (c >= 0xd800 && c <= 0xdbff) {
        *high = c;
        return 0;
    }
    return c;
}

static char *put_utf8(char *out, int64_t c)
{
    if (c < 0x80) {
        *out++ = (char)c;
    } else if (c < 0x800) {
        *out++ = (char)(0xc0 | (c >> 6));
        *out++ = (char)(0x80 | (c & 0x3f));
    } else if (c < 0x10000) {
        *out++ = (char)(0xe0 | (c >> 12));
        *out++ = (char)(0x80 | ((c >> 6) & 0x3f));
        *out++ = (char)(0x80 | (c & 0x3f));
    } else {
        *out++ = (char)(0xf0 | (c >> 18));
        *out++ = (char)(0x80 | ((c >> 12) & 0x3f));
        *out++ = (char)(0x80 | ((c >> 6) & 0x3f));
        *out++ = (char)(0x80 | (c & 0x3f));
    }
    return out;
}

/* \uXXXX or \UXXXXXXXX, `p` at the letter. Returns the place behind it, NULL when it is none. */
static const char *escape_code_point(const char *p, char **out, int64_t *high)
{
    int n = *p == 'u' ? 4 : 8;
    int64_t c = take_code_point(hex_number(p + 1, n), high);

    if (c < 0)
        return NULL;
    if (c > 0 && *out != NULL)
        *out = put_utf8(*out, c);
    return p + 1 + n;
}

/* \xXX or \NNN: a byte by its number. Returns the place behind it; `p` itself: it is neither. */
static const char *escape_number(const char *p, int *byte)
{
    int n = 0;

    *byte = 0;
    if (*p == 'x' && hex_value(p[1]) >= 0) {
        for (p++; n < 2 && hex_value(*p) >= 0; n++)
            *byte = *byte * 16 + hex_value(*p++);
        return p;
    }
    for (; n < 3 && *p >= '0' && *p <= '7'; n++)
        *byte = *byte * 8 + (*p++ - '0');
    *byte &= 0xff;
    return p;
}

/* One escape of an E string, `p` behind the backslash. Writes its bytes to *out unless that is
 * NULL, and sets *raw when a byte was given by number. Returns the place behind it. */
static const char *escape(const char *p, char **out, int64_t *high, bool *raw)
{
    static const char from[] = "bfnrtv";
    static const char to[] = "\b\f\n\r\t\v";
    const char *behind;
    const char *known;
    int byte;

    if (*p == 'u' || *p == 'U')
        return escape_code_point(p, out, high);
    if (*high != 0)
        return NULL;
    behind = escape_number(p, &byte);
    if (behind > p) {
        *raw |= byte == 0 || byte > 0x7f;
    } else {
        known = *p == '\0' ? NULL : strchr(from, *p);
        byte = known != NULL ? to[known - from] : *p;
        behind = p + 1;
    }
    if (*out != NULL)
        *(*out)++ = (char)byte;
    return behind;
}

/* Walks over an E string; with `out`, writes its value there. */
static const char *walk_estring(const char *p, const char *end, char **out, bool *raw)
{
    int64_t high = 0;

    while (p < end) {
        if (*p == '\\') {
            if (p + 1 >= end)
                return NULL;
            p = escape(p + 1, out, &high, raw);
            if (p == NULL)
                return NULL;
            continue;
        }
        if (high != 0)
            return NULL;
        if (*p == '\'' && p[1] != '\'') {
            p++;
            if (!next_piece(&p, end))
                return p;
            continue;
        }
        if (*p == '\'')
            p++;
        if (*out != NULL)
            *(*out)++ = *p;
        p++;
    }
    return NULL;
}

/* The length of the UTF-8 sequence at `p`, or 0 when it is none. */
static int utf8_len(const unsigned char *p, size_t n)
{
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    int len = p[0] < 0x80 ? 1 : p[0] < 0xc2 ? 0 : p[0] < 0xe0 ? 2 : p[0] < 0xf0 ? 3 : 4;
    uint32_t c = p[0] & (0xffu >> (len + 1));

    if (len <= 1)
        return p[0] == 0 ? 0 : len;
    if (p[0] > 0xf4 || (size_t)len > n)
        return 0;
    for (int i = 1; i < len; i++) {
        if ((p[i] & 0xc0) != 0x80)
            return 0;
        c = c << 6 | (p[i] & 0x3f);
    }
    if (c < least[len] || c > 0x10ffff || (c >= 0xd800 && c <= 0xdfff))
        return 0;
    return len;
}

bool sqltext_is_utf8(const char *p, size_t n)
{
    while (n > 0) {
        int len = utf8_len((const unsigned char *)p, n);
        if (len == 0)
            return false;
        p += len;
        n -= (size_t)len;
    }
    return true;
}

/* Bytes given by number must make valid UTF-8 with their neighbours: then the value is made. */
const char *sqltext_estring_end(struct sqlp *st, const char *p, const char *end)
{
    char *none = NULL;
    bool raw = false;
    const char *close = walk_estring(p, end, &none, &raw);

    if (close == NULL || !raw)
        return close;

    char *value = arena_alloc(st->arena, (size_t)(close - p));
    char *out = value;

    if (value == NULL) {
        st->no_memory = true;
        return NULL;
    }
    walk_estring(p, end, &out, &raw);
    return sqltext_is_utf8(value, (size_t)(out - value)) ? close : NULL;
}

const char *sqltext_ident_end(const char *p, const char *end)
{
    for (;;) {
        p = memchr(p, '"', (size_t)(end - p));
        if (p == NULL)
            return NULL;
        if (p[1] != '"')
            return p + 1;
        p += 2;
    }
}

/* `tag` is the opening mark with both dollar signs. */
const char *sqltext_dollar_end(const char *p, const char *end, const char *tag, size_t tag_len)
{
    for (;;) {
        p = memchr(p, '$', (size_t)(end - p));
        if (p == NULL || (size_t)(end - p) < tag_len)
            return NULL;
        if (memcmp(p, tag, tag_len) == 0)
            return p + tag_len;
        p++;
    }
}

static bool is_operator_char(char c)
{
    return c != '\0' && strchr("~!@#^&|`?+-*/%<>=", c) != NULL;
}

/* How much at `p` is one operator: it ends before a comment, and it ends in + or - only when it has
 * a character that no standard operator has. Signs cut off so are operators of their own, one by
 * one: *signs_end remembers where they end, lest each of them looks at all that follow. */
size_t sqltext_operator_len(const char *p, const char **signs_end)
{
    size_t n = 0;
    bool special = false;

    if (p < *signs_end)
        return 1;
    while (is_operator_char(p[n]) && !(p[n] == '/' && p[n + 1] == '*') &&
           !(p[n] == '-' && p[n + 1] == '-'))
        n++;
    if (n < 2 || (p[n - 1] != '+' && p[n - 1] != '-'))
        return n;
    for (size_t i = 0; i < n - 1 && !special; i++)
        special = strchr("~!@#^&|`?%", p[i]) != NULL;
    if (special)
        return n;
    *signs_end = p + n;
    while (n > 1 && (p[n - 1] == '+' || p[n - 1] == '-'))
        n--;
    return n;
}

/* Joins the pieces of a quoted body of `n` bytes at `p` and undoubles its quotes. Returns the end
 * of what is written to `out`. */
static char *join_pieces(const char *p, size_t n, char quote, char *out)
{
    const char *end = p + n;

    while (p != NULL && p < end) {
        if (*p == quote && *++p != quote) {
            p = continuation(p, end);
            continue;
        }
        *out++ = *p++;
    }
    return out;
}

/* Decodes escapes of `*n` bytes at `p` in place; what they stand for is never longer. The bytes end
 * with a NUL. -1 when an escape is invalid. */
static int decode_escapes(char *p, uint32_t *n, char esc)
{
    const char *end = p + *n;
    const char *from = p;
    char *out = p;
    int64_t high = 0;

    while (from < end) {
        if (*from == esc && from[1] != esc) {
            int plus = from[1] == '+';
            int digits = plus ? 6 : 4;
            int64_t c = take_code_point(hex_number(from + 1 + plus, digits), &high);
            if (c < 0)
                return -1;
            if (c > 0)
                out = put_utf8(out, c);
            from += 1 + plus + digits;
            continue;
        }
        if (high != 0)
            return -1;
        if (*from == esc)
            from++;
        *out++ = *from++;
    }
    *n = (uint32_t)(out - p);
    return high == 0 ? 0 : -1;
}

/* Decodes the body of a U&"..." or U&'...' in place of *v. -1 when an escape is invalid. */
int sqltext_unicode(struct sqlp *st, struct sql_tok *v, char esc)
{
    char *value = arena_alloc(st->arena, v->n + 1);

    if (value == NULL) {
        st->no_memory = true;
        return -1;
    }
    char *end = join_pieces(v->p, v->n, v->flags & TOK_STRING ? '\'' : '"', value);
    *end = '\0';
    v->p = value;
    v->n = (uint32_t)(end - value);
    v->flags |= TOK_DECODED;
    return decode_escapes(value, &v->n, esc);
}

/* The value of a string token, without quotes and escapes. */
struct slice sqltext_string_value(struct sqlp *st, const struct sql_tok *v)
{
    const char *p = v->p;
    const char *end = p + v->n;
    char *value;
    char *out;
    bool raw = false;

    if ((v->flags & TOK_DECODED) || !(v->flags & (TOK_ESCAPES | TOK_ESCAPED)))
        return slice_of(v->p, v->n);
    value = arena_alloc(st->arena, v->n + 1);
    out = value;
    if (value == NULL) {
        st->no_memory = true;
        return slice_of("", 0);
    }
    if (v->flags & TOK_ESCAPES) {
        walk_estring(p, end + 1, &out, &raw);
        return slice_of(value, (size_t)(out - value));
    }
    out = join_pieces(p, v->n, '\'', value);
    return slice_of(value, (size_t)(out - value));
}
