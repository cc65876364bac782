/* SPDX-License-Identifier: PostgreSQL
 * cache_far_ask.c: what is asked of memcached for some look-ups, and what its answers mean; the
 * form of what is kept there. Pure, but for counters. Runs in: workers, on the loop and on threads.
 */
#include "config.h"

#include <stdio.h>
#include <string.h>
#include <sys/random.h>

#include "base/hash.h"
#include "base/mem.h"
#include "sys/clock.h"

#include "cache_far_int.h"

#define MAGIC         UINT32_C(0x70676331)
#define MIN_BACKOFF_S 1
#define MAX_BACKOFF_S 60

/* --- servers that do not answer --- */

static void count(_Atomic uint64_t *counter)
{
    atomic_fetch_add_explicit(counter, 1, memory_order_relaxed);
}

bool far_server_is_down(const struct far_spec *spec, unsigned server)
{
    return clock_mono_us() < atomic_load(&spec->state->server[server].down_until_us);
}

void far_server_answered(struct far_spec *spec, unsigned server)
{
    if (atomic_load_explicit(&spec->state->server[server].backoff_s, memory_order_relaxed) != 0)
        atomic_store(&spec->state->server[server].backoff_s, 0);
}

void far_server_failed(struct far_spec *spec, unsigned server, int64_t begun_us)
{
    struct cache_far_server *s = &spec->state->server[server];
    bool is_late = clock_mono_us() - begun_us >= spec->timeout_ms * CLOCK_US_PER_MS;
    uint32_t wait_s = atomic_load(&s->backoff_s) * 2;

    if (wait_s < MIN_BACKOFF_S)
        wait_s = MIN_BACKOFF_S;
    if (wait_s > MAX_BACKOFF_S)
        wait_s = MAX_BACKOFF_S;
    atomic_store(&s->backoff_s, wait_s);
    atomic_store(&s->failed_at_us, clock_wall_us());
    count(is_late ? &s->timeouts : &s->errors);
    atomic_store(&s->down_until_us, clock_mono_us() + wait_s * CLOCK_US_PER_S);
}

/* --- names --- */

static void name_set(struct far_conn *c, struct far_name *name, int len)
{
    name->len = (size_t)len;
    name->server = far_conn_server(c, name->text, name->len);
}

void far_name_of_key(struct far_conn *c, const struct cache_key *key, struct far_name *name)
{
    name_set(c, name,
        snprintf(name->text, sizeof name->text, "r:%016llx%016llx", (unsigned long long)key->hash,
            (unsigned long long)hash_bytes(key->bytes.p, key->bytes.n, MAGIC)));
}

void far_name_of_cell(struct far_conn *c, cache_cell cell, struct far_name *name)
{
    name_set(
        c, name, snprintf(name->text, sizeof name->text, "g:%016llx", (unsigned long long)cell));
}

void far_name_of_all(struct far_conn *c, struct far_name *name)
{
    name_set(c, name, snprintf(name->text, sizeof name->text, FAR_NAME_OF_ALL));
}

bool far_name_is(const struct far_name *name, const char *text, size_t len)
{
    return name->len == len && memcmp(name->text, text, len) == 0;
}

/* --- questions --- */

uint64_t far_number_of(const char *p, size_t n)
{
    uint64_t v = 0;
    size_t i;

    for (i = 0; i < n && p[i] >= '0' && p[i] <= '9'; i++)
        v = v * 10 + (uint64_t)(p[i] - '0');
    return v;
}

void far_question_take(
    struct far_question *q, unsigned server, struct slice name, struct slice value)
{
    struct far_asked *a;
    unsigned i;

    for (i = 0; i < q->n; i++) {
        a = &q->asked[(q->next + i) % q->n];
        if (a->name.server == server && far_name_is(&a->name, name.p, name.n))
            break;
    }
    if (i == q->n)
        return;
    q->next = (unsigned)(a - q->asked) + 1;
    a->is_found = true;
    if (a->is_result)
        buf_put(&a->value, value.p, value.n);
    else
        a->gen = far_number_of(value.p, value.n);
}

int far_new_generation(uint64_t *gen)
{
    if (getrandom(gen, sizeof *gen, 0) != sizeof *gen)
        return -1;
    *gen = *gen >> 1 | 1;
    return 0;
}

/* Whether the value is this key's, and of these generations; its result. */
static bool is_hit(const struct far_req *r, const struct far_asked *a, struct slice *result)
{
    struct far_head head;
    size_t ngens = r->deps.ncells + 1;
    size_t gens_bytes = ngens * sizeof r->deps.gen[0];
    const char *p = a->value.data;

    if (!a->is_found || a->value.len < sizeof head)
        return false;
    memcpy(&head, p, sizeof head);
    if (head.magic != MAGIC || head.ngens != ngens || head.key_len != r->key.bytes.n ||
        a->value.len < sizeof head + gens_bytes + head.key_len ||
        memcmp(p + sizeof head, r->deps.gen, gens_bytes) != 0 ||
        memcmp(p + sizeof head + gens_bytes, r->key.bytes.p, head.key_len) != 0)
        return false;
    *result = slice_of(p + sizeof head + gens_bytes + head.key_len,
        a->value.len - sizeof head - gens_bytes - head.key_len);
    return true;
}

static enum cache_far_found settle(const struct far_question *q, const struct far_look *l)
{
    struct far_req *r = l->req;
    const struct far_asked *value = &q->asked[l->at[l->n - 1]];
    struct far_head head;
    struct slice result;
    unsigned i;

    for (i = 0; i < l->n; i++) {
        const struct far_asked *a = &q->asked[l->at[i]];

        if (q->is_dead[a->name.server] || (i < l->n - 1 && a->gen == FAR_BARRED))
            return CACHE_FAR_DEAD;
        if (i < l->n - 1)
            r->deps.gen[i] = a->gen;
    }
    if (!is_hit(r, value, &result))
        return CACHE_FAR_MISS;
    memcpy(&head, value->value.data, sizeof head);
    r->took_us = head.took_us;
    buf_put(&r->result, result.p, result.n);
    return CACHE_FAR_HIT;
}

void far_question_settle(struct far_question *q, struct far_spec *spec)
{
    unsigned i;

    for (i = 0; i < q->nlooks; i++) {
        const struct far_look *l = &q->looks[i];
        struct cache_far_server *s = &spec->state->server[q->asked[l->at[l->n - 1]].name.server];

        l->req->found = settle(q, l);
        if (l->req->found != CACHE_FAR_DEAD)
            count(l->req->found == CACHE_FAR_HIT ? &s->hits : &s->misses);
    }
}

/* The place of what is asked for: `id` is its cell, or hash. */
static struct far_asked *add_asked(
    struct far_question *q, struct far_look *l, uint64_t id, bool is_result)
{
    unsigned i;

    for (i = 0; i < q->n; i++)
        if (q->asked[i].id == id && q->asked[i].is_result == is_result)
            break;
    l->at[l->n++] = i;
    if (i < q->n)
        return NULL;
    q->asked[q->n++] = (struct far_asked){.id = id, .is_result = is_result};
    return &q->asked[i];
}

static void add_cell(
    struct far_conn *c, struct far_question *q, struct far_look *l, cache_cell cell)
{
    struct far_asked *a = add_asked(q, l, cell, false);

    if (a != NULL)
        far_name_of_cell(c, cell, &a->name);
}

/* No cell. */
#define ALL 0

static void add_look(struct far_conn *c, struct far_question *q, struct far_req *r)
{
    struct far_look *l = &q->looks[q->nlooks++];
    struct far_asked *a;
    uint32_t i;

    *l = (struct far_look){.req = r};
    for (i = 0; i < r->deps.ncells; i++)
        add_cell(c, q, l, r->deps.cell[i]);
    a = add_asked(q, l, ALL, false);
    if (a != NULL)
        far_name_of_all(c, &a->name);
    add_cell(c, q, l, r->deps.watched);
    /* Another hash than that of the key's place, which others may have, too. */
    a = add_asked(q, l, hash_bytes(r->key.bytes.p, r->key.bytes.n, MAGIC), true);
    if (a != NULL)
        far_name_of_key(c, &r->key, &a->name);
}

bool far_question_make(
    struct far_question *q, struct far_conn *c, struct far_req *const *reqs, unsigned n)
{
    unsigned max = 0;
    unsigned i;

    *q = (struct far_question){0};
    for (i = 0; i < n; i++)
        max += reqs[i]->keeps ? 0 : reqs[i]->deps.ncells + 3;
    if (max == 0)
        return false;
    q->looks = mem_alloc(n * sizeof q->looks[0]);
    q->asked = mem_alloc(max * sizeof q->asked[0]);
    for (i = 0; i < n; i++)
        if (!reqs[i]->keeps)
            add_look(c, q, reqs[i]);
    return true;
}

void far_question_free(struct far_question *q)
{
    unsigned i;

    for (i = 0; i < q->n; i++)
        buf_free(&q->asked[i].value);
    mem_free(q->asked);
    mem_free(q->looks);
}

/* --- what is kept --- */

void far_value_put(struct buf *out, const struct far_req *r)
{
    struct far_head head = {MAGIC, (uint32_t)r->key.bytes.n, r->took_us, r->deps.ncells + 1};

    buf_put(out, &head, sizeof head);
    buf_put(out, r->deps.gen, head.ngens * sizeof r->deps.gen[0]);
    buf_put(out, r->key.bytes.p, r->key.bytes.n);
    buf_put(out, r->result.data, r->result.len);
}

/* Beyond a month memcached takes it for a point in time, which has 31 bits: a line with more of
 * them is refused, or dated back, and what follows a line that is refused is taken for commands. */
int64_t far_expires(const struct far_req *r)
{
    int64_t at = clock_wall_us() / CLOCK_US_PER_S + r->expire_s;

    if (r->expire_s <= 2592000)
        return r->expire_s;
    return at < INT32_MAX ? at : INT32_MAX;
}

void far_note_kept(struct far_spec *spec, unsigned server)
{
    count(&spec->state->server[server].kept);
}

void far_note_told(struct far_spec *spec, unsigned server)
{
    count(&spec->state->server[server].told);
}
