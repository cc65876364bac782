/* SPDX-License-Identifier: PostgreSQL
 * loop.c: the event loop: an epoll set with libuv's loop in it, a timing wheel and a task queue on
 * top. The wheel sleeps until the next slot that has a timer in it, however many thousand clients
 * have a time-out. libuv has no timers of its own here, and its clock is not asked for. */
#include "config.h"

#include "base/hot.h"
#include "event/loop.h"

#include <errno.h>
#include <limits.h>
#include <string.h>
#include <sys/epoll.h>
#include <time.h>
#include <unistd.h>

#include "base/assert.h"

#define LOOP_FINI_ROUNDS 1000
/* Events taken from the kernel at once. */
#define LOOP_EVENTS 256

/* Every so manyth turn is measured: a prime, for what clients do comes round again and again. */
#define LOOP_SAMPLE 61

#define LOOP_TICK_US (LOOP_TICK_MS * INT64_C(1000))

static void loop_on_tick(struct loop *lp);

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

static void loop_run_the_last(struct loop *lp)
{
    struct task *t = lp->last;

    lp->last = NULL;
    t->fn(t);
}

/* A callback may close others. */
static void loop_tell_closed(struct loop *lp)
{
    struct io *io;

    while ((io = lp->closed) != NULL) {
        lp->closed = io->of.next_closed;
        io->fn.closed(io);
    }
}

static void loop_on_prepare(uv_prepare_t *handle)
{
    (void)handle; /* its being there is all */
}

static void loop_read_clock(struct loop *lp)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    lp->now_us = (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

void loop_init(struct loop *lp)
{
    struct epoll_event ev = {.events = EPOLLIN}; /* data.ptr NULL: libuv */
    int i;
    int rc;

    memset(lp, 0, sizeof *lp);
    rc = uv_loop_init(&lp->uv);
    ASSERT(rc == 0);
    lp->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    ASSERT(lp->epoll_fd != -1);
    rc = epoll_ctl(lp->epoll_fd, EPOLL_CTL_ADD, uv_backend_fd(&lp->uv), &ev);
    ASSERT(rc == 0);
    for (i = 0; i < LOOP_WHEEL_SLOTS; i++)
        list_init(&lp->wheel[i]);
    list_init(&lp->tasks);
    loop_read_clock(lp);
    uv_prepare_init(loop_uv(lp), &lp->alive);
    uv_prepare_start(&lp->alive, loop_on_prepare);
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

    loop_tell_closed(lp);
    uv_walk(&lp->uv, loop_close_handle, NULL);
    uv_run(&lp->uv, UV_RUN_NOWAIT);
    /* A name that is being resolved holds the loop from another thread until it is answered. */
    for (round = 0; uv_loop_close(&lp->uv) == UV_EBUSY && round < LOOP_FINI_ROUNDS; round++) {
        uv_walk(&lp->uv, loop_close_handle, NULL);
        uv_run(&lp->uv, UV_RUN_ONCE);
    }
    close(lp->epoll_fd);
}

/* Which of what the owner waits for has come. */
static int io_events_of(const struct io *io, uint32_t events)
{
    int got = 0;

    if ((events & (EPOLLERR | EPOLLHUP)) != 0)
        return io->interest & ~IO_EXCLUSIVE;
    if ((events & EPOLLIN) != 0)
        got |= IO_READ;
    if ((events & EPOLLOUT) != 0)
        got |= IO_WRITE;
    if ((events & EPOLLRDHUP) != 0)
        got |= IO_GONE;
    return got & io->interest;
}

/* Who stops reading often asks for the end of the connection alone then, and reads again soon
 * after: the kernel is told of that wish beforehand. */
static int io_to_watch(int interest)
{
    return interest == IO_READ ? IO_READ | IO_GONE : interest;
}

static void io_tell_kernel(struct io *io)
{
    struct epoll_event ev = {.data.ptr = io};
    int watch = io_to_watch(io->interest);
    int op = watch == 0 ? EPOLL_CTL_DEL : io->watched == 0 ? EPOLL_CTL_ADD : EPOLL_CTL_MOD;
    int rc;

    if (watch == io->watched)
        return;
    if ((watch & IO_READ) != 0)
        ev.events |= EPOLLIN;
    if ((watch & IO_WRITE) != 0)
        ev.events |= EPOLLOUT;
    if ((watch & IO_GONE) != 0)
        ev.events |= EPOLLRDHUP;
    if ((watch & IO_EXCLUSIVE) != 0)
        ev.events |= EPOLLEXCLUSIVE;
    rc = epoll_ctl(io->of.lp->epoll_fd, op, io->fd, &ev);
    /* libpq may have closed the socket and opened another one under its number. */
    if (rc == -1 && op == EPOLL_CTL_MOD && errno == ENOENT)
        rc = epoll_ctl(io->of.lp->epoll_fd, EPOLL_CTL_ADD, io->fd, &ev);
    ASSERT(rc == 0 || op == EPOLL_CTL_DEL);
    io->watched = (uint8_t)watch;
}

static void loop_dispatch(struct loop *lp, const struct epoll_event *ev)
{
    struct io *io = ev->data.ptr;
    int got;

    if (io == NULL) {
        lp->uv_is_ready = true;
        return;
    }
    if (io->fd == -1)
        return; /* closed a moment ago, in this very turn */
    got = io_events_of(io, ev->events);
    if (got != 0)
        io->fn.ready(io, got);
    else
        io_tell_kernel(io); /* the owner lost interest some time ago */
}

/* Since 1.44 it also says that handles wait to be registered. */
static void loop_ask_uv(struct loop *lp)
{
    lp->uv_is_used = false;
    lp->uv_is_ready = lp->uv_is_ready || uv_backend_timeout(&lp->uv) == 0;
}

/* How long the turn may wait for an event; -1: for ever. */
static int loop_timeout_ms(struct loop *lp)
{
    int64_t left_us;

    if (lp->uv_is_used)
        loop_ask_uv(lp);
    if (!list_is_empty(&lp->tasks) || lp->last != NULL || lp->closed != NULL || lp->uv_is_ready)
        return 0;
    if (lp->ntimers == 0)
        return -1;
    left_us = loop_due_us(lp) - lp->now_us;
    if (left_us > INT_MAX)
        left_us = INT_MAX; /* half an hour: it is looked at in vain */
    return left_us <= 0 ? 0 : (int)((left_us + 999) / 1000);
}

/* There is one writer. */
static void loop_add(_Atomic uint64_t *cell, uint64_t n)
{
    atomic_store_explicit(
        cell, atomic_load_explicit(cell, memory_order_relaxed) + n, memory_order_relaxed);
}

COLD static void loop_note_stall(struct loop_stalls *s, uint64_t took_us)
{
    loop_add(&s->n, 1);
    loop_add(&s->sum_us, took_us);
    if (took_us > atomic_load_explicit(&s->max_us, memory_order_relaxed))
        atomic_store_explicit(&s->max_us, took_us, memory_order_relaxed);
}

/* Measures by the fine clock, which costs too much to be read at the end of each turn. */
COLD static void loop_sample(struct loop *lp)
{
    static const int64_t limits_us[LOOP_TURN_LIMITS] = LOOP_TURN_LIMITS_US;
    struct timespec now;
    int64_t took_us;
    int i = 0;

    lp->unsampled = LOOP_SAMPLE - 1;
    clock_gettime(CLOCK_MONOTONIC, &now);
    took_us = (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000 - lp->now_us;
    while (i < LOOP_TURN_LIMITS && took_us > limits_us[i])
        i++;
    loop_add(&lp->stalls->turn[i], 1);
    loop_add(&lp->stalls->turns_us, (uint64_t)took_us);
}

/* The end of a turn. The coarse clock lags behind by some milliseconds, and costs next to nothing.
 */
HOT static void loop_look_for_stall(struct loop *lp)
{
    struct timespec now;
    int64_t took_us;

    clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
    took_us = (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000 - lp->now_us;
    if (took_us >= LOOP_STALL_US)
        loop_note_stall(lp->stalls, (uint64_t)took_us);
    if (lp->unsampled-- == 0)
        loop_sample(lp);
}

HOT static void loop_turn(struct loop *lp, bool may_wait)
{
    struct epoll_event ev[LOOP_EVENTS];
    int timeout_ms = loop_timeout_ms(lp);
    int n;
    int i;

    n = epoll_wait(lp->epoll_fd, ev, LOOP_EVENTS, may_wait ? timeout_ms : 0);
    ASSERT(n >= 0 || errno == EINTR);
    loop_read_clock(lp);
    for (i = 0; i < n; i++)
        loop_dispatch(lp, &ev[i]);
    if (lp->uv_is_ready || UV_VERSION_HEX < 0x012C00) {
        lp->uv_is_ready = false;
        uv_run(loop_uv(lp), UV_RUN_NOWAIT);
    }
    if (lp->ntimers > 0 && lp->now_us >= loop_due_us(lp))
        loop_on_tick(lp);
    loop_run_tasks(lp);
    if (lp->last != NULL)
        loop_run_the_last(lp);
    loop_tell_closed(lp);
    if (lp->stalls != NULL)
        loop_look_for_stall(lp);
}

void loop_run(struct loop *lp)
{
    lp->is_stopped = false;
    while (!lp->is_stopped)
        loop_turn(lp, true);
}

void loop_poll(struct loop *lp)
{
    loop_turn(lp, false);
}

void loop_stop(struct loop *lp)
{
    lp->is_stopped = true;
}

static uint32_t loop_tick_now(const struct loop *lp)
{
    return (uint32_t)(lp->now_us / LOOP_TICK_US);
}

int64_t loop_due_us(const struct loop *lp)
{
    int32_t ticks = (int32_t)(lp->wake_tick - loop_tick_now(lp));

    if (lp->ntimers == 0)
        return INT64_MAX;
    return lp->now_us - lp->now_us % LOOP_TICK_US + ticks * LOOP_TICK_US;
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
    bool is_first;

    timer_stop(lp, t);
    if (ticks > INT32_MAX / 2)
        ticks = INT32_MAX / 2;
    is_first = lp->ntimers++ == 0;
    if (is_first)
        lp->now_tick = loop_tick_now(lp);
    t->due_tick = loop_tick_now(lp) + (uint32_t)ticks;
    list_push_back(&lp->wheel[t->due_tick % LOOP_WHEEL_SLOTS], &t->node);
    if (is_first || (int32_t)(t->due_tick - lp->wake_tick) < 0)
        lp->wake_tick = t->due_tick;
}

HOT void timer_stop(struct loop *lp, struct timer *t)
{
    if (list_is_detached(&t->node))
        return;
    list_remove(&t->node);
    lp->ntimers--;
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

/* A slot may hold only what is due a round of the wheel later: then one turn is for nothing. */
static void loop_wake_at_next(struct loop *lp)
{
    uint32_t i;

    for (i = 1; i <= LOOP_WHEEL_SLOTS; i++) {
        if (!list_is_empty(&lp->wheel[(lp->now_tick + i) % LOOP_WHEEL_SLOTS])) {
            lp->wake_tick = lp->now_tick + i;
            return;
        }
    }
}

static void loop_on_tick(struct loop *lp)
{
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
    if (lp->ntimers > 0)
        loop_wake_at_next(lp);
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
}

void task_cancel(struct task *t)
{
    list_remove(&t->node);
}

void io_open(struct loop *lp, struct io *io, int fd, io_fn *fn)
{
    io->fn.ready = fn;
    io->of.lp = lp;
    io->fd = fd;
    io->interest = 0;
    io->watched = 0;
}

void io_want(struct io *io, int events)
{
    int lost = io->watched & ~events;

    if (io->fd == -1)
        return;
    io->interest = (uint8_t)events;
    /* Reading is switched off and on again often, and mostly nothing comes in between. */
    if ((events & ~io->watched) != 0 || (lost & ~(IO_READ | IO_GONE)) != 0)
        io_tell_kernel(io);
}

void io_close(struct io *io, io_closed_fn *closed)
{
    struct loop *lp = io->of.lp;

    io->interest = 0;
    io_tell_kernel(io);
    io->fd = -1;
    io->fn.closed = closed;
    io->of.next_closed = lp->closed;
    lp->closed = io;
}
