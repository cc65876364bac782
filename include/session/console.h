/* SPDX-License-Identifier: PostgreSQL
 * console.h: the virtual database, as the worker offers it to its clients. */
#ifndef PGP_SESSION_CONSOLE_H
#define PGP_SESSION_CONSOLE_H

struct sessions;

/* From now on clients may ask for it. */
void sessions_offer_console(struct sessions *ss);

#endif
