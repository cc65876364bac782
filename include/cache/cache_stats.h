/* SPDX-License-Identifier: PostgreSQL
 * cache_stats.h: what the query cache tells about itself.
 * Runs in: workers, which count; whoever answers SHOW, PCP or metrics. Every process counts in rows
 * of its own; who shows adds them up. */
#ifndef PGP_CACHE_CACHE_STATS_H
#define PGP_CACHE_CACHE_STATS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/slice.h"
#include "cache/cache_gen.h"
#include "cache/cache_store.h"

#define CACHE_NAME_PART  64  /* a name with its NUL */
#define CACHE_TEXT_BYTES 128 /* the start of a text */
/* Tables that are told apart; number 0 stands for all others. */
#define CACHE_TABLES 1024

/* Number of a table for counters: the one of its cell `any`, or a new one under this name. */
uint16_t cache_table_number(struct cache *c, cache_cell table, struct slice database,
    struct slice schema, struct slice name);

/* The one that it has, 0 when it has none. */
uint16_t cache_table_find(struct cache *c, cache_cell table);

/* A statement that could have come from the cache did so. `text` as the client wrote it,
 * `text_hash` what counts as one text in SHOW POOL_CACHE_QUERIES (its fingerprint). */
void cache_note_hit(
    struct cache *c, const struct cache_hit *hit, uint64_t text_hash, struct slice text);
/* A query was not found and went to the server. */
void cache_note_miss(struct cache *c, const uint16_t *tables, uint32_t ntables);
/* The result of a query was kept (OK), or why it was not. */
void cache_note_fill(
    struct cache *c, const uint16_t *tables, uint32_t ntables, enum cache_fill_reason reason);
/* A write made results of this table invalid: by row, or all of the table. `by_stream`: seen by the
 * invalidator. `lag_us`: from the commit until then, 0 when not known. */
void cache_note_write(struct cache *c, uint16_t table, bool by_row, bool by_stream, int64_t lag_us);

/* A client has written these cells: rows that are known, or all rows of the tables among them. */
void cache_note_writes(struct cache *c, const cache_cell *cells, size_t n, bool by_row);

struct cache_totals {
    uint64_t hits;
    uint64_t misses;
    uint64_t fills[CACHE_FILL_REASON_COUNT];
    uint64_t row_writes;
    uint64_t table_writes;
    uint64_t nhash;        /* places for keys */
    uint64_t nentries;     /* results that are kept */
    uint64_t used_bytes;   /* of the area, by entries */
    uint64_t free_bytes;   /* of the area */
    uint64_t wasted_bytes; /* of the free, in pieces that no entry can use */
    uint64_t evicted;
    uint64_t resets;  /* shards emptied after a writer died in them */
    int64_t since_us; /* wall clock */
    uint32_t off_bits;
    uint64_t far_failures; /* memcached servers that did not answer, so often */
    uint64_t far_untold;   /* writes that could not be told to memcached */
    uint32_t far_down;     /* of its servers: do not answer now */
};
/* Adds up what all processes and shards tell. */
void cache_totals(struct cache *c, struct cache_totals *out);

/* Servers of memcached that are known, and bytes of a host's name with its NUL. */
#define CACHE_FAR_SERVERS 16
#define CACHE_FAR_HOST    256

struct cache_far_row {
    char host[CACHE_FAR_HOST];
    int port; /* 0: the host is the path of a socket */
    bool is_down;
    int64_t retry_at_us;  /* wall clock: it is left alone until then; 0 while it is up */
    int64_t failed_at_us; /* the last time, wall clock; 0: never */
    uint64_t hits;        /* results that were found there */
    uint64_t misses;      /* results that were not there, or out of date */
    uint64_t kept;        /* results that were put there */
    uint64_t told;        /* generations: writes that it was told of */
    uint64_t timeouts;    /* it did not answer in time */
    uint64_t errors;      /* it could not be reached, or answered with an error */
};
/* Server `i` of memcached, in the order of the setting; false when there is none. */
bool cache_far_row(struct cache *c, unsigned i, struct cache_far_row *out);

struct cache_table_row {
    char name[3][CACHE_NAME_PART]; /* database, schema, table */
    uint64_t nentries;
    uint64_t bytes;
    uint64_t hits;
    uint64_t misses;
    uint64_t fills[CACHE_FILL_REASON_COUNT];
    uint64_t row_writes;
    uint64_t table_writes;
    bool last_by_stream; /* who made it invalid the last time */
    int64_t last_us;     /* and when, wall clock; 0: never */
    int64_t lag_us;
};
/* Row of table number `i` < CACHE_TABLES; false when there is none. */
bool cache_table_row(struct cache *c, unsigned i, struct cache_table_row *out);

struct cache_query_row {
    uint64_t hash;
    uint64_t hits;
    uint64_t saved_us;
    char text[CACHE_TEXT_BYTES];
};
/* The texts that saved most, most first; returns how many. */
unsigned cache_top_queries(struct cache *c, struct cache_query_row *out, unsigned max);

#endif
