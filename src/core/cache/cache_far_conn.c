/* SPDX-License-Identifier: PostgreSQL
 * cache_far_conn.c: talking to memcached, by libmemcached.
 * Runs in: helper threads of workers; each call may block for memqcache_timeout. A server that does
 * not answer is left alone for a while, by all processes: the first who meets it pays, the others
 * do not. Keys stay with their server (consistent hashing over all of them, whoever answers): if
 * they moved, generations that are out of date would count again when it comes back. */
#include "config.h"

#include <libmemcached/memcached.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>

#include "base/hash.h"
#include "base/mem.h"
#include "sys/clock.h"

#include "cache_far_int.h"

#define MAGIC         UINT32_C(0x70676331)
#define KEY_BYTES     40
#define MIN_BACKOFF_S 1
#define MAX_BACKOFF_S 60
/* A generation that a writer has set lives so long, and the next is another one: should the writer
 * die behind the word that he is about to commit, what was kept in between goes with it. */
#define WRITTEN_S 60
/* A bar, unless it is put up again. */
#define BARRED_S 5
#define BARRED   UINT64_C(0)

struct far_conn {
    struct far_spec *spec;
    memcached_st *mc;
};

struct far_name {
    char text[KEY_BYTES];
    size_t len;
    unsigned server;
};

static int add_servers(memcached_st *mc, const struct far_spec *spec)
{
    unsigned i;

    for (i = 0; i < spec->state->nservers; i++) {
        const struct cache_far_server *s = &spec->state->server[i];
        memcached_return_t rc = s->port == 0
                                    ? memcached_server_add_unix_socket(mc, s->host)
                                    : memcached_server_add(mc, s->host, (in_port_t)s->port);

        if (rc != MEMCACHED_SUCCESS)
            return -1;
    }
    return 0;
}

static int set_up(memcached_st *mc, const struct far_spec *spec)
{
    uint64_t ms = (uint64_t)spec->timeout_ms;
    struct {
        memcached_behavior_t what;
        uint64_t value;
    } b[] = {{MEMCACHED_BEHAVIOR_DISTRIBUTION, MEMCACHED_DISTRIBUTION_CONSISTENT_KETAMA},
        {MEMCACHED_BEHAVIOR_TCP_NODELAY, 1}, {MEMCACHED_BEHAVIOR_NO_BLOCK, 1},
        {MEMCACHED_BEHAVIOR_CONNECT_TIMEOUT, ms}, {MEMCACHED_BEHAVIOR_POLL_TIMEOUT, ms},
        {MEMCACHED_BEHAVIOR_RETRY_TIMEOUT, 0}, {MEMCACHED_BEHAVIOR_DEAD_TIMEOUT, 0},
        {MEMCACHED_BEHAVIOR_SERVER_FAILURE_LIMIT, 1000000},
        {MEMCACHED_BEHAVIOR_REMOVE_FAILED_SERVERS, 0}};
    size_t i;

    if (spec->user[0] != '\0' &&
        (memcached_behavior_set(mc, MEMCACHED_BEHAVIOR_BINARY_PROTOCOL, 1) != MEMCACHED_SUCCESS ||
            memcached_set_sasl_auth_data(mc, spec->user, spec->password) != MEMCACHED_SUCCESS))
        return -1;
    for (i = 0; i < sizeof b / sizeof b[0]; i++)
        if (memcached_behavior_set(mc, b[i].what, b[i].value) != MEMCACHED_SUCCESS)
            return -1;
    return add_servers(mc, spec);
}

void far_spec_release(struct far_spec *spec)
{
    if (spec == NULL || atomic_fetch_sub(&spec->refs, 1) != 1)
        return;
    mem_free(spec->user);
    mem_free(spec->password);
    mem_free(spec);
}

struct far_conn *far_conn_new(struct far_spec *spec, struct err *err)
{
    struct far_conn *c = mem_alloc_zero(sizeof *c);

    c->mc = memcached_create(NULL);
    if (c->mc == NULL || set_up(c->mc, spec) == -1) {
        err_set(err, "22023", "memcached: %s",
            c->mc == NULL ? "out of memory" : memcached_last_error_message(c->mc));
        far_conn_free(&c);
        return NULL;
    }
    c->spec = spec;
    atomic_fetch_add(&spec->refs, 1);
    return c;
}

void far_conn_free(struct far_conn **cp)
{
    struct far_conn *c = *cp;

    if (c == NULL)
        return;
    if (c->mc != NULL)
        memcached_free(c->mc);
    far_spec_release(c->spec);
    mem_free(c);
    *cp = NULL;
}

/* --- servers that do not answer --- */

static bool is_down(const struct far_conn *c, unsigned server)
{
    return clock_mono_us() < atomic_load(&c->spec->state->server[server].down_until_us);
}

static void answered(struct far_conn *c, unsigned server)
{
    if (atomic_load_explicit(&c->spec->state->server[server].backoff_s, memory_order_relaxed) != 0)
        atomic_store(&c->spec->state->server[server].backoff_s, 0);
}

static struct cache_far_server *server_of(const struct far_conn *c, unsigned server)
{
    return &c->spec->state->server[server];
}

static void count(_Atomic uint64_t *counter)
{
    atomic_fetch_add_explicit(counter, 1, memory_order_relaxed);
}

static void failed(struct far_conn *c, unsigned server, int64_t begun_us)
{
    struct cache_far_server *s = server_of(c, server);
    bool is_late = clock_mono_us() - begun_us >= c->spec->timeout_ms * CLOCK_US_PER_MS;
    uint32_t wait_s = atomic_load(&s->backoff_s) * 2;

    if (wait_s < MIN_BACKOFF_S)
        wait_s = MIN_BACKOFF_S;
    if (wait_s > MAX_BACKOFF_S)
        wait_s = MAX_BACKOFF_S;
    atomic_store(&s->backoff_s, wait_s);
    atomic_store(&s->failed_at_us, clock_wall_us());
    count(is_late ? &s->timeouts : &s->errors);
    atomic_store(&s->down_until_us, clock_mono_us() + wait_s * CLOCK_US_PER_S);
    /* What is left on the wire of this one belongs to nobody any more. */
    memcached_quit(c->mc);
}

/* The server was started anew since it was asked last: that is noticed at once. */
static bool may_try_again(struct far_conn *c, int64_t begun_us)
{
    memcached_quit(c->mc);
    return clock_mono_us() - begun_us < c->spec->timeout_ms * CLOCK_US_PER_MS / 2;
}

/* --- names --- */

static void name_set(struct far_conn *c, struct far_name *name, int len)
{
    name->len = (size_t)len;
    name->server =
        c->spec->state->nservers == 1 ? 0 : memcached_generate_hash(c->mc, name->text, name->len);
    if (name->server >= c->spec->state->nservers)
        name->server = 0;
}

static void name_of_key(struct far_conn *c, const struct cache_key *key, struct far_name *name)
{
    name_set(c, name,
        snprintf(name->text, sizeof name->text, "r:%016llx%016llx", (unsigned long long)key->hash,
            (unsigned long long)hash_bytes(key->bytes.p, key->bytes.n, MAGIC)));
}

static void name_of_cell(struct far_conn *c, cache_cell cell, struct far_name *name)
{
    name_set(
        c, name, snprintf(name->text, sizeof name->text, "g:%016llx", (unsigned long long)cell));
}

static void name_of_all(struct far_conn *c, struct far_name *name)
{
    name_set(c, name, snprintf(name->text, sizeof name->text, "g:all"));
}

static bool is_name(const struct far_name *name, const char *text, size_t len)
{
    return name->len == len && memcmp(name->text, text, len) == 0;
}

/* What is sent from here on is not answered, or is again. With SASL everything is: an error would
 * be taken for the answer to what comes behind it. */
static void answers(struct far_conn *c, bool are_wanted)
{
    if (c->spec->user[0] == '\0')
        (void)memcached_behavior_set(c->mc, MEMCACHED_BEHAVIOR_NOREPLY, are_wanted ? 0 : 1);
}

/* --- questions --- */

/* A generation, or a result. */
struct asked {
    struct far_name name;
    uint64_t id;
    bool is_result;
    bool is_found;
    uint64_t gen;
    struct buf value;
};

/* A look-up: its generations, in the order of its deps, and the result behind them. */
struct look {
    struct far_req *req;
    unsigned n;
    unsigned at[CACHE_DEPS_MAX + 3]; /* in question.asked */
};

/* All look-ups of a batch; what several of them ask for is asked for once. */
struct question {
    struct look *looks;
    unsigned nlooks;
    struct asked *asked;
    unsigned n;
    unsigned next; /* answers come in the order of the questions */
    bool is_dead[CACHE_FAR_SERVERS];
};

static uint64_t number_of(const char *p, size_t n)
{
    uint64_t v = 0;
    size_t i;

    for (i = 0; i < n && p[i] >= '0' && p[i] <= '9'; i++)
        v = v * 10 + (uint64_t)(p[i] - '0');
    return v;
}

static void take_answer(struct question *q, unsigned server, const memcached_result_st *r)
{
    const char *key = memcached_result_key_value(r);
    size_t len = memcached_result_key_length(r);
    struct asked *a;
    unsigned i;

    for (i = 0; i < q->n; i++) {
        a = &q->asked[(q->next + i) % q->n];
        if (a->name.server == server && is_name(&a->name, key, len))
            break;
    }
    if (i == q->n)
        return;
    q->next = (unsigned)(a - q->asked) + 1;
    a->is_found = true;
    if (a->is_result)
        buf_put(&a->value, memcached_result_value(r), memcached_result_length(r));
    else
        a->gen = number_of(memcached_result_value(r), memcached_result_length(r));
}

/* One attempt to get these names from a server. */
static int fetch(struct far_conn *c, struct question *q, unsigned server, const char *const *keys,
    const size_t *lens, size_t n)
{
    memcached_result_st result;
    memcached_return_t rc = memcached_mget(c->mc, keys, lens, n);
    unsigned i;

    for (i = 0; i < q->n; i++)
        if (q->asked[i].name.server == server)
            buf_clear(&q->asked[i].value);
    q->next = 0;
    memcached_result_create(c->mc, &result);
    while (rc == MEMCACHED_SUCCESS && memcached_fetch_result(c->mc, &result, &rc) != NULL)
        take_answer(q, server, &result);
    memcached_result_free(&result);
    return rc == MEMCACHED_SUCCESS || rc == MEMCACHED_END || rc == MEMCACHED_NOTFOUND ? 0 : -1;
}

/* Asks one server for all that it has of it. `keys`, `lens`: room for that. */
static int ask(
    struct far_conn *c, struct question *q, unsigned server, const char **keys, size_t *lens)
{
    int64_t begun_us = clock_mono_us();
    size_t n = 0;
    unsigned i;

    for (i = 0; i < q->n; i++)
        if (q->asked[i].name.server == server) {
            keys[n] = q->asked[i].name.text;
            lens[n++] = q->asked[i].name.len;
        }
    if (n == 0)
        return 0;
    if (is_down(c, server))
        return -1;
    if (fetch(c, q, server, keys, lens, n) == -1 &&
        (!may_try_again(c, begun_us) || fetch(c, q, server, keys, lens, n) == -1)) {
        failed(c, server, begun_us);
        return -1;
    }
    answered(c, server);
    return 0;
}

/* One that never was, in all likelihood. */
static int new_generation(uint64_t *gen)
{
    if (getrandom(gen, sizeof *gen, 0) != sizeof *gen)
        return -1;
    *gen = *gen >> 1 | 1;
    return 0;
}

/* A generation that is not there begins anywhere but where it was. Should another have begun it in
 * this moment, what is kept under this one is of no use, and does no harm. */
static void begin_generation(struct far_conn *c, struct question *q, struct asked *a)
{
    int64_t begun_us = clock_mono_us();
    char text[24];
    memcached_return_t rc;
    size_t len;

    if (new_generation(&a->gen) == -1) {
        a->gen = BARRED;
        return;
    }
    len = (size_t)snprintf(text, sizeof text, "%llu", (unsigned long long)a->gen);
    rc = memcached_add(c->mc, a->name.text, a->name.len, text, len, 0, 0);
    if (rc == MEMCACHED_SUCCESS || rc == MEMCACHED_NOTSTORED || rc == MEMCACHED_DATA_EXISTS)
        return;
    q->is_dead[a->name.server] = true;
    failed(c, a->name.server, begun_us);
}

/* Whether the value is this key's, and of these generations; its result. */
static bool is_hit(const struct far_req *r, const struct asked *a, struct slice *result)
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

static enum cache_far_found settle(const struct question *q, const struct look *l)
{
    struct far_req *r = l->req;
    const struct asked *value = &q->asked[l->at[l->n - 1]];
    struct far_head head;
    struct slice result;
    unsigned i;

    for (i = 0; i < l->n; i++) {
        const struct asked *a = &q->asked[l->at[i]];

        if (q->is_dead[a->name.server] || (i < l->n - 1 && a->gen == BARRED))
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

static void count_found(struct cache_far_server *s, enum cache_far_found found)
{
    if (found != CACHE_FAR_DEAD)
        count(found == CACHE_FAR_HIT ? &s->hits : &s->misses);
}

/* The place of what is asked for: `id` is its cell, or hash. */
static struct asked *add_asked(struct question *q, struct look *l, uint64_t id, bool is_result)
{
    unsigned i;

    for (i = 0; i < q->n; i++)
        if (q->asked[i].id == id && q->asked[i].is_result == is_result)
            break;
    l->at[l->n++] = i;
    if (i < q->n)
        return NULL;
    q->asked[q->n++] = (struct asked){.id = id, .is_result = is_result};
    return &q->asked[i];
}

static void add_cell(struct far_conn *c, struct question *q, struct look *l, cache_cell cell)
{
    struct asked *a = add_asked(q, l, cell, false);

    if (a != NULL)
        name_of_cell(c, cell, &a->name);
}

/* No cell. */
#define ALL 0

static void add_look(struct far_conn *c, struct question *q, struct far_req *r)
{
    struct look *l = &q->looks[q->nlooks++];
    struct asked *a;
    uint32_t i;

    *l = (struct look){.req = r};
    for (i = 0; i < r->deps.ncells; i++)
        add_cell(c, q, l, r->deps.cell[i]);
    a = add_asked(q, l, ALL, false);
    if (a != NULL)
        name_of_all(c, &a->name);
    add_cell(c, q, l, r->deps.watched);
    /* Another hash than that of the key's place, which others may have, too. */
    a = add_asked(q, l, hash_bytes(r->key.bytes.p, r->key.bytes.n, MAGIC), true);
    if (a != NULL)
        name_of_key(c, &r->key, &a->name);
}

static void look_up(struct far_conn *c, struct question *q)
{
    const char **keys = mem_alloc(q->n * sizeof *keys);
    size_t *lens = mem_alloc(q->n * sizeof *lens);
    unsigned i;

    for (i = 0; i < c->spec->state->nservers; i++)
        q->is_dead[i] = ask(c, q, i, keys, lens) == -1;
    answers(c, false);
    for (i = 0; i < q->n; i++)
        if (!q->asked[i].is_found && !q->asked[i].is_result && !q->is_dead[q->asked[i].name.server])
            begin_generation(c, q, &q->asked[i]);
    answers(c, true);
    for (i = 0; i < q->nlooks; i++) {
        const struct look *l = &q->looks[i];

        l->req->found = settle(q, l);
        count_found(server_of(c, q->asked[l->at[l->n - 1]].name.server), l->req->found);
    }
    mem_free(keys);
    mem_free(lens);
}

/* --- what is kept --- */

static void keep(struct far_conn *c, const struct far_req *r)
{
    struct far_head head = {MAGIC, (uint32_t)r->key.bytes.n, r->took_us, r->deps.ncells + 1};
    int64_t begun_us = clock_mono_us();
    struct buf b = {0};
    struct far_name name;
    memcached_return_t rc;
    /* Beyond a month memcached takes it for a point in time. */
    int64_t expire =
        r->expire_s > 2592000 ? clock_wall_us() / CLOCK_US_PER_S + r->expire_s : r->expire_s;

    name_of_key(c, &r->key, &name);
    if (is_down(c, name.server))
        return;
    buf_put(&b, &head, sizeof head);
    buf_put(&b, r->deps.gen, head.ngens * sizeof r->deps.gen[0]);
    buf_put(&b, r->key.bytes.p, r->key.bytes.n);
    buf_put(&b, r->result.data, r->result.len);
    rc = memcached_set(c->mc, name.text, name.len, b.data, b.len, (time_t)expire, 0);
    if (rc != MEMCACHED_SUCCESS && rc != MEMCACHED_E2BIG && rc != MEMCACHED_SERVER_ERROR &&
        rc != MEMCACHED_SERVER_MEMORY_ALLOCATION_FAILURE)
        failed(c, name.server, begun_us);
    else if (rc == MEMCACHED_SUCCESS)
        count(&server_of(c, name.server)->kept);
    buf_free(&b);
}

void far_conn_run(struct far_conn *c, struct far_req *const *reqs, unsigned n)
{
    struct question q = {0};
    unsigned max = 0;
    unsigned i;

    answers(c, false);
    for (i = 0; i < n; i++) {
        if (reqs[i]->keeps)
            keep(c, reqs[i]);
        else
            max += reqs[i]->deps.ncells + 3;
    }
    answers(c, true);
    if (max == 0)
        return;
    q.looks = mem_alloc(n * sizeof q.looks[0]);
    q.asked = mem_alloc(max * sizeof q.asked[0]);
    for (i = 0; i < n; i++)
        if (!reqs[i]->keeps)
            add_look(c, &q, reqs[i]);
    look_up(c, &q);
    for (i = 0; i < q.n; i++)
        buf_free(&q.asked[i].value);
    mem_free(q.asked);
    mem_free(q.looks);
}

static bool set_generation(
    struct far_conn *c, const struct far_name *name, uint64_t gen, time_t for_s)
{
    char text[24];
    size_t len = (size_t)snprintf(text, sizeof text, "%llu", (unsigned long long)gen);

    return memcached_set(c->mc, name->text, name->len, text, len, for_s, 0) == MEMCACHED_SUCCESS;
}

static bool set_one(struct far_conn *c, const struct far_name *name, uint64_t gen, time_t for_s)
{
    int64_t begun_us = clock_mono_us();

    if (is_down(c, name->server))
        return false;
    if (!set_generation(c, name, gen, for_s) &&
        (!may_try_again(c, begun_us) || !set_generation(c, name, gen, for_s))) {
        failed(c, name->server, begun_us);
        return false;
    }
    answered(c, name->server);
    count(&server_of(c, name->server)->told);
    return true;
}

static bool bump_one(struct far_conn *c, const struct far_name *name)
{
    uint64_t gen;

    return new_generation(&gen) == 0 && set_one(c, name, gen, WRITTEN_S);
}

bool far_conn_bar(struct far_conn *c, cache_cell cell)
{
    struct far_name name;

    name_of_cell(c, cell, &name);
    return set_one(c, &name, BARRED, BARRED_S);
}

/* --- many at once --- */

/* Names in one question: what memcached takes in one line. */
#define CHECKED 64

struct bump {
    struct far_name name;
    uint64_t gen;
    bool is_there;
};

/* Sent, and no answer awaited. */
static void send_bump(struct far_conn *c, struct bump *b)
{
    if (new_generation(&b->gen) == 0 && !is_down(c, b->name.server))
        (void)set_generation(c, &b->name, b->gen, WRITTEN_S);
}

static void note_there(struct bump *const *b, size_t n, const memcached_result_st *r)
{
    const char *key = memcached_result_key_value(r);
    size_t len = memcached_result_key_length(r);
    size_t i;

    for (i = 0; i < n; i++)
        if (is_name(&b[i]->name, key, len))
            b[i]->is_there =
                number_of(memcached_result_value(r), memcached_result_length(r)) == b[i]->gen;
}

/* Which of these, of one server, are there. */
static void check_bumps(struct far_conn *c, struct bump *const *b, size_t n)
{
    const char *keys[CHECKED];
    size_t lens[CHECKED];
    memcached_result_st result;
    memcached_return_t rc;
    size_t i;

    for (i = 0; i < n; i++) {
        keys[i] = b[i]->name.text;
        lens[i] = b[i]->name.len;
    }
    rc = memcached_mget(c->mc, keys, lens, n);
    memcached_result_create(c->mc, &result);
    while (rc == MEMCACHED_SUCCESS && memcached_fetch_result(c->mc, &result, &rc) != NULL)
        note_there(b, n, &result);
    memcached_result_free(&result);
    if (rc != MEMCACHED_SUCCESS && rc != MEMCACHED_END && rc != MEMCACHED_NOTFOUND)
        memcached_quit(c->mc); /* each of them is set by itself */
}

static void check_server(struct far_conn *c, struct bump *bumps, size_t n, unsigned server)
{
    struct bump *these[CHECKED];
    size_t nthese = 0;
    size_t i;

    for (i = 0; i < n && !is_down(c, server); i++) {
        if (bumps[i].name.server == server)
            these[nthese++] = &bumps[i];
        if (nthese == CHECKED || (nthese > 0 && i == n - 1)) {
            check_bumps(c, these, nthese);
            nthese = 0;
        }
    }
}

/* Sent all at once, then looked at together; what is not there by then is set by itself. */
static bool bump_many(struct far_conn *c, const cache_cell *cells, size_t n)
{
    struct bump *bumps = mem_alloc_zero(n * sizeof *bumps);
    bool is_done = true;
    unsigned server;
    size_t i;

    answers(c, false);
    for (i = 0; i < n; i++) {
        name_of_cell(c, cells[i], &bumps[i].name);
        send_bump(c, &bumps[i]);
    }
    answers(c, true);
    for (server = 0; server < c->spec->state->nservers; server++)
        check_server(c, bumps, n, server);
    for (i = 0; i < n; i++) {
        if (bumps[i].is_there) {
            answered(c, bumps[i].name.server);
            count(&server_of(c, bumps[i].name.server)->told);
        } else {
            is_done = bump_one(c, &bumps[i].name) && is_done;
        }
    }
    mem_free(bumps);
    return is_done;
}

bool far_conn_bump(struct far_conn *c, const cache_cell *cells, size_t n)
{
    struct far_name name;
    bool is_done = true;
    size_t i;

    if (n == 0) {
        name_of_all(c, &name);
        return bump_one(c, &name);
    }
    if (n > 1 && c->spec->user[0] == '\0')
        return bump_many(c, cells, n);
    for (i = 0; i < n; i++) {
        name_of_cell(c, cells[i], &name);
        is_done = bump_one(c, &name) && is_done;
    }
    return is_done;
}
