/* SPDX-License-Identifier: PostgreSQL
 * share.c: borrowing a link for a transaction, and giving it back. Runs in: workers. Must never:
 * give back a link whose settings are not those that link->vars says. */
#include "config.h"

#include <string.h>

#include "base/assert.h"
#include "base/hot.h"
#include "base/log.h"
#include "base/mem.h"
#include "config/conf.h"
#include "config/pools_conf.h"
#include "wire/writer.h"

#include "client_travel_int.h"
#include "share_again_int.h"
#include "share_int.h"
#include "share_phase_int.h"

HOT void share_turn_begin(struct client *c)
{
    struct share *s = c->share;

    struct share_turn *t;

    if (s->turn != NULL)
        return;
    t = c->ss->spare_turns;
    if (t == NULL) {
        t = mem_alloc_zero(sizeof *t);
    } else {
        c->ss->spare_turns = t->next_spare;
        c->ss->nspare_turns--;
        t->next_spare = NULL;
    }
    s->turn = t;
    t->client = c;
    list_init(&t->homeless_node);
}

HOT static void turn_free(struct sessions *ss, struct share *s)
{
    struct share_turn *t = s->turn;
    struct buf retry = t->retry;
    struct buf begin = t->begin;

    if (t->cache != NULL)
        share_cache_free(t->client);
    s->turn = NULL;
    session_ddl_done(ss->shared, t->ddl); /* how it ended nobody has heard */
    if (t->mark.client != NULL || t->mark.link != NULL)
        share_vars_clear(&t->mark);
    if (t->tx.client != NULL || t->tx.link != NULL)
        share_vars_clear(&t->tx);
    if (t->mend.vars != NULL)
        varset_unref(&t->mend.vars);
    if (!paramset_is_empty(&t->told))
        paramset_free(&t->told);
    buf_empty(&begin);
    buf_empty(&retry);
    buf_free(&t->early);
    buf_free(&t->held);
    mem_free(t->last_words);
    mem_free(t->lost_words);
    mem_free(t->refusal);
    mem_free(t->kill);
    if (ss->nspare_turns == SHARE_SPARE_TURNS) {
        buf_free(&begin);
        buf_free(&retry);
        mem_free(t);
        return;
    }
    memset(t, 0, sizeof *t);
    t->begin = begin;
    t->retry = retry;
    t->next_spare = ss->spare_turns;
    ss->spare_turns = t;
    ss->nspare_turns++;
}

void share_spare_free(struct sessions *ss)
{
    struct share_turn *t;

    while ((t = ss->spare_turns) != NULL) {
        ss->spare_turns = t->next_spare;
        buf_free(&t->begin);
        buf_free(&t->retry);
        mem_free(t);
    }
    ss->nspare_turns = 0;
    mem_free(ss->spare_wait);
    ss->spare_wait = NULL;
}

HOT void share_turn_end(struct client *c)
{
    struct share *s = c->share;

    if (s == NULL || s->turn == NULL || s->phase != SHARE_DETACHED || s->tx == SHARE_TX_VIRTUAL ||
        share_tx_is_lost(s) || s->turn->home != NULL || s->owes_parameters || c->is_parked ||
        c->phase != CL_ACTIVE)
        return;
    ASSERT(s->turn->npending == 0 && s->turn->savepoints.newest == NULL && s->turn->ends == NULL &&
           s->turn->ended == NULL && s->turn->portals == NULL && s->turn->wait == NULL &&
           s->turn->dropped == NULL && s->turn->drops == NULL &&
           list_is_detached(&s->turn->homeless_node));
    turn_free(c->ss, s);
    if (loop_now_us(c->ss->loop) >= c->ss->giving.due_us)
        sessions_on_idle(c);
}

/* What it has set, or may have: most of a turn is seldom touched, and large. */
HOT void share_turn_end_quick(struct client *c)
{
    struct sessions *ss = c->ss;
    struct share_turn *t = c->share->turn;

    if (ss->nspare_turns == SHARE_SPARE_TURNS || !paramset_is_empty(&t->told) || t->npending > 0 ||
        t->cache != NULL || t->retry.cap > BUF_SMALL_BYTES || c->phase != CL_ACTIVE) {
        share_turn_end(c);
        return;
    }
    c->share->turn = NULL;
    t->client = NULL;
    t->is_quick = false;
    t->nuncertain = 0;
    t->kept_len = 0;
    t->mark_pins = 0;
    t->last_bound = NULL;
    t->unnamed_epoch = 0;
    memset(&t->homeless_node, 0, sizeof t->homeless_node);
    buf_empty(&t->retry);
    t->next_spare = ss->spare_turns;
    ss->spare_turns = t;
    ss->nspare_turns++;
    if (loop_now_us(ss->loop) >= ss->giving.due_us)
        sessions_on_idle(c);
}

static void share_on_turn(struct pool_request *req)
{
    struct client *c = req->owner;

    client_unpark(c); /* what is parked asks again; the request keeps its place */
}

static bool share_on_called(struct pool_request *req, int ordinal)
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
    req->vars = c->share->vars.client;
    req->avoid_id = share_link_to_avoid(c);
    req->owner = c;
    req->ops = &share_link_ops;
}

static struct share_wait *wait_new(struct client *c, int node)
{
    struct share *s = c->share;
    struct share_wait *w = c->ss->spare_wait;
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
    w->req.on_turn = share_on_turn;
    w->req.on_called = share_on_called;
    w->req.keeps_place = s->turn->stands_since_us != 0;
    w->req.since_us = s->turn->stands_since_us;
    s->turn->stands_since_us = 0;
    s->turn->wait = w;
    return w;
}

/* Mostly a link is free, and nobody waits: then no wish has to be kept. */
HOT static struct link *borrow_at_once(struct client *c, int node)
{
    struct pool *pool = c->pool;
    struct link *kept = share_kept_take(c, node);

    if (kept != NULL)
        return kept;
    if (node != pool->cluster_node)
        pool = pool_near(pool, node);
    if (pool == NULL || !client_may_reuse(c, pool))
        return NULL;
    return pool_borrow(pool, c->share->vars.client, share_link_to_avoid(c), c, &share_link_ops);
}

HOT void share_adopt(struct client *c, struct link *link)
{
    struct share *s = c->share;

    if (s->greeted_alone)
        share_login_correct(c, link);
    else if (link->pool->cluster_node == c->pool->cluster_node && s->turn->home == NULL)
        share_login_look(c, link);
    if (s->phase == SHARE_OPENING)
        share_stop_opening(c);
    c->link = link;
    c->target = link;
    c->epoch = link->epoch;
    share_goto(c, SHARE_ATTACHED);
    s->loan = (struct share_loan){.is_fresh = true};
    s->turn->homeless_until_us = 0;
    s->last_link = link->id;
    varset_assign(&s->vars.link, link->vars);
    s->turn->is_untold = s->turn->tells_late;
    if (!s->turn->tells_late)
        client_row_link(c);
    if (link == s->kept) {
        client_stats_on_wait_end(c);
        return;
    }
    share_kept_note(c, link);
    client_stats_on_link(c);
}

HOT bool share_attach_at_once(struct client *c, int node)
{
    struct share *s = c->share;
    struct link *link;

    if (node == VIEW_NO_NODE || share_kept_is_speaking(c) ||
        (!s->again.is_read && node < POOLS_FIRST_TARGET && sessions_must_hold_writes(c->ss)))
        return false;
    link = borrow_at_once(c, node);
    if (link == NULL)
        return false;
    share_adopt(c, link);
    if (link->vars == s->vars.client && !share_must_reset(c, link) &&
        !link_reads_otherwise(link, link->vars, share_number(c))) {
        link->last_client = share_number(c);
        s->loan.is_fresh = false;
    }
    return true;
}

HOT enum feed_step share_attach(struct client *c, int node)
{
    struct share *s = c->share;
    struct share_wait *w = s->turn->wait;
    bool was_waiting = s->phase == SHARE_WAITING;
    struct link *link;

    if (share_kept_is_speaking(c))
        node = s->kept->pool->cluster_node;
    link = w == NULL && !was_waiting ? borrow_at_once(c, node) : share_kept_take(c, node);
    if (link != NULL) {
        if (w != NULL)
            share_leave_queue(c);
        share_adopt(c, link);
        return FEED_PASS;
    }
    if (w != NULL && w->req.pool->cluster_node != node) {
        share_leave_queue(c);
        w = NULL;
    }
    if (w == NULL)
        w = wait_new(c, node);
    share_goto(c, SHARE_DETACHED);
    switch (pool_acquire(&w->req)) {
    case ACQUIRE_GRANTED:
        link = w->req.link;
        share_leave_queue(c);
        share_adopt(c, link);
        return FEED_PASS;
    case ACQUIRE_OPENING:
        link = w->req.link;
        share_leave_queue(c);
        c->link = link;
        c->epoch = link->epoch;
        share_goto(c, SHARE_OPENING);
        if (node != c->pool->cluster_node)
            share_start_opening(c);
        client_stats_on_wait_begin(c);
        client_row_state(c, CLIENT_STATE_WAITING, WAIT_REASON_CONNECTING);
        return FEED_PARK;
    case ACQUIRE_WAITING:
        break;
    }
    share_goto(c, SHARE_WAITING);
    share_start_queueing(c);
    client_stats_on_wait_begin(c);
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
    struct share *s = c->share;

    if (share_tx_is_lost(s)) {
        share_put_own_query(c, run, slice_of_str("BEGIN"));
        share_put_own_query(c, run, slice_of_str(failing_query));
        s->tx = SHARE_TX_OF_LINK;
        c->link->must_clean = true; /* own_failed is going to be set on purpose */
    } else if (s->tx == SHARE_TX_VIRTUAL) {
        share_virtual_put(c, run);
        s->loan.begun_here = true;
        s->tx = SHARE_TX_OF_LINK;
        varset_assign(&s->turn->tx.link, s->vars.link); /* it had no link when it began */
    }
}

HOT enum feed_step share_make_ready(struct client *c, struct feed_run *run)
{
    struct share *s = c->share;

    if (!s->loan.is_fresh)
        return FEED_PASS;
    if (share_put_settings(c, run) == FEED_PARK)
        return FEED_PARK;
    if (s->turn->bound_first != NULL && share_columns_ask(c, run, s->turn->bound_first))
        return FEED_PARK;
    s->loan.is_fresh = false;
    if (s->turn->is_out) {
        share_out_send(c);
        return FEED_PASS;
    }
    if (share_tx_is_lost(s) || s->tx == SHARE_TX_VIRTUAL)
        share_names_load_sql(c, run); /* should one fail, the transaction is not to fail with it */
    put_transaction(c, run);
    return FEED_PASS;
}

HOT void share_forget_loan(struct client *c)
{
    struct share *s = c->share;

    if (s->phase == SHARE_OPENING)
        share_stop_opening(c);
    if (c->link != NULL && s->loan.is_unsure)
        c->link->must_clean = true;
    if (c->link != NULL)
        c->link->ready_as = 0;
    c->link = NULL;
    c->target = NULL;
    share_goto(c, SHARE_DETACHED);
    if (s->tx != SHARE_TX_VIRTUAL)
        buf_empty(&s->turn->begin);
    s->turn->nwatched = 0;
    s->loan = (struct share_loan){0};
    buf_empty(&s->turn->retry);
    buf_free(&s->turn->early);
    share_kept_tell(c);
    client_row_unlink(c);
}

HOT void share_detach(struct client *c)
{
    struct share *s = c->share;
    struct link *link = c->link;

    ASSERT(s->phase == SHARE_ATTACHED);
    /* Which statements it has is not known; or a cancel request that has done its work is still on
     * its way to it. */
    if (link == s->kept && (s->loan.is_unsure || (s->turn->is_cancelled && link->in_cancel)) &&
        !share_is_tied(c))
        s->kept = NULL;
    share_forget_loan(c);
    if (link != s->kept)
        link_return(link);
    if (c->share->turn->home != NULL)
        share_home_return(c);
}

WARM void share_detach_if_due(struct client *c)
{
    struct share *s = c->share;

    if (!s->loan.detach_due || c->body_left > 0 || c->server_batch || s->phase != SHARE_ATTACHED ||
        !expect_is_quiet(&c->link->expect))
        return;
    s->loan.detach_due = false;
    share_detach(c);
}

void share_drop_loan(struct client *c, bool boundary)
{
    struct link *link = c->link;

    share_leave_queue(c);
    share_stop_waiting(c);
    if (link == NULL)
        return;
    if (link == c->share->kept)
        c->share->kept = NULL;
    share_forget_loan(c);
    link->must_clean = true;
    link_release(link, boundary);
}

void share_drop_link(struct client *c, bool boundary)
{
    if (c->share->turn != NULL) {
        share_home_drop(c, boundary);
        share_drop_loan(c, boundary);
    }
    share_kept_release(c);
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
static void put_repair(const struct share *s, struct buf *sql)
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

/* After an exchange: puts right what a RESET did to start-up parameters, forgets statements when
 * nobody knows which there are, and asks what ties the session. True when something was sent: it
 * goes on when the link is quiet again. */
bool share_repair(struct client *c)
{
    struct share *s = c->share;
    struct feed_run run = {0};
    struct buf sql = {0};
    char tx = c->link->tx_status;
    bool repair = s->reset_seen && tx != 'E';
    bool is_unread = (s->pins & ROWS_PIN(PIN_REASON_UNKNOWN)) != 0;

    s->reset_seen =
        s->reset_seen && tx == 'E'; /* DISCARD ALL, and then a transaction that failed */
    s->turn->mend.was_cut_short = false;
    if (repair) {
        varset_assign(&s->turn->mend.vars, s->vars.link);
        share_put_encoding(c, &run, s->vars.link, s->vars.client);
        put_repair(s, &sql);
        varset_assign(&s->vars.link, s->vars.client);
        varset_assign(&c->link->vars, s->vars.client);
        if (sql.len > 0)
            share_put_own_query(c, &run, buf_slice(&sql));
    }
    if (s->look_at_pins && tx == 'I' && (s->kept == NULL || s->kept == c->link)) {
        s->look_at_pins = false;
        if (s->pins != 0 && !is_unread) { /* what is not known ties it whatever the answer */
            s->turn->mend.of_pins = true;
            share_put_query(c, &run, slice_of_str(pins_query), OP_SWALLOW | OP_ROWS);
        }
    }
    if (s->loan.is_unsure && is_unread) {
        /* Some are the client's, and nobody could make them again. */
        if (s->loan.lacks_some)
            prepset_doubt(&c->link->preps);
        s->loan.lacks_some = false;
    } else if (s->loan.is_unsure && tx != 'E') {
        /* A Close of ours may have been skipped behind an error. */
        s->loan.is_unsure = false;
        s->loan.lacks_some = false;
        s->turn->mend.of_names = true;
        prepset_clear(&c->link->preps);
        share_put_own_query(c, &run, slice_of_str("DEALLOCATE ALL"));
    }
    buf_free(&sql);
    if (run.out.len == 0)
        return false;
    share_goto(c, SHARE_REPAIRING);
    feed_flush(c, &run);
    return true;
}

/* What was to be put right is forgotten. */
static void repair_done(struct share_turn *t)
{
    if (t->mend.vars != NULL)
        varset_unref(&t->mend.vars);
    t->mend = (struct share_mend){0};
}

/* Nothing of it failed for its own sake, and doing it twice is as good as once. */
bool share_repair_again(struct client *c)
{
    struct share *s = c->share;
    struct share_turn *t = s->turn;

    if (!t->mend.was_cut_short || c->link->tx_status != 'I') {
        repair_done(t);
        return false;
    }
    if (t->mend.tries++ == SHARE_MAX_REPAIRS) {
        repair_done(t);
        link_fail_text(c->link, "08006",
            "a server connection could not be brought up to date (node %d)",
            c->link->pool->cluster_node);
        return true;
    }
    s->reset_seen = t->mend.vars != NULL;
    s->look_at_pins = t->mend.of_pins;
    s->loan.is_unsure = t->mend.of_names;
    if (t->mend.vars != NULL)
        varset_assign(&s->vars.link, t->mend.vars);
    return share_repair(c);
}

void share_show_pins(struct client *c)
{
    struct share *s = c->share;

    if (s->pins != s->shown_pins)
        client_row_pin(c, s->pins | (share_keeps(s) ? ROWS_PIN(PIN_REASON_SESSION_MODE) : 0));
    s->shown_pins = s->pins;
}

void share_free(struct client *c)
{
    struct share *s = c->share;

    if (s == NULL)
        return;
    share_drop_link(c, false);
    share_turn_begin(c); /* what ends a session knows it with one */
    share_names_free(c);
    share_state_free(c);
    turn_free(c->ss, s);
    c->share = NULL;
    c->kind = &c->ss->kinds->relayed;
    mem_free(s);
}
