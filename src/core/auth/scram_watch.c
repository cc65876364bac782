/* SPDX-License-Identifier: PostgreSQL
 * scram_watch.c: what an exchange shows to who passes it on: the client's proof, and what both
 * sides signed. With the verifier of that user the proof gives up the ClientKey, as it does to the
 * server. Judges nobody: a proof that fits no verifier gives nothing. */
#include "config.h"

#include "auth/scram.h"

#include <string.h>

#include "base/mem.h"
#include "crypto/crypto.h"
#include "scram_int.h"
#include "wire/reader.h"

enum { WATCH_NEW, WATCH_FIRST, WATCH_ASKED, WATCH_WHOLE, WATCH_LOST };

/* SASLInitialResponse: mechanism, GS2 header without binding, and the part that is signed. */
static bool take_first(struct scram_watch *w, struct slice body)
{
    struct wire_reader r;
    struct slice mechanism;
    struct slice in;
    bool is_null = false;

    wire_reader_init(&r, body);
    mechanism = wire_get_cstr(&r);
    in = wire_get_value(&r, &is_null);
    if (!wire_reader_ok(&r) || is_null || !slice_eq_str(mechanism, SCRAM_NAME) || in.n < 4 ||
        in.n > SCRAM_MESSAGE_MAX || (in.p[0] != 'n' && in.p[0] != 'y') ||
        memcmp(in.p + 1, ",,", 2) != 0)
        return false;
    w->auth_message.is_secret = true;
    buf_put(&w->auth_message, in.p + 3, in.n - 3);
    buf_put_byte(&w->auth_message, ',');
    return true;
}

static bool take_final(struct scram_watch *w, struct slice in)
{
    const char *start = in.p;
    struct slice value;
    size_t n = 0;

    if (in.n == 0 || in.n > SCRAM_MESSAGE_MAX || !scram_take_attr(&in, 'c', &value) ||
        !scram_take_attr(&in, 'r', &value) || !scram_skip_extensions(&in, 'p') || in.n == 0)
        return false;
    buf_put(&w->auth_message, start, (size_t)(in.p - start) - 1);
    return scram_take_attr(&in, 'p', &value) && in.n == 0 &&
           crypto_base64_decode(value, w->proof, sizeof w->proof, &n) == 0 && n == sizeof w->proof;
}

void scram_watch_client(struct scram_watch *w, struct slice body)
{
    if (w->state == WATCH_NEW)
        w->state = take_first(w, body) ? WATCH_FIRST : WATCH_LOST;
    else
        w->state = w->state == WATCH_ASKED && take_final(w, body) ? WATCH_WHOLE : WATCH_LOST;
}

void scram_watch_server(struct scram_watch *w, struct slice data)
{
    bool fits = w->state == WATCH_FIRST && data.n > 0 && data.n <= SCRAM_MESSAGE_MAX;

    w->state = fits ? WATCH_ASKED : WATCH_LOST;
    if (!fits)
        return;
    buf_put(&w->auth_message, data.p, data.n);
    buf_put_byte(&w->auth_message, ',');
}

bool scram_watch_is_whole(const struct scram_watch *w)
{
    return w->state == WATCH_WHOLE;
}

bool scram_watch_keys(
    const struct scram_watch *w, const struct scram_verifier *v, struct scram_keys *out)
{
    uint8_t signature[SCRAM_KEY_BYTES];
    uint8_t stored[SCRAM_KEY_BYTES];
    bool fits;

    memset(out, 0, sizeof *out);
    if (w->state != WATCH_WHOLE ||
        scram_sign(v->stored_key, &w->auth_message, signature, NULL) == -1)
        return false;
    out->verifier = *v;
    memcpy(out->client_key, w->proof, sizeof out->client_key);
    scram_xor(out->client_key, signature);
    mem_wipe(signature, sizeof signature);
    fits = crypto_sha256(scram_bytes(out->client_key, SCRAM_KEY_BYTES), stored, NULL) == 0 &&
           crypto_equal(stored, v->stored_key, sizeof stored);
    if (!fits)
        mem_wipe(out, sizeof *out);
    return fits;
}

void scram_watch_fini(struct scram_watch *w)
{
    buf_free(&w->auth_message);
    mem_wipe(w, sizeof *w);
}
