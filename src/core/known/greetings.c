/* SPDX-License-Identifier: PostgreSQL
 * greetings.c: what servers say to clients with the same start-up parameters: the next one of
 * them is let in without a link. Runs in: workers. What another worker has seen counts as well. A
 * wrong value would be worse than to wait: nothing is guessed but the name of an application. */
#include "config.h"

#include <ctype.h>
#include <string.h>

#include "backend/link.h"
#include "backend/pool.h"
#include "backend/varset.h"
#include "base/buf.h"
#include "base/mem.h"
#include "event/loop.h"
#include "ipc/rows.h"

#include "known/greetings.h"

/* Kinds of clients that are remembered, and for how long: settings of the server may change. */
#define GREETINGS       64
#define GREETING_OLD_US 30000000

static const struct paramset no_params;

struct greeting_said {
    struct varset *base; /* NULL: free */
    struct paramset reported;
    uint64_t place; /* pool_place */
    int64_t seen_us;
    uint16_t serial; /* greeting_kind.serial then */
    bool is_made_up;
    char *names; /* user NUL database NUL */
    size_t names_len;
    int node;
};

struct greetings {
    struct shm *shm;
    struct loop *loop;
    int ordinal;
    int nworkers;
    int64_t from_us; /* what was said before is not believed any more */
    struct greeting_said said[GREETINGS];
};

struct greetings *greetings_new(struct shm *shm, struct loop *loop, int ordinal, int nworkers)
{
    struct greetings *gs = mem_alloc_zero(sizeof *gs);

    gs->shm = shm;
    gs->loop = loop;
    gs->ordinal = ordinal;
    gs->nworkers = nworkers;
    greeting_worker_init(shm, ordinal);
    return gs;
}

/* ---- this worker's ---- */

static size_t names_len(const struct pool *pool)
{
    return (size_t)pool->user_len + pool->database_len + 2;
}

static bool is_of_pool(const struct greeting_said *g, const struct pool *pool)
{
    return g->node == pool->cluster_node && g->names_len == names_len(pool) &&
           memcmp(g->names, pool->names, g->names_len) == 0 && g->place == pool_place(pool);
}

static struct greeting_said *find_own(struct greetings *gs, const struct greeting_kind *of)
{
    struct greeting_said *g;

    for (g = gs->said; g < gs->said + GREETINGS; g++)
        if (g->base != NULL && g->base == of->base && is_of_pool(g, of->pool))
            return g;
    return NULL;
}

static bool is_fresh(const struct greetings *gs, int64_t seen_us)
{
    return loop_now_us(gs->loop) - seen_us < GREETING_OLD_US;
}

static void clear(struct greeting_said *g)
{
    varset_unref(&g->base);
    paramset_free(&g->reported);
    mem_free(g->names);
    memset(g, 0, sizeof *g);
}

/* The oldest makes room. */
static struct greeting_said *keep(struct greetings *gs, const struct greeting_kind *of,
    const struct paramset *reported, int64_t seen_us)
{
    struct greeting_said *g = find_own(gs, of);
    int i;

    if (g == NULL) {
        g = gs->said;
        for (i = 1; i < GREETINGS; i++)
            if (gs->said[i].seen_us < g->seen_us)
                g = &gs->said[i];
    }
    clear(g);
    g->serial = of->serial;
    g->base = varset_ref(of->base);
    paramset_copy(&g->reported, reported);
    g->names_len = names_len(of->pool);
    g->names = mem_strndup(of->pool->names, g->names_len);
    g->node = of->pool->cluster_node;
    g->place = pool_place(of->pool);
    g->seen_us = seen_us;
    return g;
}

/* ---- kinds ---- */

static bool is_printable(struct slice text)
{
    size_t i;

    for (i = 0; i < text.n; i++)
        if (text.p[i] < 32 || text.p[i] > 126)
            return false;
    return true;
}

/* The name of its application, when the server makes nothing else of it: printable and short. Else
 * p == NULL. */
static struct slice plain_application(const struct greeting_kind *of)
{
    struct slice name = of->application;

    return name.n < ROWS_NAME_BYTES && is_printable(name) ? name : slice_of(NULL, 0);
}

/* Returns how many bytes that are. */
static uint32_t put_pool(const struct pool *pool, struct buf *out)
{
    uint64_t place = pool_place(pool);

    buf_put_u32(out, (uint32_t)pool->cluster_node);
    buf_put(out, &place, sizeof place);
    buf_put(out, pool->names, names_len(pool));
    return out->len;
}

/* All that decides what is said to the client. `but_name`: but for its application's name. Clients
 * whose names differ one by one are common (a process number in it): what a server said to one of
 * them, or to one without a name, it would say to another. Returns how many bytes in front are the
 * pool. */
static uint32_t put_kind(const struct greeting_kind *of, bool but_name, struct buf *out)
{
    uint32_t pool_len = put_pool(of->pool, out);
    struct varset *vars = varset_ref(of->base);

    if (but_name)
        varset_drop(&vars, slice_of_str("application_name"));
    buf_put_byte(out, but_name ? 'p' : 'a');
    buf_put(out, vars->data, vars->len);
    varset_unref(&vars);
    return pool_len;
}

/* ---- of all workers ---- */

/* What is seen by others of settings that nobody has SET is what ours will be compared with. When
 * ours are others, a server was reloaded, and somebody has not seen it yet: false. */
static bool learn_defaults(const struct greeting_kind *of, const struct paramset *reported)
{
    struct paramset *ours = &of->pool->defaults;
    struct slice name;
    struct slice value;
    struct slice known;
    uint32_t at = 0;
    bool is_same = true;

    while (paramset_next(reported, &at, &name, &value)) {
        if (greeting_is_of_user(name) || greeting_is_set(of->base, name))
            continue;
        known = paramset_get(ours, name);
        if (known.p == NULL)
            (void)paramset_set(ours, name, value);
        else
            is_same = is_same && slice_eq(known, value);
    }
    return is_same;
}

/* The newest one that any worker has. */
static struct greeting_said *find_others(
    struct greetings *gs, const struct greeting_kind *of, bool is_old)
{
    struct slice name = plain_application(of);
    struct paramset reported = {0};
    struct greeting_said *g = NULL;
    struct buf kind = {0};
    int64_t seen_us;

    (void)put_kind(of, name.p != NULL, &kind);
    seen_us = greeting_get(gs->shm, gs->nworkers, buf_slice(&kind), &reported);
    buf_free(&kind);
    if (seen_us > gs->from_us && (is_old || is_fresh(gs, seen_us))) {
        if (name.p != NULL)
            (void)paramset_set(&reported, slice_of_str("application_name"), name);
        g = keep(gs, of, &reported, seen_us);
        if (!learn_defaults(of, &reported))
            g->serial--;
    }
    paramset_free(&reported);
    return g;
}

bool greeting_find(struct greetings *gs, struct greeting_kind of, bool is_old)
{
    const struct greeting_said *g = find_own(gs, &of);
    bool was_said = g != NULL && !g->is_made_up;

    if (was_said && is_fresh(gs, g->seen_us))
        return true;
    was_said = was_said && is_old;
    return find_others(gs, &of, is_old) != NULL || was_said;
}

const struct paramset *greeting_parameters(struct greetings *gs, struct greeting_kind of)
{
    const struct greeting_said *g = find_own(gs, &of);

    return g == NULL ? &no_params : &g->reported;
}

bool greeting_is_fresh(struct greetings *gs, struct greeting_kind of)
{
    const struct greeting_said *g = find_own(gs, &of);

    return g != NULL && !g->is_made_up && is_fresh(gs, g->seen_us);
}

uint16_t greeting_serial(struct greetings *gs, struct greeting_kind of)
{
    const struct greeting_said *g = find_own(gs, &of);

    return g == NULL ? of.serial : g->serial;
}

void greeting_learn(struct greetings *gs, struct greeting_kind of, const struct paramset *reported)
{
    struct greeting g = {.seen_us = loop_now_us(gs->loop),
        .reported = paramset_bytes(reported),
        .auth = of.pool->auth,
        .auth_seen_us = of.pool->auth_seen_us};
    struct slice name = varset_get(of.base, slice_of_str("application_name")); /* its SQL */
    bool is_named = name.p != NULL && is_printable(name); /* then nobody looks for just that name */
    struct buf kind = {0};
    int i;

    (void)keep(gs, &of, reported, g.seen_us);
    for (i = is_named; i < 2; i++) {
        g.pool.n = put_kind(&of, i == 1, &kind);
        g.pool.p = kind.data;
        g.kind = buf_slice(&kind);
        greeting_put(gs->shm, gs->ordinal, &g);
        buf_empty(&kind);
    }
    buf_free(&kind);
}

void greeting_make_up(
    struct greetings *gs, struct greeting_kind of, const struct paramset *reported)
{
    keep(gs, &of, reported, loop_now_us(gs->loop) - GREETING_OLD_US)->is_made_up = true;
}

void greeting_learn_trust(struct greetings *gs, struct pool *pool)
{
    struct buf name = {0};
    int64_t seen_us;

    if (pool->auth != LINK_AUTH_UNKNOWN)
        return;
    (void)put_pool(pool, &name);
    seen_us = greeting_get_trust(gs->shm, gs->nworkers, buf_slice(&name));
    buf_free(&name);
    if (seen_us == -1)
        return;
    pool->auth = LINK_AUTH_TRUST;
    pool->auth_seen_us = seen_us;
}

void greetings_forget(struct greetings *gs)
{
    int i;

    gs->from_us = loop_now_us(gs->loop);
    for (i = 0; i < GREETINGS; i++)
        clear(&gs->said[i]);
}

void greetings_free(struct greetings **gs)
{
    greetings_forget(*gs);
    mem_free(*gs);
    *gs = NULL;
}

bool greeting_is_of_user(struct slice name)
{
    return slice_ieq_str(name, "is_superuser") || slice_ieq_str(name, "session_authorization");
}

bool greeting_is_set(const struct varset *vars, struct slice name)
{
    char folded[64];
    size_t i;

    if (name.n > sizeof folded)
        return false;
    for (i = 0; i < name.n; i++)
        folded[i] = (char)tolower((unsigned char)name.p[i]);
    return varset_get(vars, slice_of(folded, name.n)).p != NULL;
}
