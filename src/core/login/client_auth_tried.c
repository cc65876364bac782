/* SPDX-License-Identifier: PostgreSQL
 * client_auth_tried.c: which names were tried in this worker, whoever has them: whose first login
 * has cost what a first login costs, and, with pool_hba off, what a server asked of them, which is
 * what their clients are asked.
 * Runs in: workers. By what was tried, and not by who is known, or has links, for that would show
 * by the time it takes. Must never: keep what a server said to a login for ever, or a name; be
 * written but by a login. */
#include "config.h"

#include <string.h>

#include "auth/auth_guard.h"
#include "base/hash.h"
#include "base/mem.h"

#include "client_auth_int.h"

#define TRIED_SLOTS 2048U
/* All are forgotten before the book, which has more, forgets what it made for one of them: else
 * that would show. */
#define TRIED_MAX    1000U
#define ASKED_FOR_US INT64_C(600000000)
/* The low bits of a slot are a word about the name. */
#define WORD_BITS  UINT64_C(7)
#define WORD_SPENT 1U

struct auth_tried {
    unsigned count;
    uint64_t slot[TRIED_SLOTS]; /* keyed hashes; 0: free */
};

static uint64_t key_seed(const struct login_auth *sa)
{
    uint64_t seed;

    memcpy(&seed, auth_guard_secret(sa->guard).p, sizeof seed);
    return seed;
}

/* 0: it was not tried, or that is forgotten. */
static unsigned tried_word(const struct login_auth *sa, uint64_t key)
{
    uint64_t found = sa->tried == NULL ? 0 : sa->tried->slot[(key >> 32) % TRIED_SLOTS];

    return ((found ^ key) & ~WORD_BITS) != 0 ? 0 : (unsigned)(found & WORD_BITS);
}

static void tried_note(struct login_auth *sa, uint64_t key, unsigned word)
{
    if (tried_word(sa, key) == word)
        return;
    if (sa->tried == NULL)
        sa->tried = mem_alloc_zero(sizeof *sa->tried);
    if (sa->tried->count++ >= TRIED_MAX)
        memset(sa->tried, 0, sizeof *sa->tried);
    sa->tried->slot[(key >> 32) % TRIED_SLOTS] = (key & ~WORD_BITS) | word;
}

void login_auth_forget_tried(struct login_auth *sa)
{
    mem_free(sa->tried);
    sa->tried = NULL;
}

/* ---- what a first login costs ---- */

static uint64_t spent_key(const struct client_auth *a, uint32_t iterations)
{
    struct slice user = client_auth_user(a);

    return hash_bytes(user.p, user.n, ~key_seed(a->sa) - iterations);
}

bool client_auth_has_spent(const struct client_auth *a, uint32_t iterations)
{
    return tried_word(a->sa, spent_key(a, iterations)) == WORD_SPENT;
}

void client_auth_note_spent(struct client_auth *a, uint32_t iterations)
{
    tried_note(a->sa, spent_key(a, iterations), WORD_SPENT);
}

/* ---- what its server asked ---- */

/* Of the user, the data base and the server, as pools are; in these ten minutes. */
static uint64_t asked_key(const struct client_auth *a)
{
    const struct pool *pool = a->who.req->pool;
    struct slice user = pool_user(pool);
    struct slice database = pool_database(pool);
    uint64_t seed = key_seed(a->sa) + (uint64_t)pool->cluster_node;
    uint64_t when = (uint64_t)(loop_now_us(a->sa->be->loop) / ASKED_FOR_US);

    return hash_bytes(database.p, database.n, hash_bytes(user.p, user.n, seed) + when);
}

enum auth_server client_auth_was_asked(const struct client_auth *a)
{
    if (a->who.req->is_private)
        return AUTH_SERVER_UNKNOWN;
    if (pool_is_trusted(a->who.req->pool))
        return AUTH_SERVER_TRUST;
    return (enum auth_server)tried_word(a->sa, asked_key(a));
}

void client_auth_note_asked(struct client_auth *a, enum auth_server asks)
{
    /* A password in clear text is for the server itself, each time. */
    if (!a->facts.has_rule && (asks == AUTH_SERVER_MD5 || asks == AUTH_SERVER_SCRAM ||
                                  (asks == AUTH_SERVER_PASSWORD && a->facts.maps_user)))
        tried_note(a->sa, asked_key(a), asks);
}

void client_auth_forget_asked(struct client_auth *a)
{
    if (!a->facts.has_rule)
        tried_note(a->sa, asked_key(a), AUTH_SERVER_UNKNOWN);
}
