/* SPDX-License-Identifier: PostgreSQL
 * wd_sim_servers.c: the servers of the watchdog's simulation. Each streams from the newest primary
 * that lives, so all have the same; a former primary that comes back says that it is one, until
 * somebody rebuilds it. All pgpools see all of them, so that what is tried is the agreement. */
#include "config.h"

#include <stdio.h>
#include <string.h>

#include "wd_sim.h"

#define SYSTEM_ID UINT64_C(7000000000000000001)
#define RECEIVER  "walreceiver"
#define NEVER     INT64_MAX

void sim_servers_begin(void)
{
    int i;

    for (i = 0; i < SERVERS; i++)
        world.server[i] =
            (struct server){.lives = true, .is_primary = i == 0, .timeline = 1, .lsn = 1000};
}

int sim_servers_primary(void)
{
    int best = VIEW_NO_NODE;
    int i;

    for (i = 0; i < SERVERS; i++) {
        const struct server *s = &world.server[i];

        if (s->lives && s->is_primary &&
            (best == VIEW_NO_NODE || s->timeline > world.server[best].timeline))
            best = i;
    }
    return best;
}

/* Those behind which another one has gone on are none for long. */
static void see_formers(void)
{
    int best = sim_servers_primary();
    int i;

    for (i = 0; i < SERVERS; i++) {
        struct server *s = &world.server[i];

        if (s->lives && s->is_primary && i != best && s->rebuilt_ms == 0)
            s->rebuilt_ms = sim_now_ms() + 500 + sim_below(5000);
    }
}

static void become_primary(int node)
{
    struct server *s = &world.server[node];
    int i;

    s->told_ms = 0;
    s->is_primary = true;
    for (i = 0; i < SERVERS; i++) /* nobody reuses a timeline: the archive has them all */
        if (world.server[i].timeline > s->timeline)
            s->timeline = world.server[i].timeline;
    s->timeline++;
    world.npromotions++;
    see_formers();
}

/* Server `node` hears, by the failover of `epoch`, that it is to take the place of `lost`. */
static void hear(int node, int lost, int epoch)
{
    struct server *s = &world.server[node];
    int i;

    for (i = 0; i < SERVERS; i++)
        if (i != node && world.server[i].lives && world.server[i].told_epoch == epoch &&
            (world.server[i].told_ms != 0 || world.server[i].is_primary))
            sim_fail("a second server is promoted by one failover");
    s->told_epoch = epoch;
    s->told_lost = lost;
    if (s->told_ms == 0 && !s->is_primary)
        s->told_ms = sim_now_ms() + 1 + sim_below(4000);
}

/* What was sent arrives, whatever has become of who sent it. */
static void hear_orders(bool is_storm)
{
    int i;

    for (i = 0; i < world.n; i++) {
        struct sim_order *o = &world.pool[i].order;

        if (!o->is_due || sim_now_ms() < o->due_ms)
            continue;
        o->is_due = false;
        o->is_heard = world.server[o->target].lives;
        if (!o->is_heard)
            continue;
        hear(o->target, o->node, o->epoch);
        if (is_storm && sim_below(3) == 0)
            world.struck = i + 1;
    }
}

static void die(struct server *s, int64_t back_ms)
{
    s->lives = false;
    s->told_ms = 0;
    s->rebuilt_ms = 0;
    s->back_ms = back_ms;
}

static void step(int i)
{
    struct server *s = &world.server[i];
    int primary;

    if (s->lives && s->told_ms != 0 && sim_now_ms() >= s->told_ms)
        become_primary(i);
    if (!s->lives && sim_now_ms() >= s->back_ms) {
        s->lives = true;
        see_formers();
    }
    if (s->lives && s->rebuilt_ms != 0 && sim_now_ms() >= s->rebuilt_ms) {
        s->is_primary = false;
        s->rebuilt_ms = 0;
    }
    primary = sim_servers_primary();
    if (!s->lives || primary == VIEW_NO_NODE || (s->is_primary && i != primary))
        return;
    if (i == primary)
        s->lsn++;
    s->lsn = world.server[primary].lsn;
    s->timeline = world.server[primary].timeline;
}

void sim_servers_step(bool is_storm)
{
    int nlive = 0;
    int i;

    for (i = 0; i < SERVERS; i++)
        nlive += world.server[i].lives;
    i = (int)sim_below(SERVERS);
    if (is_storm && nlive == SERVERS && sim_below(2500 / SERVERS) == 0)
        die(&world.server[i], sim_now_ms() + 1000 + sim_below(9000));
    hear_orders(is_storm);
    for (i = 0; i < SERVERS; i++)
        step(i);
}

void sim_servers_lose(void)
{
    int primary = sim_servers_primary();

    if (primary != VIEW_NO_NODE)
        die(&world.server[primary], NEVER);
}

void sim_servers_return(void)
{
    int i;

    for (i = 0; i < SERVERS; i++)
        if (!world.server[i].lives)
            world.server[i].back_ms = sim_now_ms();
}

void sim_server_facts(int i, struct decide_facts *f)
{
    const struct server *s = &world.server[i];
    int primary = sim_servers_primary();
    int k;

    memset(f, 0, sizeof *f);
    f->is_primary = s->is_primary;
    f->is_receiving = !s->is_primary && primary != VIEW_NO_NODE;
    f->timeline = s->timeline;
    f->server_version = 160000;
    f->system_id = SYSTEM_ID;
    f->max_connections = 100;
    f->received_lsn = f->replayed_lsn = s->lsn;
    f->replay_age_us = -1;
    f->silence_limit_us = INT64_C(60000000);
    snprintf(f->receiver_name, sizeof f->receiver_name, RECEIVER);
    for (k = 0; k < SERVERS && i == primary; k++)
        if (k != i && world.server[k].lives && !world.server[k].is_primary)
            snprintf(f->sender[f->nsenders++].name, sizeof f->sender[0].name, RECEIVER);
}
