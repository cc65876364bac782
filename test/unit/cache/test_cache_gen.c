/* SPDX-License-Identifier: PostgreSQL
 * test_cache_gen.c: generations: what makes a cached result invalid, and what does not; keys of
 * values. */
#include "config.h"

#include <check.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "cache/cache_gen.h"
#include "cache/cache_value.h"

#include "run_suite.h"

#define NCELLS  65536
#define NPROCS  4
#define NOW     INT64_C(1000000000)
#define MINUTE  INT64_C(60000000)
#define TABLE   16384
#define ANOTHER 16385

static struct cache_gens *gens_new(void)
{
    size_t n = cache_gens_bytes(NCELLS, NPROCS);
    void *mem = mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    ck_assert_ptr_ne(mem, MAP_FAILED);
    return cache_gens_init(mem, NCELLS, NPROCS);
}

static void gens_free(struct cache_gens *g)
{
    munmap(g, cache_gens_bytes(NCELLS, NPROCS));
}

static cache_cell database(void)
{
    return cache_cell_database(slice_of_str("shop"));
}

static uint64_t number(const char *text)
{
    uint64_t key = 0;

    ck_assert_int_eq(
        cache_value_key(CACHE_TYPE_INT4, CACHE_TYPE_INT4, false, slice_of_str(text), &key), 0);
    return key;
}

static void depend_on_table(struct cache_deps *d, const struct cache_gens *g)
{
    cache_deps_init(d);
    cache_deps_add(d, g, database());
    cache_deps_add(d, g, cache_cell_table(database(), TABLE));
}

static void depend_on_row(struct cache_deps *d, const struct cache_gens *g, const char *value)
{
    cache_deps_init(d);
    cache_deps_add(d, g, database());
    cache_deps_add(d, g, cache_cell_whole(database(), TABLE));
    cache_deps_add(d, g, cache_cell_column(database(), TABLE, 1));
    cache_deps_add(d, g, cache_cell_value(database(), TABLE, 1, number(value)));
}

/* What is written, and whether results by table, of row 7 and of row 8 live on. */
struct write_case {
    const char *what;
    bool table_lives;
    bool seven_lives;
    bool eight_lives;
};

static const struct write_case write_cases[] = {
    {"nothing", true, true, true},
    {"row 7", false, false, true},
    {"unknown rows of the column", false, false, false},
    {"whole", false, false, false},
    {"another column's unknown rows", false, true, true},
    {"another table", true, true, true},
    {"database", false, false, false},
    {"another database", true, true, true},
    {"all", false, false, false},
};

static void do_write(struct cache_gens *g, const char *what)
{
    cache_cell db = database();
    cache_cell cells[3] = {cache_cell_table(db, TABLE)};
    size_t n = 1;

    if (strcmp(what, "nothing") == 0)
        return;
    if (strcmp(what, "row 7") == 0)
        cells[n++] = cache_cell_value(db, TABLE, 1, number("7"));
    else if (strcmp(what, "unknown rows of the column") == 0)
        cells[n++] = cache_cell_column(db, TABLE, 1);
    else if (strcmp(what, "whole") == 0)
        cells[n++] = cache_cell_whole(db, TABLE);
    else if (strcmp(what, "another column's unknown rows") == 0)
        cells[n++] = cache_cell_column(db, TABLE, 2);
    else if (strcmp(what, "another table") == 0)
        cells[0] = cache_cell_whole(db, ANOTHER);
    else if (strcmp(what, "database") == 0)
        cells[0] = db;
    else if (strcmp(what, "another database") == 0)
        cells[0] = cache_cell_database(slice_of_str("store"));
    else
        cache_gens_empty(g, NOW);
    cache_gens_bump(g, cells, n, (struct cache_written){0, 0});
}

START_TEST(writes_end_what_depends_on_them)
{
    const struct write_case *c = &write_cases[_i];
    struct cache_gens *g = gens_new();
    struct cache_deps table;
    struct cache_deps seven;
    struct cache_deps eight;

    depend_on_table(&table, g);
    depend_on_row(&seven, g, "7");
    depend_on_row(&eight, g, "8");
    ck_assert_int_eq(cache_deps_read(&table, g, NOW), CACHE_FILL_OK);
    ck_assert_int_eq(cache_deps_read(&seven, g, NOW), CACHE_FILL_OK);
    ck_assert_int_eq(cache_deps_read(&eight, g, NOW), CACHE_FILL_OK);
    do_write(g, c->what);
    ck_assert_msg(cache_deps_hold(&table, g) == c->table_lives, "table after %s", c->what);
    ck_assert_msg(cache_deps_hold(&seven, g) == c->seven_lives, "row 7 after %s", c->what);
    ck_assert_msg(cache_deps_hold(&eight, g) == c->eight_lives, "row 8 after %s", c->what);
    gens_free(g);
}
END_TEST

START_TEST(nothing_is_filled_while_a_writer_commits)
{
    struct cache_gens *g = gens_new();
    cache_cell cells[] = {
        cache_cell_table(database(), TABLE), cache_cell_value(database(), TABLE, 1, number("7"))};
    struct cache_deps before;
    struct cache_deps d;

    depend_on_row(&before, g, "7");
    ck_assert_int_eq(cache_deps_read(&before, g, NOW), CACHE_FILL_OK);
    cache_gens_hold(g, 1, cells, 2);
    cache_gens_hold(g, 2, cells, 2);
    ck_assert(!cache_deps_hold(&before, g));
    depend_on_row(&d, g, "7");
    ck_assert_int_eq(cache_deps_read(&d, g, NOW), CACHE_FILL_HELD);
    depend_on_table(&d, g);
    ck_assert_int_eq(cache_deps_read(&d, g, NOW), CACHE_FILL_HELD);
    depend_on_row(&d, g, "8");
    ck_assert_int_eq(cache_deps_read(&d, g, NOW), CACHE_FILL_OK);
    cache_gens_release(g, 1, cells, 2, (struct cache_written){0, 0});
    depend_on_row(&d, g, "7");
    ck_assert_int_eq(cache_deps_read(&d, g, NOW), CACHE_FILL_HELD);
    /* What was read in between does not outlive the release. */
    cache_gens_release(g, 2, cells, 2, (struct cache_written){0, 0});
    ck_assert(!cache_deps_hold(&d, g));
    ck_assert_int_eq(cache_deps_read(&d, g, NOW), CACHE_FILL_OK);
    gens_free(g);
}
END_TEST

START_TEST(a_holder_that_dies_leaves_the_others_holds)
{
    struct cache_gens *g = gens_new();
    cache_cell cell = cache_cell_table(database(), TABLE);
    struct cache_deps old;
    struct cache_deps d;
    int status;
    pid_t pid;

    depend_on_table(&old, g);
    cache_deps_init(&d);
    ck_assert_int_eq(cache_deps_read(&d, g, NOW), CACHE_FILL_OK);
    cache_gens_hold(g, 1, &cell, 1);
    pid = fork();
    if (pid == 0) {
        cache_gens_hold(g, 2, &cell, 1);
        _exit(0);
    }
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    cache_gens_died(g, 2, NOW);
    cache_gens_died(g, 3, NOW);
    ck_assert_uint_eq(cache_gens_off_bits(g, NOW + MINUTE / 6), 1U << CACHE_OFF_DIED);
    ck_assert_int_eq(cache_deps_read(&old, g, NOW), CACHE_FILL_OFF);
    /* After the quiet time everything from before is gone, and the living one still holds. */
    ck_assert_uint_eq(cache_gens_off_bits(g, NOW + MINUTE), 0);
    ck_assert(!cache_deps_hold(&d, g));
    ck_assert(!cache_deps_hold(&old, g));
    ck_assert_int_eq(cache_deps_read(&old, g, NOW + MINUTE), CACHE_FILL_HELD);
    cache_gens_release(g, 1, &cell, 1, (struct cache_written){0, 0});
    ck_assert_int_eq(cache_deps_read(&old, g, NOW + MINUTE), CACHE_FILL_OK);
    gens_free(g);
}
END_TEST

START_TEST(off_for_two_reasons_needs_two_ends)
{
    struct cache_gens *g = gens_new();
    struct cache_deps d;

    depend_on_table(&d, g);
    ck_assert_int_eq(cache_deps_read(&d, g, NOW), CACHE_FILL_OK);
    cache_gens_off(g, CACHE_OFF_STREAM);
    cache_gens_off(g, CACHE_OFF_ORDER);
    ck_assert_int_eq(cache_deps_read(&d, g, NOW), CACHE_FILL_OFF);
    cache_gens_on(g, CACHE_OFF_ORDER, NOW);
    ck_assert_int_eq(cache_deps_read(&d, g, NOW), CACHE_FILL_OFF);
    ck_assert_uint_eq(cache_gens_off_bits(g, NOW), 1U << CACHE_OFF_STREAM);
    cache_gens_on(g, CACHE_OFF_STREAM, NOW);
    ck_assert_msg(!cache_deps_hold(&d, g), "what was read while it was off is not kept");
    ck_assert_int_eq(cache_deps_read(&d, g, NOW), CACHE_FILL_OK);
    gens_free(g);
}
END_TEST

START_TEST(a_standby_must_have_the_last_write)
{
    struct cache_gens *g = gens_new();
    cache_cell cell = cache_cell_table(database(), TABLE);
    struct cache_standby behind = {.replay_lsn = 99, .as_of_us = NOW};
    struct cache_standby there = {.replay_lsn = 100, .as_of_us = NOW};
    struct cache_standby unknown = {.replay_lsn = 100};
    struct cache_deps d;

    depend_on_table(&d, g);
    ck_assert(cache_deps_standby(&d, g, &behind));
    ck_assert(!cache_deps_standby(&d, g, &unknown));
    cache_gens_bump(g, &cell, 1, (struct cache_written){.lsn = 100});
    cache_gens_bump(g, &cell, 1, (struct cache_written){.lsn = 50});
    ck_assert(!cache_deps_standby(&d, g, &behind));
    ck_assert(cache_deps_standby(&d, g, &there));
    /* Committed at an unknown place: what counts is when. */
    cache_gens_bump(g, &cell, 1, (struct cache_written){.us = NOW + 1});
    ck_assert(!cache_deps_standby(&d, g, &there));
    there.as_of_us = NOW + 1;
    ck_assert(cache_deps_standby(&d, g, &there));
    cache_gens_primary_changed(g, NOW + 5);
    ck_assert(!cache_deps_standby(&d, g, &there));
    there = (struct cache_standby){.replay_lsn = 7, .as_of_us = NOW + 5};
    ck_assert(cache_deps_standby(&d, g, &there));
    /* Roles, say: no cell stands for them. */
    cache_gens_empty(g, NOW + 6);
    ck_assert(!cache_deps_standby(&d, g, &there));
    there.as_of_us = NOW + 6;
    ck_assert(cache_deps_standby(&d, g, &there));
    cache_gens_empty(g, NOW + 3);
    there.as_of_us = NOW + 5;
    ck_assert(!cache_deps_standby(&d, g, &there));
    gens_free(g);
}
END_TEST

START_TEST(too_many_dependencies_are_said)
{
    struct cache_gens *g = gens_new();
    struct cache_deps d;
    uint32_t i;

    cache_deps_init(&d);
    for (i = 0; i < 1000; i++)
        cache_deps_add(&d, g, database());
    ck_assert_int_eq(cache_deps_read(&d, g, NOW), CACHE_FILL_OK);
    for (i = 0; i < CACHE_DEPS_MAX; i++)
        cache_deps_add(&d, g, cache_cell_table(database(), i));
    ck_assert_int_eq(cache_deps_read(&d, g, NOW), CACHE_FILL_MANY);
    gens_free(g);
}
END_TEST

/* Two values of a column: whether they are told to be one. 'n': the second has no key. */
struct value_case {
    uint32_t type;
    uint32_t from;
    bool is_binary;
    const char *text;
    size_t n; /* of `other`, 0: up to its NUL */
    const char *other;
    char outcome;
};

#define UUID_TEXT "00112233-4455-6677-8899-aabbccddeeff"

static const struct value_case value_cases[] = {
    {CACHE_TYPE_INT4, CACHE_TYPE_INT4, false, "7", 0, "7", '='},
    {CACHE_TYPE_INT4, CACHE_TYPE_INT4, false, "7", 0, " +007 ", '='},
    {CACHE_TYPE_INT4, CACHE_TYPE_INT4, false, "7", 0, "-7", '!'},
    {CACHE_TYPE_INT4, CACHE_TYPE_INT4, false, "0", 0, "-0", '='},
    {CACHE_TYPE_INT4, CACHE_TYPE_INT4, false, "7", 0, "7.0", 'n'},
    {CACHE_TYPE_INT4, CACHE_TYPE_INT4, false, "7", 0, "0x7", 'n'},
    {CACHE_TYPE_INT4, CACHE_TYPE_INT4, false, "7", 0, "-", 'n'},
    {CACHE_TYPE_INT4, CACHE_TYPE_INT4, false, "7", 0, "", 'n'},
    {CACHE_TYPE_INT4, 1700, false, "7", 0, "7", 'n'},
    {CACHE_TYPE_INT4, CACHE_TYPE_INT4, true, "7", 4, "\0\0\0\7", '='},
    {CACHE_TYPE_INT4, CACHE_TYPE_INT2, true, "7", 2, "\0\7", '='},
    {CACHE_TYPE_INT4, CACHE_TYPE_INT8, true, "-2", 8, "\377\377\377\377\377\377\377\376", '='},
    {CACHE_TYPE_INT4, CACHE_TYPE_INT8, true, "7", 4, "\0\0\0\7", 'n'},
    {CACHE_TYPE_INT8, CACHE_TYPE_INT8, false, "-9223372036854775808", 0, "-9223372036854775808",
        '='},
    {CACHE_TYPE_INT8, CACHE_TYPE_INT8, false, "1", 0, "9223372036854775808", 'n'},
    {CACHE_TYPE_INT8, CACHE_TYPE_INT8, false, "1", 0, "99999999999999999999999", 'n'},
    {CACHE_TYPE_BOOL, CACHE_TYPE_BOOL, false, "t", 0, "TRUE", '='},
    {CACHE_TYPE_BOOL, CACHE_TYPE_BOOL, true, "t", 1, "\1", '='},
    {CACHE_TYPE_BOOL, CACHE_TYPE_BOOL, false, "t", 0, "f", '!'},
    {CACHE_TYPE_BOOL, CACHE_TYPE_BOOL, false, "t", 0, "yes", 'n'},
    {CACHE_TYPE_DATE, CACHE_TYPE_DATE, false, "2000-01-01", 0, "2000", 'n'},
    {CACHE_TYPE_DATE, CACHE_TYPE_DATE, true, "2000-01-01", 4, "\0\0\0\0", '='},
    {CACHE_TYPE_DATE, CACHE_TYPE_DATE, true, "1999-12-31", 4, "\377\377\377\377", '='},
    {CACHE_TYPE_DATE, CACHE_TYPE_DATE, true, "2024-03-01", 4, "\0\0\x22\x7a", '='},
    {CACHE_TYPE_DATE, CACHE_TYPE_DATE, true, "2024-03-01", 4, "\0\0\x22\x7b", '!'},
    {CACHE_TYPE_DATE, CACHE_TYPE_DATE, true, "2024-02-29", 4, "\0\0\x22\x78", '!'},
    {CACHE_TYPE_DATE, CACHE_TYPE_DATE, false, "2024-02-28", 0, "28.02.2024", 'n'},
    {CACHE_TYPE_DATE, CACHE_TYPE_DATE, false, "2024-02-28", 0, "infinity", 'n'},
    {CACHE_TYPE_UUID, CACHE_TYPE_UUID, false, UUID_TEXT, 0, "{00112233445566778899AABBCCDDEEFF}",
        '='},
    {CACHE_TYPE_UUID, CACHE_TYPE_UUID, true, UUID_TEXT, 16,
        "\0\x11\x22\x33\x44\x55\x66\x77\x88\x99\xaa\xbb\xcc\xdd\xee\xff", '='},
    {CACHE_TYPE_UUID, CACHE_TYPE_UUID, false, UUID_TEXT, 0, "0011", 'n'},
    {CACHE_TYPE_TEXT, CACHE_TYPE_TEXT, false, "a", 0, "a", '='},
    {CACHE_TYPE_TEXT, CACHE_TYPE_VARCHAR, true, "a", 0, "a", '='},
    {CACHE_TYPE_TEXT, CACHE_TYPE_TEXT, false, "a", 0, "a ", '!'},
    {CACHE_TYPE_TEXT, CACHE_TYPE_TEXT, false, "a", 0, "", '!'},
    {CACHE_TYPE_TEXT, 1042, false, "a", 0, "a", 'n'},
    {CACHE_TYPE_VARCHAR, CACHE_TYPE_VARCHAR, false, "\303\244", 0, "\344", '='},
    {1700, 1700, false, "", 0, "1", 'n'},
};

START_TEST(spellings_of_one_value_have_one_key)
{
    const struct value_case *c = &value_cases[_i];
    struct slice other = c->n > 0 ? slice_of(c->other, c->n) : slice_of_str(c->other);
    uint64_t a = 0;
    uint64_t b = 0;
    int has_key = cache_value_key(c->type, c->from, c->is_binary, other, &b);

    if (c->outcome == 'n') {
        ck_assert_int_eq(has_key, -1);
        return;
    }
    ck_assert(cache_value_has_key(c->type));
    ck_assert_int_eq(cache_value_key(c->type, c->type, false, slice_of_str(c->text), &a), 0);
    ck_assert_int_eq(has_key, 0);
    ck_assert_msg((a == b) == (c->outcome == '='), "%s and row %d", c->text, _i);
}
END_TEST

/* A walk over all days, against the calendar of the C library. */
START_TEST(dates_count_days)
{
    int64_t day;

    for (day = -720000; day < 2900000; day += 13) {
        time_t t = (time_t)((day + 10957) * 86400);
        unsigned char be[4] = {(unsigned char)(day >> 24), (unsigned char)(day >> 16),
            (unsigned char)(day >> 8), (unsigned char)day};
        char text[32];
        struct tm tm;
        uint64_t a;
        uint64_t b;

        gmtime_r(&t, &tm);
        snprintf(text, sizeof text, "%04d-%02d-%02d", tm.tm_year + 1900, tm.tm_mon + 1, tm.tm_mday);
        ck_assert_int_eq(
            cache_value_key(CACHE_TYPE_DATE, CACHE_TYPE_DATE, false, slice_of_str(text), &a), 0);
        ck_assert_int_eq(cache_value_key(CACHE_TYPE_DATE, CACHE_TYPE_DATE, true,
                             slice_of((const char *)be, 4), &b),
            0);
        ck_assert_msg(a == b, "%s", text);
    }
}
END_TEST

/* Readers and writers at once: a result read after a write's release is never older than it. */
struct race {
    _Atomic uint64_t committed;
    _Atomic uint64_t visible;
    _Atomic int stop;
};

static int race_writer(struct cache_gens *g, struct race *r, int proc)
{
    cache_cell cell = cache_cell_table(database(), TABLE);
    int i;

    for (i = 0; i < 20000; i++) {
        cache_gens_hold(g, proc, &cell, 1);
        atomic_fetch_add(&r->visible, 1);
        cache_gens_release(g, proc, &cell, 1, (struct cache_written){0, 0});
        atomic_fetch_add(&r->committed, 1);
    }
    atomic_store(&r->stop, 1);
    return 0;
}

static int race_reader(struct cache_gens *g, struct race *r)
{
    struct cache_deps d;
    uint64_t kept = 0;
    bool is_kept = false;

    depend_on_table(&d, g);
    while (!atomic_load(&r->stop)) {
        uint64_t told = atomic_load(&r->committed);

        if (is_kept && cache_deps_hold(&d, g) && kept < told)
            return 1;
        is_kept = cache_deps_read(&d, g, NOW) == CACHE_FILL_OK;
        kept = atomic_load(&r->visible);
    }
    return 0;
}

START_TEST(no_reader_sees_less_than_was_told)
{
    struct cache_gens *g = gens_new();
    struct race *r =
        mmap(NULL, sizeof *r, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    pid_t pids[NPROCS];
    int status;
    int i;

    for (i = 0; i < NPROCS; i++) {
        pids[i] = fork();
        if (pids[i] == 0)
            _exit(i == 0 ? race_writer(g, r, i) : race_reader(g, r));
    }
    for (i = 0; i < NPROCS; i++) {
        ck_assert_int_eq(waitpid(pids[i], &status, 0), pids[i]);
        ck_assert_int_eq(status, 0);
    }
    munmap(r, sizeof *r);
    gens_free(g);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("cache_gen");
    TCase *tc = tcase_create("cache_gen");

    tcase_set_timeout(tc, 60);
    tcase_add_loop_test(
        tc, writes_end_what_depends_on_them, 0, sizeof write_cases / sizeof write_cases[0]);
    tcase_add_test(tc, nothing_is_filled_while_a_writer_commits);
    tcase_add_test(tc, a_holder_that_dies_leaves_the_others_holds);
    tcase_add_test(tc, off_for_two_reasons_needs_two_ends);
    tcase_add_test(tc, a_standby_must_have_the_last_write);
    tcase_add_test(tc, too_many_dependencies_are_said);
    tcase_add_loop_test(
        tc, spellings_of_one_value_have_one_key, 0, sizeof value_cases / sizeof value_cases[0]);
    tcase_add_test(tc, dates_count_days);
    tcase_add_test(tc, no_reader_sees_less_than_was_told);
    suite_add_tcase(s, tc);
    return run_suite(s);
}
