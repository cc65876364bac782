/* SPDX-License-Identifier: PostgreSQL
 * web_json.c: JSON, written as it comes, never kept. What is written may hold any byte: names of
 * databases do. Runs in: web. Pure. */
#include "config.h"

#include <inttypes.h>
#include <string.h>

#include "web_json.h"

#define REPLACEMENT "\xEF\xBF\xBD"

static void comma(struct web_json *j)
{
    if (j->needs_comma)
        buf_put_byte(j->out, ',');
    j->needs_comma = true;
}

void web_json_open(struct web_json *j, char bracket)
{
    comma(j);
    buf_put_byte(j->out, bracket);
    j->needs_comma = false;
}

void web_json_close(struct web_json *j, char bracket)
{
    buf_put_byte(j->out, bracket);
    j->needs_comma = true;
}

size_t web_utf8_len(const unsigned char *p, size_t n)
{
    size_t len = p[0] < 0x80                   ? 1
                 : p[0] >= 0xC2 && p[0] < 0xE0 ? 2
                 : (p[0] & 0xF0) == 0xE0       ? 3
                 : p[0] >= 0xF0 && p[0] < 0xF5 ? 4
                                               : 0;
    size_t i;

    if (len > n)
        return 0;
    for (i = 1; i < len; i++)
        if ((p[i] & 0xC0) != 0x80)
            return 0;
    if (len == 3 && ((p[0] == 0xE0 && p[1] < 0xA0) || (p[0] == 0xED && p[1] > 0x9F)))
        return 0; /* too long a form, or a half of a pair */
    if (len == 4 && ((p[0] == 0xF0 && p[1] < 0x90) || (p[0] == 0xF4 && p[1] > 0x8F)))
        return 0;
    return len;
}

static void put_string(struct buf *out, struct slice text)
{
    const unsigned char *p = (const unsigned char *)text.p;
    size_t i = 0;
    size_t len;

    buf_put_byte(out, '"');
    while (i < text.n) {
        len = web_utf8_len(p + i, text.n - i);
        if (len == 0)
            buf_put(out, REPLACEMENT, 3);
        else if (p[i] == '"' || p[i] == '\\')
            buf_printf(out, "\\%c", p[i]);
        else if (p[i] < 0x20 || p[i] == 0x7F)
            buf_printf(out, "\\u%04x", p[i]);
        else
            buf_put(out, p + i, len);
        i += len == 0 ? 1 : len;
    }
    buf_put_byte(out, '"');
}

void web_json_key(struct web_json *j, const char *name)
{
    comma(j);
    put_string(j->out, slice_of_str(name));
    buf_put_byte(j->out, ':');
    j->needs_comma = false;
}

void web_json_text(struct web_json *j, struct slice text)
{
    comma(j);
    put_string(j->out, text);
}

void web_json_int(struct web_json *j, int64_t v)
{
    comma(j);
    buf_printf(j->out, "%" PRId64, v);
}

void web_json_bool(struct web_json *j, bool v)
{
    web_json_raw(j, slice_of_str(v ? "true" : "false"));
}

void web_json_raw(struct web_json *j, struct slice text)
{
    comma(j);
    buf_put(j->out, text.p, text.n);
}

void web_json_member(struct web_json *j, const char *name, const char *text)
{
    web_json_key(j, name);
    web_json_text(j, slice_of_str(text));
}
