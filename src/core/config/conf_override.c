/* SPDX-License-Identifier: PostgreSQL
 * conf_override.c: parameters changed for one session by PGPOOL SET.
 * Runs in: workers. A session that never says PGPOOL SET costs nothing: it reads the values of the
 * generation. One that does keeps its own small copy, made anew when the generation changes. */
#include "config.h"

#include "conf_int.h"

#include "base/arena.h"
#include "base/assert.h"
#include "base/hot.h"
#include "base/mem.h"

#include <string.h>

struct conf_override {
    uint64_t is_set;         /* bit per session parameter, in the order of the table */
    struct conf_session own; /* what PGPOOL SET gave; valid where the bit is set */
    uint64_t number;         /* generation that `merged` is made from; 0 is none */
    struct conf_session merged;
};

/* Which bit belongs to `param`, which has session context. */
static uint64_t conf_override_bit(const struct conf_param *param)
{
    int n;
    int bit = 0;
    const struct conf_param *t = conf_param_table(&n);
    for (const struct conf_param *p = t; p < param; p++)
        bit += p->context == CONF_CONTEXT_SESSION;
    ASSERT(bit < 64);
    return UINT64_C(1) << bit;
}

/* Finds what PGPOOL SET or RESET names. */
static int conf_override_find(const char *name, struct conf_ref *ref, struct err *err)
{
    if (conf_param_find(name, ref, err) == -1)
        return -1;
    if (ref->param->context != CONF_CONTEXT_SESSION) {
        err_set(
            err, "55P02", "invalid Context, value for parameter \"%s\" cannot be changed", name);
        err_hint(err, ref->param->context == CONF_CONTEXT_RELOAD
                          ? "Change it in pgpool.conf and reload."
                          : "Change it in pgpool.conf and restart pgpool.");
        return -1;
    }
    return 0;
}

int conf_set_check(const char *name, const char *value, enum conf_context context, struct err *err)
{
    struct conf_ref ref;
    struct conf_list scratch; /* the largest type */
    if (context == CONF_CONTEXT_SESSION ? conf_override_find(name, &ref, err) == -1
                                        : conf_param_find(name, &ref, err) == -1)
        return -1;
    if (context == CONF_CONTEXT_RELOAD && ref.param->context == CONF_CONTEXT_STARTUP) {
        err_set(err, "55P02", "parameter \"%s\" cannot be changed without restarting", name);
        return -1;
    }
    if (ref.index < 0 && ref.param->scope != CONF_SCOPE_GLOBAL) {
        err_set(err, "22023", "parameter \"%s\" needs a number, such as %s0", name, name);
        return -1;
    }
    struct arena *a = arena_new("conf check", 0);
    int result = conf_value_parse(a, ref.param, name, value, &scratch, err);
    arena_free(&a);
    return result;
}

int conf_override_set(
    struct conf_override **ov, const char *name, const char *value, struct err *err)
{
    struct conf_ref ref;
    int64_t parsed[2]; /* session parameters are numbers */
    if (conf_override_find(name, &ref, err) == -1)
        return -1;
    ASSERT(ref.param->type != CONF_STRING && ref.param->type != CONF_LIST);
    if (conf_value_parse(NULL, ref.param, name, value, parsed, err) == -1)
        return -1;
    if (*ov == NULL)
        *ov = mem_alloc_zero(sizeof(**ov));
    memcpy((char *)&(*ov)->own + ref.param->session_offset, parsed, conf_value_size(ref.param));
    (*ov)->is_set |= conf_override_bit(ref.param);
    (*ov)->number = 0;
    return 0;
}

int conf_override_reset(struct conf_override **ov, const char *name, struct err *err)
{
    struct conf_ref ref;
    if (strcasecmp(name, "all") == 0) {
        conf_override_free(ov);
        return 0;
    }
    if (conf_override_find(name, &ref, err) == -1)
        return -1;
    if (*ov == NULL)
        return 0;
    (*ov)->is_set &= ~conf_override_bit(ref.param);
    (*ov)->number = 0;
    if ((*ov)->is_set == 0)
        conf_override_free(ov);
    return 0;
}

void conf_override_free(struct conf_override **ov)
{
    mem_free(*ov);
    *ov = NULL;
}

/* Copies from `own` over `to` what is set. */
static void conf_override_merge(const struct conf_override *ov, struct conf_session *to)
{
    int n;
    uint64_t bit = 1;
    const struct conf_param *t = conf_param_table(&n);
    for (int i = 0; i < n; i++) {
        if (t[i].context != CONF_CONTEXT_SESSION)
            continue;
        size_t at = t[i].session_offset;
        if ((ov->is_set & bit) != 0)
            memcpy((char *)to + at, (const char *)&ov->own + at, conf_value_size(&t[i]));
        bit <<= 1;
    }
}

WARM const struct conf_session *conf_session_of(
    const struct conf_gen *gen, struct conf_override *ov)
{
    if (ov == NULL)
        return &gen->session;
    if (ov->number != gen->number) {
        ov->merged = gen->session;
        conf_override_merge(ov, &ov->merged);
        ov->number = gen->number;
    }
    return &ov->merged;
}

void conf_format_value(const struct conf_gen *gen, const struct conf_override *ov,
    const struct conf_ref *ref, enum conf_style style, struct buf *out)
{
    const void *at = conf_value_of(&gen->conf, ref);
    if ((ref->param->flags & CONF_SECRET) != 0 && style != CONF_STYLE_CANONICAL) {
        buf_put(out, "*****", 5);
        return;
    }
    if (ov != NULL && ref->param->context == CONF_CONTEXT_SESSION &&
        (ov->is_set & conf_override_bit(ref->param)) != 0)
        at = (const char *)&ov->own + ref->param->session_offset;
    conf_value_format(ref->param, at, style, out);
}
