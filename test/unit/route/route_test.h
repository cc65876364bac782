/* SPDX-License-Identifier: PostgreSQL
 * route_test.h: what the tests of the router share: a cluster of some nodes with the primary
 * anywhere, settings from text, a catalogue of a few names. */
#ifndef PGP_TEST_ROUTE_TEST_H
#define PGP_TEST_ROUTE_TEST_H

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/buf.h"
#include "config/conf.h"
#include "route/route.h"
#include "route/route_reads.h"
#include "route/route_rules.h"

struct route_test {
    struct conf_gen *gen;
    struct route_rules *rules;
    struct arena *arena;
    struct view view;
    struct route_session session;
    struct route_input in;
    struct sql_facts facts;
    struct sql_facts prepared_facts;
    const char *prepared_sql;
    uint64_t verdict; /* beside the facts: counts with in.answers_id */
    unsigned lookups;
    unsigned nplain; /* decided by the table of plain reads, too */
};

/* One name of the catalogue; nargs -1: any number. */
struct route_test_name {
    enum route_question_kind kind;
    const char *schema;
    const char *name;
    int nargs;
    uint32_t bits;
};

static const struct route_test_name route_test_catalogue[] = {
    {ROUTE_Q_RELATION, "", "t", -1, 0},
    {ROUTE_Q_RELATION, "", "t2", -1, 0},
    {ROUTE_Q_RELATION, "s", "t", -1, 0},
    {ROUTE_Q_RELATION, "", "u", -1, ROUTE_REL_UNLOGGED},
    {ROUTE_Q_RELATION, "", "tmp", -1, ROUTE_REL_TEMP},
    {ROUTE_Q_RELATION, "", "pg_class", -1, ROUTE_REL_CATALOG},
    {ROUTE_Q_RELATION, "", "v_vol", -1, ROUTE_REL_VOLATILE},
    {ROUTE_Q_RELATION, "", "sq", -1, ROUTE_REL_SEQUENCE},
    {ROUTE_Q_RELATION, "", "nope", -1, ROUTE_REL_MISSING},
    {ROUTE_Q_FUNCTION, "", "f_vol", -1, ROUTE_FUNC_VOLATILE},
    {ROUTE_Q_FUNCTION, "", "f_imm", -1, 0},
    {ROUTE_Q_FUNCTION, "s", "f", 1, 0},
    {ROUTE_Q_FUNCTION, "s", "f", 2, ROUTE_FUNC_VOLATILE},
    {ROUTE_Q_FUNCTION, "", "f_nope", -1, ROUTE_FUNC_MISSING},
    {ROUTE_Q_OPERATOR, "", "+", -1, 0},
    {ROUTE_Q_OPERATOR, "", "-", -1, 0},
    {ROUTE_Q_OPERATOR, "", "=", -1, 0},
    {ROUTE_Q_OPERATOR, "", "<>", -1, 0},
    {ROUTE_Q_OPERATOR, "", "==>", -1, ROUTE_FUNC_VOLATILE},
    {ROUTE_Q_OID, "", "t", -1, 1001},
    {ROUTE_Q_OID, "", "t2", -1, 1002},
    {ROUTE_Q_OID, "", "nope", -1, 0},
};

#define ROUTE_TEST_NAMES (sizeof route_test_catalogue / sizeof route_test_catalogue[0])

static inline int route_test_lookup(void *ctx, const struct route_question *q, uint32_t *bits)
{
    struct route_test *t = ctx;
    unsigned i;

    t->lookups++;
    if (q->kind == ROUTE_Q_DATABASE) {
        *bits = 0;
        return 0;
    }
    for (i = 0; i < ROUTE_TEST_NAMES; i++) {
        const struct route_test_name *n = &route_test_catalogue[i];
        if (n->kind != q->kind || !slice_eq_str(q->schema, n->schema) ||
            !slice_eq_str(q->name, n->name) || (n->nargs >= 0 && (uint32_t)n->nargs != q->nargs))
            continue;
        *bits = n->bits;
        return 0;
    }
    return -1;
}

/* The one prepared statement is called p. */
static inline int route_test_prepared(
    void *ctx, struct slice name, struct slice *text, const struct sql_facts **facts)
{
    struct route_test *t = ctx;

    if (t->prepared_sql == NULL || !slice_eq_str(name, "p"))
        return -1;
    *text = slice_of_str(t->prepared_sql);
    ck_assert_int_eq(sql_parse(t->arena, *text, &t->prepared_facts), 0);
    *facts = &t->prepared_facts;
    return 0;
}

static inline struct conf_gen *route_test_conf(int nnodes, const char *settings)
{
    struct conf_report report;
    struct conf_gen *gen;
    struct buf text = {0};
    int i;

    for (i = 0; i < nnodes; i++)
        buf_printf(&text, "backend_hostname%d = 'h'\nbackend_port%d = %d\n", i, i, 5432 + i);
    buf_printf(&text, "%s\n", settings);
    conf_report_init(&report);
    gen = conf_load_text("/nowhere/pgpool.conf", buf_slice(&text), &report);
    if (gen == NULL) {
        struct buf b = {0};
        conf_report_format(&report, &b);
        ck_abort_msg("settings refused: %.*s", (int)b.len, b.data);
    }
    conf_report_fini(&report);
    buf_free(&text);
    return gen;
}

/* A cluster of `nnodes` with its primary on `primary`; the session's node for reads is the highest
 * standby, or the primary when it is alone. */
static inline void route_test_init(
    struct route_test *t, int nnodes, int primary, const char *settings)
{
    struct err err = {0};
    int i;

    memset(t, 0, sizeof *t);
    t->gen = route_test_conf(nnodes, settings);
    t->arena = arena_new("test", 0);
    t->rules = route_rules_new(conf_of(t->gen), &err);
    ck_assert_msg(t->rules != NULL, "%s", err.msg);
    t->view.nnodes = nnodes;
    t->view.primary = primary;
    for (i = 0; i < nnodes; i++) {
        t->view.node[i].status = VIEW_UP;
        t->view.node[i].role = i == primary ? VIEW_ROLE_PRIMARY : VIEW_ROLE_STANDBY;
        t->view.node[i].replayed_lsn = 1000;
    }
    t->in.who.user = slice_of_str("alice");
    t->in.who.database = slice_of_str("shop");
    t->in.who.application_name = slice_of_str("web");
    t->session.balance_node = primary;
    for (i = 0; i < nnodes; i++)
        if (i != primary)
            t->session.balance_node = i;
    t->session.tx_node = VIEW_NO_NODE;
    t->session.now_us = 1000000000;
    t->in.conf = conf_of(t->gen);
    t->in.rules = t->rules;
    t->in.view = &t->view;
    t->in.session = &t->session;
    t->in.lookup = route_test_lookup;
    t->in.lookup_ctx = t;
    t->in.prepared = route_test_prepared;
    t->in.prepared_ctx = t;
}

static inline void route_test_fini(struct route_test *t)
{
    route_rules_free(&t->rules);
    conf_gen_free(&t->gen);
    arena_free(&t->arena);
}

/* What the table of plain reads says of a text that is known, if anything, is what was decided.
 * Tests that set in.answers_id have known texts. */
static inline void route_test_reads(
    struct route_test *t, const char *sql, const struct route_decision *d)
{
    struct route_reads reads;
    int node;

    route_reads_make(&reads, &t->in);
    if (t->in.answers_id == 0 || route_in_tx(&t->session) || reads.has_patterns ||
        route_known_of(slice_of_str(sql), &t->facts) != t->in.answers_id)
        return;
    node = route_reads_node(&reads, &t->view, &t->session, t->in.random);
    if (node == VIEW_NO_NODE)
        return;
    t->nplain++;
    ck_assert_msg(node == d->node && d->class == ROUTE_EITHER && !d->must_wait && !d->is_write &&
                      (d->reason == ROUTE_R_BALANCED || d->reason == ROUTE_R_PREFERENCE),
        "%s: node %d in the table; decided: node %d, %s", sql, node, d->node,
        route_reason_text(d->reason));
}

static inline void route_test_query(struct route_test *t, const char *sql, struct route_decision *d)
{
    arena_reset(t->arena);
    (void)sql_parse(t->arena, slice_of_str(sql), &t->facts);
    t->facts.verdict = &t->verdict;
    route_query(&t->in, slice_of_str(sql), &t->facts, d);
    route_test_reads(t, sql, d);
}

#endif
