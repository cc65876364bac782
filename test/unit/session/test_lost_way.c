/* SPDX-License-Identifier: PostgreSQL
 * test_lost_way.c: what becomes of a session whose link dies, as a table. */
#include "config.h"

#include <check.h>
#include <stdlib.h>

#include "exchange/lost_way_int.h"
#include "run_suite.h"

struct case_ {
    const char *what;
    enum phase phase;
    unsigned facts;
    enum lost_way way;
};

static const struct case_ cases[] = {
    {"the login of a link", PHASE_OPENING, 0, LOST_OPENING},
    {"... for a session that has lost what tied it", PHASE_OPENING, LOST_IS_TIED, LOST_OPENING},
    {"the session's settings were under way", PHASE_SYNCING, LOST_OWES, LOST_BETWEEN},
    {"a question of ours", PHASE_ASKING, LOST_OWES, LOST_BETWEEN},
    {"a Describe of ours", PHASE_LOOKING, LOST_OWES, LOST_BETWEEN},
    {"a question on another link whether it may do something", PHASE_JUDGING, LOST_OWES,
        LOST_BETWEEN},
    {"... on its own", PHASE_JUDGING_OWN, LOST_OWES, LOST_JUDGING},
    {"... to which it was tied", PHASE_JUDGING_OWN, LOST_OWES | LOST_IS_TIED, LOST_ENDS},
    {"a link logs in for a question of ours", PHASE_ASK_OPENING, 0, LOST_OPENING},
    {"the client is in a message to a link that it is done with", PHASE_LEAVING, LOST_IN_MESSAGE,
        LOST_ENDS},
    {"the client has its answer, and something is put right", PHASE_REPAIRING, LOST_OWES,
        LOST_BETWEEN},
    {"a temporary table was on it", PHASE_ATTACHED, LOST_IS_TIED, LOST_ENDS},
    {"... while something is put right", PHASE_REPAIRING, LOST_IS_TIED | LOST_OWES, LOST_ENDS},
    {"a row was told in part", PHASE_ATTACHED, LOST_IN_MESSAGE | LOST_OWES, LOST_ENDS},
    {"... of a read that had left its transaction", PHASE_ATTACHED,
        LOST_IN_MESSAGE | LOST_OWES | LOST_HAS_HOME, LOST_ENDS},
    {"at rest in a transaction", PHASE_ATTACHED, 0, LOST_FAILS},
    {"a write", PHASE_ATTACHED, LOST_OWES, LOST_FAILS},
    {"a read of which nothing was told", PHASE_ATTACHED, LOST_OWES | LOST_MAY_REPEAT,
        LOST_REPEATED},
    {"... that was refused, too", PHASE_ATTACHED, LOST_OWES | LOST_MAY_REPEAT | LOST_WAS_REFUSED,
        LOST_REPEATED},
    {"a write that a standby refused", PHASE_ATTACHED, LOST_OWES | LOST_WAS_REFUSED, LOST_PUT_BACK},
    {"the tag was told, the end was not", PHASE_ATTACHED, LOST_OWES | LOST_IS_OVER,
        LOST_BEHIND_END},
    {"a read that left was parked", PHASE_SYNCING, LOST_OWES | LOST_HAS_HOME, LOST_HOMEWARD},
    {"... while its link logged in", PHASE_OPENING, LOST_HAS_HOME, LOST_HOMEWARD},
    {"... was not sent yet", PHASE_ATTACHED, LOST_HAS_HOME, LOST_HOMEWARD},
    {"... was sent, nothing told", PHASE_ATTACHED, LOST_OWES | LOST_HAS_HOME | LOST_MAY_REPEAT,
        LOST_OUT_REPEATED},
    {"... was told but for its end", PHASE_ATTACHED, LOST_OWES | LOST_HAS_HOME | LOST_IS_OVER,
        LOST_OUT_OVER},
    {"... was told in part", PHASE_ATTACHED, LOST_OWES | LOST_HAS_HOME, LOST_OUT_FAILS},
};

START_TEST(decides)
{
    const struct case_ *t = &cases[_i];
    enum lost_way way = lost_way_of(t->phase, t->facts);

    ck_assert_msg(way == t->way, "%s: %d, not %d", t->what, (int)way, (int)t->way);
}
END_TEST

/* Whatever is known besides: nothing is made again that may have been done, or was told in part. */
START_TEST(repeats_nothing_else)
{
    unsigned facts;
    int phase;

    for (phase = PHASE_DETACHED; phase < NPHASES; phase++)
        for (facts = 0; facts < 0x100; facts++) {
            enum lost_way way = lost_way_of((enum phase)phase, facts);

            if (way == LOST_REPEATED || way == LOST_OUT_REPEATED) {
                ck_assert_int_eq(phase, PHASE_ATTACHED);
                ck_assert_uint_ne(facts & LOST_MAY_REPEAT, 0);
                ck_assert_uint_eq(facts & (LOST_IN_MESSAGE | LOST_IS_OVER), 0);
            }
            if (way == LOST_PUT_BACK)
                ck_assert_uint_ne(facts & LOST_WAS_REFUSED, 0);
            if ((facts & LOST_IN_MESSAGE) != 0 && !phase_is_opening((enum phase)phase))
                ck_assert_int_eq(way, LOST_ENDS);
        }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("lost_way");
    TCase *tc = tcase_create("lost_way");

    tcase_add_loop_test(tc, decides, 0, (int)(sizeof cases / sizeof cases[0]));
    tcase_add_test(tc, repeats_nothing_else);
    suite_add_tcase(suite, tc);
    return run_suite(suite);
}
