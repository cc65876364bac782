/* SPDX-License-Identifier: PostgreSQL
 * conf_check.c: rules that tie parameters to each other, and notes about those without effect.
 * Runs in: every process, after a file was read. An error refuses the generation; what may be meant
 * is a warning. */
#include "config.h"

#include "conf_int.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

/* Reports about the parameter `name` (number `index` or -1), at its line when it was set. */
#define CONF_COMPLAIN(load, severity, scope, name, index, hint, ...)                               \
    do {                                                                                           \
        struct conf_ref at_ = {conf_param_named(scope, name), index};                              \
        const struct conf_slot *slot_ = conf_slot_of(load, &at_);                                  \
        conf_report_add((load)->report, severity, conf_place_file(load, slot_), slot_->line, hint, \
            __VA_ARGS__);                                                                          \
    } while (0)
#define CONF_COMPLAIN_AT(load, severity, name, hint, ...)                                          \
    CONF_COMPLAIN(load, severity, CONF_SCOPE_GLOBAL, name, -1, hint, __VA_ARGS__)

static const char *conf_place_file(const struct conf_reading *load, const struct conf_slot *slot)
{
    return slot->value == NULL ? load->gen->file : slot->file;
}

static bool conf_is_set(const struct conf_reading *load, const char *name)
{
    struct conf_ref ref = {conf_param_named(CONF_SCOPE_GLOBAL, name), -1};
    return conf_slot_of(load, &ref)->value != NULL;
}

/* ---- connections, pools, processes ---- */

static void conf_check_listen(struct conf_reading *load, const struct conf *c)
{
    if (c->listen_addresses.n == 0 && c->unix_socket_directories.n == 0)
        CONF_COMPLAIN_AT(load, CONF_ERROR, "listen_addresses",
            "Set listen_addresses or unix_socket_directories.", "there is nothing to listen on");
    if (c->port == c->pcp_port)
        CONF_COMPLAIN_AT(load, CONF_ERROR, "pcp_port", "Choose another port for one of them.",
            "port and pcp_port are both %d", c->port);
    if (c->http_port != 0 && (c->http_port == c->port || c->http_port == c->pcp_port))
        CONF_COMPLAIN_AT(load, CONF_ERROR, "http_port", "Choose another port.",
            "http_port %d is used already", c->http_port);
    if (c->http_port != 0 && c->http_ssl && (c->ssl_cert[0] == '\0' || c->ssl_key[0] == '\0'))
        CONF_COMPLAIN_AT(load, CONF_ERROR, "http_ssl", "Set ssl_cert and ssl_key.",
            "http_ssl is on, but there is no certificate");
}

/* In pgpool-II these two bound clients and server connections. */
static void conf_note_old_limits(struct conf_reading *load, const struct conf *c)
{
    char hint[160];

    if (conf_is_set(load, "max_clients") || conf_is_set(load, "max_backend_connections"))
        return;
    snprintf(hint, sizeof hint,
        "For the limits that pgpool-II made of it: max_clients = %d, max_backend_connections = "
        "%lld.",
        c->num_init_children, (long long)c->num_init_children * c->max_pool);
    CONF_COMPLAIN_AT(load, CONF_NOTE, "num_init_children", hint,
        "num_init_children and max_pool bound neither clients nor server connections: max_clients "
        "(%d) and max_backend_connections (%d; 0 is what each server allows, less a margin) do",
        c->max_clients, c->max_backend_connections);
}

static void conf_check_pools(struct conf_reading *load, const struct conf *c)
{
    if (c->reserved_connections >= c->max_clients)
        CONF_COMPLAIN_AT(load, CONF_ERROR, "reserved_connections",
            "Lower reserved_connections or raise max_clients.",
            "reserved_connections (%d) must be less than max_clients (%d)", c->reserved_connections,
            c->max_clients);
    if (c->default_pool_size > 0 && c->min_pool_size > c->default_pool_size)
        CONF_COMPLAIN_AT(load, CONF_WARNING, "min_pool_size",
            "No pool grows beyond default_pool_size but by reserve_pool_size.",
            "min_pool_size (%d) is larger than default_pool_size (%d)", c->min_pool_size,
            c->default_pool_size);
    if (c->max_backend_connections != 0 && c->default_pool_size > c->max_backend_connections)
        CONF_COMPLAIN_AT(load, CONF_WARNING, "max_backend_connections",
            "One pool alone can use up all connections to a server.",
            "default_pool_size (%d) is larger than max_backend_connections (%d)",
            c->default_pool_size, c->max_backend_connections);
    if (c->num_init_children > 32)
        CONF_COMPLAIN_AT(load, CONF_WARNING, "num_init_children",
            "Take it out to have one per processor; the number of clients is bounded by "
            "max_clients.",
            "%d worker processes will be started, each of which serves many clients",
            c->num_init_children);
    if (conf_is_set(load, "num_init_children") && conf_is_set(load, "max_pool") &&
        c->num_init_children > 1 && c->max_pool > 0)
        conf_note_old_limits(load, c);
    if (c->process_management_mode == CONF_PROCESS_DYNAMIC &&
        c->min_spare_children >= c->max_spare_children)
        CONF_COMPLAIN_AT(load, CONF_ERROR, "min_spare_children",
            "Lower min_spare_children or raise max_spare_children.",
            "min_spare_children (%d) must be less than max_spare_children (%d)",
            c->min_spare_children, c->max_spare_children);
}

static void conf_check_logging(struct conf_reading *load, const struct conf *c)
{
    if (c->log_destination == 0)
        CONF_COMPLAIN_AT(load, CONF_ERROR, "log_destination",
            "Available values: stderr, syslog, jsonlog.", "log_destination is empty");
    if ((c->log_destination & CONF_LOG_TO_STDERR) != 0 &&
        (c->log_destination & CONF_LOG_TO_JSONLOG) != 0)
        CONF_COMPLAIN_AT(load, CONF_ERROR, "log_destination",
            "Name one of them; syslog may be given besides.",
            "log_destination cannot have stderr and jsonlog: they are one stream");
    for (const char *p = strchr(c->log_line_prefix, '%'); p != NULL; p = strchr(p, '%')) {
        p++;
        p += *p == '-';
        while (*p >= '0' && *p <= '9')
            p++;
        if (*p == '\0' || strchr("apPtmduhrl%", *p) == NULL)
            CONF_COMPLAIN_AT(load, CONF_WARNING, "log_line_prefix",
                "Known are %a %p %P %t %m %d %u %h %r %l and %%; it is left out.",
                "log_line_prefix has an unknown escape \"%%%.1s\"", p);
        p += *p != '\0';
    }
    if (c->log_filename[0] == '\0' || strchr(c->log_filename, '/') != NULL)
        CONF_COMPLAIN_AT(load, CONF_ERROR, "log_filename",
            "Give the folder in log_directory and only the name in log_filename.",
            "log_filename \"%s\" is not the name of a file", c->log_filename);
}

/* ---- servers ---- */

static void conf_check_node(struct conf_reading *load, const struct conf *c, int i)
{
    const struct conf_node *node = &c->nodes[i];
    struct conf_ref host = {conf_param_named(CONF_SCOPE_NODE, "backend_hostname"), i};
    unsigned both = CONF_BACKEND_ALLOW_FAILOVER | CONF_BACKEND_DISALLOW_FAILOVER;
    if (node->backend_port == 0) {
        if (conf_slot_of(load, &host)->value != NULL)
            CONF_COMPLAIN(load, CONF_WARNING, CONF_SCOPE_NODE, "backend_hostname", i,
                "A server exists when its port is set.",
                "backend_hostname%d is set but backend_port%d is not: there is no server %d", i, i,
                i);
        return;
    }
    if ((node->backend_flag & both) == both)
        CONF_COMPLAIN(load, CONF_ERROR, CONF_SCOPE_NODE, "backend_flag", i, "Keep one of them.",
            "backend_flag%d says both ALLOW_TO_FAILOVER and DISALLOW_TO_FAILOVER", i);
    if (node->backend_data_directory[0] == '\0' &&
        (c->recovery_1st_stage_command[0] != '\0' || c->recovery_2nd_stage_command[0] != '\0'))
        CONF_COMPLAIN(load, CONF_ERROR, CONF_SCOPE_NODE, "backend_data_directory", i,
            "Online recovery needs it; or take the recovery commands out.",
            "backend_data_directory%d is not set", i);
    for (int k = 0; k < i; k++)
        if (c->nodes[k].backend_port == node->backend_port &&
            strcmp(c->nodes[k].backend_hostname, node->backend_hostname) == 0)
            CONF_COMPLAIN(load, CONF_WARNING, CONF_SCOPE_NODE, "backend_port", i,
                "One of the two is probably a slip of the pen.",
                "servers %d and %d have the same address %s port %d", k, i, node->backend_hostname,
                node->backend_port);
}

static void conf_check_nodes(struct conf_reading *load, const struct conf *c)
{
    double weights = 0;
    int count = 0;
    for (int i = 0; i < CONF_MAX_NODES; i++) {
        conf_check_node(load, c, i);
        if (c->nodes[i].backend_port == 0)
            continue;
        count++;
        weights += c->nodes[i].backend_weight;
    }
    if (count == 0)
        conf_report_add(load->report, CONF_WARNING, load->gen->file, 0,
            "Set backend_hostname0 and backend_port0.",
            "there is no server: every client will be refused");
    else if (weights == 0.0 && c->load_balance_mode)
        conf_report_add(load->report, CONF_WARNING, load->gen->file, 0,
            "Set backend_weightN of some server above 0, or load_balance_mode to off.",
            "all weights are 0: no read can be balanced");
}

/* ---- the rest ---- */

/* A login that is passed on opens one server, and tells us nothing for another one. */
static void conf_note_passed_on(struct conf_reading *load, const struct conf *c)
{
    char hint[CONF_NAME_SIZE + 160];

    if (!c->load_balance_mode || conf_writes_everywhere(c) || c->nnodes < 2 ||
        c->auth_user[0] != '\0')
        return;
    snprintf(hint, sizeof hint,
        "auth_user%s%.*s%s has them looked up in the servers, and pgpool judges their logins then.",
        c->sr_check_user[0] == '\0' ? "" : " = '", CONF_NAME_SIZE, c->sr_check_user,
        c->sr_check_user[0] == '\0' ? "" : "'");
    CONF_COMPLAIN_AT(load, CONF_NOTE, "load_balance_mode", hint,
        "where servers ask for passwords, users who are not in pool_passwd read on the primary "
        "alone%s",
        c->auth_learn_keys != CONF_LEARN_OFF && c->sr_check_user[0] != '\0'
            ? ", unless sr_check_user may read pg_authid"
            : "");
}

static void conf_check_balance(struct conf_reading *load, const struct conf *c)
{
    conf_note_passed_on(load, c);
    if (c->read_only_function_list.n > 0 && c->write_function_list.n > 0)
        CONF_COMPLAIN_AT(load, CONF_ERROR, "write_function_list", "Keep one of the two lists.",
            "read_only_function_list and write_function_list are both set");
    if (c->sr_check_period_ms == 0 && c->delay_threshold_bytes > 0 &&
        conf_is_set(load, "delay_threshold"))
        CONF_COMPLAIN_AT(load, CONF_WARNING, "delay_threshold", "Set sr_check_period above 0.",
            "delay_threshold has no effect while sr_check_period is 0");
    if (c->sr_check_period_ms == 0 && c->delay_threshold_by_time_ms > 0)
        CONF_COMPLAIN_AT(load, CONF_WARNING, "delay_threshold_by_time",
            "Set sr_check_period above 0.",
            "delay_threshold_by_time has no effect while sr_check_period is 0");
}

static void conf_check_native(struct conf_reading *load, const struct conf *c)
{
    const char *mode = c->backend_clustering_mode == CONF_CLUSTER_SNAPSHOT ? "snapshot_isolation"
                                                                           : "native_replication";

    if (!conf_writes_everywhere(c))
        return;
    if (c->pool_mode != CONF_POOL_SESSION)
        CONF_COMPLAIN_AT(load, CONF_ERROR, "pool_mode", "Set pool_mode = session.",
            "%s has no connections to share between transactions", mode);
    if (c->nnodes > 8)
        CONF_COMPLAIN_AT(load, CONF_ERROR, "backend_clustering_mode", "Take servers out.",
            "%s is for 8 servers at most", mode);
}

static void conf_check_cache(struct conf_reading *load, const struct conf *c)
{
    if (c->memqcache_maxcache_bytes > c->memqcache_cache_block_size_bytes)
        CONF_COMPLAIN_AT(load, CONF_ERROR, "memqcache_maxcache",
            "A result has to fit into one block: lower the one or raise the other.",
            "memqcache_maxcache (%lld) must not be larger than memqcache_cache_block_size (%lld)",
            (long long)c->memqcache_maxcache_bytes, (long long)c->memqcache_cache_block_size_bytes);
    if (c->memqcache_total_size_bytes < c->memqcache_cache_block_size_bytes)
        CONF_COMPLAIN_AT(load, CONF_ERROR, "memqcache_total_size",
            "The memory has to hold at least one block: raise the one or lower the other.",
            "memqcache_total_size (%lld) must not be less than memqcache_cache_block_size (%lld)",
            (long long)c->memqcache_total_size_bytes,
            (long long)c->memqcache_cache_block_size_bytes);
    if (c->memqcache_method == CONF_CACHE_MEMCACHED &&
        strspn(c->memqcache_memcached_host, ", \t") == strlen(c->memqcache_memcached_host))
        CONF_COMPLAIN_AT(load, CONF_ERROR, "memqcache_memcached_host",
            "Name a host, or several, separated by commas.",
            "memqcache_method = memcached, and memqcache_memcached_host names no server");
    /* Without it other pgpools would not hear of what is written through this one. */
    if (c->memory_cache_enabled && c->memqcache_method == CONF_CACHE_MEMCACHED &&
        !conf_build_has_memcached())
        CONF_COMPLAIN_AT(load, CONF_ERROR, "memqcache_method",
            "Use shmem, or a build with libmemcached (pgpool -v tells what a build has not).",
            "this build of pgpool has no libmemcached");
}

/* What TLS towards one server needs. */
static void conf_check_node_tls(struct conf_reading *load, const struct conf *c, int i)
{
    const struct conf_node *n = &c->nodes[i];
    bool has_ca = n->backend_ssl_ca_cert[0] != '\0' || c->ssl_ca_cert[0] != '\0' ||
                  c->ssl_ca_cert_dir[0] != '\0';

    if (n->backend_port == 0)
        return;
    if ((n->backend_ssl_cert[0] == '\0') != (n->backend_ssl_key[0] == '\0'))
        CONF_COMPLAIN(load, CONF_ERROR, CONF_SCOPE_NODE, "backend_ssl_cert", i,
            "A certificate is of no use without its key.",
            "only one of backend_ssl_cert%d and backend_ssl_key%d is set", i, i);
    if (n->backend_ssl_ciphers[0] != '\0')
        CONF_COMPLAIN(load, CONF_WARNING, CONF_SCOPE_NODE, "backend_ssl_ciphers", i,
            "With backend_ssl_min_protocol_version TLSv1.3 no list is needed.",
            "health checks and what else pgpool asks by libpq know no backend_ssl_ciphers%d", i);
    if (n->backend_ssl_mode >= CONF_SSL_VERIFY_CA && !has_ca)
        CONF_COMPLAIN(load, CONF_ERROR, CONF_SCOPE_NODE, "backend_ssl_mode", i,
            "Set backend_ssl_ca_cert or ssl_ca_cert.",
            "backend_ssl_mode%d asks for a check against no certificate", i);
    if (n->backend_ssl_crl_file[0] != '\0' && !has_ca)
        CONF_COMPLAIN(load, CONF_ERROR, CONF_SCOPE_NODE, "backend_ssl_crl_file", i,
            "Set backend_ssl_ca_cert too, or take the list out.",
            "backend_ssl_crl_file%d is set, but certificates are not checked", i);
    if (n->backend_ssl_negotiation == CONF_SSL_DIRECT && n->backend_ssl_mode < CONF_SSL_REQUIRE)
        CONF_COMPLAIN(load, CONF_ERROR, CONF_SCOPE_NODE, "backend_ssl_negotiation", i,
            "Set backend_ssl_mode to require, verify-ca or verify-full.",
            "backend_ssl_negotiation%d is direct, which has no way back to no TLS", i);
}

static void conf_check_tls(struct conf_reading *load, const struct conf *c)
{
    if (c->ssl && (c->ssl_cert[0] == '\0' || c->ssl_key[0] == '\0'))
        CONF_COMPLAIN_AT(load, CONF_ERROR, "ssl", "Set ssl_cert and ssl_key, or ssl to off.",
            "ssl is on but %s is not set", c->ssl_cert[0] == '\0' ? "ssl_cert" : "ssl_key");
    if (c->ssl_crl_file[0] != '\0' && c->ssl_ca_cert[0] == '\0' && c->ssl_ca_cert_dir[0] == '\0')
        CONF_COMPLAIN_AT(load, CONF_WARNING, "ssl_crl_file", "Set ssl_ca_cert.",
            "ssl_crl_file has no effect without ssl_ca_cert: certificates are not checked");
    if (c->ssl_max_protocol_version != CONF_TLS_ANY &&
        c->ssl_max_protocol_version < c->ssl_min_protocol_version)
        CONF_COMPLAIN_AT(load, CONF_ERROR, "ssl_max_protocol_version", "No version of TLS is left.",
            "ssl_max_protocol_version is older than ssl_min_protocol_version");
    for (int i = 0; i < c->nnodes; i++)
        conf_check_node_tls(load, c, i);
}

static void conf_check_recovery(struct conf_reading *load, const struct conf *c)
{
    const char *p = c->recovery_password;
    if (strlen(p) == 35 && strncmp(p, "md5", 3) == 0 &&
        strspn(p + 3, "0123456789abcdefABCDEF") == 32)
        CONF_COMPLAIN_AT(load, CONF_ERROR, "recovery_password",
            "Give the password itself, or leave it empty and put it into pool_passwd.",
            "recovery_password must not be an MD5 hash");
}

static void conf_check_auth(struct conf_reading *load, const struct conf *c)
{
    unsigned require = (unsigned)c->backend_require_auth;
    int nkinds = ((require & CONF_REQUIRE_AUTO) != 0) + ((require & CONF_REQUIRE_NEGATED) != 0) +
                 ((require & CONF_REQUIRE_NAMED) != 0);

    if (nkinds > 1)
        CONF_COMPLAIN_AT(load, CONF_ERROR, "backend_require_auth",
            "Write the methods that servers may use, or all others with a ! each.",
            "backend_require_auth mixes auto, methods and methods that are not allowed");
    if (c->auth_query[0] != '\0' && c->auth_user[0] == '\0')
        CONF_COMPLAIN_AT(load, CONF_ERROR, "auth_query", "Set auth_user.",
            "auth_query is set but auth_user is not");
    if (c->auth_query[0] != '\0' && c->auth_user[0] != '\0' && c->auth_dbname[0] == '\0')
        CONF_COMPLAIN_AT(load, CONF_WARNING, "auth_query",
            "Set auth_dbname to a database that only administrators may change.",
            "auth_query runs in the database of each client: who owns that decides who its users "
            "are");
}

/* ---- watchdog ---- */

static bool conf_is_ip(const char *text)
{
    unsigned char bytes[16];

    return inet_pton(AF_INET, text, bytes) == 1 || inet_pton(AF_INET6, text, bytes) == 1;
}

/* Names that the shell gets to see. */
static bool conf_is_plain_host(const char *host)
{
    return host[0] != '\0' && host[0] != '-' &&
           strspn(host, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-:%") ==
               strlen(host);
}

static void conf_check_wd_nodes(struct conf_reading *load, const struct conf *c)
{
    bool queries = c->wd_lifecheck_method == CONF_LIFECHECK_QUERY;

    for (int i = 0; i < c->nwd_nodes; i++) {
        const struct conf_wd_node *n = &c->wd_nodes[i];

        if (n->wd_port == 0 || n->hostname[0] == '\0')
            continue;
        if (queries && n->pgpool_port == 0)
            CONF_COMPLAIN_AT(load, CONF_ERROR, "wd_lifecheck_method",
                "Set the port on which its clients come.",
                "wd_lifecheck_method is query, and pgpool_port%d is not set", i);
        if (c->wd_fence_command[0] != '\0' && !conf_is_plain_host(n->hostname))
            CONF_COMPLAIN_AT(load, CONF_ERROR, "wd_fence_command",
                "Give a name or an address: the shell gets to see it.",
                "hostname%d \"%s\" is no plain host", i, n->hostname);
    }
}

/* Files of pgpool-II leave work_dir at its default. What a pgpool forgets with it is its votes:
 * when most begin with nothing and one does not, nobody leads. */
static bool conf_is_emptied(const char *dir)
{
    static const char *const above[] = {"/run/", "/var/run/", "/dev/shm/"};
    size_t i;

    for (i = 0; i < sizeof above / sizeof above[0]; i++)
        if (strncmp(dir, above[i], strlen(above[i])) == 0)
            return true;
    return strcmp(dir, "/tmp") == 0 || strcmp(dir, "/tmp/") == 0 || strcmp(dir, "/dev/shm") == 0;
}

bool conf_forgets_commits(const struct conf *c)
{
    return conf_is_emptied(c->work_dir);
}

static void conf_check_commit(struct conf_reading *load, const struct conf *c)
{
    if (c->replication_commit == CONF_COMMIT_TWO_PHASE && conf_forgets_commits(c))
        CONF_COMPLAIN_AT(load, CONF_WARNING, "work_dir",
            "Name a folder that survives a restart of the machine, /var/lib/pgpool say.",
            "work_dir \"%s\" is emptied when the machine starts: what replication_commit = "
            "two_phase had decided would be forgotten",
            c->work_dir);
}

static void conf_check_watchdog(struct conf_reading *load, const struct conf *c)
{
    if (!c->use_watchdog)
        return;
    conf_check_wd_nodes(load, c);
    if (c->wd_authkey[0] == '\0')
        CONF_COMPLAIN_AT(load, CONF_WARNING, "wd_authkey",
            "Set wd_authkey to the same secret on all pgpools.",
            "wd_authkey is empty: whoever reaches wd_port is taken for a member of the watchdog");
    if (conf_is_emptied(c->work_dir))
        CONF_COMPLAIN_AT(load, CONF_WARNING, "work_dir",
            "Name a folder that survives a restart of the machine, /var/lib/pgpool say.",
            "work_dir \"%s\" is emptied when the machine starts: this pgpool would forget its "
            "votes "
            "in the watchdog's cluster, and when most have, nobody leads",
            c->work_dir);
    if (c->delegate_ip[0] != '\0' && !conf_is_ip(c->delegate_ip))
        CONF_COMPLAIN_AT(load, CONF_ERROR, "delegate_ip",
            "Give an address of IPv4 or IPv6, without a prefix.",
            "delegate_ip \"%s\" is no address", c->delegate_ip);
    for (int i = 0; i < c->trusted_servers.n; i++)
        if (!conf_is_plain_host(c->trusted_servers.item[i]))
            CONF_COMPLAIN_AT(load, CONF_ERROR, "trusted_servers",
                "Give names or addresses, separated by commas.",
                "trusted_servers names \"%s\", which is no host", c->trusted_servers.item[i]);
}

/* ---- what is set and does nothing ---- */

#define CONF_REFUSED_HINT                                                                          \
    "pgpool would start and not do it. Change this setting, or stay with pgpool-II until it is "   \
    "built."

/* False while the switch of the feature is off. */
static bool conf_is_on(const struct conf *c, const struct conf_feature_info *info)
{
    if (info->switch_name == NULL)
        return true;
    struct conf_ref ref = {conf_param_named(CONF_SCOPE_GLOBAL, info->switch_name), -1};
    return !conf_value_is_nothing(ref.param, conf_value_of(c, &ref));
}

static void conf_note_param(struct conf_reading *load, const struct conf *c,
    const struct conf_ref *ref, const struct conf_slot *slot)
{
    char name[CONF_NAME_SIZE];
    const struct conf_feature_info *info = conf_feature_info(ref->param->feature);
    const void *at = conf_value_of(c, ref);
    conf_ref_name(ref, name);
    if (info->state == CONF_STATE_REFUSED && info->switch_name != NULL) {
        if (strcmp(info->switch_name, name) == 0 && conf_is_on(c, info))
            conf_report_add(load->report, CONF_ERROR, slot->file, slot->line, CONF_REFUSED_HINT,
                "parameter \"%s\" asks for what is not built in this version (%s)", name,
                info->text);
        return; /* its other parameters need no word of their own */
    }
    if (conf_feature_is_missing(info) && conf_is_on(c, info) &&
        !conf_value_is_nothing(ref->param, at))
        conf_report_add(load->report, CONF_WARNING, slot->file, slot->line, NULL,
            "parameter \"%s\" has no effect yet: not built (%s)", name, info->text);
    if (info->state == CONF_STATE_NO_EFFECT && !conf_value_is_nothing(ref->param, at))
        conf_report_add(load->report, CONF_NOTE, slot->file, slot->line, NULL,
            "parameter \"%s\" has no effect: %s", name, info->text);
}

/* A value that needs more than its parameter does. */
static void conf_note_value(struct conf_reading *load, const struct conf *c,
    const struct conf_ref *ref, const struct conf_slot *slot)
{
    char name[CONF_NAME_SIZE];
    int value;
    bool is_flags = ref->param->type == CONF_FLAGS;
    if (ref->param->type != CONF_ENUM && !is_flags)
        return;
    if (conf_feature_info(ref->param->feature)->state != CONF_STATE_BUILT)
        return; /* the parameter as a whole was told about */
    memcpy(&value, conf_value_of(c, ref), sizeof(value));
    conf_ref_name(ref, name);
    for (const struct conf_enum_value *v = ref->param->values; v->text != NULL; v++) {
        const struct conf_feature_info *info = conf_feature_info(v->feature);
        bool is_chosen = is_flags ? (value & v->value) != 0 : value == v->value;
        if (!is_chosen || info->state == CONF_STATE_BUILT)
            continue;
        if (info->state == CONF_STATE_REFUSED)
            conf_report_add(load->report, CONF_ERROR, slot->file, slot->line, CONF_REFUSED_HINT,
                "value \"%s\" of parameter \"%s\" asks for what is not built in this version (%s)",
                v->text, name, info->text);
        else if (info->state == CONF_STATE_NOT_BUILT)
            conf_report_add(load->report, CONF_WARNING, slot->file, slot->line, NULL,
                "value \"%s\" of parameter \"%s\" has no effect yet: not built (%s)", v->text, name,
                info->text);
        else
            conf_report_add(load->report, CONF_NOTE, slot->file, slot->line, NULL,
                "value \"%s\" of parameter \"%s\" has no effect: %s", v->text, name, info->text);
    }
}

static void conf_note_unbuilt(struct conf_reading *load, const struct conf *c)
{
    struct conf_ref ref = {NULL, -1};
    while (conf_ref_next(&ref)) {
        const struct conf_slot *slot = conf_slot_of(load, &ref);
        if (slot->value == NULL)
            continue;
        conf_note_param(load, c, &ref, slot);
        conf_note_value(load, c, &ref, slot);
    }
}

/* Files of old releases chose the mode by other names. */
static void conf_check_old_mode(struct conf_reading *load)
{
    static const struct conf_refused native = {"replication_mode", "on",
        "Set backend_clustering_mode = 'native_replication' and take this line out."};
    const struct conf_ref ref = {conf_param_named(CONF_SCOPE_GLOBAL, native.old_name), -1};
    const struct conf_refused *old = load->old_mode;

    if (load->gen->conf.replication_mode) { /* its name is known: pgpool-II reads it still */
        old = &native;
        load->old_mode_at = *conf_slot_of(load, &ref);
    }
    if (old != NULL && !conf_is_set(load, "backend_clustering_mode"))
        conf_report_add(load->report, CONF_ERROR, load->old_mode_at.file, load->old_mode_at.line,
            old->hint, "%s = %s chose a mode that this file does not get any more", old->old_name,
            old->value);
}

void conf_check(struct conf_reading *load)
{
    const struct conf *c = &load->gen->conf;
    conf_check_listen(load, c);
    conf_check_auth(load, c);
    conf_check_pools(load, c);
    conf_check_logging(load, c);
    conf_check_nodes(load, c);
    conf_check_balance(load, c);
    conf_check_native(load, c);
    conf_check_lists(load, c);
    conf_check_recovery(load, c);
    conf_check_cache(load, c);
    conf_check_tls(load, c);
    conf_check_watchdog(load, c);
    conf_check_commit(load, c);
    conf_check_old_mode(load);
    if (!load->is_canonical)
        conf_note_unbuilt(load, c);
}
