/* SPDX-License-Identifier: PostgreSQL
 * test_failover.c: failover and switchover in virtual time, against a small world of servers: what
 * is chosen, in which order things are done, and that every mishap (failing commands, lost answers,
 * a killed monitor, servers that come and go) ends in one primary. Random worlds by seed. */
#include "config.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "cluster/failover.h"

#define SECOND_US INT64_C(1000000)
#define TICK_US   INT64_C(50000)
#define SYSTEM_ID UINT64_C(7000000000000000001)
#define NODES     3
#define SEEDS     400

struct server {
    bool alive;
    bool is_primary;
    bool fenced;    /* takes no writes */
    bool fence_set; /* its settings say so, too: it comes back fenced */
    uint32_t timeline;
    uint64_t lsn;
    int feeder; /* whom it wants to stream from */
    int64_t probe_us;
};

/* Something that takes its time; its outcome is told unless the monitor is killed before. */
struct deed {
    bool is_running;
    bool is_lost; /* nobody waits for it any more */
    bool succeeds;
    struct failover_do what;
    int64_t due_us;
};

struct world {
    struct decide d;
    struct decide_rules rules;
    struct failover f;
    struct server server[NODES];
    struct deed deed;
    struct deed beside;
    int64_t now_us;
    unsigned seed;
    unsigned fail_percent;
    bool log_wanted;
    int nsteps[FAILOVER_DO_FOLLOW + 1];
    int ncommands;
    char story[8192];
};

static struct world *w;

static unsigned roll(unsigned sides)
{
    w->seed = w->seed * 1103515245u + 12345u;
    return (w->seed >> 16) % sides;
}

static void world_init(int at)
{
    int i;

    memset(w, 0, sizeof *w);
    w->now_us = 1000 * SECOND_US;
    w->rules.mode = DECIDE_MODE_STREAMING;
    w->rules.returns = true;
    w->rules.auto_failback = true;
    w->rules.drain_limit_us = SECOND_US;
    w->rules.nnodes = NODES;
    for (i = 0; i < NODES; i++) {
        struct decide_rule *r = &w->rules.node[i];

        r->exists = true;
        r->may_fail = true;
        r->health_check = true;
        r->weight = 1;
        r->port = 5000 + i;
        snprintf(r->host, sizeof r->host, "h%d", i);
        w->server[i] = (struct server){
            .alive = true, .is_primary = i == at, .timeline = 1, .lsn = 1000, .feeder = at};
    }
}

static void setup(void)
{
    w = mem_alloc_zero(sizeof *w);
}

static void teardown(void)
{
    mem_free(w);
}

/* The servers */

static bool is_streaming(int i)
{
    const struct server *s = &w->server[i];
    const struct server *from = &w->server[s->feeder];

    return s->alive && !s->is_primary && s->feeder != i && from->alive &&
           from->timeline >= s->timeline && from->lsn >= s->lsn &&
           (from->is_primary || is_streaming(s->feeder));
}

static void servers_tick(void)
{
    int p = w->d.view.primary;
    int i;

    if (view_can_write(&w->d.view) && w->server[p].alive && w->server[p].is_primary &&
        !w->server[p].fenced)
        w->server[p].lsn += 10;
    for (i = 0; i < NODES; i++) {
        struct server *s = &w->server[i];

        if (!is_streaming(i) || roll(3) == 0)
            continue;
        s->lsn = w->server[s->feeder].lsn;
        s->timeline = w->server[s->feeder].timeline;
    }
}

static void promote_server(int i)
{
    if (!w->server[i].alive || w->server[i].is_primary)
        return;
    w->server[i].is_primary = true;
    w->server[i].timeline++;
}

/* Probes */

static void probe(int i)
{
    static struct decide_facts facts;
    const struct server *s = &w->server[i];
    struct decide_probe p = {.answer = s->alive ? DECIDE_FACTS : DECIDE_FAILED,
        .sqlstate = "",
        .message = "refused",
        .took_ms = 1,
        .facts = &facts};
    int k;

    memset(&facts, 0, sizeof facts);
    facts.is_primary = s->is_primary;
    facts.is_receiving = is_streaming(i);
    facts.timeline = s->timeline;
    facts.system_id = SYSTEM_ID;
    facts.received_lsn = s->lsn;
    facts.replayed_lsn = s->lsn;
    facts.replay_age_us = -1;
    for (k = 0; k < NODES; k++)
        if (k != i && w->server[k].feeder == i && is_streaming(k))
            facts.nsenders++;
    decide_on_probe(&w->d, i, &p, w->now_us + 1000);
    w->server[i].probe_us = w->now_us;
}

static void probe_all(void)
{
    int i;

    for (i = 0; i < NODES; i++)
        probe(i);
}

/* Deeds */

static void begin(struct deed *deed, const struct failover_do *what)
{
    deed->is_running = true;
    deed->is_lost = false;
    deed->what = *what;
    deed->succeeds = roll(100) >= w->fail_percent;
    deed->due_us = w->now_us + (int64_t)(1 + roll(10)) * TICK_US;
    if (what->type == FAILOVER_DO_COMMAND) {
        w->ncommands++;
        w->d.view.sw.pid = 4000 + w->ncommands;
    }
}

/* A usable standby that has received more than `chosen`, on as good a timeline. */
static bool is_rival(int i, int chosen)
{
    const struct server *s = &w->server[i];

    return i != chosen && s->alive && !s->is_primary && view_is_usable(&w->d.view, i) &&
           s->timeline >= w->server[chosen].timeline && s->lsn > w->server[chosen].lsn;
}

/* Nobody may be promoted beside a living primary, unless an operator wants it so, and then only
 * when that does not write any more. */
static void check_promotion(const struct failover_do *what)
{
    int i;

    ck_assert_int_ne(what->target, VIEW_NO_NODE);
    for (i = 0; i < NODES; i++) {
        const struct server *s = &w->server[i];

        if (i == w->d.view.primary && i != what->target && s->alive && s->is_primary &&
            s->timeline >= w->server[what->target].timeline)
            ck_assert_msg(s->fenced || !w->d.view.sw.is_asked_for,
                "node %d is promoted beside node %d, which writes", what->target, i);
        if (!w->d.view.sw.is_asked_for && is_rival(i, what->target))
            ck_abort_msg("node %d has more than node %d", i, what->target);
    }
}

static void act_on_servers(const struct deed *deed)
{
    const struct failover_do *what = &deed->what;

    switch (what->type) {
    case FAILOVER_DO_COMMAND:
        if (deed->succeeds && what->target != VIEW_NO_NODE)
            promote_server(what->target);
        break;
    case FAILOVER_DO_PROMOTE:
        if (deed->succeeds)
            promote_server(what->target);
        break;
    case FAILOVER_DO_FENCE:
        w->server[what->node].fenced = w->server[what->node].fence_set = deed->succeeds;
        break;
    case FAILOVER_DO_UNFENCE:
        if (deed->succeeds)
            w->server[what->node].fence_set = false;
        if (deed->succeeds && what->target != VIEW_NO_NODE)
            w->server[what->node].fenced = false;
        break;
    case FAILOVER_DO_FOLLOW:
        if (deed->succeeds)
            w->server[what->node].feeder = what->target;
        break;
    default:
        break;
    }
}

static bool reaches(const struct failover_do *what)
{
    int node = what->type == FAILOVER_DO_PROMOTE ? what->target : what->node;

    return what->type == FAILOVER_DO_COMMAND || what->type == FAILOVER_DO_HOOK ||
           (node != VIEW_NO_NODE && w->server[node].alive);
}

static void end(struct deed *deed, bool beside)
{
    struct failover_outcome o = {.seq = deed->what.seq, .ok = deed->succeeds, .text = "it failed"};

    deed->is_running = false;
    if (!reaches(&deed->what))
        deed->succeeds = o.ok = false;
    act_on_servers(deed);
    if (deed->what.type == FAILOVER_DO_DRAIN && o.ok)
        o.lsn = w->server[deed->what.node].lsn;
    if (deed->is_lost && deed->what.type == FAILOVER_DO_COMMAND)
        failover_on_adopted(&w->f, &w->d, w->now_us);
    else if (!deed->is_lost && beside)
        failover_on_beside_done(&w->f, &w->d, &o, w->now_us);
    else if (!deed->is_lost)
        failover_on_done(&w->f, &w->d, &o, w->now_us);
}

static void carry_out(const struct failover_do *what)
{
    w->nsteps[what->type]++;
    switch (what->type) {
    case FAILOVER_DO_NOTHING:
        break;
    case FAILOVER_DO_ASK:
        probe_all();
        break;
    case FAILOVER_DO_HOOK:
    case FAILOVER_DO_FOLLOW:
        begin(&w->beside, what);
        break;
    case FAILOVER_DO_PROMOTE:
        check_promotion(what);
        begin(&w->deed, what);
        break;
    default:
        begin(&w->deed, what);
        break;
    }
}

static void tell(const struct decide_event *e)
{
    size_t n = strlen(w->story);

    if (n + strlen(e->text) + 2 < sizeof w->story)
        snprintf(w->story + n, sizeof w->story - n, "%s\n", e->text);
    if (w->log_wanted)
        printf("%8.2f %s (%s)\n", (double)(w->now_us - 1000 * SECOND_US) / 1e6, e->text, e->detail);
}

static void monitor_step(void)
{
    int seen = 0;
    int i;

    for (i = 0; i < 100; i++) {
        struct failover_do what;

        while (seen < w->d.nevents) {
            struct decide_event e = w->d.event[seen++];

            failover_on_event(&w->f, &w->d, &e);
            tell(&e);
        }
        what = failover_step(&w->f, &w->d, w->now_us);
        if (what.type == FAILOVER_DO_NOTHING && seen == w->d.nevents)
            break;
        carry_out(&what);
    }
    ck_assert_int_lt(i, 100); /* no spinning */
    w->d.nevents = 0;
}

static void tick(void)
{
    int i;

    w->now_us += TICK_US;
    servers_tick();
    for (i = 0; i < NODES; i++)
        if (w->now_us - w->server[i].probe_us >= SECOND_US)
            probe(i);
    if (w->deed.is_running && w->now_us >= w->deed.due_us)
        end(&w->deed, false);
    if (w->beside.is_running && w->now_us >= w->beside.due_us)
        end(&w->beside, true);
    monitor_step();
}

static void run(double seconds)
{
    int64_t until_us = w->now_us + (int64_t)(seconds * 1e6);

    while (w->now_us < until_us)
        tick();
}

static void monitor_start(void)
{
    decide_init(&w->d, &w->rules, w->now_us);
    failover_init(&w->f);
}

/* What it had begun goes on, and the next one knows what the view says. */
static void monitor_kill(void)
{
    struct view *before = mem_alloc(sizeof *before);

    *before = w->d.view;
    w->deed.is_lost = true;
    /* A statement that is under way ends with its connection, done or not. */
    if (w->deed.is_running && w->deed.what.type != FAILOVER_DO_COMMAND && roll(2) == 0)
        w->deed.is_running = false;
    else if (w->deed.is_running && w->deed.what.type != FAILOVER_DO_COMMAND)
        end(&w->deed, false);
    if (w->beside.is_running && w->beside.what.type != FAILOVER_DO_HOOK)
        w->beside.is_running = false;
    w->beside.is_lost = true;
    monitor_start();
    decide_adopt(&w->d, before);
    if (failover_adopt(&w->f, &w->d, w->now_us)) {
        if (!w->deed.is_running || w->deed.what.type != FAILOVER_DO_COMMAND)
            failover_on_adopted(&w->f, &w->d, w->now_us);
    } else if (w->deed.is_running && w->deed.what.type == FAILOVER_DO_COMMAND) {
        w->deed.is_running = false;
    }
    mem_free(before);
}

static void begin_world(int at)
{
    world_init(at);
    monitor_start();
    run(3);
    ck_assert_int_eq(w->d.view.primary, at);
}

static bool told(const char *text)
{
    return strstr(w->story, text) != NULL;
}

/* Scenes; the loop variable is the place of the primary. */

START_TEST(test_nobody_acts_unasked)
{
    begin_world(_i);
    w->server[_i].alive = false;
    run(10);
    ck_assert_int_eq(w->d.view.primary, VIEW_NO_NODE);
    ck_assert(view_must_hold_writes(&w->d.view));
    ck_assert(view_can_read(&w->d.view, (_i + 1) % NODES));
    ck_assert(!view_can_read(&w->d.view, _i));
    ck_assert_int_eq(w->nsteps[FAILOVER_DO_PROMOTE] + w->nsteps[FAILOVER_DO_COMMAND], 0);
    promote_server((_i + 1) % NODES); /* somebody else does it */
    run(2);
    ck_assert_int_eq(w->d.view.primary, (_i + 1) % NODES);
    ck_assert(view_can_write(&w->d.view));
    ck_assert(!view_failover_in_progress(&w->d.view));
    ck_assert(told("=== Failover done. shutdown host"));
}
END_TEST

START_TEST(test_promotes_the_one_that_has_most)
{
    int late = (_i + 1) % NODES;
    int ahead = (_i + 2) % NODES;

    world_init(_i);
    w->rules.auto_promote = true;
    w->rules.node[late].weight = 100; /* does not outweigh a byte */
    monitor_start();
    run(3);
    w->server[late].feeder = late;
    run(1);
    w->server[_i].alive = false;
    run(3);
    ck_assert_int_eq(w->d.view.primary, ahead);
    run(20);
    ck_assert_int_eq(w->server[late].feeder, ahead);
    ck_assert_int_eq(w->server[late].timeline, 2);
    ck_assert_int_eq(w->nsteps[FAILOVER_DO_PROMOTE], 1);
    w->server[_i].alive = true; /* believes in itself */
    run(10);
    ck_assert_int_eq(w->d.view.primary, ahead);
    ck_assert(!view_is_usable(&w->d.view, _i));
}
END_TEST

START_TEST(test_weight_breaks_a_tie)
{
    int heavy = (_i + 2) % NODES;

    world_init(_i);
    w->rules.auto_promote = true;
    w->rules.node[heavy].weight = 2;
    monitor_start();
    run(3);
    w->server[0].lsn = w->server[1].lsn = w->server[2].lsn = 9000;
    w->server[_i].alive = false;
    run(3);
    ck_assert_int_eq(w->d.view.primary, heavy);
}
END_TEST

/* We do not reach the primary, but a standby does. */
START_TEST(test_living_primary_stays)
{
    struct decide_probe p = {.answer = DECIDE_FAILED, .sqlstate = "", .message = "no way"};
    int i;

    world_init(_i);
    w->rules.auto_promote = true;
    monitor_start();
    run(3);
    for (i = 0; i < 100; i++) {
        w->server[_i].probe_us = w->now_us + TICK_US;
        decide_on_probe(&w->d, _i, &p, w->now_us);
        probe((_i + 1) % NODES);
        probe((_i + 2) % NODES);
        w->now_us += TICK_US;
        ck_assert_int_ne(failover_step(&w->f, &w->d, w->now_us).type, FAILOVER_DO_PROMOTE);
        if (i == 0)
            monitor_step();
        w->d.nevents = 0;
    }
}
END_TEST

START_TEST(test_command_fails_and_is_given_up)
{
    begin_world(_i);
    w->rules.has_command = true;
    decide_set_rules(&w->d, &w->rules, w->now_us);
    w->fail_percent = 100;
    w->server[_i].alive = false;
    run(30);
    ck_assert_int_eq(w->ncommands, 3);
    ck_assert(!view_failover_in_progress(&w->d.view));
    ck_assert(told("was given up"));
    w->server[_i].alive = true;
    run(5);
    ck_assert_int_eq(w->d.view.primary, _i);
    ck_assert(view_is_usable(&w->d.view, _i));
}
END_TEST

/* From the command's beginning on the old primary is not taken back, however alive it looks. */
START_TEST(test_old_primary_is_barred)
{
    begin_world(_i);
    w->rules.has_command = true;
    decide_set_rules(&w->d, &w->rules, w->now_us);
    w->server[_i].alive = false;
    while (w->ncommands == 0)
        tick();
    w->deed.due_us = w->now_us + 5 * SECOND_US;
    w->server[_i].alive = true;
    run(4);
    ck_assert_int_eq(w->d.view.primary, VIEW_NO_NODE);
    run(3);
    ck_assert_int_ne(w->d.view.primary, VIEW_NO_NODE);
    ck_assert_int_ne(w->d.view.primary, _i);
}
END_TEST

START_TEST(test_standby_lost_runs_beside)
{
    int lost = (_i + 1) % NODES;

    begin_world(_i);
    w->rules.has_command = true;
    w->rules.has_back_command = true;
    decide_set_rules(&w->d, &w->rules, w->now_us);
    w->server[lost].alive = false;
    run(3);
    ck_assert_int_eq(w->nsteps[FAILOVER_DO_HOOK], 1);
    ck_assert_int_eq(w->beside.what.node, lost);
    ck_assert_int_eq(w->beside.what.target, _i);
    ck_assert(view_can_write(&w->d.view));
    w->server[lost].alive = true;
    run(5);
    ck_assert_int_eq(w->nsteps[FAILOVER_DO_HOOK], 2);
    ck_assert_int_eq(w->beside.what.hook, HOOK_FAILBACK);
    ck_assert_int_eq(w->nsteps[FAILOVER_DO_COMMAND], 0);
}
END_TEST

START_TEST(test_outage_waits)
{
    int i;

    world_init(_i);
    w->rules.auto_promote = true;
    monitor_start();
    run(3);
    for (i = 0; i < NODES; i++)
        w->server[i].alive = false;
    run(5);
    w->server[(_i + 1) % NODES].alive = true; /* first back, and no judge of who has most */
    run(30);
    ck_assert_int_eq(w->nsteps[FAILOVER_DO_PROMOTE], 0);
    w->server[_i].alive = true;
    run(5);
    ck_assert_int_eq(w->d.view.primary, _i);
    ck_assert_int_eq(w->nsteps[FAILOVER_DO_PROMOTE], 0);
}
END_TEST

START_TEST(test_switchover)
{
    int new = (_i + 2) % NODES;
    struct err err = {0};
    int i;

    begin_world(_i);
    ck_assert_int_eq(failover_switch(&w->f, &w->d, new, "op", w->now_us, &err), 0);
    ck_assert(view_must_hold_writes(&w->d.view));
    ck_assert_int_eq(failover_switch(&w->f, &w->d, new, "op", w->now_us, &err), -1);
    run(15);
    ck_assert_int_eq(w->d.view.primary, new);
    ck_assert(w->d.view.sw.ended_well);
    ck_assert_uint_eq(w->d.view.sw.nended, 1);
    ck_assert(view_can_write(&w->d.view));
    for (i = 0; i < NODES; i++)
        if (i != _i && i != new)
            ck_assert_int_eq(w->server[i].feeder, new);
    ck_assert_int_eq(w->nsteps[FAILOVER_DO_FENCE], 1);
    ck_assert_int_eq(w->nsteps[FAILOVER_DO_UNFENCE], 1);
    ck_assert(!view_is_usable(&w->d.view, _i));
}
END_TEST

START_TEST(test_switchover_is_taken_back)
{
    int new = (_i + 2) % NODES;
    struct err err = {0};

    begin_world(_i);
    w->server[new].feeder = new; /* gets nothing more */
    run(1);
    ck_assert_int_eq(failover_switch(&w->f, &w->d, new, "op", w->now_us, &err), 0);
    run(20);
    ck_assert_int_eq(w->d.view.primary, _i);
    ck_assert(!w->d.view.sw.ended_well);
    ck_assert(!w->server[_i].fenced);
    ck_assert(view_can_write(&w->d.view));
    ck_assert_int_eq(w->nsteps[FAILOVER_DO_PROMOTE], 0);
}
END_TEST

static void revive(int i)
{
    if (!w->server[i].alive)
        w->server[i].fenced = w->server[i].fence_set;
    w->server[i].alive = true;
}

/* Who gives a former primary back has it read its settings, from which the fence is gone. */
static void attach(int i)
{
    w->server[i].fenced = w->server[i].fence_set;
    decide_attach(&w->d, i, "op", w->now_us);
}

/* Everything at once, by seed: in the end all is quiet and one serves. */
static void upset(void)
{
    struct err err = {0};
    int i = (int)roll(NODES);

    switch (roll(12)) {
    case 0:
    case 1:
        w->server[i].alive = false;
        break;
    case 2:
    case 3:
    case 4:
        revive(i);
        break;
    case 5:
    case 6:
        monitor_kill();
        break;
    case 7:
        (void)failover_switch(&w->f, &w->d, i, "op", w->now_us, &err);
        break;
    case 8:
        if (i != w->d.view.primary)
            decide_detach(&w->d, i, "op", "", w->now_us);
        break;
    case 9:
        attach(i);
        break;
    default:
        break;
    }
}

/* A former primary is rebuilt by somebody, as its quarantine asks for. */
static void rebuild(void)
{
    int p = w->d.view.primary;
    int i;

    for (i = 0; i < NODES; i++) {
        if (p == VIEW_NO_NODE || i == p || is_streaming(i))
            continue;
        w->server[i] = (struct server){
            .alive = true, .timeline = w->server[p].timeline, .lsn = w->server[p].lsn, .feeder = p};
    }
}

START_TEST(test_random_worlds)
{
    int n;
    int i;

    world_init(_i % NODES);
    w->seed = (unsigned)_i + 1;
    w->log_wanted = getenv("TEST_FAILOVER_LOG") != NULL;
    w->rules.auto_promote = roll(2) == 0;
    w->rules.has_command = !w->rules.auto_promote;
    w->rules.has_back_command = roll(2) == 0;
    w->rules.has_follow_command = roll(4) == 0;
    monitor_start();
    run(3);
    w->fail_percent = roll(3) * 20;
    for (n = 0; n < 60; n++) {
        upset();
        run((double)(1 + roll(20)) / 10);
        if (roll(10) == 0)
            rebuild();
    }
    w->fail_percent = 0;
    for (i = 0; i < NODES; i++) {
        revive(i);
        attach(i);
    }
    run(100);
    ck_assert_msg(
        !view_failover_in_progress(&w->d.view), "seed %d: phase %d", _i, w->d.view.sw.phase);
    ck_assert_msg(w->d.view.primary != VIEW_NO_NODE, "seed %d: no primary", _i);
    ck_assert(w->server[w->d.view.primary].is_primary);
    ck_assert_msg(!w->server[w->d.view.primary].fenced, "seed %d: fenced", _i);
    ck_assert(view_can_write(&w->d.view));
    rebuild();
    run(100);
    for (i = 0; i < NODES; i++)
        ck_assert_msg(view_is_usable(&w->d.view, i), "seed %d: node %d is lost", _i, i);
}
END_TEST

static Suite *make_suite(void)
{
    Suite *s = suite_create("failover");
    TCase *t = tcase_create("scenes");
    TCase *r = tcase_create("random");

    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_loop_test(t, test_nobody_acts_unasked, 0, NODES);
    tcase_add_loop_test(t, test_promotes_the_one_that_has_most, 0, NODES);
    tcase_add_loop_test(t, test_weight_breaks_a_tie, 0, NODES);
    tcase_add_loop_test(t, test_living_primary_stays, 0, NODES);
    tcase_add_loop_test(t, test_command_fails_and_is_given_up, 0, NODES);
    tcase_add_loop_test(t, test_old_primary_is_barred, 0, NODES);
    tcase_add_loop_test(t, test_standby_lost_runs_beside, 0, NODES);
    tcase_add_loop_test(t, test_outage_waits, 0, NODES);
    tcase_add_loop_test(t, test_switchover, 0, NODES);
    tcase_add_loop_test(t, test_switchover_is_taken_back, 0, NODES);
    suite_add_tcase(s, t);
    tcase_add_checked_fixture(r, setup, teardown);
    tcase_set_timeout(r, 120);
    tcase_add_loop_test(r, test_random_worlds, 0, SEEDS);
    suite_add_tcase(s, r);
    return s;
}

int main(void)
{
    SRunner *sr = srunner_create(make_suite());
    int failed;

    srunner_run_all(sr, CK_NORMAL);
    failed = srunner_ntests_failed(sr);
    srunner_free(sr);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
