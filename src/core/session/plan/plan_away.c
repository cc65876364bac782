/* SPDX-License-Identifier: PostgreSQL
 * plan_away.c: reads leave a read-write transaction in transaction mode (decisions/0012). Runs in:
 * workers. BEGIN was answered and not sent: as long as the client only reads, each read runs on a
 * standby by itself, and the client is told that it is in a transaction. With the first statement
 * that may not leave, the transaction begins where writes go, and stays there. Must never: let out
 * what would be answered otherwise inside of the transaction. */
#include "config.h"

#include <string.h>

#include "base/hot.h"

#include "sstate_int.h"

/* One snapshot for all of its reads, by the session's own settings; what its role's are the router
 * knows. */
static bool keeps_snapshot(const struct client *c, const struct sql_tx *tx)
{
    struct slice by_default;

    if (tx->isolation != SQL_ISO_UNSET)
        return tx->isolation != SQL_ISO_READ_COMMITTED && tx->isolation != SQL_ISO_READ_UNCOMMITTED;
    by_default = varset_get(c->sstate->vars.client, slice_of_str("default_transaction_isolation"));
    return by_default.p != NULL && memmem(by_default.p, by_default.n, "read ", 5) == NULL;
}

WARM void plan_away_begun(struct client *c, const struct sql_tx *tx)
{
    struct plan *b = c->plan;
    struct tx_leave *leave = &c->sstate->errand->leave;

    if (tx->read_only != SQL_YES && leave->rule == TX_SEES_COMMITS)
        leave->rule = TX_READS_LEAVE;
    b->tx_status = 'T';
    b->rs.tx_read_only = tx->read_only == SQL_YES;
    b->rs.tx_isolation = (uint8_t)tx->isolation & 7U;
}

WARM void plan_away_begin(struct client *c, const struct sql_tx *tx)
{
    struct errand *t = c->sstate->errand;

    t->leave.snapshot = PLAN_SNAPSHOT_NONE;
    c->sstate->again.what = AGAIN_NO;
    t->leave.rule = keeps_snapshot(c, tx) ? TX_ONE_SNAPSHOT : TX_SEES_COMMITS;
    c->kind->begun(c, tx);
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

WARM void plan_away_note_home(struct client *c, const struct sql_stmt *st)
{
    if (sets_locally(st))
        tx_leave_no_more(&c->sstate->errand->leave);
}

/* Failed, until the client rolls back. */
void plan_away_fail(struct sstate *s)
{
    if (s->errand->home != NULL) {
        s->tx = SSTATE_TX_FAILS;
        return;
    }
    s->tx = SSTATE_TX_LOST;
    buf_empty(&s->errand->begin);
}

void plan_away_lost(struct client *c)
{
    if (c->sstate->errand->place != PLACE_OUT)
        return;
    c->sstate->errand->place = PLACE_HOME;
    plan_away_fail(c->sstate);
}
