/* SPDX-License-Identifier: PostgreSQL
 * client_io.c: what every room may do with a client: send to it, time it, tell that something
 * became of it. Runs in: workers. Lowest of the session's files. Whoever finds out that a client
 * has to end or can go on knows nothing of the rooms above, where that is done: it tells them by
 * the worker's `struct client_events` (sessions.c). Must never: look at what a client does. */
#include "config.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>

#include "base/assert.h"
#include "base/hot.h"
#include "base/mem.h"
#include "wire/writer.h"

#include "client/client_travel_int.h"
#include "sstate_int.h"

HOT void client_send(struct client *c, struct buf *out)
{
    if (out->len > 0 && stream_fd(&c->stream) != -1) /* else it has gone in this turn */
        (void)stream_send_later(&c->stream, out->data, out->len);
    buf_free(out);
}

void client_say_ready(struct client *c, char tx)
{
    struct buf out = {0};

    wire_put_ready(&out, tx);
    client_send(c, &out);
}

void client_set_timer(struct client *c, int64_t ms)
{
    c->limits.due_us = 0;
    if (ms > 0)
        timer_start(c->ss->loop, &c->timer, ms);
    else
        timer_stop(c->ss->loop, &c->timer);
}

struct client_rare *client_rare(struct client *c)
{
    if (c->rare == NULL)
        c->rare = mem_alloc_zero(sizeof *c->rare);
    return c->rare;
}

void client_rare_trim(struct client *c)
{
    const struct client_rare *r = c->rare;

    if (r == NULL || c->phase == CL_CLOSED || r->cancel_wait != NULL || r->console != NULL ||
        r->override != NULL || r->ddl != NULL || r->results != NULL || r->native != NULL ||
        r->refused != NULL || r->patch != NULL || r->is_behind || c->trace.server != 0)
        return;
    mem_free(c->rare);
    c->rare = NULL;
}

struct client *client_of_stream(struct stream *s)
{
    struct client *c = LIST_ENTRY(s, struct client, stream);

    ASSERT(c->magic == CLIENT_MAGIC);
    return c;
}

void client_end_text(struct client *c, const char *sqlstate, const char *fmt, ...)
{
    struct err err;
    va_list ap;

    err_clear(&err);
    va_start(ap, fmt);
    err_set_fatal_v(&err, sqlstate, fmt, ap);
    va_end(ap);
    client_end(c, &err);
}

/* The kernel is asked for many at a time: a login costs one system call less. */
uint32_t client_make_secret(struct sessions *ss, uint8_t *secret, uint32_t version)
{
    uint32_t n = version >= PROTO_3_2 ? ROWS_SECRET_BYTES : PROTO_KEY_OLD_BYTES;
    ssize_t got;

    if (ss->nrandom < n) {
        got = getrandom(ss->random, sizeof ss->random, 0);
        ASSERT(got == (ssize_t)sizeof ss->random);
        ss->nrandom = sizeof ss->random;
    }
    ss->nrandom -= n;
    memcpy(secret, ss->random + ss->nrandom, n);
    mem_wipe(ss->random + ss->nrandom, n); /* nobody is given the same */
    return n;
}

/* ---- events ---- */

void client_end(struct client *c, const struct err *err)
{
    c->ss->events->end(c, err);
}

void client_leave(struct client *c)
{
    c->ss->events->leave(c);
}

void client_drop_link(struct client *c, bool boundary)
{
    c->ss->events->drop_link(c, boundary);
}

void feed_client(struct client *c, const char *p, const char *end)
{
    c->ss->events->feed(c, p, end);
}

void client_unpark(struct client *c)
{
    c->ss->events->unpark(c);
}

HOT void client_after_quiet(struct client *c)
{
    c->ss->events->after_quiet(c);
}

void client_login_welcome(struct client *c)
{
    c->ss->events->welcome(c);
}

void sessions_on_idle(struct client *c)
{
    c->ss->events->idle(c);
}

bool client_travel_waiting(struct client *c, int ordinal)
{
    return c->ss->events->travel_waiting(c, ordinal);
}
