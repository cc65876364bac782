/* SPDX-License-Identifier: PostgreSQL
 * doubt.h: transactions that are prepared on several servers, and whether they are to be committed.
 * Runs in: workers (they prepare and decide), control (finishes what a worker left), all (show).
 *
 * A transaction's name says which pgpool made it, in which run, by which worker, and its number
 * there. A decision to commit is a line in a file of that worker (doubt_log.h), written before
 * anybody is told to commit. What has no such line and whose worker is not at it any more is rolled
 * back. */
#ifndef PGP_CLUSTER_DOUBT_H
#define PGP_CLUSTER_DOUBT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/slice.h"
#include "ipc/shm.h"

#define DOUBT_GID_BYTES  96
#define DOUBT_MAX_NODES  64 /* of one transaction, as bits */
#define DOUBT_MAX_ROWS   64
#define DOUBT_NAME_BYTES 64
#define DOUBT_TEXT_BYTES 160

/* Who made a transaction. */
struct doubt_owner {
    uint64_t instance; /* of a pgpool, for good: it is kept in its work_dir */
    uint64_t run;      /* since it was started */
    uint32_t slot;     /* of the worker */
    uint32_t pid;
};

struct doubt_gid {
    struct doubt_owner owner;
    uint64_t number;
};

/* Writes the name; it needs no quoting. */
void doubt_gid_format(const struct doubt_gid *gid, char out[DOUBT_GID_BYTES]);
/* False: no pgpool of ours made it. */
bool doubt_gid_parse(struct slice text, struct doubt_gid *out);

/* Appends the line "this is committed on these nodes", a bit each. */
void doubt_line_put(const char *gid, uint64_t nodes, struct buf *out);
/* Takes the next line of a file that is whole and says so of itself; false: there is none. *gid
 * points into the text. */
bool doubt_line_take(struct slice *text, struct slice *gid, uint64_t *nodes);
/* The nodes on which the file says that `gid` is committed; 0: it says nothing. */
uint64_t doubt_decided(struct slice text, struct slice gid);

/* What becomes of a transaction that is prepared on a server. */
enum doubt_verdict {
    DOUBT_LEAVE,    /* its worker is at it */
    DOUBT_COMMIT,   /* it was decided */
    DOUBT_ROLLBACK, /* it was not, and will not be */
    DOUBT_FOREIGN   /* another pgpool's: that knows */
};

struct doubt_facts {
    bool is_ours;  /* of this instance */
    bool is_alive; /* its worker runs */
    bool is_open;  /* its worker has not done with it */
    bool is_decided;
};
/* What the control process does with one that is prepared. */
enum doubt_verdict doubt_judge(const struct doubt_facts *facts);
/* As SHOW POOL_IN_DOUBT calls it. */
const char *doubt_verdict_name(enum doubt_verdict v);

/* ---- the region DOUBT ---- */

/* A worker's; its successor in the slot goes on with the numbers. */
struct doubt_worker {
    _Atomic uint32_t pid;
    _Atomic uint32_t nleft;  /* how often it left one to the control process */
    _Atomic uint64_t next;   /* number of the next transaction */
    _Atomic uint64_t oldest; /* it has done with all whose numbers are smaller */
    _Atomic uint64_t ended;  /* and these are ended on all nodes: written by control */
};

/* One that is in doubt on a node, as the control process saw it last. */
struct doubt_row {
    int32_t node;
    uint8_t verdict;
    int64_t since_us; /* wall clock: when it was prepared */
    char gid[DOUBT_GID_BYTES];
    char database[DOUBT_NAME_BYTES];
    char why[DOUBT_TEXT_BYTES]; /* it is not finished yet */
};

/* How large the region is for so many workers. */
size_t doubt_region_bytes(int nslots);
/* Reads the pgpool's number from `dir`, or makes `candidate` it, and begins a run. Supervisor,
 * before the first fork. -1 with *err: nothing can be prepared in this run. */
int doubt_region_start(struct shm *shm, int nslots, const char *dir, uint64_t candidate,
    uint64_t run, struct err *err);
/* False: doubt_region_start was not called, or failed. */
bool doubt_owner_of(const struct shm *shm, int slot, struct doubt_owner *out);
struct doubt_worker *doubt_worker_of(const struct shm *shm, uint32_t slot);
/* Whether the process of the owner, which lives, has not done with that number. */
bool doubt_is_open(const struct shm *shm, const struct doubt_gid *gid);
/* What is shown. Control only. */
void doubt_publish(struct shm *shm, const struct doubt_row *rows, uint32_t n);
uint32_t doubt_copy(const struct shm *shm, struct doubt_row *out, uint32_t max);

#endif
