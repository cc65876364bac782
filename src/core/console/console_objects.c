/* SPDX-License-Identifier: PostgreSQL
 * console_objects.c: prepared statements and portals of commands that pgpool answers. Runs in:
 * workers. */
#include "config.h"

#include "base/mem.h"

#include "console_int.h"

#define OBJECTS_MAX 64

struct console_object *object_find(const struct client *c, char what, struct slice name)
{
    const struct console *console = client_console(c);
    struct console_object *o;
    struct list *n;

    if (console == NULL)
        return NULL;
    LIST_FOREACH(n, &console->objects)
    {
        o = LIST_ENTRY(n, struct console_object, node);
        if (o->what == what && slice_eq_str(name, o->name))
            return o;
    }
    return NULL;
}

void object_forget(struct client *c, struct console_object *o)
{
    if (o == NULL)
        return;
    list_remove(&o->node);
    client_console(c)->nobjects--;
    admin_result_fini(&o->result);
    mem_free(o->name);
    mem_free(o->text);
    mem_free(o);
}

static void forget_those(struct client *c, bool all)
{
    struct console *console = client_console(c);
    struct console_object *o;
    struct list *n;
    struct list *tmp;

    LIST_FOREACH_SAFE(n, tmp, &console->objects)
    {
        o = LIST_ENTRY(n, struct console_object, node);
        if (all || o->what == 'P')
            object_forget(c, o);
    }
}

void objects_forget_portals(struct client *c)
{
    forget_those(c, false);
}

void objects_forget_all(struct client *c)
{
    forget_those(c, true);
}

bool object_has_room(struct client *c)
{
    return console_of(c)->nobjects < OBJECTS_MAX;
}

struct console_object *object_add(
    struct client *c, char what, struct slice name, struct slice sql, const struct admin_kill *kill)
{
    struct console *console = console_of(c);
    struct console_object *o = mem_alloc_zero(sizeof *o);

    o->what = what;
    o->name = mem_strndup(name.p, name.n);
    o->text = sql.p == NULL ? NULL : mem_strndup(sql.p, sql.n);
    o->len = sql.n;
    if (kill != NULL)
        o->kill = *kill;
    list_push_back(&console->objects, &o->node);
    console->nobjects++;
    return o;
}
