/* SPDX-License-Identifier: PostgreSQL
 * relay_floor.c: the least that a pooler can do. Runs in: benchmarks.
 *
 * It answers logins with what a server said once and copies bytes. Session pooling: each client has
 * a connection that is there already, which gets DISCARD ALL when the client has gone. Transaction
 * pooling: who sends something gets the connection used last, or waits in one line, first come,
 * first served; a connection is free when what it says ends with ReadyForQuery outside of a
 * transaction. What clients are told goes out at the end of a turn, and nothing is paced, as with
 * pgpool (decisions/0019). It knows nothing of messages, passwords, limits, errors or sessions:
 * what it costs and how unevenly clients wait is the kernel's doing, so no pooler on this machine
 * can be better, and the distance to it is what a pooler's own work costs. Never to be used for
 * anything else. */
#include "config.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#define EVENTS_MAX 256
#define READ_MAX   65536
#define KEPT_MAX   512

static const char discard[] = "Q\0\0\0\20DISCARD ALL"; /* with the NUL of the literal */

static const char rollback[] = "Q\0\0\0\15ROLLBACK";
static const char ready[] = "Z\0\0\0\5I"; /* without the literal's NUL */

struct end {
    int fd;
    bool is_server;
    bool is_started;   /* a client that has logged in */
    bool is_cleaning;  /* a server that answers to DISCARD ALL */
    struct end *other; /* server of a client, client of a server */
    struct end *next;  /* of free servers, of clients in line, or of what is to be freed */
    char *held;        /* what a client in line has sent */
    size_t nheld;
};

/* What a client is told at the end of the turn. */
struct kept {
    int fd;
    size_t len;
};

struct relay {
    int epoll_fd;
    int listen_fd;
    unsigned short server_port;
    const char *hosts; /* of the servers, with commas between them; a connection to each in turn */
    const char *host;  /* the next one */
    const char *user;
    const char *database;
    struct end *idle; /* servers; the last one used is the first */
    struct end *dead; /* until the end of the turn */
    bool by_transaction;
    struct end *line; /* clients that wait, the oldest first */
    struct end **line_end;
    char hello[4096]; /* what a server says to a login, up to its first ReadyForQuery */
    size_t hello_len;
    char buf[READ_MAX];
    int nkept;
    size_t kept_len;
    struct kept kept[KEPT_MAX];
    char kept_buf[READ_MAX];
};

static void die(const char *what)
{
    fprintf(stderr, "relay_floor: %s: %s\n", what, strerror(errno));
    exit(1);
}

static struct sockaddr_in loopback(unsigned short port)
{
    struct sockaddr_in a = {
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr = {htonl(INADDR_LOOPBACK)}};

    return a;
}

static void say(int fd, const char *p, size_t n)
{
    if (send(fd, p, n, MSG_NOSIGNAL) < 0 && errno != EPIPE && errno != ECONNRESET)
        die("send");
}

static void say_kept(struct relay *r)
{
    const char *p = r->kept_buf;
    int i;

    for (i = 0; i < r->nkept; i++) {
        say(r->kept[i].fd, p, r->kept[i].len);
        p += r->kept[i].len;
    }
    r->nkept = 0;
    r->kept_len = 0;
}

static void say_later(struct relay *r, int fd, const char *p, size_t n)
{
    if (r->nkept == KEPT_MAX || r->kept_len + n > sizeof r->kept_buf)
        say_kept(r);
    r->kept[r->nkept++] = (struct kept){fd, n};
    memcpy(r->kept_buf + r->kept_len, p, n);
    r->kept_len += n;
}

static struct end *end_new(struct relay *r, int fd, bool is_server)
{
    struct end *e = calloc(1, sizeof *e);
    struct epoll_event ev = {.events = EPOLLIN, .data = {.ptr = e}};
    int one = 1;

    if (e == NULL || setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one) != 0 ||
        epoll_ctl(r->epoll_fd, EPOLL_CTL_ADD, fd, &ev) != 0)
        die("a new connection");
    (void)setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, "reno", 4);
    e->fd = fd;
    e->is_server = is_server;
    return e;
}

static void end_drop(struct relay *r, struct end *e)
{
    say_kept(r);
    close(e->fd);
    e->fd = -1;
    e->next = r->dead;
    r->dead = e;
}

static void say_startup(struct relay *r, int fd)
{
    char msg[512] = {0, 0, 0, 0, 0, 3, 0, 0};
    int n = 8;

    n += snprintf(msg + n, 240, "user%c%s", 0, r->user) + 1;
    n += snprintf(msg + n, 240, "database%c%s", 0, r->database) + 1;
    n++; /* the list's end */
    msg[2] = (char)(n >> 8);
    msg[3] = (char)n;
    say(fd, msg, (size_t)n);
}

static struct sockaddr_in next_server(struct relay *r)
{
    struct sockaddr_in a = loopback(r->server_port);
    size_t n = strcspn(r->host, ",");
    char host[INET_ADDRSTRLEN] = "";

    if (n < sizeof host)
        memcpy(host, r->host, n);
    if (inet_pton(AF_INET, host, &a.sin_addr) != 1)
        die("a server's address");
    r->host = r->host[n] == ',' ? r->host + n + 1 : r->hosts;
    return a;
}

/* A server that lets everybody in: its answer ends with ReadyForQuery. */
static struct end *server_open(struct relay *r)
{
    struct sockaddr_in a = next_server(r);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    char said[sizeof r->hello];
    size_t have = 0;
    ssize_t n;

    if (fd < 0 || connect(fd, (struct sockaddr *)&a, sizeof a) != 0)
        die("connect");
    say_startup(r, fd);
    do {
        n = recv(fd, said + have, sizeof said - have, 0);
        if (n <= 0)
            die("the server's login");
        have += (size_t)n;
    } while (have < 6 || said[have - 6] != 'Z');
    if (r->hello_len == 0) {
        memcpy(r->hello, said, have);
        r->hello_len = have;
    }
    return end_new(r, fd, true);
}

static void server_is_free(struct relay *r, struct end *server)
{
    server->is_cleaning = false;
    server->next = r->idle;
    r->idle = server;
}

static void lend(struct end *server, struct end *client)
{
    server->other = client;
    client->other = server;
}

/* The next in line gets what has become free before it could be anybody else's. */
static void server_serves_next(struct relay *r, struct end *server)
{
    struct end *client = r->line;

    if (client == NULL) {
        server_is_free(r, server);
        return;
    }
    r->line = client->next;
    if (r->line == NULL)
        r->line_end = &r->line;
    lend(server, client);
    say(server->fd, client->held, client->nheld);
    free(client->held);
    client->held = NULL;
    client->nheld = 0;
}

static void on_shared_server(struct relay *r, struct end *server, size_t n)
{
    const char *last = r->buf + n - (sizeof ready - 1);

    if (server->other != NULL)
        say_later(r, server->other->fd, r->buf, n);
    if (n < sizeof ready - 1 || memcmp(last, ready, sizeof ready - 2) != 0)
        return;
    if (last[5] == 'I') {
        if (server->other != NULL)
            server->other->other = NULL;
        server->other = NULL;
        server_serves_next(r, server);
    } else if (server->other == NULL) {
        say(server->fd, rollback, sizeof rollback);
    }
}

static void on_server(struct relay *r, struct end *server)
{
    ssize_t n = recv(server->fd, r->buf, sizeof r->buf, 0);

    if (n <= 0)
        die("a server's connection");
    if (r->by_transaction)
        on_shared_server(r, server, (size_t)n);
    else if (server->other != NULL)
        say_later(r, server->other->fd, r->buf, (size_t)n);
    else if (server->is_cleaning && n >= 6 && r->buf[n - 6] == 'Z' &&
             memmem(r->buf, (size_t)n, "DISCARD ALL", sizeof "DISCARD ALL") != NULL)
        server_is_free(r, server);
}

static void leave_line(struct relay *r, struct end *client)
{
    struct end **at = &r->line;

    while (*at != NULL && *at != client)
        at = &(*at)->next;
    if (*at == NULL)
        return;
    *at = client->next;
    if (*at == NULL)
        r->line_end = at;
    free(client->held);
}

static void on_client_gone(struct relay *r, struct end *client)
{
    struct end *server = client->other;

    leave_line(r, client);
    end_drop(r, client);
    if (server == NULL)
        return;
    server->other = NULL;
    if (r->by_transaction)
        return; /* what it says next tells whether it is free */
    server->is_cleaning = true;
    say(server->fd, discard, sizeof discard);
}

static void on_login(struct relay *r, struct end *client, ssize_t n)
{
    if (n == 8) { /* SSLRequest */
        say(client->fd, "N", 1);
        return;
    }
    client->is_started = true;
    if (r->by_transaction) {
        say(client->fd, r->hello, r->hello_len);
        return;
    }
    client->other = r->idle != NULL ? r->idle : server_open(r);
    if (client->other == r->idle)
        r->idle = r->idle->next;
    client->other->other = client;
    say(client->fd, r->hello, r->hello_len);
}

static void join_line(struct relay *r, struct end *client, size_t n)
{
    char *held = realloc(client->held, client->nheld + n);

    if (held == NULL)
        die("what a client sent");
    memcpy(held + client->nheld, r->buf, n);
    if (client->nheld == 0) {
        client->next = NULL;
        *r->line_end = client;
        r->line_end = &client->next;
    }
    client->held = held;
    client->nheld += n;
}

static void on_shared_client(struct relay *r, struct end *client, size_t n)
{
    struct end *server = r->idle;

    if (client->other == NULL && (client->nheld > 0 || server == NULL)) {
        join_line(r, client, n);
        return;
    }
    if (client->other == NULL) {
        r->idle = server->next;
        lend(server, client);
    }
    say(client->other->fd, r->buf, n);
}

static void on_client(struct relay *r, struct end *client)
{
    ssize_t n = recv(client->fd, r->buf, sizeof r->buf, 0);

    if (n <= 0 || (client->is_started && r->buf[0] == 'X'))
        on_client_gone(r, client);
    else if (!client->is_started)
        on_login(r, client, n);
    else if (r->by_transaction)
        on_shared_client(r, client, (size_t)n);
    else
        say(client->other->fd, r->buf, (size_t)n);
}

static void on_listen(struct relay *r)
{
    int fd = accept4(r->listen_fd, NULL, NULL, SOCK_CLOEXEC);

    if (fd < 0)
        die("accept");
    end_new(r, fd, false);
}

static void bury(struct relay *r)
{
    struct end *e;

    while ((e = r->dead) != NULL) {
        r->dead = e->next;
        free(e);
    }
}

static void run(struct relay *r)
{
    struct epoll_event ev[EVENTS_MAX];
    int n;
    int i;

    for (;;) {
        n = epoll_wait(r->epoll_fd, ev, EVENTS_MAX, -1);
        if (n < 0 && errno != EINTR)
            die("epoll_wait");
        for (i = 0; i < n; i++) {
            struct end *e = ev[i].data.ptr;

            if (e == NULL)
                on_listen(r);
            else if (e->fd != -1 && e->is_server)
                on_server(r, e);
            else if (e->fd != -1)
                on_client(r, e);
        }
        say_kept(r);
        bury(r);
    }
}

static void listen_at(struct relay *r, unsigned short port)
{
    struct sockaddr_in a = loopback(port);
    struct epoll_event ev = {.events = EPOLLIN};
    int one = 1;

    r->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    r->listen_fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (r->epoll_fd < 0 || r->listen_fd < 0 ||
        setsockopt(r->listen_fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one) != 0 ||
        bind(r->listen_fd, (struct sockaddr *)&a, sizeof a) != 0 ||
        listen(r->listen_fd, 1024) != 0 ||
        epoll_ctl(r->epoll_fd, EPOLL_CTL_ADD, r->listen_fd, &ev) != 0)
        die("listen");
}

int main(int argc, char **argv)
{
    struct relay *r = calloc(1, sizeof *r);
    int nservers;

    if (argc < 7 || argc > 8 || (argc == 8 && strcmp(argv[7], "transaction") != 0) || r == NULL) {
        fprintf(stderr, "usage: relay_floor PORT SERVER_ADDRESS[,...] SERVER_PORT USER DATABASE "
                        "SERVERS [transaction]\n");
        return 2;
    }
    r->by_transaction = argc == 8;
    r->line_end = &r->line;
    r->hosts = r->host = argv[2];
    r->server_port = (unsigned short)atoi(argv[3]);
    r->user = argv[4];
    r->database = argv[5];
    listen_at(r, (unsigned short)atoi(argv[1]));
    for (nservers = atoi(argv[6]); nservers > 0; nservers--)
        server_is_free(r, server_open(r));
    run(r);
    return 0;
}
