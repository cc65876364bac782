/* SPDX-License-Identifier: PostgreSQL
 * pgpool_server.c: asks one server on behalf of the command line.
 * Runs in: the command line. libpq connects, with TLS where the settings say so; what the server
 * asks before it lets a user in is read from its first message, by hand: libpq does not tell. */
#include "config.h"

#include "bin/pgpool/pgpool_server.h"

#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "backend/link.h"
#include "base/log.h"
#include "base/mem.h"
#include "bin/pgpool/pgpool_tls.h"
#include "config/conf.h"
#include "config/pools_conf.h"
#include "probe/probe_tls.h"
#include "login/login_auth.h"
#include "process/common/server_ca.h"
#include "process/common/server_login.h"
#include "wire/errmsg.h"

#define WAIT_MS       5000
#define WAIT_TEXT     "5"
#define MESSAGE_BYTES 8192

/* ---- where it is ---- */

static void put_path(const struct conf_gen *gen, const char *name, char *out)
{
    struct err err = {0};

    out[0] = '\0';
    if (*name != '\0' && conf_path(gen, name, out, PROC_PATH_BYTES, &err) == -1)
        out[0] = '\0';
}

static void authorities_name(char out[PROC_PATH_BYTES])
{
    snprintf(out, PROC_PATH_BYTES, "/tmp/pgpool_ca.check.%ld.pem", (long)getpid());
}

/* Not in work_dir: who asks may be another user than the one pgpool runs as. */
static void put_authorities(const struct conf_gen *gen, char out[PROC_PATH_BYTES])
{
    struct err err = {0};

    authorities_name(out);
    if (server_ca_write(gen, out, &err) == 0)
        return;
    log_err(LVL_WARNING, &err);
    snprintf(out, PROC_PATH_BYTES, "%s", SERVER_CA_UNUSABLE);
}

void server_forget(void)
{
    char name[PROC_PATH_BYTES];

    authorities_name(name);
    (void)unlink(name);
}

bool server_find(const struct conf_gen *gen, int node, struct server_target *t)
{
    const struct conf *conf = conf_of(gen);
    const struct pools_target *other = pools_conf_target(conf, node);
    const struct conf_node *n = node >= 0 && node < CONF_MAX_NODES ? &conf->nodes[node] : NULL;
    int64_t timeout_ms;

    memset(t, 0, sizeof *t);
    t->node = node;
    if ((n != NULL && !conf_has_node(conf, node)) ||
        !pools_conf_address(conf, node, &t->host, &t->port, &timeout_ms))
        return false;
    t->ssl_mode = n != NULL ? (int)n->backend_ssl_mode : other->ssl_mode;
    if (*t->host == '\0' || *t->host == '/' || (!conf->ssl && t->ssl_mode < CONF_SSL_REQUIRE))
        t->ssl_mode = CONF_SSL_DISABLE;
    if (n != NULL && *n->backend_ssl_ca_cert != '\0')
        put_path(gen, n->backend_ssl_ca_cert, t->ca);
    else if (t->ssl_mode != CONF_SSL_DISABLE && *conf->ssl_ca_cert_dir != '\0')
        put_authorities(gen, t->ca);
    else
        put_path(gen, conf->ssl_ca_cert, t->ca);
    t->min_tls = n != NULL ? server_login_min_tls(n) : "";
    if (n != NULL) {
        put_path(gen, n->backend_ssl_crl_file, t->crl);
        put_path(gen, n->backend_ssl_cert, t->cert);
        put_path(gen, n->backend_ssl_key, t->key);
    }
    return true;
}

/* ---- connecting ---- */

static const char *mode_text(int mode)
{
    static const char *const words[] = {
        [CONF_SSL_DISABLE] = "disable",
        [CONF_SSL_ALLOW] = "allow",
        [CONF_SSL_PREFER] = "prefer",
        [CONF_SSL_REQUIRE] = "require",
        [CONF_SSL_VERIFY_CA] = "verify-ca",
        [CONF_SSL_VERIFY_FULL] = "verify-full",
    };

    return words[mode];
}

/* One attempt: as the mode says, or the one without TLS. */
static PGconn *start(const struct server_target *t, const char *user, const char *database,
    const char *password, int mode, bool in_clear)
{
    const char *const names[] = {"host", "port", "user", "dbname", "password", "connect_timeout",
        "application_name", "gssencmode", "sslmode", "sslrootcert", "sslcrl", "sslcert", "sslkey",
        probe_tls_min_key(), NULL};
    char port[12];
    const char *const values[] = {*t->host == '\0' ? "/tmp" : t->host, port, user, database,
        password, WAIT_TEXT, "pgpool --check-auth", "disable",
        probe_tls_word(mode_text(mode), t->ca, in_clear), t->ca, t->crl, t->cert, t->key,
        t->min_tls, NULL};
    PGconn *c;

    snprintf(port, sizeof port, "%d", t->port);
    c = PQconnectStartParams(names, values, 0);
    PQsetErrorVerbosity(c, PQERRORS_VERBOSE);
    return c;
}

static void put_first_line(const char *words, char *text, size_t size)
{
    snprintf(text, size, "%s", words);
    text[strcspn(text, "\n")] = '\0';
}

static bool wait_for(int fd, short events)
{
    struct pollfd pfd = {.fd = fd, .events = events};

    return poll(&pfd, 1, WAIT_MS) > 0;
}

/* Goes on until `state` is reached: the whole login, or what comes before the server's question.
 * *was is how far it was before it failed. */
static bool reach(PGconn *c, ConnStatusType state, ConnStatusType *was)
{
    PostgresPollingStatusType next = PGRES_POLLING_WRITING;

    *was = PQstatus(c);
    if (*was == CONNECTION_BAD)
        return false;
    while (PQstatus(c) != state) {
        if (next == PGRES_POLLING_FAILED || next == PGRES_POLLING_OK ||
            !wait_for(PQsocket(c), next == PGRES_POLLING_READING ? POLLIN : POLLOUT))
            return false;
        *was = PQstatus(c);
        next = PQconnectPoll(c);
    }
    return true;
}

PGconn *server_connect(const struct server_target *t, const char *user, const char *database,
    const char *password, char *text, size_t size)
{
    PGconn *c = start(t, user, database, password, t->ssl_mode, false);
    ConnStatusType was;

    if (reach(c, CONNECTION_OK, &was))
        return c;
    if (probe_tls_may_go_in_clear(mode_text(t->ssl_mode), c, was)) {
        PQfinish(c);
        c = start(t, user, database, password, t->ssl_mode, true);
        if (reach(c, CONNECTION_OK, &was))
            return c;
    }
    put_first_line(
        *PQerrorMessage(c) != '\0' ? PQerrorMessage(c) : "no answer in time", text, size);
    PQfinish(c);
    return NULL;
}

/* ---- its first words ---- */

/* Some bytes of what the server says; 0 or less: no more. */
static ssize_t read_some(PGconn *c, char *p, size_t n)
{
    ssize_t got;

    if (PQsslInUse(c) == 0)
        return wait_for(PQsocket(c), POLLIN) ? recv(PQsocket(c), p, n, 0) : -1;
    while ((got = pgpool_tls_read(c, p, n)) == 0) {
        if (!wait_for(PQsocket(c), POLLIN))
            return -1;
    }
    return got;
}

/* Reads one whole message; its length without the type, or -1. */
static ssize_t read_message(PGconn *c, char *p, size_t cap)
{
    size_t have = 0;
    size_t want = PROTO_HEADER_BYTES;
    ssize_t n;

    while (have < want) {
        n = read_some(c, p + have, want - have);
        if (n <= 0)
            return -1;
        have += (size_t)n;
        if (have == PROTO_HEADER_BYTES)
            want = (size_t)proto_get_u32(p + 1) + 1;
        if (want < PROTO_HEADER_BYTES || want > cap)
            return -1;
    }
    return (ssize_t)want - PROTO_HEADER_BYTES;
}

/* Whom to ask about whom, and what came out. */
struct question {
    const struct server_target *t;
    const char *user;
    const char *database;
    bool may_go_in_clear; /* a link of mode prefer would now do without TLS */
    char *text;
    size_t size;
};

static void take_error(struct question *q, struct slice body)
{
    struct errmsg m;

    (void)errmsg_decode(body, &m);
    snprintf(q->text, q->size, "refuses: %.*s", (int)m.message.n, m.message.p);
    q->may_go_in_clear = slice_eq_str(m.sqlstate, "28000");
}

/* One attempt, with TLS or without. */
static enum auth_server ask_once(struct question *q, int mode, bool in_clear)
{
    enum auth_server found = AUTH_SERVER_UNKNOWN;
    PGconn *c = start(q->t, q->user, q->database, "", mode, in_clear);
    ConnStatusType was;
    char msg[MESSAGE_BYTES];
    ssize_t n = -1;

    snprintf(q->text, q->size, "does not answer");
    q->may_go_in_clear = false;
    if (reach(c, CONNECTION_AWAITING_RESPONSE, &was)) {
        n = read_message(c, msg, sizeof msg);
    } else if (*PQerrorMessage(c) != '\0') {
        put_first_line(PQerrorMessage(c), q->text, q->size);
        q->may_go_in_clear = probe_tls_may_go_in_clear(mode_text(mode), c, was);
    }
    if (n >= 4 && msg[0] == BE_AUTHENTICATION)
        found = link_auth_kind(slice_of(msg + PROTO_HEADER_BYTES, (size_t)n));
    if (n > 0 && msg[0] == BE_ERROR)
        take_error(q, slice_of(msg + PROTO_HEADER_BYTES, (size_t)n));
    PQfinish(c);
    return found;
}

enum auth_server server_ask_method(
    const struct server_target *t, const char *user, const char *database, char *text, size_t size)
{
    struct question q = {.t = t, .user = user, .database = database, .text = text, .size = size};
    enum auth_server found;

    if (t->ssl_mode == CONF_SSL_ALLOW) { /* either way, without TLS first */
        found = ask_once(&q, CONF_SSL_DISABLE, false);
        return found != AUTH_SERVER_UNKNOWN ? found : ask_once(&q, CONF_SSL_REQUIRE, false);
    }
    found = ask_once(&q, t->ssl_mode, false);
    if (found == AUTH_SERVER_UNKNOWN && t->ssl_mode == CONF_SSL_PREFER && q.may_go_in_clear)
        found = ask_once(&q, t->ssl_mode, true);
    return found;
}

static PGresult *ask(PGconn *c, const char *sql, const char *user)
{
    return PQexecParams(c, sql, 1, NULL, &user, NULL, NULL, 0);
}

int server_look_up(
    PGconn *c, const char *query, const char *user, struct cred *out, struct err *err)
{
    const char *sql = *query != '\0' ? query : login_auth_sql(AUTH_LOOKUP_SECRET);
    PGresult *r = ask(c, sql, user);
    const char *state = PQresultErrorField(r, PG_DIAG_SQLSTATE);
    int rc = 0;

    if (*query == '\0' && state != NULL && strcmp(state, "42883") == 0) {
        PQclear(r);
        r = ask(c, login_auth_sql(AUTH_LOOKUP_CATALOGUE), user);
    }
    if (PQresultStatus(r) != PGRES_TUPLES_OK) {
        err_set(err, "57P03", "auth_query failed: %.*s",
            (int)strcspn(PQresultErrorMessage(r), "\n"), PQresultErrorMessage(r));
        err_hint(err, "%s",
            *query != '\0'
                ? "Run auth_query by hand as auth_user, with a user's name for $1."
                : "Create the function pgpool_user_lookup, see the manual, or set auth_query.");
        rc = -1;
    } else if (PQntuples(r) == 1 && PQnfields(r) >= 2 && strcmp(PQgetvalue(r, 0, 0), user) == 0) {
        cred_from_stored(slice_of_str(PQgetvalue(r, 0, 1)), out);
        rc = out->kind == CRED_NONE ? 2 : 1;
    }
    PQclear(r);
    return rc;
}

enum hba_answer server_in_role(PGconn *c, const char *user, struct slice role)
{
    char *name = mem_strndup(role.p, role.n);
    const char *values[] = {user, name};
    PGresult *r = PQexecParams(c, login_auth_sql(AUTH_LOOKUP_ROLE), 2, NULL, values, NULL, NULL, 0);
    enum hba_answer answer = HBA_FAIL;

    if (PQresultStatus(r) == PGRES_TUPLES_OK)
        answer = PQntuples(r) > 0 ? HBA_YES : HBA_NO;
    PQclear(r);
    mem_free(name);
    return answer;
}

bool server_may_log_in(PGconn *c, const char *user, bool *is_expired)
{
    PGresult *r = ask(c, login_auth_sql(AUTH_LOOKUP_LOGIN), user);
    bool is_known = PQresultStatus(r) == PGRES_TUPLES_OK;
    const char *state = is_known && PQntuples(r) > 0 ? PQgetvalue(r, 0, 1) : "no such role";
    bool may = !is_known || *state == '\0'; /* who cannot be asked keeps nobody out */

    *is_expired = is_known && strcmp(state, "expired") == 0;
    PQclear(r);
    return may;
}

bool server_may_connect(PGconn *c, const char *user, const char *database, char *text, size_t size)
{
    static const char sql[] =
        "SELECT pg_catalog.has_database_privilege(r.oid, d.oid, 'CONNECT')"
        " FROM (SELECT 1) one LEFT JOIN pg_catalog.pg_database d ON d.datname = $1"
        " LEFT JOIN pg_catalog.pg_roles r ON r.rolname = $2 WHERE d.oid IS NULL OR r.oid IS NOT "
        "NULL";
    const char *values[] = {database, user};
    PGresult *r = PQexecParams(c, sql, 2, NULL, values, NULL, NULL, 0);
    bool may = PQresultStatus(r) != PGRES_TUPLES_OK || PQntuples(r) == 0 ||
               strcmp(PQgetvalue(r, 0, 0), "t") == 0;

    if (!may && PQgetisnull(r, 0, 0) != 0)
        snprintf(text, size, "database \"%s\" does not exist", database);
    else if (!may)
        snprintf(text, size, "user \"%s\" may not connect to database \"%s\"", user, database);
    PQclear(r);
    return may;
}
