/* SPDX-License-Identifier: PostgreSQL
 * inval_read.c: what a stream says, and what that makes invalid.
 * Runs in: invalidator. A cell is held from the moment when a change of it is read until the
 * transaction is seen to be visible: a commit stands in the WAL before others see it. Nothing is
 * kept of a row but its cells. */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/mem.h"
#include "cache/cache_stats.h"
#include "changes/changes.h"
#include "config/conf.h"
#include "sys/clock.h"

#include "inval_int.h"

/* Where no record ends, the WAL may be flushed up to the end of a page. */
#define PAGE_STEP 1024

/* --- cells --- */

static void hold(void *ctx, cache_cell cell, bool is_table)
{
    struct inval_stream *s = ctx;
    uint16_t number;

    if (!inval_cells_add(&s->cells, cell))
        return;
    cache_gens_hold(s->inv->gens, s->inv->role.env->slot, &cell, 1);
    number = is_table ? cache_table_find(s->inv->cache, cell) : 0;
    if (number != 0)
        buf_put(&s->tables, &number, sizeof number);
}

/* Releases cells as they were held: each by itself. */
static void release(struct inval_stream *s, struct inval_cells *cells, uint64_t lsn)
{
    struct cache_written written = {.lsn = lsn};
    uint32_t i;

    for (i = 0; i < cells->n; i++)
        cache_gens_release(s->inv->gens, s->inv->role.env->slot, &cells->cell[i], 1, written);
    if (s->inv->far != NULL && cells->n > 0)
        (void)cache_far_bump(s->inv->far, cells->cell, cells->n, NULL, NULL);
    inval_cells_free(cells);
}

/* A standby must have what was committed before: nobody knows the LSN of that. */
void inval_read_empty(struct inval_stream *s)
{
    cache_gens_bump(s->inv->gens, &s->cell, 1, (struct cache_written){.us = clock_mono_us()});
    if (s->inv->far != NULL)
        (void)cache_far_bump(s->inv->far, &s->cell, 1, NULL, NULL);
    s->row.emptied++;
}

static void drop_txn(struct inval_stream *s, struct inval_txn *txn)
{
    release(s, &txn->cells, txn->lsn);
    list_remove(&txn->node);
    mem_free(txn);
    s->row.waiting--;
}

void inval_read_drop(struct inval_stream *s)
{
    while (!list_is_empty(&s->txns))
        drop_txn(s, LIST_ENTRY(list_first(&s->txns), struct inval_txn, node));
    release(s, &s->cells, s->lsn);
    buf_free(&s->tables);
    s->is_by_table = false;
    mem_free(s->ghost);
    s->ghost = NULL;
    s->nghosts = 0;
    s->has_sample = false;
    inval_snapshot_free(&s->snapshot);
}

/* --- transactions --- */

void inval_read_ghosts(struct inval_stream *s, bool is_first)
{
    const struct inval_snapshot *snap = &s->snapshot;
    uint32_t i;

    if (is_first) {
        s->nghosts = snap->nrunning;
        s->ghost = mem_resize(s->ghost, (s->nghosts + 1) * sizeof s->ghost[0]);
        for (i = 0; i < s->nghosts; i++)
            s->ghost[i] = (struct inval_ghost){.xid = snap->running[i]};
    }
    for (i = 0; i < s->nghosts; i++)
        s->ghost[i].has_ended = inval_snapshot_sees(snap, s->ghost[i].xid);
}

/* The stream has shown its COMMIT, so that it has missed nothing of it. */
static void forget_ghost(struct inval_stream *s, uint32_t xid)
{
    uint32_t i;

    for (i = 0; i < s->nghosts; i++)
        if (s->ghost[i].xid == xid)
            s->ghost[i--] = s->ghost[--s->nghosts];
}

/* The stream is beyond all that was visible then: who has ended without a COMMIT in it was rolled
 * back, or had committed in front of it. */
static void bury_ghosts(struct inval_stream *s)
{
    uint32_t n = 0;
    uint32_t i;

    for (i = 0; i < s->nghosts; i++)
        if (!s->ghost[i].has_ended)
            s->ghost[n++] = s->ghost[i];
    if (n < s->nghosts)
        inval_read_empty(s);
    s->nghosts = n;
}

void inval_read_visible(struct inval_stream *s)
{
    struct list *it;
    struct list *tmp;

    LIST_FOREACH_SAFE(it, tmp, &s->txns)
    {
        struct inval_txn *txn = LIST_ENTRY(it, struct inval_txn, node);

        if (!inval_snapshot_sees(&s->snapshot, txn->xid))
            continue;
        if (txn->cells.n == 0)
            s->wants_digest = true;
        drop_txn(s, txn);
    }
}

static void note_lag(struct inval_stream *s, const struct change *c)
{
    int64_t lag_us = clock_wall_us() - c->commit_us;
    uint16_t number;
    uint32_t at;

    if (c->commit_us == 0 || s->cells.n == 0)
        return;
    s->row.lag_us = lag_us < 0 ? 0 : lag_us;
    histogram_add(&s->lag, s->row.lag_us);
    for (at = 0; at < s->tables.len; at += sizeof number) {
        memcpy(&number, s->tables.data + at, sizeof number);
        cache_note_write(s->inv->cache, number, !s->is_by_table, true, s->row.lag_us);
    }
    buf_clear(&s->tables);
    s->is_by_table = false;
}

/* A transaction that shows no change has changed the catalogue, most likely, which is looked at
 * when others see it. */
static void commit(struct inval_stream *s, const struct change *c, uint64_t lsn)
{
    struct inval_txn *txn = mem_alloc_zero(sizeof *txn);

    note_lag(s, c);
    txn->xid = c->xid;
    txn->lsn = lsn;
    txn->cells = s->cells;
    s->cells = (struct inval_cells){.n = 0};
    list_push_back(&s->txns, &txn->node);
    forget_ghost(s, c->xid);
    s->row.transactions++;
    s->row.waiting++;
    s->wants_visible = true;
    s->lsn = lsn;
}

static void count(struct inval_stream *s, enum inval_effect effect)
{
    s->is_by_table = s->is_by_table || effect == INVAL_TABLE;
    s->row.row_changes += effect == INVAL_ROW;
    s->row.table_changes += effect == INVAL_TABLE;
    s->row.emptied += effect == INVAL_DATABASE;
}

static void take_event(struct inval_stream *s, const struct stream_msg *m)
{
    struct change c;

    change_read(m->text, &c);
    if (c.kind == CHANGE_COMMIT)
        commit(s, &c, m->lsn);
    else
        count(s, inval_map_change(s->map, &c, s->cells.n < INVAL_CELLS_BY_ROW, hold, s));
}

/* --- how far it is --- */

static void grant(struct inval_stream *s)
{
    const struct conf *conf = inval_conf(s->inv);

    if (!s->was_good)
        inval_read_empty(s);
    s->was_good = true;
    s->good_until_us = s->sample_us + conf->memqcache_wal_lag_ms * CLOCK_US_PER_MS;
    cache_stream_lease(s->inv->streams, s->number, s->good_until_us);
    inval_stream_tell(s, CACHE_STREAM_STREAMING, "");
}

/* A transaction that was visible when the sample was taken stands in front of it, unless it was
 * committed without waiting for its WAL: that one is read when it is flushed. */
void inval_read_progress(struct inval_stream *s, bool is_waiting)
{
    bool is_there = s->lsn >= s->sample_lsn || (is_waiting && s->sample_lsn % PAGE_STEP == 0);

    if (!s->has_sample || !is_there)
        return;
    s->has_sample = false;
    bury_ghosts(s);
    grant(s);
}

void inval_read_ping(struct inval_stream *s)
{
    char reply[STREAM_REPLY_BYTES];
    PGconn *pq = server_conn_pq(s->repl);

    stream_reply(reply, s->lsn, clock_wall_us(), true);
    if (PQputCopyData(pq, reply, sizeof reply) == -1 || PQflush(pq) == -1)
        server_conn_fail(s->repl, NULL, NULL);
}

static void answer(struct inval_stream *s)
{
    char reply[STREAM_REPLY_BYTES];
    PGconn *pq = server_conn_pq(s->repl);

    stream_reply(reply, s->lsn, clock_wall_us(), false);
    if (PQputCopyData(pq, reply, sizeof reply) == -1 || PQflush(pq) == -1)
        server_conn_fail(s->repl, NULL, NULL);
}

static void take_message(struct inval_stream *s, const struct stream_msg *m)
{
    switch (m->kind) {
    case STREAM_DATA:
        take_event(s, m);
        break;
    case STREAM_ALIVE:
        if (m->lsn > s->lsn)
            s->lsn = m->lsn;
        if (m->wants_answer)
            answer(s);
        break;
    case STREAM_BAD:
        inval_stream_break(s, "the stream is not understood");
        break;
    }
}

static void ended(struct inval_stream *s)
{
    PGresult *res = PQgetResult(server_conn_pq(s->repl));

    inval_stream_break(s, res == NULL ? "the stream has ended" : PQresultErrorMessage(res));
    PQclear(res);
}

void inval_read_ready(struct server_conn *c)
{
    struct inval_stream *s = server_conn_owner(c);
    PGconn *pq = server_conn_pq(c);
    struct stream_msg m;
    char *data;
    int n = 0;

    if (PQflush(pq) == -1 || PQconsumeInput(pq) != 1) {
        server_conn_fail(c, NULL, NULL);
        return;
    }
    while (s->stage == STREAM_OPEN && (n = PQgetCopyData(pq, &data, 1)) > 0) {
        stream_read(slice_of(data, (size_t)n), &m);
        take_message(s, &m);
        PQfreemem(data);
    }
    if (s->stage != STREAM_OPEN)
        return;
    if (n < 0) {
        ended(s);
        return;
    }
    inval_read_progress(s, false);
    inval_ask_next(s);
}
