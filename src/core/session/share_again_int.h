/* SPDX-License-Identifier: PostgreSQL
 * share_again_int.h: what is sent again, as the files that do it share it. */
#ifndef PGP_SESSION_SHARE_AGAIN_INT_H
#define PGP_SESSION_SHARE_AGAIN_INT_H

#include "share_int.h"

/* share_again.c */
/* The link that was to put right what the client believes will not: the next one does. */
void share_owe_parameters(struct share *s);

/* share_out.c */
/* A read elsewhere has failed: so has the transaction at home. */
void share_out_fail(struct share *s);

/* share_facts.c */
/* The link that what is sent again does not go to once more; 0: none. */
uint64_t share_link_to_avoid(const struct client *c);

#endif
