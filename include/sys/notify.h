/* SPDX-License-Identifier: PostgreSQL
 * notify.h: tells the service manager how we are. One of notify_systemd.c and notify_none.c is
 * built. Runs in: supervisor. Every call is a no-op when no service manager asked to be told. */
#ifndef PGP_SYS_NOTIFY_H
#define PGP_SYS_NOTIFY_H

/* How often notify_alive wants to be called, 0 for never. Asks the environment once per call. */
int notify_interval_ms(void);
/* Serving: after start and after a reload. */
void notify_ready(const char *status);
void notify_reloading(void);
void notify_stopping(const char *status);
/* The watchdog's ping. */
void notify_alive(void);

#endif
