/* SPDX-License-Identifier: PostgreSQL
 * sim_uv.c: the part of libuv that the product uses, which is little: handles that are closed in a
 * later turn. */
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
    union {
        uv_prepare_cb prepare;
        uv_async_cb async;
    } cb;
};

struct sim_loop {
    uv_loop_t *uv; /* NULL: free */
    struct list handles;
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

int uv_loop_init(uv_loop_t *uv)
{
    struct sim_loop *lp = loop_of(NULL);

    lp->uv = uv;
    list_init(&lp->handles);
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

int uv_backend_fd(const uv_loop_t *uv)
{
    (void)uv;
    return -1;
}

int uv_backend_timeout(const uv_loop_t *uv)
{
    return sim_uv_is_ready((uv_loop_t *)(uintptr_t)uv) ? 0 : -1;
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

bool sim_uv_is_ready(uv_loop_t *uv)
{
    struct list *n;

    LIST_FOREACH(n, &loop_of(uv)->handles)
    if (LIST_ENTRY(n, struct handle, node)->closing)
        return true;
    return false;
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
    (void)mode;
    run_closing(loop_of(uv));
    return 0;
}
