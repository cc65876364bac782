/* SPDX-License-Identifier: PostgreSQL
 * wd_sim.h: the world of the watchdog's simulation. */
#ifndef PGP_TEST_WD_SIM_H
#define PGP_TEST_WD_SIM_H

#include <raft.h>
#include <raft/fixture.h>

#include "cluster/decide.h"
#include "config/conf.h"
#include "process/watchdog/wd_int.h"
#include "process/watchdog/wd_gate.h"
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
#define CALM_MS   200000 /* at most: whoever began late gives the lost a minute to come back */
#define STAYS_MS  5000
#define TICK_MS   100
#define MAIL_MS   5 /* till a process has a mail of another one */
#define LOOK_MS   200
#define BOOT_MS   1000000 /* the boot clock at the beginning */
#define DAY_MS    86400000

/* A monitor has a server promoted: it takes a moment to be heard, and more to be done. */
struct sim_order {
    bool is_running; /* the monitor waits for the outcome */
    bool is_due;     /* it is still to be heard */
    bool is_heard;
    int node; /* that is lost */
    int target;
    int epoch;
    uint32_t seq;
    int64_t due_ms;
};

struct monitor;

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
    struct monitor *m;   /* its monitor: the real decisions */
    struct wd_says says; /* mails between the two, the last of each kind */
    struct wd_seen seen;
    int64_t led_until_us;
    bool has_says;
    bool has_seen;
    bool has_led;
    struct sim_order order;     /* to a server, of its monitor */
    int64_t wall_ms;            /* its wall clock, less the boot clock */
    int16_t chosen[SERVERS];    /* by its log, who is to take the place of each */
    int64_t chosen_ms[SERVERS]; /* since when */
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
    uint32_t timeline;
    uint64_t lsn;
    int64_t back_ms;
    int64_t told_ms; /* when it becomes the primary as it was told to; 0: it was not */
    int told_epoch;  /* by which failover it was told last */
    int told_lost;   /* and in whose place */
    int64_t
        rebuilt_ms; /* a former primary: when somebody makes it a standby; 0: nobody has seen it */
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
    int struck;              /* one more than the pgpool that has just had a server promoted, and
                                is to hang; 0: none */
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

/* wd_sim_servers.c */
void sim_servers_begin(void);
/* They die, in a storm, hear orders, are promoted, come back and are rebuilt. */
void sim_servers_step(bool is_storm);
/* The newest primary that lives; VIEW_NO_NODE. */
int sim_servers_primary(void);
/* The primary dies, and does not come back before sim_servers_return. */
void sim_servers_lose(void);
void sim_servers_return(void);
/* Fills what server `i` tells of itself. */
void sim_server_facts(int i, struct decide_facts *f);

/* wd_sim_monitor.c: a monitor: its decisions and its part of the talk with the watchdog are the
 * real ones. */
void sim_monitor_begin(struct pool *p);
/* It is killed, and the next one takes over what it had published. */
void sim_monitor_kill(struct pool *p);
/* The pgpool ends, and whatever its monitor waited for. */
void sim_monitor_end(struct pool *p);
/* All servers are asked, and what follows is done. Afterwards p->has_seen may be set. */
void sim_monitor_look(struct pool *p);
/* For who looks into a seed that fails. */
void sim_monitor_print(const struct pool *p);
/* It takes `primary` for the primary, and uses all servers. */
bool sim_monitor_is_calm(const struct pool *p, int primary);

/* Puts between libraft and the fixture what wd_raft.c puts between libraft and its disk. */
void sim_guard(struct pool *p);

#endif
