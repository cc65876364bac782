/* SPDX-License-Identifier: PostgreSQL
 * client_auth_owes.c: who was asked to prove something and has not answered yet. Runs in: workers.
 * Strangers who say a name and then nothing would keep all others out for authentication_timeout
 * where there are max_clients; programs answer at once, and psql hangs up while a person types the
 * password. Must never: send one away that waits for us or for a server. */
#include "config.h"

#include <stdatomic.h>

#include "client_auth_int.h"

static void tell_others(struct login_auth *sa)
{
    struct list *n = list_first(&sa->owing);

    atomic_store(
        sa->worker.silent_us, n == NULL ? 0 : LIST_ENTRY(n, struct client_auth, owing)->asked_us);
}

/* The virtual database has places of its own, which nobody has who is not let in. */
void client_auth_owes(struct client_auth *a)
{
    client_auth_answered(a);
    if (a->who.console != NULL)
        return;
    a->asked_us = loop_now_us(a->sa->be->loop);
    list_push_back(&a->sa->owing, &a->owing);
    tell_others(a->sa);
}

void client_auth_answered(struct client_auth *a)
{
    if (list_is_detached(&a->owing))
        return;
    list_remove(&a->owing);
    tell_others(a->sa);
}

bool login_auth_make_room(struct login_auth *sa)
{
    int64_t silent_since_us = loop_now_us(sa->be->loop) - LOGIN_SILENT_US;
    struct list *n = list_first(&sa->owing);
    struct client_auth *a = n == NULL ? NULL : LIST_ENTRY(n, struct client_auth, owing);
    struct err err = {0};

    tell_others(sa); /* somebody may have asked for it who is not to be had any more */
    if (a == NULL || a->asked_us > silent_since_us)
        return false; /* those behind it were asked later */
    err_set_fatal(
        &err, "53300", "too many clients already: this one has not answered for a second");
    a->who.ops->end(a->who.owner, &err);
    return true;
}
