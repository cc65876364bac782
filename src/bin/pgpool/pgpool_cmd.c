/* SPDX-License-Identifier: PostgreSQL
 * pgpool_cmd.c: what the pgpool command does to a pgpool that runs already.
 * Runs in: the command line. A pid is believed only while its process holds the file. */
#include "config.h"

#include "bin/pgpool/pgpool_cmd.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "bin/pgpool/pgpool_opts.h"
#include "sys/clock.h"
#include "sys/pidfile.h"

#define LOOK_EVERY_MS   50
#define DOT_EVERY_MS    1000
#define RESEND_EVERY_MS 5000

int pgpool_cmd_check_pidfile(const char *pid_path)
{
    struct err err = {0};
    int pid;

    switch (pidfile_look(pid_path, &pid, &err)) {
    case PIDFILE_LIVE:
        fprintf(stderr, "ERROR: pid file found. is another pgpool(%d) is running?\n", pid);
        return PGPOOL_EXIT_FAILED;
    case PIDFILE_STALE:
        fprintf(stderr,
            "NOTICE: pid file found but it seems bogus. Trying to start pgpool anyway...\n");
        return PGPOOL_EXIT_OK;
    case PIDFILE_BROKEN:
        log_err(LVL_FATAL, &err);
        return PGPOOL_EXIT_FATAL;
    case PIDFILE_NONE:
        break;
    }
    return PGPOOL_EXIT_OK;
}

/* The pid of the running pgpool; 0 after saying that there is none. */
static int find_running(const char *pid_path, const char *what)
{
    struct err err = {0};
    int pid;

    switch (pidfile_look(pid_path, &pid, &err)) {
    case PIDFILE_LIVE:
        if (pid == 0)
            log_at_detail(LVL_FATAL, "The process that holds the pid file is in another container.",
                "Run the command there.", "could not %s pid: %d", what, pid);
        return pid;
    case PIDFILE_STALE:
        log_at_detail(LVL_FATAL, "No such process",
            "The pid file was left by a pgpool that is gone; the next start replaces it.",
            "could not %s pid: %d", what, pid);
        return 0;
    case PIDFILE_BROKEN:
        log_err(LVL_FATAL, &err);
        return 0;
    case PIDFILE_NONE:
        break;
    }
    log_at_detail(LVL_FATAL, NULL,
        "Is pgpool running? See pid_file_name in the configuration file.",
        "could not read pid file");
    return 0;
}

static bool is_running(const char *pid_path, int pid)
{
    struct err err = {0};
    struct pidfile left;
    int holder;
    enum pidfile_state now = pidfile_look(pid_path, &holder, &err);

    /* Killed while it stopped: the file is removed as its holder would, so that the file of another
     * that starts at this moment stays. */
    if (now == PIDFILE_STALE && pidfile_hold(&left, pid_path, &holder, &err) == 0)
        pidfile_drop(&left);
    return now == PIDFILE_LIVE && holder == pid && kill(pid, 0) == 0;
}

int pgpool_cmd_stop(const char *pid_path, int signo)
{
    int pid = find_running(pid_path, "stop process with");
    int64_t begin_us = clock_mono_us();
    int64_t dots = 0;
    int64_t sent = 0;

    if (pid == 0)
        return PGPOOL_EXIT_FATAL;
    while (is_running(pid_path, pid)) {
        int64_t ms = (clock_mono_us() - begin_us) / CLOCK_US_PER_MS;

        if (ms >= sent * RESEND_EVERY_MS) {
            if (kill(pid, signo) == -1 && errno != ESRCH) {
                log_at_detail(
                    LVL_FATAL, strerror(errno), NULL, "could not stop process with pid: %d", pid);
                return PGPOOL_EXIT_FATAL;
            }
            if (sent++ == 0)
                log_at(LVL_LOG, "stop request sent to pgpool (pid: %d). waiting for termination...",
                    pid);
        }
        if (ms >= (dots + 1) * DOT_EVERY_MS) {
            fputc('.', stderr);
            dots++;
        }
        poll(NULL, 0, LOOK_EVERY_MS);
    }
    fputs("done.\n", stderr);
    return PGPOOL_EXIT_OK;
}

int pgpool_cmd_reload(const char *pid_path)
{
    int pid = find_running(pid_path, "reload configuration file");

    if (pid == 0)
        return PGPOOL_EXIT_FAILED;
    if (kill(pid, SIGHUP) == 0)
        return PGPOOL_EXIT_OK;
    log_at_detail(
        LVL_FATAL, strerror(errno), NULL, "could not reload configuration file pid: %d", pid);
    return PGPOOL_EXIT_FAILED;
}

/* The program beside this one is of the same build; an installed one stands where the build put it.
 */
int pgpool_cmd_top(char **args)
{
    static const char name[] = "pgpool-top";
    char path[PROC_PATH_BYTES];
    ssize_t n = readlink("/proc/self/exe", path, sizeof path - sizeof name - 1);
    char *slash;

    if (n > 0) {
        path[n] = '\0';
        slash = strrchr(path, '/');
        snprintf(slash != NULL ? slash + 1 : path, sizeof name, "%s", name);
        (void)execv(path, args);
    }
    (void)execv(PKGLIBEXECDIR "/pgpool-top", args);
    fprintf(stderr, "pgpool: \"%s/%s\" cannot be run: %s. Was pgpool built without ncurses?\n",
        PKGLIBEXECDIR, name, strerror(errno));
    return PGPOOL_EXIT_FAILED;
}
