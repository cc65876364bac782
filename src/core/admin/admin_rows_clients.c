/* SPDX-License-Identifier: PostgreSQL
 * admin_rows_clients.c: rows of SHOW POOL_PROCESSES, POOL_POOLS, POOL_CLIENTS and POOL_QUEUE.
 * Runs in: worker, control, web. Read from the rows that the workers keep in shared memory; each is
 * copied at once and then looked at, so a row never mixes two clients. pgpool-II has one client per
 * process; how its columns map to workers with many clients is noted in doc/internals/compat.md. */
#include "config.h"

#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "admin_int.h"
#include "config/conf.h"
#include "config/pools_conf.h"
#include "ipc/proc.h"
#include "ipc/rows.h"

static const char *const client_state_texts[CLIENT_STATE_COUNT] = {
#define TEXT(sym, text, status) text,
    CLIENT_STATES(TEXT)
#undef TEXT
};

static const char *const client_status_texts[CLIENT_STATE_COUNT] = {
#define TEXT(sym, text, status) status,
    CLIENT_STATES(TEXT)
#undef TEXT
};

static const char *const link_status_texts[LINK_STATE_COUNT] = {
#define TEXT(sym, text, status) status,
    LINK_STATES(TEXT)
#undef TEXT
};

/* By enum conf_pool_mode. */
static const char *const pool_mode_texts[] = {[CONF_POOL_SESSION] = "session",
    [CONF_POOL_TRANSACTION] = "transaction",
    [CONF_POOL_STATEMENT] = "statement"};

static const char *const wait_reason_texts[WAIT_REASON_COUNT] = {
#define TEXT(sym, text) text,
    WAIT_REASONS(TEXT)
#undef TEXT
};

/* Text number `i`; a torn row may hold any number. */
static const char *text_of(const char *const *texts, unsigned n, unsigned i)
{
    return i < n ? texts[i] : "";
}

struct slice admin_field_text(const char *p, size_t size)
{
    return slice_of(p, strnlen(p, size));
}

/* Who has this name on another server is somebody else. */
bool admin_sees_statement(const struct admin_sources *src, struct slice user, struct slice database)
{
    const struct conf *conf = conf_of(src->gen);

    if (src->is_operator || user.n == 0 || !slice_eq(src->user, user))
        return src->is_operator;
    return slice_eq(src->database, database) ||
           pools_conf_find(conf, src->database, user)->target ==
               pools_conf_find(conf, database, user)->target;
}

void admin_put_statement(
    const struct admin_sources *src, const struct row_words *words, struct admin_rows *out)
{
    struct slice text = admin_field_text(words->statement, sizeof words->statement);

    if (text.n > 0 &&
        !admin_sees_statement(src, row_user(&words->names), row_database(&words->names)))
        admin_put_static(out, ADMIN_HIDDEN_STATEMENT);
    else
        admin_put(out, text);
}

/* --- walking the rows --- */

/* Copies the link that a client has; false when it has none any more. */
static bool link_of(
    const struct admin_sources *src, const struct client_row *client, struct link_row *out)
{
    const struct rows_header *rows = shm_get(src->shm, SHM_LINKS);

    return rows != NULL && link_row_copy(rows, client->link_row, out, NULL) &&
           out->state != LINK_STATE_FREE;
}

/* Copies the client that has link number `link`; false when none has. Both rows must say so: they
 * are written one after the other. */
static bool client_of(const struct admin_sources *src, int64_t link, const struct link_row *row,
    struct client_row *out)
{
    const struct rows_header *rows = shm_get(src->shm, SHM_CLIENTS);

    return rows != NULL && client_row_copy(rows, row->client_row, out, NULL) &&
           out->state != CLIENT_STATE_FREE && out->link_row == link;
}

static uint32_t nworkers(const struct admin_sources *src)
{
    const struct rows_header *rows = shm_get(src->shm, SHM_CLIENTS);

    return rows == NULL ? 0 : rows->nworkers;
}

void admin_worker_proc(const struct admin_sources *src, uint32_t ordinal, struct proc_row *out)
{
    int slot = src->first_worker_slot + (int)ordinal;

    memset(out, 0, sizeof *out);
    if (ordinal < nworkers(src) && slot < proc_nslots(src->shm))
        proc_row_copy(src->shm, slot, out);
}

/* Puts pool_pid, start_time and client_connection_count. */
static void put_worker(const struct admin_sources *src, uint32_t ordinal, struct admin_rows *out)
{
    const struct rows_header *rows = shm_get(src->shm, SHM_CLIENTS);
    struct proc_row proc;

    admin_worker_proc(src, ordinal, &proc);
    admin_put_int(out, proc.pid);
    admin_put_time(out, proc.start_time_us);
    admin_put_uint(out, rows == NULL ? 0 : atomic_load(&rows_worker(rows, ordinal)->served));
}

/* --- where a client comes from --- */

static void put_host(const struct client_row *client, struct admin_rows *out)
{
    char text[INET6_ADDRSTRLEN] = "[local]";

    if (client->addr_kind == ROW_ADDR_IPV4)
        inet_ntop(AF_INET, client->addr, text, sizeof text);
    else if (client->addr_kind == ROW_ADDR_IPV6)
        inet_ntop(AF_INET6, client->addr, text, sizeof text);
    admin_put_str(out, text);
}

static void put_port(const struct client_row *client, struct admin_rows *out)
{
    if (client->addr_kind == ROW_ADDR_LOCAL)
        admin_put_static(out, "");
    else
        admin_put_int(out, client->port);
}

/* --- SHOW POOL_PROCESSES --- */

/* How much a client's state says about its process: the busiest client speaks for the worker. */
static int busyness(const struct client_row *client)
{
    switch (client->state) {
    case CLIENT_STATE_ACTIVE:
    case CLIENT_STATE_WAITING:
        return 4;
    case CLIENT_STATE_IDLE_TX:
    case CLIENT_STATE_FAILED_TX:
        return 3;
    case CLIENT_STATE_LOGIN:
        return 2;
    default:
        return 1;
    }
}

static bool is_busier(const struct client_row *a, const struct client_row *b)
{
    if (b->state == CLIENT_STATE_FREE || busyness(a) != busyness(b))
        return b->state == CLIENT_STATE_FREE || busyness(a) > busyness(b);
    return a->state_since_us > b->state_since_us;
}

static void put_process(const struct admin_sources *src, uint32_t ordinal,
    const struct client_row *client, const struct row_names *names, struct admin_rows *out)
{
    struct link_row link;

    admin_row_begin(out);
    put_worker(src, ordinal, out);
    if (client->state == CLIENT_STATE_FREE) {
        admin_put_static(out, "");
        admin_put_static(out, "");
        admin_put_static(out, "");
        admin_put_static(out, "");
        admin_put_static(out, client_status_texts[CLIENT_STATE_FREE]);
        return;
    }
    admin_put(out, row_database(names));
    admin_put(out, row_user(names));
    if (link_of(src, client, &link)) {
        admin_put_time(out, link.created_us);
        admin_put_uint(out, link.uses);
    } else {
        admin_put_static(out, "");
        admin_put_static(out, "");
    }
    admin_put_static(out, text_of(client_status_texts, CLIENT_STATE_COUNT, client->state));
}

void admin_rows_processes(const struct admin_sources *src, struct admin_rows *out)
{
    static const struct client_row nobody = {.state = CLIENT_STATE_FREE};
    struct client_row busiest;
    struct client_row client;
    struct row_words words;
    struct row_names names;
    struct proc_row proc;
    struct admin_walk w;
    uint32_t i;

    for (i = 0; i < nworkers(src); i++) {
        admin_worker_proc(src, i, &proc);
        if (proc.pid == 0)
            continue;
        busiest = nobody;
        admin_walk_start_worker(&w, src, i);
        while (admin_walk_client(&w, &client, &words)) {
            if (!is_busier(&client, &busiest))
                continue;
            busiest = client;
            names = words.names;
        }
        put_process(src, i, &busiest, &names, out);
    }
}

/* --- SHOW POOL_POOLS --- */

static void put_idle_duration(
    const struct admin_sources *src, const struct client_row *client, struct admin_rows *out)
{
    int64_t limit_s = conf_of(src->gen)->client_idle_limit_ms / 1000;
    int64_t idle_s = 0;
    int64_t left_s;
    char *text;

    if (client->state == CLIENT_STATE_IDLE || client->state == CLIENT_STATE_IDLE_TX ||
        client->state == CLIENT_STATE_FAILED_TX)
        idle_s = (src->now_us - client->state_since_us) / 1000000;
    if (idle_s < 0)
        idle_s = 0;
    if (limit_s <= 0) {
        admin_put_int(out, idle_s);
        return;
    }
    left_s = limit_s > idle_s ? limit_s - idle_s : 0;
    text = arena_printf(out->res->arena, "%lld (%lld:%02lld before client disconnected)",
        (long long)idle_s, (long long)(left_s / 60), (long long)(left_s % 60));
    admin_put_str(out, text == NULL ? "" : text);
}

/* The columns from client_connection_time to client_idle_duration. */
static void put_pool_times(const struct admin_sources *src, const struct link_row *link,
    const struct client_row *client, struct admin_rows *out)
{
    if (client == NULL) {
        admin_put_time(out, link->acquired_us);
        admin_put_time(out, link->released_us);
        admin_put_static(out, "0");
        return;
    }
    admin_put_time(out, client->connected_us);
    admin_put_static(out, "");
    put_idle_duration(src, client, out);
}

/* The columns from pool_connected to client_port. */
static void put_pool_client(
    const struct link_row *link, const struct client_row *client, struct admin_rows *out)
{
    if (client == NULL) {
        admin_put_static(out, "0");
        admin_put_static(out, text_of(link_status_texts, LINK_STATE_COUNT, link->state));
        admin_put_static(out, "0");
        admin_put_static(out, "");
        admin_put_static(out, "");
        return;
    }
    admin_put_static(out, "1");
    admin_put_static(out, text_of(client_status_texts, CLIENT_STATE_COUNT, client->state));
    admin_put_static(out, client->balance_node == link->node ? "1" : "0");
    put_host(client, out);
    put_port(client, out);
}

static void put_pool(const struct admin_sources *src, int64_t index, uint32_t worker,
    const struct link_row *link, const struct row_words *words, struct admin_rows *out)
{
    const struct rows_header *rows = shm_get(src->shm, SHM_LINKS);
    struct client_row row;
    struct client_row *client = client_of(src, index, link, &row) ? &row : NULL;

    admin_row_begin(out);
    put_worker(src, worker, out);
    admin_put_int(out, index - rows_worker(rows, worker)->first);
    admin_put_int(out, link->node);
    admin_put(out, row_database(&words->names));
    admin_put(out, row_user(&words->names));
    admin_put_time(out, link->created_us);
    put_pool_times(src, link, client, out);
    admin_put_uint(out, link->protocol >> 16);
    admin_put_uint(out, link->protocol & 0xFFFF);
    admin_put_uint(out, link->uses);
    admin_put_int(out, link->server_pid);
    put_pool_client(link, client, out);
    admin_put_statement(src, words, out);
}

void admin_rows_pools(const struct admin_sources *src, struct admin_rows *out)
{
    struct row_words words;
    struct link_row link;
    struct admin_walk w;
    int64_t i;

    admin_walk_start(&w, src, SHM_LINKS);
    while ((i = admin_walk_link(&w, &link, &words)) >= 0)
        put_pool(src, i, w.worker, &link, &words, out);
}

/* --- SHOW POOL_CLIENTS --- */

static int64_t waiting_ms(const struct admin_sources *src, const struct client_row *client)
{
    int64_t us = src->now_us - client->state_since_us;

    return client->state == CLIENT_STATE_WAITING && us > 0 ? us / 1000 : 0;
}

void admin_put_optional_int(struct admin_rows *out, bool is_there, int64_t v)
{
    if (is_there)
        admin_put_int(out, v);
    else
        admin_put_static(out, "");
}

const char *admin_pool_mode_text(unsigned mode)
{
    return text_of(pool_mode_texts, 3, mode);
}

const char *admin_tls_version_text(unsigned version)
{
    static const char *const versions[] = {"TLSv1", "TLSv1.1", "TLSv1.2", "TLSv1.3"};

    return version >= 10 && version <= 13 ? versions[version - 10] : "";
}

/* Version and cipher suite. */
static void put_tls(const struct client_row *c, struct admin_rows *out)
{
    static const struct {
        unsigned number;
        const char *name;
    } ciphers[] = {
#define CIPHER(number, name) {number, name},
#include "admin_ciphers.def"
#undef CIPHER
    };
    const char *cipher = c->tls_cipher == 0 ? "" : "another";
    size_t i;

    for (i = 0; i < sizeof ciphers / sizeof ciphers[0]; i++)
        if (ciphers[i].number == c->tls_cipher)
            cipher = ciphers[i].name;
    admin_put_static(out, admin_tls_version_text(c->tls_version));
    admin_put_static(out, cipher);
    admin_put_kernel(out, c->tls_kernel);
}

/* The statement of a session is in the row of its link: not any more when that has another client,
 * or went to one whose user is another. */
static void find_statement(const struct admin_sources *src, int64_t index,
    const struct client_row *c, struct row_words *words)
{
    const struct rows_header *rows = shm_get(src->shm, SHM_LINKS);
    struct row_words of_link;
    struct link_row link;

    if (c->statement != ROW_STATEMENT_LINK || rows == NULL ||
        !link_row_copy(rows, c->link_row, &link, &of_link) || link.state == LINK_STATE_FREE ||
        link.client_row != index || !slice_eq(row_user(&of_link.names), row_user(&words->names)))
        return;
    rows_set_text(words->statement, ROWS_CLIENT_STATEMENT_BYTES, of_link.statement,
        strnlen(of_link.statement, sizeof of_link.statement));
}

void admin_rows_clients(const struct admin_sources *src, struct admin_rows *out)
{
    struct row_words words;
    struct client_row c;
    struct proc_row proc;
    struct admin_walk w;

    admin_walk_start(&w, src, SHM_CLIENTS);
    while (admin_walk_client(&w, &c, &words)) {
        find_statement(src, (int64_t)rows_worker(w.rows, w.worker)->first + w.i - 1, &c, &words);
        admin_worker_proc(src, w.worker, &proc);
        admin_row_begin(out);
        admin_put_uint(out, c.id);
        admin_put_int(out, proc.pid);
        admin_put(out, row_user(&words.names));
        admin_put(out, row_database(&words.names));
        admin_put(out, row_application(&words.names));
        put_host(&c, out);
        put_port(&c, out);
        admin_put_static(out, text_of(client_state_texts, CLIENT_STATE_COUNT, c.state));
        admin_put_optional_int(out, c.node != ROWS_NO_NODE, c.node);
        admin_put_optional_int(out, c.server_pid != 0, c.server_pid);
        admin_put_time(out, c.connected_us);
        admin_put_time(out, c.query_start_us);
        admin_put_int(out, waiting_ms(src, &c));
        admin_put_static(out, c.pins != 0 ? "true" : "false");
        admin_put_pins(out, c.pins);
        admin_put_statement(src, &words, out);
        admin_put_static(out, admin_pool_mode_text(c.pool_mode));
        put_tls(&c, out);
        admin_put_static(out, c.lacks_login ? "nothing is known to log in to a standby with" : "");
    }
}

/* --- SHOW POOL_QUEUE --- */

/* What one waiting client waits for, and how long. */
struct waiter {
    struct slice database;
    struct slice user;
    int node;
    unsigned reason;
    int64_t ms;
};

static int compare_slices(struct slice a, struct slice b)
{
    size_t n = a.n < b.n ? a.n : b.n;
    int c = n == 0 ? 0 : memcmp(a.p, b.p, n);

    return c != 0 ? c : (a.n > b.n) - (a.n < b.n);
}

static int compare_waiters(const void *pa, const void *pb)
{
    const struct waiter *a = pa;
    const struct waiter *b = pb;
    int c = compare_slices(a->database, b->database);

    if (c == 0)
        c = compare_slices(a->user, b->user);
    if (c == 0)
        c = (a->node > b->node) - (a->node < b->node);
    if (c == 0)
        c = (a->reason > b->reason) - (a->reason < b->reason);
    return c;
}

static struct slice copy_slice(struct arena *a, struct slice s)
{
    return slice_of(arena_strndup(a, s.p, s.n), s.n);
}

/* Notes all waiting clients in the arena. Returns how many; *list is NULL when memory ran out. */
static uint32_t collect_waiters(
    const struct admin_sources *src, struct arena *a, struct waiter **list)
{
    const struct rows_header *rows = shm_get(src->shm, SHM_CLIENTS);
    struct client_row client;
    struct row_words words;
    struct waiter *waiter;
    struct admin_walk w;
    uint32_t n = 0;

    *list = arena_alloc(a, ((rows == NULL ? 0 : rows->capacity) + 1) * sizeof **list);
    admin_walk_start(&w, src, SHM_CLIENTS);
    while (*list != NULL && admin_walk_client(&w, &client, &words)) {
        if (client.state != CLIENT_STATE_WAITING)
            continue;
        waiter = &(*list)[n++];
        waiter->database = copy_slice(a, row_database(&words.names));
        waiter->user = copy_slice(a, row_user(&words.names));
        waiter->node = client.node;
        waiter->reason = client.wait_reason;
        waiter->ms = waiting_ms(src, &client);
        if (waiter->database.p == NULL || waiter->user.p == NULL)
            *list = NULL;
    }
    return n;
}

static void put_queue(
    const struct waiter *w, uint32_t n, int64_t longest_ms, struct admin_rows *out)
{
    admin_row_begin(out);
    admin_put(out, w->database);
    admin_put(out, w->user);
    admin_put_optional_int(out, w->node != ROWS_NO_NODE, w->node);
    admin_put_uint(out, n);
    admin_put_int(out, longest_ms);
    admin_put_static(out, text_of(wait_reason_texts, WAIT_REASON_COUNT, w->reason));
}

void admin_rows_queue(const struct admin_sources *src, struct admin_rows *out)
{
    struct waiter *list;
    uint32_t n = collect_waiters(src, out->res->arena, &list);
    uint32_t first = 0;
    uint32_t i;
    int64_t longest_ms = 0;

    if (list == NULL) {
        out->full = true;
        return;
    }
    qsort(list, n, sizeof *list, compare_waiters);
    for (i = 0; i < n; i++) {
        if (list[i].ms > longest_ms)
            longest_ms = list[i].ms;
        if (i + 1 < n && compare_waiters(&list[first], &list[i + 1]) == 0)
            continue;
        put_queue(&list[first], i + 1 - first, longest_ms, out);
        first = i + 1;
        longest_ms = 0;
    }
}
