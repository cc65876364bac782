/* SPDX-License-Identifier: PostgreSQL
 * plan_shm.c: what the workers know of each other for balancing: how often the schema has
 * changed, which tables were written lately, and what the catalogue said. Runs in: workers, and the
 * supervisor when it plans and fills the region BALANCE. Each worker writes its own tables; the
 * counter of schema changes is only ever added to. */
#include "config.h"

#include <string.h>

#include "base/assert.h"
#include "base/hot.h"
#include "base/mem.h"
#include "config/conf.h"
#include "route/route_marks.h"
#include "route/route_oracle.h"
#include "route/route_reads.h"
#include "route/route_shared.h"

#include "plan_int.h"

/* After a change of the schema standbys are not asked about it for so long. */
#define SETTLE_US 10000000
/* In a number for the catalogue: where the primary's epoch stands, above the changes counted. */
#define EPOCH_SHIFT 40

struct plan_region {
    _Atomic uint64_t nschema_changes;
    uint64_t marks_bytes; /* of one worker */
    uint64_t known_bytes; /* of one worker; 0: answers are not shared */
    uint32_t nworkers;
    char tables[] __attribute__((aligned(64))); /* marks of all workers, then what they know */
};

/* One per worker process. */
struct plan_worker {
    struct plan_region *region;
    uint64_t seen_changes; /* plan_worker_change */
    uint64_t primary_epoch;
    int64_t changed_us; /* when that was seen to grow; 0: never */
    uint64_t replayed[VIEW_MAX_NODES];
    struct route_reads reads;
    uint64_t reads_version;                  /* of the view that `reads` are made from */
    uint64_t reads_number;                   /* of the settings `reads` are made by; 0: not yet */
    struct route_shared *own_known;          /* NULL: answers are not shared */
    const struct route_shared *const *known; /* of all workers */
    unsigned nmarks;
    const struct route_marks *marks[];
};

static uint64_t marks_bytes(const struct conf *conf)
{
    return (route_marks_bytes(conf) + 63U) & ~(uint64_t)63U;
}

/* One worker alone has nobody to share with. */
static uint64_t known_bytes(const struct conf *conf, int nworkers)
{
    if (!conf->enable_shared_relcache || nworkers < 2)
        return 0;
    return (route_shared_bytes(conf) + 63U) & ~(uint64_t)63U;
}

void plan_plan_shm(const struct conf *conf, int nworkers, struct shm_plan *plan)
{
    plan->bytes[SHM_BALANCE] +=
        sizeof(struct plan_region) +
        (uint64_t)nworkers * (marks_bytes(conf) + known_bytes(conf, nworkers));
}

void plan_init_shm(const struct conf *conf, int nworkers, struct shm *shm)
{
    struct plan_region *r = shm_get(shm, SHM_BALANCE);

    r->marks_bytes = marks_bytes(conf);
    r->known_bytes = known_bytes(conf, nworkers);
    r->nworkers = (uint32_t)nworkers;
}

static char *known_of(struct plan_region *r, uint32_t worker)
{
    return r->tables + r->nworkers * r->marks_bytes + worker * r->known_bytes;
}

static void init_known(struct sessions *ss, struct plan_worker *w)
{
    struct plan_region *r = w->region;
    const struct route_shared **all;
    uint32_t i;

    if (r->known_bytes == 0)
        return;
    all = mem_alloc(r->nworkers * sizeof *all);
    for (i = 0; i < r->nworkers; i++)
        all[i] = (const struct route_shared *)(const void *)known_of(r, i);
    w->known = all;
    w->own_known = route_shared_init(known_of(r, (uint32_t)ss->env->ordinal), ss->conf);
}

void plan_worker_init(struct sessions *ss)
{
    struct plan_region *r = shm_get(ss->env->shm, SHM_BALANCE);
    struct plan_worker *w = mem_alloc_zero(sizeof *w + r->nworkers * sizeof(struct route_marks *));
    unsigned i;

    w->region = r;
    w->nmarks = r->nworkers;
    for (i = 0; i < r->nworkers; i++)
        w->marks[i] = (const struct route_marks *)(const void *)(r->tables + i * r->marks_bytes);
    (void)route_marks_init(r->tables + (uint64_t)ss->env->ordinal * r->marks_bytes, ss->conf,
        backend_wall_us(&ss->be));
    ss->plan_worker = w;
    w->seen_changes = plan_worker_change(ss);
    init_known(ss, w);
}

void plan_worker_fini(struct sessions *ss)
{
    mem_free((void *)ss->plan_worker->known);
    mem_free(ss->plan_worker);
    ss->plan_worker = NULL;
}

/* Another primary may lack what was changed last: its catalogue is another one, too. While there is
 * none nothing changes: reads go on by what was known of the last one. */
uint64_t plan_worker_change(const struct sessions *ss)
{
    const struct view *v = &ss->view;
    uint64_t epoch = v->primary_epoch;

    if (v->primary == VIEW_NO_NODE && epoch > 0)
        epoch--; /* the loss was counted */
    return atomic_load(&ss->plan_worker->region->nschema_changes) + (epoch << EPOCH_SHIFT);
}

HOT void plan_worker_refresh(struct sessions *ss)
{
    struct plan_worker *w = ss->plan_worker;
    uint64_t now;

    (void)view_refresh(ss->env->shm, &ss->view);
    now = plan_worker_change(ss);
    if (w->primary_epoch != ss->view.primary_epoch) {
        w->primary_epoch = ss->view.primary_epoch;
        memset(w->replayed, 0, sizeof w->replayed); /* positions of another timeline */
    }
    if (now == w->seen_changes)
        return;
    if ((now - w->seen_changes) << (64 - EPOCH_SHIFT) != 0)
        w->changed_us = loop_now_us(ss->loop);
    w->seen_changes = now;
    route_cache_clear(ss->answers);
}

bool plan_worker_is_settled(const struct sessions *ss)
{
    const struct plan_worker *w = ss->plan_worker;

    return w->changed_us == 0 || loop_now_us(ss->loop) - w->changed_us > SETTLE_US;
}

static void make_reads(struct sessions *ss)
{
    struct plan_worker *w = ss->plan_worker;
    struct route_input in = {.conf = ss->conf, .rules = ss->rules, .view = &ss->view};

    route_reads_make(&w->reads, &in);
    w->reads_version = ss->view.version;
    w->reads_number = conf_number(ss->gen);
}

HOT const struct route_reads *plan_worker_reads(struct sessions *ss)
{
    const struct plan_worker *w = ss->plan_worker;

    if (w->reads_version != ss->view.version || w->reads_number != conf_number(ss->gen))
        make_reads(ss);
    return &w->reads;
}

/* An answer that was given before the schema changed is none. */
void plan_worker_learn(struct sessions *ss, struct route_scope scope,
    const struct route_question *q, uint64_t change, int64_t now_us, uint32_t bits)
{
    struct plan_worker *w = ss->plan_worker;
    struct route_answer a = {.change = change, .bits = bits};

    if (plan_worker_change(ss) != change)
        return;
    a.until_us = route_cache_valid_until(ss->answers, q, now_us, bits);
    route_cache_put(ss->answers, scope, q, a.until_us, bits);
    if (w->own_known != NULL)
        route_shared_put(w->own_known, scope, q, &a);
}

WARM int plan_worker_lookup(struct sessions *ss, struct route_scope scope,
    const struct route_question *q, int64_t now_us, uint32_t *bits)
{
    struct plan_worker *w = ss->plan_worker;
    struct route_answer a;

    if (route_cache_get(ss->answers, scope, q, now_us, bits) == 0)
        return 0;
    if (w->known == NULL ||
        route_shared_get(w->known, w->nmarks, scope, q, w->seen_changes, now_us, &a) == -1)
        return -1;
    route_cache_put(ss->answers, scope, q, a.until_us, a.bits);
    *bits = a.bits;
    return 0;
}

void plan_worker_ddl(struct sessions *ss)
{
    atomic_fetch_add(&ss->plan_worker->region->nschema_changes, 1);
}

WARM void plan_note_schema(struct client *c, const struct sql_stmt *s)
{
    if (s != NULL && !route_changes_schema(s))
        return;
    c->plan->did_ddl = true;
    plan_worker_ddl(c->ss);
}

void plan_worker_replayed(struct sessions *ss, int node, uint64_t lsn)
{
    ASSERT(node >= 0 && node < VIEW_MAX_NODES);
    if (lsn > ss->plan_worker->replayed[node])
        ss->plan_worker->replayed[node] = lsn;
}

const uint64_t *plan_worker_replayed_lsn(const struct sessions *ss)
{
    return ss->plan_worker->replayed;
}

const struct route_marks *const *plan_worker_marks(const struct sessions *ss, unsigned *n)
{
    *n = ss->plan_worker->nmarks;
    return ss->plan_worker->marks;
}

WARM void plan_worker_mark(struct sessions *ss, const uint64_t *key, unsigned n)
{
    struct plan_region *r = ss->plan_worker->region;
    void *own = r->tables + (uint64_t)ss->env->ordinal * r->marks_bytes;
    unsigned i;

    for (i = 0; i < n; i++)
        route_marks_add(own, ss->conf, key[i], backend_wall_us(&ss->be));
}

/* Two servers may have processes of the same number: the primary's is meant then, for it is where
 * numbers are read. */
int plan_worker_node_of_pid(void *ctx, int32_t pid)
{
    struct sessions *ss = ctx;
    const struct rows_header *rows = shm_get(ss->env->shm, SHM_LINKS);
    int primary = view_write_node(&ss->view);
    int node = VIEW_NO_NODE;
    uint32_t w;
    uint32_t i;

    for (w = 0; w < rows->nworkers; w++) {
        const struct rows_worker *range = rows_worker(rows, w);

        for (i = 0; i < range->high_water && i < range->count; i++) {
            const struct link_row *row = rows_at(rows, (int64_t)range->first + i);

            if (row->state == LINK_STATE_FREE || row->server_pid != pid)
                continue;
            if (node == VIEW_NO_NODE || row->node == primary)
                node = row->node;
        }
    }
    return node;
}
