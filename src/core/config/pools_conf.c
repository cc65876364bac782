/* SPDX-License-Identifier: PostgreSQL
 * pools_conf.c: finds what holds for a database and a user, and keeps pools.conf with its
 * generation.
 * Runs in: every process. The settings of a pair are made at the first question and remembered:
 * all pairs of sections would be too many, the pairs in use are few. */
#include "config.h"

#include "config/pools_conf.h"

#include "base/arena.h"
#include "base/assert.h"
#include "base/list.h"
#include "base/mem.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "pools_conf_int.h"

#define POOLS_CANONICAL_HEAD "\n#! pgpool pools "

#define POOLS_BOTH (POOLS_IN_DATABASE | POOLS_IN_USER)
#define POOLS_KEY(name, param, field, place)                                                       \
    {                                                                                              \
        name, param, offsetof(struct pool_settings, field), place                                  \
    }

/* The order does not matter, but pool_mode must be there when pool_size is resolved. */
static const struct pools_key pools_keys[] = {
    POOLS_KEY("pool_mode", "pool_mode", pool_mode, POOLS_BOTH),
    POOLS_KEY("pool_size", "default_pool_size", pool_size, POOLS_BOTH),
    POOLS_KEY("min_pool_size", "min_pool_size", min_pool_size, POOLS_BOTH),
    POOLS_KEY("reserve_pool_size", "reserve_pool_size", reserve_pool_size, POOLS_BOTH),
    POOLS_KEY("reserve_pool_timeout", "reserve_pool_timeout", reserve_pool_timeout_ms, POOLS_BOTH),
    POOLS_KEY("max_db_connections", "max_db_connections", max_db_connections, POOLS_IN_DATABASE),
    POOLS_KEY("max_user_connections", "max_user_connections", max_user_connections, POOLS_IN_USER),
    POOLS_KEY("max_db_client_connections", "max_db_client_connections", max_db_client_connections,
        POOLS_IN_DATABASE),
    POOLS_KEY("max_user_client_connections", "max_user_client_connections",
        max_user_client_connections, POOLS_IN_USER),
    POOLS_KEY("server_idle_timeout", "server_idle_timeout", server_idle_timeout_ms, POOLS_BOTH),
    POOLS_KEY("server_lifetime", "server_lifetime", server_lifetime_ms, POOLS_BOTH),
    POOLS_KEY("server_check_delay", "server_check_delay", server_check_delay_ms, POOLS_BOTH),
    POOLS_KEY("query_timeout", "query_timeout", query_timeout_ms, POOLS_BOTH),
    POOLS_KEY("query_wait_timeout", "query_wait_timeout", query_wait_timeout_ms, POOLS_BOTH),
    POOLS_KEY("query_wait_notify", "query_wait_notify", query_wait_notify_ms, POOLS_BOTH),
    POOLS_KEY("idle_transaction_timeout", "idle_transaction_timeout", idle_transaction_timeout_ms,
        POOLS_BOTH),
    POOLS_KEY("transaction_timeout", "transaction_timeout", transaction_timeout_ms, POOLS_BOTH),
};
_Static_assert(sizeof pools_keys / sizeof pools_keys[0] == POOLS_KEY_COUNT, "count of keys");

const struct pools_key *pools_key_table(void)
{
    return pools_keys;
}

/* ---- sections ---- */

uint64_t pools_section_hash(struct slice database, struct slice user, bool has_db, bool has_user)
{
    uint64_t h = has_db ? hash_bytes(database.p, database.n, 1) : 2;

    return has_user ? hash_bytes(user.p, user.n, h) : h;
}

struct section_key {
    struct slice database;
    struct slice user;
    bool has_db;
    bool has_user;
};

static int section_eq(const struct hash_node *node, const void *key)
{
    const struct pools_section *s = LIST_ENTRY(node, struct pools_section, node);
    const struct section_key *k = key;

    return (s->database != NULL) == k->has_db && (s->user != NULL) == k->has_user &&
           (!k->has_db || slice_eq_str(k->database, s->database)) &&
           (!k->has_user || slice_eq_str(k->user, s->user));
}

struct pools_section *pools_section_find(const struct pools_conf *pc, struct slice database,
    struct slice user, bool has_db, bool has_user)
{
    struct section_key k = {database, user, has_db, has_user};
    struct hash_node *n;

    if (pc->sections.count == 0)
        return NULL; /* the file has none, mostly: a login asks several times */
    n = hash_table_find(
        &pc->sections, pools_section_hash(database, user, has_db, has_user), section_eq, &k);
    return n == NULL ? NULL : LIST_ENTRY(n, struct pools_section, node);
}

/* The section of a name, or else the one of "*". */
static const struct pools_section *section_or_any(
    const struct pools_conf *pc, struct slice name, bool is_db)
{
    struct slice any = slice_of_str("*");
    const struct pools_section *s = pools_section_find(pc, name, name, is_db, !is_db);

    return s != NULL ? s : pools_section_find(pc, any, any, is_db, !is_db);
}

/* ---- settings of a pair ---- */

static int memo_eq(const struct hash_node *node, const void *key)
{
    const struct pools_memo *m = LIST_ENTRY(node, struct pools_memo, node);

    return memcmp(m->part, key, sizeof m->part) == 0;
}

/* Stores a value of pgpool.conf or of a section where `key` says. */
static void settings_put(
    struct pool_settings *st, const struct pools_key *key, enum conf_type type, const void *from)
{
    char *at = (char *)st + key->offset;

    if (type == CONF_TIME)
        memcpy(at, from, sizeof(int64_t));
    else if (type == CONF_INT)
        memcpy(at, from, sizeof(int));
    else
        memcpy(at, from, sizeof(enum conf_pool_mode));
}

static void settings_common(struct pool_settings *st, const struct conf *conf)
{
    int i;

    for (i = 0; i < POOLS_KEY_COUNT; i++) {
        struct conf_ref ref = {conf_param_named(CONF_SCOPE_GLOBAL, pools_keys[i].param), -1};

        ASSERT(ref.param != NULL);
        settings_put(st, &pools_keys[i], ref.param->type, conf_value_of(conf, &ref));
    }
    st->client_idle_limit_ms = conf->client_idle_limit_ms;
    st->target = POOLS_NO_TARGET;
}

static void settings_take_text(const char **to, const char *from)
{
    if (from != NULL)
        *to = from;
}

static void settings_apply(struct pool_settings *st, const struct pools_section *s)
{
    int i;

    for (i = 0; i < POOLS_KEY_COUNT; i++) {
        const struct conf_param *p = conf_param_named(CONF_SCOPE_GLOBAL, pools_keys[i].param);

        if (s->value[i].is_set)
            settings_put(st, &pools_keys[i], p->type, &s->value[i].v);
    }
    if (s->target != POOLS_NO_TARGET)
        st->target = s->target;
    settings_take_text(&st->dbname, s->dbname);
    settings_take_text(&st->user, s->forced_user);
    settings_take_text(&st->auth_user, s->auth_user);
    settings_take_text(&st->auth_query, s->auth_query);
    settings_take_text(&st->auth_dbname, s->auth_dbname);
}

/* "Automatic" is no limit where every client needs a link of its own. What is kept open without
 * need is no more than may be open. */
static void settings_resolve(struct pool_settings *st)
{
    if (st->pool_size < 0)
        st->pool_size = st->pool_mode == CONF_POOL_SESSION ? 0 : POOLS_AUTO_SIZE;
    if (st->pool_size > 0 && st->min_pool_size > st->pool_size)
        st->min_pool_size = st->pool_size;
}

const struct pool_settings *pools_conf_find(
    const struct conf *conf, struct slice database, struct slice user)
{
    struct pools_conf *pc = conf->pools;
    const struct pools_section *part[3];
    struct pools_memo *memo;
    struct hash_node *n;
    uint64_t hash;
    int i;

    part[0] = section_or_any(pc, database, true);
    part[1] = section_or_any(pc, user, false);
    part[2] = pools_section_find(pc, database, user, true, true);
    hash = hash_bytes(part, sizeof part, 0);
    n = hash_table_find(&pc->memos, hash, memo_eq, part);
    if (n != NULL)
        return &LIST_ENTRY(n, struct pools_memo, node)->settings;
    memo = arena_alloc_zero(pc->arena, sizeof *memo);
    memcpy(memo->part, part, sizeof part);
    settings_common(&memo->settings, conf);
    for (i = 0; i < 3; i++)
        if (part[i] != NULL)
            settings_apply(&memo->settings, part[i]);
    settings_resolve(&memo->settings);
    hash_table_add(&pc->memos, &memo->node, hash);
    return &memo->settings;
}

static bool is_given(const char *here, const char *common)
{
    return (here != NULL && *here != '\0') || *common != '\0';
}

bool pools_conf_asks_itself(const struct conf *conf, const struct pool_settings *set)
{
    return is_given(set->auth_query, conf->auth_query) &&
           !is_given(set->auth_dbname, conf->auth_dbname);
}

const struct pools_target *pools_conf_target(const struct conf *conf, int node)
{
    int i = node - POOLS_FIRST_TARGET;

    if (i < 0 || i >= conf->pools->ntargets)
        return NULL;
    return &conf->pools->target[i];
}

bool pools_conf_address(
    const struct conf *conf, int node, const char **host, int *port, int64_t *connect_timeout_ms)
{
    const struct pools_target *t;

    if (node >= 0 && node < conf->nnodes) {
        *host = conf->nodes[node].backend_hostname;
        *port = conf->nodes[node].backend_port;
        *connect_timeout_ms = conf->nodes[node].connect_timeout_ms;
        return *port != 0;
    }
    t = pools_conf_target(conf, node);
    if (t == NULL)
        return false;
    *host = t->host;
    *port = t->port;
    *connect_timeout_ms = conf->connect_timeout_ms;
    return true;
}

void pools_conf_each_mapped(const struct conf *conf,
    void (*fn)(void *ctx, const char *database, const struct pool_settings *set), void *ctx)
{
    const struct hash_table *t = &conf->pools->sections;
    const struct pools_section *s;
    const struct hash_node *n;
    uint32_t i;

    for (i = 0; t->count > 0 && i <= t->mask; i++)
        for (n = t->bucket[i]; n != NULL; n = n->next) {
            s = LIST_ENTRY(n, struct pools_section, node);
            if (s->database != NULL && s->user == NULL && s->forced_user != NULL &&
                strcmp(s->database, "*") != 0)
                fn(ctx, s->database,
                    pools_conf_find(conf, slice_of_str(s->database), slice_of_str(s->forced_user)));
        }
}

bool pools_conf_has_database(const struct conf *conf, struct slice database)
{
    return pools_section_find(conf->pools, database, database, true, false) != NULL;
}

/* ---- with its generation ---- */

struct pools_conf *pools_conf_new(struct arena *arena)
{
    struct pools_conf *pc = arena_alloc_zero(arena, sizeof *pc);

    pc->arena = arena;
    pc->file = "";
    pc->text = "";
    hash_table_init(&pc->sections);
    hash_table_init(&pc->memos);
    return pc;
}

void pools_conf_fini(struct pools_conf *pc)
{
    if (pc == NULL)
        return;
    hash_table_fini(&pc->sections);
    hash_table_fini(&pc->memos);
}

/* A server keeps its number as long as this program runs: pools are known by it. */
static void pools_keep_targets(struct pools_conf *pc, const struct pools_conf *old)
{
    int i;

    for (i = 0; i < old->ntargets; i++) {
        pc->target[i].host = arena_strdup(pc->arena, old->target[i].host);
        pc->target[i].port = old->target[i].port;
        pc->target[i].ssl_mode = old->target[i].ssl_mode;
    }
    pc->ntargets = old->ntargets;
}

/* A check against nobody would let anybody be that server. */
static void check_tls(struct conf_reading *load)
{
    const struct conf *c = &load->gen->conf;
    const struct hash_table *t = &c->pools->sections;
    const struct pools_section *s;
    const struct hash_node *n;
    uint32_t i;

    if (c->ssl_ca_cert[0] != '\0' || c->ssl_ca_cert_dir[0] != '\0')
        return;
    for (i = 0; t->count > 0 && i <= t->mask; i++)
        for (n = t->bucket[i]; n != NULL; n = n->next) {
            s = LIST_ENTRY(n, struct pools_section, node);
            if (s->host != NULL && s->ssl_mode >= CONF_SSL_VERIFY_CA)
                conf_report_add(load->report, CONF_ERROR, c->pools->file, s->ssl_line,
                    "Set ssl_ca_cert in pgpool.conf.",
                    "backend_ssl_mode asks for a check against no certificate");
        }
}

void pools_conf_load(
    struct conf_reading *load, const struct conf *old, const char *file, bool must_exist)
{
    struct pools_conf *pc = load->gen->conf.pools;
    char path[4096];
    struct err err = {0};
    char *text = NULL;
    size_t n = 0;

    if (old != NULL && old->pools != NULL)
        pools_keep_targets(pc, old->pools);
    if (file[0] == '\0')
        return;
    if (conf_path(load->gen, file, path, sizeof path, &err) == -1) {
        conf_report_err(load->report, CONF_ERROR, load->gen->file, 0, &err);
        return;
    }
    if (access(path, F_OK) == -1 && errno == ENOENT && !must_exist) {
        if (old != NULL && old->pools != NULL && old->pools->sections.count > 0)
            conf_report_add(load->report, CONF_ERROR, path, 0,
                "Databases with a host of their own would be those of pgpool.conf: leave an empty "
                "file if that is meant.",
                "the file was there, and is no longer");
        return;
    }
    pc->file = arena_strdup(pc->arena, path);
    if (conf_read_whole(path, &text, &n, &err) == -1) {
        conf_report_err(load->report, CONF_ERROR, path, 0, &err);
        return;
    }
    pc->text = arena_strndup(pc->arena, text, n);
    pc->text_len = n;
    mem_free(text);
    pools_conf_parse(pc, pc->file, slice_of(pc->text, n), load->report);
    check_tls(load);
}

bool pools_conf_equal(const struct pools_conf *a, const struct pools_conf *b)
{
    return slice_eq(slice_of(a->text, a->text_len), slice_of(b->text, b->text_len));
}

/* ---- from process to process ---- */

void pools_conf_dump(const struct pools_conf *pc, struct buf *out)
{
    int i;

    buf_printf(out, "%s%d %s\n", POOLS_CANONICAL_HEAD, pc->ntargets, pc->file);
    for (i = 0; i < pc->ntargets; i++)
        buf_printf(
            out, "%d %d %s\n", pc->target[i].port, pc->target[i].ssl_mode, pc->target[i].host);
    buf_put(out, pc->text, pc->text_len);
}

/* Takes the line at *at, without its end. */
static struct slice take_line(struct slice *at)
{
    const char *eol = at->n == 0 ? NULL : memchr(at->p, '\n', at->n);
    struct slice line = slice_of(at->p, eol == NULL ? at->n : (size_t)(eol - at->p));
    size_t used = line.n + (eol == NULL ? 0 : 1);

    at->p += used;
    at->n -= used;
    return line;
}

struct slice pools_conf_split(struct slice *text)
{
    const size_t head = strlen(POOLS_CANONICAL_HEAD);
    struct slice rest = slice_of("", 0);
    const char *p = text->n < head ? NULL : memmem(text->p, text->n, POOLS_CANONICAL_HEAD, head);

    if (p == NULL)
        return rest;
    rest = slice_of(p + head, text->n - (size_t)(p + head - text->p));
    text->n = (size_t)(p + 1 - text->p);
    return rest;
}

void pools_conf_undump(struct pools_conf *pc, struct slice text, struct conf_report *report)
{
    struct slice line = take_line(&text);
    char *end;
    char *first = arena_strndup(pc->arena, line.p, line.n);
    long ntargets = strtol(first, &end, 10);
    long i;

    if (*end == ' ')
        pc->file = end + 1;
    for (i = 0; i < ntargets && i < POOLS_MAX_TARGETS; i++) {
        line = take_line(&text);
        first = arena_strndup(pc->arena, line.p, line.n);
        pc->target[i].port = (int)strtol(first, &end, 10);
        pc->target[i].ssl_mode = (int)strtol(end, &end, 10);
        pc->target[i].host = *end == ' ' ? end + 1 : "";
        pc->ntargets++;
    }
    pc->text = arena_strndup(pc->arena, text.p, text.n);
    pc->text_len = text.n;
    pools_conf_parse(pc, pc->file, slice_of(pc->text, pc->text_len), report);
}
