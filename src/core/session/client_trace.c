/* SPDX-License-Identifier: PostgreSQL
 * client_trace.c: messages of the protocol in the log, for log_client_messages and
 * log_backend_messages. Runs in: workers. Only headers and names are read. */
#include "config.h"

#include <stdio.h>

#include "base/log.h"
#include "wire/message.h"
#include "wire/reader.h"

#include "session_int.h"

struct trace_name {
    char type;
    const char *name;
};

static const struct trace_name client_names[] = {{FE_QUERY, "Query"}, {FE_PARSE, "Parse"},
    {FE_BIND, "Bind"}, {FE_DESCRIBE, "Describe"}, {FE_EXECUTE, "Execute"}, {FE_CLOSE, "Close"},
    {FE_SYNC, "Sync"}, {FE_FLUSH, "Flush"}, {FE_TERMINATE, "Terminate"}, {FE_COPY_DATA, "CopyData"},
    {FE_COPY_DONE, "CopyDone"}, {FE_COPY_FAIL, "CopyFail"}, {FE_FUNCTION_CALL, "FunctionCall"}};

static const struct trace_name server_names[] = {{BE_PARSE_COMPLETE, "ParseComplete"},
    {BE_BIND_COMPLETE, "BindComplete"}, {BE_CLOSE_COMPLETE, "CloseComplete"},
    {BE_ROW_DESCRIPTION, "RowDescription"}, {BE_DATA_ROW, "DataRow"},
    {BE_COMMAND_COMPLETE, "CommandComplete"}, {BE_READY, "ReadyForQuery"},
    {BE_ERROR, "ErrorResponse"}, {BE_NOTICE, "NoticeResponse"},
    {BE_NOTIFICATION, "NotificationResponse"}, {BE_PARAMETER_STATUS, "ParameterStatus"},
    {BE_PARAMETER_DESCRIPTION, "ParameterDescription"}, {BE_NO_DATA, "NoData"},
    {BE_EMPTY_QUERY, "EmptyQueryResponse"}, {BE_PORTAL_SUSPENDED, "PortalSuspended"},
    {BE_COPY_IN, "CopyInResponse"}, {BE_COPY_OUT, "CopyOutResponse"},
    {BE_COPY_BOTH, "CopyBothResponse"}, {BE_COPY_DATA, "CopyData"}, {BE_COPY_DONE, "CopyDone"},
    {BE_FUNCTION_RESULT, "FunctionCallResponse"}};

static const char *name_of(const struct trace_name *names, size_t n, char type)
{
    size_t i;

    for (i = 0; i < n; i++)
        if (names[i].type == type)
            return names[i].name;
    return "Unknown";
}

/* The names in a message: for Describe and Close what it names comes first. */
static void put_detail(struct buf *out, char type, struct slice body)
{
    struct wire_reader r;
    struct slice first;
    char what;

    wire_reader_init(&r, body);
    switch (type) {
    case FE_QUERY:
        first = wire_get_cstr(&r);
        buf_printf(out, "query: \"%.*s\"", (int)first.n, first.p);
        break;
    case FE_PARSE:
        first = wire_get_cstr(&r);
        buf_printf(out, "statement: \"%.*s\", query: ", (int)first.n, first.p);
        first = wire_get_cstr(&r);
        buf_printf(out, "\"%.*s\"", (int)first.n, first.p);
        break;
    case FE_BIND:
        first = wire_get_cstr(&r);
        buf_printf(out, "portal: \"%.*s\", statement: ", (int)first.n, first.p);
        first = wire_get_cstr(&r);
        buf_printf(out, "\"%.*s\"", (int)first.n, first.p);
        break;
    case FE_EXECUTE:
        first = wire_get_cstr(&r);
        buf_printf(out, "portal: \"%.*s\"", (int)first.n, first.p);
        break;
    case FE_FUNCTION_CALL:
        buf_printf(out, "oid: %u", wire_get_u32(&r));
        break;
    case FE_DESCRIBE:
    case FE_CLOSE:
        what = (char)wire_get_u8(&r);
        first = wire_get_cstr(&r);
        buf_printf(
            out, "%s: \"%.*s\"", what == 'S' ? "statement" : "portal", (int)first.n, first.p);
        break;
    default:
        break;
    }
    if (r.bad)
        buf_clear(out); /* it came in part, or is malformed: the kind alone */
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
    put_detail(&detail, type, body);
    if (detail.len > 0)
        buf_put_byte(&detail, '\0');
    log_at_detail(LVL_LOG, detail.len > 0 ? detail.data : NULL, NULL, "%s message from frontend.",
        name_of(client_names, sizeof client_names / sizeof client_names[0], type));
    buf_free(&detail);
    client_log_leave(&scope);
}

static const char *server_name(char type)
{
    return name_of(server_names, sizeof server_names / sizeof server_names[0], type);
}

/* terse: what repeats is counted, and told when something else comes. */
static void tell_repeats(struct client_replies *t)
{
    if (t->repeats > 0)
        log_at(LVL_LOG, "last %s message from backend %d repeated %u times", server_name(t->last),
            t->last_node, t->repeats);
    t->repeats = 0;
}

static void trace_one_reply(struct client_replies *t, bool is_terse, int node, char type)
{
    if (is_terse && t->last == type && t->last_node == node) {
        t->repeats++;
        return;
    }
    tell_repeats(t);
    log_at(LVL_LOG, "%s message from backend %d", server_name(type), node);
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
