/* SPDX-License-Identifier: PostgreSQL
 * client_auth_plan.c: what is to be asked and who judges is auth_plan's, a pure table; this file
 * gathers the facts for it, without asking anybody, and carries the plan out. Runs in: workers. */
#include "config.h"

#include "config/conf.h"

#include "client_auth_int.h"

/* What the server asked lately; unknown is always safe. */
enum auth_server client_auth_remembered(const struct client_auth *a)
{
    const struct pool *pool = a->who.req->pool;

    if (a->who.req->is_private)
        return AUTH_SERVER_UNKNOWN; /* sessions have told nothing about replication */
    if (pool_is_trusted(pool))
        return AUTH_SERVER_TRUST;
    return pool->auth == LINK_AUTH_ASKED ? (enum auth_server)pool->asks : AUTH_SERVER_UNKNOWN;
}

bool client_auth_asks_servers(const struct client_auth *a)
{
    struct auth_way way = client_auth_way(a);

    return auth_way_is_there(&way);
}

bool client_auth_may_relay(const struct client_auth *a)
{
    return a->who.console == NULL && a->answer == AUTH_ANSWER_NONE && !a->is_asked &&
           login_auth_may_relay(
               a->sa->be->conf, client_auth_asks_servers(a), client_auth_file_judges(a));
}

/* Passwords in clear text are asked for only where nobody listens, once TLS is there to be had. */
static bool auth_may_ask_clear(const struct client_auth *a)
{
    const struct conf *conf = a->sa->be->conf;

    return conf->allow_clear_text_frontend_auth &&
           (auth_is_tls(&a->facts) || !conf->ssl || stream_is_local(a->who.stream));
}

void client_auth_plan(struct client_auth *a)
{
    struct auth_facts *f = &a->facts;

    if (!f->fresh_link)
        f->server = f->has_rule ? client_auth_remembered(a) : client_auth_was_asked(a);
    f->allow_clear_text = auth_may_ask_clear(a) &&
                          (f->stored != CRED_NONE || a->sa->be->conf->auth_relay != CONF_RELAY_OFF);
    f->md5_is_usual = auth_guard_usual(a->sa->guard) == 0;
    f->may_relay = client_auth_may_relay(a);
    if (a->who.console == NULL)
        a->plan = auth_plan_make(f);
    else if (!console_plan(a))
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
        client_auth_log_refusal(a, a->plan.reason);
        client_auth_refuse(a, true);
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
        a->step = AUTH_STEP_SERVER; /* a link for this client, to see what its server asks */
        a->who.ops->acquire(a->who.owner);
        break;
    }
}
