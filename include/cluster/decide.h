/* SPDX-License-Identifier: PostgreSQL
 * decide.h: from what probes and operators say to what pgpool does with each server.
 * Runs in: monitor. Pure: no descriptor, no clock; whoever calls gives the time. Desired state
 * (what an operator wants) and observed state (what probes see) are two things; the view is made
 * from both, and every change of it is an event. Never takes a refusal for a death. */
#ifndef PGP_CLUSTER_DECIDE_H
#define PGP_CLUSTER_DECIDE_H

#include <stdbool.h>
#include <stdint.h>

#include "cluster/view.h"

#define DECIDE_NAME_BYTES  64
#define DECIDE_ADDR_BYTES  48
#define DECIDE_TEXT_BYTES  320
#define DECIDE_MAX_SENDERS 128
#define DECIDE_MAX_EVENTS  256

/* What a probe brought back. */
enum decide_answer {
    DECIDE_FAILED, /* nobody answers */
    DECIDE_UNSURE, /* could not be asked: says nothing about the server */
    DECIDE_BUSY,   /* lives, takes no connections now (57P03) */
    DECIDE_ALIVE,  /* lives, tells nothing about itself (28xxx, 53300 and all other refusals) */
    DECIDE_FACTS   /* lives, and the facts are there */
};

/* A receiver that a server feeds. */
struct decide_sender {
    char name[DECIDE_NAME_BYTES];
    char addr[DECIDE_ADDR_BYTES];
    char state[16];
    char sync_state[16];
    int64_t replay_lag_us; /* -1: not told */
};

struct decide_facts {
    bool is_primary;   /* not in recovery */
    bool is_receiving; /* streams from somebody */
    uint32_t timeline; /* 0: not told */
    uint32_t server_version;
    uint64_t system_id;      /* 0: not told */
    int32_t max_connections; /* less what is reserved */
    uint64_t received_lsn;
    uint64_t replayed_lsn;
    int64_t replay_age_us;    /* -1: not told */
    int64_t silence_us;       /* since its WAL receiver heard anything; -1: not told */
    int64_t silence_limit_us; /* when that gives up by itself; 0: never, or not told */
    char receiver_name[DECIDE_NAME_BYTES];
    int nsenders;
    struct decide_sender sender[DECIDE_MAX_SENDERS];
};

struct decide_probe {
    enum decide_answer answer;
    const char *sqlstate; /* of a refusal, else "" */
    const char *message;  /* why there are no facts, else "" */
    int64_t took_ms;
    int64_t began_us; /* clock_mono_us: before anything was asked */
    bool is_late;     /* with DECIDE_FAILED: it was waited for in vain, nobody refused */
    const struct decide_facts *facts; /* with DECIDE_FACTS */
};

/* The settings that count here, of one server and of all. */
struct decide_rule {
    bool exists;
    bool may_fail;       /* ALLOW_TO_FAILOVER */
    bool always_primary; /* ALWAYS_PRIMARY */
    bool health_check;   /* health_check_period is not 0 */
    int max_retries;
    int64_t timeout_ms;           /* health_check_timeout, for the log */
    char host[DECIDE_NAME_BYTES]; /* for the log, cut */
    int port;                     /* for the log */
    double weight;                /* of two that have received as much, the heavier is promoted */
    char application_name[DECIDE_NAME_BYTES];
};

enum decide_mode {
    DECIDE_MODE_STREAMING, /* one primary, found by asking */
    DECIDE_MODE_MAIN,      /* the usable server with the lowest number is the main one */
};

/* When a standby's lag is worth a line. */
enum decide_lag_log { DECIDE_LAG_NONE, DECIDE_LAG_OVER, DECIDE_LAG_ALWAYS };

/* Which of the operator's commands are set: what they do is not done by us. */
struct decide_commands {
    bool failover_command;
    bool failback_command;
    bool follow_primary_command;
};

struct decide_rules {
    enum decide_mode mode;
    bool returns; /* a lost server may return by itself: not where writes go to all servers */
    bool auto_failback;
    int64_t auto_failback_interval_us;
    int64_t delay_threshold_bytes;
    int64_t delay_threshold_us; /* not 0: it takes the place of the bytes */
    bool delay_from_command;    /* replication_delay_source_cmd tells the lag in time */
    bool detach_false_primary;
    enum decide_lag_log lag_log;
    bool error_is_loss;    /* failover_on_backend_error: a broken link and one failed probe */
    bool shutdown_is_loss; /* failover_on_backend_shutdown: it says that it is stopping */
    bool auto_promote;     /* a standby is promoted when the primary is lost */
    struct decide_commands has;
    int64_t search_limit_us; /* search_primary_node_timeout, 0: none */
    int64_t drain_limit_us;  /* how long transactions may go on before a switchover ends them */
    int nnodes;
    struct decide_rule node[VIEW_MAX_NODES];
};

enum decide_event_type {
#define DECIDE_EVENT(sym, level, kept, name) DECIDE_EV_##sym,
#include "cluster/decide_events.def"
#undef DECIDE_EVENT
    DECIDE_EVENT_COUNT
};

/* What happened. Failover hangs on these. */
struct decide_event {
    enum decide_event_type type;
    int node;
    int other; /* the former primary, or VIEW_NO_NODE */
    int64_t at_us;
    char text[DECIDE_TEXT_BYTES];   /* the line for the log */
    char detail[DECIDE_TEXT_BYTES]; /* what the server or the system said; may be empty */
    char who[VIEW_WHO_BYTES];       /* the operator behind it; empty: nobody, it was seen */
    const char *hint;               /* what to do, or NULL; a constant */
};

/* What is told once, until it is over. */
enum decide_told {
    DECIDE_TOLD_REFUSAL = 1,    /* why there are no facts */
    DECIDE_TOLD_DISALLOWED = 2, /* a failure without consequence */
    DECIDE_TOLD_STALE = 4,      /* it says that it is a primary, and is not believed */
    DECIDE_TOLD_UNSURE = 8,     /* it could not be asked */
    DECIDE_TOLD_LAG = 16,       /* it is behind the limit */
    DECIDE_TOLD_UNFED = 32      /* it is in use and receives nothing of the primary's */
};

/* What is remembered of one server between probes. */
struct decide_node {
    bool have_facts;
    struct decide_facts facts;
    int fails;              /* probes that failed in a row */
    int oks;                /* probes answered in a row */
    bool is_silent;         /* the last probe failed */
    int64_t mute_us;        /* since when probes of it are waited for in vain, 0: they are not */
    bool suspected;         /* a client's link to it broke */
    int64_t suspected_us;   /* when: what was asked before says nothing about that */
    unsigned told;          /* DECIDE_TOLD_*: what the log knows of it */
    int64_t newcomer_us;    /* since when it says that it is a newer primary than ours, or 0 */
    int64_t stray_us;       /* since when it is not believed: ours lives and is followed; or 0 */
    bool is_new;            /* a reload has added it, and it has not answered yet */
    bool is_vouched;        /* attached while it was silent: its next word counts */
    int64_t asked_us;       /* when the last answered probe was begun */
    int64_t lost_stream_us; /* since when this standby streams from nobody, 0: it does */
    int64_t returned_us;    /* last automatic return, 0: none */
    int64_t command_us;     /* lag as the operator's command told it */
};

/* Where the primary's WAL ended: all that was committed before `began_us` stands in front of it. */
struct decide_mark {
    uint64_t lsn;
    int64_t began_us; /* clock_mono_us */
};
/* How many of its probes a standby may be behind. */
#define DECIDE_MARKS 32

struct decide {
    struct decide_rules rules;
    struct view view; /* as to be published */
    struct decide_node node[VIEW_MAX_NODES];
    uint64_t system_id;       /* of the cluster the primary belongs to; 0 unknown */
    uint32_t top_timeline;    /* newest timeline a primary of it was seen on */
    int64_t began_us;         /* the first look, while view.is_looking */
    int named;                /* the primary that an operator named, or VIEW_NO_NODE */
    uint64_t followers[2];    /* bit per node: was seen as a standby since then */
    int agreed;               /* the primary that all pgpools agree on, or VIEW_NO_NODE */
    uint32_t agreed_timeline; /* that it was on; 0: not known */
    uint64_t barred[2];       /* bit per node: all pgpools agree that it is no primary any more */
    uint64_t missed[2];       /* bit per node: all pgpools agree that it is lost */
    uint64_t marks_epoch;     /* of the primary that `mark` is about */
    uint32_t marks_timeline;
    uint32_t nmarks; /* ever made: the last DECIDE_MARKS are kept */
    struct decide_mark mark[DECIDE_MARKS];
    int nevents;
    int nlost; /* events that found no room */
    struct decide_event event[DECIDE_MAX_EVENTS];
};

/* Starts from the settings; every server is WAITING. */
void decide_init(struct decide *d, const struct decide_rules *rules, int64_t now_us);
/* Takes over what an earlier life of this process had published, so that its end changes nothing.
 */
void decide_adopt(struct decide *d, const struct view *before);
/* Takes an operator's hold back from before a restart. */
void decide_hold(struct decide *d, int node, const char *who, const char *why, int64_t since_us);
/* Is the first look at all servers over? To be called now and then. */
void decide_look(struct decide *d, int64_t now_us);
/* New settings: new servers are DOWN until they have answered once, removed ones UNUSED, the others
 * stay as they are. */
void decide_set_rules(struct decide *d, const struct decide_rules *rules, int64_t now_us);
/* Takes in the result of a probe of `node` at `now_us` (wall clock, as everywhere here). */
void decide_on_probe(struct decide *d, int node, const struct decide_probe *p, int64_t now_us);
/* No probe was made although it was time. */
void decide_on_skip(struct decide *d, int node, int64_t now_us);
/* The operator's command tells how far `node` is behind. */
void decide_on_delay(struct decide *d, int node, int64_t delay_us, int64_t now_us);
/* A client's link to `node` broke: the next failed probes count whatever the settings say. */
void decide_on_suspect(struct decide *d, int node, int64_t now_us);
/* An operator takes a server out, until decide_attach. `who` and `why` are kept. */
void decide_detach(struct decide *d, int node, const char *who, const char *why, int64_t now_us);
/* An operator gives a server back; also ends a quarantine and what held it down. One that says that
 * it is another primary than the present one counts as silent until its next answer. */
void decide_attach(struct decide *d, int node, const char *who, int64_t now_us);
/* An operator says that a server is the primary: it is taken for one from now on, unless it says
 * itself that it is a standby. */
void decide_promote(struct decide *d, int node, const char *who, int64_t now_us);
/* The pgpools of a watchdog cluster agree on the primary, who was on `timeline` (0: not known), and
 * on which servers are former ones: those are taken for one no more, whatever they say. */
void decide_agree(
    struct decide *d, int primary, uint32_t timeline, const uint64_t barred[2], int64_t now_us);
/* The pgpools of a watchdog cluster agree on which servers are lost. This one may not have found
 * that itself: it keeps away from them all the same, until they agree that they are back. */
void decide_agree_lost(struct decide *d, const uint64_t lost[2], int64_t now_us);
/* True when it was found lost here, and not only by others. */
bool decide_finds_lost(const struct decide *d, int node);
/* True when it was asked last without an answer, or is being asked because somebody misses it. */
bool decide_is_silent(const struct decide *d, int node);
/* True when the next probe of `node` is to come after the retry delay and not after the period. */
bool decide_is_urgent(const struct decide *d, int node);
/* Takes the events away: returns how many were written to `out`. */
int decide_take_events(struct decide *d, struct decide_event *out, int max);
/* Level for the log, and whether the event is worth keeping for SHOW. */
enum decide_event_level { DECIDE_LVL_LOG, DECIDE_LVL_WARNING };
enum decide_event_level decide_event_level(enum decide_event_type type);
bool decide_event_is_kept(enum decide_event_type type);
const char *decide_event_name(enum decide_event_type type);

#endif
