/* SPDX-License-Identifier: PostgreSQL
 * pcp_server.c: accepts the connections of administrators.
 * Runs in: control. There is a limit for all, and a lower one for those that have not logged in:
 * when that is reached the oldest of them goes, so that strangers cannot keep an operator out. */
#include "config.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/log.h"

#include "control_int.h"

#define MAX_CONNS        128
#define MAX_STRANGERS    64
#define ACCEPTS_PER_TURN 16
#define ACCEPT_RETRY_MS  200

static void describe_peer(const struct sockaddr_storage *ss, char *out, size_t size)
{
    char host[INET6_ADDRSTRLEN] = "";
    const struct sockaddr_in *in4 = (const struct sockaddr_in *)ss;
    const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)ss;

    if (ss->ss_family == AF_INET) {
        inet_ntop(AF_INET, &in4->sin_addr, host, sizeof host);
        snprintf(out, size, "%s(%d)", host, ntohs(in4->sin_port));
    } else if (ss->ss_family == AF_INET6) {
        inet_ntop(AF_INET6, &in6->sin6_addr, host, sizeof host);
        snprintf(out, size, "%s(%d)", host, ntohs(in6->sin6_port));
    } else {
        snprintf(out, size, "[local]");
    }
}

static void drop_oldest_stranger(struct control *ctl)
{
    struct list *it;

    LIST_FOREACH(it, &ctl->conns)
    {
        struct pcp_conn *c = LIST_ENTRY(it, struct pcp_conn, node);

        if (!c->is_logged_in) {
            pcp_conn_close(c);
            return;
        }
    }
}

static void want(struct control *ctl, int events)
{
    int i;

    for (i = 0; i < ctl->nlisteners; i++)
        io_want(&ctl->listeners[i].io, events);
}

static void on_retry(struct timer *t)
{
    want(LIST_ENTRY(t, struct control, retry), IO_READ);
}

static void take(struct control *ctl, int fd, const struct sockaddr_storage *ss)
{
    struct hba_addr addr = {0};
    char peer[PCP_PEER_BYTES];

    describe_peer(ss, peer, sizeof peer);
    if (ctl->nstrangers >= MAX_STRANGERS)
        drop_oldest_stranger(ctl);
    if (ctl->nconns >= MAX_CONNS) {
        log_caused(LVL_WARNING, "PCP connection from %s is refused: there are %d already", peer,
            ctl->nconns);
        close(fd);
        return;
    }
    if (ss->ss_family == AF_INET || ss->ss_family == AF_INET6)
        addr = hba_addr_of((const struct sockaddr *)ss);
    pcp_conn_open(ctl, fd, peer, &addr);
}

static void on_acceptable(struct io *io, int events)
{
    struct pcp_listener *l = LIST_ENTRY(io, struct pcp_listener, io);
    struct sockaddr_storage ss;
    socklen_t len;
    int fd;
    int i;

    for (i = 0; i < ACCEPTS_PER_TURN; i++) {
        len = sizeof ss;
        memset(&ss, 0, sizeof ss);
        fd = accept4(l->fd, (struct sockaddr *)&ss, &len, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (fd != -1) {
            take(l->ctl, fd, &ss);
            continue;
        }
        if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
            log_at(LVL_WARNING, "could not accept a PCP connection: %s", strerror(errno));
            want(l->ctl, 0);
            timer_start(&l->ctl->role.loop, &l->ctl->retry, ACCEPT_RETRY_MS);
        }
        return;
    }
}

void pcp_server_start(struct control *ctl)
{
    const struct proc_env *env = ctl->role.env;
    int i;

    list_init(&ctl->conns);
    timer_init(&ctl->retry, on_retry);
    ctl->nlisteners = env->ncontrol;
    for (i = 0; i < env->ncontrol; i++) {
        ctl->listeners[i].ctl = ctl;
        ctl->listeners[i].fd = env->control_fd[i];
        io_open(&ctl->role.loop, &ctl->listeners[i].io, env->control_fd[i], on_acceptable);
    }
    want(ctl, IO_READ);
}

static void on_listener_closed(struct io *io)
{
}

void pcp_server_stop(struct control *ctl)
{
    struct list *it;
    struct list *tmp;
    int i;

    timer_stop(&ctl->role.loop, &ctl->retry);
    for (i = 0; i < ctl->nlisteners; i++)
        io_close(&ctl->listeners[i].io, on_listener_closed);
    LIST_FOREACH_SAFE(it, tmp, &ctl->conns)
    {
        pcp_conn_close(LIST_ENTRY(it, struct pcp_conn, node));
    }
}
