/* SPDX-License-Identifier: PostgreSQL
 * client_kinds.c: the tables of struct client_kind, and what is short in them. Runs in: workers.
 * Above all that it names: those below get it by sessions.kinds. */
#include "config.h"

#include "base/hot.h"
#include "config/conf.h"

#include "client_events_int.h"
#include "console_int.h"
#include "native_int.h"
#include "share_cache_int.h"

static void nothing(struct client *c)
{
    (void)c;
}

static bool yes(struct client *c)
{
    (void)c;
    return true;
}

static bool no(struct client *c)
{
    (void)c;
    return false;
}

static enum client_pace link_pace(const struct link *link)
{
    if (link == NULL || expect_is_quiet(&link->expect))
        return PACE_REST;
    return link->expect.skipping ? PACE_SKIPS : PACE_RUNS;
}

/* ---- relayed: its link has all of the session ---- */

static bool relayed_wants_whole(const struct client *c, char type)
{
    return type == FE_QUERY || type == FE_PARSE || type == FE_SYNC || type == FE_FLUSH ||
           (client_local(c) != NULL && type != FE_COPY_DATA);
}

static enum client_pace relayed_pace(const struct client *c)
{
    return link_pace(c->target);
}

static bool relayed_cancel(struct client *c, int fd)
{
    (void)c;
    (void)fd;
    return false;
}

static void relayed_drop_link(struct client *c, bool boundary)
{
    struct link *link = c->link;

    c->link = NULL;
    c->target = NULL;
    if (link != NULL)
        (c->leaves_traces || client_patch(c) != NULL ? link_release : link_release_untouched)(
            link, boundary);
}

static int relayed_pool_mode(const struct client *c)
{
    (void)c;
    return CONF_POOL_SESSION;
}

static char relayed_tx_status(const struct client *c)
{
    return c->link == NULL ? 'I' : c->link->tx_status;
}

static struct slice relayed_setting(const struct client *c, const char *name)
{
    (void)c;
    (void)name;
    return slice_of(NULL, 0);
}

static struct link *relayed_kept(const struct client *c)
{
    (void)c;
    return NULL;
}

HOT static bool relayed_tells_by_link(const struct client *c)
{
    return c->target != NULL && c->target == c->link && c->link->row != ROWS_NO_ROW &&
           c->row != NULL && c->row->link_row == c->link->row;
}

/* ---- sharing links: the session is data ---- */

HOT static void sharing_fed(struct client *c)
{
    if (c->phase == CL_ACTIVE && c->share->loan.detach_due)
        share_detach_if_due(c);
    share_cache_after_feed(c);
    share_turn_end(c);
}

HOT static enum feed_step sharing_message(struct client *c, struct feed_run *run, char type,
    struct slice msg, bool is_whole, const char *end)
{
    enum feed_step step = FEED_AGAIN;

    if (c->share->turn == NULL && (type == FE_PARSE || type == FE_BIND))
        step = share_quick_batch(c, run, msg.p, end, &run->taken);
    if (step == FEED_PASS)
        return FEED_TAKEN;
    return step == FEED_AGAIN ? share_message(c, run, type, msg, is_whole, end) : step;
}

static bool sharing_wants_whole(const struct client *c, char type)
{
    (void)c;
    return type != FE_COPY_DATA && type != FE_BIND && type != FE_FUNCTION_CALL;
}

static enum client_pace sharing_pace(const struct client *c)
{
    const struct share *s = c->share;

    switch ((enum share_phase)s->phase) {
    case SHARE_DETACHED:
        return PACE_REST;
    case SHARE_WAITING:
        return PACE_WAITS;
    case SHARE_ATTACHED:
        return link_pace(c->link);
    case SHARE_REPAIRING:
        return s->owes_ready ? PACE_RUNS : PACE_REPAIRS;
    default:
        return PACE_RUNS;
    }
}

static void sharing_drop_link(struct client *c, bool boundary)
{
    balance_free(c);
    share_drop_link(c, boundary);
}

static void sharing_stop_keeping(struct client *c)
{
    if (c->share->turn != NULL)
        share_stop_keeping(c);
}

static int sharing_pool_mode(const struct client *c)
{
    return c->share->mode;
}

static struct slice sharing_setting(const struct client *c, const char *name)
{
    return varset_get(c->share->vars.client, slice_of_str(name));
}

static struct link *sharing_kept(const struct client *c)
{
    return c->share->kept;
}

HOT static bool sharing_tells_by_link(const struct client *c)
{
    (void)c;
    return false;
}

/* ---- writing to all nodes: beside what is done on its own link, which is like a relayed one ----
 */

static void native_drop_link(struct client *c, bool boundary)
{
    native_free(c);
    c->kind->drop_link(c, boundary);
}

/* ---- in the virtual database ---- */

static char console_tx_status(const struct client *c)
{
    return client_console(c)->tx;
}

#define LIKE_RELAYED                                                                               \
    .fed = nothing, .message = client_message, .wants_whole = relayed_wants_whole,                 \
    .pace = relayed_pace, .stop_keeping = nothing, .granted = yes, .welcomed = nothing,            \
    .follow = share_login_follow, .pool_mode = relayed_pool_mode, .setting = relayed_setting,      \
    .orders = no, .kept = relayed_kept, .tells_by_link = relayed_tells_by_link

const struct client_kinds client_kinds = {
    .relayed = {LIKE_RELAYED, .feed = client_feed_relayed, .cancel = relayed_cancel,
        .drop_link = relayed_drop_link, .tx_status = relayed_tx_status},
    .native = {LIKE_RELAYED, .feed = native_feed, .cancel = native_cancel,
        .drop_link = native_drop_link, .tx_status = relayed_tx_status},
    .console = {LIKE_RELAYED, .feed = console_feed, .cancel = relayed_cancel,
        .drop_link = relayed_drop_link, .tx_status = console_tx_status},
    .sharing = {.feed = client_feed_messages,
        .fed = sharing_fed,
        .message = sharing_message,
        .wants_whole = sharing_wants_whole,
        .pace = sharing_pace,
        .cancel = client_cancel_sharing,
        .drop_link = sharing_drop_link,
        .stop_keeping = sharing_stop_keeping,
        .granted = share_login_granted,
        .welcomed = share_login_done,
        .follow = yes,
        .pool_mode = sharing_pool_mode,
        .tx_status = share_tx_status,
        .setting = sharing_setting,
        .orders = yes,
        .kept = sharing_kept,
        .tells_by_link = sharing_tells_by_link},
};
