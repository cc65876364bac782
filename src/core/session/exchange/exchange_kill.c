/* SPDX-License-Identifier: PostgreSQL
 * exchange_kill.c: may this session end, or cancel, another client? Runs in: workers. That is the
 * server's to say, in the session that wants to: as what it acts is decided by SET ROLE, and what a
 * membership is worth by INHERIT. In a transaction, and in the midst of a sequence, the session's
 * own link is asked: what is refused fails there, and the server undoes what it has to. Else it is
 * asked on a link that is borrowed for it. */
#include "config.h"

#include <stdio.h>

#include "admin/kill.h"
#include "base/mem.h"
#include "config/pools_conf.h"
#include "wire/errmsg.h"
#include "wire/reader.h"
#include "wire/writer.h"

#include "sstate_int.h"
#include "exchange/exchange_kill_int.h"
#include "leg/leg_int.h"
#include "sstate/phase_int.h"

enum kill_state {
    KILL_OWED, /* there is no link yet, or its settings come first */
    KILL_ASKED,
    KILL_GRANTED
};

struct exchange_kill {
    struct admin_kill order;
    enum kill_state state;
    bool is_granted;
    char user[ROWS_NAME_BYTES];
    struct err refusal;
};

void exchange_kill_forget(struct client *c)
{
    if (c->kind->errand(c) == NULL)
        return;
    mem_free(c->sstate->errand->kill);
    c->sstate->errand->kill = NULL;
}

/* Asks. In the midst of a sequence a Query would commit what was done before, so it is none. */
static void ask(struct client *c, enum phase phase)
{
    static const uint16_t op[] = {
        OP_CLOSE, OP_PARSE, OP_BIND, OP_EXECUTE | OP_ROWS, OP_CLOSE, OP_CLOSE};
    struct exchange_kill *q = c->sstate->errand->kill;
    struct buf out = {0};
    size_t i;

    c->link->must_clean = c->link->must_clean || link_own_failed(c->link);
    link_forget_failure(c->link);
    admin_kill_put_question(slice_of_str(q->user), &out);
    for (i = 0; i < sizeof op / sizeof op[0]; i++)
        link_expect(c->link, op[i] | (unsigned)OP_SWALLOW);
    if (c->server_batch) {
        wire_put_empty(&out, FE_FLUSH);
    } else {
        wire_put_empty(&out, FE_SYNC);
        link_expect(c->link, OP_SYNC | OP_SWALLOW);
    }
    q->state = KILL_ASKED;
    phase_goto(c, phase);
    (void)link_send(c->link, out.data, out.len);
    buf_free(&out);
}

bool exchange_kill_ask_owed(struct client *c)
{
    struct exchange_kill *q = c->sstate->errand->kill;

    if (q == NULL || q->state != KILL_OWED)
        return false;
    ask(c, PHASE_JUDGING);
    return true;
}

/* Asks on a link that is borrowed for that, as what follows may go elsewhere. */
static void borrow_and_ask(struct client *c)
{
    struct feed_run run = {0};
    int node = sstate_write_node(c);
    enum feed_step step;

    if (node == VIEW_NO_NODE || (node < POOLS_FIRST_TARGET && sessions_must_hold_writes(c->ss)))
        step = leg_wait_for_primary(c);
    else
        step = leg_attach(c, node, true);
    if (step != FEED_PASS)
        return;
    step = lent_put_settings(c, &run, PHASE_ASK_SYNCING);
    feed_flush(c, &run);
    if (step == FEED_PASS)
        ask(c, PHASE_JUDGING);
}

bool exchange_kill_may(struct client *c, const struct admin_kill *k, struct slice user)
{
    struct errand *t = c->sstate->errand;

    if (t->kill != NULL && t->kill->state == KILL_GRANTED && t->kill->order.pid == k->pid) {
        exchange_kill_forget(c);
        return true;
    }
    if (t->kill == NULL || t->kill->state != KILL_OWED) {
        exchange_kill_forget(c);
        t->kill = mem_alloc_zero(sizeof *t->kill);
        t->kill->order = *k;
        snprintf(t->kill->user, sizeof t->kill->user, "%.*s", (int)user.n, user.p);
    }
    if (c->sstate->phase == PHASE_ATTACHED)
        ask(c, PHASE_JUDGING_OWN);
    else
        borrow_and_ask(c);
    return false;
}

bool exchange_kill_is_asking(const struct client *c)
{
    return c->kind->errand(c) != NULL && c->sstate->errand->kill != NULL;
}

void exchange_kill_on_error(struct client *c, const struct errmsg *m)
{
    struct exchange_kill *q = c->sstate->errand->kill;
    struct slice version = paramset_get(&c->link->reported, slice_of_str("server_version"));

    if (err_is_set(&q->refusal) || admin_kill_refused(&q->order, m, version, &q->refusal))
        return;
    errmsg_to_err(m, &q->refusal);
    q->refusal.severity = ERR_ERROR;
}

void exchange_kill_on_row(struct client *c, struct slice body)
{
    struct slice value;

    c->sstate->errand->kill->is_granted =
        wire_row_values(body, &value, 1) && slice_eq_str(value, "t");
}

/* The link stays the client's, in a transaction that has failed if it was in one. */
static void own_failed(struct client *c)
{
    struct link *link = c->link;

    link->must_clean = link->must_clean || link->tx_status != 'I' || c->server_batch;
    c->sstate->exchange.saw_error = c->sstate->exchange.saw_error || c->server_batch;
    link_forget_failure(link);
}

void exchange_kill_asked(struct client *c)
{
    struct sstate *s = c->sstate;
    struct exchange_kill *q = s->errand->kill;
    bool failed = link_own_failed(c->link);
    bool is_granted = q->is_granted && !failed;
    bool is_own = s->phase == PHASE_JUDGING_OWN;
    bool was_cancelled;
    struct err why = q->refusal;

    err_set(&why, "XX000", "internal error: a question of pgpool's own has no answer");
    if (failed && is_own)
        own_failed(c);
    else if (failed)
        link_forget_failure(c->link);
    q->state = KILL_GRANTED;
    phase_goto(c, PHASE_ATTACHED);
    if (!is_own) {
        s->loan.is_fresh = true;
        leg_detach(c);
    }
    was_cancelled = s->errand->is_cancelled;
    if (was_cancelled)
        follow_cancel_parked(c);
    else if (!is_granted)
        follow_fail_parked(c, &why);
    else
        client_unpark(c);
}
