/* SPDX-License-Identifier: PostgreSQL
 * test_share_phase.c: the phases of a session that shares links: ways through them, and edges that
 * are none. */
#include "config.h"

#include <check.h>
#include <stdlib.h>

#include "share_phase_int.h"
#include "run_suite.h"

struct way {
    const char *what;
    enum share_phase at[8];
    unsigned n;
};

static const struct way ways[] = {
    {"a statement", {SHARE_DETACHED, SHARE_ATTACHED, SHARE_DETACHED}, 3},
    {"one that waits in a line", {SHARE_DETACHED, SHARE_WAITING, SHARE_ATTACHED, SHARE_DETACHED},
        4},
    {"one that is cancelled there", {SHARE_DETACHED, SHARE_WAITING, SHARE_DETACHED}, 3},
    {"a link is opened for it", {SHARE_DETACHED, SHARE_OPENING, SHARE_ATTACHED, SHARE_DETACHED}, 4},
    {"... which fails", {SHARE_DETACHED, SHARE_OPENING, SHARE_DETACHED, SHARE_WAITING}, 4},
    {"its settings may be refused",
        {SHARE_DETACHED, SHARE_ATTACHED, SHARE_SYNCING, SHARE_ATTACHED, SHARE_DETACHED}, 5},
    {"a question comes first",
        {SHARE_ATTACHED, SHARE_SYNCING, SHARE_ASKING, SHARE_ATTACHED, SHARE_DETACHED}, 5},
    {"may it end another one?",
        {SHARE_ATTACHED, SHARE_SYNCING, SHARE_JUDGING, SHARE_ATTACHED, SHARE_DETACHED}, 5},
    {"what columns has it?", {SHARE_ATTACHED, SHARE_LOOKING, SHARE_ATTACHED}, 3},
    {"a RESET is put right, which is cut short",
        {SHARE_ATTACHED, SHARE_REPAIRING, SHARE_REPAIRING, SHARE_ATTACHED, SHARE_DETACHED}, 5},
    {"a login", {SHARE_DETACHED, SHARE_SYNCING, SHARE_ATTACHED}, 3},
};

START_TEST(goes)
{
    const struct way *w = &ways[_i];

    for (unsigned i = 1; i < w->n; i++)
        ck_assert_msg(share_phase_may(w->at[i - 1], w->at[i]), "%s: %s to %s", w->what,
            share_phase_name(w->at[i - 1]), share_phase_name(w->at[i]));
}
END_TEST

static const enum share_phase wrong[][2] = {
    {SHARE_WAITING, SHARE_OPENING},    /* its place in the line is given up first */
    {SHARE_WAITING, SHARE_ASKING},     /* there is no link */
    {SHARE_OPENING, SHARE_SYNCING},    /* ... yet */
    {SHARE_DETACHED, SHARE_REPAIRING}, /* ... any more */
    {SHARE_ATTACHED, SHARE_WAITING},   /* it is given back first */
    {SHARE_ATTACHED, SHARE_ATTACHED},  /* nobody has two */
    {SHARE_ASKING, SHARE_REPAIRING},   /* the link is not the client's */
    {SHARE_REPAIRING, SHARE_SYNCING},
};

START_TEST(stays_out)
{
    ck_assert(!share_phase_may(wrong[_i][0], wrong[_i][1]));
}
END_TEST

/* Wherever a session is, its link may die; and no phase is there in vain. */
START_TEST(leaves_and_arrives)
{
    for (int to = 0; to < SHARE_NPHASES; to++) {
        unsigned from = 0;

        for (int i = 0; i < SHARE_NPHASES; i++)
            from += i != to && share_phase_may((enum share_phase)i, (enum share_phase)to);
        ck_assert_msg(from > 0, "nothing leads to %s", share_phase_name((enum share_phase)to));
        ck_assert(share_phase_may((enum share_phase)to, SHARE_DETACHED));
        ck_assert_ptr_nonnull(share_phase_name((enum share_phase)to));
        ck_assert_uint_eq(share_phase_next[to] >> SHARE_NPHASES, 0);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("share_phase");
    TCase *tc = tcase_create("phases");

    tcase_add_loop_test(tc, goes, 0, sizeof ways / sizeof ways[0]);
    tcase_add_loop_test(tc, stays_out, 0, sizeof wrong / sizeof wrong[0]);
    tcase_add_test(tc, leaves_and_arrives);
    suite_add_tcase(suite, tc);
    return run_suite(suite);
}
