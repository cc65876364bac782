/* SPDX-License-Identifier: PostgreSQL
 * wd_life.c: wd_lifecheck_method = query: each pgpool asks each other one as a client would, and
 * says of whom it gets no answer. Runs in: watchdog. An answer is an answer, also a refusal:
 * servers that are down make no pgpool dead. */
#include "config.h"

#include <string.h>

#include "base/log.h"
#include "base/mem.h"
#include "cluster/wd_votes.h"
#include "probe/probe.h"
#include "process/common/server_login.h"
#include "sys/clock.h"

#include "wd_int.h"

#define DEFAULT_ROUND_MS 10000 /* when wd_interval is 0 */
#define DEFAULT_USER     "postgres"

struct wd_queried {
    struct wd *w;
    int member;
    int nfailed; /* running */
    struct probe *probe;
    struct secret password;
};

static int64_t round_ms(const struct wd *w)
{
    return wd_conf(w)->wd_interval_ms > 0 ? wd_conf(w)->wd_interval_ms : DEFAULT_ROUND_MS;
}

static void set_dead(struct wd *w, int member, bool is_dead, const char *why)
{
    if (wd_has_bit(w->life.dead, member) == is_dead)
        return;
    wd_put_bit(w->life.dead, member, is_dead);
    log_at_detail(LVL_LOG, is_dead ? why : NULL, NULL,
        "informing the node status change to watchdog: node id %d is %s", member,
        is_dead ? "dead" : "alive");
}

static void on_answer(struct probe *p, const struct probe_report *r)
{
    struct wd_queried *q = probe_owner(p);
    int limit = wd_conf(q->w)->wd_life_point;

    if (r->answer == PROBE_UNSURE)
        return;
    q->nfailed = r->answer == PROBE_FAILED ? q->nfailed + 1 : 0;
    set_dead(q->w, q->member, q->nfailed > 0 && q->nfailed >= limit, r->message);
}

static void on_lost(struct probe *p)
{
}

static void ask(struct wd_queried *q)
{
    const struct conf *c = wd_conf(q->w);
    const char *query = c->wd_lifecheck_query;
    struct probe_target target = {.host = c->wd_nodes[q->member].hostname,
        .port = c->wd_nodes[q->member].pgpool_port,
        .user = c->wd_lifecheck_user[0] == '\0' ? DEFAULT_USER : c->wd_lifecheck_user,
        .database = c->wd_lifecheck_dbname,
        .sslmode = "prefer",
        .sslrootcert = "",
        .sslcrl = "",
        .sslcert = "",
        .sslkey = "",
        .ssl_min = "",
        .connect_timeout_ms = round_ms(q->w),
        .timeout_ms = round_ms(q->w)};

    if (q->probe == NULL)
        q->probe = probe_new(&q->w->role.loop, on_answer, on_lost, q);
    if (probe_is_running(q->probe))
        return;
    secret_free(&q->password);
    server_login_password(role_loop_gen(&q->w->role), target.user, c->wd_lifecheck_password,
        "wd_lifecheck_password", NULL, &q->password);
    target.password = secret_slice(&q->password).n == 0 ? "" : secret_slice(&q->password).p;
    probe_set_target(q->probe, &target);
    probe_start_orders(q->probe, &query, 1);
}

void wd_life_open(struct wd *w)
{
    int i;

    if (wd_conf(w)->wd_lifecheck_method != CONF_LIFECHECK_QUERY)
        return;
    probe_forget_environment();
    w->life.queried = mem_alloc_zero(WD_MAX_MEMBERS * sizeof w->life.queried[0]);
    for (i = 0; i < WD_MAX_MEMBERS; i++)
        w->life.queried[i] = (struct wd_queried){.w = w, .member = i};
    w->life.due_us = loop_now_us(&w->role.loop) + round_ms(w) * CLOCK_US_PER_MS;
}

/* Who is not heard at all is lost, whatever he answers; a witness has no clients. */
static bool is_asked(const struct wd *w, int i)
{
    const struct wd_other *o = &w->other[i];

    return i != w->self && wd_is_listed(w, i) && o->is_known && !o->said.is_witness &&
           !o->is_leaving;
}

static bool says_dead(const struct wd *w, int of, int member)
{
    return wd_has_bit(of == w->self ? w->life.dead : w->other[of].said.dead, member);
}

static bool is_called(const struct wd *w, const bool heard[WD_MAX_MEMBERS], int member)
{
    int ncallers = 0;
    int nothers = 0;
    int i;

    for (i = 0; i < WD_MAX_MEMBERS; i++) {
        nothers += heard[i] && i != member;
        ncallers += heard[i] && i != member && says_dead(w, i, member);
    }
    return wd_life_is_called(ncallers, nothers);
}

/* All who hear each other come to the same. */
static void judge_self(struct wd *w)
{
    bool heard[WD_MAX_MEMBERS];
    bool called[WD_MAX_MEMBERS];
    bool fit[WD_MAX_MEMBERS];
    int i;

    for (i = 0; i < WD_MAX_MEMBERS; i++)
        heard[i] = i == w->self || (w->other[i].is_known && wd_is_heard(w, i));
    for (i = 0; i < WD_MAX_MEMBERS; i++) {
        called[i] = heard[i] && is_called(w, heard, i);
        fit[i] = heard[i] && !w->other[i].said.is_witness && !w->other[i].said.is_hindered;
    }
    wd_talk_be_called_dead(w, wd_life_is_dead(called, fit, w->self));
}

void wd_life_step(struct wd *w)
{
    bool is_due = w->life.queried != NULL && loop_now_us(&w->role.loop) >= w->life.due_us;
    int i;

    if (w->life.queried == NULL)
        return;
    for (i = 0; i < WD_MAX_MEMBERS; i++) {
        struct wd_queried *q = &w->life.queried[i];

        if (is_asked(w, i) && is_due)
            ask(q);
        else if (!is_asked(w, i))
            set_dead(w, i, false, NULL);
    }
    if (is_due)
        w->life.due_us = loop_now_us(&w->role.loop) + round_ms(w) * CLOCK_US_PER_MS;
    if (!w->is_witness)
        judge_self(w);
}

void wd_life_close(struct wd *w)
{
    int i;

    for (i = 0; w->life.queried != NULL && i < WD_MAX_MEMBERS; i++) {
        if (w->life.queried[i].probe != NULL)
            probe_free(&w->life.queried[i].probe);
        secret_free(&w->life.queried[i].password);
    }
    mem_free(w->life.queried);
    w->life.queried = NULL;
}
