/* SPDX-License-Identifier: PostgreSQL
 * conf_where.c: in which line of which file a value was found, for who shows settings. Kept by a
 * generation that was read from files; one that was handed over has none of it.
 * Runs in: every process. Pure. */
#include "config.h"

#include "base/arena.h"
#include "conf_int.h"

struct conf_where {
    struct conf_where *next;
    struct conf_ref ref;
    const char *text;
};

void conf_where_note(struct conf_reading *load)
{
    struct conf_ref ref = {NULL, -1};
    const struct conf_slot *slot;
    struct conf_where *w;

    while (conf_ref_next(&ref)) {
        slot = conf_slot_of(load, &ref);
        if (slot->value == NULL)
            continue;
        w = arena_alloc(load->gen->arena, sizeof *w);
        w->ref = ref;
        w->text = slot->line > 0 ? arena_printf(load->gen->arena, "%s:%d", slot->file, slot->line)
                                 : arena_strdup(load->gen->arena, slot->file);
        w->next = load->gen->where;
        load->gen->where = w;
    }
}

const char *conf_where(const struct conf_gen *gen, const struct conf_ref *ref)
{
    const struct conf_where *w;

    for (w = gen->where; w != NULL; w = w->next)
        if (w->ref.param == ref->param && w->ref.index == ref->index)
            return w->text;
    return NULL;
}
