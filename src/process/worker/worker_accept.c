/* SPDX-License-Identifier: PostgreSQL
 * worker_accept.c: takes clients from the listening sockets that all workers share, and passes them
 * on to the worker that is to serve them (worker_place.c), before a byte of them was read. The
 * kernel wakes one idle worker per connection (EPOLLEXCLUSIVE), so there is no herd. */
#include "config.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "config/conf.h"
#include "net/accept.h"
#include "net/dial.h"

#include "worker_int.h"

/* One connection per wake-up: a second accept would mostly find nothing, and the level-triggered
 * loop comes back when there is more. */
#define ACCEPTS_PER_TURN 1

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

static void on_accepted(
    struct acceptors *a, int i, int fd, const struct sockaddr_storage *from, socklen_t len)
{
    struct worker *w = LIST_ENTRY(a, struct worker, acceptors);
    struct session_peer peer = {.fd = fd};

    if (w->is_paced[i])
        net_unpace(fd, (const struct sockaddr *)from);
    peer_of_sockaddr(&peer, from);
    accept_place(w, &peer);
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
    const struct proc_env *env = w->role.env;
    const struct conf *conf = w->sessions.conf;
    int i;

    for (i = 0; i < env->nlisten; i++)
        if (!env->listen_is_unix[i])
            net_set_keepalive(env->listen_fd[i], conf->tcp_keepalives_idle_ms,
                conf->tcp_keepalives_interval_ms, conf->tcp_keepalives_count);
}

void accept_init(struct worker *w)
{
    const struct proc_env *env = w->role.env;
    const struct acceptors_how how = {.fn = on_accepted,
        .complaint = "could not accept a connection",
        .per_turn = ACCEPTS_PER_TURN,
        .events = env->nworkers > 1 ? IO_READ | IO_EXCLUSIVE : IO_READ};
    int i;

    place_init(w);
    for (i = 0; i < env->nlisten; i++) {
        w->is_paced[i] = net_is_paced(env->listen_fd[i]);
        /* Accepted sockets inherit these: two system calls fewer per client. */
        if (!env->listen_is_unix[i])
            accept_tune_listener(env->listen_fd[i]);
    }
    acceptors_open(&w->acceptors, &w->role.loop, env->listen_fd, env->nlisten, &how);
    accept_on_reload(w);
}

void accept_fini(struct worker *w)
{
    acceptors_stop(&w->acceptors);
    place_fini(w);
}
