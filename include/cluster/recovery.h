/* SPDX-License-Identifier: PostgreSQL
 * recovery.h: online recoveries, past and present: the region RECOVERY of shared memory.
 * Written by: control, which runs them. Read by: everybody who shows them. */
#ifndef PGP_CLUSTER_RECOVERY_H
#define PGP_CLUSTER_RECOVERY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cluster/view.h"
#include "ipc/shm.h"

#define RECOVERY_MAX_ROWS   16 /* the last ones are kept */
#define RECOVERY_TEXT_BYTES 840
#define RECOVERY_HINT_BYTES 192

/* RECOVERY_STEP(symbol, name): in the order in which they are done. The second stage is that of
 * native replication, whose main node takes the place of the primary. */
#define RECOVERY_STEPS(X)                                                                          \
    X(CONNECT, "connecting to the primary")                                                        \
    X(COPY, "first stage: copying the primary")                                                    \
    X(HOLD, "second stage: waiting for transactions to end")                                       \
    X(SECOND, "second stage: copying the rest")                                                    \
    X(START, "starting the server")                                                                \
    X(WAIT, "waiting for the server to answer")                                                    \
    X(ATTACH, "attaching the node")                                                                \
    X(DONE, "done")

#define RECOVERY_STEP(sym, name) RECOVERY_##sym,
enum recovery_step { RECOVERY_STEPS(RECOVERY_STEP) RECOVERY_STEP_COUNT };
#undef RECOVERY_STEP

struct recovery_row {
    uint64_t number; /* 1, 2, ...; 0: no recovery */
    int32_t node;
    int32_t primary;
    uint8_t step; /* enum recovery_step: where it is, or where it ended */
    bool is_over;
    bool is_ok;
    int64_t began_us; /* wall clock */
    int64_t step_us;  /* when this step began */
    int64_t ended_us; /* 0: not yet */
    char who[VIEW_WHO_BYTES];
    char text[RECOVERY_TEXT_BYTES]; /* why it failed */
    char hint[RECOVERY_HINT_BYTES]; /* what to do about it; empty: nobody knows */
};

/* Size of the region. */
size_t recovery_region_bytes(void);
/* Writes a row: a new one when its number is one more than the last, else the row of that number.
 * Control only. */
void recovery_publish(struct shm *shm, const struct recovery_row *row);
/* Copies up to `max` rows, oldest first; returns how many. */
int recovery_copy(const struct shm *shm, struct recovery_row *out, int max);
/* The number of the last one; 0: none was. */
uint64_t recovery_last_number(const struct shm *shm);
const char *recovery_step_name(enum recovery_step step);

#endif
