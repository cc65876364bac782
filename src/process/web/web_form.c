/* SPDX-License-Identifier: PostgreSQL
 * web_form.c: fields of a form. Runs in: web. Pure. */
#include "config.h"

#include <string.h>

#include "web_action.h"

static int hex_of(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c |= 0x20;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static bool decode(struct slice in, char *out, size_t size)
{
    size_t n = 0;
    size_t i;

    for (i = 0; i < in.n; i++) {
        char c = in.p[i] == '+' ? ' ' : in.p[i];

        if (c == '%') {
            if (i + 2 >= in.n || hex_of(in.p[i + 1]) < 0 || hex_of(in.p[i + 2]) < 0)
                return false;
            c = (char)(hex_of(in.p[i + 1]) * 16 + hex_of(in.p[i + 2]));
            i += 2;
        }
        if (n + 1 >= size || c == '\0')
            return false;
        out[n++] = c;
    }
    out[n] = '\0';
    return true;
}

bool web_form_field(struct slice body, const char *name, char *out, size_t size)
{
    size_t len = strlen(name);
    const char *end;
    size_t n = 0;

    while (body.n > 0) {
        end = memchr(body.p, '&', body.n);
        n = end == NULL ? body.n : (size_t)(end - body.p);
        if (n > len && memcmp(body.p, name, len) == 0 && body.p[len] == '=')
            break;
        body = end == NULL ? slice_of(NULL, 0) : slice_of(end + 1, body.n - n - 1);
    }
    if (body.n > 0 && decode(slice_of(body.p + len + 1, n - len - 1), out, size))
        return true;
    out[0] = '\0'; /* not a part of it */
    return false;
}
