/* SPDX-License-Identifier: PostgreSQL
 * conf_build.c: what the libraries of this build allow a file to ask for. A file of its own, so
 * that a test can stand in for another build. Runs in: every process. */
#include "config.h"

#include "conf_int.h"

bool conf_build_has_memcached(void)
{
    return PGPOOL_HAS_MEMCACHED != 0;
}
