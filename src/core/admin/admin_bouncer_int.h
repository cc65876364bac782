/* SPDX-License-Identifier: PostgreSQL
 * admin_bouncer_int.h: what the files of PgBouncer's reports share. */
#ifndef PGP_ADMIN_ADMIN_BOUNCER_INT_H
#define PGP_ADMIN_ADMIN_BOUNCER_INT_H

#include "admin_int.h"

#define BOUNCER_REPORT(sym, name, types, ...) admin_rows_fn admin_bouncer_##sym;
#include "admin_bouncer.def"
#undef BOUNCER_REPORT

#endif
