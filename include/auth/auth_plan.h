/* SPDX-License-Identifier: PostgreSQL
 * auth_plan.h: decides, from all that is known before a client has proved anything, what it is
 * asked, who judges the answer, and what the servers are given. A pure function, because every hole
 * of this kind in other poolers was a combination that nobody had looked at: here all of them are
 * enumerated by a test.
 * Runs in: workers.
 *
 * The one rule behind the table: a client passes only when somebody judged what it gave: we, by
 * something stored; a helper (PAM, LDAP, the kernel, the TLS library); or a server that asked for
 * it on a link opened for this client. That a link is open already, or that the server trusts us,
 * is no proof of anything. */
#ifndef PGP_AUTH_AUTH_PLAN_H
#define PGP_AUTH_AUTH_PLAN_H

#include <stdbool.h>

#include "auth/cred.h"
#include "auth/hba.h"
#include "base/err.h"

/* What a server asked for. */
enum auth_server {
    AUTH_SERVER_UNKNOWN, /* not asked yet */
    AUTH_SERVER_TRUST,   /* let us in without a question */
    AUTH_SERVER_PASSWORD,
    AUTH_SERVER_MD5,
    AUTH_SERVER_SCRAM,
    AUTH_SERVER_OTHER /* GSSAPI and the like: we cannot */
};

/* How the client's bytes come. */
enum auth_channel {
    AUTH_CHANNEL_CLEAR,
    AUTH_CHANNEL_TLS,
    AUTH_CHANNEL_TLS_CERT /* it showed a certificate of an authority that we know */
};

struct auth_facts {
    bool has_rule; /* enable_pool_hba: `method` and `clientcert` are the line's */
    enum hba_method method;
    enum hba_clientcert clientcert;
    bool ldap_password_for_server;
    enum auth_channel channel;
    enum cred_kind stored; /* about the user that the client names */
    bool maps_user;        /* the servers are given another user, with `mapped` */
    enum cred_kind mapped;
    enum auth_server server;
    bool fresh_link;       /* `server` was said on a link that waits for this client's answer */
    bool may_relay;        /* the client may talk to that server itself (nothing else needs the
                            * password: one node, or session mode) */
    bool allow_clear_text; /* allow_clear_text_frontend_auth */
    bool md5_is_usual;     /* most users that the servers know have an md5 secret */
};

static inline bool auth_is_tls(const struct auth_facts *f)
{
    return f->channel != AUTH_CHANNEL_CLEAR;
}

enum auth_ask {
    AUTH_ASK_REFUSE, /* nothing: refuse with `reason` */
    AUTH_ASK_NOTHING,
    AUTH_ASK_PASSWORD, /* in clear text */
    AUTH_ASK_MD5,
    AUTH_ASK_SCRAM,
    AUTH_ASK_RELAY,       /* what the server asks, with its words (never its SCRAM-SHA-256-PLUS) */
    AUTH_ASK_SERVER_FIRST /* open a link for this client, see what the server asks, plan again */
};

enum auth_proof {
    AUTH_PROOF_NEVER,  /* a stand-in: refuse whatever comes, after the usual steps */
    AUTH_PROOF_TRUST,  /* none needed: the administrator said so */
    AUTH_PROOF_STORED, /* we compare with what is stored */
    AUTH_PROOF_SERVER, /* the server on the fresh link judges; it did ask */
    AUTH_PROOF_CERT,   /* the name in the certificate has to be the user's */
    AUTH_PROOF_PAM,
    AUTH_PROOF_LDAP,
    AUTH_PROOF_PEER
};

struct auth_plan {
    enum auth_ask ask;
    enum auth_proof proof;
    bool check_cert_name; /* besides: clientcert=verify-full */
    bool keep_password;   /* a clear-text password that passed may be used for servers */
    const char *reason;   /* a constant sentence for the log, or NULL */
};

/* Makes the plan. */
struct auth_plan auth_plan_make(const struct auth_facts *f);

/* What we hold about a user after it passed: bits. */
#define AUTH_HOLD_PASSWORD 1U
#define AUTH_HOLD_MD5      2U
#define AUTH_HOLD_KEYS     4U
/* The password is what a client sent in clear text: who lets it may let it be passed on so. */
#define AUTH_HOLD_HEARD 8U

/* The bits: from what is stored (or mapped), plus what the client showed while it passed by `plan`.
 * `got_keys`: the exchange or check gave SCRAM keys. */
unsigned auth_hold(const struct auth_facts *f, const struct auth_plan *plan, bool got_keys);

enum auth_give {
    AUTH_GIVE_IMPOSSIBLE, /* *err says what is missing and what to do */
    AUTH_GIVE_NOTHING,
    AUTH_GIVE_PASSWORD,
    AUTH_GIVE_MD5, /* md5 response from the md5 form */
    AUTH_GIVE_MD5_OF_PASSWORD,
    AUTH_GIVE_SCRAM_PASSWORD, /* SCRAM from the password */
    AUTH_GIVE_SCRAM_KEYS      /* SCRAM from the keys; if stale, see scram.h */
};

/* What answers a server that asks `server`, with `hold`. */
enum auth_give auth_give_choose(
    unsigned hold, enum auth_server server, struct slice user, struct err *err);

/* Why a server has to ask for SCRAM that would be answered by `give`, unless backend_require_auth
 * says otherwise, as half a sentence; NULL: it need not. `has_verifier`: that is what is stored;
 * `by_scram`: the client's line says scram-sha-256. */
const char *auth_scram_is_due(unsigned hold, bool has_verifier, bool by_scram, enum auth_give give);

/* What the client is told when it did not pass: the same for a wrong password and an unknown user.
 * Reasons go to the log only. */
void auth_refusal(
    const struct auth_facts *f, const struct auth_plan *plan, struct slice user, struct err *err);

/* Words for the log. */
const char *auth_ask_text(enum auth_ask ask);
/* The word in the log for a proof. */
const char *auth_proof_text(enum auth_proof proof);
/* The word in the log for what a server asks; the names are those of pg_hba.conf. */
const char *auth_server_text(enum auth_server server);

#endif
