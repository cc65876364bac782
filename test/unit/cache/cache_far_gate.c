/* SPDX-License-Identifier: PostgreSQL
 * cache_far_gate.c: requests to memcached as pgpool makes them, for test/proto/test_cache_far.py.
 * Arguments: the servers, as memqcache_memcached_host has them, and memqcache_timeout. Reads lines,
 * and answers each with one: get KEY CELL...    hit RESULT | miss | dead, and the milliseconds it
 * took set KEY RESULT     kept under the generations of the last get bump [CELL...]     done |
 * failed, and the milliseconds it took; pays KEY     yes | no; retry, off         reasons for which
 * the cache is off Without arguments it counts as skipped. */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "cache/cache_far.h"
#include "cache_int.h"
#include "config/conf.h"
#include "event/jobs.h"
#include "event/loop.h"
#include "sys/clock.h"

struct gate {
    struct loop loop;
    struct jobs *jobs;
    struct cache *cache;
    struct cache_far *far;
    struct cache_far_deps deps;
    int64_t begun_us;
    bool is_answered;
};

static void say(struct gate *g, const char *what, struct slice more)
{
    printf("%s%s%.*s %lld\n", what, more.n > 0 ? " " : "", (int)more.n, more.n > 0 ? more.p : "",
        (long long)((clock_mono_us() - g->begun_us) / CLOCK_US_PER_MS));
    fflush(stdout);
    g->is_answered = true;
}

static void on_got(void *ctx, enum cache_far_found found, struct slice result, uint32_t took_us,
    const struct cache_far_deps *deps)
{
    static const char *const words[] = {"hit", "miss", "dead"};
    struct gate *g = ctx;

    if (deps != NULL)
        g->deps = *deps;
    say(g, found == CACHE_FAR_HIT && took_us != 77 ? "wrong" : words[found], result);
}

static void on_done(void *ctx, bool is_done)
{
    say(ctx, is_done ? "done" : "failed", slice_of(NULL, 0));
}

#define MAX_CELLS 512

static size_t take_cells(cache_cell *cells, size_t max)
{
    const char *word;
    size_t n = 0;

    while (n < max && (word = strtok(NULL, " \n")) != NULL)
        cells[n++] = cache_cell_database(slice_of_str(word));
    return n;
}

static void run_line(struct gate *g, char *line)
{
    const char *verb = strtok(line, " \n");
    const char *name = NULL;
    struct cache_far_deps deps = {.text = 1};
    cache_cell cells[MAX_CELLS];
    struct cache_key key;

    g->begun_us = clock_mono_us();
    g->is_answered = false;
    if (verb == NULL)
        return;
    if (strcmp(verb, "get") == 0 || strcmp(verb, "set") == 0 || strcmp(verb, "pays") == 0) {
        name = strtok(NULL, " \n");
        key = cache_key_of(slice_of_str(name));
    }
    if (strcmp(verb, "get") == 0) {
        deps.ncells = (uint32_t)take_cells(deps.cell, CACHE_DEPS_MAX);
        (void)cache_far_get(g->far, &key, &deps, on_got, g);
    } else if (strcmp(verb, "set") == 0) {
        const char *result = strtok(NULL, " \n");
        const char *expire_s = strtok(NULL, " \n");

        cache_far_set(g->far, &key, &g->deps, slice_of_str(result),
            expire_s == NULL ? 0 : strtol(expire_s, NULL, 10), 77);
        say(g, "sent", slice_of(NULL, 0));
    } else if (strcmp(verb, "pays") == 0) {
        say(g, cache_far_pays(g->far, 1, &key) ? "yes" : "no", slice_of(NULL, 0));
    } else if (strcmp(verb, "bump") == 0) {
        size_t n = take_cells(cells, MAX_CELLS);

        (void)cache_far_bump(g->far, cells, n, on_done, g);
    } else {
        if (strcmp(verb, "retry") == 0)
            cache_far_retry(g->far);
        printf("%u\n", cache_gens_off_bits(g->cache->gens, clock_mono_us()));
        fflush(stdout);
        g->is_answered = true;
    }
    while (!g->is_answered)
        loop_poll(&g->loop);
}

int main(int argc, char **argv)
{
    struct conf conf = {0};
    struct cache_shape shape = cache_shape_of(1 << 20, 1000, 100000, 65536, 1);
    struct gate g = {0};
    struct err err = {0};
    char line[16384];

    if (argc < 3)
        return 77;
    conf.memqcache_memcached_host = argv[1];
    conf.memqcache_memcached_port = 11211;
    conf.memqcache_memcached_user = "";
    conf.memqcache_memcached_password = "";
    conf.memqcache_timeout_ms = strtol(argv[2], NULL, 10);
    loop_init(&g.loop);
    g.jobs = jobs_new(&g.loop);
    /* Whole pages of zeros: what a region is made in. */
    g.cache = NULL;
    {
        char *mem = mem_alloc_zero(shape.bytes + 4096);
        char *at = mem + (4096 - (size_t)mem % 4096) % 4096;

        cache_region_init(at, &shape, 1);
        g.cache = cache_region_open(at, 0);
        cache_far_list(&conf, &g.cache->region->far);
        g.far = cache_far_open(g.cache, &conf, g.jobs, &g.loop, &err);
        if (g.far == NULL) {
            fprintf(stderr, "%s\n", err.msg);
            return 1;
        }
        while (fgets(line, sizeof line, stdin) != NULL) {
            loop_poll(&g.loop);
            run_line(&g, line);
        }
        cache_far_close(&g.far);
        cache_close(&g.cache);
        jobs_free(&g.jobs);
        loop_fini(&g.loop);
        mem_free(mem);
    }
    return 0;
}
