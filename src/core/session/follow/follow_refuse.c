/* SPDX-License-Identifier: PostgreSQL
 * follow_refuse.c: a client is told that what it wants cannot be: in its place among the replies,
 * or while it waits for a link. Runs in: workers. */
#include "config.h"

#include "base/mem.h"
#include "wire/message.h"
#include "wire/writer.h"

#include "sstate_int.h"

/* The server is made to fail instead, for it has to skip what follows and to undo what was done;
 * its error goes to the client in our words (exchange_link.c). */
enum feed_step follow_refuse(struct client *c, struct feed_run *run, const struct err *err)
{
    struct sstate *s = c->sstate;
    struct buf out = {0};
    uint32_t at = wire_begin(&out, FE_PARSE);

    buf_put(&out, REFUSED_NAME, sizeof REFUSED_NAME);
    buf_put(&out, refused_query, strlen(refused_query) + 1);
    buf_put_u16(&out, 0);
    wire_end(&out, at);
    link_expect(c->link, OP_PARSE);
    feed_put(run, out.data, out.len);
    buf_free(&out);
    if (s->errand->refusal == NULL) {
        s->errand->refusal = mem_alloc(sizeof *s->errand->refusal);
        *s->errand->refusal = *err;
    }
    return FEED_PUT;
}

void follow_fail_parked(struct client *c, const struct err *err)
{
    struct sstate *s = c->sstate;
    struct buf out = {0};
    struct slice in = buf_slice(&c->carry);
    size_t len;
    bool is_home = s->errand->home != NULL;

    s->errand->is_cancelled = false;
    plan_unsure_end(c);
    sstate_judge_end(c);
    c->kind->routed(c, ROUTED_REFUSED);
    if (is_home) {
        /* No link for a read that may leave: it need not. */
        tx_leave_no_more(&s->errand->leave);
        is_home = slice_eq_str(slice_of_str(err->sqlstate), "57014");
        if (is_home)
            s->tx = SSTATE_TX_FAILS;
        plan_aside_come_back(c);
        if (!is_home) {
            client_unpark(c);
            return;
        }
    }
    c->body_left = 0;
    if (s->tx == SSTATE_TX_VIRTUAL) {
        /* BEGIN was promised: the transaction is there, and failed. */
        s->tx = SSTATE_TX_LOST;
        s->errand->place = PLACE_HOME;
        buf_empty(&s->errand->begin);
    }
    wire_put_err(&out, err);
    if (in.n >= PROTO_HEADER_BYTES && (in.p[0] == FE_QUERY || in.p[0] == FE_FUNCTION_CALL)) {
        len = message_bytes(in.p); /* of which perhaps not all has come */
        wire_put_ready(&out, is_home ? 'E' : sstate_tx_status(c));
        if (buf_unread(&c->carry) >= len)
            buf_consume(&c->carry, len);
        else
            c->body_skip = len - (uint32_t)buf_unread(&c->carry), buf_free(&c->carry);
    } else {
        c->local_part = LOCAL_PART_FAILED; /* up to the next Sync */
    }
    client_send(c, &out);
    client_note_idle(c);
    client_unpark(c);
}

void follow_cancel_parked(struct client *c)
{
    struct err err;

    c->kind->routed(c, ROUTED_CANCELED);
    err_clear(&err);
    err_set(&err, "57014", "canceling statement due to user request");
    follow_fail_parked(c, &err);
}

bool follow_refuse_unsure(struct client *c)
{
    struct err err;

    if (c->plan->nunsure == 0 || c->plan->questions != NULL)
        return false;
    err_clear(&err);
    err_set(&err, "08006", "the connection to node %d was lost under a view that may write",
        c->pool->cluster_node);
    err_hint(&err, "It may have been done: it is not made again by itself.");
    follow_fail_parked(c, &err);
    return true;
}
