/* SPDX-License-Identifier: PostgreSQL
 * stream.c: sockets of clients and servers. */
#include "config.h"

#include "net/stream.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/assert.h"

#include "tls_int.h"

/* Plain streams are the hot path. */
#define IS_TLS(s) __builtin_expect((s)->tls != NULL, 0)

static void stream_update_interest(struct stream *s)
{
    int events = 0;

    if (s->reading)
        events = IO_READ;
    else if (s->ops->on_hung_up != NULL && !s->hung_up)
        events = IO_GONE;
    if (stream_is_clogged(s) || s->awaits_room)
        events |= IO_WRITE;
    io_want(&s->io, events);
}

/* Not only has the other side finished sending: nothing reaches it any more. */
static bool stream_is_broken(const struct stream *s)
{
    struct pollfd p = {.fd = s->fd, .events = 0};

    return poll(&p, 1, 0) == 1 && (p.revents & POLLERR) != 0;
}

static void stream_on_gone(struct stream *s)
{
    s->hung_up = true;
    stream_update_interest(s);
    s->ops->on_hung_up(s, stream_is_broken(s));
}

static void stream_on_writable(struct stream *s)
{
    size_t left = buf_unread(&s->out);
    ssize_t n;

    if (left > 0) {
        n = send(s->fd, s->out.data + s->out.pos, left, MSG_NOSIGNAL);
        if (n == -1) {
            if (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR)
                return;
            /* Broken: forget the bytes, let the reader find the reason. */
            s->send_failed = true;
            buf_free(&s->out);
        } else {
            buf_consume(&s->out, (size_t)n);
        }
        if (stream_is_clogged(s))
            return;
    }
    if (s->awaits_room) {
        s->awaits_room = false;
        tls_on_room(s);
        if (left == 0) {
            stream_update_interest(s);
            return;
        }
    }
    stream_update_interest(s);
    s->ops->on_drained(s);
}

static void stream_on_io(struct io *io, int events)
{
    struct stream *s = LIST_ENTRY(io, struct stream, io);

    if ((events & IO_WRITE) != 0) {
        stream_on_writable(s);
        if (s->fd == -1)
            return;
    }
    if ((events & IO_READ) != 0 && s->reading)
        s->ops->on_readable(s);
    else if ((events & IO_GONE) != 0 && !s->reading && !s->hung_up && s->ops->on_hung_up != NULL)
        stream_on_gone(s);
}

static void stream_init(struct loop *lp, struct stream *s, int fd, const struct stream_ops *ops)
{
    memset(&s->out, 0, sizeof s->out);
    s->ops = ops;
    s->tls = NULL;
    s->fd = fd;
    s->send_failed = false;
    s->awaits_room = false;
    s->hung_up = false;
    io_open(lp, &s->io, fd, stream_on_io);
}

void stream_open(struct loop *lp, struct stream *s, int fd, const struct stream_ops *ops)
{
    stream_init(lp, s, fd, ops);
    s->reading = true;
    io_want(&s->io, IO_READ);
}

void stream_open_connecting(struct loop *lp, struct stream *s, int fd, const struct stream_ops *ops)
{
    stream_init(lp, s, fd, ops);
    s->reading = false;
    io_want(&s->io, IO_WRITE);
}

int stream_connect_errno(struct stream *s)
{
    int error = 0;
    socklen_t len = sizeof error;

    if (getsockopt(s->fd, SOL_SOCKET, SO_ERROR, &error, &len) == -1)
        return errno;
    return error;
}

ssize_t stream_recv(struct stream *s, char *p, size_t n)
{
    ssize_t got;

    if (IS_TLS(s))
        return tls_recv(s, p, n);
    got = recv(s->fd, p, n, 0);
    if (got > 0)
        return got;
    if (got == 0) {
        errno = 0;
        return -1;
    }
    if (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR)
        return 0;
    return -1;
}

int stream_send(struct stream *s, const char *p, size_t n)
{
    if (IS_TLS(s))
        return tls_send(s, p, n);
    return stream_send_raw(s, p, n);
}

int stream_send_raw(struct stream *s, const char *p, size_t n)
{
    ssize_t sent = 0;

    if (s->send_failed)
        return -1;
    if (n == 0)
        return 0;
    if (!stream_is_clogged(s)) {
        sent = send(s->fd, p, n, MSG_NOSIGNAL);
        if (sent == (ssize_t)n)
            return 0;
        if (sent == -1) {
            if (errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR) {
                s->send_failed = true;
                return -1;
            }
            sent = 0;
        }
        buf_put(&s->out, p + sent, n - (size_t)sent);
        stream_update_interest(s);
        return 0;
    }
    buf_put(&s->out, p, n);
    return 0;
}

void stream_await_room(struct stream *s)
{
    s->awaits_room = true;
    stream_update_interest(s);
}

void stream_pause(struct stream *s)
{
    if (!s->reading)
        return;
    s->reading = false;
    stream_update_interest(s);
}

void stream_resume(struct stream *s)
{
    if (s->reading || s->fd == -1)
        return;
    s->reading = true;
    s->hung_up = false;
    stream_update_interest(s);
    if (IS_TLS(s))
        tls_on_resumed(s);
}

bool stream_is_stale(const struct stream *s)
{
    char c;
    ssize_t n;

    if (IS_TLS(s) && tls_has_input(s))
        return true;
    n = recv(s->fd, &c, 1, MSG_PEEK | MSG_DONTWAIT);
    return !(n == -1 && (errno == EAGAIN || errno == EWOULDBLOCK));
}

static void stream_on_io_closed(struct io *io)
{
    struct stream *s = LIST_ENTRY(io, struct stream, io);

    s->ops->on_closed(s);
}

int stream_release_fd(struct stream *s)
{
    int fd = s->fd;

    ASSERT(fd != -1 && s->tls == NULL);
    s->fd = -1;
    s->reading = false;
    buf_free(&s->out);
    io_close(&s->io, stream_on_io_closed);
    return fd;
}

void stream_close(struct stream *s)
{
    if (s->fd == -1)
        return;
    if (IS_TLS(s))
        tls_end(s);
    close(stream_release_fd(s));
}
