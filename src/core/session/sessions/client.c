/* SPDX-License-Identifier: PostgreSQL
 * client.c: life of a client: accepted, served, gone. */
#include "config.h"

#include <errno.h>
#include <string.h>

#include "account/said.h"
#include "backend/row_alloc.h"
#include "base/hot.h"
#include "base/log.h"
#include "base/mem.h"
#include "config/conf.h"
#include "config/conf_param.h"
#include "wire/writer.h"

#include "client_events_int.h"
#include "feed/client_named_int.h"
#include "client/client_watch_int.h"
#include "client/client_tls_int.h"
#include "sstate_int.h"

/* Before a client is let in these bytes may hold its password. */
static void client_free_carry(struct client *c)
{
    if (c->phase != CL_ACTIVE && c->carry.data != NULL)
        mem_wipe(c->carry.data, c->carry.cap);
    buf_free(&c->carry);
}

void client_dispose(struct client *c)
{
    struct sessions *ss = c->ss;
    uint64_t link_id = c->link == NULL ? 0 : c->link->id;

    c->phase = CL_CLOSED;
    if (client_has_console(c))
        ss->console->leave(c);
    if (c->drops_database)
        client_watch_on_leave(c);
    client_tls_cancel_free(c);
    client_drop_link(c, false);
    if (c->rare != NULL && c->rare->results != NULL)
        ss->results->gone(c, link_id);
    client_login_leave(c);
    row_alloc_give(ss->client_row_alloc, c->row_index);
    c->row = NULL;
    if (c->is_counted)
        session_count_sub(ss->shared, ss->env->ordinal);
    limits_client_sub(ss->env->shm, ss->env->ordinal, &c->ticket);
    list_remove(&c->node);
    said_end(&ss->said, c);
    ss->nclients--;
    task_post(ss->loop, &ss->publish);
    stream_close(&c->stream);
    if (ss->nclients == 0 && ss->on_empty != NULL)
        ss->on_empty(ss);
}

static void client_close(struct client *c)
{
    if (c->phase == CL_CLOSED)
        return;
    c->phase = CL_CLOSED;
    client_log_disconnection(c);
    client_dispose(c);
}

static void client_on_closed(struct stream *s)
{
    struct client *c = client_of_stream(s);

    c->magic = 0;
    timer_stop(c->ss->loop, &c->timer);
    leg_free(c);
    client_named_free(&c->named);
    client_login_free(c);
    if (client_has_console(c))
        c->ss->console->free(c);
    client_patch_free(c);
    if (c->pool != NULL)
        pool_detach(c->pool);
    client_free_carry(c);
    if (c->rare != NULL) {
        conf_override_free(&c->rare->override);
        mem_free(c->rare->refused);
    }
    mem_free(c->rare);
    mem_free(c);
}

/* Bytes after the goodbye are read and thrown away: closing with unread input would make the kernel
 * send a reset, which may destroy the message before the client has read it. */
static bool client_discard_input(struct client *c)
{
    char junk[4096]; /* not the worker's buffer: somebody up the stack may be reading from it */
    ssize_t n = 1;
    int round;

    for (round = 0; n > 0 && round < 16; round++)
        n = stream_recv(&c->stream, junk, sizeof junk);
    return n != -1;
}

static void client_finish_closing(struct client *c)
{
    if (stream_is_clogged(&c->stream))
        return;
    (void)client_discard_input(c);
    client_close(c);
}

static void client_on_end(struct client *c, int errnum)
{
    if (errnum == EPROTO)
        client_tls_log_failure(c);
    if (c->phase != CL_ACTIVE)
        client_close(c);
    else if (errnum == 0)
        client_say_goodbye(c); /* it may have closed only its sending half */
    else
        client_leave(c);
}

/* While a client's input waits it may go, or close its sending half: the two look the same. What
 * runs may end. A client that waits for a link has nothing running: its place in the line is soon
 * given to others, but not sooner than a link takes that only has to come from another worker. */
static void client_on_hung_up(struct stream *s, bool is_broken)
{
    struct client *c = client_of_stream(s);

    switch ((enum client_phase)c->phase) {
    case CL_STARTUP:
    case CL_LOGIN:
        client_close(c);
        break;
    case CL_ACTIVE:
        if (is_broken) {
            client_leave(c);
        } else if (c->is_parked && c->sends != CLIENT_HAS_SENT_ALL) {
            c->sends = CLIENT_HAS_HUNG_UP;
            client_set_timer(c, client_goodbye_ms(c));
        }
        break;
    case CL_CLOSING:
        if (is_broken)
            client_close(c);
        break;
    case CL_CLOSED:
        break;
    }
}

COLD static void closing_on_readable(struct client *c)
{
    if (client_discard_input(c))
        return;
    if (stream_is_clogged(&c->stream) && !stream_has_failed(&c->stream))
        stream_pause(&c->stream); /* it sends nothing more, but may still read */
    else
        client_close(c);
}

HOT static void client_on_readable(struct stream *s)
{
    struct client *c = client_of_stream(s);
    char *buf = c->ss->be.read_buf;
    size_t carried = buf_unread(&c->carry);
    ssize_t n;

    if (c->phase >= CL_CLOSING) {
        closing_on_readable(c);
        return;
    }
    if (c->is_parked) {
        stream_pause(s); /* it has its time when what is parked has had its own */
        return;
    }
    if (carried > BACKEND_CARRY_MAX) { /* never, or it would be written behind the buffer */
        client_end_text(c, "08P01", "invalid message length");
        return;
    }
    if (carried > 0)
        memcpy(buf, c->carry.data + c->carry.pos, carried);
    n = stream_recv(s, buf + carried, BACKEND_TAKE_BYTES);
    if (n == 0)
        return;
    if (n == -1) {
        client_on_end(c, errno);
        return;
    }
    client_free_carry(c);
    if (c->phase == CL_ACTIVE)
        client_do_feed(c, buf, buf + carried + (size_t)n);
    else if (c->phase == CL_STARTUP)
        client_on_startup_bytes(c, buf, buf + carried + (size_t)n);
    else
        client_login_input(c, buf, buf + carried + (size_t)n);
}

/* The client has read what it was told. */
COLD static void client_go_on(struct client *c)
{
    c->rare->is_behind = false;
    client_rare_trim(c);
    if (c->is_parked)
        client_unpark(c);
    else
        client_read_on(c);
}

static void client_on_drained(struct stream *s)
{
    struct client *c = client_of_stream(s);
    struct link *kept = c->kind->kept(c);

    if (c->phase == CL_CLOSING)
        client_finish_closing(c);
    else if (c->target != NULL)
        link_resume(c->target);
    else if (c->link == NULL && kept != NULL)
        link_resume(kept);
    if (c->rare != NULL && c->rare->is_behind)
        client_go_on(c);
}

static const struct stream_ops client_stream_ops = {.on_readable = client_on_readable,
    .on_drained = client_on_drained,
    .on_closed = client_on_closed,
    .on_hung_up = client_on_hung_up};

static void client_on_timer(struct timer *t)
{
    struct client *c = LIST_ENTRY(t, struct client, timer);

    switch ((enum client_phase)c->phase) {
    case CL_STARTUP:
        CLIENT_LOG(c, LVL_LOG, "authentication timeout: no startup packet from the client");
        client_close(c);
        break;
    case CL_LOGIN:
        if (c->stats.wait_us > 0) {
            client_limits_on_timer(c);
            break;
        }
        CLIENT_LOG(c, LVL_LOG, "authentication timeout");
        client_end_text(c, "57014", "canceling authentication due to timeout");
        break;
    case CL_ACTIVE:
        if (c->sends != CLIENT_SENDS_ON)
            client_goodbye_on_timer(c);
        else
            client_limits_on_timer(c);
        break;
    case CL_CLOSING:
        client_close(c);
        break;
    case CL_CLOSED:
        break;
    }
}

void client_do_drop_link(struct client *c, bool boundary)
{
    c->kind->drop_link(c, boundary);
}

void client_do_leave(struct client *c)
{
    if (stream_is_clogged(&c->stream) && !stream_has_failed(&c->stream)) {
        client_end(c, NULL); /* the rest of a reply is still on its way to a slow reader */
        return;
    }
    if (c->body_left > 0)
        client_complete_copy_data(c);
    client_drop_link(c, c->body_left == 0); /* nothing of what is in `carry` was sent */
    client_close(c);
}

void client_do_end(struct client *c, const struct err *err)
{
    const struct link *kept = c->kind->kept(c);
    struct buf out = {0};
    bool in_message;

    if (c->phase >= CL_CLOSING)
        return;
    /* Behind a part of a server's message our text would be taken for the rest of it. */
    in_message = (c->target != NULL && c->target->body_left > 0 && !c->target->swallow_body) ||
                 (kept != NULL && kept->body_left > 0);
    client_drop_link(c, c->body_left == 0 && buf_unread(&c->carry) == 0);
    if (err != NULL && c->phase != CL_ACTIVE)
        client_log_refusal(c, err);
    client_login_leave(c);
    if (err != NULL && !in_message) {
        wire_put_err(&out, err);
        client_send(c, &out);
    }
    c->phase = CL_CLOSING;
    client_row_state(c, CLIENT_STATE_CLOSING, WAIT_REASON_NONE);
    client_set_timer(c, CLIENT_CLOSING_MS);
    stream_resume(&c->stream);
    client_finish_closing(c);
}

struct client *client_new(struct sessions *ss, int fd)
{
    struct client *c = mem_alloc_zero(sizeof *c);

    c->magic = CLIENT_MAGIC;
    c->phase = CL_STARTUP;
    c->kind = &ss->kinds->relayed; /* until more is known */
    c->plan = plan_none();
    c->ss = ss;
    list_push_back(&ss->clients, &c->node);
    ss->nclients++;
    task_post(ss->loop, &ss->publish);
    timer_init(&c->timer, client_on_timer);
    stream_open(ss->loop, &c->stream, fd, &client_stream_ops);
    return c;
}

void sessions_add(struct sessions *ss, const struct session_peer *peer)
{
    struct client *c = client_new(ss, peer->fd);

    ss->served++;
    client_row_open(c, peer);
    if (ss->conf->log_connections)
        client_log_connection(c);
    client_set_timer(c, ss->conf->authentication_timeout_ms);
    /* The startup packet is often here already. */
    client_on_readable(&c->stream);
}
