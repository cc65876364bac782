/* SPDX-License-Identifier: PostgreSQL
 * mem.h: the process heap; the only caller of malloc.
 * Runs in: every process. Running out of the process heap is fatal (the supervisor restarts the
 * process); memory that a client can make grow belongs in an arena or buffer with a limit. */
#ifndef PGP_BASE_MEM_H
#define PGP_BASE_MEM_H

#include <stddef.h>

/* Returns `size` bytes, never NULL. */
void *mem_alloc(size_t size);
/* Returns `size` zeroed bytes, never NULL. */
void *mem_alloc_zero(size_t size);
/* Resizes `p` (may be NULL); never NULL. */
void *mem_resize(void *p, size_t size);
/* Returns a copy of NUL-ended `s`; free with mem_free. */
char *mem_strdup(const char *s);
/* Returns a NUL-ended copy of `n` bytes at `p`. */
char *mem_strndup(const char *p, size_t n);
/* Frees `p`; NULL is allowed. */
void mem_free(void *p);
/* Overwrites secrets in a way the compiler keeps. */
void mem_wipe(void *p, size_t n);

#endif
