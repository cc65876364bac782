/* SPDX-License-Identifier: PostgreSQL
 * lost_way_int.h: what becomes of a session whose link dies, by what is known of it then. Runs in:
 * workers. Pure: exchange_lost.c carries it out; test/unit/session/test_lost_way.c tells it in a
 * table. */
#ifndef PGP_SESSION_LOST_WAY_INT_H
#define PGP_SESSION_LOST_WAY_INT_H

#include "spans_int.h"

/* What is known, as bits. */
enum lost_fact {
    LOST_IS_TIED = 0x01,    /* the link had something that no other can have */
    LOST_IN_MESSAGE = 0x02, /* one of either side has come in part */
    LOST_HAS_HOME = 0x04,   /* it ran a read that had left its transaction */
    LOST_OWES = 0x08,       /* replies */
    LOST_IS_OVER = 0x10,    /* all of the exchange is done, and told but for its end */
    LOST_MAY_REPEAT = 0x20, /* it reads, and nothing of the answer was told */
    LOST_WAS_REFUSED = 0x40 /* it was not done, and its client has not heard of that */
};

enum lost_way {
    LOST_OPENING,    /* one that logged in: another is tried, or its client hears why not */
    LOST_ENDS,       /* the client goes, too */
    LOST_JUDGING,    /* what it wanted fails, and the transaction that was on the link */
    LOST_BETWEEN,    /* nothing of the client's was under way on it */
    LOST_BEHIND_END, /* the end is told here */
    LOST_REPEATED,   /* the read is made again */
    LOST_PUT_BACK,   /* what was refused is sent again as soon as there is a primary */
    LOST_FAILS,      /* an error for each request that is owed, the transaction failed */
    LOST_HOMEWARD,   /* the read had not begun: it need not leave its transaction */
    LOST_OUT_REPEATED,
    LOST_OUT_OVER,
    LOST_OUT_FAILS /* a read that has left fails, and its transaction with it */
};

/* `facts` of enum lost_fact, and the phase in which the link died. */
enum lost_way lost_way_of(enum phase phase, unsigned facts);

#endif
