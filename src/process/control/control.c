/* SPDX-License-Identifier: PostgreSQL
 * control.c: life of the control process: it follows its mailbox and owns the PCP sockets. There is
 * no PCP server yet: a connection is closed at once and said so in the log, so that nobody waits
 * for an answer that never comes. Runs in: control. */
#include "config.h"

#include "process/control/control.h"

#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/log.h"
#include "process/common/role_loop.h"

#define ACCEPTS_PER_TURN 16

struct control_listener {
    struct io io;
    int fd;
};

struct control {
    struct role_loop rl;
    struct log_limit refused;
    struct control_listener listener[PROC_MAX_LISTEN];
};

static void on_connection(struct io *io, int events)
{
    struct control_listener *l = LIST_ENTRY(io, struct control_listener, io);
    struct control *c = io->poll.loop->data;
    int i;

    for (i = 0; i < ACCEPTS_PER_TURN; i++) {
        int fd = accept4(l->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

        if (fd == -1)
            return;
        close(fd);
        if (log_is_on(LVL_LOG) && log_limit_pass(&c->refused))
            log_at(LVL_LOG, "PCP connection refused: PCP commands are not served yet");
    }
}

static void on_closed(struct io *io)
{
}

static void open_listeners(struct control *c, const struct proc_env *env)
{
    int i;

    c->rl.loop.uv.data = c;
    for (i = 0; i < env->ncontrol; i++) {
        c->listener[i].fd = env->control_fd[i];
        io_open(&c->rl.loop, &c->listener[i].io, env->control_fd[i], on_connection);
        io_want(&c->listener[i].io, IO_READ);
    }
}

int control_main(struct proc_env *env)
{
    struct control c = {.rl = {.on_mail = NULL, .on_reload = NULL}};
    int status;
    int i;

    role_loop_init(&c.rl, env);
    open_listeners(&c, env);
    status = role_loop_run(&c.rl);
    for (i = 0; i < env->ncontrol; i++)
        io_close(&c.listener[i].io, on_closed);
    role_loop_fini(&c.rl);
    return status;
}
