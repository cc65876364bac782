/* SPDX-License-Identifier: PostgreSQL
 * fuzz_wire.c: fuzz target over startup_decode, the option splitter, reader and
 * errmsg_decode. With libFuzzer: clang -fsanitize=fuzzer,address -DFUZZ_LIBFUZZER. Without it a
 * main replays the files given, or runs a fixed number of mutations of its own seeds. Invariants
 * checked: nothing read outside the input, views inside the input. */
#include "config.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "wire/errmsg.h"
#include "wire/reader.h"
#include "wire/startup.h"
#include "wire/writer.h"

#include "fuzz_bytes.h"

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

    require((kind == STARTUP_BAD || kind == STARTUP_SILENT) == err_is_set(&err),
        "refused without saying why");
    require_inside(in, st.user);
    require_inside(in, st.database);
    require_inside(in, st.options);
    require_inside(in, st.cancel_key);
    for (i = 0; i < st.nparams; i++) {
        require_inside(in, st.params[i].name);
        require_inside(in, st.params[i].value);
    }
    if (kind != STARTUP_NEED_MORE && kind != STARTUP_BAD && kind != STARTUP_SILENT)
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

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    /* A copy of exactly that size: the sanitizer sees a read one byte too far. */
    char *copy = calloc(1, size == 0 ? 1 : size);
    struct slice in = slice_of(copy, size);

    if (copy == NULL)
        return 0;
    if (size > 0)
        memcpy(copy, data, size);
    fuzz_startup(in);
    fuzz_reader(in);
    fuzz_errmsg(in);
    free(copy);
    return 0;
}

#ifndef FUZZ_LIBFUZZER
static const struct slice seeds[] = {
    SEED("\0\0\0\x31\0\3\0\0user\0alice\0database\0shop\0options\0-c a=1\0\0"),
    SEED("\0\0\0\x10\x04\xd2\x16\x2e\0\0\0\1\0\0\0\2"), SEED("\0\0\0\x08\x04\xd2\x16\x2f"),
    SEED("\0\0\0\x1b\0\3\x27\x0f_pq_.x\0\0user\0a\0\0"),
    SEED("SERROR\0VERROR\0C42601\0Msyntax error\0P1\0\0"),
    SEED("\0\0\0\3abc\xff\xff\xff\xffname\0\2xy\0\1z")};

FUZZ_MAIN(seeds)
#endif
