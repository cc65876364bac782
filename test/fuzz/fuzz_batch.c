/* SPDX-License-Identifier: PostgreSQL
 * fuzz_batch.c: fuzz target over message.h and batch.c, as a worker uses them for what a client
 * sends. Invariants checked: nothing read outside the input, views inside the message, every
 * message that is not bad is made of its fields and nothing else, no message before all of it has
 * come, and a lone statement is what its messages are. */
#include "config.h"

#include "base/buf.h"
#include "wire/batch.h"
#include "wire/writer.h"

#include "fuzz_bytes.h"

static void put_text(struct buf *b, struct slice s)
{
    if (s.p == NULL)
        return;
    buf_put(b, s.p, s.n);
    buf_put_byte(b, '\0');
}

/* The message made again of what was read of it. */
static void put_again(struct buf *b, const struct batch_msg *m)
{
    uint32_t at = wire_begin(b, m->type);
    char number[4];

    if (m->type == FE_DESCRIBE || m->type == FE_CLOSE)
        buf_put_byte(b, m->what);
    put_text(b, m->portal);
    put_text(b, m->name);
    put_text(b, m->sql);
    buf_put(b, m->rest.p, m->rest.n);
    if (m->type == FE_EXECUTE) {
        proto_put_u32(number, m->max_rows);
        buf_put(b, number, sizeof number);
    }
    wire_end(b, at);
}

static void check_message(const struct batch_msg *m)
{
    struct buf again = {0};

    require_inside(m->body, m->name);
    require_inside(m->body, m->portal);
    require_inside(m->body, m->sql);
    require_inside(m->body, m->rest);
    if (!m->is_bad) {
        put_again(&again, m);
        require(slice_eq(buf_slice(&again), m->whole), "a message is not what is in it");
    }
    buf_free(&again);
}

/* Returns how many there are. */
static size_t fuzz_messages(struct slice in)
{
    const char *end = in.p + in.n;
    const char *p = in.p;
    const char *q;
    struct batch_msg m;
    struct batch_msg cut;
    size_t n;

    for (n = 0; batch_next(&p, end, &m); n++) {
        require_inside(in, m.whole);
        require(p == m.whole.p + m.whole.n && m.whole.n >= PROTO_HEADER_BYTES, "no way forward");
        check_message(&m);
        q = m.whole.p;
        require(!batch_next(&q, p - 1, &cut) && q == m.whole.p, "a message before its end");
    }
    require(p <= end, "read behind the end");
    return n;
}

/* The next message is of this type, and none of its names is another one's. */
static void check_next(const char **p, const struct batch_lone *l, char type)
{
    struct batch_msg m;

    require(batch_next(p, l->end, &m) && m.type == type && !m.is_bad, "not of its messages");
    require(m.portal.n == 0, "of another portal");
    if (type == FE_PARSE || type == FE_BIND)
        require(slice_eq(m.name, l->name), "of another statement");
    if (type == FE_PARSE)
        require(m.sql.p == l->sql.p && slice_eq(batch_statement(&m), batch_lone_statement(l)),
            "another text");
    if (type == FE_BIND)
        require(m.whole.p == l->bind.p && slice_eq(m.rest, batch_lone_values(l)), "another Bind");
}

static void fuzz_lone(struct slice in)
{
    const char *p = in.p;
    struct batch_lone l;

    if (!batch_lone_read(&l, in.p, in.p + in.n))
        return;
    if (l.parse.p != NULL)
        check_next(&p, &l, FE_PARSE);
    check_next(&p, &l, FE_BIND);
    if (l.describes)
        check_next(&p, &l, FE_DESCRIBE);
    check_next(&p, &l, FE_EXECUTE);
    if (l.syncs)
        check_next(&p, &l, FE_SYNC);
    require(p == l.end, "it ends elsewhere");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    /* A copy of exactly that size: the sanitizer sees a read one byte too far. */
    char *copy = calloc(1, size == 0 ? 1 : size);
    struct slice in = slice_of(copy, size);
    struct slice sequence;
    struct batch_msg m;
    const char *p;

    if (copy == NULL)
        return 0;
    if (size > 0)
        memcpy(copy, data, size);
    (void)fuzz_messages(in);
    fuzz_lone(in);
    sequence = batch_to_sync(in.p, in.p + in.n, 100);
    require(sequence.n <= 100, "longer than asked for");
    for (p = in.p; sequence.p != NULL && p < sequence.p + sequence.n;)
        require(batch_next(&p, sequence.p + sequence.n, &m) &&
                    (m.type == FE_SYNC) == (p == sequence.p + sequence.n),
            "not up to the first Sync");
    if (size > 0) {
        batch_read(&m, copy[0], slice_of(copy + 1, size - 1));
        m.whole = in;
        require_inside(in, m.sql);
        require_inside(in, m.rest);
    }
    free(copy);
    return 0;
}

#ifndef FUZZ_LIBFUZZER
static const struct slice seeds[] = {SEED("Q\0\0\0\xdselect 1\0X\0\0\0\4"),
    SEED("P\0\0\0\x10\0select "
         "1\0\0\0B\0\0\0\x0c\0\0\0\0\0\0\0\0D\0\0\0\6P\0E\0\0\0\x09\0\0\0\0\0S\0\0\0\4"),
    SEED("B\0\0\0\x0d\0s\0\0\0\0\0\0\0E\0\0\0\x09\0\0\0\0\5S\0\0\0\4S\0\0\0\4"),
    SEED("C\0\0\0\7Ss\0C\0\0\0\7Pp\0H\0\0\0\4F\0\0\0\x08\0\0\0\1d\0\0\0\5xc\0\0\0\4"),
    SEED("P\0\0\0\x11s\0select 1\0\0\0D\0\0\0\7Ss\0S\0\0\0\4")};

FUZZ_MAIN(seeds)
#endif
