/* SPDX-License-Identifier: PostgreSQL
 * conf_format.c: values of parameters as text, in the three styles of conf_param.h.
 * Runs in: every process. What it writes for a file, the reader of files gives back unchanged. */
#include "config.h"

#include "conf_int.h"

#include "base/assert.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct conf_scale {
    const char *word;
    int64_t factor;
};

/* Largest first. */
static const struct conf_scale conf_times[] = {
    {"d", 86400000}, {"h", 3600000}, {"min", 60000}, {"s", 1000}, {"ms", 1}};
static const struct conf_scale conf_sizes[] = {{"TB", INT64_C(1) << 40}, {"GB", INT64_C(1) << 30},
    {"MB", INT64_C(1) << 20}, {"kB", INT64_C(1) << 10}, {"B", 1}};

/* With the largest unit that divides it; nothing and less than nothing have none. */
static void conf_format_scaled(const struct conf_param *param, int64_t v, struct buf *out)
{
    bool is_time = param->type == CONF_TIME;
    const struct conf_scale *t = is_time ? conf_times : conf_sizes;
    if (v == 0) {
        buf_put_byte(out, '0');
        return;
    }
    while (v % t->factor != 0)
        t++;
    buf_printf(out, "%lld%s", (long long)(v / t->factor), t->word);
}

/* In the parameter's own unit, bare; a part of it is written with a point. */
static void conf_format_bare(const struct conf_param *param, int64_t v, struct buf *out)
{
    int64_t factor = 1;
    if (param->unit == CONF_UNIT_S)
        factor = 1000;
    else if (param->unit == CONF_UNIT_MIN)
        factor = 60000;
    else if (param->unit == CONF_UNIT_KB)
        factor = 1024;
    if (v % factor == 0)
        buf_printf(out, "%lld", (long long)(v / factor));
    else
        buf_printf(out, "%.6g", (double)v / (double)factor);
}

static void conf_format_time_or_size(
    const struct conf_param *param, int64_t v, enum conf_style style, struct buf *out)
{
    if (style == CONF_STYLE_STATUS || v < 0) {
        conf_format_bare(param, v, out);
    } else if (style == CONF_STYLE_SHOW) {
        conf_format_scaled(param, v, out);
    } else {
        buf_printf(out, "%lld%s", (long long)v, param->type == CONF_TIME ? "ms" : "B");
    }
}

static void conf_format_int(const struct conf_param *param, int v, struct buf *out)
{
    if (param->unit == CONF_UNIT_OCTAL)
        buf_printf(out, "%04o", (unsigned)v);
    else
        buf_printf(out, "%d", v);
}

static void conf_format_real(double v, struct buf *out)
{
    char text[40];
    snprintf(text, sizeof(text), "%.15g", v);
    if (strtod(text, NULL) != v)
        snprintf(text, sizeof(text), "%.17g", v);
    buf_put(out, text, strlen(text));
}

static void conf_format_enum(
    const struct conf_param *param, int value, enum conf_style style, struct buf *out)
{
    const struct conf_enum_value *v = param->values;
    while (v->text != NULL && (v->value != value || v->hidden))
        v++;
    ASSERT(v->text != NULL);
    if (style == CONF_STYLE_STATUS)
        buf_printf(out, "%d", v->number);
    else
        buf_printf(out, "%s", v->text);
}

static void conf_format_flags(const struct conf_param *param, unsigned bits, struct buf *out)
{
    bool first = true;
    for (const struct conf_enum_value *v = param->values; v->text != NULL; v++) {
        if ((bits & (unsigned)v->value) == 0 || v->hidden)
            continue;
        if (!first)
            buf_put_byte(out, param->separator);
        first = false;
        buf_put(out, v->text, strlen(v->text));
    }
}

/* Items joined by the separator; a separator inside an item gets its backslash back. */
static void conf_format_list(
    const struct conf_param *param, const struct conf_list *list, struct buf *out)
{
    for (int i = 0; i < list->n; i++) {
        if (i > 0)
            buf_put_byte(out, param->separator);
        for (const char *p = list->item[i]; *p != '\0'; p++) {
            if (*p == param->separator)
                buf_put_byte(out, '\\');
            buf_put_byte(out, *p);
        }
    }
}

void conf_value_format(
    const struct conf_param *param, const void *at, enum conf_style style, struct buf *out)
{
    bool is;
    int number;
    int64_t scaled;
    double real;
    const char *s;
    struct conf_list list;
    switch (param->type) {
    case CONF_BOOL:
        memcpy(&is, at, sizeof(is));
        s = style == CONF_STYLE_STATUS ? (is ? "1" : "0") : (is ? "on" : "off");
        buf_put(out, s, strlen(s));
        return;
    case CONF_INT:
    case CONF_ENUM:
    case CONF_FLAGS:
        memcpy(&number, at, sizeof(number));
        if (param->type == CONF_INT)
            conf_format_int(param, number, out);
        else if (param->type == CONF_ENUM)
            conf_format_enum(param, number, style, out);
        else
            conf_format_flags(param, (unsigned)number, out);
        return;
    case CONF_TIME:
    case CONF_SIZE:
        memcpy(&scaled, at, sizeof(scaled));
        conf_format_time_or_size(param, scaled, style, out);
        return;
    case CONF_REAL:
        memcpy(&real, at, sizeof(real));
        conf_format_real(real, out);
        return;
    case CONF_STRING:
        memcpy(&s, at, sizeof(s));
        buf_put(out, s, strlen(s));
        return;
    case CONF_LIST:
        memcpy(&list, at, sizeof(list));
        if (style == CONF_STYLE_CANONICAL)
            buf_put(out, list.text, strlen(list.text));
        else
            conf_format_list(param, &list, out);
        return;
    }
    UNREACHED();
}

void conf_quote(const char *value, struct buf *out)
{
    buf_put_byte(out, '\'');
    for (const char *p = value; *p != '\0'; p++) {
        if (*p == '\'')
            buf_put_byte(out, '\'');
        if (*p == '\\' && p[1] != '\0')
            buf_put_byte(out, *p++); /* a backslash and what follows are kept as they are */
        buf_put_byte(out, *p);
    }
    buf_put_byte(out, '\'');
}
