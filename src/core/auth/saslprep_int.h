/* SPDX-License-Identifier: PostgreSQL
 * saslprep_int.h: normalisation for saslprep.c, and the shapes of the generated tables. */
#ifndef PGP_AUTH_SASLPREP_INT_H
#define PGP_AUTH_SASLPREP_INT_H

#include <stddef.h>
#include <stdint.h>

enum char_class {
    CLASS_FREE,
    CLASS_S, /* a space that is not ASCII: becomes one that is (C.1.2) */
    CLASS_N, /* becomes nothing (B.1) */
    CLASS_P, /* prohibited (C.2 to C.9) or not assigned in Unicode 3.2 (A.1) */
    CLASS_R, /* written from right to left (D.1) */
    CLASS_L  /* written from left to right (D.2) */
};

struct class_run {
    uint32_t first;
    uint32_t last;
    enum char_class class;
};

struct code_run {
    uint32_t first;
    uint32_t last;
    uint32_t value; /* of `first`; targets go up with the code, combining classes do not */
};

/* Where the characters are in the pool that `code` becomes. */
struct multi_code {
    uint32_t code;
    uint16_t at;
    uint8_t n;
};

struct code_pair {
    uint32_t a;
    uint32_t b;
    uint32_t whole;
};

#define NFKC_GROWTH_MAX 18 /* the longest decomposition of one character */

/* Puts `in` into normalisation form KC. `out` has room for n * NFKC_GROWTH_MAX; returns how many
 * were written. Knows the characters that stringprep lets through. */
size_t nfkc_normalize(const uint32_t *in, size_t n, uint32_t *out);

#endif
