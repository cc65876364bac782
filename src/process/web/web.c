/* SPDX-License-Identifier: PostgreSQL
 * web.c: life of the web process: it follows its mailbox, and accepts the connections that
 * libmicrohttpd then serves on the same loop.
 * Runs in: web. Connections are accepted here and not by the library, which would spin while there
 * are no descriptors left. Must never touch a client's bytes, ask a database, or wait. */
#include "config.h"

#include "process/web/web.h"

#include <unistd.h>

#include "base/log.h"
#include "base/mem.h"

#include "web_login.h"
#include "web_ring.h"
#include "web_wait.h"

#define ACCEPTS_PER_TURN 16

static void on_accepted(
    struct acceptors *a, int i, int fd, const struct sockaddr_storage *from, socklen_t len)
{
    struct web *w = LIST_ENTRY(a, struct web, acceptors);

    if (w->http == NULL)
        close(fd);
    else
        web_http_take(w->http, fd, (const struct sockaddr *)from, len);
}

/* Starts to answer, or goes on with another certificate. What cannot be used changes nothing. */
static void open_http(struct web *w)
{
    const struct conf_gen *gen = role_loop_gen(&w->role);
    bool wants_tls = conf_of(gen)->http_ssl;
    struct web_tls *tls = NULL;
    struct web_http *http = NULL;
    struct err err = {0};

    if (wants_tls)
        tls = web_tls_read(gen, &err);
    if (w->http != NULL && !err_is_set(&err) && web_tls_is_same(tls, w->tls)) {
        web_tls_free(&tls);
        return;
    }
    if (!err_is_set(&err))
        http = web_http_open(w, tls, &err);
    if (http == NULL) {
        err_wrap(&err, "HTTP");
        err_hint(
            &err, w->http == NULL
                      ? "HTTP connections are closed at once until a reload finds better files."
                      : "What was in use before stays in use. Correct it and reload again.");
        log_err(LVL_WARNING, &err);
        web_tls_free(&tls);
        return;
    }
    web_http_close(&w->http);
    web_tls_free(&w->tls);
    w->http = http;
    w->tls = tls;
}

static void on_reload(struct role_loop *rl)
{
    struct web *w = LIST_ENTRY(rl, struct web, role);

    cert_dates_read(&w->certs, role_loop_gen(rl));
    open_http(w);
}

static void start_listening(struct web *w)
{
    static const struct acceptors_how how = {.fn = on_accepted,
        .complaint = "could not accept an HTTP connection",
        .per_turn = ACCEPTS_PER_TURN,
        .events = IO_READ};
    const struct proc_env *env = w->role.env;

    acceptors_open(&w->acceptors, &w->role.loop, env->web_fd, env->nweb, &how);
    acceptors_start(&w->acceptors);
}

int web_main(struct proc_env *env)
{
    struct web *w = mem_alloc_zero(sizeof *w);
    int status;

    role_loop_init(&w->role, env);
    w->role.on_reload = on_reload;
    w->login = web_login_new();
    w->route = web_route;
    w->ring = web_ring_new(w);
    w->waits = web_waits_new(w);
    cert_dates_read(&w->certs, role_loop_gen(&w->role));
    open_http(w);
    start_listening(w);
    status = role_loop_run(&w->role);
    acceptors_close(&w->acceptors);
    web_http_close(&w->http);
    web_tls_free(&w->tls);
    cert_dates_free(&w->certs);
    web_waits_free(&w->waits);
    web_ring_free(&w->ring);
    web_login_free(&w->login);
    role_loop_fini(&w->role);
    mem_free(w);
    return status;
}
