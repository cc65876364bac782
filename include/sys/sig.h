/* SPDX-License-Identifier: PostgreSQL
 * sig.h: signal dispositions and the supervisor's signal descriptor.
 * Runs in: every process, at its start. */
#ifndef PGP_SYS_SIG_H
#define PGP_SYS_SIG_H

#include "base/err.h"

/* Blocks the signals in list[0..n) and returns a non-blocking descriptor that reports them. */
int sig_open_fd(const int *list, int n, struct err *err);
/* Takes one signal: its number, or 0 when none waits. *sender_pid is who sent it (0: the kernel).
 */
int sig_take(int fd, int *sender_pid);
/* Gives every signal its default action, ignores those in ignored[0..n), then unblocks all: for a
 * child, and before an exec. */
void sig_reset_all(const int *ignored, int n);
/* Ignores `signo`. */
void sig_ignore(int signo);
/* Short name: "SIGSEGV"; "signal 77" for numbers without one. The text is static or in `room`. */
const char *sig_name(int signo, char *room, unsigned size);

#endif
