/* SPDX-License-Identifier: PostgreSQL
 * nfkc.c: Unicode normalisation form KC (UAX 15): decompose, put marks in order, compose. */
#include "config.h"

#include "saslprep_int.h"

#include <stdbool.h>
#include <stdlib.h>

#include "saslprep_multi_tab.h"
#include "saslprep_pair_tab.h"
#include "saslprep_single_tab.h"

#define COUNT(a) (sizeof(a) / sizeof(a)[0])

/* Hangul syllables are computed (Unicode standard, section 3.12). */
#define L_BASE  0x1100U
#define V_BASE  0x1161U
#define T_BASE  0x11A7U
#define S_BASE  0xAC00U
#define L_COUNT 19U
#define V_COUNT 21U
#define T_COUNT 28U
#define S_COUNT (L_COUNT * V_COUNT * T_COUNT)

static int run_cmp(const void *key, const void *item)
{
    uint32_t c = *(const uint32_t *)key;
    const struct code_run *r = item;

    return c < r->first ? -1 : c > r->last;
}

static int multi_cmp(const void *key, const void *item)
{
    uint32_t c = *(const uint32_t *)key;
    const struct multi_code *m = item;

    return c < m->code ? -1 : c > m->code;
}

static int pair_cmp(const void *key, const void *item)
{
    const struct code_pair *k = key;
    const struct code_pair *p = item;

    if (k->a != p->a)
        return k->a < p->a ? -1 : 1;
    return k->b < p->b ? -1 : k->b > p->b;
}

static uint32_t combining_class(uint32_t c)
{
    const struct code_run *r =
        bsearch(&c, combining_runs, COUNT(combining_runs), sizeof combining_runs[0], run_cmp);

    return r == NULL ? 0 : r->value;
}

static size_t decompose(uint32_t c, uint32_t *out)
{
    const struct multi_code *m;
    const struct code_run *r;
    size_t i;

    if (c < 0x80) {
        out[0] = c;
        return 1;
    }
    if (c >= S_BASE && c < S_BASE + S_COUNT) {
        out[0] = L_BASE + (c - S_BASE) / (V_COUNT * T_COUNT);
        out[1] = V_BASE + (c - S_BASE) % (V_COUNT * T_COUNT) / T_COUNT;
        out[2] = T_BASE + (c - S_BASE) % T_COUNT;
        return out[2] == T_BASE ? 2 : 3;
    }
    m = bsearch(&c, multi_codes, COUNT(multi_codes), sizeof multi_codes[0], multi_cmp);
    if (m != NULL) {
        for (i = 0; i < m->n; i++)
            out[i] = multi_pool[m->at + i];
        return m->n;
    }
    r = bsearch(&c, single_runs, COUNT(single_runs), sizeof single_runs[0], run_cmp);
    out[0] = r == NULL ? c : r->value + (c - r->first);
    return 1;
}

/* While marks are put in order, the combining class stands above the code: looked up once. */
#define CLASS_SHIFT 24
#define CODE_MASK   0x1fffffU

/* Sorts each run of marks by combining class, keeping the order of equal ones. */
static void order_marks(uint32_t *s, size_t n)
{
    uint32_t c;
    size_t i;
    size_t j;

    for (i = 1; i < n; i++) {
        c = s[i];
        if (c >> CLASS_SHIFT == 0)
            continue;
        for (j = i; j > 0 && s[j - 1] >> CLASS_SHIFT > c >> CLASS_SHIFT; j--)
            s[j] = s[j - 1];
        s[j] = c;
    }
}

/* The character that `a` and `b` make together, or 0. */
static uint32_t compose_pair(uint32_t a, uint32_t b)
{
    struct code_pair key = {a, b, 0};
    const struct code_pair *p;

    if (a >= L_BASE && a < L_BASE + L_COUNT && b >= V_BASE && b < V_BASE + V_COUNT)
        return S_BASE + ((a - L_BASE) * V_COUNT + (b - V_BASE)) * T_COUNT;
    if (a >= S_BASE && a < S_BASE + S_COUNT && (a - S_BASE) % T_COUNT == 0 && b > T_BASE &&
        b < T_BASE + T_COUNT)
        return a + (b - T_BASE);
    p = bsearch(&key, code_pairs, COUNT(code_pairs), sizeof code_pairs[0], pair_cmp);
    return p == NULL ? 0 : p->whole;
}

/* Composes in place; returns the new length. A mark joins the last starter unless another mark of
 * its class or higher stands between them. */
static size_t compose(uint32_t *s, size_t n)
{
    size_t starter = 0;
    size_t kept = 0;
    size_t i;
    uint32_t last_class = 0;
    uint32_t class;
    uint32_t whole;
    uint32_t c;
    bool has_starter = false;

    for (i = 0; i < n; i++) {
        class = s[i] >> CLASS_SHIFT;
        c = s[i] & CODE_MASK;
        whole = 0;
        if (has_starter && (kept == starter + 1 || last_class < class))
            whole = compose_pair(s[starter], c);
        if (whole != 0) {
            s[starter] = whole;
            continue;
        }
        if (class == 0) {
            starter = kept;
            has_starter = true;
        }
        last_class = class;
        s[kept++] = c;
    }
    return kept;
}

size_t nfkc_normalize(const uint32_t *in, size_t n, uint32_t *out)
{
    size_t used = 0;
    size_t i;

    for (i = 0; i < n; i++)
        used += decompose(in[i], out + used);
    for (i = 0; i < used; i++)
        out[i] |= combining_class(out[i]) << CLASS_SHIFT;
    order_marks(out, used);
    return compose(out, used);
}
