/* SPDX-License-Identifier: PostgreSQL
 * scram_gate.c: a pooler of one connection, for tests: lets a client prove itself by SCRAM against
 * a verifier given as an argument, logs in to the server with the keys learned from the proof, and
 * then passes bytes. So libpq judges our server role, and PostgreSQL our client role.
 *
 * scram_gate PORT VERIFIER: listens on a free port of 127.0.0.1, prints it, serves one client.
 * Exit code 0: served, 1: the client was denied, 2: anything else. Without arguments it is skipped.
 */
#include "config.h"

#include <arpa/inet.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "auth/scram.h"
#include "crypto/crypto.h"
#include "wire/proto.h"
#include "wire/writer.h"

#define WAIT_MS 20000

_Noreturn static void die(const char *what)
{
    fprintf(stderr, "scram_gate: %s\n", what);
    exit(2);
}

static void send_all(int fd, struct buf *b)
{
    size_t done = 0;
    ssize_t n;

    while (done < b->len) {
        n = send(fd, b->data + done, b->len - done, MSG_NOSIGNAL);
        if (n <= 0)
            die("cannot send");
        done += (size_t)n;
    }
    buf_clear(b);
}

static void read_all(int fd, char *p, size_t n)
{
    struct pollfd pfd = {.fd = fd, .events = POLLIN};
    ssize_t got;

    while (n > 0) {
        if (poll(&pfd, 1, WAIT_MS) != 1)
            die("nothing came in time");
        got = read(fd, p, n);
        if (got <= 0)
            die("the peer is gone");
        p += got;
        n -= (size_t)got;
    }
}

/* Reads one message; returns its type. With `typed` false a startup packet. */
static char read_message(int fd, bool typed, struct buf *body)
{
    char head[5] = {0};
    uint32_t n;

    read_all(fd, head + !typed, sizeof head - !typed);
    n = proto_get_u32(head + 1);
    if (n < 4 || n > 100000)
        die("bad length");
    buf_clear(body);
    read_all(fd, buf_reserve(body, n - 4 + 1), n - 4);
    buf_advance(body, n - 4);
    return head[0];
}

/* Cuts a NUL-ended name off the body. */
static struct slice take_name(struct slice *in)
{
    const char *end = in->n == 0 ? NULL : memchr(in->p, '\0', in->n);
    struct slice name;

    if (end == NULL)
        die("a name without end");
    name = slice_of(in->p, (size_t)(end - in->p));
    *in = slice_of(end + 1, in->n - name.n - 1);
    return name;
}

static void deny(int fd, struct err *err)
{
    struct buf out = {0};

    err_set_fatal(err, "28P01", "password authentication failed");
    wire_put_err(&out, err);
    send_all(fd, &out);
    exit(1);
}

/* Lets the client prove itself; fills *keys. */
static void serve_login(int fd, struct scram_server *s, struct scram_keys *keys)
{
    struct buf in = {0};
    struct buf msg = {0};
    struct buf out = {0};
    struct err err = {0};
    struct slice rest;
    struct slice mechanism;
    enum scram_status st;

    scram_server_mechanisms(s, &msg);
    wire_put_auth(&out, AUTH_SASL, buf_slice(&msg));
    send_all(fd, &out);
    if (read_message(fd, true, &in) != FE_PASSWORD)
        die("no password message");
    rest = buf_slice(&in);
    mechanism = take_name(&rest);
    rest = slice_of(rest.p + 4, rest.n - 4);
    buf_clear(&msg);
    st = scram_server_start(s, mechanism, rest, &msg, &err);
    if (st != SCRAM_CONTINUE)
        deny(fd, &err);
    wire_put_auth(&out, AUTH_SASL_CONTINUE, buf_slice(&msg));
    send_all(fd, &out);
    read_message(fd, true, &in);
    buf_clear(&msg);
    st = scram_server_step(s, buf_slice(&in), &msg, &err);
    if (st != SCRAM_DONE)
        deny(fd, &err);
    wire_put_auth(&out, AUTH_SASL_FINAL, buf_slice(&msg));
    send_all(fd, &out);
    scram_server_keys(s, keys);
    buf_free(&in);
    buf_free(&msg);
    buf_free(&out);
}

static void expect_auth(int fd, struct buf *in, uint32_t code)
{
    if (read_message(fd, true, in) != BE_AUTHENTICATION || in->len < 4 ||
        proto_get_u32(in->data) != code)
        die("the server said something else");
}

/* Logs in to the server with the keys alone. */
static void login(int fd, const struct buf *startup, const struct scram_keys *keys)
{
    struct scram_client_conf conf = {.keys = keys};
    struct scram_client c;
    struct buf in = {0};
    struct buf msg = {0};
    struct buf out = {0};
    struct err err = {0};
    const char *mechanism;
    uint32_t at;

    if (crypto_random(conf.nonce, sizeof conf.nonce, &err) == -1)
        die(err.msg);
    scram_client_init(&c, &conf);
    buf_put_u32(&out, startup->len + 4);
    buf_put(&out, startup->data, startup->len);
    send_all(fd, &out);
    expect_auth(fd, &in, AUTH_SASL);
    if (scram_client_start(&c, slice_of(in.data + 4, in.len - 4), &mechanism, &msg, &err) !=
        SCRAM_CONTINUE)
        die(err.msg);
    at = wire_begin(&out, FE_PASSWORD);
    buf_put_cstr(&out, mechanism);
    buf_put_u32(&out, msg.len);
    buf_put(&out, msg.data, msg.len);
    wire_end(&out, at);
    send_all(fd, &out);
    expect_auth(fd, &in, AUTH_SASL_CONTINUE);
    buf_clear(&msg);
    if (scram_client_step(&c, slice_of(in.data + 4, in.len - 4), &msg, &err) != SCRAM_CONTINUE)
        die("the keys do not fit the server");
    wire_put_password(&out, buf_slice(&msg));
    send_all(fd, &out);
    expect_auth(fd, &in, AUTH_SASL_FINAL);
    if (scram_client_final(&c, slice_of(in.data + 4, in.len - 4), &err) != SCRAM_DONE)
        die(err.msg);
    scram_client_fini(&c);
    buf_free(&in);
    buf_free(&msg);
    buf_free(&out);
}

/* Passes bytes both ways until one side ends. */
static void pass_bytes(int a, int b)
{
    struct pollfd p[2] = {{.fd = a, .events = POLLIN}, {.fd = b, .events = POLLIN}};
    struct buf out = {0};
    ssize_t n;
    int i;

    for (;;) {
        if (poll(p, 2, WAIT_MS) < 1)
            die("silence");
        for (i = 0; i < 2; i++) {
            if ((p[i].revents & (POLLIN | POLLHUP)) == 0)
                continue;
            n = read(p[i].fd, buf_reserve(&out, 8192), 8192);
            if (n <= 0) {
                buf_free(&out);
                return;
            }
            buf_advance(&out, (size_t)n);
            send_all(p[1 - i].fd, &out);
        }
    }
}

/* Listens on a free port, says which, and waits for one client. */
static int accept_one(void)
{
    struct sockaddr_in addr = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof addr;
    int lfd = socket(AF_INET, SOCK_STREAM, 0);
    struct pollfd p = {.fd = lfd, .events = POLLIN};

    if (lfd == -1 || bind(lfd, (struct sockaddr *)&addr, sizeof addr) == -1 ||
        listen(lfd, 1) == -1 || getsockname(lfd, (struct sockaddr *)&addr, &len) == -1)
        die("cannot listen");
    printf("%d\n", ntohs(addr.sin_port));
    fflush(stdout);
    if (poll(&p, 1, WAIT_MS) != 1)
        die("no client came");
    return accept(lfd, NULL, NULL);
}

static int connect_to(int port)
{
    struct sockaddr_in addr = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM, 0);

    addr.sin_port = htons((uint16_t)port);
    if (fd == -1 || connect(fd, (struct sockaddr *)&addr, sizeof addr) == -1)
        die("cannot connect to the server");
    return fd;
}

int main(int argc, char **argv)
{
    struct scram_verifier v;
    struct scram_server_conf conf = {.verifier = &v};
    struct scram_server s;
    struct scram_keys keys;
    struct buf startup = {0};
    struct buf out = {0};
    int client;
    int server;

    if (argc != 3)
        return 77;
    if (scram_verifier_parse(slice_of_str(argv[2]), &v) == -1 ||
        crypto_random(conf.nonce, sizeof conf.nonce, NULL) == -1)
        die("bad verifier");
    client = accept_one();
    read_message(client, false, &startup);
    scram_server_init(&s, &conf);
    serve_login(client, &s, &keys);
    scram_server_fini(&s);
    server = connect_to(atoi(argv[1]));
    login(server, &startup, &keys);
    wire_put_auth(&out, AUTH_OK, slice_of("", 0));
    send_all(client, &out);
    read_message(server, true, &out); /* AuthenticationOk: the client has its own */
    pass_bytes(client, server);
    buf_free(&startup);
    buf_free(&out);
    return 0;
}
