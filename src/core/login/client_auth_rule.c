/* SPDX-License-Identifier: PostgreSQL
 * client_auth_rule.c: which line of pool_hba.conf a client falls under, and which names map to it.
 * Runs in: workers. What the files cannot tell (is this user in that role? does this address belong
 * to that host?) is asked, one question after the other, and the whole file is walked again with
 * the answer: so the lines keep their order. Must never: take "could not find out" for "no". */
#include "config.h"

#include <string.h>

#include "auth/auth_helper.h"
#include "base/log.h"
#include "base/mem.h"
#include "config/conf.h"
#include "net/tls.h"

#include "client_auth_int.h"

struct host_job {
    struct job job;
    struct hba_addr addr;
    enum hba_answer answer;
    char name[];
};

static struct auth_question *question_find(struct client_auth *a, bool is_role, struct slice name)
{
    unsigned i;

    for (i = 0; i < a->nquestions; i++)
        if (a->question[i]->is_role == is_role && slice_eq_str(name, a->question[i]->name))
            return a->question[i];
    return NULL;
}

/* The answer, or HBA_ASK after noting the question. */
static enum hba_answer question_ask(struct client_auth *a, bool is_role, struct slice name)
{
    struct auth_question *q = question_find(a, is_role, name);

    if (q != NULL)
        return q->answer;
    if (a->nquestions == AUTH_QUESTIONS_MAX)
        return HBA_FAIL;
    q = mem_alloc_zero(sizeof *q + name.n + 1);
    q->is_role = is_role;
    q->answer = HBA_ASK;
    memcpy(q->name, name.p, name.n);
    a->question[a->nquestions++] = q;
    return HBA_ASK;
}

static enum hba_answer oracle_in_role(void *ctx, struct slice user, struct slice role)
{
    struct client_auth *a = ctx;
    struct auth_way way = login_auth_find_role_way(a->sa->be->conf);
    enum auth_told told = login_auth_told(a->sa, AUTH_LOOKUP_ROLE, user, role);

    if (told != AUTH_TOLD_NOTHING)
        return told == AUTH_TOLD_YES ? HBA_YES : HBA_NO;
    return auth_way_is_there(&way) ? question_ask(a, true, role) : HBA_FAIL;
}

static enum hba_answer oracle_has_host(void *ctx, const struct hba_addr *addr, const char *name)
{
    (void)addr; /* the client's own */
    return question_ask(ctx, false, slice_of_str(name));
}

static struct hba_oracle auth_oracle(struct client_auth *a)
{
    return (struct hba_oracle){.ctx = a,
        .in_role = oracle_in_role,
        .has_host = oracle_has_host,
        .is_same = hba_ask_interfaces};
}

static void question_close(struct client_auth *a, enum hba_answer answer)
{
    struct auth_question *q = a->open;

    a->open = NULL;
    if (q != NULL)
        q->answer = answer;
    if (client_auth_is_live(a))
        a->again(a);
}

static void host_work(struct job *job)
{
    struct host_job *h = LIST_ENTRY(job, struct host_job, job);

    h->answer = auth_host_check(&h->addr, h->name);
}

static void host_done(struct job *job)
{
    struct host_job *h = LIST_ENTRY(job, struct host_job, job);
    struct client_auth *a = job->owner;

    a->job = NULL;
    question_close(a, h->answer);
}

static void role_done(struct auth_wait *w, const struct err *err)
{
    struct client_auth *a = LIST_ENTRY(w, struct client_auth, wait);
    enum hba_answer answer = HBA_FAIL;

    if (err == NULL)
        answer = oracle_in_role(a, client_auth_user(a), slice_of_str(a->open->name));
    else
        log_caused(LVL_LOG, "could not look up a membership: %s", err->msg);
    question_close(a, answer == HBA_ASK ? HBA_FAIL : answer);
}

void client_auth_ask_question(struct client_auth *a, void (*again)(struct client_auth *a))
{
    struct auth_way way = login_auth_find_role_way(a->sa->be->conf);
    struct host_job *h;
    struct auth_question *q = NULL;
    size_t n;
    unsigned i;

    for (i = 0; i < a->nquestions && q == NULL; i++)
        if (a->question[i]->answer == HBA_ASK)
            q = a->question[i];
    a->open = q;
    a->again = again;
    if (q == NULL) {
        client_auth_deny(a, "A question about the rules could not be asked.");
        return;
    }
    n = strlen(q->name);
    if (q->is_role) {
        a->wait.done = role_done;
        auth_lookup_start(a->sa, AUTH_LOOKUP_ROLE, &way, client_auth_user(a), slice_of(q->name, n),
            slice_of("", 0), &a->wait);
        return;
    }
    h = mem_alloc_secret(sizeof *h + n + 1);
    memcpy(h->name, q->name, n);
    h->addr = a->addr;
    h->job.owner = a;
    h->job.work = host_work;
    h->job.done = host_done;
    a->job = &h->job;
    job_start(a->sa->jobs, &h->job);
}

/* replication=database is a session in a data base: its lines are those of the data base. */
static bool is_physical(struct slice replication)
{
    return replication.n > 0 && !slice_eq_str(replication, "database");
}

void client_auth_match(struct client_auth *a)
{
    struct hba_oracle oracle = auth_oracle(a);
    struct hba_query q = {.addr = a->addr,
        .tls = auth_is_tls(&a->facts),
        .replication = is_physical(a->who.startup->replication),
        .user = client_auth_user(a),
        .database = a->who.startup->database};
    struct err err = {0};

    a->step = AUTH_STEP_RULE;
    if (a->rules == NULL)
        a->rules = auth_rules_ref(a->sa->rules);
    if (a->rules == NULL) {
        err_set_fatal(&err, "28000", "client authentication failed");
        client_auth_stop(a, &err, "pool_hba.conf could not be loaded.");
        return;
    }
    switch (hba_match(a->rules->hba, &q, &oracle, &a->rule, &err)) {
    case HBA_MATCHED:
        a->matched(a);
        break;
    case HBA_PENDING:
        client_auth_ask_question(a, client_auth_match);
        break;
    case HBA_NOBODY:
        client_auth_stop(a, &err, err.detail);
        break;
    case HBA_REFUSED:
        client_auth_stop(a, &err, NULL);
        break;
    }
}

enum hba_answer client_auth_name_fits(struct client_auth *a, struct slice name, struct err *err)
{
    struct hba_oracle oracle = auth_oracle(a);
    const char *map = a->rule == NULL ? NULL : a->rule->map;
    const struct ident *id = a->rules == NULL ? NULL : a->rules->ident;

    return ident_check(id, map, name, client_auth_user(a), false, &oracle, err);
}

void client_auth_free_questions(struct client_auth *a)
{
    unsigned i;

    for (i = 0; i < a->nquestions; i++)
        mem_free(a->question[i]);
    a->nquestions = 0;
}

enum hba_answer client_auth_cert_fits(struct client_auth *a, struct err *err)
{
    bool is_dn = a->rule != NULL && a->rule->clientname_is_dn;
    struct buf name = {0};
    enum hba_answer answer = HBA_FAIL;
    int rc = is_dn ? stream_tls_peer_dn(a->who.stream, &name, err)
                   : stream_tls_peer_cn(a->who.stream, &name, err);

    if (rc == 0 && buf_unread(&name) > 0)
        answer = client_auth_name_fits(a, buf_slice(&name), err);
    else
        err_set(err, "28000", "the client's certificate has no name to compare");
    buf_free(&name);
    return answer;
}
