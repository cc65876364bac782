/* SPDX-License-Identifier: PostgreSQL
 * wd_net.c: calls the other pgpools, answers them, passes their messages on.
 * Runs in: watchdog. A connection that is silent for too long is given up: what is sent into it
 * after the network is back would wait for the kernel's patience. */
#include "config.h"

#include "wd_net.h"

#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "auth/hba.h"
#include "base/log.h"
#include "base/mem.h"
#include "config/conf.h"
#include "net/accept.h"
#include "net/dial.h"
#include "net/stream.h"
#include "sys/fd.h"
#include "sys/listen.h"

#include "wd_seal.h"

#define MAX_LISTEN       8
#define MAX_STRANGERS    32 /* connections that have not proved anything yet */
#define BACKLOG          64
#define READ_BYTES       16384
#define MAX_UNSENT       (4 * 1024 * 1024)
#define DIAL_MS          2000
#define PROOF_MS         5000
#define RETRY_MS         300
#define LOOK_MS          1000
#define SILENT_US        INT64_C(3000000)
#define LISTEN_PAUSE_MS  1000
#define ACCEPTS_PER_TURN 16

enum conn_state { CONN_HELLO, CONN_PROOF, CONN_READY, CONN_CLOSED };

struct wd_conn {
    struct stream stream;
    struct list node; /* of net->conns */
    struct wd_net *net;
    bool is_out;
    int peer;             /* who it is, or claims to be */
    struct hba_addr addr; /* from where, or to where */
    enum conn_state state;
    struct timer limit;
    struct buf in;
    struct wd_talk talk;
    struct wd_seal seal;
    int64_t open_us;
};

struct wd_peer {
    struct wd_net *net;
    int id;
    char *host;
    int port;
    struct dial *dial;
    struct timer retry;
    struct wd_conn *out;
    struct wd_conn *in;
    int64_t heard_us;
    struct hba_addr called_at;  /* where it was reached last */
    struct hba_addr calls_from; /* and from where it has called, and proved itself */
    bool told_refused;
    bool told_release;
};

struct wd_net {
    struct loop *lp;
    int self;
    struct wd_net_calls calls;
    void *owner;
    char *key;
    char *listen_host;
    int listen_port;
    struct listen_sock sock[MAX_LISTEN];
    struct acceptors acceptors;
    struct timer listen_again;
    struct timer look;
    struct list conns;
    int nstrangers; /* connections at work that have not proved anything */
    uint64_t nrefused;
    struct log_limit stranger_limit;
    bool is_closing;
    struct wd_peer peer[WD_MAX_MEMBERS];
};

static struct slice key_of(const struct wd_net *net)
{
    return slice_of_str(net->key);
}

static bool is_member(const struct wd_net *net, int id)
{
    return id >= 0 && id < WD_MAX_MEMBERS && id != net->self && net->peer[id].host != NULL;
}

/* One connection */

static void on_stream_closed(struct stream *s)
{
    struct wd_conn *c = LIST_ENTRY(s, struct wd_conn, stream);

    buf_free(&c->in);
    mem_wipe(&c->seal, sizeof c->seal);
    mem_free(c);
}

static void call_later(struct wd_peer *p)
{
    if (!p->net->is_closing && p->host != NULL)
        timer_start(p->net->lp, &p->retry, RETRY_MS);
}

static void close_conn(struct wd_conn *c)
{
    struct wd_net *net = c->net;
    struct wd_peer *p = c->peer >= 0 && c->peer < WD_MAX_MEMBERS ? &net->peer[c->peer] : NULL;

    if (c->state == CONN_CLOSED)
        return;
    if (!c->is_out && c->state != CONN_READY)
        net->nstrangers--;
    c->state = CONN_CLOSED;
    list_remove(&c->node);
    timer_stop(net->lp, &c->limit);
    if (p != NULL && p->in == c)
        p->in = NULL;
    if (p != NULL && p->out == c) {
        p->out = NULL;
        call_later(p);
    }
    stream_close(&c->stream);
}

static void refuse(struct wd_conn *c, const char *why)
{
    struct wd_net *net = c->net;

    net->nrefused++;
    if (log_limit_pass(&net->stranger_limit))
        log_at_detail(LVL_WARNING, why,
            "All pgpools of a cluster need the same wd_authkey, and the same list of members.",
            "watchdog: a connection was refused");
    close_conn(c);
}

static struct wd_hello hello_of(const struct wd_net *net, int to)
{
    return (struct wd_hello){
        .from = net->self, .to = to, .oldest = WD_SPEAKS_OLDEST, .newest = WD_SPEAKS_NEWEST};
}

/* No message of it would be understood, or worse, it would be taken for something else. */
static void refuse_release(struct wd_conn *c, const struct wd_hello *theirs)
{
    struct wd_peer *p = &c->net->peer[c->peer];
    char detail[160];

    if (theirs->newest == 0)
        snprintf(detail, sizeof detail,
            "It is of a build that does not tell versions yet; this one speaks %d to %d.",
            WD_SPEAKS_OLDEST, WD_SPEAKS_NEWEST);
    else
        snprintf(detail, sizeof detail, "It speaks versions %d to %d, this one %d to %d.",
            theirs->oldest, theirs->newest, WD_SPEAKS_OLDEST, WD_SPEAKS_NEWEST);
    if (!p->told_release)
        log_at_detail(LVL_WARNING, detail,
            "Install one release on all pgpools of the cluster: pgpool --version on each.",
            "watchdog: pgpool %d is of another release, and refused: they share no version of the "
            "watchdog's protocol",
            p->id);
    p->told_release = true;
    close_conn(c);
}

/* False, and refused, when it is not of this protocol. */
static bool read_hello(struct wd_conn *c, const uint8_t *in, struct wd_hello *theirs)
{
    switch (wd_hello_read(in, theirs)) {
    case WD_HELLO_OURS:
        return true;
    case WD_HELLO_OTHER_SEAL:
        refuse(c, "It is a pgpool of another release, whose proofs and seals are others: install "
                  "one release on all.");
        return false;
    case WD_HELLO_NONE:
        break;
    }
    refuse(c, "It does not speak the watchdog's protocol.");
    return false;
}

static bool send_raw(struct wd_conn *c, const void *p, size_t n)
{
    if (c->state == CONN_CLOSED || stream_send(&c->stream, p, n) == -1)
        return false;
    return true;
}

static bool send_sealed(struct wd_conn *c, char type, struct slice body)
{
    struct buf frame = {0};
    bool ok = wd_seal_put(&c->seal, type, body, &frame) == 0 && send_raw(c, frame.data, frame.len);

    buf_free(&frame);
    return ok;
}

/* The called side: hello, then the caller's proof */

static bool answer_hello(struct wd_conn *c, const uint8_t *in)
{
    struct wd_net *net = c->net;
    uint8_t proof[WD_PROOF_BYTES];
    struct wd_hello theirs;
    struct wd_hello ours;
    struct err err = {0};

    if (!read_hello(c, in, &theirs))
        return false;
    if (theirs.to != net->self || !is_member(net, theirs.from)) {
        refuse(c, "It is no member of this cluster, or takes this one for another.");
        return false;
    }
    c->peer = theirs.from;
    ours = hello_of(net, theirs.from);
    memcpy(c->talk.hello[0], in, WD_HELLO_BYTES);
    if (wd_hello_make(&ours, c->talk.hello[1], &err) == -1 ||
        wd_seal_prove(key_of(net), &c->talk, WD_CALLED, proof, &err) == -1) {
        log_err(LVL_WARNING, &err);
        close_conn(c);
        return false;
    }
    c->state = CONN_PROOF;
    return send_raw(c, c->talk.hello[1], WD_HELLO_BYTES) && send_raw(c, proof, sizeof proof);
}

static bool take_proof(struct wd_conn *c, const uint8_t *proof)
{
    struct wd_net *net = c->net;
    struct wd_peer *p = &net->peer[c->peer];
    struct wd_hello ours = hello_of(net, c->peer);
    struct wd_hello theirs;
    struct err err = {0};

    if (!wd_seal_check(key_of(net), &c->talk, WD_CALLER, proof)) {
        refuse(c, "It does not know wd_authkey.");
        return false;
    }
    (void)wd_hello_read(c->talk.hello[0], &theirs);
    if (wd_hello_agree(&ours, &theirs) == 0) {
        refuse_release(c, &theirs);
        return false;
    }
    if (wd_seal_begin(key_of(net), &c->talk, WD_CALLED, &c->seal, &err) == -1) {
        close_conn(c);
        return false;
    }
    timer_stop(net->lp, &c->limit);
    net->nstrangers--;
    c->state = CONN_READY;
    c->open_us = loop_now_us(net->lp);
    if (p->in != NULL)
        close_conn(p->in);
    p->in = c;
    p->calls_from = c->addr;
    p->heard_us = c->open_us;
    return send_sealed(c, 'W', slice_of("", 0));
}

/* The calling side: the called one's hello and proof, then its welcome */

static bool take_answer(struct wd_conn *c, const uint8_t *in)
{
    struct wd_net *net = c->net;
    uint8_t proof[WD_PROOF_BYTES];
    struct wd_hello ours = hello_of(net, c->peer);
    struct wd_hello theirs;
    struct err err = {0};

    memcpy(c->talk.hello[1], in, WD_HELLO_BYTES);
    if (!read_hello(c, in, &theirs))
        return false;
    if (theirs.from != c->peer || theirs.to != net->self ||
        !wd_seal_check(key_of(net), &c->talk, WD_CALLED, in + WD_HELLO_BYTES)) {
        refuse(c,
            "Who was called does not know wd_authkey, or is another pgpool than the settings say.");
        return false;
    }
    if (wd_hello_agree(&ours, &theirs) == 0) {
        refuse_release(c, &theirs);
        return false;
    }
    if (wd_seal_prove(key_of(net), &c->talk, WD_CALLER, proof, &err) == -1 ||
        wd_seal_begin(key_of(net), &c->talk, WD_CALLER, &c->seal, &err) == -1) {
        close_conn(c);
        return false;
    }
    c->state = CONN_PROOF;
    return send_raw(c, proof, sizeof proof);
}

static void open_out(struct wd_conn *c)
{
    struct wd_net *net = c->net;

    timer_stop(net->lp, &c->limit);
    c->state = CONN_READY;
    c->open_us = loop_now_us(net->lp);
    net->peer[c->peer].told_refused = net->peer[c->peer].told_release = false;
    net->calls.on_open(net->owner, c->peer);
}

/* Reading */

static bool take_frame(struct wd_conn *c)
{
    struct wd_net *net = c->net;
    struct slice body;
    size_t used;
    char type;
    int rc = wd_seal_get(&c->seal, buf_slice(&c->in), &type, &body, &used);

    if (rc == -1)
        refuse(c, "The seal of a message is broken.");
    if (rc != 1)
        return false;
    if (c->is_out) {
        if (c->state == CONN_PROOF && type == 'W')
            open_out(c);
    } else {
        net->peer[c->peer].heard_us = loop_now_us(net->lp);
        net->calls.on_message(net->owner, c->peer, type, body);
    }
    if (c->state == CONN_CLOSED)
        return false;
    buf_consume(&c->in, used);
    return true;
}

/* True when something was taken off the buffer, and there may be more. */
static bool take(struct wd_conn *c)
{
    uint8_t in[WD_HELLO_BYTES + WD_PROOF_BYTES];
    size_t n;

    if (c->state == CONN_READY || (c->is_out && c->state == CONN_PROOF))
        return take_frame(c);
    n = c->is_out ? sizeof in : c->state == CONN_HELLO ? WD_HELLO_BYTES : WD_PROOF_BYTES;
    if (c->state == CONN_CLOSED || buf_unread(&c->in) < n)
        return false;
    memcpy(in, c->in.data + c->in.pos, n);
    buf_consume(&c->in, n);
    if (c->is_out)
        return take_answer(c, in);
    return c->state == CONN_HELLO ? answer_hello(c, in) : take_proof(c, in);
}

static void on_readable(struct stream *s)
{
    struct wd_conn *c = LIST_ENTRY(s, struct wd_conn, stream);
    ssize_t n = stream_recv(s, buf_reserve(&c->in, READ_BYTES), READ_BYTES);

    if (n == -1) {
        if (c->is_out && c->state == CONN_PROOF && !c->net->peer[c->peer].told_refused) {
            c->net->peer[c->peer].told_refused = true;
            log_at_detail(LVL_WARNING, NULL,
                "Compare wd_authkey and the hostname, wd_port and pgpool_node_id of each pgpool.",
                "watchdog: pgpool %d refuses this one", c->peer);
        }
        close_conn(c);
        return;
    }
    buf_advance(&c->in, (size_t)n);
    while (c->state != CONN_CLOSED && take(c))
        ;
}

static void on_drained(struct stream *s)
{
}

static const struct stream_ops conn_ops = {
    .on_readable = on_readable, .on_drained = on_drained, .on_closed = on_stream_closed};

static void on_limit(struct timer *t)
{
    struct wd_conn *c = LIST_ENTRY(t, struct wd_conn, limit);

    if (c->is_out)
        close_conn(c);
    else
        refuse(c, "It said nothing for too long.");
}

static struct hba_addr addr_of(int fd)
{
    struct sockaddr_storage sa = {0};
    socklen_t n = sizeof sa;

    (void)getpeername(fd, (struct sockaddr *)&sa, &n);
    return hba_addr_of((const struct sockaddr *)&sa);
}

static struct wd_conn *make_conn(struct wd_net *net, int fd, bool is_out, int peer)
{
    struct wd_conn *c = mem_alloc_zero(sizeof *c);

    c->net = net;
    c->is_out = is_out;
    c->peer = peer;
    c->addr = addr_of(fd);
    list_push_back(&net->conns, &c->node);
    timer_init(&c->limit, on_limit);
    timer_start(net->lp, &c->limit, PROOF_MS);
    net_tune_socket(fd);
    stream_open(net->lp, &c->stream, fd, &conn_ops);
    return c;
}

/* Calling */

static void on_dialled(int fd, const struct err *err, void *ctx)
{
    struct wd_peer *p = ctx;
    struct wd_hello ours = hello_of(p->net, p->id);
    struct err failed = {0};

    p->dial = NULL;
    if (fd == -1) {
        call_later(p);
        return;
    }
    p->out = make_conn(p->net, fd, true, p->id);
    p->called_at = p->out->addr;
    if (wd_hello_make(&ours, p->out->talk.hello[0], &failed) == -1 ||
        !send_raw(p->out, p->out->talk.hello[0], WD_HELLO_BYTES))
        close_conn(p->out);
}

static void on_retry(struct timer *t)
{
    struct wd_peer *p = LIST_ENTRY(t, struct wd_peer, retry);

    if (p->host != NULL && p->out == NULL && p->dial == NULL)
        p->dial = dial_start(p->net->lp, p->host, p->port, DIAL_MS, on_dialled, p);
}

/* Being called */

static bool is_same(const struct hba_addr *a, const struct hba_addr *b)
{
    return a->n != 0 && a->n == b->n && memcmp(a->bytes, b->bytes, (size_t)a->n) == 0;
}

static bool is_of_member(const struct wd_net *net, const struct hba_addr *addr)
{
    int i;

    for (i = 0; i < WD_MAX_MEMBERS; i++)
        if (is_member(net, i) &&
            (is_same(addr, &net->peer[i].called_at) || is_same(addr, &net->peer[i].calls_from)))
            return true;
    return false;
}

/* Who says nothing keeps no member out: a member proves itself at once, and who calls from where no
 * member is goes first. */
static void drop_oldest_stranger(struct wd_net *net)
{
    struct wd_conn *oldest = NULL;
    struct list *it;

    for (it = net->conns.next; it != &net->conns; it = it->next) {
        struct wd_conn *c = LIST_ENTRY(it, struct wd_conn, node);

        if (c->is_out || c->state == CONN_READY)
            continue;
        if (oldest == NULL)
            oldest = c;
        if (is_of_member(net, &c->addr))
            continue;
        oldest = c;
        break;
    }
    if (oldest != NULL)
        refuse(oldest, "Too many connections have proved nothing.");
}

static void on_accepted(
    struct acceptors *a, int i, int fd, const struct sockaddr_storage *from, socklen_t len)
{
    struct wd_net *net = LIST_ENTRY(a, struct wd_net, acceptors);

    if (net->nstrangers >= MAX_STRANGERS)
        drop_oldest_stranger(net);
    net->nstrangers++;
    make_conn(net, fd, false, WD_NO_MEMBER);
}

static void stop_listening(struct wd_net *net)
{
    int n = net->acceptors.n;
    int i;

    acceptors_close(&net->acceptors);
    for (i = 0; i < n; i++)
        listen_close(&net->sock[i]);
}

static void start_listening(struct wd_net *net)
{
    static const struct acceptors_how how = {.fn = on_accepted,
        .complaint = "watchdog could not accept a connection",
        .per_turn = ACCEPTS_PER_TURN,
        .events = IO_READ};
    int fd[MAX_LISTEN];
    struct err err = {0};
    int n = 0;
    int i;

    if (listen_open_tcp(
            net->listen_host, net->listen_port, BACKLOG, net->sock, &n, MAX_LISTEN, &err) == -1) {
        if (n == 0)
            log_err(LVL_WARNING, &err);
        for (i = 0; i < n; i++)
            listen_close(&net->sock[i]);
        timer_start(net->lp, &net->listen_again, LISTEN_PAUSE_MS);
        return;
    }
    for (i = 0; i < n; i++)
        fd[i] = net->sock[i].fd;
    acceptors_open(&net->acceptors, net->lp, fd, n, &how);
    acceptors_start(&net->acceptors);
}

static void on_listen_again(struct timer *t)
{
    start_listening(LIST_ENTRY(t, struct wd_net, listen_again));
}

/* Silence */

static void on_look(struct timer *t)
{
    struct wd_net *net = LIST_ENTRY(t, struct wd_net, look);
    int64_t now_us = loop_now_us(net->lp);
    int i;

    timer_start(net->lp, &net->look, LOOK_MS);
    for (i = 0; i < WD_MAX_MEMBERS; i++) {
        struct wd_peer *p = &net->peer[i];

        if (p->in != NULL && now_us - p->heard_us > SILENT_US)
            close_conn(p->in);
        if (p->out != NULL && p->out->state == CONN_READY && p->in == NULL &&
            now_us - p->out->open_us > SILENT_US && now_us - p->heard_us > SILENT_US)
            close_conn(p->out);
    }
}

/* Outside */

struct wd_net *wd_net_new(struct loop *lp, int self, const struct wd_net_calls *calls, void *owner)
{
    struct wd_net *net = mem_alloc_zero(sizeof *net);
    int i;

    net->lp = lp;
    net->self = self;
    net->calls = *calls;
    net->owner = owner;
    net->key = mem_strdup("");
    net->stranger_limit.burst = 5;
    list_init(&net->conns);
    timer_init(&net->listen_again, on_listen_again);
    timer_init(&net->look, on_look);
    timer_start(lp, &net->look, LOOK_MS);
    for (i = 0; i < WD_MAX_MEMBERS; i++) {
        net->peer[i].net = net;
        net->peer[i].id = i;
        timer_init(&net->peer[i].retry, on_retry);
    }
    return net;
}

static void hang_up(struct wd_peer *p)
{
    if (p->dial != NULL)
        dial_cancel(&p->dial);
    timer_stop(p->net->lp, &p->retry);
    if (p->out != NULL)
        close_conn(p->out);
    if (p->in != NULL)
        close_conn(p->in);
    timer_stop(p->net->lp, &p->retry);
}

static void set_peer(struct wd_peer *p, const struct conf_wd_node *n)
{
    bool is_there = n != NULL && n->wd_port != 0 && n->hostname[0] != '\0';

    if (is_there && p->host != NULL && strcmp(p->host, n->hostname) == 0 && p->port == n->wd_port)
        return;
    hang_up(p);
    mem_free(p->host);
    p->host = is_there ? mem_strdup(n->hostname) : NULL;
    p->port = is_there ? n->wd_port : 0;
    if (is_there)
        timer_start(p->net->lp, &p->retry, 0);
}

static void set_listening(struct wd_net *net, const struct conf *conf)
{
    const struct conf_wd_node *own = &conf->wd_nodes[net->self];
    const char *host = conf->wd_listen_address[0] != '\0' ? conf->wd_listen_address : own->hostname;
    int port = conf->wd_listen_port != 0 ? conf->wd_listen_port : own->wd_port;

    if (net->listen_host != NULL && strcmp(net->listen_host, host) == 0 && net->listen_port == port)
        return;
    stop_listening(net);
    mem_free(net->listen_host);
    net->listen_host = mem_strdup(host);
    net->listen_port = port;
    timer_start(net->lp, &net->listen_again, 0); /* what was closed is told before */
}

static void close_all(struct wd_net *net)
{
    while (!list_is_empty(&net->conns))
        close_conn(LIST_ENTRY(list_first(&net->conns), struct wd_conn, node));
}

void wd_net_set(struct wd_net *net, const struct conf *conf)
{
    int i;

    if (strcmp(net->key, conf->wd_authkey) != 0) {
        mem_wipe(net->key, strlen(net->key));
        mem_free(net->key);
        net->key = mem_strdup(conf->wd_authkey);
        close_all(net);
    }
    for (i = 0; i < WD_MAX_MEMBERS; i++)
        if (i != net->self)
            set_peer(&net->peer[i], i < conf->nwd_nodes ? &conf->wd_nodes[i] : NULL);
    set_listening(net, conf);
}

bool wd_net_is_open(const struct wd_net *net, int to)
{
    return to >= 0 && to < WD_MAX_MEMBERS && net->peer[to].out != NULL &&
           net->peer[to].out->state == CONN_READY;
}

bool wd_net_send(struct wd_net *net, int to, char type, struct slice body)
{
    struct wd_conn *c;

    if (!wd_net_is_open(net, to))
        return false;
    c = net->peer[to].out;
    if (c->stream.out != NULL && buf_unread(c->stream.out) > MAX_UNSENT)
        return false;
    return send_sealed(c, type, body);
}

int wd_net_send_all(struct wd_net *net, char type, struct slice body)
{
    int n = 0;
    int i;

    for (i = 0; i < WD_MAX_MEMBERS; i++)
        n += wd_net_send(net, i, type, body) ? 1 : 0;
    return n;
}

int64_t wd_net_heard_us(const struct wd_net *net, int from)
{
    return from >= 0 && from < WD_MAX_MEMBERS && net->peer[from].in != NULL
               ? net->peer[from].heard_us
               : 0;
}

uint64_t wd_net_strangers(const struct wd_net *net)
{
    return net->nrefused;
}

void wd_net_free(struct wd_net **np)
{
    struct wd_net *net = *np;
    int i;

    if (net == NULL)
        return;
    net->is_closing = true;
    timer_stop(net->lp, &net->look);
    timer_stop(net->lp, &net->listen_again);
    stop_listening(net);
    for (i = 0; i < WD_MAX_MEMBERS; i++) {
        hang_up(&net->peer[i]);
        mem_free(net->peer[i].host);
    }
    close_all(net);
    loop_poll(net->lp); /* what was closed is told before the memory goes */
    mem_wipe(net->key, strlen(net->key));
    mem_free(net->key);
    mem_free(net->listen_host);
    mem_free(net);
    *np = NULL;
}
