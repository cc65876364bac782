/* SPDX-License-Identifier: PostgreSQL
 * route_rules.c: the lists of the settings, compiled once per generation.
 * Runs in: workers. A pattern stands for the whole name or text: it is anchored at both ends unless
 * it says so itself. */
#include "config.h"

#include "route/route_rules.h"

#include <stdlib.h>

#include "base/arena.h"
#include "base/assert.h"
#include "base/buf.h"
#include "base/mem.h"
#include "route_int.h"

/* True when the pattern's last character is a $ that is not escaped. */
static bool ends_anchored(struct slice p)
{
    size_t slashes = 0;

    if (p.n == 0 || p.p[p.n - 1] != '$')
        return false;
    while (slashes + 1 < p.n && p.p[p.n - 2 - slashes] == '\\')
        slashes++;
    return slashes % 2 == 0;
}

static int compile(regex_t *re, struct slice pattern, const char *setting, struct err *err)
{
    struct buf b = {0};
    char why[128];
    int rc;

    if (pattern.n > 0 && pattern.p[0] == '^')
        pattern = slice_of(pattern.p + 1, pattern.n - 1);
    if (ends_anchored(pattern))
        pattern.n--;
    buf_put(&b, "^(", 2);
    buf_put(&b, pattern.p, pattern.n);
    buf_put_cstr(&b, ")$");
    rc = regcomp(re, b.data, REG_EXTENDED | REG_ICASE | REG_NOSUB);
    buf_free(&b);
    if (rc == 0)
        return 0;
    (void)regerror(rc, re, why, sizeof why);
    err_set(err, "22023", "%s: bad regular expression \"%.*s\": %s", setting, (int)pattern.n,
        pattern.p, why);
    return -1;
}

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

static int add_patterns(struct route_rules *r, struct route_patterns *p,
    const struct conf_list *list, const char *setting, struct err *err)
{
    int i;

    if (list->n == 0)
        return 0;
    p->re = arena_alloc_zero(r->arena, (size_t)list->n * sizeof p->re[0]);
    for (i = 0; i < list->n; i++) {
        if (compile(&p->re[i], slice_of_str(list->item[i]), setting, err) == -1)
            return -1;
        p->n++;
    }
    return 0;
}

static struct slice trim(struct slice s)
{
    while (s.n > 0 && (s.p[0] == ' ' || s.p[0] == '\t'))
        s = slice_of(s.p + 1, s.n - 1);
    while (s.n > 0 && (s.p[s.n - 1] == ' ' || s.p[s.n - 1] == '\t'))
        s.n--;
    return s;
}

/* Splits at the last `ch` outside of the ratio; false when there is none. */
static bool split_last(struct slice s, char ch, struct slice *left, struct slice *right)
{
    size_t i = s.n;

    while (i > 0 && s.p[i - 1] != ch)
        i--;
    if (i == 0)
        return false;
    *left = trim(slice_of(s.p, i - 1));
    *right = trim(slice_of(s.p + i, s.n - i));
    return true;
}

/* "node" or "node(ratio)". Returns 0, or -1 when it is neither. */
static int parse_target(struct route_rules *r, struct slice s, struct route_preference *p)
{
    struct slice ratio;
    char *end;
    const char *text;

    p->ratio = 1.0;
    if (s.n > 0 && s.p[s.n - 1] == ')') {
        s.n--;
        if (!split_last(s, '(', &s, &ratio) || ratio.n == 0)
            return -1;
        text = arena_strndup(r->arena, ratio.p, ratio.n);
        p->ratio = strtod(text, &end);
        if (*end != '\0' || !(p->ratio >= 0.0 && p->ratio <= 1.0))
            return -1;
    }
    if (slice_ieq_str(s, "primary")) {
        p->what = ROUTE_PREFER_PRIMARY;
        return 0;
    }
    if (slice_ieq_str(s, "standby")) {
        p->what = ROUTE_PREFER_STANDBY;
        return 0;
    }
    if (s.n == 0 || s.n > 3 || s.p[0] < '0' || s.p[0] > '9')
        return -1;
    text = arena_strndup(r->arena, s.p, s.n);
    p->what = ROUTE_PREFER_NODE;
    p->node = (int)strtol(text, &end, 10);
    return *end == '\0' && p->node < VIEW_MAX_NODES ? 0 : -1;
}

static int add_preferences(struct route_rules *r, struct route_preferences *out,
    const struct conf_list *list, const char *setting, struct err *err)
{
    struct slice name;
    struct slice target;
    int i;

    if (list->n == 0)
        return 0;
    out->item = arena_alloc_zero(r->arena, (size_t)list->n * sizeof out->item[0]);
    for (i = 0; i < list->n; i++) {
        struct route_preference *p = &out->item[i];
        if (!split_last(slice_of_str(list->item[i]), ':', &name, &target) || name.n == 0 ||
            parse_target(r, target, p) == -1) {
            err_set(err, "22023", "%s: bad item \"%s\"", setting, list->item[i]);
            err_hint(err, "Write name:node or name:node(ratio), where node is primary, standby or "
                          "a number and ratio is between 0 and 1.");
            return -1;
        }
        if (compile(&p->re, name, setting, err) == -1)
            return -1;
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
    if (split_last(s, '.', &left, &right)) {
        *schema = fold(r, left);
        s = right;
    }
    *name = fold(r, s);
}

static int add_relations(struct route_rules *r, const struct conf_list *list, struct err *err)
{
    struct slice from;
    struct slice to;
    int i;

    if (list->n == 0)
        return 0;
    r->relation = arena_alloc_zero(r->arena, (size_t)list->n * sizeof r->relation[0]);
    for (i = 0; i < list->n; i++) {
        struct route_relation *rel = &r->relation[i];
        if (!split_last(slice_of_str(list->item[i]), ':', &from, &to) || from.n == 0 || to.n == 0) {
            err_set(err, "22023", "dml_adaptive_object_relationship_list: bad item \"%s\"",
                list->item[i]);
            err_hint(err, "Write table:table or function():table.");
            return -1;
        }
        if (from.n > 2 && from.p[from.n - 1] == ')' && from.p[from.n - 2] == '(') {
            rel->from_function = true;
            from = trim(slice_of(from.p, from.n - 2));
        }
        split_name(r, from, &rel->from_schema, &rel->from);
        split_name(r, to, &rel->to_schema, &rel->to);
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
