/* SPDX-License-Identifier: PostgreSQL
 * sql_cache.h: facts of recent statements by fingerprint, bounded, least recently used out first.
 * Runs in: workers, one cache each. A statement whose facts depend on a literal (set_config,
 * EXPLAIN with option values, SET, ...) is never answered from the fingerprint. */
#ifndef PGP_PARSER_SQL_CACHE_H
#define PGP_PARSER_SQL_CACHE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/slice.h"
#include "parser/parser.h"

struct sql_cache;

struct sql_cache_stats {
    uint64_t hits;
    uint64_t misses;
    uint64_t uncacheable; /* misses whose facts depend on a literal, or that were rejected */
    uint64_t evictions;
    uint32_t entries;
    size_t bytes;
};

/* Makes a cache of at most `max_entries` statements and `max_bytes` of memory. */
struct sql_cache *sql_cache_new(uint32_t max_entries, size_t max_bytes);
/* Frees it and clears *cp. */
void sql_cache_free(struct sql_cache **cp);

/* Returns the facts of `text`: from the cache, or by parsing into `scratch` and remembering them.
 * The result is valid until the next call on this cache and until `scratch` or `text` goes. When
 * `*same_layout` comes back false, the facts were found for another text with this fingerprint: all
 * offsets and lengths in them belong to that text; call sql_parse when you need offsets. */
const struct sql_facts *sql_cache_get(
    struct sql_cache *c, struct arena *scratch, struct slice text, bool *same_layout);

/* Copies what `facts` points at into `a`, to be kept for longer; no verdict and no traits. Returns
 * 0, or -1 when the arena is exhausted. */
int sql_facts_copy(struct arena *a, const struct sql_facts *facts, struct sql_facts *out);

/* The fingerprint of `text` with this cache's seed, nearly for nothing when it is the text that
 * sql_cache_get was asked about last, or one that came lately. Returns 0, or -1 as sql_fingerprint;
 * also for one of more than `max` bytes that is not the last one. */
int sql_cache_fingerprint(
    struct sql_cache *c, struct slice text, size_t max, struct sql_fingerprint *out);

/* Numbers that the caller keeps with a text and with those that differ from it in values alone, as
 * many as it likes to tell apart; 0 at first, and again when the cache has forgotten the text.
 * Valid until the next call on this cache. NULL: the text is not kept (yet), or has more than `max`
 * bytes and is not the last one. */
#define SQL_CACHE_NOTES 4
uint32_t *sql_cache_notes(struct sql_cache *c, struct slice text, size_t max);

/* Counters since the cache was made. */
void sql_cache_stats(const struct sql_cache *c, struct sql_cache_stats *out);

#endif
