/* SPDX-License-Identifier: PostgreSQL
 * failover_world.c: servers that write, stream, die and are promoted, deeds that take their time
 * and may fail, and the monitor's loop around the functions that are tested. */
#include "config.h"

#include "failover_world.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "cluster/switch_file.h"

#define SYSTEM_ID UINT64_C(7000000000000000001)
#define RECEIVER  "walreceiver" /* PostgreSQL's own name for all of them */

struct world *world;

unsigned world_roll(unsigned sides)
{
    world->seed = world->seed * 1103515245u + 12345u;
    return (world->seed >> 16) % sides;
}

void world_init(int at)
{
    int i;

    memset(world, 0, sizeof *world);
    world->now_us = 1000 * SECOND_US;
    world->rules.mode = DECIDE_MODE_STREAMING;
    world->rules.returns = true;
    world->rules.auto_failback = true;
    world->rules.drain_limit_us = SECOND_US;
    world->rules.nnodes = NODES;
    for (i = 0; i < NODES; i++) {
        struct decide_rule *r = &world->rules.node[i];

        r->exists = true;
        r->may_fail = true;
        r->health_check = true;
        r->weight = 1;
        r->port = 5000 + i;
        snprintf(r->host, sizeof r->host, "h%d", i);
        world->server[i] = (struct server){
            .alive = true, .is_primary = i == at, .timeline = 1, .lsn = 1000, .feeder = at};
    }
}

void world_setup(void)
{
    world = mem_alloc_zero(sizeof *world);
}

void world_teardown(void)
{
    mem_free(world);
}

/* The servers */

/* What it has on its timeline is part of `from`'s history: nothing beyond the point where that went
 * on without it. */
static bool is_ancestor(const struct server *s, const struct server *from)
{
    return from->timeline == s->timeline
               ? from->fork[s->timeline] == s->fork[s->timeline]
               : from->timeline > s->timeline && s->lsn <= from->fork[s->timeline + 1];
}

/* Its feeders lead to a primary; `hops` keeps standbys that feed each other from being one. */
static bool is_fed(int i, int hops)
{
    const struct server *s = &world->server[i];
    const struct server *from = &world->server[s->feeder];

    return hops < NODES && s->alive && !s->is_primary && s->feeder != i && from->alive &&
           is_ancestor(s, from) && from->lsn >= s->lsn &&
           (from->is_primary || is_fed(s->feeder, hops + 1));
}

bool world_is_streaming(int i)
{
    return is_fed(i, 0);
}

static void servers_tick(void)
{
    int p = world->d.view.primary;
    int i;

    if (view_can_write(&world->d.view) && world->server[p].alive && world->server[p].is_primary &&
        !world->server[p].fenced)
        world->server[p].lsn += 10;
    /* Every primary keeps books, a fenced and a former one, too. */
    for (i = 0; i < NODES; i++)
        if (world->server[i].alive && world->server[i].is_primary && world_roll(2) == 0)
            world->server[i].lsn++;
    for (i = 0; i < NODES; i++) {
        struct server *s = &world->server[i];

        if (!world_is_streaming(i) || world_roll(3) == 0)
            continue;
        s->lsn = world->server[s->feeder].lsn;
        s->timeline = world->server[s->feeder].timeline;
        memcpy(s->fork, world->server[s->feeder].fork, sizeof s->fork);
    }
}

void world_promote(int i)
{
    if (!world->server[i].alive || world->server[i].is_primary)
        return;
    world->server[i].is_primary = true;
    world->server[i].timeline++;
    ck_assert_int_lt((int)world->server[i].timeline, TIMELINES);
    world->server[i].fork[world->server[i].timeline] = world->server[i].lsn;
}

/* Probes */

static void set_name(char to[DECIDE_NAME_BYTES], const char *name)
{
    snprintf(to, DECIDE_NAME_BYTES, "%s", name);
}

void world_probe(int i)
{
    static struct decide_facts facts;
    const struct server *s = &world->server[i];
    struct decide_probe p = {.answer = s->alive ? DECIDE_FACTS : DECIDE_FAILED,
        .sqlstate = "",
        .message = "refused",
        .took_ms = 1,
        .is_late = s->mute_us != 0,
        .facts = &facts};
    int k;

    memset(&facts, 0, sizeof facts);
    facts.is_primary = s->is_primary;
    facts.is_receiving = world_is_streaming(i);
    facts.silence_us = 0;
    facts.silence_limit_us = RECEIVER_LIMIT_US;
    if (world->server[s->feeder].mute_us != 0 && !s->is_primary) {
        facts.silence_us = world->now_us - world->server[s->feeder].mute_us;
        facts.is_receiving = facts.silence_us < RECEIVER_LIMIT_US;
    }
    facts.timeline = s->timeline;
    if (!s->is_primary && !facts.is_receiving && s->control_timeline != 0)
        facts.timeline = s->control_timeline;
    facts.system_id = SYSTEM_ID;
    facts.received_lsn = s->lsn;
    facts.replayed_lsn = s->lsn;
    facts.replay_age_us = -1;
    set_name(facts.receiver_name, RECEIVER);
    for (k = 0; k < NODES; k++)
        if (k != i && world->server[k].feeder == i && world_is_streaming(k))
            set_name(facts.sender[facts.nsenders++].name, RECEIVER);
    for (k = 0; k < s->nstrangers; k++)
        set_name(facts.sender[facts.nsenders++].name, s->stranger);
    decide_on_probe(&world->d, i, &p, world->now_us + 1000);
    world->server[i].probe_us = world->now_us;
}

static void probe_all(void)
{
    int i;

    for (i = 0; i < NODES; i++)
        world_probe(i);
}

/* Deeds */

static void begin(struct deed *deed, const struct failover_do *what)
{
    ck_assert_msg(!deed->is_running || deed->what.type != FAILOVER_DO_HOOK,
        "a command is run beside another one about node %d", deed->what.node);
    deed->is_running = true;
    deed->is_lost = false;
    deed->what = *what;
    deed->succeeds = world_roll(100) >= world->fail_percent;
    deed->vanishes = false;
    deed->goes_unsaid =
        what->type == FAILOVER_DO_PROMOTE && world->fail_percent > 0 && world_roll(100) < 10;
    deed->due_us = world->now_us + (int64_t)(1 + world_roll(10)) * TICK_US;
    if (what->type == FAILOVER_DO_COMMAND) {
        world->ncommands++;
        world->d.view.sw.pid = 4000 + world->ncommands;
    } else if (what->type == FAILOVER_DO_HOOK) {
        world->d.view.sw.beside_pid = 3000;
    }
}

/* A usable standby that has received more than `chosen`, on as good a timeline. */
static bool is_rival(int i, int chosen)
{
    const struct server *s = &world->server[i];

    return i != chosen && s->alive && !s->is_primary && view_is_usable(&world->d.view, i) &&
           s->timeline >= world->server[chosen].timeline && s->lsn > world->server[chosen].lsn;
}

/* Nobody may be promoted beside a living primary, unless an operator wants it so, and then only
 * when that does not write any more. */
static void check_promotion(const struct failover_do *what)
{
    int i;

    ck_assert_int_ne(what->target, VIEW_NO_NODE);
    ck_assert_msg(world->unsaid_us == 0 || world->unsaid == what->target ||
                      world->now_us - world->unsaid_us >= 30 * SECOND_US,
        "node %d is promoted while node %d may be", what->target, world->unsaid);
    for (i = 0; i < NODES; i++) {
        const struct server *s = &world->server[i];

        if (i == world->d.view.primary && i != what->target && s->alive && s->is_primary &&
            s->timeline >= world->server[what->target].timeline)
            ck_assert_msg(s->fenced || !world->d.view.sw.is_asked_for,
                "node %d is promoted beside node %d, which writes", what->target, i);
        /* A lost primary that comes back in this moment may feed one of them again. */
        if (!world->d.view.sw.is_asked_for && is_rival(i, what->target) &&
            !world->server[what->node].alive)
            ck_abort_msg("node %d has more than node %d", i, what->target);
    }
}

static void act_on_servers(const struct deed *deed)
{
    const struct failover_do *what = &deed->what;

    switch (what->type) {
    case FAILOVER_DO_COMMAND:
        if (deed->succeeds && what->target != VIEW_NO_NODE)
            world_promote(what->target);
        break;
    case FAILOVER_DO_PROMOTE:
        if (deed->succeeds)
            world_promote(what->target);
        break;
    case FAILOVER_DO_FENCE:
        if (deed->succeeds) /* else it is as it was: one that is there is not taken away */
            world->server[what->node].fenced = world->server[what->node].fence_set = true;
        break;
    case FAILOVER_DO_UNFENCE:
    case FAILOVER_DO_UNFENCE_BESIDE:
        if (deed->succeeds)
            world->server[what->node].fence_set = false;
        if (deed->succeeds && what->target != VIEW_NO_NODE)
            world->server[what->node].fenced = false;
        break;
    case FAILOVER_DO_LEAD:
    case FAILOVER_DO_FOLLOW:
        if (deed->succeeds)
            world->server[what->node].feeder = what->target;
        break;
    default:
        break;
    }
}

static bool reaches(const struct failover_do *what)
{
    int node = what->type == FAILOVER_DO_PROMOTE ? what->target : what->node;

    return what->type == FAILOVER_DO_COMMAND || what->type == FAILOVER_DO_HOOK ||
           (node != VIEW_NO_NODE && world->server[node].alive);
}

static void end(struct deed *deed, bool beside)
{
    struct failover_outcome o = {.seq = deed->what.seq, .ok = deed->succeeds, .text = "it failed"};

    deed->is_running = false;
    if (!reaches(&deed->what))
        deed->succeeds = o.ok = deed->goes_unsaid = false;
    act_on_servers(deed);
    if (deed->goes_unsaid) {
        o.ok = false;
        o.is_unsure = true;
        world->server[deed->what.target].alive = !deed->vanishes;
    }
    if (deed->goes_unsaid && world->unsaid_us == 0) {
        world->unsaid = deed->what.target;
        world->unsaid_us = world->now_us;
    }
    if (deed->what.type == FAILOVER_DO_DRAIN && o.ok)
        o.lsn = world->server[deed->what.node].lsn;
    if (deed->is_lost && deed->what.type == FAILOVER_DO_COMMAND)
        failover_on_adopted(&world->f, &world->d, world->now_us);
    else if (!deed->is_lost && beside)
        failover_on_beside_done(&world->f, &world->d, &o, world->now_us);
    else if (!deed->is_lost)
        failover_on_done(&world->f, &world->d, &o, world->now_us);
}

static void carry_out(const struct failover_do *what)
{
    world->nsteps[what->type]++;
    switch (what->type) {
    case FAILOVER_DO_NOTHING:
        break;
    case FAILOVER_DO_ASK:
        probe_all();
        break;
    case FAILOVER_DO_UNFENCE_BESIDE:
    case FAILOVER_DO_HOOK:
    case FAILOVER_DO_FOLLOW:
        begin(&world->beside, what);
        break;
    case FAILOVER_DO_PROMOTE:
        check_promotion(what);
        begin(&world->deed, what);
        break;
    default:
        begin(&world->deed, what);
        break;
    }
}

static void tell(const struct decide_event *e)
{
    size_t n = strlen(world->story);

    if (n + strlen(e->text) + strlen(e->detail) + 3 < sizeof world->story)
        snprintf(world->story + n, sizeof world->story - n, "%s\n%s\n", e->text, e->detail);
    if (world->log_wanted)
        printf("%8.2f %s (%s)\n", (double)(world->now_us - 1000 * SECOND_US) / 1e6, e->text,
            e->detail);
}

void world_monitor_step(void)
{
    int seen = 0;
    int i;

    for (i = 0; i < 100; i++) {
        struct failover_do what;

        while (seen < world->d.nevents) {
            struct decide_event e = world->d.event[seen++];

            failover_on_event(&world->f, &world->d, &e);
            tell(&e);
        }
        what = failover_step(&world->f, &world->d, world->now_us);
        if (what.type == FAILOVER_DO_NOTHING && seen == world->d.nevents)
            break;
        carry_out(&what);
    }
    ck_assert_int_lt(i, 100); /* no spinning */
    world->d.nevents = 0;
}

/* A promotion that was sent before all of pgpool ended comes true: by then nobody else may write.
 */
static void late_tick(void)
{
    int p = world->d.view.primary;

    if (world->late_us == 0 || world->now_us < world->late_us)
        return;
    world->late_us = 0;
    if (p != VIEW_NO_NODE && p != world->late.target && world->server[p].alive &&
        world->server[p].is_primary && world->server[world->late.target].alive &&
        world->server[p].timeline <= world->server[world->late.target].timeline)
        ck_assert_msg(world->server[p].fenced, "node %d is promoted late beside node %d",
            world->late.target, p);
    world_promote(world->late.target);
}

void world_tick(void)
{
    int i;

    world->now_us += TICK_US;
    servers_tick();
    late_tick();
    if (world->d.view.primary != VIEW_NO_NODE)
        world->unsaid_us = 0;
    for (i = 0; i < NODES; i++)
        if (world->now_us - world->server[i].probe_us >= SECOND_US)
            world_probe(i);
    if (world->deed.is_running && world->now_us >= world->deed.due_us)
        end(&world->deed, false);
    if (world->beside.is_running && world->now_us >= world->beside.due_us)
        end(&world->beside, true);
    world_monitor_step();
}

void world_run(double seconds)
{
    int64_t until_us = world->now_us + (int64_t)(seconds * 1e6);

    while (world->now_us < until_us)
        world_tick();
}

void world_monitor_start(void)
{
    decide_init(&world->d, &world->rules, world->now_us);
    failover_init(&world->f);
}

/* What it had begun goes on, and the next one knows what the view says. */
void world_monitor_kill(void)
{
    struct view *before = mem_alloc(sizeof *before);

    *before = world->d.view;
    world->deed.is_lost = true;
    /* A statement that is under way ends with its connection, done or not. */
    if (world->deed.is_running && world->deed.what.type != FAILOVER_DO_COMMAND &&
        world_roll(2) == 0)
        world->deed.is_running = false;
    else if (world->deed.is_running && world->deed.what.type != FAILOVER_DO_COMMAND)
        end(&world->deed, false);
    if (world->beside.is_running && world->beside.what.type != FAILOVER_DO_HOOK)
        world->beside.is_running = false;
    world->beside.is_lost = true;
    world_monitor_start();
    decide_adopt(&world->d, before);
    if (failover_adopt_beside(&world->f, &world->d))
        world->beside.is_lost = false;
    if (failover_adopt(&world->f, &world->d, world->now_us)) {
        if (!world->deed.is_running || world->deed.what.type != FAILOVER_DO_COMMAND)
            failover_on_adopted(&world->f, &world->d, world->now_us);
    } else if (world->deed.is_running && world->deed.what.type == FAILOVER_DO_COMMAND) {
        world->deed.is_running = false;
    }
    mem_free(before);
}

/* An order that is under way is lost, is done, or, a promotion, is done later. */
static void forget_deed(void)
{
    struct deed *deed = &world->deed;

    if (deed->is_running && reaches(&deed->what)) {
        if (deed->what.type == FAILOVER_DO_PROMOTE && world->unsaid_us == 0) {
            world->unsaid = deed->what.target;
            world->unsaid_us = world->now_us;
        }
        if (deed->what.type == FAILOVER_DO_PROMOTE && world->late_us == 0 && world_roll(2) == 0) {
            world->late = deed->what;
            world->late_us = world->now_us + (int64_t)(1 + world_roll(40)) * TICK_US;
        } else if (world_roll(2) == 0) {
            act_on_servers(deed);
        }
    }
    deed->is_running = world->beside.is_running = false;
}

void world_restart(void)
{
    struct view_switch *kept = mem_alloc_zero(sizeof *kept);
    struct buf text = {0};

    switch_file_format(&world->rules, &world->d.view.sw, &text);
    forget_deed();
    world_monitor_start();
    if (text.len > 0) {
        ck_assert_int_eq(switch_file_parse(slice_of(text.data, text.len), &world->rules, kept), 0);
        failover_resume(&world->f, &world->d, kept, world->now_us);
    }
    buf_free(&text);
    mem_free(kept);
}

void world_begin(int at)
{
    world_init(at);
    world_monitor_start();
    world_run(3);
    ck_assert_int_eq(world->d.view.primary, at);
}

bool world_told(const char *text)
{
    return strstr(world->story, text) != NULL;
}
