/* SPDX-License-Identifier: PostgreSQL
 * limits.c: taking and giving of links and clients within the limits per pool, database, user and
 * node.
 * Runs in: workers; the supervisor reclaims. A worker's part of every sum is in its share, so that
 * its death is undone by subtracting. */
#include "config.h"

#include "backend/limits.h"

#include <string.h>

#include "backend/quota.h"
#include "base/assert.h"
#include "config/pools_conf.h"

#include "limits_int.h"

_Static_assert(QUOTA_MAX_NODES == POOLS_MAX_NODES, "every node that settings can name");

/* ---- pools ---- */

int limits_attach(struct shm *shm, int ordinal, int node, struct slice user, struct slice database,
    struct limits_ids *ids)
{
    static const enum limits_kind kinds[] = {LIMITS_POOL, LIMITS_DB, LIMITS_USER};
    struct limits_region *r = limits_region(shm);
    struct limits_key key;
    int id[3];
    int n;
    int i;

    limits_lock(r);
    for (n = 0; n < 3; n++) {
        key = limits_key_of(kinds[n], node, user, database);
        id[n] = limits_find(r, &key);
        if (id[n] == LIMITS_NO_ENTRY)
            break;
        limits_share(r, id[n], ordinal)->refs++;
    }
    for (i = 0; n < 3 && i < n; i++) {
        limits_share(r, id[i], ordinal)->refs--;
        limits_free_if_unused(r, id[i]);
    }
    limits_unlock(r);
    if (n < 3)
        return -1;
    *ids = (struct limits_ids){id[0], id[1], id[2]};
    return 0;
}

void limits_detach(struct shm *shm, int ordinal, const struct limits_ids *ids)
{
    struct limits_region *r = limits_region(shm);
    int id[3] = {ids->pool, ids->db, ids->user};
    int i;

    if (ids->pool == LIMITS_NO_ENTRY)
        return;
    limits_lock(r);
    for (i = 0; i < 3; i++) {
        limits_share(r, id[i], ordinal)->refs--;
        limits_free_if_unused(r, id[i]);
    }
    limits_unlock(r);
}

/* ---- links ---- */

static bool is_full(struct limits_region *r, int id, int max, int keep)
{
    struct limits_entry *e = limits_entry(r, id);

    if (max <= 0 || atomic_load(&e->used) + keep < max)
        return false;
    e->refused++;
    return true;
}

static void hold(struct limits_region *r, int id, int ordinal, int delta)
{
    struct limits_entry *e = limits_entry(r, id);
    int32_t used = atomic_fetch_add(&e->used, delta) + delta;

    limits_share(r, id, ordinal)->held += delta;
    if (used > e->peak)
        e->peak = used;
}

static enum limits_verdict try_take(struct limits_region *r, struct shm *shm, int ordinal, int node,
    const struct limits_ids *ids, const struct limits_max *max, int64_t now_us)
{
    if (is_full(r, ids->pool, max->pool, max->keep_pool))
        return LIMITS_AT_POOL;
    if (is_full(r, ids->db, max->db, max->keep_db))
        return LIMITS_AT_DB;
    if (is_full(r, ids->user, max->user, max->keep_user))
        return LIMITS_AT_USER;
    if (!quota_may_open(shm, node, max->connecting, now_us))
        return LIMITS_AT_CONNECT;
    if (!quota_take(shm, node, ordinal, max->keep_node))
        return LIMITS_AT_NODE;
    quota_open_begin(shm, node, ordinal);
    hold(r, ids->pool, ordinal, 1);
    hold(r, ids->db, ordinal, 1);
    hold(r, ids->user, ordinal, 1);
    return LIMITS_OK;
}

enum limits_verdict limits_take_link(struct shm *shm, int ordinal, int node,
    const struct limits_ids *ids, const struct limits_max *max, int64_t now_us)
{
    struct limits_region *r = limits_region(shm);
    enum limits_verdict v;

    if (ids->pool == LIMITS_NO_ENTRY)
        return LIMITS_NO_ROOM;
    limits_lock(r);
    v = try_take(r, shm, ordinal, node, ids, max, now_us);
    limits_unlock(r);
    return v;
}

bool limits_open_moved(struct shm *shm, int ordinal, int node, int connecting, int64_t now_us)
{
    struct limits_region *r = limits_region(shm);
    bool may;

    limits_lock(r);
    may = quota_may_open(shm, node, connecting, now_us);
    if (may)
        quota_open_begin(shm, node, ordinal);
    limits_unlock(r);
    return may;
}

void limits_opened(struct shm *shm, int ordinal, int node)
{
    struct limits_region *r = limits_region(shm);

    limits_lock(r);
    quota_open_end(shm, node, ordinal);
    limits_unlock(r);
}

void limits_give_link(struct shm *shm, int ordinal, int node, const struct limits_ids *ids)
{
    struct limits_region *r = limits_region(shm);

    limits_lock(r);
    quota_give(shm, node, ordinal);
    hold(r, ids->pool, ordinal, -1);
    hold(r, ids->db, ordinal, -1);
    hold(r, ids->user, ordinal, -1);
    limits_unlock(r);
}

static void move(struct limits_region *r, int id, int from, int to)
{
    limits_share(r, id, from)->held--;
    limits_share(r, id, to)->held++;
}

static void move_all(
    struct shm *shm, int node, const struct limits_ids *ids, int from_ordinal, int to_ordinal)
{
    struct limits_region *r = limits_region(shm);

    quota_move(shm, node, from_ordinal, to_ordinal);
    move(r, ids->pool, from_ordinal, to_ordinal);
    move(r, ids->db, from_ordinal, to_ordinal);
    move(r, ids->user, from_ordinal, to_ordinal);
}

bool limits_move_link(struct shm *shm, int node, const struct limits_ids *ids, int from_ordinal,
    int to_ordinal, bool (*hand_over)(void *ctx), void *ctx)
{
    struct limits_region *r = limits_region(shm);
    bool done;

    limits_lock(r);
    move_all(shm, node, ids, from_ordinal, to_ordinal);
    done = hand_over(ctx);
    if (!done)
        move_all(shm, node, ids, to_ordinal, from_ordinal);
    limits_unlock(r);
    return done;
}

int limits_used(const struct shm *shm, int id)
{
    return id == LIMITS_NO_ENTRY ? 0 : atomic_load(&limits_entry(limits_region(shm), id)->used);
}

/* ---- clients ---- */

static int client_hold(
    struct limits_region *r, int ordinal, const struct limits_key *key, int max, int *id)
{
    *id = limits_find(r, key);
    if (*id == LIMITS_NO_ENTRY)
        return -1;
    if (is_full(r, *id, max, 0)) {
        *id = LIMITS_NO_ENTRY;
        return -1;
    }
    hold(r, *id, ordinal, 1);
    return 0;
}

static void client_let_go(struct limits_region *r, int ordinal, int32_t *ticket)
{
    int id = *ticket - 1;

    if (id == LIMITS_NO_ENTRY)
        return;
    hold(r, id, ordinal, -1);
    limits_free_if_unused(r, id);
    *ticket = 0;
}

/* Which of the limits it was is told by what has room. */
static void client_refuse(
    struct err *err, bool is_table, bool is_db, int max, struct slice name, int capacity)
{
    if (is_table) {
        err_set_fatal(err, "53300", "too many different users and databases are connected");
        err_detail(err, "The table of limits has %d entries, and all are in use.", capacity);
        err_hint(err, "Raise max_clients, by which the size of the table goes, and restart.");
        return;
    }
    err_set_fatal(err, "53300", "too many clients of %s \"%.*s\"", is_db ? "database" : "user",
        (int)(name.n < LIMITS_NAME_MAX ? name.n : LIMITS_NAME_MAX), name.p);
    err_hint(err, "SHOW POOL_LIMITS and SHOW POOL_CLIENTS tell who has them.");
    err_detail(
        err, "%s is %d.", is_db ? "max_db_client_connections" : "max_user_client_connections", max);
}

int limits_client_add(struct shm *shm, int ordinal, struct slice database, struct slice user,
    int max_db, int max_user, struct limits_ticket *ticket, struct err *err)
{
    struct limits_region *r = limits_region(shm);
    struct limits_key db_key = limits_key_of(LIMITS_DB_CLIENTS, -1, user, database);
    struct limits_key user_key = limits_key_of(LIMITS_USER_CLIENTS, -1, user, database);
    uint64_t overflows;
    bool is_table;
    int db = LIMITS_NO_ENTRY;
    int id;

    limits_lock(r);
    overflows = atomic_load(&r->overflows);
    if (client_hold(r, ordinal, &db_key, max_db, &db) == 0 &&
        client_hold(r, ordinal, &user_key, max_user, &id) == 0) {
        ticket->db = db + 1;
        ticket->user = id + 1;
        limits_unlock(r);
        return 0;
    }
    is_table = atomic_load(&r->overflows) != overflows;
    ticket->db = db + 1;
    client_let_go(r, ordinal, &ticket->db);
    limits_unlock(r);
    client_refuse(err, is_table, db == LIMITS_NO_ENTRY, db == LIMITS_NO_ENTRY ? max_db : max_user,
        db == LIMITS_NO_ENTRY ? database : user, r->capacity);
    return -1;
}

void limits_client_sub(struct shm *shm, int ordinal, struct limits_ticket *ticket)
{
    struct limits_region *r = limits_region(shm);

    if (ticket->db == 0 && ticket->user == 0)
        return;
    limits_lock(r);
    client_let_go(r, ordinal, &ticket->db);
    client_let_go(r, ordinal, &ticket->user);
    limits_unlock(r);
}

static void move_ticket(
    struct limits_region *r, const struct limits_ticket *ticket, int from_ordinal, int to_ordinal)
{
    if (ticket->db != 0)
        move(r, ticket->db - 1, from_ordinal, to_ordinal);
    if (ticket->user != 0)
        move(r, ticket->user - 1, from_ordinal, to_ordinal);
}

bool limits_move_client(struct shm *shm, const struct limits_ticket *ticket, int from_ordinal,
    int to_ordinal, bool (*hand_over)(void *ctx), void *ctx)
{
    struct limits_region *r = limits_region(shm);
    bool done;

    limits_lock(r);
    move_ticket(r, ticket, from_ordinal, to_ordinal);
    done = hand_over(ctx);
    if (!done)
        move_ticket(r, ticket, to_ordinal, from_ordinal);
    limits_unlock(r);
    return done;
}

/* ---- what workers publish ---- */

/* The count of workers goes up before and down after: never too small, see quota_set_oldest. */
void limits_set_oldest(struct shm *shm, int id, int ordinal, int64_t since_us)
{
    struct limits_region *r = limits_region(shm);
    struct limits_share *s;
    bool was;

    if (id == LIMITS_NO_ENTRY)
        return;
    s = limits_share(r, id, ordinal);
    was = atomic_load_explicit(&s->oldest_us, memory_order_relaxed) != 0;
    if (!was && since_us != 0)
        atomic_fetch_add(&limits_entry(r, id)->nwaiting, 1);
    (void)atomic_exchange(&s->oldest_us, since_us);
    if (was && since_us == 0)
        atomic_fetch_sub(&limits_entry(r, id)->nwaiting, 1);
}

void limits_set_waiting(struct shm *shm, int id, int ordinal, uint32_t nclients)
{
    if (id != LIMITS_NO_ENTRY)
        atomic_store_explicit(&limits_share(limits_region(shm), id, ordinal)->nclients,
            (int32_t)nclients, memory_order_relaxed);
}

static int entry_waiting(struct limits_region *r, int id)
{
    int sum = 0;
    int w;

    for (w = 0; w < r->nworkers; w++)
        sum += atomic_load(&limits_share(r, id, w)->nclients);
    return sum;
}

int limits_node_waiting(const struct shm *shm, int node)
{
    struct limits_region *r = limits_region(shm);
    int sum = 0;
    int i;

    limits_lock(r);
    for (i = 0; i < atomic_load(&r->high_water); i++)
        if (limits_entry(r, i)->kind == LIMITS_POOL && limits_entry(r, i)->node == node)
            sum += entry_waiting(r, i);
    limits_unlock(r);
    return sum;
}

const _Atomic int32_t *limits_waiting_cell(const struct shm *shm, int id)
{
    return &limits_entry(limits_region(shm), id)->nwaiting;
}

int limits_waiting_workers(const struct shm *shm, int id)
{
    if (id == LIMITS_NO_ENTRY)
        return 0;
    return atomic_load(&limits_entry(limits_region(shm), id)->nwaiting);
}

bool limits_waits(const struct shm *shm, int id, int ordinal)
{
    return id != LIMITS_NO_ENTRY &&
           atomic_load(&limits_share(limits_region(shm), id, ordinal)->oldest_us) != 0;
}

int limits_find_oldest(const struct shm *shm, int id, int but_not, int64_t *since_us)
{
    struct limits_region *r = limits_region(shm);
    int best = -1;
    int64_t t;
    int w;

    if (id == LIMITS_NO_ENTRY)
        return -1;
    for (w = 0; w < r->nworkers; w++) {
        if (w == but_not)
            continue;
        t = atomic_load_explicit(&limits_share(r, id, w)->oldest_us, memory_order_relaxed);
        if (t != 0 && (best == -1 || t < *since_us)) {
            best = w;
            *since_us = t;
        }
    }
    return best;
}

bool limits_is_busier(const struct shm *shm, int id, int other, int own)
{
    struct limits_region *r = limits_region(shm);
    struct limits_share *theirs;
    struct limits_share *ours;
    int64_t links;
    int64_t own_links;
    int64_t waiting;
    int64_t own_waiting;

    if (id == LIMITS_NO_ENTRY)
        return true;
    theirs = limits_share(r, id, other);
    ours = limits_share(r, id, own);
    links = atomic_load_explicit(&theirs->held, memory_order_relaxed);
    own_links = atomic_load_explicit(&ours->held, memory_order_relaxed);
    waiting = atomic_load_explicit(&theirs->nclients, memory_order_relaxed);
    own_waiting = atomic_load_explicit(&ours->nclients, memory_order_relaxed);
    return links == 0 || 2 * waiting * own_links > (3 * own_waiting + 2 * own_links) * links;
}

bool limits_has_links(const struct shm *shm, int id, int ordinal)
{
    return id != LIMITS_NO_ENTRY &&
           atomic_load_explicit(
               &limits_share(limits_region(shm), id, ordinal)->held, memory_order_relaxed) > 0;
}

void limits_set_keeps(struct shm *shm, int id, int ordinal, bool keeps)
{
    if (id != LIMITS_NO_ENTRY)
        atomic_store_explicit(&limits_share(limits_region(shm), id, ordinal)->keeps, keeps ? 1 : 0,
            memory_order_relaxed);
}

bool limits_keeps(const struct shm *shm, int id, int ordinal)
{
    return id == LIMITS_NO_ENTRY ||
           atomic_load_explicit(
               &limits_share(limits_region(shm), id, ordinal)->keeps, memory_order_relaxed) != 0;
}

int limits_surplus(const struct shm *shm, int id, int other, int own)
{
    struct limits_region *r = limits_region(shm);
    const struct limits_share *theirs = limits_share(r, id, other);
    const struct limits_share *ours = limits_share(r, id, own);
    int64_t links = atomic_load_explicit(&theirs->held, memory_order_relaxed);
    int64_t own_links = atomic_load_explicit(&ours->held, memory_order_relaxed);
    int64_t waiting = atomic_load_explicit(&theirs->nclients, memory_order_relaxed);
    int64_t own_waiting = atomic_load_explicit(&ours->nclients, memory_order_relaxed);
    int64_t all = links == 0 ? limits_used(shm, id) : links + own_links;
    int64_t n = waiting * own_links - (links == 0 ? 0 : own_waiting * links);

    return n <= 0 || all <= 0 ? 1 : (int)(n / all) + 1;
}

bool limits_is_long_uneven(struct limits_scale *scale, bool is_uneven, int64_t now_us)
{
    int64_t passed_us = now_us - scale->looked_us;

    if (passed_us > LIMITS_LOOK_US)
        passed_us = LIMITS_LOOK_US;
    scale->looked_us = now_us;
    scale->uneven_us += is_uneven ? passed_us : -passed_us;
    if (scale->uneven_us < 0)
        scale->uneven_us = 0;
    if (scale->uneven_us < LIMITS_UNEVEN_US)
        return false;
    scale->uneven_us = LIMITS_UNEVEN_US;
    return is_uneven;
}

bool limits_may_swap(struct shm *shm, int id, int64_t now_us, int64_t least_us)
{
    _Atomic int64_t *cell;
    int64_t last_us;

    if (id == LIMITS_NO_ENTRY)
        return true;
    cell = &limits_entry(limits_region(shm), id)->swapped_us;
    last_us = atomic_load(cell);
    return now_us - last_us >= least_us && atomic_compare_exchange_strong(cell, &last_us, now_us);
}

_Atomic int32_t *limits_idle_cell(struct shm *shm, int id, int ordinal)
{
    if (id == LIMITS_NO_ENTRY)
        return NULL;
    return &limits_share(limits_region(shm), id, ordinal)->nidle;
}

int limits_find_idle(const struct shm *shm, int id, int but_not)
{
    struct limits_region *r = limits_region(shm);
    int best = -1;
    int most = 0;
    int n;
    int w;

    if (id == LIMITS_NO_ENTRY)
        return -1;
    for (w = 0; w < r->nworkers; w++) {
        n = w == but_not ? 0 : atomic_load(&limits_share(r, id, w)->nidle);
        if (n > most) {
            best = w;
            most = n;
        }
    }
    return best;
}

/* ---- a dead worker ---- */

static void reclaim_entry(struct limits_region *r, int id, int ordinal)
{
    struct limits_entry *e = limits_entry(r, id);
    struct limits_share *s = limits_share(r, id, ordinal);

    s->held = 0;
    limits_count_anew(r, id); /* it may have died between two counters */
    if (atomic_exchange(&s->oldest_us, 0) != 0)
        atomic_fetch_sub(&e->nwaiting, 1);
    s->refs = 0;
    atomic_store(&s->nidle, 0);
    atomic_store(&s->nclients, 0);
    atomic_store(&s->keeps, 0);
    limits_free_if_unused(r, id);
}

void limits_reclaim(struct shm *shm, int ordinal, void (*drop_mail)(void *ctx), void *ctx)
{
    struct limits_region *r = limits_region(shm);
    int i;

    ASSERT(ordinal >= 0 && ordinal < r->nworkers);
    limits_lock(r);
    drop_mail(ctx);
    quota_reclaim(shm, ordinal);
    for (i = 0; i < atomic_load(&r->high_water); i++)
        reclaim_entry(r, i, ordinal);
    limits_unlock(r);
}

/* ---- SHOW ---- */

int limits_high_water(const struct shm *shm)
{
    return atomic_load(&limits_region(shm)->high_water);
}

bool limits_copy(const struct shm *shm, int id, struct limits_row *out)
{
    struct limits_region *r = limits_region(shm);
    const struct limits_entry *e;

    memset(out, 0, sizeof *out);
    if (id < 0 || id >= limits_high_water(shm))
        return false;
    limits_lock(r);
    e = limits_entry(r, id);
    out->kind = e->kind;
    out->node = e->node;
    out->used = atomic_load(&e->used);
    out->waiting = entry_waiting(r, id);
    out->peak = e->peak;
    out->refused = e->refused;
    memcpy(out->user, e->user, sizeof out->user);
    memcpy(out->database, e->database, sizeof out->database);
    limits_unlock(r);
    return out->kind != LIMITS_FREE;
}

uint64_t limits_overflows(const struct shm *shm)
{
    return atomic_load(&limits_region(shm)->overflows);
}

int limits_capacity(const struct shm *shm)
{
    return limits_region(shm)->capacity;
}

int limits_nworkers(const struct shm *shm)
{
    return limits_region(shm)->nworkers;
}
