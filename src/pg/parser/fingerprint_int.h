/* SPDX-License-Identifier: PostgreSQL
 * fingerprint_int.h: what goes into a fingerprint, token by token, for both ways to get tokens: the
 * scanner (fingerprint.c) and plain text without it (fingerprint_plain.c). Runs in: workers. */
#ifndef PGP_PARSER_FINGERPRINT_INT_H
#define PGP_PARSER_FINGERPRINT_INT_H

#include "base/hash.h"
#include "fingerprint.h"
#include "kwfold.h"
#include "sqlgram.h"
#include "sql_mould.h"
#include "sqlp_int.h"

/* A number of fewer digits fits int4. */
#define SQLFP_INT_DIGITS 10

#define SQLFP_MUL_LO     0xa0761d6478bd642fULL
#define SQLFP_MUL_HI     0xe7037ed1a0b428dbULL
#define SQLFP_MUL_LAYOUT 0x8ebc6af09c88c6e3ULL

__extension__ typedef unsigned __int128 sqlfp_u128;

static inline uint64_t sqlfp_fold_mul(uint64_t a, uint64_t b)
{
    sqlfp_u128 p = (sqlfp_u128)a * b;

    return (uint64_t)p ^ (uint64_t)(p >> 64);
}

static inline void sqlfp_mix(struct sqlfp *fp, uint64_t w)
{
    fp->sum.lo = sqlfp_fold_mul(fp->sum.lo ^ w, SQLFP_MUL_LO);
    fp->sum.hi = sqlfp_fold_mul(fp->sum.hi + w, SQLFP_MUL_HI);
}

/* A name of up to 24 bytes, folded unless it is quoted. */
static inline void sqlfp_put_word(
    struct sqlfp *fp, const struct kw_key *key, uint32_t n, bool quoted)
{
    sqlfp_mix(fp, key->w[0] ^ ((uint64_t)n << 56) ^ ((uint64_t)quoted << 63));
    if (n > 8)
        sqlfp_mix(fp, key->w[1]);
    if (n > 16)
        sqlfp_mix(fp, key->w[2]);
}

/* Folding by bit 0x20 is exact for unquoted ASCII names only; others are mixed in as they are.
 * 24 bytes are readable at `bytes`, where a short name stands once more. */
static inline void sqlfp_put_name(struct sqlfp *fp, const struct sql_tok *v, const char *bytes)
{
    const uint64_t high = 0x8080808080808080ULL;
    bool quoted = (v->flags & TOK_QUOTED) != 0;
    struct kw_key key;

    if (v->n > sizeof(key.w)) {
        sqlfp_mix(fp, hash_bytes(v->p, v->n, SQLFP_MUL_LO) ^ quoted);
        sqlfp_mix(fp, hash_bytes(v->p, v->n, SQLFP_MUL_HI));
        return;
    }
    kw_mask(bytes, v->n, &key);
    if (!quoted && ((key.w[0] | key.w[1] | key.w[2]) & high) == 0)
        kw_fold(bytes, v->n, &key);
    sqlfp_put_word(fp, &key, v->n, quoted);
}

static inline bool sqlfp_is_literal(int token)
{
    return token == SCONST || token == ICONST || token == FCONST || token == BCONST ||
           token == XCONST || token == USCONST;
}

/* Where in a list of literals after IN ( the scan is. */
enum sqlfp_list {
    SQLFP_LIST_NONE,
    SQLFP_LIST_IN,    /* IN */
    SQLFP_LIST_OPEN,  /* IN ( */
    SQLFP_LIST_ITEM,  /* a literal of the list */
    SQLFP_LIST_COMMA, /* a comma after it, not mixed in yet */
    SQLFP_LIST_SIGN   /* a minus after that, not mixed in either */
};

/* Semicolons are held back, too, until a token follows: those at the end of a text are no part of
 * what it is, however a driver ends its statements. */
struct sqlfp_held {
    enum sqlfp_list list;
    uint32_t nends; /* semicolons */
};

/* Returns whether the token is to be mixed in; what was held back before it is mixed in first. */
static inline bool sqlfp_step_list(struct sqlfp *fp, enum sqlfp_list *state, int token)
{
    enum sqlfp_list was = *state;

    *state = token == K_IN ? SQLFP_LIST_IN : SQLFP_LIST_NONE;
    if (was == SQLFP_LIST_NONE)
        return true;
    if (was == SQLFP_LIST_IN) {
        *state = token == '(' ? SQLFP_LIST_OPEN : SQLFP_LIST_NONE;
        return true;
    }
    if (sqlfp_is_literal(token)) {
        *state = SQLFP_LIST_ITEM;
        return was == SQLFP_LIST_OPEN;
    }
    if (was == SQLFP_LIST_ITEM && token == ',') {
        *state = SQLFP_LIST_COMMA;
        return false;
    }
    if (was == SQLFP_LIST_COMMA && token == '-') {
        *state = SQLFP_LIST_SIGN;
        return false;
    }
    if (was == SQLFP_LIST_OPEN && token == '-') {
        *state = SQLFP_LIST_OPEN;
        return false;
    }
    if (was == SQLFP_LIST_COMMA || was == SQLFP_LIST_SIGN)
        sqlfp_mix(fp, ',');
    if (was == SQLFP_LIST_SIGN)
        sqlfp_mix(fp, '-');
    return true;
}

static inline void sqlfp_start(struct sqlfp *fp)
{
    fp->sum.lo = SQLFP_MUL_HI ^ fp->seed;
    fp->sum.hi = SQLFP_MUL_LO + fp->seed;
    fp->layout = SQLFP_MUL_LAYOUT;
}

/* Mixes a token in, but for a name's text: true when that is to follow. */
static inline bool sqlfp_put_token(
    struct sqlfp *fp, struct sqlfp_held *held, int token, const struct sql_tok *v)
{
    fp->layout = sqlfp_fold_mul(fp->layout ^ ((uint64_t)v->off << 32 | v->end), SQLFP_MUL_LAYOUT);
    if (!sqlfp_step_list(fp, &held->list, token))
        return false;
    if (token == ';') {
        held->nends++;
        return false;
    }
    for (; held->nends > 0; held->nends--)
        sqlfp_mix(fp, ';');
    sqlfp_mix(fp, (uint64_t)token);
    if (token == OP || token == PARAM)
        sqlfp_mix(fp, hash_bytes(v->p, v->n, SQLFP_MUL_HI));
    return true;
}

/* The fingerprint of the `n` bytes at `base`, behind which are 24 NULs, without the scanner. False
 * when there is anything in it that is not plain. The fingerprint is the scanner's. `gaps` (may be
 * NULL) tells where the literals of a text of up to SQL_MOULD_TEXT_BYTES are. */
bool sqlfp_plain(const char *base, size_t n, struct sqlfp *fp, struct sqlfp_gaps *gaps);

#endif
