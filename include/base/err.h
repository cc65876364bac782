/* SPDX-License-Identifier: PostgreSQL
 * err.h: an expected failure as a value: SQLSTATE, severity, message, detail, hint.
 * Runs in: every process. Fixed storage, no allocation, no long jumps. Functions that can fail
 * return 0 / -1 and fill the `struct err *` given as their last parameter; the first failure wins,
 * callers may add context with err_wrap. Message style is PostgreSQL's: primary message lower case
 * and without a full stop, detail and hint are sentences. */
#ifndef PGP_BASE_ERR_H
#define PGP_BASE_ERR_H

#include <stdarg.h>
#include <stdbool.h>

#include "base/hot.h"

enum err_severity { ERR_NONE = 0, ERR_WARNING, ERR_ERROR, ERR_FATAL };

struct err {
    enum err_severity severity;
    char sqlstate[6];
    char msg[512];
    char detail[320];
    char hint[192];
};

/* Empties `err`. A zeroed struct is an empty err too. */
void err_clear(struct err *err);
static inline bool err_is_set(const struct err *err)
{
    return err->severity != ERR_NONE;
}

/* Fills `err` unless it is already set or NULL. `sqlstate` is five characters. */
COLD void err_set(struct err *err, const char *sqlstate, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
/* Fills `err` as err_set does, with severity FATAL. */
COLD void err_set_fatal(struct err *err, const char *sqlstate, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
COLD void err_set_fatal_v(struct err *err, const char *sqlstate, const char *fmt, va_list ap)
    __attribute__((format(printf, 3, 0)));
/* Sets message to "`what`: strerror(`errnum`)" with a fitting SQLSTATE. */
COLD void err_set_errno(struct err *err, int errnum, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
/* Sets detail or hint; later calls replace it. */
COLD void err_detail(struct err *err, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
COLD void err_hint(struct err *err, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Puts "`context`: " before the message. */
COLD void err_wrap(struct err *err, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* "WARNING", "ERROR" or "FATAL". */
const char *err_severity_text(enum err_severity severity);

#endif
