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

#include "base/mem.h"
#include "sys/clock.h"

#include "cache_far_int.h"

/* A generation that a writer has set lives so long, and the next is another one: should the writer
 * die behind the word that he is about to commit, what was kept in between goes with it. */
#define WRITTEN_S 60
/* A bar, unless it is put up again. */
#define BARRED_S 5
/* libmemcached rounds up what it takes. */
#define ROOM 2

struct far_conn {
    struct far_spec *spec;
    memcached_st *mc;
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

/* libmemcached takes as much for a value as the server says that it has, up to 2 GB: more than any
 * value needs it does not get, and gives the connection up. */

static void *get_bytes(const memcached_st *mc, const size_t n, void *ctx)
{
    const struct far_spec *spec = ctx;

    (void)mc;
    return n > ROOM * spec->value_max ? NULL : mem_alloc(n);
}

static void *resize_bytes(const memcached_st *mc, void *p, const size_t n, void *ctx)
{
    const struct far_spec *spec = ctx;

    (void)mc;
    return n > ROOM * spec->value_max ? NULL : mem_resize(p, n);
}

static void *get_zeros(const memcached_st *mc, size_t n, const size_t size, void *ctx)
{
    void *p = size != 0 && n > SIZE_MAX / size ? NULL : get_bytes(mc, n * size, ctx);

    return p == NULL ? NULL : memset(p, 0, n * size);
}

static void free_bytes(const memcached_st *mc, void *p, void *ctx)
{
    (void)mc;
    (void)ctx;
    mem_free(p);
}

struct far_conn *far_conn_new(struct far_spec *spec, struct err *err)
{
    struct far_conn *c = mem_alloc_zero(sizeof *c);

    c->mc = memcached_create(NULL);
    if (c->mc != NULL)
        (void)memcached_set_memory_allocators(
            c->mc, get_bytes, free_bytes, resize_bytes, get_zeros, spec);
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
    return far_server_is_down(c->spec, server);
}

static void failed(struct far_conn *c, unsigned server, int64_t begun_us)
{
    far_server_failed(c->spec, server, begun_us);
    /* What is left on the wire of this one belongs to nobody any more. */
    memcached_quit(c->mc);
}

/* The server was started anew since it was asked last: that is noticed at once. */
static bool may_try_again(struct far_conn *c, int64_t begun_us)
{
    memcached_quit(c->mc);
    return clock_mono_us() - begun_us < c->spec->timeout_ms * CLOCK_US_PER_MS / 2;
}

unsigned far_conn_server(struct far_conn *c, const char *name, size_t len)
{
    uint32_t server = c->spec->state->nservers == 1 ? 0 : memcached_generate_hash(c->mc, name, len);

    return server < c->spec->state->nservers ? server : 0;
}

/* What is sent from here on is not answered, or is again. With SASL everything is: an error would
 * be taken for the answer to what comes behind it. */
static void answers(struct far_conn *c, bool are_wanted)
{
    if (c->spec->user[0] == '\0')
        (void)memcached_behavior_set(c->mc, MEMCACHED_BEHAVIOR_NOREPLY, are_wanted ? 0 : 1);
}

static void take_answer(struct far_question *q, unsigned server, const memcached_result_st *r)
{
    far_question_take(q, server,
        slice_of(memcached_result_key_value(r), memcached_result_key_length(r)),
        slice_of(memcached_result_value(r), memcached_result_length(r)));
}

/* One attempt to get these names from a server. */
static int fetch(struct far_conn *c, struct far_question *q, unsigned server,
    const char *const *keys, const size_t *lens, size_t n)
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
    struct far_conn *c, struct far_question *q, unsigned server, const char **keys, size_t *lens)
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
    far_server_answered(c->spec, server);
    return 0;
}

/* A generation that is not there begins anywhere but where it was. Should another have begun it in
 * this moment, what is kept under this one is of no use, and does no harm. */
static void begin_generation(struct far_conn *c, struct far_question *q, struct far_asked *a)
{
    int64_t begun_us = clock_mono_us();
    char text[24];
    memcached_return_t rc;
    size_t len;

    if (far_new_generation(&a->gen) == -1) {
        a->gen = FAR_BARRED;
        return;
    }
    len = (size_t)snprintf(text, sizeof text, "%llu", (unsigned long long)a->gen);
    rc = memcached_add(c->mc, a->name.text, a->name.len, text, len, 0, 0);
    if (rc == MEMCACHED_SUCCESS || rc == MEMCACHED_NOTSTORED || rc == MEMCACHED_DATA_EXISTS)
        return;
    q->is_dead[a->name.server] = true;
    failed(c, a->name.server, begun_us);
}

static void look_up(struct far_conn *c, struct far_question *q)
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
    far_question_settle(q, c->spec);
    mem_free(keys);
    mem_free(lens);
}

/* --- what is kept --- */

static void keep(struct far_conn *c, const struct far_req *r)
{
    int64_t begun_us = clock_mono_us();
    struct buf b = {0};
    struct far_name name;
    memcached_return_t rc;

    far_name_of_key(c, &r->key, &name);
    if (is_down(c, name.server))
        return;
    far_value_put(&b, r);
    rc = memcached_set(c->mc, name.text, name.len, b.data, b.len, (time_t)far_expires(r), 0);
    if (rc != MEMCACHED_SUCCESS && rc != MEMCACHED_E2BIG && rc != MEMCACHED_SERVER_ERROR &&
        rc != MEMCACHED_SERVER_MEMORY_ALLOCATION_FAILURE)
        failed(c, name.server, begun_us);
    else if (rc == MEMCACHED_SUCCESS)
        far_note_kept(c->spec, name.server);
    buf_free(&b);
}

void far_conn_run(struct far_conn *c, struct far_req *const *reqs, unsigned n)
{
    struct far_question q;
    unsigned i;

    answers(c, false);
    for (i = 0; i < n; i++)
        if (reqs[i]->keeps)
            keep(c, reqs[i]);
    answers(c, true);
    if (!far_question_make(&q, c, reqs, n))
        return;
    look_up(c, &q);
    far_question_free(&q);
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
    far_server_answered(c->spec, name->server);
    far_note_told(c->spec, name->server);
    return true;
}

static bool bump_one(struct far_conn *c, const struct far_name *name)
{
    uint64_t gen;

    return far_new_generation(&gen) == 0 && set_one(c, name, gen, WRITTEN_S);
}

bool far_conn_bar(struct far_conn *c, cache_cell cell)
{
    struct far_name name;

    far_name_of_cell(c, cell, &name);
    return set_one(c, &name, FAR_BARRED, BARRED_S);
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
    if (far_new_generation(&b->gen) == 0 && !is_down(c, b->name.server))
        (void)set_generation(c, &b->name, b->gen, WRITTEN_S);
}

static void note_there(struct bump *const *b, size_t n, const memcached_result_st *r)
{
    const char *key = memcached_result_key_value(r);
    size_t len = memcached_result_key_length(r);
    size_t i;

    for (i = 0; i < n; i++)
        if (far_name_is(&b[i]->name, key, len))
            b[i]->is_there =
                far_number_of(memcached_result_value(r), memcached_result_length(r)) == b[i]->gen;
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
        far_name_of_cell(c, cells[i], &bumps[i].name);
        send_bump(c, &bumps[i]);
    }
    answers(c, true);
    for (server = 0; server < c->spec->state->nservers; server++)
        check_server(c, bumps, n, server);
    for (i = 0; i < n; i++) {
        if (bumps[i].is_there) {
            far_server_answered(c->spec, bumps[i].name.server);
            far_note_told(c->spec, bumps[i].name.server);
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
        far_name_of_all(c, &name);
        return bump_one(c, &name);
    }
    if (n > 1 && c->spec->user[0] == '\0')
        return bump_many(c, cells, n);
    for (i = 0; i < n; i++) {
        far_name_of_cell(c, cells[i], &name);
        is_done = bump_one(c, &name) && is_done;
    }
    return is_done;
}
