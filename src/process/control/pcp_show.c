/* SPDX-License-Identifier: PostgreSQL
 * pcp_show.c: the requests of PCP that ask. The rows are those of SHOW POOL_*; here they become
 * packets.
 * Runs in: control. Reads settings and shared memory, never waits. */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "admin/admin.h"
#include "admin/admin_view.h"
#include "base/mem.h"
#include "config/conf.h"
#include "sys/clock.h"

#include "control_int.h"

#define ALL_NODES     (-1)
#define ALL_PROCESSES 0

/* Columns of the reports used here. */
enum { NODES_HOST = 1, NODES_PORT = 2, NODES_PG_STATUS = 4, NODES_PG_ROLE = 7 };
enum { HEALTH_NODE = 0 };
enum { RECOVERY_NODE = 0 };
enum { POOLS_PID = 0, POOLS_NODE = 4, POOLS_CONNECTED = 15 };

/* Counts of statements stay zero: no request of PCP shows them. */
static void fill_node(void *ctx, int id, struct admin_node *out)
{
    const struct control *ctl = ctx;

    admin_node_of_view(&ctl->view, id, out);
}

void pcp_show_sources(struct control *ctl, struct admin_sources *src)
{
    const struct proc_env *env = ctl->role.env;

    (void)view_refresh(env->shm, &ctl->view);
    memset(src, 0, sizeof *src);
    src->gen = role_loop_gen(&ctl->role);
    src->shm = env->shm;
    src->first_worker_slot = env->first_worker_slot;
    src->now_us = clock_wall_us();
    src->is_operator = true;
    src->balance_node = VIEW_NO_NODE;
    src->node = fill_node;
    src->node_ctx = ctl;
}

static int run(
    struct control *ctl, enum admin_report report, struct admin_result *res, struct err *err)
{
    struct admin_sources src;

    pcp_show_sources(ctl, &src);
    return admin_run_report(report, &src, res, err);
}

static void put_size(struct buf *out, char type, uint32_t n)
{
    size_t mark = pcp_begin(out, type);

    buf_put_cstr(out, PCP_SIZE);
    pcp_put_int(out, n);
    pcp_end(out, mark);
}

int pcp_show_node_count(struct pcp_conn *c, struct slice body, struct buf *out, struct err *err)
{
    size_t mark = pcp_begin(out, 'l');

    buf_put_cstr(out, PCP_COMPLETE);
    pcp_put_int(out, conf_of(role_loop_gen(&c->ctl->role))->nnodes);
    pcp_end(out, mark);
    return 0;
}

/* 0 main, 1 replica, 2 primary, 3 standby. */
static int role_number(const struct conf *conf, enum admin_role role)
{
    int base = conf->backend_clustering_mode == CONF_CLUSTER_STREAMING ? 2 : 0;

    return base + (role == ADMIN_ROLE_PRIMARY ? 0 : 1);
}

/* 0 unused, 1 waiting, 2 up, 3 down; quarantine is down with a mark. */
static int status_number(enum admin_node_status status)
{
    return status == ADMIN_NODE_QUARANTINE ? (int)ADMIN_NODE_DOWN : (int)status;
}

/* pgpool-II before 4.4 had no word for the kind of the delay: it was bytes. */
static void put_delay(const struct pcp_conn *c, const struct admin_node *n, struct buf *out)
{
    bool is_old = !c->is_ours && conf_of(role_loop_gen(&c->ctl->role))->pcp_old_node_info;

    if (!is_old)
        pcp_put_int(out, n->delay_is_time);
    pcp_put_int(out, n->delay_is_time && !is_old ? n->delay_us : n->delay_bytes);
}

/* `row` is the node's row of SHOW POOL_NODES, NULL for a number between nodes that has none. */
static void put_node(
    struct pcp_conn *c, int id, const struct admin_row *row, double weight_sum, struct buf *out)
{
    struct control *ctl = c->ctl;
    const struct conf *conf = conf_of(role_loop_gen(&ctl->role));
    struct admin_node n = {0};
    size_t mark = pcp_begin(out, 'i');
    double weight =
        row == NULL || weight_sum <= 0 ? 0 : conf->nodes[id].backend_weight / weight_sum;

    fill_node(ctl, id, &n);
    buf_put_cstr(out, PCP_NODE);
    pcp_put_slice(out, row == NULL ? slice_of("", 0) : row->cell[NODES_HOST]);
    pcp_put_slice(out, row == NULL ? slice_of("0", 1) : row->cell[NODES_PORT]);
    pcp_put_int(out, row == NULL ? 0 : status_number(n.status));
    pcp_put_int(out, n.status == ADMIN_NODE_QUARANTINE);
    pcp_put_slice(out, row == NULL ? slice_of_str("unknown") : row->cell[NODES_PG_STATUS]);
    buf_printf(out, "%f", weight * PCP_WEIGHT_WHOLE);
    buf_put_byte(out, '\0');
    pcp_put_int(out, role_number(conf, n.role));
    pcp_put_slice(out, row == NULL ? slice_of_str("unknown") : row->cell[NODES_PG_ROLE]);
    put_delay(c, &n, out);
    pcp_put_slice(out,
        slice_of(n.replication_state, strnlen(n.replication_state, sizeof n.replication_state)));
    pcp_put_slice(out, slice_of(n.replication_sync_state,
                           strnlen(n.replication_sync_state, sizeof n.replication_sync_state)));
    pcp_put_int(out, n.status_changed_us / 1000000);
    pcp_end(out, mark);
}

static double sum_weights(const struct conf *conf)
{
    double sum = 0;
    int i;

    for (i = 0; i < conf->nnodes; i++)
        sum += conf_has_node(conf, i) ? conf->nodes[i].backend_weight : 0;
    return sum;
}

int pcp_show_node_info(struct pcp_conn *c, struct slice body, struct buf *out, struct err *err)
{
    const struct conf *conf = conf_of(role_loop_gen(&c->ctl->role));
    struct admin_result res = {0};
    const struct admin_row *row;
    int wanted = ALL_NODES - 1;
    int id;

    if (!pcp_take_int(&body, &wanted) || wanted < ALL_NODES || wanted >= conf->nnodes) {
        err_set(err, "22023", "informing node info failed");
        err_detail(err, "invalid node ID : %d", wanted);
        return -1;
    }
    if (run(c->ctl, ADMIN_REPORT_NODES, &res, err) == -1)
        return -1;
    put_size(out, 'i', wanted == ALL_NODES ? (uint32_t)conf->nnodes : 1);
    row = res.rows;
    for (id = 0; id < conf->nnodes; id++) {
        bool is_there = conf_has_node(conf, id) && row != NULL;

        if (wanted == ALL_NODES || wanted == id)
            put_node(c, id, is_there ? row : NULL, sum_weights(conf), out);
        if (is_there)
            row = row->next;
    }
    pcp_put_word(out, 'i', PCP_COMPLETE);
    admin_result_fini(&res);
    return 0;
}

static bool cell_is(const struct admin_row *row, int column, int number)
{
    char text[16];

    snprintf(text, sizeof text, "%d", number);
    return slice_eq_str(row->cell[column], text);
}

int pcp_show_health(struct pcp_conn *c, struct slice body, struct buf *out, struct err *err)
{
    struct admin_result res = {0};
    const struct admin_row *row = NULL;
    size_t mark;
    unsigned i;
    int wanted;

    if (!pcp_take_int(&body, &wanted))
        wanted = ALL_NODES;
    if (run(c->ctl, ADMIN_REPORT_HEALTH_CHECK_STATS, &res, err) == -1)
        return -1;
    for (row = res.rows; row != NULL && !cell_is(row, HEALTH_NODE, wanted); row = row->next)
        ;
    if (row == NULL) {
        err_set(err, "22023", "informing health check stats info failed");
        err_detail(err, "invalid node ID %d", wanted);
        admin_result_fini(&res);
        return -1;
    }
    mark = pcp_begin(out, 'h');
    buf_put_cstr(out, PCP_COMPLETE);
    for (i = 0; i < res.ncolumns; i++)
        pcp_put_slice(out, row->cell[i]);
    pcp_end(out, mark);
    admin_result_fini(&res);
    return 0;
}

/* Fills in the pids of the workers that live; returns how many. */
static int list_workers(const struct proc_env *env, int *pids)
{
    struct proc_row row;
    int n = 0;
    int i;

    for (i = 0; i < env->nworkers; i++) {
        proc_row_copy(env->shm, env->first_worker_slot + i, &row);
        if (row.pid != 0)
            pids[n++] = row.pid;
    }
    return n;
}

int pcp_show_proc_count(struct pcp_conn *c, struct slice body, struct buf *out, struct err *err)
{
    const struct proc_env *env = c->ctl->role.env;
    int *pid = mem_alloc((size_t)env->nworkers * sizeof *pid);
    int n = list_workers(env, pid);
    size_t mark = pcp_begin(out, 'n');
    int i;

    buf_put_cstr(out, PCP_COMPLETE);
    pcp_put_int(out, n);
    for (i = 0; i < n; i++)
        pcp_put_int(out, pid[i]);
    pcp_end(out, mark);
    mem_free(pid);
    return 0;
}

static bool is_worker(const struct proc_env *env, int pid)
{
    struct proc_row row;
    int i;

    for (i = 0; i < env->nworkers; i++) {
        proc_row_copy(env->shm, env->first_worker_slot + i, &row);
        if (row.pid == pid && pid != 0)
            return true;
    }
    return false;
}

static void put_row(const struct admin_result *res, const struct admin_row *row, char type,
    const char *word, struct buf *out)
{
    size_t mark = pcp_begin(out, type);
    unsigned i;

    buf_put_cstr(out, word);
    for (i = 0; i < res->ncolumns; i++)
        pcp_put_slice(out, row->cell[i]);
    pcp_end(out, mark);
}

int pcp_show_proc_info(struct pcp_conn *c, struct slice body, struct buf *out, struct err *err)
{
    struct admin_result res = {0};
    const struct admin_row *row;
    uint32_t n = 0;
    int wanted = -1;

    if (!pcp_take_int(&body, &wanted) ||
        (wanted != ALL_PROCESSES && !is_worker(c->ctl->role.env, wanted))) {
        err_set(err, "22023", "informing process info failed");
        err_detail(err, "invalid process ID : %d", wanted);
        return -1;
    }
    if (run(c->ctl, ADMIN_REPORT_POOLS, &res, err) == -1)
        return -1;
    for (row = res.rows; row != NULL; row = row->next)
        n += wanted == ALL_PROCESSES || cell_is(row, POOLS_PID, wanted);
    put_size(out, 'p', n);
    for (row = res.rows; row != NULL; row = row->next) {
        if (wanted == ALL_PROCESSES || cell_is(row, POOLS_PID, wanted))
            put_row(&res, row, 'p', PCP_PROCESS, out);
    }
    pcp_put_word(out, 'p', PCP_COMPLETE);
    admin_result_fini(&res);
    return 0;
}

int pcp_show_recoveries(struct pcp_conn *c, int node, struct buf *out, struct err *err)
{
    struct admin_result res = {0};
    const struct admin_row *row;
    uint32_t n = 0;

    if (run(c->ctl, ADMIN_REPORT_RECOVERY, &res, err) == -1)
        return -1;
    for (row = res.rows; row != NULL; row = row->next)
        n += node == ALL_NODES || cell_is(row, RECOVERY_NODE, node);
    put_size(out, 'u', n);
    for (row = res.rows; row != NULL; row = row->next) {
        if (node == ALL_NODES || cell_is(row, RECOVERY_NODE, node))
            put_row(&res, row, 'u', PCP_RECOVERED, out);
    }
    pcp_put_word(out, 'u', PCP_COMPLETE);
    admin_result_fini(&res);
    return 0;
}

int pcp_show_users_of(struct control *ctl, int node)
{
    struct admin_result res = {0};
    const struct admin_row *row;
    struct err ignored = {0};
    int n = 0;

    if (run(ctl, ADMIN_REPORT_POOLS, &res, &ignored) == -1)
        return -1;
    for (row = res.rows; row != NULL; row = row->next)
        n += cell_is(row, POOLS_NODE, node) && cell_is(row, POOLS_CONNECTED, 1);
    admin_result_fini(&res);
    return n;
}

int pcp_show_status(struct pcp_conn *c, struct slice body, struct buf *out, struct err *err)
{
    struct admin_result res = {0};
    const struct admin_row *row;
    size_t mark;

    if (run(c->ctl, ADMIN_REPORT_STATUS, &res, err) == -1)
        return -1;
    /* In this answer alone the number travels as four bytes. */
    mark = pcp_begin(out, 'b');
    buf_put_cstr(out, PCP_SIZE);
    buf_put_u32(out, res.nrows);
    pcp_end(out, mark);
    for (row = res.rows; row != NULL; row = row->next)
        put_row(&res, row, 'b', PCP_SETTING, out);
    pcp_put_word(out, 'b', PCP_COMPLETE);
    admin_result_fini(&res);
    return 0;
}
