/* SPDX-License-Identifier: PostgreSQL
 * monitor_conf.c: what the settings mean for probes and decisions.
 * Runs in: monitor. One probe serves health check and lag check, so it logs in once: as
 * sr_check_user, else as health_check_user, else as postgres. */
#include "config.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "auth/passwd.h"
#include "base/log.h"
#include "base/mem.h"
#include "config/conf.h"
#include "process/common/server_login.h"

#include "monitor_int.h"

#define DEFAULT_USER       "postgres"
#define DEFAULT_DATABASE   "postgres"
#define LEAST_DELAY_MS     200
#define SEARCH_DELAY_MS    1000
#define DRAIN_LIMIT_MS     INT64_C(5000)
#define POOL_PASSWD_PREFIX "TEXT"

static enum decide_lag_log lag_log_of(const struct conf *conf)
{
    if (conf->sr_check_period_ms == 0)
        return DECIDE_LAG_NONE;
    switch (conf->log_standby_delay) {
    case CONF_DELAY_LOG_ALWAYS:
        return DECIDE_LAG_ALWAYS;
    case CONF_DELAY_LOG_OVER:
        return DECIDE_LAG_OVER;
    case CONF_DELAY_LOG_NONE:
        break;
    }
    return DECIDE_LAG_NONE;
}

static void rule_of(
    const struct conf_node *node, enum conf_clustering_mode mode, struct decide_rule *out)
{
    out->exists = true;
    out->may_fail = (node->backend_flag & CONF_BACKEND_DISALLOW_FAILOVER) == 0;
    out->always_primary = (node->backend_flag & CONF_BACKEND_ALWAYS_PRIMARY) != 0 &&
                          (mode == CONF_CLUSTER_STREAMING || mode == CONF_CLUSTER_LOGICAL);
    out->health_check = node->health_check_period_ms > 0;
    out->max_retries = node->health_check_max_retries;
    out->timeout_ms = node->health_check_timeout_ms;
    snprintf(
        out->application_name, sizeof out->application_name, "%s", node->backend_application_name);
    snprintf(
        out->host, sizeof out->host, "%.*s", (int)sizeof out->host - 1, node->backend_hostname);
    out->port = node->backend_port;
    out->weight = node->backend_weight;
}

static void failover_rules(const struct conf *conf, struct decide_rules *out)
{
    int64_t drain_ms = conf->failover_wait_ms / 2;

    out->error_is_loss = conf->failover_on_backend_error;
    out->shutdown_is_loss = conf->failover_on_backend_shutdown;
    out->auto_promote = conf->auto_promote;
    out->has.failover_command = conf->failover_command[0] != '\0';
    out->has.failback_command = conf->failback_command[0] != '\0';
    out->has.follow_primary_command = conf->follow_primary_command[0] != '\0';
    out->search_limit_us = conf->search_primary_node_timeout_ms * 1000;
    /* Writes wait while transactions may go on: not so long that they fail. */
    out->drain_limit_us = (drain_ms < DRAIN_LIMIT_MS ? drain_ms : DRAIN_LIMIT_MS) * 1000;
}

void monitor_conf_rules(const struct conf *conf, struct decide_rules *out)
{
    int i;

    memset(out, 0, sizeof *out);
    out->mode = conf->backend_clustering_mode == CONF_CLUSTER_STREAMING ? DECIDE_MODE_STREAMING
                                                                        : DECIDE_MODE_MAIN;
    out->returns = !conf_writes_everywhere(conf);
    out->auto_failback = conf->auto_failback;
    out->auto_failback_interval_us = conf->auto_failback_interval_ms * 1000;
    out->delay_threshold_bytes = conf->sr_check_period_ms > 0 ? conf->delay_threshold_bytes : 0;
    out->delay_threshold_us =
        conf->sr_check_period_ms > 0 ? conf->delay_threshold_by_time_ms * 1000 : 0;
    out->delay_from_command =
        conf->sr_check_period_ms > 0 && conf->replication_delay_source_cmd[0] != '\0';
    out->detach_false_primary = conf->detach_false_primary;
    out->lag_log = lag_log_of(conf);
    failover_rules(conf, out);
    out->nnodes = conf->nnodes;
    for (i = 0; i < conf->nnodes; i++)
        if (conf_has_node(conf, i))
            rule_of(&conf->nodes[i], conf->backend_clustering_mode, &out->node[i]);
}

void monitor_conf_drop_password(char **password)
{
    mem_free_secret(*password);
    *password = NULL;
}

static bool load_key(struct secret *key)
{
    struct err err = {0};
    char *path = passwd_key_path(NULL);
    bool ok = path != NULL && passwd_key_load(path, key, NULL, &err) == 0;

    mem_free(path);
    return ok;
}

static char *copy_secret(struct slice from)
{
    char *out = mem_alloc_secret(from.n + 1);

    memcpy(out, from.p, from.n);
    return out;
}

/* Opens one stored value; NULL when it cannot serve as a password (md5 and SCRAM verifiers, no
 * key). */
static char *open_value(const struct passwd_value *v, const char *user)
{
    struct err err = {0};
    struct secret key = {0};
    struct cred cred = {0};
    char *out = NULL;
    bool have_key = v->kind == PASSWD_AES || v->kind == PASSWD_GCM ? load_key(&key) : false;

    if (passwd_open_value(v, have_key ? &key : NULL, &cred, &err) == -1)
        log_err(LVL_WARNING, &err);
    else if (cred.kind == CRED_PLAIN)
        out = copy_secret(secret_slice(&cred.text));
    else
        log_at_detail(LVL_WARNING, NULL, "Store it with pg_enc, or set sr_check_password.",
            "the stored password of \"%s\" is a digest: it cannot be used to ask servers", user);
    cred_free(&cred);
    secret_free(&key);
    return out;
}

/* The password of the settings, which may be written as in pool_passwd, else pool_passwd's. */
static char *find_password(const struct conf_gen *gen, const char *user, const char *given)
{
    const struct conf *conf = conf_of(gen);
    const struct passwd_entry *entry;
    struct passwd_table *table;
    struct passwd_value value;
    struct err err = {0};
    char path[PATH_MAX];
    char *out = NULL;

    if (given[0] != '\0') {
        value = passwd_value_of(slice_of_str(given));
        return open_value(&value, user);
    }
    if (conf->pool_passwd[0] == '\0' ||
        conf_path(gen, conf->pool_passwd, path, sizeof path, &err) == -1)
        return NULL;
    table = passwd_load(path, NULL, NULL, &err);
    if (table == NULL)
        return NULL; /* whoever authenticates clients says so */
    entry = passwd_find(table, slice_of_str(user));
    if (entry != NULL)
        out = open_value(&entry->value, user);
    passwd_free(&table);
    return out;
}

static const char *or_else(const char *text, const char *otherwise)
{
    return text[0] == '\0' ? otherwise : text;
}

void monitor_conf_target(
    const struct conf_gen *gen, int id, struct probe_target *t, char **password)
{
    const struct conf *conf = conf_of(gen);
    const struct conf_node *node = &conf->nodes[id];
    const char *given = "";

    memset(t, 0, sizeof *t);
    server_login_place(gen, id, t);
    if (conf->sr_check_user[0] != '\0') {
        t->user = conf->sr_check_user;
        t->database = or_else(conf->sr_check_database, DEFAULT_DATABASE);
        given = conf->sr_check_password;
    } else {
        t->user = or_else(node->health_check_user, DEFAULT_USER);
        t->database = or_else(node->health_check_database, DEFAULT_DATABASE);
        given = node->health_check_password;
    }
    monitor_conf_drop_password(password);
    *password = find_password(gen, t->user, given);
    t->password = *password == NULL ? "" : *password;
    t->connect_timeout_ms = node->connect_timeout_ms;
    t->timeout_ms = node->health_check_timeout_ms;
    t->keep_open = node->health_check_period_ms > 0 || conf->sr_check_period_ms > 0;
}

void monitor_conf_order_target(
    const struct conf_gen *gen, int id, struct probe_target *t, char **password)
{
    const struct conf *conf = conf_of(gen);

    monitor_conf_target(gen, id, t, password);
    t->keep_open = false;
    if (conf->recovery_user[0] == '\0')
        return;
    t->user = conf->recovery_user;
    t->database = or_else(conf->recovery_database, DEFAULT_DATABASE);
    monitor_conf_drop_password(password);
    *password = find_password(gen, t->user, conf->recovery_password);
    t->password = *password == NULL ? "" : *password;
}

static int64_t lesser_period(int64_t a, int64_t b)
{
    if (a == 0 || b == 0)
        return a + b;
    return a < b ? a : b;
}

static int count_nodes(const struct conf *conf)
{
    int n = 0;
    int i;

    for (i = 0; i < conf->nnodes; i++)
        n += conf_has_node(conf, i) ? 1 : 0;
    return n;
}

int64_t monitor_conf_delay_ms(const struct conf *conf, const struct decide *d, int id)
{
    const struct conf_node *node = &conf->nodes[id];
    int64_t period = lesser_period(node->health_check_period_ms, conf->sr_check_period_ms);
    int64_t soon = node->health_check_retry_delay_ms;
    bool search = d->rules.mode == DECIDE_MODE_STREAMING && d->view.primary == VIEW_NO_NODE;

    if (soon < LEAST_DELAY_MS)
        soon = LEAST_DELAY_MS;
    /* Without a period servers are left alone, but for the search for a primary among several, and
     * for those that clients complained of. */
    if (period == 0 && search && count_nodes(conf) < 2)
        search = false;
    if (search && soon > SEARCH_DELAY_MS)
        soon = SEARCH_DELAY_MS;
    if (period == 0 && !search)
        return d->node[id].suspected || d->view.node[id].status == VIEW_DOWN ? soon : -1;
    if (period == 0)
        return soon;
    return decide_is_urgent(d, id) && soon < period ? soon : period;
}
