/* SPDX-License-Identifier: PostgreSQL
 * wd_sim.h: the world of the watchdog's simulation. */
#ifndef PGP_TEST_WD_SIM_H
#define PGP_TEST_WD_SIM_H

#include <raft.h>
#include <raft/fixture.h>

#include "config/conf.h"
#include "process/watchdog/wd_int.h"
#include "process/watchdog/wd_match.h"
#include "process/watchdog/wd_rollback.h"
#include "process/watchdog/wd_voice.h"

#define MAX_POOLS 7
#define SERVERS   3
#define MESSAGES  8192
#define EVENTS    4096
#define ELECTIONS 3 /* different wd_election_timeout */
#define STORMS    3
#define STORM_MS  12000
#define CALM_MS   25000
#define TICK_MS   100
#define LOOK_MS   200
#define BOOT_MS   1000000 /* the boot clock at the beginning */

struct pool {
    struct wd w;
    int election; /* its wd_election_timeout, of sim_election_ms */
    struct raft_fsm fsm;
    struct raft *raft;
    struct raft_io inner; /* the fixture's; what libraft calls comes through our wd_match first */
    raft_io_recv_cb recv;
    struct wd_match match;
    struct wd_rollback rollback;
    int64_t back_ms; /* hangs or is being started anew until then; 0: it runs */
    bool restarts;   /* it is being started anew */
    bool sleeps; /* its machine does: its monotonic clock stands still, the boot clock goes on */
    int64_t gone_ms;  /* since when it hangs */
    int64_t slept_ms; /* in all its life */
    int64_t tick_ms;  /* next tick */
    int64_t look_ms;  /* next look of its monitor */
    bool holds;       /* the address */
    int64_t until_ms; /* until the kernel takes it away */
    int64_t not_before_ms;
    int64_t led_until_us; /* as its monitor was told */
    struct wd_says says;
    int64_t heard_us[MAX_POOLS];
    int nproposals;
    bool is_giving;
    bool is_changing; /* of the members */
    bool is_barred;
    raft_term barrier_term;
    raft_term current_term;
    struct raft_barrier barrier;
    struct raft_transfer transfer;
    struct raft_change change;
};

struct message {
    int64_t due_ms;
    int from;
    int to;
    char type;
    char *body;
    size_t n;
};

struct server {
    bool lives;
    bool is_primary;
    int64_t back_ms;
    int64_t told_ms; /* when it becomes the primary as it was told to; 0: it was not */
    int told_epoch;  /* by which failover it was told last */
};

struct world {
    uint64_t random;
    int n;
    int nwitnesses;
    int at; /* whose turn it is: the monotonic clock is his */
    struct raft_fixture f;
    struct pool pool[MAX_POOLS];
    bool cut[MAX_POOLS][MAX_POOLS]; /* nothing comes from the first to the second */
    int64_t last_ms[MAX_POOLS][MAX_POOLS];
    struct message message[MESSAGES];
    int nmessages;
    struct server server[SERVERS];
    int npromotions;
    int nsnapshots;
    int nrestored;           /* by those that were too far behind */
    uint64_t agreed[EVENTS]; /* by its number, what the first pgpool to follow an event was told */
    int64_t plot_ms;         /* when the second half of a plot is due; 0: there is none */
    int plot_leader;
    int plot_heir;
    int without; /* whom the settings of the others do not name now; WD_NO_MEMBER */
    int nchanges;
    bool yields; /* leaders are to give the lead away now and then */
    bool differ; /* wd_election_timeout is being changed: it is not the same on all */
    struct conf_gen *gen[ELECTIONS];
    struct conf_gen *gen_without[MAX_POOLS][ELECTIONS];
};

extern struct world world;
extern const int sim_election_ms[ELECTIONS];

/* Says seed, time and what went wrong; ends the program. */
void sim_fail(const char *what);
/* A random number from 0 to n - 1, by the seed. */
uint32_t sim_below(uint32_t n);
int64_t sim_now_ms(void);
/* Server `node` hears, by the failover of `epoch`, that it is to be the primary. */
void sim_tell_to_promote(int node, int epoch);
/* And has become it. */
void sim_become_primary(int node);
/* Puts between libraft and the fixture what wd_raft.c puts between libraft and its disk. */
void sim_guard(struct pool *p);

#endif
