/* SPDX-License-Identifier: PostgreSQL
 * sup_int.h: the supervisor's root struct and what its files offer each other.
 * Runs in: supervisor. */
#ifndef PGP_PROCESS_SUP_INT_H
#define PGP_PROCESS_SUP_INT_H

#include <stdint.h>
#include <sys/types.h>

#include "config/conf.h"
#include "process/supervisor/supervisor.h"
#include "sys/listen.h"
#include "sys/pidfile.h"

#define SUP_MAX_WORKERS 256
/* How many workers that child_max_connections has retired may still have clients. */
#define SUP_MAX_RETIRING 4

enum sup_phase {
    SUP_RUNNING,
    SUP_DRAINING, /* workers were told to stop */
    SUP_ENDING,   /* workers are gone, monitor and control were told */
    SUP_DONE      /* all but the logger are gone */
};

struct sup_child {
    enum proc_role role;
    int slot;
    int ordinal;
    pid_t pid; /* 0: not running */
    int64_t started_us;
    int64_t retry_at_us; /* when it is to be forked again; only while pid is 0 */
    int backoff_ms;
    uint64_t gen_told; /* number of the generation it knows */
    char stop_told;    /* letter it was told, 0 for none */
    bool is_spare;     /* a worker's place that stays empty until another worker retires */
    bool is_retiring;  /* a worker that has a successor: its place will be a spare one */
    bool retire_told;
};

struct sup {
    struct sup_opts opts;
    struct conf_gen *gen;
    int gen_fd; /* canonical text of `gen` for children; -1 before the first reload */
    struct shm *shm;
    struct mailboxes *boxes;
    long most_files; /* that a process may have open; -1: unknown */
    int nworkers;    /* places for workers, the spare ones included */
    int first_worker_slot;
    int nchildren;
    struct sup_child *children;
    int nlisten;
    struct listen_sock listeners[PROC_MAX_LISTEN];
    int ncontrol;
    struct listen_sock control[PROC_MAX_LISTEN];
    int nweb;
    struct listen_sock web[PROC_MAX_LISTEN];
    int signal_fd;
    int daemon_fd;    /* the shell waits at the other end; -1 otherwise */
    int log_ends[2];  /* to the logger: 0 is its end, 1 everybody else's; -1 without a logger */
    int err_ends[2];  /* standard error to the logger, with ends as log_ends has them */
    int plain_stderr; /* standard error as it was before the logger took it; -1 without a logger */
    struct pidfile pidfile;
    enum sup_phase phase;
    char stop_mode;        /* 0, 's', 'f', 'i' */
    int64_t upgrade_at_us; /* a smart stop becomes a fast one; 0 never */
    int64_t kill_at_us;    /* those that are left get SIGKILL; 0 never */
    int64_t retry_post_us; /* a mailbox was full: try again; 0 nothing to do */
    int64_t alive_at_us;   /* next ping for the service manager; 0 never */
    int alive_every_ms;
};

/* sup_listen.c: opens all listening sockets; 0 or -1 with *err. */
int sup_listen_open(struct sup *s, struct err *err);
/* Closes the clients' sockets, or those of control and web. */
void sup_listen_close_clients(struct sup *s);
void sup_listen_close_control(struct sup *s);

/* sup_child.c: forks the child now; sets its retry when that fails. Does not return in the child.
 */
void sup_child_start(struct sup *s, struct sup_child *c);
/* Forks those whose time has come. */
void sup_child_start_due(struct sup *s, int64_t now_us);
/* The worker `pid` in `slot` has served as many clients as it may, and still has some: starts a
 * successor in a spare place and tells it to leave with the last of them. Does nothing while there
 * is no spare place: it asks again. */
void sup_child_succeed(struct sup *s, int slot, pid_t pid);
/* Takes all children that have ended. */
void sup_child_reap(struct sup *s);
/* How many run, of workers or of all but the logger. */
int sup_child_count(const struct sup *s, bool only_workers);
struct sup_child *sup_child_of_role(struct sup *s, enum proc_role role);

/* sup_reload.c: loads the file again and hands the result out, or refuses it. */
void sup_reload(struct sup *s);
/* Tells every child what it has not been told yet: generation, stop. */
void sup_tell_children(struct sup *s);
/* What the child has to be told about stopping in this phase, 0 for nothing. The logger leaves by
 * itself when nobody is left to write to it. */
char sup_stop_letter(const struct sup *s, const struct sup_child *c);

/* sup_stop.c: begins to stop, or goes on to a harder way. `signo` is for the log. */
void sup_stop_request(struct sup *s, char mode, int signo);
/* Goes from phase to phase as children leave. */
void sup_stop_step(struct sup *s, int64_t now_us);
/* Ends the logger and gives back what is held; the last thing. */
void sup_stop_finish(struct sup *s);

#endif
