/* SPDX-License-Identifier: PostgreSQL
 * sql_mould.h: fingerprints of texts that differ from one seen before in the values of their
 * literals only. Runs in: workers, one table in each cache of facts. A mould is such a text with
 * gaps where its short numbers and simple strings are; to see that a text fits takes a comparison
 * of bytes where a fingerprint takes a look at every character. Bounded, and nothing is allocated.
 */
#ifndef PGP_PARSER_SQL_MOULD_H
#define PGP_PARSER_SQL_MOULD_H

#include <stdbool.h>

#include "base/arena.h"
#include "fingerprint.h"
#include "parser/sql_cache.h"

/* Longer texts have no mould, and shorter ones: so many bytes choose the set. */
#define SQL_MOULD_TEXT_BYTES 320
#define SQL_MOULD_HEAD_BYTES 16
#define SQL_MOULD_GAPS       12
#define SQL_MOULD_SETS       64
#define SQL_MOULD_WAYS       4
/* Once so many texts of a set fitted none, only every so manyth of them is made one. */
#define SQL_MOULD_PATIENCE 16

/* Where a literal is: a number of up to nine digits, or a string with its quotes. */
struct sqlfp_gap {
    uint16_t off;
    uint16_t len;
    bool is_string;
};

struct sqlfp_gaps {
    unsigned n; /* more than SQL_MOULD_GAPS: not all are here */
    struct sqlfp_gap gap[SQL_MOULD_GAPS];
};

struct sql_mould {
    uint16_t n; /* of text; 0: none */
    uint32_t note[SQL_CACHE_NOTES];
    struct sqlfp fp;
    struct sqlfp_gaps gaps;
    char text[SQL_MOULD_TEXT_BYTES];
};

struct sql_mould_set {
    uint32_t missed;
    struct sql_mould way[SQL_MOULD_WAYS];
};

struct sql_moulds {
    struct sql_mould_set sets[SQL_MOULD_SETS];
};

/* The set that `text` would be in; NULL: it can have no mould. */
struct sql_mould_set *sql_mould_set_of(struct sql_moulds *m, struct slice text);
/* The mould that `text` fits, or NULL. Its fingerprint is that of the text, but for the layout,
 * which is to be XORed with *layout: 0 if all literals are as long as the mould's. */
struct sql_mould *sql_mould_find(struct sql_mould_set *set, struct slice text, uint64_t *layout);
/* Makes a mould of `text` now and then, when it is plain. `fp` is its fingerprint. */
void sql_mould_put(
    struct sql_mould_set *set, struct arena *scratch, struct slice text, const struct sqlfp *fp);

#endif
