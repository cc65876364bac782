/* SPDX-License-Identifier: PostgreSQL
 * tls.c: the bytes of a TLS stream.
 * OpenSSL never sees the socket: it reads from what one recv brought and writes into a buffer that
 * one send empties, both shared by all streams of the process. So a record costs one system call,
 * not two; writing never blocks; what cannot be sent waits, encrypted, in the stream's own buffer
 * like plain bytes would; and an idle stream owns neither buffer. */
#include "config.h"

#include <errno.h>
#include <limits.h>
#include <openssl/err.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "base/assert.h"
#include "base/mem.h"

#include "tls_openssl.h"

const unsigned char tls_alpn_postgresql[11] = {
    10, 'p', 'o', 's', 't', 'g', 'r', 'e', 's', 'q', 'l'};

void tls_error_text(char *out, size_t cap, const char *otherwise)
{
    unsigned long code = ERR_peek_error();
    const char *reason = code == 0 ? NULL : ERR_reason_error_string(code);

    if (code != 0 && ERR_SYSTEM_ERROR(code))
        reason = strerror(ERR_GET_REASON(code));
    snprintf(out, cap, "%s", reason == NULL ? otherwise : reason);
    ERR_clear_error();
}

/* An old error would be taken for that of the next call. Asking costs less than emptying. */
static void forget_errors(void)
{
    if (ERR_peek_error() != 0)
        ERR_clear_error();
}

/* ---- what OpenSSL reads from and writes to ---- */

static int tls_bio_read(BIO *bio, char *p, int n)
{
    struct tls *t = BIO_get_data(bio);
    size_t take = t->source_len < (size_t)n ? t->source_len : (size_t)n;

    BIO_clear_retry_flags(bio);
    if (take == 0 && t->sock != NULL && !t->is_secured)
        return tls_kernel_bio_read(t, bio, p, n);
    if (take == 0) {
        BIO_set_retry_read(bio);
        return -1;
    }
    memcpy(p, t->source, take);
    t->source += take;
    t->source_len -= take;
    return (int)take;
}

static int tls_bio_write(BIO *bio, const char *p, int n)
{
    struct tls *t = BIO_get_data(bio);

    BIO_clear_retry_flags(bio);
    if (t->sock != NULL && BIO_get_ktls_send(t->sock))
        return tls_kernel_bio_write(t, bio, p, n);
    buf_put(&t->env->out, p, (size_t)n);
    return n;
}

static int tls_flush(struct stream *s);

/* Before the kernel gets the keys, all that was encrypted without it must have left. */
static long tls_bio_flush(BIO *bio, struct tls *t)
{
    if (t->sock == NULL)
        return 1; /* when OpenSSL has returned */
    BIO_clear_retry_flags(bio);
    if (tls_flush(t->stream) == 0 && !stream_is_clogged(t->stream))
        return 1;
    t->flush_waits = true;
    BIO_set_retry_write(bio);
    return -1;
}

static long tls_bio_ctrl(BIO *bio, int cmd, long num, void *ptr)
{
    struct tls *t = BIO_get_data(bio);

    switch (cmd) {
    case BIO_CTRL_FLUSH:
        return tls_bio_flush(bio, t);
    case BIO_CTRL_DUP:
        return 1;
    case BIO_CTRL_EOF:
        return 0;
    default: /* among others, words about keys for the kernel that have no public names */
        return t == NULL || t->sock == NULL ? 0 : BIO_ctrl(t->sock, cmd, num, ptr);
    }
}

struct tls_env *tls_env_new(void)
{
    struct tls_env *env = mem_alloc_zero(sizeof *env);

    env->bio_method = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "stream");
    ASSERT(env->bio_method != NULL);
    BIO_meth_set_read(env->bio_method, tls_bio_read);
    BIO_meth_set_write(env->bio_method, tls_bio_write);
    BIO_meth_set_ctrl(env->bio_method, tls_bio_ctrl);
    env->in = mem_alloc(TLS_IN_BYTES);
    return env;
}

void tls_env_free(struct tls_env **ep)
{
    struct tls_env *env = *ep;

    *ep = NULL;
    if (env == NULL)
        return;
    BIO_meth_free(env->bio_method);
    buf_free(&env->out);
    mem_free(env->in);
    mem_free(env);
}

/* Sends what OpenSSL has written. */
static int tls_flush(struct stream *s)
{
    struct buf *out = &s->tls->env->out; /* empty between two calls from outside */
    int rc = 0;

    if (out->len > 0)
        rc = stream_send_raw(s, out->data, out->len);
    if (out->cap > TLS_OUT_KEEP_BYTES)
        buf_free(out);
    else
        buf_clear(out);
    return rc;
}

/* ---- beginning ---- */

static int tls_make_ssl(struct tls *t, bool is_server)
{
    BIO *bio = BIO_new(t->env->bio_method);

    t->ssl = SSL_new(t->ctx);
    if (t->ssl == NULL || bio == NULL) {
        SSL_free(t->ssl);
        BIO_free(bio);
        t->ssl = NULL;
        return -1;
    }
    BIO_set_data(bio, t);
    BIO_set_init(bio, 1);
    tls_kernel_attach(t);
    SSL_set_bio(t->ssl, bio, bio);
    SSL_CTX_free(t->ctx);
    t->ctx = NULL;
    if (is_server)
        SSL_set_accept_state(t->ssl);
    else
        SSL_set_connect_state(t->ssl);
    return 0;
}

static void tls_on_again(struct task *task)
{
    struct stream *s = LIST_ENTRY(task, struct tls, again)->stream;

    if ((s->io.marks & STREAM_READING) != 0)
        s->ops->on_readable(s);
}

static struct tls *tls_new(struct stream *s, struct tls_context *ctx, bool need_alpn)
{
    struct tls *t = mem_alloc_zero(sizeof *t);

    ASSERT(s->tls == NULL && s->io.fd != -1);
    SSL_CTX_up_ref(ctx->ssl_ctx);
    t->ctx = ctx->ssl_ctx;
    t->env = ctx->env;
    t->stream = s;
    t->need_alpn = need_alpn;
    task_init(&t->again, tls_on_again);
    s->tls = t;
    return t;
}

static void tls_post(struct stream *s)
{
    if ((s->io.marks & STREAM_READING) != 0)
        task_post(s->io.of.lp, &s->tls->again);
}

void stream_start_tls_server(
    struct stream *s, struct tls_context *ctx, struct slice early, bool need_alpn)
{
    struct tls *t = tls_new(s, ctx, need_alpn);

    if (early.n > 0) {
        buf_put(&t->left, early.p, early.n);
        tls_post(s);
    }
}

static bool is_address(const char *host)
{
    ASN1_OCTET_STRING *ip = a2i_IPADDRESS(host);
    bool yes = ip != NULL;

    ASN1_OCTET_STRING_free(ip);
    ERR_clear_error();
    return yes;
}

/* Whom the certificate must name. OpenSSL compares with the alternative names, and with the common
 * name only when there are none. */
static int tls_set_name(SSL *ssl, const char *host, bool check_host)
{
    X509_VERIFY_PARAM *param = SSL_get0_param(ssl);

    if (is_address(host))
        return !check_host || X509_VERIFY_PARAM_set1_ip_asc(param, host) == 1 ? 0 : -1;
    if (SSL_set_tlsext_host_name(ssl, host) != 1)
        return -1;
    if (!check_host)
        return 0;
    SSL_set_hostflags(ssl, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
    return SSL_set1_host(ssl, host) == 1 ? 0 : -1;
}

int stream_start_tls_client(struct stream *s, struct tls_context *ctx, const char *host,
    bool check_host, bool need_alpn, struct err *err)
{
    struct tls *t = tls_new(s, ctx, need_alpn);
    char text[TLS_ERROR_BYTES];

    if (tls_make_ssl(t, false) == -1 || tls_set_name(t->ssl, host, check_host) == -1) {
        tls_error_text(text, sizeof text, "out of memory");
        err_set_fatal(err, "08006", "could not begin TLS with \"%s\": %s", host, text);
        t->has_failed = true;
        return -1;
    }
    (void)SSL_do_handshake(t->ssl); /* writes the first message; the answer is read later */
    ERR_clear_error();
    return tls_flush(s);
}

/* ---- reading ---- */

/* Ends the connection for good: what was written (an alert) goes out first. */
static ssize_t tls_fail(struct stream *s, const char *otherwise)
{
    struct tls *t = s->tls;
    char text[TLS_ERROR_BYTES];
    long verify = t->ssl == NULL ? X509_V_OK : SSL_get_verify_result(t->ssl);
    unsigned long code = ERR_peek_error();

    if (verify != X509_V_OK && ERR_GET_REASON(code) == SSL_R_CERTIFICATE_VERIFY_FAILED) {
        t->cert_was_bad = true;
        snprintf(text, sizeof text, "certificate verify failed: %s",
            X509_verify_cert_error_string(verify));
        ERR_clear_error();
    } else {
        tls_error_text(text, sizeof text, otherwise);
    }
    (void)tls_flush(s);
    t->has_failed = true;
    mem_free(t->error);
    t->error = mem_strdup(text);
    errno = EPROTO;
    return -1;
}

/* Encrypted bytes for OpenSSL: those left over, else one recv. 1: there are some, else as
 * stream_recv. */
static ssize_t tls_fetch(struct stream *s)
{
    struct tls *t = s->tls;
    ssize_t got;

    if (buf_unread(&t->left) > 0) {
        t->source = t->left.data + t->left.pos;
        t->source_len = buf_unread(&t->left);
        return 1;
    }
    if (t->sock != NULL && !t->is_secured)
        return 1; /* a handshake that reads the socket itself, no more than it needs */
    got = recv(s->io.fd, t->env->in, TLS_IN_BYTES, 0);
    if (got > 0) {
        t->source = t->env->in;
        t->source_len = (size_t)got;
        return 1;
    }
    if (got == 0)
        errno = 0;
    else if (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR)
        return 0;
    return -1;
}

/* Keeps what OpenSSL has not taken: the shared buffer is not ours any longer. */
static void tls_put_back(struct tls *t)
{
    size_t n = t->source_len;

    if (buf_unread(&t->left) > 0)
        buf_consume(&t->left, buf_unread(&t->left) - n);
    else if (n > 0)
        buf_put(&t->left, t->source, n);
    t->source = NULL;
    t->source_len = 0;
}

static bool tls_has_alpn(const struct tls *t)
{
    const unsigned char *name;
    unsigned len;

    SSL_get0_alpn_selected(t->ssl, &name, &len);
    return len == tls_alpn_postgresql[0] && memcmp(name, tls_alpn_postgresql + 1, len) == 0;
}

/* More bytes are needed, or room for ours; else it has failed. */
static ssize_t tls_on_handshake_stop(struct stream *s, int rc)
{
    struct tls *t = s->tls;
    int why = SSL_get_error(t->ssl, rc);

    /* Between ours and OpenSSL is a BIO of its own in a handshake, which does not tell why. */
    if (why == SSL_ERROR_SYSCALL && t->flush_waits)
        why = SSL_ERROR_WANT_WRITE;
    if (t->is_lost || (t->sock != NULL && stream_has_failed(s))) {
        ERR_clear_error();
        errno = t->is_lost ? t->lost_errno : EPIPE;
        return -1;
    }
    if (why != SSL_ERROR_WANT_READ && why != SSL_ERROR_WANT_WRITE)
        return tls_fail(s, "handshake failed");
    (void)tls_flush(s);
    if (why == SSL_ERROR_WANT_WRITE)
        stream_await_room(s);
    return 0;
}

/* Goes on with the handshake. 1: it is over, 0: more bytes are needed, -1: failed. */
static ssize_t tls_handshake(struct stream *s)
{
    struct tls *t = s->tls;
    int rc;

    t->flush_waits = false;
    rc = SSL_do_handshake(t->ssl);
    if (rc != 1)
        return tls_on_handshake_stop(s, rc);
    if (t->need_alpn && !tls_has_alpn(t))
        return tls_fail(s, "direct TLS without the protocol name \"postgresql\" (ALPN)");
    (void)tls_flush(s);
    t->is_secured = true;
    tls_kernel_settle(t);
    return 1;
}

/* Reading stopped: nothing more is here, or the other side is done, or something is wrong. */
static void tls_on_read_stop(struct stream *s, int rc)
{
    struct tls *t = s->tls;

    switch (SSL_get_error(t->ssl, rc)) {
    case SSL_ERROR_WANT_READ:
        break;
    case SSL_ERROR_ZERO_RETURN:
        t->has_ended = true;
        break;
    default:
        (void)tls_fail(s, "connection reset");
        break;
    }
}

/* Decrypts what there is, up to `n` bytes. > 0 that many, else as stream_recv. */
static ssize_t tls_decrypt(struct stream *s, char *p, size_t n)
{
    struct tls *t = s->tls;
    size_t total = 0;
    int rc = 1;

    while (total < n) {
        rc = SSL_read(t->ssl, p + total, n - total > INT_MAX ? INT_MAX : (int)(n - total));
        if (rc <= 0)
            break;
        total += (size_t)rc;
        if (t->source_len == 0 && SSL_pending(t->ssl) == 0)
            break; /* one more call would only find that out, and allocate a buffer for it */
    }
    if (rc <= 0)
        tls_on_read_stop(s, rc);
    if ((t->kernel & TLS_KERNEL_SENDS) != 0 &&
        SSL_get_key_update_type(t->ssl) != SSL_KEY_UPDATE_NONE)
        (void)tls_fail(s, "it asks for new keys, and those the kernel has cannot be changed");
    if (t->env->out.len > 0)
        (void)tls_flush(s); /* an answer to a change of keys: it must not wait in what all share */
    return (ssize_t)total;
}

/* What is known without reading: 1 nothing, else the answer of stream_recv. */
static ssize_t tls_verdict(const struct tls *t)
{
    if (t->has_failed)
        errno = EPROTO;
    else if (t->has_ended)
        errno = 0;
    else
        return 1;
    return -1;
}

/* Handshake, if it is not over; then data. */
static ssize_t tls_step(struct stream *s, char *p, size_t n)
{
    struct tls *t = s->tls;
    ssize_t rc;

    if (t->ssl == NULL && tls_make_ssl(t, true) == -1)
        return tls_fail(s, "out of memory");
    if (!t->is_secured) {
        rc = tls_handshake(s);
        if (rc != 1)
            return rc;
    }
    return tls_decrypt(s, p, n);
}

/* What the kernel has decrypted, as stream_recv; 0 also when it put something for OpenSSL into
 * `left`. */
static ssize_t tls_recv_clear(struct stream *s, char *p, size_t n)
{
    ssize_t got = tls_kernel_recv(s, p, n);

    if (got > 0)
        return got;
    if (got == 0 && buf_unread(&s->tls->left) > 0)
        return 0;
    if (got == 0) {
        errno = 0;
        return -1;
    }
    if (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR)
        return 0;
    return tls_kernel_is_bad_record(errno) ? tls_fail(s, strerror(errno)) : -1;
}

ssize_t tls_recv(struct stream *s, char *p, size_t n)
{
    struct tls *t = s->tls;
    ssize_t rc = tls_verdict(t);

    if (rc == -1)
        return rc;
    ASSERT(t->env->out.len == 0);
    forget_errors();
    if ((t->kernel & TLS_KERNEL_RECEIVES) != 0 && !tls_has_input(s)) {
        rc = tls_recv_clear(s, p, n);
        if (rc != 0 || buf_unread(&t->left) == 0)
            return rc;
    }
    /* What OpenSSL itself holds comes first: it is older than anything to be fetched. */
    if (t->ssl != NULL && SSL_pending(t->ssl) > 0) {
        rc = 1;
    } else {
        rc = tls_fetch(s);
        if (rc != 1)
            return rc;
    }
    rc = tls_step(s, p, n);
    if (t->source != NULL)
        tls_put_back(t);
    if (rc <= 0 && (t->has_failed || t->has_ended))
        return tls_verdict(t);
    if (tls_has_input(s))
        tls_post(s);
    return rc;
}

bool tls_has_input(const struct stream *s)
{
    const struct tls *t = s->tls;

    return t->has_failed || t->has_ended || buf_unread(&t->left) > 0 ||
           (t->ssl != NULL && SSL_pending(t->ssl) > 0);
}

void tls_on_resumed(struct stream *s)
{
    if (tls_has_input(s))
        tls_post(s);
}

void tls_on_room(struct stream *s)
{
    tls_post(s);
}

/* ---- writing and the end ---- */

int tls_send(struct stream *s, const char *p, size_t n)
{
    struct tls *t = s->tls;
    int rc;

    if (stream_has_failed(s) || t->has_failed || !t->is_secured)
        return -1;
    if ((t->kernel & TLS_KERNEL_SENDS) != 0)
        return stream_send_raw(s, p, n);
    ASSERT(t->env->out.len == 0);
    forget_errors();
    while (n > 0) {
        rc = SSL_write(t->ssl, p, n > INT_MAX ? INT_MAX : (int)n);
        if (rc <= 0) {
            (void)tls_fail(s, "could not encrypt");
            s->io.marks |= STREAM_SEND_FAILED;
            return -1;
        }
        p += rc;
        n -= (size_t)rc;
    }
    return tls_flush(s);
}

void tls_end(struct stream *s)
{
    struct tls *t = s->tls;

    if (t->is_secured && !t->has_failed && !t->is_quiet && !stream_has_failed(s)) {
        (void)SSL_shutdown(t->ssl);
        ERR_clear_error();
        (void)tls_flush(s);
    }
    task_cancel(&t->again);
    SSL_free(t->ssl);
    SSL_CTX_free(t->ctx);
    tls_kernel_detach(t);
    buf_free(&t->left);
    mem_free(t->error);
    mem_free(t);
    s->tls = NULL;
}

bool stream_is_secured(const struct stream *s)
{
    return s->tls != NULL && s->tls->is_secured;
}

const char *stream_tls_error(const struct stream *s)
{
    return s->tls == NULL || s->tls->error == NULL ? "" : s->tls->error;
}

/* An alert of the other side's is about what it was shown. */
const char *stream_tls_hint(const struct stream *s)
{
    return strstr(stream_tls_error(s), "alert certificate expired") == NULL
               ? NULL
               : "The other side says so of pgpool's certificate: clients are shown ssl_cert, "
                 "servers backend_ssl_cert. Renew it and reload.";
}

bool stream_tls_cert_was_bad(const struct stream *s)
{
    return s->tls != NULL && s->tls->cert_was_bad;
}

void stream_tls_close_quietly(struct stream *s)
{
    if (s->tls != NULL)
        s->tls->is_quiet = true;
}
