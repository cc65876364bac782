/* SPDX-License-Identifier: PostgreSQL
 * pgpool_auth.c: pgpool --check-auth: follows one user through the rules, the stores of secrets,
 * and to each server, and says where it would stop. Runs in: the command line, without a running
 * pgpool. It takes no client's password: it says who would judge it. Never prints a secret. */
#include "config.h"

#include "bin/pgpool/pgpool_auth.h"

#include <libpq-fe.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "auth/auth_plan.h"
#include "auth/ident.h"
#include "auth/passwd.h"
#include "base/mem.h"
#include "bin/pgpool/pgpool_opts.h"
#include "bin/pgpool/pgpool_server.h"
#include "config/conf.h"
#include "session/session_auth.h"

struct check {
    const struct pgpool_opts *opts;
    const struct conf_gen *gen;
    const struct conf *conf;
    const char *user;
    const char *database;
    struct passwd_table *passwd;
    struct secret key;
    struct cred stored;
    struct cred mapped;
    char *server_user; /* NULL: the same */
    const char *source;
    unsigned line; /* of pool_passwd */
    PGconn *asker; /* who looks things up, or NULL */
    enum auth_server server[CONF_MAX_NODES];
    unsigned nproblems;
};

static const char *const kind_text[] = {
    "nothing", "a password that can be read", "an md5 password", "a SCRAM verifier"};

static void report_stderr(const char *file, unsigned line, const char *text, void *ctx)
{
    (void)ctx;
    fprintf(stderr, "%s:%u: error: %s\n", file, line, text);
}

int pgpool_auth_check_files(const struct pgpool_opts *opts, const struct conf_gen *gen)
{
    char path[PROC_PATH_BYTES];
    struct err err = {0};
    struct ident *id = NULL;
    struct hba *hba;
    int rc = 0;

    if (!conf_of(gen)->enable_pool_hba)
        return 0;
    if (session_hba_path(gen, &opts->paths, path, sizeof path) == -1)
        return -1;
    hba = hba_load(path, session_hba_flags(), report_stderr, NULL);
    if (hba == NULL)
        rc = -1;
    hba_free(&hba);
    if (conf_path(gen, "pg_ident.conf", path, sizeof path, &err) == 0 && access(path, F_OK) == 0) {
        id = ident_load(path, 0, report_stderr, NULL);
        rc = id == NULL ? -1 : rc;
        ident_free(&id);
    }
    return rc;
}

static void problem(struct check *k, const char *where, const struct err *err)
{
    k->nproblems++;
    printf("%s%s\n", where, err->msg);
    if (err->detail[0] != '\0')
        printf("      %s\n", err->detail);
    if (err->hint[0] != '\0')
        printf("      %s\n", err->hint);
}

/* ---- what is stored ---- */

static void open_passwd(struct check *k)
{
    char path[PROC_PATH_BYTES];
    char *key_path = passwd_key_path(k->opts->paths.key[0] != '\0' ? k->opts->paths.key : NULL);
    struct err err = {0};
    struct err ignored = {0};

    if (key_path != NULL)
        (void)passwd_key_load(key_path, &k->key, NULL, &ignored);
    mem_free(key_path);
    if (*k->conf->pool_passwd == '\0')
        return;
    if (conf_path(k->gen, k->conf->pool_passwd, path, sizeof path, &err) == 0)
        k->passwd = passwd_load(path, NULL, NULL, &err);
    if (k->passwd == NULL && strcmp(err.sqlstate, "58P01") != 0)
        problem(k, "pool_passwd: ", &err);
}

/* Opens an entry's value; says so when it does not open. */
static void open_entry(struct check *k, const struct passwd_value *v, struct cred *out)
{
    struct err err = {0};

    if (passwd_open_value(v, &k->key, out, &err) == -1)
        problem(k, "pool_passwd: ", &err);
}

static bool password_of(struct check *k, const char *user, struct cred *out)
{
    const struct passwd_entry *e =
        k->passwd == NULL ? NULL : passwd_find(k->passwd, slice_of_str(user));
    struct err err = {0};

    return e != NULL && passwd_open_value(&e->value, &k->key, out, &err) == 0;
}

/* Looks for a server that may be asked; the connection stays open for further questions. */
static void open_asker(struct check *k)
{
    const char *own = *k->conf->sr_check_database != '\0' ? k->conf->sr_check_database : "postgres";
    const char *database = *k->conf->auth_dbname != '\0'  ? k->conf->auth_dbname
                           : *k->conf->auth_query != '\0' ? k->database
                                                          : own;
    struct cred cred = {0};
    const char *password = "";
    char text[512] = "";
    int i;

    if (*k->conf->auth_user == '\0')
        return;
    if (password_of(k, k->conf->auth_user, &cred) && cred.kind == CRED_PLAIN)
        password = cred.text.bytes;
    for (i = 0; i < k->conf->nnodes && k->asker == NULL; i++)
        if (conf_has_node(k->conf, i))
            k->asker = server_connect(
                &k->conf->nodes[i], k->conf->auth_user, database, password, text, sizeof text);
    if (k->asker == NULL) {
        k->nproblems++;
        printf("  look-up: cannot connect as auth_user \"%s\": %s\n", k->conf->auth_user, text);
    }
    cred_free(&cred);
}

static void find_secret(struct check *k)
{
    const struct passwd_entry *e =
        k->passwd == NULL ? NULL : passwd_find(k->passwd, slice_of_str(k->user));
    struct err err = {0};

    k->source = "neither pool_passwd nor auth_query knows the user";
    if (e != NULL) {
        k->source = "pool_passwd";
        k->line = e->line;
        open_entry(k, &e->value, &k->stored);
        if (e->server_user.n > 0) {
            k->server_user = mem_strndup(e->server_user.p, e->server_user.n);
            open_entry(k, &e->server_value, &k->mapped);
        }
        return;
    }
    if (k->asker == NULL)
        return;
    switch (server_look_up(k->asker, k->conf->auth_query, k->user, &k->stored, &err)) {
    case 1:
        k->source = "auth_query";
        break;
    case 0:
        k->source = "auth_query returns no password: no such user, or locked, or expired";
        break;
    default:
        problem(k, "  look-up: ", &err);
        break;
    }
}

static void print_secret(const struct check *k)
{
    printf("  secret: %s", k->source);
    if (k->line > 0)
        printf(", line %u", k->line);
    if (k->stored.kind != CRED_NONE)
        printf(": %s", kind_text[k->stored.kind]);
    printf("\n");
    if (k->server_user != NULL)
        printf("  servers know the user as \"%s\", with %s\n", k->server_user,
            kind_text[k->mapped.kind]);
}

/* ---- servers ---- */

static const char *user_for_servers(const struct check *k)
{
    return k->server_user != NULL ? k->server_user : k->user;
}

static void ask_servers(struct check *k)
{
    char text[512];
    int i;

    for (i = 0; i < k->conf->nnodes; i++) {
        if (!conf_has_node(k->conf, i))
            continue;
        k->server[i] = server_ask_method(
            &k->conf->nodes[i], user_for_servers(k), k->database, text, sizeof text);
        if (k->server[i] == AUTH_SERVER_UNKNOWN)
            k->nproblems++;
        printf("  node %d (%s:%d): %s%s\n", i, k->conf->nodes[i].backend_hostname,
            k->conf->nodes[i].backend_port, k->server[i] == AUTH_SERVER_UNKNOWN ? "" : "asks for ",
            k->server[i] == AUTH_SERVER_UNKNOWN ? text : auth_server_text(k->server[i]));
    }
}

/* The first server's way stands for all where the plan depends on it. */
static enum auth_server first_server(const struct check *k)
{
    int i;

    for (i = 0; i < k->conf->nnodes; i++)
        if (conf_has_node(k->conf, i) && k->server[i] != AUTH_SERVER_UNKNOWN)
            return k->server[i];
    return AUTH_SERVER_UNKNOWN;
}

/* A password that can be read is tried: nothing else says as much. */
static void try_server(struct check *k, int i, const struct cred *cred)
{
    char text[512];
    PGconn *c;

    if (cred->kind != CRED_PLAIN)
        return;
    c = server_connect(
        &k->conf->nodes[i], user_for_servers(k), k->database, cred->text.bytes, text, sizeof text);
    if (c == NULL) {
        k->nproblems++;
        printf("    node %d: the password was tried and refused: %s\n", i, text);
    }
    PQfinish(c);
}

static void check_servers(struct check *k, const struct auth_facts *f, const struct auth_plan *plan)
{
    bool got_keys = k->stored.kind == CRED_SCRAM &&
                    (plan->ask == AUTH_ASK_SCRAM || plan->ask == AUTH_ASK_PASSWORD);
    unsigned hold = auth_hold(f, plan, got_keys);
    char where[64];
    struct err err;
    int i;

    for (i = 0; i < k->conf->nnodes; i++) {
        if (!conf_has_node(k->conf, i) || k->server[i] == AUTH_SERVER_UNKNOWN ||
            plan->proof == AUTH_PROOF_SERVER)
            continue;
        err_clear(&err);
        if (auth_give_choose(hold, k->server[i], slice_of_str(user_for_servers(k)), &err) ==
            AUTH_GIVE_IMPOSSIBLE) {
            snprintf(where, sizeof where, "    node %d: ", i);
            problem(k, where, &err);
        } else {
            try_server(k, i, k->server_user != NULL ? &k->mapped : &k->stored);
        }
    }
}

/* ---- rules ---- */

static enum hba_answer in_role(void *ctx, struct slice user, struct slice role)
{
    const struct check *k = ctx;

    (void)user;
    return k->asker == NULL ? HBA_FAIL : server_in_role(k->asker, k->user, role);
}

static void print_plan(struct check *k, struct auth_facts *f)
{
    struct auth_plan plan = auth_plan_make(f);

    if (plan.ask == AUTH_ASK_SERVER_FIRST) {
        f->fresh_link = true;
        plan = auth_plan_make(f);
    }
    printf("    the client is asked: %s; judge: %s\n", auth_ask_text(plan.ask),
        auth_proof_text(plan.proof));
    if (plan.ask == AUTH_ASK_REFUSE || plan.proof == AUTH_PROOF_NEVER) {
        k->nproblems++;
        printf("    refused: %s\n", plan.reason != NULL ? plan.reason : "nobody could check");
        return;
    }
    check_servers(k, f, &plan);
}

static struct auth_facts facts_of(const struct check *k)
{
    return (struct auth_facts){.stored = k->stored.kind,
        .maps_user = k->server_user != NULL,
        .mapped = k->mapped.kind,
        .server = first_server(k),
        .may_relay = *k->conf->auth_user == '\0',
        .allow_clear_text = k->conf->allow_clear_text_frontend_auth};
}

static void check_way_in(
    struct check *k, const struct hba *hba, const char *name, bool tcp, bool tls)
{
    struct hba_oracle oracle = {.ctx = k, .in_role = in_role, .is_same = hba_ask_interfaces};
    struct hba_query q = {
        .tls = tls, .user = slice_of_str(k->user), .database = slice_of_str(k->database)};
    struct auth_facts f = facts_of(k);
    const struct hba_rule *rule;
    struct err err = {0};

    if (tcp)
        q.addr = (struct hba_addr){4, {127, 0, 0, 1}};
    if (hba_match(hba, &q, &oracle, &rule, &err) != HBA_MATCHED) {
        printf("  %s: %s\n", name, err.detail[0] != '\0' ? err.detail : err.msg);
        return;
    }
    printf("  %s: %s, line %u: %s\n", name, rule->file, rule->line, hba_method_text(rule->method));
    f.has_rule = true;
    f.method = rule->method;
    f.clientcert = rule->clientcert;
    f.ldap_password_for_server = rule->ldap.use_password_for_server;
    f.tls = tls;
    f.cert_verified = tls;
    print_plan(k, &f);
}

static void check_rules(struct check *k)
{
    char path[PROC_PATH_BYTES];
    struct auth_facts f = facts_of(k);
    struct hba *hba = NULL;

    if (!k->conf->enable_pool_hba) {
        printf("  rules: enable_pool_hba is off: clients are asked as the server asks\n");
        print_plan(k, &f);
        return;
    }
    if (session_hba_path(k->gen, &k->opts->paths, path, sizeof path) == 0)
        hba = hba_load(path, session_hba_flags(), report_stderr, NULL);
    if (hba == NULL) {
        k->nproblems++;
        printf("  rules: pool_hba.conf cannot be used\n");
        return;
    }
    check_way_in(k, hba, "from a Unix socket", false, false);
    check_way_in(k, hba, "from 127.0.0.1 without TLS", true, false);
    if (k->conf->ssl)
        check_way_in(k, hba, "from 127.0.0.1 with TLS", true, true);
    hba_free(&hba);
}

int pgpool_auth_check_user(const struct pgpool_opts *opts, const struct conf_gen *gen)
{
    struct check k = {.opts = opts, .gen = gen, .conf = conf_of(gen), .user = opts->check_auth};

    k.database = opts->check_database != NULL ? opts->check_database : k.user;
    printf("user \"%s\", database \"%s\"\n", k.user, k.database);
    open_passwd(&k);
    open_asker(&k);
    find_secret(&k);
    print_secret(&k);
    ask_servers(&k);
    check_rules(&k);
    printf(k.nproblems == 0 ? "nothing is in the way\n" : "%u problems\n", k.nproblems);
    PQfinish(k.asker);
    passwd_free(&k.passwd);
    secret_free(&k.key);
    cred_free(&k.stored);
    cred_free(&k.mapped);
    mem_free(k.server_user);
    return k.nproblems == 0 ? PGPOOL_EXIT_OK : PGPOOL_EXIT_FAILED;
}
