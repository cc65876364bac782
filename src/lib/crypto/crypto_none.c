/* SPDX-License-Identifier: PostgreSQL
 * crypto_none.c: stands in for digest.c, cipher.c and cert.c in a build without OpenSSL: every
 * function fails and says so. Nothing here may pretend to work. */
#include "config.h"

#include "crypto/cipher.h"
#include "crypto/crypto.h"

static int not_built(struct err *err, const char *what)
{
    err_set(err, "0A000", "%s is not available: not built with OpenSSL", what);
    return -1;
}

bool crypto_hide_memory(void)
{
    return true;
}

bool crypto_is_built(void)
{
    return false;
}

int crypto_sha256(struct slice in, uint8_t out[CRYPTO_SHA256_BYTES], struct err *err)
{
    return not_built(err, "SHA-256");
}

int crypto_hmac_sha256(
    struct slice key, struct slice in, uint8_t out[CRYPTO_SHA256_BYTES], struct err *err)
{
    return not_built(err, "HMAC-SHA-256");
}

int crypto_pbkdf2(struct slice password, struct slice salt, uint32_t iterations,
    uint8_t out[CRYPTO_SHA256_BYTES], struct err *err)
{
    return not_built(err, "PBKDF2");
}

int crypto_md5_hex(
    struct slice a, struct slice b, char out[CRYPTO_MD5_HEX_BYTES + 1], struct err *err)
{
    return not_built(err, "MD5");
}

int crypto_random(void *out, size_t n, struct err *err)
{
    return not_built(err, "a source of random bytes");
}

int crypto_cert_hash(
    struct slice der, uint8_t out[CRYPTO_CERT_HASH_MAX], size_t *n, struct err *err)
{
    return not_built(err, "channel binding");
}

int cipher_cbc_encrypt(struct slice key, struct slice plain, struct buf *out, struct err *err)
{
    return not_built(err, "AES-256-CBC");
}

int cipher_cbc_decrypt(struct slice key, struct slice text, struct secret *out, struct err *err)
{
    return not_built(err, "AES-256-CBC");
}

int cipher_gcm_encrypt(struct slice key, struct slice plain, struct buf *out, struct err *err)
{
    return not_built(err, "AES-256-GCM");
}

int cipher_gcm_decrypt(struct slice key, struct slice text, struct secret *out, struct err *err)
{
    return not_built(err, "AES-256-GCM");
}

int crypto_cert_hash_by(
    struct slice der, int digest_nid, uint8_t out[CRYPTO_CERT_HASH_MAX], size_t *n, struct err *err)
{
    (void)digest_nid;
    return crypto_cert_hash(der, out, n, err);
}
