/* SPDX-License-Identifier: PostgreSQL
 * hba_regex.c: regular expressions of pool_hba.conf and pg_ident.conf: POSIX extended ones of the C
 * library. Expressions whose compiled form grows without bound are refused before the library sees
 * them: a slip in a file must not hang a reload. */
#include "config.h"

#include "hba_int.h"

#include <string.h>

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
        if (*p == '*' || *p == '+' || *p == '?' || *p == '{') {
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

int hba_compile(struct hba_lex *lx, const struct hba_raw *raw, struct hba_token *t)
{
    struct hba_regex *re;
    const char *problem;
    char text[200];
    int rc;

    if (t->text[0] != '/')
        return 0;
    problem = regex_problem(t->text + 1);
    if (problem != NULL) {
        hba_complain(lx, raw->file, raw->line, "invalid regular expression \"%s\": %s", t->text + 1,
            problem);
        return -1;
    }
    re = mem_alloc_zero(sizeof *re);
    rc = regcomp(&re->re, t->text + 1, REG_EXTENDED);
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
