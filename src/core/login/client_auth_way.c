/* SPDX-License-Identifier: PostgreSQL
 * client_auth_way.c: where a user is looked up: on which server, in which data base, as whom and by
 * which query. Runs in: workers; pgpool --check-auth. Must never: let the owner of a data base say
 * who anybody is, unless the administrator's own query asks there. */
#include "config.h"

#include "auth/passwd.h"
#include "cluster/view.h"
#include "config/conf.h"
#include "login/login_auth.h"

#include "client_auth_int.h"

static const char *const sql[AUTH_LOOKUP_KINDS] = {
    [AUTH_LOOKUP_SECRET] = "SELECT rolname, rolpassword FROM pgpool_user_lookup($1)",
    [AUTH_LOOKUP_CATALOGUE] =
        "SELECT rolname, CASE WHEN rolvaliduntil < pg_catalog.now() THEN NULL ELSE rolpassword END"
        " FROM pg_catalog.pg_authid WHERE rolname = $1 AND rolcanlogin",
    [AUTH_LOOKUP_ROLE] =
        "WITH RECURSIVE m(oid) AS (SELECT oid FROM pg_catalog.pg_roles WHERE rolname = $1"
        " UNION SELECT a.roleid FROM pg_catalog.pg_auth_members a JOIN m ON a.member = m.oid)"
        " SELECT r.rolname, NULL FROM pg_catalog.pg_roles r JOIN m ON m.oid = r.oid"
        " WHERE r.rolname = $2",
    [AUTH_LOOKUP_LOGIN] = "SELECT rolname, CASE WHEN NOT rolcanlogin THEN 'locked'"
                          " WHEN rolvaliduntil < pg_catalog.now() THEN 'expired' END"
                          " FROM pg_catalog.pg_roles WHERE rolname = $1",
    /* Nobody's operators and functions: who asks may be a superuser. */
    [AUTH_LOOKUP_KEYS] = "SELECT rolname, rolpassword FROM pg_catalog.pg_authid"
                         " WHERE rolname OPERATOR(pg_catalog.=) $1"};

const char *login_auth_sql(enum auth_lookup_kind kind)
{
    return sql[kind];
}

static const char *first_of(const char *a, const char *b, const char *c)
{
    if (a != NULL && *a != '\0')
        return a;
    return b != NULL && *b != '\0' ? b : c;
}

/* Where what we ask by ourselves is asked, on the servers of pgpool.conf. */
static const char *home_of(const struct conf *conf)
{
    return first_of(conf->sr_check_database, NULL, "postgres");
}

/* A query of the administrator's own runs in the client's data base, as PgBouncer's does. What we
 * ask by ourselves does not: the owner of a data base decides what names and operators mean in it,
 * and would say who anybody is. A data base that pools.conf sends to another server is asked about
 * there, unless auth_dbname names one that is elsewhere. */
struct auth_way login_auth_find_way(
    const struct conf *conf, struct slice database, struct slice user)
{
    const struct pool_settings *st = pools_conf_find(conf, database, user);
    struct auth_way way = {.user = first_of(st->auth_user, conf->auth_user, ""),
        .query = first_of(st->auth_query, conf->auth_query, ""),
        .node = VIEW_NO_NODE};
    const char *dbname;

    dbname = first_of(st->auth_dbname, conf->auth_dbname, "");
    if (*dbname != '\0') {
        way.database = slice_of_str(dbname);
        st = pools_conf_find(conf, way.database, slice_of_str(way.user));
    } else if (*way.query != '\0' && !console_is_named(conf, database)) {
        way.database = database;
        way.is_clients = true;
    } else {
        way.database = slice_of_str(st->target != POOLS_NO_TARGET ? "postgres" : home_of(conf));
    }
    if (st->target != POOLS_NO_TARGET)
        way.node = st->target;
    return way;
}

struct auth_way login_auth_find_role_way(const struct conf *conf)
{
    return (struct auth_way){.user = first_of(conf->auth_user, conf->sr_check_user, ""),
        .query = "",
        .database = slice_of_str(first_of(conf->auth_dbname, NULL, home_of(conf))),
        .node = VIEW_NO_NODE};
}

/* Is it one of those as whom we log in ourselves: to check, to order, to recover? */
static bool is_own_user(const struct conf *conf, struct slice user)
{
    int i;

    for (i = 0; i < conf->nnodes; i++)
        if (slice_eq_str(user, conf->nodes[i].health_check_user))
            return true;
    return slice_eq_str(user, conf->sr_check_user) || slice_eq_str(user, conf->recovery_user) ||
           slice_eq_str(user, conf->wd_lifecheck_user);
}

bool login_auth_file_judges(const struct conf *conf, const struct passwd_table *p)
{
    const struct passwd_entry *e = NULL;

    if (p == NULL)
        return false;
    while ((e = passwd_next(p, e)) != NULL)
        if (conf->auth_relay != CONF_RELAY_AUTO || e->server_user.n > 0 ||
            !is_own_user(conf, e->user))
            return true;
    return false;
}

bool login_auth_may_relay(const struct conf *conf, bool is_asked, bool file_judges)
{
    if (conf->auth_relay == CONF_RELAY_AUTO)
        return !is_asked && !file_judges;
    return conf->auth_relay == CONF_RELAY_ON;
}

void auth_way_put_key(const struct auth_way *way, struct buf *out)
{
    buf_put(out, way->database.p, way->database.n);
    buf_printf(out, "%c%d%c%s%c%s", '\0', way->node, '\0', way->user, '\0', way->query);
}
