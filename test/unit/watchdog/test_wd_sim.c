/* SPDX-License-Identifier: PostgreSQL
 * test_wd_sim.c: many pgpools in one process and in simulated time: libraft over its own fixture,
 * the watchdog's real wd_lead.c, wd_lease.c, wd_members.c, wd_talk.c, wd_tell.c, wd_state.c,
 * wd_votes.c, and the monitor's real decisions (wd_sim_monitor.c). Made up are network, kernel and
 * servers. By seeds: messages are late or lost, in one direction or both; processes hang and go on,
 * or end and begin anew, the monitor also alone; machines sleep (the boot clock goes on, the
 * monotonic one and libraft's do not); wall clocks are set; disks are slow; servers die and come
 * back, a former primary as one; members are taken out of the settings and come back; every third
 * seed, leaders are to give the lead away, and no snapshots are sent, for libraft's fixture reads
 * behind its log when it cuts one that a snapshot has begun. At every step: at most one pgpool
 * holds the address, each failover promotes at most one server, who takes a while to become the
 * primary, and who knows of it writes to the former one no more. After each storm: one leads and
 * holds the address, all logs are the same, no server is forgotten, each pgpool uses all of them.
 * At the end a minority is cut off and the primary dies: the majority gets on. test_wd_sim [SEEDS
 * [FIRST [STEP]]] */
#include "config.h"

#include <raft.h>
#include <raft/fixture.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "base/mem.h"
#include "config/conf.h"
#include "ipc/mailbox.h"
#include "process/watchdog/wd_int.h"
#include "sys/clock.h"

#include "wd_sim.h"

static unsigned long seed;

struct world world;

/* The first is the usual one; a leader's messages come often enough for any of the others. */
const int sim_election_ms[ELECTIONS] = {500, 300, 900};

static int election_ms(const struct pool *p)
{
    return sim_election_ms[p->election];
}

void sim_fail(const char *what)
{
    printf("seed %lu, %d pgpools, %d witnesses, at %lld ms: %s\n", seed, world.n, world.nwitnesses,
        (long long)raft_fixture_time(&world.f), what);
    exit(EXIT_FAILURE);
}

uint32_t sim_below(uint32_t n)
{
    world.random = world.random * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(world.random >> 33) % n;
}

int64_t sim_now_ms(void)
{
    return (int64_t)raft_fixture_time(&world.f);
}

/* The state machine, as watchdog.c has it */

/* What was agreed on is never anything else, whoever tells it. */
static void check_agreed(uint64_t n, const struct raft_buffer *buf)
{
    const uint8_t *p = buf->base;
    uint64_t hash = 14695981039346656037u;
    size_t i;

    for (i = 0; i < buf->len; i++)
        hash = (hash ^ p[i]) * 1099511628211u;
    if (n >= EVENTS)
        sim_fail("too many events");
    if (world.agreed[n] != 0 && world.agreed[n] != hash)
        sim_fail("two pgpools were told another thing as the same event");
    world.agreed[n] = hash;
}

static int apply(struct raft_fsm *fsm, const struct raft_buffer *buf, void **result)
{
    struct pool *p = fsm->data;
    struct wd *w = &p->w;
    const char *text = buf->base;
    struct wd_event e;
    bool fits;

    *result = NULL;
    world.at = w->self;
    if (!wd_event_get(slice_of(text, buf->len - (size_t)text[buf->len - 1]), &e))
        sim_fail("an event cannot be read");
    check_agreed(w->state.nevents, buf);
    fits = wd_state_apply(&w->state, &e);
    if (fits && e.type == WD_EV_LEAD && e.member == w->self && w->lead.is_told)
        w->lead.is_led = true;
    if (p->back_ms == 0)
        wd_tell_monitor(w);
    return 0;
}

static int snapshot(struct raft_fsm *fsm, struct raft_buffer *bufs[], unsigned *n_bufs)
{
    struct pool *p = fsm->data;
    struct buf text = {0};

    wd_state_put(&p->w.state, &text);
    *n_bufs = 1;
    *bufs = raft_malloc(sizeof **bufs);
    (*bufs)[0].len = (text.len + 8) / 8 * 8;
    (*bufs)[0].base = raft_calloc(1, (*bufs)[0].len);
    memcpy((*bufs)[0].base, text.data, text.len);
    ((char *)(*bufs)[0].base)[(*bufs)[0].len - 1] = (char)((*bufs)[0].len - text.len);
    buf_free(&text);
    world.nsnapshots++;
    return 0;
}

static int restore(struct raft_fsm *fsm, struct raft_buffer *buf)
{
    struct pool *p = fsm->data;
    const char *text = buf->base;

    if (!wd_state_get(slice_of(text, buf->len - (size_t)text[buf->len - 1]), &p->w.state))
        sim_fail("a snapshot cannot be read");
    raft_free(buf->base);
    world.nrestored++;
    return 0;
}

/* As watchdog.c's take_seen. */
static void take_seen(struct pool *p)
{
    struct wd *w = &p->w;
    bool changed = memcmp(p->seen.lost, w->seen.lost, sizeof p->seen.lost) != 0;

    p->has_seen = false;
    w->seen = p->seen;
    if (w->seen.wants_answer)
        w->is_said = false;
    if (changed)
        wd_talk_tell_all(w);
    wd_tell_monitor(w);
    if (wd_is_leading(w))
        wd_lead_step(w);
}

/* One pgpool */

static void tick(struct pool *p)
{
    struct wd *w = &p->w;
    int i;

    p->tick_ms = sim_now_ms() + (w->lead.since_boot_ms == 0 ? 2 * TICK_MS : TICK_MS);
    if (w->ticks++ % 3 == 0)
        wd_talk_tell_all(w);
    wd_lead_changed(w);
    for (i = 0; i < world.n; i++) {
        bool alive = i != w->self && wd_is_alive(w, i);

        if (!alive && w->other[i].is_alive)
            wd_votes_forget(&w->votes, i);
        w->other[i].is_alive = alive;
    }
    if (wd_is_leading(w))
        wd_lead_step(w);
    wd_tell_monitor(w);
}

static void begin(struct pool *p, int i)
{
    struct wd_state state = p->w.state;

    memset(&p->w, 0, sizeof p->w);
    memset(p->heard_us, 0, sizeof p->heard_us);
    p->w.self = i;
    p->w.identity[0] = (uint8_t)(i + 1);
    p->w.net = (struct wd_net *)(size_t)(i + 1);
    p->w.raft = (struct wd_raft *)(size_t)(i + 1);
    p->w.addr = (struct wd_addr *)(size_t)(i + 1);
    p->w.is_witness = i >= world.n - world.nwitnesses;
    p->w.serial = (uint32_t)sim_now_ms() | 1;
    p->w.begun_us = clock_mono_us();
    p->w.seen.primary = VIEW_NO_NODE;
    p->w.seen.candidate = VIEW_NO_NODE;
    p->w.state = state;
    p->w.role.env = mem_alloc_zero(sizeof(struct proc_env));
    p->w.role.env->boxes = (struct mailboxes *)(size_t)(i + 1);
    p->holds = false;
    p->tick_ms = p->look_ms = sim_now_ms();
}

static void set_election(struct pool *p, int election)
{
    p->election = election;
    raft_set_election_timeout(p->raft, (unsigned)election_ms(p));
    raft_set_heartbeat_timeout(p->raft, (unsigned)election_ms(p) / 5);
}

/* What a new process does not know any more; the log is on the disk. */
static void forget_leader(struct raft *r)
{
    if (r->state != RAFT_FOLLOWER)
        return;
    r->follower_state.current_leader.id = 0;
    raft_free(r->follower_state.current_leader.address);
    r->follower_state.current_leader.address = NULL;
}

/* libraft does not know for how long its machine slept. */
static void wake_up(struct pool *p)
{
    int64_t ms = sim_now_ms() - p->gone_ms;

    p->sleeps = false;
    p->slept_ms += ms;
    p->raft->election_timer_start += (raft_time)ms;
}

static void come_back(struct pool *p, int i)
{
    p->back_ms = 0;
    if (p->sleeps)
        wake_up(p);
    raft_fixture_revive(&world.f, (unsigned)i);
    if (!p->restarts)
        return;
    p->restarts = false;
    mem_free(p->w.role.env);
    begin(p, i);
    if (sim_below(2) == 0) { /* else the watchdog alone was killed */
        sim_monitor_end(p);
        sim_monitor_begin(p);
    }
    forget_leader(p->raft);
}

/* A leader cannot be begun anew within the fixture: it hangs. One that begins anew with another
 * election time-out keeps to what it has promised by the former one (wd_disk.c). */
static void go_away(struct pool *p, int i, bool restarts, int64_t ms)
{
    int64_t promised_ms;

    p->restarts = restarts && p->raft->state == RAFT_FOLLOWER;
    if (p->restarts) {
        p->holds = false;
        promised_ms = election_ms(p);
        if (world.differ)
            set_election(p, (int)sim_below(ELECTIONS));
        if (promised_ms < election_ms(p))
            promised_ms = election_ms(p);
        ms += WD_SILENT_AT_START(promised_ms);
    }
    p->sleeps = !p->restarts && sim_below(3) == 0;
    p->gone_ms = sim_now_ms();
    p->back_ms = sim_now_ms() + ms + 1;
    raft_fixture_kill(&world.f, (unsigned)i);
}

static void step_pool(struct pool *p, int i)
{
    int k;

    world.at = i;
    if (p->holds && wd_addr_boot_ms() >= p->until_ms)
        p->holds = false; /* the kernel does not need us for that */
    if (p->back_ms != 0 && sim_now_ms() >= p->back_ms)
        come_back(p, i);
    if (p->back_ms != 0)
        return;
    p->w.role.loop.now_us = clock_mono_us();
    for (k = 0; k < world.n; k++)
        wd_put_bit(p->w.unwanted, k, k == world.without && k != i);
    if (sim_now_ms() >= p->tick_ms)
        tick(p);
    if (sim_now_ms() >= p->look_ms && !p->w.is_witness) {
        p->look_ms = sim_now_ms() + LOOK_MS / 2 + sim_below(LOOK_MS);
        sim_monitor_look(p);
        if (p->has_seen)
            take_seen(p);
    }
}

static void deliver(void)
{
    int kept = 0;
    int n = world.nmessages;
    int i;

    for (i = 0; i < n; i++) {
        struct message m = world.message[i];
        struct pool *p = &world.pool[m.to];

        if (m.due_ms > sim_now_ms() || (p->back_ms != 0 && !p->restarts)) {
            world.message[kept++] = m;
            continue;
        }
        world.message[i].body = NULL;
        world.at = m.to;
        if (p->back_ms == 0) {
            p->w.role.loop.now_us = clock_mono_us();
            p->heard_us[m.from] = clock_mono_us();
            wd_talk_take(&p->w, m.from, m.type, slice_of(m.body, m.n));
            wd_lead_changed(&p->w);
        }
        free(m.body);
    }
    memmove(world.message + kept, world.message + n,
        (size_t)(world.nmessages - n) * sizeof world.message[0]);
    world.nmessages -= n - kept;
}

static void check_holders(void)
{
    int n = 0;
    int i;

    for (i = 0; i < world.n; i++)
        n += world.pool[i].holds;
    if (n > 1)
        sim_fail("two pgpools hold the address");
}

/* Storms */

static void set_cut(int from, int to, bool on)
{
    world.cut[from][to] = on;
    if (on)
        raft_fixture_saturate(&world.f, (unsigned)from, (unsigned)to);
    else
        raft_fixture_desaturate(&world.f, (unsigned)from, (unsigned)to);
}

/* Nothing passes between those whose bits are set and the others. */
static void cut_in_two(uint32_t side)
{
    int i;
    int k;

    for (i = 0; i < world.n; i++)
        for (k = 0; k < world.n; k++)
            if (i != k)
                set_cut(i, k, (side >> i & 1) != (side >> k & 1));
}

static void heal(void)
{
    int i;
    int k;

    for (i = 0; i < world.n; i++)
        for (k = 0; k < world.n; k++)
            if (i != k)
                set_cut(i, k, false);
}

/* The worst for a lease: one that has not heard its leader for long wants to be elected in the
 * moment in which the leader hangs and all who followed it begin anew. */
static void begin_plot(int heir)
{
    int i;

    for (i = 0; i < world.n; i++)
        if (world.pool[i].holds && i != heir) {
            set_cut(i, heir, true);
            world.plot_leader = i;
            world.plot_heir = heir;
            world.plot_ms = sim_now_ms() + election_ms(&world.pool[heir]) +
                            sim_below(2 * (uint32_t)election_ms(&world.pool[heir]));
        }
}

static void end_plot(void)
{
    int i;

    world.plot_ms = 0;
    for (i = 0; i < world.n; i++)
        if (world.pool[i].back_ms == 0 && i != world.plot_heir)
            go_away(&world.pool[i], i, i != world.plot_leader, i == world.plot_leader ? 4000 : 1);
}

/* An operator, an interface or a trusted server: whoever leads is to give the lead away, also in
 * the moment in which it has just been elected. */
static void make_yield(void)
{
    int i;

    for (i = 0; i < world.n; i++) {
        struct pool *p = &world.pool[i];

        world.at = i;
        if (p->back_ms == 0 && wd_is_leading(&p->w) && p->w.lead.since_boot_ms != 0)
            wd_lead_yield(&p->w, WD_NO_MEMBER, "it is wanted");
    }
}

static void make_trouble(void)
{
    int i = (int)sim_below((uint32_t)world.n);
    int k = (int)sim_below((uint32_t)world.n);
    uint32_t slow = world.differ ? 200 : 600; /* still fast enough for the shortest time-out */

    switch (sim_below(world.yields ? 14 : 12)) {
    case 0:
        cut_in_two(sim_below(1u << world.n));
        break;
    case 1:
    case 2:
        heal();
        break;
    case 3:
    case 4:
        if (i != k)
            set_cut(i, k, sim_below(2) == 0);
        break;
    case 5:
        raft_fixture_set_disk_latency(
            &world.f, (unsigned)i, 1 + sim_below(sim_below(4) == 0 ? slow : 20));
        raft_fixture_set_network_latency(
            &world.f, (unsigned)i, 1 + sim_below(sim_below(4) == 0 ? slow / 2 : 30));
        break;
    case 6:
        begin_plot(i);
        break;
    case 7: /* all are told by a reload */
        world.without = sim_below(2) == 0 ? i : WD_NO_MEMBER;
        break;
    case 8: /* all wall clocks are set now and then, by up to two days */
        world.pool[i].wall_ms = sim_below(2 * DAY_MS);
        break;
    case 9:
        if (world.pool[i].back_ms == 0 && !world.pool[i].w.is_witness) {
            world.at = i;
            sim_monitor_kill(&world.pool[i]);
        }
        break;
    case 12:
    case 13:
        make_yield();
        break;
    default:
        if (world.pool[i].back_ms == 0)
            go_away(
                &world.pool[i], i, sim_below(2) == 0, sim_below(sim_below(2) == 0 ? 700 : 6000));
        break;
    }
}

/* The worst for a failover: whoever leads is gone when it has told a server to be the primary, and
 * the next one knows of that by the log alone. */
static void strike(void)
{
    int i = world.struck - 1;

    world.struck = 0;
    if (i >= 0 && world.pool[i].back_ms == 0)
        go_away(&world.pool[i], i, sim_below(2) == 0, 1000 + sim_below(20000));
}

static void run(int64_t span_ms, bool is_storm)
{
    int64_t end_ms = sim_now_ms() + span_ms;
    int64_t next_ms = sim_now_ms();
    int64_t last_ms = -1;
    uint32_t more;
    uint32_t ms;
    int i;

    while (sim_now_ms() < end_ms) {
        raft_fixture_step(&world.f);
        more = sim_below(500);
        i = (int)sim_below((uint32_t)world.n);
        ms = (uint32_t)election_ms(&world.pool[i]);
        raft_fixture_set_randomized_election_timeout(&world.f, (unsigned)i, ms + more * ms / 500);
        if (sim_now_ms() == last_ms)
            continue;
        last_ms = sim_now_ms();
        if (is_storm && sim_now_ms() >= next_ms) {
            next_ms = sim_now_ms() + 50 + sim_below(2500);
            make_trouble();
        }
        if (world.plot_ms != 0 && sim_now_ms() >= world.plot_ms)
            end_plot();
        sim_servers_step(is_storm);
        strike();
        deliver();
        for (i = 0; i < world.n; i++)
            step_pool(&world.pool[i], i);
        check_holders();
    }
}

/* For who looks into a seed that fails. */
static void print_pools(void)
{
    int i;
    unsigned k;

    for (i = 0; i < world.n; i++) {
        const struct pool *p = &world.pool[i];
        const struct raft *r = p->raft;

        printf("pgpool %d: state %d term %llu election %d ms, %llu events, back %lld, members", i,
            (int)r->state, (unsigned long long)r->current_term, election_ms(p),
            (unsigned long long)p->w.state.nevents, (long long)p->back_ms);
        for (k = 0; k < r->configuration.n; k++)
            printf(" %llu%s", (unsigned long long)r->configuration.servers[k].id - 1,
                r->configuration.servers[k].role == RAFT_VOTER ? "" : "?");
        for (k = 0; r->state == RAFT_LEADER && k < r->configuration.n; k++)
            printf(" (%d next %llu match %llu)", r->leader_state.progress[k].state,
                (unsigned long long)r->leader_state.progress[k].next_index,
                (unsigned long long)r->leader_state.progress[k].match_index);
        printf("\n");
        sim_monitor_print(p);
    }
    for (i = 0; i < SERVERS; i++)
        printf("node %d: lives %d, primary %d, timeline %u\n", i, world.server[i].lives,
            world.server[i].is_primary, world.server[i].timeline);
}

/* What is not as it has to be when it was calm for a while; NULL: nothing. */
static const char *find_fault(void)
{
    const struct wd_state *first = &world.pool[0].w.state;
    int primary = sim_servers_primary();
    bool voter[WD_MAX_MEMBERS];
    int nleaders = 0;
    int i;

    if (world.plot_ms != 0)
        return "it is not calm yet";
    for (i = 0; i < world.n; i++) {
        struct pool *p = &world.pool[i];

        if (p->back_ms != 0)
            return "a pgpool hangs";
        if (!wd_state_equal(first, &p->w.state))
            return "two logs differ";
        if (!p->w.is_witness && !sim_monitor_is_calm(p, first->primary))
            return "a monitor does not use the servers as the log has them";
        if (!wd_is_leading(&p->w))
            continue;
        nleaders++;
        if (p->w.is_witness || !p->w.lead.is_led || !p->holds)
            return "who leads does not hold the address";
        if (wd_raft_voters(p->w.raft, voter) != world.n)
            return "a member is forgotten";
    }
    if (nleaders != 1)
        return "nobody leads, or too many do";
    for (i = 0; i < SERVERS; i++)
        if (first->node[i].is_begun || first->node[i].is_lost)
            return "a server is forgotten";
    return primary != VIEW_NO_NODE && first->primary == primary
               ? NULL
               : "what all take for the primary is none";
}

/* In the end nothing is wrong, and it stays so. */
static void check_calm(void)
{
    int64_t until_ms = sim_now_ms() + CALM_MS;
    const char *fault;

    run(1000, false);
    while (find_fault() != NULL && sim_now_ms() < until_ms)
        run(1000, false);
    if (find_fault() == NULL)
        run(STAYS_MS, false);
    fault = find_fault();
    if (fault == NULL)
        return;
    print_pools();
    sim_fail(fault);
}

/* Less than half of them. */
static uint32_t choose_minority(void)
{
    int left = 1 + (int)sim_below((uint32_t)(world.n - 1) / 2);
    uint32_t chosen = 0;

    while (left > 0) {
        uint32_t bit = 1u << sim_below((uint32_t)world.n);

        left -= (chosen & bit) == 0;
        chosen |= bit;
    }
    return chosen;
}

static const char *find_fault_of_majority(uint32_t minority)
{
    int primary = sim_servers_primary();
    const struct wd_state *s = NULL;
    int nleaders = 0;
    int i;

    for (i = 0; i < world.n; i++) {
        struct wd *w = &world.pool[i].w;

        if ((minority >> i & 1) != 0) {
            if (world.pool[i].holds || wd_is_leading(w))
                return "one of a minority leads";
            continue;
        }
        if (!wd_is_leading(w))
            continue;
        nleaders++;
        s = &w->state;
        if (!world.pool[i].holds)
            return "the leader of a majority does not hold the address";
    }
    if (nleaders != 1)
        return "a majority has no leader, or too many";
    return primary != VIEW_NO_NODE && s->primary == primary
               ? NULL
               : "a majority has not replaced the primary";
}

/* A majority whose members hear each other gets on, whatever has become of the others: somebody
 * leads, holds the address and replaces the primary that dies meanwhile. */
static void try_majority(void)
{
    uint32_t minority = choose_minority();
    int64_t until_ms = sim_now_ms() + CALM_MS;
    const char *fault;

    cut_in_two(minority);
    sim_servers_lose();
    do {
        run(1000, false);
        fault = find_fault_of_majority(minority);
    } while (fault != NULL && sim_now_ms() < until_ms);
    if (fault != NULL) {
        print_pools();
        sim_fail(fault);
    }
    sim_servers_return();
    heal();
    check_calm();
}

static void try_seed(int n, int nwitnesses)
{
    struct raft_configuration conf;
    int i;

    memset(&world, 0, offsetof(struct world, gen));
    world.without = WD_NO_MEMBER;
    world.random = seed * 2654435761u + (unsigned)n;
    world.n = n;
    world.nwitnesses = nwitnesses;
    world.yields = seed % 3 == 0;
    world.differ = seed % 5 == 0;
    sim_servers_begin();
    raft_fixture_initialize(&world.f);
    for (i = 0; i < n; i++) {
        struct pool *p = &world.pool[i];

        p->fsm = (struct raft_fsm){
            .version = 1, .data = p, .apply = apply, .snapshot = snapshot, .restore = restore};
        raft_fixture_grow(&world.f, &p->fsm);
    }
    raft_fixture_configuration(&world.f, (unsigned)n, &conf);
    raft_fixture_bootstrap(&world.f, &conf);
    raft_configuration_close(&conf);
    for (i = 0; i < n; i++) {
        struct pool *p = &world.pool[i];

        p->raft = raft_fixture_get(&world.f, (unsigned)i);
        sim_guard(p);
        set_election(p, world.differ ? (int)sim_below(ELECTIONS) : 0);
        raft_set_snapshot_threshold(p->raft, 16);
        raft_set_snapshot_trailing(p->raft, world.yields ? EVENTS : 4);
        raft_set_install_snapshot_timeout(p->raft, WD_SNAPSHOT_WAIT_MS);
        raft_set_pre_vote(p->raft, true);
        wd_state_init(&p->w.state);
        p->wall_ms = DAY_MS;
        begin(p, i);
        world.at = i;
        sim_monitor_begin(p);
    }
    raft_fixture_start(&world.f);
    check_calm();
    for (i = 0; i < STORMS; i++) {
        run(STORM_MS, true);
        heal();
        world.without = WD_NO_MEMBER;
        check_calm();
    }
    try_majority();
    for (i = 0; i < n; i++) {
        mem_free(world.pool[i].w.role.env);
        mem_free(world.pool[i].m);
        wd_rollback_fini(&world.pool[i].rollback);
    }
    for (i = 0; i < world.nmessages; i++)
        free(world.message[i].body);
    raft_fixture_close(&world.f);
}

/* Of all pgpools but one; WD_NO_MEMBER: of all. */
static struct conf_gen *load_conf(int without, int election)
{
    char path[] = "/tmp/test_wd_sim.XXXXXX";
    struct conf_report report;
    struct conf_gen *gen;
    int fd = mkstemp(path);
    FILE *file = fdopen(fd, "w");
    int i;

    fprintf(file,
        "use_watchdog = on\nbackend_clustering_mode = 'streaming_replication'\n"
        "wd_election_timeout = %d\n",
        sim_election_ms[election]);
    for (i = 0; i < MAX_POOLS; i++)
        if (i != without)
            fprintf(
                file, "hostname%d = 'h%d'\nwd_port%d = 9000\npgpool_port%d = 9999\n", i, i, i, i);
    fclose(file);
    conf_report_init(&report);
    gen = conf_load(path, NULL, &report);
    unlink(path);
    conf_report_fini(&report);
    if (gen == NULL)
        sim_fail("the settings cannot be used");
    return gen;
}

int main(int argc, char **argv)
{
    static const int kinds[][2] = {{3, 0}, {3, 1}, {5, 0}, {7, 0}};
    unsigned long nseeds = argc > 1 ? strtoul(argv[1], NULL, 10) : 40;
    unsigned long first = argc > 2 ? strtoul(argv[2], NULL, 10) : 1;
    unsigned long step = argc > 3 ? strtoul(argv[3], NULL, 10) : 1;
    unsigned long npromotions = 0;
    unsigned long nsnapshots = 0;
    unsigned long nrestored = 0;
    unsigned long nchanges = 0;
    int i;
    int k;

    log_configure("", LVL_FATAL, LOG_DEFAULT);
    for (k = 0; k < ELECTIONS; k++) {
        world.gen[k] = load_conf(WD_NO_MEMBER, k);
        for (i = 0; i < MAX_POOLS; i++)
            world.gen_without[i][k] = load_conf(i, k);
    }
    for (seed = first; seed < first + nseeds * step; seed += step) {
        const int *kind = kinds[seed % (sizeof kinds / sizeof kinds[0])];

        try_seed(kind[0], kind[1]);
        npromotions += (unsigned long)world.npromotions;
        nsnapshots += (unsigned long)world.nsnapshots;
        nrestored += (unsigned long)world.nrestored;
        nchanges += (unsigned long)world.nchanges;
    }
    printf("%lu seeds, %lu failovers, %lu snapshots, %lu of them sent, %lu changes of members: one "
           "holder, one promotion, nothing forgotten\n",
        nseeds, npromotions, nsnapshots, nrestored, nchanges);
    for (k = 0; k < ELECTIONS; k++) {
        conf_gen_free(&world.gen[k]);
        for (i = 0; i < MAX_POOLS; i++)
            conf_gen_free(&world.gen_without[i][k]);
    }
    return EXIT_SUCCESS;
}
