/* SPDX-License-Identifier: PostgreSQL
 * console_commands.c: SHOW POOL_... and PGPOOL ... in the simple and the extended protocol, also
 * when the server is busy or gone. Runs in: workers. */
#include "config.h"

#include "config/conf.h"
#include "config/conf_param.h"
#include "session/caching.h"
#include "session/session.h"
#include "wire/errmsg.h"
#include "wire/reader.h"
#include "wire/writer.h"

#include "console_int.h"

/* True when pgpool answers a text. In the virtual database that is everything. */
static bool recognise(const struct client *c, struct slice sql, struct admin_cmd *cmd)
{
    if (!console_is_alone(c))
        return admin_recognise(sql, cmd);
    admin_recognise_alone(sql, cmd);
    return true;
}

/* ---- answers ---- */

static enum local_verdict tell_empty(struct client *c, char type)
{
    struct buf out = {0};

    wire_put_empty(&out, type);
    return console_tell(c, &out);
}

static enum local_verdict fail_full(struct client *c)
{
    struct err err;

    err_clear(&err);
    err_set(&err, "53400", "too many prepared statements and portals of pgpool's own commands");
    return console_fail(c, &err);
}

/* ---- a command is run ---- */

static bool is_told_notices(const struct client *c)
{
    return log_level_reaches_client(LVL_NOTICE, client_conf(c)->client_min_messages);
}

/* On failure *err is set. */
static int run(struct client *c, struct slice sql, struct admin_result *res, struct err *err)
{
    struct admin_sources src;
    struct admin_cmd cmd;
    bool is_alone = console_is_alone(c);

    if (!is_alone && client_tx_status(c) == 'E') {
        errmsg_refuse_aborted(err, sql);
        return -1;
    }
    if (!recognise(c, sql, &cmd)) {
        err_set(err, "XX000", "internal error: a command is not recognised any more");
        return -1;
    }
    console_sources(c, &src);
    if (is_alone && alone_prepare(c, &cmd, &src, err) == -1)
        return -1;
    if (admin_run(&cmd, &src, res, err) == -1)
        return -1;
    console_note(c, &cmd, res);
    if (!is_told_notices(c))
        res->notices = NULL;
    return 0;
}

/* EXPLAIN has questions to ask first. */
static bool must_ask(struct client *c, const struct admin_cmd *cmd)
{
    return cmd->kind == ADMIN_KIND_EXPLAIN && client_explain_asks(c, cmd->value);
}

/* A portal that has not run. */
static bool portal_must_ask(struct client *c, const struct console_object *p)
{
    struct admin_cmd cmd;

    return !p->has_run && recognise(c, object_sql(p), &cmd) && must_ask(c, &cmd);
}

static bool is_waiting(const struct client *c)
{
    const struct console *console = client_console(c);

    return console != NULL && console->wait != NULL;
}

static enum local_verdict answer_query(struct client *c, struct slice sql)
{
    struct admin_result res = {0};
    struct buf out = {0};
    struct err err;

    if (!is_waiting(c))
        client_note_local(c, sql);
    err_clear(&err);
    if (run(c, sql, &res, &err) == -1) {
        console_put_failure(c, &err, &out);
    } else if (res.is_waiting) {
        admin_result_fini(&res);
        return LOCAL_PARK;
    } else {
        admin_encode(&res, &out);
    }
    wire_put_ready(&out, client_tx_status(c));
    admin_result_fini(&res);
    client_note_idle(c);
    return console_tell(c, &out);
}

enum local_verdict console_query(struct client *c, struct slice sql)
{
    struct admin_cmd cmd;

    if (!recognise(c, sql, &cmd))
        return kill_query(c, sql);
    if (!client_may_answer(c))
        return LOCAL_PARK;
    if (client_is_skipped(c))
        return LOCAL_DONE;
    return must_ask(c, &cmd) ? LOCAL_PARK : answer_query(c, sql);
}

/* ---- the extended protocol ---- */

static enum local_verdict on_parse(struct client *c, struct wire_reader *r)
{
    struct slice name = wire_get_cstr(r);
    struct slice sql = wire_get_cstr(r);
    struct console_object *s = object_find(c, 'S', name);
    struct admin_cmd cmd;

    if (r->bad)
        return LOCAL_NO;
    if (!recognise(c, sql, &cmd)) {
        /* The server's statement of this name takes the place of ours. */
        if (s != NULL && (name.n == 0 || s->text == NULL))
            object_forget(c, s);
        kill_parse(c, name, sql);
        return LOCAL_NO;
    }
    if (!client_take_part(c))
        return LOCAL_PARK;
    object_forget(c, s);
    if (!object_has_room(c))
        return fail_full(c);
    (void)object_add(c, 'S', name, sql, NULL);
    return tell_empty(c, BE_PARSE_COMPLETE);
}

static enum local_verdict on_bind(struct client *c, struct wire_reader *r)
{
    struct slice portal = wire_get_cstr(r);
    struct slice name = wire_get_cstr(r);
    const struct console_object *s = object_find(c, 'S', name);
    struct console_object *p = object_find(c, 'P', portal);
    struct admin_kill k = {0};

    if (r->bad)
        return LOCAL_NO;
    if (s == NULL || (s->text == NULL && !kill_bind(c, s, r, &k))) {
        object_forget(c, p);
        return LOCAL_NO;
    }
    if (!client_take_part(c))
        return LOCAL_PARK;
    object_forget(c, p);
    if (!object_has_room(c))
        return fail_full(c);
    (void)object_add(c, 'P', portal, object_sql(s), &k);
    return tell_empty(c, BE_BIND_COMPLETE);
}

/* The statement or portal that a Describe or a Close names; NULL: none of ours. */
static struct console_object *named(const struct client *c, struct wire_reader *r)
{
    char what = (char)wire_get_u8(r);
    struct slice name = wire_get_cstr(r);

    return r->bad || (what != 'S' && what != 'P') ? NULL : object_find(c, what, name);
}

static enum local_verdict on_describe(struct client *c, struct wire_reader *r)
{
    const struct console_object *o = named(c, r);
    struct admin_cmd cmd;
    struct err err;
    struct buf out = {0};
    uint32_t at;

    if (o == NULL || (o->what == 'S' && o->text == NULL))
        return LOCAL_NO;
    if (!client_take_part(c))
        return LOCAL_PARK;
    if (o->text == NULL) {
        admin_kill_put_columns(&o->kill, &out);
        return console_tell(c, &out);
    }
    err_clear(&err);
    (void)recognise(c, object_sql(o), &cmd);
    if (o->what == 'S') {
        at = wire_begin(&out, BE_PARAMETER_DESCRIPTION);
        buf_put_u16(&out, 0);
        wire_end(&out, at);
    }
    if (admin_encode_describe(&cmd, &out, &err) == -1) {
        buf_free(&out);
        return console_fail(c, &err);
    }
    return console_tell(c, &out);
}

static enum local_verdict on_execute(struct client *c, struct wire_reader *r)
{
    struct slice name = wire_get_cstr(r);
    uint32_t max_rows = wire_get_u32(r);
    struct console_object *p = object_find(c, 'P', name);
    struct err err;
    struct buf out = {0};

    if (r->bad || p == NULL)
        return LOCAL_NO;
    if (p->text == NULL)
        return kill_execute(c, p);
    if (!client_may_answer(c) || portal_must_ask(c, p) || !client_take_part(c))
        return LOCAL_PARK;
    err_clear(&err);
    if (!p->has_run) {
        if (run(c, object_sql(p), &p->result, &err) == -1)
            return console_fail(c, &err);
        if (p->result.is_waiting) {
            admin_result_fini(&p->result);
            return LOCAL_PARK;
        }
        p->has_run = true;
        p->cursor.next = p->result.rows;
    }
    admin_encode_execute(&p->result, &p->cursor, max_rows, &out);
    return console_tell(c, &out);
}

static enum local_verdict on_close(struct client *c, struct wire_reader *r)
{
    struct console_object *o = named(c, r);

    if (o == NULL)
        return LOCAL_NO;
    if (o->what == 'S' && o->text == NULL) {
        object_forget(c, o);
        return LOCAL_NO; /* the server has it, too */
    }
    if (!client_take_part(c))
        return LOCAL_PARK;
    object_forget(c, o);
    return tell_empty(c, BE_CLOSE_COMPLETE);
}

enum local_verdict console_message(struct client *c, char type, struct slice body)
{
    struct wire_reader r;

    wire_reader_init(&r, body);
    switch (type) {
    case FE_PARSE:
        return on_parse(c, &r);
    case FE_BIND:
        return on_bind(c, &r);
    case FE_DESCRIBE:
        return on_describe(c, &r);
    case FE_EXECUTE:
        return on_execute(c, &r);
    case FE_CLOSE:
        return on_close(c, &r);
    default:
        return LOCAL_NO;
    }
}
