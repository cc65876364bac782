/* SPDX-License-Identifier: PostgreSQL
 * test_phase.c: the phases of a session that is followed: ways through them, and all edges. */
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
        {PHASE_ATTACHED, PHASE_ASK_SYNCING, PHASE_ASKING, PHASE_ATTACHED, PHASE_DETACHED}, 5},
    {"... for which a link is opened",
        {PHASE_DETACHED, PHASE_ASK_OPENING, PHASE_ATTACHED, PHASE_DETACHED, PHASE_ATTACHED,
            PHASE_ASKING, PHASE_ATTACHED, PHASE_DETACHED},
        8},
    {"may it end another one?",
        {PHASE_ATTACHED, PHASE_ASK_SYNCING, PHASE_JUDGING, PHASE_ATTACHED, PHASE_DETACHED}, 5},
    {"... in its transaction", {PHASE_ATTACHED, PHASE_JUDGING_OWN, PHASE_ATTACHED}, 3},
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

/* All edges, but those to DETACHED: of none that is not here may there be one. */
static const struct edge {
    enum phase from;
    enum phase to;
    const char *what;
} edges[] = {
    {PHASE_DETACHED, PHASE_WAITING, "no link is free"},
    {PHASE_DETACHED, PHASE_ASK_WAITING, "... for a question"},
    {PHASE_DETACHED, PHASE_OPENING, "one is opened"},
    {PHASE_DETACHED, PHASE_ASK_OPENING, "... for a question"},
    {PHASE_DETACHED, PHASE_SYNCING, "the login's settings"},
    {PHASE_DETACHED, PHASE_ATTACHED, "a link is free, or comes back from aside"},
    {PHASE_WAITING, PHASE_WAITING, "for a primary, by now"},
    {PHASE_WAITING, PHASE_ATTACHED, "its turn"},
    {PHASE_ASK_WAITING, PHASE_WAITING, "for a primary, by now"},
    {PHASE_ASK_WAITING, PHASE_ATTACHED, "its turn"},
    {PHASE_OPENING, PHASE_ATTACHED, "it is in"},
    {PHASE_ASK_OPENING, PHASE_ATTACHED, "it is in: given back, and borrowed by who asks"},
    {PHASE_SYNCING, PHASE_SYNCING, "more settings"},
    {PHASE_SYNCING, PHASE_ATTACHED, "they are there"},
    {PHASE_ASK_SYNCING, PHASE_ASKING, "they are there"},
    {PHASE_ASK_SYNCING, PHASE_JUDGING, "they are there"},
    {PHASE_ASKING, PHASE_ATTACHED, "the answer is there"},
    {PHASE_LOOKING, PHASE_ATTACHED, "the answer is there"},
    {PHASE_JUDGING, PHASE_ATTACHED, "the answer is there"},
    {PHASE_JUDGING_OWN, PHASE_ATTACHED, "the answer is there"},
    {PHASE_ATTACHED, PHASE_SYNCING, "settings that may be refused"},
    {PHASE_ATTACHED, PHASE_ASK_SYNCING, "... in front of a question"},
    {PHASE_ATTACHED, PHASE_ASKING, "a link was free to ask on"},
    {PHASE_ATTACHED, PHASE_LOOKING, "what columns has it?"},
    {PHASE_ATTACHED, PHASE_JUDGING, "may it? On a borrowed link"},
    {PHASE_ATTACHED, PHASE_JUDGING_OWN, "... in its transaction"},
    {PHASE_ATTACHED, PHASE_LEAVING, "the client is in a message of it"},
    {PHASE_ATTACHED, PHASE_REPAIRING, "after a RESET, say"},
    {PHASE_ATTACHED, PHASE_ENDING, "... whose end is on hold"},
    {PHASE_REPAIRING, PHASE_REPAIRING, "it was cut short"},
    {PHASE_REPAIRING, PHASE_ATTACHED, "it is done"},
    {PHASE_ENDING, PHASE_ENDING, "it was cut short"},
    {PHASE_ENDING, PHASE_ATTACHED, "it is done, and told"},
};

START_TEST(has_these_edges)
{
    uint16_t all[NPHASES] = {0};
    size_t i;

    for (i = 0; i < sizeof edges / sizeof edges[0]; i++) {
        ck_assert_msg(phase_may(edges[i].from, edges[i].to), "%s to %s: %s",
            phase_name(edges[i].from), phase_name(edges[i].to), edges[i].what);
        all[edges[i].from] = (uint16_t)(all[edges[i].from] | 1U << edges[i].to);
    }
    for (i = 0; i < NPHASES; i++)
        ck_assert_msg((all[i] | 1U << PHASE_DETACHED) == phase_next[i],
            "from %s there is an edge that is not in the table", phase_name((enum phase)i));
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
    tcase_add_test(tc, has_these_edges);
    tcase_add_test(tc, leaves_and_arrives);
    suite_add_tcase(suite, tc);
    return run_suite(suite);
}
