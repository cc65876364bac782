/* SPDX-License-Identifier: PostgreSQL
 * scram.h: SCRAM-SHA-256 and SCRAM-SHA-256-PLUS (RFC 5802, 7677, 5929), both roles, as state
 * machines without I/O, clock or random source.
 * Runs in: workers (both roles), control. The server role learns the client's ClientKey from its
 * proof, and the client role can log in with such keys instead of a password: so a user is known by
 * the verifier alone and nothing reversible is stored. Texts of a peer are never trusted: every
 * length and number has a limit. */
#ifndef PGP_AUTH_SCRAM_H
#define PGP_AUTH_SCRAM_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/slice.h"
#include "crypto/secret.h"

#define SCRAM_NAME           "SCRAM-SHA-256"
#define SCRAM_NAME_PLUS      "SCRAM-SHA-256-PLUS"
#define SCRAM_CBIND_TYPE     "tls-server-end-point"
#define SCRAM_KEY_BYTES      32
#define SCRAM_SALT_BYTES     16      /* of salts we make */
#define SCRAM_SALT_MAX_BYTES 256     /* of salts we accept */
#define SCRAM_NONCE_BYTES    18      /* raw; 24 characters of base64 */
#define SCRAM_CBIND_MAX      64      /* the longest certificate hash */
#define SCRAM_MESSAGE_MAX    4096    /* of one message of the peer */
#define SCRAM_ITERATIONS     4096    /* of verifiers we make, as PostgreSQL's default */
#define SCRAM_ITERATIONS_MAX 1000000 /* more is refused: it would be seconds of CPU */

/* What pg_authid.rolpassword holds. A plain value without secrets to own, but wipe it after use. */
struct scram_verifier {
    uint32_t iterations;
    uint32_t salt_len;
    uint8_t salt[SCRAM_SALT_MAX_BYTES];
    uint8_t stored_key[SCRAM_KEY_BYTES];
    uint8_t server_key[SCRAM_KEY_BYTES];
};

/* What logs in to a server in place of the password. Good only where the server's verifier has the
 * same salt and iterations. */
struct scram_keys {
    struct scram_verifier verifier;
    uint8_t client_key[SCRAM_KEY_BYTES];
};

/* Reads "SCRAM-SHA-256$<iterations>:<salt>$<StoredKey>:<ServerKey>"; -1 when it is not one. */
int scram_verifier_parse(struct slice text, struct scram_verifier *out);
/* Appends that text. */
void scram_verifier_format(const struct scram_verifier *v, struct buf *out);
/* Makes the verifier of `password` (prepared by SASLprep here). Costs `iterations` rounds. */
int scram_verifier_build(struct slice password, struct slice salt, uint32_t iterations,
    struct scram_verifier *out, struct err *err);
/* Makes the salt that user `user` is told as long as no verifier with its own salt is stored:
 * always the same for the same `server_secret`, so that a known user cannot be told from an unknown
 * one. */
int scram_salt_of_user(
    struct slice server_secret, struct slice user, uint8_t salt[SCRAM_SALT_BYTES], struct err *err);
/* Makes the verifier that stands in for an unknown user: nobody's proof fits. With `costly` the
 * iterations are spent, as scram_verifier_build would; use it where entries are plain passwords. */
int scram_verifier_mock(struct slice server_secret, struct slice user, uint32_t iterations,
    bool costly, struct scram_verifier *out, struct err *err);
/* Sets *match when `password` belongs to `v`; also gives the keys when `keys` is not NULL. */
int scram_verifier_check(const struct scram_verifier *v, struct slice password, bool *match,
    struct scram_keys *keys, struct err *err);
/* Derives the keys that log in with `password` where the verifier has this salt. */
int scram_keys_derive(struct slice password, struct slice salt, uint32_t iterations,
    struct scram_keys *out, struct err *err);

enum scram_status {
    SCRAM_CONTINUE, /* send `out`, wait for the peer */
    SCRAM_DONE,     /* proved; server role: send `out` as SASLFinal first */
    SCRAM_DENIED,   /* server role: wrong password (or a stand-in verifier); err is not set */
    SCRAM_STALE,    /* client role: the keys do not fit the server's salt or iterations */
    SCRAM_BROKEN    /* the peer broke the protocol, or an error: err is set */
};

/* ---- server role ---- */

struct scram_server_conf {
    const struct scram_verifier *verifier; /* copied */
    bool is_mock;                          /* the verifier stands in: deny whatever comes */
    struct slice cbind;                    /* hash of our certificate; empty: PLUS is not offered */
    uint8_t nonce[SCRAM_NONCE_BYTES];      /* random */
};

/* Private to scram_server.c; public so that it can live in the caller's struct. */
struct scram_server {
    int state;
    bool is_mock;
    bool offers_plus;
    bool uses_plus;
    uint8_t cbind_len;
    uint8_t cbind[SCRAM_CBIND_MAX];
    uint8_t nonce[SCRAM_NONCE_BYTES];
    struct scram_verifier verifier;
    uint8_t client_key[SCRAM_KEY_BYTES];
    struct buf gs2;          /* the client's GS2 header */
    struct buf full_nonce;   /* the client's and ours */
    struct buf auth_message; /* what both sign, as far as it is known */
};

/* Starts an exchange in the caller's storage; end it with scram_server_fini. */
void scram_server_init(struct scram_server *s, const struct scram_server_conf *conf);
/* Wipes and frees; a zeroed struct is allowed. */
void scram_server_fini(struct scram_server *s);
/* Appends the mechanism list that AuthenticationSASL carries, with its end mark. */
void scram_server_mechanisms(const struct scram_server *s, struct buf *out);
/* Appends the mechanism list before there is an exchange: with or without channel binding. */
void scram_put_mechanisms(bool has_binding, struct buf *out);
/* Takes SASLInitialResponse: the mechanism chosen and its data (p == NULL: none was sent). */
enum scram_status scram_server_start(struct scram_server *s, struct slice mechanism,
    struct slice data, struct buf *out, struct err *err);
/* Takes SASLResponse. */
enum scram_status scram_server_step(
    struct scram_server *s, struct slice data, struct buf *out, struct err *err);
/* Takes the body of the client's message as it comes: SASLInitialResponse first, then SASLResponse.
 */
enum scram_status scram_server_message(
    struct scram_server *s, struct slice body, struct buf *out, struct err *err);
/* After SCRAM_DONE: the keys that log in to a server with the same verifier. */
void scram_server_keys(const struct scram_server *s, struct scram_keys *out);

/* ---- client role ---- */

enum scram_cbind_mode {
    SCRAM_CBIND_DISABLE, /* never bind, never say that we could */
    SCRAM_CBIND_PREFER,
    SCRAM_CBIND_REQUIRE
};

struct scram_client_conf {
    struct slice password;         /* used when keys is NULL or does not fit; copied */
    const struct scram_keys *keys; /* copied */
    enum scram_cbind_mode mode;
    struct slice cbind; /* hash of the server's certificate; empty without TLS */
    uint8_t nonce[SCRAM_NONCE_BYTES];
};

/* Private to scram_client.c. */
struct scram_client {
    int state;
    bool has_keys;
    bool uses_plus;
    enum scram_cbind_mode mode;
    uint8_t cbind_len;
    uint8_t cbind[SCRAM_CBIND_MAX];
    uint8_t nonce[SCRAM_NONCE_BYTES];
    uint8_t server_signature[SCRAM_KEY_BYTES];
    struct secret password;
    struct scram_keys keys;
    struct buf gs2;
    struct buf first_bare;
};

/* Starts an exchange in the caller's storage; end it with scram_client_fini. */
void scram_client_init(struct scram_client *c, const struct scram_client_conf *conf);
/* Wipes and frees; a zeroed struct is allowed. */
void scram_client_fini(struct scram_client *c);
/* Chooses from the server's list (body of AuthenticationSASL behind the code) and appends our first
 * message; *mechanism points to a constant. SCRAM_CONTINUE or SCRAM_BROKEN. */
enum scram_status scram_client_start(struct scram_client *c, struct slice mechanisms,
    const char **mechanism, struct buf *out, struct err *err);
/* True when answering AuthenticationSASLContinue costs the iterations in *params, the server's:
 * derive the keys on a thread (scram_keys_derive), then scram_client_give_keys and
 * scram_client_step. */
bool scram_client_must_derive(
    const struct scram_client *c, struct slice data, struct scram_verifier *params);
/* Takes keys that were derived from the password. */
void scram_client_give_keys(struct scram_client *c, const struct scram_keys *keys);
/* Takes AuthenticationSASLContinue. SCRAM_CONTINUE, SCRAM_STALE or SCRAM_BROKEN. */
enum scram_status scram_client_step(
    struct scram_client *c, struct slice data, struct buf *out, struct err *err);
/* Takes AuthenticationSASLFinal: SCRAM_DONE when the server proved that it knows the verifier. An
 * AuthenticationOk before that has to be refused (see scram_client_is_done). */
enum scram_status scram_client_final(struct scram_client *c, struct slice data, struct err *err);
bool scram_client_is_done(const struct scram_client *c);
/* After SCRAM_DONE: the keys used, for the next link of this user. */
void scram_client_keys(const struct scram_client *c, struct scram_keys *out);

/* ---- neither: an exchange of others that is passed on ---- */

/* Private to scram_watch.c. A zeroed struct begins; end it with scram_watch_fini. */
struct scram_watch {
    int state;
    struct buf auth_message; /* what both sign, as far as it has passed */
    uint8_t proof[SCRAM_KEY_BYTES];
};

/* The body of a message of the client: SASLInitialResponse, then SASLResponse; and what the server
 * says in between. What is no exchange without channel binding is not followed. */
void scram_watch_client(struct scram_watch *w, struct slice body);
void scram_watch_server(struct scram_watch *w, struct slice data);
/* True when the proof has passed. */
bool scram_watch_is_whole(const struct scram_watch *w);
/* The keys that the proof was made of, when it fits the verifier. */
bool scram_watch_keys(
    const struct scram_watch *w, const struct scram_verifier *v, struct scram_keys *out);
/* Wipes and frees. */
void scram_watch_fini(struct scram_watch *w);

#endif
