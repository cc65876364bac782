/* SPDX-License-Identifier: PostgreSQL
 * wd_json.c: the little JSON that the watchdog speaks.
 * Runs in: watchdog, control, wd_cli. Pure. Who may open the socket can send anything: nothing here
 * looks behind the end of the text, or calls itself. */
#include "config.h"

#include "cluster/wd_json.h"

#include <stdlib.h>
#include <string.h>

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

static char unescaped(struct slice s, size_t *i)
{
    static const char from[] = "nrtbf";
    static const char to[] = "\n\r\t\b\f";
    const char *found;

    if (s.p[*i] != '\\' || *i + 1 >= s.n)
        return s.p[*i];
    (*i)++;
    if (s.p[*i] == 'u') {
        *i = *i + 4 < s.n ? *i + 4 : s.n - 1;
        return '?';
    }
    found = s.p[*i] == '\0' ? NULL : strchr(from, s.p[*i]);
    return found == NULL ? s.p[*i] : to[found - from];
}

bool wd_json_text(struct slice text, const char *key, char *out, size_t room)
{
    struct slice value;
    size_t n = 0;
    size_t i;

    out[0] = '\0';
    if (!wd_json_find(text, key, &value) || value.p[0] != '"')
        return false;
    value = slice_of(value.p + 1, value.n - 2);
    for (i = 0; i < value.n && n + 1 < room; i++)
        out[n++] = unescaped(value, &i);
    out[n] = '\0';
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
        buf_put_byte(out, (unsigned char)*text < ' ' ? ' ' : *text);
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
