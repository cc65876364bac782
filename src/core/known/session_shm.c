/* SPDX-License-Identifier: PostgreSQL
 * session_shm.c: the shared memory of sessions: sizes, first content, and a dead worker's share. */
#include "config.h"

#include <stdatomic.h>
#include <string.h>

#include "auth/auth_guard.h"
#include "backend/limits.h"
#include "backend/quota.h"
#include "base/assert.h"
#include "base/hash.h"
#include "base/hot.h"
#include "base/mem.h"
#include "cluster/view.h"
#include "config/conf.h"
#include "config/pools_conf.h"
#include "ipc/dbstats.h"
#include "ipc/gate.h"
#include "ipc/hold.h"
#include "ipc/nodestats.h"
#include "ipc/orders.h"
#include "ipc/rows.h"
#include "ipc/stmtstats.h"

#include "known/greetings.h"
#include "known/known.h"
#include "known/session_shared.h"

/* Users about whom something is said once an hour: so many are told apart. */
#define TOLD_SLOTS   1024
#define TOLD_MINUTES 60

struct session_shared {
    _Atomic int32_t nclients;
    _Atomic int32_t nadmins; /* in the virtual database */
    int32_t nworkers;
    _Atomic uint32_t nchoices; /* sessions that chose a node for their reads */
    _Atomic uint64_t ntype_changes;
    _Atomic uint64_t nname_changes;
    _Atomic int64_t stale_us;          /* servers had stale types the last time */
    _Atomic uint64_t told[TOLD_SLOTS]; /* users, and in which minute: session_tells_again */
    _Atomic int64_t moved_us; /* a client was sent from one worker to another the last time */
    struct {
        _Atomic int32_t nclients;
        _Atomic int32_t nadmins;
        _Atomic int64_t silent_us; /* login_worker.silent_us */
        uint32_t nids;             /* given to clients by the workers that had this place */
        _Atomic uint64_t count[VIEW_MAX_NODES][COUNT_KINDS];
    } __attribute__((aligned(64))) worker[];
};

HOT void session_count(struct session_shared *s, int ordinal, int node, enum count_kind kind)
{
    _Atomic uint64_t *cell;

    if (node >= VIEW_MAX_NODES)
        return; /* a server of pools.conf: none of the cluster */
    cell = &s->worker[ordinal].count[node][kind];
    /* One writer: a plain add is enough, readers see whole words. */
    atomic_store_explicit(
        cell, atomic_load_explicit(cell, memory_order_relaxed) + 1, memory_order_relaxed);
}

/* 0, 1/2, 1/4, 3/4, 1/8, ...: the bits of a counter in reverse order (van der Corput). Ten sessions
 * over two nodes are five and five, not "about". */
uint64_t session_next_choice(struct session_shared *s)
{
    uint32_t n = atomic_fetch_add(&s->nchoices, 1);
    uint64_t out = 0;
    int i;

    for (i = 0; i < 32; i++)
        out |= (uint64_t)(n >> i & 1) << (63 - i);
    return out;
}

uint64_t session_type_changes(const struct session_shared *s)
{
    return atomic_load_explicit(&s->ntype_changes, memory_order_acquire);
}

uint64_t session_name_changes(const struct session_shared *s)
{
    return atomic_load_explicit(&s->nname_changes, memory_order_acquire);
}

void session_ddl_done(struct session_shared *s, unsigned ddl)
{
    if ((ddl & ROUTE_DDL_TYPES) != 0)
        atomic_fetch_add(&s->ntype_changes, 1);
    if ((ddl & ROUTE_DDL_NAMES) != 0)
        atomic_fetch_add(&s->nname_changes, 1);
}

void session_types_stale(struct session_shared *s, int64_t now_us, int64_t pause_us)
{
    int64_t last = atomic_load(&s->stale_us);

    if ((last == 0 || now_us - last >= pause_us) &&
        atomic_compare_exchange_strong(&s->stale_us, &last, now_us))
        atomic_fetch_add(&s->ntype_changes, 1);
}

bool session_tells_again(struct session_shared *s, struct slice user, int64_t now_us)
{
    uint64_t hash = hash_bytes(user.p, user.n, 0);
    uint32_t minute = (uint32_t)(now_us / 60000000);
    uint64_t mark = hash << 32 | minute;
    _Atomic uint64_t *slot = &s->told[(hash >> 32) % TOLD_SLOTS];
    uint64_t was = atomic_load(slot);

    if (was != 0 && was >> 32 == mark >> 32 && minute - (uint32_t)was < TOLD_MINUTES)
        return false;
    return atomic_compare_exchange_strong(slot, &was, mark);
}

uint64_t session_count_sum(const struct shm *shm, int node, enum count_kind kind)
{
    struct session_shared *s = shm_get(shm, SHM_STATS);
    uint64_t sum = 0;
    int i;

    for (i = 0; i < s->nworkers; i++)
        sum += atomic_load_explicit(&s->worker[i].count[node][kind], memory_order_relaxed);
    return sum;
}

void session_plan_shm(const struct conf *conf, int nworkers, struct shm_plan *plan)
{
    uint32_t n = (uint32_t)nworkers;

    /* Any worker may be given every client; clients on their way in need a row, too. Untouched rows
     * cost no memory. */
    plan->bytes[SHM_CLIENTS] += rows_bytes(sizeof(struct client_row), ROWS_CLIENT_STATEMENT_BYTES,
        n, (uint32_t)conf->max_clients + 1024);
    plan->bytes[SHM_LINKS] += rows_bytes(
        sizeof(struct link_row), ROWS_LINK_STATEMENT_BYTES, n, (uint32_t)conf->max_clients + 1024);
    plan->bytes[SHM_QUOTAS] += quota_region_bytes(nworkers);
    plan->bytes[SHM_LIMITS] += limits_region_bytes(nworkers, conf->max_clients);
    plan->bytes[SHM_DBSTATS] += dbstats_region_bytes(nworkers);
    plan->bytes[SHM_NODESTATS] += nodestats_region_bytes(nworkers);
    plan->bytes[SHM_STMTSTATS] += stmtstats_region_bytes(nworkers, conf->track_statements_max);
    plan->bytes[SHM_ORDERS] += orders_region_bytes();
    plan->bytes[SHM_HOLD] += hold_region_bytes(nworkers);
    plan->bytes[SHM_GATE] += gate_region_bytes(nworkers);
    plan->bytes[SHM_CLUSTER] += view_region_bytes();
    plan->bytes[SHM_GREETINGS] += greeting_region_bytes(nworkers);
    plan->bytes[SHM_AUTH] += auth_guard_bytes();
    plan->bytes[SHM_STATS] +=
        sizeof(struct session_shared) + n * sizeof(((struct session_shared *)0)->worker[0]);
    known_plan_shm(conf, nworkers, plan);
}

/* What is known before the first probe: which nodes there are. */
static void publish_first_view(const struct conf *conf, struct shm *shm)
{
    struct view *v = mem_alloc_zero(sizeof *v);
    int i;

    v->nnodes = conf->nnodes;
    v->primary = VIEW_NO_NODE;
    v->is_looking = conf->backend_clustering_mode == CONF_CLUSTER_STREAMING && conf->nnodes > 1;
    for (i = 0; i < conf->nnodes; i++) {
        v->node[i].status = conf_has_node(conf, i) ? VIEW_WAITING : VIEW_UNUSED;
        if (conf_has_node(conf, i) && (conf->nodes[i].backend_flag & CONF_BACKEND_ALWAYS_PRIMARY)) {
            v->primary = i;
            v->is_looking = false;
            v->node[i].role = VIEW_ROLE_PRIMARY;
        }
    }
    view_publish(shm, v);
    mem_free(v);
}

void session_init_shm(const struct conf *conf, int nworkers, struct shm *shm)
{
    struct session_shared *s = shm_get(shm, SHM_STATS);
    int i;

    rows_init(shm_get(shm, SHM_CLIENTS), sizeof(struct client_row), ROWS_CLIENT_STATEMENT_BYTES,
        (uint32_t)nworkers, (uint32_t)conf->max_clients + 1024);
    rows_init(shm_get(shm, SHM_LINKS), sizeof(struct link_row), ROWS_LINK_STATEMENT_BYTES,
        (uint32_t)nworkers, (uint32_t)conf->max_clients + 1024);
    quota_region_init(shm, nworkers);
    limits_region_init(shm, nworkers, conf->max_clients);
    dbstats_region_init(shm, nworkers);
    nodestats_region_init(shm, nworkers);
    stmtstats_region_init(shm, nworkers, conf->track_statements_max);
    hold_region_init(shm, nworkers);
    gate_region_init(shm, nworkers);
    for (i = 0; i < conf->nnodes; i++)
        quota_set_limit(shm, i, conf->max_backend_connections);
    for (i = POOLS_FIRST_TARGET; pools_conf_target(conf, i) != NULL; i++)
        quota_set_limit(shm, i, conf->max_backend_connections);
    s->nworkers = nworkers;
    known_init_shm(conf, nworkers, shm);
    auth_guard_init(shm_get(shm, SHM_AUTH));
    publish_first_view(conf, shm);
}

static void clear_rows(struct rows_header *rows, int ordinal)
{
    struct rows_worker *range = rows_worker(rows, (uint32_t)ordinal);
    uint32_t used = range->high_water < range->count ? range->high_water : range->count;

    memset(rows_at(rows, range->first), 0, (size_t)used * rows->row_bytes);
}

/* What was on its way to a worker that died. */
struct lost_mail {
    struct session_shared *s;
    int ordinal;
    void (*drop)(void *ctx);
    void *ctx;
};

/* Under the lock of the limits: clients that travel are counted and posted under it. */
static void drop_lost_mail(void *ctx)
{
    const struct lost_mail *m = ctx;

    m->drop(m->ctx);
    atomic_fetch_sub(&m->s->nclients, atomic_exchange(&m->s->worker[m->ordinal].nclients, 0));
}

void session_reclaim_worker(struct shm *shm, int ordinal, void (*drop_mail)(void *ctx), void *ctx)
{
    struct session_shared *s = shm_get(shm, SHM_STATS);
    struct lost_mail lost = {s, ordinal, drop_mail, ctx};

    ASSERT(ordinal >= 0 && ordinal < s->nworkers);
    clear_rows(shm_get(shm, SHM_CLIENTS), ordinal);
    clear_rows(shm_get(shm, SHM_LINKS), ordinal);
    hold_reclaim_worker(shm, ordinal);
    atomic_fetch_sub(&s->nadmins, atomic_exchange(&s->worker[ordinal].nadmins, 0));
    atomic_store(&s->worker[ordinal].silent_us, 0);
    limits_reclaim(shm, ordinal, drop_lost_mail, &lost);
}

static bool count_below(_Atomic int32_t *count, int limit)
{
    int32_t n = atomic_load(count);

    do {
        if (n >= limit)
            return false;
    } while (!atomic_compare_exchange_weak(count, &n, n + 1));
    return true;
}

bool session_admin_add(struct session_shared *s, int ordinal, int limit)
{
    if (!count_below(&s->nadmins, limit))
        return false;
    atomic_fetch_add(&s->worker[ordinal].nadmins, 1);
    return true;
}

void session_admin_sub(struct session_shared *s, int ordinal)
{
    atomic_fetch_sub(&s->worker[ordinal].nadmins, 1);
    atomic_fetch_sub(&s->nadmins, 1);
}

bool session_count_add(struct session_shared *s, int ordinal, int limit)
{
    if (!count_below(&s->nclients, limit))
        return false;
    atomic_fetch_add(&s->worker[ordinal].nclients, 1);
    return true;
}

_Atomic int64_t *session_silent_cell(struct session_shared *s, int ordinal)
{
    return &s->worker[ordinal].silent_us;
}

int session_take_silent(struct session_shared *s, int64_t before_us)
{
    int64_t oldest_us = before_us;
    int64_t at_us;
    int found = -1;
    int i;

    for (i = 0; i < s->nworkers; i++) {
        at_us = atomic_load(&s->worker[i].silent_us);
        if (at_us != 0 && at_us < oldest_us) {
            oldest_us = at_us;
            found = i;
        }
    }
    if (found != -1 && !atomic_compare_exchange_strong(&s->worker[found].silent_us, &oldest_us, 0))
        return -1; /* somebody else has it, or it has answered */
    return found;
}

uint32_t session_next_client_id(struct session_shared *s, int ordinal)
{
    uint32_t n = s->worker[ordinal].nids++ % (INT32_MAX / (uint32_t)s->nworkers - 1) + 1;

    return n * (uint32_t)s->nworkers + (uint32_t)ordinal;
}

void session_note_move(struct session_shared *s, int64_t now_us)
{
    atomic_store(&s->moved_us, now_us);
}

int64_t session_moved_us(const struct session_shared *s)
{
    return atomic_load(&s->moved_us);
}

void session_count_move(struct session_shared *s, int from_ordinal, int to_ordinal)
{
    atomic_fetch_sub(&s->worker[from_ordinal].nclients, 1);
    atomic_fetch_add(&s->worker[to_ordinal].nclients, 1);
}

void session_count_sub(struct session_shared *s, int ordinal)
{
    atomic_fetch_sub(&s->worker[ordinal].nclients, 1);
    atomic_fetch_sub(&s->nclients, 1);
}

int session_count_all(const struct shm *shm)
{
    struct session_shared *s = shm_get(shm, SHM_STATS);

    return atomic_load(&s->nclients);
}
