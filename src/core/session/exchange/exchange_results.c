/* SPDX-License-Identifier: PostgreSQL
 * exchange_results.c: what the query cache's side of a session may know of it and do for it
 * (session/caching.h). Runs in: workers. */
#include "config.h"

#include "base/hot.h"
#include "config/pools_conf.h"

#include "lent/lent_int.h"
#include "sstate_int.h"
#include "sstate/phase_int.h"

/* ---- what is kept with a client ---- */

HOT struct results *client_results(const struct client *c)
{
    return c->sstate->errand->results;
}

void client_set_results(struct client *c, struct results *r)
{
    c->sstate->errand->results = r;
}

bool client_has_errand(const struct client *c)
{
    return c->kind->errand(c) != NULL;
}

struct results_rest *client_results_rest(const struct client *c)
{
    return c->rare == NULL ? NULL : c->rare->results;
}

void client_set_results_rest(struct client *c, struct results_rest *rest)
{
    client_rare(c)->results = rest;
    if (rest == NULL)
        client_rare_trim(c);
}

/* ---- what its session is ---- */

HOT struct varset *client_settings(const struct client *c)
{
    return c->sstate->vars.client;
}

HOT const struct names *client_statements(const struct client *c)
{
    return &c->sstate->names;
}

HOT struct link *client_any_link(const struct client *c)
{
    return c->link != NULL ? c->link : c->sstate->kept;
}

uint64_t client_last_link(const struct client *c)
{
    return c->sstate->last_link;
}

/* A link that is lent says where: the client's pool is not to become another one under it. */
int client_node_of_writes(struct client *c)
{
    const struct link *lent = c->sstate->errand->home != NULL ? c->sstate->errand->home : c->link;
    int node;

    if (lent == NULL)
        return sstate_write_node(c);
    node = lent->pool->cluster_node;
    return node >= POOLS_FIRST_TARGET || node == sessions_write_node(c->ss) ? node : VIEW_NO_NODE;
}

/* Whatever runs in it waits for its COMMIT. */
bool client_is_in_block(const struct client *c)
{
    const struct sstate *s = c->sstate;

    return s->mode != CONF_POOL_STATEMENT &&
           (s->tx == SSTATE_TX_BEGUN ||
               (c->link->tx_status == 'T' && !expect_owes_ready(&c->link->expect)));
}

void client_note_code(struct client *c)
{
    c->sstate->ran_code = 1;
}

bool client_has_run_code(const struct client *c)
{
    return c->sstate->pins != 0 && c->sstate->ran_code != 0;
}

/* Nothing is under way on the link that the session has, where its writes go. */
static bool is_quiet(const struct client *c)
{
    const struct sstate *s = c->sstate;

    return s->phase == PHASE_ATTACHED && expect_is_quiet(&c->link->expect) && !s->loan.is_fresh &&
           s->exchange.hold == EXCHANGE_FLOWS && !c->server_batch && c->body_left == 0 &&
           s->errand->way.npending == 0 && s->errand->mark.client == NULL &&
           c->link->pool->cluster_node == c->pool->cluster_node;
}

/* Nothing is under way on the link that the session is tied to, not even a transaction. */
static bool own_is_quiet(const struct client *c)
{
    return c->sstate->pins != 0 && is_quiet(c) && c->link->tx_status == 'I';
}

/* The client is in a transaction whose statements see what is committed when they begin: also while
 * its link is set aside. What it has run is not looked at here. */
static bool sees_commits(const struct client *c)
{
    const struct sstate *s = c->sstate;
    const struct link *home = s->errand->home;

    if (s->errand->leave.rule == TX_ONE_SNAPSHOT)
        return false;
    if (home != NULL)
        return s->phase <= PHASE_WAITING && home->tx_status == 'T' && s->tx != SSTATE_TX_FAILS &&
               home->pool->cluster_node == c->pool->cluster_node && !pool_link_is_of_before(home);
    return is_quiet(c) && c->link->tx_status == 'T';
}

/* Nothing ties the session that results depend on. */
static bool ties_are_harmless(const struct sstate *s)
{
    static const uint32_t harmless = ROWS_PIN(PIN_REASON_SESSION_MODE) |
                                     ROWS_PIN(PIN_REASON_LISTEN) |
                                     ROWS_PIN(PIN_REASON_ADVISORY_LOCK);

    return s->pins == 0 || ((s->pins & ~harmless) == 0 && s->ran_code == 0);
}

/* A BEGIN that was answered and not sent. */
static bool begins_otherwise(const struct sstate *s)
{
    struct slice begin = buf_slice(&s->errand->begin);

    return slice_contains(begin, "repeatable") || slice_contains(begin, "serializable");
}

HOT bool client_may_be_told(const struct client *c)
{
    const struct sstate *s = c->sstate;

    if ((s->phase > PHASE_WAITING || s->errand->home != NULL) && !own_is_quiet(c) &&
        !sees_commits(c))
        return false;
    if (!ties_are_harmless(s))
        return false;
    if (s->parameters != PARAMETERS_TOLD || sstate_tx_is_lost(s) || s->has_temp_path ||
        client_has_console(c) || c->local_part != LOCAL_PART_NONE || c->server_batch ||
        c->trace.client)
        return false;
    return s->tx != SSTATE_TX_VIRTUAL || !begins_otherwise(s);
}

HOT void client_set_unnamed(struct client *c, struct prep *p)
{
    struct sstate *s = c->sstate;

    prep_unref(&s->names.unnamed);
    s->names.unnamed = p == NULL ? NULL : prep_ref(p);
    s->errand->way.unnamed_epoch = 0;
}

/* ---- to wait ---- */

bool client_may_wait_for_result(const struct client *c)
{
    const struct sstate *s = c->sstate;

    return s->phase <= PHASE_WAITING && s->errand->home == NULL && s->pins == 0 &&
           c->ss->stop == SESSION_RUNNING;
}

void client_wait_for_result(struct client *c, struct list *line)
{
    list_push_back(line, &c->sstate->errand->homeless_node);
    phase_goto(c, PHASE_WAITING);
    c->was_told_to_wait = true; /* nothing is said of connections, which it does not wait for */
    client_row_state(c, CLIENT_STATE_WAITING, WAIT_REASON_RESULT);
    stats_on_wait_begin(&c->stats, loop_now_us(c->ss->loop));
}

struct client *client_in_line(struct list *place)
{
    return LIST_ENTRY(place, struct errand, homeless_node)->client;
}

bool client_may_wait_aside(const struct client *c)
{
    const struct sstate *s = c->sstate;

    return (s->phase <= PHASE_WAITING || plan_aside_can(c)) && s->pins == 0 &&
           c->ss->stop == SESSION_RUNNING;
}

bool client_wait_aside(struct client *c, struct list *line)
{
    bool sets_aside = c->sstate->phase == PHASE_ATTACHED;

    lent_stop_asking(c); /* it may have stood in a queue */
    if (sets_aside)
        plan_aside_set(c);
    client_wait_for_result(c, line);
    return sets_aside;
}

/* What was set aside may have died meanwhile, and a read of the client's next transaction be on its
 * way. */
void client_wait_is_over(struct client *c, bool was_aside)
{
    const struct sstate *s = c->sstate;
    bool is_aside = was_aside && s->errand->home != NULL && s->phase <= PHASE_WAITING;

    lent_stop_waiting(c);
    if (is_aside)
        plan_aside_come_back(c);
    client_unpark(c);
}

void client_come_back(struct client *c)
{
    if (c->sstate->errand->home != NULL)
        plan_aside_come_back(c);
}

/* ---- questions ---- */

/* What may go to a standby waits for nobody's link of the primary: there is a free one, however
 * long it has been so, or none at all, as all reads go to standbys, and one is opened. */
bool exchange_has_link_to_ask(struct client *c)
{
    const struct pool *pool = c->pool;
    bool is_nobody_before = list_is_empty(&pool->waiting) && !sessions_must_hold_writes(c->ss);

    return c->sstate->kept != NULL ||
           (is_nobody_before && (pool->nidle > 0 || list_is_empty(&pool->busy)));
}

/* Outside of a transaction, or before its BEGIN was sent. */
enum feed_step client_ask_link(struct client *c, bool again)
{
    struct sstate *s = c->sstate;
    enum feed_step step;
    int node;

    if ((s->phase > PHASE_WAITING && !own_is_quiet(c)) || sstate_tx_is_lost(s) ||
        s->errand->home != NULL || (again && !exchange_has_link_to_ask(c)))
        return FEED_AGAIN;
    if (s->phase == PHASE_ATTACHED)
        return FEED_PASS;
    node = sstate_write_node(c);
    if (node == VIEW_NO_NODE || sstate_is_avoided(c, node) || !c->kind->may_ask(c))
        return FEED_AGAIN;
    step = leg_attach(c, node, true);
    if (step == FEED_PASS)
        s->loan.is_fresh = true;
    return step;
}

enum feed_step client_ask_ready(struct client *c)
{
    struct feed_run run = {0};
    enum feed_step step = FEED_PASS;

    if (c->sstate->loan.is_fresh) {
        step = lent_put_settings(c, &run, PHASE_ASK_SYNCING);
        feed_flush(c, &run);
    }
    if (step == FEED_PASS)
        phase_goto(c, PHASE_ASKING);
    return step;
}

bool client_ask_behind(struct client *c)
{
    const struct sstate *s = c->sstate;

    if (s->errand->home != NULL || c->body_left > 0 || c->server_batch ||
        c->sends == CLIENT_HAS_SENT_ALL || c->ss->stop != SESSION_RUNNING ||
        c->link->vars != s->vars.client || c->link->pool->cluster_node != c->pool->cluster_node)
        return false;
    phase_goto(c, PHASE_ASKING);
    return true;
}

void client_send_question(struct client *c, struct slice sql)
{
    plan_send_question(c, c->link, sql);
}

/* ---- the answer ---- */

HOT void client_answer_comes(struct client *c)
{
    lent_stop_asking(c); /* it may have stood in a queue */
    if (c->plan->nunsure > 0)
        plan_unsure_end(c); /* it is not made again */
}

HOT void client_note_hit(struct client *c, struct slice sql)
{
    struct sstate *s = c->sstate;

    if (!s->is_counted)
        client_stats_on_query(c);
    s->is_counted = false;
    client_stmts_hit(c, sql);
}

HOT void client_answer(struct client *c, struct slice bytes)
{
    struct sstate *s = c->sstate;

    if (s->tx == SSTATE_TX_VIRTUAL)
        s->errand->leave.snapshot = PLAN_SNAPSHOT_DUE;
    stats_on_bytes_out(&c->stats, bytes.n);
    (void)stream_send_later(&c->stream, bytes.p, bytes.n);
    client_note_idle(c);
}

HOT bool client_is_slow(const struct client *c)
{
    return stream_lags(&c->stream);
}

void client_cork(struct client *c)
{
    stream_cork(&c->stream);
}

void client_uncork(struct client *c)
{
    stream_uncork(&c->stream);
}
