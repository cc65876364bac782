/* SPDX-License-Identifier: PostgreSQL
 * clock.h: the clocks, in microseconds.
 * Runs in: processes without an event loop (supervisor, logger) and where wall time is shown. */
#ifndef PGP_SYS_CLOCK_H
#define PGP_SYS_CLOCK_H

#include <stdint.h>

#define CLOCK_US_PER_S  INT64_C(1000000)
#define CLOCK_US_PER_MS INT64_C(1000)

/* Since some point in the past, never going back: for intervals. */
int64_t clock_mono_us(void);
/* Goes on while the machine sleeps: for what others count on. */
int64_t clock_boot_us(void);
/* Since 1970: for people. */
int64_t clock_wall_us(void);

#endif
