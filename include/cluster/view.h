/* SPDX-License-Identifier: PostgreSQL
 * view.h: what is known about the servers: the region CLUSTER of shared memory.
 * Written by: the monitor only. Read by: everybody, as a consistent snapshot: a worker keeps one
 * and takes a new one when the version has changed, so a step of a session never sees two truths.
 */
#ifndef PGP_CLUSTER_VIEW_H
#define PGP_CLUSTER_VIEW_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ipc/shm.h"

#define VIEW_MAX_NODES 128
#define VIEW_NO_NODE   (-1)
#define VIEW_WHO_BYTES 64
#define VIEW_WHY_BYTES 128
#define VIEW_MAX_JOBS  64

/* VIEW_STATUS(symbol, text): what pgpool does with a node. */
enum view_status {
    VIEW_UNUSED,  /* not configured */
    VIEW_WAITING, /* not probed yet: used like UP */
    VIEW_UP,
    VIEW_DOWN,
    VIEW_QUARANTINE
};

enum view_role { VIEW_ROLE_UNKNOWN, VIEW_ROLE_PRIMARY, VIEW_ROLE_STANDBY };
enum view_pg_status { VIEW_PG_UNKNOWN, VIEW_PG_UP, VIEW_PG_DOWN };

struct view_health {
    uint64_t total;
    uint64_t success;
    uint64_t fail;
    uint64_t skip;
    uint64_t retry;
    uint64_t max_retry;
    int64_t max_ms;
    int64_t min_ms;
    int64_t sum_ms;
    int64_t last_us; /* wall clock; 0: never */
    int64_t last_success_us;
    int64_t last_skip_us;
    int64_t last_fail_us;
};

struct view_node {
    uint8_t status;    /* enum view_status */
    uint8_t role;      /* enum view_role: as we use it */
    uint8_t pg_status; /* enum view_pg_status: as the last probe found it */
    uint8_t pg_role;   /* enum view_role: as the server says of itself */
    bool held_down;    /* an operator keeps it down, see held_by, held_why, status_changed_us */
    bool delay_is_time;
    bool is_busy;      /* it lives but takes no connections now (57P03): starting or stopping */
    bool is_receiving; /* a standby: its WAL receiver streams */
    bool is_unfed;     /* a standby in use that follows nobody and lacks something: not_following */
    bool is_watched;   /* it is asked every now and then */
    bool is_missed;    /* taken out because other pgpools do not reach it */
    uint16_t weight_permille; /* share of balanced reads; for SHOW */
    uint32_t timeline;
    uint32_t server_version; /* 150018; 0 unknown */
    int32_t max_connections; /* of the server, less what it reserves; 0 unknown */
    uint64_t system_id;      /* 0 unknown */
    uint64_t received_lsn;
    uint64_t replayed_lsn; /* of a primary: what it has written; received_lsn: inserted */
    int64_t delay_bytes;
    int64_t delay_us;
    int64_t probed_us;         /* wall clock */
    int64_t replay_asked_us;   /* clock_mono_us: before replayed_lsn was asked for */
    int64_t caught_up_us;      /* clock_mono_us: a standby that had replayed all that was committed
                                  before this, by its last probe; 0: not known to have */
    int64_t status_changed_us; /* wall clock */
    int64_t loaded_us;         /* by its clock: when it last read its configuration; 0: unknown */
    char replication_state[16];
    char replication_sync_state[16];
    char held_by[VIEW_WHO_BYTES];
    char held_why[VIEW_WHY_BYTES];
    struct view_health health;
};

/* What the monitor is doing about the primary. NONE: nothing. */
enum view_phase {
    VIEW_PHASE_NONE,
    VIEW_PHASE_CONFIRM, /* the primary is lost: the others are asked how far they are */
    VIEW_PHASE_COMMAND, /* failover_command runs */
    VIEW_PHASE_FENCE,   /* switchover: the old primary is being kept from writing */
    VIEW_PHASE_DRAIN,   /* switchover: its transactions may end */
    VIEW_PHASE_CUT,     /* switchover: those that did not are ended */
    VIEW_PHASE_LEAD,    /* switchover: the other standbys leave the old primary */
    VIEW_PHASE_CATCHUP, /* switchover: the new primary receives what is left */
    VIEW_PHASE_PROMOTE, /* pg_promote() was sent */
    VIEW_PHASE_SEARCH,  /* somebody has to show up as the primary */
    VIEW_PHASE_UNFENCE /* switchover: its traces are removed from the settings of the old primary */
};

/* A command about a server, beside the search for a primary. */
struct view_job {
    uint8_t hook; /* enum hook_kind */
    int16_t node;
    int16_t old; /* the primary when it happened; VIEW_NO_NODE: none */
};

/* A failover or switchover, in a form that the next monitor can go on from. */
struct view_switch {
    uint8_t phase;     /* enum view_phase */
    bool is_asked_for; /* a switchover, not a loss */
    bool is_fenced;    /* the old primary's settings carry our fence */
    uint8_t tries;
    int32_t node;         /* the primary that is lost or is to be replaced */
    int32_t target;       /* the one to take its place, VIEW_NO_NODE: not chosen yet */
    int32_t barred;       /* may not be the primary for the time being; VIEW_NO_NODE: nobody */
    uint64_t replaced[2]; /* bit per node: another pgpool may have told one to take its place */
    int32_t pid;          /* of the command that runs, 0: none */
    int64_t since_us;     /* wall clock: when it began */
    int64_t phase_us;     /* and when its phase began */
    int64_t outage_us; /* when nobody that could be promoted was there last; 0: there always was */
    char who[VIEW_WHO_BYTES];
    uint64_t follow_epoch; /* the others are to follow the primary of this epoch; 0: nothing */
    int32_t follow_old;    /* the primary before it */
    uint64_t followed[2];  /* bit per node: done with */
    uint64_t moved[2];     /* bit per node: a switchover led it away from the primary */
    uint64_t slotted[2];   /* bit per node: and made a slot for it on `moved_to` */
    uint64_t fenced[2]; /* bit per node: our fence keeps it from writing, until it has reloaded */
    uint64_t fence_set[2]; /* bit per node: its settings have the fence, too */
    int32_t moved_to;
    int64_t pending_us; /* switchover: when pg_promote() was sent and may have been heard; 0: never
                           or it was refused */
    int64_t unsure_us;  /* loss: since when target may have heard that it is to be the primary, and
                           nobody knows; 0: that is known */
    bool is_resumed;    /* and it was told before pgpool began: it is waited for, not told again */
    uint32_t timeline;  /* newest one of a primary when the phase began, 0: not known */
    uint64_t nended;    /* switchovers that ended, one way or the other */
    int32_t ended_node; /* of the last one: who was to become primary */
    bool ended_well;    /* it did */
    char ended_why[VIEW_WHY_BYTES]; /* why it did not */
    uint64_t nbegun;                /* orders to switch over that were */
    uint32_t passed;                /* bit per phase that the last one of them has entered */
    uint64_t nrefused;              /* orders to switch over that were not begun */
    int32_t refused_node;           /* of the last one */
    char refused_why[VIEW_WHY_BYTES];
    int32_t beside_pid; /* of the command that runs beside, 0: none */
    struct view_job beside;
    int32_t njobs; /* that wait for its end */
    struct view_job job[VIEW_MAX_JOBS];
};

/* What routing needs. */
struct view {
    uint64_t version; /* changes with every publication */
    struct view_switch sw;
    bool is_streaming; /* one primary, found by asking; else all nodes take writes */
    bool is_looking;   /* pgpool has just started, and not all servers have been asked yet: who says
                          that   it is the primary may be a former one */
    int32_t nnodes;
    int32_t primary;        /* VIEW_NO_NODE: none is known */
    uint64_t primary_epoch; /* one more each time another node becomes primary */
    struct view_node node[VIEW_MAX_NODES];
};

/* Size of the region. */
size_t view_region_bytes(void);
/* Publishes. Monitor only (and the supervisor before the first fork). */
void view_publish(struct shm *shm, struct view *v);
/* The present version: one load. */
uint64_t view_version(const struct shm *shm);
/* Where it stands, for who asks for every statement. */
const _Atomic uint64_t *view_version_mark(const struct shm *shm);
/* Takes a snapshot if *v is older than what is published; true when it changed. */
bool view_refresh(const struct shm *shm, struct view *v);
/* What happened lately, newest last; older events are overwritten. */
#define VIEW_MAX_EVENTS       1000
#define VIEW_EVENT_TEXT_BYTES 192
struct view_event {
    int64_t at_us; /* wall clock */
    int32_t node;  /* VIEW_NO_NODE: about no node in particular */
    char name[20]; /* see cluster/decide_events.def */
    char text[VIEW_EVENT_TEXT_BYTES];
    char cause[VIEW_EVENT_TEXT_BYTES]; /* what the server or the system said; may be empty */
    char who[VIEW_WHO_BYTES];          /* who is behind it: an operator, or the monitor */
};
/* Adds one; monitor only. */
void view_add_event(struct shm *shm, const struct view_event *event);
/* Copies up to `max` events, oldest first; returns how many. */
int view_copy_events(const struct shm *shm, struct view_event *out, int max);

/* True when sessions may use the node. */
static inline bool view_is_usable(const struct view *v, int node)
{
    return node >= 0 && node < v->nnodes &&
           (v->node[node].status == VIEW_UP || v->node[node].status == VIEW_WAITING);
}
/* True when `node` is in a set of nodes as struct view_switch has them. */
static inline bool view_has_node(const uint64_t set[2], int node)
{
    return (set[node / 64] >> (node % 64) & 1) != 0;
}
/* True while a primary is being replaced: from its loss, or from the order to switch over, until
 * the new one takes writes or the attempt was given up. The version changes when this does. */
static inline bool view_failover_in_progress(const struct view *v)
{
    return v->sw.phase != VIEW_PHASE_NONE;
}
/* True when there is a primary that takes writes now: known, in use, answering, and not about to be
 * replaced. Also true in modes in which there is no primary but a usable main node. */
bool view_can_write(const struct view *v);
/* True when a write has to wait, up to failover_wait, because it would fail now and may succeed
 * soon: a primary is being replaced, was lost, or does not answer. False when there is nothing to
 * wait for: a primary takes writes, or none was ever known (roles cannot be asked for: the write
 * goes to view_write_node and the server judges). Ask again when the version has changed. */
bool view_must_hold_writes(const struct view *v);
/* True when `node` may serve reads, whether or not there is a primary: in use and answering, and
 * neither a former primary nor one that is just starting. A primary that is being replaced may,
 * until the new one is there. Lag is not looked at. */
bool view_can_read(const struct view *v, int node);
/* The node for writes: the primary; while none is known, the lowest usable node that is not known
 * to be a standby, or else the lowest usable one. VIEW_NO_NODE when there is nothing. */
int view_write_node(const struct view *v);

#endif
