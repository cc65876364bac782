/* SPDX-License-Identifier: PostgreSQL
 * loop.h: one event loop per process, on libuv: readiness of descriptors, coarse timers, and work
 * put off to the end of the turn. Runs in: workers, monitor, control. A descriptor is registered
 * once; interest changes only for back-pressure. Never made before a fork: libuv's loop does not
 * survive one. */
#ifndef PGP_EVENT_LOOP_H
#define PGP_EVENT_LOOP_H

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

#include "base/list.h"

#define LOOP_TICK_MS     50
#define LOOP_WHEEL_SLOTS 1024

struct loop;
struct timer;
struct task;

typedef void timer_fn(struct timer *t);
typedef void task_fn(struct task *t);

/* A timer inside an object; precision is LOOP_TICK_MS. */
struct timer {
    struct list node;
    uint32_t due_tick;
    timer_fn *fn;
};

/* Work to do once, at the end of this turn of the loop, out of the caller's stack. */
struct task {
    struct list node;
    task_fn *fn;
};

struct loop {
    uv_loop_t uv;
    uv_timer_t tick;
    uv_check_t check;
    uv_prepare_t prepare;
    uv_idle_t idle;
    uint32_t now_tick;
    int64_t clock_us; /* of this turn; 0: not read yet */
    uint32_t ntimers;
    struct list wheel[LOOP_WHEEL_SLOTS];
    struct list tasks;
};

/* Makes a loop. After the fork only. */
void loop_init(struct loop *lp);
/* Closes what is left and frees the loop. */
void loop_fini(struct loop *lp);
/* Runs until loop_stop. */
void loop_run(struct loop *lp);
void loop_stop(struct loop *lp);
/* Monotonic time of this turn, microseconds; no system call. */
int64_t loop_now_us(const struct loop *lp);
/* The same clock, as fine as it is: loop_now_us counts milliseconds. Read at most once per turn of
 * the loop, when it is first asked for; that costs no system call where the kernel maps the clock.
 */
int64_t loop_clock_us(struct loop *lp);

/* A zeroed timer must be initialised once. */
void timer_init(struct timer *t, timer_fn *fn);
/* (Re)arms: fn is called once, at least `delay_ms` from now. */
void timer_start(struct loop *lp, struct timer *t, int64_t delay_ms);
/* Disarms; harmless when not armed. */
void timer_stop(struct loop *lp, struct timer *t);
static inline bool timer_is_armed(const struct timer *t)
{
    return !list_is_detached(&t->node);
}

/* A zeroed task must be initialised once. */
void task_init(struct task *t, task_fn *fn);
/* Queues the task unless it is queued already. */
void task_post(struct loop *lp, struct task *t);
void task_cancel(struct task *t);

/* Readiness of one descriptor. IO_GONE: the other side sends nothing more, or the connection broke;
 * it stays so, so who is told must not go on asking. */
enum io_events { IO_READ = UV_READABLE, IO_WRITE = UV_WRITABLE, IO_GONE = UV_DISCONNECT };

struct io;
typedef void io_fn(struct io *io, int events);
typedef void io_closed_fn(struct io *io);

struct io {
    uv_poll_t poll;
    io_fn *fn;
    io_closed_fn *closed;
    int interest;
};

/* Watches `fd` (non-blocking, not taken over). No interest yet. */
void io_open(struct loop *lp, struct io *io, int fd, io_fn *fn);
/* Sets the interest: IO_READ, IO_WRITE and IO_GONE in any combination, or 0. An error counts as all
 * that is wanted. */
void io_want(struct io *io, int events);
/* Stops watching; the descriptor may be closed or given away at once. `closed` is called later, and
 * only then may the memory of `io` go. */
void io_close(struct io *io, io_closed_fn *closed);

#endif
