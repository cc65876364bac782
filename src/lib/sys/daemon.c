/* SPDX-License-Identifier: PostgreSQL
 * daemon.c: goes to the background.
 * Runs in: supervisor. */
#include "config.h"

#include "sys/daemon.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "sys/fd.h"
#include "sys/logdest.h"

/* The foreground part: one byte means started, end of file means that the child gave up. */
_Noreturn static void wait_for_child(pid_t child, int fd)
{
    char byte;
    ssize_t n;
    int status = 0;

    do {
        n = read(fd, &byte, 1);
    } while (n == -1 && errno == EINTR);
    if (n == 1)
        _exit(0); /* ban: this half only carries the exit status to the shell */
    if (waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) != 0)
        _exit(WEXITSTATUS(status)); /* ban: as above */
    _exit(1);                       /* ban: as above */
}

int daemon_detach(struct err *err)
{
    int ends[2];
    int keep;
    pid_t child;

    if (pipe2(ends, O_CLOEXEC) == -1) {
        err_set_errno(err, errno, "could not make a pipe");
        return -1;
    }
    child = fork();
    if (child == -1) {
        err_set_errno(err, errno, "could not go to the background");
        close(ends[0]);
        close(ends[1]);
        return -1;
    }
    if (child > 0) {
        close(ends[1]);
        wait_for_child(child, ends[0]);
    }
    keep = ends[1];
    setsid();
    /* Whoever waits for the end of a pipe that was handed to us would wait for ever. */
    logdest_forget();
    fd_close_others(&keep, 1);
    if (chdir("/") == -1) {
        err_set_errno(err, errno, "could not enter folder \"/\"");
        close(keep);
        return -1;
    }
    return keep;
}

void daemon_started(int *fd)
{
    if (*fd == -1)
        return;
    (void)fd_write_all(*fd, "", 1);
    fd_close(fd);
}
