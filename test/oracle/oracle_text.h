/* SPDX-License-Identifier: PostgreSQL
 * oracle_text.h: parses a text with libpg_query and makes up for where it differs from the server.
 * Runs in: the test program oracle_dump only. */
#ifndef PGP_ORACLE_TEXT_H
#define PGP_ORACLE_TEXT_H

struct arena;
struct oracle_json;

/* The `why` of a text that libpg_query takes but whose tree our reader does not. */
#define ORACLE_TEXT_TOO_DEEP "the tree is too deep for the oracle"

/* What was parsed: the text that libpg_query saw (locations in the tree count in it) and the tree,
 * NULL when the text is not accepted; `why` then says so. */
struct oracle_text {
    const char *sql;
    const struct oracle_json *tree;
    const char *why;
};

/* Parses `sql`; the result lives in the arena. Departures from libpg_query, each because the server
 * (or a later grammar) does so: comments are white space everywhere, a parameter may stand only
 * where an expression may, a sub-select in FROM needs no alias. */
struct oracle_text oracle_text_parse(struct arena *a, const char *sql);

#endif
