/* SPDX-License-Identifier: PostgreSQL
 * scram.c: verifiers and keys, and the message parts that both roles of SCRAM use. */
#include "config.h"

#include "auth/scram.h"

#include <string.h>

#include "auth/saslprep.h"
#include "base/mem.h"
#include "crypto/crypto.h"
#include "scram_int.h"

struct slice scram_bytes(const uint8_t *p, size_t n)
{
    return slice_of((const char *)p, n);
}

/* Cuts *in at the first `sep`; false when there is none. */
static bool cut(struct slice *in, char sep, struct slice *head)
{
    const char *at = in->n == 0 ? NULL : memchr(in->p, sep, in->n);

    if (at == NULL)
        return false;
    *head = slice_of(in->p, (size_t)(at - in->p));
    *in = slice_of(at + 1, in->n - head->n - 1);
    return true;
}

static int decode_key(struct slice text, uint8_t key[SCRAM_KEY_BYTES])
{
    size_t n;

    return crypto_base64_decode(text, key, SCRAM_KEY_BYTES, &n) == 0 && n == SCRAM_KEY_BYTES ? 0
                                                                                             : -1;
}

static int decode_iterations(struct slice text, uint32_t *out)
{
    uint32_t v = 0;
    size_t i;

    if (text.n == 0 || text.n > 9)
        return -1;
    for (i = 0; i < text.n; i++) {
        if (text.p[i] < '0' || text.p[i] > '9')
            return -1;
        v = v * 10 + (uint32_t)(text.p[i] - '0');
    }
    *out = v;
    return v == 0 ? -1 : 0;
}

int scram_verifier_parse(struct slice text, struct scram_verifier *out)
{
    struct slice part;
    size_t n;

    memset(out, 0, sizeof *out);
    if (!cut(&text, '$', &part) || !slice_eq_str(part, SCRAM_NAME))
        return -1;
    if (!cut(&text, ':', &part) || decode_iterations(part, &out->iterations) == -1 ||
        out->iterations > SCRAM_ITERATIONS_MAX)
        return -1;
    if (!cut(&text, '$', &part) ||
        crypto_base64_decode(part, out->salt, sizeof out->salt, &n) == -1 || n == 0)
        return -1;
    out->salt_len = (uint32_t)n;
    if (!cut(&text, ':', &part) || decode_key(part, out->stored_key) == -1 ||
        decode_key(text, out->server_key) == -1)
        return -1;
    return 0;
}

void scram_verifier_format(const struct scram_verifier *v, struct buf *out)
{
    buf_printf(out, "%s$%u:", SCRAM_NAME, (unsigned)v->iterations);
    crypto_base64_encode(scram_bytes(v->salt, v->salt_len), out);
    buf_put_byte(out, '$');
    crypto_base64_encode(scram_bytes(v->stored_key, SCRAM_KEY_BYTES), out);
    buf_put_byte(out, ':');
    crypto_base64_encode(scram_bytes(v->server_key, SCRAM_KEY_BYTES), out);
}

int scram_keys_derive(struct slice password, struct slice salt, uint32_t iterations,
    struct scram_keys *out, struct err *err)
{
    struct secret prepared = {0};
    uint8_t salted[SCRAM_KEY_BYTES] = {0};
    struct slice salted_slice = scram_bytes(salted, sizeof salted);
    struct scram_verifier *v = &out->verifier;
    int rc = -1;

    memset(out, 0, sizeof *out);
    if (salt.n == 0 || salt.n > SCRAM_SALT_MAX_BYTES || iterations == 0 ||
        iterations > SCRAM_ITERATIONS_MAX) {
        err_set(err, "08P01", "SCRAM salt or iteration count out of range");
        return -1;
    }
    v->iterations = iterations;
    v->salt_len = (uint32_t)salt.n;
    memcpy(v->salt, salt.p, salt.n);
    saslprep_or_raw(password, &prepared);
    if (crypto_pbkdf2(secret_slice(&prepared), salt, iterations, salted, err) == 0 &&
        crypto_hmac_sha256(salted_slice, slice_of_str("Client Key"), out->client_key, err) == 0 &&
        crypto_hmac_sha256(salted_slice, slice_of_str("Server Key"), v->server_key, err) == 0 &&
        crypto_sha256(scram_bytes(out->client_key, SCRAM_KEY_BYTES), v->stored_key, err) == 0)
        rc = 0;
    mem_wipe(salted, sizeof salted);
    secret_free(&prepared);
    return rc;
}

int scram_verifier_build(struct slice password, struct slice salt, uint32_t iterations,
    struct scram_verifier *out, struct err *err)
{
    struct scram_keys keys;
    int rc = scram_keys_derive(password, salt, iterations, &keys, err);

    *out = keys.verifier;
    mem_wipe(&keys, sizeof keys);
    return rc;
}

int scram_salt_of_user(
    struct slice server_secret, struct slice user, uint8_t salt[SCRAM_SALT_BYTES], struct err *err)
{
    uint8_t sum[CRYPTO_SHA256_BYTES];

    if (crypto_hmac_sha256(server_secret, user, sum, err) == -1)
        return -1;
    memcpy(salt, sum, SCRAM_SALT_BYTES);
    return 0;
}

int scram_verifier_mock(struct slice server_secret, struct slice user, uint32_t iterations,
    bool costly, struct scram_verifier *out, struct err *err)
{
    uint8_t salt[SCRAM_SALT_BYTES];

    memset(out, 0, sizeof *out);
    if (scram_salt_of_user(server_secret, user, salt, err) == -1)
        return -1;
    if (costly) /* the result is thrown away below: what counts is the time */
        if (scram_verifier_build(
                server_secret, scram_bytes(salt, sizeof salt), iterations, out, err) == -1)
            return -1;
    out->iterations = iterations;
    out->salt_len = SCRAM_SALT_BYTES;
    memcpy(out->salt, salt, SCRAM_SALT_BYTES);
    memset(out->stored_key, 0, sizeof out->stored_key);
    memset(out->server_key, 0, sizeof out->server_key);
    return 0;
}

int scram_verifier_check(const struct scram_verifier *v, struct slice password, bool *match,
    struct scram_keys *keys, struct err *err)
{
    struct scram_keys derived;
    int rc;

    *match = false;
    rc = scram_keys_derive(
        password, scram_bytes(v->salt, v->salt_len), v->iterations, &derived, err);
    if (rc == 0)
        *match = crypto_equal(derived.verifier.stored_key, v->stored_key, SCRAM_KEY_BYTES) &&
                 crypto_equal(derived.verifier.server_key, v->server_key, SCRAM_KEY_BYTES);
    if (*match && keys != NULL)
        *keys = derived;
    mem_wipe(&derived, sizeof derived);
    return rc;
}

bool scram_take_attr(struct slice *in, char name, struct slice *value)
{
    const char *comma;
    size_t n;

    if (in->n < 2 || in->p[0] != name || in->p[1] != '=')
        return false;
    comma = memchr(in->p, ',', in->n);
    n = comma == NULL ? in->n : (size_t)(comma - in->p);
    *value = slice_of(in->p + 2, n - 2);
    *in = comma == NULL ? slice_of(in->p + n, 0) : slice_of(comma + 1, in->n - n - 1);
    return true;
}

bool scram_is_nonce(struct slice s)
{
    size_t i;

    for (i = 0; i < s.n; i++)
        if (s.p[i] < 0x21 || s.p[i] > 0x7e || s.p[i] == ',')
            return false;
    return s.n > 0;
}

bool scram_skip_extensions(struct slice *in, char stop)
{
    struct slice value;
    char name;

    while (in->n > 0 && in->p[0] != stop) {
        name = in->p[0];
        if (name == 'm' || !((name >= 'a' && name <= 'z') || (name >= 'A' && name <= 'Z')) ||
            !scram_take_attr(in, name, &value))
            return false;
    }
    return true;
}

void scram_put_cbind(const struct buf *gs2, const uint8_t *cbind, size_t n, struct buf *out)
{
    struct buf raw = {0};

    buf_put(&raw, gs2->data, gs2->len);
    buf_put(&raw, cbind, n);
    crypto_base64_encode(buf_slice(&raw), out);
    buf_free(&raw);
}

int scram_sign(const uint8_t key[SCRAM_KEY_BYTES], const struct buf *auth_message,
    uint8_t out[SCRAM_KEY_BYTES], struct err *err)
{
    return crypto_hmac_sha256(scram_bytes(key, SCRAM_KEY_BYTES), buf_slice(auth_message), out, err);
}

void scram_xor(uint8_t *x, const uint8_t *y)
{
    int i;

    for (i = 0; i < SCRAM_KEY_BYTES; i++)
        x[i] ^= y[i];
}

void scram_buf_free(struct buf *b)
{
    if (b->data != NULL)
        mem_wipe(b->data, b->cap);
    buf_free(b);
}
