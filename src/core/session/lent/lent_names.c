/* SPDX-License-Identifier: PostgreSQL
 * lent_names.c: what a client's link has said is handed to its names, which know no link. Runs in:
 * workers. */
#include "config.h"

#include "base/hot.h"

#include "client_int.h"
#include "sstate_int.h"

HOT static struct names_heard heard_of(const struct client *c)
{
    return (struct names_heard){.preps = c->link == NULL ? NULL : &c->link->preps,
        .tx_status = c->link == NULL ? 'I' : c->link->tx_status};
}

HOT void lent_names_push(struct client *c, enum names_pending_kind kind, struct prep *prep,
    struct names_entry *name, bool sent)
{
    names_pending_push(
        &c->sstate->errand->way, kind, prep, name, sent, expect_next_serial(&c->link->expect));
}

HOT void lent_names_unnamed(struct client *c, struct prep *prep)
{
    names_pending_unnamed(
        &c->sstate->errand->way, prep, expect_next_serial(&c->link->expect), c->link->epoch);
}

void lent_names_word(struct client *c, struct names_entry *entry)
{
    struct errand *t = c->sstate->errand;

    t->op_flags |= OP_TAGS;
    names_word_push(&t->way, entry, expect_next_serial(&c->link->expect), t->string.at);
}

bool lent_names_on_tag(struct client *c, uint32_t serial, int at)
{
    struct errand *t = c->sstate->errand;

    if (t->way.words != NULL && t->way.npending > 0)
        lent_names_settle_told(c, c->link);
    return names_note_tag(&t->way, &c->link->preps, serial, at);
}

void lent_names_undo(struct client *c)
{
    const struct names_heard heard = heard_of(c);
    uint64_t worked;
    unsigned n = expect_take_notes(&c->link->expect, &worked);

    names_undo_first(&c->sstate->errand->way, &heard, n, worked);
}

void lent_names_settle_told(struct client *c, struct link *link)
{
    const struct names_heard heard = heard_of(c);
    uint64_t worked;
    unsigned n = expect_take_notes(&link->expect, &worked);

    names_settle_first(&c->sstate->errand->way, &heard, n, worked);
}

HOT void lent_names_settle(struct client *c)
{
    struct sstate *s = c->sstate;
    struct names_way *w = &s->errand->way;
    struct names_heard heard;
    uint64_t worked = 0;
    unsigned n = UINT32_MAX;

    if (names_are_settled(w) && c->link != NULL && c->link->expect.nnotes == 0)
        return; /* mostly */
    /* A Close of ours may have been skipped, also while the Sync is still to come. */
    if (s->loan.doubt == LOAN_CLOSES && s->exchange.saw_error)
        s->loan.doubt = LOAN_MAY_HAVE;
    heard = heard_of(c);
    if (c->link != NULL)
        n = expect_take_notes(&c->link->expect, &worked);
    names_settle_first(w, &heard, n, worked);
    if ((c->link == NULL || expect_is_quiet(&c->link->expect)) && names_forget_words(w, &heard))
        s->loan.doubt = LOAN_MAY_LACK;
}
