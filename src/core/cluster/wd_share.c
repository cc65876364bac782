/* SPDX-License-Identifier: PostgreSQL
 * wd_share.c: the region WATCHDOG of shared memory.
 * Runs in: watchdog (writing), all others (reading). */
#include "config.h"

#include "cluster/wd_share.h"

#include <string.h>

struct wd_region {
    struct shm_seq seq;
    struct wd_share share;
};

size_t wd_share_region_bytes(void)
{
    return sizeof(struct wd_region);
}

void wd_share_publish(struct shm *shm, const struct wd_share *s)
{
    struct wd_region *r = shm_get(shm, SHM_WATCHDOG);

    if (r == NULL)
        return;
    shm_write_begin(&r->seq);
    r->share = *s;
    shm_write_end(&r->seq);
}

bool wd_share_copy(const struct shm *shm, struct wd_share *out)
{
    const struct wd_region *r = shm_get(shm, SHM_WATCHDOG);
    uint32_t seen;

    memset(out, 0, sizeof *out);
    if (r == NULL)
        return false;
    do {
        seen = shm_read_begin(&r->seq);
        *out = r->share;
    } while (shm_read_retry(&r->seq, seen));
    return out->is_on;
}

bool wd_share_knows_leader(const struct wd_share *s)
{
    return s->leader != WD_NO_MEMBER && s->leader == s->state.leader;
}

const char *wd_membership_text(int membership)
{
#define WD_MEMBERSHIP(sym, number, text)                                                           \
    case number:                                                                                   \
        return text;
    switch (membership) {
        WD_MEMBERSHIPS(WD_MEMBERSHIP)
    }
#undef WD_MEMBERSHIP
    return "UNKNOWN";
}

const char *wd_member_state_text(int state)
{
#define WD_MEMBER_STATE(sym, number, text)                                                         \
    case number:                                                                                   \
        return text;
    switch (state) {
        WD_MEMBER_STATES(WD_MEMBER_STATE)
    }
#undef WD_MEMBER_STATE
    return "UNKNOWN";
}
