/* SPDX-License-Identifier: PostgreSQL
 * test_failover.c: failover and switchover in virtual time, against a small world of servers: what
 * is chosen, in which order things are done, and that every mishap (failing commands, lost answers,
 * a killed monitor, servers that come and go) ends in one primary. Random worlds by seed. */
#include "config.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cluster/failover.h"

#include "failover_world.h"
#include "run_suite.h"

#define SEEDS 400

/* Scenes; the loop variable is the place of the primary. */

START_TEST(test_nobody_acts_unasked)
{
    world_begin(_i);
    world->server[_i].alive = false;
    world_run(10);
    ck_assert_int_eq(world->d.view.primary, VIEW_NO_NODE);
    ck_assert(view_must_hold_writes(&world->d.view));
    ck_assert(view_can_read(&world->d.view, (_i + 1) % NODES));
    ck_assert(!view_can_read(&world->d.view, _i));
    ck_assert_int_eq(world->nsteps[FAILOVER_DO_PROMOTE] + world->nsteps[FAILOVER_DO_COMMAND], 0);
    world_promote((_i + 1) % NODES); /* somebody else does it */
    world_run(2);
    ck_assert_int_eq(world->d.view.primary, (_i + 1) % NODES);
    ck_assert(view_can_write(&world->d.view));
    ck_assert(!view_failover_in_progress(&world->d.view));
    ck_assert(world_told("=== Failover done. shutdown host"));
}
END_TEST

START_TEST(test_promotes_the_one_that_has_most)
{
    int late = (_i + 1) % NODES;
    int ahead = (_i + 2) % NODES;

    world_init(_i);
    world->rules.auto_promote = true;
    world->rules.node[late].weight = 100; /* does not outweigh a byte */
    world_monitor_start();
    world_run(3);
    world->server[late].feeder = late;
    world_run(1);
    world->server[_i].alive = false;
    world_run(3);
    ck_assert_int_eq(world->d.view.primary, ahead);
    world_run(20);
    ck_assert_int_eq(world->server[late].feeder, ahead);
    ck_assert_int_eq(world->server[late].timeline, 2);
    ck_assert_int_eq(world->nsteps[FAILOVER_DO_PROMOTE], 1);
    world->server[_i].alive = true; /* believes in itself */
    world_run(10);
    ck_assert_int_eq(world->d.view.primary, ahead);
    ck_assert(!view_is_usable(&world->d.view, _i));
}
END_TEST

/* Standbys that were being asked when the primary was lost are asked again as soon as they have
 * answered, and once. */
START_TEST(test_late_answers_are_asked_again)
{
    struct decide_probe lost = {.answer = DECIDE_FAILED, .sqlstate = "", .message = "refused"};
    struct decide_probe late = {
        .answer = DECIDE_ALIVE, .sqlstate = "", .message = "", .took_ms = 50};
    int i;

    world_begin(_i);
    world->rules.auto_promote = true;
    decide_set_rules(&world->d, &world->rules, world->now_us);
    decide_on_probe(&world->d, _i, &lost, world->now_us);
    for (i = 0; i < world->d.nevents; i++) {
        struct decide_event e = world->d.event[i];

        failover_on_event(&world->f, &world->d, &e);
    }
    world->d.nevents = 0;
    ck_assert_int_eq(failover_step(&world->f, &world->d, world->now_us).type, FAILOVER_DO_ASK);
    for (i = 1; i < NODES; i++) {
        world->now_us += 10000;
        decide_on_probe(&world->d, (_i + i) % NODES, &late, world->now_us);
        ck_assert_int_eq(failover_step(&world->f, &world->d, world->now_us).type, FAILOVER_DO_ASK);
        ck_assert_int_eq(
            failover_step(&world->f, &world->d, world->now_us + 1000).type, FAILOVER_DO_NOTHING);
    }
}
END_TEST

/* Another pgpool may lead by now, and have promoted another server. */
START_TEST(test_nothing_is_begun_on_an_old_word)
{
    static const uint64_t all[2] = {UINT64_MAX, UINT64_MAX};

    world_init(_i);
    world->rules.auto_promote = true;
    world_monitor_start();
    failover_allow(&world->f, true, all, NULL);
    failover_doubt(&world->f, true);
    world_run(3);
    world->server[_i].alive = false;
    world_run(10);
    ck_assert_int_eq(world->nsteps[FAILOVER_DO_PROMOTE] + world->nsteps[FAILOVER_DO_COMMAND], 0);
    ck_assert(failover_is_acting(&world->f, &world->d));
    failover_doubt(&world->f, false);
    world_run(10);
    ck_assert_int_eq(world->nsteps[FAILOVER_DO_PROMOTE], 1);
    ck_assert_int_ne(world->d.view.primary, VIEW_NO_NODE);
}
END_TEST

START_TEST(test_weight_breaks_a_tie)
{
    int heavy = (_i + 2) % NODES;

    world_init(_i);
    world->rules.auto_promote = true;
    world->rules.node[heavy].weight = 2;
    world_monitor_start();
    world_run(3);
    world->server[0].lsn = world->server[1].lsn = world->server[2].lsn = 9000;
    world->server[_i].alive = false;
    world_run(3);
    ck_assert_int_eq(world->d.view.primary, heavy);
}
END_TEST

/* We do not reach the primary, but a standby does. */
START_TEST(test_living_primary_stays)
{
    struct decide_probe p = {.answer = DECIDE_FAILED, .sqlstate = "", .message = "no way"};
    int i;

    world_init(_i);
    world->rules.auto_promote = true;
    world_monitor_start();
    world_run(3);
    for (i = 0; i < 100; i++) {
        world->server[_i].probe_us = world->now_us + TICK_US;
        decide_on_probe(&world->d, _i, &p, world->now_us);
        world_probe((_i + 1) % NODES);
        world_probe((_i + 2) % NODES);
        world->now_us += TICK_US;
        ck_assert_int_ne(
            failover_step(&world->f, &world->d, world->now_us).type, FAILOVER_DO_PROMOTE);
        if (i == 0)
            world_monitor_step();
        world->d.nevents = 0;
    }
}
END_TEST

/* Its host is gone without a word, and the standbys seem to stream from it: a living one would have
 * answered them after half of wal_receiver_timeout. */
START_TEST(test_vanished_primary)
{
    world_init(_i);
    world->rules.auto_promote = true;
    world_monitor_start();
    world_run(3);
    world->server[_i].alive = false;
    world->server[_i].mute_us = world->now_us;
    world_run(30);
    ck_assert_int_eq(world->nsteps[FAILOVER_DO_PROMOTE], 0);
    world_run(5);
    ck_assert_int_eq(world->nsteps[FAILOVER_DO_PROMOTE], 1);
    ck_assert_int_ne(world->d.view.primary, VIEW_NO_NODE);
    ck_assert_int_ne(world->d.view.primary, _i);
}
END_TEST

/* With more patience than that: when no standby hears it, the rest of the patience is left out; one
 * that refuses has all of it. */
START_TEST(test_vanished_primary_is_given_up)
{
    int i;

    world_init(_i);
    world->rules.auto_promote = true;
    for (i = 0; i < NODES; i++)
        world->rules.node[i].max_retries = 60;
    world_monitor_start();
    world_run(3);
    world->server[_i].alive = false;
    world_run(40); /* refuses */
    ck_assert(view_is_usable(&world->d.view, _i));
    world->server[_i].alive = true;
    world_run(3);
    world->server[_i].alive = false;
    world->server[_i].mute_us = world->now_us;
    world_run(30);
    ck_assert(view_is_usable(&world->d.view, _i));
    ck_assert_int_eq(world->nsteps[FAILOVER_DO_PROMOTE], 0);
    world_run(5);
    ck_assert_int_eq(world->nsteps[FAILOVER_DO_PROMOTE], 1);
    ck_assert(world_told("no answer in time, and no standby hears it"));
}
END_TEST

START_TEST(test_command_fails_and_is_given_up)
{
    world_begin(_i);
    world->rules.has.failover_command = true;
    decide_set_rules(&world->d, &world->rules, world->now_us);
    world->fail_percent = 100;
    world->server[_i].alive = false;
    world_run(30);
    ck_assert_int_eq(world->ncommands, 3);
    ck_assert(!view_failover_in_progress(&world->d.view));
    ck_assert(world_told("was given up"));
    world->server[_i].alive = true;
    world_run(5);
    ck_assert_int_eq(world->d.view.primary, _i);
    ck_assert(view_is_usable(&world->d.view, _i));
}
END_TEST

/* From the command's beginning on the old primary is not taken back, however alive it looks. */
START_TEST(test_old_primary_is_barred)
{
    world_begin(_i);
    world->rules.has.failover_command = true;
    decide_set_rules(&world->d, &world->rules, world->now_us);
    world->server[_i].alive = false;
    while (world->ncommands == 0)
        world_tick();
    world->deed.due_us = world->now_us + 5 * SECOND_US;
    world->server[_i].alive = true;
    world_run(4);
    ck_assert_int_eq(world->d.view.primary, VIEW_NO_NODE);
    world_run(3);
    ck_assert_int_ne(world->d.view.primary, VIEW_NO_NODE);
    ck_assert_int_ne(world->d.view.primary, _i);
}
END_TEST

START_TEST(test_standby_lost_runs_beside)
{
    int lost = (_i + 1) % NODES;

    world_begin(_i);
    world->rules.has.failover_command = true;
    world->rules.has.failback_command = true;
    decide_set_rules(&world->d, &world->rules, world->now_us);
    world->server[lost].alive = false;
    world_run(3);
    ck_assert_int_eq(world->nsteps[FAILOVER_DO_HOOK], 1);
    ck_assert_int_eq(world->beside.what.node, lost);
    ck_assert_int_eq(world->beside.what.target, _i);
    ck_assert(view_can_write(&world->d.view));
    world->server[lost].alive = true;
    world_run(5);
    ck_assert_int_eq(world->nsteps[FAILOVER_DO_HOOK], 2);
    ck_assert_int_eq(world->beside.what.hook, HOOK_FAILBACK);
    ck_assert_int_eq(world->nsteps[FAILOVER_DO_COMMAND], 0);
}
END_TEST

/* The command runs on, the one that waits for it is run once, and none is run twice. */
START_TEST(test_killed_while_commands_run)
{
    int first = (_i + 1) % NODES;
    int second = (_i + 2) % NODES;

    world_begin(_i);
    world->rules.has.failover_command = true;
    decide_set_rules(&world->d, &world->rules, world->now_us);
    world->server[first].alive = false;
    world->server[second].alive = false;
    while (world->nsteps[FAILOVER_DO_HOOK] == 0)
        world_tick();
    world->beside.due_us = world->now_us + 3 * SECOND_US;
    world_run(2);
    world_monitor_kill();
    world_run(0.5);
    world_monitor_kill();
    ck_assert(world->beside.is_running && !world->beside.is_lost);
    ck_assert_int_eq(world->nsteps[FAILOVER_DO_HOOK], 1);
    first = world->beside.what.node;
    world_run(5);
    ck_assert_int_eq(world->nsteps[FAILOVER_DO_HOOK], 2);
    ck_assert_int_ne(world->beside.what.node, first);
    ck_assert_int_eq(world->d.view.sw.njobs, 0);
    ck_assert_int_eq(world->d.view.sw.beside_pid, 0);
}
END_TEST

START_TEST(test_outage_waits)
{
    int i;

    world_init(_i);
    world->rules.auto_promote = true;
    world_monitor_start();
    world_run(3);
    for (i = 0; i < NODES; i++)
        world->server[i].alive = false;
    world_run(5);
    world->server[(_i + 1) % NODES].alive = true; /* first back, and no judge of who has most */
    world_run(30);
    ck_assert_int_eq(world->nsteps[FAILOVER_DO_PROMOTE], 0);
    world->server[_i].alive = true;
    world_run(5);
    ck_assert_int_eq(world->d.view.primary, _i);
    ck_assert_int_eq(world->nsteps[FAILOVER_DO_PROMOTE], 0);
}
END_TEST

/* The new primary dies before the third server has anything of its timeline. */
START_TEST(test_nobody_on_an_older_timeline)
{
    int at = _i % NODES;
    int other = (at + 1) % NODES;
    int new = (at + 2) % NODES;

    world_begin(at);
    world->rules.auto_promote = true;
    world->rules.node[new].weight = 2;
    decide_set_rules(&world->d, &world->rules, world->now_us);
    world->server[other].feeder = other; /* gets nothing more */
    world_run(1);
    world->server[at].alive = false;
    while (world->d.view.primary != new)
        world_tick();
    world->server[new].alive = false;
    world_run(3);
    if (_i >= NODES)
        world_monitor_kill();
    world_run(100);
    ck_assert_int_eq(world->nsteps[FAILOVER_DO_PROMOTE], 1);
    ck_assert_int_eq(world->d.view.primary, VIEW_NO_NODE);
    ck_assert(view_can_read(&world->d.view, other));
    ck_assert(world_told("is on timeline 1, but node"));
    /* An operator knows better. */
    world_promote(other);
    world_run(5);
    ck_assert_int_eq(world->d.view.primary, other);
    ck_assert(view_can_write(&world->d.view));
}
END_TEST

/* Nobody shows up: the search ends, and whoever comes later is taken all the same. */
START_TEST(test_search_has_an_end)
{
    int other = (_i + 1) % NODES;

    world_init(_i);
    world->rules.search_limit_us = 5 * SECOND_US;
    world_monitor_start();
    world_run(3);
    world->server[_i].alive = false;
    world_run(4);
    ck_assert(view_failover_in_progress(&world->d.view));
    world_run(4);
    ck_assert(!view_failover_in_progress(&world->d.view));
    ck_assert(world_told("no primary was found within search_primary_node_timeout"));
    ck_assert_int_eq(world->d.view.primary, VIEW_NO_NODE);
    world_promote(other);
    world_run(2);
    ck_assert_int_eq(world->d.view.primary, other);
    ck_assert(view_can_write(&world->d.view));
}
END_TEST

START_TEST(test_switchover)
{
    int new = (_i + 2) % NODES;
    struct err err = {0};
    int i;

    world_begin(_i);
    ck_assert_int_eq(failover_switch(&world->f, &world->d, new, "op", world->now_us, &err), 0);
    ck_assert(view_must_hold_writes(&world->d.view));
    ck_assert_int_eq(failover_switch(&world->f, &world->d, new, "op", world->now_us, &err), -1);
    world_run(15);
    ck_assert_int_eq(world->d.view.primary, new);
    ck_assert(world->d.view.sw.ended_well);
    ck_assert_uint_eq(world->d.view.sw.nended, 1);
    ck_assert(view_can_write(&world->d.view));
    for (i = 0; i < NODES; i++)
        if (i != _i && i != new)
            ck_assert_int_eq(world->server[i].feeder, new);
    ck_assert_int_eq(world->nsteps[FAILOVER_DO_FENCE], 1);
    ck_assert_int_eq(world->nsteps[FAILOVER_DO_UNFENCE], 1);
    ck_assert(!view_is_usable(&world->d.view, _i));
}
END_TEST

/* What an operator said of a primary holds against who said so then, not against whom he, or
 * somebody else, makes the primary later. */
START_TEST(test_switchover_away_from_who_was_attached)
{
    int new = (_i + 2) % NODES;
    struct err err = {0};

    world_begin(_i);
    decide_detach(&world->d, _i, "op", "", world->now_us);
    world_run(2);
    decide_attach(&world->d, _i, "op", world->now_us);
    world_run(2);
    ck_assert_int_eq(world->d.view.primary, _i);
    ck_assert_int_eq(failover_switch(&world->f, &world->d, new, "op", world->now_us, &err), 0);
    world_run(40);
    ck_assert_int_eq(world->d.view.primary, new);
    ck_assert(world->d.view.sw.ended_well);
    ck_assert(!view_is_usable(&world->d.view, _i));
    ck_assert_int_eq(world->nsteps[FAILOVER_DO_PROMOTE], 1);
}
END_TEST

/* Somebody promotes a standby and has the other one follow it: that is followed, too. A former
 * primary that comes back is what he spoke against. */
START_TEST(test_word_of_an_operator)
{
    int new = (_i + 1) % NODES;
    int other = (_i + 2) % NODES;

    world_begin(_i);
    decide_detach(&world->d, _i, "op", "", world->now_us);
    world_run(2);
    decide_attach(&world->d, _i, "op", world->now_us);
    world_run(2);
    world_promote(new);
    world->server[other].feeder = new;
    world_run(10);
    ck_assert_int_eq(world->d.view.primary, new);
    ck_assert(!view_is_usable(&world->d.view, _i));
    world->server[new].alive = false;
    world_run(20);
    ck_assert_int_eq(world->d.view.primary, VIEW_NO_NODE);
    decide_attach(&world->d, _i, "op", world->now_us); /* the old one, for want of another */
    world_run(5);
    ck_assert_int_eq(world->d.view.primary, _i);
    world->server[new].alive = true;
    world_run(10);
    ck_assert_int_eq(world->d.view.primary, _i);
}
END_TEST

/* Whatever the old primary writes in the meantime: the third server follows, none is stranded. */
START_TEST(test_switchover_strands_nobody)
{
    int old = _i % NODES;
    int new = (old + 1 + _i / NODES % 2) % NODES;
    int other = NODES - old - new;
    struct err err = {0};

    world_init(old);
    world->seed = (unsigned)_i;
    world_monitor_start();
    world_run(3);
    ck_assert_int_eq(failover_switch(&world->f, &world->d, new, "op", world->now_us, &err), 0);
    world_run(15);
    ck_assert(world->d.view.sw.ended_well);
    ck_assert_int_eq(world->d.view.primary, new);
    ck_assert_int_eq(world->nsteps[FAILOVER_DO_LEAD], 1);
    ck_assert_int_eq(world->server[other].feeder, new);
    ck_assert_msg(world_is_streaming(other), "seed %d: node %d is stranded", _i, other);
    ck_assert_uint_eq(world->d.view.sw.moved[0], 0);
}
END_TEST

/* A detached standby is one, too; and what is wrong with it stops no switchover. */
START_TEST(test_switchover_leads_a_detached_one)
{
    int new = (_i + 2) % NODES;
    int other = (_i + 1) % NODES;
    struct err err = {0};

    world_begin(_i);
    decide_detach(&world->d, other, "op", "", world->now_us);
    world_run(1);
    ck_assert_int_eq(failover_switch(&world->f, &world->d, new, "op", world->now_us, &err), 0);
    while (world->nsteps[FAILOVER_DO_LEAD] == 0)
        world_tick();
    if (_i == 0)
        world->deed.succeeds = false;
    world_run(15);
    ck_assert(world->d.view.sw.ended_well);
    ck_assert_int_eq(world->d.view.primary, new);
    ck_assert_int_eq(world_told("which is detached, could not be led"), _i == 0);
    ck_assert_int_eq(world->server[other].feeder, new);
    ck_assert(world->d.view.node[other].held_down);
}
END_TEST

/* What had been led away comes back to the old primary. */
START_TEST(test_switchover_taken_back_leads_back)
{
    int new = (_i + 2) % NODES;
    int other = (_i + 1) % NODES;
    struct err err = {0};

    world_begin(_i);
    ck_assert_int_eq(failover_switch(&world->f, &world->d, new, "op", world->now_us, &err), 0);
    while (world->nsteps[FAILOVER_DO_LEAD] == 0)
        world_tick();
    while (world->deed.is_running)
        world_tick();
    ck_assert_int_eq(world->server[other].feeder, new);
    if (_i == 0)
        world_monitor_kill();
    else
        world->server[new].alive = false;
    world_run(40);
    ck_assert_int_eq(world->d.view.primary, _i);
    ck_assert(!world->d.view.sw.ended_well);
    ck_assert_int_eq(world->server[other].feeder, _i);
    ck_assert(world_is_streaming(other));
    ck_assert_uint_eq(world->d.view.sw.moved[0], 0);
}
END_TEST

START_TEST(test_switchover_is_taken_back)
{
    int new = (_i + 2) % NODES;
    struct err err = {0};

    world_begin(_i);
    world->server[new].feeder = new; /* gets nothing more */
    world_run(1);
    ck_assert_int_eq(failover_switch(&world->f, &world->d, new, "op", world->now_us, &err), 0);
    world_run(20);
    ck_assert_int_eq(world->d.view.primary, _i);
    ck_assert(!world->d.view.sw.ended_well);
    ck_assert(!world->server[_i].fenced);
    ck_assert(view_can_write(&world->d.view));
    ck_assert_int_eq(world->nsteps[FAILOVER_DO_PROMOTE], 0);
}
END_TEST

/* All of pgpool ends in the midst of it, in every phase: it is gone on with or taken back, soon. */
START_TEST(test_switchover_outlives_pgpool)
{
    static const enum failover_do_type types[] = {FAILOVER_DO_FENCE, FAILOVER_DO_DRAIN,
        FAILOVER_DO_LEAD, FAILOVER_DO_PROMOTE, FAILOVER_DO_UNFENCE};
    enum failover_do_type type = types[(size_t)_i % (sizeof types / sizeof types[0])];
    int old = _i % NODES;
    int new = (old + 2) % NODES;
    int other = NODES - old - new;
    struct err err = {0};
    int at;

    world_init(old);
    world->seed = (unsigned)_i;
    world_monitor_start();
    world_run(3);
    ck_assert_int_eq(failover_switch(&world->f, &world->d, new, "op", world->now_us, &err), 0);
    while (world->nsteps[type] == 0)
        world_tick();
    world_restart();
    world_run(6);
    at = world->d.view.primary;
    ck_assert_msg(view_can_write(&world->d.view), "%d: nobody takes writes", _i);
    ck_assert(!world->server[at].fenced);
    ck_assert_int_eq(at, world->server[new].is_primary ? new : old);
    world_run(10);
    ck_assert_int_eq(world->server[other].feeder, at);
    ck_assert_msg(world_is_streaming(other), "%d: node %d is stranded", _i, other);
    ck_assert(!world->server[old].fence_set);
    ck_assert_uint_eq(world->d.view.sw.moved[0] | world->d.view.sw.fence_set[0], 0);
}
END_TEST

static void revive(int i)
{
    if (!world->server[i].alive)
        world->server[i].fenced = world->server[i].fence_set;
    world->server[i].alive = true;
}

/* Everything at once, by seed: in the end all is quiet and one serves. */
static void upset(void)
{
    struct err err = {0};
    int i = (int)world_roll(NODES);

    switch (world_roll(13)) {
    case 0:
    case 1:
        world->server[i].alive = false;
        break;
    case 2:
    case 3:
    case 4:
        revive(i);
        break;
    case 5:
    case 6:
        world_monitor_kill();
        break;
    case 7:
        (void)failover_switch(&world->f, &world->d, i, "op", world->now_us, &err);
        break;
    case 8:
        if (i != world->d.view.primary)
            decide_detach(&world->d, i, "op", "", world->now_us);
        break;
    case 9:
        decide_attach(&world->d, i, "op", world->now_us);
        break;
    case 12:
        world_restart();
        break;
    default:
        break;
    }
}

/* A former primary is rebuilt by somebody, as its quarantine asks for. */
static void rebuild(void)
{
    int p = world->d.view.primary;
    int i;

    for (i = 0; i < NODES; i++) {
        if (p == VIEW_NO_NODE || i == p || world_is_streaming(i))
            continue;
        world->server[i] = world->server[p];
        world->server[i].is_primary = world->server[i].fenced = world->server[i].fence_set = false;
        world->server[i].alive = true;
        world->server[i].feeder = p;
    }
}

START_TEST(test_random_worlds)
{
    int n;
    int i;

    world_init(_i % NODES);
    world->seed = (unsigned)_i + 1;
    world->log_wanted = getenv("TEST_FAILOVER_LOG") != NULL;
    world->rules.auto_promote = world_roll(2) == 0;
    world->rules.has.failover_command = !world->rules.auto_promote;
    world->rules.has.failback_command = world_roll(2) == 0;
    world->rules.has.follow_primary_command = world_roll(4) == 0;
    world_monitor_start();
    world_run(3);
    world->fail_percent = world_roll(3) * 20;
    for (n = 0; n < 60; n++) {
        upset();
        world_run((double)(1 + world_roll(20)) / 10);
        if (world_roll(10) == 0)
            rebuild();
    }
    world->fail_percent = 0;
    for (i = 0; i < NODES; i++) {
        revive(i);
        decide_attach(&world->d, i, "op", world->now_us);
    }
    world_run(100);
    ck_assert_msg(!view_failover_in_progress(&world->d.view), "seed %d: phase %d", _i,
        world->d.view.sw.phase);
    ck_assert_msg(world->d.view.primary != VIEW_NO_NODE, "seed %d: no primary", _i);
    ck_assert(world->server[world->d.view.primary].is_primary);
    ck_assert_msg(!world->server[world->d.view.primary].fenced, "seed %d: fenced", _i);
    ck_assert(view_can_write(&world->d.view));
    rebuild();
    world_run(100);
    for (i = 0; i < NODES; i++)
        ck_assert_msg(view_is_usable(&world->d.view, i), "seed %d: node %d is lost", _i, i);
}
END_TEST

static Suite *make_suite(void)
{
    Suite *s = suite_create("failover");
    TCase *t = tcase_create("scenes");
    TCase *r = tcase_create("random");

    tcase_add_checked_fixture(t, world_setup, world_teardown);
    tcase_add_loop_test(t, test_nobody_acts_unasked, 0, NODES);
    tcase_add_loop_test(t, test_promotes_the_one_that_has_most, 0, NODES);
    tcase_add_loop_test(t, test_nothing_is_begun_on_an_old_word, 0, NODES);
    tcase_add_loop_test(t, test_weight_breaks_a_tie, 0, NODES);
    tcase_add_loop_test(t, test_living_primary_stays, 0, NODES);
    tcase_add_loop_test(t, test_vanished_primary, 0, NODES);
    tcase_add_loop_test(t, test_vanished_primary_is_given_up, 0, NODES);
    tcase_add_loop_test(t, test_command_fails_and_is_given_up, 0, NODES);
    tcase_add_loop_test(t, test_old_primary_is_barred, 0, NODES);
    tcase_add_loop_test(t, test_standby_lost_runs_beside, 0, NODES);
    tcase_add_loop_test(t, test_killed_while_commands_run, 0, NODES);
    tcase_add_loop_test(t, test_late_answers_are_asked_again, 0, NODES);
    tcase_add_loop_test(t, test_outage_waits, 0, NODES);
    tcase_add_loop_test(t, test_nobody_on_an_older_timeline, 0, 2 * NODES);
    tcase_add_loop_test(t, test_search_has_an_end, 0, NODES);
    tcase_add_loop_test(t, test_switchover, 0, NODES);
    tcase_add_loop_test(t, test_switchover_away_from_who_was_attached, 0, NODES);
    tcase_add_loop_test(t, test_word_of_an_operator, 0, NODES);
    tcase_add_loop_test(t, test_switchover_is_taken_back, 0, NODES);
    tcase_add_loop_test(t, test_switchover_strands_nobody, 0, 60);
    tcase_add_loop_test(t, test_switchover_leads_a_detached_one, 0, NODES);
    tcase_add_loop_test(t, test_switchover_taken_back_leads_back, 0, NODES);
    tcase_add_loop_test(t, test_switchover_outlives_pgpool, 0, 60);
    suite_add_tcase(s, t);
    tcase_add_checked_fixture(r, world_setup, world_teardown);
    tcase_set_timeout(r, 120);
    tcase_add_loop_test(r, test_random_worlds, 0, SEEDS);
    suite_add_tcase(s, r);
    return s;
}

int main(void)
{
    return run_suite(make_suite());
}
