/* SPDX-License-Identifier: PostgreSQL
 * pool_meant.c: which links a change of a role or a database concerns. Runs in: workers. */
#include "config.h"

#include <string.h>

#include "backend/retire.h"

#include "pool_int.h"

/* At the server it may have another name. */
static bool is_of_user(const struct link *link, const char *user)
{
    struct slice said = paramset_get(&link->reported, slice_of_str("session_authorization"));

    return *user == '\0' || slice_eq_str(pool_user(link->pool), user) ||
           (said.p != NULL && slice_eq_str(said, user));
}

static bool is_of_database(const struct pool *pool, const char *database)
{
    const char *dbname = pool->set->dbname;

    return *database == '\0' || slice_eq_str(pool_database(pool), database) ||
           (dbname != NULL && strcmp(dbname, database) == 0);
}

bool pool_is_meant(const struct link *link, const struct link_retire *what)
{
    int node = link->pool->cluster_node;

    return what->place == (node < POOLS_FIRST_TARGET ? RETIRE_OUR_SERVERS : node) &&
           is_of_user(link, what->user) && is_of_database(link->pool, what->database);
}

bool pool_was_retired(const struct link *link)
{
    const struct link_retired *r = link->be->retired;
    unsigned i;

    for (i = 0; i < RETIRE_KEPT; i++)
        if (link->opened_us < r[i].at_us && pool_is_meant(link, &r[i].what))
            return true;
    return false;
}
