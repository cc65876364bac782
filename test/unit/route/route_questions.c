/* SPDX-License-Identifier: PostgreSQL
 * route_questions.c: prints the router's SQL for questions on standard input, one a line: kind,
 * schema, name, number of arguments, separated by tabs. For test/cluster/test_route_oracle.py. Runs
 * in: a process of its own. */
#include "config.h"

#include "base/mem.h"
#include "route/route_oracle.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct slice field(char **at)
{
    char *begin = *at;
    size_t n = strcspn(begin, "\t\n");

    *at = begin + n + (begin[n] == '\0' ? 0 : 1);
    return slice_of(begin, n);
}

int main(void)
{
    struct route_question q[ROUTE_MAX_QUESTIONS];
    char *line[ROUTE_MAX_QUESTIONS];
    char text[1024];
    struct buf out = {0};
    unsigned n = 0;
    unsigned i;

    while (n < ROUTE_MAX_QUESTIONS && fgets(text, sizeof text, stdin) != NULL) {
        char *at = line[n] = mem_strdup(text);
        q[n].kind = (enum route_question_kind)atoi(field(&at).p);
        q[n].schema = field(&at);
        q[n].name = field(&at);
        q[n].nargs = (uint32_t)atoi(at);
        n++;
    }
    if (n == 0)
        return 1;
    route_oracle_sql(q, n, &out);
    fwrite(out.data, 1, out.len, stdout);
    buf_free(&out);
    for (i = 0; i < n; i++)
        mem_free(line[i]);
    return 0;
}
