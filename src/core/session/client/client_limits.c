/* SPDX-License-Identifier: PostgreSQL
 * client_limits.c: the time-outs of a client, with PgBouncer's meanings and words, and the orders
 * of operators that a client has to follow. Runs in: workers. A deadline is worked out only when
 * one may have come; see client_limits_int.h. */
#include "config.h"

#include <stdio.h>

#include "backend/quota.h"
#include "base/hot.h"
#include "base/log.h"
#include "config/conf.h"
#include "config/conf_param.h"
#include "config/pools_conf.h"
#include "ipc/hold.h"
#include "ipc/orders.h"

#include "client_int.h"

/* What ends, or happens, when a deadline comes. */
enum limit {
    LIMIT_NONE,
    LIMIT_NOTIFY,
    LIMIT_WAIT,
    LIMIT_QUERY,
    LIMIT_IDLE_TX,
    LIMIT_TX,
    LIMIT_IDLE,
    LIMIT_RECOVERY
};

/* The nearest deadline. */
struct deadline {
    enum limit limit;
    int64_t at_us;
    int64_t limit_ms;
};

static void deadline_add(struct deadline *d, enum limit limit, int64_t since_us, int64_t limit_ms)
{
    int64_t at_us = since_us + limit_ms * 1000;

    if (limit_ms <= 0 || since_us == 0 || (d->limit != LIMIT_NONE && d->at_us <= at_us))
        return;
    d->limit = limit;
    d->at_us = at_us;
    d->limit_ms = limit_ms;
}

static bool is_idle(const struct client *c)
{
    return !(client_has_console(c) && c->ss->console->waits(c)) && c->stats.taken_us == 0 &&
           c->stats.sent_us == 0 && c->stats.wait_us <= 0;
}

/* The request that runs began when it was taken, or when the one before it in a pipeline was
 * answered. */
static int64_t request_since_us(const struct client *c)
{
    int64_t since_us = c->stats.taken_us;

    if (c->target != NULL && c->stats.sent_us != 0 && c->target->quiet_us > since_us)
        since_us = c->target->quiet_us;
    return since_us;
}

/* True when the last thing a server said to the client was that it is inside a transaction. */
static bool in_transaction(const struct client *c)
{
    return c->row == NULL ? c->stats.tx_us != 0
                          : c->row->tx_status == 'T' || c->row->tx_status == 'E';
}

/* PGPOOL SET client_idle_limit comes before what is set for the database. */
static int64_t idle_limit_ms(struct client *c, const struct pool_settings *set)
{
    int64_t own_ms = client_conf(c)->client_idle_limit_ms;

    return own_ms == c->ss->conf->client_idle_limit_ms ? set->client_idle_limit_ms : own_ms;
}

/* The second stage of an online recovery waits for it. */
static inline bool is_waited_for(const struct client *c)
{
    return client_is_native(c) && hold_is_on(c->ss->env->shm);
}

static void add_recovery(struct client *c, struct deadline *d)
{
    int64_t ms = client_conf(c)->client_idle_limit_in_recovery_ms;

    if (ms < 0 && !c->ss->native->is_held(c))
        *d = (struct deadline){LIMIT_RECOVERY, loop_now_us(c->ss->loop), 0};
    else if (is_idle(c))
        deadline_add(d, LIMIT_RECOVERY, c->last_active_us, ms);
}

static struct deadline limits_next(struct client *c)
{
    const struct pool_settings *set = c->pool->set;
    const struct client_stats *st = &c->stats;
    struct deadline d = {0};

    if (st->wait_us > 0) {
        if (!c->was_told_to_wait && c->phase == CL_ACTIVE)
            deadline_add(&d, LIMIT_NOTIFY, st->wait_us, set->query_wait_notify_ms);
        deadline_add(&d, LIMIT_WAIT, st->wait_us, set->query_wait_timeout_ms);
    }
    if (!is_idle(c))
        deadline_add(&d, LIMIT_QUERY, st->taken_us == 0 ? st->wait_us : request_since_us(c),
            set->query_timeout_ms);
    if (c->phase != CL_ACTIVE)
        return d;
    if (st->tx_us != 0)
        deadline_add(&d, LIMIT_TX, st->tx_us, set->transaction_timeout_ms);
    if (is_idle(c) && in_transaction(c))
        deadline_add(&d, LIMIT_IDLE_TX, c->last_active_us, set->idle_transaction_timeout_ms);
    if (is_idle(c))
        deadline_add(&d, LIMIT_IDLE, c->last_active_us, idle_limit_ms(c, set));
    if (is_waited_for(c))
        add_recovery(c, &d);
    return d;
}

static void limits_arm(struct client *c)
{
    struct deadline d = limits_next(c);
    int64_t left_us = d.at_us - loop_now_us(c->ss->loop);

    if (d.limit == LIMIT_NONE || (c->limits.due_us != 0 && c->limits.due_us <= d.at_us))
        return;
    client_set_timer(c, left_us > 0 ? left_us / 1000 + 1 : 1);
    c->limits.due_us = d.at_us;
}

static bool limits_apply(const struct client *c)
{
    return !client_is_alone(c) && c->sends == CLIENT_SENDS_ON &&
           (c->phase == CL_ACTIVE || c->phase == CL_LOGIN);
}

HOT void client_limits_on_busy(struct client *c)
{
    const struct pool_settings *set;

    if (!limits_apply(c))
        return;
    if (c->stats.wait_us <= 0) {
        c->was_told_to_wait = false;
        set = c->pool->set;
        if (set->query_timeout_ms == 0 && set->transaction_timeout_ms == 0)
            return;
    }
    limits_arm(c);
}

HOT void client_limits_on_quiet(struct client *c)
{
    const struct pool_settings *set;

    if (!limits_apply(c))
        return;
    set = c->pool->set;
    if (set->client_idle_limit_ms == 0 && set->idle_transaction_timeout_ms == 0 &&
        set->transaction_timeout_ms == 0 && client_override(c) == NULL && !is_waited_for(c))
        return;
    limits_arm(c);
}

/* "query_wait_notify": once per wait. */
static void limits_notify(struct client *c)
{
    c->was_told_to_wait = true;
    client_notice(
        c, LVL_NOTICE, "No server connection available in postgres backend, client being queued");
}

static const char *limits_reason(const struct client *c, enum limit limit)
{
    switch (limit) {
    case LIMIT_WAIT:
        return "query_wait_timeout";
    case LIMIT_QUERY:
        return c->stats.wait_us > 0 ? "query_timeout" : "query timeout";
    case LIMIT_IDLE_TX:
        return "idle transaction timeout";
    case LIMIT_TX:
        return "transaction timeout";
    case LIMIT_NONE:
    case LIMIT_NOTIFY:
    case LIMIT_IDLE:
    case LIMIT_RECOVERY:
        break;
    }
    return "client_idle_timeout";
}

/* Room for any limit as limit_text puts it. */
#define LIMIT_TEXT_BYTES 32

static const char *limit_text(int64_t ms, char text[LIMIT_TEXT_BYTES])
{
    if (ms % 1000 == 0)
        snprintf(text, LIMIT_TEXT_BYTES, "%lld s", (long long)(ms / 1000));
    else
        snprintf(text, LIMIT_TEXT_BYTES, "%lld ms", (long long)ms);
    return text;
}

/* What the client was doing, for its message and the log. */
static void limits_detail(const struct client *c, const struct deadline *d, struct err *err)
{
    static const char *const reasons[WAIT_REASON_COUNT] = {
#define TEXT(sym, text) text,
        WAIT_REASONS(TEXT)
#undef TEXT
    };
    const char *reason = "";
    char text[LIMIT_TEXT_BYTES];

    if (c->stats.wait_us <= 0) {
        err_detail(err, "The limit is %s.", limit_text(d->limit_ms, text));
        return;
    }
    if (c->row != NULL && c->row->wait_reason < WAIT_REASON_COUNT)
        reason = reasons[c->row->wait_reason];
    if (reason == reasons[WAIT_REASON_CONNECTING] &&
        quota_refused_until(c->ss->env->shm, c->pool->cluster_node) != 0)
        reason = "connecting (the server refuses connections)";
    err_detail(err,
        "No connection to node %d became free for user \"%s\" and database \"%s\" within %s%s%s.",
        c->pool->cluster_node, c->pool->names, pool_database(c->pool).p,
        limit_text(d->limit_ms, text), reason[0] == '\0' ? "" : ", waiting for: ", reason);
    err_hint(err, "SHOW POOL_QUEUE says who waits for what, SHOW POOL_LIMITS what is used up.");
}

static void limits_end(struct client *c, const struct deadline *d)
{
    struct client_log_scope scope;
    char text[LIMIT_TEXT_BYTES];
    struct err err = {0};

    if (d->limit == LIMIT_IDLE) {
        CLIENT_LOG(c, LVL_LOG, "session of user \"%s\" ends: client_idle_limit (%s) is reached",
            c->pool->names, limit_text(d->limit_ms, text));
        err_set_fatal(&err, "57P05", "connection terminated due to client idle limit reached");
        err_hint(&err, "The setting is client_idle_limit.");
    } else if (d->limit == LIMIT_RECOVERY) {
        CLIENT_LOG(c, LVL_LOG,
            "session of user \"%s\" ends: client_idle_limit_in_recovery (%s) is reached",
            c->pool->names, d->limit_ms == 0 ? "-1" : limit_text(d->limit_ms, text));
        err_set_fatal(&err, "57P01", "connection terminated due to online recovery");
        err_detail(&err, "A server is being rebuilt, which waits for transactions to end.");
        err_hint(&err, "Connect again. The setting is client_idle_limit_in_recovery.");
    } else {
        err_set_fatal(
            &err, d->limit == LIMIT_WAIT ? "53300" : "08P01", "%s", limits_reason(c, d->limit));
        limits_detail(c, d, &err);
        client_log_enter(&scope, c);
        log_caused_detail(LVL_LOG, err.detail, NULL,
            "closing because: %s (user \"%s\", database \"%s\")", limits_reason(c, d->limit),
            c->pool->names, pool_database(c->pool).p);
        client_log_leave(&scope);
    }
    stats_on_wait_end(&c->stats, loop_now_us(c->ss->loop));
    client_end(c, &err);
}

void client_limits_poke(struct client *c)
{
    if (!limits_apply(c))
        return;
    client_set_timer(c, 1);
    c->limits.due_us = loop_now_us(c->ss->loop);
}

void client_limits_on_reload(struct client *c)
{
    if (!limits_apply(c) || c->pool == NULL || (c->phase == CL_LOGIN && c->stats.wait_us <= 0))
        return; /* a login's timer is that of its own limit */
    limits_arm(c);
}

void client_limits_on_timer(struct client *c)
{
    struct deadline d;

    c->limits.due_us = 0;
    if (!limits_apply(c))
        return;
    if (is_idle(c) && client_limits_must_leave(c)) {
        client_end_text(c, "57P01", "terminating connection due to administrator command");
        return;
    }
    d = limits_next(c);
    if (d.limit == LIMIT_NOTIFY && d.at_us <= loop_now_us(c->ss->loop)) {
        limits_notify(c);
        d = limits_next(c);
    }
    if (d.limit != LIMIT_NONE && d.at_us <= loop_now_us(c->ss->loop))
        limits_end(c, &d);
    else
        limits_arm(c);
}

HOT bool client_limits_must_leave(const struct client *c)
{
    if (atomic_load_explicit(c->ss->has_orders, memory_order_relaxed) == 0 ||
        pool_is_superuser(c->pool) || client_is_alone(c) || in_transaction(c) ||
        (c->link != NULL && c->link->tx_status != 'I'))
        return false;
    return (orders_flags(c->ss->env->shm, pool_database(c->pool)) & ORDER_DRAIN) != 0;
}

bool client_limits_on_login(struct client *c)
{
    if (client_limits_must_leave(c)) {
        client_end_text(c, "57P03", "pgpool is draining: it takes no new clients");
        return false;
    }
    if (atomic_load_explicit(c->ss->has_orders, memory_order_relaxed) != 0 && !client_is_alone(c) &&
        (orders_flags(c->ss->env->shm, pool_database(c->pool)) & ORDER_DISABLE) != 0) {
        client_end_text(c, "57P03", "database \"%.*s\" takes no new clients: it was disabled",
            (int)pool_database(c->pool).n, pool_database(c->pool).p);
        return false;
    }
    client_set_timer(c, 0);
    client_trace_settings(c);
    return true;
}
