/* SPDX-License-Identifier: PostgreSQL
 * switch_file.h: what a switchover has done to servers, and whom a failover may have told to be the
 * primary, kept over the end of all of pgpool.
 * Runs in: monitor. File pgpool_status.switch in work_dir, written before a server is touched,
 * removed when nothing is left of it there. Servers are told by host and port: numbers may change
 * between two lives. It is no decision of anybody, so discarding pgpool_status leaves it. */
#ifndef PGP_CLUSTER_SWITCH_FILE_H
#define PGP_CLUSTER_SWITCH_FILE_H

#include "base/buf.h"
#include "base/err.h"
#include "base/slice.h"
#include "cluster/decide.h"

/* Appends the content; nothing when there is nothing to be remembered. Pure. */
void switch_file_format(
    const struct decide_rules *rules, const struct view_switch *sw, struct buf *out);
/* Reads `text` into *sw: the sets of nodes, moved_to, and, when a promotion may be under way, node,
 * target, timeline, and pending_us and who (switchover) or unsure_us (failover). Returns how many
 * servers it names that the rules do not have; lines that make no sense are left out. Pure. */
int switch_file_parse(struct slice text, const struct decide_rules *rules, struct view_switch *sw);

/* Writes `text` as a whole, or removes the file when it is empty. 0, or -1 with *err. */
int switch_file_save(const char *dir, const struct buf *text, struct err *err);
/* Reads the file of our own user, if there is one, to the end of *out; *err when it cannot be read.
 */
void switch_file_load(const char *dir, struct buf *out, struct err *err);

#endif
