/* SPDX-License-Identifier: PostgreSQL
 * pidfile.c: the file that says which process is the running pgpool. */
#include "config.h"

#include "sys/pidfile.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define PIDFILE_MODE      0600
#define PIDFILE_MAX_TRIES 10

static struct flock whole_file(short type)
{
    struct flock lock = {0};

    lock.l_type = type;
    lock.l_whence = SEEK_SET;
    return lock;
}

/* The pid a file names, 0 when it names none. */
static int read_pid(int fd)
{
    char text[32];
    ssize_t n = pread(fd, text, sizeof text - 1, 0);
    long pid;

    if (n <= 0)
        return 0;
    text[n] = '\0';
    pid = strtol(text, NULL, 10);
    return pid > 0 && pid <= 0x7fffffff ? (int)pid : 0;
}

/* 1: held, 0: free, -1: the file system cannot tell. *pid is the holder, 0 when it has no number
 * here because it lives in another pid namespace. */
static int look_at_lock(int fd, int *pid)
{
    struct flock lock = whole_file(F_WRLCK);

    *pid = 0;
    if (fcntl(fd, F_GETLK, &lock) == -1)
        return -1;
    if (lock.l_type == F_UNLCK)
        return 0;
    if (lock.l_pid > 0)
        *pid = (int)lock.l_pid;
    return 1;
}

enum pidfile_state pidfile_look(const char *path, int *pid, struct err *err)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    int held;

    *pid = 0;
    if (fd == -1 && errno == ENOENT)
        return PIDFILE_NONE;
    if (fd == -1) {
        err_set_errno(err, errno, "could not open pid file \"%s\"", path);
        return PIDFILE_BROKEN;
    }
    held = look_at_lock(fd, pid);
    if (held == -1)
        err_set_errno(err, errno, "could not ask for the lock of pid file \"%s\"", path);
    if (held == 0)
        *pid = read_pid(fd);
    close(fd);
    if (held == -1)
        return PIDFILE_BROKEN;
    return held == 0 ? PIDFILE_STALE : PIDFILE_LIVE;
}

/* True when `path` is still the file that `fd` has open: not removed or replaced meanwhile. */
static int is_same_file(int fd, const char *path)
{
    struct stat a;
    struct stat b;

    return fstat(fd, &a) == 0 && stat(path, &b) == 0 && a.st_dev == b.st_dev &&
           a.st_ino == b.st_ino;
}

/* 1: locked, 0: look again, -1: failed or held by another. */
static int try_lock(struct pidfile *p, int *holder_pid, struct err *err)
{
    struct flock lock = whole_file(F_WRLCK);
    bool is_link;

    p->fd = open(p->path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, PIDFILE_MODE);
    if (p->fd == -1) {
        is_link = errno == ELOOP;
        err_set_errno(err, errno, "could not open pid file \"%s\"", p->path);
        if (is_link)
            err_hint(err, "It is a symbolic link, and what others may have linked is not written "
                          "to: take it away.");
        else
            err_hint(
                err, "Its folder must exist and be writable; pid_file_name names another place.");
        return -1;
    }
    if (fcntl(p->fd, F_SETLK, &lock) == -1) {
        if (errno == EAGAIN || errno == EACCES) {
            if (look_at_lock(p->fd, holder_pid) == 0)
                return 0;
            err_set(err, "55006", "pid file \"%s\" is held by process %d", p->path, *holder_pid);
            err_hint(err, "Another pgpool runs with this file: stop it, or give this one its own "
                          "pid_file_name.");
        } else {
            err_set_errno(err, errno, "could not lock pid file \"%s\"", p->path);
        }
        return -1;
    }
    return is_same_file(p->fd, p->path);
}

/* Writes over what is there before cutting the rest: a reader never finds an empty file. */
static int write_pid(struct pidfile *p, struct err *err)
{
    char text[32];
    int n = snprintf(text, sizeof text, "%d\n", (int)getpid());

    if (pwrite(p->fd, text, (size_t)n, 0) != n || ftruncate(p->fd, n) == -1 || fsync(p->fd) == -1) {
        err_set_errno(err, errno, "could not write pid file \"%s\"", p->path);
        return -1;
    }
    return 0;
}

int pidfile_hold(struct pidfile *p, const char *path, int *holder_pid, struct err *err)
{
    int result = 0;
    int tries;

    *holder_pid = 0;
    snprintf(p->path, sizeof p->path, "%s", path);
    for (tries = 0; tries < PIDFILE_MAX_TRIES && result == 0; tries++) {
        result = try_lock(p, holder_pid, err);
        if (result != 1 && p->fd != -1)
            close(p->fd);
    }
    if (result == 1 && write_pid(p, err) == 0)
        return 0;
    if (result == 1)
        pidfile_drop(p);
    if (result == 0)
        err_set(err, "55006", "pid file \"%s\" changes all the time", path);
    p->fd = -1;
    return -1;
}

void pidfile_drop(struct pidfile *p)
{
    if (p->fd == -1)
        return;
    if (is_same_file(p->fd, p->path))
        unlink(p->path);
    close(p->fd);
    p->fd = -1;
}
