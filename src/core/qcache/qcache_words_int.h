/* SPDX-License-Identifier: PostgreSQL
 * qcache_words_int.h: the words of a statement, one after another, and what can be read from them
 * by itself: for who looks which rows it has to do with. Pure. */
#ifndef PGP_QCACHE_WORDS_INT_H
#define PGP_QCACHE_WORDS_INT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/slice.h"
#include "parser/tokens.h"
#include "qcache/qcache_row.h"

/* A name; one without quotes is as if it were in small letters. */
struct words_name {
    struct slice text; /* without its quotes */
    bool is_quoted;
};

struct words {
    struct slice text;
    const struct sql_token *tok;
    uint32_t n;
    uint32_t at;
    bool reads; /* it is a SELECT: of what is written each row has to be known */
    /* Columns that are named from here on, up to there, may change. */
    uint32_t set;
    uint32_t set_end;
    /* What the tables are called in it. */
    unsigned nnames;
    struct words_name name[QCACHE_ROW_TABLES];
};

bool words_is(const struct words *w, uint32_t i, const char *word);
bool words_is_any(const struct words *w, uint32_t i, const char *const *list);
bool words_is_sign(const struct words *w, uint32_t i, const char *sign);
bool words_is_name(const struct words *w, uint32_t i);
/* Goes on behind it; false: something else comes next. */
bool words_take(struct words *w, const char *word);
bool words_take_sign(struct words *w, const char *sign);
/* name, schema.name, catalog.schema.name */
bool words_take_table(struct words *w);
/* The next place of one of these words outside of parentheses; `to`: there is none before it. */
uint32_t words_find(const struct words *w, uint32_t from, uint32_t to, const char *const *list);
/* The next comma outside of parentheses. */
uint32_t words_find_comma(const struct words *w, uint32_t from, uint32_t to);
/* All of it, from `from` to `to`, stands in one pair of parentheses. */
bool words_is_group(const struct words *w, uint32_t from, uint32_t to);

/* A name that can be compared with one of the catalogue. */
bool words_name(const struct words *w, uint32_t i, struct words_name *out);
bool words_same_name(const struct words_name *a, const struct words_name *b);
/* `name` is as the catalogue has it. */
bool words_name_is(const struct words_name *a, struct slice name);
/* [table.]column at *at, which goes on behind it. */
bool words_field(const struct words *w, uint32_t *at, struct qcache_field *out);
/* A constant or a parameter; *e has no list. */
bool words_value(const struct words *w, uint32_t i, struct qcache_equal *e);

/* What is said in conditions from `from` up to `to`, all of which hold: added to *out. */
void words_conditions(const struct words *w, uint32_t from, uint32_t to, struct qcache_row *out);

#endif
