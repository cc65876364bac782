/* SPDX-License-Identifier: PostgreSQL
 * conf_table.c: the table of parameters, made from config/params, and looking things up in it.
 * Runs in: every process. Constant data only. */
#include "config.h"

#include "conf_int.h"

#include "base/assert.h"

#include <stdio.h>
#include <string.h>

_Static_assert(sizeof(enum conf_pool_mode) == sizeof(int), "enums are stored as int");
_Static_assert(sizeof(enum log_level) == sizeof(int), "enums are stored as int");

#define CONF_SHOWN_SHOWN     false
#define CONF_SHOWN_HIDDEN    true
#define CONF_ENUM_BEGIN(tag) static const struct conf_enum_value conf_values_##tag[] = {
#define CONF_ENUM_VALUE(sym, text, number, feature)                                                \
    {text, sym, number, false, CONF_FEATURE_##feature},
#define CONF_ENUM_ALIAS(sym, text) {text, sym, 0, true, CONF_FEATURE_CORE},
#define CONF_ENUM_END(tag)                                                                         \
    {                                                                                              \
        NULL, 0, 0, false, CONF_FEATURE_CORE                                                       \
    }                                                                                              \
    }                                                                                              \
    ;
#include "config/conf_enum.def"
#undef CONF_ENUM_BEGIN
#undef CONF_ENUM_VALUE
#undef CONF_ENUM_ALIAS
#undef CONF_ENUM_END

static const struct conf_enum_value conf_values_level[] = {
#define CONF_LEVEL(sym, text, number, shown)                                                       \
    {text, sym, number, CONF_SHOWN_##shown, CONF_FEATURE_CORE},
#include "config/conf_level.def"
#undef CONF_LEVEL
    {NULL, 0, 0, false, CONF_FEATURE_CORE}};

/* CONF_SCOPE is redefined between the included files; these are expanded where a record stands. */
#define CONF_PASTE2(a, b)        a##b
#define CONF_PASTE(a, b)         CONF_PASTE2(a, b)
#define CONF_STRUCT_GLOBAL       struct conf
#define CONF_STRUCT_NODE         struct conf_node
#define CONF_STRUCT_WD_NODE      struct conf_wd_node
#define CONF_STRUCT_HEARTBEAT    struct conf_heartbeat
#define CONF_SOFF_STARTUP(field) 0
#define CONF_SOFF_RELOAD(field)  0
#define CONF_SOFF_SESSION(field) offsetof(struct conf_session, field)
#define CONF_REC(n, field, ty, ctx, grp, feat, flg, br, tx)                                        \
    .name = #n, .type = ty, .scope = CONF_PASTE(CONF_SCOPE_, CONF_SCOPE),                          \
    .context = CONF_CONTEXT_##ctx, .group = CONF_GROUP_##grp, .feature = CONF_FEATURE_##feat,      \
    .flags = flg, .offset = offsetof(CONF_PASTE(CONF_STRUCT_, CONF_SCOPE), field),                 \
    .session_offset = CONF_SOFF_##ctx(field), .brief = br, .text = tx

#define P_BOOL(n, def, ctx, grp, feat, flg, br, tx)                                                \
    {CONF_REC(n, n, CONF_BOOL, ctx, grp, feat, flg, br, tx), .def_int = def},
#define P_INT(n, u, def, lo, hi, ctx, grp, feat, flg, br, tx)                                      \
    {CONF_REC(n, n, CONF_INT, ctx, grp, feat, flg, br, tx), .unit = CONF_UNIT_##u, .def_int = def, \
        .min = lo, .max = hi},
#define P_TIME(n, u, def, lo, hi, ctx, grp, feat, flg, br, tx)                                     \
    {CONF_REC(n, n##_ms, CONF_TIME, ctx, grp, feat, flg, br, tx), .unit = CONF_UNIT_##u,           \
        .def_int = def, .min = lo, .max = hi},
#define P_SIZE(n, u, def, lo, hi, ctx, grp, feat, flg, br, tx)                                     \
    {CONF_REC(n, n##_bytes, CONF_SIZE, ctx, grp, feat, flg, br, tx), .unit = CONF_UNIT_##u,        \
        .def_int = def, .min = lo, .max = hi},
#define P_REAL(n, def, lo, hi, ctx, grp, feat, flg, br, tx)                                        \
    {CONF_REC(n, n, CONF_REAL, ctx, grp, feat, flg, br, tx), .def_real = def, .real_min = lo,      \
        .real_max = hi},
#define P_STRING(n, def, ctx, grp, feat, flg, br, tx)                                              \
    {CONF_REC(n, n, CONF_STRING, ctx, grp, feat, flg, br, tx), .def_text = def},
#define P_ENUM(n, tag, def, ctx, grp, feat, flg, br, tx)                                           \
    {CONF_REC(n, n, CONF_ENUM, ctx, grp, feat, flg, br, tx), .def_int = def,                       \
        .values = conf_values_##tag},
#define P_LEVEL(n, def, ctx, grp, feat, flg, br, tx)                                               \
    {CONF_REC(n, n, CONF_ENUM, ctx, grp, feat, flg, br, tx), .def_int = def,                       \
        .values = conf_values_level},
#define P_FLAGS(n, tag, sep, def, ctx, grp, feat, flg, br, tx)                                     \
    {CONF_REC(n, n, CONF_FLAGS, ctx, grp, feat, flg, br, tx), .def_text = def,                     \
        .values = conf_values_##tag, .separator = sep},
#define P_LIST(n, sep, def, ctx, grp, feat, flg, br, tx)                                           \
    {CONF_REC(n, n, CONF_LIST, ctx, grp, feat, flg, br, tx), .def_text = def, .separator = sep},

static const struct conf_param conf_params[] = {
#include "config/params/all.def"
};

#define CONF_NPARAMS ((int)(sizeof(conf_params) / sizeof(conf_params[0])))

static const struct conf_feature_info conf_features[] = {
#define CONF_FEATURE(sym, letter, state, switch_name, text)                                        \
    {letter, CONF_STATE_##state, switch_name, text},
#include "config/conf_feature.def"
#undef CONF_FEATURE
};

static const struct {
    const char *title;
    const char *text;
} conf_groups[] = {
#define CONF_GROUP(sym, title, text) {title, text},
#include "config/conf_group.def"
#undef CONF_GROUP
};

static const struct conf_alias conf_aliases[] = {
#define CONF_ALIAS(old_name, new_name) {old_name, new_name, NULL},
#define CONF_REMOVED(old_name, hint)   {old_name, NULL, hint},
#define CONF_REFUSED(old_name, value, hint)
#include "config/conf_alias.def"
#undef CONF_ALIAS
#undef CONF_REMOVED
#undef CONF_REFUSED
};

static const struct conf_refused conf_refusals[] = {
#define CONF_ALIAS(old_name, new_name)
#define CONF_REMOVED(old_name, hint)
#define CONF_REFUSED(old_name, value, hint) {old_name, value, hint},
#include "config/conf_alias.def"
#undef CONF_ALIAS
#undef CONF_REMOVED
#undef CONF_REFUSED
};

const struct conf_param *conf_param_table(int *n)
{
    *n = CONF_NPARAMS;
    return conf_params;
}

const struct conf_feature_info *conf_feature_info(enum conf_feature feature)
{
    ASSERT(feature < CONF_FEATURE_COUNT);
    return &conf_features[feature];
}

const char *conf_group_title(enum conf_group group)
{
    ASSERT(group < CONF_GROUP_COUNT);
    return conf_groups[group].title;
}

const char *conf_group_text(enum conf_group group)
{
    ASSERT(group < CONF_GROUP_COUNT);
    return conf_groups[group].text;
}

const struct conf_alias *conf_alias_table(int *n)
{
    *n = (int)(sizeof(conf_aliases) / sizeof(conf_aliases[0]));
    return conf_aliases;
}

int conf_scope_count(enum conf_scope scope)
{
    switch (scope) {
    case CONF_SCOPE_GLOBAL:
        return 1;
    case CONF_SCOPE_NODE:
        return CONF_MAX_NODES;
    case CONF_SCOPE_WD_NODE:
        return CONF_MAX_WD_NODES;
    case CONF_SCOPE_HEARTBEAT:
        return CONF_MAX_HEARTBEATS;
    }
    UNREACHED();
}

bool conf_ref_next(struct conf_ref *ref)
{
    int n;
    const struct conf_param *t = conf_param_table(&n);
    if (ref->param != NULL && ref->param->scope != CONF_SCOPE_GLOBAL &&
        ++ref->index < conf_scope_count(ref->param->scope))
        return true;
    ref->param = ref->param == NULL ? t : ref->param + 1;
    if (ref->param == t + n)
        return false;
    ref->index = ref->param->scope == CONF_SCOPE_GLOBAL ? -1 : 0;
    return true;
}

bool conf_exists(const struct conf *conf, enum conf_scope scope, int k)
{
    switch (scope) {
    case CONF_SCOPE_GLOBAL:
        return true;
    case CONF_SCOPE_NODE:
        return conf->nodes[k].backend_port != 0;
    case CONF_SCOPE_WD_NODE:
        return conf->wd_nodes[k].wd_port != 0;
    case CONF_SCOPE_HEARTBEAT:
        return conf->heartbeats[k].heartbeat_port != 0;
    }
    UNREACHED();
}

int conf_param_ordinal(const struct conf_param *param)
{
    ASSERT(param >= conf_params && param < conf_params + CONF_NPARAMS);
    return (int)(param - conf_params);
}

const struct conf_param *conf_param_named(enum conf_scope scope, const char *name)
{
    for (int i = 0; i < CONF_NPARAMS; i++)
        if (conf_params[i].scope == scope && strcmp(conf_params[i].name, name) == 0)
            return &conf_params[i];
    return NULL;
}

void conf_ref_name(const struct conf_ref *ref, char *out)
{
    if (ref->index < 0)
        snprintf(out, CONF_NAME_SIZE, "%s", ref->param->name);
    else
        snprintf(out, CONF_NAME_SIZE, "%s%d", ref->param->name, ref->index);
}

/* Splits "backend_port12" into a name without number and the number; a number with a needless zero
 * before it is not one. Returns false when there is no number. *number is capped, not exact, when
 * it is absurdly large. */
static bool conf_split_number(const char *name, char *base, int *number)
{
    size_t n = strlen(name);
    size_t digits = 0;
    while (digits < n && name[n - digits - 1] >= '0' && name[n - digits - 1] <= '9')
        digits++;
    size_t rest = n - digits;
    if (digits == 0 || rest == 0 || rest >= CONF_NAME_SIZE || (digits > 1 && name[rest] == '0'))
        return false;
    memcpy(base, name, rest);
    base[rest] = '\0';
    int v = 0;
    for (size_t i = rest; i < n && v < 1000000; i++)
        v = v * 10 + (name[i] - '0');
    *number = v;
    return true;
}

static bool conf_name_eq(const char *a, const char *b, bool fold)
{
    return fold ? strcasecmp(a, b) == 0 : strcmp(a, b) == 0;
}

/* Finds a record with (`numbered`) or without a number; without one a single value is preferred to
 * a list. */
static const struct conf_param *conf_find_record(const char *name, bool numbered, bool fold)
{
    const struct conf_param *found = NULL;
    for (int i = 0; i < CONF_NPARAMS; i++) {
        const struct conf_param *p = &conf_params[i];
        if (!conf_name_eq(p->name, name, fold))
            continue;
        if (numbered == (p->scope != CONF_SCOPE_GLOBAL))
            return p;
        if (!numbered)
            found = p;
    }
    return found;
}

static int conf_find_folded(const char *name, struct conf_ref *ref, bool fold, struct err *err)
{
    char base[CONF_NAME_SIZE];
    int number;
    ref->param = conf_find_record(name, false, fold);
    ref->index = -1;
    if (ref->param != NULL)
        return 0;
    if (!conf_split_number(name, base, &number))
        return -1;
    ref->param = conf_find_record(base, true, fold);
    if (ref->param == NULL)
        return -1;
    if (number >= conf_scope_count(ref->param->scope)) {
        err_set(err, "22023", "invalid index %d for configuration parameter \"%s\"", number, base);
        err_detail(
            err, "Allowed index is between 0 and %d.", conf_scope_count(ref->param->scope) - 1);
        return -1;
    }
    ref->index = number;
    return 0;
}

const struct conf_alias *conf_alias_find(const char *name)
{
    char base[CONF_NAME_SIZE];
    int number;
    int n;
    const struct conf_alias *t = conf_alias_table(&n);
    /* wd_port was removed, wd_port0 was not */
    bool numbered =
        conf_split_number(name, base, &number) && conf_find_record(base, true, false) == NULL;
    for (int i = 0; i < n; i++) {
        if (strcmp(t[i].old_name, name) == 0)
            return &t[i];
        if (numbered && t[i].new_name == NULL && strcmp(t[i].old_name, base) == 0)
            return &t[i];
    }
    return NULL;
}

const struct conf_refused *conf_refused_find(const char *name, const char *value)
{
    for (size_t i = 0; i < sizeof(conf_refusals) / sizeof(conf_refusals[0]); i++)
        if (strcmp(conf_refusals[i].old_name, name) == 0 &&
            strcasecmp(conf_refusals[i].value, value) == 0)
            return &conf_refusals[i];
    return NULL;
}

int conf_param_find(const char *name, struct conf_ref *ref, struct err *err)
{
    struct err found = {0};
    if (conf_find_folded(name, ref, false, &found) == 0)
        return 0;
    const struct conf_alias *alias = conf_alias_find(name);
    if (alias != NULL && alias->new_name != NULL)
        return conf_find_folded(alias->new_name, ref, false, err);
    if (!err_is_set(&found) && conf_find_folded(name, ref, true, &found) == 0)
        return 0;
    if (err_is_set(&found)) {
        err_set(err, found.sqlstate, "%s", found.msg);
        err_detail(err, "%s", found.detail);
    } else {
        err_set(err, "42704", "unrecognized configuration parameter \"%s\"", name);
    }
    return -1;
}

bool conf_param_is_built(const struct conf_param *param, const char **why)
{
    const struct conf_feature_info *info = conf_feature_info(param->feature);
    *why = info->text;
    return info->state == CONF_STATE_BUILT;
}
