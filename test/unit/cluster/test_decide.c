/* SPDX-License-Identifier: PostgreSQL
 * test_decide.c: what follows from answers, in virtual time: roles, losses, returns, timelines,
 * operators. Everything runs with the primary on node 0 and on node 2. */
#include "config.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "decide_bed.h"
#include "run_suite.h"

#define PLACES 2 /* of the primary, for loop tests: node 0 and node 2 */

static void setup(void)
{
    int i;

    bed_make();
    rules->returns = true;
    rules->auto_failback = true;
    rules->auto_failback_interval_us = 60 * SECOND_US;
    rules->delay_threshold_bytes = 1000;
    rules->lag_log = DECIDE_LAG_OVER;
    for (i = 0; i < 3; i++) {
        rules->node[i].max_retries = 2;
        rules->node[i].timeout_ms = 10000;
    }
    decide_init(d, rules, now_us);
}

static void set(char *to, size_t room, const char *text)
{
    snprintf(to, room, "%s", text);
}

static int place(int loop)
{
    return loop == 0 ? 0 : 2;
}

static void step(int node, enum decide_answer answer, const char *sqlstate)
{
    struct decide_probe p = {.answer = answer,
        .sqlstate = sqlstate,
        .message = "why",
        .took_ms = 3,
        .began_us = now_us,
        .facts = facts};

    now_us += SECOND_US;
    decide_on_probe(d, node, &p, now_us);
}

static void says(int node, bool primary, uint32_t timeline, uint64_t lsn)
{
    memset(facts, 0, sizeof *facts);
    facts->is_primary = primary;
    facts->is_receiving = !primary;
    facts->timeline = timeline;
    facts->system_id = SYSTEM_ID;
    facts->received_lsn = lsn;
    facts->replayed_lsn = lsn;
    facts->replay_age_us = -1;
    facts->max_connections = 97;
    step(node, DECIDE_FACTS, "");
}

static void primary(int node, uint32_t timeline)
{
    says(node, true, timeline, 5000);
}

static void standby(int node, uint32_t timeline)
{
    says(node, false, timeline, 5000);
}

static void silent(int node)
{
    step(node, DECIDE_FAILED, "");
}

static void lose(int node)
{
    int i;

    for (i = 0; i < 3; i++)
        silent(node);
}

static void all_well(int at)
{
    int i;

    for (i = 0; i < 3; i++)
        if (i == at)
            primary(i, 1);
        else
            standby(i, 1);
}

static enum view_status status_of(int node)
{
    return d->view.node[node].status;
}

/* Takes all events; counts those of `type` about `node`. */
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

START_TEST(roles_follow_the_servers)
{
    int at = place(_i);
    int i;

    ck_assert_int_eq(d->view.primary, VIEW_NO_NODE);
    ck_assert_int_eq(status_of(1), VIEW_WAITING);
    all_well(at);
    ck_assert_int_eq(d->view.primary, at);
    ck_assert_int_eq(events_of(DECIDE_EV_PRIMARY, at), 1);
    for (i = 0; i < 3; i++) {
        ck_assert_int_eq(status_of(i), VIEW_UP);
        ck_assert_int_eq(d->view.node[i].role, i == at ? VIEW_ROLE_PRIMARY : VIEW_ROLE_STANDBY);
    }
    all_well(at);
    ck_assert_int_eq(d->nevents, 0);
    ck_assert_uint_eq(d->view.primary_epoch, 1);
}
END_TEST

START_TEST(silence_counts_after_retries)
{
    int at = place(_i);

    all_well(at);
    silent(1);
    silent(1);
    ck_assert_int_eq(status_of(1), VIEW_UP);
    ck_assert_int_eq(d->view.node[1].pg_status, VIEW_PG_DOWN);
    ck_assert_int_eq(events_of(DECIDE_EV_RETRY, 1), 2);
    standby(1, 1);
    ck_assert_int_eq(events_of(DECIDE_EV_RETRY_OK, 1), 1);
    silent(1);
    silent(1);
    ck_assert_int_eq(status_of(1), VIEW_UP);
    silent(1);
    ck_assert_int_eq(status_of(1), VIEW_DOWN);
    ck_assert_int_eq(events_of(DECIDE_EV_DOWN, 1), 1);
    silent(1);
    ck_assert_int_eq(events_of(DECIDE_EV_DOWN, 1), 0);
    ck_assert_uint_eq(d->view.node[1].health.fail, 6);
    ck_assert_uint_eq(d->view.node[1].health.max_retry, 2);
}
END_TEST

/* A standby whose WAL receiver has asked in vain. */
static void deaf(int node)
{
    memset(facts, 0, sizeof *facts);
    facts->is_receiving = true;
    facts->timeline = 1;
    facts->system_id = SYSTEM_ID;
    facts->received_lsn = 5000;
    facts->silence_us = 8 * SECOND_US;
    facts->silence_limit_us = 10 * SECOND_US;
    step(node, DECIDE_FACTS, "");
}

START_TEST(a_primary_that_nobody_hears_is_given_up)
{
    struct decide_probe late = {
        .answer = DECIDE_FAILED, .sqlstate = "", .message = "why", .is_late = true};
    int at = place(_i);

    all_well(at);
    deaf(1);
    deaf(2 - at); /* what was said before does not count */
    decide_on_probe(d, at, &late, now_us += SECOND_US);
    ck_assert_int_eq(status_of(at), VIEW_UP);
    ck_assert(decide_is_urgent(d, 1));
    deaf(1);
    standby(2 - at, 1); /* hears it */
    ck_assert_int_eq(status_of(at), VIEW_UP);
    deaf(2 - at);
    ck_assert_int_eq(status_of(at), VIEW_DOWN);
    ck_assert_int_eq(events_of(DECIDE_EV_DOWN, at), 1);
}
END_TEST

START_TEST(a_primary_that_refuses_has_its_patience)
{
    int at = place(_i);

    all_well(at);
    silent(at);
    deaf(1);
    deaf(2 - at);
    silent(at);
    ck_assert_int_eq(status_of(at), VIEW_UP);
    silent(at);
    ck_assert_int_eq(status_of(at), VIEW_DOWN);
}
END_TEST

START_TEST(refusals_are_no_losses)
{
    static const char *const states[] = {"28000", "28P01", "53300", "57P01", "3D000", "XX000"};
    size_t i;
    int n;

    all_well(0);
    for (i = 0; i < sizeof states / sizeof states[0]; i++)
        for (n = 0; n < 5; n++)
            step(0, DECIDE_ALIVE, states[i]);
    for (n = 0; n < 5; n++)
        step(1, DECIDE_BUSY, "57P03");
    for (n = 0; n < 5; n++)
        step(2, DECIDE_UNSURE, "");
    for (n = 0; n < 3; n++)
        ck_assert_int_eq(status_of(n), VIEW_UP);
    ck_assert_int_eq(d->view.primary, 0);
    ck_assert(d->view.node[1].is_busy);
    ck_assert_uint_eq(d->view.node[2].health.skip, 5);
    /* Once each in the log. */
    ck_assert_int_eq(events_of(DECIDE_EV_REFUSED, 0), 1);
}
END_TEST

START_TEST(without_health_check_only_clients_tell)
{
    int i;

    rules->node[1].health_check = false;
    decide_set_rules(d, rules, now_us);
    all_well(0);
    for (i = 0; i < 10; i++)
        silent(1);
    ck_assert_int_eq(status_of(1), VIEW_UP);
    decide_on_suspect(d, 1, now_us);
    ck_assert(decide_is_urgent(d, 1));
    lose(1);
    ck_assert_int_eq(status_of(1), VIEW_DOWN);
}
END_TEST

START_TEST(disallowed_failover_never_downs)
{
    rules->node[1].may_fail = false;
    decide_set_rules(d, rules, now_us);
    all_well(0);
    lose(1);
    lose(1);
    ck_assert_int_eq(status_of(1), VIEW_UP);
    ck_assert_int_eq(events_of(DECIDE_EV_DISALLOWED, 1), 1);
}
END_TEST

START_TEST(always_primary_is_not_searched)
{
    rules->node[2].always_primary = true;
    decide_set_rules(d, rules, now_us);
    ck_assert_int_eq(d->view.primary, 2);
    step(2, DECIDE_ALIVE, "28P01");
    primary(0, 9);
    ck_assert_int_eq(d->view.primary, 2);
}
END_TEST

START_TEST(standby_returns_when_it_follows)
{
    int at = place(_i);

    all_well(at);
    lose(1);
    says(1, false, 1, 100); /* answers, but lags by more than the limit */
    says(1, false, 1, 100);
    says(1, false, 1, 100);
    ck_assert_int_eq(status_of(1), VIEW_DOWN);
    memset(facts, 0, sizeof *facts); /* does not receive */
    facts->timeline = 1;
    facts->system_id = SYSTEM_ID;
    facts->replayed_lsn = 5000;
    step(1, DECIDE_FACTS, "");
    ck_assert_int_eq(status_of(1), VIEW_DOWN);
    standby(1, 1);
    ck_assert_int_eq(status_of(1), VIEW_UP);
    ck_assert_int_eq(events_of(DECIDE_EV_RETURN, 1), 1);
}
END_TEST

START_TEST(one_answer_is_not_enough_to_return)
{
    all_well(0);
    lose(1);
    standby(1, 1);
    ck_assert_int_eq(status_of(1), VIEW_DOWN);
    silent(1);
    standby(1, 1);
    ck_assert_int_eq(status_of(1), VIEW_DOWN);
    standby(1, 1);
    ck_assert_int_eq(status_of(1), VIEW_UP);
}
END_TEST

START_TEST(a_flapping_standby_waits)
{
    int64_t back_us;

    all_well(0);
    lose(1);
    standby(1, 1);
    standby(1, 1);
    ck_assert_int_eq(status_of(1), VIEW_UP);
    back_us = now_us;
    lose(1);
    standby(1, 1);
    while (now_us < back_us + 59 * SECOND_US) {
        ck_assert_int_eq(status_of(1), VIEW_DOWN);
        standby(1, 1);
    }
    standby(1, 1);
    ck_assert_int_eq(status_of(1), VIEW_UP);
}
END_TEST

START_TEST(auto_failback_off_holds_but_for_need)
{
    int i;

    rules->auto_failback = false;
    decide_set_rules(d, rules, now_us);
    all_well(0);
    lose(1);
    for (i = 0; i < 100; i++)
        standby(1, 1);
    ck_assert_int_eq(status_of(1), VIEW_DOWN);
    lose(2);
    lose(0);
    ck_assert_int_eq(d->view.primary, VIEW_NO_NODE);
    standby(1, 1); /* nobody else is left */
    ck_assert_int_eq(status_of(1), VIEW_UP);
    primary(0, 1);
    ck_assert_int_eq(status_of(0), VIEW_UP);
    ck_assert_int_eq(d->view.primary, 0);
}
END_TEST

START_TEST(everything_down_then_up)
{
    int at = place(_i);
    int i;

    all_well(at);
    for (i = 0; i < 3; i++)
        lose(i);
    ck_assert_int_eq(d->view.primary, VIEW_NO_NODE);
    ck_assert_int_eq(view_write_node(&d->view), VIEW_NO_NODE);
    all_well(at);
    all_well(at);
    for (i = 0; i < 3; i++)
        ck_assert_int_eq(status_of(i), VIEW_UP);
    ck_assert_int_eq(d->view.primary, at);
}
END_TEST

START_TEST(promotion_is_followed_old_primary_is_not_used)
{
    int at = place(_i);

    all_well(at);
    standby(2 - at, 2); /* it has followed already */
    primary(1, 2);
    ck_assert_int_eq(d->view.primary, 1);
    ck_assert_int_eq(status_of(at), VIEW_QUARANTINE);
    ck_assert_int_eq(view_write_node(&d->view), 1);
    primary(at, 1);
    ck_assert_int_eq(status_of(at), VIEW_QUARANTINE);
    /* It was rebuilt and follows. */
    standby(at, 2);
    standby(at, 2);
    ck_assert_int_eq(status_of(at), VIEW_UP);
    ck_assert_int_eq(d->view.node[at].role, VIEW_ROLE_STANDBY);
}
END_TEST

START_TEST(old_primary_is_not_used_even_alone)
{
    int at = place(_i);

    all_well(at);
    lose(at);
    primary(1, 2);
    ck_assert_int_eq(d->view.primary, 1);
    lose(1);
    lose(2 - at);
    primary(at, 1);
    primary(at, 1);
    ck_assert_int_eq(status_of(at), VIEW_DOWN);
    ck_assert_int_eq(d->view.primary, VIEW_NO_NODE);
    /* Only an operator can know that the newer timeline is gone for good. */
    decide_attach(d, at, "dba", now_us);
    primary(at, 1);
    ck_assert_int_eq(d->view.primary, at);
    ck_assert_int_eq(status_of(at), VIEW_UP);
}
END_TEST

/* It was lost; what it says when it is back is an event, once for each time it comes back. */
START_TEST(a_returned_old_primary_is_told_of_once)
{
    int at = place(_i);
    int n;

    all_well(at);
    lose(at);
    primary(1, 2);
    for (n = 0; n < 2; n++) {
        ck_assert_int_eq(events_of(DECIDE_EV_STALE, at), 0);
        primary(at, 1);
        primary(at, 1);
        ck_assert_int_eq(events_of(DECIDE_EV_STALE, at), 1);
        primary(at, 1);
        ck_assert_int_eq(status_of(at), VIEW_DOWN);
        now_us += 1000 * SECOND_US;
        standby(at, 2); /* rebuilt */
        standby(at, 2);
        ck_assert_int_eq(status_of(at), VIEW_UP);
        lose(at);
    }
    /* A quarantine tells it itself. */
    standby(2 - at, 2);
    primary(2 - at, 1);
    ck_assert_int_eq(events_of(DECIDE_EV_QUARANTINE, 2 - at), 1);
    primary(2 - at, 1);
    ck_assert_int_eq(events_of(DECIDE_EV_STALE, 2 - at), 0);
}
END_TEST

START_TEST(after_a_restart_the_older_timeline_loses)
{
    standby(1, 2); /* fed by a primary that is gone */
    primary(0, 1); /* the one before it has come back */
    ck_assert_int_eq(d->view.primary, VIEW_NO_NODE);
    ck_assert_int_eq(status_of(0), VIEW_QUARANTINE);
    ck_assert_int_eq(view_write_node(&d->view), 2); /* not asked yet: it may be the primary */
    primary(2, 2);
    ck_assert_int_eq(d->view.primary, 2);
}
END_TEST

START_TEST(of_two_primaries_the_one_with_standbys_counts)
{
    int at = place(_i);
    int other = 2 - at;

    primary(other, 1);
    standby(1, 1);
    decide_look(d, now_us + 4 * SECOND_US); /* the third is not waited for */
    ck_assert_int_eq(d->view.primary, other);
    says(at, true, 1, 5000);
    ck_assert_int_eq(status_of(at), VIEW_QUARANTINE);
    facts->nsenders = 1;
    step(at, DECIDE_FACTS, "");
    ck_assert_int_eq(d->view.primary, at);
    ck_assert_int_eq(status_of(at), VIEW_UP);
    ck_assert_int_eq(status_of(other), VIEW_QUARANTINE);
}
END_TEST

START_TEST(a_foreign_primary_is_told_of)
{
    all_well(0);
    memset(facts, 0, sizeof *facts);
    facts->is_primary = true;
    facts->timeline = 8;
    facts->system_id = SYSTEM_ID + 1;
    step(1, DECIDE_FACTS, "");
    ck_assert_int_eq(d->view.primary, 0);
    ck_assert_int_eq(status_of(1), VIEW_UP);
    ck_assert_int_eq(events_of(DECIDE_EV_STALE, 1), 1);
    rules->detach_false_primary = true;
    decide_set_rules(d, rules, now_us);
    ck_assert_int_eq(status_of(1), VIEW_DOWN);
    step(1, DECIDE_FACTS, "");
    step(1, DECIDE_FACTS, "");
    ck_assert_int_eq(status_of(1), VIEW_DOWN);
}
END_TEST

START_TEST(the_primary_keeps_its_role_while_it_is_retried)
{
    int at = place(_i);

    all_well(at);
    silent(at);
    ck_assert_int_eq(d->view.primary, at);
    standby(2 - at, 2); /* it follows another one already */
    primary(1, 2);      /* no need to wait for the rest of the retries */
    ck_assert_int_eq(d->view.primary, 1);
    ck_assert_uint_eq(d->view.primary_epoch, 2);
}
END_TEST

START_TEST(a_detached_node_stays_until_attached)
{
    int i;

    all_well(0);
    decide_detach(d, 1, "alice", "disk change", now_us);
    for (i = 0; i < 200; i++)
        standby(1, 1);
    ck_assert_int_eq(status_of(1), VIEW_DOWN);
    ck_assert_str_eq(d->view.node[1].held_by, "alice");
    ck_assert_str_eq(d->view.node[1].held_why, "disk change");
    lose(0);
    lose(2);
    standby(1, 1);
    ck_assert_int_eq(status_of(1), VIEW_DOWN);
    decide_attach(d, 1, "bob", now_us);
    ck_assert_int_ne(status_of(1), VIEW_DOWN);
    standby(1, 1);
    ck_assert_int_eq(status_of(1), VIEW_UP);
    ck_assert_str_eq(d->view.node[1].held_by, "");
}
END_TEST

START_TEST(a_detached_primary_is_no_primary)
{
    int at = place(_i);

    all_well(at);
    decide_detach(d, at, "alice", "", now_us);
    ck_assert_int_eq(d->view.primary, VIEW_NO_NODE);
    primary(at, 1);
    ck_assert_int_eq(d->view.primary, VIEW_NO_NODE);
    decide_attach(d, at, "alice", now_us);
    primary(at, 1);
    ck_assert_int_eq(d->view.primary, at);
}
END_TEST

START_TEST(a_named_primary_is_believed_until_it_denies)
{
    step(0, DECIDE_ALIVE, "28P01");
    step(1, DECIDE_ALIVE, "28P01");
    step(2, DECIDE_ALIVE, "28P01");
    ck_assert_int_eq(d->view.primary, VIEW_NO_NODE);
    decide_promote(d, 2, "alice", now_us);
    ck_assert_int_eq(d->view.primary, 2);
    standby(2, 1);
    ck_assert_int_eq(d->view.primary, VIEW_NO_NODE);
    events_of(DECIDE_EV_STALE, 2);
    decide_promote(d, 2, "alice", now_us);
    ck_assert_int_eq(events_of(DECIDE_EV_STALE, 2), 1);
    ck_assert_int_eq(d->view.primary, VIEW_NO_NODE);
}
END_TEST

START_TEST(a_new_life_changes_nothing)
{
    struct view *before = mem_alloc(sizeof *before);
    int at = place(_i);

    all_well(at);
    decide_detach(d, 1, "alice", "why", now_us);
    *before = d->view;
    decide_init(d, rules, now_us);
    decide_adopt(d, before);
    ck_assert_int_eq(d->view.primary, at);
    standby(2 - at, 1); /* the first to answer is not the primary */
    ck_assert_int_eq(d->view.primary, at);
    ck_assert_uint_eq(d->view.primary_epoch, before->primary_epoch);
    ck_assert(d->view.node[1].held_down);
    mem_free(before);
}
END_TEST

START_TEST(lag_is_counted_from_the_primary)
{
    int at = place(_i);

    all_well(at);
    says(at, true, 1, 9000);
    ck_assert_int_eq(d->view.node[1].delay_bytes, 4000);
    ck_assert_int_eq(d->view.node[at].delay_bytes, 0);
    standby(1, 1);
    ck_assert_int_eq(events_of(DECIDE_EV_LAG_OVER, 1), 1);
    standby(1, 1);
    ck_assert_int_eq(events_of(DECIDE_EV_LAG_OVER, 1), 0);
    ck_assert_int_eq(status_of(1), VIEW_UP);
    says(1, false, 1, 9000);
    ck_assert_int_eq(d->view.node[1].delay_bytes, 0);
}
END_TEST

START_TEST(replication_state_is_found_by_name)
{
    set(rules->node[1].application_name, DECIDE_NAME_BYTES, "one");
    decide_set_rules(d, rules, now_us);
    all_well(0);
    ck_assert_str_eq(d->view.node[1].replication_state, "streaming"); /* by its own word */
    ck_assert_str_eq(d->view.node[1].replication_sync_state, "");
    says(0, true, 1, 6000);
    facts->nsenders = 2;
    set(facts->sender[0].name, sizeof facts->sender[0].name, "other");
    set(facts->sender[0].state, sizeof facts->sender[0].state, "catchup");
    set(facts->sender[1].name, sizeof facts->sender[1].name, "one");
    set(facts->sender[1].state, sizeof facts->sender[1].state, "streaming");
    set(facts->sender[1].sync_state, sizeof facts->sender[1].sync_state, "quorum");
    facts->sender[1].replay_lag_us = 1500;
    step(0, DECIDE_FACTS, "");
    ck_assert_str_eq(d->view.node[1].replication_sync_state, "quorum");
    ck_assert_int_eq(d->view.node[1].delay_us, 1500);
}
END_TEST

START_TEST(elsewhere_the_lowest_is_the_main_one)
{
    rules->mode = DECIDE_MODE_MAIN;
    decide_init(d, rules, now_us);
    ck_assert_int_eq(d->view.primary, 0);
    primary(0, 1);
    primary(1, 7);
    primary(2, 3);
    ck_assert_int_eq(d->view.primary, 0);
    says(0, true, 1, 90000); /* of a WAL of its own */
    ck_assert_int_eq(d->view.node[1].delay_bytes, 0);
    ck_assert_int_eq(events_of(DECIDE_EV_LAG_OVER, 1), 0);
    lose(0);
    ck_assert_int_eq(d->view.primary, 1);
    ck_assert_int_eq(d->view.node[2].role, VIEW_ROLE_STANDBY);
}
END_TEST

START_TEST(nodes_come_and_go_by_reload)
{
    all_well(0);
    rules->nnodes = 5;
    rules->node[4] = rules->node[1];
    rules->node[1].exists = false;
    decide_set_rules(d, rules, now_us);
    ck_assert_int_eq(status_of(1), VIEW_UNUSED);
    ck_assert_int_eq(status_of(3), VIEW_UNUSED);
    ck_assert_int_eq(status_of(4), VIEW_DOWN);
    ck_assert_int_eq(status_of(2), VIEW_UP);
    ck_assert_int_eq(d->view.primary, 0);
    ck_assert_int_eq(d->view.nnodes, 5);
    standby(1, 1); /* a late answer about a server that is gone */
    ck_assert_int_eq(status_of(1), VIEW_UNUSED);
}
END_TEST

START_TEST(a_broken_link_and_one_failed_probe_are_a_loss)
{
    rules->error_is_loss = true;
    decide_init(d, rules, now_us);
    all_well(0);
    decide_on_suspect(d, 1, now_us);
    silent(1);
    ck_assert_int_eq(status_of(1), VIEW_DOWN);
    silent(2); /* nobody complained of this one */
    ck_assert_int_eq(status_of(2), VIEW_UP);
    decide_on_suspect(d, 2, now_us);
    standby(2, 1);
    ck_assert_int_eq(status_of(2), VIEW_UP);
}
END_TEST

START_TEST(a_shutdown_is_a_loss_where_it_is_to_be)
{
    int i;

    for (i = 0; i < 2; i++) {
        rules->shutdown_is_loss = i == 1;
        decide_init(d, rules, now_us);
        all_well(0);
        step(1, DECIDE_BUSY, "57P03"); /* no link broke */
        ck_assert_int_eq(status_of(1), VIEW_UP);
        decide_on_suspect(d, 1, now_us);
        step(1, DECIDE_BUSY, "57P03");
        ck_assert_int_eq(status_of(1), i == 1 ? VIEW_DOWN : VIEW_UP);
        ck_assert(d->node[1].suspected == (i == 0) && decide_is_urgent(d, 1));
        step(1, DECIDE_ALIVE, "53300");
        ck_assert(i == 1 || !decide_is_urgent(d, 1));
    }
}
END_TEST

START_TEST(what_was_asked_before_the_link_broke_does_not_count)
{
    struct decide_probe p = {
        .answer = DECIDE_ALIVE, .sqlstate = "53300", .message = "why", .began_us = now_us};

    rules->shutdown_is_loss = true;
    decide_init(d, rules, now_us);
    all_well(0);
    p.began_us = now_us;
    now_us += SECOND_US;
    decide_on_suspect(d, 1, now_us);
    decide_on_probe(d, 1, &p, now_us);
    ck_assert(d->node[1].suspected && decide_is_urgent(d, 1));
    step(1, DECIDE_BUSY, "57P03");
    ck_assert_int_eq(status_of(1), VIEW_DOWN);
}
END_TEST

START_TEST(a_barred_primary_is_not_taken_back)
{
    all_well(0);
    lose(0);
    d->view.sw.barred = 0;
    primary(0, 1);
    ck_assert_int_eq(d->view.primary, VIEW_NO_NODE);
    ck_assert_int_ne(status_of(0), VIEW_UP);
    d->view.sw.barred = VIEW_NO_NODE;
    primary(0, 1);
    ck_assert_int_eq(d->view.primary, 0);
    ck_assert_int_eq(status_of(0), VIEW_UP);
}
END_TEST

START_TEST(writes_wait_only_for_a_primary_that_was)
{
    decide_init(d, rules, now_us);
    ck_assert(view_must_hold_writes(&d->view));
    primary(0, 1); /* perhaps a former one: not all have been asked yet */
    ck_assert(view_must_hold_writes(&d->view));
    decide_look(d, now_us + 4000000);
    ck_assert(!view_must_hold_writes(&d->view));
    decide_init(d, rules, now_us);
    standby(1, 1);
    decide_look(d, now_us + 4000000);
    ck_assert(!view_must_hold_writes(&d->view)); /* nobody to wait for */
    all_well(0);
    ck_assert(view_can_write(&d->view));
    ck_assert(!view_must_hold_writes(&d->view));
    silent(0); /* before it is given up */
    ck_assert(view_must_hold_writes(&d->view));
    ck_assert(!view_can_read(&d->view, 0));
    ck_assert(view_can_read(&d->view, 1));
    primary(0, 1);
    ck_assert(!view_must_hold_writes(&d->view));
}
END_TEST

int main(void)
{
    Suite *s = suite_create("decide");
    TCase *t = tcase_create("decide");

    tcase_add_checked_fixture(t, setup, bed_free);
    tcase_add_loop_test(t, roles_follow_the_servers, 0, PLACES);
    tcase_add_loop_test(t, silence_counts_after_retries, 0, PLACES);
    tcase_add_loop_test(t, a_primary_that_nobody_hears_is_given_up, 0, 2);
    tcase_add_loop_test(t, a_primary_that_refuses_has_its_patience, 0, 2);
    tcase_add_test(t, refusals_are_no_losses);
    tcase_add_test(t, without_health_check_only_clients_tell);
    tcase_add_test(t, disallowed_failover_never_downs);
    tcase_add_test(t, always_primary_is_not_searched);
    tcase_add_loop_test(t, standby_returns_when_it_follows, 0, PLACES);
    tcase_add_test(t, one_answer_is_not_enough_to_return);
    tcase_add_test(t, a_flapping_standby_waits);
    tcase_add_test(t, auto_failback_off_holds_but_for_need);
    tcase_add_loop_test(t, everything_down_then_up, 0, PLACES);
    tcase_add_loop_test(t, promotion_is_followed_old_primary_is_not_used, 0, PLACES);
    tcase_add_loop_test(t, old_primary_is_not_used_even_alone, 0, PLACES);
    tcase_add_loop_test(t, a_returned_old_primary_is_told_of_once, 0, 2);
    tcase_add_test(t, after_a_restart_the_older_timeline_loses);
    tcase_add_loop_test(t, of_two_primaries_the_one_with_standbys_counts, 0, PLACES);
    tcase_add_test(t, a_foreign_primary_is_told_of);
    tcase_add_test(t, a_broken_link_and_one_failed_probe_are_a_loss);
    tcase_add_test(t, a_shutdown_is_a_loss_where_it_is_to_be);
    tcase_add_test(t, what_was_asked_before_the_link_broke_does_not_count);
    tcase_add_test(t, a_barred_primary_is_not_taken_back);
    tcase_add_test(t, writes_wait_only_for_a_primary_that_was);
    tcase_add_loop_test(t, the_primary_keeps_its_role_while_it_is_retried, 0, PLACES);
    tcase_add_test(t, a_detached_node_stays_until_attached);
    tcase_add_loop_test(t, a_detached_primary_is_no_primary, 0, PLACES);
    tcase_add_test(t, a_named_primary_is_believed_until_it_denies);
    tcase_add_loop_test(t, a_new_life_changes_nothing, 0, PLACES);
    tcase_add_loop_test(t, lag_is_counted_from_the_primary, 0, PLACES);
    tcase_add_test(t, replication_state_is_found_by_name);
    tcase_add_test(t, elsewhere_the_lowest_is_the_main_one);
    tcase_add_test(t, nodes_come_and_go_by_reload);
    suite_add_tcase(s, t);
    return run_suite(s);
}
