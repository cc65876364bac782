/* SPDX-License-Identifier: PostgreSQL
 * client_proof.c: which links a client may have, by what it has proved. Runs in: workers. Must
 * never: lend a used link to a client whose login is not over. */
#include "config.h"

#include "base/hot.h"

#include "client_int.h"

struct client_auth *client_auth_of(const struct client *c)
{
    return c->login == NULL ? NULL : c->login->auth;
}

HOT bool client_may_reuse(const struct client *c, const struct pool *pool)
{
    return client_auth_may_reuse(&c->proof, client_auth_of(c), c->phase == CL_ACTIVE, pool);
}

void client_entitle(const struct client *c, struct pool_request *req)
{
    req->may_reuse = client_may_reuse(c, req->pool);
    req->is_proved = c->proof.is_proved;
}
