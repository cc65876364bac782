/* SPDX-License-Identifier: PostgreSQL
 * qcache_question.c: prints the SELECT that asks the catalogue about the names in the statement on
 * standard input. For test/cluster/test_cache_oracle.py. Runs in: a process of its own. */
#include "config.h"

#include "base/arena.h"
#include "qcache/qcache.h"

#include <stdio.h>

int main(void)
{
    struct arena *a = arena_new("question", 0);
    struct buf question = {0};
    struct sql_facts facts;
    struct buf sql = {0};
    char text[8192];
    size_t n = fread(text, 1, sizeof text, stdin);
    int rc = 1;

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
