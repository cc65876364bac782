/* SPDX-License-Identifier: PostgreSQL
 * client_stmts.c: calls, times, rows and errors of statements. Runs in: workers, per statement: no
 * system call, nothing allocated but for a statement that is new.
 *
 * What is kept of a client while something is under way stands in a table by the number of its row:
 * clients that are idle cost no memory for it. */
#include "config.h"

#include <string.h>

#include "base/hot.h"
#include "base/mem.h"
#include "config/conf.h"
#include "parser/parser.h"
#include "parser/sql_cache.h"

#include "client_int.h"

/* A longer text that nobody has looked through before is counted among all others: to look through
 * it would take longer than to pass it on. */
#define TEXT_MAX 4096

void session_stmts_set(struct sessions *ss)
{
    const struct rows_worker *range = rows_worker(ss->client_rows, (uint32_t)ss->env->ordinal);
    size_t rows_bytes = range->count * sizeof ss->stmts->of_row[0];
    struct stmtstats_book *book;

    if (!ss->conf->track_statements) {
        ss->stmts = NULL;
        return;
    }
    if (ss->stmts != NULL)
        return;
    /* The book that was used before is used on: handles out of it are noted beside texts. */
    if (ss->stmts_kept == NULL) {
        book = stmtstats_open(ss->env->shm, ss->env->ordinal);
        if (book == NULL)
            return;
        ss->stmts_kept = mem_alloc(sizeof *ss->stmts + rows_bytes);
        ss->stmts_kept->book = book;
        ss->stmts_kept->first_row = range->first;
    }
    ss->stmts = ss->stmts_kept;
    memset(ss->stmts->of_row, 0, rows_bytes);
}

void session_stmts_fini(struct sessions *ss)
{
    ss->stmts = NULL;
    if (ss->stmts_kept == NULL)
        return;
    stmtstats_close(&ss->stmts_kept->book);
    mem_free(ss->stmts_kept);
    ss->stmts_kept = NULL;
}

/* NULL: it is not counted. */
static inline struct client_stmt *stmt_of(const struct client *c)
{
    struct session_stmts *s = c->ss->stmts;

    return s == NULL || c->row == NULL ? NULL : &s->of_row[(uint32_t)c->row_index - s->first_row];
}

/* Seen for the first time, or for the first time since it went. */
COLD static stmtstats_handle add_statement(
    struct client *c, const struct stmtstats_key *key, struct slice sql)
{
    struct stmtstats_book *book = c->ss->stmts->book;
    struct sql_fingerprint fp = {0};
    stmtstats_handle h = 0;
    struct buf text = {0};

    if (sql_fingerprint(c->ss->scratch, sql, &fp) == 0 &&
        sql_mask(c->ss->scratch, sql, STMTSTATS_TEXT_BYTES, &text) == 0)
        h = stmtstats_add(book, key, fp.lo, pool_database(c->pool), buf_slice(&text));
    buf_free(&text);
    return h;
}

/* The long way. */
WARM static stmtstats_handle find_statement(struct client *c, struct slice sql, int node)
{
    struct stmtstats_key key;
    struct sql_fingerprint fp;
    stmtstats_handle h;

    if (sql_cache_fingerprint(c->ss->sql_cache, sql, TEXT_MAX, &fp) != 0)
        return 0;
    key.hi = fp.hi;
    key.lo = fp.lo;
    key.database = c->stats.row;
    key.node = node;
    h = stmtstats_find(c->ss->stmts->book, &key);
    return h != 0 ? h : add_statement(c, &key, sql);
}

/* What was found for a text is noted beside it, for a few nodes. */
HOT static stmtstats_handle look_up(struct client *c, struct slice sql, int node)
{
    uint32_t *notes = sql_cache_notes(c->ss->sql_cache, sql, TEXT_MAX);
    stmtstats_handle h = notes == NULL ? 0 : notes[(unsigned)node % SQL_CACHE_NOTES];

    if (h != 0 && stmtstats_is(c->ss->stmts->book, h, c->stats.row, node))
        return h;
    h = find_statement(c, sql, node);
    notes = sql_cache_notes(c->ss->sql_cache, sql, TEXT_MAX);
    if (notes != NULL)
        notes[(unsigned)node % SQL_CACHE_NOTES] = h;
    return h;
}

HOT void client_stmts_text(struct client *c, struct slice sql)
{
    struct client_stmt *st = stmt_of(c);

    if (st != NULL && c->target != NULL)
        st->handle = look_up(c, sql, c->target->pool->cluster_node);
}

void client_stmts_hit(struct client *c, struct slice sql)
{
    if (stmt_of(c) != NULL)
        stmtstats_count_hit(c->ss->stmts->book, look_up(c, sql, c->pool->cluster_node));
}

HOT bool client_stmts_is_known(struct client *c, stmtstats_handle known)
{
    struct client_stmt *st = stmt_of(c);

    if (st == NULL)
        return true; /* nobody asks */
    if (known == 0 || c->target == NULL ||
        !stmtstats_is(c->ss->stmts->book, known, c->stats.row, c->target->pool->cluster_node))
        return false;
    st->handle = known;
    return true;
}

stmtstats_handle client_stmts_bound(struct client *c, struct slice sql)
{
    const struct client_stmt *st = stmt_of(c);

    client_stmts_text(c, sql);
    return st == NULL ? 0 : st->handle;
}

bool client_stmts_fingerprint(const struct client *c, uint64_t *fingerprint)
{
    const struct client_stmt *st = stmt_of(c);

    return st != NULL && stmtstats_fingerprint(c->ss->stmts->book, st->handle, fingerprint);
}

void client_stmts_unknown(struct client *c)
{
    struct client_stmt *st = stmt_of(c);

    if (st != NULL)
        st->handle = 0;
}

HOT void client_stmts_calls(struct client *c, unsigned n)
{
    struct client_stmt *st = stmt_of(c);

    if (st != NULL)
        st->use.calls += n;
}

HOT void client_stmts_rows(struct client *c)
{
    struct client_stmt *st = stmt_of(c);

    if (st != NULL)
        st->use.nrows += c->ss->be.nrows;
    c->ss->be.nrows = 0;
}

void client_stmts_error(struct client *c)
{
    struct client_stmt *st = stmt_of(c);

    if (st != NULL)
        st->use.nerrors++;
}

HOT void client_stmts_end(struct client *c, int64_t took_us)
{
    struct client_stmt *st = stmt_of(c);

    if (st == NULL)
        return;
    if (st->use.calls > 0 && took_us >= 0) {
        st->use.took_us = took_us;
        stmtstats_count(c->ss->stmts->book, st->handle, &st->use);
    }
    st->use.calls = 0;
    st->use.nerrors = 0;
    st->use.nrows = 0;
}
