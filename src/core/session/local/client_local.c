/* SPDX-License-Identifier: PostgreSQL
 * client_local.c: SHOW POOL_... and PGPOOL ... answered here, in the simple and the extended
 * protocol, also when the server is busy or gone. In the extended protocol our answers take their
 * place in the order of replies: while the server owes any, the input waits. A Sync is answered
 * here only when nothing of its sequence went to the server. */
#include "config.h"

#include <string.h>

#include "admin/admin.h"
#include "admin/kill.h"
#include "base/hot.h"
#include "base/list.h"
#include "base/mem.h"
#include "config/conf.h"
#include "config/conf_param.h"
#include "ipc/orders.h"
#include "wire/reader.h"
#include "wire/writer.h"

#include "exchange/exchange_mode_int.h"
#include "client/client_orders_int.h"
#include "console_int.h"
#include "exchange/exchange_kill_int.h"

#define LOCAL_MAX_OBJECTS 64

/* A prepared statement of ours, or a portal of one, whose answer is made at the first Execute. */
struct local_object {
    struct list node;
    char what; /* 'S', 'P' */
    bool has_run;
    char *name;
    char *sql; /* NULL: it is the server's, and `kill` */
    size_t sql_len;
    struct admin_kill kill;
    struct admin_result result;
    struct admin_cursor cursor;
};

struct client_local {
    struct list objects;
    unsigned nobjects;
};

HOT bool client_local_is_likely(struct slice sql)
{
    const char *p = sql.p;
    const char *end = p + sql.n;
    char c;

    while (p < end && (*p == ' ' || *p == '\n' || *p == '\t' || *p == '\r'))
        p++;
    if (end - p < 6)
        return false;
    c = (char)(p[1] | 0x20);
    switch (*p | 0x20) {
    case 's':
        return c == 'h' || (c == 'e' && (p[2] | 0x20) == 't');
    case 'r':
        return c == 'e' && (p[2] | 0x20) == 's';
    case 'p':
        return c == 'g';
    case '/' | 0x20:
    case '-' | 0x20:
        return true;
    default:
        return false;
    }
}

/* True when pgpool answers a text. In the virtual database that is everything. */
static bool local_recognise(const struct client *c, struct slice sql, struct admin_cmd *cmd)
{
    if (client_console(c) == NULL)
        return admin_recognise(sql, cmd);
    admin_recognise_alone(sql, cmd);
    return true;
}

static void local_sources(struct client *c, struct admin_sources *src)
{
    struct sessions *ss = c->ss;

    memset(src, 0, sizeof *src);
    src->gen = ss->gen;
    src->ov = &client_rare(c)->override;
    src->shm = ss->env->shm;
    src->first_worker_slot = ss->env->first_worker_slot;
    src->now_us = backend_wall_us(&ss->be);
    src->user = pool_user(c->pool);
    src->database = pool_database(c->pool);
    /* A superuser of another server is nobody here. */
    src->is_operator = pool_is_superuser(c->pool) && client_orders_place(c) == ORDERS_OUR_SERVERS;
    src->balance_node = c->pool->cluster_node;
    sessions_fill_node_source(ss, src);
    src->explain = exchange_explain;
    src->explain_ctx = c;
    src->cache_delete = ss->results == NULL ? NULL : ss->results->delete;
    src->cache_ctx = c;
    src->order = client_orders_run;
    src->order_ctx = c;
    src->mode = exchange_mode_run;
    src->mode_ctx = c;
}

/* Runs one command; on failure *err is set. */
static int local_run(struct client *c, struct slice sql, struct admin_result *res, struct err *err)
{
    struct admin_sources src;
    struct admin_cmd cmd;
    int result;

    if (client_console(c) == NULL && c->kind->tx_status(c) == 'E') {
        admin_refuse_aborted(err, sql);
        return -1;
    }
    if (!local_recognise(c, sql, &cmd)) {
        err_set(err, "XX000", "internal error: a command is not recognised any more");
        return -1;
    }
    local_sources(c, &src);
    if (client_console(c) != NULL && c->ss->console->prepare(c, &cmd, &src, err) == -1)
        return -1;
    result = admin_run(&cmd, &src, res, err);
    if (client_console(c) != NULL && result == 0)
        c->ss->console->note(c, &cmd, res);
    client_rare_trim(c); /* SET has settings to put there, mostly it is not SET */
    if (result == -1)
        return -1;
    if (!log_level_reaches_client(
            LVL_NOTICE, conf_session_of(c->ss->gen, client_override(c))->client_min_messages))
        res->notices = NULL;
    return 0;
}

static void local_note_error(struct client *c)
{
    if (client_console(c) != NULL)
        c->ss->console->note(c, NULL, NULL);
}

/* A server that skips up to the next Sync owes nothing before it. */
static bool server_comes_first(const struct client *c)
{
    enum client_pace pace = c->kind->pace(c); /* EXPLAIN waits, to ask */

    return pace == PACE_RUNS || pace == PACE_REPAIRS || c->target != c->link ||
           (c->link != NULL && (c->link->expect.len > 0 || c->link->body_left > 0));
}

/* False: it is our turn to answer. What the server said before in this sequence is told now, even
 * if it was kept back because the sequence might be sent again: behind our answer it never is. */
static bool local_must_wait(struct client *c)
{
    if (server_comes_first(c))
        return true;
    if (c->server_batch)
        c->kind->stop_keeping(c);
    return false;
}

/* EXPLAIN has questions to ask first. */
static bool local_must_ask(struct client *c, struct slice sql)
{
    struct admin_cmd cmd;

    return admin_recognise(sql, &cmd) && cmd.kind == ADMIN_KIND_EXPLAIN &&
           c->kind->explain_asks(c, cmd.value);
}

/* A client that has this number; not one of a server where the session's means another. */
static bool kill_find(
    struct client *c, const struct admin_kill *k, struct client_row *row, struct row_names *names)
{
    if (admin_kill_find(k, c->ss->env->shm, c->pool->cluster_node, row, names))
        return true;
    if (c->kind->errand(c) != NULL && !phase_is_judging((enum phase)c->sstate->phase))
        exchange_kill_forget(c); /* else its answer is on its way */
    return false;
}

/* The order is carried out. */
static void kill_run(struct client *c, const struct admin_kill *k, const struct client_row *row)
{
    struct order_mail m = {.kind = ORDER_KILL_CLIENT, .client_id = row->id};

    if (k->is_cancel)
        client_cancel_request(
            c->ss, k->pid, slice_of((const char *)row->secret, row->secret_len), -1);
    else
        orders_tell_worker(c->ss->env, row->worker, &m);
}

static enum local_verdict kill_query(struct client *c, struct slice sql)
{
    struct client_row row;
    struct row_names names;
    struct admin_kill k;
    struct buf out = {0};
    struct err err;

    if (!admin_kill_read(sql, &k) || k.is_bound || !c->kind->orders(c) ||
        !kill_find(c, &k, &row, &names))
        return LOCAL_NO; /* the server says that it has no such process */
    if (local_must_wait(c))
        return LOCAL_PARK;
    if (!exchange_kill_is_asking(c))
        client_note_local(c, sql);
    if (c->kind->tx_status(c) == 'E') {
        admin_refuse_aborted(&err, sql);
        wire_put_err(&out, &err);
    } else if (!exchange_kill_may(c, &k, row_user(&names))) {
        return LOCAL_PARK;
    } else {
        kill_run(c, &k, &row);
        admin_kill_put_columns(&k, &out);
        admin_kill_put_row(&k, true, &out);
    }
    wire_put_ready(&out, c->kind->tx_status(c));
    client_note_idle(c);
    client_send(c, &out);
    return LOCAL_DONE;
}

enum local_verdict client_local_query(struct client *c, struct slice sql)
{
    struct admin_result res = {0};
    struct admin_cmd cmd;
    struct err err;
    struct buf out = {0};

    if (!local_recognise(c, sql, &cmd))
        return kill_query(c, sql);
    if (local_must_wait(c))
        return LOCAL_PARK;
    if (c->link != NULL && c->link->expect.skipping)
        return LOCAL_DONE; /* after an error the server would skip it, too */
    if (cmd.kind == ADMIN_KIND_EXPLAIN && local_must_ask(c, sql))
        return LOCAL_PARK;
    if (client_orders(c) == NULL)
        client_note_local(c, sql);
    err_clear(&err);
    if (local_run(c, sql, &res, &err) == -1) {
        local_note_error(c);
        wire_put_err(&out, &err);
    } else if (res.is_waiting) {
        admin_result_fini(&res);
        return LOCAL_PARK;
    } else {
        admin_encode(&res, &out);
    }
    wire_put_ready(&out, c->kind->tx_status(c));
    admin_result_fini(&res);
    client_note_idle(c);
    client_send(c, &out);
    return LOCAL_DONE;
}

static struct local_object *find(const struct client *c, char what, struct slice name)
{
    struct local_object *o;
    struct list *n;

    LIST_FOREACH(n, &client_local(c)->objects)
    {
        o = LIST_ENTRY(n, struct local_object, node);
        if (o->what == what && slice_eq_str(name, o->name))
            return o;
    }
    return NULL;
}

/* NULL is harmless. */
static void forget(struct client_local *l, struct local_object *o)
{
    if (o == NULL)
        return;
    list_remove(&o->node);
    l->nobjects--;
    admin_result_fini(&o->result);
    mem_free(o->name);
    mem_free(o->sql);
    mem_free(o);
}

/* A portal ends with its transaction. */
static void forget_portals(struct client_local *l)
{
    struct list *n;
    struct list *tmp;

    LIST_FOREACH_SAFE(n, tmp, &l->objects)
    if (LIST_ENTRY(n, struct local_object, node)->what == 'P')
        forget(l, LIST_ENTRY(n, struct local_object, node));
}

/* What the server did in front of it in the same sequence would be committed by its Sync: the
 * server is made to fail, too. A transaction that the client began is left as it is, as by a simple
 * query.
 */
static void fail_sequence(struct client *c)
{
    struct buf out = {0};

    if (!c->server_batch || c->link == NULL || c->target != c->link || c->link->tx_status != 'I' ||
        c->link->expect.skipping)
        return;
    wire_put_parse(&out, slice_of_str(REFUSED_NAME), slice_of_str(refused_query));
    link_expect(c->link, OP_PARSE | OP_SWALLOW);
    (void)link_send(c->link, out.data, out.len);
    buf_free(&out);
}

/* An error in the extended protocol: everything up to the next Sync is skipped. */
static void local_fail(struct client *c, const struct err *err)
{
    struct buf out = {0};

    c->local_part = LOCAL_PART_FAILED;
    local_note_error(c);
    wire_put_err(&out, err);
    client_send(c, &out);
    fail_sequence(c);
}

static bool local_is_full(struct client *c)
{
    struct err err;

    if (client_local(c)->nobjects < LOCAL_MAX_OBJECTS)
        return false;
    err_clear(&err);
    err_set(&err, "53400", "too many prepared statements and portals of pgpool's own commands");
    local_fail(c, &err);
    return true;
}

static struct client_local *local_open(struct client *c)
{
    struct client_local *l = client_local(c);

    if (l != NULL)
        return l;
    l = mem_alloc_zero(sizeof *l);
    list_init(&l->objects);
    client_rare(c)->local = l;
    return l;
}

/* `sql` may be NULL: see struct local_object. */
static struct local_object *add(
    struct client *c, char what, struct slice name, const char *sql, size_t sql_len)
{
    struct local_object *o = mem_alloc_zero(sizeof *o);

    o->what = what;
    o->name = mem_strndup(name.p, name.n);
    o->sql = sql == NULL ? NULL : mem_strndup(sql, sql_len);
    o->sql_len = sql_len;
    list_push_back(&local_open(c)->objects, &o->node);
    client_local(c)->nobjects++;
    return o;
}

/* The server parses it, too: which process is meant is known with its Bind. */
static void kill_parse(struct client *c, struct slice name, struct slice sql)
{
    struct admin_kill k;

    if (!admin_kill_is_likely(sql) || !admin_kill_read(sql, &k) || !c->kind->orders(c) ||
        local_open(c)->nobjects >= LOCAL_MAX_OBJECTS)
        return;
    if (find(c, 'S', name) == NULL)
        add(c, 'S', name, NULL, 0)->kill = k;
}

static enum local_verdict local_parse(struct client *c, struct wire_reader *r)
{
    struct slice name = wire_get_cstr(r);
    struct slice sql = wire_get_cstr(r);
    struct local_object *s;
    struct admin_cmd cmd;

    if (r->bad)
        return LOCAL_NO;
    if ((client_console(c) == NULL && !client_local_is_likely(sql)) ||
        !local_recognise(c, sql, &cmd)) {
        /* The server's statement of this name takes the place of ours. */
        if (client_local(c) != NULL && (s = find(c, 'S', name)) != NULL &&
            (name.n == 0 || s->sql == NULL))
            forget(client_local(c), s);
        kill_parse(c, name, sql);
        return LOCAL_NO;
    }
    if (local_must_wait(c))
        return LOCAL_PARK;
    local_open(c);
    c->local_part = LOCAL_PART_SOME;
    forget(client_local(c), find(c, 'S', name));
    if (local_is_full(c))
        return LOCAL_DONE;
    (void)add(c, 'S', name, sql.p, sql.n);
    client_say_empty(c, BE_PARSE_COMPLETE);
    return LOCAL_DONE;
}

/* True when it is a client's number that is bound. */
static bool kill_bind(
    struct client *c, const struct local_object *s, struct wire_reader *r, struct admin_kill *k)
{
    struct client_row row;
    struct row_names names;

    *k = s->kill;
    return admin_kill_bind(k, r) && kill_find(c, k, &row, &names);
}

static enum local_verdict local_bind(struct client *c, struct wire_reader *r)
{
    struct slice portal = wire_get_cstr(r);
    struct slice name = wire_get_cstr(r);
    struct local_object *s = find(c, 'S', name);
    struct local_object *p = find(c, 'P', portal);
    struct admin_kill k = {0};

    if (r->bad)
        return LOCAL_NO;
    if (s == NULL || (s->sql == NULL && !kill_bind(c, s, r, &k))) {
        forget(client_local(c), p);
        return LOCAL_NO;
    }
    if (local_must_wait(c))
        return LOCAL_PARK;
    forget(client_local(c), p);
    c->local_part = LOCAL_PART_SOME;
    if (local_is_full(c))
        return LOCAL_DONE;
    add(c, 'P', portal, s->sql, s->sql_len)->kill = k;
    client_say_empty(c, BE_BIND_COMPLETE);
    return LOCAL_DONE;
}

static enum local_verdict local_describe(struct client *c, struct wire_reader *r)
{
    char what = (char)wire_get_u8(r);
    struct slice name = wire_get_cstr(r);
    struct local_object *s = what == 'S' ? find(c, what, name) : NULL;
    struct local_object *p = what == 'P' ? find(c, what, name) : NULL;
    struct admin_cmd cmd;
    struct err err;
    struct buf out = {0};

    if (r->bad || (p == NULL && (s == NULL || s->sql == NULL)))
        return LOCAL_NO;
    if (local_must_wait(c))
        return LOCAL_PARK;
    c->local_part = LOCAL_PART_SOME;
    if (p != NULL && p->sql == NULL) {
        admin_kill_put_columns(&p->kill, &out);
        client_send(c, &out);
        return LOCAL_DONE;
    }
    err_clear(&err);
    (void)local_recognise(
        c, s != NULL ? slice_of(s->sql, s->sql_len) : slice_of(p->sql, p->sql_len), &cmd);
    if (s != NULL) {
        uint32_t at = wire_begin(&out, BE_PARAMETER_DESCRIPTION);

        buf_put_u16(&out, 0);
        wire_end(&out, at);
    }
    if (admin_encode_describe(&cmd, &out, &err) == -1) {
        buf_free(&out);
        local_fail(c, &err);
        return LOCAL_DONE;
    }
    client_send(c, &out);
    return LOCAL_DONE;
}

static enum local_verdict kill_execute(struct client *c, struct local_object *p)
{
    struct client_row row;
    struct row_names names;
    struct buf out = {0};
    struct err err;
    bool is_there;

    if (local_must_wait(c))
        return LOCAL_PARK;
    c->local_part = LOCAL_PART_SOME;
    is_there = kill_find(c, &p->kill, &row, &names);
    if (p->has_run) {
        wire_put_command_complete(&out, "SELECT 0");
    } else if (c->kind->tx_status(c) == 'E') {
        admin_refuse_aborted(&err, slice_of(NULL, 0));
        local_fail(c, &err);
        return LOCAL_DONE;
    } else if (is_there && !exchange_kill_may(c, &p->kill, row_user(&names))) {
        return LOCAL_PARK;
    } else {
        if (is_there)
            kill_run(c, &p->kill, &row);
        admin_kill_put_row(&p->kill, is_there, &out);
    }
    p->has_run = true;
    client_send(c, &out);
    return LOCAL_DONE;
}

static enum local_verdict local_execute(struct client *c, struct wire_reader *r)
{
    struct slice name = wire_get_cstr(r);
    uint32_t max_rows = wire_get_u32(r);
    struct local_object *p = find(c, 'P', name);
    struct err err;
    struct buf out = {0};

    if (r->bad || p == NULL)
        return LOCAL_NO;
    if (p->sql == NULL)
        return kill_execute(c, p);
    if (local_must_wait(c) || (!p->has_run && local_must_ask(c, slice_of(p->sql, p->sql_len))))
        return LOCAL_PARK;
    c->local_part = LOCAL_PART_SOME;
    err_clear(&err);
    if (!p->has_run) {
        if (local_run(c, slice_of(p->sql, p->sql_len), &p->result, &err) == -1) {
            local_fail(c, &err);
            return LOCAL_DONE;
        }
        if (p->result.is_waiting) {
            admin_result_fini(&p->result);
            return LOCAL_PARK;
        }
        p->has_run = true;
        p->cursor.next = p->result.rows;
    }
    admin_encode_execute(&p->result, &p->cursor, max_rows, &out);
    client_send(c, &out);
    return LOCAL_DONE;
}

static enum local_verdict local_close(struct client *c, struct wire_reader *r)
{
    char what = (char)wire_get_u8(r);
    struct slice name = wire_get_cstr(r);
    struct local_object *s = what == 'S' ? find(c, what, name) : NULL;
    struct local_object *p = what == 'P' ? find(c, what, name) : NULL;

    if (r->bad || (s == NULL && p == NULL))
        return LOCAL_NO;
    if (s != NULL && s->sql == NULL) {
        forget(client_local(c), s);
        return LOCAL_NO; /* the server has it, too */
    }
    if (local_must_wait(c))
        return LOCAL_PARK;
    c->local_part = LOCAL_PART_SOME;
    forget(client_local(c), s != NULL ? s : p);
    client_say_empty(c, BE_CLOSE_COMPLETE);
    return LOCAL_DONE;
}

/* The end of a sequence. */
static enum local_verdict local_sync(struct client *c)
{
    struct buf out = {0};

    if (c->local_part == LOCAL_PART_NONE)
        return LOCAL_NO;
    if (local_must_wait(c))
        return LOCAL_PARK;
    c->local_part = LOCAL_PART_NONE;
    if (c->kind->tx_status(c) == 'I' && client_local(c) != NULL)
        forget_portals(client_local(c));
    if (c->server_batch || (c->link != NULL && c->link->expect.skipping))
        return LOCAL_NO;
    wire_put_ready(&out, c->kind->tx_status(c));
    client_note_idle(c);
    client_send(c, &out);
    return LOCAL_DONE;
}

enum local_verdict client_local_extended(struct client *c, char type, struct slice body)
{
    struct wire_reader r;

    if (type == FE_SYNC)
        return local_sync(c);
    if (c->local_part == LOCAL_PART_FAILED)
        return LOCAL_DONE;
    if (c->link != NULL && c->link->expect.skipping)
        return LOCAL_NO;
    wire_reader_init(&r, body);
    switch (type) {
    case FE_PARSE:
        return local_parse(c, &r);
    case FE_BIND:
        return local_bind(c, &r);
    case FE_DESCRIBE:
        return local_describe(c, &r);
    case FE_EXECUTE:
        return local_execute(c, &r);
    case FE_CLOSE:
        return local_close(c, &r);
    case FE_FLUSH:
        return c->local_part != LOCAL_PART_NONE && !c->server_batch ? LOCAL_DONE : LOCAL_NO;
    default:
        return LOCAL_NO;
    }
}

void client_local_free(struct client *c)
{
    struct client_local *l = client_local(c);
    struct list *n;

    if (l == NULL)
        return;
    while ((n = list_first(&l->objects)) != NULL)
        forget(l, LIST_ENTRY(n, struct local_object, node));
    mem_free(l);
    c->rare->local = NULL;
}
