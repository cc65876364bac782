/* SPDX-License-Identifier: PostgreSQL
 * crypto.h: digests, key derivation, base64, random bytes and constant-time comparison.
 * Runs in: workers, control, pg_md5, pg_enc. OpenSSL is used inside this module only. In a build
 * without OpenSSL the functions that need it fail with 0A000 "not built with OpenSSL". Pure except
 * for crypto_random. Functions that take long (pbkdf2) are safe to run on a pool thread. */
#ifndef PGP_CRYPTO_CRYPTO_H
#define PGP_CRYPTO_CRYPTO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/slice.h"

#define CRYPTO_SHA256_BYTES  32
#define CRYPTO_MD5_HEX_BYTES 32
#define CRYPTO_CERT_HASH_MAX 64

/* Puts all memory that OpenSSL takes from now on, keys and sessions of TLS among it, where core
 * dumps leave it out, and calls what computes with secrets once. What it has stays until the end of
 * the process, for threads may use it until then. For the first lines of a program: false when
 * OpenSSL has memory already. */
bool crypto_hide_memory(void);
/* True when the functions below work at all. */
bool crypto_is_built(void);
/* SHA-256 of `in`. */
int crypto_sha256(struct slice in, uint8_t out[CRYPTO_SHA256_BYTES], struct err *err);
/* HMAC-SHA-256 of `in` under `key`. */
int crypto_hmac_sha256(
    struct slice key, struct slice in, uint8_t out[CRYPTO_SHA256_BYTES], struct err *err);
/* One block (32 bytes) of PBKDF2-HMAC-SHA-256; SCRAM calls it Hi(). `iterations` is 1 or more. */
int crypto_pbkdf2(struct slice password, struct slice salt, uint32_t iterations,
    uint8_t out[CRYPTO_SHA256_BYTES], struct err *err);
/* MD5 of `a` followed by `b` as 32 lower-case hex digits and a NUL. Fails where the OpenSSL in use
 * forbids MD5 (FIPS mode). */
int crypto_md5_hex(
    struct slice a, struct slice b, char out[CRYPTO_MD5_HEX_BYTES + 1], struct err *err);
/* Fills `out` with bytes fit for keys and nonces. */
int crypto_random(void *out, size_t n, struct err *err);

/* Hash of a server's certificate (DER) for the channel binding tls-server-end-point: by the digest
 * of its signature, SHA-256 in place of MD5 and SHA-1. -1 with 0A000 where there is none (Ed25519):
 * then channel binding must not be offered. */
int crypto_cert_hash(
    struct slice der, uint8_t out[CRYPTO_CERT_HASH_MAX], size_t *n, struct err *err);
/* The hash that crypto_cert_hash makes, for who knows the number of the digest already: `der` is
 * not taken apart. */
int crypto_cert_hash_by(struct slice der, int digest_nid, uint8_t out[CRYPTO_CERT_HASH_MAX],
    size_t *n, struct err *err);

/* Compares in a time that depends on `n` alone. Works in every build. */
bool crypto_equal(const void *a, const void *b, size_t n);

/* Appends the base64 form (with padding, without line breaks). Works in every build. */
void crypto_base64_encode(struct slice in, struct buf *out);
/* Decodes strictly: groups of four, padding only at the end, no blanks, unused bits zero. Writes at
 * most `cap` bytes and sets *n; -1 when malformed or too long. Works in every build. */
int crypto_base64_decode(struct slice in, void *out, size_t cap, size_t *n);

#endif
