/* SPDX-License-Identifier: PostgreSQL
 * test_cache_store.c: results are kept, found, driven out and given up as the header says. */
#include "config.h"

#include <unistd.h>

#include "cache/cache_expire.h"
#include "cache_test.h"
#include "config/conf.h"

#include "run_suite.h"

START_TEST(a_result_is_found_byte_by_byte)
{
    struct cache *c = test_cache_new(MB, 1000, 100000, 65536, 2);
    struct test_key a;
    struct test_key b;
    struct cache_hit hit;
    size_t sizes[] = {0, 1, 7, 8, 9, 100, 4096, 60000};
    unsigned i;

    for (i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
        ck_assert_int_eq(test_put(c, test_key(&a, "size", i), i, sizes[i]), CACHE_FILL_OK);
    for (i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        ck_assert_int_eq(test_get(c, test_key(&a, "size", i), i), 0);
        ck_assert(cache_find(c, &a.is, NOW, &hit));
        ck_assert_uint_eq(hit.len, sizes[i]);
        ck_assert_uint_eq(hit.took_us, 1234);
        ck_assert_uint_eq(hit.ntables, 1);
        ck_assert_uint_eq(hit.table[0], 7);
    }
    /* A key that has the hash of another is not the other. */
    test_key(&a, "size", 3);
    test_key(&b, "other", 3);
    b.is.hash = a.is.hash;
    ck_assert_int_eq(test_get(c, &b, 3), -1);
    ck_assert(cache_delete(c, &a.is));
    ck_assert(!cache_delete(c, &a.is));
    ck_assert_int_eq(test_get(c, &a, 3), -1);
    ck_assert_int_eq(test_get(c, test_key(&a, "size", 4), 4), 0);
    test_cache_free(c);
}
END_TEST

START_TEST(a_result_replaces_the_one_of_its_key)
{
    struct cache *c = test_cache_new(MB, 1000, 100000, 65536, 2);
    struct cache_totals totals;
    struct test_key a;

    ck_assert_int_eq(test_put(c, test_key(&a, "x", 1), 1, 500), CACHE_FILL_OK);
    ck_assert_int_eq(test_put(c, &a, 2, 50), CACHE_FILL_OK);
    ck_assert_int_eq(test_get(c, &a, 2), 0);
    cache_totals(c, &totals);
    ck_assert_uint_eq(totals.nentries, 1);
    test_cache_free(c);
}
END_TEST

START_TEST(what_was_written_or_is_too_old_is_not_found)
{
    struct cache *c = test_cache_new(MB, 1000, 100000, 65536, 2);
    cache_cell cell = cache_cell_database(slice_of_str("db"));
    struct cache_deps deps;
    struct cache_fill_spec spec = {.deps = &deps, .expire_s = 10};
    struct cache_fill *f;
    struct cache_hit hit;
    struct test_key a;

    ck_assert_int_eq(test_put(c, test_key(&a, "x", 1), 1, 50), CACHE_FILL_OK);
    cache_gens_bump(c->gens, &cell, 1, (struct cache_written){0, 0});
    ck_assert_int_eq(test_get(c, &a, 1), -1);
    ck_assert_int_eq(test_put(c, &a, 1, 50), CACHE_FILL_OK);
    ck_assert_int_eq(test_get(c, &a, 1), 0);
    cache_gens_off(c->gens, CACHE_OFF_STREAM);
    ck_assert_int_eq(test_get(c, &a, 1), -1);
    cache_gens_on(c->gens, CACHE_OFF_STREAM, NOW);
    ck_assert_int_eq(test_get(c, &a, 1), -1);

    cache_deps_init(&deps);
    cache_deps_add(&deps, c->gens, cell);
    ck_assert_int_eq(cache_deps_read(&deps, c->gens, NOW), CACHE_FILL_OK);
    spec.key = &a.is;
    f = cache_fill_begin(c, &spec);
    ck_assert_int_eq(cache_fill_commit(&f, NOW, 1), CACHE_FILL_OK);
    ck_assert_ptr_null(f);
    ck_assert(cache_find(c, &a.is, NOW + 9000000, &hit));
    ck_assert(!cache_find(c, &a.is, NOW + 10000000, &hit));

    /* Written between the query and the end of its reply. */
    f = cache_fill_begin(c, &spec);
    cache_gens_bump(c->gens, &cell, 1, (struct cache_written){0, 0});
    ck_assert_int_eq(cache_fill_commit(&f, NOW, 1), CACHE_FILL_MOVED);
    test_cache_free(c);
}
END_TEST

START_TEST(a_reader_notices_what_happens_under_it)
{
    struct cache *c = test_cache_new(MB, 1000, 100000, 65536, 2);
    struct cache_hit hit;
    struct test_key a;
    char part[64];

    ck_assert_int_eq(test_put(c, test_key(&a, "x", 1), 1, 200), CACHE_FILL_OK);
    ck_assert(cache_find(c, &a.is, NOW, &hit));
    ck_assert(cache_copy(c, &hit, 0, 64, part));
    ck_assert(cache_delete(c, &a.is));
    ck_assert(!cache_copy(c, &hit, 64, 64, part));
    ck_assert_int_eq(test_put(c, test_key(&a, "x", 2), 2, 200), CACHE_FILL_OK);
    ck_assert(!cache_copy(c, &hit, 64, 64, part));
    test_cache_free(c);
}
END_TEST

START_TEST(results_that_are_too_large_are_not_kept)
{
    struct cache *c = test_cache_new(MB, 1000, 1000, 65536, 2);
    struct test_key a;

    ck_assert_int_eq(test_put(c, test_key(&a, "x", 1), 1, 1000), CACHE_FILL_OK);
    ck_assert_int_eq(test_put(c, test_key(&a, "x", 2), 2, 1001), CACHE_FILL_LARGE);
    ck_assert_int_eq(test_get(c, test_key(&a, "x", 1), 1), 0);
    ck_assert_int_eq(test_get(c, test_key(&a, "x", 2), 2), -1);
    test_cache_free(c);
}
END_TEST

/* memqcache_max_num_cache. */
static const uint32_t limits[] = {1, 2, 10, 1000, 5000, 50000};

START_TEST(the_limit_of_entries_is_kept_exactly)
{
    uint32_t limit = limits[_i];
    struct cache *c = test_cache_new(64 * MB, limit, 1000, 1 << 20, 2);
    struct cache_totals totals;
    struct test_key a;
    unsigned found = 0;
    unsigned i;

    for (i = 0; i < limit * 2; i++)
        ck_assert_int_eq(test_put(c, test_key(&a, "n", i), i, 20), CACHE_FILL_OK);
    cache_totals(c, &totals);
    ck_assert_uint_eq(totals.nentries, limit);
    ck_assert_uint_eq(totals.evicted, limit);
    ck_assert_uint_ge(totals.nhash, limit);
    for (i = 0; i < limit * 2; i++)
        found += test_get(c, test_key(&a, "n", i), i) == 0;
    ck_assert_uint_eq(found, limit);
    test_cache_free(c);
}
END_TEST

START_TEST(space_is_given_back_whole)
{
    struct cache *c = test_cache_new(4 * MB, 100000, 300000, 1 << 18, 2);
    struct cache_totals before;
    struct cache_totals after;
    struct test_key a;
    unsigned seed = 17;
    unsigned i;

    cache_totals(c, &before);
    for (i = 0; i < 30000; i++) {
        unsigned n = (seed = seed * 1103515245 + 12345) >> 8;
        size_t len = n % 100 == 0 ? n % 200000 : n % 700;

        test_key(&a, "n", n % 5000);
        if (n % 7 == 0)
            cache_delete(c, &a.is);
        else
            test_put(c, &a, n % 5000, len);
        ck_assert_int_le(test_get(c, &a, n % 5000), 0);
    }
    cache_totals(c, &after);
    ck_assert_uint_gt(after.used_bytes, 3 * MB);
    ck_assert_uint_eq(after.used_bytes + after.free_bytes, before.free_bytes);
    for (i = 0; i < 5000; i++)
        cache_delete(c, &test_key(&a, "n", i)->is);
    cache_totals(c, &after);
    ck_assert_uint_eq(after.nentries, 0);
    ck_assert_uint_eq(after.free_bytes, before.free_bytes);
    ck_assert_uint_eq(after.wasted_bytes, 0);
    for (i = 0; i < c->shape.nshards; i++)
        ck_assert_uint_eq(shard_at(c, i).s->share[7].bytes, 0);
    test_cache_free(c);
}
END_TEST

/* A hot set that fits, and then ten times the cache's size of keys that come once. */
START_TEST(a_scan_leaves_the_hot_set)
{
    struct cache *c = test_cache_new(4 * MB, 100000, 10000, 1 << 18, 2);
    struct test_key a;
    unsigned hits = 0;
    unsigned round;
    unsigned i;

    for (round = 0; round < 4; round++)
        for (i = 0; i < 2000; i++)
            if (test_get(c, test_key(&a, "hot", i), i) != 0)
                test_put(c, &a, i, 400);
    for (i = 0; i < 100000; i++) {
        test_put(c, test_key(&a, "scan", i), i, 400);
        if (i % 50 == 0)
            (void)test_get(c, test_key(&a, "hot", i / 50 % 2000), i / 50 % 2000);
    }
    for (i = 0; i < 2000; i++)
        hits += test_get(c, test_key(&a, "hot", i), i) == 0;
    ck_assert_msg(hits >= 1900, "%u of 2000 are left", hits);
    /* What was hot long ago makes room for what is hot now. */
    for (round = 0; round < 12; round++)
        for (i = 0; i < 6000; i++)
            if (test_get(c, test_key(&a, "new", i), i) != 0)
                test_put(c, &a, i, 400);
    for (hits = 0, i = 0; i < 6000; i++)
        hits += test_get(c, test_key(&a, "new", i), i) == 0;
    ck_assert_msg(hits >= 5400, "%u of 6000 are kept", hits);
    test_cache_free(c);
}
END_TEST

START_TEST(a_large_result_drives_out_its_own_size)
{
    struct cache *c = test_cache_new(4 * MB, 100000, 400000, 1 << 20, 2);
    struct cache_totals totals;
    struct test_key a;
    uint64_t full;
    unsigned i;

    for (i = 0; i < 20000; i++)
        test_put(c, test_key(&a, "small", i), i, 300);
    cache_totals(c, &totals);
    full = totals.nentries;
    ck_assert_int_eq(test_put(c, test_key(&a, "large", 1), 1, 400000), CACHE_FILL_OK);
    ck_assert_int_eq(test_get(c, &a, 1), 0);
    cache_totals(c, &totals);
    ck_assert_uint_gt(totals.nentries, full - 400000 / 300 - 10);
    test_cache_free(c);
}
END_TEST

/* All that an entry takes, less its key and result. */
START_TEST(memory_per_entry_has_a_budget)
{
    struct cache *c = test_cache_new(64 * MB, 200000, 400000, 1 << 20, 2);
    cache_cell db = cache_cell_database(slice_of_str("db"));
    struct cache_totals totals;
    struct cache_deps deps;
    struct test_key a;
    uint64_t content = 0;
    double over;
    unsigned i;

    for (i = 0; i < 150000; i++) {
        size_t len = 80 + i * 37 % 400;

        cache_deps_init(&deps);
        cache_deps_add(&deps, c->gens, db);
        cache_deps_add(&deps, c->gens, cache_cell_whole(db, 1));
        cache_deps_add(&deps, c->gens, cache_cell_column(db, 1, 1));
        cache_deps_add(&deps, c->gens, cache_cell_value(db, 1, 1, i));
        ck_assert_int_eq(cache_deps_read(&deps, c->gens, NOW), CACHE_FILL_OK);
        test_key(&a, "row", i);
        ck_assert_int_eq(test_put_deps(c, &a, i, len, &deps), CACHE_FILL_OK);
        content += a.is.bytes.n + len;
    }
    cache_totals(c, &totals);
    ck_assert_uint_eq(totals.nentries, 150000);
    over = (double)(totals.used_bytes - content) / 150000 + sizeof(struct cache_row) +
           (double)totals.nhash * sizeof(uint32_t) / 150000 +
           (double)c->shape.sketch_bytes * c->shape.nshards / 150000;
    ck_assert_msg(over <= 96, "%.1f bytes", over);
    test_cache_free(c);
}
END_TEST

static bool is_worth(struct cache *c, const char *kind, uint32_t n)
{
    struct test_key k;

    return cache_is_worth(c, &test_key(&k, kind, n)->is);
}

/* All are kept until hardly any was asked for again; then those that are asked for twice, until
 * they are many. */
START_TEST(a_stream_that_never_repeats_is_not_kept)
{
    struct cache *c = test_cache_new(MB, 1000, 100000, 65536, 2);
    struct test_key a;
    uint32_t n = 0;
    uint32_t i;

    for (i = 0; i < 2000; i++) { /* one in eight is found again */
        ck_assert(is_worth(c, "some", i));
        ck_assert_int_eq(test_put(c, test_key(&a, "some", i), i, 10), CACHE_FILL_OK);
        if (i % 8 == 0)
            ck_assert_int_eq(test_get(c, &a, i), 0);
    }
    while (is_worth(c, "never", n))
        n++;
    ck_assert_uint_le(n, 512);
    for (i = 0; i < 1000; i++)
        ck_assert(!is_worth(c, "one", i));
    ck_assert(is_worth(c, "one", 999));
    for (i = 0; i < 1000 && !is_worth(c, "two", i); i++)
        if (i % 4 == 0)
            ck_assert(is_worth(c, "two", i));
    ck_assert_uint_le(i, 512);
    ck_assert(is_worth(c, "three", 1));
    test_cache_free(c);
}
END_TEST

/* Of a stream that never repeats nothing is looked for elsewhere but what was asked for or found
 * there; however often something is found, it counts once. */
START_TEST(what_never_repeats_is_not_looked_for_elsewhere)
{
    struct cache *c = test_cache_new(MB, 1000, 100000, 65536, 2);
    struct test_key a;
    struct test_key hot;
    uint32_t i;

    test_key(&hot, "hot", 1);
    for (i = 0; i < 1000; i++) {
        bool is_first = i < 256; /* by then it is known that none came again */

        ck_assert(cache_is_rare(c, &test_key(&a, "never", i)->is) == !is_first);
        (void)cache_is_worth(c, &a.is);
        cache_note_again(c, &hot.is);
        ck_assert(!cache_is_rare(c, &hot.is));
    }
    ck_assert(cache_is_rare(c, &test_key(&a, "new", 1)->is));
    ck_assert(!cache_is_worth(c, &a.is));
    ck_assert(!cache_is_rare(c, &a.is));
    for (i = 0; i < 1000; i++) { /* those that others keep, and hardly a miss */
        cache_note_again(c, &test_key(&a, "theirs", i)->is);
        if (i % 4 == 0)
            (void)is_worth(c, "ours", i);
    }
    for (i = 0; i < 256; i++)
        (void)is_worth(c, "more", i);
    ck_assert(!cache_is_rare(c, &test_key(&a, "new", 2)->is));
    test_cache_free(c);
}
END_TEST

/* The far end of 64 GB is reached: the last units of every shard are taken first. */
START_TEST(sixty_four_gigabytes_are_addressed)
{
    struct cache *c = test_cache_new(UINT64_C(65536) * MB, 1000000, 1 << 20, 1 << 20, 2);
    struct cache_totals totals;
    struct test_key a;
    uint32_t i;

    cache_totals(c, &totals);
    ck_assert_uint_ge(totals.free_bytes, UINT64_C(65536) * MB);
    ck_assert_uint_gt(c->shape.bytes, UINT64_C(65536) * MB);
    for (i = 0; i < c->shape.nshards; i++) {
        struct shard_ref r = shard_at(c, i);
        uint32_t most = c->shape.nunits - 2;
        uint32_t at =
            space_take(&r.s->space, r.arena, (size_t)(most - 4096) * SPACE_UNIT - SPACE_HEAD, 100);

        ck_assert_uint_ne(at, 0);
        r.s->space.nfree += 0;
    }
    for (i = 0; i < 5000; i++)
        test_put(c, test_key(&a, "far", i), i, 100);
    for (i = 4000; i < 5000; i++)
        ck_assert_int_eq(test_get(c, test_key(&a, "far", i), i), 0);
    {
        struct shard_ref r = shard_at(c, c->shape.nshards - 1);
        uint64_t far =
            (uint64_t)(r.arena - (char *)c->region) + (uint64_t)c->shape.nunits * SPACE_UNIT;

        ck_assert_uint_gt(far, UINT64_C(65536) * MB);
    }
    test_cache_free(c);
}
END_TEST

struct woken {
    unsigned n;
    uint64_t hash;
    uint64_t workers;
};

static void on_wake(void *ctx, uint64_t hash, uint64_t workers)
{
    struct woken *w = ctx;

    w->n++;
    w->hash = hash;
    w->workers = workers;
}

START_TEST(one_asks_and_the_others_wait)
{
    struct cache *c = test_cache_new(MB, 1000, 1000, 65536, 3);
    struct cache *other = cache_region_open(c->region, 1);
    struct cache_deps deps;
    struct cache_fill_spec spec = {.deps = &deps, .has_flight = true};
    struct cache_fill *f;
    struct woken woken = {0};
    struct test_key a;
    struct test_key b;

    cache_set_waker(c, 0, on_wake, &woken);
    cache_set_waker(other, 5, on_wake, &woken);
    test_key(&a, "x", 1);
    ck_assert_int_eq(cache_flight_enter(c, &a.is, NOW), CACHE_TURN_FILL);
    ck_assert_int_eq(cache_flight_enter(c, &a.is, NOW), CACHE_TURN_WAIT);
    ck_assert_int_eq(cache_flight_enter(other, &a.is, NOW), CACHE_TURN_WAIT);
    /* Another key with the same place. */
    test_key(&b, "x", 2);
    b.is.hash = a.is.hash ^ UINT64_C(1) << 50;
    ck_assert_int_eq(cache_flight_enter(other, &b.is, NOW), CACHE_TURN_ALONE);
    cache_flight_leave(other, &b.is);
    ck_assert_uint_eq(woken.n, 0);
    ck_assert(cache_flight_is_on(other, a.is.hash, NOW));
    ck_assert(!cache_flight_is_on(other, b.is.hash, NOW));
    ck_assert(!cache_flight_is_on(other, a.is.hash, NOW + 61000000));
    cache_deps_init(&deps);
    ck_assert_int_eq(cache_deps_read(&deps, c->gens, NOW), CACHE_FILL_OK);
    spec.key = &a.is;
    f = cache_fill_begin(c, &spec);
    ck_assert_int_eq(cache_fill_append(f, "abc", 3), 0);
    ck_assert_int_eq(cache_fill_commit(&f, NOW, 5), CACHE_FILL_OK);
    ck_assert_uint_eq(woken.n, 1);
    ck_assert_uint_eq(woken.hash, a.is.hash);
    ck_assert_uint_eq(woken.workers, 1U << 0 | 1U << 5);
    ck_assert_int_eq(cache_flight_enter(other, &a.is, NOW), CACHE_TURN_FILL);
    f = cache_fill_begin(other, &spec);
    cache_fill_let_go(f); /* and then another one's is not ended with it */
    ck_assert(!cache_flight_is_on(c, a.is.hash, NOW));
    ck_assert_int_eq(cache_flight_enter(other, &a.is, NOW), CACHE_TURN_FILL);
    cache_fill_abort(&f);
    cache_fill_abort(&f);
    ck_assert(cache_flight_is_on(c, a.is.hash, NOW));
    cache_flight_leave(other, &a.is);
    ck_assert_uint_eq(woken.n, 1);
    /* Whoever is long overdue is not waited for. */
    ck_assert_int_eq(cache_flight_enter(c, &a.is, NOW), CACHE_TURN_FILL);
    ck_assert_int_eq(cache_flight_enter(other, &a.is, NOW + 61000000), CACHE_TURN_ALONE);
    ck_assert_int_eq(cache_flight_enter(other, &a.is, NOW), CACHE_TURN_WAIT);
    cache_flights_died(c, 0, on_wake, &woken);
    ck_assert_uint_eq(woken.n, 2);
    ck_assert_uint_eq(woken.hash, a.is.hash);
    ck_assert_uint_eq(woken.workers, 1U << 5);
    cache_close(&other);
    test_cache_free(c);
}
END_TEST

START_TEST(counters_add_up)
{
    struct cache *c = test_cache_new(MB, 1000, 1000, 65536, 3);
    struct cache *other = cache_region_open(c->region, 1);
    uint16_t orders = cache_table_number(
        c, 77, slice_of_str("shop"), slice_of_str("public"), slice_of_str("orders"));
    uint16_t items = cache_table_number(other, 77 + CACHE_TABLES, slice_of_str("shop"),
        slice_of_str("public"), slice_of_str("items"));
    struct cache_hit hit = {.took_us = 900, .ntables = 1, .table = {orders}};
    uint16_t both[] = {orders, items};
    struct cache_totals totals;
    struct cache_table_row row;
    struct cache_query_row top[4];

    ck_assert_uint_ne(orders, items);
    ck_assert_uint_eq(cache_table_number(other, 77, slice_of_str("shop"), slice_of_str("public"),
                          slice_of_str("orders")),
        orders);
    cache_note_hit(c, &hit, 1, slice_of_str("select 1"));
    cache_note_hit(other, &hit, 1, slice_of_str("select 1"));
    hit.took_us = 5000;
    cache_note_hit(other, &hit, 2, slice_of_str("select 2"));
    cache_note_miss(c, both, 2);
    cache_note_fill(c, both, 2, CACHE_FILL_HELD);
    cache_note_write(c, orders, true, false, 0);
    cache_note_write(other, orders, false, true, 1500);
    cache_totals(c, &totals);
    ck_assert_uint_eq(totals.hits, 3);
    ck_assert_uint_eq(totals.misses, 1);
    ck_assert_uint_eq(totals.fills[CACHE_FILL_HELD], 1);
    ck_assert(cache_table_row(c, orders, &row));
    ck_assert_str_eq(row.name[0], "shop");
    ck_assert_str_eq(row.name[2], "orders");
    ck_assert_uint_eq(row.hits, 3);
    ck_assert_uint_eq(row.misses, 1);
    ck_assert_uint_eq(row.row_writes, 1);
    ck_assert_uint_eq(row.table_writes, 1);
    ck_assert(row.last_us > 0);
    ck_assert_int_eq(row.lag_us, 1500);
    ck_assert(cache_table_row(c, items, &row));
    ck_assert_uint_eq(row.fills[CACHE_FILL_HELD], 1);
    ck_assert(!cache_table_row(c, orders == 500 ? 501 : 500, &row));
    ck_assert_uint_eq(cache_top_queries(c, top, 4), 2);
    ck_assert_uint_eq(top[0].saved_us, 5000);
    ck_assert_uint_eq(top[1].hits, 2);
    ck_assert_str_eq(top[1].text, "select 1");
    ck_assert_uint_eq(cache_top_queries(c, top, 1), 1);
    cache_close(&other);
    test_cache_free(c);
}
END_TEST

struct expire_case {
    const char *tables[3];
    int64_t seconds;
};

static const struct expire_case expire_cases[] = {
    {{NULL}, 300},
    {{"public.other"}, 300},
    {{"public.prices"}, 60},
    {{"public.PRICES"}, 60},
    {{"public.prices_old"}, 300},
    {{"stock.items", "public.other"}, 5},
    {{"public.items"}, 300},
    {{"public.fixed"}, 0},
    {{"public.fixed", "public.prices"}, 60},
    {{"public.prices", "public.fixed"}, 60},
};

START_TEST(tables_have_times_of_their_own)
{
    static const char *items[] = {"prices : 60", "stock\\..*:5", "fixed:0"};
    struct conf conf = {.memqcache_expire_ms = 300000, .memqcache_expire_list = {3, items}};
    const struct expire_case *k = &expire_cases[_i];
    struct cache_expire *e;
    struct slice tables[3];
    struct err err = {0};
    size_t n = 0;

    for (n = 0; n < 3 && k->tables[n] != NULL; n++)
        tables[n] = slice_of_str(k->tables[n]);
    e = cache_expire_new(&conf, &err);
    ck_assert_msg(e != NULL, "%s", err.msg);
    ck_assert_int_eq(cache_expire_of(e, tables, n), k->seconds);
    cache_expire_free(&e);
    items[1] = "stock";
    ck_assert_ptr_null(cache_expire_new(&conf, &err));
    ck_assert_str_eq(err.msg, "\"stock\" is not table:seconds");
    items[1] = "stock\\..*:5";
}
END_TEST

START_TEST(times_are_packed)
{
    static const uint32_t us[] = {0, 1, 2047, 2048, 5000, 123456, 10000000, UINT32_MAX};
    size_t i;

    for (i = 0; i < sizeof us / sizeof us[0]; i++) {
        uint32_t got = cache_time_unpack(cache_time_pack(us[i]));

        ck_assert_uint_le(got, us[i]);
        ck_assert_uint_le(us[i] - got, us[i] / 1024);
    }
}
END_TEST

int main(void)
{
    Suite *s = suite_create("cache_store");
    TCase *tc = tcase_create("cache_store");

    tcase_set_timeout(tc, 60);
    tcase_add_test(tc, a_result_is_found_byte_by_byte);
    tcase_add_test(tc, a_result_replaces_the_one_of_its_key);
    tcase_add_test(tc, what_was_written_or_is_too_old_is_not_found);
    tcase_add_test(tc, a_reader_notices_what_happens_under_it);
    tcase_add_test(tc, results_that_are_too_large_are_not_kept);
    tcase_add_loop_test(
        tc, the_limit_of_entries_is_kept_exactly, 0, sizeof limits / sizeof limits[0]);
    tcase_add_test(tc, space_is_given_back_whole);
    tcase_add_test(tc, a_scan_leaves_the_hot_set);
    tcase_add_test(tc, a_large_result_drives_out_its_own_size);
    tcase_add_test(tc, memory_per_entry_has_a_budget);
    tcase_add_test(tc, sixty_four_gigabytes_are_addressed);
    tcase_add_test(tc, a_stream_that_never_repeats_is_not_kept);
    tcase_add_test(tc, what_never_repeats_is_not_looked_for_elsewhere);
    tcase_add_test(tc, one_asks_and_the_others_wait);
    tcase_add_test(tc, counters_add_up);
    tcase_add_loop_test(
        tc, tables_have_times_of_their_own, 0, sizeof expire_cases / sizeof expire_cases[0]);
    tcase_add_test(tc, times_are_packed);
    suite_add_tcase(s, tc);
    return run_suite(s);
}
