/* SPDX-License-Identifier: PostgreSQL
 * fingerprint.c: what a text is but for its literals, by the scanner alone.
 * Runs in: workers, for every statement: the way to facts without parsing. Key words count by their
 * number, names by their folded text, literals by their sort, and a run of literals in an IN list
 * counts once. Everything that can change a fact must be mixed in. */
#include "config.h"

#include "base/arena.h"
#include "base/hash.h"
#include "fingerprint.h"
#include "fingerprint_int.h"

#include <string.h>

int sqlfp_scan(struct sqlp *st, struct sqlfp *fp)
{
    struct sqlfp_held held = {SQLFP_LIST_NONE, 0};
    struct sql_tok v;
    int token;

    sqlfp_start(fp);
    while ((token = sqlscan_token(&v, st->scanner)) != 0) {
        if (token == SQLP_BROKEN)
            return -1;
        if (sqlfp_put_token(fp, &held, token, &v) && (token == IDENT || token == UIDENT))
            sqlfp_put_name(fp, &v, sqlp_word_bytes(st, &v));
    }
    return 0;
}

int sqlfp_text(struct arena *a, struct slice text, bool by_scanner, struct sqlfp *fp)
{
    struct arena_mark mark = arena_mark(a);
    struct sqlp st;
    const char *copy;
    int rc = -1;

    if (text.n >= UINT32_MAX / 4)
        return -1;
    copy = sqlp_copy_text(a, text);
    if (copy != NULL && !by_scanner && sqlfp_plain(copy, text.n, fp, NULL)) {
        arena_release(a, mark);
        return 0;
    }
    memset(&st, 0, sizeof(st));
    st.arena = a;
    st.text = text.p;
    st.size = (uint32_t)text.n;
    st.in_stmt = true; /* comments are of no interest */
    st.base = copy;
    if (copy != NULL && memchr(copy, '\0', text.n) == NULL && sqlscan_open(&st) == 0)
        rc = sqlfp_scan(&st, fp);
    arena_release(a, mark);
    return rc;
}

int sql_fingerprint(struct arena *a, struct slice text, struct sql_fingerprint *out)
{
    struct sqlfp fp = {.seed = 0};

    if (sqlfp_text(a, text, false, &fp) == -1)
        return -1;
    *out = fp.sum;
    return 0;
}
