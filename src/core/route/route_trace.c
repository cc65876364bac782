/* SPDX-License-Identifier: PostgreSQL
 * route_trace.c: tables a session wrote in its transaction, and its temporary tables and types.
 * Runs in: workers. A list is enough: transactions name few tables; after TRACE_MAX names the trace
 * says yes to every question, which costs balance and nothing else. */
#include "config.h"

#include "base/hot.h"
#include "route/route_trace.h"

#include "base/mem.h"
#include "route_int.h"

#define TRACE_MAX 256

enum name_state {
    NAME_WRITTEN,     /* a table written in this transaction */
    NAME_TEMP,        /* a temporary table or type */
    NAME_TEMP_NEW,    /* made in this transaction */
    NAME_TEMP_DROPPED /* dropped in this transaction */
};

struct trace_name {
    enum name_state state;
    uint8_t schema_len;
    uint8_t name_len;
    char text[128]; /* schema and name, as the parser gives them: at most 63 bytes each */
};

struct route_trace {
    struct trace_name *name;
    unsigned n;
    unsigned cap;
    bool is_written_full; /* more tables were written than are kept, or nobody knows which */
    bool is_temp_full;
};

static struct slice schema_of(const struct trace_name *t)
{
    return slice_of(t->text, t->schema_len);
}

static struct slice name_of(const struct trace_name *t)
{
    return slice_of(t->text + t->schema_len, t->name_len);
}

static bool is_same(const struct trace_name *t, struct slice schema, struct slice name)
{
    return slice_eq(name_of(t), name) &&
           (t->schema_len == 0 || schema.n == 0 || slice_eq(schema_of(t), schema));
}

static bool is_pg_temp(struct slice schema)
{
    return schema.n >= 7 && memcmp(schema.p, "pg_temp", 7) == 0;
}

WARM static void add(
    struct route_trace **tp, enum name_state state, struct slice schema, struct slice name)
{
    struct route_trace *t = *tp;
    struct trace_name *slot;
    unsigned i;

    if (t == NULL)
        t = *tp = mem_alloc_zero(sizeof *t);
    for (i = 0; i < t->n; i++)
        if (t->name[i].state == state && slice_eq(name_of(&t->name[i]), name) &&
            slice_eq(schema_of(&t->name[i]), schema))
            return;
    if (t->n == TRACE_MAX || schema.n + name.n > sizeof slot->text) {
        if (state == NAME_WRITTEN)
            t->is_written_full = true;
        else
            t->is_temp_full = true;
        return;
    }
    if (t->n == t->cap) {
        t->cap = t->cap == 0 ? 4 : t->cap * 2;
        t->name = mem_resize(t->name, t->cap * sizeof t->name[0]);
    }
    slot = &t->name[t->n++];
    slot->state = state;
    slot->schema_len = (uint8_t)schema.n;
    slot->name_len = (uint8_t)name.n;
    if (schema.n > 0)
        memcpy(slot->text, schema.p, schema.n);
    memcpy(slot->text + schema.n, name.p, name.n);
}

static void remove_at(struct route_trace *t, unsigned i)
{
    t->name[i] = t->name[--t->n];
}

/* A write to `name`, and to what depends on it. */
WARM static void note_write(struct route_trace **tp, const struct route_rules *rules,
    struct slice schema, struct slice name, bool is_function)
{
    int i;

    if (!is_function)
        add(tp, NAME_WRITTEN, schema, name);
    for (i = 0; rules != NULL && i < rules->nrelations; i++) {
        const struct route_relation *r = &rules->relation[i];
        if (r->from_function == is_function && slice_eq(r->from, name) &&
            (r->from_schema.n == 0 || schema.n == 0 || slice_eq(r->from_schema, schema)))
            add(tp, NAME_WRITTEN, r->to_schema, r->to);
    }
}

static bool is_read_kind(const struct sql_stmt *s)
{
    return (s->flags & SQL_F_READ_ONLY) != 0 || s->kind == SQL_DECLARE || s->kind == SQL_LOCK;
}

static void note_writes(
    struct route_trace **tp, const struct route_rules *rules, const struct sql_stmt *s)
{
    const uint32_t written = SQL_TABLE_TARGET | SQL_TABLE_CREATED | SQL_TABLE_DDL;
    uint32_t i;

    for (i = 0; i < s->ntables && !is_read_kind(s); i++)
        if (s->tables[i].flags & written)
            note_write(tp, rules, s->tables[i].schema, s->tables[i].name, false);
    if (rules == NULL || rules->nrelations == 0)
        return;
    for (i = 0; i < s->nfuncs; i++)
        note_write(tp, rules, s->funcs[i].schema, s->funcs[i].name, true);
}

static void note_temps(struct route_trace **tp, const struct sql_stmt *s, bool in_tx)
{
    uint32_t i;

    for (i = 0; i < s->ntables; i++) {
        const struct sql_table *t = &s->tables[i];
        if (!(t->flags & SQL_TABLE_CREATED))
            continue;
        if ((t->flags & SQL_TABLE_TEMP) || (s->flags & SQL_F_TEMP) || is_pg_temp(t->schema))
            add(tp, in_tx ? NAME_TEMP_NEW : NAME_TEMP, slice_of("", 0), t->name);
    }
    /* A type without a schema is temporary when search_path says so: what it says here is not
     * looked for, as few sessions make types. */
    if (s->verb == SQL_VERB_CREATE && s->name.n > 0)
        add(tp, in_tx ? NAME_TEMP_NEW : NAME_TEMP, slice_of("", 0), s->name);
}

static bool word_at(struct slice s, size_t *at, const char *word)
{
    size_t n = strlen(word);
    size_t i = *at;

    while (i < s.n && (s.p[i] == ' ' || (s.p[i] >= '\t' && s.p[i] <= '\r')))
        i++;
    if (s.n - i < n || strncasecmp(s.p + i, word, n) != 0)
        return false;
    *at = i + n;
    return true;
}

/* The next, perhaps dotted name: its last part, folded, in `out` (of 64). False at the end. */
static bool next_name(struct slice s, size_t *at, char *out, size_t *n, bool *in_temp)
{
    size_t i = *at;
    bool quoted = false;

    *n = 0;
    *in_temp = true;
    while (i < s.n && (s.p[i] == ' ' || s.p[i] == ',' || (s.p[i] >= '\t' && s.p[i] <= '\r')))
        i++;
    for (; i < s.n; i++) {
        char ch = s.p[i];
        if (ch == '"') {
            quoted = !quoted;
        } else if (!quoted && ch == '.') {
            *in_temp = is_pg_temp(slice_of(out, *n));
            *n = 0;
        } else if (!quoted && (ch == ' ' || ch == ',' || ch == ';' || (ch >= '\t' && ch <= '\r'))) {
            break;
        } else if (*n < 63) {
            out[(*n)++] = !quoted && ch >= 'A' && ch <= 'Z' ? (char)(ch - 'A' + 'a') : ch;
        }
    }
    *at = i;
    return *n > 0;
}

static void drop_temp(struct route_trace *t, struct slice name, bool in_tx)
{
    unsigned i;

    for (i = 0; i < t->n; i++) {
        if (t->name[i].state == NAME_WRITTEN || !slice_eq(name_of(&t->name[i]), name))
            continue;
        /* One made in this transaction stays until its end: a rollback to a savepoint may bring
         * it back. */
        if (!in_tx)
            remove_at(t, i);
        else if (t->name[i].state == NAME_TEMP)
            t->name[i].state = NAME_TEMP_DROPPED;
        return;
    }
}

/* The parser does not list what DROP names. Names with comments or doubled quotes between them are
 * not understood and stay: that costs balance only. */
static void note_drop(struct route_trace *t, struct slice text, bool in_tx)
{
    char name[64];
    size_t n;
    size_t at = 0;
    bool in_temp;

    if (!word_at(text, &at, "drop") || !word_at(text, &at, "table"))
        return;
    if (word_at(text, &at, "if ") && !word_at(text, &at, "exists"))
        return;
    while (next_name(text, &at, name, &n, &in_temp))
        if (in_temp)
            drop_temp(t, slice_of(name, n), in_tx);
}

WARM void route_trace_note(struct route_trace **tp, const struct route_rules *rules,
    struct slice text, const struct sql_stmt *s, bool in_tx)
{
    if (in_tx)
        note_writes(tp, rules, s);
    note_temps(tp, s, in_tx);
    if (*tp != NULL && s->kind == SQL_DDL && s->verb == SQL_VERB_DROP)
        note_drop(*tp, text, in_tx);
    if (s->verb == SQL_VERB_ALTER && route_trace_has_temp(*tp) && route_text_has(text, "rename"))
        (*tp)->is_temp_full = true; /* perhaps one of them */
}

void route_trace_note_unnamed(struct route_trace **tp)
{
    if (*tp == NULL)
        *tp = mem_alloc_zero(sizeof **tp);
    (*tp)->is_written_full = true;
}

/* Ends the transaction: each name is kept with its new state, or goes. */
static void end_tx(struct route_trace *t, bool is_commit)
{
    unsigned i = 0;

    if (t == NULL)
        return;
    t->is_written_full = false;
    while (i < t->n) {
        enum name_state *state = &t->name[i].state;
        bool goes =
            *state == NAME_WRITTEN || *state == (is_commit ? NAME_TEMP_DROPPED : NAME_TEMP_NEW);
        if (goes) {
            remove_at(t, i);
            continue;
        }
        *state = NAME_TEMP;
        i++;
    }
}

WARM void route_trace_on_commit(struct route_trace *t)
{
    end_tx(t, true);
}

void route_trace_on_rollback(struct route_trace *t)
{
    end_tx(t, false);
}

void route_trace_on_rollback_to(struct route_trace *t)
{
    unsigned i;

    for (i = 0; t != NULL && i < t->n; i++)
        if (t->name[i].state == NAME_TEMP_DROPPED)
            t->name[i].state = NAME_TEMP;
}

void route_trace_on_discard(struct route_trace *t)
{
    unsigned i = 0;

    if (t == NULL)
        return;
    t->is_temp_full = false;
    while (i < t->n) {
        if (t->name[i].state == NAME_WRITTEN)
            i++;
        else
            remove_at(t, i);
    }
}

bool route_trace_wrote(const struct route_trace *t, struct slice schema, struct slice name)
{
    unsigned i;

    if (t == NULL)
        return false;
    if (t->is_written_full)
        return true;
    for (i = 0; i < t->n; i++)
        if (t->name[i].state == NAME_WRITTEN && is_same(&t->name[i], schema, name))
            return true;
    return false;
}

bool route_trace_is_temp(const struct route_trace *t, struct slice schema, struct slice name)
{
    unsigned i;

    if (t == NULL || (schema.n != 0 && !is_pg_temp(schema)))
        return false;
    if (t->is_temp_full)
        return true;
    for (i = 0; i < t->n; i++)
        if ((t->name[i].state == NAME_TEMP || t->name[i].state == NAME_TEMP_NEW) &&
            slice_eq(name_of(&t->name[i]), name))
            return true;
    return false;
}

struct name_search {
    const struct route_trace *trace;
    const char *text;
    bool found;
};

/* A name of another schema, or of a column: pg_temp itself is looked for elsewhere. */
static bool is_behind_dot(const struct name_search *search, const struct route_token *token)
{
    const char *p = token->text.p - (token->is_quoted ? 1 : 0);

    return p > search->text && p[-1] == '.';
}

/* A token as a name: its case does not matter here, and arrays begin with an underscore. */
static bool is_called(const struct trace_name *t, struct slice token)
{
    struct slice name = name_of(t);

    if (token.n > name.n && token.p[0] == '_')
        token = slice_of(token.p + 1, token.n - 1);
    if (token.n > name.n && name.n >= 60) /* cut, perhaps within a character */
        token.n = name.n;
    return token.n == name.n && strncasecmp(token.p, name.p, name.n) == 0;
}

static bool search_token(void *ctx, const struct route_token *token)
{
    struct name_search *search = ctx;
    const struct route_trace *t = search->trace;
    unsigned i;

    if (token->is_operator || is_behind_dot(search, token))
        return true;
    /* Written with escapes, or with a quote in it. */
    search->found = token->is_quoted && (memchr(token->text.p, '\\', token->text.n) != NULL ||
                                            memchr(token->text.p, '"', token->text.n) != NULL);
    for (i = 0; i < t->n && !search->found; i++)
        search->found = t->name[i].state != NAME_WRITTEN && is_called(&t->name[i], token->text);
    return !search->found;
}

bool route_trace_names_temp(const struct route_trace *t, struct slice text)
{
    struct name_search search = {.trace = t, .text = text.p, .found = t != NULL && t->is_temp_full};

    if (t != NULL && !search.found && route_trace_has_temp(t))
        route_text_tokens(text, search_token, &search);
    return search.found;
}

bool route_trace_has_temp(const struct route_trace *t)
{
    unsigned i;

    if (t == NULL)
        return false;
    for (i = 0; i < t->n; i++)
        if (t->name[i].state != NAME_WRITTEN)
            return true;
    return t->is_temp_full;
}

void route_trace_free(struct route_trace **tp)
{
    if (*tp != NULL)
        mem_free((*tp)->name);
    mem_free(*tp);
    *tp = NULL;
}
