/* SPDX-License-Identifier: PostgreSQL
 * plan_ask.c: questions about the catalogue (is this function volatile? this table temporary?).
 * Answers come from a cache of the worker. What is not in there is asked on a link that is borrowed
 * for it and has the client's settings: there the names mean what they mean to the client, who
 * waits for the answer anyhow. The replies are swallowed by position. */
#include "config.h"

#include <string.h>

#include "base/arena.h"
#include "base/hash.h"
#include "base/hot.h"
#include "base/log.h"
#include "base/mem.h"
#include "config/conf.h"
#include "parser/sql_cache.h"
#include "route/route_marks.h"
#include "route/route_oracle.h"
#include "wire/reader.h"
#include "wire/writer.h"

#include "sstate_int.h"

/* The question's names are views into the statement: they must outlive it. */
static struct plan_questions *ask_keep(const struct route_decision *d)
{
    struct arena *a = arena_new("questions", 0);
    struct plan_questions *qs = arena_alloc_zero(a, sizeof *qs);
    unsigned i;

    qs->arena = a;
    qs->n = d->nquestions;
    for (i = 0; i < d->nquestions; i++) {
        struct route_question *q = &qs->question[i];

        *q = d->question[i];
        q->schema.p = arena_strndup(a, q->schema.p, q->schema.n);
        q->name.p = arena_strndup(a, q->name.p, q->name.n);
    }
    return qs;
}

static void ask_send(struct client *c, struct link *link)
{
    struct plan *b = c->plan;
    struct buf sql = {0};

    route_oracle_sql(b->questions->question, b->questions->n, &sql);
    b->questions->change = known_change(c->ss->known);
    if (b->nunsure > 0)
        b->nunsure = b->questions->n & 0x1fU; /* an answer may have come before its link died */
    b->asking = ASKING_CATALOGUE;
    plan_send_question(c, link, buf_slice(&sql));
    buf_free(&sql);
}

void plan_ask(struct client *c, struct link *link, const struct route_decision *d)
{
    if (d != NULL)
        plan_ask_later(c, d);
    ask_send(c, link);
}

void plan_ask_later(struct client *c, const struct route_decision *d)
{
    struct plan *b = c->plan;

    plan_questions_free(&b->questions);
    b->questions = ask_keep(d);
}

/* Who has no plan gets one for so long. */
void plan_ask_unsure(struct client *c, const struct route_decision *missing)
{
    if (c->plan == plan_none()) {
        c->plan = mem_alloc_zero(sizeof *c->plan);
        *c->plan = *plan_none();
    }
    c->plan->rs.now_us = backend_wall_us(&c->ss->be);
    if (c->plan->doubts != NULL) {
        route_tie(&c->plan->rs, ROUTE_TIE_STATE, true); /* they would be asked first */
        plan_drop_doubts(c->plan);
    }
    c->plan->nunsure = missing->nquestions & 0x1fU;
    plan_ask_later(c, missing);
}

void plan_unsure_end(struct client *c)
{
    if (c->plan->nunsure > 0) {
        c->plan->nunsure = 0;
        plan_questions_free(&c->plan->questions);
    }
    if (c->kind == &c->ss->kinds->followed)
        plan_free(c);
}

/* Unknown code has run: every table of the database counts as written. */
static void mark_every_table(struct client *c)
{
    uint64_t key = route_marks_key(pool_database(c->pool), 0);

    if (c->ss->conf->disable_load_balance_on_write == CONF_WRITE_DML_ADAPTIVE_GLOBAL)
        known_mark(c->ss->known, c->ss->conf, &key, 1, backend_wall_us(&c->ss->be));
}

/* What is known now of a statement that has run. True when something of it is still to be asked. */
static bool is_in_doubt(struct client *c, struct slice sql)
{
    struct plan *b = c->plan;
    struct route_decision d;

    plan_decide_afterwards(c, sql, &d);
    if (d.is_doubtful && d.must_ask && !plan_ask_is_over(b)) {
        plan_ask(c, c->link, &d);
        return true;
    }
    /* A function that ran and is not to be found has changed where names are looked for. */
    if (d.runs_code == ROUTE_CODE_SETS || d.is_doubtful || d.reason == ROUTE_R_MISSING_FUNCTION)
        route_tie(&b->rs, ROUTE_TIE_STATE, true);
    if (d.runs_code)
        mark_every_table(c);
    if (d.is_write)
        b->rs.wrote = ROUTE_WROTE_IN_TX;
    plan_ask_reset(b);
    return false;
}

/* True when a question is under way. */
static bool asks_doubts(struct client *c)
{
    struct plan_doubts *ds = c->plan->doubts;
    struct slice text;

    if (ds == NULL)
        return false;
    while (ds->at < ds->texts.len) {
        text = slice_of_str(ds->texts.data + ds->at);
        if (is_in_doubt(c, text))
            return true;
        ds->at += (uint32_t)text.n + 1;
    }
    plan_drop_doubts(c->plan);
    route_tie(&c->plan->rs, ROUTE_TIE_DOUBT, false);
    return false;
}

WARM void plan_ask_missed(struct client *c)
{
    struct plan *b = c->plan;

    if (b->asking != ASKING_NONE || c->link->tx_status != 'I' ||
        !expect_is_quiet(&c->link->expect) || c->link->body_left > 0 ||
        (!c->is_parked && (c->sends == CLIENT_HAS_SENT_ALL || c->ss->stop != SESSION_RUNNING)))
        return;
    if (!asks_doubts(c) && b->questions != NULL)
        ask_send(c, c->link);
}

static void take_answer(struct client *c, struct slice index_text, struct slice bits_text)
{
    struct plan *b = c->plan;
    const struct plan_questions *qs = b->questions;
    unsigned index;
    uint32_t bits;

    if (route_oracle_parse_row(index_text, bits_text, qs->n, &index, &bits) == -1)
        return;
    known_learn(c->ss->known, plan_scope(c), &qs->question[index], qs->change, b->rs.now_us, bits);
    if (b->nunsure > 0 && (bits & ROUTE_REL_VOLATILE) == 0)
        b->nunsure--;
}

void plan_on_row(struct client *c, struct slice body)
{
    struct plan *b = c->plan;
    struct slice value[2];

    if (b->asking == ASKING_NONE ||
        !wire_row_values(body, value, b->asking == ASKING_REPLAY ? 1 : 2))
        return;
    if (b->asking == ASKING_REPLAY)
        plan_wait_row(c->ss, c->link->pool->cluster_node, value[0]);
    else if (b->asking == ASKING_LSN)
        plan_on_lsn(c, value[0], value[1]);
    else
        take_answer(c, value[0], value[1]);
}

void plan_ask_done(struct client *c, struct link *link)
{
    struct plan *b = c->plan;

    if (b->asking == ASKING_CATALOGUE)
        plan_questions_free(&b->questions);
    if (link_own_failed(link)) {
        plan_ask_stop(b);
        if (b->asking != ASKING_CATALOGUE)
            b->wait = PLAN_WAIT_OVER;
        CLIENT_LOG(
            c, LVL_DEBUG1, "a question of our own failed on node %d", link->pool->cluster_node);
    }
    if (b->asking == ASKING_CATALOGUE && !plan_ask_is_over(b))
        b->nasked++;
    b->asking = ASKING_NONE;
    link_forget_failure(link);
    if (b->nunsure == 0)
        plan_unsure_end(c);
}
