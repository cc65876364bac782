/* SPDX-License-Identifier: PostgreSQL
 * test_route_parts.c: what the router keeps: compiled rules, traces of sessions, marks of written
 * tables, the cache of answers. */
#include "config.h"

#include <limits.h>

#include "base/hash.h"
#include "base/mem.h"
#include "route/route_marks.h"
#include "route/route_oracle.h"
#include "route/route_shared.h"
#include "route/route_trace.h"
#include "route_test.h"
#include "run_suite.h"

static void note(struct route_test *t, struct route_trace **trace, const char *sql, bool in_tx)
{
    arena_reset(t->arena);
    ck_assert_int_eq(sql_parse(t->arena, slice_of_str(sql), &t->facts), 0);
    route_trace_note(trace, t->rules, slice_of_str(sql), &t->facts.stmts[0], in_tx);
}

static bool wrote(const struct route_trace *trace, const char *schema, const char *name)
{
    return route_trace_wrote(trace, slice_of_str(schema), slice_of_str(name));
}

static bool is_temp(const struct route_trace *trace, const char *name)
{
    return route_trace_is_temp(trace, slice_of_str(""), slice_of_str(name));
}

/* What may be another thing behind a statement for who has parsed before. */
START_TEST(types_and_names)
{
    static const struct {
        const char *sql;
        unsigned changes;
        unsigned with_temp; /* of a session that has temporary tables */
    } rows[] = {
        {"select 1", 0, 0},
        {"create temp table t(a int)", 0, 0},
        {"drop table t", ROUTE_DDL_TYPES, 0},
        {"drop extension e cascade", ROUTE_DDL_TYPES, 0},
        {"alter table t alter a type text", ROUTE_DDL_TYPES, ROUTE_DDL_TYPES},
        {"alter type m add value 'x'", ROUTE_DDL_TYPES, ROUTE_DDL_TYPES},
        {"alter table t rename to u", 3, 3},
        {"alter table t set schema s", 3, 3},
        {"create extension e", 3, 3},
        {"create domain d as int", 3, 3},
        {"create table t as select 1", ROUTE_DDL_NAMES, ROUTE_DDL_NAMES},
        {"select 1 into t", ROUTE_DDL_NAMES, ROUTE_DDL_NAMES},
        {"do 'x'", 3, 3},
        {"commit prepared 'x'", 3, 3},
        {"call p()", 0, 0},
        {"grant select on t to u", 0, 0},
    };
    struct arena *arena = arena_new("test", 1 << 20);
    struct sql_facts facts;
    struct slice sql;
    size_t i;

    for (i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        sql = slice_of_str(rows[i].sql);
        arena_reset(arena);
        ck_assert_int_eq(sql_parse(arena, sql, &facts), 0);
        ck_assert_msg(route_ddl_of(&facts.stmts[0], sql, false) == rows[i].changes &&
                          route_ddl_of(&facts.stmts[0], sql, true) == rows[i].with_temp,
            "%s", rows[i].sql);
    }
    arena_free(&arena);
}
END_TEST

/* Rule 6, dml_adaptive: tables written in the transaction, and what depends on them. */
START_TEST(written_tables)
{
    struct route_trace *trace = NULL;
    struct route_test t;
    struct route_decision d;

    route_test_init(&t, 3, 2,
        "disable_load_balance_on_write = 'dml_adaptive'\n"
        "dml_adaptive_object_relationship_list = 'Orders:totals,bump():counters,s.a:b'");
    note(&t, &trace, "select * from t", true);
    note(&t, &trace, "insert into t values (1)", false);
    ck_assert_ptr_null(trace);
    note(&t, &trace, "insert into s.t select * from t2", true);
    ck_assert(wrote(trace, "", "t") && wrote(trace, "s", "t") && !wrote(trace, "x", "t"));
    ck_assert(!wrote(trace, "", "t2"));
    note(&t, &trace, "update orders set a = 1", true);
    ck_assert(wrote(trace, "", "orders") && wrote(trace, "", "totals"));
    note(&t, &trace, "select bump()", true);
    ck_assert(wrote(trace, "", "counters") && !wrote(trace, "", "bump"));
    note(&t, &trace, "delete from x.a", true);
    ck_assert(!wrote(trace, "", "b"));
    note(&t, &trace, "with w as (delete from c1 returning *) select * from w, c2", true);
    ck_assert(wrote(trace, "", "c1") && !wrote(trace, "", "c2"));
    note(&t, &trace, "copy k from stdin", true);
    note(&t, &trace, "alter table al add b int", true);
    note(&t, &trace, "truncate tr1, tr2", true);
    ck_assert(wrote(trace, "", "k") && wrote(trace, "", "al") && wrote(trace, "", "tr2"));
    t.session.tx = ROUTE_TX_OPEN;
    t.session.wrote_in_tx = true;
    t.session.trace = trace;
    route_test_query(&t, "select * from t2, totals", &d);
    ck_assert_int_eq(d.reason, ROUTE_R_TABLE_WRITTEN_IN_TX);
    route_test_query(&t, "select * from t2", &d);
    ck_assert(d.reason == ROUTE_R_TX_PRIMARY && d.may_leave_tx);
    route_trace_on_commit(trace);
    ck_assert(!wrote(trace, "", "t") && !wrote(trace, "", "totals"));
    route_trace_free(&trace);
    route_test_fini(&t);
}
END_TEST

START_TEST(many_written_tables)
{
    struct route_trace *trace = NULL;
    struct route_test t;
    char sql[64];
    int i;

    route_test_init(&t, 1, 0, "");
    for (i = 0; i < 300; i++) {
        snprintf(sql, sizeof sql, "delete from t%d", i);
        note(&t, &trace, sql, true);
        ck_assert(wrote(trace, "", sql + strlen("delete from ")));
    }
    ck_assert(wrote(trace, "", "never_heard_of")); /* full: everything counts as written */
    route_trace_on_rollback(trace);
    ck_assert(!wrote(trace, "", "never_heard_of"));
    route_trace_free(&trace);
    route_test_fini(&t);
}
END_TEST

/* Rule 6, dml_adaptive: who wrote without saying where wrote everywhere. */
START_TEST(unnamed_writes)
{
    static const char *const unnamed[] = {"call pr(1)", "do ''", "execute unheard_of", "execute p",
        "execute p; select 1", "insert into t values (1); selekt"};
    struct route_trace *trace = NULL;
    struct route_test t;
    struct route_decision d;
    size_t i;

    route_test_init(&t, 3, 2, "disable_load_balance_on_write = 'dml_adaptive'");
    t.prepared_sql = "prepare p as insert into t values (1)";
    for (i = 0; i < sizeof unnamed / sizeof unnamed[0]; i++) {
        route_test_query(&t, unnamed[i], &d);
        ck_assert_msg(d.is_write && d.writes_unnamed, "%s", unnamed[i]);
    }
    route_test_query(&t, "insert into t values (1)", &d);
    ck_assert(d.is_write && !d.writes_unnamed);
    t.prepared_sql = "prepare p as select 1";
    route_test_query(&t, "execute p", &d);
    ck_assert(!d.is_write && !d.writes_unnamed);
    note(&t, &trace, "insert into t values (1)", true);
    ck_assert(wrote(trace, "", "t") && !wrote(trace, "", "t2"));
    route_trace_note_unnamed(&trace);
    ck_assert(wrote(trace, "", "t2"));
    route_trace_on_commit(trace);
    ck_assert(!wrote(trace, "", "t2"));
    route_trace_free(&trace);
    route_trace_note_unnamed(&trace);
    ck_assert(wrote(trace, "", "t2"));
    route_trace_free(&trace);
    route_test_fini(&t);
}
END_TEST

/* Temporary types: made in pg_temp, or rows of temporary tables. */
START_TEST(temporary_types)
{
    static const char *const named[] = {"select 1.2::shadow", "select cast(1 as Shadow)",
        "select shadow '1'", "select \"shadow\" '1'", "select '{1}'::shadow[]",
        "select '{1}'::_shadow", "select * from json_to_record('{}') as x(a shadow)",
        "select u&\"sh\\0061dow\" '1'", "select null::rows_of", "select 'shadow'::regtype",
        "select 1::pg_temp.other"};
    static const char *const others[] = {"select 1.2::numeric", "select 'shadow'",
        "select shadows from t2", "select 1 -- shadow",
        "select a.shadow, a.\"shadow\", 1::s.shadow from t2 a"};
    struct route_trace *trace = NULL;
    struct route_test t;
    struct route_decision d;
    size_t i;

    route_test_init(&t, 3, 2, "");
    note(&t, &trace, "create domain s.elsewhere as int", false);
    ck_assert_ptr_null(trace);
    note(&t, &trace, "create domain pg_temp.shadow as numeric(3, 1)", false);
    note(&t, &trace, "create temp table rows_of (a int)", false);
    t.session.trace = trace;
    for (i = 0; i < sizeof named / sizeof named[0]; i++) {
        route_test_query(&t, named[i], &d);
        ck_assert_msg(d.reason == ROUTE_R_TEMP_TABLE, "%s: %d", named[i], (int)d.reason);
    }
    for (i = 0; i < sizeof others / sizeof others[0]; i++) {
        route_test_query(&t, others[i], &d);
        ck_assert_msg(d.reason == ROUTE_R_BALANCED, "%s: %d", others[i], (int)d.reason);
    }
    note(&t, &trace, "create type mood as enum ('a')", false);
    route_test_query(&t, "select 'a'::mood", &d);
    ck_assert_int_eq(d.reason, ROUTE_R_TEMP_TABLE);
    route_test_query(&t, "select 'a'::humour", &d);
    ck_assert_int_eq(d.reason, ROUTE_R_BALANCED);
    note(&t, &trace, "alter type mood rename to humour", false);
    route_test_query(&t, "select 'a'::humour", &d);
    ck_assert_int_eq(d.reason, ROUTE_R_TEMP_TABLE);
    route_trace_free(&trace);
    route_test_fini(&t);
}
END_TEST

/* check_temp_table = trace: created and dropped, with transactions. */
START_TEST(temporary_tables)
{
    struct route_trace *trace = NULL;
    struct route_test t;
    struct route_decision d;

    route_test_init(&t, 2, 1, "check_temp_table = trace");
    note(&t, &trace, "create temp table t (a int)", false);
    ck_assert(is_temp(trace, "t") && !is_temp(trace, "t2"));
    ck_assert(!route_trace_is_temp(trace, slice_of_str("s"), slice_of_str("t")));
    t.session.trace = trace;
    route_test_query(&t, "select * from t", &d);
    ck_assert(d.reason == ROUTE_R_TEMP_TABLE && d.node == 1);
    route_test_query(&t, "select * from s.t, t2", &d);
    ck_assert(d.reason == ROUTE_R_BALANCED && d.node == 0);
    note(&t, &trace, "drop table t", true);
    ck_assert(!is_temp(trace, "t"));
    route_trace_on_rollback(trace);
    ck_assert(is_temp(trace, "t"));
    note(&t, &trace, "drop table t", true);
    route_trace_on_rollback_to(trace);
    ck_assert(is_temp(trace, "t"));
    note(&t, &trace, "DROP TABLE IF EXISTS pg_temp.\"t\" cascade", true);
    route_trace_on_commit(trace);
    ck_assert(!is_temp(trace, "t") && !route_trace_has_temp(trace));
    note(&t, &trace, "create temp table a1 as select 1", true);
    note(&t, &trace, "select 1 into temp a2", true);
    note(&t, &trace, "create table pg_temp.a3 (a int)", true);
    ck_assert(is_temp(trace, "a1") && is_temp(trace, "a2") && is_temp(trace, "a3"));
    route_trace_on_rollback(trace);
    ck_assert(!route_trace_has_temp(trace));
    note(&t, &trace, "create temp table a1 as select 1", true);
    route_trace_on_commit(trace);
    ck_assert(is_temp(trace, "a1"));
    note(&t, &trace, "drop table s.a1", false);
    ck_assert(is_temp(trace, "a1"));
    note(&t, &trace, "drop table x, a1", false);
    ck_assert(!is_temp(trace, "a1"));
    note(&t, &trace, "create temp table a1 as select 1", false);
    route_trace_on_discard(trace);
    ck_assert(!route_trace_has_temp(trace));
    route_trace_free(&trace);
    route_test_fini(&t);
}
END_TEST

#define S ((int64_t)1000000)

/* Rule 6, dml_adaptive_global, and a node that is drawn for each statement. */
START_TEST(marks_by_statement)
{
    struct route_test t;
    struct route_decision d;
    const struct route_marks *all[1];
    struct route_marks *m;

    route_test_init(&t, 3, 2,
        "disable_load_balance_on_write = 'dml_adaptive_global'\nstatement_level_load_balance = on\n"
        "track_table_mutation_cold_start_duration = 0");
    m = route_marks_init(mem_alloc_zero(route_marks_bytes(t.in.conf)), t.in.conf, S);
    all[0] = m;
    t.in.marks = all;
    t.in.nmarks = 1;
    t.session.balance_node = 0;
    t.session.now_us = 3 * S;
    t.view.node[1].delay_us = S;
    t.view.node[1].delay_is_time = true;
    route_marks_add(m, t.in.conf, route_marks_key(slice_of_str("shop"), 1001), 2 * S);
    route_test_query(&t, "select * from t", &d);
    ck_assert_int_eq(d.reason, ROUTE_R_TABLE_WRITTEN_LATELY);
    mem_free(m);
    route_test_fini(&t);
}
END_TEST

/* Rule 6, dml_adaptive_global: marks run out by lag and by age; cold start. */
START_TEST(marks)
{
    struct route_test t;
    struct route_decision d;
    struct route_marks *m[2];
    const struct conf *conf;
    void *mem[2];
    uint64_t key = route_marks_key(slice_of_str("shop"), 1001);
    int64_t now = 1000 * S;
    int i;

    route_test_init(&t, 3, 2,
        "disable_load_balance_on_write = 'dml_adaptive_global'\n"
        "track_table_mutation_ttl_factor = 4\ntrack_table_mutation_max_staleness = 30s\n"
        "track_table_mutation_cold_start_duration = 2s");
    conf = t.in.conf;
    for (i = 0; i < 2; i++) {
        mem[i] = mem_alloc_zero(route_marks_bytes(conf));
        m[i] = route_marks_init(mem[i], conf, now);
    }
    t.in.marks = (const struct route_marks *const *)m;
    t.in.nmarks = 2;
    t.session.now_us = now + 1;
    route_test_query(&t, "select * from t", &d);
    ck_assert(d.reason == ROUTE_R_TRACKING_COLD && d.node == 2);
    route_test_query(&t, "select 1", &d);
    ck_assert(d.reason == ROUTE_R_BALANCED && d.node == 1);
    t.session.now_us = now = now + 2 * S;
    route_test_query(&t, "select * from t", &d);
    ck_assert(d.reason == ROUTE_R_BALANCED && d.node == 1);
    route_marks_add(m[1], conf, key, now); /* another worker's table */
    route_test_query(&t, "select * from t2", &d);
    ck_assert_int_eq(d.reason, ROUTE_R_BALANCED);
    route_test_query(&t, "select * from t2, t", &d);
    ck_assert(d.reason == ROUTE_R_TABLE_WRITTEN_LATELY && d.node == 2);
    t.session.now_us = now + 100001; /* no lag: the least span, 100 ms */
    route_test_query(&t, "select * from t", &d);
    ck_assert_int_eq(d.reason, ROUTE_R_BALANCED);
    t.view.node[1].delay_us = S;
    t.view.node[1].delay_is_time = true;
    route_test_query(&t, "select * from t", &d);
    ck_assert_int_eq(d.reason, ROUTE_R_TABLE_WRITTEN_LATELY);
    t.session.balance_node = VIEW_NO_NODE; /* whom the first read gets is not drawn yet */
    route_test_query(&t, "select * from t", &d);
    ck_assert_int_eq(d.reason, ROUTE_R_TABLE_WRITTEN_LATELY);
    t.session.balance_node = 0; /* which does not lag */
    route_test_query(&t, "select * from t", &d);
    ck_assert_int_eq(d.reason, ROUTE_R_BALANCED);
    t.session.balance_node = 1;
    t.session.now_us = now + 4 * S + 1;
    route_test_query(&t, "select * from t", &d);
    ck_assert_int_eq(d.reason, ROUTE_R_BALANCED);
    for (i = 0; i <= 31; i++)
        route_marks_add(m[1], conf, key, now + i * S);
    t.session.now_us = now + 31 * S;
    route_test_query(&t, "select * from t", &d);
    ck_assert_int_eq(d.reason, ROUTE_R_TABLE_WRITTEN_LATELY); /* a new span began after 30 s */
    route_test_query(&t, "select * from t_unknown", &d);
    ck_assert(d.must_ask);
    for (i = 0; i < 2; i++)
        mem_free(mem[i]);
    route_test_fini(&t);
}
END_TEST

START_TEST(marks_age)
{
    struct route_test t;
    struct route_marks *m;
    const struct route_marks *all[1];
    int64_t now = 1000 * S;
    int64_t hour = 3600 * S;
    uint64_t key = 7;
    unsigned i;
    unsigned kept = 0;

    route_test_init(&t, 2, 0,
        "track_table_mutation_max_staleness = 30s\n"
        "track_table_mutation_table_buckets = 64\n"
        "track_table_mutation_table_size = 128");
    m = route_marks_init(mem_alloc_zero(route_marks_bytes(t.in.conf)), t.in.conf, now);
    all[0] = m;
    route_marks_add(m, t.in.conf, key, now);
    route_marks_add(m, t.in.conf, key, now + 29 * S);
    ck_assert(route_marks_is_fresh(all, 1, t.in.conf, key, now + 30 * S, hour));
    ck_assert(!route_marks_is_fresh(all, 1, t.in.conf, key, now + 30 * S + 1, hour));
    for (i = 1; i <= 1000; i++)
        route_marks_add(m, t.in.conf, 64 * i + 7, now + 60 * S + i);
    for (i = 1; i <= 1000; i++)
        kept += route_marks_is_fresh(all, 1, t.in.conf, 64 * i + 7, now + 61 * S, hour) ? 1 : 0;
    ck_assert_uint_eq(kept, 2); /* the bucket holds two: the newest */
    ck_assert(route_marks_is_fresh(all, 1, t.in.conf, 64 * 1000 + 7, now + 61 * S, hour));
    ck_assert_int_eq(route_marks_ttl_us(t.in.conf, &t.view, 1), 100000);
    t.view.node[1].delay_us = hour;
    ck_assert_int_eq(route_marks_ttl_us(t.in.conf, &t.view, 1), hour);
    t.view.node[1].delay_us = 0;
    t.view.node[1].delay_bytes = 5; /* not older than the time between two checks */
    ck_assert_int_eq(route_marks_ttl_us(t.in.conf, &t.view, 1), 50 * S);
    mem_free(m);
    route_test_fini(&t);
}
END_TEST

static struct route_scope scope(const char *db, const char *path)
{
    uint64_t h = hash_bytes(db, strlen(db), 1);

    return (struct route_scope){h, hash_bytes(path, strlen(path), h)};
}

static void put(struct route_cache *c, struct route_scope where, const struct route_question *q,
    int64_t now_us, uint32_t bits)
{
    route_cache_put(c, where, q, route_cache_valid_until(c, q, now_us, bits), bits);
}

static int cached(struct route_cache *c, const char *db, const char *path,
    const struct route_question *q, int64_t now_us)
{
    uint32_t bits = 0;

    if (route_cache_get(c, scope(db, path), q, now_us, &bits) == -1)
        return -1;
    return (int)bits;
}

static struct route_question relation(const char *schema, const char *name)
{
    return (struct route_question){
        .kind = ROUTE_Q_RELATION, .schema = slice_of_str(schema), .name = slice_of_str(name)};
}

START_TEST(cache_keys)
{
    struct route_cache *c = route_cache_new(256, 0);
    struct route_cache_stats stats;
    struct route_question t = relation("", "t");
    struct route_question st = relation("s", "t");
    struct route_question f = {.kind = ROUTE_Q_FUNCTION, .name = slice_of_str("t"), .nargs = 1};

    f.schema = slice_of_str("");
    put(c, scope("d", "public"), &t, 0, ROUTE_REL_UNLOGGED);
    ck_assert_int_eq(cached(c, "d", "public", &t, INT64_MAX - 1), ROUTE_REL_UNLOGGED);
    ck_assert_int_eq(cached(c, "d", "s, public", &t, 0), -1);
    ck_assert_int_eq(cached(c, "e", "public", &t, 0), -1);
    ck_assert_int_eq(cached(c, "d", "public", &st, 0), -1);
    ck_assert_int_eq(cached(c, "d", "public", &f, 0), -1);
    put(c, scope("d", "public"), &st, 0, 0);
    ck_assert_int_eq(cached(c, "d", "another path", &st, 0), 0); /* a schema needs no path */
    put(c, scope("d", "public"), &f, 0, ROUTE_FUNC_VOLATILE);
    ck_assert_int_eq(cached(c, "d", "public", &f, 0), ROUTE_FUNC_VOLATILE);
    f.nargs = 2;
    ck_assert_int_eq(cached(c, "d", "public", &f, 0), -1);
    route_cache_stats(c, &stats);
    ck_assert_uint_eq(stats.hits, 3);
    ck_assert_uint_eq(stats.misses, 5);
    ck_assert_uint_eq(stats.entries, 3);
    put(c, scope("d", "public"), &t, 0, 0); /* a new answer replaces the old */
    ck_assert_int_eq(cached(c, "d", "public", &t, 0), 0);
    route_cache_clear(c);
    route_cache_stats(c, &stats);
    ck_assert_uint_eq(stats.entries, 0);
    ck_assert_int_eq(cached(c, "d", "public", &t, 0), -1);
    route_cache_free(&c);
    ck_assert_ptr_null(c);
}
END_TEST

#define SHARERS 2

struct sharers {
    struct route_shared *own[SHARERS];
    size_t bytes;
};

static struct sharers sharers_new(const struct conf *conf)
{
    struct sharers s = {.bytes = route_shared_bytes(conf)};
    unsigned i;

    for (i = 0; i < SHARERS; i++) {
        s.own[i] = calloc(1, s.bytes);
        ck_assert_ptr_nonnull(s.own[i]);
    }
    return s;
}

static int heard(
    const struct sharers *s, const struct route_question *q, uint64_t change, int64_t now_us)
{
    const struct route_shared *all[SHARERS] = {s->own[0], s->own[1]};
    struct route_answer a;

    if (route_shared_get(all, SHARERS, scope("d", "public"), q, change, now_us, &a) == -1)
        return -1;
    return (int)a.bits;
}

START_TEST(shared_answers)
{
    struct conf conf = {.relcache_size = 8};
    struct sharers s = sharers_new(&conf);
    struct route_question t = relation("", "t");
    struct route_question far = relation("s", "a name of more bytes than any name of a server has, "
                                              "with all that stands in front of it, and behind it, "
                                              "so that both together are too long to be kept");
    struct route_answer a = {.change = 5, .until_us = 10 * S, .bits = ROUTE_REL_UNLOGGED};

    ck_assert_int_eq(heard(&s, &t, 5, 0), -1); /* nobody has begun */
    (void)route_shared_init(s.own[0], &conf);
    (void)route_shared_init(s.own[1], &conf);
    route_shared_put(s.own[1], scope("d", "public"), &t, &a);
    ck_assert_int_eq(heard(&s, &t, 5, 9 * S), ROUTE_REL_UNLOGGED);
    ck_assert_int_eq(heard(&s, &t, 5, 10 * S), -1); /* too old */
    ck_assert_int_eq(heard(&s, &t, 6, 0), -1);      /* the schema has changed since */
    t.kind = ROUTE_Q_FUNCTION;
    ck_assert_int_eq(heard(&s, &t, 5, 0), -1);
    t.kind = ROUTE_Q_RELATION;
    a.change = 6;
    a.bits = 0;
    route_shared_put(s.own[0], scope("d", "public"), &t, &a);
    ck_assert_int_eq(heard(&s, &t, 5, 0), ROUTE_REL_UNLOGGED);
    ck_assert_int_eq(heard(&s, &t, 6, 0), 0);
    route_shared_put(s.own[0], scope("d", "public"), &far, &a);
    ck_assert_int_eq(heard(&s, &far, 6, 0), -1);
    /* A worker that died in the middle of it leaves nothing behind. */
    memset((char *)(void *)s.own[0] + 8, 0xff, s.bytes - 8);
    ck_assert_int_eq(heard(&s, &t, 6, 0), -1);
    (void)route_shared_init(s.own[0], &conf);
    ck_assert_int_eq(heard(&s, &t, 6, 0), -1);
    route_shared_put(s.own[0], scope("d", "public"), &t, &a);
    ck_assert_int_eq(heard(&s, &t, 6, 0), 0);
    free(s.own[0]);
    free(s.own[1]);
}
END_TEST

START_TEST(shared_answers_are_bounded)
{
    struct conf conf = {.relcache_size = 64};
    struct sharers s = sharers_new(&conf);
    struct route_answer a = {.until_us = S};
    char name[16];
    unsigned known = 0;
    unsigned i;

    (void)route_shared_init(s.own[0], &conf);
    for (i = 0; i < 1000; i++) {
        (void)snprintf(name, sizeof name, "t%u", i);
        struct route_question q = relation("", name);

        a.bits = i;
        route_shared_put(s.own[0], scope("d", "public"), &q, &a);
        ck_assert_int_eq(heard(&s, &q, 0, 0), (int)i);
    }
    for (i = 0; i < 1000; i++) {
        (void)snprintf(name, sizeof name, "t%u", i);
        struct route_question q = relation("", name);

        known += heard(&s, &q, 0, 0) == (int)i;
    }
    ck_assert_uint_le(known, 64);
    ck_assert_uint_ge(known, 32);
    conf.relcache_size = INT_MAX; /* shared memory has an end */
    ck_assert_uint_lt(route_shared_bytes(&conf), 64U << 20);
    free(s.own[0]);
    free(s.own[1]);
}
END_TEST

START_TEST(cache_expiry)
{
    struct route_cache *c = route_cache_new(256, 5000);
    struct route_cache *forever = route_cache_new(256, 0);
    struct route_question t = relation("", "t");

    put(c, scope("", ""), &t, 10 * S, 0);
    ck_assert_int_eq(cached(c, "", "", &t, 15 * S - 1), 0);
    ck_assert_int_eq(cached(c, "", "", &t, 15 * S), -1);
    /* What other sessions may change without a word holds for a second only. */
    put(forever, scope("", ""), &t, 10 * S, ROUTE_REL_TEMP);
    ck_assert_int_eq(cached(forever, "", "", &t, 11 * S - 1), ROUTE_REL_TEMP);
    ck_assert_int_eq(cached(forever, "", "", &t, 11 * S), -1);
    put(forever, scope("", ""), &t, 10 * S, ROUTE_REL_MISSING);
    ck_assert_int_eq(cached(forever, "", "", &t, 11 * S), -1);
    route_cache_free(&c);
    route_cache_free(&forever);
}
END_TEST

START_TEST(cache_id)
{
    struct route_cache *c = route_cache_new(256, 5000);
    struct route_question t = relation("", "t");
    uint64_t id = route_cache_id(c, scope("d", "public"), 0);

    ck_assert_uint_ne(id, 0);
    ck_assert_uint_ne(route_cache_id(c, scope("d", "other"), 0), id);
    ck_assert_uint_ne(route_cache_id(c, scope("e", "public"), 0), id);
    ck_assert_uint_eq(route_cache_id(c, scope("d", "public"), 100 * S), id);
    put(c, scope("d", "public"), &t, 10 * S, 0);
    ck_assert_uint_ne(route_cache_id(c, scope("d", "public"), 10 * S), id);
    id = route_cache_id(c, scope("d", "public"), 10 * S);
    ck_assert_int_eq(cached(c, "d", "public", &t, 11 * S), 0);
    ck_assert_uint_eq(route_cache_id(c, scope("d", "public"), 15 * S - 1), id);
    ck_assert_uint_ne(route_cache_id(c, scope("d", "public"), 15 * S), id); /* it has expired */
    id = route_cache_id(c, scope("d", "public"), 15 * S);
    ck_assert_uint_eq(route_cache_id(c, scope("d", "public"), 16 * S), id);
    route_cache_touch(c);
    ck_assert_uint_ne(route_cache_id(c, scope("d", "public"), 16 * S), id);
    route_cache_free(&c);
}
END_TEST

START_TEST(cache_size)
{
    struct route_cache *c = route_cache_new(200, 0);
    struct route_cache *least = route_cache_new(0, 0);
    struct route_cache_stats stats;
    char name[32];
    int i;

    for (i = 0; i < 1000; i++) {
        struct route_question q;
        snprintf(name, sizeof name, "t%d", i);
        q = relation("", name);
        put(c, scope("", ""), &q, 0, 0);
        q = relation("", "t0"); /* used all the time: stays */
        ck_assert_int_eq(cached(c, "", "", &q, 0), 0);
    }
    route_cache_stats(c, &stats);
    ck_assert_uint_eq(stats.entries, 200);
    ck_assert_uint_eq(stats.evictions, 800);
    /* All the names of one statement fit, however small it is made. */
    for (i = 0; i < 100; i++) {
        struct route_question q;
        snprintf(name, sizeof name, "t%d", i);
        q = relation("", name);
        put(least, scope("", ""), &q, 0, 0);
    }
    for (i = 0; i < 100; i++) {
        struct route_question q;
        snprintf(name, sizeof name, "t%d", i);
        q = relation("", name);
        ck_assert_int_eq(cached(least, "", "", &q, 0), 0);
    }
    route_cache_free(&c);
    route_cache_free(&least);
}
END_TEST

START_TEST(bad_rules)
{
    static const char *const bad[] = {
        "write_function_list = 'a('",
        "read_only_function_list = '['",
        "primary_routing_query_pattern_list = '*['",
        "app_name_redirect_preference_list = 'web'",
        "app_name_redirect_preference_list = 'web:'",
        "app_name_redirect_preference_list = ':1'",
        "app_name_redirect_preference_list = 'web:other'",
        "database_redirect_preference_list = 'web:1(2)'",
        "database_redirect_preference_list = 'web:1()'",
        "database_redirect_preference_list = 'web:1(x)'",
        "user_redirect_preference_list = 'web:128'",
        "user_redirect_preference_list = 'web:1x'",
        "user_redirect_preference_list = 'w[eb:1'",
        "dml_adaptive_object_relationship_list = 'a'",
        "dml_adaptive_object_relationship_list = 'a:'",
    };
    unsigned i;

    /* Whoever reads the file is told, with the line; so the router never meets them. */
    for (i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct conf_report report;
        struct buf text = {0};
        char name[64];

        conf_report_init(&report);
        buf_printf(&text, "backend_hostname0 = 'h'\nbackend_port0 = 5432\n%s\n", bad[i]);
        ck_assert_msg(conf_load_text("/nowhere/pgpool.conf", buf_slice(&text), &report) == NULL,
            "accepted: %s", bad[i]);
        snprintf(name, sizeof name, "\"%.*s\"", (int)strcspn(bad[i], " "), bad[i]);
        ck_assert_int_eq(report.nerrors, 1);
        ck_assert_int_eq(report.issue[0].line, 3);
        ck_assert_msg(
            strstr(report.issue[0].text, name) != NULL, "%s: %s", bad[i], report.issue[0].text);
        conf_report_fini(&report);
        buf_free(&text);
    }
}
END_TEST

START_TEST(oracle_rows)
{
    unsigned i;
    uint32_t bits;

    ck_assert_int_eq(
        route_oracle_parse_row(slice_of_str("2"), slice_of_str("4294967295"), 3, &i, &bits), 0);
    ck_assert(i == 2 && bits == UINT32_MAX);
    ck_assert_int_eq(
        route_oracle_parse_row(slice_of_str("3"), slice_of_str("1"), 3, &i, &bits), -1);
    ck_assert_int_eq(route_oracle_parse_row(slice_of_str(""), slice_of_str("1"), 3, &i, &bits), -1);
    ck_assert_int_eq(
        route_oracle_parse_row(slice_of_str("-1"), slice_of_str("1"), 3, &i, &bits), -1);
    ck_assert_int_eq(
        route_oracle_parse_row(slice_of_str("1"), slice_of_str("4294967296"), 3, &i, &bits), -1);
    ck_assert_int_eq(
        route_oracle_parse_row(slice_of_str("1"), slice_of_str("x"), 3, &i, &bits), -1);
}
END_TEST

/* Every reason and class has a text. */
START_TEST(texts)
{
    int i;

    for (i = 0; i < ROUTE_REASON_COUNT; i++)
        ck_assert_int_gt((int)strlen(route_reason_text((enum route_reason)i)), 5);
    ck_assert_str_eq(route_class_text(ROUTE_PRIMARY), "primary");
    ck_assert_str_eq(route_class_text(ROUTE_EITHER), "either");
    ck_assert_str_eq(route_class_text(ROUTE_SESSION), "session");
    ck_assert_str_eq(route_class_text(ROUTE_TX), "transaction");
}
END_TEST

/* Where a string ends may depend on settings: only then, and then to the primary. */
START_TEST(backslashes)
{
    static const char *const same[] = {
        "select 'a\\b'", "select '\\'", "select 'a\\', 'b'", "select 1"};
    struct route_test t;
    struct route_decision d;
    size_t i;

    route_test_init(&t, 3, 2, "");
    t.in.answers_id = 7;
    for (i = 0; i < 2; i++) {
        route_test_query(&t, "select 'a', '; delete from t --'", &d);
        ck_assert(d.reason == ROUTE_R_BALANCED && d.known == 7);
        route_test_query(&t, "select 'a\\', '; delete from t --'", &d);
        ck_assert(d.reason == ROUTE_R_BALANCED && d.node == 1 && d.known == 0);
        ck_assert_uint_eq(
            route_known_of(slice_of_str("select 'a\\', '; delete from t --'"), &t.facts), 0);
    }
    t.in.reads_otherwise = true;
    for (i = 0; i < 3; i++) {
        route_test_query(&t, i == 0 ? "select '\\'" : i == 1 ? "selec '\\'" : "--\\'", &d);
        ck_assert(d.class == ROUTE_PRIMARY && d.node == 2 && d.is_write && d.writes_unnamed);
        ck_assert(d.runs_code && d.known == 0);
        ck_assert(d.reason == (i == 1 ? ROUTE_R_SYNTAX : ROUTE_R_BACKSLASH));
    }
    for (i = 0; i < sizeof same / sizeof same[0]; i++)
        ck_assert(route_text_may_differ(slice_of_str(same[i])) == (i == 1 || i == 2));
    ck_assert(
        !route_text_may_differ(slice_of("'\\'", 2)) && !route_text_may_differ(slice_of(NULL, 0)));
    route_test_fini(&t);
}
END_TEST

static const struct {
    const char *text;
    bool leaves;
} traces[] = {{"select pg_replication_origin_session_setup('x')", true},
    {"select PG_BACKUP_START('x')", true}, {"select pg_catalog.pg_start_backup('x')", true},
    {"select pg_create_physical_replication_slot('x', false, true)", true},
    {"select dblink_connect_u('x')", true}, {"DBLINK_connect", true},
    {"select pg_backup_stop()", false}, {"select a_b, pg_sleep(1), _pg_, _", false}, {"", false},
    {"_", false}, {"g_backup_start", false}, {"k_connect", false},
    {"select slot_name from pg_replication_slots", false}};

START_TEST(traces_of_functions)
{
    ck_assert_int_eq(route_leaves_traces(slice_of_str(traces[_i].text)), traces[_i].leaves);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("route_parts");
    TCase *tc = tcase_create("parts");

    tcase_add_test(tc, types_and_names);
    tcase_add_test(tc, written_tables);
    tcase_add_test(tc, many_written_tables);
    tcase_add_test(tc, unnamed_writes);
    tcase_add_test(tc, temporary_types);
    tcase_add_test(tc, temporary_tables);
    tcase_add_test(tc, marks);
    tcase_add_test(tc, marks_by_statement);
    tcase_add_test(tc, marks_age);
    tcase_add_test(tc, cache_keys);
    tcase_add_test(tc, cache_expiry);
    tcase_add_test(tc, shared_answers);
    tcase_add_test(tc, shared_answers_are_bounded);
    tcase_add_test(tc, cache_id);
    tcase_add_test(tc, cache_size);
    tcase_add_test(tc, bad_rules);
    tcase_add_test(tc, oracle_rows);
    tcase_add_test(tc, texts);
    tcase_add_test(tc, backslashes);
    tcase_add_loop_test(tc, traces_of_functions, 0, (int)(sizeof traces / sizeof traces[0]));
    suite_add_tcase(suite, tc);
    return run_suite(suite);
}
