/* SPDX-License-Identifier: PostgreSQL
 * greeting.c: what servers say to a client, by its kind (src/core/known). Runs in: workers. */
#include "config.h"

#include "sstate_int.h"

struct greeting_kind greeting_of(const struct client *c)
{
    return (struct greeting_kind){.pool = c->pool,
        .base = c->sstate->base,
        .application = c->login == NULL
                           ? slice_of(NULL, 0)
                           : paramset_get(&c->login->params, slice_of_str("application_name")),
        .serial = c->ss->defaults_serial};
}

const struct paramset *client_login_parameters(const struct client *c)
{
    return c->link != NULL ? &c->link->reported
                           : greeting_parameters(c->ss->greetings, greeting_of(c));
}
