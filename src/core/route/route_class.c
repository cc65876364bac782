/* SPDX-License-Identifier: PostgreSQL
 * route_class.c: what a statement is, by its syntax alone: for the primary, to be balanced, about
 * the session or about its transaction. Runs in: workers.
 *
 * is_write is pgpool-II's notion: everything but plain reads and the beginning and end of
 * transactions. Statements that change nothing but the session count only in a transaction: what a
 * driver sets after login must not bind the session to the primary for ever. */
#include "config.h"

#include "route_int.h"

#include "base/assert.h"
#include "base/hot.h"

static void be(struct route_case *c, enum route_class class, enum route_reason reason, bool write)
{
    c->out->class = class;
    c->out->reason = reason;
    c->out->is_write = write;
}

static void primary_write(struct route_case *c, enum route_reason reason)
{
    be(c, ROUTE_PRIMARY, reason, true);
}

/* For the primary, but a write only for the transaction it is in. */
static void primary_state(struct route_case *c, enum route_reason reason)
{
    be(c, ROUTE_PRIMARY, reason, route_in_tx(c->in->session));
}

/* A value of SET without quotes and blanks. */
static struct slice bare(struct slice v)
{
    while (v.n > 0 && (v.p[0] == ' ' || v.p[0] == '\'' || v.p[0] == '"'))
        v = slice_of(v.p + 1, v.n - 1);
    while (v.n > 0 && (v.p[v.n - 1] == ' ' || v.p[v.n - 1] == '\'' || v.p[v.n - 1] == '"'))
        v.n--;
    return v;
}

/* PostgreSQL takes any beginning of false and no, and "of" and "off". */
static bool is_false(struct slice v)
{
    static const char *const word[] = {"0", "false", "no", "off"};
    unsigned i;

    v = bare(v);
    for (i = 0; i < sizeof word / sizeof word[0]; i++) {
        if (v.n == 0 || v.n > strlen(word[i]) || (v.n == 1 && word[i][0] == 'o'))
            continue;
        if (strncasecmp(v.p, word[i], v.n) == 0)
            return true;
    }
    return false;
}

static bool is_name(const struct sql_set *set, const char *a, const char *b)
{
    return slice_ieq_str(set->name, a) || slice_ieq_str(set->name, b);
}

static void classify_set(struct route_case *c, const struct sql_stmt *s)
{
    const struct sql_set *set = &s->set;
    bool is_value = s->kind == SQL_SET && set->how == SQL_SET_VALUE;

    if (s->tx.isolation == SQL_ISO_SERIALIZABLE ||
        (is_value && is_name(set, "transaction_isolation", "default_transaction_isolation") &&
            slice_ieq_str(bare(set->value), "serializable"))) {
        be(c, ROUTE_PRIMARY, ROUTE_R_SET_SERIALIZABLE, false);
        return;
    }
    if (s->tx.read_only == SQL_NO ||
        (is_value && is_name(set, "transaction_read_only", "default_transaction_read_only") &&
            is_false(set->value))) {
        primary_state(c, ROUTE_R_SET_READ_WRITE);
        return;
    }
    /* pg_export_snapshot() runs on the primary: a transaction that is nowhere yet begins there. One
     * that lives on a standby is told so by it; elsewhere this would set nothing. */
    if (is_name(set, "transaction_snapshot", "transaction_snapshot") &&
        c->in->session->tx_node == VIEW_NO_NODE) {
        primary_state(c, ROUTE_R_SET_SNAPSHOT);
        return;
    }
    be(c, ROUTE_SESSION, ROUTE_R_SESSION_STATE, route_in_tx(c->in->session));
    if (s->tx.read_only == SQL_YES || s->tx.isolation != SQL_ISO_UNSET ||
        is_name(set, "transaction_read_only", "default_transaction_read_only"))
        c->out->is_write = false;
}

/* What a standby would answer otherwise than the primary; drivers look for the primary with it. */
static bool is_show_of_role(const struct sql_stmt *s)
{
    return is_name(&s->set, "transaction_read_only", "in_hot_standby");
}

static void classify_read(struct route_case *c, const struct sql_stmt *s)
{
    if (s->flags & SQL_F_INTO)
        primary_write(c, ROUTE_R_SELECT_INTO);
    else if (s->flags & SQL_F_LOCKING)
        primary_write(c, ROUTE_R_LOCKING);
    else if (s->flags & SQL_F_DML_IN_CTE)
        primary_write(c, ROUTE_R_DML_IN_CTE);
    else if (!(s->flags & SQL_F_READ_ONLY))
        primary_write(c, ROUTE_R_WRITE);
    else {
        be(c, ROUTE_EITHER, ROUTE_R_NONE, false);
        c->runs_functions = true;
    }
}

static void classify_copy_to(struct route_case *c, const struct sql_stmt *s)
{
    const uint32_t writes = SQL_F_INTO | SQL_F_LOCKING | SQL_F_DML_IN_CTE;

    if ((s->flags & writes) ||
        ((s->flags & SQL_F_COPY_QUERY) && s->inner != SQL_SELECT && s->inner != SQL_VALUES)) {
        primary_write(c, ROUTE_R_WRITE);
        return;
    }
    c->runs_functions = (s->flags & SQL_F_COPY_QUERY) != 0;
    if (s->flags & SQL_F_COPY_STDIO)
        be(c, ROUTE_EITHER, ROUTE_R_NONE, false);
    else
        be(c, ROUTE_PRIMARY, ROUTE_R_COPY_FILE, false);
}

/* What EXECUTE runs: the statement of the extended protocol, or what PREPARE holds. */
static void classify_prepared(struct route_case *c, const struct sql_stmt *s)
{
    const uint32_t writes = SQL_F_INTO | SQL_F_LOCKING | SQL_F_DML_IN_CTE;

    if (s == NULL) {
        primary_write(c, ROUTE_R_UNKNOWN_PREPARED);
        return;
    }
    if (s->kind != SQL_PREPARE) {
        if (s->kind == SQL_EXECUTE || s->inner == SQL_EXECUTE)
            primary_write(c, ROUTE_R_UNKNOWN_PREPARED); /* or it might run itself */
        else
            route_classify(c, s);
        return;
    }
    if ((s->inner == SQL_SELECT || s->inner == SQL_VALUES) && (s->flags & writes) == 0) {
        be(c, ROUTE_EITHER, ROUTE_R_NONE, false);
        c->runs_functions = true;
        return;
    }
    primary_write(c, s->flags & SQL_F_LOCKING ? ROUTE_R_LOCKING
                     : s->flags & SQL_F_INTO  ? ROUTE_R_SELECT_INTO
                                              : ROUTE_R_WRITE);
}

/* EXPLAIN ANALYZE EXECUTE runs what was prepared. */
static void classify_explain(struct route_case *c, const struct sql_stmt *s)
{
    bool runs = (s->flags & SQL_F_ANALYZE) != 0;

    if (s->inner == SQL_EXECUTE) {
        classify_prepared(c, c->prepared == NULL ? NULL : &c->prepared->stmts[0]);
        c->runs_functions = c->runs_functions && runs;
        if (!runs && c->out->reason != ROUTE_R_UNKNOWN_PREPARED)
            be(c, ROUTE_EITHER, ROUTE_R_NONE, false);
        return;
    }
    if (!(s->flags & SQL_F_READ_ONLY)) {
        primary_write(c, ROUTE_R_EXPLAIN_WRITE);
        return;
    }
    be(c, ROUTE_EITHER, ROUTE_R_NONE, false);
    c->runs_functions = runs;
}

/* PREPARE itself makes a name that the session must know everywhere, so it is noted on the primary
 * and made again where it is executed; what it holds decides about EXECUTE. */
static void classify_prepare(struct route_case *c, const struct sql_stmt *s)
{
    const uint32_t writes = SQL_F_INTO | SQL_F_LOCKING | SQL_F_DML_IN_CTE;
    bool reads = (s->inner == SQL_SELECT || s->inner == SQL_VALUES) && (s->flags & writes) == 0;

    if (reads)
        be(c, ROUTE_SESSION, ROUTE_R_SESSION_STATE, false);
    else
        be(c, ROUTE_PRIMARY, ROUTE_R_WRITE, false);
}

static void classify_other(struct route_case *c, const struct sql_stmt *s)
{
    if (s->tx.op == SQL_TX_PREPARE || s->tx.op == SQL_TX_COMMIT_PREPARED ||
        s->tx.op == SQL_TX_ROLLBACK_PREPARED)
        primary_write(c, ROUTE_R_TWO_PHASE);
    else if (s->verb == SQL_VERB_DISCARD)
        be(c, ROUTE_SESSION, ROUTE_R_SESSION_STATE, route_in_tx(c->in->session));
    else if (s->verb == SQL_VERB_UNLISTEN)
        primary_state(c, ROUTE_R_NOTIFY);
    else
        primary_write(c, ROUTE_R_OTHER);
}

static void classify_begin(struct route_case *c, const struct sql_stmt *s)
{
    const struct route_session *ses = c->in->session;
    bool serializable =
        s->tx.isolation == SQL_ISO_SERIALIZABLE ||
        (s->tx.isolation == SQL_ISO_UNSET && (ses->ties & ROUTE_TIE_SERIALIZABLE) != 0);
    bool may_read = s->tx.read_only == SQL_YES && !serializable && !route_in_tx(ses);

    be(c, ROUTE_TX, ROUTE_R_TX_CONTROL, false);
    if (may_read && s->tx.isolation == SQL_ISO_UNSET && route_check_serializable(c))
        may_read = false;
    c->is_read_only_begin = may_read;
}

/* Kinds of which nothing more has to be known. */
static void classify_plain(struct route_case *c, const struct sql_stmt *s)
{
    switch (s->kind) {
    case SQL_INSERT:
    case SQL_UPDATE:
    case SQL_DELETE:
    case SQL_MERGE:
    case SQL_TRUNCATE:
        primary_write(c, ROUTE_R_WRITE);
        break;
    case SQL_DDL:
        primary_write(c, ROUTE_R_DDL);
        break;
    case SQL_CALL:
    case SQL_DO:
        primary_write(c, ROUTE_R_CALL);
        c->out->runs_code = ROUTE_CODE_SETS;
        break;
    case SQL_LISTEN:
        primary_state(c, ROUTE_R_NOTIFY);
        break;
    case SQL_NOTIFY:
        primary_write(c, ROUTE_R_NOTIFY);
        break;
    case SQL_DECLARE:
    case SQL_FETCH:
    case SQL_CLOSE:
        primary_state(c, ROUTE_R_CURSOR);
        c->runs_functions = s->kind == SQL_DECLARE;
        break;
    case SQL_DEALLOCATE:
        be(c, ROUTE_SESSION, ROUTE_R_SESSION_STATE, false);
        break;
    case SQL_COMMIT:
    case SQL_ROLLBACK:
        be(c, ROUTE_TX, ROUTE_R_TX_CONTROL, false);
        break;
    case SQL_SAVEPOINT:
        be(c, ROUTE_TX, ROUTE_R_TX_CONTROL, route_in_tx(c->in->session));
        break;
    default:
        classify_other(c, s);
        break;
    }
}

WARM void route_classify(struct route_case *c, const struct sql_stmt *s)
{
    if (s == NULL) {
        classify_prepared(c, NULL);
        return;
    }
    switch (s->kind) {
    case SQL_SELECT:
    case SQL_VALUES:
        classify_read(c, s);
        break;
    case SQL_COPY_TO:
        classify_copy_to(c, s);
        break;
    case SQL_COPY_FROM:
        primary_write(c, s->flags & SQL_F_COPY_STDIO ? ROUTE_R_COPY_FROM : ROUTE_R_COPY_FILE);
        break;
    case SQL_EXPLAIN:
        classify_explain(c, s);
        break;
    case SQL_BEGIN:
        classify_begin(c, s);
        break;
    case SQL_SET:
    case SQL_RESET:
        classify_set(c, s);
        break;
    case SQL_SHOW:
        if (is_show_of_role(s))
            be(c, ROUTE_PRIMARY, ROUTE_R_SHOW_ROLE, false);
        else
            be(c, ROUTE_EITHER, ROUTE_R_NONE, false);
        break;
    case SQL_PREPARE:
        if (c->stmt == s)
            classify_prepare(c, s);
        else
            classify_prepared(c, s);
        break;
    case SQL_EXECUTE:
        classify_prepared(c, c->prepared == NULL ? NULL : &c->prepared->stmts[0]);
        break;
    case SQL_LOCK:
        if (s->lock_mode >= SQL_LOCK_ROW_EXCLUSIVE || s->lock_mode == SQL_LOCK_NONE)
            primary_write(c, ROUTE_R_LOCK_TABLE);
        else
            be(c, ROUTE_TX, ROUTE_R_TX_CONTROL, route_in_tx(c->in->session));
        break;
    default:
        classify_plain(c, s);
        break;
    }
}
