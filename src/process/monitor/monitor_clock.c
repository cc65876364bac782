/* SPDX-License-Identifier: PostgreSQL
 * monitor_clock.c: the time by which the monitor decides.
 * Runs in: monitor. The wall clock, for people and for files: but an administrator or NTP may set
 * it while a server is waited for, and then neither may the wait be over at once, and another
 * server promoted beside the one that is about to be the primary, nor last for hours. */
#include "config.h"

#include "sys/clock.h"

#include "monitor_int.h"

int64_t monitor_now_us(struct monitor *m)
{
    int64_t boot_us = clock_boot_us();

    if (m->wall_us == 0 || !failover_is_timing(&m->decide))
        m->wall_us = clock_wall_us() - boot_us;
    return m->wall_us + boot_us;
}
