/* SPDX-License-Identifier: PostgreSQL
 * recovery.c: the table of online recoveries in shared memory.
 * Runs in: control (writing), all others (reading). A row stays after its recovery is over, until
 * newer ones need the room. */
#include "config.h"

#include "cluster/recovery.h"

struct recovery_region {
    struct shm_seq seq;
    uint64_t last;
    struct recovery_row row[RECOVERY_MAX_ROWS];
};

size_t recovery_region_bytes(void)
{
    return sizeof(struct recovery_region);
}

void recovery_publish(struct shm *shm, const struct recovery_row *row)
{
    struct recovery_region *r = shm_get(shm, SHM_RECOVERY);

    shm_write_begin(&r->seq);
    r->row[row->number % RECOVERY_MAX_ROWS] = *row;
    if (row->number > r->last)
        r->last = row->number;
    shm_write_end(&r->seq);
}

int recovery_copy(const struct shm *shm, struct recovery_row *out, int max)
{
    const struct recovery_region *r = shm_get(shm, SHM_RECOVERY);
    uint64_t n;
    uint64_t i;
    uint32_t seen;

    if (r == NULL)
        return 0;
    do {
        seen = shm_read_begin(&r->seq);
        n = r->last < RECOVERY_MAX_ROWS ? r->last : RECOVERY_MAX_ROWS;
        if (n > (uint64_t)max)
            n = (uint64_t)max;
        for (i = 0; i < n; i++)
            out[i] = r->row[(r->last - n + 1 + i) % RECOVERY_MAX_ROWS];
    } while (shm_read_retry(&r->seq, seen));
    return (int)n;
}

uint64_t recovery_last_number(const struct shm *shm)
{
    const struct recovery_region *r = shm_get(shm, SHM_RECOVERY);
    uint64_t n;
    uint32_t seen;

    if (r == NULL)
        return 0;
    do {
        seen = shm_read_begin(&r->seq);
        n = r->last;
    } while (shm_read_retry(&r->seq, seen));
    return n;
}

const char *recovery_step_name(enum recovery_step step)
{
#define RECOVERY_STEP(sym, name) [RECOVERY_##sym] = name,
    static const char *const names[] = {RECOVERY_STEPS(RECOVERY_STEP)};
#undef RECOVERY_STEP

    return step < RECOVERY_STEP_COUNT ? names[step] : "";
}
