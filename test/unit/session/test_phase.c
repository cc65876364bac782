/* SPDX-License-Identifier: PostgreSQL
 * test_phase.c: the phases of a session that is followed: ways through them, and edges that
 * are none. */
#include "config.h"

#include <check.h>
#include <stdlib.h>

#include "sstate/phase_int.h"
#include "run_suite.h"

struct way {
    const char *what;
    enum phase at[8];
    unsigned n;
};

static const struct way ways[] = {
    {"a statement", {PHASE_DETACHED, PHASE_ATTACHED, PHASE_DETACHED}, 3},
    {"one that waits in a line", {PHASE_DETACHED, PHASE_WAITING, PHASE_ATTACHED, PHASE_DETACHED},
        4},
    {"one that is cancelled there", {PHASE_DETACHED, PHASE_WAITING, PHASE_DETACHED}, 3},
    {"a link is opened for it", {PHASE_DETACHED, PHASE_OPENING, PHASE_ATTACHED, PHASE_DETACHED}, 4},
    {"... which fails", {PHASE_DETACHED, PHASE_OPENING, PHASE_DETACHED, PHASE_WAITING}, 4},
    {"its settings may be refused",
        {PHASE_DETACHED, PHASE_ATTACHED, PHASE_SYNCING, PHASE_ATTACHED, PHASE_DETACHED}, 5},
    {"a question comes first",
        {PHASE_ATTACHED, PHASE_SYNCING, PHASE_ASKING, PHASE_ATTACHED, PHASE_DETACHED}, 5},
    {"may it end another one?",
        {PHASE_ATTACHED, PHASE_SYNCING, PHASE_JUDGING, PHASE_ATTACHED, PHASE_DETACHED}, 5},
    {"what columns has it?", {PHASE_ATTACHED, PHASE_LOOKING, PHASE_ATTACHED}, 3},
    {"a RESET is put right, which is cut short",
        {PHASE_ATTACHED, PHASE_REPAIRING, PHASE_REPAIRING, PHASE_ATTACHED, PHASE_DETACHED}, 5},
    {"a login", {PHASE_DETACHED, PHASE_SYNCING, PHASE_ATTACHED}, 3},
};

START_TEST(goes)
{
    const struct way *w = &ways[_i];

    for (unsigned i = 1; i < w->n; i++)
        ck_assert_msg(phase_may(w->at[i - 1], w->at[i]), "%s: %s to %s", w->what,
            phase_name(w->at[i - 1]), phase_name(w->at[i]));
}
END_TEST

static const enum phase wrong[][2] = {
    {PHASE_WAITING, PHASE_OPENING},    /* its place in the line is given up first */
    {PHASE_WAITING, PHASE_ASKING},     /* there is no link */
    {PHASE_OPENING, PHASE_SYNCING},    /* there is no link yet */
    {PHASE_DETACHED, PHASE_REPAIRING}, /* there is no link any more */
    {PHASE_ATTACHED, PHASE_WAITING},   /* it is given back first */
    {PHASE_ATTACHED, PHASE_ATTACHED},  /* nobody has two */
    {PHASE_ASKING, PHASE_REPAIRING},   /* the link is not the client's */
    {PHASE_REPAIRING, PHASE_SYNCING},
};

START_TEST(stays_out)
{
    ck_assert(!phase_may(wrong[_i][0], wrong[_i][1]));
}
END_TEST

/* Wherever a session is, its link may die; and no phase is there in vain. */
START_TEST(leaves_and_arrives)
{
    for (int to = 0; to < NPHASES; to++) {
        unsigned from = 0;

        for (int i = 0; i < NPHASES; i++)
            from += i != to && phase_may((enum phase)i, (enum phase)to);
        ck_assert_msg(from > 0, "nothing leads to %s", phase_name((enum phase)to));
        ck_assert(phase_may((enum phase)to, PHASE_DETACHED));
        ck_assert_ptr_nonnull(phase_name((enum phase)to));
        ck_assert_uint_eq(phase_next[to] >> NPHASES, 0);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("phase");
    TCase *tc = tcase_create("phases");

    tcase_add_loop_test(tc, goes, 0, sizeof ways / sizeof ways[0]);
    tcase_add_loop_test(tc, stays_out, 0, sizeof wrong / sizeof wrong[0]);
    tcase_add_test(tc, leaves_and_arrives);
    suite_add_tcase(suite, tc);
    return run_suite(suite);
}
