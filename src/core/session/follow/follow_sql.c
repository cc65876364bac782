/* SPDX-License-Identifier: PostgreSQL
 * follow_sql.c: PREPARE, EXECUTE and DEALLOCATE in SQL, for followed clients. Runs in:
 * workers. SQL knows statements by the client's names only: they are brought to the link under
 * these, and nobody else's may be there. */
#include "config.h"

#include <string.h>

#include "base/hot.h"
#include "base/mem.h"
#include "config/conf.h"
#include "wire/reader.h"
#include "wire/writer.h"

#include "sstate_int.h"

/* Code runs that may prepare statements under any name: none that others left may be there. */
static void forget_all_named(struct client *c, struct feed_run *run)
{
    struct slice name;

    while ((name = prepset_any_named(&c->link->preps)).p != NULL) {
        lent_put_close(c, run, name);
        prepset_drop_named(&c->link->preps, name);
    }
}

/* A failed transaction has use for none, and would refuse to have one brought back. With a BEGIN of
 * ours under way the one that failed is over. */
static bool is_refused(const struct client *c)
{
    const struct sstate *s = c->sstate;

    return c->link->tx_status == 'E' && s->exchange.words != EXCHANGE_RECOVERS &&
           s->tx != SSTATE_TX_BEGUN;
}

/* Within a sequence. What it names in its turn goes in front: what comes of it is decided when it
 * is parsed. */
static void put_named(struct client *c, struct feed_run *run, struct slice name, unsigned depth)
{
    const struct names_entry *n = names_find(&c->sstate->names, name);
    const struct sql_stmt *next;

    if (n == NULL || depth > SSTATE_MAX_EXECUTES) {
        lent_forget_foreign(c, run, name);
        return;
    }
    if (n->prep == NULL)
        return;
    next = effects_of_name(c, n);
    if (next != NULL && sstate_names_a_statement(next))
        put_named(c, run, next->name, depth + 1);
    (void)lent_make_place(c, run);
    lent_put_close(c, run, name);
    lent_put_parse(c, run, n->prep, name, OP_PARSE | OP_QUIET);
    prepset_set_named(&c->link->preps, name, PREPSET_DOUBTFUL);
}

/* The names in PREPARE, EXECUTE and DEALLOCATE are the client's: its statements must be there under
 * them, and nobody else's. */
void follow_sql_load_names(struct client *c, struct feed_run *run, struct slice sql)
{
    const struct sql_facts *facts = plan_facts(c->ss, sql);
    const struct sql_stmt *st = facts->nstmts == 1 ? &facts->stmts[0] : NULL;

    if (st != NULL && st->kind == SQL_DO && names_nsql(&c->sstate->names) == 0)
        forget_all_named(c, run);
    if (st == NULL || !sstate_names_a_statement(st) || st->name.n == 0 || is_refused(c))
        return;
    put_named(c, run, st->name, 0);
}

/* PREPARE is sent: with its tag there is a statement of that name. */
void follow_sql_note_prepare(struct client *c, const struct sql_stmt *st, struct slice sql)
{
    struct names_entry *n;

    if ((size_t)st->offset + st->len > sql.n || st->name.n == 0)
        return;
    n = names_entry_new(st->name);
    n->sql = mem_strndup(sql.p + st->offset, st->len);
    n->content = hash_bytes(n->sql, st->len, 5) | 1;
    lent_names_word(c, n);
}

/* The number of an op of the present loan, never the same twice. */
static uint64_t load_number(const struct client *c, uint32_t serial)
{
    return c->link->epoch << 32 | serial;
}

/* The op that is pushed next is at the head when the statement could not be made. */
static void note_loading(struct client *c, struct names_entry *n)
{
    n->load = load_number(c, expect_next_serial(&c->link->expect));
    mem_free(n->why);
    n->why = NULL;
}

/* The name whose PREPARE or Parse was sent with the op at the head. */
static struct names_entry *find_loading(const struct client *c)
{
    uint64_t number = load_number(c, expect_head_serial(&c->link->expect));
    struct names_entry *n = NULL;

    do
        n = names_next(c->sstate->names.set, n);
    while (n != NULL && n->load != number);
    return n;
}

bool follow_sql_load_failed(struct client *c, const struct errmsg *m)
{
    struct names_entry *n = find_loading(c);
    struct slice name;

    if (n == NULL)
        return false;
    name = slice_of(n->name, n->len);
    if (prepset_named(&c->link->preps, name) == n->content)
        prepset_drop_named(&c->link->preps, name); /* else another was sent behind it */
    if (slice_eq_str(m->sqlstate, "25P02"))
        return true; /* says nothing of the statement */
    mem_free(n->why);
    n->why = mem_strndup(m->whole.p, m->whole.n);
    if (c->link->tx_status == 'T')
        c->sstate->errand->way.unloaded = n;
    return true;
}

const char *follow_sql_why(struct client *c, const struct errmsg *m)
{
    const struct names_entry *n = c->sstate->errand->way.unloaded;
    struct buf quoted = {0};
    const char *why = NULL;

    c->sstate->errand->way.unloaded = NULL;
    if (n != NULL && slice_eq_str(m->sqlstate, "25P02"))
        return n->why;
    if (!slice_eq_str(m->sqlstate, "26000"))
        return NULL;
    for (n = NULL; why == NULL && (n = names_next(c->sstate->names.set, n)) != NULL;) {
        if (n->why == NULL)
            continue;
        buf_clear(&quoted);
        buf_printf(&quoted, "\"%s\"", n->name);
        if (memmem(m->message.p, m->message.n, quoted.data, quoted.len) != NULL)
            why = n->why;
    }
    buf_free(&quoted);
    return why;
}

WARM bool follow_sql_go_alone(const struct client *c, const struct sql_facts *facts)
{
    const struct names_entry *n;
    uint32_t i;

    for (i = 0; c->server_batch && i < facts->nstmts; i++) {
        if (!sstate_names_a_statement(&facts->stmts[i]))
            continue;
        n = names_find(&c->sstate->names, facts->stmts[i].name);
        if (n != NULL && n->prep != NULL)
            return true;
    }
    return false;
}

/* In the middle of a sequence of the client's neither a Sync nor a Query of ours may be sent: it
 * would commit what the sequence did, and end the skipping behind an error. */
static void load_in_sequence(
    struct client *c, struct feed_run *run, const struct names_entry *n, bool is_there)
{
    struct slice name = slice_of(n->name, n->len);

    if (n->prep == NULL)
        return; /* those of SQL came with the sequence */
    if (is_there)
        lent_put_close(c, run, name);
    else
        (void)lent_make_place(c, run);
    lent_put_parse(c, run, n->prep, name, OP_PARSE | OP_QUIET);
    prepset_set_named(&c->link->preps, name, PREPSET_DOUBTFUL); /* it may be skipped */
}

/* Brings a statement to the link under the client's own name, for SQL that names it. */
static void load_named(struct client *c, struct feed_run *run, struct names_entry *n)
{
    struct slice name = slice_of(n->name, n->len);
    uint64_t has = prepset_named(&c->link->preps, name);
    struct buf out = {0};
    bool was_full;

    if (has == n->content || names_entry_is_unread(n))
        return;
    if (is_refused(c) || c->server_batch) {
        if (is_refused(c)) /* EXECUTE may stand behind the ROLLBACK in one string */
            lent_forget_foreign(c, run, name);
        else
            load_in_sequence(c, run, n, has != 0);
        return;
    }
    was_full = has == 0 && lent_make_place(c, run);
    if (was_full || has != 0 || n->prep != NULL) {
        if (has != 0)
            lent_put_close(c, run, name);
        if (n->prep != NULL) {
            lent_put_parse(c, run, n->prep, name, OP_PARSE | OP_SWALLOW);
            note_loading(c, n); /* an error leaves the Sync at the head */
        }
        wire_put_empty(&out, FE_SYNC);
        link_expect(c->link, OP_SYNC | OP_SWALLOW);
    }
    if (n->prep == NULL) {
        wire_put_query(&out, slice_of_str(n->sql));
        lent_lose_unnamed(c); /* a simple query takes it with it */
        note_loading(c, n);
        link_expect(c->link, OP_QUERY | OP_SWALLOW);
    }
    feed_put(run, out.data, out.len);
    buf_free(&out);
    prepset_set_named(&c->link->preps, name, n->content);
}

static void load_sql_one(struct client *c, struct feed_run *run, struct names_entry *n)
{
    /* One that failed is tried again when it is named, or where nothing can fail with it. */
    if (n->prep == NULL &&
        (n->why == NULL || (c->link->tx_status == 'I' && c->sstate->tx != SSTATE_TX_VIRTUAL &&
                               expect_is_quiet(&c->link->expect))))
        load_named(c, run, n);
}

/* Names of many clients gather on a link: with too many of them all go. */
static void make_room(struct client *c, struct feed_run *run)
{
    if (prepset_count_named(&c->link->preps) <= 2 * SSTATE_MAX_SQL_NAMES || c->server_batch ||
        (c->sstate->pins & ROWS_PIN(PIN_REASON_UNKNOWN)) != 0)
        return;
    forget_all_named(c, run);
    lent_put_sync(c, run);
}

WARM void follow_sql_load(struct client *c, struct feed_run *run)
{
    struct names_entry *n = NULL;

    if (names_nsql(&c->sstate->names) == 0)
        return;
    make_room(c, run);
    while ((n = names_next(c->sstate->names.set, n)) != NULL)
        load_sql_one(c, run, n);
}

struct names_entry *follow_sql_executes(const struct client *c, const struct sql_facts *facts)
{
    if (facts->nstmts != 1 || facts->stmts[0].kind != SQL_EXECUTE)
        return NULL;
    return names_find(&c->sstate->names, facts->stmts[0].name);
}

/* PREPARE: the server says itself when the name is taken. */
static void before_prepare(struct client *c, struct feed_run *run, const struct sql_stmt *st)
{
    struct names_entry *n = names_find(&c->sstate->names, st->name);

    if (n != NULL) {
        load_named(c, run, n);
        return;
    }
    lent_forget_foreign(c, run, st->name);
    if (lent_make_place(c, run))
        lent_put_sync(c, run);
}

/* put_named. Who had the link before may have executed another statement by it. */
static void load_executed(struct client *c, struct feed_run *run, struct slice name, unsigned depth)
{
    struct names_entry *n = names_find(&c->sstate->names, name);
    const struct sql_stmt *next;

    if (n == NULL || depth > SSTATE_MAX_EXECUTES) {
        lent_forget_foreign(c, run, name);
        return;
    }
    next = effects_of_name(c, n);
    if (next != NULL && sstate_names_a_statement(next)) {
        load_executed(c, run, next->name, depth + 1);
        if (prepset_named(&c->link->preps, name) != 0)
            prepset_set_named(&c->link->preps, name, PREPSET_DOUBTFUL);
    }
    load_named(c, run, n);
}

/* The code of a DO may execute whatever has a name on the link: not what others call so. */
static void before_do(struct client *c, struct feed_run *run)
{
    if (names_nsql(&c->sstate->names) > 0 || prepset_any_named(&c->link->preps).p == NULL)
        return;
    forget_all_named(c, run);
    lent_put_sync(c, run);
}

WARM void follow_sql_before(struct client *c, struct feed_run *run, const struct sql_facts *facts)
{
    bool has_do = false;
    bool has_names = false;
    uint32_t i;

    for (i = 0; i < facts->nstmts; i++) {
        has_do = has_do || facts->stmts[i].kind == SQL_DO;
        has_names = has_names || sstate_names_a_statement(&facts->stmts[i]);
    }
    if (has_names)
        make_room(c, run);
    if (has_do)
        before_do(c, run); /* first: what the string itself executes is brought behind that */
    for (i = 0; has_names && i < facts->nstmts; i++) {
        const struct sql_stmt *st = &facts->stmts[i];

        if (st->kind == SQL_PREPARE)
            before_prepare(c, run, st);
        else if (sstate_names_a_statement(st) && st->name.n > 0)
            load_executed(c, run, st->name, 0);
    }
}

void follow_sql_note_deallocate(struct client *c, const struct sql_stmt *st)
{
    lent_names_word(c, (st->flags & SQL_F_ALL) != 0 ? NULL : names_entry_new(st->name));
}
