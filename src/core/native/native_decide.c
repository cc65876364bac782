/* SPDX-License-Identifier: PostgreSQL
 * native_decide.c: what a worker decides to commit on all nodes, on its way to the disk. Runs in:
 * workers. One thread writes at a time, all that has been decided until then at once; sessions wait
 * without holding up the loop. Must never: say that something is decided which is not on disk. */
#include "config.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "base/mem.h"
#include "cluster/doubt_log.h"
#include "config/conf.h"
#include "event/jobs.h"

#include "native_int.h"

/* A file that has grown to this is written anew with what is not done yet. */
#define LOG_MAX_BYTES (1024 * 1024)
/* Tests name a transaction and a step of it at which a process dies. */
#define KILL_VARIABLE "PGPOOL_TEST_KILL_AT"

enum decision_state {
    DECISION_OPEN,    /* its nodes prepare it */
    DECISION_WAITS,   /* for the thread */
    DECISION_WRITTEN, /* it is on its way to the disk */
    DECISION_MADE,    /* it is there */
    DECISION_UNKNOWN  /* perhaps it is there */
};

struct native_decision {
    struct list node;
    struct native *n; /* NULL: its session has gone */
    struct doubt_gid gid;
    uint64_t nodes;
    enum decision_state state;
    void (*decided)(struct native *n, const struct err *err, bool is_unknown);
    bool is_kept; /* its session has done; some node may not have */
    /* The session has gone from inside of the gate (native_gate.c), which stays as it is until this
     * is written: before that the control process would see nothing to wait for. */
    bool holds_gate;
    char name[DOUBT_GID_BYTES];
};

struct native_decisions {
    struct sessions *ss;
    struct doubt_owner owner;
    struct doubt_worker *row;
    struct doubt_log log; /* the thread's, while it writes */
    struct list all;      /* by number */
    bool is_writing;
    char kill_at[64];
};

struct write_job {
    struct job job;
    struct doubt_log *log;
    struct buf text;
    bool replaces;
    int rc;
    struct err err;
};

/* ---- the worker's ---- */

static void take_up(struct native_decisions *d)
{
    const char *kill_at = getenv(KILL_VARIABLE);

    list_init(&d->all);
    d->log.fd = -1;
    snprintf(d->kill_at, sizeof d->kill_at, "%s", kill_at == NULL ? "" : kill_at);
}

static struct native_decisions *decisions(struct sessions *ss, struct err *err)
{
    struct native_decisions *d = ss->decisions;
    char dir[PATH_MAX];

    if (d == NULL) {
        d = mem_alloc_zero(sizeof *d);
        d->ss = ss;
        take_up(d);
        ss->decisions = d;
    }
    if (d->log.fd != -1)
        return d;
    if (!doubt_owner_of(ss->env->shm, ss->env->slot, &d->owner)) {
        err_set(err, "58030", "this pgpool could not keep a number in work_dir when it started");
        err_hint(err, "The log of its start says why. Mend that, then restart pgpool.");
        return NULL;
    }
    d->owner.pid = (uint32_t)getpid();
    d->row = doubt_worker_of(ss->env->shm, d->owner.slot);
    if (conf_path(ss->gen, ss->conf->work_dir, dir, sizeof dir, err) == -1 ||
        doubt_log_open(&d->log, dir, &d->owner, err) == -1)
        return NULL;
    atomic_store(&d->row->oldest, atomic_load(&d->row->next));
    atomic_store(&d->row->pid, d->owner.pid);
    return d;
}

/* All below the first that is open are done with. */
static void publish_oldest(const struct native_decisions *d)
{
    uint64_t oldest = atomic_load(&d->row->next);
    struct list *node;

    LIST_FOREACH(node, &d->all)
    {
        const struct native_decision *one = LIST_ENTRY(node, struct native_decision, node);

        if (!one->is_kept) {
            oldest = one->gid.number;
            break;
        }
    }
    atomic_store(&d->row->oldest, oldest);
}

static void forget(struct native_decision *one)
{
    list_remove(&one->node);
    mem_free(one);
}

/* What was left to the control process and is ended on all nodes by now. */
static void forget_ended(struct native_decisions *d)
{
    uint64_t ended = atomic_load(&d->row->ended);
    struct list *node;
    unsigned n = 0;

    while ((node = list_first(&d->all)) != NULL) {
        struct native_decision *one = LIST_ENTRY(node, struct native_decision, node);

        if (!one->is_kept || one->gid.number >= ended)
            break;
        forget(one);
        n++;
    }
    if (n > 0)
        log_at(LVL_DEBUG1, "%u decisions that were left open are ended on all nodes", n);
}

/* ---- a transaction ---- */

const char *native_decision_begin(struct native *n, struct err *err)
{
    struct native_decisions *d = decisions(n->ss, err);
    struct native_decision *one;

    if (d == NULL)
        return NULL;
    forget_ended(d);
    one = mem_alloc_zero(sizeof *one);
    one->n = n;
    one->gid.owner = d->owner;
    one->gid.number = atomic_load(&d->row->next);
    doubt_gid_format(&one->gid, one->name);
    list_push_back(&d->all, &one->node);
    atomic_store(&d->row->next, one->gid.number + 1);
    publish_oldest(d);
    n->commit.decision = one;
    return one->name;
}

const char *native_decision_name(const struct native *n)
{
    return n->commit.decision->name;
}

void native_decision_end(struct native *n, bool is_everywhere)
{
    struct native_decisions *d = n->ss->decisions;
    struct native_decision *one = n->commit.decision;

    n->commit = (struct native_commit){.ops = n->commit.ops};
    one->n = NULL;
    if (one->state == DECISION_WAITS || one->state == DECISION_WRITTEN) {
        one->holds_gate = n->gate.nkept > 0;
        n->gate.nkept = 0;
        n->gate.inside = one->holds_gate ? GATE_NONE : n->gate.inside;
        return; /* the thread is about to write it */
    }
    if (!is_everywhere)
        atomic_fetch_add(&d->row->nleft, 1);
    if (one->state == DECISION_UNKNOWN)
        return; /* what the file says counts when this process has gone */
    if (one->state == DECISION_MADE && !is_everywhere)
        one->is_kept = true;
    else
        forget(one);
    publish_oldest(d);
}

/* ---- writing ---- */

static void write_work(struct job *job)
{
    struct write_job *j = LIST_ENTRY(job, struct write_job, job);

    if (j->replaces)
        j->rc = doubt_log_replace(j->log, buf_slice(&j->text), &j->err);
    else
        j->rc = doubt_log_append(j->log, buf_slice(&j->text), &j->err);
}

static void write_wipe(struct job *job)
{
    buf_free(&LIST_ENTRY(job, struct write_job, job)->text);
}

static void write_next(struct native_decisions *d);

static enum decision_state state_after(int rc)
{
    return rc == 0 ? DECISION_MADE : rc == -1 ? DECISION_OPEN : DECISION_UNKNOWN;
}

/* One that was written; NULL: there is none left. */
static struct native_decision *next_written(struct native_decisions *d)
{
    struct list *node;

    LIST_FOREACH(node, &d->all)
    {
        struct native_decision *one = LIST_ENTRY(node, struct native_decision, node);

        if (one->state == DECISION_WRITTEN)
            return one;
    }
    return NULL;
}

static void write_done(struct job *job)
{
    struct write_job *j = LIST_ENTRY(job, struct write_job, job);
    struct native_decisions *d = job->owner;
    struct native_decision *one;
    bool holds_gate;
    enum decision_state state = state_after(j->rc);
    struct err err = j->err;

    d->is_writing = false;
    if (j->rc != 0)
        log_at_detail(LVL_ERROR, NULL, "Look for room and errors of the disk that has work_dir.",
            "a decision could not be written: %s", err.msg);
    while ((one = next_written(d)) != NULL) {
        one->state = state;
        if (one->n != NULL) {
            one->decided(one->n, j->rc == 0 ? NULL : &err, state == DECISION_UNKNOWN);
            continue;
        }
        atomic_fetch_add(&d->row->nleft, 1); /* its client has gone */
        holds_gate = one->holds_gate;
        if (state == DECISION_MADE)
            one->is_kept = true;
        else if (state == DECISION_OPEN)
            forget(one);
        publish_oldest(d);
        if (holds_gate)
            gate_leave_to_control(d->ss->env->shm, d->ss->env->ordinal);
    }
    write_next(d);
}

static void write_next(struct native_decisions *d)
{
    struct write_job *j;
    struct list *node;
    bool replaces = d->log.bytes > LOG_MAX_BYTES;
    struct buf text = {0};
    bool some = false;

    if (d->is_writing)
        return;
    LIST_FOREACH(node, &d->all)
    {
        struct native_decision *one = LIST_ENTRY(node, struct native_decision, node);

        if (one->state == DECISION_WAITS || (replaces && one->state == DECISION_MADE))
            doubt_line_put(one->name, one->nodes, &text);
        if (one->state == DECISION_WAITS) {
            one->state = DECISION_WRITTEN;
            some = true;
        }
    }
    if (!some) {
        buf_free(&text);
        return;
    }
    j = mem_alloc_secret(sizeof *j);
    j->log = &d->log;
    j->text = text;
    j->replaces = replaces && !d->log.is_broken;
    j->job.owner = d;
    j->job.work = write_work;
    j->job.done = write_done;
    j->job.wipe = write_wipe;
    d->is_writing = true;
    job_start(d->ss->be.jobs, &j->job);
}

void native_decide(struct native *n, uint64_t nodes,
    void (*decided)(struct native *n, const struct err *err, bool is_unknown))
{
    struct native_decision *one = n->commit.decision;

    one->decided = decided;
    one->nodes = nodes;
    one->state = DECISION_WAITS;
    write_next(n->ss->decisions);
}

void native_decisions_free(struct sessions *ss)
{
    struct native_decisions *d = ss->decisions;
    struct list *node;

    if (d == NULL || d->is_writing) /* a thread has it */
        return;
    while ((node = list_first(&d->all)) != NULL)
        forget(LIST_ENTRY(node, struct native_decision, node));
    mem_free(d);
    ss->decisions = NULL;
}

/* ---- for tests ---- */

void native_commit_step(struct native *n, unsigned step)
{
    struct native_decisions *d = n->ss->decisions;
    uint64_t number;
    unsigned at;
    char what;

    if (d->kill_at[0] == '\0')
        return;
    if (sscanf(d->kill_at, "%" SCNu64 ":%u:%c", &number, &at, &what) != 3 || at != step ||
        number != n->commit.decision->gid.number)
        return;
    log_at(LVL_LOG, "%s: step %u of transaction %" PRIu64, KILL_VARIABLE, step, number);
    if (what == 'p')
        (void)kill(getppid(), SIGKILL);
    (void)kill(getpid(), what == 's' ? SIGSTOP : SIGKILL);
}
