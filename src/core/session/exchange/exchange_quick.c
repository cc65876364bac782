/* SPDX-License-Identifier: PostgreSQL
 * exchange_quick.c: plain statements of a client that is idle, or in a transaction, in one step.
 * Runs in: workers. What feed_followed.c and exchange_begin.c find out message by message holds for
 * all of them: nothing runs, nothing ties the session, and the statement changes none of that. A
 * sequence of the extended protocol has to be there up to its Sync, and its text is not looked at:
 * what is to be known of it stands with the statement (struct prep). Must never: do anything before
 * it is sure. */
#include "config.h"

#include <string.h>

#include "base/hot.h"
#include "config/conf.h"
#include "wire/batch.h"

#include "follow/follow_columns_int.h"
#include "sstate_int.h"

/* One statement, and what is known of it. */
struct quick_batch {
    struct batch_lone sent;
    struct names_entry *n; /* that it names; NULL: the unnamed one */
    struct prep *prep;     /* ours */
    bool is_as_told;       /* the link has the columns that the client was told */
};

/* Between two transactions, and nobody wants to see each message. */
HOT static bool is_free(struct client *c)
{
    const struct sstate *s = c->sstate;

    return s->phase == PHASE_DETACHED && s->pins == 0 && s->parameters != PARAMETERS_UNKNOWN &&
           c->plan->nunsure == 0 && !client_has_console(c) && c->local_part == LOCAL_PART_NONE &&
           !c->server_batch && !c->trace.client && !client_log_statements(c);
}

/* Parse of a statement without a name, or Bind of one that has a name. */
static bool read_batch(const char *p, const char *end, struct quick_batch *q)
{
    q->n = NULL;
    q->prep = NULL;
    q->is_as_told = false;
    return batch_lone_read(&q->sent, p, end) && q->sent.syncs &&
           (q->sent.name.n == 0) == (q->sent.parse.p != NULL);
}

/* About another client. A comment in front says nothing: many put one there. */
static inline bool may_be_order(struct slice sql)
{
    return sql.p[0] != '/' && sql.p[0] != '-' && client_local_is_likely(sql);
}

/* The statement, when it is plain: words of transactions, settings and the like are not worth a
 * closer look. Without a name, or not, it is kept until q->prep is let go. */
HOT static bool find_statement(struct client *c, struct quick_batch *q)
{
    struct sstate *s = c->sstate;

    if (q->sent.parse.p == NULL) {
        q->n = names_find(&s->names, q->sent.name);
        q->prep = q->n == NULL || q->n->prep == NULL ? NULL : prep_ref(q->n->prep);
    } else if (count_is_of_rows(count_kind_of(q->sent.sql)) && !may_be_order(q->sent.sql) &&
               names_have_room(
                   &s->names, c->ss->conf->client_prepared_memory_bytes, q->sent.sql.n)) {
        q->prep = follow_prep_of(c, batch_lone_statement(&q->sent));
    }
    return q->prep != NULL && q->prep->is_plain;
}

/* Nothing has to be asked or waited for. Else the draw stays for whoever looks again. */
HOT static bool may_read_at(struct client *c, int node)
{
    struct plan *b = c->plan;

    if (b->wait == PLAN_WAIT_OVER || plan_is_lsn_due(c) || sstate_is_avoided(c, node) ||
        !conf_has_node(c->ss->conf, node) || view_must_hold_writes(&c->ss->view)) {
        b->keeps_random = true;
        return false;
    }
    plan_ask_reset(b);
    b->end = PLAN_END_NONE;
    return true;
}

/* Most reads are like those before them. */
static bool knows_read(struct client *c, uint64_t known, bool by_facts, int *node)
{
    int to = plan_known_node(c, known, by_facts);

    if (to == VIEW_NO_NODE || !may_read_at(c, to))
        return false;
    *node = to;
    return true;
}

static bool takes_read(struct client *c, const struct route_decision *d, int *node)
{
    if (d->known == 0 || d->must_ask || d->must_wait) {
        c->plan->keeps_random = true;
        return false;
    }
    *node = d->node;
    return may_read_at(c, d->node);
}

WARM APART static bool judge(
    struct client *c, struct prep *prep, struct slice sql, const struct sql_facts *facts, int *node)
{
    struct route_decision d;

    if (prep != NULL)
        plan_decide_prep(c, prep, &d);
    else
        plan_decide_facts(c, sql, facts, &d);
    return takes_read(c, &d, node);
}

HOT bool exchange_quick_place(
    struct client *c, struct prep *prep, struct slice sql, const struct sql_facts *facts, int *node)
{
    bool is_read = prep != NULL ? prep->count == COUNT_SELECT : facts->stmts[0].kind == SQL_SELECT;

    *node = sstate_write_node(c);
    if (*node == VIEW_NO_NODE || !is_read)
        return false;
    c->plan->tx_status = 'I';
    if (!knows_read(
            c, prep != NULL ? prep->known : route_known_of(sql, facts), prep == NULL, node) &&
        !judge(c, prep, sql, facts, node))
        return false;
    c->sstate->again.retry = AGAIN_ANYWHERE;
    return true;
}

HOT bool exchange_quick_place_home(
    struct client *c, struct prep *prep, struct slice sql, const struct sql_facts *facts, int *node)
{
    (void)prep;
    (void)sql;
    (void)facts;
    c->sstate->again.retry = AGAIN_NEVER;
    *node = exchange_node_of_write(c, sstate_write_node(c));
    return true;
}

/* What is to be sent waits for something: the rows hear of the loan before. */
COLD static void tell_loan(struct client *c)
{
    struct errand *t = c->sstate->errand;

    if (t->sending == SENDING_QUICK_UNTOLD && c->link != NULL)
        client_row_link(c);
    t->sending = SENDING_AS_IT_COMES;
}

/* Borrows a link. Rows are told of it when the statement is sent, or here when that is not now. */
HOT static enum feed_step get_link(struct client *c, struct feed_run *run, int node)
{
    struct sstate *s = c->sstate;
    enum feed_step step;

    s->errand->sending = SENDING_QUICK;
    if (!leg_attach_at_once(c, node))
        step = exchange_get_link(c, run, node);
    else
        step = s->loan.is_fresh ? leg_make_ready(c, run) : FEED_PASS;
    step = c->kind->chosen(c, step);
    if (step != FEED_PASS)
        tell_loan(c);
    return step;
}

/* The link is there. */
static void pass_batch(
    struct client *c, struct feed_run *run, const char *p, const struct quick_batch *q)
{
    struct slice sql = slice_of(NULL, 0);
    struct errand *t = c->sstate->errand;
    struct names_entry *n = q->n;

    if (c->ss->results != NULL)
        c->ss->results->bound(c, q->prep, batch_lone_values(&q->sent));
    if (q->sent.parse.p != NULL) {
        sql = prep_sql(q->prep);
        lent_names_unnamed(c, q->prep);
        link_expect(c->link, OP_PARSE | OP_NOTE);
        run->start = p;
    } else {
        if (!q->is_as_told) /* else it is there */
            follow_load(c, run, q->prep);
        t->way.last_bound = n;
        n->is_described = n->is_described || q->sent.describes;
        follow_put_renamed(run, q->sent.bind, 1, q->sent.name.n, q->prep);
        run->start = q->sent.bind.p + q->sent.bind.n;
    }
    run->end = q->sent.end;
    c->bound_count = q->prep->count;
    c->sstate->ran_made = c->sstate->ran_made || q->prep->runs_code;
    if (c->ss->stmts != NULL && sql.p == NULL && !client_stmts_is_known(c, q->prep->counted))
        q->prep->counted = client_stmts_bound(c, prep_sql(q->prep));
    link_expect(c->link, OP_BIND);
    if (q->sent.describes)
        link_expect(c->link, q->is_as_told ? OP_DESCRIBE : follow_columns_watch(c, n));
    link_expect(c->link, OP_EXECUTE);
    lent_expect_end(c, OP_SYNC);
    client_stats_on_query(c);
    count_statement(c->ss, c->link->pool->cluster_node, (enum count_kind)c->bound_count);
    client_note_begun(c, sql);
    t->sending = SENDING_QUICK;
}

/* The client may know other columns than the link. True: that is found out. */
COLD APART static bool looks_first(
    struct client *c, struct feed_run *run, const struct quick_batch *q)
{
    if (q->sent.describes && !follow_columns_counts(q->sent.bind) &&
        (q->n->told & COLUMNS_TYPES) == 0)
        return false;
    tell_loan(c);
    if (!follow_columns_ask(c, run, q->n))
        return false;
    c->sstate->loan.is_fresh = true; /* what comes is kept then */
    return true;
}

HOT enum feed_step exchange_quick_batch(
    struct client *c, struct feed_run *run, const char *p, const char *end, const char **whole)
{
    struct sstate *s = c->sstate;
    enum feed_step step = FEED_AGAIN;
    struct quick_batch q;
    struct slice msgs;
    int node;

    if (!is_free(c) || names_nsql(&s->names) > 0 || !read_batch(p, end, &q))
        return FEED_AGAIN;
    if (c->ss->results != NULL) {
        errand_begin(c);
        step = c->ss->results->batch(c, p, end, whole);
        if (step != FEED_AGAIN)
            return step == FEED_LOCAL ? FEED_PASS : step;
    }
    if (find_statement(c, &q) && c->kind->place(c, q.prep, slice_of(NULL, 0), NULL, &node)) {
        errand_begin(c);
        msgs = slice_of(p, (size_t)(q.sent.end - p));
        s->again.is_behind = false;
        s->again.may_replan = q.n != NULL && (q.sent.describes || !q.n->is_described);
        s->errand->kept_len = (uint32_t)msgs.n;
        step = get_link(c, run, node);
        if (step == FEED_PASS && q.n != NULL && q.n->told != 0) {
            q.is_as_told =
                follow_columns_agree(q.n->told, prepset_columns(&c->link->preps, q.prep->id));
            if (!q.is_as_told && looks_first(c, run, &q))
                step = FEED_PARK;
        }
        if (step == FEED_PASS) {
            leg_keep(c, msgs);
            pass_batch(c, run, p, &q);
            *whole = q.sent.end;
        }
    }
    prep_unref(&q.prep);
    return step;
}

/* Known to the parser alone: without functions, and without tables, which may be views. */
static bool is_lone_read(const struct sql_facts *facts)
{
    const struct sql_stmt *st = facts->stmts;

    return st->kind == SQL_SELECT && (st->flags & SQL_F_READ_ONLY) != 0 && st->nfuncs == 0 &&
           st->ntables == 0;
}

HOT enum feed_step exchange_quick_query(struct client *c, struct feed_run *run, struct slice sql,
    struct slice msg, const struct sql_facts *facts)
{
    struct sstate *s = c->sstate;
    enum feed_step step;
    int node;

    if (!is_free(c) || memchr(sql.p, '\\', sql.n) != NULL ||
        !c->kind->place(c, NULL, sql, facts, &node))
        return FEED_AGAIN;
    client_stats_on_query(c);
    s->is_counted = true;
    if (s->again.retry == AGAIN_NEVER && is_lone_read(facts))
        s->again.retry = AGAIN_IF_ROUTED;
    s->again.may_replan = false;
    step = get_link(c, run, node);
    if (step != FEED_PASS)
        return step;
    leg_keep(c, msg);
    s->errand->mark_pins = s->pins;
    return FEED_PASS;
}

/* In a transaction that has its link, where nothing runs, and nothing of what came before has to be
 * put right first. */
HOT static bool is_in_transaction(const struct client *c)
{
    const struct sstate *s = c->sstate;
    const struct errand *t = s->errand;

    return s->phase == PHASE_ATTACHED && c->link->tx_status == 'T' && t->tx.client != NULL &&
           !errand_has_set(t) && !s->loan.is_fresh && s->exchange.hold == EXCHANGE_FLOWS &&
           s->exchange.words == EXCHANGE_NO_WORDS && !sstate_is_reset(s) && !s->look_at_pins &&
           loan_is_sure(&s->loan) && s->tx != SSTATE_TX_UNTOLD && s->tx != SSTATE_TX_BEGUN &&
           t->leave.snapshot != PLAN_SNAPSHOT_DUE && s->pins == s->shown_pins &&
           expect_is_quiet(&c->link->expect) && !c->server_batch &&
           c->local_part == LOCAL_PART_NONE && s->mode != CONF_POOL_STATEMENT;
}

HOT bool exchange_quick_goes_on(struct client *c, struct slice sql)
{
    struct sstate *s = c->sstate;

    if (!is_in_transaction(c) || memchr(sql.p, '\\', sql.n) != NULL)
        return false;
    if (!s->is_counted)
        client_stats_on_query(c);
    s->errand->sending = SENDING_QUICK;
    s->errand->string.nstmts = 0;
    again_forget(&s->again);
    s->errand->mark_pins = s->pins;
    return true;
}

/* What the end of an exchange has to look for is not there: an error, answers that were held back,
 * questions, more input. */
static bool leaves_nothing(const struct client *c)
{
    const struct sstate *s = c->sstate;

    return s->errand->sending == SENDING_QUICK && !s->exchange.saw_error &&
           !c->link->expect.holds && !c->is_parked && c->body_left == 0 &&
           c->plan->questions == NULL && c->plan->doubts == NULL;
}

/* The transaction is open still, and nothing in it has changed. */
HOT static bool ends_within(struct client *c)
{
    struct errand *t = c->sstate->errand;

    if (c->link->tx_status != 'T' || c->link->expect.nnotes > 0 || t->way.npending > 0)
        return false;
    t->sending = SENDING_AS_IT_COMES;
    client_note_idle(c);
    client_after_quiet(c);
    return true;
}

HOT bool exchange_quick_ends(struct client *c)
{
    struct sstate *s = c->sstate;

    if (!leaves_nothing(c))
        return false;
    if (s->errand->tx.client != NULL)
        return ends_within(c);
    if (c->link->tx_status != 'I')
        return false;
    if (s->errand->way.npending > 0 || c->link->expect.nnotes > 0)
        lent_names_settle(c);
    if (s->errand->early.len > 0)
        client_send(c, &s->errand->early);
    s->errand->sending = SENDING_AS_IT_COMES;
    s->again = (struct exchange_again){0};
    client_note_done(c);
    leg_detach(c);
    errand_end_quick(c);
    client_after_quiet(c);
    return true;
}
