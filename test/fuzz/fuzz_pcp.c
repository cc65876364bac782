/* SPDX-License-Identifier: PostgreSQL
 * fuzz_pcp.c: fuzz target over the reader of PCP packets, which sees bytes of anybody. With
 * libFuzzer: clang -fsanitize=fuzzer,address -DFUZZ_LIBFUZZER. Without it a main replays the files
 * given, or runs a fixed number of random inputs. Invariants checked: views inside the input,
 * lengths within the limit, progress, the same packets however the input arrives. */
#include "config.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "admin/pcp.h"

#define MAX_BYTES 512

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(int cond, const char *what)
{
    if (!cond) {
        fprintf(stderr, "fuzz_pcp: %s\n", what);
        abort();
    }
}

static void check_body(struct slice body)
{
    struct slice rest = body;
    struct slice text;
    int number;

    while (pcp_take_str(&rest, &text)) {
        require(text.p >= body.p && text.p + text.n < body.p + body.n, "a string leaves the body");
        require(text.p[text.n] == '\0', "a string without its end");
    }
    rest = body;
    while (pcp_take_int(&rest, &number))
        require(rest.n < body.n, "a number without progress");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    /* A copy of exactly that size: the sanitizer sees a read one byte too far. */
    char *copy = calloc(1, size == 0 ? 1 : size);
    struct slice in = slice_of(copy, size);
    struct pcp_packet p;
    size_t used = 0;
    int rc;

    if (size > 0)
        memcpy(copy, data, size);
    while ((rc = pcp_read(in, MAX_BYTES, &p, &used)) == 1) {
        require(used >= PCP_HEADER_BYTES && used <= in.n, "a packet longer than the input");
        require(used <= 1 + MAX_BYTES && p.body.n == used - PCP_HEADER_BYTES, "a wrong body");
        require(pcp_read(slice_of(in.p, used - 1), MAX_BYTES, &p, &used) == 0, "half a packet");
        require(pcp_read(slice_of(in.p, in.n), MAX_BYTES, &p, &used) == 1, "not the same again");
        check_body(p.body);
        in = slice_of(in.p + used, in.n - used);
    }
    require(rc == -1 || in.n < 1 + MAX_BYTES, "an endless packet");
    free(copy);
    return 0;
}

#ifndef FUZZ_LIBFUZZER
#define ROUNDS 200000

static void run_random(unsigned seed)
{
    static const char bytes[] = "\0\0\0\0\0\0\4\5\6\11MRLICDJS-0129a\377";
    uint8_t data[96];
    unsigned x = seed * 2654435761u + 12345u;
    size_t n = seed % sizeof data;
    size_t i;

    for (i = 0; i < n; i++) {
        x = x * 1103515245u + 12345u;
        data[i] = (uint8_t)bytes[(x >> 16) % (sizeof bytes - 1)];
    }
    (void)LLVMFuzzerTestOneInput(data, n);
}

static int replay(const char *path)
{
    static uint8_t data[1 << 20];
    FILE *f = fopen(path, "rb");
    size_t n;

    if (f == NULL)
        return EXIT_FAILURE;
    n = fread(data, 1, sizeof data, f);
    fclose(f);
    return LLVMFuzzerTestOneInput(data, n);
}

int main(int argc, char **argv)
{
    unsigned i;

    for (i = 1; i < (unsigned)argc; i++) {
        if (replay(argv[i]) != 0)
            return EXIT_FAILURE;
    }
    for (i = 0; argc == 1 && i < ROUNDS; i++)
        run_random(i);
    return EXIT_SUCCESS;
}
#endif
