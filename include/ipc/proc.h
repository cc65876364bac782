/* SPDX-License-Identifier: PostgreSQL
 * proc.h: what a child process is given, and the table of processes in shared memory.
 * Runs in: every process. This page is the whole contract between the supervisor and its children.
 */
#ifndef PGP_IPC_PROC_H
#define PGP_IPC_PROC_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "event/loop.h"
#include "ipc/mailbox.h"
#include "ipc/roles.h"
#include "ipc/shm.h"

#define PROC_MAX_LISTEN      64
#define PROC_SLOT_SUPERVISOR 0
#define PROC_PATH_BYTES      4096

struct conf_gen;

/* Files named on the command line: absolute names, empty when not given. */
struct proc_paths {
    char hba[PROC_PATH_BYTES];
    char pcp[PROC_PATH_BYTES];
    char key[PROC_PATH_BYTES];
};

/* Handed to the role's main function after the fork: descriptors not in here are closed, signals
 * are at their defaults except SIGPIPE, SIGHUP, SIGINT and SIGTERM (ignored: a terminal or a
 * service manager sends the last two to all processes at once, but it is the supervisor that says
 * how to stop, by MAIL_SHUTDOWN; a role may handle them itself), the title and the log are set, the
 * parent's death kills the process (PR_SET_PDEATHSIG). */
struct proc_env {
    enum proc_role role;
    int slot;     /* row in the process table and mailbox number */
    int ordinal;  /* 0, 1, 2 ... among processes of this role */
    int nworkers; /* worker slots are first_worker_slot .. +nworkers-1 */
    int first_worker_slot;
    struct shm *shm;
    struct mailboxes *boxes;
    int mail_fd; /* receiving end, non-blocking: watch it for reading */
    int nlisten; /* client listening sockets, shared by all workers, non-blocking */
    int listen_fd[PROC_MAX_LISTEN];
    bool listen_is_unix[PROC_MAX_LISTEN];
    int control_fd[PROC_MAX_LISTEN]; /* PCP listening sockets, role CONTROL only */
    int ncontrol;
    int web_fd[PROC_MAX_LISTEN]; /* HTTP listening sockets, role WEB only */
    int nweb;
    const struct conf_gen *conf; /* the generation at the time of the fork */
    const struct proc_paths *paths;
    bool is_witness; /* there are no clients, servers, monitor and workers, only the watchdog */
    int log_fd;      /* what children log to, role LOGGER only; else -1 */
    int stderr_fd;   /* what children write to standard error, role LOGGER only; else -1 */
};

typedef int proc_main_fn(struct proc_env *env); /* returns the exit status */

/* One row per slot. `seq` guards everything below it. Written by the living process itself; by the
 * supervisor while there is none. */
struct proc_row {
    struct shm_seq seq;
    int32_t pid; /* 0: no process */
    int32_t role;
    int32_t ordinal;
    int64_t start_time_us; /* wall clock */
    uint64_t conf_generation;
    uint32_t restarts;
    /* Written by the process itself, read by others without the guard. */
    _Atomic uint32_t nclients;
    _Atomic uint32_t nwaiting;
    /* A worker that is to be handed no more clients; the supervisor: pgpool stops. */
    _Atomic uint32_t is_leaving;
    struct loop_stalls stalls; /* of its event loop */
} __attribute__((aligned(64)));

/* Size of the region PROCS. */
size_t proc_table_bytes(int nslots);
/* Row of a slot. */
struct proc_row *proc_row(const struct shm *shm, int slot);
int proc_nslots(const struct shm *shm);
/* The slot of a living process of `role`; -1: there is none. */
int proc_find(const struct shm *shm, enum proc_role role);
/* Consistent copy of a row. */
void proc_row_copy(const struct shm *shm, int slot, struct proc_row *out);

/* Sets the process title ("pgpool: " is put in front, as pgpool-II does). Cheap enough for state
 * changes, never called per query. */
void proc_set_title(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* The process title without "pgpool: "; the pointer stays, the text is that of the moment. NULL
 * before the first title. */
const char *proc_title(void);

#endif
