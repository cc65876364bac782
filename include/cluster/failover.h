/* SPDX-License-Identifier: PostgreSQL
 * failover.h: what is to be done about a lost primary, an order to switch over, a node that went or
 * came back: the order of steps, as a function of what is known, what was done, and the time.
 * Runs in: monitor. Pure: it says what to do next, the shell does it and tells the outcome. Its
 * state is in the view (view.sw), so that the next monitor goes on where this one was killed. Never
 * lets a lost primary be taken for one again from the moment somebody else may have been told to
 * take its place. */
#ifndef PGP_CLUSTER_FAILOVER_H
#define PGP_CLUSTER_FAILOVER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "cluster/decide.h"
#include "cluster/hook.h"

#define FAILOVER_TEXT_BYTES 200

enum failover_do_type {
    FAILOVER_DO_NOTHING,
    FAILOVER_DO_ASK,     /* probe all servers now; nobody waits for an outcome */
    FAILOVER_DO_COMMAND, /* run failover_command: `node` is lost, `target` is to be promoted */
    FAILOVER_DO_FENCE,   /* make new transactions on `node` read-only */
    FAILOVER_DO_DRAIN,   /* count the transactions on `node`, and tell its position */
    FAILOVER_DO_CUT,     /* end the transactions on `node` */
    FAILOVER_DO_LEAD, /* make standby `node` stream from `target`, and wait until it left `old` */
    FAILOVER_DO_PROMOTE, /* promote `target` */
    FAILOVER_DO_UNFENCE, /* take the fence out of the settings of `node`; `target`: reload, too */
    FAILOVER_DO_UNFENCE_BESIDE, /* beside: take out the fence of `node`; `target`: reload, too */
    FAILOVER_DO_HOOK,  /* beside: run the command of `hook` about `node`; `target` is the primary */
    FAILOVER_DO_FOLLOW /* beside: make standby `node` stream from `target` instead of `old` */
};

struct failover_do {
    enum failover_do_type type;
    enum hook_kind hook;
    uint32_t seq; /* comes back with the outcome */
    int node;
    int target;      /* VIEW_NO_NODE: none */
    int old;         /* the primary before; VIEW_NO_NODE: none */
    bool makes_slot; /* LEAD, FOLLOW: if `node` uses a slot, one on `target` */
    bool drops_slot; /* FOLLOW: afterwards the slot that was made on `old` goes */
    char reason[FAILOVER_TEXT_BYTES];
    char who[VIEW_WHO_BYTES];
};

/* How something that was begun ended. */
struct failover_outcome {
    uint32_t seq; /* of the failover_do */
    bool ok;
    bool is_unsure;   /* not ok, but it may have been done or be done yet */
    int64_t count;    /* FAILOVER_DO_DRAIN: transactions; _LEAD: slots that were made */
    uint64_t lsn;     /* and the position */
    const char *text; /* why it is not ok; never NULL */
};

/* What a command that waits is told beside its view_job; the next monitor does not know it. */
struct failover_words {
    char reason[FAILOVER_TEXT_BYTES];
    char who[VIEW_WHO_BYTES];
};

/* What the pgpools of a watchdog cluster let this one do. */
struct failover_word {
    bool asks;  /* there are others, who watch the same servers: only what they agree on is done */
    bool leads; /* and it is done here */
    bool is_stale;   /* that was heard too long ago: another one may lead by now */
    uint64_t may[2]; /* bit per node: about which they agree that it is lost */
    bool keeps;      /* nobody is promoted before their log says whom */
    bool is_heard;   /* it has said something since this monitor began */
    int16_t candidate[VIEW_MAX_NODES]; /* who may have been told to take the place of each node, by
                                          whoever led then; VIEW_NO_NODE: nobody */
    int16_t heard[VIEW_MAX_NODES];     /* who that was for each when the time below began */
    int64_t heard_us[VIEW_MAX_NODES];  /* since when it is known here; 0: nobody is chosen */
};

struct failover {
    struct failover_word word;
    uint32_t seq;       /* of the last step that has an outcome */
    bool busy;          /* a step that has an outcome is being done */
    bool beside_busy;   /* a step that has an outcome is being done beside */
    bool is_living;     /* the lost primary was taken out by an operator and may still run */
    bool was_cut;       /* its transactions were ended already */
    bool told_waiting;  /* the log knows why nobody is promoted yet */
    bool failed;        /* the switchover is being taken back */
    bool was_fenced;    /* before FAILOVER_DO_FENCE: view.sw.fenced of the old primary */
    bool was_fence_set; /* and view.sw.fence_set */
    int wanted;         /* who is to be promoted when their log says so; VIEW_NO_NODE: nobody */
    int heir;           /* whom a former leader had chosen, and who is waited for, */
    int64_t heir_us;    /* since then; 0: nobody is */
    int64_t retry_us;   /* not before */
    int64_t ask_us;     /* last FAILOVER_DO_ASK */
    uint64_t cut_lsn;   /* what the new primary must have received */
    char reason[FAILOVER_TEXT_BYTES];
    char why[FAILOVER_TEXT_BYTES];      /* why the switchover is taken back */
    struct failover_do beside;          /* what runs beside */
    int64_t unfence_us[VIEW_MAX_NODES]; /* when its fence was last to be taken out, beside */
    int led;                            /* whom FAILOVER_DO_LEAD is about */
    struct failover_words words[VIEW_MAX_JOBS]; /* of view.sw.job */
    int follow_tries[VIEW_MAX_NODES];
    int64_t follow_us[VIEW_MAX_NODES]; /* when it was last led */
};

/* Starts with nothing to do. */
void failover_init(struct failover *f);
/* Goes on with what a former monitor had begun, as the adopted view tells. True when a command of
 * its may still run (view.sw.pid): its end is to be told by failover_on_adopted. */
bool failover_adopt(struct failover *f, struct decide *d, int64_t now_us);
/* Goes on with what a former monitor had begun beside. True when a command of its may still run
 * there (view.sw.beside_pid): its end is to be told by failover_on_beside_done. Commands that
 * waited are run. */
bool failover_adopt_beside(struct failover *f, struct decide *d);
/* All of pgpool is new, and finds what is left of a switchover: `kept` has its sets of nodes, and
 * pending_us, node and target when one may be about to be promoted. It is then gone on with, else
 * taken back. With unsure_us in place of pending_us it was a failover: `target` is waited for, but
 * not told again, and the choice is made anew when it does not become the primary. A server on an
 * older timeline than kept->timeline is a former primary. */
void failover_resume(
    struct failover *f, struct decide *d, const struct view_switch *kept, int64_t now_us);
/* The command that the former monitor had started has ended; nobody knows how. */
void failover_on_adopted(struct failover *f, struct decide *d, int64_t now_us);
/* What the pgpools of a watchdog cluster have agreed on: this one acts, about the nodes `may`.
 * `candidate` has for each node whom their log has to take its place; NULL: no log is kept. */
void failover_allow(
    struct failover *f, bool leads, const uint64_t may[2], const int16_t candidate[VIEW_MAX_NODES]);
/* Nothing, until they say more: what they agreed on stands. */
void failover_forbid(struct failover *f);
/* Nobody leads them, and this one acts by itself; `candidate` is what their log had last. */
void failover_allow_alone(struct failover *f, const int16_t candidate[VIEW_MAX_NODES]);
/* Whom their log has to name before he is promoted in place of view.sw.node; VIEW_NO_NODE: nobody.
 */
int failover_wants(const struct failover *f, const struct decide *d);
/* Before each step, among several pgpools: nothing is begun while their word is `is_stale`. */
void failover_doubt(struct failover *f, bool is_stale);
/* True while something is being done, or may be done and was not begun yet. */
bool failover_is_acting(const struct failover *f, const struct decide *d);
/* Takes in what happened. Call for every event, before the view is published. Adds events. */
void failover_on_event(struct failover *f, struct decide *d, const struct decide_event *e);
/* An operator wants `node` to be the primary. -1 with *err when that cannot be. */
int failover_switch(struct failover *f, struct decide *d, int node, const char *who, int64_t now_us,
    struct err *err);
/* Says what to do next; call again until it is FAILOVER_DO_NOTHING, and after every change. Types
 * from COMMAND to UNFENCE are one at a time, as are those done beside. */
struct failover_do failover_step(struct failover *f, struct decide *d, int64_t now_us);
/* What failover_step asked for has been done. */
void failover_on_done(
    struct failover *f, struct decide *d, const struct failover_outcome *o, int64_t now_us);
/* What failover_step asked for beside has been done. */
void failover_on_beside_done(
    struct failover *f, struct decide *d, const struct failover_outcome *o, int64_t now_us);
/* True while limits run: until then the time that is given must not jump. */
bool failover_is_timing(const struct decide *d);
/* When failover_step is to be called at the latest, milliseconds from now; -1: when something
 * happens. */
int64_t failover_delay_ms(const struct failover *f, const struct decide *d);
/* The standby to be promoted: in use, answering since `since_us`, of the primary's cluster and on
 * its timeline, and of these the one that has received most; of equals the heavier, then the lower
 * number. VIEW_NO_NODE: none. */
int failover_candidate(const struct decide *d, int lost, int64_t since_us);

#endif
