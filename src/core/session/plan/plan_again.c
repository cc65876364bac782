/* SPDX-License-Identifier: PostgreSQL
 * plan_again.c: what of a client's messages may be sent again, elsewhere, when their link dies
 * or refuses them. Runs in: workers. Must never: call such what may have been done, even in part.
 */
#include "config.h"

#include <string.h>

#include "wire/batch.h"

#include "sstate_int.h"

/* What may be done in part, or ends a transaction, although it fails. */
static bool is_whole_sql(struct client *c, struct slice sql, struct route_decision *missing)
{
    const struct sql_facts *facts = plan_facts(c->ss, sql);
    const struct sql_stmt *s = &facts->stmts[0];

    (void)missing;
    return facts->status == SQL_OK && facts->nstmts == 1 && s->kind != SQL_CALL &&
           s->kind != SQL_DO && s->tx.op == SQL_TX_NONE;
}

/* What a simple query commits before it says that it is done. BEGIN does not. */
static bool is_lone_sql(struct client *c, struct slice sql, struct route_decision *missing)
{
    const struct sql_facts *facts = plan_facts(c->ss, sql);

    (void)missing;
    if (sstate_text_is_doubtful(c, sql))
        return false;
    return facts->status == SQL_OK && facts->nstmts <= 1 &&
           (facts->nstmts == 0 || facts->stmts[0].tx.op == SQL_TX_NONE);
}

bool plan_reads(struct client *c, struct slice sql)
{
    struct route_decision d;

    (void)plan_decide(c, sql, &d);
    return d.class == ROUTE_EITHER && !d.must_ask && !d.is_doubtful;
}

/* `sql` reads, and nothing but that, if what is `missing` does. */
static bool is_read_sql(struct client *c, struct slice sql, struct route_decision *missing)
{
    const struct sql_facts *facts = plan_facts(c->ss, sql);

    if (facts->status != SQL_OK || facts->nstmts != 1 || sstate_text_is_doubtful(c, sql) ||
        (!route_is_plain_read(facts) && !c->kind->reads(c, sql)))
        return false;
    facts = plan_facts(c->ss, sql);
    return route_views_read(&facts->stmts[0], c->kind->relation, c, missing);
}

typedef bool judge_fn(struct client *c, struct slice sql, struct route_decision *missing);

/* What is sent as a whole. */
struct again {
    struct slice msgs;
    judge_fn *judge;
    struct route_decision *missing;
};

/* A statement that is parsed among the messages is judged there. */
static bool is_parsed_here(const struct again *a, struct slice name)
{
    const char *p = a->msgs.p;
    struct batch_msg m;

    while (batch_next(&p, a->msgs.p + a->msgs.n, &m))
        if (m.type == FE_PARSE && prep_is_same_name(m.name, name))
            return true;
    return false;
}

/* The statement that a Bind names, as it was when it was parsed. */
static bool judge_named(struct client *c, const struct again *a, struct slice name)
{
    const struct names_entry *n;

    if (is_parsed_here(a, name))
        return true;
    if (name.n == 0)
        return c->sstate->names.unnamed != NULL &&
               a->judge(c, prep_sql(c->sstate->names.unnamed), a->missing);
    n = names_find(&c->sstate->names, name);
    return n != NULL && n->prep != NULL && a->judge(c, prep_sql(n->prep), a->missing);
}

static bool judge_message(struct client *c, const struct again *a, const struct batch_msg *m)
{
    switch (m->type) {
    case FE_QUERY:
    case FE_PARSE:
        return !m->is_bad && a->judge(c, m->sql, a->missing);
    case FE_BIND:
        return !m->is_bad && judge_named(c, a, m->name);
    default:
        return true;
    }
}

static bool judge_all(
    struct client *c, struct slice msgs, judge_fn *judge, struct route_decision *missing)
{
    const struct again a = {msgs, judge, missing};
    const char *p = msgs.p;
    struct batch_msg m;

    while (batch_next(&p, msgs.p + msgs.n, &m))
        if (!judge_message(c, &a, &m))
            return false;
    return msgs.n > 0 && p == msgs.p + msgs.n;
}

bool plan_again_is_whole(struct client *c, struct slice msgs)
{
    return judge_all(c, msgs, is_whole_sql, NULL);
}

bool plan_again_is_read(struct client *c, struct slice msgs, struct route_decision *missing)
{
    memset(missing, 0, sizeof *missing);
    return judge_all(c, msgs, is_read_sql, missing);
}

bool plan_again_is_over(struct client *c, const struct link *link, struct slice msgs)
{
    const struct expect *owed = &link->expect;
    struct route_decision missing;

    if (owed->len != 1 || owed->lost || owed->failed || expect_head_is_ours(owed) ||
        link->tx_status != 'I')
        return false;
    if (expect_head(owed) == OP_QUERY)
        return expect_head_has_done(owed) && judge_all(c, msgs, is_lone_sql, NULL);
    return expect_head(owed) == OP_SYNC && plan_again_is_read(c, msgs, &missing) &&
           missing.nquestions == 0;
}

bool plan_owes_client(const struct expect *owed)
{
    unsigned i;

    for (i = 0; i < owed->len; i++)
        if ((expect_peek(owed, i) & OP_SWALLOW) == 0)
            return true;
    return false;
}

void plan_again_join(struct client *c, struct buf *kept, bool is_open)
{
    struct slice rest = buf_slice(&c->carry);
    struct slice unsent =
        is_open ? batch_to_sync(rest.p, rest.p + rest.n, SSTATE_RETRY_MAX) : slice_of("", 0);

    if (unsent.n > 0 && unsent.n <= buf_unread(kept) &&
        memcmp(kept->data + kept->len - unsent.n, unsent.p, unsent.n) == 0)
        kept->len -= (uint32_t)unsent.n;
    buf_put(kept, rest.p, rest.n);
    buf_free(&c->carry);
}
