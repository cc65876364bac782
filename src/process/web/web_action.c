/* SPDX-License-Identifier: PostgreSQL
 * web_action.c: what an operator orders in the console. Each order is handed to who carries it out,
 * and stands in SHOW POOL_EVENTS with who gave it.
 * Runs in: web. Nothing is changed here, and an answer waits for nobody: it says that the order was
 * taken; what came of it is seen in the events. */
#include "config.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "cluster/command.h"
#include "ipc/orders.h"
#include "ipc/stmtstats.h"
#include "process/common/role_rules.h"
#include "session/session.h"
#include "sys/clock.h"

#include "web_action.h"
#include "web_json.h"
#include "web_login.h"
#include "web_wait.h"

#define PREFIX         "/api/v1/do/"
#define STATUS_UNKNOWN 404
#define STATUS_REFUSED 409
#define NUMBER_BYTES   16

typedef int action_fn(const struct web_request *r, struct buf *said, struct err *err);

static void name_giver(const struct web_request *r, char out[VIEW_WHO_BYTES])
{
    char peer[64];

    web_login_peer(r, peer, sizeof peer);
    snprintf(out, VIEW_WHO_BYTES, "HTTP user %.24s, %.24s", r->who->user, peer);
}

static int post_to(struct web *w, enum proc_role role, enum mail_type type, const void *body,
    size_t len, struct err *err)
{
    struct proc_env *env = w->role.env;
    struct proc_row row;
    int slot;

    for (slot = 0; slot < proc_nslots(env->shm); slot++) {
        proc_row_copy(env->shm, slot, &row);
        if (row.pid != 0 && row.role == (int32_t)role &&
            mailbox_post(env->boxes, slot, type, body, len, -1) == 0)
            return 0;
    }
    err_set(err, "53000", "the process that does it could not be asked");
    err_hint(err, "Try again.");
    return -1;
}

int web_action_note(
    struct web *w, const char *name, const char *text, const char *who, struct err *err)
{
    struct view_event e = {.at_us = clock_wall_us(), .node = VIEW_NO_NODE};

    snprintf(e.name, sizeof e.name, "%s", name);
    snprintf(e.text, sizeof e.text, "%s", text);
    snprintf(e.who, sizeof e.who, "%s", who);
    log_at(LVL_LOG, "%s (%s)", text, e.who);
    return post_to(w, ROLE_MONITOR, MAIL_NOTE, &e, sizeof e, err);
}

/* What was done is done, and told in the log: when the monitor, which may begin anew just now, does
 * not hear of it, it is missing among the events. */
static int note(const struct web_request *r, const char *name, const char *text)
{
    char who[VIEW_WHO_BYTES];
    struct err ignored = {0};

    name_giver(r, who);
    (void)web_action_note(r->web, name, text, who, &ignored);
    return 0;
}

/* --- servers --- */

static int take_node(const struct web_request *r, struct err *err)
{
    char text[NUMBER_BYTES] = "";
    char *end = text;
    long id = -1;

    if (web_form_field(r->body, "node", text, sizeof text) && text[0] != '\0')
        id = strtol(text, &end, 10);
    if (*end == '\0' && id >= 0 && id < VIEW_MAX_NODES &&
        conf_has_node(conf_of(role_loop_gen(&r->web->role)), (int)id))
        return (int)id;
    err_set(err, "22023", "there is no such server");
    err_hint(err, "SHOW POOL_NODES lists them.");
    return -1;
}

static int order_node(const struct web_request *r, enum node_order order, struct err *err)
{
    struct node_command cmd = {.order = (uint8_t)order};

    cmd.node = take_node(r, err);
    if (cmd.node == -1)
        return -1;
    name_giver(r, cmd.who);
    (void)web_form_field(r->body, "why", cmd.why, sizeof cmd.why);
    return post_to(r->web, ROLE_MONITOR, MAIL_NODE_COMMAND, &cmd, sizeof cmd, err);
}

static int do_attach(const struct web_request *r, struct buf *said, struct err *err)
{
    return order_node(r, NODE_ATTACH, err);
}

static int do_detach(const struct web_request *r, struct buf *said, struct err *err)
{
    return order_node(r, NODE_DETACH, err);
}

/* A switchover: the server becomes the primary, and the others follow. */
static int do_promote(const struct web_request *r, struct buf *said, struct err *err)
{
    int node = take_node(r, err);

    (void)view_refresh(r->web->role.env->shm, &r->web->view);
    if (node >= 0 && r->web->view.primary == node) {
        err_set(err, "55000", "server %d is the primary already", node);
        return -1;
    }
    return node == -1 ? -1 : order_node(r, NODE_SWITCHOVER, err);
}

/* An online recovery: the server becomes a copy of the primary, by the scripts of the settings. */
static int do_recover(const struct web_request *r, struct buf *said, struct err *err)
{
    struct node_command cmd = {.node = take_node(r, err)};

    if (cmd.node == -1)
        return -1;
    (void)view_refresh(r->web->role.env->shm, &r->web->view);
    if (view_is_usable(&r->web->view, cmd.node)) {
        err_set(err, "55000", "server %d is in use", (int)cmd.node);
        err_hint(err, "Detach it first.");
        return -1;
    }
    name_giver(r, cmd.who);
    return post_to(r->web, ROLE_CONTROL, MAIL_RECOVERY_ORDER, &cmd, sizeof cmd, err);
}

/* --- clients --- */

static uint32_t take_client(const struct web_request *r)
{
    char text[NUMBER_BYTES] = "";
    char *end = text;
    unsigned long id = 0;

    if (web_form_field(r->body, "client", text, sizeof text) && text[0] >= '0' && text[0] <= '9')
        id = strtoul(text, &end, 10);
    return *end == '\0' && id <= UINT32_MAX ? (uint32_t)id : 0;
}

static int do_kill(const struct web_request *r, struct buf *said, struct err *err)
{
    const struct proc_env *env = r->web->role.env;
    const struct rows_header *rows = shm_get(env->shm, SHM_CLIENTS);
    struct order_mail m = {.kind = ORDER_KILL_CLIENT, .client_id = take_client(r)};
    struct client_row row;
    char text[VIEW_EVENT_TEXT_BYTES];
    int64_t i;

    for (i = 0; i < (int64_t)rows->capacity; i++) {
        if (client_row_at(rows, i)->id != m.client_id)
            continue;
        (void)client_row_copy(rows, i, &row, NULL);
        if (row.state != CLIENT_STATE_FREE && row.id == m.client_id)
            break;
    }
    if (m.client_id == 0 || i == (int64_t)rows->capacity) {
        err_set(err, "42704", "client %" PRIu32 " is not here any more", m.client_id);
        return -1;
    }
    orders_tell_worker(env, row.worker, &m);
    snprintf(text, sizeof text, "client %" PRIu32 " is sent away by an operator", m.client_id);
    return note(r, "kill", text);
}

static int do_cancel(const struct web_request *r, struct buf *said, struct err *err)
{
    uint32_t id = take_client(r);
    char text[VIEW_EVENT_TEXT_BYTES];

    if (session_cancel_client(r->web->role.env, id, err) == -1)
        return -1;
    snprintf(text, sizeof text, "what client %" PRIu32 " runs is cancelled by an operator", id);
    return note(r, "cancel", text);
}

/* --- pools --- */

/* Begins an order, which holds whoever goes; when it is complete stands among the events
 * (web_wait.c). */
static int begin_order(const struct web_request *r, unsigned flag, struct slice database,
    const struct orders_giver *giver, struct err *err)
{
    struct orders_pending pending = {.database = database, .flag = flag};
    struct proc_env *env = r->web->role.env;

    if (orders_begin(env, &pending, giver, err) == -1)
        return -1;
    if (flag == ORDER_PAUSE)
        orders_end_ticket(env->shm, database, pending.ticket);
    return 0;
}

enum pool_order { POOL_PAUSE, POOL_DRAIN, POOL_RESUME, POOL_RECONNECT };

/* An order about one database, or (without one) about all. The events name both. */
static int order_pools(const struct web_request *r, enum pool_order order, struct err *err)
{
    static const char *const names[] = {"pause", "drain", "resume", "reconnect"};
    struct proc_env *env = r->web->role.env;
    char database[ROWS_NAME_BYTES] = "";
    char who[VIEW_WHO_BYTES];
    struct orders_giver giver = {.who = who, .user = slice_of("", 0), .place = ORDERS_NO_SERVERS};
    char text[VIEW_EVENT_TEXT_BYTES];
    struct slice name;
    int rc;

    (void)web_form_field(r->body, "database", database, sizeof database);
    name = slice_of_str(database);
    name_giver(r, who);
    if (order == POOL_PAUSE || order == POOL_DRAIN)
        rc = begin_order(r, order == POOL_PAUSE ? ORDER_PAUSE : ORDER_DRAIN, name, &giver, err);
    else if (order == POOL_RESUME)
        rc = orders_resume(env, name, &giver, err);
    else
        rc = orders_reconnect(env, name, &giver, err);
    if (rc == -1)
        return -1;
    if (order == POOL_PAUSE || order == POOL_DRAIN)
        web_waits_add(r->web->waits, name, order == POOL_PAUSE ? ORDER_PAUSE : ORDER_DRAIN, who);
    snprintf(text, sizeof text, "%s of %s%s%s, as an operator ordered", names[order],
        name.n == 0 ? "all databases" : "database \"", database, name.n == 0 ? "" : "\"");
    return note(r, names[order], text);
}

static int do_pause(const struct web_request *r, struct buf *said, struct err *err)
{
    return order_pools(r, POOL_PAUSE, err);
}

static int do_drain(const struct web_request *r, struct buf *said, struct err *err)
{
    return order_pools(r, POOL_DRAIN, err);
}

static int do_resume(const struct web_request *r, struct buf *said, struct err *err)
{
    return order_pools(r, POOL_RESUME, err);
}

static int do_reconnect(const struct web_request *r, struct buf *said, struct err *err)
{
    return order_pools(r, POOL_RECONNECT, err);
}

/* --- statements --- */

static int do_forget_statements(const struct web_request *r, struct buf *said, struct err *err)
{
    stmtstats_reset(r->web->role.env->shm);
    return note(r, "reset", "the figures of statements are forgotten, as an operator ordered");
}

/* --- settings --- */

/* The supervisor says nothing about a file it refuses, so the file is tried here first. */
static int do_reload(const struct web_request *r, struct buf *said, struct err *err)
{
    const struct conf_gen *gen = role_loop_gen(&r->web->role);
    struct proc_env *env = r->web->role.env;
    struct conf_report report;
    struct conf_gen *tried;
    bool is_usable;
    char what = 'r';

    conf_report_init(&report);
    tried = conf_reload(gen, conf_file(gen), &report);
    if (tried != NULL)
        (void)role_rules_check(tried, env->paths, &report);
    if (report.n > 0)
        conf_report_format(&report, said);
    is_usable = report.nerrors == 0;
    conf_report_fini(&report);
    conf_gen_free(&tried);
    if (!is_usable) {
        err_set(err, "F0000", "the file has errors: the settings stay as they are");
        err_hint(err, "Correct it and reload again.");
        return -1;
    }
    if (mailbox_post(env->boxes, PROC_SLOT_SUPERVISOR, MAIL_REQUEST, &what, 1, -1) == -1) {
        err_set(err, "53000", "the main process could not be asked");
        err_hint(err, "Try again.");
        return -1;
    }
    return note(r, "reload", "the settings are read again, as an operator asked");
}

/* --- all --- */

static void answer(struct web_answer *a, const struct buf *said, const struct err *err)
{
    struct web_json j = {.out = &a->body};

    web_json_open(&j, '{');
    if (err_is_set(err)) {
        web_json_member(&j, "error", err->msg);
        web_json_member(&j, "hint", err->hint);
        a->status = STATUS_REFUSED;
    }
    web_json_key(&j, "said");
    web_json_text(&j, buf_slice(said));
    web_json_close(&j, '}');
    a->type = WEB_TYPE_JSON;
}

void web_action_page(const struct web_request *r, struct web_answer *a)
{
    static const struct {
        const char *name;
        action_fn *run;
    } actions[] = {{"attach", do_attach}, {"detach", do_detach}, {"promote", do_promote},
        {"recover", do_recover}, {"kill", do_kill}, {"cancel", do_cancel}, {"reload", do_reload},
        {"pause", do_pause}, {"drain", do_drain}, {"resume", do_resume},
        {"reconnect", do_reconnect}, {"forget", do_forget_statements}};
    const char *name = r->path + strlen(PREFIX);
    struct buf said = {0};
    struct err err = {0};
    size_t i;

    for (i = 0; i < sizeof actions / sizeof actions[0]; i++) {
        if (strcmp(actions[i].name, name) != 0)
            continue;
        (void)actions[i].run(r, &said, &err);
        answer(a, &said, &err);
        buf_free(&said);
        return;
    }
    web_answer_text(a, STATUS_UNKNOWN, "there is no such order\n");
}
