/* SPDX-License-Identifier: PostgreSQL
 * sim_net.c: sockets as queues of bytes. What one side writes travels first, in pieces whose size
 * is chance, and arrives later; ends and resets travel behind the bytes. Buffers are small now and
 * then, so that writers are left with a rest. */
#include "config.h"

#include "sim.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdarg.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/list.h"
#include "base/mem.h"

#define MAX_PORTS 4
#define PORT_BASE 5000

struct conn;

/* One side of a connection. */
struct sim_sock {
    struct conn *conn;
    struct buf in;   /* arrived */
    struct buf wire; /* on its way to here */
    bool wire_end;   /* the end comes behind that */
    bool wire_reset;
    bool end;
    bool reset;
    bool closed;
    uint32_t limit; /* of what is on its way to here or not taken */
};

/* side[0] is the worker's, side[1] that of a server or client. */
struct conn {
    struct list node;
    struct sim_sock side[2];
    unsigned nfds;
    int port;
    bool is_connecting;
    bool is_backlog; /* its server has not taken it yet */
    int connect_errno;
    int number;
};

struct fd_entry {
    struct conn *conn;
    const bool *flag;
};

struct port {
    int connect_errno;
    bool is_silent;
};

static struct {
    struct list conns;
    struct fd_entry fd[SIM_MAX_FDS];
    struct port port[MAX_PORTS];
    int nconns;
} net;

static struct sim_sock *other_side(struct sim_sock *s)
{
    return s == &s->conn->side[0] ? &s->conn->side[1] : &s->conn->side[0];
}

void sim_net_start(void)
{
    memset(&net, 0, sizeof net);
    list_init(&net.conns);
}

static uint32_t choose_limit(void)
{
    return sim_one_in(4) ? 200 + sim_below(2000) : 8192 + sim_below(60000);
}

static struct conn *conn_new(void)
{
    struct conn *c = mem_alloc_zero(sizeof *c);
    int i;

    for (i = 0; i < 2; i++) {
        c->side[i].conn = c;
        c->side[i].limit = choose_limit();
    }
    c->number = ++net.nconns;
    list_push_back(&net.conns, &c->node);
    return c;
}

static void conn_free(struct conn *c)
{
    int i;

    for (i = 0; i < 2; i++) {
        buf_free(&c->side[i].in);
        buf_free(&c->side[i].wire);
    }
    list_remove(&c->node);
    mem_free(c);
}

void sim_net_end(void)
{
    struct list *n;

    while ((n = list_first(&net.conns)) != NULL)
        conn_free(LIST_ENTRY(n, struct conn, node));
}

void sim_net_set_port(int port, int connect_errno, bool is_silent)
{
    net.port[port - PORT_BASE].connect_errno = connect_errno;
    net.port[port - PORT_BASE].is_silent = is_silent;
}

/* ---- descriptors ---- */

static struct fd_entry *entry_of(int fd)
{
    if (fd < SIM_FD_BASE || fd >= SIM_FD_BASE + SIM_MAX_FDS)
        return NULL;
    return &net.fd[fd - SIM_FD_BASE];
}

static struct conn *conn_of(int fd)
{
    struct fd_entry *e = entry_of(fd);

    ASSERT(e != NULL && e->conn != NULL);
    return e->conn;
}

/* The lowest free number, as the kernel does. */
static int fd_new(struct conn *c, const bool *flag)
{
    int i;

    for (i = 0; i < SIM_MAX_FDS; i++) {
        if (net.fd[i].conn != NULL || net.fd[i].flag != NULL)
            continue;
        net.fd[i].conn = c;
        net.fd[i].flag = flag;
        if (c != NULL)
            c->nfds++;
        return SIM_FD_BASE + i;
    }
    ASSERT(!"out of simulated descriptors");
    return -1;
}

int sim_net_dup(int fd)
{
    return fd_new(conn_of(fd), NULL);
}

int sim_net_flag_fd(const bool *flag)
{
    return fd_new(NULL, flag);
}

int sim_net_open_fds(void)
{
    int n = 0;
    int i;

    for (i = 0; i < SIM_MAX_FDS; i++)
        n += net.fd[i].conn != NULL;
    return n;
}

static bool has_room(const struct sim_sock *to)
{
    return buf_unread(&to->in) + buf_unread(&to->wire) < to->limit;
}

uint32_t sim_net_epoll(int fd)
{
    struct fd_entry *e = entry_of(fd);
    struct sim_sock *s;
    uint32_t events = 0;

    ASSERT(e != NULL);
    if (e->flag != NULL)
        return *e->flag ? EPOLLIN : 0;
    ASSERT(e->conn != NULL);
    s = &e->conn->side[0];
    if (e->conn->is_connecting)
        return 0;
    if (e->conn->connect_errno != 0)
        return EPOLLIN | EPOLLOUT | EPOLLERR;
    if (buf_unread(&s->in) > 0 || s->end || s->reset)
        events |= EPOLLIN;
    if (s->end || s->reset)
        events |= EPOLLRDHUP;
    if (s->reset)
        events |= EPOLLERR;
    if (has_room(&e->conn->side[1]) || s->reset)
        events |= EPOLLOUT;
    return events;
}

/* ---- bytes ---- */

static void side_put(struct sim_sock *from, const char *p, size_t n)
{
    struct sim_sock *to = other_side(from);

    if (to->closed)
        from->wire_reset = true; /* nobody is there */
    else if (!from->wire_reset && !from->reset)
        buf_put(&to->wire, p, n);
}

static void side_close(struct sim_sock *s, bool reset)
{
    struct sim_sock *to = other_side(s);

    s->closed = true;
    if (reset || buf_unread(&s->in) > 0)
        to->wire_reset = true;
    else
        to->wire_end = true;
    buf_free(&s->in);
    if (s->conn->side[0].closed && s->conn->side[1].closed)
        conn_free(s->conn);
}

struct sim_sock *sim_sock_connect(int *fd)
{
    struct conn *c = conn_new();

    *fd = fd_new(c, NULL);
    return &c->side[1];
}

struct sim_sock *sim_sock_dialed(int port)
{
    struct conn *c;
    struct list *n;

    LIST_FOREACH(n, &net.conns)
    {
        c = LIST_ENTRY(n, struct conn, node);
        if (c->is_backlog && c->port == port) {
            c->is_backlog = false;
            return &c->side[1];
        }
    }
    return NULL;
}

struct buf *sim_sock_in(struct sim_sock *s)
{
    return &s->in;
}

void sim_sock_put(struct sim_sock *s, const char *p, size_t n)
{
    side_put(s, p, n);
}

bool sim_sock_has_room(const struct sim_sock *s)
{
    return has_room(&s->conn->side[0]);
}

bool sim_sock_is_over(const struct sim_sock *s)
{
    return buf_unread(&s->in) == 0 && (s->end || s->reset);
}

bool sim_sock_was_reset(const struct sim_sock *s)
{
    return s->reset;
}

void sim_sock_close(struct sim_sock **sp, bool reset)
{
    struct sim_sock *s = *sp;

    *sp = NULL;
    if (s != NULL)
        side_close(s, reset);
}

void sim_sock_cut(struct sim_sock *s)
{
    int i;

    for (i = 0; i < 2; i++) {
        buf_free(&s->conn->side[i].wire);
        s->conn->side[i].wire_reset = true;
    }
}

/* ---- what travels ---- */

static bool side_has_traffic(const struct sim_sock *s)
{
    return buf_unread(&s->wire) > 0 || (s->wire_reset && !s->reset) || (s->wire_end && !s->end);
}

static bool conn_has_traffic(const struct conn *c)
{
    if (c->is_connecting)
        return !net.port[c->port - PORT_BASE].is_silent;
    return side_has_traffic(&c->side[0]) || side_has_traffic(&c->side[1]);
}

bool sim_net_has_traffic(void)
{
    struct list *n;

    LIST_FOREACH(n, &net.conns)
    if (conn_has_traffic(LIST_ENTRY(n, struct conn, node)))
        return true;
    return false;
}

static size_t choose_piece(size_t n)
{
    switch (sim_below(4)) {
    case 0:
        return 1;
    case 1:
        return 1 + sim_below(n < 12 ? (uint32_t)n : 12);
    case 2:
        return 1 + sim_below((uint32_t)n);
    default:
        return n;
    }
}

static void side_arrive(struct sim_sock *s)
{
    size_t n = buf_unread(&s->wire);

    if (n == 0) {
        s->reset = s->reset || s->wire_reset;
        s->end = s->end || s->wire_end;
        return;
    }
    n = choose_piece(n);
    if (s->closed)
        other_side(s)->wire_reset = true;
    else
        buf_put(&s->in, s->wire.data + s->wire.pos, n);
    buf_consume(&s->wire, n);
}

static void conn_connect(struct conn *c)
{
    const struct port *port = &net.port[c->port - PORT_BASE];

    c->is_connecting = false;
    c->connect_errno = port->connect_errno;
    c->is_backlog = c->connect_errno == 0;
    if (!c->is_backlog)
        c->side[1].closed = true;
}

void sim_net_step(void)
{
    struct list *n;
    struct conn *c = NULL;
    uint32_t seen = 0;
    int side;

    LIST_FOREACH(n, &net.conns)
    if (conn_has_traffic(LIST_ENTRY(n, struct conn, node)) && sim_one_in(++seen))
        c = LIST_ENTRY(n, struct conn, node);
    if (c == NULL)
        return;
    if (c->is_connecting) {
        conn_connect(c);
        return;
    }
    side = (int)sim_below(2);
    side_arrive(&c->side[side_has_traffic(&c->side[side]) ? side : 1 - side]);
}

/* ---- system calls of the workers (ld --wrap) ---- */

int __real_close(int fd);
int __wrap_close(int fd);
int __wrap_dup(int fd);
int __wrap_socket(int family, int type, int protocol);
int __wrap_connect(int fd, const struct sockaddr *sa, socklen_t len);
ssize_t __wrap_send(int fd, const void *p, size_t n, int flags);
ssize_t __wrap_recv(int fd, void *p, size_t n, int flags);
int __wrap_getsockopt(int fd, int level, int option, void *value, socklen_t *len);
int __wrap_setsockopt(int fd, int level, int option, const void *value, socklen_t len);
int __wrap_getpeername(int fd, struct sockaddr *sa, socklen_t *len);
int __wrap_getsockname(int fd, struct sockaddr *sa, socklen_t *len);

int __wrap_close(int fd)
{
    struct fd_entry *e = entry_of(fd);
    struct conn *c;

    if (e == NULL)
        return sim_epoll_close(fd) ? 0 : __real_close(fd);
    c = e->conn;
    sim_epoll_forget(fd, c == NULL || c->nfds == 1);
    ASSERT(c != NULL || e->flag != NULL);
    e->conn = NULL;
    e->flag = NULL;
    if (c == NULL || --c->nfds > 0)
        return 0;
    if (c->is_connecting || c->is_backlog)
        c->side[1].closed = true;
    side_close(&c->side[0], false);
    return 0;
}

int __wrap_dup(int fd)
{
    return sim_net_dup(fd);
}

int __wrap_socket(int family, int type, int protocol)
{
    (void)family;
    (void)type;
    (void)protocol;
    return fd_new(conn_new(), NULL);
}

int __wrap_connect(int fd, const struct sockaddr *sa, socklen_t len)
{
    struct conn *c = conn_of(fd);

    ASSERT(sa->sa_family == AF_INET && len >= sizeof(struct sockaddr_in));
    c->port = ntohs(((const struct sockaddr_in *)(const void *)sa)->sin_port);
    c->is_connecting = true;
    errno = EINPROGRESS;
    return -1;
}

ssize_t __wrap_send(int fd, const void *p, size_t n, int flags)
{
    struct conn *c = conn_of(fd);
    struct sim_sock *s = &c->side[0];
    struct sim_sock *to = &c->side[1];
    size_t used = buf_unread(&to->in) + buf_unread(&to->wire);

    (void)flags;
    if (s->reset || s->wire_reset) {
        errno = s->reset ? EPIPE : ECONNRESET;
        return -1;
    }
    if (used >= to->limit) {
        errno = EAGAIN;
        return -1;
    }
    if (n > to->limit - used)
        n = to->limit - used;
    if (n > 1 && sim_one_in(16))
        n = 1 + sim_below((uint32_t)n); /* an interrupted write */
    side_put(s, p, n);
    return (ssize_t)n;
}

ssize_t __wrap_recv(int fd, void *p, size_t n, int flags)
{
    struct sim_sock *s = &conn_of(fd)->side[0];
    size_t have = buf_unread(&s->in);

    if (have > 0) {
        if (n > have)
            n = have;
        memcpy(p, s->in.data + s->in.pos, n);
        if ((flags & MSG_PEEK) == 0)
            buf_consume(&s->in, n);
        return (ssize_t)n;
    }
    if (s->reset) {
        errno = ECONNRESET;
        return -1;
    }
    if (s->end)
        return 0;
    errno = EAGAIN;
    return -1;
}

int __wrap_getsockopt(int fd, int level, int option, void *value, socklen_t *len)
{
    struct conn *c = conn_of(fd);

    if (level != SOL_SOCKET || option != SO_ERROR || *len < sizeof(int)) {
        errno = ENOPROTOOPT;
        return -1;
    }
    memcpy(value, &c->connect_errno, sizeof(int));
    return 0;
}

int __wrap_setsockopt(int fd, int level, int option, const void *value, socklen_t len)
{
    (void)conn_of(fd);
    (void)level;
    (void)option;
    (void)value;
    (void)len;
    return 0;
}

int __wrap_getpeername(int fd, struct sockaddr *sa, socklen_t *len)
{
    struct sockaddr_in in = {.sin_family = AF_INET, .sin_port = htons(1000)};

    (void)conn_of(fd);
    in.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    memcpy(sa, &in, *len < sizeof in ? *len : sizeof in);
    *len = sizeof in;
    return 0;
}

/* Everybody is a client of TCP. */
int __wrap_getsockname(int fd, struct sockaddr *sa, socklen_t *len)
{
    return __wrap_getpeername(fd, sa, len);
}
