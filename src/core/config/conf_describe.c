/* SPDX-License-Identifier: PostgreSQL
 * conf_describe.c: the table of parameters as sample file, as chapter of the manual and as JSON.
 * Runs in: the pgpool command. What it writes depends on the table alone: no clock, no host name.
 */
#include "config.h"

#include "config/conf_describe.h"

#include "conf_int.h"

#include "base/arena.h"
#include "base/assert.h"

#include <stdio.h>
#include <string.h>

#define CONF_WRAP   92 /* columns of a comment */
#define CONF_MARGIN 48 /* column of the remark behind a value */

/* Values of the sample that say more than the default. */
static const struct {
    const char *name;
    const char *value;
} conf_examples[] = {{"backend_hostname", "localhost"}, {"backend_port", "5432"},
    {"backend_data_directory", "/var/lib/postgresql/data"}, {"backend_application_name", "server0"},
    {"hostname", "localhost"}, {"wd_port", "9000"}, {"pgpool_port", "9999"},
    {"heartbeat_hostname", "localhost"}, {"heartbeat_port", "9694"}};

/* ---- pieces ---- */

static const char *conf_type_text(const struct conf_param *p)
{
    switch (p->type) {
    case CONF_BOOL:
        return "boolean";
    case CONF_INT:
        return p->unit == CONF_UNIT_OCTAL ? "octal number" : "whole number";
    case CONF_TIME:
        return "time";
    case CONF_SIZE:
        return "size";
    case CONF_REAL:
        return "number";
    case CONF_STRING:
        return (p->flags & CONF_PATH) != 0 ? "file name" : "text";
    case CONF_ENUM:
        return "one of a list";
    case CONF_FLAGS:
        return "some of a list";
    case CONF_LIST:
        return "list";
    }
    UNREACHED();
}

static const char *conf_unit_text(enum conf_unit unit)
{
    switch (unit) {
    case CONF_UNIT_MS:
        return "ms";
    case CONF_UNIT_S:
        return "s";
    case CONF_UNIT_MIN:
        return "min";
    case CONF_UNIT_B:
        return "B";
    case CONF_UNIT_KB:
        return "kB";
    case CONF_UNIT_NONE:
    case CONF_UNIT_DECIMAL:
    case CONF_UNIT_OCTAL:
        break;
    }
    return "";
}

static const char *conf_context_text(enum conf_context context)
{
    switch (context) {
    case CONF_CONTEXT_STARTUP:
        return "restart";
    case CONF_CONTEXT_RELOAD:
        return "reload";
    case CONF_CONTEXT_SESSION:
        return "session";
    }
    UNREACHED();
}

static const char *conf_scope_text(enum conf_scope scope)
{
    switch (scope) {
    case CONF_SCOPE_GLOBAL:
        return "";
    case CONF_SCOPE_NODE:
        return "server";
    case CONF_SCOPE_WD_NODE:
        return "pgpool";
    case CONF_SCOPE_HEARTBEAT:
        return "heartbeat";
    }
    UNREACHED();
}

/* True when text needs quotes in a file. */
static bool conf_is_text(const struct conf_param *p)
{
    return p->type == CONF_STRING || p->type == CONF_ENUM || p->type == CONF_FLAGS ||
           p->type == CONF_LIST;
}

/* Appends the default, as SHOW would print it. */
static void conf_put_default(const struct conf_param *p, struct buf *out)
{
    union {
        struct conf_list list;
        int64_t number;
        double real;
    } value;
    struct arena *a = arena_new("conf describe", 0);
    conf_value_default(a, p, &value);
    conf_value_format(p, &value, CONF_STYLE_SHOW, out);
    arena_free(&a);
}

/* Per-server parameters that also exist without number: the sample shows only those. */
static bool conf_has_common(const struct conf_param *p)
{
    return p->scope == CONF_SCOPE_NODE && conf_param_named(CONF_SCOPE_GLOBAL, p->name) != NULL;
}

static void conf_put_str(struct buf *out, const char *s)
{
    buf_put(out, s, strlen(s));
}

/* ---- sample ---- */

/* Appends `text` as comment lines that break at blanks. */
static void conf_put_comment(const char *text, struct buf *out)
{
    while (*text != '\0') {
        size_t n = strlen(text);
        if (n > CONF_WRAP) {
            n = CONF_WRAP;
            while (n > 1 && text[n] != ' ')
                n--;
        }
        buf_printf(out, "# %.*s\n", (int)n, text);
        text += n;
        while (*text == ' ')
            text++;
    }
}

static void conf_put_remark(const struct conf_param *p, struct buf *out)
{
    const struct conf_feature_info *info = conf_feature_info(p->feature);
    if (p->context == CONF_CONTEXT_STARTUP)
        conf_put_str(out, "# (change requires restart)");
    if (info->state == CONF_STATE_BUILT)
        return;
    conf_put_str(out, p->context == CONF_CONTEXT_STARTUP ? " " : "# ");
    if (conf_feature_is_missing(info))
        buf_printf(out, "(not built yet: %s)", info->text);
    else
        conf_put_str(out, "(has no effect)");
}

static void conf_put_sample_value(const struct conf_param *p, struct buf *out)
{
    struct buf value = {0};
    for (size_t i = 0; i < sizeof(conf_examples) / sizeof(conf_examples[0]); i++)
        if (p->scope != CONF_SCOPE_GLOBAL && strcmp(conf_examples[i].name, p->name) == 0)
            conf_put_str(&value, conf_examples[i].value);
    if (buf_unread(&value) == 0)
        conf_put_default(p, &value);
    buf_put_byte(&value, '\0');
    if (conf_is_text(p))
        conf_quote(value.data, out);
    else
        conf_put_str(out, value.data);
    buf_free(&value);
}

static void conf_put_sample_values(const struct conf_param *p, struct buf *out)
{
    char list[512];
    size_t n = 0;
    list[0] = '\0';
    if (p->values == NULL)
        return;
    for (const struct conf_enum_value *v = p->values; v->text != NULL; v++)
        if (!v->hidden && n + strlen(v->text) + 4 < sizeof(list))
            n += (size_t)snprintf(list + n, sizeof(list) - n, "%s%s", n == 0 ? "" : ", ",
                v->text[0] == '\0' ? "''" : v->text);
    buf_printf(out, "# Values: %s\n", list);
}

static void conf_put_sample(const struct conf_param *p, struct buf *out)
{
    char name[CONF_NAME_SIZE];
    struct conf_ref ref = {p, p->scope == CONF_SCOPE_GLOBAL ? -1 : 0};
    conf_ref_name(&ref, name);
    conf_put_str(out, "\n");
    conf_put_comment(p->brief, out);
    conf_put_comment(p->text, out);
    conf_put_sample_values(p, out);
    uint32_t start = out->len;
    buf_printf(out, "#%s = ", name);
    conf_put_sample_value(p, out);
    uint32_t before = out->len;
    buf_printf(out, "%*s",
        out->len - start < CONF_MARGIN ? (int)(CONF_MARGIN - (out->len - start)) : 1, "");
    uint32_t padded = out->len;
    conf_put_remark(p, out);
    if (out->len == padded)
        out->len = before; /* no remark: no blanks at the end of the line */
    conf_put_str(out, "\n");
}

void conf_describe_sample(struct buf *out)
{
    int n;
    const struct conf_param *t = conf_param_table(&n);
    conf_put_comment(
        "pgpool.conf: settings of pgpool. This file is made by pgpool --describe=sample.", out);
    conf_put_str(out, "#\n");
    conf_put_comment(
        "A line is: name = value. Text stands between single quotes; a # begins a comment. Every "
        "line that is commented out shows the default. The last of several lines for one name "
        "counts. include = 'file' reads another file at that place.",
        out);
    conf_put_comment(
        "Times take us, ms, s, min, h or d, sizes B, kB, MB, GB or TB behind the number.", out);
    conf_put_comment(
        "Check a changed file with pgpool --check-config -f FILE, then use pgpool reload; "
        "what is marked so needs a restart.",
        out);
    for (int g = 0; g < CONF_GROUP_COUNT; g++) {
        conf_put_str(out, "\n\n#-------------------------------------------------------------------"
                          "-----------\n# ");
        for (const char *c = conf_group_title((enum conf_group)g); *c != '\0'; c++)
            buf_put_byte(out, *c >= 'a' && *c <= 'z' ? (char)(*c - 'a' + 'A') : *c);
        conf_put_str(out,
            "\n#------------------------------------------------------------------------------\n");
        conf_put_comment(conf_group_text((enum conf_group)g), out);
        for (int i = 0; i < n; i++)
            if ((int)t[i].group == g && (t[i].flags & CONF_NO_SHOW) == 0 && !conf_has_common(&t[i]))
                conf_put_sample(&t[i], out);
    }
}

/* ---- manual ---- */

static void conf_put_range(const struct conf_param *p, struct buf *out)
{
    const char *unit = conf_unit_text(p->unit);
    if (p->type == CONF_REAL)
        buf_printf(out, "; from %g to %g", p->real_min, p->real_max);
    if (p->type != CONF_INT && p->type != CONF_TIME && p->type != CONF_SIZE)
        return;
    if (p->unit == CONF_UNIT_OCTAL) {
        buf_printf(out, "; from %04o to %04o", (unsigned)p->min, (unsigned)p->max);
        return;
    }
    if (unit[0] != '\0')
        buf_printf(out, " (a number alone counts in %s)", unit);
    buf_printf(out, "; from %lld", (long long)p->min);
    if (p->max < CONF_INT_MAX)
        buf_printf(out, " to %lld", (long long)p->max);
}

static void conf_put_man_values(const struct conf_param *p, struct buf *out)
{
    const char *comma = ": ";
    for (const struct conf_enum_value *v = p->values; v != NULL && v->text != NULL; v++) {
        if (v->hidden)
            continue;
        buf_printf(out, "%s`%s`", comma, v->text[0] == '\0' ? "''" : v->text);
        if (conf_feature_is_missing(conf_feature_info(v->feature)))
            conf_put_str(out, " (not built yet)");
        comma = ", ";
    }
    if (p->type == CONF_LIST)
        buf_printf(out, ", separated by `%c`", p->separator);
}

static void conf_put_man(const struct conf_param *p, struct buf *out)
{
    const struct conf_feature_info *info = conf_feature_info(p->feature);
    struct buf value = {0};
    bool numbered = p->scope != CONF_SCOPE_GLOBAL;
    bool both = !numbered && conf_param_named(CONF_SCOPE_NODE, p->name) != NULL;
    buf_printf(out, "\n### `%s%s`\n\n%s. %s\n\n", p->name, numbered ? "N" : "", p->brief, p->text);
    conf_put_default(p, &value);
    buf_put_byte(&value, '\0');
    buf_printf(out, "- Type: %s", conf_type_text(p));
    conf_put_range(p, out);
    conf_put_man_values(p, out);
    buf_printf(out, "\n- Default: %s%s%s\n", value.data[0] == '\0' ? "empty" : "`", value.data,
        value.data[0] == '\0' ? "" : "`");
    buf_free(&value);
    buf_printf(out, "- A change needs: %s\n",
        p->context == CONF_CONTEXT_STARTUP  ? "a restart"
        : p->context == CONF_CONTEXT_RELOAD ? "a reload"
                                            : "a reload; or `PGPOOL SET` for one session");
    if (numbered)
        buf_printf(out, "- Given per %s: N is a number from 0 to %d\n", conf_scope_text(p->scope),
            conf_scope_count(p->scope) - 1);
    if (both)
        buf_printf(out, "- Also per server: `%sN`, N from 0 to %d\n", p->name, CONF_MAX_NODES - 1);
    if ((p->flags & CONF_OURS) != 0)
        conf_put_str(out, "- Not in pgpool-II\n");
    if ((p->flags & CONF_SECRET) != 0)
        conf_put_str(out, "- Printed as `*****`\n");
    if (conf_feature_is_missing(info))
        buf_printf(out, "- **Not built yet**: %s\n", info->text);
    if (info->state == CONF_STATE_NO_EFFECT)
        buf_printf(out, "- **Has no effect**: %s\n", info->text);
}

static void conf_put_man_aliases(struct buf *out)
{
    int n;
    const struct conf_alias *t = conf_alias_table(&n);
    conf_put_str(out,
        "\n## Old names\n\nNames of older releases of pgpool-II. Each gives a warning.\n\n"
        "| old name | now |\n|---|---|\n");
    for (int i = 0; i < n; i++) {
        if (t[i].new_name != NULL)
            buf_printf(out, "| `%s` | taken as `%s` |\n", t[i].old_name, t[i].new_name);
        else
            buf_printf(out, "| `%s` | passed over. %s |\n", t[i].old_name, t[i].hint);
    }
}

void conf_describe_man(struct buf *out)
{
    int n;
    const struct conf_param *t = conf_param_table(&n);
    conf_put_str(out,
        "<!-- Made by pgpool --describe=man. Change include/config/params, not this file. -->\n"
        "# Settings\n\n"
        "A line of `pgpool.conf` is `name = value`; the `=` may be left out, and `#` begins a "
        "comment. Text "
        "stands between single quotes: a quote in it is written twice, and a backslash is kept. "
        "The last of "
        "several lines for one name counts. `include = 'file'` reads another file at that place, "
        "at most 10 "
        "deep; its name is taken from the folder of the including file.\n\n"
        "Booleans are `on`, `off`, `true`, `false`, `yes`, `no`, `1`, `0`. Times take `us`, `ms`, "
        "`s`, `min`, "
        "`h` or `d` behind the number, sizes `B`, `kB`, `MB`, `GB` or `TB`.\n\n"
        "`pgpool --check-config -f FILE` reads a file without starting and reports all that is "
        "wrong with it, "
        "with file and line. A file with an error is refused, at the start and at reload; an "
        "unknown name is "
        "only warned about.\n");
    for (int g = 0; g < CONF_GROUP_COUNT; g++) {
        buf_printf(out, "\n## %s\n\n%s\n", conf_group_title((enum conf_group)g),
            conf_group_text((enum conf_group)g));
        for (int i = 0; i < n; i++)
            if ((int)t[i].group == g && (t[i].flags & CONF_NO_SHOW) == 0 && !conf_has_common(&t[i]))
                conf_put_man(&t[i], out);
    }
    conf_put_man_aliases(out);
}

/* ---- JSON ---- */

static void conf_put_json(struct buf *out, const char *key, const char *s)
{
    buf_printf(out, ", \"%s\": \"", key);
    for (; *s != '\0'; s++) {
        if (*s == '"' || *s == '\\')
            buf_printf(out, "\\%c", *s);
        else if ((unsigned char)*s < 0x20)
            buf_printf(out, "\\u%04x", (unsigned)*s);
        else
            buf_put_byte(out, *s);
    }
    buf_put_byte(out, '"');
}

static void conf_put_json_values(const struct conf_param *p, struct buf *out)
{
    const char *comma = "";
    if (p->values == NULL)
        return;
    conf_put_str(out, ", \"values\": [");
    for (const struct conf_enum_value *v = p->values; v->text != NULL; v++) {
        buf_printf(out, "%s{\"number\": %d", comma, v->number);
        conf_put_json(out, "text", v->text);
        buf_printf(out, ", \"built\": %s}",
            conf_feature_info(v->feature)->state == CONF_STATE_BUILT ? "true" : "false");
        comma = ", ";
    }
    conf_put_str(out, "]");
}

static void conf_put_json_param(const struct conf_param *p, struct buf *out)
{
    const struct conf_feature_info *info = conf_feature_info(p->feature);
    struct buf value = {0};
    conf_put_default(p, &value);
    buf_put_byte(&value, '\0');
    buf_printf(out, "{\"per\": \"%s\"", conf_scope_text(p->scope));
    conf_put_json(out, "name", p->name);
    conf_put_json(out, "type", conf_type_text(p));
    conf_put_json(out, "unit", conf_unit_text(p->unit));
    conf_put_json(out, "default", value.data);
    if (p->type == CONF_REAL)
        buf_printf(out, ", \"min\": %.17g, \"max\": %.17g", p->real_min, p->real_max);
    else if (p->type == CONF_INT || p->type == CONF_TIME || p->type == CONF_SIZE)
        buf_printf(out, ", \"min\": %lld, \"max\": %lld", (long long)p->min, (long long)p->max);
    conf_put_json_values(p, out);
    if (p->separator != '\0')
        buf_printf(out, ", \"separator\": \"%c\"", p->separator);
    conf_put_json(out, "context", conf_context_text(p->context));
    conf_put_json(out, "group", conf_group_title(p->group));
    buf_printf(out, ", \"secret\": %s, \"ours\": %s, \"hidden\": %s",
        (p->flags & CONF_SECRET) != 0 ? "true" : "false",
        (p->flags & CONF_OURS) != 0 ? "true" : "false",
        (p->flags & CONF_NO_SHOW) != 0 ? "true" : "false");
    buf_printf(out, ", \"state\": \"%s\"",
        info->state == CONF_STATE_BUILT ? "built"
        : conf_feature_is_missing(info) ? "not built"
                                        : "no effect");
    conf_put_json(out, "feature", info->text);
    conf_put_json(out, "brief", p->brief);
    conf_put_json(out, "text", p->text);
    conf_put_str(out, "}");
    buf_free(&value);
}

void conf_describe_json(struct buf *out)
{
    int n;
    const struct conf_param *t = conf_param_table(&n);
    conf_put_str(out, "[\n");
    for (int i = 0; i < n; i++) {
        conf_put_json_param(&t[i], out);
        conf_put_str(out, i + 1 < n ? ",\n" : "\n");
    }
    conf_put_str(out, "]\n");
}

int conf_describe(const char *what, struct buf *out, struct err *err)
{
    if (strcmp(what, "sample") == 0) {
        conf_describe_sample(out);
    } else if (strcmp(what, "man") == 0) {
        conf_describe_man(out);
    } else if (strcmp(what, "roff") == 0) {
        conf_describe_roff(out);
    } else if (strcmp(what, "json") == 0) {
        conf_describe_json(out);
    } else {
        err_set(err, "22023", "there is no description \"%s\"", what);
        err_hint(err, "Available values: sample, man, roff, json.");
        return -1;
    }
    return 0;
}
