/* SPDX-License-Identifier: PostgreSQL
 * client_tls.c: TLS with clients: the certificate we show, and how a client gets there.
 * Runs in: workers. A client asks with SSLRequest, or begins with TLS at once (PostgreSQL 17). What
 * arrived in clear behind the request is refused: somebody may have put it there. New certificates
 * come with a reload and hold for new clients; if they are no good, the old ones stay. */
#include "config.h"

#include <arpa/inet.h>
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "base/mem.h"
#include "config/conf.h"
#include "ipc/proc.h"
#include "net/tls.h"
#include "session/session_tls.h"

#include "client/client_tls_int.h"

/* First byte of a TLS handshake; a startup packet of that length would be refused. */
#define TLS_HANDSHAKE_BYTE 0x16

/* TLS of a worker whose `ssl` is on. */
struct session_tls {
    struct tls_context *ctx; /* NULL: the files were not usable when the worker started */
    struct tls_passphrase passphrase;
};

/* Files named by the settings, made absolute. */
struct tls_files {
    char cert[PROC_PATH_BYTES];
    char key[PROC_PATH_BYTES];
    char ca[PROC_PATH_BYTES];
    char ca_dir[PROC_PATH_BYTES];
    char crl[PROC_PATH_BYTES];
    char dh[PROC_PATH_BYTES];
};

/* `f` is zeroed. */
static int file_paths(const struct conf_gen *gen, struct tls_files *f, struct err *err)
{
    const struct conf *conf = conf_of(gen);
    const struct {
        const char *name;
        char *path;
    } file[] = {{conf->ssl_cert, f->cert}, {conf->ssl_key, f->key}, {conf->ssl_ca_cert, f->ca},
        {conf->ssl_ca_cert_dir, f->ca_dir}, {conf->ssl_crl_file, f->crl},
        {conf->ssl_dh_params_file, f->dh}};
    size_t i;

    for (i = 0; i < sizeof file / sizeof file[0]; i++)
        if (file[i].name[0] != '\0' &&
            conf_path(gen, file[i].name, file[i].path, PROC_PATH_BYTES, err) == -1)
            return -1;
    return 0;
}

struct tls_context *session_tls_make_context(struct tls_env *env, const struct conf_gen *gen,
    struct tls_passphrase *passphrase, struct err *err)
{
    const struct conf *conf = conf_of(gen);
    struct tls_files *f = mem_alloc_zero(sizeof *f);
    bool is_proven = passphrase->len > 0;
    struct tls_context *ctx;
    struct tls_settings st = {
        .cert_file = f->cert,
        .key_file = f->key,
        .ca_file = f->ca,
        .ca_dir = f->ca_dir,
        .crl_file = f->crl,
        .dh_file = f->dh,
        .ciphers = conf->ssl_ciphers,
        .curves = conf->ssl_ecdh_curve,
        .min_version = conf->ssl_min_protocol_version,
        .max_version = conf->ssl_max_protocol_version,
        .prefer_own_ciphers = conf->ssl_prefer_server_ciphers,
        .use_kernel = conf->ssl_ktls,
        .is_postgresql = true,
        .ctx = passphrase,
    };

    passphrase->command = conf->ssl_passphrase_command;
    passphrase->key_file = f->key;
    if (conf->ssl_passphrase_command[0] != '\0' || passphrase->len > 0)
        st.passphrase = tls_passphrase_get;
    ctx = file_paths(gen, f, err) == 0 ? tls_context_new_server(env, &st, err) : NULL;
    passphrase->command = passphrase->key_file = "";
    if (ctx == NULL && !is_proven)
        tls_passphrase_forget(passphrase); /* the command may say another one next time */
    mem_free(f);
    return ctx;
}

void session_tls_set_conf(struct sessions *ss)
{
    struct tls_context *ctx;
    struct err err = {0};

    if (!ss->conf->ssl)
        return;
    if (ss->tls == NULL)
        ss->tls = mem_alloc_secret(sizeof *ss->tls);
    ctx = session_tls_make_context(backend_tls_env(&ss->be), ss->gen, &ss->tls->passphrase, &err);
    if (ctx != NULL) {
        tls_context_free(&ss->tls->ctx);
        ss->tls->ctx = ctx;
        return;
    }
    err_wrap(&err, "TLS with clients");
    err_hint(
        &err, ss->tls->ctx == NULL
                  ? "Clients that ask for TLS are refused until a reload finds better files."
                  : "What was in use before stays in use. Correct the files and reload again.");
    log_err(LVL_WARNING, &err);
}

void session_tls_fini(struct sessions *ss)
{
    if (ss->tls == NULL)
        return;
    tls_context_free(&ss->tls->ctx);
    tls_passphrase_forget(&ss->tls->passphrase);
    mem_free_secret(ss->tls);
    ss->tls = NULL;
}

int session_check_tls(const struct conf_gen *gen, struct err *err)
{
    struct tls_passphrase passphrase = {0};
    struct tls_context *ctx;
    struct tls_env *env;

    if (backend_tls_check(gen, err) == -1)
        return -1;
    if (!conf_of(gen)->ssl)
        return 0;
    env = tls_env_new();
    ctx = session_tls_make_context(env, gen, &passphrase, err);
    tls_passphrase_forget(&passphrase);
    if (ctx != NULL)
        tls_context_warn(ctx, err);
    if (err_is_set(err))
        err_wrap(err, "TLS with clients");
    tls_context_free(&ctx);
    tls_env_free(&env);
    return err->severity >= ERR_ERROR ? -1 : 0;
}

/* ---- one client ---- */

bool client_tls_is_offered(const struct client *c)
{
    return c->ss->tls != NULL && !stream_is_local(&c->stream);
}

static bool is_usable(struct client *c, struct err *err)
{
    if (c->ss->tls->ctx != NULL)
        return true;
    err_set_fatal(err, "58000", "TLS is switched on, but its certificate is not usable");
    err_hint(err, "The log tells why: ssl_cert and ssl_key; then reload.");
    return false;
}

int client_tls_on_request(struct client *c, struct err *err)
{
    if (!is_usable(c, err))
        return -1;
    if (stream_send(&c->stream, "S", 1) == 0)
        stream_start_tls_server(&c->stream, c->ss->tls->ctx, slice_of(NULL, 0), false);
    c->asked_gss = true; /* nothing else is negotiated inside TLS */
    return 0;
}

bool client_tls_is_direct(const struct client *c, const char *p)
{
    return p[0] == TLS_HANDSHAKE_BYTE && !c->asked_tls && !c->asked_gss && client_tls_is_offered(c);
}

int client_tls_on_direct(struct client *c, struct slice bytes, struct err *err)
{
    if (!is_usable(c, err))
        return -1;
    c->asked_tls = true;
    c->asked_gss = true;
    stream_start_tls_server(&c->stream, c->ss->tls->ctx, bytes, true);
    return 0;
}

void client_tls_log_failure(const struct client *c)
{
    static struct log_limit lim = {.burst = 10};
    char host[INET6_ADDRSTRLEN] = "?";

    if (!log_is_on(LVL_LOG) || !log_limit_pass(&lim))
        return;
    if (c->row != NULL && c->row->addr_kind != ROW_ADDR_LOCAL)
        (void)inet_ntop(c->row->addr_kind == ROW_ADDR_IPV4 ? AF_INET : AF_INET6, c->row->addr, host,
            sizeof host);
    log_at_detail(LVL_LOG, NULL, stream_tls_hint(&c->stream), "%s SSL connection with %s: %s",
        stream_is_secured(&c->stream) ? "lost the" : "could not accept", host,
        stream_tls_error(&c->stream));
}

/* ---- a cancel request that came with TLS ---- */

/* Who asked for a cancel waits for the end of the connection: the goodbye of TLS must not come
 * before the cancel has been delivered. The deliverer holds one end of a pipe meanwhile. */
struct cancel_wait {
    struct io io;
    struct client *client;
    int fd;
};

static void cancel_wait_on_closed(struct io *io)
{
    mem_free(LIST_ENTRY(io, struct cancel_wait, io));
}

void client_tls_cancel_free(struct client *c)
{
    struct cancel_wait *w = c->rare == NULL ? NULL : c->rare->cancel_wait;

    if (w == NULL)
        return;
    c->rare->cancel_wait = NULL;
    io_want(&w->io, 0);
    close(w->fd);
    io_close(&w->io, cancel_wait_on_closed);
}

static void cancel_wait_on_io(struct io *io, int events)
{
    struct client *c = LIST_ENTRY(io, struct cancel_wait, io)->client;

    (void)events;
    client_tls_cancel_free(c);
    client_end(c, NULL);
}

int client_tls_cancel_wait(struct client *c)
{
    struct cancel_wait *w;
    int fd[2];

    if (pipe2(fd, O_CLOEXEC | O_NONBLOCK) == -1)
        return -1;
    w = mem_alloc_zero(sizeof *w);
    w->client = c;
    w->fd = fd[0];
    client_rare(c)->cancel_wait = w;
    io_open(c->ss->loop, &w->io, fd[0], cancel_wait_on_io);
    io_want(&w->io, IO_READ);
    stream_pause(&c->stream);
    return fd[1];
}
