/* SPDX-License-Identifier: PostgreSQL
 * test_orders.c: orders of operators and figures per database, in shared memory. */
#include "config.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ipc/dbstats.h"
#include "ipc/orders.h"

#include "run_suite.h"

#define NWORKERS 3

static struct shm *shm;
static struct err err;

static void setup(void)
{
    struct shm_plan plan = {{0}};

    err_clear(&err);
    plan.bytes[SHM_ORDERS] = orders_region_bytes();
    plan.bytes[SHM_DBSTATS] = dbstats_region_bytes(NWORKERS);
    shm = shm_new(&plan, &err);
    ck_assert_ptr_nonnull(shm);
    dbstats_region_init(shm, NWORKERS);
}

static void teardown(void)
{
    shm_free(&shm);
}

static struct slice s(const char *text)
{
    return slice_of_str(text);
}

START_TEST(an_order_holds_for_whom_it_names)
{
    ck_assert_uint_eq(orders_flags(shm, s("a")), 0);
    ck_assert_int_eq(orders_set(shm, s("a"), ORDER_PAUSE, &err), 0);
    ck_assert_uint_eq(orders_flags(shm, s("a")), ORDER_PAUSE);
    ck_assert_uint_eq(orders_flags(shm, s("b")), 0);
    ck_assert_uint_eq(orders_flags(shm, s("")), 0);
    ck_assert_int_eq(orders_set(shm, s(""), ORDER_DRAIN, &err), 0);
    ck_assert_uint_eq(orders_flags(shm, s("a")), ORDER_PAUSE | ORDER_DRAIN);
    ck_assert_uint_eq(orders_flags(shm, s("b")), ORDER_DRAIN);
    orders_clear(shm, s(""), ORDER_PAUSE | ORDER_DRAIN);
    ck_assert_uint_eq(orders_flags(shm, s("a")), ORDER_PAUSE);
    orders_clear(shm, s("a"), ORDER_PAUSE);
    ck_assert_uint_eq(orders_flags(shm, s("a")), 0);
    orders_clear(shm, s("never named"), ORDER_PAUSE);
}
END_TEST

START_TEST(connections_opened_before_are_unwanted)
{
    ck_assert(!orders_want_close(shm, s("a"), 5));
    ck_assert_int_eq(orders_set_reconnect(shm, s("a"), 10, &err), 0);
    ck_assert(orders_want_close(shm, s("a"), 9));
    ck_assert(!orders_want_close(shm, s("a"), 10));
    ck_assert(!orders_want_close(shm, s("b"), 9));
    ck_assert_int_eq(orders_set_reconnect(shm, s("a"), 7, &err), 0); /* an earlier one is late */
    ck_assert(orders_want_close(shm, s("a"), 9));
    ck_assert_int_eq(orders_set_reconnect(shm, s(""), 20, &err), 0);
    ck_assert(orders_want_close(shm, s("b"), 19));
    ck_assert_uint_eq(orders_flags(shm, s("a")), 0);
    ck_assert_int_eq(orders_set(shm, s("b"), ORDER_PAUSE, &err), 0);
    ck_assert(orders_want_close(shm, s("b"), 99));
    ck_assert(!orders_want_close(shm, s("a"), 99));
}
END_TEST

START_TEST(too_many_names_are_refused)
{
    char name[16];
    int i;

    for (i = 0; i < ORDERS_DATABASES; i++) {
        snprintf(name, sizeof name, "db%d", i);
        ck_assert_int_eq(orders_set(shm, s(name), ORDER_PAUSE, &err), 0);
    }
    ck_assert_int_eq(orders_set(shm, s("one more"), ORDER_PAUSE, &err), -1);
    ck_assert_str_eq(err.sqlstate, "53400");
    ck_assert_uint_eq(orders_flags(shm, s("one more")), 0);
    ck_assert_uint_eq(orders_flags(shm, s("db63")), ORDER_PAUSE);
    ck_assert_uint_eq(orders_flags(shm, s("db1023")), ORDER_PAUSE);
    ck_assert_int_eq(orders_set(shm, s("db0"), ORDER_DRAIN, &err), 0);
    ck_assert_int_eq(orders_set(shm, s(""), ORDER_PAUSE, &err), 0);
}
END_TEST

/* Names longer than the server's own limit are cut, the same way everywhere. */
START_TEST(long_names_are_cut)
{
    char name[100];

    memset(name, 'x', sizeof name);
    ck_assert_int_eq(orders_set(shm, slice_of(name, 100), ORDER_PAUSE, &err), 0);
    ck_assert_uint_eq(orders_flags(shm, slice_of(name, 90)), ORDER_PAUSE);
    ck_assert_uint_eq(orders_flags(shm, slice_of(name, 62)), 0);
    orders_clear(shm, slice_of(name, 100), ORDER_PAUSE);
    ck_assert_uint_eq(orders_flags(shm, slice_of(name, 100)), 0);
}
END_TEST

START_TEST(all_orders_can_be_listed)
{
    struct order_state state;
    uint32_t at = 0;
    int i;

    orders_set(shm, s("a"), ORDER_DRAIN, &err);
    orders_set_reconnect(shm, s("b"), 5, &err);
    ck_assert(orders_next(shm, &at, &state));
    ck_assert_str_eq(state.database, "");
    ck_assert_uint_eq(state.flags, 0);
    for (i = 0; i < 2; i++) { /* in any order */
        ck_assert(orders_next(shm, &at, &state));
        if (state.database[0] == 'a') {
            ck_assert_uint_eq(state.flags, ORDER_DRAIN);
            ck_assert_int_eq(state.reconnect_us, 0);
        } else {
            ck_assert_str_eq(state.database, "b");
            ck_assert_int_eq(state.reconnect_us, 5);
        }
    }
    ck_assert(!orders_next(shm, &at, &state));
    ck_assert(!orders_next(shm, &at, &state));
}
END_TEST

/* What was not complete is taken back when its giver is gone, and nothing else is. */
START_TEST(a_pause_has_a_ticket)
{
    uint64_t first = orders_take_ticket(shm, 3);
    uint64_t second = orders_take_ticket(shm, 4);

    ck_assert_int_eq(orders_reclaim(shm, 3), 0);
    ck_assert_int_eq(orders_set_pause(shm, s("a"), first, &err), 0);
    ck_assert_int_eq(orders_set_pause(shm, s(""), second, &err), 0);
    ck_assert(orders_has_ticket(shm, s("a"), first));
    ck_assert(!orders_has_ticket(shm, s("a"), second));
    ck_assert_uint_eq(orders_own_flags(shm, s("b")), 0);
    ck_assert_uint_eq(orders_flags(shm, s("b")), ORDER_PAUSE);
    ck_assert_int_eq(orders_reclaim(shm, 3), 1);
    ck_assert_uint_eq(orders_own_flags(shm, s("a")), 0);
    ck_assert(!orders_has_ticket(shm, s("a"), first));
    orders_end_ticket(shm, s(""), second);
    ck_assert_int_eq(orders_reclaim(shm, 4), 0);
    ck_assert_uint_eq(orders_own_flags(shm, s("")), ORDER_PAUSE);
    orders_clear(shm, s(""), ORDER_PAUSE);
    ck_assert_int_eq(orders_set_pause(shm, s("a"), second, &err), 0);
    orders_clear(shm, s("a"), ORDER_PAUSE); /* by another */
    ck_assert(!orders_has_ticket(shm, s("a"), second));
    ck_assert_int_eq(orders_set_pause(shm, s("a"), first, &err), 0);
    ck_assert_int_eq(orders_set(shm, s("a"), ORDER_PAUSE, &err), 0); /* KILL */
    ck_assert(!orders_has_ticket(shm, s("a"), first));
    ck_assert_int_eq(orders_reclaim(shm, 3), 0);
    ck_assert_uint_eq(orders_own_flags(shm, s("a")), ORDER_PAUSE);
}
END_TEST

/* Another process sees it, and several that name databases at once lose no order. */
START_TEST(processes_share_orders)
{
    char name[16];
    int status;
    int p;
    int i;

    for (p = 0; p < 8; p++) {
        if (fork() != 0)
            continue;
        for (i = 0; i < 8; i++) {
            snprintf(name, sizeof name, "db%d", i);
            orders_set(shm, s(name), ORDER_PAUSE, &err);
            snprintf(name, sizeof name, "own%d", p);
            orders_set(shm, s(name), ORDER_DRAIN, &err);
        }
        _exit(0);
    }
    for (p = 0; p < 8; p++) {
        ck_assert_int_gt(wait(&status), 0);
        ck_assert_int_eq(status, 0);
    }
    for (i = 0; i < 8; i++) {
        snprintf(name, sizeof name, "db%d", i);
        ck_assert_uint_eq(orders_flags(shm, s(name)), ORDER_PAUSE);
        orders_clear(shm, s(name), ORDER_PAUSE);
        ck_assert_uint_eq(orders_flags(shm, s(name)), 0);
        snprintf(name, sizeof name, "own%d", i);
        ck_assert_uint_eq(orders_flags(shm, s(name)), ORDER_DRAIN);
    }
}
END_TEST

START_TEST(figures_of_all_workers_are_added)
{
    static struct dbstats_sum sum;
    uint32_t at = 0;
    int w;

    for (w = 0; w < NWORKERS; w++) {
        dbstats_add(&dbstats_row_of(shm, w, s("shop"))->queries, 10U + (unsigned)w);
        histogram_add(&dbstats_row_of(shm, w, s("shop"))->query, 100 * (w + 1));
        dbstats_add(&dbstats_row_of(shm, w, s("shop"))->npins[PIN_REASON_LISTEN], 1);
    }
    dbstats_add(&dbstats_row_of(shm, 1, s("other"))->bytes_in, 7);
    ck_assert_ptr_eq(dbstats_row_of(shm, 1, s("other")), dbstats_row_of(shm, 1, s("other")));
    ck_assert(dbstats_next(shm, &at, &sum));
    ck_assert_str_eq(sum.database, "shop");
    ck_assert_uint_eq(sum.queries, 33);
    ck_assert_uint_eq(sum.query.n, 3);
    ck_assert_uint_eq(sum.npins[PIN_REASON_LISTEN], 3);
    ck_assert(dbstats_next(shm, &at, &sum));
    ck_assert_str_eq(sum.database, "other");
    ck_assert_uint_eq(sum.bytes_in, 7);
    ck_assert_uint_eq(sum.queries, 0);
    ck_assert(!dbstats_next(shm, &at, &sum));
}
END_TEST

START_TEST(too_many_databases_are_counted_together)
{
    static struct dbstats_sum sum;
    uint32_t at = 0;
    uint32_t n = 0;
    char name[16];
    int i;

    for (i = 0; i < DBSTATS_DATABASES + 5; i++) {
        snprintf(name, sizeof name, "db%d", i);
        dbstats_add(&dbstats_row_of(shm, 2, s(name))->logins, 1);
    }
    ck_assert_ptr_eq(dbstats_row_of(shm, 2, s("x")), dbstats_row_of(shm, 2, s("y")));
    dbstats_add(&dbstats_row_of(shm, 0, s("db0"))->logins, 1);
    while (dbstats_next(shm, &at, &sum)) {
        n++;
        ck_assert_uint_eq(sum.logins, strcmp(sum.database, "db0") == 0           ? 2
                                      : strcmp(sum.database, DBSTATS_OTHER) == 0 ? 5
                                                                                 : 1);
    }
    ck_assert_uint_eq(n, DBSTATS_DATABASES + 1);
}
END_TEST

START_TEST(who_paused_all_is_known_while_it_holds)
{
    orders_set_giver(shm, s("boss"), ORDERS_OUR_SERVERS);
    ck_assert(!orders_is_giver(shm, s("boss"), ORDERS_OUR_SERVERS));
    ck_assert_int_eq(orders_set(shm, s("one"), ORDER_PAUSE, &err), 0);
    ck_assert(!orders_is_giver(shm, s("boss"), ORDERS_OUR_SERVERS));
    ck_assert_int_eq(orders_set(shm, s(""), ORDER_PAUSE, &err), 0);
    ck_assert(orders_is_giver(shm, s("boss"), ORDERS_OUR_SERVERS));
    ck_assert(!orders_is_giver(shm, s("boss"), 128));
    ck_assert(!orders_is_giver(shm, s("bos"), ORDERS_OUR_SERVERS));
    orders_set_giver(shm, s(""), ORDERS_OUR_SERVERS);
    ck_assert(!orders_is_giver(shm, s("boss"), ORDERS_OUR_SERVERS));
    ck_assert(!orders_is_giver(shm, s(""), ORDERS_OUR_SERVERS));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("orders");
    TCase *t = tcase_create("orders");

    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_test(t, an_order_holds_for_whom_it_names);
    tcase_add_test(t, connections_opened_before_are_unwanted);
    tcase_add_test(t, too_many_names_are_refused);
    tcase_add_test(t, long_names_are_cut);
    tcase_add_test(t, all_orders_can_be_listed);
    tcase_add_test(t, a_pause_has_a_ticket);
    tcase_add_test(t, processes_share_orders);
    tcase_add_test(t, who_paused_all_is_known_while_it_holds);
    tcase_add_test(t, figures_of_all_workers_are_added);
    tcase_add_test(t, too_many_databases_are_counted_together);
    suite_add_tcase(suite, t);
    return run_suite(suite);
}
