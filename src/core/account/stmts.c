/* SPDX-License-Identifier: PostgreSQL
 * stmts.c: calls, times, rows and errors of statements. Runs in: workers, per statement: no
 * system call, nothing allocated but for a statement that is new. */
#include "config.h"

#include <string.h>

#include "backend/pool.h"
#include "base/buf.h"
#include "base/hot.h"
#include "base/mem.h"
#include "ipc/rows.h"
#include "parser/parser.h"
#include "parser/sql_cache.h"

#include "account/stmts.h"

/* A longer text that nobody has looked through before is counted among all others: to look through
 * it would take longer than to pass it on. */
#define TEXT_MAX 4096

static size_t rows_bytes_of(const struct stmts_worker *of)
{
    return of->range->count * sizeof(struct client_stmt);
}

struct stmts *stmts_new(const struct stmts_worker *of)
{
    struct stmtstats_book *book = stmtstats_open(of->shm, of->ordinal);
    struct stmts *s;

    if (book == NULL)
        return NULL;
    s = mem_alloc(sizeof *s + rows_bytes_of(of));
    s->of = *of;
    s->book = book;
    return s;
}

void stmts_free(struct stmts **s)
{
    if (*s == NULL)
        return;
    stmtstats_close(&(*s)->book);
    mem_free(*s);
    *s = NULL;
}

void stmts_begin(struct stmts *s)
{
    memset(s->of_row, 0, rows_bytes_of(&s->of));
}

HOT struct client_stmt *stmts_of(struct stmts *s, int32_t row)
{
    return &s->of_row[(uint32_t)row - s->of.range->first];
}

/* Seen for the first time, or for the first time since it went. */
COLD static stmtstats_handle add_statement(
    struct stmts *s, const struct stmtstats_key *key, const struct pool *pool, struct slice sql)
{
    struct sql_fingerprint fp = {0};
    stmtstats_handle h = 0;
    struct buf text = {0};

    if (sql_fingerprint(s->of.scratch, sql, &fp) == 0 &&
        sql_mask(s->of.scratch, sql, STMTSTATS_TEXT_BYTES, &text) == 0)
        h = stmtstats_add(s->book, key, fp.lo, pool_database(pool), buf_slice(&text));
    buf_free(&text);
    return h;
}

/* The long way. */
WARM static stmtstats_handle find_statement(
    struct stmts *s, struct stmts_place at, struct slice sql)
{
    struct stmtstats_key key;
    struct sql_fingerprint fp;
    stmtstats_handle h;

    if (sql_cache_fingerprint(s->of.sql_cache, sql, TEXT_MAX, &fp) != 0)
        return 0;
    key.hi = fp.hi;
    key.lo = fp.lo;
    key.database = at.row;
    key.node = at.pool->cluster_node;
    h = stmtstats_find(s->book, &key);
    return h != 0 ? h : add_statement(s, &key, at.pool, sql);
}

/* What was found for a text is noted beside it, for a few nodes. */
HOT static stmtstats_handle look_up(struct stmts *s, struct stmts_place at, struct slice sql)
{
    unsigned node = (unsigned)at.pool->cluster_node;
    uint32_t *notes = sql_cache_notes(s->of.sql_cache, sql, TEXT_MAX);
    stmtstats_handle h = notes == NULL ? 0 : notes[node % SQL_CACHE_NOTES];

    if (h != 0 && stmtstats_is(s->book, h, at.row, at.pool->cluster_node))
        return h;
    h = find_statement(s, at, sql);
    notes = sql_cache_notes(s->of.sql_cache, sql, TEXT_MAX);
    if (notes != NULL)
        notes[node % SQL_CACHE_NOTES] = h;
    return h;
}

HOT void stmts_text(
    struct stmts *s, struct client_stmt *st, struct stmts_place at, struct slice sql)
{
    st->handle = look_up(s, at, sql);
}

void stmts_hit(struct stmts *s, struct stmts_place at, struct slice sql)
{
    stmtstats_count_hit(s->book, look_up(s, at, sql));
}

HOT bool stmts_is_known(
    struct stmts *s, struct client_stmt *st, struct stmts_place at, stmtstats_handle known)
{
    if (known == 0 || !stmtstats_is(s->book, known, at.row, at.pool->cluster_node))
        return false;
    st->handle = known;
    return true;
}

HOT void stmts_end(struct stmts *s, struct client_stmt *st, int64_t took_us)
{
    if (st->use.calls > 0 && took_us >= 0) {
        st->use.took_us = took_us;
        stmtstats_count(s->book, st->handle, &st->use);
    }
    st->use.calls = 0;
    st->use.nerrors = 0;
    st->use.nrows = 0;
}
