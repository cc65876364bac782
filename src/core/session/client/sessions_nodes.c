/* SPDX-License-Identifier: PostgreSQL
 * sessions_nodes.c: what a worker knows of nodes, and tells the monitor and the workers of clients.
 * Runs in: workers; whoever has a client cancelled. */
#include "config.h"

#include "base/hot.h"
#include "cluster/view.h"
#include "config/conf.h"
#include "ipc/mailbox.h"

#include "sstate_int.h"

#define LOOK_AGAIN_US 1000000

int32_t session_find_client(const struct rows_header *rows, uint32_t id, struct client_row *row)
{
    int32_t i;

    for (i = 0; id != 0 && i < (int32_t)rows->capacity; i++) {
        if (client_row_at(rows, i)->id != id)
            continue; /* most are told apart without a copy */
        (void)client_row_copy(rows, i, row, NULL);
        if (row->state != CLIENT_STATE_FREE && row->id == id)
            return i;
    }
    return ROWS_NO_ROW;
}

struct client *sessions_client(const struct sessions *ss, uint32_t id)
{
    struct client *c;
    struct list *n;

    LIST_FOREACH(n, &ss->clients)
    {
        c = LIST_ENTRY(n, struct client, node);
        if (c->row != NULL && c->row->id == id)
            return c;
    }
    return NULL;
}

int session_cancel_client(const struct proc_env *env, uint32_t client_id, struct err *err)
{
    const struct rows_header *rows = shm_get(env->shm, SHM_CLIENTS);
    struct cancel_mail m = {.client_id = client_id};
    struct client_row row;

    m.row = session_find_client(rows, client_id, &row);
    if (m.row == ROWS_NO_ROW) {
        err_set(err, "42704", "there is no client %u", client_id);
        return -1;
    }
    m.pid = row.told_pid;
    m.key_len = row.secret_len <= sizeof m.key ? row.secret_len : 0;
    memcpy(m.key, row.secret, m.key_len);
    if (mailbox_post(
            env->boxes, env->first_worker_slot + row.worker, MAIL_CANCEL, &m, sizeof m, -1) == 0)
        return 0;
    err_set(err, "53000", "the worker of the client could not be asked");
    err_hint(err, "Try again.");
    return -1;
}

void sessions_mail_monitor(struct sessions *ss, enum mail_type type, const void *body, size_t len)
{
    const struct proc_env *env = ss->env;
    int slot;

    for (slot = 0; slot < proc_nslots(env->shm); slot++)
        if (proc_row(env->shm, slot)->role == ROLE_MONITOR)
            (void)mailbox_post(env->boxes, slot, type, body, len, -1);
}

void sessions_suspect_node(struct sessions *ss, int node)
{
    int32_t body = node;

    ss->suspected_us = backend_wall_us(&ss->be);
    sessions_mail_monitor(ss, MAIL_NODE_SUSPECT, &body, sizeof body);
}

void sessions_look_again(struct sessions *ss, int node)
{
    int64_t now_us = loop_now_us(ss->loop);

    if (now_us - ss->looked_us < LOOK_AGAIN_US)
        return;
    ss->looked_us = now_us;
    sessions_suspect_node(ss, node);
}

HOT int sessions_write_node(struct sessions *ss)
{
    struct session_writes *w = &ss->writes;
    int node;

    if (w->hold != WRITES_NOT_KNOWN &&
        w->version == atomic_load_explicit(ss->view_version, memory_order_acquire))
        return w->node;
    (void)view_refresh(ss->env->shm, &ss->view);
    node = view_write_node(&ss->view);
    /* A node that a reload just added may be in the view before this worker has its address. */
    w->node = (int16_t)(conf_has_node(ss->conf, node) ? node : VIEW_NO_NODE);
    w->version = ss->view.version;
    w->hold = view_must_hold_writes(&ss->view) ? WRITES_WAIT : WRITES_GO;
    return w->node;
}

int sessions_ask_node(struct sessions *ss, int lost)
{
    int primary = sessions_write_node(ss);
    int i;

    if (primary == VIEW_NO_NODE || primary != lost || !view_must_hold_writes(&ss->view))
        return primary;
    for (i = 0; i < ss->view.nnodes; i++)
        if (i != primary && view_can_read(&ss->view, i) && conf_has_node(ss->conf, i))
            return i;
    return primary;
}

bool sessions_all_asked_since(const struct view *v, int64_t since_us)
{
    int i;

    for (i = 0; i < v->nnodes; i++)
        if (view_is_usable(v, i) && v->node[i].probed_us <= since_us)
            return false;
    return true;
}
