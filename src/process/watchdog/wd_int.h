/* SPDX-License-Identifier: PostgreSQL
 * wd_int.h: the watchdog's root struct. */
#ifndef PGP_WATCHDOG_WD_INT_H
#define PGP_WATCHDOG_WD_INT_H

#include "process/common/role_loop.h"

struct wd {
    struct role_loop role; /* its loop is the one all of the watchdog's files work on */
};

#endif
