/* SPDX-License-Identifier: PostgreSQL
 * fingerprint.c: what a text is but for its literals, by the scanner alone.
 * Runs in: workers, for every statement: the way to facts without parsing. Key words count by their
 * number, names by their folded text, literals by their sort, and a run of literals in an IN list
 * counts once. Everything that can change a fact must be mixed in. */
#include "config.h"

#include "base/arena.h"
#include "base/hash.h"
#include "fingerprint.h"
#include "kwfold.h"
#include "sqlgram.h"
#include "sqlp_int.h"

#include <string.h>

#define MUL_LO     0xa0761d6478bd642fULL
#define MUL_HI     0xe7037ed1a0b428dbULL
#define MUL_LAYOUT 0x8ebc6af09c88c6e3ULL

__extension__ typedef unsigned __int128 fp_u128;

static inline uint64_t fold_mul(uint64_t a, uint64_t b)
{
    fp_u128 p = (fp_u128)a * b;

    return (uint64_t)p ^ (uint64_t)(p >> 64);
}

static inline void mix(struct sqlfp *fp, uint64_t w)
{
    fp->sum.lo = fold_mul(fp->sum.lo ^ w, MUL_LO);
    fp->sum.hi = fold_mul(fp->sum.hi + w, MUL_HI);
}

/* Folding by bit 0x20 is exact for unquoted ASCII names only; others are mixed in as they are. */
static void mix_name(struct sqlfp *fp, const struct sqlp *st, const struct sql_tok *v)
{
    const uint64_t high = 0x8080808080808080ULL;
    bool quoted = (v->flags & TOK_QUOTED) != 0;
    struct kw_key key;

    if (v->n > sizeof(key.w)) {
        mix(fp, hash_bytes(v->p, v->n, MUL_LO) ^ quoted);
        mix(fp, hash_bytes(v->p, v->n, MUL_HI));
        return;
    }
    kw_mask(sqlp_word_bytes(st, v), v->n, &key);
    if (!quoted && ((key.w[0] | key.w[1] | key.w[2]) & high) == 0)
        kw_fold(sqlp_word_bytes(st, v), v->n, &key);
    mix(fp, key.w[0] ^ ((uint64_t)v->n << 56) ^ ((uint64_t)quoted << 63));
    if (v->n > 8)
        mix(fp, key.w[1]);
    if (v->n > 16)
        mix(fp, key.w[2]);
}

static bool is_literal(int token)
{
    return token == SCONST || token == ICONST || token == FCONST || token == BCONST ||
           token == XCONST || token == USCONST;
}

/* Where in a list of literals after IN ( the scan is. */
enum list_state {
    LIST_NONE,
    LIST_IN,    /* IN */
    LIST_OPEN,  /* IN ( */
    LIST_ITEM,  /* a literal of the list */
    LIST_COMMA, /* a comma after it, not mixed in yet */
    LIST_SIGN   /* a minus after that, not mixed in either */
};

/* Returns whether the token is to be mixed in; what was held back before it is mixed in first. */
static bool step_list(struct sqlfp *fp, enum list_state *state, int token)
{
    enum list_state was = *state;

    *state = token == K_IN ? LIST_IN : LIST_NONE;
    if (was == LIST_NONE)
        return true;
    if (was == LIST_IN) {
        *state = token == '(' ? LIST_OPEN : LIST_NONE;
        return true;
    }
    if (is_literal(token)) {
        *state = LIST_ITEM;
        return was == LIST_OPEN;
    }
    if (was == LIST_ITEM && token == ',') {
        *state = LIST_COMMA;
        return false;
    }
    if (was == LIST_COMMA && token == '-') {
        *state = LIST_SIGN;
        return false;
    }
    if (was == LIST_OPEN && token == '-') {
        *state = LIST_OPEN;
        return false;
    }
    if (was == LIST_COMMA || was == LIST_SIGN)
        mix(fp, ',');
    if (was == LIST_SIGN)
        mix(fp, '-');
    return true;
}

int sqlfp_scan(struct sqlp *st, struct sqlfp *fp)
{
    enum list_state list = LIST_NONE;
    struct sql_tok v;
    int token;

    fp->sum.lo = MUL_HI ^ fp->seed;
    fp->sum.hi = MUL_LO + fp->seed;
    fp->layout = MUL_LAYOUT;
    while ((token = sqlscan_token(&v, st->scanner)) != 0) {
        if (token == SQLP_BROKEN)
            return -1;
        fp->layout = fold_mul(fp->layout ^ ((uint64_t)v.off << 32 | v.end), MUL_LAYOUT);
        if (!step_list(fp, &list, token))
            continue;
        mix(fp, (uint64_t)token);
        if (token == IDENT || token == UIDENT)
            mix_name(fp, st, &v);
        else if (token == OP || token == PARAM)
            mix(fp, hash_bytes(v.p, v.n, MUL_HI));
    }
    return 0;
}

int sqlfp_text(struct arena *a, struct slice text, struct sqlfp *fp)
{
    struct arena_mark mark = arena_mark(a);
    struct sqlp st;
    int rc = -1;

    memset(&st, 0, sizeof(st));
    st.arena = a;
    st.text = text.p;
    st.size = (uint32_t)text.n;
    st.in_stmt = true; /* comments are of no interest */
    if (text.n >= UINT32_MAX / 4 || (text.n != 0 && memchr(text.p, '\0', text.n) != NULL))
        return -1;
    st.base = sqlp_copy_text(a, text);
    if (st.base != NULL && sqlscan_open(&st) == 0)
        rc = sqlfp_scan(&st, fp);
    arena_release(a, mark);
    return rc;
}

int sql_fingerprint(struct arena *a, struct slice text, struct sql_fingerprint *out)
{
    struct sqlfp fp = {.seed = 0};

    if (sqlfp_text(a, text, &fp) == -1)
        return -1;
    *out = fp.sum;
    return 0;
}
