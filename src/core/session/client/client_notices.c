/* SPDX-License-Identifier: PostgreSQL
 * client_notices.c: what a server says beside a login is told to a session that is let in without
 * one of its own. Runs in: workers. */
#include "config.h"

#include "backend/pool.h"

#include "sstate_int.h"

/* Who wants to hear none of them has said so at his login only. */
void client_put_notices(const struct client *c, struct buf *out)
{
    static const char level[] = "client_min_messages";
    struct slice said = pool_said(c->pool, &c->login->params);

    if (said.n > 0 && paramset_get(&c->login->params, slice_of_str(level)).p == NULL &&
        c->kind->setting(c, level).p == NULL)
        buf_put(out, said.p, said.n);
}
