/* SPDX-License-Identifier: PostgreSQL
 * web_http.c: libmicrohttpd on the loop of the process. The library keeps its connections in an
 * epoll set of its own, which our loop watches; it makes no thread and accepts nothing itself.
 * Runs in: web. The other side is never trusted: requests are limited in size, number and time. */
#include "config.h"

#include <microhttpd.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/log.h"
#include "base/mem.h"

#include "web_conns.h"
#include "web_int.h"

/* More than web_conns.c lets in: those that were told to go have not gone at once. */
#define LIBRARY_LIMIT  (2U * WEB_CONNS_MAX)
#define IDLE_LIMIT_S   30U
#define LOOK_MS        1000
#define RUNS_PER_TURN  64
#define TLS_PRIORITIES "NORMAL:-VERS-TLS-ALL:+VERS-TLS1.3:+VERS-TLS1.2"
/* Nothing but our own files, no scripts or styles within the page, nobody's frame. */
#define CONTENT_POLICY                                                                             \
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "              \
    "connect-src 'self'; form-action 'none'; base-uri 'none'; frame-ancestors 'none'"

struct web_http {
    struct web *web;
    struct MHD_Daemon *daemon;
    struct io io;
    struct timer timer;
    struct web_conns conns;
    struct timer look; /* for who takes too long; armed while there are connections */
};

/* A request whose body is still coming. */
struct upload {
    struct buf body;
    bool is_too_long;
};

const char *web_request_header(const struct web_request *r, const char *name)
{
    return MHD_lookup_connection_value(r->handle, MHD_HEADER_KIND, name);
}

const char *web_request_argument(const struct web_request *r, const char *name)
{
    return MHD_lookup_connection_value(r->handle, MHD_GET_ARGUMENT_KIND, name);
}

static void say(void *ctx, const char *fmt, va_list ap) __attribute__((format(printf, 2, 0)));

/* What the library has to say is about single connections: nobody needs it but who looks for it. */
static void say(void *ctx, const char *fmt, va_list ap)
{
    char text[512];
    size_t n;

    vsnprintf(text, sizeof text, fmt, ap);
    n = strlen(text);
    while (n > 0 && text[n - 1] == '\n')
        text[--n] = '\0';
    log_at(LVL_DEBUG1, "HTTP: %s", text);
}

static enum MHD_Result send_answer(struct MHD_Connection *c, struct web_answer *a)
{
    static const char *const headers[][2] = {{"Content-Security-Policy", CONTENT_POLICY},
        {"X-Content-Type-Options", "nosniff"}, {"X-Frame-Options", "DENY"},
        {"Referrer-Policy", "no-referrer"}, {"Cache-Control", "no-store"}};
    struct MHD_Response *response;
    enum MHD_Result rc;
    size_t i;

    if (a->body.len == 0)
        buf_put(&a->body, "\n", 1);
    response =
        MHD_create_response_from_buffer_with_free_callback(a->body.len, a->body.data, mem_free);
    if (response == NULL) {
        buf_free(&a->body);
        return MHD_NO;
    }
    memset(&a->body, 0, sizeof a->body);
    for (i = 0; i < sizeof headers / sizeof headers[0]; i++)
        MHD_add_response_header(response, headers[i][0], headers[i][1]);
    MHD_add_response_header(response, "Content-Type", a->type == NULL ? WEB_TYPE_TEXT : a->type);
    if (a->header_name != NULL)
        MHD_add_response_header(response, a->header_name, a->header_value);
    rc = MHD_queue_response(c, a->status == 0 ? MHD_HTTP_OK : a->status, response);
    MHD_destroy_response(response);
    return rc;
}

static const struct sockaddr *address_of(struct MHD_Connection *c)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(c, MHD_CONNECTION_INFO_CLIENT_ADDRESS);

    return info == NULL ? NULL : info->client_addr;
}

static struct web_conn *conn_of(struct MHD_Connection *c)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(c, MHD_CONNECTION_INFO_SOCKET_CONTEXT);

    return info == NULL ? NULL : info->socket_context;
}

/* Called for the head of a request, for each piece of its body, and at its end. */
static enum MHD_Result on_request(void *ctx, struct MHD_Connection *c, const char *path,
    const char *method, const char *version, const char *data, size_t *n, void **own)
{
    struct web_http *h = ctx;
    struct web_answer a = {0};
    struct upload *up = *own;
    struct web_request r = {.web = h->web,
        .method = strcmp(method, "HEAD") == 0 ? "GET" : method,
        .path = path,
        .handle = c};

    if (up == NULL) {
        *own = up = mem_alloc_zero(sizeof *up);
        up->body.is_secret = true; /* it may be a password */
        return MHD_YES;
    }
    if (*n > 0) {
        up->is_too_long = up->is_too_long || up->body.len + *n > WEB_BODY_MAX_BYTES;
        if (!up->is_too_long)
            buf_put(&up->body, data, *n);
        *n = 0;
        return MHD_YES;
    }
    r.body = buf_slice(&up->body);
    r.from = address_of(c);
    if (up->is_too_long)
        web_answer_text(&a, MHD_HTTP_CONTENT_TOO_LARGE, "the request is too long\n");
    else
        h->web->route(&r, &a);
    if (r.is_known && conn_of(c) != NULL)
        conn_of(c)->is_known = true;
    return send_answer(c, &a);
}

static void on_request_end(
    void *ctx, struct MHD_Connection *c, void **own, enum MHD_RequestTerminationCode why)
{
    struct web_http *h = ctx;
    struct upload *up = *own;

    *own = NULL;
    if (conn_of(c) != NULL)
        web_conns_renew(&h->conns, conn_of(c), loop_now_us(&h->web->role.loop));
    if (up == NULL)
        return;
    buf_free(&up->body);
    mem_free(up);
}

static struct hba_addr addr_of(const struct sockaddr *from)
{
    struct hba_addr none = {0};

    return from == NULL || (from->sa_family != AF_INET && from->sa_family != AF_INET6)
               ? none
               : hba_addr_of(from);
}

static void on_connection(
    void *ctx, struct MHD_Connection *c, void **own, enum MHD_ConnectionNotificationCode what)
{
    struct web_http *h = ctx;
    struct web_conn *conn = *own;
    const union MHD_ConnectionInfo *info = NULL;
    struct hba_addr addr;

    if (what == MHD_CONNECTION_NOTIFY_CLOSED) {
        web_conns_remove(&h->conns, &conn);
        *own = NULL;
        return;
    }
    info = MHD_get_connection_info(c, MHD_CONNECTION_INFO_CONNECTION_FD);
    addr = addr_of(address_of(c));
    *own = web_conns_add(
        &h->conns, info == NULL ? -1 : info->connect_fd, &addr, loop_now_us(&h->web->role.loop));
    if (!timer_is_armed(&h->look))
        timer_start(&h->web->role.loop, &h->look, LOOK_MS);
}

/* The library sees that nothing more can be read or written, and closes it. */
static void send_away(struct web_conn *c)
{
    c->is_leaving = true;
    (void)shutdown(c->fd, SHUT_RDWR);
}

static void on_look(struct timer *t)
{
    struct web_http *h = LIST_ENTRY(t, struct web_http, look);
    int64_t now_us = loop_now_us(&h->web->role.loop);
    struct web_conn *c;

    while ((c = web_conns_overdue(&h->conns, now_us)) != NULL)
        send_away(c);
    if (h->conns.n > 0)
        timer_start(&h->web->role.loop, &h->look, LOOK_MS);
}

/* Lets the library work until it waits for the network, and asks when it wants to be called. */
static void turn(struct web_http *h)
{
    MHD_UNSIGNED_LONG_LONG ms = 0;
    int i;

    for (i = 0; i < RUNS_PER_TURN; i++) {
        MHD_run(h->daemon);
        if (MHD_get_timeout(h->daemon, &ms) == MHD_NO) {
            timer_stop(&h->web->role.loop, &h->timer);
            return;
        }
        if (ms > 0)
            break;
    }
    timer_start(&h->web->role.loop, &h->timer, (int64_t)ms);
}

static void on_ready(struct io *io, int events)
{
    turn(LIST_ENTRY(io, struct web_http, io));
}

static void on_time(struct timer *t)
{
    turn(LIST_ENTRY(t, struct web_http, timer));
}

static struct MHD_Daemon *start(struct web_http *h, const struct web_tls *tls)
{
    struct MHD_OptionItem secure[] = {
        {MHD_OPTION_HTTPS_MEM_CERT, 0, tls == NULL ? NULL : tls->cert},
        {MHD_OPTION_HTTPS_MEM_KEY, 0, tls == NULL ? NULL : tls->key},
        {MHD_OPTION_HTTPS_KEY_PASSWORD, 0, tls == NULL ? NULL : tls->passphrase},
        {MHD_OPTION_HTTPS_PRIORITIES, 0, (void *)(uintptr_t)TLS_PRIORITIES},
        {MHD_OPTION_END, 0, NULL}};
    struct MHD_OptionItem none[] = {{MHD_OPTION_END, 0, NULL}};
    unsigned flags = MHD_USE_EPOLL | MHD_USE_NO_LISTEN_SOCKET | MHD_USE_ERROR_LOG;

    if (tls != NULL && tls->passphrase == NULL)
        secure[2] = secure[3], secure[3] = secure[4];
    return MHD_start_daemon(tls == NULL ? flags : flags | MHD_USE_TLS, 0, NULL, NULL, on_request, h,
        MHD_OPTION_EXTERNAL_LOGGER, say, NULL, MHD_OPTION_NOTIFY_COMPLETED, on_request_end, h,
        MHD_OPTION_NOTIFY_CONNECTION, on_connection, h, MHD_OPTION_CONNECTION_LIMIT, LIBRARY_LIMIT,
        MHD_OPTION_CONNECTION_TIMEOUT, IDLE_LIMIT_S, MHD_OPTION_ARRAY, tls == NULL ? none : secure,
        MHD_OPTION_END);
}

struct web_http *web_http_open(struct web *w, const struct web_tls *tls, struct err *err)
{
    struct web_http *h = mem_alloc_zero(sizeof *h);
    const union MHD_DaemonInfo *info = NULL;

    h->web = w;
    web_conns_init(&h->conns);
    timer_init(&h->look, on_look);
    h->daemon = start(h, tls);
    if (h->daemon != NULL)
        info = MHD_get_daemon_info(h->daemon, MHD_DAEMON_INFO_EPOLL_FD);
    if (info == NULL) {
        err_set(err, "F0000",
            tls == NULL ? "libmicrohttpd could not be started"
                        : "the certificate or the key cannot be used for HTTPS");
        if (h->daemon != NULL)
            MHD_stop_daemon(h->daemon);
        mem_free(h);
        return NULL;
    }
    timer_init(&h->timer, on_time);
    io_open(&w->role.loop, &h->io, info->epoll_fd, on_ready);
    io_want(&h->io, IO_READ);
    return h;
}

static void on_closed(struct io *io)
{
    mem_free(LIST_ENTRY(io, struct web_http, io));
}

void web_http_close(struct web_http **hp)
{
    struct web_http *h = *hp;

    *hp = NULL;
    if (h == NULL)
        return;
    timer_stop(&h->web->role.loop, &h->timer);
    io_close(&h->io, on_closed);
    MHD_stop_daemon(h->daemon);
    timer_stop(&h->web->role.loop, &h->look);
}

void web_http_take(struct web_http *h, int fd, const struct sockaddr *from, socklen_t len)
{
    struct hba_addr addr = addr_of(from);
    struct web_conn *old = web_conns_in_the_way(&h->conns, &addr);

    if (old != NULL) {
        log_caused(LVL_LOG, "an HTTP connection is ended: there are too many");
        send_away(old);
        turn(h);
    } else if (web_conns_are_full(&h->conns)) {
        log_caused(LVL_LOG, "an HTTP connection is refused: there are too many");
        close(fd);
        return;
    }
    /* What the library refuses it has closed. */
    if (MHD_add_connection(h->daemon, fd, from, len) == MHD_NO)
        log_caused(LVL_LOG, "an HTTP connection is refused: there are too many");
    turn(h);
}
