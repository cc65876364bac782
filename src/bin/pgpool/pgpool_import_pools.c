/* SPDX-License-Identifier: PostgreSQL
 * pgpool_import_pools.c: the sections [databases] and [users]: servers of pgpool.conf, sections of
 * pools.conf. Runs in: the command line. The server of "*" (of the first database, without one)
 * becomes that of pgpool.conf, with health checks and all databases; databases elsewhere get their
 * host in pools.conf. */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "bin/pgpool/pgpool_import.h"

#define HOSTS_MAX 64

struct place {
    const char *hosts; /* as the file has it, or the folder of sockets */
    const char *port;
};

enum key_how { KEY_NUMBER, KEY_LIMIT, KEY_SECONDS, KEY_TEXT, KEY_POOL_MODE, KEY_NONE };

static const struct {
    const char *from;
    enum key_how how;
    const char *to; /* or why not */
} keys[] = {
    {"pool_mode", KEY_POOL_MODE, "pool_mode"},
    {"pool_size", KEY_NUMBER, "pool_size"},
    {"min_pool_size", KEY_NUMBER, "min_pool_size"},
    {"reserve_pool_size", KEY_NUMBER, "reserve_pool_size"},
    {"reserve_pool", KEY_NUMBER, "reserve_pool_size"},
    {"max_db_connections", KEY_LIMIT, "max_db_connections"},
    {"max_db_client_connections", KEY_LIMIT, "max_db_client_connections"},
    {"max_user_connections", KEY_LIMIT, "max_user_connections"},
    {"max_user_client_connections", KEY_LIMIT, "max_user_client_connections"},
    {"server_lifetime", KEY_SECONDS, "server_lifetime"},
    {"query_timeout", KEY_SECONDS, "query_timeout"},
    {"query_wait_timeout", KEY_SECONDS, "query_wait_timeout"},
    {"idle_transaction_timeout", KEY_SECONDS, "idle_transaction_timeout"},
    {"transaction_timeout", KEY_SECONDS, "transaction_timeout"},
    {"dbname", KEY_TEXT, "dbname"},
    {"user", KEY_TEXT, "user"},
    {"auth_user", KEY_TEXT, "auth_user"},
    {"auth_query", KEY_TEXT, "auth_query"},
    {"auth_dbname", KEY_TEXT, "auth_dbname"},
    {"client_idle_timeout", KEY_NONE,
        "client_idle_limit holds for all; a session may PGPOOL SET it"},
    {"connect_query", KEY_NONE, "no query is run on new connections; ALTER DATABASE ... SET"},
    {"load_balance_hosts", KEY_NONE, "reads are spread by load_balance_mode in pgpool.conf"},
    {"client_encoding", KEY_NONE, "ALTER DATABASE ... SET client_encoding"},
    {"datestyle", KEY_NONE, "ALTER DATABASE ... SET datestyle"},
    {"timezone", KEY_NONE, "ALTER DATABASE ... SET timezone"},
    {"application_name", KEY_NONE, "ALTER DATABASE ... SET application_name"},
};

static const char *value_of(const struct imp_pair *pairs, const char *key)
{
    const char *found = NULL;

    for (; pairs != NULL; pairs = pairs->next)
        if (strcmp(pairs->key, key) == 0)
            found = pairs->value;
    return found;
}

static struct place place_of(const struct imp *imp, const struct imp_pair *pairs)
{
    const char *host = value_of(pairs, "host");
    const char *port = value_of(pairs, "port");
    struct place p = {
        .hosts = host == NULL || *host == '\0' ? imp->socket_dir : host,
        .port = port == NULL ? "5432" : port,
    };

    return p;
}

/* False, and said, when pgpool cannot connect there. */
static bool place_is_good(struct imp *imp, const struct imp_item *item, struct place p)
{
    const char *why = NULL;

    if (p.hosts[0] == '@')
        why = "abstract Unix sockets are not known";
    else if (!imp_is_number(p.port))
        why = "its port is no number";
    if (why != NULL)
        imp_left(imp, item, NULL, "%s", why);
    return why == NULL;
}

/* One key of a section. */
static void put_key(struct imp *imp, const struct imp_item *item, const struct imp_pair *pair)
{
    const char *text = NULL;
    size_t i = 0;

    while (i < sizeof keys / sizeof keys[0] && strcmp(keys[i].from, pair->key) != 0)
        i++;
    if (i == sizeof keys / sizeof keys[0]) {
        imp_left(imp, item, pair->key, "this is no key of PgBouncer that is known here");
        return;
    }
    if (keys[i].how == KEY_NONE) {
        imp_left(imp, item, pair->key, "%s", keys[i].to);
        return;
    }
    if (keys[i].how == KEY_LIMIT && imp_is_number(pair->value) &&
        strtol(pair->value, NULL, 10) == 0) {
        imp_left(imp, item, pair->key, "0 means the common limit to PgBouncer, and it holds");
        return;
    }
    if (keys[i].how == KEY_TEXT || keys[i].how == KEY_POOL_MODE) {
        if ((keys[i].how == KEY_TEXT || imp_is_pool_mode(pair->value)) &&
            imp_put_text(&imp->pools, keys[i].to, pair->value) == 0)
            text = pair->value;
    } else {
        text = keys[i].how == KEY_SECONDS ? imp_time(imp, pair->value) : pair->value;
        if (text != NULL && (keys[i].how == KEY_SECONDS || imp_is_number(text)))
            buf_printf(&imp->pools, "%s = %s\n", keys[i].to, text);
        else
            text = NULL;
    }
    if (text == NULL)
        imp_left(imp, item, pair->key, "\"%s\" cannot be its value", pair->value);
    else
        imp_took(imp, item, pair->key, "pools.conf: %s = %s", keys[i].to, text);
}

static void put_head(struct imp *imp, const char *what, const char *name)
{
    buf_printf(&imp->pools, "\n[%s \"", what);
    for (; *name != '\0'; name++)
        buf_printf(&imp->pools, *name == '"' ? "\"%c" : "%c", *name);
    buf_printf(&imp->pools, "\"]\n");
}

/* A database of another server than that of pgpool.conf. */
static void put_host(struct imp *imp, const struct imp_item *item, struct place p)
{
    size_t n = strcspn(p.hosts, ",");
    const char *host = arena_strndup(imp->arena, p.hosts, n);

    if (imp_put_text(&imp->pools, "host", host) == -1) {
        imp_left(imp, item, "host", "its name cannot be written in pools.conf");
        return;
    }
    buf_printf(&imp->pools, "port = %s\n", p.port);
    if (imp->tls.mode != NULL)
        (void)imp_put_text(&imp->pools, "backend_ssl_mode", imp->tls.mode);
    imp_took(imp, item, "host", "pools.conf: host = '%s', port = %s", host, p.port);
    if (p.hosts[n] != '\0')
        imp_left(imp, item, "host",
            "a database of pools.conf has one server: those after \"%s\" in \"%s\" are left out",
            host, p.hosts);
    if (imp->tls.cert != NULL || imp->tls.ca != NULL)
        imp_left(imp, item, "server_tls_cert_file, server_tls_ca_file",
            "servers of pools.conf use ssl_ca_cert, and are shown no certificate");
}

static bool same_place(struct place a, struct place b)
{
    return strcmp(a.hosts, b.hosts) == 0 && strcmp(a.port, b.port) == 0;
}

/* Keys that the head of a section is about, not its lines. */
static bool is_about_place(const char *key)
{
    return strcmp(key, "host") == 0 || strcmp(key, "port") == 0 || strcmp(key, "password") == 0;
}

/* dbname of a database that is called the same says nothing. */
static bool is_needless(const struct imp_item *item, const struct imp_pair *pair)
{
    return strcmp(pair->key, "dbname") == 0 && strcmp(pair->value, item->key) == 0;
}

/* A query for all without a user for all holds where a database has one. */
static void put_query(struct imp *imp, const struct imp_item *item, const struct imp_pair *pairs)
{
    const struct imp_item *query = imp_find(imp, "pgbouncer", "auth_query");
    struct imp_pair pair = {.key = "auth_query"};

    if (query == NULL || value_of(pairs, "auth_user") == NULL ||
        value_of(pairs, "auth_query") != NULL || imp_find(imp, "pgbouncer", "auth_user") != NULL)
        return;
    pair.value = query->value;
    put_key(imp, item, &pair);
}

static void put_database(
    struct imp *imp, const struct imp_item *item, const struct imp_pair *pairs, struct place main)
{
    struct place p = place_of(imp, pairs);
    bool is_star = strcmp(item->key, "*") == 0;
    const struct imp_pair *pair;

    put_head(imp, "database", item->key);
    if (same_place(p, main))
        imp_took(imp, item, NULL, "a database of the server in pgpool.conf");
    else
        put_host(imp, item, p);
    for (pair = pairs; pair != NULL; pair = pair->next) {
        bool is_name = strcmp(pair->key, "dbname") == 0 || strcmp(pair->key, "user") == 0;

        if (is_star && is_name)
            imp_left(imp, item, pair->key, "* cannot stand for one database or user of the server");
        else if (!is_about_place(pair->key) && !is_needless(item, pair))
            put_key(imp, item, pair);
    }
    put_query(imp, item, pairs);
}

/* The servers of pgpool.conf. */
static void put_servers(struct imp *imp, const struct imp_item *item, struct place main)
{
    const char *p = main.hosts;
    int n = 0;

    buf_printf(&imp->conf, "\n# Servers.\n");
    while (*p != '\0' && n < HOSTS_MAX) {
        size_t len = strcspn(p, ",");
        const char *host = arena_strndup(imp->arena, p, len);
        const struct imp_server_tls *t = &imp->tls;
        const char *const names[] = {
            "hostname", "ssl_mode", "ssl_ca_cert", "ssl_cert", "ssl_key", "ssl_ciphers"};
        const char *const values[] = {host, t->mode, t->ca, t->cert, t->key, t->ciphers};
        size_t i;

        for (i = 0; i < sizeof names / sizeof names[0]; i++)
            if (values[i] != NULL)
                (void)imp_put_text(
                    &imp->conf, arena_printf(imp->arena, "backend_%s%d", names[i], n), values[i]);
        buf_printf(&imp->conf, "backend_port%d = %s\n", n, main.port);
        imp_took(imp, item, "host", "backend_hostname%d = '%s', backend_port%d = %s", n, host, n,
            main.port);
        n++;
        p += len + (p[len] == ',');
    }
    buf_printf(&imp->conf, "load_balance_mode = off\n");
    if (n > 1)
        imp_left(imp, item, "host",
            "PgBouncer takes the servers in turn; pgpool finds the primary among them (set "
            "sr_check_user) and sends all to it, and reads to the others with load_balance_mode = "
            "on");
    else
        buf_printf(
            &imp->conf, "# One server, whatever its role is.\nbackend_clustering_mode = 'raw'\n");
}

static void put_users(struct imp *imp)
{
    const struct imp_item *item;
    struct imp_pair *pairs;
    const struct imp_pair *pair;

    for (item = imp->first; item != NULL; item = item->next) {
        if (strcmp(item->section, "users") != 0)
            continue;
        if (imp_is_replaced(item)) {
            imp_left(imp, item, NULL, "a later line says it again");
        } else if (imp_split(imp, item->value, &pairs) == -1) {
            imp_left(imp, item, NULL, "it is not written as key=value");
        } else {
            put_head(imp, "user", item->key);
            for (pair = pairs; pair != NULL; pair = pair->next)
                put_key(imp, item, pair);
        }
    }
}

static void put_others(struct imp *imp)
{
    const struct imp_item *item;

    for (item = imp->first; item != NULL; item = item->next) {
        if (strcmp(item->section, "peers") == 0)
            imp_left(imp, item, NULL,
                "not needed: workers share one port and find each other's clients");
        else if (strcmp(item->section, "pgbouncer") != 0 && strcmp(item->section, "users") != 0 &&
                 strcmp(item->section, "databases") != 0)
            imp_left(imp, item, NULL, "[%s] is no section of PgBouncer", item->section);
    }
}

static bool is_database(const struct imp_item *item)
{
    return strcmp(item->section, "databases") == 0 && strcmp(item->key, "pgbouncer") != 0 &&
           !imp_is_replaced(item);
}

int imp_databases(struct imp *imp, struct err *err)
{
    struct imp_item *item;
    const struct imp_item *first = imp_find(imp, "databases", "*");
    struct imp_pair *pairs;
    struct place main = {0};

    for (item = imp->first; first == NULL && item != NULL; item = item->next)
        if (is_database(item))
            first = item;
    if (first == NULL) {
        err_set(err, "F0000", "no database, and so no server, stands in [databases]");
        return -1;
    }
    if (imp_split(imp, first->value, &pairs) == -1) {
        err_set(err, "F0000", "%s:%d: it is not written as key=value", first->file, first->line);
        return -1;
    }
    main = place_of(imp, pairs);
    if (!place_is_good(imp, first, main)) {
        err_set(
            err, "F0000", "%s:%d: pgpool cannot connect to this server", first->file, first->line);
        return -1;
    }
    put_servers(imp, first, main);
    for (item = imp->first; item != NULL; item = item->next) {
        if (strcmp(item->section, "databases") != 0)
            continue;
        if (!is_database(item)) {
            imp_left(imp, item, NULL,
                imp_is_replaced(item) ? "a later line says it again"
                                      : "the name is that of the console");
            continue;
        }
        item->is_left = imp_split(imp, item->value, &pairs) == -1;
        if (item->is_left)
            imp_left(imp, item, NULL, "it is not written as key=value");
        else if (place_is_good(imp, item, place_of(imp, pairs)))
            put_database(imp, item, pairs, main);
        else
            item->is_left = true;
    }
    put_users(imp);
    put_others(imp);
    return 0;
}
