/* SPDX-License-Identifier: PostgreSQL
 * wd_trusted.c: trusted_servers: hosts whose answers tell that the network is there.
 * Runs in: watchdog. A round is one command per host, side by side; the first answer ends the
 * waiting, the last silence does. Names reach a shell: what is not plain is refused at the start.
 */
#include "config.h"

#include "wd_trusted.h"

#include <ctype.h>
#include <string.h>

#include "base/buf.h"
#include "base/log.h"
#include "base/mem.h"
#include "config/conf.h"
#include "process/common/command_run.h"

#define ROUND_LIMIT_MS   10000
#define DEFAULT_ROUND_MS 10000 /* when wd_interval is 0 */

struct asked {
    struct wd_trusted *t;
    char *host;
    struct run *run;
};

struct wd_trusted {
    struct loop *lp;
    wd_trusted_fn *fn;
    void *owner;
    char *command;
    int64_t period_ms;
    struct timer timer;
    enum wd_trust state;
    bool heard;          /* in this round */
    int64_t asked_us;    /* loop time at which this round began */
    int64_t answered_us; /* when the last round that was answered began; 0: none was */
    int nhosts;
    struct asked asked[];
};

static bool is_plain(const char *host)
{
    const char *p;

    for (p = host; *p != '\0'; p++)
        if (!isalnum((unsigned char)*p) && strchr("._-:%", *p) == NULL)
            return false;
    return host[0] != '-' && host[0] != '\0';
}

static bool is_over(const struct wd_trusted *t)
{
    int i;

    for (i = 0; i < t->nhosts; i++)
        if (t->asked[i].run != NULL)
            return false;
    return true;
}

static void conclude(struct wd_trusted *t, enum wd_trust state)
{
    if (state == WD_TRUST_SILENT && t->state != state)
        log_at_detail(LVL_WARNING, NULL,
            "Until one answers this pgpool counts itself as cut off and takes no virtual address.",
            "no trusted server answers");
    else if (state == WD_TRUST_ANSWERS && t->state == WD_TRUST_SILENT)
        log_at(LVL_LOG, "a trusted server answers again");
    t->state = state;
    if (state == WD_TRUST_ANSWERS)
        t->answered_us = t->asked_us;
    t->fn(t->owner);
}

static void on_answer(void *owner, const struct run_end *end)
{
    struct asked *a = owner;
    struct wd_trusted *t = a->t;
    bool was_heard = t->heard;

    a->run = NULL;
    t->heard = t->heard || end->ok;
    if (!end->ok)
        log_at_detail(LVL_LOG, end->text, NULL, "watchdog failed to ping host:\"%s\"", a->host);
    if (t->heard && !was_heard)
        conclude(t, WD_TRUST_ANSWERS);
    else if (!t->heard && is_over(t))
        conclude(t, WD_TRUST_SILENT);
}

/* The command with the host for %h. */
static void make_line(const struct wd_trusted *t, const char *host, struct buf *line)
{
    const char *p;

    for (p = t->command; *p != '\0'; p++) {
        if (p[0] == '%' && p[1] == 'h') {
            buf_printf(line, "%s", host);
            p++;
        } else {
            buf_put_byte(line, *p);
        }
    }
    buf_put_byte(line, '\0');
}

static void ask_one(struct asked *a)
{
    struct buf line = {0};
    struct run_spec spec = {.name = "trusted_server_command",
        .is_quiet = true,
        .limit_ms = ROUND_LIMIT_MS,
        .done = on_answer,
        .owner = a};

    make_line(a->t, a->host, &line);
    spec.line = line.data;
    a->run = run_start(a->t->lp, &spec);
    buf_free(&line);
}

void wd_trusted_ask(struct wd_trusted *t)
{
    int i;

    if (t->nhosts == 0 || !is_over(t))
        return;
    t->heard = false;
    t->asked_us = loop_now_us(t->lp);
    timer_start(t->lp, &t->timer, t->period_ms);
    for (i = 0; i < t->nhosts; i++)
        ask_one(&t->asked[i]);
}

/* A round in which no command could be started has nobody who ends it. */
static void on_timer(struct timer *timer)
{
    struct wd_trusted *t = LIST_ENTRY(timer, struct wd_trusted, timer);

    wd_trusted_ask(t);
    if (is_over(t))
        conclude(t, WD_TRUST_SILENT);
    if (!timer_is_armed(&t->timer))
        timer_start(t->lp, &t->timer, t->period_ms);
}

static int check_hosts(const struct conf_list *hosts, struct err *err)
{
    int i;

    for (i = 0; i < hosts->n; i++) {
        if (is_plain(hosts->item[i]))
            continue;
        err_set(err, "22023", "trusted_servers names \"%s\", which is no host", hosts->item[i]);
        err_hint(err, "Give names or addresses, separated by commas.");
        return -1;
    }
    return 0;
}

struct wd_trusted *wd_trusted_new(
    struct loop *lp, const struct conf *conf, wd_trusted_fn *fn, void *owner, struct err *err)
{
    const struct conf_list *hosts = &conf->trusted_servers;
    struct wd_trusted *t;
    int i;

    if (check_hosts(hosts, err) == -1)
        return NULL;
    t = mem_alloc_zero(sizeof *t + (size_t)hosts->n * sizeof t->asked[0]);
    t->lp = lp;
    t->fn = fn;
    t->owner = owner;
    t->command = mem_strdup(conf->trusted_server_command);
    t->period_ms = conf->wd_interval_ms > 0 ? conf->wd_interval_ms : DEFAULT_ROUND_MS;
    t->state = hosts->n == 0 ? WD_TRUST_ANSWERS : WD_TRUST_UNKNOWN;
    t->nhosts = hosts->n;
    for (i = 0; i < hosts->n; i++)
        t->asked[i] = (struct asked){.t = t, .host = mem_strdup(hosts->item[i])};
    timer_init(&t->timer, on_timer);
    if (t->nhosts > 0)
        timer_start(lp, &t->timer, 0);
    return t;
}

void wd_trusted_free(struct wd_trusted **tp)
{
    struct wd_trusted *t = *tp;
    int i;

    if (t == NULL)
        return;
    *tp = NULL;
    timer_stop(t->lp, &t->timer);
    for (i = 0; i < t->nhosts; i++) {
        run_forget(&t->asked[i].run);
        mem_free(t->asked[i].host);
    }
    mem_free(t->command);
    mem_free(t);
}

void wd_trusted_reload(struct wd_trusted *t, const struct conf *conf)
{
    mem_free(t->command);
    t->command = mem_strdup(conf->trusted_server_command);
}

bool wd_trusted_answered(const struct wd_trusted *t, int64_t since_us)
{
    return t->answered_us != 0 && t->answered_us >= since_us;
}

enum wd_trust wd_trusted_state(const struct wd_trusted *t)
{
    return t->state;
}
