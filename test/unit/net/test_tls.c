/* SPDX-License-Identifier: PostgreSQL
 * test_tls.c: streams that speak TLS, against OpenSSL on the other end of a socket pair. All of it
 * is done four times, for the kernel's part in it may be none, refused, or as much as this kernel
 * offers. */
#include "config.h"

#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "net/tls.h"

#include "tls_openssl.h"
#include "tls_peer.h"
#include "run_suite.h"

#define MAX_TURNS 100000

enum way {
    WAY_MEMORY,  /* OpenSSL never sees the socket */
    WAY_REFUSED, /* it does, but no kernel does TLS on such a socket */
    WAY_KERNEL,
    WAY_KERNEL_12, /* TLS 1.2: OpenSSL 3.0 hands over both directions */
};

struct end {
    struct stream stream;
    struct buf got;
    size_t step;     /* bytes asked for at a time */
    size_t pause_at; /* stop reading when so many have come; 0: never */
    int errnum;      /* of the end, when it has come */
    bool has_ended;
    bool is_drained;
    bool is_closed;
    unsigned nreads;
};

struct fixture {
    struct loop loop;
    struct tls_env *env;
    struct tls_context *server;
    struct tls_context *client;
    struct peer_cert ca;
    struct peer_cert own;
    struct end end;
    struct peer peer;
    char dir[64];
    enum way way;
};

static struct fixture fx;

static void on_readable(struct stream *s)
{
    struct end *e = LIST_ENTRY(s, struct end, stream);
    char piece[65536];
    ssize_t n = stream_recv(s, piece, e->step);

    e->nreads++;
    if (n > 0)
        buf_put(&e->got, piece, (size_t)n);
    if (n == -1) {
        e->errnum = errno;
        e->has_ended = true;
        stream_pause(s);
    }
    if (e->pause_at > 0 && e->got.len >= e->pause_at) {
        e->pause_at = 0;
        stream_pause(s);
    }
}

static void on_drained(struct stream *s)
{
    LIST_ENTRY(s, struct end, stream)->is_drained = true;
}

static void on_closed(struct stream *s)
{
    LIST_ENTRY(s, struct end, stream)->is_closed = true;
}

static const struct stream_ops ops = {
    .on_readable = on_readable, .on_drained = on_drained, .on_closed = on_closed};

static struct tls_settings settings_of(const struct peer_cert *own, const struct peer_cert *ca)
{
    return (struct tls_settings){.cert_file = own == NULL ? "" : own->cert_file,
        .key_file = own == NULL ? "" : own->key_file,
        .ca_file = ca == NULL ? "" : ca->cert_file,
        .ca_dir = "",
        .crl_file = "",
        .ciphers = "",
        .curves = "",
        .dh_file = "",
        .min_version = 12,
        .max_version = fx.way == WAY_KERNEL_12 ? 12 : 0,
        .use_kernel = fx.way >= WAY_KERNEL,
        .is_postgresql = true};
}

static void pair_of_tcp(int fd[2])
{
    struct sockaddr_in here = {
        .sin_family = AF_INET, .sin_addr = {.s_addr = htonl(INADDR_LOOPBACK)}};
    socklen_t len = sizeof here;
    int door = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    ck_assert_int_eq(bind(door, (struct sockaddr *)&here, len), 0);
    ck_assert_int_eq(listen(door, 1), 0);
    ck_assert_int_eq(getsockname(door, (struct sockaddr *)&here, &len), 0);
    fd[1] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ck_assert_int_eq(connect(fd[1], (struct sockaddr *)&here, len), 0);
    fd[0] = accept(door, NULL, NULL);
    ck_assert_int_ne(fd[0], -1);
    close(door);
}

static void pair(int fd[2])
{
    if (fx.way >= WAY_KERNEL)
        pair_of_tcp(fd);
    else
        ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fd), 0);
    ck_assert_int_ne(fcntl(fd[0], F_SETFL, O_NONBLOCK), -1);
}

static void setup(enum way way)
{
    struct tls_settings st;
    struct err err = {0};

    memset(&fx, 0, sizeof fx);
    fx.way = way;
    snprintf(fx.dir, sizeof fx.dir, "/tmp/test_tls.XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(fx.dir));
    peer_cert_make(&fx.ca, fx.dir, "ca", "test CA", 7, NULL);
    peer_cert_make(&fx.own, fx.dir, "own", "localhost", 9, &fx.ca);
    loop_init(&fx.loop);
    fx.env = tls_env_new();
    st = settings_of(&fx.own, &fx.ca);
    fx.server = tls_context_new_server(fx.env, &st, &err);
    ck_assert_msg(fx.server != NULL, "%s", err.msg);
    st = settings_of(NULL, &fx.ca);
    fx.client = tls_context_new_client(fx.env, &st, &err);
    ck_assert_msg(fx.client != NULL, "%s", err.msg);
    fx.end.step = 65536;
    if (way != WAY_REFUSED)
        return;
    SSL_CTX_set_options(fx.server->ssl_ctx, SSL_OP_ENABLE_KTLS);
    SSL_CTX_set_options(fx.client->ssl_ctx, SSL_OP_ENABLE_KTLS);
}

static void setup_memory(void)
{
    setup(WAY_MEMORY);
}

static void setup_refused(void)
{
    setup(WAY_REFUSED);
}

static void setup_kernel(void)
{
    setup(WAY_KERNEL);
}

static void setup_kernel_12(void)
{
    setup(WAY_KERNEL_12);
}

/* One turn of the loop; it waits a moment at most, for the peer is in this thread. */
static void turn(void)
{
    struct pollfd p = {.fd = fx.loop.epoll_fd, .events = POLLIN};

    if (fx.way >= WAY_KERNEL)
        (void)poll(&p, 1, 1); /* a thread of the kernel carries over what was sent */
    loop_poll(&fx.loop);
}

static void await(int fd)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};

    ck_assert_int_eq(poll(&p, 1, 20000), 1);
}

static void close_end(struct end *e)
{
    int i;

    stream_close(&e->stream);
    for (i = 0; i < MAX_TURNS && !e->is_closed; i++)
        turn();
    ck_assert(e->is_closed);
    buf_free(&e->got);
}

static void teardown(void)
{
    if (!fx.end.is_closed)
        close_end(&fx.end);
    buf_free(&fx.end.got);
    peer_fini(&fx.peer);
    tls_context_free(&fx.server);
    tls_context_free(&fx.client);
    loop_fini(&fx.loop);
    tls_env_free(&fx.env);
    peer_cert_free(&fx.own);
    peer_cert_free(&fx.ca);
    rmdir(fx.dir);
}

/* Opens both ends; the handshake is not done. */
static void open_server(const struct peer_cert *shown)
{
    int fd[2];

    pair(fd);
    stream_open(&fx.loop, &fx.end.stream, fd[0], &ops);
    peer_init(&fx.peer, fd[1], false, shown);
    stream_start_tls_server(&fx.end.stream, fx.server, slice_of(NULL, 0), false);
}

static void shake_hands(void)
{
    int i;

    for (i = 0; i < MAX_TURNS; i++) {
        bool peer_done = peer_step(&fx.peer);

        turn();
        if (peer_done && stream_is_secured(&fx.end.stream))
            return;
        ck_assert_msg(!fx.end.has_ended, "%s", stream_tls_error(&fx.end.stream));
    }
    ck_abort_msg("the handshake does not end");
}

static void wait_for_bytes(size_t n)
{
    int i;

    for (i = 0; i < MAX_TURNS && fx.end.got.len < n && !fx.end.has_ended; i++) {
        peer_flush(&fx.peer);
        turn();
    }
    ck_assert_uint_eq(fx.end.got.len, n);
}

static void wait_for_end(void)
{
    int i;

    for (i = 0; i < MAX_TURNS && !fx.end.has_ended; i++)
        turn();
    ck_assert(fx.end.has_ended);
}

static void fill(char *p, size_t n)
{
    size_t i;

    for (i = 0; i < n; i++)
        p[i] = (char)(i * 131 + i / 251);
}

static const size_t chunks[] = {0, 1, 5, 1000};

/* As server, hands are shaken and words said in pieces of every size. */
START_TEST(server_talks)
{
    struct buf back = {0};
    int i;

    open_server(NULL);
    fx.peer.chunk = chunks[_i];
    shake_hands();
    peer_write(&fx.peer, "hello", 5);
    wait_for_bytes(5);
    ck_assert_mem_eq(fx.end.got.data, "hello", 5);
    ck_assert_int_eq(stream_send(&fx.end.stream, "world", 5), 0);
    for (i = 0; i < MAX_TURNS && back.len < 5; i++)
        peer_read(&fx.peer, &back);
    ck_assert_mem_eq(back.data, "world", 5);
    ck_assert_str_eq(
        stream_tls_version(&fx.end.stream), fx.way == WAY_KERNEL_12 ? "TLSv1.2" : "TLSv1.3");
    ck_assert_int_eq(stream_tls_bits(&fx.end.stream), 256);
    ck_assert(!stream_is_stale(&fx.end.stream));
    buf_free(&back);
}
END_TEST

START_TEST(client_talks)
{
    int digest_nid = 0;
    struct buf back = {0};
    struct buf der = {0};
    struct err err = {0};
    unsigned char *want = NULL;
    int fd[2];
    int n;

    pair(fd);
    stream_open(&fx.loop, &fx.end.stream, fd[0], &ops);
    peer_init(&fx.peer, fd[1], true, &fx.own);
    fx.peer.chunk = chunks[_i];
    ck_assert_int_eq(
        stream_start_tls_client(&fx.end.stream, fx.client, "localhost", true, false, &err), 0);
    shake_hands();
    ck_assert_str_eq(SSL_get_servername(fx.peer.ssl, TLSEXT_NAMETYPE_host_name), "localhost");
    ck_assert_int_eq(stream_send(&fx.end.stream, "world", 5), 0);
    for (n = 0; n < MAX_TURNS && back.len < 5; n++)
        peer_read(&fx.peer, &back);
    ck_assert_mem_eq(back.data, "world", 5);
    ck_assert(stream_tls_is_peer_verified(&fx.end.stream));
    n = i2d_X509(fx.own.cert, &want);
    ck_assert_int_eq(stream_tls_server_cert(&fx.end.stream, &der, &digest_nid), 0);
    ck_assert_int_eq(digest_nid, NID_sha256);
    ck_assert_int_eq((int)der.len, n);
    ck_assert_mem_eq(der.data, want, (size_t)n);
    OPENSSL_free(want);
    buf_free(&der);
    buf_free(&back);
}
END_TEST

/* Nothing tells of what OpenSSL has read already: the stream itself must. */
START_TEST(small_reads_get_everything)
{
    char data[20000];

    fill(data, sizeof data);
    open_server(NULL);
    shake_hands();
    fx.end.step = 7;
    peer_write(&fx.peer, data, sizeof data);
    wait_for_bytes(sizeof data);
    ck_assert_mem_eq(fx.end.got.data, data, sizeof data);
}
END_TEST

START_TEST(a_pause_keeps_what_is_inside)
{
    char data[3000];
    unsigned nreads;
    int i;

    fill(data, sizeof data);
    open_server(NULL);
    shake_hands();
    fx.end.step = 100;
    fx.end.pause_at = 500;
    peer_write(&fx.peer, data, sizeof data);
    for (i = 0; i < MAX_TURNS && fx.end.got.len < 500; i++)
        turn();
    ck_assert_uint_eq(fx.end.got.len, 500);
    nreads = fx.end.nreads;
    for (i = 0; i < 100; i++)
        turn();
    ck_assert_uint_eq(fx.end.nreads, nreads); /* silent while it is paused */
    ck_assert(stream_is_stale(&fx.end.stream));
    stream_resume(&fx.end.stream);
    wait_for_bytes(sizeof data);
    ck_assert_mem_eq(fx.end.got.data, data, sizeof data);
}
END_TEST

START_TEST(a_slow_peer_gets_everything)
{
    size_t n = 8U << 20;
    char *data = malloc(n);
    struct buf back = {0};
    int i;

    fill(data, n);
    open_server(NULL);
    shake_hands();
    ck_assert_int_eq(stream_send(&fx.end.stream, data, n), 0);
    ck_assert(stream_is_clogged(&fx.end.stream));
    ck_assert_int_eq(stream_send(&fx.end.stream, "the end", 7), 0);
    for (i = 0; i < MAX_TURNS && back.len < n + 7; i++) {
        peer_read(&fx.peer, &back);
        turn();
    }
    ck_assert_uint_eq(back.len, n + 7);
    ck_assert_mem_eq(back.data, data, n);
    ck_assert_mem_eq(back.data + n, "the end", 7);
    ck_assert(fx.end.is_drained);
    ck_assert(!stream_is_clogged(&fx.end.stream));
    buf_free(&back);
    free(data);
}
END_TEST

/* Those the kernel has stay as they are: it must not go on as if they had changed. */
static void refuse_new_keys(void)
{
    ck_assert_int_eq(SSL_key_update(fx.peer.ssl, SSL_KEY_UPDATE_REQUESTED), 1);
    peer_write(&fx.peer, "after", 5);
    wait_for_end();
    ck_assert_int_eq(fx.end.errnum, EPROTO);
    ck_assert_int_eq(stream_send(&fx.end.stream, "mine", 4), -1);
}

/* The answer to a change of keys goes to who asked, although it was written while reading data. */
START_TEST(new_keys)
{
    struct end other = {.step = 65536};
    struct peer other_peer;
    struct buf back = {0};
    struct buf stray = {0};
    int fd[2];
    int i;

    open_server(NULL);
    shake_hands();
    if (fx.way == WAY_KERNEL_12)
        return; /* it cannot do that */
    if (stream_tls_kernel(&fx.end.stream) != 0) {
        refuse_new_keys();
        return;
    }
    pair(fd);
    stream_open(&fx.loop, &other.stream, fd[0], &ops);
    peer_init(&other_peer, fd[1], false, NULL);
    stream_start_tls_server(&other.stream, fx.server, slice_of(NULL, 0), false);
    for (i = 0; i < MAX_TURNS && !(peer_step(&other_peer) && stream_is_secured(&other.stream)); i++)
        turn();
    ck_assert_int_eq(SSL_key_update(fx.peer.ssl, SSL_KEY_UPDATE_REQUESTED), 1);
    peer_write(&fx.peer, "after", 5);
    wait_for_bytes(5);
    ck_assert_int_eq(stream_send(&other.stream, "other", 5), 0);
    ck_assert_int_eq(stream_send(&fx.end.stream, "mine", 4), 0);
    await(fx.peer.fd);
    peer_read(&fx.peer, &back);
    await(other_peer.fd);
    peer_read(&other_peer, &stray);
    ck_assert_uint_eq(back.len, 4);
    ck_assert_mem_eq(back.data, "mine", 4);
    ck_assert_uint_eq(stray.len, 5);
    ck_assert_mem_eq(stray.data, "other", 5);
    buf_free(&back);
    buf_free(&stray);
    close_end(&other);
    peer_fini(&other_peer);
}
END_TEST

START_TEST(what_the_kernel_does)
{
    const char *why = "";
    bool is_offered = tls_kernel_is_offered(&why);
    unsigned done;

    open_server(NULL);
    ck_assert_uint_eq(stream_tls_kernel(&fx.end.stream), 0);
    shake_hands();
    done = stream_tls_kernel(&fx.end.stream);
    ck_assert(is_offered || why[0] != '\0');
    if (!is_offered || fx.way < WAY_KERNEL)
        ck_assert_uint_eq(done, 0);
    else if (fx.way == WAY_KERNEL_12)
        ck_assert_uint_eq(done, TLS_KERNEL_SENDS | TLS_KERNEL_RECEIVES);
    else
        ck_assert_uint_ne(done & TLS_KERNEL_SENDS, 0);
    /* No more of OpenSSL's view of the socket is kept than is needed. */
    ck_assert_int_eq(fx.end.stream.tls->sock == NULL, done == 0);
}
END_TEST

/* Our part of the handshake has to wait behind what was sent before it. */
START_TEST(the_handshake_waits_for_room)
{
    size_t n = 8U << 20;
    char *data = malloc(n);
    struct buf back = {0};
    size_t seen = 0;
    ssize_t got = 0;
    int fd[2];
    int i;

    fill(data, n);
    pair(fd);
    stream_open(&fx.loop, &fx.end.stream, fd[0], &ops);
    peer_init(&fx.peer, fd[1], false, NULL);
    ck_assert_int_eq(stream_send(&fx.end.stream, data, n), 0);
    ck_assert(stream_is_clogged(&fx.end.stream));
    stream_start_tls_server(&fx.end.stream, fx.server, slice_of(NULL, 0), false);
    ck_assert_int_ne(SSL_do_handshake(fx.peer.ssl), 1);
    peer_flush(&fx.peer);
    await(fd[0]);
    for (i = 0; i < 100; i++)
        turn();
    for (; seen < n; seen += (size_t)got) {
        turn();
        await(fd[1]);
        got = recv(fd[1], data, n - seen, 0);
        ck_assert_int_gt((int)got, 0);
    }
    shake_hands();
    peer_write(&fx.peer, "hello", 5);
    wait_for_bytes(5);
    ck_assert_int_eq(stream_send(&fx.end.stream, "world", 5), 0);
    for (i = 0; i < MAX_TURNS && back.len < 5; i++)
        peer_read(&fx.peer, &back);
    ck_assert_mem_eq(back.data, "world", 5);
    buf_free(&back);
    free(data);
}
END_TEST

/* In the middle of a handshake and after it. */
START_TEST(the_connection_ends)
{
    int i;

    open_server(NULL);
    if (_i == 1)
        shake_hands();
    else
        (void)peer_step(&fx.peer);
    for (i = 0; i < 10; i++)
        turn();
    ck_assert_int_eq(shutdown(fx.peer.fd, SHUT_WR), 0);
    wait_for_end();
    ck_assert_int_eq(fx.end.errnum, 0);
}
END_TEST

START_TEST(goodbye_of_the_peer)
{
    open_server(NULL);
    shake_hands();
    peer_write(&fx.peer, "last", 4);
    (void)SSL_shutdown(fx.peer.ssl);
    peer_flush(&fx.peer); /* the connection itself stays open */
    wait_for_end();
    ck_assert_int_eq(fx.end.errnum, 0);
    ck_assert_uint_eq(fx.end.got.len, 4);
}
END_TEST

START_TEST(goodbye_of_ours)
{
    struct buf back = {0};
    int i;

    open_server(NULL);
    shake_hands();
    if (_i == 1)
        stream_tls_close_quietly(&fx.end.stream);
    close_end(&fx.end);
    for (i = 0; i < 2 && !fx.peer.has_ended; i++) { /* the goodbye and the end, or both at once */
        await(fx.peer.fd);
        peer_read(&fx.peer, &back);
    }
    ck_assert_int_eq((SSL_get_shutdown(fx.peer.ssl) & SSL_RECEIVED_SHUTDOWN) != 0, _i == 0);
    ck_assert_uint_eq(back.len, 0);
}
END_TEST

START_TEST(what_is_not_tls)
{
    static const char *const junk[] = {"GET / HTTP/1.0\r\n\r\n", "\0\0\0\x08\x04\xd2\x16\x2f",
        "\x16\x03\x01\xff\xff junk junk junk"};
    static const size_t len[] = {18, 8, 20};

    open_server(NULL);
    ck_assert_int_eq((int)send(fx.peer.fd, junk[_i], len[_i], 0), (int)len[_i]);
    wait_for_end();
    ck_assert_int_eq(fx.end.errnum, EPROTO);
    ck_assert_str_ne(stream_tls_error(&fx.end.stream), "");
    ck_assert(!stream_tls_cert_was_bad(&fx.end.stream));
    ck_assert_int_eq(stream_send(&fx.end.stream, "x", 1), -1);
}
END_TEST

START_TEST(nothing_goes_out_in_clear)
{
    char byte;

    open_server(NULL);
    ck_assert_int_eq(stream_send(&fx.end.stream, "secret", 6), -1);
    close_end(&fx.end);
    await(fx.peer.fd);
    ck_assert_int_eq((int)recv(fx.peer.fd, &byte, 1, MSG_DONTWAIT), 0); /* the end, no byte */
}
END_TEST

/* The bytes that were read before it was known that they are TLS. */
START_TEST(early_bytes_and_alpn)
{
    static const unsigned char names[][12] = {"\x0apostgresql", "\x04http"};
    static const unsigned lens[] = {11, 5};
    char hello[4096];
    ssize_t n;
    int fd[2];

    pair(fd);
    stream_open(&fx.loop, &fx.end.stream, fd[0], &ops);
    peer_init(&fx.peer, fd[1], false, NULL);
    if (_i < 2)
        ck_assert_int_eq(SSL_set_alpn_protos(fx.peer.ssl, names[_i], lens[_i]), 0);
    (void)peer_step(&fx.peer);
    await(fd[0]);
    n = recv(fd[0], hello, sizeof hello, 0);
    ck_assert_int_gt((int)n, 0);
    stream_start_tls_server(&fx.end.stream, fx.server, slice_of(hello, (size_t)n), true);
    if (_i == 0) {
        shake_hands();
        return;
    }
    for (n = 0; n < MAX_TURNS && !fx.end.has_ended; n++) {
        turn();
        (void)peer_step(&fx.peer);
    }
    ck_assert_int_eq(fx.end.errnum, EPROTO);
}
END_TEST

START_TEST(facts_of_the_peer)
{
    struct peer_cert ann;
    struct buf cn = {0};
    struct buf dn = {0};
    struct err err = {0};

    peer_cert_make(&ann, fx.dir, "ann", "ann", 3, &fx.ca);
    open_server(&ann);
    ck_assert(!stream_tls_has_peer_cert(&fx.end.stream));
    ck_assert_str_eq(stream_tls_version(&fx.end.stream), "");
    shake_hands();
    ck_assert(stream_tls_is_peer_verified(&fx.end.stream));
    ck_assert_int_eq(stream_tls_peer_cn(&fx.end.stream, &cn, &err), 0);
    ck_assert(slice_eq_str(buf_slice(&cn), "ann"));
    ck_assert_int_eq(stream_tls_peer_dn(&fx.end.stream, &dn, &err), 0);
    ck_assert(slice_eq_str(buf_slice(&dn), "CN=ann,O=Test\\, Inc"));
    buf_free(&cn);
    buf_free(&dn);
    peer_cert_free(&ann);
}
END_TEST

START_TEST(a_name_with_a_nul)
{
    struct peer_cert evil;
    struct buf cn = {0};
    struct err err = {0};

    peer_cert_make(&evil, fx.dir, "evil", "ann\0eve", 7, &fx.ca);
    open_server(&evil);
    shake_hands();
    ck_assert_int_eq(stream_tls_peer_cn(&fx.end.stream, &cn, &err), -1);
    ck_assert(err_is_set(&err));
    ck_assert_uint_eq(cn.len, 0);
    peer_cert_free(&evil);
}
END_TEST

START_TEST(a_stranger)
{
    struct peer_cert stranger;
    int i;

    peer_cert_make(&stranger, fx.dir, "stranger", "ann", 3, NULL);
    open_server(&stranger);
    for (i = 0; i < MAX_TURNS && !fx.end.has_ended; i++) {
        (void)peer_step(&fx.peer);
        turn();
    }
    ck_assert_int_eq(fx.end.errnum, EPROTO);
    ck_assert(stream_tls_cert_was_bad(&fx.end.stream));
    peer_cert_free(&stranger);
}
END_TEST

/* A stream outlives the context it began with. */
START_TEST(new_context)
{
    struct buf back = {0};

    open_server(NULL);
    shake_hands();
    tls_context_free(&fx.server);
    ck_assert_int_eq(stream_send(&fx.end.stream, "still", 5), 0);
    await(fx.peer.fd);
    peer_read(&fx.peer, &back);
    ck_assert_uint_eq(back.len, 5);
    buf_free(&back);
}
END_TEST

static TCase *tests_of(const char *name, SFun set_up)
{
    TCase *tc = tcase_create(name);

    tcase_add_checked_fixture(tc, set_up, teardown);
    tcase_set_timeout(tc, 60);
    tcase_add_loop_test(tc, server_talks, 0, 4);
    tcase_add_loop_test(tc, client_talks, 0, 4);
    tcase_add_test(tc, small_reads_get_everything);
    tcase_add_test(tc, a_pause_keeps_what_is_inside);
    tcase_add_test(tc, a_slow_peer_gets_everything);
    tcase_add_test(tc, new_keys);
    tcase_add_test(tc, what_the_kernel_does);
    tcase_add_test(tc, the_handshake_waits_for_room);
    tcase_add_loop_test(tc, the_connection_ends, 0, 2);
    tcase_add_test(tc, goodbye_of_the_peer);
    tcase_add_loop_test(tc, goodbye_of_ours, 0, 2);
    tcase_add_loop_test(tc, what_is_not_tls, 0, 3);
    tcase_add_test(tc, nothing_goes_out_in_clear);
    tcase_add_loop_test(tc, early_bytes_and_alpn, 0, 3);
    tcase_add_test(tc, facts_of_the_peer);
    tcase_add_test(tc, a_name_with_a_nul);
    tcase_add_test(tc, a_stranger);
    tcase_add_test(tc, new_context);
    return tc;
}

int main(void)
{
    Suite *s = suite_create("tls");

    suite_add_tcase(s, tests_of("memory", setup_memory));
    suite_add_tcase(s, tests_of("refused", setup_refused));
    suite_add_tcase(s, tests_of("kernel", setup_kernel));
    suite_add_tcase(s, tests_of("kernel, TLS 1.2", setup_kernel_12));
    return run_suite(s);
}
