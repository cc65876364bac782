/* SPDX-License-Identifier: PostgreSQL
 * cache_far.h: results and generations in memcached, for several pgpools that share them.
 * Runs in: workers, the invalidator. Everything that waits for a server runs on a helper thread;
 * the loop is told by a call of the caller's function, always later, never from within the request.
 *
 * What cache_gen.h says of cells holds here, too: each has a generation in memcached, under its
 * 64-bit name, and a result carries the generations that were read before its query was sent. One
 * that is missing begins with a random number, so what was evicted, or lost with a server, never
 * revives what depended on it. Keys are never moved to another server when theirs does not answer:
 * nothing is answered or kept then.
 *
 *   cache_far_get(...)  -> HIT: the result. MISS: `deps` has the generations: send the query, and
 *                          then cache_far_keep with them. DEAD: ask the server, keep nothing
 *   cache_gens_hold, and cache_far_bump, before a COMMIT is sent: should this pgpool die behind it,
 *                          what is kept goes within a minute
 *   cache_far_bump when its outcome is known, and in its call cache_gens_release and the answer to
 *                          the client
 *
 * Where a bump failed, this pgpool answers nothing from the cache (CACHE_OFF_FAR) until it could
 * make everything invalid: cache_far_retry, to be called once a second, tries that. */
#ifndef PGP_CACHE_CACHE_FAR_H
#define PGP_CACHE_CACHE_FAR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/slice.h"
#include "cache/cache_gen.h"
#include "cache/cache_store.h"

struct cache_far; /* of one process */
struct cache_far_call;
struct conf;
struct jobs;
struct loop;

/* The cells of a result, and their generations in memcached; gen[ncells] is that of `all`, and
 * gen[ncells + 1] that of `watched`, on which the result does not depend. `text`: what texts that
 * differ in values alone have in common; 0: nothing is known of that. */
struct cache_far_deps {
    uint32_t ncells;
    cache_cell cell[CACHE_DEPS_MAX];
    cache_cell watched;
    uint64_t text;
    uint64_t gen[CACHE_DEPS_MAX + 2];
};

/* For memqcache_method = memcached. NULL and *err: 0A000 when this build has no libmemcached, 22023
 * when the settings name no server. */
struct cache_far *cache_far_open(struct cache *c, const struct conf *conf, struct jobs *jobs,
    struct loop *loop, struct err *err);
/* What still runs ends by itself, unseen. */
void cache_far_close(struct cache_far **fp);

enum cache_far_found { CACHE_FAR_HIT, CACHE_FAR_MISS, CACHE_FAR_DEAD };
/* `result` and `deps` are valid during the call only. */
typedef void cache_far_got_fn(void *ctx, enum cache_far_found found, struct slice result,
    uint32_t took_us, const struct cache_far_deps *deps);
/* Asks for a result and for the generations of its cells, in one go. `got` is called within
 * memqcache_timeout, with DEAD when nothing came until then. `deps`: cells and text only. */
struct cache_far_call *cache_far_get(struct cache_far *f, const struct cache_key *key,
    const struct cache_far_deps *deps, cache_far_got_fn *got, void *ctx);
/* False: hardly any result of this text is found, and this one need not be asked for or kept. */
bool cache_far_pays(struct cache_far *f, uint64_t text, const struct cache_key *key);
/* The caller goes: `got` or `done` will not be called. NULL is allowed. */
void cache_far_leave(struct cache_far_call **cp);
/* Keeps a result; nobody waits for that. `deps` as `got` gave them. */
void cache_far_set(struct cache_far *f, const struct cache_key *key,
    const struct cache_far_deps *deps, struct slice result, int64_t expire_s, uint32_t took_us);
/* Keeps the result that a fill was begun for and did not gather. Those who wait for it are woken
 * when it is there. Frees the fill. */
void cache_far_keep(struct cache_far *f, struct cache_fill **fp, const struct cache_far_deps *deps,
    struct slice result, uint32_t took_us);
typedef void cache_far_done_fn(void *ctx, bool is_done);
/* Makes everything that depends on these cells invalid, for all pgpools; no cells: everything there
 * is. `done`, which may be NULL, is called within memqcache_timeout; false: it could not be told
 * everywhere. */
struct cache_far_call *cache_far_bump(
    struct cache_far *f, const cache_cell *cells, size_t n, cache_far_done_fn *done, void *ctx);
/* For some seconds nobody finds or keeps anything that depends on this cell. Nobody else may use
 * it: a bump would end that. */
void cache_far_bar(struct cache_far *f, cache_cell cell);
/* The name of this machine, among those that share the servers; empty: it has none. */
const char *cache_far_machine(const struct cache_far *f);
/* None of its servers is to be asked for now. */
bool cache_far_is_down(const struct cache_far *f);
/* Writes into the log which servers do not answer, or do again: once for all processes. */
void cache_far_tell(struct cache_far *f);
/* Tries to end CACHE_OFF_FAR; does nothing where that does not hold. */
void cache_far_retry(struct cache_far *f);

/* What a process has seen of the generations there. */
struct cache_far_seen;
struct cache_far_seen *cache_far_seen_new(struct cache_gens *gens);
void cache_far_seen_free(struct cache_far_seen **sp);
/* A look-up has told these. */
void cache_far_seen_note(
    struct cache_far_seen *s, const struct cache_far_deps *deps, int64_t now_us);
/* A standby has what was written by other pgpools, too. Who writes sets a generation that was not
 * seen before: what he committed was committed before that. */
bool cache_far_seen_standby(
    struct cache_far_seen *s, const struct cache_far_deps *deps, const struct cache_standby *is);
/* What is known of the catalogue, as a number that changes when another pgpool, or this one, has
 * changed it, or anything unknown in its database; 0: nothing. A look-up tells, which is of a
 * result of the database deps->cell[0]; true: it has changed, judgements of this pgpool are void.
 */
uint64_t cache_far_watch(struct cache_far_seen *s, cache_cell db);
bool cache_far_watch_moved(struct cache_far_seen *s, const struct cache_far_deps *deps);

#endif
