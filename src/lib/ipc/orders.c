/* SPDX-License-Identifier: PostgreSQL
 * orders.c: orders of operators in shared memory: a word for all databases, and a table by name.
 * Runs in: workers, control; the supervisor takes back what a dead one had only begun. A row is
 * taken once and keeps its name for good, so that readers need no lock: only its words change. A
 * name is looked for from its hash on, up to the first row that is free. Never more than
 * ORDERS_DATABASES names. */
#include "config.h"

#include "ipc/orders.h"

#include <stdatomic.h>
#include <string.h>

#include "base/assert.h"
#include "base/hash.h"
#include "ipc/rows.h"

enum row_state { ROW_FREE, ROW_TAKEN, ROW_READY };

/* What holds for one database, or for all. */
struct order_words {
    _Atomic uint32_t flags;
    _Atomic uint64_t ticket; /* of who waits until the pause is complete; 0: nobody */
    _Atomic int64_t reconnect_us;
};

struct order_row {
    _Atomic uint32_t state; /* enum row_state */
    struct order_words words;
    char database[ROWS_NAME_BYTES];
};

struct orders_region {
    _Atomic uint32_t any; /* 0: nobody ever ordered anything that still holds; the fast answer */
    _Atomic uint32_t ntickets;
    struct order_words all;
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

/* The rows of one name, one after the other. */
struct row_walk {
    struct orders_region *region;
    struct slice database;
    uint32_t first;
    uint32_t n; /* rows looked at */
};

static struct row_walk walk_rows(struct orders_region *region, struct slice database)
{
    struct row_walk w = {.region = region};

    w.database = slice_of(database.p, rows_clip(database.p, database.n, ROWS_NAME_BYTES - 1));
    w.first = (uint32_t)hash_bytes(w.database.p, w.database.n, 0);
    return w;
}

static struct order_row *row_at(const struct row_walk *w)
{
    return &w->region->row[(w->first + w->n) % ORDERS_DATABASES];
}

static struct order_row *next_row(struct row_walk *w)
{
    struct order_row *row;

    for (; w->n < ORDERS_DATABASES; w->n++) {
        row = row_at(w);
        if (atomic_load_explicit(&row->state, memory_order_acquire) == ROW_FREE)
            return NULL;
        if (row_is(row, w->database)) {
            w->n++;
            return row;
        }
    }
    return NULL;
}

/* Two workers that take a row for the same name at the same time get two: both are read. */
static struct order_row *take_row(struct orders_region *region, struct slice database)
{
    struct row_walk w = walk_rows(region, database);
    struct order_row *row = next_row(&w);
    uint32_t expected;

    for (; row == NULL && w.n < ORDERS_DATABASES; w.n++) {
        expected = ROW_FREE;
        if (!atomic_compare_exchange_strong(&row_at(&w)->state, &expected, ROW_TAKEN))
            continue;
        row = row_at(&w);
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

/* NULL and *err: there is no room for the name. */
static struct order_words *take_words(
    struct orders_region *region, struct slice database, struct err *err)
{
    struct order_row *row;

    if (database.n == 0)
        return &region->all;
    row = take_row(region, database);
    if (row == NULL)
        (void)full(err);
    return row == NULL ? NULL : &row->words;
}

/* Who waits for a pause to be complete takes back its own, not what others have ordered since. */
static void forget_tickets(struct orders_region *region, struct slice database)
{
    struct row_walk w = walk_rows(region, database);
    struct order_row *row;

    if (database.n == 0)
        atomic_store(&region->all.ticket, 0);
    else
        while ((row = next_row(&w)) != NULL)
            atomic_store(&row->words.ticket, 0);
}

int orders_set(struct shm *shm, struct slice database, unsigned flags, struct err *err)
{
    struct orders_region *region = orders_region(shm);
    struct order_words *words = take_words(region, database, err);

    if (words == NULL)
        return -1;
    if ((flags & ORDER_PAUSE) != 0)
        forget_tickets(region, database);
    atomic_fetch_or(&words->flags, flags);
    atomic_store(&region->any, 1);
    return 0;
}

static void clear_flags(struct order_words *words, unsigned flags)
{
    if ((flags & ORDER_PAUSE) != 0)
        atomic_store(&words->ticket, 0);
    atomic_fetch_and(&words->flags, ~flags);
}

void orders_clear(struct shm *shm, struct slice database, unsigned flags)
{
    struct orders_region *region = orders_region(shm);
    struct row_walk w = walk_rows(region, database);
    struct order_row *row;

    if (database.n == 0)
        clear_flags(&region->all, flags);
    else
        while ((row = next_row(&w)) != NULL)
            clear_flags(&row->words, flags);
}

/* ---- pauses that are not complete ---- */

uint64_t orders_take_ticket(struct shm *shm, int slot)
{
    return (uint64_t)(slot + 1) << 32 | (atomic_fetch_add(&orders_region(shm)->ntickets, 1) + 1);
}

int orders_set_pause(struct shm *shm, struct slice database, uint64_t ticket, struct err *err)
{
    struct orders_region *region = orders_region(shm);
    struct order_words *words = take_words(region, database, err);

    if (words == NULL)
        return -1;
    atomic_store(&words->ticket, ticket);
    atomic_fetch_or(&words->flags, ORDER_PAUSE);
    atomic_store(&region->any, 1);
    return 0;
}

/* The words of the pause that `ticket` is about; NULL: it is over, or another's. */
static struct order_words *words_of_ticket(
    struct orders_region *region, struct slice database, uint64_t ticket)
{
    struct row_walk w = walk_rows(region, database);
    struct order_row *row;

    if (database.n == 0)
        return atomic_load(&region->all.ticket) == ticket ? &region->all : NULL;
    while ((row = next_row(&w)) != NULL)
        if (atomic_load(&row->words.ticket) == ticket)
            return &row->words;
    return NULL;
}

bool orders_has_ticket(const struct shm *shm, struct slice database, uint64_t ticket)
{
    return words_of_ticket(orders_region(shm), database, ticket) != NULL;
}

void orders_end_ticket(struct shm *shm, struct slice database, uint64_t ticket)
{
    struct order_words *words = words_of_ticket(orders_region(shm), database, ticket);

    if (words != NULL)
        (void)atomic_compare_exchange_strong(&words->ticket, &ticket, 0);
}

static bool reclaim_words(struct order_words *words, int slot)
{
    uint64_t ticket = atomic_load(&words->ticket);

    if (ticket >> 32 != (uint64_t)slot + 1)
        return false;
    clear_flags(words, ORDER_PAUSE);
    return true;
}

int orders_reclaim(struct shm *shm, int slot)
{
    struct orders_region *region = orders_region(shm);
    int n = 0;
    int i;

    if (region == NULL || atomic_load(&region->any) == 0)
        return 0;
    n += reclaim_words(&region->all, slot);
    for (i = 0; i < ORDERS_DATABASES; i++)
        n += reclaim_words(&region->row[i].words, slot);
    return n;
}

/* ---- what holds ---- */

static void raise_stamp(_Atomic int64_t *stamp, int64_t now_us)
{
    int64_t before = atomic_load(stamp);

    while (before < now_us && !atomic_compare_exchange_weak(stamp, &before, now_us))
        ;
}

int orders_set_reconnect(struct shm *shm, struct slice database, int64_t now_us, struct err *err)
{
    struct orders_region *region = orders_region(shm);
    struct order_words *words = take_words(region, database, err);

    if (words == NULL)
        return -1;
    raise_stamp(&words->reconnect_us, now_us);
    atomic_store(&region->any, 1);
    return 0;
}

const _Atomic uint32_t *orders_mark(const struct shm *shm)
{
    static const _Atomic uint32_t none;
    const struct orders_region *region = orders_region(shm);

    return region == NULL ? &none : &region->any;
}

unsigned orders_own_flags(const struct shm *shm, struct slice database)
{
    struct orders_region *region = orders_region(shm);
    struct row_walk w;
    struct order_row *row;
    unsigned flags = 0;

    if (region == NULL || atomic_load_explicit(&region->any, memory_order_relaxed) == 0)
        return 0;
    if (database.n == 0)
        return atomic_load(&region->all.flags);
    w = walk_rows(region, database);
    while ((row = next_row(&w)) != NULL)
        flags |= atomic_load(&row->words.flags);
    return flags;
}

unsigned orders_flags(const struct shm *shm, struct slice database)
{
    return orders_own_flags(shm, slice_of("", 0)) |
           (database.n == 0 ? 0 : orders_own_flags(shm, database));
}

static bool words_want_close(const struct order_words *words, int64_t opened_us)
{
    return opened_us < atomic_load(&words->reconnect_us) ||
           (atomic_load(&words->flags) & ORDER_PAUSE) != 0;
}

bool orders_want_close(const struct shm *shm, struct slice database, int64_t opened_us)
{
    struct orders_region *region = orders_region(shm);
    struct row_walk w;
    struct order_row *row;

    if (region == NULL || atomic_load_explicit(&region->any, memory_order_relaxed) == 0)
        return false;
    if (words_want_close(&region->all, opened_us))
        return true;
    w = walk_rows(region, database);
    while ((row = next_row(&w)) != NULL)
        if (words_want_close(&row->words, opened_us))
            return true;
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
        out->flags = atomic_load(&region->all.flags);
        out->reconnect_us = atomic_load(&region->all.reconnect_us);
        return true;
    }
    while (*at <= ORDERS_DATABASES) {
        row = &region->row[*at - 1];
        ++*at;
        if (atomic_load_explicit(&row->state, memory_order_acquire) != ROW_READY)
            continue;
        memcpy(out->database, row->database, sizeof out->database);
        out->flags = atomic_load(&row->words.flags);
        out->reconnect_us = atomic_load(&row->words.reconnect_us);
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
