/* SPDX-License-Identifier: PostgreSQL
 * pool_role.c: may the role of these links still log in? A link that was opened earlier does not
 * tell, so it is asked, before a client that has just logged in gets it, when nobody has said so of
 * late.
 * Runs in: workers. Whether somebody is refused is not decided here: when the answer is no, the
 * links of that role are not lent again, and the next one is opened by the server, or not, in its
 * own words. Must never: let what the role may have set decide the answer (everything is named with
 * its schema), or the name's characters become part of the question (they are digits). */
#include "config.h"

#include <string.h>

#include "base/log.h"
#include "config/conf.h"
#include "wire/writer.h"

#include "link_int.h"
#include "pool_int.h"

/* A server that cannot be asked is not asked for so long. */
#define ROLE_MUTE_US INT64_C(60000000)

/* ---- whether to ask ---- */

void pool_role_ask(struct pool *pool)
{
    int64_t delay_us = pool->be->conf->role_check_delay_ms * 1000;

    pool->role_due =
        delay_us > 0 &&
        (pool->role_seen_us == 0 || loop_now_us(pool->be->loop) - pool->role_seen_us >= delay_us);
}

void pool_role_ask_everywhere(struct pool *pool)
{
    struct pool *other;
    int node;

    pool_role_ask(pool);
    for (node = 0; pool->role_due && node < pool->be->conf->nnodes; node++) {
        other = pool_find(pool->be, pool_user(pool), pool_database(pool), node);
        if (other != NULL)
            other->role_due = true;
    }
}

void pool_role_vouch(struct pool *pool)
{
    int64_t now_us = loop_now_us(pool->be->loop);

    if (pool->role_seen_us < now_us)
        pool->role_seen_us = now_us;
    pool->role_due = false;
}

/* ---- the question ---- */

/* The server may have let us in as somebody else (a pooler that maps names does). */
static bool is_named_so(const struct link *link)
{
    struct slice said = paramset_get(&link->reported, slice_of_str("session_authorization"));

    return said.p == NULL || slice_eq(said, pool_user(link->pool));
}

static void put_text(struct buf *out, const char *s)
{
    buf_put(out, s, strlen(s));
}

/* One row when the role may log in. A role of that name that was made later has another oid: then
 * SESSION_USER is an error. An expiry date concerns passwords, as it does for PostgreSQL. */
void pool_role_put_question(const struct link *link, struct buf *out)
{
    static const char digits[] = "0123456789abcdef";
    struct slice user = pool_user(link->pool);
    struct buf sql = {0};
    size_t i;

    put_text(&sql, "SELECT 1 FROM pg_catalog.pg_roles WHERE"
                   " rolname OPERATOR(pg_catalog.=) SESSION_USER AND rolcanlogin");
    if (link->auth != LINK_AUTH_TRUST)
        put_text(&sql, " AND (rolvaliduntil IS NULL OR"
                       " rolvaliduntil OPERATOR(pg_catalog.>=) pg_catalog.now())");
    if (is_named_so(link)) { /* and was not given another name since */
        put_text(&sql, " AND pg_catalog.encode(pg_catalog.convert_to(rolname::pg_catalog.text,"
                       " pg_catalog.getdatabaseencoding()), 'hex') OPERATOR(pg_catalog.=) '");
        for (i = 0; i < user.n; i++) {
            buf_put_byte(&sql, digits[(unsigned char)user.p[i] >> 4]);
            buf_put_byte(&sql, digits[user.p[i] & 15]);
        }
        buf_put_byte(&sql, '\'');
    }
    wire_put_query(out, buf_slice(&sql));
    buf_free(&sql);
}

/* ---- answers ---- */

/* Roles are the same on all nodes, but for those of pools.conf. */
static bool is_same_role(const struct pool *a, const struct pool *b)
{
    return a == b ||
           (a->cluster_node < POOLS_FIRST_TARGET && b->cluster_node < POOLS_FIRST_TARGET &&
               slice_eq(pool_user(a), pool_user(b)));
}

void pool_role_refuse(struct link *link)
{
    struct backend *be = link->be;
    const struct pool *pool = link->pool;
    struct link *other;
    struct list *n;
    struct list *tmp;

    log_caused(LVL_LOG,
        "role \"%s\" may not log in to node %d any more: its connections are not used again",
        pool->names, pool->cluster_node);
    LIST_FOREACH(n, &be->links)
    {
        other = LIST_ENTRY(n, struct link, be_node);
        if (other->phase >= LINK_LENT && is_same_role(other->pool, pool))
            other->is_retired = true;
    }
    LIST_FOREACH_SAFE(n, tmp, &be->idle_lru)
    {
        other = LIST_ENTRY(n, struct link, be_node);
        if (is_same_role(other->pool, pool))
            link_close(other);
    }
}

/* Something is asked that is not there, or may not be read: not of a role's making. */
static bool is_mute(struct slice sqlstate)
{
    return sqlstate.n == 5 && sqlstate.p[0] == '4' && sqlstate.p[1] == '2';
}

bool pool_role_on_error(struct link *link, struct slice sqlstate)
{
    struct pool *pool = link->pool;

    if (slice_eq_str(sqlstate, "42704")) {
        pool_role_refuse(link); /* the role is gone */
        return false;
    }
    if (!is_mute(sqlstate))
        return false;
    log_caused_detail(LVL_LOG, NULL,
        "A role that is locked may log in as long as connections of it are kept. Set auth_user or "
        "sr_check_user to a role that can read pg_roles, or role_check_delay to 0.",
        "node %d does not say whether role \"%s\" may log in (SQLSTATE %.*s)", pool->cluster_node,
        pool->names, (int)sqlstate.n, sqlstate.p);
    pool_role_vouch(pool);
    pool->role_seen_us += ROLE_MUTE_US;
    return true;
}
