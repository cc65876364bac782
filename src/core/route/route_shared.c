/* SPDX-License-Identifier: PostgreSQL
 * route_shared.c: answers about the catalogue in shared memory, one writer per table.
 * Runs in: workers. A slot is copied under its sequence number, word by word: a reader that meets a
 * slot in the middle of a change takes it for empty, and asks the server. */
#include "config.h"

#include "route/route_shared.h"

#include <stdatomic.h>
#include <string.h>

#include "route_int.h"

/* How many of each kind a worker keeps at most, however large relcache_size is. */
#define SHARED_MAX 16384
/* Slots that one question may use. */
#define WAYS 4
/* Schema and name together: names of the server have up to 63 bytes each. */
#define TEXT_MAX 128

struct shared_answer {
    struct route_answer is;
    uint64_t hash; /* 0: free */
    uint64_t scope;
    uint32_t nargs;
    uint16_t schema_len;
    uint16_t name_len;
    char text[TEXT_MAX]; /* schema, name */
};

#define WORDS (sizeof(struct shared_answer) / sizeof(uint64_t))
_Static_assert(sizeof(struct shared_answer) % sizeof(uint64_t) == 0, "copied as words");

struct slot {
    _Atomic uint64_t seq; /* odd: being written */
    _Atomic uint64_t hash;
    _Atomic uint64_t word[WORDS];
};

struct route_shared {
    _Atomic uint32_t nbuckets; /* of each kind; 0: nobody writes here yet */
    uint32_t next;             /* of the ways, the one that goes next */
    struct slot slot[];
};

static uint32_t nbuckets_of(const struct conf *conf)
{
    int64_t n = conf->relcache_size > SHARED_MAX ? SHARED_MAX : conf->relcache_size;

    return n < WAYS ? 1 : (uint32_t)n / WAYS;
}

size_t route_shared_bytes(const struct conf *conf)
{
    return sizeof(struct route_shared) +
           (size_t)ROUTE_QUESTION_KINDS * nbuckets_of(conf) * WAYS * sizeof(struct slot);
}

struct route_shared *route_shared_init(void *mem, const struct conf *conf)
{
    struct route_shared *s = mem;
    uint32_t n = nbuckets_of(conf);
    uint32_t i;

    for (i = 0; i < ROUTE_QUESTION_KINDS * n * WAYS; i++) {
        if (atomic_load(&s->slot[i].seq) == 0)
            continue; /* never used */
        atomic_store(&s->slot[i].hash, 0);
        atomic_store(&s->slot[i].seq, 2);
    }
    atomic_store(&s->nbuckets, n);
    return s;
}

/* The first slot of the bucket. */
static uint32_t bucket_of(uint32_t nbuckets, const struct route_question *q, uint64_t hash)
{
    return ((uint32_t)q->kind * nbuckets + (uint32_t)(hash % nbuckets)) * WAYS;
}

static uint64_t hash_of(struct route_scope scope, const struct route_question *q)
{
    return route_question_hash(scope, q) | 1;
}

static void slot_read(const struct slot *slot, struct shared_answer *out)
{
    uint64_t word[WORDS];
    size_t i;

    for (i = 0; i < WORDS; i++)
        word[i] = atomic_load_explicit(&slot->word[i], memory_order_relaxed);
    memcpy(out, word, sizeof word);
}

static bool is_about(
    const struct shared_answer *a, struct route_scope scope, const struct route_question *q)
{
    return a->scope == route_question_scope(scope, q) && a->nargs == q->nargs &&
           (size_t)a->schema_len + a->name_len <= TEXT_MAX &&
           slice_eq(slice_of(a->text, a->schema_len), q->schema) &&
           slice_eq(slice_of(a->text + a->schema_len, a->name_len), q->name);
}

static void slot_write(struct slot *slot, const struct shared_answer *a)
{
    uint64_t seq = atomic_load_explicit(&slot->seq, memory_order_relaxed) | 1;
    uint64_t word[WORDS];
    size_t i;

    memcpy(word, a, sizeof word);
    atomic_store_explicit(&slot->seq, seq, memory_order_relaxed);
    atomic_thread_fence(memory_order_release);
    atomic_store_explicit(&slot->hash, a->hash, memory_order_relaxed);
    for (i = 0; i < WORDS; i++)
        atomic_store_explicit(&slot->word[i], word[i], memory_order_relaxed);
    atomic_store_explicit(&slot->seq, seq + 1, memory_order_release);
}

void route_shared_put(struct route_shared *s, struct route_scope scope,
    const struct route_question *q, const struct route_answer *a)
{
    struct shared_answer kept;
    uint64_t hash = hash_of(scope, q);
    uint32_t first = bucket_of(atomic_load(&s->nbuckets), q, hash);
    uint32_t i;

    if (q->schema.n + q->name.n > TEXT_MAX)
        return;
    memset(&kept, 0, sizeof kept);
    kept.is = *a;
    kept.hash = hash;
    kept.scope = route_question_scope(scope, q);
    kept.nargs = q->nargs;
    kept.schema_len = (uint16_t)q->schema.n;
    kept.name_len = (uint16_t)q->name.n;
    if (q->schema.n > 0)
        memcpy(kept.text, q->schema.p, q->schema.n);
    if (q->name.n > 0)
        memcpy(kept.text + q->schema.n, q->name.p, q->name.n);
    for (i = 0; i < WAYS; i++) {
        uint64_t there = atomic_load_explicit(&s->slot[first + i].hash, memory_order_relaxed);

        if (there == 0 || there == hash)
            break;
    }
    if (i == WAYS)
        i = s->next++ % WAYS;
    slot_write(&s->slot[first + i], &kept);
}

static int slot_get(const struct slot *slot, struct route_scope scope,
    const struct route_question *q, uint64_t hash, struct route_answer *out)
{
    struct shared_answer a;
    uint64_t seq = atomic_load_explicit(&slot->seq, memory_order_acquire);

    if ((seq & 1) != 0 || atomic_load_explicit(&slot->hash, memory_order_relaxed) != hash)
        return -1;
    slot_read(slot, &a);
    atomic_thread_fence(memory_order_acquire);
    if (atomic_load_explicit(&slot->seq, memory_order_relaxed) != seq || a.hash != hash ||
        !is_about(&a, scope, q))
        return -1;
    *out = a.is;
    return 0;
}

int route_shared_get(const struct route_shared *const *all, unsigned n, struct route_scope scope,
    const struct route_question *q, uint64_t change, int64_t now_us, struct route_answer *a)
{
    uint64_t hash = hash_of(scope, q);
    uint32_t i;
    unsigned w;

    for (w = 0; w < n; w++) {
        uint32_t nbuckets = atomic_load(&all[w]->nbuckets);
        uint32_t first = nbuckets == 0 ? 0 : bucket_of(nbuckets, q, hash);

        for (i = 0; nbuckets > 0 && i < WAYS; i++)
            if (slot_get(&all[w]->slot[first + i], scope, q, hash, a) == 0 && a->change == change &&
                a->until_us > now_us)
                return 0;
    }
    return -1;
}
