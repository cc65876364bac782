/* SPDX-License-Identifier: PostgreSQL
 * link_clean.c: what happens to a link between two clients: drain what is owed, roll back, run
 * reset_query_list, cache it. A client that vanished in the middle of a query is not the link's
 * fault: the query is cancelled and the link lives on. */
#include "config.h"

#include <string.h>

#include "backend/pool.h"
#include "base/log.h"
#include "config/conf.h"
#include "wire/writer.h"

#include "link_int.h"

#define CLEAN_DEADLINE_MS 10000
/* More queries of reset_query_list than this are not sent: the bits of link->discards. */
#define LINK_MAX_RESETS 8

/* False when the link is not worth keeping. */
static bool clean_is_possible(const struct link *link, bool boundary)
{
    const struct backend *be = link->be;

    return boundary && !link->is_private && !link->expect.lost &&
           !expect_ignores_sync(&link->expect) && !be->is_stopping && be->conf->connection_cache &&
           link->phase == LINK_LENT && !link->stream.send_failed;
}

static int clean_send(struct link *link, struct buf *out)
{
    int rc = link_send(link, out->data, out->len);

    buf_free(out);
    return rc;
}

static void clean_put_copy_fail(struct buf *out)
{
    static const char reason[] = "client disconnected";

    buf_put_byte(out, FE_COPY_FAIL);
    buf_put_u32(out, 4 + sizeof reason);
    buf_put(out, reason, sizeof reason);
}

void link_clean_copy_in(struct link *link)
{
    struct buf out = {0};

    link_expect(link, OP_COPY_END);
    clean_put_copy_fail(&out);
    if (clean_send(link, &out) == -1)
        link_close(link);
}

/* The client left while something ran: end a COPY, close the extended sequence, cancel. */
static int clean_interrupt(struct link *link)
{
    struct buf out = {0};

    if (link->expect.copy_in) {
        link_expect(link, OP_COPY_END);
        clean_put_copy_fail(&out);
    }
    if (expect_needs_sync(&link->expect)) {
        link_expect(link, OP_SYNC | OP_SWALLOW);
        wire_put_empty(&out, FE_SYNC);
    }
    if (out.len > 0 && clean_send(link, &out) == -1)
        return -1;
    link_cancel(link, -1);
    return 0;
}

/* ABORT and COMMIT are for a transaction that is open; pgpool-II leaves them out otherwise, too. */
static bool clean_query_applies(const struct link *link, const char *sql)
{
    if (strncasecmp(sql, "ABORT", 5) == 0 || strncasecmp(sql, "ROLLBACK", 8) == 0 ||
        strncasecmp(sql, "COMMIT", 6) == 0)
        return link->tx_status != 'I';
    return true;
}

static void clean_put_reset(struct link *link, struct buf *out, const char *sql)
{
    if (!clean_query_applies(link, sql))
        return;
    if (strcasecmp(sql, "DISCARD ALL") == 0)
        link->discards |= 1U << link->resets_sent;
    link->resets_sent++;
    wire_put_query(out, slice_of_str(sql));
    link_expect(link, OP_QUERY | OP_SWALLOW);
}

/* What clients that share a link left on it goes by DISCARD ALL, whatever reset_query_list says. */
static void clean_send_resets(struct link *link)
{
    const struct conf_list *list = &link->be->conf->reset_query_list;
    struct buf out = {0};
    int i;

    link->discards = 0;
    if (link->must_clean || !link_is_pristine(link)) {
        clean_put_reset(link, &out, "ABORT");
        clean_put_reset(link, &out, "DISCARD ALL");
    } else {
        for (i = 0; i < list->n && i < LINK_MAX_RESETS; i++)
            clean_put_reset(link, &out, list->item[i]);
    }
    link->must_clean = false;
    link->resets_left = 0;
    pool_link_cleaning(link->pool, link);
    if (out.len == 0)
        link_clean_step(link);
    else if (clean_send(link, &out) == -1)
        link_close(link);
}

void link_clean_start(struct link *link, bool boundary)
{
    if (!clean_is_possible(link, boundary)) {
        if (link->phase == LINK_LENT && !expect_is_quiet(&link->expect))
            link_cancel(link, -1);
        link_close(link);
        return;
    }
    link->phase = LINK_CLEANING;
    link->resets_left = 1;
    link->resets_sent = 0;
    link->resets_done = 0;
    link_resume(link);
    link_row_update(link, ROWS_NO_ROW);
    timer_start(link->be->loop, &link->timer, CLEAN_DEADLINE_MS);
    if (expect_is_quiet(&link->expect) && link->body_left == 0)
        link_clean_step(link);
    else if (clean_interrupt(link) == -1)
        link_close(link);
}

/* DISCARD ALL has one answer. Anything else in its place means that the server said more than it
 * was asked for, and that what we take for the end of the cleaning is not. */
bool link_clean_is_answer(struct link *link, char type, struct slice body)
{
    if (link->resets_left > 0)
        return true; /* still draining what the client had asked */
    if (type == BE_READY) {
        link->resets_done++;
        return true;
    }
    if ((link->discards >> link->resets_done & 1) == 0)
        return true; /* somebody's own reset query: it may answer what it likes */
    if (type == BE_ROW_DESCRIPTION || type == BE_DATA_ROW)
        return false;
    return type != BE_COMMAND_COMPLETE ||
           (body.n == sizeof "DISCARD ALL" && memcmp(body.p, "DISCARD ALL", body.n) == 0);
}

void link_enter_idle(struct link *link)
{
    if (timer_is_armed(&link->timer))
        timer_stop(link->be->loop, &link->timer);
    link->phase = LINK_IDLE;
    link->idle_since_us = loop_now_us(link->be->loop);
    link_row_update(link, ROWS_NO_ROW);
    pool_link_idle(link->pool, link);
}

void link_clean_step(struct link *link)
{
    if (link->in_cancel)
        return; /* the cancel might hit the next client's query: wait for it */
    if (link->resets_left > 0)
        clean_send_resets(link);
    else if (link->tx_status != 'I' || link->error_told)
        link_close(link); /* a reset query failed */
    else if (link->is_checked) {
        link->is_checked = false;
        link_enter_idle(link); /* nothing was reset: what was set on it still is */
    } else {
        varset_assign(&link->vars, link->be->varsets.empty);
        prepset_clear(&link->preps);
        link_enter_idle(link);
    }
}
