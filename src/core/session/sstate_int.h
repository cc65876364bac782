/* SPDX-License-Identifier: PostgreSQL
 * sstate_int.h: the session of a followed client. No link belongs to it: one is borrowed for a
 * transaction and given back when the server is quiet outside of one (in session mode the link
 * where writes go is kept between them). What makes the session is kept here, as data: its
 * settings, its prepared statements, what ties it to a link. doc/internals/architecture.md has its
 * phases.
 *
 * A link is brought up to date when it is borrowed: settings by one query in front of the client's
 * first message, statements when they are named. */
#ifndef PGP_SESSION_SSTATE_INT_H
#define PGP_SESSION_SSTATE_INT_H

#include "backend/prep.h"
#include "backend/varset.h"
#include "config/conf_struct.h"
#include "ipc/rows.h"
#include "names/names.h"
#include "parser/parser.h"

#include "plan_int.h"
#include "feed_int.h"
#include "sstate/savepoints_int.h"
#include "spans_int.h"

/* However many clients gave names of their own in SQL, so many of the others fit on a link. */
#define SSTATE_MIN_PREPARED 8
/* Statements made by PREPARE in SQL, per session; more of them tie it to its link. */
#define SSTATE_MAX_SQL_NAMES 64
/* More EXECUTE, one behind the other, are not followed. */
#define SSTATE_MAX_EXECUTES 8
/* What puts a link right is cut short by a cancel that came too late: made again so many times. */
#define SSTATE_MAX_REPAIRS 3
/* Messages kept, to be sent again when the link dies before it has answered. */
#define SSTATE_RETRY_MAX PLAN_KEPT_MAX
/* What that many clients at once need for an exchange is kept for the next ones. */
#define SPARE_ERRANDS 64

enum tx_end_kind {
    TX_END_BEGINS,   /* a transaction is open behind it: BEGIN, or AND CHAIN that has its tag */
    TX_END_CHAINS,   /* AND CHAIN, an error outside of a block: it makes no sequence one */
    TX_END_PLAIN,    /* COMMIT, ROLLBACK or PREPARE TRANSACTION */
    TX_END_COMMITTED /* its tag was COMMIT */
};

/* BEGIN, COMMIT or ROLLBACK in the present exchange: its tag says that it happened, and what the
 * settings are from then on. */
struct tx_end {
    struct tx_end *next;
    uint32_t serial;         /* of the op that the tag belongs to */
    uint16_t at;             /* which statement of its string */
    uint32_t nbehind;        /* so many are behind it there */
    uint8_t kind;            /* enum tx_end_kind */
    struct sstate_vars vars; /* behind COMMIT */
    struct sstate_vars tx;   /* behind ROLLBACK, which may be what the server makes of it */
};

/* A wish for a link, while it is one. */
struct link_wish {
    struct pool_request req;
    struct link_startup startup;
    struct paramset params; /* always empty: links that are shared are opened plainly */
};

/* Where the present exchange is, of a transaction whose reads may leave it. */
enum errand_place {
    PLACE_HOME,
    PLACE_STAYS, /* as it may not leave again: it would have had to wait */
    PLACE_OUT    /* a read that left, plan_away.c */
};

/* How the present exchange is sent: in one step by exchange_quick.c, and nothing behind it (untold:
 * the rows hear of its loan with that); up to a Flush (exchange_begin.c). */
enum errand_sending { SENDING_AS_IT_COMES, SENDING_QUICK_UNTOLD, SENDING_QUICK, SENDING_CUT };

/* What a client has only while it is not idle: from the first message of an exchange (or the login)
 * until it holds no link, waits for none, and is in no transaction. errand_begin makes it,
 * errand_end frees it. */
struct errand {
    /* What every exchange looks at stands together. */
    struct client *client;
    struct results *results;   /* what it has to do with the query cache; NULL mostly */
    struct errand *next_spare; /* of ss->spare_errands: all zero but for this and the two bufs */
    uint32_t kept_len;         /* of a sequence that may be sent again */
    uint32_t mark_pins;        /* before the present exchange */
    uint8_t ddl;               /* what the present transaction may change: DDL_ bits */
    uint8_t sending;           /* enum errand_sending */
    bool is_cancelled;         /* what waits for the answer to a question was cancelled: it fails */
    uint8_t place;             /* enum errand_place */
    uint8_t judged;            /* enum judged */
    struct names_entry *bound_first; /* the sequence that waits for its link binds it first */
    uint64_t last_portal;  /* a hash of the name that way.last_bound was bound to; 0: to none */
    uint64_t types;        /* of the parameters that were described last */
    uint32_t types_serial; /* of the op that `types` came in answer to */
    struct columns_look look;
    struct names_way way; /* what is under way with s->names */
    int64_t homeless_until_us;
    int64_t ask_until_us; /* with `home`: a link to ask on is waited for so long; 0: for none */
    struct list homeless_node; /* ss->homeless: waits for a primary; or ss->queued */
    struct link *home;         /* of the transaction, while a read runs elsewhere; else NULL */
    struct buf held;           /* what the kept link said while another one answers */
    struct paramset told;      /* what the client believes of parameters that may differ by now */
    struct sstate_vars tx;     /* before the transaction; NULL outside of one */
    struct buf
        begin; /* BEGIN that waits for the first statement; a spare errand keeps its memory */
    struct buf retry;        /* what may be sent again; a spare errand keeps its memory */
    struct buf early;        /* replies that are no answer yet */
    struct sstate_vars mark; /* before the present exchange; NULL outside of one */
    struct link_wish *wait;
    struct exchange_string string;
    bool was_discarded;  /* DISCARD ALL has happened in this exchange, whatever is behind it */
    bool commits_unseen; /* changes, and then what may have committed them without a word */
    uint16_t nresent;
    uint16_t nunfit;       /* links that refused the session's settings */
    uint16_t nskip;        /* messages that were answered with one before them */
    uint16_t op_flags;     /* of expect.h: who hears of what was noted in the present exchange */
    struct tx_leave leave; /* by the transaction */
    uint32_t tx_pins;      /* before the transaction */
    uint32_t untied;       /* by a DISCARD ALL that is not answered yet */
    struct mend mend;
    struct savepoints savepoints;
    struct tx_end *ends;     /* sent, their tags not seen; oldest first */
    struct tx_end *ended;    /* the last one that the client was told of */
    struct tx_end only_end;  /* mostly there is one at most, and this is it */
    int64_t stands_since_us; /* in a line of the worker that it came from; 0: in none */
    int64_t not_before_us;   /* of the next try */
    int64_t refused_us;      /* wall clock: a server that takes no writes; 0: none has */
    struct err *lost_words;  /* how the transaction that is untold was lost */
    struct err *last_words;  /* of the server, when it ends; NULL mostly */
    struct err *refusal; /* what the client is told instead of what the server says; NULL mostly */
    struct names_portal *portals;
};

/* Something in the present exchange changes settings. */
static inline bool errand_has_set(const struct errand *t)
{
    return t->mark.client != NULL;
}
/* Several statements in one query are being noted. */
static inline bool errand_in_string(const struct errand *t)
{
    return t->string.nstmts > 1;
}

/* What makes the session, idle or not. */
struct sstate {
    uint8_t phase;          /* enum phase */
    uint8_t mode : 2;       /* enum conf_pool_mode */
    uint8_t ran_code : 1;   /* that may have left something in it of which nothing is known */
    uint8_t ran_made : 1;   /* code of users', by its text: what that has left is on its link */
    uint8_t tx : 3;         /* enum sstate_tx */
    bool is_counted : 1;    /* the statement at hand, as it waits for a link */
    bool has_temp_path : 1; /* pg_temp may be in the search_path of the transaction */
    bool look_at_pins : 1;  /* something may have untied the session */
    uint8_t parameters : 2; /* enum sstate_parameters */
    uint8_t kept_uses : 1;  /* 0: `kept` was lent at the login, and nothing was asked on it since */
    struct exchange exchange;
    struct exchange_again again;
    struct loan loan;
    uint32_t pins;       /* bits by enum pin_reason */
    uint32_t shown_pins; /* as the client's row says */
    int16_t avoid_node;
    uint16_t defaults_seen; /* sessions.defaults_serial, when it was told */
    uint32_t version;       /* of the protocol, as the client speaks it */
    struct sstate_vars vars;
    struct varset *base; /* the start-up parameters */
    struct names names;
    struct errand *errand;  /* NULL while the client is idle */
    struct link *kept;      /* session mode: where it writes, until the goodbye; or NULL */
    uint64_t last_link;     /* id of the link borrowed last */
    int64_t avoid_until_us; /* reads keep away from avoid_node for a while */
};

_Static_assert(sizeof(struct sstate) <= 96, "an idle client has a budget");

/* Session mode: the link where writes go is the client's until the goodbye. */
static inline bool lent_keeps(const struct sstate *s)
{
    return s->mode == CONF_POOL_SESSION;
}
/* A RESET fell back to the server's default, on the link that the client has: its start-up
 * parameters are to be put there again. */
static inline bool sstate_is_reset(const struct sstate *s)
{
    return s->vars.client != s->vars.link;
}
static inline bool sstate_tx_is_lost(const struct sstate *s)
{
    return s->tx >= SSTATE_TX_LOST;
}
/* The next link puts right what the client believes. */
static inline void sstate_owe_parameters(struct sstate *s)
{
    if (s->parameters == PARAMETERS_TOLD)
        s->parameters = PARAMETERS_OWED;
}
/* The client is told of it. */
static inline void sstate_tx_tell(struct sstate *s)
{
    if (s->tx == SSTATE_TX_UNTOLD)
        s->tx = SSTATE_TX_LOST;
}

/* leg.c: borrowing and giving back */
void leg_free(struct client *c);
/* Makes c->sstate->errand unless it is there. */
void errand_begin(struct client *c);
/* Frees it if the client is idle; c->sstate may be NULL. The last thing that a callback does. */
void errand_end(struct client *c);
/* Frees what is kept for the next client that needs it. */
void errand_spare_free(struct sessions *ss);
/* Borrows a link of `node`. FEED_PASS: c->link is there. FEED_PARK: later; what is parked asks
 * again then. `to_ask`: it is for a question of ours, in front of what is parked. */
enum feed_step leg_attach(struct client *c, int node, bool to_ask);
/* A link was opened. If that was to ask something, the statement in front of which is asked has no
 * node yet: the client asks anew, and gets this link, also where none is kept for later. */
void leg_on_opened(struct client *c, struct link *link);
/* leg_attach for a client that has not asked yet: false when it has to wait for anything. The link
 * is up to date unless c->sstate->loan.is_fresh. */
bool leg_attach_at_once(struct client *c, int node);
/* Is what others left on a link that it has to go first? With reset_between_clients, and from one
 * that it keeps. */
bool lent_must_reset(const struct client *c, const struct link *link);
static inline uint32_t sstate_number(const struct client *c)
{
    return c->row == NULL ? UINT32_MAX : c->row->id;
}
/* True when it would be had, at where the client's writes go. */
bool sstate_has_ready_link(struct client *c);
/* Brings a link that was just borrowed up to date; what that takes goes behind what `run` holds.
 * FEED_PARK: it takes a moment. */
enum feed_step leg_make_ready(struct client *c, struct feed_run *run);
/* The settings only; `meanwhile`: PHASE_SYNCING or PHASE_ASK_SYNCING, while they are waited for. */
enum feed_step lent_put_settings(struct client *c, struct feed_run *run, enum phase meanwhile);
/* Puts the encoding of its text in front of a query that takes the link from one set to another. */
void lent_put_encoding(
    struct client *c, struct feed_run *run, const struct varset *from, const struct varset *to);
/* The loan is over, whatever becomes of the link. */
void leg_forget_loan(struct client *c);
/* After an exchange: puts right what a RESET did to start-up parameters, and asks what ties the
 * session. True when something was sent: it goes on when the link is quiet again. `meanwhile`:
 * PHASE_REPAIRING or PHASE_ENDING. */
bool leg_repair(struct client *c, enum phase meanwhile);
/* A repair is over. True when it was cut short and is made again, or the link is gone for it. */
bool leg_repair_again(struct client *c);
/* Stops asking for a link; harmless when it does not. */
void lent_leave_queue(struct client *c);
/* Gives the link back when nothing stands against it. */
void leg_detach(struct client *c);
/* errand_end for an errand in which nothing was but what exchange_quick.c does. */
void errand_end_quick(struct client *c);
/* Gives the link back as soon as the client is not in the midst of a message to it (CopyData, after
 * an error): now, or PHASE_LEAVING until leg_detach_if_due. */
void leg_leave(struct client *c);
void leg_detach_if_due(struct client *c);
/* What was borrowed last is given back, whatever state it is in; nothing is waited for any more. */
void leg_drop_loan(struct client *c, bool boundary);
/* leg_drop_loan, and a home that is aside: the client goes, or is sent away. */
void leg_drop_link(struct client *c, bool boundary);
/* True while replies are expected, or the session is on its way to a link. */
bool sstate_is_busy(const struct client *c);

/* exchange_login.c */
/* True when a session in session mode is made of settings and statements, too: over one server its
 * link has all of that, and nobody looks at what is said. */
bool sstate_is_followed(const struct client *c);
/* Makes c->sstate when this client's pool is shared; its start-up parameters become settings. */
void exchange_login_begin(struct client *c);
/* True when the client can be greeted without a link: greetings have what servers
 * say to clients with its start-up parameters. */
bool exchange_login_needs_no_link(struct client *c);
/* True when a client that waits for a free link is greeted without: it was to be asked about the
 * role, which the first link that anybody gets is then, or what is known is old. */
bool exchange_login_waits_for_none(struct client *c);
/* True when the client's link was opened with a password that the client alone knows: nobody else's
 * login can open one like it, and none may be given it. */
bool exchange_login_is_relayed(const struct client *c);
/* client_kind.follow of a relayed one that has had no link. */
bool exchange_login_follow(struct client *c);
/* No server can be had: makes the client one that can be greeted without. False: it cannot be. */
bool exchange_login_alone(struct client *c);
/* The first link of such a client: tells it what the settings really are. */
void sstate_correct_client(struct client *c, const struct link *link);
/* A link of its own node is there, as others have left it: has a reload changed what nobody has
 * SET? Clients that do not know yet are told with what they ask next. */
void sstate_look_at_defaults(struct client *c, struct link *link);
/* The client's kind, by which greetings are kept. */
struct greeting_kind greeting_of(const struct client *c);
/* A link for the login is there: true when the welcome can be said at once. */
bool exchange_login_granted(struct client *c);
/* The welcome was said. */
void exchange_login_done(struct client *c);
/* Forgets the start-up packet that came last. */
void exchange_login_forget(struct sessions *ss);
/* SYNCING during the login is over. */
void exchange_login_synced(struct client *c);

/* Makes c->sstate: nothing borrowed, `params` as settings. False when they cannot be. */
bool exchange_login_new(
    struct client *c, const struct paramset *params, enum conf_pool_mode mode, uint32_t version);

/* exchange_link.c: what a borrowed link says */
extern const struct link_owner_ops exchange_link_ops;

/* The client believes that parameter `name` is `value`, and will not hear otherwise at once. */
void sstate_remember_told(struct sstate *s, struct slice name, struct slice value);
/* sstate_reports.c: a borrowed link reports one (link_owner_ops). */
void sstate_on_parameter(void *owner, struct link *link, struct slice name, struct slice value);

/* exchange_lost.c: a link dies */
/* A read of which the client has seen nothing: it can be made again, elsewhere. */
bool exchange_may_send_again(struct client *c, const struct link *link);
void exchange_on_lost(void *owner, struct link *link, const struct err *err, bool told);
/* Answers the first parked request with `err`, and goes on with the rest. */
void follow_fail_parked(struct client *c, const struct err *err);
/* Refuses what is parked because its client has cancelled it. */
void follow_cancel_parked(struct client *c);
/* True when a read was to be made again, and has failed: a view of it may write (plan.nunsure). */
bool follow_refuse_unsure(struct client *c);

/* Sends again what is kept in `retry`: the link has not begun to answer it, or has done nothing. */
void leg_send_again(struct client *c);
/* Gives the link back; what is kept in `retry` is sent when there is a primary. */
void exchange_send_later(struct client *c);

/* client_console.c: whatever was asked for client_judge is for nobody. */
void sstate_judge_end(struct client *c);

/* feed_followed.c: a statement that is refused here in the midst of a sequence is replaced by one
 * that no server can parse. */
#define REFUSED_NAME     "pgp_refused"
#define REFUSED_FUNCTION "a_statement_of_this_transaction_was_refused"
extern const char refused_query[];
/* The server will owe the end of an exchange. */
void lent_expect_end(struct client *c, unsigned op);
enum feed_step follow_refuse(struct client *c, struct feed_run *run, const struct err *err);

/* follow_virtual.c: BEGIN, COMMIT and ROLLBACK that need no server. True when it was answered. */
bool follow_virtual_query(struct client *c, struct slice sql, const struct sql_facts *facts);
/* follow_virtual_query for messages at `p` that parse, bind and execute such a word: all of them
 * are answered, errand->nskip of them are still to be taken. */
bool follow_virtual_word(struct client *c, const char *p, const char *end);
/* The client was told this BEGIN by another worker. */
void follow_virtual_begin_again(struct client *c, struct slice sql);
/* Sends the BEGIN that was answered; its replies are swallowed. */
void follow_virtual_put(struct client *c, struct feed_run *run);

/* plan_away.c: reads of a transaction of which no server knows yet run elsewhere, by themselves */
/* client_kind.begun. */
void plan_away_begun(struct client *c, const struct sql_tx *tx);
/* BEGIN was answered, or is sent alone. */
void plan_away_begin(struct client *c, const struct sql_tx *tx);
/* A statement is sent to where the transaction lives: it may keep the reads behind it there. */
void plan_away_note_home(struct client *c, const struct sql_stmt *st);
/* An error of such a read: true when it is kept from the client. */
bool leg_away_on_error(struct client *c, struct link *link, const struct errmsg *m);
/* A read that left is over: the link is still there. True when it is sent again, where the
 * transaction lives. */
bool leg_away_over(struct client *c, bool failed, bool was_cut);
/* The link was lost, and the client was told. */
void plan_away_lost(struct client *c);
/* A read elsewhere has failed: so has the transaction at home. */
void plan_away_fail(struct sstate *s);

/* plan_aside.c: the link of a transaction while a read of it runs elsewhere */
/* A transaction has its link, where nothing runs and nothing has to be put right. */
bool plan_aside_can(const struct client *c);
/* A read may leave it, which could be set aside for that. */
bool plan_aside_may(const struct client *c);
/* A read-only transaction lives on a standby, and `sql` reads what the primary alone has: an
 * unlogged or a temporary table. The home could be set aside for that. Facts are gone then. */
bool plan_aside_lacks(struct client *c, struct slice sql);
/* The home that is aside is a standby's: a read-only transaction lives there. */
bool plan_aside_is_standby(const struct client *c);
void plan_aside_set(struct client *c);
/* The home is the client's link again, which has none. */
void plan_aside_return(struct client *c);
/* plan_aside_return when the read that the link was set aside for does not leave. */
void plan_aside_come_back(struct client *c);
/* A link dies: true when it was a home that is aside. */
bool plan_aside_on_lost(struct client *c, const struct link *link);
/* The client goes. */
void plan_aside_drop(struct client *c, bool boundary);

/* exchange_results.c, client_kind.may_ask of who is balanced: nobody waits for the primary. */
bool exchange_has_link_to_ask(struct client *c);

/* exchange_begin.c: where an exchange goes */
/* `facts` may be NULL (not looked at); they are those of the last parse afterwards. `is_alone`: it
 * is not sent while anything else runs. FEED_PASS: the link is there and up to date. */
enum feed_step exchange_begin_query(struct client *c, struct feed_run *run, struct slice sql,
    struct slice msg, const struct sql_facts **facts, bool is_alone);
enum feed_step exchange_begin_batch(
    struct client *c, struct feed_run *run, const char *p, const char *end);
/* Parts of these, for exchange_quick.c. A link of that node, brought up to date; or none yet. */
enum feed_step exchange_get_link(struct client *c, struct feed_run *run, int node);
/* VIEW_NO_NODE in place of where the client writes, while no primary takes that. */
static inline int exchange_node_of_write(const struct client *c, int node)
{
    return node == c->pool->cluster_node && node < POOLS_FIRST_TARGET &&
                   sessions_must_hold_writes(c->ss)
               ? VIEW_NO_NODE
               : node;
}
/* The messages of the exchange are kept as long as it may be sent again. */
void leg_keep(struct client *c, struct slice msgs);
/* What is kept is a transaction of its own, which nothing stands in front of. */
bool leg_may_resend(const struct client *c);
/* PGPOOL EXPLAIN: what the statement itself would ask or wait for comes first. False: nothing. */
bool exchange_asks_first(struct client *c, struct slice sql);
/* A connection of that node was lost a moment ago. */
bool sstate_is_avoided(const struct client *c, int node);
/* The link was told a simple query of ours: the unnamed statement is gone there. */
void lent_lose_unnamed(struct client *c);
/* Something goes behind what could have been sent again: from here on that would mix up answers. */
void leg_stop_keeping(struct client *c);
/* plan_route.c: client_kind.sent and .routed. */
void plan_route_note(struct client *c, struct slice sql);
void plan_routed(struct client *c, enum route_event event);

/* client_kind.place, and what it is for those of whom nothing leaves. */
bool exchange_quick_place(struct client *c, struct prep *prep, struct slice sql,
    const struct sql_facts *facts, int *node);
bool exchange_quick_place_home(struct client *c, struct prep *prep, struct slice sql,
    const struct sql_facts *facts, int *node);
/* exchange_quick.c: plain statements of a client that is idle and untied: most are. FEED_AGAIN: it
 * is not one, or has to be looked at further; nothing was done. */
/* The client was idle before this message. */
enum feed_step exchange_quick_query(struct client *c, struct feed_run *run, struct slice sql,
    struct slice msg, const struct sql_facts *facts);
/* A sequence that is there as a whole; FEED_PASS: *whole is its end. */
enum feed_step exchange_quick_batch(
    struct client *c, struct feed_run *run, const char *p, const char *end, const char **whole);
/* In a transaction that runs: true when a plain statement may be sent as it is. */
bool exchange_quick_goes_on(struct client *c, struct slice sql);
/* All is answered. True when that was such a statement, and nothing is left of it: the link went
 * back, or the transaction goes on. */
bool exchange_quick_ends(struct client *c);

/* sstate_effects.c: what statements would do to the session */
/* Whether advisory locks are taken, which would be in vain on a standby. */
bool effects_takes_advisory_locks(const struct sql_stmt *st);
/* A function that lets go of advisory locks of the session. */
bool effects_is_unlock(struct slice function);
/* One statement of a string; all of it when that is not known. */
struct slice effects_stmt_text(const struct sql_stmt *st, struct slice sql);
/* What has to be known before a statement is sent. */
/* What is then on its link, and followed by nobody. DISCARD ALL undoes a setting, and no MORE. */
enum sstate_leaves { SSTATE_LEAVES_NOTHING, SSTATE_LEAVES_SETTING, SSTATE_LEAVES_MORE };
/* What changes anything is not sent while something else runs. */
enum sstate_changes {
    SSTATE_CHANGES_NOTHING,
    SSTATE_CHANGES_TX,     /* words of a transaction, and nothing else */
    SSTATE_CHANGES_SESSION /* something that is followed, or what ties */
};
struct effects {
    uint32_t pins;   /* it ties the session, by reason */
    bool look;       /* whether it ties is for the server to say, once it is done */
    uint8_t leaves;  /* enum sstate_leaves */
    uint8_t changes; /* enum sstate_changes */
};
void effects_of(const struct sql_facts *facts, struct slice sql, struct effects *out);
/* effects_of for this client: with pg_temp in its search_path what it creates may be temporary. */
void effects_here(
    const struct client *c, const struct sql_facts *facts, struct slice sql, struct effects *out);
/* What is kept beside the facts of a text: its enum count_kind, and whether it is plain: one
 * statement that reads or writes rows, changes nothing that is followed, ties nothing, names no
 * prepared statement and has no word of a transaction in it. No literal of it matters. */
#define EFFECTS_COUNT_KIND 0x0Fu
#define EFFECTS_IS_PLAIN   0x10u
#define EFFECTS_IS_JUDGED  0x20u
/* Kept with the facts: a read without a parenthesis, so that no function it names leaves anything
 * behind in the session, and nothing follows it. */
#define EFFECTS_IS_TRACELESS 0x40u
/* Kept with the facts: a read that calls no function by name and locks nothing. */
#define EFFECTS_CALLS_NOTHING 0x80u
/* A text that is one word of a transaction, which changes nothing but that. */
#define EFFECTS_IS_TX_WORD 0x100u
/* Kept with the facts: code that somebody has made may run in it. */
#define EFFECTS_RUNS_CODE 0x200u
uint32_t effects_judge(const struct sql_facts *facts, struct slice sql);
static inline uint32_t effects_traits(const struct sql_facts *facts, struct slice sql)
{
    if (facts->traits != NULL && *facts->traits != 0)
        return *facts->traits;
    return effects_judge(facts, sql);
}

/* follow.c: what statements do to the session */
/* A statement is sent: the state becomes what it will be if that works. */
void follow_note(struct client *c, struct slice sql, const struct sql_facts *facts);
/* A query that was not looked at. */
void follow_note_unread(struct client *c);
/* CALL or DO: in a sequence it may commit what is in front of it, or undo that. */
void follow_note_code(struct client *c);
/* A statement of the client has ended with `tag`, which is passed on. */
void follow_note_tag(struct client *c, struct slice tag);
/* An exchange is over. */
void follow_settle(struct client *c);
void follow_free(struct client *c);
/* A transaction of which no server knows is over. */
void follow_end_lost(struct sstate *s);
/* The link that would have ended it is gone: what its replies were to be does not count for the
 * next. */
void follow_forget_ends(struct sstate *s);
/* The transaction is still that of the first word that was skipped behind an error, or never
 * answered. */
void follow_forget_skipped(struct sstate *s);
/* What `tx` holds is the beginning of a sequence, which may have been committed in parts. */
static inline bool sstate_tx_is_sequence(const struct sstate *s)
{
    return s->exchange.tx_is_string && !errand_in_string(s->errand);
}
/* ROLLBACK was sent for it: its settings are those from before. */
void follow_roll_back(struct client *c);
/* The client's row and the link's say what ties them. */
void leg_show_pins(struct client *c);

/* sstate_vars.c: settings */
/* SET, RESET, set_config(), DISCARD. False when the setting cannot be followed. */
bool sstate_vars_note(struct sstate *s, const struct sql_stmt *st, struct slice text);

/* follow_execute.c: portals */
void follow_execute(struct client *c, struct slice msg);
/* follow_names.c: prepared statements */
/* An error in answer to a message of ours. True: a PREPARE could not be repeated. */
bool follow_sql_load_failed(struct client *c, const struct errmsg *m);
/* What the client is to be told instead of this error: such a PREPARE's, as an ErrorResponse; NULL:
 * nothing else. */
const char *follow_sql_why(struct client *c, const struct errmsg *m);
/* A Parse is answered here: the client has the statement, and no link is told. No other one of that
 * name is there. `body`: what follows the name in the message. */
void follow_names_learn(struct client *c, struct slice name, struct slice body);
/* follow_known.c: while all links are in use. A Parse of a name and a Sync, of a text that a link
 * knows: answered here when this is true, up to that Sync. */
bool follow_known_parsed(struct client *c, struct slice msg, const char *end);
/* A sequence of nothing but Close at `p`: true when it was answered, up to its Sync or Flush;
 * errand->nskip of its messages are still to be taken. */
bool follow_known_closed(struct client *c, const char *p, const char *end);
/* Messages of the extended protocol that name statements; `msg` may be incomplete. */
enum feed_step follow_parse(struct client *c, struct feed_run *run, struct slice msg);
enum feed_step follow_bind(struct client *c, struct feed_run *run, struct slice msg, bool is_whole);
/* More of this Bind has come than the names, but not all: what it does depends on its values. */
bool follow_bind_wants_whole(const struct client *c, struct slice msg);
enum feed_step follow_describe(struct client *c, struct feed_run *run, struct slice msg);
enum feed_step follow_close(struct client *c, struct feed_run *run, struct slice msg);
/* True when what has to be brought to the link for such SQL could fail in the middle of the
 * client's sequence: what runs has to be over first. */
bool follow_sql_go_alone(const struct client *c, const struct sql_facts *facts);
/* True when something in the sequence may change the session, as far as can be seen, or depends on
 * how what runs ends: then it is not sent while another one runs, for it must be known which of the
 * two failed. */
bool follow_names_go_last(struct client *c, const char *p, const char *end);
/* PREPARE, EXECUTE, DEALLOCATE in SQL: before it is sent. */
void follow_sql_before(struct client *c, struct feed_run *run, const struct sql_facts *facts);
/* All statements made by PREPARE in SQL are on the link after this. */
void follow_sql_load(struct client *c, struct feed_run *run);
/* PREPARE was sent. DEALLOCATE was. */
void follow_sql_note_prepare(struct client *c, const struct sql_stmt *st, struct slice sql);
void follow_sql_note_deallocate(struct client *c, const struct sql_stmt *st);
/* The client's statement that this text, EXECUTE alone, runs; NULL: none, or something else. */
struct names_entry *follow_sql_executes(const struct client *c, const struct sql_facts *facts);
/* follow_types.c */
/* What names mean to the client, as the hash under which a new Parse of `body` (behind its name) is
 * shared. */
uint64_t follow_types_path(const struct client *c, struct slice body);
/* Has the server to find out a type of a Parse, or may one that the client names become another? */
bool follow_types_are_open(struct slice body);
/* A type that a server has told; 0: it may have another number on the next server, where that is no
 * copy of this one. */
uint32_t follow_types_known(const struct client *c, uint32_t type);
/* Links have different types for it, by DDL that nobody saw: who parses its text now gets another
 * statement. */
void follow_types_differ(const struct client *c, const struct prep *p);
/* Notes a text that is sent: DDL counts when its transaction is over. */
void follow_types_note(struct client *c, struct slice sql, const struct sql_facts *facts);
/* Notes a text that is too long to be read; its link is not lent to others. */
void follow_types_note_unread(struct client *c);
/* Tells the others, when the transaction is over. */
void follow_types_settle(struct client *c, char tx_status);
/* True when the error is about types of a statement that was parsed before, and `may_replan`: the
 * sequence that it ended may be sent again with a new one. */
bool follow_types_are_stale(struct client *c, const struct errmsg *m, bool may_replan);
/* True when the sequence is there as a whole, names a statement, and the client cannot be surprised
 * by other columns: it asks for them here, or never did. Then it can be sent again should the plan
 * be stale. *end is set behind its Sync. */
bool follow_may_replan(const struct client *c, const char *p, const char **end, bool *is_closed);
/* True when the kept sequence makes all statements with names that it uses: its client was told
 * nothing of their types before. */
bool follow_parses_all(const struct client *c);
/* Forgets the plans of the statements that the messages of `batch` parse, describe, bind or
 * EXECUTE. */
void follow_replan(struct client *c, struct feed_run *run, struct slice batch);
/* lent_names.c */
/* Something whose fate is not known yet, of the next op. */
void lent_names_push(struct client *c, enum names_pending_kind kind, struct prep *prep,
    struct names_entry *name, bool sent);
/* The next op makes `prep` the unnamed statement of the client, NULL: takes it away. */
void lent_names_unnamed(struct client *c, struct prep *prep);
/* The statement that is being noted makes or drops names (struct names_word). */
void lent_names_word(struct client *c, struct names_entry *entry);
/* names_note_tag. */
bool lent_names_on_tag(struct client *c, uint32_t serial, int at);
/* What became of the statements under way. */
void lent_names_settle(struct client *c);
/* The exchange is over on its link, of which the client has been told nothing, and will be sent
 * again: its names are what they were before it. */
void lent_names_undo(struct client *c);
/* The link is dead: what it said of statements before that holds. */
void lent_names_settle_told(struct client *c, struct link *link);

/* lent_put.c: messages of ours, their replies swallowed */
void lent_put_close(struct client *c, struct feed_run *run, struct slice name);
/* Close as an entry of that kind. */
void lent_put_close_as(struct client *c, struct feed_run *run, struct slice name, unsigned op);
/* Is it one of the names that we give? */
bool lent_is_our_name(struct slice name);
/* One more statement comes to the link: with it there are no more than max_prepared_statements.
 * True when that took a message. */
bool lent_make_place(struct client *c, struct feed_run *run);
/* Ends what stands before it, but never a sequence of the client's that is open: it would commit
 * what that did, and end the skipping behind an error. */
void lent_put_sync(struct client *c, struct feed_run *run);
void lent_put_parse(
    struct client *c, struct feed_run *run, struct prep *p, struct slice name, unsigned op);
/* A Parse of which not all is there, and that is too long to be looked at. */
enum feed_step follow_parse_unread(struct client *c, struct feed_run *run, struct slice msg);
/* The link knows the statement after this. */
void follow_load(struct client *c, struct feed_run *run, struct prep *p);
/* A message with the client's name of a statement in it, sent with ours. `at` is where the name
 * begins in the body. */
void follow_put_renamed(
    struct feed_run *run, struct slice msg, size_t at, size_t name_len, const struct prep *p);
/* follow_prep_of for a statement that was parsed when names meant `path_hash`. */
struct prep *follow_prep_with(struct client *c, struct slice body, uint64_t path_hash);
/* An entry for the statement, not among the names yet. */
struct names_entry *follow_names_of_prep(struct slice name, struct prep *p);
/* The client has no statement of this name: the link must not have one either. */
void lent_forget_foreign(struct client *c, struct feed_run *run, struct slice name);

/* follow_execute.c */
/* A Bind, p == NULL: of something that is not known. What executing it will do to the session. */
void follow_portal_bound(
    struct client *c, struct feed_run *run, struct slice portal, struct prep *p, struct slice bind);
/* FETCH or MOVE in SQL may execute any portal that has a name. */
void follow_note_fetch(struct client *c);

/* sstate_effects.c */
/* What was prepared by the protocol under a name and may change the session; its facts are beside
 * those that are in use. NULL: nothing. */
const struct sql_stmt *effects_of_name(const struct client *c, const struct names_entry *n);
/* follow_sql.c */
bool sstate_names_a_statement(const struct sql_stmt *st);
/* Bound: a statement whose SQL may name others. */
void follow_sql_load_names(struct client *c, struct feed_run *run, struct slice sql);

/* Formats and values of a Bind, as far as they are there. */
struct slice follow_bound_values(struct slice body);

/* sstate_facts.c */
/* What was done on the kept link is lost with it: the session cannot go on without. */
bool sstate_is_tied(const struct client *c);
/* The link that what is sent again does not go to once more; 0: none. */
uint64_t sstate_link_to_avoid(const struct client *c);

#endif
