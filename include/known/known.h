/* SPDX-License-Identifier: PostgreSQL
 * known.h: what the workers know of each other for balancing: how often the schema has changed,
 * which tables were written lately, what the catalogue said, how far nodes have replayed. Runs in:
 * workers; the supervisor plans and fills the region BALANCE. Knows nothing of clients. */
#ifndef PGP_KNOWN_KNOWN_H
#define PGP_KNOWN_KNOWN_H

#include <stdbool.h>
#include <stdint.h>

#include "ipc/shm.h"
#include "route/route_oracle.h"

struct conf;
struct conf_gen;
struct loop;
struct route_cache;
struct route_marks;
struct route_reads;
struct route_rules;
struct view;
struct known;

/* What a worker gives; all of it lives longer. */
struct known_worker {
    struct shm *shm;
    struct loop *loop;
    struct view *view;           /* its snapshot of the cluster, taken anew here */
    struct route_cache *answers; /* its own, of the catalogue */
    int ordinal;
};

/* The region BALANCE. Supervisor. */
void known_plan_shm(const struct conf *conf, int nworkers, struct shm_plan *plan);
void known_init_shm(const struct conf *conf, int nworkers, struct shm *shm);

/* What this worker knows: nothing yet. */
struct known *known_new(const struct known_worker *of, const struct conf *conf, int64_t wall_us);
/* Harmless for NULL. */
void known_free(struct known **k);

/* Learns what other workers changed in the catalogue since, and what the monitor has published. */
void known_refresh(struct known *k);
/* The schema has changed: all workers forget their answers. */
void known_ddl(struct known *k);
/* How often the schema has changed, as far as we are told. */
uint64_t known_change(const struct known *k);
/* Nothing has changed for a while: standbys know of all changes, if they do not lag. */
bool known_is_settled(const struct known *k);

/* The catalogue's answer to a question that was sent after `change` changes: for all workers. */
void known_learn(struct known *k, struct route_scope scope, const struct route_question *q,
    uint64_t change, int64_t now_us, uint32_t bits);
/* What this worker or another one was told. Returns 0, or -1 when it has to be asked for. */
int known_lookup(struct known *k, struct route_scope scope, const struct route_question *q,
    int64_t now_us, uint32_t *bits);

/* Where plain reads go in the cluster as it is. */
const struct route_reads *known_reads(
    struct known *k, const struct conf_gen *gen, const struct route_rules *rules);
/* A node has replayed this much, as it said itself. */
void known_replayed(struct known *k, int node, uint64_t lsn);
const uint64_t *known_replayed_lsn(const struct known *k);

/* Tables were written, and it is certain. Tables of marks of all workers. */
void known_mark(
    struct known *k, const struct conf *conf, const uint64_t *key, unsigned n, int64_t wall_us);
const struct route_marks *const *known_marks(const struct known *k, unsigned *n);

/* The node on which the server process runs, VIEW_NO_NODE when none of ours does. `ctx` is the
 * struct known. */
int known_node_of_pid(void *ctx, int32_t pid);

#endif
