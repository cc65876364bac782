/* SPDX-License-Identifier: PostgreSQL
 * conf_lex.c: the lines of a file of settings: name, perhaps =, value, perhaps # comment.
 * Runs in: every process, while a file is read. A value is a quoted string or a bare word. Inside
 * quotes a backslash keeps the next character from ending the string and is itself kept, as in
 * pgpool-II; a doubled quote stands for one, as in PostgreSQL. */
#include "config.h"

#include "conf_lex.h"

#include "base/arena.h"

#include <string.h>

#define CONF_LEX_SHOWN 60 /* bytes of a bad text that are shown */

void conf_lex_init(struct conf_lex *lx, struct slice text)
{
    lx->p = text.p;
    lx->end = text.p + text.n;
    lx->line = 0;
    lx->next_line = 1;
    if (text.n >= 3 && memcmp(text.p, "\xEF\xBB\xBF", 3) == 0)
        lx->p += 3; /* the mark that some editors put before UTF-8 */
}

static bool conf_lex_is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\f' || c == '\v';
}

static bool conf_lex_is_name_start(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

static bool conf_lex_is_name(char c)
{
    return conf_lex_is_name_start(c) || (c >= '0' && c <= '9') || c == '.';
}

/* What may stand in a value without quotes. */
static bool conf_lex_is_word(char c)
{
    return conf_lex_is_name(c) || (unsigned char)c >= 0x80 ||
           (c != '\0' && strchr("-+:/*,|%@$", c));
}

static const char *conf_lex_skip_blanks(const char *p, const char *eol)
{
    while (p < eol && conf_lex_is_blank(*p))
        p++;
    return p;
}

static int conf_lex_fail(struct err *err, const char *hint, const char *what, struct slice at)
{
    size_t n = at.n;
    while (n > 0 && conf_lex_is_blank(at.p[n - 1]))
        n--;
    bool cut = n > CONF_LEX_SHOWN;
    err_set(err, "F0000", "syntax error: %s near \"%.*s%s\"", what, cut ? CONF_LEX_SHOWN : (int)n,
        at.p, cut ? "..." : "");
    err_hint(err, "%s", hint);
    return -1;
}

/* Reads a quoted string that begins at *pp, which is left behind it. Errors here and below show the
 * name only: the value may be a password. */
static int conf_lex_quoted(
    struct arena *a, const char **pp, const char *eol, struct conf_item *item, struct err *err)
{
    const char *start = *pp;
    char *text = arena_alloc(a, (size_t)(eol - start) + 1);
    size_t n = 0;
    const char *p = start + 1;
    for (; p < eol; p++) {
        if (*p == '\\' && p + 1 < eol) {
            text[n++] = *p++;
        } else if (*p == '\'') {
            if (p + 1 == eol || p[1] != '\'')
                break;
            p++;
        }
        text[n++] = *p;
    }
    if (p >= eol)
        return conf_lex_fail(err,
            "End the string with a quote on the same line; a quote inside it is "
            "written twice.",
            "a quoted string does not end", slice_of_str(item->name));
    text[n] = '\0';
    item->value = text;
    *pp = p + 1;
    return 0;
}

static int conf_lex_value(
    struct arena *a, const char **pp, const char *eol, struct conf_item *item, struct err *err)
{
    const char *p = *pp;
    if (p == eol || *p == '#')
        return conf_lex_fail(err, "Give a value, or '' for an empty one, or put # before the line.",
            "there is no value", slice_of_str(item->name));
    if (*p == '\'')
        return conf_lex_quoted(a, pp, eol, item, err);
    const char *start = p;
    while (p < eol && conf_lex_is_word(*p))
        p++;
    if (p == start)
        return conf_lex_fail(err, "Put the value between single quotes.",
            "unexpected character in a value", slice_of_str(item->name));
    /* A number and its unit may stand apart: 5 min. */
    const char *word_end = p;
    const char *unit = conf_lex_skip_blanks(p, eol);
    const char *q = unit;
    while (q < eol && ((*q >= 'a' && *q <= 'z') || (*q >= 'A' && *q <= 'Z')))
        q++;
    if (q > unit && unit > p && *start >= '0' && *start <= '9')
        word_end = q;
    item->value = arena_strndup(a, start, (size_t)(word_end - start));
    *pp = word_end;
    return 0;
}

/* Reads one line that is not empty. */
static int conf_lex_line(
    const char *p, const char *eol, struct arena *a, struct conf_item *item, struct err *err)
{
    const char *start = p;
    if (memchr(p, '\0', (size_t)(eol - p)) != NULL)
        return conf_lex_fail(err, "This is not a text file, or it is damaged.", "a byte of value 0",
            slice_of_str(""));
    if (!conf_lex_is_name_start(*p))
        return conf_lex_fail(err, "A line is: name = value, or a comment after #.",
            "a name is expected", slice_of(start, (size_t)(eol - start)));
    while (p < eol && conf_lex_is_name(*p))
        p++;
    item->name = arena_strndup(a, start, (size_t)(p - start));
    const char *after = conf_lex_skip_blanks(p, eol);
    if (after < eol && *after == '=')
        after = conf_lex_skip_blanks(after + 1, eol);
    else if (after == p && after < eol && *after != '\'' && *after != '#')
        return conf_lex_fail(err, "A line is: name = value, or a comment after #.",
            "unexpected character", slice_of_str(item->name));
    if (conf_lex_value(a, &after, eol, item, err) == -1)
        return -1;
    after = conf_lex_skip_blanks(after, eol);
    if (after < eol && *after != '#')
        return conf_lex_fail(err, "Put a value that is more than one word between single quotes.",
            "more text than a value", slice_of_str(item->name));
    return 0;
}

int conf_lex_next(struct conf_lex *lx, struct arena *a, struct conf_item *item, struct err *err)
{
    while (lx->p < lx->end) {
        const char *eol = memchr(lx->p, '\n', (size_t)(lx->end - lx->p));
        const char *start = lx->p;
        if (eol == NULL)
            eol = lx->end;
        lx->p = eol < lx->end ? eol + 1 : eol;
        lx->line = lx->next_line++;
        start = conf_lex_skip_blanks(start, eol);
        if (start == eol || *start == '#')
            continue;
        return conf_lex_line(start, eol, a, item, err) == -1 ? -1 : 1;
    }
    return 0;
}
