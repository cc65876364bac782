/* SPDX-License-Identifier: PostgreSQL
 * hba_regex.c: the fields of pool_hba.conf and pg_ident.conf that are regular expressions.
 * Runs in: workers, supervisor (checking). */
#include "config.h"

#include "hba_int.h"

int hba_compile(struct hba_lex *lx, const struct hba_raw *raw, struct hba_token *t)
{
    struct hba_are *re;
    const char *problem;

    if (t->text[0] != '/')
        return 0;
    re = arena_alloc_zero(lx->arena, sizeof *re);
    problem = hba_are_read(t->text + 1, lx->arena, re);
    if (problem != NULL) {
        hba_complain(lx, raw->file, raw->line, "invalid regular expression \"%s\": %s", t->text + 1,
            problem);
        return -1;
    }
    t->regex = re;
    return 0;
}

enum hba_answer hba_regex_matches(const struct hba_are *re, struct slice s, struct err *err)
{
    enum hba_answer a = hba_are_match(re, s, NULL);

    if (a == HBA_FAIL)
        err_set_fatal(
            err, "28000", "could not compare a name of %zu bytes with an expression", s.n);
    return a;
}
