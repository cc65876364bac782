/* SPDX-License-Identifier: PostgreSQL
 * rewrite_calls.c: calls whose results are another on each node. Runs in: workers. Pure. */
#include "config.h"

#include "replicate/locks.h"

#include "rewrite_int.h"

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

enum repl_call repl_call_kind(const struct sql_func *f, const char **type)
{
    *type = NULL;
    if (slice_eq_str(f->name, "nextval"))
        return REPL_CALL_SERIAL;
    for (unsigned i = 0; i < sizeof calls / sizeof calls[0]; i++) {
        if (!slice_eq_str(f->name, calls[i].name))
            continue;
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

/* Its arguments are constants: it can be asked for by itself. */
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

void repl_calls(struct repl_work *w, const struct sql_span *values, uint32_t n)
{
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
