/* SPDX-License-Identifier: PostgreSQL
 * pcp_server.c: accepts the connections of administrators.
 * Runs in: control. There is a limit for all, and lower ones for those that have not logged in: for
 * one address, for TCP, and for Unix sockets. Where one is reached the oldest goes, so that
 * strangers cannot keep an operator out: not one at another address than theirs, and not one on the
 * machine itself. Who is silent is the kernel's to hold for a while. */
#include "config.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/log.h"

#include "control_int.h"

#define MAX_CONNS      128 /* of TCP */
#define MAX_UNIX_CONNS 64
#define MAX_STRANGERS  64
#define MAX_OF_ADDRESS 32 /* strangers */
/* The kernel tells of a connection when its first packet is there, or so much later. */
#define SILENT_S         5
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

/* An IPv6 network of 64 bits counts as one address: it belongs to one customer. */
static bool is_same_address(const struct hba_addr *a, const struct hba_addr *b)
{
    return a->n == b->n && memcmp(a->bytes, b->bytes, a->n == 16 ? 8 : a->n) == 0;
}

/* Those that have not logged in: of one address, or (NULL) of all but Unix sockets. */
struct strangers {
    int n;
    struct pcp_conn *victim;
};

static struct strangers find_strangers(struct control *ctl, const struct hba_addr *addr)
{
    struct strangers s = {0};
    struct list *it;

    LIST_FOREACH(it, &ctl->conns)
    {
        struct pcp_conn *c = LIST_ENTRY(it, struct pcp_conn, node);

        if (c->is_logged_in || (addr == NULL ? c->addr.n == 0 : !is_same_address(&c->addr, addr)))
            continue;
        s.n++;
        if (s.victim == NULL)
            s.victim = c;
    }
    return s;
}

/* Who is of the address comes first: one that makes many pushes out its own. */
static void drop_strangers(struct control *ctl, const struct hba_addr *addr)
{
    struct strangers s = find_strangers(ctl, addr);

    if (s.n >= MAX_OF_ADDRESS) {
        pcp_conn_close(s.victim);
        return;
    }
    if (addr->n == 0)
        return;
    s = find_strangers(ctl, NULL);
    if (s.n >= MAX_STRANGERS)
        pcp_conn_close(s.victim);
}

static int count_conns(const struct control *ctl, bool is_unix)
{
    const struct list *it;
    int n = 0;

    for (it = ctl->conns.next; it != &ctl->conns; it = it->next)
        n += (LIST_ENTRY(it, struct pcp_conn, node)->addr.n == 0) == is_unix ? 1 : 0;
    return n;
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
    int nconns;

    describe_peer(ss, peer, sizeof peer);
    if (ss->ss_family == AF_INET || ss->ss_family == AF_INET6)
        addr = hba_addr_of((const struct sockaddr *)ss);
    drop_strangers(ctl, &addr);
    nconns = count_conns(ctl, addr.n == 0);
    if (nconns >= (addr.n == 0 ? MAX_UNIX_CONNS : MAX_CONNS)) {
        log_caused_detail(LVL_WARNING, NULL,
            "Somebody opens connections and leaves them: ss -tnp on the port, or a script that "
            "hangs.",
            "PCP connection from %s is refused: there are %d already", peer, nconns);
        close(fd);
        return;
    }
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

/* A socket of another family says no, and needs none of it. */
static void tune(int fd)
{
    int seconds = SILENT_S;

    (void)setsockopt(fd, IPPROTO_TCP, TCP_DEFER_ACCEPT, &seconds, sizeof seconds);
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
        tune(env->control_fd[i]);
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
