/* SPDX-License-Identifier: PostgreSQL
 * web_ring.c: the last hour in seconds and the last day in minutes, so that a page that is opened
 * at the wrong moment shows what led to it.
 * Runs in: web. Counters are kept as they are, from the start on: the difference of any two moments
 * is right, whatever lies between them is left out. They are in shared memory: a new web process
 * goes on with what there is. */
#include "config.h"

#include "web_ring.h"

#include <stdlib.h>
#include <string.h>

#include "backend/limits.h"
#include "backend/quota.h"
#include "base/mem.h"
#include "console/console.h"
#include "ipc/charts.h"
#include "ipc/dbstats.h"
#include "ipc/nodestats.h"
#include "known/session_shared.h"
#include "session/session.h"
#include "sys/clock.h"

#include "web_json.h"

#define PERIOD_MS     1000
#define POINTS_PRESET 300
#define POINTS_MAX    1000

struct web_ring {
    struct web *web;
    struct timer timer;
    struct dbstats_sum sum;
    struct nodestats_sum node_sum;
    struct charts *charts; /* in shared memory */
};

static void take_databases(struct web_ring *ring, struct chart_sample *s)
{
    const struct shm *shm = ring->web->role.env->shm;
    uint32_t at = 0;

    while (dbstats_next(shm, &at, &ring->sum)) {
        s->queries += ring->sum.queries;
        s->transactions += ring->sum.transactions;
        s->query_us += ring->sum.query_us;
        s->assignments += ring->sum.assignments;
        s->wait_us += ring->sum.wait_us;
        s->bytes += ring->sum.bytes_in + ring->sum.bytes_out;
    }
}

static void take_nodes(struct web_ring *ring, struct chart_sample *s)
{
    struct web *w = ring->web;
    struct admin_counts c;
    int i;

    for (i = 0; i < w->view.nnodes; i++) {
        s->links += quota_used(w->role.env->shm, i);
        s->waiting += limits_node_waiting(w->role.env->shm, i);
        if (i >= CHARTS_NODES)
            continue;
        console_node_counts(w->role.env->shm, i, &c);
        s->lag_bytes[i] = w->view.node[i].delay_bytes;
        s->statements[i] = c.nselect + c.ninsert + c.nupdate + c.ndelete + c.nddl + c.nother;
        nodestats_sum(w->role.env->shm, i, &ring->node_sum);
        s->node_requests[i] = ring->node_sum.nrequests;
        s->node_us[i] = ring->node_sum.query_us;
    }
}

static void take_sample(struct web_ring *ring)
{
    struct web *w = ring->web;
    struct chart_sample *s = &ring->charts->second[ring->charts->nseconds % CHARTS_SECONDS];
    const struct chart_sample *last =
        ring->charts->nminutes == 0
            ? NULL
            : &ring->charts->minute[(ring->charts->nminutes - 1) % CHARTS_MINUTES];

    memset(s, 0, sizeof *s);
    (void)view_refresh(w->role.env->shm, &w->view);
    s->at_s = clock_wall_us() / CLOCK_US_PER_S;
    s->clients = session_count_all(w->role.env->shm);
    take_databases(ring, s);
    take_nodes(ring, s);
    ring->charts->nseconds++;
    if (last == NULL || s->at_s - last->at_s >= 60) {
        ring->charts->minute[ring->charts->nminutes % CHARTS_MINUTES] = *s;
        ring->charts->nminutes++;
    }
}

static void on_time(struct timer *t)
{
    struct web_ring *ring = LIST_ENTRY(t, struct web_ring, timer);

    take_sample(ring);
    timer_start(&ring->web->role.loop, t, PERIOD_MS);
}

struct web_ring *web_ring_new(struct web *w)
{
    struct web_ring *ring = mem_alloc_zero(sizeof *ring);

    ring->web = w;
    ring->charts = shm_get(w->role.env->shm, SHM_CHARTS);
    timer_init(&ring->timer, on_time);
    take_sample(ring);
    timer_start(&w->role.loop, &ring->timer, PERIOD_MS);
    return ring;
}

void web_ring_free(struct web_ring **rp)
{
    if (*rp == NULL)
        return;
    timer_stop(&(*rp)->web->role.loop, &(*rp)->timer);
    mem_free(*rp);
    *rp = NULL;
}

/* --- as JSON --- */

static int64_t number_of(const struct web_request *r, const char *name, int64_t preset, int64_t max)
{
    const char *text = web_request_argument(r, name);
    int64_t n = text == NULL ? preset : strtoll(text, NULL, 10);

    return n < 1 ? 1 : n > max ? max : n;
}

static void put_sample(struct web_json *j, const struct chart_sample *s, int nnodes)
{
    int i;

    web_json_open(j, '[');
    web_json_int(j, s->at_s);
    web_json_int(j, s->clients);
    web_json_int(j, s->waiting);
    web_json_int(j, s->links);
    web_json_int(j, (int64_t)s->queries);
    web_json_int(j, (int64_t)s->transactions);
    web_json_int(j, (int64_t)s->query_us);
    web_json_int(j, (int64_t)s->assignments);
    web_json_int(j, (int64_t)s->wait_us);
    web_json_int(j, (int64_t)s->bytes);
    for (i = 0; i < nnodes; i++) {
        web_json_int(j, s->lag_bytes[i]);
        web_json_int(j, (int64_t)s->statements[i]);
        web_json_int(j, (int64_t)s->node_requests[i]);
        web_json_int(j, (int64_t)s->node_us[i]);
    }
    web_json_close(j, ']');
}

/* Of the samples that are left out the most that waited is kept: a short jam is to be seen. */
static void put_samples(struct web_json *j, const struct chart_sample *ring, int64_t size,
    int64_t taken, int64_t wanted, int64_t points, int nnodes)
{
    int64_t have = taken < size ? taken : size;
    int64_t n = wanted < have ? wanted : have;
    int64_t step = (n + points - 1) / points;
    int64_t waiting = 0;
    int64_t i;

    for (i = taken - n; i < taken; i++) {
        struct chart_sample s = ring[i % size];

        if (s.waiting > waiting)
            waiting = s.waiting;
        if ((taken - 1 - i) % step != 0)
            continue;
        s.waiting = waiting;
        waiting = 0;
        put_sample(j, &s, nnodes);
    }
}

void web_ring_page(const struct web_request *r, struct web_answer *a)
{
    static const char *const columns[] = {"at", "clients", "waiting", "links", "queries",
        "transactions", "query_us", "assignments", "wait_us", "bytes"};
    static const char *const node_columns[] = {"lag_bytes", "statements", "requests", "query_us"};
    const struct web_ring *ring = r->web->ring;
    int64_t seconds = number_of(r, "seconds", CHARTS_SECONDS, CHARTS_MINUTES * 60);
    int64_t points = number_of(r, "points", POINTS_PRESET, POINTS_MAX);
    int nnodes = r->web->view.nnodes < CHARTS_NODES ? r->web->view.nnodes : CHARTS_NODES;
    struct web_json j = {.out = &a->body};
    size_t i;

    web_json_open(&j, '{');
    web_json_key(&j, "columns");
    web_json_open(&j, '[');
    for (i = 0; i < sizeof columns / sizeof columns[0]; i++)
        web_json_text(&j, slice_of_str(columns[i]));
    web_json_close(&j, ']');
    web_json_key(&j, "node_columns"); /* behind the others, for each node */
    web_json_open(&j, '[');
    for (i = 0; i < sizeof node_columns / sizeof node_columns[0]; i++)
        web_json_text(&j, slice_of_str(node_columns[i]));
    web_json_close(&j, ']');
    web_json_key(&j, "nodes");
    web_json_int(&j, nnodes);
    web_json_key(&j, "samples");
    web_json_open(&j, '[');
    if (seconds <= CHARTS_SECONDS)
        put_samples(&j, ring->charts->second, CHARTS_SECONDS, ring->charts->nseconds, seconds,
            points, nnodes);
    else
        put_samples(&j, ring->charts->minute, CHARTS_MINUTES, ring->charts->nminutes, seconds / 60,
            points, nnodes);
    web_json_close(&j, ']');
    web_json_close(&j, '}');
    a->type = WEB_TYPE_JSON;
}
