/* SPDX-License-Identifier: PostgreSQL
 * sim_errors.c: whether an error is the one that is due, or as good. Whole messages. */
#include "config.h"

#include "sim_world.h"

#include "wire/errmsg.h"
#include "wire/proto.h"

bool errors_are_same(const char *a, uint32_t alen, const char *b)
{
    struct errmsg x;
    struct errmsg y;

    if (b[0] != BE_ERROR)
        return false;
    (void)errmsg_decode(slice_of(a + PROTO_HEADER_BYTES, alen - 4), &x);
    (void)errmsg_decode(slice_of(b + PROTO_HEADER_BYTES, proto_get_u32(b + 1) - 4), &y);
    return slice_eq(x.sqlstate, y.sqlstate) && slice_eq(x.message, y.message);
}

/* In a failed transaction a statement made by PREPARE may be missing on the link: both refuse. */
bool errors_are_as_good(const char *msg, uint32_t len, const char *want)
{
    struct errmsg m;
    struct errmsg due;

    if (want[0] != BE_ERROR)
        return false;
    (void)errmsg_decode(slice_of(msg + PROTO_HEADER_BYTES, len - 4), &m);
    (void)errmsg_decode(slice_of(want + PROTO_HEADER_BYTES, proto_get_u32(want + 1) - 4), &due);
    if (world.opts.mode == WORLD_SESSION && world.opts.nnodes > 1 &&
        slice_eq_str(m.sqlstate, "55000") && slice_eq_str(due.sqlstate, "34000"))
        return true; /* a portal without a name that a query on another server would have closed */
    return (slice_eq_str(m.sqlstate, "26000") && slice_eq_str(due.sqlstate, "25P02")) ||
           (slice_eq_str(m.sqlstate, "25P02") && slice_eq_str(due.sqlstate, "26000"));
}
