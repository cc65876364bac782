/* SPDX-License-Identifier: PostgreSQL
 * client_auth.c: the course of one client's authentication: rule, what is stored, plan, judge.
 * Runs in: workers. What is to be asked and who judges is auth_plan's, a pure table; this file
 * gathers the facts for it and carries the plan out. Must never: let a client pass by another way
 * than client_auth_pass, tell a client why it did not pass. */
#include "config.h"

#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "base/assert.h"
#include "base/hot.h"
#include "base/log.h"
#include "base/mem.h"
#include "cluster/view.h"
#include "config/conf.h"
#include "net/tls.h"

#include "client_auth_int.h"

void client_auth_on_move(struct client_auth *a)
{
    if (a == NULL)
        return;
    buf_clear(&a->book_name);
    client_auth_put_book_name(a, client_auth_user(a), &a->book_name);
}

static void auth_read_address(struct client_auth *a)
{
    const struct client_row *row = a->who.row;
    struct sockaddr_in6 six = {.sin6_family = AF_INET6};
    struct sockaddr_storage ss;
    socklen_t len = sizeof ss;

    if (row != NULL && row->addr_kind == ROW_ADDR_IPV4) { /* known since it was accepted */
        a->addr.n = 4;
        memcpy(a->addr.bytes, row->addr, 4);
        return;
    }
    if (row != NULL && row->addr_kind == ROW_ADDR_IPV6) {
        memcpy(&six.sin6_addr, row->addr, sizeof six.sin6_addr);
        a->addr = hba_addr_of((const struct sockaddr *)&six);
        return;
    }
    memset(&ss, 0, sizeof ss);
    if (getpeername(stream_fd(a->who.stream), (struct sockaddr *)&ss, &len) == 0)
        a->addr = hba_addr_of((const struct sockaddr *)&ss);
}

static void auth_on_rule(struct client_auth *a)
{
    a->facts.has_rule = a->rule != NULL;
    if (a->rule != NULL) {
        a->facts.method = a->rule->method;
        a->facts.clientcert = a->rule->clientcert;
        a->facts.ldap_password_for_server = a->rule->ldap.use_password_for_server;
    }
    if (a->who.console != NULL && console_judges(a))
        client_auth_plan(a);
    else
        client_auth_find_stored(a);
}

struct client_auth *client_auth_new(struct login_auth *sa, const struct login_who *who)
{
    struct client_auth *a = mem_alloc_secret(sizeof *a);

    a->who = *who;
    a->sa = sa;
    who->proof->trusting_node = VIEW_NO_NODE;
    timer_init(&a->delay, client_auth_on_delay);
    timer_init(&a->patience, client_auth_on_patience);
    list_init(&a->wait.node);
    list_init(&a->owing);
    auth_read_address(a);
    if (stream_is_tls(who->stream))
        a->facts.channel =
            stream_tls_is_peer_verified(who->stream) ? AUTH_CHANNEL_TLS_CERT : AUTH_CHANNEL_TLS;
    client_auth_put_book_name(a, client_auth_user(a), &a->book_name);
    return a;
}

static bool auth_is_sent_away(struct client_auth *a)
{
    struct err err = {0};

    if (!client_auth_is_blocked(a, AUTH_GUARD_WRONG))
        return false;
    err_set_fatal(&err, "28000", "too many failed logins from this address");
    err_hint(&err, "Wait for a minute.");
    a->is_counted = true; /* a refused attempt does not make the time longer */
    client_auth_stop(a, &err, "auth_failure_limit is reached.");
    return true;
}

void client_auth_start(struct client_auth *a)
{
    struct err err = {0};

    /* Who has hung up has no address, and must not pass for a client of a Unix socket. */
    if (a->addr.n == 0 && !stream_is_local(a->who.stream)) {
        err_set_fatal(&err, "08006", "the client has gone");
        client_auth_stop(a, &err, "Its address is not known any more.");
        return;
    }
    if (auth_is_sent_away(a))
        return;
    a->matched = auth_on_rule;
    if (a->sa->be->conf->enable_pool_hba)
        client_auth_match(a);
    else
        auth_on_rule(a);
}

bool client_auth_is_over(const struct client_auth *a)
{
    return a != NULL && a->step == AUTH_STEP_PROVED;
}

void client_auth_close(struct client_auth *a)
{
    if (a == NULL)
        return;
    a->step = AUTH_STEP_FAILED;
    client_auth_answered(a);
    timer_stop(a->sa->be->loop, &a->delay);
    timer_stop(a->sa->be->loop, &a->patience);
}

void client_auth_free(struct client_auth **ap)
{
    struct client_auth *a = *ap;

    *ap = NULL;
    if (a == NULL)
        return;
    if (a->gone != NULL)
        *a->gone = true;
    job_leave(&a->job);
    auth_lookup_cancel(&a->wait);
    client_auth_close(a);
    scram_server_fini(&a->scram);
    client_auth_watch_free(a);
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

HOT bool client_auth_may_reuse(const struct login_proof *proof, const struct client_auth *a,
    bool is_in, const struct pool *pool)
{
    bool is_over = is_in || client_auth_is_over(a);

    ASSERT(proof->proved == LOGIN_PROVED_NOT || is_over);
    if (!is_over || (a != NULL && a->needs_server))
        return false;
    return proof->proved != LOGIN_PROVED_NOT || pool_is_trusted(pool) ||
           (is_in && proof->trusting_node == pool->cluster_node);
}

enum client_auth_input client_auth_wants(const struct client_auth *a)
{
    if (a == NULL)
        return CLIENT_AUTH_NOTHING;
    if (a->step == AUTH_STEP_ASKED || a->step == AUTH_STEP_HALF_WAY)
        return CLIENT_AUTH_ANSWER;
    return a->step == AUTH_STEP_RELAY ? CLIENT_AUTH_RELAY : CLIENT_AUTH_NOTHING;
}

void client_auth_input(struct client_auth *a, struct slice body)
{
    client_auth_answered(a);
    if (!auth_is_sent_away(a)) /* others may have failed while this one waited */
        client_auth_on_answer(a, body);
}
