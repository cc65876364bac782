/* SPDX-License-Identifier: PostgreSQL
 * sstate_effects.c: what a statement would do to the session of a followed client, before
 * it is sent. Runs in: workers. What then becomes of it: follow.c. */
#include "config.h"

#include <ctype.h>
#include <string.h>

#include "base/arena.h"
#include "base/hot.h"

#include "sstate_int.h"
#include "sstate/sstate_vars_int.h"

static bool has_prefix(struct slice s, const char *prefix)
{
    size_t n = strlen(prefix);

    return s.n >= n && memcmp(s.p, prefix, n) == 0;
}

static bool is_of_name(char ch)
{
    return isalnum((unsigned char)ch) || ch == '_' || ch == '$' || (ch & 0x80) != 0;
}

bool effects_is_unlock(struct slice function)
{
    return has_prefix(function, "pg_advisory_unlock");
}

struct slice effects_stmt_text(const struct sql_stmt *st, struct slice sql)
{
    if ((size_t)st->offset + st->len > sql.n)
        return sql;
    return slice_of(sql.p + st->offset, st->len);
}

/* `word` stands in the text by itself. */
static bool has_word(struct slice text, const char *word)
{
    size_t n = strlen(word);
    size_t i;

    for (i = 1; i + n < text.n; i++)
        if (strncasecmp(text.p + i, word, n) == 0 && !is_of_name(text.p[i - 1]) &&
            !is_of_name(text.p[i + n]))
            return true;
    return false;
}

/* The body of DO is not parsed: words that leave something in the session are looked for. */
static bool do_leaves_state(struct slice text)
{
    static const char *const parts[] = {
        "set_config", "temp", "listen", "advisory_lock", "pg_settings"};
    static const char *const words[] = {
        "load", "set", "reset", "discard", "prepare", "deallocate", "hold"};
    size_t i;

    for (i = 0; i < sizeof parts / sizeof parts[0]; i++)
        if (slice_contains(text, parts[i]))
            return true;
    for (i = 0; i < sizeof words / sizeof words[0]; i++)
        if (has_word(text, words[i]))
            return true;
    return false;
}

/* A setting that its calls make is one that can be followed, or ends with its transaction. */
static bool can_follow_calls(const struct sql_stmt *st, struct slice sql)
{
    bool is_sure = sstate_calls_are_made(st, effects_stmt_text(st, sql));
    struct buf name = {0};
    struct buf call = {0};
    bool can = true;
    uint32_t i;

    for (i = 0; i < st->nfuncs && can; i++) {
        const struct sql_func *f = &st->funcs[i];
        enum set_config_call is = SET_CONFIG_UNKNOWN;

        if (!slice_eq_str(f->name, "set_config"))
            continue;
        if ((size_t)f->offset + f->call_len <= sql.n)
            is = sstate_set_config(slice_of(sql.p + f->offset, f->call_len), &name, &call);
        can = is == SET_CONFIG_LOCAL || (effects_is_session_call(is) && is_sure);
    }
    buf_free(&name);
    buf_free(&call);
    return can;
}

static bool writes_to(const struct sql_stmt *st, const char *name)
{
    uint32_t i;

    for (i = 0; i < st->ntables; i++)
        if ((st->tables[i].flags & SQL_TABLE_TARGET) != 0 &&
            (name == NULL || slice_eq_str(st->tables[i].name, name)))
            return true;
    return false;
}

/* Functions, built in or of dblink, that leave something in their session that is not followed. */
static bool leaves_state(const struct sql_func *f)
{
    static const char *const names[] = {"pg_replication_origin_session_setup", "pg_backup_start",
        "pg_start_backup", "setseed", "dblink_connect", "dblink_connect_u"};
    size_t i;

    for (i = 0; i < sizeof names / sizeof names[0]; i++)
        if (slice_eq_str(f->name, names[i]))
            return true;
    return f->nargs >= 3 && slice_contains(f->name, "_replication_slot") &&
           (has_prefix(f->name, "pg_create_") || has_prefix(f->name, "pg_copy_")); /* temporary */
}

static void effects_of_functions(const struct sql_stmt *st, struct slice sql, struct effects *out)
{
    bool sets = false;
    uint32_t i;

    for (i = 0; i < st->nfuncs; i++) {
        struct slice name = st->funcs[i].name;

        if (slice_eq_str(name, "set_config")) {
            sets = true;
        } else if (has_prefix(name, "pg_advisory_lock") ||
                   has_prefix(name, "pg_try_advisory_lock")) {
            out->pins |= ROWS_PIN(PIN_REASON_ADVISORY_LOCK);
            out->changes = SSTATE_CHANGES_SESSION;
        } else if (effects_is_unlock(name)) {
            out->changes = SSTATE_CHANGES_SESSION;
        } else if (leaves_state(&st->funcs[i])) {
            out->pins |= ROWS_PIN(PIN_REASON_UNKNOWN);
            out->changes = SSTATE_CHANGES_SESSION;
            out->leaves = SSTATE_LEAVES_MORE;
        }
    }
    if (!sets)
        return;
    out->changes = SSTATE_CHANGES_SESSION;
    if (!can_follow_calls(st, sql)) /* of all of them, once */
        out->pins |= ROWS_PIN(PIN_REASON_SETTING);
}

/* What ties the session to the link where it runs. */
static uint32_t ties_of_stmt(const struct sql_stmt *st, struct slice text)
{
    switch (st->kind) {
    case SQL_LISTEN:
        return st->verb == SQL_VERB_UNLISTEN ? 0 : ROWS_PIN(PIN_REASON_LISTEN);
    case SQL_DECLARE:
        return (st->flags & SQL_F_WITH_HOLD) == 0 ? 0 : ROWS_PIN(PIN_REASON_HOLD_CURSOR);
    case SQL_DO:
        return do_leaves_state(text) ? ROWS_PIN(PIN_REASON_UNKNOWN) : 0;
    default:
        return st->verb == SQL_VERB_LOAD ? ROWS_PIN(PIN_REASON_LOAD) : 0;
    }
}

/* The statement changes what is followed, and ties nothing by that. */
static bool is_followed(const struct sql_stmt *st, struct slice text)
{
    switch (st->kind) {
    case SQL_SET:
    case SQL_RESET:
        if (st->set.scope == SQL_SET_LOCAL)
            return slice_contains(text, "pg_temp"); /* where new objects go */
        return st->set.scope != SQL_SET_TRANSACTION && st->set.scope != SQL_SET_CONSTRAINTS;
    case SQL_LISTEN:
    case SQL_PREPARE:
    case SQL_DEALLOCATE:
        return true;
    default:
        return st->verb == SQL_VERB_DISCARD || st->verb == SQL_VERB_UNLISTEN;
    }
}

static void effects_of_stmt(const struct sql_stmt *st, struct slice text, struct effects *out)
{
    uint32_t pins = ties_of_stmt(st, text);
    bool is_temp = (st->flags & SQL_F_TEMP) != 0;
    /* A table, function, type, ... in the temporary schema; or a DROP, or a word in the body of a
     * function. */
    bool names_temp = st->kind == SQL_DDL && slice_contains(text, "pg_temp");

    if (names_temp || is_temp)
        pins |= ROWS_PIN(PIN_REASON_TEMP_TABLE);
    /* SET by another name: the view has a rule for that, and one over it has its column. */
    if (writes_to(st, "pg_settings"))
        pins |= ROWS_PIN(PIN_REASON_SETTING);
    else if (st->kind != SQL_INSERT && writes_to(st, NULL) && has_word(text, "setting") &&
             out->leaves == SSTATE_LEAVES_NOTHING)
        out->leaves = SSTATE_LEAVES_SETTING;
    out->pins |= pins;
    if (out->leaves != 0 || pins != 0 || is_followed(st, text))
        out->changes = SSTATE_CHANGES_SESSION;
    out->look =
        out->look || names_temp || (is_temp && slice_contains(text, "commit")); /* ON COMMIT DROP */
    effects_of_functions(st, text, out);
}

WARM void effects_of(const struct sql_facts *facts, struct slice sql, struct effects *out)
{
    uint32_t i;

    memset(out, 0, sizeof *out);
    for (i = 0; i < facts->nstmts; i++) {
        effects_of_stmt(&facts->stmts[i], sql, out);
        if (facts->stmts[i].tx.op != SQL_TX_NONE && out->changes == SSTATE_CHANGES_NOTHING)
            out->changes = SSTATE_CHANGES_TX;
    }
}

static bool creates(const struct sql_facts *facts)
{
    uint32_t i;

    for (i = 0; i < facts->nstmts; i++) {
        const struct sql_stmt *st = &facts->stmts[i];

        if ((st->flags & SQL_F_INTO) != 0 || st->verb == SQL_VERB_CREATE_AS ||
            (st->kind == SQL_DDL && st->verb == SQL_VERB_CREATE))
            return true;
    }
    return false;
}

/* The facts of a statement that has a name, beside those that are in use. */
static const struct sql_facts *facts_of_name(const struct client *c, const struct names_entry *n)
{
    struct sql_facts *facts = arena_alloc_zero(c->ss->scratch, sizeof *facts);

    (void)sql_parse(c->ss->scratch, names_entry_sql(n), facts);
    return facts->status == SQL_OK && facts->nstmts == 1 ? facts : NULL;
}

/* Whether a PREPARE in SQL may have effects, which is looked at for each EXECUTE. */
static bool may_have_effects(const struct client *c, const struct names_entry *n)
{
    static const char *const parts[] = {
        "set_config", "_advisory_", "setseed", "dblink_connect", "_backup", "_replication_"};
    const struct sql_facts *facts;
    struct slice sql = names_entry_sql(n);
    struct effects e;
    size_t i;

    for (i = 0; i < sizeof parts / sizeof parts[0]; i++)
        if (slice_contains(sql, parts[i]))
            return true;
    if (!slice_contains(sql, "setting"))
        return false;
    facts = facts_of_name(c, n); /* many tables have that in their name: what is written counts */
    if (facts == NULL)
        return true;
    effects_of(facts, sql, &e);
    return e.pins != 0 || e.leaves != SSTATE_LEAVES_NOTHING;
}

static bool executes(const struct sql_stmt *st)
{
    return st->kind == SQL_EXECUTE ||
           (st->inner == SQL_EXECUTE &&
               (st->kind != SQL_EXPLAIN || (st->flags & SQL_F_ANALYZE) != 0));
}

/* EXECUTE does what was prepared, which by the protocol may be anything. Who runs by SQL what may
 * change the session is tied to the link where that happens: nobody follows it. */
static void effects_of_execute(
    const struct client *c, const struct sql_stmt *st, struct effects *out)
{
    const struct names_entry *n = executes(st) ? names_find(&c->sstate->names, st->name) : NULL;
    bool may = n != NULL && (n->prep == NULL ? may_have_effects(c, n) : n->prep->has_effects);

    if (!may)
        return;
    out->pins |= ROWS_PIN(PIN_REASON_UNKNOWN);
    out->leaves = SSTATE_LEAVES_MORE;
    out->changes = SSTATE_CHANGES_SESSION;
}

WARM void effects_here(
    const struct client *c, const struct sql_facts *facts, struct slice sql, struct effects *out)
{
    const struct sstate *s = c->sstate;
    struct slice path;
    uint32_t i;

    effects_of(facts, sql, out);
    for (i = 0; i < facts->nstmts; i++)
        effects_of_execute(c, &facts->stmts[i], out);
    if (!creates(facts))
        return;
    path = varset_get(s->vars.client, slice_of_str("search_path"));
    if (!s->has_temp_path && !slice_contains(path, "pg_temp") &&
        (facts->nstmts == 1 || !slice_contains(sql, "pg_temp")))
        return;
    out->pins |= ROWS_PIN(PIN_REASON_TEMP_TABLE);
    out->look = true;
    out->changes = SSTATE_CHANGES_SESSION;
}

bool effects_takes_advisory_locks(const struct sql_stmt *st)
{
    uint32_t i;

    for (i = 0; i < st->nfuncs; i++)
        if (has_prefix(st->funcs[i].name, "pg_advisory_") ||
            has_prefix(st->funcs[i].name, "pg_try_advisory_"))
            return true;
    return false;
}

static bool is_plain(const struct sql_facts *facts, struct slice sql)
{
    const struct sql_stmt *st = facts->stmts;
    struct effects e;

    if (facts->status != SQL_OK || facts->nstmts != 1 || (st->flags & SQL_F_INTO) != 0 ||
        (st->kind != SQL_SELECT && st->kind != SQL_VALUES && st->kind != SQL_INSERT &&
            st->kind != SQL_UPDATE && st->kind != SQL_DELETE && st->kind != SQL_MERGE) ||
        effects_takes_advisory_locks(st))
        return false;
    effects_of(facts, sql, &e);
    return e.changes == SSTATE_CHANGES_NOTHING;
}

/* Whether a plain text leaves no trace. Texts like it differ in literals and comments alone. */
static bool is_traceless(enum count_kind kind, struct slice sql)
{
    return kind == COUNT_SELECT && sql.n > 0 && memchr(sql.p, '(', sql.n) == NULL &&
           memchr(sql.p, ';', sql.n - 1) == NULL;
}

static bool is_tx_word(const struct sql_facts *facts)
{
    const struct sql_stmt *st = facts->stmts;

    return facts->status == SQL_OK && facts->nstmts == 1 && st->tx.op != SQL_TX_NONE &&
           (st->kind == SQL_BEGIN || st->kind == SQL_COMMIT || st->kind == SQL_ROLLBACK ||
               st->kind == SQL_SAVEPOINT);
}

WARM uint32_t effects_judge(const struct sql_facts *facts, struct slice sql)
{
    enum count_kind kind = count_kind_of(sql);
    const struct sql_stmt *st = facts->stmts;
    uint32_t traits = EFFECTS_IS_JUDGED | (uint32_t)kind;

    if (is_plain(facts, sql))
        traits |= EFFECTS_IS_PLAIN | (is_traceless(kind, sql) ? EFFECTS_IS_TRACELESS : 0) |
                  (st->kind == SQL_SELECT && (st->flags & SQL_F_READ_ONLY) != 0 && st->nfuncs == 0
                          ? EFFECTS_CALLS_NOTHING
                          : 0);
    else if (is_tx_word(facts))
        traits |= EFFECTS_IS_TX_WORD;
    if (route_runs_made_code(facts))
        traits |= EFFECTS_RUNS_CODE;
    if (facts->traits != NULL)
        *facts->traits = traits;
    return traits;
}

const struct sql_stmt *effects_of_name(const struct client *c, const struct names_entry *n)
{
    const struct sql_facts *facts = NULL;

    if (n != NULL && n->prep != NULL && n->prep->has_effects)
        facts = facts_of_name(c, n);
    return facts == NULL ? NULL : facts->stmts;
}
