/* SPDX-License-Identifier: PostgreSQL
 * client_events_int.h: who does what client_events tells (client_int.h). For the files at the top
 * alone: everybody below says client_end, client_unpark and so on. */
#ifndef PGP_SESSION_CLIENT_EVENTS_INT_H
#define PGP_SESSION_CLIENT_EVENTS_INT_H

#include "client_int.h"

/* client.c */
COLD void client_do_end(struct client *c, const struct err *err);
void client_do_leave(struct client *c);
void client_do_drop_link(struct client *c, bool boundary);
/* feed.c */
void client_do_feed(struct client *c, const char *p, const char *end);
void client_do_unpark(struct client *c);
/* client_login.c */
void client_do_after_quiet(struct client *c);
void client_do_acquire(struct client *c);
void client_do_welcome(struct client *c);
void client_do_enter(struct client *c, bool may_all);
/* client_travel.c */
bool client_do_travel_waiting(struct client *c, int ordinal);
/* sessions_give.c */
void sessions_do_idle(struct client *c);

#endif
