/* SPDX-License-Identifier: PostgreSQL
 * fuzz_wire.c: fuzz target over startup_decode, the option splitter, framer, reader and
 * errmsg_decode. With libFuzzer: clang -fsanitize=fuzzer,address -DFUZZ_LIBFUZZER. Without it a
 * main replays the files given, or runs a fixed number of mutations of its own seeds. Invariants
 * checked: nothing read outside the input, views inside the input, framing independent of how bytes
 * arrive. */
#include "config.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "wire/errmsg.h"
#include "wire/framer.h"
#include "wire/reader.h"
#include "wire/startup.h"
#include "wire/writer.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(int cond, const char *what)
{
    if (!cond) {
        fprintf(stderr, "fuzz_wire: %s\n", what);
        abort();
    }
}

static void require_inside(struct slice all, struct slice s)
{
    if (s.n > 0)
        require(s.p >= all.p && s.p + s.n <= all.p + all.n, "a view leaves the input");
}

static void count_option(struct slice name, struct slice value, void *ctx)
{
    size_t *total = ctx;

    *total += name.n + value.n;
}

/* What was decoded must decode to the same when built again. */
static void check_startup_again(const struct startup *st)
{
    struct startup again;
    struct err err = {0};
    struct buf b = {0};

    startup_encode(&b, st->version, st->user, st->database, st->params, st->nparams);
    if (b.len <= PROTO_STARTUP_MAX_BYTES) {
        require(startup_decode(buf_slice(&b), &again, &err) == STARTUP_NORMAL, "not built again");
        require(slice_eq(again.user, st->user), "user differs");
        require(slice_eq(again.database, st->database), "database differs");
        require(again.nparams == st->nparams, "parameters differ");
    }
    buf_free(&b);
}

static void fuzz_startup(struct slice in)
{
    struct startup st;
    struct err err = {0};
    enum startup_kind kind = startup_decode(in, &st, &err);
    size_t total = 0;
    unsigned i;

    require((kind == STARTUP_BAD) == err_is_set(&err), "refused without saying why");
    require_inside(in, st.user);
    require_inside(in, st.database);
    require_inside(in, st.options);
    require_inside(in, st.cancel_key);
    for (i = 0; i < st.nparams; i++) {
        require_inside(in, st.params[i].name);
        require_inside(in, st.params[i].value);
    }
    if (kind != STARTUP_NEED_MORE && kind != STARTUP_BAD)
        require(st.packet_bytes <= in.n, "more used than there was");
    if (kind == STARTUP_NORMAL) {
        require(st.user.n > 0 && st.database.n > 0, "no user or database");
        check_startup_again(&st);
        startup_split_options(st.options, count_option, &total);
        require(total <= st.options.n + 2 * st.options.n, "options grew");
    }
    startup_split_options(in, count_option, &total);
}

static void fuzz_reader(struct slice in)
{
    struct wire_reader r;
    struct slice s;
    bool is_null = false;
    size_t steps = 0;

    wire_reader_init(&r, in);
    while (!r.bad && wire_reader_left(&r) > 0) {
        switch (steps++ % 5) {
        case 0:
            s = wire_get_value(&r, &is_null);
            break;
        case 1:
            s = wire_get_cstr(&r);
            break;
        case 2:
            s = wire_get_bytes(&r, wire_get_u8(&r));
            break;
        case 3:
            s = wire_get_bytes(&r, wire_get_u16(&r));
            break;
        default:
            s = slice_of("", 0);
            wire_get_u32(&r);
            break;
        }
        require_inside(in, s);
        require(r.p <= r.end, "reader ran past the end");
    }
    require(steps <= in.n + 1, "reader makes no progress");
}

static void fuzz_errmsg(struct slice in)
{
    struct errmsg m;
    struct err err;
    struct buf b = {0};

    errmsg_decode(in, &m);
    require_inside(in, m.message);
    require_inside(in, m.sqlstate);
    errmsg_to_err(&m, &err);
    require(strlen(err.sqlstate) == 5, "no SQLSTATE");
    require(err_is_set(&err) && err.msg[0] != '\0', "no message");
    wire_put_err(&b, &err);
    require(errmsg_decode(slice_of(b.data + 5, b.len - 5), &m) == 0, "our own error is malformed");
    buf_free(&b);
}

/* Frames the input in pieces of `step` bytes; returns a hash of what was seen. */
static uint64_t fuzz_framer(struct slice in, size_t step)
{
    struct wire_framer f = {0};
    const char *p = in.p;
    const char *end = in.p;
    const char *stop = in.p + in.n;
    uint64_t seen = 0;
    bool in_body = false;

    while (end < stop) {
        end = (size_t)(stop - end) < step ? stop : end + step;
        while (p < end) {
            if (in_body) {
                in_body = !wire_framer_body(&f, &p, end);
                continue;
            }
            switch (wire_framer_header(&f, &p, end)) {
            case FRAME_HEADER:
                seen = seen * 31 + (unsigned char)f.type + ((uint64_t)f.body_left << 8);
                in_body = f.body_left > 0;
                break;
            case FRAME_MORE:
                require(p == end, "bytes left over");
                break;
            case FRAME_BAD:
                return seen * 31 + 1;
            }
        }
        require(p <= stop, "framer ran past the end");
    }
    return seen;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    /* A copy of exactly that size: the sanitizer sees a read one byte too far. */
    char *copy = calloc(1, size == 0 ? 1 : size);
    struct slice in = slice_of(copy, size);
    uint64_t whole;

    if (copy == NULL)
        return 0;
    if (size > 0)
        memcpy(copy, data, size);
    fuzz_startup(in);
    fuzz_reader(in);
    fuzz_errmsg(in);
    whole = fuzz_framer(in, size == 0 ? 1 : size);
    require(whole == fuzz_framer(in, 1), "framing depends on how bytes arrive");
    require(whole == fuzz_framer(in, 3), "framing depends on how bytes arrive");
    free(copy);
    return 0;
}

#ifndef FUZZ_LIBFUZZER

#define MUTATIONS      200000
#define MAX_SEED_BYTES 512

#define SEED(lit)                                                                                  \
    {                                                                                              \
        lit, sizeof(lit) - 1                                                                       \
    }

static const struct slice seeds[] = {
    SEED("\0\0\0\x31\0\3\0\0user\0alice\0database\0shop\0options\0-c a=1\0\0"),
    SEED("\0\0\0\x10\x04\xd2\x16\x2e\0\0\0\1\0\0\0\2"), SEED("\0\0\0\x08\x04\xd2\x16\x2f"),
    SEED("\0\0\0\x1b\0\3\x27\x0f_pq_.x\0\0user\0a\0\0"),
    SEED("Q\0\0\0\x0dselect 1\0S\0\0\0\4X\0\0\0\4"),
    SEED("SERROR\0VERROR\0C42601\0Msyntax error\0P1\0\0"),
    SEED("\0\0\0\3abc\xff\xff\xff\xffname\0\2xy\0\1z")};

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

int main(int argc, char **argv)
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
        seed = &seeds[(size_t)i % (sizeof seeds / sizeof seeds[0])];
        memcpy(bytes, seed->p, seed->n);
        LLVMFuzzerTestOneInput(bytes, mutate(bytes, seed->n, &state));
    }
    return 0;
}

#endif
