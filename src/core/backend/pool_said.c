/* SPDX-License-Identifier: PostgreSQL
 * pool_said.c: what servers say beside a login (a WARNING about a setting of the role that cannot
 * be used, say): the sessions that are let in without a login of their own are told it, too. Runs
 * in: workers. Must never: tell a client what another one's start-up parameters gave rise to. */
#include "config.h"

#include "base/buf.h"
#include "base/mem.h"

#include "pool_int.h"

struct pool_said {
    struct paramset startup; /* what the link was opened with */
    struct buf text;         /* NoticeResponses */
};

void pool_said_free(struct pool *pool)
{
    if (pool->said == NULL)
        return;
    paramset_free(&pool->said->startup);
    buf_free(&pool->said->text);
    mem_free(pool->said);
    pool->said = NULL;
}

void pool_link_said(struct pool *pool, const struct link *link, struct slice text)
{
    const struct paramset *startup = &link->startup;

    if (text.n == 0) {
        if (pool->said != NULL && paramset_eq(&pool->said->startup, startup))
            pool_said_free(pool);
        return;
    }
    pool_said_free(pool);
    pool->said = mem_alloc_zero(sizeof *pool->said);
    paramset_copy(&pool->said->startup, startup);
    buf_put(&pool->said->text, text.p, text.n);
}

struct slice pool_said(const struct pool *pool, const struct paramset *startup)
{
    if (pool->said == NULL ||
        (!paramset_is_empty(&pool->said->startup) && !paramset_eq(&pool->said->startup, startup)))
        return slice_of("", 0);
    return buf_slice(&pool->said->text);
}
