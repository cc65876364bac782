/* SPDX-License-Identifier: PostgreSQL
 * orders.c: orders of operators in shared memory: a word for all databases, and a small table by
 * name. Runs in: workers, control. A row is taken once and keeps its name for good, so that readers
 * need no lock: only its words change. Never more than ORDERS_DATABASES names. */
#include "config.h"

#include "ipc/orders.h"

#include <stdatomic.h>
#include <string.h>

#include "base/assert.h"
#include "ipc/rows.h"

enum row_state { ROW_FREE, ROW_TAKEN, ROW_READY };

struct order_row {
    _Atomic uint32_t state; /* enum row_state */
    _Atomic uint32_t flags;
    _Atomic int64_t reconnect_us;
    char database[ROWS_NAME_BYTES];
};

struct orders_region {
    _Atomic uint32_t any; /* 0: nobody ever ordered anything that still holds; the fast answer */
    _Atomic uint32_t flags;
    _Atomic int64_t reconnect_us;
    struct shm_seq giver_seq;
    int32_t giver_place;
    char giver[ROWS_NAME_BYTES]; /* who paused all databases last */
    struct order_row row[ORDERS_DATABASES] __attribute__((aligned(64)));
};

static struct orders_region *orders_region(const struct shm *shm)
{
    return shm_get(shm, SHM_ORDERS);
}

size_t orders_region_bytes(void)
{
    return sizeof(struct orders_region);
}

static bool row_is(const struct order_row *row, struct slice database)
{
    return atomic_load_explicit(&row->state, memory_order_acquire) == ROW_READY &&
           slice_eq(
               slice_of(row->database, strnlen(row->database, sizeof row->database)), database);
}

static struct order_row *find_row(struct orders_region *region, struct slice database)
{
    int i;

    database.n = rows_clip(database.p, database.n, ROWS_NAME_BYTES - 1);
    for (i = 0; i < ORDERS_DATABASES; i++) {
        if (atomic_load_explicit(&region->row[i].state, memory_order_acquire) == ROW_FREE)
            return NULL;
        if (row_is(&region->row[i], database))
            return &region->row[i];
    }
    return NULL;
}

/* Two workers that take a row for the same name at the same time get two: both are read. */
static struct order_row *take_row(struct orders_region *region, struct slice database)
{
    struct order_row *row = find_row(region, database);
    uint32_t expected;
    int i;

    for (i = 0; row == NULL && i < ORDERS_DATABASES; i++) {
        expected = ROW_FREE;
        if (!atomic_compare_exchange_strong(&region->row[i].state, &expected, ROW_TAKEN))
            continue;
        row = &region->row[i];
        rows_set_text(row->database, sizeof row->database, database.p, database.n);
        atomic_store_explicit(&row->state, ROW_READY, memory_order_release);
    }
    return row;
}

static int full(struct err *err)
{
    err_set(err, "53400", "too many databases have been named in commands to pgpool");
    err_detail(err, "The limit is %d.", ORDERS_DATABASES);
    err_hint(err, "Give the command without a database, or restart pgpool.");
    return -1;
}

int orders_set(struct shm *shm, struct slice database, unsigned flags, struct err *err)
{
    struct orders_region *region = orders_region(shm);
    struct order_row *row;

    if (database.n == 0) {
        atomic_fetch_or(&region->flags, flags);
    } else {
        row = take_row(region, database);
        if (row == NULL)
            return full(err);
        atomic_fetch_or(&row->flags, flags);
    }
    atomic_store(&region->any, 1);
    return 0;
}

void orders_clear(struct shm *shm, struct slice database, unsigned flags)
{
    struct orders_region *region = orders_region(shm);
    int i;

    if (database.n == 0) {
        atomic_fetch_and(&region->flags, ~flags);
        return;
    }
    database.n = rows_clip(database.p, database.n, ROWS_NAME_BYTES - 1);
    for (i = 0; i < ORDERS_DATABASES; i++)
        if (row_is(&region->row[i], database))
            atomic_fetch_and(&region->row[i].flags, ~flags);
}

static void raise_stamp(_Atomic int64_t *stamp, int64_t now_us)
{
    int64_t before = atomic_load(stamp);

    while (before < now_us && !atomic_compare_exchange_weak(stamp, &before, now_us))
        ;
}

int orders_set_reconnect(struct shm *shm, struct slice database, int64_t now_us, struct err *err)
{
    struct orders_region *region = orders_region(shm);
    struct order_row *row;

    if (database.n == 0) {
        raise_stamp(&region->reconnect_us, now_us);
    } else {
        row = take_row(region, database);
        if (row == NULL)
            return full(err);
        raise_stamp(&row->reconnect_us, now_us);
    }
    atomic_store(&region->any, 1);
    return 0;
}

const _Atomic uint32_t *orders_mark(const struct shm *shm)
{
    static const _Atomic uint32_t none;
    const struct orders_region *region = orders_region(shm);

    return region == NULL ? &none : &region->any;
}

unsigned orders_flags(const struct shm *shm, struct slice database)
{
    struct orders_region *region = orders_region(shm);
    unsigned flags;
    int i;

    if (region == NULL || atomic_load_explicit(&region->any, memory_order_relaxed) == 0)
        return 0;
    flags = atomic_load(&region->flags);
    if (database.n == 0)
        return flags;
    database.n = rows_clip(database.p, database.n, ROWS_NAME_BYTES - 1);
    for (i = 0; i < ORDERS_DATABASES; i++) {
        if (atomic_load_explicit(&region->row[i].state, memory_order_acquire) == ROW_FREE)
            break;
        if (row_is(&region->row[i], database))
            flags |= atomic_load(&region->row[i].flags);
    }
    return flags;
}

bool orders_want_close(const struct shm *shm, struct slice database, int64_t opened_us)
{
    struct orders_region *region = orders_region(shm);
    int i;

    if (region == NULL || atomic_load_explicit(&region->any, memory_order_relaxed) == 0)
        return false;
    if (opened_us < atomic_load(&region->reconnect_us) ||
        (atomic_load(&region->flags) & ORDER_PAUSE) != 0)
        return true;
    database.n = rows_clip(database.p, database.n, ROWS_NAME_BYTES - 1);
    for (i = 0; i < ORDERS_DATABASES; i++) {
        if (atomic_load_explicit(&region->row[i].state, memory_order_acquire) == ROW_FREE)
            break;
        if (row_is(&region->row[i], database) &&
            (opened_us < atomic_load(&region->row[i].reconnect_us) ||
                (atomic_load(&region->row[i].flags) & ORDER_PAUSE) != 0))
            return true;
    }
    return false;
}

bool orders_next(const struct shm *shm, uint32_t *at, struct order_state *out)
{
    const struct orders_region *region = orders_region(shm);
    const struct order_row *row;

    memset(out, 0, sizeof *out);
    if (region == NULL)
        return false;
    if (*at == 0) {
        ++*at;
        out->flags = atomic_load(&region->flags);
        out->reconnect_us = atomic_load(&region->reconnect_us);
        return true;
    }
    while (*at <= ORDERS_DATABASES) {
        row = &region->row[*at - 1];
        ++*at;
        if (atomic_load_explicit(&row->state, memory_order_acquire) != ROW_READY)
            continue;
        memcpy(out->database, row->database, sizeof out->database);
        out->flags = atomic_load(&row->flags);
        out->reconnect_us = atomic_load(&row->reconnect_us);
        return true;
    }
    return false;
}

void orders_set_giver(struct shm *shm, struct slice user, int place)
{
    struct orders_region *region = orders_region(shm);

    ASSERT(region != NULL);
    shm_write_begin(&region->giver_seq);
    region->giver_place = place;
    rows_set_text(region->giver, sizeof region->giver, user.p, user.n);
    shm_write_end(&region->giver_seq);
}

bool orders_is_giver(const struct shm *shm, struct slice user, int place)
{
    const struct orders_region *region = orders_region(shm);
    char giver[ROWS_NAME_BYTES];
    int32_t giver_place;
    uint32_t n;

    if (user.n == 0 || (orders_flags(shm, slice_of(NULL, 0)) & ORDER_PAUSE) == 0)
        return false;
    do {
        n = shm_read_begin(&region->giver_seq);
        giver_place = region->giver_place;
        memcpy(giver, region->giver, sizeof giver);
    } while (shm_read_retry(&region->giver_seq, n));
    return giver_place == place && slice_eq(user, slice_of(giver, strnlen(giver, sizeof giver)));
}
