/* SPDX-License-Identifier: PostgreSQL
 * console_kill.c: pg_terminate_backend() and pg_cancel_backend() of the number that a client of
 * ours was told (admin/kill.h). Whether the session may is the server's to say. Runs in: workers.
 */
#include "config.h"

#include <stdio.h>

#include "backend/link.h"
#include "backend/pool.h"
#include "base/mem.h"
#include "ipc/orders.h"
#include "session/caching.h"
#include "session/session.h"
#include "wire/errmsg.h"
#include "wire/reader.h"
#include "wire/writer.h"

#include "console_int.h"

struct console_kill {
    struct admin_kill order;
    bool is_granted;
    char user[ROWS_NAME_BYTES]; /* of the client that is meant */
    struct err refusal;
};

/* ---- may it? ---- */

void kill_free(struct console *console)
{
    mem_free(console->kill);
    console->kill = NULL;
}

/* False: the server is being asked, and the client is to be parked. */
static bool kill_may(struct client *c, const struct admin_kill *k, struct slice user)
{
    struct console *console = console_of(c);
    enum judged judged = client_judged(c);

    if (judged == JUDGED_MAY && console->kill != NULL && console->kill->order.pid == k->pid) {
        client_judge_forget(c);
        return true;
    }
    if (judged != JUDGED_OWED) {
        kill_free(console);
        console->kill = mem_alloc_zero(sizeof *console->kill);
        console->kill->order = *k;
        snprintf(console->kill->user, sizeof console->kill->user, "%.*s", (int)user.n, user.p);
    }
    client_judge(c);
    return false;
}

void kill_question(struct client *c, struct buf *out)
{
    admin_kill_put_question(slice_of_str(client_console(c)->kill->user), out);
}

void kill_row(struct client *c, struct slice body)
{
    struct slice value;

    client_console(c)->kill->is_granted =
        wire_row_values(body, &value, 1) && slice_eq_str(value, "t");
}

void kill_refused(struct client *c, const struct errmsg *m)
{
    struct console_kill *k = client_console(c)->kill;
    struct slice version = paramset_get(&client_link(c)->reported, slice_of_str("server_version"));

    if (err_is_set(&k->refusal) || admin_kill_refused(&k->order, m, version, &k->refusal))
        return;
    errmsg_to_err(m, &k->refusal);
    k->refusal.severity = ERR_ERROR;
}

bool kill_judged(struct client *c, bool has_failed, struct err *why)
{
    const struct console_kill *k = client_console(c)->kill;

    *why = k->refusal;
    err_set(why, "XX000", "internal error: a question of pgpool's own has no answer");
    return k->is_granted && !has_failed;
}

/* ---- whose number is it? ---- */

/* A client that has this number; not one of a server where the session's means another. */
static bool kill_find(
    struct client *c, const struct admin_kill *k, struct client_row *row, struct row_names *names)
{
    if (admin_kill_find(k, client_sessions(c)->env->shm, client_pool(c)->cluster_node, row, names))
        return true;
    client_judge_forget(c);
    return false;
}

/* The order is carried out. */
static void kill_run(struct client *c, const struct admin_kill *k, const struct client_row *row)
{
    struct order_mail m = {.kind = ORDER_KILL_CLIENT, .client_id = row->id};
    struct sessions *ss = client_sessions(c);

    if (k->is_cancel)
        client_cancel_request(ss, k->pid, slice_of((const char *)row->secret, row->secret_len), -1);
    else
        orders_tell_worker(ss->env, row->worker, &m);
}

/* ---- messages ---- */

enum local_verdict kill_query(struct client *c, struct slice sql)
{
    struct client_row row;
    struct row_names names;
    struct admin_kill k;
    struct buf out = {0};
    struct err err;

    if (!admin_kill_read(sql, &k) || k.is_bound || client_judged(c) == JUDGED_NEVER ||
        !kill_find(c, &k, &row, &names))
        return LOCAL_NO; /* the server says that it has no such process */
    if (!client_may_answer(c))
        return LOCAL_PARK;
    if (client_judged(c) == JUDGED_NOT)
        client_note_local(c, sql);
    if (client_tx_status(c) == 'E') {
        errmsg_refuse_aborted(&err, sql);
        wire_put_err(&out, &err);
    } else if (!kill_may(c, &k, row_user(&names))) {
        return LOCAL_PARK;
    } else {
        kill_run(c, &k, &row);
        admin_kill_put_columns(&k, &out);
        admin_kill_put_row(&k, true, &out);
    }
    wire_put_ready(&out, client_tx_status(c));
    client_note_idle(c);
    return console_tell(c, &out);
}

void kill_parse(struct client *c, struct slice name, struct slice sql)
{
    struct admin_kill k;

    if (!client_local_is_likely(sql) || !admin_kill_read(sql, &k) ||
        client_judged(c) == JUDGED_NEVER || !object_has_room(c))
        return;
    if (object_find(c, 'S', name) == NULL)
        (void)object_add(c, 'S', name, slice_of(NULL, 0), &k);
}

bool kill_bind(
    struct client *c, const struct console_object *s, struct wire_reader *r, struct admin_kill *k)
{
    struct client_row row;
    struct row_names names;

    *k = s->kill;
    return admin_kill_bind(k, r) && kill_find(c, k, &row, &names);
}

enum local_verdict kill_execute(struct client *c, struct console_object *p)
{
    struct client_row row;
    struct row_names names;
    struct buf out = {0};
    struct err err;
    bool is_there;

    if (!client_take_part(c))
        return LOCAL_PARK;
    is_there = kill_find(c, &p->kill, &row, &names);
    if (p->has_run) {
        wire_put_command_complete(&out, "SELECT 0");
    } else if (client_tx_status(c) == 'E') {
        errmsg_refuse_aborted(&err, slice_of(NULL, 0));
        return console_fail(c, &err);
    } else if (is_there && !kill_may(c, &p->kill, row_user(&names))) {
        return LOCAL_PARK;
    } else {
        if (is_there)
            kill_run(c, &p->kill, &row);
        admin_kill_put_row(&p->kill, is_there, &out);
    }
    p->has_run = true;
    return console_tell(c, &out);
}
