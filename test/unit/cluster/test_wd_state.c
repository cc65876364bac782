/* SPDX-License-Identifier: PostgreSQL
 * test_wd_state.c: the replicated state of the watchdog and its votes, by tables. */
#include "config.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "cluster/wd_state.h"
#include "cluster/wd_votes.h"

#include "run_suite.h"

/* L lost, P lost as the primary, D detach, A attach, U up, E end, R primary by itself, C chosen */
struct step {
    char what;
    int node;
    int primary;
    unsigned epoch;
    bool fits;
};

struct row {
    const char *name;
    struct step steps[8];
    const char *nodes; /* of servers 0-2: u up, l lost, h held; capital: failover goes on */
    int primary;
    unsigned epoch;
    int candidate; /* to take the place of server 0, and one more; 0: nobody */
};

static const struct row rows[] = {
    {"nothing", {{0}}, "uuu", -1, 0, 0},
    {"a standby is lost and comes back",
        {{'L', 1, 0, 0, true}, {'E', 1, 0, 1, true}, {'U', 1, 0, 0, true}}, "uuu", 0, 1, 0},
    {"a failover goes on", {{'R', 0, 0, 0, true}, {'P', 0, 0, 0, true}}, "Luu", 0, 1, 0},
    {"a primary is replaced", {{'R', 0, 0, 0, true}, {'P', 0, 0, 0, true}, {'E', 0, 2, 1, true}},
        "luu", 2, 1, 0},
    {"nobody had to take its place",
        {{'R', 0, 0, 0, true}, {'P', 0, 0, 0, true}, {'E', 0, 0, 1, true}}, "uuu", 0, 1, 0},
    {"lost twice is lost once", {{'P', 0, 0, 0, true}, {'P', 0, 0, 0, false}}, "Luu", -1, 1, 0},
    {"an end of another epoch", {{'P', 0, 0, 0, true}, {'E', 0, 1, 7, false}}, "Luu", -1, 1, 0},
    {"an end twice", {{'P', 0, 0, 0, true}, {'E', 0, 1, 1, true}, {'E', 0, 2, 1, false}}, "luu", 1,
        1, 0},
    {"detached stays detached",
        {{'D', 2, 0, 0, true}, {'E', 2, 0, 1, true}, {'U', 2, 0, 0, false}, {'L', 2, 0, 0, false}},
        "uuh", 0, 1, 0},
    {"attached", {{'D', 2, 0, 0, true}, {'A', 2, 0, 0, true}}, "uuu", -1, 1, 0},
    {"two at once", {{'L', 1, 0, 0, true}, {'P', 0, 0, 0, true}, {'E', 1, 0, 1, true}}, "Llu", 0, 2,
        0},
    {"one is chosen", {{'P', 0, 0, 0, true}, {'C', 0, 2, 1, true}, {'C', 0, 2, 1, false}}, "Luu",
        -1, 1, 3},
    {"and another one", {{'P', 0, 0, 0, true}, {'C', 0, 2, 1, true}, {'C', 0, 1, 1, true}}, "Luu",
        -1, 1, 2},
    {"until the end", {{'P', 0, 0, 0, true}, {'C', 0, 2, 1, true}, {'E', 0, 2, 1, true}}, "luu", 2,
        1, 0},
    {"or until it is attached",
        {{'P', 0, 0, 0, true}, {'C', 0, 2, 1, true}, {'A', 0, 0, 0, true}, {'C', 0, 2, 1, false}},
        "uuu", -1, 1, 0},
    {"not itself, nor for another failover",
        {{'C', 0, 1, 0, false}, {'P', 0, 0, 0, true}, {'C', 0, 0, 1, false}, {'C', 0, 1, 7, false},
            {'C', 0, 999, 1, false}},
        "Luu", -1, 1, 0},
    {"out of range", {{'L', -1, 0, 0, false}, {'L', 128, 0, 0, false}, {'R', 0, 999, 0, false}},
        "uuu", -1, 0, 0},
};

static struct wd_event event_of(const struct step *s)
{
    static const struct {
        char c;
        enum wd_event_type type;
    } types[] = {{'L', WD_EV_LOST}, {'P', WD_EV_LOST}, {'D', WD_EV_DETACH}, {'A', WD_EV_ATTACH},
        {'U', WD_EV_UP}, {'E', WD_EV_END}, {'R', WD_EV_PRIMARY}, {'C', WD_EV_CHOSEN}};
    struct wd_event e = {
        .node = (int16_t)s->node, .primary = (int16_t)s->primary, .epoch = s->epoch, .at_us = 1000};
    size_t i;

    for (i = 0; i < sizeof types / sizeof types[0]; i++)
        if (types[i].c == s->what)
            e.type = (uint8_t)types[i].type;
    e.was_primary = s->what == 'P';
    memcpy(e.who, "who", 4);
    memcpy(e.text, "why", 4);
    return e;
}

/* Each event goes the way it goes between pgpools. */
static void play(struct wd_state *s, const struct row *row)
{
    struct wd_event read;
    struct buf text = {0};
    size_t i;

    for (i = 0; i < 8 && row->steps[i].what != 0; i++) {
        struct wd_event e = event_of(&row->steps[i]);

        buf_clear(&text);
        wd_event_put(&e, &text);
        ck_assert(wd_event_get(buf_slice(&text), &read));
        ck_assert_msg(wd_state_apply(s, &read) == row->steps[i].fits, "%s: step %zu", row->name, i);
    }
    buf_free(&text);
}

START_TEST(test_rows)
{
    const struct row *row = &rows[_i];
    struct wd_state s;
    struct wd_state back;
    struct buf text = {0};
    int i;

    wd_state_init(&s);
    play(&s, row);
    for (i = 0; i < 3; i++) {
        const struct wd_node *n = &s.node[i];
        char c = n->is_held ? 'h' : n->is_lost ? 'l' : 'u';

        c = n->is_begun ? (char)(c - 'a' + 'A') : c;
        ck_assert_msg(c == row->nodes[i], "%s: node %d is %c", row->name, i, c);
    }
    ck_assert_int_eq(s.primary, row->primary);
    ck_assert_uint_eq(s.epoch, row->epoch);
    ck_assert_int_eq(s.node[0].candidate, row->candidate - 1);
    wd_state_put(&s, &text);
    ck_assert(wd_state_get(buf_slice(&text), &back));
    ck_assert(wd_state_equal(&s, &back));
    buf_free(&text);
}
END_TEST

/* A snapshot and the events behind it give what all events give. */
START_TEST(test_snapshot_anywhere)
{
    const struct row *row = &rows[_i];
    struct wd_state whole;
    struct buf text = {0};
    size_t cut;
    size_t i;

    wd_state_init(&whole);
    play(&whole, row);
    for (cut = 0; cut < 8; cut++) {
        struct wd_state s;

        wd_state_init(&s);
        for (i = 0; i < 8 && row->steps[i].what != 0; i++) {
            struct wd_event e = event_of(&row->steps[i]);

            if (i == cut) {
                buf_clear(&text);
                wd_state_put(&s, &text);
                ck_assert(wd_state_get(buf_slice(&text), &s));
            }
            wd_state_apply(&s, &e);
        }
        ck_assert(wd_state_equal(&s, &whole));
    }
    buf_free(&text);
}
END_TEST

START_TEST(test_malformed)
{
    struct wd_event e = {.type = WD_EV_LOST, .node = 1, .who = "w", .text = "t"};
    struct wd_state s;
    struct wd_state back;
    struct buf text = {0};
    size_t n;

    wd_event_put(&e, &text);
    for (n = 0; n < text.len; n++)
        ck_assert(!wd_event_get(slice_of(text.data, n), &e));
    buf_put_byte(&text, 'x');
    ck_assert(!wd_event_get(buf_slice(&text), &e));
    text.len--;
    text.data[1] = WD_EV_LAST; /* known, and of a newer build */
    ck_assert(wd_event_get(buf_slice(&text), &e));
    text.data[1] = WD_EV_LAST + 1;
    ck_assert(!wd_event_get(buf_slice(&text), &e));
    text.data[1] = WD_EV_NONE;
    ck_assert(!wd_event_get(buf_slice(&text), &e));
    buf_clear(&text);
    wd_state_init(&s);
    play(&s, &rows[3]);
    wd_state_put(&s, &text);
    for (n = 0; n < text.len; n++)
        ck_assert(!wd_state_get(slice_of(text.data, n), &back));
    buf_free(&text);
}
END_TEST

/* A build that knows of no choices passes them over, and reads a state without any. */
START_TEST(test_choices_and_older_builds)
{
    struct wd_event e = {.type = WD_EV_CHOSEN, .node = 0, .primary = 2, .epoch = 1, .who = "w"};
    struct wd_state s;
    struct wd_state back;
    struct buf text = {0};
    size_t n;

    wd_event_put(&e, &text);
    ck_assert_int_eq(text.data[1], WD_EV_END);
    memset(&e, 0xff, sizeof e);
    ck_assert(wd_event_get(buf_slice(&text), &e));
    ck_assert_int_eq(e.type, WD_EV_CHOSEN);
    ck_assert_uint_eq(e.epoch, 1);
    ck_assert_uint_eq(e.timeline, 0);
    e.type = WD_EV_END; /* so those read it */
    e.timeline = e.epoch;
    e.epoch = 0;
    wd_state_init(&s);
    play(&s, &rows[3]);
    ck_assert(!wd_state_apply(&s, &e));
    buf_clear(&text);
    wd_state_put(&s, &text);
    ck_assert_int_eq(text.data[0], 4);
    wd_state_init(&s);
    play(&s, &rows[2]);
    ck_assert(!wd_state_apply(&s, &e));
    e.type = WD_EV_CHOSEN;
    e.epoch = 1;
    ck_assert(wd_state_apply(&s, &e));
    buf_clear(&text);
    wd_state_put(&s, &text);
    ck_assert_int_eq(text.data[0], 5);
    for (n = 0; n < text.len; n++)
        ck_assert(!wd_state_get(slice_of(text.data, n), &back));
    text.data[text.len - 3] = (char)VIEW_MAX_NODES; /* about a server that cannot be */
    ck_assert(!wd_state_get(buf_slice(&text), &back));
    buf_free(&text);
}
END_TEST

START_TEST(test_kept_events)
{
    struct wd_event e = {.type = WD_EV_LEAD, .member = 1};
    struct wd_state s;
    int i;

    wd_state_init(&s);
    for (i = 0; i < WD_KEPT_EVENTS + 3; i++) {
        e.at_us = i;
        ck_assert(wd_state_apply(&s, &e));
    }
    ck_assert_int_eq(s.nkept, WD_KEPT_EVENTS);
    ck_assert_int_eq(s.kept[0].at_us, 3);
    ck_assert_int_eq(s.leader, 1);
    ck_assert_int_eq(s.leader_since_us, WD_KEPT_EVENTS + 2);
}
END_TEST

/* Who could not take the address yet leaves behind from whom. */
START_TEST(test_address_is_owed)
{
    struct wd_event lead = {.type = WD_EV_LEAD, .epoch = 500};
    struct wd_event out = {.type = WD_EV_LEAD, .is_on = true};
    struct wd_event given = {.type = WD_EV_GIVEN};
    struct wd_state s;

    wd_state_init(&s);
    ck_assert(!wd_state_apply(&s, &out));
    ck_assert(wd_state_apply(&s, &lead));
    ck_assert(!wd_state_is_owed(&s));
    ck_assert(!wd_state_apply(&s, &out));
    lead.member = out.member = 1;
    ck_assert(wd_state_apply(&s, &lead));
    ck_assert(wd_state_is_owed(&s));
    ck_assert_int_eq(s.former, 0);
    ck_assert(wd_state_apply(&s, &lead));
    ck_assert_int_eq(s.former, 0);
    lead.member = 2;
    ck_assert(wd_state_apply(&s, &lead));
    ck_assert(wd_state_is_owed(&s));
    ck_assert_int_eq(s.former, 0);
    ck_assert_str_eq(s.leader_why, "pgpool 1 was not heard any more");
    ck_assert(!wd_state_apply(&s, &out));
    out.member = 2;
    s.leader_since_us = 7;
    ck_assert(wd_state_apply(&s, &out));
    ck_assert(!wd_state_is_owed(&s));
    ck_assert(!wd_state_apply(&s, &out));
    ck_assert_int_eq(s.leader_since_us, 7);
    given.member = 2;
    ck_assert(wd_state_apply(&s, &given));
    lead.member = 1;
    ck_assert(wd_state_apply(&s, &lead));
    ck_assert(!wd_state_is_owed(&s));
    ck_assert_int_eq(s.former, 2);
}
END_TEST

/* A build that never says that who led before is out may have taken the address all the same. */
START_TEST(test_who_led_by_an_older_build)
{
    struct wd_event lead = {.type = WD_EV_LEAD, .epoch = 500};
    struct wd_state s;

    wd_state_init(&s);
    ck_assert(wd_state_apply(&s, &lead));
    lead.member = 1;
    lead.epoch = 0;
    ck_assert(wd_state_apply(&s, &lead));
    ck_assert_int_eq(s.former, 0);
    lead.member = 2;
    lead.epoch = 500;
    ck_assert(wd_state_apply(&s, &lead));
    ck_assert(wd_state_is_owed(&s));
    ck_assert_int_eq(s.former, 1);
}
END_TEST

/* Whoever leads next waits by the shortest, until the address was given up in order. */
START_TEST(test_the_shortest_time_out)
{
    struct wd_event lead = {.type = WD_EV_LEAD, .epoch = 900};
    struct wd_event given = {.type = WD_EV_GIVEN, .member = 1};
    struct buf text = {0};
    struct wd_state s;
    struct wd_state back;

    wd_state_init(&s);
    ck_assert(wd_state_apply(&s, &lead));
    ck_assert_uint_eq(s.shortest_ms, 900);
    lead.member = 1;
    lead.epoch = 300;
    ck_assert(wd_state_apply(&s, &lead));
    lead.member = 2;
    lead.epoch = 500;
    ck_assert(wd_state_apply(&s, &lead));
    ck_assert_uint_eq(s.shortest_ms, 300);
    lead.epoch = 0;
    ck_assert(wd_state_apply(&s, &lead));
    ck_assert_uint_eq(s.shortest_ms, 300);
    wd_state_put(&s, &text);
    ck_assert(wd_state_get(buf_slice(&text), &back));
    ck_assert(wd_state_equal(&s, &back));
    text.data[0] = 3; /* what a build wrote that kept no times */
    text.len -= 8;
    ck_assert(wd_state_get(buf_slice(&text), &back));
    ck_assert_uint_eq(back.shortest_ms, 0);
    ck_assert_int_eq(back.leader, 2);
    buf_free(&text);
    given.member = 2;
    ck_assert(wd_state_apply(&s, &given));
    lead.epoch = 900;
    ck_assert(wd_state_apply(&s, &lead));
    ck_assert_uint_eq(s.shortest_ms, 900);
}
END_TEST

/* Only who leads gives the address up, and only the next who leads is told so. */
START_TEST(test_address_is_given)
{
    struct wd_event lead = {.type = WD_EV_LEAD, .member = 1};
    struct wd_event given = {.type = WD_EV_GIVEN, .member = 1, .text = "it is tired"};
    struct buf text = {0};
    struct wd_state s;
    struct wd_state back;

    wd_state_init(&s);
    ck_assert(!wd_state_apply(&s, &given));
    ck_assert(wd_state_apply(&s, &lead));
    ck_assert(!s.was_given);
    ck_assert_str_eq(s.leader_why, "it was the first to be elected");
    ck_assert(wd_state_apply(&s, &lead));
    ck_assert_str_eq(
        s.leader_why, "it had not heard a majority for a while, and was elected again");
    ck_assert(wd_state_apply(&s, &given));
    ck_assert(s.is_given);
    wd_state_put(&s, &text);
    ck_assert(wd_state_get(buf_slice(&text), &back));
    buf_free(&text);
    ck_assert(back.is_given);
    lead.member = 2;
    ck_assert(wd_state_apply(&back, &lead));
    ck_assert(back.was_given);
    ck_assert_str_eq(back.leader_why, "pgpool 1 gave the lead away: it is tired");
    ck_assert_int_eq(back.former, 1);
    ck_assert(!back.is_given);
    ck_assert(!wd_state_apply(&back, &given));
    lead.member = 0;
    ck_assert(wd_state_apply(&back, &lead));
    ck_assert(!back.was_given);
    ck_assert_str_eq(back.leader_why, "pgpool 2 was not heard any more");
    ck_assert_str_eq(
        back.kept[back.nkept - 1].text, "pgpool 0 leads: pgpool 2 was not heard any more");
}
END_TEST

/* What operators share goes through events and snapshots; what an older version wrote is read. */
START_TEST(test_orders)
{
    struct wd_event on = {.type = WD_EV_PAUSE, .node = 1, .is_on = true, .text = "app"};
    struct wd_event empty = {.type = WD_EV_EMPTY, .who = "alice"};
    struct wd_event primary = {.type = WD_EV_PRIMARY, .primary = 2, .timeline = 7};
    struct wd_event read;
    struct buf text = {0};
    struct wd_state s;
    struct wd_state back;

    wd_state_init(&s);
    wd_event_put(&on, &text);
    ck_assert(wd_event_get(buf_slice(&text), &read));
    ck_assert(wd_state_apply(&s, &read));
    ck_assert_str_eq(s.kept[0].text, "database \"app\" was paused at pgpool 1");
    ck_assert(!wd_state_apply(&s, &on));
    on.text[0] = '\0';
    ck_assert(wd_state_apply(&s, &on));
    ck_assert_str_eq(s.kept[1].text, "all databases were paused at pgpool 1");
    ck_assert(wd_state_apply(&s, &empty));
    ck_assert(wd_state_apply(&s, &primary));
    ck_assert(!wd_state_apply(&s, &primary));
    primary.timeline = 8;
    ck_assert(wd_state_apply(&s, &primary));
    buf_clear(&text);
    wd_state_put(&s, &text);
    ck_assert(wd_state_get(buf_slice(&text), &back));
    ck_assert(wd_state_equal(&s, &back));
    ck_assert(wd_pauses_has(&back.pauses, "app") && wd_pauses_has(&back.pauses, ""));
    ck_assert_uint_eq(back.timeline, 8);
    ck_assert_uint_eq(back.nempties, 1);
    ck_assert_int_eq(back.former, WD_NO_MEMBER);
    on.is_on = false;
    ck_assert(wd_state_apply(&back, &on));
    ck_assert(!wd_pauses_has(&back.pauses, ""));
    buf_clear(&text);
    wd_event_put(&primary, &text);
    memmove(text.data + 13, text.data + 17, text.len - 17); /* the timeline */
    text.len -= 4;
    text.data[0] = 1;
    ck_assert(wd_event_get(buf_slice(&text), &read));
    ck_assert_int_eq(read.primary, 2);
    ck_assert_uint_eq(read.timeline, 0);
    text.data[0] = 3;
    ck_assert(!wd_event_get(buf_slice(&text), &read));
    buf_free(&text);
}
END_TEST

START_TEST(test_disks)
{
    struct wd_event e = {.type = WD_EV_JOIN, .member = 2, .identity = {7}};
    uint8_t other[WD_IDENTITY_BYTES] = {8};
    struct wd_state s;

    wd_state_init(&s);
    ck_assert(!wd_state_is_other_disk(&s, 2, other));
    ck_assert(wd_state_apply(&s, &e));
    ck_assert(!wd_state_is_other_disk(&s, 2, e.identity));
    ck_assert(wd_state_is_other_disk(&s, 2, other));
    ck_assert(!wd_state_is_other_disk(&s, 1, other));
    ck_assert(!wd_state_is_other_disk(&s, -1, other));
}
END_TEST

/* Who finds server 0 lost, by member; the leader is member 0. */
static const struct {
    const char *lost;
    int nmembers;
    bool consensus;
    bool again;
    bool half;
    bool expected;
} polls[] = {
    {"1--", 3, true, false, false, false},
    {"11-", 3, true, false, false, true},
    {"-11", 3, true, false, false, false}, /* the leader sees it working */
    {"1--", 3, false, false, false, true},
    {"-1-", 3, false, false, false, false},
    {"2--", 3, true, false, false, false},
    {"2--", 3, true, true, false, true},
    {"11--", 4, true, false, false, false},
    {"11--", 4, true, false, true, true},
    {"1-", 2, true, false, false, false},
    {"1-", 2, true, false, true, true},
    {"1", 1, true, false, false, true},
    {"1o-", 3, true, false, false, false}, /* an old ballot */
    {"1xw", 3, true, false, false, true},
    {"1-w", 3, true, false, false, false},
    {"-xw", 3, true, false, false, false},
    {"xxw", 3, true, false, false, false},
    {"1www", 4, true, false, false, true},
    {"11-w", 4, true, false, false, false},
    {"1xx", 3, true, false, false, false},
};

START_TEST(test_polls)
{
    struct wd_vote_rules rules = {polls[_i].consensus, polls[_i].again, polls[_i].half, NULL};
    struct wd_votes *v = calloc(1, sizeof *v);
    const int64_t now_us = 100 * WD_VOTE_US;
    int i;
    int k;

    for (i = 0; polls[_i].lost[i] != '\0'; i++) {
        char c = polls[_i].lost[i];
        uint64_t lost[2] = {c != '-', 0};

        if (c == 'w')
            wd_votes_witness(v, i, now_us - 1);
        for (k = 0; c != 'w' && k < (c == '2' ? 2 : 1); k++)
            wd_votes_take(v, i, lost, c == 'o' ? now_us - WD_VOTE_US - 1 : now_us - 1);
        if (c == 'x')
            wd_votes_forget(v, i);
    }
    ck_assert_int_eq(
        wd_votes_decide(v, &rules, 0, 0, polls[_i].nmembers, now_us), polls[_i].expected);
    free(v);
}
END_TEST

/* One that has joined and does not vote yet is no part of a majority of those that do. */
START_TEST(test_only_voters_count)
{
    bool voters[WD_MAX_MEMBERS] = {true, true, true, false};
    struct wd_vote_rules rules = {true, false, false, voters};
    struct wd_votes *v = calloc(1, sizeof *v);
    const uint64_t lost[2] = {1, 0};

    wd_votes_take(v, 0, lost, 1);
    wd_votes_take(v, 3, lost, 1);
    ck_assert_int_eq(wd_votes_count(v, &rules, 0, 1), 1);
    ck_assert(!wd_votes_decide(v, &rules, 0, 0, 3, 1));
    wd_votes_take(v, 1, lost, 1);
    ck_assert(wd_votes_decide(v, &rules, 0, 0, 3, 1));
    free(v);
}
END_TEST

/* Members 0, 1, 2: c called dead, - not, w (called) and . may not lead; who of them is dead. */
static const struct {
    const char *members;
    const char *dead;
} lives[] = {{"---", "---"}, {"c--", "d--"}, {"-cc", "-dd"}, {"ccc", "-dd"}, {".cc", "--d"},
    {"cw.", "-d-"}, {"..c", "---"}, {"-.c", "--d"}};

START_TEST(test_lives)
{
    bool called[WD_MAX_MEMBERS] = {false};
    bool fit[WD_MAX_MEMBERS] = {false};
    int i;

    for (i = 0; i < 3; i++) {
        char c = lives[_i].members[i];

        called[i] = c == 'c' || c == 'w';
        fit[i] = c == 'c' || c == '-';
    }
    for (i = 0; i < 3; i++)
        ck_assert_msg(wd_life_is_dead(called, fit, i) == (lives[_i].dead[i] == 'd'), "%s: %d",
            lives[_i].members, i);
    ck_assert(wd_life_is_called(1, 1) && wd_life_is_called(2, 3));
    ck_assert(!wd_life_is_called(1, 2) && !wd_life_is_called(0, 0));
}
END_TEST

START_TEST(test_majority)
{
    static const int plain[] = {1, 1, 2, 2, 3, 3, 4};
    static const int half[] = {1, 1, 1, 2, 2, 3, 3};

    ck_assert_int_eq(wd_majority(_i, false), plain[_i]);
    ck_assert_int_eq(wd_majority(_i, true), half[_i]);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("wd_state");
    TCase *tc = tcase_create("all");

    tcase_add_loop_test(tc, test_rows, 0, sizeof rows / sizeof rows[0]);
    tcase_add_loop_test(tc, test_snapshot_anywhere, 0, sizeof rows / sizeof rows[0]);
    tcase_add_test(tc, test_malformed);
    tcase_add_test(tc, test_kept_events);
    tcase_add_test(tc, test_choices_and_older_builds);
    tcase_add_test(tc, test_address_is_owed);
    tcase_add_test(tc, test_who_led_by_an_older_build);
    tcase_add_test(tc, test_the_shortest_time_out);
    tcase_add_test(tc, test_address_is_given);
    tcase_add_test(tc, test_orders);
    tcase_add_test(tc, test_disks);
    tcase_add_loop_test(tc, test_polls, 0, sizeof polls / sizeof polls[0]);
    tcase_add_test(tc, test_only_voters_count);
    tcase_add_loop_test(tc, test_lives, 0, sizeof lives / sizeof lives[0]);
    tcase_add_loop_test(tc, test_majority, 0, 7);
    suite_add_tcase(s, tc);
    return run_suite(s);
}
