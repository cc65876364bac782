/* SPDX-License-Identifier: PostgreSQL
 * wd_json.c: the little JSON that the watchdog speaks.
 * Runs in: watchdog, control, wd_cli. Pure. Who may open the socket can send anything: nothing here
 * looks behind the end of the text, or calls itself. */
#include "config.h"

#include "cluster/wd_json.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static void skip_bytes(struct slice *s, size_t n)
{
    s->p += n;
    s->n -= n;
}

static void skip_space(struct slice *s)
{
    while (s->n > 0 && (*s->p == ' ' || *s->p == '\t' || *s->p == '\n' || *s->p == '\r')) {
        s->p++;
        s->n--;
    }
}

static bool skip_char(struct slice *s, char c)
{
    skip_space(s);
    if (s->n == 0 || *s->p != c)
        return false;
    s->p++;
    s->n--;
    return true;
}

/* How long the string at the beginning is, with its quotes; 0: it does not end. */
static size_t string_len(struct slice s)
{
    size_t i;

    for (i = 1; i < s.n; i++) {
        if (s.p[i] == '\\')
            i++;
        else if (s.p[i] == '"')
            return i + 1;
    }
    return 0;
}

static size_t nested_len(struct slice s)
{
    size_t depth = 0;
    size_t i = 0;

    while (i < s.n) {
        size_t len = s.p[i] == '"' ? string_len(slice_of(s.p + i, s.n - i)) : 1;

        if (len == 0)
            return 0;
        if (s.p[i] == '{' || s.p[i] == '[')
            depth++;
        if (s.p[i] == '}' || s.p[i] == ']')
            depth--;
        i += len;
        if (depth == 0)
            return i;
    }
    return 0;
}

static size_t word_len(struct slice s)
{
    size_t i = 0;

    while (i < s.n && strchr(",]} \t\r\n", s.p[i]) == NULL && s.p[i] != '\0')
        i++;
    return i;
}

static bool take_value(struct slice *s, struct slice *value)
{
    size_t len;

    skip_space(s);
    if (s->n == 0)
        return false;
    if (*s->p == '"')
        len = string_len(*s);
    else
        len = *s->p == '{' || *s->p == '[' ? nested_len(*s) : word_len(*s);
    if (len == 0)
        return false;
    *value = slice_of(s->p, len);
    s->p += len;
    s->n -= len;
    return true;
}

bool wd_json_find(struct slice text, const char *key, struct slice *value)
{
    struct slice name;

    if (!skip_char(&text, '{'))
        return false;
    do {
        if (!take_value(&text, &name) || name.p[0] != '"' || !skip_char(&text, ':') ||
            !take_value(&text, value))
            return false;
        if (slice_eq(slice_of(name.p + 1, name.n - 2), slice_of_str(key)))
            return true;
    } while (skip_char(&text, ','));
    return false;
}

bool wd_json_next(struct slice *rest, struct slice *element)
{
    if (!skip_char(rest, '[') && !skip_char(rest, ','))
        return false;
    return take_value(rest, element);
}

#define ESCAPE_CHARS  6 /* of a backslash, a u and four digits */
#define PIECE_BYTES   4
#define REPLACED_CODE 0xfffdu

/* The code of the escape \uXXXX that `s` begins with; 0: it is none, or that of NUL, which no text
 * of ours has. */
static uint32_t code_of(struct slice s)
{
    char digits[ESCAPE_CHARS - 1] = "";

    if (s.n < ESCAPE_CHARS || s.p[0] != '\\' || s.p[1] != 'u')
        return 0;
    memcpy(digits, s.p + 2, sizeof digits - 1);
    if (strspn(digits, "0123456789abcdefABCDEF") != sizeof digits - 1)
        return 0;
    return (uint32_t)strtoul(digits, NULL, 16);
}

static size_t put_utf8(char piece[PIECE_BYTES], uint32_t code)
{
    size_t n = code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
    size_t i;

    for (i = n - 1; i > 0; i--, code >>= 6)
        piece[i] = (char)(0x80 | (code & 0x3f));
    piece[0] = (char)(n == 1 ? code : (0xf00u >> n & 0xff) | code);
    return n;
}

/* Takes \uXXXX, or two of them that stand for one character, as libraries write all that is not
 * ASCII. */
static size_t take_code(struct slice *s, char piece[PIECE_BYTES])
{
    uint32_t code = code_of(*s);
    uint32_t low;

    skip_bytes(s, s->n < ESCAPE_CHARS ? s->n : ESCAPE_CHARS);
    if (code >= 0xd800 && code < 0xdc00) {
        low = code_of(*s);
        if (low >= 0xdc00 && low < 0xe000) {
            skip_bytes(s, ESCAPE_CHARS);
            return put_utf8(piece, 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00));
        }
    }
    return put_utf8(piece, code == 0 || (code >= 0xd800 && code < 0xe000) ? REPLACED_CODE : code);
}

/* Takes the next character of a string, which is not empty; returns its bytes. */
static size_t take_char(struct slice *s, char piece[PIECE_BYTES])
{
    static const char from[] = "nrtbf";
    static const char to[] = "\n\r\t\b\f";
    const char *found;

    piece[0] = *s->p;
    if (*s->p == '\\' && s->n > 1) {
        if (s->p[1] == 'u')
            return take_code(s, piece);
        found = s->p[1] == '\0' ? NULL : strchr(from, s->p[1]);
        piece[0] = found == NULL ? s->p[1] : to[found - from];
        skip_bytes(s, 1);
    }
    skip_bytes(s, 1);
    return 1;
}

bool wd_json_text(struct slice text, const char *key, char *out, size_t room)
{
    struct slice value;
    char piece[PIECE_BYTES];
    size_t used = 0;
    size_t n;

    out[0] = '\0';
    if (!wd_json_find(text, key, &value) || value.p[0] != '"')
        return false;
    value = slice_of(value.p + 1, value.n - 2);
    while (value.n > 0) {
        n = take_char(&value, piece);
        if (used + n >= room)
            break;
        memcpy(out + used, piece, n);
        used += n;
    }
    out[used] = '\0';
    return true;
}

bool wd_json_int(struct slice text, const char *key, int *out)
{
    struct slice value;
    char digits[16];
    char *end;
    long v;

    if (!wd_json_find(text, key, &value) || value.n == 0 || value.n >= sizeof digits)
        return false;
    memcpy(digits, value.p, value.n);
    digits[value.n] = '\0';
    v = strtol(digits, &end, 10);
    if (*end != '\0' || end == digits || v < -2147483647L || v > 2147483647L)
        return false;
    *out = (int)v;
    return true;
}

void wd_json_put_text(struct buf *out, const char *key, const char *text)
{
    buf_printf(out, "\"%s\":\"", key);
    for (; *text != '\0'; text++) {
        if (*text == '"' || *text == '\\')
            buf_put_byte(out, '\\');
        if ((unsigned char)*text < ' ')
            buf_printf(out, "\\u%04x", *text);
        else
            buf_put_byte(out, *text);
    }
    buf_put_byte(out, '"');
}

void wd_json_put_member(const struct wd_share *s, int member, struct buf *out)
{
    const struct wd_member *m = &s->member[member];

    buf_printf(out, "{\"ID\":%d,", member);
    wd_json_put_text(out, "NodeName", m->name);
    buf_put_byte(out, ',');
    wd_json_put_text(out, "HostName", m->host);
    buf_put_byte(out, ',');
    wd_json_put_text(out, "DelegateIP", member == s->self ? s->address : "");
    buf_printf(out, ",\"WdPort\":%d,\"PgpoolPort\":%d,\"Priority\":%d,\"State\":%d,", m->wd_port,
        m->pgpool_port, m->priority, m->state);
    wd_json_put_text(out, "StateName", wd_member_state_text(m->state));
    buf_printf(out, ",\"Membership\":%d,", m->membership);
    wd_json_put_text(out, "MembershipString", wd_membership_text(m->membership));
    buf_printf(out, ",\"LifecheckStarted\":%d,\"Follows\":%d}", s->leader != WD_NO_MEMBER,
        (int)m->follows);
}
