/* SPDX-License-Identifier: PostgreSQL
 * sim_errors.c: whether an error is the one that is due, or as good. Whole messages. */
#include "config.h"

#include "sim_world.h"

#include <string.h>

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

/* What a failed transaction may be told of what is not there, or not in order. */
static bool is_refusal(const struct errmsg *m)
{
    static const char *const states[] = {
        "25P02", "26000", "34000", "55000", "08P01", "42P03", "42P05"};
    size_t i;

    for (i = 0; i < sizeof states / sizeof states[0]; i++)
        if (slice_eq_str(m->sqlstate, states[i]))
            return true;
    return false;
}

/* In a failed transaction a statement made by PREPARE may be missing on the link: both refuse. */
bool errors_are_as_good(char tx, const char *msg, uint32_t len, const char *want)
{
    struct errmsg m;
    struct errmsg due;

    if (want[0] != BE_ERROR)
        return false;
    (void)errmsg_decode(slice_of(msg + PROTO_HEADER_BYTES, len - 4), &m);
    (void)errmsg_decode(slice_of(want + PROTO_HEADER_BYTES, proto_get_u32(want + 1) - 4), &due);
    return tx == 'E' && is_refusal(&m) && is_refusal(&due);
}

bool errors_are_lost_savepoint(char tx, const struct errmsg *m)
{
    return tx == 'E' && slice_eq_str(m->sqlstate, "3B001");
}

bool errors_are_portal_elsewhere(char tx, char message, const struct errmsg *m)
{
    return (world.opts.nnodes > 1 || world.opts.mode == WORLD_TRANSACTION) && tx != 'I' &&
           (message == FE_EXECUTE || message == FE_DESCRIBE) && slice_eq_str(m->sqlstate, "34000");
}

bool errors_are_not_described(char tx, char message, const struct errmsg *m)
{
    return tx == 'E' && message == FE_DESCRIBE && slice_eq_str(m->sqlstate, "25P02");
}

bool errors_are_lost_link(const struct errmsg *m)
{
    return memcmp(m->sqlstate.p, "08", 2) == 0 || memcmp(m->sqlstate.p, "57P", 3) == 0;
}

bool errors_are_trouble(const struct errmsg *m)
{
    return errors_are_lost_link(m) || slice_eq_str(m->sqlstate, "53300") ||
           (world.nswitches + world.nfenced > 0 && slice_eq_str(m->sqlstate, "25006"));
}

void errors_say_mismatch(int client, const char *msg, uint32_t len, const char *want)
{
    char text[2][80];
    struct errmsg m;
    int i;

    for (i = 0; i < 2; i++) {
        const char *p = i == 0 ? msg : want;
        uint32_t n = i == 0 ? len + 1 : proto_get_u32(want + 1) + 1;
        size_t at = 0;
        uint32_t j;

        for (j = PROTO_HEADER_BYTES; j < n && at + 1 < sizeof text[i]; j++)
            text[i][at++] = (char)(p[j] >= ' ' && p[j] < 127 ? p[j] : '.');
        text[i][at] = '\0';
    }
    if (msg[0] == BE_ERROR) {
        (void)errmsg_decode(slice_of(msg + PROTO_HEADER_BYTES, len - 4), &m);
        sim_note("client %d got error %.*s: %.*s", client, (int)m.sqlstate.n, m.sqlstate.p,
            (int)m.message.n, m.message.p);
    }
    sim_fail(
        "client %d got %c [%s] where %c [%s] is due", client, msg[0], text[0], want[0], text[1]);
}
