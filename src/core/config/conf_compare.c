/* SPDX-License-Identifier: PostgreSQL
 * conf_compare.c: what differs between two generations.
 * Runs in: the supervisor, which tells of it in the log after a reload. */
#include "config.h"

#include "conf_int.h"

#include "base/buf.h"

bool conf_equal(const struct conf_gen *a, const struct conf_gen *b)
{
    struct conf_ref ref = {NULL, -1};
    while (conf_ref_next(&ref)) {
        bool exists = conf_exists(&a->conf, ref.param->scope, ref.index);
        if (exists != conf_exists(&b->conf, ref.param->scope, ref.index))
            return false;
        if (exists && !conf_value_equal(
                          ref.param, conf_value_of(&a->conf, &ref), conf_value_of(&b->conf, &ref)))
            return false;
    }
    return conf_equal_pools(a, b);
}

bool conf_equal_pools(const struct conf_gen *a, const struct conf_gen *b)
{
    return pools_conf_equal(a->conf.pools, b->conf.pools);
}

static void conf_tell_change(
    const struct conf_gen *to, const struct conf_ref *ref, conf_change_fn *fn, void *ctx)
{
    char name[CONF_NAME_SIZE];
    struct buf value = {0};
    conf_ref_name(ref, name);
    conf_format_value(to, NULL, ref, CONF_STYLE_SHOW, &value);
    buf_put_byte(&value, '\0');
    fn(ctx, name, value.data);
    buf_free(&value);
}

/* A server that is new has the defaults where nothing is said of it, as one that is not there. Of
 * servers that are in neither nothing is told: what all have alike would be told of each. */
void conf_each_change(
    const struct conf_gen *from, const struct conf_gen *to, conf_change_fn *fn, void *ctx)
{
    struct conf_ref ref = {NULL, -1};
    while (conf_ref_next(&ref))
        if ((conf_exists(&from->conf, ref.param->scope, ref.index) ||
                conf_exists(&to->conf, ref.param->scope, ref.index)) &&
            !conf_value_equal(
                ref.param, conf_value_of(&from->conf, &ref), conf_value_of(&to->conf, &ref)))
            conf_tell_change(to, &ref, fn, ctx);
}
