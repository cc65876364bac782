/* SPDX-License-Identifier: PostgreSQL
 * route_check.c: what the catalogue says of the functions, operators and tables of a statement.
 * Runs in: workers. Everyday functions of pg_catalog are answered from a list, as pg_catalog is
 * searched first; where that may not hold (the session has set search_path, or the database has
 * volatile functions called like built-in ones) the catalogue is asked for those, too. */
#include "config.h"

#include "route_int.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/hot.h"
#include "route/route_marks.h"
#include "route/route_trace.h"

enum builtin { BUILTIN_NO, READS, WRITES };

struct builtin_name {
    const char *name;
    uint8_t len;
    uint8_t what; /* enum builtin */
};

static const struct builtin_name builtin_table[] = {
#define ROUTE_BUILTIN(name, what) {name, sizeof(name) - 1, what},
#include "route_builtin.def"
#undef ROUTE_BUILTIN
};

static int compare_builtin(const void *key, const void *item)
{
    const struct slice *k = key;
    const struct builtin_name *b = item;
    size_t n = b->len;
    int c = memcmp(k->p, b->name, k->n < n ? k->n : n);

    return c != 0 ? c : (k->n > n) - (k->n < n);
}

static enum builtin builtin_of(struct slice name)
{
    const struct builtin_name *b = bsearch(&name, builtin_table,
        sizeof builtin_table / sizeof builtin_table[0], sizeof builtin_table[0], compare_builtin);

    return b == NULL ? BUILTIN_NO : (enum builtin)b->what;
}

static bool question_eq(const struct route_question *a, const struct route_question *b)
{
    return a->kind == b->kind && a->nargs == b->nargs && slice_eq(a->schema, b->schema) &&
           slice_eq(a->name, b->name);
}

/* Looks an answer up, or puts the question on the list. Returns 0 or -1. */
WARM static int answer(struct route_case *c, const struct route_question *q, uint32_t *bits)
{
    struct route_decision *out = c->out;
    unsigned i;

    *bits = 0;
    if (++c->nlookups > ROUTE_MAX_LOOKUPS)
        return -1;
    if (c->in->lookup != NULL && c->in->lookup(c->in->lookup_ctx, q, bits) == 0)
        return 0;
    for (i = 0; i < out->nquestions; i++)
        if (question_eq(&out->question[i], q))
            return -1;
    out->must_ask = true;
    if (out->nquestions < ROUTE_MAX_QUESTIONS)
        out->question[out->nquestions++] = *q; /* the rest is asked for in the next round */
    return -1;
}

static void writes(struct route_case *c, enum route_reason reason)
{
    c->out->class = ROUTE_PRIMARY;
    c->out->reason = reason;
    c->out->is_write = true;
}

/* The lists of functions: 1 writes, 0 reads, -1 when the lists do not say. */
static int by_lists(const struct route_rules *r, const struct sql_func *f)
{
    char full[160];
    struct slice name = f->name;

    if (r == NULL || (r->read_functions.n == 0 && r->write_functions.n == 0))
        return -1;
    if ((f->flags & SQL_FUNC_FIELD) != 0 && r->read_functions.n != 0)
        return -1; /* most are fields */
    if (f->schema.n != 0 && f->schema.n + f->name.n + 1 <= sizeof full) {
        memcpy(full, f->schema.p, f->schema.n);
        full[f->schema.n] = '.';
        memcpy(full + f->schema.n + 1, f->name.p, f->name.n);
        name = slice_of(full, f->schema.n + 1 + f->name.n);
    }
    if (r->read_functions.n != 0)
        return route_patterns_match(&r->read_functions, name) ? 0 : 1;
    return route_patterns_match(&r->write_functions, name) ? 1 : 0;
}

/* What has to be looked for in this database; 0 when that is not known yet (and asked). */
static uint32_t database_bits(struct route_case *c)
{
    struct route_question q = {
        .kind = ROUTE_Q_DATABASE, .schema = slice_of("", 0), .name = slice_of("", 0)};

    if (!c->has_database_bits) {
        c->has_database_bits = true;
        if (answer(c, &q, &c->database_bits) == -1)
            c->database_bits = 0;
    }
    return c->database_bits;
}

bool route_check_serializable(struct route_case *c)
{
    return (database_bits(c) & ROUTE_DB_SERIALIZABLE) != 0;
}

bool route_check_repeatable(struct route_case *c)
{
    return (database_bits(c) & ROUTE_DB_REPEATABLE) != 0;
}

static bool is_pg_catalog(struct slice schema)
{
    return slice_eq_str(schema, "pg_catalog");
}

static void runs_code(const struct route_case *c, enum route_code code)
{
    if (c->out->runs_code < code)
        c->out->runs_code = (uint8_t)code;
}

/* True when the function writes. */
static bool check_function(struct route_case *c, const struct sql_func *f)
{
    struct route_question q = {
        .kind = ROUTE_Q_FUNCTION, .schema = f->schema, .name = f->name, .nargs = f->nargs};
    enum builtin b = BUILTIN_NO;
    int listed = by_lists(c->in->rules, f);
    uint32_t bits;

    if (listed != -1) {
        if (listed == 1)
            writes(c, ROUTE_R_WRITE_FUNCTION);
        return listed == 1;
    }
    if (is_pg_catalog(f->schema) || f->schema.n == 0)
        b = builtin_of(f->name);
    if (b == WRITES) { /* not runs_code: what built-in functions do is known by their names */
        writes(c, ROUTE_R_VOLATILE_FUNCTION);
        return true;
    }
    if (b == READS && (f->schema.n != 0 || (!c->in->session->search_path_changed &&
                                               !(database_bits(c) & ROUTE_DB_SHADOW))))
        return false;
    if (answer(c, &q, &bits) == -1) {
        c->unknown_function = true;
        return false;
    }
    if (bits & ROUTE_FUNC_VOLATILE)
        runs_code(c, (bits & ROUTE_FUNC_SETS) != 0 ? ROUTE_CODE_SETS : ROUTE_CODE_RUNS);
    if ((f->flags & SQL_FUNC_FIELD) != 0)
        bits &= ~ROUTE_FUNC_MISSING; /* it is a field */
    if (bits & (ROUTE_FUNC_VOLATILE | ROUTE_FUNC_MISSING))
        writes(
            c, bits & ROUTE_FUNC_VOLATILE ? ROUTE_R_VOLATILE_FUNCTION : ROUTE_R_MISSING_FUNCTION);
    return (bits & (ROUTE_FUNC_VOLATILE | ROUTE_FUNC_MISSING)) != 0;
}

static bool is_made(const struct sql_func *f)
{
    return (f->flags & SQL_FUNC_FIELD) == 0 && !is_pg_catalog(f->schema) &&
           (f->schema.n != 0 || builtin_of(f->name) == BUILTIN_NO);
}

bool route_runs_made_code(const struct sql_facts *facts)
{
    uint32_t i;
    uint32_t j;

    for (i = 0; i < facts->nstmts; i++) {
        const struct sql_stmt *s = &facts->stmts[i];

        if (s->kind == SQL_CALL || s->kind == SQL_DO)
            return true;
        for (j = 0; j < s->nfuncs; j++)
            if (is_made(&s->funcs[j]))
                return true;
    }
    return false;
}

/* False when it calls a volatile function. */
static bool check_name(struct route_case *c, enum route_question_kind kind, struct slice name)
{
    struct route_question q = {.kind = kind, .schema = slice_of("", 0), .name = name};
    uint32_t bits;

    if (answer(c, &q, &bits) == -1) {
        c->unknown_function = true;
        return true;
    }
    if (!(bits & ROUTE_FUNC_VOLATILE))
        return true;
    writes(c, ROUTE_R_VOLATILE_FUNCTION);
    runs_code(c, ROUTE_CODE_SETS);
    return false;
}

/* Operators that are not written. */
static const struct {
    const char *word;
    const char *op[2];
} implied[] = {
    {"in", {"=", "<>"}},
    {"using", {"="}},
    {"natural", {"="}},
    {"nullif", {"="}},
    {"case", {"="}},
    {"distinct", {"="}},
    {"like", {"~~", "!~~"}},
    {"ilike", {"~~*", "!~~*"}},
    {"similar", {"~", "!~"}},
    {"between", {"<=", ">="}},
};

static bool check_implied(struct route_case *c, struct slice word)
{
    unsigned i;
    unsigned k;

    for (i = 0; i < sizeof implied / sizeof implied[0]; i++) {
        if (strlen(implied[i].word) != word.n || strncasecmp(implied[i].word, word.p, word.n) != 0)
            continue;
        for (k = 0; k < 2 && implied[i].op[k] != NULL; k++)
            if (!check_name(c, ROUTE_Q_OPERATOR, slice_of_str(implied[i].op[k])))
                return false;
    }
    return true;
}

static bool check_token(void *ctx, const struct route_token *t)
{
    struct route_case *c = ctx;
    uint32_t bits = database_bits(c);

    if (t->is_operator)
        return !(bits & ROUTE_DB_OPERATOR) || check_name(c, ROUTE_Q_OPERATOR, t->text);
    if ((bits & ROUTE_DB_WORD) && t->is_behind && !check_name(c, ROUTE_Q_WORD, t->text))
        return false;
    return !(bits & ROUTE_DB_OPERATOR) || t->is_quoted || check_implied(c, t->text);
}

WARM void route_check_functions(
    struct route_case *c, struct slice text, const struct sql_stmt *stmt)
{
    const struct route_rules *r = c->in->rules;
    uint32_t i;

    for (i = 0; i < stmt->nfuncs; i++)
        if (check_function(c, &stmt->funcs[i]))
            return;
    if (r != NULL && (r->read_functions.n != 0 || r->write_functions.n != 0))
        return; /* the lists speak of all functions that matter */
    if (database_bits(c) & (ROUTE_DB_OPERATOR | ROUTE_DB_WORD))
        route_text_tokens(text, check_token, c);
}

static bool is_temp_schema(struct slice schema)
{
    return schema.n >= 7 && memcmp(schema.p, "pg_temp", 7) == 0 &&
           (schema.n == 7 || schema.p[7] == '_');
}

static bool has_temp(const struct route_session *s)
{
    return (s->ties & ROUTE_TIE_TEMP) != 0 || route_trace_has_temp(s->trace);
}

/* The text may name a temporary table in a string, or ask where names are looked for. */
static bool may_name_temp(struct slice text, const struct sql_stmt *stmt)
{
    static const char *const begin[] = {
        "to_reg", "has_", "pg_", "current_schemas", "row_security_"};
    uint32_t i;
    unsigned k;

    for (i = 0; i < stmt->nfuncs; i++)
        for (k = 0; k < sizeof begin / sizeof begin[0]; k++)
            if (stmt->funcs[i].name.n >= strlen(begin[k]) &&
                memcmp(stmt->funcs[i].name.p, begin[k], strlen(begin[k])) == 0)
                return true;
    return route_text_has(text, "regclass") || route_text_has(text, "regtype");
}

/* A type of that name may be a temporary one: a table's rows, or what CREATE TYPE made. */
static bool names_temp_type(const struct route_session *s, struct slice text)
{
    return route_trace_names_temp(s->trace, text) || route_text_has(text, "pg_temp");
}

/* What the session itself knows of its temporary tables. */
static bool is_known_temp(const struct route_session *s, const struct sql_table *t)
{
    if (is_temp_schema(t->schema))
        return true;
    if (!has_temp(s))
        return false;
    if (s->trace != NULL)
        return route_trace_is_temp(s->trace, t->schema, t->name);
    return t->schema.n == 0;
}

static bool asks_for_temp(enum conf_temp_table_check mode)
{
    return mode == CONF_TEMP_CATALOG;
}

static enum route_reason reason_of_bits(const struct route_case *c, uint32_t bits)
{
    const struct conf *conf = c->in->conf;
    bool unlogged =
        c->in->set != NULL ? c->in->set->check_unlogged_table : conf->check_unlogged_table;

    if ((bits & ROUTE_REL_TEMP) && asks_for_temp(conf->check_temp_table))
        return ROUTE_R_TEMP_TABLE;
    if ((bits & ROUTE_REL_UNLOGGED) && unlogged)
        return ROUTE_R_UNLOGGED_TABLE;
    if (bits & ROUTE_REL_VOLATILE)
        return ROUTE_R_VOLATILE_VIEW;
    if (bits & ROUTE_REL_SEQUENCE)
        return ROUTE_R_SEQUENCE;
    if (bits & ROUTE_REL_CATALOG)
        return ROUTE_R_CATALOG;
    if (bits & ROUTE_REL_MISSING)
        return ROUTE_R_MISSING_TABLE;
    return ROUTE_R_NONE;
}

static enum route_reason was_written(
    const struct route_case *c, const struct sql_table *t, enum route_reason reason)
{
    c->out->written = t->name;
    return reason;
}

/* The reasons that need no catalogue. */
static enum route_reason reason_by_session(const struct route_case *c, const struct sql_table *t)
{
    const struct conf *conf = c->in->conf;
    const struct route_session *s = c->in->session;
    enum conf_write_stickiness mode = conf->disable_load_balance_on_write;

    if (is_pg_catalog(t->schema) || slice_eq_str(t->schema, "information_schema") ||
        slice_eq_str(t->schema, "pg_toast"))
        return ROUTE_R_CATALOG;
    if ((asks_for_temp(conf->check_temp_table) || conf->check_temp_table == CONF_TEMP_TRACE) &&
        is_known_temp(s, t))
        return ROUTE_R_TEMP_TABLE;
    if ((mode == CONF_WRITE_DML_ADAPTIVE || mode == CONF_WRITE_DML_ADAPTIVE_GLOBAL) &&
        route_in_tx(s) && !s->tx_read_only && route_trace_wrote(s->trace, t->schema, t->name))
        return was_written(c, t, ROUTE_R_TABLE_WRITTEN_IN_TX);
    return ROUTE_R_NONE;
}

/* How long a write counts for this read: by the lag of the session's node, or, where that is drawn
 * behind this, of whom it may be. One that lags more than is allowed gets none. */
static int64_t marks_ttl_us(const struct route_input *in)
{
    int node = in->session->balance_node;
    int64_t longest_us = route_marks_ttl_us(in->conf, in->view, VIEW_NO_NODE);
    int64_t us;

    if (!in->conf->statement_level_load_balance && route_is_candidate(in->view, node) &&
        !route_node_lags(in->conf, in->view, node))
        return route_marks_ttl_us(in->conf, in->view, node);
    for (node = 0; node < in->view->nnodes; node++) {
        us = route_marks_ttl_us(in->conf, in->view, node);
        if (us > longest_us && route_is_candidate(in->view, node) &&
            !route_node_lags(in->conf, in->view, node))
            longest_us = us;
    }
    return longest_us;
}

/* dml_adaptive_global: has anybody written the table lately? */
static enum route_reason reason_by_marks(struct route_case *c, const struct sql_table *t)
{
    const struct route_input *in = c->in;
    struct route_question q = {.kind = ROUTE_Q_OID, .schema = t->schema, .name = t->name};
    uint32_t oid;
    int64_t ttl_us;

    if (in->nmarks == 0)
        return was_written(c, t, ROUTE_R_TABLE_WRITTEN_LATELY);
    if (answer(c, &q, &oid) == -1)
        return ROUTE_R_NONE;
    if (oid == 0)
        return was_written(c, t, ROUTE_R_TABLE_WRITTEN_LATELY);
    ttl_us = marks_ttl_us(in);
    if (route_marks_is_fresh(in->marks, in->nmarks, in->conf,
            route_marks_key(in->who.database, oid), in->session->now_us, ttl_us) ||
        route_marks_is_fresh(in->marks, in->nmarks, in->conf, route_marks_key(in->who.database, 0),
            in->session->now_us, ttl_us))
        return was_written(c, t, ROUTE_R_TABLE_WRITTEN_LATELY);
    return ROUTE_R_NONE;
}

void route_check_views(struct route_case *c, const struct sql_stmt *stmt)
{
    uint32_t bits;
    uint32_t i;

    for (i = 0; i < stmt->ntables; i++) {
        struct route_question q = {.kind = ROUTE_Q_RELATION,
            .schema = stmt->tables[i].schema,
            .name = stmt->tables[i].name};

        if (answer(c, &q, &bits) == -1)
            c->unknown_relation = true;
        else if ((bits & ROUTE_REL_VOLATILE) != 0)
            runs_code(c, ROUTE_CODE_SETS);
    }
}

/* Denies for a reason. Of several the first counts, but none that the node of a read-only
 * transaction does not care for stands in front of one that it does. */
static void deny(struct route_case *c, enum route_reason reason)
{
    if (c->denied == ROUTE_R_NONE || (route_is_soft(c->denied) && !route_is_soft(reason)))
        c->denied = reason;
}

/* EXPLAIN alone reads nothing. */
static bool runs_views(const struct route_case *c)
{
    return c->stmt->kind != SQL_EXPLAIN || c->runs_functions;
}

static enum route_reason check_relation(struct route_case *c, const struct sql_table *t)
{
    struct route_question q = {.kind = ROUTE_Q_RELATION, .schema = t->schema, .name = t->name};
    enum route_reason reason = reason_by_session(c, t);
    uint32_t bits;

    if (reason != ROUTE_R_NONE)
        return reason;
    if (answer(c, &q, &bits) == -1) {
        c->unknown_relation = true;
    } else {
        if (!runs_views(c))
            bits &= ~ROUTE_REL_VOLATILE;
        reason = reason_of_bits(c, bits);
        c->reads_volatile = c->reads_volatile || (bits & ROUTE_REL_VOLATILE) != 0;
    }
    if (reason == ROUTE_R_NONE &&
        c->in->conf->disable_load_balance_on_write == CONF_WRITE_DML_ADAPTIVE_GLOBAL)
        reason = reason_by_marks(c, t);
    return reason;
}

WARM void route_check_relations(
    struct route_case *c, struct slice text, const struct sql_stmt *stmt)
{
    enum conf_temp_table_check mode = c->in->conf->check_temp_table;
    uint32_t i;

    if ((asks_for_temp(mode) || mode == CONF_TEMP_TRACE) && has_temp(c->in->session) &&
        (may_name_temp(text, stmt) || names_temp_type(c->in->session, text)))
        deny(c, ROUTE_R_TEMP_TABLE);
    for (i = 0; i < stmt->ntables; i++)
        deny(c, check_relation(c, &stmt->tables[i]));
    if (c->reads_volatile) {
        writes(c, ROUTE_R_VOLATILE_VIEW);
        runs_code(c, ROUTE_CODE_SETS);
    }
}
