/* SPDX-License-Identifier: PostgreSQL
 * link_reset.c: what is asked of a server between two clients, and in front of what a link sends.
 * Runs in: workers. A reset may wait for the next loan (link_clean.c says when). A session that did
 * nothing but plain reads leaves nothing behind that anybody would notice: its link is idle at
 * once, and the reset queries go out in one write with the first message of the next owner, who
 * never sees an answer to them. The server is woken once instead of twice, which is a tenth of what
 * a connection with one statement costs. Nothing is ever asked of the server before they are; when
 * nobody wants the link for reset_query_delay they are sent alone. Should they fail the next owner
 * would have to be told, who can do nothing about it: so a pool's first reset is never postponed.
 */
#include "config.h"

#include <string.h>

#include "backend/pool.h"
#include "base/hot.h"
#include "config/conf.h"
#include "wire/writer.h"

#include "link_int.h"

/* More than this is not copied behind the reset queries. */
#define RESET_COPY_MAX 16384

/* ABORT and COMMIT are for a transaction that is open; pgpool-II leaves them out otherwise, too. */
static bool reset_applies(const struct link *link, const char *sql)
{
    if (strncasecmp(sql, "ABORT", 5) == 0 || strncasecmp(sql, "ROLLBACK", 8) == 0 ||
        strncasecmp(sql, "COMMIT", 6) == 0)
        return link->tx_status != 'I';
    return true;
}

/* Which queries reset the link as it is now. What clients that share a link left on it goes by
 * DISCARD ALL, whatever reset_query_list says. */
static int reset_list(const struct link *link, const char *sql[LINK_MAX_RESETS])
{
    static const char *const all[] = {"ABORT", "DISCARD ALL"};
    const struct conf_list *list = &link->be->conf->reset_query_list;
    bool is_ours = link->must_clean || !link_is_pristine(link);
    int nlisted = is_ours ? 2 : list->n;
    int n = 0;
    int i;

    for (i = 0; i < nlisted && i < LINK_MAX_RESETS; i++) {
        const char *query = is_ours ? all[i] : list->item[i];

        if (reset_applies(link, query))
            sql[n++] = query;
    }
    return n;
}

void link_reset_expect_all(struct link *link)
{
    const char *sql[LINK_MAX_RESETS];
    int n = reset_list(link, sql);
    int i;

    link->discards = 0;
    link->resets_left = 0;
    link->resets_done = 0;
    link->resets_sent = (uint8_t)n;
    for (i = 0; i < n; i++) {
        if (strcasecmp(sql[i], "DISCARD ALL") == 0)
            link->discards |= 1U << i;
        link_expect(link, OP_QUERY | OP_SWALLOW);
    }
}

void link_reset_put_all(struct link *link, struct buf *out)
{
    const char *sql[LINK_MAX_RESETS];
    int n = reset_list(link, sql);
    int i;

    for (i = 0; i < n; i++)
        wire_put_query(out, slice_of_str(sql[i]));
    link->must_clean = false;
}

void link_reset_expect(struct link *link)
{
    link->reset = LINK_RESET_AHEAD;
    link_reset_expect_all(link);
}

/* Sends `p` behind the reset queries. */
static int reset_send(struct link *link, const char *p, size_t n)
{
    struct buf out = {0};
    int rc;

    if (link->reset == LINK_RESET_DUE)
        link_reset_expect(link); /* a Flush, say, to which nothing is owed */
    link->reset = LINK_RESET_NONE;
    link_reset_put_all(link, &out);
    if (n <= RESET_COPY_MAX)
        buf_put(&out, p, n);
    rc = stream_send(&link->stream, out.data, out.len);
    if (rc == 0 && n > RESET_COPY_MAX)
        rc = stream_send(&link->stream, p, n);
    buf_free(&out);
    return rc;
}

HOT int link_send(struct link *link, const char *p, size_t n)
{
    if (link->reset != LINK_RESET_NONE)
        return reset_send(link, p, n);
    return stream_send(&link->stream, p, n);
}
