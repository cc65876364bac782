/* SPDX-License-Identifier: PostgreSQL
 * client_int.h: the client, as the files of this module share it.
 *
 *   STARTUP → LOGIN → ACTIVE → CLOSING → (freed)
 *
 * An idle client owns this struct, its row in shared memory and nothing else. */
#ifndef PGP_SESSION_CLIENT_INT_H
#define PGP_SESSION_CLIENT_INT_H

#include "account/client_row.h"
#include "account/lines.h"
#include "account/stats.h"
#include "account/stmts.h"
#include "account/trace.h"
#include "backend/limits.h"
#include "backend/link.h"
#include "backend/paramset.h"
#include "backend/pool.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/hot.h"
#include "base/log.h"
#include "known/greetings.h"
#include "login/login.h"
#include "net/stream.h"
#include "session/client.h"
#include "session/session.h"
#include "session/nodes.h"
#include "session/caching.h"
#include "session/answering.h"
#include "wire/startup.h"

#include "client_kind_int.h"
#include "client_limits_int.h"

#define CLIENT_MAGIC 0xC11E07A1U
/* A message that may be a command of ours is collected up to this size. */
#define CLIENT_COLLECT_MAX 131072
/* Instead of half_closed_timeout while it waits for a link, when it may as well have gone. */
#define CLIENT_MAY_BE_GONE_MS 300
/* How long a goodbye may take to be read. */
#define CLIENT_CLOSING_MS 5000

enum client_phase { CL_STARTUP, CL_LOGIN, CL_ACTIVE, CL_CLOSING, CL_CLOSED };

/* Does the client send anything more? */
enum client_sends {
    CLIENT_SENDS_ON,
    CLIENT_HAS_HUNG_UP, /* no, as was seen while what it sent before was not read yet */
    CLIENT_HAS_SENT_ALL /* no, and all of it was read: client_goodbye.c */
};

/* What it has left in the session of its own link: each is more than the one before it. */
enum client_traces {
    TRACES_NONE,  /* nothing was sent to it */
    TRACES_READS, /* nothing but plain reads was asked */
    TRACES_MORE   /* see feed_note_text */
};

/* What was answered here of the extended sequence since the last Sync. */
enum local_part {
    LOCAL_PART_NONE,
    LOCAL_PART_SOME,   /* a command of ours */
    LOCAL_PART_FAILED, /* with an error: the rest is skipped, up to the Sync */
    LOCAL_PART_LOST    /* with one between two messages: it is the next one's */
};

/* NegotiateProtocolVersion. SPARED: not due, unless a link is of an older version. OVER: late */
enum login_negotiation { NEGOTIATION_DUE, NEGOTIATION_SPARED, NEGOTIATION_OVER };

/* Of a login so far: AuthenticationOk was sent; the log was told of a refusal. */
enum login_outcome { LOGIN_OPEN, LOGIN_LET_IN, LOGIN_REFUSED };

/* Which of the client's messages are logged? While none is, that costs a test of a byte per message
 * or run of replies. What pgpool sends and swallows itself is not in it. */
struct client_trace {
    bool client;    /* log_client_messages */
    uint8_t server; /* enum conf_message_detail; 0: none */
};

/* What is needed until the login is over. */
struct client_login {
    struct pool_request req;
    struct link_startup startup;
    struct paramset params;
    struct buf packet; /* the startup packet: `startup` points into it */
    struct slice unknown[8];
    unsigned nunknown;
    uint32_t version;         /* that the client speaks; links of a pool are opened with 3.0 */
    int8_t pool_mode;         /* asked for; SSTATE_MODE_NONE: the configured one */
    bool has_no_server;       /* none can be reached: login_without_server */
    uint8_t negotiation;      /* enum login_negotiation */
    uint8_t outcome;          /* enum login_outcome */
    struct slice auth_user;   /* as the client calls itself; startup.user is the servers' name */
    struct client_auth *auth; /* until the login is over */
    struct client *client;
    struct login_console console; /* of one who asks for the virtual database */
    struct list look_node;        /* ss->looking: its server was gone */
    int64_t look_until_us;        /* 0: it was not */
};

/* What few clients have at a time: see client_rare. */
struct client_rare {
    struct cancel_wait *cancel_wait; /* a cancel request with TLS is being delivered */
    struct console *console;         /* what the console has of it */
    struct conf_override *override;
    struct results_rest *results; /* what the query cache has of it beyond an exchange */
    struct client_ddl *ddl;       /* roles and databases that it changes */
    struct native *native;        /* it writes to all nodes: client_serve */
    struct client_patch *patch;   /* the link was opened with other parameters */
    struct sql_trace comment;     /* of the statement that it runs, with jsonlog */
    char *refused;  /* what a failed transaction is about to refuse: client_failed.c */
    bool is_behind; /* its input waits until it has read: client_hold */
    struct client_replies replies; /* from when trace.server is not 0 */
};

struct client {
    uint32_t magic;
    uint8_t phase;        /* enum client_phase */
    uint8_t parsed_count; /* enum count_kind of the unnamed statement, and of what was bound last */
    uint8_t bound_count;
    bool drops_database : 1; /* other connections to that were told to go meanwhile; or see ddl */
    bool is_parked : 1;      /* input waits until the link is quiet */
    bool asked_tls : 1;
    bool asked_gss : 1;
    bool is_counted : 1;       /* in session_shared */
    bool server_batch : 1;     /* something of the present extended sequence went to the server */
    bool was_told_to_wait : 1; /* query_wait_notify was said of the present wait */
    uint8_t sends : 2;         /* enum client_sends */
    uint8_t traces : 2;        /* enum client_traces */
    uint8_t local_part : 2;    /* enum local_part */
    struct client_trace trace;
    struct login_proof proof;
    int32_t row_index;
    struct limits_ticket ticket;    /* in the table of limits */
    uint32_t body_left;             /* of a message that is passed on in parts */
    uint32_t body_skip;             /* of one that is for nobody */
    const struct client_kind *kind; /* how it is served: client_kind_int.h */
    struct sessions *ss;
    struct stream stream;
    struct list node; /* ss->clients */
    struct timer timer;
    struct link *link;   /* the client's own, or the one that it has borrowed */
    struct link *target; /* where the present exchange goes: `link`, as soon as it is let in */
    struct plan *plan;   /* never NULL: see plan_none */
    struct client_named *named; /* statements of a session that is relayed; NULL mostly */
    struct client_rare *rare;   /* NULL mostly */
    struct sstate *sstate; /* its session as settings and statements; NULL: its link has all that */
    uint64_t epoch;        /* of the loan of `link` */
    struct pool *pool;
    struct client_login *login;
    struct client_row *row;
    struct buf carry; /* an incomplete message, or parked input */
    int64_t last_active_us;
    struct client_stats stats;
    struct client_limits limits;
};

_Static_assert(sizeof(struct client) <= 312, "an idle client has a budget");

static inline struct client_ddl *client_ddl(const struct client *c)
{
    return c->rare == NULL ? NULL : c->rare->ddl;
}
static inline bool client_has_console(const struct client *c)
{
    return c->rare != NULL && c->rare->console != NULL;
}
/* In the virtual database, or on its way there. */
static inline bool client_is_alone(const struct client *c)
{
    return c->kind == &c->ss->kinds->console;
}
static inline struct client_patch *client_patch(const struct client *c)
{
    return c->rare == NULL ? NULL : c->rare->patch;
}
static inline bool client_is_native(const struct client *c)
{
    return c->rare != NULL && c->rare->native != NULL;
}
static inline struct conf_override *client_override(const struct client *c)
{
    return c->rare == NULL ? NULL : c->rare->override;
}

/* What becomes of a client, told by those below, who find it out, to those above, who do it. The
 * table is the worker's (sessions.c): nobody below names a file above.
 *
 * Behind a call that "may end" the client it is still there, with all that it has, until the turn
 * of the loop is over: but it has no link and no row, and nothing more that it sent is looked at.
 * So nobody asks behind such a call whether it was that. */
struct client_events {
    void (*end)(struct client *c, const struct err *err);
    void (*leave)(struct client *c);
    void (*drop_link)(struct client *c, bool boundary);
    /* Bytes of a client in its session. May end it. */
    void (*feed)(struct client *c, const char *p, const char *end);
    void (*unpark)(struct client *c);
    void (*after_quiet)(struct client *c);
    /* A login may have a link now, or one of its own, to be asked by the server first. */
    void (*acquire)(struct client *c);
    void (*welcome)(struct client *c);
    /* The virtual database is open to it. May end the client. */
    void (*enter)(struct client *c, bool may_all);
    void (*idle)(struct client *c);
    bool (*travel_waiting)(struct client *c, int ordinal);
};

/* client_io.c */
/* The client's struct client_rare, to put something in: made when there is none. */
struct client_rare *client_rare(struct client *c);
/* Frees it when nothing is in it. Of a client that is closed it goes with the client. */
void client_rare_trim(struct client *c);
struct client *client_of_stream(struct stream *s);
/* A client of this worker with nothing but its socket: no row, no place among those counted. */
struct client *client_new(struct sessions *ss, int fd);
/* Closes the socket. What others see of it goes at once, its memory at the end of the turn. */
COLD void client_dispose(struct client *c);
/* Gives the link back. `boundary`: the client's last message went whole. */
void client_drop_link(struct client *c, bool boundary);
/* What the client asked for is answered, or for nobody. */
void client_leave(struct client *c);
/* (Re)arms the client's one timer. 0 stops it. */
void client_set_timer(struct client *c, int64_t ms);

/* client_goodbye.c */
/* No more of the CopyData comes that went out in part. Its rest is made up, when it is not much:
 * the COPY is going to fail, and the link can be kept. */
void client_complete_copy_data(struct client *c);
/* The client sends nothing more, and its time is up. */
void client_goodbye_on_timer(struct client *c);
/* How long it may take nothing of what it is told. */
int64_t client_goodbye_ms(const struct client *c);
/* link_owner_ops: a COPY waits for data that do not come. */
void client_goodbye_on_no_wait(void *owner, struct link *link);

/* client_start.c */
void client_on_startup_bytes(struct client *c, const char *p, const char *end);

/* client_login.c */
void client_login_begin(struct client *c, struct slice packet);
void client_login_input(struct client *c, const char *p, const char *end);
void client_login_free(struct client *c);
/* The client goes in the midst of it: nothing waits for it any more. Harmless when it is over. */
void client_login_leave(struct client *c);
/* Parameters, key and ReadyForQuery: the session begins. */
void client_login_welcome(struct client *c);
/* AuthenticationOk, unless it was told already: an error follows. */
void client_login_tell_ok(struct client *c);
/* What servers say of their settings, as this client is to be told at its login. */
const struct paramset *client_login_parameters(const struct client *c);
/* AuthenticationOk, unless it was told already. */
void client_login_put_ok(struct client *c, struct buf *out);

/* client_link.c */
/* What the link of a relayed session says, once its login is over. */
extern const struct link_owner_ops client_link_ops;
/* False: it is another client's, which must not be; it went nowhere, and the link is closed. */
bool client_is_its_reply(struct client *c, struct link *link);
void client_link_log_lost(struct client *c, const struct err *err);
/* What is told in a login, too: see struct link_owner_ops. */
void client_on_link_settled(void *owner, struct link *link);
void client_on_link_parameter(
    void *owner, struct link *link, struct slice name, struct slice value);
void client_on_link_tag(void *owner, struct link *link, struct slice tag);
bool client_on_link_error(void *owner, struct link *link, const struct errmsg *m);
void client_on_link_drained(void *owner, struct link *link);

/* client_gate.c */
/* Who is it? Goes on with the event `acquire`, or `enter`. May end the client. */
void client_gate_open(struct client *c);

/* The client's login; NULL when that has not begun or is over. */
struct client_auth *client_auth_of(const struct client *c);
/* Is it entitled (client_entitle) to a used link of `pool`? */
bool client_may_reuse(const struct client *c, const struct pool *pool);

/* feed.c */
void feed_client(struct client *c, const char *p, const char *end);
/* The data of a COPY is about to end on `link`: the sequence that it belongs to goes on. */
void client_note_copy_end(struct client *c, const struct link *link);
/* client_note_statement of one that is known to be no DROP DATABASE. */
void client_note_sent(struct client *c, struct slice sql);
/* client_note_sent and, in one, the client_row_link that SENDING_QUICK_UNTOLD put off. */
void client_note_begun(struct client *c, struct slice sql);
/* client_note_idle of one that gives its link back at once, between transactions. */
void client_note_done(struct client *c);

/* client_failed.c: statements that a failed transaction refuses. */
/* `p` to `end` was read from a client whose transaction has failed and that waits for nothing: if
 * it is a statement to be refused, *refused says so in pgpool-II's words; else it is NULL. */
COLD void client_failed_note(char **refused, const char *p, const char *end);
/* The error that the link has just met says so: it was sent with these words (may be NULL). */
COLD bool client_failed_tell(const char *refused, struct link *link, const struct errmsg *m);
static inline const char *client_refused(const struct client *c)
{
    return c->rare == NULL ? NULL : c->rare->refused;
}

/* client_doubt.c */
/* A link_owner_ops.on_doubt: asks, now or at the end of the message that is half sent. */
void client_on_doubt(void *owner, struct link *link);
/* One of the own link's: what is parked goes to a COPY. */
void client_on_no_wait(void *owner, struct link *link);
/* True while the client's link is asked and a message of this type would begin something. */
bool client_waits_for_answer(const struct client *c, char type);

/* client_patch.c: a cached link brought up to the client's start-up parameters. */
/* Starts it; client_patch_on_quiet says how it went. */
void client_patch_start(struct client *c, const struct paramset *wants);
/* The SETs of client_patch_start are done: 0, or -1 when the server refused one. */
int client_patch_finish(struct client *c);
void client_patch_on_parameter(struct client *c, struct slice name, struct slice value);
void client_patch_on_tag(struct client *c, struct slice tag);
/* May such a text reset a setting? More are taken for one that do not, which costs but time. */
bool client_patch_minds(struct slice sql);
/* `sql` is sent. What comes behind a text that may reset a setting waits until that is repaired. */
void client_patch_note(struct client *c, struct slice sql);
bool client_patch_is_behind(const struct client *c);
/* True when a message of this type has to wait until what was reset is put right. */
bool client_patch_holds(const struct client *c, char type);
/* The link is quiet: repairs what a RESET undid. True when it sent something. */
bool client_patch_repair(struct client *c);
/* Sets in `params` what was SET in place of start-up parameters. */
void client_patch_params(const struct client *c, struct paramset *params);
void client_patch_free(struct client *c);

/* sessions_view.c */
void sessions_view_init(struct sessions *ss);

/* sessions_give.c */
void sessions_give_init(struct sessions *ss);
/* sessions_warm.c: databases that are kept warm before their first client comes. */
void sessions_warm_init(struct sessions *ss);
void sessions_warm_on_conf(struct sessions *ss);
void sessions_warm_end(struct sessions *ss);
/* The client has ended an exchange and is idle; to be called when giving.due_us is reached. */
void sessions_on_idle(struct client *c);

/* sessions_title.c */
void sessions_title_init(struct sessions *ss);
/* Tells in the title of the process who is served: at the end of a turn in which clients came or
 * went. */
void sessions_title_set(struct sessions *ss);

/* client_login.c: */
void client_login_look_again(struct sessions *ss);
/* Logins that wait for a link of a server that is not the primary any more look again. */
void client_login_leave_queues(struct sessions *ss);

/* client_place.c */
/* What pool_passwd has of the user that the client is at the server opens links of its pool. */
void place_learn_secret(struct pool *pool);
/* The client's pool is that of the same user and database on `node` from now on. */
void client_place_move(struct client *c, int node);
/* Where clients are followed and have no link: goes where pools.conf has put the database of its
 * pool, which is_moved. What another server said of the client is not taken along: the new one may
 * know somebody else by that name. */
void client_place_follow(struct client *c);
/* During the login, before a link was had, the client goes to `node`, or to where its database is
 * now if that has moved. The place in the line is given up. False: the client was ended, for it had
 * proved who it is by what the server before said. */
void client_place_login_at(struct client *c, int node);
bool client_place_login(struct client *c);

/* Body of MAIL_CANCEL. */
struct cancel_mail {
    int32_t row; /* ROWS_NO_ROW: it was not found */
    uint32_t client_id;
    int32_t pid;
    uint32_t ntries;
    uint32_t key_len;
    char key[ROWS_SECRET_BYTES];
};

/* client_cancel.c */
void client_cancel_end(struct sessions *ss);
/* Makes the client's cancel key; returns its length. */
uint32_t client_make_secret(struct sessions *ss, uint8_t *secret, uint32_t version);

/* client_note.c */
void client_row_open(struct client *c, const struct session_peer *peer);
void client_row_login(struct client *c);
/* The login to the virtual database is. */
void client_row_console(struct client *c, bool is_superuser);
/* BackendKeyData: the number and the key by which it is cancelled. */
void client_row_put_key(const struct client *c, struct buf *out);
/* The client came from another worker, with this row; c->pool is there. */
void client_row_adopt(struct client *c, const struct client_row *from, struct slice application,
    struct slice statement);
/* The client and its new own link know each other. */
void client_row_link(struct client *c);
/* The client has no link, or one that is at rest: in session mode the row tells of that. */
void client_row_unlink(struct client *c);
/* The start of the last statement; the client has a row. */
struct slice client_row_statement(const struct client *c);
/* The client's names in SHOW and in the log; empty before the login. The views hold until they
 * change. */
const struct row_names *client_row_names(const struct client *c);

/* The worker's settings have changed: are statements counted apart? */
void session_stmts_set(struct sessions *ss);
/* What it runs, as SHOW POOL_STATEMENTS has it; false: that is not known. */
bool client_stmts_fingerprint(const struct client *c, uint64_t *fingerprint);
/* A statement that is known is bound; *known is kept with it. False: as far as *known goes it is
 * not known: client_stmts_bound is to be told its text, and says what is to be kept. */
bool client_stmts_is_known(struct client *c, stmtstats_handle known);
stmtstats_handle client_stmts_bound(struct client *c, struct slice sql);
/* One is bound of which nothing is known. */
void client_stmts_unknown(struct client *c);
/* The client's server has told of rows (backend.nrows), or an error. */
void client_stmts_rows(struct client *c);
void client_stmts_error(struct client *c);
/* The client's query was answered from the query cache. */
void client_stmts_hit(struct client *c, struct slice sql);

/* Why the client keeps its link between transactions: ROWS_PIN(reason) of each; 0: it does not.
 * Counts reasons that are new. After stats_on_login. */
void client_row_pin(struct client *c, unsigned pins);

/* client_log.c */
/* CLIENT_LOG of what a link says while the client has it; `owner` is the client. */
void client_log_link(
    void *owner, const struct log_place *place, enum log_level level, const char *text);
void client_log_connection(const struct client *c);
/* The address of a client, or "[local]". */
void client_host_text(const struct client *c, char *out, size_t size);
/* A client does not get in: who, from where and why, unless that was said already. */
void client_log_refusal(struct client *c, const struct err *err);
void client_log_disconnection(const struct client *c);
/* log_min_duration_statement and its like: an exchange is over, whose clocks still run. */
COLD void client_log_duration(struct client *c);
/* client_log_statement of one that was told before: only where it went. */
void client_log_on_node(struct client *c, const char *kind, struct slice sql);
/* A message of the extended protocol is sent to c->target, and statements are
 * logged. `body` may be incomplete. */
void client_said(struct client *c, char type, struct slice body);
/* Looks at the settings of the session (struct client_trace); called when it begins, and for its
 * statements. */
void client_trace_settings(struct client *c);
/* A message of the client is dealt with. `body` may be incomplete. */
COLD void client_trace_message(struct client *c, char type, struct slice body);
/* trace_reply, with trace.server. */
void client_trace_reply(struct client *c, int node, const char *p, size_t n);
/* True when `gen` has statements or messages logged. */
bool sessions_log_statements(const struct conf_gen *gen);

/* sessions.c */
/* The worker's client with this number; NULL: it is not here. */
struct client *sessions_client(const struct sessions *ss, uint32_t id);
/* The node that is asked what any server knows: the primary, or a standby while the primary is
 * `lost` and another one is waited for. A standby may be behind: it is not asked first. */
int sessions_ask_node(struct sessions *ss, int lost);
/* view_must_hold_writes of the worker's view. */
static inline bool sessions_must_hold_writes(const struct sessions *ss)
{
    if (ss->writes.hold != WRITES_NOT_KNOWN && ss->writes.version == ss->view.version)
        return ss->writes.hold == WRITES_WAIT;
    return view_must_hold_writes(&ss->view);
}

#endif
