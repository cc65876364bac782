/* SPDX-License-Identifier: PostgreSQL
 * client_start.c: the first packets of a client: encryption requests, cancel requests, startup. */
#include "config.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "config/conf.h"
#include "config/conf_param.h"

#include "client/client_tls_int.h"

/* The answer decides how the bytes behind the request are to be read: there must not be any. */
static void start_refuse_behind(struct client *c, bool is_tls)
{
    struct err err = {0};

    err_set_fatal(&err, "08P01", "received unencrypted data after %s request",
        is_tls ? "SSL" : "GSSAPI encryption");
    err_detail(&err, "Either the client does not know the protocol, or somebody between it and "
                     "here adds bytes of his own.");
    client_end(c, &err);
}

/* SSLRequest or GSSENCRequest, each at most once. False when the client was sent away. */
static bool start_on_encryption(struct client *c, bool is_tls, bool has_more)
{
    struct err err = {0};

    if (is_tls ? c->asked_tls : c->asked_gss) {
        err_set_fatal(&err, "0A000",
            "unsupported frontend protocol 1234.%s: server supports 3.0 to 3.2",
            is_tls ? "5679" : "5680");
        client_end(c, &err);
        return false;
    }
    c->asked_tls = c->asked_tls || is_tls;
    c->asked_gss = c->asked_gss || !is_tls;
    if (has_more) {
        start_refuse_behind(c, is_tls);
        return false;
    }
    if (is_tls)
        log_caused(
            LVL_DEBUG1, "client->server SSL response: %c", client_tls_is_offered(c) ? 'S' : 'N');
    if (!is_tls || !client_tls_is_offered(c))
        return stream_send(&c->stream, "N", 1) == 0;
    if (client_tls_on_request(c, &err) == 0)
        return true;
    client_end(c, &err);
    return false;
}

static void start_on_cancel(struct client *c, const struct startup *st)
{
    uint8_t key[PROTO_KEY_MAX_BYTES] = {0};
    struct slice copy = slice_of((const char *)key, st->cancel_key.n);
    bool is_tls = stream_is_tls(&c->stream);
    char text[32];
    /* Closing it tells the canceller that the cancel was delivered. */
    int fd = is_tls ? client_tls_cancel_wait(c) : dup(stream_fd(&c->stream));

    memcpy(key, st->cancel_key.p, st->cancel_key.n);
    if (conf_session_of(c->ss->gen, NULL)->log_client_messages) {
        snprintf(text, sizeof text, "process id: %d", (int)st->cancel_pid);
        log_caused_detail(LVL_LOG, text, NULL, "Cancel message from frontend.");
    }
    client_cancel_request(c->ss, st->cancel_pid, copy, fd);
    if (!is_tls || fd == -1)
        client_end(c, NULL);
}

void client_on_startup_bytes(struct client *c, const char *p, const char *end)
{
    struct startup st;
    struct err err = {0};
    enum startup_kind kind;

    if (p < end && client_tls_is_direct(c, p)) {
        if (client_tls_on_direct(c, slice_of(p, (size_t)(end - p)), &err) == -1)
            client_end(c, &err);
        return;
    }
    while (p < end) {
        err_clear(&err);
        kind = startup_decode(slice_of(p, (size_t)(end - p)), &st, &err);
        switch (kind) {
        case STARTUP_NEED_MORE:
            buf_put(&c->carry, p, (size_t)(end - p));
            return;
        case STARTUP_SSL:
        case STARTUP_GSSENC:
            p += st.packet_bytes;
            if (!start_on_encryption(c, kind == STARTUP_SSL, p < end))
                return;
            break;
        case STARTUP_CANCEL:
            start_on_cancel(c, &st);
            return;
        case STARTUP_SILENT:
            client_log_refusal(c, &err);
            client_end(c, NULL);
            return;
        case STARTUP_BAD:
            client_end(c, &err);
            return;
        case STARTUP_NORMAL:
            client_login_begin(c, slice_of(p, st.packet_bytes));
            p += st.packet_bytes;
            client_login_input(c, p, end);
            return;
        }
    }
}
