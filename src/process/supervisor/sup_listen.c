/* SPDX-License-Identifier: PostgreSQL
 * sup_listen.c: opens the sockets that clients and administrators connect to.
 * Runs in: supervisor. */
#include "config.h"

#include "process/supervisor/sup_int.h"

#include "base/log.h"
#include "config/conf_param.h"

struct listen_set {
    const struct conf_list *addresses;
    const struct conf_list *folders;
    int port;
    int backlog;
    struct listen_unix_opts unix_opts;
    struct listen_sock *socks;
    int *n;
};

static int open_tcp(const struct listen_set *set, struct err *err)
{
    int i;

    for (i = 0; i < set->addresses->n; i++) {
        if (listen_open_tcp(set->addresses->item[i], set->port, set->backlog, set->socks, set->n,
                PROC_MAX_LISTEN, err) == -1)
            return -1;
    }
    return 0;
}

static int open_unix(const struct listen_set *set, struct err *err)
{
    int i;

    for (i = 0; i < set->folders->n; i++) {
        if (*set->n == PROC_MAX_LISTEN) {
            err_set(err, "22023", "more than %d listening sockets", PROC_MAX_LISTEN);
            return -1;
        }
        if (listen_open_unix(set->folders->item[i], set->port, &set->unix_opts, set->backlog,
                &set->socks[*set->n], err) == -1)
            return -1;
        (*set->n)++;
    }
    return 0;
}

static int open_set(const struct listen_set *set, struct err *err)
{
    int i;

    if (open_tcp(set, err) == -1 || open_unix(set, err) == -1)
        return -1;
    for (i = 0; i < *set->n; i++)
        log_at(LVL_LOG, "Setting up socket for %s", set->socks[i].name);
    return 0;
}

/* A port that accepts and never answers is worse than none: PCP sockets are opened from the day on
 * which the table of features says that PCP is built. */
static bool pcp_is_built(void)
{
    struct conf_ref ref;
    struct err ignored = {0};
    const char *why;

    return conf_param_find("pcp_port", &ref, &ignored) == 0 && conf_param_is_built(ref.param, &why);
}

/* Probes and metrics go on while clients are sent home, so these sockets close with control's. */
static int open_web(struct sup *s, struct err *err)
{
    static const struct conf_list no_folders;
    const struct conf *conf = conf_of(s->gen);
    struct listen_set web = {
        .addresses = &conf->http_listen_addresses,
        .folders = &no_folders,
        .port = conf->http_port,
        .backlog = listen_backlog(0),
        .socks = s->web,
        .n = &s->nweb,
    };

    if (conf->http_port == 0)
        return 0;
    if (!PGPOOL_HAS_WEB) {
        err_set(err, "0A000", "http_port is set, but this pgpool was built without libmicrohttpd");
        err_hint(err, "Set http_port = 0, or build pgpool with libmicrohttpd.");
        return -1;
    }
    return open_set(&web, err);
}

int sup_listen_open(struct sup *s, struct err *err)
{
    const struct conf *conf = conf_of(s->gen);
    struct listen_set clients = {
        .addresses = &conf->listen_addresses,
        .folders = &conf->unix_socket_directories,
        .port = conf->port,
        .backlog = listen_backlog((long)s->nworkers * conf->listen_backlog_multiplier),
        .unix_opts = {.mode = (unsigned)conf->unix_socket_permissions,
            .group = conf->unix_socket_group},
        .socks = s->listeners,
        .n = &s->nlisten,
    };
    struct listen_set control = {
        .addresses = &conf->pcp_listen_addresses,
        .folders = &conf->pcp_socket_dir,
        .port = conf->pcp_port,
        .backlog = listen_backlog(0),
        .unix_opts = {.mode = 0777},
        .socks = s->control,
        .n = &s->ncontrol,
    };

    if (open_set(&clients, err) == -1)
        return -1;
    if (s->nlisten == 0) {
        err_set(err, "22023", "there is nothing to listen on");
        err_hint(err, "Set listen_addresses or unix_socket_directories.");
        return -1;
    }
    if (pcp_is_built() && open_set(&control, err) == -1)
        return -1;
    return open_web(s, err);
}

static void close_socks(struct listen_sock *socks, int *n)
{
    int i;

    for (i = 0; i < *n; i++)
        listen_close(&socks[i]);
    *n = 0;
}

void sup_listen_close_clients(struct sup *s)
{
    close_socks(s->listeners, &s->nlisten);
}

void sup_listen_close_control(struct sup *s)
{
    close_socks(s->control, &s->ncontrol);
    close_socks(s->web, &s->nweb);
}
