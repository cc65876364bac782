/* SPDX-License-Identifier: PostgreSQL
 * mem_secret.c: memory for passwords and keys: the kernel leaves it out of core dumps.
 * Runs in: every process, any thread. Pages come in chunks that are marked MADV_DONTDUMP and are
 * never given back; inside, sizes are rounded up by an eighth at most (or to 16 bytes) and freed
 * pieces wait in a list of their size. A TLS login asks thousands of times, nearly always in the
 * thread that runs the loop: that one has a store of its own and takes no lock. Must never: use the
 * process heap, whose pages are dumped. */
#include "config.h"

#include "base/mem.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/single_threaded.h>

#include "base/assert.h"

/* The leak checker looks for pointers in the process heap only: it must be told of these pages. */
#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/lsan_interface.h>
#define TELL_MAPPED(p, n)   __lsan_register_root_region(p, n)
#define TELL_UNMAPPED(p, n) __lsan_unregister_root_region(p, n)
#else
#define TELL_MAPPED(p, n)   ((void)0)
#define TELL_UNMAPPED(p, n) ((void)0)
#endif

#define CHUNK_BYTES 262144U
/* Before the caller's bytes; a chunk begins with as many unused ones, so that those are aligned. */
#define HEAD_BYTES  8U
#define ALIGN_BYTES 16U
/* Pieces of 16, 32, ... 512 bytes with their head, then eight sizes for each doubling; larger ones
 * have pages of their own. */
#define FINE_CLASSES 32U
#define FINE_BYTES   (FINE_CLASSES * ALIGN_BYTES)
#define FINE_SHIFT   9U /* FINE_BYTES is 2 to the power of it */
#define MAX_SHIFT    16U
#define CLASSES      (FINE_CLASSES + 8U * (MAX_SHIFT - FINE_SHIFT))
#define CLASS_PAGES  UINT16_MAX

struct piece {
    uint16_t class_no;  /* CLASS_PAGES: alone on its pages */
    uint16_t is_shared; /* which store it belongs to */
    uint32_t used;      /* what was asked for */
    char bytes[];       /* of the caller; while it is free, the address of the next free one */
};

struct store {
    char *at; /* the rest of the newest chunk */
    size_t left;
    struct piece *free[CLASSES];
};

/* One for the process: OpenSSL and threads that derive keys need memory without knowing anybody. */
static struct {
    struct store first; /* touched by the process's first thread alone */
    /* Pieces of `first` that other threads have freed: they push, the first one takes all. */
    struct piece *_Atomic returned;
    pthread_mutex_t lock;
    struct store shared; /* of all other threads; under `lock` */
} pool = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* Set while there is no other thread, and kept. */
static _Thread_local bool is_first;

static bool in_first_thread(void)
{
    if (__libc_single_threaded)
        is_first = true;
    return is_first;
}

/* The smallest class that holds `size` bytes. */
static unsigned class_of(size_t size)
{
    unsigned shift;

    if (size <= FINE_BYTES)
        return (unsigned)((size - 1) / ALIGN_BYTES);
    /* 2^shift < size <= 2^(shift+1) */
    shift = 63U - (unsigned)__builtin_clzll((unsigned long long)size - 1);
    return FINE_CLASSES + 8 * (shift - FINE_SHIFT) + (unsigned)(((size - 1) >> (shift - 3)) & 7);
}

static size_t class_bytes(unsigned class_no)
{
    unsigned step;

    if (class_no < FINE_CLASSES)
        return (size_t)(class_no + 1) * ALIGN_BYTES;
    step = class_no - FINE_CLASSES;
    return (size_t)(9 + step % 8) << (FINE_SHIFT + step / 8 - 3);
}

static void *map_pages(size_t size)
{
    void *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    ASSERT(p != MAP_FAILED);
    (void)madvise(p, size, MADV_DONTDUMP); /* a kernel that cannot do it is no reason to fail */
    TELL_MAPPED(p, size);
    return p;
}

static struct piece *next_of(const struct piece *p)
{
    struct piece *next;

    memcpy(&next, p->bytes, sizeof next);
    return next;
}

static void set_next(struct piece *p, struct piece *next)
{
    memcpy(p->bytes, &next, sizeof next);
}

static void put_piece(struct store *st, struct piece *p)
{
    set_next(p, st->free[p->class_no]);
    st->free[p->class_no] = p;
}

static struct piece *take_piece(struct store *st, unsigned class_no)
{
    size_t size = class_bytes(class_no);
    struct piece *p = st->free[class_no];

    if (p != NULL) {
        st->free[class_no] = next_of(p);
        return p;
    }
    if (st->left < size) { /* what is left of the old chunk is lost: at most a quarter */
        st->at = (char *)map_pages(CHUNK_BYTES) + HEAD_BYTES;
        st->left = CHUNK_BYTES - HEAD_BYTES;
    }
    p = (struct piece *)(void *)st->at;
    st->at += size;
    st->left -= size;
    return p;
}

/* Any thread but the first gives a piece of the first one's back. */
static void return_piece(struct piece *p)
{
    struct piece *head = atomic_load_explicit(&pool.returned, memory_order_relaxed);

    do {
        set_next(p, head);
    } while (!atomic_compare_exchange_weak_explicit(
        &pool.returned, &head, p, memory_order_release, memory_order_relaxed));
}

static void take_returned(void)
{
    struct piece *p = atomic_exchange_explicit(&pool.returned, NULL, memory_order_acquire);
    struct piece *next;

    for (; p != NULL; p = next) {
        next = next_of(p);
        put_piece(&pool.first, p);
    }
}

static struct piece *take_from_pool(unsigned class_no)
{
    struct piece *p;

    if (in_first_thread()) {
        if (pool.first.free[class_no] == NULL &&
            atomic_load_explicit(&pool.returned, memory_order_relaxed) != NULL)
            take_returned();
        p = take_piece(&pool.first, class_no);
        p->is_shared = false;
        return p;
    }
    pthread_mutex_lock(&pool.lock);
    p = take_piece(&pool.shared, class_no);
    pthread_mutex_unlock(&pool.lock);
    p->is_shared = true;
    return p;
}

static struct piece *piece_of(void *p)
{
    return (struct piece *)(void *)((char *)p - HEAD_BYTES);
}

static void *piece_new(size_t size)
{
    struct piece *p;
    unsigned class_no;

    ASSERT(size < (size_t)UINT32_MAX / 2);
    if (size < sizeof p) /* room for the next free one */
        size = sizeof p;
    if (size + HEAD_BYTES > (1U << MAX_SHIFT)) {
        p = (struct piece *)(void *)((char *)map_pages(size + ALIGN_BYTES) + HEAD_BYTES);
        class_no = CLASS_PAGES;
    } else {
        class_no = class_of(size + HEAD_BYTES);
        p = take_from_pool(class_no);
    }
    p->class_no = (uint16_t)class_no;
    p->used = (uint32_t)size;
    return p->bytes;
}

void *mem_alloc_hidden(size_t size)
{
    return piece_new(size);
}

void *mem_alloc_secret(size_t size)
{
    void *p = piece_new(size);

    memset(p, 0, size);
    return p;
}

void mem_free_hidden(void *bytes)
{
    struct piece *p;

    if (bytes == NULL)
        return;
    p = piece_of(bytes);
    if (p->class_no == CLASS_PAGES) {
        TELL_UNMAPPED((char *)p - HEAD_BYTES, p->used + ALIGN_BYTES);
        (void)munmap((char *)p - HEAD_BYTES, p->used + ALIGN_BYTES);
        return;
    }
    ASSERT(p->class_no < CLASSES);
    if (p->is_shared) {
        pthread_mutex_lock(&pool.lock);
        put_piece(&pool.shared, p);
        pthread_mutex_unlock(&pool.lock);
    } else if (in_first_thread()) {
        put_piece(&pool.first, p);
    } else {
        return_piece(p);
    }
}

void mem_free_secret(void *p)
{
    if (p != NULL)
        mem_wipe(p, piece_of(p)->used);
    mem_free_hidden(p);
}

void *mem_resize_hidden(void *bytes, size_t size)
{
    struct piece *p = bytes == NULL ? NULL : piece_of(bytes);
    void *fresh;

    if (p != NULL && p->class_no != CLASS_PAGES && size >= sizeof p &&
        size + HEAD_BYTES <= class_bytes(p->class_no)) {
        p->used = (uint32_t)size;
        return bytes;
    }
    fresh = piece_new(size);
    if (p != NULL) {
        memcpy(fresh, bytes, p->used < size ? p->used : size);
        mem_free_secret(bytes);
    }
    return fresh;
}
