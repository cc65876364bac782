/* SPDX-License-Identifier: PostgreSQL
 * fingerprint.h: fingerprint and layout of a text, for the cache of facts. Runs in: workers. */
#ifndef PGP_PARSER_FINGERPRINT_H
#define PGP_PARSER_FINGERPRINT_H

#include "parser/parser.h"

struct sqlp;

struct sqlfp {
    struct sql_fingerprint sum;
    uint64_t layout; /* equal when all tokens are at the same places */
    uint64_t seed;   /* given by the caller: a secret one keeps clients from making collisions */
};

/* Fingerprints `text` with memory of `a`, given back; by_scanner: however plain the text is, which
 * makes no difference but the time. -1 for a broken token, a zero byte, or no memory. */
int sqlfp_text(struct arena *a, struct slice text, bool by_scanner, struct sqlfp *fp);
/* Fingerprints the text of a scanner that is open. -1 for a broken token. */
int sqlfp_scan(struct sqlp *st, struct sqlfp *fp);

#endif
