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

/* ---- for passwords and keys: memory that core dumps leave out, where the kernel can do that; from
 * any thread. What these give is freed by these. ---- */

/* Returns `size` zeroed bytes, never NULL. */
void *mem_alloc_secret(size_t size);
/* Overwrites and frees `p`; NULL is allowed. */
void mem_free_secret(void *p);
/* As mem_alloc_secret, but not zeroed: for what is large and written over anyhow. */
void *mem_alloc_hidden(size_t size);
/* Frees without overwriting: for owners who have done that. */
void mem_free_hidden(void *p);
/* Resizes `p` (may be NULL), which is overwritten where it was; never NULL. */
void *mem_resize_hidden(void *p, size_t size);

/* Overwrites secrets in a way the compiler keeps. */
void mem_wipe(void *p, size_t n);

#endif
