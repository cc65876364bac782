/* SPDX-License-Identifier: PostgreSQL
 * cache_far.c: requests to memcached: look-ups, and results that are to be kept, over the loop's
 * own connections (cache_far_line.c); what writers say, and all else where there are none of these,
 * on helper threads, each with a connection of its own. Runs in: workers; on the loop, but for
 * far_work. Who asked is told in time, also when a thread still waits for a server that does not
 * answer.
 *
 * To wake a thread, and to be woken by it, costs more than what it does. So look-ups and results of
 * all clients of one turn of the loop go together, and where they go to a thread, those that come
 * while they are on their way wait until they are back, or for a tick, should a server hang. A
 * result waits for the next look-up where there are many. */
#include "config.h"

#include <string.h>
#include <unistd.h>

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
/* Batches on their way at once, at most. */
#define MAX_FLYING 32
/* One that is on its way for longer does not keep the next from being sent. */
#define YOUNG_US INT64_C(40000)
/* When there was a look-up so lately, there will be another in a moment. */
#define BUSY_US INT64_C(2000)

struct cache_far {
    struct cache *c;
    struct far_spec *spec;
    struct jobs *jobs;
    struct loop *loop;
    struct far_conn *idle[MAX_IDLE];
    unsigned nidle;
    struct far_line *line; /* NULL: there is none */
    struct cache_far_call *retry;
    uint64_t retry_failures; /* how many there were when the retry began */
    struct list calls;
    struct list waiting; /* requests */
    struct list flying;  /* batches */
    unsigned nflying;
    int64_t asked_us;   /* the last look-up */
    struct task send;   /* what waits, at the end of the turn */
    struct timer later; /* sends it when that did not come by then */
    char machine[256];
    struct far_pays pays;
};

enum far_op { FAR_GET, FAR_SET, FAR_BATCHED, FAR_BUMP, FAR_BAR };

/* What a thread works on, alone until it is done. */
struct far_job {
    struct job job;
    struct list node; /* a batch's, in cache_far.flying */
    int64_t since_us;
    struct far_conn *conn;
    enum far_op op;
    struct far_req *req[FAR_BATCH];
    unsigned nreqs;
    cache_cell *cells;
    size_t ncells;
    bool is_done;
};

/* Who waits. */
struct cache_far_call {
    struct list node;
    struct cache_far *f;
    struct job *job;     /* of a bump or a bar; */
    struct far_req *req; /* else this */
    struct timer timer;
    enum far_op op;
    cache_far_got_fn *got;
    cache_far_done_fn *done;
    void *ctx;
    struct cache_fill *fill; /* it ends with this */
    uint64_t text;           /* of a look-up */
    int64_t since_us;
};

void far_req_free(struct far_req *r)
{
    buf_free(&r->result);
    mem_free(r->key_bytes);
    mem_free(r);
}

static struct far_spec *spec_new(const struct conf *conf, struct cache_far_state *state)
{
    struct far_spec *spec = mem_alloc_zero(sizeof *spec);

    atomic_store(&spec->refs, 1);
    spec->timeout_ms = conf->memqcache_timeout_ms;
    spec->value_max = (uint64_t)conf->memqcache_maxcache_bytes + FAR_HEAD_MAX;
    spec->user = mem_strdup(conf->memqcache_memcached_user);
    spec->password = mem_strdup(conf->memqcache_memcached_password);
    spec->state = state;
    return spec;
}

static void on_send(struct task *t);
static void on_later(struct timer *t);
static void on_line_done(void *ctx, struct far_req *const *reqs, unsigned n, bool is_lost);

struct cache_far *cache_far_open(
    struct cache *c, const struct conf *conf, struct jobs *jobs, struct loop *loop, struct err *err)
{
    struct cache_far *f = mem_alloc_zero(sizeof *f);
    struct far_conn *first;

    f->c = c;
    f->jobs = jobs;
    f->loop = loop;
    list_init(&f->calls);
    list_init(&f->waiting);
    list_init(&f->flying);
    task_init(&f->send, on_send);
    timer_init(&f->later, on_later);
    f->spec = spec_new(conf, &c->region->far);
    if (f->spec->state->nservers == 0)
        err_set(err, "22023", "memqcache_memcached_host names no server");
    first = f->spec->state->nservers == 0 ? NULL : far_conn_new(f->spec, err);
    if (first == NULL) {
        far_spec_release(f->spec);
        mem_free(f);
        return NULL;
    }
    if (gethostname(f->machine, sizeof f->machine - 1) == -1)
        f->machine[0] = '\0';
    f->idle[f->nidle++] = first;
    f->line = far_line_new(f->spec, loop, on_line_done, f);
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
    if (call->req != NULL)
        call->req->call = NULL;
    if (call->req != NULL && !list_is_detached(&call->req->node)) {
        list_remove(&call->req->node); /* it was not sent */
        far_req_free(call->req);
    }
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
    struct list *n;

    if (f == NULL)
        return;
    while (!list_is_empty(&f->calls)) {
        struct cache_far_call *call =
            LIST_ENTRY(list_first(&f->calls), struct cache_far_call, node);

        call_free(&call);
    }
    far_line_free(&f->line);
    while ((n = list_first(&f->waiting)) != NULL) {
        list_remove(n);
        far_req_free(LIST_ENTRY(n, struct far_req, node));
    }
    while ((n = list_first(&f->flying)) != NULL) {
        struct job *job = &LIST_ENTRY(n, struct far_job, node)->job;

        list_remove(n);
        job_leave(&job);
    }
    task_cancel(&f->send);
    timer_stop(f->loop, &f->later);
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

    if (j->conn == NULL)
        return;
    if (j->op == FAR_BATCHED)
        far_conn_run(j->conn, j->req, j->nreqs);
    else if (j->op == FAR_BUMP)
        j->is_done = far_conn_bump(j->conn, j->cells, j->ncells);
    else
        j->is_done = far_conn_bar(j->conn, j->cells[0]);
}

static void far_wipe(struct job *job)
{
    struct far_job *j = LIST_ENTRY(job, struct far_job, job);
    unsigned i;

    far_conn_free(&j->conn);
    for (i = 0; i < j->nreqs; i++)
        far_req_free(j->req[i]);
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

/* Tells the end of a bump or a bar. */
static void tell_done(struct cache_far_call *call, bool is_done)
{
    struct cache_far_call is = *call;

    call_free(&call);
    if (is.op != FAR_BUMP)
        return;
    if (!is_done)
        bump_failed(is.f);
    if (is.done != NULL)
        is.done(is.ctx, is_done);
}

/* Tells what a batch has found; `r` NULL: nothing came in time. */
static void tell_found(struct cache_far_call *call, const struct far_req *r)
{
    struct cache_far_call is = *call;

    call_free(&call);
    if (is.op != FAR_GET)
        return;
    if (r != NULL && r->found != CACHE_FAR_DEAD)
        far_pays_note(&is.f->pays, is.text, loop_now_us(is.f->loop) - is.since_us,
            r->found == CACHE_FAR_HIT, r->found == CACHE_FAR_HIT ? r->took_us : 0);
    if (r == NULL || r->found == CACHE_FAR_DEAD)
        is.got(is.ctx, CACHE_FAR_DEAD, slice_of(NULL, 0), 0, NULL);
    else
        is.got(is.ctx, r->found, slice_of(r->result.data, r->result.len), r->took_us, &r->deps);
}

static void call_done(struct job *job)
{
    struct far_job *j = LIST_ENTRY(job, struct far_job, job);
    struct cache_far_call *call = job->owner;

    call->job = NULL;
    keep_conn(call->f, j);
    tell_done(call, j->is_done);
}

static void call_timeout(struct timer *t)
{
    struct cache_far_call *call = LIST_ENTRY(t, struct cache_far_call, timer);
    struct cache_far *f = call->f;

    if (call->op == FAR_BUMP || call->op == FAR_BAR) {
        tell_done(call, false);
        return;
    }
    tell_found(call, NULL);
    if (f->line != NULL)
        far_line_check(f->line);
}

/* Tells those of the requests that still wait. */
static void tell_all(struct far_req *const *reqs, unsigned n)
{
    unsigned i;

    for (i = 0; i < n; i++) {
        struct cache_far_call *call = reqs[i]->call;

        if (call == NULL)
            continue;
        call->req = NULL;
        reqs[i]->call = NULL;
        tell_found(call, reqs[i]);
    }
}

static void batch_done(struct job *job)
{
    struct far_job *j = LIST_ENTRY(job, struct far_job, job);
    struct cache_far *f = job->owner;

    list_remove(&j->node);
    f->nflying--;
    keep_conn(f, j);
    if (!list_is_empty(&f->waiting))
        task_post(f->loop, &f->send);
    tell_all(j->req, j->nreqs);
}

static struct far_job *job_new(struct cache_far *f, enum far_op op)
{
    struct far_job *j = mem_alloc_secret(sizeof *j);
    struct err err = {0};

    j->op = op;
    j->conn = f->nidle > 0 ? f->idle[--f->nidle] : far_conn_new(f->spec, &err);
    j->job.work = far_work;
    j->job.done = op == FAR_BATCHED ? batch_done : call_done;
    j->job.wipe = far_wipe;
    return j;
}

/* --- batches --- */

static bool is_one_young(const struct cache_far *f)
{
    const struct list *last = f->flying.prev; /* that was sent last */

    return f->nflying > 0 &&
           loop_now_us(f->loop) - LIST_ENTRY(last, struct far_job, node)->since_us < YOUNG_US;
}

static unsigned take_waiting(struct cache_far *f, struct far_req **reqs)
{
    unsigned n = 0;
    struct list *first;

    while (n < FAR_BATCH && (first = list_first(&f->waiting)) != NULL) {
        list_remove(first);
        reqs[n++] = LIST_ENTRY(first, struct far_req, node);
    }
    return n;
}

static void send_batch(struct cache_far *f)
{
    struct far_job *j = job_new(f, FAR_BATCHED);

    j->nreqs = take_waiting(f, j->req);
    j->since_us = loop_now_us(f->loop);
    list_init(&j->node);
    list_push_back(&f->flying, &j->node);
    f->nflying++;
    j->job.owner = f;
    job_start(f->jobs, &j->job);
}

/* What was sent to a thread is in front of what comes behind it: results that a look-up may be
 * for. */
static bool may_use_line(const struct cache_far *f)
{
    return f->line != NULL && f->nflying == 0 && far_line_is_ready(f->line);
}

static void send_over_line(struct cache_far *f)
{
    struct far_req *reqs[FAR_BATCH];
    unsigned n = take_waiting(f, reqs);

    far_line_send(f->line, reqs, n);
}

static void send_waiting(struct cache_far *f)
{
    while (!list_is_empty(&f->waiting) && may_use_line(f))
        send_over_line(f);
    while (!list_is_empty(&f->waiting) && f->nflying < MAX_FLYING && !is_one_young(f))
        send_batch(f);
    if (!list_is_empty(&f->waiting))
        timer_start(f->loop, &f->later, LOOP_TICK_MS);
}

/* What was lost is asked again, by a thread. */
static void on_line_done(void *ctx, struct far_req *const *reqs, unsigned n, bool is_lost)
{
    struct cache_far *f = ctx;
    unsigned i;

    if (!is_lost)
        tell_all(reqs, n);
    for (i = 0; i < n; i++) {
        if (is_lost)
            list_push_back(&f->waiting, &reqs[i]->node);
        else
            far_req_free(reqs[i]);
    }
    if (is_lost)
        task_post(f->loop, &f->send);
}

static void on_send(struct task *t)
{
    send_waiting(LIST_ENTRY(t, struct cache_far, send));
}

static void on_later(struct timer *t)
{
    send_waiting(LIST_ENTRY(t, struct cache_far, later));
}

static struct far_req *req_new(const struct cache_key *key, const struct cache_far_deps *deps)
{
    struct far_req *r = mem_alloc_zero(sizeof *r);

    r->key_bytes = mem_alloc(key->bytes.n + 1);
    memcpy(r->key_bytes, key->bytes.p, key->bytes.n);
    r->key = (struct cache_key){slice_of(r->key_bytes, key->bytes.n), key->hash};
    r->deps = *deps;
    r->found = CACHE_FAR_DEAD;
    list_init(&r->node);
    return r;
}

static struct cache_far_call *call_new(struct cache_far *f, enum far_op op)
{
    struct cache_far_call *call = mem_alloc_zero(sizeof *call);

    call->f = f;
    call->op = op;
    list_init(&call->node);
    list_push_back(&f->calls, &call->node);
    timer_init(&call->timer, call_timeout);
    timer_start(f->loop, &call->timer, f->spec->timeout_ms);
    return call;
}

static struct cache_far_call *wait_for(struct cache_far *f, enum far_op op, struct far_req *r)
{
    struct cache_far_call *call = call_new(f, op);

    call->req = r;
    r->call = call;
    list_push_back(&f->waiting, &r->node);
    return call;
}

bool cache_far_pays(struct cache_far *f, uint64_t text, const struct cache_key *key)
{
    return far_pays(&f->pays, text, key->hash);
}

struct cache_far_call *cache_far_get(struct cache_far *f, const struct cache_key *key,
    const struct cache_far_deps *deps, cache_far_got_fn *got, void *ctx)
{
    struct cache_far_call *call = wait_for(f, FAR_GET, req_new(key, deps));

    call->text = deps->text;
    call->since_us = loop_now_us(f->loop);
    call->got = got;
    call->ctx = ctx;
    f->asked_us = loop_now_us(f->loop);
    task_post(f->loop, &f->send);
    return call;
}

static struct cache_far_call *set(struct cache_far *f, const struct cache_key *key,
    const struct cache_far_deps *deps, struct slice result, int64_t expire_s, uint32_t took_us)
{
    struct far_req *r;

    if (result.n > f->c->shape.max_result_bytes || key->bytes.n > CACHE_KEY_MAX)
        return NULL;
    r = req_new(key, deps);
    r->keeps = true;
    r->expire_s = expire_s;
    r->took_us = took_us;
    buf_put(&r->result, result.p, result.n);
    if (loop_now_us(f->loop) - f->asked_us >= BUSY_US)
        task_post(f->loop, &f->send);
    else if (!timer_is_armed(&f->later))
        timer_start(f->loop, &f->later, LOOP_TICK_MS);
    return wait_for(f, FAR_SET, r);
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

/* --- writes --- */

static struct cache_far_call *call_for_cells(
    struct cache_far *f, enum far_op op, const cache_cell *cells, size_t n)
{
    struct far_job *j = job_new(f, op);
    struct cache_far_call *call = call_new(f, op);

    j->ncells = n;
    if (n > 0) {
        j->cells = mem_alloc(n * sizeof j->cells[0]);
        memcpy(j->cells, cells, n * sizeof j->cells[0]);
    }
    call->job = &j->job;
    j->job.owner = call;
    job_start(f->jobs, &j->job);
    return call;
}

void cache_far_bar(struct cache_far *f, cache_cell cell)
{
    (void)call_for_cells(f, FAR_BAR, &cell, 1);
}

struct cache_far_call *cache_far_bump(
    struct cache_far *f, const cache_cell *cells, size_t n, cache_far_done_fn *done, void *ctx)
{
    struct cache_far_call *call = call_for_cells(f, FAR_BUMP, cells, n);

    call->done = done;
    call->ctx = ctx;
    return call;
}

const char *cache_far_machine(const struct cache_far *f)
{
    return f->machine;
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
