/* SPDX-License-Identifier: PostgreSQL
 * qcache_result.c: what of a reply is the result that is kept of it. Runs in: workers. Pure. */
#include "config.h"

#include "qcache/qcache.h"
#include "wire/message.h"
#include "wire/reader.h"

#include "qcache_int.h"

/* Where in a reply we are. */
enum part { PART_BEGIN, PART_ROWS, PART_TAG, PART_READY, PART_OTHER };

static enum part next_part(enum part at, char type)
{
    switch (type) {
    case BE_PARSE_COMPLETE:
    case BE_BIND_COMPLETE:
        return at == PART_BEGIN ? PART_BEGIN : PART_OTHER;
    case BE_ROW_DESCRIPTION:
        return at == PART_BEGIN ? PART_ROWS : PART_OTHER;
    case BE_DATA_ROW:
        return at <= PART_ROWS ? PART_ROWS : PART_OTHER;
    case BE_COMMAND_COMPLETE:
        return at <= PART_ROWS ? PART_TAG : PART_OTHER;
    case BE_READY:
        return at == PART_TAG ? PART_READY : PART_OTHER;
    default:
        return PART_OTHER;
    }
}

static bool moves_by_itself(uint32_t type)
{
    static const uint32_t types[] = {QCACHE_MOVING_TYPES};
    size_t i;

    for (i = 0; i < sizeof types / sizeof types[0]; i++)
        if (types[i] == type)
            return true;
    return false;
}

static bool has_such_columns(struct slice columns)
{
    struct wire_reader r;
    uint16_t n;
    bool has = false;

    wire_reader_init(&r, columns);
    for (n = wire_get_u16(&r); n > 0 && !r.bad && !has; n--) {
        (void)wire_get_cstr(&r);
        (void)wire_get_u32(&r); /* the table */
        (void)wire_get_u16(&r); /* its column */
        has = moves_by_itself(wire_get_u32(&r));
        (void)wire_get_u16(&r); /* the type's size, */
        (void)wire_get_u32(&r); /* its modifier */
        (void)wire_get_u16(&r); /* and the format */
    }
    return has;
}

struct slice qcache_result_in(
    struct slice in, unsigned number, unsigned nstatements, bool has_shape)
{
    const char *p = in.p;
    const char *from = in.p;
    const char *to = NULL;
    enum part at = PART_BEGIN;
    bool has_columns = false;
    bool moves = false;
    struct message m;
    unsigned n = 0; /* the statement whose messages these are */

    while (message_next(&p, in.p + in.n, &m)) {
        at = next_part(at, m.type);
        has_columns = has_columns || (n == number && m.type == BE_ROW_DESCRIPTION);
        moves = moves || (m.type == BE_ROW_DESCRIPTION && has_such_columns(m.body));
        if (n == number && at == PART_BEGIN)
            from = p;
        if (at != PART_TAG)
            continue;
        if (n == number)
            to = p;
        if (++n < nstatements)
            at = PART_BEGIN;
        if (n == number)
            from = p;
    }
    if ((at != PART_TAG && at != PART_READY) || n != nstatements || p != in.p + in.n ||
        has_columns != has_shape || moves)
        return slice_of(NULL, 0);
    return slice_of(from, (size_t)(to - from));
}
