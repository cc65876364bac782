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

#include "run_suite.h"

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
    {"select * from t where (id = 7)", "id=7"},
    {"select * from t, u where id = 7", "id=7"}, /* of one of them */
    {"select * from t join u on true where id = 7", "id=7"},
    {"select * from t where ((id = 7 and (n) = 3) and (v = 'a' and n = 1))", "id=7 v='a' n=1"},
    {"delete from t where (id = 7 and n = 3)", "id=7 n=3"},
    {"select * from t where (id = 7 or n = 1) and (v = 'a')", "v='a'"},
    {"select * from t where (select true where false and id = 7) and n = 1", "n=1"},
    {"select * from t where (id = 7) is true and (n = 1) = false and (v = 'a')::bool", ""},
    {"select * from t where not (id = 7 and n = 1)", ""},
    {"select * from t where (n between 1 and 2) and id = 7", "id=7"},
    {"select * from t where (n between 1 and id = 7)", ""},
    {"select * from t where (id, n) = (7, 1)", ""},
    {"select * from t where ((((((((((id = 7))))))))))", ""}, /* deeper than is looked */
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
            snprintf(out + n, room - n, "%s%.*s=", i == 0 ? "" : " ", (int)e->field.column.n,
                e->field.column.p);
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

static struct qcache_column columns[] = {{CACHE_TYPE_INT4, 1, 0, 2, "id"},
    {CACHE_TYPE_INT8, 2, 0, 1, "n"}, {CACHE_TYPE_VARCHAR, 3, 0, 1, "v"},
    {CACHE_TYPE_DATE, 4, 0, 3, "Day"}};
static uint32_t tables[] = {OID, 1};

static struct qcache_judgement known(void)
{
    return (struct qcache_judgement){.nreads = 1,
        .nwrites = 1,
        .reads = tables,
        .writes = tables,
        .nnamed = 1,
        .named = {{.oid = OID}},
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
    cache_cell cell[QCACHE_ROW_READS];
    struct qcache_row row;

    find(a, "delete from t where id = 7", &row);
    ck_assert_uint_eq(qcache_row_writes(&j, &row, &none, DB, cell), 5);
    j.named[0].has_triggers = true;
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
    j.named[0].has_heirs = true;
    ck_assert_uint_eq(qcache_row_reads(&j, &row, &none, DB, cell), 0);
    j.nnamed = 0; /* a view */
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

START_TEST(a_parameter_of_open_type_that_stands_elsewhere_too_tells_nothing)
{
    static const struct qcache_params open = {BYTES("\0\0"), BYTES("\0\0\0\1\0\0\0\1"
                                                                   "7")};
    static const struct qcache_params told = {BYTES("\0\1\0\0\0\x17"), BYTES("\0\0\0\1\0\0\0\1"
                                                                             "7")};
    struct arena *a = arena_new("test", 0);
    struct qcache_judgement j = known();
    cache_cell cell[QCACHE_ROW_READS];
    struct qcache_row row;

    find(a, "select $1, v from t where id = $1", &row);
    ck_assert_uint_eq(qcache_row_reads(&j, &row, &open, DB, cell), 0);
    ck_assert_uint_eq(qcache_row_reads(&j, &row, &told, DB, cell), 3);
    find(a, "select v from t where id = $1 and id = $1", &row);
    ck_assert_uint_eq(qcache_row_reads(&j, &row, &open, DB, cell), 3);
    arena_free(&a);
}
END_TEST

/* --- joins --- */

/* t(id int4, n int8, v varchar), u(id int4, t_id int8, w text, day date), x(k uuid, t_id int4). */
#define U 4712U
#define X 4713U
static const struct qcache_column t_columns[] = {{CACHE_TYPE_INT4, 1, 0, 2, "id"},
    {CACHE_TYPE_INT8, 2, 0, 1, "n"}, {CACHE_TYPE_VARCHAR, 3, 0, 1, "v"}};
static const struct qcache_column u_columns[] = {{CACHE_TYPE_INT4, 1, 0, 2, "id"},
    {CACHE_TYPE_INT8, 2, 0, 4, "t_id"}, {CACHE_TYPE_TEXT, 3, 0, 1, "w"},
    {CACHE_TYPE_DATE, 4, 0, 3, "day"}};
static const struct qcache_column x_columns[] = {
    {CACHE_TYPE_UUID, 1, 0, 1, "k"}, {CACHE_TYPE_INT4, 2, 0, 4, "t_id"}};

/* What the catalogue says of the tables of a text, in its order. */
static void know(struct arena *a, const char *text, struct qcache_judgement *j)
{
    static struct qcache_column all[QCACHE_ROW_TABLES * 4];
    struct sql_facts facts;
    unsigned i;
    unsigned k;

    (void)sql_parse(a, slice_of_str(text), &facts);
    *j = (struct qcache_judgement){.columns = all, .nnamed = (uint8_t)facts.stmts[0].ntables};
    for (i = 0; i < facts.stmts[0].ntables; i++) {
        char name = facts.stmts[0].tables[i].name.p[0];
        const struct qcache_column *c = name == 't'   ? t_columns
                                        : name == 'u' ? u_columns
                                                      : x_columns;
        unsigned n = name == 't' ? 3 : name == 'u' ? 4 : 2;

        j->named[i].oid = name == 't' ? OID : name == 'u' ? U : X;
        for (k = 0; k < n; k++) {
            all[j->ncolumns] = c[k];
            all[j->ncolumns++].table = (uint8_t)i;
        }
    }
}

/* Values that a result depends on: table.column=value ...; "": it depends on its tables. */
struct join_case {
    const char *text;
    const char *depends;
};

static const struct join_case joins[] = {
    {"select * from t join u on u.t_id = t.id where t.id = 7", "t.1=7 u.2=7"},
    {"select * from t, u where u.t_id = t.id and t.id = 7", "t.1=7 u.2=7"},
    {"select * from t cross join u where t.id = 7 and u.id = 8", "t.1=7 u.1=8"},
    {"select * from t inner join u on (u.t_id = t.id) where (t.id = 7) order by u.id limit 3",
        "t.1=7 u.2=7"},
    {"select * from t a join u as b on b.t_id = a.id and b.id = 3 where a.id = 7", "t.1=7 u.2=7"},
    {"select * from t a join u b on a.id = b.t_id and b.t_id = 7", "t.1=7 u.2=7"},
    {"select * from t a join u b on a.id = b.t_id and b.t_id = 7;", "t.1=7 u.2=7"},
    {"select \"t\".v from \"t\" INNER JOIN \"u\" ON (\"t\".\"id\" = \"u\".\"t_id\") WHERE "
     "(\"t\".\"id\" = 7 AND \"u\".\"w\" = 'a')",
        "t.1=7 u.2=7"},
    {"select * from t join u on t_id = t.id where v = 'a' and w = 'b'", "t.3=a u.3=b"},
    {"select * from t join u on t_id = n where n = 7", "t.2=7 u.2=7"},
    {"select * from t join u on w = v where v = 'a'", "t.3=a u.3=a"},
    {"select count(*) from t x1 join t x2 on x1.n = x2.id where x1.id = 7 and x2.id = 8 group by "
     "x1.v",
        "t.1=7 t.1=8"},
    {"select * from t join u on u.t_id = t.id join x on x.t_id = u.t_id where x.t_id = 7",
        "t.1=7 u.2=7 x.2=7"},
    {"select * from t join u on u.t_id = t.id, x where x.t_id = t.id and t.id in (7, 8)",
        "t.1=7|8 u.2=7|8 x.2=7|8"},
    {"select * from t join u on u.t_id = t.id where t.id in (7, 8) and u.id = 3", "t.1=7|8 u.1=3"},
    {"select * from t join u on true where t.id = 7 and u.id = 3", "t.1=7 u.1=3"},
    {"select * from T join U on U.T_ID = T.ID where T.ID = 7", "t.1=7 u.2=7"},
    {"select * from s.t join s.u on u.t_id = t.id where t.id = 7", "t.1=7 u.2=7"},
    /* One of the tables is not restricted, or nobody knows. */
    {"select * from t join u on u.t_id = t.id", ""},
    {"select * from t join u on u.t_id = t.n where t.id = 7", ""},
    {"select * from t join u on u.t_id <> t.id where t.id = 7", ""},
    {"select * from t join u on u.t_id = t.id + 0 where t.id = 7", ""},
    {"select * from t join u on u.t_id = t.id or u.id = 1 where t.id = 7", ""},
    {"select * from t join u on u.t_id = t.id where t.id = 7 or u.id = 1", ""},
    {"select * from t join u on u.t_id = t.id and t.id = 7 or true", ""},
    {"select * from t join u on t.id = 7 and u.id = 7 and u.order = 1 or true", ""},
    {"select * from t join u on u.id between 1 and t.id = 7 where t.id = 7", ""},
    {"select * from t join u on w = t.id::text where t.id = 7", ""},
    {"select * from t join u on w = k where t.id = 7", ""},
    {"select * from t join u on u.day = t.v where t.v = '2020-01-01'", ""},
    {"select * from t left join u on u.t_id = t.id where t.id = 7", ""},
    {"select * from t left join u on u.t_id = t.id and u.id = 3 where t.id = 7", ""},
    {"select * from t left outer join u on u.t_id = t.id where t.id = 7 and u.id = 3", ""},
    {"select * from t right join u on u.t_id = t.id where t.id = 7", ""},
    {"select * from t full join u on u.t_id = t.id where t.id = 7", ""},
    {"select * from t natural join u where t.id = 7", ""},
    {"select * from t join u using (id) where id = 7", ""},
    {"select * from t join u using (id) where t.id = 7 and u.id = 7", ""},
    {"select * from t join (u join x on x.t_id = u.t_id) on u.t_id = t.id where t.id = 7", ""},
    {"select * from t join u join x on x.t_id = u.t_id on u.t_id = t.id where t.id = 7", ""},
    {"select * from t join u on id = 7 where v = 'a'", ""}, /* whose id? */
    {"select * from t x1 join t x2 on x1.n = x2.n where x1.id = 7", ""},
    {"select * from t, t x2 where t.id = 7 and id = 8", ""},
    {"select (select max(id) from u) from t where t.id = 7 and u.id = 7", ""},
    {"select * from t where id = 7 and exists (select from u where u.id = 7)", ""},
    {"select * from t where id = 7 and id in (select t_id from u where id = 7)", ""},
    {"select * from t, lateral (select * from u where u.id = 7) z where t.id = 7", ""},
    {"select * from (select * from t where id = 7) t, u where t.id = 7 and u.id = 7", ""},
    {"select * from t as a(n, id), u where a.id = 7 and u.id = 7", ""},
    {"select * from t, only u where t.id = 7 and u.id = 7", ""},
    {"select * from t, u where t.id = 7 and u.id = 7 union select * from t, u", ""},
    {"with u as (select * from x) select * from t, u where t.id = 7 and u.t_id = 7", ""},
    {"select * from t, u where t.id = 7 and u.day = '7.1.2020'", ""},
    {"select * from t, u where t.id = 7 and u.day = current_date", ""},
    {"select * from t, u where t.id = 7 and u.t_id = u.id", ""},
    {"select * from t a, t b, t c, t d, t e, t f, t g where a.id = 7", ""},
    {"select * from t a, t b, t c, t d where a.id = b.id and b.id = c.id and c.id = d.id and "
     "a.id in (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16)",
        ""}, /* more cells than there is room for */
};

static unsigned table_number(const char *name)
{
    return name[0] == 't' ? OID : name[0] == 'u' ? U : X;
}

/* Reads what join_case.depends says into cells. */
static unsigned cells_of(const char *depends, cache_cell *cell)
{
    unsigned n = 0;

    while (*depends != '\0') {
        unsigned oid = table_number(depends);
        int attnum = depends[2] - '0';
        uint64_t key;

        cell[n++] = cache_cell_whole(DB, oid);
        cell[n++] = cache_cell_column(DB, oid, attnum);
        for (depends += 3; *depends == '=' || *depends == '|'; depends += 2) {
            uint32_t type = depends[1] >= 'a' ? CACHE_TYPE_TEXT : CACHE_TYPE_INT4;

            ck_assert_int_eq(cache_value_key(type, type, false, slice_of(depends + 1, 1), &key), 0);
            cell[n++] = cache_cell_value(DB, oid, attnum, key);
        }
        depends += *depends == ' ' ? 1 : 0;
    }
    return n;
}

START_TEST(every_table_of_a_join_is_restricted)
{
    const struct join_case *m = &joins[_i];
    static const struct qcache_params none;
    struct arena *a = arena_new("test", 0);
    cache_cell wanted[QCACHE_ROW_READS];
    cache_cell cell[QCACHE_ROW_READS];
    struct qcache_judgement j;
    struct qcache_row row;
    unsigned nwanted = cells_of(m->depends, wanted);
    unsigned n;

    find(a, m->text, &row);
    know(a, m->text, &j);
    n = qcache_row_reads(&j, &row, &none, DB, cell);
    ck_assert_msg(n == nwanted && memcmp(cell, wanted, n * sizeof cell[0]) == 0,
        "%s\n%u cells, not %u", m->text, n, nwanted);
    j.named[j.nnamed - 1].has_heirs = true;
    ck_assert_uint_eq(qcache_row_reads(&j, &row, &none, DB, cell), 0);
    arena_free(&a);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("qcache_row");
    TCase *tc = tcase_create("all");

    tcase_add_loop_test(tc, what_a_text_is_restricted_to, 0, sizeof texts / sizeof texts[0]);
    tcase_add_loop_test(tc, writers_meet_readers, 0, sizeof meets / sizeof meets[0]);
    tcase_add_test(tc, more_than_the_row_is_by_table);
    tcase_add_loop_test(tc, every_table_of_a_join_is_restricted, 0, sizeof joins / sizeof joins[0]);
    tcase_add_loop_test(tc, parameters_count_as_constants_do, 0, sizeof params / sizeof params[0]);
    tcase_add_test(tc, a_parameter_of_open_type_that_stands_elsewhere_too_tells_nothing);
    suite_add_tcase(s, tc);
    return run_suite(s);
}
