/* SPDX-License-Identifier: PostgreSQL
 * wd_gate.h: which messages of other pgpools libraft is given.
 * Runs in: watchdog. libraft believes what it is told, and ends the process, or itself, where that
 * cannot be: at a second leader of its own term, at another entry in place of one that was agreed
 * on, at members or a snapshot that cannot be read. All that has passed a seal is of a member,
 * which may be broken or of another build all the same: what no sound one sends is left out. */
#ifndef PGP_WATCHDOG_WD_GATE_H
#define PGP_WATCHDOG_WD_GATE_H

#include <raft.h>
#include <stdbool.h>

struct wd_state;

enum wd_gate { WD_GATE_PASS, WD_GATE_MALFORMED, WD_GATE_NEWER };

/* `m` with its sender. NEWER: a snapshot of a release that is newer than this one. `scratch` is
 * overwritten. */
enum wd_gate wd_gate_judge(
    const struct raft *r, const struct raft_message *m, struct wd_state *scratch);

#endif
