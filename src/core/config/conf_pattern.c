/* SPDX-License-Identifier: PostgreSQL
 * conf_pattern.c: items of the lists of patterns, preferences and relations. Runs in: every
 * process; the router compiles them, who reads a file checks them. */
#include "config.h"

#include "config/conf_pattern.h"

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"

#include "conf_int.h"

#define MAX_NODE_NUMBER 127

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

int conf_pattern_compile(regex_t *re, struct slice pattern, struct err *err)
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
    err_set(err, "22023", "bad regular expression \"%.*s\": %s", (int)pattern.n, pattern.p, why);
    return -1;
}

static struct slice trim(struct slice s)
{
    while (s.n > 0 && (s.p[0] == ' ' || s.p[0] == '\t'))
        s = slice_of(s.p + 1, s.n - 1);
    while (s.n > 0 && (s.p[s.n - 1] == ' ' || s.p[s.n - 1] == '\t'))
        s.n--;
    return s;
}

bool conf_split_last(struct slice s, char ch, struct slice *left, struct slice *right)
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

static int parse_ratio(struct slice s, double *ratio)
{
    char text[32];
    char *end;

    if (s.n == 0 || s.n >= sizeof text)
        return -1;
    memcpy(text, s.p, s.n);
    text[s.n] = '\0';
    *ratio = strtod(text, &end);
    return *end == '\0' && *ratio >= 0.0 && *ratio <= 1.0 ? 0 : -1;
}

static int parse_node(struct slice s, int *node)
{
    size_t i;

    *node = 0;
    for (i = 0; i < s.n && i < 4; i++) {
        if (s.p[i] < '0' || s.p[i] > '9')
            return -1;
        *node = *node * 10 + (s.p[i] - '0');
    }
    return s.n > 0 && s.n <= 3 && *node <= MAX_NODE_NUMBER ? 0 : -1;
}

/* "node" or "node(ratio)". */
static int parse_target(struct slice s, struct conf_preference *out)
{
    struct slice ratio;

    out->ratio = 1.0;
    if (s.n > 0 && s.p[s.n - 1] == ')') {
        s.n--;
        if (!conf_split_last(s, '(', &s, &ratio) || parse_ratio(ratio, &out->ratio) == -1)
            return -1;
    }
    if (slice_ieq_str(s, "primary"))
        out->what = CONF_PREFER_PRIMARY;
    else if (slice_ieq_str(s, "standby"))
        out->what = CONF_PREFER_STANDBY;
    else if (parse_node(s, &out->node) == 0)
        out->what = CONF_PREFER_NODE;
    else
        return -1;
    return 0;
}

int conf_preference_parse(const char *item, struct conf_preference *out, struct err *err)
{
    struct slice target;

    memset(out, 0, sizeof *out);
    if (conf_split_last(slice_of_str(item), ':', &out->name, &target) && out->name.n > 0 &&
        parse_target(target, out) == 0)
        return 0;
    err_set(err, "22023", "bad item \"%s\"", item);
    err_hint(err, "Write name:node or name:node(ratio), where node is primary, standby or a number "
                  "and ratio is between 0 and 1.");
    return -1;
}

int conf_relation_parse(const char *item, struct conf_relation *out, struct err *err)
{
    struct slice *from = &out->from;

    memset(out, 0, sizeof *out);
    if (!conf_split_last(slice_of_str(item), ':', from, &out->to) || from->n == 0 ||
        out->to.n == 0) {
        err_set(err, "22023", "bad item \"%s\"", item);
        err_hint(err, "Write table:table or function():table.");
        return -1;
    }
    if (from->n > 2 && from->p[from->n - 1] == ')' && from->p[from->n - 2] == '(') {
        out->from_function = true;
        *from = trim(slice_of(from->p, from->n - 2));
    }
    return 0;
}

int conf_expiry_parse(const char *item, struct conf_expiry *out, struct err *err)
{
    struct slice seconds;
    size_t i;

    if (!conf_split_last(slice_of_str(item), ':', &out->name, &seconds) || out->name.n == 0 ||
        seconds.n == 0 || seconds.n > 9) {
        err_set(err, "22023", "\"%s\" is not table:seconds", item);
        err_hint(err, "For example: 'prices:60, public\\.stock_.*:5'.");
        return -1;
    }
    out->seconds = 0;
    for (i = 0; i < seconds.n; i++) {
        if (seconds.p[i] < '0' || seconds.p[i] > '9') {
            err_set(err, "22023", "\"%.*s\" is no number of seconds", (int)seconds.n, seconds.p);
            return -1;
        }
        out->seconds = out->seconds * 10 + (seconds.p[i] - '0');
    }
    return 0;
}

static void complain(struct conf_reading *load, const char *name, const struct err *err)
{
    struct conf_ref ref = {conf_param_named(CONF_SCOPE_GLOBAL, name), -1};
    const struct conf_slot *slot = conf_slot_of(load, &ref);

    conf_report_add(load->report, CONF_ERROR, slot->value == NULL ? load->gen->file : slot->file,
        slot->line, err->hint[0] == '\0' ? NULL : err->hint, "parameter \"%s\": %s", name,
        err->msg);
}

static void check_patterns(
    struct conf_reading *load, const struct conf_list *list, const char *name)
{
    struct err err;
    regex_t re;
    int i;

    for (i = 0; i < list->n; i++) {
        err_clear(&err);
        if (conf_pattern_compile(&re, slice_of_str(list->item[i]), &err) == 0)
            regfree(&re);
        else
            complain(load, name, &err);
    }
}

static void check_preferences(
    struct conf_reading *load, const struct conf_list *list, const char *name)
{
    struct conf_preference p;
    struct err err;
    regex_t re;
    int i;

    for (i = 0; i < list->n; i++) {
        err_clear(&err);
        if (conf_preference_parse(list->item[i], &p, &err) == 0 &&
            conf_pattern_compile(&re, p.name, &err) == 0)
            regfree(&re);
        else
            complain(load, name, &err);
    }
}

static void check_expiries(struct conf_reading *load, const struct conf_list *list)
{
    struct conf_expiry e;
    struct err err;
    regex_t re;
    int i;

    for (i = 0; i < list->n; i++) {
        err_clear(&err);
        if (conf_expiry_parse(list->item[i], &e, &err) == 0 &&
            conf_pattern_compile(&re, e.name, &err) == 0)
            regfree(&re);
        else
            complain(load, "memqcache_expire_list", &err);
    }
}

void conf_check_lists(struct conf_reading *load, const struct conf *c)
{
    const struct conf_list *relations = &c->dml_adaptive_object_relationship_list;
    struct conf_relation relation;
    struct err err;
    int i;

    check_patterns(load, &c->read_only_function_list, "read_only_function_list");
    check_patterns(load, &c->write_function_list, "write_function_list");
    check_patterns(
        load, &c->primary_routing_query_pattern_list, "primary_routing_query_pattern_list");
    check_preferences(
        load, &c->app_name_redirect_preference_list, "app_name_redirect_preference_list");
    check_preferences(
        load, &c->database_redirect_preference_list, "database_redirect_preference_list");
    check_preferences(load, &c->user_redirect_preference_list, "user_redirect_preference_list");
    check_expiries(load, &c->memqcache_expire_list);
    for (i = 0; i < relations->n; i++) {
        err_clear(&err);
        if (conf_relation_parse(relations->item[i], &relation, &err) == -1)
            complain(load, "dml_adaptive_object_relationship_list", &err);
    }
}
