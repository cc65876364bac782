/* SPDX-License-Identifier: PostgreSQL
 * scram_server.c: the server role of SCRAM: what a client of ours talks to. Denial and success take
 * the same steps, and so do known users and stand-ins. */
#include "config.h"

#include "auth/scram.h"

#include <string.h>

#include "base/assert.h"
#include "base/mem.h"
#include "crypto/crypto.h"
#include "scram_int.h"
#include "wire/reader.h"

enum {
    SERVER_NEW,
    SERVER_WAIT_FIRST, /* the initial response came without data */
    SERVER_WAIT_FINAL,
    SERVER_DONE,
    SERVER_FAILED
};

void scram_server_init(struct scram_server *s, const struct scram_server_conf *conf)
{
    memset(s, 0, sizeof *s);
    s->state = SERVER_NEW;
    s->is_mock = conf->is_mock;
    s->verifier = *conf->verifier;
    ASSERT(conf->cbind.n <= SCRAM_CBIND_MAX);
    s->cbind_len = (uint8_t)conf->cbind.n;
    if (conf->cbind.n > 0)
        memcpy(s->cbind, conf->cbind.p, conf->cbind.n);
    s->offers_plus = conf->cbind.n > 0;
    memcpy(s->nonce, conf->nonce, sizeof s->nonce);
}

void scram_server_fini(struct scram_server *s)
{
    buf_free(&s->gs2);
    buf_free(&s->full_nonce);
    scram_buf_free(&s->auth_message);
    mem_wipe(s, sizeof *s);
}

void scram_put_mechanisms(bool has_binding, struct buf *out)
{
    if (has_binding)
        buf_put_cstr(out, SCRAM_NAME_PLUS);
    buf_put_cstr(out, SCRAM_NAME);
    buf_put_byte(out, '\0');
}

void scram_server_mechanisms(const struct scram_server *s, struct buf *out)
{
    scram_put_mechanisms(s->offers_plus, out);
}

static enum scram_status server_broken(struct scram_server *s, struct err *err, const char *detail)
{
    s->state = SERVER_FAILED;
    if (err != NULL && !err_is_set(err)) {
        err_set_fatal(err, "08P01", "malformed SCRAM message");
        err_detail(err, "%s", detail);
    }
    return SCRAM_BROKEN;
}

/* Takes the binding flag. The rules stop a man in the middle from hiding our PLUS offer: a client
 * that could bind but saw no offer says so ("y"), and then we know better. */
static int server_take_flag(struct scram_server *s, struct slice *in, struct err *err)
{
    struct slice type;

    if (scram_take_attr(in, 'p', &type)) {
        if (!s->uses_plus) {
            server_broken(s, err, "Channel binding data came with a mechanism without binding.");
            return -1;
        }
        if (!slice_eq_str(type, SCRAM_CBIND_TYPE)) {
            server_broken(s, err, "The channel binding type is not supported.");
            return -1;
        }
        return 0;
    }
    if (in->n < 2 || in->p[1] != ',' || (in->p[0] != 'n' && in->p[0] != 'y')) {
        server_broken(s, err, "The channel binding flag is not n, y or p.");
        return -1;
    }
    if (s->uses_plus) {
        server_broken(s, err, "The mechanism with channel binding came without binding data.");
        return -1;
    }
    if (in->p[0] == 'y' && s->offers_plus) {
        s->state = SERVER_FAILED;
        err_set_fatal(err, "28000", "SCRAM channel binding negotiation error");
        err_detail(err, "The client can bind but believes that the server cannot; it can. "
                        "Somebody may have changed the list of mechanisms on the way.");
        return -1;
    }
    *in = slice_of(in->p + 2, in->n - 2);
    return 0;
}

/* Reads the client's first message; the nonce goes to *nonce, the bare part to *bare. */
static int server_read_first(struct scram_server *s, struct slice in, struct slice *bare,
    struct slice *nonce, struct err *err)
{
    const char *start = in.p;
    struct slice user;

    if (server_take_flag(s, &in, err) == -1)
        return -1;
    if (in.n > 0 && in.p[0] == 'a') {
        s->state = SERVER_FAILED;
        err_set_fatal(err, "0A000", "client uses authorization identity, but it is not supported");
        return -1;
    }
    if (in.n == 0 || in.p[0] != ',') {
        server_broken(s, err, "The GS2 header does not end where it should.");
        return -1;
    }
    in = slice_of(in.p + 1, in.n - 1);
    buf_put(&s->gs2, start, (size_t)(in.p - start));
    *bare = in;
    if (in.n > 0 && in.p[0] == 'm') {
        s->state = SERVER_FAILED;
        err_set_fatal(err, "0A000", "client requires an unsupported SCRAM extension");
        return -1;
    }
    /* The user's name is the startup packet's; what stands here is ignored, as PostgreSQL does. */
    if (!scram_take_attr(&in, 'n', &user) || !scram_take_attr(&in, 'r', nonce) ||
        !scram_is_nonce(*nonce) || !scram_skip_extensions(&in, '\0')) {
        server_broken(s, err, "The first message has no user or no valid nonce.");
        return -1;
    }
    return 0;
}

static enum scram_status server_on_first(
    struct scram_server *s, struct slice in, struct buf *out, struct err *err)
{
    struct slice bare;
    struct slice nonce;
    struct buf first = {0};

    if (in.n > SCRAM_MESSAGE_MAX || memchr(in.p, '\0', in.n) != NULL)
        return server_broken(s, err, "The first message is too long or contains a zero byte.");
    if (server_read_first(s, in, &bare, &nonce, err) == -1)
        return SCRAM_BROKEN;
    buf_put(&s->full_nonce, nonce.p, nonce.n);
    crypto_base64_encode(scram_bytes(s->nonce, sizeof s->nonce), &s->full_nonce);
    buf_put(&first, "r=", 2);
    buf_put(&first, s->full_nonce.data, s->full_nonce.len);
    buf_put(&first, ",s=", 3);
    crypto_base64_encode(scram_bytes(s->verifier.salt, s->verifier.salt_len), &first);
    buf_printf(&first, ",i=%u", (unsigned)s->verifier.iterations);
    buf_put(out, first.data, first.len);
    buf_put(&s->auth_message, bare.p, bare.n);
    buf_put_byte(&s->auth_message, ',');
    buf_put(&s->auth_message, first.data, first.len);
    buf_put_byte(&s->auth_message, ',');
    buf_free(&first);
    s->state = SERVER_WAIT_FINAL;
    return SCRAM_CONTINUE;
}

/* Checks c and r of the final message and takes the proof. */
static int server_read_final(
    struct scram_server *s, struct slice in, uint8_t *proof, struct err *err)
{
    const char *start = in.p;
    struct slice cbind;
    struct slice nonce;
    struct slice text;
    struct buf want = {0};
    size_t n = 0;
    bool same;

    if (!scram_take_attr(&in, 'c', &cbind) || !scram_take_attr(&in, 'r', &nonce) ||
        !scram_skip_extensions(&in, 'p') || in.n == 0) {
        server_broken(s, err, "The final message lacks channel binding, nonce or proof.");
        return -1;
    }
    buf_put(&s->auth_message, start, (size_t)(in.p - start) - 1);
    if (!scram_take_attr(&in, 'p', &text) || in.n != 0 ||
        crypto_base64_decode(text, proof, SCRAM_KEY_BYTES, &n) == -1 || n != SCRAM_KEY_BYTES) {
        server_broken(s, err, "The proof is malformed.");
        return -1;
    }
    if (!slice_eq(nonce, buf_slice(&s->full_nonce))) {
        server_broken(s, err, "The nonce does not match.");
        return -1;
    }
    scram_put_cbind(&s->gs2, s->cbind, s->uses_plus ? s->cbind_len : 0, &want);
    same = slice_eq(cbind, buf_slice(&want));
    buf_free(&want);
    if (!same) {
        s->state = SERVER_FAILED;
        err_set_fatal(err, "28000", "SCRAM channel binding check failed");
        return -1;
    }
    return 0;
}

static enum scram_status server_on_final(
    struct scram_server *s, struct slice in, struct buf *out, struct err *err)
{
    uint8_t proof[SCRAM_KEY_BYTES];
    uint8_t key[SCRAM_KEY_BYTES];
    uint8_t signature[SCRAM_KEY_BYTES];
    bool match;

    if (in.n > SCRAM_MESSAGE_MAX || in.n == 0 || memchr(in.p, '\0', in.n) != NULL)
        return server_broken(s, err, "The final message is empty, too long or has a zero byte.");
    if (server_read_final(s, in, proof, err) == -1)
        return SCRAM_BROKEN;
    s->state = SERVER_FAILED;
    if (scram_sign(s->verifier.stored_key, &s->auth_message, signature, err) == -1)
        return SCRAM_BROKEN;
    scram_xor(proof, signature); /* the proof becomes the ClientKey */
    if (crypto_sha256(scram_bytes(proof, sizeof proof), key, err) == -1 ||
        scram_sign(s->verifier.server_key, &s->auth_message, signature, err) == -1)
        return SCRAM_BROKEN;
    match = crypto_equal(key, s->verifier.stored_key, sizeof key);
    if (!match || s->is_mock) {
        mem_wipe(proof, sizeof proof);
        return SCRAM_DENIED;
    }
    memcpy(s->client_key, proof, sizeof s->client_key);
    mem_wipe(proof, sizeof proof);
    buf_put(out, "v=", 2);
    crypto_base64_encode(scram_bytes(signature, sizeof signature), out);
    s->state = SERVER_DONE;
    return SCRAM_DONE;
}

enum scram_status scram_server_start(struct scram_server *s, struct slice mechanism,
    struct slice data, struct buf *out, struct err *err)
{
    if (s->state != SERVER_NEW)
        return server_broken(s, err, "The exchange has begun already.");
    if (s->offers_plus && slice_eq_str(mechanism, SCRAM_NAME_PLUS))
        s->uses_plus = true;
    else if (!slice_eq_str(mechanism, SCRAM_NAME)) {
        s->state = SERVER_FAILED;
        err_set_fatal(err, "08P01", "client selected an invalid SASL authentication mechanism");
        return SCRAM_BROKEN;
    }
    if (data.p == NULL) {
        s->state = SERVER_WAIT_FIRST;
        return SCRAM_CONTINUE;
    }
    if (data.n == 0)
        return server_broken(s, err, "The first message is empty.");
    return server_on_first(s, data, out, err);
}

enum scram_status scram_server_step(
    struct scram_server *s, struct slice data, struct buf *out, struct err *err)
{
    if (s->state == SERVER_WAIT_FIRST && data.n > 0)
        return server_on_first(s, data, out, err);
    if (s->state == SERVER_WAIT_FINAL)
        return server_on_final(s, data, out, err);
    return server_broken(s, err, "No such message is expected now.");
}

enum scram_status scram_server_message(
    struct scram_server *s, struct slice body, struct buf *out, struct err *err)
{
    struct wire_reader r;
    struct slice mechanism;
    struct slice data;
    bool is_null = false;

    if (s->state != SERVER_NEW)
        return scram_server_step(s, body, out, err);
    wire_reader_init(&r, body);
    mechanism = wire_get_cstr(&r);
    data = wire_get_value(&r, &is_null);
    if (!wire_reader_ok(&r))
        return server_broken(s, err, "The first message does not hold a mechanism and its data.");
    return scram_server_start(s, mechanism, is_null ? slice_of(NULL, 0) : data, out, err);
}

void scram_server_keys(const struct scram_server *s, struct scram_keys *out)
{
    ASSERT(s->state == SERVER_DONE);
    out->verifier = s->verifier;
    memcpy(out->client_key, s->client_key, sizeof out->client_key);
}
