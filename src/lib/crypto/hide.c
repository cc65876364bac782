/* SPDX-License-Identifier: PostgreSQL
 * hide.c: keeps what OpenSSL knows out of core dumps. Left out of a build without OpenSSL, where
 * crypto_none.c stands in.
 * Runs in: the supervisor, before anything else; its children inherit it. */
#include "config.h"

#include "crypto/crypto.h"

#include <openssl/crypto.h>

#include "base/mem.h"
#include "crypto/cipher.h"

static void *hidden_new(size_t size, const char *file, int line)
{
    (void)file;
    (void)line;
    return mem_alloc_hidden(size);
}

static void *hidden_resize(void *p, size_t size, const char *file, int line)
{
    (void)file;
    (void)line;
    return mem_resize_hidden(p, size);
}

static void hidden_free(void *p, const char *file, int line)
{
    (void)file;
    (void)line;
    mem_free_hidden(p); /* OpenSSL overwrites keys by itself */
}

/* The first call of a function in another library looks its symbol up, and leaves on the stack what
 * is in registers then: a part of a password perhaps. So each is called once before there is any.
 */
static void call_all_once(void)
{
    static const char word[] = "0123456789abcdef0123456789abcdef";
    struct slice text = slice_of_str(word);
    uint8_t sum[CRYPTO_SHA256_BYTES];
    char hex[CRYPTO_MD5_HEX_BYTES + 1];
    struct secret out = {0};
    struct buf buf = {0};
    struct err err = {0};

    (void)crypto_md5_hex(text, text, hex, &err);
    (void)crypto_sha256(text, sum, &err);
    (void)crypto_hmac_sha256(text, text, sum, &err);
    (void)crypto_pbkdf2(text, text, 2, sum, &err);
    (void)crypto_random(sum, sizeof sum, &err);
    if (cipher_cbc_encrypt(text, text, &buf, &err) == 0)
        (void)cipher_cbc_decrypt(text, buf_slice(&buf), &out, &err);
    buf_free(&buf);
    secret_free(&out);
}

bool crypto_hide_memory(void)
{
    bool is_hidden = CRYPTO_set_mem_functions(hidden_new, hidden_resize, hidden_free) == 1;

    /* A worker that ends may have a thread that still computes: OpenSSL is not taken away under it
     * at the exit of the process, which gives all of it back anyway. */
    (void)OPENSSL_init_crypto(OPENSSL_INIT_NO_ATEXIT, NULL);
    call_all_once();
    return is_hidden;
}
