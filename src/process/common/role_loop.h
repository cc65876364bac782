/* SPDX-License-Identifier: PostgreSQL
 * role_loop.h: the life of a process that has an event loop and follows its mailbox: it takes
 * reloads, and ends when told to. Runs in: monitor, control. */
#ifndef PGP_PROCESS_ROLE_LOOP_H
#define PGP_PROCESS_ROLE_LOOP_H

#include "event/loop.h"
#include "ipc/proc.h"

struct role_loop;

/* A message that is neither reload nor shutdown; the function owns mail->fd. */
typedef void role_on_mail_fn(struct role_loop *rl, struct mail *mail);
/* The settings changed: role_loop_conf() is the new generation's. */
typedef void role_on_reload_fn(struct role_loop *rl);
/* Told to stop, see stop_mode. True: the role calls role_loop_end itself when it is done; false: at
 * once.
 */
typedef bool role_on_stop_fn(struct role_loop *rl);

struct role_loop {
    struct loop loop;
    struct io mail_io;
    struct proc_env *env;
    struct conf_gen *gen;         /* own generation after a reload; NULL before */
    bool ended;                   /* role_loop_end was called */
    char stop_mode;               /* 0, or what the supervisor said: 's', 'f', 'i' */
    role_on_mail_fn *on_mail;     /* may be NULL */
    role_on_reload_fn *on_reload; /* may be NULL */
    role_on_stop_fn *on_stop;     /* may be NULL */
};

/* Makes the loop and watches the mailbox. The callbacks stay as they are in *rl. */
void role_loop_init(struct role_loop *rl, struct proc_env *env);
/* Runs until role_loop_end; returns the exit status. */
int role_loop_run(struct role_loop *rl);
/* Ends the loop, now or, when role_loop_run has not been called yet, as soon as it is: a process
 * may be told to stop while it still starts. Roles call this and not loop_stop. */
void role_loop_end(struct role_loop *rl);
void role_loop_fini(struct role_loop *rl);
/* The generation in use. */
const struct conf_gen *role_loop_gen(const struct role_loop *rl);

#endif
