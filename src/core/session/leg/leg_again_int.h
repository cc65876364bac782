/* SPDX-License-Identifier: PostgreSQL
 * leg_again_int.h: what is sent again, as the files that do it share it. */
#ifndef PGP_SESSION_LEG_AGAIN_INT_H
#define PGP_SESSION_LEG_AGAIN_INT_H

#include "sstate_int.h"

/* leg_again.c */
/* The link that was to put right what the client believes will not: the next one does. */
void leg_owe_parameters(struct sstate *s);

/* plan_away.c */
/* A read elsewhere has failed: so has the transaction at home. */
void plan_away_fail(struct sstate *s);

/* sstate_facts.c */
/* The link that what is sent again does not go to once more; 0: none. */
uint64_t sstate_link_to_avoid(const struct client *c);

#endif
