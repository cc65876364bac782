/* SPDX-License-Identifier: PostgreSQL
 * wd_share.h: what the watchdog says to the other processes of its pgpool, and they to it.
 * The region WATCHDOG of shared memory is written by the watchdog and read by all who show it; the
 * mails are plain values that travel as their bytes between processes of one program. */
#ifndef PGP_CLUSTER_WD_SHARE_H
#define PGP_CLUSTER_WD_SHARE_H

#include <stdbool.h>
#include <stdint.h>

#include "cluster/view.h"
#include "cluster/wd_state.h"

#define WD_NAME_BYTES    128
#define WD_HOST_BYTES    128
#define WD_RELEASE_BYTES 32

/* As pgpool-II numbers what a member is; those it has besides never occur. */
#define WD_MEMBER_STATES(X)                                                                        \
    X(DEAD, 0, "DEAD")                                                                             \
    X(LOADING, 1, "LOADING")                                                                       \
    X(JOINING, 2, "JOINING")                                                                       \
    X(LEADER, 4, "LEADER")                                                                         \
    X(ELECTION, 5, "PARTICIPATING IN ELECTION")                                                    \
    X(STANDBY, 7, "STANDBY")                                                                       \
    X(LOST, 8, "LOST")                                                                             \
    X(SHUTDOWN, 10, "SHUTDOWN")

#define WD_MEMBER_STATE(sym, number, text) WD_MEMBER_##sym = number,
enum wd_member_state { WD_MEMBER_STATES(WD_MEMBER_STATE) };
#undef WD_MEMBER_STATE
/* The text of a state, "UNKNOWN" for any other number. */
const char *wd_member_state_text(int state);

/* Does it count? As pgpool-II numbers and names it. */
#define WD_MEMBERSHIPS(X)                                                                          \
    X(MEMBER, 0, "MEMBER")                                                                         \
    X(SHUTDOWN, 1, "REVOKED-SHUTDOWN")                                                             \
    X(NO_SHOW, 2, "REVOKED-NO-SHOW")                                                               \
    X(LOST, 3, "REVOKED-LOST")

#define WD_MEMBERSHIP(sym, number, text) WD_MEMBERSHIP_##sym = number,
enum wd_membership { WD_MEMBERSHIPS(WD_MEMBERSHIP) };
#undef WD_MEMBERSHIP
/* The text of a membership, "UNKNOWN" for any other number. */
const char *wd_membership_text(int membership);

/* One pgpool of the cluster. */
struct wd_member {
    bool exists;
    bool is_voter;      /* of the members that agree */
    bool is_connected;  /* it was heard lately */
    bool is_witness;    /* it has no clients, and never leads for long */
    uint8_t state;      /* enum wd_member_state */
    uint8_t membership; /* enum wd_membership */
    int32_t wd_port;
    int32_t pgpool_port;
    int32_t priority;
    int32_t follows;          /* whom it takes for the leader: its vote; WD_NO_MEMBER: nobody */
    int64_t heard_us;         /* wall clock; 0: never */
    uint64_t lost[2];         /* servers that it does not reach */
    char name[WD_NAME_BYTES]; /* host:port, system, node name */
    char host[WD_HOST_BYTES];
    char release[WD_RELEASE_BYTES]; /* of its program; empty: not known */
};

/* All there is to show. */
struct wd_share {
    bool is_on; /* a watchdog runs */
    int32_t self;
    int32_t leader;    /* WD_NO_MEMBER: none is known */
    int32_t nmembers;  /* that vote */
    int32_t nalive;    /* of these, this one and those that were heard lately */
    int32_t nneeded;   /* for a quorum */
    int32_t quorum;    /* 1 there is one, 0 on the edge, -1 none, -2 no leader */
    bool is_escalated; /* the address is here, or would be */
    int64_t lease_left_ms;
    uint64_t nstrangers; /* that were refused */
    uint64_t term;
    char why[WD_TEXT_BYTES]; /* about the address: who has it, or why not */
    char address[64];        /* delegate_ip */
    struct wd_state state;
    struct wd_member member[WD_MAX_MEMBERS];
};

/* Size of the region. */
size_t wd_share_region_bytes(void);
/* Writes it. Watchdog only. */
void wd_share_publish(struct shm *shm, const struct wd_share *s);
/* False when there is no watchdog: *out is zero then. */
bool wd_share_copy(const struct shm *shm, struct wd_share *out);
/* Does the log tell of the one that leads? Who was elected leads a little before: until then
 * `state` is about the one before it. */
bool wd_share_knows_leader(const struct wd_share *s);

/* MAIL_WD_SEEN: what the monitor of this pgpool finds. */
struct wd_seen {
    uint32_t serial;    /* of the wd_says that it does by */
    bool wants_answer;  /* it has just started */
    bool is_acting;     /* on a lost or returning server */
    int32_t primary;    /* VIEW_NO_NODE: none */
    uint32_t timeline;  /* of the primary; 0: not known */
    int16_t replaced;   /* in whose place it wants to promote `candidate`, when the log says so */
    int16_t candidate;  /* VIEW_NO_NODE: nobody now */
    uint64_t lost[2];   /* servers that it found lost; not those an operator took out */
    uint64_t used[2];   /* servers in use */
    uint64_t silent[2]; /* servers that it has asked, and has no answer of yet */
};

/* MAIL_WD_SAYS: what the monitor has to do by. */
struct wd_says {
    uint32_t serial;
    bool is_leader;                 /* with a majority heard */
    int32_t primary;                /* that all agree on; VIEW_NO_NODE: none */
    uint32_t timeline;              /* that it was on; 0: not known */
    bool acts_alone;                /* nobody leads, and the settings let each pgpool act then */
    bool is_reading;                /* the log, which was read already: what follows is not known */
    uint64_t may[2];                /* servers about which failover may go on, here */
    uint64_t barred[2];             /* servers that are former primaries, whatever they say */
    uint64_t lost[2];               /* servers that are lost, as all have agreed */
    uint64_t known[2];              /* servers of which the log knows whether they are detached */
    uint64_t held[2];               /* and those that are */
    uint32_t epoch[VIEW_MAX_NODES]; /* of the last failover about each; 0: there was none */
    int16_t candidate[VIEW_MAX_NODES]; /* who is to take the place of each; VIEW_NO_NODE: nobody */
    char who[VIEW_MAX_NODES][VIEW_WHO_BYTES];
    char why[VIEW_MAX_NODES][VIEW_WHY_BYTES];
};

/* MAIL_WD_CLUSTER: an order for all pgpools, from control. */
struct wd_cluster_order {
    char what; /* 's' stop, 'r' reload, 'l' rotate the log, 'c' empty the query caches */
    char mode; /* of a stop: 's', 'f', 'i' */
};

#endif
