/* SPDX-License-Identifier: PostgreSQL
 * console.h: what pgpool answers by itself (session/answering.h says how sessions know of it): SHOW
 * POOL_..., PGPOOL ..., orders of operators, the virtual database. Runs in: workers;
 * console_node_counts in whoever shows them. */
#ifndef PGP_CONSOLE_CONSOLE_H
#define PGP_CONSOLE_CONSOLE_H

struct admin_counts;
struct sessions;
struct shm;

/* From now on the worker's clients may ask. */
void console_offer(struct sessions *ss);
/* Statements and errors of a node so far, of all workers. */
void console_node_counts(const struct shm *shm, int node, struct admin_counts *out);

#endif
