/* SPDX-License-Identifier: PostgreSQL
 * console_users.c: who may administer and who may look, by admin_users, stats_users and pcp.conf.
 * Runs in: workers. */
#include "config.h"

#include "config/conf.h"

#include "client_auth_int.h"

static bool is_in(const struct conf_list *list, struct slice user)
{
    int i;

    for (i = 0; i < list->n; i++)
        if (slice_eq_str(user, list->item[i]))
            return true;
    return false;
}

static bool is_admin(const struct client_auth *a)
{
    return is_in(&a->sa->be->conf->admin_users, client_auth_user(a));
}

bool console_is_listed(const struct client_auth *a)
{
    return is_admin(a) || is_in(&a->sa->be->conf->stats_users, client_auth_user(a));
}

bool console_may_all(const struct client_auth *a)
{
    return a->who.console->pcp != LOGIN_PCP_NOT || is_admin(a);
}
