/* SPDX-License-Identifier: PostgreSQL
 * link_clean.c: what happens to a link between two clients: drain what is owed, roll back, run
 * reset_query_list, cache it. A client that vanished in the middle of a query is not the link's
 * fault: the query is cancelled and the link lives on. */
#include "config.h"

#include <string.h>

#include "backend/pool.h"
#include "base/hot.h"
#include "base/log.h"
#include "config/conf.h"
#include "wire/writer.h"

#include "link_int.h"

#define CLEAN_DEADLINE_MS 10000
/* How long a link that is being cleaned counts as one that will be there soon; then those who wait
 * get one of their own. */
#define CLEAN_HOPE_MS 50

void link_clean_start_timer(struct link *link)
{
    link->hope = LINK_HOPE_NONE;
    timer_start(link->be->loop, &link->timer, CLEAN_HOPE_MS);
}

bool link_clean_on_timer(struct link *link)
{
    if (link->hope == LINK_HOPE_LOST)
        return false;
    timer_start(link->be->loop, &link->timer, CLEAN_DEADLINE_MS - CLEAN_HOPE_MS);
    link->be->pool_ops->on_slow(link->pool, link);
    return true;
}

/* False when the link is not worth keeping. */
static bool clean_is_possible(const struct link *link, bool boundary)
{
    const struct backend *be = link->be;

    return boundary && !link->is_private && expect_is_certain(&link->expect) &&
           !expect_ignores_sync(&link->expect) && !be->is_stopping && be->conf->connection_cache &&
           link->phase == LINK_LENT && !stream_has_failed(&link->stream) && !link->is_retired;
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

static int clean_fail_copy(struct link *link)
{
    struct buf out = {0};

    link_expect(link, OP_COPY_END);
    clean_put_copy_fail(&out);
    return clean_send(link, &out);
}

void link_clean_copy_in(struct link *link)
{
    if (clean_fail_copy(link) == -1)
        link_close(link);
}

void link_fail_copy(struct link *link)
{
    (void)clean_fail_copy(link); /* when it is broken the reader finds out */
}

void link_ask_rest(struct link *link)
{
    uint16_t nflushed = (uint16_t)(link->flushed_to - expect_head_serial(&link->expect));
    struct buf out = {0};

    /* The serial may be an old one. */
    expect_hush(&link->expect, nflushed <= link->expect.len ? nflushed : 0);
    wire_put_empty(&out, FE_FLUSH);
    (void)clean_send(link, &out);
}

/* What a sequence did that no Sync has ended goes with its client. A Sync alone would commit it:
 * the ROLLBACK is what a server does at the end of a connection, in a transaction block or not. One
 * that skips messages behind an error skips it, too. */
static void clean_put_sequence_end(struct link *link, struct buf *out)
{
    link_expect(link, OP_QUERY | OP_SWALLOW);
    wire_put_query(out, slice_of_str("ROLLBACK"));
    link_expect(link, OP_SYNC | OP_SWALLOW);
    wire_put_empty(out, FE_SYNC);
}

/* The client left while something ran: end a COPY, undo the extended sequence, cancel. */
static int clean_interrupt(struct link *link)
{
    bool is_running = !expect_is_quiet(&link->expect);
    struct buf out = {0};

    if (link->expect.copy_in) {
        link_expect(link, OP_COPY_END);
        clean_put_copy_fail(&out);
    }
    if (expect_is_open(&link->expect))
        clean_put_sequence_end(link, &out);
    if (out.len > 0 && clean_send(link, &out) == -1)
        return -1;
    if (is_running)
        link_cancel(link, -1);
    return 0;
}

void link_clean_send_resets(struct link *link)
{
    struct buf out = {0};

    link_reset_expect_all(link);
    link_reset_put_all(link, &out);
    link->be->pool_ops->on_cleaning(link->pool, link);
    if (out.len == 0)
        link_clean_step(link);
    else if (clean_send(link, &out) == -1)
        link_close(link);
}

/* Nothing runs on it, nor has what ran left anything that would have to be undone. */
static inline bool is_at_rest(const struct link *link)
{
    return link->tx_status == 'I' && expect_is_quiet(&link->expect) &&
           !expect_is_open(&link->expect) && link->body_left == 0 && !link->must_clean &&
           !link->in_cancel && !link_own_failed(link) && !link->loan.error_told;
}

/* True when the reset of a link that is given back may wait for the next loan; it is idle then. */
static bool clean_postpone(struct link *link, bool boundary)
{
    const struct conf *conf = link->be->conf;

    if (!link->pool->resets_work || conf->reset_query_delay_ms == 0 ||
        conf->reset_query_list.n == 0 || !clean_is_possible(link, boundary) || !is_at_rest(link) ||
        !link_is_pristine(link) || link->loan.has_news)
        return false;
    link->reset = LINK_RESET_DUE;
    link_resume(link);
    link_enter_idle(link);
    return true;
}

void link_clean_idle(struct link *link)
{
    link->be->pool_ops->on_taken(link->pool, link);
    link->reset = LINK_RESET_NONE;
    link_clean_send_resets(link);
}

void link_clean_start(struct link *link, bool boundary)
{
    link->reset = LINK_RESET_NONE; /* it is done now */
    if (!clean_is_possible(link, boundary)) {
        if (link->phase == LINK_LENT && !expect_is_quiet(&link->expect))
            link_cancel(link, -1);
        else if (link->phase == LINK_LENT && boundary)
            (void)link_send(link, "X\0\0\0\4", 5);
        link_close(link);
        return;
    }
    link->phase = LINK_CLEANING;
    link->resets_left = 1;
    link_resume(link);
    link_row_update(link, ROWS_NO_ROW);
    link_clean_start_timer(link);
    if (expect_is_quiet(&link->expect) && !expect_is_open(&link->expect) && link->body_left == 0)
        link_clean_step(link);
    else if (clean_interrupt(link) == -1)
        link_close(link);
}

/* DISCARD ALL has one answer, by PostgreSQL and by others that speak like it, who may call it a
 * bare DISCARD. Anything else in its place means that the server said more than it was asked for,
 * and that what we take for the end of the cleaning is not. */
bool link_clean_is_answer(struct link *link, char type, struct slice body)
{
    if (link->resets_left > 0)
        return true; /* still draining what the client had asked */
    if (type == BE_READY) {
        link->resets_done++;
        return true;
    }
    if (type == BE_COMMAND_COMPLETE && link->check >= LINK_CHECK_ROLE)
        link->check = slice_eq(body, slice_of("SELECT 1", sizeof "SELECT 1")) ? LINK_CHECK_FINE
                                                                              : LINK_CHECK_ROLE;
    if ((link->discards >> link->resets_done & 1) == 0)
        return true; /* somebody's own reset query: it may answer what it likes */
    if (type == BE_ROW_DESCRIPTION || type == BE_DATA_ROW)
        return false;
    return type != BE_COMMAND_COMPLETE || (body.n > 7 && memcmp(body.p, "DISCARD", 7) == 0);
}

bool link_clean_forgives(struct link *link, struct slice sqlstate)
{
    if (link->check < LINK_CHECK_ROLE || link->resets_done < link->resets_sent ||
        !link->be->pool_ops->on_role_error(link, sqlstate))
        return false;
    link->check = LINK_CHECK_ALIVE;
    return true;
}

HOT void link_enter_idle(struct link *link)
{
    if (timer_is_armed(&link->timer))
        timer_stop(link->be->loop, &link->timer);
    if (link->reset == LINK_RESET_DUE)
        timer_start(link->be->loop, &link->timer, link->be->conf->reset_query_delay_ms);
    link->phase = LINK_IDLE;
    link->quiet_us = loop_now_us(link->be->loop);
    link_row_note_free(link);
    link->be->pool_ops->on_idle(link->pool, link);
}

/* Nothing was reset: what was set on it still is. */
static void clean_end_check(struct link *link)
{
    enum link_check check = link->check;

    link->check = LINK_CHECK_NONE;
    if (check == LINK_CHECK_ROLE) {
        link->be->pool_ops->on_role_refused(link);
        link_close(link);
        return;
    }
    if (check == LINK_CHECK_FINE)
        link->be->pool_ops->on_role_vouched(link->pool);
    link_enter_idle(link);
}

void link_clean_step(struct link *link)
{
    if (link->in_cancel)
        return; /* the cancel might hit the next client's query: wait for it */
    if (link->resets_left > 0)
        link_clean_send_resets(link);
    else if (link->tx_status != 'I' || link->loan.error_told)
        link_close(link); /* a reset query failed */
    else if (link->check != LINK_CHECK_NONE) {
        clean_end_check(link);
    } else {
        link->pool->resets_work = true;
        varset_assign(&link->vars, link->be->varsets.empty);
        prepset_clear(&link->preps);
        link->last_client = 0;
        link->reads = LINK_READS_ALIKE;
        link_enter_idle(link);
    }
}

static void clean_disown(struct link *link)
{
    link->owner = NULL;
    link->ops = NULL;
    link->epoch = ++link->be->next_epoch;
    link_see_forget(link);
}

void link_release(struct link *link, bool boundary)
{
    clean_disown(link);
    if (link->phase != LINK_CLOSED)
        link_clean_start(link, boundary);
}

void link_release_untouched(struct link *link, bool boundary)
{
    clean_disown(link);
    if (link->phase != LINK_CLOSED && !clean_postpone(link, boundary))
        link_clean_start(link, boundary);
}

/* Between two transactions of clients that share it a link needs no cleaning. */
static bool link_may_stay(const struct link *link)
{
    return link->phase == LINK_LENT && is_at_rest(link) && !link->is_private &&
           !stream_has_failed(&link->stream) && !link->be->is_stopping &&
           link->be->conf->connection_cache;
}

HOT void link_return(struct link *link)
{
    if (!link_may_stay(link)) {
        link_release(link, true);
        return;
    }
    link->owner = NULL;
    link->ops = NULL;
    link->epoch = ++link->be->next_epoch;
    link_resume(link);
    link_enter_idle(link);
}
