/* SPDX-License-Identifier: PostgreSQL
 * rewrite_calls.c: calls whose results are another on each node. Runs in: workers. Pure. */
#include "config.h"

#include "base/arena.h"
#include "replicate/locks.h"

#include "rewrite_int.h"

#include <string.h>

static const struct {
    const char *name;
    const char *type; /* of the result; NULL: it cannot stand as a constant */
} calls[] = {
    {"random", "double precision"},
    {"random_normal", "double precision"},
    {"gen_random_uuid", "uuid"},
    {"uuid_generate_v1", "uuid"},
    {"uuid_generate_v1mc", "uuid"},
    {"uuid_generate_v4", "uuid"},
    {"uuidv4", "uuid"},
    {"uuidv7", "uuid"},
    {"gen_random_bytes", "bytea"},
    {"gen_salt", "text"}, /* pgcrypto */
    {"pgp_sym_encrypt", "bytea"},
    {"pgp_sym_encrypt_bytea", "bytea"},
    {"pgp_pub_encrypt", "bytea"},
    {"pgp_pub_encrypt_bytea", "bytea"},
    {"txid_current", "bigint"},
    {"pg_backend_pid", "integer"},
    {"inet_server_addr", "inet"},
    {"inet_server_port", "integer"},
    {"inet_client_port", "integer"},
    {"pg_current_xact_id", NULL},
    {"pg_current_snapshot", NULL},
    {"txid_current_snapshot", NULL},
    {"pg_current_wal_lsn", "pg_lsn"},
    {"pg_current_wal_insert_lsn", "pg_lsn"},
    {"pg_postmaster_start_time", "timestamp with time zone"},
    {"array_shuffle", NULL},
    {"array_sample", NULL},
};

const char *repl_call_name(unsigned i)
{
    return i < sizeof calls / sizeof calls[0] ? calls[i].name : NULL;
}

enum repl_call repl_call_kind(const struct sql_func *f, const char **type)
{
    *type = NULL;
    if (slice_eq_str(f->name, "nextval") || slice_eq_str(f->name, "setval"))
        return REPL_CALL_SERIAL;
    for (unsigned i = 0; i < sizeof calls / sizeof calls[0]; i++) {
        if (!slice_eq_str(f->name, calls[i].name))
            continue;
        if ((f->flags & SQL_FUNC_FIELD) != 0)
            return REPL_CALL_OTHER; /* there are no arguments to ask with */
        *type = calls[i].type;
        return calls[i].type == NULL ? REPL_CALL_OTHER : REPL_CALL_VALUE;
    }
    return REPL_CALL_SAME;
}

static bool is_within(const struct sql_func *f, const struct sql_span *spans, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        if (f->offset >= spans[i].offset &&
            f->offset + f->call_len <= spans[i].offset + spans[i].len)
            return true;
    }
    return false;
}

/* The call's arguments are constants: it can be asked for by itself. */
static bool has_plain_args(const struct repl_work *w, const struct sql_func *f)
{
    uint32_t end = repl_token_at(w, f->offset + f->call_len);

    for (uint32_t i = repl_token_at(w, f->offset + f->len); i < end; i++) {
        if (w->tok[i].kind == SQL_TOKEN_WORD || w->tok[i].kind == SQL_TOKEN_NAME ||
            w->tok[i].kind == SQL_TOKEN_PARAM)
            return false;
    }
    return true;
}

/* Within a list of values: not in a query there, which may have any number of rows. */
static bool is_in_query(const struct repl_work *w, const struct sql_func *f)
{
    uint32_t depth = 0;

    for (uint32_t i = repl_token_at(w, f->offset); i-- > w->from;) {
        if (repl_is_sign(w, i, ')'))
            depth++;
        else if (repl_is_sign(w, i, '(') && depth > 0)
            depth--;
        else if (depth == 0 && repl_is(w, i, "select"))
            return true;
        else if (depth == 0 && repl_is(w, i, "values"))
            return false;
    }
    return false;
}

/* The sequence that a call names by a constant: ('x'::regclass, 5). Empty: by something else. */
static struct slice sequence_of(struct repl_work *w, struct slice args)
{
    static const char *const may[] = {"::", "regclass", "text", "pg_catalog", "."};
    const struct sql_token *tok;
    uint32_t n;
    uint32_t i;

    if (sql_tokens(w->arena, args, &tok, &n) == -1 || n < 3 || tok[1].kind != SQL_TOKEN_STRING)
        return slice_of("", 0);
    for (i = 2; i < n; i++) {
        struct slice as = slice_of(args.p + tok[i].offset, tok[i].len);
        bool is_plain = false;

        if (slice_eq_str(as, ",") || slice_eq_str(as, ")"))
            break;
        for (unsigned k = 0; k < sizeof may / sizeof may[0]; k++)
            is_plain = is_plain || slice_ieq_str(as, may[k]);
        if (!is_plain)
            return slice_of("", 0);
    }
    return slice_of(args.p + tok[1].offset, tok[i - 1].offset + tok[i - 1].len - tok[1].offset);
}

void repl_add_sequence(struct repl_work *w, struct slice expr)
{
    struct repl_plan *p = w->plan;
    uint32_t i = 0;

    while (i < p->nsequences && !slice_eq(p->sequences[i], expr))
        i++;
    if (i < p->nsequences)
        return;
    if (i == REPL_MAX_SEQUENCES) {
        w->failed = true;
        return;
    }
    p->sequences[p->nsequences++] = expr;
}

void repl_sequences(struct repl_work *w, struct slice text, const struct sql_stmt *stmt)
{
    const char *type;

    for (uint32_t i = 0; i < stmt->nfuncs; i++) {
        const struct sql_func *f = &stmt->funcs[i];
        struct slice name;

        if (repl_call_kind(f, &type) != REPL_CALL_SERIAL)
            continue;
        name = sequence_of(w, slice_of(text.p + f->offset + f->len, f->call_len - f->len));
        if (name.n == 0)
            repl_differs(w, f->name);
        else
            repl_add_sequence(w, name);
    }
}

void repl_default_sequences(
    struct repl_work *w, struct slice table, const struct repl_column *column)
{
    struct sql_facts facts;
    struct buf expr = {0};
    const char *text;

    if (column->def.n > 0) {
        text = arena_printf(w->arena, "SELECT %.*s", (int)column->def.n, column->def.p);
        if (text != NULL && sql_parse(w->arena, slice_of_str(text), &facts) != -1 &&
            facts.nstmts == 1)
            repl_sequences(w, slice_of_str(text), &facts.stmts[0]);
        return;
    }
    buf_printf(&expr, "pg_catalog.pg_get_serial_sequence(");
    repl_put_literal(&expr, table);
    buf_printf(&expr, ", ");
    repl_put_literal(&expr, column->name);
    buf_put_byte(&expr, ')');
    text = arena_strndup(w->arena, expr.data, expr.len);
    if (text == NULL)
        w->failed = true;
    else
        repl_add_sequence(w, slice_of(text, expr.len));
    buf_free(&expr);
}

static bool writes_rows(const struct sql_stmt *s)
{
    enum sql_kind kind = s->kind == SQL_EXPLAIN || s->kind == SQL_PREPARE ? s->inner : s->kind;

    return kind != SQL_SELECT || (s->flags & (SQL_F_DML_IN_CTE | SQL_F_INTO)) != 0;
}

/* Rows that are left to chance, or passed over as others hold them in this moment: another node has
 * another moment. */
static void picked_rows(struct repl_work *w)
{
    static const char tries[] = "pg_try_advisory";

    if ((w->stmt->flags & SQL_F_TABLESAMPLE) != 0)
        repl_differs(w, slice_of_str("TABLESAMPLE"));
    if (!writes_rows(w->stmt))
        return;
    for (uint32_t i = w->from; (w->stmt->flags & SQL_F_LOCKING) != 0 && i < w->to; i++) {
        if (repl_is(w, i, "skip") && repl_is(w, i + 1, "locked"))
            w->plan->skips_locked = true;
    }
    for (uint32_t i = 0; i < w->stmt->nfuncs; i++) {
        struct slice name = w->stmt->funcs[i].name;

        if (name.n >= sizeof tries - 1 && memcmp(name.p, tries, sizeof tries - 1) == 0)
            repl_differs(w, name);
    }
}

void repl_calls(struct repl_work *w, const struct sql_span *values, uint32_t n)
{
    repl_sequences(w, w->text, w->stmt);
    picked_rows(w);
    for (uint32_t i = 0; i < w->stmt->nfuncs; i++) {
        const struct sql_func *f = &w->stmt->funcs[i];
        const char *type;

        switch (repl_call_kind(f, &type)) {
        case REPL_CALL_SAME:
            break;
        case REPL_CALL_VALUE:
            if (!is_within(f, values, n) || !has_plain_args(w, f) || is_in_query(w, f)) {
                repl_differs(w, f->name);
                break;
            }
            repl_splice(w, f->offset, f->call_len, "\1%u\2",
                repl_ask(
                    w, slice_of(w->text.p + f->offset, f->call_len), slice_of_str(type), false));
            break;
        case REPL_CALL_SERIAL:
            /* Each node counts for itself: what one of many rows gets depends on their order. */
            if (n == 0 && w->stmt->kind != SQL_SELECT)
                repl_differs(w, f->name);
            if (w->plan->serial == NULL)
                w->plan->serial = repl_insert_target(w->stmt);
            break;
        case REPL_CALL_OTHER:
            repl_differs(w, f->name);
            break;
        }
    }
}
