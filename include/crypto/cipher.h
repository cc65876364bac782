/* SPDX-License-Identifier: PostgreSQL
 * cipher.h: the two ways a password is stored encrypted in pool_passwd.
 * Runs in: workers (decrypting), pg_enc (encrypting). "AES": AES-256-CBC exactly as pgpool-II makes
 * it; it is deterministic and has no integrity check, so it exists for old files only. "GCM":
 * AES-256-GCM, key from PBKDF2-HMAC-SHA-256 with a random salt, random nonce; a changed text or a
 * wrong key is noticed. Both give base64 text without the prefix that pool_passwd puts before it.
 */
#ifndef PGP_CRYPTO_CIPHER_H
#define PGP_CRYPTO_CIPHER_H

#include "base/buf.h"
#include "base/err.h"
#include "base/slice.h"
#include "crypto/secret.h"

#define CIPHER_MAX_PLAIN_BYTES 1024
#define CIPHER_MAX_TEXT_BYTES  2048

/* Encrypts `plain` under the text of `key`, appending base64 to `out`. */
int cipher_cbc_encrypt(struct slice key, struct slice plain, struct buf *out, struct err *err);
/* Decrypts base64 `text` into *out (owned by the caller). 28000 when it does not decrypt. */
int cipher_cbc_decrypt(struct slice key, struct slice text, struct secret *out, struct err *err);
/* Encrypts and decrypts as cipher_cbc_encrypt and cipher_cbc_decrypt do, in the GCM format. */
int cipher_gcm_encrypt(struct slice key, struct slice plain, struct buf *out, struct err *err);
int cipher_gcm_decrypt(struct slice key, struct slice text, struct secret *out, struct err *err);

#endif
