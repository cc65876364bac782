/* SPDX-License-Identifier: PostgreSQL
 * worker_place.c: which worker serves a new client.
 * Runs in: workers. The first worker that is not full and not busy gets it, until it has
 * `worker_fill` clients: a few clients cost less processor time together, for one wake-up then
 * finds several of them ready. From there on clients are spread evenly; but where they can go
 * elsewhere later (worker_gather.c) a worker is full only when it is busy. Never looks at a
 * client's bytes. */
#include "config.h"

#include <sys/resource.h>
#include <time.h>

#include "base/mem.h"
#include "config/conf.h"

#include "worker_int.h"

/* How many clients more than another worker has are tolerated: passing one on costs more than it
 * saves when connections are short. */
#define PLACE_SLACK 2
/* PLACE_SLACK, and one client in so many: each worker gets as much of the processors as another
 * when all are busy, so the clients of the one that has more wait longer. */
#define PLACE_SLACK_PART 16
/* A worker that uses more of a processor than this is busy. */
#define BUSY_PERCENT 30
/* A worker whose clients can leave it again is busy when it uses more than this. */
#define BUSY_SHARED_PERCENT 60
/* What was used in a shorter time says nothing. */
#define BUSY_WINDOW_NS INT64_C(200000000)

/* What is known of one worker. */
struct place {
    uint32_t seen;   /* clients, as it published them */
    uint32_t placed; /* handed to it since */
    int32_t pid;     /* whose processor time it is */
    int64_t at_ns;   /* when that was looked at */
    int64_t used_ns;
    int64_t percent; /* of one processor */
};

int64_t place_clock_ns(clockid_t clock)
{
    struct timespec ts;

    if (clock_gettime(clock, &ts) == -1)
        return 0;
    return (int64_t)ts.tv_sec * 1000000000 + ts.tv_nsec;
}

int64_t place_percent(const struct worker *w, int64_t used_ns, int64_t of_ns)
{
    return used_ns * w->sessions.conf->pool_test_load / of_ns;
}

/* Clients of most pools can go to another worker, once they are let in and idle. Not with TLS. */
static bool clients_can_leave(const struct worker *w)
{
    const struct conf *conf = w->sessions.conf;

    return conf->worker_fill > 0 && conf->pool_mode != CONF_POOL_SESSION && !conf->ssl;
}

/* Another process's clock is read without asking it: who is busy must not be made busier. */
static bool place_is_busy(const struct worker *w, struct place *p, int32_t pid)
{
    int64_t limit = clients_can_leave(w) ? BUSY_SHARED_PERCENT : BUSY_PERCENT;
    int64_t now_ns = place_clock_ns(CLOCK_MONOTONIC);
    clockid_t clock;
    int64_t used_ns;

    if (p->pid == pid && now_ns - p->at_ns < BUSY_WINDOW_NS)
        return p->percent > limit;
    used_ns = clock_getcpuclockid(pid, &clock) == 0 ? place_clock_ns(clock) : 0;
    p->percent = p->pid == pid ? place_percent(w, used_ns - p->used_ns, now_ns - p->at_ns) : 0;
    p->pid = pid;
    p->at_ns = now_ns;
    p->used_ns = used_ns;
    return p->percent > limit;
}

struct proc_row *place_row(const struct worker *w, int i)
{
    return proc_row(w->role.env->shm, w->role.env->first_worker_slot + i);
}

bool place_is_open(const struct worker *w, int i)
{
    struct proc_row *row = place_row(w, i);

    return row->pid != 0 && atomic_load(&row->is_leaving) == 0;
}

uint32_t place_load(struct worker *w, int i)
{
    struct place *p = &w->places[i];
    uint32_t n;

    if (i == w->role.env->ordinal)
        return w->sessions.nclients;
    n = atomic_load(&place_row(w, i)->nclients);
    if (n != p->seen) {
        p->seen = n;
        p->placed = 0;
    }
    return n + p->placed;
}

/* The first worker with room below `fill`; -1: none. */
static int place_to_fill(struct worker *w, uint32_t fill)
{
    int32_t pid;
    int i;

    for (i = 0; i < w->role.env->nworkers; i++) {
        pid = place_row(w, i)->pid;
        if (place_is_open(w, i) && place_load(w, i) < fill && !place_is_busy(w, &w->places[i], pid))
            return i;
    }
    return -1;
}

/* Chooses this worker, unless another has clearly fewer clients. */
static int place_evenly(struct worker *w)
{
    const struct proc_env *env = w->role.env;
    uint32_t mine = w->sessions.nclients;
    uint32_t least = mine;
    uint32_t load;
    int best = env->ordinal;
    int i;

    for (i = 0; i < env->nworkers; i++) {
        if (i == env->ordinal || !place_is_open(w, i))
            continue;
        load = place_load(w, i);
        if (load < least) {
            least = load;
            best = i;
        }
    }
    return mine > least + PLACE_SLACK + least / PLACE_SLACK_PART ? best : env->ordinal;
}

/* A busy worker passes nobody on to be filled up: under a rush of short connections that would cost
 * more than it saves, and an idle one wakes before it anyway. */
int place_choose(struct worker *w)
{
    const struct proc_env *env = w->role.env;
    uint32_t fill = (uint32_t)w->sessions.conf->worker_fill;
    int32_t pid = place_row(w, env->ordinal)->pid;
    int to = -1;

    if (clients_can_leave(w))
        fill = w->most_clients;
    if (fill > 0 && !place_is_busy(w, &w->places[env->ordinal], pid))
        to = place_to_fill(w, fill);
    return to != -1 ? to : place_evenly(w);
}

void place_note(struct worker *w, int to)
{
    w->places[to].placed++;
}

/* A descriptor in four is left for connections to servers and what else there is. */
static uint32_t most_clients(void)
{
    struct rlimit files;

    if (getrlimit(RLIMIT_NOFILE, &files) == -1 || files.rlim_cur >= UINT32_MAX)
        return UINT32_MAX;
    return (uint32_t)(files.rlim_cur - files.rlim_cur / 4);
}

void place_init(struct worker *w)
{
    w->most_clients = most_clients();
    w->places = mem_alloc_zero((size_t)w->role.env->nworkers * sizeof *w->places);
}

void place_fini(struct worker *w)
{
    mem_free(w->places);
}
