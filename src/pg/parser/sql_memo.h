/* SPDX-License-Identifier: PostgreSQL
 * sql_memo.h: fingerprints of texts that come again and again, letter by letter, as those of
 * prepared statements do. Runs in: workers, one in each cache of facts. Bounded; a text is kept
 * when it comes for the second time, so that texts with their values in them cost next to nothing.
 */
#ifndef PGP_PARSER_SQL_MEMO_H
#define PGP_PARSER_SQL_MEMO_H

#include <stdbool.h>

#include "fingerprint.h"
#include "parser/sql_cache.h"

/* Longer texts are not kept. */
#define SQL_MEMO_TEXT_BYTES 1024
#define SQL_MEMO_SLOTS      512
/* How often a text must have come to be kept. A client that has to wait makes it look twice. */
#define SQL_MEMO_TIMES 3

struct sql_memo_slot {
    uint64_t hash; /* of the text seen last; kept or not */
    char *text;    /* kept, or NULL */
    uint32_t n;
    uint32_t seen; /* how often it came */
    struct sqlfp fp;
    uint32_t note[SQL_CACHE_NOTES];
};

struct sql_memo {
    struct sql_memo_slot slots[SQL_MEMO_SLOTS];
};

/* A text that is looked for: made by sql_memo_find for sql_memo_put. */
struct sql_memo_key {
    struct slice text;
    uint64_t hash;
    struct sql_memo_slot *slot; /* NULL: too long */
};

/* Where the fingerprint of `text` is, or NULL when it is not known. */
struct sql_memo_slot *sql_memo_find(
    struct sql_memo *m, struct slice text, struct sql_memo_key *key);
/* Says what it is. */
void sql_memo_put(const struct sql_memo_key *key, const struct sqlfp *fp);
/* Frees what is kept. */
void sql_memo_clear(struct sql_memo *m);

#endif
