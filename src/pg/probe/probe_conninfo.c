/* SPDX-License-Identifier: PostgreSQL
 * probe_conninfo.c: what a standby connects to its primary with, for another primary.
 * Runs in: monitor. Pure. libpq takes it apart, so that all it understands is understood here. */
#include "config.h"

#include <stdio.h>
#include <string.h>

#include "base/mem.h"

#include "probe_int.h"

/* Text in single quotes, as libpq's key = 'value' wants it. */
static void put_value(struct buf *out, const char *text)
{
    buf_put_byte(out, '\'');
    for (; *text != '\0'; text++) {
        if (*text == '\'' || *text == '\\')
            buf_put_byte(out, '\\');
        buf_put_byte(out, *text);
    }
    buf_put_byte(out, '\'');
}

static void put_pair(struct buf *out, const char *key, const char *value)
{
    buf_printf(out, "%s%s=", out->len == 0 ? "" : " ", key);
    put_value(out, value);
}

/* Takes the other settings over; tells whether host and port were those already. */
static bool put_others(struct buf *out, const PQconninfoOption *opts, const char *host, int port)
{
    const PQconninfoOption *o;
    bool same_host = false;
    bool same_port = port == 5432;
    char number[16];

    snprintf(number, sizeof number, "%d", port);
    for (o = opts; o->keyword != NULL; o++) {
        if (o->val == NULL || o->val[0] == '\0')
            continue;
        if (strcmp(o->keyword, "host") == 0)
            same_host = strcmp(o->val, host) == 0;
        else if (strcmp(o->keyword, "port") == 0)
            same_port = strcmp(o->val, number) == 0;
        else if (strcmp(o->keyword, "hostaddr") != 0)
            put_pair(out, o->keyword, o->val);
    }
    return same_host && same_port;
}

int probe_conninfo_move(
    const char *conninfo, const char *host, int port, bool *same, char *out, size_t room)
{
    PQconninfoOption *opts = PQconninfoParse(conninfo, NULL);
    struct buf text = {0};
    char number[16];
    int rc = -1;

    if (opts == NULL)
        return -1;
    snprintf(number, sizeof number, "%d", port);
    put_pair(&text, "host", host);
    put_pair(&text, "port", number);
    *same = put_others(&text, opts, host, port);
    PQconninfoFree(opts);
    if (text.len < room) {
        memcpy(out, text.data, text.len);
        out[text.len] = '\0';
        rc = 0;
    }
    buf_free(&text);
    return rc;
}

void probe_put_literal(struct buf *out, const char *text)
{
    const char *p;

    if (strchr(text, '\\') != NULL)
        buf_put(out, " E", 2);
    buf_put_byte(out, '\'');
    for (p = text; *p != '\0'; p++) {
        if (*p == '\'' || *p == '\\')
            buf_put_byte(out, *p);
        buf_put_byte(out, *p);
    }
    buf_put_byte(out, '\'');
}
