/* SPDX-License-Identifier: PostgreSQL
 * failover_world.h: a small world of servers in virtual time, and a monitor in it, for tests of
 * failover. The functions fail the test when a promotion is wrong or the monitor spins. */
#ifndef PGP_FAILOVER_WORLD_H
#define PGP_FAILOVER_WORLD_H

#include <stdbool.h>
#include <stdint.h>

#include "cluster/failover.h"

#define SECOND_US INT64_C(1000000)
#define TICK_US   INT64_C(50000)
#define NODES     3
#define TIMELINES 64
/* wal_receiver_timeout */
#define RECEIVER_LIMIT_US (60 * SECOND_US)

struct server {
    bool alive;
    bool is_primary;
    bool fenced;    /* takes no writes */
    bool fence_set; /* its settings say so, too: it comes back fenced */
    uint32_t timeline;
    uint32_t control_timeline; /* that its control file knows; 0: the same */
    uint64_t lsn;
    uint64_t fork[TIMELINES]; /* where each timeline of its history began */
    int feeder;               /* whom it wants to stream from */
    int64_t probe_us;
    int64_t mute_us; /* since when its host is gone and nobody was told; 0: it is not */
    int nstrangers;  /* receivers of its that are no servers of ours */
    const char *stranger;
};

/* Something that takes its time; its outcome is told unless the monitor is killed before. */
struct deed {
    bool is_running;
    bool is_lost; /* nobody waits for it any more */
    bool succeeds;
    bool goes_unsaid; /* the connection breaks before its end is told, done or not */
    bool vanishes;    /* and so does the server that was to be promoted */
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
    struct failover_do late; /* a promotion that nobody waits for, but that was heard */
    int64_t late_us;         /* when it is done; 0: there is none */
    int unsaid;              /* whom an order to promote may have reached, and since when */
    int64_t unsaid_us;       /* 0: nobody */
    int64_t now_us;
    unsigned seed;
    unsigned fail_percent;
    bool log_wanted;
    int nsteps[FAILOVER_DO_FOLLOW + 1];
    int ncommands;
    char story[8192];
};

/* The one world of a test, between world_setup and world_teardown. */
extern struct world *world;

void world_setup(void);
void world_teardown(void);
/* Server `at` is the primary, the others stream from it. No monitor yet. */
void world_init(int at);
/* Server `at` is the primary, and a monitor has had time to look. */
void world_begin(int at);
/* Lets time pass. */
void world_tick(void);
void world_run(double seconds);
/* 0 .. sides - 1, by the seed. */
unsigned world_roll(unsigned sides);
/* Server `i` streams what a primary writes. */
bool world_is_streaming(int i);
/* Server `i` is promoted by somebody. */
void world_promote(int i);
void world_probe(int i);
void world_monitor_start(void);
/* Kills the monitor; the next one takes over what the view says. */
void world_monitor_kill(void);
/* Ends all of pgpool, and starts it again: what it has in files is left. */
void world_restart(void);
/* Has it take in events and act. */
void world_monitor_step(void);
/* The log has this. */
bool world_told(const char *text);

#endif
