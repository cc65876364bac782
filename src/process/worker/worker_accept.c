/* SPDX-License-Identifier: PostgreSQL
 * worker_accept.c: takes clients from the listening sockets that all workers share, and passes them
 * on to the worker that is to serve them (worker_place.c), before a byte of them was read. The
 * kernel wakes one idle worker per connection (EPOLLEXCLUSIVE), so there is no herd. */
#include "config.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/log.h"
#include "config/conf.h"
#include "net/dial.h"

#include "worker_int.h"

/* One connection per wake-up: a second accept would mostly find nothing, and the level-triggered
 * loop comes back when there is more. */
#define ACCEPTS_PER_TURN 1
#define ACCEPT_RETRY_MS  200

static void peer_of_sockaddr(struct session_peer *peer, const struct sockaddr_storage *ss)
{
    const struct sockaddr_in *in4 = (const struct sockaddr_in *)ss;
    const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)ss;

    if (ss->ss_family == AF_INET) {
        peer->addr_kind = ROW_ADDR_IPV4;
        memcpy(peer->addr, &in4->sin_addr, sizeof in4->sin_addr);
        peer->port = ntohs(in4->sin_port);
    } else if (ss->ss_family == AF_INET6) {
        peer->addr_kind = ROW_ADDR_IPV6;
        memcpy(peer->addr, &in6->sin6_addr, sizeof in6->sin6_addr);
        peer->port = ntohs(in6->sin6_port);
    } else {
        peer->addr_kind = ROW_ADDR_LOCAL;
    }
}

static void accept_place(struct worker *w, const struct session_peer *peer)
{
    const struct proc_env *env = w->role.env;
    int to = place_choose(w);

    if (to != env->ordinal && mailbox_post(env->boxes, env->first_worker_slot + to, MAIL_CLIENT,
                                  peer, sizeof *peer, peer->fd) == 0) {
        place_note(w, to);
        close(peer->fd);
        return;
    }
    sessions_add(&w->sessions, peer);
    worker_on_added(w);
}

void accept_on_mail(struct worker *w, struct mail *mail)
{
    struct session_peer peer;

    if (mail->len != sizeof peer || mail->fd == -1 || w->sessions.stop != SESSION_RUNNING) {
        if (mail->fd != -1)
            close(mail->fd);
        return;
    }
    memcpy(&peer, mail->body, sizeof peer);
    peer.fd = mail->fd;
    sessions_add(&w->sessions, &peer);
    worker_on_added(w);
}

/* Out of descriptors or memory: leave the queue alone for a moment instead of spinning. */
static void accept_back_off(struct worker *w, int errnum)
{
    log_at(LVL_WARNING, "could not accept a connection: %s", strerror(errnum));
    accept_stop(w);
    timer_start(&w->role.loop, &w->retry, ACCEPT_RETRY_MS);
}

static void accept_on_ready(struct io *io, int events)
{
    struct acceptor *a = LIST_ENTRY(io, struct acceptor, io);
    struct worker *w = a->w;
    struct sockaddr_storage ss;
    struct session_peer peer;
    socklen_t len;
    int i;

    (void)events;
    for (i = 0; i < ACCEPTS_PER_TURN && w->is_accepting; i++) {
        len = sizeof ss;
        memset(&peer, 0, sizeof peer);
        peer.fd = accept4(a->fd, (struct sockaddr *)&ss, &len, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (peer.fd == -1) {
            if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM)
                accept_back_off(w, errno);
            return;
        }
        if (a->is_paced)
            net_unpace(peer.fd, (const struct sockaddr *)&ss);
        peer.is_unix = a->is_unix;
        peer_of_sockaddr(&peer, &ss);
        accept_place(w, &peer);
    }
}

static void accept_on_retry(struct timer *t)
{
    struct worker *w = LIST_ENTRY(t, struct worker, retry);

    if (w->sessions.stop == SESSION_RUNNING && !w->is_retiring)
        accept_start(w);
}

/* A connection is worth a wake-up when its first packet is there: that is when the kernel tells us.
 * One that stays silent is told after the time-out all the same. */
static void accept_tune_listener(int fd)
{
    int seconds = 10;

    net_tune_socket(fd);
    (void)setsockopt(fd, IPPROTO_TCP, TCP_DEFER_ACCEPT, &seconds, sizeof seconds);
}

/* Accepted sockets inherit it. */
void accept_on_reload(struct worker *w)
{
    const struct conf *conf = w->sessions.conf;
    int i;

    for (i = 0; i < w->nacceptors; i++)
        if (!w->acceptors[i].is_unix)
            net_set_keepalive(w->acceptors[i].fd, conf->tcp_keepalives_idle_ms,
                conf->tcp_keepalives_interval_ms, conf->tcp_keepalives_count);
}

void accept_init(struct worker *w)
{
    const struct proc_env *env = w->role.env;
    int i;

    place_init(w);
    timer_init(&w->retry, accept_on_retry);
    w->nacceptors = env->nlisten;
    for (i = 0; i < env->nlisten; i++) {
        w->acceptors[i].w = w;
        w->acceptors[i].fd = env->listen_fd[i];
        w->acceptors[i].is_unix = env->listen_is_unix[i];
        w->acceptors[i].is_paced = net_is_paced(env->listen_fd[i]);
        /* Accepted sockets inherit these: two system calls fewer per client. */
        if (!env->listen_is_unix[i])
            accept_tune_listener(env->listen_fd[i]);
        io_open(&w->role.loop, &w->acceptors[i].io, env->listen_fd[i], accept_on_ready);
    }
    accept_on_reload(w);
}

void accept_start(struct worker *w)
{
    int i;

    if (w->is_accepting)
        return;
    w->is_accepting = true;
    for (i = 0; i < w->nacceptors; i++)
        io_want(&w->acceptors[i].io, w->role.env->nworkers > 1 ? IO_READ | IO_EXCLUSIVE : IO_READ);
}

void accept_stop(struct worker *w)
{
    int i;

    if (!w->is_accepting)
        return;
    w->is_accepting = false;
    timer_stop(&w->role.loop, &w->retry);
    for (i = 0; i < w->nacceptors; i++)
        io_want(&w->acceptors[i].io, 0);
}

void accept_fini(struct worker *w)
{
    accept_stop(w);
    place_fini(w);
}
