/* SPDX-License-Identifier: PostgreSQL
 * native_compare.c: what the nodes answered, as replicate/agree.h compares it. Runs in: workers. */
#include "config.h"

#include "base/log.h"

#include "native_int.h"

unsigned native_collect(
    struct native *n, unsigned first, struct agree_answer *answers, struct native_leg **legs)
{
    unsigned count = 0;

    for (unsigned k = 0; k < n->nlegs; k++) {
        struct native_leg *leg = &n->leg[(first + k) % n->nlegs];

        if (!leg->did || leg->is_lost)
            continue;
        legs[count] = leg;
        answers[count++] = (struct agree_answer){.node = leg->node,
            .kind = leg->kind,
            .has_tuples = leg->has_tuples,
            .ntuples = leg->ntuples,
            .rows = n->ex.compares ? &leg->rows : NULL,
            .text = buf_slice(&leg->said)};
    }
    return count;
}

void native_log_mismatch(struct native *n, const struct agree_answer *answers, unsigned count,
    const struct agree_result *result)
{
    struct buf text = {0};

    for (unsigned i = 0; i < count; i++) {
        if ((result->minority >> i & 1) == 0)
            continue;
        buf_clear(&text);
        agree_put_log(answers, count, result, i, &text);
        CLIENT_LOG(n->c, LVL_LOG, "%.*s", (int)text.len, text.data);
    }
    buf_free(&text);
}
