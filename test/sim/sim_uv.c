/* SPDX-License-Identifier: PostgreSQL
 * sim_uv.c: the part of libuv that the product uses, timers above all, with a clock that stands
 * still until the scheduler moves it. */
#include "config.h"

#include "sim.h"

#include <netdb.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/list.h"
#include "base/mem.h"

#define MAX_LOOPS 8

/* Stands behind a handle; found by u.reserved[0]. */
struct handle {
    struct list node; /* loop->handles */
    uv_handle_t *uv;
    bool active;
    bool closing;
    int64_t due_us;
    int64_t repeat_us;
    union {
        uv_timer_cb timer;
        uv_prepare_cb prepare;
        uv_async_cb async;
    } cb;
};

struct sim_loop {
    uv_loop_t *uv; /* NULL: free */
    struct list handles;
    uint64_t now_ms;
};

static struct sim_loop loops[MAX_LOOPS];

static struct sim_loop *loop_of(const uv_loop_t *uv)
{
    int i;

    for (i = 0; i < MAX_LOOPS; i++)
        if (loops[i].uv == uv)
            return &loops[i];
    ASSERT(!"a loop that was not made");
    return NULL;
}

static struct handle *handle_of(const uv_handle_t *uv)
{
    return uv->u.reserved[0];
}

static struct handle *handle_new(uv_loop_t *loop, uv_handle_t *uv, uv_handle_type type)
{
    struct handle *h = mem_alloc_zero(sizeof *h);

    uv->loop = loop;
    uv->type = type;
    uv->close_cb = NULL;
    uv->u.reserved[0] = h;
    h->uv = uv;
    list_push_back(&loop_of(loop)->handles, &h->node);
    return h;
}

/* ---- loops ---- */

static void loop_update(struct sim_loop *lp)
{
    lp->now_ms = (uint64_t)(sim.now_us / 1000);
}

int uv_loop_init(uv_loop_t *uv)
{
    struct sim_loop *lp = loop_of(NULL);

    lp->uv = uv;
    list_init(&lp->handles);
    loop_update(lp);
    return 0;
}

int uv_loop_close(uv_loop_t *uv)
{
    struct sim_loop *lp = loop_of(uv);

    if (!list_is_empty(&lp->handles))
        return UV_EBUSY;
    lp->uv = NULL;
    return 0;
}

uint64_t uv_now(const uv_loop_t *uv)
{
    return loop_of(uv)->now_ms;
}

uint64_t uv_hrtime(void)
{
    return (uint64_t)sim.now_us * 1000;
}

void uv_stop(uv_loop_t *uv)
{
    (void)uv;
}

void uv_walk(uv_loop_t *uv, uv_walk_cb cb, void *arg)
{
    struct list *n;
    struct list *tmp;

    LIST_FOREACH_SAFE(n, tmp, &loop_of(uv)->handles)
    cb(LIST_ENTRY(n, struct handle, node)->uv, arg);
}

void uv_update_time(uv_loop_t *uv)
{
    loop_update(loop_of(uv));
}

int uv_backend_fd(const uv_loop_t *uv)
{
    (void)uv;
    return -1;
}

int uv_backend_timeout(const uv_loop_t *uv)
{
    int64_t due_us = sim_uv_next_due_us((uv_loop_t *)(uintptr_t)uv);

    if (sim_uv_is_ready((uv_loop_t *)(uintptr_t)uv))
        return 0;
    return due_us == INT64_MAX ? -1 : (int)((due_us - sim.now_us) / 1000) + 1;
}

/* ---- handles ---- */

int uv_is_active(const uv_handle_t *uv)
{
    return handle_of(uv)->active;
}

int uv_is_closing(const uv_handle_t *uv)
{
    return handle_of(uv)->closing;
}

void uv_unref(uv_handle_t *uv)
{
    (void)uv;
}

void uv_close(uv_handle_t *uv, uv_close_cb cb)
{
    struct handle *h = handle_of(uv);

    ASSERT(!h->closing);
    h->closing = true;
    h->active = false;
    uv->close_cb = cb;
}

int uv_timer_init(uv_loop_t *loop, uv_timer_t *uv)
{
    handle_new(loop, (uv_handle_t *)uv, UV_TIMER);
    return 0;
}

int uv_timer_start(uv_timer_t *uv, uv_timer_cb cb, uint64_t timeout, uint64_t repeat)
{
    struct handle *h = handle_of((uv_handle_t *)uv);

    h->cb.timer = cb;
    h->due_us = (int64_t)(loop_of(uv->loop)->now_ms + timeout) * 1000;
    h->repeat_us = (int64_t)repeat * 1000;
    h->active = true;
    return 0;
}

int uv_timer_stop(uv_timer_t *uv)
{
    handle_of((uv_handle_t *)uv)->active = false;
    return 0;
}

int uv_prepare_init(uv_loop_t *loop, uv_prepare_t *uv)
{
    handle_new(loop, (uv_handle_t *)uv, UV_PREPARE);
    return 0;
}

int uv_prepare_start(uv_prepare_t *uv, uv_prepare_cb cb)
{
    struct handle *h = handle_of((uv_handle_t *)uv);

    h->cb.prepare = cb;
    h->active = true;
    return 0;
}

/* Threads are for PAM, LDAP and expensive keys: nobody asks for them here. */
int uv_async_init(uv_loop_t *loop, uv_async_t *uv, uv_async_cb cb)
{
    handle_new(loop, (uv_handle_t *)uv, UV_ASYNC)->cb.async = cb;
    return 0;
}

int uv_async_send(uv_async_t *uv)
{
    (void)uv;
    ASSERT(!"a thread");
    return 0;
}

int uv_getnameinfo(uv_loop_t *loop, uv_getnameinfo_t *req, uv_getnameinfo_cb cb,
    const struct sockaddr *addr, int flags)
{
    (void)loop;
    (void)req;
    (void)cb;
    (void)addr;
    (void)flags;
    return UV_ENOTSUP;
}

/* All servers have numbers. */
int uv_getaddrinfo(uv_loop_t *loop, uv_getaddrinfo_t *req, uv_getaddrinfo_cb cb, const char *node,
    const char *service, const struct addrinfo *hints)
{
    (void)loop;
    (void)req;
    (void)cb;
    (void)node;
    (void)service;
    (void)hints;
    return UV_ENOTSUP;
}

void uv_freeaddrinfo(struct addrinfo *ai)
{
    freeaddrinfo(ai);
}

const char *uv_strerror(int err)
{
    (void)err;
    return "error of libuv";
}

/* ---- a turn ---- */

static bool timer_is_due(const struct sim_loop *lp, const struct handle *h)
{
    return h->uv->type == UV_TIMER && h->active && h->due_us <= (int64_t)lp->now_ms * 1000;
}

bool sim_uv_is_ready(uv_loop_t *uv)
{
    struct sim_loop *lp = loop_of(uv);
    struct handle *h;
    struct list *n;

    LIST_FOREACH(n, &lp->handles)
    {
        h = LIST_ENTRY(n, struct handle, node);
        if (h->closing)
            return true;
        if (h->uv->type == UV_TIMER && h->active && h->due_us <= sim.now_us / 1000 * 1000)
            return true;
    }
    return false;
}

int64_t sim_uv_next_due_us(uv_loop_t *uv)
{
    int64_t due_us = INT64_MAX;
    struct handle *h;
    struct list *n;

    LIST_FOREACH(n, &loop_of(uv)->handles)
    {
        h = LIST_ENTRY(n, struct handle, node);
        if (h->uv->type == UV_TIMER && h->active && h->due_us < due_us)
            due_us = h->due_us;
    }
    return due_us;
}

static void run_timers(struct sim_loop *lp)
{
    struct handle *h;
    struct list *n;
    struct list *tmp;

    LIST_FOREACH_SAFE(n, tmp, &lp->handles)
    {
        h = LIST_ENTRY(n, struct handle, node);
        if (!timer_is_due(lp, h))
            continue;
        h->active = h->repeat_us > 0;
        h->due_us = (int64_t)lp->now_ms * 1000 + h->repeat_us;
        h->cb.timer((uv_timer_t *)h->uv);
    }
}

static void run_closing(struct sim_loop *lp)
{
    struct list batch;
    struct handle *h;
    uv_handle_t *uv;
    struct list *n;
    struct list *tmp;

    list_init(&batch);
    LIST_FOREACH_SAFE(n, tmp, &lp->handles)
    {
        if (!LIST_ENTRY(n, struct handle, node)->closing)
            continue;
        list_remove(n);
        list_push_back(&batch, n);
    }
    while ((n = list_first(&batch)) != NULL) {
        h = LIST_ENTRY(n, struct handle, node);
        uv = h->uv;
        list_remove(n);
        mem_free(h);
        if (uv->close_cb != NULL)
            uv->close_cb(uv);
    }
}

int uv_run(uv_loop_t *uv, uv_run_mode mode)
{
    struct sim_loop *lp = loop_of(uv);

    (void)mode;
    loop_update(lp);
    run_timers(lp);
    run_closing(lp);
    return 0;
}
