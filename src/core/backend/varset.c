/* SPDX-License-Identifier: PostgreSQL
 * varset.c: immutable sets of settings, interned. Sets are small (a handful of names), so they are
 * one sorted block of bytes, and every change makes a new one. */
#include "config.h"

#include "backend/varset.h"

#include <string.h>

#include "base/assert.h"
#include "base/hot.h"
#include "base/mem.h"

struct varset_key {
    const char *data;
    uint32_t len;
};

static int varset_eq(const struct hash_node *node, const void *key)
{
    const struct varset *v = (const struct varset *)node;
    const struct varset_key *k = key;

    return v->len == k->len && (k->len == 0 || memcmp(v->data, k->data, k->len) == 0);
}

/* One entry at *at; false at the end. */
static bool varset_next(
    const char *data, uint32_t len, uint32_t *at, struct slice *name, struct slice *sql)
{
    if (*at >= len)
        return false;
    *name = slice_of_str(data + *at);
    *sql = slice_of_str(data + *at + name->n + 1);
    *at += (uint32_t)(name->n + sql->n + 2);
    return true;
}

bool varset_is_identity(struct slice name)
{
    return slice_eq_str(name, "role") || slice_eq_str(name, "session_authorization");
}

/* Settings that plans of functions are made with, and that a server does not look at again. */
static const char *const readings[] = {"datestyle", "timezone", "intervalstyle",
    "timezone_abbreviations", "lc_monetary", "array_nulls", "bytea_output", "extra_float_digits",
    "transform_null_equals", "xmloption"};

bool varset_may_read(struct slice sql)
{
    const char *comma = sql.n == 0 ? NULL : memchr(sql.p, ',', sql.n);
    size_t i;

    if (comma != NULL)
        sql.n = (size_t)(comma - sql.p);
    if (slice_contains(sql, "\\") || (slice_contains(sql, "(") && !slice_contains(sql, "'")))
        return true; /* a letter may be hidden, or all of the name */
    for (i = 0; i < sizeof readings / sizeof readings[0]; i++)
        if (slice_contains(sql, readings[i]))
            return true;
    return false;
}

static bool is_reading(struct slice name)
{
    size_t i;

    for (i = 0; i < sizeof readings / sizeof readings[0]; i++)
        if (slice_eq_str(name, readings[i]))
            return true;
    return false;
}

/* Drivers ask for "ISO", which says how dates are written, not in which order they are read. */
static bool is_of_style(struct slice sql)
{
    static const char *const orders[] = {
        "dm", "md", "ymd", "us", "euro", "german", "default", "\\"};
    size_t i;

    for (i = 0; i < sizeof orders / sizeof orders[0]; i++)
        if (slice_contains(sql, orders[i]))
            return false;
    return true;
}

static uint32_t reads_hash(const char *data, uint32_t len)
{
    struct slice name;
    struct slice sql;
    uint32_t at = 0;
    uint64_t h = 0;

    while (varset_next(data, len, &at, &name, &sql))
        if (is_reading(name) && !(slice_eq_str(name, "datestyle") && is_of_style(sql)))
            h = hash_bytes(sql.p, sql.n, hash_bytes(name.p, name.n, h));
    return (uint32_t)h;
}

/* Settings that change neither what names nor what literals mean to the parser. Many sessions have
 * values of their own for these, and share statements all the same. */
static bool is_of_no_meaning(struct slice name)
{
    static const char timeout[] = "_timeout";
    size_t n = sizeof timeout - 1;

    return memchr(name.p, '.', name.n) != NULL || slice_eq_str(name, "application_name") ||
           slice_eq_str(name, "work_mem") || slice_eq_str(name, "synchronous_commit") ||
           (name.n > n && memcmp(name.p + name.n - n, timeout, n) == 0);
}

/* DateStyle, TimeZone, standard_conforming_strings, client_encoding and others decide what a
 * literal is when a statement is parsed: a statement is shared between clients that agree in all of
 * them. */
static uint64_t path_hash(const char *data, uint32_t len)
{
    struct slice name;
    struct slice sql;
    uint32_t at = 0;
    uint64_t h = 0;

    while (varset_next(data, len, &at, &name, &sql))
        if (!is_of_no_meaning(name))
            h = hash_bytes(sql.p, sql.n, hash_bytes(name.p, name.n, h));
    return h;
}

static bool is_ascii(const char *data, uint32_t len)
{
    uint32_t i;

    for (i = 0; i < len; i++)
        if ((data[i] & 0x80) != 0)
            return false;
    return true;
}

static struct varset *varset_intern(struct varset_store *store, const char *data, uint32_t len)
{
    struct varset_key k = {data, len};
    uint64_t hash = hash_bytes(data, len, 11);
    struct hash_node *n = hash_table_find(&store->table, hash, varset_eq, &k);
    struct varset *v;

    if (n != NULL)
        return varset_ref((struct varset *)n);
    v = mem_alloc_zero(sizeof *v + len);
    v->store = store;
    v->refs = 1;
    v->len = len;
    if (len > 0)
        memcpy(v->data, data, len);
    v->path_hash = path_hash(data, len);
    v->reads = reads_hash(data, len);
    v->is_ascii = is_ascii(data, len);
    hash_table_add(&store->table, &v->node, hash);
    return v;
}

void varset_store_init(struct varset_store *store)
{
    hash_table_init(&store->table);
    store->empty = varset_intern(store, "", 0);
}

void varset_store_fini(struct varset_store *store)
{
    varset_unref(&store->empty);
    hash_table_fini(&store->table);
}

struct varset *varset_empty(struct varset_store *store)
{
    return varset_ref(store->empty);
}

HOT void varset_unref(struct varset **vp)
{
    struct varset *v = *vp;

    *vp = NULL;
    if (v == NULL)
        return;
    ASSERT(v->refs > 0);
    if (--v->refs > 0)
        return;
    hash_table_del(&v->store->table, &v->node);
    mem_free(v);
}

WARM void varset_assign(struct varset **vp, struct varset *v)
{
    struct varset *old = *vp;

    *vp = v == NULL ? NULL : varset_ref(v);
    varset_unref(&old);
}

static void put_entry(struct buf *b, struct slice name, struct slice sql)
{
    buf_put(b, name.p, name.n);
    buf_put_byte(b, '\0');
    buf_put(b, sql.p, sql.n);
    buf_put_byte(b, '\0');
}

static int slice_cmp(struct slice a, struct slice b)
{
    size_t n = a.n < b.n ? a.n : b.n;
    int d = memcmp(a.p, b.p, n);

    return d != 0 ? d : (a.n > b.n) - (a.n < b.n);
}

/* The set without `name`, and with it set by `sql` when that is given. */
static void varset_edit(struct varset **vp, struct slice name, const struct slice *sql)
{
    struct varset *v = *vp;
    struct buf out = {0};
    struct slice n;
    struct slice s;
    uint32_t at = 0;
    bool done = sql == NULL;

    while (varset_next(v->data, v->len, &at, &n, &s)) {
        if (!done && slice_cmp(name, n) <= 0) {
            put_entry(&out, name, *sql);
            done = true;
        }
        if (!slice_eq(n, name))
            put_entry(&out, n, s);
    }
    if (!done)
        put_entry(&out, name, *sql);
    *vp = varset_intern(v->store, out.data, out.len);
    varset_unref(&v);
    buf_free(&out);
}

int varset_put(struct varset **vp, struct slice name, struct slice sql)
{
    if ((*vp)->len + name.n + sql.n + 2 > VARSET_MAX_BYTES || name.n == 0 ||
        memchr(sql.p, '\0', sql.n) != NULL)
        return -1;
    varset_edit(vp, name, &sql);
    return 0;
}

void varset_drop(struct varset **vp, struct slice name)
{
    if (varset_get(*vp, name).p != NULL)
        varset_edit(vp, name, NULL);
}

void varset_reset_all(struct varset **vp)
{
    struct varset *v = *vp;
    struct buf out = {0};
    struct slice n;
    struct slice s;
    uint32_t at = 0;

    while (varset_next(v->data, v->len, &at, &n, &s))
        if (varset_is_identity(n))
            put_entry(&out, n, s);
    *vp = varset_intern(v->store, out.data, out.len);
    varset_unref(&v);
    buf_free(&out);
}

WARM struct slice varset_get(const struct varset *v, struct slice name)
{
    struct slice n;
    struct slice s;
    uint32_t at = 0;

    while (varset_next(v->data, v->len, &at, &n, &s))
        if (slice_eq(n, name))
            return s;
    return slice_of(NULL, 0);
}

/* Settings whose accepted values are accepted always: nothing in the catalogue or in an extension
 * decides about them. */
static bool is_safe(struct slice name)
{
    static const char *const names[] = {"application_name", "bytea_output", "client_min_messages",
        "constraint_exclusion", "cursor_tuple_fraction", "datestyle", "deadlock_timeout",
        "default_transaction_deferrable", "default_transaction_isolation",
        "default_transaction_read_only", "effective_cache_size", "effective_io_concurrency",
        "extra_float_digits", "from_collapse_limit", "geqo", "gin_fuzzy_search_limit",
        "hash_mem_multiplier", "idle_in_transaction_session_timeout", "idle_session_timeout",
        "intervalstyle", "jit", "join_collapse_limit", "lock_timeout", "log_min_duration_statement",
        "log_statement", "maintenance_work_mem", "max_parallel_workers_per_gather",
        "parallel_leader_participation", "plan_cache_mode", "quote_all_identifiers",
        "random_page_cost", "row_security", "search_path", "seq_page_cost",
        "standard_conforming_strings", "statement_timeout", "synchronous_commit", "timezone",
        "transform_null_equals", "work_mem", "xmlbinary", "xmloption"};
    size_t i;

    if (name.n > 7 && memcmp(name.p, "enable_", 7) == 0)
        return true;
    for (i = 0; i < sizeof names / sizeof names[0]; i++)
        if (slice_eq_str(name, names[i]))
            return true;
    return false;
}

/* Everybody may. */
static bool is_no_role(struct slice sql)
{
    return slice_eq_str(sql, VARSET_ROLE_NONE);
}

/* Each part of a setting of users' own is quoted: "user" and other key words may be one. */
static void put_reset(struct buf *sql, struct slice name)
{
    bool is_own = memchr(name.p, '.', name.n) != NULL;
    size_t i;

    if (slice_eq_str(name, "session_authorization")) {
        buf_printf(sql, "RESET SESSION AUTHORIZATION;");
        return;
    }
    buf_printf(sql, is_own ? "RESET \"" : "RESET ");
    for (i = 0; i < name.n; i++)
        if (name.p[i] == '.')
            buf_printf(sql, "\".\"");
        else
            buf_put_byte(sql, name.p[i]);
    buf_printf(sql, is_own ? "\";" : ";");
}

/* Undoes what `to` does not have, or has differently as far as the identity is concerned. */
static bool diff_resets(const struct varset *from, const struct varset *to, struct buf *sql)
{
    struct slice name;
    struct slice value;
    uint32_t at = 0;
    bool safe = true;

    /* Settings are made with the rights of the login role: the identity goes first. RESET ROLE is
     * implied by RESET SESSION AUTHORIZATION, but not the other way round. */
    value = varset_get(from, slice_of_str("role"));
    if (value.p != NULL) {
        buf_printf(sql, "RESET ROLE;");
        safe = is_no_role(value);
    }
    if (varset_get(from, slice_of_str("session_authorization")).p != NULL) {
        buf_printf(sql, "RESET SESSION AUTHORIZATION;");
        safe = false;
    }
    while (varset_next(from->data, from->len, &at, &name, &value)) {
        if (varset_is_identity(name) || varset_get(to, name).p != NULL)
            continue;
        put_reset(sql, name);
        safe = safe && is_safe(name);
    }
    return safe;
}

bool varset_diff(const struct varset *from, const struct varset *to, struct buf *sql)
{
    struct slice name;
    struct slice value;
    struct slice has;
    uint32_t at = 0;
    bool safe = diff_resets(from, to, sql);

    while (varset_next(to->data, to->len, &at, &name, &value)) {
        has = varset_get(from, name);
        if (varset_is_identity(name) || (has.p != NULL && slice_eq(has, value)))
            continue;
        if (has.p != NULL && slice_eq_str(name, "datestyle"))
            put_reset(sql, name); /* the new value may name one half of it only */
        buf_put(sql, value.p, value.n);
        buf_put_byte(sql, ';');
        safe = safe && is_safe(name);
    }
    value = varset_get(to, slice_of_str("session_authorization"));
    if (value.p != NULL)
        buf_printf(sql, "%.*s;", (int)value.n, value.p);
    safe = safe && value.p == NULL;
    value = varset_get(to, slice_of_str("role"));
    if (value.p != NULL)
        buf_printf(sql, "%.*s;", (int)value.n, value.p);
    return safe && (value.p == NULL || is_no_role(value));
}

bool varset_diff_encoding(const struct varset *from, const struct varset *to, struct buf *sql)
{
    const struct slice name = slice_of_str("client_encoding");
    struct slice value = varset_get(to, name);

    if (to->is_ascii || slice_eq(varset_get(from, name), value))
        return false;
    if (value.p == NULL)
        put_reset(sql, name);
    else
        buf_printf(sql, "%.*s;", (int)value.n, value.p);
    return true;
}

struct varset *varset_of_bytes(struct varset_store *store, const char *data, uint32_t len)
{
    return varset_intern(store, data, len);
}

bool varset_quote(struct buf *out, struct slice value)
{
    size_t i;

    if (value.n > 0 && memchr(value.p, '\\', value.n) != NULL)
        return false;
    buf_put_byte(out, '\'');
    for (i = 0; i < value.n; i++) {
        if (value.p[i] == '\'')
            buf_put_byte(out, '\'');
        buf_put_byte(out, value.p[i]);
    }
    buf_put_byte(out, '\'');
    return true;
}

/* In some encodings of clients a backslash is the second half of a character, and one that was
 * doubled would then stand alone: beside one only ASCII is written. */
void varset_quote_any(struct buf *out, struct slice value)
{
    size_t i;

    if (varset_quote(out, value))
        return;
    buf_put(out, "E'", 2);
    for (i = 0; i < value.n; i++) {
        if ((value.p[i] & 0x80) != 0) {
            buf_printf(out, "\\x%02x", (unsigned char)value.p[i]);
            continue;
        }
        if (value.p[i] == '\'' || value.p[i] == '\\')
            buf_put_byte(out, value.p[i]);
        buf_put_byte(out, value.p[i]);
    }
    buf_put_byte(out, '\'');
}
