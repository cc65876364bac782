/* SPDX-License-Identifier: PostgreSQL
 * link_auth.c: a link proves to its server who it is, without a client that is asked for anything:
 * with the password, its md5 form, or the SCRAM keys that the worker's auth_book holds.
 * Runs in: workers. A link does so only when its owner has proved that very identity, or when it is
 * opened for the pool and given to nobody who has not (link->opening->answers). Must never:
 * answer for another user than the pool's, take a server's word that it is the right one (SCRAM
 * proves it). */
#include "config.h"

#include <string.h>

#include "auth/auth_book.h"
#include "backend/pool.h"
#include "base/log.h"
#include "base/mem.h"
#include "crypto/crypto.h"
#include "event/jobs.h"
#include "net/tls.h"
#include "wire/message.h"
#include "wire/writer.h"

#include "link_int.h"

/* Longest request that is kept while the owner is asked. */
#define REQUEST_MAX_BYTES 1024

struct link_answer {
    struct scram_client scram;
    bool is_scram;      /* an exchange of ours is under way */
    bool is_ours;       /* the last request was answered by us */
    struct buf request; /* body of the request that waits for its answer */
    struct job *job;    /* keys are being derived */
};

/* A password becomes keys. */
struct derive_job {
    struct job job;
    struct scram_verifier params; /* the server's salt and iterations */
    struct secret password;
    struct buf message; /* of the server, answered with the keys */
    struct scram_keys keys;
    struct err err;
    int rc;
};

/* NULL: there is none, or the login is over. */
static struct link_answer *answer_of(const struct link *link)
{
    return link->opening == NULL ? NULL : link->opening->answer;
}

void link_answer_free(struct link *link)
{
    struct link_answer *a = answer_of(link);

    if (a == NULL)
        return;
    job_leave(&a->job);
    scram_client_fini(&a->scram);
    buf_free(&a->request);
    mem_free_secret(a);
    link->opening->answer = NULL;
}

bool link_answer_is_ours(const struct link *link)
{
    return answer_of(link) != NULL && answer_of(link)->is_ours;
}

static struct link_answer *answer_make(struct link *link)
{
    if (link->opening->answer == NULL)
        link->opening->answer = mem_alloc_secret(sizeof *link->opening->answer);
    return link->opening->answer;
}

enum auth_server link_auth_kind(struct slice body)
{
    switch (body.n >= 4 ? message_number(body) : AUTH_KERBEROS) {
    case AUTH_OK:
        return AUTH_SERVER_TRUST;
    case AUTH_CLEARTEXT:
        return AUTH_SERVER_PASSWORD;
    case AUTH_MD5:
        return body.n == 4 + CRED_MD5_SALT_BYTES ? AUTH_SERVER_MD5 : AUTH_SERVER_OTHER;
    case AUTH_SASL:
        return AUTH_SERVER_SCRAM;
    default:
        return AUTH_SERVER_OTHER;
    }
}

static int answer_send(struct link *link, struct buf *out, struct err *err)
{
    int rc = link_send(link, out->data, out->len);

    if (out->data != NULL)
        mem_wipe(out->data, out->len);
    buf_free(out);
    if (rc == -1) {
        err_set_fatal(
            err, "08006", "connection to server was lost (node %d)", link->pool->cluster_node);
        err_hint(err, "The log of that server tells why; SHOW POOL_NODES whether it is used.");
    }
    return rc;
}

static int answer_text(struct link *link, struct slice text, struct err *err)
{
    struct buf body = {.is_secret = true};
    struct buf out = {.is_secret = true};

    buf_put(&body, text.p, text.n);
    buf_put_byte(&body, '\0');
    wire_put_password(&out, buf_slice(&body));
    buf_free(&body);
    return answer_send(link, &out, err);
}

static int answer_md5(
    struct link *link, const struct cred *cred, struct slice request, struct err *err)
{
    char text[CRED_MD5_BYTES + 1];

    if (cred_answer_md5(cred, pool_user(link->pool), (const uint8_t *)request.p + 4, text, err) ==
        -1)
        return -1;
    return answer_text(link, slice_of(text, CRED_MD5_BYTES), err);
}

/* The hash of the server's certificate, to bind the exchange to this TLS connection; empty without.
 */
static struct slice answer_channel(const struct link *link, uint8_t hash[CRYPTO_CERT_HASH_MAX])
{
    struct buf der = {0};
    struct err err = {0};
    size_t n = 0;
    int nid = 0;

    if (stream_is_tls(&link->stream) && stream_tls_server_cert(&link->stream, &der, &nid) == 0 &&
        crypto_cert_hash_by(buf_slice(&der), nid, hash, &n, &err) == -1)
        n = 0;
    buf_free(&der);
    return slice_of((const char *)hash, n);
}

/* SASLInitialResponse. With keys and a password both are at hand: keys that do not fit the server's
 * verifier give way to the password. */
static int answer_scram(struct link *link, const struct scram_keys *keys, struct slice password,
    struct slice request, struct err *err)
{
    struct link_answer *a = answer_make(link);
    struct scram_client_conf conf = {
        .password = password, .keys = keys, .mode = SCRAM_CBIND_PREFER};
    uint8_t hash[CRYPTO_CERT_HASH_MAX];
    const char *mechanism = NULL;
    struct buf first = {0};
    struct buf body = {0};
    struct buf out = {0};
    int rc = -1;

    if (crypto_random(conf.nonce, sizeof conf.nonce, err) == -1)
        return -1;
    conf.cbind = answer_channel(link, hash);
    scram_client_fini(&a->scram);
    scram_client_init(&a->scram, &conf);
    a->is_scram = true;
    if (scram_client_start(&a->scram, slice_of(request.p + 4, request.n - 4), &mechanism, &first,
            err) == SCRAM_CONTINUE) {
        buf_put_cstr(&body, mechanism);
        buf_put_u32(&body, first.len);
        buf_put(&body, first.data, first.len);
        wire_put_password(&out, buf_slice(&body));
        rc = answer_send(link, &out, err);
    }
    buf_free(&first);
    buf_free(&body);
    return rc;
}

static int answer_with_login(
    struct link *link, const struct auth_login *login, struct slice request, struct err *err)
{
    unsigned hold = login == NULL ? 0 : login->hold;
    const struct scram_keys *keys = (hold & AUTH_HOLD_KEYS) != 0 ? &login->keys : NULL;
    struct slice password =
        (hold & AUTH_HOLD_PASSWORD) != 0 ? secret_slice(&login->password) : slice_of("", 0);
    struct cred cred = {0};
    enum auth_give give =
        auth_give_choose(hold, (enum auth_server)link->asks, pool_user(link->pool), err);
    int rc = -1;

    if (!link_require_is_strong(link, login, give, err))
        return -1;
    switch (give) {
    case AUTH_GIVE_IMPOSSIBLE:
    case AUTH_GIVE_NOTHING:
        break;
    case AUTH_GIVE_PASSWORD:
        if ((hold & AUTH_HOLD_HEARD) != 0 || link_require_may_show(link, err))
            rc = answer_text(link, password, err);
        break;
    case AUTH_GIVE_MD5:
        cred_from_stored(slice_of(login->md5, CRED_MD5_BYTES), &cred);
        rc = answer_md5(link, &cred, request, err);
        break;
    case AUTH_GIVE_MD5_OF_PASSWORD:
        cred_from_plain(password, &cred);
        rc = answer_md5(link, &cred, request, err);
        break;
    case AUTH_GIVE_SCRAM_PASSWORD:
    case AUTH_GIVE_SCRAM_KEYS:
        rc = answer_scram(link, keys, password, request, err);
        break;
    }
    cred_free(&cred);
    return rc;
}

static int answer_request(struct link *link, const struct auth_login *login, struct err *err)
{
    struct link_answer *a = answer_of(link);
    struct buf request;
    int rc;

    if (a == NULL || link->phase != LINK_LOGIN || a->request.len < 4) {
        err_set_fatal(err, "08P01", "the server does not wait for an answer");
        return -1;
    }
    request = a->request;
    memset(&a->request, 0, sizeof a->request);
    rc = answer_with_login(link, login, buf_slice(&request), err);
    if (rc == 0)
        link->opening->answer->is_ours = true;
    buf_free(&request);
    return rc;
}

int link_answer_from_book(struct link *link, struct err *err)
{
    return answer_request(link, auth_book_login(link->be->book, pool_book_name(link->pool)), err);
}

int link_answer_password(struct link *link, struct slice password, struct err *err)
{
    struct auth_login login = {.hold = AUTH_HOLD_PASSWORD | AUTH_HOLD_HEARD};
    int rc;

    secret_set(&login.password, password);
    rc = answer_request(link, &login, err);
    secret_free(&login.password);
    return rc;
}

/* The server asks for something new. False when the owner has to see to it. */
static bool answer_new_request(struct link *link, struct slice body)
{
    struct link_answer *a = answer_make(link);
    struct err err = {0};

    link->auth = LINK_AUTH_ASKED;
    link->asks = (uint8_t)link_auth_kind(body);
    a->is_ours = false;
    buf_clear(&a->request);
    if (body.n <= REQUEST_MAX_BYTES)
        buf_put(&a->request, body.p, body.n);
    if (link->opening->asks_owner || link->opening->answers == LINK_ANSWERS_NOT)
        return false;
    if (link_answer_from_book(link, &err) == 0)
        return true;
    if ((link->asks == AUTH_SERVER_PASSWORD || link->asks == AUTH_SERVER_MD5) &&
        strcmp(err.sqlstate, "28000") == 0) {
        link_fail(link, &err); /* it is there, but not for everybody's ears */
        return true;
    }
    if (link->owner != NULL && link->ops->says_unanswered)
        return false;
    log_caused_detail(LVL_LOG, err.detail[0] != '\0' ? err.detail : NULL,
        err.hint[0] != '\0' ? err.hint : NULL, "could not log in to node %d: %s",
        link->pool->cluster_node, err.msg);
    return false;
}

/* The verifier of the server is another than that which the keys belong to. */
static void answer_is_stale(struct link *link)
{
    struct err err = {0};

    auth_book_forget(link->be->book, pool_book_name(link->pool));
    err_set_fatal(&err, "28P01", "the password of user \"%s\" was changed on the server (node %d)",
        link->pool->names, link->pool->cluster_node);
    err_hint(&err, "Connect again.");
    link_fail(link, &err);
}

static void answer_step(struct link *link, uint32_t code, struct slice data)
{
    struct link_answer *a = link->opening->answer;
    struct err err = {0};
    struct buf text = {0};
    struct buf out = {0};
    enum scram_status st;

    if (code == AUTH_SASL_FINAL)
        st = scram_client_final(&a->scram, data, &err);
    else
        st = scram_client_step(&a->scram, data, &text, &err);
    if (st == SCRAM_CONTINUE) {
        wire_put_password(&out, buf_slice(&text));
        if (answer_send(link, &out, &err) == -1)
            st = SCRAM_BROKEN;
    }
    buf_free(&text);
    if (st == SCRAM_STALE) {
        answer_is_stale(link);
    } else if (st == SCRAM_BROKEN) {
        err.severity = ERR_FATAL;
        link_fail(link, &err);
    }
}

/* ---- the iterations, which the server chooses, are another thread's ---- */

static void derive_work(struct job *job)
{
    struct derive_job *d = LIST_ENTRY(job, struct derive_job, job);
    struct slice salt = slice_of((const char *)d->params.salt, d->params.salt_len);

    d->rc = scram_keys_derive(
        secret_slice(&d->password), salt, d->params.iterations, &d->keys, &d->err);
}

static void derive_wipe(struct job *job)
{
    struct derive_job *d = LIST_ENTRY(job, struct derive_job, job);

    secret_free(&d->password);
    buf_free(&d->message);
}

static void derive_done(struct job *job)
{
    struct derive_job *d = LIST_ENTRY(job, struct derive_job, job);
    struct link *link = job->owner;

    link->opening->answer->job = NULL;
    if (d->rc == -1) {
        d->err.severity = ERR_FATAL;
        link_fail(link, &d->err);
        return;
    }
    scram_client_give_keys(&link->opening->answer->scram, &d->keys);
    answer_step(link, AUTH_SASL_CONTINUE, buf_slice(&d->message));
}

static void derive_start(struct link *link, struct slice data, const struct scram_verifier *params)
{
    struct derive_job *d = mem_alloc_secret(sizeof *d);

    d->params = *params;
    secret_set(&d->password, secret_slice(&link->opening->answer->scram.password));
    buf_put(&d->message, data.p, data.n);
    d->job.owner = link;
    d->job.computes = true;
    d->job.work = derive_work;
    d->job.done = derive_done;
    d->job.wipe = derive_wipe;
    link->opening->answer->job = &d->job;
    job_start(link->be->jobs, &d->job);
}

static void answer_continue(struct link *link, uint32_t code, struct slice data)
{
    struct scram_verifier params;

    if (link->opening->answer->job != NULL)
        link_fail_text(link, "08P01", "the server (node %d) went on before it was answered",
            link->pool->cluster_node);
    else if (code == AUTH_SASL_CONTINUE &&
             scram_client_must_derive(&link->opening->answer->scram, data, &params))
        derive_start(link, data, &params);
    else
        answer_step(link, code, data);
}

/* AuthenticationOk. True when it may be believed. */
static bool answer_accept(struct link *link)
{
    struct link_answer *a = link->opening->answer;
    struct scram_keys keys;

    if (a != NULL && a->is_scram) {
        if (!scram_client_is_done(&a->scram)) {
            link_fail_text(link, "28000",
                "the server (node %d) let us in before it proved that it knows the password",
                link->pool->cluster_node);
            return false;
        }
        if (link->opening->answers != LINK_ANSWERS_NOT) {
            /* no iterations to compute the next time */
            scram_client_keys(&a->scram, &keys);
            auth_book_learn_keys(link->be->book, pool_book_name(link->pool), &keys);
            mem_wipe(&keys, sizeof keys);
        }
    }
    if (link->asks == AUTH_SERVER_UNKNOWN)
        link->asks = AUTH_SERVER_TRUST;
    if (!link->is_private) { /* the server has other rules for replication */
        link->be->pool_ops->on_auth(link->pool, (enum link_auth)link->auth);
        link->pool->asks = link->asks;
    }
    link->opening->is_let_in = true;
    return true;
}

void link_ask_owner(struct link *link, bool asks)
{
    if (link->opening != NULL)
        link->opening->asks_owner = asks;
}

/* What is asked for; AuthenticationOk asks for nothing when nothing was asked before. */
static bool answer_is_allowed(struct link *link, uint32_t code, struct slice body)
{
    enum auth_server asks = link_auth_kind(body);
    struct err err = {0};

    if (code == AUTH_OK && link->auth != LINK_AUTH_TRUST)
        return true;
    if (link_require_fits(link, asks, &err))
        return true;
    link_fail(link, &err);
    return false;
}

enum link_auth_step link_auth_on_message(struct link *link, struct slice body)
{
    uint32_t code = message_number(body);
    bool is_continued = code == AUTH_SASL_CONTINUE || code == AUTH_SASL_FINAL;

    if (!is_continued && !answer_is_allowed(link, code, body))
        return LINK_AUTH_STEP_DONE;
    if (code == AUTH_OK)
        return answer_accept(link) ? LINK_AUTH_STEP_OWNER : LINK_AUTH_STEP_DONE;
    if (is_continued && link->opening->answer != NULL && link->opening->answer->is_scram) {
        answer_continue(link, code, slice_of(body.p + 4, body.n - 4));
        return LINK_AUTH_STEP_DONE;
    }
    if (is_continued) /* of an exchange that the owner relays */
        return LINK_AUTH_STEP_OWNER;
    return answer_new_request(link, body) ? LINK_AUTH_STEP_DONE : LINK_AUTH_STEP_OWNER;
}

void link_auth_on_refusal(struct link *link, const char *sqlstate)
{
    struct slice database = pool_database(link->pool);

    if (!link_answer_is_ours(link))
        return;
    if (strncmp(sqlstate, "28", 2) != 0) {
        log_caused_detail(LVL_LOG, NULL,
            "It is not about the password: the server's log says more.",
            "node %d does not let user \"%s\" into database \"%.*s\" (SQLSTATE %s)",
            link->pool->cluster_node, link->pool->names, (int)database.n, database.p, sqlstate);
        return;
    }
    log_caused_detail(LVL_LOG, NULL,
        "An entry of pool_passwd may not be what the server has: pgpool --check-auth tells.",
        "node %d refuses user \"%s\" (SQLSTATE %s): what was known about the user is forgotten",
        link->pool->cluster_node, link->pool->names, sqlstate);
    auth_book_forget(link->be->book, pool_book_name(link->pool));
}
