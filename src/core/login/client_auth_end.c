/* SPDX-License-Identifier: PostgreSQL
 * client_auth_end.c: how a login ends without being let in: denied by the judge, stopped, broken
 * off; what the log says of it, and when the client is told. Runs in: workers. Must never: tell a
 * client why it did not pass. */
#include "config.h"

#include <stdio.h>

#include "base/log.h"
#include "config/conf.h"

#include "client_auth_int.h"

static void auth_let_go(struct client_auth *a)
{
    client_auth_answered(a);
    job_leave(&a->job);
    auth_lookup_cancel(&a->wait);
    timer_stop(a->sa->be->loop, &a->patience);
    pool_request_cancel(a->who.req);
}

const char *client_auth_where(const struct client_auth *a, char *out, size_t size)
{
    if (a->rule == NULL)
        return "";
    (void)snprintf(out, size, " (%s, line %u)", a->rule->file, a->rule->line);
    return out;
}

/* Nothing was stored, and the servers were not let judge. */
static const char *auth_hint(const struct client_auth *a)
{
    if (a->plan.proof != AUTH_PROOF_NEVER || a->facts.stored != CRED_NONE || a->facts.may_relay ||
        a->answer != AUTH_ANSWER_NONE || a->is_asked || a->plan.ask == AUTH_ASK_REFUSE)
        return NULL;
    return "Add the user to pool_passwd, let users be looked up with auth_query, or set auth_relay "
           "to on, so that the server judges users who are not in pool_passwd.";
}

void client_auth_log_refusal(const struct client_auth *a, const char *reason)
{
    char where[160];

    a->who.ops->refused(
        a->who.owner, reason, auth_hint(a), client_auth_where(a, where, sizeof where));
}

void client_auth_on_delay(struct timer *t)
{
    struct client_auth *a = LIST_ENTRY(t, struct client_auth, delay);
    bool has_words = a->held.len > 0;

    auth_say(a, &a->held); /* the server's own */
    a->who.ops->end(a->who.owner, has_words ? NULL : &a->refusal);
}

bool client_auth_delay(struct client_auth *a)
{
    int64_t delay_ms = a->sa->be->conf->auth_failure_delay_ms;

    a->step = AUTH_STEP_FAILED;
    auth_let_go(a);
    if (delay_ms == 0)
        return false;
    stream_pause(a->who.stream);
    timer_start(a->sa->be->loop, &a->delay, delay_ms);
    return true;
}

/* The refusal goes out now or after auth_failure_delay: the same for all who fail. */
void client_auth_refuse(struct client_auth *a, bool may_delay)
{
    a->step = AUTH_STEP_FAILED;
    auth_let_go(a);
    a->who.ops->drop_link(a->who.owner);
    if (!may_delay || !client_auth_delay(a))
        a->who.ops->end(a->who.owner, &a->refusal);
}

static uint32_t auth_now_s(const struct client_auth *a)
{
    return (uint32_t)(loop_now_us(a->sa->be->loop) / 1000000);
}

void client_auth_count_failure(struct client_auth *a)
{
    uint32_t n;

    if (a->is_counted)
        return;
    a->is_counted = true;
    n = auth_guard_count(a->sa->guard,
        a->answer == AUTH_ANSWER_UNSURE ? AUTH_GUARD_UNSURE : AUTH_GUARD_WRONG, &a->addr,
        auth_now_s(a));
    if (n != 0 && n == (uint32_t)a->sa->be->conf->auth_failure_limit &&
        a->answer != AUTH_ANSWER_UNSURE)
        auth_guard_tell(a->sa->worker.env, &a->addr);
}

bool client_auth_is_blocked(const struct client_auth *a, enum auth_guard_kind kind)
{
    return auth_guard_is_blocked(
        a->sa->guard, kind, &a->addr, auth_now_s(a), (uint32_t)a->sa->be->conf->auth_failure_limit);
}

void client_auth_unsure_refusal(struct err *out)
{
    err_set_fatal(out, "57P03", "could not look up the user");
    err_detail(out, "The servers could not be asked for the user's password.");
}

void client_auth_deny(struct client_auth *a, const char *reason)
{
    if (a->step == AUTH_STEP_FAILED)
        return;
    if (a->answer == AUTH_ANSWER_UNSURE)
        reason = "The servers could not be asked about the user, who does not pass by pool_passwd.";
    client_auth_log_refusal(a, reason != NULL ? reason : a->plan.reason);
    client_auth_count_failure(a);
    /* The password may have been changed since the answer came: it is asked anew the next time. */
    if (a->stored_age_us > 0)
        auth_book_drop_answer(a->sa->book, client_auth_book_name(a));
    if (a->answer == AUTH_ANSWER_UNSURE)
        client_auth_unsure_refusal(&a->refusal);
    else
        auth_refusal(&a->facts, &a->plan, client_auth_user(a), &a->refusal);
    if (a->who.console != NULL)
        err_hint(&a->refusal, "Users of this database are those of admin_users, stats_users and "
                              "pcp.conf.");
    client_auth_refuse(a, true);
}

void client_auth_stop(struct client_auth *a, const struct err *err, const char *reason)
{
    if (a->step == AUTH_STEP_FAILED)
        return;
    client_auth_log_refusal(a, reason != NULL ? reason : err->msg);
    a->refusal = *err;
    a->refusal.severity = ERR_FATAL;
    client_auth_refuse(a, false);
}

void client_auth_broken(struct client_auth *a, const struct err *err)
{
    client_auth_count_failure(a);
    client_auth_stop(a, err, err->detail[0] != '\0' ? err->detail : NULL);
}

void client_auth_leave(struct client_auth *a)
{
    if (a == NULL || a->step != AUTH_STEP_HALF_WAY)
        return;
    client_auth_log_refusal(a, "The client broke off the exchange.");
    client_auth_count_failure(a);
    a->step = AUTH_STEP_FAILED; /* told once */
}

void client_auth_put_book_name(const struct client_auth *a, struct slice user, struct buf *out)
{
    struct slice whole = pool_book_name(a->who.req->pool);
    size_t skip = a->who.req->pool->user_len;

    buf_put(out, user.p, user.n);
    buf_put(out, whole.p + skip, whole.n - skip);
}
