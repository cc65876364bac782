/* SPDX-License-Identifier: PostgreSQL
 * client_auth_pass.c: the judge said yes: is the certificate's name the user's, may the role log
 * in, what was learned, and on to a link. Runs in: workers. Must never: let a client pass by
 * another way than client_auth_pass. */
#include "config.h"

#include "base/log.h"
#include "cluster/view.h"
#include "config/conf.h"

#include "client_auth_int.h"

/* An answer is as good as asking the role's own link when it is not older. */
#define ROLE_SURE_US 100000

/* What opens servers for this user from now on. */
static void auth_learn(struct client_auth *a)
{
    struct slice name = client_auth_book_name(a);
    struct buf mapped = {0};

    if (a->server_user != NULL) {
        client_auth_put_book_name(a, slice_of_str(a->server_user), &mapped);
        auth_book_learn_cred(a->sa->book, buf_slice(&mapped), &a->mapped);
        buf_free(&mapped);
        return;
    }
    if (a->plan.proof == AUTH_PROOF_SERVER) {
        name = pool_book_name(a->who.req->pool); /* whatever the client is called */
        client_auth_learn_keys(a);
    }
    if (a->plan.keep_password && !secret_is_empty(&a->password))
        auth_book_learn_password(a->sa->book, name, secret_slice(&a->password));
    if (a->got_keys)
        auth_book_learn_keys(a->sa->book, name, &a->keys);
}

/* The servers know the user by another name: the pool is that one's. */
static void auth_map_user(struct client_auth *a)
{
    struct link_startup *startup = a->who.startup;
    struct pool *pool;

    if (a->server_user == NULL)
        return;
    startup->user = slice_of_str(a->server_user);
    pool = pool_attach(a->sa->be, startup->user, startup->database, a->who.req->pool->cluster_node);
    a->who.req->pool = pool;
    a->who.ops->use_pool(a->who.owner, pool);
    pool_check_place(pool); /* pools.conf may have been read again meanwhile */
}

static void auth_log_pass(const struct client_auth *a)
{
    char where[160];

    if (!a->sa->be->conf->log_connections || a->rule == NULL)
        return;
    a->who.ops->passed(
        a->who.owner, hba_method_text(a->rule->method), client_auth_where(a, where, sizeof where));
}

/* A link that waits for this moment goes on with its login. */
static void auth_go_on_with_link(struct client_auth *a)
{
    struct link *link = *a->who.link;
    struct err err = {0};

    link_ask_owner(link, false);
    if (a->plan.proof == AUTH_PROOF_SERVER || link->asks == AUTH_SERVER_TRUST)
        return; /* it has been let in */
    link->opening->answers = (uint8_t)login_answers(a->who.proof);
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

static struct slice auth_role(const struct client_auth *a)
{
    return a->server_user != NULL ? slice_of_str(a->server_user) : pool_user(a->who.req->pool);
}

static void auth_bar_role(struct client_auth *a, enum auth_told told)
{
    struct slice role = auth_role(a);
    struct err err = {0};

    if (told == AUTH_TOLD_NO_ROLE)
        err_set_fatal(&err, "28000", "role \"%.*s\" does not exist", (int)role.n, role.p);
    else
        err_set_fatal(
            &err, "28000", "role \"%.*s\" is not permitted to log in", (int)role.n, role.p);
    client_auth_stop(a, &err, NULL);
}

/* True when that is the end of the login. An expiry date concerns passwords, as in PostgreSQL. */
static bool auth_role_ends(struct client_auth *a, enum auth_told told)
{
    enum auth_server asks = client_auth_remembered(a);

    if (told == AUTH_TOLD_NO || told == AUTH_TOLD_NO_ROLE) {
        auth_bar_role(a, told);
        return true;
    }
    a->needs_server =
        told == AUTH_TOLD_EXPIRED && asks == AUTH_SERVER_UNKNOWN; /* may ask for none */
    if (told != AUTH_TOLD_EXPIRED || asks == AUTH_SERVER_TRUST || a->needs_server)
        return false;
    client_auth_deny(a, "The role's password has expired.");
    return true;
}

static void auth_on_role_seen(struct auth_wait *w, const struct err *err)
{
    struct client_auth *a = LIST_ENTRY(w, struct client_auth, wait);
    enum auth_told last;

    if (!client_auth_is_live(a))
        return;
    a->role = AUTH_ROLE_SURE;
    if (err != NULL) {
        last = login_auth_last_told(a->sa, auth_role(a));
        if (auth_role_ends(a, last))
            return;
        if (last != AUTH_TOLD_EXPIRED) /* as if there were nobody to ask */
            login_auth_put_told(
                a->sa, AUTH_LOOKUP_LOGIN, auth_role(a), slice_of("", 0), AUTH_TOLD_YES);
        a->role = AUTH_ROLE_SEEN;
    }
    client_auth_pass(a);
}

/* True when it goes on later, or is over. A server that opens a link for this client looks by
 * itself; auth_query has said it with the secret; who would be asked about another cluster's roles
 * is not known. */
static bool auth_looks_at_role(struct client_auth *a)
{
    struct auth_way way = login_auth_find_role_way(a->sa->be->conf);
    struct slice role = auth_role(a);
    enum auth_told told;

    if (a->role == AUTH_ROLE_SEEN || *a->who.link != NULL ||
        (a->answer == AUTH_ANSWER_JUDGES && a->server_user == NULL) ||
        a->who.req->pool->cluster_node >= POOLS_FIRST_TARGET || !auth_way_is_there(&way))
        return false;
    if (auth_lookup_is_hopeless(a->sa, &way))
        return auth_role_ends(a, login_auth_last_told(a->sa, role));
    told = login_auth_told(a->sa, AUTH_LOOKUP_LOGIN, role, slice_of("", 0));
    if (told == AUTH_TOLD_NOTHING) {
        a->step = AUTH_STEP_LOOKUP;
        a->wait.done = auth_on_role_seen;
        auth_lookup_start(
            a->sa, AUTH_LOOKUP_LOGIN, &way, role, slice_of("", 0), slice_of("", 0), &a->wait);
        return true;
    }
    if (a->role == AUTH_ROLE_UNSEEN)
        a->role = AUTH_ROLE_SEEN;
    return auth_role_ends(a, told);
}

/* The secret came just now, by a query of ours that asks for no role that may not log in. */
static bool auth_was_vouched(const struct client_auth *a)
{
    struct auth_way way = client_auth_way(a);

    return a->answer == AUTH_ANSWER_JUDGES && a->server_user == NULL &&
           a->stored_age_us < ROLE_SURE_US && auth_lookup_tells_role(a->sa, &way);
}

/* With pool_hba off, a server that trusts speaks for its own node alone. */
static enum login_proved auth_proved(const struct client_auth *a)
{
    if (!a->facts.has_rule && a->plan.proof == AUTH_PROOF_TRUST)
        return LOGIN_PROVED_NOT;
    return a->answer == AUTH_ANSWER_JUDGES || a->plan.proof == AUTH_PROOF_SERVER
               ? LOGIN_PROVED_THERE
               : LOGIN_PROVED_HERE;
}

void client_auth_pass(struct client_auth *a)
{
    struct login_proof *proof = a->who.proof;

    if (a->step == AUTH_STEP_FAILED || a->step == AUTH_STEP_PROVED)
        return;
    if (a->plan.proof == AUTH_PROOF_NEVER || a->plan.ask == AUTH_ASK_REFUSE) {
        client_auth_deny(a, a->plan.reason);
        return;
    }
    if (a->plan.check_cert_name && !auth_cert_fits(a))
        return;
    if (a->who.console == NULL && auth_looks_at_role(a))
        return;
    a->step = AUTH_STEP_PROVED;
    if (a->plan.proof == AUTH_PROOF_CERT) /* scripts look for pgpool-II's words */
        log_caused(LVL_LOG,
            "SSL certificate authentication for user \"%.*s\" with Pgpool-II is successful",
            (int)client_auth_user(a).n, client_auth_user(a).p);
    if (a->who.console != NULL) {
        auth_log_pass(a);
        a->who.ops->enter(a->who.owner, console_may_all(a));
        return;
    }
    proof->proved = auth_proved(a);
    proof->answers =
        a->facts.has_rule && a->facts.method == HBA_SCRAM ? LINK_ANSWERS_SCRAM : LINK_ANSWERS_ALL;
    if (proof->proved == LOGIN_PROVED_NOT)
        proof->trusting_node = (int16_t)a->who.req->pool->cluster_node;
    auth_learn(a);
    auth_log_pass(a);
    if (*a->who.link != NULL) {
        auth_go_on_with_link(a);
        return;
    }
    auth_map_user(a);
    if (a->role == AUTH_ROLE_SURE || auth_was_vouched(a))
        pool_role_vouch(a->who.req->pool); /* its links need not be asked */
    a->who.ops->acquire(a->who.owner);
}
