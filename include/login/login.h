/* SPDX-License-Identifier: PostgreSQL
 * login.h: who is this client? One client's authentication, from the names in its start-up packet
 * to the proof that it is who it says, or its refusal. Runs in: workers. Knows no session: what it
 * needs of one is in `struct login_who`, and what becomes of the client it says by `struct
 * login_ops`. */
#ifndef PGP_LOGIN_LOGIN_H
#define PGP_LOGIN_LOGIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "backend/link.h"
#include "backend/pool.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/slice.h"
#include "ipc/rows.h"
#include "net/stream.h"

struct client_auth;
struct conf;
struct login_auth;

/* Has it proved to be its pool's user? Then any link of that user will do. */
enum login_proved {
    LOGIN_PROVED_NOT,
    LOGIN_PROVED_THERE, /* to a server, or by what one knows */
    LOGIN_PROVED_HERE   /* to us, by what we know without asking a server */
};

/* What it has proved, and how it was to; the session keeps it. */
struct login_proof {
    int16_t trusting_node; /* that let it in unasked, without a rule of ours; else VIEW_NO_NODE */
    uint8_t proved;        /* enum login_proved */
    uint8_t answers;       /* enum link_answers: of links opened for it, once it has proved that */
};

/* How links that are opened for it may log in. */
static inline enum link_answers login_answers(const struct login_proof *proof)
{
    return proof->proved == LOGIN_PROVED_NOT ? LINK_ANSWERS_NOT : (enum link_answers)proof->answers;
}

/* Is it judged by pcp.conf, and what has that for it? */
enum login_pcp {
    LOGIN_PCP_NOT,
    LOGIN_PCP_MD5,  /* of its password */
    LOGIN_PCP_SCRAM /* a verifier */
};

/* What is there of a client that asks for the virtual database. */
struct login_console {
    uint8_t pcp;             /* enum login_pcp */
    uint32_t pcp_iterations; /* of its verifiers; 0: it has none */
};

/* What a login says to its session. Behind a call that "may end it" the login may be freed. */
struct login_ops {
    /* Sends an authentication request and what else is said before the client is let in; `is_ok`:
     * it is AuthenticationOk, which goes once: false when the client has been told. Empties `out`.
     */
    bool (*say)(void *owner, struct buf *out, bool is_ok);
    /* The session is over; NULL: without a word. May end it. */
    void (*end)(void *owner, const struct err *err);
    /* Closes the link that was opened for the client. */
    void (*drop_link)(void *owner);
    /* The client may have a link, or one of its own, to be asked by the server first. May end it.
     */
    void (*acquire)(void *owner);
    /* A reload has put its database elsewhere: so goes its pool. False: it was ended. */
    bool (*follow)(void *owner);
    /* The servers know the user by another name: this is its pool from now on. */
    void (*use_pool)(void *owner, struct pool *pool);
    /* For the log: refused (`reason` and `hint` may be NULL), or let in by a rule. `where` is the
     * line of pool_hba.conf in brackets, or empty. */
    void (*refused)(void *owner, const char *reason, const char *hint, const char *where);
    void (*passed)(void *owner, const char *method, const char *where);
    /* The virtual database is open to it. May end it. */
    void (*enter)(void *owner, bool may_all);
};

/* The client, as its session knows it. All of it outlives the login. */
struct login_who {
    const struct login_ops *ops;
    void *owner;
    struct stream *stream;
    const struct client_row *row; /* NULL: it has none */
    struct slice user; /* as the client calls itself; startup->user is the servers' name */
    struct link_startup *startup;
    struct pool_request *req;      /* its `pool` is the client's */
    struct link *const *link;      /* that it has, or waits for the login of */
    struct login_proof *proof;     /* filled in */
    struct login_console *console; /* NULL: it wants servers */
};

/* Makes what a login needs; client_auth_start begins it, and may end it. */
struct client_auth *client_auth_new(struct login_auth *sa, const struct login_who *who);
void client_auth_start(struct client_auth *a);
void client_auth_free(struct client_auth **ap);
/* The session ends: what comes in later is for nobody. NULL is harmless. */
void client_auth_close(struct client_auth *a);
/* The client is gone, or goes. Who leaves when asked for a password comes back with one (psql
 * does); who leaves in the midst of SCRAM has got what a guesser wants, and has made us look the
 * name up: that is a failed login. NULL is harmless. */
void client_auth_leave(struct client_auth *a);

/* Whose are the messages of a client that is not let in yet? */
enum client_auth_input {
    CLIENT_AUTH_NOTHING, /* nobody's: it was not asked */
    CLIENT_AUTH_ANSWER,  /* client_auth_input's */
    CLIENT_AUTH_RELAY    /* it owes the server one, on its link */
};
enum client_auth_input client_auth_wants(const struct client_auth *a);
/* The body of the client's answer. May end it. */
void client_auth_input(struct client_auth *a, struct slice body);
/* True when the server of `link` may be sent that answer, which it is owed. False: it would refuse
 * it, and the client was told so, and ended. */
bool client_auth_passes_on(struct client_auth *a, const struct link *link, struct slice body);
/* True when it has passed. */
bool client_auth_is_over(const struct client_auth *a);
/* The client's pool is that of another server from here on: what is learned is about that one's
 * user. */
void client_auth_on_move(struct client_auth *a);
/* True when one who has proved that may have a used link of `pool`. `a`: its login, NULL when there
 * is none (any more); `is_in`: the session has begun. */
bool client_auth_may_reuse(const struct login_proof *proof, const struct client_auth *a, bool is_in,
    const struct pool *pool);

/* The client's link is being opened; its server asks (false: not for us); it says an error (true:
 * kept until auth_failure_delay is over); it is lost (true: the end comes with that). `a` may be
 * NULL but in the first. client_auth_on_link may end it. */
void client_auth_on_opening(const struct client_auth *a);
bool client_auth_on_link(struct client_auth *a, struct link *link, const char *msg, size_t n);
bool client_auth_hold(struct client_auth *a, const char *p, size_t n);
bool client_auth_on_link_lost(struct client_auth *a, const struct err *err);
/* The turn of a client that waits for a link of its own, to be let in by: false when that is needed
 * still. True: the server was seen to trust meanwhile, the client went on (or is gone). */
bool client_auth_on_turn(struct client_auth *a);

/* Is this the name of the virtual database? Not if pools.conf names it. */
bool console_is_named(const struct conf *conf, struct slice database);

#endif
