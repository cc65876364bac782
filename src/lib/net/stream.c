/* SPDX-License-Identifier: PostgreSQL
 * stream.c: sockets of clients and servers. */
#include "config.h"

#include "base/hot.h"
#include "net/stream.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/mem.h"

#include "tls_int.h"

/* Plain streams are the hot path. */
#define IS_TLS(s) __builtin_expect((s)->tls != NULL, 0)

static inline bool is_marked(const struct stream *s, unsigned marks)
{
    return (s->io.marks & marks) != 0;
}

static inline void mark(struct stream *s, unsigned marks)
{
    s->io.marks |= (uint8_t)marks;
}

static inline void unmark(struct stream *s, unsigned marks)
{
    s->io.marks &= (uint8_t)~marks;
}

static void stream_update_interest(struct stream *s)
{
    int events = 0;

    if (is_marked(s, STREAM_READING))
        events = IO_READ;
    else if (s->ops->on_hung_up != NULL && !is_marked(s, STREAM_HUNG_UP))
        events = IO_GONE;
    if ((s->out != NULL && !is_marked(s, STREAM_CORKED)) || is_marked(s, STREAM_AWAITS_ROOM))
        events |= IO_WRITE;
    io_want(&s->io, events);
}

/* Not only has the other side finished sending: nothing reaches it any more. A Unix socket says so
 * of one that was closed, TCP when something was sent to it. */
static bool stream_is_broken(const struct stream *s)
{
    struct pollfd p = {.fd = s->io.fd, .events = 0};

    return poll(&p, 1, 0) == 1 && (p.revents & (POLLERR | POLLHUP)) != 0;
}

bool stream_is_local(const struct stream *s)
{
    struct sockaddr_storage ss;
    socklen_t len = sizeof ss;

    ss.ss_family = AF_UNSPEC;
    return getsockname(s->io.fd, (struct sockaddr *)&ss, &len) == 0 && ss.ss_family == AF_UNIX;
}

bool stream_is_taken(struct stream *s, int64_t within_ms)
{
    struct tcp_info info;
    socklen_t len = sizeof info;
    bool is_clogged = stream_is_clogged(s);

    if (stream_has_failed(s) || stream_is_broken(s))
        return false;
    memset(&info, 0, sizeof info);
    if (getsockopt(s->io.fd, IPPROTO_TCP, TCP_INFO, &info, &len) == 0)
        return info.tcpi_last_data_sent < within_ms &&
               (is_clogged || info.tcpi_unacked == 0 || info.tcpi_last_ack_recv < within_ms);
    return errno == EOPNOTSUPP; /* a Unix socket */
}

static void stream_on_gone(struct stream *s)
{
    mark(s, STREAM_HUNG_UP);
    stream_update_interest(s);
    s->ops->on_hung_up(s, stream_is_broken(s));
}

static void stream_drop_out(struct stream *s)
{
    if (s->out == NULL)
        return;
    buf_free(s->out);
    mem_free(s->out);
    s->out = NULL;
}

static void stream_keep_out(struct stream *s, const char *p, size_t n)
{
    if (s->out == NULL)
        s->out = mem_alloc_zero(sizeof *s->out);
    buf_put(s->out, p, n);
}

static void stream_on_writable(struct stream *s)
{
    size_t left = s->out == NULL || is_marked(s, STREAM_CORKED) ? 0 : buf_unread(s->out);
    ssize_t n;

    if (left > 0) {
        n = send(s->io.fd, s->out->data + s->out->pos, left, MSG_NOSIGNAL);
        if (n == -1) {
            if (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR)
                return;
            /* Broken: forget the bytes, let the reader find the reason. */
            mark(s, STREAM_SEND_FAILED);
            stream_drop_out(s);
        } else {
            buf_consume(s->out, (size_t)n);
            if (buf_unread(s->out) == 0)
                stream_drop_out(s);
        }
        if (s->out != NULL)
            return;
    }
    if (is_marked(s, STREAM_AWAITS_ROOM)) {
        unmark(s, STREAM_AWAITS_ROOM);
        tls_on_room(s);
        if (left == 0) {
            stream_update_interest(s);
            return;
        }
    }
    stream_update_interest(s);
    s->ops->on_drained(s);
}

HOT static void stream_on_io(struct io *io, int events)
{
    struct stream *s = LIST_ENTRY(io, struct stream, io);

    if ((events & IO_WRITE) != 0) {
        stream_on_writable(s);
        if (s->io.fd == -1)
            return;
    }
    if ((events & IO_READ) != 0 && is_marked(s, STREAM_READING))
        s->ops->on_readable(s);
    else if ((events & IO_GONE) != 0 && !is_marked(s, STREAM_READING | STREAM_HUNG_UP) &&
             s->ops->on_hung_up != NULL)
        stream_on_gone(s);
}

static void stream_init(struct loop *lp, struct stream *s, int fd, const struct stream_ops *ops)
{
    s->out = NULL;
    s->ops = ops;
    s->tls = NULL;
    s->io.marks = 0;
    io_open(lp, &s->io, fd, stream_on_io);
}

void stream_open(struct loop *lp, struct stream *s, int fd, const struct stream_ops *ops)
{
    stream_init(lp, s, fd, ops);
    mark(s, STREAM_READING);
    io_want(&s->io, IO_READ);
}

void stream_open_connecting(struct loop *lp, struct stream *s, int fd, const struct stream_ops *ops)
{
    stream_init(lp, s, fd, ops);
    io_want(&s->io, IO_WRITE);
}

int stream_connect_errno(struct stream *s)
{
    int error = 0;
    socklen_t len = sizeof error;

    if (getsockopt(s->io.fd, SOL_SOCKET, SO_ERROR, &error, &len) == -1)
        return errno;
    return error;
}

HOT ssize_t stream_recv(struct stream *s, char *p, size_t n)
{
    ssize_t got;

    if (IS_TLS(s))
        return tls_recv(s, p, n);
    got = recv(s->io.fd, p, n, 0);
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

static inline int send_plain(struct stream *s, const char *p, size_t n)
{
    ssize_t sent = 0;

    if (stream_has_failed(s))
        return -1;
    if (n == 0)
        return 0;
    if (s->out == NULL && !is_marked(s, STREAM_CORKED)) {
        sent = send(s->io.fd, p, n, MSG_NOSIGNAL);
        if (sent == (ssize_t)n)
            return 0;
        if (sent == -1) {
            if (errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR) {
                mark(s, STREAM_SEND_FAILED);
                return -1;
            }
            sent = 0;
        }
        stream_keep_out(s, p + sent, n - (size_t)sent);
        stream_update_interest(s);
        return 0;
    }
    stream_keep_out(s, p, n);
    return 0;
}

HOT int stream_send(struct stream *s, const char *p, size_t n)
{
    if (is_marked(s, STREAM_KEPT))
        stream_flush(s);
    if (IS_TLS(s))
        return tls_send(s, p, n);
    return send_plain(s, p, n);
}

int stream_send_raw(struct stream *s, const char *p, size_t n)
{
    return send_plain(s, p, n);
}

void stream_await_room(struct stream *s)
{
    mark(s, STREAM_AWAITS_ROOM);
    stream_update_interest(s);
}

void stream_cork(struct stream *s)
{
    if (is_marked(s, STREAM_CORKED) || s->io.fd == -1)
        return;
    if (is_marked(s, STREAM_KEPT))
        stream_flush(s);
    mark(s, STREAM_CORKED);
    stream_update_interest(s);
}

void stream_uncork(struct stream *s)
{
    if (!is_marked(s, STREAM_CORKED))
        return;
    unmark(s, STREAM_CORKED);
    stream_update_interest(s);
    if (s->out != NULL)
        stream_on_writable(s);
}

void stream_pause(struct stream *s)
{
    if (!is_marked(s, STREAM_READING))
        return;
    unmark(s, STREAM_READING);
    stream_update_interest(s);
}

HOT void stream_resume(struct stream *s)
{
    if (is_marked(s, STREAM_READING) || s->io.fd == -1)
        return;
    mark(s, STREAM_READING);
    unmark(s, STREAM_HUNG_UP);
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
    n = recv(s->io.fd, &c, 1, MSG_PEEK | MSG_DONTWAIT);
    return !(n == -1 && (errno == EAGAIN || errno == EWOULDBLOCK));
}

static void stream_on_io_closed(struct io *io)
{
    struct stream *s = LIST_ENTRY(io, struct stream, io);

    s->ops->on_closed(s);
}

int stream_release_fd(struct stream *s)
{
    int fd = s->io.fd;

    if (is_marked(s, STREAM_KEPT))
        stream_flush(s);
    ASSERT(fd != -1 && s->tls == NULL);
    unmark(s, STREAM_READING);
    stream_drop_out(s);
    io_close(&s->io, stream_on_io_closed);
    return fd;
}

void stream_close(struct stream *s)
{
    struct loop *lp = s->io.of.lp;

    if (s->io.fd == -1)
        return;
    if (is_marked(s, STREAM_KEPT))
        stream_flush(s);
    if (IS_TLS(s))
        tls_end(s);
    stream_close_later(lp, stream_release_fd(s));
}
