/* SPDX-License-Identifier: PostgreSQL
 * pgpool_server.c: asks one server on behalf of the command line.
 * Runs in: the command line. What a server asks before it lets a user in is read from its first
 * message, by hand: libpq does not tell. */
#include "config.h"

#include "bin/pgpool/pgpool_server.h"

#include <errno.h>
#include <netdb.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "backend/link.h"
#include "base/mem.h"
#include "config/conf.h"
#include "session/session_auth.h"
#include "sys/fd.h"
#include "wire/errmsg.h"
#include "wire/startup.h"

#define WAIT_MS       5000
#define WAIT_TEXT     "5"
#define MESSAGE_BYTES 8192

PGconn *server_connect(const struct conf_node *node, const char *user, const char *database,
    const char *password, char *text, size_t size)
{
    static const char *const names[] = {"host", "port", "user", "dbname", "password",
        "connect_timeout", "application_name", "gssencmode", NULL};
    const char *values[sizeof names / sizeof names[0]] = {0};
    char port[12];
    PGconn *c;

    snprintf(port, sizeof port, "%d", node->backend_port);
    values[0] = *node->backend_hostname == '\0' ? "/tmp" : node->backend_hostname;
    values[1] = port;
    values[2] = user;
    values[3] = database;
    values[4] = password;
    values[5] = WAIT_TEXT;
    values[6] = "pgpool --check-auth";
    values[7] = "disable";
    c = PQconnectdbParams(names, values, 0);
    if (PQstatus(c) == CONNECTION_OK)
        return c;
    snprintf(text, size, "%s", PQerrorMessage(c));
    text[strcspn(text, "\n")] = '\0';
    PQfinish(c);
    return NULL;
}

static int dial_unix(const struct conf_node *node)
{
    const char *dir = *node->backend_hostname == '\0' ? "/tmp" : node->backend_hostname;
    struct sockaddr_un sun = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int n = snprintf(sun.sun_path, sizeof sun.sun_path, "%s/.s.PGSQL.%d", dir, node->backend_port);

    if (fd == -1)
        return -1;
    if (n > 0 && (size_t)n < sizeof sun.sun_path &&
        connect(fd, (const struct sockaddr *)&sun, sizeof sun) == 0)
        return fd;
    close(fd);
    return -1;
}

static int dial_tcp(const struct conf_node *node)
{
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM};
    struct addrinfo *all = NULL;
    struct addrinfo *i;
    char port[12];
    int fd = -1;

    snprintf(port, sizeof port, "%d", node->backend_port);
    if (getaddrinfo(node->backend_hostname, port, &hints, &all) != 0)
        return -1;
    for (i = all; i != NULL && fd == -1; i = i->ai_next) {
        fd = socket(i->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
        if (fd != -1 && connect(fd, i->ai_addr, i->ai_addrlen) == -1) {
            close(fd);
            fd = -1;
        }
    }
    freeaddrinfo(all);
    return fd;
}

/* Reads one whole message; its length without the type, or -1. */
static ssize_t read_message(int fd, char *p, size_t cap)
{
    struct pollfd pfd = {.fd = fd, .events = POLLIN};
    size_t have = 0;
    size_t want = PROTO_HEADER_BYTES;
    ssize_t n;

    while (have < want) {
        if (poll(&pfd, 1, WAIT_MS) <= 0)
            return -1;
        n = read(fd, p + have, want - have);
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

enum auth_server server_ask_method(
    const struct conf_node *node, const char *user, const char *database, char *text, size_t size)
{
    bool is_unix = *node->backend_hostname == '\0' || *node->backend_hostname == '/';
    enum auth_server found = AUTH_SERVER_UNKNOWN;
    struct buf packet = {0};
    struct errmsg m;
    char msg[MESSAGE_BYTES];
    ssize_t n = -1;
    int fd = is_unix ? dial_unix(node) : dial_tcp(node);

    snprintf(text, size, "does not answer: %s", strerror(errno));
    if (fd == -1)
        return found;
    startup_encode(&packet, PROTO_3_0, slice_of_str(user), slice_of_str(database), NULL, 0);
    if (fd_write_all(fd, packet.data, packet.len) == 0)
        n = read_message(fd, msg, sizeof msg);
    if (n >= 4 && msg[0] == BE_AUTHENTICATION)
        found = link_auth_kind(slice_of(msg + PROTO_HEADER_BYTES, (size_t)n));
    if (n > 0 && msg[0] == BE_ERROR) {
        (void)errmsg_decode(slice_of(msg + PROTO_HEADER_BYTES, (size_t)n), &m);
        snprintf(text, size, "refuses: %.*s", (int)m.message.n, m.message.p);
    }
    buf_free(&packet);
    close(fd);
    return found;
}

static PGresult *ask(PGconn *c, const char *sql, const char *user)
{
    return PQexecParams(c, sql, 1, NULL, &user, NULL, NULL, 0);
}

int server_look_up(
    PGconn *c, const char *query, const char *user, struct cred *out, struct err *err)
{
    const char *sql = *query != '\0' ? query : session_auth_default_query(false);
    PGresult *r = ask(c, sql, user);
    const char *state = PQresultErrorField(r, PG_DIAG_SQLSTATE);
    int rc = 0;

    if (*query == '\0' && state != NULL && strcmp(state, "42883") == 0) {
        PQclear(r);
        r = ask(c, session_auth_default_query(true), user);
    }
    if (PQresultStatus(r) != PGRES_TUPLES_OK) {
        err_set(err, "57P03", "auth_query failed: %.*s",
            (int)strcspn(PQresultErrorMessage(r), "\n"), PQresultErrorMessage(r));
        err_hint(err, "Create the function pgpool_user_lookup, see the manual, or set auth_query.");
        rc = -1;
    } else if (PQntuples(r) == 1 && PQnfields(r) >= 2 && strcmp(PQgetvalue(r, 0, 0), user) == 0 &&
               PQgetisnull(r, 0, 1) == 0) {
        cred_from_stored(slice_of_str(PQgetvalue(r, 0, 1)), out);
        rc = 1;
    }
    PQclear(r);
    return rc;
}

enum hba_answer server_in_role(PGconn *c, const char *user, struct slice role)
{
    char *name = mem_strndup(role.p, role.n);
    const char *values[] = {user, name};
    PGresult *r = PQexecParams(c, session_auth_role_query(), 2, NULL, values, NULL, NULL, 0);
    enum hba_answer answer = HBA_FAIL;

    if (PQresultStatus(r) == PGRES_TUPLES_OK)
        answer = PQntuples(r) > 0 ? HBA_YES : HBA_NO;
    PQclear(r);
    mem_free(name);
    return answer;
}
