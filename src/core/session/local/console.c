/* SPDX-License-Identifier: PostgreSQL
 * console.c: a session in the virtual database: its beginning, its messages, its end. Runs in:
 * workers. Commands are those of any session (client_local.c); what is different is that nothing is
 * ever passed on. Must never: wait for a server, or count as one of the clients. */
#include "config.h"

#include <string.h>

#include "base/log.h"
#include "base/mem.h"
#include "config/conf.h"
#include "session/console.h"
#include "wire/message.h"
#include "wire/reader.h"
#include "wire/writer.h"

#include "console_int.h"
#include "sstate_int.h"

/* The pool is a name only: it never has a link. */
static int console_node(const struct conf *conf)
{
    int i;

    for (i = 0; i < conf->nnodes; i++)
        if (conf_has_node(conf, i))
            return i;
    return 0;
}

static bool console_take(struct client *c)
{
    struct client_login *login = c->login;

    if (!console_is_named(c->ss->conf, login->startup.database))
        return false;
    client_rare(c)->console = mem_alloc_zero(sizeof(struct client_console));
    c->kind = &c->ss->kinds->console;
    c->pool = pool_attach(
        &c->ss->be, login->startup.user, login->startup.database, console_node(c->ss->conf));
    login->req.pool = c->pool;
    if (login->startup.replication.n > 0)
        client_end_text(c, "0A000", "database \"%s\" is pgpool's own: nothing to replicate",
            pool_database(c->pool).p);
    else
        client_gate_open(c);
    return true;
}

/* ---- the end of the login ---- */

static void put_parameters(struct client *c, bool may_all, struct buf *out)
{
    struct slice app = paramset_get(&c->login->params, slice_of_str("application_name"));
    const struct admin_parameter *p;
    unsigned n;
    unsigned i;

    p = admin_alone_parameters(&n);
    for (i = 0; i < n; i++)
        if (p[i].is_reported)
            wire_put_parameter_status(out, slice_of_str(p[i].name), slice_of_str(p[i].value));
    wire_put_parameter_status(
        out, slice_of_str("is_superuser"), slice_of_str(may_all ? "on" : "off"));
    wire_put_parameter_status(out, slice_of_str("session_authorization"), pool_user(c->pool));
    wire_put_parameter_status(
        out, slice_of_str("application_name"), app.p == NULL ? slice_of("", 0) : app);
}

static bool is_full(struct client *c)
{
    const struct conf *conf = c->ss->conf;
    struct err err;

    if (session_admin_add(c->ss->shared, c->ss->env->ordinal, conf->reserved_admin))
        return false;
    err_clear(&err);
    err_set_fatal(&err, "53300", "too many clients of database \"%s\"", pool_database(c->pool).p);
    err_hint(
        &err, "Close others, or use an SQL session of another database, which knows SHOW, too.");
    err_detail(&err, "reserved_admin is %d.", conf->reserved_admin);
    client_end(c, &err);
    return true;
}

static void console_enter(struct client *c, bool may_all)
{
    struct buf out = {0};

    if (is_full(c))
        return;
    if (c->ss->conf->log_connections)
        CLIENT_LOG(c, LVL_LOG, "user \"%s\" entered pgpool's own database to %s", c->pool->names,
            may_all ? "administer" : "look");
    client_console(c)->tx = 'I';
    client_console(c)->right = may_all ? CONSOLE_MAY_ALL : CONSOLE_MAY_LOOK;
    client_login_tell_ok(c);
    put_parameters(c, may_all, &out);
    c->phase = CL_ACTIVE;
    client_set_timer(c, 0);
    client_row_console(c, may_all); /* DRAIN does not wait for who may all */
    client_row_put_key(c, &out);
    wire_put_ready(&out, 'I');
    client_login_free(c);
    client_note_idle(c);
    client_send(c, &out);
    client_unpark(c);
}

static void console_free(struct client *c)
{
    struct client_console *console = client_console(c);

    c->rare->console = NULL;
    c->kind = &c->ss->kinds->relayed;
    if (console->right != CONSOLE_NOT_IN)
        session_admin_sub(c->ss->shared, c->ss->env->ordinal);
    mem_free(console);
}

/* ---- commands ---- */

/* Prepares a command. Who may only look sees what an administrator sees. */
static int console_prepare(
    const struct client *c, const struct admin_cmd *cmd, struct admin_sources *src, struct err *err)
{
    bool is_end = cmd->kind == ADMIN_KIND_COMMIT || cmd->kind == ADMIN_KIND_ROLLBACK;

    src->is_operator =
        client_console(c)->right == CONSOLE_MAY_ALL || cmd->kind == ADMIN_KIND_REPORT;
    src->balance_node = -1;
    src->explain = NULL;
    src->mode = NULL;
    if (client_console(c)->tx != 'E' || is_end)
        return 0;
    admin_refuse_aborted(err, slice_of(NULL, 0));
    return -1;
}

static void console_note(struct client *c, const struct admin_cmd *cmd, struct admin_result *res)
{
    struct client_console *console = client_console(c);

    if (cmd == NULL && console->tx == 'T')
        console->tx = 'E';
    if (cmd != NULL && cmd->kind == ADMIN_KIND_BEGIN)
        console->tx = 'T';
    if (cmd == NULL || (cmd->kind != ADMIN_KIND_COMMIT && cmd->kind != ADMIN_KIND_ROLLBACK))
        return;
    if (console->tx == 'E')
        res->tag = "ROLLBACK";
    console->tx = 'I';
}

/* ---- messages ---- */

/* A statement or portal that is not there, and what cannot be had here. */
static void console_fail(struct client *c, char type)
{
    struct buf out = {0};
    struct err err;

    err_clear(&err);
    if (type == FE_EXECUTE)
        err_set(&err, "34000", "portal does not exist");
    else if (type == FE_FUNCTION_CALL)
        err_set(&err, "0A000", "there are no functions in pgpool's own database");
    else
        err_set(&err, "26000", "prepared statement does not exist");
    console_note(c, NULL, NULL);
    wire_put_err(&out, &err);
    if (type == FE_FUNCTION_CALL)
        wire_put_ready(&out, client_console(c)->tx);
    else
        c->local_part = LOCAL_PART_FAILED;
    client_send(c, &out);
}

/* What client_local.c has no answer to. */
static void console_rest(struct client *c, char type)
{
    switch (type) {
    case FE_SYNC:
        client_say_ready(c, client_console(c)->tx);
        break;
    case FE_FLUSH:
        break;
    case FE_CLOSE:
        client_say_empty(c, BE_CLOSE_COMPLETE);
        break;
    default:
        console_fail(c, type);
        break;
    }
}

/* False: it has to wait for the message before. */
static bool console_message(struct client *c, char type, struct slice body)
{
    enum local_verdict v = LOCAL_NO;

    switch (type) {
    case FE_QUERY:
        if (c->local_part == LOCAL_PART_FAILED)
            return true;
        if (body.n > 0 && body.p[body.n - 1] == '\0')
            body.n--;
        return client_local_query(c, body) != LOCAL_PARK;
    case FE_PARSE:
    case FE_BIND:
    case FE_DESCRIBE:
    case FE_EXECUTE:
    case FE_CLOSE:
    case FE_FLUSH:
    case FE_SYNC:
        if (client_local(c) != NULL || type == FE_PARSE || type == FE_SYNC ||
            c->local_part == LOCAL_PART_FAILED)
            v = client_local_extended(c, type, body);
        break;
    case FE_FUNCTION_CALL:
        break;
    case FE_COPY_DATA:
    case FE_COPY_DONE:
    case FE_COPY_FAIL:
        return true; /* there is no COPY: ignored, as by a server */
    default:
        client_end_text(c, "08P01", "invalid frontend message type %d", (unsigned char)type);
        return true;
    }
    if (v == LOCAL_NO)
        console_rest(c, type);
    return v != LOCAL_PARK;
}

static void console_park(struct client *c, const char *p, const char *end)
{
    client_park(c, slice_of(p, (size_t)(end - p)));
    if (stream_is_tls(&c->stream))
        stream_pause(&c->stream);
}

void console_feed(struct client *c, const char *p, const char *end)
{
    size_t bytes;

    while (end - p >= PROTO_HEADER_BYTES && c->phase == CL_ACTIVE) {
        bytes = message_bytes(p);
        if (!message_may_be(bytes) || bytes > CLIENT_COLLECT_MAX) {
            client_end_text(c, "08P01", "invalid message length");
            return;
        }
        if ((size_t)(end - p) < bytes)
            break;
        if (p[0] == FE_TERMINATE) {
            client_say_goodbye(c);
            return;
        }
        if (!console_message(c, p[0], message_body(slice_of(p, bytes)))) {
            console_park(c, p, end);
            return;
        }
        p += bytes;
        if (client_hold(c)) {
            if (p < end)
                console_park(c, p, end);
            return;
        }
    }
    if (p < end)
        buf_put(&c->carry, p, (size_t)(end - p));
}

static const struct console_ops ops = {
    .take = console_take,
    .enter = console_enter,
    .prepare = console_prepare,
    .note = console_note,
    .free = console_free,
};

void sessions_offer_console(struct sessions *ss)
{
    ss->console = &ops;
}
