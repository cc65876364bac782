/* SPDX-License-Identifier: PostgreSQL
 * native_plan.c: where a statement of native replication goes, and what it becomes so that it does
 * the same on every node. Runs in: workers. What has to be known of the catalogue is asked on the
 * main node's connection, where names mean what they mean to the client; the exchange goes on when
 * the answer is there. */
#include "config.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/arena.h"
#include "base/hash.h"
#include "base/hot.h"
#include "base/log.h"
#include "base/mem.h"
#include "config/conf.h"
#include "parser/sql_cache.h"
#include "replicate/locks.h"
#include "replicate/nature.h"
#include "replicate/reads.h"
#include "route/route_oracle.h"
#include "wire/message.h"
#include "wire/reader.h"
#include "wire/writer.h"

#include "native_int.h"

/* A client that is cancelled oftener is taken for one that had committed. */
#define LOOKS_MAX 10

/* ---- what the catalogue says of functions and views ---- */

static struct route_scope scope_of(struct native *n)
{
    if (n->names == 0)
        n->names = hash_bytes(&n->salt, sizeof n->salt, client_pool(n->c)->node.hash);
    return (struct route_scope){.database = client_pool(n->c)->database_hash, .names = n->names};
}

static int lookup(void *ctx, const struct route_question *q, uint32_t *bits)
{
    struct native *n = ctx;

    return known_lookup(n->ss->known, scope_of(n), q, loop_now_us(n->ss->loop), bits);
}

HOT uint64_t native_answers_id(struct native *n)
{
    known_refresh(n->ss->known);
    return route_cache_id(n->ss->answers, scope_of(n), loop_now_us(n->ss->loop));
}

static void ask_catalogue(struct native *n, const struct route_decision *d)
{
    struct buf sql = {0};

    n->question = arena_alloc_zero(n->arena, d->nquestions * sizeof *n->question);
    n->nquestions = d->nquestions;
    for (unsigned i = 0; i < d->nquestions; i++) {
        struct route_question *q = &n->question[i];

        *q = d->question[i];
        q->schema.p = arena_strndup(n->arena, q->schema.p, q->schema.n);
        q->name.p = arena_strndup(n->arena, q->name.p, q->name.n);
    }
    route_oracle_sql(n->question, n->nquestions, &sql);
    native_round(n, STEP_LOOK, true, (int)n->main);
    native_ask(n, &n->leg[n->main], buf_slice(&sql));
    buf_free(&sql);
}

bool native_next_row(const struct native *n, uint32_t *at, struct slice *values, unsigned max)
{
    struct wire_reader r;
    unsigned count;
    bool is_null;

    if (*at + 4 > n->rows.len)
        return false;
    wire_reader_init(&r, slice_of(n->rows.data + *at, n->rows.len - *at));
    *at += 4 + wire_get_u32(&r);
    count = wire_get_u16(&r);
    for (unsigned i = 0; i < max; i++) {
        values[i] = i < count ? wire_get_value(&r, &is_null) : slice_of(NULL, 0);
        if (i < count && (is_null || r.bad))
            values[i] = slice_of(NULL, 0);
    }
    return true;
}

void native_take_answers(struct native *n)
{
    int64_t now_us = loop_now_us(n->ss->loop);
    struct slice value[2];
    uint32_t at = 0;
    unsigned index;
    uint32_t bits;

    while (native_next_row(n, &at, value, 2)) {
        if (value[0].p != NULL && value[1].p != NULL &&
            route_oracle_parse_row(value[0], value[1], n->nquestions, &index, &bits) == 0)
            route_cache_put(n->ss->answers, scope_of(n), &n->question[index],
                route_cache_valid_until(n->ss->answers, &n->question[index], now_us, bits), bits);
    }
    n->question = NULL;
    n->nquestions = 0;
}

/* ---- tables ---- */

static struct native_table *find_table(struct native *n, const struct sql_table *table)
{
    struct buf name = {0};
    struct native_table *t;

    repl_table_name(table, &name);
    t = native_table_find(n, buf_slice(&name));
    buf_free(&name);
    return t;
}

static const struct repl_table *known_table(void *ctx, const struct sql_table *table)
{
    struct native_table *t = find_table(ctx, table);

    if (t == NULL)
        return NULL;
    t->is_used = true;
    return &t->table;
}

/* What is read is not rewritten: its columns may change meanwhile. */
static const struct repl_table *read_table(void *ctx, const struct sql_table *table)
{
    struct native_table *t = find_table(ctx, table);

    return t == NULL ? NULL : &t->table;
}

static void ask_columns(struct native *n, const struct sql_table *table)
{
    struct arena *a = arena_new("table", 0);
    struct native_table *t = arena_alloc_zero(a, sizeof *t);
    struct buf name = {0};
    struct buf sql = {0};

    repl_table_name(table, &name);
    t->arena = a;
    t->name = arena_strndup(a, name.data, name.len);
    list_push_front(&n->tables, &t->node);
    n->ntables++;
    repl_table_sql(buf_slice(&name), &sql);
    native_round(n, STEP_COLUMNS, true, (int)n->main);
    native_ask(n, &n->leg[n->main], buf_slice(&sql));
    buf_free(&name);
    buf_free(&sql);
}

void native_take_columns(struct native *n)
{
    struct native_table *t = LIST_ENTRY(list_first(&n->tables), struct native_table, node);
    struct slice value[REPL_TABLE_VALUES];
    uint32_t count = 0;
    uint32_t at = 0;

    t->digest = hash_bytes(n->rows.data, n->rows.len, 0);
    while (native_next_row(n, &at, value, 0))
        count++;
    t->columns = arena_alloc_zero(t->arena, (count + 1) * sizeof *t->columns);
    t->table.columns = t->columns;
    at = 0;
    while (native_next_row(n, &at, value, REPL_TABLE_VALUES)) {
        for (unsigned i = 0; i < REPL_TABLE_VALUES; i++) {
            if (value[i].p != NULL)
                value[i].p = arena_strndup(t->arena, value[i].p, value[i].n);
        }
        repl_table_row(value, t->columns, &t->table);
    }
}

/* ---- what a statement is ---- */

/* The facts hold until another text is looked for. */
HOT static const struct sql_facts *facts_of(struct native *n, struct slice sql)
{
    bool same_layout;

    n->ss->nfacts++;
    arena_reset(n->ss->scratch);
    return sql_cache_get(n->ss->sql_cache, n->ss->scratch, sql, &same_layout);
}

/* Facts of a text in which only numbers differ from those like it; NULL: that is not sure. */
static const struct sql_facts *facts_of_its_like(struct native *n, struct slice sql)
{
    const struct sql_facts *known;

    if (!repl_has_numbers_alone(sql) || route_text_may_differ(sql))
        return NULL;
    known = facts_of(n, sql);
    return known->status == SQL_OK && known->nstmts == 1 && repl_kind_is_plain(known->stmts) ? known
                                                                                             : NULL;
}

HOT uint64_t native_text_known(struct native *n, struct slice sql)
{
    const struct sql_facts *facts;

    if (sql.n < 6 || (strncasecmp(sql.p, "select", 6) != 0 && strncasecmp(sql.p, "with", 4) != 0) ||
        n->ss->conf->primary_routing_query_pattern_list.n > 0)
        return 0;
    facts = facts_of(n, sql);
    return repl_is_one_read(facts) ? route_known_of(sql, facts) : 0;
}

/* The next ones like it are known to read. */
static void note_read(struct native *n, struct slice sql, const struct sql_stmt *s, uint64_t known)
{
    const struct sql_facts *facts = known != 0 && repl_only_reads(s) ? facts_of(n, sql) : NULL;

    if (facts != NULL && facts->nstmts == 1 && facts->verdict != NULL)
        *facts->verdict = known;
}

/* The worker has parsed its like. Where its parts stand is not known. */
static bool is_known_plain(struct native *n, struct slice sql, struct sql_facts *facts)
{
    const struct sql_facts *known = facts_of_its_like(n, sql);
    struct sql_stmt *s;

    if (known == NULL)
        return false;
    if (sql_facts_copy(n->arena, known, facts) == -1)
        return false;
    facts->verdict = arena_alloc_zero(n->arena, sizeof *facts->verdict);
    *facts->verdict = known->verdict == NULL ? 0 : *known->verdict;
    s = (struct sql_stmt *)(uintptr_t)facts->stmts;
    s->hint = (struct sql_span){0};
    repl_place_alone(sql, s);
    return true;
}

void native_parse(struct native *n, struct slice sql, struct sql_facts *facts)
{
    if (is_known_plain(n, sql, facts))
        return;
    if (sql_parse(n->arena, sql, facts) == -1)
        facts->nstmts = 0;
    /* Where its strings end depends on standard_conforming_strings, or the encoding. */
    if (route_text_may_differ(sql) && sstate_text_is_doubtful(n->c, sql))
        *facts = (struct sql_facts){.status = SQL_SYNTAX};
}

static void be_everywhere(struct native_place *place, bool wraps)
{
    place->wraps = wraps && (place->wraps || !place->everywhere);
    place->everywhere = true;
}

/* A hint in front of it or primary_routing_query_pattern_list keeps it on the main node. */
static bool is_kept_by_text(const struct route_decision *d)
{
    return d->reason == ROUTE_R_HINT || d->reason == ROUTE_R_COMMENT ||
           d->reason == ROUTE_R_LEADING_BLANK || d->reason == ROUTE_R_PATTERN;
}

/* Numbers of the catalogue are each node's own. */
static void place_read(struct native *n, struct slice text, const struct sql_stmt *s,
    const struct route_decision *d, bool has_numbers, struct native_place *place)
{
    bool does = d->is_write || d->runs_code || d->is_doubtful;

    place->differs = place->differs || (has_numbers && !d->is_write);
    place->reads = true;
    place->sets = place->sets || d->runs_code == ROUTE_CODE_SETS || d->is_doubtful;
    place->writes = place->writes || does;
    if (does || (n->ss->conf->replicate_select && d->reason != ROUTE_R_CATALOG))
        be_everywhere(place, repl_fits_in_transaction(text, s, n->gate.ops != NULL));
    else if (has_numbers || is_kept_by_text(d))
        place->on_main = true;
}

static enum native_verdict judge_read(struct native *n, struct slice text,
    const struct sql_facts *facts, uint32_t i, struct native_place *place)
{
    struct sessions *ss = n->ss;
    struct route_session rs = {.balance_node = VIEW_NO_NODE,
        .tx_node = VIEW_NO_NODE,
        .now_us = loop_now_us(ss->loop),
        .search_path_changed = n->salt != 0};
    struct route_input in = {.conf = ss->conf,
        .set = client_conf(n->c),
        .rules = ss->rules,
        .view = &ss->view,
        .session = &rs,
        .lookup = lookup,
        .lookup_ctx = n,
        .schema_settled = true};
    struct sql_facts own = *facts;
    struct route_decision d;
    uint64_t verdict = facts->verdict == NULL ? 0 : *facts->verdict;
    bool has_numbers = (verdict == 0 && repl_shows_numbers(text)) | /* none is kept of those */
                       repl_leave_out_looks(n->arena, &own, i);

    own.verdict = has_numbers ? NULL : &verdict;
    in.who.user = pool_user(client_pool(n->c));
    in.who.database = pool_database(client_pool(n->c));
    in.answers_id = native_answers_id(n);
    route_statement(&in, text, &own, i, &d);
    if (d.must_ask) {
        ask_catalogue(n, &d);
        return NATIVE_ASK;
    }
    place->known = has_numbers ? 0 : d.known;
    if (facts->verdict == NULL || place->known != *facts->verdict)
        note_read(n, text, &facts->stmts[i], place->known);
    has_numbers = has_numbers || d.class != ROUTE_EITHER || d.reason == ROUTE_R_CATALOG;
    place_read(n, text, &facts->stmts[i], &d, has_numbers, place);
    return NATIVE_GO;
}

enum native_verdict native_judge(struct native *n, struct slice text, const struct sql_facts *facts,
    uint32_t i, struct native_place *place)
{
    const struct sql_stmt *s;
    const char *what;

    if (facts->status == SQL_OK && facts->nstmts == 0) {
        place->on_main = true; /* a text without a statement */
        return NATIVE_GO;
    }
    if (facts->status != SQL_OK) {
        place->writes = true;
        be_everywhere(place, n->gate.ops != NULL); /* a server newer than our grammar may know it */
        return NATIVE_GO;
    }
    s = &facts->stmts[i];
    what = repl_unsupported(s);
    if (what != NULL) {
        native_refuse(n, "0A000", "native replication does not support %s", what);
        return NATIVE_REFUSED;
    }
    if (repl_is_of_main(s)) {
        place->on_main = true;
        n->has_state = n->has_state || (s->kind != SQL_SHOW && s->kind != SQL_SET);
        return NATIVE_GO;
    }
    if ((s->flags & SQL_F_READ_ONLY) != 0 && (s->kind != SQL_EXPLAIN || s->inner == SQL_SELECT))
        return judge_read(n, text, facts, i, place);
    place->writes = place->writes || !repl_changes_nothing(s);
    place->sets = place->sets || s->kind == SQL_CALL || s->kind == SQL_DO;
    place->commits += (s->kind == SQL_CALL || s->kind == SQL_DO) && n->gate.ops == NULL;
    be_everywhere(place, repl_fits_in_transaction(text, s, n->gate.ops != NULL));
    return NATIVE_GO;
}

/* ---- what it becomes ---- */

void native_warn(struct native *n, const char *text, bool is_there)
{
    if (n->ss->conf->replication_nondeterministic == CONF_NONDET_ALLOW)
        return;
    if (is_there)
        client_notice(n->c, LVL_WARNING, text);
    CLIENT_LOG(n->c, LVL_WARNING, "%s", text);
}

void native_cut_short(struct native *n, bool is_there)
{
    if ((n->plan.serial != NULL || n->plan.nsequences > 0) &&
        (n->numbers.n == 0 || repl_numbers_are_hidden(&n->numbers)))
        native_warn(n,
            "a statement that takes numbers of a sequence was cut short: the next ones "
            "may differ between nodes",
            is_there);
}

bool native_says_that_it_differs(struct native *n, const struct repl_plan *plan)
{
    char text[256];

    if (plan->differs.n == 0)
        return false;
    snprintf(text, sizeof text, "the result of \"%.*s\" may differ between nodes",
        plan->differs.n > 100 ? 100 : (int)plan->differs.n, plan->differs.p);
    if (n->ss->conf->replication_nondeterministic == CONF_NONDET_ERROR) {
        native_refuse(n, "0A000", "%s", text);
        return true;
    }
    if (!n->has_warned)
        native_warn(n, text, true);
    n->has_warned = true;
    return false;
}

/* Whether pgpool_catalog.insert_lock exists; NULL: it is not known. */
static const struct native_table *row_locks(struct native *n)
{
    return find_table(n, repl_row_locks());
}

static bool has_row_locks(struct native *n)
{
    const struct native_table *t = row_locks(n);

    return t != NULL && t->table.ncolumns > 0;
}

/* Who may only insert cannot lock the table. Its sequences are locked all the same; what else
 * numbers its rows is not. */
static void free_serial(struct native *n, struct repl_plan *plan)
{
    const struct repl_table *t = plan->serial == NULL || (has_row_locks(n) && !plan->serial_is_view)
                                     ? NULL
                                     : known_table(n, plan->serial);

    plan->serial_is_free = t != NULL && t->is_shared && !t->can_lock;
    if (plan->serial_is_free && plan->nsequences == 0 && plan->differs.n == 0)
        plan->differs = plan->serial->name;
}

/* What a transaction has seen at such a level it goes on to see, on each node as of its own moment;
 * a level by default_transaction_isolation is not known. */
static bool has_seen(const struct native *n)
{
    return n->told.level >= SQL_ISO_REPEATABLE_READ && !n->wrapped &&
           n->leg[n->main].link->tx_status == 'T';
}

static enum native_verdict lock_reads(
    struct native *n, const struct sql_stmt *stmt, struct repl_plan *plan)
{
    static const enum repl_reads_rule rules[] = {[CONF_SUBSELECT_OFF] = REPL_READS_NAMED,
        [CONF_SUBSELECT_TARGET] = REPL_READS_TARGET,
        [CONF_SUBSELECT_ALL] = REPL_READS_LOCKED};
    struct repl_catalog catalog = {read_table, n};
    enum repl_reads_rule rule = has_seen(n) ? REPL_READS_NAMED : rules[n->ss->conf->subselect_lock];

    if (n->gate.ops != NULL)
        rule = REPL_READS_SAME;
    if (repl_reads_plan(n->arena, stmt, &catalog, rule, plan) != REPL_ASK)
        return native_says_that_it_differs(n, plan) ? NATIVE_REFUSED : NATIVE_GO;
    ask_columns(n, plan->table);
    return NATIVE_ASK;
}

enum native_verdict native_rewrite(
    struct native *n, struct slice text, const struct sql_stmt *stmt, struct repl_plan *plan)
{
    struct repl_catalog catalog = {known_table, n};

    *plan = (struct repl_plan){.differs = native_functions_used(n, stmt)};
    if (native_says_that_it_differs(n, plan))
        return NATIVE_REFUSED;
    n->place.choice = REPL_MAX_CHOICE(n->place.choice, repl_choice_of(text, stmt));
    if (repl_is_plain(text, stmt)) {
        *plan = (struct repl_plan){0};
        return lock_reads(n, stmt, plan);
    }
    switch (repl_rewrite_plan(n->arena, text, stmt, &catalog, false, 0, plan)) {
    case REPL_ASK:
        ask_columns(n, plan->table);
        return NATIVE_ASK;
    case REPL_FAILED:
        native_refuse(n, "54000",
            "the statement cannot be rewritten for all servers: too long, too many values, or one "
            "within another");
        return NATIVE_REFUSED;
    case REPL_REWRITE:
    case REPL_KEEP:
        break;
    }
    if (repl_must_lock(text, stmt, n->ss->conf->insert_lock, plan->serial != NULL) &&
        row_locks(n) == NULL) {
        ask_columns(n, repl_row_locks());
        return NATIVE_ASK;
    }
    free_serial(n, plan);
    if (plan->differs.n > 0 || stmt->kind == SQL_EXPLAIN)
        n->place.differs = true;
    return lock_reads(n, stmt, plan);
}

bool native_lock_sql(struct native *n, struct slice text, const struct sql_stmt *stmt,
    const struct repl_plan *plan, unsigned i, struct buf *sql)
{
    struct repl_lock_rules rules = {.insert_lock = n->ss->conf->insert_lock,
        .has_row_locks = has_row_locks(n),
        .lobj_lock_table = n->ss->conf->lobj_lock_table};
    struct slice sequence = {0};
    bool is_one = repl_lock_at(text, stmt, plan, &rules, i, &sequence, sql);

    if (sequence.p != NULL)
        repl_numbers_add(n->arena, &n->numbers, sequence);
    return is_one;
}

bool native_compares(const struct native *n)
{
    if (n->ex.is_call)
        return repl_is_lobj_function(message_body(slice_of(n->in.data, n->scanned)));
    return n->ss->conf->replication_compare == CONF_COMPARE_ROWS && !n->place.differs;
}

/* ---- what a CALL or DO has committed ----
 *
 * Each transaction of a connection adds one to the second number of its virtual one. When a CALL
 * fails for a reason that the others do not have, that tells whether it was one transaction, which
 * is undone, or several: then the others lack what the main node has committed. */

bool native_counts_commits(const struct native *n)
{
    return n->place.commits > 0 && !n->wrapped && native_tx(n) == 'I';
}

void native_values_sql(struct native *n, const struct sql_stmt *s, struct buf *sql)
{
    const struct sql_stmt *stmt = s == NULL ? NULL : n->planned_stmt;

    for (unsigned i = 0; native_lock_sql(n, n->planned, stmt, &n->plan, i, sql); i++)
        buf_put_byte(sql, ';');
    if (sql->len > 0 && sql->data[sql->len - 1] == ';')
        sql->len--;
    if (n->plan.nasks > 0) {
        buf_printf(sql, "%s", sql->len > 0 ? ";" : "");
        repl_rewrite_asks(&n->plan, 0, sql);
    }
    if (native_counts_commits(n))
        repl_which_sql(sql);
}

bool native_asks_committed(struct native *n)
{
    struct buf sql = {0};

    if (!native_counts_commits(n) || n->values == NULL)
        return false;
    n->ex.nlooks++;
    repl_which_sql(&sql);
    native_round(n, STEP_COMMITTED, true, -1);
    native_ask(n, &n->leg[n->main], buf_slice(&sql));
    buf_free(&sql);
    return true;
}

void native_committed_answered(struct native *n)
{
    uint64_t before = repl_which_number(n->values[n->plan.nasks]);
    struct slice which = slice_of("", 0);
    uint32_t at = 0;

    /* A second cancel of an impatient client meets the question. */
    if (n->leg[n->main].kind == 'E' && n->ex.nlooks < LOOKS_MAX && native_asks_committed(n))
        return;
    (void)native_next_row(n, &at, &which, 1);
    for (unsigned i = 0; repl_which_number(which) != before + 1 + n->ex.nlooks && i < n->nlegs;
         i++) {
        if (i == n->main || !native_is_up(&n->leg[i]))
            continue;
        native_detach(
            n, &n->leg[i], "a CALL or DO failed on the main node that had committed part of it");
        native_leg_drop(&n->leg[i], true);
    }
    native_fail(n);
}

/* ---- function calls ---- */

static struct slice call_body(const struct native *n)
{
    return message_body(slice_of(n->in.data, n->scanned));
}

void native_call_plan(struct native *n)
{
    n->place = (struct native_place){.everywhere = true, .wraps = true, .writes = true};
    n->plan = (struct repl_plan){0};
    n->numbers = (struct repl_numbers){0};
    native_follow_schema(n);
    if (!repl_lobj_is_made(call_body(n)))
        return;
    n->plan.asks = arena_alloc_zero(n->arena, sizeof *n->plan.asks);
    n->plan.asks[0].expr = repl_lobj_ask();
    n->plan.nasks = 1;
    n->plan.makes_lobj = true;
}

void native_call_put(struct native *n)
{
    uint32_t start;

    buf_clear(&n->out);
    buf_clear(&n->ops);
    if (n->plan.makes_lobj && n->values[0].p != NULL) {
        start = wire_begin(&n->out, FE_FUNCTION_CALL);
        (void)repl_lobj_function_call(
            call_body(n), (uint32_t)strtoul(n->values[0].p, NULL, 10), &n->out);
        wire_end(&n->out, start);
    } else {
        buf_put(&n->out, n->in.data, n->scanned);
    }
    buf_put_byte(&n->ops, OP_FUNCTION_CALL);
}

/* ---- what is sent ---- */

void native_put_query(struct native *n, struct slice sql)
{
    buf_clear(&n->out);
    buf_clear(&n->ops);
    wire_put_query(&n->out, sql);
    buf_put_byte(&n->ops, OP_QUERY);
}

void native_put_statement(struct native *n, const struct sql_stmt *s)
{
    struct buf sql = {0};

    if (n->ex.is_batch)
        return; /* native_batch_plan has put it */
    if (n->ex.is_call) {
        native_call_put(n);
        return;
    }
    if (s == NULL) {
        native_put_query(n, n->text);
        return;
    }
    if (s->kind == SQL_EXECUTE && n->plan.verdict == REPL_REWRITE && n->planned_stmt != s) {
        native_execute_put(n, s);
        return;
    }
    if (n->commit.is_clients)
        n->commit.ops->put(n, &sql);
    else if (n->plan.verdict == REPL_REWRITE)
        repl_rewrite_text(&n->plan, n->text, s, n->values, &sql);
    native_put_query(n, sql.len > 0 ? buf_slice(&sql) : slice_of(n->text.p + s->offset, s->len));
    buf_free(&sql);
}

/* ---- statements ---- */

/* With arguments that call nothing it is what it runs: pg_dump asks the catalogue so. */
static enum native_verdict place_executed(struct native *n, const struct sql_stmt *s)
{
    const struct native_change *st = native_prepared_find(n, s->name);
    struct native_place place = {.everywhere = true};
    struct sql_facts facts = {.status = SQL_SYNTAX};
    enum native_verdict v = NATIVE_GO;

    if (st != NULL && s->nfuncs == 0 && s->ntimes == 0)
        native_parse(n, st->sql, &facts);
    if (repl_is_one_read(&facts)) {
        place.everywhere = false;
        v = native_judge(n, st->sql, &facts, 0, &place);
    }
    if (v == NATIVE_GO && !place.everywhere)
        n->place = (struct native_place){.on_main = true, .reads = true, .differs = place.differs};
    return v;
}

/* The statement that is executed is planned for its text, as it would be if it stood there. */
static enum native_verdict plan_executed(struct native *n, const struct sql_stmt *s)
{
    const struct native_change *st = native_prepared_find(n, s->name);
    struct sql_facts *facts = arena_alloc_zero(n->arena, sizeof *facts);
    bool has_times = n->plan.verdict == REPL_REWRITE;
    struct repl_plan plan;
    enum native_verdict v;

    if (st != NULL)
        native_parse(n, st->sql, facts);
    if (st == NULL || facts->nstmts != 1)
        return NATIVE_GO; /* it says itself that there is none */
    n->place.sets = repl_changes_names(&facts->stmts[0]) || route_runs_made_code(facts);
    v = native_rewrite(n, st->sql, &facts->stmts[0], &plan);
    if (v != NATIVE_GO)
        return v;
    if (plan.verdict == REPL_REWRITE && (has_times || st->head == NULL)) {
        native_refuse(n, "0A000",
            "native replication does not support EXECUTE of what was prepared by the protocol, or "
            "with arguments that tell the time, where the statement has to be rewritten");
        return NATIVE_REFUSED;
    }
    if (has_times && plan.serial == NULL && plan.nsequences == 0 && plan.nlocks == 0 &&
        !plan.makes_lobj)
        return NATIVE_GO; /* its arguments are rewritten */
    n->planned = st->sql;
    n->planned_stmt = &facts->stmts[0];
    if (!has_times)
        n->plan = plan;
    else
        n->plan.serial = plan.serial;
    memcpy(n->plan.sequences, plan.sequences, sizeof plan.sequences);
    n->plan.nsequences = plan.nsequences;
    memcpy(n->plan.locks, plan.locks, sizeof plan.locks);
    n->plan.nlocks = plan.nlocks;
    return NATIVE_GO;
}

enum native_verdict native_plan(struct native *n)
{
    const struct sql_stmt *s = n->facts.nstmts == 0 ? NULL : &n->facts.stmts[n->at];
    enum native_verdict v;

    n->place = (struct native_place){0};
    n->plan = (struct repl_plan){0};
    n->numbers = (struct repl_numbers){0};
    n->ex.is_commit = false;
    n->ex.forgets = NULL;
    native_follow_schema(n);
    v = native_judge(n, n->text, &n->facts, n->at, &n->place);
    if (v == NATIVE_GO && s == NULL && n->facts.status != SQL_OK)
        native_note_schema(n, n->text, NULL);
    if (v == NATIVE_GO && s != NULL && s->kind == SQL_EXECUTE)
        v = place_executed(n, s);
    if (v != NATIVE_GO || s == NULL)
        return v;
    n->planned = n->text;
    n->planned_stmt = s;
    native_prepared_begin(n);
    if (repl_hides_execute(s)) {
        native_refuse(n, "0A000", "native replication does not support EXECUTE within a statement");
        return NATIVE_REFUSED;
    }
    /* What is prepared is planned when it is executed. */
    if (n->place.everywhere && s->kind != SQL_PREPARE &&
        (v = native_rewrite(n, n->text, s, &n->plan)) != NATIVE_GO)
        return v;
    if (n->commit.ops->choose(n, s, true) != NATIVE_GO)
        return NATIVE_REFUSED;
    if (s->kind == SQL_EXECUTE && n->place.everywhere && (v = plan_executed(n, s)) != NATIVE_GO)
        return v;
    if (s->kind == SQL_PREPARE)
        native_prepared_add_sql(n, n->text, s);
    native_note(n, n->text, s);
    return NATIVE_GO;
}
