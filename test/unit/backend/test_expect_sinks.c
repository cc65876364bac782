/* SPDX-License-Identifier: PostgreSQL
 * test_expect_sinks.c: who hears of what a server answers. */
#include "config.h"

#include <check.h>
#include <stdlib.h>

#include "backend/expect.h"

#include "expect_script.h"
#include "run_suite.h"

static struct expect e;

static void setup(void)
{
    expect_init(&e);
}

static void teardown(void)
{
    expect_fini(&e);
}

/* The end of what is owed is the owner's to say. */
START_TEST(the_end_on_hold)
{
    static const struct {
        const char *sent;
        const char *replies; /* a small z is a ReadyForQuery that is kept back */
    } rows[] = {{"Q", "TDCz"}, {"PBES", "12DCz"}, {"PBESPBES", "12CZ12Cz"}, {"QQ", "CZEz"},
        {"PBES", "1Ez"}, {"Q", "GEz"}, {"PBESSS", "12GEz"}, {"PBEScS", "12GCz"}};
    size_t i;
    const char *p;

    for (i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        expect_script_send(&e, rows[i].sent, 0);
        expect_hold(&e);
        ck_assert(!expect_pass_last(&e));
        for (p = rows[i].replies; *p != '\0'; p++) {
            ck_assert_int_eq(expect_reply(&e, *p == 'z' ? 'Z' : *p), EXPECT_FORWARD);
            if (*p == 'Z' || *p == 'z')
                ck_assert_msg(expect_is_last_held(&e) == (*p == 'z'), "%s: %s", rows[i].sent, p);
        }
        ck_assert(expect_take_hold(&e));
        ck_assert(!expect_take_hold(&e));
        expect_fini(&e);
        expect_init(&e);
    }
}
END_TEST

/* What became of messages of our own, and whose the error at hand is. */
START_TEST(errors_of_our_own)
{
    expect_push(&e, OP_QUERY | OP_SWALLOW);
    expect_push(&e, OP_QUERY);
    ck_assert_int_eq(e.own_error, EXPECT_OWN_FINE);
    expect_note_error(&e);
    (void)expect_reply(&e, 'E');
    ck_assert_int_eq(e.own_error, EXPECT_OWN_FAILS);
    (void)expect_reply(&e, 'Z');
    expect_note_error(&e);
    (void)expect_reply(&e, 'E');
    ck_assert_int_eq(e.own_error, EXPECT_OWN_FAILED);
    e.own_error = EXPECT_OWN_FINE;
    expect_note_error(&e);
    ck_assert_int_eq(e.own_error, EXPECT_OWN_FINE);
}
END_TEST

/* A tag of an op with OP_TAGS is not passed by, its rows are. */
START_TEST(tags_are_stopped_at)
{
    static const char msgs[] = "T\0\0\0\4D\0\0\0\4C\0\0\0\15SELECT 3\0Z\0\0\0\5I";
    uint64_t nrows = 0;

    expect_push(&e, OP_QUERY | OP_TAGS);
    ck_assert_ptr_eq(expect_pass(&e, msgs, msgs + sizeof msgs - 1, false, &nrows), msgs + 10);
    ck_assert_uint_eq(nrows, 0); /* who looks at it closely counts them */
    (void)expect_reply(&e, 'C');
    ck_assert(expect_pass_last(&e));
    expect_push(&e, OP_QUERY);
    ck_assert_ptr_eq(expect_pass(&e, msgs, msgs + sizeof msgs - 1, false, &nrows), msgs + 24);
    ck_assert_uint_eq(nrows, 3);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("expect_sinks");
    TCase *tc = tcase_create("sinks");

    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, the_end_on_hold);
    tcase_add_test(tc, errors_of_our_own);
    tcase_add_test(tc, tags_are_stopped_at);
    suite_add_tcase(s, tc);
    return run_suite(s);
}
