/* SPDX-License-Identifier: PostgreSQL
 * client_cancel.c: cancel requests. The key told to a client is ours (the process id is the server
 * process's). A request may reach any worker; the worker that owns the client acts on it, because
 * only there is it certain which link the client has at that moment. A client on its way from one
 * worker to another is nowhere to be seen, and what it has sent before it asked may be unread yet:
 * then the request waits a little, and looks for its client anew. It is in one place at a time, for
 * told twice it might hit what nobody has cancelled. */
#include "config.h"

#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/log.h"
#include "base/mem.h"
#include "ipc/mailbox.h"

#include "sstate_int.h"
#include "sstate/phase_int.h"

/* A request that looks for its client again. */
struct cancel_search {
    struct list node; /* ss->cancel_searches */
    struct timer timer;
    struct sessions *ss;
    struct cancel_mail mail;
    int fd; /* the canceller's; -1: none */
};

/* A search waits 1 ms, then twice as long each time: a second in all. */
#define SEARCH_TRIES 10
/* How many searches may wait at a time in a worker. */
#define SEARCHES_MAX 64

/* Nobody was on his way for so long: a key that is not found is nobody's. */
#define TRAVEL_MAX_US 5000000

/* Constant time. */
static bool secret_eq(const uint8_t *a, const char *b, size_t n)
{
    unsigned diff = 0;
    size_t i;

    for (i = 0; i < n; i++)
        diff |= (unsigned)(a[i] ^ (unsigned char)b[i]);
    return diff == 0;
}

static bool row_matches(const struct client_row *row, int32_t pid, struct slice key)
{
    return row->state != CLIENT_STATE_FREE && row->secret_len > 0 && row->told_pid == pid &&
           row->secret_len == key.n && secret_eq(row->secret, key.p, key.n);
}

/* Looks through the rows of all workers. */
static int cancel_find_row(
    struct sessions *ss, int32_t pid, struct slice key, struct client_row *out)
{
    uint32_t w;
    uint32_t i;

    for (w = 0; w < ss->client_rows->nworkers; w++) {
        struct rows_worker *range = rows_worker(ss->client_rows, w);

        for (i = 0; i < range->high_water; i++) {
            const struct client_row *row = client_row_at(ss->client_rows, range->first + i);

            if (row->told_pid != pid)
                continue;
            (void)client_row_copy(ss->client_rows, range->first + i, out, NULL);
            if (row_matches(out, pid, key))
                return (int)(range->first + i);
        }
    }
    return ROWS_NO_ROW;
}

static void close_canceller(int fd)
{
    if (fd != -1)
        close(fd);
}

/* A client that waits for a server connection, or for one to be opened, waits no more: what it
 * asked for fails. */
static bool cancel_wait(struct client *c)
{
    struct sstate *s = c->sstate;

    if (c->phase != CL_ACTIVE)
        return false;
    if (phase_is_waiting((enum phase)s->phase) || phase_is_opening((enum phase)s->phase)) {
        leg_drop_loan(c, true);
        phase_goto(c, PHASE_DETACHED);
        follow_cancel_parked(c);
        return true;
    }
    /* The link is another's, or nobody's, when it has answered: what waits for that fails then. */
    if (c->is_parked &&
        (s->phase == PHASE_ASK_SYNCING || s->phase == PHASE_ASKING || s->phase == PHASE_JUDGING))
        s->errand->is_cancelled = true;
    return false;
}

/* A question of ours, in front of what the client waits for, may wait for a lock. It ends, and what
 * the client asked for behind it. */
static bool cancel_question(struct client *c, int fd)
{
    struct link *link = c->target;

    if (link == NULL || !c->is_parked || !expect_exchange_is_ours(&link->expect) ||
        !(c->sstate->phase == PHASE_LOOKING || phase_is_judging((enum phase)c->sstate->phase) ||
            c->plan->asking != ASKING_NONE))
        return false;
    link_cancel(link, dup(fd)); /* it hears of the last one */
    link_cancel_owner(link, fd);
    return true;
}

bool client_cancel_followed(struct client *c, int fd)
{
    if (!cancel_wait(c))
        return cancel_question(c, fd);
    close_canceller(fd);
    return true;
}

static void search_end(struct cancel_search *s)
{
    timer_stop(s->ss->loop, &s->timer);
    list_remove(&s->node);
    s->ss->ncancel_searches--;
    mem_free(s);
}

static void cancel_route(struct sessions *ss, struct cancel_mail *m, int fd);

static void search_again(struct timer *t)
{
    struct cancel_search *s = LIST_ENTRY(t, struct cancel_search, timer);
    struct sessions *ss = s->ss;
    struct cancel_mail m = s->mail;
    int fd = s->fd;

    search_end(s);
    m.ntries++;
    cancel_route(ss, &m, fd);
}

static void cancel_later(struct sessions *ss, const struct cancel_mail *m, int fd)
{
    struct cancel_search *s;

    if (m->ntries == SEARCH_TRIES || ss->ncancel_searches == SEARCHES_MAX) {
        if (m->row == ROWS_NO_ROW)
            log_caused(LVL_LOG, "invalid cancel key");
        close_canceller(fd);
        return;
    }
    s = mem_alloc_zero(sizeof *s);
    s->ss = ss;
    s->mail = *m;
    s->fd = fd;
    list_push_back(&ss->cancel_searches, &s->node);
    ss->ncancel_searches++;
    timer_init(&s->timer, search_again);
    timer_start(ss->loop, &s->timer, INT64_C(1) << m->ntries);
}

void client_cancel_end(struct sessions *ss)
{
    struct cancel_search *s;
    struct list *n;

    while ((n = list_first(&ss->cancel_searches)) != NULL) {
        s = LIST_ENTRY(n, struct cancel_search, node);
        close_canceller(s->fd);
        search_end(s);
    }
}

/* Nothing of the client's runs, but something is about to. */
static bool is_about_to_run(const struct client *c)
{
    char byte;

    return c->phase == CL_ACTIVE &&
           (c->is_parked || recv(stream_fd(&c->stream), &byte, 1, MSG_PEEK | MSG_DONTWAIT) > 0);
}

static void cancel_deliver(struct sessions *ss, const struct cancel_mail *m, int fd)
{
    struct client *c = sessions_client(ss, m->client_id);

    /* Numbers are given anew in the end: the key tells whose it is. */
    if (c == NULL || !row_matches(c->row, m->pid, slice_of(m->key, m->key_len))) {
        cancel_later(ss, m, fd); /* it has left since */
        return;
    }
    if (client_has_console(c) && c->ss->console->cancel(c)) {
        close_canceller(fd);
        return;
    }
    if (c->kind->cancel(c, fd))
        return;
    if (c->target != NULL && !expect_is_quiet(&c->target->expect) &&
        c->kind->pace(c) != PACE_REPAIRS)
        link_cancel_owner(c->target, fd);
    else if (is_about_to_run(c))
        cancel_later(ss, m, fd);
    else
        close_canceller(fd); /* nothing runs: nothing to cancel */
}

/* Sends a cancel request to where the client is. */
static void cancel_route(struct sessions *ss, struct cancel_mail *m, int fd)
{
    struct client_row row;

    m->row = cancel_find_row(ss, m->pid, slice_of(m->key, m->key_len), &row);
    m->client_id = m->row == ROWS_NO_ROW ? 0 : row.id;
    if (m->row == ROWS_NO_ROW &&
        loop_now_us(ss->loop) - session_moved_us(ss->shared) >= TRAVEL_MAX_US) { /* none travels */
        log_caused(LVL_LOG, "invalid cancel key");
        close_canceller(fd);
    } else if (m->row == ROWS_NO_ROW) {
        cancel_later(ss, m, fd);
    } else if (row.worker == ss->env->ordinal) {
        cancel_deliver(ss, m, fd);
    } else if (mailbox_post(ss->env->boxes, ss->env->first_worker_slot + row.worker, MAIL_CANCEL, m,
                   sizeof *m, fd) == 0) {
        close_canceller(fd);
    } else {
        cancel_later(ss, m, fd); /* its mailbox is full */
    }
}

void client_cancel_request(struct sessions *ss, int32_t pid, struct slice key, int fd)
{
    struct cancel_mail m;

    memset(&m, 0, sizeof m);
    m.pid = pid;
    m.key_len = key.n <= sizeof m.key ? (uint32_t)key.n : 0; /* else it is nobody's */
    memcpy(m.key, key.p, m.key_len);
    cancel_route(ss, &m, fd);
}

void sessions_on_cancel(struct sessions *ss, const void *body, size_t len, int fd)
{
    struct cancel_mail m;

    if (len != sizeof m) {
        close_canceller(fd);
        return;
    }
    memcpy(&m, body, sizeof m);
    if (m.key_len > sizeof m.key)
        m.key_len = 0;
    cancel_deliver(ss, &m, fd);
}
