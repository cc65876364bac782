/* SPDX-License-Identifier: PostgreSQL
 * test_row_alloc.c: rows of shared memory, the names that they share, and their statements. */
#include "config.h"

#include "backend/row_alloc.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

#include "run_suite.h"

#define PER_WORKER 3

static struct rows_header *rows;
static struct row_alloc *a;

static void setup(void)
{
    size_t n =
        rows_bytes(sizeof(struct client_row), ROWS_CLIENT_STATEMENT_BYTES, 2, PER_WORKER) + 64;

    rows = aligned_alloc(64, n / 64 * 64);
    memset(rows, 0, n / 64 * 64);
    rows_init(rows, sizeof(struct client_row), ROWS_CLIENT_STATEMENT_BYTES, 2, PER_WORKER);
    a = row_alloc_new(rows, 1);
}

static void teardown(void)
{
    row_alloc_free(&a);
    free(rows);
}

static int put(const char *user, const char *application)
{
    int row = row_alloc_take(a);

    ck_assert_int_ge(row, PER_WORKER);
    client_row_at(rows, row)->state = CLIENT_STATE_IDLE;
    row_alloc_name(a, row, slice_of_str(user), slice_of_str("shop"), slice_of_str(application));
    return row;
}

static void expect_names(int row, const char *user, const char *application)
{
    struct client_row copy;
    struct row_words words;

    ck_assert(client_row_copy(rows, row, &copy, &words));
    ck_assert(slice_eq_str(row_user(&words.names), user));
    ck_assert(slice_eq_str(row_database(&words.names), "shop"));
    ck_assert(slice_eq_str(row_application(&words.names), application));
    ck_assert_str_eq(words.statement, "");
}

START_TEST(rows_with_the_same_names_share_them)
{
    int one = put("alice", "psql");
    int two = put("alice", "psql");
    int three = put("alice", "psq");

    ck_assert_int_eq(client_row_at(rows, one)->names, client_row_at(rows, two)->names);
    ck_assert_int_ne(client_row_at(rows, one)->names, client_row_at(rows, three)->names);
    ck_assert_int_eq(row_alloc_take(a), ROWS_NO_ROW);
    row_alloc_give(a, one);
    ck_assert_int_eq(client_row_at(rows, one)->names, ROWS_NO_NAMES);
    expect_names(two, "alice", "psql");
    ck_assert_int_eq(put("bob", "x"), one);
    expect_names(one, "bob", "x");
    expect_names(two, "alice", "psql");
    expect_names(three, "alice", "psq");
}
END_TEST

START_TEST(names_change_in_their_own_place)
{
    int row[PER_WORKER];
    const struct row_names *names;
    char app[24];
    int i;

    for (i = 0; i < PER_WORKER; i++)
        row[i] = put("alice", "a");
    for (i = 0; i < 60; i++) { /* all rows have different names from the third change on */
        names = rows_names(rows, client_row_at(rows, row[i % PER_WORKER])->names);
        snprintf(app, sizeof app, "app%d", i);
        row_alloc_name(
            a, row[i % PER_WORKER], row_user(names), row_database(names), slice_of_str(app));
        expect_names(row[i % PER_WORKER], "alice", app);
    }
    expect_names(row[0], "alice", "app57");
    expect_names(row[1], "alice", "app58");
}
END_TEST

START_TEST(long_names_are_cut)
{
    char user[100];
    char database[100];
    struct row_names names;

    memset(user, 'u', sizeof user);
    memset(database, 'd', sizeof database);
    row_names_set(&names, slice_of(user, sizeof user), slice_of(database, sizeof database),
        slice_of_str("psql"));
    ck_assert_uint_eq(row_user(&names).n, ROWS_NAME_BYTES - 1);
    ck_assert_uint_eq(row_database(&names).n, ROWS_NAME_BYTES - 1);
    ck_assert(slice_eq_str(row_application(&names), "ps"));
    memset(&names, 0xff, sizeof names); /* torn */
    ck_assert_uint_eq(row_user(&names).n, 0);
    ck_assert_uint_le(row_application(&names).n, sizeof names.text);
}
END_TEST

/* A region of link rows, all zero. */
static struct rows_header *link_rows(size_t *n)
{
    struct rows_header *h;

    *n = rows_bytes(sizeof(struct link_row), ROWS_LINK_STATEMENT_BYTES, 1, PER_WORKER);
    *n = (*n + 63) / 64 * 64;
    h = aligned_alloc(64, *n);
    memset(h, 0, *n);
    rows_init(h, sizeof(struct link_row), ROWS_LINK_STATEMENT_BYTES, 1, PER_WORKER);
    return h;
}

static void say(const struct rows_header *h, int row, const char *sql)
{
    rows_set_statement(h, row, slice_of_str(sql));
    link_row_at(h, row)->has_statement = true;
}

static void expect_statement(const struct rows_header *h, int row, const char *sql)
{
    struct link_row copy;
    struct row_words words;

    ck_assert(link_row_copy(h, row, &copy, &words));
    ck_assert_str_eq(words.statement, sql);
}

START_TEST(statements_of_all_lengths_are_kept)
{
    static const size_t lengths[] = {0, 1, 62, 63, 64, 65, 126, 127, 128, 300};
    char sql[301];
    struct rows_header *h;
    size_t n;
    size_t i;

    h = link_rows(&n);
    for (i = 0; i < sizeof lengths / sizeof lengths[0]; i++) {
        memset(sql, 'a' + (int)i, lengths[i]);
        sql[lengths[i]] = '\0';
        say(h, 0, "before");
        say(h, 2, "a statement that is longer than the part of it which all rows keep together");
        say(h, 1, sql);
        if (lengths[i] >= ROWS_LINK_STATEMENT_BYTES)
            sql[ROWS_LINK_STATEMENT_BYTES - 1] = '\0';
        expect_statement(h, 1, sql);
        expect_statement(h, 0, "before");
        expect_statement(
            h, 2, "a statement that is longer than the part of it which all rows keep together");
    }
    say(h, 1, "short");
    expect_statement(h, 1, "short");
    free(h);
}
END_TEST

START_TEST(short_statements_take_half_of_the_memory)
{
    struct rows_header *h;
    const char *first = NULL;
    const char *last = NULL;
    const char *p;
    size_t n;
    int i;

    h = link_rows(&n);
    for (i = 0; i < PER_WORKER; i++)
        rows_set_statement(h, i, slice_of_str("select abalance from accounts where aid = 1"));
    for (p = (const char *)link_row_at(h, 0); p < (const char *)h + n; p++) {
        if (*p != '\0' && first == NULL)
            first = p;
        if (*p != '\0')
            last = p;
    }
    ck_assert_ptr_nonnull(first);
    ck_assert_int_lt(last - first, PER_WORKER * ROWS_LINK_STATEMENT_BYTES / 2);
    free(h);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("row_alloc");
    TCase *tc = tcase_create("all");

    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, rows_with_the_same_names_share_them);
    tcase_add_test(tc, names_change_in_their_own_place);
    tcase_add_test(tc, long_names_are_cut);
    tcase_add_test(tc, statements_of_all_lengths_are_kept);
    tcase_add_test(tc, short_statements_take_half_of_the_memory);
    suite_add_tcase(s, tc);
    return run_suite(s);
}
