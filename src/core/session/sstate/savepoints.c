/* SPDX-License-Identifier: PostgreSQL
 * savepoints.c: what ROLLBACK TO brings back. Runs in: workers. Pure. */
#include "config.h"

#include <string.h>

#include "base/mem.h"

#include "sstate/savepoints_int.h"

void sstate_vars_assign(struct sstate_vars *to, const struct sstate_vars *from)
{
    varset_assign(&to->client, from->client);
    varset_assign(&to->link, from->link);
}

void sstate_vars_clear(struct sstate_vars *v)
{
    varset_unref(&v->client);
    varset_unref(&v->link);
}

/* Forgets those that are newer than `last`; NULL: all. */
static void cut(struct savepoints *sp, const struct savepoint *last)
{
    struct savepoint *p;

    while ((p = sp->newest) != last) {
        sp->newest = p->older;
        sp->n--;
        sstate_vars_clear(&p->vars);
        mem_free(p);
    }
}

/* The newest of that name. */
static const struct savepoint *find(const struct savepoints *sp, struct slice name)
{
    const struct savepoint *p = sp->newest;

    while (p != NULL && !slice_eq_str(name, p->name))
        p = p->older;
    return p;
}

bool savepoints_set(
    struct savepoints *sp, struct slice name, const struct sstate_vars *vars, uint32_t pins)
{
    struct savepoint *p;

    if (name.n >= sizeof p->name)
        return true;
    if (sp->n == SAVEPOINTS_MAX)
        return false;
    p = mem_alloc_zero(sizeof *p);
    memcpy(p->name, name.p, name.n);
    sstate_vars_assign(&p->vars, vars);
    p->pins = pins;
    p->older = sp->newest;
    sp->newest = p;
    sp->n++;
    return true;
}

void savepoints_roll_back_to(
    struct savepoints *sp, struct slice name, struct sstate_vars *vars, uint32_t *pins)
{
    const struct savepoint *to = find(sp, name);

    if (to == NULL)
        return;
    cut(sp, to);
    sstate_vars_assign(vars, &to->vars);
    *pins |= to->pins;
}

void savepoints_release(struct savepoints *sp, struct slice name)
{
    const struct savepoint *released = find(sp, name);

    if (released != NULL)
        cut(sp, released->older);
}

void savepoints_forget(struct savepoints *sp)
{
    cut(sp, NULL);
}
