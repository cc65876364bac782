/* SPDX-License-Identifier: PostgreSQL
 * inval_stream.c: the life of the stream of one database.
 * Runs in: invalidator. It goes: may there be one → a temporary slot → who runs, what the catalogue
 * is → the stream. The slot belongs to the connection: whatever ends that leaves nothing behind.
 * Two connections, for the one that streams answers no questions. */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/mem.h"
#include "config/conf.h"
#include "process/common/server_login.h"
#include "sys/clock.h"

#include "inval_int.h"

#define CONNECT_LIMIT_MS 10000
#define BACKOFF_MIN_MS   500
#define BACKOFF_MAX_MS   30000
/* Where there cannot be a stream somebody may change that. */
#define REFUSED_AGAIN_MS 60000
#define LOOK_MAX_MS      1000
#define LOOK_PER_LAG     8
/* The catalogue is looked at so often while anything is written at the server. */
#define DIGEST_EVERY_US 1000000
#define SLOT_BYTES      64

static const char options[] =
    "-c search_path=pg_catalog -c datestyle=ISO -c timezone=UTC -c bytea_output=hex "
    "-c quote_all_identifiers=off -c statement_timeout=0";

static const struct server_conn_how ask_how = {.name = "pgpool invalidator", .options = options};
static const struct server_conn_how read_how = {
    .name = "pgpool invalidator", .options = options, .is_replication = true};

/* --- what is told --- */

static void log_state(const struct inval_stream *s, enum cache_stream_state state)
{
    switch (state) {
    case CACHE_STREAM_STREAMING:
        log_at(LVL_LOG,
            "query cache: changes of database \"%s\" are followed in the WAL of node %d",
            s->database, s->inv->node);
        break;
    case CACHE_STREAM_STATEMENT:
        log_at_detail(LVL_LOG, s->row.why, NULL,
            "query cache: of database \"%s\" only what is written through pgpool is seen",
            s->database);
        break;
    case CACHE_STREAM_BROKEN:
        log_at_detail(LVL_WARNING, s->row.why,
            "It is tried again; SHOW POOL_CACHE_STREAMS tells when it is followed.",
            "query cache: changes of database \"%s\" cannot be followed: nothing of it is kept",
            s->database);
        break;
    case CACHE_STREAM_LATE:
        log_at_detail(LVL_WARNING, NULL,
            "It comes back by itself; SHOW POOL_CACHE_STREAMS, and the load of the primary.",
            "query cache: the stream of database \"%s\" is late: nothing of it is used",
            s->database);
        break;
    default:
        break;
    }
}

void inval_stream_tell(struct inval_stream *s, enum cache_stream_state state, const char *why)
{
    struct histogram_sum sum = {0};
    bool is_news = s->row.state != state || strncmp(s->row.why, why, strcspn(why, "\n")) != 0;

    snprintf(s->row.why, sizeof s->row.why, "%.*s", (int)strcspn(why, "\n"), why);
    if (s->row.state != state)
        s->row.since_us = clock_wall_us();
    s->row.state = (uint8_t)state;
    s->row.node = s->inv->node;
    s->row.lsn = s->lsn;
    histogram_sum_add(&sum, &s->lag);
    s->row.lag_p99_us = histogram_quantile(&sum, 990);
    cache_stream_publish(s->inv->streams, s->number, &s->row);
    if (is_news)
        log_state(s, state);
}

/* --- the end of it --- */

static void close_all(struct inval_stream *s)
{
    struct loop *lp = &s->inv->role.loop;

    timer_stop(lp, &s->look);
    timer_stop(lp, &s->retry);
    timer_stop(lp, &s->visible_later);
    server_conn_close(s->sql);
    server_conn_close(s->repl);
    inval_ask_forget(s);
    inval_read_drop(s);
    inval_map_free(&s->map);
    s->stage = STREAM_OFF;
}

/* What was held while the stream broke is let go only behind this. */
static void not_good(struct inval_stream *s)
{
    cache_stream_lease(s->inv->streams, s->number, 0);
    s->good_until_us = 0;
    if (s->was_good)
        inval_read_empty(s);
    s->was_good = false;
}

void inval_stream_stop(struct inval_stream *s, enum cache_stream_state state, const char *why)
{
    not_good(s);
    close_all(s);
    inval_stream_tell(s, state, why);
}

void inval_stream_break(struct inval_stream *s, const char *why)
{
    char said[CACHE_STREAM_WHY_BYTES];

    snprintf(said, sizeof said, "%s", why); /* it may be the connection's */
    s->row.restarts++;
    s->backoff_ms = s->backoff_ms == 0                   ? BACKOFF_MIN_MS
                    : s->backoff_ms > BACKOFF_MAX_MS / 2 ? BACKOFF_MAX_MS
                                                         : s->backoff_ms * 2;
    inval_stream_stop(s, CACHE_STREAM_BROKEN, said);
    timer_start(&s->inv->role.loop, &s->retry, s->backoff_ms);
}

/* With `auto` the session's own invalidation has to do. What it did not see so far goes. */
static void fall_back(struct inval_stream *s, const char *why)
{
    close_all(s);
    if (!s->was_good)
        inval_read_empty(s);
    s->was_good = true;
    cache_stream_lease(s->inv->streams, s->number, INT64_MAX);
    inval_stream_tell(s, CACHE_STREAM_STATEMENT, why);
}

void inval_stream_refuse(struct inval_stream *s, const char *why)
{
    char said[CACHE_STREAM_WHY_BYTES];

    snprintf(said, sizeof said, "%s", why);
    if (inval_conf(s->inv)->memqcache_invalidation == CONF_INVALIDATE_AUTO)
        fall_back(s, said);
    else
        inval_stream_stop(s, CACHE_STREAM_BROKEN, said);
    timer_start(&s->inv->role.loop, &s->retry, REFUSED_AGAIN_MS);
}

/* --- the beginning of it --- */

/* Whether a failure is one that does not go away by itself: the server has spoken, and it is not
 * about its own state. */
static bool is_refusal(const char *sqlstate)
{
    static const char *const states[] = {"28", "42", "53", "55000", "58P01", "0A000", "3D000"};
    size_t i;

    for (i = 0; i < sizeof states / sizeof states[0]; i++)
        if (strncmp(sqlstate, states[i], strlen(states[i])) == 0)
            return true;
    return false;
}

static void on_failed(struct server_conn *c, const struct err *err)
{
    struct inval_stream *s = server_conn_owner(c);

    if (s->stage != STREAM_OPEN && is_refusal(err->sqlstate))
        inval_stream_refuse(s, err->msg);
    else
        inval_stream_break(s, err->msg);
}

static void fill_target(const struct inval_stream *s, struct probe_target *to)
{
    const struct invalidator *inv = s->inv;
    const struct conf *conf = inval_conf(inv);
    const struct conf_node *node = &conf->nodes[inv->node];

    *to = (struct probe_target){
        .user = inval_user(inv),
        .password = secret_is_empty(&inv->password) ? "" : secret_slice(&inv->password).p,
        .database = s->database,
        .connect_timeout_ms =
            node->connect_timeout_ms > 0 ? node->connect_timeout_ms : CONNECT_LIMIT_MS,
    };
    server_login_place(role_loop_gen(&inv->role), inv->node, to);
}

static void open_conn(struct inval_stream *s, struct server_conn *c)
{
    struct probe_target to;

    fill_target(s, &to);
    server_conn_open(c, &to);
}

/* One slot is made at a time: who counts those that are free must find the others' made. */
static bool must_wait(const struct inval_stream *s)
{
    int i;

    for (i = 0; i < CACHE_STREAM_MAX; i++) {
        const struct inval_stream *other = s->inv->stream[i];

        if (other != NULL && other != s &&
            (other->stage == STREAM_LOOK || other->stage == STREAM_SLOT))
            return true;
    }
    return false;
}

void inval_stream_start(struct inval_stream *s)
{
    const struct conf *conf = inval_conf(s->inv);

    close_all(s);
    if (conf->memqcache_invalidation == CONF_INVALIDATE_STATEMENT ||
        !conf->memqcache_auto_cache_invalidation) {
        fall_back(s, conf->memqcache_auto_cache_invalidation
                         ? "memqcache_invalidation = statement"
                         : "memqcache_auto_cache_invalidation = off");
        return;
    }
    if (s->inv->node == VIEW_NO_NODE) {
        inval_stream_stop(s, CACHE_STREAM_BROKEN, "there is no primary");
        return;
    }
    if (must_wait(s)) {
        timer_start(&s->inv->role.loop, &s->retry, LOOP_TICK_MS);
        return;
    }
    s->stage = STREAM_LOOK;
    inval_stream_tell(s,
        s->row.state == CACHE_STREAM_STATEMENT ? CACHE_STREAM_STATEMENT : CACHE_STREAM_STARTING,
        s->row.state == CACHE_STREAM_STATEMENT ? s->row.why : "");
    open_conn(s, s->sql);
}

void inval_stream_make_slot(struct inval_stream *s)
{
    s->stage = STREAM_SLOT;
    open_conn(s, s->repl);
}

static void slot_name(const struct inval_stream *s, char out[SLOT_BYTES])
{
    snprintf(out, SLOT_BYTES, "pgpool_%d_%d_%d", PQbackendPID(server_conn_pq(s->repl)), s->number,
        (int)(s->row.restarts % 1000000));
}

static void send_replication(struct inval_stream *s, const char *sql)
{
    if (PQsendQuery(server_conn_pq(s->repl), sql) == 1)
        server_conn_want(s->repl, IO_READ | IO_WRITE);
    else
        server_conn_fail(s->repl, NULL, NULL);
}

/* The server makes it when the transactions have ended that write now: that may take its time. */
static void on_repl_open(struct server_conn *c)
{
    struct inval_stream *s = server_conn_owner(c);
    char name[SLOT_BYTES];
    char sql[SLOT_BYTES + 80];

    slot_name(s, name);
    snprintf(sql, sizeof sql,
        "CREATE_REPLICATION_SLOT %s TEMPORARY LOGICAL test_decoding NOEXPORT_SNAPSHOT", name);
    if (s->row.state == CACHE_STREAM_STARTING)
        inval_stream_tell(s, CACHE_STREAM_STARTING,
            "the slot is being made, which waits for transactions that write");
    send_replication(s, sql);
}

void inval_stream_go(struct inval_stream *s)
{
    char name[SLOT_BYTES];
    char sql[SLOT_BYTES + 160];

    slot_name(s, name);
    snprintf(sql, sizeof sql,
        "START_REPLICATION SLOT %s LOGICAL 0/0 (\"include-xids\" '1', \"include-timestamp\" '1', "
        "\"skip-empty-xacts\" '0')",
        name);
    send_replication(s, sql);
}

static void begin_reading(struct inval_stream *s)
{
    s->stage = STREAM_OPEN;
    s->backoff_ms = 0;
    s->lsn = 0; /* that of another primary says nothing */
    s->digest_us = clock_mono_us();
    s->wants_sample = true;
    not_good(s);
    timer_start(&s->inv->role.loop, &s->look, 0);
    inval_read_ready(s->repl);
}

/* True: there is more to wait for, or it is over. */
static bool take_result(struct inval_stream *s, PGresult *res)
{
    const char *state = PQresultErrorField(res, PG_DIAG_SQLSTATE);
    char why[CACHE_STREAM_WHY_BYTES];

    switch (PQresultStatus(res)) {
    case PGRES_TUPLES_OK: /* the slot */
    case PGRES_COMMAND_OK:
        return false;
    case PGRES_COPY_BOTH:
        if (s->stage == STREAM_CATALOG) /* it was asked for, and the tables are known */
            begin_reading(s);
        else
            inval_stream_break(s, "the stream is not understood");
        return true;
    default:
        snprintf(why, sizeof why, "%s", PQresultErrorMessage(res));
        if (state != NULL && is_refusal(state))
            inval_stream_refuse(s, why);
        else
            inval_stream_break(s, why);
        return true;
    }
}

static void on_repl_ready(struct server_conn *c)
{
    struct inval_stream *s = server_conn_owner(c);
    PGconn *pq = server_conn_pq(c);
    PGresult *res;
    int unsent;
    bool is_over;

    if (s->stage == STREAM_OPEN) {
        inval_read_ready(c);
        return;
    }
    unsent = PQflush(pq);
    if (unsent == -1 || PQconsumeInput(pq) != 1) {
        server_conn_fail(c, NULL, NULL);
        return;
    }
    server_conn_want(c, unsent == 1 ? IO_READ | IO_WRITE : IO_READ);
    while (!PQisBusy(pq)) {
        res = PQgetResult(pq);
        if (res == NULL)
            break;
        is_over = take_result(s, res);
        PQclear(res);
        if (is_over)
            return;
    }
    if (!PQisBusy(pq) && s->stage == STREAM_SLOT) {
        s->stage = STREAM_CATALOG;
        inval_ask_running(s);
    }
}

/* --- while it lasts --- */

static int64_t look_ms(const struct inval_stream *s)
{
    int64_t ms = inval_conf(s->inv)->memqcache_wal_lag_ms / LOOK_PER_LAG;

    return ms < LOOP_TICK_MS ? LOOP_TICK_MS : ms > LOOK_MAX_MS ? LOOK_MAX_MS : ms;
}

static void on_look(struct timer *t)
{
    struct inval_stream *s = LIST_ENTRY(t, struct inval_stream, look);
    int64_t now_us = clock_mono_us();

    timer_start(&s->inv->role.loop, t, look_ms(s));
    inval_read_ping(s);
    if (s->stage != STREAM_OPEN)
        return;
    s->wants_sample = true;
    if (now_us - s->digest_us > DIGEST_EVERY_US && s->lsn != s->digest_lsn)
        s->wants_digest = true;
    if (s->was_good && now_us > s->good_until_us)
        inval_stream_tell(s, CACHE_STREAM_LATE, "");
    else
        inval_stream_tell(s, s->row.state, s->row.why);
    inval_ask_next(s);
}

static void on_visible_later(struct timer *t)
{
    struct inval_stream *s = LIST_ENTRY(t, struct inval_stream, visible_later);

    s->wants_visible = true;
    inval_ask_next(s);
}

static void on_retry(struct timer *t)
{
    inval_stream_start(LIST_ENTRY(t, struct inval_stream, retry));
}

struct inval_stream *inval_stream_new(struct invalidator *inv, int number, const char *database)
{
    struct inval_stream *s = mem_alloc_zero(sizeof *s);
    struct loop *lp = &inv->role.loop;

    s->inv = inv;
    s->number = number;
    snprintf(s->database, sizeof s->database, "%s", database);
    s->cell = cache_cell_database(slice_of_str(database));
    s->sql = server_conn_new(lp, &ask_how, inval_ask_open, inval_ask_ready, on_failed, s);
    s->repl = server_conn_new(lp, &read_how, on_repl_open, on_repl_ready, on_failed, s);
    list_init(&s->txns);
    timer_init(&s->look, on_look);
    timer_init(&s->retry, on_retry);
    timer_init(&s->visible_later, on_visible_later);
    return s;
}

void inval_stream_free(struct inval_stream **sp)
{
    struct inval_stream *s = *sp;

    if (s == NULL)
        return;
    close_all(s);
    server_conn_free(&s->sql);
    server_conn_free(&s->repl);
    mem_free(s);
    *sp = NULL;
}
