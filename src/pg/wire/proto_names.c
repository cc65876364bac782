/* SPDX-License-Identifier: PostgreSQL
 * proto_names.c: names of messages, as the documentation of PostgreSQL has them. Runs in: workers,
 * for the log. */
#include "config.h"

#include <stddef.h>

#include "base/buf.h"
#include "wire/proto.h"
#include "wire/proto_names.h"
#include "wire/reader.h"

struct message_name {
    char type;
    const char *name;
};

static const struct message_name client_names[] = {{FE_QUERY, "Query"}, {FE_PARSE, "Parse"},
    {FE_BIND, "Bind"}, {FE_DESCRIBE, "Describe"}, {FE_EXECUTE, "Execute"}, {FE_CLOSE, "Close"},
    {FE_SYNC, "Sync"}, {FE_FLUSH, "Flush"}, {FE_TERMINATE, "Terminate"}, {FE_COPY_DATA, "CopyData"},
    {FE_COPY_DONE, "CopyDone"}, {FE_COPY_FAIL, "CopyFail"}, {FE_FUNCTION_CALL, "FunctionCall"}};

static const struct message_name server_names[] = {{BE_PARSE_COMPLETE, "ParseComplete"},
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

static const char *name_of(const struct message_name *names, size_t n, char type)
{
    size_t i;

    for (i = 0; i < n; i++)
        if (names[i].type == type)
            return names[i].name;
    return "Unknown";
}

const char *proto_client_name(char type)
{
    return name_of(client_names, sizeof client_names / sizeof client_names[0], type);
}

const char *proto_server_name(char type)
{
    return name_of(server_names, sizeof server_names / sizeof server_names[0], type);
}

/* The names in a message: for Describe and Close what it names comes first. */
void proto_put_names(struct buf *out, char type, struct slice body)
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
