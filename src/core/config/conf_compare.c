/* SPDX-License-Identifier: PostgreSQL
 * conf_compare.c: what differs between two generations.
 * Runs in: the supervisor, which tells of it in the log after a reload. */
#include "config.h"

#include "conf_int.h"

#include "base/buf.h"

static bool conf_equal_param(
    const struct conf *a, const struct conf *b, const struct conf_param *param)
{
    struct conf_ref ref = {param, -1};
    for (int k = 0; k < conf_scope_count(param->scope); k++) {
        if (param->scope != CONF_SCOPE_GLOBAL)
            ref.index = k;
        bool exists = conf_exists(a, param->scope, k);
        if (exists != conf_exists(b, param->scope, k))
            return false;
        if (exists && !conf_value_equal(param, conf_value_of(a, &ref), conf_value_of(b, &ref)))
            return false;
    }
    return true;
}

bool conf_equal(const struct conf_gen *a, const struct conf_gen *b)
{
    int n;
    const struct conf_param *t = conf_param_table(&n);
    for (int i = 0; i < n; i++)
        if (!conf_equal_param(&a->conf, &b->conf, &t[i]))
            return false;
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

/* A server that is new has the defaults where nothing is said of it, as one that is not there. */
void conf_each_change(
    const struct conf_gen *from, const struct conf_gen *to, conf_change_fn *fn, void *ctx)
{
    int n;
    const struct conf_param *t = conf_param_table(&n);
    for (int i = 0; i < n; i++) {
        struct conf_ref ref = {&t[i], -1};
        for (int k = 0; k < conf_scope_count(t[i].scope); k++) {
            if (t[i].scope != CONF_SCOPE_GLOBAL)
                ref.index = k;
            if (!conf_value_equal(
                    &t[i], conf_value_of(&from->conf, &ref), conf_value_of(&to->conf, &ref)))
                conf_tell_change(to, &ref, fn, ctx);
        }
    }
}
