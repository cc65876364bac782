/* SPDX-License-Identifier: PostgreSQL
 * balance_ask.c: questions about the catalogue (is this function volatile? this table temporary?).
 * Answers come from a cache of the worker. What is not in there is asked on a link that is borrowed
 * for it and has the client's settings: there the names mean what they mean to the client, who
 * waits for the answer anyhow. The replies are swallowed by position. */
#include "config.h"

#include <string.h>

#include "base/arena.h"
#include "base/hash.h"
#include "base/hot.h"
#include "base/log.h"
#include "base/mem.h"
#include "config/conf.h"
#include "parser/sql_cache.h"
#include "route/route_marks.h"
#include "route/route_oracle.h"
#include "wire/reader.h"
#include "wire/writer.h"

#include "share_int.h"

/* Questions for one statement. Views within views take one each; a server that never answers what
 * was asked must not be asked for ever. */
#define ASK_MAX 50
/* Statements of one transaction that are looked into afterwards, and their bytes. After more the
 * session reads from the primary. */
#define DOUBTS_MAX   64
#define DOUBTS_BYTES 65536

/* The questions under way, or to be asked when the transaction is over. */
struct balance_questions {
    struct arena *arena; /* holds this struct and the names */
    uint64_t change;     /* of the schema, when they were sent */
    unsigned n;
    struct route_question question[ROUTE_MAX_QUESTIONS];
};

/* What gives names without a schema their meaning: the role, and whatever the session set. Hashes
 * will do: taken for another's, an answer sends a write to a standby at the worst, which refuses
 * it.
 */
HOT static struct route_scope balance_scope(const struct client *c)
{
    const struct pool *pool = c->pool;
    struct route_scope scope = {.database = pool->database_hash};
    uint64_t set = c->share->vars.client->path_hash;

    scope.names = set == 0 ? pool->node.hash : hash_bytes(&set, sizeof set, pool->node.hash);
    return scope;
}

WARM int balance_lookup(void *ctx, const struct route_question *q, uint32_t *bits)
{
    struct client *c = ctx;

    return balance_worker_lookup(c->ss, balance_scope(c), q, c->balance->rs.now_us, bits);
}

uint64_t balance_answers_id(const struct client *c)
{
    return route_cache_id(c->ss->answers, balance_scope(c), c->balance->rs.now_us);
}

/* The question's names are views into the statement: they must outlive it. */
static struct balance_questions *ask_keep(const struct route_decision *d)
{
    struct arena *a = arena_new("questions", 0);
    struct balance_questions *qs = arena_alloc_zero(a, sizeof *qs);
    unsigned i;

    qs->arena = a;
    qs->n = d->nquestions;
    for (i = 0; i < d->nquestions; i++) {
        struct route_question *q = &qs->question[i];

        *q = d->question[i];
        q->schema.p = arena_strndup(a, q->schema.p, q->schema.n);
        q->name.p = arena_strndup(a, q->name.p, q->name.n);
    }
    return qs;
}

void balance_questions_free(struct balance_questions **qp)
{
    struct arena *a = *qp == NULL ? NULL : (*qp)->arena;

    *qp = NULL;
    arena_free(&a);
}

int balance_ask_node(const struct client *c, const struct route_decision *d, int primary)
{
    if (d->ask_node == VIEW_NO_NODE || !conf_has_node(c->ss->conf, d->ask_node) ||
        share_is_avoided(c, d->ask_node))
        return primary;
    return d->ask_node;
}

void balance_send_question(struct client *c, struct link *link, struct slice sql)
{
    struct buf out = {0};

    link_forget_failure(link);
    share_lose_unnamed(c);
    link_expect(link, OP_QUERY | OP_SWALLOW | OP_ROWS);
    wire_put_query(&out, sql);
    (void)link_send(link, out.data, out.len);
    buf_free(&out);
}

static void ask_send(struct client *c, struct link *link)
{
    struct balance *b = c->balance;
    struct buf sql = {0};

    route_oracle_sql(b->questions->question, b->questions->n, &sql);
    b->questions->change = balance_worker_change(c->ss);
    b->asking = ASKING_CATALOGUE;
    balance_send_question(c, link, buf_slice(&sql));
    buf_free(&sql);
}

void balance_ask(struct client *c, struct link *link, const struct route_decision *d)
{
    balance_ask_later(c, d);
    ask_send(c, link);
}

void balance_ask_later(struct client *c, const struct route_decision *d)
{
    struct balance *b = c->balance;

    balance_questions_free(&b->questions);
    b->questions = ask_keep(d);
}

/* Statements that were run without being known, in the order in which they came. */
struct balance_doubts {
    struct buf texts; /* each with its NUL */
    uint32_t at;      /* of the first that is still in doubt */
    unsigned n;
    struct sql_fingerprint of[DOUBTS_MAX];
};

void balance_drop_doubts(struct balance *b)
{
    if (b->doubts != NULL)
        buf_free(&b->doubts->texts);
    mem_free(b->doubts);
    b->doubts = NULL;
}

static bool is_noted(const struct balance_doubts *ds, const struct sql_fingerprint *fp)
{
    unsigned i;

    for (i = 0; i < ds->n; i++)
        if (ds->of[i].hi == fp->hi && ds->of[i].lo == fp->lo)
            return true;
    return false;
}

WARM void balance_note_doubt(struct client *c, struct slice sql, const struct route_decision *d)
{
    struct balance *b = c->balance;
    struct balance_doubts *ds;
    struct sql_fingerprint fp = {0};

    if (!d->is_doubtful || b->rs.state_unknown)
        return;
    if (b->doubts == NULL)
        b->doubts = mem_alloc_zero(sizeof *b->doubts);
    ds = b->doubts;
    if (sql_fingerprint(c->ss->scratch, sql, &fp) == 0 && is_noted(ds, &fp))
        return;
    if (ds->n == DOUBTS_MAX || ds->texts.len + sql.n + 1 > DOUBTS_BYTES) {
        b->rs.state_unknown = true;
        balance_drop_doubts(b);
        return;
    }
    ds->of[ds->n++] = fp;
    buf_put(&ds->texts, sql.p, sql.n);
    buf_put_byte(&ds->texts, '\0');
}

/* Its transaction is over. */
static void mark_every_table(struct client *c)
{
    uint64_t key = route_marks_key(pool_database(c->pool), 0);

    if (c->ss->conf->disable_load_balance_on_write == CONF_WRITE_DML_ADAPTIVE_GLOBAL)
        balance_worker_mark(c->ss, &key, 1);
}

/* What is known now of a statement that has run. True when something of it is still to be asked. */
static bool is_in_doubt(struct client *c, struct slice sql)
{
    struct balance *b = c->balance;
    struct route_decision d;

    balance_decide_afterwards(c, sql, &d);
    if (d.is_doubtful && d.must_ask && !b->ask_failed) {
        balance_ask(c, c->link, &d);
        return true;
    }
    /* A function that ran and is not to be found any more has changed where names are looked for.
     */
    if (d.runs_code || d.is_doubtful || d.reason == ROUTE_R_MISSING_FUNCTION)
        b->rs.state_unknown = true;
    if (d.runs_code)
        mark_every_table(c);
    if (d.is_write) {
        b->rs.wrote_in_session = true;
        b->rs.wrote_in_an_earlier_tx = true;
    }
    balance_ask_reset(b);
    return false;
}

/* True when a question is under way. */
static bool asks_doubts(struct client *c)
{
    struct balance_doubts *ds = c->balance->doubts;
    struct slice text;

    if (ds == NULL)
        return false;
    while (ds->at < ds->texts.len) {
        text = slice_of_str(ds->texts.data + ds->at);
        if (is_in_doubt(c, text))
            return true;
        ds->at += (uint32_t)text.n + 1;
    }
    balance_drop_doubts(c->balance);
    c->balance->rs.doubtful = false;
    return false;
}

WARM void balance_ask_missed(struct client *c)
{
    struct balance *b = c->balance;

    if (b->asking != ASKING_NONE || c->link->tx_status != 'I' ||
        !expect_is_quiet(&c->link->expect) || c->link->body_left > 0 || c->is_half_closed ||
        c->ss->stop != SESSION_RUNNING)
        return;
    if (!asks_doubts(c) && b->questions != NULL)
        ask_send(c, c->link);
}

/* The write's tables whose numbers are not known. */
static void missing_oids(struct client *c, const struct sql_stmt *s, struct route_decision *d)
{
    uint32_t i;
    uint32_t bits;

    for (i = 0; i < s->ntables && d->nquestions < ROUTE_MAX_QUESTIONS; i++) {
        struct route_question q = {
            .kind = ROUTE_Q_OID, .schema = s->tables[i].schema, .name = s->tables[i].name};

        if ((s->tables[i].flags & SQL_TABLE_TARGET) != 0 && balance_lookup(c, &q, &bits) == -1)
            d->question[d->nquestions++] = q;
    }
}

WARM bool balance_lacks_marks(
    struct client *c, const struct sql_facts *facts, struct route_decision *missing)
{
    uint32_t i;

    if (c->ss->conf->disable_load_balance_on_write != CONF_WRITE_DML_ADAPTIVE_GLOBAL ||
        c->balance->ask_failed)
        return false;
    memset(missing, 0, sizeof *missing);
    missing->must_ask = true;
    missing->ask_node = VIEW_NO_NODE;
    for (i = 0; i < facts->nstmts; i++)
        missing_oids(c, &facts->stmts[i], missing);
    return missing->nquestions > 0;
}

static bool follows_marks(const struct client *c)
{
    return c->ss->conf->disable_load_balance_on_write == CONF_WRITE_DML_ADAPTIVE_GLOBAL;
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

static void take_answer(struct client *c, struct slice index_text, struct slice bits_text)
{
    struct balance *b = c->balance;
    const struct balance_questions *qs = b->questions;
    unsigned index;
    uint32_t bits;

    if (route_oracle_parse_row(index_text, bits_text, qs->n, &index, &bits) == 0)
        balance_worker_learn(
            c->ss, balance_scope(c), &qs->question[index], qs->change, b->rs.now_us, bits);
}

/* The columns of a row; false when there are not `n` of them. */
bool balance_row_values(struct slice body, struct slice *value, int n)
{
    struct wire_reader r;
    bool is_null;
    int i;

    wire_reader_init(&r, body);
    if (wire_get_u16(&r) != n)
        return false;
    for (i = 0; i < n; i++)
        value[i] = wire_get_value(&r, &is_null);
    return wire_reader_ok(&r);
}

void balance_on_row(struct client *c, struct slice body)
{
    struct balance *b = c->balance;
    struct slice value[2];

    if (b == NULL || b->asking == ASKING_NONE ||
        !balance_row_values(body, value, b->asking == ASKING_REPLAY ? 1 : 2))
        return;
    if (b->asking == ASKING_REPLAY)
        balance_wait_row(c->ss, c->link->pool->cluster_node, value[0]);
    else if (b->asking == ASKING_LSN)
        balance_on_lsn(c, value[0], value[1]);
    else
        take_answer(c, value[0], value[1]);
}

void balance_ask_done(struct client *c, struct link *link)
{
    struct balance *b = c->balance;

    if (b->asking == ASKING_CATALOGUE)
        balance_questions_free(&b->questions);
    if (link_own_failed(link)) {
        b->ask_failed = true; /* this statement stays on the primary */
        b->wait_is_over = b->asking != ASKING_CATALOGUE;
        CLIENT_LOG(
            c, LVL_DEBUG1, "a question of our own failed on node %d", link->pool->cluster_node);
    }
    if (b->asking == ASKING_CATALOGUE && ++b->nasked == ASK_MAX)
        b->ask_failed = true; /* the server's answers answer nothing */
    b->asking = ASKING_NONE;
    link_forget_failure(link);
}
