/* SPDX-License-Identifier: PostgreSQL
 * fingerprint_plain.c: fingerprints of plain text without the scanner.
 * Runs in: workers, for every statement. Most statements are made of ASCII words, decimal numbers,
 * simple strings, parameters and operators of one or two characters. Those are cut here, without
 * flex, to the very tokens the scanner would give; at the first thing that is not so simple this
 * gives up and the scanner does it. Never guesses: what is accepted here must be read the same way
 * by scan.l, which a test checks on the whole corpus. The text is followed by NULs
 * (sqlp_copy_text), so that no loop has to look for its end and 24 bytes of any word can be read.
 */
#include "config.h"

#include <string.h>

#include "fingerprint_int.h"

/* The state of a cut. A step returns a token, 0 at the end, NOT_PLAIN. */
struct plain {
    const char *base;
    const char *end;
    const char *at;
    struct kw_key word; /* the word just cut, folded; when it has no more than 24 bytes */
};

#define NOT_PLAIN (-1)

/* Kinds of characters; those of a word are bits. */
#define OTHER  0
#define LETTER 1
#define DIGIT  2
#define DOLLAR 4
#define HIGH   8 /* not ASCII */
#define WORD   (LETTER | DIGIT | DOLLAR)
#define JOINED (WORD | HIGH) /* must not follow a number or a parameter */
#define SPACE  16
#define SIGN   32
#define PUNCT  64
#define QUOTE  128

static const unsigned char kinds[256] = {['\t'] = SPACE,
    ['\n'] = SPACE,
    ['\v'] = SPACE,
    ['\f'] = SPACE,
    ['\r'] = SPACE,
    [' '] = SPACE,
    ['_'] = LETTER,
    ['a' ... 'z'] = LETTER,
    ['A' ... 'Z'] = LETTER,
    ['0' ... '9'] = DIGIT,
    ['$'] = DOLLAR,
    [0x80 ... 0xff] = HIGH,
    ['~'] = SIGN,
    ['!'] = SIGN,
    ['@'] = SIGN,
    ['#'] = SIGN,
    ['^'] = SIGN,
    ['&'] = SIGN,
    ['|'] = SIGN,
    ['`'] = SIGN,
    ['?'] = SIGN,
    ['+'] = SIGN,
    ['-'] = SIGN,
    ['*'] = SIGN,
    ['/'] = SIGN,
    ['%'] = SIGN,
    ['<'] = SIGN,
    ['>'] = SIGN,
    ['='] = SIGN,
    [','] = PUNCT,
    ['('] = PUNCT,
    [')'] = PUNCT,
    ['['] = PUNCT,
    [']'] = PUNCT,
    [';'] = PUNCT,
    ['.'] = PUNCT,
    [':'] = PUNCT,
    ['\''] = QUOTE,
    ['"'] = QUOTE};

static inline unsigned kind_of(char c)
{
    return kinds[(unsigned char)c];
}

/* The token from `p` to `end`: the next one begins there. */
static inline void set_tok(struct plain *s, struct sql_tok *v, const char *p, const char *end)
{
    s->at = end;
    v->p = p;
    v->n = (uint32_t)(end - p);
    v->off = (uint32_t)(p - s->base);
    v->end = v->off + v->n;
    v->flags = 0;
}

static inline int cut_word(struct plain *s, struct sql_tok *v, const char *p)
{
    const char *q = p + 1;

    while ((kind_of(*q) & WORD) != 0)
        q++;
    if (kind_of(*q) == HIGH)
        return NOT_PLAIN;
    set_tok(s, v, p, q);
    if (v->n == 1 && (*q == '\'' || *q == '&')) /* E'', B'', X'', N'', U&'' */
        return NOT_PLAIN;
    if (v->n > sizeof s->word.w)
        return IDENT;
    kw_fold(p, v->n, &s->word);
    return v->n == 1 || v->n > KW_MAX_LEN ? IDENT : sqlscan_keyword(&s->word);
}

static int cut_number(struct plain *s, struct sql_tok *v, const char *p)
{
    const char *q = p + 1;
    bool has_point;

    while (kind_of(*q) == DIGIT)
        q++;
    has_point = *q == '.';
    if (has_point)
        for (q++; kind_of(*q) == DIGIT; q++)
            ;
    if (*q == '.' || (kind_of(*q) & JOINED) != 0)
        return NOT_PLAIN;
    set_tok(s, v, p, q);
    if (has_point)
        return FCONST;
    return v->n < SQLFP_INT_DIGITS || sqlp_int(v) <= INT32_MAX ? ICONST : FCONST;
}

/* Operators of one character, and of two where they cannot be read otherwise. */
static int cut_sign(struct plain *s, struct sql_tok *v, const char *p)
{
    bool is_pair = kind_of(p[1]) == SIGN;

    if (is_pair && kind_of(p[2]) == SIGN)
        return NOT_PLAIN;
    set_tok(s, v, p, p + 1 + is_pair);
    if (!is_pair)
        return *p == '=' || strchr("+-*/%^<>", *p) != NULL ? *p : OP;
    if (p[1] == '=' && (*p == '<' || *p == '>'))
        return *p == '<' ? LESS_EQUALS : GREATER_EQUALS;
    if ((p[1] == '>' && *p == '<') || (p[1] == '=' && *p == '!'))
        return NOT_EQUALS;
    if ((p[1] == '|' && *p == '|') || (p[1] == '>' && *p == '-'))
        return OP;
    return NOT_PLAIN;
}

static inline int cut_punct(struct plain *s, struct sql_tok *v, const char *p)
{
    bool is_cast = *p == ':' && p[1] == ':';

    if ((*p == ':' && !is_cast) || (*p == '.' && (kind_of(p[1]) == DIGIT || p[1] == '.')))
        return NOT_PLAIN;
    set_tok(s, v, p, p + 1 + is_cast);
    return is_cast ? TYPECAST : *p;
}

/* Where the string or the quoted name that begins at `p` ends; NULL when it does not. A doubled
 * quote is part of it. */
static const char *quoted_end(const struct plain *s, const char *p)
{
    const char *q = p + 1;

    for (;;) {
        q = memchr(q, *p, (size_t)(s->end - q));
        if (q == NULL || q[1] != *p)
            break;
        q += 2;
    }
    return q == NULL || memchr(p, '\0', (size_t)(q - p)) != NULL ? NULL : q + 1;
}

static int cut_string(struct plain *s, struct sql_tok *v, const char *p)
{
    const char *end = quoted_end(s, p);
    const char *q = end;

    if (end == NULL)
        return NOT_PLAIN;
    while (kind_of(*q) == SPACE)
        q++;
    if (*q == '\'' || *q == '-') /* another piece may follow, behind a comment perhaps */
        return NOT_PLAIN;
    set_tok(s, v, p, end);
    return SCONST;
}

static int cut_quoted_name(struct plain *s, struct sql_tok *v, const char *p)
{
    const char *end = quoted_end(s, p);

    if (end == NULL || end == p + 2)
        return NOT_PLAIN;
    set_tok(s, v, p, end);
    v->p++;
    v->n -= 2;
    v->flags = TOK_QUOTED;
    return IDENT;
}

static int cut_param(struct plain *s, struct sql_tok *v, const char *p)
{
    const char *q = p + 1;

    while (kind_of(*q) == DIGIT)
        q++;
    if (q == p + 1 || (kind_of(*q) & JOINED) != 0)
        return NOT_PLAIN;
    set_tok(s, v, p, q);
    return PARAM;
}

static inline int cut(struct plain *s, struct sql_tok *v)
{
    const char *p = s->at;

    while (kind_of(*p) == SPACE)
        p++;
    switch (kind_of(*p)) {
    case LETTER:
        return cut_word(s, v, p);
    case DIGIT:
        return cut_number(s, v, p);
    case SIGN:
        return cut_sign(s, v, p);
    case PUNCT:
        return cut_punct(s, v, p);
    case QUOTE:
        return *p == '"' ? cut_quoted_name(s, v, p) : cut_string(s, v, p);
    case DOLLAR:
        return cut_param(s, v, p);
    default:
        return p == s->end ? 0 : NOT_PLAIN;
    }
}

/* Notes where a literal is that another may stand for. */
static void note_gap(struct sqlfp_gaps *gaps, int token, const struct sql_tok *v)
{
    bool is_string = token == SCONST;
    struct sqlfp_gap *gap = &gaps->gap[gaps->n];

    if (!is_string && (token != ICONST || v->n >= SQLFP_INT_DIGITS))
        return;
    if (++gaps->n > SQL_MOULD_GAPS)
        gaps->n = SQL_MOULD_GAPS + 1;
    else
        *gap = (struct sqlfp_gap){(uint16_t)v->off, (uint16_t)v->n, is_string};
}

bool sqlfp_plain(const char *base, size_t n, struct sqlfp *out, struct sqlfp_gaps *gaps)
{
    struct sqlfp_held held = {SQLFP_LIST_NONE, 0};
    struct sqlfp fp = {.seed = out->seed};
    struct plain s = {.base = base, .end = base + n, .at = base};
    struct sql_tok v;
    int token;

    sqlfp_start(&fp);
    if (gaps != NULL)
        gaps->n = 0;
    while ((token = cut(&s, &v)) > 0) {
        if (gaps != NULL)
            note_gap(gaps, token, &v);
        if (!sqlfp_put_token(&fp, &held, token, &v) || token != IDENT)
            continue;
        if (v.flags == 0 && v.n <= sizeof s.word.w)
            sqlfp_put_word(&fp, &s.word, v.n, false);
        else
            sqlfp_put_name(&fp, &v, v.p);
    }
    *out = fp;
    return token == 0;
}
