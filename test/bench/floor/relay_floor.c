/* SPDX-License-Identifier: PostgreSQL
 * relay_floor.c: the least that a session pooler can do. Runs in: benchmarks.
 *
 * It answers logins with what a server said once, gives each client a connection that is there
 * already, copies bytes, and sends DISCARD ALL when the client has gone. It knows nothing of
 * messages, passwords, limits, errors or transactions: what it costs is the kernel's, so no pooler
 * on this machine can be faster, and the distance to it is what a pooler's own work costs. Never to
 * be used for anything else. */
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

static const char discard[] = "Q\0\0\0\20DISCARD ALL"; /* with the NUL of the literal */

struct end {
    int fd;
    bool is_server;
    bool is_started;   /* a client that has logged in */
    bool is_cleaning;  /* a server that answers to DISCARD ALL */
    struct end *other; /* server of a client, client of a server */
    struct end *next;  /* in the list of free servers, or of what is to be freed */
};

struct relay {
    int epoll_fd;
    int listen_fd;
    unsigned short server_port;
    const char *user;
    const char *database;
    struct end *idle; /* servers; the last one used is the first */
    struct end *dead; /* until the end of the turn */
    char hello[4096]; /* what a server says to a login, up to its first ReadyForQuery */
    size_t hello_len;
    char buf[READ_MAX];
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

static struct end *end_new(struct relay *r, int fd, bool is_server)
{
    struct end *e = calloc(1, sizeof *e);
    struct epoll_event ev = {.events = EPOLLIN, .data = {.ptr = e}};
    int one = 1;

    if (e == NULL || setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one) != 0 ||
        epoll_ctl(r->epoll_fd, EPOLL_CTL_ADD, fd, &ev) != 0)
        die("a new connection");
    e->fd = fd;
    e->is_server = is_server;
    return e;
}

static void end_drop(struct relay *r, struct end *e)
{
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

/* A server that lets everybody in: its answer ends with ReadyForQuery. */
static struct end *server_open(struct relay *r)
{
    struct sockaddr_in a = loopback(r->server_port);
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

static void on_server(struct relay *r, struct end *server)
{
    ssize_t n = recv(server->fd, r->buf, sizeof r->buf, 0);

    if (n <= 0)
        die("a server's connection");
    if (server->other != NULL)
        say(server->other->fd, r->buf, (size_t)n);
    else if (server->is_cleaning && n >= 6 && r->buf[n - 6] == 'Z' &&
             memmem(r->buf, (size_t)n, "DISCARD ALL", sizeof "DISCARD ALL") != NULL)
        server_is_free(r, server);
}

static void on_client_gone(struct relay *r, struct end *client)
{
    struct end *server = client->other;

    end_drop(r, client);
    if (server == NULL)
        return;
    server->other = NULL;
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
    client->other = r->idle != NULL ? r->idle : server_open(r);
    if (client->other == r->idle)
        r->idle = r->idle->next;
    client->other->other = client;
    say(client->fd, r->hello, r->hello_len);
}

static void on_client(struct relay *r, struct end *client)
{
    ssize_t n = recv(client->fd, r->buf, sizeof r->buf, 0);

    if (n <= 0 || (client->is_started && r->buf[0] == 'X'))
        on_client_gone(r, client);
    else if (!client->is_started)
        on_login(r, client, n);
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

    if (argc != 6 || r == NULL) {
        fprintf(stderr, "usage: relay_floor PORT SERVER_PORT USER DATABASE SERVERS\n");
        return 2;
    }
    r->server_port = (unsigned short)atoi(argv[2]);
    r->user = argv[3];
    r->database = argv[4];
    listen_at(r, (unsigned short)atoi(argv[1]));
    for (nservers = atoi(argv[5]); nservers > 0; nservers--)
        server_is_free(r, server_open(r));
    run(r);
    return 0;
}
