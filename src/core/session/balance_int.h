/* SPDX-License-Identifier: PostgreSQL
 * balance_int.h: one client's second link: reads go to a standby on it.
 *
 * The client's own link (on the primary) is its session: it knows every setting and every prepared
 * statement. The reader is a helper that is brought up to date before each use: settings are
 * replayed from a log, prepared statements are parsed when they are needed. While the reader
 * answers, nothing is sent on the own link; what the own link says by itself (notifications) waits.
 */
#ifndef PGP_SESSION_BALANCE_INT_H
#define PGP_SESSION_BALANCE_INT_H

#include "route/route.h"
#include "route/route_trace.h"

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

enum reader_phase {
    READER_NONE,
    READER_OPENING, /* waiting for a link or its login: the client is parked */
    READER_READY
};

struct balance_questions;

struct balance {
    struct link *reader;
    struct pool *pool; /* of the reader */
    struct pool_request req;
    struct link_startup startup;
    struct paramset params; /* the client's start-up parameters */
    uint64_t epoch;
    int node;       /* of the reader, or of the one being opened */
    uint8_t phase;  /* enum reader_phase */
    uint8_t reason; /* enum route_reason of the last decision */
    char tx_status; /* of a client without a link: as ReadyForQuery would say */
    bool is_asking; /* a catalogue question is under way on the own link */
    bool ask_failed;
    bool is_fresh;    /* the reader has not been used yet */
    bool reply_begun; /* bytes of the reader's answer reached the client */
    bool tx_failed;   /* the open transaction failed: its COMMIT is a ROLLBACK */
    bool saw_error;   /* in the present exchange on the own link */
    bool tx_was_open;
    uint8_t tx_end; /* enum sql_kind of the last COMMIT or ROLLBACK sent */
    int64_t avoid_until_us;
    uint64_t choice;       /* where this session stands in the even sequence of choices */
    uint32_t nexchanges;   /* on the own link since it was quiet */
    uint64_t batch;        /* number of the present extended sequence */
    struct buf log;        /* SET and RESET statements, each with its NUL */
    struct buf pending;    /* those of the open transaction */
    uint32_t replayed;     /* bytes of the log that the reader has seen */
    struct buf retry;      /* messages the reader has not begun to answer */
    struct buf early;      /* ParseComplete and BindComplete of the reader: no answer yet */
    struct buf held;       /* what the own link said while the reader spoke */
    struct buf path;       /* what names without a schema mean; see balance_path */
    uint32_t path_log_len; /* of the log when `path` was made */
    struct route_trace *trace;
    struct route_session rs;
    struct buf names;                    /* application_name for rs */
    struct balance_questions *questions; /* under way; NULL mostly */
};

enum balance_verdict {
    BALANCE_GO,  /* send it on c->target */
    BALANCE_PARK /* wait: the client's input is to be parked */
};

/* balance_judge.c: needs no link. Called between login and goodbye; c->pool and c->login must be
 * there at balance_begin, c->link may be NULL at any time. */
/* Makes the struct when this client's reads can be balanced at all; else c->balance stays NULL. */
void balance_begin(struct client *c);
/* Frees it; readers are given back. Harmless without one. */
void balance_free(struct client *c);
/* As the server would say: 'I', 'T' or 'E'; of the link when there is one. */
static inline char balance_tx_status(const struct client *c)
{
    return c->link != NULL ? c->link->tx_status : c->balance->tx_status;
}
/* The facts of `sql`, valid until the next call. Their offsets are those of `sql` when it holds
 * several statements, SET or RESET; else they may be those of a text like it. */
const struct sql_facts *balance_facts(struct sessions *ss, struct slice sql);
/* The same, and what the router says of it. When d->must_ask is set: balance_ask, and again. */
const struct sql_facts *balance_decide(
    struct client *c, struct slice sql, struct route_decision *d);
/* The statement is sent to where writes go: it may decide about later reads. */
void balance_note_write(struct client *c, const struct route_decision *d);

/* balance.c: clients with a link of their own */
/* Chooses c->target for a simple query. */
enum balance_verdict balance_query(struct client *c, struct slice sql, struct slice msg);
/* Chooses c->target for an extended sequence that begins at `p`; looks ahead up to `end`. */
enum balance_verdict balance_batch(struct client *c, const char *p, const char *end);
/* One message of an extended sequence goes to c->target: keep the statements known. */
void balance_note_message(struct client *c, char type, struct slice msg);
/* A query too long to be looked at goes to the own link, and anything may be in it. */
enum balance_verdict balance_unread_query(struct client *c);
/* A message of the extended protocol arrives in parts: what is known of statements may be wrong
 * now. */
void balance_note_partial(struct client *c, char type);
/* The own link is quiet after an exchange. True when the input goes on from here. */
bool balance_on_own_quiet(struct client *c);

/* PGPOOL EXPLAIN: answers that are missing are asked for first; then the input is to be parked. */
struct admin_explain;
enum balance_verdict balance_explain_prepare(struct client *c, struct slice sql);
void balance_explain(void *ctx, struct slice sql, struct admin_explain *out);

/* balance_state.c */
void balance_note_facts(struct client *c, struct slice sql, const struct sql_facts *facts);
void balance_end_tx(struct client *c);
/* Sends what the reader has not seen of the session's settings. */
void balance_replay(struct client *c);

/* balance_reader.c */
enum balance_verdict balance_open_reader(struct client *c, int node);
void balance_drop_reader(struct client *c, bool boundary);
/* The reader's answer is complete: back to the own link. */
void balance_to_own(struct client *c);

/* balance_ask.c: any link does that speaks for the client's user and has its search_path. */
int balance_lookup(void *ctx, const struct route_question *q, uint32_t *bits);
/* Sends the questions of `d` on `link`, on which nothing is owed. Sets b->is_asking; the link's
 * owner calls balance_on_row for each of its own rows and balance_ask_done when it is quiet. */
void balance_ask(struct client *c, struct link *link, const struct route_decision *d);
void balance_on_row(struct client *c, struct slice body);
void balance_ask_done(struct client *c, struct link *link);
void balance_questions_free(struct balance_questions **qp);

#endif
