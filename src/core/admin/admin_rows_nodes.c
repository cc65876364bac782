/* SPDX-License-Identifier: PostgreSQL
 * admin_rows_nodes.c: rows of SHOW POOL_NODES, POOL_BACKEND_STATS, POOL_NODE_TIMES and
 * POOL_HEALTH_CHECK_STATS.
 * Runs in: worker, control, web. Host, port and weight come from the settings, everything else from
 * the snapshot that the asker hands over. Asks no server: what is shown was observed by the
 * monitor. */
#include "config.h"

#include <stdio.h>
#include <string.h>

#include "admin_int.h"
#include "base/assert.h"
#include "base/mem.h"
#include "config/conf.h"
#include "ipc/nodestats.h"

void admin_node_get(const struct admin_sources *src, int id, struct admin_node *out)
{
    memset(out, 0, sizeof *out);
    if (src->node != NULL) {
        src->node(src->node_ctx, id, out);
        /* A reload has added it, and the monitor has not read that yet: it has not answered. */
        if (out->status == ADMIN_NODE_UNUSED)
            out->status = ADMIN_NODE_DOWN;
        return;
    }
    out->status = ADMIN_NODE_WAITING;
}

const char *admin_node_status_text(enum admin_node_status status)
{
    static const char *const texts[ADMIN_NODE_STATUS_COUNT] = {
#define ADMIN_NODE_STATUS(sym, text) text,
        ADMIN_NODE_STATUSES(ADMIN_NODE_STATUS)
#undef ADMIN_NODE_STATUS
    };

    ASSERT(status >= 0 && status < ADMIN_NODE_STATUS_COUNT);
    return texts[status];
}

static const char *pg_status_text(enum admin_pg_status status)
{
    switch (status) {
    case ADMIN_PG_UP:
        return "up";
    case ADMIN_PG_DOWN:
        return "down";
    case ADMIN_PG_UNKNOWN:
        break;
    }
    return "unknown";
}

static bool is_streaming(const struct admin_sources *src)
{
    return conf_of(src->gen)->backend_clustering_mode == CONF_CLUSTER_STREAMING;
}

static const char *role_text(const struct admin_sources *src, enum admin_role role)
{
    switch (role) {
    case ADMIN_ROLE_PRIMARY:
        return is_streaming(src) ? "primary" : "main";
    case ADMIN_ROLE_STANDBY:
        return is_streaming(src) ? "standby" : "replica";
    case ADMIN_ROLE_UNKNOWN:
        break;
    }
    return "unknown";
}

double admin_weight_share(const struct admin_sources *src, int id)
{
    const struct conf *conf = conf_of(src->gen);
    double sum = 0;
    int i;

    for (i = 0; i < conf->nnodes; i++) {
        if (conf_has_node(conf, i))
            sum += conf->nodes[i].backend_weight;
    }
    return sum > 0 && conf_has_node(conf, id) ? conf->nodes[id].backend_weight / sum : 0;
}

/* Puts node_id, hostname and port. */
static void put_node(const struct admin_sources *src, int id, struct admin_rows *out)
{
    const struct conf_node *node = &conf_of(src->gen)->nodes[id];

    admin_row_begin(out);
    admin_put_int(out, id);
    admin_put_str(out, node->backend_hostname);
    admin_put_int(out, node->backend_port);
}

/* pgpool-II's two ways: bytes, or "1.500000 second", "2.000000 seconds". */
static void put_delay(const struct admin_node *n, struct admin_rows *out)
{
    char text[64];
    double seconds = (double)n->delay_us / 1000000.0;

    if (!n->delay_is_time) {
        admin_put_int(out, n->delay_bytes);
        return;
    }
    snprintf(text, sizeof text, "%.6f %s", seconds, seconds >= 2 ? "seconds" : "second");
    admin_put_str(out, text);
}

void admin_rows_nodes(const struct admin_sources *src, struct admin_rows *out)
{
    const struct conf *conf = conf_of(src->gen);
    struct admin_node n;
    int i;

    for (i = 0; i < conf->nnodes; i++) {
        if (!conf_has_node(conf, i))
            continue;
        admin_node_get(src, i, &n);
        put_node(src, i, out);
        admin_put_static(out, admin_node_status_text(n.status));
        admin_put_static(out, pg_status_text(n.pg_status));
        admin_put_real(out, admin_weight_share(src, i));
        admin_put_static(out, role_text(src, n.role));
        admin_put_static(out, role_text(src, is_streaming(src) ? n.pg_role : n.role));
        admin_put_uint(out, n.counts.nselect);
        admin_put_static(out, src->balance_node == i ? "true" : "false");
        put_delay(&n, out);
        admin_put(out, slice_of(n.replication_state,
                           strnlen(n.replication_state, sizeof n.replication_state)));
        admin_put(out, slice_of(n.replication_sync_state,
                           strnlen(n.replication_sync_state, sizeof n.replication_sync_state)));
        admin_put_time(out, n.status_changed_us);
    }
}

void admin_rows_backend_stats(const struct admin_sources *src, struct admin_rows *out)
{
    const struct conf *conf = conf_of(src->gen);
    struct admin_node n;
    int i;

    for (i = 0; i < conf->nnodes; i++) {
        if (!conf_has_node(conf, i))
            continue;
        admin_node_get(src, i, &n);
        put_node(src, i, out);
        admin_put_static(out, admin_node_status_text(n.status));
        admin_put_static(out, role_text(src, n.role));
        admin_put_uint(out, n.counts.nselect);
        admin_put_uint(out, n.counts.ninsert);
        admin_put_uint(out, n.counts.nupdate);
        admin_put_uint(out, n.counts.ndelete);
        admin_put_uint(out, n.counts.nddl);
        admin_put_uint(out, n.counts.nother);
        admin_put_uint(out, n.counts.npanic);
        admin_put_uint(out, n.counts.nfatal);
        admin_put_uint(out, n.counts.nerror);
    }
}

void admin_rows_node_times(const struct admin_sources *src, struct admin_rows *out)
{
    struct nodestats_sum *sum = mem_alloc(sizeof *sum); /* too large for the stack */
    const struct conf *conf = conf_of(src->gen);
    struct admin_node n;
    int i;

    for (i = 0; i < conf->nnodes; i++) {
        if (!conf_has_node(conf, i))
            continue;
        admin_node_get(src, i, &n);
        nodestats_sum(src->shm, i, sum);
        put_node(src, i, out);
        admin_put_static(out, admin_node_status_text(n.status));
        admin_put_static(out, role_text(src, n.role));
        admin_put_uint(out, sum->nrequests);
        admin_put_uint(out, sum->query_us);
        admin_put_quantiles(out, &sum->query);
    }
    mem_free(sum);
}

static double average(double sum, uint64_t n)
{
    return n == 0 ? 0 : sum / (double)n;
}

static void put_health(const struct admin_health *h, struct admin_rows *out)
{
    admin_put_uint(out, h->total);
    admin_put_uint(out, h->success);
    admin_put_uint(out, h->fail);
    admin_put_uint(out, h->skip);
    admin_put_uint(out, h->retry);
    admin_put_real(out, average((double)h->retry, h->total));
    admin_put_uint(out, h->max_retry);
    admin_put_int(out, h->max_ms);
    admin_put_int(out, h->min_ms);
    admin_put_real(out, average((double)h->sum_ms, h->success + h->fail));
    admin_put_time(out, h->last_us);
    admin_put_time(out, h->last_success_us);
    admin_put_time(out, h->last_skip_us);
    admin_put_time(out, h->last_fail_us);
}

void admin_rows_health_check_stats(const struct admin_sources *src, struct admin_rows *out)
{
    const struct conf *conf = conf_of(src->gen);
    struct admin_node n;
    int i;

    for (i = 0; i < conf->nnodes; i++) {
        if (!conf_has_node(conf, i))
            continue;
        admin_node_get(src, i, &n);
        put_node(src, i, out);
        admin_put_static(out, admin_node_status_text(n.status));
        admin_put_static(out, role_text(src, n.role));
        admin_put_time(out, n.status_changed_us);
        put_health(&n.health, out);
    }
}
