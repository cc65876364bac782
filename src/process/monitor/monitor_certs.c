/* SPDX-License-Identifier: PostgreSQL
 * monitor_certs.c: tells of certificates that are about to expire.
 * Runs in: monitor, which is always there and writes the events. Who starts or reloads pgpool hears
 * of one that has expired; between the two months may pass. */
#include "config.h"

#include <stdio.h>

#include "base/log.h"
#include "sys/clock.h"

#include "monitor_int.h"

static void tell(struct monitor *m, const struct cert_date *c, int64_t now_s)
{
    struct view_event e = {.at_us = clock_wall_us(), .node = c->node, .name = "certificate"};
    const char *verb = c->expires_s <= now_s ? "has expired" : "expires";
    char when[CERT_DATE_BYTES];

    cert_date_text(c->expires_s, when);
    log_at_detail(LVL_WARNING, NULL,
        "Whoever checks it refuses the connection from then on. Renew it and reload.",
        "the certificate of %s, \"%s\", %s at %s", c->setting, c->file, verb, when);
    snprintf(e.text, sizeof e.text, "the certificate of %s %s at %s", c->setting, verb, when);
    snprintf(e.cause, sizeof e.cause, "%.*s", (int)sizeof e.cause - 1, c->file);
    snprintf(e.who, sizeof e.who, "monitor");
    view_add_event(m->role.env->shm, &e);
}

static void look(struct monitor *m)
{
    int64_t now_s = clock_wall_us() / CLOCK_US_PER_S;
    int i;

    for (i = 0; i < m->certs.n; i++) {
        struct cert_date *c = m->certs.row[i];

        if (cert_date_due_s(c) > now_s)
            continue;
        tell(m, c, now_s);
        c->told_s = now_s;
    }
    if (m->certs.n > 0)
        timer_start(&m->role.loop, &m->certs_timer, cert_dates_wait_s(&m->certs, now_s) * 1000);
}

static void on_timer(struct timer *t)
{
    look(LIST_ENTRY(t, struct monitor, certs_timer));
}

void monitor_certs_init(struct monitor *m)
{
    timer_init(&m->certs_timer, on_timer);
    monitor_certs_read(m);
}

void monitor_certs_read(struct monitor *m)
{
    timer_stop(&m->role.loop, &m->certs_timer);
    cert_dates_read(&m->certs, role_loop_gen(&m->role));
    look(m);
}

void monitor_certs_fini(struct monitor *m)
{
    timer_stop(&m->role.loop, &m->certs_timer);
    cert_dates_free(&m->certs);
}
