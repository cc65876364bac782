/* SPDX-License-Identifier: PostgreSQL
 * link_end.c: how a link ends: by a failure that its owner is told of, or closed. Runs in: workers.
 * Whatever a link does may end it, so this needs none of the rest. */
#include "config.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "backend/pool.h"
#include "backend/row_alloc.h"
#include "base/hot.h"
#include "base/log.h"
#include "base/mem.h"

#include "link_int.h"

void link_free(struct link *link)
{
    if (link->opening != NULL)
        buf_free(&link->opening->said);
    mem_free(link->opening);
    mem_free(link);
}

void link_carry(struct link *link, struct slice bytes)
{
    if (link->carry == NULL)
        link->carry = mem_alloc_zero(sizeof *link->carry);
    buf_put(link->carry, bytes.p, bytes.n);
}

HOT void link_carry_free(struct link *link)
{
    if (link->carry == NULL)
        return;
    buf_free(link->carry);
    mem_free(link->carry);
    link->carry = NULL;
}

void link_set_key(struct link *link, struct slice key)
{
    struct slice old = link_key(link);

    if (old.n > 0)
        mem_wipe((char *)(uintptr_t)old.p, old.n);
    if (old.n > sizeof link->key.here)
        mem_free(link->key.heap);
    link->key_len = (uint16_t)key.n;
    if (key.n > sizeof link->key.here)
        link->key.heap = mem_strndup(key.p, key.n);
    else if (key.n > 0)
        memcpy(link->key.here, key.p, key.n);
}

/* Gives back everything but the memory, which libuv may still need. */
void link_close_silently(struct link *link)
{
    struct backend *be = link->be;

    if (link->phase == LINK_CLOSED)
        return;
    if (link->opening != NULL)
        dial_cancel(&link->opening->dial);
    timer_stop(be->loop, &link->timer);
    if (be->has_more == link)
        be->has_more = NULL;
    list_remove(&link->be_node);
    row_alloc_give(be->row_alloc, link->row);
    be->pool_ops->on_gone(link->pool, link);
    link->pool = NULL;
    link->phase = LINK_CLOSED;
    link->owner = NULL;
    expect_fini(&link->expect);
    link_carry_free(link);
    paramset_free(&link->reported);
    paramset_free(&link->startup);
    varset_unref(&link->vars);
    prepset_clear(&link->preps);
    link_answer_free(link);
    link_set_key(link, slice_of("", 0));
    if (link_tls_close(link))
        return;
    if (stream_fd(&link->stream) != -1)
        stream_close(&link->stream);
    else
        link_free(link);
}

void link_close(struct link *link)
{
    if (link->phase == LINK_IDLE && stream_fd(&link->stream) != -1)
        (void)stream_send(&link->stream, "X\0\0\0\4", 5);
    link_close_silently(link);
}

void link_log_put(const struct log_place *place, const struct link *link, enum log_level level,
    const char *fmt, ...)
{
    char text[1024];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    if (link->owner != NULL && link->ops->on_log != NULL)
        link->ops->on_log(link->owner, place, level, text);
    else
        log_put_limited(place, level, NULL, NULL, "%s", text);
}

void link_fail(struct link *link, const struct err *err)
{
    void *owner = link->owner;
    const struct link_owner_ops *ops = link->ops;
    bool told = link->loan.error_told;

    if (link->phase == LINK_CLOSED)
        return;
    if (owner == NULL) {
        link_close(link);
        return;
    }
    if (link->expect.is_seen || link->seeing != LINK_SEEING_NOTHING)
        link_see_lost(link);
    link->owner = NULL;
    expect_on_end(&link->expect);
    ops->on_lost(owner, link, err, told);
    link_close(link);
}

void link_fail_text(struct link *link, const char *sqlstate, const char *fmt, ...)
{
    struct err err;
    va_list ap;

    err_clear(&err);
    va_start(ap, fmt);
    err_set_fatal_v(&err, sqlstate, fmt, ap);
    va_end(ap);
    link_fail(link, &err);
}

void link_ignore_bytes(void *owner, struct link *link, const char *p, size_t n)
{
    (void)owner;
    (void)link;
    (void)p;
    (void)n;
}

void link_ignore(void *owner, struct link *link)
{
    (void)owner;
    (void)link;
}
