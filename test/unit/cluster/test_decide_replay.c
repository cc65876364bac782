/* SPDX-License-Identifier: PostgreSQL
 * test_decide_replay.c: of what time a standby is, from what the servers tell, in virtual time. */
#include "config.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "decide_bed.h"
#include "run_suite.h"

static void setup(void)
{
    bed_make();
    decide_init(d, rules, now_us);
}

static int64_t silence_us; /* of the receiver */

/* What a server tells that was asked at `began_us`. */
static void tells_so(
    int node, bool is_primary, bool is_receiving, uint32_t timeline, uint64_t lsn, int64_t began_us)
{
    struct decide_probe p = {.answer = DECIDE_FACTS,
        .sqlstate = "",
        .message = "",
        .began_us = began_us,
        .facts = facts};

    memset(facts, 0, sizeof *facts);
    facts->is_primary = is_primary;
    facts->is_receiving = is_receiving;
    facts->silence_us = silence_us;
    facts->timeline = timeline;
    facts->system_id = SYSTEM_ID;
    facts->received_lsn = lsn;
    facts->replayed_lsn = lsn;
    facts->replay_age_us = -1;
    now_us += SECOND_US;
    decide_on_probe(d, node, &p, now_us);
}

static void tells(int node, bool is_primary, uint32_t timeline, uint64_t lsn, int64_t began_us)
{
    tells_so(node, is_primary, !is_primary, timeline, lsn, began_us);
}

/* A standby that streams from nobody. */
static void tells_alone(int node, uint64_t lsn)
{
    tells_so(node, false, false, 1, lsn, now_us);
}

static int events_of(enum decide_event_type type, int node)
{
    static struct decide_event e[64];
    int n = decide_take_events(d, e, 64);
    int found = 0;
    int i;

    for (i = 0; i < n; i++)
        found += e[i].type == type && e[i].node == node;
    return found;
}

static void lose(int node)
{
    struct decide_probe p = {
        .answer = DECIDE_FAILED, .sqlstate = "", .message = "why", .facts = facts};

    now_us += SECOND_US;
    decide_on_probe(d, node, &p, now_us);
}

/* Another monitor goes on from what is published. */
static void adopt_own(void)
{
    struct view *before = mem_alloc(sizeof *before);

    *before = d->view;
    decide_init(d, rules, now_us);
    decide_adopt(d, before);
    mem_free(before);
}

static void all_well(void)
{
    tells(0, true, 1, 5000, 10);
    tells(1, false, 1, 4000, 20);
    tells(2, false, 1, 4000, 30);
}

START_TEST(what_a_standby_has_is_known_by_marks)
{
    const struct view_node *v = &d->view.node[1];

    all_well();
    tells(0, true, 1, 6000, 100);
    ck_assert_int_eq(v->caught_up_us, 0); /* it told 4000 */
    tells(1, false, 1, 5999, 200);
    ck_assert_int_eq(v->caught_up_us, 10);
    ck_assert_int_eq(v->replay_asked_us, 200);
    tells(1, false, 1, 6000, 300);
    ck_assert_int_eq(v->caught_up_us, 100);
    tells(0, true, 1, 7000, 400);
    tells(0, true, 1, 9000, 500);
    ck_assert_int_eq(v->caught_up_us, 100);
    tells(1, false, 1, 8000, 600);
    ck_assert_int_eq(v->caught_up_us, 400);
    /* Nothing new at the primary: what the standby told is enough. */
    tells(1, false, 1, 9000, 700);
    tells(0, true, 1, 9000, 800);
    ck_assert_int_eq(v->caught_up_us, 800);
    ck_assert_int_eq(v->replay_asked_us, 700);
    ck_assert_int_eq(d->view.node[0].caught_up_us, 0);
}
END_TEST

START_TEST(what_went_back_is_not_believed)
{
    const struct view_node *v = &d->view.node[1];

    all_well();
    tells(0, true, 1, 6000, 100);
    tells(1, false, 1, 6000, 300);
    ck_assert_int_eq(v->caught_up_us, 100);
    tells(1, false, 1, 5500, 400); /* restarted */
    ck_assert_int_eq(v->caught_up_us, 10);
    tells(1, false, 1, 4999, 450);
    ck_assert_int_eq(v->caught_up_us, 0);
    tells(1, false, 1, 6000, 500);
    ck_assert_int_eq(v->caught_up_us, 100);
    tells(1, false, 2, 6000, 600); /* on a timeline of its own */
    ck_assert_int_eq(v->caught_up_us, 0);
}
END_TEST

START_TEST(another_primary_has_other_marks)
{
    const struct view_node *v = &d->view.node[1];
    int i;

    all_well();
    tells(0, true, 1, 6000, 100);
    tells(1, false, 1, 9000, 300);
    ck_assert_int_eq(v->caught_up_us, 100);
    lose(0);
    tells(2, true, 2, 7000, 1000);
    ck_assert_int_eq(d->view.primary, 2);
    ck_assert_int_eq(v->caught_up_us, 0); /* it has replayed what the new one does not have */
    tells(1, false, 2, 7000, 1100);
    ck_assert_int_eq(v->caught_up_us, 1000);
    for (i = 0; i < DECIDE_MARKS; i++)
        tells(2, true, 2, 8000, 2000 + i);
    ck_assert_int_eq(v->caught_up_us, 0); /* it is further behind than is remembered */
}
END_TEST

/* Its row at the primary tells of the last thing that it has replayed. */
static void primary_tells(uint64_t lsn, int64_t began_us)
{
    struct decide_probe p = {.answer = DECIDE_FACTS,
        .sqlstate = "",
        .message = "",
        .began_us = began_us,
        .facts = facts};

    memset(facts, 0, sizeof *facts);
    facts->is_primary = true;
    facts->timeline = 1;
    facts->system_id = SYSTEM_ID;
    facts->received_lsn = lsn;
    facts->replayed_lsn = lsn;
    facts->replay_age_us = -1;
    facts->nsenders = 1;
    snprintf(facts->sender[0].name, sizeof facts->sender[0].name, "one");
    facts->sender[0].replay_lag_us = 1500;
    now_us += SECOND_US;
    decide_on_probe(d, 0, &p, now_us);
}

START_TEST(who_does_not_replay_is_further_behind_each_time)
{
    const struct view_node *v = &d->view.node[1];

    snprintf(d->rules.node[1].application_name, sizeof d->rules.node[1].application_name, "one");
    all_well();
    tells(1, false, 1, 5000, 20);
    ck_assert_int_eq(v->delay_us, 0);
    primary_tells(6000, 10 * SECOND_US);
    tells(1, false, 1, 5000, 10 * SECOND_US + 300);
    ck_assert_int_eq(v->delay_us, 1500); /* it may have been written a moment ago */
    primary_tells(7000, 20 * SECOND_US);
    tells(1, false, 1, 5000, 20 * SECOND_US);
    ck_assert_int_eq(v->delay_us, 10 * SECOND_US);
    primary_tells(7000, 30 * SECOND_US);
    ck_assert_int_eq(v->delay_us, 10 * SECOND_US); /* nobody has asked it since */
    tells(1, false, 1, 6500, 30 * SECOND_US);
    ck_assert_int_eq(v->delay_us, 10 * SECOND_US); /* what was there at 20 s it lacks */
    tells(1, false, 1, 7000, 31 * SECOND_US);
    ck_assert_int_eq(v->delay_us, 0);
    /* A page's header behind the last record is nothing that could be replayed. */
    tells(0, true, 1, 8192 + 24, 40 * SECOND_US);
    tells(1, false, 1, 8192, 41 * SECOND_US);
    primary_tells(9000, 70 * SECOND_US);
    tells(1, false, 1, 8192, 70 * SECOND_US + 5);
    ck_assert_int_eq(v->delay_us, 1500);
    /* What another primary has written is no measure. */
    tells(1, false, 2, 8192, 99 * SECOND_US);
    ck_assert_int_eq(v->delay_us, 1500);
}
END_TEST

/* A standby without a receiver is told of once, when it is behind and has been alone for a minute;
 * and when it follows again. */
START_TEST(a_standby_that_follows_nobody_is_told_of)
{
    uint64_t lsn = _i == 0 ? 4000 : 9000; /* or it has all there is: nothing is lacking */
    int i;

    all_well();
    tells(0, true, 1, 9000, 100);
    for (i = 0; i < 50; i++)
        tells_alone(1, lsn);
    ck_assert_int_eq(events_of(DECIDE_EV_UNFED, 1), 0);
    ck_assert(!d->view.node[1].is_unfed);
    for (i = 0; i < 60; i++)
        tells_alone(1, lsn);
    ck_assert_int_eq(events_of(DECIDE_EV_UNFED, 1), _i == 0 ? 1 : 0);
    ck_assert_int_eq(d->view.node[1].is_unfed, _i == 0);
    adopt_own();
    tells_alone(1, lsn);
    ck_assert_int_eq(events_of(DECIDE_EV_UNFED, 1), 0);
    ck_assert_int_eq(d->view.node[1].is_unfed, _i == 0);
    tells_alone(1, 9000); /* out of an archive, say */
    ck_assert(!d->view.node[1].is_unfed);
    tells_alone(1, lsn);
    ck_assert_int_eq(d->view.node[1].is_unfed, _i == 0);
    tells(1, false, 1, lsn, 1000);
    ck_assert_int_eq(events_of(DECIDE_EV_FED, 1), _i == 0 ? 1 : 0);
    ck_assert(!d->view.node[1].is_unfed);
    tells(1, false, 1, lsn, 1000);
    ck_assert_int_eq(events_of(DECIDE_EV_FED, 1), 0);
}
END_TEST

/* On an older timeline; or that is only what its last restartpoint says, as the role of the health
 * check may not see what it receives. */
START_TEST(an_older_timeline_is_told_of_where_it_is_seen)
{
    int i;

    silence_us = _i == 0 ? 0 : -1;
    all_well();
    tells(0, true, 2, 9000, 100);
    for (i = 0; i < 130; i++)
        tells(1, false, 1, 4000, 1000);
    ck_assert_int_eq(events_of(DECIDE_EV_UNFED, 1), _i == 0 ? 1 : 0);
    silence_us = 0;
}
END_TEST

int main(void)
{
    Suite *s = suite_create("decide_replay");
    TCase *t = tcase_create("all");

    tcase_add_checked_fixture(t, setup, bed_free);
    tcase_add_test(t, what_a_standby_has_is_known_by_marks);
    tcase_add_test(t, what_went_back_is_not_believed);
    tcase_add_test(t, another_primary_has_other_marks);
    tcase_add_test(t, who_does_not_replay_is_further_behind_each_time);
    tcase_add_loop_test(t, a_standby_that_follows_nobody_is_told_of, 0, 2);
    tcase_add_loop_test(t, an_older_timeline_is_told_of_where_it_is_seen, 0, 2);
    suite_add_tcase(s, t);
    return run_suite(s);
}
