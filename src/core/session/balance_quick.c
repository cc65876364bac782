/* SPDX-License-Identifier: PostgreSQL
 * balance_quick.c: most reads of most clients: one like those before it, alone, outside of
 * transactions, for the own link or a reader that is there and up to date. Runs in: workers.
 *
 * For all of them balance_query and balance_batch would find out the same, at several times the
 * cost. Whatever is not just so is theirs. Must never: wait, ask, or put anything in. */
#include "config.h"

#include <string.h>

#include "base/hot.h"
#include "wire/batch.h"

#include "share_int.h"

/* No transaction is open, no link owes anything, and nothing waits for what is under way. */
HOT static bool is_at_rest(const struct client *c)
{
    const struct balance *b = c->balance;
    const struct balance_own *own = b->own;

    return c->target == c->link && c->link != NULL && c->link->tx_status == 'I' &&
           expect_is_quiet(&c->link->expect) && c->link->body_left == 0 && own->home == NULL &&
           b->asking == ASKING_NONE && !own->is_refused && !own->has_begun && !c->server_batch &&
           !b->wait_is_over;
}

/* Where what is known may go at once: *rp is the reader, or NULL for the own link. What has to wait
 * for the cluster there waits when it is looked at again. */
HOT static bool find_link(struct client *c, uint64_t known, bool by_facts, struct reader **rp)
{
    int node = balance_known_node(c, known, by_facts);
    struct reader *r;

    *rp = NULL;
    if (node == VIEW_NO_NODE)
        return false;
    if (node == c->pool->cluster_node)
        return !sessions_hold(c, ROUTE_EITHER);
    *rp = r = balance_reader_at(c, node);
    return r != NULL && r->phase == READER_READY && !r->is_asking &&
           r->replayed == c->balance->own->log.len;
}

/* Nothing is balanced: a read that calls nothing stays, whatever its tables are. `traits`: of texts
 * like this one; empty: they are its own. */
HOT static bool stays(struct client *c, uint32_t traits, struct slice sql)
{
    struct balance *b = c->balance;

    if (c->ss->conf->load_balance_mode || (traits & SHARE_CALLS_NOTHING) == 0 ||
        route_text_may_differ(sql) || sessions_hold(c, ROUTE_EITHER))
        return false;
    b->rs.in_tx = b->rs.tx_failed = b->rs.has_tx_node = false;
    b->reason = ROUTE_R_BALANCE_OFF;
    return true;
}

/* `r`: NULL for the own link, which has nothing to note of a plain read when it is over. */
HOT static void go(struct client *c, struct reader *r, struct slice msg)
{
    struct balance *b = c->balance;

    balance_ask_reset(b);
    balance_wait_settle(c);
    if (r == NULL) {
        b->own->is_cut = false;
        b->own->nexchanges++;
        balance_again_begin(c, msg);
    } else {
        b->own->tx.has_read = true;
        balance_aim(c, r, msg);
    }
}

HOT bool balance_quick_query(
    struct client *c, struct slice sql, struct slice msg, const struct sql_facts *facts)
{
    struct balance_own *own = c->balance->own;
    struct reader *r = NULL;

    if (!is_at_rest(c) || (!stays(c, share_traits(facts, sql), sql) &&
                              !find_link(c, route_known_of(sql, facts), true, &r)))
        return false;
    if (c->statements != NULL)
        statements_remove(c->statements, slice_of("", 0));
    own->has_unnamed = false; /* a portal; no simple query leaves one */
    own->unnamed_at = NULL;
    go(c, r, msg);
    return true;
}

/* One statement that a client sends. */
struct quick_sequence {
    struct slice sql;            /* of a Parse; p == NULL: there is none */
    struct statement *bound;     /* else this is */
    struct balance_whole *whole; /* what is told of it */
};

static bool may_parse(const struct batch_lone *sent)
{
    return sent->name.n == 0 && sent->parse.n < STATEMENT_MSG_MAX &&
           !client_local_is_likely(sent->sql);
}

static bool may_bind(const struct statement *st)
{
    return st != NULL && (st->known != 0 || st->calls_nothing) && st->msg_len > 0 &&
           !st->is_doubtful && !statement_is_sql(st);
}

/* What the link will owe. */
static void note_ops(struct balance_whole *whole, const struct batch_lone *sent)
{
    unsigned n = 0;

    if (sent->parse.p != NULL)
        whole->ops[n++] = OP_PARSE;
    whole->ops[n++] = OP_BIND;
    if (sent->describes)
        whole->ops[n++] = OP_DESCRIBE;
    whole->ops[n++] = OP_EXECUTE;
    whole->ops[n++] = OP_SYNC;
    whole->nops = n;
}

static bool look_through(
    const struct client *c, const char *p, const char *end, struct quick_sequence *q)
{
    struct batch_lone sent;

    if (!batch_lone_read(&sent, p, end) || !sent.syncs)
        return false;
    q->whole->parse_bytes = 0;
    if (sent.parse.p != NULL) {
        if (!may_parse(&sent))
            return false;
        q->sql = sent.sql;
        q->whole->parse_bytes = sent.parse.n;
    } else {
        q->bound = statements_find(c->statements, sent.name);
        if (!may_bind(q->bound))
            return false;
    }
    note_ops(q->whole, &sent);
    q->whole->end = sent.end;
    return true;
}

/* find_link for what the router knows of it. `traits`: those of a text that is parsed. */
static bool find_link_for(
    struct client *c, const struct quick_sequence *q, uint32_t *traits, struct reader **rp)
{
    const struct sql_facts *facts;
    uint32_t own;

    *traits = 0;
    *rp = NULL;
    if (q->sql.p == NULL) {
        own = q->bound->calls_nothing ? SHARE_CALLS_NOTHING : 0;
        return stays(c, own, slice_of("", 0)) || find_link(c, q->bound->known, false, rp);
    }
    facts = balance_facts(c->ss, q->sql);
    *traits = share_traits(facts, q->sql);
    if ((*traits & SHARE_IS_PLAIN) == 0)
        return false;
    return stays(c, *traits, q->sql) || find_link(c, route_known_of(q->sql, facts), true, rp);
}

HOT bool balance_quick_batch(
    struct client *c, const char *p, const char *end, struct balance_whole *whole)
{
    struct balance_own *own = c->balance->own;
    struct quick_sequence q = {.whole = whole};
    struct reader *r;
    bool has_it;

    if ((*p != FE_BIND && *p != FE_PARSE) || !is_at_rest(c) || balance_has_portals(c) ||
        client_local(c) != NULL || c->trace.client || client_log_statements(c) ||
        !look_through(c, p, end, &q))
        return false;
    if (!find_link_for(c, &q, &whole->traits, &r))
        return false;
    has_it = q.bound == NULL || (r == NULL ? q.bound->on_own : (q.bound->on_readers & r->bit) != 0);
    if (!has_it)
        return false;
    own->cut_left = UINT8_MAX;
    own->notes_portals = false;
    go(c, r, slice_of(p, (size_t)(whole->end - p)));
    whole->sql = q.sql;
    whole->bound = q.bound;
    return true;
}
