/* SPDX-License-Identifier: PostgreSQL
 * sstate_bound.c: calls of set_config() whose arguments are parameters, as drivers and object
 * mappers write them. What a Bind brings is put into the text as literals, and what is followed of
 * such a text is followed. Runs in: workers. Pure.
 *
 * Must never: put in what the server may take for something else. A parameter that is not known to
 * the letter stays one, and its call is not followed. */
#include "config.h"

#include <ctype.h>
#include <string.h>

#include "wire/reader.h"

#include "sstate/sstate_vars_int.h"

/* Calls with parameters beyond these are not followed. */
#define VALUES_MAX 64

enum { OID_BOOL = 16, OID_TEXT = 25, OID_UNKNOWN = 705, OID_VARCHAR = 1043 };

struct value {
    uint32_t type; /* by the Parse; 0: as its place in the text has it */
    bool is_there;
    bool is_null;
    bool is_binary;
    struct slice bytes;
};

struct values {
    bool any; /* no Bind: they may be whatever can be followed */
    struct value v[VALUES_MAX];
};

bool sstate_bound_may_matter(struct slice sql)
{
    return sql.n > 0 && memchr(sql.p, '$', sql.n) != NULL && slice_contains(sql, "set_config");
}

static void read_types(struct values *all, struct slice types)
{
    struct wire_reader r;
    unsigned n;
    unsigned i;

    wire_reader_init(&r, types);
    n = wire_get_u16(&r);
    for (i = 0; i < n && i < VALUES_MAX; i++)
        all->v[i].type = wire_get_u32(&r);
}

/* One format is that of all of them; none is text. */
static unsigned format_of(struct slice formats, unsigned i)
{
    size_t n = formats.n / 2;
    const unsigned char *p = (const unsigned char *)formats.p;

    if (n == 0)
        return 0;
    p += n == 1 ? 0 : 2 * (size_t)i;
    return i < n || n == 1 ? (unsigned)p[0] << 8 | p[1] : UINT16_MAX;
}

static void read_bind(struct values *all, struct slice body)
{
    struct wire_reader r;
    struct slice formats;
    unsigned n;
    unsigned i;

    wire_reader_init(&r, body);
    (void)wire_get_cstr(&r);
    (void)wire_get_cstr(&r);
    formats = wire_get_bytes(&r, 2U * wire_get_u16(&r));
    n = wire_get_u16(&r);
    for (i = 0; i < n && i < VALUES_MAX; i++) {
        struct value *v = &all->v[i];

        v->bytes = wire_get_value(&r, &v->is_null);
        v->is_binary = format_of(formats, i) == 1;
        v->is_there = !r.bad && format_of(formats, i) <= 1;
    }
}

/* NULL: not like a literal of its kind. */
static const struct value *value_of(const struct values *all, unsigned number, bool is_bool)
{
    const struct value *v = number >= 1 && number <= VALUES_MAX ? &all->v[number - 1] : NULL;

    if (v == NULL || (!v->is_there && !all->any))
        return NULL;
    if (v->type == 0 || v->type == OID_UNKNOWN)
        return v;
    if (is_bool)
        return v->type == OID_BOOL ? v : NULL;
    return v->type == OID_TEXT || v->type == OID_VARCHAR ? v : NULL;
}

static void put_word(struct buf *out, const char *word)
{
    buf_put(out, word, strlen(word));
}

static bool is_one_of(struct slice s, const char *const *words)
{
    for (; *words != NULL; words++)
        if (slice_ieq_str(s, *words))
            return true;
    return false;
}

/* Takes a boolean as the server reads it; how it abbreviates need not be known. */
static bool put_bool(struct buf *out, const struct value *v)
{
    static const char *const yes[] = {"t", "true", "1", "on", "y", "yes", NULL};
    static const char *const no[] = {"f", "false", "0", "off", "n", "no", NULL};
    bool is_true = v->is_binary ? v->bytes.n == 1 && *v->bytes.p != 0 : is_one_of(v->bytes, yes);
    bool is_false = v->is_binary ? v->bytes.n == 1 && *v->bytes.p == 0 : is_one_of(v->bytes, no);

    if (v->is_null || is_false)
        put_word(out, "false");
    else if (is_true)
        put_word(out, "true");
    return v->is_null || is_false || is_true;
}

static bool put_text(struct buf *out, const struct value *v)
{
    if (v->is_null) {
        put_word(out, "NULL");
        return true;
    }
    if (v->bytes.n > VARSET_MAX_BYTES ||
        (v->bytes.n > 0 && memchr(v->bytes.p, '\0', v->bytes.n) != NULL))
        return false;
    return varset_quote(out, v->bytes);
}

/* $1, or $1 and a cast that changes nothing; 0: something else. */
static unsigned parameter_of(struct slice arg, bool is_bool)
{
    static const char *const of_text[] = {"text", "varchar", NULL};
    static const char *const of_bool[] = {"bool", "boolean", NULL};
    const char *end = arg.p + arg.n;
    const char *p = arg.p + 1;
    unsigned number = 0;

    if (arg.n < 2 || *arg.p != '$')
        return 0;
    for (; p < end && isdigit((unsigned char)*p) && number <= VALUES_MAX; p++)
        number = 10 * number + (unsigned)(*p - '0');
    p = sstate_skip_space(p, end);
    if (p == end)
        return number;
    if (end - p < 2 || p[0] != ':' || p[1] != ':')
        return 0;
    p = sstate_skip_space(p + 2, end);
    return is_one_of(slice_of(p, (size_t)(end - p)), is_bool ? of_bool : of_text) ? number : 0;
}

static bool put_argument(struct buf *out, const struct values *all, struct slice arg, bool is_bool)
{
    unsigned number = parameter_of(arg, is_bool);
    const struct value *v = number == 0 ? NULL : value_of(all, number, is_bool);

    if (v == NULL)
        return false;
    if (all->any) { /* with `true` there is nothing left to be followed */
        put_word(out, is_bool ? "true" : "'x'");
        return true;
    }
    return is_bool ? put_bool(out, v) : put_text(out, v);
}

/* What is in front of the call, from `from` on, and what of the call needs to be written anew.
 * Returns what has been taken of the text. */
static const char *put_call(
    struct buf *out, const struct values *all, const char *from, struct slice call)
{
    const char *end = call.p + call.n;
    const char *p = memchr(call.p, '(', call.n);
    struct buf value = {0};
    struct slice arg;
    int i;

    for (i = 0; i < 3 && p != NULL; i++) {
        p = sstate_argument(p + 1, end, &arg);
        if (p == NULL || !put_argument(&value, all, arg, i == 2))
            continue;
        buf_put(out, from, (size_t)(arg.p - from));
        buf_put(out, value.data, value.len);
        buf_clear(&value);
        from = arg.p + arg.n;
    }
    buf_free(&value);
    return from;
}

bool sstate_bound_sql(const struct sql_facts *facts, struct slice sql, struct slice types,
    struct slice bind, struct buf *out)
{
    const struct sql_stmt *st = facts->stmts;
    struct values all = {.any = bind.p == NULL};
    const char *from = sql.p;
    uint32_t i;

    if (facts->status != SQL_OK || facts->nstmts != 1)
        return false;
    read_types(&all, types);
    if (bind.p != NULL)
        read_bind(&all, bind);
    for (i = 0; i < st->nfuncs; i++) {
        const struct sql_func *f = &st->funcs[i];

        if (slice_eq_str(f->name, "set_config") && (size_t)f->offset + f->call_len <= sql.n &&
            sql.p + f->offset >= from)
            from = put_call(out, &all, from, slice_of(sql.p + f->offset, f->call_len));
    }
    if (from == sql.p)
        return false;
    buf_put(out, from, (size_t)(sql.p + sql.n - from));
    return true;
}
