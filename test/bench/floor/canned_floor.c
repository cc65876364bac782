/* SPDX-License-Identifier: PostgreSQL
 * canned_floor.c: the least that a cache can do. Runs in: benchmarks (test/bench/cache).
 *
 * It lets everybody in and answers each simple query with one row that never changes, whatever was
 * asked: what that costs is the kernel's doing, and the distance to it is what it costs to find out
 * which answer it is and whether it still holds. Never to be used for anything else.
 *
 * Argument: the port, on 127.0.0.1. */
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
#include <unistd.h>

#define EVENTS_MAX 256
#define READ_MAX   65536

struct peer {
    int fd;
    bool is_started;
    size_t len; /* of what has come and is not answered */
    char data[READ_MAX];
};

/* Without the NULs of the literals. */
static const char welcome[] = "R\0\0\0\10\0\0\0\0"
                              "S\0\0\0\31client_encoding\0UTF8\0"
                              "S\0\0\0\30server_version\00015.0\0"
                              "S\0\0\0\43standard_conforming_strings\0on\0"
                              "K\0\0\0\14\0\0\0\1\0\0\0\1"
                              "Z\0\0\0\5I";
static const char answer[] =
    "T\0\0\0\41\0\1abalance\0\0\0\100\0\0\3\0\0\0\27\0\4\377\377\377\377\0\0"
    "D\0\0\0\13\0\1\0\0\0\1"
    "0"
    "C\0\0\0\15SELECT 1\0"
    "Z\0\0\0\5I";

static uint32_t number_at(const char *p)
{
    uint32_t n;

    memcpy(&n, p, sizeof n);
    return ntohl(n);
}

static void say(struct peer *p, const char *what, size_t n)
{
    if (send(p->fd, what, n, MSG_NOSIGNAL) != (ssize_t)n)
        exit(EXIT_FAILURE); /* a benchmark's client reads what it asks for */
}

static void login(struct peer *p, const char *packet)
{
    if (number_at(packet + 4) == 80877103 || number_at(packet + 4) == 80877104) {
        say(p, "N", 1);
        return;
    }
    p->is_started = true;
    say(p, welcome, sizeof welcome - 1);
}

/* All that is whole is answered. */
static void answer_all(struct peer *p)
{
    size_t at = 0;

    for (;;) {
        size_t head = p->is_started ? 1 : 0;
        size_t n;

        if (p->len - at < head + 4)
            break;
        n = head + number_at(p->data + at + head);
        if (n > READ_MAX)
            exit(EXIT_FAILURE);
        if (p->len - at < n || (head == 0 && n < 8))
            break;
        if (head == 0)
            login(p, p->data + at);
        else if (p->data[at] == 'Q')
            say(p, answer, sizeof answer - 1);
        at += n;
    }
    memmove(p->data, p->data + at, p->len - at);
    p->len -= at;
}

static void on_readable(struct peer *p)
{
    ssize_t n = recv(p->fd, p->data + p->len, READ_MAX - p->len, 0);

    if (n <= 0) {
        close(p->fd);
        free(p); /* ban: this program is no part of pgpool */
        return;
    }
    p->len += (size_t)n;
    answer_all(p);
}

static void on_connect(int epoll_fd, int listen_fd)
{
    struct peer *p = malloc(sizeof *p); /* ban: this program is no part of pgpool */
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = p};
    int on = 1;

    if (p == NULL)
        exit(EXIT_FAILURE);
    p->fd = accept(listen_fd, NULL, NULL);
    p->is_started = false;
    p->len = 0;
    (void)setsockopt(p->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    (void)epoll_ctl(epoll_fd, EPOLL_CTL_ADD, p->fd, &event);
}

int main(int argc, char **argv)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct epoll_event events[EVENTS_MAX];
    struct epoll_event listening = {.events = EPOLLIN};
    int listen_fd = socket(AF_INET, SOCK_STREAM, 0);
    int epoll_fd = epoll_create1(0);
    int on = 1;

    if (argc != 2)
        return EXIT_FAILURE;
    at.sin_port = htons((uint16_t)strtoul(argv[1], NULL, 10));
    (void)setsockopt(listen_fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (bind(listen_fd, (struct sockaddr *)&at, sizeof at) == -1 || listen(listen_fd, 512) == -1 ||
        epoll_ctl(epoll_fd, EPOLL_CTL_ADD, listen_fd, &listening) == -1) {
        perror("canned_floor");
        return EXIT_FAILURE;
    }
    for (;;) {
        int n = epoll_wait(epoll_fd, events, EVENTS_MAX, -1);
        int i;

        for (i = 0; i < n; i++) {
            if (events[i].data.ptr == NULL)
                on_connect(epoll_fd, listen_fd);
            else
                on_readable(events[i].data.ptr);
        }
    }
}
