/* SPDX-License-Identifier: PostgreSQL
 * tokens.h: a text cut into tokens by the parser's own scanner, for who splices texts. Pure.
 * Runs in: workers. */
#ifndef PGP_PARSER_TOKENS_H
#define PGP_PARSER_TOKENS_H

#include <stdint.h>

#include "base/slice.h"

struct arena;

enum sql_token_kind {
    SQL_TOKEN_WORD,   /* a key word, or a name without quotes */
    SQL_TOKEN_NAME,   /* a quoted name */
    SQL_TOKEN_STRING, /* any quoted constant, with its prefix */
    SQL_TOKEN_NUMBER,
    SQL_TOKEN_PARAM, /* $1 */
    SQL_TOKEN_SIGN   /* operators and punctuation */
};

struct sql_token {
    enum sql_token_kind kind;
    uint32_t offset;
    uint32_t len;
};

/* Cuts `text`; *out lives in `a`. Returns 0, or -1 for a broken token or when `a` is exhausted. */
int sql_tokens(struct arena *a, struct slice text, const struct sql_token **out, uint32_t *n);

#endif
