/* SPDX-License-Identifier: PostgreSQL
 * plan.h: what is to become of a statement, or of a sequence of the extended protocol, that has no
 * server connection yet: which node it goes to, what has to be asked or waited for first, whether
 * it may be sent again, what the session has to remember of it. A value is made of values: equal
 * cases have equal choices. It sends nothing, borrows nothing, remembers nothing. Runs in: workers.
 *
 * What a text is says the router (route.h); here stands what the session's transaction, its link
 * and read_consistency make of that. What is not certain stays where writes go. */
#ifndef PGP_PLAN_PLAN_H
#define PGP_PLAN_PLAN_H

#include <stdbool.h>
#include <stdint.h>

#include "base/slice.h"
#include "route/route.h"

struct conf;

/* A sequence of more messages than this is not looked through: it stays where writes go. */
#define PLAN_LOOK_MAX 64
/* How many bytes of what a client sent are kept, to be sent again. */
#define PLAN_KEPT_MAX 65536

/* Where the transaction of the client is, while it has no link to send on. */
enum plan_tx {
    PLAN_TX_NONE,
    PLAN_TX_VIRTUAL, /* BEGIN was answered, and not sent */
    PLAN_TX_ASIDE, /* it lives on a link that is set aside (`home_node`), if a read may leave it */
    PLAN_TX_LOST   /* it died with its link, or failed: until the client ends it */
};

/* One snapshot for several reads that leave: has the transaction to take one where it lives, as it
 * would have, had they been made there? */
enum plan_snapshot {
    PLAN_SNAPSHOT_NONE,
    PLAN_SNAPSHOT_READ, /* a read that left took one */
    PLAN_SNAPSHOT_DUE   /* and a statement behind it that takes none stays */
};

/* What may be asked about the catalogue. */
enum plan_may_ask {
    PLAN_MAY_ASK,
    PLAN_ASK_FAILED, /* not for this statement any more */
    PLAN_ASK_KEPT    /* what is kept to be asked (of a read that is made again) comes first */
};

/* May reads leave the open transaction? */
enum plan_leave {
    PLAN_LEAVE_NO,
    PLAN_LEAVE_KNOWN, /* those of which all is known */
    PLAN_LEAVE_ASK    /* others may be asked about; with PLAN_TX_ASIDE on a second link */
};

/* read_consistency: what is known of the WAL. */
enum plan_wal {
    PLAN_WAL_KNOWN,
    PLAN_WAL_DUE,    /* the primary has to be asked how far it has written, before a read leaves */
    PLAN_WAL_IS_OVER /* a standby took too long to catch up: this one stays */
};

/* What the router says of a text, and the text's facts: those are valid until the next call. */
typedef const struct sql_facts *plan_judge_fn(
    void *ctx, struct slice sql, struct route_decision *out);
/* The text of the statement that the client gave this name, or (name.n == 0) none; p is NULL when
 * there is none that is known. */
typedef struct slice plan_statement_fn(void *ctx, struct slice name);

/* All that a choice is made of, beside the text. Nodes are VIEW_NO_NODE where there is none. */
struct plan_case {
    const struct conf *conf;
    const struct view *view;
    const uint64_t *replayed_lsn; /* by node, as route_input has it; not NULL */
    plan_judge_fn *judge;         /* NULL: nothing leaves where writes go */
    plan_statement_fn *statement;
    route_lookup_fn *lookup; /* for the numbers of tables; NULL: they need not be known */
    void *ctx;               /* of these three */
    enum plan_tx tx;
    enum plan_may_ask asking;
    enum plan_snapshot snapshot;
    enum plan_leave leave;
    enum plan_wal wal;
    int own_node;   /* of the client's pool: where its writes go when all is well */
    int write_node; /* where they go now */
    int home_node;  /* of the transaction; with PLAN_TX_ASIDE alone */
    int avoid_node; /* it failed this client a moment ago */
    const struct route_session *session; /* what the router knows of it */
    bool is_tied;    /* in session mode: transactions are where its tables, cursors and locks are;
                        reads by themselves are judged by what they name */
    bool may_replan; /* what it names is known: with a stale plan it can be sent again */
};

enum plan_verdict {
    PLAN_GO,  /* to `node` */
    PLAN_ASK, /* `asks`, on a link of `node`; then it is planned anew */
    PLAN_WAIT /* for a primary; then it is planned anew */
};

enum plan_asks {
    PLAN_ASKS_CATALOGUE, /* the questions of `route` */
    PLAN_ASKS_KEPT,      /* those that were kept */
    PLAN_ASKS_WRITTEN,   /* how far the primary has written */
    PLAN_ASKS_REPLAYED,  /* whether the standby has replayed route.wait_lsn */
    PLAN_ASKS_LATER      /* with PLAN_GO: the questions of `route`, when the transaction is over */
};

/* What it is to its session. */
enum plan_way {
    PLAN_STAYS,
    PLAN_WRITES, /* the router has to know of `route` as of what may be a write */
    PLAN_READS,  /* it may run on any node: no primary is waited for */
    PLAN_LEAVES  /* a read that leaves its transaction */
};

/* May it be sent once more, when its link dies before anything of its answer was told? */
#define PLAN_RETRY_READ   0x1u /* it only reads */
#define PLAN_RETRY_REPLAN 0x2u /* when its plan is stale */

struct plan_choice {
    enum plan_verdict verdict;
    enum plan_asks asks;
    enum plan_snapshot snapshot; /* of the session, when it goes; PLAN_TX_NONE: no matter */
    int node;                    /* VIEW_NO_NODE: there is no such node now */
    uint8_t retry;               /* PLAN_RETRY_ bits; also while something is asked first */
    enum plan_way way;
    bool is_cut; /* the sequence ends with a Flush, and is closed for it elsewhere */
    size_t kept; /* bytes of the sequence that is sent as one, and again; 0: none */
    const struct sql_facts *facts; /* of a simple query: as they came, or of its last judgement */
    struct route_decision route;
};

/* A simple query. `facts`: NULL, nobody has looked into it. */
void plan_query(const struct plan_case *in, struct slice sql, const struct sql_facts *facts,
    struct plan_choice *out);
/* The messages of the extended protocol at `p`, as far as they have come. */
void plan_batch(
    const struct plan_case *in, const char *p, const char *end, struct plan_choice *out);
/* A read of a transaction that has its link stays there, by what the transaction has done:
 * disable_load_balance_on_write and read_consistency. */
bool plan_keeps_reads(const struct conf *conf, const struct route_session *s, bool lsn_due);
/* The node that this read may leave its transaction for; VIEW_NO_NODE: it stays. */
int plan_leave_node(const struct plan_case *in, const struct route_decision *d);

#endif
