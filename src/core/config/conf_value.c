/* SPDX-License-Identifier: PostgreSQL
 * conf_value.c: values of parameters: reading them from text, defaults, copying, comparing.
 * Runs in: every process. The words of the errors are those that users of pgpool-II and PostgreSQL
 * know; each says what is allowed. */
#include "config.h"

#include "conf_int.h"

#include "base/arena.h"
#include "base/assert.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct conf_unit_word {
    const char *word;
    double factor; /* in thousandths of the stored unit for times, in the stored unit for sizes */
};

static const struct conf_unit_word conf_time_words[] = {
    {"us", 1.0}, {"ms", 1e3}, {"s", 1e6}, {"min", 6e7}, {"h", 3.6e9}, {"d", 8.64e10}, {NULL, 0}};
static const struct conf_unit_word conf_size_words[] = {{"B", 1.0}, {"kB", 1024.0},
    {"MB", 1048576.0}, {"GB", 1073741824.0}, {"TB", 1099511627776.0}, {NULL, 0}};

/* How many stored units (milliseconds, bytes) one bare number counts. */
static int64_t conf_unit_factor(enum conf_unit unit)
{
    switch (unit) {
    case CONF_UNIT_S:
        return 1000;
    case CONF_UNIT_MIN:
        return 60000;
    case CONF_UNIT_KB:
        return 1024;
    case CONF_UNIT_NONE:
    case CONF_UNIT_DECIMAL:
    case CONF_UNIT_OCTAL:
    case CONF_UNIT_MS:
    case CONF_UNIT_B:
        break;
    }
    return 1;
}

void *conf_value_at(struct conf *conf, const struct conf_ref *ref)
{
    char *base = (char *)conf;
    switch (ref->param->scope) {
    case CONF_SCOPE_GLOBAL:
        break;
    case CONF_SCOPE_NODE:
        base = (char *)&conf->nodes[ref->index];
        break;
    case CONF_SCOPE_WD_NODE:
        base = (char *)&conf->wd_nodes[ref->index];
        break;
    case CONF_SCOPE_HEARTBEAT:
        base = (char *)&conf->heartbeats[ref->index];
        break;
    }
    ASSERT(ref->param->scope == CONF_SCOPE_GLOBAL || ref->index >= 0);
    return base + ref->param->offset;
}

const void *conf_value_of(const struct conf *conf, const struct conf_ref *ref)
{
    return conf_value_at((struct conf *)(uintptr_t)conf, ref);
}

size_t conf_value_size(const struct conf_param *param)
{
    switch (param->type) {
    case CONF_BOOL:
        return sizeof(bool);
    case CONF_INT:
    case CONF_ENUM:
    case CONF_FLAGS:
        return sizeof(int);
    case CONF_TIME:
    case CONF_SIZE:
        return sizeof(int64_t);
    case CONF_REAL:
        return sizeof(double);
    case CONF_STRING:
        return sizeof(const char *);
    case CONF_LIST:
        return sizeof(struct conf_list);
    }
    UNREACHED();
}

static bool conf_is_blank(char c)
{
    return c == ' ' || c == '\t';
}

/* ---- booleans ---- */

/* Takes a boolean as PostgreSQL does: on, off, true, false, yes, no, 1, 0 and any beginning of them
 * that is not two. */
static int conf_parse_bool(const char *value, bool *out)
{
    static const struct {
        const char *word;
        size_t least;
        bool is;
    } words[] = {{"on", 2, true}, {"off", 2, false}, {"true", 1, true}, {"false", 1, false},
        {"yes", 1, true}, {"no", 1, false}, {"1", 1, true}, {"0", 1, false}};
    size_t n = strlen(value);
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        if (n < words[i].least || n > strlen(words[i].word))
            continue;
        if (strncasecmp(value, words[i].word, n) == 0) {
            *out = words[i].is;
            return 0;
        }
    }
    return -1;
}

static int conf_value_bool(const char *name, const char *value, void *at, struct err *err)
{
    bool is;
    if (conf_parse_bool(value, &is) == -1) {
        err_set(err, "22023", "parameter \"%s\" requires a Boolean value, not \"%s\"", name, value);
        err_hint(err, "Available values: on, off, true, false, yes, no, 1, 0.");
        return -1;
    }
    memcpy(at, &is, sizeof(is));
    return 0;
}

/* ---- numbers ---- */

static int conf_bad_number(
    const struct conf_param *param, const char *name, const char *value, struct err *err)
{
    err_set(err, "22023", "invalid value for parameter \"%s\": \"%s\"", name, value);
    if (param->type == CONF_TIME)
        err_hint(err, "Valid units for this parameter are \"us\", \"ms\", \"s\", \"min\", \"h\", "
                      "and \"d\".");
    else if (param->type == CONF_SIZE)
        err_hint(
            err, "Valid units for this parameter are \"B\", \"kB\", \"MB\", \"GB\", and \"TB\".");
    else if (param->unit == CONF_UNIT_OCTAL)
        err_hint(err, "An octal number is expected, with a leading zero, such as 0700.");
    else if (param->type == CONF_REAL)
        err_hint(err, "A number is expected, such as 0.5.");
    else
        err_hint(err, "A whole number without a unit is expected.");
    return -1;
}

static int conf_out_of_range(
    const struct conf_param *param, const char *name, const char *value, struct err *err)
{
    const char *unit = "";
    switch (param->unit) {
    case CONF_UNIT_MS:
        unit = " ms";
        break;
    case CONF_UNIT_S:
        unit = " s";
        break;
    case CONF_UNIT_MIN:
        unit = " min";
        break;
    case CONF_UNIT_KB:
        unit = " kB";
        break;
    case CONF_UNIT_B:
        unit = " B";
        break;
    case CONF_UNIT_NONE:
    case CONF_UNIT_DECIMAL:
    case CONF_UNIT_OCTAL:
        break;
    }
    if (param->type == CONF_REAL)
        err_set(err, "22023", "%s is outside the valid range for parameter \"%s\" (%g .. %g)",
            value, name, param->real_min, param->real_max);
    else if (param->unit == CONF_UNIT_OCTAL)
        err_set(err, "22023", "%s is outside the valid range for parameter \"%s\" (%04o .. %04o)",
            value, name, (unsigned)param->min, (unsigned)param->max);
    else
        err_set(err, "22023",
            "%s is outside the valid range for parameter \"%s\" (%lld%s .. %lld%s)", value, name,
            (long long)param->min, unit, (long long)param->max, unit);
    if (param->unit == CONF_UNIT_OCTAL)
        err_hint(err, "Octal numbers are written with a leading zero, such as 0700.");
    return -1;
}

/* Reads a whole number: decimal, 0octal, 0xhex. *end is where it stops. Returns false when it is no
 * whole number that fits. */
static bool conf_whole_number(const char *s, int64_t *out, const char **end)
{
    char *stop;
    errno = 0;
    long long v = strtoll(s, &stop, 0);
    if (stop == s || errno != 0 || *stop == '.' || *stop == 'e' || *stop == 'E')
        return false;
    *out = v;
    *end = stop;
    return true;
}

static bool conf_find_unit(const struct conf_param *param, const char *word, double *factor)
{
    const struct conf_unit_word *t = param->type == CONF_TIME ? conf_time_words : conf_size_words;
    for (; t->word != NULL; t++) {
        if (strcmp(t->word, word) == 0) {
            *factor = param->type == CONF_TIME ? t->factor / 1e3 : t->factor;
            return true;
        }
    }
    return false;
}

/* Times and sizes: a number, perhaps with a point, and perhaps a unit. */
static int conf_value_scaled(
    const struct conf_param *param, const char *name, const char *value, void *at, struct err *err)
{
    int64_t whole = 0;
    double real = 0;
    const char *end;
    bool is_whole = conf_whole_number(value, &whole, &end);
    if (!is_whole) {
        char *stop;
        errno = 0;
        real = strtod(value, &stop);
        if (stop == value || errno != 0 || !isfinite(real) || strchr(value, 'x') != NULL)
            return conf_bad_number(param, name, value, err);
        end = stop;
    }
    while (conf_is_blank(*end))
        end++;
    double factor = (double)conf_unit_factor(param->unit);
    if (*end != '\0' && !conf_find_unit(param, end, &factor))
        return conf_bad_number(param, name, value, err);

    int64_t stored;
    if (is_whole && factor >= 1.0) {
        if (__builtin_mul_overflow(whole, (int64_t)factor, &stored))
            return conf_out_of_range(param, name, value, err);
    } else {
        double exact = (is_whole ? (double)whole : real) * factor;
        if (!(fabs(exact) < 9.2e18))
            return conf_out_of_range(param, name, value, err);
        stored = (int64_t)(exact < 0 ? exact - 0.5 : exact + 0.5);
        if (stored == 0 && exact != 0.0) {
            err_set(err, "22023", "invalid value for parameter \"%s\": \"%s\"", name, value);
            err_hint(err, "It is less than the least that can be told apart, one %s.",
                param->type == CONF_TIME ? "millisecond" : "byte");
            return -1;
        }
    }
    int64_t lo = param->min * conf_unit_factor(param->unit);
    int64_t hi;
    if (__builtin_mul_overflow(param->max, conf_unit_factor(param->unit), &hi))
        hi = INT64_MAX;
    if (stored < lo || stored > hi)
        return conf_out_of_range(param, name, value, err);
    memcpy(at, &stored, sizeof(stored));
    return 0;
}

static int conf_value_int(
    const struct conf_param *param, const char *name, const char *value, void *at, struct err *err)
{
    int64_t v;
    const char *end;
    if (!conf_whole_number(value, &v, &end) || *end != '\0') {
        if (errno == ERANGE)
            return conf_out_of_range(param, name, value, err);
        return conf_bad_number(param, name, value, err);
    }
    /* A port of 0 says that there is no such server; it may be said. */
    bool is_unset = v == param->def_int && param->scope != CONF_SCOPE_GLOBAL;
    if (!is_unset && (v < param->min || v > param->max))
        return conf_out_of_range(param, name, value, err);
    int stored = (int)v;
    memcpy(at, &stored, sizeof(stored));
    return 0;
}

static int conf_value_real(
    const struct conf_param *param, const char *name, const char *value, void *at, struct err *err)
{
    char *end;
    errno = 0;
    double v = strtod(value, &end);
    if (end == value || *end != '\0' || !isfinite(v))
        return conf_bad_number(param, name, value, err);
    if (v < param->real_min || v > param->real_max)
        return conf_out_of_range(param, name, value, err);
    memcpy(at, &v, sizeof(v));
    return 0;
}

/* ---- words ---- */

static void conf_hint_values(const struct conf_param *param, struct err *err)
{
    char list[sizeof(err->hint)];
    size_t n = 0;
    list[0] = '\0';
    for (const struct conf_enum_value *v = param->values; v->text != NULL; v++) {
        if (v->hidden || n + strlen(v->text) + 5 >= sizeof(list))
            continue;
        n += (size_t)snprintf(list + n, sizeof(list) - n, "%s%s", n == 0 ? "" : ", ",
            v->text[0] == '\0' ? "''" : v->text);
    }
    err_hint(err, "Available values: %s.", list);
}

static const struct conf_enum_value *conf_find_word(
    const struct conf_param *param, const char *word, size_t n)
{
    for (const struct conf_enum_value *v = param->values; v->text != NULL; v++)
        if (strlen(v->text) == n && strncasecmp(v->text, word, n) == 0)
            return v;
    return NULL;
}

static int conf_value_enum(
    const struct conf_param *param, const char *name, const char *value, void *at, struct err *err)
{
    const struct conf_enum_value *v = conf_find_word(param, value, strlen(value));
    if (v == NULL) {
        err_set(err, "22023", "invalid value for parameter \"%s\": \"%s\"", name, value);
        conf_hint_values(param, err);
        return -1;
    }
    memcpy(at, &v->value, sizeof(v->value));
    return 0;
}

static int conf_value_flags(
    const struct conf_param *param, const char *name, const char *value, void *at, struct err *err)
{
    unsigned bits = 0;
    const char *p = value;
    for (;;) {
        const char *end = strchr(p, param->separator);
        size_t n = end == NULL ? strlen(p) : (size_t)(end - p);
        while (n > 0 && conf_is_blank(*p)) {
            p++;
            n--;
        }
        while (n > 0 && conf_is_blank(p[n - 1]))
            n--;
        const struct conf_enum_value *v = conf_find_word(param, p, n);
        if (v == NULL && (n > 0 || end != NULL)) {
            err_set(err, "22023", "invalid value for parameter \"%s\": \"%.*s\"", name,
                n > 200 ? 200 : (int)n, p);
            conf_hint_values(param, err);
            return -1;
        }
        bits |= v == NULL ? 0U : (unsigned)v->value;
        if (end == NULL)
            break;
        p = end + 1;
    }
    memcpy(at, &bits, sizeof(bits));
    return 0;
}

/* ---- lists ---- */

/* Length of the item at `p`: up to a separator that no backslash escapes. */
static size_t conf_item_length(const char *p, char separator)
{
    size_t n = 0;
    while (p[n] != '\0' && p[n] != separator) {
        if (p[n] == '\\' && p[n + 1] != '\0')
            n++;
        n++;
    }
    return n;
}

/* What a backslash in front of it only protects: from ending the item, or the string around it. */
static bool conf_is_protected(char c, char separator)
{
    return c == separator || c == '\'';
}

/* Copies an item without blanks around it and without such backslashes. */
static const char *conf_item_copy(struct arena *a, const char *p, size_t n, char separator)
{
    while (n > 0 && conf_is_blank(*p)) {
        p++;
        n--;
    }
    while (n > 0 && conf_is_blank(p[n - 1]))
        n--;
    char *out = arena_alloc(a, n + 1);
    size_t len = 0;
    for (size_t i = 0; i < n; i++) {
        if (p[i] == '\\' && i + 1 < n && !conf_is_protected(p[i + 1], separator))
            out[len++] = p[i++];
        else if (p[i] == '\\' && i + 1 < n)
            i++;
        out[len++] = p[i];
    }
    out[len] = '\0';
    return out;
}

static void conf_value_list(
    struct arena *a, const struct conf_param *param, const char *value, void *at)
{
    struct conf_list list = {0};
    int n = 1;
    for (const char *p = value; *p != '\0'; p++)
        n += *p == param->separator;
    list.text = arena_strdup(a, value);
    list.item = arena_alloc(a, (size_t)n * sizeof(list.item[0]));
    const char *p = value;
    for (;;) {
        size_t len = conf_item_length(p, param->separator);
        const char *item = conf_item_copy(a, p, len, param->separator);
        if (item[0] != '\0') {
            ASSERT(list.n < n);
            list.item[list.n++] = item;
        }
        if (p[len] == '\0')
            break;
        p += len + 1;
    }
    memcpy(at, &list, sizeof(list));
}

int conf_value_parse(struct arena *a, const struct conf_param *param, const char *name,
    const char *value, void *at, struct err *err)
{
    const char *copy;
    switch (param->type) {
    case CONF_BOOL:
        return conf_value_bool(name, value, at, err);
    case CONF_INT:
        return conf_value_int(param, name, value, at, err);
    case CONF_TIME:
    case CONF_SIZE:
        return conf_value_scaled(param, name, value, at, err);
    case CONF_REAL:
        return conf_value_real(param, name, value, at, err);
    case CONF_ENUM:
        return conf_value_enum(param, name, value, at, err);
    case CONF_FLAGS:
        return conf_value_flags(param, name, value, at, err);
    case CONF_STRING:
        copy = arena_strdup(a, value);
        memcpy(at, &copy, sizeof(copy));
        return 0;
    case CONF_LIST:
        conf_value_list(a, param, value, at);
        return 0;
    }
    UNREACHED();
}

void conf_value_default(struct arena *a, const struct conf_param *param, void *at)
{
    bool is;
    int number;
    int64_t scaled;
    switch (param->type) {
    case CONF_BOOL:
        is = param->def_int != 0;
        memcpy(at, &is, sizeof(is));
        return;
    case CONF_INT:
    case CONF_ENUM:
        number = (int)param->def_int;
        memcpy(at, &number, sizeof(number));
        return;
    case CONF_TIME:
    case CONF_SIZE:
        scaled = param->def_int * conf_unit_factor(param->unit);
        memcpy(at, &scaled, sizeof(scaled));
        return;
    case CONF_REAL:
        memcpy(at, &param->def_real, sizeof(param->def_real));
        return;
    case CONF_STRING:
        memcpy(at, &param->def_text, sizeof(param->def_text));
        return;
    case CONF_FLAGS:
        if (conf_value_flags(param, param->name, param->def_text, at, NULL) == -1)
            UNREACHED();
        return;
    case CONF_LIST:
        conf_value_list(a, param, param->def_text, at);
        return;
    }
    UNREACHED();
}

void conf_value_copy(struct arena *a, const struct conf_param *param, void *at, const void *from)
{
    if (param->type == CONF_STRING) {
        const char *s;
        memcpy(&s, from, sizeof(s));
        s = arena_strdup(a, s);
        memcpy(at, &s, sizeof(s));
    } else if (param->type == CONF_LIST) {
        struct conf_list list;
        memcpy(&list, from, sizeof(list));
        conf_value_list(a, param, list.text, at);
    } else {
        memcpy(at, from, conf_value_size(param));
    }
}

bool conf_value_equal(const struct conf_param *param, const void *a, const void *b)
{
    struct conf_list la;
    struct conf_list lb;
    const char *sa;
    const char *sb;
    switch (param->type) {
    case CONF_STRING:
        memcpy(&sa, a, sizeof(sa));
        memcpy(&sb, b, sizeof(sb));
        return strcmp(sa, sb) == 0;
    case CONF_LIST:
        memcpy(&la, a, sizeof(la));
        memcpy(&lb, b, sizeof(lb));
        if (la.n != lb.n)
            return false;
        for (int i = 0; i < la.n; i++)
            if (strcmp(la.item[i], lb.item[i]) != 0)
                return false;
        return true;
    case CONF_BOOL:
    case CONF_INT:
    case CONF_TIME:
    case CONF_SIZE:
    case CONF_REAL:
    case CONF_ENUM:
    case CONF_FLAGS:
        return memcmp(a, b, conf_value_size(param)) == 0;
    }
    UNREACHED();
}

bool conf_value_is_nothing(const struct conf_param *param, const void *at)
{
    static const char zero[sizeof(struct conf_list)];
    const char *s;
    struct conf_list list;
    if (param->type == CONF_STRING) {
        memcpy(&s, at, sizeof(s));
        return s[0] == '\0';
    }
    if (param->type == CONF_LIST) {
        memcpy(&list, at, sizeof(list));
        return list.n == 0;
    }
    return memcmp(at, zero, conf_value_size(param)) == 0;
}
