/* SPDX-License-Identifier: PostgreSQL
 * share_out.c: reads leave a read-write transaction in transaction mode (decisions/0012). Runs in:
 * workers. BEGIN was answered and not sent: as long as the client only reads, each read runs on a
 * standby by itself, and the client is told that it is in a transaction. With the first statement
 * that may not leave, the transaction begins where writes go, and stays there. Must never: let out
 * what would be answered otherwise inside of the transaction. */
#include "config.h"

#include <string.h>

#include "base/hot.h"
#include "base/mem.h"

#include "share_again_int.h"
#include "share_int.h"

/* One snapshot for all of its reads, by the session's own settings; what its role's are the router
 * knows. */
static bool keeps_snapshot(const struct client *c, const struct sql_tx *tx)
{
    struct slice by_default;

    if (tx->isolation != SQL_ISO_UNSET)
        return tx->isolation != SQL_ISO_READ_COMMITTED && tx->isolation != SQL_ISO_READ_UNCOMMITTED;
    by_default = varset_get(c->share->vars.client, slice_of_str("default_transaction_isolation"));
    return by_default.p != NULL && memmem(by_default.p, by_default.n, "read ", 5) == NULL;
}

WARM void share_out_begun(struct client *c, const struct sql_tx *tx)
{
    struct balance *b = c->balance;
    struct share_leave *leave = &c->share->turn->leave;

    leave->may_go_out = tx->read_only != SQL_YES && leave->sees_commits;
    b->tx_status = 'T';
    b->rs.tx_read_only = tx->read_only == SQL_YES;
    b->rs.tx_says_level = tx->isolation != SQL_ISO_UNSET;
    b->rs.tx_says_repeatable = tx->isolation == SQL_ISO_REPEATABLE_READ;
}

WARM void share_out_begin(struct client *c, const struct sql_tx *tx)
{
    struct share_turn *t = c->share->turn;

    t->leave.was_out = false;
    t->leave.has_read = false;
    c->share->again.what = AGAIN_NO;
    t->leave.needs_snapshot = false;
    t->leave.sees_commits = !keeps_snapshot(c, tx);
    t->leave.may_go_out = false;
    c->kind->begun(c, tx);
}

bool share_out_is_possible(const struct client *c)
{
    return c->share->tx == SHARE_TX_VIRTUAL || c->share->turn->home != NULL;
}

WARM bool share_out_may(const struct client *c, struct slice sql, struct route_decision *d)
{
    const struct share *s = c->share;

    if (!share_out_is_possible(c) || !s->turn->leave.may_go_out || !d->may_leave_tx ||
        d->must_ask || (s->tx != SHARE_TX_VIRTUAL && d->must_wait) ||
        share_text_is_doubtful(c, sql))
        return false;
    d->node = d->leave_node;
    return true;
}

void share_out_note(struct client *c, const struct sql_facts *facts)
{
    struct share_turn *t = c->share->turn;

    t->leave.has_read = t->leave.has_read || route_takes_snapshot(facts);
}

/* Whether the transaction has read matters to what follows in it. */
static bool ends_transaction(const struct sql_facts *facts)
{
    return facts->nstmts == 1 &&
           (facts->stmts->tx.op == SQL_TX_COMMIT || facts->stmts->tx.op == SQL_TX_ROLLBACK);
}

WARM void share_out_ends(struct client *c, const struct sql_facts *facts)
{
    struct share_turn *t = c->share->turn;

    if (share_out_is_possible(c) && t->leave.has_read && !route_takes_snapshot(facts) &&
        !ends_transaction(facts))
        t->leave.needs_snapshot = true;
    if (t->home != NULL)
        t->leave.has_read = false;
}

/* Known only where it was said, or (what gives names another meaning) to the router only when the
 * transaction is over. */
static bool is_kept_home(struct slice setting)
{
    static const char *const word[] = {
        "transaction_", "search_path", "role", "session_authorization"};
    size_t i;

    for (i = 0; i < sizeof word / sizeof word[0]; i++)
        if (setting.n >= strlen(word[i]) && memcmp(setting.p, word[i], strlen(word[i])) == 0)
            return true;
    return false;
}

static bool sets_locally(const struct sql_stmt *st)
{
    uint32_t i;

    if (st->kind == SQL_SET && st->set.scope != SQL_SET_SESSION)
        return true;
    if (st->kind == SQL_SET || st->kind == SQL_RESET)
        return (st->flags & SQL_F_ALL) != 0 || is_kept_home(st->set.name);
    for (i = 0; i < st->nfuncs; i++)
        if (slice_eq_str(st->funcs[i].name, "set_config"))
            return true;
    return false;
}

WARM void share_out_note_home(struct client *c, const struct sql_stmt *st)
{
    if (sets_locally(st))
        c->share->turn->leave.may_go_out = false;
}

void share_out_send(struct client *c)
{
    c->link->ready_as = 'T';
}

/* Failed, until the client rolls back. */
void share_out_fail(struct share *s)
{
    if (s->turn->home != NULL) {
        s->turn->leave.home_fails = true;
        return;
    }
    s->tx = SHARE_TX_LOST;
    buf_empty(&s->turn->begin);
}

void share_out_lost(struct client *c)
{
    if (!c->share->turn->is_out)
        return;
    c->share->turn->is_out = false;
    share_out_fail(c->share);
}
