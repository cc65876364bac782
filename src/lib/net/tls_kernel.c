/* SPDX-License-Identifier: PostgreSQL
 * tls_kernel.c: TLS records made and opened by the kernel (kTLS).
 * Runs in: workers, control. OpenSSL does the handshake and hands the keys over by itself, if
 * cipher and version are among those both know: then what is sent is written to the socket as it
 * is, and what is received comes out of it in clear. It takes OpenSSL's own BIO of the socket for
 * that: ours asks it whenever there is something it does not know. Until the keys have been handed
 * over nothing may be read beyond a record, so a handshake takes two calls per record then. What is
 * not handed over goes on in memory, in each direction by itself. Must never be needed: whatever is
 * missing here, TLS works without. */
#include "config.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/err.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tls_openssl.h"

/* The C library may not have them (kernel's linux/tls.h, linux/tcp.h). */
#ifndef TCP_ULP
#define TCP_ULP 31
#endif
#ifndef SOL_TLS
#define SOL_TLS 282
#endif
#define KERNEL_GET_RECORD_TYPE 2

#ifdef OPENSSL_NO_KTLS
#define KERNEL_IS_BUILT false
#else
#define KERNEL_IS_BUILT true
#endif

#define RECORD_HEAD_BYTES 5
#define RECORD_DATA       23

static int kernel_ask(int fd)
{
    return setsockopt(fd, IPPROTO_TCP, TCP_ULP, "tls", sizeof "tls");
}

/* The kernel looks for its module first: a socket that is not connected is refused later. */
bool tls_kernel_is_offered(const char **why)
{
    int fd;
    int errnum;

    if (!KERNEL_IS_BUILT) {
        *why = "OpenSSL was built without it";
        return false;
    }
    fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd == -1)
        fd = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
    errnum = fd == -1 || kernel_ask(fd) == 0 ? 0 : errno;
    if (fd != -1)
        close(fd);
    *why = errnum == ENOENT ? "its module \"tls\" is not loaded" : strerror(errnum);
    return fd != -1 && (errnum == 0 || errnum == ENOTCONN);
}

void tls_kernel_attach(struct tls *t)
{
    if ((SSL_get_options(t->ssl) & SSL_OP_ENABLE_KTLS) == 0)
        return;
    t->sock = BIO_new_socket(t->stream->io.fd, BIO_NOCLOSE);
    /* If it is refused the keys will be too, and OpenSSL goes on without. */
    if (t->sock != NULL)
        (void)kernel_ask(t->stream->io.fd);
}

void tls_kernel_detach(struct tls *t)
{
    BIO_free(t->sock);
    t->sock = NULL;
}

void tls_kernel_settle(struct tls *t)
{
    if (t->sock == NULL)
        return;
    if (BIO_get_ktls_send(t->sock))
        t->kernel |= TLS_KERNEL_SENDS;
    if (BIO_get_ktls_recv(t->sock))
        t->kernel |= TLS_KERNEL_RECEIVES;
    if (t->kernel == 0)
        tls_kernel_detach(t);
}

int tls_kernel_bio_read(struct tls *t, BIO *bio, char *p, int n)
{
    int got = BIO_read(t->sock, p, n);

    if (got > 0)
        return got;
    if (BIO_should_retry(t->sock)) {
        BIO_set_retry_read(bio);
    } else {
        t->is_lost = true;
        t->lost_errno = got == 0 ? 0 : errno;
    }
    return got;
}

int tls_kernel_bio_write(struct tls *t, BIO *bio, const char *p, int n)
{
    int sent = BIO_write(t->sock, p, n);

    if (sent <= 0 && BIO_should_retry(t->sock))
        BIO_set_retry_write(bio);
    return sent;
}

/* What the record that was received is, by the kernel's note about it. */
static int record_type(struct msghdr *msg)
{
    struct cmsghdr *note = CMSG_FIRSTHDR(msg);

    return note != NULL && note->cmsg_level == SOL_TLS && note->cmsg_type == KERNEL_GET_RECORD_TYPE
               ? *CMSG_DATA(note)
               : RECORD_DATA;
}

/* An alert or a message of the handshake: it goes to OpenSSL, as the record it was. */
static void give_record(struct tls *t, int type, const char *p, size_t n)
{
    char head[RECORD_HEAD_BYTES] = {(char)type, 3, 3, (char)(n >> 8), (char)n};

    buf_put(&t->left, head, sizeof head);
    buf_put(&t->left, p, n);
}

ssize_t tls_kernel_recv(struct stream *s, char *p, size_t n)
{
    union {
        struct cmsghdr head; /* for its alignment */
        char room[CMSG_SPACE(1)];
    } note = {0};
    struct iovec piece = {.iov_base = p, .iov_len = n};
    struct msghdr msg = {.msg_iov = &piece,
        .msg_iovlen = 1,
        .msg_control = note.room,
        .msg_controllen = sizeof note.room};
    ssize_t got = recvmsg(s->io.fd, &msg, 0);
    int type;

    if (got <= 0)
        return got;
    type = record_type(&msg);
    if (type == RECORD_DATA)
        return got;
    /* Longer than a record it is only when it is no record of ours to understand. */
    give_record(s->tls, type, p, (size_t)got < UINT16_MAX ? (size_t)got : UINT16_MAX);
    return 0;
}

bool tls_kernel_is_bad_record(int errnum)
{
    return errnum == EBADMSG || errnum == EMSGSIZE || errnum == EINVAL || errnum == EKEYEXPIRED;
}
