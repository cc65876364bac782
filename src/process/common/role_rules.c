/* SPDX-License-Identifier: PostgreSQL
 * role_rules.c: could a worker use the rules of client authentication as they are written now? It
 * keeps those it has where it cannot, so who orders a reload has to be told before.
 * Runs in: the command line, control, web. */
#include "config.h"

#include <unistd.h>

#include "auth/hba.h"
#include "auth/ident.h"
#include "config/conf.h"
#include "ipc/proc.h"
#include "login/login_auth.h"
#include "process/common/role_rules.h"

static void add_mistake(const char *file, unsigned line, const char *text, void *ctx)
{
    conf_report_add(ctx, CONF_ERROR, file, (int)line, NULL, "%s", text);
}

int role_rules_check(
    const struct conf_gen *gen, const struct proc_paths *paths, struct conf_report *report)
{
    char path[PROC_PATH_BYTES];
    struct err err = {0};
    struct ident *id = NULL;
    struct hba *hba;
    int rc = 0;

    if (!conf_of(gen)->enable_pool_hba)
        return 0;
    if (login_hba_path(gen, paths, path, sizeof path) == -1) {
        conf_report_add(report, CONF_ERROR, NULL, 0, NULL, "the name of pool_hba.conf is too long");
        return -1;
    }
    hba = hba_load(path, login_hba_flags(), add_mistake, report);
    if (hba == NULL)
        rc = -1;
    hba_free(&hba);
    if (conf_path(gen, "pg_ident.conf", path, sizeof path, &err) == 0 && access(path, F_OK) == 0) {
        id = ident_load(path, 0, add_mistake, report);
        rc = id == NULL ? -1 : rc;
        ident_free(&id);
    }
    return rc;
}
