/* SPDX-License-Identifier: PostgreSQL
 * arena.h: allocate-only memory with one life span; everything is freed at once.
 * Runs in: every process. An arena with a limit returns NULL past it (that client's request fails
 * with 53200); an arena without a limit never returns NULL. */
#ifndef PGP_BASE_ARENA_H
#define PGP_BASE_ARENA_H

#include <stddef.h>

struct arena;

/* A place to return to with arena_release. */
struct arena_mark {
    void *block;
    size_t used;
    size_t total;
};

/* Makes an arena called `name` (a literal) that may hold `limit` bytes; 0 means no limit. */
struct arena *arena_new(const char *name, size_t limit);
/* Makes an arena for passwords or keys: left out of core dumps, overwritten when freed. */
struct arena *arena_new_secret(const char *name, size_t limit);
/* Frees all of it and clears *ap; *ap may be NULL. */
void arena_free(struct arena **ap);
/* Returns `size` bytes aligned to 8, not zeroed; NULL when the limit would be passed. */
void *arena_alloc(struct arena *a, size_t size);
/* Allocates as arena_alloc does, and zeroes the bytes. */
void *arena_alloc_zero(struct arena *a, size_t size);
/* Copies `n` bytes and adds a NUL. */
char *arena_strndup(struct arena *a, const char *p, size_t n);
char *arena_strdup(struct arena *a, const char *s);
/* Formats into the arena. */
char *arena_printf(struct arena *a, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Remembers the present fill, and frees all that was allocated since. */
struct arena_mark arena_mark(struct arena *a);
void arena_release(struct arena *a, struct arena_mark mark);
/* Empties the arena but keeps its first block: for reuse on the hot path. */
void arena_reset(struct arena *a);
/* Bytes handed out. */
size_t arena_used(const struct arena *a);

#endif
