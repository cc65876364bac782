/* SPDX-License-Identifier: PostgreSQL
 * follow.c: what a statement does to the session of a followed client. Runs in:
 * workers. A change is made when the statement is sent and taken back when the exchange fails or
 * the transaction is rolled back: sets are immutable, so a place to go back to is two pointers. */
#include "config.h"

#include <string.h>

#include "base/hot.h"
#include "base/mem.h"

#include "sstate_int.h"
#include "sstate/sstate_vars_int.h"

#define PIN_BIT(sym) (1U << PIN_REASON_##sym)
/* Ties that outlive a rollback. */
#define PINS_THAT_STAY                                                                             \
    (PIN_BIT(ADVISORY_LOCK) | PIN_BIT(LOAD) | PIN_BIT(UNKNOWN) | PIN_BIT(SESSION_MODE))

/* A change follows: what was before must be known. */
static void remember(struct sstate *s)
{
    if (s->errand->mark.client != NULL)
        return;
    sstate_vars_assign(&s->errand->mark, &s->vars);
}

static void pin(struct client *c, uint32_t reasons)
{
    struct sstate *s = c->sstate;

    tx_leave_no_more(&s->errand->leave);
    if (lent_keeps(s) || c->ss->conf->pin_on_session_state != CONF_PIN_OFF) {
        s->pins |= reasons;
        s->errand->untied &= ~reasons;
    } else if (c->link != NULL)
        c->link->must_clean = true; /* the state is lost, and not left to the next client */
}

/* In a transaction from here on. */
static void begin(struct sstate *s)
{
    if (s->errand->tx.client != NULL)
        return;
    sstate_vars_assign(&s->errand->tx, &s->vars);
    s->errand->tx_pins = s->pins;
}

/* What is from before a commit that was not seen, and stays, is known to the server alone. */
static void roll_back(struct client *c)
{
    struct sstate *s = c->sstate;

    if (s->errand->tx.client == NULL)
        return;
    savepoints_forget(&s->errand->savepoints);
    if (s->errand->commits_unseen) {
        pin(c, PIN_BIT(UNKNOWN));
        return;
    }
    sstate_vars_assign(&s->vars, &s->errand->tx);
    s->pins = (s->pins & PINS_THAT_STAY) | s->errand->tx_pins;
}

/* The settings from before stay known, for COMMIT may fail; but what follows is another
 * transaction. */
static void commit(struct sstate *s)
{
    savepoints_forget(&s->errand->savepoints);
    if ((s->pins & ~s->errand->tx_pins & PIN_BIT(TEMP_TABLE)) != 0)
        s->look_at_pins = true; /* ON COMMIT DROP */
    s->exchange.tx_is_over = s->errand->tx.client != NULL;
}

/* A string is one transaction, unless it says otherwise, and so is a sequence of the extended
 * protocol: a BEGIN in it makes all that is in front of it part of the block. */
static void begin_unsaid(struct client *c)
{
    struct sstate *s = c->sstate;

    if (!errand_in_string(s->errand) && !c->server_batch)
        return;
    if (s->exchange.tx_is_over)
        sstate_vars_clear(&s->errand->tx);
    s->exchange.tx_is_over = false;
    s->exchange.tx_is_string = s->exchange.tx_is_string || s->errand->tx.client == NULL;
    begin(s);
}

static void note_savepoint(struct client *c, const struct sql_tx *tx)
{
    struct sstate *s = c->sstate;
    struct savepoints *sp = &s->errand->savepoints;

    if (tx->op == SQL_TX_SAVEPOINT && !savepoints_set(sp, tx->name, &s->vars, s->pins))
        pin(c, PIN_BIT(SETTING)); /* a rollback to it would not be followed */
    else if (tx->op == SQL_TX_ROLLBACK_TO)
        savepoints_roll_back_to(sp, tx->name, &s->vars, &s->pins);
    else if (tx->op == SQL_TX_RELEASE)
        savepoints_release(sp, tx->name);
}

static void end_free(struct sstate *s, struct tx_end *e)
{
    if (e == NULL)
        return;
    sstate_vars_clear(&e->vars);
    sstate_vars_clear(&e->tx);
    if (e != &s->errand->only_end)
        mem_free(e);
}

/* Mostly there is but one. */
static struct tx_end *end_new(struct errand *t)
{
    if (t->ends != NULL || t->ended != NULL)
        return mem_alloc_zero(sizeof(struct tx_end));
    memset(&t->only_end, 0, sizeof t->only_end);
    return &t->only_end;
}

WARM void follow_forget_ends(struct sstate *s)
{
    struct tx_end *e;

    while ((e = s->errand->ends) != NULL) {
        s->errand->ends = e->next;
        end_free(s, e);
    }
    end_free(s, s->errand->ended);
    s->errand->ended = NULL;
}

static enum tx_end_kind end_kind(const struct sql_stmt *st)
{
    if (st->tx.op == SQL_TX_BEGIN)
        return TX_END_BEGINS;
    return (st->flags & SQL_F_CHAIN) != 0 ? TX_END_CHAINS : TX_END_PLAIN;
}

/* Should the link die between the tag of a COMMIT and what follows it, the client knows more than
 * the state of the link says. */
static void note_end(struct client *c, const struct sql_stmt *st, const struct sstate_vars *tx)
{
    struct sstate *s = c->sstate;
    struct tx_end **pp = &s->errand->ends;
    struct tx_end *e;

    if (c->link == NULL || (st->tx.op != SQL_TX_BEGIN && st->tx.op != SQL_TX_COMMIT &&
                               st->tx.op != SQL_TX_ROLLBACK && st->tx.op != SQL_TX_PREPARE))
        return;
    while (*pp != NULL)
        pp = &(*pp)->next;
    e = *pp = end_new(s->errand);
    /* One that is skipped is no op: the next number is its Sync's. */
    e->serial = expect_next_serial(&c->link->expect) - (c->link->expect.skipping ? 1 : 0);
    e->at = s->errand->string.at;
    e->nbehind = s->errand->string.nstmts - s->errand->string.at - 1;
    e->kind = end_kind(st);
    sstate_vars_assign(&e->vars, st->tx.op == SQL_TX_BEGIN ? tx : &s->vars);
    sstate_vars_assign(&e->tx, tx);
    s->errand->op_flags |= OP_TAGS;
}

/* DISCARD ALL is committed by itself: no error undoes it. What is behind it was noted before. */
static void note_discarded(struct sstate *s, const struct expect *owed)
{
    if (s->errand->ended != NULL) {
        varset_assign(&s->errand->ended->vars.client, s->base);
        varset_assign(&s->errand->ended->vars.link, s->base->store->empty);
    }
    if (s->errand->mark.client != NULL) {
        varset_assign(&s->errand->mark.client, s->base);
        varset_assign(&s->errand->mark.link, s->base->store->empty);
    }
    s->errand->mark_pins &= PIN_BIT(SESSION_MODE);
    s->errand->was_discarded = true;
    s->ran_made = s->ran_made && owed->len > 1 && (expect_peek(owed, 1) & OP_MASK) != OP_SYNC;
}

WARM void follow_note_tag(struct client *c, struct slice tag)
{
    struct sstate *s = c->sstate;
    struct exchange_string *string = &s->errand->string;
    uint32_t serial = expect_head_serial(&c->link->expect) - string->copied;
    bool is_of_string = string->serial == serial + 1;
    struct tx_end *e = s->errand->ends;

    serial += is_of_string ? 0 : string->copied;
    string->copied += is_of_string ? (uint16_t)expect_count_copied(&c->link->expect) : 0;
    string->ntags++;
    string->ndone += is_of_string;
    if (lent_names_on_tag(c, serial, is_of_string ? string->ndone - 1 : -1) &&
        slice_eq_str(tag, "DISCARD ALL")) {
        note_discarded(s, &c->link->expect);
        c->kind->routed(c, s->ran_made ? ROUTED_CODE : ROUTED_DISCARD);
    }
    if (names_nsql(&s->names) > SSTATE_MAX_SQL_NAMES)
        s->pins |= PIN_BIT(PREPARED);
    if (e == NULL || e->serial != serial || (is_of_string && e->at + 1 != string->ndone))
        return;
    s->errand->ends = e->next;
    if (slice_eq_str(tag, "ROLLBACK"))
        sstate_vars_assign(&e->vars, &e->tx);
    e->kind = e->kind != TX_END_PLAIN       ? TX_END_BEGINS
              : slice_eq_str(tag, "COMMIT") ? TX_END_COMMITTED
                                            : TX_END_PLAIN;
    end_free(s, s->errand->ended);
    s->errand->ended = e;
}

static void note_tx(struct client *c, const struct sql_stmt *st)
{
    struct sstate *s = c->sstate;
    bool failed =
        c->link != NULL && c->link->tx_status == 'E' && s->exchange.words != EXCHANGE_RECOVERS;
    struct sstate_vars tx = {NULL, NULL};

    if (s->exchange.words == EXCHANGE_NO_WORDS)
        s->exchange.words = EXCHANGE_TX_WORDS;
    if (s->errand->savepoints.newest != NULL ||
        (s->errand->tx.client != NULL &&
            (s->vars.client != s->errand->tx.client || s->pins != s->errand->tx_pins)))
        remember(s); /* should it be skipped behind an error */
    sstate_vars_assign(&tx, s->errand->tx.client != NULL ? &s->errand->tx : &s->vars);
    switch (st->kind) {
    case SQL_BEGIN:
        if (s->errand->tx.client == NULL && !errand_in_string(s->errand))
            plan_away_begin(c, &st->tx);
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
    note_end(c, st, &tx);
    sstate_vars_clear(&tx);
    if (st->kind != SQL_SAVEPOINT || st->tx.op == SQL_TX_ROLLBACK_TO)
        s->exchange.words = EXCHANGE_RECOVERS;
    if ((st->flags & SQL_F_CHAIN) != 0 && s->errand->tx.client != NULL) {
        sstate_vars_clear(&s->errand->tx);
        begin(s);
        s->exchange.tx_is_over = false;
        s->errand->leave.snapshot = PLAN_SNAPSHOT_NONE; /* not in the one that begins */
    }
}

/* What is noted comes behind a BEGIN that has no end. */
static bool is_in_block(const struct sstate *s)
{
    const struct tx_end *e = s->errand->ends != NULL ? s->errand->ends : s->errand->ended;

    while (e != NULL && e->next != NULL)
        e = e->next;
    return e != NULL ? e->kind <= TX_END_CHAINS : !s->exchange.tx_is_string;
}

static void note_discard(struct client *c, const struct sql_stmt *st)
{
    struct sstate *s = c->sstate;

    if (slice_ieq_str(st->name, "all")) {
        s->errand->untied |= s->pins & ~PIN_BIT(SESSION_MODE);
        s->exchange.tx_is_over = !is_in_block(s);
        lent_names_word(c, NULL);
    } else if (slice_ieq_str(st->name, "temp") || slice_ieq_str(st->name, "temporary")) {
        s->pins &= ~PIN_BIT(TEMP_TABLE);
    }
}

/* SET LOCAL is not followed, but for whether new objects may be temporary. */
static void note_local_path(struct sstate *s, struct slice sql)
{
    s->has_temp_path = s->has_temp_path || slice_contains(sql, "pg_temp");
}

static void note_calls(struct client *c, const struct sql_stmt *st, struct slice sql)
{
    struct sstate *s = c->sstate;
    uint32_t i;

    for (i = 0; i < st->nfuncs; i++) {
        const struct sql_func *f = &st->funcs[i];

        if (effects_is_unlock(f->name))
            s->look_at_pins = true;
        if (!slice_eq_str(f->name, "set_config"))
            continue;
        note_local_path(s, sql);
        remember(s);
        if ((size_t)f->offset + f->call_len > sql.n ||
            !sstate_vars_note_call(s, slice_of(sql.p + f->offset, f->call_len),
                sstate_calls_are_made(st, effects_stmt_text(st, sql))))
            pin(c, PIN_BIT(SETTING));
        link_note_set(c->link, s->vars.link,
            slice_of(sql.p + f->offset, f->offset > sql.n ? 0 : sql.n - f->offset));
    }
}

void follow_note_code(struct client *c)
{
    struct sstate *s = c->sstate;

    if (!c->server_batch || errand_in_string(s->errand) ||
        (c->link->tx_status != 'I' && s->exchange.words == EXCHANGE_NO_WORDS))
        return; /* in a block, and a string is one, a server refuses that */
    if (s->exchange.words == EXCHANGE_NO_WORDS)
        s->exchange.words = EXCHANGE_TX_WORDS;
    s->errand->commits_unseen = s->errand->commits_unseen || errand_has_set(s->errand) ||
                                s->exchange.hold != EXCHANGE_FLOWS;
    if (errand_has_set(s->errand))
        pin(c, PIN_BIT(SETTING)); /* which of the two is known to the server alone */
}

WARM static void note_stmt(struct client *c, const struct sql_stmt *st, struct slice sql)
{
    struct sstate *s = c->sstate;

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
            note_local_path(s, effects_stmt_text(st, sql));
        remember(s);
        if (!sstate_vars_note(s, st, effects_stmt_text(st, sql)))
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
        follow_note_code(c);
        break;
    case SQL_FETCH:
        follow_note_fetch(c);
        break;
    default:
        if (st->verb == SQL_VERB_UNLISTEN)
            s->look_at_pins = true;
        if (st->verb != SQL_VERB_DISCARD ||
            (errand_in_string(s->errand) && slice_ieq_str(st->name, "all")))
            break; /* the server refuses DISCARD ALL in a string of several statements */
        remember(s);
        (void)sstate_vars_note(s, st, sql);
        link_note_set(c->link, s->vars.link, slice_of_str(""));
        note_discard(c, st);
        break;
    }
    if (st->kind == SQL_DEALLOCATE)
        follow_sql_note_deallocate(c, st);
    note_calls(c, st, sql);
}

/* EXECUTE in SQL of what the protocol has prepared. It ties the session, but links were opened
 * without the start-up parameters: what goes back to them is put right, and names are known. */
static void note_executed(struct client *c, const struct sql_stmt *st)
{
    const struct names_entry *n = NULL;
    unsigned i;

    for (i = 0; st != NULL && st->kind == SQL_EXECUTE && i < SSTATE_MAX_EXECUTES; i++) {
        n = names_find(&c->sstate->names, st->name);
        st = effects_of_name(c, n);
    }
    if (st == NULL || n == NULL)
        return;
    if (st->kind == SQL_PREPARE)
        follow_sql_note_prepare(c, st, prep_sql(n->prep));
    note_stmt(c, st, prep_sql(n->prep)); /* what it drops is there until it is settled */
}

/* Behind what was noted of a statement. */
WARM static void note_end_of_text(struct client *c, struct slice sql)
{
    struct sstate *s = c->sstate;

    if (sstate_text_is_doubtful(c, sql))
        follow_note_unread(c); /* what it does is not known */
    if (sstate_is_reset(s) && c->link != NULL && !c->link->expect.holds) {
        /* The client is told of its parameters when they are right again. */
        c->link->loan.tells = LINK_TELLS_NOTHING;
        expect_hold(&c->link->expect);
    }
}

/* Mostly the server rejects it, too. */
COLD static void note_unparsed(struct client *c)
{
    struct sstate *s = c->sstate;

    s->exchange.hold = EXCHANGE_HOLDS_UNREAD;
    s->errand->op_flags |= c->link != NULL ? OP_TAGS : 0;
}

WARM void follow_note(struct client *c, struct slice sql, const struct sql_facts *facts)
{
    struct sstate *s = c->sstate;
    uint32_t traits = effects_traits(facts, sql);
    struct effects e;
    uint32_t i;

    if (s->exchange.hold == EXCHANGE_FLOWS)
        s->errand->mark_pins = s->pins;
    s->errand->string.nstmts = facts->nstmts;
    if (facts->status != SQL_OK)
        note_unparsed(c);
    if (!c->server_batch)
        s->exchange.tx_is_over = false; /* by an earlier query, which may still fail */
    begin_unsaid(c);
    if ((traits & EFFECTS_IS_TX_WORD) != 0) {
        s->errand->string.at = 0;
        note_tx(c, facts->stmts);
    }
    if ((traits & (EFFECTS_IS_PLAIN | EFFECTS_IS_TX_WORD)) != 0) {
        note_end_of_text(c, sql);
        return;
    }
    effects_here(c, facts, sql, &e);
    if (errand_in_string(s->errand) && c->link != NULL) {
        s->errand->op_flags |= OP_TAGS;
        if (s->errand->string.serial == 0) /* one that changes anything is the first */
            s->errand->string.serial = expect_next_serial(&c->link->expect) + 1;
    }
    for (i = 0; i < facts->nstmts; i++) {
        s->errand->string.at = (uint16_t)i;
        begin_unsaid(c);
        if (facts->stmts[i].kind == SQL_PREPARE)
            follow_sql_note_prepare(c, &facts->stmts[i], sql);
        note_stmt(c, &facts->stmts[i], sql);
        note_executed(c, &facts->stmts[i]);
    }
    if (e.pins != 0)
        pin(c, e.pins);
    if (e.leaves == SSTATE_LEAVES_MORE && c->link != NULL)
        c->link->is_retired = true;
    else if (e.leaves == SSTATE_LEAVES_SETTING && c->link != NULL)
        c->link->must_clean = true;
    s->look_at_pins = s->look_at_pins || e.look;
    if (e.changes == SSTATE_CHANGES_SESSION)
        exchange_holds(&s->exchange);
    note_end_of_text(c, sql);
}

void follow_note_unread(struct client *c)
{
    c->kind->routed(c, ROUTED_UNKNOWN);
    exchange_holds(&c->sstate->exchange);
    pin(c, PIN_BIT(UNKNOWN));
}

/* What has failed came behind the end of the transaction. */
static bool has_committed(const struct sstate *s)
{
    const struct tx_end *e = s->errand->ended;

    return e != NULL && e->kind == TX_END_COMMITTED && s->errand->ends == NULL;
}

void follow_forget_skipped(struct sstate *s)
{
    if (s->errand->ends != NULL && s->errand->tx.client != NULL)
        sstate_vars_assign(&s->errand->tx, &s->errand->ends->tx);
}

/* Which parts of what failed were kept is known to the server alone. */
static bool is_in_doubt(const struct sstate *s, bool is_open)
{
    return errand_has_set(s->errand) &&
           (s->errand->commits_unseen || (is_open && s->exchange.words != EXCHANGE_NO_WORDS));
}

/* The settings go back to those from before. With no transaction open and a word of one that was
 * told, that is what this word left. */
static void settle_vars(struct client *c, bool is_open)
{
    struct sstate *s = c->sstate;
    const struct tx_end *last = is_open || !errand_has_set(s->errand) ? NULL : s->errand->ended;

    if (last != NULL) {
        sstate_vars_assign(&s->vars, &last->vars);
        savepoints_forget(&s->errand->savepoints);
    } else if (!is_open && s->errand->tx.client != NULL && !sstate_tx_is_sequence(s)) {
        if (!has_committed(s))
            roll_back(c);
    } else if (s->errand->mark.client != NULL) {
        sstate_vars_assign(&s->vars, &s->errand->mark);
    }
}

/* The exchange failed: what it would have changed did not happen. */
static void settle_failure(struct client *c, bool is_open)
{
    struct sstate *s = c->sstate;
    uint32_t pins = s->pins;

    follow_forget_skipped(s);
    if (is_in_doubt(s, is_open)) {
        /* What was skipped must not be put on a link, by what puts a RESET right: most of all
         * nobody's role. */
        sstate_vars_assign(&s->vars, &s->errand->mark);
        pin(c, PIN_BIT(SETTING));
        return;
    }
    settle_vars(c, is_open);
    if (!errand_has_set(s->errand) && s->exchange.hold == EXCHANGE_FLOWS)
        return;
    s->pins = (s->pins & PINS_THAT_STAY) | s->errand->mark_pins;
    if (s->exchange.words != EXCHANGE_NO_WORDS && (pins & ~s->pins) != 0) {
        s->pins |= pins; /* perhaps the error is behind the COMMIT */
        s->look_at_pins = true;
    }
}

static void settle_transaction(struct sstate *s, bool is_open)
{
    if (!is_open) {
        if (s->errand->tx.client != NULL || s->errand->tx.link != NULL)
            sstate_vars_clear(&s->errand->tx);
        s->errand->commits_unseen = false;
        s->has_temp_path = false;
        savepoints_forget(&s->errand->savepoints);
        if (s->errand->portals != NULL)
            names_portals_free(&s->errand->portals);
        tx_leave_no_more(&s->errand->leave);
        s->errand->leave.portal_left = false;
    } else {
        begin(s); /* by a statement that was not looked at */
        if (s->errand->portals != NULL)
            names_portals_settle(&s->errand->portals, s->exchange.saw_error);
    }
}

WARM void follow_settle(struct client *c)
{
    struct sstate *s = c->sstate;
    bool is_open = sstate_tx_status(c) != 'I';

    if (s->exchange.saw_error)
        settle_failure(c, is_open);
    if (s->exchange.hold == EXCHANGE_HOLDS_UNREAD &&
        (!s->exchange.saw_error || s->errand->string.ntags > 0))
        pin(c, PIN_BIT(UNKNOWN));
    if (!s->exchange.saw_error || s->errand->was_discarded)
        s->pins &= ~s->errand->untied;
    s->errand->untied = 0;
    settle_transaction(s, is_open);
    if (s->errand->mark.client != NULL)
        sstate_vars_clear(&s->errand->mark);
    if (sstate_tx_status(c) != 'E')
        s->errand->was_discarded = false;
    s->exchange = (struct exchange){0};
    s->errand->string = (struct exchange_string){0};
    if (s->errand->ends != NULL || s->errand->ended != NULL)
        follow_forget_ends(s);
    if (c->link->vars != s->vars.link)
        varset_assign(&c->link->vars, s->vars.link);
}

void follow_end_lost(struct sstate *s)
{
    sstate_vars_clear(&s->errand->tx);
    savepoints_forget(&s->errand->savepoints);
    follow_forget_ends(s);
    names_portals_free(&s->errand->portals);
}

void follow_roll_back(struct client *c)
{
    struct sstate *s = c->sstate;

    roll_back(c);
    follow_end_lost(s);
    varset_assign(&c->link->vars, s->vars.link);
}

void follow_free(struct client *c)
{
    struct sstate *s = c->sstate;

    savepoints_forget(&s->errand->savepoints);
    follow_forget_ends(s);
    sstate_vars_clear(&s->vars);
    names_portals_free(&s->errand->portals);
    varset_unref(&s->base);
}

void follow_note_fetch(struct client *c)
{
    const struct names_portal *p;

    for (p = c->sstate->errand->portals; p != NULL; p = p->next)
        if (p->len > 0 && p->state != PORTAL_IS_OVER) {
            follow_note_unread(c);
            return;
        }
}
