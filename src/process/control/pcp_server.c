/* SPDX-License-Identifier: PostgreSQL
 * pcp_server.c: accepts the connections of administrators.
 * Runs in: control. There is a limit for all, and lower ones for those that have not logged in: for
 * one address, for TCP, and for Unix sockets. Where one is reached the oldest goes, so that
 * strangers cannot keep an operator out: not one at another address than theirs, and not one on the
 * machine itself. Who is silent is the kernel's to hold for a while. */
#include "config.h"

#include <arpa/inet.h>
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

/* Connections that have not logged in: of one address, or (NULL) of all but Unix sockets. */
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

static void on_accepted(
    struct acceptors *a, int i, int fd, const struct sockaddr_storage *from, socklen_t len)
{
    take(LIST_ENTRY(a, struct control, acceptors), fd, from);
}

/* A socket of another family says no, and needs none of it. */
static void tune(int fd)
{
    int seconds = SILENT_S;

    (void)setsockopt(fd, IPPROTO_TCP, TCP_DEFER_ACCEPT, &seconds, sizeof seconds);
}

void pcp_server_start(struct control *ctl)
{
    static const struct acceptors_how how = {.fn = on_accepted,
        .complaint = "could not accept a PCP connection",
        .per_turn = ACCEPTS_PER_TURN,
        .events = IO_READ};
    const struct proc_env *env = ctl->role.env;
    int i;

    list_init(&ctl->conns);
    for (i = 0; i < env->ncontrol; i++)
        tune(env->control_fd[i]);
    acceptors_open(&ctl->acceptors, &ctl->role.loop, env->control_fd, env->ncontrol, &how);
    acceptors_start(&ctl->acceptors);
}

void pcp_server_stop(struct control *ctl)
{
    struct list *it;
    struct list *tmp;

    acceptors_close(&ctl->acceptors);
    LIST_FOREACH_SAFE(it, tmp, &ctl->conns)
    {
        pcp_conn_close(LIST_ENTRY(it, struct pcp_conn, node));
    }
}
