/* SPDX-License-Identifier: PostgreSQL
 * sup_reload.c: makes a new configuration generation and hands it to every child.
 * Runs in: supervisor. A generation is whole or it is not: one error refuses the file. */
#include "config.h"

#include "process/supervisor/sup_int.h"

#include <unistd.h>

#include "base/log.h"
#include "base/mem.h"
#include "process/common/role_conf.h"
#include "sys/clock.h"
#include "sys/fd.h"
#include "sys/notify.h"

#define POST_RETRY_MS 200

/* The text holds passwords: it lives in memory only and is wiped here. */
static int make_text_fd(const struct conf_gen *gen, struct err *err)
{
    struct buf text = {.is_secret = true};
    int fd;

    conf_dump_canonical(gen, &text);
    fd = fd_of_text("pgpool-conf", text.data, text.len, err);
    buf_free(&text);
    return fd;
}

static void log_change(void *ctx, const char *name, const char *value)
{
    (void)ctx;
    log_at(LVL_LOG, "parameter \"%s\" changed to \"%s\"", name, value);
}

static void log_changes(const struct conf_gen *from, const struct conf_gen *to)
{
    conf_each_change(from, to, log_change, NULL);
    if (!conf_equal_pools(from, to))
        log_at(
            LVL_LOG, "settings of databases and users changed in \"%s\"", conf_of(to)->pools_file);
}

static void take_over(struct sup *s, struct conf_gen *gen, int fd)
{
    log_changes(s->gen, gen);
    fd_close(&s->gen_fd);
    conf_gen_free(&s->gen);
    s->gen = gen;
    s->gen_fd = fd;
    role_conf_apply_log(conf_of(gen));
    sup_tell_children(s);
    log_at(
        LVL_LOG, "configuration generation %llu is in use", (unsigned long long)conf_number(gen));
}

void sup_reload(struct sup *s)
{
    struct conf_report report;
    struct conf_gen *gen;
    struct err err = {0};
    int fd = -1;

    if (s->phase != SUP_RUNNING)
        return;
    log_at(LVL_LOG, "reload config files.");
    notify_reloading();
    conf_report_init(&report);
    gen = conf_reload(s->gen, conf_file(s->gen), &report);
    role_conf_log_report(&report);
    if (gen != NULL)
        fd = make_text_fd(gen, &err);
    if (gen == NULL) {
        log_at_detail(LVL_ERROR, NULL, "Correct the file and reload again.",
            "configuration was not reloaded: %d error%s; generation %llu stays in use",
            report.nerrors, report.nerrors == 1 ? "" : "s",
            (unsigned long long)conf_number(s->gen));
    } else if (fd == -1) {
        log_err(LVL_ERROR, &err);
        conf_gen_free(&gen);
    } else {
        take_over(s, gen, fd);
    }
    conf_report_fini(&report);
    notify_ready("running");
}

/* 0: told, -1: its box is full. */
static int tell_generation(struct sup *s, struct sup_child *c)
{
    uint64_t number = conf_number(s->gen);

    if (c->gen_told == number || s->gen_fd == -1)
        return 0;
    if (mailbox_post(s->boxes, c->slot, MAIL_RELOAD, &number, sizeof number, s->gen_fd) == -1)
        return -1;
    c->gen_told = number;
    return 0;
}

char sup_stop_letter(const struct sup *s, const struct sup_child *c)
{
    if (s->phase == SUP_RUNNING || c->role == ROLE_LOGGER)
        return 0;
    if (c->role == ROLE_WORKER || s->phase >= SUP_ENDING || s->stop_mode == 'i')
        return s->stop_mode;
    return 0;
}

static int tell_stop(struct sup *s, struct sup_child *c)
{
    char letter = sup_stop_letter(s, c);

    if (letter == 0 || c->stop_told == letter)
        return 0;
    if (mailbox_post(s->boxes, c->slot, MAIL_SHUTDOWN, &letter, 1, -1) == -1)
        return -1;
    c->stop_told = letter;
    return 0;
}

static int tell_retire(struct sup *s, struct sup_child *c)
{
    if (!c->is_retiring || c->retire_told)
        return 0;
    if (mailbox_post(s->boxes, c->slot, MAIL_RETIRE, NULL, 0, -1) == -1)
        return -1;
    c->retire_told = true;
    return 0;
}

void sup_tell_children(struct sup *s)
{
    int failed = 0;
    int i;

    for (i = 0; i < s->nchildren; i++) {
        struct sup_child *c = &s->children[i];

        if (c->pid != 0)
            failed +=
                tell_generation(s, c) == -1 || tell_stop(s, c) == -1 || tell_retire(s, c) == -1;
    }
    s->retry_post_us = failed == 0 ? 0 : clock_mono_us() + POST_RETRY_MS * CLOCK_US_PER_MS;
}
