/* SPDX-License-Identifier: PostgreSQL
 * cache_far_line.c: look-ups in memcached over connections of the loop's own, one to each server.
 * Runs in: workers, on the loop. Nothing here waits: names are resolved elsewhere (net/dial.h), and
 * what a socket does not take at once is kept.
 *
 * The text protocol, and of it what cannot fail by halves: `get`, whose answer ends with END; `set`
 * and `add` with `noreply`. So all that is ever answered are gets, in the order in which they were
 * sent. Behind results that are kept a get is sent in any case: its END says that they are there.
 *
 * What is odd in any way (another word, a connection that ends) ends the connection, and what was
 * on its way is asked again by a thread (cache_far_conn.c), which knows all that libmemcached does:
 * when to try again, and when to take a server for dead. Only one that stays silent is noticed
 * here. */
#include "config.h"

#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "base/list.h"
#include "base/mem.h"
#include "net/dial.h"
#include "net/stream.h"
#include "sys/clock.h"
#include "sys/fd.h"

#include "cache_far_int.h"

/* Between two attempts to connect. */
#define DIAL_EACH_US INT64_C(1000000)
#define READ_BYTES   16384
/* Longer ones are none of memcached's. */
#define LINE_BYTES 512
/* At once: who sends without an end does not keep the loop from others. */
#define READS_AT_ONCE 64

struct wire {
    struct stream stream;
    struct far_line *line;
    unsigned server;
    struct buf in;
    uint64_t skips;   /* bytes to come of a value that is too large */
    struct buf out;   /* of this turn; what the socket does not take is the stream's */
    struct list owed; /* an END each */
};

struct owed {
    struct list node;
    struct round *round;
    int64_t since_us;
};

/* A batch that is on its way. */
struct round {
    struct far_req *req[FAR_BATCH];
    unsigned nreqs;
    bool has_question;
    struct far_question q;
    struct owed owed[CACHE_FAR_SERVERS];
    unsigned nowed;
    bool is_lost;
};

/* Who dials. */
struct dialler {
    struct far_line *line;
    struct dial *dial;
    int64_t since_us; /* the last time */
};

struct far_line {
    struct far_spec *spec;
    struct loop *loop;
    struct far_conn *names; /* never connected: it knows where a name is kept */
    struct wire *wire[CACHE_FAR_SERVERS];
    struct dialler dialler[CACHE_FAR_SERVERS];
    struct timer watch;
    far_line_done_fn *done;
    void *ctx;
};

static void on_watch(struct timer *t);

struct far_line *far_line_new(
    struct far_spec *spec, struct loop *lp, far_line_done_fn *done, void *ctx)
{
    struct far_line *l;
    struct err err = {0};
    struct far_conn *names;

    if (spec->user[0] != '\0')
        return NULL; /* SASL speaks the binary protocol */
    names = far_conn_new(spec, &err);
    if (names == NULL)
        return NULL;
    l = mem_alloc_zero(sizeof *l);
    l->spec = spec;
    l->loop = lp;
    l->names = names;
    l->done = done;
    l->ctx = ctx;
    timer_init(&l->watch, on_watch);
    return l;
}

/* --- rounds --- */

static void round_free(struct round *r)
{
    if (r->has_question)
        far_question_free(&r->q);
    mem_free(r);
}

/* Generations that are not there begin anywhere but where they were. Should another begin one in
 * this moment, what is kept under this one is of no use, and does no harm. */
static void begin_generations(struct far_line *l, struct far_question *q)
{
    unsigned i;

    for (i = 0; i < q->n; i++) {
        struct far_asked *a = &q->asked[i];
        struct wire *w = l->wire[a->name.server];
        char text[24];
        int len;

        if (a->is_found || a->is_result)
            continue;
        if (w == NULL || far_new_generation(&a->gen) == -1) {
            a->gen = FAR_BARRED;
            continue;
        }
        len = snprintf(text, sizeof text, "%llu", (unsigned long long)a->gen);
        buf_printf(&w->out, "add %s 0 0 %d noreply\r\n%s\r\n", a->name.text, len, text);
    }
}

static void flush(struct far_line *l)
{
    unsigned i;

    for (i = 0; i < l->spec->state->nservers; i++) {
        struct wire *w = l->wire[i];

        if (w == NULL || w->out.len == 0)
            continue;
        /* A broken one is read next, and that ends it. */
        (void)stream_send(&w->stream, w->out.data, w->out.len);
        buf_empty(&w->out);
    }
}

static void round_answered(struct far_line *l, struct round *r)
{
    if (--r->nowed > 0)
        return;
    if (!r->is_lost && r->has_question) {
        begin_generations(l, &r->q);
        flush(l);
        far_question_settle(&r->q, l->spec);
    }
    l->done(l->ctx, r->req, r->nreqs, r->is_lost);
    round_free(r);
}

/* --- a connection --- */

static void on_closed(struct stream *s)
{
    struct wire *w = LIST_ENTRY(s, struct wire, stream);

    buf_free(&w->in);
    buf_free(&w->out);
    mem_free(w);
}

/* `is_late`: it is silent, and asking again would be in vain. */
static void lose(struct wire *w, bool is_late)
{
    struct far_line *l = w->line;
    struct list *n;

    l->wire[w->server] = NULL;
    while ((n = list_first(&w->owed)) != NULL) {
        struct round *r = LIST_ENTRY(n, struct owed, node)->round;

        list_remove(n);
        if (is_late && r->has_question)
            r->q.is_dead[w->server] = true;
        r->is_lost = r->is_lost || !is_late;
        round_answered(l, r);
    }
    stream_close(&w->stream);
}

enum took { TOOK, TOOK_NOTHING_YET, TOOK_NONSENSE };

/* "VALUE name flags bytes", and behind that line the value. */
static enum took take_value(struct wire *w, struct round *r, struct slice line)
{
    static const char head[] = "VALUE ";
    const char *name = line.p + sizeof head - 1;
    const char *end = line.p + line.n;
    struct slice in = buf_slice(&w->in);
    const char *flags;
    const char *bytes;
    size_t at = line.n + 2;
    uint64_t n;

    if (line.n < sizeof head || memcmp(line.p, head, sizeof head - 1) != 0)
        return TOOK_NONSENSE;
    flags = memchr(name, ' ', (size_t)(end - name));
    bytes = flags == NULL ? NULL : memchr(flags + 1, ' ', (size_t)(end - flags - 1));
    if (bytes == NULL)
        return TOOK_NONSENSE;
    n = far_number_of(bytes + 1, (size_t)(end - bytes - 1));
    if (n > w->line->spec->value_max) { /* a miss: its memory is not for one who sends anything */
        buf_consume(&w->in, at);
        w->skips = n > UINT64_MAX - 2 ? UINT64_MAX : n + 2;
        return TOOK;
    }
    if (in.n < at + n + 2)
        return TOOK_NOTHING_YET;
    if (memcmp(in.p + at + n, "\r\n", 2) != 0)
        return TOOK_NONSENSE;
    if (r->has_question)
        far_question_take(
            &r->q, w->server, slice_of(name, (size_t)(flags - name)), slice_of(in.p + at, n));
    buf_consume(&w->in, at + n + 2);
    return TOOK;
}

static enum took skip(struct wire *w)
{
    uint64_t n = buf_unread(&w->in) < w->skips ? buf_unread(&w->in) : w->skips;

    buf_consume(&w->in, n);
    w->skips -= n;
    return w->skips == 0 ? TOOK : TOOK_NOTHING_YET;
}

static enum took take_line(struct wire *w)
{
    struct slice in = buf_slice(&w->in);
    const char *end = in.n == 0 ? NULL : memchr(in.p, '\n', in.n < LINE_BYTES ? in.n : LINE_BYTES);
    struct list *n = list_first(&w->owed);
    struct slice line;
    struct owed *o;

    if (w->skips > 0)
        return skip(w);
    if (end == NULL)
        return in.n < LINE_BYTES ? TOOK_NOTHING_YET : TOOK_NONSENSE;
    if (n == NULL || end == in.p || end[-1] != '\r')
        return TOOK_NONSENSE;
    o = LIST_ENTRY(n, struct owed, node);
    line = slice_of(in.p, (size_t)(end - in.p) - 1);
    if (!slice_eq_str(line, "END"))
        return take_value(w, o->round, line);
    buf_consume(&w->in, line.n + 2);
    list_remove(n);
    far_server_answered(w->line->spec, w->server);
    round_answered(w->line, o->round);
    return TOOK;
}

/* What has come; false: it is gone. */
static bool read_all(struct wire *w)
{
    unsigned reads = 0;
    enum took took;
    ssize_t n;

    do {
        n = stream_recv(&w->stream, buf_reserve(&w->in, READ_BYTES), READ_BYTES);
        if (n > 0)
            buf_advance(&w->in, (size_t)n);
        do
            took = take_line(w);
        while (took == TOOK);
    } while (n == READ_BYTES && took == TOOK_NOTHING_YET && ++reads < READS_AT_ONCE);
    if (took != TOOK_NONSENSE && n >= 0) {
        if (buf_unread(&w->in) == 0)
            buf_empty(&w->in);
        return true;
    }
    lose(w, false);
    return false;
}

static void on_readable(struct stream *s)
{
    (void)read_all(LIST_ENTRY(s, struct wire, stream));
}

static void on_drained(struct stream *s)
{
    (void)s;
}

static const struct stream_ops wire_ops = {on_readable, on_drained, on_closed, NULL};

static void open_wire(struct far_line *l, unsigned server, int fd)
{
    struct wire *w = mem_alloc_zero(sizeof *w);

    w->line = l;
    w->server = server;
    list_init(&w->owed);
    stream_open(l->loop, &w->stream, fd, &wire_ops);
    l->wire[server] = w;
}

/* Where it fails threads ask meanwhile, and say what is wrong. */
static void on_dialled(int fd, const struct err *err, void *ctx)
{
    struct dialler *d = ctx;

    (void)err;
    d->dial = NULL;
    if (fd != -1)
        open_wire(d->line, (unsigned)(d - d->line->dialler), fd);
}

/* Never waits: a socket of this machine takes a connection, or has no room for one. */
static void connect_unix(struct far_line *l, unsigned server)
{
    const char *path = l->spec->state->server[server].host;
    struct sockaddr_un sun = {.sun_family = AF_UNIX};
    int fd;

    if (strlen(path) >= sizeof sun.sun_path)
        return;
    memcpy(sun.sun_path, path, strlen(path));
    fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd != -1 && connect(fd, (struct sockaddr *)&sun, sizeof sun) == 0)
        open_wire(l, server, fd);
    else
        fd_close(&fd);
}

static void dial(struct far_line *l, unsigned server)
{
    const struct cache_far_server *s = &l->spec->state->server[server];
    struct dialler *d = &l->dialler[server];

    if (d->dial != NULL || loop_now_us(l->loop) - d->since_us < DIAL_EACH_US)
        return;
    d->line = l;
    d->since_us = loop_now_us(l->loop);
    if (s->port == 0)
        connect_unix(l, server);
    else
        d->dial = dial_start(l->loop, s->host, s->port, l->spec->timeout_ms, on_dialled, d);
}

bool far_line_is_ready(struct far_line *l)
{
    bool is_ready = true;
    unsigned i;

    for (i = 0; i < l->spec->state->nservers; i++) {
        const struct wire *w = l->wire[i];

        if (far_server_is_down(l->spec, i) || (w != NULL && stream_lags(&w->stream))) {
            is_ready = false;
        } else if (w == NULL) {
            dial(l, i);
            is_ready = false;
        }
    }
    return is_ready;
}

/* --- sending --- */

static void owe(struct far_line *l, struct round *r, unsigned server)
{
    struct owed *o = &r->owed[server];

    if (o->round != NULL)
        return;
    *o = (struct owed){.round = r, .since_us = loop_now_us(l->loop)};
    list_init(&o->node);
    list_push_back(&l->wire[server]->owed, &o->node);
    r->nowed++;
}

static void put_kept(struct far_line *l, struct round *r, const struct far_req *req)
{
    struct far_name name;
    struct buf value = {0};
    struct buf *out;

    far_name_of_key(l->names, &req->key, &name);
    far_value_put(&value, req);
    out = &l->wire[name.server]->out;
    buf_printf(out, "set %s 0 %lld %zu noreply\r\n", name.text, (long long)far_expires(req),
        (size_t)value.len);
    buf_put(out, value.data, value.len);
    buf_put(out, "\r\n", 2);
    buf_free(&value);
    far_note_kept(l->spec, name.server);
    owe(l, r, name.server);
}

/* One get of all that it has, or of something, if results were sent to it. */
static void put_get(struct far_line *l, struct round *r, unsigned server)
{
    struct buf *out = &l->wire[server]->out;
    bool is_begun = false;
    unsigned i;

    for (i = 0; r->has_question && i < r->q.n; i++) {
        const struct far_name *name = &r->q.asked[i].name;

        if (name->server != server)
            continue;
        if (!is_begun)
            buf_put(out, "get", 3);
        is_begun = true;
        buf_put_byte(out, ' ');
        buf_put(out, name->text, name->len);
    }
    if (!is_begun && r->owed[server].round == NULL)
        return;
    if (!is_begun)
        buf_put(out, "get " FAR_NAME_OF_ALL, sizeof "get " FAR_NAME_OF_ALL - 1);
    buf_put(out, "\r\n", 2);
    owe(l, r, server);
}

void far_line_send(struct far_line *l, struct far_req *const *reqs, unsigned n)
{
    struct round *r = mem_alloc_zero(sizeof *r);
    unsigned i;

    memcpy(r->req, reqs, n * sizeof reqs[0]);
    r->nreqs = n;
    for (i = 0; i < n; i++)
        if (reqs[i]->keeps)
            put_kept(l, r, reqs[i]);
    r->has_question = far_question_make(&r->q, l->names, reqs, n);
    for (i = 0; i < l->spec->state->nservers; i++)
        put_get(l, r, i);
    flush(l);
    if (!timer_is_armed(&l->watch))
        timer_start(l->loop, &l->watch, l->spec->timeout_ms);
}

/* Since when the server has owed an answer; 0: it owes none. */
static int64_t owes_since_us(const struct wire *w)
{
    return w == NULL || list_is_empty(&w->owed)
               ? 0
               : LIST_ENTRY(w->owed.next, struct owed, node)->since_us;
}

void far_line_check(struct far_line *l)
{
    int64_t now_us = loop_now_us(l->loop);
    int64_t limit_us = l->spec->timeout_ms * CLOCK_US_PER_MS;
    int64_t first_us = 0;
    unsigned i;

    for (i = 0; i < l->spec->state->nservers; i++) {
        int64_t since_us = owes_since_us(l->wire[i]);

        /* The answer may be there: this process may have stood still. */
        if (since_us != 0 && now_us - since_us >= limit_us && read_all(l->wire[i]) &&
            owes_since_us(l->wire[i]) == since_us) {
            far_server_failed(l->spec, i, since_us);
            lose(l->wire[i], true);
        }
        since_us = owes_since_us(l->wire[i]);
        if (since_us != 0 && (first_us == 0 || since_us < first_us))
            first_us = since_us;
    }
    if (first_us != 0)
        timer_start(l->loop, &l->watch, (first_us + limit_us - now_us) / CLOCK_US_PER_MS + 1);
}

static void on_watch(struct timer *t)
{
    far_line_check(LIST_ENTRY(t, struct far_line, watch));
}

/* --- the end --- */

static void forget(struct far_req *const *reqs, unsigned n)
{
    unsigned i;

    for (i = 0; i < n; i++)
        far_req_free(reqs[i]);
}

static void drop(void *ctx, struct far_req *const *reqs, unsigned n, bool is_lost)
{
    (void)ctx;
    (void)is_lost;
    forget(reqs, n);
}

void far_line_free(struct far_line **lp)
{
    struct far_line *l = *lp;
    unsigned i;

    if (l == NULL)
        return;
    l->done = drop;
    timer_stop(l->loop, &l->watch);
    for (i = 0; i < l->spec->state->nservers; i++) {
        if (l->dialler[i].dial != NULL)
            dial_cancel(&l->dialler[i].dial);
        if (l->wire[i] != NULL)
            lose(l->wire[i], false);
    }
    far_conn_free(&l->names);
    mem_free(l);
    *lp = NULL;
}
