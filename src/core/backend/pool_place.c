/* SPDX-License-Identifier: PostgreSQL
 * pool_place.c: what a reload means to a pool: other settings, or another place for its database.
 * Runs in: workers. The clients of a database that has moved follow it between two transactions,
 * those of session mode with their next session; whoever is in a transaction ends it where it
 * began. Must never: lend a link to the old place once the new one is known. */
#include "config.h"

#include <string.h>

#include "auth/auth_book.h"
#include "config/conf.h"

#include "link_int.h"
#include "pool_int.h"

static bool is_same_name(const char *a, const char *b)
{
    return a == b || (a != NULL && b != NULL && strcmp(a, b) == 0);
}

/* From one server of pools.conf to another, as the same user. Who comes from the servers of
 * pgpool.conf, or goes there, has its reads balanced or not by what it was told at its login. */
static bool may_follow(const struct pool *pool)
{
    const struct pool_settings *set = pool->set;

    return pool->cluster_node >= POOLS_FIRST_TARGET && set->target >= POOLS_FIRST_TARGET &&
           pool->is_mapped == (set->user != NULL) &&
           (set->user == NULL || slice_eq_str(pool_user(pool), set->user));
}

static void retire_all(struct pool *pool)
{
    struct list *n;

    LIST_FOREACH(n, &pool->busy)
    LIST_ENTRY(n, struct link, pool_node)->is_retired = true;
    LIST_FOREACH(n, &pool->idle)
    LIST_ENTRY(n, struct link, pool_node)->is_retired = true;
}

/* The book knows the pool's user by another name from here on. */
static void change_book(struct pool *pool, bool has_own)
{
    struct auth_book *book = pool->be->book;

    if (pool->has_own_book == has_own)
        return;
    if (book != NULL)
        auth_book_let_go(book, pool_book_name(pool));
    pool->has_own_book = has_own;
    if (book != NULL)
        auth_book_hold(book, pool_book_name(pool));
}

/* The settings that it had until now are still there. */
void pool_set_conf(struct pool *pool, const struct conf *conf, const struct conf *was_conf)
{
    const struct pool_settings *was = pool->set;

    pool->set = pools_conf_find(conf, pool_database(pool), pool_user(pool));
    pool->resets_work = false; /* others, perhaps */
    change_book(pool, pools_conf_asks_itself(conf, pool->set));
    if (pool->set->target == pool->cluster_node)
        pool->is_moved = false;
    else if (was->target == pool->cluster_node || pool->is_moved)
        pool->is_moved = may_follow(pool);
    if (!is_same_name(was->dbname, pool->set->dbname)) {
        pool->place_since_us = loop_now_us(pool->be->loop);
        retire_all(pool);
    }
    if (was_conf != NULL && backend_tls_is_stricter(conf, was_conf, pool->cluster_node))
        retire_all(pool);
}

bool pool_link_is_elsewhere(const struct link *link)
{
    return link->is_retired && link->opened_us <= link->pool->place_since_us;
}

bool pool_link_is_of_before(const struct link *link)
{
    return link->is_retired && (link->opened_us <= link->pool->place_since_us ||
                                   link->opened_us <= link->pool->sets_since_us);
}

void pool_check_place(struct pool *pool)
{
    if (pool->set->target != pool->cluster_node && may_follow(pool))
        pool->is_moved = true;
}

void pool_learn_role(struct pool *pool, const struct pool *other)
{
    if (!pool_is_role_known(pool) && pool_is_role_known(other))
        pool->role = other->role;
}
