/* SPDX-License-Identifier: PostgreSQL
 * route.h: where a statement goes. Pure: a function of the statement's facts, the session's facts,
 * the cluster view, the settings and answers about the catalogue. Runs in: workers (sessions,
 * PGPOOL EXPLAIN). */
#ifndef PGP_ROUTE_ROUTE_H
#define PGP_ROUTE_ROUTE_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "base/slice.h"
#include "cluster/view.h"
#include "parser/parser.h"

struct arena;
struct conf;
struct conf_session;
struct route_marks;
struct route_rules;
struct route_trace;

/* What kind of node a statement may run on. */
enum route_class {
    ROUTE_PRIMARY, /* only where writes go */
    ROUTE_EITHER,  /* may be balanced */
    ROUTE_SESSION, /* changes the state of the session: SET, RESET, ... on the primary, replayed
                      elsewhere */
    ROUTE_TX       /* begins or ends a transaction */
};

/* ROUTE_REASON(symbol, text): shown by PGPOOL EXPLAIN. */
enum route_reason {
#define ROUTE_REASON(sym, text) ROUTE_R_##sym,
#include "route/reasons.def"
#undef ROUTE_REASON
    ROUTE_REASON_COUNT
};

/* What PGPOOL EXPLAIN prints. */
const char *route_reason_text(enum route_reason reason);
const char *route_class_text(enum route_class class);

/* Questions about the catalogue. A name without a schema is resolved by the session's search_path.
 */
enum route_question_kind {
    ROUTE_Q_FUNCTION, /* may it write? (volatile; any overload with that number of arguments) */
    ROUTE_Q_RELATION, /* what is it? a set of ROUTE_REL_* */
    ROUTE_Q_OPERATOR, /* is any operator of that name volatile? ROUTE_FUNC_* */
    ROUTE_Q_OID,      /* of the relation; 0 when there is none */
    ROUTE_Q_DATABASE, /* what has to be looked for in this database? a set of ROUTE_DB_* */
    ROUTE_Q_WORD      /* a type to which a volatile function casts, or that checks by one, or such a
                         function of a row, which `row.word` calls? ROUTE_FUNC_VOLATILE or 0 */
};
#define ROUTE_QUESTION_KINDS 6

#define ROUTE_REL_CATALOG  0x01u /* a system catalogue */
#define ROUTE_REL_TEMP     0x02u
#define ROUTE_REL_UNLOGGED 0x04u
#define ROUTE_REL_VOLATILE                                                                         \
    0x08u /* a view that calls a volatile function or operator, at any depth; or a policy does */
#define ROUTE_REL_MISSING   0x10u
#define ROUTE_REL_SEQUENCE  0x20u /* or a view that reads one */
#define ROUTE_FUNC_VOLATILE 0x01u
#define ROUTE_FUNC_MISSING  0x02u
#define ROUTE_FUNC_SETS     0x04u /* volatile, and may change its session unseen, for all one knows */
#define ROUTE_DB_OPERATOR                                                                          \
    0x01u /* operators whose function is volatile exist: look at those of the statement */
#define ROUTE_DB_SHADOW                                                                            \
    0x02u /* volatile functions called like built-in ones exist: ask for those, too */
#define ROUTE_DB_SERIALIZABLE                                                                      \
    0x04u /* the user's transactions are serializable unless they say otherwise */
#define ROUTE_DB_REPEATABLE                                                                        \
    0x08u /* the user's transactions are repeatable read unless they say otherwise */
#define ROUTE_DB_WORD 0x10u /* there is something that ROUTE_Q_WORD asks for */

struct route_question {
    enum route_question_kind kind;
    struct slice schema;
    struct slice name;
    uint32_t nargs;
};

/* Answers from a cache. Returns 0 and sets *bits, or -1 when it has to be asked for. */
typedef int route_lookup_fn(void *ctx, const struct route_question *q, uint32_t *bits);

/* Whose session it is. */
struct route_names {
    struct slice user;
    struct slice database;
    struct slice application_name;
};

/* The transaction block of the session. */
enum route_tx { ROUTE_TX_NONE, ROUTE_TX_OPEN, ROUTE_TX_FAILED };

/* The most that the session has written, in whatever transaction. */
enum route_wrote {
    ROUTE_WROTE_NOTHING,
    ROUTE_WROTE_ALONE, /* statements that were transactions of their own */
    ROUTE_WROTE_IN_TX  /* also within transaction blocks */
};

/* Ties: what keeps reads of the session where its writes go, as long as it lasts. */
#define ROUTE_TIE_STATE                                                                            \
    0x1u /* set_config(), DO, CALL ...: the session cannot be rebuilt elsewhere */
#define ROUTE_TIE_DOUBT                                                                            \
    0x2u /* ran what is not known: it may have written, locked or set something */
#define ROUTE_TIE_SERIALIZABLE 0x4u /* its default_transaction_isolation */
#define ROUTE_TIE_BEFORE                                                                           \
    0x10u /* its connection has settings of its role or database that new ones have not */
#define ROUTE_TIE_TEMP                                                                             \
    0x8u /* it created temporary tables: reads that may name one (check_temp_table) */

/* What is known of the session. */
struct route_session {
    int16_t balance_node;     /* chosen for the session, VIEW_NO_NODE when not yet */
    int16_t tx_node;          /* where the transaction lives; VIEW_NO_NODE: nothing was sent yet */
    uint8_t ties;             /* ROUTE_TIE_ bits */
    uint8_t tx : 2;           /* enum route_tx */
    uint8_t tx_isolation : 3; /* enum sql_isolation that its BEGIN named */
    bool tx_read_only : 1;    /* begun READ ONLY */
    bool wrote_in_tx : 1;     /* since BEGIN; `wrote` has it, too */
    bool locked_in_tx : 1;    /* a lock that reads on standbys wait for, until it ends */
    uint8_t wrote : 2;        /* enum route_wrote */
    bool is_preferred : 1;    /* balance_node, by a redirect preference list */
    bool search_path_changed : 1; /* by the session: pg_catalog may not come first */
    uint64_t last_write_lsn;      /* of this session, 0 when none (read_consistency) */
    uint64_t global_write_lsn;    /* newest known of any session */
    int64_t now_us;
    struct route_trace *trace; /* tables written and temporary tables made by this session */
};

static inline bool route_in_tx(const struct route_session *s)
{
    return s->tx != ROUTE_TX_NONE;
}
static inline void route_tie(struct route_session *s, unsigned tie, bool is_tied)
{
    s->ties = (uint8_t)(is_tied ? s->ties | tie : s->ties & ~tie);
}

/* A statement made by PREPARE, by its name: sets *text and *facts (of the PREPARE or of the
 * statement alone; valid until the decision is made) and returns 0, or -1 when there is none. */
typedef int route_prepared_fn(
    void *ctx, struct slice name, struct slice *text, const struct sql_facts **facts);
/* The node on which a server process of ours runs, by the number that the client would give to
 * pg_terminate_backend; VIEW_NO_NODE when it is not ours. */
typedef int route_pid_fn(void *ctx, int32_t pid);

struct route_input {
    const struct conf *conf;
    const struct conf_session *set;  /* what PGPOOL SET changed; NULL: as `conf` says */
    const struct route_rules *rules; /* made from `conf`; NULL only when all its lists are empty */
    const struct view *view;
    struct route_names who;
    const struct route_session *session;
    route_lookup_fn *lookup;
    void *lookup_ctx;
    route_prepared_fn *prepared; /* NULL: EXECUTE goes to the primary */
    void *prepared_ctx;
    route_pid_fn *node_of_pid; /* NULL: pg_terminate_backend() goes to the primary */
    void *pid_ctx;
    /* dml_adaptive_global: one table of marks per worker; none: every table counts as written. */
    const struct route_marks *const *marks;
    unsigned nmarks;
    uint64_t random; /* for the choice among nodes */
    /* By node: WAL known to be replayed there, perhaps more than the view says; NULL: nothing. */
    const uint64_t *replayed_lsn;
    /* What stands for all that `lookup` answers from and for the settings: while it is the same,
     * what the catalogue had nothing against needs not be looked up again. 0: not known. */
    uint64_t answers_id;
    bool is_afterthought; /* it has run already; what it is has to be known whatever it costs */
    bool schema_settled;  /* it has not changed lately: standbys know it (relcache_query_target) */
    bool reads_otherwise; /* the server may find other statements in the text than the facts have */
};

#define ROUTE_MAX_QUESTIONS 16

/* CALL, DO, a volatile function that is not built in: it may write and lock. */
enum route_code {
    ROUTE_CODE_NONE,
    ROUTE_CODE_RUNS,
    ROUTE_CODE_SETS /* and may change settings and make temporary tables unseen */
};

struct route_decision {
    enum route_class class;
    enum route_reason reason;
    int node;            /* where to send it; VIEW_NO_NODE when there is no such node */
    bool is_write;       /* counts as a write for disable_load_balance_on_write */
    bool writes_unnamed; /* to tables that are not in its text */
    bool is_doubtful;    /* something in it is not known: it may write, or lock */
    bool must_ask; /* answers are missing: ask `question`, then decide again. Who cannot ask uses
                      `node`, the primary; is_write is then true when a function is unknown */
    /* A read in a read-write transaction stays on the primary (`node`), but could go to
     * `leave_node` in a transaction of its own there. */
    bool may_leave_tx;
    int leave_node;
    /* The transaction lives on another node than `node`, where this statement cannot run. */
    bool leaves_tx;
    uint8_t runs_code; /* enum route_code */
    int balance_node;  /* the session's node for reads, to be kept; VIEW_NO_NODE: not chosen here */
    bool is_preferred; /* balance_node comes from a redirect preference list */
    struct slice written; /* a table that was written lately (reason TABLE_WRITTEN_...): its name
                             in the facts; or p is NULL */
    int32_t kill_pid;     /* the process that the statement ends (reason BACKEND_PID), else 0 */
    /* The chosen standby (`node`, or `leave_node` with may_leave_tx) has not replayed the session's
     * last write yet: wait up to read_consistency_wait for `wait_lsn`, then send it to the primary.
     */
    bool must_wait;
    uint64_t wait_lsn;
    int ask_node;   /* whom to ask, for relcache_query_target; VIEW_NO_NODE: where writes go */
    uint64_t known; /* for route_is_known; 0: nothing that lasts */
    unsigned nquestions;
    struct route_question question[ROUTE_MAX_QUESTIONS];
};

/* Decides for one statement `i` of `facts` (text is the whole query string). Offsets in the facts
 * are used only when there are several statements: facts found by fingerprint for another text do
 * for a single one. */
void route_statement(const struct route_input *in, struct slice text, const struct sql_facts *facts,
    uint32_t i, struct route_decision *out);
/* True when a text that was decided with `known`, in this session or another, is decided by
 * route_known again: outside of transactions, while what the catalogue says, the settings and the
 * session speak for it as before. */
bool route_is_known(const struct route_input *in, uint64_t known);
void route_known(const struct route_input *in, uint64_t known, struct route_decision *out);
/* True when a backslash stands in front of a quote. In other texts strings end where our parser
 * sees them end, whatever standard_conforming_strings and the client's encoding are. */
static inline bool route_text_may_differ(struct slice text)
{
    const char *p = text.p;
    const char *end = text.p + text.n;

    while (p < end && (p = memchr(p, '\\', (size_t)(end - p))) != NULL) {
        p++;
        if (p < end && *p == '\'')
            return true;
    }
    return false;
}
/* What is kept beside the facts of the texts like this one, when it may hold for this one: in front
 * of a statement, where texts like each other differ, may be what speaks against it. Else 0. */
static inline uint64_t route_known_of(struct slice text, const struct sql_facts *facts)
{
    if (facts->nstmts != 1 || facts->verdict == NULL || text.n == 0 ||
        (unsigned char)((text.p[0] | 0x20) - 'a') >= 26 || route_text_may_differ(text))
        return 0;
    return *facts->verdict;
}
/* Decides for a whole simple query: the strictest of its statements (primary, transaction, session,
 * either), which all go to one node; a text that the parser rejects goes to the primary. */
void route_query(const struct route_input *in, struct slice text, const struct sql_facts *facts,
    struct route_decision *out);
/* Chooses the node for this session's reads: preference lists, weights, lag. */
int route_choose_balance_node(const struct route_input *in);
/* True when the statement takes a lock that is taken on the standbys, too. */
bool route_locks_standbys(const struct sql_stmt *s);
/* True when the text counts as a query: what SET TRANSACTION may only say before the first one is
 * refused behind it. */
bool route_takes_snapshot(const struct sql_facts *facts);
/* The word is in a value of default_transaction_isolation, or options. */
bool route_says_serializable(struct slice value);
/* A BEGIN is in it. */
bool route_begins_tx(const struct sql_facts *facts);
/* A lone statement that calls no function and writes nothing by itself; views of it may. */
bool route_is_plain_read(const struct sql_facts *facts);
/* Code that somebody has made may run in it, by its text: a function that is none of pg_catalog's
 * well-known ones, CALL, DO. Not what triggers, views and operators run. */
bool route_runs_made_code(const struct sql_facts *facts);
/* True when what the catalogue says of names may be different behind it: also DO, which may do
 * anything, but not functions and procedures, which are called too often for that. */
bool route_changes_schema(const struct sql_stmt *s);
/* What a statement (`text` is it alone) may change for who has parsed others: 0, or bits. Of a
 * session that `has_temp` tables a DROP is taken to be one of those, which nobody else has named.
 */
#define ROUTE_DDL_TYPES 1U /* types of parameters */
#define ROUTE_DDL_NAMES 2U /* what a name means: what is there anew may hide another */
unsigned route_ddl_of(const struct sql_stmt *s, struct slice text, bool has_temp);
/* True when the text has the name of a function that leaves something in its session which DISCARD
 * ALL does not undo: the origin of what it replicates, a backup that runs, a temporary slot, a
 * connection of dblink. For every text that is relayed: it is not parsed. */
bool route_leaves_traces(struct slice text);
/* True when the settings keep reads away from `node` for its lag. */
bool route_node_lags(const struct conf *conf, const struct view *view, int node);

#endif
