/* SPDX-License-Identifier: PostgreSQL
 * web_leader.c: whether this pgpool leads its watchdog, taken from SHOW POOL_WATCHDOG by the names
 * of its columns. Runs in: web. A leader without a majority is none: another one may lead already.
 */
#include "config.h"

#include <string.h>

#include "admin/admin.h"

#include "web_int.h"

#define REPORT "pool_watchdog"

static int find_column(const struct admin_result *res, const char *name)
{
    unsigned i;

    for (i = 0; i < res->ncolumns; i++)
        if (strcmp(res->columns[i], name) == 0)
            return (int)i;
    return -1;
}

static bool has_majority(struct slice quorum)
{
    return slice_eq_str(quorum, "QUORUM EXIST") || slice_eq_str(quorum, "QUORUM IS ON THE EDGE");
}

enum web_lead web_leader_judge(const struct admin_result *res)
{
    int local = find_column(res, "local");
    int status = find_column(res, "status");
    int quorum = find_column(res, "quorum");
    const struct admin_row *row;

    for (row = res->rows; local >= 0 && status >= 0 && quorum >= 0 && row != NULL;
         row = row->next) {
        if (!slice_eq_str(row->cell[local], "true"))
            continue;
        return slice_eq_str(row->cell[status], "LEADER") && has_majority(row->cell[quorum])
                   ? WEB_LEAD_OURS
                   : WEB_LEAD_OTHERS;
    }
    return WEB_LEAD_UNKNOWN;
}

enum web_lead web_leader_look(struct web *w)
{
    enum web_lead lead = WEB_LEAD_UNKNOWN;
    struct admin_result res = {0};
    struct admin_sources src;
    struct err err = {0};
    int i;

    if (!conf_of(role_loop_gen(&w->role))->use_watchdog)
        return WEB_LEAD_ALONE;
    for (i = 0; i < ADMIN_REPORT_COUNT; i++)
        if (strcmp(admin_report_info((enum admin_report)i)->name, REPORT) == 0)
            break;
    if (i == ADMIN_REPORT_COUNT)
        return WEB_LEAD_UNKNOWN;
    web_sources(w, &src);
    if (admin_run_report((enum admin_report)i, &src, &res, &err) == 0)
        lead = web_leader_judge(&res);
    admin_result_fini(&res);
    return lead;
}
