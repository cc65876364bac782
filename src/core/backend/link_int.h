/* SPDX-License-Identifier: PostgreSQL
 * link_int.h: what the files of a link share. */
#ifndef PGP_BACKEND_LINK_INT_H
#define PGP_BACKEND_LINK_INT_H

#include "backend/link.h"
#include "base/hot.h"

struct auth_login;

/* The longest message that is collected before it is looked at. Login messages and ParameterStatus
 * are far shorter; of a longer ErrorResponse only this much is looked at. */
#define LINK_COLLECT_MAX 32768

/* What a server may report: PostgreSQL has some fifteen parameters, an extension a few more. Each
 * one that is new costs as much as there are already, for everybody in the worker. */
#define LINK_PARAMETERS_MAX       100
#define LINK_PARAMETERS_MAX_BYTES 16384

/* link_log(link, level, fmt, ...): a line about the link, in the context of its owner. */
#define link_log(link, level, ...) link_log_put(LOG_HERE, link, level, __VA_ARGS__)
void link_log_put(const struct log_place *place, const struct link *link, enum log_level level,
    const char *fmt, ...) __attribute__((format(printf, 4, 5)));
/* Frees a link that is closed, and its stream, too. */
void link_free(struct link *link);
/* Closes it as link_close does, but the server is not told: another worker has the connection. */
void link_close_silently(struct link *link);
/* Ends the link and tells the owner. */
COLD void link_fail(struct link *link, const struct err *err);
/* Keeps bytes in link->carry; forgets them. */
COLD void link_carry(struct link *link, struct slice bytes);
void link_carry_free(struct link *link);
/* True when the server may report this, too; else the link is gone. */
bool link_takes_parameter(struct link *link, struct slice name, struct slice value);
/* One whole message during LOGIN. */
void link_login_message(struct link *link, char type, const char *msg, size_t n);
/* link_auth.c: one authentication message. */
enum link_auth_step {
    LINK_AUTH_STEP_DONE, /* seen to; the link may be gone */
    LINK_AUTH_STEP_OWNER /* for the owner */
};
enum link_auth_step link_auth_on_message(struct link *link, struct slice body);
/* link_require.c: backend_require_auth allows the server to ask for this (AUTH_SERVER_TRUST: for
 * nothing). False: *err says why not. */
bool link_require_fits(const struct link *link, enum auth_server asks, struct err *err);
/* backend_require_auth allows this answer, which `login` has: who is known by SCRAM is not asked
 * for less. False: *err says why not. */
bool link_require_is_strong(
    const struct link *link, const struct auth_login *login, enum auth_give give, struct err *err);
/* backend_require_auth allows a password in clear text on this link. False: *err says why not. */
bool link_require_may_show(const struct link *link, struct err *err);
/* The server refused the login. */
void link_auth_on_refusal(struct link *link, const char *sqlstate);
/* Forgets what the login needed; wipes it. */
void link_answer_free(struct link *link);
bool link_answer_is_ours(const struct link *link);
/* More queries of reset_query_list than this are not sent: the bits of link->discards. */
#define LINK_MAX_RESETS 8
/* link_reset.c */
/* The replies to the reset queries of the link go on the expect queue, the queries in `out`. */
void link_reset_expect_all(struct link *link);
void link_reset_put_all(struct link *link, struct buf *out);
/* link_row.c: the process number that the client that has the link was told; 0: not known. */
int32_t link_row_told_pid(const struct link *link);
/* link_clean.c */
/* Sends the reset queries, and expects their replies: the link is being cleaned. */
void link_clean_send_resets(struct link *link);
/* Idle and due for long enough, or wanted by somebody who cannot put the reset in front: sends it.
 */
void link_clean_idle(struct link *link);
/* The owner has the link, and the replies to the reset queries are awaited. */
static inline bool link_awaits_reset(const struct link *link)
{
    return link->resets_done < link->resets_sent && link->phase == LINK_LENT;
}
/* How long it may take. */
void link_clean_start_timer(struct link *link);
/* True when it may take longer; who waits for the link is served otherwise. */
bool link_clean_on_timer(struct link *link);
/* The cleaning goes on: everything owed has arrived. */
void link_clean_step(struct link *link);
/* Starts the cleaning of a link that its owner gave back. */
void link_clean_start(struct link *link, bool boundary);
/* The server began to read COPY data although the client has left: end it. */
void link_clean_copy_in(struct link *link);
/* A reply while the link is cleaned (CommandComplete whole, others by type): false when it cannot
 * be one to our reset queries. */
bool link_clean_is_answer(struct link *link, char type, struct slice body);
/* An error while the link is cleaned: true when it does not tell against it. */
bool link_clean_forgives(struct link *link, struct slice sqlstate);
/* A link on a connection that another worker opened; phase CLEANING, nothing owed, quota held. */
struct link *link_adopt(struct pool *pool, int fd);
/* CLEANING is over: the link is cached, or goes to who waits. */
void link_enter_idle(struct link *link);

/* link_see.c */
/* True when a message of `len` bytes, of which a part is there, is better waited for: on_tee is to
 * see it. */
bool link_see_waits(const struct link *link, char type, size_t len);
/* expect_reply for a message of which `have` bytes are at `p`, while an op of OP_SEEN is owed. */
enum expect_verdict link_see_reply(struct link *link, const char *p, size_t have);
/* More of the body that is put together; link->body_left is still to come. */
void link_see_body(struct link *link, const char *p, size_t n);
/* Nobody wants to see it any more. */
void link_see_forget(struct link *link);
/* Nothing of what is owed is going to be seen. */
COLD void link_see_lost(struct link *link);

/* link_tls.c */
/* Connected: asks for TLS when the node's settings say so, then starts the login with `packet`,
 * which may be taken. */
void link_tls_start(struct link *link, struct buf *packet);
/* The server refuses the login: true when it is tried again with TLS, or without. */
bool link_tls_on_login_error(struct link *link, const char *sqlstate);
void link_tls_on_login_done(struct link *link);
/* The stream is closed: true when that was for a new attempt. */
bool link_tls_on_closed(struct link *link);
/* The link is closed: true when its old connection is still being closed, and the link's memory is
 * freed after that. */
bool link_tls_close(struct link *link);

/* Asking a server for TLS on a connected stream, for links and for cancel requests. */
enum backend_tls_verdict {
    BACKEND_TLS_MORE,    /* the answer is not complete */
    BACKEND_TLS_READY,   /* the stream speaks TLS */
    BACKEND_TLS_REFUSED, /* the server does not speak TLS; the connection goes on in clear */
    BACKEND_TLS_FAILED   /* *err says why */
};
int backend_tls_begin(struct backend *be, int node, struct stream *s, struct err *err);
/* No connection to the node may be in the clear. */
bool backend_tls_is_due(const struct conf *conf, int node);
/* Connections that were opened by the settings `was` have less than `conf` promises. */
bool backend_tls_is_stricter(const struct conf *conf, const struct conf *was, int node);
/* *s can be read. */
enum backend_tls_verdict backend_tls_step(
    struct backend *be, int node, struct stream *s, struct err *err);
/* Frees what backend_tls_set_conf made. */
void backend_tls_fini(struct backend *be);

/* link->stream has something to read. */
void link_on_readable(struct stream *s);

#endif
