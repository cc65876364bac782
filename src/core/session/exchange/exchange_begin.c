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
#include "route/route_oracle.h"
#include "wire/batch.h"
#include "wire/writer.h"

#include "sstate_int.h"
#include "follow/follow_columns_int.h"
#include "leg/leg_int.h"
#include "sstate/phase_int.h"

/* So long a transaction waits for a link to be opened that asks for it. */
#define ASK_OPENS_US 500000
/* A sequence longer than this is not looked through. */
#define BATCH_LOOK_MAX 64

/* Borrows a link for `d`; NULL: for the questions that are kept. */
static enum feed_step ask_at(struct client *c, int node, const struct route_decision *d)
{
    struct sstate *s = c->sstate;
    enum feed_step step;

    step = leg_attach_to_ask(c, node);
    if (step != FEED_PASS)
        return step;
    if (c->link->vars != s->vars.client) {
        /* Names have to mean what they mean to the client: the settings first. */
        struct feed_run run = {0};

        step = lent_put_settings(c, &run, PHASE_ASK_SYNCING);
        feed_flush(c, &run);
        s->loan.is_fresh = true;
        if (step != FEED_PASS) {
            if (d != NULL)
                plan_ask_later(c, d);
            return step;
        }
    }
    phase_goto(c, PHASE_ASKING);
    plan_ask(c, c->link, d);
    return FEED_PARK;
}

/* Questions about the catalogue need a link for a moment. In a transaction that has one it is
 * another one, of the server where the transaction lives; who cannot have that at once is not kept
 * waiting (would_queue), and what was to be asked is asked when the transaction is over. */
static enum feed_step ask(struct client *c, const struct route_decision *d)
{
    const struct link *home = c->sstate->errand->home;

    if (home == NULL)
        return ask_at(c, plan_ask_node(c, d, sstate_write_node(c)), d);
    plan_ask_later(c, d);
    return ask_at(c, home->pool->cluster_node, d);
}

/* A transaction that has its link lets its reads leave it, and what keeps this one is only that
 * something is not known yet: of what it names, or the isolation level of who says none. Who was
 * let in by the server alone has no second link there. */
static bool may_ask_from_home(const struct client *c, const struct route_decision *d)
{
    const struct link *home = c->sstate->errand->home;

    return home != NULL && home->pool == c->pool && c->sstate->errand->leave.may_go_out &&
           (d->reason == ROUTE_R_ASK || d->reason == ROUTE_R_TX_PRIMARY) &&
           client_may_reuse(c, c->pool);
}

/* What the router says of one text. */
WARM static enum feed_step route_one(
    struct client *c, struct slice sql, struct route_decision *d, const struct sql_facts **facts)
{
    struct plan *b = c->plan;
    struct route_decision missing;

    b->tx_status = sstate_tx_status(c);
    *facts = plan_decide(c, sql, d);
    if (d->must_ask && !b->ask_failed &&
        (b->tx_status == 'I' || c->sstate->tx == SSTATE_TX_VIRTUAL || may_ask_from_home(c, d)))
        return ask(c, d);
    if (d->must_ask && c->sstate->errand->home != NULL)
        plan_ask_later(c, d);
    if ((b->tx_status == 'I' || c->sstate->tx == SSTATE_TX_VIRTUAL) &&
        plan_lacks_marks(c, *facts, &missing))
        return ask(c, &missing);
    return FEED_PASS;
}

/* A read, or what begins a transaction that only reads: the router names the primary for all else.
 */
WARM static bool is_decided_read(const struct client *c, const struct route_decision *d)
{
    return !d->must_ask && !c->plan->wait_is_over && conf_has_node(c->ss->conf, d->node) &&
           (d->class == ROUTE_EITHER ||
               (d->class != ROUTE_PRIMARY && d->node != c->pool->cluster_node));
}

static bool may_leave(const struct client *c, const struct route_decision *d)
{
    return is_decided_read(c, d) && !d->must_wait;
}

/* While there is no primary a standby stands in for it, which may lack what the session wrote. */
static bool stand_in_lacks(const struct client *c, int node)
{
    const struct view *v = &c->ss->view;

    return v->primary != node && view_must_hold_writes(v) &&
           c->ss->conf->read_consistency != CONF_READ_EVENTUAL &&
           (plan_is_lsn_due(c) ||
               plan_worker_replayed_lsn(c->ss)[node] < c->plan->rs.last_write_lsn);
}

/* read_consistency: a read that goes to a standby has to know how far the primary has written, and
 * the standby how far it has replayed. Both are asked on links that are borrowed for it. */
WARM static enum feed_step see_enough(struct client *c, const struct route_decision *d)
{
    bool is_due = plan_is_lsn_due(c);
    enum feed_step step;
    int primary;

    if (c->sstate->errand->home != NULL)
        return FEED_PASS; /* what had to be asked would not leave */
    primary = sstate_write_node(c);

    if (!is_decided_read(c, d))
        return FEED_PASS;
    if ((d->node == primary || sstate_is_avoided(c, d->node)) && primary != VIEW_NO_NODE)
        return stand_in_lacks(c, primary) ? leg_wait_for_primary(c) : FEED_PASS;
    if (sstate_is_avoided(c, d->node) || (!is_due && !d->must_wait))
        return FEED_PASS;
    if (is_due && (primary == VIEW_NO_NODE || view_must_hold_writes(&c->ss->view)))
        return leg_wait_for_primary(c);
    step = leg_attach_to_ask(c, is_due ? primary : d->node);
    if (step != FEED_PASS)
        return step;
    phase_goto(c, PHASE_ASKING);
    if (is_due)
        plan_ask_lsn(c);
    else
        plan_ask_replay(c, d->wait_lsn);
    return FEED_PARK;
}

enum feed_step exchange_ask_first(struct client *c, struct slice sql, struct route_decision *d)
{
    struct sstate *s = c->sstate;
    enum feed_step step = FEED_PASS;

    if (s->phase <= PHASE_WAITING && (sstate_tx_status(c) == 'I' || s->tx == SSTATE_TX_VIRTUAL)) {
        if (d->must_ask && !c->plan->ask_failed)
            return ask(c, d);
        (void)plan_away_may(c, sql, d);
        step = see_enough(c, d);
    }
    if (step == FEED_PASS)
        lent_stop_asking(c);
    return step;
}

/* May a read be made again that names what may be a view? */
static enum feed_step ask_unsure(struct client *c)
{
    int node = sstate_write_node(c);

    if (node == VIEW_NO_NODE || sessions_must_hold_writes(c->ss))
        return leg_wait_for_primary(c);
    return ask_at(c, node, NULL);
}

static void begin_choice(struct sstate *s)
{
    s->again.is_read = false;
    s->errand->place = PLACE_HOME;
    s->errand->is_cut = false;
    s->errand->kept_len = 0;
}

/* A read goes to `to`, unless that has just failed. In a transaction it has then left it
 * (`is_out`), or the transaction begins with it: one that may write, where writes go, also while
 * there is no primary and something else stands in for it. */
static void choose_read(struct client *c, int to, bool is_out, int *node)
{
    struct sstate *s = c->sstate;

    if (!is_out && s->tx == SSTATE_TX_VIRTUAL && !c->plan->rs.tx_read_only &&
        view_must_hold_writes(&c->ss->view)) {
        s->again.may_retry = false;
        return;
    }
    if (sstate_is_avoided(c, to))
        is_out = false;
    else
        *node = to;
    s->again.is_read = true;
    s->errand->place = is_out ? PLACE_OUT : PLACE_HOME;
    s->again.may_retry = is_out || !plan_away_is_possible(c);
}

/* In session mode a transaction of a session that is tied lives where its temporary tables, cursors
 * and locks are: what follows in it may name them. Reads by themselves are judged by what they
 * name.
 */
static bool stays_for_ties(const struct client *c, bool is_alone)
{
    const struct sstate *s = c->sstate;

    return lent_keeps(s) && s->pins != 0 && !is_alone;
}

/* Where the transaction lives, or will. */
static int home_node(struct client *c)
{
    const struct link *home = c->sstate->errand->home;

    return home != NULL ? home->pool->cluster_node : sstate_write_node(c);
}

static bool ends_process(const struct client *c, const struct route_decision *d)
{
    return d->reason == ROUTE_R_BACKEND_PID && conf_has_node(c->ss->conf, d->node) &&
           c->sstate->tx != SSTATE_TX_VIRTUAL && c->sstate->errand->home == NULL;
}

/* Where the router wants it, when that may be; else where the transaction lives, or writes go. */
WARM static void follow_route(struct client *c, const struct sql_facts *facts,
    const struct route_decision *d, bool is_out, int *node)
{
    struct sstate *s = c->sstate;
    bool is_read = d->class == ROUTE_EITHER && s->tx != SSTATE_TX_VIRTUAL;

    if (ends_process(c, d)) {
        *node = d->node; /* where the process is that it ends */
        s->again.is_read = true;
        return;
    }
    if ((is_read && !d->must_ask && s->errand->home == NULL) || d->reason == ROUTE_R_VOLATILE_VIEW)
        s->again.may_retry = is_read; /* what it calls is known to change nothing; a view may */
    if (may_leave(c, d) && !stays_for_ties(c, is_out || is_read)) {
        choose_read(c, d->node, is_out, node);
        if (s->errand->place == PLACE_OUT)
            plan_away_note(c, facts);
        return;
    }
    plan_away_ends(c, facts);
    plan_note_write(c, d);
}

WARM enum feed_step exchange_choose(
    struct client *c, struct slice sql, const struct sql_facts **facts, int *node)
{
    struct sstate *s = c->sstate;
    struct route_decision d;
    enum feed_step step = route_one(c, sql, &d, facts);
    bool is_out;

    if (step != FEED_PASS)
        return step;
    is_out = plan_away_may(c, sql, &d);
    if (s->errand->home != NULL && !is_out) {
        plan_ask_reset(c->plan);
        plan_away_ends(c, *facts);
        return FEED_PASS;
    }
    step = see_enough(c, &d);
    if (step != FEED_PASS)
        return step;
    plan_ask_reset(c->plan);
    follow_route(c, *facts, &d, is_out, node);
    return FEED_PASS;
}

/* The node for a simple query. */
WARM static enum feed_step choose(
    struct client *c, struct slice sql, const struct sql_facts **facts, int *node)
{
    struct sstate *s = c->sstate;
    bool is_lost = sstate_tx_is_lost(s);

    *node = home_node(c);
    begin_choice(s);
    if (c->plan->nunsure > 0)
        return ask_unsure(c);
    if (plan_aside_is_standby(c)) {
        choose_read(c, sstate_write_node(c), true, node);
        s->again.may_retry = false; /* at home it can only fail */
        return FEED_PASS;
    }
    s->again.may_replan = !is_lost && *facts != NULL && follow_sql_executes(c, *facts) != NULL;
    s->again.may_retry =
        *facts != NULL && route_is_plain_read(*facts) && !plan_away_is_possible(c) && !is_lost;
    return *facts == NULL || is_lost ? FEED_PASS : c->kind->choose(c, sql, facts, node);
}

/* On the link that is there. FEED_PARK: not yet. */
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
    if (is_alone || s->exchange.hold || s->again.may_retry || s->errand->place == PLACE_OUT ||
        s->again.what != AGAIN_NO || (c->link->expect.holds && !is_lost) ||
        s->loan.doubt != LOAN_SURE || (s->loan.begun_here && s->exchange.recovered) ||
        s->errand->way.nuncertain > 0 || s->errand->way.npending >= NAMES_MAX_PENDING ||
        c->link->pool->cluster_node != c->pool->cluster_node) {
        if (!is_lost)
            return FEED_PARK; /* what runs is not mixed with this */
        /* It would wait for ever: nobody knows what is owed. */
        client_end_text(c, "08P01", "a COPY failed that messages of another kind had been sent to");
        return FEED_STOP;
    }
    leg_stop_keeping(c);
    return FEED_PASS;
}

HOT enum feed_step exchange_get_link(struct client *c, struct feed_run *run, int node)
{
    enum feed_step step;

    if (node == VIEW_NO_NODE || (!c->sstate->again.is_read && node == c->pool->cluster_node &&
                                    node < POOLS_FIRST_TARGET && sessions_must_hold_writes(c->ss)))
        return leg_wait_for_primary(c);
    step = leg_attach(c, node);
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
           expect_is_quiet(&c->link->expect) && !s->loan.begun_here && !c->server_batch;
}

static void keep_tied(struct client *c, struct slice msgs)
{
    struct sstate *s = c->sstate;

    s->again.reply_begun = s->again.may_retry = s->again.may_resend = false;
    s->again.may_replan = s->again.may_replan && msgs.n > 0 && msgs.n <= SSTATE_RETRY_MAX;
    buf_free(&s->errand->retry);
    if (s->again.may_replan)
        buf_put(&s->errand->retry, msgs.p, msgs.n);
}

/* Of an incomplete message the rest goes on as it comes, and is not kept. */
static struct slice whole_or_none(struct slice msg)
{
    return msg.n == message_bytes(msg.p) ? msg : slice_of(NULL, 0);
}

/* On the link that is there, where the transaction may have to learn that it has read. */
WARM static enum feed_step go_on(struct client *c, struct feed_run *run, bool is_alone)
{
    struct errand *t = c->sstate->errand;
    enum feed_step step = on_present_link(c, is_alone);

    if (step != FEED_PASS)
        return step;
    if (t->leave.needs_snapshot && t->place != PLACE_OUT && !c->sstate->loan.is_fresh)
        lent_put_own_query(c, run, slice_of_str("SELECT"));
    t->leave.needs_snapshot = t->leave.needs_snapshot && c->sstate->loan.is_fresh;
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

/* What a look ahead over a sequence found. */
struct batch_look {
    bool is_closed;
    bool has_execute;
    bool may_leave;
    bool is_out;          /* of a transaction that has not begun: all of it may leave */
    bool has_out;         /* some of the sequence may leave its transaction */
    bool is_bound;        /* Bind of the unnamed portal is in it */
    bool has_portal;      /* anything of a portal is */
    bool is_cut;          /* it prepares statements and ends with a Flush; its Sync is to come */
    struct slice unnamed; /* SQL of the Parse in this sequence */
    struct slice named;   /* the last name parsed in it */
    const char *end;
    int node;
};

static enum feed_step look_at_sql(struct client *c, struct slice sql, struct batch_look *look)
{
    const struct sql_facts *facts;
    struct route_decision d;
    enum feed_step step = route_one(c, sql, &d, &facts);

    if (step == FEED_PASS && plan_away_may(c, sql, &d)) {
        look->has_out = true;
        plan_away_note(c, facts);
    } else if (step == FEED_PASS && plan_away_is_possible(c)) {
        plan_away_ends(c, facts);
        look->is_out = false;
    }
    if (c->sstate->errand->home != NULL && !look->is_out)
        look->may_leave = false;
    if (step == FEED_PASS)
        step = see_enough(c, &d);
    if (step != FEED_PASS)
        return step;
    if (may_leave(c, &d))
        look->node = d.node;
    else
        look->may_leave = false;
    return FEED_PASS;
}

static enum feed_step look_at_bind(struct client *c, struct slice name, struct batch_look *look)
{
    struct names_entry *n;

    if (name.n == 0 ? look->unnamed.p != NULL : prep_is_same_name(name, look->named))
        return FEED_PASS; /* judged when it was parsed */
    if (name.n == 0 && c->sstate->names.unnamed != NULL)
        return look_at_sql(c, prep_sql(c->sstate->names.unnamed), look);
    n = names_find(&c->sstate->names, name);
    if (n != NULL && n->prep != NULL)
        return look_at_sql(c, prep_sql(n->prep), look);
    look->may_leave = false;
    return FEED_PASS;
}

/* One with a name outlives the sequence, and one that was not bound in it comes from another. */
static void look_at_portal(struct slice name, struct batch_look *look)
{
    look->has_portal = true;
    if (name.n > 0 || !look->is_bound)
        look->is_out = false;
}

/* In a transaction that has not begun what a portal or statement is has to be known. */
static enum feed_step look_at_describe(
    struct client *c, const struct batch_msg *m, struct batch_look *look)
{
    look->has_portal = look->has_portal || m->what != 'S';
    if (!plan_away_is_possible(c))
        return FEED_PASS;
    if (m->what == 'S')
        return look_at_bind(c, m->name, look);
    look_at_portal(m->portal, look);
    return FEED_PASS;
}

static enum feed_step look_at_message(
    struct client *c, const struct batch_msg *m, struct batch_look *look)
{
    if (m->is_bad) {
        look->may_leave = false;
        return FEED_PASS;
    }
    switch (m->type) {
    case FE_PARSE:
        if (m->name.n == 0)
            look->unnamed = m->sql;
        else
            look->named = m->name;
        return look_at_sql(c, m->sql, look);
    case FE_BIND:
        look->is_bound = true;
        look_at_portal(m->portal, look);
        return look_at_bind(c, m->name, look);
    case FE_EXECUTE:
        look->has_execute = true;
        look_at_portal(m->portal, look);
        look->is_out = look->is_out && m->max_rows == 0; /* it might be gone on with */
        return FEED_PASS;
    case FE_SYNC:
        look->is_closed = true;
        return FEED_PASS;
    case FE_DESCRIBE:
        return look_at_describe(c, m, look);
    default:
        look->may_leave = false;
        return FEED_PASS;
    }
}

static enum feed_step look_ahead(
    struct client *c, const char *p, const char *end, struct batch_look *look)
{
    struct batch_msg m;
    enum feed_step step;
    int n;

    look->may_leave = true;
    look->is_out = plan_away_is_possible(c);
    for (n = 0; n < BATCH_LOOK_MAX && batch_next(&p, end, &m); n++) {
        look->is_cut = m.type == FE_FLUSH && !m.is_bad && p == end && !look->has_portal;
        if (look->is_cut)
            break;
        step = look_at_message(c, &m, look);
        if (step != FEED_PASS)
            return step;
        look->end = p;
        if (look->is_closed || !look->may_leave)
            break;
    }
    look->may_leave = look->may_leave &&
                      (look->is_cut || (look->is_closed && (look->has_execute || look->is_out)));
    look->is_out = look->is_out && look->may_leave;
    return FEED_PASS;
}

enum feed_step exchange_choose_batch(
    struct client *c, const char *p, const char *end, int *node, struct slice *kept)
{
    struct sstate *s = c->sstate;
    struct batch_look look = {.node = VIEW_NO_NODE};
    enum feed_step step = look_ahead(c, p, end, &look);

    if (step != FEED_PASS)
        return step;
    plan_ask_reset(c->plan);
    if (!look.may_leave || look.node == VIEW_NO_NODE || (s->errand->home != NULL && !look.is_out))
        return FEED_PASS;
    if (stays_for_ties(c, look.is_out || s->tx != SSTATE_TX_VIRTUAL))
        return FEED_PASS;
    if (look.has_out && !look.is_out)
        look.node = *node;
    if (look.is_cut && (look.node == *node || sstate_is_avoided(c, look.node)))
        return FEED_PASS; /* a sequence on the primary ends with the client's Sync */
    s->errand->is_cut = look.is_cut;
    choose_read(c, look.node, look.is_out, node);
    *kept = slice_of(p, (size_t)((look.is_cut ? end : look.end) - p));
    return FEED_PASS;
}

/* The node for a sequence, and what may be done when it fails. */
static enum feed_step choose_for_batch(
    struct client *c, const char *p, const char *end, int *node, struct slice *kept)
{
    struct sstate *s = c->sstate;
    const char *sync = end;
    bool is_closed = false;

    *node = home_node(c);
    begin_choice(s);
    if (c->plan->nunsure > 0)
        return ask_unsure(c);
    if (plan_aside_is_standby(c)) {
        choose_read(c, sstate_write_node(c), true, node);
        s->again.may_retry = false;
        *kept = batch_to_sync(p, end, SSTATE_RETRY_MAX);
        return FEED_PASS;
    }
    s->again.may_retry = false;
    s->again.may_replan = !sstate_tx_is_lost(s) && follow_may_replan(c, p, &sync, &is_closed);
    if (is_closed)
        *kept = slice_of(p, (size_t)(sync - p));
    return sstate_tx_is_lost(s) ? FEED_PASS : c->kind->choose_batch(c, p, end, node, kept);
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

    memset(c->sstate->errand->described, 0, sizeof c->sstate->errand->described);
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

enum feed_step exchange_begin_batch(
    struct client *c, struct feed_run *run, const char *p, const char *end)
{
    enum feed_step step = FEED_AGAIN;

    if (c->ss->cache != NULL)
        step = cached_sequence(c, p, end);
    if (step != FEED_AGAIN)
        return step;
    c->sstate->errand->bound_first = follow_columns_first(c, p, end);
    step = begin_batch(c, run, p, end);
    c->sstate->errand->bound_first = NULL;
    return step;
}
