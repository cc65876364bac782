/* SPDX-License-Identifier: PostgreSQL
 * mask.c: a text without its values, as it is shown of a fingerprint. Runs in: workers, once for
 * each statement that is new. By the scanner alone, as the fingerprint: what it takes for a literal
 * is replaced, so that no value is ever left in. */
#include "config.h"

#include "base/arena.h"
#include "base/buf.h"
#include "fingerprint_int.h"

#include <string.h>

struct masking {
    struct buf *out;
    uint32_t last_end; /* of the token before */
    uint32_t nparams;  /* numbers given so far */
    bool is_in_list;   /* ", ..." was put */
    uint32_t end;      /* of what was put, without the semicolons behind it */
};

static int64_t number_of(const struct sql_tok *v, const char *base)
{
    int64_t n = 0;
    uint32_t i;

    for (i = v->off + 1; i < v->end && n < INT32_MAX; i++)
        n = n * 10 + (base[i] - '0');
    return n;
}

/* Opens a scan of st->base; false when there is no memory. */
static bool open_scan(struct sqlp *st, struct arena *a, struct slice text)
{
    memset(st, 0, sizeof *st);
    st->arena = a;
    st->text = text.p;
    st->size = (uint32_t)text.n;
    st->in_stmt = true; /* comments are of no interest */
    st->base = sqlp_copy_text(a, text);
    return st->base != NULL && sqlscan_open(st) == 0;
}

/* The largest number of a parameter; -1: it cannot be read. */
static int64_t largest_param(struct arena *a, struct slice text)
{
    int64_t largest = 0;
    struct sql_tok v;
    struct sqlp st;
    int token;

    if (!open_scan(&st, a, text))
        return -1;
    while ((token = sqlscan_token(&v, st.scanner)) != 0) {
        if (token == SQLP_BROKEN)
            return -1;
        if (token == PARAM && number_of(&v, text.p) > largest)
            largest = number_of(&v, text.p);
    }
    return largest;
}

/* What stands between two tokens is a blank or nothing. */
static void put_gap(struct masking *m, const struct sql_tok *v)
{
    if (m->out->len > 0 && v->off > m->last_end)
        buf_put_byte(m->out, ' ');
    m->last_end = v->end;
}

static void put_token(
    struct masking *m, enum sqlfp_list *list, int token, const struct sql_tok *v, const char *text)
{
    struct sqlfp unused = {.seed = 0};
    enum sqlfp_list was = *list;

    if (!sqlfp_step_list(&unused, list, token)) {
        if (*list == SQLFP_LIST_ITEM && !m->is_in_list)
            buf_put(m->out, ", ...", 5);
        m->is_in_list = *list == SQLFP_LIST_ITEM || m->is_in_list;
        m->last_end = v->end;
        return;
    }
    /* What was held back was no more of the list. */
    if (was == SQLFP_LIST_COMMA || was == SQLFP_LIST_SIGN)
        buf_put(m->out, was == SQLFP_LIST_SIGN ? ", -" : ",", was == SQLFP_LIST_SIGN ? 3 : 1);
    m->is_in_list = false;
    put_gap(m, v);
    if (sqlfp_is_literal(token))
        buf_printf(m->out, "$%u", ++m->nparams);
    else
        buf_put(m->out, text + v->off, v->end - v->off);
}

int sql_mask(struct arena *a, struct slice text, size_t max, struct buf *out)
{
    struct arena_mark mark = arena_mark(a);
    enum sqlfp_list list = SQLFP_LIST_NONE;
    struct masking m = {.out = out};
    int64_t largest;
    struct sql_tok v;
    struct sqlp st;
    int token = SQLP_BROKEN;

    buf_clear(out);
    if (text.n >= UINT32_MAX / 4 || memchr(text.p, '\0', text.n) != NULL)
        return -1;
    largest = largest_param(a, text);
    m.nparams = (uint32_t)largest;
    if (largest >= 0 && open_scan(&st, a, text))
        while ((token = sqlscan_token(&v, st.scanner)) != 0 && token != SQLP_BROKEN &&
               out->len < max) {
            put_token(&m, &list, token, &v, text.p);
            if (token != ';')
                m.end = out->len;
        }
    out->len = m.end;
    arena_release(a, mark);
    return token == SQLP_BROKEN ? -1 : 0;
}
