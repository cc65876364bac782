/* SPDX-License-Identifier: PostgreSQL
 * stream_later.c: what clients are told is sent at the end of the turn.
 * A turn of the loop sees what several servers have answered. Their next statements go out at once,
 * for each of them is a process that then runs; the answers wait until all events have been seen,
 * which takes microseconds, and go out one after the other. Whoever serves many connections in one
 * process, as most that talk to a pooler do, is woken once for them and not for each, and sends its
 * next statements together: fewer switches of processes on both sides (decisions/0019). Bytes of
 * one stream that follow each other leave in one piece. Last of all sockets are closed: nobody
 * waits for that, and it takes the kernel as long as two answers. */
#include "config.h"

#include "base/hot.h"
#include "base/list.h"
#include "base/mem.h"
#include "net/stream.h"

#include <stdint.h>
#include <string.h>
#include <unistd.h>

/* Who reads long results is not served better by fewer, longer pieces, and they need not be copied.
 */
#define LATER_MESSAGE 4096
#define LATER_BYTES   32768
/* Nobody waits for more others than that: with 64 the slowest hundredth of many clients waits
 * longer (decisions/0019). */
#define LATER_RUNS 12
/* How many are kept to be closed at the end of a turn; others are closed at once. */
#define LATER_CLOSES 16

/* Bytes for one stream that follow each other. */
struct later_run {
    struct stream *stream;
    uint32_t len;
};

struct stream_later {
    struct task at_end;
    struct loop *lp;
    uint32_t nruns;
    uint32_t used; /* of `bytes` */
    uint32_t ncloses;
    struct later_run runs[LATER_RUNS];
    int closes[LATER_CLOSES];
    char bytes[LATER_BYTES];
};

/* A stream that cannot be sent to is found by its reader, one that is slow is told of when it is
 * sent to again. */
HOT static void later_send_all(struct stream_later *l)
{
    const char *p = l->bytes;
    uint32_t i;

    for (i = 0; i < l->nruns; i++)
        l->runs[i].stream->io.marks &= (uint8_t)~STREAM_KEPT;
    for (i = 0; i < l->nruns; i++) {
        (void)stream_send(l->runs[i].stream, p, l->runs[i].len);
        p += l->runs[i].len;
    }
    l->nruns = 0;
    l->used = 0;
}

static void later_close_all(struct stream_later *l)
{
    uint32_t i;

    for (i = 0; i < l->ncloses; i++)
        close(l->closes[i]);
    l->ncloses = 0;
}

static void later_on_end(struct task *t)
{
    struct stream_later *l = LIST_ENTRY(t, struct stream_later, at_end);

    later_send_all(l);
    later_close_all(l);
}

void stream_later_init(struct loop *lp)
{
    struct stream_later *l = mem_alloc_zero(sizeof *l);

    task_init(&l->at_end, later_on_end);
    l->lp = lp;
    lp->later = l;
}

void stream_later_fini(struct loop *lp)
{
    struct stream_later *l = lp->later;

    later_send_all(l);
    later_close_all(l);
    lp->last = NULL;
    lp->later = NULL;
    mem_free(l);
}

void stream_flush(struct stream *s)
{
    later_send_all(s->io.of.lp->later);
}

static int later_send_now(struct stream *s, const char *p, size_t n)
{
    if (stream_send(s, p, n) == -1)
        return -1;
    return stream_lags(s) ? STREAM_CLOGGED : 0;
}

HOT static void later_keep(struct stream_later *l, struct stream *s, const char *p, size_t n)
{
    struct later_run *run = l->nruns == 0 ? NULL : &l->runs[l->nruns - 1];

    if (run == NULL || run->stream != s) {
        run = &l->runs[l->nruns++];
        run->stream = s;
        run->len = 0;
        s->io.marks |= STREAM_KEPT;
    }
    memcpy(l->bytes + l->used, p, n);
    run->len += (uint32_t)n;
    l->used += (uint32_t)n;
}

HOT int stream_send_later(struct stream *s, const char *p, size_t n)
{
    struct stream_later *l = s->io.of.lp->later;

    if (l == NULL || n > LATER_MESSAGE || stream_lags(s) || stream_has_failed(s))
        return later_send_now(s, p, n);
    if (l->nruns == LATER_RUNS || l->used + n > LATER_BYTES)
        later_send_all(l);
    loop_run_last(l->lp, &l->at_end);
    later_keep(l, s, p, n);
    return 0;
}

int stream_send_ahead(struct stream *s, const char *p, size_t n)
{
    int rc;

    if (s->io.fd == -1)
        return -1;
    if ((s->io.marks & STREAM_KEPT) == 0)
        return stream_send(s, p, n);
    rc = stream_send_later(s, p, n);
    stream_flush(s);
    return rc;
}

void stream_close_later(struct loop *lp, int fd)
{
    struct stream_later *l = lp->later;

    if (l == NULL || l->ncloses == LATER_CLOSES) {
        close(fd);
        return;
    }
    loop_run_last(l->lp, &l->at_end);
    l->closes[l->ncloses++] = fd;
}
