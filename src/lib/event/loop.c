/* SPDX-License-Identifier: PostgreSQL
 * loop.c: the event loop: libuv underneath, a timing wheel and a task queue on top.
 * The wheel is one libuv timer however many thousand clients have a time-out; it stands still when
 * no timer is armed. */
#include "config.h"

#include "event/loop.h"

#include <string.h>
#include <time.h>

#include "base/assert.h"

#define LOOP_FINI_ROUNDS 1000

static void loop_on_tick(uv_timer_t *handle);

static void loop_run_tasks(struct loop *lp)
{
    struct list batch;
    struct list *n;
    struct task *t;

    list_init(&batch);
    if (list_is_empty(&lp->tasks))
        return;
    /* Take the batch: a task that posts a task does not keep this turn alive. */
    batch = lp->tasks;
    batch.next->prev = &batch;
    batch.prev->next = &batch;
    list_init(&lp->tasks);
    while ((n = list_first(&batch)) != NULL) {
        t = LIST_ENTRY(n, struct task, node);
        list_remove(&t->node);
        t->fn(t);
    }
}

static void loop_on_check(uv_check_t *handle)
{
    struct loop *lp = handle->data;

    loop_run_tasks(lp);
    if (list_is_empty(&lp->tasks))
        uv_idle_stop(&lp->idle);
}

/* The next events are those of another turn. */
static void loop_on_prepare(uv_prepare_t *handle)
{
    struct loop *lp = handle->data;

    lp->clock_us = 0;
}

static void loop_on_idle(uv_idle_t *handle)
{
    (void)handle; /* its being active makes the poll return at once */
}

void loop_init(struct loop *lp)
{
    int i;
    int rc;

    memset(lp, 0, sizeof *lp);
    rc = uv_loop_init(&lp->uv);
    ASSERT(rc == 0);
    for (i = 0; i < LOOP_WHEEL_SLOTS; i++)
        list_init(&lp->wheel[i]);
    list_init(&lp->tasks);
    uv_timer_init(&lp->uv, &lp->tick);
    uv_check_init(&lp->uv, &lp->check);
    uv_prepare_init(&lp->uv, &lp->prepare);
    uv_idle_init(&lp->uv, &lp->idle);
    lp->tick.data = lp;
    lp->check.data = lp;
    lp->prepare.data = lp;
    lp->idle.data = lp;
    uv_check_start(&lp->check, loop_on_check);
    uv_unref((uv_handle_t *)&lp->check);
    uv_prepare_start(&lp->prepare, loop_on_prepare);
    uv_unref((uv_handle_t *)&lp->prepare);
}

static void loop_close_handle(uv_handle_t *handle, void *arg)
{
    (void)arg;
    if (!uv_is_closing(handle))
        uv_close(handle, NULL);
}

void loop_fini(struct loop *lp)
{
    int round;

    uv_walk(&lp->uv, loop_close_handle, NULL);
    uv_run(&lp->uv, UV_RUN_NOWAIT);
    /* A name that is being resolved holds the loop from another thread until it is answered. */
    for (round = 0; uv_loop_close(&lp->uv) == UV_EBUSY && round < LOOP_FINI_ROUNDS; round++) {
        uv_walk(&lp->uv, loop_close_handle, NULL);
        uv_run(&lp->uv, UV_RUN_ONCE);
    }
}

void loop_run(struct loop *lp)
{
    uv_run(&lp->uv, UV_RUN_DEFAULT);
}

void loop_stop(struct loop *lp)
{
    uv_stop(&lp->uv);
}

int64_t loop_now_us(const struct loop *lp)
{
    return (int64_t)uv_now(&lp->uv) * 1000;
}

int64_t loop_clock_us(struct loop *lp)
{
    struct timespec now;

    if (lp->clock_us == 0) {
        clock_gettime(CLOCK_MONOTONIC, &now);
        lp->clock_us = (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
    }
    return lp->clock_us;
}

static uint32_t loop_tick_now(struct loop *lp)
{
    return (uint32_t)(uv_now(&lp->uv) / LOOP_TICK_MS);
}

void timer_init(struct timer *t, timer_fn *fn)
{
    list_init(&t->node);
    t->due_tick = 0;
    t->fn = fn;
}

void timer_start(struct loop *lp, struct timer *t, int64_t delay_ms)
{
    int64_t ticks = (delay_ms + LOOP_TICK_MS - 1) / LOOP_TICK_MS + 1;

    timer_stop(lp, t);
    if (ticks > INT32_MAX / 2)
        ticks = INT32_MAX / 2;
    if (lp->ntimers++ == 0) {
        lp->now_tick = loop_tick_now(lp);
        uv_timer_start(&lp->tick, loop_on_tick, LOOP_TICK_MS, LOOP_TICK_MS);
    }
    t->due_tick = loop_tick_now(lp) + (uint32_t)ticks;
    list_push_back(&lp->wheel[t->due_tick % LOOP_WHEEL_SLOTS], &t->node);
}

void timer_stop(struct loop *lp, struct timer *t)
{
    if (list_is_detached(&t->node))
        return;
    list_remove(&t->node);
    if (--lp->ntimers == 0)
        uv_timer_stop(&lp->tick);
}

/* Fires what is due in one slot. A callback may stop any other timer, so the due ones are moved to
 * a list of their own first, from which they can be removed like from the wheel. */
static void loop_fire_slot(struct loop *lp, uint32_t tick)
{
    struct list *slot = &lp->wheel[tick % LOOP_WHEEL_SLOTS];
    struct list due;
    struct list *n;
    struct list *tmp;
    struct timer *t;

    list_init(&due);
    LIST_FOREACH_SAFE(n, tmp, slot)
    {
        t = LIST_ENTRY(n, struct timer, node);
        if ((int32_t)(t->due_tick - tick) <= 0) {
            list_remove(n);
            list_push_back(&due, n);
        }
    }
    while ((n = list_first(&due)) != NULL) {
        t = LIST_ENTRY(n, struct timer, node);
        timer_stop(lp, t);
        t->fn(t);
    }
}

static void loop_on_tick(uv_timer_t *handle)
{
    struct loop *lp = handle->data;
    uint32_t now = loop_tick_now(lp);

    /* After a long stop (SIGSTOP, a suspended machine) one round over the wheel finds everything.
     */
    if (now - lp->now_tick > LOOP_WHEEL_SLOTS)
        lp->now_tick = now - LOOP_WHEEL_SLOTS;
    while (lp->now_tick != now && lp->ntimers > 0) {
        lp->now_tick++;
        loop_fire_slot(lp, lp->now_tick);
    }
    lp->now_tick = now;
}

void task_init(struct task *t, task_fn *fn)
{
    list_init(&t->node);
    t->fn = fn;
}

void task_post(struct loop *lp, struct task *t)
{
    if (!list_is_detached(&t->node))
        return;
    list_push_back(&lp->tasks, &t->node);
    if (!uv_is_active((uv_handle_t *)&lp->idle))
        uv_idle_start(&lp->idle, loop_on_idle);
}

void task_cancel(struct task *t)
{
    list_remove(&t->node);
}

static void io_on_poll(uv_poll_t *handle, int status, int events)
{
    struct io *io = LIST_ENTRY(handle, struct io, poll);

    /* libuv stops watching after an error. The error is for the reader to find, perhaps only after
     * it has read what arrived before: go on watching, for as long as somebody is interested. */
    if (status < 0 && io->interest != 0)
        uv_poll_start(&io->poll, io->interest, io_on_poll);
    io->fn(io, status < 0 ? io->interest : events);
}

void io_open(struct loop *lp, struct io *io, int fd, io_fn *fn)
{
    int rc = uv_poll_init(&lp->uv, &io->poll, fd);

    ASSERT(rc == 0);
    io->fn = fn;
    io->closed = NULL;
    io->interest = 0;
}

void io_want(struct io *io, int events)
{
    io->interest = events;
    if (events == 0)
        uv_poll_stop(&io->poll);
    else
        uv_poll_start(&io->poll, events, io_on_poll);
}

static void io_on_closed(uv_handle_t *handle)
{
    struct io *io = LIST_ENTRY(handle, struct io, poll);

    io->closed(io);
}

void io_close(struct io *io, io_closed_fn *closed)
{
    io->closed = closed;
    uv_close((uv_handle_t *)&io->poll, io_on_closed);
}
