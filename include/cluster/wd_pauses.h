/* SPDX-License-Identifier: PostgreSQL
 * wd_pauses.h: databases that are paused: what is so here, and what all pgpools agree on, brought
 * together.
 * Runs in: watchdog. Pure. An operator pauses or resumes at one pgpool, at any moment and also
 * while nobody leads; what was changed here since the log was last followed goes into the log,
 * everything else is taken from it. */
#ifndef PGP_CLUSTER_WD_PAUSES_H
#define PGP_CLUSTER_WD_PAUSES_H

#include <stdbool.h>
#include <stdint.h>

#define WD_PAUSES         64
#define WD_DATABASE_BYTES 64

/* Names of databases; an empty one stands for all. */
struct wd_pauses {
    int32_t n;
    char database[WD_PAUSES][WD_DATABASE_BYTES];
};

enum wd_pauses_do {
    WD_PAUSES_NOTHING,
    WD_PAUSES_SAY, /* the log is to hear that `database` was paused, or resumed, here */
    WD_PAUSES_OBEY /* `database` is to be paused, or resumed, here */
};

struct wd_pauses_step {
    enum wd_pauses_do what;
    char database[WD_DATABASE_BYTES];
    bool is_on;
};

/* True when `database` is in the set. */
bool wd_pauses_has(const struct wd_pauses *p, const char *database);
/* Takes it in, or out. False: it is so already, or there is no room. */
bool wd_pauses_set(struct wd_pauses *p, const char *database, bool is_on);
/* The next thing to do. *known is what both sides had when they were last alike: call again after
 * WD_PAUSES_OBEY; after WD_PAUSES_SAY when the log has it, and *known was set by then. A word that
 * was lost on the way is simply said again. */
struct wd_pauses_step wd_pauses_next(
    struct wd_pauses *known, const struct wd_pauses *here, const struct wd_pauses *agreed);

#endif
