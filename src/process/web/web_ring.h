/* SPDX-License-Identifier: PostgreSQL
 * web_ring.h: what happened lately, kept for the charts of the console. Runs in: web. */
#ifndef PGP_PROCESS_WEB_RING_H
#define PGP_PROCESS_WEB_RING_H

#include "web_int.h"

/* Starts to look once a second. */
struct web_ring *web_ring_new(struct web *w);
void web_ring_free(struct web_ring **rp);
/* The last `seconds`, in at most `points` steps. */
web_page_fn web_ring_page;

#endif
