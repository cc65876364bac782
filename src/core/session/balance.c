/* SPDX-License-Identifier: PostgreSQL
 * balance.c: which of a client's links the next exchange uses.
 * The choice is made at the beginning of an exchange, when nothing is owed on any link: for a
 * simple query by its facts, for a sequence of the extended protocol (balance_batch.c) by the
 * strictest of its messages up to Sync. What cannot be judged goes to the link where the
 * transaction lives: always right, only not balanced. Runs in: workers. */
#include "config.h"

#include <string.h>

#include "base/assert.h"
#include "base/hot.h"
#include "base/log.h"
#include "config/conf.h"

#include "share_int.h"

bool balance_is_quiet(const struct client *c)
{
    return c->link != NULL && expect_is_quiet(&c->link->expect) && c->link->body_left == 0 &&
           c->target == c->link;
}

bool balance_is_quiet_soon(const struct client *c)
{
    return c->link != NULL && c->target == c->link && !c->server_batch && !c->link->expect.lost &&
           c->link->expect.len > 0 && !balance_owes_client(&c->link->expect);
}

/* relcache_query_target: the standby is asked, once it is there. */
static bool asks_reader(struct client *c, const struct route_decision *d)
{
    int node = balance_ask_node(c, d, c->pool->cluster_node);
    struct reader *r;

    if (node == c->pool->cluster_node)
        return false;
    if (balance_open_reader(c, node, &r) == BALANCE_PARK)
        return true;
    if (r == NULL)
        return false;
    r->is_asking = true;
    r->is_synced = r->replayed < c->balance->own->log.len;
    balance_replay(c, r);
    balance_ask(c, r->link, d);
    return true;
}

WARM bool balance_asks(struct client *c, const struct route_decision *d)
{
    struct balance *b = c->balance;

    if (!d->must_ask || b->ask_failed || !balance_is_quiet(c))
        return false;
    /* In the client's own transaction an error of ours would be its error: what is missing is asked
     * when it is over. */
    if (c->link->tx_status != 'I') {
        balance_ask_later(c, d);
        return false;
    }
    b->keeps_random = true;
    if (asks_reader(c, d))
        return true;
    balance_ask(c, c->link, d);
    return true;
}

static const struct sql_stmt *only_statement(const struct sql_facts *facts)
{
    return facts != NULL && facts->status == SQL_OK && facts->nstmts == 1 ? &facts->stmts[0] : NULL;
}

static bool sets_config(const struct sql_facts *facts)
{
    uint32_t i;
    uint32_t k;

    for (i = 0; i < facts->nstmts; i++)
        for (k = 0; k < facts->stmts[i].nfuncs; k++)
            if (slice_eq_str(facts->stmts[i].funcs[k].name, "set_config"))
                return true;
    return false;
}

/* In a transaction that lives on a reader. */
static struct balance_wish wish_at_home(struct client *c, struct slice sql,
    const struct sql_facts *facts, const struct route_decision *d)
{
    const struct sql_stmt *s = only_statement(facts);
    struct balance *b = c->balance;
    struct balance_wish w = {.d = d, .node = b->own->home->node};
    bool is_cursor =
        s != NULL && (s->kind == SQL_DECLARE || s->kind == SQL_FETCH || s->kind == SQL_CLOSE);

    if (s != NULL && s->kind == SQL_DECLARE && (s->flags & SQL_F_WITH_HOLD) != 0)
        b->own->holds_cursors = true; /* it outlives the transaction, and perhaps the reader */
    /* Settings are made where the transaction lives, unless that would not get to the own link. */
    w.sets = sets_config(facts);
    w.stays_home = w.sets && balance_can_repeat_calls(facts, sql);
    w.sets = w.sets && !w.stays_home;
    w.needs_own = (d->leaves_tx && !b->own->tx.is_opaque) || (is_cursor && b->own->holds_cursors) ||
                  (b->own->tx.is_on_own && d->class != ROUTE_TX &&
                      (d->class != ROUTE_SESSION || s == NULL)); /* a string may read, too */
    return w;
}

/* Reads of a read-write transaction may leave it when it could be begun elsewhere just so, and when
 * it does not promise one snapshot for all of them. */
static bool may_leave_tx(const struct client *c, const struct route_decision *d)
{
    const struct balance_own *own = c->balance->own;

    return own != NULL && d->may_leave_tx && !d->must_ask && own->tx.is_known && !own->tx.stays &&
           own->tx.isolation != SQL_ISO_REPEATABLE_READ &&
           own->tx.isolation != SQL_ISO_SERIALIZABLE &&
           !(own->tx.has_savepoint && own->has_portals); /* an error would cost the portals */
}

/* The node was chosen for what it is. While no primary can be used, what may not be read from a
 * standby, and a transaction that may write, have one named for want of it: they stay where the
 * session lives. */
static bool is_chosen(const struct client *c, const struct route_decision *d)
{
    switch (d->reason) {
    case ROUTE_R_BALANCED:
    case ROUTE_R_PREFERENCE:
    case ROUTE_R_LOWER_LAG:
    case ROUTE_R_WAIT:
    case ROUTE_R_READ_ONLY_TX:
    case ROUTE_R_EMPTY:
        return true;
    case ROUTE_R_LAG:
    case ROUTE_R_CONSISTENCY:
        return d->node == c->ss->view.primary;
    default:
        return false;
    }
}

WARM struct balance_wish balance_wish_of(struct client *c, struct slice sql,
    const struct sql_facts *facts, const struct route_decision *d)
{
    const struct sql_stmt *s = only_statement(facts);
    struct balance_wish w = {.d = d, .node = VIEW_NO_NODE};
    char tx = balance_tx_status(c);

    if (balance_home(c) != NULL)
        return wish_at_home(c, sql, facts, d);
    if (tx == 'T' && c->balance->own != NULL && s != NULL &&
        (s->kind == SQL_FETCH || s->kind == SQL_CLOSE) && s->name.n > 0)
        w.at = balance_portal_at(c, s->name);
    if (tx == 'T' && may_leave_tx(c, d))
        w.node = d->leave_node;
    if (tx != 'I' || d->must_ask)
        return w;
    w.begins = d->class == ROUTE_TX && s != NULL && s->kind == SQL_BEGIN && is_chosen(c, d);
    if (w.begins || d->reason == ROUTE_R_BACKEND_PID ||
        (d->class == ROUTE_EITHER && is_chosen(c, d)))
        w.node = d->node;
    if (w.node == c->pool->cluster_node || !conf_has_node(c->ss->conf, w.node))
        w = (struct balance_wish){.d = d, .node = VIEW_NO_NODE};
    return w;
}

HOT void balance_aim(struct client *c, struct reader *r, struct slice msg)
{
    struct balance_own *own = c->balance->own;

    ASSERT(!r->is_asking); /* the end of our question would be taken for that of the client's */
    c->target = r->link;
    own->is_cut = false;
    own->cut_failed = false;
    r->link->hide_parameters = own->home != r; /* a SET in its transaction is the client's */
    if (expect_is_quiet(&r->link->expect))
        r->link->watch_tags = false;
    own->reply_begun = false;
    balance_forget_retry(own);
    if (msg.n <= BALANCE_RETRY_MAX)
        buf_put(&own->retry, msg.p, msg.n);
}

/* The reader is up to date in settings; it becomes the target. */
static void go_reader(struct client *c, struct reader *r, const struct balance_wish *wish)
{
    struct balance *b = c->balance;

    balance_replay(c, r);
    if (wish->begins) {
        b->own->home = r;
        b->own->home_fails = false;
    } else if (balance_tx_status(c) != 'I' && b->own->home != r && wish->at == NULL)
        balance_join_reader(c, r);
    balance_aim(c, r, b->own->home == NULL || wish->begins ? wish->msg : slice_of(NULL, 0));
}

enum balance_verdict balance_find_reader(
    struct client *c, const struct balance_wish *wish, struct reader **rp)
{
    *rp = NULL;
    if (c->balance->wait_is_over)
        return BALANCE_GO;
    if (wish->d->reason != ROUTE_R_BACKEND_PID) {
        if (balance_lacks_lsn(c))
            return BALANCE_GO;
        if (balance_asks_lsn(c))
            return BALANCE_PARK;
    }
    if (balance_open_reader(c, wish->node, rp) == BALANCE_PARK)
        return BALANCE_PARK;
    if (*rp != NULL && (*rp)->is_asking)
        return BALANCE_PARK; /* the input was fed again before it has answered */
    if (*rp == NULL || !wish->d->must_wait)
        return BALANCE_GO;
    balance_wait_begin(c, *rp, wish->d->wait_lsn);
    return BALANCE_PARK;
}

static enum balance_verdict choose_reader(struct client *c, const struct balance_wish *wish)
{
    struct reader *r;
    enum balance_verdict v = balance_find_reader(c, wish, &r);

    if (v == BALANCE_GO && r != NULL)
        go_reader(c, r, wish);
    return v;
}

WARM static enum balance_verdict choose(struct client *c, const struct balance_wish *wish)
{
    struct balance *b = c->balance;

    if (wish->at != NULL) {
        if (!balance_is_quiet(c))
            return BALANCE_PARK;
        go_reader(c, wish->at, wish);
    } else if (b->own->home != NULL) {
        if (!balance_is_quiet(c))
            return BALANCE_PARK; /* the own link is a guest: it finishes first */
        if ((wish->sets || (wish->needs_own && !wish->stays_home)) &&
            !b->tx_failed) /* else the home says so */
            balance_join_own(c);
        else
            go_reader(c, b->own->home, wish);
    } else if (wish->node != VIEW_NO_NODE && balance_is_quiet(c)) {
        return choose_reader(c, wish);
    } else if (wish->node != VIEW_NO_NODE && balance_is_quiet_soon(c)) {
        return BALANCE_PARK; /* where it runs must not depend on which server is faster */
    }
    return BALANCE_GO;
}

WARM enum balance_verdict balance_choose(struct client *c, const struct balance_wish *wish)
{
    struct balance *b = c->balance;

    b->keeps_random = choose(c, wish) == BALANCE_PARK ||
                      (c->target == c->link && sessions_hold(c, wish->d->class));
    if (b->keeps_random)
        return BALANCE_PARK;
    balance_ask_reset(b);
    balance_wait_settle(c);
    return BALANCE_GO;
}

/* Whether the session has it is not known before the answer. */
static bool awaits_settings(const struct balance_own *own)
{
    return own->has_new_setting || (own->tx_end != 0 && own->pending.len > 0);
}

/* The client's input waits for something of ours (a BEGIN is only a warning while the own link's
 * transaction is not over); or for the answer to a setting, or to the end of a transaction with
 * settings: should the link die, the session goes on with them or without. */
HOT bool balance_is_waiting(const struct client *c)
{
    const struct balance *b = c->balance;

    return b->asking != ASKING_NONE || balance_again_is_waiting(c) ||
           ((awaits_settings(b->own) || b->own->own_ends) && !c->server_batch &&
               !balance_is_quiet(c) && (c->link == NULL || !expect_is_stuck(&c->link->expect)));
}

/* A simple query in the middle of an open sequence belongs to the sequence's link. */
static bool is_in_sequence(const struct client *c)
{
    return c->target != c->link && c->server_batch;
}

/* What it does to the session depends on how what is under way ends. */
static bool discards_too_soon(const struct client *c, const struct sql_facts *facts)
{
    return facts->nstmts > 0 && facts->stmts[0].verb == SQL_VERB_DISCARD && !c->server_batch &&
           c->link != NULL && !expect_is_stuck(&c->link->expect) && !balance_is_quiet(c);
}

HOT enum balance_verdict balance_query(
    struct client *c, struct slice sql, struct slice msg, uint32_t *traits)
{
    struct balance *b = c->balance;
    const struct sql_facts *facts;
    struct balance_wish wish;
    struct route_decision d;
    bool is_plain;

    if (balance_is_waiting(c) || (c->target != c->link && !is_in_sequence(c)))
        return BALANCE_PARK;
    facts = balance_facts(c->ss, sql);
    *traits = share_traits(facts, sql);
    is_plain = (*traits & SHARE_IS_PLAIN) != 0;
    if (is_plain && balance_quick_query(c, sql, msg, facts))
        return BALANCE_GO;
    balance_decide_facts(c, sql, facts, &d);
    if (!is_plain && (balance_are_names_undecided(c, facts) || discards_too_soon(c, facts)))
        return BALANCE_PARK;
    statements_remove(c->statements, slice_of("", 0));
    if (!is_in_sequence(c)) {
        if (balance_asks(c, &d))
            return BALANCE_PARK;
        wish = balance_wish_of(c, sql, facts, &d);
        wish.msg = msg;
        if ((d.known == 0 && balance_asks_marks(c, facts)) ||
            balance_choose(c, &wish) == BALANCE_PARK)
            return BALANCE_PARK;
    }
    balance_again_begin(c, msg);
    if (!is_plain)
        balance_need_names(c, facts);
    if (c->target != c->link)
        b->own->tx.has_read = b->own->tx.has_read || route_takes_snapshot(facts);
    if (facts->nstmts > 0 || facts->status != SQL_OK) {
        balance_portals_unnamed(c, false);
        b->own->unnamed_at = NULL; /* no simple query leaves one */
    }
    if (c->target != c->link && b->own->home == NULL)
        return BALANCE_GO; /* a read: nothing to remember */
    balance_tell_own(c, balance_sets_tx(facts));
    b->own->nexchanges++;
    balance_note_write(c, &d);
    balance_note_facts(c, sql, facts, facts->nstmts == 1 ? 0 : STATEMENT_INEXACT);
    balance_note_doubt(c, sql, &d); /* last: the facts are gone */
    return BALANCE_GO;
}

void balance_note_unread(struct client *c)
{
    struct balance *b = c->balance;
    struct route_session *rs = &b->rs;

    rs->state_unknown = true;
    rs->has_temp_tables = true;
    rs->wrote_in_session = true;
    rs->wrote_in_tx = rs->in_tx;
    route_trace_note_unnamed(&rs->trace);
    balance_note_lsn_due(c);
    b->own->tx.stays = true;
    balance_mark_all(c);
    balance_note_schema(c, NULL);
}

enum balance_verdict balance_unread_query(struct client *c)
{
    struct balance *b = c->balance;
    struct route_decision none = {.leaves_tx = false};
    struct balance_wish wish = {.d = &none, .node = VIEW_NO_NODE};

    if (balance_is_waiting(c) || (c->target != c->link && !is_in_sequence(c)))
        return BALANCE_PARK;
    if (!is_in_sequence(c) && balance_choose(c, &wish) == BALANCE_PARK)
        return BALANCE_PARK;
    balance_again_begin(c, slice_of(NULL, 0));
    b->own->nexchanges++;
    balance_note_unread(c);
    return BALANCE_GO;
}

enum balance_verdict balance_function_call(struct client *c)
{
    struct balance *b = c->balance;
    struct route_decision none = {.leaves_tx = true};
    struct balance_wish wish = {.d = &none, .node = VIEW_NO_NODE, .needs_own = true};

    if (balance_is_waiting(c) || balance_choose(c, &wish) == BALANCE_PARK)
        return BALANCE_PARK;
    balance_again_begin(c, slice_of(NULL, 0));
    b->own->nexchanges++;
    balance_note_lsn_due(c);
    b->rs.wrote_in_session = true;
    b->rs.wrote_in_tx = b->rs.in_tx;
    route_trace_note_unnamed(&b->rs.trace);
    balance_mark_all(c);
    return BALANCE_GO;
}

/* The guest failed, and there is a ROLLBACK TO that it has not seen yet. */
static bool is_behind(const struct balance_own *own)
{
    return own->own_is_guest && !own->tx.is_opaque && own->tx_replayed < own->tx_log.len;
}

WARM bool balance_on_own_quiet(struct client *c)
{
    struct balance *b = c->balance;

    if (c->patch == NULL)
        c->link->watch_tags = false;

    if (b->asking != ASKING_NONE) {
        balance_ask_done(c, c->link);
        if (b->own->doubts != NULL)
            balance_ask_missed(c);
        if (b->asking != ASKING_NONE)
            return true;
        if (c->is_parked) {
            client_unpark(c);
            return true;
        }
    }
    if (b->own->home != NULL) {
        if (b->own->tx.moves && !b->own->saw_error)
            balance_move_home(c);
        else if (c->link->tx_status == 'E' && !is_behind(b->own))
            balance_fail_home(c);
        b->own->tx.moves = false;
        if (c->target == c->link) {
            b->own->nexchanges = 0; /* a guest's are over, and the home had finished before */
            balance_settle_tx_log(b->own, false);
        }
    }
    if (b->own->home == NULL) {
        if (c->link->tx_status == 'E')
            b->tx_failed = true;
        balance_end_tx(c);
        b->own->nexchanges = 0;
    }
    b->own->saw_error = false;
    b->own->own_ends = false;
    balance_ask_missed(c);
    return c->target != c->link; /* a reader's answer is what the client waits for */
}
