/* SPDX-License-Identifier: PostgreSQL
 * role_loop.c: the life of a process that has an event loop and follows its mailbox.
 * Runs in: monitor, control. */
#include "config.h"

#include "process/common/role_loop.h"

#include <errno.h>
#include <unistd.h>

#include "base/log.h"
#include "config/conf.h"
#include "process/common/role_conf.h"

#define MAILS_PER_TURN 64

const struct conf_gen *role_loop_gen(const struct role_loop *rl)
{
    return rl->gen != NULL ? rl->gen : rl->env->conf;
}

void role_loop_end(struct role_loop *rl)
{
    rl->ended = true;
    loop_stop(&rl->loop);
}

static void note_generation(struct role_loop *rl)
{
    struct proc_row *row = proc_row(rl->env->shm, rl->env->slot);

    shm_write_begin(&row->seq);
    row->conf_generation = conf_number(role_loop_gen(rl));
    shm_write_end(&row->seq);
}

static void reload(struct role_loop *rl, struct mail *mail)
{
    struct err err = {0};
    struct conf_gen *gen = role_conf_read(mail->fd, &err);
    struct conf_gen *old = rl->gen;

    mail->fd = -1;
    if (gen == NULL) {
        log_err(LVL_WARNING, &err);
        return;
    }
    rl->gen = gen;
    role_conf_apply_log(conf_of(gen));
    note_generation(rl);
    if (rl->on_reload != NULL)
        rl->on_reload(rl);
    conf_gen_free(&old);
}

static void handle(struct role_loop *rl, struct mail *mail)
{
    if (mail->type == MAIL_RELOAD) {
        reload(rl, mail);
    } else if (mail->type == MAIL_SHUTDOWN) {
        rl->stop_mode = mail->len > 0 ? mail->body[0] : 'f';
        if (rl->on_stop == NULL || !rl->on_stop(rl))
            role_loop_end(rl);
    } else if (rl->on_mail != NULL) {
        rl->on_mail(rl, mail);
        return;
    } else {
        log_at_detail(LVL_WARNING, NULL, LOG_HINT_MISFIT, "%s got a message it does not know: %s",
            proc_role_name(rl->env->role), mail_name(mail->type));
    }
    if (mail->fd != -1)
        close(mail->fd);
}

static void on_mail_ready(struct io *io, int events)
{
    struct role_loop *rl = LIST_ENTRY(io, struct role_loop, mail_io);
    struct mail mail;
    int i;

    for (i = 0; i < MAILS_PER_TURN; i++) {
        int rc = mailbox_take(rl->env->boxes, &mail);

        if (rc == 0)
            return;
        if (rc == -1 && errno != EPROTO) {
            log_at_detail(LVL_FATAL, NULL,
                "The process ends, and another is started: please report it if it goes on.",
                "mailbox of the %s process is broken", proc_role_name(rl->env->role));
            rl->stop_mode = 'f';
            role_loop_end(rl);
            return;
        }
        if (rc == 1)
            handle(rl, &mail);
    }
}

void role_loop_init(struct role_loop *rl, struct proc_env *env)
{
    rl->env = env;
    rl->gen = NULL;
    rl->ended = false;
    rl->stop_mode = 0;
    loop_init(&rl->loop);
    rl->loop.stalls = &proc_row(env->shm, env->slot)->stalls;
    io_open(&rl->loop, &rl->mail_io, env->mail_fd, on_mail_ready);
    io_want(&rl->mail_io, IO_READ);
    note_generation(rl);
}

int role_loop_run(struct role_loop *rl)
{
    if (!rl->ended)
        loop_run(&rl->loop);
    return 0;
}

static void on_closed(struct io *io)
{
}

void role_loop_fini(struct role_loop *rl)
{
    io_close(&rl->mail_io, on_closed);
    loop_fini(&rl->loop);
    conf_gen_free(&rl->gen);
}
