/* SPDX-License-Identifier: PostgreSQL
 * tls.h: TLS under a stream: certificates and rules (a context), turning it on, and what is known
 * of the other side.
 * Runs in: workers. A stream that speaks TLS is read, written, paused and closed like any other
 * (stream.h); its write buffer holds encrypted bytes. A context is made anew when the settings are
 * read again: streams that began with the old one keep it for as long as they live. In a build
 * without OpenSSL every context is refused with an error. */
#ifndef PGP_NET_TLS_H
#define PGP_NET_TLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "net/stream.h"

struct tls_env;     /* what all TLS streams of a process share: buffers used within one call */
struct tls_context; /* certificate, key and rules for one side */

/* Names of files are absolute; "" leaves a thing out. */
struct tls_settings {
    const char *cert_file; /* PEM, the chain may follow */
    const char *key_file;
    const char *ca_file; /* who may have signed the other side's certificate */
    const char *ca_dir;
    const char *crl_file;
    const char *ciphers;     /* up to TLS 1.2, in OpenSSL's notation */
    const char *curves;      /* names joined by colons */
    const char *dh_file;     /* servers; "": built-in groups */
    int min_version;         /* 10, 11, 12, 13; 0: as OpenSSL does */
    int max_version;         /* 0: no limit */
    bool prefer_own_ciphers; /* servers */
    bool use_kernel;         /* records are made and opened by the kernel where it can do that */
    bool is_postgresql;      /* ALPN "postgresql": offered, or chosen when offered */
    /* Asked when the key wants a passphrase: writes it to `out` and returns its length, -1 when
     * there is none. NULL: such a key is refused. */
    int (*passphrase)(char *out, int cap, void *ctx);
    void *ctx;
};

#define TLS_PASSPHRASE_BYTES 1024

/* The passphrase of a key: the command runs once, what it said is kept for the next time. A zeroed
 * one knows nothing. */
struct tls_passphrase {
    const char *command; /* for the shell; %p in it becomes a prompt with the name of the key */
    const char *key_file;
    int len; /* 0: not known yet */
    char text[TLS_PASSPHRASE_BYTES];
};

/* For tls_settings.passphrase; `ctx` is a struct tls_passphrase. Waits for the command, at most 30
 * seconds: not for a process that serves. */
int tls_passphrase_get(char *out, int cap, void *ctx);
/* Wipes what it knows. */
void tls_passphrase_forget(struct tls_passphrase *pp);

/* Appends to *out, as PEM, the certificates of `file` and those that OpenSSL would find in folder
 * `dir`; "" leaves one out. For a library that knows one file of authorities. Returns 0, with
 * nothing appended when there are none, or -1 with *err. */
int tls_authorities_text(const char *file, const char *dir, struct buf *out, struct err *err);

/* True when this kernel and this OpenSSL have TLS in the kernel; else *why says what is missing. */
bool tls_kernel_is_offered(const char **why);

/* Makes what a process needs before its first context, and frees it after its last stream. */
struct tls_env *tls_env_new(void);
void tls_env_free(struct tls_env **ep);

/* A context for being the TLS server (towards clients): certificate and key are needed, with a CA
 * the client is asked for a certificate, and one that does not verify ends the handshake. NULL and
 * *err when a file or a rule is no good: the message names it. Owned by the caller. */
struct tls_context *tls_context_new_server(
    struct tls_env *env, const struct tls_settings *st, struct err *err);
/* A context for being the TLS client (towards servers). With a CA the server's certificate must
 * verify. */
struct tls_context *tls_context_new_client(
    struct tls_env *env, const struct tls_settings *st, struct err *err);
/* Frees it and clears *cp; *cp may be NULL. Streams that use it go on. */
void tls_context_free(struct tls_context **cp);
/* A WARNING in *err when the time of its own certificate is over, or has not begun: the other side
 * will refuse it. */
void tls_context_warn(const struct tls_context *ctx, struct err *err);
/* Until when the certificates of a file in PEM last, since 1970: the first of them that expires.
 * False when there are none, or the file cannot be read. */
bool tls_cert_expires_s(const char *file, int64_t *out);
/* True when the other side's certificate is checked against a CA. */
bool tls_context_verifies(const struct tls_context *ctx);

/* The stream is the server of a TLS connection from now on. `early` are bytes that were read
 * already and belong to it. With `need_alpn` a client that does not ask for "postgresql" is refused
 * (direct TLS). Reading does the handshake: stream_recv says 0 until it is over. */
void stream_start_tls_server(
    struct stream *s, struct tls_context *ctx, struct slice early, bool need_alpn);
/* The stream is the client of a TLS connection from now on; the first message goes out at once.
 * `host` is told to the server (SNI), and with `check_host` its certificate must be for that name
 * or address. Reading does the rest: ask stream_is_secured after each stream_recv. -1 when it could
 * not begin. */
int stream_start_tls_client(struct stream *s, struct tls_context *ctx, const char *host,
    bool check_host, bool need_alpn, struct err *err);
/* True when the handshake is over. */
bool stream_is_secured(const struct stream *s);
/* Why stream_recv said -1 with errno EPROTO: one line, "" when nothing is known. Valid until the
 * stream is closed. */
const char *stream_tls_error(const struct stream *s);
/* What can be done about it; NULL when nobody knows. */
const char *stream_tls_hint(const struct stream *s);
/* True when that was the other side's certificate (its signer, date, name or revocation). */
bool stream_tls_cert_was_bad(const struct stream *s);
/* No "close notify" when the stream is closed: the other side waits for the end of the connection
 * itself. */
void stream_tls_close_quietly(struct stream *s);

/* What was agreed on: "TLSv1.3", "TLS_AES_256_GCM_SHA384", 256. "" and 0 on a plain stream and
 * before the handshake is over. */
const char *stream_tls_version(const struct stream *s);
const char *stream_tls_cipher(const struct stream *s);
int stream_tls_bits(const struct stream *s);
/* The agreed version and cipher suite as numbers, for where text has no room: 13 for TLS 1.3, and
 * the suite's of IANA. */
int stream_tls_version_no(const struct stream *s);
int stream_tls_cipher_no(const struct stream *s);
/* What the kernel does of it. */
#define TLS_KERNEL_SENDS    1
#define TLS_KERNEL_RECEIVES 2
unsigned stream_tls_kernel(const struct stream *s);
/* The other side showed a certificate; it did and it was checked against a CA. */
bool stream_tls_has_peer_cert(const struct stream *s);
bool stream_tls_is_peer_verified(const struct stream *s);
/* Appends the common name of the other side's certificate, or its whole subject as RFC 2253 writes
 * it ("CN=ann,O=Example"). -1 when there is no certificate or no such name, or when it holds a NUL
 * (*err is set only then): such a name must never be compared. */
int stream_tls_peer_cn(const struct stream *s, struct buf *out, struct err *err);
int stream_tls_peer_dn(const struct stream *s, struct buf *out, struct err *err);
/* Appends the certificate (DER) that the server of this connection showed, ours on a client's
 * stream, theirs on a link: crypto_cert_hash_by makes the channel binding tls-server-end-point of
 * it. *digest_nid becomes OpenSSL's number of its signature's digest, 0 when it has none. -1 when
 * there is none. */
int stream_tls_server_cert(const struct stream *s, struct buf *der, int *digest_nid);

#endif
