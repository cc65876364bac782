/* SPDX-License-Identifier: PostgreSQL
 * link_require.c: what a server may ask for at a login, as backend_require_auth says. Who is in the
 * place of a server, or between, asks for what serves it best: the password in clear text.
 * Runs in: workers. */
#include "config.h"

#include "auth/auth_book.h"
#include "auth/auth_plan.h"
#include "backend/pool.h"
#include "config/conf.h"

#include "link_int.h"

static int flag_of(enum auth_server asks)
{
    switch (asks) {
    case AUTH_SERVER_UNKNOWN:
    case AUTH_SERVER_TRUST:
        return CONF_REQUIRE_NONE;
    case AUTH_SERVER_PASSWORD:
        return CONF_REQUIRE_PASSWORD;
    case AUTH_SERVER_MD5:
        return CONF_REQUIRE_MD5;
    case AUTH_SERVER_SCRAM:
        return CONF_REQUIRE_SCRAM;
    case AUTH_SERVER_OTHER:
        break;
    }
    return CONF_REQUIRE_GSS;
}

static bool is_auto(const struct link *link)
{
    int set = link->be->conf->backend_require_auth;

    return set == 0 || (set & CONF_REQUIRE_AUTO) != 0;
}

bool link_require_fits(const struct link *link, enum auth_server asks, struct err *err)
{
    int set = link->be->conf->backend_require_auth;
    int flag = flag_of(asks);
    bool is_negated = (set & CONF_REQUIRE_NEGATED) != 0;
    bool fits = is_negated ? (set & (flag * CONF_REQUIRE_NOT)) == 0 : (set & flag) != 0;

    if (is_auto(link) || fits)
        return true;
    err_set_fatal(err, "28000",
        "the server (node %d) wants to authenticate user \"%s\" by method \"%s\"",
        link->pool->cluster_node, link->pool->names, auth_server_text(asks));
    err_detail(err, "backend_require_auth does not allow it.");
    return false;
}

bool link_require_is_strong(
    const struct link *link, const struct auth_login *login, enum auth_give give, struct err *err)
{
    enum auth_server asks = (enum auth_server)link->asks;
    const char *why;

    if (login == NULL || !is_auto(link))
        return true;
    why = auth_scram_is_due(
        login->hold, login->has_verifier, link->opening->answers == LINK_ANSWERS_SCRAM, give);
    if (why == NULL)
        return true;
    err_set_fatal(err, "28000",
        "the server (node %d) asks for \"%s\" where user \"%s\" is to prove itself by SCRAM",
        link->pool->cluster_node, auth_server_text(asks), link->pool->names);
    err_detail(err, "The server asks for %s, and %s.", auth_server_text(asks), why);
    err_hint(err,
        "Let the server ask for scram-sha-256 (a role with an md5 secret: set its password "
        "anew), or set backend_require_auth = 'scram-sha-256,%s' (and none, where servers trust "
        "pgpool).",
        auth_server_text(asks));
    return false;
}

/* Nobody but the processes of this machine can read along. */
static bool is_unseen(const struct link *link)
{
    return stream_is_tls(&link->stream) || stream_is_local(&link->stream);
}

bool link_require_may_show(const struct link *link, struct err *err)
{
    if (!is_auto(link) || is_unseen(link))
        return true; /* whoever names methods has been asked about this one already */
    err_set_fatal(err, "28000",
        "the server (node %d) asks for the password of user \"%s\" in clear text without TLS",
        link->pool->cluster_node, link->pool->names);
    err_detail(err, "It is not given: anybody on the way could read it.");
    err_hint(err,
        "Set backend_ssl_mode, or the server's method to scram-sha-256; or add \"password\" to "
        "backend_require_auth.");
    return false;
}
