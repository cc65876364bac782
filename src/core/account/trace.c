/* SPDX-License-Identifier: PostgreSQL
 * trace.c: messages of the protocol in the log. Runs in: workers. */
#include "config.h"

#include <stdio.h>

#include "base/buf.h"
#include "base/log.h"
#include "wire/message.h"
#include "wire/proto.h"
#include "wire/proto_names.h"

#include "account/trace.h"

/* A COPY is one line, however many messages it comes in; told when it is over. */
static void tell_copies(uint32_t *copies)
{
    char detail[32];

    if (*copies == 0)
        return;
    snprintf(detail, sizeof detail, "count: %u", *copies);
    *copies = 0;
    log_at_detail(LVL_LOG, detail, NULL, "CopyData message from frontend.");
}

void trace_message(uint32_t *copies, char type, struct slice body)
{
    struct buf detail = {0};

    tell_copies(copies);
    proto_put_names(&detail, type, body);
    if (detail.len > 0)
        buf_put_byte(&detail, '\0');
    log_at_detail(LVL_LOG, detail.len > 0 ? detail.data : NULL, NULL, "%s message from frontend.",
        proto_client_name(type));
    buf_free(&detail);
}

static void tell_repeats(struct client_replies *t)
{
    if (t->repeats > 0)
        log_at(LVL_LOG, "last %s message from backend %d repeated %u times",
            proto_server_name(t->last), t->last_node, t->repeats);
    t->repeats = 0;
}

static void trace_one_reply(struct client_replies *t, bool is_terse, int node, char type)
{
    if (is_terse && t->last == type && t->last_node == node) {
        t->repeats++;
        return;
    }
    tell_repeats(t);
    log_at(LVL_LOG, "%s message from backend %d", proto_server_name(type), node);
    t->last = type == BE_READY ? '\0' : type;
    t->last_node = (int16_t)node;
}

void trace_reply(struct client_replies *t, bool is_terse, int node, const char *p, size_t n)
{
    const char *end = p + n;
    size_t left;

    while (p < end) {
        left = (size_t)(end - p);
        if (t->body_left > 0) {
            left = left < t->body_left ? left : t->body_left;
            t->body_left -= (uint32_t)left;
            p += left;
            continue;
        }
        if (left < PROTO_HEADER_BYTES)
            break; /* headers come whole */
        trace_one_reply(t, is_terse, node, p[0]);
        t->body_left = (uint32_t)(message_bytes(p) - PROTO_HEADER_BYTES);
        p += PROTO_HEADER_BYTES;
    }
}
