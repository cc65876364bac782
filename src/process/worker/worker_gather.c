/* SPDX-License-Identifier: PostgreSQL
 * worker_gather.c: how many workers do the work. Runs in: workers, each for its own clients. While
 * there is little the first ones do all of it, for one wake-up then finds several clients ready,
 * and a statement costs less; a worker that has more than it can do gives clients away. Looks at
 * processor time alone, a few times a second and only while clients are at work. */
#include "config.h"

#include <time.h>

#include "base/mem.h"
#include "config/conf.h"

#include "worker_int.h"

/* Two workers that use less of a processor than this together are one too many. */
#define GATHER_PERCENT 60
/* A worker that uses more of a processor than this gives clients away. */
#define SPREAD_PERCENT 80
/* Clients go to a worker that uses so much less than the one that gives them away. */
#define SPREAD_GAIN 30
/* What was used in a shorter time says nothing. */
#define WINDOW_NS INT64_C(200000000)
/* Who did nothing for so long is not part of the load. */
#define ACTIVE_US 1000000
#define UNKNOWN   (-1)

struct gather_load {
    int32_t pid; /* whose processor time it is */
    int percent; /* of one processor, in the last window; UNKNOWN */
    int64_t at_ns;
    int64_t used_ns;
};

/* Another process's clock is read without asking it. */
static void load_measure(const struct worker *w, struct gather_load *l, int32_t pid)
{
    int64_t now_ns = place_clock_ns(CLOCK_MONOTONIC);
    clockid_t clock;
    int64_t used_ns;

    if (l->pid == pid && now_ns - l->at_ns < WINDOW_NS)
        return;
    used_ns = clock_getcpuclockid(pid, &clock) == 0 ? place_clock_ns(clock) : 0;
    l->percent =
        l->pid == pid ? (int)place_percent(w, used_ns - l->used_ns, now_ns - l->at_ns) : UNKNOWN;
    l->pid = pid;
    l->at_ns = now_ns;
    l->used_ns = used_ns;
}

static void measure_all(struct worker *w)
{
    int i;

    for (i = 0; i < w->role.env->nworkers; i++)
        load_measure(w, &w->loads[i], place_row(w, i)->pid);
}

/* Clients that it has descriptors for besides those it has. */
static uint32_t room_of(struct worker *w, int i)
{
    uint32_t n = place_load(w, i);

    return n < w->most_clients ? w->most_clients - n : 0;
}

/* Worker `i` runs, with our settings, and has room. */
static bool takes(struct worker *w, int i)
{
    const struct proc_row *own = place_row(w, w->role.env->ordinal);

    return i != w->role.env->ordinal && place_is_open(w, i) &&
           place_row(w, i)->conf_generation == own->conf_generation && room_of(w, i) > 0;
}

/* Clients can go to that worker, and its load is known. */
static bool may_take(struct worker *w, int i)
{
    return w->loads[i].percent != UNKNOWN && takes(w, i);
}

static bool gather_may_give(struct sessions *ss, int ordinal)
{
    return takes(LIST_ENTRY(ss, struct worker, sessions), ordinal);
}

/* The first of the workers before this one that can do the work of both; -1: none. */
static int gather_to(struct worker *w, int own)
{
    int i;

    for (i = 0; i < w->role.env->ordinal; i++)
        if (may_take(w, i) && w->loads[i].percent + own < GATHER_PERCENT)
            return i;
    return -1;
}

static int spread_to(struct worker *w, int own)
{
    int best = -1;
    int i;

    for (i = 0; i < w->role.env->nworkers; i++)
        if (may_take(w, i) && w->loads[i].percent + SPREAD_GAIN < own &&
            (best == -1 || w->loads[i].percent < w->loads[best].percent))
            best = i;
    return best;
}

/* Nobody when `to` is -1. */
static void give(struct worker *w, int to, uint32_t nclients, bool is_busy)
{
    uint32_t room = to == -1 ? 0 : room_of(w, to);

    sessions_give(&w->sessions, to, nclients < room ? nclients : room, is_busy);
}

static void spread(struct worker *w, int own)
{
    struct sessions *ss = &w->sessions;
    int to = spread_to(w, own);
    uint32_t more = to == -1 ? 0 : (uint32_t)(own - w->loads[to].percent);

    give(w, to,
        sessions_count_active(ss, loop_now_us(ss->loop) - ACTIVE_US) * more / (2 * (uint32_t)own),
        true);
}

/* "pool_test_rotate": from each worker to the next, whatever they have to do. */
static int rotate_to(struct worker *w)
{
    int n = w->role.env->nworkers;
    int i;

    for (i = 1; i < n; i++)
        if (may_take(w, (w->role.env->ordinal + i) % n))
            return (w->role.env->ordinal + i) % n;
    return -1;
}

static void gather_look(struct sessions *ss)
{
    struct worker *w = LIST_ENTRY(ss, struct worker, sessions);
    int own;

    measure_all(w);
    own = w->loads[w->role.env->ordinal].percent;
    if (ss->conf->worker_fill == 0 || own == UNKNOWN) {
        give(w, -1, 0, false);
    } else if (ss->conf->pool_test_rotate) {
        give(w, rotate_to(w), UINT32_MAX, true);
    } else if (own > SPREAD_PERCENT) {
        spread(w, own);
    } else {
        give(w, gather_to(w, own), UINT32_MAX, false);
    }
}

void gather_init(struct worker *w)
{
    int n = w->role.env->nworkers;

    w->loads = mem_alloc_zero((size_t)n * sizeof *w->loads);
    if (n > 1)
        sessions_give_watch(&w->sessions, gather_look, gather_may_give);
}

void gather_fini(struct worker *w)
{
    mem_free(w->loads);
}
