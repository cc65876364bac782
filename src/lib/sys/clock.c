/* SPDX-License-Identifier: PostgreSQL
 * clock.c: the two clocks. */
#include "config.h"

#include "sys/clock.h"

#include <time.h>

static int64_t read_us(clockid_t id)
{
    struct timespec ts;

    clock_gettime(id, &ts);
    return (int64_t)ts.tv_sec * CLOCK_US_PER_S + ts.tv_nsec / 1000;
}

int64_t clock_mono_us(void)
{
    return read_us(CLOCK_MONOTONIC);
}

int64_t clock_boot_us(void)
{
    return read_us(CLOCK_BOOTTIME);
}

int64_t clock_wall_us(void)
{
    return read_us(CLOCK_REALTIME);
}
