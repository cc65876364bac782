/* SPDX-License-Identifier: PostgreSQL
 * auth_book.h: what a worker knows about users: what is stored about their passwords (pool_passwd,
 * answers of auth_query) and what logs in to servers in their name.
 * Runs in: workers, one book each. Reads files, does no network I/O, gets the time as a parameter.
 *
 * Two things that must not be mixed up: what is STORED judges clients; a LOGIN opens servers. A
 * login is filled from what is stored (a plain password opens servers, a SCRAM verifier does not)
 * and from what clients showed while they proved themselves. Only a link whose owner has proved
 * that very identity may be opened with it, see pool_request.answers.
 *
 * A user is a name; where several servers each have users of their own, a NUL and the server's name
 * follow, and pool_passwd alone is the same for all of them. */
#ifndef PGP_AUTH_AUTH_BOOK_H
#define PGP_AUTH_AUTH_BOOK_H

#include <stdbool.h>
#include <stdint.h>

#include "auth/auth_plan.h"
#include "auth/cred.h"
#include "base/buf.h"
#include "base/slice.h"
#include "crypto/secret.h"

/* How many users are remembered; the one unused for longest is forgotten, but not what opens the
 * servers of one who has pools. Names that nobody proved to have are kept apart, whether auth_query
 * knows them or not: anybody can say any number of those. */
#define AUTH_BOOK_USERS    4000
#define AUTH_BOOK_UNPROVED 200

struct auth_book;
struct auth_opening;
struct passwd_table;

/* What logs in to servers as one user. */
struct auth_login {
    unsigned hold;          /* AUTH_HOLD_...: which of the following are there */
    bool has_verifier;      /* of what is stored, which opens nothing: SCRAM is due */
    struct secret password; /* AUTH_HOLD_PASSWORD */
    char md5[CRED_MD5_BYTES + 1];
    struct scram_keys keys;
};

enum auth_source { AUTH_SOURCE_NONE, AUTH_SOURCE_PASSWD, AUTH_SOURCE_QUERY };

/* What is stored about a user. Views and pointers are valid until the next call that changes the
 * book. */
struct auth_stored {
    enum auth_source source;
    const struct cred *cred;        /* kind CRED_NONE: a user that nobody knows, or without one */
    struct slice server_user;       /* n == 0: servers know the user by the same name */
    const struct cred *server_cred; /* with server_user */
    int64_t age_us; /* AUTH_SOURCE_QUERY: since the answer came; INT64_MAX: it is in doubt */
    bool is_known;  /* AUTH_SOURCE_QUERY: there was a row, perhaps without a secret */
};

/* Makes an empty book. */
struct auth_book *auth_book_new(void);
/* Wipes and frees. */
void auth_book_free(struct auth_book **bp);

/* Reads pool_passwd (`path`, NULL or empty: none) and its key when they are not what was read
 * before; a file that cannot be read leaves the old entries. `is_speaker`: this worker's turn to
 * write findings to the log (all workers find the same). True when the entries or the key are not
 * those of before. */
bool auth_book_load_passwd(
    struct auth_book *b, const char *path, const char *key_path, bool is_speaker);

/* pool_passwd as it was read last; NULL: there is none. */
const struct passwd_table *auth_book_passwd(const struct auth_book *b);

/* What pool_passwd says; false when it has no entry for the user. */
bool auth_book_find_passwd(struct auth_book *b, struct slice user, struct auth_stored *out);
/* Decrypting an entry can take long: what has to be done for the user's, to be freed by
 * auth_opening_free; NULL when nothing has. A thread does the work and touches the opening alone;
 * then the book takes what came out. Without this, auth_book_find_passwd does it where it is. */
struct auth_opening *auth_book_begin_opening(struct auth_book *b, struct slice user);
void auth_opening_work(struct auth_opening *o);
/* How many values of one entry have to be decrypted at most; 0: none, or nobody has the key. */
unsigned auth_book_slow_values(const struct auth_book *b);
/* An opening of nothing, which auth_opening_make_last makes cost something. */
struct auth_opening *auth_book_begin_nothing(const struct auth_book *b);
/* Makes the opening cost as much as one of so many values. */
void auth_opening_make_last(struct auth_opening *o, unsigned nvalues);
void auth_book_end_opening(struct auth_book *b, struct slice user, struct auth_opening *o);
void auth_opening_free(struct auth_opening **op);
/* The next entry that has to be decrypted, from position *at on (0: from the first). */
bool auth_book_next_closed(struct auth_book *b, size_t *at, struct slice *user);
/* True when pool_passwd has passwords that can be read, encrypted or not: their verifiers have to
 * be made. */
bool auth_book_has_readable(const struct auth_book *b);
/* What auth_query said in `database` not longer than `max_age_us` ago; false when it has to be
 * asked there: what another data base says may be of its owner's making. */
bool auth_book_find_answer(struct auth_book *b, struct slice user, struct slice database,
    int64_t now_us, int64_t max_age_us, struct auth_stored *out);
/* Keeps an answer; not `is_known`: there is no such user; `secret.p` NULL: none that may log in.
 * True when it is not what was said the last time: links opened under the old password should go.
 */
bool auth_book_put_answer(struct auth_book *b, struct slice user, struct slice database,
    bool is_known, struct slice secret, int64_t now_us);
/* The answer is in doubt: somebody failed by it, or the role was changed. It is asked for anew at
 * the next login, and goes on opening servers, for anybody can fail under a name. */
void auth_book_drop_answer(struct auth_book *b, struct slice user);
/* The verifier that clients of a user with `cred` are checked against; one made of a plain password
 * has so many `iterations`, which are computed only once. -1 as cred_scram_verifier. */
int auth_book_verifier(struct auth_book *b, struct slice user, const struct cred *cred,
    struct slice server_secret, uint32_t iterations, struct scram_verifier *out, struct err *err);

/* Is the verifier of this plain password made already? */
bool auth_book_has_verifier(
    struct auth_book *b, struct slice user, const struct cred *cred, uint32_t iterations);
/* Keeps a verifier that a thread has made. */
void auth_book_put_verifier(struct auth_book *b, struct slice user, const struct cred *cred,
    const struct scram_verifier *v);

/* What logs in to servers as `user`; NULL when nothing is known. Valid until the next call. */
const struct auth_login *auth_book_login(struct auth_book *b, struct slice user);
/* There is a pool of `user`, one more or one less: as long as there is any, what was learned of the
 * user is not forgotten to make room. */
void auth_book_hold(struct auth_book *b, struct slice user);
void auth_book_let_go(struct auth_book *b, struct slice user);
/* Something that opened, or is going to open, servers as `user`. */
void auth_book_learn_password(struct auth_book *b, struct slice user, struct slice password);
void auth_book_learn_keys(struct auth_book *b, struct slice user, const struct scram_keys *keys);
void auth_book_learn_cred(struct auth_book *b, struct slice user, const struct cred *cred);
/* Appends what auth_book_login knows, for the book of another worker; nothing when that is nothing.
 * `out` is a secret buffer. */
void auth_book_pack_login(struct auth_book *b, struct slice user, struct buf *out);
/* Learns what another worker's book has packed, unless something is known already. */
void auth_book_learn_packed(struct auth_book *b, struct slice user, struct slice bytes);
/* A server refused the user, or its verifier is another now: what was learned goes, and the answer
 * of auth_query with it. */
void auth_book_forget(struct auth_book *b, struct slice user);

#endif
