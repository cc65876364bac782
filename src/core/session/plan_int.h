/* SPDX-License-Identifier: PostgreSQL
 * plan_int.h: what the router is told of a client and says of its statements, and what has to be
 * asked of servers before it can. The client's reads leave in exchange_begin.c and
 * exchange_quick.c. */
#ifndef PGP_SESSION_PLAN_INT_H
#define PGP_SESSION_PLAN_INT_H

#include "plan/plan.h"
#include "route/route.h"
#include "route/route_oracle.h"
#include "route/route_reads.h"
#include "route/route_trace.h"
#include "wire/message.h"

#include "client_int.h"

/* What a standby says of a read that is in the way of replay. */
#define PLAN_CONFLICT "40001"

/* Tables written in one transaction that are told apart. */
#define PLAN_MAX_MARKS 64
/* Questions for one statement. Views within views take one each; a server that never answers what
 * was asked must not be asked for ever. */
#define PLAN_ASKS_MAX 50

/* What is asked on the link that is borrowed for it. */
enum plan_asking { ASKING_NONE, ASKING_CATALOGUE, ASKING_LSN, ASKING_REPLAY };

/* The last write of the session, as far as its place in the WAL matters. */
enum plan_lsn {
    PLAN_LSN_KNOWN,
    PLAN_LSN_DUE,  /* it has written since it knew that */
    PLAN_LSN_FRESH /* asked for this very exchange */
};

/* What was sent is a lone ROLLBACK; or it commits, but leaves a transaction open. */
enum plan_end { PLAN_END_NONE, PLAN_ROLLS_BACK, PLAN_COMMITS_MIDWAY };

/* A wait for a standby to replay. Over: it took too long, and this exchange stays. */
enum plan_wait { PLAN_WAITS_NOT, PLAN_WAITS, PLAN_WAIT_OVER };

struct plan_questions;
struct plan_doubts;

struct plan {
    struct route_session rs;          /* for the router; `trace` is ours */
    char *application_name;           /* at the login; NULL: none */
    struct plan_questions *questions; /* under way; NULL mostly */
    struct plan_doubts *doubts;       /* what was run without being known; NULL mostly */
    uint64_t *mark; /* tables written since the session was at rest, for dml_adaptive_global */
    uint64_t wait_lsn;
    uint32_t wait_until_ms; /* of the loop's clock, with PLAN_WAITS */
    uint32_t choice;        /* its place in the even sequence of choices */
    uint16_t ndraws;        /* from there on; the last is kept while the client is parked for it */
    uint8_t nmarks;
    char tx_status;     /* as ReadyForQuery would say */
    uint8_t reason;     /* enum route_reason of the last decision */
    uint8_t nasked : 6; /* questions for the statement at hand; PLAN_ASKS_MAX: no more */
    uint8_t asking : 2; /* enum plan_asking */
    /* Relations of a read that is made again: not asked of, or views that write. */
    uint8_t nunsure : 5;
    bool keeps_random : 1;
    uint8_t end : 2;  /* enum plan_end */
    bool did_ddl : 1; /* since the session was at rest, or in the open transaction */
    /* read_consistency */
    uint8_t lsn : 2;  /* enum plan_lsn */
    uint8_t wait : 2; /* enum plan_wait */
};

_Static_assert(sizeof(struct plan) <= 104, "an idle client has a budget");
_Static_assert(PLAN_MAX_MARKS <= UINT8_MAX, "balance.nmarks");

/* The next statement may ask again. */
static inline void plan_ask_reset(struct plan *b)
{
    b->nasked = 0;
}
/* For the statement at hand nothing more is asked: it goes where writes go. */
static inline void plan_ask_stop(struct plan *b)
{
    b->nasked = PLAN_ASKS_MAX;
}
static inline bool plan_ask_is_over(const struct plan *b)
{
    return b->nasked == PLAN_ASKS_MAX;
}

/* plan_judge.c: needs no link. Called between login and goodbye; c->pool and c->login must be
 * there at plan_begin, c->link may be NULL at any time. */
/* c->plan of a client that nothing of leaves where writes go: there is nothing to ask, nothing
 * is in doubt. Never written. */
struct plan *plan_none(void);
/* Makes another when this client's reads can be balanced at all. */
void plan_begin(struct client *c);
/* The standby of `link` asks, and nothing known answers it, or it refuses the user: reads of the
 * session stay at home. SHOW says so, and once an hour for each user the log. */
void exchange_note_no_login(struct client *c, const struct link *link, const struct err *refusal);
/* exchange_note_no_login, and reads keep away from the node: from then on, or for a moment while
 * what answers its server is being looked for. */
void exchange_avoid_no_login(struct client *c, const struct link *link, const struct err *refusal);
/* Frees it. Harmless without one. */
void plan_free(struct client *c);
/* What the router says of `sql`. `facts`: those of plan_facts. When d->must_ask is set: plan_ask,
 * and again. */
void plan_decide_facts(
    struct client *c, struct slice sql, const struct sql_facts *facts, struct route_decision *d);
/* plan_facts and plan_decide_facts of a client in one; client_kind.judge. */
plan_judge_fn plan_decide;
/* What the router says of a prepared statement of a followed client. */
void plan_decide_prep(struct client *c, struct prep *p, struct route_decision *d);
/* The node for a read that is `known` (route_decision.known; `by_facts`: route_known_of) while
 * no transaction is open, and what there is to note of that. VIEW_NO_NODE: it has to be decided;
 * the draw is kept for that, and until somebody has settled otherwise. */
int plan_known_node(struct client *c, uint64_t known, bool by_facts);
/* What it says of a statement that has its node: without another draw, which would spoil the even
 * sequence. */
const struct sql_facts *plan_decide_again(
    struct client *c, struct slice sql, struct route_decision *d);
/* What it says of a statement that has run, outside of transactions: d->must_ask is set while
 * anything of it is not known. */
void plan_decide_afterwards(struct client *c, struct slice sql, struct route_decision *d);
/* The draw that was kept was for a statement that is not made: the next one gets it. */
void plan_undraw(struct client *c);
/* The statement is sent to where writes go: it may decide about later reads. */
void plan_note_write(struct client *c, const struct route_decision *d);

/* plan_case.c: the case of a client that has no link to send on (plan.h). It may be moved to
 * another node's pool for that. */
void plan_case_of(struct client *c, struct plan_case *in);

/* plan_again.c: what may be sent again elsewhere */
/* True when the messages do nothing at all when they fail. */
bool plan_again_is_whole(struct client *c, struct slice msgs);
/* True when they read, and do nothing but that, if the relations that are `missing` do. */
bool plan_again_is_read(struct client *c, struct slice msgs, struct route_decision *missing);
/* client_kind.reads. */
bool plan_reads(struct client *c, struct slice sql);
/* True when all that a link, outside of a transaction, owes for these messages is ReadyForQuery,
 * and that cannot be an error any more: a lone statement of a simple query is committed before its
 * CommandComplete; in the extended protocol that is true of reads alone. */
bool plan_again_is_over(struct client *c, const struct link *link, struct slice msgs);
/* Something that is owed there is for the client. */
bool plan_owes_client(const struct expect *owed);
/* Puts what the client sent since behind what is made again, and frees it there. `is_open`: the
 * Sync was not sent yet, so that what is left of the sequence is in both. */
void plan_again_join(struct client *c, struct buf *kept, bool is_open);

/* sessions_view.c */
/* All servers in use have been asked since: whoever is the primary now has said so. */
bool sessions_all_asked_since(const struct view *v, int64_t since_us);

/* Where a statement would go: client_explain_asks and client_explain, by kind. */
bool exchange_explain_asks(struct client *c, struct slice sql);
const struct sql_facts *exchange_explain_home(
    struct client *c, struct slice sql, struct explained *out);
const struct sql_facts *exchange_explain_away(
    struct client *c, struct slice sql, struct explained *out);

/* The statement is sent: the tables it writes to, for dml_adaptive_global. */
void plan_note_marks(struct client *c, const struct sql_stmt *s);
/* Somebody wrote to a table that has no name here (dml_adaptive_global). */
void plan_mark_all(struct client *c);

/* plan_wait.c: read_consistency */
/* The primary has to be asked before a read may leave it. */
bool plan_is_lsn_due(const struct client *c);
/* Asks on c->link, which is the primary's. */
void plan_ask_lsn(struct client *c);
/* Asks c->link, a standby's that was borrowed for it, until it has replayed `lsn` or it takes too
 * long: plan_replay_goes_on when it has answered, true when it was asked again. */
void plan_ask_replay(struct client *c, uint64_t lsn);
bool plan_replay_goes_on(struct client *c);
/* A row of the answer: `value` is the LSN, `segment` the size of a segment, as integers. */
void plan_on_lsn(struct client *c, struct slice value, struct slice segment);
void plan_wait_row(struct sessions *ss, int node, struct slice value);
/* client_kind.chosen: the exchange has its link, or waits for something: then its draw holds. */
enum feed_step plan_chosen(struct client *c, enum feed_step step);
/* The exchange has its link: the next one has to learn anew. */
void plan_wait_settle(struct client *c);

/* plan_ask.c: any link does that speaks for the client's user and has its search_path. */
int plan_lookup(void *ctx, const struct route_question *q, uint32_t *bits);
/* What stands for all answers that the client may get (route_input.answers_id). */
uint64_t plan_answers_id(const struct client *c);
/* The scope whose answers of the catalogue count for the client. */
struct route_scope plan_scope(const struct client *c);
/* Sends the questions of `d` (NULL: those kept) on `link`, on which nothing is owed. Sets
 * b->asking; the link's owner calls plan_on_row for each of its own rows and plan_ask_done when it
 * is quiet. */
void plan_ask(struct client *c, struct link *link, const struct route_decision *d);
void plan_on_row(struct client *c, struct slice body);
void plan_ask_done(struct client *c, struct link *link);
/* Keeps the questions of `d` until the transaction is over, and asks what was kept. */
void plan_ask_later(struct client *c, const struct route_decision *d);
void plan_ask_missed(struct client *c);
/* A read is made again, if what is `missing` reads: asks on the next link. nunsure is 0 when it
 * does; plan_unsure_end in any case. */
void plan_ask_unsure(struct client *c, const struct route_decision *missing);
void plan_unsure_end(struct client *c);
/* The statement was sent to where writes go. When it is not known what it does, that is looked into
 * as soon as its transaction is over; until then reads stay. */
void plan_note_doubt(struct client *c, struct slice sql, const struct route_decision *d);
/* What made the doubts never happened, or the session ends. */
void plan_drop_doubts(struct plan *b);
/* Sends a question of our own: its rows go to plan_on_row (by link_owner_ops.on_own_row). */
void plan_send_question(struct client *c, struct link *link, struct slice sql);
void plan_questions_free(struct plan_questions **qp);

/* ---- plan_ask.c, plan_answers.c ---- */

/* Statements of one transaction that are looked into afterwards, and their bytes. After more the
 * session reads from the primary. */
#define DOUBTS_MAX   64
#define DOUBTS_BYTES 65536

/* The questions under way, or to be asked when the transaction is over. */
struct plan_questions {
    struct arena *arena; /* holds this struct and the names */
    uint64_t change;     /* of the schema, when they were sent */
    unsigned n;
    struct route_question question[ROUTE_MAX_QUESTIONS];
};

/* Statements that were run without being known, in the order in which they came. */
struct plan_doubts {
    struct buf texts; /* each with its NUL */
    uint32_t at;      /* of the first that is still in doubt */
    unsigned n;
    struct sql_fingerprint of[DOUBTS_MAX];
};

#endif
