/* SPDX-License-Identifier: PostgreSQL
 * pgpool_import_auth.c: who may come in: auth_type becomes pool_hba.conf, the users' file
 * pool_passwd. Runs in: the command line. Databases that PgBouncer did not know stay closed: the
 * rules name those it knew. No secret is printed. */
#include "config.h"

#include <string.h>

#include "auth/passwd.h"
#include "bin/pgpool/pgpool_import.h"

static const char *const about_auth[] = {"auth_type", "auth_file", "auth_hba_file",
    "auth_ident_file", "auth_ldap_options", "client_tls_sslmode"};

bool imp_is_about_auth(const char *key)
{
    size_t i;

    for (i = 0; i < sizeof about_auth / sizeof about_auth[0]; i++)
        if (strcmp(about_auth[i], key) == 0)
            return true;
    return false;
}

static const char *setting(const struct imp *imp, const char *key, const char *initial)
{
    const struct imp_item *item = imp_find(imp, "pgbouncer", key);

    return item == NULL ? initial : item->value;
}

/* Writes a name as pool_hba.conf has it. */
static void put_name(struct buf *out, const char *name)
{
    buf_put_byte(out, '"');
    for (; *name != '\0'; name++)
        buf_printf(out, *name == '"' ? "\"%c" : "%c", *name);
    buf_put_byte(out, '"');
}

/* ---- pool_passwd ---- */

static void put_escaped(struct buf *out, const char *s)
{
    for (; *s != '\0'; s++) {
        if (*s == ':' || *s == '\\')
            buf_put_byte(out, '\\');
        buf_put_byte(out, *s);
    }
}

static void put_user(struct imp *imp, const char *user, const char *secret)
{
    bool is_md5 = strncmp(secret, "md5", 3) == 0 && strlen(secret) == 35 &&
                  strspn(secret + 3, "0123456789abcdef") == 32;
    bool is_plain = !is_md5 && strncmp(secret, "SCRAM-SHA-256$", 14) != 0;

    passwd_put_line(slice_of_str(user),
        slice_of_str(is_plain ? arena_printf(imp->arena, "TEXT%s", secret) : secret), &imp->passwd);
}

/* A text between double quotes at *pp, in which two stand for one; NULL when there is none. */
static const char *take_quoted(struct imp *imp, const char **pp)
{
    const char *p = *pp + strspn(*pp, " \t\r");
    char *out = arena_alloc(imp->arena, strlen(p) + 1);
    size_t n = 0;

    if (*p++ != '"')
        return NULL;
    for (; *p != '\0' && (*p != '"' || p[1] == '"'); p++) {
        if (*p == '"')
            p++;
        out[n++] = *p;
    }
    out[n] = '\0';
    if (*p != '"')
        return NULL;
    *pp = p + 1;
    return out;
}

/* One line of the users' file; -1: it cannot be used. */
static int take_user(struct imp *imp, const char *line)
{
    const char *user = take_quoted(imp, &line);
    const char *secret = user == NULL ? NULL : take_quoted(imp, &line);

    if (secret == NULL || *user == '\0')
        return -1;
    if (imp->users.len > 0)
        buf_put_byte(&imp->users, ',');
    put_name(&imp->users, user);
    if (*secret == '\0')
        return -1;
    put_user(imp, user, secret);
    return 0;
}

static int take_users(struct imp *imp, const struct imp_item *item, struct err *err)
{
    const char *path = imp_path(imp, item->value);
    struct buf text = {0};
    const char *p;
    int line = 0;
    int n = 0;

    if (imp_slurp(path, &text, err) == -1) {
        buf_free(&text);
        return -1;
    }
    for (p = text.data; *p != '\0';) {
        size_t len = strcspn(p, "\n");
        const char *one = arena_strndup(imp->arena, p, len);

        line++;
        one += strspn(one, " \t\r");
        if (*one != '\0' && *one != ';' && *one != '#') {
            if (take_user(imp, one) == 0)
                n++;
            else
                imp_left(imp, item, NULL, "%s:%d is no \"user\" \"secret\", or one is empty", path,
                    line);
        }
        p += len + (p[len] == '\n');
    }
    buf_free(&text);
    imp_took(imp, item, NULL, "pool_passwd: %d user%s of %s", n, n == 1 ? "" : "s", path);
    return 0;
}

/* True when pool_passwd has a line of that user. */
static bool has_user(const struct imp *imp, const char *user)
{
    struct buf want = {.is_secret = true};
    bool found = false;
    const char *p = imp->passwd.data;
    const char *end = p + imp->passwd.len;

    put_escaped(&want, user);
    buf_put_byte(&want, ':');
    while (p != NULL && p < end && !found) {
        const char *eol = memchr(p, '\n', (size_t)(end - p));

        found = (size_t)(end - p) >= want.len && memcmp(p, want.data, want.len) == 0;
        p = eol == NULL ? NULL : eol + 1;
    }
    buf_free(&want);
    return found;
}

/* The password of a database's own user, with which PgBouncer logs in to the server. */
static void take_database_password(struct imp *imp, const struct imp_item *item)
{
    const char *user = NULL;
    const char *password = NULL;
    struct imp_pair *pairs = NULL;

    if (imp_split(imp, item->value, &pairs) == -1)
        return;
    for (; pairs != NULL; pairs = pairs->next) {
        if (strcmp(pairs->key, "user") == 0)
            user = pairs->value;
        if (strcmp(pairs->key, "password") == 0)
            password = pairs->value;
    }
    if (password == NULL)
        return;
    if (user == NULL || *password == '\0' || strcmp(item->key, "*") == 0) {
        imp_left(imp, item, "password", "a password without a user of its own has no place");
    } else if (has_user(imp, user)) {
        imp_left(imp, item, "password", "pool_passwd has a line of \"%s\" already", user);
    } else {
        put_user(imp, user, password);
        imp_took(imp, item, "password",
            "pool_passwd: a line of \"%s\"; who knows the password may now log in as that user, "
            "too",
            user);
    }
}

/* ---- pool_hba.conf ---- */

static bool is_listed(const struct imp *imp, const struct imp_item *item)
{
    return strcmp(item->section, "databases") == 0 && !imp_is_replaced(item) && !item->is_left &&
           strcmp(item->key, "pgbouncer") != 0;
}

/* A database of another server that could not be taken over is none of this one. */
static void put_left(struct imp *imp)
{
    const struct imp_item *item;

    for (item = imp->first; item != NULL; item = item->next) {
        if (!item->is_left)
            continue;
        buf_printf(&imp->hba, "local ");
        put_name(&imp->hba, item->key);
        buf_printf(&imp->hba, " all reject\nhost ");
        put_name(&imp->hba, item->key);
        buf_printf(&imp->hba, " all all reject\n");
    }
}

/* True when users beside those of the users' file are found. */
static bool has_query(struct imp *imp)
{
    const struct imp_item *item;
    struct imp_pair *pair;

    if (imp_find(imp, "pgbouncer", "auth_user") != NULL)
        return true;
    for (item = imp->first; item != NULL; item = item->next) {
        if (!is_listed(imp, item) || imp_split(imp, item->value, &pair) == -1)
            continue;
        for (; pair != NULL; pair = pair->next)
            if (strcmp(pair->key, "auth_user") == 0)
                return true;
    }
    return false;
}

/* PgBouncer's trust is for names that it knows, ours would be for any. */
static void put_users(struct imp *imp)
{
    bool is_trust = strcmp(setting(imp, "auth_type", "md5"), "trust") == 0;

    if (is_trust && imp->users.len > 0 && !has_query(imp))
        buf_put(&imp->hba, imp->users.data, imp->users.len);
    else
        buf_printf(&imp->hba, "all");
}

/* The lines for one database; NULL: all. */
static void put_rules(struct imp *imp, const char *database, const char *method)
{
    static const char *const types[] = {"local", "host", "hostssl"};
    bool is_tls = imp->client_tls_required || strcmp(method, "cert") == 0;
    int i;

    for (i = 0; i < 3; i++) {
        if ((i == 0 && strcmp(method, "cert") == 0) || (i == 1 && is_tls) || (i == 2 && !is_tls))
            continue;
        buf_printf(&imp->hba, "%s ", types[i]);
        if (database == NULL)
            buf_printf(&imp->hba, "all");
        else
            put_name(&imp->hba, database);
        buf_put_byte(&imp->hba, ' ');
        put_users(imp);
        buf_printf(&imp->hba, " %s%s", i == 0 ? "" : "all ", method);
        if (i == 2 && strncmp(setting(imp, "client_tls_sslmode", ""), "verify", 6) == 0 &&
            strcmp(method, "cert") != 0)
            buf_printf(&imp->hba, " clientcert=verify-ca");
        buf_put_byte(&imp->hba, '\n');
    }
}

static void put_all_rules(struct imp *imp, const char *method)
{
    const struct imp_item *item;

    if (imp_find(imp, "databases", "*") != NULL) {
        put_rules(imp, NULL, method);
        return;
    }
    for (item = imp->first; item != NULL; item = item->next)
        if (is_listed(imp, item))
            put_rules(imp, item->key, method);
    put_rules(imp, "pgbouncer", method);
    put_rules(imp, "pgpool", method);
}

/* A name within a regular expression between double quotes. */
static void put_plain(struct buf *out, const char *name)
{
    for (; *name != '\0'; name++) {
        unsigned char c = (unsigned char)*name;

        if (c < 0x80 && !(c >= '0' && c <= '9') && !((c | 0x20) >= 'a' && (c | 0x20) <= 'z') &&
            c != '_')
            buf_put_byte(out, '\\');
        buf_printf(out, c == '"' ? "\"%c" : "%c", c);
    }
    buf_put_byte(out, '|');
}

/* In front of PgBouncer's own rules: "all" there are the databases that it knows. */
static void put_closed(struct imp *imp)
{
    const struct imp_item *item;
    struct buf names = {0};

    if (imp_find(imp, "databases", "*") != NULL)
        return;
    for (item = imp->first; item != NULL; item = item->next)
        if (is_listed(imp, item))
            put_plain(&names, item->key);
    buf_printf(&imp->hba, "# Databases that PgBouncer did not know.\n");
    buf_printf(&imp->hba, "local \"/^(?!(?:%.*spgbouncer|pgpool)$)\" all reject\n", (int)names.len,
        names.data);
    buf_printf(&imp->hba, "host \"/^(?!(?:%.*spgbouncer|pgpool)$)\" all all reject\n\n",
        (int)names.len, names.data);
    buf_free(&names);
}

/* PgBouncer's rules have the grammar of pg_hba.conf: they are taken as they are. */
static int copy_rules(
    struct imp *imp, const char *key, const char *to, struct buf *out, struct err *err)
{
    const struct imp_item *item = imp_find(imp, "pgbouncer", key);
    struct buf text = {0};
    int rc;

    if (item == NULL || item->value[0] == '\0')
        return 0;
    rc = imp_slurp(imp_path(imp, item->value), &text, err);
    if (rc == 0) {
        buf_put(out, text.data, text.len - 1);
        imp_took(imp, item, NULL, "%s: its lines", to);
    }
    buf_free(&text);
    return rc;
}

static void take_tls(struct imp *imp)
{
    const struct imp_item *item = imp_find(imp, "pgbouncer", "client_tls_sslmode");
    bool is_on = item != NULL && strcmp(item->value, "disable") != 0 && item->value[0] != '\0';

    buf_printf(&imp->conf, "ssl = %s\n", is_on ? "on" : "off");
    if (!is_on && (imp->tls.mode == NULL || strcmp(imp->tls.mode, "prefer") == 0 ||
                      strcmp(imp->tls.mode, "allow") == 0))
        buf_printf(&imp->said,
            "ssl = off: connections to servers are not encrypted either, which PgBouncer would do "
            "where it can; backend_ssl_modeN = 'require' does it\n");
    imp->client_tls_required =
        is_on && strcmp(item->value, "allow") != 0 && strcmp(item->value, "prefer") != 0;
    if (item != NULL)
        imp_took(imp, item, NULL, "ssl = %s%s", is_on ? "on" : "off",
            imp->client_tls_required ? ", pool_hba.conf: hostssl" : "");
    if (item != NULL && imp->client_tls_required &&
        strcmp(setting(imp, "auth_type", "md5"), "hba") == 0)
        imp_left(imp, item, NULL,
            "the rules of auth_hba_file are copied as they are: write hostssl for host%s, or "
            "clients without %s are let in",
            strncmp(item->value, "verify", 6) == 0 ? " and clientcert=verify-ca behind the method"
                                                   : "",
            strncmp(item->value, "verify", 6) == 0 ? "TLS or a certificate" : "TLS");
}

/* The method of pool_hba.conf, or NULL when there is none. */
static const char *method_of(struct imp *imp, const char *type)
{
    static const char *const same[] = {"trust", "md5", "scram-sha-256", "cert", "pam"};
    size_t i;

    for (i = 0; i < sizeof same / sizeof same[0]; i++)
        if (strcmp(same[i], type) == 0)
            return same[i];
    if (strcmp(type, "any") == 0)
        return "trust";
    if (strcmp(type, "plain") == 0)
        return "password";
    if (strcmp(type, "ldap") == 0)
        return arena_printf(imp->arena, "ldap %s", setting(imp, "auth_ldap_options", ""));
    return NULL;
}

static int take_type(struct imp *imp, struct err *err)
{
    const struct imp_item *item = imp_find(imp, "pgbouncer", "auth_type");
    const char *type = item == NULL ? "md5" : item->value;
    const char *method = method_of(imp, type);
    bool is_hba = strcmp(type, "hba") == 0;

    if (!is_hba && method == NULL) {
        err_set(err, "F0000", "auth_type \"%s\" has no equivalent", type);
        return -1;
    }
    buf_printf(&imp->conf, "enable_pool_hba = on\n");
    put_left(imp);
    if (is_hba)
        put_closed(imp);
    if (is_hba && copy_rules(imp, "auth_hba_file", "pool_hba.conf", &imp->hba, err) == -1)
        return -1;
    if (!is_hba)
        put_all_rules(imp, method);
    if (item != NULL)
        imp_took(imp, item, NULL, "enable_pool_hba = on, pool_hba.conf%s%s", is_hba ? "" : ": ",
            is_hba ? "" : method);
    if (strcmp(type, "trust") == 0 && item != NULL && has_query(imp))
        imp_left(imp, item, NULL,
            "clients come in by any name, also by one that auth_query does not find");
    if (strcmp(type, "any") == 0 && item != NULL)
        imp_left(imp, item, NULL, "clients come in by any name, but that name goes to the server");
    item = imp_find(imp, "pgbouncer", "auth_hba_file");
    if (item != NULL && !is_hba)
        imp_left(imp, item, NULL, "auth_type is not hba, and PgBouncer does not read it either");
    item = imp_find(imp, "pgbouncer", "auth_ldap_options");
    if (item != NULL && strcmp(type, "ldap") == 0)
        imp_took(imp, item, NULL, "pool_hba.conf: options of ldap");
    else if (item != NULL)
        imp_left(imp, item, NULL, "auth_type is not ldap");
    return copy_rules(imp, "auth_ident_file", "pg_ident.conf", &imp->ident, err);
}

int imp_auth(struct imp *imp, struct err *err)
{
    const struct imp_item *item = imp_find(imp, "pgbouncer", "auth_file");

    buf_printf(&imp->conf, "\n# Clients.\n");
    take_tls(imp);
    if (item != NULL && item->value[0] != '\0' && take_users(imp, item, err) == -1)
        return -1;
    if (take_type(imp, err) == -1)
        return -1;
    for (item = imp->first; item != NULL; item = item->next)
        if (strcmp(item->section, "databases") == 0 && !imp_is_replaced(item))
            take_database_password(imp, item);
    buf_printf(&imp->conf, "pool_passwd = '%s'\n", imp->passwd.len == 0 ? "" : "pool_passwd");
    return 0;
}
