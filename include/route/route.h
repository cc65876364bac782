/* SPDX-License-Identifier: PostgreSQL
 * route.h: where a statement goes. Pure: a function of the statement's facts, the session's facts,
 * the cluster view, the settings and answers about the catalogue. Runs in: workers (sessions,
 * PGPOOL EXPLAIN). */
#ifndef PGP_ROUTE_ROUTE_H
#define PGP_ROUTE_ROUTE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/slice.h"
#include "cluster/view.h"
#include "parser/parser.h"

struct arena;
struct conf;

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

const char *route_reason_text(enum route_reason reason);
const char *route_class_text(enum route_class class);

/* Questions about the catalogue. A name without a schema is resolved by the session's search_path.
 */
enum route_question_kind {
    ROUTE_Q_FUNCTION, /* may it write? (volatile; any overload with that number of arguments) */
    ROUTE_Q_RELATION  /* what is it? a set of ROUTE_REL_* */
};

#define ROUTE_REL_CATALOG  0x01u /* a system catalogue */
#define ROUTE_REL_TEMP     0x02u
#define ROUTE_REL_UNLOGGED 0x04u
#define ROUTE_REL_VOLATILE                                                                         \
    0x08u /* a view that calls a volatile function or operator, at any depth */
#define ROUTE_REL_MISSING   0x10u
#define ROUTE_FUNC_VOLATILE 0x01u
#define ROUTE_FUNC_MISSING  0x02u

struct route_question {
    enum route_question_kind kind;
    struct slice schema;
    struct slice name;
    uint32_t nargs;
};

/* Answers from a cache. Returns 0 and sets *bits, or -1 when it has to be asked for. */
typedef int route_lookup_fn(void *ctx, const struct route_question *q, uint32_t *bits);

/* What is known of the session. */
struct route_session {
    struct slice user;
    struct slice database;
    struct slice application_name;
    int balance_node; /* chosen for the session, VIEW_NO_NODE when not yet */
    bool in_tx;       /* in a transaction block */
    bool tx_failed;
    bool tx_read_only; /* begun READ ONLY */
    bool tx_serializable;
    bool wrote_in_tx;            /* since BEGIN */
    bool wrote_in_an_earlier_tx; /* in an explicit transaction of this session */
    bool wrote_in_session;
    bool has_temp_tables; /* this session created some (check_temp_table = trace) */
    bool state_unknown;   /* set_config(), DO, CALL ...: the session cannot be rebuilt elsewhere */
    uint64_t last_write_lsn;   /* of this session, 0 when none (read_consistency) */
    uint64_t global_write_lsn; /* newest known of any session */
    int64_t now_us;
};

struct route_input {
    const struct conf *conf;
    const struct view *view;
    const struct route_session *session;
    route_lookup_fn *lookup;
    void *lookup_ctx;
    uint64_t random; /* for the choice among nodes */
};

#define ROUTE_MAX_QUESTIONS 16

struct route_decision {
    enum route_class class;
    enum route_reason reason;
    int node;      /* where to send it; VIEW_NO_NODE when there is no such node */
    bool is_write; /* counts as a write for disable_load_balance_on_write */
    bool must_ask; /* answers are missing: ask `question`, then decide again */
    /* The chosen standby has not replayed the session's last write yet: wait up to
     * read_consistency_wait for `wait_lsn`, then send it to the primary. */
    bool must_wait;
    uint64_t wait_lsn;
    unsigned nquestions;
    struct route_question question[ROUTE_MAX_QUESTIONS];
};

/* Decides for one statement `i` of `facts` (text is the whole query string). */
void route_statement(const struct route_input *in, struct slice text, const struct sql_facts *facts,
    uint32_t i, struct route_decision *out);
/* Decides for a whole simple query: the strictest of its statements; a text that the parser rejects
 * goes to the primary. */
void route_query(const struct route_input *in, struct slice text, const struct sql_facts *facts,
    struct route_decision *out);
/* Chooses the node for this session's reads: preference lists, weights, lag. */
int route_choose_balance_node(const struct route_input *in);

#endif
