/* SPDX-License-Identifier: PostgreSQL
 * link_tls.c: TLS towards servers: who gets it, how it begins, what happens when it fails.
 * Runs in: workers. A link asks for TLS before its startup packet, as its node's backend_ssl_mode
 * says: "prefer" goes on in clear when the server does not speak TLS, "allow" begins in clear and
 * comes back with TLS when the server insists on it. A certificate that does not verify is never
 * answered by going on in clear. What the server says before TLS is one byte; anything else is
 * refused, for it may come from somebody in between. */
#include "config.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "backend/pool.h"
#include "backend/quota.h"
#include "base/log.h"
#include "base/mem.h"
#include "config/conf.h"
#include "config/pools_conf.h"
#include "ipc/proc.h"
#include "net/tls.h"

#include "link_int.h"

/* How long a server may take when connect_timeout is 0. */
#define LINK_TLS_LIMIT_MS 60000

struct backend_tls {
    struct tls_env *env;
    struct tls_context *node[QUOTA_MAX_NODES]; /* NULL: no TLS, or its files are not usable */
};

/* From the dial to the end of the login. */
struct link_tls {
    struct link *link;
    struct buf packet; /* the startup packet: it is sent again when the attempt is */
    struct timer timer;
    bool with_tls;      /* the present attempt */
    bool is_last;       /* there is no other way to try */
    bool is_redialing;  /* the old connection is being closed, the new one is not begun */
    bool is_in_session; /* TLS is up, or was not asked for: the login runs */
};

/* ---- what the settings say ---- */

/* What holds for a server of pools.conf, which has a mode alone: the defaults of the others. */
static const struct conf_node target_rules = {
    .backend_ssl_ca_cert = "",
    .backend_ssl_crl_file = "",
    .backend_ssl_cert = "",
    .backend_ssl_key = "",
    .backend_ssl_ciphers = "",
    .backend_ssl_negotiation = CONF_SSL_ASK,
    .backend_ssl_min_protocol_version = CONF_TLS_1_2,
};

static const struct conf_node *node_rules(const struct conf *conf, int node)
{
    return node < CONF_MAX_NODES ? &conf->nodes[node] : &target_rules;
}

/* Name or address of a server; empty: there is none of this number. */
static const char *node_host(const struct conf *conf, int node)
{
    const struct pools_target *t = node < CONF_MAX_NODES ? NULL : pools_conf_target(conf, node);

    if (node < CONF_MAX_NODES)
        return conf_has_node(conf, node) ? conf->nodes[node].backend_hostname : "";
    return t == NULL ? "" : t->host;
}

/* The mode that holds for a node; CONF_SSL_DISABLE when TLS plays no part. */
static int node_mode(const struct conf *conf, int node)
{
    const char *host = node_host(conf, node);
    int mode;

    if (host[0] == '\0' || host[0] == '/')
        return CONF_SSL_DISABLE;
    mode = node < CONF_MAX_NODES ? (int)conf->nodes[node].backend_ssl_mode
                                 : pools_conf_target(conf, node)->ssl_mode;
    return !conf->ssl && mode < CONF_SSL_REQUIRE ? CONF_SSL_DISABLE : mode;
}

bool backend_tls_is_due(const struct conf *conf, int node)
{
    return node_mode(conf, node) >= CONF_SSL_REQUIRE;
}

bool backend_tls_is_stricter(const struct conf *conf, const struct conf *was, int node)
{
    int mode = node_mode(conf, node);

    return mode >= CONF_SSL_REQUIRE && mode > node_mode(was, node);
}

/* Files named by the settings of one node, made absolute. */
struct node_files {
    char ca[PROC_PATH_BYTES];
    char ca_dir[PROC_PATH_BYTES];
    char crl[PROC_PATH_BYTES];
    char cert[PROC_PATH_BYTES];
    char key[PROC_PATH_BYTES];
};

static int node_path(const struct conf_gen *gen, const char *name, char *out, struct err *err)
{
    out[0] = '\0';
    return name[0] == '\0' ? 0 : conf_path(gen, name, out, PROC_PATH_BYTES, err);
}

static int node_paths(
    const struct conf_gen *gen, const struct conf_node *n, struct node_files *f, struct err *err)
{
    const struct conf *conf = conf_of(gen);
    bool own_ca = n->backend_ssl_ca_cert[0] != '\0';

    if (node_path(gen, own_ca ? n->backend_ssl_ca_cert : conf->ssl_ca_cert, f->ca, err) == -1 ||
        node_path(gen, own_ca ? "" : conf->ssl_ca_cert_dir, f->ca_dir, err) == -1 ||
        node_path(gen, n->backend_ssl_crl_file, f->crl, err) == -1 ||
        node_path(gen, n->backend_ssl_cert, f->cert, err) == -1)
        return -1;
    return node_path(gen, n->backend_ssl_key, f->key, err);
}

static struct tls_context *node_context(
    struct tls_env *env, const struct conf_gen *gen, int node, struct err *err)
{
    const struct conf *conf = conf_of(gen);
    const struct conf_node *n = node_rules(conf, node);
    struct node_files *f = mem_alloc_zero(sizeof *f);
    struct tls_context *ctx = NULL;
    struct tls_settings st = {
        .ca_file = f->ca,
        .ca_dir = f->ca_dir,
        .crl_file = f->crl,
        .cert_file = f->cert,
        .key_file = f->key,
        .dh_file = "",
        .curves = conf->ssl_ecdh_curve,
        .ciphers = n->backend_ssl_ciphers[0] != '\0' ? n->backend_ssl_ciphers : conf->ssl_ciphers,
        .min_version = n->backend_ssl_min_protocol_version,
        .use_kernel = conf->ssl_ktls,
        .is_postgresql = n->backend_ssl_negotiation == CONF_SSL_DIRECT,
    };

    if (node_paths(gen, n, f, err) == 0)
        ctx = tls_context_new_client(env, &st, err);
    mem_free(f);
    return ctx;
}

/* TLS works without it, so this is for who wonders why it is not used: said by one worker. */
static void say_kernel_is_missing(const struct backend *be, const struct conf *conf)
{
    const char *why;

    if (conf->ssl_ktls && be->ordinal == 0 && !tls_kernel_is_offered(&why))
        log_at(LVL_LOG, "ssl_ktls is on, but the kernel offers no TLS: %s", why);
}

void backend_tls_set_conf(struct backend *be, const struct conf_gen *gen)
{
    const struct conf *conf = conf_of(gen);
    struct tls_context *ctx;
    struct err err;
    int i;

    say_kernel_is_missing(be, conf);
    if (be->tls == NULL) {
        be->tls = mem_alloc_zero(sizeof *be->tls);
        be->tls->env = tls_env_new();
    }
    for (i = 0; i < QUOTA_MAX_NODES; i++) {
        if (node_mode(conf, i) == CONF_SSL_DISABLE) {
            tls_context_free(&be->tls->node[i]);
            continue;
        }
        err_clear(&err);
        ctx = node_context(be->tls->env, gen, i, &err);
        if (ctx == NULL) {
            err_wrap(&err, "TLS towards node %d", i);
            err_hint(&err, be->tls->node[i] == NULL
                               ? "Connections to it that need TLS fail until a reload finds better."
                               : "What was in use before stays in use.");
            log_err(LVL_WARNING, &err);
            continue;
        }
        tls_context_free(&be->tls->node[i]);
        be->tls->node[i] = ctx;
    }
}

int backend_tls_check(const struct conf_gen *gen, struct err *err)
{
    const struct conf *conf = conf_of(gen);
    struct tls_env *env = tls_env_new();
    struct tls_context *ctx;
    int rc = 0;
    int i;

    for (i = 0; i < QUOTA_MAX_NODES && rc == 0; i++) {
        if (node_mode(conf, i) == CONF_SSL_DISABLE)
            continue;
        ctx = node_context(env, gen, i, err);
        rc = ctx == NULL ? -1 : 0;
        if (ctx == NULL)
            err_wrap(err, "TLS towards node %d", i);
        tls_context_free(&ctx);
    }
    tls_env_free(&env);
    return rc;
}

void backend_tls_fini(struct backend *be)
{
    int i;

    if (be->tls == NULL)
        return;
    for (i = 0; i < QUOTA_MAX_NODES; i++)
        tls_context_free(&be->tls->node[i]);
    tls_env_free(&be->tls->env);
    mem_free(be->tls);
    be->tls = NULL;
}

struct tls_env *backend_tls_env(struct backend *be)
{
    return be->tls->env;
}

/* ---- asking a server for TLS ---- */

static int begin_handshake(struct backend *be, int node, struct stream *s, struct err *err)
{
    const struct conf_node *n = node_rules(be->conf, node);
    int mode = node_mode(be->conf, node);

    if (be->tls == NULL || be->tls->node[node] == NULL) {
        err_set_fatal(err, "08001", "no TLS with node %d: its settings are not usable", node);
        err_hint(err, "The log of the start or of the last reload says why.");
        return -1;
    }
    if (mode >= CONF_SSL_VERIFY_CA && !tls_context_verifies(be->tls->node[node])) {
        err_set_fatal(
            err, "08001", "no TLS with node %d: there is nobody to check it against", node);
        err_hint(err, "Set ssl_ca_cert.");
        return -1;
    }
    return stream_start_tls_client(s, be->tls->node[node], node_host(be->conf, node),
        mode == CONF_SSL_VERIFY_FULL, n->backend_ssl_negotiation == CONF_SSL_DIRECT, err);
}

int backend_tls_begin(struct backend *be, int node, struct stream *s, struct err *err)
{
    static const char request[] = {0, 0, 0, 8, 0x04, (char)0xD2, 0x16, 0x2F}; /* SSLRequest */

    if (node_rules(be->conf, node)->backend_ssl_negotiation == CONF_SSL_DIRECT)
        return begin_handshake(be, node, s, err);
    if (stream_send(s, request, sizeof request) == 0)
        return 0;
    err_set_fatal(err, "08006", "connection to server was lost (node %d)", node);
    err_hint(err, "The log of that server tells why; SHOW POOL_NODES whether it is used.");
    return -1;
}

/* The server's one byte. */
static enum backend_tls_verdict on_answer(
    struct backend *be, int node, struct stream *s, char answer, struct err *err)
{
    if (answer == 'N')
        return BACKEND_TLS_REFUSED;
    if (answer == 'S')
        return begin_handshake(be, node, s, err) == 0 ? BACKEND_TLS_MORE : BACKEND_TLS_FAILED;
    err_set_fatal(err, "08P01", "node %d answered the request for TLS with 0x%02X", node,
        (unsigned char)answer);
    err_hint(err, "What listens there is no PostgreSQL: backend_hostname and backend_port.");
    return BACKEND_TLS_FAILED;
}

enum backend_tls_verdict backend_tls_step(
    struct backend *be, int node, struct stream *s, struct err *err)
{
    char byte; /* not one more: what follows the answer must be TLS */
    ssize_t n = stream_recv(s, &byte, 1);

    if (n == -1 && errno == EPROTO) {
        err_set_fatal(err, "08006", "TLS with node %d failed: %s", node, stream_tls_error(s));
        err_hint(err, "ssl_ca_cert and backend_ssl_mode here, the certificate there.");
    } else if (n == -1) {
        err_set_fatal(
            err, "08006", "connection to server was lost while asking for TLS (node %d)", node);
        err_hint(err, "The log of that server tells why; SHOW POOL_NODES whether it is used.");
    }
    if (n == -1)
        return BACKEND_TLS_FAILED;
    if (!stream_is_tls(s))
        return n == 0 ? BACKEND_TLS_MORE : on_answer(be, node, s, byte, err);
    if (n > 0) {
        err_set_fatal(err, "08P01", "node %d spoke before it was asked", node);
        err_hint(err, "What listens there is no PostgreSQL, or a proxy meddles: backend_hostname "
                      "and backend_port.");
        return BACKEND_TLS_FAILED;
    }
    return stream_is_secured(s) ? BACKEND_TLS_READY : BACKEND_TLS_MORE;
}

/* ---- a link ---- */

/* NULL: TLS plays no part, or the login is over. */
static struct link_tls *tls_of(const struct link *link)
{
    return link->opening == NULL ? NULL : link->opening->tls;
}

static void link_tls_free(struct link *link)
{
    struct link_tls *lt = tls_of(link);

    if (lt == NULL)
        return;
    link->opening->tls = NULL;
    timer_stop(link->be->loop, &lt->timer);
    buf_free(&lt->packet);
    mem_free(lt);
}

static void tls_send_startup(struct link *link, const char *packet, size_t n)
{
    link->phase = LINK_LOGIN;
    link->auth = LINK_AUTH_TRUST; /* until the server asks for something */
    if (link_send(link, packet, n) == -1)
        link_fail_text(
            link, "08006", "connection to server was lost (node %d)", link->pool->cluster_node);
}

static void link_tls_login(struct link *link)
{
    struct link_tls *lt = link->opening->tls;

    timer_stop(link->be->loop, &lt->timer);
    lt->is_in_session = true;
    link->stream.ops = link->opening->stream_ops;
    tls_send_startup(link, lt->packet.data, lt->packet.len);
}

/* Once more on a new connection, with TLS or without. */
static void link_tls_redial(struct link *link, bool with_tls)
{
    struct link_tls *lt = link->opening->tls;

    lt->with_tls = with_tls;
    lt->is_last = true;
    lt->is_in_session = false;
    lt->is_redialing = true;
    link->phase = LINK_DIALING;
    timer_stop(link->be->loop, &lt->timer);
    stream_close(&link->stream); /* goes on in link_tls_on_closed */
}

bool link_tls_on_closed(struct link *link)
{
    if (tls_of(link) == NULL || !link->opening->tls->is_redialing)
        return false;
    link->opening->tls->is_redialing = false;
    if (link->phase == LINK_CLOSED) {
        link_tls_free(link);
        return false;
    }
    link_carry_free(link);
    link->opening->redial(link);
    return true;
}

bool link_tls_close(struct link *link)
{
    bool waits = tls_of(link) != NULL && link->opening->tls->is_redialing;

    if (!waits)
        link_tls_free(link);
    return waits;
}

static void link_tls_failed(struct link *link, const struct err *err)
{
    struct link_tls *lt = link->opening->tls;
    bool may_retry = !lt->is_last && !stream_tls_cert_was_bad(&link->stream) &&
                     link->stream.tls != NULL &&
                     node_mode(link->be->conf, link->pool->cluster_node) == CONF_SSL_PREFER;

    if (!may_retry) {
        link_fail(link, err);
        return;
    }
    link_log(link, LVL_DEBUG1, "%s: trying without TLS", err->msg);
    link_tls_redial(link, false);
}

static void link_tls_on_refused(struct link *link)
{
    int node = link->pool->cluster_node;
    int mode = node_mode(link->be->conf, node);
    struct err err;

    if (mode >= CONF_SSL_REQUIRE) {
        err_clear(&err);
        err_set_fatal(&err, "08001",
            "node %d does not support TLS, but backend_ssl_mode%d requires it", node, node);
        err_hint(&err, "Set ssl = on at that server, or another backend_ssl_mode here.");
        link_fail(link, &err);
        return;
    }
    link->opening->tls->with_tls = false;
    link->opening->tls->is_last = true;
    link_tls_login(link);
}

static void link_tls_on_readable(struct stream *s)
{
    struct link *link = LIST_ENTRY(s, struct link, stream);
    struct err err;

    err_clear(&err);
    switch (backend_tls_step(link->be, link->pool->cluster_node, s, &err)) {
    case BACKEND_TLS_MORE:
        break;
    case BACKEND_TLS_READY:
        link_tls_login(link);
        break;
    case BACKEND_TLS_REFUSED:
        link_tls_on_refused(link);
        break;
    case BACKEND_TLS_FAILED:
        link_tls_failed(link, &err);
        break;
    }
}

static void link_tls_on_drained(struct stream *s)
{
    (void)s;
}

static void link_tls_on_stream_closed(struct stream *s)
{
    LIST_ENTRY(s, struct link, stream)->opening->stream_ops->on_closed(s);
}

static const struct stream_ops link_tls_ops = {.on_readable = link_tls_on_readable,
    .on_drained = link_tls_on_drained,
    .on_closed = link_tls_on_stream_closed};

static void link_tls_on_timer(struct timer *t)
{
    struct link_tls *lt = LIST_ENTRY(t, struct link_tls, timer);

    link_fail_text(lt->link, "08001", "node %d did not answer the request for TLS in time",
        lt->link->pool->cluster_node);
}

static void link_tls_ask(struct link *link)
{
    struct backend *be = link->be;
    int node = link->pool->cluster_node;
    int64_t limit_ms = 0;
    const char *host;
    int port;
    struct err err;

    link->stream.ops = &link_tls_ops;
    (void)pools_conf_address(be->conf, node, &host, &port, &limit_ms);
    timer_start(be->loop, &link->opening->tls->timer, limit_ms > 0 ? limit_ms : LINK_TLS_LIMIT_MS);
    err_clear(&err);
    if (backend_tls_begin(be, node, &link->stream, &err) == -1)
        link_tls_failed(link, &err);
}

void link_tls_start(struct link *link, struct buf *packet)
{
    int mode = node_mode(link->be->conf, link->pool->cluster_node);

    if (mode == CONF_SSL_DISABLE && link->opening->tls == NULL) {
        tls_send_startup(link, packet->data, packet->len);
        return;
    }
    if (link->opening->tls == NULL) {
        link->opening->tls = mem_alloc_zero(sizeof *link->opening->tls);
        link->opening->tls->link = link;
        link->opening->tls->with_tls = mode != CONF_SSL_ALLOW;
        link->opening->tls->is_last = mode >= CONF_SSL_REQUIRE;
        timer_init(&link->opening->tls->timer, link_tls_on_timer);
        link->opening->tls->packet = *packet;
        memset(packet, 0, sizeof *packet);
    }
    if (link->opening->tls->with_tls)
        link_tls_ask(link);
    else
        link_tls_login(link);
}

bool link_tls_on_login_error(struct link *link, const char *sqlstate)
{
    struct link_tls *lt = link->opening->tls;

    /* pg_hba.conf has no line for this kind of connection: it may have one for the other. */
    if (lt == NULL || lt->is_last || link->auth != LINK_AUTH_TRUST ||
        strcmp(sqlstate, "28000") != 0)
        return false;
    link_log(link, LVL_DEBUG1, "node %d refuses the login: trying %s TLS", link->pool->cluster_node,
        lt->with_tls ? "without" : "with");
    link_tls_redial(link, !lt->with_tls);
    return true;
}

void link_tls_on_login_done(struct link *link)
{
    link_tls_free(link);
}
