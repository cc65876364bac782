/* SPDX-License-Identifier: PostgreSQL
 * sim_sight.c: how much of the log a client may see: read_consistency, and one snapshot where a
 * transaction has one. */
#include "config.h"

#include "sim_world.h"

#include <string.h>

#include "wire/proto.h"

void sight_reset(struct sight *s)
{
    s->written = 0;
    s->others = 0;
    s->snapshot = -1;
}

void sight_on_ask(struct sight *s)
{
    s->others = world.tags.acked;
}

void sight_on_ack(struct sight *s, int tag)
{
    if (world.tags.at[tag] > s->written)
        s->written = world.tags.at[tag];
    if (world.tags.at[tag] > world.tags.acked)
        world.tags.acked = world.tags.at[tag];
}

static void check_position(
    struct sight *s, const struct pg_session *model, int client, int64_t seen)
{
    bool has_snapshot = model->tx == 'T' && model->tx_one_snapshot;

    world.nseen++;
    if (!has_snapshot || model->tx_number != s->tx_number)
        s->snapshot = -1;
    s->tx_number = model->tx_number;
    if (has_snapshot && s->snapshot != -1 && seen != s->snapshot)
        sim_fail("client %d sees position %lld in a snapshot of %lld", client, (long long)seen,
            (long long)s->snapshot);
    if (world.opts.consistency != WORLD_EVENTUAL && seen < s->written && !server_holds_session())
        sim_fail("client %d sees position %lld, it has written %lld", client, (long long)seen,
            (long long)s->written);
    if (world.opts.consistency == WORLD_GLOBAL && seen < s->others &&
        (!has_snapshot || s->snapshot == -1) && !server_holds_session())
        sim_fail("client %d sees position %lld, all were told of %lld", client, (long long)seen,
            (long long)s->others);
    if (has_snapshot)
        s->snapshot = seen;
}

bool sight_is_row(
    struct sight *s, const struct pg_session *model, int client, const char *want, const char *got)
{
    uint32_t len = proto_get_u32(want + 1);
    const char *mask;
    int64_t seen = 0;
    size_t at;
    size_t i;

    if (want[0] != got[0] || len != proto_get_u32(got + 1))
        return false;
    mask = memmem(want, len + 1U, PG_POSITION_MASK, PG_POSITION_WIDTH);
    if (mask == NULL)
        return memcmp(want, got, len + 1U) == 0;
    at = (size_t)(mask - want);
    for (i = 0; i < PG_POSITION_WIDTH; i++) {
        if (got[at + i] < '0' || got[at + i] > '9')
            return false;
        seen = 10 * seen + (got[at + i] - '0');
    }
    if (memcmp(want, got, at) != 0 ||
        memcmp(mask + i, got + at + i, len + 1U - at - PG_POSITION_WIDTH) != 0)
        return false;
    check_position(s, model, client, seen);
    return true;
}
