/* SPDX-License-Identifier: PostgreSQL
 * plan_answers.c: what the catalogue said, as the router asks for it; what is not known yet.
 * Runs in: workers. */
#include "config.h"

#include <string.h>

#include "base/arena.h"
#include "base/hash.h"
#include "base/hot.h"
#include "base/mem.h"
#include "config/conf.h"
#include "route/route_marks.h"
#include "route/route_oracle.h"
#include "wire/writer.h"

#include "sstate_int.h"

/* What gives names without a schema their meaning: the role, and whatever the session set. Hashes
 * will do: an answer that is taken for another's sends a write to a standby at worst, which
 * refuses. */
HOT struct route_scope plan_scope(const struct client *c)
{
    const struct pool *pool = c->pool;
    struct route_scope scope = {.database = pool->database_hash};
    uint64_t set = c->sstate->vars.client->path_hash;

    scope.names = set == 0 ? pool->node.hash : hash_bytes(&set, sizeof set, pool->node.hash);
    return scope;
}

static void add_mark(struct client *c, uint32_t oid)
{
    struct plan *b = c->plan;

    if (b->mark == NULL)
        b->mark = mem_alloc(PLAN_MAX_MARKS * sizeof b->mark[0]);
    if (b->nmarks == PLAN_MAX_MARKS)
        b->mark[0] = route_marks_key(pool_database(c->pool), 0); /* every table, then */
    else
        b->mark[b->nmarks++] = route_marks_key(pool_database(c->pool), oid);
}

static bool follows_marks(const struct client *c)
{
    return c->ss->conf->disable_load_balance_on_write == CONF_WRITE_DML_ADAPTIVE_GLOBAL;
}

static bool is_noted(const struct plan_doubts *ds, const struct sql_fingerprint *fp)
{
    unsigned i;

    for (i = 0; i < ds->n; i++)
        if (ds->of[i].hi == fp->hi && ds->of[i].lo == fp->lo)
            return true;
    return false;
}

uint64_t plan_answers_id(const struct client *c)
{
    return route_cache_id(c->ss->answers, plan_scope(c), c->plan->rs.now_us);
}

void plan_drop_doubts(struct plan *b)
{
    if (b->doubts != NULL)
        buf_free(&b->doubts->texts);
    mem_free(b->doubts);
    b->doubts = NULL;
}

WARM int plan_lookup(void *ctx, const struct route_question *q, uint32_t *bits)
{
    struct client *c = ctx;

    return known_lookup(c->ss->known, plan_scope(c), q, c->plan->rs.now_us, bits);
}

void plan_mark_all(struct client *c)
{
    if (follows_marks(c))
        add_mark(c, 0);
}

void plan_questions_free(struct plan_questions **qp)
{
    struct arena *a = *qp == NULL ? NULL : (*qp)->arena;

    *qp = NULL;
    arena_free(&a);
}

WARM void plan_note_doubt(struct client *c, struct slice sql, const struct route_decision *d)
{
    struct plan *b = c->plan;
    struct plan_doubts *ds;
    struct sql_fingerprint fp = {0};

    if (!d->is_doubtful || (b->rs.ties & ROUTE_TIE_STATE) != 0)
        return;
    if (b->doubts == NULL)
        b->doubts = mem_alloc_zero(sizeof *b->doubts);
    ds = b->doubts;
    if (sql_fingerprint(c->ss->scratch, sql, &fp) == 0 && is_noted(ds, &fp))
        return;
    if (ds->n == DOUBTS_MAX || ds->texts.len + sql.n + 1 > DOUBTS_BYTES) {
        route_tie(&b->rs, ROUTE_TIE_STATE, true);
        plan_drop_doubts(b);
        return;
    }
    ds->of[ds->n++] = fp;
    buf_put(&ds->texts, sql.p, sql.n);
    buf_put_byte(&ds->texts, '\0');
}

void plan_note_marks(struct client *c, const struct sql_stmt *s)
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
        if (plan_lookup(c, &q, &bits) == -1)
            bits = 0;
        add_mark(c, bits);
    }
    /* What these write to is not in their text. */
    if (s->kind == SQL_EXECUTE || s->inner == SQL_EXECUTE || s->tx.op == SQL_TX_COMMIT_PREPARED)
        add_mark(c, 0);
}

void plan_send_question(struct client *c, struct link *link, struct slice sql)
{
    struct buf out = {0};

    link_forget_failure(link);
    lent_lose_unnamed(c);
    link_expect(link, OP_QUERY | OP_SWALLOW | OP_ROWS);
    wire_put_query(&out, sql);
    (void)link_send(link, out.data, out.len);
    buf_free(&out);
}
