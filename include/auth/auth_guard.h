/* SPDX-License-Identifier: PostgreSQL
 * auth_guard.h: failed logins per client address, over all workers, and the secret that stand-ins
 * for unknown users are made from.
 * Runs in: supervisor (making it, before the first fork), workers. Lives in shared memory: all
 * workers must give an unknown user the same salt, and a guesser must not gain by being served by
 * many. */
#ifndef PGP_AUTH_AUTH_GUARD_H
#define PGP_AUTH_AUTH_GUARD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "auth/hba.h"
#include "base/err.h"
#include "base/slice.h"
#include "ipc/proc.h"

#define AUTH_GUARD_WINDOW_S     60
#define AUTH_GUARD_SECRET_BYTES 32

struct auth_guard;

/* Size of the region. */
size_t auth_guard_bytes(void);
/* Fills the zeroed region: makes the secret. */
void auth_guard_init(struct auth_guard *g);
/* Takes the secret from the file that an earlier run left in folder `dir`, or leaves one there:
 * before the first fork. -1 with *err: the secret is that of this run alone. */
int auth_guard_keep(struct auth_guard *g, const char *dir, struct err *err);
/* Replaces the secret, before the first fork. */
void auth_guard_set_secret(struct auth_guard *g, const uint8_t secret[AUTH_GUARD_SECRET_BYTES]);
/* The secret; a view into the region. */
struct slice auth_guard_secret(const struct auth_guard *g);
/* auth_query has answered with a SCRAM verifier of so many iterations; 0: with an md5 secret. Most
 * of them decide what stand-ins for unknown users look like. */
void auth_guard_vote(struct auth_guard *g, uint32_t iterations);
/* What most of them are: iterations, 0 for md5; PostgreSQL's default as long as there are none. */
uint32_t auth_guard_usual(const struct auth_guard *g);
/* What it costs to compare a password with what is usual. */
uint32_t auth_guard_usual_cost(const struct auth_guard *g);
/* Logins are counted apart while it could not be found out whose password is right: who only came
 * at a bad time is not kept out when it is over. */
enum auth_guard_kind { AUTH_GUARD_WRONG, AUTH_GUARD_UNSURE };

/* True when `limit` (0: none) logins of that kind from the address failed in the minute that runs
 * at `now_s` (any clock that all workers share). Unix sockets are never blocked. */
bool auth_guard_is_blocked(struct auth_guard *g, enum auth_guard_kind kind,
    const struct hba_addr *addr, uint32_t now_s, uint32_t limit);
/* Counts a failed login. Returns the how manieth this was in the minute that runs. */
uint32_t auth_guard_count(
    struct auth_guard *g, enum auth_guard_kind kind, const struct hba_addr *addr, uint32_t now_s);
/* Blocks the address for a minute, whatever the limit: it has reached it somewhere else. */
void auth_guard_bar(struct auth_guard *g, const struct hba_addr *addr, uint32_t now_s);
/* Has the other pgpools of a watchdog cluster do so. Harmless where there is none. */
void auth_guard_tell(const struct proc_env *env, const struct hba_addr *addr);
/* How many were counted since the start, from all addresses. */
uint64_t auth_guard_failures(const struct auth_guard *g);

#endif
