/* SPDX-License-Identifier: PostgreSQL
 * client_cancel.c: cancel requests. The key told to a client is ours (the process id is the server
 * process's). A request may reach any worker; the worker that owns the client acts on it, because
 * only there is it certain which link the client has at that moment. A client on its way from one
 * worker to another is nowhere to be seen, but it stands in a mailbox: what is sent to all workers,
 * ourselves among them, comes behind it. */
#include "config.h"

#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/log.h"
#include "ipc/mailbox.h"

#include "client_orders_int.h"
#include "session_int.h"
#include "share_int.h"

/* Body of MAIL_CANCEL. */
struct cancel_mail {
    int32_t row; /* ROWS_NO_ROW: whoever has the key */
    uint32_t client_id;
    int32_t pid;
    uint32_t key_len;
    char key[ROWS_SECRET_BYTES];
};

/* Nobody was on his way for so long: a key that is not found is nobody's. */
#define TRAVEL_MAX_US 5000000

uint32_t client_make_secret(uint8_t *secret, uint32_t version)
{
    uint32_t n = version >= PROTO_3_2 ? ROWS_SECRET_BYTES : PROTO_KEY_OLD_BYTES;
    ssize_t got = getrandom(secret, n, 0);

    ASSERT(got == (ssize_t)n);
    return n;
}

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

static bool is_meant(const struct client *c, const struct cancel_mail *m)
{
    if (c->row == NULL)
        return false;
    if (m->row == ROWS_NO_ROW)
        return row_matches(c->row, m->pid, slice_of(m->key, m->key_len));
    return c->row_index == m->row && c->row->id == m->client_id;
}

static struct client *cancel_find_client(struct sessions *ss, const struct cancel_mail *m)
{
    struct list *n;

    LIST_FOREACH(n, &ss->clients)
    {
        if (is_meant(LIST_ENTRY(n, struct client, node), m))
            return LIST_ENTRY(n, struct client, node);
    }
    return NULL;
}

static void cancel_post(struct sessions *ss, int ordinal, const struct cancel_mail *m, int fd)
{
    if (mailbox_post(ss->env->boxes, ss->env->first_worker_slot + ordinal, MAIL_CANCEL, m,
            sizeof *m, fd) == -1)
        log_caused(LVL_WARNING, "cancel request could not be handed to worker %d", ordinal);
}

/* It has left, or is on its way, maybe in a mailbox of our own. Whoever has it by the time that he
 * reads this acts. */
static void cancel_search(struct sessions *ss, const struct cancel_mail *m, int fd)
{
    struct cancel_mail all = *m;
    int i;

    all.row = ROWS_NO_ROW;
    for (i = 0; i < ss->env->nworkers; i++)
        if (proc_row(ss->env->shm, ss->env->first_worker_slot + i)->pid != 0)
            cancel_post(ss, i, &all, fd);
}

static bool may_be_travelling(const struct sessions *ss)
{
    return loop_now_us(ss->loop) - session_moved_us(ss->shared) < TRAVEL_MAX_US;
}

/* A client that waits for a server connection, or for one to be opened, waits no more: what it
 * asked for fails. */
static bool cancel_wait(struct client *c)
{
    struct err err;

    if (c->share == NULL || c->phase != CL_ACTIVE ||
        (c->share->phase != SHARE_WAITING && c->share->phase != SHARE_OPENING))
        return false;
    err_clear(&err);
    err_set(&err, "57014", "canceling statement due to user request");
    share_drop_loan(c, true);
    c->share->phase = SHARE_DETACHED;
    share_fail_parked(c, &err);
    return true;
}

static void cancel_deliver(struct sessions *ss, const struct cancel_mail *m, int fd)
{
    struct client *c = cancel_find_client(ss, m);

    if (c == NULL && m->row != ROWS_NO_ROW && may_be_travelling(ss))
        cancel_search(ss, m, fd);
    if (c != NULL && (client_orders_cancel(c) || cancel_wait(c))) {
        if (fd != -1)
            close(fd);
        return;
    }
    if (c == NULL || c->target == NULL || expect_is_quiet(&c->target->expect)) {
        if (fd != -1)
            close(fd); /* nothing runs: nothing to cancel */
        return;
    }
    if (expect_head_is_ours(&c->target->expect)) {
        if (fd != -1)
            close(fd);
        link_cancel_owner(c->target);
        return;
    }
    link_cancel(c->target, fd);
}

void client_cancel_request(struct sessions *ss, int32_t pid, struct slice key, int fd)
{
    struct client_row row;
    struct cancel_mail m;
    int index = cancel_find_row(ss, pid, key, &row);

    memset(&m, 0, sizeof m);
    m.row = index;
    m.client_id = index == ROWS_NO_ROW ? 0 : row.id;
    m.pid = pid;
    m.key_len = key.n < sizeof m.key ? (uint32_t)key.n : (uint32_t)sizeof m.key;
    memcpy(m.key, key.p, m.key_len);
    if (index != ROWS_NO_ROW && row.worker == ss->env->ordinal) {
        cancel_deliver(ss, &m, fd);
        return;
    }
    if (index != ROWS_NO_ROW)
        cancel_post(ss, row.worker, &m, fd);
    else if (key.n <= sizeof m.key && may_be_travelling(ss))
        cancel_search(ss, &m, fd);
    else
        log_caused(LVL_LOG, "invalid cancel key");
    if (fd != -1)
        close(fd);
}

void sessions_on_cancel(struct sessions *ss, const void *body, size_t len, int fd)
{
    struct cancel_mail m;

    if (len != sizeof m) {
        if (fd != -1)
            close(fd);
        return;
    }
    memcpy(&m, body, sizeof m);
    if (m.key_len > sizeof m.key)
        m.key_len = 0;
    cancel_deliver(ss, &m, fd);
}
