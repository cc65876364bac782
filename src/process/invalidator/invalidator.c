/* SPDX-License-Identifier: PostgreSQL
 * invalidator.c: life of the invalidator: which databases are cached, which server is the primary,
 * and a stream for each database.
 * Runs in: invalidator. Must never serve clients, or wait. Whatever it does not get to do in time
 * only makes the cache useless: results are used as long as its last word holds. */
#include "config.h"

#include "process/invalidator/invalidator.h"

#include <string.h>

#include "base/log.h"
#include "base/mem.h"
#include "cache/cache_store.h"
#include "config/conf.h"
#include "event/jobs.h"
#include "probe/probe.h"
#include "process/common/role_conf.h"
#include "process/common/server_login.h"
#include "sys/clock.h"

#include "inval_int.h"

#define TICK_MS      100
#define DEFAULT_USER "postgres"
/* A database that nobody has asked about for so long gets its slot back. */
#define IDLE_US (600 * CLOCK_US_PER_S)

const struct conf *inval_conf(const struct invalidator *inv)
{
    return conf_of(role_loop_gen(&inv->role));
}

const char *inval_user(const struct invalidator *inv)
{
    const struct conf *conf = inval_conf(inv);

    if (conf->memqcache_wal_user[0] != '\0')
        return conf->memqcache_wal_user;
    if (conf->sr_check_user[0] != '\0')
        return conf->sr_check_user;
    if (inv->node != VIEW_NO_NODE && conf->nodes[inv->node].health_check_user[0] != '\0')
        return conf->nodes[inv->node].health_check_user;
    return DEFAULT_USER;
}

static void find_password(struct invalidator *inv)
{
    const struct conf *conf = inval_conf(inv);
    const char *given = "";
    const char *setting = "memqcache_wal_password";

    if (conf->memqcache_wal_user[0] != '\0' || conf->memqcache_wal_password[0] != '\0') {
        given = conf->memqcache_wal_password;
    } else if (conf->sr_check_user[0] != '\0') {
        given = conf->sr_check_password;
        setting = "sr_check_password";
    } else if (inv->node != VIEW_NO_NODE) {
        given = conf->nodes[inv->node].health_check_password;
        setting = "health_check_password";
    }
    server_login_password(role_loop_gen(&inv->role), inval_user(inv), given, setting,
        inv->role.env->paths->key, &inv->password);
}

static void start_all(struct invalidator *inv)
{
    int i;

    find_password(inv);
    for (i = 0; i < CACHE_STREAM_MAX; i++)
        if (inv->stream[i] != NULL && inv->stream[i]->row.state != CACHE_STREAM_IDLE)
            inval_stream_start(inv->stream[i]);
}

/* --- the primary --- */

/* What is told about the primary: its number and its epoch, from 1 on. */
#define EPOCH_UNKNOWN 1

/* The monitor has found the first one: a single server was taken for it before, rightly. */
static bool is_found(struct cache_stream_primary was, struct cache_stream_primary is)
{
    return was.epoch == EPOCH_UNKNOWN && is.epoch == EPOCH_UNKNOWN + 1 && was.node == is.node;
}

/* Results of the old one may hold what the new one has never seen. `before`: who was used until
 * now; behind a time without anybody the streams are to begin anew. */
static void follow_primary(struct invalidator *inv, int before)
{
    struct cache_stream_primary was = cache_stream_primary(inv->streams);
    struct cache_stream_primary is = {inv->node, inv->epoch + EPOCH_UNKNOWN};
    int i;

    if (before == inv->node && is_found(was, is)) {
        cache_stream_set_primary(inv->streams, is);
        return;
    }
    for (i = 0; i < CACHE_STREAM_MAX; i++)
        if (inv->stream[i] != NULL && inv->stream[i]->row.state != CACHE_STREAM_STATEMENT &&
            inv->stream[i]->row.state != CACHE_STREAM_IDLE)
            inval_stream_stop(inv->stream[i], CACHE_STREAM_BROKEN, "another server is the primary");
    if (was.epoch != 0 && inv->node != VIEW_NO_NODE &&
        (was.node != is.node || was.epoch != is.epoch)) {
        cache_gens_primary_changed(inv->gens, clock_mono_us());
        cache_empty(inv->cache, clock_mono_us());
        log_at(
            LVL_LOG, "query cache: node %d is the primary now: all results are dropped", inv->node);
    }
    if (inv->node != VIEW_NO_NODE)
        cache_stream_set_primary(inv->streams, is);
    start_all(inv);
}

static void look_at_view(struct invalidator *inv)
{
    int before = inv->node;
    int node;

    if (!view_refresh(inv->role.env->shm, &inv->view))
        return;
    node = view_must_hold_writes(&inv->view) ? VIEW_NO_NODE : view_write_node(&inv->view);
    if (node == inv->node && inv->view.primary_epoch == inv->epoch)
        return;
    inv->node = node;
    inv->epoch = inv->view.primary_epoch;
    follow_primary(inv, before);
}

/* --- databases --- */

static bool is_listed(const struct invalidator *inv, const char *name)
{
    const struct conf_list *list = &inval_conf(inv)->memqcache_wal_databases;
    int i;

    for (i = 0; i < list->n; i++)
        if (strcmp(list->item[i], name) == 0)
            return true;
    return false;
}

static void add_listed(struct invalidator *inv)
{
    const struct conf_list *list = &inval_conf(inv)->memqcache_wal_databases;
    int i;

    for (i = 0; i < list->n; i++)
        if (cache_stream_find(inv->streams, slice_of_str(list->item[i])) == CACHE_STREAM_NONE)
            log_at_detail(LVL_WARNING, NULL,
                "Nothing of that database is kept: take it out, or others.",
                "memqcache_wal_databases: too many databases: \"%s\" is left out", list->item[i]);
}

static void look_at_database(struct invalidator *inv, int i)
{
    struct inval_stream *s = inv->stream[i];
    int64_t asked_us = cache_stream_asked_us(inv->streams, i);
    int64_t now_us = clock_mono_us();
    bool must_leave = now_us < cache_stream_leave_until_us(inv->streams, i);
    bool is_idle =
        asked_us != 0 && now_us - asked_us > IDLE_US && s != NULL && !is_listed(inv, s->database);
    char name[CACHE_STREAM_BYTES];
    struct cache_stream_row row;

    if (s == NULL) {
        if (!cache_stream_row(inv->streams, i, name, &row))
            return;
        inv->stream[i] = inval_stream_new(inv, i, name);
        inval_stream_start(inv->stream[i]);
    } else if (must_leave && s->row.state != CACHE_STREAM_IDLE) {
        inval_stream_stop(s, CACHE_STREAM_IDLE, "somebody wants to drop the database");
    } else if (is_idle && s->row.state == CACHE_STREAM_STREAMING) {
        inval_stream_stop(s, CACHE_STREAM_IDLE, "nobody has asked for ten minutes");
    } else if (!is_idle && !must_leave && s->row.state == CACHE_STREAM_IDLE) {
        inval_stream_start(s);
    }
}

static void on_tick(struct timer *t)
{
    struct invalidator *inv = LIST_ENTRY(t, struct invalidator, tick);
    int i;

    timer_start(&inv->role.loop, t, TICK_MS);
    look_at_view(inv);
    for (i = 0; i < CACHE_STREAM_MAX; i++)
        look_at_database(inv, i);
}

static void on_reload(struct role_loop *rl)
{
    struct invalidator *inv = LIST_ENTRY(rl, struct invalidator, role);

    add_listed(inv);
    start_all(inv);
}

/* What a former one granted for ever holds until its successor knows better. What it held is of no
 * use: no database is good before all of its results are invalid. */
static void take_over(struct invalidator *inv)
{
    int i;

    for (i = 0; i < CACHE_STREAM_MAX; i++)
        cache_stream_lease(inv->streams, i, 0);
    cache_gens_forget(inv->gens, inv->role.env->slot);
}

/* Without it nothing is answered here: what is seen could not be told to others. */
static void open_far(struct invalidator *inv)
{
    struct err err;

    if (inval_conf(inv)->memqcache_method != CONF_CACHE_MEMCACHED)
        return;
    err_clear(&err);
    inv->jobs = jobs_new(&inv->role.loop);
    inv->far = cache_far_open(inv->cache, inval_conf(inv), inv->jobs, &inv->role.loop, &err);
    if (inv->far == NULL) {
        log_err(LVL_ERROR, &err);
        cache_gens_off(inv->gens, CACHE_OFF_FAR);
    }
}

int invalidator_main(struct proc_env *env)
{
    struct invalidator *inv = mem_alloc_zero(sizeof *inv);
    int status;
    int i;

    role_conf_stand_beside(env->conf, NULL);
    probe_forget_environment();
    role_loop_init(&inv->role, env);
    inv->role.on_reload = on_reload;
    inv->streams = cache_streams_of(env->shm);
    inv->cache = cache_open(env->shm, env->slot);
    if (inv->streams == NULL || inv->cache == NULL) {
        log_at_detail(LVL_FATAL, NULL, "Less memqcache_total_size, or more memory; then restart.",
            "the query cache has no shared memory");
        role_loop_fini(&inv->role);
        mem_free(inv);
        return 1;
    }
    inv->gens = cache_gens_of(inv->cache);
    open_far(inv);
    inv->node = VIEW_NO_NODE;
    take_over(inv);
    find_password(inv);
    add_listed(inv);
    timer_init(&inv->tick, on_tick);
    timer_start(&inv->role.loop, &inv->tick, 0);
    status = role_loop_run(&inv->role);
    for (i = 0; i < CACHE_STREAM_MAX; i++)
        inval_stream_free(&inv->stream[i]);
    cache_far_close(&inv->far);
    if (inv->jobs != NULL)
        jobs_free(&inv->jobs);
    cache_close(&inv->cache);
    secret_free(&inv->password);
    role_loop_fini(&inv->role);
    mem_free(inv);
    return status;
}
