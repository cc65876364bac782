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
/* A link is there, or on its way, and nothing is going to be sent on it but a question of ours. */
static inline bool phase_is_asking(enum phase phase)
{
    return phase == PHASE_ASK_OPENING || phase == PHASE_ASK_SYNCING || phase == PHASE_ASKING;
}

/* What the statements of the present exchange do to the session. It ends when the link is quiet
 * again (follow_settle), or dies. */
struct exchange {
    bool saw_error : 1;
    bool has_tx_words : 1; /* BEGIN, COMMIT or the like is in it */
    bool has_set : 1;      /* something in it changes settings */
    bool hold : 1;         /* what follows waits until it is over */
    bool in_string : 1;    /* several statements in one query are being noted */
    bool tx_is_string : 1; /* `tx` is what is before those, or before a sequence of the extended
                              protocol: they are its transaction */
    bool recovered : 1;    /* what failed before it has been rolled back in it */
    bool tx_is_over : 1;   /* `tx` has ended in it: another one follows */
};

/* The first string of statements in the present exchange; ends with it. */
struct exchange_string {
    uint16_t ntags;  /* statements of the exchange that have ended */
    uint16_t ndone;  /* of the string */
    uint32_t serial; /* of its op, and 1: others may be in front of it; 0: there is no string */
    uint16_t at;     /* the one that is being noted */
    bool is_last;    /* there is none behind it */
    bool is_unread;  /* our grammar rejects a text of it: does the server take it, nobody knows what
                       that did */
};

/* Why the client's messages are going to be sent a second time, as soon as the link is quiet. */
enum again_why {
    AGAIN_NO,
    AGAIN_ELSEWHERE, /* refused by a server that is no primary (any more) */
    AGAIN_REPLANNED, /* its plan was stale */
    AGAIN_AT_HOME    /* a read that left its transaction: made where that lives */
};

/* May the present exchange be sent once more, from the client's own messages (errand->retry)? */
struct exchange_again {
    uint8_t what : 2;     /* enum again_why */
    bool may_retry : 1;   /* it only reads */
    bool may_resend : 1;  /* it is a transaction of its own */
    bool may_replan : 1;  /* when a plan is stale */
    bool reply_begun : 1; /* the client has seen something of its answer */
    bool is_read : 1;     /* it may run on any node: it waits for no primary */
    bool is_behind : 1;   /* the sequence was sent while something else ran */
};

/* What is not known of the statements that a link has. */
enum loan_doubt {
    LOAN_SURE,
    LOAN_MAY_HAVE, /* a Close of ours may have been skipped: it may have more than is thought */
    LOAN_MAY_LACK  /* more, or less */
};

/* What is true of the link that is lent, as long as it is. */
struct loan {
    bool is_fresh : 1;         /* just borrowed: it is to be brought up to date */
    bool has_put_settings : 1; /* it was brought up to date, be it by a RESET alone */
    bool begun_here : 1;       /* BEGIN was put in front of the present exchange; `begin` is kept */
    bool has_closed : 1;       /* a Close of ours is in the present exchange */
    bool is_untold : 1;        /* the rows hear of it with what is sent on it */
    uint8_t doubt : 2;         /* enum loan_doubt */
};

/* Where the client's transaction is. */
enum sstate_tx {
    SSTATE_TX_OF_LINK, /* as the link says; without one there is none */
    SSTATE_TX_VIRTUAL, /* BEGIN was answered, but not sent */
    SSTATE_TX_LOST,    /* it died with its link: failed until ROLLBACK */
    SSTATE_TX_UNTOLD   /* it failed, and the client has not been told */
};

/* Reads that leave the transaction (plan.h, plan_away.c). */
struct tx_leave {
    bool may_go_out : 1;   /* the present exchange may leave, as the transaction's reads may */
    bool was_out : 1;      /* one did */
    uint8_t snapshot : 2;  /* enum plan_snapshot: the client has read in it elsewhere */
    bool portal_left : 1;  /* the home has another unnamed portal than the client believes */
    bool home_fails : 1;   /* a read that was out failed: so does its transaction */
    bool sees_commits : 1; /* each statement has a snapshot of its own, as far as BEGIN says */
};

/* What leg_repair put right, should it be cut short: a cancel request, a timeout. */
struct mend {
    struct varset *vars; /* as the link had it before; NULL mostly */
    uint8_t tries;       /* in a row, of the same */
    bool was_cut_short;  /* the present one */
    bool of_names;       /* it is of statements, too */
    bool of_pins;        /* it asks what ties the session, too */
};

/* The question what columns a statement has on the link (follow_columns.c), of way.looked_at. */
struct columns_look {
    uint64_t epoch; /* the loan in which it was asked */
    uint64_t id;    /* the start of the statement's id */
    uint32_t from;  /* the serial of the first op of it */
    bool failed;    /* what was sent for it met an error */
};

#endif
