/* SPDX-License-Identifier: PostgreSQL
 * fd.c: small things about descriptors. */
#include "config.h"

#include "sys/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#define FIRST_OWN_FD 3

int fd_set_nonblock(int fd, int on)
{
    int flags = fcntl(fd, F_GETFL);

    if (flags == -1)
        return -1;
    return fcntl(fd, F_SETFL, on ? flags | O_NONBLOCK : flags & ~O_NONBLOCK);
}

int fd_set_cloexec(int fd, int on)
{
    return fcntl(fd, F_SETFD, on ? FD_CLOEXEC : 0);
}

void fd_close(int *fd)
{
    if (*fd != -1)
        close(*fd);
    *fd = -1;
}

static int compare_ints(const void *a, const void *b)
{
    int x = *(const int *)a;
    int y = *(const int *)b;

    return (x > y) - (x < y);
}

void fd_close_others(int *keep, size_t n)
{
    unsigned next = FIRST_OWN_FD;
    size_t i;

    qsort(keep, n, sizeof keep[0], compare_ints);
    for (i = 0; i < n; i++) {
        unsigned fd = (unsigned)keep[i];

        if (keep[i] < FIRST_OWN_FD)
            continue;
        if (fd > next)
            close_range(next, fd - 1, 0);
        if (fd >= next)
            next = fd + 1;
    }
    close_range(next, UINT_MAX, 0);
}

int fd_write_all(int fd, const void *p, size_t n)
{
    const char *at = p;

    while (n > 0) {
        ssize_t done = write(fd, at, n);

        if (done == -1 && errno == EINTR)
            continue;
        if (done == -1)
            return -1;
        at += done;
        n -= (size_t)done;
    }
    return 0;
}

int fd_null_stdio(int also_open_ones, struct err *err)
{
    int null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);
    int fd;

    if (null_fd == -1) {
        err_set_errno(err, errno, "could not open \"%s\"", "/dev/null");
        return -1;
    }
    for (fd = 0; fd < FIRST_OWN_FD; fd++) {
        if (fd == null_fd)
            fd_set_cloexec(fd, 0);
        else if (also_open_ones || fcntl(fd, F_GETFD) == -1)
            dup2(null_fd, fd);
    }
    if (null_fd >= FIRST_OWN_FD)
        close(null_fd);
    return 0;
}

int fd_of_text(const char *name, const void *p, size_t n, struct err *err)
{
    int fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);

    if (fd == -1) {
        err_set_errno(err, errno, "could not make a file in memory");
        return -1;
    }
    if (fd_write_all(fd, p, n) == -1 ||
        fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_SEAL) == -1) {
        err_set_errno(err, errno, "could not fill a file in memory");
        close(fd);
        return -1;
    }
    return fd;
}

long fd_raise_limit(void)
{
    struct rlimit lim;

    if (getrlimit(RLIMIT_NOFILE, &lim) == -1)
        return -1;
    if (lim.rlim_cur < lim.rlim_max) {
        lim.rlim_cur = lim.rlim_max;
        setrlimit(RLIMIT_NOFILE, &lim);
        getrlimit(RLIMIT_NOFILE, &lim);
    }
    return lim.rlim_cur > LONG_MAX ? LONG_MAX : (long)lim.rlim_cur;
}
