/* SPDX-License-Identifier: PostgreSQL
 * sql_mould.c: texts with gaps. Runs in: workers.
 *
 * Why a text that fits has the same tokens: in plain text (fingerprint_plain.c) where a token ends
 * depends on what stands before it, itself and the few characters that follow. Those are the same;
 * a run of one to nine digits is a number that fits int4, whichever they are; and a string ends at
 * the first quote, for the character that follows is that of the mould, which is no quote. */
#include "config.h"

#include <string.h>

#include "base/hash.h"
#include "base/hot.h"
#include "fingerprint_int.h"
#include "sql_mould.h"

HOT struct sql_mould_set *sql_mould_set_of(struct sql_moulds *m, struct slice text)
{
    uint64_t head[2];

    if (text.n < SQL_MOULD_HEAD_BYTES || text.n > SQL_MOULD_TEXT_BYTES)
        return NULL;
    memcpy(head, text.p, sizeof head);
    return &m->sets[(sqlfp_fold_mul(head[0] ^ SQLFP_MUL_LO, head[1] ^ SQLFP_MUL_HI) >> 7) %
                    SQL_MOULD_SETS];
}

/* The end of the literal that begins at `p`; NULL: there is none of the gap's kind. */
static const char *literal_end(const struct sqlfp_gap *gap, const char *p, const char *end)
{
    const char *q = p;

    if (gap->is_string) {
        if (p == end || *p != '\'')
            return NULL;
        q = memchr(p + 1, '\'', (size_t)(end - p - 1));
        return q == NULL || memchr(p, '\0', (size_t)(q - p)) != NULL ? NULL : q + 1;
    }
    while (q < end && *q >= '0' && *q <= '9')
        q++;
    return q == p || q - p >= SQLFP_INT_DIGITS ? NULL : q;
}

HOT static bool fits(const struct sql_mould *m, struct slice text, uint64_t *layout)
{
    const char *p = text.p;
    const char *end = p + text.n;
    const char *q;
    const struct sqlfp_gap *gap;
    unsigned at = 0; /* in the mould */
    unsigned i;
    unsigned n;

    *layout = 0;
    for (i = 0; i < m->gaps.n; i++) {
        gap = &m->gaps.gap[i];
        n = gap->off - at;
        if ((size_t)(end - p) < n || memcmp(p, m->text + at, n) != 0)
            return false;
        p += n;
        q = literal_end(gap, p, end);
        if (q == NULL)
            return false;
        if (q - p != gap->len)
            *layout =
                sqlfp_fold_mul(*layout ^ ((uint64_t)i << 32 | (uint64_t)(q - p)), SQLFP_MUL_HI);
        p = q;
        at += n + gap->len;
    }
    n = m->n - at;
    return (size_t)(end - p) == n && memcmp(p, m->text + at, n) == 0;
}

HOT struct sql_mould *sql_mould_find(struct sql_mould_set *set, struct slice text, uint64_t *layout)
{
    unsigned i;

    for (i = 0; i < SQL_MOULD_WAYS; i++)
        if (set->way[i].n != 0 && fits(&set->way[i], text, layout))
            return &set->way[i];
    return NULL;
}

/* Not every text is tried, for those that are not plain are tried in vain. */
static struct sql_mould *place_for_new(struct sql_mould_set *set)
{
    unsigned i;

    if (++set->missed > SQL_MOULD_PATIENCE && set->missed % SQL_MOULD_PATIENCE != 0)
        return NULL;
    for (i = 0; i < SQL_MOULD_WAYS; i++)
        if (set->way[i].n == 0)
            return &set->way[i];
    return &set->way[set->missed / SQL_MOULD_PATIENCE % SQL_MOULD_WAYS];
}

void sql_mould_put(
    struct sql_mould_set *set, struct arena *scratch, struct slice text, const struct sqlfp *fp)
{
    struct sql_mould *m = place_for_new(set);
    struct arena_mark mark;
    const char *copy;
    struct sqlfp own = {.seed = fp->seed};

    if (m == NULL)
        return;
    m->n = 0;
    mark = arena_mark(scratch);
    copy = sqlp_copy_text(scratch, text);
    if (copy != NULL && sqlfp_plain(copy, text.n, &own, &m->gaps) && m->gaps.n <= SQL_MOULD_GAPS) {
        memcpy(m->text, text.p, text.n);
        m->n = (uint16_t)text.n;
        m->fp = *fp;
        memset(m->note, 0, sizeof m->note);
    }
    arena_release(scratch, mark);
}
