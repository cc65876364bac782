/* SPDX-License-Identifier: PostgreSQL
 * client_auth_owes.c: who was asked to prove something and has not answered yet. Runs in: workers.
 * Strangers who say a name and then nothing would keep all others out for authentication_timeout
 * where there are max_clients; programs answer at once, and psql hangs up while a person types the
 * password. Must never: send one away that waits for us or for a server. */
#include "config.h"

#include "client_auth_int.h"

#define SILENT_US INT64_C(1000000)

/* The virtual database has places of its own, which nobody has who is not let in. */
void client_auth_owes(struct client_auth *a)
{
    client_auth_answered(a);
    if (a->who.console != NULL)
        return;
    a->asked_us = loop_now_us(a->sa->be->loop);
    list_push_back(&a->sa->owing, &a->owing);
}

void client_auth_answered(struct client_auth *a)
{
    list_remove(&a->owing);
}

bool login_auth_make_room(struct login_auth *sa)
{
    int64_t silent_since_us = loop_now_us(sa->be->loop) - SILENT_US;
    struct err err = {0};
    struct list *n;

    LIST_FOREACH(n, &sa->owing)
    {
        struct client_auth *a = LIST_ENTRY(n, struct client_auth, owing);

        if (a->asked_us > silent_since_us)
            return false; /* those behind it were asked later */
        if (client_auth_wants(a) == CLIENT_AUTH_NOTHING)
            continue;
        err_set_fatal(
            &err, "53300", "too many clients already: this one has not answered for a second");
        a->who.ops->end(a->who.owner, &err);
        return true;
    }
    return false;
}
