/* SPDX-License-Identifier: PostgreSQL
 * log.c: makes log lines. */
#include "config.h"

#include "base/log.h"

#include <stdarg.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "base/err.h"

static enum log_level min_level = LVL_WARNING;

bool log_is_on(enum log_level level)
{
    return level >= min_level;
}

void log_at(enum log_level level, const char *fmt, ...)
{
    char text[2048];
    va_list ap;

    if (!log_is_on(level))
        return;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    dprintf(STDERR_FILENO, "%d: %s\n", (int)level, text);
}
