/* SPDX-License-Identifier: PostgreSQL
 * scram_client.c: the client role of SCRAM: how a link logs in to a server, with the password or
 * with keys learned from the client. The server is not trusted: it has to prove that it knows the
 * verifier, and it cannot make us compute for longer than the limit allows. */
#include "config.h"

#include "auth/scram.h"

#include <string.h>

#include "base/assert.h"
#include "base/mem.h"
#include "crypto/crypto.h"
#include "scram_int.h"

enum { CLIENT_NEW, CLIENT_WAIT_FIRST, CLIENT_WAIT_FINAL, CLIENT_DONE, CLIENT_FAILED };

void scram_client_init(struct scram_client *c, const struct scram_client_conf *conf)
{
    memset(c, 0, sizeof *c);
    c->state = CLIENT_NEW;
    c->mode = conf->mode;
    ASSERT(conf->cbind.n <= SCRAM_CBIND_MAX);
    c->cbind_len = (uint8_t)conf->cbind.n;
    if (conf->cbind.n > 0)
        memcpy(c->cbind, conf->cbind.p, conf->cbind.n);
    memcpy(c->nonce, conf->nonce, sizeof c->nonce);
    c->has_keys = conf->keys != NULL;
    if (conf->keys != NULL)
        c->keys = *conf->keys;
    secret_set(&c->password, conf->password);
}

void scram_client_fini(struct scram_client *c)
{
    secret_free(&c->password);
    buf_free(&c->gs2);
    buf_free(&c->first_bare);
    mem_wipe(c, sizeof *c);
}

static enum scram_status client_broken(
    struct scram_client *c, struct err *err, const char *sqlstate, const char *text)
{
    c->state = CLIENT_FAILED;
    err_set(err, sqlstate, "%s", text);
    return SCRAM_BROKEN;
}

/* True when the zero-ended list of zero-ended names has `name`. */
static bool list_has(struct slice list, const char *name)
{
    const char *end;

    while (list.n > 0 && list.p[0] != '\0') {
        end = memchr(list.p, '\0', list.n);
        if (end == NULL)
            return false;
        if (slice_eq_str(slice_of(list.p, (size_t)(end - list.p)), name))
            return true;
        list = slice_of(end + 1, list.n - (size_t)(end - list.p) - 1);
    }
    return false;
}

enum scram_status scram_client_start(struct scram_client *c, struct slice mechanisms,
    const char **mechanism, struct buf *out, struct err *err)
{
    bool can_bind = c->cbind_len > 0 && c->mode != SCRAM_CBIND_DISABLE;
    const char *gs2 = can_bind ? "y,," : "n,,";

    ASSERT(c->state == CLIENT_NEW);
    *mechanism = SCRAM_NAME;
    if (can_bind && list_has(mechanisms, SCRAM_NAME_PLUS)) {
        c->uses_plus = true;
        *mechanism = SCRAM_NAME_PLUS;
        gs2 = "p=" SCRAM_CBIND_TYPE ",,";
    } else if (c->mode == SCRAM_CBIND_REQUIRE) {
        return client_broken(c, err, "28000",
            "channel binding is required, but the server did not offer it or TLS is not in use");
    } else if (!list_has(mechanisms, SCRAM_NAME)) {
        return client_broken(
            c, err, "0A000", "none of the server's SASL authentication mechanisms are supported");
    }
    buf_put(&c->gs2, gs2, strlen(gs2));
    /* The name stays empty: the server takes it from the startup packet. */
    buf_put(&c->first_bare, "n=,r=", 5);
    crypto_base64_encode(scram_bytes(c->nonce, sizeof c->nonce), &c->first_bare);
    buf_put(out, c->gs2.data, c->gs2.len);
    buf_put(out, c->first_bare.data, c->first_bare.len);
    c->state = CLIENT_WAIT_FIRST;
    return SCRAM_CONTINUE;
}

/* Reads the server's first message. */
static int client_read_first(const struct scram_client *c, struct slice in, struct slice *nonce,
    struct scram_verifier *params)
{
    struct slice salt;
    struct slice text;
    struct slice own = slice_of(c->first_bare.data + 5, c->first_bare.len - 5);
    size_t n;
    size_t i;

    if (in.n > SCRAM_MESSAGE_MAX || !scram_take_attr(&in, 'r', nonce) ||
        !scram_take_attr(&in, 's', &salt) || !scram_take_attr(&in, 'i', &text) ||
        !scram_skip_extensions(&in, '\0'))
        return -1;
    if (!scram_is_nonce(*nonce) || nonce->n <= own.n || memcmp(nonce->p, own.p, own.n) != 0)
        return -1;
    if (crypto_base64_decode(salt, params->salt, sizeof params->salt, &n) == -1 || n == 0 ||
        text.n == 0 || text.n > 7)
        return -1;
    params->salt_len = (uint32_t)n;
    params->iterations = 0;
    for (i = 0; i < text.n; i++) {
        if (text.p[i] < '0' || text.p[i] > '9')
            return -1;
        params->iterations = params->iterations * 10 + (uint32_t)(text.p[i] - '0');
    }
    return params->iterations == 0 || params->iterations > SCRAM_ITERATIONS_MAX ? -1 : 0;
}

static bool client_keys_fit(const struct scram_client *c, const struct scram_verifier *params)
{
    const struct scram_verifier *v = &c->keys.verifier;

    return c->has_keys && v->iterations == params->iterations && v->salt_len == params->salt_len &&
           memcmp(v->salt, params->salt, v->salt_len) == 0;
}

bool scram_client_must_derive(
    const struct scram_client *c, struct slice data, struct scram_verifier *params)
{
    struct slice nonce;

    return c->state == CLIENT_WAIT_FIRST && !secret_is_empty(&c->password) &&
           client_read_first(c, data, &nonce, params) == 0 && !client_keys_fit(c, params);
}

void scram_client_give_keys(struct scram_client *c, const struct scram_keys *keys)
{
    c->keys = *keys;
    c->has_keys = true;
}

/* Sees that c->keys belong to the server's salt and iterations. */
static enum scram_status client_fit_keys(
    struct scram_client *c, const struct scram_verifier *params, struct err *err)
{
    if (client_keys_fit(c, params))
        return SCRAM_CONTINUE;
    if (c->has_keys) {
        if (secret_is_empty(&c->password)) {
            c->state = CLIENT_FAILED;
            return SCRAM_STALE;
        }
    }
    if (scram_keys_derive(secret_slice(&c->password), scram_bytes(params->salt, params->salt_len),
            params->iterations, &c->keys, err) == -1) {
        c->state = CLIENT_FAILED;
        return SCRAM_BROKEN;
    }
    return SCRAM_CONTINUE;
}

enum scram_status scram_client_step(
    struct scram_client *c, struct slice data, struct buf *out, struct err *err)
{
    struct scram_verifier params;
    struct slice nonce;
    struct buf auth = {0};
    struct buf final = {0};
    uint8_t proof[SCRAM_KEY_BYTES];
    enum scram_status st;
    int rc;

    if (c->state != CLIENT_WAIT_FIRST || client_read_first(c, data, &nonce, &params) == -1)
        return client_broken(c, err, "08P01", "malformed SCRAM message from the server");
    st = client_fit_keys(c, &params, err);
    if (st != SCRAM_CONTINUE)
        return st;
    buf_put(&final, "c=", 2);
    scram_put_cbind(&c->gs2, c->cbind, c->uses_plus ? c->cbind_len : 0, &final);
    buf_put(&final, ",r=", 3);
    buf_put(&final, nonce.p, nonce.n);
    buf_put(&auth, c->first_bare.data, c->first_bare.len);
    buf_put_byte(&auth, ',');
    buf_put(&auth, data.p, data.n);
    buf_put_byte(&auth, ',');
    buf_put(&auth, final.data, final.len);
    rc = scram_sign(c->keys.verifier.stored_key, &auth, proof, err);
    if (rc == 0)
        rc = scram_sign(c->keys.verifier.server_key, &auth, c->server_signature, err);
    scram_xor(proof, c->keys.client_key);
    buf_put(&final, ",p=", 3);
    crypto_base64_encode(scram_bytes(proof, sizeof proof), &final);
    if (rc == 0)
        buf_put(out, final.data, final.len);
    buf_free(&auth);
    buf_free(&final);
    c->state = rc == 0 ? CLIENT_WAIT_FINAL : CLIENT_FAILED;
    return rc == 0 ? SCRAM_CONTINUE : SCRAM_BROKEN;
}

enum scram_status scram_client_final(struct scram_client *c, struct slice data, struct err *err)
{
    uint8_t signature[SCRAM_KEY_BYTES];
    struct slice text;
    size_t n;

    if (c->state != CLIENT_WAIT_FINAL)
        return client_broken(c, err, "08P01", "unexpected SCRAM message from the server");
    if (scram_take_attr(&data, 'e', &text)) {
        c->state = CLIENT_FAILED;
        err_set(err, "28P01", "the server ended the SCRAM exchange: %.*s",
            text.n > 100 ? 100 : (int)text.n, text.p);
        return SCRAM_BROKEN;
    }
    if (!scram_take_attr(&data, 'v', &text) ||
        crypto_base64_decode(text, signature, sizeof signature, &n) == -1 || n != sizeof signature)
        return client_broken(c, err, "08P01", "malformed SCRAM message from the server");
    if (!crypto_equal(signature, c->server_signature, sizeof signature))
        return client_broken(
            c, err, "28000", "the server did not prove that it knows the user's verifier");
    c->state = CLIENT_DONE;
    return SCRAM_DONE;
}

bool scram_client_is_done(const struct scram_client *c)
{
    return c->state == CLIENT_DONE;
}

void scram_client_keys(const struct scram_client *c, struct scram_keys *out)
{
    ASSERT(c->state == CLIENT_DONE);
    *out = c->keys;
}
