/* SPDX-License-Identifier: PostgreSQL
 * native_int.h: native replication: a session with a connection to every node. Runs in: workers.
 *
 * A client's messages are collected up to the end of an exchange: a Query, or a sequence up to its
 * Sync or Flush. What only reads goes to one node. What may write goes to the main node first and,
 * when that has answered, to the others in parallel; the answers are compared, and the client gets
 * the main node's. Outside of a transaction a BEGIN of ours goes in front of it, so that a node
 * that cannot do it undoes it on all, and COMMIT comes behind, on the main node first. */
#ifndef PGP_NATIVE_INT_H
#define PGP_NATIVE_INT_H

#include "backend/link.h"
#include "backend/pool.h"
#include "ipc/gate.h"
#include "parser/parser.h"
#include "replicate/agree.h"
#include "replicate/locks.h"
#include "replicate/nature.h"
#include "replicate/numbers.h"
#include "replicate/rewrite.h"
#include "session/client.h"
#include "session/session.h"
#include "session/nodes.h"

struct arena;
struct batch_lone;
struct batch_msg;
struct native;
struct route_question;

#define NATIVE_MAX_NODES 8
/* The longest exchange. */
#define NATIVE_IN_MAX (64U * 1024 * 1024)
/* More rows of an answer that is held back are told before it is known how it ends. */
#define NATIVE_HELD_MAX (1024U * 1024)
/* More than this is not read while an exchange runs. */
#define NATIVE_AHEAD_MAX 262144
/* How many tables are kept from one exchange to the next: 8 kB each. */
#define NATIVE_TABLES_MAX 256
/* Everybody. */
#define NATIVE_ALL (-1)
/* Whoever is asked next. */
#define NATIVE_HERE (-2)

enum native_leg_phase { LEG_NONE, LEG_OPENING, LEG_READY };

/* What stands in front of what a leg was asked: the client's BEGIN, in one message with it, and
 * what puts sequences right; a question of ours, in a message of its own. */
enum native_glue { GLUE_NONE, GLUE_BEGIN, GLUE_NUMBERS, GLUE_BEGUN, GLUE_VALUES, GLUE_REFUSED };

/* A node's connection. */
struct native_leg {
    struct native *n;
    int node;
    struct link *link;
    uint64_t epoch;
    struct pool *pool; /* NULL: the client's own */
    struct pool_request req;
    struct link_startup startup;
    enum native_leg_phase phase;
    bool is_asked;   /* has not answered yet in this round */
    bool is_lost;    /* in this exchange */
    bool begun;      /* a BEGIN of ours is open */
    bool did;        /* took part in the round that is compared */
    uint32_t left;   /* of a message that is passed on in parts */
    struct buf part; /* of a message that has to be seen whole */
    /* What it answered: see agree.h. */
    char kind;
    bool has_tuples;
    uint64_t ntuples;
    struct agree_rows rows; /* when they are compared */
    uint32_t nchanges;      /* done to prepared statements: ParseComplete, CloseComplete */
    struct buf said;        /* SQLSTATE and text of its error */
    struct buf error;       /* the whole message */
    enum native_glue glue;
    uint32_t front; /* bytes of ours in front of the client's text, in one message with it */
};

/* What the round under way is about: what happens when all that were asked have answered. */
enum native_step {
    STEP_IDLE,
    STEP_HELD,           /* nothing begins: the second stage of an online recovery */
    STEP_OPEN,           /* connections are being opened */
    STEP_BEGIN,          /* the client's BEGIN goes to all that have not begun */
    STEP_LOOK,           /* the catalogue is asked whether it writes */
    STEP_COLUMNS,        /* the catalogue is asked about a table */
    STEP_VALUES,         /* the main node says what time it is */
    STEP_ONE,            /* runs on one node */
    STEP_QUICK,          /* reads on one node, and its answer goes to the client as it is */
    STEP_MAIN,           /* runs on the main node */
    STEP_OTHERS,         /* runs on the others */
    STEP_FIRST_END,      /* COMMIT on the main node */
    STEP_OTHER_ENDS,     /* COMMIT on the others */
    STEP_UNDO,           /* ROLLBACK everywhere */
    STEP_COPY,           /* the client's data goes to all */
    STEP_COPY_END,       /* the main node is told its end */
    STEP_COPY_STOP,      /* it is broken off everywhere */
    STEP_SPOIL,          /* the client's transaction is made to fail wherever it has not */
    STEP_PARSE,          /* others prepare what the main node has prepared before it failed */
    STEP_PREPARE,        /* two-phase: PREPARE TRANSACTION on the main node */
    STEP_PREPARE_OTHERS, /* two-phase: PREPARE TRANSACTION on the others */
    STEP_UNPREPARE,      /* two-phase: one could not prepare: ROLLBACK PREPARED */
    STEP_DECIDE,         /* two-phase: the decision is on its way to the disk */
    STEP_COMMIT,         /* two-phase: COMMIT PREPARED on all */
    STEP_GATE,           /* it waits to take a snapshot, or to commit (native_gate.c) */
    STEP_SNAPSHOT,       /* takes it */
    STEP_READ_ENDS,      /* what only read is over: COMMIT where it was */
    STEP_VERIFY,         /* the catalogue is asked whether a table is still what was planned for */
    STEP_FUNCTIONS,      /* the catalogue is asked for functions that were there before */
    STEP_WHERE,          /* all nodes say where the sequences stand */
    STEP_FORWARD,        /* the main node's are brought to where another node's are */
    STEP_FENCE,          /* what the main node has shown it is still being committed on others */
    STEP_COMMITTED       /* the main node, whether what has failed there had committed part of it */
};

/* A prepared statement, by the client's name. */
struct native_prepared {
    struct list node;
    char *name;
    char *sql;
    char *head;       /* by SQL: what stands between its name and `sql`; else NULL */
    struct buf types; /* of its Parse: count and types */
    uint64_t known;   /* found to read, with these answers of the catalogue; else 0 */
};

/* What an exchange does to prepared statements: in this order, as far as the main node does it. */
struct native_change {
    struct slice whole; /* the message; empty: PREPARE by SQL */
    struct slice name;
    struct slice sql; /* NULL: it is closed */
    struct slice types;
    const char *head;
};

struct native_table {
    struct list node;
    char *name;
    struct repl_table table;
    struct repl_column *columns;
    struct arena *arena;
    uint64_t digest; /* of what the catalogue said */
    bool is_used;    /* by the plan of this exchange */
};

/* How it has changed what names mean. */
enum native_names {
    NAMES_SAME,
    NAMES_SAID,  /* by SET and the like, in so many words */
    NAMES_LOCAL, /* by SET LOCAL, which its end takes back */
    NAMES_OWN    /* so that no other session's are known to mean the same */
};

/* Of a worker. */
struct native_waiters {
    struct list side[GATE_SIDES]; /* who wait at the gate, first come first served */
    uint32_t count[GATE_SIDES];
    struct list flights; /* commits on their way, the oldest first */
    struct list fenced;  /* who wait for such, also of other workers (native_fence.c) */
};

/* What the transaction changes. */
struct native_told {
    bool schema;              /* others are told once more at its end */
    enum native_names names;  /* also outside of one, up to the end of the exchange */
    uint64_t salt;            /* NAMES_LOCAL: native.salt of before */
    enum sql_isolation level; /* as far as it has said so */
};

/* What was sent to the main node and what it answered, while another question is asked there. */
struct native_kept {
    struct buf out;
    struct buf ops;
    char kind;
    bool has_tuples;
    uint64_t ntuples;
    struct agree_rows rows;
};

/* Where a statement runs. */
struct native_place {
    bool everywhere;
    bool on_main;            /* else any node will do */
    bool wraps;              /* can be in a transaction of ours */
    bool differs;            /* its rows are each node's own */
    bool writes;             /* it matters that all nodes commit it or none does */
    bool reads;              /* rows, of one moment */
    bool sets;               /* runs what may change its session unseen */
    uint32_t commits;        /* procedures and blocks, which may commit within */
    enum repl_choice choice; /* of the rows that it changes */
    uint64_t known;          /* the statement judged last: route_decision.known */
};

/* What is over with the exchange. */
struct native_exchange {
    bool is_batch; /* of the extended protocol */
    bool is_call;  /* a function call */
    bool
        ends_in_sync; /* of the client; else one of ours ends it, and its sequence goes on behind */
    bool failing;     /* it ends with an error */
    bool streams;     /* the answer goes to the client as it comes */
    bool ours;        /* the answer is for us */
    bool compares;    /* the rows of the answer */
    bool is_commit;   /* the statement ends the client's transaction */
    uint32_t tag_at;  /* of n->held: the last CommandComplete for the client */
    unsigned nlooks;  /* how often it was asked whether it had committed */
    /* The statement takes prepared statements away when the main node has done it: DEALLOCATE,
     * DISCARD ALL. */
    const struct sql_stmt *forgets;
};

enum native_verdict { NATIVE_GO, NATIVE_ASK, NATIVE_REFUSED };

struct native_decision;
struct native_functions;
struct native_commit_ops;
struct native_guard;
struct native_guard_ops;
struct native_apart_ops;
struct native_copy_ops;
struct native_gate_ops;

/* A transaction that is committed in two phases. */
struct native_commit {
    const struct native_commit_ops *ops;
    struct native_decision *decision; /* NULL: it has no name yet */
    uint32_t prepared;                /* legs on which it is, as bits */
    uint32_t owed;                    /* legs that have to do what the main node commits */
    bool wrote;                       /* it has to be */
    bool is_clients;                  /* its COMMIT is the client's */
    bool is_lost;                     /* a leg was lost while it prepared */
};

/* Snapshots and commits over several nodes exclude each other: native_gate.c. */
struct native_gate {
    const struct native_gate_ops *ops; /* NULL: the mode is another one */
    struct list node;                  /* among those of the worker that wait */
    struct task task;                  /* it was let in */
    enum gate_side waits;
    enum gate_side inside;
    uint32_t nkept; /* 1: its commit is ended by the control process if this one dies */
    uint32_t has;   /* legs with the transaction's snapshot, as bits */
    uint32_t legs;  /* that are about to take it */
    int64_t since_us;
    uint64_t before; /* commits that are awaited: native_fence.c; 0: none */
    void (*go_on)(struct native *n);
    void (*fail)(struct native *n); /* with the error in n->held */
};

struct native {
    struct client *c;
    struct sessions *ss; /* its worker's */
    struct native_commit commit;
    struct native_gate gate;
    struct native_flight *flight; /* its commit is on its way; NULL: none is */
    struct native_exchange ex;
    struct native_leg leg[NATIVE_MAX_NODES];
    unsigned nlegs;
    unsigned main;
    int reader;      /* the leg for reads */
    uint64_t opened; /* the view's version for which all legs are ready; 0: it is not known */
    enum native_step step;
    struct paramset params;
    struct buf in;    /* the client's messages of this exchange */
    uint32_t scanned; /* of `in` */
    bool is_open;     /* a sequence goes on that no Sync of the client has ended */
    bool has_state;   /* a new connection would not be like the others */
    bool wrapped;     /* our BEGIN is open */
    bool has_warned;  /* in this exchange, of what may differ */
    bool skips;       /* a sequence has failed: up to its Sync nothing runs */
    bool is_counted;  /* among those at work (ipc/hold.h): a transaction or an exchange goes on */
    uint32_t nahead;  /* 1: the main node is ahead of the others by it (ipc/hold.h) */
    uint32_t gone;    /* legs that went away in this exchange, as bits: they lack what it does */
    int speaker;      /* the leg whose answer the client gets */
    int failed;       /* the leg on which the client's transaction failed; -1: none */
    struct buf begin; /* the client's, answered here, with its semicolon: native_begin.c */
    uint32_t unbegun; /* legs that are not known to have begun it, as bits */
    int unnamed;      /* where the unnamed statement is: a leg, or NATIVE_ALL */
    int portal;       /* and what was bound last */
    struct arena *arena; /* of the exchange */
    struct sql_facts facts;
    struct slice text;
    uint32_t at; /* the statement of it at hand */
    struct native_place place;
    struct repl_plan plan;
    struct slice planned;                /* the text that is planned: of an EXECUTE, what it runs */
    const struct sql_stmt *planned_stmt; /* the statement of `planned` */
    struct slice *values;
    const struct native_functions *functions; /* NULL: not known yet */
    struct repl_numbers numbers;              /* the sequences that it locks */
    struct native_change *changes_made;       /* to prepared statements */
    uint32_t nchanges;
    struct buf copy_sql;    /* of a COPY FROM that is bound to the unnamed portal; else empty */
    struct repl_copy *copy; /* rows of COPY that are filled in; NULL: as they come */
    struct buf rows;        /* of an answer for us, each with its length */
    struct buf held;        /* told when all have answered */
    struct buf out;         /* what is sent to each leg */
    struct buf ops;         /* what each leg owes for `out`, a byte each; OP_NOTE: OP_ROWS */
    struct list prepared;
    struct list tables;
    uint32_t ntables;
    uint64_t changes; /* of the schema, as the tables are known */
    uint64_t salt;    /* of what names mean */
    uint64_t names;   /* what stands for that in route_scope; 0: not known yet */
    struct native_told told;
    struct native_kept kept;
    struct route_question *question;
    unsigned nquestions;
    int64_t wait_until_us;
    struct timer timer;
    const struct native_apart_ops *apart;
    const struct native_guard_ops *guards;
    const struct native_copy_ops *copies;
    struct native_guard *guard; /* of the round under way; NULL: it has not taken long */
    struct task again;          /* there may be another exchange */
    struct err *last_words;     /* why the main node ends the session; NULL: it has not said */
};

/* native.c */
/* struct native_ops, as are native_cancel and native_free. */
void native_begin(struct client *c);
bool native_is_held(const struct client *c);
void native_feed(struct client *c, const char *p, const char *end);
bool native_cancel(struct client *c, int fd);
/* Gives back all connections but the client's own, which is relayed from then on. */
void native_free(struct client *c);
/* May an exchange begin? True also within a transaction. False: it waits (STEP_HELD) and comes
 * again by native_next. */
bool native_may_begin(struct native *n);
/* The round under way is about to make the main node do for good what the others have not done, or
 * goes on with that; or none does any more (`is_over`). */
void native_note_ahead(struct native *n, bool is_over);
/* The exchange is over: the client is told its end. */
void native_finish(struct native *n);
/* The client was answered here; or is going to be: the exchange comes again (client_unpark). */
void native_local_done(struct native *n);
void native_park(struct native *n);
/* Ends the exchange with an error of ours, and undoes what it did. */
void native_refuse(struct native *n, const char *sqlstate, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
char native_tx(const struct native *n);
/* The node for what runs on one, as a leg. */
int native_one_leg(const struct native *n);

/* native_leg.c */
extern const struct link_owner_ops native_link_ops;
/* Connections to all nodes in use: 0, 1 when that takes time (STEP_OPEN), -1: the session has
 * ended. */
int native_legs_open(struct native *n);
void native_legs_close(struct native *n, bool boundary);
void native_leg_drop(struct native_leg *leg, bool boundary);
/* Begins a round: who is asked next answers to us, or to the client by the leg `speaker`. */
void native_round(struct native *n, enum native_step step, bool ours, int speaker);
/* Sends n->out to a leg, with the client's BEGIN if it lacks that and the transaction has not
 * failed; `wraps`: with ours, if it has not begun. */
void native_send(struct native *n, struct native_leg *leg, bool wraps);
/* One query of ours, whose answer is for us; n->out stays as it is. */
void native_ask(struct native *n, struct native_leg *leg, struct slice sql);
/* A round in which that ends the transaction wherever one is open, ours or the client's. */
void native_end_all(struct native *n, enum native_step step, const char *sql);
/* A round in which all begin the client's transaction that have not. */
void native_begin_all(struct native *n);
/* Nobody else is to be asked in this round: goes on when all have answered. */
void native_wait(struct native *n);
static inline bool native_is_up(const struct native_leg *leg)
{
    return leg->phase == LEG_READY;
}
/* The leg's server waits for data of a COPY. */
static inline bool native_copies(const struct native_leg *leg)
{
    return native_is_up(leg) && expect_is_copying(&leg->link->expect);
}
/* The main node is about to commit: notes who has to do it, too. False: somebody has gone who would
 * lack it, and `fail` was called with the error in n->held. True of native_is_owed_and_gone: that
 * leg went away before it was told, so its node lacks what the main node has committed. */
bool native_owe(struct native *n, void (*fail)(struct native *n));
bool native_is_owed_and_gone(const struct native *n, unsigned i);
/* The leg went away in this exchange, asked or not, and lacks what the others write; `is_known`:
 * they have done it, and nothing undoes that. */
bool native_lacks(const struct native *n, unsigned i, bool is_known);
/* The error of a transaction that a node has left. */
void native_set_lost(struct err *err);
/* The monitor is told to take a node out of service. */
void native_detach(struct native *n, struct native_leg *leg, const char *why);

/* No transaction of the client's is open on the main node, and none is to be begun. */
static inline bool native_is_outside(const struct native *n)
{
    return n->failed < 0 && (n->unbegun >> n->main & 1) == 0 &&
           n->leg[n->main].link->tx_status == 'I';
}

/* native_begin.c */
/* The statement at hand is the client's BEGIN, which no server is told yet, or the end of such a
 * transaction: true, and the answer is in n->held. Until its end the client is in a transaction. */
bool native_begin_answers(struct native *n);
/* A leg that is not known to have begun it; what comes next cannot bring the BEGIN with it (of a
 * sequence: that begins or ends a transaction): it goes to all by itself first. */
bool native_lacks_begin(const struct native *n, unsigned i);
bool native_begin_must_go(const struct native *n, bool changes_it);
/* The leg has no part in the statement at hand: that ends what it has not begun. */
bool native_begin_skips(const struct native *n, unsigned i);
/* The sequence in n->in may be a BEGIN alone, statement `s` of `text`: as native_begin_answers. */
bool native_begin_answers_batch(struct native *n, struct slice text, const struct sql_stmt *s);
/* Appends n->out for a leg, which is about to get it, with the BEGIN that it lacks, if it does: the
 * client's, or ours; and with what else stands in front there. Of a function call, and where a
 * PREPARE stands in front, that is a Query of its own. */
void native_begin_put(const struct native *n, struct native_leg *leg, bool begins, struct buf *out);
/* An error of one that did so: as if the client's text had stood there alone. */
void native_begin_put_error(const struct native_leg *leg, struct buf *error);
/* Within the client's transaction the main node can run the statement as it is, right behind the
 * question: its time is the transaction's, and what has failed it lets nothing run. */
bool native_goes_ahead(const struct native *n, const struct sql_stmt *s);
/* A leg has answered. The transaction is over. */
void native_begin_note(struct native *n, unsigned i);
void native_begin_over(struct native *n);

/* native_plan.c */
/* What the text is; nstmts is 0 where it cannot be told, also by the session's settings. */
void native_parse(struct native *n, struct slice sql, struct sql_facts *facts);
/* Where the statement at hand goes, and what becomes of it. NATIVE_ASK: a question is under way.
 * NATIVE_REFUSED: the exchange has ended. */
enum native_verdict native_plan(struct native *n);
/* What stands for all that the catalogue may have said, here and now. */
uint64_t native_answers_id(struct native *n);
/* A text like it was found to read, and to do nothing but that, with these answers; else 0. */
uint64_t native_text_known(struct native *n, struct slice sql);
/* Judges statement `i` of `facts` as native_plan does; *place becomes the stricter of the two. */
enum native_verdict native_judge(struct native *n, struct slice text, const struct sql_facts *facts,
    uint32_t i, struct native_place *place);
/* Plans the rewriting of one. */
enum native_verdict native_rewrite(
    struct native *n, struct slice text, const struct sql_stmt *stmt, struct repl_plan *plan);
/* What may be unequal from now on is told to the log, and the client that is there. */
void native_warn(struct native *n, const char *text, bool is_there);
/* What one node alone has begun may have taken numbers there, of what has no lock. */
void native_cut_short(struct native *n, bool is_there);
/* Tells the client that its result may differ (plan->differs), if that is to be told. True: it is
 * refused for that, and the exchange has ended. */
bool native_says_that_it_differs(struct native *n, const struct repl_plan *plan);
/* Whether the rows that all nodes return have to be equal. */
bool native_compares(const struct native *n);
/* A function call: places and plans it, and puts it into n->out. */
void native_call_plan(struct native *n);
void native_call_put(struct native *n);
/* Puts a query, or the statement at hand (NULL: the whole text) as it was planned, into n->out. */
void native_put_query(struct native *n, struct slice sql);
void native_put_statement(struct native *n, const struct sql_stmt *s);
/* Appends what the main node is asked before the statement (NULL: a function call): locks, values,
 * and, where it may commit within, which transaction its connection is at: behind the values. */
void native_values_sql(struct native *n, const struct sql_stmt *s, struct buf *sql);
bool native_counts_commits(const struct native *n);
/* What may commit within itself has failed on the main node alone (a cancel, a lock). True: the
 * node is asked whether it had committed, and the exchange fails when that is answered. */
bool native_asks_committed(struct native *n);
void native_committed_answered(struct native *n);
/* Appends lock number `i` that the statement takes first on the main node; false: it is none. */
bool native_lock_sql(struct native *n, struct slice text, const struct sql_stmt *stmt,
    const struct repl_plan *plan, unsigned i, struct buf *sql);
/* Takes the row at *at of an answer for us: its first values, p NULL where there is none. False: no
 * row is left. */
bool native_next_row(const struct native *n, uint32_t *at, struct slice *values, unsigned max);
/* The answer to a question is there. */
void native_take_answers(struct native *n);
void native_take_columns(struct native *n);

/* native_numbers.c: sequences that stand elsewhere on another node than on the main one, for what
 * took numbers was cut short, are set right by the next statement that takes some. */
/* Takes what the main node has answered to native_values_sql. */
void native_numbers_take_values(struct native *n);
/* Appends what stands in front of the statement on another node than the main one: locks of what it
 * reads, what puts its sequences right; a SELECT of one row is the last. */
void native_numbers_sql(const struct native_leg *leg, struct buf *sql);

/* native_functions.c: functions that were there before; or the question for them. */
bool native_functions_are_known(struct native *n);
void native_functions_sql(struct buf *sql);
void native_functions_take(struct native *n);
/* What of the statement is one, and to be refused for that; else empty. */
struct slice native_functions_used(const struct native *n, const struct sql_stmt *s);
void native_functions_free(struct sessions *ss);

/* native_schema.c */
/* A statement runs: notes what it changes for those that come. */
void native_note(struct native *n, struct slice text, const struct sql_stmt *s);
void native_forget_tables(struct native *n);
/* What is known of a table; NULL: it has to be asked for. */
struct native_table *native_table_find(struct native *n, struct slice name);
/* An exchange is planned: what is known of tables is of the schema as it is. */
void native_follow_schema(struct native *n);
/* The statement runs now: what it changes of tables and of names; the level of a transaction. `s`
 * NULL: nobody knows what it is. */
void native_note_schema(struct native *n, struct slice text, const struct sql_stmt *s);
/* What runs may change what names mean, or make temporary tables, unseen. */
void native_note_unseen(struct native *n);
/* Notes what ends a transaction that has failed, or a part of it. */
void native_note_failed(struct native *n, enum sql_tx_op op);
/* What the start-up packet says of names. */
void native_names_begin(struct native *n);
/* The transaction's COMMIT is about to be sent: what it changed will be seen, and it is over. */
void native_tell_schema(struct native *n);
void native_settle_schema(struct native *n);
/* The main node has done what was planned before the schema changed: appends the question whether a
 * table is the same, and keeps what was answered; false: there is nothing to ask. */
bool native_table_to_verify(struct native *n, struct buf *sql);
/* The answer is there: it is (then native_table_to_verify again), or it is not. */
bool native_tables_are_same(struct native *n);

/* native_run.c */
/* The exchange fails with what is in n->held: what it did is undone. */
void native_fail(struct native *n);
/* Goes on with the exchange in n->in. */
void native_next(struct native *n);
/* What stood in front of the statement that runs on the main node: the others get it with that. */
void native_values_came(struct native *n);
/* All that were asked have answered. */
void native_answered(struct native *n);

/* The statement at hand is done: the next one of its string. */
void native_next_statement(struct native *n);

/* native_compare.c: the answers of those that took part, from leg `first` on, and how many. */
unsigned native_collect(
    struct native *n, unsigned first, struct agree_answer *answers, struct native_leg **legs);
/* The answers of the minority, in the log. */
void native_log_mismatch(struct native *n, const struct agree_answer *answers, unsigned count,
    const struct agree_result *result);

/* native_commit.c: by pointers, so that the files below need none above them. */
struct native_commit_ops {
    /* The statement is about to run: a COMMIT becomes one of two phases, if that is to be.
     * NATIVE_REFUSED: it cannot be, and the exchange has failed. `is_alone`: nothing else is bound
     * in its part of the sequence. */
    enum native_verdict (*choose)(struct native *n, const struct sql_stmt *s, bool is_alone);
    /* What is sent in the place of the client's COMMIT; whether that is what a server has done. */
    void (*put)(const struct native *n, struct buf *sql);
    bool (*is_tag)(const struct native *n, struct slice body);
    /* The main node has answered to it. */
    void (*main_answered)(struct native *n);
    /* Begins to commit our transaction around a statement; false: in one phase. */
    bool (*wrapped)(struct native *n);
    /* The steps: all that were asked have answered. */
    void (*main_prepared)(struct native *n);
    void (*prepared)(struct native *n);
    void (*committed)(struct native *n);
    void (*undone)(struct native *n);
    /* The client is gone: what must not be undone ends by itself, or the control process sees to
     * it. */
    void (*leave)(struct native *n);
};
extern const struct native_commit_ops native_commit_ops;

/* native_guard.c: by pointers, as above. */
struct native_guard_ops {
    void (*begins)(struct native *n); /* the others were asked */
    void (*looks)(struct native *n);  /* its time has come: STEP_OTHERS */
    /* The error of `leg` is that of a cancel by the guard: leg->error says so from here on. */
    bool (*was_cut)(struct native *n, struct native_leg *leg);
    /* All have answered. False: whom it cancels is not known yet, and native_wait comes again. */
    bool (*done)(struct native *n);
    void (*over)(struct native *n);
};
extern const struct native_guard_ops native_guard_ops;

/* native_copy.c: COPY FROM STDIN, by pointers, as above. */
struct native_copy_ops {
    /* All nodes were told to COPY: the client's data is awaited, when all of them wait for it. */
    void (*begin)(struct native *n);
    /* Data has come. */
    void (*feed)(struct native *n);
    /* A node has ended it before the client did. */
    void (*broke)(struct native_leg *leg);
    void (*ended)(struct native *n);   /* of STEP_COPY_END */
    void (*stopped)(struct native *n); /* of STEP_COPY_STOP */
};
extern const struct native_copy_ops native_copy_ops;

/* native_apart.c: by pointers, as above. */
struct native_apart_ops {
    /* All have done a statement that takes numbers; `agree`: with equal answers. True: they are
     * asked where the sequences stand, as one may be further than on the main node, and it ends as
     * `end` says, or fails. */
    bool (*asks)(struct native *n, bool agree);
    void (*told)(struct native *n, void (*end)(struct native *n)); /* of STEP_WHERE */
    void (*brought)(struct native *n);                             /* of STEP_FORWARD */
};
extern const struct native_apart_ops native_apart_ops;

/* native_gate.c: by pointers, as above. */
struct native_gate_ops {
    void (*init)(struct native *n);
    /* The client's own transaction has a snapshot, or what comes takes none. False: it is being
     * taken, and native_next comes again. */
    bool (*may_begin)(struct native *n);
    /* A snapshot is there on these legs. False: it is being taken, and go_on is called with it. */
    bool (*snapshot)(struct native *n, uint32_t legs, void (*go_on)(struct native *n));
    void (*taken)(struct native *n); /* of STEP_SNAPSHOT */
    /* Nobody takes a snapshot until `leave`. False: some do, and go_on is called when it may
     * commit, or `fail` with the error in n->held. */
    bool (*commit)(
        struct native *n, void (*go_on)(struct native *n), void (*fail)(struct native *n));
    /* What it commits is decided, and ended by the control process if this one cannot; that one
     * keeps snapshots waiting meanwhile, who are not to see it on some nodes. */
    void (*keep)(struct native *n);
    void (*leave_to_control)(struct native *n);
    void (*leave)(struct native *n); /* harmless when it is outside */
    /* The time of STEP_GATE is up; it is to be cancelled (false: it is inside by now). */
    void (*on_timer)(struct native *n);
    bool (*cancel)(struct native *n);
    /* The client is gone. */
    void (*quit)(struct native *n);
    /* What goes on without its client, beside one who is inside; it is done. */
    void (*join)(struct sessions *ss);
    void (*leave_one)(struct sessions *ss, enum gate_side side);
    void (*opened)(struct sessions *ss);
};
extern const struct native_gate_ops native_gate_ops;

/* native_fence.c */
struct native_waiters *native_waiters(struct sessions *ss);
void native_waiters_free(struct sessions *ss);
void native_fence_init(struct native *n);
/* The main node is about to commit what others have to, too; it is on all, or is not going to be:
 * NULL is nothing. */
void native_flight_begin(struct native *n);
void native_flight_end(struct sessions *ss, struct native_flight *flight);
/* The main node has done the statement at hand: the others have what it may have seen there. False:
 * that is waited for (STEP_FENCE), and go_on is called. */
bool native_fence(struct native *n, void (*go_on)(struct native *n));
/* The time of STEP_FENCE is up: false: it goes on by now; the client is gone; commits of other
 * workers are over. */
bool native_fence_gives_up(struct native *n);
void native_fence_quit(struct native *n);
void native_fence_look(struct sessions *ss);

/* A statement is done: with the transaction its snapshot ends. */
static inline void native_gate_leave(struct native *n)
{
    native_flight_end(n->ss, n->flight);
    n->flight = NULL;
    if (n->gate.ops == NULL)
        return;
    n->gate.ops->leave(n);
    if (!n->wrapped && native_tx(n) == 'I')
        n->gate.has = 0;
}

/* What it did before it failed stays: numbers of a sequence, what a procedure has committed. */
static inline bool native_leaves_some(const struct native *n)
{
    return n->plan.serial != NULL || n->plan.nsequences > 0 || n->place.commits > 0;
}

/* native_decide.c */
/* Gives the transaction a name; NULL with *err. */
const char *native_decision_begin(struct native *n, struct err *err);
const char *native_decision_name(const struct native *n);
/* Has it written that it is committed on these nodes, and calls `decided` later: with an error it
 * is not, or that is not known. */
void native_decide(struct native *n, uint64_t nodes,
    void (*decided)(struct native *n, const struct err *err, bool is_unknown));
/* The session has done with it. Not `is_everywhere`: the control process is to look after it. */
void native_decision_end(struct native *n, bool is_everywhere);
/* The process is about to end, and its file of decisions with it: not before. */
void native_decisions_free(struct sessions *ss);
/* For tests, which name a step at which the process dies. */
void native_commit_step(struct native *n, unsigned step);

/* native_rest.c */
/* The client is gone, and nothing is decided: what must not be undone any more is left to end by
 * itself. */
void native_leave_behind(struct native *n);

/* native_batch.c */
/* Places the sequence in n->in, and puts it into n->out with what was rewritten. */
enum native_verdict native_batch_plan(struct native *n);
/* The exchange in n->in begins with the Execute of a COPY FROM: it is cut off behind that, and runs
 * as n->text, as by a Query, for only so do all nodes get the data. */
bool native_batch_copies(struct native *n);

/* native_prepared.c */
/* A prepared statement, as it is behind what the exchange does; NULL: none is known. What is found
 * lives as long as the exchange. */
const struct native_change *native_prepared_find(struct native *n, struct slice name);
void native_prepared_clear(struct native *n);
/* An exchange begins to be planned; it prepares or closes something. */
void native_prepared_begin(struct native *n);
void native_prepared_note(struct native *n, const struct batch_msg *m);
void native_prepared_note_lone(struct native *n, const struct batch_lone *l);
/* The Parse of a lone statement has OP_NOTE on that link, which is quiet: what became of it is
 * known. */
void native_prepared_settle_lone(struct native *n, struct link *link);
/* The statement was judged: native_prepared.known. native_prepared_known: what was kept; 0: nobody
 * knows it. */
void native_prepared_judged(struct native *n, struct slice name, struct slice sql, uint64_t known);
uint64_t native_prepared_known(struct native *n, struct slice name);
void native_prepared_add_sql(struct native *n, struct slice text, const struct sql_stmt *stmt);
/* The node that is asked first has done that many, and all of it (`is_done`) or not. */
void native_prepared_settle(struct native *n, uint32_t ndone, bool is_done);
/* Puts these into n->out for the others, who will not see the exchange; false: there are none. */
bool native_prepared_put(struct native *n, uint32_t ndone);
/* Appends a Parse, and its ops; or a statement of ours under that name, which is executed. Only an
 * error is told. */
void native_put_parse(
    struct buf *out, struct buf *ops, const char *name, struct slice sql, struct slice types);
void native_put_own(struct buf *out, struct buf *ops, const char *name, struct slice sql);
/* Puts an EXECUTE of what was rewritten into n->out. */
void native_execute_put(struct native *n, const struct sql_stmt *s);

#endif
