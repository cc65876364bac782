/* SPDX-License-Identifier: PostgreSQL
 * test_limits.c: the table of limits: what is taken is counted, a dead worker's share comes back,
 * also when it died with the lock. */
#include "config.h"

#include <check.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "backend/limits.h"
#include "backend/quota.h"

#include "limits_int.h"
#include "run_suite.h"

#define NODE 3

static struct shm *shm;

static void setup_for(int max_clients)
{
    struct shm_plan plan = {0};
    struct err err = {0};

    plan.bytes[SHM_QUOTAS] = quota_region_bytes(2);
    plan.bytes[SHM_LIMITS] = limits_region_bytes(2, max_clients);
    shm = shm_new(&plan, &err);
    ck_assert_ptr_nonnull(shm);
    quota_region_init(shm, 2);
    limits_region_init(shm, 2, max_clients);
}

static void setup(void)
{
    setup_for(100);
}

static void teardown(void)
{
    shm_free(&shm);
}

static int ndropped;

static void drop_mail(void *ctx)
{
    ++*(int *)ctx;
}

static struct limits_ids attach(int ordinal, const char *user, const char *database)
{
    struct limits_ids ids;

    ck_assert_int_eq(
        limits_attach(shm, ordinal, NODE, slice_of_str(user), slice_of_str(database), &ids), 0);
    return ids;
}

static enum limits_verdict take(int ordinal, struct limits_ids ids, struct limits_max max)
{
    enum limits_verdict v = limits_take_link(shm, ordinal, NODE, &ids, &max, 1000);

    if (v == LIMITS_OK)
        limits_opened(shm, ordinal, NODE);
    return v;
}

START_TEST(each_limit_is_named)
{
    struct limits_ids a = attach(0, "alice", "shop");
    struct limits_ids b = attach(1, "bob", "shop");
    struct limits_ids c = attach(1, "alice", "bank");

    ck_assert_int_eq(a.db, b.db);
    ck_assert_int_eq(a.user, c.user);
    ck_assert_int_eq(take(0, a, (struct limits_max){.pool = 1}), LIMITS_OK);
    ck_assert_int_eq(take(1, a, (struct limits_max){.pool = 1}), LIMITS_AT_POOL);
    ck_assert_int_eq(take(1, b, (struct limits_max){.db = 1}), LIMITS_AT_DB);
    ck_assert_int_eq(take(1, c, (struct limits_max){.user = 1}), LIMITS_AT_USER);
    quota_set_limit(shm, NODE, 1);
    ck_assert_int_eq(take(1, c, (struct limits_max){.user = 2}), LIMITS_AT_NODE);
    ck_assert_int_eq(quota_used(shm, NODE), 1);
    ck_assert_int_eq(limits_used(shm, c.pool), 0);
    limits_give_link(shm, 0, NODE, &a);
    ck_assert_int_eq(take(1, c, (struct limits_max){.user = 1}), LIMITS_OK);
    ck_assert_int_eq(limits_used(shm, a.user), 1);
    ck_assert_int_eq(limits_used(shm, a.db), 0);
}
END_TEST

START_TEST(the_last_place_is_kept)
{
    struct limits_ids a = attach(0, "alice", "shop");

    ck_assert_int_eq(take(0, a, (struct limits_max){.pool = 2, .keep_pool = 1}), LIMITS_OK);
    ck_assert_int_eq(take(0, a, (struct limits_max){.pool = 2, .keep_pool = 1}), LIMITS_AT_POOL);
    ck_assert_int_eq(take(1, a, (struct limits_max){.pool = 2}), LIMITS_OK);
    quota_set_limit(shm, NODE, 3);
    ck_assert_int_eq(take(0, a, (struct limits_max){.keep_node = 1}), LIMITS_AT_NODE);
    ck_assert_int_eq(take(0, a, (struct limits_max){.db = 3, .keep_db = 1}), LIMITS_AT_DB);
    ck_assert_int_eq(take(0, a, (struct limits_max){.user = 3, .keep_user = 1}), LIMITS_AT_USER);
}
END_TEST

/* The one that is busier at this moment was not a moment ago: that goes to and fro. */
START_TEST(what_is_uneven_has_been_for_a_while)
{
    struct limits_scale scale = {0};
    int64_t now_us = 77 * LIMITS_UNEVEN_US;
    int64_t end_us;

    ck_assert(!limits_is_long_uneven(&scale, true, now_us)); /* nobody has looked before */
    for (end_us = now_us + 20 * LIMITS_UNEVEN_US; now_us < end_us; now_us += 2000)
        ck_assert(!limits_is_long_uneven(&scale, now_us / 2000 % 2 == 0, now_us));
    for (end_us = now_us + LIMITS_UNEVEN_US - LIMITS_LOOK_US; now_us < end_us; now_us += 2000)
        ck_assert(!limits_is_long_uneven(&scale, true, now_us));
    for (end_us = now_us + LIMITS_UNEVEN_US; now_us < end_us; now_us += 2000)
        (void)limits_is_long_uneven(&scale, now_us / 2000 % 4 != 0, now_us);
    ck_assert(limits_is_long_uneven(&scale, true, now_us));
    ck_assert(!limits_is_long_uneven(&scale, false, now_us + 100));
    ck_assert(limits_is_long_uneven(&scale, true, now_us + 200));
    for (end_us = now_us + LIMITS_UNEVEN_US; now_us < end_us; now_us += 2000)
        ck_assert(!limits_is_long_uneven(&scale, false, now_us));
    ck_assert(!limits_is_long_uneven(&scale, true, now_us));
}
END_TEST

START_TEST(swaps_are_seldom)
{
    struct limits_ids a = attach(0, "alice", "shop");

    ck_assert(limits_may_swap(shm, a.db, 1000, 500));
    ck_assert(!limits_may_swap(shm, a.db, 1000, 500));
    ck_assert(!limits_may_swap(shm, a.db, 1499, 500));
    ck_assert(limits_may_swap(shm, a.pool, 1499, 500)); /* another limit */
    ck_assert(limits_may_swap(shm, a.db, 1499, 400));
    ck_assert(!limits_may_swap(shm, a.db, 1600, 400));
    ck_assert(limits_may_swap(shm, LIMITS_NO_ENTRY, 1600, 400));
    ck_assert(quota_may_swap(shm, NODE, 1000, 500));
    ck_assert(!quota_may_swap(shm, NODE, 1400, 500));
    ck_assert(quota_may_swap(shm, NODE + 1, 1400, 500));
    ck_assert(quota_may_swap(shm, NODE, 1500, 500));
}
END_TEST

START_TEST(opening_is_limited_and_refusals_are_shared)
{
    struct limits_ids a = attach(0, "alice", "shop");
    struct limits_max max = {.connecting = 2};
    int64_t until;

    ck_assert_int_eq(limits_take_link(shm, 0, NODE, &a, &max, 0), LIMITS_OK);
    ck_assert_int_eq(limits_take_link(shm, 1, NODE, &a, &max, 0), LIMITS_OK);
    ck_assert_int_eq(limits_take_link(shm, 1, NODE, &a, &max, 0), LIMITS_AT_CONNECT);
    limits_opened(shm, 0, NODE);
    limits_opened(shm, 1, NODE);
    ck_assert(quota_refused(shm, NODE, 1000));
    ck_assert(!quota_refused(shm, NODE, 1000));
    until = quota_refused_until(shm, NODE);
    ck_assert_int_eq(until, 1000 + 2 * QUOTA_BACK_OFF_MIN_US);
    ck_assert_int_eq(limits_take_link(shm, 1, NODE, &a, &max, until - 1), LIMITS_AT_CONNECT);
    ck_assert_int_eq(limits_take_link(shm, 1, NODE, &a, &max, until), LIMITS_OK);
    /* one at a time tries */
    ck_assert_int_eq(limits_take_link(shm, 0, NODE, &a, &max, until), LIMITS_AT_CONNECT);
    quota_accepted(shm, NODE);
    ck_assert_int_eq(limits_take_link(shm, 0, NODE, &a, &max, 0), LIMITS_OK);
    for (int i = 0; i < 40; i++)
        (void)quota_refused(shm, NODE, 0);
    ck_assert_int_eq(quota_refused_until(shm, NODE), QUOTA_BACK_OFF_MAX_US);
}
END_TEST

static bool hand_over(void *ctx)
{
    return *(bool *)ctx;
}

START_TEST(a_link_moves)
{
    struct limits_ids a = attach(0, "alice", "shop");
    bool has_room = false;

    ck_assert_int_eq(take(0, a, (struct limits_max){.pool = 1}), LIMITS_OK);
    ck_assert(!limits_move_link(shm, NODE, &a, 0, 1, hand_over, &has_room));
    limits_reclaim(shm, 1, drop_mail, &ndropped);
    ck_assert_int_eq(limits_used(shm, a.pool), 1); /* it stayed where it was */
    has_room = true;
    ck_assert(limits_move_link(shm, NODE, &a, 0, 1, hand_over, &has_room));
    limits_reclaim(shm, 0, drop_mail, &ndropped);
    ck_assert_int_eq(limits_used(shm, a.pool), 1);
    ck_assert_int_eq(quota_used(shm, NODE), 1);
    limits_reclaim(shm, 1, drop_mail, &ndropped);
    ck_assert_int_eq(limits_used(shm, a.pool), 0);
    ck_assert_int_eq(quota_used(shm, NODE), 0);
}
END_TEST

START_TEST(clients_are_counted_and_refused_by_name)
{
    struct limits_ticket t[3] = {{0}};
    struct err err = {0};
    struct slice shop = slice_of_str("shop");

    ck_assert_int_eq(limits_client_add(shm, 0, shop, slice_of_str("a"), 2, 0, &t[0], &err), 0);
    ck_assert_int_eq(limits_client_add(shm, 1, shop, slice_of_str("b"), 2, 0, &t[1], &err), 0);
    ck_assert_int_eq(limits_client_add(shm, 1, shop, slice_of_str("c"), 2, 0, &t[2], &err), -1);
    ck_assert_str_eq(err.sqlstate, "53300");
    ck_assert_str_eq(err.msg, "too many clients of database \"shop\"");
    err_clear(&err);
    ck_assert_int_eq(
        limits_client_add(shm, 1, slice_of_str("x"), slice_of_str("a"), 0, 1, &t[2], &err), -1);
    ck_assert_str_eq(err.msg, "too many clients of user \"a\"");
    limits_client_sub(shm, 1, &t[2]); /* holds nothing */
    limits_client_sub(shm, 0, &t[0]);
    err_clear(&err);
    ck_assert_int_eq(limits_client_add(shm, 1, shop, slice_of_str("a"), 2, 1, &t[2], &err), 0);
    limits_reclaim(shm, 1, drop_mail, &ndropped);
    ck_assert_int_eq(limits_client_add(shm, 0, shop, slice_of_str("a"), 1, 1, &t[0], &err), 0);
}
END_TEST

/* Names come and go: the table does not fill up, and when it is full it says so. */
START_TEST(entries_are_used_again)
{
    struct limits_ticket t = {0};
    struct err err = {0};
    char name[32];
    int i;

    teardown();
    setup_for(1);
    for (i = 0; i < 3 * limits_capacity(shm); i++) {
        snprintf(name, sizeof name, "user%d", i);
        ck_assert_int_eq(
            limits_client_add(shm, 0, slice_of_str("d"), slice_of_str(name), 0, 0, &t, &err), 0);
        limits_client_sub(shm, 0, &t);
    }
    ck_assert_int_le(limits_high_water(shm), 4);
    ck_assert_int_eq(limits_overflows(shm), 0);
    for (i = 0;
         limits_client_add(shm, 0, slice_of_str("d"), slice_of_str(name), 0, 0, &t, &err) == 0; i++)
        snprintf(name, sizeof name, "held%d", i);
    ck_assert_str_eq(err.msg, "too many different users and databases are connected");
    ck_assert_int_eq(limits_overflows(shm), 1);
    limits_reclaim(shm, 0, drop_mail, &ndropped);
    err_clear(&err);
    ck_assert_int_eq(
        limits_client_add(shm, 0, slice_of_str("d"), slice_of_str("e"), 0, 0, &t, &err), 0);
}
END_TEST

START_TEST(the_oldest_line_is_found)
{
    struct limits_ids a = attach(0, "alice", "shop");
    int64_t since = 0;

    (void)attach(1, "alice", "shop");
    ck_assert_int_eq(limits_waiting_workers(shm, a.pool), 0);
    limits_set_oldest(shm, a.pool, 0, 500);
    limits_set_oldest(shm, a.pool, 1, 400);
    limits_set_oldest(shm, a.pool, 1, 450);
    ck_assert_int_eq(limits_waiting_workers(shm, a.pool), 2);
    ck_assert_int_eq(limits_find_oldest(shm, a.pool, -1, &since), 1);
    ck_assert_int_eq(since, 450);
    ck_assert_int_eq(limits_find_oldest(shm, a.pool, 1, &since), 0);
    limits_reclaim(shm, 1, drop_mail, &ndropped);
    ck_assert_int_eq(limits_waiting_workers(shm, a.pool), 1);
    ck_assert_int_eq(limits_find_oldest(shm, a.pool, 0, &since), -1);
    atomic_store(limits_idle_cell(shm, a.pool, 1), 2);
    ck_assert_int_eq(limits_find_idle(shm, a.pool, 0), 1);
    ck_assert_int_eq(limits_find_idle(shm, a.pool, 1), -1);
    ck_assert(quota_tell(shm, 1));
    ck_assert(!quota_tell(shm, 1));
    quota_told_clear(shm, 1);
    ck_assert(quota_tell(shm, 1));
}
END_TEST

/* A worker dies while it holds the lock and has changed half of what it wanted. */
START_TEST(the_lock_outlives_its_holder)
{
    struct limits_ids a = attach(0, "alice", "shop");
    struct limits_region *r = limits_region(shm);
    pid_t pid;
    int status;

    ck_assert_int_eq(take(0, a, (struct limits_max){0}), LIMITS_OK);
    pid = fork();
    if (pid == 0) {
        limits_lock(r);
        atomic_store(&limits_entry(r, a.pool)->used, 77);
        *limits_bucket(r, 0) = 1;
        _exit(0); /* ban: a child of the test dies with the lock */
    }
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert_int_eq(take(1, a, (struct limits_max){.pool = 2}), LIMITS_OK);
    ck_assert_int_eq(limits_used(shm, a.pool), 2);
    ck_assert_int_eq(take(1, a, (struct limits_max){.pool = 2}), LIMITS_AT_POOL);
    ck_assert_int_eq(attach(1, "alice", "shop").pool, a.pool);
}
END_TEST

/* It died behind the sum and before its own part, or the other way round. */
START_TEST(the_dead_leave_no_odd_sums)
{
    struct limits_ids a = attach(0, "alice", "shop");
    struct limits_region *r = limits_region(shm);

    ck_assert_int_eq(take(0, a, (struct limits_max){0}), LIMITS_OK);
    ck_assert_int_eq(take(1, a, (struct limits_max){0}), LIMITS_OK);
    atomic_store(&limits_entry(r, a.pool)->used, 5);
    limits_share(r, a.db, 1)->held = 9;
    ndropped = 0;
    limits_reclaim(shm, 1, drop_mail, &ndropped);
    ck_assert_int_eq(ndropped, 1);
    ck_assert_int_eq(limits_used(shm, a.pool), 1);
    ck_assert_int_eq(limits_used(shm, a.db), 1);
    ck_assert_int_eq(quota_used(shm, NODE), 1);
    ck_assert_int_eq(quota_opening(shm, NODE), 0);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("limits");
    TCase *tc = tcase_create("limits");

    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, each_limit_is_named);
    tcase_add_test(tc, the_last_place_is_kept);
    tcase_add_test(tc, what_is_uneven_has_been_for_a_while);
    tcase_add_test(tc, swaps_are_seldom);
    tcase_add_test(tc, opening_is_limited_and_refusals_are_shared);
    tcase_add_test(tc, a_link_moves);
    tcase_add_test(tc, clients_are_counted_and_refused_by_name);
    tcase_add_test(tc, entries_are_used_again);
    tcase_add_test(tc, the_oldest_line_is_found);
    tcase_add_test(tc, the_lock_outlives_its_holder);
    tcase_add_test(tc, the_dead_leave_no_odd_sums);
    suite_add_tcase(s, tc);
    return run_suite(s);
}
