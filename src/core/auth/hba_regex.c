/* SPDX-License-Identifier: PostgreSQL
 * hba_regex.c: regular expressions of pool_hba.conf and pg_ident.conf: POSIX extended ones of the C
 * library, with PostgreSQL's escapes, which are written out before. What PostgreSQL would
 * understand otherwise than the library is refused: a line must not mean something else here.
 * Expressions whose compiled form grows without bound are refused before the library sees them: a
 * slip in a file must not hang a reload. */
#include "config.h"

#include "hba_int.h"

#include <string.h>

#include "base/buf.h"
#include "base/mem.h"

#define REGEX_MAX_BYTES  1000
#define REGEX_MAX_DEPTH  8
#define REGEX_MAX_REPEAT 1000U /* all bounds of intervals multiplied */

/* Skips a bracket expression that begins at `p`; returns its last character. */
static const char *skip_bracket(const char *p)
{
    const char *q = p + 1;

    if (*q == '^')
        q++;
    if (*q == ']')
        q++;
    while (*q != '\0' && *q != ']') {
        if (*q == '\\' && q[1] != '\0') {
            q += 2;
            continue;
        }
        if (*q == '[' && (q[1] == ':' || q[1] == '.' || q[1] == '=') && strchr(q + 2, ']') != NULL)
            q = strchr(q + 2, ']');
        q++;
    }
    return *q == '\0' ? q - 1 : q;
}

/* Multiplies *product by the largest number of the interval at `p`; returns its last character. */
static const char *skip_interval(const char *p, unsigned *product)
{
    unsigned number = 0;
    unsigned largest = 1;

    for (p++; *p != '\0' && *p != '}'; p++) {
        number = *p >= '0' && *p <= '9' && number < 100000 ? number * 10 + (unsigned)(*p - '0') : 0;
        largest = number > largest ? number : largest;
    }
    *product = largest > REGEX_MAX_REPEAT ? REGEX_MAX_REPEAT + 1 : *product * largest;
    return *p == '\0' ? p - 1 : p;
}

/* To PostgreSQL a brace without a number is a character like others. */
static bool is_interval(const char *p)
{
    return p[0] == '{' && p[1] >= '0' && p[1] <= '9';
}

/* Says what is wrong with the expression, or NULL. */
static const char *regex_problem(const char *re)
{
    unsigned depth = 0;
    unsigned product = 1;
    unsigned stacked = 0; /* quantifiers that stand behind each other */
    const char *p;

    if (strlen(re) > REGEX_MAX_BYTES)
        return "the expression is too long";
    for (p = re; *p != '\0'; p++) {
        if (*p == '*' || *p == '+' || *p == '?' || is_interval(p)) {
            /* PostgreSQL: a ? behind a quantifier makes it reluctant; any other is an error */
            if (++stacked > 2 || (stacked == 2 && *p != '?'))
                return "quantifier operand invalid";
            if (*p == '{')
                p = skip_interval(p, &product);
            if (product > REGEX_MAX_REPEAT)
                return "the expression is too complex";
            continue;
        }
        stacked = 0;
        if (*p == '\\' && p[1] != '\0')
            p++;
        else if (*p == '[')
            p = skip_bracket(p);
        else if (*p == '(' && ++depth > REGEX_MAX_DEPTH)
            return "the expression is too complex";
        else if (*p == ')' && depth > 0)
            depth--;
    }
    return NULL;
}

/* What a class of PostgreSQL's is within brackets; NULL when `c` is none. */
static const char *class_of(char c)
{
    switch (c) {
    case 'd':
    case 'D':
        return "[:digit:]";
    case 's':
    case 'S':
        return "[:space:]";
    case 'w':
    case 'W':
        return "[:alnum:]_";
    default:
        return NULL;
    }
}

static bool is_word(char c)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

/* The escape whose letter is at `p`, outside of brackets. */
static const char *put_escape(const char *p, struct buf *out)
{
    static const char from[] = "mMyYAZ";
    static const char *const to[] = {"\\<", "\\>", "\\b", "\\B", "^", "$"};
    const char *at = strchr(from, *p);

    if (class_of(*p) != NULL) {
        buf_printf(out, *p >= 'a' ? "[%s]" : "[^%s]", class_of(*p));
    } else if (at != NULL) {
        buf_printf(out, "%s", to[at - from]);
    } else if ((*p >= '1' && *p <= '9') || !is_word(*p)) {
        buf_put_byte(out, '\\');
        buf_put_byte(out, (unsigned char)*p);
    } else {
        return "an escape that is not supported";
    }
    return NULL;
}

/* The same within brackets, where the library knows no escapes. */
static const char *put_bracket_escape(const char *p, struct buf *out)
{
    if (*p >= 'a' && class_of(*p) != NULL)
        buf_printf(out, "%s", class_of(*p));
    else if (!is_word(*p))
        buf_printf(out, "[.%c.]", *p);
    else
        return "an escape that is not supported in brackets";
    return NULL;
}

/* Copies the bracket expression from `p` to `end`, its last character. */
static const char *put_bracket(const char *p, const char *end, struct buf *out)
{
    const char *problem = NULL;

    for (; p <= end && problem == NULL; p++) {
        if (*p == '\\' && p < end)
            problem = put_bracket_escape(++p, out);
        else
            buf_put_byte(out, (unsigned char)*p);
    }
    return problem;
}

/* Writes the expression as the library understands it. Says what is wrong, or NULL. */
static const char *regex_translate(const char *re, struct buf *out)
{
    const char *problem = NULL;
    const char *end;
    const char *p;

    for (p = re; *p != '\0' && problem == NULL; p++) {
        if (*p == '[') {
            end = skip_bracket(p);
            problem = put_bracket(p, end, out);
            p = end;
        } else if (*p == '\\' && p[1] == '\0') {
            problem = "it ends with a backslash";
        } else if (*p == '\\') {
            problem = put_escape(++p, out);
        } else {
            if (*p == '{' && !is_interval(p))
                buf_put_byte(out, '\\');
            buf_put_byte(out, (unsigned char)*p);
        }
    }
    buf_put_byte(out, '\0');
    return problem;
}

int hba_compile(struct hba_lex *lx, const struct hba_raw *raw, struct hba_token *t)
{
    struct hba_regex *re;
    struct buf plain = {0};
    const char *problem;
    char text[200];
    int rc;

    if (t->text[0] != '/')
        return 0;
    problem = regex_problem(t->text + 1);
    if (problem == NULL)
        problem = regex_translate(t->text + 1, &plain);
    if (problem != NULL) {
        buf_free(&plain);
        hba_complain(lx, raw->file, raw->line, "invalid regular expression \"%s\": %s", t->text + 1,
            problem);
        return -1;
    }
    re = mem_alloc_zero(sizeof *re);
    rc = regcomp(&re->re, plain.data, REG_EXTENDED);
    buf_free(&plain);
    if (rc != 0) {
        regerror(rc, &re->re, text, sizeof text);
        hba_complain(
            lx, raw->file, raw->line, "invalid regular expression \"%s\": %s", t->text + 1, text);
        mem_free(re);
        return -1;
    }
    re->next = lx->regexes;
    lx->regexes = re;
    t->regex = re;
    return 0;
}

void hba_regexes_free(struct hba_regex **list)
{
    struct hba_regex *re;

    while ((re = *list) != NULL) {
        *list = re->next;
        regfree(&re->re);
        mem_free(re);
    }
}

bool hba_regex_matches(const struct hba_regex *re, struct slice s, regmatch_t match[HBA_NGROUPS])
{
    regmatch_t own[HBA_NGROUPS];
    regmatch_t *m = match == NULL ? own : match;
    char *copy;
    int rc;

    if (s.n > 0 && memchr(s.p, '\0', s.n) != NULL)
        return false;
    copy = mem_strndup(s.n == 0 ? "" : s.p, s.n);
    rc = regexec(&re->re, copy, HBA_NGROUPS, m, 0);
    mem_free(copy);
    return rc == 0;
}
