/* SPDX-License-Identifier: PostgreSQL
 * cache_sketch.c: how often keys were asked for lately, those that are not kept among them.
 * Runs in: workers, under the shard's lock. A count-min sketch with small counters: four of a key,
 * all in one cache line, of which the least counts. It is never too low, seldom too high, and
 * halved now and then, so that it forgets. */
#include "config.h"

#include "cache_int.h"

#define LINE 64
#define WAYS 4
/* Halved after so many additions per counter. */
#define AGE 8

static void halve(const struct shard_ref *r)
{
    uint32_t i;

    for (i = 0; i < r->c->shape.sketch_bytes; i++)
        r->sketch[i] >>= 1;
}

unsigned sketch_add(const struct shard_ref *r, uint32_t tag, unsigned n)
{
    uint32_t nlines = r->c->shape.sketch_bytes / LINE;
    uint8_t *line = r->sketch + (size_t)(tag & (nlines - 1)) * LINE;
    uint32_t bits = (tag * UINT32_C(0x9E3779B1)) >> 16;
    unsigned least = SKETCH_MAX;
    int i;

    for (i = 0; i < WAYS; i++) {
        uint8_t *cell = &line[i * (LINE / WAYS) + (bits >> (i * 4) & (LINE / WAYS - 1))];
        unsigned sum = *cell + n;

        *cell = (uint8_t)(sum > SKETCH_MAX ? SKETCH_MAX : sum);
        if (*cell < least)
            least = *cell;
    }
    if (++r->s->sketch_adds >= r->c->shape.sketch_bytes * AGE) {
        r->s->sketch_adds = 0;
        halve(r);
    }
    return least;
}
