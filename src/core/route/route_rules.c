/* SPDX-License-Identifier: PostgreSQL
 * route_rules.c: the lists of the settings, compiled once per generation.
 * Runs in: workers. The syntax of the items is the settings' (conf_pattern.h). */
#include "config.h"

#include "route/route_rules.h"

#include "base/arena.h"
#include "base/assert.h"
#include "base/mem.h"
#include "config/conf_pattern.h"
#include "route_int.h"

/* Matches a text without NUL at its end. A text with a NUL in it cannot be sent to a server. */
static bool matches(const regex_t *re, struct slice text)
{
    char small[256];
    char *copy = small;
    bool found;

    if (text.n >= sizeof small)
        copy = mem_alloc(text.n + 1);
    if (text.n > 0)
        memcpy(copy, text.p, text.n);
    copy[text.n] = '\0';
    found = regexec(re, copy, 0, NULL, 0) == 0;
    if (copy != small)
        mem_free(copy);
    return found;
}

bool route_patterns_match(const struct route_patterns *p, struct slice text)
{
    int i;

    for (i = 0; i < p->n; i++)
        if (matches(&p->re[i], text))
            return true;
    return false;
}

const struct route_preference *route_preference_of(
    const struct route_preferences *list, struct slice name)
{
    int i;

    for (i = 0; i < list->n; i++)
        if (matches(&list->item[i].re, name))
            return &list->item[i];
    return NULL;
}

/* The setting is named in front of what is wrong with it. */
static int refuse(struct err *err, const char *setting, const struct err *why)
{
    err_set(err, "22023", "%s: %s", setting, why->msg);
    if (why->hint[0] != '\0')
        err_hint(err, "%s", why->hint);
    return -1;
}

static int add_patterns(struct route_rules *r, struct route_patterns *p,
    const struct conf_list *list, const char *setting, struct err *err)
{
    struct err why;
    int i;

    if (list->n == 0)
        return 0;
    p->re = arena_alloc_zero(r->arena, (size_t)list->n * sizeof p->re[0]);
    for (i = 0; i < list->n; i++) {
        err_clear(&why);
        if (conf_pattern_compile(&p->re[i], slice_of_str(list->item[i]), &why) == -1)
            return refuse(err, setting, &why);
        p->n++;
    }
    return 0;
}

static int add_preferences(struct route_rules *r, struct route_preferences *out,
    const struct conf_list *list, const char *setting, struct err *err)
{
    struct err why;
    int i;

    if (list->n == 0)
        return 0;
    out->item = arena_alloc_zero(r->arena, (size_t)list->n * sizeof out->item[0]);
    for (i = 0; i < list->n; i++) {
        struct route_preference *p = &out->item[i];

        err_clear(&why);
        if (conf_preference_parse(list->item[i], &p->is, &why) == -1 ||
            conf_pattern_compile(&p->re, p->is.name, &why) == -1)
            return refuse(err, setting, &why);
        out->n++;
    }
    return 0;
}

/* A name as the parser would give it: folded unless it is quoted. */
static struct slice fold(struct route_rules *r, struct slice s)
{
    char *p = arena_strndup(r->arena, s.p, s.n);
    size_t i;

    if (s.n >= 2 && p[0] == '"' && p[s.n - 1] == '"')
        return slice_of(p + 1, s.n - 2);
    for (i = 0; i < s.n; i++)
        if (p[i] >= 'A' && p[i] <= 'Z')
            p[i] = (char)(p[i] - 'A' + 'a');
    return slice_of(p, s.n);
}

static void split_name(
    struct route_rules *r, struct slice s, struct slice *schema, struct slice *name)
{
    struct slice left;
    struct slice right;

    *schema = slice_of("", 0);
    if (conf_split_last(s, '.', &left, &right)) {
        *schema = fold(r, left);
        s = right;
    }
    *name = fold(r, s);
}

static int add_relations(struct route_rules *r, const struct conf_list *list, struct err *err)
{
    struct conf_relation is;
    struct err why;
    int i;

    if (list->n == 0)
        return 0;
    r->relation = arena_alloc_zero(r->arena, (size_t)list->n * sizeof r->relation[0]);
    for (i = 0; i < list->n; i++) {
        struct route_relation *rel = &r->relation[i];

        err_clear(&why);
        if (conf_relation_parse(list->item[i], &is, &why) == -1)
            return refuse(err, "dml_adaptive_object_relationship_list", &why);
        rel->from_function = is.from_function;
        split_name(r, is.from, &rel->from_schema, &rel->from);
        split_name(r, is.to, &rel->to_schema, &rel->to);
        r->nrelations++;
    }
    return 0;
}

struct route_rules *route_rules_new(const struct conf *conf, struct err *err)
{
    struct arena *a = arena_new("route rules", 0);
    struct route_rules *r = arena_alloc_zero(a, sizeof *r);

    r->arena = a;
    r->conf = conf;
#define PATTERNS(field, setting) (add_patterns(r, &r->field, &conf->setting, #setting, err) == -1)
#define PREFERENCES(field, setting)                                                                \
    (add_preferences(r, &r->field, &conf->setting, #setting, err) == -1)
    if (PATTERNS(read_functions, read_only_function_list) ||
        PATTERNS(write_functions, write_function_list) ||
        PATTERNS(primary_queries, primary_routing_query_pattern_list) ||
        PREFERENCES(by_app, app_name_redirect_preference_list) ||
        PREFERENCES(by_database, database_redirect_preference_list) ||
        PREFERENCES(by_user, user_redirect_preference_list) ||
        add_relations(r, &conf->dml_adaptive_object_relationship_list, err) == -1)
        route_rules_free(&r);
#undef PATTERNS
#undef PREFERENCES
    return r;
}

static void free_patterns(struct route_patterns *p)
{
    while (p->n > 0)
        regfree(&p->re[--p->n]);
}

static void free_preferences(struct route_preferences *p)
{
    while (p->n > 0)
        regfree(&p->item[--p->n].re);
}

void route_rules_free(struct route_rules **rp)
{
    struct route_rules *r = *rp;
    struct arena *a;

    *rp = NULL;
    if (r == NULL)
        return;
    free_patterns(&r->read_functions);
    free_patterns(&r->write_functions);
    free_patterns(&r->primary_queries);
    free_preferences(&r->by_app);
    free_preferences(&r->by_database);
    free_preferences(&r->by_user);
    a = r->arena;
    arena_free(&a);
}
