/* SPDX-License-Identifier: PostgreSQL
 * balance_batch.c: sequences of the extended protocol: which link they use, and which link knows
 * which prepared statement. Runs in: workers.
 *
 * A statement is parsed where its Parse went; on another link it is parsed when that link needs it,
 * with its replies swallowed. */
#include "config.h"

#include <stddef.h>
#include <string.h>

#include "admin/admin.h"
#include "base/hot.h"
#include "base/mem.h"
#include "config/conf.h"
#include "wire/batch.h"
#include "wire/writer.h"

#include "balance_int.h"
#include "share_int.h"

/* A sequence longer than this is not looked through. */
#define BATCH_LOOK_MAX 64
/* Names that one sequence may parse and use. */
#define BATCH_NAMES_MAX 8

/* What a look ahead over a sequence found. */
struct batch_look {
    bool is_closed; /* ends with Sync within what has arrived */
    bool has_execute;
    bool has_more;    /* than statements that are made and described */
    bool is_cut;      /* it ends with a Flush; its Sync is to come */
    bool has_unnamed; /* the unnamed statement is parsed in this sequence */
    bool asks;        /* a question is under way: later again */
    bool begins;      /* BEGIN READ ONLY is in it */
    bool needs_own;
    bool stays_home;
    bool sets;
    bool sets_tx; /* SET TRANSACTION is in it */
    bool reads;   /* what counts as a query is */
    bool is_odd;  /* it has to be looked at message by message */
    unsigned nsql;
    unsigned nnames; /* statements parsed in this sequence */
    struct slice name[BATCH_NAMES_MAX];
    unsigned nportals; /* bound in this sequence, in a transaction: those with names */
    struct slice portal[BATCH_NAMES_MAX];
    bool has_unnamed_portal;
    bool is_limited;
    struct reader *at;       /* there is one that is named, and was bound before */
    struct reader *sql_at;   /* SQL names one: FETCH and the like, and nothing else */
    bool goes_on;            /* with that */
    bool has_other;          /* messages */
    bool has_close;          /* message */
    uint8_t cut_after;       /* so many messages the reader's part of it ends; 0: it does not */
    struct statement *bound; /* made earlier; more than one: is_odd */
    unsigned nneeded;        /* statements that EXECUTE names */
    struct statement *needed[BATCH_NAMES_MAX];
    int node;
    const char *end; /* behind the last message seen */
    /* The first statement's, or that of the one that waits longest; without its questions, which
     * are not made empty for every sequence. Last. */
    struct route_decision d;
};

static void look_init(struct batch_look *look, const char *p)
{
    memset(look, 0, offsetof(struct batch_look, d) + offsetof(struct route_decision, question));
    look->node = VIEW_NO_NODE;
    look->end = p;
}

/* The statement that SQL names, to use it, or to have the server say that its name is taken. */
static struct statement *named_by(const struct client *c, const struct sql_stmt *s)
{
    if ((s->kind != SQL_EXECUTE && s->inner != SQL_EXECUTE && s->kind != SQL_DEALLOCATE &&
            s->kind != SQL_PREPARE) ||
        s->name.n == 0)
        return NULL;
    return statements_find(c->statements, s->name);
}

/* What SQL names has to be known before the sequence begins: PREPARE could not be put into it.
 * False when there is too much of it. */
static bool look_at_names(struct client *c, const struct sql_facts *facts, struct batch_look *look)
{
    struct statement *st;
    uint32_t i;

    for (i = 0; i < facts->nstmts; i++) {
        const struct sql_stmt *s = &facts->stmts[i];

        st = named_by(c, s);
        if (st == NULL)
            continue;
        if (look->nneeded == BATCH_NAMES_MAX)
            return false;
        look->needed[look->nneeded++] = st;
    }
    return true;
}

/* Answered here, next to the own link. */
static bool is_local(struct slice sql)
{
    struct admin_cmd cmd;

    return client_local_is_likely(sql) && admin_recognise(sql, &cmd);
}

/* What was decided of one SQL text of a sequence; `facts`: NULL when it is a known read. That names
 * no statement and marks no table. */
static bool look_at_decision(struct client *c, struct slice sql, const struct sql_facts *facts,
    const struct route_decision *d, struct batch_look *look)
{
    struct balance_wish wish;

    if (d->known == 0 || d->must_ask) {
        look->asks = balance_asks(c, d) || balance_asks_marks(c, facts);
        if (look->asks)
            return false;
    }
    look->is_odd = look->is_odd || d->known == 0;
    look->sets_tx = look->sets_tx || (d->known == 0 && balance_sets_tx(facts));
    look->reads = look->reads || facts == NULL || route_takes_snapshot(facts);
    if (d->known == 0 && !look_at_names(c, facts, look))
        return false;
    wish = balance_wish_of(c, sql, facts, d);
    look->needs_own = look->needs_own || wish.needs_own;
    look->stays_home = look->stays_home || wish.stays_home;
    look->sets = look->sets || wish.sets;
    if (c->balance->own->home != NULL)
        return true;
    if (wish.at != NULL || look->sql_at != NULL) {
        look->sql_at = look->nsql++ == 0 ? wish.at : NULL;
        return look->sql_at != NULL;
    }
    if (wish.node == VIEW_NO_NODE || (wish.begins && look->nsql > 0) ||
        (d->reason == ROUTE_R_BACKEND_PID && look->nsql > 0))
        return false;
    look->begins = look->begins || wish.begins;
    if (look->nsql++ == 0 || d->wait_lsn > look->d.wait_lsn) {
        look->node = look->nsql == 1 ? wish.node : look->node;
        memcpy(&look->d, d, offsetof(struct route_decision, question));
    }
    return true;
}

/* Judges one SQL text of a sequence. */
static bool look_at_sql(struct client *c, struct slice sql, struct batch_look *look)
{
    struct route_decision d;
    const struct sql_facts *facts;

    if (is_local(sql))
        return false;
    facts = balance_decide(c, sql, &d);
    return look_at_decision(c, sql, facts, &d, look);
}

/* The same of a statement that was made earlier. */
static bool look_at_statement(struct client *c, struct statement *st, struct batch_look *look)
{
    struct route_decision d;
    const struct sql_facts *facts;

    if (st->known == 0 && is_local(statement_sql(st)))
        return false;
    facts = balance_decide_statement(c, st, &d);
    return look_at_decision(
        c, facts == NULL ? slice_of("", 0) : statement_sql(st), facts, &d, look);
}

static void look_bind(struct batch_look *look, struct statement *st)
{
    look->is_odd = look->is_odd || (look->bound != NULL && look->bound != st);
    look->bound = st;
}

/* A statement that is parsed in this sequence is not in the book yet: its name means the text
 * judged there. */
static bool is_parsed_here(const struct batch_look *look, struct slice name)
{
    unsigned i;

    for (i = 0; i < look->nnames; i++)
        if (prep_is_same_name(look->name[i], name))
            return true;
    return name.n == 0 && look->has_unnamed;
}

/* Portals outlive a sequence within a transaction. */
static bool outlives(const struct client *c)
{
    return c->balance->own->home == NULL && balance_tx_status(c) != 'I';
}

/* It is bound in this sequence. */
static bool look_at_new_portal(struct client *c, struct slice name, struct batch_look *look)
{
    struct reader *r;

    if (!outlives(c))
        return true;
    if (name.n == 0) {
        look->has_unnamed_portal = true;
        return true;
    }
    r = balance_portal_at(c, name);
    if (look->nportals == BATCH_NAMES_MAX || !balance_portal_may_leave(c, name) ||
        (r != NULL && r != look->at))
        return false;
    look->portal[look->nportals++] = name;
    return true;
}

/* It is bound in this sequence; what another one has bound `turns` knows. */
static bool look_at_portal(
    struct client *c, struct slice name, uint32_t max_rows, struct batch_look *look)
{
    bool is_new = look->has_unnamed_portal && name.n == 0;
    unsigned i;

    if (!outlives(c))
        return true;
    for (i = 0; i < look->nportals && !is_new; i++)
        is_new = prep_is_same_name(look->portal[i], name);
    look->is_limited = look->is_limited || max_rows > 0;
    return is_new && (max_rows == 0 || balance_portal_may_leave(c, name));
}

static bool look_at_bind(struct client *c, const struct batch_msg *m, struct batch_look *look)
{
    struct statement *st;

    look->has_execute = true;
    if (!look_at_new_portal(c, m->portal, look))
        return false;
    if (is_parsed_here(look, m->name))
        return true;
    st = statements_find(c->statements, m->name);
    if (c->balance->own->home != NULL && (st == NULL || st->msg_len == 0))
        return true;
    if (st == NULL || st->msg_len == 0)
        return false;
    if (c->balance->own->home == NULL && (st->is_doubtful || statement_is_sql(st)))
        return false;
    look_bind(look, st);
    return look_at_statement(c, st, look);
}

/* A link that lacks it can be given it in the midst of a sequence: what PREPARE made cannot. */
static bool can_follow(const struct client *c, const struct statement *st)
{
    return c->balance->own->home != NULL ||
           (st->msg_len > 0 && !st->is_doubtful && !statement_is_sql(st));
}

static bool look_at_parse(struct client *c, const struct batch_msg *m, struct batch_look *look)
{
    struct slice name = m->name;
    const struct statement *st = name.n == 0 ? NULL : statements_find(c->statements, name);

    if (m->whole.n >= STATEMENT_MSG_MAX)
        return false;
    if (st != NULL && !can_follow(c, st))
        return false; /* the name is taken, and has to be where this is parsed */
    if (name.n == 0)
        look->has_unnamed = true;
    else if (look->nnames < BATCH_NAMES_MAX)
        look->name[look->nnames++] = name;
    return look_at_sql(c, m->sql, look);
}

static bool look_at_describe(struct client *c, const struct batch_msg *m, struct batch_look *look)
{
    struct statement *st;

    if (m->what != 'S')
        return look_at_portal(c, m->portal, 0, look);
    if (is_parsed_here(look, m->name))
        return true;
    st = statements_find(c->statements, m->name);
    if (st == NULL || !can_follow(c, st))
        return false;
    look_bind(look, st);
    return true;
}

/* It is closed wherever it is known, when that is looked for. */
static bool look_at_close(
    struct client *c, const struct batch_msg *m, const struct batch_look *look)
{
    return m->what == 'S' || m->portal.n == 0 || look->at != NULL || !outlives(c);
}

/* The message goes on with a portal that is on look->at, or would bind another of its name. */
static bool goes_on(struct client *c, const struct batch_msg *m, const struct batch_look *look)
{
    bool binds = m->type == FE_BIND;

    if (m->portal.p == NULL || m->type == FE_CLOSE ||
        (binds && (m->portal.n == 0 || look->has_close)) ||
        (look->has_unnamed_portal && m->portal.n == 0))
        return false;
    return balance_portal_at(c, m->portal) == look->at;
}

/* What goes on with a portal is where that is, and all else of the sequence by itself: true where
 * the one ends and the other begins. */
static bool turns(struct batch_look *look, char type, bool is_one)
{
    bool is_other = !is_one && type != FE_CLOSE && type != FE_SYNC;

    if ((is_one && look->has_other) || (is_other && look->goes_on))
        return true;
    look->goes_on = look->goes_on || is_one;
    look->has_other = look->has_other || is_other;
    look->has_close = look->has_close || type == FE_CLOSE;
    return false;
}

static bool look_at_message(struct client *c, const struct batch_msg *m, struct batch_look *look)
{
    look->has_more =
        look->has_more || (m->type != FE_PARSE && (m->type != FE_DESCRIBE || m->what != 'S'));
    if (m->is_bad)
        return false;
    switch (m->type) {
    case FE_PARSE:
        return look_at_parse(c, m, look);
    case FE_BIND:
        return look_at_bind(c, m, look);
    case FE_DESCRIBE:
        return look_at_describe(c, m, look);
    case FE_EXECUTE:
        return look_at_portal(c, m->portal, m->max_rows, look);
    case FE_SYNC:
        look->is_closed = true;
        return true;
    case FE_CLOSE:
        look->is_odd = true;
        return look_at_close(c, m, look);
    default:
        return false; /* Flush, a simple query in between: the home knows best */
    }
}

/* Drivers prepare a statement, ask for its columns and wait for the answer before they go on. A
 * reader's part of such a sequence can end there: nothing but the statement is left of it, and that
 * is known. */
static bool may_cut(const struct client *c, const struct batch_look *look)
{
    return !look->has_more && look->nsql > 0 && !look->begins && c->balance->own->home == NULL &&
           balance_tx_status(c) != 'E';
}

/* The reader's part of the sequence ends behind `n` messages. */
static bool cut_behind(struct batch_look *look, int n)
{
    look->is_cut = true;
    look->cut_after = (uint8_t)n;
    return true;
}

/* True when the whole sequence was understood and may leave; or a part of it, which is cut off. */
static bool look_ahead(struct client *c, const char *p, const char *end, struct batch_look *look)
{
    struct batch_msg m;
    bool is_one;
    int n;

    for (n = 0; n < BATCH_LOOK_MAX && !look->is_closed && batch_next(&p, end, &m); n++) {
        if (m.type == FE_FLUSH && !m.is_bad && p == end && may_cut(c, look)) {
            look->is_cut = true;
            look->end = end;
            return true;
        }
        is_one = look->at != NULL && goes_on(c, &m, look);
        if (look->at != NULL && turns(look, m.type, is_one))
            return cut_behind(look, n);
        if (!is_one && !look_at_message(c, &m, look))
            break;
        look->end = p;
    }
    if (look->is_closed)
        return look->has_execute || look->goes_on;
    return look->goes_on && cut_behind(look, n);
}

/* Of the first message that have arrived. */
static size_t arrived_bytes(const char *p, const char *end)
{
    size_t bytes = message_bytes(p);

    return bytes < (size_t)(end - p) ? bytes : (size_t)(end - p);
}

/* What PREPARE made has to be at the transaction's home before a sequence, and on the own link when
 * that is its guest: none could be put into it. */
static void need_prepared(struct client *c)
{
    struct list *n;

    if (c->statements == NULL || c->statements->nsql == 0 || c->balance->tx_failed)
        return;
    LIST_FOREACH(n, &c->statements->order)
    {
        struct statement *st = LIST_ENTRY(n, struct statement, order);

        if (statement_is_sql(st) && !st->is_doubtful)
            balance_need_statement(c, c->target, st);
    }
}

static void note_portals(struct client *c, const struct batch_look *look)
{
    struct balance_own *own = c->balance->own;
    bool binds = (look->nportals > 0 || look->has_unnamed_portal) && c->target != c->link;

    own->notes_portals = binds || balance_has_portals(c);
    own->has_portals = own->has_portals || (binds && (look->nportals > 0 || look->is_limited));
}

/* As statements.c names links. */
static uint64_t bit_of(const struct client *c, const struct link *link)
{
    const struct balance *b = c->balance;
    unsigned i;

    for (i = 0; link != c->link && i < b->own->nreaders; i++)
        if (b->own->reader[i]->link == link)
            return b->own->reader[i]->bit;
    return 0;
}

void balance_lose_unnamed(struct client *c, const struct link *link)
{
    if (c->share == NULL)
        statements_lose_unnamed(c->statements, bit_of(c, link));
    else
        share_lose_unnamed(c);
}

static bool is_known_on(const struct client *c, const struct link *link, const struct statement *st)
{
    return link == c->link ? st->on_own : (st->on_readers & bit_of(c, link)) != 0;
}

/* The sequence goes to a reader as it is: all its texts are known reads outside of transactions,
 * and none of its messages puts anything in, closes anything, names what is undecided or has to be
 * told of. Behind note_portals. */
static bool goes_whole(struct client *c, const struct batch_look *look)
{
    return c->target != c->link && c->balance->own->home == NULL && balance_tx_status(c) == 'I' &&
           !c->balance->own->notes_portals && !balance_has_portals(c) && !look->is_odd &&
           !look->is_cut && look->cut_after == 0 && look->at == NULL && look->sql_at == NULL &&
           !look->begins && look->nnames == 0 && look->nneeded == 0 &&
           (look->bound == NULL || is_known_on(c, c->target, look->bound)) &&
           client_local(c) == NULL && !client_log_statements(c) && !c->trace.client;
}

HOT enum balance_verdict balance_batch(
    struct client *c, const char *p, const char *end, struct balance_whole *whole)
{
    struct balance *b = c->balance;
    struct batch_look look;
    struct balance_wish wish = {.d = &look.d, .node = VIEW_NO_NODE};
    struct slice msgs;
    bool may_leave = false;
    unsigned i;

    if (balance_quick_batch(c, p, end, whole))
        return BALANCE_GO;
    *whole = (struct balance_whole){.end = NULL};
    look_init(&look, p);
    if (balance_has_portals(c))
        look.at = balance_portals_named(c, p, end);
    if (balance_has_portals(c) && (look.at != NULL || b->tx_failed) && !balance_is_quiet(c))
        return BALANCE_PARK;
    if (balance_is_waiting(c) || c->target != c->link)
        return BALANCE_PARK; /* a reader has not finished an earlier sequence */
    if (balance_is_name_undecided(c, p[0], slice_of(p, arrived_bytes(p, end))))
        return BALANCE_PARK;
    if (b->own->home != NULL || balance_is_quiet(c) || balance_is_quiet_soon(c))
        may_leave = look_ahead(c, p, end, &look);
    if (look.asks)
        return BALANCE_PARK;
    wish.needs_own = look.needs_own;
    wish.stays_home = look.stays_home;
    wish.sets = look.sets;
    msgs =
        may_leave ? slice_of(p, (size_t)(look.end - p)) : batch_to_sync(p, end, BALANCE_RETRY_MAX);
    if (may_leave) {
        wish.node = look.node;
        wish.begins = look.begins;
        wish.msg = look.goes_on ? slice_of(NULL, 0) : msgs;
        wish.at = look.goes_on ? look.at : look.sql_at;
    } else if (view_must_hold_writes(&c->ss->view) && balance_again_is_read(c, msgs)) {
        look.d.class = ROUTE_EITHER; /* it stays where it is, and need not wait */
    }
    if (balance_choose(c, &wish) == BALANCE_PARK)
        return BALANCE_PARK;
    b->own->is_cut = look.is_cut && c->target != c->link;
    b->own->cut_left = look.cut_after > 0 ? look.cut_after : UINT8_MAX;
    note_portals(c, &look);
    balance_again_begin(c, look.is_cut ? slice_of(NULL, 0) : msgs);
    if (c->target != c->link)
        b->own->tx.has_read = b->own->tx.has_read || look.reads;
    balance_tell_own(c, look.sets_tx);
    for (i = 0; i < look.nneeded; i++)
        balance_need_statement(c, c->target, look.needed[i]);
    if (b->own->home != NULL)
        need_prepared(c);
    if (c->target == c->link || b->own->home != NULL)
        b->own->nexchanges++;
    else if (may_leave && goes_whole(c, &look))
        whole->end = look.end;
    return BALANCE_GO;
}

/* The next op of the link makes it, or puts it there. */
static void set_known_on(
    struct client *c, const struct link *link, struct statement *st, unsigned asked)
{
    uint64_t bit = bit_of(c, link);

    if (link == c->link)
        st->on_own = true;
    st->on_readers |= bit;
    statements_asked(c->statements, st, asked, bit, expect_next_serial(&link->expect));
}

/* `op`: what becomes of the Parse's answer. */
static void put_statement(struct client *c, struct link *link, struct statement *st, unsigned op)
{
    struct slice name = statement_name(st);
    struct buf out = {0};

    if (st->msg_len == 0 || st->is_doubtful || link->expect.skipping || is_known_on(c, link, st))
        return; /* (where the server skips, it would skip this, too) */
    if (statement_is_sql(st) && c->server_batch && link == c->target)
        return;       /* it would end the client's sequence */
    if (name.n > 0) { /* an older one of the same name may be there */
        wire_put_close(&out, 'S', name);
        link_expect(link, OP_CLOSE | OP_SWALLOW);
    }
    if (statement_is_sql(st) && name.n > 0) {
        wire_put_empty(&out, FE_SYNC);
        link_expect(link, OP_SYNC | OP_SWALLOW);
    }
    buf_put(&out, statement_message(st).p, statement_message(st).n);
    set_known_on(c, link, st, STATEMENT_PUT);
    link_expect(link, statement_is_sql(st) ? OP_QUERY | OP_SWALLOW : OP_PARSE | op);
    (void)link_send(link, out.data, out.len);
    buf_free(&out);
}

void balance_need_statement(struct client *c, struct link *link, struct statement *st)
{
    put_statement(c, link, st, OP_QUIET);
}

/* In front of a simple query, which a server that refuses the statement would skip: a Sync behind
 * it. That it is not there the query says itself. */
static void need_for_query(struct client *c, struct statement *st)
{
    struct buf sync = {0};

    if (st->msg_len == 0 || is_known_on(c, c->target, st))
        return;
    if (statement_is_sql(st) || c->server_batch) {
        balance_need_statement(c, c->target, st);
        return;
    }
    put_statement(c, c->target, st, OP_SWALLOW);
    wire_put_empty(&sync, FE_SYNC);
    link_expect(c->target, OP_SYNC | OP_SWALLOW);
    (void)link_send(c->target, sync.data, sync.len);
    buf_free(&sync);
}

/* The next op of the target closes it. */
static void closing(struct client *c, struct statement *st, unsigned asked)
{
    statements_closing(
        c->statements, st, asked, bit_of(c, c->target), expect_next_serial(&c->target->expect));
}

void balance_close_statement(struct client *c, struct slice name, unsigned asked)
{
    struct balance *b = c->balance;
    struct statement *st = statements_find(c->statements, name);
    unsigned i;

    if (st == NULL || c->target->expect.skipping)
        return;
    if (name.n > 0 && st->on_own && c->target != c->link)
        balance_send_close(c->link, 'S', name);
    for (i = 0; i < b->own->nreaders && name.n > 0; i++)
        if ((st->on_readers & b->own->reader[i]->bit) != 0 && b->own->reader[i]->link != c->target)
            balance_send_close(b->own->reader[i]->link, 'S', name);
    closing(c, st, asked);
}

void balance_close_all(struct client *c, unsigned asked)
{
    struct balance *b = c->balance;
    struct slice all = slice_of_str("DEALLOCATE ALL");
    struct list *n;
    unsigned i;

    if (c->statements == NULL)
        return;
    for (i = 0; i < b->own->nreaders; i++)
        if (b->own->reader[i]->phase == READER_READY && b->own->reader[i]->link != c->target)
            balance_send_own_text(c, b->own->reader[i]->link, all);
    if (c->target != c->link)
        balance_send_own_text(c, c->link, all);
    statements_closing_again(
        c->statements, bit_of(c, c->target), expect_next_serial(&c->target->expect));
    while ((n = list_first(&c->statements->order)) != NULL)
        closing(c, LIST_ENTRY(n, struct statement, order), asked);
}

HOT void balance_note_parse(
    struct client *c, struct slice name, struct slice msg, enum count_kind count, unsigned asked)
{
    struct statement *st = statements_find(c->statements, name);

    if (c->target->expect.skipping)
        return;                                         /* so does the server */
    if (st != NULL && name.n > 0 && !st->is_doubtful) { /* the server refuses the name, then */
        if (msg.p[0] == FE_QUERY)
            need_for_query(c, st);
        else
            balance_need_statement(c, c->target, st);
        return;
    }
    st = statements_add(&c->statements, name, msg, count);
    st->on_own = false;
    set_known_on(c, c->target, st, STATEMENT_MAKE | asked);
}

/* Executed where the transaction lives, or on the own link. */
static void note_execution(struct client *c, struct slice sql)
{
    struct route_decision d;
    const struct sql_facts *facts = balance_decide_again(c, sql, &d);

    balance_note_write(c, &d);
    balance_note_facts(c, sql, facts, STATEMENT_INEXACT | STATEMENT_BOUND);
    balance_note_doubt(c, sql, &d);
}

/* What is executed is not known: it may have written. */
static void note_unknown_execution(struct client *c)
{
    struct route_session *rs = &c->balance->rs;

    rs->wrote_in_session = true;
    rs->wrote_in_tx = rs->in_tx;
    route_trace_note_unnamed(&rs->trace);
    rs->wrote_in_an_earlier_tx = rs->wrote_in_an_earlier_tx || rs->in_tx;
    balance_note_lsn_due(c);
}

/* What is bound names statements that the target lacks: they are put in front of it. */
static bool names_unknown(const struct client *c, const struct statement *bound)
{
    const struct sql_facts *facts;
    const struct statement *st;
    uint32_t i;

    if (bound->count != COUNT_OTHER || c->statements->table.count == 0)
        return false;
    facts = balance_facts(c->ss, statement_sql(bound));
    for (i = 0; i < facts->nstmts; i++) {
        st = named_by(c, &facts->stmts[i]);
        if (st != NULL && !is_known_on(c, c->target, st))
            return true;
    }
    return false;
}

bool balance_puts_in(const struct client *c, char type, struct slice msg)
{
    const struct statement *st;
    bool found;

    if (type == FE_PARSE && msg.n > PROTO_HEADER_BYTES && msg.p[PROTO_HEADER_BYTES] == '\0')
        return false; /* without a name: it takes the place of any */
    st = balance_named_in(c, type, msg, &found);
    if (st == NULL)
        return false;
    if (type == FE_PARSE && st->is_doubtful)
        return false;
    return !is_known_on(c, c->target, st) || (type == FE_BIND && names_unknown(c, st));
}

void balance_note_message(struct client *c, char type, struct slice msg, bool puts_in)
{
    bool is_away = c->target != c->link && c->balance->own->home == NULL;
    char *call = balance_bound_take(c, type, msg);
    bool found;
    struct statement *st;

    if (call != NULL)
        note_execution(c, slice_of_str(call));
    mem_free(call);
    if (type == FE_BIND && msg.n > PROTO_HEADER_BYTES && msg.p[PROTO_HEADER_BYTES] == '\0')
        balance_portals_unnamed(c, true);
    if (c->balance->own->notes_portals && (type == FE_BIND || type == FE_CLOSE))
        balance_portals_note(c, type, msg);
    if ((type != FE_BIND && type != FE_DESCRIBE) || (!puts_in && (is_away || type != FE_BIND)))
        return;
    st = balance_named_in(c, type, msg, &found);
    if (st != NULL)
        balance_need_statement(c, c->target, st);
    if (st != NULL && puts_in && type == FE_BIND && names_unknown(c, st))
        balance_need_names(c, balance_facts(c->ss, statement_sql(st)));
    if (type != FE_BIND || !found || is_away)
        return;
    if (st == NULL || st->msg_len == 0 || st->is_doubtful)
        note_unknown_execution(c);
    else if (!balance_bound_keep(c, st, msg))
        note_execution(c, statement_sql(st));
}

void balance_note_partial(struct client *c, char type, struct slice msg)
{
    if (type == FE_PARSE) {
        /* Its name may be in the part that is still to come: forget them all. The own link knows
         * most of them. */
        statements_free(&c->statements);
        if (c->balance->own->home == NULL && c->target == c->link)
            balance_drop_readers(c, true); /* theirs, too */
        balance_note_unread(c);
    } else if (type == FE_BIND) {
        balance_note_message(c, type, msg, true);
    }
}

WARM void balance_need_names(struct client *c, const struct sql_facts *facts)
{
    struct statement *st;
    uint32_t i;

    for (i = 0; i < facts->nstmts; i++) {
        st = facts->stmts[i].kind == SQL_PREPARE ? NULL : named_by(c, &facts->stmts[i]);
        if (st != NULL)
            need_for_query(c, st);
    }
}
