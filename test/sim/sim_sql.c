/* SPDX-License-Identifier: PostgreSQL
 * sim_sql.c: the handful of statements that a modelled PostgreSQL session understands: what the
 * simulated clients send, and what pgpool sends by itself. */
#include "config.h"

#include "sim_pg.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "wire/writer.h"

enum token { T_END, T_WORD, T_STRING, T_PARAM, T_SYMBOL };

/* The next word of a statement; `text` is folded, strings are without their quotes. */
struct lex {
    const char *p;
    const char *end;
    enum token token;
    char text[PG_SQL_BYTES];
};

static bool is_word_char(char c)
{
    return isalnum((unsigned char)c) || c == '_' || c == '.';
}

static void lex_string(struct lex *x)
{
    size_t n = 0;

    for (x->p++; x->p < x->end; x->p++) {
        if (*x->p == '\'' && (x->p + 1 == x->end || x->p[1] != '\''))
            break;
        if (*x->p == '\'')
            x->p++;
        if (n + 1 < sizeof x->text)
            x->text[n++] = *x->p;
    }
    if (x->p < x->end)
        x->p++;
    x->text[n] = '\0';
    x->token = T_STRING;
}

/* Of a word, or of a name in quotes: no name here needs them. */
static bool is_named(char c)
{
    return is_word_char(c) || c == '"';
}

/* A semicolon is the end of the statement and is not passed. */
static void lex_next(struct lex *x)
{
    size_t n = 0;

    while (x->p < x->end && isspace((unsigned char)*x->p))
        x->p++;
    x->text[0] = '\0';
    x->token = T_END;
    if (x->p == x->end || *x->p == ';')
        return;
    if (*x->p == '\'') {
        lex_string(x);
        return;
    }
    x->token = *x->p == '$' ? T_PARAM : is_named(*x->p) ? T_WORD : T_SYMBOL;
    do {
        if (n + 1 < sizeof x->text && *x->p != '"')
            x->text[n++] = (char)tolower((unsigned char)*x->p);
        x->p++;
    } while (x->token != T_SYMBOL && x->p < x->end && is_named(*x->p));
    x->text[n] = '\0';
}

static void lex_init(struct lex *x, struct slice sql)
{
    memset(x, 0, sizeof *x);
    x->p = sql.p;
    x->end = sql.p + sql.n;
    lex_next(x);
}

static bool at(const struct lex *x, const char *text)
{
    return (x->token == T_WORD || x->token == T_SYMBOL) && strcmp(x->text, text) == 0;
}

static bool take(struct lex *x, const char *text)
{
    if (!at(x, text))
        return false;
    lex_next(x);
    return true;
}

/* To the end of the statement and behind its semicolon. */
static void skip_statement(struct lex *x)
{
    while (x->token != T_END)
        lex_next(x);
    if (x->p < x->end)
        x->p++;
}

bool pg_is_blank(struct slice sql)
{
    size_t i;

    for (i = 0; i < sql.n; i++)
        if (!isspace((unsigned char)sql.p[i]) && sql.p[i] != ';')
            return false;
    return true;
}

bool pg_is_discard(struct slice sql)
{
    struct lex x;

    lex_init(&x, sql);
    return at(&x, "discard");
}

bool pg_is_string(struct slice sql)
{
    struct lex x;

    lex_init(&x, sql);
    skip_statement(&x);
    return !pg_is_blank(slice_of(x.p, (size_t)(x.end - x.p)));
}

bool pg_ends_transaction(struct slice sql)
{
    struct lex x;

    lex_init(&x, sql);
    return at(&x, "commit") || at(&x, "end") || at(&x, "rollback") || at(&x, "abort");
}

int pg_nargs(struct slice sql)
{
    struct lex x;
    int n = 0;

    lex_init(&x, sql);
    if (at(&x, "prepare"))
        return 0; /* they are those of what it prepares */
    for (; x.token != T_END; lex_next(&x))
        if (x.token == T_PARAM && atoi(x.text + 1) > n)
            n = atoi(x.text + 1);
    return n;
}

void pg_put_columns(struct buf *out, int n)
{
    static const char *const names[PG_MAX_COLUMNS] = {"a", "b", "c", "d", "e", "f"};

    wire_put_row_description(out, names, (unsigned)n, 25);
}

/* ---- settings ---- */

static int var_of(const char *name)
{
    int i;

    for (i = 0; i < PG_NVARS; i++)
        if (strcasecmp(name, pg_var_names[i]) == 0)
            return i;
    return -1;
}

static void set_var(struct pg_session *s, int var, const char *value, bool is_local)
{
    char copy[PG_VALUE_BYTES];

    snprintf(copy, sizeof copy, "%s", value);
    memcpy(s->vars.now.v[var], copy, sizeof copy);
    if (!is_local)
        memcpy(s->vars.session.v[var], copy, sizeof copy);
}

/* ---- SELECT ---- */

struct row {
    int n;
    char v[PG_MAX_COLUMNS][PG_VALUE_BYTES];
};

static bool call(struct pg_session *s, const char *name, char arg[3][PG_VALUE_BYTES], char *value,
    struct buf *out)
{
    struct pg_portal *portal;
    int var;

    if (strncmp(name, "pg_catalog.", 11) == 0)
        name += 11;
    if (strcmp(name, "set_config") == 0 || strcmp(name, "current_setting") == 0) {
        var = var_of(arg[0]);
        if (var == -1) {
            pg_error(s, out, "42704", "unrecognized configuration parameter \"%s\"", arg[0]);
            return false;
        }
        if (name[0] == 's')
            set_var(s, var, arg[1], strcmp(arg[2], "true") == 0);
        memcpy(value, s->vars.now.v[var], PG_VALUE_BYTES);
        return true;
    }
    if (strcmp(name, "fail") == 0) {
        pg_error(s, out, "22012", "failed: %s", arg[0]);
        return false;
    }
    if (strcmp(name, "pg_sleep") == 0 || strcmp(name, "slow") == 0)
        return true;
    if (strcmp(name, "pg_advisory_lock") == 0) {
        s->nlocks++;
        return true;
    }
    if (strcmp(name, "pg_advisory_unlock_all") == 0 ||
        strcmp(name, "pg_catalog.pg_advisory_unlock_all") == 0) {
        s->nlocks = 0;
        return true;
    }
    if (strcmp(name, "held_locks") == 0) {
        snprintf(value, PG_VALUE_BYTES, "%d", s->nlocks);
        return true;
    }
    if (s->in_query) { /* known as the text is looked at, before there is a portal */
        portal = pg_find_portal(s, slice_of("", 0));
        if (portal != NULL)
            portal->used = false;
    }
    pg_error(s, out, "42883", "function %s() does not exist", name);
    return false;
}

static bool eval_call(
    struct pg_session *s, struct lex *x, const char *name, char *value, struct buf *out)
{
    char arg[3][PG_VALUE_BYTES] = {"", "", ""};
    int n = 0;

    for (lex_next(x); x->token != T_END && !at(x, ")"); lex_next(x))
        if (x->token != T_SYMBOL && n < 3)
            snprintf(arg[n++], PG_VALUE_BYTES, "%.*s", PG_VALUE_BYTES - 1, x->text);
    (void)take(x, ")");
    return out == NULL || call(s, name, arg, value, out);
}

/* How much of the log is seen. */
static void put_position(struct pg_session *s, char *value)
{
    int64_t seen;

    if (s->place == NULL) {
        memcpy(value, PG_POSITION_MASK, sizeof PG_POSITION_MASK);
        return;
    }
    seen = s->place->position;
    if (s->tx == 'T' && s->tx_one_snapshot) {
        if (s->snapshot == -1)
            s->snapshot = seen;
        seen = s->snapshot;
    }
    snprintf(value, PG_VALUE_BYTES, "%0*lld", PG_POSITION_WIDTH, (long long)seen);
}

bool pg_may_not_write(struct pg_session *s, const char *what, struct buf *out)
{
    bool is_standby = s->place != NULL && s->place->is_standby;
    bool is_fenced = s->place != NULL && (s->tx == 'I' ? s->place->is_fenced : s->tx_is_fenced);

    if (!is_standby && !is_fenced && !s->tx_read_only)
        return false;
    s->wrote_in_vain = is_standby && !s->tx_read_only;
    pg_error(s, out, "25006", "cannot execute %s in a read-only transaction", what);
    return true;
}

/* The list behind SELECT; out == NULL: nothing is done, columns are counted. */
static bool eval_list(struct pg_session *s, struct lex *x, const struct pg_args *args,
    struct row *row, struct buf *out)
{
    char name[PG_SQL_BYTES];
    char *value;
    int i;

    row->n = 0;
    do {
        if (row->n == PG_MAX_COLUMNS)
            return false;
        value = row->v[row->n++];
        value[0] = '\0';
        memcpy(name, x->text, sizeof name);
        if (x->token == T_PARAM) {
            i = atoi(name + 1) - 1;
            if (args != NULL && i >= 0 && i < args->n)
                memcpy(value, args->arg[i], PG_VALUE_BYTES);
            lex_next(x);
        } else if (x->token == T_STRING || x->token == T_WORD) {
            enum token was = x->token;

            lex_next(x);
            snprintf(value, PG_VALUE_BYTES, "%.*s", PG_VALUE_BYTES - 1, name);
            if (was == T_WORD && out != NULL && strcmp(name, "pos") == 0)
                put_position(s, value);
            else if (was == T_WORD && out != NULL && strcmp(name, "mine") == 0)
                snprintf(value, PG_VALUE_BYTES, "%d", s->nwrites);
            if (was == T_WORD && at(x, "(")) {
                value[0] = '\0';
                if (!eval_call(s, x, name, value, out))
                    return false;
            }
        }
    } while (take(x, ","));
    return true;
}

static void put_row(struct buf *out, const struct row *row, bool describe)
{
    struct slice v[PG_MAX_COLUMNS];
    int i;

    for (i = 0; i < row->n; i++)
        v[i] = slice_of_str(row->v[i]);
    if (describe)
        pg_put_columns(out, row->n);
    wire_put_data_row(out, v, (unsigned)row->n);
}

static bool run_select(
    struct pg_session *s, struct lex *x, const struct pg_args *args, bool describe, struct buf *out)
{
    struct row row;
    char tag[24];
    int n = 1;
    int i;

    if (!eval_list(s, x, args, &row, out))
        return false;
    if (take(x, "from"))
        n = s->rows_left > 0 ? s->rows_left : 3;
    s->rows_left = 0;
    if (s->row_limit > 0 && (uint32_t)n >= s->row_limit) {
        s->rows_left = n - (int)s->row_limit;
        s->is_suspended = true;
        n = (int)s->row_limit;
    }
    for (i = 0; i < n; i++)
        put_row(out, &row, describe && i == 0);
    if (s->is_suspended) {
        wire_put_empty(out, BE_PORTAL_SUSPENDED);
        return true;
    }
    snprintf(tag, sizeof tag, "SELECT %d", n);
    wire_put_command_complete(out, tag);
    return true;
}

/* COPY: FROM the client, or of a string TO it. */
static bool run_copy(struct pg_session *s, struct lex *x, struct buf *out)
{
    uint32_t start;

    if (!take(x, "(")) {
        if (pg_may_not_write(s, "COPY FROM", out))
            return false;
        start = wire_begin(out, BE_COPY_IN);
        buf_put_byte(out, 0);
        buf_put_u16(out, 1);
        buf_put_u16(out, 0);
        wire_end(out, start);
        s->copying = s->in_query ? 'Q' : 'E';
        s->ncopied = 0;
        return true;
    }
    (void)take(x, "select");
    start = wire_begin(out, BE_COPY_OUT);
    buf_put_byte(out, 0);
    buf_put_u16(out, 1);
    buf_put_u16(out, 0);
    wire_end(out, start);
    start = wire_begin(out, BE_COPY_DATA);
    buf_put(out, x->text, strlen(x->text));
    buf_put_byte(out, '\n');
    wire_end(out, start);
    wire_put_empty(out, BE_COPY_DONE);
    wire_put_command_complete(out, "COPY 1");
    return true;
}

/* ---- the rest ---- */

static bool run_insert(
    struct pg_session *s, struct lex *x, const struct pg_args *args, struct buf *out)
{
    const char *tag = "";

    if (pg_may_not_write(s, "INSERT", out))
        return false;
    while (x->token != T_END && !at(x, "("))
        lex_next(x);
    lex_next(x);
    if (x->token == T_PARAM && args != NULL && args->n > 0)
        tag = args->arg[0];
    else if (x->token == T_WORD)
        tag = x->text;
    if (s->nwrites == PG_MAX_WRITES) {
        pg_error(s, out, "54000", "the model has no room");
        return false;
    }
    s->write[s->nwrites++] = atoi(tag);
    wire_put_command_complete(out, "INSERT 0 1");
    return true;
}

static bool run_show(struct pg_session *s, struct lex *x, bool describe, struct buf *out)
{
    struct row row = {.n = 1};
    int var = var_of(x->text);

    if (var == -1) {
        pg_error(s, out, "42704", "unrecognized configuration parameter \"%s\"", x->text);
        return false;
    }
    memcpy(row.v[0], s->vars.now.v[var], PG_VALUE_BYTES);
    put_row(out, &row, describe);
    wire_put_command_complete(out, "SHOW");
    return true;
}

static bool run_set(struct pg_session *s, struct lex *x, struct buf *out)
{
    bool is_local = take(x, "local");
    int var;

    if (!is_local)
        (void)take(x, "session");
    var = var_of(x->text);
    if (var == -1) {
        pg_error(s, out, "42704", "unrecognized configuration parameter \"%s\"", x->text);
        return false;
    }
    lex_next(x);
    if (!take(x, "to"))
        (void)take(x, "=");
    if (strncmp(x->text, "bad", 3) == 0) {
        pg_error(s, out, "22023", "invalid value for parameter \"%s\": \"%s\"", pg_var_names[var],
            x->text);
        return false;
    }
    set_var(s, var, at(x, "default") ? s->base.v[var] : x->text, is_local);
    wire_put_command_complete(out, "SET");
    return true;
}

static bool run_reset(struct pg_session *s, struct lex *x, struct buf *out)
{
    int var = var_of(x->text);
    int i;

    if (at(x, "all")) {
        for (i = 0; i < PG_NSETTINGS; i++)
            set_var(s, i, s->base.v[i], false);
    } else if (at(x, "session")) {
        set_var(s, var_of("role"), s->base.v[var_of("role")], false);
    } else if (var != -1) {
        set_var(s, var, s->base.v[var], false);
    } else {
        pg_error(s, out, "42704", "unrecognized configuration parameter \"%s\"", x->text);
        return false;
    }
    wire_put_command_complete(out, "RESET");
    return true;
}

/* The one without a name stays. */
static void drop_statements(struct pg_session *s)
{
    int i;

    for (i = 0; i < PG_MAX_STATEMENTS; i++)
        s->statement[i].used = s->statement[i].used && s->statement[i].name[0] == '\0';
}

static bool run_discard(struct pg_session *s, const struct lex *x, struct buf *out)
{
    int i;

    if (!at(x, "all")) { /* tables, sequences: there are none */
        wire_put_command_complete(out, "DISCARD");
        return true;
    }
    if (s->tx != 'I' || s->in_string || s->is_pipeline) {
        pg_error(s, out, "25001", "DISCARD ALL cannot %s",
            s->tx == 'I' && !s->in_string ? "be executed within a pipeline"
                                          : "run inside a transaction block");
        return false;
    }
    for (i = 0; i < PG_NVARS; i++)
        set_var(s, i, s->base.v[i], false);
    drop_statements(s);
    pg_drop_portals(s);
    s->nlocks = 0;
    wire_put_command_complete(out, "DISCARD ALL");
    return true;
}

static bool run_prepare(struct pg_session *s, struct lex *x, struct buf *out)
{
    char name[PG_SQL_BYTES];
    const char *from;

    memcpy(name, x->text, sizeof name);
    lex_next(x);
    from = x->p; /* behind AS */
    while (x->token != T_END)
        lex_next(x);
    if (!pg_add_statement(s, slice_of_str(name), slice_of(from, (size_t)(x->p - from)), out))
        return false;
    wire_put_command_complete(out, "PREPARE");
    return true;
}

static bool run_execute(struct pg_session *s, struct lex *x, bool describe, struct buf *out)
{
    struct pg_statement *st = pg_find_statement(s, slice_of_str(x->text));
    char arg[PG_MAX_ARGS][PG_VALUE_BYTES];
    struct pg_args args = {0, (const char(*)[PG_VALUE_BYTES])arg};
    struct slice sql;
    char copy[PG_SQL_BYTES];

    if (st == NULL) {
        pg_error(s, out, "26000", "prepared statement \"%s\" does not exist", x->text);
        return false;
    }
    for (lex_next(x); x->token != T_END; lex_next(x))
        if (x->token != T_SYMBOL && args.n < PG_MAX_ARGS)
            snprintf(arg[args.n++], PG_VALUE_BYTES, "%.*s", PG_VALUE_BYTES - 1, x->text);
    if (args.n != pg_nargs(slice_of_str(st->sql))) {
        pg_error(
            s, out, "42601", "wrong number of parameters for prepared statement \"%s\"", st->name);
        return false;
    }
    memcpy(copy, st->sql, sizeof copy);
    sql = slice_of_str(copy);
    return pg_run(s, &sql, &args, describe, out);
}

static bool run_deallocate(struct pg_session *s, struct lex *x, struct buf *out)
{
    struct pg_statement *st;

    (void)take(x, "prepare");
    if (at(x, "all")) {
        drop_statements(s);
        wire_put_command_complete(out, "DEALLOCATE ALL");
        return true;
    }
    st = pg_find_statement(s, slice_of_str(x->text));
    if (st == NULL) {
        pg_error(s, out, "26000", "prepared statement \"%s\" does not exist", x->text);
        return false;
    }
    st->used = false;
    wire_put_command_complete(out, "DEALLOCATE");
    return true;
}

/* What it is to be like stands behind the word. */
static bool run_begin(struct pg_session *s, struct lex *x, const char *tag, struct buf *out)
{
    bool read_only = false;
    bool one_snapshot = false;

    for (; x->token != T_END; lex_next(x)) {
        read_only = read_only || at(x, "only");
        one_snapshot = one_snapshot || at(x, "repeatable");
    }
    return pg_begin(s, tag, read_only, one_snapshot, out);
}

static bool run_to_savepoint(struct pg_session *s, struct lex *x, bool back, struct buf *out)
{
    (void)take(x, "savepoint");
    return pg_to_savepoint(s, x->text, back, out);
}

static bool run_transaction(struct pg_session *s, struct lex *x, struct buf *out)
{
    bool commit;

    if (take(x, "begin"))
        return run_begin(s, x, "BEGIN", out);
    if (take(x, "start"))
        return run_begin(s, x, "START TRANSACTION", out);
    if (take(x, "savepoint"))
        return pg_savepoint(s, x->text, out);
    if (take(x, "release"))
        return run_to_savepoint(s, x, false, out);
    commit = at(x, "commit") || at(x, "end");
    lex_next(x);
    if (take(x, "to"))
        return run_to_savepoint(s, x, true, out);
    return pg_end(s, commit, at(x, "and"), out);
}

enum verb {
    V_NONE,
    V_TRANSACTION,
    V_SELECT,
    V_INSERT,
    V_COPY,
    V_SHOW,
    V_SET,
    V_RESET,
    V_DISCARD,
    V_CLOSE,
    V_UNLISTEN,
    V_PREPARE,
    V_EXECUTE,
    V_DEALLOCATE
};

static enum verb verb_of(const struct lex *x)
{
    static const struct {
        const char *word;
        enum verb verb;
    } verbs[] = {{"begin", V_TRANSACTION}, {"start", V_TRANSACTION}, {"commit", V_TRANSACTION},
        {"end", V_TRANSACTION}, {"rollback", V_TRANSACTION}, {"abort", V_TRANSACTION},
        {"savepoint", V_TRANSACTION}, {"release", V_TRANSACTION}, {"select", V_SELECT},
        {"insert", V_INSERT}, {"copy", V_COPY}, {"show", V_SHOW}, {"set", V_SET},
        {"reset", V_RESET}, {"discard", V_DISCARD}, {"close", V_CLOSE}, {"unlisten", V_UNLISTEN},
        {"prepare", V_PREPARE}, {"execute", V_EXECUTE}, {"deallocate", V_DEALLOCATE}};
    size_t i;

    for (i = 0; i < sizeof verbs / sizeof verbs[0]; i++)
        if (at(x, verbs[i].word))
            return verbs[i].verb;
    return V_NONE;
}

static bool run_verb(
    struct pg_session *s, struct lex *x, const struct pg_args *args, bool describe, struct buf *out)
{
    enum verb verb = verb_of(x);

    if (verb == V_TRANSACTION)
        return run_transaction(s, x, out);
    if (verb == V_NONE) {
        pg_error(s, out, "42601", "syntax error at or near \"%s\"", x->text);
        return false;
    }
    lex_next(x);
    switch (verb) {
    case V_SELECT:
        return run_select(s, x, args, describe, out);
    case V_INSERT:
        return run_insert(s, x, args, out);
    case V_COPY:
        return run_copy(s, x, out);
    case V_SHOW:
        return run_show(s, x, describe, out);
    case V_SET:
        return run_set(s, x, out);
    case V_RESET:
        return run_reset(s, x, out);
    case V_DISCARD:
        return run_discard(s, x, out);
    case V_CLOSE: /* CLOSE ALL, of what DECLARE made, which nobody says here */
    case V_UNLISTEN:
        wire_put_command_complete(out, verb == V_CLOSE ? "CLOSE CURSOR ALL" : "UNLISTEN");
        return true;
    case V_PREPARE:
        return run_prepare(s, x, out);
    case V_EXECUTE:
        return run_execute(s, x, describe, out);
    default:
        return run_deallocate(s, x, out);
    }
}

bool pg_is_transaction(struct slice sql)
{
    struct lex x;

    lex_init(&x, sql);
    return verb_of(&x) == V_TRANSACTION;
}

bool pg_run(struct pg_session *s, struct slice *sql, const struct pg_args *args, bool describe,
    struct buf *out)
{
    struct lex x;
    bool ok = true;

    while (sql->n > 0 && (isspace((unsigned char)*sql->p) || *sql->p == ';'))
        *sql = slice_of(sql->p + 1, sql->n - 1);
    lex_init(&x, *sql);
    if (pg_run_own(s, *sql, out, &ok)) {
        *sql = slice_of(x.end, 0);
        return ok;
    }
    ok = run_verb(s, &x, args, describe, out);
    skip_statement(&x);
    *sql = slice_of(x.p, (size_t)(x.end - x.p));
    return ok;
}

int pg_columns(struct pg_session *s, struct slice sql)
{
    struct pg_statement *st;
    struct row row;
    struct lex x;

    lex_init(&x, sql);
    switch (verb_of(&x)) {
    case V_NONE:
        return pg_is_blank(sql) ? 0 : -1;
    case V_SHOW:
        return 1;
    case V_SELECT:
        lex_next(&x);
        return eval_list(s, &x, NULL, &row, NULL) ? row.n : -1;
    case V_EXECUTE:
        lex_next(&x);
        st = pg_find_statement(s, slice_of_str(x.text));
        return st == NULL ? 0 : pg_columns(s, slice_of_str(st->sql));
    default:
        return 0;
    }
}
