/* SPDX-License-Identifier: PostgreSQL
 * link_reset.c: a reset that waits for the next loan.
 * Runs in: workers. A session that did nothing but plain reads leaves nothing behind that anybody
 * would notice: its link is idle at once, and the reset queries go out in one write with the first
 * message of the next owner, who never sees an answer to them. The server is woken once instead of
 * twice, which is a tenth of what a connection with one statement costs. Nothing is ever asked of
 * the server before they are; when nobody wants the link for reset_query_delay they are sent
 * alone. Should they fail the next owner would have to be told, who can do nothing about it: so a
 * pool's first reset is never postponed. */
#include "config.h"

#include "backend/pool.h"
#include "config/conf.h"

#include "link_int.h"

/* More than this is not copied behind the reset queries. */
#define RESET_COPY_MAX 16384

bool link_reset_postpone(struct link *link, bool boundary)
{
    const struct conf *conf = link->be->conf;

    if (!link->reset_may_wait || !link->pool->resets_work || conf->reset_query_delay_ms == 0 ||
        conf->reset_query_list.n == 0 || !link_clean_is_possible(link, boundary) ||
        !expect_is_quiet(&link->expect) || expect_is_open(&link->expect) || link->body_left != 0 ||
        link->tx_status != 'I' || link->must_clean || !link_is_pristine(link) || link->has_news ||
        link->own_failed || link->error_told || link->in_cancel)
        return false;
    link->reset = LINK_RESET_DUE;
    link_resume(link);
    link_enter_idle(link);
    return true;
}

void link_reset_idle(struct link *link)
{
    link->be->pool_ops->on_taken(link->pool, link);
    link->reset = LINK_RESET_NONE;
    link_clean_send_resets(link);
}

void link_reset_expect(struct link *link)
{
    link->reset = LINK_RESET_AHEAD;
    link_clean_expect_resets(link);
}

int link_reset_send(struct link *link, const char *p, size_t n)
{
    struct buf out = {0};
    int rc;

    if (link->reset == LINK_RESET_DUE)
        link_reset_expect(link); /* a Flush, say, to which nothing is owed */
    link->reset = LINK_RESET_NONE;
    link_clean_put_resets(link, &out);
    if (n <= RESET_COPY_MAX)
        buf_put(&out, p, n);
    rc = stream_send(&link->stream, out.data, out.len);
    if (rc == 0 && n > RESET_COPY_MAX)
        rc = stream_send(&link->stream, p, n);
    buf_free(&out);
    return rc;
}
