/* SPDX-License-Identifier: PostgreSQL
 * test_inval_map.c: which cells a change moves: no fewer than it must, no more than it need. */
#include "config.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>

#include "cache/cache_value.h"
#include "process/invalidator/inval_map.h"

#include "run_suite.h"

#define COUNT(rows) (int)(sizeof(rows) / sizeof(rows)[0])
#define MAX_CELLS   32
#define WORD_BYTES  64

/* Tables: 1 has a key, 2 has none, 3 is its own identity, 4 is part of 5 (with other numbers) and
 * that of 6, 7 has a column that the stream lacks. */
static struct inval_map *make_map(void)
{
    struct inval_map *m = inval_map_new(cache_cell_database(slice_of_str("db")));

    inval_map_add_table(m, 1, slice_of_str("s.keyed"), 'd');
    inval_map_add_column(m, 1, CACHE_TYPE_INT4, slice_of_str("id"), true, true);
    inval_map_add_column(m, 2, CACHE_TYPE_TEXT, slice_of_str("v"), false, true);
    inval_map_add_column(m, 4, CACHE_TYPE_DATE, slice_of_str("\"D\""), false, true);
    inval_map_add_table(m, 2, slice_of_str("s.nokey"), 'd');
    inval_map_add_column(m, 1, CACHE_TYPE_INT8, slice_of_str("a"), false, true);
    inval_map_add_table(m, 3, slice_of_str("s.whole"), 'f');
    inval_map_add_column(m, 1, CACHE_TYPE_INT4, slice_of_str("a"), false, true);
    inval_map_add_column(m, 2, CACHE_TYPE_VARCHAR, slice_of_str("b"), false, true);
    inval_map_add_table(m, 4, slice_of_str("s.part"), 'd');
    inval_map_add_column(m, 1, CACHE_TYPE_INT4, slice_of_str("id"), true, true);
    inval_map_add_column(m, 3, CACHE_TYPE_BOOL, slice_of_str("f"), false, true);
    inval_map_add_table(m, 5, slice_of_str("s.parent"), 'd');
    inval_map_add_column(m, 2, CACHE_TYPE_INT4, slice_of_str("id"), true, true);
    inval_map_add_table(m, 6, slice_of_str("s.top"), 'd');
    inval_map_add_table(m, 7, slice_of_str("s.virtual"), 'd');
    inval_map_add_column(m, 1, CACHE_TYPE_INT4, slice_of_str("id"), true, true);
    inval_map_add_column(m, 2, CACHE_TYPE_INT4, slice_of_str("g"), false, false);
    inval_map_add_above(m, 4, 5);
    inval_map_add_above(m, 4, 6);
    inval_map_add_above(m, 99, 6);
    return m;
}

/* Cells in words: a1 any of table 1, w1 all of it, c1.2 its column 2, v1.1=7 a value, db. */
static const struct {
    const char *event;
    bool by_table;
    enum inval_effect effect;
    const char *cells;
} changes[] = {
    {"table s.keyed: INSERT: id[integer]:7 v[text]:'it''s' n[numeric]:1 \"D\"[date]:'2026-01-02'",
        false, INVAL_ROW, "a1 v1.1=7 v1.2=it's v1.4=2026-01-02"},
    {"table s.keyed: INSERT: id[integer]:7 v[text]:null \"D\"[date]:null", false, INVAL_ROW,
        "a1 v1.1=7"},
    {"table s.keyed: INSERT: id[integer]:7 v[text]:'a' \"D\"[date]:'infinity'", false, INVAL_ROW,
        "a1 v1.1=7 v1.2=a c1.4"},
    {"table s.keyed: UPDATE: id[integer]:7 v[text]:'b' \"D\"[date]:null", false, INVAL_ROW,
        "a1 v1.1=7 c1.2 c1.4"},
    {"table s.keyed: UPDATE: id[integer]:7 v[text]:unchanged-toast-datum \"D\"[date]:null", false,
        INVAL_ROW, "a1 v1.1=7 c1.2 c1.4"},
    {"table s.keyed: UPDATE: old-key: id[integer]:7 new-tuple: id[integer]:8 v[text]:'b' "
     "\"D\"[date]:null",
        false, INVAL_ROW, "a1 v1.1=7 v1.1=8 c1.2 c1.4"},
    {"table s.keyed: DELETE: id[integer]:7", false, INVAL_ROW, "a1 v1.1=7 c1.2 c1.4"},
    {"table s.keyed: DELETE: (no-tuple-data)", false, INVAL_TABLE, "a1 w1"},
    {"table s.keyed: INSERT: id[integer]:7 v[text]:'a'", true, INVAL_TABLE, "a1 w1"},
    /* the map does not know the row: the type has changed, or it cannot be read */
    {"table s.keyed: INSERT: id[bigint]:7 v[text]:'a' \"D\"[date]:null", false, INVAL_TABLE,
        "a1 w1"},
    {"table s.keyed: INSERT: id[integer]:7 v[text]:'a", false, INVAL_TABLE, "a1 w1"},
    {"table s.keyed: INSERT: v[text]:'a'", false, INVAL_ROW, "a1 c1.1 v1.2=a c1.4"},
    {"table s.nokey: INSERT: a[bigint]:-3 b[text]:'x'", false, INVAL_ROW, "a2 v2.1=-3"},
    {"table s.nokey: UPDATE: a[bigint]:-3 b[text]:'y'", false, INVAL_ROW, "a2 c2.1"},
    {"table s.nokey: DELETE: (no-tuple-data)", false, INVAL_TABLE, "a2 w2"},
    {"table s.whole: UPDATE: old-key: a[integer]:1 new-tuple: a[integer]:1 b[character "
     "varying]:'c'",
        false, INVAL_ROW, "a3 v3.1=1 v3.2=c"},
    {"table s.whole: UPDATE: old-key: a[integer]:1 b[character varying]:'c' new-tuple: "
     "a[integer]:null b[character varying]:'d'",
        false, INVAL_ROW, "a3 v3.1=1 v3.2=c v3.2=d"},
    {"table s.whole: DELETE: b[character varying]:'c'", false, INVAL_ROW, "a3 v3.2=c"},
    {"table s.whole: UPDATE: a[integer]:1 b[character varying]:'c'", false, INVAL_TABLE, "a3 w3"},
    {"table s.part: INSERT: id[integer]:7 f[boolean]:true", false, INVAL_ROW,
        "a4 a5 a6 v4.1=7 v5.2=7 v4.3=true"},
    {"table s.part: UPDATE: id[integer]:7 f[boolean]:false", false, INVAL_ROW,
        "a4 a5 a6 v4.1=7 v5.2=7 c4.3"},
    {"table s.part: TRUNCATE: (no-flags)", false, INVAL_TABLE, "a4 w4 a5 w5 a6 w6"},
    {"table s.keyed, s.nokey: TRUNCATE: cascade", false, INVAL_TABLE, "a1 w1 a2 w2"},
    {"table s.virtual: INSERT: id[integer]:7 g[integer]:null", false, INVAL_ROW, "a7 v7.1=7 c7.2"},
    {"table s.unknown: INSERT: id[integer]:7", false, INVAL_DATABASE, "db"},
    {"table s.keyed, s.unknown: TRUNCATE: (no-flags)", false, INVAL_DATABASE, "a1 w1 db"},
    {"table s.keyed: SOMETHING: id[integer]:7", false, INVAL_DATABASE, "db"},
    {"BEGIN 7", false, INVAL_NONE, ""},
    {"message: transactional: 1 prefix: a, sz: 1 content:b", false, INVAL_NONE, ""},
};

struct cells {
    int n;
    cache_cell cell[MAX_CELLS];
};

static void put(void *ctx, cache_cell cell, bool is_table)
{
    struct cells *c = ctx;
    int i;

    for (i = 0; i < c->n; i++)
        if (c->cell[i] == cell)
            return;
    ck_assert_int_lt(c->n, MAX_CELLS);
    c->cell[c->n++] = cell;
}

static uint32_t type_of(uint32_t table, int attnum)
{
    static const struct {
        uint32_t table;
        int attnum;
        uint32_t type;
    } types[] = {{1, 1, CACHE_TYPE_INT4}, {1, 2, CACHE_TYPE_TEXT}, {1, 4, CACHE_TYPE_DATE},
        {2, 1, CACHE_TYPE_INT8}, {3, 1, CACHE_TYPE_INT4}, {3, 2, CACHE_TYPE_VARCHAR},
        {4, 1, CACHE_TYPE_INT4}, {4, 3, CACHE_TYPE_BOOL}, {5, 2, CACHE_TYPE_INT4},
        {7, 1, CACHE_TYPE_INT4}};
    int i;

    for (i = 0; i < COUNT(types); i++)
        if (types[i].table == table && types[i].attnum == attnum)
            return types[i].type;
    return 0;
}

static cache_cell cell_of(const char *word)
{
    cache_cell db = cache_cell_database(slice_of_str("db"));
    char value[WORD_BYTES] = "";
    uint64_t key = 0;
    unsigned table = 0;
    int attnum = 0;

    if (strcmp(word, "db") == 0)
        return db;
    sscanf(word + 1, "%u.%d=%63s", &table, &attnum, value);
    switch (word[0]) {
    case 'a':
        return cache_cell_table(db, table);
    case 'w':
        return cache_cell_whole(db, table);
    case 'c':
        return cache_cell_column(db, table, attnum);
    default:
        ck_assert_int_eq(cache_value_key(type_of(table, attnum), type_of(table, attnum), false,
                             slice_of_str(value), &key),
            0);
        return cache_cell_value(db, table, attnum, key);
    }
}

START_TEST(a_change_moves_these_cells)
{
    struct inval_map *m = make_map();
    struct cells got = {.n = 0};
    struct change c;
    char words[256];
    char *word;
    char *rest = words;
    int n = 0;
    int i;

    change_read(slice_of_str(changes[_i].event), &c);
    ck_assert_int_eq(inval_map_change(m, &c, !changes[_i].by_table, put, &got), changes[_i].effect);
    snprintf(words, sizeof words, "%s", changes[_i].cells);
    while ((word = strtok_r(rest, " ", &rest)) != NULL) {
        cache_cell want = cell_of(word);

        for (i = 0; i < got.n && got.cell[i] != want; i++)
            ;
        ck_assert_msg(i < got.n, "%s is not moved by %s", word, changes[_i].event);
        n++;
    }
    ck_assert_int_eq(got.n, n);
    inval_map_free(&m);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("inval_map");
    TCase *tc = tcase_create("all");

    tcase_add_loop_test(tc, a_change_moves_these_cells, 0, COUNT(changes));
    suite_add_tcase(s, tc);
    return run_suite(s);
}
