/* SPDX-License-Identifier: PostgreSQL
 * pgpool_import_settings.c: the section [pgbouncer]: which setting becomes which line of
 * pgpool.conf. Runs in: the command line. What the file does not say is written with PgBouncer's
 * default where ours may differ, so that the imported pgpool behaves as PgBouncer did. */
#include "config.h"

#include <string.h>

#include "bin/pgpool/pgpool_import.h"

enum imp_how {
    IMP_NUMBER,
    IMP_SECONDS,
    IMP_TEXT,
    IMP_POOL_MODE,
    IMP_PATH,
    IMP_BOOL,
    IMP_RESET, /* statements that clean a connection */
    IMP_LOGFILE,
    IMP_SYSLOG,
    IMP_FACILITY,
    IMP_VERBOSE,
    IMP_WORD_AUTO, /* text; the words auto, default, fast, normal, secure stand for the default */
    IMP_SERVER,    /* kept until the servers are known */
    IMP_NONE       /* `text` says why */
};

struct imp_rule {
    const char *from;
    enum imp_how how;
    const char *to;
    const char *initial; /* PgBouncer's default, when it is to be written */
    const char *text;
};

#define SAME(name, how, initial)                                                                   \
    {                                                                                              \
        name, how, name, initial, NULL                                                             \
    }
#define NONE(name, why)                                                                            \
    {                                                                                              \
        name, IMP_NONE, NULL, NULL, why                                                            \
    }

static const struct imp_rule rules[] = {
    {"listen_addr", IMP_TEXT, "listen_addresses", "", NULL},
    {"listen_port", IMP_NUMBER, "port", "6432", NULL},
    {"unix_socket_dir", IMP_TEXT, "unix_socket_directories", "/tmp", NULL},
    {"unix_socket_mode", IMP_NUMBER, "unix_socket_permissions", "0777", NULL},
    SAME("unix_socket_group", IMP_TEXT, NULL),
    SAME("pool_mode", IMP_POOL_MODE, "session"),
    {"max_client_conn", IMP_NUMBER, "max_clients", "100", NULL},
    SAME("default_pool_size", IMP_NUMBER, "20"),
    SAME("min_pool_size", IMP_NUMBER, "0"),
    SAME("reserve_pool_size", IMP_NUMBER, "0"),
    SAME("reserve_pool_timeout", IMP_SECONDS, "5"),
    SAME("max_db_connections", IMP_NUMBER, "0"),
    SAME("max_user_connections", IMP_NUMBER, "0"),
    SAME("max_db_client_connections", IMP_NUMBER, "0"),
    SAME("max_user_client_connections", IMP_NUMBER, "0"),
    SAME("server_lifetime", IMP_SECONDS, "3600"),
    SAME("server_idle_timeout", IMP_SECONDS, "600"),
    SAME("server_check_delay", IMP_SECONDS, "30"),
    SAME("server_check_query", IMP_TEXT, "<empty>"),
    {"server_reset_query", IMP_RESET, "reset_query_list", "DISCARD ALL", NULL},
    SAME("query_wait_timeout", IMP_SECONDS, "120"),
    SAME("query_wait_notify", IMP_SECONDS, "5"),
    SAME("query_timeout", IMP_SECONDS, "0"),
    SAME("cancel_wait_timeout", IMP_SECONDS, "10"),
    SAME("idle_transaction_timeout", IMP_SECONDS, "0"),
    SAME("transaction_timeout", IMP_SECONDS, "0"),
    {"client_idle_timeout", IMP_SECONDS, "client_idle_limit", "0", NULL},
    {"client_login_timeout", IMP_SECONDS, "authentication_timeout", "60", NULL},
    {"server_connect_timeout", IMP_SECONDS, "connect_timeout", "15", NULL},
    SAME("max_prepared_statements", IMP_NUMBER, "200"),
    SAME("admin_users", IMP_TEXT, NULL),
    SAME("stats_users", IMP_TEXT, NULL),
    SAME("auth_user", IMP_TEXT, NULL),
    SAME("auth_query", IMP_TEXT, NULL),
    SAME("auth_dbname", IMP_TEXT, NULL),
    SAME("log_connections", IMP_BOOL, "1"),
    SAME("log_disconnections", IMP_BOOL, "1"),
    {"logfile", IMP_LOGFILE, "log_directory", NULL, NULL},
    {"syslog", IMP_SYSLOG, "log_destination", NULL, NULL},
    {"syslog_facility", IMP_FACILITY, "syslog_facility", NULL, NULL},
    SAME("syslog_ident", IMP_TEXT, NULL),
    {"verbose", IMP_VERBOSE, "log_min_messages", NULL, NULL},
    {"tcp_keepidle", IMP_SECONDS, "tcp_keepalives_idle", NULL, NULL},
    {"tcp_keepintvl", IMP_SECONDS, "tcp_keepalives_interval", NULL, NULL},
    {"tcp_keepcnt", IMP_NUMBER, "tcp_keepalives_count", NULL, NULL},
    {"client_tls_ca_file", IMP_PATH, "ssl_ca_cert", NULL, NULL},
    {"client_tls_cert_file", IMP_PATH, "ssl_cert", NULL, NULL},
    {"client_tls_key_file", IMP_PATH, "ssl_key", NULL, NULL},
    {"client_tls_ciphers", IMP_WORD_AUTO, "ssl_ciphers", NULL, NULL},
    {"client_tls_ecdhcurve", IMP_WORD_AUTO, "ssl_ecdh_curve", NULL, NULL},
    {"server_tls_sslmode", IMP_SERVER, "backend_ssl_mode", NULL, NULL},
    {"server_tls_ca_file", IMP_SERVER, "backend_ssl_ca_cert", NULL, NULL},
    {"server_tls_cert_file", IMP_SERVER, "backend_ssl_cert", NULL, NULL},
    {"server_tls_key_file", IMP_SERVER, "backend_ssl_key", NULL, NULL},
    {"server_tls_ciphers", IMP_SERVER, "backend_ssl_ciphers", NULL, NULL},
    NONE("client_tls_protocols",
        "ssl_min_protocol_version says the oldest one; TLS 1.2 is the default"),
    NONE("server_tls_protocols",
        "backend_ssl_min_protocol_versionN says the oldest one; TLS 1.2 is the default"),
    NONE("client_tls13_ciphers", "OpenSSL's own list for TLS 1.3 is used"),
    NONE("server_tls13_ciphers", "OpenSSL's own list for TLS 1.3 is used"),
    NONE("client_tls_dheparams", "ssl_dh_params_file names a file; built-in parameters otherwise"),
    NONE("application_name_add_host", "SHOW POOL_CLIENTS and the log name the client's address"),
    NONE("autodb_idle_timeout", "pools that are not used cost nothing that has to be given back"),
    NONE("pool_idle_timeout", "pools that are not used cost nothing that has to be given back"),
    NONE("conffile", "pgpool -f names the file"),
    NONE("disable_pqexec", "simple queries cannot be forbidden"),
    NONE("dns_max_ttl", "names are looked up when a connection is opened"),
    NONE("dns_nxdomain_ttl", "names are looked up when a connection is opened"),
    NONE("dns_zone_check_period", "names are looked up when a connection is opened"),
    NONE("resolv_conf", "the resolver of the system is used"),
    NONE("ignore_startup_parameters", "start-up parameters are not ignored: they go to the server "
                                      "and hold there, and one that it "
                                      "does not know refuses the login"),
    NONE("job_name", "syslog_ident is the name in the log"),
    NONE("service_name", "syslog_ident is the name in the log"),
    NONE("listen_backlog", "listen_backlog_multiplier; never shorter than 1024"),
    NONE("log_pooler_errors", "errors sent to clients are always logged"),
    NONE("log_stats", "SHOW POOL_STATS and /metrics have the numbers"),
    NONE("stats_period", "SHOW POOL_STATS has sums, /metrics is read by whoever wants averages"),
    NONE("login_notify_message", "there is no message at login"),
    NONE("max_packet_size", "messages are passed on piece by piece, whatever their size"),
    NONE("peer_id", "not needed: workers share one port and find each other's clients"),
    NONE("so_reuseport", "not needed: workers share one port and one set of limits"),
    NONE("pidfile", "pid_file_name is another file: PgBouncer may still be running with its own"),
    NONE("pkt_buf", "buffers have no setting"),
    NONE("sbuf_loopcnt", "the event loop has no such setting"),
    NONE("scram_iterations", "verifiers have the iterations they were made with (pg_enc)"),
    NONE("server_fast_close", "clients in session mode keep a connection until they leave"),
    NONE("server_login_retry", "a failed server is looked at by the health check"),
    NONE("server_reset_query_always", "reset_between_clients = on resets in transaction mode, too"),
    NONE("server_round_robin", "the connection used last is taken first"),
    NONE("suspend_timeout", "there is no SUSPEND"),
    NONE("tcp_defer_accept", "not used"),
    NONE("tcp_keepalive", "there is no switch, only tcp_keepalives_idle and its like"),
    NONE("tcp_socket_buffer", "the operating system chooses"),
    NONE("tcp_user_timeout", "tcp_keepalives_count and its like end a dead connection"),
    NONE("track_extra_parameters", "not needed: whatever a client SETs is followed"),
    NONE("user", "start pgpool as that user (User= of the systemd unit)"),
};

static void take_logfile(struct imp *imp, const struct imp_item *item)
{
    const char *path = imp_path(imp, item->value);
    const char *slash = strrchr(path, '/');
    const char *folder =
        arena_strndup(imp->arena, path, slash == path ? 1 : (size_t)(slash - path));

    if (imp_put_text(&imp->conf, "log_directory", folder) == -1) {
        imp_left(imp, item, NULL, "its name cannot be written in pgpool.conf");
        return;
    }
    buf_printf(&imp->conf, "logging_collector = on\n");
    imp_took(imp, item, NULL,
        "logging_collector = on, log_directory = '%s'; the files there are named by log_filename, "
        "a new one each day",
        folder);
}

static void take_server(struct imp *imp, const struct imp_rule *rule, const struct imp_item *item)
{
    bool is_file = strstr(rule->from, "_file") != NULL;
    const char *value = is_file ? imp_path(imp, item->value) : item->value;

    if (strcmp(rule->to, "backend_ssl_mode") == 0)
        imp->tls.mode = value;
    else if (strcmp(rule->to, "backend_ssl_ca_cert") == 0)
        imp->tls.ca = value;
    else if (strcmp(rule->to, "backend_ssl_cert") == 0)
        imp->tls.cert = value;
    else if (strcmp(rule->to, "backend_ssl_key") == 0)
        imp->tls.key = value;
    else
        imp->tls.ciphers = value;
    imp_took(imp, item, NULL, "%sN = '%s'", rule->to, value);
}

/* Words that PgBouncer has for lists of its own; the default here is as good. */
static bool is_auto(const char *value)
{
    static const char *const words[] = {"auto", "default", "fast", "normal", "secure", ""};
    size_t i;

    for (i = 0; i < sizeof words / sizeof words[0]; i++)
        if (strcmp(value, words[i]) == 0)
            return true;
    return false;
}

/* The line that `value` becomes, or NULL. */
static const char *converted(struct imp *imp, const struct imp_rule *rule, const char *value)
{
    switch (rule->how) {
    case IMP_NUMBER:
        return imp_is_number(value) ? value : NULL;
    case IMP_SECONDS:
        return imp_time(imp, value);
    case IMP_POOL_MODE:
        return imp_is_pool_mode(value) ? value : NULL;
    case IMP_BOOL:
        return imp_is_on(value) ? "on" : "off";
    case IMP_PATH:
        return imp_path(imp, value);
    case IMP_RESET:
        return value[0] == '\0' ? "ABORT" : arena_printf(imp->arena, "ABORT;%s", value);
    default:
        return value;
    }
}

static void put(
    struct imp *imp, const struct imp_rule *rule, const char *value, const struct imp_item *item)
{
    const char *text = converted(imp, rule, value);
    bool is_bare = rule->how == IMP_NUMBER || rule->how == IMP_BOOL || rule->how == IMP_SECONDS;

    if (text != NULL && is_bare)
        buf_printf(&imp->conf, "%s = %s\n", rule->to, text);
    else if (text != NULL && imp_put_text(&imp->conf, rule->to, text) == -1)
        text = NULL;
    if (item == NULL)
        return;
    if (text == NULL)
        imp_left(imp, item, NULL, "\"%s\" cannot be the value of %s", value, rule->to);
    else
        imp_took(imp, item, NULL, is_bare ? "%s = %s" : "%s = '%s'", rule->to, text);
}

/* What is taken over only for some values; true: it was dealt with here. */
static bool take_special(struct imp *imp, const struct imp_rule *rule, const struct imp_item *item)
{
    const char *v = item->value;

    if (rule->how == IMP_NONE)
        imp_left(imp, item, NULL, "%s", rule->text);
    else if (strcmp(rule->from, "auth_query") == 0 &&
             imp_find(imp, "pgbouncer", "auth_user") == NULL)
        imp_took(imp, item, NULL,
            "auth_query of the databases that have auth_user: there is none for all");
    else if (rule->how == IMP_SERVER && !is_auto(v))
        take_server(imp, rule, item);
    else if ((rule->how == IMP_SERVER || rule->how == IMP_WORD_AUTO) && is_auto(v))
        imp_left(imp, item, NULL, "%s keeps its default, which is good", rule->to);
    else if (rule->how == IMP_LOGFILE && v[0] != '\0')
        take_logfile(imp, item);
    else if (rule->how == IMP_LOGFILE)
        imp_left(imp, item, NULL, "it is empty");
    else if (rule->how == IMP_FACILITY && strncmp(v, "local", 5) != 0)
        imp_left(imp, item, NULL, "pgpool knows local0 to local7; local0 is the default");
    else if (rule->how == IMP_TEXT && strcmp(rule->from, "unix_socket_dir") == 0 && v[0] == '@')
        imp_left(imp, item, NULL, "abstract Unix sockets are not known; unix_socket_directories");
    else if (rule->how == IMP_SYSLOG && !imp_is_on(v))
        imp_took(imp, item, NULL, "the default of log_destination");
    else if (rule->how == IMP_VERBOSE && !imp_is_on(v))
        imp_took(imp, item, NULL, "the default of log_min_messages");
    else
        return false;
    return true;
}

static void take(struct imp *imp, const struct imp_rule *rule, const struct imp_item *item)
{
    if (take_special(imp, rule, item))
        return;
    if (rule->how == IMP_SYSLOG)
        put(imp, rule, "stderr,syslog", item);
    else if (rule->how == IMP_VERBOSE)
        put(imp, rule, "debug1", item);
    else
        put(imp, rule, item->value, item);
}

static const struct imp_rule *rule_of(const char *key)
{
    size_t i;

    for (i = 0; i < sizeof rules / sizeof rules[0]; i++)
        if (strcmp(rules[i].from, key) == 0)
            return &rules[i];
    return NULL;
}

void imp_settings(struct imp *imp)
{
    const struct imp_item *item;
    size_t i;

    for (item = imp->first; item != NULL; item = item->next) {
        const struct imp_rule *rule = rule_of(item->key);

        if (strcmp(item->section, "pgbouncer") != 0)
            continue;
        if (imp_is_replaced(item))
            imp_left(imp, item, NULL, "a later line says it again");
        else if (rule != NULL)
            take(imp, rule, item);
        else if (!imp_is_about_auth(item->key))
            imp_left(imp, item, NULL, "this is no setting of PgBouncer that is known here");
    }
    buf_printf(&imp->conf, "\n# PgBouncer's defaults, for what its file did not say.\n");
    for (i = 0; i < sizeof rules / sizeof rules[0]; i++)
        if (rules[i].initial != NULL && imp_find(imp, "pgbouncer", rules[i].from) == NULL)
            put(imp, &rules[i], rules[i].initial, NULL);
    item = imp_find(imp, "pgbouncer", "unix_socket_dir");
    imp->socket_dir = item == NULL || item->value[0] != '/' ? "/tmp" : item->value;
}
