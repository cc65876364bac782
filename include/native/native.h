/* SPDX-License-Identifier: PostgreSQL
 * native.h: sessions that write to all nodes (backend_clustering_mode = native_replication,
 * snapshot_isolation).
 * Runs in: workers. */
#ifndef PGP_NATIVE_NATIVE_H
#define PGP_NATIVE_NATIVE_H

struct sessions;

/* Clients of the worker get them when the configuration says so. */
void native_offer(struct sessions *ss);
/* The last client has gone. */
void native_withdraw(struct sessions *ss);
/* Clients that waited to take a snapshot or to commit on all nodes are let in (MAIL_GATE_OPEN). */
void native_on_gate(struct sessions *ss);

#endif
