/* SPDX-License-Identifier: PostgreSQL
 * known.c: schema changes, tables written lately, answers of the catalogue: the region BALANCE.
 * Runs in: workers, and the supervisor when it plans and fills it. Each worker writes its own
 * tables; the counter of schema changes is only ever added to. */
#include "config.h"

#include <string.h>

#include "base/assert.h"
#include "base/hot.h"
#include "base/mem.h"
#include "cluster/view.h"
#include "config/conf.h"
#include "event/loop.h"
#include "ipc/rows.h"
#include "route/route_marks.h"
#include "route/route_oracle.h"
#include "route/route_reads.h"
#include "route/route_shared.h"

#include "known/known.h"

/* After a change of the schema standbys are not asked about it for so long. */
#define SETTLE_US 10000000
/* In a number for the catalogue: where the primary's epoch stands, above the changes counted. */
#define EPOCH_SHIFT 40

struct known_region {
    _Atomic uint64_t nschema_changes;
    uint64_t marks_bytes; /* of one worker */
    uint64_t known_bytes; /* of one worker; 0: answers are not shared */
    uint32_t nworkers;
    char tables[] __attribute__((aligned(64))); /* marks of all workers, then what they know */
};

/* One per worker process. */
struct known {
    struct known_worker of;
    struct known_region *region;
    uint64_t seen_changes; /* known_change */
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

void known_plan_shm(const struct conf *conf, int nworkers, struct shm_plan *plan)
{
    plan->bytes[SHM_BALANCE] +=
        sizeof(struct known_region) +
        (uint64_t)nworkers * (marks_bytes(conf) + known_bytes(conf, nworkers));
}

void known_init_shm(const struct conf *conf, int nworkers, struct shm *shm)
{
    struct known_region *r = shm_get(shm, SHM_BALANCE);

    r->marks_bytes = marks_bytes(conf);
    r->known_bytes = known_bytes(conf, nworkers);
    r->nworkers = (uint32_t)nworkers;
}

static char *known_of(struct known_region *r, uint32_t worker)
{
    return r->tables + r->nworkers * r->marks_bytes + worker * r->known_bytes;
}

static void init_shared(struct known *k, const struct conf *conf)
{
    struct known_region *r = k->region;
    const struct route_shared **all;
    uint32_t i;

    if (r->known_bytes == 0)
        return;
    all = mem_alloc(r->nworkers * sizeof *all);
    for (i = 0; i < r->nworkers; i++)
        all[i] = (const struct route_shared *)(const void *)known_of(r, i);
    k->known = all;
    k->own_known = route_shared_init(known_of(r, (uint32_t)k->of.ordinal), conf);
}

struct known *known_new(const struct known_worker *of, const struct conf *conf, int64_t wall_us)
{
    struct known_region *r = shm_get(of->shm, SHM_BALANCE);
    struct known *k = mem_alloc_zero(sizeof *k + r->nworkers * sizeof(struct route_marks *));
    unsigned i;

    k->of = *of;
    k->region = r;
    k->nmarks = r->nworkers;
    for (i = 0; i < r->nworkers; i++)
        k->marks[i] = (const struct route_marks *)(const void *)(r->tables + i * r->marks_bytes);
    (void)route_marks_init(r->tables + (uint64_t)of->ordinal * r->marks_bytes, conf, wall_us);
    k->seen_changes = known_change(k);
    init_shared(k, conf);
    return k;
}

void known_free(struct known **k)
{
    if (*k != NULL)
        mem_free((void *)(*k)->known);
    mem_free(*k);
    *k = NULL;
}

/* Another primary may lack what was changed last: its catalogue is another one, too. While there is
 * none nothing changes: reads go on by what was known of the last one. */
uint64_t known_change(const struct known *k)
{
    const struct view *v = k->of.view;
    uint64_t epoch = v->primary_epoch;

    if (v->primary == VIEW_NO_NODE && epoch > 0)
        epoch--; /* the loss was counted */
    return atomic_load(&k->region->nschema_changes) + (epoch << EPOCH_SHIFT);
}

HOT void known_refresh(struct known *k)
{
    const struct view *view = k->of.view;
    uint64_t now;

    (void)view_refresh(k->of.shm, k->of.view);
    now = known_change(k);
    if (k->primary_epoch != view->primary_epoch) {
        k->primary_epoch = view->primary_epoch;
        memset(k->replayed, 0, sizeof k->replayed); /* positions of another timeline */
    }
    if (now == k->seen_changes)
        return;
    if ((now - k->seen_changes) << (64 - EPOCH_SHIFT) != 0)
        k->changed_us = loop_now_us(k->of.loop);
    k->seen_changes = now;
    route_cache_clear(k->of.answers);
}

bool known_is_settled(const struct known *k)
{
    return k->changed_us == 0 || loop_now_us(k->of.loop) - k->changed_us > SETTLE_US;
}

static void make_reads(struct known *k, const struct conf_gen *gen, const struct route_rules *rules)
{
    struct route_input in = {.conf = conf_of(gen), .rules = rules, .view = k->of.view};

    route_reads_make(&k->reads, &in);
    k->reads_version = k->of.view->version;
    k->reads_number = conf_number(gen);
}

HOT const struct route_reads *known_reads(
    struct known *k, const struct conf_gen *gen, const struct route_rules *rules)
{
    if (k->reads_version != k->of.view->version || k->reads_number != conf_number(gen))
        make_reads(k, gen, rules);
    return &k->reads;
}

/* An answer that was given before the schema changed is none. */
void known_learn(struct known *k, struct route_scope scope, const struct route_question *q,
    uint64_t change, int64_t now_us, uint32_t bits)
{
    struct route_answer a = {.change = change, .bits = bits};

    if (known_change(k) != change)
        return;
    a.until_us = route_cache_valid_until(k->of.answers, q, now_us, bits);
    route_cache_put(k->of.answers, scope, q, a.until_us, bits);
    if (k->own_known != NULL)
        route_shared_put(k->own_known, scope, q, &a);
}

WARM int known_lookup(struct known *k, struct route_scope scope, const struct route_question *q,
    int64_t now_us, uint32_t *bits)
{
    struct route_answer a;

    if (route_cache_get(k->of.answers, scope, q, now_us, bits) == 0)
        return 0;
    if (k->known == NULL ||
        route_shared_get(k->known, k->nmarks, scope, q, k->seen_changes, now_us, &a) == -1)
        return -1;
    route_cache_put(k->of.answers, scope, q, a.until_us, a.bits);
    *bits = a.bits;
    return 0;
}

void known_ddl(struct known *k)
{
    atomic_fetch_add(&k->region->nschema_changes, 1);
}

void known_replayed(struct known *k, int node, uint64_t lsn)
{
    ASSERT(node >= 0 && node < VIEW_MAX_NODES);
    if (lsn > k->replayed[node])
        k->replayed[node] = lsn;
}

const uint64_t *known_replayed_lsn(const struct known *k)
{
    return k->replayed;
}

const struct route_marks *const *known_marks(const struct known *k, unsigned *n)
{
    *n = k->nmarks;
    return k->marks;
}

WARM void known_mark(
    struct known *k, const struct conf *conf, const uint64_t *key, unsigned n, int64_t wall_us)
{
    struct known_region *r = k->region;
    void *own = r->tables + (uint64_t)k->of.ordinal * r->marks_bytes;
    unsigned i;

    for (i = 0; i < n; i++)
        route_marks_add(own, conf, key[i], wall_us);
}

/* Two servers may have processes of the same number: the primary's is meant then, for it is where
 * numbers are read. */
int known_node_of_pid(void *ctx, int32_t pid)
{
    const struct known *k = ctx;
    const struct rows_header *rows = shm_get(k->of.shm, SHM_LINKS);
    int primary = view_write_node(k->of.view);
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
