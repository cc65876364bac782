/* SPDX-License-Identifier: PostgreSQL
 * wd_codec.h: libraft's messages as bytes.
 * Runs in: watchdog. Pure. */
#ifndef PGP_WATCHDOG_WD_CODEC_H
#define PGP_WATCHDOG_WD_CODEC_H

#include <raft.h>
#include <stdbool.h>

#include "base/buf.h"
#include "base/slice.h"

/* Appends a message that libraft wants to be sent; false: of a type that is not known. */
bool wd_codec_put(const struct raft_message *m, struct buf *out);
/* Takes one apart. What is in it is libraft's memory, as raft_io's recv callback has to give it.
 * The sender's number and address are left to the caller. False: it is malformed, nothing is held.
 */
bool wd_codec_get(struct slice in, struct raft_message *m);
/* Frees what wd_codec_get() gave, of a message that libraft is not given. */
void wd_codec_free(struct raft_message *m);

#endif
