/* SPDX-License-Identifier: PostgreSQL
 * saslprep_int.h: normalisation for saslprep.c. */
#ifndef PGP_AUTH_SASLPREP_INT_H
#define PGP_AUTH_SASLPREP_INT_H

#include <stddef.h>
#include <stdint.h>

#define NFKC_GROWTH_MAX 18 /* the longest decomposition of one character */

/* Puts `in` into normalisation form KC. `out` has room for n * NFKC_GROWTH_MAX; returns how many
 * were written. Knows the characters that stringprep lets through. */
size_t nfkc_normalize(const uint32_t *in, size_t n, uint32_t *out);

#endif
