/* SPDX-License-Identifier: PostgreSQL
 * auth_guard.c: a table of addresses in shared memory, changed by all workers with atomic
 * operations.
 * Runs in: workers. It need not be exact to one count: two workers may race for a slot. It must
 * never block, and an attacker with many addresses must not be able to make it slow: a look-up
 * touches a few slots, and a full neighbourhood loses its oldest entry. */
#include "config.h"

#include "auth/auth_guard.h"

#include <stdatomic.h>
#include <string.h>
#include <sys/random.h>

#include "auth/scram.h"
#include "base/assert.h"
#include "base/hash.h"

#define GUARD_SLOTS 8192U
#define GUARD_PROBE 8U
/* A majority that is older than so many logins does not count any more. */
#define GUARD_LEAD_MAX 1000U
#define GUARD_BARRED   0x40000000U /* above every limit, and far from wrapping */

struct guard_slot {
    _Atomic uint64_t key; /* 0: free */
    _Atomic uint32_t since_s;
    _Atomic uint32_t count;
};

struct auth_guard {
    uint8_t secret[AUTH_GUARD_SECRET_BYTES];
    _Atomic uint64_t usual; /* iterations of the candidate; below, by how many votes it leads */
    _Atomic uint64_t nfailed;
    struct guard_slot slot[GUARD_SLOTS];
};

size_t auth_guard_bytes(void)
{
    return sizeof(struct auth_guard);
}

void auth_guard_init(struct auth_guard *g)
{
    ssize_t n = getrandom(g->secret, sizeof g->secret, 0);

    ASSERT(n == (ssize_t)sizeof g->secret); /* so few bytes never come in part */
    atomic_store(&g->usual, (uint64_t)SCRAM_ITERATIONS << 32);
}

struct slice auth_guard_secret(const struct auth_guard *g)
{
    return slice_of((const char *)g->secret, sizeof g->secret);
}

void auth_guard_set_secret(struct auth_guard *g, const uint8_t secret[AUTH_GUARD_SECRET_BYTES])
{
    memcpy(g->secret, secret, sizeof g->secret);
}

/* The majority vote of Boyer and Moore: one word for all workers, written by who disagrees or is
 * early. */
void auth_guard_vote(struct auth_guard *g, uint32_t iterations)
{
    uint64_t old = atomic_load(&g->usual);
    uint64_t fresh;
    uint32_t lead;

    do {
        lead = (uint32_t)old;
        if ((uint32_t)(old >> 32) == iterations && lead >= GUARD_LEAD_MAX)
            return;
        if ((uint32_t)(old >> 32) == iterations)
            fresh = old + 1;
        else
            fresh = lead > 0 ? old - 1 : ((uint64_t)iterations << 32) + 1;
    } while (!atomic_compare_exchange_weak(&g->usual, &old, fresh));
}

uint32_t auth_guard_usual(const struct auth_guard *g)
{
    return (uint32_t)(atomic_load(&g->usual) >> 32);
}

uint32_t auth_guard_usual_cost(const struct auth_guard *g)
{
    uint32_t usual = auth_guard_usual(g);

    return usual == 0 ? SCRAM_ITERATIONS : usual;
}

/* Keyed with the secret, so that nobody can choose addresses that meet in one place. An IPv6
 * network of 64 bits counts as one address: it belongs to one customer. */
static uint64_t guard_key(
    const struct auth_guard *g, enum auth_guard_kind kind, const struct hba_addr *addr)
{
    uint64_t seed;
    uint64_t key;

    memcpy(&seed, g->secret, sizeof seed);
    key = hash_bytes(addr->bytes, addr->n == 16 ? 8 : addr->n, seed + (uint64_t)kind);
    return key == 0 ? 1 : key;
}

static struct guard_slot *guard_find(struct auth_guard *g, uint64_t key)
{
    uint32_t i;

    for (i = 0; i < GUARD_PROBE; i++) {
        struct guard_slot *s = &g->slot[(key + i) % GUARD_SLOTS];

        if (atomic_load(&s->key) == key)
            return s;
    }
    return NULL;
}

static struct guard_slot *guard_take(struct auth_guard *g, uint64_t key, uint32_t now_s)
{
    struct guard_slot *oldest = NULL;
    struct guard_slot *s;
    uint32_t i;

    for (i = 0; i < GUARD_PROBE; i++) {
        s = &g->slot[(key + i) % GUARD_SLOTS];
        if (atomic_load(&s->key) == 0) {
            oldest = s;
            break;
        }
        if (oldest == NULL || atomic_load(&s->since_s) < atomic_load(&oldest->since_s))
            oldest = s;
    }
    atomic_store(&oldest->count, 0);
    atomic_store(&oldest->since_s, now_s);
    atomic_store(&oldest->key, key);
    return oldest;
}

bool auth_guard_is_blocked(struct auth_guard *g, enum auth_guard_kind kind,
    const struct hba_addr *addr, uint32_t now_s, uint32_t limit)
{
    struct guard_slot *s;

    if (limit == 0 || addr->n == 0)
        return false;
    s = guard_find(g, guard_key(g, kind, addr));
    return s != NULL && now_s - atomic_load(&s->since_s) < AUTH_GUARD_WINDOW_S &&
           atomic_load(&s->count) >= limit;
}

/* The slot of the address, in a minute that runs; NULL for a Unix socket. */
static struct guard_slot *guard_open(
    struct auth_guard *g, enum auth_guard_kind kind, const struct hba_addr *addr, uint32_t now_s)
{
    uint64_t key = guard_key(g, kind, addr);
    struct guard_slot *s = addr->n == 0 ? NULL : guard_find(g, key);

    if (s == NULL && addr->n != 0)
        s = guard_take(g, key, now_s);
    if (s != NULL && now_s - atomic_load(&s->since_s) >= AUTH_GUARD_WINDOW_S) {
        atomic_store(&s->count, 0);
        atomic_store(&s->since_s, now_s);
    }
    return s;
}

uint32_t auth_guard_count(
    struct auth_guard *g, enum auth_guard_kind kind, const struct hba_addr *addr, uint32_t now_s)
{
    struct guard_slot *s = guard_open(g, kind, addr, now_s);

    atomic_fetch_add(&g->nfailed, 1);
    return s == NULL ? 0 : atomic_fetch_add(&s->count, 1) + 1;
}

void auth_guard_bar(struct auth_guard *g, const struct hba_addr *addr, uint32_t now_s)
{
    struct guard_slot *s = guard_open(g, AUTH_GUARD_WRONG, addr, now_s);

    if (s != NULL)
        atomic_store(&s->count, GUARD_BARRED);
}

uint64_t auth_guard_failures(const struct auth_guard *g)
{
    return atomic_load(&g->nfailed);
}
