/* SPDX-License-Identifier: PostgreSQL
 * exchange_begin.c: an exchange of a followed client begins: which node, whose link. Runs in:
 * workers. In a transaction, or while the session is tied, the link is there; else one is borrowed
 * from the node that the router names. */
#include "config.h"

#include <string.h>

#include "base/hot.h"
#include "base/log.h"
#include "config/conf.h"
#include "config/pools_conf.h"
#include "wire/batch.h"
#include "wire/writer.h"

#include "sstate_int.h"
#include "follow/follow_columns_int.h"
#include "leg/leg_int.h"
#include "sstate/phase_int.h"

/* How long a transaction that asks something waits for a link to be opened for that. */
#define ASK_OPENS_US 500000

/* Settings of the client in front of a question: names have to mean what they mean to it. */
static enum feed_step put_settings(struct client *c, const struct plan_choice *p)
{
    struct feed_run run = {0};
    enum feed_step step = lent_put_settings(c, &run, PHASE_ASK_SYNCING);

    feed_flush(c, &run);
    c->sstate->loan.is_fresh = true;
    if (step != FEED_PASS && p->asks == PLAN_ASKS_CATALOGUE)
        plan_ask_later(c, &p->route);
    return step;
}

static void put_question(struct client *c, const struct plan_choice *p)
{
    phase_goto(c, PHASE_ASKING);
    switch (p->asks) {
    case PLAN_ASKS_CATALOGUE:
        plan_ask(c, c->link, &p->route);
        break;
    case PLAN_ASKS_KEPT:
        plan_ask(c, c->link, NULL);
        break;
    case PLAN_ASKS_WRITTEN:
        plan_ask_lsn(c);
        break;
    case PLAN_ASKS_REPLAYED:
        plan_ask_replay(c, p->route.wait_lsn);
        break;
    case PLAN_ASKS_LATER:
        break;
    }
}

/* A question needs a link for a moment. In a transaction that has one it is another one; who cannot
 * have that at once is not kept waiting (would_queue), and what was to be asked is asked when the
 * transaction is over. */
static enum feed_step ask(struct client *c, const struct plan_choice *p)
{
    bool is_of_names = p->asks == PLAN_ASKS_CATALOGUE || p->asks == PLAN_ASKS_KEPT;
    enum feed_step step;

    if (p->asks == PLAN_ASKS_CATALOGUE && c->sstate->errand->home != NULL)
        plan_ask_later(c, &p->route);
    step = leg_attach(c, p->node, true);
    if (step == FEED_PASS && is_of_names && c->link->vars != c->sstate->vars.client)
        step = put_settings(c, p);
    if (step != FEED_PASS)
        return step;
    put_question(c, p);
    return FEED_PARK;
}

/* FEED_PASS: nothing has to be asked or waited for. */
static enum feed_step see_verdict(struct client *c, const struct plan_choice *p)
{
    switch (p->verdict) {
    case PLAN_ASK:
        return ask(c, p);
    case PLAN_WAIT:
        return leg_wait_for_primary(c);
    case PLAN_GO:
        break;
    }
    return FEED_PASS;
}

bool exchange_asks_first(struct client *c, struct slice sql)
{
    struct plan_choice p;
    struct plan_case in;
    enum feed_step step = FEED_PASS;

    if (c->sstate->phase <= PHASE_WAITING && c->sstate->errand->home == NULL) {
        plan_case_of(c, &in);
        plan_query(&in, sql, plan_facts(c->ss, sql), &p);
        step = see_verdict(c, &p);
    }
    if (step == FEED_PASS)
        lent_stop_asking(c);
    return step != FEED_PASS;
}

/* Carries out what was chosen, as far as it is to be known before there is a link. */
static enum feed_step take_choice(struct client *c, const struct plan_choice *p, int *node)
{
    struct sstate *s = c->sstate;
    enum feed_step step;

    if ((p->retry & PLAN_RETRY_READ) == 0)
        s->again.retry = AGAIN_NEVER;
    else
        s->again.retry = p->way >= PLAN_READS ? AGAIN_ANYWHERE : AGAIN_IF_ROUTED;
    s->again.may_replan = (p->retry & PLAN_RETRY_REPLAN) != 0;
    s->errand->place = p->way == PLAN_LEAVES ? PLACE_OUT : PLACE_HOME;
    s->errand->sending = p->is_cut ? SENDING_CUT : SENDING_AS_IT_COMES;
    s->errand->kept_len = 0;
    *node = p->way >= PLAN_READS ? p->node : exchange_node_of_write(c, p->node);
    step = see_verdict(c, p);
    if (step != FEED_PASS || c->kind->judge == NULL)
        return step;
    plan_ask_reset(c->plan);
    s->errand->leave.snapshot = p->snapshot & 3U;
    if (p->asks == PLAN_ASKS_LATER)
        plan_ask_later(c, &p->route);
    if (p->way == PLAN_WRITES)
        plan_note_write(c, &p->route);
    return FEED_PASS;
}

/* The node for a simple query. */
WARM static enum feed_step choose(
    struct client *c, struct slice sql, const struct sql_facts **facts, int *node)
{
    struct plan_choice p;
    struct plan_case in;

    plan_case_of(c, &in);
    in.may_replan = *facts != NULL && follow_sql_executes(c, *facts) != NULL;
    plan_query(&in, sql, *facts, &p);
    *facts = p.facts;
    return take_choice(c, &p, node);
}

/* May the exchange go on the link that is there? FEED_PARK: not yet. */
static enum feed_step on_present_link(struct client *c, bool is_alone)
{
    const struct sstate *s = c->sstate;
    bool is_lost = s->phase == PHASE_ATTACHED && expect_is_stuck(&c->link->expect);

    if (s->phase != PHASE_ATTACHED)
        return FEED_PARK;
    if (expect_is_quiet(&c->link->expect) || expect_is_copying(&c->link->expect))
        return FEED_PASS; /* in a COPY the server itself judges what does not belong there */
    if (c->link->expect.is_held)
        return FEED_PARK; /* it would have two ends in one */
    if (is_alone || s->exchange.hold != EXCHANGE_FLOWS || s->again.retry != AGAIN_NEVER ||
        s->errand->place == PLACE_OUT || s->again.what != AGAIN_NO ||
        (c->link->expect.holds && !is_lost) || !loan_is_sure(&s->loan) ||
        (s->tx == SSTATE_TX_BEGUN && s->exchange.words == EXCHANGE_RECOVERS) ||
        s->errand->way.nuncertain > 0 || s->errand->way.npending >= NAMES_MAX_PENDING ||
        c->link->pool->cluster_node != c->pool->cluster_node) {
        if (!is_lost)
            return FEED_PARK; /* what runs is not mixed with this */
        /* The client would wait for ever: nobody knows what is owed. */
        client_end_text(c, "08P01", "a COPY failed that messages of another kind had been sent to");
        return FEED_STOP;
    }
    leg_stop_keeping(c);
    return FEED_PASS;
}

HOT enum feed_step exchange_get_link(struct client *c, struct feed_run *run, int node)
{
    enum feed_step step;

    if (node == VIEW_NO_NODE)
        return leg_wait_for_primary(c);
    step = leg_attach(c, node, false);
    return step == FEED_PASS ? leg_make_ready(c, run) : step;
}

/* A session that is tied to its link, between transactions: what is sent next can be sent again
 * there with a new plan, as long as all of its statements are known. */
WARM static bool may_replan_tied(const struct client *c)
{
    static const uint32_t not_known = ROWS_PIN(PIN_REASON_UNKNOWN) | ROWS_PIN(PIN_REASON_PREPARED) |
                                      ROWS_PIN(PIN_REASON_SESSION_MODE);
    const struct sstate *s = c->sstate;

    return s->pins != 0 && (s->pins & not_known) == 0 && c->link->tx_status == 'I' &&
           expect_is_quiet(&c->link->expect) && s->tx != SSTATE_TX_BEGUN && !c->server_batch;
}

static void keep_tied(struct client *c, struct slice msgs)
{
    c->sstate->again.retry = AGAIN_NEVER;
    leg_keep(c, c->sstate->again.may_replan ? msgs : slice_of(NULL, 0));
}

/* The rest of an incomplete message goes on as it comes, so it is not kept. */
static struct slice whole_or_none(struct slice msg)
{
    return msg.n == message_bytes(msg.p) ? msg : slice_of(NULL, 0);
}

/* Goes on, on the link that is there, where the transaction may have to learn that it has read. */
WARM static enum feed_step go_on(struct client *c, struct feed_run *run, bool is_alone)
{
    struct errand *t = c->sstate->errand;
    enum feed_step step = on_present_link(c, is_alone);

    if (step != FEED_PASS)
        return step;
    if (t->leave.snapshot != PLAN_SNAPSHOT_DUE || t->place == PLACE_OUT || c->sstate->loan.is_fresh)
        return FEED_PASS;
    lent_put_own_query(c, run, slice_of_str("SELECT"));
    t->leave.snapshot = PLAN_SNAPSHOT_NONE;
    return FEED_PASS;
}

/* The home was set aside for nothing: what was looked at stays. */
static bool comes_back(struct client *c)
{
    if (c->sstate->errand->home == NULL || c->sstate->errand->place == PLACE_OUT)
        return false;
    plan_aside_come_back(c);
    return true;
}

/* What a question needs is being opened: that is a matter of milliseconds, and happens once. */
static bool is_coming(struct client *c)
{
    struct errand *t = c->sstate->errand;
    int64_t now_us = loop_now_us(c->ss->loop);

    if (c->sstate->phase != PHASE_ASK_WAITING || t->wait->req.reason != WAIT_REASON_CONNECTING)
        return false;
    if (t->ask_until_us == 0)
        t->ask_until_us = now_us + ASK_OPENS_US;
    return now_us < t->ask_until_us;
}

/* A read of a transaction that holds locks does not wait for others to give back a link, nor does
 * what is asked for its sake. */
static bool would_queue(struct client *c, enum feed_step step)
{
    struct errand *t = c->sstate->errand;

    if (step != FEED_PARK || t->home == NULL || plan_aside_is_standby(c) ||
        !phase_is_waiting((enum phase)c->sstate->phase) || is_coming(c))
        return false;
    plan_aside_come_back(c);
    t->place = PLACE_STAYS;
    return true;
}

static bool leaves_home(struct client *c, struct slice sql, const struct sql_facts **facts)
{
    bool lacks;

    if (plan_aside_may(c))
        return true;
    if (c->sstate->phase != PHASE_ATTACHED || c->link->pool->cluster_node == c->pool->cluster_node)
        return false;
    lacks = c->kind->lacks(c, sql);
    *facts = plan_facts(c->ss, sql);
    return lacks;
}

/* A query on the link that is there. */
WARM static enum feed_step go_on_with_query(struct client *c, struct feed_run *run,
    struct slice msg, const struct sql_facts *facts, bool is_alone)
{
    enum feed_step step = go_on(c, run, is_alone);
    bool is_fresh = step == FEED_PASS && c->sstate->loan.is_fresh; /* chosen for, and had to wait */

    if (step == FEED_PASS)
        step = leg_make_ready(c, run);
    if (step != FEED_PASS)
        return step;
    if (is_fresh) {
        leg_keep(c, whole_or_none(msg));
    } else if (may_replan_tied(c)) {
        c->sstate->again.may_replan = facts != NULL && follow_sql_executes(c, facts) != NULL;
        keep_tied(c, whole_or_none(msg));
    }
    if (facts != NULL && route_begins_tx(facts))
        follow_sql_load(c, run);
    return FEED_PASS;
}

WARM enum feed_step exchange_begin_query(struct client *c, struct feed_run *run, struct slice sql,
    struct slice msg, const struct sql_facts **facts, bool is_alone)
{
    struct sstate *s = c->sstate;
    enum feed_step step;
    int node;

    if (!s->is_counted)
        client_stats_on_query(c);
    s->is_counted = true;
    if (*facts != NULL && leaves_home(c, sql, facts))
        plan_aside_set(c);
    if (s->phase <= PHASE_WAITING) {
        step = choose(c, sql, facts, &node);
        if (step != FEED_PASS || !comes_back(c)) {
            if (step == FEED_PASS)
                step = exchange_get_link(c, run, node);
            if (would_queue(c, step))
                return exchange_begin_query(c, run, sql, msg, facts, is_alone);
            if (c->kind->chosen(c, step) != FEED_PASS)
                return step;
            leg_keep(c, whole_or_none(msg));
            if (*facts != NULL && route_begins_tx(*facts))
                follow_sql_load(c, run); /* should one fail, the transaction is not to */
            return FEED_PASS;
        }
    }
    step = go_on_with_query(c, run, msg, *facts, is_alone);
    return step == FEED_STOP ? step : c->kind->chosen(c, step); /* who has gone has no kind */
}

/* The node for a sequence, and how much of it is kept. */
static enum feed_step choose_for_batch(
    struct client *c, const char *p, const char *end, int *node, struct slice *kept)
{
    struct plan_choice choice;
    struct plan_case in;
    const char *sync = end;
    bool is_closed = false;

    plan_case_of(c, &in);
    in.may_replan = in.tx != PLAN_TX_LOST && follow_may_replan(c, p, &sync, &is_closed);
    plan_batch(&in, p, end, &choice);
    if (choice.kept > 0)
        *kept = slice_of(p, choice.kept);
    else if (is_closed)
        *kept = slice_of(p, (size_t)(sync - p));
    return take_choice(c, &choice, node);
}

/* The unnamed portal that the client has in mind was another link's, and is gone: the home must not
 * answer with an older one. */
static void close_older_portal(struct client *c, struct feed_run *run)
{
    struct buf out = {0};

    c->sstate->errand->leave.portal_left = false;
    wire_put_close(&out, 'P', slice_of("", 0));
    link_expect(c->link, OP_CLOSE | OP_SWALLOW);
    feed_put(run, out.data, out.len);
    buf_free(&out);
}

/* A sequence on the link that is there. */
static enum feed_step go_on_with_batch(
    struct client *c, struct feed_run *run, const char *p, const char *end)
{
    enum feed_step step = go_on(c, run, follow_names_go_last(c, p, end));
    bool is_fresh = step == FEED_PASS && c->sstate->loan.is_fresh;
    const char *sync = end;
    bool is_closed = false;

    if (step == FEED_STOP)
        return step; /* the session has ended with it */
    if (step == FEED_PASS)
        step = leg_make_ready(c, run);
    if (step == FEED_PASS && !is_fresh && follow_columns_ask_first(c, run))
        step = FEED_PARK;
    if (c->kind->chosen(c, step) == FEED_PASS && is_fresh) {
        leg_keep(c, slice_of(p, c->sstate->errand->kept_len));
    } else if (step == FEED_PASS && may_replan_tied(c)) {
        c->sstate->again.may_replan = follow_may_replan(c, p, &sync, &is_closed);
        keep_tied(c, slice_of(p, (size_t)(sync - p)));
    }
    if (step == FEED_PASS && c->sstate->errand->leave.portal_left &&
        c->sstate->errand->home == NULL)
        close_older_portal(c, run);
    return step;
}

/* The sequence is one statement, which reads what its standby lacks. */
static bool lone_lacks(struct client *c, const char *p, const char *end)
{
    struct batch_lone sent;
    struct names_entry *n;

    if (c->sstate->phase != PHASE_ATTACHED ||
        c->link->pool->cluster_node == c->pool->cluster_node || !batch_lone_read(&sent, p, end) ||
        !sent.syncs)
        return false;
    if (sent.parse.p != NULL)
        return c->kind->lacks(c, sent.sql);
    n = names_find(&c->sstate->names, sent.name);
    return n != NULL && n->prep != NULL && c->kind->lacks(c, prep_sql(n->prep));
}

static enum feed_step begin_batch(
    struct client *c, struct feed_run *run, const char *p, const char *end)
{
    struct slice kept = slice_of(NULL, 0);
    enum feed_step step = FEED_PASS;
    bool is_elsewhere = false;
    int node;

    c->sstate->again.is_behind =
        c->sstate->phase == PHASE_ATTACHED && !expect_is_quiet(&c->link->expect);
    if (plan_aside_may(c) || lone_lacks(c, p, end))
        plan_aside_set(c);
    if (c->sstate->phase <= PHASE_WAITING) {
        step = choose_for_batch(c, p, end, &node, &kept);
        c->sstate->errand->kept_len = (uint32_t)kept.n;
        is_elsewhere = step != FEED_PASS || !comes_back(c);
    }
    if (is_elsewhere) {
        if (step == FEED_PASS)
            step = exchange_get_link(c, run, node);
        if (would_queue(c, step))
            return begin_batch(c, run, p, end);
        if (c->kind->chosen(c, step) == FEED_PASS)
            leg_keep(c, kept);
    } else {
        step = go_on_with_batch(c, run, p, end);
    }
    if (step == FEED_PASS)
        follow_sql_load(c, run);
    return step;
}

/* Messages come one by one: the first is taken, the others are left. */
static enum feed_step cached_sequence(struct client *c, const char *p, const char *end)
{
    const char *whole;
    enum feed_step step = c->ss->results->batch(c, p, end, &whole);
    struct batch_msg m;

    if (step == FEED_LOCAL && batch_next(&p, end, &m))
        while (p < whole && batch_next(&p, end, &m))
            c->sstate->errand->nskip++;
    return step;
}

enum feed_step exchange_begin_batch(
    struct client *c, struct feed_run *run, const char *p, const char *end)
{
    enum feed_step step = FEED_AGAIN;

    if (c->ss->results != NULL)
        step = cached_sequence(c, p, end);
    if (step != FEED_AGAIN)
        return step;
    c->sstate->errand->bound_first = follow_columns_first(c, p, end);
    step = begin_batch(c, run, p, end);
    c->sstate->errand->bound_first = NULL;
    return step;
}
