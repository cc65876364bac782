/* SPDX-License-Identifier: PostgreSQL
 * facts.c: what the grammar's actions call to note names, calls and settings.
 * Runs in: workers. Names are folded here, only when they become a fact, not when they are scanned.
 * Running out of the arena sets st->no_memory and leaves the fact out; sql_parse then fails. */
#include "config.h"

#include "sqlp_int.h"
#include "base/arena.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define NAME_MAX_BYTES 63

/* Adds one zeroed item of `size` bytes to `v`. */
void *sqlp_push(struct sqlp *st, struct sqlp_vec *v, size_t size)
{
    if (v->count == v->cap) {
        uint32_t cap = v->cap == 0 ? 4 : v->cap * 2;
        char *items = arena_alloc(st->arena, cap * size);

        if (items == NULL) {
            st->no_memory = true;
            return NULL;
        }
        if (v->count != 0)
            memcpy(items, v->items, v->count * size);
        v->items = items;
        v->cap = cap;
    }
    char *item = (char *)v->items + size * v->count++;
    memset(item, 0, size);
    return item;
}

/* Cuts at 63 bytes without splitting a UTF-8 sequence. */
static size_t cut(const char *p, size_t n)
{
    if (n <= NAME_MAX_BYTES)
        return n;
    n = NAME_MAX_BYTES;
    while (n > 0 && ((unsigned char)p[n] & 0xc0) == 0x80)
        n--;
    return n;
}

static struct slice fold_quoted(struct sqlp *st, const struct sql_tok *t)
{
    char *out;
    size_t n = 0;

    if (memchr(t->p, '"', t->n) == NULL)
        return slice_of(t->p, cut(t->p, t->n));
    out = arena_alloc(st->arena, t->n);
    if (out == NULL) {
        st->no_memory = true;
        return slice_of("", 0);
    }
    for (uint32_t i = 0; i < t->n; i++) {
        if (t->p[i] == '"')
            i++;
        out[n++] = t->p[i];
    }
    return slice_of(out, cut(out, n));
}

/* The name a token stands for: folded, unquoted, cut; of a string its value. */
struct slice sqlp_fold(struct sqlp *st, const struct sql_tok *t)
{
    char *out = NULL;

    if (t->flags & TOK_STRING)
        return sqltext_string_value(st, t);
    if (t->flags & TOK_DECODED)
        return slice_of(t->p, cut(t->p, t->n));
    if (t->flags & TOK_QUOTED)
        return fold_quoted(st, t);
    for (uint32_t i = 0; i < t->n; i++) {
        char c = t->p[i];
        if (c < 'A' || c > 'Z')
            continue;
        /* In SJIS, GBK and the like it may be half a character, which is not folded; in others, as
         * LATIN1, the server may fold the byte before, too. */
        if (i > 0 && (t->p[i - 1] & 0x80) != 0 && !st->odd_name)
            st->odd_name = !sqltext_is_utf8(t->p, t->n);
        if (out == NULL) {
            out = arena_alloc(st->arena, t->n);
            if (out == NULL) {
                st->no_memory = true;
                return slice_of("", 0);
            }
            memcpy(out, t->p, t->n);
        }
        out[i] = (char)(c | 0x20);
    }
    return slice_of(out != NULL ? out : t->p, cut(t->p, t->n));
}

/* One more name behind those of the statement, with a NUL between. */
void sqlp_add_name(struct sqlp *st, const struct sql_tok *t)
{
    struct slice more = sqlp_fold(st, t);
    struct slice has = st->cur.name;
    char *out = arena_alloc(st->arena, has.n + more.n + 1);

    if (out == NULL) {
        st->no_memory = true;
        return;
    }
    memcpy(out, has.p, has.n);
    out[has.n] = '\0';
    memcpy(out + has.n + 1, more.p, more.n);
    st->cur.name = slice_of(out, has.n + more.n + 1);
}

/* Whether the token, folded, is `word`. */
bool sqlp_is_word(const struct sql_tok *t, const char *word)
{
    size_t n = strlen(word);

    if (t->n != n)
        return false;
    if (t->flags & (TOK_QUOTED | TOK_DECODED | TOK_STRING))
        return memcmp(t->p, word, n) == 0;
    return strncasecmp(t->p, word, n) == 0;
}

/* UTF8, UTF16 or UTF32; quoted or not, the case does not matter. */
bool sqlp_is_json_encoding(const struct sql_tok *t)
{
    struct slice name = slice_of(t->p, t->n);

    return slice_ieq_str(name, "utf8") || slice_ieq_str(name, "utf16") ||
           slice_ieq_str(name, "utf32");
}

bool sqlp_is_role_option(const struct sql_tok *t)
{
    static const char *const options[] = {"superuser", "nosuperuser", "createrole", "nocreaterole",
        "replication", "noreplication", "createdb", "nocreatedb", "login", "nologin", "bypassrls",
        "nobypassrls", "noinherit"};

    for (size_t i = 0; i < sizeof(options) / sizeof(options[0]); i++) {
        if (sqlp_is_word(t, options[i]))
            return true;
    }
    return false;
}

/* The value of an integer token, with its base and underscores; INT64_MAX when it is larger. */
int64_t sqlp_int(const struct sql_tok *t)
{
    uint32_t i = 0;
    int base = 10;
    uint64_t n = 0;

    if (t->n > 2 && t->p[0] == '0' && t->p[1] > '9') {
        char c = (char)(t->p[1] | 0x20);
        base = c == 'x' ? 16 : c == 'o' ? 8 : c == 'b' ? 2 : 10;
        i = base == 10 ? 0 : 2;
    }
    for (; i < t->n; i++) {
        char c = t->p[i];
        if (c == '_')
            continue;
        n = n * (uint64_t)base + (uint64_t)(c <= '9' ? c - '0' : (c | 0x20) - 'a' + 10);
        if (n > INT64_MAX / 16)
            return INT64_MAX;
    }
    return (int64_t)n;
}

/* Pairs of attributes that exclude each other. */
bool sqlp_attrs_conflict(uint32_t attrs)
{
    static const uint32_t pairs[] = {ATTR_NOT_DEFERRABLE | ATTR_DEFERRABLE,
        ATTR_IMMEDIATE | ATTR_DEFERRED, ATTR_NOT_DEFERRABLE | ATTR_DEFERRED, ATTR_ENFORCEMENT};

    for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++) {
        if ((attrs & pairs[i]) == pairs[i])
            return true;
    }
    return false;
}

static struct sql_tok *keep(struct sqlp *st, const struct sql_tok *t)
{
    struct sql_tok *copy = arena_alloc(st->arena, sizeof(*copy));

    if (copy == NULL)
        st->no_memory = true;
    else
        *copy = *t;
    return copy;
}

/* Makes *t the part of a name that follows `before`. */
void sqlp_link(struct sqlp *st, const struct sql_tok *before, struct sql_tok *t)
{
    t->prev = keep(st, before);
    t->flags |= before->flags & (TOK_STAR | TOK_SUBSCRIPT);
}

/* Puts the first part in front of the chain that ends in *rest. */
void sqlp_join(struct sqlp *st, const struct sql_tok *first, struct sql_tok *rest)
{
    struct sql_tok *t = rest;

    while (t->prev != NULL)
        t = t->prev;
    t->prev = keep(st, first);
}

/* A relation's name has one to three parts, and nothing but names. */
int sqlp_check_relname(struct sqlp *st, const struct sql_tok *t)
{
    int parts = 0;

    if (t->flags & (TOK_STAR | TOK_SUBSCRIPT)) {
        sqlp_reject(st, "syntax error", st->last_off);
        return -1;
    }
    for (; t != NULL && parts < 4; t = t->prev)
        parts++;
    if (parts <= 3)
        return 0;
    sqlp_reject(st, "improper qualified name (too many dotted names)", st->last_off);
    return -1;
}

static const struct sql_tok *first_part(const struct sql_tok *t)
{
    while (t->prev != NULL)
        t = t->prev;
    return t;
}

void sqlp_rel(struct sqlp *st, const struct sql_tok *t, uint32_t flags)
{
    struct sql_table *r = sqlp_push(st, &st->tables, sizeof(*r));

    if (r == NULL)
        return;
    r->name = sqlp_fold(st, t);
    r->offset = t->off;
    r->flags = flags | (t->flags & TOK_ONLY ? SQL_TABLE_ONLY : 0);
    if (t->prev != NULL) {
        r->schema = sqlp_fold(st, t->prev);
        if (t->prev->prev != NULL)
            r->catalog = sqlp_fold(st, t->prev->prev);
        r->offset = first_part(t)->off;
        if ((flags & SQL_TABLE_CREATED) && slice_eq_str(r->schema, "pg_temp")) {
            r->flags |= SQL_TABLE_TEMP;
            st->cur.flags |= SQL_F_TEMP;
        }
    }
    r->len = t->end - r->offset;
}

/* CREATE TYPE, CREATE DOMAIN: noted when the type may be a temporary one. */
void sqlp_new_type(struct sqlp *st, const struct sql_tok *t)
{
    struct slice schema = t->prev == NULL ? slice_of("", 0) : sqlp_fold(st, t->prev);

    if (t->prev != NULL && (schema.n < 7 || memcmp(schema.p, "pg_temp", 7) != 0))
        return;
    st->cur.name = sqlp_fold(st, t);
    if (t->prev != NULL)
        st->cur.flags |= SQL_F_TEMP;
}

static const struct {
    const char *name;
    enum sql_time_kind kind;
} time_functions[] = {
    {"now", SQL_TIME_NOW},
    {"transaction_timestamp", SQL_TIME_NOW},
    {"statement_timestamp", SQL_TIME_STATEMENT},
    {"clock_timestamp", SQL_TIME_CLOCK},
    {"timeofday", SQL_TIME_CLOCK},
};

/* Functions that need a second look: those that tell the time, and those whose literal arguments
 * decide where the statement may go. */
static void note_special(struct sqlp *st, struct sql_func *f)
{
    if (f->schema.n != 0 && !slice_eq_str(f->schema, "pg_catalog"))
        return;
    if (slice_eq_str(f->name, "set_config") || slice_eq_str(f->name, "setval"))
        st->cur.flags |= SQL_F_LITERAL_DEPENDS;
    if (f->nargs != 0)
        return;
    for (size_t i = 0; i < sizeof(time_functions) / sizeof(time_functions[0]); i++) {
        if (!slice_eq_str(f->name, time_functions[i].name))
            continue;
        f->flags |= SQL_FUNC_TIME;
        sqlp_time(st, time_functions[i].kind, f->offset, f->offset + f->call_len);
    }
}

/* Joins the parts of a name with dots. */
static struct slice dotted(struct sqlp *st, const struct sql_tok *t)
{
    size_t n = 0;
    char *out;

    if (t->prev == NULL)
        return sqlp_fold(st, t);
    for (const struct sql_tok *p = t; p != NULL; p = p->prev)
        n += p->n + 1;
    out = arena_alloc(st->arena, n);
    if (out == NULL) {
        st->no_memory = true;
        return slice_of("", 0);
    }
    char *at = out + n;
    for (const struct sql_tok *p = t; p != NULL; p = p->prev) {
        struct slice part = sqlp_fold(st, p);
        at -= part.n;
        memcpy(at, part.p, part.n);
        if (p->prev != NULL)
            *--at = '.';
    }
    return slice_of(at, (size_t)(out + n - at));
}

/* A call whose arguments end at `end`. */
void sqlp_func(
    struct sqlp *st, const struct sql_tok *t, uint32_t nargs, uint32_t flags, uint32_t end)
{
    struct sql_func *f = sqlp_push(st, &st->funcs, sizeof(*f));

    if (f == NULL)
        return;
    f->name = sqlp_fold(st, t);
    f->offset = t->off;
    if (t->prev != NULL) {
        f->schema = sqlp_fold(st, t->prev);
        if (t->prev->prev != NULL)
            f->catalog = dotted(st, t->prev->prev); /* the grammar takes any number of parts */
        f->offset = first_part(t)->off;
    }
    f->len = t->end - f->offset;
    f->call_len = end - f->offset;
    f->nargs = nargs;
    f->flags = flags;
    note_special(st, f);
}

/* Behind a value and a dot: a field of it, or else PostgreSQL calls the function of that name. */
void sqlp_field(struct sqlp *st, const struct sql_tok *t)
{
    if ((t->flags & (TOK_STAR | TOK_SUBSCRIPT)) == 0)
        sqlp_func(st, t, 1, SQL_FUNC_FIELD, t->end);
}

/* name.name: the first may be a function in FROM, and its value a number or a text. */
void sqlp_column(struct sqlp *st, const struct sql_tok *of, const struct sql_tok *t)
{
    struct sqlp_column *c;

    if (t->prev != NULL || (t->flags & (TOK_STAR | TOK_SUBSCRIPT)) != 0)
        return;
    c = sqlp_push(st, &st->columns, sizeof(*c));
    if (c != NULL)
        *c = (struct sqlp_column){.of = *of, .name = *t};
}

/* A function in FROM, by its alias or its own name. */
void sqlp_from_func(struct sqlp *st, const struct sql_tok *func, const struct sql_tok *alias)
{
    if ((alias->p == NULL && (func->flags & FUNC_SYNTAX) != 0) || st->nfrom_funcs >= FROM_FUNCS_MAX)
        st->nfrom_funcs = FROM_FUNCS_ANY;
    else
        st->from_func[st->nfrom_funcs++] = sqlp_fold(st, alias->p != NULL ? alias : func);
}

/* TREAT(value AS type) calls the function that has the type's name. */
void sqlp_treat(struct sqlp *st, const struct sql_tok *type)
{
    struct sql_tok name = *type;

    name.prev = NULL;
    sqlp_field(st, &name);
}

/* A call that is none when the statement turns out to be newer than PostgreSQL 15. */
void sqlp_old_func(struct sqlp *st, const struct sql_tok *t, uint32_t nargs, uint32_t end)
{
    sqlp_func(st, t, nargs, FUNC_OLD, end);
}

/* The call noted last is the procedure of CALL. */
void sqlp_call_procedure(struct sqlp *st)
{
    struct sql_func *f = st->funcs.items;

    if (st->funcs.count > 0)
        f[st->funcs.count - 1].flags |= SQL_FUNC_CALL;
}

void sqlp_time(struct sqlp *st, enum sql_time_kind kind, uint32_t off, uint32_t end)
{
    struct sql_time *t = sqlp_push(st, &st->times, sizeof(*t));

    if (t == NULL)
        return;
    t->kind = kind;
    t->span.offset = off;
    t->span.len = end - off;
}

static void take_value(struct sqlp *st, const struct sql_tok *value)
{
    st->cur.set.how = SQL_SET_DEFAULT;
    st->cur.set.value = slice_of("", 0);
    if (value == NULL || value->end == 0)
        return;
    st->cur.flags |= SQL_F_LITERAL_DEPENDS;
    st->cur.set.how = SQL_SET_VALUE;
    st->cur.set.value = slice_of(st->base + value->off, value->end - value->off);
}

/* SET name = value; `value` is NULL for DEFAULT and RESET. */
void sqlp_set(struct sqlp *st, const struct sql_tok *name, const struct sql_tok *value)
{
    st->cur.set.name = dotted(st, name);
    take_value(st, value);
}

/* The special forms; a `value` made of nothing is DEFAULT. */
void sqlp_set_named(struct sqlp *st, const char *name, const struct sql_tok *value)
{
    st->cur.set.name = slice_of_str(name);
    take_value(st, value);
}

/* EXPLAIN (ANALYZE [value]): anything but a false value counts as true. */
void sqlp_explain_option(struct sqlp *st, const struct sql_tok *name, const struct sql_tok *arg)
{
    struct slice value;

    if (!sqlp_is_word(name, "analyze") && !sqlp_is_word(name, "analyse"))
        return;
    st->cur.flags |= SQL_F_ANALYZE;
    if (!(arg->flags & ARG_GIVEN))
        return;
    st->cur.flags |= SQL_F_LITERAL_DEPENDS;
    value = arg->flags & TOK_STRING ? sqltext_string_value(st, arg) : slice_of(arg->p, arg->n);
    if (slice_ieq_str(value, "false") || slice_ieq_str(value, "off") || slice_eq_str(value, "0"))
        st->cur.flags &= ~SQL_F_ANALYZE;
}

/* The first reason counts. `why` is a literal. */
void sqlp_reject(struct sqlp *st, const char *why, uint32_t offset)
{
    if (st->error != NULL)
        return;
    st->error = why;
    st->error_offset = offset;
}
