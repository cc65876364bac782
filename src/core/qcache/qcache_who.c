/* SPDX-License-Identifier: PostgreSQL
 * qcache_who.c: who asks, as bytes: the database, the user and the settings of a session, as they
 * stand in front of the key of each of its results and of each question about names. They are made
 * once for all sessions with these settings in this pool. Runs in: workers. Pure. */
#include "config.h"

#include <string.h>

#include "backend/backend.h"
#include "base/hash.h"
#include "base/hot.h"
#include "config/pools_conf.h"
#include "qcache/qcache.h"
#include "qcache/qcache_who.h"
#include "wire/reader.h"

/* Transactions are read committed as far as the session has its say. */
static bool says_isolation(const struct varset *v)
{
    return varset_get(v, slice_of_str("default_transaction_isolation")).p != NULL ||
           varset_get(v, slice_of_str("transaction_isolation")).p != NULL;
}

static void put_settings(struct buf *key, const struct varset *v)
{
    const char *p = v->data;
    const char *end = v->data + v->len;

    while (p < end) {
        struct slice name = slice_of_str(p);
        struct slice set = slice_of_str(p + name.n + 1);

        p = set.p + set.n + 1;
        if (!qcache_setting_matters(name))
            continue;
        buf_put(key, name.p, name.n + 1);
        buf_put(key, set.p, set.n + 1);
    }
    buf_put_byte(key, '\0');
}

static void put_setting(struct buf *out, const struct varset *v, const char *name)
{
    struct slice set = varset_get(v, slice_of_str(name));

    buf_put(out, set.p == NULL ? "" : set.p, set.n);
    buf_put_byte(out, '\0');
}

static void put_name(struct buf *out, struct slice name)
{
    buf_put(out, name.p, name.n);
    buf_put_byte(out, '\0');
}

/* A database of pools.conf with a server of its own has a catalogue of its own. */
static char of_pools_conf(const struct pool *pool)
{
    return pool->cluster_node >= POOLS_FIRST_TARGET ? (char)pool->cluster_node : '\0';
}

/* As long as no pool has gone, one at its place is itself; and it says when a reload has given its
 * database another name there. */
static bool is_of_lately(const struct qcache_who *who, const struct pool *pool)
{
    return who->pool == pool && who->npools_gone == pool->be->npools_gone &&
           who->place_since_us == pool->place_since_us;
}

static void note_lately(struct qcache_who *who, const struct pool *pool)
{
    who->npools_gone = pool->be->npools_gone;
    who->place_since_us = pool->place_since_us;
}

static void make(struct qcache_who *who, const struct pool *pool, struct varset *v)
{
    varset_assign(&who->vars, v);
    who->pool = pool;
    who->node = pool->cluster_node;
    who->user_len = pool->user_len;
    who->database_len = pool->database_len;
    buf_clear(&who->names);
    buf_put(&who->names, pool->names, pool_user(pool).n + 1 + pool_database(pool).n);
    buf_clear(&who->there);
    buf_put(&who->there, pool_database_there(pool).p, pool_database_there(pool).n);
    who->says_isolation = says_isolation(v);
    buf_clear(&who->key);
    put_name(&who->key, pool_database(pool));
    put_name(&who->key, pool_user(pool));
    put_settings(&who->key, v);
    put_name(&who->key, pool_database_there(pool));
    who->hash = hash_bytes(who->key.data, who->key.len, 0);
    buf_clear(&who->asks);
    buf_put_byte(&who->asks, of_pools_conf(pool));
    put_name(&who->asks, pool_database_there(pool));
    put_name(&who->asks, pool_user(pool));
    put_setting(&who->asks, v, "role");
    put_setting(&who->asks, v, "session_authorization");
    put_setting(&who->asks, v, "search_path");
}

/* A pool that was made where another has been may be anybody's, and a reload may give its database
 * another name at the server: names are looked at. */
static bool is_of(const struct qcache_who *who, const struct pool *pool)
{
    return who->pool == pool && who->node == pool->cluster_node &&
           who->user_len == pool->user_len && who->database_len == pool->database_len &&
           memcmp(who->names.data, pool->names, who->names.len) == 0 &&
           slice_eq(buf_slice(&who->there), pool_database_there(pool));
}

HOT const struct qcache_who *qcache_who_find(
    struct qcache_whos *w, const struct pool *pool, struct varset *vars)
{
    uint64_t hash = hash_pair((uint64_t)(uintptr_t)vars, (uint64_t)(uintptr_t)pool);
    struct qcache_who *who = &w->who[hash % QCACHE_WHOS];

    if (who->vars == vars && is_of_lately(who, pool))
        return who;
    if (who->vars != vars || !is_of(who, pool))
        make(who, pool, vars);
    note_lately(who, pool);
    return who;
}

void qcache_whos_fini(struct qcache_whos *w)
{
    int i;

    for (i = 0; i < QCACHE_WHOS; i++) {
        varset_unref(&w->who[i].vars);
        buf_free(&w->who[i].key);
        buf_free(&w->who[i].asks);
        buf_free(&w->who[i].names);
        buf_free(&w->who[i].there);
    }
}

struct slice qcache_key_text(struct slice key, struct slice database, struct slice user)
{
    struct qcache_key_head head;
    struct wire_reader r;
    struct slice at;
    uint32_t n;

    wire_reader_init(&r, key);
    if (!slice_eq(wire_get_cstr(&r), database) || !slice_eq(wire_get_cstr(&r), user))
        return slice_of(NULL, 0);
    while (!r.bad && wire_get_cstr(&r).n > 0)
        (void)wire_get_cstr(&r);
    (void)wire_get_cstr(&r); /* the database as the server has it */
    at = wire_get_bytes(&r, sizeof head);
    if (r.bad)
        return slice_of(NULL, 0);
    memcpy(&head, at.p, sizeof head);
    (void)wire_get_bytes(&r, head.nreads * (uint32_t)sizeof(uint32_t));
    n = wire_get_u32(&r);
    return r.bad ? slice_of(NULL, 0) : wire_get_bytes(&r, n);
}
