/* SPDX-License-Identifier: PostgreSQL
 * adm_link.c: PCP, the protocol of pgpool's administrators, as a client inside a PostgreSQL server.
 * Runs in: a backend of PostgreSQL. Every wait ends when the query is cancelled; every length that
 * pgpool sends is checked here, once. */
#include "postgres.h"

#include <fcntl.h>
#include <netdb.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "common/md5.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "port/pg_bswap.h"
#include "storage/latch.h"
#include "utils/memutils.h"
#include "utils/wait_event.h"

#include "adm_link.h"

#define MD5_HEX_BYTES    32
#define SALT_BYTES       4
#define HEADER_BYTES     5
#define MAX_PACKET_BYTES (1024 * 1024)
#define READ_BYTES       8192

struct adm_link {
    int fd;
    StringInfoData in;
    MemoryContextCallback end;
};

static void on_context_end(void *arg)
{
    struct adm_link *link = arg;

    if (link->fd != -1)
        close(link->fd);
    link->fd = -1;
}

static void wait_ready(struct adm_link *link, int events)
{
    (void)WaitLatchOrSocket(
        MyLatch, WL_LATCH_SET | WL_EXIT_ON_PM_DEATH | events, link->fd, -1, PG_WAIT_EXTENSION);
    ResetLatch(MyLatch);
    CHECK_FOR_INTERRUPTS();
}

/* 0, or errno. */
static int try_connect(struct adm_link *link, int family, const struct sockaddr *sa, socklen_t len)
{
    int why = 0;
    socklen_t n = sizeof why;

    link->fd = socket(family, SOCK_STREAM, 0);
    if (link->fd == -1)
        return errno;
    (void)fcntl(link->fd, F_SETFD, FD_CLOEXEC);
    (void)fcntl(link->fd, F_SETFL, O_NONBLOCK);
    if (connect(link->fd, sa, len) == 0)
        return 0;
    why = errno;
    if (why == EINPROGRESS) {
        why = 0;
        do {
            wait_ready(link, WL_SOCKET_WRITEABLE);
        } while (getpeername(link->fd, NULL, NULL) == -1 && errno == ENOTCONN &&
                 getsockopt(link->fd, SOL_SOCKET, SO_ERROR, &why, &n) == 0 && why == 0);
    }
    if (why != 0) {
        close(link->fd);
        link->fd = -1;
    }
    return why;
}

static int connect_unix(struct adm_link *link, const struct adm_target *to)
{
    struct sockaddr_un un = {.sun_family = AF_UNIX};
    int n = snprintf(un.sun_path, sizeof un.sun_path, "%s/.s.PGSQL.%d", to->host, to->port);

    if (n < 0 || (size_t)n >= sizeof un.sun_path)
        return ENAMETOOLONG;
    return try_connect(link, AF_UNIX, (const struct sockaddr *)&un, sizeof un);
}

static int connect_tcp(struct adm_link *link, const struct adm_target *to)
{
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_family = AF_UNSPEC};
    struct addrinfo *found = NULL;
    struct addrinfo *ai;
    char port[16];
    volatile int why = ECONNREFUSED;
    int rc;

    snprintf(port, sizeof port, "%d", to->port);
    rc = getaddrinfo(to->host, port, &hints, &found);
    if (rc != 0)
        ereport(
            ERROR, (errcode(ERRCODE_SQLCLIENT_UNABLE_TO_ESTABLISH_SQLCONNECTION),
                       errmsg("could not resolve host \"%s\": %s", to->host, gai_strerror(rc))));
    PG_TRY();
    {
        for (ai = found; ai != NULL && link->fd == -1; ai = ai->ai_next)
            why = try_connect(link, ai->ai_family, ai->ai_addr, ai->ai_addrlen);
    }
    PG_FINALLY();
    {
        freeaddrinfo(found);
    }
    PG_END_TRY();
    return why;
}

static void broken(const char *what)
{
    ereport(ERROR,
        (errcode(ERRCODE_CONNECTION_FAILURE), errmsg("connection to pgpool failed: %s", what)));
}

void adm_send(struct adm_link *link, char type, const char *body, size_t n)
{
    StringInfoData out;
    uint32 len = pg_hton32((uint32)n + 4);
    int done = 0;

    initStringInfo(&out);
    appendStringInfoChar(&out, type);
    appendBinaryStringInfo(&out, (const char *)&len, sizeof len);
    appendBinaryStringInfo(&out, body, (int)n);
    while (done < out.len) {
        ssize_t sent = send(link->fd, out.data + done, (size_t)(out.len - done), MSG_NOSIGNAL);

        if (sent > 0)
            done += (int)sent;
        else if (errno == EAGAIN || errno == EWOULDBLOCK)
            wait_ready(link, WL_SOCKET_WRITEABLE);
        else if (errno != EINTR)
            broken(strerror(errno));
    }
    explicit_bzero(out.data, (size_t)out.len);
    pfree(out.data);
}

/* Reads until `want` bytes are there. */
static void fill(struct adm_link *link, int want)
{
    while (link->in.len < want) {
        ssize_t n;

        enlargeStringInfo(&link->in, READ_BYTES);
        n = recv(link->fd, link->in.data + link->in.len, READ_BYTES, 0);
        if (n > 0)
            link->in.len += (int)n;
        else if (n == 0)
            broken("it was closed");
        else if (errno == EAGAIN || errno == EWOULDBLOCK)
            wait_ready(link, WL_SOCKET_READABLE);
        else if (errno != EINTR)
            broken(strerror(errno));
    }
}

static void cut(struct adm_packet *p)
{
    const char *at = p->body.data;
    const char *end = at + p->body.len;

    p->nfields = 0;
    while (at < end && p->nfields < ADM_MAX_FIELDS) {
        p->field[p->nfields++] = at;
        at += strlen(at) + 1; /* the body has a NUL behind it */
    }
}

static void receive_any(struct adm_link *link, struct adm_packet *out)
{
    uint32 len;

    fill(link, HEADER_BYTES);
    memcpy(&len, link->in.data + 1, sizeof len);
    len = pg_ntoh32(len);
    if (len < 4 || len > MAX_PACKET_BYTES)
        broken("a packet of an impossible length came");
    fill(link, (int)len + 1);
    out->type = link->in.data[0];
    initStringInfo(&out->body);
    appendBinaryStringInfo(&out->body, link->in.data + HEADER_BYTES, (int)len - 4);
    memmove(link->in.data, link->in.data + len + 1, (size_t)link->in.len - len - 1);
    link->in.len -= (int)len + 1;
    cut(out);
}

/* A field of an error: its first byte is a letter. */
static const char *part(const struct adm_packet *p, char letter)
{
    int i;

    for (i = 0; i < p->nfields; i++) {
        if (p->field[i][0] == letter)
            return p->field[i] + 1;
    }
    return NULL;
}

static void pass_on(const struct adm_packet *p, int level)
{
    const char *message = part(p, 'M');
    const char *detail = part(p, 'D');
    const char *hint = part(p, 'H');

    ereport(level, (errcode(level == ERROR ? ERRCODE_EXTERNAL_ROUTINE_EXCEPTION
                                           : ERRCODE_SUCCESSFUL_COMPLETION),
                       errmsg("pgpool: %s", message == NULL ? "no reason is given" : message),
                       detail == NULL || detail[0] == '\0' ? 0 : errdetail("%s", detail),
                       hint == NULL || hint[0] == '\0' ? 0 : errhint("%s", hint)));
}

void adm_receive(struct adm_link *link, struct adm_packet *out)
{
    for (;;) {
        receive_any(link, out);
        if (out->type == 'E')
            pass_on(out, ERROR);
        if (out->type != 'N')
            return;
        pass_on(out, DEBUG1);
    }
}

static void md5_hex(const void *bytes, size_t n, char out[MD5_HEX_BYTES + 1])
{
#if PG_VERSION_NUM >= 150000
    const char *why = NULL;
    bool ok = pg_md5_hash(bytes, n, out, &why);
#else
    const char *why = "out of memory";
    bool ok = pg_md5_hash(bytes, n, out);
#endif

    if (!ok)
        ereport(ERROR, (errmsg("could not compute MD5: %s", why)));
}

/* md5(md5(md5(password) user) salt). */
static void log_in(struct adm_link *link, const struct adm_target *to)
{
    char hex[MD5_HEX_BYTES + 1];
    struct adm_packet p;
    StringInfoData text;

    adm_send(link, 'M', NULL, 0);
    adm_receive(link, &p);
    if (p.type != 'm' || p.body.len != SALT_BYTES)
        broken("it sent no salt");
    initStringInfo(&text);
    md5_hex(to->password, strlen(to->password), hex);
    appendStringInfo(&text, "%s%s", hex, to->user);
    md5_hex(text.data, (size_t)text.len, hex);
    resetStringInfo(&text);
    appendStringInfoString(&text, hex);
    appendBinaryStringInfo(&text, p.body.data, SALT_BYTES);
    md5_hex(text.data, (size_t)text.len, hex);
    resetStringInfo(&text);
    appendStringInfoString(&text, to->user);
    appendStringInfoChar(&text, '\0');
    appendStringInfoString(&text, hex);
    adm_send(link, 'R', text.data, (size_t)text.len + 1);
    adm_receive(link, &p);
    if (p.type != 'r' || p.nfields < 1 || strcmp(p.field[0], "AuthenticationOK") != 0)
        broken("the log-in was not accepted");
}

struct adm_link *adm_open(const struct adm_target *to)
{
    struct adm_link *link = palloc0(sizeof *link);
    int why;

    link->fd = -1;
    initStringInfo(&link->in);
    link->end.func = on_context_end;
    link->end.arg = link;
    MemoryContextRegisterResetCallback(CurrentMemoryContext, &link->end);
    why = to->host[0] == '/' ? connect_unix(link, to) : connect_tcp(link, to);
    if (why != 0)
        ereport(ERROR, (errcode(ERRCODE_SQLCLIENT_UNABLE_TO_ESTABLISH_SQLCONNECTION),
                           errmsg("could not connect to pgpool at \"%s\", port %d: %s", to->host,
                               to->port, strerror(why))));
    log_in(link, to);
    return link;
}

void adm_close(struct adm_link *link)
{
    adm_send(link, 'X', NULL, 0);
    on_context_end(link);
}
