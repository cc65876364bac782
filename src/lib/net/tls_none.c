/* SPDX-License-Identifier: PostgreSQL
 * tls_none.c: stands in for TLS in a build without OpenSSL: no context can be made, so that no
 * stream ever speaks TLS. */
#include "config.h"

#include <errno.h>

#include "base/assert.h"
#include "base/mem.h"

#include "tls_int.h"

struct tls_env {
    char unused;
};

struct tls_env *tls_env_new(void)
{
    return mem_alloc_zero(sizeof(struct tls_env));
}

void tls_env_free(struct tls_env **ep)
{
    mem_free(*ep);
    *ep = NULL;
}

static struct tls_context *refuse(struct err *err)
{
    err_set(err, "0A000", "TLS is not supported by this build");
    err_hint(err, "Build with OpenSSL (configure --with-openssl).");
    return NULL;
}

int tls_authorities_text(const char *file, const char *dir, struct buf *out, struct err *err)
{
    (void)file;
    (void)dir;
    (void)out;
    (void)refuse(err);
    return -1;
}

struct tls_context *tls_context_new_server(
    struct tls_env *env, const struct tls_settings *st, struct err *err)
{
    (void)env;
    (void)st;
    return refuse(err);
}

struct tls_context *tls_context_new_client(
    struct tls_env *env, const struct tls_settings *st, struct err *err)
{
    (void)env;
    (void)st;
    return refuse(err);
}

void tls_context_free(struct tls_context **cp)
{
    ASSERT(*cp == NULL);
}

bool tls_kernel_is_offered(const char **why)
{
    *why = "TLS is not supported by this build";
    return false;
}

void tls_context_warn(const struct tls_context *ctx, struct err *err)
{
    (void)ctx;
    (void)err;
}

bool tls_cert_expires_s(const char *file, int64_t *out)
{
    (void)file;
    (void)out;
    return false;
}

bool tls_context_verifies(const struct tls_context *ctx)
{
    (void)ctx;
    return false;
}

void stream_start_tls_server(
    struct stream *s, struct tls_context *ctx, struct slice early, bool need_alpn)
{
    (void)s;
    (void)early;
    (void)need_alpn;
    ASSERT(ctx != NULL); /* there is none */
}

int stream_start_tls_client(struct stream *s, struct tls_context *ctx, const char *host,
    bool check_host, bool need_alpn, struct err *err)
{
    (void)s;
    (void)ctx;
    (void)host;
    (void)check_host;
    (void)need_alpn;
    (void)refuse(err);
    return -1;
}

ssize_t tls_recv(struct stream *s, char *p, size_t n)
{
    (void)s;
    (void)p;
    (void)n;
    errno = EPROTO;
    return -1;
}

int tls_send(struct stream *s, const char *p, size_t n)
{
    (void)s;
    (void)p;
    (void)n;
    return -1;
}

bool tls_has_input(const struct stream *s)
{
    (void)s;
    return false;
}

void tls_on_resumed(struct stream *s)
{
    (void)s;
}

void tls_on_room(struct stream *s)
{
    (void)s;
}

void tls_end(struct stream *s)
{
    s->tls = NULL;
}

bool stream_is_secured(const struct stream *s)
{
    (void)s;
    return false;
}

const char *stream_tls_error(const struct stream *s)
{
    (void)s;
    return "";
}

const char *stream_tls_hint(const struct stream *s)
{
    (void)s;
    return NULL;
}

bool stream_tls_cert_was_bad(const struct stream *s)
{
    (void)s;
    return false;
}

void stream_tls_close_quietly(struct stream *s)
{
    (void)s;
}

const char *stream_tls_version(const struct stream *s)
{
    (void)s;
    return "";
}

const char *stream_tls_cipher(const struct stream *s)
{
    (void)s;
    return "";
}

int stream_tls_bits(const struct stream *s)
{
    (void)s;
    return 0;
}

int stream_tls_version_no(const struct stream *s)
{
    (void)s;
    return 0;
}

int stream_tls_cipher_no(const struct stream *s)
{
    (void)s;
    return 0;
}

unsigned stream_tls_kernel(const struct stream *s)
{
    (void)s;
    return 0;
}

bool stream_tls_has_peer_cert(const struct stream *s)
{
    (void)s;
    return false;
}

bool stream_tls_is_peer_verified(const struct stream *s)
{
    (void)s;
    return false;
}

int stream_tls_peer_cn(const struct stream *s, struct buf *out, struct err *err)
{
    (void)s;
    (void)out;
    (void)err;
    return -1;
}

int stream_tls_peer_dn(const struct stream *s, struct buf *out, struct err *err)
{
    (void)s;
    (void)out;
    (void)err;
    return -1;
}

int stream_tls_server_cert(const struct stream *s, struct buf *der, int *digest_nid)
{
    (void)s;
    (void)der;
    (void)digest_nid;
    return -1;
}
