/* SPDX-License-Identifier: PostgreSQL
 * pgpool_auth.c: pgpool --check-auth: follows one user through the rules, the stores of secrets,
 * and to each server, and says where it would stop. Runs in: the command line, without a running
 * pgpool. It takes no client's password: it says who would judge it. Never prints a secret. */
#include "config.h"

#include "bin/pgpool/pgpool_auth.h"

#include <errno.h>
#include <libpq-fe.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "auth/auth_plan.h"
#include "auth/ident.h"
#include "auth/passwd.h"
#include "auth/pcp_conf.h"
#include "base/mem.h"
#include "bin/pgpool/pgpool_opts.h"
#include "bin/pgpool/pgpool_server.h"
#include "config/conf.h"
#include "config/pools_conf.h"
#include "login/login_auth.h"

#define PCP_LINE_HINT                                                                              \
    "One line for each administrator: the name, a colon, and what pg_md5 or pg_md5 --scram "       \
    "prints "                                                                                      \
    "for the password."

struct check {
    const struct pgpool_opts *opts;
    const struct conf_gen *gen;
    const struct conf *conf;
    const char *user;
    const char *database;
    const struct pool_settings *st; /* of pools.conf, for this pair */
    struct passwd_table *passwd;
    struct secret key;
    struct cred stored;
    struct cred mapped;
    char *server_user;  /* of pool_passwd; NULL: the same */
    bool is_st_user;    /* the servers know the user as st->user, with `mapped` */
    bool is_final;      /* auth_query has spoken */
    bool is_asked;      /* there is an auth_query */
    bool file_judges;   /* pool_passwd has entries of clients */
    bool was_looked_up; /* it could be asked: nobody else is left to judge who is unknown */
    const char *source;
    unsigned line; /* of pool_passwd */
    bool has_tried_roles;
    PGconn *role_asker; /* who looks memberships up, or NULL */
    struct server_target target[CONF_MAX_NODES];
    enum auth_server server[CONF_MAX_NODES];
    int nservers;
    unsigned nproblems;
};

static const char *const kind_text[] = {
    "nothing", "a password that can be read", "an md5 password", "a SCRAM verifier"};

static void report_stderr(const char *file, unsigned line, const char *text, void *ctx)
{
    (void)ctx;
    fprintf(stderr, "%s:%u: error: %s\n", file, line, text);
}

static void add_passed_over(const char *file, unsigned line, const struct err *problem, void *ctx)
{
    conf_report_err(ctx, CONF_WARNING, file, (int)line, problem);
}

void pgpool_auth_check_passwd(const struct conf_gen *gen, struct conf_report *report)
{
    char path[PROC_PATH_BYTES];
    struct err err = {0};
    struct passwd_table *table;

    if (*conf_of(gen)->pool_passwd == '\0')
        return;
    if (conf_path(gen, conf_of(gen)->pool_passwd, path, sizeof path, &err) == -1) {
        conf_report_err(report, CONF_WARNING, NULL, 0, &err);
        return;
    }
    table = passwd_load(path, add_passed_over, report, &err);
    if (table == NULL && strcmp(err.sqlstate, "58P01") != 0) /* none is fine */
        conf_report_err(report, CONF_WARNING, NULL, 0, &err);
    passwd_free(&table);
}

/* Lines that a log-in passes over. */
static void check_pcp_lines(const char *path, struct slice text, struct conf_report *report)
{
    int number;

    for (number = 1; text.n > 0; number++) {
        const char *end = memchr(text.p, '\n', text.n);
        struct slice line = slice_of(text.p, end == NULL ? text.n : (size_t)(end - text.p));
        size_t taken = line.n + (end != NULL);
        struct pcp_line user;

        text = slice_of(text.p + taken, text.n - taken);
        while (line.n > 0 && strchr(" \t\r", line.p[line.n - 1]) != NULL)
            line.n--;
        if (line.n > 0 && line.p[0] != '#' && !pcp_conf_next(&line, &user))
            conf_report_add(report, CONF_WARNING, path, number, PCP_LINE_HINT,
                "the line is passed over: it has no user with an md5 or a SCRAM verifier");
    }
}

void pgpool_auth_check_pcp(
    const struct pgpool_opts *opts, const struct conf_gen *gen, struct conf_report *report)
{
    const char *name = opts->paths.pcp[0] != '\0' ? opts->paths.pcp : PCP_CONF_NAME;
    char path[PROC_PATH_BYTES];
    struct err err = {0};
    struct stat st;
    char *text = NULL;
    size_t n = 0;

    if (conf_path(gen, name, path, sizeof path, &err) == 0) {
        if (access(path, F_OK) == -1 && errno == ENOENT) {
            conf_report_add(report, CONF_NOTE, path, 0, PCP_LINE_HINT,
                "there is no such file: nobody can use the PCP tools or log in to the console");
            return;
        }
        if (pcp_conf_read(path, &text, &n, &st, &err) == 0) {
            check_pcp_lines(path, slice_of(text, n), report);
            mem_free_secret(text);
            (void)passwd_mode_is_safe(path, &st, PCP_CONF_NAME, &err);
        }
    }
    if (err_is_set(&err))
        conf_report_err(report, CONF_WARNING, NULL, 0, &err);
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

/* The password of whom we are when we ask: pool_passwd's, else that of the settings. */
static void asker_cred(struct check *k, const struct auth_way *way, struct cred *out)
{
    const struct passwd_entry *e =
        k->passwd == NULL ? NULL : passwd_find(k->passwd, slice_of_str(way->user));
    struct passwd_value v = passwd_value_of(slice_of_str(k->conf->sr_check_password));
    struct err err = {0};

    if (e != NULL)
        (void)passwd_open_value(&e->value, &k->key, out, &err);
    else if (v.text.n > 0 && way->node < 0 && strcmp(way->user, k->conf->sr_check_user) == 0)
        (void)passwd_open_value(&v, &k->key, out, &err);
}

/* Connects as `way` says, to the first server that lets us in; NULL when none does, after saying
 * so. `is_needed`: nothing else can help. */
static PGconn *open_asker(struct check *k, const struct auth_way *way, bool is_needed)
{
    char *name = mem_strndup(way->database.p, way->database.n);
    const struct pool_settings *st =
        pools_conf_find(k->conf, way->database, slice_of_str(way->user));
    struct server_target t;
    struct cred cred = {0};
    PGconn *c = NULL;
    char text[512] = "no server is configured";
    int i;

    asker_cred(k, way, &cred);
    for (i = way->node < 0 ? 0 : way->node;
         c == NULL && i < (way->node < 0 ? k->conf->nnodes : way->node + 1); i++)
        if (server_find(k->gen, i, &t))
            c = server_connect(&t, way->user, st->dbname != NULL ? st->dbname : name,
                cred.kind == CRED_PLAIN ? cred.text.bytes : "", text, sizeof text);
    if (c == NULL) {
        k->nproblems += is_needed ? 1 : 0;
        printf(
            "  look-up: cannot connect as \"%s\" to database \"%s\": %s\n", way->user, name, text);
    }
    cred_free(&cred);
    mem_free(name);
    return c;
}

static const char *database_for_servers(const struct check *k)
{
    return k->st->dbname != NULL ? k->st->dbname : k->database;
}

/* Is the server that was asked the one with the database, perhaps in another TLS mode? */
static bool is_own_server(const struct check *k, int node)
{
    struct server_target asked;
    struct server_target own;

    if (node == k->st->target) /* or both are those of pgpool.conf */
        return true;
    return server_find(k->gen, node, &asked) && server_find(k->gen, k->st->target, &own) &&
           asked.port == own.port && strcmp(asked.host, own.host) == 0;
}

/* A server tells only those who have logged in that there is no such database: it is asked about.
 */
static void check_database(struct check *k, PGconn *c)
{
    const char *user = k->st->user != NULL ? k->st->user : k->user;
    char text[512];

    if (server_may_connect(c, user, database_for_servers(k), text, sizeof text))
        return;
    k->nproblems++;
    printf("  server: %s\n", text);
}

/* What auth_query says; false when it says nothing that is final. */
static bool look_up(struct check *k, const struct auth_way *way, bool is_needed)
{
    PGconn *c = open_asker(k, way, is_needed);
    struct err err = {0};
    int rc = -1;

    if (c == NULL)
        return false;
    rc = server_look_up(c, way->query, k->user, &k->stored, &err);
    if (is_own_server(k, way->node))
        check_database(k, c);
    PQfinish(c);
    k->was_looked_up = rc >= 0;
    if (rc == -1) {
        problem(k, "  look-up: ", &err);
        k->nproblems -= is_needed ? 0 : 1;
    }
    if (rc == 0)
        k->source = "auth_query returns no row: no such user, or locked";
    if (rc == 1)
        k->source = "auth_query";
    if (rc == 2)
        k->source = "auth_query returns no password: the user has none, or it has expired";
    return rc > 0;
}

/* Finds the secret as clients are judged: the word of the servers, else that of the file. An md5
 * secret of the servers gives way to the same password, readable, in the file. */
static void find_secret(struct check *k)
{
    const struct passwd_entry *e =
        k->passwd == NULL ? NULL : passwd_find(k->passwd, slice_of_str(k->user));
    struct cred file = {0};
    struct auth_way way;
    bool is_same = false;

    k->source = "neither pool_passwd nor auth_query knows the user";
    way = login_auth_find_way(k->conf, slice_of_str(k->database), slice_of_str(k->user));
    k->is_asked = *way.user != '\0';
    k->file_judges = login_auth_file_judges(k->conf, k->passwd);
    if (e != NULL && !k->file_judges && !k->is_asked) {
        k->source = "pool_passwd has entries of pgpool's own users alone, which judge nobody";
        return;
    }
    if (k->is_asked && (e == NULL || strcmp(way.user, k->user) != 0))
        k->is_final = look_up(k, &way, e == NULL);
    if (e == NULL)
        return;
    open_entry(k, &e->value, &file);
    if (k->stored.kind == CRED_MD5 && file.kind == CRED_PLAIN &&
        cred_check_password(&k->stored, slice_of_str(k->user), secret_slice(&file.text), &is_same,
            NULL, NULL) == -1)
        is_same = false;
    if (!k->is_final || is_same || way.is_clients) {
        k->source = "pool_passwd";
        k->line = e->line;
        cred_copy(&file, &k->stored);
    } else {
        printf(
            "  pool_passwd, line %u: an entry that judges no client: auth_query goes before it\n",
            e->line);
    }
    if (e->server_user.n > 0) {
        k->server_user = mem_strndup(e->server_user.p, e->server_user.n);
        open_entry(k, &e->server_value, &k->mapped);
    }
    cred_free(&file);
}

/* pools.conf may name who we are at the server: its password is in pool_passwd. */
static void find_server_user(struct check *k)
{
    const struct passwd_entry *e;

    if (k->server_user != NULL || k->st->user == NULL || strcmp(k->st->user, k->user) == 0)
        return;
    k->is_st_user = true;
    e = k->passwd == NULL ? NULL : passwd_find(k->passwd, slice_of_str(k->st->user));
    if (e != NULL)
        open_entry(k, &e->value, &k->mapped);
}

static const char *user_for_servers(const struct check *k)
{
    if (k->server_user != NULL)
        return k->server_user;
    return k->is_st_user ? k->st->user : k->user;
}

static void print_secret(const struct check *k)
{
    printf("  secret: %s", k->source);
    if (k->line > 0)
        printf(", line %u", k->line);
    if (k->stored.kind != CRED_NONE)
        printf(": %s", kind_text[k->stored.kind]);
    printf("\n");
    if (k->server_user != NULL || k->is_st_user)
        printf("  servers know the user as \"%s\" (%s), with %s\n", user_for_servers(k),
            k->is_st_user ? "pools.conf" : "pool_passwd", kind_text[k->mapped.kind]);
}

/* ---- servers ---- */

static void ask_servers(struct check *k)
{
    bool is_elsewhere = k->st->target != POOLS_NO_TARGET;
    struct server_target *t;
    char text[512];
    int i = is_elsewhere ? k->st->target : 0;
    int end = is_elsewhere ? i + 1 : k->conf->nnodes;

    if (k->st->dbname != NULL)
        printf("  servers know the database as \"%s\"\n", k->st->dbname);
    for (; i < end; i++) {
        t = &k->target[k->nservers];
        if (!server_find(k->gen, i, t))
            continue;
        k->server[k->nservers] =
            server_ask_method(t, user_for_servers(k), database_for_servers(k), text, sizeof text);
        if (k->server[k->nservers] == AUTH_SERVER_UNKNOWN)
            k->nproblems++;
        printf("  node %d (%s:%d): %s%s\n", i, t->host, t->port,
            k->server[k->nservers] == AUTH_SERVER_UNKNOWN ? "" : "asks for ",
            k->server[k->nservers] == AUTH_SERVER_UNKNOWN
                ? text
                : auth_server_text(k->server[k->nservers]));
        k->nservers++;
    }
}

/* The first server's way stands for all where the plan depends on it. */
static enum auth_server first_server(const struct check *k)
{
    int i;

    for (i = 0; i < k->nservers; i++)
        if (k->server[i] != AUTH_SERVER_UNKNOWN)
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
    c = server_connect(&k->target[i], user_for_servers(k), database_for_servers(k),
        cred->text.bytes, text, sizeof text);
    if (c == NULL) {
        k->nproblems++;
        printf("    node %d: the password was tried and refused: %s\n", k->target[i].node, text);
    }
    PQfinish(c);
}

/* Would what is held answer a server that asks so? False: *err says why not. */
static bool check_give(struct check *k, const struct auth_facts *f, unsigned hold,
    enum auth_server asks, struct err *err)
{
    bool is_other = k->server_user != NULL || k->is_st_user;
    bool by_scram = f->has_rule && f->method == HBA_SCRAM;
    enum auth_give give = auth_give_choose(hold, asks, slice_of_str(user_for_servers(k)), err);
    unsigned set = k->conf->backend_require_auth;
    const char *why;

    if (give == AUTH_GIVE_IMPOSSIBLE)
        return false;
    why = auth_scram_is_due(hold, !is_other && k->stored.kind == CRED_SCRAM, by_scram, give);
    if (why == NULL || (set != 0 && (set & CONF_REQUIRE_AUTO) == 0))
        return true;
    err_set(err, "28000", "the server would not be answered: SCRAM is expected");
    err_detail(err, "The server asks for %s, and %s.", auth_server_text(asks), why);
    err_hint(err, "Let it ask for scram-sha-256, or set backend_require_auth = 'scram-sha-256,%s'.",
        auth_server_text(asks));
    return false;
}

static void check_servers(struct check *k, const struct auth_facts *f, const struct auth_plan *plan)
{
    bool got_keys = k->stored.kind == CRED_SCRAM &&
                    (plan->ask == AUTH_ASK_SCRAM || plan->ask == AUTH_ASK_PASSWORD);
    bool is_other = k->server_user != NULL || k->is_st_user;
    struct auth_facts held = *f;
    unsigned hold;
    char where[64];
    struct err err;
    int i;

    held.maps_user = is_other;
    held.mapped = k->mapped.kind;
    hold = auth_hold(&held, plan, got_keys);
    for (i = 0; i < k->nservers; i++) {
        if (k->server[i] == AUTH_SERVER_UNKNOWN || plan->proof == AUTH_PROOF_SERVER)
            continue;
        err_clear(&err);
        if (!check_give(k, f, hold, k->server[i], &err)) {
            snprintf(where, sizeof where, "    node %d: ", k->target[i].node);
            problem(k, where, &err);
        } else {
            try_server(k, i, is_other ? &k->mapped : &k->stored);
        }
    }
}

/* ---- rules ---- */

/* Connects when the first question comes up. */
static bool may_ask_roles(struct check *k)
{
    struct auth_way way;

    if (k->role_asker == NULL && !k->has_tried_roles) {
        k->has_tried_roles = true;
        way = login_auth_find_role_way(k->conf);
        if (*way.user != '\0')
            k->role_asker = open_asker(k, &way, false);
    }
    return k->role_asker != NULL;
}

/* A link that is idle does not tell that its role is locked by now: it is asked about, as a login
 * does. auth_query has said it with the secret; nobody knows whom to ask about another server. */
static void check_role(struct check *k)
{
    bool is_expired = false;

    if ((k->is_final && k->server_user == NULL) || k->st->target != POOLS_NO_TARGET ||
        !may_ask_roles(k))
        return;
    if (server_may_log_in(k->role_asker, user_for_servers(k), &is_expired))
        return;
    k->nproblems++;
    printf("  role \"%s\": %s\n", user_for_servers(k),
        is_expired ? "its password has expired" : "not there, or not permitted to log in");
}

static enum hba_answer in_role(void *ctx, struct slice user, struct slice role)
{
    struct check *k = ctx;

    (void)user;
    return may_ask_roles(k) ? server_in_role(k->role_asker, k->user, role) : HBA_FAIL;
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
        if (f->stored == CRED_NONE && !f->may_relay && !k->was_looked_up &&
            plan.proof == AUTH_PROOF_NEVER && plan.ask != AUTH_ASK_REFUSE)
            printf("      Add the user to pool_passwd, set auth_user, or set auth_relay to on, so "
                   "that the server judges.\n");
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
        .may_relay =
            !k->was_looked_up && login_auth_may_relay(k->conf, k->is_asked, k->file_judges),
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
    f.channel = tls ? AUTH_CHANNEL_TLS_CERT : AUTH_CHANNEL_CLEAR;
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
    if (login_hba_path(k->gen, &k->opts->paths, path, sizeof path) == 0)
        hba = hba_load(path, login_hba_flags(), report_stderr, NULL);
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
    k.st = pools_conf_find(k.conf, slice_of_str(k.database), slice_of_str(k.user));
    printf("user \"%s\", database \"%s\"\n", k.user, k.database);
    open_passwd(&k);
    find_secret(&k);
    find_server_user(&k);
    print_secret(&k);
    ask_servers(&k);
    check_role(&k);
    check_rules(&k);
    if (k.nproblems == 0)
        printf("nothing is in the way\n");
    else
        printf("%u problem%s\n", k.nproblems, k.nproblems == 1 ? "" : "s");
    PQfinish(k.role_asker);
    server_forget();
    passwd_free(&k.passwd);
    secret_free(&k.key);
    cred_free(&k.stored);
    cred_free(&k.mapped);
    mem_free(k.server_user);
    return k.nproblems == 0 ? PGPOOL_EXIT_OK : PGPOOL_EXIT_FAILED;
}
