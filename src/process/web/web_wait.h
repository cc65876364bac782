/* SPDX-License-Identifier: PostgreSQL
 * web_wait.h: waiting for what was ordered in the console. Runs in: web. */
#ifndef PGP_PROCESS_WEB_WAIT_H
#define PGP_PROCESS_WEB_WAIT_H

#include "web_action.h"

struct web_waits *web_waits_new(struct web *w);
/* *wp may be NULL. */
void web_waits_free(struct web_waits **wp);
/* Watches ORDER_PAUSE or ORDER_DRAIN of `database` (empty: all), which was ordered just now by
 * `who`; its end becomes an event. */
void web_waits_add(struct web_waits *ws, struct slice database, unsigned flag, const char *who);

#endif
