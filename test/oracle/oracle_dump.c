/* SPDX-License-Identifier: PostgreSQL
 * oracle_dump.c: prints for NUL-ended texts the facts that parse-dump must print, from libpg_query.
 * Runs in: the test run_oracle.py only; never part of the product. It has the same lines as
 * parse-dump less the fingerprint; a refused text also says why. With --trees it prints
 * libpg_query's own trees, for whoever hunts a difference. */
#include "config.h"

#include <pg_query.h>
#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "base/buf.h"
#include "oracle_json.h"
#include "oracle_text.h"
#include "oracle_walk.h"

static void put_string(struct buf *b, const char *s)
{
    buf_put_byte(b, '"');
    for (; *s != '\0'; s++) {
        if (*s == '"' || *s == '\\') {
            buf_put_byte(b, '\\');
            buf_put_byte(b, *s);
        } else if ((unsigned char)*s < 0x20) {
            buf_printf(b, "\\u%04x", (unsigned)(unsigned char)*s);
        } else {
            buf_put_byte(b, *s);
        }
    }
    buf_put_byte(b, '"');
}

static void put_names(struct buf *b, const char *key, const struct oracle_names *names)
{
    buf_printf(b, ",\"%s\":[", key);
    for (size_t i = 0; i < names->n; i++) {
        buf_printf(b, "%s", i == 0 ? "" : ",");
        put_string(b, names->v[i]);
    }
    buf_put_byte(b, ']');
}

static void put_bool(struct buf *b, const char *key, bool value)
{
    buf_printf(b, ",\"%s\":%s", key, value ? "true" : "false");
}

static void put_statement(struct buf *b, const struct oracle_facts *f)
{
    buf_printf(b, "{\"kind\":\"%s\"", f->kind);
    put_bool(b, "read_only", f->read_only);
    put_names(b, "tables", &f->tables);
    put_names(b, "functions", &f->functions);
    put_bool(b, "locking", f->locking);
    put_bool(b, "dml_in_cte", f->dml_in_cte);
    put_bool(b, "into", f->into);
    put_bool(b, "temp", f->temp);
    buf_printf(b, ",\"params\":%ld}", f->params);
}

static void put_line(struct buf *b, const char *sql)
{
    struct arena *a = arena_new("text", 0);
    struct oracle_text t = oracle_text_parse(a, sql);
    const struct oracle_json *stmts = oracle_json_get(t.tree, "stmts");

    if (t.tree == NULL) {
        buf_printf(b, "%s",
            strcmp(t.why, ORACLE_TEXT_TOO_DEEP) == 0 ? "{\"crash\":" : "{\"ok\":false,\"why\":");
        put_string(b, t.why);
        buf_printf(b, "}\n");
        arena_free(&a);
        return;
    }
    buf_printf(b, "{\"ok\":true,\"stmts\":[");
    for (const struct oracle_json *m = stmts == NULL ? NULL : stmts->child; m != NULL;
         m = m->next) {
        struct oracle_facts facts = oracle_walk(a, t.sql, oracle_json_get(m, "stmt"));

        buf_printf(b, "%s", m == stmts->child ? "" : ",");
        put_statement(b, &facts);
    }
    buf_printf(b, "]}\n");
    arena_free(&a);
}

static void put_tree(struct buf *b, const char *sql)
{
    PgQueryParseResult res = pg_query_parse(sql);

    buf_printf(b, "%s\n", res.error != NULL ? res.error->message : res.parse_tree);
    pg_query_free_parse_result(res);
}

/* Reads up to the next NUL; false at the end of the input. */
static bool read_text(FILE *in, struct buf *b)
{
    int c;

    buf_clear(b);
    while ((c = getc(in)) != EOF && c != '\0') {
        buf_put_byte(b, (char)c);
    }
    buf_put_byte(b, '\0');
    return c != EOF || buf_unread(b) > 1;
}

int main(int argc, char **argv)
{
    bool trees = argc == 2 && strcmp(argv[1], "--trees") == 0;
    struct buf text = {0};
    struct buf line = {0};

    if (argc > 1 && !trees) {
        fprintf(stderr, "usage: oracle_dump [--trees] < texts, each ended by a NUL byte\n");
        return 2;
    }
    while (read_text(stdin, &text)) {
        buf_clear(&line);
        if (trees) {
            put_tree(&line, buf_slice(&text).p);
        } else {
            put_line(&line, buf_slice(&text).p);
        }
        if (fwrite(line.data, 1, buf_unread(&line), stdout) != buf_unread(&line)) {
            return 1;
        }
    }
    buf_free(&text);
    buf_free(&line);
    return fflush(stdout) == 0 ? 0 : 1;
}
