/* SPDX-License-Identifier: PostgreSQL
 * admin_bouncer.c: PgBouncer's own reports, in the virtual database only: elsewhere SHOW POOLS is a
 * matter of the server. Runs in: worker. Columns are PgBouncer's; what it has and we have not is 0
 * or empty, as doc/user/virtual-database.md says. */
#include "config.h"

#include <string.h>
#include <strings.h>

#include "wire/writer.h"

#include "admin_bouncer_int.h"

static const char *const no_columns[] = {NULL};

#define BOUNCER_REPORT(sym, name, types, ...)                                                      \
    static const char *const columns_##sym[] = {__VA_ARGS__, NULL};                                \
    _Static_assert(sizeof types == sizeof columns_##sym / sizeof columns_##sym[0],                 \
        "a type for each column of " name);
#include "admin_bouncer.def"
#undef BOUNCER_REPORT

static const struct report {
    const char *name;
    const char *types;
    const char *const *columns;
    admin_rows_fn *rows;
} reports[] = {
#define BOUNCER_REPORT(sym, name, types, ...) {name, types, columns_##sym, admin_bouncer_##sym},
#include "admin_bouncer.def"
#undef BOUNCER_REPORT
};

static const struct report *report_find(const char *name)
{
    size_t i;

    for (i = 0; i < sizeof reports / sizeof reports[0]; i++)
        if (strcmp(reports[i].name, name) == 0)
            return &reports[i];
    return NULL;
}

bool admin_bouncer_has(const char *name)
{
    return report_find(name) != NULL;
}

const char *const *admin_bouncer_columns(const char *name, unsigned *n)
{
    const struct report *r = report_find(name);
    const char *const *columns = r == NULL ? no_columns : r->columns;

    for (*n = 0; columns[*n] != NULL; ++*n)
        continue;
    return columns;
}

int admin_bouncer_run(const struct admin_cmd *cmd, const struct admin_sources *src,
    struct admin_result *res, struct err *err)
{
    const struct report *r = report_find(cmd->name);
    struct admin_rows rows;

    res->columns = admin_bouncer_columns(cmd->name, &res->ncolumns);
    res->types = r->types;
    admin_rows_init(&rows, res);
    r->rows(src, &rows);
    admin_rows_end(&rows);
    if (rows.full)
        err_set(err, "53200", "the answer is too long");
    return rows.full ? -1 : 0;
}
