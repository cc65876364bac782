/* SPDX-License-Identifier: PostgreSQL
 * sig.c: signal dispositions and the supervisor's signal descriptor. */
#include "config.h"

#include "sys/sig.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

int sig_open_fd(const int *list, int n, struct err *err)
{
    sigset_t set;
    int fd;
    int i;

    sigemptyset(&set);
    for (i = 0; i < n; i++)
        sigaddset(&set, list[i]);
    sigprocmask(SIG_BLOCK, &set, NULL);
    fd = signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
    if (fd == -1)
        err_set_errno(err, errno, "could not make a signal descriptor");
    return fd;
}

int sig_take(int fd, int *sender_pid)
{
    struct signalfd_siginfo info;

    if (read(fd, &info, sizeof info) != (ssize_t)sizeof info)
        return 0;
    *sender_pid = info.ssi_code <= 0 ? (int)info.ssi_pid : 0;
    return (int)info.ssi_signo;
}

void sig_reset_all(const int *ignored, int n)
{
    sigset_t none;
    int signo;
    int i;

    for (signo = 1; signo < NSIG; signo++) {
        if (signo != SIGKILL && signo != SIGSTOP)
            signal(signo, SIG_DFL);
    }
    for (i = 0; i < n; i++)
        signal(ignored[i], SIG_IGN);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
}

void sig_ignore(int signo)
{
    signal(signo, SIG_IGN);
}

const char *sig_name(int signo, char *room, unsigned size)
{
    const char *abbrev = sigabbrev_np(signo);

    if (abbrev == NULL)
        snprintf(room, size, "signal %d", signo);
    else
        snprintf(room, size, "SIG%s", abbrev);
    return room;
}
