/* SPDX-License-Identifier: PostgreSQL
 * notify_none.c: built where there is no systemd to tell.
 * Runs in: supervisor. */
#include "config.h"

#include "sys/notify.h"

int notify_interval_ms(void)
{
    return 0;
}

void notify_ready(const char *status)
{
}

void notify_reloading(void)
{
}

void notify_stopping(const char *status)
{
}

void notify_alive(void)
{
}
