/* SPDX-License-Identifier: PostgreSQL
 * balance_quick.c: most reads of most clients: one like those before it, alone, outside of
 * transactions, for the own link or a reader that is there and up to date. Runs in: workers.
 *
 * For all of them balance_query and balance_batch would find out the same, at several times the
 * cost. Whatever is not just so is theirs. Must never: wait, ask, or put anything in. */
#include "config.h"

#include <string.h>

#include "base/hot.h"

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

/* Parse, Bind, Describe, Execute and Sync, in this order: of these the first and the third need not
 * be there. Nothing but a statement has a name. */
struct quick_sequence {
    struct slice sql;            /* of a Parse; p == NULL: there is none */
    struct statement *bound;     /* else this is */
    struct balance_whole *whole; /* what is told of it */
};

enum quick_step { STEP_BEGIN, STEP_PARSE, STEP_BIND, STEP_DESCRIBE, STEP_EXECUTE, STEP_SYNC };

static const uint8_t step_ops[] = {[STEP_PARSE] = OP_PARSE,
    [STEP_BIND] = OP_BIND,
    [STEP_DESCRIBE] = OP_DESCRIBE,
    [STEP_EXECUTE] = OP_EXECUTE,
    [STEP_SYNC] = OP_SYNC};

/* The text that ends within the bytes; p == NULL: it does not. */
static struct slice text_in(const char *p, size_t n)
{
    const char *nul = n == 0 ? NULL : memchr(p, '\0', n);

    return nul == NULL ? slice_of(NULL, 0) : slice_of(p, (size_t)(nul - p));
}

static bool looks_at_parse(const char *body, size_t n, struct quick_sequence *q)
{
    if (n < 2 || body[0] != '\0' || n >= STATEMENT_MSG_MAX - PROTO_HEADER_BYTES)
        return false;
    q->sql = text_in(body + 1, n - 1);
    return q->sql.p != NULL && !client_local_is_likely(q->sql);
}

static bool looks_at_bind(
    const struct client *c, const char *body, size_t n, struct quick_sequence *q)
{
    struct slice name;

    if (n < 2 || body[0] != '\0')
        return false;
    if (q->sql.p != NULL)
        return body[1] == '\0'; /* what is parsed here */
    name = text_in(body + 1, n - 1);
    if (name.p == NULL)
        return false;
    q->bound = statements_find(c->statements, name);
    return q->bound != NULL && (q->bound->known != 0 || q->bound->calls_nothing) &&
           q->bound->msg_len > 0 && !q->bound->is_doubtful && !statement_is_sql(q->bound);
}

/* Returns the step that the message is, or STEP_BEGIN: it is another one. */
static enum quick_step look_at(
    const struct client *c, char type, const char *body, size_t n, struct quick_sequence *q)
{
    switch (type) {
    case FE_PARSE:
        return looks_at_parse(body, n, q) ? STEP_PARSE : STEP_BEGIN;
    case FE_BIND:
        return looks_at_bind(c, body, n, q) ? STEP_BIND : STEP_BEGIN;
    case FE_DESCRIBE:
        return n == 2 && body[0] == 'P' && body[1] == '\0' ? STEP_DESCRIBE : STEP_BEGIN;
    case FE_EXECUTE:
        return n == 5 && body[0] == '\0' ? STEP_EXECUTE : STEP_BEGIN;
    case FE_SYNC:
        return n == 0 ? STEP_SYNC : STEP_BEGIN;
    default:
        return STEP_BEGIN;
    }
}

/* Each may follow those of a lower number; but Bind and Execute are not left out. */
static bool may_follow(enum quick_step step, enum quick_step last)
{
    if (step == STEP_DESCRIBE || step == STEP_EXECUTE)
        return last == STEP_BIND || (step == STEP_EXECUTE && last == STEP_DESCRIBE);
    return step == STEP_SYNC ? last == STEP_EXECUTE : step > last;
}

static bool look_through(
    const struct client *c, const char *p, const char *end, struct quick_sequence *q)
{
    enum quick_step last = STEP_BEGIN;
    enum quick_step step;
    unsigned n = 0;
    uint32_t len;

    q->whole->parse_bytes = 0;
    while (last != STEP_SYNC) {
        if (end - p < PROTO_HEADER_BYTES)
            return false;
        len = proto_get_u32(p + 1);
        if (len < 4 || len > (size_t)(end - p) - 1)
            return false;
        step = look_at(c, p[0], p + PROTO_HEADER_BYTES, len - 4, q);
        if (!may_follow(step, last))
            return false;
        if (step == STEP_PARSE)
            q->whole->parse_bytes = len + 1U;
        q->whole->ops[n++] = step_ops[step];
        last = step;
        p += len + 1U;
    }
    q->whole->nops = n;
    q->whole->end = p;
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
