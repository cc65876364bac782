/* SPDX-License-Identifier: PostgreSQL
 * assert.h: assertions that stay on in production.
 * Runs in: every process. A failed assertion is a bug: it is logged and the process aborts; the
 * supervisor restarts it and gives back what it held. Never assert on what a peer can send. */
#ifndef PGP_BASE_ASSERT_H
#define PGP_BASE_ASSERT_H

#include "base/hot.h"

/* Logs `expr` with its place and aborts. */
COLD _Noreturn void assert_failed(const char *expr, const char *file, int line, const char *func);

#define ASSERT(cond) ((cond) ? (void)0 : assert_failed(#cond, __FILE__, __LINE__, __func__))
#define UNREACHED()  assert_failed("unreached", __FILE__, __LINE__, __func__)

#endif
