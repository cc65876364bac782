/* SPDX-License-Identifier: PostgreSQL
 * cache_far_none.c: in place of cache_far_conn.c where libmemcached is missing: nothing can be
 * opened, so nothing else is ever called. A file that asks for it is refused before that
 * (conf_check.c). Runs in: workers. */
#include "config.h"

#include "base/assert.h"
#include "base/mem.h"

#include "cache_far_int.h"

struct far_conn *far_conn_new(struct far_spec *spec, struct err *err)
{
    err_set(err, "0A000", "this build of pgpool has no libmemcached");
    return NULL;
}

void far_spec_release(struct far_spec *spec)
{
    mem_free(spec->user);
    mem_free(spec->password);
    mem_free(spec);
}

void far_conn_free(struct far_conn **cp)
{
    ASSERT(*cp == NULL);
}

unsigned far_conn_server(struct far_conn *c, const char *name, size_t len)
{
    UNREACHED();
}

void far_conn_run(struct far_conn *c, struct far_req *const *reqs, unsigned n)
{
    UNREACHED();
}

bool far_conn_bar(struct far_conn *c, cache_cell cell)
{
    UNREACHED();
}

bool far_conn_bump(struct far_conn *c, const cache_cell *cells, size_t n)
{
    UNREACHED();
}
