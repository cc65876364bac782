/* SPDX-License-Identifier: PostgreSQL
 * wd_socket.h: the command socket: connections, packets, the key.
 * Runs in: watchdog. */
#ifndef PGP_WATCHDOG_WD_SOCKET_H
#define PGP_WATCHDOG_WD_SOCKET_H

#include "base/buf.h"
#include "base/slice.h"
#include "event/loop.h"

struct wd_socket;

/* Appends an answer's JSON, returns its type. The caller has proved itself. */
typedef char wd_socket_answer_fn(void *owner, char type, struct slice json, struct buf *out);

/* Listens in `dir`; a socket that cannot be made is logged, and tried again. `key` empty: whoever
 * has the same account, and root, may ask; else whoever knows it. */
struct wd_socket *wd_socket_new(
    struct loop *lp, const char *dir, int port, wd_socket_answer_fn *answer, void *owner);
void wd_socket_set_key(struct wd_socket *ipc, const char *key);
void wd_socket_free(struct wd_socket **ip);

#endif
