/* SPDX-License-Identifier: PostgreSQL
 * hba_load.c: pool_hba.conf as a whole: all of it is right, or none of it is used. */
#include "config.h"

#include "auth/hba.h"

#include "base/mem.h"
#include "hba_int.h"

static struct hba *finish(struct hba_lex *lx, const char *name)
{
    struct hba *h = mem_alloc_zero(sizeof *h);
    struct hba_line **last = &h->first;
    const struct hba_raw *raw;

    for (raw = lx->first; raw != NULL; raw = raw->next) {
        *last = hba_line_read(lx, raw);
        if (*last == NULL)
            continue;
        last = &(*last)->next;
        h->count++;
    }
    if (h->count == 0 && lx->nerrors == 0)
        hba_complain(lx, name, 0, "the file contains no entries");
    h->arena = lx->arena;
    if (lx->nerrors > 0)
        hba_free(&h);
    return h;
}

struct hba *hba_load(const char *path, unsigned flags, hba_report_fn *report, void *ctx)
{
    struct hba_lex lx;

    hba_lex_init(&lx, flags, report, ctx);
    hba_lex_file(&lx, path);
    return finish(&lx, path);
}

struct hba *hba_parse(
    const char *name, struct slice text, unsigned flags, hba_report_fn *report, void *ctx)
{
    struct hba_lex lx;

    hba_lex_init(&lx, flags, report, ctx);
    hba_lex_text(&lx, name, text);
    return finish(&lx, name);
}

void hba_free(struct hba **hp)
{
    struct hba *h = *hp;

    if (h == NULL)
        return;
    arena_free(&h->arena);
    mem_free(h);
    *hp = NULL;
}

unsigned hba_count(const struct hba *h)
{
    return h->count;
}
