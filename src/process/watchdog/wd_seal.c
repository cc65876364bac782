/* SPDX-License-Identifier: PostgreSQL
 * wd_seal.c: proofs and seals by HMAC-SHA-256.
 * Runs in: watchdog. A message is: length (4 bytes, of all that follows), number (8), type (1),
 * body, seal (32) over number, type and body. Numbers go up by one, the called side's from the
 * middle of the range: a message that was recorded fits nowhere else. */
#include "config.h"

#include "wd_seal.h"

#include <string.h>

#include "crypto/crypto.h"

#define MAGIC       "pgpoolwd"
#define MAGIC_BYTES 8
#define VERSION     1
#define NONCE_AT    16
#define NONCE_BYTES 32
#define HEAD_BYTES  13 /* length, number, type */
#define FIRST_BACK  (UINT64_C(1) << 63)

_Static_assert(NONCE_AT + NONCE_BYTES == WD_HELLO_BYTES, "the nonce ends the hello");
_Static_assert(WD_PROOF_BYTES == CRYPTO_SHA256_BYTES, "a proof is one digest");

static void put_number(uint8_t *p, uint64_t v, int n)
{
    while (n-- > 0) {
        p[n] = (uint8_t)v;
        v >>= 8;
    }
}

static uint64_t get_number(const uint8_t *p, int n)
{
    uint64_t v = 0;
    int i;

    for (i = 0; i < n; i++)
        v = v << 8 | p[i];
    return v;
}

int wd_hello_make(const struct wd_hello *h, uint8_t out[WD_HELLO_BYTES], struct err *err)
{
    memcpy(out, MAGIC, MAGIC_BYTES);
    put_number(out + MAGIC_BYTES, VERSION, 2);
    put_number(out + MAGIC_BYTES + 2, (uint64_t)h->from, 2);
    put_number(out + MAGIC_BYTES + 4, (uint64_t)h->to, 2);
    put_number(out + MAGIC_BYTES + 6, (uint64_t)h->oldest, 1);
    put_number(out + MAGIC_BYTES + 7, (uint64_t)h->newest, 1);
    return crypto_random(out + NONCE_AT, NONCE_BYTES, err);
}

enum wd_hello_kind wd_hello_read(const uint8_t in[WD_HELLO_BYTES], struct wd_hello *h)
{
    memset(h, 0, sizeof *h);
    if (memcmp(in, MAGIC, MAGIC_BYTES) != 0)
        return WD_HELLO_NONE;
    if (get_number(in + MAGIC_BYTES, 2) != VERSION)
        return WD_HELLO_OTHER_SEAL;
    h->from = (int)get_number(in + MAGIC_BYTES + 2, 2);
    h->to = (int)get_number(in + MAGIC_BYTES + 4, 2);
    h->oldest = (int)get_number(in + MAGIC_BYTES + 6, 1);
    h->newest = (int)get_number(in + MAGIC_BYTES + 7, 1);
    return WD_HELLO_OURS;
}

int wd_hello_agree(const struct wd_hello *a, const struct wd_hello *b)
{
    int newest = a->newest < b->newest ? a->newest : b->newest;
    int oldest = a->oldest > b->oldest ? a->oldest : b->oldest;

    return newest >= oldest ? newest : 0;
}

static int digest(struct slice authkey, const struct wd_talk *t, char label,
    uint8_t out[WD_PROOF_BYTES], struct err *err)
{
    char text[1 + 2 * WD_HELLO_BYTES];

    text[0] = label;
    memcpy(text + 1, t->hello, sizeof t->hello);
    return crypto_hmac_sha256(authkey, slice_of(text, sizeof text), out, err);
}

int wd_seal_prove(struct slice authkey, const struct wd_talk *t, enum wd_side side,
    uint8_t out[WD_PROOF_BYTES], struct err *err)
{
    return digest(authkey, t, (char)side, out, err);
}

bool wd_seal_check(
    struct slice authkey, const struct wd_talk *t, enum wd_side side, const uint8_t *proof)
{
    uint8_t wanted[WD_PROOF_BYTES];
    struct err err = {0};

    return digest(authkey, t, (char)side, wanted, &err) == 0 &&
           crypto_equal(wanted, proof, sizeof wanted);
}

int wd_seal_begin(struct slice authkey, const struct wd_talk *t, enum wd_side side,
    struct wd_seal *seal, struct err *err)
{
    seal->seq_out = side == WD_CALLER ? 0 : FIRST_BACK;
    seal->seq_in = side == WD_CALLER ? FIRST_BACK : 0;
    return digest(authkey, t, 'k', seal->key, err);
}

int wd_seal_put(struct wd_seal *seal, char type, struct slice body, struct buf *out)
{
    uint8_t head[HEAD_BYTES];
    uint8_t mac[WD_PROOF_BYTES];
    struct err err = {0};
    uint32_t at = out->len;
    struct slice sealed;

    put_number(head, HEAD_BYTES - 4 + body.n + WD_PROOF_BYTES, 4);
    put_number(head + 4, seal->seq_out, 8);
    head[HEAD_BYTES - 1] = (uint8_t)type;
    buf_put(out, head, sizeof head);
    if (body.n > 0)
        buf_put(out, body.p, body.n);
    sealed = slice_of(out->data + at + 4, out->len - at - 4);
    if (crypto_hmac_sha256(
            slice_of((const char *)seal->key, sizeof seal->key), sealed, mac, &err) == -1) {
        out->len = at;
        return -1;
    }
    buf_put(out, mac, sizeof mac);
    seal->seq_out++;
    return 0;
}

int wd_seal_get(struct wd_seal *seal, struct slice in, char *type, struct slice *body, size_t *used)
{
    const uint8_t *p = (const uint8_t *)in.p;
    uint8_t mac[WD_PROOF_BYTES];
    struct err err = {0};
    uint64_t n;

    if (in.n < 4)
        return 0;
    n = get_number(p, 4);
    if (n < HEAD_BYTES - 4 + WD_PROOF_BYTES || n > WD_FRAME_MAX)
        return -1;
    if (in.n < 4 + n)
        return 0;
    if (crypto_hmac_sha256(slice_of((const char *)seal->key, sizeof seal->key),
            slice_of(in.p + 4, n - WD_PROOF_BYTES), mac, &err) == -1 ||
        !crypto_equal(mac, p + 4 + n - WD_PROOF_BYTES, sizeof mac) ||
        get_number(p + 4, 8) != seal->seq_in)
        return -1;
    seal->seq_in++;
    *type = in.p[HEAD_BYTES - 1];
    *body = slice_of(in.p + HEAD_BYTES, n - (HEAD_BYTES - 4) - WD_PROOF_BYTES);
    *used = 4 + n;
    return 1;
}
