/* SPDX-License-Identifier: PostgreSQL
 * fuzz_auth.h: main of the fuzz targets of auth when libFuzzer is not there: replays the files
 * given, or mutates the target's seeds a fixed number of times. With libFuzzer (clang
 * -fsanitize=fuzzer,address -DFUZZ_LIBFUZZER) the seeds are
 * mixed into what the fuzzer makes: it would hardly find a grammar by itself. */
#ifndef PGP_FUZZ_AUTH_H
#define PGP_FUZZ_AUTH_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FUZZ_SEED_BYTES 2048

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(int cond, const char *what)
{
    if (!cond) {
        fprintf(stderr, "fuzz: %s\n", what);
        abort();
    }
}

#ifdef FUZZ_LIBFUZZER
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max, unsigned seed);

/* Now and then a seed takes the place of the input, before it is changed as usual. */
static size_t fuzz_from_seed(
    uint8_t *data, size_t size, size_t max, unsigned seed, const char *const *seeds, size_t nseeds)
{
    const char *text = seeds[seed / 16 % nseeds];
    size_t n = strlen(text);

    if (seed % 16 == 0 && n <= max) {
        memcpy(data, text, n);
        size = n;
    }
    return LLVMFuzzerMutate(data, size, max);
}

#define FUZZ_MAIN(seeds, rounds, alphabet)                                                         \
    size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max, unsigned seed)          \
    {                                                                                              \
        return fuzz_from_seed(data, size, max, seed, seeds, sizeof(seeds) / sizeof(seeds)[0]);     \
    }
#else

static uint64_t fuzz_random(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

/* Changes the text a little: bytes, pieces doubled or cut, bytes of the target's own alphabet. */
static size_t fuzz_mutate(uint8_t *p, size_t n, const char *alphabet, uint64_t *state)
{
    unsigned changes = 1 + (unsigned)(fuzz_random(state) % 5);
    size_t at;
    size_t len;

    while (changes-- > 0 && n > 0) {
        at = fuzz_random(state) % n;
        len = fuzz_random(state) % 16;
        switch (fuzz_random(state) % 5) {
        case 0:
            p[at] = (uint8_t)fuzz_random(state);
            break;
        case 1:
            p[at] = (uint8_t)alphabet[fuzz_random(state) % strlen(alphabet)];
            break;
        case 2: /* cut a piece out */
            len = len > n - at ? n - at : len;
            memmove(p + at, p + at + len, n - at - len);
            n -= len;
            break;
        case 3: /* double a piece */
            len = len > n - at ? n - at : len;
            if (n + len <= FUZZ_SEED_BYTES) {
                memmove(p + at + len, p + at, n - at);
                n += len;
            }
            break;
        default:
            if (n < FUZZ_SEED_BYTES) {
                memmove(p + at + 1, p + at, n - at);
                p[at] = (uint8_t)alphabet[fuzz_random(state) % strlen(alphabet)];
                n++;
            }
            break;
        }
    }
    return n;
}

static int fuzz_replay(const char *path)
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

static int fuzz_run(
    int argc, char **argv, const char *const *seeds, long nseeds, long rounds, const char *alphabet)
{
    static uint8_t bytes[FUZZ_SEED_BYTES + 1];
    uint64_t state = 0x9e3779b97f4a7c15ULL;
    uint8_t *copy;
    int status = 0;
    size_t n;
    long i;

    for (i = 1; i < argc; i++)
        status |= fuzz_replay(argv[i]);
    for (i = 0; argc == 1 && i < rounds; i++) {
        n = strlen(seeds[i % nseeds]);
        memcpy(bytes, seeds[i % nseeds], n);
        if (i >= nseeds) /* the seeds themselves come first */
            n = fuzz_mutate(bytes, n, alphabet, &state);
        copy = malloc(n + 1); /* of that size: the sanitizer sees a read one byte too far */
        require(copy != NULL, "out of memory");
        memcpy(copy, bytes, n);
        LLVMFuzzerTestOneInput(copy, n);
        free(copy);
    }
    return status;
}

#define FUZZ_MAIN(seeds, rounds, alphabet)                                                         \
    int main(int argc, char **argv)                                                                \
    {                                                                                              \
        return fuzz_run(                                                                           \
            argc, argv, seeds, (long)(sizeof(seeds) / sizeof(seeds)[0]), rounds, alphabet);        \
    }
#endif

#endif
