/* SPDX-License-Identifier: PostgreSQL
 * qcache_rules.c: the lists of the settings about what may be kept, compiled, and the built-in
 * functions that are stable for their dependence on settings alone. Runs in: workers. */
#include "config.h"

#include <regex.h>
#include <string.h>

#include "base/err.h"
#include "base/mem.h"
#include "cache/cache_expire.h"
#include "config/conf.h"
#include "config/conf_pattern.h"
#include "qcache/qcache.h"

struct patterns {
    regex_t *re;
    int n;
};

struct qcache_rules {
    struct patterns safe;
    struct patterns unsafe;
    struct patterns functions;
    struct cache_expire *expire;
};

/* What they return depends on their arguments and on settings (TimeZone, DateStyle, ...), which are
 * part of each key. */
static const char *const safe_functions[] = {"array_to_json", "array_to_string", "concat",
    "concat_ws", "date", "date_add", "date_part", "date_subtract", "date_trunc", "extract",
    "format", "generate_series", "json_agg", "json_build_array", "json_build_object",
    "json_object_agg", "json_populate_record", "json_populate_recordset", "json_to_record",
    "json_to_recordset", "jsonb_agg", "jsonb_build_array", "jsonb_build_object", "jsonb_object_agg",
    "jsonb_populate_record", "jsonb_populate_recordset", "jsonb_to_record", "jsonb_to_recordset",
    "make_timestamptz", "plainto_tsquery", "phraseto_tsquery", "quote_literal", "quote_nullable",
    "row_to_json", "time", "timestamp", "timestamptz", "timezone", "to_char", "to_date", "to_json",
    "to_jsonb", "to_number", "to_timestamp", "to_tsquery", "to_tsvector", "ts_headline",
    "websearch_to_tsquery"};

/* Immutable by the catalogue, and not so: they tell of the catalogue, or make names of roles. */
static const char *const odd_functions[] = {"acldefault", "aclinsert", "aclremove", "makeaclitem",
    "pg_partition_root", "pg_walfile_name", "pg_walfile_name_offset"};

/* No result depends on these. */
static const char *const without_effect[] = {"application_name", "statement_timeout",
    "lock_timeout", "idle_in_transaction_session_timeout", "idle_session_timeout",
    "transaction_timeout", "client_min_messages", "synchronous_commit", "tcp_keepalives_idle",
    "tcp_keepalives_interval", "tcp_keepalives_count", "log_statement",
    "log_min_duration_statement"};

bool qcache_setting_matters(struct slice name)
{
    size_t i;

    for (i = 0; i < sizeof without_effect / sizeof without_effect[0]; i++)
        if (slice_eq_str(name, without_effect[i]))
            return false;
    return true;
}

/* A host of this name is another one for another machine. */
static bool is_of_this_machine(const char *host)
{
    return host[0] == '\0' || host[0] == '/' || strncmp(host, "127.", 4) == 0 ||
           strcmp(host, "localhost") == 0 || strcmp(host, "::1") == 0;
}

bool qcache_put_address(struct buf *key, const char *machine, const char *host, int port)
{
    bool is_here = is_of_this_machine(host);

    if (is_here && machine[0] == '\0')
        return false;
    buf_put_cstr(key, is_here ? machine : "");
    buf_put(key, host, strlen(host) + 1);
    buf_put(key, &port, sizeof port);
    return true;
}

static bool match(const struct patterns *p, struct slice text)
{
    char name[2 * 64 + 1];
    int i;

    if (p->n == 0 || text.n >= sizeof name)
        return false;
    memcpy(name, text.p, text.n);
    name[text.n] = '\0';
    for (i = 0; i < p->n; i++)
        if (regexec(&p->re[i], name, 0, NULL, 0) == 0)
            return true;
    return false;
}

/* schema.name, or the name alone. */
static bool match_table(const struct patterns *p, struct slice name)
{
    const char *dot = memchr(name.p, '.', name.n);

    return match(p, name) ||
           (dot != NULL && match(p, slice_of(dot + 1, (size_t)(name.p + name.n - dot - 1))));
}

static int compile(
    struct patterns *p, const struct conf_list *list, const char *setting, struct err *err)
{
    struct err why;
    int i;

    if (list->n == 0)
        return 0;
    p->re = mem_alloc_zero((size_t)list->n * sizeof p->re[0]);
    for (i = 0; i < list->n; i++) {
        err_clear(&why);
        if (conf_pattern_compile(&p->re[i], slice_of_str(list->item[i]), &why) == -1) {
            err_set(err, "22023", "%s: %s", setting, why.msg);
            return -1;
        }
        p->n++;
    }
    return 0;
}

struct qcache_rules *qcache_rules_new(const struct conf *conf, struct err *err)
{
    struct qcache_rules *r = mem_alloc_zero(sizeof *r);

    if (compile(&r->safe, &conf->cache_safe_memqcache_table_list, "cache_safe_memqcache_table_list",
            err) == -1 ||
        compile(&r->unsafe, &conf->cache_unsafe_memqcache_table_list,
            "cache_unsafe_memqcache_table_list", err) == -1 ||
        compile(&r->functions, &conf->memqcache_safe_function_list, "memqcache_safe_function_list",
            err) == -1 ||
        (r->expire = cache_expire_new(conf, err)) == NULL)
        qcache_rules_free(&r);
    return r;
}

static void patterns_free(struct patterns *p)
{
    while (p->n > 0)
        regfree(&p->re[--p->n]);
    mem_free(p->re);
}

void qcache_rules_free(struct qcache_rules **rp)
{
    struct qcache_rules *r = *rp;

    *rp = NULL;
    if (r == NULL)
        return;
    patterns_free(&r->safe);
    patterns_free(&r->unsafe);
    patterns_free(&r->functions);
    cache_expire_free(&r->expire);
    mem_free(r);
}

bool qcache_rules_table_is_safe(const struct qcache_rules *r, struct slice name)
{
    return match_table(&r->safe, name);
}

bool qcache_rules_table_is_unsafe(const struct qcache_rules *r, struct slice name)
{
    return match_table(&r->unsafe, name);
}

int64_t qcache_rules_expire_s(const struct qcache_rules *r, struct slice name)
{
    return cache_expire_of(r->expire, &name, 1);
}

static bool is_one_of(struct slice name, const char *const *list, size_t n)
{
    size_t i;

    for (i = 0; i < n; i++)
        if (slice_eq_str(name, list[i]))
            return true;
    return false;
}

#define IS_ONE_OF(name, list) is_one_of(name, list, sizeof(list) / sizeof(list)[0])

bool qcache_rules_function_is_safe(
    const struct qcache_rules *r, struct slice name, bool is_immutable, bool is_of_user)
{
    if (is_immutable ? !IS_ONE_OF(name, odd_functions)
                     : !is_of_user && IS_ONE_OF(name, safe_functions))
        return true;
    return match(&r->functions, name);
}
