/* SPDX-License-Identifier: PostgreSQL
 * names_portals.c: the portals of a followed client, as far as executing them changes its
 * session. Runs in: workers. Of one that was bound or executed in an exchange that failed nobody
 * knows whether it is there: to execute it ties the session. */
#include "config.h"

#include <string.h>

#include "base/mem.h"

#include "names/names.h"

struct names_portal *names_portal_find(struct names_portal *first, struct slice name)
{
    struct names_portal *p;

    for (p = first; p != NULL; p = p->next)
        if (p->state != PORTAL_IS_OVER && prep_is_same_name(slice_of(p->name, p->len), name))
            return p;
    return NULL;
}

static void portal_drop(struct names_portal **pp)
{
    struct names_portal *p = *pp;

    *pp = p->next;
    prep_unref(&p->prep);
    mem_free(p->sql);
    mem_free(p);
}

void names_portals_free(struct names_portal **first)
{
    while (*first != NULL)
        portal_drop(first);
}

/* Older ones of the same name: it is known to be in doubt. */
static void portal_drop_older(struct names_portal *p)
{
    struct names_portal **pp = &p->next;

    while (*pp != NULL)
        if (prep_is_same_name(slice_of((*pp)->name, (*pp)->len), slice_of(p->name, p->len)))
            portal_drop(pp);
        else
            pp = &(*pp)->next;
}

void names_portals_settle(struct names_portal **first, bool saw_error)
{
    struct names_portal **pp = first;
    struct names_portal *p;

    while ((p = *pp) != NULL) {
        if (p->state == PORTAL_IS_OVER && !saw_error) {
            portal_drop(pp);
            continue;
        }
        if (p->state != PORTAL_IN_DOUBT)
            p->state = saw_error && p->state != PORTAL_IS_THERE ? PORTAL_IN_DOUBT : PORTAL_IS_THERE;
        if (p->state == PORTAL_IN_DOUBT)
            portal_drop_older(p);
        pp = &p->next;
    }
}
