/* SPDX-License-Identifier: PostgreSQL
 * sim_core.c: chance, time, the record of what happened, and the heap, of a simulated run. */
#include "config.h"

#include "sim.h"

#include <malloc.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <time.h>

#define RING_LINES 160
#define LINE_BYTES 2000

/* The run that goes on; one at a time. */
struct sim_core sim;

static char ring[RING_LINES][LINE_BYTES];

void sim_core_start(uint64_t seed)
{
    bool tracing = sim.tracing;
    int64_t live_blocks = sim.live_blocks;
    const char *replay = sim.replay;

    memset(&sim, 0, sizeof sim);
    memset(ring, 0, sizeof ring);
    sim.seed = seed;
    sim.random = seed * UINT64_C(0x9E3779B97F4A7C15) + 1;
    sim.now_us = 100 * SIM_S;
    sim.tracing = tracing;
    sim.live_blocks = live_blocks;
    sim.replay = replay;
}

/* splitmix64 */
uint64_t sim_random(void)
{
    uint64_t z = (sim.random += UINT64_C(0x9E3779B97F4A7C15));

    z = (z ^ (z >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94D049BB133111EB);
    return z ^ (z >> 31);
}

uint32_t sim_below(uint32_t n)
{
    return (uint32_t)((sim_random() >> 32) * n >> 32);
}

bool sim_one_in(uint32_t n)
{
    return n > 0 && sim_below(n) == 0;
}

void sim_note(const char *fmt, ...)
{
    char *line = ring[sim.nevents % RING_LINES];
    va_list ap;
    int n = snprintf(
        line, LINE_BYTES, "%9lld.%03d ", (long long)(sim.now_us / 1000), (int)(sim.now_us % 1000));
    char *p;

    va_start(ap, fmt);
    vsnprintf(line + n, LINE_BYTES - (size_t)n, fmt, ap);
    va_end(ap);
    for (p = line; *p != '\0'; p++)
        sim.digest = (sim.digest ^ (unsigned char)*p) * UINT64_C(0x100000001B3);
    sim.nevents++;
    if (sim.tracing)
        printf("%s\n", line);
}

void sim_describe(char *text, size_t size, const char *msg, uint32_t nmsgs)
{
    const char *body = msg + 5;
    size_t at = 0;

    text[0] = '\0';
    for (; nmsgs > 0 && at + 1 < size; nmsgs--, body = msg + 5) {
        if (msg[0] == 'Q')
            at += (size_t)snprintf(text + at, size - at, "Q %s", body);
        else if (msg[0] == 'P' || msg[0] == 'B')
            at += (size_t)snprintf(
                text + at, size - at, "%c(%s; %s) ", msg[0], body, body + strlen(body) + 1);
        else if (msg[0] == 'D' || msg[0] == 'C')
            at += (size_t)snprintf(text + at, size - at, "%c(%s) ", msg[0], body);
        else
            at += (size_t)snprintf(text + at, size - at, "%c ", msg[0]);
        msg += 1 + ((uint32_t)(unsigned char)msg[1] << 24 | (uint32_t)(unsigned char)msg[2] << 16 |
                       (uint32_t)(unsigned char)msg[3] << 8 | (unsigned char)msg[4]);
    }
}

void sim_print_failure(const char *why)
{
    uint64_t i = sim.nevents > RING_LINES ? sim.nevents - RING_LINES : 0;

    if (!sim.tracing)
        for (; i < sim.nevents; i++)
            printf("%s\n", ring[i % RING_LINES]);
    printf("FAILED: %s\nagain: sim_run %s--seed %llu --trace\n", why,
        sim.replay == NULL ? "" : sim.replay, (unsigned long long)sim.seed);
    fflush(stdout);
}

void sim_fail(const char *fmt, ...)
{
    char why[512];
    va_list ap;

    if (sim.failed)
        return;
    sim.failed = true;
    va_start(ap, fmt);
    vsnprintf(why, sizeof why, fmt, ap);
    va_end(ap);
    sim_print_failure(why);
}

/* ---- what the product asks the system for (ld --wrap) ---- */

int __wrap_clock_gettime(clockid_t id, struct timespec *ts);
ssize_t __wrap_getrandom(void *p, size_t n, unsigned flags);
void *__real_malloc(size_t n);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *p, size_t n);
void __real_free(void *p);
void *__wrap_malloc(size_t n);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *p, size_t n);
void __wrap_free(void *p);

/* Some day in 2027. */
int64_t sim_wall_us(void)
{
    return sim.now_us + INT64_C(1800000000) * SIM_S;
}

int __wrap_clock_gettime(clockid_t id, struct timespec *ts)
{
    int64_t us = id == CLOCK_REALTIME ? sim_wall_us() : sim.now_us;

    ts->tv_sec = (time_t)(us / SIM_S);
    ts->tv_nsec = (long)(us % SIM_S) * 1000;
    return 0;
}

ssize_t __wrap_getrandom(void *p, size_t n, unsigned flags)
{
    unsigned char *to = p;
    size_t i;

    (void)flags;
    for (i = 0; i < n; i++)
        to[i] = (unsigned char)sim_random();
    return (ssize_t)n;
}

void *__wrap_malloc(size_t n)
{
    sim.live_blocks++;
    return __real_malloc(n);
}

void *__wrap_calloc(size_t n, size_t size)
{
    sim.live_blocks++;
    return __real_calloc(n, size);
}

void *__wrap_realloc(void *p, size_t n)
{
    if (p == NULL)
        sim.live_blocks++;
    return __real_realloc(p, n);
}

/* Who still uses it shall see that it is gone. */
void __wrap_free(void *p)
{
    if (p != NULL) {
        sim.live_blocks--;
        memset(p, 0xdd, malloc_usable_size(p));
    }
    __real_free(p);
}
