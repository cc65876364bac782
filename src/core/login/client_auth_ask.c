/* SPDX-License-Identifier: PostgreSQL
 * client_auth_ask.c: what the client is asked, and what becomes of its answer: compared with what
 * is stored, given to PAM, to a directory or to the server. Known users, unknown ones and those who
 * may not come in take the same steps.
 * Runs in: workers. Must never: compute for long on the loop, keep a password longer than needed,
 * compare a secret in a time that depends on it. */
#include "config.h"

#include <string.h>
#include <sys/socket.h>

#include "auth/auth_helper.h"
#include "base/assert.h"
#include "base/mem.h"
#include "config/conf.h"
#include "crypto/crypto.h"
#include "net/tls.h"
#include "wire/writer.h"

#include "client_auth_int.h"

/* A helper that never answers ends with the client's authentication_timeout; without one, here. */
#define HELPER_TIMEOUT_MS 60000

enum judge_kind { JUDGE_STORED, JUDGE_PAM, JUDGE_LDAP, JUDGE_PEER };

struct judge_job {
    struct job job;
    enum judge_kind kind;
    struct auth_rules *rules;    /* may be replaced meanwhile */
    const struct hba_rule *rule; /* of those, or NULL */
    struct cred cred;
    struct secret password;
    char *user;
    struct hba_addr addr;
    int64_t timeout_ms;
    uint32_t uid;
    uint32_t iterations; /* that are usual */
    enum auth_opinion opinion;
    bool got_keys;
    struct scram_keys keys;
    struct err err;
    char name[AUTH_HELPER_NAME_BYTES];
};

/* ---- asking ---- */

static void ask_send(struct client_auth *a, enum auth_code code, struct slice rest)
{
    struct buf out = {0};

    wire_put_auth(&out, code, rest);
    auth_say(a, &out);
    client_auth_owes(a);
    a->step = AUTH_STEP_ASKED;
    stream_resume(a->who.stream);
}

static void ask_fail(struct client_auth *a, const struct err *cause)
{
    struct err err = {0};

    err_set_fatal(&err, "XX000", "could not prepare the authentication");
    client_auth_stop(a, &err, cause->msg);
}

/* The hash of our certificate, for SCRAM-SHA-256-PLUS; empty without TLS. */
static struct slice ask_channel(struct client_auth *a, uint8_t hash[CRYPTO_CERT_HASH_MAX])
{
    struct buf der = {0};
    struct err err = {0};
    size_t n = 0;
    int nid = 0;

    if (auth_is_tls(&a->facts) && stream_tls_server_cert(a->who.stream, &der, &nid) == 0 &&
        crypto_cert_hash_by(buf_slice(&der), nid, hash, &n, &err) == -1)
        n = 0; /* the certificate's kind has no binding: not offered */
    buf_free(&der);
    return slice_of((const char *)hash, n);
}

void client_auth_ask_early(struct client_auth *a)
{
    uint8_t hash[CRYPTO_CERT_HASH_MAX];
    struct buf out = {0};
    struct buf list = {0};

    scram_put_mechanisms(ask_channel(a, hash).n > 0, &list);
    wire_put_auth(&out, AUTH_SASL, buf_slice(&list));
    buf_free(&list);
    auth_say(a, &out);
    a->is_asked = true;
    stream_pause(a->who.stream);
}

/* What a stand-in costs, and looks like: in the virtual database as pcp.conf's users. */
static uint32_t usual_iterations(const struct client_auth *a)
{
    if (a->who.console != NULL && a->who.console->pcp_iterations != 0)
        return a->who.console->pcp_iterations;
    return auth_guard_usual_cost(a->sa->guard);
}

static void ask_scram(struct client_auth *a)
{
    struct scram_verifier v;
    uint8_t hash[CRYPTO_CERT_HASH_MAX];
    struct scram_server_conf conf = {.verifier = &v};
    struct slice secret = auth_guard_secret(a->sa->guard);
    struct slice user = client_auth_user(a);
    uint32_t iterations = usual_iterations(a);
    struct buf list = {0};
    struct err err = {0};
    int rc;

    conf.is_mock = a->plan.proof == AUTH_PROOF_NEVER ||
                   (a->stored.kind != CRED_PLAIN && a->stored.kind != CRED_SCRAM);
    if (conf.is_mock)
        rc = scram_verifier_mock(secret, user, iterations, false, &v, &err);
    else
        rc = auth_book_verifier(a->sa->book, user, &a->stored, secret, iterations, &v, &err);
    if (rc == 0)
        rc = crypto_random(conf.nonce, sizeof conf.nonce, &err);
    if (rc == -1) {
        ask_fail(a, &err);
        return;
    }
    conf.cbind = ask_channel(a, hash);
    scram_server_fini(&a->scram);
    scram_server_init(&a->scram, &conf);
    mem_wipe(&v, sizeof v);
    if (a->is_asked) {
        a->step = AUTH_STEP_ASKED;
        stream_resume(a->who.stream);
        return;
    }
    scram_server_mechanisms(&a->scram, &list);
    ask_send(a, AUTH_SASL, buf_slice(&list));
    buf_free(&list);
}

void client_auth_ask(struct client_auth *a)
{
    struct err err = {0};

    switch (a->plan.ask) {
    case AUTH_ASK_SCRAM:
        if (!client_auth_derives(a, client_auth_ask))
            ask_scram(a);
        break;
    case AUTH_ASK_MD5:
        if (crypto_random(a->salt, sizeof a->salt, &err) == -1)
            ask_fail(a, &err);
        else
            ask_send(a, AUTH_MD5, slice_of((const char *)a->salt, sizeof a->salt));
        break;
    default:
        ask_send(a, AUTH_CLEARTEXT, slice_of("", 0));
        break;
    }
}

/* ---- judging off the loop ---- */

static void judge_wipe(struct job *job)
{
    struct judge_job *j = LIST_ENTRY(job, struct judge_job, job);

    cred_free(&j->cred);
    secret_free(&j->password);
    mem_free(j->user);
    auth_rules_unref(&j->rules);
}

/* A password in clear text is compared in no time; a verifier costs its iterations, and so does a
 * user who does not exist. They must not be told apart by that. */
static void judge_spend(uint32_t iterations)
{
    static const char nothing[] = "nothing";
    struct scram_verifier v;

    (void)scram_verifier_build(
        slice_of(nothing, sizeof nothing), slice_of(nothing, sizeof nothing), iterations, &v, NULL);
}

static void judge_work(struct job *job)
{
    struct judge_job *j = LIST_ENTRY(job, struct judge_job, job);
    const char *password = j->password.bytes == NULL ? "" : j->password.bytes;
    bool match = false;

    switch (j->kind) {
    case JUDGE_STORED:
        j->opinion = AUTH_OPINION_BROKEN;
        if (cred_check_password(&j->cred, slice_of_str(j->user), secret_slice(&j->password), &match,
                &j->keys, &j->err) == 0)
            j->opinion = match ? AUTH_OPINION_YES : AUTH_OPINION_NO;
        j->got_keys = match && j->cred.kind == CRED_SCRAM;
        if (j->cred.kind != CRED_SCRAM)
            judge_spend(j->iterations);
        break;
    case JUDGE_PAM:
        j->opinion =
            auth_pam_check(j->rule->pam_service != NULL ? j->rule->pam_service : "pgpool", j->user,
                password, auth_host_text(&j->addr, j->rule->pam_use_hostname, j->name), &j->err);
        break;
    case JUDGE_LDAP:
        j->opinion = auth_ldap_check(&j->rule->ldap, j->user, password, j->timeout_ms, &j->err);
        break;
    case JUDGE_PEER:
        j->opinion = auth_peer_name(j->uid, j->name, &j->err);
        break;
    }
}

static void judge_again_peer(struct client_auth *a)
{
    struct err err = {0};

    switch (client_auth_name_fits(a, secret_slice(&a->password), &err)) {
    case HBA_YES:
        client_auth_pass(a);
        break;
    case HBA_ASK:
        client_auth_ask_question(a, judge_again_peer);
        break;
    case HBA_NO:
    case HBA_FAIL:
        client_auth_deny(a,
            err.msg[0] != '\0' ? err.msg : "The name of the operating system's user does not fit.");
        break;
    }
}

static void judge_done(struct job *job)
{
    struct judge_job *j = LIST_ENTRY(job, struct judge_job, job);
    struct client_auth *a = job->owner;

    a->job = NULL;
    if (!client_auth_is_live(a))
        return;
    if (j->got_keys) {
        a->keys = j->keys;
        a->got_keys = true;
    }
    if (j->opinion != AUTH_OPINION_YES)
        client_auth_deny(a, j->err.msg[0] != '\0' ? j->err.msg : NULL);
    else if (j->kind == JUDGE_PEER) {
        /* The system's name is kept as a password is for others: until it is compared. */
        secret_set(&a->password, slice_of_str(j->name));
        judge_again_peer(a);
    } else
        client_auth_pass(a);
}

static void judge_start(struct client_auth *a, enum judge_kind kind)
{
    struct judge_job *j = mem_alloc_secret(sizeof *j);
    bool is_pcp = a->who.console != NULL && a->who.console->pcp != LOGIN_PCP_NOT;
    struct slice user = is_pcp ? slice_of("", 0) : client_auth_user(a); /* no salt there */
    int64_t limit_ms = a->sa->be->conf->authentication_timeout_ms;

    a->step = AUTH_STEP_JUDGE;
    j->kind = kind;
    j->addr = a->addr;
    j->uid = a->peer_uid;
    j->iterations = auth_guard_usual_cost(a->sa->guard);
    j->rules = auth_rules_ref(a->rules);
    j->rule = a->rule;
    j->timeout_ms = limit_ms > 0 && limit_ms < HELPER_TIMEOUT_MS ? limit_ms : HELPER_TIMEOUT_MS;
    j->user = mem_strndup(user.p, user.n);
    cred_copy(&a->stored, &j->cred);
    secret_set(&j->password, secret_slice(&a->password));
    j->job.owner = a;
    j->job.computes = kind == JUDGE_STORED;
    j->job.work = judge_work;
    j->job.done = judge_done;
    j->job.wipe = judge_wipe;
    a->job = &j->job;
    job_start(a->sa->jobs, &j->job);
}

void client_auth_check_peer(struct client_auth *a)
{
    struct ucred who;
    socklen_t len = sizeof who;

    if (!stream_is_local(a->who.stream) ||
        getsockopt(stream_fd(a->who.stream), SOL_SOCKET, SO_PEERCRED, &who, &len) == -1) {
        client_auth_deny(a, "The kernel does not say who is at the other end.");
        return;
    }
    a->peer_uid = who.uid;
    judge_start(a, JUDGE_PEER);
}

/* ---- answers ---- */

static void judge_scram(
    struct client_auth *a, enum scram_status st, struct buf *text, struct err *err)
{
    struct buf out = {0};

    switch (st) {
    case SCRAM_CONTINUE:
        wire_put_auth(&out, AUTH_SASL_CONTINUE, buf_slice(text));
        auth_say(a, &out);
        client_auth_owes(a);
        a->step = AUTH_STEP_HALF_WAY;
        break;
    case SCRAM_DONE:
        wire_put_auth(&out, AUTH_SASL_FINAL, buf_slice(text));
        auth_say(a, &out);
        if (a->stored.kind == CRED_SCRAM) { /* else the salt is ours: the keys open no server */
            scram_server_keys(&a->scram, &a->keys);
            a->got_keys = true;
        }
        client_auth_pass(a);
        break;
    case SCRAM_DENIED:
        client_auth_deny(a, NULL);
        break;
    case SCRAM_STALE:
    case SCRAM_BROKEN:
        client_auth_broken(a, err);
        break;
    }
}

static void answer_bad(struct client_auth *a, const char *what)
{
    struct err err = {0};

    err_set_fatal(&err, "08P01", "%s", what);
    client_auth_broken(a, &err);
}

static void answer_scram(struct client_auth *a, struct slice body)
{
    struct buf text = {0};
    struct err err = {0};

    judge_scram(a, scram_server_message(&a->scram, body, &text, &err), &text, &err);
    buf_free(&text);
}

static void answer_md5(struct client_auth *a, struct slice text)
{
    struct err err = {0};
    struct cred nobody = {0};
    bool match = false;
    bool is_mock = a->plan.proof == AUTH_PROOF_NEVER;

    if (is_mock) /* as much work as for one who is known, for nothing */
        cred_from_plain(auth_guard_secret(a->sa->guard), &nobody);
    if (cred_check_md5(
            is_mock ? &nobody : &a->stored, client_auth_user(a), a->salt, text, &match, &err) == -1)
        ask_fail(a, &err);
    else if (match && !is_mock)
        client_auth_pass(a);
    else
        client_auth_deny(a, NULL);
    cred_free(&nobody);
}

/* A verifier for a user who has none, so that refusing takes as long as comparing. */
static void answer_never(struct client_auth *a)
{
    struct err err = {0};

    cred_free(&a->stored);
    if (a->who.console != NULL && a->who.console->pcp == LOGIN_PCP_MD5)
        cred_from_stored(slice_of_str("md500000000000000000000000000000000"), &a->stored);
    else if (scram_verifier_mock(auth_guard_secret(a->sa->guard), client_auth_user(a),
                 usual_iterations(a), false, &a->stored.verifier, &err) == 0)
        a->stored.kind = CRED_SCRAM;
    judge_start(a, JUDGE_STORED); /* client_auth_pass would deny all the same */
}

/* The password goes to the server on the link that it asked on. */
static void answer_link(struct client_auth *a, struct slice password)
{
    struct err err = {0};

    if (*a->who.link == NULL || link_answer_password(*a->who.link, password, &err) == -1) {
        if (!err_is_set(&err)) {
            err_set_fatal(&err, "08006", "connection to server was lost");
            err_hint(&err, "The log of that server tells why; SHOW POOL_NODES whether it is used.");
        }
        client_auth_stop(a, &err, NULL);
    }
}

static void answer_password(struct client_auth *a, struct slice text)
{
    struct err err = {0};

    if (text.n == 0) {
        err_set_fatal(&err, "28P01", "empty password returned by client");
        client_auth_broken(a, &err);
        return;
    }
    secret_set(&a->password, text);
    switch (a->plan.proof) {
    case AUTH_PROOF_STORED:
        judge_start(a, JUDGE_STORED);
        break;
    case AUTH_PROOF_PAM:
        judge_start(a, JUDGE_PAM);
        break;
    case AUTH_PROOF_LDAP:
        judge_start(a, JUDGE_LDAP);
        break;
    case AUTH_PROOF_SERVER:
        a->step = AUTH_STEP_LINK_JUDGES;
        answer_link(a, text);
        break;
    default:
        answer_never(a);
        break;
    }
}

void client_auth_on_answer(struct client_auth *a, struct slice body)
{
    struct slice text = slice_of(body.p, body.n > 0 ? body.n - 1 : 0);
    struct slice no_password = slice_of("", 0);

    if (a->plan.ask == AUTH_ASK_SCRAM) {
        answer_scram(a, body);
        return;
    }
    if (body.n == 0 || body.p[body.n - 1] != '\0' || memchr(text.p, '\0', text.n) != NULL) {
        answer_bad(a, "invalid password packet size");
        return;
    }
    if (a->plan.ask == AUTH_ASK_MD5)
        answer_md5(a, text);
    else
        answer_password(a, text.n > 0 ? text : no_password);
}
