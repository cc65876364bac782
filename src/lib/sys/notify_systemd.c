/* SPDX-License-Identifier: PostgreSQL
 * notify_systemd.c: tells systemd how we are.
 * Runs in: supervisor. */
#include "config.h"

#include "sys/notify.h"

#include <stdint.h>
#include <systemd/sd-daemon.h>
#include <unistd.h>

#include "sys/clock.h"

int notify_interval_ms(void)
{
    uint64_t limit_us = 0;

    if (sd_watchdog_enabled(0, &limit_us) <= 0)
        return 0;
    return (int)(limit_us / 2 / CLOCK_US_PER_MS);
}

void notify_ready(const char *status)
{
    sd_notifyf(0, "READY=1\nMAINPID=%d\nSTATUS=%s", (int)getpid(), status);
}

void notify_reloading(void)
{
    sd_notifyf(0, "RELOADING=1\nMONOTONIC_USEC=%lld\nSTATUS=reloading", (long long)clock_mono_us());
}

void notify_stopping(const char *status)
{
    sd_notifyf(0, "STOPPING=1\nSTATUS=%s", status);
}

void notify_alive(void)
{
    sd_notify(0, "WATCHDOG=1");
}
