/* SPDX-License-Identifier: PostgreSQL
 * digest.c: digests, key derivation and random bytes by OpenSSL's EVP interface. Left out of a
 * build without OpenSSL, where crypto_none.c stands in. */
#include "config.h"

#include "crypto/crypto.h"

#include <limits.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/rand.h>

#include "base/mem.h"

static int digest_failed(struct err *err, const char *what)
{
    char text[160];

    ERR_error_string_n(ERR_get_error(), text, sizeof text);
    ERR_clear_error();
    err_set(err, "XX000", "could not compute %s: %s", what, text);
    return -1;
}

bool crypto_is_built(void)
{
    return true;
}

int crypto_sha256(struct slice in, uint8_t out[CRYPTO_SHA256_BYTES], struct err *err)
{
    if (EVP_Digest(in.p, in.n, out, NULL, EVP_sha256(), NULL) != 1)
        return digest_failed(err, "SHA-256");
    return 0;
}

int crypto_hmac_sha256(
    struct slice key, struct slice in, uint8_t out[CRYPTO_SHA256_BYTES], struct err *err)
{
    unsigned n = 0;

    if (key.n > INT_MAX || HMAC(EVP_sha256(), key.n == 0 ? "" : key.p, (int)key.n,
                               (const unsigned char *)in.p, in.n, out, &n) == NULL)
        return digest_failed(err, "HMAC-SHA-256");
    return 0;
}

int crypto_pbkdf2(struct slice password, struct slice salt, uint32_t iterations,
    uint8_t out[CRYPTO_SHA256_BYTES], struct err *err)
{
    if (iterations == 0 || iterations > INT_MAX || password.n > INT_MAX || salt.n > INT_MAX ||
        PKCS5_PBKDF2_HMAC(password.n == 0 ? "" : password.p, (int)password.n,
            (const unsigned char *)salt.p, (int)salt.n, (int)iterations, EVP_sha256(),
            CRYPTO_SHA256_BYTES, out) != 1)
        return digest_failed(err, "PBKDF2");
    return 0;
}

int crypto_md5_hex(
    struct slice a, struct slice b, char out[CRYPTO_MD5_HEX_BYTES + 1], struct err *err)
{
    static const char hex[] = "0123456789abcdef";
    unsigned char sum[16];
    EVP_MD_CTX *ctx = EVP_MD_CTX_new();
    int ok;
    int i;

    ok = ctx != NULL && EVP_DigestInit_ex(ctx, EVP_md5(), NULL) == 1 &&
         EVP_DigestUpdate(ctx, a.p, a.n) == 1 && EVP_DigestUpdate(ctx, b.p, b.n) == 1 &&
         EVP_DigestFinal_ex(ctx, sum, NULL) == 1;
    EVP_MD_CTX_free(ctx);
    if (!ok)
        return digest_failed(err, "MD5");
    for (i = 0; i < 16; i++) {
        out[2 * i] = hex[sum[i] >> 4];
        out[2 * i + 1] = hex[sum[i] & 15];
    }
    out[CRYPTO_MD5_HEX_BYTES] = '\0';
    mem_wipe(sum, sizeof sum);
    return 0;
}

int crypto_random(void *out, size_t n, struct err *err)
{
    if (n > INT_MAX || RAND_bytes(out, (int)n) != 1)
        return digest_failed(err, "random bytes");
    return 0;
}
