/* SPDX-License-Identifier: PostgreSQL
 * client_kinds.c: the tables of struct client_kind, and what is short in them. Runs in: workers.
 * Above all that it names: those below get it by sessions.kinds. */
#include "config.h"

#include "base/hot.h"

#include "client/client_travel_int.h"
#include "exchange/exchange_mode_int.h"

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

HOT static bool never(const struct client *c)
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
           (client_has_console(c) && type != FE_COPY_DATA);
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

static bool relayed_granted(struct client *c)
{
    c->link->ops = &client_link_ops;
    return true;
}

/* When writes go to all nodes, it goes on there. */
static void relayed_entered(struct client *c)
{
    if (c->ss->native != NULL)
        c->ss->native->begin(c);
}

static void relayed_drop_link(struct client *c, bool boundary)
{
    struct link *link = c->link;

    c->link = NULL;
    c->target = NULL;
    if (link != NULL)
        (c->traces == TRACES_MORE || client_patch(c) != NULL
                ? link_release
                : link_release_untouched)(link, boundary);
}

static int relayed_pool_mode(const struct client *c)
{
    (void)c;
    return CONF_POOL_SESSION;
}

static char relayed_tx_status(const struct client *c)
{
    return c->link == NULL ? 'I' : c->link->ready_as != 0 ? c->link->ready_as : c->link->tx_status;
}

static struct slice relayed_setting(const struct client *c, const char *name)
{
    (void)c;
    (void)name;
    return slice_of(NULL, 0);
}

static struct errand *relayed_errand(const struct client *c)
{
    (void)c;
    return NULL;
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

/* ---- followed: the session is data ---- */

HOT static void followed_fed(struct client *c)
{
    if (c->sstate->phase == PHASE_LEAVING)
        leg_detach_if_due(c);
    if (c->sstate->errand != NULL && c->sstate->errand->results != NULL)
        c->ss->results->fed(c);
    errand_end(c);
}

HOT static enum feed_step followed_message(struct client *c, struct feed_run *run, char type,
    struct slice msg, bool is_whole, const char *end)
{
    enum feed_step step = FEED_AGAIN;

    if (c->sstate->errand == NULL && (type == FE_PARSE || type == FE_BIND))
        step = exchange_quick_batch(c, run, msg.p, end, &run->taken);
    if (step == FEED_PASS)
        return FEED_TAKEN;
    return step == FEED_AGAIN ? feed_followed_message(c, run, type, msg, is_whole, end) : step;
}

static bool followed_wants_whole(const struct client *c, char type)
{
    (void)c;
    return type != FE_COPY_DATA && type != FE_BIND && type != FE_FUNCTION_CALL;
}

static enum client_pace followed_pace(const struct client *c)
{
    const struct sstate *s = c->sstate;

    switch ((enum phase)s->phase) {
    case PHASE_DETACHED:
        return PACE_REST;
    case PHASE_WAITING:
    case PHASE_ASK_WAITING:
        return PACE_WAITS;
    case PHASE_ATTACHED:
    case PHASE_LEAVING:
        return link_pace(c->link);
    case PHASE_REPAIRING:
        return PACE_REPAIRS;
    default:
        return PACE_RUNS;
    }
}

static void followed_drop_link(struct client *c, bool boundary)
{
    plan_free(c);
    leg_drop_link(c, boundary);
}

static void followed_stop_keeping(struct client *c)
{
    if (c->sstate->errand != NULL)
        leg_stop_keeping(c);
}

static int followed_pool_mode(const struct client *c)
{
    return c->sstate->mode;
}

static struct slice followed_setting(const struct client *c, const char *name)
{
    return varset_get(c->sstate->vars.client, slice_of_str(name));
}

HOT static struct errand *followed_errand(const struct client *c)
{
    return c->sstate->errand;
}

static struct link *followed_kept(const struct client *c)
{
    return c->sstate->kept;
}

/* ---- followed, all of whose statements go to one node ---- */

static bool no_text(struct client *c, struct slice sql)
{
    (void)c;
    (void)sql;
    return false;
}

HOT static enum feed_step home_chosen(struct client *c, enum feed_step step)
{
    (void)c;
    return step;
}

static void home_begun(struct client *c, const struct sql_tx *tx)
{
    (void)c;
    (void)tx;
}

HOT static void home_sent(struct client *c, struct slice sql)
{
    (void)c;
    (void)sql;
}

HOT static void home_routed(struct client *c, enum route_event event)
{
    (void)c;
    (void)event;
}

/* ---- writing to all nodes: by a machine above (struct native_ops); its own link is like a relayed
 * one's ---- */

static void native_feed(struct client *c, const char *p, const char *end)
{
    c->ss->native->feed(c, p, end);
}

static bool native_cancel(struct client *c, int fd)
{
    return c->ss->native->cancel(c, fd);
}

static void native_drop_link(struct client *c, bool boundary)
{
    c->ss->native->end(c);
    c->kind->drop_link(c, boundary);
}

static int native_change_mode(struct client *c, int wanted, struct err *err)
{
    (void)c;
    (void)wanted;
    err_set(err, "0A000", "pool_mode cannot be changed where writes go to all nodes");
    err_hint(err, "Native replication has sessions of session mode alone.");
    return -1;
}

/* ---- in the virtual database ---- */

static char console_tx_status(const struct client *c)
{
    return c->ss->console->tx_status(c);
}

/* A session that has ended is like a relayed one for those that hold it still. */
#define AT_HOME                                                                                    \
    .place = exchange_quick_place_home, .goes_on = no_text, .chosen = home_chosen,                 \
    .lacks = no_text, .reads = no_text, .relation = NULL, .may_ask = yes, .begun = home_begun,     \
    .sent = home_sent, .routed = home_routed, .explain_asks = no_text,                             \
    .explain = exchange_explain_home

#define LIKE_RELAYED                                                                               \
    .fed = nothing, .wants_whole = relayed_wants_whole, .pace = relayed_pace,                      \
    .stop_keeping = nothing, .granted = relayed_granted, .entered = relayed_entered,               \
    .welcomed = nothing, .follow = exchange_login_follow, .pool_mode = relayed_pool_mode,          \
    .setting = relayed_setting, .orders = no, .errand = relayed_errand, .kept = relayed_kept,      \
    .can_travel = never, .tells_by_link = relayed_tells_by_link, AT_HOME

#define FOLLOWED                                                                                   \
    .feed = feed_each_message, .fed = followed_fed, .message = followed_message,                   \
    .wants_whole = followed_wants_whole, .pace = followed_pace, .cancel = client_cancel_followed,  \
    .drop_link = followed_drop_link, .stop_keeping = followed_stop_keeping,                        \
    .granted = exchange_login_granted, .entered = plan_begin, .welcomed = exchange_login_done,     \
    .follow = yes, .pool_mode = followed_pool_mode, .tx_status = sstate_tx_status,                 \
    .setting = followed_setting, .orders = yes, .errand = followed_errand, .kept = followed_kept,  \
    .change_mode = exchange_mode_change, .can_travel = follow_can_travel, .tells_by_link = never

const struct client_kinds client_kinds = {
    .relayed = {LIKE_RELAYED, .message = client_message, .feed = feed_relayed,
        .cancel = relayed_cancel, .drop_link = relayed_drop_link,
        .change_mode = exchange_mode_leave, .tx_status = relayed_tx_status},
    .native = {LIKE_RELAYED, .message = client_message, .feed = native_feed,
        .cancel = native_cancel, .drop_link = native_drop_link, .change_mode = native_change_mode,
        .tx_status = relayed_tx_status},
    .console = {LIKE_RELAYED, .message = feed_alone, .feed = feed_each_message,
        .cancel = relayed_cancel, .drop_link = relayed_drop_link, .tx_status = console_tx_status},
    .followed = {FOLLOWED, .place = exchange_quick_place_home, .goes_on = exchange_quick_goes_on,
        .chosen = home_chosen, .lacks = no_text, .reads = no_text, .relation = NULL, .may_ask = yes,
        .begun = home_begun, .sent = home_sent, .routed = home_routed, .explain_asks = no_text,
        .explain = exchange_explain_home},
    .balanced = {FOLLOWED, .place = exchange_quick_place, .goes_on = no_text, .judge = plan_decide,
        .chosen = plan_chosen, .lacks = plan_aside_lacks, .reads = plan_reads,
        .relation = plan_lookup, .may_ask = exchange_has_link_to_ask, .begun = plan_away_begun,
        .sent = plan_route_note, .routed = plan_routed, .explain_asks = exchange_explain_asks,
        .explain = exchange_explain_away},
};
