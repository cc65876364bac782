/* SPDX-License-Identifier: PostgreSQL
 * sup_child.c: forks child processes, buries them, and forks them again.
 * Runs in: supervisor; child_enter and what it calls run in the new child. A child gets exactly the
 * descriptors of its role. A child that dies at once is forked again later and later. */
#include "config.h"

#include "process/supervisor/sup_int.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/log.h"
#include "base/mem.h"
#include "cache/cache_store.h"
#include "cache/cache_stream.h"
#include "ipc/gate.h"
#include "ipc/hold.h"
#include "ipc/orders.h"
#include "known/session_shared.h"
#include "process/common/role_conf.h"
#include "session/session.h"
#include "sys/clock.h"
#include "sys/fd.h"
#include "sys/logdest.h"
#include "sys/sig.h"

#define BACKOFF_MIN_MS 10
#define BACKOFF_MAX_MS 60000
#define LIVED_LONG_MS  60000
#define CLEAN_LONG_MS  100
#define KEEP_EXTRA_FDS (PROC_MAX_LISTEN + 8)

/* What pgpool-II's log lines call a process of the role. */
static const char *kind_name(enum proc_role role)
{
    switch (role) {
    case ROLE_WORKER:
        return "child";
    case ROLE_MONITOR:
        return "health check";
    case ROLE_CONTROL:
        return "PCP";
    case ROLE_WATCHDOG:
        return "watchdog";
    case ROLE_INVALIDATOR:
        return "invalidator";
    case ROLE_WEB:
        return "web";
    case ROLE_LOGGER:
        return "logger";
    case ROLE_SUPERVISOR:
    case ROLE_COUNT:
        break;
    }
    return "unknown";
}

static void write_row(const struct proc_env *env)
{
    struct proc_row *row = proc_row(env->shm, env->slot);

    shm_write_begin(&row->seq);
    row->pid = (int32_t)getpid();
    row->role = (int32_t)env->role;
    row->ordinal = env->ordinal;
    row->start_time_us = clock_wall_us();
    row->conf_generation = conf_number(env->conf);
    atomic_store(&row->is_leaving, 0);
    shm_write_end(&row->seq);
}

/* Fills in the sockets of the role and lists every descriptor it may keep. */
static int list_fds(const struct sup *s, struct proc_env *env, int *keep, int max)
{
    int n = mailboxes_list_fds(s->boxes, env->slot, keep, max - KEEP_EXTRA_FDS);
    int i;

    if (env->role == ROLE_LOGGER) {
        keep[n++] = env->log_fd = s->log_ends[0];
        keep[n++] = env->stderr_fd = s->err_ends[0];
        return n;
    }
    if (s->log_ends[1] != -1)
        keep[n++] = s->log_ends[1];
    for (i = 0; env->role == ROLE_WORKER && i < s->nlisten; i++) {
        keep[n++] = env->listen_fd[i] = s->listeners[i].fd;
        env->listen_is_unix[i] = s->listeners[i].is_unix;
        env->nlisten = i + 1;
    }
    for (i = 0; env->role == ROLE_CONTROL && i < s->ncontrol; i++) {
        keep[n++] = env->control_fd[i] = s->control[i].fd;
        env->ncontrol = i + 1;
    }
    for (i = 0; env->role == ROLE_WEB && i < s->nweb; i++) {
        keep[n++] = env->web_fd[i] = s->web[i].fd;
        env->nweb = i + 1;
    }
    return n;
}

/* The logger outlives the others by a moment to write their last lines; its pipe tells it when. */
static void tie_to_parent(enum proc_role role, pid_t parent)
{
    if (role == ROLE_LOGGER)
        return;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(1);
}

/* Makes this freshly forked process one of its role and runs it. */
_Noreturn static void child_enter(struct sup *s, const struct sup_child *c, pid_t parent)
{
    /* Orders reach the main process: who sends one to all of pgpool (pkill -USR1, to rotate the
     * log) loses no client by it. */
    static const int ignored[] = {
        SIGPIPE, SIGHUP, SIGINT, SIGTERM, SIGUSR1, SIGUSR2, SIGALRM, SIGXFSZ};
    struct proc_env env = {.role = c->role, .slot = c->slot, .ordinal = c->ordinal};
    int max = s->nchildren + 2 + KEEP_EXTRA_FDS;
    int *keep = mem_alloc((size_t)max * sizeof keep[0]);
    int n;
    int status;

    env.log_fd = -1;
    env.stderr_fd = -1;
    env.nworkers = s->nworkers;
    env.first_worker_slot = s->first_worker_slot;
    env.shm = s->shm;
    env.boxes = s->boxes;
    env.conf = s->gen;
    env.paths = &s->opts.paths;
    env.is_witness = s->opts.is_witness;
    tie_to_parent(c->role, parent);
    log_set_process(proc_role_app_name(c->role), proc_role_title(c->role));
    if (c->role == ROLE_LOGGER) {
        logdest_set_collector(-1);
        dup2(s->plain_stderr, STDERR_FILENO);
    }
    logdest_forget();
    n = list_fds(s, &env, keep, max);
    env.mail_fd = mailboxes_attach(s->boxes, c->slot);
    fd_close_others(keep, (size_t)n);
    mem_free(keep);
    sig_reset_all(ignored, (int)(sizeof ignored / sizeof ignored[0]));
    proc_set_title("%s", proc_role_title(c->role));
    if (proc_title() != NULL)
        log_set_process(proc_role_app_name(c->role), proc_title());
    write_row(&env);
    status = s->opts.mains[c->role](&env);
    exit(status);
}

static int next_backoff(int backoff_ms)
{
    if (backoff_ms == 0)
        return BACKOFF_MIN_MS;
    return backoff_ms >= BACKOFF_MAX_MS / 2 ? BACKOFF_MAX_MS : backoff_ms * 2;
}

static void schedule(struct sup_child *c, int64_t now_us)
{
    c->backoff_ms = next_backoff(c->backoff_ms);
    c->retry_at_us = now_us + c->backoff_ms * CLOCK_US_PER_MS;
}

void sup_child_start(struct sup *s, struct sup_child *c)
{
    pid_t parent = getpid();
    int64_t now_us = clock_mono_us();
    pid_t pid = fork();

    if (pid == 0)
        child_enter(s, c, parent);
    if (pid == -1) {
        schedule(c, now_us);
        log_at_detail(LVL_WARNING, NULL,
            "The system has no memory or no process left: ulimit -u, TasksMax of systemd.",
            "could not fork a %s process: %s; next try in %d ms", kind_name(c->role),
            strerror(errno), c->backoff_ms);
        return;
    }
    c->pid = pid;
    c->started_us = now_us;
    c->retry_at_us = 0;
    c->gen_told = conf_number(s->gen);
    c->stop_told = 0;
    c->retire_told = false;
}

/* Workers are not replaced once the clients are being sent home; the others are needed to the end.
 */
static bool may_start(const struct sup *s, enum proc_role role)
{
    if (role == ROLE_WORKER)
        return s->phase == SUP_RUNNING;
    if (role == ROLE_LOGGER)
        return s->phase != SUP_DONE;
    return s->phase <= SUP_DRAINING && s->stop_mode != 'i';
}

void sup_child_start_due(struct sup *s, int64_t now_us)
{
    int i;

    for (i = 0; i < s->nchildren; i++) {
        struct sup_child *c = &s->children[i];

        if (c->pid != 0 || c->retry_at_us == 0 || c->retry_at_us > now_us)
            continue;
        if (!may_start(s, c->role)) {
            c->retry_at_us = 0;
            continue;
        }
        sup_child_start(s, c);
        if (c->pid != 0)
            log_at(LVL_LOG, "fork a new %s process with pid: %d", kind_name(c->role), (int)c->pid);
    }
}

/* What the end of a process means for those who use pgpool. */
static const char *what_follows(const struct sup *s, const struct sup_child *c)
{
    if (!may_start(s, c->role))
        return "It is not started again: pgpool is being stopped.";
    if (c->role == ROLE_WORKER)
        return "Another is started, and its clients are lost.";
    if (c->role == ROLE_CONTROL || c->role == ROLE_WEB)
        return "Another is started; who was connected to it connects again, and database clients "
               "notice nothing.";
    return "Another is started, and no client is lost.";
}

static void log_end(const struct sup *s, const struct sup_child *c, int status)
{
    const char *kind = kind_name(c->role);
    bool clean = WIFEXITED(status) && WEXITSTATUS(status) == 0;
    char hint[256];
    char name[32];

    if (clean && s->phase != SUP_RUNNING) {
        log_at(
            LVL_DEBUG1, "%s process with pid: %d exits with status %d", kind, (int)c->pid, status);
    } else if (WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV) {
        snprintf(hint, sizeof hint, "%s Please report it, with the core file.", what_follows(s, c));
        log_at_detail(LVL_WARNING, NULL, hint,
            "%s process with pid: %d was terminated by segmentation fault", kind, (int)c->pid);
    } else if (WIFSIGNALED(status)) {
        snprintf(hint, sizeof hint, "%s%s", what_follows(s, c),
            WTERMSIG(status) == SIGKILL
                ? " SIGKILL mostly comes from the system, when memory runs out."
                : "");
        log_at_detail(LVL_WARNING, sig_name(WTERMSIG(status), name, sizeof name), hint,
            "%s process with pid: %d exits with status %d by signal %d", kind, (int)c->pid, status,
            WTERMSIG(status));
    } else {
        log_at(LVL_LOG, "%s process with pid: %d exits with status %d", kind, (int)c->pid, status);
    }
}

struct dead_box {
    struct mailboxes *boxes;
    int slot;
};

static void drop_mail(void *ctx)
{
    const struct dead_box *box = ctx;

    mailbox_drain(box->boxes, box->slot);
}

/* Clients wait for a result that the dead process had asked for. Those of a worker whose box is
 * full look again when they have waited long enough. */
static void wake_waiters(void *ctx, uint64_t hash, uint64_t workers)
{
    const struct sup *s = ctx;
    int i;

    for (i = 0; i < s->nworkers; i++) {
        int to = s->first_worker_slot + i;

        if ((workers >> (i % 64) & 1) != 0 && proc_row(s->shm, to)->pid != 0)
            (void)mailbox_post(s->boxes, to, MAIL_CACHE_DONE, &hash, sizeof hash, -1);
    }
}

/* Clients of a worker need not wait any more for the dead one's to commit, or to take snapshots. */
static void wake_gate(void *ctx, int ordinal)
{
    const struct sup *s = ctx;
    int to = s->first_worker_slot + ordinal;

    if (proc_row(s->shm, to)->pid != 0)
        (void)mailbox_post(s->boxes, to, MAIL_GATE_OPEN, NULL, 0, -1);
}

/* What a dead worker's sessions had done for good on one server may lack on the others. */
static void tell_who_is_ahead(const struct sup *s)
{
    if (hold_left_ahead(s->shm) == -1)
        return;
    for (int slot = 0; slot < proc_nslots(s->shm); slot++) {
        if (proc_row(s->shm, slot)->role == ROLE_MONITOR)
            (void)mailbox_post(s->boxes, slot, MAIL_NODE_AHEAD, NULL, 0, -1);
    }
}

/* The dead process held rows, quotas and a mailbox: all of it goes back. */
static void give_back(struct sup *s, const struct sup_child *c)
{
    struct dead_box box = {s->boxes, c->slot};
    struct proc_row *row = proc_row(s->shm, c->slot);
    int32_t slot = c->slot;
    int i;

    shm_write_begin(&row->seq);
    row->pid = 0;
    row->restarts++;
    shm_write_end(&row->seq);
    atomic_store(&row->nclients, 0);
    atomic_store(&row->nwaiting, 0);
    if (orders_reclaim(s->shm, c->slot) > 0)
        log_at(LVL_LOG, "a pause that was not complete is taken back: who gave it is gone");
    if (hold_reclaim(s->shm, c->slot))
        log_at(LVL_LOG, "the clients are held no longer: who held them is gone");
    if (c->role == ROLE_INVALIDATOR)
        cache_streams_died(s->shm); /* what it held its successor forgets */
    else
        cache_died(s->shm, c->slot, clock_mono_us(), wake_waiters, s);
    if (c->role != ROLE_WORKER) {
        drop_mail(&box);
        return;
    }
    session_reclaim_worker(s->shm, c->ordinal, drop_mail, &box);
    tell_who_is_ahead(s);
    gate_reclaim_worker(s->shm, c->ordinal, wake_gate, s);
    for (i = 0; i < s->nworkers; i++) {
        int to = s->first_worker_slot + i;

        /* A box that is full belongs to a worker that will look at shared memory anyhow. */
        if (to != c->slot && proc_row(s->shm, to)->pid != 0)
            (void)mailbox_post(s->boxes, to, MAIL_WORKER_GONE, &slot, sizeof slot, -1);
    }
}

/* Who lived this long starts with the shortest back-off again. A worker may leave of its own accord
 * (child_max_connections): that is no reason to wait unless it does so all the time. */
static int64_t lived_long_ms(int status)
{
    return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? CLEAN_LONG_MS : LIVED_LONG_MS;
}

static void bury(struct sup *s, struct sup_child *c, int status)
{
    int64_t now_us = clock_mono_us();

    log_end(s, c, status);
    give_back(s, c);
    c->pid = 0;
    c->gen_told = 0;
    if (c->is_retiring) {
        c->is_retiring = false;
        c->is_spare = true;
    }
    if (c->is_spare || !may_start(s, c->role))
        return;
    if (now_us - c->started_us >= lived_long_ms(status) * CLOCK_US_PER_MS)
        c->backoff_ms = 0;
    schedule(c, now_us);
    if (c->backoff_ms > 1000)
        log_at_detail(LVL_WARNING, NULL,
            "The lines before tell why it ends; it is tried again and again.",
            "%s process keeps ending; the next one is forked in %d ms", kind_name(c->role),
            c->backoff_ms);
}

static struct sup_child *spare_place(struct sup *s)
{
    int i;

    for (i = 0; i < s->nchildren; i++) {
        if (s->children[i].is_spare)
            return &s->children[i];
    }
    return NULL;
}

void sup_child_succeed(struct sup *s, int slot, pid_t pid)
{
    struct sup_child *old = slot > 0 && slot <= s->nchildren ? &s->children[slot - 1] : NULL;
    struct sup_child *next = spare_place(s);

    if (old == NULL || next == NULL || old->role != ROLE_WORKER || old->pid != pid ||
        old->is_retiring || !may_start(s, ROLE_WORKER))
        return;
    /* What was posted to all workers while nobody was here to read it. */
    mailbox_drain(s->boxes, next->slot);
    sup_child_start(s, next);
    if (next->pid == 0) {
        next->retry_at_us = 0;
        return;
    }
    next->is_spare = false;
    next->backoff_ms = 0;
    old->is_retiring = true;
    log_at(LVL_LOG, "fork a new %s process with pid: %d", kind_name(next->role), (int)next->pid);
    sup_tell_children(s);
}

void sup_child_reap(struct sup *s)
{
    int status;
    pid_t pid;
    int i;

    while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
        for (i = 0; i < s->nchildren; i++) {
            if (s->children[i].pid == pid)
                bury(s, &s->children[i], status);
        }
    }
}

int sup_child_count(const struct sup *s, bool only_workers)
{
    int n = 0;
    int i;

    for (i = 0; i < s->nchildren; i++) {
        const struct sup_child *c = &s->children[i];
        bool counts = only_workers ? c->role == ROLE_WORKER : c->role != ROLE_LOGGER;

        if (counts && c->pid != 0)
            n++;
    }
    return n;
}

struct sup_child *sup_child_of_role(struct sup *s, enum proc_role role)
{
    int i;

    for (i = 0; i < s->nchildren; i++) {
        if (s->children[i].role == role)
            return &s->children[i];
    }
    return NULL;
}
