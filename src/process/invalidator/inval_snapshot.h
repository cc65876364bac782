/* SPDX-License-Identifier: PostgreSQL
 * inval_snapshot.h: which transactions are visible. Pure. */
#ifndef PGP_INVAL_SNAPSHOT_H
#define PGP_INVAL_SNAPSHOT_H

#include <stdbool.h>
#include <stdint.h>

/* What txid_current_snapshot() said: numbers in the 32 bits that the WAL has of them. A zeroed one
 * sees nothing, until it is read. */
struct inval_snapshot {
    uint32_t end; /* this one and later ones had not begun, or not written yet */
    uint32_t nrunning;
    uint32_t room;
    uint32_t *running;
};

/* Reads "10:20:10,14". 0, or -1 when it is something else. */
int inval_snapshot_read(struct inval_snapshot *s, const char *text);
/* True when `xid`, which is known to have been committed, is visible. */
bool inval_snapshot_sees(const struct inval_snapshot *s, uint32_t xid);
void inval_snapshot_free(struct inval_snapshot *s);

#endif
