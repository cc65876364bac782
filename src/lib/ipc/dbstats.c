/* SPDX-License-Identifier: PostgreSQL
 * dbstats.c: counters per database, a table per worker, summed by the reader. Runs in: workers
 * (writing), whoever answers SHOW or metrics (reading). */
#include "config.h"

#include "ipc/dbstats.h"

#include <string.h>

#include "base/assert.h"
#include "base/hot.h"
#include "sys/clock.h"

#define ROWS_PER_WORKER (DBSTATS_DATABASES + 1) /* the last one is the common row */

struct dbstats_region {
    uint32_t nworkers;
    struct dbstats_row row[];
};

size_t dbstats_region_bytes(int nworkers)
{
    return sizeof(struct dbstats_region) +
           (size_t)nworkers * ROWS_PER_WORKER * sizeof(struct dbstats_row);
}

void dbstats_region_init(struct shm *shm, int nworkers)
{
    struct dbstats_region *region = shm_get(shm, SHM_DBSTATS);

    region->nworkers = (uint32_t)nworkers;
}

static struct slice row_name(const struct dbstats_row *row)
{
    return slice_of(row->database, strnlen(row->database, sizeof row->database));
}

struct dbstats_row *dbstats_row_of(struct shm *shm, int ordinal, struct slice database)
{
    struct dbstats_region *region = shm_get(shm, SHM_DBSTATS);
    struct dbstats_row *row = &region->row[(size_t)ordinal * ROWS_PER_WORKER];
    int i;

    ASSERT((uint32_t)ordinal < region->nworkers);
    database.n = rows_clip(database.p, database.n, ROWS_NAME_BYTES - 1);
    for (i = 0; i < DBSTATS_DATABASES; i++, row++) {
        if (atomic_load_explicit(&row->is_used, memory_order_relaxed) == 0)
            break;
        if (slice_eq(row_name(row), database))
            return row;
    }
    if (i == DBSTATS_DATABASES)
        database = slice_of_str(DBSTATS_OTHER);
    if (atomic_load_explicit(&row->is_used, memory_order_relaxed) == 0) {
        rows_set_text(row->database, sizeof row->database, database.p, database.n);
        atomic_store_explicit(&row->period_us, clock_mono_us(), memory_order_relaxed);
        atomic_store_explicit(&row->is_used, 1, memory_order_release);
    }
    return row;
}

/* The index of the first used row from `i` on; the number of rows when there is none. A worker's
 * rows are used in order: behind the first unused one nothing is read, for that would make the
 * kernel find memory for it. */
static uint32_t next_used(const struct dbstats_region *region, uint32_t i)
{
    uint32_t n = region->nworkers * ROWS_PER_WORKER;

    while (i < n && atomic_load_explicit(&region->row[i].is_used, memory_order_acquire) == 0)
        i += ROWS_PER_WORKER - i % ROWS_PER_WORKER;
    return i < n ? i : n;
}

static void read_counters(const struct dbstats_row *row, uint64_t out[DBSTATS_NCOUNTERS])
{
#define DBSTATS_FIELD(field, column, text)                                                         \
    out[DBSTATS_N_##field] = atomic_load_explicit(&row->field, memory_order_relaxed);
    DBSTATS_COUNTERS(DBSTATS_FIELD)
#undef DBSTATS_FIELD
}

HOT void dbstats_answered(struct dbstats_row *row, struct histogram_value took)
{
    histogram_count(&row->query, took);
    dbstats_add(&row->query_us, (uint64_t)took.us);
}

HOT void dbstats_waited(struct dbstats_row *row, int64_t waited_us)
{
    histogram_add(&row->wait, waited_us);
    dbstats_add(&row->wait_us, (uint64_t)waited_us);
}

HOT void dbstats_ended(struct dbstats_row *row, struct histogram_value took)
{
    histogram_count(&row->transaction, took);
    dbstats_add(&row->transaction_us, (uint64_t)took.us);
}

void dbstats_turn(struct dbstats_row *row, int64_t now_us)
{
    int64_t began_us = atomic_load_explicit(&row->period_us, memory_order_relaxed);
    uint64_t now[DBSTATS_NCOUNTERS];
    int i;

    read_counters(row, now);
    for (i = 0; i < DBSTATS_NCOUNTERS; i++) {
        atomic_store_explicit(&row->last[i],
            now[i] - atomic_load_explicit(&row->at_start[i], memory_order_relaxed),
            memory_order_relaxed);
        atomic_store_explicit(&row->at_start[i], now[i], memory_order_relaxed);
    }
    atomic_store_explicit(&row->last_us, now_us - began_us, memory_order_relaxed);
    atomic_store_explicit(&row->period_us, now_us, memory_order_relaxed);
}

/* A worker turns its periods when it counts: one in which nothing is done is the reader's. */
static void sum_rates(struct dbstats_sum *sum, const struct dbstats_row *row)
{
    int64_t age_us = clock_mono_us() - atomic_load_explicit(&row->period_us, memory_order_relaxed);
    int64_t last_us = atomic_load_explicit(&row->last_us, memory_order_relaxed);
    bool is_present = last_us <= 0 || age_us >= DBSTATS_PERIOD_US;
    double seconds = (double)(is_present ? age_us : last_us) / 1e6;
    uint64_t now[DBSTATS_NCOUNTERS];
    int i;

    if (seconds <= 0)
        return;
    read_counters(row, now);
    for (i = 0; i < DBSTATS_NCOUNTERS; i++)
        sum->per_second[i] +=
            (double)(is_present
                         ? now[i] - atomic_load_explicit(&row->at_start[i], memory_order_relaxed)
                         : atomic_load_explicit(&row->last[i], memory_order_relaxed)) /
            seconds;
}

static void sum_row(struct dbstats_sum *sum, const struct dbstats_row *row)
{
    int i;

#define DBSTATS_FIELD(field, column, text)                                                         \
    sum->field += atomic_load_explicit(&row->field, memory_order_relaxed);
    DBSTATS_COUNTERS(DBSTATS_FIELD)
#undef DBSTATS_FIELD
    for (i = 0; i < PIN_REASON_COUNT; i++)
        sum->npins[i] += atomic_load_explicit(&row->npins[i], memory_order_relaxed);
    histogram_sum_add(&sum->query, &row->query);
    histogram_sum_add(&sum->wait, &row->wait);
    histogram_sum_add(&sum->transaction, &row->transaction);
    sum_rates(sum, row);
}

/* True when a worker before that of row `i` has this database, too: it was summed there. */
static bool is_seen(const struct dbstats_region *region, uint32_t i, struct slice database)
{
    uint32_t first = i - i % ROWS_PER_WORKER;
    uint32_t j;

    for (j = next_used(region, 0); j < first; j = next_used(region, j + 1))
        if (slice_eq(row_name(&region->row[j]), database))
            return true;
    return false;
}

bool dbstats_next(const struct shm *shm, uint32_t *at, struct dbstats_sum *out)
{
    const struct dbstats_region *region = shm_get(shm, SHM_DBSTATS);
    uint32_t n = region == NULL ? 0 : region->nworkers * ROWS_PER_WORKER;
    struct slice database;
    uint32_t i;

    for (i = n == 0 ? 0 : next_used(region, *at); i < n; i = next_used(region, i + 1))
        if (!is_seen(region, i, row_name(&region->row[i])))
            break;
    *at = i + 1;
    if (i >= n)
        return false;
    database = row_name(&region->row[i]);
    memset(out, 0, sizeof *out);
    memcpy(out->database, region->row[i].database, sizeof out->database);
    for (; i < n; i = next_used(region, i + 1))
        if (slice_eq(row_name(&region->row[i]), database))
            sum_row(out, &region->row[i]);
    return true;
}
