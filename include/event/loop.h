/* SPDX-License-Identifier: PostgreSQL
 * loop.h: one event loop per process: readiness of descriptors, coarse timers, and work put off to
 * the end of the turn. Runs in: workers, monitor, control. Descriptors are watched by an epoll set
 * of our own, for libuv's handle of one is larger than all that an idle client needs; libuv, whose
 * loop is in that set, has what is rare: names, child processes, threads. Never made before a fork:
 * libuv's loop does not survive one. */
#ifndef PGP_EVENT_LOOP_H
#define PGP_EVENT_LOOP_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

#include "base/list.h"

#define LOOP_TICK_MS     50
#define LOOP_WHEEL_SLOTS 1024

struct loop;
struct stream_later;
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

/* Turns that took so long that others had to wait for them, and how long turns take at all, by a
 * sample: for who measures it, in memory that others may read. */
#define LOOP_STALL_US 10000
#define LOOP_TURN_LIMITS_US                                                                        \
    {                                                                                              \
        100, 250, 500, 1000, 2500, 5000, 10000, 25000, 100000                                      \
    }
#define LOOP_TURN_LIMITS 9
struct loop_stalls {
    _Atomic uint64_t n;
    _Atomic uint64_t sum_us;
    _Atomic uint64_t max_us;
    _Atomic uint64_t turn[LOOP_TURN_LIMITS + 1]; /* sampled ones that took no longer than the limit,
                                                    but than the one before; the last: longer */
    _Atomic uint64_t turns_us;                   /* how long these took together */
};

struct loop {
    uv_loop_t uv;
    uv_prepare_t alive; /* libuv says whether it may sleep only while it has something */
    int epoll_fd;
    bool is_stopped;
    bool uv_is_ready;
    bool uv_is_used;            /* since it was asked last whether it has something to do */
    uint32_t now_tick;          /* up to which slots were looked at */
    uint32_t wake_tick;         /* when the next one is, if there is a timer */
    int64_t now_us;             /* when this turn began */
    struct loop_stalls *stalls; /* NULL: nobody wants to know */
    uint32_t unsampled;         /* turns until one is measured */
    uint32_t ntimers;
    struct list tasks;
    struct task *last;          /* see loop_run_last */
    struct stream_later *later; /* of net/stream.h; NULL: nothing is kept in this process */
    struct io *closed;          /* to be told, at the end of the turn */
    struct list wheel[LOOP_WHEEL_SLOTS];
};

/* libuv's part of it, for whoever starts something there or closes it: what that leaves to do is
 * done in the next turn. In turns without that libuv is not asked. */
static inline uv_loop_t *loop_uv(struct loop *lp)
{
    lp->uv_is_used = true;
    return &lp->uv;
}
/* Makes a loop. After the fork only. */
void loop_init(struct loop *lp);
/* Closes what is left and frees the loop. */
void loop_fini(struct loop *lp);
/* Runs until loop_stop. */
void loop_run(struct loop *lp);
/* One turn that waits for nothing. For tests. */
void loop_poll(struct loop *lp);
void loop_stop(struct loop *lp);
/* Monotonic time of this turn, microseconds. The clock is read once per turn, which is no system
 * call where the kernel maps it. */
static inline int64_t loop_now_us(const struct loop *lp)
{
    return lp->now_us;
}
/* When the next timer may be due, by the same clock; INT64_MAX: none is armed. */
int64_t loop_due_us(const struct loop *lp);

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
/* Has the task run once, behind all events, timers and tasks of this turn. There is one such task.
 */
static inline void loop_run_last(struct loop *lp, struct task *t)
{
    lp->last = t;
}

/* Readiness of one descriptor. */
enum io_events {
    IO_READ = 1,
    IO_WRITE = 2,
    IO_GONE = 4, /* the other side sends nothing more, or the connection broke; it stays so: who is
                    told must not go on asking */
    IO_EXCLUSIVE = 8 /* with IO_READ alone: one of the processes that watch it is woken */
};

struct io;
typedef void io_fn(struct io *io, int events);
typedef void io_closed_fn(struct io *io);

struct io {
    union {
        io_fn *ready;
        io_closed_fn *closed; /* since io_close */
    } fn;
    union {
        struct loop *lp;
        struct io *next_closed; /* since io_close */
    } of;
    int fd;           /* -1 since io_close */
    uint8_t interest; /* IO_... that the owner waits for */
    uint8_t watched;  /* those that the kernel was asked for: perhaps more */
    uint8_t marks;    /* the owner's, in what would be padding; not touched here */
};

/* Watches `fd` (non-blocking, not taken over). No interest yet. */
void io_open(struct loop *lp, struct io *io, int fd, io_fn *fn);
/* Sets the interest: a set of IO_..., or 0. An error or a full hang-up counts as everything that is
 * waited for. To lose interest in reading and find it again costs no system call if nothing comes
 * in between. */
void io_want(struct io *io, int events);
/* Stops watching; the descriptor may be closed or given away at once. `closed` is called later, and
 * only then may the memory of `io` go. */
void io_close(struct io *io, io_closed_fn *closed);

#endif
