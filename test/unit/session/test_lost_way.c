/* SPDX-License-Identifier: PostgreSQL
 * test_lost_way.c: what becomes of a session whose link dies, as a table. */
#include "config.h"

#include <check.h>
#include <stdlib.h>

#include "lost_way_int.h"
#include "run_suite.h"

struct case_ {
    const char *what;
    enum share_phase phase;
    unsigned facts;
    enum lost_way way;
};

static const struct case_ cases[] = {
    {"the login of a link", SHARE_OPENING, 0, LOST_OPENING},
    {"... for a session that has lost what tied it", SHARE_OPENING, LOST_IS_TIED, LOST_OPENING},
    {"the session's settings were under way", SHARE_SYNCING, LOST_OWES, LOST_BETWEEN},
    {"a question of ours", SHARE_ASKING, LOST_OWES, LOST_BETWEEN},
    {"a Describe of ours", SHARE_LOOKING, LOST_OWES, LOST_BETWEEN},
    {"a question on another link whether it may do something", SHARE_JUDGING, LOST_OWES,
        LOST_BETWEEN},
    {"... on its own", SHARE_JUDGING, LOST_OWES | LOST_IS_JUDGED, LOST_JUDGING},
    {"... to which it was tied", SHARE_JUDGING, LOST_OWES | LOST_IS_JUDGED | LOST_IS_TIED,
        LOST_ENDS},
    {"the client has its answer, and something is put right", SHARE_REPAIRING, LOST_OWES,
        LOST_BETWEEN},
    {"a temporary table was on it", SHARE_ATTACHED, LOST_IS_TIED, LOST_ENDS},
    {"... while something is put right", SHARE_REPAIRING, LOST_IS_TIED | LOST_OWES, LOST_ENDS},
    {"a row was told in part", SHARE_ATTACHED, LOST_IN_MESSAGE | LOST_OWES, LOST_ENDS},
    {"... of a read that had left its transaction", SHARE_ATTACHED,
        LOST_IN_MESSAGE | LOST_OWES | LOST_HAS_HOME, LOST_ENDS},
    {"at rest in a transaction", SHARE_ATTACHED, 0, LOST_FAILS},
    {"a write", SHARE_ATTACHED, LOST_OWES, LOST_FAILS},
    {"a read of which nothing was told", SHARE_ATTACHED, LOST_OWES | LOST_MAY_REPEAT,
        LOST_REPEATED},
    {"... that was refused, too", SHARE_ATTACHED, LOST_OWES | LOST_MAY_REPEAT | LOST_WAS_REFUSED,
        LOST_REPEATED},
    {"a write that a standby refused", SHARE_ATTACHED, LOST_OWES | LOST_WAS_REFUSED, LOST_PUT_BACK},
    {"ROLLBACK", SHARE_ATTACHED, LOST_OWES | LOST_IS_ROLLBACK, LOST_ROLLED_BACK},
    {"the tag was told, the end was not", SHARE_ATTACHED, LOST_OWES | LOST_IS_OVER,
        LOST_BEHIND_END},
    {"a read that left was parked", SHARE_SYNCING, LOST_OWES | LOST_HAS_HOME, LOST_HOMEWARD},
    {"... while its link logged in", SHARE_OPENING, LOST_HAS_HOME, LOST_HOMEWARD},
    {"... was not sent yet", SHARE_ATTACHED, LOST_HAS_HOME, LOST_HOMEWARD},
    {"... was sent, nothing told", SHARE_ATTACHED, LOST_OWES | LOST_HAS_HOME | LOST_MAY_REPEAT,
        LOST_OUT_REPEATED},
    {"... was told but for its end", SHARE_ATTACHED, LOST_OWES | LOST_HAS_HOME | LOST_IS_OVER,
        LOST_OUT_OVER},
    {"... was told in part", SHARE_ATTACHED, LOST_OWES | LOST_HAS_HOME, LOST_OUT_FAILS},
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

    for (phase = SHARE_DETACHED; phase <= SHARE_REPAIRING; phase++)
        for (facts = 0; facts < 0x200; facts++) {
            enum lost_way way = lost_way_of((enum share_phase)phase, facts);

            if (way == LOST_REPEATED || way == LOST_OUT_REPEATED) {
                ck_assert_int_eq(phase, SHARE_ATTACHED);
                ck_assert_uint_ne(facts & LOST_MAY_REPEAT, 0);
                ck_assert_uint_eq(facts & (LOST_IN_MESSAGE | LOST_IS_OVER), 0);
            }
            if (way == LOST_PUT_BACK)
                ck_assert_uint_ne(facts & LOST_WAS_REFUSED, 0);
            if ((facts & LOST_IN_MESSAGE) != 0 && phase != SHARE_OPENING)
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
