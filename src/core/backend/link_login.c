/* SPDX-License-Identifier: PostgreSQL
 * link_login.c: the first messages on a link: authentication goes to link_auth.c, parameters and
 * the cancel key are kept, the server's own errors are forwarded word for word. */
#include "config.h"

#include <string.h>

#include "backend/pool.h"
#include "base/log.h"
#include "base/mem.h"
#include "wire/errmsg.h"
#include "wire/message.h"
#include "wire/reader.h"
#include "wire/writer.h"

#include "link_int.h"

/* How many bytes of what a server says beside a login are kept. */
#define LOGIN_SAID_MAX 8192

static void login_on_auth(struct link *link, struct slice body, const char *msg, size_t n)
{
    if (body.n < 4) {
        link_fail_text(link, "08P01", "invalid authentication message from server");
        return;
    }
    if (link_auth_on_message(link, body) == LINK_AUTH_STEP_DONE || link->phase == LINK_CLOSED)
        return;
    if (link->owner == NULL && message_number(body) == AUTH_OK)
        return;
    if (link->owner == NULL)
        link_close(link); /* nobody is there to answer */
    else {
        if (message_number(body) != AUTH_OK) /* the client's turn, which may take its time */
            link->be->pool_ops->on_opened(link, false);
        link->ops->on_auth(link->owner, link, msg, n);
    }
}

static void login_on_key(struct link *link, struct slice body)
{
    if (body.n < 8 || body.n > 4 + PROTO_KEY_MAX_BYTES) {
        link_fail_text(link, "08P01", "invalid cancel key from server");
        return;
    }
    link->server_pid = (int32_t)message_number(body);
    link_set_key(link, slice_of(body.p + 4, body.n - 4));
}

static void login_on_parameter(struct link *link, struct slice body)
{
    struct wire_reader r;
    struct slice name;
    struct slice value;

    wire_reader_init(&r, body);
    name = wire_get_cstr(&r);
    value = wire_get_cstr(&r);
    if (!wire_reader_ok(&r)) {
        link_fail_text(link, "08P01", "invalid parameter status from server");
        return;
    }
    if (!link_takes_parameter(link, name, value))
        return;
    (void)paramset_set(&link->reported, name, value);
    if (slice_eq_str(name, "is_superuser"))
        pool_note_role(link->pool, value);
}

static void login_on_ready(struct link *link, struct slice body)
{
    if (!link_is_let_in(link)) {
        link_fail_text(link, "08P01",
            "the server (node %d) began a session before the login was over",
            link->pool->cluster_node);
        return;
    }
    link->tx_status = body.n == 1 ? body.p[0] : 'I';
    link->phase = LINK_LENT;
    link->uses = 1;
    paramset_share(&link->reported, &link->be->paramsets);
    link_answer_free(link);
    link_tls_on_login_done(link);
    if (!link->is_private)
        link->be->pool_ops->on_said(link->pool, link, buf_slice(&link->opening->said));
    buf_free(&link->opening->said);
    link->be->pool_ops->on_opened(link, true);
    mem_free(link->opening);
    link->opening = NULL;
    timer_stop(link->be->loop, &link->timer);
    if (link->owner == NULL)
        link_release(link, true);
    else
        link->ops->on_login_done(link->owner, link);
}

/* The server has no room. True when the owner waits for another link instead of being told. */
static bool login_on_no_room(struct link *link, const char *sqlstate)
{
    if (!link->be->pool_ops->on_refused(link, sqlstate) || link->owner == NULL ||
        link->ops->on_refused == NULL || !link->ops->on_refused(link->owner, link))
        return false;
    link->owner = NULL;
    link_close(link);
    return true;
}

static void login_on_error(struct link *link, struct slice body, const char *msg, size_t n)
{
    struct buf brief = {0};
    struct buf cut = {0};
    struct errmsg m;
    struct err err;

    if (link->body_left > 0) { /* so long that it is not all here: the field at its end is cut */
        buf_put(&cut, body.p, body.n);
        buf_put(&cut, "\0", 2);
        body = buf_slice(&cut);
    }
    (void)errmsg_decode(body, &m);
    err_clear(&err);
    errmsg_to_err(&m, &err);
    buf_free(&cut);
    if (link_tls_on_login_error(link, err.sqlstate))
        return;
    link_auth_on_refusal(link, err.sqlstate);
    if (login_on_no_room(link, err.sqlstate))
        return;
    if (link->owner != NULL) {
        if (link->opening->said.len > 0)
            link->ops->on_bytes(
                link->owner, link, link->opening->said.data, link->opening->said.len);
        if (link->body_left > 0) {
            wire_put_err(&brief, &err);
            msg = brief.data;
            n = brief.len;
        }
        link->ops->on_bytes(link->owner, link, msg, n);
        buf_free(&brief);
        link->loan.error_told = true;
    }
    if (link->phase != LINK_CLOSED)
        link_fail(link, &err);
}

void link_login_message(struct link *link, char type, const char *msg, size_t n)
{
    struct slice body = slice_of(msg + PROTO_HEADER_BYTES, n - PROTO_HEADER_BYTES);

    switch (type) {
    case BE_AUTHENTICATION:
        login_on_auth(link, body, msg, n);
        break;
    case BE_BACKEND_KEY_DATA:
        login_on_key(link, body);
        break;
    case BE_PARAMETER_STATUS:
        login_on_parameter(link, body);
        break;
    case BE_NEGOTIATE:
        if (body.n >= 4 && message_number(body) < link->version)
            link->version = PROTO_3_0 | (message_number(body) & 0xFFFF);
        break;
    case BE_NOTICE:
        if (link->is_private && link->owner != NULL)
            link->ops->on_bytes(link->owner, link, msg, n);
        else if (!link->is_private && link->opening->said.len + n <= LOGIN_SAID_MAX)
            buf_put(&link->opening->said, msg, n); /* for who gets the link, and the next ones */
        break;
    case BE_READY:
        login_on_ready(link, body);
        break;
    case BE_ERROR:
        login_on_error(link, body, msg, n);
        break;
    default:
        link_fail_text(link, "08P01", "unexpected message type 0x%02X from server during startup",
            (unsigned char)type);
        break;
    }
}
