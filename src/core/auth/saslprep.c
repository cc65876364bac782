/* SPDX-License-Identifier: PostgreSQL
 * saslprep.c: stringprep for passwords. Printable ASCII passes unchanged; anything else is mapped,
 * normalised and checked. The checks look at the mapped text before it is normalised, as
 * PostgreSQL's do: what counts is that both make the same key of a password. */
#include "config.h"

#include "auth/saslprep.h"

#include <stdint.h>
#include <stdlib.h>

#include "base/buf.h"
#include "base/mem.h"
#include "saslprep_class_tab.h"
#include "saslprep_int.h"

static int class_cmp(const void *key, const void *item)
{
    uint32_t c = *(const uint32_t *)key;
    const struct class_run *r = item;

    return c < r->first ? -1 : c > r->last;
}

static enum char_class class_of(uint32_t c)
{
    const struct class_run *r = bsearch(
        &c, class_runs, sizeof class_runs / sizeof class_runs[0], sizeof class_runs[0], class_cmp);

    return r == NULL ? CLASS_FREE : r->class;
}

static bool is_printable_ascii(struct slice in)
{
    size_t i;

    for (i = 0; i < in.n; i++)
        if (in.p[i] < 0x20 || in.p[i] > 0x7e)
            return false;
    return in.n > 0;
}

/* Takes one UTF-8 character; false when it is malformed (too long forms and surrogates too). */
static bool take_utf8(const unsigned char **at, const unsigned char *end, uint32_t *out)
{
    static const uint32_t smallest[] = {0, 0x80, 0x800, 0x10000};
    const unsigned char *p = *at;
    unsigned more;
    unsigned i;
    uint32_t c = *p;

    if (c < 0x80)
        more = 0;
    else if (c >= 0xc2 && c < 0xe0)
        more = 1;
    else if (c >= 0xe0 && c < 0xf0)
        more = 2;
    else if (c >= 0xf0 && c < 0xf5)
        more = 3;
    else
        return false;
    if ((size_t)(end - p) <= more)
        return false;
    if (more > 0)
        c &= 0x3fU >> more;
    for (i = 1; i <= more; i++) {
        if ((p[i] & 0xc0) != 0x80)
            return false;
        c = (c << 6) | (p[i] & 0x3f);
    }
    *at = p + more + 1;
    *out = c;
    return c >= smallest[more] && c <= 0x10ffff && (c < 0xd800 || c > 0xdfff);
}

static void put_utf8(struct buf *out, uint32_t c)
{
    if (c < 0x80) {
        buf_put_byte(out, (char)c);
        return;
    }
    if (c >= 0x10000) {
        buf_put_byte(out, (char)(0xf0 | (c >> 18)));
        buf_put_byte(out, (char)(0x80 | ((c >> 12) & 0x3f)));
    } else if (c >= 0x800) {
        buf_put_byte(out, (char)(0xe0 | (c >> 12)));
    }
    if (c >= 0x800)
        buf_put_byte(out, (char)(0x80 | ((c >> 6) & 0x3f)));
    else
        buf_put_byte(out, (char)(0xc0 | (c >> 6)));
    buf_put_byte(out, (char)(0x80 | (c & 0x3f)));
}

/* Decodes and maps; returns the number of characters, 0 when the text cannot be prepared. */
static size_t decode_and_map(struct slice in, uint32_t *out)
{
    const unsigned char *p = (const unsigned char *)in.p;
    const unsigned char *end = p + in.n;
    enum char_class class;
    uint32_t c;
    size_t n = 0;

    while (p < end) {
        if (n == SASLPREP_MAX_CHARS || !take_utf8(&p, end, &c))
            return 0;
        class = class_of(c);
        if (class == CLASS_P)
            return 0;
        if (class != CLASS_N)
            out[n++] = class == CLASS_S ? ' ' : c;
    }
    return n;
}

/* A text with a right-to-left character has no left-to-right one, and begins and ends so (RFC 3454,
 * section 6). */
static bool direction_is_fine(const uint32_t *s, size_t n)
{
    bool has_r = false;
    bool has_l = false;
    size_t i;

    for (i = 0; i < n; i++) {
        has_r = has_r || class_of(s[i]) == CLASS_R;
        has_l = has_l || class_of(s[i]) == CLASS_L;
    }
    return !has_r || (!has_l && class_of(s[0]) == CLASS_R && class_of(s[n - 1]) == CLASS_R);
}

int saslprep(struct slice in, struct secret *out)
{
    uint32_t *mapped;
    uint32_t *normal = NULL;
    struct buf text = {0};
    size_t room = 0;
    size_t n;
    size_t i;

    if (is_printable_ascii(in)) {
        secret_set(out, in);
        return 0;
    }
    mapped = mem_alloc(SASLPREP_MAX_CHARS * sizeof *mapped);
    n = decode_and_map(in, mapped);
    if (n > 0 && direction_is_fine(mapped, n)) {
        room = n * NFKC_GROWTH_MAX;
        normal = mem_alloc(room * sizeof *normal);
        n = nfkc_normalize(mapped, n, normal);
        buf_reserve(&text, n * 4); /* once: a buffer that grows leaves copies behind */
        for (i = 0; i < n; i++)
            put_utf8(&text, normal[i]);
        secret_set(out, buf_slice(&text));
        mem_wipe(text.data, text.len);
        mem_wipe(normal, room * sizeof *normal);
    }
    mem_wipe(mapped, SASLPREP_MAX_CHARS * sizeof *mapped);
    mem_free(mapped);
    mem_free(normal);
    buf_free(&text);
    return room > 0 ? 0 : -1;
}

void saslprep_or_raw(struct slice in, struct secret *out)
{
    if (saslprep(in, out) == -1)
        secret_set(out, in);
}
