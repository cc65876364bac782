/* SPDX-License-Identifier: PostgreSQL
 * test_greeting_shm.c: what servers said at logins, told between workers. */
#include "config.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/link.h"

#include "known/greetings.h"
#include "run_suite.h"

#define NWORKERS 2

static struct shm *shm;

static void setup(void)
{
    struct shm_plan plan = {{0}};
    struct err err;

    plan.bytes[SHM_GREETINGS] = greeting_region_bytes(NWORKERS);
    shm = shm_new(&plan, &err);
    ck_assert_ptr_nonnull(shm);
    greeting_worker_init(shm, 0);
    greeting_worker_init(shm, 1);
}

static void teardown(void)
{
    shm_free(&shm);
}

static void put(int ordinal, const char *kind, const char *zone, int64_t seen_us)
{
    struct paramset reported = {0};
    struct greeting g = {.pool = slice_of(kind, 1),
        .kind = slice_of_str(kind),
        .seen_us = seen_us,
        .auth_seen_us = seen_us,
        .auth = LINK_AUTH_TRUST};

    (void)paramset_set(&reported, slice_of_str("TimeZone"), slice_of_str(zone));
    g.reported = paramset_bytes(&reported);
    greeting_put(shm, ordinal, &g);
    paramset_free(&reported);
}

static void expect(const char *kind, const char *zone, int64_t seen_us)
{
    struct paramset reported = {0};

    ck_assert_int_eq(greeting_get(shm, NWORKERS, slice_of_str(kind), &reported), seen_us);
    if (zone != NULL)
        ck_assert(slice_eq_str(paramset_get(&reported, slice_of_str("TimeZone")), zone));
    paramset_free(&reported);
}

START_TEST(each_finds_what_the_other_has_seen)
{
    put(0, "shop", "UTC", 10);
    expect("shop", "UTC", 10);
    expect("shoe", NULL, -1);
    put(1, "shop", "Asia/Tokyo", 20);
    expect("shop", "Asia/Tokyo", 20);
    put(0, "shop", "Europe/Paris", 30);
    expect("shop", "Europe/Paris", 30);
}
END_TEST

START_TEST(the_oldest_makes_room)
{
    char kind[16];
    int i;

    for (i = 0; i < 65; i++) {
        snprintf(kind, sizeof kind, "kind %d", i);
        put(0, kind, "UTC", 100 + i);
    }
    expect("kind 0", NULL, -1);
    expect("kind 1", "UTC", 101);
    expect("kind 64", "UTC", 164);
}
END_TEST

START_TEST(what_is_too_long_is_not_kept)
{
    char kind[4096];

    memset(kind, 'x', sizeof kind - 1);
    kind[sizeof kind - 1] = '\0';
    put(0, kind, "UTC", 10);
    expect(kind, NULL, -1);
}
END_TEST

START_TEST(a_successor_keeps_what_is_whole)
{
    put(0, "shop", "UTC", 10);
    put(0, "farm", "UTC", 11);
    greeting_worker_init(shm, 0);
    expect("shop", "UTC", 10);
    shm_write_begin(greeting_seq(shm, 0, 0)); /* and dies */
    expect("shop", NULL, -1);
    greeting_worker_init(shm, 0);
    expect("shop", NULL, -1);
    expect("farm", "UTC", 11);
    put(0, "shop", "Asia/Tokyo", 12);
    expect("shop", "Asia/Tokyo", 12);
}
END_TEST

START_TEST(trust_is_the_newest_word)
{
    struct greeting asked = {.pool = slice_of_str("s"),
        .kind = slice_of_str("sea"),
        .seen_us = 30,
        .auth_seen_us = 30,
        .auth = LINK_AUTH_ASKED};

    ck_assert_int_eq(greeting_get_trust(shm, NWORKERS, slice_of_str("s")), -1);
    put(0, "shop", "UTC", 10);
    put(1, "ship", "UTC", 20);
    ck_assert_int_eq(greeting_get_trust(shm, NWORKERS, slice_of_str("s")), 20);
    ck_assert_int_eq(greeting_get_trust(shm, NWORKERS, slice_of_str("sh")), -1);
    greeting_put(shm, 0, &asked);
    ck_assert_int_eq(greeting_get_trust(shm, NWORKERS, slice_of_str("s")), -1);
    put(1, "ship", "UTC", 40);
    ck_assert_int_eq(greeting_get_trust(shm, NWORKERS, slice_of_str("s")), 40);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("greeting_shm");
    TCase *t = tcase_create("greeting_shm");

    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_test(t, each_finds_what_the_other_has_seen);
    tcase_add_test(t, the_oldest_makes_room);
    tcase_add_test(t, what_is_too_long_is_not_kept);
    tcase_add_test(t, a_successor_keeps_what_is_whole);
    tcase_add_test(t, trust_is_the_newest_word);
    suite_add_tcase(s, t);
    return run_suite(s);
}
