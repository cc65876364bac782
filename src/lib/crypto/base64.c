/* SPDX-License-Identifier: PostgreSQL
 * base64.c: strict base64, and comparison in constant time. No OpenSSL: its decoder is lenient, and
 * SCRAM needs one text for one value. */
#include "config.h"

#include "crypto/crypto.h"

static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

bool crypto_equal(const void *a, const void *b, size_t n)
{
    const volatile unsigned char *x = a;
    const volatile unsigned char *y = b;
    unsigned char diff = 0;
    size_t i;

    for (i = 0; i < n; i++)
        diff |= (unsigned char)(x[i] ^ y[i]);
    return diff == 0;
}

void crypto_base64_encode(struct slice in, struct buf *out)
{
    const unsigned char *p = (const unsigned char *)in.p;
    size_t left = in.n;
    uint32_t group;

    for (; left > 0; p += 3) {
        group = (uint32_t)p[0] << 16;
        if (left > 1)
            group |= (uint32_t)p[1] << 8;
        if (left > 2)
            group |= p[2];
        buf_put_byte(out, alphabet[(group >> 18) & 63]);
        buf_put_byte(out, alphabet[(group >> 12) & 63]);
        buf_put_byte(out, left > 1 ? alphabet[(group >> 6) & 63] : '=');
        buf_put_byte(out, left > 2 ? alphabet[group & 63] : '=');
        if (left <= 3)
            break;
        left -= 3;
    }
}

static int base64_value(char c)
{
    if (c >= 'A' && c <= 'Z')
        return c - 'A';
    if (c >= 'a' && c <= 'z')
        return c - 'a' + 26;
    if (c >= '0' && c <= '9')
        return c - '0' + 52;
    if (c == '+')
        return 62;
    return c == '/' ? 63 : -1;
}

/* Reads four characters of which `pad` are padding; -1 when one is not of the alphabet. */
static int base64_group(const char *p, unsigned pad, uint32_t *group)
{
    unsigned i;
    int v;

    *group = 0;
    for (i = 0; i < 4; i++) {
        v = i < 4 - pad ? base64_value(p[i]) : 0;
        if (v < 0)
            return -1;
        *group = (*group << 6) | (uint32_t)v;
    }
    return 0;
}

int crypto_base64_decode(struct slice in, void *out, size_t cap, size_t *n)
{
    unsigned char *o = out;
    size_t used = 0;
    unsigned pad;
    unsigned i;
    uint32_t group;

    *n = 0;
    if (in.n % 4 != 0)
        return -1;
    for (; in.n > 0; in.p += 4, in.n -= 4) {
        pad = 0;
        if (in.n == 4 && in.p[3] == '=')
            pad = in.p[2] == '=' ? 2 : 1;
        if (base64_group(in.p, pad, &group) == -1 || cap - used < 3 - pad)
            return -1;
        if ((group & ((1U << (8 * pad)) - 1)) != 0)
            return -1;
        for (i = 0; i < 3 - pad; i++)
            o[used++] = (unsigned char)(group >> (16 - 8 * i));
    }
    *n = used;
    return 0;
}
