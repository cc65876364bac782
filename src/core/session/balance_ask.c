/* SPDX-License-Identifier: PostgreSQL
 * balance_ask.c: questions about the catalogue (is this function volatile? this table temporary?).
 * Answers come from a cache of the worker. What is not in there is asked on the client's own link,
 * while nothing is owed on it and no transaction is open: there the names mean what they mean to
 * the client, and the client waits for the answer anyhow. The replies are swallowed by position. */
#include "config.h"

#include <string.h>

#include "base/arena.h"
#include "base/log.h"
#include "parser/sql_cache.h"
#include "route/route_oracle.h"
#include "wire/reader.h"
#include "wire/writer.h"

#include "balance_int.h"

/* The questions under way. */
struct balance_questions {
    struct arena *arena; /* holds this struct and the names */
    unsigned n;
    struct route_question question[ROUTE_MAX_QUESTIONS];
};

/* What gives names without a schema their meaning: the role, and whatever the session set. */
static struct slice balance_path(struct client *c)
{
    struct balance *b = c->balance;

    if (b->path.len > 0 && b->path_log_len == b->log.len)
        return buf_slice(&b->path);
    buf_clear(&b->path);
    buf_put(&b->path, b->rs.user.p, b->rs.user.n);
    buf_put_byte(&b->path, '\0');
    if (paramset_get(&b->params, slice_of_str("options")).p != NULL ||
        paramset_get(&b->params, slice_of_str("search_path")).p != NULL)
        buf_put(&b->path, b->params.data, b->params.len);
    if (b->rs.search_path_changed)
        buf_put(&b->path, b->log.data, b->log.len);
    b->path_log_len = b->log.len;
    return buf_slice(&b->path);
}

int balance_lookup(void *ctx, const struct route_question *q, uint32_t *bits)
{
    struct client *c = ctx;
    struct balance *b = c->balance;

    return route_cache_get(c->ss->answers, b->rs.database, balance_path(c), q, b->rs.now_us, bits);
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

void balance_ask(struct client *c, struct link *link, const struct route_decision *d)
{
    struct balance *b = c->balance;
    struct buf sql = {0};
    struct buf out = {0};

    balance_questions_free(&b->questions);
    b->questions = ask_keep(d);
    route_oracle_sql(b->questions->question, b->questions->n, &sql);
    wire_put_query(&out, buf_slice(&sql));
    b->is_asking = true;
    link->capture = true;
    link->own_failed = false;
    link_expect(link, OP_QUERY | OP_SWALLOW);
    (void)link_send(link, out.data, out.len);
    buf_free(&sql);
    buf_free(&out);
}

void balance_on_row(struct client *c, struct slice body)
{
    struct balance *b = c->balance;
    struct wire_reader r;
    struct slice value[2];
    unsigned index;
    uint32_t bits;
    bool is_null;
    int i;

    if (b == NULL || !b->is_asking)
        return;
    wire_reader_init(&r, body);
    if (wire_get_u16(&r) != 2)
        return;
    for (i = 0; i < 2; i++)
        value[i] = wire_get_value(&r, &is_null);
    if (!wire_reader_ok(&r) ||
        route_oracle_parse_row(value[0], value[1], b->questions->n, &index, &bits) == -1)
        return;
    route_cache_put(c->ss->answers, b->rs.database, balance_path(c), &b->questions->question[index],
        b->rs.now_us, bits);
}

void balance_ask_done(struct client *c, struct link *link)
{
    struct balance *b = c->balance;

    b->is_asking = false;
    balance_questions_free(&b->questions);
    link->capture = false;
    if (link->own_failed) {
        b->ask_failed = true; /* this statement stays on the primary */
        log_at(LVL_DEBUG1, "a question about the catalogue failed on node %d",
            link->pool->cluster_node);
    }
    link->own_failed = false;
}
