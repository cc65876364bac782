/* SPDX-License-Identifier: PostgreSQL
 * hba_are_lex.c: escapes and brackets of PostgreSQL's regular expressions.
 * Runs in: workers, supervisor (checking). */
#include "config.h"

#include <string.h>

#include "hba_are_int.h"

static const char bad_escape[] = "invalid escape \\ sequence";

bool hba_are_fail(struct are *a, const char *problem)
{
    if (a->problem == NULL)
        a->problem = problem;
    return false;
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

/* ---- escapes ---- */

/* Reads digits as PostgreSQL does: at least `min` of them, at most `max`. */
static bool take_digits(struct are *a, unsigned base, unsigned min, unsigned max, uint32_t *out)
{
    unsigned n;
    unsigned d;
    char c;

    *out = 0;
    for (n = 0; n < max; n++) {
        c = *a->p;
        if (is_digit(c))
            d = (unsigned)(c - '0');
        else if ((c | 0x20) >= 'a' && (c | 0x20) <= 'f')
            d = (unsigned)((c | 0x20) - 'a') + 10;
        else
            break;
        if (d >= base)
            break;
        *out = *out * base + d;
        a->p++;
    }
    return n >= min || hba_are_fail(a, bad_escape);
}

static bool take_code(struct are *a, unsigned min, unsigned max, struct esc *e)
{
    return take_digits(a, 16, min, max, &e->c) &&
           (e->c <= 0x7ffffffe || hba_are_fail(a, bad_escape));
}

/* \ and digits: a group when there is one of that number, or one digit; else a character in octal.
 */
static bool take_number(struct are *a, struct esc *e)
{
    const char *start = a->p - 1;

    if (*start != '0') {
        a->p = start;
        (void)take_digits(a, 10, 1, 255, &e->c);
        if (a->p == start + 1 || (e->c > 0 && e->c <= a->is->ngroups)) {
            e->kind = ESC_BACK;
            return true;
        }
    }
    a->p = start;
    if (!take_digits(a, 8, 1, 3, &e->c))
        return false;
    if (e->c > 255) { /* one digit too many */
        e->c >>= 3;
        a->p--;
    }
    return true;
}

/* The letters that stand for one character. */
static bool escape_char(char c, uint32_t *out)
{
    static const char from[] = "abBefnrtv";
    static const char to[] = "\a\b\\\033\f\n\r\t\v";
    const char *at = strchr(from, c);

    if (at != NULL)
        *out = (unsigned char)to[at - from];
    return at != NULL;
}

static bool escape_class(char c, struct esc *e)
{
    static const char from[] = "dsw";
    static const char *const to[] = {"digit", "space", "word"};
    const char *at = strchr(from, c | 0x20);

    if (at == NULL)
        return false;
    e->kind = ESC_CLASS;
    e->text = to[at - from];
    e->is_complement = c < 'a';
    return true;
}

/* Anchors are known by PostgreSQL's letter, but the ends of a word by < and >. */
static bool escape_anchor(char c, struct esc *e)
{
    static const char from[] = "mMyYAZ";
    static const char to[] = "<>yYAZ";
    const char *at = strchr(from, c);

    if (at == NULL)
        return false;
    e->kind = ESC_ANCHOR;
    e->c = (unsigned char)to[at - from];
    return true;
}

bool hba_are_escape(struct are *a, struct esc *e)
{
    char c = *a->p;

    *e = (struct esc){.kind = ESC_CHAR};
    if (c == '\0')
        return hba_are_fail(a, "it ends with a backslash");
    a->p++;
    if (!is_letter(c) && !is_digit(c)) {
        e->c = (unsigned char)c;
        return true;
    }
    if (is_digit(c))
        return take_number(a, e);
    if (escape_char(c, &e->c) || escape_class(c, e) || escape_anchor(c, e))
        return true;
    switch (c) {
    case 'c':
        if (*a->p == '\0')
            return hba_are_fail(a, bad_escape);
        e->c = (unsigned char)*a->p++ & 037U;
        return true;
    case 'u':
        return take_code(a, 4, 4, e);
    case 'U':
        return take_code(a, 8, 8, e);
    case 'x':
        return take_code(a, 1, 255, e);
    default:
        return hba_are_fail(a, bad_escape);
    }
}

/* ---- brackets ---- */

/* The text of [.x.], [=x=] or [:x:], whose second character was read. */
static bool take_named(struct are *a, char kind, struct slice *name)
{
    const char *start = a->p;

    while (*a->p != '\0' && !(a->p[0] == kind && a->p[1] == ']'))
        a->p++;
    if (*a->p == '\0')
        return hba_are_fail(a, "brackets [] not balanced");
    *name = slice_of(start, (size_t)(a->p - start));
    a->p += 2;
    return true;
}

static bool take_element(struct are *a, char kind, uint32_t *c)
{
    struct slice name;

    if (!take_named(a, kind, &name))
        return false;
    if (name.n != 1)
        return hba_are_fail(
            a, name.n == 0 ? "invalid collating element" : "names of characters are not supported");
    *c = (unsigned char)name.p[0];
    return true;
}

bool hba_are_class(struct are *a, struct slice name, bool is_complement, struct hba_set *s)
{
    if (a->is->ignores_case && (slice_eq_str(name, "upper") || slice_eq_str(name, "lower")))
        name = slice_of_str("alpha");
    return hba_set_add_class(s, name, is_complement) || hba_are_fail(a, "invalid character class");
}

/* One end of a range. 1: it is in *c; 0: it was a class, in the set already; -1: problem. */
static int take_end(struct are *a, bool is_first, struct hba_set *s, uint32_t *c)
{
    struct esc e;
    struct slice name;
    char kind;

    *c = (unsigned char)*a->p++;
    if (*c == '\\') {
        if (!hba_are_escape(a, &e))
            return -1;
        *c = e.c;
        if (e.kind == ESC_CLASS)
            return hba_are_class(a, slice_of_str(e.text), e.is_complement, s) ? 0 : -1;
        return e.kind == ESC_CHAR || hba_are_fail(a, bad_escape) ? 1 : -1;
    }
    kind = *a->p;
    if (*c != '[' || (kind != '.' && kind != '=' && kind != ':'))
        return *c != '-' || is_first || *a->p == ']' || hba_are_fail(a, "invalid character range")
                   ? 1
                   : -1;
    a->p++;
    if (kind == '.')
        return take_element(a, kind, c) ? 1 : -1;
    if (kind == ':')
        return take_named(a, kind, &name) && hba_are_class(a, name, false, s) ? 0 : -1;
    if (!take_element(a, kind, c))
        return -1;
    hba_set_add_range(s, *c, *c);
    return 0;
}

/* The end of a range: no class, and a dash means itself. */
static bool take_range_end(struct are *a, struct hba_set *s, uint32_t *c)
{
    const char *start = a->p;
    int rc = take_end(a, true, s, c);

    if (rc == -1)
        return false;
    return (rc == 1 && *start != '\0') || hba_are_fail(a, "invalid character range");
}

static bool take_part(struct are *a, bool is_first, struct hba_set *s)
{
    uint32_t from;
    uint32_t to;
    int rc = take_end(a, is_first, s, &from);

    if (rc != 1)
        return rc == 0;
    to = from;
    if (a->p[0] == '-' && a->p[1] != ']') {
        a->p++;
        if (*a->p == '\0')
            return hba_are_fail(a, "brackets [] not balanced");
        if (!take_range_end(a, s, &to))
            return false;
    }
    if (to < from)
        return hba_are_fail(a, "invalid character range");
    hba_set_add_range(s, from, to);
    return true;
}

bool hba_are_bracket(struct are *a, struct hba_set *s)
{
    bool is_not = *a->p == '^';
    bool is_first = true;
    unsigned c;

    memset(s, 0, sizeof *s);
    a->p += is_not;
    for (; is_first || *a->p != ']'; is_first = false) {
        if (*a->p == '\0')
            (void)hba_are_fail(a, "brackets [] not balanced");
        if (a->problem != NULL || !take_part(a, is_first, s))
            return false;
    }
    a->p++;
    if (a->is->ignores_case)
        hba_set_ignore_case(s);
    for (c = 0; is_not && c < 256; c++)
        s->has[c] = !s->has[c];
    if (is_not && a->newline_stops)
        s->has['\n'] = false;
    return true;
}
