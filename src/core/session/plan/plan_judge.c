/* SPDX-License-Identifier: PostgreSQL
 * plan_judge.c: what the router is told of a session, and what it says. Runs in: workers.
 * Needs no link: mostly a client has none when it asks. Must never: send anything. */
#include "config.h"

#include <string.h>

#include "base/arena.h"
#include "base/hot.h"
#include "base/log.h"
#include "base/mem.h"
#include "config/conf.h"
#include "config/conf_param.h"
#include "config/pools_conf.h"
#include "parser/sql_cache.h"

#include "sstate_int.h"

struct plan *plan_none(void)
{
    static const struct plan none = {.rs = {.tx_node = VIEW_NO_NODE}, .tx_status = 'I'};

    return (struct plan *)(uintptr_t)&none;
}

static struct slice application_name(const struct client *c)
{
    const struct slice key = slice_of_str("application_name");

    if (c->link != NULL)
        return paramset_get(&c->link->reported, key);
    return paramset_get(&c->login->params, key);
}

/* Start-up parameters only: what the role's or database's default is, the catalogue says. */
static bool begins_serializable(const struct paramset *p)
{
    return route_says_serializable(
               paramset_get(p, slice_of_str("default_transaction_isolation"))) ||
           route_says_serializable(paramset_get(p, slice_of_str("options")));
}

void plan_begin(struct client *c)
{
    struct plan *b;
    struct slice app;

    if (!c->ss->conf->load_balance_mode || !sstate_is_followed(c))
        return;
    b = mem_alloc_zero(sizeof *b);
    c->plan = b;
    c->kind = &c->ss->kinds->balanced;
    b->tx_status = 'I';
    b->choice = (uint32_t)(session_next_choice(c->ss->shared) >> 32);
    app = application_name(c);
    if (app.n > 0)
        b->application_name = mem_strndup(app.p, app.n);
    b->rs.balance_node = VIEW_NO_NODE;
    b->rs.tx_node = VIEW_NO_NODE;
    route_tie(&b->rs, ROUTE_TIE_SERIALIZABLE, begins_serializable(&c->login->params));
}

void plan_free(struct client *c)
{
    struct plan *b = c->plan;

    if (b == plan_none())
        return;
    c->plan = plan_none();
    c->kind = &c->ss->kinds->followed;
    plan_drop_doubts(b);
    route_trace_free(&b->rs.trace);
    plan_questions_free(&b->questions);
    mem_free(b->application_name);
    mem_free(b->mark);
    mem_free(b);
}

static bool text_of_name(const struct client *c, struct slice name, struct slice *text)
{
    const struct names_entry *n = names_find(&c->sstate->names, name);

    if (n == NULL)
        return false;
    *text = names_entry_sql(n);
    return true;
}

/* What PREPARE or a Parse of this name holds. The facts of the EXECUTE are in use: these are made
 * beside them. */
static int judge_prepared(
    void *ctx, struct slice name, struct slice *text, const struct sql_facts **facts)
{
    struct client *c = ctx;
    struct sql_facts *own;

    if (!text_of_name(c, name, text))
        return -1;
    own = arena_alloc_zero(c->ss->scratch, sizeof *own);
    (void)sql_parse(c->ss->scratch, *text, own);
    *facts = own;
    return 0;
}

/* Where the open transaction lives. */
static void judge_tx(struct client *c)
{
    struct plan *b = c->plan;
    struct route_session *rs = &b->rs;
    char tx = b->tx_status;

    if (c->link != NULL)
        tx = c->link->tx_status;
    if (tx == 'I' && c->sstate->tx == SSTATE_TX_BEGUN)
        tx = 'T'; /* BEGIN is on its way */
    rs->tx = tx == 'I' ? ROUTE_TX_NONE : tx == 'E' ? ROUTE_TX_FAILED : ROUTE_TX_OPEN;
    rs->tx_node = VIEW_NO_NODE;
    if (tx != 'I' && c->link != NULL)
        rs->tx_node = (int16_t)c->link->pool->cluster_node;
}

/* The golden ratio, of 2^64. */
#define DRAW_STEP 0x9e3779b97f4a7c15U

/* One draw per statement; while the client is parked because of it, the draw holds. Steps by the
 * golden ratio are even at once, and so is every second or third of them: a statement that always
 * follows another does not always get the same node. */
static uint64_t judge_random(struct client *c)
{
    struct plan *b = c->plan;
    uint64_t choice = (uint64_t)b->choice << 32; /* its place, of 2^64 */

    if (!c->ss->conf->statement_level_load_balance)
        return choice;
    if (!b->keeps_random)
        b->ndraws++;
    return choice + b->ndraws * DRAW_STEP;
}

void plan_undraw(struct client *c)
{
    if (c->ss->conf->statement_level_load_balance && c->plan->keeps_random)
        c->plan->ndraws--;
    c->plan->keeps_random = false;
}

/* The client's link was opened before ALTER ROLE ... SET or the like: a standby may have a newer
 * one. */
HOT static bool is_of_before(const struct client *c)
{
    const struct sstate *s = c->sstate;
    const struct link *link = s->kept == NULL && s->errand != NULL ? s->errand->home : s->kept;

    link = link == NULL ? c->link : link;
    return link != NULL && pool_link_is_of_before(link);
}

WARM static void judge_input(struct client *c, struct route_input *in)
{
    struct sessions *ss = c->ss;
    struct plan *b = c->plan;

    known_refresh(ss->known);
    judge_tx(c);
    route_tie(&b->rs, ROUTE_TIE_BEFORE, is_of_before(c));
    b->rs.now_us = backend_wall_us(&ss->be);
    memset(in, 0, sizeof *in);
    in->conf = ss->conf;
    in->set = conf_session_of(ss->gen, client_override(c));
    in->rules = ss->rules;
    in->view = &ss->view;
    in->session = &b->rs;
    in->who.user = pool_user(c->pool);
    in->who.database = pool_database(c->pool);
    in->who.application_name = slice_of_str(b->application_name == NULL ? "" : b->application_name);
    in->lookup = plan_lookup;
    in->lookup_ctx = c;
    in->prepared = judge_prepared;
    in->prepared_ctx = c;
    in->node_of_pid = known_node_of_pid;
    in->pid_ctx = ss->known;
    in->marks = known_marks(ss->known, &in->nmarks);
    in->replayed_lsn = known_replayed_lsn(ss->known);
    in->random = judge_random(c);
    in->schema_settled = known_is_settled(ss->known);
    in->answers_id = client_override(c) == NULL ? plan_answers_id(c) : 0;
}

/* Facts found by fingerprint carry the offsets of another text. They will not do where a
 * statement's own text is needed. */
static bool facts_need_text(const struct sql_facts *facts)
{
    if (facts->nstmts != 1)
        return facts->nstmts > 1;
    switch (facts->stmts[0].kind) {
    case SQL_SET:
    case SQL_RESET:
    case SQL_PREPARE:
    case SQL_BEGIN: /* its tag is that of the word */
        return true;
    default:
        return false;
    }
}

HOT const struct sql_facts *plan_facts(struct sessions *ss, struct slice sql)
{
    const struct sql_facts *facts;
    struct sql_facts *own;
    bool same_layout;

    ss->nfacts++;
    arena_reset(ss->scratch);
    facts = sql_cache_get(ss->sql_cache, ss->scratch, sql, &same_layout);
    if (same_layout || !facts_need_text(facts))
        return facts;
    own = arena_alloc_zero(ss->scratch, sizeof *own);
    (void)sql_parse(ss->scratch, sql, own);
    return own;
}

HOT struct plan_found plan_found_of(const struct sessions *ss, const struct sql_facts *facts)
{
    return (struct plan_found){facts, ss->nfacts};
}

HOT const struct sql_facts *plan_facts_still(
    struct sessions *ss, struct slice sql, const struct plan_found *found)
{
    return found != NULL && found->nfacts == ss->nfacts ? found->facts : plan_facts(ss, sql);
}

/* Our parser reads a backslash as standard_conforming_strings = on has it. */
WARM static bool plan_reads_otherwise(const struct client *c, struct slice sql)
{
    return route_text_may_differ(sql) && sstate_text_is_doubtful(c, sql);
}

/* What pgpool-II says of it. */
COLD static void tell_written(const struct client *c, const struct route_decision *d)
{
    if (d->reason == ROUTE_R_TRACKING_COLD)
        CLIENT_LOG(
            c, LVL_DEBUG1, "could not load balance because of track table mutation cold start");
    else if (d->reason == ROUTE_R_TABLE_WRITTEN_LATELY || d->reason == ROUTE_R_TABLE_WRITTEN_IN_TX)
        CLIENT_LOG(c, LVL_DEBUG1,
            "could not load balance because table \"%.*s\" was recently written", (int)d->written.n,
            d->written.p == NULL ? "" : d->written.p);
}

static void note_decision(struct client *c, const struct route_decision *d)
{
    c->plan->reason = (uint8_t)d->reason;
    if (log_is_on(LVL_DEBUG1))
        tell_written(c, d);
    if (d->reason == ROUTE_R_BACKEND_PID)
        CLIENT_LOG(
            c, LVL_DEBUG1, "found the pg_terminate_backend request: it goes to node %d", d->node);
    if (d->balance_node == VIEW_NO_NODE)
        return;
    if (c->plan->rs.balance_node != d->balance_node && log_is_on(LVL_DEBUG1))
        CLIENT_LOG(c, LVL_DEBUG1, "selecting load balance node: db node id: %d", d->balance_node);
    c->plan->rs.balance_node = d->balance_node;
    c->plan->rs.is_preferred = d->is_preferred;
    if (c->row != NULL)
        c->row->balance_node = (int16_t)d->balance_node;
}

WARM void plan_decide_facts(
    struct client *c, struct slice sql, const struct sql_facts *facts, struct route_decision *d)
{
    struct route_input in;

    judge_input(c, &in);
    in.reads_otherwise = plan_reads_otherwise(c, sql);
    route_query(&in, sql, facts, d);
    /* What the server may read otherwise does not leave its transaction. */
    if ((d->may_leave_tx || d->leaves_tx) && sstate_text_is_doubtful(c, sql))
        d->may_leave_tx = d->leaves_tx = false;
    note_decision(c, d);
}

const struct sql_facts *plan_decide(void *ctx, struct slice sql, struct route_decision *d)
{
    struct client *c = ctx;
    const struct sql_facts *facts = plan_facts(c->ss, sql);

    plan_decide_facts(c, sql, facts, d);
    return facts;
}

WARM void plan_decide_prep(struct client *c, struct prep *p, struct route_decision *d)
{
    struct route_input in;
    struct slice sql;

    judge_input(c, &in);
    if (route_is_known(&in, p->known)) {
        route_known(&in, p->known, d);
    } else {
        sql = prep_sql(p);
        in.reads_otherwise = plan_reads_otherwise(c, sql);
        route_query(&in, sql, plan_facts(c->ss, sql), d);
        p->known = d->known;
    }
    note_decision(c, d);
}

static void note_known(struct client *c, int node, bool is_drawn)
{
    struct plan *b = c->plan;

    b->rs.tx = ROUTE_TX_NONE;
    b->rs.tx_node = VIEW_NO_NODE;
    if (is_drawn) {
        b->rs.balance_node = (int16_t)node;
        b->rs.is_preferred = false;
        if (c->row != NULL)
            c->row->balance_node = (int16_t)node;
    }
    b->reason = b->rs.is_preferred ? ROUTE_R_PREFERENCE : ROUTE_R_BALANCED;
}

HOT int plan_known_node(struct client *c, uint64_t known, bool by_facts)
{
    struct sessions *ss = c->ss;
    struct plan *b = c->plan;
    const struct route_reads *reads;
    int node;

    if (client_override(c) != NULL || known == 0 || is_of_before(c))
        return VIEW_NO_NODE;
    known_refresh(ss->known);
    reads = known_reads(ss->known, ss->gen, ss->rules);
    b->rs.now_us = backend_wall_us(&ss->be);
    if (plan_answers_id(c) != known || (by_facts && reads->has_patterns) ||
        (reads->awaits_replay && b->lsn == PLAN_LSN_DUE))
        return VIEW_NO_NODE;
    node = route_reads_node(reads, &ss->view, &b->rs, judge_random(c));
    b->keeps_random = true;
    if (node != VIEW_NO_NODE)
        note_known(c, node, reads->is_by_statement);
    return node;
}

void plan_decide_afterwards(struct client *c, struct slice sql, struct route_decision *d)
{
    const struct sql_facts *facts = plan_facts(c->ss, sql);
    struct plan *b = c->plan;
    bool kept = b->keeps_random;
    struct route_input in;

    b->keeps_random = true;
    judge_input(c, &in);
    in.is_afterthought = true;
    in.reads_otherwise = plan_reads_otherwise(c, sql);
    route_query(&in, sql, facts, d);
    b->keeps_random = kept;
}

const struct sql_facts *plan_decide_again(
    struct client *c, struct slice sql, struct route_decision *d)
{
    struct plan *b = c->plan;
    bool kept = b->keeps_random;
    const struct sql_facts *facts;

    b->keeps_random = true;
    facts = plan_decide(c, sql, d);
    b->keeps_random = kept;
    return facts;
}

WARM void plan_note_write(struct client *c, const struct route_decision *d)
{
    struct route_session *rs = &c->plan->rs;

    if (d->runs_code == ROUTE_CODE_SETS)
        route_tie(rs, ROUTE_TIE_STATE, true); /* it may have changed settings unseen */
    if (d->runs_code != ROUTE_CODE_NONE) {
        rs->locked_in_tx = true;
        plan_mark_all(c);
    }
    if (d->writes_unnamed)
        route_trace_note_unnamed(&rs->trace);
    /* Where nothing can be written, a view that is not known is no reason to leave a snapshot. */
    if (d->is_doubtful && (d->is_write || !route_in_tx(rs) || !rs->tx_read_only))
        route_tie(rs, ROUTE_TIE_DOUBT, true);
    if (d->is_write || d->is_doubtful || d->must_ask || d->class == ROUTE_PRIMARY)
        c->plan->lsn = PLAN_LSN_DUE;
    if (!d->is_write)
        return;
    /* A BEGIN may not be answered yet; else it is forgotten with the answer. */
    rs->wrote_in_tx = true;
    if (rs->wrote == ROUTE_WROTE_NOTHING)
        rs->wrote = ROUTE_WROTE_ALONE;
    if (route_in_tx(rs))
        rs->wrote = ROUTE_WROTE_IN_TX;
}
