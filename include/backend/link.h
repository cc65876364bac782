/* SPDX-License-Identifier: PostgreSQL
 * link.h: one connection to a server.
 * Runs in: workers. A link is opened for a client, lent to one client at a time, cleaned when it
 * comes back, and cached. Every loan has an epoch: bytes go to the owner of the present epoch or to
 * nobody.
 *
 *   DIALING → LOGIN → LENT → CLEANING → IDLE → LENT → …      any of them → CLOSED */
#ifndef PGP_BACKEND_LINK_H
#define PGP_BACKEND_LINK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "auth/auth_plan.h"
#include "backend/backend.h"
#include "backend/expect.h"
#include "backend/paramset.h"
#include "backend/prep.h"
#include "backend/varset.h"
#include "base/err.h"
#include "base/hot.h"
#include "base/log.h"
#include "net/dial.h"
#include "net/stream.h"
#include "wire/errmsg.h"
#include "wire/proto.h"

enum link_phase { LINK_DIALING, LINK_LOGIN, LINK_LENT, LINK_CLEANING, LINK_IDLE, LINK_CLOSED };

/* The reset queries that the last client's session calls for (link_reset.c). */
enum link_reset {
    LINK_RESET_NONE, /* they are done, or there are none */
    LINK_RESET_DUE,  /* nothing may be asked of the server before them */
    LINK_RESET_AHEAD /* they are on the expect queue, and go in front of what is sent next */
};

/* Which ParameterStatus are for the client of the present loan. */
enum link_tells {
    LINK_TELLS_HIS, /* all but those that come with the answer to a message of ours */
    LINK_TELLS_ALL, /* all, ours, too: they put right what his RESET has undone. The owner hears of
                       all command tags (on_tag) */
    LINK_TELLS_NOTHING, /* none: the owner says them when they are right */
    LINK_TELLS_ANSWERS  /* none, nor notifications: another link says all that is no answer */
};

/* What a link that is idle is being asked. */
enum link_check {
    LINK_CHECK_NONE,
    LINK_CHECK_ALIVE, /* whether its server is there: it was idle for long */
    LINK_CHECK_ROLE,  /* whether its role may log in; nobody has said so yet */
    LINK_CHECK_FINE   /* it may */
};

/* How the server let us in; decides who may be given the link later. */
enum link_auth {
    LINK_AUTH_UNKNOWN,
    LINK_AUTH_TRUST, /* AuthenticationOk at once */
    LINK_AUTH_ASKED  /* password, md5, SCRAM, ...: relayed, nothing is learned */
};

/* How the answer to an op with OP_TEE has ended. */
enum link_tee_end {
    LINK_TEE_DONE,   /* with its last message, which on_tee was given */
    LINK_TEE_FAILED, /* with an error, or it was skipped behind one */
    LINK_TEE_LONG,   /* a message is too long to be put together: longer than 1 MB and than
                      * memqcache_maxcache; what follows it is not seen either */
    LINK_TEE_LOST    /* the link is gone, or nobody can count its replies any more */
};

/* A message that is put together in link->carry while it is passed on, to be seen whole. */
enum link_seeing {
    LINK_SEEING_NOTHING,
    LINK_SEEING_TEE = 1, /* by on_tee, on_own_row, on_columns: any of them */
    LINK_SEEING_ROWS = 2,
    LINK_SEEING_COLUMNS = 4,
    LINK_SEEING_LAST = 8 /* its op is over with it */
};

/* Does a link log in with what the book knows of its user? */
enum link_answers {
    LINK_ANSWERS_NOT,
    LINK_ANSWERS_SCRAM, /* a password that can be read by SCRAM alone, see link_require.c */
    LINK_ANSWERS_ALL
};

/* What the owner of a link is told. Any of these may release or close the link, but for on_columns,
 * on_own_row, on_tee and on_tee_end. */
struct link_owner_ops {
    /* Login: the server asks for something (a whole AuthenticationXxx message, AuthenticationOk
     * included). */
    void (*on_auth)(void *owner, struct link *link, const char *msg, size_t n);
    /* Login: the server has no room for now. True: the owner has let go of the link, which is
     * closed, and waits for another (pool_acquire); false: it is told as of any error. May be NULL.
     */
    bool (*on_refused)(void *owner, struct link *link);
    /* Login is over: parameters and key are known. */
    void (*on_login_done)(void *owner, struct link *link);
    /* Bytes for the client: whole or partial messages, in order. The first link->in_body of them
     * are the rest of a message whose beginning was passed on before. */
    void (*on_bytes)(void *owner, struct link *link, const char *p, size_t n);
    /* ReadyForQuery was forwarded and nothing is owed. */
    void (*on_quiet)(void *owner, struct link *link);
    /* All owed replies arrived though no ReadyForQuery was due (after a Flush). With
     * link->loan.settle_early: or all of them up to the last ReadyForQuery but that of the last
     * message, which was sent in part, and nobody will send the rest. */
    void (*on_settled)(void *owner, struct link *link);
    /* What the client sends must not wait any longer: the server waits for COPY data, or has failed
     * a COPY, or nobody knows what it owes (expect.h). May be NULL. */
    void (*on_no_wait)(void *owner, struct link *link);
    /* Nobody knows whether another ReadyForQuery is owed (expect.h): link_ask, as soon as no
     * message is half sent. May be NULL: then the link is not used again. */
    void (*on_doubt)(void *owner, struct link *link);
    /* ParameterStatus with a value that is new; link->reported still has the old one. May be
     * NULL. */
    void (*on_parameter)(void *owner, struct link *link, struct slice name, struct slice value);
    /* A command tag, before it is forwarded: of an op with OP_TAGS, or with LINK_TELLS_ALL. May be
     * NULL. */
    void (*on_tag)(void *owner, struct link *link, struct slice tag);
    /* The server sent an error, before it is forwarded; true keeps it from the client. */
    bool (*on_error)(void *owner, struct link *link, const struct errmsg *m);
    /* ParameterDescription, RowDescription or NoData, in answer to the op with OP_COLUMNS that has
     * this serial. Must not do more than on_tee may; so for on_own_row. */
    void (*on_columns)(
        void *owner, struct link *link, uint32_t serial, char type, struct slice body);
    /* A row in answer to an op with OP_ROWS. */
    void (*on_own_row)(void *owner, struct link *link, struct slice body);
    /* A whole message that answers the op with OP_TEE that is next: in order, before any byte of it
     * that is not there yet goes to the client, and whoever it is for. Not errors, and not what
     * belongs to nobody (NoticeResponse, NotificationResponse, ParameterStatus). `body` is valid
     * during the call. False: no more is wanted of this op, not even its end; what answers the next
     * one with OP_TEE is seen again. Must not release or close the link, or end its client. NULL
     * when the owner pushes no such op; so is on_tee_end. */
    bool (*on_tee)(void *owner, struct link *link, char type, struct slice body);
    /* The answer to an op with OP_TEE has ended: once for each of them, in the order of their
     * pushes, unless on_tee has said false, the owner gave the link back or closed it, or
     * link_expect_tee said that nothing will be told. That of a Query ends with its ReadyForQuery.
     * A failure is told before on_error, LOST before on_lost. Must not do more than on_tee may. */
    void (*on_tee_end)(void *owner, struct link *link, enum link_tee_end end);
    /* The link can take more bytes again. */
    void (*on_drained)(void *owner, struct link *link);
    /* The link is gone. `err` says why; `told` is true when the server's own FATAL message was
     * forwarded already. */
    void (*on_lost)(void *owner, struct link *link, const struct err *err, bool told);
    /* A line for the log about the link while it has this owner, who knows in whose name and at
     * which level it is written. May be NULL: it is a line of the process. */
    void (*on_log)(
        void *owner, const struct log_place *place, enum log_level level, const char *text);
    /* on_auth says by itself what it means that nothing known answers the server. */
    bool says_unanswered;
};
/* For the table of an owner that does not mind. */
void link_ignore_bytes(void *owner, struct link *link, const char *p, size_t n);
void link_ignore(void *owner, struct link *link);

/* What a link tells its pool, whoever its owner is: a link knows nothing of pools but these calls.
 * Those marked so may close the link, which must not be touched behind them. */
struct link_pool_ops {
    /* A link is new: it is being opened, or comes from another worker. */
    void (*on_added)(struct pool *pool, struct link *link);
    /* The server lets the link in or asks for something, as link->auth says: other links may be
     * closed. */
    void (*on_auth)(struct pool *pool, enum link_auth auth);
    /* The link's login needs the server no more for a while, or is over. `accepted`: it was let in.
     */
    void (*on_opened)(struct link *link, bool accepted);
    /* The server refuses the login with `sqlstate`; true when it is for lack of room, or because it
     * starts up: then whoever can wait had better wait. */
    bool (*on_refused)(struct link *link, const char *sqlstate);
    /* The link's login is over, and this is what the server said beside it: NoticeResponses, or
     * nothing. */
    void (*on_said)(struct pool *pool, const struct link *link, struct slice text);
    /* Idle until now, it is being cleaned. */
    void (*on_taken)(struct pool *pool, struct link *link);
    /* The link's cleaning is about to end: it counts as one that will be there soon. */
    void (*on_cleaning)(struct pool *pool, struct link *link);
    /* The link's cleaning takes long: it does not count as one that will be there soon. */
    void (*on_slow)(struct pool *pool, struct link *link);
    /* The link is idle. May close it, lend it, or give it away. */
    void (*on_idle)(struct pool *pool, struct link *link);
    /* The link's user may not log in any more, as the server said when it was asked: other links of
     * that role are closed. The link itself is left to the caller. */
    void (*on_role_refused)(struct link *link);
    /* The question whether the user may log in met an error; false when the link is not to be kept.
     */
    bool (*on_role_error)(struct link *link, struct slice sqlstate);
    /* The link's user may log in, as the server said when it was asked. */
    void (*on_role_vouched)(struct pool *pool);
    /* The link is closed: the pool may be gone afterwards. */
    void (*on_gone)(struct pool *pool, struct link *link);
};

/* A server's cancel key: four bytes mostly, and these need no memory of their own. See
 * link_set_key. */
union link_key {
    char *heap;
    char here[8];
};

/* Who waits for a link may count on one that is being cleaned, for a moment. */
enum link_hope {
    LINK_HOPE_NONE,    /* it was not said yet that it comes */
    LINK_HOPE_COUNTED, /* in pool->ncleaning */
    LINK_HOPE_LOST     /* it takes long */
};

/* What the plans that its server keeps were made with. */
enum link_reads {
    LINK_READS_ALIKE, /* where literals mean what they mean with its present settings */
    LINK_READS_MIXED  /* perhaps with others */
};

struct link_answer;
struct link_tls;

/* What a link that is opened here needs until its login is over. */
struct link_opening {
    struct dial *dial;
    struct link_tls *tls;                /* when TLS plays a part */
    struct link_answer *answer;          /* what was asked, what we answered */
    const struct stream_ops *stream_ops; /* of its stream, but while TLS is asked for */
    void (*redial)(struct link *link);   /* connects once more; the old connection is closed */
    struct buf said;                     /* NoticeResponses */
    bool is_let_in;                      /* AuthenticationOk came */
    bool asks_owner;  /* the owner wants to see what the server asks before anybody answers */
    uint8_t answers;  /* enum link_answers: what the owner is entitled to */
    bool holds_slot;  /* counts as opening, see pool_link_opened */
    bool is_for_pool; /* opened for whoever waits longest, not for its owner */
};

/* What is known of a loan, and ends with it: link_renew. */
struct link_loan {
    bool error_told : 1;   /* a FATAL of the server was forwarded */
    bool cancel_due : 1;   /* a cancel waits for the end of what runs: link_cancel_look */
    bool settle_early : 1; /* on_settled also when the last message alone is owed: see there */
    bool has_news : 1;     /* it reported a value that was new */
    uint8_t tells : 2;     /* enum link_tells */
};

struct link {
    struct stream stream;
    struct backend *be;
    struct pool *pool;
    struct list be_node;   /* be->idle_lru or be->links */
    struct list pool_node; /* pool->idle or pool->busy */
    struct timer timer;    /* connection_life_time, or the deadline of cleaning */
    void *owner;
    const struct link_owner_ops *ops;
    uint64_t id;    /* never used twice in a worker */
    uint64_t epoch; /* of the present loan */
    struct expect expect;
    struct buf *carry;            /* an incomplete message that must be seen whole; NULL mostly */
    struct paramset reported;     /* ParameterStatus as last seen */
    struct paramset startup;      /* run-time parameters it was opened with */
    struct varset *vars;          /* what was SET on it since, by clients that share it */
    struct prepset preps;         /* statements that its server knows, of clients that share it */
    struct link_opening *opening; /* NULL when the login is over */
    union link_key key;           /* the server's cancel key */
    uint32_t body_left;           /* of the message being passed on */
    uint32_t in_body;             /* so much of what on_bytes gets is the rest of a message */
    uint32_t asked_version;       /* what it was opened with: the server may speak less */
    uint32_t version;             /* protocol in use */
    int32_t server_pid;
    int32_t row;
    int64_t opened_us;
    int64_t quiet_us;     /* idle: since when; lent: the last ReadyForQuery for the owner arrived */
    uint32_t uses;        /* loans, modulo 2^32 */
    uint32_t dropped_by;  /* closed when it is free: this client drops its database; 0: nobody */
    uint32_t last_client; /* number of who shared it last; 0: nobody since it was clean */
    uint32_t ntransactions;  /* ended for the owner, not counted yet: client_stats.c takes them */
    uint16_t key_len : 9;    /* 0: there is none */
    uint16_t login_took : 7; /* in ticks, rounded up; see link_login_us */
    uint8_t phase;           /* enum link_phase */
    char tx_status;          /* of the last ReadyForQuery */
    char ready_as;           /* not 0: the owner is told this status in ReadyForQuery */
    struct link_loan loan;
    /* What replies change are bytes; the others are bits, which an idle link has to keep. */
    bool swallow_body; /* what happens to body_left */
    uint8_t discards;  /* which of the reset queries sent are DISCARD ALL, by bits */
    uint8_t resets_sent;
    uint8_t resets_done;
    uint8_t resets_left : 1; /* 1: the reset queries are not sent yet */
    uint8_t auth : 2;        /* enum link_auth */
    uint8_t asks : 4;        /* enum auth_server: what the server asked for at the login */
    bool has_quota : 1;
    uint8_t reset : 2;       /* enum link_reset */
    uint8_t hope : 2;        /* enum link_hope */
    uint8_t check : 2;       /* enum link_check */
    bool is_private : 1;     /* replication or a login that must not be shared: never cached */
    bool is_retired : 1;     /* closed as soon as it is free */
    bool in_cancel : 1;      /* a cancel request for it is under way: not to be lent */
    bool must_clean : 1;     /* a client that shared it left something behind */
    bool defaults_known : 1; /* what it reports was compared with what its clients are told */
    uint8_t seeing : 4;      /* enum link_seeing */
    uint8_t reads : 1;       /* enum link_reads */
    uint16_t flushed_to;     /* the serial (expect.h) behind the last Flush, as far as it fits */
};

/* The time of its server's answer to the login, or up to half a second later; INT64_MAX: it took
 * too long to be noted. */
int64_t link_login_us(const struct link *link);
void link_note_login(struct link *link, int64_t now_us);

_Static_assert(sizeof(struct link) <= 360, "a session's link has a budget");

/* What a login needs. */
struct link_startup {
    uint32_t version;
    struct slice user;
    struct slice database;
    struct slice replication; /* empty: none */
    const struct paramset *params;
};

/* The server waits for COPY data that nobody sends: it is told so. */
COLD void link_fail_copy(struct link *link);
/* The client sends nothing more, and no Sync is behind what it sent last: the server is asked for
 * what it would tell at the end of a connection. The rest is kept from the owner. */
void link_ask_rest(struct link *link);

/* Opens a link of `pool` for `owner`. The caller has taken the quota. */
struct link *link_open(struct pool *pool, const struct link_startup *st, void *owner,
    const struct link_owner_ops *ops);
/* Plans of functions on its server may take literals for something else than `client`, whose
 * settings these are, would: somebody else made them. */
static inline bool link_reads_otherwise(
    const struct link *link, const struct varset *vars, uint32_t client)
{
    return (link->reads == LINK_READS_MIXED || link->vars->reads != vars->reads) &&
           link->last_client != 0 && (link->last_client != client || client == UINT32_MAX);
}
/* The link is going to have the settings of `client`. True when DISCARD PLANS has to be in front of
 * what that asks. A client that has its own link again has the plans of a session. */
bool link_must_replan(struct link *link, const struct varset *vars, uint32_t client);
/* `vars` is what is set on it once something was set, besides `local` for a transaction: a name, a
 * call of set_config(), or nothing. `link` may be NULL. */
void link_note_set(struct link *link, const struct varset *vars, struct slice local);
/* Sends bytes; what they ask for must have been pushed with link_expect before. */
int link_send(struct link *link, const char *p, size_t n);
/* The part of link_expect for when the replies to the reset queries come first. */
void link_reset_expect(struct link *link);
static inline void link_expect(struct link *link, unsigned op)
{
    if (link->reset == LINK_RESET_DUE)
        link_reset_expect(link);
    expect_push(&link->expect, op);
}
/* For an op with OP_TEE; false when nothing of its answer will be told: the server skips the
 * message behind an error, or nobody can count the replies of the link. */
static inline bool link_expect_tee(struct link *link, unsigned op)
{
    link_expect(link, op | OP_TEE);
    return link->expect.is_seen && !link->expect.skipping && !link->expect.lost;
}
/* Pushes `n` ops, at least one, as link_expect does one. */
static inline void link_expect_all(struct link *link, const uint8_t *ops, unsigned n)
{
    if (link->reset == LINK_RESET_DUE)
        link_reset_expect(link);
    expect_push_all(&link->expect, ops, n);
}
/* A message of our own, with OP_SWALLOW, has met an error since the loan began, or since that was
 * forgotten; and in on_error: this error is the answer to one. */
static inline bool link_own_failed(const struct link *link)
{
    return link->expect.own_error != EXPECT_OWN_FINE;
}
static inline void link_forget_failure(struct link *link)
{
    link->expect.own_error = EXPECT_OWN_FINE;
}
static inline bool link_error_is_ours(const struct link *link)
{
    return link->expect.own_error == EXPECT_OWN_FAILS;
}
/* The link counts as one that is being opened: the server has said nothing of weight yet. */
static inline bool link_holds_slot(const struct link *link)
{
    return link->opening != NULL && link->opening->holds_slot;
}
/* False while its server may still refuse the login. */
static inline bool link_is_let_in(const struct link *link)
{
    return link->opening == NULL || link->opening->is_let_in;
}
/* Lends an idle link: starts a new epoch. */
void link_lend(struct link *link, void *owner, const struct link_owner_ops *ops);
/* The owner has had the link at rest and goes on with it: another loan begins. */
void link_renew(struct link *link);
/* The owner is done. The link is drained, rolled back, reset and cached, or closed. After this the
 * owner hears nothing more of it. `boundary` is false when the client's last message went only in
 * part. */
void link_release(struct link *link, bool boundary);
/* The owner is done, and did nothing that others would notice until it is undone: the reset may go
 * out with the next owner's first message. */
void link_release_untouched(struct link *link, bool boundary);
/* The owner, who shares links, is done with it for the moment: quiet, outside a transaction, its
 * settings those of link->vars. It is idle at once, or cleaned when something stands against that.
 */
void link_return(struct link *link);
/* Nothing tells it from a link that was just opened but for its start-up parameters. */
static inline bool link_is_pristine(const struct link *link)
{
    return varset_is_empty(link->vars) && prepset_is_empty(&link->preps);
}
/* No more than statements under the names that we give them. */
static inline bool link_has_only_names(const struct link *link)
{
    return varset_is_empty(link->vars) && link->preps.named == NULL;
}
/* A reply that is made here (OP_MADE_PARSED, OP_MADE_CLOSED) takes its place behind what is owed.
 */
void link_reply_made(struct link *link, unsigned op);
/* When expect_may_ask, and no message is half sent: asks what tells whether all is answered. */
void link_ask(struct link *link);
/* Closes it at once; the owner is not told. */
COLD void link_close(struct link *link);
/* Ends the link and tells the owner, with a message made here. */
COLD void link_fail_text(struct link *link, const char *sqlstate, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
/* The server's cancel key; n is 0 when there is none. */
static inline struct slice link_key(const struct link *link)
{
    return slice_of(
        link->key_len > sizeof link->key.here ? link->key.heap : link->key.here, link->key_len);
}
/* Keeps a copy of the key, wipes the one before. */
void link_set_key(struct link *link, struct slice key);
/* True when no other worker can ever have it: one with TLS, whose secrets stay in this process. */
bool link_is_bound(const struct link *link);
/* True when another worker can have it now: not while bytes of it are in hand, either. */
bool link_can_travel(const struct link *link);
/* Hands an idle link to the worker of `ordinal`, with its state; false when it stays here (it
 * cannot travel, or the worker's mailbox is full). */
bool link_give_away(struct link *link, int ordinal);
/* What an authentication message asks for, by its body. */
enum auth_server link_auth_kind(struct slice body);
/* During the login, when the owner was told what the server asks (on_auth): answers with what the
 * book knows about the pool's user, or with a password. -1 when that is impossible; *err says why.
 * The owner must have proved that it is this user, or (password) the server is to judge. */
int link_answer_from_book(struct link *link, struct err *err);
int link_answer_password(struct link *link, struct slice password, struct err *err);
/* While `asks` the owner sees what the server asks (on_auth) before anybody answers. */
void link_ask_owner(struct link *link, bool asks);
/* Stops and restarts reading (back-pressure of the client). */
static inline void link_pause(struct link *link)
{
    stream_pause(&link->stream);
}
static inline void link_resume(struct link *link)
{
    stream_resume(&link->stream);
}
/* Asks the server to cancel what the link is doing, on a connection of its own. Until that is over
 * the link is not given to anybody else. `fd` (or -1) is the canceller's connection: closed when
 * what runs has ended, or the server is not told about it again. */
void link_cancel(struct link *link, int fd);
/* Cancels as link_cancel does, but what the owner asked for: while an exchange of our own runs in
 * front of that, it waits. Should BEGIN be hit, the rest would run without a transaction. */
void link_cancel_owner(struct link *link, int fd);
/* With loan.cancel_due: something that the link ran has ended, for which a cancel may have waited.
 */
COLD void link_cancel_look(struct link *link);
/* The loan is over, or the link gone: no cancel waits for it any more. */
COLD void link_cancel_forget(struct link *link, bool is_gone);
/* Notes in the link's row that `sql` (p == NULL: as before) was sent, or that the link is quiet
 * again. Called per statement: no system call. */
void link_row_note_sent(struct link *link, struct slice sql);
void link_row_note_quiet(struct link *link);
/* Writes the link's row in shared memory. */
void link_row_update(struct link *link, int client_row);
/* Notes in the link's row that a client of that row has it now, or that nobody has: for a link that
 * is not new no more than what that changes. */
void link_row_note_lent(struct link *link, int client_row);
/* link_row_note_lent and link_row_note_sent in one. */
void link_row_note_begun(struct link *link, int client_row, struct slice sql);
void link_row_note_free(struct link *link);

#endif
