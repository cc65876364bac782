/* SPDX-License-Identifier: PostgreSQL
 * pcp_link.c: the connection of a pcp_* tool: connect, log in, send, collect the answer. Every wait
 * has a limit, and what the server sends has one, too. */
#include "config.h"

#include <errno.h>
#include <netdb.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/mem.h"
#include "sys/clock.h"
#include "sys/fd.h"
#include "wire/errmsg.h"

#include "pcp_tool.h"

#define READ_BYTES       8192
#define MAX_PACKET_BYTES (16 * 1024 * 1024)
#define MAX_ANSWER_BYTES (256 * 1024 * 1024)

bool tool_link_wait(struct tool_link *l, short events)
{
    struct pollfd p = {.fd = l->fd, .events = events};
    int64_t left_us;
    int rc;

    do {
        left_us = l->give_up_us - clock_mono_us();
        if (left_us <= 0)
            break;
        rc = poll(&p, 1, (int)(left_us / CLOCK_US_PER_MS) + 1);
        if (rc > 0)
            return true;
    } while (rc == 0 || errno == EINTR);
    errno = ETIMEDOUT;
    return false;
}

/* Connects without blocking for ever. */
static bool try_connect(struct tool_link *l, int family, const struct sockaddr *sa, socklen_t len)
{
    int error = 0;
    socklen_t n = sizeof error;

    l->fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (l->fd == -1)
        return false;
    if (connect(l->fd, sa, len) == 0)
        return true;
    error = errno;
    if (error == EINPROGRESS) {
        if (!tool_link_wait(l, POLLOUT))
            error = ETIMEDOUT;
        else if (getsockopt(l->fd, SOL_SOCKET, SO_ERROR, &error, &n) == -1)
            error = errno;
    }
    if (error == 0)
        return true;
    fd_close(&l->fd);
    errno = error;
    return false;
}

static bool connect_unix(struct tool_link *l, const struct tool_options *o)
{
    struct sockaddr_un un = {.sun_family = AF_UNIX};
    int n = snprintf(un.sun_path, sizeof un.sun_path, "%s/.s.PGSQL.%d", o->host, o->port);

    if (n < 0 || (size_t)n >= sizeof un.sun_path) {
        fprintf(stderr, "ERROR: the name of the socket is too long\n");
        return false;
    }
    if (try_connect(l, AF_UNIX, (const struct sockaddr *)&un, sizeof un))
        return true;
    fprintf(stderr, "ERROR: connection to socket \"%s\" failed with error \"%s\"\n", un.sun_path,
        strerror(errno));
    fprintf(stderr,
        "HINT:  Is pgpool running? pcp_socket_dir and pcp_port in pgpool.conf say where "
        "its socket is: -h FOLDER -p PORT.\n");
    return false;
}

static bool connect_tcp(struct tool_link *l, const struct tool_options *o)
{
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_family = AF_UNSPEC};
    struct addrinfo *found = NULL;
    struct addrinfo *ai;
    char port[16];
    int rc;

    snprintf(port, sizeof port, "%d", o->port);
    rc = getaddrinfo(o->host, port, &hints, &found);
    if (rc != 0) {
        fprintf(stderr, "ERROR: could not resolve host \"%s\": %s\n", o->host, gai_strerror(rc));
        return false;
    }
    errno = ECONNREFUSED;
    for (ai = found; ai != NULL; ai = ai->ai_next) {
        if (try_connect(l, ai->ai_family, ai->ai_addr, ai->ai_addrlen))
            break;
    }
    if (ai == NULL)
        fprintf(stderr, "ERROR: connection to host \"%s\" failed with error \"%s\"\n", o->host,
            strerror(errno));
    freeaddrinfo(found);
    return l->fd != -1;
}

static bool broken(const char *what)
{
    fprintf(stderr, "ERROR: %s\n", what);
    return false;
}

static ssize_t take(struct tool_link *l, char *p, size_t n)
{
    l->wants = POLLIN;
    return l->tls == NULL ? recv(l->fd, p, n, 0) : tool_tls_recv(l, p, n);
}

static ssize_t give(struct tool_link *l, const char *p, size_t n)
{
    l->wants = POLLOUT;
    return l->tls == NULL ? send(l->fd, p, n, MSG_NOSIGNAL) : tool_tls_send(l, p, n);
}

static bool write_all(struct tool_link *l, const char *p, size_t n)
{
    while (n > 0) {
        ssize_t sent = give(l, p, n);

        if (sent > 0) {
            p += sent;
            n -= (size_t)sent;
        } else if (sent == -1 && errno == EAGAIN) {
            if (!tool_link_wait(l, l->wants))
                return broken("the server took nothing for too long");
        } else if (sent == -1 && errno != EINTR) {
            fprintf(stderr, "ERROR: could not send to the server: %s\n", strerror(errno));
            return false;
        }
    }
    return true;
}

bool tool_link_send(struct tool_link *l, char type, const struct buf *body)
{
    struct buf out = {0};
    size_t mark = pcp_begin(&out, type);
    bool ok;

    if (body != NULL)
        buf_put(&out, body->data, body->len);
    pcp_end(&out, mark);
    ok = write_all(l, out.data, out.len);
    if (ok && l->debug && type != PCP_SALT && type != PCP_LOGIN && type != PCP_SASL)
        printf("DEBUG: send: tos=\"%c\", len=%u\n", type, (unsigned)out.len - 1);
    mem_wipe(out.data, out.len);
    buf_free(&out);
    return ok;
}

/* Waits for a packet; its body is a view into l->in until *used bytes of it are consumed. */
static bool read_packet(struct tool_link *l, struct pcp_packet *p, size_t *used)
{
    int rc;

    while ((rc = pcp_read(buf_slice(&l->in), MAX_PACKET_BYTES, p, used)) == 0) {
        ssize_t n = take(l, buf_reserve(&l->in, READ_BYTES), READ_BYTES);

        if (n > 0) {
            buf_advance(&l->in, (size_t)n);
        } else if (n == 0) {
            return broken("the server closed the connection");
        } else if (errno == EAGAIN) {
            if (!tool_link_wait(l, l->wants))
                return broken("the server did not answer in time");
        } else if (errno != EINTR) {
            fprintf(stderr, "ERROR: could not read from the server: %s\n", strerror(errno));
            return false;
        }
    }
    if (rc == -1)
        return broken("the server sent what is no PCP packet");
    if (l->debug)
        printf("DEBUG: recv: tos=\"%c\", len=%u\n", p->type, (unsigned)*used - 1);
    return true;
}

static void print_line(FILE *to, const char *title, struct slice text)
{
    if (text.n > 0)
        fprintf(to, "%s:  %.*s\n", title, (int)text.n, text.p);
}

/* What was done is not all of what was asked for: that is told to whoever asked, wanted or not. */
static bool is_warning(struct slice body)
{
    struct errmsg m = {0};

    return errmsg_decode(body, &m) == 0 && slice_eq_str(m.severity, "WARNING");
}

/* An error or a notice of the server. */
static void print_message(FILE *to, struct slice body)
{
    struct errmsg m = {0};
    char severity[16];

    (void)errmsg_decode(body, &m);
    snprintf(severity, sizeof severity, "%.*s", (int)(m.severity.n > 15 ? 15 : m.severity.n),
        m.severity.n == 0 ? "ERROR" : m.severity.p);
    print_line(to, m.severity.n == 0 ? "ERROR" : severity,
        m.message.n == 0 ? slice_of_str("the server gives no reason") : m.message);
    print_line(to, "DETAIL", m.detail);
    print_line(to, "HINT", m.hint);
    fputs("\n", to);
}

struct slice tool_answer_body(const struct tool_answer *a, int i)
{
    uint32_t from = i == 0 ? 0 : a->end[i - 1];

    return slice_of(a->bytes.data + from, a->end[i] - from);
}

void tool_answer_free(struct tool_answer *a)
{
    buf_free(&a->bytes);
    mem_free(a->end);
    *a = (struct tool_answer){0};
}

static void keep_body(struct tool_answer *a, struct slice body)
{
    if (a->nbodies == a->cap) {
        a->cap = a->cap == 0 ? 16 : a->cap * 2;
        a->end = mem_resize(a->end, (size_t)a->cap * sizeof *a->end);
    }
    /* One byte at least, so that there is memory to point at. */
    buf_reserve(&a->bytes, body.n + 1);
    buf_put(&a->bytes, body.p, body.n);
    a->end[a->nbodies++] = a->bytes.len;
}

static bool is_last(struct slice body)
{
    struct slice word;

    return pcp_take_str(&body, &word) && slice_eq_str(word, PCP_COMPLETE);
}

static int fail(const char *what)
{
    (void)broken(what);
    return -1;
}

int tool_link_answer(struct tool_link *l, char type, struct tool_answer *a)
{
    struct pcp_packet p;
    size_t used;
    bool last = false;

    while (!last) {
        if (!read_packet(l, &p, &used))
            return -1;
        if (p.type == PCP_ANSWER_ERROR) {
            print_message(stderr, p.body);
            return 0;
        }
        if (p.type == PCP_ANSWER_NOTICE && l->debug)
            print_message(stdout, p.body);
        else if (p.type == PCP_ANSWER_NOTICE && (l->tells || is_warning(p.body)))
            print_message(stderr, p.body);
        if (p.type != type && p.type != PCP_ANSWER_NOTICE)
            return fail("the server answered something else");
        if (p.type == type) {
            last = is_last(p.body) || type == PCP_ANSWER_SALT || type == PCP_ANSWER_SASL ||
                   type == PCP_ANSWER_LOGIN;
            keep_body(a, p.body);
        }
        buf_consume(&l->in, used);
        if (a->bytes.len > MAX_ANSWER_BYTES)
            return fail("the server's answer is too long");
    }
    return 1;
}

bool tool_link_open(struct tool_link *l, const struct tool_options *o, struct slice password)
{
    *l = (struct tool_link){
        .fd = -1, .debug = o->debug, .tells = o->verbose || o->recovery == TOOL_RECOVERY_FOLLOWS};
    l->give_up_us = clock_mono_us() + (int64_t)o->timeout_s * 1000 * CLOCK_US_PER_MS;
    if (o->host[0] == '/' ? !connect_unix(l, o) : !connect_tcp(l, o))
        return false;
    if (o->tls && !tool_tls_start(l, o->host, o->tls_ca))
        return false;
    return tool_login(l, o, password);
}

void tool_link_close(struct tool_link *l)
{
    tool_tls_end(l);
    buf_free(&l->in);
    fd_close(&l->fd);
}
