/* SPDX-License-Identifier: PostgreSQL
 * cache_far.c: requests to memcached, each on a helper thread with a connection of its own.
 * Runs in: workers, the invalidator; on the loop, but for far_work. Who asked is told in time, also
 * when the thread still waits for a server that does not answer. */
#include "config.h"

#include <string.h>

#include "base/list.h"
#include "base/log.h"
#include "base/mem.h"
#include "config/conf.h"
#include "event/jobs.h"
#include "event/loop.h"
#include "sys/clock.h"

#include "cache_far_int.h"

/* Connections that are kept for the next requests. */
#define MAX_IDLE 16

struct cache_far {
    struct cache *c;
    struct far_spec *spec;
    struct jobs *jobs;
    struct loop *loop;
    struct far_conn *idle[MAX_IDLE];
    unsigned nidle;
    struct cache_far_call *retry;
    uint64_t retry_failures; /* how many there were when the retry began */
    struct list calls;
};

enum far_op { FAR_GET, FAR_SET, FAR_BUMP, FAR_BAR };

/* What a thread works on, alone until it is done. */
struct far_job {
    struct job job;
    struct far_conn *conn;
    enum far_op op;
    struct cache_key key;
    struct cache_far_deps deps;
    char *key_bytes;
    struct buf result;
    int64_t expire_s;
    uint32_t took_us;
    cache_cell *cells;
    size_t ncells;
    enum cache_far_found found;
    bool is_done;
};

/* Who waits. */
struct cache_far_call {
    struct list node;
    struct cache_far *f;
    struct job *job;
    struct timer timer;
    enum far_op op;
    cache_far_got_fn *got;
    cache_far_done_fn *done;
    void *ctx;
    struct cache_fill *fill; /* it ends with this */
};

static struct far_spec *spec_new(const struct conf *conf, struct cache_far_state *state)
{
    struct far_spec *spec = mem_alloc_zero(sizeof *spec);

    atomic_store(&spec->refs, 1);
    spec->timeout_ms = conf->memqcache_timeout_ms;
    spec->user = mem_strdup(conf->memqcache_memcached_user);
    spec->password = mem_strdup(conf->memqcache_memcached_password);
    spec->state = state;
    return spec;
}

struct cache_far *cache_far_open(
    struct cache *c, const struct conf *conf, struct jobs *jobs, struct loop *loop, struct err *err)
{
    struct cache_far *f = mem_alloc_zero(sizeof *f);
    struct far_conn *first;

    f->c = c;
    f->jobs = jobs;
    f->loop = loop;
    list_init(&f->calls);
    f->spec = spec_new(conf, &c->region->far);
    if (f->spec->state->nservers == 0)
        err_set(err, "22023", "memqcache_memcached_host names no server");
    first = f->spec->state->nservers == 0 ? NULL : far_conn_new(f->spec, err);
    if (first == NULL) {
        far_spec_release(f->spec);
        mem_free(f);
        return NULL;
    }
    f->idle[f->nidle++] = first;
    atomic_store(&c->region->far.is_used, true);
    return f;
}

static void call_free(struct cache_far_call **cp)
{
    struct cache_far_call *call = *cp;

    timer_stop(call->f->loop, &call->timer);
    list_remove(&call->node);
    cache_fill_abort(&call->fill);
    if (call->job != NULL)
        job_leave(&call->job);
    mem_free(call);
    *cp = NULL;
}

void cache_far_leave(struct cache_far_call **cp)
{
    if (*cp != NULL)
        call_free(cp);
}

void cache_far_close(struct cache_far **fp)
{
    struct cache_far *f = *fp;

    if (f == NULL)
        return;
    while (!list_is_empty(&f->calls)) {
        struct cache_far_call *call =
            LIST_ENTRY(list_first(&f->calls), struct cache_far_call, node);

        call_free(&call);
    }
    while (f->nidle > 0)
        far_conn_free(&f->idle[--f->nidle]);
    far_spec_release(f->spec);
    mem_free(f);
    *fp = NULL;
}

/* --- on a thread --- */

static void far_work(struct job *job)
{
    struct far_job *j = LIST_ENTRY(job, struct far_job, job);

    j->found = CACHE_FAR_DEAD;
    if (j->conn == NULL)
        return;
    switch (j->op) {
    case FAR_GET:
        j->found = far_conn_get(j->conn, &j->key, &j->deps, &j->result, &j->took_us);
        break;
    case FAR_SET:
        far_conn_set(j->conn, &j->key, &j->deps, slice_of(j->result.data, j->result.len),
            j->expire_s, j->took_us);
        break;
    case FAR_BUMP:
        j->is_done = far_conn_bump(j->conn, j->cells, j->ncells);
        break;
    case FAR_BAR:
        j->is_done = far_conn_bar(j->conn, j->cells[0]);
        break;
    }
}

static void far_wipe(struct job *job)
{
    struct far_job *j = LIST_ENTRY(job, struct far_job, job);

    far_conn_free(&j->conn);
    buf_free(&j->result);
    mem_free(j->key_bytes);
    mem_free(j->cells);
}

/* --- on the loop --- */

static void keep_conn(struct cache_far *f, struct far_job *j)
{
    if (f->nidle == MAX_IDLE)
        return;
    f->idle[f->nidle] = j->conn;
    f->nidle += j->conn != NULL;
    j->conn = NULL;
}

/* A writer's word has not reached a server: nothing may be answered until everything is invalid. */
static void bump_failed(struct cache_far *f)
{
    atomic_fetch_add(&f->c->region->far.failures, 1);
    cache_gens_off(f->c->gens, CACHE_OFF_FAR);
}

/* Tells who waits; `j` NULL: nothing came in time. */
static void tell(struct cache_far_call *call, const struct far_job *j)
{
    struct cache_far_call is = *call;
    bool is_done = j != NULL && j->is_done;

    call_free(&call);
    if (is.op == FAR_BUMP) {
        if (!is_done)
            bump_failed(is.f);
        if (is.done != NULL)
            is.done(is.ctx, is_done);
    } else if (is.op == FAR_GET && (j == NULL || j->found == CACHE_FAR_DEAD)) {
        is.got(is.ctx, CACHE_FAR_DEAD, slice_of(NULL, 0), 0, NULL);
    } else if (is.op == FAR_GET) {
        is.got(is.ctx, j->found, slice_of(j->result.data, j->result.len), j->took_us, &j->deps);
    }
}

static void call_done(struct job *job)
{
    struct far_job *j = LIST_ENTRY(job, struct far_job, job);
    struct cache_far_call *call = job->owner;

    call->job = NULL;
    keep_conn(call->f, j);
    tell(call, j);
}

static void call_timeout(struct timer *t)
{
    tell(LIST_ENTRY(t, struct cache_far_call, timer), NULL);
}

static struct far_job *job_new(struct cache_far *f, enum far_op op, const struct cache_key *key)
{
    struct far_job *j = mem_alloc_secret(sizeof *j);
    struct err err = {0};

    j->op = op;
    j->conn = f->nidle > 0 ? f->idle[--f->nidle] : far_conn_new(f->spec, &err);
    j->job.work = far_work;
    j->job.done = call_done;
    j->job.wipe = far_wipe;
    if (key != NULL) {
        j->key_bytes = mem_alloc(key->bytes.n + 1);
        memcpy(j->key_bytes, key->bytes.p, key->bytes.n);
        j->key = (struct cache_key){slice_of(j->key_bytes, key->bytes.n), key->hash};
    }
    return j;
}

static struct cache_far_call *call_start(struct cache_far *f, struct far_job *j)
{
    struct cache_far_call *call = mem_alloc_zero(sizeof *call);

    call->f = f;
    call->op = j->op;
    call->job = &j->job;
    j->job.owner = call;
    list_init(&call->node);
    list_push_back(&f->calls, &call->node);
    timer_init(&call->timer, call_timeout);
    timer_start(f->loop, &call->timer, f->spec->timeout_ms);
    job_start(f->jobs, &j->job);
    return call;
}

struct cache_far_call *cache_far_get(struct cache_far *f, const struct cache_key *key,
    const struct cache_far_deps *deps, cache_far_got_fn *got, void *ctx)
{
    struct far_job *j = job_new(f, FAR_GET, key);
    struct cache_far_call *call;

    j->deps = *deps;
    call = call_start(f, j);
    call->got = got;
    call->ctx = ctx;
    return call;
}

static struct cache_far_call *set(struct cache_far *f, const struct cache_key *key,
    const struct cache_far_deps *deps, struct slice result, int64_t expire_s, uint32_t took_us)
{
    struct far_job *j;

    if (result.n > f->c->shape.max_result_bytes || key->bytes.n > CACHE_KEY_MAX)
        return NULL;
    j = job_new(f, FAR_SET, key);
    j->deps = *deps;
    j->expire_s = expire_s;
    j->took_us = took_us;
    buf_put(&j->result, result.p, result.n);
    return call_start(f, j);
}

void cache_far_set(struct cache_far *f, const struct cache_key *key,
    const struct cache_far_deps *deps, struct slice result, int64_t expire_s, uint32_t took_us)
{
    (void)set(f, key, deps, result, expire_s, took_us);
}

void cache_far_keep(struct cache_far *f, struct cache_fill **fp, const struct cache_far_deps *deps,
    struct slice result, uint32_t took_us)
{
    struct cache_key key = cache_fill_key(*fp);
    struct cache_far_call *call = set(f, &key, deps, result, cache_fill_expire_s(*fp), took_us);

    if (call == NULL) {
        cache_fill_abort(fp);
        return;
    }
    call->fill = *fp;
    *fp = NULL;
}

static struct far_job *job_for_cells(
    struct cache_far *f, enum far_op op, const cache_cell *cells, size_t n)
{
    struct far_job *j = job_new(f, op, NULL);

    j->ncells = n;
    if (n > 0) {
        j->cells = mem_alloc(n * sizeof j->cells[0]);
        memcpy(j->cells, cells, n * sizeof j->cells[0]);
    }
    return j;
}

void cache_far_bar(struct cache_far *f, cache_cell cell)
{
    (void)call_start(f, job_for_cells(f, FAR_BAR, &cell, 1));
}

struct cache_far_call *cache_far_bump(
    struct cache_far *f, const cache_cell *cells, size_t n, cache_far_done_fn *done, void *ctx)
{
    struct cache_far_call *call = call_start(f, job_for_cells(f, FAR_BUMP, cells, n));

    call->done = done;
    call->ctx = ctx;
    return call;
}

bool cache_far_is_down(const struct cache_far *f)
{
    int64_t now_us = loop_now_us(f->loop);
    unsigned i;

    for (i = 0; i < f->spec->state->nservers; i++)
        if (now_us >=
            atomic_load_explicit(&f->spec->state->server[i].down_until_us, memory_order_relaxed))
            return false;
    return true;
}

void cache_far_tell(struct cache_far *f)
{
    unsigned i;

    for (i = 0; i < f->spec->state->nservers; i++) {
        struct cache_far_server *s = &f->spec->state->server[i];
        bool is_down = atomic_load(&s->backoff_s) != 0;
        bool was_down = !is_down;

        if (!atomic_compare_exchange_strong(&s->is_told, &was_down, is_down))
            continue;
        if (is_down)
            log_at_detail(LVL_WARNING, NULL,
                "Nothing is taken from it or kept in it; it is tried again by and by.",
                "query cache: the memcached server %s:%d does not answer", s->host, s->port);
        else
            log_at(
                LVL_LOG, "query cache: the memcached server %s:%d answers again", s->host, s->port);
    }
}

/* Failures that came while this was on its way are not covered by it. While the outcome of a dead
 * process's commit is awaited, what others keep may be from before it: then it is done once more.
 */
static void retried(void *ctx, bool is_done)
{
    struct cache_far *f = ctx;
    uint32_t off = cache_gens_off_bits(f->c->gens, loop_now_us(f->loop));

    f->retry = NULL;
    if (is_done && (off & 1U << CACHE_OFF_DIED) == 0 &&
        atomic_load(&f->c->region->far.failures) == f->retry_failures)
        cache_gens_on(f->c->gens, CACHE_OFF_FAR, clock_mono_us());
}

void cache_far_retry(struct cache_far *f)
{
    uint32_t off = cache_gens_off_bits(f->c->gens, loop_now_us(f->loop));

    if (f->retry != NULL || (off & 1U << CACHE_OFF_FAR) == 0)
        return;
    f->retry_failures = atomic_load(&f->c->region->far.failures);
    f->retry = cache_far_bump(f, NULL, 0, retried, f);
}
