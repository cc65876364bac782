/* SPDX-License-Identifier: PostgreSQL
 * dial.c: connecting without blocking. A dial is RESOLVING (libuv holds a request of its own that
 * may outlive a cancelled dial), then CONNECTING to one address after the other. */
#include "config.h"

#include "net/dial.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/mem.h"

#define DIAL_HOST_BYTES 256

struct dial {
    struct loop *lp;
    struct io io;
    struct timer timer;
    struct task task; /* first step and immediate failures happen from here */
    uv_getaddrinfo_t request;
    bool is_resolving;
    bool is_cancelled;
    bool io_is_open;
    bool io_is_closing; /* dial_on_io_closed is on its way */
    int fd;
    int port;
    int last_errno;
    int64_t timeout_ms;
    struct addrinfo *addresses;
    struct addrinfo *next;
    dial_fn *fn;
    void *ctx;
    char host[DIAL_HOST_BYTES];
};

static void dial_try_next(struct dial *d);

static bool is_loopback(const struct sockaddr *peer)
{
    const struct sockaddr_in *v4 = (const void *)peer;
    const struct sockaddr_in6 *v6 = (const void *)peer;

    if (peer->sa_family == AF_INET)
        return ntohl(v4->sin_addr.s_addr) >> 24 == IN_LOOPBACKNET;
    return peer->sa_family == AF_INET6 && IN6_IS_ADDR_LOOPBACK(&v6->sin6_addr);
}

/* BBR, which many machines have as their default, measures the way to the other side and paces by a
 * clock what is sent: work for each segment, and the way to this machine itself needs none. Every
 * user may choose reno. */
static void spare_pacing(int fd, const struct sockaddr *peer)
{
    if (is_loopback(peer) && net_is_paced(fd))
        net_unpace(fd, peer);
}

void net_unpace(int fd, const struct sockaddr *peer)
{
    if (is_loopback(peer))
        (void)setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, "reno", 4);
}

bool net_is_paced(int fd)
{
    char name[16] = "";
    socklen_t len = sizeof name - 1;

    return getsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, name, &len) == 0 &&
           strncmp(name, "bbr", 3) == 0;
}

void net_tune_socket(int fd)
{
    int on = 1;

    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    (void)setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
}

static bool unix_peer(const struct sockaddr_un *sun, char host[NET_PEER_BYTES], int *port)
{
    char path[NET_PEER_BYTES];
    char *name;

    snprintf(path, sizeof path, "%s", sun->sun_path); /* ends in a NUL there, see dial_try_unix */
    name = strrchr(path, '/');
    if (name == NULL || sscanf(name, "/.s.PGSQL.%d", port) != 1)
        return false;
    *name = '\0';
    snprintf(host, NET_PEER_BYTES, "%s", path);
    return true;
}

bool net_peer(int fd, char host[NET_PEER_BYTES], int *port)
{
    struct sockaddr_storage peer;
    char service[16];
    socklen_t len = sizeof peer;

    memset(&peer, 0, sizeof peer);
    if (getpeername(fd, (struct sockaddr *)&peer, &len) == -1)
        return false;
    if (peer.ss_family == AF_UNIX)
        return unix_peer((const void *)&peer, host, port);
    if (getnameinfo((struct sockaddr *)&peer, len, host, NET_PEER_BYTES, service, sizeof service,
            NI_NUMERICHOST | NI_NUMERICSERV) != 0)
        return false;
    *port = atoi(service);
    return true;
}

/* The system's choice is what a fresh socket has. */
static int keepalive_default(int option)
{
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int value = 0;
    socklen_t len = sizeof value;

    if (fd == -1)
        return 0;
    if (getsockopt(fd, IPPROTO_TCP, option, &value, &len) == -1)
        value = 0;
    close(fd);
    return value;
}

/* Nothing is set that is as it should be: mostly that is one look, and no unix socket is touched.
 */
static void set_keepalive_option(int fd, int option, int64_t wanted)
{
    int now = 0;
    socklen_t len = sizeof now;
    int value = (int)wanted;

    if (getsockopt(fd, IPPROTO_TCP, option, &now, &len) == -1)
        return;
    if (value == 0)
        value = keepalive_default(option);
    if (value != 0 && value != now)
        (void)setsockopt(fd, IPPROTO_TCP, option, &value, sizeof value);
}

void net_set_keepalive(int fd, int64_t idle_ms, int64_t interval_ms, int count)
{
    set_keepalive_option(fd, TCP_KEEPIDLE, (idle_ms + 999) / 1000);
    set_keepalive_option(fd, TCP_KEEPINTVL, (interval_ms + 999) / 1000);
    set_keepalive_option(fd, TCP_KEEPCNT, count);
}

static void dial_close_fd(struct dial *d)
{
    if (d->fd == -1)
        return;
    if (d->io_is_open)
        io_want(&d->io, 0);
    close(d->fd);
    d->fd = -1;
}

static void dial_release(struct dial *d)
{
    timer_stop(d->lp, &d->timer);
    task_cancel(&d->task);
    if (d->addresses != NULL)
        uv_freeaddrinfo(d->addresses);
    mem_free(d);
}

static void dial_on_io_closed(struct io *io)
{
    struct dial *d = LIST_ENTRY(io, struct dial, io);

    d->io_is_open = false;
    d->io_is_closing = false;
    if (d->is_cancelled)
        dial_release(d);
    else
        dial_try_next(d);
}

static void dial_close_io(struct dial *d)
{
    if (d->io_is_closing)
        return;
    d->io_is_closing = true;
    io_close(&d->io, dial_on_io_closed);
}

/* Ends the dial: the callback runs, then the memory goes as soon as libuv lets it. */
static void dial_finish(struct dial *d, int fd, const struct err *err)
{
    dial_fn *fn = d->fn;
    void *ctx = d->ctx;

    d->is_cancelled = true;
    d->fd = -1;
    timer_stop(d->lp, &d->timer);
    if (d->io_is_open)
        dial_close_io(d);
    else if (!d->is_resolving)
        dial_release(d);
    fn(fd, err, ctx);
}

static void dial_fail(struct dial *d, const char *what)
{
    struct err err;

    err_clear(&err);
    err_set_fatal(
        &err, "08001", "could not connect to server \"%s\" port %d: %s", d->host, d->port, what);
    dial_finish(d, -1, &err);
}

static void dial_on_timeout(struct timer *t)
{
    struct dial *d = LIST_ENTRY(t, struct dial, timer);

    dial_close_fd(d);
    dial_fail(d, "connection timed out");
}

static void dial_on_writable(struct io *io, int events)
{
    struct dial *d = LIST_ENTRY(io, struct dial, io);
    int error = 0;
    socklen_t len = sizeof error;

    (void)events;
    if (getsockopt(d->fd, SOL_SOCKET, SO_ERROR, &error, &len) == -1)
        error = errno;
    if (error == 0) {
        dial_finish(d, d->fd, NULL);
        return;
    }
    d->last_errno = error;
    dial_close_fd(d);
    dial_close_io(d);
}

/* Connects to one address; false when it failed at once. */
static bool dial_try(struct dial *d, int family, const struct sockaddr *sa, socklen_t len)
{
    d->fd = socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (d->fd == -1) {
        d->last_errno = errno;
        return false;
    }
    if (family != AF_UNIX)
        net_tune_socket(d->fd);
    spare_pacing(d->fd, sa);
    if (connect(d->fd, sa, len) == -1 && errno != EINPROGRESS) {
        d->last_errno = errno;
        close(d->fd);
        d->fd = -1;
        return false;
    }
    io_open(d->lp, &d->io, d->fd, dial_on_writable);
    d->io_is_open = true;
    io_want(&d->io, IO_WRITE);
    return true;
}

static void dial_try_next(struct dial *d)
{
    struct addrinfo *ai;

    while ((ai = d->next) != NULL) {
        d->next = ai->ai_next;
        if (dial_try(d, ai->ai_family, ai->ai_addr, ai->ai_addrlen))
            return;
    }
    dial_fail(d, strerror(d->last_errno == 0 ? ENOENT : d->last_errno));
}

static void dial_try_unix(struct dial *d)
{
    struct sockaddr_un sun = {.sun_family = AF_UNIX};
    int n = snprintf(sun.sun_path, sizeof sun.sun_path, "%s/.s.PGSQL.%d", d->host, d->port);

    if (n < 0 || (size_t)n >= sizeof sun.sun_path)
        dial_fail(d, "socket path is too long");
    else if (!dial_try(d, AF_UNIX, (struct sockaddr *)&sun, sizeof sun))
        dial_fail(d, strerror(d->last_errno));
}

static void dial_on_resolved(uv_getaddrinfo_t *request, int status, struct addrinfo *res)
{
    struct dial *d = request->data;

    d->is_resolving = false;
    if (d->is_cancelled) {
        if (res != NULL)
            uv_freeaddrinfo(res);
        dial_release(d);
        return;
    }
    if (status != 0) {
        dial_fail(d, uv_strerror(status));
        return;
    }
    d->addresses = res;
    d->next = res;
    dial_try_next(d);
}

static void dial_resolve(struct dial *d)
{
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_family = AF_UNSPEC};
    struct addrinfo numeric = {
        .ai_socktype = SOCK_STREAM, .ai_family = AF_UNSPEC, .ai_flags = AI_NUMERICHOST};
    char service[16];

    snprintf(service, sizeof service, "%d", d->port);
    if (getaddrinfo(d->host, service, &numeric, &d->addresses) == 0) {
        d->next = d->addresses;
        dial_try_next(d);
        return;
    }
    d->addresses = NULL;
    d->request.data = d;
    d->is_resolving = true;
    if (uv_getaddrinfo(loop_uv(d->lp), &d->request, dial_on_resolved, d->host, service, &hints) !=
        0) {
        d->is_resolving = false;
        dial_fail(d, "name resolution could not be started");
    }
}

static void dial_on_first_step(struct task *t)
{
    struct dial *d = LIST_ENTRY(t, struct dial, task);

    if (d->host[0] == '/')
        dial_try_unix(d);
    else
        dial_resolve(d);
}

struct dial *dial_start(
    struct loop *lp, const char *host, int port, int64_t timeout_ms, dial_fn *fn, void *ctx)
{
    struct dial *d = mem_alloc_zero(sizeof *d);

    d->lp = lp;
    d->fd = -1;
    d->port = port;
    d->timeout_ms = timeout_ms;
    d->fn = fn;
    d->ctx = ctx;
    snprintf(d->host, sizeof d->host, "%s", host[0] == '\0' ? "/tmp" : host);
    timer_init(&d->timer, dial_on_timeout);
    task_init(&d->task, dial_on_first_step);
    task_post(lp, &d->task);
    if (timeout_ms > 0)
        timer_start(lp, &d->timer, timeout_ms);
    return d;
}

void dial_cancel(struct dial **dp)
{
    struct dial *d = *dp;

    *dp = NULL;
    if (d == NULL)
        return;
    d->is_cancelled = true;
    dial_close_fd(d);
    timer_stop(d->lp, &d->timer);
    task_cancel(&d->task);
    if (d->io_is_open)
        dial_close_io(d);
    else if (!d->is_resolving)
        dial_release(d);
}
