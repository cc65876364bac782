/* SPDX-License-Identifier: PostgreSQL
 * console_alone.c: a session in the virtual database, behind which no server stands: somebody can
 * always look. Commands are those of any session (console_commands.c); what is different is that
 * nothing is ever passed on. Runs in: workers. Its clients take nothing of any limit but
 * reserved_admin. Must never: wait for a server, or count as one of the clients. */
#include "config.h"

#include "backend/pool.h"
#include "base/log.h"
#include "config/conf.h"
#include "known/session_shared.h"
#include "session/session.h"
#include "wire/errmsg.h"
#include "wire/writer.h"

#include "console_int.h"

/* ---- its beginning and its end ---- */

static void put_parameters(
    const struct client *c, bool may_all, struct slice application, struct buf *out)
{
    const struct admin_parameter *p;
    unsigned n;
    unsigned i;

    p = admin_alone_parameters(&n);
    for (i = 0; i < n; i++)
        if (p[i].is_reported)
            wire_put_parameter_status(out, slice_of_str(p[i].name), slice_of_str(p[i].value));
    wire_put_parameter_status(
        out, slice_of_str("is_superuser"), slice_of_str(may_all ? "on" : "off"));
    wire_put_parameter_status(
        out, slice_of_str("session_authorization"), pool_user(client_pool(c)));
    wire_put_parameter_status(out, slice_of_str("application_name"),
        application.p == NULL ? slice_of("", 0) : application);
}

static int refuse_full(const struct client *c, const struct conf *conf, struct err *err)
{
    err_set_fatal(
        err, "53300", "too many clients of database \"%s\"", pool_database(client_pool(c)).p);
    err_hint(
        err, "Close others, or use an SQL session of another database, which knows SHOW, too.");
    err_detail(err, "reserved_admin is %d.", conf->reserved_admin);
    return -1;
}

int alone_enter(
    struct client *c, bool may_all, struct slice application, struct buf *out, struct err *err)
{
    struct sessions *ss = client_sessions(c);
    struct console *console;

    if (!session_admin_add(ss->shared, ss->env->ordinal, ss->conf->reserved_admin))
        return refuse_full(c, ss->conf, err);
    if (ss->conf->log_connections)
        CLIENT_LOG(c, LVL_LOG, "user \"%s\" entered pgpool's own database to %s",
            client_pool(c)->names, may_all ? "administer" : "look");
    console = console_of(c);
    console->tx = 'I';
    console->right = may_all ? CONSOLE_MAY_ALL : CONSOLE_MAY_LOOK;
    put_parameters(c, may_all, application, out);
    return 0;
}

void alone_leave(struct client *c)
{
    const struct sessions *ss = client_sessions(c);

    if (console_is_alone(c))
        session_admin_sub(ss->shared, ss->env->ordinal);
}

/* ---- commands ---- */

char alone_tx_status(const struct client *c)
{
    return client_console(c) == NULL ? 'I' : client_console(c)->tx;
}

int alone_prepare(
    const struct client *c, const struct admin_cmd *cmd, struct admin_sources *src, struct err *err)
{
    const struct console *console = client_console(c);

    src->is_operator = console->right == CONSOLE_MAY_ALL || cmd->kind == ADMIN_KIND_REPORT;
    src->balance_node = -1;
    src->explain = NULL;
    src->mode = NULL;
    if (console->tx != 'E' || console_ends_tx(cmd))
        return 0;
    errmsg_refuse_aborted(err, slice_of(NULL, 0));
    return -1;
}

/* ---- messages ---- */

static enum feed_step tell(struct client *c, struct buf *out)
{
    client_send(c, out);
    return FEED_LOCAL;
}

/* A statement or portal that is not there, and what cannot be had here. */
static enum feed_step refuse(struct client *c, char type)
{
    struct buf out = {0};
    struct err err;

    err_clear(&err);
    if (type == FE_FUNCTION_CALL) {
        err_set(&err, "0A000", "there are no functions in pgpool's own database");
        console_put_failure(c, &err, &out);
        wire_put_ready(&out, alone_tx_status(c));
        return tell(c, &out);
    }
    if (type == FE_EXECUTE)
        err_set(&err, "34000", "portal does not exist");
    else
        err_set(&err, "26000", "prepared statement does not exist");
    (void)console_fail(c, &err);
    return FEED_LOCAL;
}

/* What console_commands.c has no answer to. */
static enum feed_step answer_rest(struct client *c, char type)
{
    struct buf out = {0};

    switch (type) {
    case FE_SYNC:
        wire_put_ready(&out, alone_tx_status(c));
        return tell(c, &out);
    case FE_FLUSH:
        return FEED_LOCAL;
    case FE_CLOSE:
        wire_put_empty(&out, BE_CLOSE_COMPLETE);
        return tell(c, &out);
    default:
        return refuse(c, type);
    }
}

static enum feed_step step_of(struct client *c, char type, enum local_verdict v)
{
    if (v == LOCAL_NO)
        return answer_rest(c, type);
    return v == LOCAL_DONE ? FEED_LOCAL : FEED_PARK;
}

enum feed_step alone_message(struct client *c, char type, struct slice body, bool is_whole)
{
    if (type == FE_COPY_DATA || type == FE_COPY_DONE || type == FE_COPY_FAIL)
        return FEED_SKIP; /* there is no COPY: ignored, as by a server */
    if (!is_whole) {
        client_end_text(c, "08P01", "invalid message length");
        return FEED_STOP;
    }
    switch (type) {
    case FE_QUERY:
        if (body.n > 0 && body.p[body.n - 1] == '\0')
            body.n--;
        return step_of(c, type, client_local_query(c, body));
    case FE_PARSE:
    case FE_BIND:
    case FE_DESCRIBE:
    case FE_EXECUTE:
    case FE_CLOSE:
    case FE_FLUSH:
    case FE_SYNC:
        return step_of(c, type, client_local_extended(c, type, body));
    case FE_FUNCTION_CALL:
        return answer_rest(c, type);
    default:
        client_end_text(c, "08P01", "invalid frontend message type %d", (unsigned char)type);
        return FEED_STOP;
    }
}
