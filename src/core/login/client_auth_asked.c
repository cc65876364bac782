/* SPDX-License-Identifier: PostgreSQL
 * client_auth_asked.c: with pool_hba off clients are asked as the server asks: which names it was
 * asked about, and what it said.
 * Runs in: workers. A name's first login opens a link to see it, later ones do not: by what was
 * tried, and not by who is known, or has links, for that would show by the time it takes. Must
 * never: keep what a server said to a login for ever, or a name; be written but by a login. */
#include "config.h"

#include <string.h>

#include "auth/auth_guard.h"
#include "base/hash.h"
#include "base/mem.h"

#include "client_auth_int.h"

#define ASKED_SLOTS  2048U
#define ASKED_MAX    1000U
#define ASKED_FOR_US INT64_C(600000000)
/* The low bits of a slot hold what was asked. */
#define ASKED_BITS 7U

struct auth_asked {
    int64_t since_us;
    unsigned count;
    uint64_t slot[ASKED_SLOTS]; /* keyed hashes; 0: free */
};

/* The user, the data base and the server, as pools are. */
static uint64_t asked_key(const struct client_auth *a)
{
    struct slice secret = auth_guard_secret(a->sa->guard);
    struct slice user = pool_user(a->who.req->pool);
    struct slice database = pool_database(a->who.req->pool);
    uint64_t seed;
    uint64_t key;

    memcpy(&seed, secret.p, sizeof seed);
    key = hash_bytes(user.p, user.n, seed + (uint64_t)a->who.req->pool->cluster_node);
    key = hash_bytes(database.p, database.n, key);
    return (key & ~(uint64_t)ASKED_BITS) | (ASKED_BITS + 1);
}

enum auth_server client_auth_was_asked(const struct client_auth *a)
{
    const struct auth_asked *m = a->sa->asked;
    uint64_t key = asked_key(a);
    uint64_t found;

    if (a->who.req->is_private)
        return AUTH_SERVER_UNKNOWN;
    if (pool_is_trusted(a->who.req->pool))
        return AUTH_SERVER_TRUST;
    if (m == NULL || loop_now_us(a->sa->be->loop) - m->since_us > ASKED_FOR_US)
        return AUTH_SERVER_UNKNOWN;
    found = m->slot[(key >> 32) % ASKED_SLOTS];
    if ((found & ~(uint64_t)ASKED_BITS) != (key & ~(uint64_t)ASKED_BITS))
        return AUTH_SERVER_UNKNOWN;
    return (enum auth_server)(found & ASKED_BITS);
}

void client_auth_note_asked(struct client_auth *a, enum auth_server asks)
{
    struct login_auth *sa = a->sa;
    int64_t now_us = loop_now_us(a->sa->be->loop);
    uint64_t *slot;

    /* A password in clear text is for the server itself, each time. */
    if (a->facts.has_rule || (asks != AUTH_SERVER_MD5 && asks != AUTH_SERVER_SCRAM &&
                                 !(asks == AUTH_SERVER_PASSWORD && a->facts.maps_user)))
        return;
    if (sa->asked == NULL)
        sa->asked = mem_alloc_zero(sizeof *sa->asked);
    if (sa->asked->count >= ASKED_MAX || now_us - sa->asked->since_us > ASKED_FOR_US)
        memset(sa->asked, 0, sizeof *sa->asked);
    if (sa->asked->count++ == 0)
        sa->asked->since_us = now_us;
    slot = &sa->asked->slot[(asked_key(a) >> 32) % ASKED_SLOTS];
    *slot = (asked_key(a) & ~(uint64_t)ASKED_BITS) | (uint64_t)asks;
}

void client_auth_forget_asked(const struct client_auth *a)
{
    struct auth_asked *m = a->sa->asked;

    if (m != NULL && !a->facts.has_rule)
        m->slot[(asked_key(a) >> 32) % ASKED_SLOTS] = 0;
}

void login_auth_forget_asked(struct login_auth *sa)
{
    mem_free(sa->asked);
    sa->asked = NULL;
}
