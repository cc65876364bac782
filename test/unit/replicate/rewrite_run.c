/* SPDX-License-Identifier: PostgreSQL
 * rewrite_run.c: for tests with a real server. Usage: rewrite-run CONNINFO, statements on standard
 * input, each ended by a NUL. Each one is run as it is and as it would be run on every node, in one
 * transaction that is rolled back, and the rows of all tables are compared: prints "same",
 * "differs", "kept" or "error", a tab, and what was run. A first letter '!' says that the statement
 * is random: then what becomes of it is run twice, and not compared with the original. */
#include "config.h"

#include <libpq-fe.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/buf.h"
#include "replicate/rewrite.h"

static PGconn *conn;
static struct arena *arena;
static struct repl_table table;

static PGresult *run(const char *sql)
{
    PGresult *res = PQexec(conn, sql);
    ExecStatusType status = PQresultStatus(res);

    if (status != PGRES_COMMAND_OK && status != PGRES_TUPLES_OK) {
        printf("error\t%s: %s", sql, PQerrorMessage(conn));
        PQclear(res);
        return NULL;
    }
    return res;
}

static bool quick(const char *sql)
{
    PGresult *res = run(sql);

    PQclear(res);
    return res != NULL;
}

static struct slice value(PGresult *res, int row, int column)
{
    if (PQgetisnull(res, row, column))
        return slice_of(NULL, 0);
    return slice_of_str(arena_strdup(arena, PQgetvalue(res, row, column)));
}

static const struct repl_table *find(void *ctx, const struct sql_table *name)
{
    struct buf relation = {0};
    struct buf sql = {0};
    struct repl_column *columns;
    PGresult *res;

    (void)ctx;
    repl_table_name(name, &relation);
    repl_table_sql(buf_slice(&relation), &sql);
    buf_put_byte(&sql, '\0');
    res = run(sql.data);
    buf_free(&relation);
    buf_free(&sql);
    if (res == NULL)
        return &table;
    table = (struct repl_table){0};
    columns = arena_alloc_zero(arena, ((size_t)PQntuples(res) + 1) * sizeof *columns);
    table.columns = columns;
    for (int i = 0; i < PQntuples(res); i++) {
        struct slice values[REPL_TABLE_VALUES];

        for (int k = 0; k < REPL_TABLE_VALUES; k++)
            values[k] = value(res, i, k);
        repl_table_row(values, columns, &table);
    }
    PQclear(res);
    return &table;
}

/* All rows of all tables, and of the statement, as one text. */
static char *state_after(const char *sql)
{
    struct buf out = {0};
    PGresult *res;
    char *copy;

    if (!quick("SAVEPOINT a") || (res = run(sql)) == NULL)
        return NULL;
    for (int i = 0; i < PQntuples(res); i++) {
        for (int k = 0; k < PQnfields(res); k++)
            buf_printf(&out, "%s=%s|", PQfname(res, k), PQgetvalue(res, i, k));
    }
    PQclear(res);
    res =
        run("SELECT concat((SELECT string_agg(t::text, ';' ORDER BY t::text) FROM t), '/', (SELECT "
            "string_agg(p::text, ';' ORDER BY p::text) FROM plain p), '/', (SELECT "
            "string_agg(k::text, ';' ORDER BY k::text) FROM kinds k))");
    if (res != NULL)
        buf_printf(&out, "%s", PQgetvalue(res, 0, 0));
    PQclear(res);
    if (!quick("ROLLBACK TO a"))
        return NULL;
    copy = arena_strndup(arena, out.data == NULL ? "" : out.data, out.len);
    buf_free(&out);
    return copy;
}

static char *rewritten(const char *sql, struct repl_plan *plan)
{
    static const struct repl_catalog catalog = {find, NULL};
    struct slice values[64] = {{NULL, 0}};
    struct sql_facts facts;
    struct buf out = {0};
    char *copy;

    if (sql_parse(arena, slice_of_str(sql), &facts) == -1)
        return NULL;
    (void)repl_rewrite_plan(arena, slice_of_str(sql), &facts.stmts[0], &catalog, false, 0, plan);
    if (plan->verdict != REPL_REWRITE || plan->nasks > 64)
        return NULL;
    if (plan->nasks > 0) {
        PGresult *res;

        repl_rewrite_asks(plan, 0, &out);
        buf_put_byte(&out, '\0');
        res = run(out.data);
        for (uint32_t i = 0; res != NULL && i < plan->nasks; i++)
            values[i] = value(res, 0, (int)i);
        PQclear(res);
        buf_clear(&out);
    }
    repl_rewrite_text(plan, slice_of_str(sql), &facts.stmts[0], values, &out);
    copy = arena_strndup(arena, out.data, out.len);
    buf_free(&out);
    return copy;
}

static void one(const char *sql)
{
    bool is_random = sql[0] == '!';
    struct repl_plan plan;
    char *text;
    char *a;
    char *b;

    arena_reset(arena);
    sql += is_random;
    if (!quick("BEGIN"))
        return;
    text = rewritten(sql, &plan);
    if (text == NULL) {
        printf("kept\t%s\n", sql);
    } else {
        a = state_after(is_random ? text : sql);
        b = a == NULL ? NULL : state_after(text);
        if (a != NULL && b != NULL)
            printf("%s\t%s\n", strcmp(a, b) == 0 ? "same" : "differs", text);
    }
    quick("ROLLBACK");
    fflush(stdout);
}

int main(int argc, char **argv)
{
    char *line = NULL;
    size_t cap = 0;

    conn = PQconnectdb(argc > 1 ? argv[1] : "");
    if (PQstatus(conn) != CONNECTION_OK) {
        fprintf(stderr, "%s", PQerrorMessage(conn));
        return 1;
    }
    arena = arena_new("run", 0);
    while (getdelim(&line, &cap, '\0', stdin) > 0)
        one(line);
    free(line);
    arena_free(&arena);
    PQfinish(conn);
    return 0;
}
