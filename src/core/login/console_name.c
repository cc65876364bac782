/* SPDX-License-Identifier: PostgreSQL
 * console_name.c: which names are the virtual database's, and whose users are administrators. Runs
 * in: workers; pgpool --check-auth. Pure. */
#include "config.h"

#include "config/conf.h"
#include "config/pools_conf.h"
#include "login/login.h"

bool console_is_named(const struct conf *conf, struct slice database)
{
    return conf->reserved_admin > 0 &&
           (slice_eq_str(database, "pgpool") || slice_eq_str(database, "pgbouncer")) &&
           !pools_conf_has_database(conf, database);
}
