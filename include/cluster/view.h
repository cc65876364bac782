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
    int64_t status_changed_us; /* wall clock */
    char replication_state[16];
    char replication_sync_state[16];
    char held_by[VIEW_WHO_BYTES];
    char held_why[VIEW_WHY_BYTES];
    struct view_health health;
};

/* What routing needs. */
struct view {
    uint64_t version; /* changes with every publication */
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
/* Takes a snapshot if *v is older than what is published; true when it changed. */
bool view_refresh(const struct shm *shm, struct view *v);
/* What happened lately, newest last; older events are overwritten. */
#define VIEW_MAX_EVENTS       128
#define VIEW_EVENT_TEXT_BYTES 192
struct view_event {
    int64_t at_us; /* wall clock */
    int32_t node;
    char name[20]; /* see cluster/decide_events.def */
    char text[VIEW_EVENT_TEXT_BYTES];
};
/* Adds one; monitor only. Texts are cut to the room. */
void view_add_event(struct shm *shm, int64_t at_us, int node, const char *name, const char *text);
/* Copies up to `max` events, oldest first; returns how many. */
int view_copy_events(const struct shm *shm, struct view_event *out, int max);

/* True when sessions may use the node. */
static inline bool view_is_usable(const struct view *v, int node)
{
    return node >= 0 && node < v->nnodes &&
           (v->node[node].status == VIEW_UP || v->node[node].status == VIEW_WAITING);
}
/* The node for writes: the primary; while none is known, the lowest usable node that is not known
 * to be a standby, or else the lowest usable one. VIEW_NO_NODE when there is nothing. */
int view_write_node(const struct view *v);

#endif
