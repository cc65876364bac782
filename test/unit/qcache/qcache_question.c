/* SPDX-License-Identifier: PostgreSQL
 * qcache_question.c: prints the SELECT that asks the catalogue about the names in the statement on
 * standard input; with an argument, which of the functions named there are believed. For
 * test/cluster/test_cache_oracle.py. Runs in: a process of its own. */
#include "config.h"

#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "config/conf.h"
#include "qcache/qcache.h"

/* Names of functions that are stable, a line each: prints those that are believed to depend on
 * settings and arguments alone; and with them, if `is_immutable`, those that are immutable. */
static int print_safe(bool is_immutable)
{
    struct conf_report report;
    struct conf_gen *gen;
    struct qcache_rules *rules;
    struct err err;
    char name[256];

    conf_report_init(&report);
    gen = conf_load_text("/nowhere/pgpool.conf", slice_of_str(""), &report);
    conf_report_fini(&report);
    err_clear(&err);
    rules = gen == NULL ? NULL : qcache_rules_new(conf_of(gen), &err);
    if (rules == NULL)
        return 1;
    while (fgets(name, sizeof name, stdin) != NULL) {
        name[strcspn(name, "\n")] = '\0';
        if (qcache_rules_function_is_safe(rules, slice_of_str(name), is_immutable, false))
            puts(name);
    }
    qcache_rules_free(&rules);
    conf_gen_free(&gen);
    return 0;
}

int main(int argc, char **argv)
{
    struct arena *a;
    struct buf question = {0};
    struct sql_facts facts;
    struct buf sql = {0};
    char text[8192];
    size_t n;
    int rc = 1;

    if (argc > 1)
        return print_safe(strcmp(argv[1], "immutable") == 0);
    a = arena_new("question", 0);
    n = fread(text, 1, sizeof text, stdin);
    if (sql_parse(a, slice_of(text, n), &facts) == 0 && qcache_question(&facts, &question) == 0) {
        qcache_question_sql(buf_slice(&question), &sql);
        fwrite(sql.data, 1, sql.len, stdout);
        rc = 0;
    }
    buf_free(&question);
    buf_free(&sql);
    arena_free(&a);
    return rc;
}
