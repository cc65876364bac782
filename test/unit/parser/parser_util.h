/* SPDX-License-Identifier: PostgreSQL
 * parser_util.h: what the parser's unit tests share: one arena per test, and lists of names as one
 * text. Runs in: unit tests. */
#ifndef PGP_TEST_PARSER_UTIL_H
#define PGP_TEST_PARSER_UTIL_H

#include <check.h>
#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "parser/parser.h"

static struct arena *arena;

static void set_up(void)
{
    arena = arena_new("test", 0);
}

static void tear_down(void)
{
    arena_free(&arena);
}

static inline struct sql_facts parse(const char *text)
{
    struct sql_facts facts;

    (void)sql_parse(arena, slice_of_str(text), &facts);
    return facts;
}

/* The only statement of `text`, which must be accepted. */
static inline const struct sql_stmt *one(const char *text)
{
    struct sql_facts facts = parse(text);

    ck_assert_msg(facts.status == SQL_OK, "rejected: %s: %s", text, facts.error);
    ck_assert_msg(facts.nstmts == 1, "%u statements: %s", facts.nstmts, text);
    return &facts.stmts[0];
}

static inline const char *str(struct slice s)
{
    return arena_strndup(arena, s.p, s.n);
}

#endif
