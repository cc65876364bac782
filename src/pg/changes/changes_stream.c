/* SPDX-License-Identifier: PostgreSQL
 * changes_stream.c: the messages of a replication stream, and the answer to them.
 * Runs in: the invalidator. Pure. */
#include "config.h"

#include "changes/changes.h"

#include "wire/proto.h"
#include "wire/reader.h"

/* 2000-01-01, where the server's clock begins. */
#define SERVER_EPOCH_US INT64_C(946684800000000)

static uint64_t get_u64(struct wire_reader *r)
{
    uint64_t high = wire_get_u32(r);

    return high << 32 | wire_get_u32(r);
}

static void put_u64(char *out, uint64_t n)
{
    proto_put_u32(out, (uint32_t)(n >> 32));
    proto_put_u32(out + 4, (uint32_t)n);
}

void stream_read(struct slice body, struct stream_msg *out)
{
    struct wire_reader r;
    uint8_t type;

    *out = (struct stream_msg){.kind = STREAM_BAD};
    wire_reader_init(&r, body);
    type = wire_get_u8(&r);
    out->lsn = get_u64(&r);
    if (type == 'w') {
        (void)get_u64(&r); /* how far the server is: nothing that holds for this event */
        (void)get_u64(&r); /* its clock */
        out->text = wire_get_bytes(&r, (uint32_t)wire_reader_left(&r));
        if (wire_reader_ok(&r))
            out->kind = STREAM_DATA;
    } else if (type == 'k') {
        (void)get_u64(&r);
        out->wants_answer = wire_get_u8(&r) != 0;
        if (wire_reader_ok(&r))
            out->kind = STREAM_ALIVE;
    }
}

void stream_reply(char out[STREAM_REPLY_BYTES], uint64_t lsn, int64_t now_us, bool asks_back)
{
    out[0] = 'r';
    put_u64(out + 1, lsn);  /* written */
    put_u64(out + 9, lsn);  /* flushed: the server may forget it */
    put_u64(out + 17, lsn); /* applied */
    put_u64(out + 25, (uint64_t)(now_us - SERVER_EPOCH_US));
    out[33] = asks_back ? 1 : 0;
}
