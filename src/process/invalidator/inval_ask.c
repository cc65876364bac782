/* SPDX-License-Identifier: PostgreSQL
 * inval_ask.c: what a stream asks on its ordinary connection, one question after the other.
 * Runs in: invalidator. Never waits. Visibility first: as long as it is not known, what was written
 * is not kept. */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sys/clock.h"

#include "inval_int.h"

/* The digest may take this part of a server's time at most, and is taken not more often. */
#define DIGEST_SHARE  50
#define DIGEST_MIN_MS 50
/* Who commits and waits for a standby is looked for less often after a while. */
#define VISIBLE_AT_ONCE  3
#define VISIBLE_AGAIN_MS 50

#define SAMPLE_SQL                                                                                 \
    "select txid_current_snapshot(), pg_current_wal_flush_lsn() - '0/0'::pg_lsn,"                  \
    " coalesce((select wait_event ilike 'WalSenderWaitForWal' from pg_stat_activity"               \
    "  where pid = %d), false)"

static enum inval_ask most_urgent(const struct inval_stream *s)
{
    if (s->wants_visible)
        return ASK_VISIBLE;
    if (s->wants_sample && !s->has_sample)
        return ASK_SAMPLE;
    if (s->wants_map)
        return ASK_TABLES;
    if (s->wants_digest && clock_mono_us() >= s->digest_due_us)
        return ASK_DIGEST;
    return ASK_NOTHING;
}

static void put_question(struct inval_stream *s, enum inval_ask ask)
{
    PGconn *pq = server_conn_pq(s->sql);
    char sample[320];
    const char *sql = inval_catalog_sql(ask, PQserverVersion(pq));

    if (ask == ASK_SAMPLE) {
        snprintf(sample, sizeof sample, SAMPLE_SQL, PQbackendPID(server_conn_pq(s->repl)));
        sql = sample;
    }
    s->asking = ask;
    s->asked_us = clock_mono_us();
    if (PQsendQuery(pq, sql) == 1)
        inval_ask_ready(s->sql);
    else
        server_conn_fail(s->sql, NULL, NULL);
}

void inval_ask_next(struct inval_stream *s)
{
    enum inval_ask ask = most_urgent(s);

    if (s->stage == STREAM_OPEN && s->asking == ASK_NOTHING && ask != ASK_NOTHING)
        put_question(s, ask);
}

void inval_ask_open(struct server_conn *c)
{
    put_question(server_conn_owner(c), ASK_FACTS);
}

void inval_ask_running(struct inval_stream *s)
{
    put_question(s, ASK_RUNNING);
}

void inval_ask_forget(struct inval_stream *s)
{
    PQclear(s->answer);
    s->answer = NULL;
    s->asking = ASK_NOTHING;
    s->wants_sample = false;
    s->wants_visible = false;
    s->wants_digest = false;
    s->wants_map = false;
}

/* --- answers --- */

static void take_facts(struct inval_stream *s, const PGresult *res)
{
    char why[CACHE_STREAM_WHY_BYTES];

    if (inval_catalog_in_recovery(res))
        inval_stream_break(s, "the server is in recovery");
    else if (inval_catalog_judge(res, why) == -1)
        inval_stream_refuse(s, why);
    else
        inval_stream_make_slot(s);
}

/* The digest is taken before the tables are read: what changes in between is noticed by the next
 * one. */
static void take_digest(struct inval_stream *s, const PGresult *res)
{
    const char *digest = PQgetvalue(res, 0, 0);
    int64_t now_us = clock_mono_us();
    int64_t pause_us = (now_us - s->asked_us) * DIGEST_SHARE;

    s->wants_digest = false;
    if (pause_us < DIGEST_MIN_MS * CLOCK_US_PER_MS)
        pause_us = DIGEST_MIN_MS * CLOCK_US_PER_MS;
    s->digest_due_us = now_us + pause_us;
    s->digest_lsn = s->lsn;
    s->digest_us = now_us;
    if (s->stage == STREAM_CATALOG) {
        snprintf(s->digest, sizeof s->digest, "%s", digest);
        put_question(s, ASK_TABLES);
    } else if (strncmp(s->digest, digest, sizeof s->digest - 1) != 0) {
        snprintf(s->digest, sizeof s->digest, "%s", digest);
        inval_read_empty(s);
        s->wants_map = true;
    }
}

static void take_tables(struct inval_stream *s, const PGresult *res)
{
    s->wants_map = false;
    inval_map_free(&s->map);
    s->map = inval_map_new(s->cell);
    inval_catalog_tables(s->map, res);
    put_question(s, ASK_ABOVE);
}

static void take_above(struct inval_stream *s, const PGresult *res)
{
    inval_catalog_above(s->map, res);
    if (s->stage == STREAM_CATALOG)
        inval_stream_go(s);
    else
        inval_read_empty(s); /* what came in between was counted by the old names */
}

static void take_visible(struct inval_stream *s)
{
    s->wants_visible = false;
    inval_read_visible(s);
    if (list_is_empty(&s->txns))
        s->nvisible_tries = 0;
    else if (++s->nvisible_tries < VISIBLE_AT_ONCE)
        s->wants_visible = true;
    else
        timer_start(&s->inv->role.loop, &s->visible_later, VISIBLE_AGAIN_MS);
}

static void take_sample(struct inval_stream *s, const PGresult *res)
{
    s->wants_sample = false;
    s->has_sample = true;
    s->sample_us = s->asked_us;
    s->sample_lsn = strtoull(PQgetvalue(res, 0, 1), NULL, 10);
    inval_read_ghosts(s, false);
    inval_read_visible(s);
    inval_read_progress(s, PQgetvalue(res, 0, 2)[0] == 't');
}

static void take(struct inval_stream *s, enum inval_ask ask, const PGresult *res)
{
    bool has_snapshot = ask == ASK_RUNNING || ask == ASK_VISIBLE || ask == ASK_SAMPLE;

    if (has_snapshot && inval_snapshot_read(&s->snapshot, PQgetvalue(res, 0, 0)) == -1) {
        inval_stream_break(s, "the server's snapshot is not understood");
        return;
    }
    switch (ask) {
    case ASK_FACTS:
        take_facts(s, res);
        return;
    case ASK_RUNNING:
        inval_read_ghosts(s, true);
        put_question(s, ASK_DIGEST);
        return;
    case ASK_DIGEST:
        take_digest(s, res);
        return;
    case ASK_TABLES:
        take_tables(s, res);
        return;
    case ASK_ABOVE:
        take_above(s, res);
        return;
    case ASK_SAMPLE:
        take_sample(s, res);
        return;
    case ASK_VISIBLE:
        take_visible(s);
        return;
    case ASK_NOTHING:
        return;
    }
}

/* The answer has the columns that were asked for, whatever the server is. */
static bool is_sound(enum inval_ask ask, const PGresult *res)
{
    static const int ncolumns[] = {[ASK_FACTS] = 5,
        [ASK_TABLES] = 8,
        [ASK_ABOVE] = 2,
        [ASK_SAMPLE] = 3,
        [ASK_RUNNING] = 1,
        [ASK_DIGEST] = 1,
        [ASK_VISIBLE] = 1};

    return PQresultStatus(res) == PGRES_TUPLES_OK && PQnfields(res) == ncolumns[ask] &&
           (PQntuples(res) > 0 || ask == ASK_TABLES || ask == ASK_ABOVE);
}

/* The answer is whole: taking it may ask the next one, or end it all. */
static void answered(struct inval_stream *s)
{
    enum inval_ask ask = s->asking;
    PGresult *res = s->answer;

    s->asking = ASK_NOTHING;
    s->answer = NULL;
    if (res == NULL || !is_sound(ask, res))
        inval_stream_break(s, res == NULL ? "no answer" : PQresultErrorMessage(res));
    else
        take(s, ask, res);
    PQclear(res);
    inval_ask_next(s);
}

void inval_ask_ready(struct server_conn *c)
{
    struct inval_stream *s = server_conn_owner(c);
    PGconn *pq = server_conn_pq(c);
    int unsent = PQflush(pq);
    PGresult *res;

    if (unsent == -1 || PQconsumeInput(pq) != 1) {
        server_conn_fail(c, NULL, NULL);
        return;
    }
    server_conn_want(c, unsent == 1 ? IO_READ | IO_WRITE : IO_READ);
    while (s->asking != ASK_NOTHING && !PQisBusy(pq)) {
        res = PQgetResult(pq);
        if (res == NULL) {
            answered(s);
            return;
        }
        if (s->answer == NULL)
            s->answer = res;
        else
            PQclear(res);
    }
}
