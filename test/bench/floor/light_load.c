/* SPDX-License-Identifier: PostgreSQL
 * light_load.c: a load that costs little. Runs in: benchmarks (test/bench/cache --load light).
 * pgbench takes more of a processor for a point read than what is measured; this asks for rows of
 * pgbench_accounts by connections that are always busy, from one thread, and looks at nothing but
 * the ends of answers. It says what it did in pgbench's words. Servers have to trust its user. */
#include "config.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define READ_BYTES  8192
#define CLIENTS_MAX 1000
#define SQL         "SELECT abalance FROM pgbench_accounts WHERE aid = "

struct client {
    int fd;
    size_t have; /* of `in` */
    char in[READ_BYTES];
};

struct load {
    struct client client[CLIENTS_MAX];
    unsigned nclients;
    char protocol; /* 's'imple, 'e'xtended, 'p'repared */
    uint32_t rows;
    uint64_t seed;
    uint64_t done;
};

struct out {
    size_t n;
    char p[1024];
};

static void die(const char *what)
{
    perror(what);
    exit(1);
}

/* ---- messages ---- */

static void put(struct out *o, const void *p, size_t n)
{
    if (o->n + n > sizeof o->p)
        die("a message is too long");
    memcpy(o->p + o->n, p, n);
    o->n += n;
}

/* Its length is not known yet: put_end. */
static size_t put_begin(struct out *o, char type)
{
    size_t at = o->n;

    put(o, &type, 1);
    put(o, "\0\0\0\0", 4);
    return at;
}

static void put_end(struct out *o, size_t at)
{
    uint32_t n = htonl((uint32_t)(o->n - at - 1));

    memcpy(o->p + at + 1, &n, 4);
}

static void put_text(struct out *o, const char *s)
{
    put(o, s, strlen(s) + 1);
}

static void put_parse(struct out *o, const char *name)
{
    size_t at = put_begin(o, 'P');

    put_text(o, name);
    put_text(o, SQL "$1");
    put(o, "\0\0", 2);
    put_end(o, at);
}

/* As libpq sends one: Bind, Describe, Execute, Sync. */
static void put_bound(struct out *o, const char *name, const char *value)
{
    uint32_t n = htonl((uint32_t)strlen(value));
    size_t at = put_begin(o, 'B');

    put_text(o, "");
    put_text(o, name);
    put(o, "\0\0\0\1", 4);
    put(o, &n, 4);
    put(o, value, strlen(value));
    put(o, "\0\1\0\0", 4);
    put_end(o, at);
    put(o, "D\0\0\0\6P\0", 7);
    put(o, "E\0\0\0\11\0\0\0\0\0", 10);
    put(o, "S\0\0\0\4", 5);
}

/* ---- one client ---- */

static void send_all(struct client *c, const struct out *o)
{
    if (send(c->fd, o->p, o->n, MSG_NOSIGNAL) != (ssize_t)o->n)
        die("send");
}

/* xorshift64* */
static uint32_t draw(struct load *l)
{
    l->seed ^= l->seed >> 12;
    l->seed ^= l->seed << 25;
    l->seed ^= l->seed >> 27;
    return 1 + (uint32_t)((l->seed * UINT64_C(2685821657736338717) >> 33) % l->rows);
}

static void ask(struct load *l, struct client *c)
{
    struct out o = {0};
    char text[128];
    size_t at;

    if (l->protocol == 's') {
        snprintf(text, sizeof text, SQL "%u;", draw(l));
        at = put_begin(&o, 'Q');
        put_text(&o, text);
        put_end(&o, at);
    } else {
        snprintf(text, sizeof text, "%u", draw(l));
        if (l->protocol == 'e')
            put_parse(&o, "");
        put_bound(&o, l->protocol == 'e' ? "" : "p", text);
    }
    send_all(c, &o);
}

/* Reads what is there; how often the server was ready. */
static unsigned take(struct client *c)
{
    ssize_t got = recv(c->fd, c->in + c->have, sizeof c->in - c->have, 0);
    unsigned nready = 0;
    size_t at = 0;
    uint32_t n;

    if (got <= 0)
        die("recv");
    c->have += (size_t)got;
    while (c->have - at >= 5) {
        memcpy(&n, c->in + at + 1, 4);
        n = ntohl(n) + 1;
        if (c->in[at] == 'E' || n > sizeof c->in) {
            fprintf(stderr, "the server refuses it: %.*s\n", (int)(c->have - at), c->in + at);
            exit(1);
        }
        if (c->have - at < n)
            break;
        nready += c->in[at] == 'Z';
        at += n;
    }
    memmove(c->in, c->in + at, c->have - at);
    c->have -= at;
    return nready;
}

static void wait_ready(struct client *c)
{
    while (take(c) == 0)
        ;
}

static void open_client(struct load *l, struct client *c, uint16_t port, char **who)
{
    struct sockaddr_in to = {
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct out o = {0};
    uint32_t n;
    int one = 1;

    c->fd = socket(AF_INET, SOCK_STREAM, 0);
    if (c->fd == -1 || connect(c->fd, (struct sockaddr *)&to, sizeof to) == -1)
        die("connect");
    setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    put(&o, "\0\0\0\0\0\3\0\0", 8);
    put_text(&o, "user");
    put_text(&o, who[0]);
    put_text(&o, "database");
    put_text(&o, who[1]);
    put(&o, "", 1);
    n = htonl((uint32_t)o.n);
    memcpy(o.p, &n, 4);
    send_all(c, &o);
    wait_ready(c);
    if (l->protocol != 'p')
        return;
    o.n = 0;
    put_parse(&o, "p");
    put(&o, "S\0\0\0\4", 5);
    send_all(c, &o);
    wait_ready(c);
}

/* ---- all ---- */

static double now(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

static void run(struct load *l, double seconds)
{
    struct epoll_event ready[CLIENTS_MAX];
    double start = now();
    double end = start;
    int poll = epoll_create1(0);

    for (unsigned i = 0; i < l->nclients; i++) {
        struct epoll_event e = {.events = EPOLLIN, .data.ptr = &l->client[i]};

        if (epoll_ctl(poll, EPOLL_CTL_ADD, l->client[i].fd, &e) == -1)
            die("epoll_ctl");
        ask(l, &l->client[i]);
    }
    while ((end = now()) < start + seconds) {
        int n = epoll_wait(poll, ready, (int)l->nclients, 100);

        for (int i = 0; i < n; i++) {
            struct client *c = ready[i].data.ptr;

            if (take(c) == 0)
                continue;
            l->done++;
            ask(l, c);
        }
    }
    printf("number of transactions actually processed: %llu\n", (unsigned long long)l->done);
    printf("tps = %f\n", (double)l->done / (end - start));
}

int main(int argc, char **argv)
{
    static struct load l = {.seed = 88172645463325252U};

    if (argc != 8 || (unsigned)atoi(argv[4]) - 1 >= CLIENTS_MAX || atoi(argv[7]) < 1 ||
        strchr("sep", argv[6][0]) == NULL) {
        fprintf(stderr,
            "usage: light_load PORT USER DATABASE CLIENTS SECONDS simple|extended|prepared ROWS\n");
        return 2;
    }
    l.nclients = (unsigned)atoi(argv[4]);
    l.protocol = argv[6][0];
    l.rows = (uint32_t)atoi(argv[7]);
    l.seed ^= (uint64_t)getpid() << 20;
    for (unsigned i = 0; i < l.nclients; i++)
        open_client(&l, &l.client[i], (uint16_t)atoi(argv[1]), argv + 2);
    run(&l, atof(argv[5]));
    return 0;
}
