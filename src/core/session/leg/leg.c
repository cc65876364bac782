/* SPDX-License-Identifier: PostgreSQL
 * leg.c: borrowing a link for a transaction, and giving it back. Runs in: workers. Must never:
 * give back a link whose settings are not those that link->vars says. */
#include "config.h"

#include <string.h>

#include "base/assert.h"
#include "base/hot.h"
#include "base/log.h"
#include "base/mem.h"
#include "config/conf.h"
#include "config/pools_conf.h"

#include "client/client_travel_int.h"
#include "follow/follow_columns_int.h"
#include "sstate_int.h"
#include "lent/lent_int.h"
#include "sstate/phase_int.h"

HOT void errand_begin(struct client *c)
{
    struct sstate *s = c->sstate;
    struct errand *t;

    if (s->errand != NULL)
        return;
    t = c->ss->spare_errands;
    if (t == NULL) {
        t = mem_alloc_zero(sizeof *t);
    } else {
        c->ss->spare_errands = t->next_spare;
        c->ss->nspare_errands--;
        t->next_spare = NULL;
    }
    s->errand = t;
    t->client = c;
    t->way.names = &s->names;
    list_init(&t->homeless_node);
}

HOT static void errand_free(struct sessions *ss, struct sstate *s)
{
    struct errand *t = s->errand;
    struct buf retry = t->retry;
    struct buf begin = t->begin;

    if (t->results != NULL)
        ss->results->end(t->client);
    sstate_judge_end(t->client);
    s->errand = NULL;
    session_ddl_done(ss->shared, t->ddl); /* how it ended nobody has heard */
    if (t->mark.client != NULL || t->mark.link != NULL)
        sstate_vars_clear(&t->mark);
    if (t->tx.client != NULL || t->tx.link != NULL)
        sstate_vars_clear(&t->tx);
    if (!paramset_is_empty(&t->told))
        paramset_free(&t->told);
    buf_empty(&begin);
    buf_empty(&retry);
    buf_free(&t->early);
    buf_free(&t->held);
    mem_free(t->last_words);
    mem_free(t->lost_words);
    mem_free(t->refusal);
    if (ss->nspare_errands == SPARE_ERRANDS) {
        buf_free(&begin);
        buf_free(&retry);
        mem_free(t);
        return;
    }
    memset(t, 0, sizeof *t);
    t->begin = begin;
    t->retry = retry;
    t->next_spare = ss->spare_errands;
    ss->spare_errands = t;
    ss->nspare_errands++;
}

void errand_spare_free(struct sessions *ss)
{
    struct errand *t;

    while ((t = ss->spare_errands) != NULL) {
        ss->spare_errands = t->next_spare;
        buf_free(&t->begin);
        buf_free(&t->retry);
        mem_free(t);
    }
    ss->nspare_errands = 0;
    mem_free(ss->spare_wait);
    ss->spare_wait = NULL;
}

HOT void errand_end(struct client *c)
{
    struct sstate *s = c->sstate;

    if (s == NULL || s->errand == NULL || s->phase != PHASE_DETACHED ||
        s->tx == SSTATE_TX_VIRTUAL || sstate_tx_is_lost(s) || s->errand->home != NULL ||
        s->parameters == PARAMETERS_OWED || c->is_parked || c->phase != CL_ACTIVE)
        return;
    ASSERT(s->errand->way.npending == 0 && s->errand->savepoints.newest == NULL &&
           s->errand->ends == NULL && s->errand->ended == NULL && s->errand->portals == NULL &&
           s->errand->wait == NULL && s->errand->way.words == NULL &&
           list_is_detached(&s->errand->homeless_node));
    errand_free(c->ss, s);
    if (loop_now_us(c->ss->loop) >= c->ss->giving.due_us)
        sessions_on_idle(c);
}

/* What it has set, or may have: most of an errand is seldom touched, and large. */
HOT void errand_end_quick(struct client *c)
{
    struct sessions *ss = c->ss;
    struct errand *t = c->sstate->errand;

    if (ss->nspare_errands == SPARE_ERRANDS || !paramset_is_empty(&t->told) ||
        t->way.npending > 0 || t->results != NULL || t->retry.cap > BUF_SMALL_BYTES ||
        c->phase != CL_ACTIVE) {
        errand_end(c);
        return;
    }
    c->sstate->errand = NULL;
    t->client = NULL;
    t->way.names = NULL;
    t->sending = SENDING_AS_IT_COMES;
    t->way.nuncertain = 0;
    t->kept_len = 0;
    t->mark_pins = 0;
    t->way.last_bound = NULL;
    t->way.unnamed_epoch = 0;
    memset(&t->homeless_node, 0, sizeof t->homeless_node);
    buf_empty(&t->retry);
    t->next_spare = ss->spare_errands;
    ss->spare_errands = t;
    ss->nspare_errands++;
    if (loop_now_us(ss->loop) >= ss->giving.due_us)
        sessions_on_idle(c);
}

static void on_turn(struct pool_request *req)
{
    struct client *c = req->owner;

    client_unpark(c); /* what is parked asks again; the request keeps its place */
}

static bool leg_on_called(struct pool_request *req, int ordinal)
{
    return client_travel_waiting(req->owner, ordinal);
}

static void wish_init(struct client *c, struct pool *pool, const struct link_startup *startup,
    struct pool_request *req)
{
    pool_request_init(req);
    req->pool = pool;
    req->startup = startup;
    req->is_shared = true;
    client_entitle(c, req); /* who the client is was settled at login */
    req->vars = c->sstate->vars.client;
    req->avoid_id = sstate_link_to_avoid(c);
    req->owner = c;
    req->ops = &exchange_link_ops;
}

static struct link_wish *wait_new(struct client *c, int node)
{
    struct sstate *s = c->sstate;
    struct link_wish *w = c->ss->spare_wait;
    struct pool *pool = c->pool;

    c->ss->spare_wait = NULL;
    if (w == NULL)
        w = mem_alloc(sizeof *w);
    memset(&w->params, 0, sizeof w->params);
    memset(&w->startup, 0, sizeof w->startup);
    /* The client's own pool may become another one while it waits: the primary has changed. */
    if (node == pool->cluster_node)
        pool_hold(pool);
    else
        pool = pool_attach(&c->ss->be, pool_user(c->pool), pool_database(c->pool), node);
    w->startup.version = PROTO_3_0;
    w->startup.user = pool_user(pool);
    w->startup.database = pool_database(pool);
    w->startup.params = &w->params;
    wish_init(c, pool, &w->startup, &w->req);
    w->req.on_turn = on_turn;
    w->req.on_called = leg_on_called;
    w->req.keeps_place = s->errand->stands_since_us != 0;
    w->req.since_us = s->errand->stands_since_us;
    s->errand->stands_since_us = 0;
    s->errand->wait = w;
    return w;
}

/* Mostly a link is free, and nobody waits: then no wish has to be kept. */
HOT static struct link *borrow_at_once(struct client *c, int node)
{
    struct pool *pool = c->pool;
    struct link *kept = lent_kept_take(c, node);

    if (kept != NULL)
        return kept;
    if (node != pool->cluster_node)
        pool = pool_near(pool, node);
    if (pool == NULL || !client_may_reuse(c, pool))
        return NULL;
    return pool_borrow(
        pool, c->sstate->vars.client, sstate_link_to_avoid(c), c, &exchange_link_ops);
}

/* `link` is the client's from here on. */
HOT static void leg_adopt(struct client *c, struct link *link)
{
    struct sstate *s = c->sstate;

    if (s->parameters == PARAMETERS_UNKNOWN)
        sstate_correct_client(c, link);
    else if (link->pool->cluster_node == c->pool->cluster_node && s->errand->home == NULL)
        sstate_look_at_defaults(c, link);
    if (phase_is_opening((enum phase)s->phase))
        lent_stop_opening(c);
    c->link = link;
    c->target = link;
    c->epoch = link->epoch;
    phase_goto(c, PHASE_ATTACHED);
    s->loan = (struct loan){.is_fresh = true};
    s->errand->homeless_until_us = 0;
    s->last_link = link->id;
    varset_assign(&s->vars.link, link->vars);
    if (s->errand->sending == SENDING_QUICK)
        s->errand->sending = SENDING_QUICK_UNTOLD;
    else
        client_row_link(c);
    if (link == s->kept) {
        stats_on_wait_end(&c->stats, loop_now_us(c->ss->loop));
        return;
    }
    lent_kept_note(c, link);
    stats_on_link(&c->stats, loop_now_us(c->ss->loop));
}

HOT bool leg_attach_at_once(struct client *c, int node)
{
    struct sstate *s = c->sstate;
    struct link *link;

    if (node == VIEW_NO_NODE || lent_kept_is_speaking(c))
        return false;
    link = borrow_at_once(c, node);
    if (link == NULL)
        return false;
    leg_adopt(c, link);
    if (link->vars == s->vars.client && !lent_must_reset(c, link) &&
        !link_reads_otherwise(link, link->vars, sstate_number(c))) {
        link->last_client = sstate_number(c);
        s->loan.is_fresh = false;
    }
    return true;
}

HOT enum feed_step leg_attach(struct client *c, int node, bool to_ask)
{
    struct sstate *s = c->sstate;
    struct link_wish *w = s->errand->wait;
    bool was_waiting = phase_is_waiting((enum phase)s->phase);
    struct link *link;

    if (lent_kept_is_speaking(c))
        node = s->kept->pool->cluster_node;
    link = c->ss->asker;
    if (link != NULL && link->owner == c && link->pool->cluster_node == node)
        c->ss->asker = NULL; /* it was opened for what is asked now: leg_on_opened */
    else
        link = w == NULL && !was_waiting ? borrow_at_once(c, node) : lent_kept_take(c, node);
    if (link != NULL) {
        if (w != NULL)
            lent_leave_queue(c);
        leg_adopt(c, link);
        return FEED_PASS;
    }
    if (w != NULL && w->req.pool->cluster_node != node) {
        lent_leave_queue(c);
        w = NULL;
    }
    if (w == NULL)
        w = wait_new(c, node);
    phase_goto(c, PHASE_DETACHED);
    switch (pool_acquire(&w->req)) {
    case ACQUIRE_GRANTED:
        link = w->req.link;
        lent_leave_queue(c);
        leg_adopt(c, link);
        return FEED_PASS;
    case ACQUIRE_OPENING:
        link = w->req.link;
        lent_leave_queue(c);
        c->link = link;
        c->epoch = link->epoch;
        phase_goto(c, to_ask ? PHASE_ASK_OPENING : PHASE_OPENING);
        if (node != c->pool->cluster_node)
            lent_start_opening(c);
        stats_on_wait_begin(&c->stats, loop_now_us(c->ss->loop));
        client_row_state(c, CLIENT_STATE_WAITING, WAIT_REASON_CONNECTING);
        return FEED_PARK;
    case ACQUIRE_WAITING:
        break;
    }
    phase_goto(c, to_ask ? PHASE_ASK_WAITING : PHASE_WAITING);
    c->sstate->errand->homeless_until_us = 0; /* there is a server: losing it is another wait */
    lent_start_queueing(c);
    stats_on_wait_begin(&c->stats, loop_now_us(c->ss->loop));
    client_row_state(c, CLIENT_STATE_WAITING, (enum wait_reason)w->req.reason);
    if (!was_waiting)
        task_post(c->ss->loop, &c->ss->publish);
    return FEED_PARK;
}

/* A transaction that died with its link goes on in the same state on another one: failed. */
static const char failing_query[] =
    "SELECT pg_catalog.the_transaction_was_lost_with_its_connection()";

static void put_transaction(struct client *c, struct feed_run *run)
{
    struct sstate *s = c->sstate;

    if (sstate_tx_is_lost(s)) {
        lent_put_own_query(c, run, slice_of_str("BEGIN"));
        lent_put_own_query(c, run, slice_of_str(failing_query));
        s->tx = SSTATE_TX_OF_LINK;
        c->link->must_clean = true; /* own_failed is going to be set on purpose */
    } else if (s->tx == SSTATE_TX_VIRTUAL) {
        follow_virtual_put(c, run);
        s->tx = SSTATE_TX_BEGUN;
        varset_assign(&s->errand->tx.link, s->vars.link); /* it had no link when it began */
    }
}

HOT enum feed_step leg_make_ready(struct client *c, struct feed_run *run)
{
    struct sstate *s = c->sstate;

    if (!s->loan.is_fresh)
        return FEED_PASS;
    if (lent_put_settings(c, run, PHASE_SYNCING) == FEED_PARK)
        return FEED_PARK;
    if (s->errand->bound_first != NULL && follow_columns_ask(c, run, s->errand->bound_first))
        return FEED_PARK;
    s->loan.is_fresh = false;
    if (s->errand->place == PLACE_OUT) {
        c->link->ready_as = 'T'; /* as the client's transaction, which is elsewhere */
        return FEED_PASS;
    }
    if (sstate_tx_is_lost(s) || s->tx == SSTATE_TX_VIRTUAL)
        follow_sql_load(c, run); /* should one fail, the transaction is not to fail with it */
    put_transaction(c, run);
    return FEED_PASS;
}

HOT void leg_forget_loan(struct client *c)
{
    struct sstate *s = c->sstate;

    if (phase_is_opening((enum phase)s->phase))
        lent_stop_opening(c);
    if (c->link != NULL && !loan_is_sure(&s->loan))
        c->link->must_clean = true;
    if (c->link != NULL)
        c->link->ready_as = 0;
    c->link = NULL;
    c->target = NULL;
    phase_goto(c, PHASE_DETACHED);
    if (s->tx != SSTATE_TX_VIRTUAL)
        buf_empty(&s->errand->begin);
    s->errand->way.nwatched = 0;
    s->loan = (struct loan){0};
    if (s->tx == SSTATE_TX_BEGUN)
        s->tx = SSTATE_TX_OF_LINK;
    buf_empty(&s->errand->retry);
    buf_free(&s->errand->early);
    lent_kept_tell(c);
    client_row_unlink(c);
}

HOT void leg_detach(struct client *c)
{
    struct sstate *s = c->sstate;
    struct link *link = c->link;

    ASSERT(s->phase == PHASE_ATTACHED || s->phase == PHASE_LEAVING);
    /* Which statements it has is not known; or a cancel request that has done its work is still on
     * its way to it. */
    if (link == s->kept &&
        (!loan_is_sure(&s->loan) || (s->errand->is_cancelled && link->in_cancel)) &&
        !sstate_is_tied(c))
        s->kept = NULL;
    leg_forget_loan(c);
    if (link != s->kept)
        link_return(link);
    if (c->sstate->errand->home != NULL)
        plan_aside_return(c);
}

WARM void leg_leave(struct client *c)
{
    if (c->body_left > 0)
        phase_goto(c, PHASE_LEAVING);
    else
        leg_detach(c);
}

void leg_detach_if_due(struct client *c)
{
    if (c->sstate->phase == PHASE_LEAVING && c->body_left == 0)
        leg_detach(c);
}

void leg_on_opened(struct client *c, struct link *link)
{
    struct sessions *ss = c->ss;
    bool is_to_ask = c->sstate->phase == PHASE_ASK_OPENING;

    leg_adopt(c, link);
    if (is_to_ask) {
        ss->asker = link == c->sstate->kept ? NULL : link;
        leg_forget_loan(c);
    }
    if (is_to_ask && c->sstate->errand->home != NULL)
        plan_aside_return(c);
    client_unpark(c);
    if (ss->asker == link)
        link_return(link); /* it is not needed any more */
    ss->asker = NULL;
}

void leg_drop_loan(struct client *c, bool boundary)
{
    struct link *link = c->link;

    lent_leave_queue(c);
    lent_stop_waiting(c);
    if (link == NULL)
        return;
    if (link == c->sstate->kept)
        c->sstate->kept = NULL;
    leg_forget_loan(c);
    link->must_clean = true;
    link_release(link, boundary);
}

void leg_drop_link(struct client *c, bool boundary)
{
    if (c->sstate->errand != NULL) {
        plan_aside_drop(c, boundary);
        leg_drop_loan(c, boundary);
    }
    lent_kept_release(c);
}

/* What still ties the session to its link? Asked of the server, which knows. */
static const char pins_query[] =
    "SELECT (SELECT count(*) FROM pg_catalog.pg_locks WHERE locktype = 'advisory' AND pid = "
    "pg_catalog.pg_backend_pid()), (SELECT count(*) FROM pg_catalog.pg_listening_channels()), "
    "(SELECT count(*) FROM pg_catalog.pg_cursors WHERE is_holdable), (SELECT count(*) FROM "
    "pg_catalog.pg_depend WHERE refclassid = 'pg_catalog.pg_namespace'::pg_catalog.regclass AND "
    "refobjid = pg_catalog.pg_my_temp_schema())";

static void drop_if_same(struct varset **from, struct varset **to, struct slice name)
{
    if (!slice_eq(varset_get(*from, name), varset_get(*to, name)))
        return;
    varset_drop(from, name);
    varset_drop(to, name);
}

/* Who the user is may be in doubt in a session that is tied for its settings: then that stays. */
static void put_repair(const struct sstate *s, struct buf *sql)
{
    struct varset *from = varset_ref(s->vars.link);
    struct varset *to = varset_ref(s->vars.client);

    if ((s->pins & 1U << PIN_REASON_SETTING) != 0) {
        drop_if_same(&from, &to, slice_of_str("role"));
        drop_if_same(&from, &to, slice_of_str("session_authorization"));
    }
    (void)varset_diff(from, to, sql);
    varset_unref(&from);
    varset_unref(&to);
}

/* The parts that are under way are done. */
static void repaired(struct client *c)
{
    struct sstate *s = c->sstate;
    unsigned parts = s->errand->mend.parts;

    s->errand->mend = (struct mend){0};
    if ((parts & MEND_SETTINGS) != 0) {
        varset_assign(&s->vars.link, s->vars.client);
        varset_assign(&c->link->vars, s->vars.client);
    }
    if ((parts & MEND_PINS) != 0)
        s->look_at_pins = false;
    if ((parts & MEND_NAMES) != 0) {
        s->loan.doubt = LOAN_SURE;
        prepset_clear(&c->link->preps);
    }
}

/* Some are the client's, and nobody could make them again. */
static void doubt_names(struct client *c)
{
    if (c->sstate->loan.doubt == LOAN_MAY_LACK)
        prepset_doubt(&c->link->preps);
    c->sstate->loan.doubt = LOAN_MAY_HAVE;
}

bool leg_repair(struct client *c, enum phase meanwhile)
{
    struct sstate *s = c->sstate;
    struct mend *mend = &s->errand->mend;
    struct feed_run run = {0};
    struct buf sql = {0};
    char tx = c->link->tx_status;
    bool is_unread = (s->pins & ROWS_PIN(PIN_REASON_UNKNOWN)) != 0;

    mend->was_cut_short = false;
    mend->parts = 0;
    if (sstate_is_reset(s) &&
        tx != 'E') { /* else DISCARD ALL, and then a transaction that failed */
        mend->parts |= MEND_SETTINGS;
        lent_put_encoding(c, &run, s->vars.link, s->vars.client);
        put_repair(s, &sql);
        if (sql.len > 0)
            lent_put_own_query(c, &run, buf_slice(&sql));
    }
    if (s->look_at_pins && tx == 'I' && (s->kept == NULL || s->kept == c->link)) {
        mend->parts |= MEND_PINS;
        if (s->pins != 0 && !is_unread) /* what is not known ties it whatever the answer */
            lent_put_query(c, &run, slice_of_str(pins_query), OP_SWALLOW | OP_ROWS);
    }
    if (!loan_is_sure(&s->loan) && is_unread) {
        doubt_names(c);
    } else if (!loan_is_sure(&s->loan) && tx != 'E') {
        mend->parts |= MEND_NAMES;
        lent_put_own_query(c, &run, slice_of_str("DEALLOCATE ALL"));
    }
    buf_free(&sql);
    if (run.out.len == 0) {
        repaired(c);
        return false;
    }
    phase_goto(c, meanwhile);
    feed_flush(c, &run);
    return true;
}

/* Nothing of it failed for its own sake, and doing it twice is as good as once. */
bool leg_repair_again(struct client *c)
{
    struct mend *mend = &c->sstate->errand->mend;

    if (!mend->was_cut_short) {
        repaired(c);
        return false;
    }
    if (c->link->tx_status != 'I') { /* it is due behind the transaction, which has failed */
        *mend = (struct mend){0};
        return false;
    }
    if (mend->tries++ < SSTATE_MAX_REPAIRS)
        return leg_repair(c, (enum phase)c->sstate->phase);
    *mend = (struct mend){0};
    link_fail_text(c->link, "08006",
        "a server connection could not be brought up to date (node %d)",
        c->link->pool->cluster_node);
    return true;
}

void leg_show_pins(struct client *c)
{
    struct sstate *s = c->sstate;

    if (s->pins != s->shown_pins)
        client_row_pin(c, s->pins | (lent_keeps(s) ? ROWS_PIN(PIN_REASON_SESSION_MODE) : 0));
    s->shown_pins = s->pins;
}

void leg_free(struct client *c)
{
    struct sstate *s = c->sstate;

    if (s == NULL)
        return;
    leg_drop_link(c, false);
    errand_begin(c); /* what ends a session knows it with one */
    names_free(&s->errand->way);
    follow_free(c);
    errand_free(c->ss, s);
    c->sstate = NULL;
    c->kind = &c->ss->kinds->relayed;
    mem_free(s);
}
