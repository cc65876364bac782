/* SPDX-License-Identifier: PostgreSQL
 * cert_dates.c: until when certificates last. Runs in: monitor, web. */
#include "config.h"

#include "process/common/cert_dates.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/mem.h"
#include "net/tls.h"

static bool is_there(const struct cert_dates *d, const char *file)
{
    int i;

    for (i = 0; i < d->n; i++)
        if (strcmp(d->row[i]->file, file) == 0)
            return true;
    return false;
}

static void take(struct cert_dates *d, const struct conf_gen *gen, const char *name, int node)
{
    struct cert_date *c = mem_alloc_zero(sizeof *c);
    struct err err = {0};

    c->node = node;
    if (node == -1)
        snprintf(c->setting, sizeof c->setting, "ssl_cert");
    else
        snprintf(c->setting, sizeof c->setting, "backend_ssl_cert%d", node);
    if (conf_path(gen, name, c->file, sizeof c->file, &err) == -1 || is_there(d, c->file) ||
        !tls_cert_expires_s(c->file, &c->expires_s))
        mem_free(c);
    else
        d->row[d->n++] = c;
}

static bool shows_cert(const struct conf *conf, int node)
{
    const struct conf_node *n = &conf->nodes[node];

    return conf_has_node(conf, node) && n->backend_ssl_cert[0] != '\0' &&
           n->backend_ssl_mode != CONF_SSL_DISABLE &&
           (conf->ssl || n->backend_ssl_mode >= CONF_SSL_REQUIRE);
}

void cert_dates_read(struct cert_dates *d, const struct conf_gen *gen)
{
    const struct conf *conf = conf_of(gen);
    int i;

    cert_dates_free(d);
    if (conf->ssl_cert[0] != '\0' && (conf->ssl || (conf->http_port != 0 && conf->http_ssl)))
        take(d, gen, conf->ssl_cert, -1);
    for (i = 0; i < conf->nnodes; i++)
        if (shows_cert(conf, i))
            take(d, gen, conf->nodes[i].backend_ssl_cert, i);
}

void cert_dates_free(struct cert_dates *d)
{
    while (d->n > 0)
        mem_free(d->row[--d->n]);
}

int64_t cert_date_due_s(const struct cert_date *c)
{
    int64_t again_s = c->told_s + CERT_DATES_AGAIN_S;

    if (c->told_s == 0)
        return c->expires_s - CERT_DATES_SOON_S;
    return c->told_s < c->expires_s && c->expires_s < again_s ? c->expires_s : again_s;
}

int64_t cert_dates_wait_s(const struct cert_dates *d, int64_t now_s)
{
    int64_t wait_s = CERT_DATES_AGAIN_S;
    int i;

    for (i = 0; i < d->n; i++)
        if (cert_date_due_s(d->row[i]) - now_s < wait_s)
            wait_s = cert_date_due_s(d->row[i]) - now_s;
    return wait_s < 0 ? 0 : wait_s;
}

const struct cert_date *cert_dates_first(const struct cert_dates *d)
{
    const struct cert_date *first = NULL;
    int i;

    for (i = 0; i < d->n; i++)
        if (first == NULL || d->row[i]->expires_s < first->expires_s)
            first = d->row[i];
    return first;
}

void cert_date_text(int64_t at_s, char out[CERT_DATE_BYTES])
{
    time_t at = (time_t)at_s;
    struct tm tm = {0};

    if (gmtime_r(&at, &tm) == NULL ||
        strftime(out, CERT_DATE_BYTES, "%Y-%m-%d %H:%M:%S GMT", &tm) == 0)
        out[0] = '\0';
}
