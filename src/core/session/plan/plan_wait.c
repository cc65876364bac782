/* SPDX-License-Identifier: PostgreSQL
 * plan_wait.c: read_consistency: what a session has written, and whether a standby has it.
 * Runs in: workers.
 *
 * The primary is asked how far it has written, when a read is about to leave it and the session has
 * written since (for `global`: before every
 * such read). The standby is asked how far it has replayed, with a little waiting in the question
 * itself; a question is short, for the snapshot it holds could keep the standby from replaying.
 * When it takes longer than read_consistency_wait, the read stays where it is. */
#include "config.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/hot.h"
#include "base/log.h"
#include "config/conf.h"

#include "plan_int.h"

/* One question to a standby waits so many times one millisecond. */
#define WAIT_STEPS 10
/* Bytes of a page, and of the headers that begin pages and segments. */
#define WAL_PAGE           8192U
#define WAL_PAGE_HEADER    24U
#define WAL_SEGMENT_HEADER 40U

static int parse_u64(struct slice s, uint64_t *out)
{
    uint64_t v = 0;
    size_t i;

    for (i = 0; i < s.n; i++) {
        if (s.p[i] < '0' || s.p[i] > '9' || v > (UINT64_MAX - 9) / 10)
            return -1;
        v = v * 10 + (uint64_t)(s.p[i] - '0');
    }
    *out = v;
    return s.n == 0 ? -1 : 0;
}

bool plan_is_lsn_due(const struct client *c)
{
    const struct plan *b = c->plan;

    switch (c->ss->conf->read_consistency) {
    case CONF_READ_SESSION:
        return b->lsn == PLAN_LSN_DUE;
    case CONF_READ_GLOBAL:
        return b->lsn != PLAN_LSN_FRESH;
    case CONF_READ_EVENTUAL:
        break;
    }
    return false;
}

void plan_ask_lsn(struct client *c)
{
    c->plan->asking = ASKING_LSN;
    plan_send_question(c, c->link,
        slice_of_str("SELECT pg_catalog.pg_wal_lsn_diff(pg_catalog.pg_current_wal_insert_lsn(), "
                     "'0/0'), pg_catalog.pg_size_bytes(pg_catalog.current_setting("
                     "'wal_segment_size'))"));
}

/* Where the next record will begin is behind the header of its page; where the last one ends, which
 * is what a standby tells, is before it. */
static uint64_t end_of_records(uint64_t lsn, uint64_t segment)
{
    if (segment > 0 && lsn % segment == WAL_SEGMENT_HEADER)
        return lsn - WAL_SEGMENT_HEADER;
    if (lsn % WAL_PAGE == WAL_PAGE_HEADER)
        return lsn - WAL_PAGE_HEADER;
    return lsn;
}

void plan_on_lsn(struct client *c, struct slice value, struct slice segment)
{
    struct plan *b = c->plan;
    uint64_t lsn;
    uint64_t bytes;

    if (parse_u64(value, &lsn) == -1 || parse_u64(segment, &bytes) == -1)
        return;
    lsn = end_of_records(lsn, bytes);
    b->rs.last_write_lsn = lsn;
    b->rs.global_write_lsn = lsn;
    b->lsn = PLAN_LSN_FRESH;
}

static void ask_standby(struct client *c, struct link *link, uint64_t lsn)
{
    struct buf sql = {0};

    buf_printf(&sql,
        "WITH RECURSIVE w(n, at) AS (SELECT 0, pg_catalog.pg_wal_lsn_diff("
        "pg_catalog.pg_last_wal_replay_lsn(), '0/0') UNION ALL SELECT n OPERATOR(pg_catalog.+) 1, "
        "pg_catalog.pg_wal_lsn_diff(pg_catalog.pg_last_wal_replay_lsn(), '0/0') FROM w WHERE at "
        "OPERATOR(pg_catalog.<) %" PRIu64
        " AND n OPERATOR(pg_catalog.<) %d AND pg_catalog.pg_sleep(0.001) IS NOT NULL) "
        "SELECT pg_catalog.max(at) FROM w",
        lsn, WAIT_STEPS);
    plan_send_question(c, link, buf_slice(&sql));
    buf_free(&sql);
}

static int64_t now_ms(const struct client *c)
{
    return loop_now_us(c->ss->loop) / 1000;
}

static void wait_clock(struct client *c, uint64_t lsn)
{
    struct plan *b = c->plan;

    b->wait_lsn = lsn;
    if (b->wait == PLAN_WAITS_NOT) {
        b->wait = PLAN_WAITS;
        b->wait_until_ms = (uint32_t)(now_ms(c) + c->ss->conf->read_consistency_wait_ms);
        client_row_state(c, CLIENT_STATE_WAITING, WAIT_REASON_REPLAY);
    }
}

void plan_wait_row(struct sessions *ss, int node, struct slice value)
{
    uint64_t lsn;

    if (parse_u64(value, &lsn) == 0)
        known_replayed(ss->known, node, lsn);
}

static bool lacks(const struct client *c, int node)
{
    return known_replayed_lsn(c->ss->known)[node] < c->plan->wait_lsn;
}

/* The standby has answered: should it be asked again? */
static bool wait_is_worth_it(const struct client *c, const struct link *link)
{
    int node = link->pool->cluster_node;

    if (link_own_failed(link) || !lacks(c, node))
        return false;
    if ((int32_t)((uint32_t)now_ms(c) - c->plan->wait_until_ms) < 0)
        return true;
    CLIENT_LOG(c, LVL_DEBUG1, "node %d has not caught up in read_consistency_wait", node);
    return false;
}

void plan_ask_replay(struct client *c, uint64_t lsn)
{
    wait_clock(c, lsn);
    c->plan->asking = ASKING_REPLAY;
    ask_standby(c, c->link, lsn);
}

bool plan_replay_goes_on(struct client *c)
{
    struct plan *b = c->plan;

    if (b->asking != ASKING_REPLAY)
        return false;
    if (wait_is_worth_it(c, c->link)) {
        ask_standby(c, c->link, b->wait_lsn);
        return true;
    }
    if (link_own_failed(c->link) || lacks(c, c->link->pool->cluster_node))
        b->wait = PLAN_WAIT_OVER;
    return false;
}

void plan_wait_settle(struct client *c)
{
    struct plan *b = c->plan;

    if (b->lsn == PLAN_LSN_FRESH)
        b->lsn = PLAN_LSN_KNOWN;
    b->wait = PLAN_WAITS_NOT;
    b->keeps_random = false;
}

HOT enum feed_step plan_chosen(struct client *c, enum feed_step step)
{
    c->plan->keeps_random = step == FEED_PARK;
    if (step == FEED_PASS)
        plan_wait_settle(c);
    return step;
}
