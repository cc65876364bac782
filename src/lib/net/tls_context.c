/* SPDX-License-Identifier: PostgreSQL
 * tls_context.c: certificates, keys and rules, loaded and checked.
 * Runs in: workers, and whoever wants to know whether the files are good before it starts them.
 * Everything is loaded before anything is used: a context is whole or it is not made. No session
 * tickets and no session cache: nothing that one stream knows opens another. No renegotiation. */
#include "config.h"

#include <errno.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/mem.h"

#include "tls_openssl.h"

static int bad(struct err *err, const char *what, const char *name)
{
    char text[TLS_ERROR_BYTES];

    tls_error_text(text, sizeof text, "not usable");
    err_set(err, "F0000", "%s \"%s\": %s", what, name, text);
    return -1;
}

/* A key that others may read is not a secret. One that belongs to root may be read by its group. */
static int check_key_file(const char *name, struct err *err)
{
    struct stat st;
    mode_t forbidden;

    if (stat(name, &st) == -1) {
        err_set_errno(err, errno, "could not access private key file \"%s\"", name);
        return -1;
    }
    if (!S_ISREG(st.st_mode)) {
        err_set(err, "F0000", "private key file \"%s\" is not a regular file", name);
        return -1;
    }
    if (st.st_uid != geteuid() && st.st_uid != 0) {
        err_set(err, "F0000", "private key file \"%s\" must be owned by root or by pgpool's user",
            name);
        err_hint(err, "chown it.");
        return -1;
    }
    forbidden = st.st_uid == 0 ? S_IWGRP | S_IXGRP | S_IRWXO : S_IRWXG | S_IRWXO;
    if ((st.st_mode & forbidden) == 0)
        return 0;
    err_set(err, "F0000", "private key file \"%s\" has group or world access", name);
    err_detail(err, "Its permissions should be 0600, or 0640 when it belongs to root.");
    return -1;
}

/* What the callback of OpenSSL needs. */
struct passphrase {
    const struct tls_settings *st;
    bool was_asked;
};

static int give_passphrase(char *out, int cap, int for_writing, void *ctx)
{
    struct passphrase *pp = ctx;
    int n;

    (void)for_writing;
    pp->was_asked = true;
    if (pp->st->passphrase == NULL)
        return 0;
    n = pp->st->passphrase(out, cap, pp->st->ctx);
    return n < 0 ? 0 : n;
}

static int load_identity(SSL_CTX *ctx, const struct tls_settings *st, struct err *err)
{
    struct passphrase pp = {st, false};
    int ok;

    if (st->cert_file[0] == '\0' && st->key_file[0] == '\0')
        return 0;
    if (SSL_CTX_use_certificate_chain_file(ctx, st->cert_file) != 1)
        return bad(err, "could not load certificate file", st->cert_file);
    if (check_key_file(st->key_file, err) == -1)
        return -1;
    SSL_CTX_set_default_passwd_cb(ctx, give_passphrase);
    SSL_CTX_set_default_passwd_cb_userdata(ctx, &pp);
    ok = SSL_CTX_use_PrivateKey_file(ctx, st->key_file, SSL_FILETYPE_PEM);
    SSL_CTX_set_default_passwd_cb(ctx, NULL);
    SSL_CTX_set_default_passwd_cb_userdata(ctx, NULL);
    if (ok != 1 && pp.was_asked && st->passphrase == NULL) {
        ERR_clear_error();
        err_set(err, "F0000",
            "private key file \"%s\" cannot be loaded because it needs a passphrase", st->key_file);
        err_hint(err, "Set ssl_passphrase_command, or store the key without one.");
        return -1;
    }
    if (ok != 1)
        return bad(err, "could not load private key file", st->key_file);
    if (SSL_CTX_check_private_key(ctx) != 1)
        return bad(err, "the certificate does not belong to private key file", st->key_file);
    return 0;
}

static int load_revoked(SSL_CTX *ctx, const struct tls_settings *st, struct err *err)
{
    X509_STORE *store = SSL_CTX_get_cert_store(ctx);

    if (st->crl_file[0] == '\0')
        return 0;
    if (X509_STORE_load_file(store, st->crl_file) != 1)
        return bad(err, "could not load certificate revocation list", st->crl_file);
    X509_STORE_set_flags(store, X509_V_FLAG_CRL_CHECK | X509_V_FLAG_CRL_CHECK_ALL);
    return 0;
}

/* Whose signature is believed. Says in *verifies whether there is anybody. */
static int load_authorities(
    SSL_CTX *ctx, const struct tls_settings *st, bool *verifies, struct err *err)
{
    *verifies = st->ca_file[0] != '\0' || st->ca_dir[0] != '\0';
    if (!*verifies)
        return 0;
    if (st->ca_file[0] != '\0' && SSL_CTX_load_verify_file(ctx, st->ca_file) != 1)
        return bad(err, "could not load root certificate file", st->ca_file);
    if (st->ca_dir[0] != '\0' &&
        (access(st->ca_dir, R_OK | X_OK) == -1 || SSL_CTX_load_verify_dir(ctx, st->ca_dir) != 1))
        return bad(err, "could not use root certificate folder", st->ca_dir);
    return load_revoked(ctx, st, err);
}

static int version_of(int version)
{
    static const struct {
        int ours;
        int theirs;
    } known[] = {
        {10, TLS1_VERSION}, {11, TLS1_1_VERSION}, {12, TLS1_2_VERSION}, {13, TLS1_3_VERSION}};
    size_t i;

    for (i = 0; i < sizeof known / sizeof known[0]; i++)
        if (known[i].ours == version)
            return known[i].theirs;
    return 0;
}

static int set_rules(SSL_CTX *ctx, const struct tls_settings *st, struct err *err)
{
    const char *why;

    SSL_CTX_set_options(ctx, SSL_OP_NO_TICKET | SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION |
                                 SSL_OP_CLEANSE_PLAINTEXT);
    if (st->use_kernel && tls_kernel_is_offered(&why))
        SSL_CTX_set_options(ctx, SSL_OP_ENABLE_KTLS);
    SSL_CTX_set_mode(ctx, SSL_MODE_RELEASE_BUFFERS | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
    SSL_CTX_set_session_cache_mode(ctx, SSL_SESS_CACHE_OFF);
    if (SSL_CTX_set_min_proto_version(ctx, version_of(st->min_version)) != 1 ||
        SSL_CTX_set_max_proto_version(ctx, version_of(st->max_version)) != 1) {
        ERR_clear_error();
        err_set(err, "F0000", "OpenSSL does not know these TLS versions: %d to %d", st->min_version,
            st->max_version);
        return -1;
    }
    if (st->ciphers[0] != '\0' && SSL_CTX_set_cipher_list(ctx, st->ciphers) != 1)
        return bad(err, "could not set the cipher list", st->ciphers);
    if (st->curves[0] != '\0' && SSL_CTX_set1_groups_list(ctx, st->curves) != 1)
        return bad(err, "ECDH: unrecognized curve name", st->curves);
    return 0;
}

static int load_dh(SSL_CTX *ctx, const struct tls_settings *st, struct err *err)
{
    BIO *file;
    EVP_PKEY *params;

    if (st->dh_file[0] == '\0') {
        (void)SSL_CTX_set_dh_auto(ctx, 1);
        return 0;
    }
    file = BIO_new_file(st->dh_file, "r");
    params = file == NULL ? NULL : PEM_read_bio_Parameters(file, NULL);
    BIO_free(file);
    if (params == NULL || SSL_CTX_set0_tmp_dh_pkey(ctx, params) != 1) {
        EVP_PKEY_free(params);
        return bad(err, "could not load DH parameters file", st->dh_file);
    }
    return 0;
}

/* Of the names a client offers (ALPN) we know one. Who offers others only speaks something else. */
static int choose_alpn(SSL *ssl, const unsigned char **out, unsigned char *out_len,
    const unsigned char *in, unsigned in_len, void *arg)
{
    unsigned char *chosen = NULL;

    (void)ssl;
    (void)arg;
    if (SSL_select_next_proto(&chosen, out_len, tls_alpn_postgresql, sizeof tls_alpn_postgresql, in,
            in_len) != OPENSSL_NPN_NEGOTIATED)
        return SSL_TLSEXT_ERR_ALERT_FATAL;
    *out = chosen;
    return SSL_TLSEXT_ERR_OK;
}

static struct tls_context *context_of(struct tls_env *env, SSL_CTX *ctx, bool verifies)
{
    struct tls_context *out = mem_alloc_zero(sizeof *out);

    out->ssl_ctx = ctx;
    out->env = env;
    out->verifies = verifies;
    return out;
}

struct tls_context *tls_context_new_server(
    struct tls_env *env, const struct tls_settings *st, struct err *err)
{
    SSL_CTX *ctx = SSL_CTX_new(TLS_server_method());
    bool verifies = false;

    if (ctx == NULL || set_rules(ctx, st, err) == -1 || load_identity(ctx, st, err) == -1 ||
        load_authorities(ctx, st, &verifies, err) == -1 || load_dh(ctx, st, err) == -1) {
        err_set(err, "F0000", "could not make a TLS context"); /* unless it is set */
        SSL_CTX_free(ctx);
        return NULL;
    }
    (void)SSL_CTX_set_num_tickets(ctx, 0);
    if (st->prefer_own_ciphers)
        SSL_CTX_set_options(ctx, SSL_OP_CIPHER_SERVER_PREFERENCE);
    if (verifies) {
        SSL_CTX_set_verify(ctx, SSL_VERIFY_PEER | SSL_VERIFY_CLIENT_ONCE, NULL);
        if (st->ca_file[0] != '\0')
            SSL_CTX_set_client_CA_list(ctx, SSL_load_client_CA_file(st->ca_file));
    }
    if (st->is_postgresql)
        SSL_CTX_set_alpn_select_cb(ctx, choose_alpn, NULL);
    return context_of(env, ctx, verifies);
}

struct tls_context *tls_context_new_client(
    struct tls_env *env, const struct tls_settings *st, struct err *err)
{
    SSL_CTX *ctx = SSL_CTX_new(TLS_client_method());
    bool verifies = false;

    if (ctx == NULL || set_rules(ctx, st, err) == -1 || load_identity(ctx, st, err) == -1 ||
        load_authorities(ctx, st, &verifies, err) == -1 ||
        (st->is_postgresql &&
            SSL_CTX_set_alpn_protos(ctx, tls_alpn_postgresql, sizeof tls_alpn_postgresql) != 0)) {
        err_set(err, "F0000", "could not make a TLS context");
        SSL_CTX_free(ctx);
        return NULL;
    }
    SSL_CTX_set_verify(ctx, verifies ? SSL_VERIFY_PEER : SSL_VERIFY_NONE, NULL);
    return context_of(env, ctx, verifies);
}

void tls_context_free(struct tls_context **cp)
{
    struct tls_context *ctx = *cp;

    *cp = NULL;
    if (ctx == NULL)
        return;
    SSL_CTX_free(ctx->ssl_ctx);
    mem_free(ctx);
}

static void date_text(const ASN1_TIME *t, char *out, size_t size)
{
    struct tm tm = {0};

    if (ASN1_TIME_to_tm(t, &tm) != 1 || strftime(out, size, "%Y-%m-%d %H:%M:%S GMT", &tm) == 0)
        out[0] = '\0';
}

void tls_context_warn(const struct tls_context *ctx, struct err *err)
{
    const X509 *cert = SSL_CTX_get0_certificate(ctx->ssl_ctx);
    char when[64];

    if (cert == NULL)
        return;
    if (X509_cmp_current_time(X509_get0_notAfter(cert)) < 0) {
        date_text(X509_get0_notAfter(cert), when, sizeof when);
        err_set(err, "F0000", "the certificate has expired at %s", when);
    } else if (X509_cmp_current_time(X509_get0_notBefore(cert)) > 0) {
        date_text(X509_get0_notBefore(cert), when, sizeof when);
        err_set(err, "F0000", "the certificate is not valid before %s", when);
    } else {
        return;
    }
    err_hint(err, "Whoever checks it refuses the connection. Renew it and reload.");
    err->severity = ERR_WARNING;
}

bool tls_cert_expires_s(const char *file, int64_t *out)
{
    BIO *bio = BIO_new_file(file, "r");
    bool any = false;
    X509 *cert;

    while (bio != NULL && (cert = PEM_read_bio_X509(bio, NULL, NULL, NULL)) != NULL) {
        struct tm tm = {0};

        if (ASN1_TIME_to_tm(X509_get0_notAfter(cert), &tm) == 1) {
            int64_t at_s = timegm(&tm);

            *out = any && *out < at_s ? *out : at_s;
            any = true;
        }
        X509_free(cert);
    }
    BIO_free(bio);
    ERR_clear_error();
    return any;
}

bool tls_context_verifies(const struct tls_context *ctx)
{
    return ctx->verifies;
}
