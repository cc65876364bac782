/* SPDX-License-Identifier: PostgreSQL
 * conf_find.c: where a setting's text stood while a generation is made, and where the files lie
 * that settings name. Pure. */
#include "config.h"

#include <stdio.h>
#include <string.h>

#include "conf_int.h"

int conf_path(
    const struct conf_gen *gen, const char *name, char *out, size_t out_size, struct err *err)
{
    int n;
    if (name[0] == '/')
        n = snprintf(out, out_size, "%s", name);
    else
        n = snprintf(
            out, out_size, "%s/%s", strcmp(gen->base_dir, "/") == 0 ? "" : gen->base_dir, name);
    if (n >= 0 && (size_t)n < out_size)
        return 0;
    err_set(err, "22023", "file name \"%s\" is too long", name);
    return -1;
}

const struct conf_slot *conf_slot_of(const struct conf_reading *load, const struct conf_ref *ref)
{
    int base = load->slot_base[conf_param_ordinal(ref->param)];
    return &load->slot[base + (ref->index < 0 ? 0 : ref->index)];
}
