/* SPDX-License-Identifier: PostgreSQL
 * client_auth_int.h: authentication of clients, as the files that do it share it.
 *
 *   RULE → LOOKUP → (SERVER_FIRST → SERVER) → ASKED → JUDGE → PROVED
 *                                           → RELAY ........→ PROVED      any → FAILED
 *
 * A client that has proved itself owns nothing of this. */
#ifndef PGP_CLIENT_AUTH_INT_H
#define PGP_CLIENT_AUTH_INT_H

#include "auth/auth_book.h"
#include "auth/auth_guard.h"
#include "auth/auth_plan.h"
#include "auth/hba.h"
#include "auth/ident.h"
#include "auth/scram.h"
#include "base/list.h"
#include "crypto/secret.h"
#include "event/jobs.h"
#include "event/loop.h"
#include "login/login.h"
#include "login/login_auth.h"

/* Questions that one login may raise while its line of pool_hba.conf is looked for. */
#define AUTH_QUESTIONS_MAX 64

/* ---- login_auth.c: what a worker needs for authentication ---- */

/* The two rule files; replaced as a whole, kept while a login looks at them. */
struct auth_rules {
    _Atomic unsigned refs; /* jobs on threads have some */
    struct hba *hba;       /* NULL: the file cannot be used: nobody is let in */
    struct ident *ident;   /* NULL: there is none */
};

/* `r` may be NULL. */
struct auth_rules *auth_rules_ref(struct auth_rules *r);
void auth_rules_unref(struct auth_rules **rp);

struct login_auth {
    struct login_worker worker;
    struct backend *be; /* its conf is the present one */
    const struct conf_gen *gen;
    struct auth_book *book; /* belongs to the backend */
    struct auth_guard *guard;
    struct jobs *jobs; /* the backend's */
    struct auth_rules *rules;
    struct hash_table roles; /* answers about memberships */
    struct list role_lru;
    struct list probers;       /* connections that look things up */
    struct list owing;         /* logins that owe an answer, who was asked last at the end */
    int64_t passwd_us;         /* when pool_passwd was last looked at */
    bool use_fallback;         /* auth_query: the default function is not there */
    uint64_t fallback_targets; /* a bit as use_fallback for each server of pools.conf */
    char *key_path;
    struct job *opener; /* of encrypted entries, see login_auth_open_ahead */
    size_t open_at;
    unsigned nopened;
    unsigned open_cost;       /* values of an entry that are encrypted so, at most; 0: all of them
                                 are open, or none is encrypted */
    struct auth_tried *tried; /* client_auth_tried.c's; NULL: nobody was here yet */
    struct list learners;     /* logins whose keys are being found */
    int64_t learn_after_us;   /* none are looked for before that */
    int64_t failed_until_us;  /* asking in the way of failed_key is taken to fail up to then */
    struct buf failed_key;
    struct prep *last_lookup; /* statement that was asked last: its name is made once */
};

/* pool_passwd may have changed: looks, once a second at most. */
void login_auth_look(struct login_auth *sa);
/* What was told about a user: of AUTH_LOOKUP_LOGIN, of AUTH_LOOKUP_ROLE (YES, NO), and that
 * somebody was asked for AUTH_LOOKUP_KEYS (YES). */
enum auth_told {
    AUTH_TOLD_NOTHING, /* or not lately */
    AUTH_TOLD_YES,
    AUTH_TOLD_NO,
    AUTH_TOLD_EXPIRED, /* it may log in, but by no password */
    AUTH_TOLD_NO_ROLE
};

enum auth_told login_auth_told(
    struct login_auth *sa, enum auth_lookup_kind kind, struct slice user, struct slice role);
void login_auth_put_told(struct login_auth *sa, enum auth_lookup_kind kind, struct slice user,
    struct slice role, enum auth_told told);
/* The last word of AUTH_LOOKUP_LOGIN about `user`, which holds while nobody can be asked. */
enum auth_told login_auth_last_told(struct login_auth *sa, struct slice user);
void login_roles_clear(struct login_auth *sa);

/* What tells ways apart: where is asked, by whom and with which query (client_auth_way.c). */
void auth_way_put_key(const struct auth_way *way, struct buf *out);

/* False: nobody asks. */
static inline bool auth_way_is_there(const struct auth_way *way)
{
    return *way->user != '\0';
}

/* ---- client_auth_query.c: looking things up in the data base ---- */

/* A name that no role has. */
#define AUTH_NOBODY "\1nobody"

/* Who waits for an answer. In the caller's struct. */
struct auth_wait {
    struct list node;
    /* The answer is in the book (or among the roles): 0; or *err says why not. */
    void (*done)(struct auth_wait *w, const struct err *err);
};

/* True when a secret that is looked up so is that of a role which may log in: it is our own query
 * that finds it. */
bool auth_lookup_tells_role(const struct login_auth *sa, const struct auth_way *way);
/* True when asking has failed lately, and not at once: who can do without does not wait for the
 * next failure. */
bool auth_lookup_is_hopeless(const struct login_auth *sa, const struct auth_way *way);
/* Somebody has waited long enough: asking is hopeless until it is answered after all. */
void auth_lookup_give_up(struct login_auth *sa, const struct auth_way *way);
/* Asks; equal questions are asked once. `role` is that of AUTH_LOOKUP_ROLE, `book_name` what the
 * answer is kept under. */
void auth_lookup_start(struct login_auth *sa, enum auth_lookup_kind kind,
    const struct auth_way *way, struct slice user, struct slice role, struct slice book_name,
    struct auth_wait *w);
/* Stops waiting; harmless when not waiting. */
void auth_lookup_cancel(struct auth_wait *w);
void auth_probers_close(struct login_auth *sa);

/* ---- the login of one client ---- */

enum auth_step {
    AUTH_STEP_RULE,        /* which line of pool_hba.conf? */
    AUTH_STEP_LOOKUP,      /* what is stored about the user? */
    AUTH_STEP_SERVER,      /* a link of its own is on the way to what the server asks */
    AUTH_STEP_ASKED,       /* the client owes an answer */
    AUTH_STEP_HALF_WAY,    /* and has been told what it may guess by */
    AUTH_STEP_JUDGE,       /* somebody thinks about it */
    AUTH_STEP_LINK_JUDGES, /* the server does, which was given the password */
    AUTH_STEP_RELAY,       /* the client talks to the server itself */
    AUTH_STEP_PROVED,
    AUTH_STEP_FAILED /* or the session has ended */
};

/* Whether the role may log in. */
enum auth_role_look {
    AUTH_ROLE_UNSEEN,
    AUTH_ROLE_SEEN, /* as far as it can be known */
    AUTH_ROLE_SURE  /* a server has answered just now */
};

/* What auth_query has answered about the user, who is not relayed with an answer: it judges; or it
 * could not be asked, and nobody is told that a password is wrong. */
enum auth_answer { AUTH_ANSWER_NONE, AUTH_ANSWER_JUDGES, AUTH_ANSWER_UNSURE };

/* What the first login of a name costs, spent in this order, once in a login. */
enum auth_spent {
    AUTH_SPENT_NOTHING,
    AUTH_SPENT_OPENING, /* its entry was looked at, whether it has to be decrypted */
    AUTH_SPENT_DERIVING /* what SCRAM takes */
};

struct auth_question {
    bool is_role; /* else a host */
    enum hba_answer answer;
    char name[];
};

struct client_auth {
    struct login_who who;
    struct login_auth *sa;
    uint8_t step;      /* enum auth_step */
    uint8_t role;      /* enum auth_role_look */
    uint8_t spent;     /* enum auth_spent */
    uint8_t answer;    /* enum auth_answer */
    bool is_counted;   /* the failure is, in the guard */
    bool needs_server; /* an expired role: only a server that is asked anew lets it in */
    bool is_asked;     /* for SCRAM, before it was known what is stored */
    bool *gone;        /* set when it is freed; NULL: nobody looks */
    struct auth_facts facts;
    struct auth_plan plan;
    struct auth_rules *rules;
    const struct hba_rule *rule; /* of rules->hba, or NULL */
    struct hba_addr addr;
    struct cred stored;
    struct cred mapped;
    char *server_user;     /* NULL: servers know the user by the same name */
    int64_t stored_age_us; /* of the answer of auth_query that was used */
    struct scram_server scram;
    struct scram_watch *watch; /* of an exchange that is passed on; NULL: nothing is learned */
    bool got_keys;
    uint32_t peer_uid; /* of the process at the other end of a Unix socket */
    uint8_t salt[CRED_MD5_SALT_BYTES];
    struct secret password; /* that passed, and may be used for servers */
    struct scram_keys keys;
    struct auth_question *question[AUTH_QUESTIONS_MAX];
    unsigned nquestions;
    struct auth_question *open;             /* of question[], being asked */
    void (*again)(struct client_auth *a);   /* when it is answered, or what was computed is there */
    void (*matched)(struct client_auth *a); /* its line is known */
    struct auth_wait wait;
    struct list owing; /* login_auth.owing */
    int64_t asked_us;
    struct job *job;
    struct timer delay;
    struct timer patience; /* with a look-up that somebody else's word may replace */
    struct err refusal;
    struct buf book_name;
    struct buf held; /* the refusal of the server, told after the delay */
};

static inline void auth_say(struct client_auth *a, struct buf *out)
{
    (void)a->who.ops->say(a->who.owner, out, false);
}

/* False when the client is on its way out: results come too late. */
static inline bool client_auth_is_live(const struct client_auth *a)
{
    return a->step != AUTH_STEP_FAILED;
}

static inline struct slice client_auth_user(const struct client_auth *a)
{
    return a->who.user;
}

/* Under which name the book knows the user. */
static inline struct slice client_auth_book_name(const struct client_auth *a)
{
    return buf_slice(&a->book_name);
}

/* How what is stored about the user is looked up. */
static inline struct auth_way client_auth_way(const struct client_auth *a)
{
    return login_auth_find_way(a->sa->be->conf, a->who.startup->database, a->who.user);
}

/* pool_passwd has entries of clients: known by the first that is not of a user of ours. */
static inline bool client_auth_file_judges(const struct client_auth *a)
{
    return login_auth_file_judges(a->sa->be->conf, auth_book_passwd(a->sa->book));
}

/* client_auth.c */
/* Goes on with what the plan says. */
void client_auth_plan(struct client_auth *a);
/* The judge said yes. */
void client_auth_pass(struct client_auth *a);
/* The judge said no: `reason` is for the log. */
void client_auth_deny(struct client_auth *a, const char *reason);
/* The login cannot go on: `err` is for the client, `reason` (may be NULL) for the log. Not counted
 * as a wrong password. */
void client_auth_stop(struct client_auth *a, const struct err *err, const char *reason);
/* Counts the failed login, once. */
void client_auth_count_failure(struct client_auth *a);
/* Has failed: the client is told after auth_failure_delay. False when that is at once, by the
 * caller. */
bool client_auth_delay(struct client_auth *a);
/* Has failed, whatever the reason: the client is told now or after auth_failure_delay. */
void client_auth_refuse(struct client_auth *a, bool may_delay);
void client_auth_log_refusal(const struct client_auth *a, const char *reason);
/* The line of pool_hba.conf, in brackets; "" when there is none. */
const char *client_auth_where(const struct client_auth *a, char *out, size_t size);
/* The timer of auth_failure_delay. */
void client_auth_on_delay(struct timer *t);
/* What is known of a user of pools.conf's servers is kept apart, as pool_book_name does. */
void client_auth_put_book_name(const struct client_auth *a, struct slice user, struct buf *out);
/* The client broke the protocol. */
void client_auth_broken(struct client_auth *a, const struct err *err);

/* client_auth_owes.c */
/* The client was asked something just now; it has answered. */
void client_auth_owes(struct client_auth *a);
void client_auth_answered(struct client_auth *a);

/* client_auth_tried.c */
/* The first login of this name has spent so many iterations (0: opening an entry) already. Noted
 * when it has: a second one meanwhile has to spend it, too, as it does where something is made. */
bool client_auth_has_spent(const struct client_auth *a, uint32_t iterations);
void client_auth_note_spent(struct client_auth *a, uint32_t iterations);
/* With pool_hba off: what the server asked when a login of this name was here before. */
enum auth_server client_auth_was_asked(const struct client_auth *a);
/* The server asks this on a link opened for this login. */
void client_auth_note_asked(struct client_auth *a, enum auth_server asks);
/* Forgets what the server asked for, as it did not ask when a link was opened for a client that had
 * passed. */
void client_auth_forget_asked(struct client_auth *a);
void login_auth_forget_tried(struct login_auth *sa);

/* Has the address failed too often? */
bool client_auth_is_blocked(const struct client_auth *a, enum auth_guard_kind kind);
/* The words for who failed while it could not be found out whose password is right. */
void client_auth_unsure_refusal(struct err *out);

/* client_auth_plan.c */
/* Would auth_query tell what is stored about the user? */
bool client_auth_asks_servers(const struct client_auth *a);
/* May the server judge the client, if nothing is stored? */
bool client_auth_may_relay(const struct client_auth *a);
/* Finds what is stored about the user; goes on with client_auth_plan. */
void client_auth_find_stored(struct client_auth *a);
/* The timer of it. */
void client_auth_on_patience(struct timer *t);
/* What the server asked lately; unknown is always safe. */
enum auth_server client_auth_remembered(const struct client_auth *a);

/* client_auth_open.c */
/* Decrypts the user's entry in pool_passwd off the loop; false when there is nothing to decrypt.
 * `*slot` is the job meanwhile, for job_leave; `opened` is called when it is done. */
bool auth_open_start(struct login_auth *sa, struct slice user, struct job **slot, void *owner,
    void (*opened)(void *owner));
/* pool_passwd was read: opens its encrypted entries, one after the other. */
void login_auth_open_ahead(struct login_auth *sa);
/* True when something is computed for the client's SCRAM exchange first, off the loop; then
 * `again` is called. */
bool client_auth_derives(struct client_auth *a, void (*again)(struct client_auth *a));
/* True when the user's entry in pool_passwd is decrypted first, off the loop; then
 * `again` is called. */
bool client_auth_opens_entry(struct client_auth *a, void (*again)(struct client_auth *a));

/* client_auth_rule.c */
/* Finds the line; goes on with a->matched. */
void client_auth_match(struct client_auth *a);
/* Is an outside name (of a certificate, of the operating system) the user's, or does it map to it?
 * HBA_ASK: a membership has to be looked up first: client_auth_ask_question, then once more. */
enum hba_answer client_auth_name_fits(struct client_auth *a, struct slice name, struct err *err);
/* The oracle said HBA_ASK: finds out what it was asked last, then calls `again`. */
void client_auth_ask_question(struct client_auth *a, void (*again)(struct client_auth *a));
void client_auth_free_questions(struct client_auth *a);

/* client_auth_ask.c */
/* Asks the client as the plan says. */
void client_auth_ask(struct client_auth *a);
/* Asks for SCRAM at once, while what is stored is looked up: whatever that is, SCRAM is asked for.
 * The answer is not read before client_auth_ask. */
void client_auth_ask_early(struct client_auth *a);
/* An answer: the body of its message. */
void client_auth_on_answer(struct client_auth *a, struct slice body);
/* Does the name in the client's certificate fit? As client_auth_name_fits. */
enum hba_answer client_auth_cert_fits(struct client_auth *a, struct err *err);
/* Asks the kernel who is at the other end of the Unix socket. */
void client_auth_check_peer(struct client_auth *a);

/* login_learn.c: SCRAM is passed on. What the client says (the body of its message), and the
 * server. */
void client_auth_watch_client(struct client_auth *a, struct slice body);
void client_auth_watch_server(struct client_auth *a, struct slice data);
void client_auth_watch_free(struct client_auth *a);
/* The server has let it in: looks for what opens others, which goes into the book later. */
void client_auth_learn_keys(struct client_auth *a);
/* An answer for those who wait: what the server has stored about `user`, or nothing. */
void login_learn_take(
    struct login_auth *sa, struct slice user, const struct list *waiters, struct slice secret);
void login_learners_close(struct login_auth *sa);

/* console_auth.c: who may enter the virtual database. */
/* The line of pool_hba.conf is known, or there is none. True: pcp.conf judges, and what it has is
 * found. False: what is stored does, as for others. */
bool console_judges(struct client_auth *a);
/* One of admin_users or stats_users. */
bool console_is_listed(const struct client_auth *a);
/* Makes a->plan from what was found; false when the client was told that it cannot be. */
bool console_plan(struct client_auth *a);
/* True when the one who has passed may use all commands. */
bool console_may_all(const struct client_auth *a);

#endif
