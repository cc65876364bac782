/* SPDX-License-Identifier: PostgreSQL
 * client_auth_link.c: a link opened for one client before the client has proved anything: what the
 * server asks on it decides what the client is asked, and perhaps the server judges the answer.
 * Runs in: workers. Must never: let the client into a link that was let in by trust while the plan
 * wants a proof; offer the client SCRAM-SHA-256-PLUS of the server, which binds another channel. */
#include "config.h"

#include <string.h>

#include "base/hot.h"
#include "config/conf.h"
#include "wire/message.h"
#include "wire/reader.h"
#include "wire/writer.h"

#include "client_auth_int.h"

bool client_auth_on_turn(struct client_auth *a)
{
    if (a == NULL || a->step != AUTH_STEP_SERVER || *a->who.link != NULL || a->facts.has_rule ||
        a->facts.maps_user || client_auth_remembered(a) != AUTH_SERVER_TRUST)
        return false;
    pool_request_cancel(a->who.req); /* the role may have to be looked at first */
    a->who.req->keeps_place = true;
    backend_post_retry(a->sa->be); /* a link that is free is its own, or else the next one's */
    client_auth_plan(a);
    return true;
}

void client_auth_on_opening(const struct client_auth *a)
{
    link_ask_owner(*a->who.link, a->step == AUTH_STEP_SERVER);
}

/* A copy of the server's list of mechanisms without those that bind its channel. */
static void link_put_mechanisms(struct slice list, struct buf *out)
{
    const char *end;

    while (list.n > 0 && list.p[0] != '\0') {
        end = memchr(list.p, '\0', list.n);
        if (end == NULL)
            break;
        if (strcmp(list.p, SCRAM_NAME_PLUS) != 0)
            buf_put_cstr(out, list.p);
        list = slice_of(end + 1, list.n - (size_t)(end - list.p) - 1);
    }
    buf_put_byte(out, '\0');
}

static void link_relay(struct client_auth *a, struct slice body, const char *msg, size_t n)
{
    struct wire_reader r;
    struct buf list = {0};
    struct buf out = {0};
    uint32_t code;

    wire_reader_init(&r, body);
    code = wire_get_u32(&r);
    if (code == AUTH_SASL) {
        link_put_mechanisms(slice_of(body.p + 4, body.n - 4), &list);
        wire_put_auth(&out, AUTH_SASL, buf_slice(&list));
        buf_free(&list);
    } else {
        if (code == AUTH_SASL_CONTINUE)
            client_auth_watch_server(a, slice_of(body.p + 4, body.n - 4));
        buf_put(&out, msg, n);
    }
    if (a->step == AUTH_STEP_RELAY)
        client_auth_owes(a);
    if (a->who.ops->say(a->who.owner, &out, code == AUTH_OK))
        stream_resume(a->who.stream);
}

/* The first message of SCRAM, by a client that would bind it to its TLS, but was not offered that.
 */
static bool is_bindable_scram(struct slice body)
{
    const size_t name = sizeof SCRAM_NAME;

    return body.n > name + 4 && memcmp(body.p, SCRAM_NAME, name) == 0 && body.p[name + 4] == 'y';
}

bool client_auth_passes_on(struct client_auth *a, const struct link *link, struct slice body)
{
    struct err err = {0};

    client_auth_answered(a);
    if (!auth_is_tls(&a->facts) || !stream_is_tls(&link->stream) || !is_bindable_scram(body)) {
        client_auth_watch_client(a, body);
        return true;
    }
    err_set_fatal(&err, "28000",
        "SCRAM is not passed on where the client's connection and the server's both have TLS");
    err_detail(&err, "The server takes it for an attack that the client is not offered to bind the "
                     "login to its TLS.");
    err_hint(&err, "Add the user to pool_passwd, let users be looked up with auth_query, or let "
                   "them send the password: a hostssl line with the method password.");
    client_auth_stop(a, &err, NULL);
    return false;
}

/* Makes the plan and carries it out; false when the login is over: `a` may be gone. */
static bool link_plan(struct client_auth *a)
{
    bool is_gone = false;

    a->gone = &is_gone;
    client_auth_plan(a);
    if (is_gone)
        return false;
    a->gone = NULL;
    return client_auth_is_live(a);
}

/* The first that the server says on the fresh link: now the plan can be made. */
static void link_on_first(
    struct client_auth *a, struct link *link, struct slice body, const char *msg, size_t n)
{
    a->facts.server = link_auth_kind(body);
    a->facts.fresh_link = true;
    client_auth_note_asked(a, a->facts.server);
    if (!link_plan(a) || *a->who.link != link)
        return;
    if (a->step == AUTH_STEP_RELAY || a->step == AUTH_STEP_PROVED) {
        link_relay(a, body, msg, n);
        return;
    }
    /* Let in already, and nothing of the client's will be checked by it: it has to wait elsewhere,
     * for what comes next on it would be the session. A stand-in needs no link at all. */
    if (a->facts.server == AUTH_SERVER_TRUST || a->plan.proof == AUTH_PROOF_NEVER ||
        a->server_user != NULL) {
        a->who.ops->drop_link(a->who.owner);
        a->who.req->link = NULL;
    }
}

/* A proved client's link cannot log in with what is known. */
static void link_cannot(struct client_auth *a, struct link *link)
{
    const struct auth_login *login = auth_book_login(a->sa->book, pool_book_name(a->who.req->pool));
    struct err err = {0};

    client_auth_forget_asked(a); /* the server may ask otherwise than it did */
    if (auth_give_choose(login == NULL ? 0 : login->hold, (enum auth_server)link->asks,
            pool_user(a->who.req->pool), &err) != AUTH_GIVE_IMPOSSIBLE) {
        err_clear(&err);
        err_set(&err, "28000", "could not log in to the server (node %d)",
            a->who.req->pool->cluster_node);
    }
    client_auth_stop(a, &err, err.detail[0] != '\0' ? err.detail : NULL);
}

bool client_auth_on_link(struct client_auth *a, struct link *link, const char *msg, size_t n)
{
    struct slice body = slice_of(msg + PROTO_HEADER_BYTES, n - PROTO_HEADER_BYTES);
    bool is_ok = message_is_auth_ok(msg, n);

    if (a == NULL || body.n < 4)
        return false;
    switch ((enum auth_step)a->step) {
    case AUTH_STEP_SERVER:
        link_on_first(a, link, body, msg, n);
        break;
    case AUTH_STEP_RELAY:
        link_relay(a, body, msg, n);
        if (is_ok)
            client_auth_pass(a);
        break;
    case AUTH_STEP_JUDGE:
    case AUTH_STEP_LINK_JUDGES:
        if (is_ok && a->step == AUTH_STEP_LINK_JUDGES)
            client_auth_pass(a);
        else
            client_auth_deny(a, "The server asked for more than the password.");
        break;
    case AUTH_STEP_PROVED:
        if (!is_ok)
            link_cannot(a, link);
        else
            link_relay(a, body, msg, n);
        break;
    default: /* the server says something while nobody has answered it */
        client_auth_deny(a, "The server went on before it was answered.");
        break;
    }
    return true;
}

static bool server_judges(const struct client_auth *a)
{
    return a->step == AUTH_STEP_RELAY || a->step == AUTH_STEP_LINK_JUDGES;
}

WARM bool client_auth_hold(struct client_auth *a, const char *p, size_t n)
{
    if (a == NULL || p[0] != BE_ERROR || !server_judges(a) ||
        a->sa->be->conf->auth_failure_delay_ms == 0)
        return false;
    buf_put(&a->held, p, n);
    return true;
}

bool client_auth_on_link_lost(struct client_auth *a, const struct err *err)
{
    if (a == NULL || !client_auth_is_live(a))
        return false;
    if (a->step == AUTH_STEP_PROVED && strncmp(err->sqlstate, "28", 2) == 0)
        client_auth_forget_asked(a); /* it may ask otherwise than it did */
    if (server_judges(a) && strncmp(err->sqlstate, "28", 2) == 0)
        client_auth_count_failure(a);
    return a->held.len > 0 && client_auth_delay(a);
}
