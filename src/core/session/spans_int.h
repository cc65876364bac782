/* SPDX-License-Identifier: PostgreSQL
 * spans_int.h: what a session knows for so long and no longer: of one exchange, of one loan,
 * of one transaction. Each span is a struct that ends by one assignment, `= (struct ...){0}`: what
 * is added to one cannot be forgotten when it ends. */
#ifndef PGP_SESSION_SPANS_INT_H
#define PGP_SESSION_SPANS_INT_H

#include <stdbool.h>
#include <stdint.h>

struct names_entry;
struct varset;

/* phase.c says which may follow which. */
enum phase {
    PHASE_DETACHED,
    /* Up to PHASE_WAITING there is no link. Those of ASK are of one that is borrowed to ask a
     * question of ours on it: the statement in front of which it is asked has no node yet. */
    PHASE_ASK_WAITING,
    PHASE_WAITING, /* in the queue for a link: the client is parked */
    PHASE_ASK_OPENING,
    PHASE_OPENING, /* a link logs in for it: parked */
    PHASE_SYNCING, /* settings that may be refused are under way: parked */
    PHASE_ASK_SYNCING,
    PHASE_ASKING,      /* a question about the catalogue is: parked */
    PHASE_LOOKING,     /* a Describe of ours is: parked */
    PHASE_JUDGING,     /* may the session do what it wants? Asked on a borrowed link: parked */
    PHASE_JUDGING_OWN, /* PHASE_JUDGING on the link that it has */
    PHASE_ATTACHED,    /* the link is the client's */
    PHASE_LEAVING,     /* it is done with, but the client is in the midst of a message to it */
    PHASE_REPAIRING,   /* after the exchange: a RESET is put right, or pins are looked at */
    PHASE_ENDING, /* PHASE_REPAIRING, and the client has not been told the end of its exchange */
    NPHASES
};

static inline bool phase_is_waiting(enum phase phase)
{
    return phase == PHASE_WAITING || phase == PHASE_ASK_WAITING;
}
static inline bool phase_is_opening(enum phase phase)
{
    return phase == PHASE_OPENING || phase == PHASE_ASK_OPENING;
}
static inline bool phase_is_judging(enum phase phase)
{
    return phase == PHASE_JUDGING || phase == PHASE_JUDGING_OWN;
}
static inline bool phase_is_repairing(enum phase phase)
{
    return phase == PHASE_REPAIRING || phase == PHASE_ENDING;
}

/* BEGIN, COMMIT and the like; one of them may have rolled back what failed before it. */
enum exchange_words { EXCHANGE_NO_WORDS, EXCHANGE_TX_WORDS, EXCHANGE_RECOVERS };

/* Does what follows wait until the exchange is over? Unread: our grammar rejects one of its texts.
 * If the server takes that, nobody knows what it did. */
enum exchange_hold { EXCHANGE_FLOWS, EXCHANGE_HOLDS, EXCHANGE_HOLDS_UNREAD };

/* What the statements of the present exchange do to the session. It ends when the link is quiet
 * again (follow_settle), or dies. */
struct exchange {
    uint8_t words : 2; /* enum exchange_words */
    uint8_t hold : 2;  /* enum exchange_hold */
    bool saw_error : 1;
    bool tx_is_string : 1; /* `tx` is what is before a string, or before a sequence of the extended
                              protocol: they are its transaction */
    bool tx_is_over : 1;   /* `tx` has ended in it: another one follows */
};

static inline void exchange_holds(struct exchange *x)
{
    if (x->hold == EXCHANGE_FLOWS)
        x->hold = EXCHANGE_HOLDS;
}

/* The first string of statements in the present exchange; ends with it. */
struct exchange_string {
    uint16_t ntags;  /* statements of the exchange that have ended */
    uint16_t ndone;  /* of the string */
    uint32_t serial; /* of its op, and 1: others may be in front of it; 0: there is no string */
    uint32_t nstmts; /* of the query that is being noted: several, or it is no string */
    uint16_t at;     /* the one that is being noted */
    uint16_t copied; /* so far its serial has gone on with the data that it copied in */
};

/* Why the client's messages are going to be sent a second time, as soon as the link is quiet. */
enum again_why {
    AGAIN_NO,
    AGAIN_ELSEWHERE, /* refused by a server that is no primary (any more) */
    AGAIN_REPLANNED, /* its plan was stale */
    AGAIN_AT_HOME    /* a read that left its transaction: made where that lives */
};

/* Made again when its link dies: never; if the router says then that it only reads, as its text
 * does; on any node. */
enum again_retry { AGAIN_NEVER, AGAIN_IF_ROUTED, AGAIN_ANYWHERE };

/* May the present exchange be sent once more, from the client's own messages (errand->retry)? */
struct exchange_again {
    uint8_t what : 2;     /* enum again_why */
    uint8_t retry : 2;    /* enum again_retry */
    bool may_replan : 1;  /* when a plan is stale */
    bool reply_begun : 1; /* the client has seen something of its answer */
    bool is_behind : 1;   /* the sequence was sent while something else ran */
};

static inline void again_forget(struct exchange_again *a)
{
    a->retry = AGAIN_NEVER;
    a->may_replan = false;
}

/* What is not known of the statements that a link has. */
enum loan_doubt {
    LOAN_SURE,
    LOAN_CLOSES,   /* sure, unless the present exchange fails: a Close of ours is in it */
    LOAN_MAY_HAVE, /* a Close of ours may have been skipped: it may have more than is thought */
    LOAN_MAY_LACK  /* more, or less */
};

/* What is true of the link that is lent, as long as it is. */
struct loan {
    bool is_fresh : 1;         /* just borrowed: it is to be brought up to date */
    bool has_put_settings : 1; /* it was brought up to date, be it by a RESET alone */
    uint8_t doubt : 2;         /* enum loan_doubt */
};

static inline bool loan_is_sure(const struct loan *l)
{
    return l->doubt <= LOAN_CLOSES;
}

/* Where the client's transaction is. */
enum sstate_tx {
    SSTATE_TX_OF_LINK, /* as the link says; without one there is none */
    SSTATE_TX_VIRTUAL, /* BEGIN was answered, but not sent */
    SSTATE_TX_BEGUN,   /* as the link says; BEGIN stands in front of the present exchange, and is
                          kept */
    SSTATE_TX_FAILS,   /* a read that was out failed: so does its home, when it comes back */
    SSTATE_TX_LOST,    /* it died with its link: failed until ROLLBACK */
    SSTATE_TX_UNTOLD   /* it failed, and the client has not been told */
};

/* What the client knows of its parameters: all; errand->told is to be put right by the next link;
 * nothing real, as it was greeted without this server. */
enum sstate_parameters { PARAMETERS_TOLD, PARAMETERS_OWED, PARAMETERS_UNKNOWN };

/* May reads leave? Not with one snapshot for all; with one for each, as far as BEGIN says, unless
 * something else keeps them. */
enum tx_leave_rule { TX_ONE_SNAPSHOT, TX_SEES_COMMITS, TX_READS_LEAVE };

/* Reads that leave the transaction (plan.h, plan_away.c). */
struct tx_leave {
    uint8_t rule : 2;     /* enum tx_leave_rule */
    uint8_t snapshot : 2; /* enum plan_snapshot: the client has read in it elsewhere */
    bool portal_left : 1; /* the home has another unnamed portal than the client believes */
};

static inline void tx_leave_no_more(struct tx_leave *l)
{
    if (l->rule == TX_READS_LEAVE)
        l->rule = TX_SEES_COMMITS;
}

enum mend_part { MEND_SETTINGS = 1, MEND_PINS = 2, MEND_NAMES = 4 };

/* What leg_repair puts right. It counts as due until that is done: a cancel request or a timeout
 * may cut it short. */
struct mend {
    uint8_t parts;      /* of enum mend_part: of the present one */
    uint8_t tries;      /* in a row, of the same */
    bool was_cut_short; /* the present one */
};

/* The question what columns a statement has on the link (follow_columns.c), of way.looked_at. */
struct columns_look {
    uint64_t epoch; /* the loan in which it was asked */
    uint64_t id;    /* the start of the statement's id */
    uint32_t from;  /* the serial of the first op of it */
};

#endif
