/* SPDX-License-Identifier: PostgreSQL
 * pcp_order.c: PAUSE, RESUME, DRAIN and RECONNECT for who has no session: while all databases are
 * paused nobody new may get one. Runs in: control. What they do is ipc/orders_give.c's, as for
 * PGPOOL ... by SQL. */
#include "config.h"

#include <poll.h>
#include <stdio.h>
#include <string.h>

#include "ipc/orders.h"

#include "control_int.h"

#define WHO_BYTES (PCP_USER_BYTES + 16)

static struct slice database_of(const struct pcp_conn *c)
{
    return slice_of(c->order_database, strnlen(c->order_database, sizeof c->order_database));
}

static int take_database(struct pcp_conn *c, struct slice *body, struct err *err)
{
    struct slice name;

    if (!pcp_take_str(body, &name)) {
        err_set(err, "08P01", "PCP processing request");
        err_detail(err, "The request is not complete.");
        return -1;
    }
    if (name.n >= sizeof c->order_database) {
        err_set(err, "42622", "the name of the database is too long");
        return -1;
    }
    memset(c->order_database, 0, sizeof c->order_database);
    memcpy(c->order_database, name.p, name.n);
    return 0;
}

static void tell_unused(struct pcp_conn *c, struct slice word)
{
    struct err text = {0};
    struct buf out = {0};

    if (slice_eq_str(word, PCP_RESUME) ||
        orders_database_is_used(c->ctl->role.env->shm, database_of(c)))
        return;
    err_set(&text, "00000", ORDERS_UNUSED_TEXT, c->order_database);
    pcp_put_err(&out, PCP_ANSWER_NOTICE, "NOTICE", &text);
    pcp_conn_send(c, &out);
    buf_free(&out);
}

static enum pcp_outcome begin(struct pcp_conn *c, const struct pcp_packet *p, unsigned flag,
    const struct orders_giver *giver, struct err *err)
{
    struct orders_pending pending = {.database = database_of(c), .flag = flag};

    if (orders_begin(c->ctl->role.env, &pending, giver, err) == -1) {
        err_hint(err, "pcp_resume ends it, or PGPOOL RESUME.");
        return PCP_FAILED;
    }
    c->order_ticket = pending.ticket;
    pcp_wait_start(c, flag == ORDER_PAUSE ? PCP_WAIT_PAUSE : PCP_WAIT_DRAIN, VIEW_NO_NODE,
        pcp_answer_type(p->type));
    return PCP_LATER;
}

enum pcp_outcome pcp_order_run(
    struct pcp_conn *c, const struct pcp_packet *p, struct buf *out, struct err *err)
{
    const struct proc_env *env = c->ctl->role.env;
    struct orders_giver giver = {.place = ORDERS_OUR_SERVERS};
    struct slice body = p->body;
    char who[WHO_BYTES];
    struct slice word;
    int rc;

    snprintf(who, sizeof who, "PCP user \"%s\"", c->user);
    giver.who = who;
    if (!pcp_take_str(&body, &word))
        word = slice_of(NULL, 0);
    if (take_database(c, &body, err) == -1)
        return PCP_FAILED;
    tell_unused(c, word);
    if (slice_eq_str(word, PCP_PAUSE))
        return begin(c, p, ORDER_PAUSE, &giver, err);
    if (slice_eq_str(word, PCP_DRAIN))
        return begin(c, p, ORDER_DRAIN, &giver, err);
    if (slice_eq_str(word, PCP_RESUME)) {
        rc = orders_resume(env, database_of(c), &giver, err);
    } else if (slice_eq_str(word, PCP_RECONNECT)) {
        rc = orders_reconnect(env, database_of(c), &giver, err);
    } else {
        err_set(err, "42601", "there is no such order");
        rc = -1;
    }
    if (rc == -1)
        return PCP_FAILED;
    pcp_put_word(out, pcp_answer_type(p->type), PCP_COMPLETE);
    return PCP_DONE;
}

static struct orders_pending pending_of(struct pcp_conn *c)
{
    return (struct orders_pending){.database = database_of(c),
        .flag = c->wait == PCP_WAIT_PAUSE ? ORDER_PAUSE : ORDER_DRAIN,
        .ticket = c->order_ticket};
}

enum orders_progress pcp_order_look(struct pcp_conn *c, struct err *err)
{
    const struct proc_env *env = c->ctl->role.env;
    struct orders_pending pending = pending_of(c);
    enum orders_progress progress = orders_look(env, &pending, ORDERS_NO_CLIENT, err);

    if (progress == ORDERS_PENDING)
        orders_tell(env); /* a mailbox may have been full */
    return progress;
}

void pcp_order_end(struct pcp_conn *c)
{
    struct orders_pending pending = pending_of(c);

    if (c->state == PCP_STATE_WAITING && c->wait == PCP_WAIT_PAUSE)
        orders_take_back(c->ctl->role.env, &pending);
}

bool pcp_order_is_left(const struct pcp_conn *c)
{
    struct pollfd at = {.fd = stream_fd(&c->stream), .events = POLLRDHUP};

    return (c->wait == PCP_WAIT_PAUSE || c->wait == PCP_WAIT_DRAIN) && poll(&at, 1, 0) == 1;
}
