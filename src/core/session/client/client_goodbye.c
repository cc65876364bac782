/* SPDX-License-Identifier: PostgreSQL
 * client_goodbye.c: a client sends nothing more: Terminate, or the end of its stream, which may be
 * that of its sending half alone. What it asked for before is answered as a server does that reads
 * to the end of a connection: all that a Sync, a Query or a Flush asks for, and the errors of what
 * is behind. What is left of a message of which the rest will not come is for nobody. */
#include "config.h"

#include "sstate_int.h"

/* The rest of a message is not made up when it is longer than this. */
#define COPY_REST_MAX 65536

void client_complete_copy_data(struct client *c)
{
    static const char zeros[4096];
    struct link *link = c->link;
    size_t n;

    if (c->body_left > COPY_REST_MAX || link == NULL || c->target != link ||
        !expect_is_copying(&link->expect) || link->expect.len > 1)
        return; /* it may be a message that does something */
    while (c->body_left > 0) {
        n = c->body_left < sizeof zeros ? c->body_left : sizeof zeros;
        if (link_send(link, zeros, n) == -1)
            return;
        c->body_left -= (uint32_t)n;
    }
}

/* Is there anything the client will be told on `link`, its target? Sees to it that it is. */
static bool is_answer_due(struct client *c, struct link *link)
{
    const struct expect *e = &link->expect;

    if (expect_is_copying(e) && c->body_left > 0)
        client_complete_copy_data(c);
    if (expect_is_quiet(e))
        return false;
    if (e->lost)
        return c->body_left == 0;
    if (e->len == 0)
        return false; /* an error was told, and the rest is skipped */
    if (c->body_left > 0) {
        link->loan.settle_early = true;
        return expect_owes_ready(e);
    }
    if (expect_is_copying(e)) {
        link_fail_copy(link);
        return true;
    }
    if (!expect_needs_sync(e))
        return true;
    if (link != c->link)
        return false;
    link_ask_rest(link);
    return true;
}

/* A COPY has failed, and with a Sync that it may have read nothing else is owed: its ReadyForQuery
 * comes right behind the error, or the server waits for another Sync for ever. */
static bool is_all_told(const struct client *c)
{
    return c->target != NULL && expect_is_stuck(&c->target->expect) && !c->target->expect.lost;
}

int64_t client_goodbye_ms(const struct client *c)
{
    bool is_held = c->rare != NULL && c->rare->is_behind; /* it waits for nobody but itself */

    return (c->target == NULL && !is_held) || is_all_told(c) ? CLIENT_MAY_BE_GONE_MS
                                                             : c->ss->conf->half_closed_timeout_ms;
}

void client_say_goodbye(struct client *c)
{
    bool waits = c->target == NULL && (c->kind->pace(c) != PACE_REST || c->is_parked);

    if (!c->is_parked)
        buf_free(&c->carry);
    if (!waits && (c->target == NULL || !is_answer_due(c, c->target))) {
        client_leave(c);
        return;
    }
    c->sends = CLIENT_HAS_SENT_ALL;
    stream_pause(&c->stream);
    client_set_timer(
        c, is_all_told(c) ? CLIENT_MAY_BE_GONE_MS : c->ss->conf->half_closed_timeout_ms);
}

void client_goodbye_on_no_wait(void *owner, struct link *link)
{
    struct client *c = owner;

    if (c->sends != CLIENT_HAS_SENT_ALL)
        return;
    if (expect_is_copying(&link->expect))
        link_fail_copy(link);
    else if (is_all_told(c))
        client_set_timer(c, CLIENT_MAY_BE_GONE_MS);
}

/* The client has gone, unless it is seen to take its answers, however slowly. */
void client_goodbye_on_timer(struct client *c)
{
    /* What was sent before its end came tells nothing: no longer back than the timer ran. */
    int64_t ran_ms = client_goodbye_ms(c);

    if (is_all_told(c) && !stream_is_clogged(&c->stream))
        client_leave(c);
    else if (stream_is_taken(&c->stream, ran_ms))
        client_set_timer(c, ran_ms);
    else
        client_leave(c);
}
