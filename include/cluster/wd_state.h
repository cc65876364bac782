/* SPDX-License-Identifier: PostgreSQL
 * wd_state.h: what all pgpools of a watchdog cluster agree on: the replicated log of events and the
 * state that comes out of it.
 * Runs in: watchdog. Pure: the same events in the same order give the same state everywhere, so
 * nothing here looks at a clock or at settings; times are those the event carries. */
#ifndef PGP_CLUSTER_WD_STATE_H
#define PGP_CLUSTER_WD_STATE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/slice.h"
#include "cluster/view.h"
#include "cluster/wd_pauses.h"

#define WD_MAX_MEMBERS    128
#define WD_NO_MEMBER      (-1)
#define WD_IDENTITY_BYTES 16
#define WD_KEPT_EVENTS    32
#define WD_TEXT_BYTES     160

enum wd_event_type {
    WD_EV_NONE,
    WD_EV_LEAD, /* `member` leads from now on; `is_on`: who leads already, and may take the address
                   when its time has come: who led before is shut out, where that is wanted */
    WD_EV_JOIN, /* `member` works with the disk `identity` */
    WD_EV_LOST, /* server `node` is lost, as `text` says; failover begins, by `member` */
    WD_EV_DETACH,  /* an operator takes `node` out; failover begins, by `member` */
    WD_EV_ATTACH,  /* an operator gives `node` back */
    WD_EV_UP,      /* `node`, which was lost, is in use again */
    WD_EV_END,     /* the failover of `epoch` about `node` is over; `primary` is the primary */
    WD_EV_PRIMARY, /* `primary` has become the primary without us */
    WD_EV_GIVEN,   /* `member`, who leads, has given the address up, because of `text`, and takes it
                      only after another LEAD */
    WD_EV_PAUSE,   /* at pgpool `node` an operator has paused database `text` (empty: all), or, not
                      `is_on`, resumed it */
    WD_EV_EMPTY,   /* `who` wants all query caches to be empty */
    WD_EV_LAST = WD_EV_EMPTY, /* of those that travel by their number */
    WD_EV_CHOSEN /* `primary` is to take the place of `node`, by the failover of `epoch`: nobody is
                    told to before this is in the log. A build that does not know it passes it over:
                    it travels as an END of no failover, with the epoch in place of the timeline */
};

struct wd_event {
    uint8_t type; /* enum wd_event_type */
    int16_t member;
    int16_t node;
    int16_t primary;
    bool was_primary;  /* LOST: the server was the primary */
    bool is_on;        /* PAUSE, LEAD */
    uint32_t epoch;    /* END; of LEAD, without is_on: wd_election_timeout of `member` in
                          milliseconds, 0 from a build that does not say, nor says is_on */
    uint32_t timeline; /* END, PRIMARY: of the primary; 0: not known */
    int64_t at_us;     /* wall clock of who proposed it */
    uint8_t identity[WD_IDENTITY_BYTES];
    char who[VIEW_WHO_BYTES];
    char text[VIEW_WHY_BYTES];
};

struct wd_node {
    bool is_known;     /* any event was about it */
    bool is_held;      /* an operator has detached it: `who`, `why`, `since_us` */
    bool is_lost;      /* most pgpools found it lost */
    bool was_primary;  /* it was the primary then: it is none until it is in use again */
    bool is_begun;     /* failover about it has begun and not ended */
    int16_t candidate; /* and this one may have been told to take its place; VIEW_NO_NODE: nobody */
    uint32_t epoch;    /* of the last failover about it */
    int64_t since_us;
    char who[VIEW_WHO_BYTES];
    char why[VIEW_WHY_BYTES];
};

struct wd_kept {
    int64_t at_us;
    char text[WD_TEXT_BYTES];
};

struct wd_state {
    uint64_t nevents;
    uint32_t epoch; /* of the last failover that began */
    int32_t leader; /* by the last WD_EV_LEAD */
    int32_t former; /* who may have had the address before: of those who led, the last one but this
                       that could take it; the same: that is over; WD_NO_MEMBER: nobody */
    uint32_t leader_ms;   /* its wd_election_timeout, by its word; 0: it does not say */
    uint32_t shortest_ms; /* of all who led since the address was given last; 0: nobody says */
    int64_t leader_since_us;
    char leader_why[WD_TEXT_BYTES]; /* why that one, and no other */
    char given_why[VIEW_WHY_BYTES]; /* of the last one that gave the address up: why */
    bool is_given;                  /* that one has given the address up since */
    bool was_given;    /* the one before had when this one began: nobody has to wait for a lease */
    int32_t primary;   /* VIEW_NO_NODE: none was agreed on */
    uint32_t timeline; /* that it was on; 0: not known */
    uint32_t nempties; /* how often all query caches were to be emptied */
    struct wd_pauses pauses; /* databases that are paused everywhere */
    struct wd_node node[VIEW_MAX_NODES];
    uint8_t identity[WD_MAX_MEMBERS][WD_IDENTITY_BYTES]; /* zero: not known */
    int32_t nkept;
    struct wd_kept kept[WD_KEPT_EVENTS]; /* the last ones, oldest first */
};

/* Nothing was agreed on yet. */
void wd_state_init(struct wd_state *s);
/* Takes one event in. False when it does not fit the state (it came late, or twice): then nothing
 * but the counter changes. */
bool wd_state_apply(struct wd_state *s, const struct wd_event *e);
/* True while who leads may not take the address, for another one may be there with it yet: neither
 * was it given, nor does the log say that he is out. */
bool wd_state_is_owed(const struct wd_state *s);
/* Appends the form in which an event travels, and takes it apart. False: it is malformed. */
void wd_event_put(const struct wd_event *e, struct buf *out);
bool wd_event_get(struct slice in, struct wd_event *e);
/* Appends the form in which the whole state travels, and takes it apart. False: it is malformed,
 * and *s is as after wd_state_init. */
void wd_state_put(const struct wd_state *s, struct buf *out);
bool wd_state_get(struct slice in, struct wd_state *s);
/* The state in `in` may be of a release that is newer than this one. */
bool wd_state_is_newer(struct slice in);
/* True when `a` and `b` say the same. */
bool wd_state_equal(const struct wd_state *a, const struct wd_state *b);
/* True when the disk of `member` is known, and is another one. */
bool wd_state_is_other_disk(
    const struct wd_state *s, int member, const uint8_t identity[WD_IDENTITY_BYTES]);

#endif
