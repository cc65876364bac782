/* SPDX-License-Identifier: PostgreSQL
 * balance_int.h: one client's further links: reads go to standbys on them.
 *
 * The client's own link (on the primary) is its session: it knows every setting, and in the end
 * every prepared statement. A reader is a helper that is brought up to date before each use:
 * settings are replayed from a log, prepared statements are parsed where they are needed. While a
 * reader answers, nothing of the client's is sent on the own link; what the own link says by itself
 * (notifications) waits.
 *
 * A transaction has a home: the own link, or for BEGIN READ ONLY a reader. What runs elsewhere runs
 * in a transaction of the same kind there, begun when it is first needed and ended with the home's:
 * the link is then a guest. A guest's error is made the home's. */
#ifndef PGP_SESSION_BALANCE_INT_H
#define PGP_SESSION_BALANCE_INT_H

#include "route/route.h"
#include "route/route_oracle.h"
#include "route/route_reads.h"
#include "route/route_trace.h"
#include "wire/message.h"

#include "session_int.h"

/* Replayed settings of one session; beyond it the session reads from the primary. */
#define BALANCE_LOG_MAX 8192
/* A read that was sent to the reader is kept up to this size, to be sent again when the reader
 * dies. */
#define BALANCE_RETRY_MAX 65536
/* After a failure the reader is not tried again for this long. */
#define BALANCE_RETRY_US 5000000

/* What the own link says while the reader speaks is held up to this size; then it waits in the
 * socket. */
#define BALANCE_HELD_MAX 65536
/* A standby that takes longer to let us in is not waited for. */
#define BALANCE_LOGIN_MS 5000

/* What a standby says of a read that is in the way of replay. */
#define BALANCE_CONFLICT "40001"

enum reader_phase {
    READER_NONE,
    READER_OPENING, /* waiting for a link or its login: the client is parked */
    READER_READY
};

/* A link of the client to a node that is not its own link's. */
struct reader {
    struct client *client;
    struct link *link; /* NULL in READER_NONE */
    struct pool *pool;
    struct pool_request req;
    struct link_startup startup;
    uint64_t epoch;
    uint64_t bit; /* in statement.on_readers */
    int64_t avoid_until_us;
    uint32_t replayed; /* bytes of the log that it has seen */
    int node;
    uint8_t phase;  /* enum reader_phase */
    bool is_asking; /* how far has it replayed? Or, when b->asking says so, of the catalogue */
    bool is_synced; /* ... and settings are repeated in front of that */
    bool in_tx;     /* as a guest */
};

#define BALANCE_MAX_READERS 64
/* Tables written in one transaction that are told apart. */
#define BALANCE_MAX_MARKS 64

/* What is asked on the own link, or on one that is borrowed for it. */
enum balance_asking { ASKING_NONE, ASKING_CATALOGUE, ASKING_LSN, ASKING_REPLAY };

/* The open transaction. */
struct balance_tx {
    bool is_known;      /* begun by a BEGIN that stood alone: it can be begun elsewhere */
    bool stays;         /* changed a setting: its reads do not leave it */
    bool is_opaque;     /* ... and a guest cannot follow that */
    bool is_on_own;     /* ... on the own link, its guest, by what cannot be repeated at home */
    bool has_savepoint; /* the readers have none: portals stay */
    bool has_setting;   /* in `tx_log` */
    bool goes_back;     /* to one; what of the settings is left is in `tx_log` alone */
    bool lost_count;    /* of the savepoints: they are not in `tx_log` from now on */
    bool has_read;      /* on a reader: what may only be said before that is refused */
    bool moves;         /* SET TRANSACTION READ WRITE is under way: its home will be the own link */
    uint8_t isolation;  /* enum sql_isolation */
    uint8_t read_only;  /* enum sql_choice */
    uint8_t deferrable; /* enum sql_choice */
};

struct balance_questions;
struct balance_doubts;

/* What only a client with a link of its own has: its further links, and what it takes to bring them
 * up to date. */
struct balance_own {
    struct paramset params; /* the client's start-up parameters */
    uint64_t start_hash;    /* of them, when they may say what names mean; else 0 */
    /* What the session has set. */
    struct buf log;     /* SET and RESET statements, each with its NUL */
    struct buf pending; /* those of the open transaction */
    struct balance_tx tx;
    /* Portals of the transaction that are on readers: balance_portal.c. */
    struct buf portals;        /* those with names */
    struct reader *unnamed_at; /* where the one without a name was bound last */
    bool has_unnamed;          /* ... and there is one at the home */
    bool has_portals;          /* some may be gone on with */
    bool notes_portals;        /* they are looked for in the messages of this sequence */
    uint8_t cut_left;          /* messages to the reader before its part of the sequence is cut */
    struct buf tx_log;    /* those of a transaction that lives on a reader, SET LOCAL as well, and
                             its savepoints among them */
    uint32_t tx_settled;  /* bytes of it that were there before the present exchange */
    uint32_t tx_ends_at;  /* ... and before the last COMMIT or ROLLBACK */
    bool tx_is_mixed;     /* that exchange is more than one plain statement */
    bool notes_savepoint; /* ... and there are savepoints in it */
    uint8_t level;        /* enum sql_isolation, by default; UNSET: as it was at the login */
    uint8_t level_next;   /* ... and 1, once `pending` is settled; 0: the same */
    uint32_t tx_replayed; /* bytes of it that the own link, its guest, has seen */
    uint8_t tx_end;       /* enum sql_kind of the last COMMIT or ROLLBACK sent */
    uint32_t ends_at;     /* ... and how much of `pending` was in front of it */
    bool ends_plainly;    /* ... which stood alone, and is not of a prepared transaction */
    bool is_word; /* the exchange begun last is that by the extended protocol, and no more */
    bool tx_was_open;
    bool has_new_setting; /* in `pending`, and not answered yet */
    bool discards;        /* DISCARD ALL is not answered yet */
    bool has_begun;       /* BEGIN, not answered yet */
    bool has_tx_end;      /* COMMIT or ROLLBACK, not answered yet */
    bool saw_error;       /* in the present exchange */
    bool holds_cursors;   /* WITH HOLD: cursors stay on the own link */
    bool own_is_guest;    /* the own link is in the transaction, too */
    bool home_fails;      /* a reader was made to fail with its guest */
    bool own_ends;        /* ... and is told of its end */
    bool reply_begun;     /* bytes of the reader's answer reached the client */
    bool is_cut;          /* the reader's sequence ended with a Flush: balance_batch.c */
    bool cut_failed;      /* ... and with an error */
    bool keeps;       /* `retry` is what runs on the own link; the client has seen nothing of it */
    bool is_refused;  /* and its server takes no writes; `early` ends with what it said */
    bool saw_change;  /* since then: another primary, or none */
    uint8_t nagain;   /* times in a row that something was made again */
    uint32_t ended;   /* the serial of the op that said so, and 1; 0: none */
    bool ended_well;  /* it was COMMIT */
    bool is_untold;   /* the transaction died with its home, between two statements */
    bool end_is_told; /* ... and its COMMIT was answered, before the own link has ended it, too */
    int64_t refused_us;    /* wall clock */
    uint32_t refused_from; /* the ops that came to nothing by it, up to */
    uint32_t refused_to;
    bool is_failing;     /* a transaction in its place is made to fail on the own link ... */
    uint32_t fails_at;   /* ... by the op of this serial */
    uint32_t nexchanges; /* on the home since it was quiet */
    struct reader **reader;
    unsigned nreaders;
    struct reader *home;           /* where the open transaction lives; NULL: the own link */
    struct buf retry;              /* messages the reader has not begun to answer */
    struct buf early;              /* ParseComplete and BindComplete of the reader: no answer yet */
    struct balance_doubts *doubts; /* what was run without being known; NULL mostly */
    struct client *client;
    struct list held_node; /* ss->held: the next statement waits for the cluster */
    int64_t hold_until_us; /* 0: it does not */
    uint8_t hold_class;    /* enum route_class of that statement */
    struct buf held;       /* what the own link said while the reader spoke */
    char *bound;           /* balance_bound.c: a portal, NUL, the call that it makes; NULL mostly */
};

/* More than this is not kept from one read to the next. */
#define BALANCE_RETRY_KEEP 256

/* The messages have been answered. Their place is for the next read. */
static inline void balance_forget_retry(struct balance_own *own)
{
    if (own->retry.cap > BALANCE_RETRY_KEEP)
        buf_free(&own->retry);
    else
        buf_clear(&own->retry);
}

struct balance {
    struct route_session rs;             /* for the router; `trace` is ours */
    char *application_name;              /* at the login; NULL: none */
    struct balance_own *own;             /* NULL: the client shares links */
    struct balance_questions *questions; /* under way; NULL mostly */
    uint64_t *mark; /* tables written since the home was quiet, for dml_adaptive_global */
    uint64_t wait_lsn;
    uint32_t wait_until_ms; /* of the loop's clock; with is_waiting */
    uint32_t choice;        /* its place in the even sequence of choices */
    uint16_t ndraws;        /* from there on; the last is kept while the client is parked for it */
    uint8_t nmarks;
    char tx_status;     /* of a client without a link: as ReadyForQuery would say */
    uint8_t reason;     /* enum route_reason of the last decision */
    uint8_t nasked;     /* questions for the statement at hand */
    uint8_t asking : 2; /* enum balance_asking */
    bool keeps_random : 1;
    bool ask_failed : 1;
    bool tx_failed : 1;      /* the open transaction failed: its COMMIT is a ROLLBACK */
    bool rolls_back : 1;     /* without an own link: the last statement sent was a lone ROLLBACK */
    bool commits_midway : 1; /* ... and one sent commits, but leaves a transaction open */
    bool did_ddl : 1;        /* since the home was quiet, or in the open transaction */
    /* read_consistency */
    bool lsn_due : 1;       /* the session has written since it knew its last LSN */
    bool lsn_is_wanted : 1; /* a read stayed because its transaction is no place to ask */
    bool lsn_is_fresh : 1;  /* asked for this very exchange */
    bool wait_is_over : 1;  /* the standby took too long: this exchange stays */
    bool is_waiting : 1;
};

_Static_assert(sizeof(struct balance) <= 104, "an idle client has a budget");
_Static_assert(BALANCE_MAX_MARKS <= UINT8_MAX, "balance.nmarks");

/* Its place, of 2^64. */
static inline uint64_t balance_choice(const struct balance *b)
{
    return (uint64_t)b->choice << 32;
}

/* The next statement may ask again. */
static inline void balance_ask_reset(struct balance *b)
{
    b->ask_failed = false;
    b->nasked = 0;
}

enum balance_verdict {
    BALANCE_GO,  /* send it on c->target */
    BALANCE_PARK /* wait: the client's input is to be parked */
};

/* balance_judge.c: needs no link. Called between login and goodbye; c->pool and c->login must be
 * there at balance_begin, c->link may be NULL at any time. */
/* Makes the struct when this client's reads can be balanced at all; else c->balance stays NULL. */
void balance_begin(struct client *c);
/* The standby of `link` asks, and nothing known answers it: reads of the session stay at home. SHOW
 * says so, and once an hour for each user the log. */
void balance_note_no_login(struct client *c, const struct link *link);
/* The text of a setting, or of all of them, has the word in it. */
bool balance_says_serializable(struct slice value);
/* The start-up parameters of a client with a link of its own say so. */
bool balance_begins_serializable(const struct client *c);
/* Frees it; readers are given back. Harmless without one. */
void balance_free(struct client *c);
/* The reader where the open transaction lives; NULL: the own link, or one that is borrowed. */
static inline struct reader *balance_home(const struct client *c)
{
    const struct balance *b = c->balance;

    return b == NULL || b->own == NULL ? NULL : b->own->home;
}

/* As the server would say: 'I', 'T' or 'E'; of the link where the transaction lives, when there is
 * one. */
static inline char balance_tx_status(const struct client *c)
{
    const struct balance *b = c->balance;
    const struct reader *home = balance_home(c);

    if (home != NULL && home->link != NULL)
        return home->link->tx_status;
    if (c->link != NULL)
        return c->link->tx_status;
    return b == NULL ? 'I' : b->tx_status;
}
/* The facts of `sql`, valid until the next call. Their offsets are those of `sql` when it holds
 * several statements, SET or RESET; else they may be those of a text like it. */
const struct sql_facts *balance_facts(struct sessions *ss, struct slice sql);
/* The same, and what the router says of it. `facts`: those of balance_facts. When d->must_ask is
 * set: balance_ask, and again. */
void balance_decide_facts(
    struct client *c, struct slice sql, const struct sql_facts *facts, struct route_decision *d);
/* Both. */
const struct sql_facts *balance_decide(
    struct client *c, struct slice sql, struct route_decision *d);
/* The same of a statement of a client that shares links. */
void balance_decide_prep(struct client *c, struct prep *p, struct route_decision *d);
/* The same of a prepared statement. NULL: it is a query that reads, like the last time, and nothing
 * has to be known or asked for it. */
const struct sql_facts *balance_decide_statement(
    struct client *c, struct statement *st, struct route_decision *d);
/* The node for a read that is `known` (route_decision.known; `by_facts`: route_known_of) while
 * no transaction is open, and what there is to note of that. VIEW_NO_NODE: it has to be decided;
 * the draw is kept for that, and until somebody has settled otherwise. */
int balance_known_node(struct client *c, uint64_t known, bool by_facts);
/* What it says of a statement that has its node: without another draw, which would spoil the even
 * sequence. */
const struct sql_facts *balance_decide_again(
    struct client *c, struct slice sql, struct route_decision *d);
/* What it says of a statement that has run, outside of transactions: d->must_ask is set while
 * anything of it is not known. */
void balance_decide_afterwards(struct client *c, struct slice sql, struct route_decision *d);
/* The draw that was kept was for a statement that is not made: the next one gets it. */
void balance_undraw(struct client *c);
/* The statement is sent to where writes go: it may decide about later reads. */
void balance_note_write(struct client *c, const struct route_decision *d);

/* balance.c: clients with a link of their own */
/* Chooses c->target for a simple query; *traits: what share_traits says of it. */
enum balance_verdict balance_query(
    struct client *c, struct slice sql, struct slice msg, uint32_t *traits);
/* Chooses c->target for what was decided: `joins` when it is a read that may leave its transaction.
 * `msg`: what is sent again on the own link when the reader dies. */
struct balance_wish {
    const struct route_decision *d;
    struct slice msg;
    struct reader *at; /* it names a portal that is there; NULL mostly */
    int node;          /* where to; VIEW_NO_NODE: the own link */
    bool begins;       /* BEGIN READ ONLY: that node becomes the home */
    bool needs_own;    /* leaves the home for the own link */
    bool stays_home;   /* sets what can be repeated there: not that */
    bool sets;         /* sets what cannot: it does */
};
enum balance_verdict balance_choose(struct client *c, const struct balance_wish *wish);
/* The node for one decision by itself, and whether it begins a transaction there. */
struct balance_wish balance_wish_of(struct client *c, struct slice sql,
    const struct sql_facts *facts, const struct route_decision *d);
/* The reader for a wish that names a node, when it has all that must be known and replayed. NULL:
 * it did not work out. */
enum balance_verdict balance_find_reader(
    struct client *c, const struct balance_wish *wish, struct reader **rp);
/* Aims the client at the reader. `msg`: what is sent again elsewhere should it be lost before it
 * has answered; empty: nothing is. */
void balance_aim(struct client *c, struct reader *r, struct slice msg);
/* Answers are missing and the own link is free: asks. */
bool balance_asks(struct client *c, const struct route_decision *d);
/* A query too long to be looked at goes to the home, and anything may be in it. */
enum balance_verdict balance_unread_query(struct client *c);
/* A function call message goes to the own link. */
enum balance_verdict balance_function_call(struct client *c);
/* A message nobody looked into was sent to the own link. */
void balance_note_unread(struct client *c);
/* The own link is quiet after an exchange. True when the input goes on from here. */
bool balance_on_own_quiet(struct client *c);
/* The next exchange has to wait for one that is under way. */
bool balance_is_waiting(const struct client *c);
/* Nothing is owed on the own link, and no reader answers. */
bool balance_is_quiet(const struct client *c);
/* Something that is owed there is for the client. */
bool balance_owes_client(const struct expect *owed);
/* The own link answers us, and nobody else: it is quiet soon, and wakes who waits for that. */
bool balance_is_quiet_soon(const struct client *c);

/* balance_quick.c: most reads of most clients. True when c->target is the reader for it; false when
 * it is for balance_query and balance_batch to judge. */
/* `facts`: those of `sql`, which is plain. */
bool balance_quick_query(
    struct client *c, struct slice sql, struct slice msg, const struct sql_facts *facts);
/* A sequence that begins at `p`. */
struct balance_whole;
bool balance_quick_batch(
    struct client *c, const char *p, const char *end, struct balance_whole *whole);

/* balance_again.c: what was sent to the own link is made again elsewhere */
/* The messages will be sent again elsewhere: they do not count for `node`. */
void balance_uncount(struct client *c, int node, struct slice messages);
/* True for messages after which the exchange can still be made elsewhere. */
bool balance_is_no_answer(const char *p, size_t n);
/* Of what on_bytes got while nothing of an answer had come: bytes of notifications at its front,
 * which may begin with the rest of one and end before that of another. */
static inline size_t balance_notified_bytes(const struct link *link, const char *p, size_t n)
{
    size_t at = link->in_body;

    while (at < n && n - at >= PROTO_HEADER_BYTES && p[at] == BE_NOTIFICATION)
        at += message_bytes(p + at);
    return at < n ? at : n;
}
/* An exchange begins: what is sent to the own link is kept, should it have to be made again.
 * `msgs`: all of it, or empty. */
void balance_again_begin(struct client *c, struct slice msgs);
/* A message of a COPY is about to be sent behind it: then it is not made again any more. False: it
 * is to be made again, and the message belongs behind that. */
bool balance_again_takes_copy(struct client *c);
/* Bytes of the own link: true when they were kept from the client for now, or passed on here. */
bool balance_again_holds(struct client *c, struct link *link, const char *p, size_t n);
/* Of bytes that on_bytes got: each ParameterStatus goes to the client, what else there is is added
 * to `others` (NULL: dropped). */
void balance_pick_parameters(
    struct client *c, const struct link *link, const char *p, size_t n, struct buf *others);
/* True when the messages do nothing at all when they fail. */
bool balance_again_is_whole(struct client *c, struct slice msgs);
/* True when they read, and do nothing but that. */
bool balance_again_is_read(struct client *c, struct slice msgs);
/* True when all that a link, outside of a transaction, owes for these messages is ReadyForQuery,
 * and that cannot be an error any more: a lone statement of a simple query is committed before its
 * CommandComplete; in the extended protocol that is true of reads alone. */
bool balance_again_is_over(struct client *c, const struct link *link, struct slice msgs);
/* The own link is gone: true when what ran there is over in that sense, or was the end of the
 * transaction. What it has SET holds then. */
bool balance_again_ends(struct client *c, struct link *link);
/* The same of a transaction that lived on a reader, whose link is gone. */
bool balance_again_home_ends(struct client *c, struct link *link);
/* A tag of the home, when one that ends the transaction may be among them. */
void balance_again_on_tag(struct client *c, const struct link *link, struct slice tag);
/* The own link's server says an error: true when it is kept from the client for now. */
struct errmsg;
bool balance_again_on_error(struct client *c, struct link *link, const struct errmsg *m);
/* True while it is not known what becomes of what was refused: the client's input waits. */
bool balance_again_is_waiting(const struct client *c);
/* balance_tx.c: the client has not heard yet why its transaction is a failed one: true when it was
 * told so in place of the server's error. */
bool balance_tell_lost(struct client *c, const struct link *link, const struct errmsg *m);
/* The own link is quiet after an exchange: true when the client waits for the monitor. */
bool balance_again_on_quiet(struct client *c);
/* The own link is gone and the session goes on: true when what ran there was put in front of the
 * client's input. */
bool balance_again_on_lost(struct client *c, struct link *link);
/* Puts what the client sent since behind what is made again, and frees it there. `is_open`: the
 * Sync was not sent yet, so that what is left of the sequence is in both. */
void balance_again_join(struct client *c, struct buf *kept, bool is_open);
/* The client gets the server's refusal. */
void balance_again_tell(struct client *c);

/* sessions_view.c */
/* What was refused waits until the monitor has looked. */
void sessions_hold_refused(struct client *c);
/* All servers in use have been asked since: whoever is the primary now has said so. */
bool sessions_all_asked_since(const struct view *v, int64_t since_us);
/* True when a statement of this class must not go to the client's own link now: its server is being
 * replaced, or was. The client's input is to be parked; it is fed again when that is over, or
 * failover_wait. */
bool sessions_hold(struct client *c, enum route_class class);

/* balance_batch.c */
/* A sequence that is a read on a reader, or the own link, which knows all it names: nothing of it
 * has to be looked at again. */
struct balance_whole {
    const char *end; /* of it; NULL: the sequence is another one */
    /* What was found of one with a single Parse, without a name, or a single Bind. */
    struct slice sql;        /* of that Parse */
    uint32_t traits;         /* ... share_traits; 0: there is none, or several */
    struct statement *bound; /* by that Bind, and made earlier; or NULL */
    /* Of balance_quick_batch: Parse or not, Bind, Describe or not, Execute, Sync. */
    size_t parse_bytes; /* the length of its Parse, with which it begins; 0: there is none */
    unsigned nops;      /* 0: found otherwise */
    uint8_t ops[5];     /* what the server owes */
};
/* Chooses c->target for an extended sequence that begins at `p`; looks ahead up to `end`. */
enum balance_verdict balance_batch(
    struct client *c, const char *p, const char *end, struct balance_whole *whole);
/* One message of an extended sequence goes to c->target: keep the statements known. */
void balance_note_message(struct client *c, char type, struct slice msg, bool puts_in);
/* A Parse goes to c->target; `asked`: 0 or STATEMENT_INEXACT. */
void balance_note_parse(
    struct client *c, struct slice name, struct slice msg, enum count_kind count, unsigned asked);
/* A message of the extended protocol arrives in parts; `msg` is the first of them. */
void balance_note_partial(struct client *c, char type, struct slice msg);
/* True when something has to be put in before the message: what was sent must be out by then. */
bool balance_puts_in(const struct client *c, char type, struct slice msg);
/* SQL that names prepared statements goes to c->target. */
void balance_need_names(struct client *c, const struct sql_facts *facts);
/* A statement's name means something on `link` (the own link or a reader's) as it does to the
 * client: parses it there when it is not known there yet. */
void balance_need_statement(struct client *c, struct link *link, struct statement *st);
/* The name is closed: also on the links that the message does not go to. */
void balance_close_statement(struct client *c, struct slice name, unsigned asked);
/* DEALLOCATE ALL. */
void balance_close_all(struct client *c, unsigned asked);

/* PGPOOL EXPLAIN: what the statement itself would ask is asked first, of the catalogue and of how
 * far a standby has replayed; then the input is to be parked. */
struct admin_explain;
enum balance_verdict balance_explain_prepare(struct client *c, struct slice sql);
void balance_explain(void *ctx, struct slice sql, struct admin_explain *out);

/* balance_state.c */
/* All calls of set_config() among the statements can be made again as they are. */
bool balance_can_repeat_calls(const struct sql_facts *facts, struct slice sql);
/* The statement is sent to the home; `asked` as for balance_note_parse. */
void balance_note_facts(
    struct client *c, struct slice sql, const struct sql_facts *facts, unsigned asked);
/* The session has written: its last LSN is not known any more. */
static inline void balance_note_lsn_due(struct client *c)
{
    c->balance->lsn_due = true;
}
/* The statement is sent: the tables it writes to, for dml_adaptive_global. */
void balance_note_marks(struct client *c, const struct sql_stmt *s);
/* Somebody wrote to a table that has no name here (dml_adaptive_global). */
void balance_mark_all(struct client *c);
/* Whether DISCARD ALL was done nobody will ever know: the session begins anew. */
void balance_discard(struct client *c);
/* The home is quiet: has its transaction ended? */
void balance_end_tx(struct client *c);
/* Sends what the reader has not seen of the session's settings. */
void balance_replay(struct client *c, struct reader *r);
/* balance_log.c: what is pending becomes part of the log, and what it overtakes is taken out, also
 * of what readers have seen. False when that does not fit; then the log is not whole. */
bool balance_log_pending(struct balance_own *own);

/* transaction_read_only and its like: SET TRANSACTION in other words, gone with it. */
bool balance_is_of_transaction(struct slice name);

/* balance_tx.c: transactions over several links */
/* The link becomes a guest of the open transaction. */
void balance_join_reader(struct client *c, struct reader *r);
void balance_join_own(struct client *c);
/* A text goes to the own link that may only stand before the transaction's first query: it is told
 * of those on readers. */
void balance_tell_own(struct client *c, bool is_said);
/* SET TRANSACTION, or in other words. */
bool balance_sets_tx(const struct sql_facts *facts);
/* For the transaction's guest: a setting (an empty text cannot be repeated), or what is said of
 * savepoints. */
void balance_note_tx_setting(struct client *c, struct slice text);
void balance_note_tx_savepoint(struct client *c, const struct sql_stmt *s, struct slice text);
/* The exchange at home is over. */
void balance_settle_tx_log(struct balance_own *own, bool failed);
/* Its transaction ended, and the next one has begun. */
void balance_cut_tx_log(struct balance_own *own);
/* There is no such transaction any more. */
void balance_forget_tx_log(struct balance_own *own);
/* The transaction is over at its home: also at its guests. */
void balance_end_guests(struct client *c, bool committed);
/* A guest met an error: makes the home fail as well. */
void balance_fail_home(struct client *c);
/* The home was lost with its reader: the own link takes its place, in a failed transaction. */
void balance_lose_home(struct client *c);
/* SET TRANSACTION READ WRITE went well on the own link: it is the home now. */
void balance_move_home(struct client *c);
/* Sends a text of our own; its replies are swallowed. */
void balance_send_own_text(struct client *c, struct link *link, struct slice sql);
void balance_send_query(struct client *c, struct link *link, struct slice sql, unsigned sink);
/* Sends a question of our own: its rows go to balance_on_row (by link_owner_ops.on_own_row). */
void balance_send_question(struct client *c, struct link *link, struct slice sql);
/* A simple query of ours takes the unnamed statement there with it. */
void balance_lose_unnamed(struct client *c, const struct link *link);
/* Closes a statement ('S') or a portal ('P') there; so are these. */
void balance_send_close(struct link *link, char kind, struct slice name);

/* The Flush is to be a Sync: what it ends was sent to a reader. */
static inline bool balance_cuts(const struct client *c)
{
    return c->balance != NULL && c->target != c->link && c->balance->own->is_cut;
}

/* ... or the reader's part of a sequence ends in front of the next message. */
static inline bool balance_cuts_here(const struct client *c)
{
    return balance_cuts(c) && c->server_batch && c->balance->own->cut_left == 0;
}

/* balance_portal.c */
/* The reader on which the open transaction has the portal of this name. NULL: on none. */
struct reader *balance_portal_at(const struct client *c, struct slice name);
/* True when one that may be gone on with later may leave the transaction. */
bool balance_portal_may_leave(const struct client *c, struct slice name);
/* The transaction on `r` is over; NULL: on all of them. */
void balance_portals_forget(struct client *c, const struct reader *r);
/* A Bind or Close goes to c->target, while there may be portals on readers. */
void balance_portals_note(struct client *c, char type, struct slice msg);
/* A portal without a name is bound on c->target, or a simple query goes there, which leaves none:
 * the home's is not there any more. */
void balance_portals_unnamed(struct client *c, bool binds);
/* SQL's CLOSE ALL goes to c->target. */
void balance_portals_close_all(struct client *c);
/* The first reader with a portal that a message of the sequence names. NULL: it names none. */
struct reader *balance_portals_named(const struct client *c, const char *p, const char *end);
/* balance_bound.c: set_config() with parameters. Of this Bind more has come than the names, but not
 * all: what it does depends on its values. */
bool balance_bind_wants_whole(const struct client *c, struct slice msg);
/* True when such a Bind, of `st`, is looked at when it is executed. */
bool balance_bound_keep(struct client *c, const struct statement *st, struct slice msg);
/* What was kept and is executed by this message, for the caller to free; NULL: nothing. */
char *balance_bound_take(struct client *c, char type, struct slice msg);
void balance_bound_forget(struct client *c);

/* The rest of the sequence has to come first: it may name one, and no server would answer by now.
 */
bool balance_portals_wait(const char *p, const char *end);
/* Something of the kind may be there. */
static inline bool balance_has_portals(const struct client *c)
{
    return c->balance->own->unnamed_at != NULL || c->balance->own->portals.len > 0;
}

/* balance_reader.c */
/* The reader of `node`, or NULL. */
struct reader *balance_reader_at(const struct client *c, int node);
/* The reader whose link is the target; NULL when it is the own link. */
struct reader *balance_reader_of_target(const struct client *c);
/* Makes a reader ready: GO with *rp NULL when it does not work out. */
enum balance_verdict balance_open_reader(struct client *c, int node, struct reader **rp);
void balance_drop_reader(struct client *c, struct reader *r, bool boundary);
void balance_drop_readers(struct client *c, bool boundary);
/* The reader's answer is complete: back to the own link. */
void balance_to_own(struct client *c);
/* A message that went in parts to a reader is sent to its end: the answer may have come before (a
 * COPY that failed). */
void balance_on_body_end(struct client *c);

/* balance_wait.c: read_consistency */
/* The primary has to be asked before a read may leave it. */
bool balance_is_lsn_due(const struct client *c);
/* Asks on c->link, which is the primary's. */
void balance_ask_lsn(struct client *c);
/* Asks c->link, a standby's that was borrowed for it, until it has replayed `lsn` or it takes too
 * long: balance_replay_goes_on when it has answered, true when it was asked again. */
void balance_ask_replay(struct client *c, uint64_t lsn);
bool balance_replay_goes_on(struct client *c);
/* What has to be known before the session's reads may leave the primary: asks on the own link. True
 * when it did. */
bool balance_asks_lsn(struct client *c);
/* True when the read has to stay, for it would have to be asked inside the client's transaction. */
bool balance_lacks_lsn(struct client *c);
/* Asks after a transaction what was missed in it. True when it did. */
bool balance_asks_wanted_lsn(struct client *c);
/* A row of the answer: `value` is the LSN, `segment` the size of a segment, as integers. */
void balance_on_lsn(struct client *c, struct slice value, struct slice segment);
/* Waits until the reader has replayed b->wait_lsn, or it takes too long; then the client's input
 * goes on. */
void balance_wait_begin(struct client *c, struct reader *r, uint64_t lsn);
void balance_wait_row(struct sessions *ss, int node, struct slice value);
void balance_wait_answered(struct reader *r);
/* The exchange has its link: the next one has to learn anew. */
void balance_wait_settle(struct client *c);

/* balance_shm.c: what workers know of each other */
/* The region BALANCE (supervisor), and a worker's view of it. */
void balance_plan_shm(const struct conf *conf, int nworkers, struct shm_plan *plan);
void balance_init_shm(const struct conf *conf, int nworkers, struct shm *shm);
void balance_worker_init(struct sessions *ss);
void balance_worker_fini(struct sessions *ss);
/* Learns what other workers changed in the catalogue since. */
void balance_worker_refresh(struct sessions *ss);
/* The schema has changed: all workers forget their answers. */
void balance_worker_ddl(struct sessions *ss);
/* The statement is sent; NULL: one that could not be looked at. If it may change the schema, all
 * workers forget their answers now, and when its transaction is over. */
void balance_note_schema(struct client *c, const struct sql_stmt *s);
/* The schema has not changed for a while: standbys know it, if they do not lag. */
bool balance_worker_is_settled(const struct sessions *ss);
/* Where plain reads go in the cluster as it is. */
const struct route_reads *balance_worker_reads(struct sessions *ss);
/* How often the schema has changed, as far as we are told. */
uint64_t balance_worker_change(const struct sessions *ss);
/* The catalogue's answer to a question that was sent after `change` changes: for all workers. */
void balance_worker_learn(struct sessions *ss, struct route_scope scope,
    const struct route_question *q, uint64_t change, int64_t now_us, uint32_t bits);
/* What this worker or another one was told. Returns 0, or -1 when it has to be asked for. */
int balance_worker_lookup(struct sessions *ss, struct route_scope scope,
    const struct route_question *q, int64_t now_us, uint32_t *bits);
/* A node has replayed this much, as it said itself. */
void balance_worker_replayed(struct sessions *ss, int node, uint64_t lsn);
const uint64_t *balance_worker_replayed_lsn(const struct sessions *ss);
/* Tables of marks of all workers. */
const struct route_marks *const *balance_worker_marks(const struct sessions *ss, unsigned *n);
/* Tables were written, and it is certain. */
void balance_worker_mark(struct sessions *ss, const uint64_t *key, unsigned n);
/* The node on which the server process runs, VIEW_NO_NODE when none of ours does. */
int balance_worker_node_of_pid(void *ctx, int32_t pid);

/* balance_ask.c: any link does that speaks for the client's user and has its search_path. */
int balance_lookup(void *ctx, const struct route_question *q, uint32_t *bits);
/* What stands for all answers that the client may get (route_input.answers_id). */
uint64_t balance_answers_id(const struct client *c);
/* Whom to ask what `d` has to ask: `primary`, or as relcache_query_target says. */
int balance_ask_node(const struct client *c, const struct route_decision *d, int primary);
/* Sends the questions of `d` on `link`, on which nothing is owed. Sets b->asking; the link's owner
 * calls balance_on_row for each of its own rows and balance_ask_done when it is quiet. */
void balance_ask(struct client *c, struct link *link, const struct route_decision *d);
void balance_on_row(struct client *c, struct slice body);
bool balance_row_values(struct slice body, struct slice *value, int n);
void balance_ask_done(struct client *c, struct link *link);
/* Its link is lost, and with it the answer. */
void balance_ask_lost(struct client *c);
/* Keeps the questions of `d` until the transaction is over, and asks what was kept. */
void balance_ask_later(struct client *c, const struct route_decision *d);
void balance_ask_missed(struct client *c);
/* The statement was sent to where writes go. When it is not known what it does, that is looked into
 * as soon as its transaction is over; until then reads stay. */
void balance_note_doubt(struct client *c, struct slice sql, const struct route_decision *d);
/* It never happened, or the session ends. */
void balance_drop_doubts(struct balance_own *own);
/* dml_adaptive_global: the tables that the statement writes to have to be known by number. True
 * when it asked. */
bool balance_asks_marks(struct client *c, const struct sql_facts *facts);
/* The same without asking: what there is to ask. */
bool balance_lacks_marks(
    struct client *c, const struct sql_facts *facts, struct route_decision *missing);
void balance_questions_free(struct balance_questions **qp);

/* balance_names.c */
/* The statement that a Bind or Describe names, or that a Parse would replace; NULL when there is
 * none. Sets *found: the message could name one. */
struct statement *balance_named_in(
    const struct client *c, char type, struct slice msg, bool *found);
/* A Parse of a name of which no server has said yet whether it is taken, or what names a statement
 * that may be skipped as it is put on its link, or one that is there again should its Close be
 * skipped: it has to wait. */
bool balance_is_name_undecided(const struct client *c, char type, struct slice msg);
/* The same of what PREPARE, EXECUTE and the like name. */
bool balance_are_names_undecided(const struct client *c, const struct sql_facts *facts);

#endif
