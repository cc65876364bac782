/* SPDX-License-Identifier: PostgreSQL
 * results.h: what the query cache does in sessions (session/caching.h says how they know it).
 * Runs in: workers. */
#ifndef PGP_RESULTS_RESULTS_H
#define PGP_RESULTS_RESULTS_H

#include <stddef.h>

struct sessions;

/* Clients of the worker have it, where the settings that pgpool was started with say so. */
void results_offer(struct sessions *ss);
/* Before sessions_fini, when clients are gone: nobody has it any more. Harmless without. */
void results_withdraw(struct sessions *ss);
/* Somebody has the result that he had asked for (MAIL_CACHE_DONE): whoever waits looks again. */
void results_on_done(struct sessions *ss, const void *body, size_t len);

#endif
