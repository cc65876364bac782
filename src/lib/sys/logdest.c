/* SPDX-License-Identifier: PostgreSQL
 * logdest.c: where log events go.
 * Runs in: every process. File-static state: there is one log per process, and an assertion that
 * fails anywhere must reach it. A slow logger delays a process by no more than COLLECTOR_WAIT_MS
 * once; then events are counted as lost until it takes one again. */
#include "config.h"

#include "sys/logdest.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syslog.h>
#include <unistd.h>

#include "base/log.h"

#define COLLECTOR_WAIT_MS   200
#define COLLECTOR_MAX_BYTES LOG_JSONLINE_MAX /* of one packet; longer events are cut */
#define SYSLOG_CHUNK_BYTES  900 /* old syslog servers cut lines of more than 1,024 bytes */
#define SYSLOG_IDENT_BYTES  64

struct logdest {
    bool to_stderr;
    bool to_jsonlog;
    bool to_syslog;
    bool syslog_open;
    bool losing; /* the last event found the logger's queue full */
    int facility;
    int collector_fd;
    unsigned long lost;
    unsigned long lost_told;
    unsigned long syslog_seq;
    char ident[SYSLOG_IDENT_BYTES];
};

static struct logdest dest = {.to_stderr = true, .collector_fd = -1};

static int syslog_level(enum log_level level)
{
    switch (level) {
    case LVL_INFO:
    case LVL_LOG:
        return LOG_INFO;
    case LVL_NOTICE:
    case LVL_WARNING:
        return LOG_NOTICE;
    case LVL_ERROR:
        return LOG_WARNING;
    case LVL_FATAL:
        return LOG_ERR;
    case LVL_PANIC:
        return LOG_CRIT;
    default:
        return LOG_DEBUG;
    }
}

/* How much of the line goes into the next chunk: ends behind a blank, or at least not inside a
 * UTF-8 character. */
static size_t chunk_bytes(const char *p, size_t n)
{
    size_t cut;

    if (n <= SYSLOG_CHUNK_BYTES)
        return n;
    for (cut = SYSLOG_CHUNK_BYTES; cut > SYSLOG_CHUNK_BYTES / 2; cut--) {
        if (p[cut - 1] == ' ')
            return cut;
    }
    for (cut = SYSLOG_CHUNK_BYTES; cut > 1 && ((unsigned char)p[cut] & 0xc0) == 0x80; cut--)
        continue;
    return cut;
}

static void write_syslog(enum log_level level, const char *text, size_t len)
{
    int priority = syslog_level(level);
    unsigned part = 0;

    if (!dest.syslog_open) {
        openlog(dest.ident, LOG_PID | LOG_NDELAY, dest.facility);
        dest.syslog_open = true;
    }
    dest.syslog_seq++;
    while (len > 0) {
        const char *end = memchr(text, '\n', len);
        size_t line = end == NULL ? len : (size_t)(end - text);
        size_t n = chunk_bytes(text, line);

        if (part == 0 && n == line && n + 1 >= len)
            syslog(priority, "[%lu] %.*s", dest.syslog_seq, (int)n, text);
        else
            syslog(priority, "[%lu-%u] %.*s", dest.syslog_seq, ++part, (int)n, text);
        if (n == line && end != NULL)
            n++;
        text += n;
        len -= n;
    }
}

/* 1: sent, 0: the queue is full, -1: the logger's socket is gone. */
static int send_packet(const char *text, size_t len)
{
    ssize_t n;

    do {
        n = send(dest.collector_fd, text, len, MSG_DONTWAIT | MSG_NOSIGNAL);
    } while (n == -1 && errno == EINTR);
    if (n >= 0)
        return 1;
    return errno == EAGAIN || errno == ENOBUFS ? 0 : -1;
}

static void tell_losses(void)
{
    char text[160];
    int pid = (int)getpid();
    unsigned long lost = dest.lost - dest.lost_told;
    int n;

    if (dest.to_jsonlog)
        n = snprintf(text, sizeof text,
            "{\"pid\":%d,\"error_severity\":\"WARNING\",\"message\":\"process %d lost %lu log "
            "messages\"}\n",
            pid, pid, lost);
    else
        n = snprintf(text, sizeof text, "WARNING:  process %d lost %lu log messages\n", pid, lost);

    if (send_packet(text, (size_t)n) == 1)
        dest.lost_told = dest.lost;
}

/* False when the event should go to standard error after all. */
static bool write_collector(const char *text, size_t len)
{
    struct pollfd writable = {.fd = dest.collector_fd, .events = POLLOUT};
    int rc;

    if (len > COLLECTOR_MAX_BYTES)
        len = COLLECTOR_MAX_BYTES;
    if (dest.lost != dest.lost_told)
        tell_losses();
    rc = send_packet(text, len);
    if (rc == 0 && !dest.losing && poll(&writable, 1, COLLECTOR_WAIT_MS) == 1)
        rc = send_packet(text, len);
    dest.losing = rc == 0;
    if (rc == 0)
        dest.lost++;
    return rc != -1;
}

static void write_stderr(const char *text, size_t len)
{
    while (len > 0) {
        ssize_t n = write(STDERR_FILENO, text, len);

        if (n == -1 && errno == EINTR)
            continue;
        if (n <= 0)
            return; /* there is nobody left to tell */
        text += n;
        len -= (size_t)n;
    }
}

static void write_local(const char *text, unsigned len)
{
    if (dest.collector_fd == -1 || !write_collector(text, len))
        write_stderr(text, len);
}

static void on_event(enum log_level level, const char *text, unsigned len, void *ctx)
{
    if (dest.to_syslog)
        write_syslog(level, text, len);
    if (dest.to_stderr)
        write_local(text, len);
}

static void on_jsonlog(enum log_level level, const char *text, unsigned len, void *ctx)
{
    write_local(text, len);
}

void logdest_configure(const struct logdest_opts *opts)
{
    logdest_forget();
    dest.to_stderr = opts->to_stderr;
    dest.to_jsonlog = opts->to_jsonlog;
    dest.to_syslog = opts->to_syslog;
    dest.facility = LOG_LOCAL0 + (opts->syslog_facility << 3);
    snprintf(dest.ident, sizeof dest.ident, "%s", opts->syslog_ident);
    log_set_sink(on_event, NULL);
    log_set_jsonlog(opts->to_jsonlog ? on_jsonlog : NULL, NULL, !opts->to_syslog);
}

void logdest_set_collector(int fd)
{
    dest.collector_fd = fd;
    dest.losing = false;
}

void logdest_forget(void)
{
    if (dest.syslog_open)
        closelog();
    dest.syslog_open = false;
}

unsigned long logdest_lost(void)
{
    return dest.lost;
}
