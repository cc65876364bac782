/* SPDX-License-Identifier: PostgreSQL
 * server_login.c: how pgpool itself logs in to a server.
 * Runs in: control, invalidator. Never logs a password. */
#include "config.h"

#include "process/common/server_login.h"

#include <limits.h>
#include <string.h>

#include "auth/passwd.h"
#include "base/log.h"
#include "base/mem.h"
#include "config/conf.h"
#include "probe/probe.h"
#include "process/common/server_ca.h"

static bool load_key(const char *file, struct secret *key)
{
    bool is_named = file != NULL && file[0] != '\0';
    struct err err = {0};
    char *path = is_named ? NULL : passwd_key_path(NULL);
    bool ok = passwd_key_load(is_named ? file : path == NULL ? "" : path, key, NULL, &err) == 0;

    mem_free(path);
    return ok;
}

static void open_value(const struct passwd_value *v, const char *user, const char *setting,
    const char *key_file, struct secret *out)
{
    struct err err = {0};
    struct secret key = {0};
    struct cred cred = {0};
    bool is_sealed = v->kind == PASSWD_AES || v->kind == PASSWD_GCM;
    bool have_key = is_sealed && load_key(key_file, &key);

    if (passwd_open_value(v, have_key ? &key : NULL, &cred, &err) == -1)
        log_err(LVL_WARNING, &err);
    else if (cred.kind == CRED_PLAIN)
        secret_set(out, secret_slice(&cred.text));
    else
        log_at(LVL_WARNING,
            "the stored password of \"%s\" is a digest: store it with pg_enc, or set %s", user,
            setting);
    cred_free(&cred);
    secret_free(&key);
}

void server_login_password(const struct conf_gen *gen, const char *user, const char *given,
    const char *setting, const char *key_file, struct secret *out)
{
    const struct conf *conf = conf_of(gen);
    const struct passwd_entry *entry;
    struct passwd_table *table;
    struct passwd_value value;
    struct err err = {0};
    char path[PATH_MAX];

    secret_free(out);
    if (given[0] != '\0') {
        value = passwd_value_of(slice_of_str(given));
        open_value(&value, user, setting, key_file, out);
        return;
    }
    if (conf->pool_passwd[0] == '\0' ||
        conf_path(gen, conf->pool_passwd, path, sizeof path, &err) == -1)
        return;
    table = passwd_load(path, NULL, NULL, &err);
    if (table == NULL)
        return; /* whoever authenticates clients says so */
    entry = passwd_find(table, slice_of_str(user));
    if (entry != NULL)
        open_value(&entry->value, user, setting, key_file, out);
    passwd_free(&table);
}

const char *server_login_min_tls(const struct conf_node *n)
{
    static const char *const words[] = {
        [CONF_TLS_ANY] = "",
        [CONF_TLS_1_0] = "TLSv1",
        [CONF_TLS_1_1] = "TLSv1.1",
        [CONF_TLS_1_2] = "TLSv1.2",
        [CONF_TLS_1_3] = "TLSv1.3",
    };

    return words[n->backend_ssl_min_protocol_version];
}

/* TLS as links have it: allow and prefer hold when ssl is on. */
void server_login_place(const struct conf_gen *gen, int node, struct probe_target *t)
{
    static const char *const words[] = {
        [CONF_SSL_DISABLE] = "disable",
        [CONF_SSL_ALLOW] = "allow",
        [CONF_SSL_PREFER] = "prefer",
        [CONF_SSL_REQUIRE] = "require",
        [CONF_SSL_VERIFY_CA] = "verify-ca",
        [CONF_SSL_VERIFY_FULL] = "verify-full",
    };
    const struct conf *conf = conf_of(gen);
    const struct conf_node *n = &conf->nodes[node];
    bool has_own = n->backend_ssl_ca_cert[0] != '\0';
    bool wants_tls = conf->ssl || n->backend_ssl_mode >= CONF_SSL_REQUIRE;
    bool is_tcp = n->backend_hostname[0] != '\0' && n->backend_hostname[0] != '/';

    t->host = n->backend_hostname;
    t->port = n->backend_port;
    t->sslmode = wants_tls ? words[n->backend_ssl_mode] : "disable";
    t->sslrootcert = has_own ? n->backend_ssl_ca_cert : conf->ssl_ca_cert;
    if (is_tcp && wants_tls && !has_own && conf->ssl_ca_cert_dir[0] != '\0') {
        server_ca_file(gen, t->room, sizeof t->room);
        t->sslrootcert = t->room;
    }
    t->sslcrl = n->backend_ssl_crl_file;
    t->sslcert = n->backend_ssl_cert;
    t->sslkey = n->backend_ssl_key;
    t->ssl_min = server_login_min_tls(n);
}
