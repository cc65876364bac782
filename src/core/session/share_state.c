/* SPDX-License-Identifier: PostgreSQL
 * share_state.c: what a statement does to the session of a client that shares links. Runs in:
 * workers. A change is made when the statement is sent and taken back when the exchange fails or
 * the transaction is rolled back: sets are immutable, so a place to go back to is two pointers. */
#include "config.h"

#include <string.h>

#include "base/hot.h"
#include "base/mem.h"

#include "share_names_int.h"
#include "share_vars_int.h"

#define PIN_BIT(sym) (1U << PIN_REASON_##sym)
/* These outlive a rollback. */
#define PINS_THAT_STAY                                                                             \
    (PIN_BIT(ADVISORY_LOCK) | PIN_BIT(LOAD) | PIN_BIT(UNKNOWN) | PIN_BIT(SESSION_MODE))

/* A change follows: what was before must be known. */
static void remember(struct share *s)
{
    s->exchange.has_set = true;
    if (s->turn->mark.client != NULL)
        return;
    share_vars_assign(&s->turn->mark, &s->vars);
}

static void pin(struct client *c, uint32_t reasons)
{
    struct share *s = c->share;

    s->turn->leave.may_go_out = false;
    if (share_keeps(s) || c->ss->conf->pin_on_session_state != CONF_PIN_OFF) {
        s->pins |= reasons;
        s->turn->untied &= ~reasons;
    } else if (c->link != NULL)
        c->link->must_clean = true; /* the state is lost, and not left to the next client */
}

/* In a transaction from here on. */
static void begin(struct share *s)
{
    if (s->turn->tx.client != NULL)
        return;
    share_vars_assign(&s->turn->tx, &s->vars);
    s->turn->tx_pins = s->pins;
}

/* What is from before a commit that was not seen, and stays, is known to the server alone. */
static void roll_back(struct client *c)
{
    struct share *s = c->share;

    if (s->turn->tx.client == NULL)
        return;
    savepoints_forget(&s->turn->savepoints);
    if (s->turn->commits_unseen) {
        pin(c, PIN_BIT(UNKNOWN));
        return;
    }
    share_vars_assign(&s->vars, &s->turn->tx);
    s->pins = (s->pins & PINS_THAT_STAY) | s->turn->tx_pins;
}

/* The settings from before stay known, for COMMIT may fail; but what follows is another
 * transaction. */
static void commit(struct share *s)
{
    savepoints_forget(&s->turn->savepoints);
    if ((s->pins & ~s->turn->tx_pins & PIN_BIT(TEMP_TABLE)) != 0)
        s->look_at_pins = true; /* ON COMMIT DROP */
    s->exchange.tx_is_over = s->turn->tx.client != NULL;
}

/* A string is one transaction, unless it says otherwise, and so is a sequence of the extended
 * protocol: a BEGIN in it makes all that is in front of it part of the block. */
static void begin_unsaid(struct client *c)
{
    struct share *s = c->share;

    if (!s->exchange.in_string && !c->server_batch)
        return;
    if (s->exchange.tx_is_over)
        share_vars_clear(&s->turn->tx);
    s->exchange.tx_is_over = false;
    s->exchange.tx_is_string = s->exchange.tx_is_string || s->turn->tx.client == NULL;
    begin(s);
}

static void note_savepoint(struct client *c, const struct sql_tx *tx)
{
    struct share *s = c->share;
    struct savepoints *sp = &s->turn->savepoints;

    if (tx->op == SQL_TX_SAVEPOINT && !savepoints_set(sp, tx->name, &s->vars, s->pins))
        pin(c, PIN_BIT(SETTING)); /* a rollback to it would not be followed */
    else if (tx->op == SQL_TX_ROLLBACK_TO)
        savepoints_roll_back_to(sp, tx->name, &s->vars, &s->pins);
    else if (tx->op == SQL_TX_RELEASE)
        savepoints_release(sp, tx->name);
}

static void end_free(struct share *s, struct share_end *e)
{
    if (e == NULL)
        return;
    share_vars_clear(&e->vars);
    share_vars_clear(&e->tx);
    if (e != &s->turn->only_end)
        mem_free(e);
}

/* Mostly there is but one. */
static struct share_end *end_new(struct share_turn *t)
{
    if (t->ends != NULL || t->ended != NULL)
        return mem_alloc_zero(sizeof(struct share_end));
    memset(&t->only_end, 0, sizeof t->only_end);
    return &t->only_end;
}

WARM static void ends_free(struct share *s)
{
    struct share_end *e;

    while ((e = s->turn->ends) != NULL) {
        s->turn->ends = e->next;
        end_free(s, e);
    }
    end_free(s, s->turn->ended);
    s->turn->ended = NULL;
}

/* Should the link die between the tag of a COMMIT and what follows it, the client knows more than
 * the state of the link says. */
static void note_end(
    struct client *c, const struct sql_stmt *st, const struct share_vars *tx, bool failed)
{
    struct share *s = c->share;
    struct share_end **pp = &s->turn->ends;
    struct share_end *e;
    bool chains = (st->flags & SQL_F_CHAIN) != 0;

    if (c->link == NULL || (st->tx.op != SQL_TX_BEGIN && st->tx.op != SQL_TX_COMMIT &&
                               st->tx.op != SQL_TX_ROLLBACK && st->tx.op != SQL_TX_PREPARE))
        return;
    while (*pp != NULL)
        pp = &(*pp)->next;
    e = *pp = end_new(s->turn);
    e->serial = expect_next_serial(&c->link->expect);
    e->at = s->turn->string.at;
    e->is_last = s->turn->string.is_last;
    e->begins = st->tx.op == SQL_TX_BEGIN || chains;
    e->rolls_back = st->tx.op == SQL_TX_ROLLBACK && !chains;
    e->ends_failed = st->tx.op == SQL_TX_COMMIT && failed && !chains;
    share_vars_assign(&e->vars, st->tx.op == SQL_TX_BEGIN ? tx : &s->vars);
    share_vars_assign(&e->tx, tx);
    s->turn->op_flags |= OP_TAGS;
}

/* Nothing has a name that the client would believe in, and that came to nothing. */
static bool prepares_nothing(const struct share *s)
{
    unsigned i;

    for (i = 0; i < s->turn->npending; i++)
        if (s->turn->pending[i].kind == PENDING_NAME)
            return false;
    return true;
}

char share_described(const struct share *s, uint32_t serial)
{
    unsigned i;

    for (i = 0; i < sizeof s->turn->described / sizeof s->turn->described[0]; i++)
        if (s->turn->described[i].what != 0 && s->turn->described[i].serial == serial)
            return s->turn->described[i].what;
    return 0;
}

/* What stands in front of the word itself, by the protocol: messages of ours, and those of the
 * client's whose answers are known. */
static bool is_known_answer(const struct share *s, const struct expect *owed, unsigned i)
{
    unsigned op = expect_peek(owed, i);

    if ((op & OP_SWALLOW) != 0)
        return true;
    switch (op & OP_MASK) {
    case OP_PARSE:
        return (op & OP_NOTE) != 0; /* else the server is to say what is wrong with it */
    case OP_BIND:
    case OP_MADE_PARSED:
        return true;
    case OP_DESCRIBE:
        return share_described(s, owed->nended + i) != 0;
    default:
        return false;
    }
}

/* `e` takes all of a transaction back, and nothing was heard of it. */
static bool is_untold_rollback(
    const struct share *s, const struct share_end *e, const struct link *link)
{
    const struct expect *owed = &link->expect;

    if (e == NULL || s->turn->ended != NULL || e->at > 0 || !e->is_last || owed->failed ||
        owed->lost)
        return false;
    return link->tx_status != 'I' && (owed->last == 0 || expect_head_is_ours(owed)) &&
           (e->rolls_back || (e->ends_failed && link->tx_status == 'E'));
}

/* The Query is the op `at`, and nothing of the client's is in front of it. */
static unsigned owed_of_query(const struct expect *owed, unsigned at)
{
    unsigned i;

    for (i = 0; i < at; i++)
        if ((expect_peek(owed, i) & OP_SWALLOW) == 0)
            return 0;
    return at + 1;
}

/* The Execute is the op `at`, its Sync comes next, and what is in front of it has known answers. */
static unsigned owed_of_sequence(const struct share *s, const struct expect *owed, unsigned at)
{
    unsigned i;

    for (i = 0; i < at; i++)
        if (!is_known_answer(s, owed, i))
            return 0;
    return at + 1 < owed->len && (expect_peek(owed, at + 1) & ~OP_NOTE) == OP_SYNC &&
                   (at + 2 == owed->len || prepares_nothing(s))
               ? at + 2
               : 0;
}

unsigned share_owed_rollback(const struct share *s, const struct link *link)
{
    const struct share_end *e = s->turn->ends;
    const struct expect *owed = &link->expect;
    unsigned at;

    if (!is_untold_rollback(s, e, link))
        return 0;
    at = e->serial - owed->nended;
    if (at >= owed->len || (expect_peek(owed, at) & OP_SWALLOW) != 0)
        return 0;
    return (expect_peek(owed, at) & OP_MASK) == OP_QUERY ? owed_of_query(owed, at)
                                                         : owed_of_sequence(s, owed, at);
}

/* DISCARD ALL is committed by itself: an error behind it in its sequence undoes nothing. */
static void note_discarded(struct share *s)
{
    if (s->turn->ended != NULL) {
        varset_assign(&s->turn->ended->vars.client, s->base);
        varset_assign(&s->turn->ended->vars.link, s->base->store->empty);
    }
    if (s->turn->mark.client != NULL) {
        varset_assign(&s->turn->mark.client, s->base);
        varset_assign(&s->turn->mark.link, s->base->store->empty);
    }
    s->turn->mark_pins &= PIN_BIT(SESSION_MODE);
    s->turn->was_discarded = true;
}

WARM void share_note_tag(struct client *c, struct slice tag)
{
    struct share *s = c->share;
    uint32_t serial = expect_head_serial(&c->link->expect);
    struct share_end *e = s->turn->ends;

    s->turn->string.ntags++;
    if (share_names_note_tag(c, serial) && slice_eq_str(tag, "DISCARD ALL")) {
        note_discarded(s);
        c->kind->routed(c, ROUTED_DISCARD);
    }
    if (e == NULL || e->serial != serial ||
        (s->exchange.in_string && e->at + 1 != s->turn->string.ntags))
        return;
    s->turn->ends = e->next;
    if (slice_eq_str(tag, "ROLLBACK"))
        share_vars_assign(&e->vars, &e->tx);
    e->committed = slice_eq_str(tag, "COMMIT");
    end_free(s, s->turn->ended);
    s->turn->ended = e;
}

static void note_tx(struct client *c, const struct sql_stmt *st)
{
    struct share *s = c->share;
    bool failed = c->link != NULL && c->link->tx_status == 'E' && !s->exchange.recovered;
    struct share_vars tx = {NULL, NULL};

    s->exchange.has_tx_words = true;
    if (s->turn->savepoints.newest != NULL ||
        (s->turn->tx.client != NULL &&
            (s->vars.client != s->turn->tx.client || s->pins != s->turn->tx_pins)))
        remember(s); /* should it be skipped behind an error */
    share_vars_assign(&tx, s->turn->tx.client != NULL ? &s->turn->tx : &s->vars);
    switch (st->kind) {
    case SQL_BEGIN:
        if (s->turn->tx.client == NULL && !s->exchange.in_string)
            share_out_begin(c, &st->tx);
        begin(s);
        break;
    case SQL_COMMIT:
        if (failed)
            roll_back(c);
        else
            commit(s);
        break;
    case SQL_ROLLBACK:
        roll_back(c);
        break;
    default:
        note_savepoint(c, &st->tx);
        break;
    }
    note_end(c, st, &tx, failed);
    share_vars_clear(&tx);
    s->exchange.recovered =
        s->exchange.recovered || st->kind != SQL_SAVEPOINT || st->tx.op == SQL_TX_ROLLBACK_TO;
    if ((st->flags & SQL_F_CHAIN) != 0 && s->turn->tx.client != NULL) {
        share_vars_clear(&s->turn->tx);
        begin(s);
        s->exchange.tx_is_over = false;
        s->turn->leave.has_read = s->turn->leave.needs_snapshot =
            false; /* not in the one that begins */
    }
}

static void note_discard(struct client *c, const struct sql_stmt *st)
{
    struct share *s = c->share;

    if (slice_ieq_str(st->name, "all")) {
        s->turn->untied |= s->pins & ~PIN_BIT(SESSION_MODE);
        /* In a block it is refused: that is the same still. */
        s->exchange.tx_is_over = s->exchange.tx_is_string && !s->exchange.has_tx_words;
        share_names_drop_all(c);
    } else if (slice_ieq_str(st->name, "temp") || slice_ieq_str(st->name, "temporary")) {
        s->pins &= ~PIN_BIT(TEMP_TABLE);
    }
}

/* Of what holds for a transaction only this is followed: where its new objects go. */
static void note_local_path(struct share *s, struct slice sql)
{
    s->has_temp_path = s->has_temp_path || slice_contains(sql, "pg_temp");
}

static void note_calls(struct client *c, const struct sql_stmt *st, struct slice sql)
{
    struct share *s = c->share;
    uint32_t i;

    for (i = 0; i < st->nfuncs; i++) {
        const struct sql_func *f = &st->funcs[i];

        if (share_is_unlock(f->name))
            s->look_at_pins = true;
        if (!slice_eq_str(f->name, "set_config"))
            continue;
        note_local_path(s, sql);
        remember(s);
        if ((size_t)f->offset + f->call_len > sql.n ||
            !share_vars_note_call(s, slice_of(sql.p + f->offset, f->call_len),
                share_calls_are_made(st, share_stmt_text(st, sql))))
            pin(c, PIN_BIT(SETTING));
        link_note_set(c->link, s->vars.link,
            slice_of(sql.p + f->offset, f->offset > sql.n ? 0 : sql.n - f->offset));
    }
}

void share_note_code(struct client *c)
{
    struct share *s = c->share;

    if (!c->server_batch || s->exchange.in_string ||
        (c->link->tx_status != 'I' && !s->exchange.has_tx_words))
        return; /* in a block, and a string is one, a server refuses that */
    s->exchange.has_tx_words = true;
    s->turn->commits_unseen = s->turn->commits_unseen || s->exchange.has_set || s->exchange.hold;
    if (s->exchange.has_set)
        pin(c, PIN_BIT(SETTING)); /* which of the two is known to the server alone */
}

WARM static void note_stmt(struct client *c, const struct sql_stmt *st, struct slice sql)
{
    struct share *s = c->share;

    switch (st->kind) {
    case SQL_BEGIN:
    case SQL_COMMIT:
    case SQL_ROLLBACK:
    case SQL_SAVEPOINT:
        note_tx(c, st);
        break;
    case SQL_SET:
    case SQL_RESET:
        if (st->set.scope == SQL_SET_LOCAL)
            note_local_path(s, share_stmt_text(st, sql));
        remember(s);
        if (!share_vars_note(s, st, share_stmt_text(st, sql)))
            pin(c, PIN_BIT(SETTING));
        link_note_set(c->link, s->vars.link,
            st->set.scope == SQL_SET_LOCAL ? st->set.name : slice_of_str(""));
        break;
    case SQL_CLOSE:
    case SQL_DDL:
        s->look_at_pins = s->look_at_pins || s->pins != 0;
        break;
    case SQL_CALL:
    case SQL_DO:
        share_note_code(c);
        break;
    case SQL_FETCH:
        share_note_fetch(c);
        break;
    default:
        if (st->verb == SQL_VERB_UNLISTEN)
            s->look_at_pins = true;
        if (st->verb != SQL_VERB_DISCARD ||
            (s->exchange.in_string && slice_ieq_str(st->name, "all")))
            break; /* the server refuses DISCARD ALL in a string of several statements */
        remember(s);
        (void)share_vars_note(s, st, sql);
        link_note_set(c->link, s->vars.link, slice_of_str(""));
        note_discard(c, st);
        break;
    }
    if (st->kind == SQL_DEALLOCATE)
        share_names_note_deallocate(c, st);
    note_calls(c, st, sql);
}

/* EXECUTE in SQL: what was prepared happens. */
static void note_executed(struct client *c, const struct sql_stmt *st)
{
    const struct share_name *n;
    bool is_counted;
    const struct sql_facts *facts = share_executed(c, st, &n, &is_counted);
    struct prep *prep;

    if (facts == NULL)
        return;
    if (!is_counted) {
        remember(c->share);
        pin(c, PIN_BIT(SETTING)); /* how often it is executed is not known here */
        return;
    }
    prep = n->prep == NULL ? NULL : prep_ref(n->prep); /* it may drop itself */
    if (facts->stmts[0].kind == SQL_PREPARE)
        share_names_note_prepare(c, &facts->stmts[0], share_name_sql(n));
    note_stmt(c, &facts->stmts[0], share_name_sql(n));
    prep_unref(&prep);
}

/* Behind what was noted of a statement. */
WARM static void note_end_of_text(struct client *c, struct slice sql)
{
    struct share *s = c->share;

    if (share_text_is_doubtful(c, sql))
        share_note_unread(c); /* what it does is not known */
    if (s->reset_seen && c->link != NULL && !c->link->expect.holds) {
        /* The client is told of its parameters when they are right again. */
        c->link->tells = LINK_TELLS_NOTHING;
        expect_hold(&c->link->expect);
    }
}

/* Mostly the server rejects it, too. */
COLD static void note_unparsed(struct client *c)
{
    struct share *s = c->share;

    s->turn->string.is_unread = s->exchange.hold = true;
    if (c->link != NULL)
        s->turn->op_flags |= OP_TAGS;
}

WARM void share_note(struct client *c, struct slice sql, const struct sql_facts *facts)
{
    struct share *s = c->share;
    uint32_t traits = share_traits(facts, sql);
    struct share_effects e;
    uint32_t i;

    if (!s->exchange.hold)
        s->turn->mark_pins = s->pins;
    s->exchange.in_string = facts->nstmts > 1;
    if (facts->status != SQL_OK)
        note_unparsed(c);
    if (!c->server_batch)
        s->exchange.tx_is_over = false; /* by an earlier query, which may still fail */
    begin_unsaid(c);
    if ((traits & SHARE_IS_TX_WORD) != 0) {
        s->turn->string.at = 0;
        s->turn->string.is_last = true;
        note_tx(c, facts->stmts);
    }
    if ((traits & (SHARE_IS_PLAIN | SHARE_IS_TX_WORD)) != 0) {
        note_end_of_text(c, sql);
        return;
    }
    share_effects_here(c, facts, sql, &e);
    if (s->exchange.in_string && c->link != NULL)
        s->turn->op_flags |= OP_TAGS;
    for (i = 0; i < facts->nstmts; i++) {
        s->turn->string.at = (uint16_t)i;
        s->turn->string.is_last = i + 1 == facts->nstmts;
        begin_unsaid(c);
        if (facts->stmts[i].kind == SQL_PREPARE)
            share_names_note_prepare(c, &facts->stmts[i], sql);
        note_stmt(c, &facts->stmts[i], sql);
        note_executed(c, &facts->stmts[i]);
    }
    if (e.pins != 0)
        pin(c, e.pins);
    if (e.stays && c->link != NULL)
        c->link->is_retired = true;
    s->look_at_pins = s->look_at_pins || e.look;
    if (e.any)
        s->exchange.hold = true;
    note_end_of_text(c, sql);
}

void share_note_unread(struct client *c)
{
    c->kind->routed(c, ROUTED_UNKNOWN);
    c->share->exchange.hold = true;
    pin(c, PIN_BIT(UNKNOWN));
}

/* What has failed came behind the end of the transaction. */
static bool has_committed(const struct share *s)
{
    const struct share_end *e = s->turn->ended;

    return e != NULL && e->committed && !e->begins && s->turn->ends == NULL;
}

void share_forget_skipped(struct share *s)
{
    if (s->turn->ends != NULL && s->turn->tx.client != NULL)
        share_vars_assign(&s->turn->tx, &s->turn->ends->tx);
}

/* Which parts of what failed were kept is known to the server alone. */
static bool is_in_doubt(const struct share *s, bool is_open)
{
    return s->exchange.has_set &&
           (s->turn->commits_unseen ||
               (is_open && s->exchange.has_tx_words && s->turn->mark.client != NULL));
}

/* The settings go back to those from before. With no transaction open and a word of one that was
 * told, that is what this word left. */
static void settle_vars(struct client *c, bool is_open)
{
    struct share *s = c->share;
    const struct share_end *last = is_open || !s->exchange.has_set ? NULL : s->turn->ended;

    if (last != NULL) {
        share_vars_assign(&s->vars, &last->vars);
        savepoints_forget(&s->turn->savepoints);
    } else if (!is_open && s->turn->tx.client != NULL && !share_tx_is_sequence(s)) {
        if (!has_committed(s))
            roll_back(c);
    } else if (s->turn->mark.client != NULL) {
        share_vars_assign(&s->vars, &s->turn->mark);
    }
}

/* The exchange failed: what it would have changed did not happen. */
static void settle_failure(struct client *c, bool is_open)
{
    struct share *s = c->share;
    uint32_t pins = s->pins;

    share_forget_skipped(s);
    if (is_in_doubt(s, is_open)) {
        /* What was skipped must not be put on a link, by what puts a RESET right: most of all
         * nobody's role. */
        if (s->turn->mark.client != NULL)
            share_vars_assign(&s->vars, &s->turn->mark);
        pin(c, PIN_BIT(SETTING));
        return;
    }
    settle_vars(c, is_open);
    if (!s->exchange.has_set && !s->exchange.hold)
        return;
    s->pins = (s->pins & PINS_THAT_STAY) | s->turn->mark_pins;
    if (s->exchange.has_tx_words && (pins & ~s->pins) != 0) {
        s->pins |= pins; /* perhaps the error is behind the COMMIT */
        s->look_at_pins = true;
    }
}

static void settle_transaction(struct share *s, bool is_open)
{
    if (!is_open) {
        if (s->turn->tx.client != NULL || s->turn->tx.link != NULL)
            share_vars_clear(&s->turn->tx);
        s->turn->commits_unseen = false;
        s->has_temp_path = false;
        savepoints_forget(&s->turn->savepoints);
        if (s->turn->portals != NULL)
            share_portals_free(s);
        s->turn->leave.may_go_out = false;
        s->turn->leave.portal_left = false;
    } else {
        begin(s); /* by a statement that was not looked at */
        if (s->turn->portals != NULL)
            share_portals_settle(s);
    }
}

WARM void share_settle(struct client *c)
{
    struct share *s = c->share;
    bool is_open = share_tx_status(c) != 'I';

    if (s->exchange.saw_error)
        settle_failure(c, is_open);
    if (s->turn->string.is_unread && (!s->exchange.saw_error || s->turn->string.ntags > 0))
        pin(c, PIN_BIT(UNKNOWN));
    if (!s->exchange.saw_error || s->turn->was_discarded)
        s->pins &= ~s->turn->untied;
    s->turn->untied = 0;
    settle_transaction(s, is_open);
    if (s->turn->mark.client != NULL)
        share_vars_clear(&s->turn->mark);
    if (s->exchange.saw_error && !is_open) /* it did not happen, or that did */
        s->reset_seen = s->vars.client != s->vars.link;
    else if (s->exchange.saw_error && !s->exchange.in_string)
        s->reset_seen = s->turn->was_discarded && !varset_is_empty(s->base);
    if (share_tx_status(c) != 'E')
        s->turn->was_discarded = false;
    s->exchange = (struct share_exchange){0};
    s->turn->string = (struct share_string){0};
    if (s->turn->ends != NULL || s->turn->ended != NULL)
        ends_free(s);
    if (c->link->vars != s->vars.link)
        varset_assign(&c->link->vars, s->vars.link);
}

void share_forget_ends(struct share *s)
{
    ends_free(s);
}

void share_end_lost(struct share *s)
{
    share_vars_clear(&s->turn->tx);
    savepoints_forget(&s->turn->savepoints);
    ends_free(s);
    share_portals_free(s);
}

void share_roll_back(struct client *c)
{
    struct share *s = c->share;

    roll_back(c);
    share_end_lost(s);
    varset_assign(&c->link->vars, s->vars.link);
}

void share_state_free(struct client *c)
{
    struct share *s = c->share;

    savepoints_forget(&s->turn->savepoints);
    ends_free(s);
    share_vars_clear(&s->vars);
    share_portals_free(s);
    varset_unref(&s->base);
}

void share_note_fetch(struct client *c)
{
    const struct share_portal *p;

    for (p = c->share->turn->portals; p != NULL; p = p->next)
        if (p->len > 0 && !p->is_over) {
            share_note_unread(c);
            return;
        }
}
