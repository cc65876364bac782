/* SPDX-License-Identifier: PostgreSQL
 * log_json.c: strings of JSON from whatever bytes a client sent, and the line of jsonlog. Pure but
 * for the clock. Every string has its own limit, so that a line is never longer than a packet to
 * the logger: a line that is cut would be no object any more. */
#include "config.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/buf.h"

#include "log_int.h"

#define DETAIL_MAX   12288
#define HINT_MAX     4096
#define NAME_MAX_OUT 1024
#define REPLACEMENT  "\xef\xbf\xbd"
#define CUT          "..."
#define PIECE_BYTES  8 /* the longest escape and its NUL */
#define NSEC_PER_MS  1000000L

_Static_assert(
    LOG_JSON_TEXT_MAX + DETAIL_MAX + HINT_MAX + 13 * NAME_MAX_OUT + 1024 < LOG_JSONLINE_MAX,
    "a line fits into a packet");

/* Bytes of the UTF-8 character at `s`, which ends in NUL; 0: it is none. Overlong forms, halves of
 * surrogate pairs and numbers past the last character are none. */
static size_t utf8_bytes(const unsigned char *s)
{
    unsigned char low = 0x80;
    unsigned char high = 0xbf;
    size_t n;
    size_t i;

    if (s[0] < 0x80)
        return 1;
    if (s[0] < 0xc2 || s[0] > 0xf4)
        return 0;
    n = s[0] < 0xe0 ? 2 : s[0] < 0xf0 ? 3 : 4;
    if (s[0] == 0xe0)
        low = 0xa0;
    else if (s[0] == 0xf0)
        low = 0x90;
    else if (s[0] == 0xed)
        high = 0x9f;
    else if (s[0] == 0xf4)
        high = 0x8f;
    if (s[1] < low || s[1] > high)
        return 0;
    for (i = 2; i < n; i++)
        if ((s[i] & 0xc0) != 0x80)
            return 0;
    return n;
}

/* Writes the character at `s` as it stands in JSON; returns how many bytes of `s` it was. */
static size_t piece_of(const unsigned char *s, char piece[PIECE_BYTES])
{
    static const char short_from[] = "\"\\\n\r\t";
    static const char short_to[] = "\"\\nrt";
    const char *at = strchr(short_from, *s);
    size_t n = utf8_bytes(s);

    if (at != NULL)
        snprintf(piece, PIECE_BYTES, "\\%c", short_to[at - short_from]);
    else if (*s < 0x20 || *s == 0x7f)
        snprintf(piece, PIECE_BYTES, "\\u%04x", *s);
    else if (n == 0)
        snprintf(piece, PIECE_BYTES, "%s", REPLACEMENT);
    else
        snprintf(piece, PIECE_BYTES, "%.*s", (int)n, (const char *)s);
    return n == 0 ? 1 : n;
}

void log_put_json_string(struct buf *out, const char *s, size_t max)
{
    const unsigned char *p = (const unsigned char *)s;
    char piece[PIECE_BYTES];
    size_t used = 0;
    size_t n;

    buf_put_byte(out, '"');
    while (*p != '\0') {
        p += piece_of(p, piece);
        n = strlen(piece);
        if (used + n + (*p == '\0' ? 0 : sizeof CUT - 1) > max) {
            buf_put(out, CUT, sizeof CUT - 1);
            break;
        }
        buf_put(out, piece, n);
        used += n;
    }
    buf_put_byte(out, '"');
}

static void put_member(struct buf *out, const char *name, const char *value, size_t max)
{
    if (value == NULL || *value == '\0')
        return;
    buf_printf(out, ",\"%s\":", name);
    log_put_json_string(out, value, max);
}

static void put_time(struct buf *out)
{
    char text[64];
    char zone[32];
    struct timespec now;
    struct tm tm;

    clock_gettime(CLOCK_REALTIME, &now);
    localtime_r(&now.tv_sec, &tm);
    strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S", &tm);
    strftime(zone, sizeof zone, "%Z", &tm);
    buf_printf(out, "{\"timestamp\":\"%s.%03d %s\"", text, (int)(now.tv_nsec / NSEC_PER_MS), zone);
}

static void put_client(struct buf *out, const struct log_context *c)
{
    put_member(out, "user", c->user, NAME_MAX_OUT);
    put_member(out, "dbname", c->database, NAME_MAX_OUT);
    put_member(out, "application_name", c->app_name, NAME_MAX_OUT);
    put_member(out, "remote_host", c->host, NAME_MAX_OUT);
    if (c->host != NULL && c->port != 0)
        buf_printf(out, ",\"remote_port\":%d", c->port);
    if (c->client_id != 0)
        buf_printf(out, ",\"client_id\":%lu", (unsigned long)c->client_id);
    if (c->server_pid != 0)
        buf_printf(out, ",\"node\":%d,\"server_pid\":%d", c->node, c->server_pid);
    put_member(out, "fingerprint", c->fingerprint, NAME_MAX_OUT);
    put_member(out, "trace_id", c->trace_id, NAME_MAX_OUT);
    put_member(out, "span_id", c->span_id, NAME_MAX_OUT);
}

void log_put_jsonlog(struct buf *out, const struct log_process *process,
    const struct log_context *c, const struct log_event *e)
{
    const char *slash = strrchr(e->place->file, '/');

    put_time(out);
    buf_printf(out, ",\"pid\":%d,\"line_num\":%lu", process->pid, process->line_no);
    put_member(out, "ps", process->title, NAME_MAX_OUT);
    put_member(out, "backend_type", process->role, NAME_MAX_OUT);
    if (c != NULL)
        put_client(out, c);
    put_member(out, "error_severity", e->label, NAME_MAX_OUT);
    put_member(out, "state_code", e->sqlstate, NAME_MAX_OUT);
    buf_put(out, ",\"message\":", sizeof ",\"message\":" - 1); /* is there also when it is empty */
    log_put_json_string(out, e->text, LOG_JSON_TEXT_MAX);
    put_member(out, "detail", e->detail, DETAIL_MAX);
    put_member(out, "hint", e->hint, HINT_MAX);
    if (process->is_verbose) {
        put_member(out, "func_name", e->place->function, NAME_MAX_OUT);
        put_member(out, "file_name", slash == NULL ? e->place->file : slash + 1, NAME_MAX_OUT);
        buf_printf(out, ",\"file_line_num\":%d", e->place->line);
    }
    if (process->swallowed > 0)
        buf_printf(out, ",\"suppressed\":%u", process->swallowed);
    buf_put(out, "}\n", 2);
}
