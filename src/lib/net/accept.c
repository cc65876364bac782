/* SPDX-License-Identifier: PostgreSQL
 * accept.c: takes connections from the listening sockets of a process.
 * Runs in: workers, control, web, watchdog. */
#include "config.h"

#include "net/accept.h"

#include <errno.h>
#include <string.h>

#include "base/log.h"

#define RETRY_MS 200

/* What accept() says about a connection that is gone again, or of the network: the next one may be
 * better. */
static bool is_about_one(int errnum)
{
    switch (errnum) {
    case EAGAIN:
    case EINTR:
    case ECONNABORTED:
    case EPERM:
    case EPROTO:
    case ENOPROTOOPT:
    case EOPNOTSUPP:
    case ENETDOWN:
    case ENETUNREACH:
    case EHOSTDOWN:
    case EHOSTUNREACH:
    case ENONET:
    case ETIMEDOUT:
        return true;
    default:
        return false;
    }
}

static void want(struct acceptors *a, int events)
{
    int i;

    for (i = 0; i < a->n; i++)
        io_want(&a->one[i].io, events);
}

static void back_off(struct acceptors *a, int errnum)
{
    if (errnum != EINVAL) /* pgpool ends: the supervisor has shut the socket down */
        log_caused_detail(LVL_WARNING, NULL,
            "No descriptors are left, mostly: raise ulimit -n (systemd: LimitNOFILE), or lower "
            "the limits of clients.",
            "%s: %s", a->how.complaint, strerror(errnum));
    want(a, 0);
    timer_start(a->lp, &a->retry, RETRY_MS);
}

static void on_ready(struct io *io, int events)
{
    struct acceptor *one = LIST_ENTRY(io, struct acceptor, io);
    struct acceptors *a = one->of;
    struct sockaddr_storage from;
    socklen_t len;
    int fd;
    int left;

    for (left = a->how.per_turn; left > 0 && a->is_started; left--) {
        len = sizeof from;
        memset(&from, 0, sizeof from);
        fd = accept4(one->io.fd, (struct sockaddr *)&from, &len, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (fd == -1) {
            if (!is_about_one(errno))
                back_off(a, errno);
            return;
        }
        a->how.fn(a, (int)(one - a->one), fd, &from, len);
    }
}

static void on_retry(struct timer *t)
{
    struct acceptors *a = LIST_ENTRY(t, struct acceptors, retry);

    want(a, a->how.events);
}

void acceptors_open(
    struct acceptors *a, struct loop *lp, const int *fds, int n, const struct acceptors_how *how)
{
    int i;

    a->lp = lp;
    a->how = *how;
    a->n = n;
    a->is_started = false;
    timer_init(&a->retry, on_retry);
    for (i = 0; i < n; i++) {
        a->one[i].of = a;
        io_open(lp, &a->one[i].io, fds[i], on_ready);
    }
}

void acceptors_start(struct acceptors *a)
{
    if (a->is_started)
        return;
    a->is_started = true;
    want(a, a->how.events);
}

void acceptors_stop(struct acceptors *a)
{
    if (!a->is_started)
        return;
    a->is_started = false;
    timer_stop(a->lp, &a->retry);
    want(a, 0);
}

static void on_closed(struct io *io)
{
}

void acceptors_close(struct acceptors *a)
{
    int i;

    acceptors_stop(a);
    for (i = 0; i < a->n; i++)
        io_close(&a->one[i].io, on_closed);
    a->n = 0;
}
