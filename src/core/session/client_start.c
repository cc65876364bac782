/* SPDX-License-Identifier: PostgreSQL
 * client_start.c: the first packets of a client: encryption requests, cancel requests, startup. */
#include "config.h"

#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "config/conf.h"
#include "wire/writer.h"

#include "session_int.h"

static void start_refuse(struct client *c, const struct err *err)
{
    static struct log_limit lim = {.burst = 10};

    if (log_limit_pass(&lim))
        log_at(LVL_LOG, "connection refused: %s", err->msg);
    client_end(c, err);
}

/* SSLRequest or GSSENCRequest: answered N. A client may ask for each once. */
static bool start_on_encryption(struct client *c, bool *asked)
{
    struct err err;

    if (*asked) {
        err_clear(&err);
        err_set_fatal(
            &err, "0A000", "unsupported frontend protocol 1234.5679: server supports 3.0 to 3.2");
        start_refuse(c, &err);
        return false;
    }
    *asked = true;
    return stream_send(&c->stream, "N", 1) == 0;
}

static void start_on_cancel(struct client *c, const struct startup *st)
{
    uint8_t key[PROTO_KEY_MAX_BYTES];
    struct slice copy = slice_of((const char *)key, st->cancel_key.n);
    int fd = dup(c->stream.fd); /* closing it tells the canceller that the cancel was delivered */

    memcpy(key, st->cancel_key.p, st->cancel_key.n);
    client_cancel_request(c->ss, st->cancel_pid, copy, fd);
    client_end(c, NULL);
}

void client_on_startup_bytes(struct client *c, const char *p, const char *end)
{
    struct startup st;
    struct err err;
    enum startup_kind kind;

    while (p < end) {
        err_clear(&err);
        kind = startup_decode(slice_of(p, (size_t)(end - p)), &st, &err);
        switch (kind) {
        case STARTUP_NEED_MORE:
            buf_put(&c->carry, p, (size_t)(end - p));
            return;
        case STARTUP_SSL:
        case STARTUP_GSSENC:
            if (!start_on_encryption(c, kind == STARTUP_SSL ? &c->asked_tls : &c->asked_gss))
                return;
            p += st.packet_bytes;
            break;
        case STARTUP_CANCEL:
            start_on_cancel(c, &st);
            return;
        case STARTUP_BAD:
            start_refuse(c, &err);
            return;
        case STARTUP_NORMAL:
            client_login_begin(c, &st, slice_of(p, st.packet_bytes));
            p += st.packet_bytes;
            if (p < end && c->phase == CL_LOGIN)
                client_login_input(c, p, end);
            else if (p < end && c->phase == CL_ACTIVE)
                client_feed(c, p, end);
            return;
        }
    }
}
