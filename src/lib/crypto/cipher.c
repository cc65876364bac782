/* SPDX-License-Identifier: PostgreSQL
 * cipher.c: AES-256-CBC as pgpool-II stores passwords, and AES-256-GCM. Left out of a build without
 * OpenSSL, where crypto_none.c stands in.
 *
 * GCM record before base64: version 1 (one byte), iterations (four bytes, big endian), salt (16),
 * nonce (12), ciphertext, tag (16). Everything before the ciphertext is authenticated too. */
#include "config.h"

#include "crypto/cipher.h"

#include <openssl/err.h>
#include <openssl/evp.h>
#include <string.h>

#include "base/mem.h"
#include "crypto/crypto.h"

#define KEY_BYTES       32
#define IV_BYTES        16
#define GCM_VERSION     1
#define GCM_ITERATIONS  200000U
#define GCM_ITER_MAX    10000000U
#define GCM_SALT_AT     5
#define GCM_SALT_BYTES  16
#define GCM_NONCE_AT    (GCM_SALT_AT + GCM_SALT_BYTES)
#define GCM_NONCE_BYTES 12
#define GCM_HEAD_BYTES  (GCM_NONCE_AT + GCM_NONCE_BYTES)
#define GCM_TAG_BYTES   16

static int cipher_failed(struct err *err, const char *what)
{
    ERR_clear_error();
    err_set(err, "28000", "could not %s the password", what);
    return -1;
}

/* Key and IV of the old format: they follow from the text of the key alone, for compatibility. */
static int cbc_derive(struct slice key, uint8_t k[KEY_BYTES], uint8_t iv[IV_BYTES])
{
    return EVP_BytesToKey(EVP_aes_256_cbc(), EVP_sha1(), NULL, (const unsigned char *)key.p,
               (int)key.n, 1, k, iv) == KEY_BYTES
               ? 0
               : -1;
}

/* Runs the CBC cipher over `in`; `out` has room for one block more than in.n. */
static int cbc_run(struct slice key, int encrypt, struct slice in, uint8_t *out, size_t *n)
{
    uint8_t k[KEY_BYTES];
    uint8_t iv[IV_BYTES];
    EVP_CIPHER_CTX *ctx = EVP_CIPHER_CTX_new();
    int n1 = 0;
    int n2 = 0;
    int ok;

    ok = ctx != NULL && cbc_derive(key, k, iv) == 0 &&
         EVP_CipherInit_ex(ctx, EVP_aes_256_cbc(), NULL, k, iv, encrypt) == 1 &&
         EVP_CipherUpdate(ctx, out, &n1, (const unsigned char *)in.p, (int)in.n) == 1 &&
         EVP_CipherFinal_ex(ctx, out + n1, &n2) == 1;
    EVP_CIPHER_CTX_free(ctx);
    mem_wipe(k, sizeof k);
    mem_wipe(iv, sizeof iv);
    *n = (size_t)(n1 + n2);
    return ok ? 0 : -1;
}

int cipher_cbc_encrypt(struct slice key, struct slice plain, struct buf *out, struct err *err)
{
    uint8_t raw[CIPHER_MAX_PLAIN_BYTES + IV_BYTES];
    size_t n;

    if (key.n == 0 || plain.n > CIPHER_MAX_PLAIN_BYTES || cbc_run(key, 1, plain, raw, &n) == -1)
        return cipher_failed(err, "encrypt");
    crypto_base64_encode(slice_of((const char *)raw, n), out);
    mem_wipe(raw, sizeof raw);
    return 0;
}

int cipher_cbc_decrypt(struct slice key, struct slice text, struct secret *out, struct err *err)
{
    uint8_t raw[CIPHER_MAX_PLAIN_BYTES + IV_BYTES];
    uint8_t plain[CIPHER_MAX_PLAIN_BYTES + 2 * IV_BYTES];
    size_t n;
    int rc = -1;

    if (key.n > 0 && crypto_base64_decode(text, raw, sizeof raw, &n) == 0 && n > 0)
        rc = cbc_run(key, 0, slice_of((const char *)raw, n), plain, &n);
    if (rc == 0)
        secret_set(out, slice_of((const char *)plain, n));
    mem_wipe(plain, sizeof plain);
    return rc == 0 ? 0 : cipher_failed(err, "decrypt");
}

static void gcm_put_iterations(uint8_t *head, uint32_t iterations)
{
    head[1] = (uint8_t)(iterations >> 24);
    head[2] = (uint8_t)(iterations >> 16);
    head[3] = (uint8_t)(iterations >> 8);
    head[4] = (uint8_t)iterations;
}

static uint32_t gcm_get_iterations(const uint8_t *head)
{
    return ((uint32_t)head[1] << 24) | ((uint32_t)head[2] << 16) | ((uint32_t)head[3] << 8) |
           head[4];
}

/* Starts a GCM operation for the record whose head is at `head`. */
static EVP_CIPHER_CTX *gcm_start(struct slice key, const uint8_t *head, int encrypt)
{
    struct slice salt = slice_of((const char *)head + GCM_SALT_AT, GCM_SALT_BYTES);
    uint32_t iterations = gcm_get_iterations(head);
    EVP_CIPHER_CTX *ctx;
    uint8_t k[KEY_BYTES];
    int n;

    if (iterations == 0 || iterations > GCM_ITER_MAX ||
        crypto_pbkdf2(key, salt, iterations, k, NULL) == -1)
        return NULL;
    ctx = EVP_CIPHER_CTX_new();
    if (ctx != NULL &&
        (EVP_CipherInit_ex(ctx, EVP_aes_256_gcm(), NULL, k, head + GCM_NONCE_AT, encrypt) != 1 ||
            EVP_CipherUpdate(ctx, NULL, &n, head, GCM_HEAD_BYTES) != 1)) {
        EVP_CIPHER_CTX_free(ctx);
        ctx = NULL;
    }
    mem_wipe(k, sizeof k);
    return ctx;
}

int cipher_gcm_encrypt(struct slice key, struct slice plain, struct buf *out, struct err *err)
{
    uint8_t rec[GCM_HEAD_BYTES + CIPHER_MAX_PLAIN_BYTES + GCM_TAG_BYTES];
    uint8_t *body = rec + GCM_HEAD_BYTES;
    EVP_CIPHER_CTX *ctx = NULL;
    int n1 = 0;
    int n2 = 0;
    int ok;

    if (key.n == 0 || plain.n > CIPHER_MAX_PLAIN_BYTES)
        return cipher_failed(err, "encrypt");
    rec[0] = GCM_VERSION;
    gcm_put_iterations(rec, GCM_ITERATIONS);
    if (crypto_random(rec + GCM_SALT_AT, GCM_SALT_BYTES + GCM_NONCE_BYTES, err) == -1)
        return -1;
    ctx = gcm_start(key, rec, 1);
    ok = ctx != NULL &&
         EVP_CipherUpdate(ctx, body, &n1, (const unsigned char *)plain.p, (int)plain.n) == 1 &&
         EVP_CipherFinal_ex(ctx, body + n1, &n2) == 1 &&
         EVP_CIPHER_CTX_ctrl(ctx, EVP_CTRL_GCM_GET_TAG, GCM_TAG_BYTES, body + n1 + n2) == 1;
    EVP_CIPHER_CTX_free(ctx);
    if (!ok)
        return cipher_failed(err, "encrypt");
    crypto_base64_encode(
        slice_of((const char *)rec, (size_t)(GCM_HEAD_BYTES + n1 + n2 + GCM_TAG_BYTES)), out);
    return 0;
}

int cipher_gcm_decrypt(struct slice key, struct slice text, struct secret *out, struct err *err)
{
    uint8_t rec[GCM_HEAD_BYTES + CIPHER_MAX_PLAIN_BYTES + GCM_TAG_BYTES];
    uint8_t plain[CIPHER_MAX_PLAIN_BYTES + GCM_TAG_BYTES];
    EVP_CIPHER_CTX *ctx;
    size_t n;
    size_t body;
    int n1 = 0;
    int n2 = 0;
    int ok;

    if (key.n == 0 || crypto_base64_decode(text, rec, sizeof rec, &n) == -1 ||
        n < GCM_HEAD_BYTES + GCM_TAG_BYTES || rec[0] != GCM_VERSION)
        return cipher_failed(err, "decrypt");
    body = n - GCM_HEAD_BYTES - GCM_TAG_BYTES;
    ctx = gcm_start(key, rec, 0);
    ok = ctx != NULL && EVP_CipherUpdate(ctx, plain, &n1, rec + GCM_HEAD_BYTES, (int)body) == 1 &&
         EVP_CIPHER_CTX_ctrl(
             ctx, EVP_CTRL_GCM_SET_TAG, GCM_TAG_BYTES, rec + GCM_HEAD_BYTES + body) == 1 &&
         EVP_CipherFinal_ex(ctx, plain + n1, &n2) == 1;
    EVP_CIPHER_CTX_free(ctx);
    if (ok)
        secret_set(out, slice_of((const char *)plain, (size_t)(n1 + n2)));
    mem_wipe(plain, sizeof plain);
    return ok ? 0 : cipher_failed(err, "decrypt");
}
