/* SPDX-License-Identifier: PostgreSQL
 * balance_state.c: what a session changed of its own state, so that the reader can be brought to
 * it. SET and RESET statements are kept as text and replayed in order, those of a transaction only
 * after it was committed. What cannot be replayed (set_config() with more than literals, DO, CALL,
 * LOAD, a rolled back savepoint) makes the session read from the primary until DISCARD ALL, and
 * PGPOOL EXPLAIN says so.
 */
#include "config.h"

#include <string.h>

#include "base/hot.h"
#include "base/mem.h"
#include "config/conf.h"
#include "parser/parser.h"
#include "route/route_marks.h"
#include "wire/writer.h"

#include "share_vars_int.h"

static void log_add(struct client *c, struct buf *to, struct slice text)
{
    if (to->len + text.n + 1 > BALANCE_LOG_MAX) {
        c->balance->rs.state_unknown = true;
        return;
    }
    buf_put(to, text.p, text.n);
    buf_put_byte(to, '\0');
}

/* Kept apart until the link is quiet: only then is it known how it went. */
static void note_setting(struct client *c, struct slice text)
{
    log_add(c, &c->balance->own->pending, text);
    c->balance->own->has_new_setting = true;
    if (c->balance->own->has_tx_end && c->balance->own->nexchanges > 1)
        c->balance->rs.state_unknown = true; /* behind a COMMIT on its way: not of its fate */
}

static void forget_state(struct client *c)
{
    struct balance *b = c->balance;

    buf_free(&b->own->log);
    buf_free(&b->own->pending);
    b->rs.state_unknown = false;
    c->is_tied = false;
    b->rs.has_temp_tables = false;
    b->rs.search_path_changed = false;
    route_trace_on_discard(b->rs.trace);
    b->own->holds_cursors = false;
}

/* In a transaction, and in a string of several statements, the server refuses it. */
static void note_discard_all(struct client *c, const struct sql_facts *facts, unsigned asked)
{
    const struct sql_stmt *s = &facts->stmts[0];
    struct balance *b = c->balance;

    if (facts->nstmts != 1 || s->verb != SQL_VERB_DISCARD || !slice_ieq_str(s->name, "all") ||
        balance_tx_status(c) != 'I')
        return;
    if (b->own->nexchanges > 1) {
        b->rs.state_unknown = true; /* there may be one by then */
        balance_close_all(c, asked | STATEMENT_INEXACT);
        return;
    }
    if (c->target == c->link)
        balance_drop_readers(c, true); /* they are reset on their way back */
    balance_close_all(c, asked);
    forget_state(c); /* before the answer: what comes behind it in its sequence is noted after it */
    b->own->level_next = SQL_ISO_UNSET + 1;
    b->own->discards = true;
    b->own->has_new_setting = true; /* what comes next waits for the answer */
}

static bool is_transaction_default(struct slice name)
{
    static const char prefix[] = "default_transaction_";

    return name.n > sizeof prefix - 1 && memcmp(name.p, prefix, sizeof prefix - 1) == 0;
}

bool balance_is_of_transaction(struct slice name)
{
    return slice_eq_str(name, "transaction_read_only") ||
           slice_eq_str(name, "transaction_isolation") ||
           slice_eq_str(name, "transaction_deferrable");
}

static struct slice without_quotes(struct slice v)
{
    bool is_quoted = v.n >= 2 && (*v.p == '\'' || *v.p == '"') && v.p[v.n - 1] == *v.p;

    return is_quoted ? slice_of(v.p + 1, v.n - 2) : v;
}

static enum sql_isolation level_of(struct slice value)
{
    static const char *const name[] = {
        [SQL_ISO_READ_UNCOMMITTED] = "read uncommitted",
        [SQL_ISO_READ_COMMITTED] = "read committed",
        [SQL_ISO_REPEATABLE_READ] = "repeatable read",
        [SQL_ISO_SERIALIZABLE] = "serializable",
    };
    size_t i;

    for (i = SQL_ISO_READ_UNCOMMITTED; i < sizeof name / sizeof name[0]; i++)
        if (slice_ieq_str(without_quotes(value), name[i]))
            return (enum sql_isolation)i;
    return SQL_ISO_UNSET;
}

/* The level of the transactions to come, said in this one. Which it is must be known: a standby has
 * no serializable one, and repeatable read keeps reads together. */
static void note_default(struct client *c, const struct sql_stmt *s)
{
    struct balance_own *own = c->balance->own;
    enum sql_isolation level = s->tx.isolation;
    bool says_level = s->set.scope == SQL_SET_CHARACTERISTICS
                          ? level != SQL_ISO_UNSET
                          : slice_eq_str(s->set.name, "default_transaction_isolation");

    if (s->set.scope == SQL_SET_SESSION && s->set.how == SQL_SET_VALUE)
        level = level_of(s->set.value);
    if (!says_level)
        return;
    if (level == SQL_ISO_UNSET && s->set.how == SQL_SET_VALUE)
        c->balance->rs.state_unknown = true;
    own->level_next = (uint8_t)(level + 1);
}

static void set_level(struct client *c, unsigned level)
{
    struct balance *b = c->balance;

    b->own->level = (uint8_t)level;
    b->rs.default_serializable =
        level == SQL_ISO_SERIALIZABLE || (level == SQL_ISO_UNSET && balance_begins_serializable(c));
    b->rs.default_repeatable = level == SQL_ISO_REPEATABLE_READ;
}

static void settle_default(struct client *c)
{
    const struct balance_own *own = c->balance->own;

    if (own->level_next != 0)
        set_level(c, own->level_next - 1U);
}

void balance_discard(struct client *c)
{
    forget_state(c);
    set_level(c, SQL_ISO_UNSET);
    c->balance->own->discards = false;
}

static void note_set(struct client *c, const struct sql_stmt *s, struct slice text)
{
    struct balance *b = c->balance;
    bool of_tx = s->set.scope == SQL_SET_TRANSACTION || balance_is_of_transaction(s->set.name);

    b->own->tx.stays = true; /* forgotten at once outside of a transaction */
    if (of_tx && b->reason == ROUTE_R_SET_READ_WRITE)
        b->own->tx.moves = b->own->home != NULL && c->target == c->link;
    if (of_tx && b->reason == ROUTE_R_SET_SERIALIZABLE)
        b->rs.tx_serializable = true;
    if (s->set.scope == SQL_SET_TRANSACTION && s->tx.isolation != SQL_ISO_UNSET) {
        b->own->tx.isolation = (uint8_t)s->tx.isolation;
        b->rs.tx_serializable = s->tx.isolation == SQL_ISO_SERIALIZABLE;
    }
    if (!of_tx && (s->set.scope == SQL_SET_SESSION || s->set.scope == SQL_SET_CHARACTERISTICS ||
                      s->set.scope == SQL_SET_LOCAL))
        balance_note_tx_setting(c, text);
    switch (s->set.scope) {
    case SQL_SET_SESSION:
        if (of_tx)
            break;
        note_setting(c, text);
        note_default(c, s);
        break;
    case SQL_SET_CHARACTERISTICS:
        note_setting(c, text);
        note_default(c, s);
        break;
    case SQL_SET_NONE:
    case SQL_SET_LOCAL:
    case SQL_SET_TRANSACTION:
    case SQL_SET_CONSTRAINTS:
        break;
    }
}

/* Settings that give names another meaning. */
static void note_path_of(struct client *c, struct slice name)
{
    if (slice_eq_str(name, "search_path") || slice_eq_str(name, "role") ||
        slice_eq_str(name, "session_authorization"))
        c->balance->rs.search_path_changed = true;
}

static void note_path(struct client *c, const struct sql_stmt *s)
{
    note_path_of(c, s->set.name);
    if ((s->flags & SQL_F_ALL) != 0)
        c->balance->rs.search_path_changed = true;
}

/* One that is made to fail in the place of a lost one is there, although no server has said so. */
static bool is_in_transaction(const struct client *c)
{
    return balance_tx_status(c) != 'I' || c->balance->own->is_failing;
}

/* What BEGIN says, when it begins one; nothing of it is known when it stood among others. */
static void note_begin(struct client *c, const struct sql_stmt *s, bool is_alone)
{
    struct balance *b = c->balance;
    /* A reader that has just become the home may still have to tell the end of the last one. */
    bool at_new_home = b->own->home != NULL && !b->own->tx_was_open && !b->own->has_begun;

    if (!at_new_home && is_in_transaction(c) && b->own->tx_end == 0)
        return; /* only a warning */
    b->own->has_begun = true;
    b->own->tx = (struct balance_tx){.is_known = is_alone && b->own->nexchanges <= 1,
        .stays = !is_alone,
        .isolation = (uint8_t)s->tx.isolation,
        .read_only = (uint8_t)s->tx.read_only,
        .deferrable = (uint8_t)s->tx.deferrable};
    b->rs.tx_begun_in_multi = !is_alone;
    b->rs.tx_read_only = s->tx.read_only == SQL_YES;
    b->rs.tx_serializable = s->tx.isolation == SQL_ISO_SERIALIZABLE;
    b->rs.tx_says_level = s->tx.isolation != SQL_ISO_UNSET;
    b->rs.tx_says_repeatable = s->tx.isolation == SQL_ISO_REPEATABLE_READ;
}

/* SQL's PREPARE: kept as the Query that makes it again elsewhere. */
static void note_prepare(
    struct client *c, const struct sql_stmt *s, struct slice text, unsigned asked)
{
    struct buf msg = {0};

    wire_put_query(&msg, text);
    balance_note_parse(c, s->name, buf_slice(&msg), COUNT_OTHER, asked);
    buf_free(&msg);
}

static void add_mark(struct client *c, uint32_t oid)
{
    struct balance *b = c->balance;

    if (b->mark == NULL)
        b->mark = mem_alloc(BALANCE_MAX_MARKS * sizeof b->mark[0]);
    if (b->nmarks == BALANCE_MAX_MARKS)
        b->mark[0] = route_marks_key(pool_database(c->pool), 0); /* every table, then */
    else
        b->mark[b->nmarks++] = route_marks_key(pool_database(c->pool), oid);
}

static bool follows_marks(const struct client *c)
{
    return c->ss->conf->disable_load_balance_on_write == CONF_WRITE_DML_ADAPTIVE_GLOBAL;
}

void balance_mark_all(struct client *c)
{
    if (follows_marks(c))
        add_mark(c, 0);
}

void balance_note_marks(struct client *c, const struct sql_stmt *s)
{
    uint32_t bits;
    uint32_t i;

    if (!follows_marks(c))
        return;
    for (i = 0; i < s->ntables; i++) {
        struct route_question q = {
            .kind = ROUTE_Q_OID, .schema = s->tables[i].schema, .name = s->tables[i].name};

        if ((s->tables[i].flags & (SQL_TABLE_TARGET | SQL_TABLE_DDL)) == 0)
            continue;
        if (balance_lookup(c, &q, &bits) == -1)
            bits = 0;
        add_mark(c, bits);
    }
    /* What these write to is not in their text. */
    if (s->kind == SQL_EXECUTE || s->inner == SQL_EXECUTE || s->tx.op == SQL_TX_COMMIT_PREPARED)
        add_mark(c, 0);
}

/* SELECT set_config(...) and nothing besides: what it says is done, and done once. */
static bool is_bare_call(const struct sql_stmt *s, const struct sql_func *f, struct slice sql)
{
    size_t end = (size_t)f->offset + f->call_len;

    return s->kind == SQL_SELECT && s->nfuncs == 1 && f->offset >= s->offset &&
           end == (size_t)s->offset + s->len && end <= sql.n && f->offset - s->offset <= 16 &&
           strncasecmp(sql.p + s->offset, "select", 6) == 0 &&
           strspn(sql.p + s->offset + 6, " \t\r\n") == f->offset - s->offset - 6;
}

/* A call whose third argument is true ends with its transaction. One that cannot be understood may
 * have changed anything. */
static void note_set_config(
    struct client *c, const struct sql_stmt *s, const struct sql_func *f, struct slice sql)
{
    struct balance *b = c->balance;
    struct buf name = {0};
    struct buf call = {0};
    enum set_config_call is = SET_CONFIG_UNKNOWN;

    b->own->tx.stays = true;
    if ((size_t)f->offset + f->call_len <= sql.n)
        is = share_set_config(slice_of(sql.p + f->offset, f->call_len), &name, &call);
    if (share_is_session_call(is) && is_bare_call(s, f, sql) &&
        !is_transaction_default(buf_slice(&name))) {
        note_setting(c, buf_slice(&call));
        balance_note_tx_setting(c, buf_slice(&call));
        note_path_of(c, buf_slice(&name));
    } else {
        balance_note_tx_setting(c, slice_of("", 0));
        b->rs.state_unknown = b->rs.state_unknown || is != SET_CONFIG_LOCAL;
        if (share_is_session_call(is) && b->own->home != NULL && c->target != c->link)
            note_setting(c, buf_slice(&call)); /* behind a Flush: the own link has it at the end */
    }
    buf_free(&name);
    buf_free(&call);
}

bool balance_can_repeat_calls(const struct sql_facts *facts, struct slice sql)
{
    struct buf name = {0};
    struct buf call = {0};
    bool can = true;
    uint32_t i;
    uint32_t k;

    for (i = 0; i < facts->nstmts && can; i++)
        for (k = 0; k < facts->stmts[i].nfuncs && can; k++) {
            const struct sql_func *f = &facts->stmts[i].funcs[k];

            if (!slice_eq_str(f->name, "set_config"))
                continue;
            can = is_bare_call(&facts->stmts[i], f, sql) &&
                  share_is_session_call(
                      share_set_config(slice_of(sql.p + f->offset, f->call_len), &name, &call));
        }
    buf_free(&name);
    buf_free(&call);
    return can;
}

static void note_functions(struct client *c, const struct sql_stmt *s, struct slice sql)
{
    uint32_t i;

    for (i = 0; i < s->nfuncs; i++)
        if (slice_eq_str(s->funcs[i].name, "set_config"))
            note_set_config(c, s, &s->funcs[i], sql);
}

static void note_statement_facts(
    struct client *c, const struct sql_stmt *s, struct slice text, struct slice sql, unsigned asked)
{
    struct balance *b = c->balance;

    switch (s->kind) {
    case SQL_SET:
        note_path(c, s);
        note_set(c, s, text);
        break;
    case SQL_RESET:
        note_path(c, s);
        note_setting(c, text);
        balance_note_tx_setting(c, text);
        b->own->tx.stays = true;
        if ((s->flags & SQL_F_ALL) != 0 ||
            slice_eq_str(s->set.name, "default_transaction_isolation"))
            b->own->level_next = SQL_ISO_UNSET + 1;
        break;
    case SQL_PREPARE:
        note_prepare(c, s, text, asked);
        break;
    case SQL_COMMIT:
    case SQL_ROLLBACK:
        b->own->tx_end = (uint8_t)s->kind;
        b->own->ends_at = b->own->pending.len;
        b->own->tx_ends_at = b->own->tx_log.len;
        break;
    case SQL_CLOSE:
        if ((s->flags & SQL_F_ALL) != 0 && balance_has_portals(c))
            balance_portals_close_all(c);
        break;
    case SQL_SAVEPOINT:
        balance_note_tx_savepoint(c, s, text);
        if (s->tx.op == SQL_TX_ROLLBACK_TO && b->own->pending.len > 0)
            b->rs.state_unknown = true;
        if (s->tx.op == SQL_TX_ROLLBACK_TO)
            route_trace_on_rollback_to(b->rs.trace);
        break;
    case SQL_DEALLOCATE:
        if ((s->flags & SQL_F_ALL) != 0)
            balance_close_all(c, asked);
        else
            balance_close_statement(c, s->name, asked);
        break;
    default:
        if (s->verb == SQL_VERB_LOAD)
            b->rs.state_unknown = true;
        break;
    }
    if ((s->flags & SQL_F_TEMP) != 0)
        b->rs.has_temp_tables = true;
    balance_note_schema(c, s);
    balance_note_marks(c, s);
    route_trace_note(&b->rs.trace, c->ss->rules, text, s, true);
    b->rs.locked_in_tx = b->rs.locked_in_tx || route_locks_standbys(s);
    note_functions(c, s, sql);
}

WARM void balance_note_facts(
    struct client *c, struct slice sql, const struct sql_facts *facts, unsigned asked)
{
    bool is_open = is_in_transaction(c) || c->balance->own->has_begun;
    struct share_effects effects;
    uint32_t nends = 0;
    uint32_t i;

    if (facts->status != SQL_OK)
        balance_note_schema(c, NULL);
    share_effects_of(facts, sql, &effects);
    if ((asked & STATEMENT_INEXACT) != 0 || c->balance->own->nexchanges > 1)
        c->balance->own->tx_is_mixed = true;
    c->is_tied = c->is_tied || effects.pins != 0;
    for (i = 0; i < facts->nstmts; i++) {
        const struct sql_stmt *s = &facts->stmts[i];
        struct slice text = slice_of("", 0);

        if (s->kind == SQL_BEGIN) {
            note_begin(c, s, facts->nstmts == 1);
            is_open = true;
        } else if (s->kind == SQL_COMMIT || s->kind == SQL_ROLLBACK)
            is_open = (s->flags & SQL_F_CHAIN) != 0, nends++;
        if ((size_t)s->offset + s->len <= sql.n)
            text = slice_of(sql.p + s->offset, s->len);
        note_statement_facts(c, s, text, sql, asked);
    }
    note_discard_all(c, facts, asked);
    c->balance->own->has_tx_end = c->balance->own->has_tx_end || nends > 0;
    if (nends > 0)
        c->balance->own->ends_plainly =
            facts->nstmts == 1 && !is_open &&
            (facts->stmts->tx.op == SQL_TX_COMMIT || facts->stmts->tx.op == SQL_TX_ROLLBACK);
    /* Should the link die behind its tag, the client knows that the transaction is over. */
    if (nends == 1 && facts->nstmts == 1 && !is_open && c->target != NULL &&
        c->target == (balance_home(c) == NULL ? c->link : balance_home(c)->link))
        c->target->see_tags = true;
    /* Outside a transaction block the string is a transaction of its own, unless it says otherwise.
     */
    if (!is_open && c->balance->own->tx_end == 0) {
        c->balance->own->tx_end = SQL_COMMIT;
        c->balance->own->ends_plainly = false; /* nobody has said it */
    }
    /* Settings before and behind the end of a transaction in one string share one fate here. */
    if (nends > 0 && facts->nstmts > 1 && c->balance->own->pending.len > 0)
        c->balance->rs.state_unknown = true;
}

/* The reader where the transaction lived has seen them, unless some were made on the own link; that
 * has to follow. As a guest it may have gone further than they say: it gets only what it lacks. So
 * it does when a part of them was taken back: in a transaction, for what it knows of that. */
static void settle_on_own(struct client *c)
{
    struct balance *b = c->balance;
    bool is_ahead = b->own->tx.is_on_own && b->own->own_is_guest;
    uint32_t at = 0;

    if (b->own->home->replayed == b->own->log.len && !b->own->tx.is_on_own)
        b->own->home->replayed += b->own->pending.len;
    if (c->link == NULL)
        return; /* the next one gets them all */
    if ((is_ahead || b->own->tx.goes_back) && !b->own->tx.is_opaque) {
        balance_join_own(c);
        return;
    }
    while (at < b->own->pending.len) {
        struct slice text = slice_of_str(b->own->pending.data + at);

        balance_send_own_text(c, c->link, text);
        at += (uint32_t)text.n + 1;
    }
}

/* The settings of the transaction that just ended are the session's, or never were. */
static void settle_pending(struct client *c, bool committed)
{
    struct balance *b = c->balance;

    if (b->own->discards && !committed)
        b->rs.state_unknown = true; /* it may have come to an end in its midst */
    b->own->discards = false;
    if (committed) {
        route_trace_on_commit(b->rs.trace);
        if (b->own->home != NULL && (b->own->pending.len > 0 || b->own->tx.is_on_own))
            settle_on_own(c);
        if (!balance_log_pending(b->own))
            b->rs.state_unknown = true;
        settle_default(c);
        balance_worker_mark(c->ss, b->mark, b->nmarks);
    } else {
        route_trace_on_rollback(b->rs.trace);
        if (!b->own->saw_error || b->own->nexchanges <= 1)
            balance_drop_doubts(b->own);
        /* With several statements under way it is not known which of them failed. */
        if (b->own->saw_error && b->own->nexchanges > 1) {
            if (b->own->pending.len > 0)
                b->rs.state_unknown = true;
            balance_worker_mark(c->ss, b->mark, b->nmarks);
        }
    }
    if (b->did_ddl)
        balance_worker_ddl(c->ss); /* now it can be seen */
    b->did_ddl = false;
    b->nmarks = 0;
    b->own->level_next = 0;
    buf_free(&b->own->pending);
    b->rs.wrote_in_tx = false;
    b->rs.locked_in_tx = false;
}

/* What PREPARE made in a transaction that lived on a reader outlives it. */
static void prepare_on_own(struct client *c)
{
    struct list *n;

    if (c->statements == NULL || c->link == NULL)
        return;
    LIST_FOREACH(n, &c->statements->order)
    {
        struct statement *st = LIST_ENTRY(n, struct statement, order);

        if (statement_is_sql(st) && !st->is_doubtful)
            balance_need_statement(c, c->link, st);
    }
}

/* AND CHAIN: that is another transaction. */
static void begin_chained(struct balance_own *own)
{
    own->tx.has_read = false;
    if (own->saw_error && own->tx_log.len > 0)
        own->tx.is_opaque = true; /* whether it has begun is not known */
    else if (!own->saw_error)
        balance_cut_tx_log(own);
}

static bool has_unsettled(const struct balance *b)
{
    return b->own->pending.len > 0 || b->own->level_next != 0 || b->nmarks > 0 || b->did_ddl;
}

/* The home is quiet: has a transaction ended (also one with AND CHAIN, or one within a string of
 * several statements)? */
WARM void balance_end_tx(struct client *c)
{
    struct balance *b = c->balance;
    char tx = balance_tx_status(c);
    bool is_open = tx != 'I';
    bool committed = b->own->tx_end == SQL_COMMIT && !b->own->saw_error && !b->tx_failed;

    if (b->own->tx_end != 0 || (b->own->tx_was_open && !is_open) ||
        (!is_open && has_unsettled(b))) {
        settle_pending(c, committed);
        balance_end_guests(c, committed);
    }
    if (!is_open) {
        b->own->has_unnamed = false;
        if (b->own->home != NULL)
            prepare_on_own(c);
        b->own->home = NULL;
        balance_forget_tx_log(b->own);
        memset(&b->own->tx, 0, sizeof b->own->tx);
        b->rs.tx_begun_in_multi = false;
        b->rs.tx_read_only = false;
        b->rs.tx_serializable = false;
    }
    if (b->own->tx_end != 0)
        begin_chained(b->own);
    b->own->has_new_setting = false;
    b->own->has_tx_end = false;
    b->own->has_begun = false;
    b->own->is_failing = false;
    b->own->tx_end = 0;
    b->own->ended = 0;
    b->own->is_untold = b->own->is_untold && is_open;
    b->own->end_is_told = false;
    if (c->link != NULL)
        c->link->see_tags = false;
    b->own->tx_was_open = is_open;
    if (tx != 'E')
        b->tx_failed = false;
}

void balance_replay(struct client *c, struct reader *r)
{
    struct balance *b = c->balance;

    if (b->rs.default_serializable)
        return; /* a standby has no such transactions, and nothing goes there that has settings */
    while (r->replayed < b->own->log.len) {
        struct slice text = slice_of_str(b->own->log.data + r->replayed);

        balance_send_own_text(c, r->link, text);
        r->replayed += (uint32_t)text.n + 1;
    }
}
