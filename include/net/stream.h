/* SPDX-License-Identifier: PostgreSQL
 * stream.h: one connected socket: non-blocking read, write-through with a remainder buffer,
 * pausing. Runs in: workers. A stream owns no read buffer: callers read into a buffer shared by the
 * whole process. It owns a write buffer only while the peer is slow: then the caller stops reading
 * the other side (stream_is_clogged) until on_drained. TLS (tls.h) is turned on under it and
 * changes nothing for those who read and write. */
#ifndef PGP_NET_STREAM_H
#define PGP_NET_STREAM_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/buf.h"
#include "event/loop.h"

struct stream;
struct tls;

struct stream_ops {
    /* Bytes, the end or an error can be read. */
    void (*on_readable)(struct stream *s);
    /* The write buffer, which had something in it, is empty. */
    void (*on_drained)(struct stream *s);
    /* After stream_close: the memory may go. */
    void (*on_closed)(struct stream *s);
    /* While reading is off: the other side sends nothing more (bytes that were not read yet may
     * still be there), or the connection broke. Told once until reading is on again. May be NULL.
     */
    void (*on_hung_up)(struct stream *s, bool is_broken);
};

struct stream {
    struct io io;
    const struct stream_ops *ops;
    struct buf *out; /* encrypted already when `tls` is set, unless the kernel does that; NULL when
                        there is nothing in it */
    struct tls *tls; /* NULL: plain */
};

/* io.marks of a stream. */
enum stream_marks {
    STREAM_READING = 1,
    STREAM_SEND_FAILED = 2,
    STREAM_AWAITS_ROOM = 4, /* TLS does */
    STREAM_HUNG_UP = 8,     /* on_hung_up was called since reading went off */
    STREAM_KEPT = 16,       /* something is kept for the end of the turn */
    STREAM_CORKED = 32      /* nothing leaves for the peer */
};

/* For a zeroed stream: it is closed. */
static inline void stream_init_closed(struct stream *s)
{
    s->io.fd = -1;
}
/* The descriptor of the stream; -1 when it is closed. */
static inline int stream_fd(const struct stream *s)
{
    return s->io.fd;
}
static inline bool stream_has_failed(const struct stream *s)
{
    return (s->io.marks & STREAM_SEND_FAILED) != 0;
}

static inline bool stream_is_reading(const struct stream *s)
{
    return (s->io.marks & STREAM_READING) != 0;
}

/* Takes over connected, non-blocking `fd`; reading is on. */
void stream_open(struct loop *lp, struct stream *s, int fd, const struct stream_ops *ops);
/* Starts watching for the end of a connect(2) in progress: on_drained is called when it is over
 * (ask stream_connect_errno). */
void stream_open_connecting(
    struct loop *lp, struct stream *s, int fd, const struct stream_ops *ops);
/* 0 when connected, else the errno of the failed connect. */
int stream_connect_errno(struct stream *s);
/* Reads up to `n` bytes: > 0 that many, 0 nothing now, -1 the end (errno 0) or an error (errno
 * EPROTO: stream_tls_error says more). */
ssize_t stream_recv(struct stream *s, char *p, size_t n);
/* Writes all or keeps the remainder; -1 when the connection is broken (reading will show why). */
int stream_send(struct stream *s, const char *p, size_t n);
/* Writes as stream_send does, but at the end of the turn, together with what others are told: see
 * stream_later.c. Nothing else that is done to the stream comes in front of it. STREAM_CLOGGED: it
 * was not kept, and is not all sent. */
enum { STREAM_CLOGGED = 1 };
int stream_send_later(struct stream *s, const char *p, size_t n);
/* Sends what is kept for the end of the turn, of all streams. */
void stream_flush(struct stream *s);
/* Has not taken all that has left for it; what is kept has not. */
static inline bool stream_lags(const struct stream *s)
{
    return s->out != NULL;
}
/* How many bytes of what was sent to the peer are still kept here. */
static inline size_t stream_owes(const struct stream *s)
{
    return s->out == NULL ? 0 : buf_unread(s->out);
}
/* Has not taken all that was sent to it. Sends what is kept first. */
static inline bool stream_is_clogged(struct stream *s)
{
    if ((s->io.marks & STREAM_KEPT) != 0)
        stream_flush(s);
    return s->out != NULL;
}
/* stream_send for a peer that can do nothing before it has this: ahead of what others are told at
 * the end of the turn, in one piece with what is kept for it. -1, too, when it is closed. */
int stream_send_ahead(struct stream *s, const char *p, size_t n);
/* Closes a socket that nothing watches any more: behind all that is kept for the end of the turn.
 */
void stream_close_later(struct loop *lp, int fd);
/* From here on the streams of this loop may keep things; without it, stream_send_later is
 * stream_send and stream_close_later is close(2). The second one sends what is kept, closes what is
 * to be closed, and ends that. */
void stream_later_init(struct loop *lp);
void stream_later_fini(struct loop *lp);
static inline bool stream_is_tls(const struct stream *s)
{
    return s->tls != NULL;
}
/* What is sent from here on is kept, as if the peer were slow, until it is uncorked: that sends
 * what it can, and may call on_drained. Reading is not touched. */
void stream_cork(struct stream *s);
void stream_uncork(struct stream *s);
/* A Unix socket, as the kernel says of this end, whatever became of the other: nobody but the
 * processes of this machine is there, or can read along. False when it is closed. */
bool stream_is_local(const struct stream *s);
/* Switches reading off and on; both may be called at any time. */
void stream_pause(struct stream *s);
void stream_resume(struct stream *s);
/* True when the other side closed or sent something although it should be silent. */
bool stream_is_stale(const struct stream *s);
/* For one whose other side sends nothing more: true when something was sent to it in the last
 * `within_ms` and did not break the connection, or a Unix socket knows that it is there. */
bool stream_is_taken(struct stream *s, int64_t within_ms);
/* Ends it: unsent bytes are dropped, the descriptor is closed at the end of the turn,
 * ops->on_closed comes later. */
void stream_close(struct stream *s);
/* Ends it as stream_close does, but the descriptor is returned and stays open: it travels to
 * another process. Not with TLS, whose state cannot travel. */
int stream_release_fd(struct stream *s);

#endif
