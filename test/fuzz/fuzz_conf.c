/* SPDX-License-Identifier: PostgreSQL
 * fuzz_conf.c: fuzz target over the reader of pgpool.conf. With libFuzzer: clang
 * -fsanitize=fuzzer,address -DFUZZ_LIBFUZZER. Without it a main replays the files given, or runs a
 * fixed number of mutations of its own seeds. Invariants checked: an error if and only if there is
 * no generation; a generation's canonical text loads to an equal one and does not change again. */
#include "config.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "config/conf.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(int cond, const char *what)
{
    if (!cond) {
        fprintf(stderr, "fuzz_conf: %s\n", what);
        abort();
    }
}

static void check_canonical(const struct conf_gen *gen)
{
    struct buf once = {0};
    struct buf twice = {0};
    struct conf_report report;
    conf_report_init(&report);
    conf_dump_canonical(gen, &once);
    struct conf_gen *copy = conf_load_canonical(buf_slice(&once), &report);
    require(copy != NULL, "the canonical text is refused");
    require(conf_equal(gen, copy), "the canonical text changes a setting");
    conf_dump_canonical(copy, &twice);
    require(slice_eq(buf_slice(&once), buf_slice(&twice)), "the canonical text is not stable");
    conf_gen_free(&copy);
    conf_report_fini(&report);
    buf_free(&once);
    buf_free(&twice);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct buf text = {0};
    struct conf_report report;
    conf_report_init(&report);
    struct conf_gen *gen =
        conf_load_text("/nowhere/fuzz.conf", slice_of((const char *)data, size), &report);
    require((gen == NULL) == (report.nerrors > 0), "an error without refusal, or the reverse");
    conf_report_format(&report, &text);
    if (gen != NULL)
        check_canonical(gen);
    conf_gen_free(&gen);
    conf_report_fini(&report);
    buf_free(&text);
    return 0;
}

#ifndef FUZZ_LIBFUZZER

#define MUTATIONS      1500
#define MAX_SEED_BYTES 1024

static const char *const seeds[] = {"backend_hostname0 = 'h'\nbackend_port0 = 5432\nport = 9999\n",
    "log_line_prefix = '%m: %a pid %p: '\nauthentication_timeout = 1min\n# c\n\nssl off\n",
    "primary_routing_query_pattern_list = 'a\\;b;c\\d\\\\'\nfailover_command = 'x''y\\'z'\n",
    ("backend_flag0 = 'ALWAYS_PRIMARY|DISALLOW_TO_FAILOVER'\nbackend_port0 5\n"
     "backend_weight0 = 1.5e0\n"),
    "include = 'nowhere.conf'\nunix_socket_permissions = 0777\nmemqcache_maxcache = 400 kB\n",
    "health_check_period3 = 2\nbackend_port3 = 2345\nlog_destination = 'stderr,syslog'\n"};

static uint64_t next_random(uint64_t *state)
{
    *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return *state >> 33;
}

/* Changes, takes out or doubles a few bytes; favours those that mean something. */
static size_t mutate(uint8_t *bytes, size_t n, uint64_t *state)
{
    static const char marks[] = "'\\=#;,|. \n\t0189abkMs%";
    uint64_t times = 1 + next_random(state) % 4;
    for (uint64_t i = 0; i < times && n > 0; i++) {
        size_t at = next_random(state) % n;
        uint64_t kind = next_random(state) % 4;
        if (kind == 0) {
            bytes[at] = (uint8_t)next_random(state);
        } else if (kind == 1) {
            bytes[at] = (uint8_t)marks[next_random(state) % (sizeof(marks) - 1)];
        } else if (kind == 2) {
            memmove(bytes + at, bytes + at + 1, n - at - 1);
            n--;
        } else if (n < MAX_SEED_BYTES) {
            memmove(bytes + at + 1, bytes + at, n - at);
            bytes[at] = (uint8_t)marks[next_random(state) % (sizeof(marks) - 1)];
            n++;
        }
    }
    return n;
}

static int replay(const char *path)
{
    FILE *f = fopen(path, "rb");
    struct buf b = {0};
    char chunk[4096];
    size_t n;
    if (f == NULL) {
        fprintf(stderr, "fuzz_conf: cannot open %s\n", path);
        return 1;
    }
    while ((n = fread(chunk, 1, sizeof(chunk), f)) > 0)
        buf_put(&b, chunk, n);
    fclose(f);
    LLVMFuzzerTestOneInput((const uint8_t *)(b.data == NULL ? "" : b.data), buf_unread(&b));
    buf_free(&b);
    return 0;
}

int main(int argc, char **argv)
{
    uint64_t state = 99;
    int status = 0;
    for (int i = 1; i < argc; i++)
        status |= replay(argv[i]);
    for (int i = 0; argc == 1 && i < MUTATIONS; i++) {
        uint8_t bytes[MAX_SEED_BYTES + 8];
        const char *seed = seeds[(size_t)i % (sizeof(seeds) / sizeof(seeds[0]))];
        size_t n = strlen(seed);
        memcpy(bytes, seed, n);
        LLVMFuzzerTestOneInput(bytes, mutate(bytes, n, &state));
    }
    return status;
}

#endif
