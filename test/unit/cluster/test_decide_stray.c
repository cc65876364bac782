/* SPDX-License-Identifier: PostgreSQL
 * test_decide_stray.c: a standby is promoted beside the primary; several servers say at the start
 * that they are primaries. What follows is a table of stories, each told with the primary on node 0
 * and on node 2. In a story P is the primary, X who is promoted, S the other standby. */
#include "config.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "decide_bed.h"
#include "run_suite.h"

static void setup(void)
{
    int i;

    bed_make();
    rules->returns = true;
    for (i = 0; i < 3; i++)
        rules->node[i].max_retries = 2;
    decide_init(d, rules, now_us);
}

static void step(int node, enum decide_answer answer)
{
    struct decide_probe p = {
        .answer = answer, .sqlstate = "", .message = "why", .took_ms = 3, .facts = facts};

    now_us += SECOND_US;
    decide_on_probe(d, node, &p, now_us);
}

static void says(int node, bool primary, bool receives, uint32_t timeline, uint64_t system_id)
{
    memset(facts, 0, sizeof *facts);
    facts->is_primary = primary;
    facts->is_receiving = receives;
    facts->timeline = timeline;
    facts->system_id = system_id;
    facts->received_lsn = facts->replayed_lsn = 5000;
    facts->replay_age_us = -1;
    step(node, DECIDE_FACTS);
}

/* One word of a story: who, and what it answers. */
static void tell(const char *word, const int *who)
{
    int node = who[word[0] == 'P' ? 0 : word[0] == 'X' ? 1 : 2];

    switch (word[1]) {
    case 'p': /* a primary on the timeline that follows */
        says(node, true, false, (uint32_t)(word[2] - '0'), SYSTEM_ID);
        break;
    case 's': /* a standby that streams on it */
        says(node, false, true, (uint32_t)(word[2] - '0'), SYSTEM_ID);
        break;
    case 'a': /* a standby that streams from nobody */
        says(node, false, false, (uint32_t)(word[2] - '0'), SYSTEM_ID);
        break;
    case '-':
        step(node, DECIDE_FAILED);
        break;
    case 'b':
        step(node, DECIDE_BUSY);
        break;
    case 'A':
        decide_attach(d, node, "dba", now_us);
        break;
    case 'N':
        decide_promote(d, node, "dba", now_us);
        break;
    case 'D':
        decide_detach(d, node, "dba", "why", now_us);
        break;
    default:
        ck_abort_msg("%s", word);
    }
}

/* Who is the primary after all is said, and what became of the other one: u(sed), q(uarantine),
 * d(own). */
static const struct {
    const char *story;
    char primary;
    char other;
} stories[] = {
    /* An accident: it does not take the writes. */
    {"Pp1 Xs1 Ss1  Xp2", 'P', 'u'}, /* not judged before P was asked again */
    {"Pp1 Xs1 Ss1  Xp2 Ss1", 'P', 'u'},
    {"Pp1 Xs1 Ss1  Xp2 Pp1 Ss1", 'P', 'q'},
    {"Pp1 Xs1 Ss1  Xp2 Ss1 Pp1", 'P', 'q'},
    {"Pp1 Xs1 Ss1  Xp2 Pp1 Ss1 Xp2 Xp2", 'P', 'q'},
    /* A moment of trouble is no reason afterwards, either. */
    {"Pp1 Xs1 Ss1  Xp2 Pp1 Ss1 Sa1 Xp2 Pp1", 'P', 'q'},
    {"Pp1 Xs1 Ss1  Xp2 Pp1 Ss1 P- Sa1 Xp2 Pp1", 'P', 'q'},
    {"Pp1 Xs1 Ss1  Xp2 Pp1 Ss1 Pb Sa1 Xp2 Pp1", 'P', 'q'},
    {"Pp1 Xs1 Ss1  Xp2 P- Ss1 Xp2 Pp1 Ss1", 'P', 'q'}, /* we alone do not reach it */
    /* The accident is undone. */
    {"Pp1 Xs1 Ss1  Xp2 Pp1 Ss1 Xs1 Xs1", 'P', 'u'},
    /* Somebody fails over: the old one has gone, or says nothing and nobody hears it. */
    {"Pp1 Xs1 Ss1  P- P- P- Xp2", 'X', 'd'},
    {"Pp1 Xs1 Ss1  P- Sa1 Xp2", 'X', 'u'},
    {"Pp1 Xs1 Ss1  Xp2 P- Sa1", 'X', 'u'},
    {"Pp1 Xs1 Ss1  Xp2 Pb Sa1", 'X', 'q'},
    {"Pp1 Xs1 Ss1  Xp2 P- P- P-", 'X', 'd'},
    {"Pp1 Xs1 Ss1  Xp2 Pp1 Ss1 P- P- P- Xp2", 'X', 'd'},
    {"Pp1 Xs1 Ss1  Xp2 Ps2", 'X', 'u'},
    /* The standbys follow the new one. */
    {"Pp1 Xs1 Ss1  Ss2 Xp2", 'X', 'q'},
    {"Pp1 Xs1 Ss1  Xp2 Ss2", 'X', 'q'},
    {"Pp1 Xs1 Ss1  Xp2 Pp1 Ss1 Ss2", 'X', 'q'},
    /* Nobody follows the old one. */
    {"Pp1 Xs1  Xp2", 'X', 'q'},
    {"Pp1 Xs1 Ss1 S- S- S-  Xp2", 'X', 'q'},
    {"Pp1 Xs1 Ss1 Sa1  Xp2 Pp1", 'X', 'q'},
    /* An operator says so. */
    {"Pp1 Xs1 Ss1  Xp2 Pp1 Ss1 XA", 'P', 'u'}, /* it is asked again first */
    {"Pp1 Xs1 Ss1  Xp2 Pp1 Ss1 XA Xp2", 'X', 'q'},
    {"Pp1 Xs1 Ss1  Xp2 Pp1 Ss1 XA Xs1 Pp1", 'P', 'u'}, /* it was rebuilt before */
    {"Pp1 Xs1 Ss1  Xp2 Pp1 Ss1 X- XA Xs1 Pp1", 'P', 'u'},
    {"Pp1 Xs1 Ss1  Xp2 Pp1 Ss1 XN", 'X', 'q'},
    {"Pp1 Xs1 Ss1  Xp2 XN", 'X', 'q'},
    {"Pp1 Xs1 Ss1  Xp2 Pp1 Ss1 PD", 'X', 'd'},
    {"Pp1 Xs1 Ss1  Xp2 Pp1 Ss1 XA Pp1 Ss1 Xp2", 'X', 'q'},
};

static char letter_of(int node)
{
    switch ((enum view_status)d->view.node[node].status) {
    case VIEW_QUARANTINE:
        return 'q';
    case VIEW_DOWN:
        return 'd';
    default:
        return 'u';
    }
}

START_TEST(who_is_the_primary)
{
    const int who[2][3] = {{0, 1, 2}, {2, 1, 0}};
    size_t i;
    int at;

    for (i = 0; i < sizeof stories / sizeof stories[0]; i++)
        for (at = 0; at < 2; at++) {
            char text[128];
            char *rest = NULL;
            char *word;

            bed_free();
            setup();
            snprintf(text, sizeof text, "%s", stories[i].story);
            for (word = strtok_r(text, " ", &rest); word != NULL; word = strtok_r(NULL, " ", &rest))
                tell(word, who[at]);
            ck_assert_msg(d->view.primary == who[at][stories[i].primary == 'X'],
                "story \"%s\" with P on %d: the primary is %d", stories[i].story, who[at][0],
                d->view.primary);
            ck_assert_msg(letter_of(who[at][stories[i].primary != 'X']) == stories[i].other,
                "story \"%s\" with P on %d: the other one is '%c'", stories[i].story, who[at][0],
                letter_of(who[at][stories[i].primary != 'X']));
        }
}
END_TEST

static int events_of(enum decide_event_type type, int node)
{
    static struct decide_event taken[DECIDE_MAX_EVENTS]; /* too big for the stack */
    int n = decide_take_events(d, taken, DECIDE_MAX_EVENTS);
    int found = 0;
    int i;

    for (i = 0; i < n; i++)
        found += taken[i].type == type && taken[i].node == node ? 1 : 0;
    return found;
}

/* It is told of once; the next monitor knows it still; and everybody is asked at once meanwhile. */
START_TEST(a_stray_is_remembered)
{
    struct view *before = mem_alloc(sizeof *before);

    says(0, true, false, 1, SYSTEM_ID);
    says(1, false, true, 1, SYSTEM_ID);
    says(2, false, true, 1, SYSTEM_ID);
    says(1, true, false, 2, SYSTEM_ID);
    ck_assert(decide_is_urgent(d, 0));
    ck_assert(decide_is_urgent(d, 2));
    says(2, false, true, 1, SYSTEM_ID);
    says(0, true, false, 1, SYSTEM_ID);
    ck_assert(!decide_is_urgent(d, 0));
    ck_assert_int_eq(events_of(DECIDE_EV_QUARANTINE, 1), 1);
    says(1, true, false, 2, SYSTEM_ID);
    ck_assert_int_eq(events_of(DECIDE_EV_QUARANTINE, 1), 0);
    *before = d->view;
    decide_init(d, rules, now_us);
    decide_adopt(d, before);
    says(2, false, false, 1, SYSTEM_ID); /* nobody follows in this moment */
    says(1, true, false, 2, SYSTEM_ID);
    ck_assert_int_eq(d->view.primary, 0);
    ck_assert_int_eq(d->view.node[1].status, VIEW_QUARANTINE);
    mem_free(before);
}
END_TEST

/* Servers that share nothing: the lowest number, whoever answers first; later ones change nothing.
 */
START_TEST(at_the_start_the_lowest_counts)
{
    static const int orders[][3] = {{0, 1, 2}, {2, 1, 0}, {1, 2, 0}, {2, 0, 1}};
    size_t i;
    int k;

    for (i = 0; i < 2 * sizeof orders / sizeof orders[0]; i++) {
        const int *order = orders[i / 2];
        uint64_t step_id = i % 2; /* copies of one folder have one identifier */

        bed_free();
        setup();
        for (k = 0; k < 3; k++)
            says(order[k], true, false, 1, SYSTEM_ID + step_id * (uint64_t)order[k]);
        ck_assert_int_eq(d->view.primary, 0);
        ck_assert(!d->view.is_looking);
        for (k = 2; k >= 0; k--)
            says(k, true, false, 1, SYSTEM_ID + step_id * (uint64_t)k);
        ck_assert_int_eq(d->view.primary, 0);
    }
    bed_free();
    setup();
    says(2, true, false, 1, SYSTEM_ID + 2);
    says(1, true, false, 1, SYSTEM_ID + 1);
    now_us += 10 * SECOND_US;
    decide_look(d, now_us);
    says(0, true, false, 1, SYSTEM_ID);
    ck_assert_int_eq(d->view.primary, 1); /* clients write there by now */
}
END_TEST

/* Server 1 is added by a reload, and is made by online recovery or runs already. */
START_TEST(what_a_reload_adds_is_down_until_it_answers)
{
    rules->node[1].exists = false;
    decide_init(d, rules, now_us);
    says(0, true, false, 1, SYSTEM_ID);
    says(2, false, true, 1, SYSTEM_ID);
    rules->node[1].exists = true;
    rules->auto_failback = false;
    decide_set_rules(d, rules, now_us);
    ck_assert_int_eq(d->view.node[1].status, VIEW_DOWN);
    step(1, DECIDE_FAILED);
    step(1, DECIDE_FAILED);
    step(1, DECIDE_FAILED);
    ck_assert_int_eq(events_of(DECIDE_EV_DOWN, 1), 0);
    step(1, DECIDE_BUSY);
    ck_assert_int_eq(d->view.node[1].status, VIEW_DOWN);
    says(1, false, true, 1, SYSTEM_ID);
    ck_assert_int_eq(d->view.node[1].status, VIEW_UP);
    ck_assert_int_eq(events_of(DECIDE_EV_STANDBY, 1), 1);
    step(1, DECIDE_FAILED);
    step(1, DECIDE_FAILED);
    step(1, DECIDE_FAILED);
    says(1, false, true, 1, SYSTEM_ID);
    says(1, false, true, 1, SYSTEM_ID);
    ck_assert_int_eq(d->view.node[1].status, VIEW_DOWN); /* that was the first time alone */
}
END_TEST

/* What to do next stands beside the loss: who reads it at night may not know that nobody acts. */
START_TEST(who_is_without_a_primary_is_told_who_acts)
{
    static struct decide_event taken[DECIDE_MAX_EVENTS]; /* too big for the stack */
    const char *hint = NULL;
    int i;
    int n;

    bool is_detached = _i >= 3;

    d->rules.auto_promote = _i % 3 == 1;
    d->rules.has.failover_command = _i % 3 == 2;
    for (i = 0; i < 3; i++)
        says(i, i == 0, i != 0, 1, SYSTEM_ID);
    (void)decide_take_events(d, taken, DECIDE_MAX_EVENTS);
    if (is_detached)
        decide_detach(d, 0, "alice", "", now_us);
    for (i = 0; !is_detached && i < 10 && d->view.primary == 0; i++)
        step(0, DECIDE_FAILED);
    ck_assert_int_eq(d->view.primary, VIEW_NO_NODE);
    n = decide_take_events(d, taken, DECIDE_MAX_EVENTS);
    for (i = 0; i < n; i++)
        if (taken[i].type == DECIDE_EV_NO_PRIMARY)
            hint = taken[i].hint;
    ck_assert_ptr_nonnull(hint);
    /* Who was taken out is not followed by anybody by itself, but with a failover_command. */
    ck_assert_int_eq(
        strstr(hint, "pcp_promote_node") != NULL, is_detached ? _i % 3 != 2 : _i % 3 == 0);
    ck_assert_int_eq(strstr(hint, "pcp_attach_node") != NULL, is_detached && _i % 3 != 2);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("decide_stray");
    TCase *t = tcase_create("decide_stray");

    tcase_add_checked_fixture(t, setup, bed_free);
    tcase_add_test(t, who_is_the_primary);
    tcase_add_test(t, a_stray_is_remembered);
    tcase_add_test(t, at_the_start_the_lowest_counts);
    tcase_add_test(t, what_a_reload_adds_is_down_until_it_answers);
    tcase_add_loop_test(t, who_is_without_a_primary_is_told_who_acts, 0, 6);
    suite_add_tcase(s, t);
    return run_suite(s);
}
