/* SPDX-License-Identifier: PostgreSQL
 * native_fence.c: a write that chooses its rows by what they hold goes to the other nodes when
 * these have all that it may have seen on the main one: every commit that was on its way when that
 * had answered is on all. Then it meets there what it met on the main node, or more, and a number
 * of rows that differs tells (doc/internals/decisions/0034). Runs in: workers.
 *
 * Who commits waits for nobody. Must never: let a commit wait for one that began later. */
#include "config.h"

#include "base/log.h"
#include "base/mem.h"
#include "config/conf.h"
#include "ipc/gate.h"
#include "ipc/proc.h"

#include "native_int.h"

/* As long as replication_lock_timeout; where that is off, so long. */
#define FENCE_LIMIT_MS 10000

struct native_flight {
    struct list node;
    uint64_t number;
};

struct native_waiters *native_waiters(struct sessions *ss)
{
    struct native_waiters *w = ss->native_waiters;

    if (w != NULL)
        return w;
    w = mem_alloc_zero(sizeof *w);
    for (int side = 0; side < GATE_SIDES; side++)
        list_init(&w->side[side]);
    list_init(&w->flights);
    list_init(&w->fenced);
    ss->native_waiters = w;
    return w;
}

void native_waiters_free(struct sessions *ss)
{
    mem_free(ss->native_waiters);
    ss->native_waiters = NULL;
}

/* ---- commits ---- */

static void say_oldest(struct sessions *ss)
{
    struct list *first = list_first(&ss->native_waiters->flights);

    gate_flights_set(ss->env->shm, ss->env->ordinal,
        first == NULL ? 0 : LIST_ENTRY(first, struct native_flight, node)->number);
}

static void on_tell(void *ctx, int ordinal)
{
    const struct proc_env *env = ctx;

    /* Who has a full box looks when its time is up. */
    (void)mailbox_post(env->boxes, env->first_worker_slot + ordinal, MAIL_GATE_OPEN, NULL, 0, -1);
}

void native_flight_begin(struct native *n)
{
    struct native_flight *f;

    if (n->gate.ops != NULL || n->flight != NULL)
        return;
    f = mem_alloc_zero(sizeof *f);
    f->number = gate_flight_number(n->ss->env->shm);
    list_push_back(&native_waiters(n->ss)->flights, &f->node);
    n->flight = f;
    say_oldest(n->ss);
}

void native_flight_end(struct sessions *ss, struct native_flight *flight)
{
    if (flight == NULL)
        return;
    list_remove(&flight->node);
    mem_free(flight);
    say_oldest(ss);
    native_fence_look(ss);
    gate_flights_tell(ss->env->shm, ss->env->ordinal, on_tell, ss->env);
}

/* ---- who waits ---- */

static void wait_no_longer(struct native *n)
{
    struct sessions *ss = n->ss;

    list_remove(&n->gate.node);
    n->gate.before = 0;
    gate_flights_wait(ss->env->shm, ss->env->ordinal, -1);
    timer_stop(ss->loop, &n->timer);
    client_row_state(n->c, CLIENT_STATE_ACTIVE, WAIT_REASON_NONE);
}

void native_fence_look(struct sessions *ss)
{
    struct native_waiters *w = native_waiters(ss);
    struct list *node;
    struct list *next;

    LIST_FOREACH_SAFE(node, next, &w->fenced)
    {
        struct native *n = LIST_ENTRY(node, struct native, gate.node);

        if (!gate_flights_are_over(ss->env->shm, n->gate.before))
            continue;
        wait_no_longer(n);
        task_post(ss->loop, &n->gate.task);
    }
}

static void on_passed(struct task *t)
{
    struct native *n = LIST_ENTRY(t, struct native, gate.task);

    n->gate.go_on(n);
}

void native_fence_init(struct native *n)
{
    task_init(&n->gate.task, on_passed);
}

/* What it chose by, when its number alone does not tell: one row that has that value may be another
 * one elsewhere, if it is no key. Who commits with it waits for nobody: others wait for it. */
static bool is_fenced(struct native *n)
{
    return n->gate.ops == NULL && n->failed < 0 && n->nlegs > 1 && !n->ex.is_commit &&
           (n->place.choice == REPL_CHOICE_FREE ||
               (n->place.choice == REPL_CHOICE_VALUE && n->leg[n->main].ntuples > 1));
}

bool native_fence(struct native *n, void (*go_on)(struct native *n))
{
    struct sessions *ss = n->ss;
    uint32_t limit_ms = (uint32_t)ss->conf->replication_lock_timeout_ms;
    uint64_t before = is_fenced(n) ? gate_flight_next(ss->env->shm) : 0;

    if (before == 0)
        return true;
    gate_flights_wait(ss->env->shm, ss->env->ordinal, 1);
    if (gate_flights_are_over(ss->env->shm, before)) {
        gate_flights_wait(ss->env->shm, ss->env->ordinal, -1);
        return true;
    }
    n->place.choice = REPL_CHOICE_NONE; /* what begins from now on is not waited for */
    n->step = STEP_FENCE;
    n->gate.before = before;
    n->gate.go_on = go_on;
    list_push_back(&native_waiters(ss)->fenced, &n->gate.node);
    client_row_held(n->c, WAIT_REASON_SNAPSHOT);
    timer_start(ss->loop, &n->timer, limit_ms > 0 ? limit_ms : FENCE_LIMIT_MS);
    return false;
}

/* Whose commit hangs may wait for a row of this session, at a deferred constraint. */
bool native_fence_gives_up(struct native *n)
{
    if (n->gate.before == 0)
        return false;
    wait_no_longer(n);
    return true;
}

void native_fence_quit(struct native *n)
{
    (void)native_fence_gives_up(n);
    task_cancel(&n->gate.task);
}
