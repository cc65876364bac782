/* SPDX-License-Identifier: PostgreSQL
 * balance_tx.c: one transaction of a client over several links. Runs in: workers.
 *
 * Its home is where BEGIN went. A link that is needed besides becomes a guest: BEGIN of the same
 * kind before the first statement, COMMIT or ROLLBACK when the home has ended. A guest that failed
 * is begun anew when it is needed again, for then the home was rolled back to a savepoint; but the
 * own link, on which something may have been set that the home never saw, follows the home's
 * settings and savepoints one by one. All replies are swallowed. */
#include "config.h"

#include <string.h>

#include "base/hot.h"
#include "base/log.h"
#include "wire/errmsg.h"
#include "wire/writer.h"

#include "balance_int.h"
#include "client_lost_int.h"

void balance_send_own_text(struct client *c, struct link *link, struct slice sql)
{
    balance_send_query(c, link, sql, OP_SWALLOW);
}

void balance_send_close(struct link *link, char kind, struct slice name)
{
    struct buf out = {0};

    wire_put_close(&out, kind, name);
    link_expect(link, OP_CLOSE | OP_SWALLOW);
    wire_put_empty(&out, FE_SYNC);
    link_expect(link, OP_SYNC | OP_SWALLOW);
    (void)link_send(link, out.data, out.len);
    buf_free(&out);
}

/* An error that says in the server's log what it is for. */
static void fail_link(struct client *c, struct link *link)
{
    balance_send_own_text(c, link,
        slice_of_str("SELECT CAST('a statement of this transaction failed on another server' AS "
                     "pg_catalog.int4)"));
}

/* `on_standby`: where every transaction is read-only anyhow, and to say otherwise an error. */
static void begin_on(struct client *c, struct link *link, bool on_standby)
{
    const struct balance_tx *tx = &c->balance->own->tx;
    struct buf sql = {0};

    buf_put(&sql, "BEGIN", 5);
    if (tx->isolation == SQL_ISO_READ_UNCOMMITTED)
        buf_printf(&sql, " ISOLATION LEVEL READ UNCOMMITTED");
    else if (tx->isolation == SQL_ISO_READ_COMMITTED)
        buf_printf(&sql, " ISOLATION LEVEL READ COMMITTED");
    else if (tx->isolation == SQL_ISO_REPEATABLE_READ)
        buf_printf(&sql, " ISOLATION LEVEL REPEATABLE READ");
    if (tx->read_only == SQL_YES)
        buf_printf(&sql, " READ ONLY");
    else if (tx->read_only == SQL_NO && !on_standby)
        buf_printf(&sql, " READ WRITE");
    if (tx->deferrable == SQL_YES)
        buf_printf(&sql, " DEFERRABLE");
    balance_send_own_text(c, link, buf_slice(&sql));
    buf_free(&sql);
}

static void join(struct client *c, struct link *link, bool *is_guest)
{
    if (*is_guest && link->tx_status == 'E') {
        balance_send_own_text(c, link, slice_of_str("ROLLBACK"));
        *is_guest = false;
    }
    if (!*is_guest)
        begin_on(c, link, link != c->link);
    *is_guest = true;
}

void balance_join_reader(struct client *c, struct reader *r)
{
    if (!r->in_tx || r->link->tx_status == 'E')
        balance_portals_forget(c, r);
    join(c, r->link, &r->in_tx);
}

static void settle_length(struct balance_own *own)
{
    own->tx_settled = own->tx_log.len;
    own->tx_ends_at = 0;
    own->tx_is_mixed = false;
    own->notes_savepoint = false;
}

void balance_forget_tx_log(struct balance_own *own)
{
    buf_free(&own->tx_log);
    own->tx_replayed = 0;
    settle_length(own);
}

void balance_cut_tx_log(struct balance_own *own)
{
    uint32_t n = own->tx_ends_at;

    if (n > 0)
        memmove(own->tx_log.data, own->tx_log.data + n, own->tx_log.len - n);
    own->tx_log.len -= n;
    own->tx_replayed = 0;
    settle_length(own);
}

static bool log_tx(struct balance_own *own, struct slice text)
{
    if (text.n == 0 || own->tx_log.len + text.n + 1 > BALANCE_LOG_MAX)
        return false;
    buf_put(&own->tx_log, text.p, text.n);
    buf_put_byte(&own->tx_log, '\0');
    return true;
}

void balance_note_tx_setting(struct client *c, struct slice text)
{
    struct balance_own *own = c->balance->own;

    if (own->home == NULL)
        return;
    if (c->target == c->link)
        own->tx.is_on_own = true; /* the home has not seen it */
    else if (!log_tx(own, text))
        own->tx.is_opaque = true;
    else
        own->tx.has_setting = true;
}

/* The guest goes without savepoints. That does not matter before what was set is taken back: after
 * an error it is begun anew. */
static void lose_count(struct balance_own *own)
{
    own->tx.lost_count = true;
    if (!own->tx.has_setting && !own->tx.is_on_own)
        balance_forget_tx_log(own);
}

void balance_note_tx_savepoint(struct client *c, const struct sql_stmt *s, struct slice text)
{
    struct balance_own *own = c->balance->own;

    own->tx.has_savepoint = true;
    if (own->home == NULL)
        return;
    own->notes_savepoint = true;
    if (!own->tx.lost_count && (c->target == c->link || !log_tx(own, text)))
        lose_count(own);
    if (s->tx.op != SQL_TX_ROLLBACK_TO)
        return;
    own->tx.goes_back = true;
    if (own->tx.lost_count && (own->tx.has_setting || own->tx.is_on_own))
        own->tx.is_opaque = true;
}

/* A plain statement that failed did nothing. Of several statements it is not known which did; what
 * they set goes with the savepoint that the transaction is rolled back to. */
void balance_settle_tx_log(struct balance_own *own, bool failed)
{
    if (failed && own->notes_savepoint && own->tx_is_mixed)
        lose_count(own);
    else if (failed && own->tx_settled < own->tx_log.len)
        own->tx_log.len = own->tx_settled;
    settle_length(own);
}

/* What was set in the transaction holds there as well. What was set there alone it would lose if it
 * was begun anew: when it has failed, a savepoint of the home's gets it out of that. */
void balance_join_own(struct client *c)
{
    struct balance_own *own = c->balance->own;
    bool is_ahead = own->tx.is_on_own && own->own_is_guest;

    if (is_ahead && own->tx.is_opaque) {
        if (c->link->tx_status == 'T')
            fail_link(c, c->link); /* what it has set cannot be taken back, nor made again */
        return;
    }
    if (!is_ahead) {
        if (!own->own_is_guest || c->link->tx_status == 'E')
            own->tx_replayed = 0;
        join(c, c->link, &own->own_is_guest);
    }
    while (own->tx_replayed < own->tx_log.len) {
        struct slice text = slice_of_str(own->tx_log.data + own->tx_replayed);

        c->link->watch_tags =
            c->link->watch_tags || own->tx.is_on_own; /* may change what was told */
        balance_send_own_text(c, c->link, text);
        own->tx_replayed += (uint32_t)text.n + 1;
    }
}

bool balance_sets_tx(const struct sql_facts *facts)
{
    uint32_t i;

    for (i = 0; i < facts->nstmts; i++) {
        const struct sql_stmt *s = &facts->stmts[i];

        if (s->kind == SQL_SET &&
            (s->set.scope == SQL_SET_TRANSACTION || balance_is_of_transaction(s->set.name)))
            return true;
    }
    return false;
}

WARM void balance_tell_own(struct client *c, bool is_said)
{
    struct balance_own *own = c->balance->own;

    if (!is_said || !own->tx.has_read || c->target != c->link || c->link->tx_status == 'E')
        return;
    own->tx.has_read = false;
    balance_send_own_text(c, c->link, slice_of_str("SELECT"));
}

WARM void balance_end_guests(struct client *c, bool committed)
{
    struct balance *b = c->balance;
    struct slice end = slice_of_str(committed ? "COMMIT" : "ROLLBACK");
    unsigned i;

    balance_portals_forget(c, NULL);
    for (i = 0; i < b->own->nreaders; i++)
        if (b->own->reader[i]->in_tx) {
            b->own->reader[i]->in_tx = false;
            balance_send_own_text(c, b->own->reader[i]->link, end);
        }
    if (b->own->own_is_guest && (!committed || b->own->tx.is_on_own))
        c->link->watch_tags = true; /* what was SET there was told, and may not be so any more */
    if (b->own->own_is_guest)
        balance_send_own_text(c, c->link, end);
    b->own->own_ends = b->own->own_is_guest;
    b->own->own_is_guest = false;
}

void balance_fail_home(struct client *c)
{
    struct balance *b = c->balance;
    struct link *home = b->own->home == NULL ? c->link : b->own->home->link;

    b->tx_failed = true;
    if (home == NULL || home->tx_status != 'T')
        return;
    home->watch_tags = b->own->home != NULL; /* what was SET there is not any more */
    b->own->home_fails = b->own->home != NULL;
    fail_link(c, home);
}

void balance_lose_home(struct client *c)
{
    struct balance *b = c->balance;

    b->own->home = NULL;
    balance_forget_tx_log(b->own);
    b->tx_failed = true;
    b->own->tx_was_open = true;
    if (!b->own->own_is_guest && c->link != NULL)
        begin_on(c, c->link, false);
    else if (c->link != NULL)
        c->link->watch_tags = true;
    b->own->own_is_guest = false;
    if (c->link != NULL) {
        b->own->is_failing = true;
        b->own->fails_at = expect_next_serial(&c->link->expect);
        fail_link(c, c->link);
    }
    CLIENT_LOG(c, LVL_LOG, "a read-only transaction of user \"%s\" was lost with its standby",
        c->pool->names);
}

bool balance_tell_lost(struct client *c, const struct link *link, const struct errmsg *m)
{
    struct balance_own *own = c->balance == NULL ? NULL : c->balance->own;
    struct buf out = {0};

    if (own == NULL || !own->is_untold || link_error_is_ours(link) ||
        !slice_eq_str(m->sqlstate, "25P02"))
        return false;
    own->is_untold = false;
    client_lost_put(NULL, &out);
    client_send(c, &out);
    return true;
}

bool balance_owes_client(const struct expect *owed)
{
    unsigned i;

    for (i = 0; i < owed->len; i++)
        if ((expect_peek(owed, i) & OP_SWALLOW) == 0)
            return true;
    return false;
}

void balance_move_home(struct client *c)
{
    struct balance *b = c->balance;

    balance_send_own_text(c, b->own->home->link, slice_of_str("ROLLBACK"));
    b->own->home = NULL;
    balance_forget_tx_log(b->own);
    b->own->own_is_guest = false;
    b->own->tx.read_only = SQL_NO;
    b->rs.tx_read_only = false;
    b->own->tx.stays = true;
    b->own->tx_was_open = true;
}
