/* SPDX-License-Identifier: PostgreSQL
 * pcp_json.c: answers as JSON, and the few values that watchdog_info needs of the server's JSON. */
#include "config.h"

#include <stdio.h>
#include <string.h>

#include "pcp_tool.h"

void tool_json_text(struct slice text)
{
    size_t i;

    putchar('"');
    for (i = 0; i < text.n; i++) {
        unsigned char c = (unsigned char)text.p[i];

        if (c == '"' || c == '\\')
            printf("\\%c", c);
        else if (c < ' ' || c == 127)
            printf("\\u%04x", c);
        else
            putchar(c);
    }
    putchar('"');
}

/* What JSON reads as the same number: no leading zeros, no sign but minus. */
static bool is_number(struct slice text)
{
    size_t i = text.n > 0 && text.p[0] == '-' ? 1 : 0;
    size_t first = i;
    size_t dots = 0;

    if (text.n == i || text.n > 18)
        return false;
    if (text.p[i] == '0' && text.n > i + 1 && text.p[i + 1] != '.')
        return false;
    for (; i < text.n; i++) {
        if (text.p[i] == '.' && i > first && i + 1 < text.n && dots == 0)
            dots++;
        else if (text.p[i] < '0' || text.p[i] > '9')
            return false;
    }
    return true;
}

/* Keys whose values are texts, even where one looks like a number: readers want one type per key.
 */
static bool is_text_key(const char *key)
{
    static const char *const keys[] = {"hostname", "database", "username", "client_host",
        "statement", "name", "value", "description"};
    size_t i;

    for (i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        if (strcmp(keys[i], key) == 0)
            return true;
    }
    return false;
}

void tool_json_object(const char *const *keys, const struct slice *values, int n)
{
    int i;

    putchar('{');
    for (i = 0; i < n; i++) {
        printf("%s\"%s\": ", i == 0 ? "" : ", ", keys[i]);
        if (!is_text_key(keys[i]) && is_number(values[i]))
            printf("%.*s", (int)values[i].n, values[i].p);
        else
            tool_json_text(values[i]);
    }
    putchar('}');
}
