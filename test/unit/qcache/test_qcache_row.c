/* SPDX-License-Identifier: PostgreSQL
 * test_qcache_row.c: rows that statements are restricted to, by their texts, and the cells that
 * stand for them: who writes a row meets whoever reads it, by whatever column. */
#include "config.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/mem.h"
#include "cache/cache_value.h"
#include "qcache/qcache_row.h"

#define DB  UINT64_C(77)
#define OID 4711U

struct text_case {
    const char *text;
    const char *found; /* column=value, ...; value of a parameter: $n */
};

static const struct text_case texts[] = {
    {"select * from t where id = 7", "id=7"},
    {"select v from s.t where id=$1", "id=$1"},
    {"SELECT a, (b + 1) FROM \"T\" AS x WHERE x.\"Id\" = 'abc' ORDER BY 1", "Id='abc'"},
    {"select count(*) from t x where x.id = $2 and v like 'a%' and n = 3 limit 1", "id=$2 n=3"},
    {"select extract(year from d) from t where id = 7;", "id=7"},
    {"/*x*/ select * from t where v is not null and id = 7 -- or so", "id=7"},
    {"select * from t where id = 7 group by n having count(*) > 1", "id=7"},
    {"select * from t where not n = 1 and id = 7", "id=7"},
    {"select * from t where (n = 1 or n = 2) and id = 7", "id=7"},
    {"select * from t where n in (1, 2) and id = 7", "n=1|2 id=7"},
    {"select * from t where id in (7)", "id=7"},
    {"select * from t x where x.id in ($1,$2 , 9) order by id", "id=$1|$2|9"},
    {"select * from t where \"Id\" in ('a', 'b') and n = 1;", "Id='a'|'b' n=1"},
    {"select * from t where id in (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16)",
        "id=1|2|3|4|5|6|7|8|9|10|11|12|13|14|15|16"},
    {"select * from t where limit_ = 7", "limit_=7"},
    {"select * from t where id = 7 and t.limit = 3", "id=7"},
    {"select 1 union select id from t where id = 7", "id=7"}, /* the other arm reads no table */
    /* Nothing is known of these. */
    {"select * from t where id in (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17)", ""},
    {"select * from t where id not in (7, 8)", ""},
    {"select * from t where id in (7, null)", ""},
    {"select * from t where id in (7, 8 + 1)", ""},
    {"select * from t where id in (7, -8)", ""},
    {"select * from t where id in (select 7)", ""},
    {"select * from t where id in (7, 8) is true", ""},
    {"select * from t where id in (7, 8) or n = 1", ""},
    {"select * from t where not id in (7, 8)", ""},
    {"select * from t where (id, n) in ((7, 8))", ""},
    {"select * from t where id + n in (7, 8)", ""},
    {"select * from t where current_user in ('x')", ""},
    {"update t set n = 1 where id in (7, 8)", ""},
    {"delete from t where id in (7, 8)", ""},
    {"select * from t", ""},
    {"select * from t where id = 7 or true", ""},
    {"select * from t where id = 7 and t.limit = 3 or true", ""},
    {"select * from t where not id = 7", ""},
    {"select * from t where id <> 7", ""},
    {"select * from t where id = 7 + 1", ""},
    {"select * from t where id = -7", ""},
    {"select * from t where id = 7::int", ""},
    {"select * from t where id = any ('{7}')", ""},
    {"select * from t where id = n", ""},
    {"select * from t where n between 1 and id = 7", ""},
    {"select * from t where case when n = 1 and id = 7 then true end", ""},
    {"select * from t where case when n = 1 then true else v = 'x' and id = 7 end", ""},
    {"select * from t where id = 7 union select * from t", ""},
    {"select * from t where id = 7 union select 1", ""},
    {"select * from t, u where id = 7", ""},
    {"select * from t join u on true where id = 7", ""},
    {"select * from t x, generate_series(1, 2) where id = 7", ""},
    {"select * from t as x(id, n) where id = 7", ""},
    {"select * from (select * from t) x where id = 7", ""},
    {"select (select max(id) from t) where 1 = 1", ""},
    {"select (select max(id) from t where id = 7)", ""},
    {"with x as (select * from t) select * from x where id = 7", ""},
    {"select * from t where v = 'it''s'", ""},
    {"select * from t where v = e'x'", ""},
    {"select * from t where v = n'x'", ""},
    {"select * from t where current_user = 'x'", ""},
    {"select * from t where t.current_user = 'x'", "current_user='x'"},
    {"select * from t where id is not distinct from 7", ""},
    {"select * from t where row(id) = row(7)", ""},
    {"select * from t where 7 = id", ""},
    {"select * from t where id = 7; select 1 from t", ""},
    {"select (select max(n) from t) from t where id = 7", ""},
    {"select * from t where id = 7 and n = (select max(n) from t)", ""},
    {"select * from t where id = 7 and exists (table t)", ""},
    {"values (1)", ""},
    {"table t", ""},
    {"explain analyze update t set v = 1 where id = 7", ""},
    /* Writes. */
    {"update t set v = 'x' where id = 7", "id=7"},
    {"update t set n = n + $1 where id = $2", "id=$2"},
    {"update s.t as x set n = 1 where x.id = $1 and v = 'a' returning *", "id=$1 v='a'"},
    {"update t set (n, v) = (1, 'x') where id = 7 and n = 3", "id=7"},
    {"update t set id = 8 where id = 7", ""},
    {"update t set \"ID\" = 8 where id = 7", ""},
    {"update t set n = id where id = 7", ""},
    {"update t set n = 1", ""},
    {"update t set n = 1 where current of c", ""},
    {"update t set n = x.a from (values (1, 2)) x (id, a) where x.id = 7", ""},
    {"update t set n = u.a from u where t.id = 7", ""},
    {"update t set n = 1 where id = 7 or n = 2", ""},
    {"update t set n = 1 where id in (select a from u) and id = 7", ""},
    {"delete from t where id = 7", "id=7"},
    {"delete from t x where id = $1 returning v", "id=$1"},
    {"delete from t using (values (1)) x (id) where x.id = 7", ""},
    {"delete from t using u where t.id = 7", ""},
    {"delete from t", ""},
    {"with d as (delete from t where id = 7 returning *) select * from d", ""},
    {"insert into t (id, v) values (7, 'x')", "id=7 v='x'"},
    {"insert into t (id, n, v) values ($1, default, $2) returning id", "id=$1 v=$2"},
    {"insert into t (id, v) values (7, upper('x'))", ""},
    {"insert into t (id) values (7), (8)", ""},
    {"insert into t (id) values (7) on conflict do nothing", ""},
    {"insert into t values (7)", ""},
    {"insert into t (id) select 7", ""},
    {"insert into t (id) overriding system value values (7)", ""},
    {"insert into t default values", ""},
};

static void put(char *out, size_t room, const struct qcache_row *row)
{
    unsigned in = 0; /* of a list: so many follow */
    unsigned i;

    out[0] = '\0';
    for (i = 0; i < row->n; i++) {
        const struct qcache_equal *e = &row->equal[i];
        const char *quote = e->is_string ? "'" : "";
        size_t n = strlen(out);

        if (in == 0) {
            snprintf(
                out + n, room - n, "%s%.*s=", i == 0 ? "" : " ", (int)e->column.n, e->column.p);
            in = e->nset;
        } else {
            snprintf(out + n, room - n, "|");
        }
        in--;
        n = strlen(out);
        if (e->param > 0)
            snprintf(out + n, room - n, "$%u", e->param);
        else
            snprintf(out + n, room - n, "%s%.*s%s", quote, (int)e->value.n, e->value.p, quote);
    }
    ck_assert_uint_eq(in, 0);
}

static void find(struct arena *a, const char *text, struct qcache_row *row)
{
    struct sql_facts facts;

    (void)sql_parse(a, slice_of_str(text), &facts);
    ck_assert_msg(facts.status == SQL_OK, "%s", text);
    qcache_row_find(a, &facts, slice_of_str(text), row);
}

START_TEST(what_a_text_is_restricted_to)
{
    struct arena *a = arena_new("test", 0);
    struct qcache_row row;
    char found[512];

    find(a, texts[_i].text, &row);
    put(found, sizeof found, &row);
    ck_assert_msg(strcmp(found, texts[_i].found) == 0, "%s\nfound: %s", texts[_i].text, found);
    arena_free(&a);
}
END_TEST

/* --- cells --- */

static struct qcache_column columns[] = {{CACHE_TYPE_INT4, 1, 2, "id"},
    {CACHE_TYPE_INT8, 2, 1, "n"}, {CACHE_TYPE_VARCHAR, 3, 1, "v"}, {CACHE_TYPE_DATE, 4, 3, "Day"}};
static uint32_t tables[] = {OID, 1};

static struct qcache_judgement known(void)
{
    return (struct qcache_judgement){.nreads = 1,
        .nwrites = 1,
        .reads = tables,
        .writes = tables,
        .columns_oid = OID,
        .ncolumns = 4,
        .columns = columns};
}

/* Whether a write moves what a read depends on. '-': the read is by table, '*': the write is. */
struct meet_case {
    const char *read;
    const char *write;
    char outcome;
};

static const struct meet_case meets[] = {
    {"select * from t where id = 7", "update t set n = 1 where id = 7", 'y'},
    {"select * from t where id = 7", "update t set n = 1 where id = '+07'", 'y'},
    {"select * from t where id = 7", "update t set n = 1 where id = 8", 'n'},
    {"select * from t where id = 7", "delete from t where id = 8", 'n'},
    {"select * from t where id = 7", "delete from t where id = 7", 'y'},
    {"select * from t where id = 7", "delete from t where n = 7", 'y'},
    {"select * from t where n = 7", "update t set v = 'x' where id = 8", 'y'},
    {"select * from t where v = 'a'", "update t set n = 1 where id = 8", 'y'},
    {"select * from t where v = 'a'", "update t set n = 1 where v = 'b'", 'n'},
    {"select * from t where v = 'a'", "insert into t (id, v) values (1, 'a')", 'y'},
    {"select * from t where v = 'a'", "insert into t (id, v) values (1, 'b')", 'n'},
    {"select * from t where v = 'a'", "insert into t (id) values (1)", 'y'},
    {"select * from t where v = 'a'", "insert into t (id, v) values (1, 'a ')", 'y'},
    {"select * from t where id = 7", "insert into t (id, v) values (8, 'a')", 'n'},
    {"select * from t where id = 7", "insert into t (id, v) values (7.2, 'a')", 'y'},
    {"select * from t where \"Day\" = '2020-01-02'", "delete from t where \"Day\" = '2020-01-03'",
        'n'},
    {"select * from t where \"Day\" = '2020-01-02'", "delete from t where \"Day\" = '2020-01-02'",
        'y'},
    {"select * from t where day = '2020-01-02'", "delete from t where id = 1", '-'},
    {"select * from t where \"ID\" = 1", "delete from t where id = 1", '-'},
    {"select * from t where ID = 1", "delete from t where id = 2", 'n'},
    {"select * from t where id = 1.5", "delete from t where id = 1", '-'},
    {"select * from t where v = 7", "delete from t where id = 1", '-'},
    {"select * from t where other = 7", "delete from t where id = 1", '-'},
    {"select * from t where id = 7", "delete from t where other = 1", '*'},
    {"select * from t where id = 7", "update t set id = 7 where id = 8", '*'},
    {"select * from t where id = $1", "delete from t where id = 1", '-'},
    {"select * from t where id in (6, 7)", "delete from t where id = 7", 'y'},
    {"select * from t where id in (6, 7)", "update t set n = 1 where id = 6", 'y'},
    {"select * from t where id in (6, 7)", "delete from t where id = 8", 'n'},
    {"select * from t where id in (6, 7)", "delete from t where n = 8", 'y'},
    {"select * from t where id in (6, 7)", "delete from t where id in (8, 9)", '*'},
    {"select * from t where v in ('a', 'b')", "insert into t (id, v) values (1, 'b')", 'y'},
    {"select * from t where v in ('a', 'b')", "insert into t (id, v) values (1, 'c')", 'n'},
    {"select * from t where id in (6, 7.5)", "delete from t where id = 8", '-'},
    {"select * from t where v in ('a', 7)", "delete from t where id = 8", '-'},
    {"select * from t where other in (6, 7) and id = 7", "delete from t where id = 8", 'n'},
    {"select * from t where id in (6, 7) and v = 'a'", "delete from t where v = 'a'", 'y'},
    {"select * from t where id in (6, 7) and v = 'a'", "delete from t where v = 'b'", 'n'},
};

static bool has(const cache_cell *cell, unsigned n, cache_cell one)
{
    while (n > 0)
        if (cell[--n] == one)
            return true;
    return false;
}

START_TEST(writers_meet_readers)
{
    const struct meet_case *m = &meets[_i];
    static const struct qcache_params none;
    struct arena *a = arena_new("test", 0);
    struct qcache_judgement j = known();
    cache_cell read[QCACHE_ROW_READS];
    cache_cell write[QCACHE_ROW_WRITES];
    struct qcache_row row;
    unsigned nread;
    unsigned nwrite;
    unsigned i;
    char outcome = 'n';

    find(a, m->read, &row);
    nread = qcache_row_reads(&j, &row, &none, DB, read);
    find(a, m->write, &row);
    nwrite = qcache_row_writes(&j, &row, &none, DB, write);
    for (i = 0; i < nread; i++)
        if (has(write, nwrite, read[i]))
            outcome = 'y';
    if (nread == 0)
        outcome = '-';
    else if (nwrite == 0)
        outcome = '*';
    ck_assert_msg(outcome == m->outcome, "%s\n%s: %c", m->read, m->write, outcome);
    /* Who reads the table as a whole hears of every write. */
    ck_assert(nwrite == 0 || has(write, nwrite, cache_cell_table(DB, OID)));
    arena_free(&a);
}
END_TEST

START_TEST(more_than_the_row_is_by_table)
{
    static const struct qcache_params none;
    struct arena *a = arena_new("test", 0);
    struct qcache_judgement j = known();
    cache_cell cell[QCACHE_ROW_WRITES];
    struct qcache_row row;

    find(a, "delete from t where id = 7", &row);
    ck_assert_uint_eq(qcache_row_writes(&j, &row, &none, DB, cell), 5);
    j.has_triggers = true;
    ck_assert_uint_eq(qcache_row_writes(&j, &row, &none, DB, cell), 0);
    j = known();
    j.writes_more = true;
    ck_assert_uint_eq(qcache_row_writes(&j, &row, &none, DB, cell), 0);
    j = known();
    j.nwrites = 2; /* a cascade */
    ck_assert_uint_eq(qcache_row_writes(&j, &row, &none, DB, cell), 0);
    find(a, "select * from t where id = 7", &row);
    j = known();
    ck_assert_uint_eq(qcache_row_reads(&j, &row, &none, DB, cell), 3);
    j.nreads = 2; /* heirs */
    ck_assert_uint_eq(qcache_row_reads(&j, &row, &none, DB, cell), 0);
    j.is_partitioned = true;
    ck_assert_uint_eq(qcache_row_reads(&j, &row, &none, DB, cell), 3);
    j = known();
    j.columns_oid = 1; /* a view's */
    ck_assert_uint_eq(qcache_row_reads(&j, &row, &none, DB, cell), 0);
    arena_free(&a);
}
END_TEST

#define BYTES(s)                                                                                   \
    {                                                                                              \
        s, sizeof(s) - 1                                                                           \
    }

/* select ... where id = $2 by the extended protocol against the constant 7. */
struct param_case {
    struct slice types;
    struct slice values;
    char outcome; /* '=', '!', '-': by table */
};

static const struct param_case params[] = {
    {BYTES("\0\0"),
        BYTES("\0\0\0\2\0\0\0\1x\0\0\0\1"
              "7"),
        '='},
    {BYTES("\0\0"),
        BYTES("\0\0\0\2\0\0\0\1x\0\0\0\1"
              "8"),
        '!'},
    {BYTES("\0\0"),
        BYTES("\0\0\0\2\xff\xff\xff\xff\0\0\0\1"
              "7"),
        '='},
    {BYTES("\0\2\0\0\0\0\0\0\0\0"), BYTES("\0\1\0\1\0\2\0\0\0\1x\0\0\0\4\0\0\0\7"), '='},
    {BYTES("\0\2\0\0\0\0\0\0\0\x14"), BYTES("\0\2\0\0\0\1\0\2\0\0\0\1x\0\0\0\10\0\0\0\0\0\0\0\7"),
        '='},
    {BYTES("\0\2\0\0\0\0\0\0\0\x14"), BYTES("\0\2\0\0\0\1\0\2\0\0\0\1x\0\0\0\4\0\0\0\7"), '-'},
    {BYTES("\0\2\0\0\0\0\0\0\x06\xa4"),
        BYTES("\0\0\0\2\0\0\0\1x\0\0\0\1"
              "7"),
        '-'},
    {BYTES("\0\0"), BYTES("\0\0\0\2\0\0\0\1x\xff\xff\xff\xff"), '-'},
    {BYTES("\0\0"), BYTES("\0\0\0\1\0\0\0\1x"), '-'},
    {BYTES("\0\0"),
        BYTES("\0\0\0\2\0\0\0\1x\0\0\0\2"
              "7"),
        '-'},
    {BYTES("\0\0"),
        BYTES("\0\1\0\2\0\2\0\0\0\1x\0\0\0\1"
              "7"),
        '-'},
    {BYTES(""), BYTES(""), '-'},
};

START_TEST(parameters_count_as_constants_do)
{
    const struct qcache_params p = {params[_i].types, params[_i].values};
    static const struct qcache_params none;
    struct arena *a = arena_new("test", 0);
    struct qcache_judgement j = known();
    cache_cell constant[QCACHE_ROW_READS];
    cache_cell cell[QCACHE_ROW_READS];
    struct qcache_row row;
    char outcome = '-';

    find(a, "select * from t where id = 7", &row);
    ck_assert_uint_eq(qcache_row_reads(&j, &row, &none, DB, constant), 3);
    find(a, "select v, $1 from t where id = $2", &row);
    if (qcache_row_reads(&j, &row, &p, DB, cell) > 0)
        outcome = memcmp(cell, constant, 3 * sizeof cell[0]) == 0 ? '=' : '!';
    ck_assert_int_eq(outcome, params[_i].outcome);
    arena_free(&a);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("qcache_row");
    TCase *tc = tcase_create("all");
    SRunner *sr;
    int failed;

    tcase_add_loop_test(tc, what_a_text_is_restricted_to, 0, sizeof texts / sizeof texts[0]);
    tcase_add_loop_test(tc, writers_meet_readers, 0, sizeof meets / sizeof meets[0]);
    tcase_add_test(tc, more_than_the_row_is_by_table);
    tcase_add_loop_test(tc, parameters_count_as_constants_do, 0, sizeof params / sizeof params[0]);
    suite_add_tcase(s, tc);
    sr = srunner_create(s);
    srunner_run_all(sr, CK_ENV);
    failed = srunner_ntests_failed(sr);
    srunner_free(sr);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
