/* SPDX-License-Identifier: PostgreSQL
 * exchange_judge.c: may this session do what it wants, which is to end or cancel another client?
 * Runs in: workers. That is the server's to say, in the session that wants to: as what it acts is
 * decided by SET ROLE, and what a membership is worth by INHERIT. In a transaction, and in the
 * midst of a sequence, the session's own link is asked: what is refused fails there, and the server
 * undoes what it has to. Else it is asked on a link that is borrowed for it. The question, and what
 * its answer means, are the console's (session/answering.h). */
#include "config.h"

#include "config/pools_conf.h"
#include "wire/writer.h"

#include "sstate_int.h"
#include "exchange/exchange_judge_int.h"
#include "leg/leg_int.h"
#include "sstate/phase_int.h"

enum judged client_judged(struct client *c)
{
    if (!c->kind->orders(c))
        return JUDGED_NEVER;
    return c->kind->errand(c) == NULL ? JUDGED_NOT : (enum judged)c->sstate->errand->judged;
}

void client_judge_forget(struct client *c)
{
    if (c->kind->errand(c) != NULL && !phase_is_judging((enum phase)c->sstate->phase))
        sstate_judge_end(c); /* else its answer is on its way */
}

/* Asks. In the midst of a sequence a Query would commit what was done before, so it is none. */
static void ask(struct client *c, enum phase phase)
{
    static const uint16_t op[] = {
        OP_CLOSE, OP_PARSE, OP_BIND, OP_EXECUTE | OP_ROWS, OP_CLOSE, OP_CLOSE};
    struct buf out = {0};
    size_t i;

    c->link->must_clean = c->link->must_clean || link_own_failed(c->link);
    link_forget_failure(c->link);
    c->ss->console->question(c, &out);
    for (i = 0; i < sizeof op / sizeof op[0]; i++)
        link_expect(c->link, op[i] | (unsigned)OP_SWALLOW);
    if (c->server_batch) {
        wire_put_empty(&out, FE_FLUSH);
    } else {
        wire_put_empty(&out, FE_SYNC);
        link_expect(c->link, OP_SYNC | OP_SWALLOW);
    }
    c->sstate->errand->judged = JUDGED_ASKED;
    phase_goto(c, phase);
    (void)link_send(c->link, out.data, out.len);
    buf_free(&out);
}

bool exchange_judge_ask_owed(struct client *c)
{
    if (c->sstate->errand->judged != JUDGED_OWED)
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

void client_judge(struct client *c)
{
    c->sstate->errand->judged = JUDGED_OWED;
    if (c->sstate->phase == PHASE_ATTACHED)
        ask(c, PHASE_JUDGING_OWN);
    else
        borrow_and_ask(c);
}

/* The link stays the client's, in a transaction that has failed if it was in one. */
static void own_failed(struct client *c)
{
    struct link *link = c->link;

    link->must_clean = link->must_clean || link->tx_status != 'I' || c->server_batch;
    c->sstate->exchange.saw_error = c->sstate->exchange.saw_error || c->server_batch;
    link_forget_failure(link);
}

void exchange_judged(struct client *c)
{
    struct sstate *s = c->sstate;
    bool has_failed = link_own_failed(c->link);
    bool is_own = s->phase == PHASE_JUDGING_OWN;
    struct err why;
    bool may = c->ss->console->judged(c, has_failed, &why);

    if (has_failed && is_own)
        own_failed(c);
    else if (has_failed)
        link_forget_failure(c->link);
    s->errand->judged = JUDGED_MAY;
    phase_goto(c, PHASE_ATTACHED);
    if (!is_own) {
        s->loan.is_fresh = true;
        leg_detach(c);
    }
    if (s->errand->is_cancelled)
        follow_cancel_parked(c);
    else if (!may)
        follow_fail_parked(c, &why);
    else
        client_unpark(c);
}
