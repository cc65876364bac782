/* SPDX-License-Identifier: PostgreSQL
 * qcache_result.c: what of a reply is the result that is kept of it. Runs in: workers. Pure. */
#include "config.h"

#include "qcache/qcache.h"
#include "wire/message.h"

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

struct slice qcache_result_in(
    struct slice in, unsigned number, unsigned nstatements, bool has_shape)
{
    const char *p = in.p;
    const char *from = in.p;
    const char *to = NULL;
    enum part at = PART_BEGIN;
    bool has_columns = false;
    struct message m;
    unsigned n = 0; /* the statement whose messages these are */

    while (message_next(&p, in.p + in.n, &m)) {
        at = next_part(at, m.type);
        has_columns = has_columns || (n == number && m.type == BE_ROW_DESCRIPTION);
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
        has_columns != has_shape)
        return slice_of(NULL, 0);
    return slice_of(from, (size_t)(to - from));
}
