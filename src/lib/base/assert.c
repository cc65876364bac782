/* SPDX-License-Identifier: PostgreSQL
 * assert.c: what happens when an assertion fails. */
#include "config.h"

#include "base/assert.h"

#include <execinfo.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/log.h"

_Noreturn void assert_failed(const char *expr, const char *file, int line, const char *func)
{
    void *frames[32];
    int n;

    log_at(LVL_PANIC, "assertion \"%s\" failed at %s:%d in %s", expr, file, line, func);
    n = backtrace(frames, 32);
    backtrace_symbols_fd(frames, n, STDERR_FILENO);
    abort();
}
