/* SPDX-License-Identifier: PostgreSQL
 * client_auth.c: the course of one client's authentication: rule, what is stored, plan, judge.
 * Runs in: workers. What is to be asked and who judges is auth_plan's, a pure table; this file
 * gathers the facts for it and carries the plan out. Must never: let a client pass by another way
 * than client_auth_pass, tell a client why it did not pass. */
#include "config.h"

#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "base/assert.h"
#include "base/hot.h"
#include "base/log.h"
#include "base/mem.h"
#include "config/conf.h"
#include "net/tls.h"

#include "client_auth_int.h"
#include "console_int.h"

/* An answer is as good as asking the role's own link when it is not older. */
#define ROLE_SURE_US 100000

struct slice client_auth_user(const struct client_auth *a)
{
    return a->c->login->auth_user;
}

struct slice client_auth_book_name(const struct client_auth *a)
{
    return buf_slice(&a->book_name);
}

/* What is known of a user of pools.conf's servers is kept apart, as pool_book_name does. */
static void auth_put_book_name(const struct client_auth *a, struct slice user, struct buf *out)
{
    struct slice whole = pool_book_name(a->c->pool);
    size_t skip = a->c->pool->user_len;

    buf_put(out, user.p, user.n);
    buf_put(out, whole.p + skip, whole.n - skip);
}

void client_auth_on_move(struct client *c)
{
    struct client_auth *a = c->login->auth;

    if (a == NULL)
        return;
    buf_clear(&a->book_name);
    auth_put_book_name(a, client_auth_user(a), &a->book_name);
}

/* ---- ends ---- */

static void auth_let_go(struct client_auth *a)
{
    job_leave(&a->job);
    auth_lookup_cancel(&a->wait);
    timer_stop(a->c->ss->loop, &a->patience);
    pool_request_cancel(&a->c->login->req);
}

static const char *auth_where(const struct client_auth *a, char *out, size_t size)
{
    if (a->rule == NULL)
        return "";
    (void)snprintf(out, size, " (%s, line %u)", a->rule->file, a->rule->line);
    return out;
}

/* Nothing was stored, and the servers were not let judge. */
static const char *auth_hint(const struct client_auth *a)
{
    if (a->plan.proof != AUTH_PROOF_NEVER || a->facts.stored != CRED_NONE || a->facts.may_relay ||
        a->was_looked_up || a->is_asked || a->is_unsure || a->plan.ask == AUTH_ASK_REFUSE)
        return NULL;
    return "Add the user to pool_passwd, let users be looked up with auth_query, or set auth_relay "
           "to on, so that the server judges users who are not in pool_passwd.";
}

static void auth_log_refusal(const struct client_auth *a, const char *reason)
{
    struct client_log_scope scope;
    struct slice user = client_auth_user(a);
    char where[160];
    char host[64];

    client_log_enter(&scope, a->c);
    client_host_text(a->c, host, sizeof host);
    log_caused_detail(LVL_LOG, reason, auth_hint(a),
        "authentication of user \"%.*s\" failed%s: database \"%s\", host %s", (int)user.n, user.p,
        auth_where(a, where, sizeof where), pool_database(a->c->pool).p, host);
    a->c->login->is_refusal_told = true;
    client_log_leave(&scope);
}

static void auth_on_delay(struct timer *t)
{
    struct client_auth *a = LIST_ENTRY(t, struct client_auth, delay);
    bool has_words = a->held.len > 0;

    client_send(a->c, &a->held); /* the server's own */
    client_end(a->c, has_words ? NULL : &a->refusal);
}

bool client_auth_delay(struct client_auth *a)
{
    struct client *c = a->c;
    int64_t delay_ms = c->ss->conf->auth_failure_delay_ms;

    a->step = AUTH_STEP_FAILED;
    auth_let_go(a);
    if (delay_ms == 0)
        return false;
    stream_pause(&c->stream);
    timer_start(c->ss->loop, &a->delay, delay_ms);
    return true;
}

/* The refusal goes out now or after auth_failure_delay: the same for all who fail. */
static void auth_refuse(struct client_auth *a, bool may_delay)
{
    a->step = AUTH_STEP_FAILED;
    auth_let_go(a);
    client_drop_link(a->c, false);
    if (!may_delay || !client_auth_delay(a))
        client_end(a->c, &a->refusal);
}

static uint32_t auth_now_s(const struct client_auth *a)
{
    return (uint32_t)(loop_now_us(a->c->ss->loop) / 1000000);
}

void client_auth_count_failure(struct client_auth *a)
{
    if (a->is_counted)
        return;
    a->is_counted = true;
    auth_guard_count(
        a->sa->guard, a->is_unsure ? AUTH_GUARD_UNSURE : AUTH_GUARD_WRONG, &a->addr, auth_now_s(a));
}

bool client_auth_is_blocked(const struct client_auth *a, enum auth_guard_kind kind)
{
    return auth_guard_is_blocked(
        a->sa->guard, kind, &a->addr, auth_now_s(a), (uint32_t)a->c->ss->conf->auth_failure_limit);
}

void client_auth_unsure_refusal(struct err *out)
{
    err_set_fatal(out, "57P03", "could not look up the user");
    err_detail(out, "The servers could not be asked for the user's password.");
}

void client_auth_deny(struct client_auth *a, const char *reason)
{
    if (a->step == AUTH_STEP_FAILED)
        return;
    if (a->is_unsure)
        reason = "The servers could not be asked about the user, who does not pass by pool_passwd.";
    auth_log_refusal(a, reason != NULL ? reason : a->plan.reason);
    client_auth_count_failure(a);
    /* It may be that the password was changed since the answer came: ask anew the next time. */
    if (a->stored_age_us > 0)
        auth_book_drop_answer(a->sa->book, client_auth_book_name(a));
    if (a->is_unsure)
        client_auth_unsure_refusal(&a->refusal);
    else
        auth_refusal(&a->facts, &a->plan, client_auth_user(a), &a->refusal);
    if (client_console(a->c) != NULL)
        err_hint(&a->refusal, "Users of this database are those of admin_users, stats_users and "
                              "pcp.conf.");
    auth_refuse(a, true);
}

void client_auth_stop(struct client_auth *a, const struct err *err, const char *reason)
{
    if (a->step == AUTH_STEP_FAILED)
        return;
    auth_log_refusal(a, reason != NULL ? reason : err->msg);
    a->refusal = *err;
    a->refusal.severity = ERR_FATAL;
    auth_refuse(a, false);
}

void client_auth_broken(struct client_auth *a, const struct err *err)
{
    client_auth_count_failure(a);
    client_auth_stop(a, err, err->detail[0] != '\0' ? err->detail : NULL);
}

/* ---- what is known ---- */

static void auth_read_address(struct client_auth *a)
{
    const struct client_row *row = a->c->row;
    struct sockaddr_storage ss;
    socklen_t len = sizeof ss;

    if (row != NULL && row->addr_kind == ROW_ADDR_IPV4) { /* known since it was accepted */
        a->addr.n = 4;
        memcpy(a->addr.bytes, row->addr, 4);
        return;
    }
    memset(&ss, 0, sizeof ss);
    if (!a->c->is_unix && getpeername(stream_fd(&a->c->stream), (struct sockaddr *)&ss, &len) == 0)
        a->addr = hba_addr_of((const struct sockaddr *)&ss);
}

static void auth_read_tls(struct client_auth *a)
{
    const struct stream *s = &a->c->stream;

    a->facts.tls = stream_is_tls(s);
    a->facts.cert_verified = a->facts.tls && stream_tls_is_peer_verified(s);
}

/* Passwords in clear text are asked for only where nobody listens, once TLS is there to be had. */
static bool auth_may_ask_clear(const struct client_auth *a)
{
    const struct conf *conf = a->c->ss->conf;

    return conf->allow_clear_text_frontend_auth && (a->facts.tls || a->c->is_unix || !conf->ssl);
}

void client_auth_on_rule(struct client_auth *a)
{
    a->facts.has_rule = a->rule != NULL;
    if (a->rule != NULL) {
        a->facts.method = a->rule->method;
        a->facts.clientcert = a->rule->clientcert;
        a->facts.ldap_password_for_server = a->rule->ldap.use_password_for_server;
    }
    if (client_console(a->c) != NULL)
        a->c->ss->console->find_secret(a);
    else
        client_auth_find_stored(a);
}

/* ---- the plan ---- */

void client_auth_plan(struct client_auth *a)
{
    struct auth_facts *f = &a->facts;

    if (!f->fresh_link)
        f->server = f->has_rule ? client_auth_remembered(a) : client_auth_was_asked(a);
    f->allow_clear_text = auth_may_ask_clear(a) &&
                          (f->stored != CRED_NONE || a->c->ss->conf->auth_relay != CONF_RELAY_OFF);
    f->md5_is_usual = auth_guard_usual(a->sa->guard) == 0;
    f->may_relay = client_auth_may_relay(a);
    if (client_console(a->c) == NULL)
        a->plan = auth_plan_make(f);
    else if (!a->c->ss->console->plan(a))
        return;
    if (!f->has_rule && !f->fresh_link && f->stored != CRED_NONE &&
        a->plan.proof == AUTH_PROOF_NEVER) { /* the server may ask otherwise by now */
        f->server = AUTH_SERVER_UNKNOWN;
        a->plan = auth_plan_make(f);
    }
    switch (a->plan.ask) {
    case AUTH_ASK_REFUSE:
        client_auth_count_failure(a);
        auth_refusal(f, &a->plan, client_auth_user(a), &a->refusal);
        auth_log_refusal(a, a->plan.reason);
        auth_refuse(a, true);
        break;
    case AUTH_ASK_NOTHING:
        if (a->plan.proof == AUTH_PROOF_PEER)
            client_auth_check_peer(a);
        else
            client_auth_pass(a);
        break;
    case AUTH_ASK_PASSWORD:
    case AUTH_ASK_MD5:
    case AUTH_ASK_SCRAM:
        client_auth_ask(a);
        break;
    case AUTH_ASK_RELAY:
        a->step = AUTH_STEP_RELAY;
        break;
    case AUTH_ASK_SERVER_FIRST:
        client_auth_open_link(a);
        break;
    }
}

/* What opens servers for this user from now on. */
static void auth_learn(struct client_auth *a)
{
    struct slice name = client_auth_book_name(a);
    struct buf mapped = {0};

    if (a->server_user != NULL) {
        auth_put_book_name(a, slice_of_str(a->server_user), &mapped);
        auth_book_learn_cred(a->sa->book, buf_slice(&mapped), &a->mapped);
        buf_free(&mapped);
        return;
    }
    if (a->plan.keep_password && !secret_is_empty(&a->password))
        auth_book_learn_password(a->sa->book, name, secret_slice(&a->password));
    if (a->got_keys)
        auth_book_learn_keys(a->sa->book, name, &a->keys);
}

/* The servers know the user by another name: the pool is that one's. */
static void auth_map_user(struct client_auth *a)
{
    struct client *c = a->c;
    int node = c->pool->cluster_node;
    struct pool *pool;

    if (a->server_user == NULL)
        return;
    c->login->startup.user = slice_of_str(a->server_user);
    pool = pool_attach(&c->ss->be, c->login->startup.user, c->login->startup.database, node);
    pool_detach(c->pool);
    c->pool = pool;
    c->login->req.pool = pool;
    pool_check_place(pool); /* pools.conf may have been read again meanwhile */
}

static void auth_log_pass(const struct client_auth *a)
{
    struct client_log_scope scope;
    struct slice user = client_auth_user(a);
    char where[160];

    if (!a->c->ss->conf->log_connections || a->rule == NULL)
        return;
    client_log_enter(&scope, a->c);
    log_at(LVL_LOG, "connection authenticated: user=%.*s method=%s%s", (int)user.n, user.p,
        hba_method_text(a->rule->method), auth_where(a, where, sizeof where));
    client_log_leave(&scope);
}

/* A link that waits for this moment goes on with its login. */
static void auth_go_on_with_link(struct client_auth *a)
{
    struct link *link = a->c->link;
    struct err err = {0};

    link_ask_owner(link, false);
    if (a->plan.proof == AUTH_PROOF_SERVER || link->asks == AUTH_SERVER_TRUST)
        return; /* it has been let in */
    link->may_answer = a->c->is_proved;
    if (link_answer_from_book(link, &err) == -1)
        client_auth_stop(a, &err, err.detail[0] != '\0' ? err.detail : NULL);
}

/* The certificate's name, besides or instead of everything else. False: not yet, or denied. */
static bool auth_cert_fits(struct client_auth *a)
{
    struct err err = {0};

    switch (client_auth_cert_fits(a, &err)) {
    case HBA_YES:
        return true;
    case HBA_ASK:
        client_auth_ask_question(a, client_auth_pass);
        return false;
    case HBA_NO:
    case HBA_FAIL:
        break;
    }
    client_auth_deny(
        a, err.msg[0] != '\0' ? err.msg : "The name in the certificate is not the user's.");
    return false;
}

/* ---- may the role log in? A link that was opened earlier does not tell ---- */

static struct slice auth_role(const struct client_auth *a)
{
    return a->server_user != NULL ? slice_of_str(a->server_user) : pool_user(a->c->pool);
}

static void auth_on_role_seen(struct auth_wait *w, const struct err *err)
{
    struct client_auth *a = LIST_ENTRY(w, struct client_auth, wait);

    if (!client_auth_is_live(a))
        return;
    if (err != NULL) { /* nobody can be asked: as if there were nobody to ask */
        session_auth_put_role(a->sa, auth_role(a), slice_of_str(AUTH_ROLE_CAN_LOGIN), true);
        session_auth_put_role(a->sa, auth_role(a), slice_of_str(AUTH_ROLE_IS_VALID), true);
        a->is_role_seen = true;
    }
    a->is_role_sure = err == NULL;
    client_auth_pass(a);
}

/* True when it goes on later, or is over. A server that opens a link for this client looks by
 * itself; auth_query has said it with the secret; who would be asked about another cluster's roles
 * is not known. An expiry date concerns passwords, as in PostgreSQL. */
static bool auth_looks_at_role(struct client_auth *a)
{
    struct slice role = auth_role(a);
    struct err err = {0};
    enum hba_answer can;
    enum hba_answer valid;

    if (a->is_role_seen || a->c->link != NULL || (a->was_looked_up && a->server_user == NULL) ||
        a->c->pool->cluster_node >= POOLS_FIRST_TARGET ||
        !auth_lookup_is_possible(a->sa, AUTH_LOOKUP_LOGIN, slice_of("", 0), slice_of("", 0)) ||
        auth_lookup_is_hopeless(a->sa, AUTH_LOOKUP_LOGIN, slice_of("", 0), slice_of("", 0)))
        return false;
    can = session_auth_role(a->sa, role, slice_of_str(AUTH_ROLE_CAN_LOGIN));
    valid = session_auth_role(a->sa, role, slice_of_str(AUTH_ROLE_IS_VALID));
    if (can == HBA_ASK || valid == HBA_ASK) {
        a->step = AUTH_STEP_LOOKUP;
        a->wait.done = auth_on_role_seen;
        auth_lookup_start(a->sa, AUTH_LOOKUP_LOGIN, slice_of("", 0), role, slice_of("", 0),
            slice_of("", 0), &a->wait);
        return true;
    }
    a->is_role_seen = true;
    if (can == HBA_NO) {
        if (valid == HBA_YES) /* what is not there cannot be out of date, either */
            err_set_fatal(&err, "28000", "role \"%.*s\" does not exist", (int)role.n, role.p);
        else
            err_set_fatal(
                &err, "28000", "role \"%.*s\" is not permitted to log in", (int)role.n, role.p);
        client_auth_stop(a, &err, NULL);
        return true;
    }
    if (valid == HBA_YES || client_auth_remembered(a) == AUTH_SERVER_TRUST)
        return false;
    if (client_auth_remembered(a) == AUTH_SERVER_UNKNOWN) {
        a->needs_server = true; /* which may ask for no password */
        return false;
    }
    client_auth_deny(a, "The role's password has expired.");
    return true;
}

/* The secret came just now, by a query of ours that asks for no role that may not log in. */
static bool auth_was_vouched(const struct client_auth *a)
{
    return a->was_looked_up && a->server_user == NULL && a->stored_age_us < ROLE_SURE_US &&
           auth_lookup_tells_role(a->sa, a->c->login->startup.database, client_auth_user(a));
}

void client_auth_pass(struct client_auth *a)
{
    struct client *c = a->c;

    if (a->step == AUTH_STEP_FAILED || a->step == AUTH_STEP_PROVED)
        return;
    if (a->plan.proof == AUTH_PROOF_NEVER || a->plan.ask == AUTH_ASK_REFUSE) {
        client_auth_deny(a, a->plan.reason);
        return;
    }
    if (a->plan.check_cert_name && !auth_cert_fits(a))
        return;
    if (client_console(c) == NULL && auth_looks_at_role(a))
        return;
    a->step = AUTH_STEP_PROVED;
    if (a->plan.proof == AUTH_PROOF_CERT) /* scripts look for pgpool-II's words */
        log_caused(LVL_LOG,
            "SSL certificate authentication for user \"%.*s\" with Pgpool-II is successful",
            (int)client_auth_user(a).n, client_auth_user(a).p);
    if (client_console(c) != NULL) {
        auth_log_pass(a);
        c->ss->console->enter(a);
        return;
    }
    /* With pool_hba off, a server that trusts speaks for its own node alone. */
    c->is_proved = a->facts.has_rule || a->plan.proof != AUTH_PROOF_TRUST;
    c->is_proved_here = c->is_proved && !a->was_looked_up && a->plan.proof != AUTH_PROOF_SERVER;
    if (!c->is_proved)
        c->trusting_node = (int16_t)c->pool->cluster_node;
    auth_learn(a);
    auth_log_pass(a);
    if (c->link != NULL) {
        auth_go_on_with_link(a);
        return;
    }
    auth_map_user(a);
    if (a->is_role_sure || auth_was_vouched(a))
        pool_role_vouch(c->pool); /* its links need not be asked */
    client_login_acquire(c);
}

/* ---- begin and end ---- */

void client_auth_begin(struct client *c)
{
    struct client_auth *a = mem_alloc_secret(sizeof *a);
    struct session_auth *sa = c->ss->auth;
    struct err err = {0};

    a->c = c;
    c->trusting_node = VIEW_NO_NODE;
    a->sa = sa;
    c->login->auth = a;
    timer_init(&a->delay, auth_on_delay);
    timer_init(&a->patience, client_auth_on_patience);
    list_init(&a->wait.node);
    auth_read_address(a);
    auth_read_tls(a);
    auth_put_book_name(a, client_auth_user(a), &a->book_name);
    if (client_auth_is_blocked(a, AUTH_GUARD_WRONG)) {
        err_set_fatal(&err, "28000", "too many failed logins from this address");
        err_hint(&err, "Wait for a minute.");
        a->is_counted = true; /* a refused attempt does not make the time longer */
        client_auth_stop(a, &err, "auth_failure_limit is reached.");
        return;
    }
    if (c->ss->conf->enable_pool_hba)
        client_auth_match(a);
    else
        client_auth_on_rule(a);
}

bool client_auth_is_over(const struct client *c)
{
    const struct client_login *login = c->login;

    return login != NULL && login->auth != NULL && login->auth->step == AUTH_STEP_PROVED;
}

void client_auth_leave(struct client_auth *a)
{
    if (a == NULL || !a->is_half_way || a->step != AUTH_STEP_ASKED)
        return;
    auth_log_refusal(a, "The client broke off the exchange.");
    client_auth_count_failure(a);
}

void client_auth_free(struct client_auth **ap)
{
    struct client_auth *a = *ap;

    *ap = NULL;
    if (a == NULL)
        return;
    job_leave(&a->job);
    auth_lookup_cancel(&a->wait);
    timer_stop(a->c->ss->loop, &a->delay);
    timer_stop(a->c->ss->loop, &a->patience);
    scram_server_fini(&a->scram);
    cred_free(&a->stored);
    cred_free(&a->mapped);
    secret_free(&a->password);
    mem_free(a->server_user);
    client_auth_free_questions(a);
    auth_rules_unref(&a->rules);
    buf_free(&a->held);
    buf_free(&a->book_name);
    mem_free_secret(a);
}

HOT bool client_auth_may_reuse(const struct client *c, const struct pool *pool)
{
    bool is_over = c->phase == CL_ACTIVE || client_auth_is_over(c);

    ASSERT(!c->is_proved || is_over);
    if (c->login != NULL && c->login->auth != NULL && c->login->auth->needs_server)
        is_over = false;
    return is_over && (c->is_proved || pool_is_trusted(pool) ||
                          (c->phase == CL_ACTIVE && c->trusting_node == pool->cluster_node));
}

void client_auth_entitle(const struct client *c, struct pool_request *req)
{
    req->may_reuse = client_auth_may_reuse(c, req->pool);
    req->is_proved = c->is_proved;
}

enum client_auth_input client_auth_wants(const struct client *c)
{
    const struct client_auth *a = c->login == NULL ? NULL : c->login->auth;

    if (a == NULL)
        return CLIENT_AUTH_NOTHING;
    if (a->step == AUTH_STEP_ASKED)
        return CLIENT_AUTH_ANSWER;
    return a->step == AUTH_STEP_RELAY ? CLIENT_AUTH_RELAY : CLIENT_AUTH_NOTHING;
}

void client_auth_input(struct client *c, struct slice body)
{
    client_auth_on_answer(c->login->auth, body);
}
