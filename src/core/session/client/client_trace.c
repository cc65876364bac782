/* SPDX-License-Identifier: PostgreSQL
 * client_trace.c: messages of the protocol in the log, for log_client_messages and
 * log_backend_messages. Runs in: workers. Only headers and names are read. */
#include "config.h"

#include <stdio.h>

#include "base/log.h"
#include "parser/sqlcomment.h"
#include "wire/message.h"
#include "wire/proto_names.h"

#include "client_int.h"

void client_trace_comment(struct client *c, struct slice sql)
{
    struct sql_trace found;

    if (sqlcomment_trace(sql, &found) || c->rare != NULL)
        client_rare(c)->comment = found;
}

/* A COPY is one line, however many messages it comes in; told when it is over. */
static void tell_copies(struct client *c)
{
    struct client_log_scope scope;
    char detail[32];

    if (c->rare == NULL || c->rare->replies.copies == 0)
        return;
    snprintf(detail, sizeof detail, "count: %u", c->rare->replies.copies);
    c->rare->replies.copies = 0;
    client_log_enter(&scope, c);
    log_at_detail(LVL_LOG, detail, NULL, "CopyData message from frontend.");
    client_log_leave(&scope);
}

void client_trace_message(struct client *c, char type, struct slice body)
{
    struct client_log_scope scope;
    struct buf detail = {0};

    if (type == FE_COPY_DATA) {
        client_rare(c)->replies.copies++;
        return;
    }
    tell_copies(c);
    client_log_enter(&scope, c);
    proto_put_names(&detail, type, body);
    if (detail.len > 0)
        buf_put_byte(&detail, '\0');
    log_at_detail(LVL_LOG, detail.len > 0 ? detail.data : NULL, NULL, "%s message from frontend.",
        proto_client_name(type));
    buf_free(&detail);
    client_log_leave(&scope);
}

/* terse: what repeats is counted, and told when something else comes. */
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

void client_trace_reply(struct client *c, int node, const char *p, size_t n)
{
    struct client_log_scope scope;
    struct client_replies *t = &c->rare->replies;
    const char *end = p + n;
    size_t left;

    client_log_enter(&scope, c);
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
        trace_one_reply(t, c->trace.server == CONF_MESSAGES_TERSE, node, p[0]);
        t->body_left = (uint32_t)(message_bytes(p) - PROTO_HEADER_BYTES);
        p += PROTO_HEADER_BYTES;
    }
    client_log_leave(&scope);
}
