/* SPDX-License-Identifier: PostgreSQL
 * wd_socket.c: takes packets from the command socket, checks who sends them, sends the answers.
 * Runs in: watchdog. A connection has ten seconds for each packet; of too many the next is refused.
 */
#include "config.h"

#include "wd_socket.h"

#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/log.h"
#include "base/mem.h"
#include "cluster/wd_ipc.h"
#include "cluster/wd_json.h"
#include "crypto/crypto.h"
#include "net/accept.h"
#include "net/stream.h"
#include "sys/listen.h"

#define BACKLOG     16
#define MAX_CONNS   16
#define READ_BYTES  4096
#define HEADER      5
#define LIMIT_MS    10000
#define AGAIN_MS    60000
#define KEY_BYTES   1024
#define ALL_MAY_ASK 0777 /* those that know the key */
#define WE_MAY_ASK  0700

struct wd_socket {
    struct loop *lp;
    wd_socket_answer_fn *answer;
    void *owner;
    char *dir;
    int port;
    char *key;
    struct listen_sock sock;
    struct acceptors acceptors;
    struct timer again;
    struct list conns;
    int nconns;
};

struct ipc_conn {
    struct stream stream;
    struct list node;
    struct wd_socket *ipc;
    struct timer limit;
    struct buf in;
};

static void on_stream_closed(struct stream *s)
{
    struct ipc_conn *c = LIST_ENTRY(s, struct ipc_conn, stream);

    buf_free(&c->in);
    mem_free(c);
}

static void close_conn(struct ipc_conn *c)
{
    list_remove(&c->node);
    c->ipc->nconns--;
    timer_stop(c->ipc->lp, &c->limit);
    stream_close(&c->stream);
}

static void on_limit(struct timer *t)
{
    close_conn(LIST_ENTRY(t, struct ipc_conn, limit));
}

static bool knows_key(const struct wd_socket *ipc, struct slice json)
{
    char said[KEY_BYTES];
    bool knows;

    if (ipc->key[0] == '\0')
        return true; /* the folder's permissions have decided */
    (void)wd_json_text(json, "IPCAuthKey", said, sizeof said);
    knows = strlen(said) == strlen(ipc->key) && crypto_equal(said, ipc->key, strlen(said));
    mem_wipe(said, sizeof said);
    return knows;
}

static void answer(struct ipc_conn *c, char type, struct slice json)
{
    struct buf body = {0};
    struct buf out = {0};
    char kind = WD_IPC_BAD;

    if (!knows_key(c->ipc, json)) {
        log_caused_detail(LVL_WARNING, NULL,
            "wd_cli needs the wd_authkey of this pgpool: pgpool.conf that it is given by -f.",
            "watchdog: a command over the socket without the right key is refused");
        buf_printf(&body, "{\"Error\":\"authentication failed: wrong or no IPCAuthKey\"}");
    } else {
        kind = c->ipc->answer(c->ipc->owner, type, json, &body);
    }
    buf_put_byte(&out, kind);
    buf_put_u32(&out, (uint32_t)body.len);
    buf_put(&out, body.data, body.len);
    (void)stream_send(&c->stream, out.data, out.len);
    buf_free(&out);
    buf_free(&body);
}

/* False: the connection is to be closed. */
static bool take_packets(struct ipc_conn *c)
{
    while (buf_unread(&c->in) >= HEADER) {
        struct slice in = buf_slice(&c->in);
        uint32_t len = (uint32_t)(uint8_t)in.p[1] << 24 | (uint32_t)(uint8_t)in.p[2] << 16 |
                       (uint32_t)(uint8_t)in.p[3] << 8 | (uint8_t)in.p[4];

        if (len > WD_IPC_MAX_BYTES)
            return false;
        if (in.n < HEADER + len)
            return true;
        answer(c, in.p[0], slice_of(in.p + HEADER, len));
        if (stream_is_clogged(&c->stream))
            return false;
        buf_consume(&c->in, HEADER + len);
        timer_start(c->ipc->lp, &c->limit, LIMIT_MS);
    }
    return true;
}

static void on_readable(struct stream *s)
{
    struct ipc_conn *c = LIST_ENTRY(s, struct ipc_conn, stream);
    char bytes[READ_BYTES];
    ssize_t n = stream_recv(s, bytes, sizeof bytes);

    if (n > 0)
        buf_put(&c->in, bytes, (size_t)n);
    if (n == -1 || !take_packets(c))
        close_conn(c);
}

static void on_drained(struct stream *s)
{
}

static void on_accepted(
    struct acceptors *a, int i, int fd, const struct sockaddr_storage *from, socklen_t len)
{
    static const struct stream_ops ops = {
        .on_readable = on_readable, .on_drained = on_drained, .on_closed = on_stream_closed};
    struct wd_socket *ipc = LIST_ENTRY(a, struct wd_socket, acceptors);
    struct ipc_conn *c;

    if (ipc->nconns >= MAX_CONNS) {
        close(fd);
        return;
    }
    c = mem_alloc_zero(sizeof *c);
    c->ipc = ipc;
    list_push_back(&ipc->conns, &c->node);
    ipc->nconns++;
    timer_init(&c->limit, on_limit);
    timer_start(ipc->lp, &c->limit, LIMIT_MS);
    stream_open(ipc->lp, &c->stream, fd, &ops);
}

static void open_socket(struct wd_socket *ipc)
{
    static const struct acceptors_how how = {.fn = on_accepted,
        .complaint = "could not accept a connection of wd_cli",
        .per_turn = 1,
        .events = IO_READ};
    struct listen_unix_opts opts = {
        .mode = ipc->key[0] != '\0' ? ALL_MAY_ASK : WE_MAY_ASK, .name = WD_IPC_SOCKET_NAME};
    struct err err = {0};

    if (listen_open_unix(ipc->dir, ipc->port, &opts, BACKLOG, &ipc->sock, &err) == -1) {
        ipc->sock.fd = -1;
        log_err(LVL_WARNING, &err);
        timer_start(ipc->lp, &ipc->again, AGAIN_MS);
        return;
    }
    acceptors_open(&ipc->acceptors, ipc->lp, &ipc->sock.fd, 1, &how);
    acceptors_start(&ipc->acceptors);
}

static void on_again(struct timer *t)
{
    open_socket(LIST_ENTRY(t, struct wd_socket, again));
}

struct wd_socket *wd_socket_new(
    struct loop *lp, const char *dir, int port, wd_socket_answer_fn *fn, void *owner)
{
    struct wd_socket *ipc = mem_alloc_zero(sizeof *ipc);

    ipc->lp = lp;
    ipc->answer = fn;
    ipc->owner = owner;
    ipc->dir = mem_strdup(dir);
    ipc->port = port;
    ipc->key = mem_strdup("");
    ipc->sock.fd = -1;
    list_init(&ipc->conns);
    timer_init(&ipc->again, on_again);
    timer_start(lp, &ipc->again, 0); /* the key is known then */
    return ipc;
}

static void close_socket(struct wd_socket *ipc)
{
    if (ipc->sock.fd == -1)
        return;
    acceptors_close(&ipc->acceptors);
    listen_close(&ipc->sock);
    ipc->sock.fd = -1;
}

void wd_socket_set_key(struct wd_socket *ipc, const char *key)
{
    bool changes_mode = (key[0] == '\0') != (ipc->key[0] == '\0') && ipc->sock.fd != -1;

    mem_free(ipc->key);
    ipc->key = mem_strdup(key);
    if (!changes_mode)
        return;
    close_socket(ipc);
    loop_poll(ipc->lp); /* the socket's place is free when the next one is opened */
    timer_start(ipc->lp, &ipc->again, 0);
}

void wd_socket_free(struct wd_socket **ip)
{
    struct wd_socket *ipc = *ip;

    *ip = NULL;
    if (ipc == NULL)
        return;
    timer_stop(ipc->lp, &ipc->again);
    while (!list_is_empty(&ipc->conns))
        close_conn(LIST_ENTRY(list_first(&ipc->conns), struct ipc_conn, node));
    close_socket(ipc);
    loop_poll(ipc->lp); /* what was closed is told before the memory goes */
    mem_free(ipc->dir);
    mem_free(ipc->key);
    mem_free(ipc);
}
