/* SPDX-License-Identifier: PostgreSQL
 * web_probes.c: what load balancers and container managers ask: 200 for yes, 503 for no, and why.
 * Runs in: web. The answers come from shared memory, so they say what pgpool would do now; no
 * database is asked, and a saturated pgpool answers as fast as an idle one. */
#include "config.h"

#include <string.h>

#include "web_int.h"

#define STATUS_YES 200
#define STATUS_NO  503

/* The first trouble that keeps people from logging in; NULL: there is none. */
static const struct web_trouble *blocker(const struct web_trouble *t, int n)
{
    int i;

    for (i = 0; i < n; i++)
        if (!web_trouble_may_log_in(t[i].kind))
            return &t[i];
    return NULL;
}

/* Looks at everything; true when somebody may log in. Else it has answered. */
static bool is_ready(const struct web_request *r, struct web_answer *a)
{
    struct web_trouble troubles[WEB_TROUBLES_MAX];
    const struct web_trouble *t;
    struct web_facts f;
    int n;

    web_health_look(r->web, &f);
    /* Anybody may ask, and these have addresses in them, and names of users. */
    memset(f.cause, 0, sizeof f.cause);
    n = web_health_judge(&f, &r->web->view, conf_of(role_loop_gen(&r->web->role)), troubles);
    t = blocker(troubles, n);
    if (t == NULL)
        return true;
    web_answer_text(a, STATUS_NO, t->en);
    buf_put(&a->body, "\n", 1);
    return false;
}

static void answer(struct web_answer *a, bool is_so, const char *yes, const char *no)
{
    web_answer_text(a, is_so ? STATUS_YES : STATUS_NO, is_so ? yes : no);
}

/* Answers that the process is alive, which the answer itself shows: it ends with the supervisor. */
void web_probe_live(const struct web_request *r, struct web_answer *a)
{
    web_answer_text(a, STATUS_YES, "pgpool runs\n");
}

void web_probe_ready(const struct web_request *r, struct web_answer *a)
{
    if (is_ready(r, a))
        web_answer_text(a, STATUS_YES, "clients may log in\n");
}

void web_probe_primary(const struct web_request *r, struct web_answer *a)
{
    if (is_ready(r, a))
        answer(a, web_health_can_write(&r->web->view), "there is a primary that takes writes\n",
            "no primary takes writes now\n");
}

void web_probe_replica(const struct web_request *r, struct web_answer *a)
{
    const struct view *v = &r->web->view;
    bool is_there = false;
    int i;

    if (!is_ready(r, a))
        return;
    for (i = 0; i < v->nnodes; i++)
        is_there = is_there || (i != v->primary && view_can_read(v, i) &&
                                   (!v->is_streaming || v->node[i].role == VIEW_ROLE_STANDBY));
    answer(a, is_there, "a standby serves reads\n", "no standby serves reads now\n");
}

void web_probe_leader(const struct web_request *r, struct web_answer *a)
{
    static const char *const texts[] = {"this pgpool is alone: there is no watchdog\n",
        "this pgpool leads its watchdog\n", "this pgpool does not lead its watchdog\n",
        "who leads the watchdog is not known\n"};
    enum web_lead lead = web_leader_look(r->web);
    bool leads = lead == WEB_LEAD_ALONE || lead == WEB_LEAD_OURS;

    web_answer_text(a, leads ? STATUS_YES : STATUS_NO, texts[lead]);
}
