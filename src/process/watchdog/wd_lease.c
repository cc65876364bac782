/* SPDX-License-Identifier: PostgreSQL
 * wd_lease.c: for how long nobody else may take the address: from what the others say of their
 * following us.
 * Runs in: watchdog. A follower votes for nobody else for the election time-out after it heard its
 * leader. A lease goes on for longer than that, as the kernel counts in seconds; so a new leader
 * waits that much longer before it takes the address, unless the log says that the former one has
 * given it up, or all others say that it is not there. Nobody takes it before the log says that he
 * leads. Only by the boot clock, which goes on while the machine sleeps. */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "sys/clock.h"

#include "wd_int.h"

#define MARGIN_MS 50
#define EARLY_MS  600 /* before its time the address is asked for */

static int64_t lease_ms(int64_t election_ms)
{
    return election_ms / 2 + WD_ADDR_MIN_LEASE_MS;
}

/* All who may have led before follow now, and are without the address: a process that was killed
 * and is started again asks its kernel first. A member that was taken out is not forgotten by a
 * process that has seen it, and what led before this one began is over. */
static bool is_nowhere(const struct wd *w)
{
    bool voter[WD_MAX_MEMBERS];
    int64_t up_us = loop_now_us(&w->role.loop) - w->begun_us;
    int i;

    if (up_us < 2 * lease_ms(wd_conf(w)->wd_election_timeout_ms) * CLOCK_US_PER_MS)
        return false;
    (void)wd_raft_voters(w->raft, voter);
    for (i = 0; i < WD_MAX_MEMBERS; i++)
        if (i != w->self && (voter[i] || w->other[i].is_known) && !w->other[i].is_without)
            return false;
    return true;
}

/* What is left of a former leader's lease when we are elected, at most: by his election time-out,
 * which may be another one than ours. The shorter that is, the more is left. */
static int64_t left_ms(const struct wd *w)
{
    int64_t election_ms = wd_conf(w)->wd_election_timeout_ms;
    int64_t left;

    if (w->state.was_given)
        return 0;
    if (w->state.shortest_ms != 0 && w->state.shortest_ms < election_ms)
        election_ms = w->state.shortest_ms;
    left = lease_ms(election_ms) - election_ms;
    return (left > 0 ? left : 0) + MARGIN_MS;
}

static int64_t wait_ms(const struct wd *w)
{
    return is_nowhere(w) ? 0 : left_ms(w);
}

/* Said once, when it makes a difference. */
static void tell_early(struct wd *w)
{
    if (w->lead.is_early || wd_addr_boot_ms() >= w->lead.since_boot_ms + left_ms(w) - EARLY_MS ||
        !is_nowhere(w))
        return;
    w->lead.is_early = true;
    log_at(LVL_LOG, "watchdog: all other pgpools say that the address is not there: it is taken "
                    "before the former lease would have ended");
}

bool wd_lease_is_settled(const struct wd *w)
{
    return !wd_state_is_owed(&w->state) && wd_addr_boot_ms() >= w->lead.since_boot_ms + wait_ms(w);
}

static int descending(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a;
    int64_t y = *(const int64_t *)b;

    return x < y ? 1 : x > y ? -1 : 0;
}

/* The last time at which a majority, this one included, is known to have followed. */
static int64_t granted_ms(struct wd *w)
{
    bool voter[WD_MAX_MEMBERS];
    int64_t at[WD_MAX_MEMBERS];
    int nvoters = wd_raft_voters(w->raft, voter);
    int n = 0;
    int i;

    for (i = 0; i < WD_MAX_MEMBERS; i++)
        if (voter[i])
            at[n++] = i == w->self ? wd_addr_boot_ms() : w->other[i].granted_boot_ms;
    if (n == 0 || !voter[w->self])
        return 0;
    qsort(at, (size_t)n, sizeof at[0], descending);
    return at[wd_majority(nvoters, false) - 1];
}

void wd_lease_step(struct wd *w)
{
    int64_t since_ms = w->lead.since_boot_ms;
    int64_t granted;

    if (!wd_is_leading(w) || w->is_witness || w->is_called_dead || !w->lead.is_led ||
        w->lead.yields || !wd_raft_is_current(w->raft))
        return;
    granted = granted_ms(w);
    if (granted < since_ms || wd_addr_boot_ms() < since_ms + wait_ms(w) - EARLY_MS)
        return;
    if (wd_state_is_owed(&w->state))
        return;
    tell_early(w);
    wd_addr_not_before(w->addr, since_ms + wait_ms(w));
    wd_addr_lead(w->addr, granted + lease_ms(wd_conf(w)->wd_election_timeout_ms));
}

/* Followers vote for nobody else until the election time-out after they heard of us. */
int64_t wd_lease_led_until_us(struct wd *w)
{
    int64_t granted = wd_is_leading(w) && wd_raft_is_current(w->raft) ? granted_ms(w) : 0;

    return granted == 0 ? 0 : (granted + wd_conf(w)->wd_election_timeout_ms) * CLOCK_US_PER_MS;
}

bool wd_lease_is_free(const struct wd *w)
{
    struct wd_addr_status s;

    wd_addr_status(w->addr, &s);
    return !s.is_held;
}

bool wd_lease_is_without(const struct wd *w)
{
    struct wd_addr_status s;

    wd_addr_status(w->addr, &s);
    return w->is_witness || s.is_gone;
}

static void on_taken(void *owner)
{
    struct wd *w = owner;

    w->is_escalated = true;
    snprintf(w->address_why, sizeof w->address_why, "it is here: this pgpool leads");
    wd_tell_publish(w);
}

static void on_lost(void *owner, const char *why)
{
    struct wd *w = owner;

    w->is_escalated = false;
    snprintf(w->address_why, sizeof w->address_why, "%s", why);
    wd_tell_publish(w);
}

static void on_unfit(void *owner, const char *why)
{
    struct wd *w = owner;

    log_at_detail(LVL_WARNING, why, "The network between the pgpools; SHOW POOL_WATCHDOG.",
        "watchdog: this pgpool should not lead now");
    wd_talk_tell_all(w);
    if (wd_is_leading(w))
        wd_lead_yield(w, WD_NO_MEMBER, why);
}

static void on_fit(void *owner)
{
    wd_talk_tell_all(owner);
}

int wd_lease_open(struct wd *w, struct err *err)
{
    static const struct wd_addr_calls calls = {
        .on_taken = on_taken, .on_lost = on_lost, .on_unfit = on_unfit, .on_fit = on_fit};

    w->addr = wd_addr_new(&w->role.loop, wd_conf(w), &calls, w, err);
    return w->addr == NULL ? -1 : 0;
}
