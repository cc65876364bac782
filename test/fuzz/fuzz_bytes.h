/* SPDX-License-Identifier: PostgreSQL
 * fuzz_bytes.h: main of a fuzz target of bytes when libFuzzer is not there: replays the files
 * given, or mutates the target's seeds a fixed number of times. With libFuzzer (clang
 * -fsanitize=fuzzer,address -DFUZZ_LIBFUZZER) there is none, and seeds are not needed. */
#ifndef PGP_FUZZ_BYTES_H
#define PGP_FUZZ_BYTES_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/slice.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(int cond, const char *what)
{
    if (!cond) {
        fprintf(stderr, "fuzz: %s\n", what);
        abort();
    }
}

static inline void require_inside(struct slice all, struct slice s)
{
    if (s.n > 0)
        require(s.p >= all.p && s.p + s.n <= all.p + all.n, "a view leaves the input");
}

#ifndef FUZZ_LIBFUZZER

#define MUTATIONS      200000
#define MAX_SEED_BYTES 512

static uint64_t next_random(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

/* Changes `n` bytes at `p` a little; returns the new size. */
static size_t mutate(uint8_t *p, size_t n, uint64_t *state)
{
    static const uint8_t nasty[] = {0, 1, 3, 4, 8, 0x7f, 0x80, 0xff, '\\', ' ', '-', '='};
    unsigned changes = 1 + (unsigned)(next_random(state) % 4);

    while (changes-- > 0 && n > 0) {
        switch (next_random(state) % 4) {
        case 0:
            p[next_random(state) % n] = (uint8_t)next_random(state);
            break;
        case 1:
            p[next_random(state) % n] = nasty[next_random(state) % sizeof nasty];
            break;
        case 2:
            n = next_random(state) % n;
            break;
        default:
            if (n < MAX_SEED_BYTES)
                p[n++] = nasty[next_random(state) % sizeof nasty];
            break;
        }
    }
    return n;
}

static int replay(const char *path)
{
    static uint8_t bytes[1 << 16];
    FILE *f = fopen(path, "rb");
    size_t n;

    if (f == NULL) {
        perror(path);
        return 1;
    }
    n = fread(bytes, 1, sizeof bytes, f);
    fclose(f);
    return LLVMFuzzerTestOneInput(bytes, n);
}

static int fuzz_run(int argc, char **argv, const struct slice *seeds, size_t nseeds)
{
    uint8_t bytes[MAX_SEED_BYTES + 1];
    uint64_t state = 0x9e3779b97f4a7c15ULL;
    const struct slice *seed;
    int status = 0;
    long i;

    for (i = 1; i < argc; i++)
        status |= replay(argv[i]);
    if (argc > 1)
        return status;
    for (i = 0; i < MUTATIONS; i++) {
        seed = &seeds[(size_t)i % nseeds];
        memcpy(bytes, seed->p, seed->n);
        LLVMFuzzerTestOneInput(bytes, mutate(bytes, seed->n, &state));
    }
    return 0;
}

#define SEED(lit)                                                                                  \
    {                                                                                              \
        lit, sizeof(lit) - 1                                                                       \
    }

#define FUZZ_MAIN(seeds)                                                                           \
    int main(int argc, char **argv)                                                                \
    {                                                                                              \
        return fuzz_run(argc, argv, seeds, sizeof(seeds) / sizeof(seeds)[0]);                      \
    }
#endif

#endif
