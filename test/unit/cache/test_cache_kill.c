/* SPDX-License-Identifier: PostgreSQL
 * test_cache_kill.c: processes are killed while they change the cache: at every step, and at any
 * instruction among others who read and write. What is left answers rightly and can be used. */
#include "config.h"

#include <sched.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "sys/clock.h"

#include "cache_test.h"
#include "run_suite.h"

#define KEYS 40

static void no_alarm(void *ctx, uint64_t hash, uint64_t workers)
{
    (void)ctx;
    (void)hash;
    (void)workers;
}

static size_t length_of(unsigned n)
{
    return n % 5 == 0 ? 9000 + n * 10 : 50 + n * 13;
}

/* All kinds of changes: into free space, into a full cache, in the place of another, in pieces;
 * removal, flights. Dies at step `kill_at` of them, if there are so many. */
static pid_t change_and_die(struct cache *c, unsigned round, uint64_t kill_at)
{
    pid_t pid = fork();
    struct test_key key;
    unsigned i;

    if (pid != 0)
        return pid;
    c = cache_region_open(c->region, 1);
    c->kill_at = kill_at;
    for (i = 0; i < 12; i++) {
        unsigned n = (round * 7 + i * 11) % KEYS;

        test_key(&key, "k", n);
        if (i % 6 == 5)
            cache_delete(c, &key.is);
        else if (cache_flight_enter(c, &key.is, NOW) == CACHE_TURN_FILL) {
            test_put(c, &key, n, length_of(n));
            cache_flight_leave(c, &key.is);
        }
    }
    _exit(0);
}

static void fill_up(struct cache *c)
{
    struct test_key key;
    unsigned i;

    for (i = 0; i < KEYS; i++)
        test_put(c, test_key(&key, "k", i), i, length_of(i));
}

/* Every key is there and right, or not there; then all of it can be used as ever. */
static void check_usable(struct cache *c, unsigned round)
{
    struct test_key key;
    struct cache_totals totals;
    unsigned n = round % KEYS;
    unsigned i;

    for (i = 0; i < KEYS; i++)
        ck_assert_int_le(test_get(c, test_key(&key, "k", i), i), 0);
    ck_assert_int_eq(cache_flight_enter(c, &test_key(&key, "k", n)->is, NOW), CACHE_TURN_FILL);
    cache_flight_leave(c, &key.is);
    ck_assert_int_eq(test_put(c, &key, n, length_of(n)), CACHE_FILL_OK);
    ck_assert_int_eq(test_get(c, &key, n), 0);
    cache_totals(c, &totals);
    ck_assert_uint_le(totals.nentries, c->shape.max_entries);
}

static bool died(struct cache *c, pid_t pid)
{
    int status;

    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    cache_flights_died(c, 1, no_alarm, NULL);
    if (WIFSIGNALED(status)) {
        ck_assert_int_eq(WTERMSIG(status), SIGKILL);
        return true;
    }
    ck_assert_int_eq(status, 0);
    return false;
}

static struct cache *small_cache(void)
{
    /* One shard, thirty entries, and not enough space for all of these. */
    return test_cache_new(65536, 30, 16384, 16384, 2);
}

START_TEST(killed_at_every_step)
{
    struct cache *c = small_cache();
    struct cache_totals totals;
    uint64_t kill_at = 1;

    for (;;) {
        fill_up(c);
        if (!died(c, change_and_die(c, (unsigned)kill_at, kill_at)))
            break;
        check_usable(c, (unsigned)kill_at);
        kill_at++;
    }
    cache_totals(c, &totals);
    ck_assert_uint_gt(kill_at, 100);
    ck_assert_uint_gt(totals.resets, kill_at / 2);
    test_cache_free(c);
}
END_TEST

/* Who empties the shard of a dead one may die, too, at each of its steps. */
START_TEST(killed_while_cleaning_up)
{
    struct cache *c = small_cache();
    uint64_t first;
    uint64_t second;

    for (first = 3; first < 90; first += 8)
        for (second = 1; second < 45; second += 3) {
            fill_up(c);
            (void)died(c, change_and_die(c, (unsigned)first, first));
            (void)died(c, change_and_die(c, (unsigned)second, second));
            check_usable(c, (unsigned)second);
        }
    test_cache_free(c);
}
END_TEST

/* ---- among others ---- */

#define HANDS     4
#define ROWS      300
#define HAMMER_US 4000000
/* A busy machine gets so much longer for the least number of kills. */
#define HAMMER_LATE_US INT64_C(30000000)
#define MIN_KILLS      50

/* The "server": a version of every row, and the version of which somebody was told. */
struct server {
    _Atomic int64_t now_us;
    _Atomic uint32_t version[ROWS];
    _Atomic uint32_t told[ROWS];
    _Atomic uint64_t nhits;
    _Atomic uint64_t nwrites;
};

static cache_cell row_cell(unsigned n)
{
    return cache_cell_value(cache_cell_database(slice_of_str("db")), 1, 1, n);
}

static void hammer_write(struct cache *c, struct server *s, unsigned n)
{
    cache_cell cell = row_cell(n);
    uint32_t version;

    cache_gens_hold(c->gens, c->proc, &cell, 1);
    version = atomic_fetch_add(&s->version[n], 1) + 1;
    cache_gens_release(c->gens, c->proc, &cell, 1, (struct cache_written){0, 0});
    /* Others tell, too: the higher counts. */
    for (uint32_t was = atomic_load(&s->told[n]);
         was < version && !atomic_compare_exchange_weak(&s->told[n], &was, version);)
        ;
    atomic_fetch_add(&s->nwrites, 1);
}

/* A result: the row, its version, and bytes that follow from these. */
static void hammer_fill(struct cache *c, struct server *s, struct test_key *key, unsigned n)
{
    int64_t now_us = atomic_load(&s->now_us);
    struct cache_deps deps;
    struct cache_fill_spec spec = {.key = &key->is, .deps = &deps, .has_flight = false};
    struct cache_fill *f;
    uint32_t head[2] = {n, 0};
    char bytes[3000];

    cache_deps_init(&deps);
    cache_deps_add(&deps, c->gens, row_cell(n));
    if (cache_deps_read(&deps, c->gens, now_us) != CACHE_FILL_OK)
        return;
    head[1] = atomic_load(&s->version[n]);
    memset(bytes, (int)(head[0] * 31 + head[1]), sizeof bytes);
    f = cache_fill_begin(c, &spec);
    (void)cache_fill_append(f, head, sizeof head);
    (void)cache_fill_append(f, bytes, 10 + n * 9 + head[1] % 100);
    (void)cache_fill_commit(&f, now_us, 1);
}

static bool is_right(const char *got, size_t len, unsigned n, uint32_t told)
{
    uint32_t head[2];
    size_t i;

    memcpy(head, got, sizeof head);
    if (head[0] != n || head[1] < told || len != sizeof head + 10 + n * 9 + head[1] % 100)
        return false;
    for (i = sizeof head; i < len; i++)
        if (got[i] != (char)(head[0] * 31 + head[1]))
            return false;
    return true;
}

static bool hammer_read(struct cache *c, struct server *s, unsigned n)
{
    uint32_t told = atomic_load(&s->told[n]);
    struct test_key key;
    struct cache_hit hit;
    char got[4096];

    test_key(&key, "row", n);
    if (!cache_find(c, &key.is, atomic_load(&s->now_us), &hit) || hit.len > sizeof got ||
        !cache_copy(c, &hit, 0, hit.len, got)) {
        hammer_fill(c, s, &key, n);
        return true;
    }
    atomic_fetch_add(&s->nhits, 1);
    return is_right(got, hit.len, n, told);
}

static pid_t hammer_start(struct cache *c, struct server *s, int proc, unsigned seed)
{
    pid_t pid = fork();

    if (pid != 0)
        return pid;
    c = cache_region_open(c->region, proc);
    for (;;) {
        unsigned n = (seed = seed * 1103515245 + 12345) >> 10;

        if (n % 10 == 0)
            hammer_write(c, s, n / 10 % ROWS);
        else if (!hammer_read(c, s, n / 10 % ROWS))
            _exit(1);
    }
}

/* Until so much more has been read and written. */
static void wait_for_work(struct server *s, uint64_t more, int64_t until_us)
{
    uint64_t target = atomic_load(&s->nhits) + atomic_load(&s->nwrites) + more;

    while (atomic_load(&s->nhits) + atomic_load(&s->nwrites) < target && clock_mono_us() < until_us)
        sched_yield();
}

START_TEST(killed_at_any_instruction_among_others)
{
    struct cache *c = test_cache_new(200000, 200, 16384, 16384, HANDS);
    struct server *s =
        mmap(NULL, sizeof *s, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    int64_t until_us = clock_mono_us() + HAMMER_US;
    int64_t most_us = until_us + HAMMER_LATE_US;
    struct cache_totals totals;
    pid_t pid[HANDS];
    unsigned kills = 0;
    int status;
    int i;

    ck_assert_ptr_ne(s, MAP_FAILED);
    atomic_store(&s->now_us, NOW);
    for (i = 0; i < HANDS; i++)
        pid[i] = hammer_start(c, s, i, (unsigned)i + 1);
    while (clock_mono_us() < (kills > MIN_KILLS ? until_us : most_us)) {
        i = (int)(kills++ % HANDS);
        wait_for_work(s, 50 + kills * 137 % 2000, most_us);
        kill(pid[i], SIGKILL);
        ck_assert_int_eq(waitpid(pid[i], &status, 0), pid[i]);
        ck_assert_msg(WIFSIGNALED(status), "a reader got what is wrong or old");
        cache_gens_died(c->gens, i, atomic_load(&s->now_us));
        cache_flights_died(c, i, no_alarm, NULL);
        atomic_fetch_add(&s->now_us, 40000000);
        pid[i] = hammer_start(c, s, i, kills + 100);
    }
    for (i = 0; i < HANDS; i++) {
        kill(pid[i], SIGKILL);
        ck_assert_int_eq(waitpid(pid[i], &status, 0), pid[i]);
        ck_assert_msg(WIFSIGNALED(status), "a reader got what is wrong or old");
    }
    cache_totals(c, &totals);
    ck_assert_uint_gt(kills, MIN_KILLS);
    ck_assert_uint_gt(atomic_load(&s->nhits), 1000);
    ck_assert_uint_gt(atomic_load(&s->nwrites), 1000);
    munmap(s, sizeof *s);
    test_cache_free(c);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("cache_kill");
    TCase *tc = tcase_create("cache_kill");

    tcase_set_timeout(tc, 120);
    tcase_add_test(tc, killed_at_every_step);
    tcase_add_test(tc, killed_while_cleaning_up);
    tcase_add_test(tc, killed_at_any_instruction_among_others);
    suite_add_tcase(s, tc);
    return run_suite(s);
}
