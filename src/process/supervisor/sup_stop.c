/* SPDX-License-Identifier: PostgreSQL
 * sup_stop.c: how pgpool ends: workers first, then monitor and control, the logger last.
 * Runs in: supervisor. Smart waits for clients, without limit unless shutdown_timeout sets one; all
 * other waits have one, after which SIGKILL ends them. A harder request replaces a softer one. */
#include "config.h"

#include "process/supervisor/sup_int.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/log.h"
#include "sys/clock.h"
#include "sys/fd.h"
#include "sys/logdest.h"
#include "sys/notify.h"

#define FAST_LIMIT_MS      30000
#define IMMEDIATE_LIMIT_MS 2000
#define END_LIMIT_MS       10000
#define LOGGER_LIMIT_MS    5000
#define LOGGER_POLL_MS     10

static int hardness(char mode)
{
    static const char order[] = "sfi";
    const char *at = mode == 0 ? NULL : strchr(order, mode);

    return at == NULL ? 0 : (int)(at - order) + 1;
}

static void set_limits(struct sup *s)
{
    int64_t now_us = clock_mono_us();
    int64_t timeout_ms = conf_of(s->gen)->shutdown_timeout_ms;

    s->upgrade_at_us = 0;
    s->kill_at_us = 0;
    if (s->stop_mode == 'i')
        s->kill_at_us = now_us + IMMEDIATE_LIMIT_MS * CLOCK_US_PER_MS;
    else if (s->phase == SUP_ENDING)
        s->kill_at_us = now_us + END_LIMIT_MS * CLOCK_US_PER_MS;
    else if (s->stop_mode == 'f')
        s->kill_at_us = now_us + FAST_LIMIT_MS * CLOCK_US_PER_MS;
    else if (timeout_ms > 0)
        s->upgrade_at_us = now_us + timeout_ms * CLOCK_US_PER_MS;
}

void sup_stop_request(struct sup *s, char mode, int signo)
{
    if (hardness(mode) == 0 || hardness(mode) <= hardness(s->stop_mode))
        return;
    log_at_detail(LVL_LOG, NULL,
        mode == 's' ? "It waits until all clients have left, or for shutdown_timeout where that is "
                      "set; pgpool stop -m fast ends them."
                    : NULL,
        "shutting down by signal %d", signo);
    if (s->phase == SUP_RUNNING) {
        s->phase = SUP_DRAINING;
        atomic_store(&proc_row(s->shm, PROC_SLOT_SUPERVISOR)->is_leaving, 1);
        notify_stopping(mode == 's' ? "waiting for clients to leave" : "stopping");
        log_at(LVL_LOG, "terminating all child processes");
        sup_listen_close_clients(s);
    }
    s->stop_mode = mode;
    set_limits(s);
    sup_tell_children(s);
}

static void kill_rest(struct sup *s)
{
    int i;

    for (i = 0; i < s->nchildren; i++) {
        const struct sup_child *c = &s->children[i];

        if (c->pid == 0 || sup_stop_letter(s, c) == 0)
            continue;
        log_at_detail(LVL_WARNING, NULL, "It hung: please report it, with what the log has before.",
            "%s process with pid: %d did not stop in time and is killed", proc_role_name(c->role),
            (int)c->pid);
        kill(c->pid, SIGKILL);
    }
    s->kill_at_us = 0;
}

void sup_stop_step(struct sup *s, int64_t now_us)
{
    if (s->phase == SUP_RUNNING)
        return;
    if (s->upgrade_at_us != 0 && now_us >= s->upgrade_at_us) {
        log_at(LVL_LOG,
            "clients are still connected after shutdown_timeout: the stop becomes a fast one");
        sup_stop_request(s, 'f', SIGINT);
    }
    if (s->kill_at_us != 0 && now_us >= s->kill_at_us)
        kill_rest(s);
    if (s->phase == SUP_DRAINING && sup_child_count(s, true) == 0) {
        s->phase = SUP_ENDING;
        sup_listen_close_control(s);
        set_limits(s);
        sup_tell_children(s);
    }
    if (s->phase == SUP_ENDING && sup_child_count(s, false) == 0)
        s->phase = SUP_DONE;
}

/* The logger sees the end of its input once this process, the last writer, has let go of it. */
static void end_logger(struct sup *s)
{
    const struct sup_child *c = sup_child_of_role(s, ROLE_LOGGER);
    int64_t deadline_us = clock_mono_us() + LOGGER_LIMIT_MS * CLOCK_US_PER_MS;
    int status;

    logdest_set_collector(-1);
    if (s->plain_stderr != -1)
        dup2(s->plain_stderr, STDERR_FILENO);
    fd_close(&s->log_ends[1]);
    fd_close(&s->err_ends[1]);
    if (c == NULL || c->pid == 0)
        return;
    while (waitpid(c->pid, &status, WNOHANG) == 0) {
        if (clock_mono_us() > deadline_us) {
            kill(c->pid, SIGKILL);
            waitpid(c->pid, &status, 0);
            return;
        }
        poll(NULL, 0, LOGGER_POLL_MS);
    }
}

void sup_stop_finish(struct sup *s)
{
    sup_listen_close_clients(s);
    sup_listen_close_control(s);
    log_at(LVL_LOG, "Pgpool-II system is shutdown");
    end_logger(s);
    pidfile_drop(&s->pidfile);
}
