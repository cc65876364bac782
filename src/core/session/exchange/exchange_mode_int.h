/* SPDX-License-Identifier: PostgreSQL
 * exchange_mode_int.h: the pool mode of one session. */
#ifndef PGP_SESSION_EXCHANGE_MODE_INT_H
#define PGP_SESSION_EXCHANGE_MODE_INT_H

#include "sstate_int.h"

#define SSTATE_MODE_NONE (-1)
/* Takes pool_mode out of the start-up parameters. -1: its value is no mode, or not allowed. */
int exchange_mode_take(struct client *c, struct err *err);
/* client_kind.change_mode. */
int exchange_mode_leave(struct client *c, int wanted, struct err *err);
int exchange_mode_change(struct client *c, int wanted, struct err *err);

#endif
