/* SPDX-License-Identifier: PostgreSQL
 * share_portals.c: the portals of a client that shares links, as far as executing them changes its
 * session. Runs in: workers. Of one that was bound or executed in an exchange that failed nobody
 * knows whether it is there: to execute it ties the session. */
#include "config.h"

#include <string.h>

#include "base/mem.h"
#include "wire/reader.h"

#include "client_orders_int.h"
#include "share_names_int.h"
#include "share_vars_int.h"

struct share_portal *share_portal_find(struct share *s, struct slice name)
{
    struct share_portal *p;

    for (p = s->turn->portals; p != NULL; p = p->next)
        if (!p->is_over && prep_is_same_name(slice_of(p->name, p->len), name))
            return p;
    return NULL;
}

static void portal_drop(struct share_portal **pp)
{
    struct share_portal *p = *pp;

    *pp = p->next;
    prep_unref(&p->prep);
    mem_free(p->sql);
    mem_free(p);
}

void share_portals_free(struct share *s)
{
    while (s->turn->portals != NULL)
        portal_drop(&s->turn->portals);
}

/* Older ones of the same name: it is known to be in doubt. */
static void portal_drop_older(struct share_portal *p)
{
    struct share_portal **pp = &p->next;

    while (*pp != NULL)
        if (prep_is_same_name(slice_of((*pp)->name, (*pp)->len), slice_of(p->name, p->len)))
            portal_drop(pp);
        else
            pp = &(*pp)->next;
}

void share_portals_settle(struct share *s)
{
    struct share_portal **pp = &s->turn->portals;
    struct share_portal *p;

    while ((p = *pp) != NULL) {
        if (p->is_over && !s->exchange.saw_error) {
            portal_drop(pp);
            continue;
        }
        p->is_doubtful = p->is_doubtful || (s->exchange.saw_error && (p->is_new || p->is_over));
        p->is_new = p->is_over = false;
        if (p->is_doubtful)
            portal_drop_older(p);
        pp = &p->next;
    }
}
