/* SPDX-License-Identifier: PostgreSQL
 * err.c: filling struct err. */
#include "config.h"

#include "base/err.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

void err_clear(struct err *err)
{
    err->severity = ERR_NONE;
    err->sqlstate[0] = err->msg[0] = err->detail[0] = err->hint[0] = '\0';
}

static void err_fill(struct err *err, enum err_severity severity, const char *sqlstate,
    const char *fmt, va_list ap) __attribute__((format(printf, 4, 0)));

static void err_fill(
    struct err *err, enum err_severity severity, const char *sqlstate, const char *fmt, va_list ap)
{
    if (err == NULL || err_is_set(err))
        return;
    err->severity = severity;
    snprintf(err->sqlstate, sizeof err->sqlstate, "%s", sqlstate);
    vsnprintf(err->msg, sizeof err->msg, fmt, ap);
    err->detail[0] = '\0';
    err->hint[0] = '\0';
}

void err_set(struct err *err, const char *sqlstate, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    err_fill(err, ERR_ERROR, sqlstate, fmt, ap);
    va_end(ap);
}

void err_set_fatal(struct err *err, const char *sqlstate, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    err_fill(err, ERR_FATAL, sqlstate, fmt, ap);
    va_end(ap);
}

void err_set_fatal_v(struct err *err, const char *sqlstate, const char *fmt, va_list ap)
{
    err_fill(err, ERR_FATAL, sqlstate, fmt, ap);
}

static const char *sqlstate_of_errno(int errnum)
{
    switch (errnum) {
    case ENOMEM:
        return "53200";
    case ENOSPC:
        return "53100";
    case EMFILE:
    case ENFILE:
        return "53000";
    case EACCES:
    case EPERM:
        return "42501";
    case ENOENT:
        return "58P01";
    case ECONNREFUSED:
    case ECONNRESET:
    case EHOSTUNREACH:
    case ENETUNREACH:
    case ETIMEDOUT:
        return "08006";
    default:
        return "58030";
    }
}

void err_set_errno(struct err *err, int errnum, const char *fmt, ...)
{
    va_list ap;
    size_t used;

    if (err == NULL || err_is_set(err))
        return;
    va_start(ap, fmt);
    err_fill(err, ERR_ERROR, sqlstate_of_errno(errnum), fmt, ap);
    va_end(ap);
    used = strlen(err->msg);
    snprintf(err->msg + used, sizeof err->msg - used, ": %s", strerror(errnum));
}

void err_detail(struct err *err, const char *fmt, ...)
{
    va_list ap;

    if (err == NULL)
        return;
    va_start(ap, fmt);
    vsnprintf(err->detail, sizeof err->detail, fmt, ap);
    va_end(ap);
}

void err_hint(struct err *err, const char *fmt, ...)
{
    va_list ap;

    if (err == NULL)
        return;
    va_start(ap, fmt);
    vsnprintf(err->hint, sizeof err->hint, fmt, ap);
    va_end(ap);
}

void err_wrap(struct err *err, const char *fmt, ...)
{
    char text[sizeof err->msg];
    va_list ap;
    int n;

    if (err == NULL)
        return;
    va_start(ap, fmt);
    n = vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    if (n < 0 || (size_t)n >= sizeof text)
        return;
    snprintf(
        text + n, sizeof text - (size_t)n, ": %.*s", (int)(sizeof text - (size_t)n - 3), err->msg);
    memcpy(err->msg, text, sizeof text);
}

const char *err_severity_text(enum err_severity severity)
{
    switch (severity) {
    case ERR_WARNING:
        return "WARNING";
    case ERR_FATAL:
        return "FATAL";
    case ERR_ERROR:
    case ERR_NONE:
        break;
    }
    return "ERROR";
}
