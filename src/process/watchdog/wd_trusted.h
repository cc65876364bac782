/* SPDX-License-Identifier: PostgreSQL
 * wd_trusted.h: trusted_servers: hosts whose answers tell that the network is there.
 * Runs in: watchdog. All are asked at once, by trusted_server_command, at the start, every
 * wd_interval and when somebody wants to know. One answer is enough. */
#ifndef PGP_WATCHDOG_WD_TRUSTED_H
#define PGP_WATCHDOG_WD_TRUSTED_H

#include <stdbool.h>

#include "base/err.h"
#include "event/loop.h"

struct conf;
struct wd_trusted;

enum wd_trust {
    WD_TRUST_UNKNOWN, /* they have not been asked yet */
    WD_TRUST_ANSWERS, /* one of them did, or there are none to ask */
    WD_TRUST_SILENT   /* none of them did */
};

/* A round has ended; not called from within a call of wd_trusted_*. */
typedef void wd_trusted_fn(void *owner);

/* Begins the first round. NULL with *err when a name cannot be handed to a shell. */
struct wd_trusted *wd_trusted_new(
    struct loop *lp, const struct conf *conf, wd_trusted_fn *fn, void *owner, struct err *err);
/* Commands that still run go on unseen. Clears *tp. */
void wd_trusted_free(struct wd_trusted **tp);
/* After a reload: another trusted_server_command. */
void wd_trusted_reload(struct wd_trusted *t, const struct conf *conf);
/* Asks now, unless a round is under way. */
void wd_trusted_ask(struct wd_trusted *t);
/* What the last round said. */
enum wd_trust wd_trusted_state(const struct wd_trusted *t);
/* True when there are some, and one has answered since then (loop time). */
bool wd_trusted_answered(const struct wd_trusted *t, int64_t since_us);

#endif
