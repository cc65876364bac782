/* SPDX-License-Identifier: PostgreSQL
 * command_run.h: an operator's command, run by the shell beside the loop.
 * Runs in: monitor, watchdog. Its output goes into the log line by line; its time is limited; it
 * outlives this process, and the next monitor can find it again. */
#ifndef PGP_PROCESS_COMMAND_RUN_H
#define PGP_PROCESS_COMMAND_RUN_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "event/loop.h"

#define RUN_TEXT_BYTES 160

struct run;

struct run_end {
    uint32_t seq;
    bool ok; /* exit status 0 */
    bool timed_out;
    char text[RUN_TEXT_BYTES]; /* how it ended, for people */
};

/* Told once, when the command has ended or was ended; *r is gone after it. */
typedef void run_done_fn(void *owner, const struct run_end *end);

struct run_spec {
    const char *name;   /* a constant: stands in front of its lines in the log */
    const char *line;   /* for sh -c */
    const char *folder; /* where it runs; NULL or empty: where this process stands */
    struct buf *env;   /* NAME=value, each with its NUL, besides our own environment; may be NULL */
    struct buf *input; /* may be NULL */
    bool is_quiet;     /* neither its lines nor a failure go into the log: it is a question */
    int64_t limit_ms;  /* 0: none */
    uint32_t seq;      /* comes back in the end */
    run_done_fn *done;
    void *owner;
};

/* Starts it; NULL when that fails (the log says why). The spec is not kept. */
struct run *run_start(struct loop *lp, const struct run_spec *spec);
/* Takes up a command that a former monitor started: what it still prints, and its end; `spec` needs
 * name, limit_ms, seq, done and owner. NULL when it is not there any more. */
struct run *run_adopt(struct loop *lp, int pid, const struct run_spec *spec);
int run_pid(const struct run *r);
bool run_is_quiet(const struct run *r);
/* Lets go of it without ending the command: nobody is told any more. Clears *rp. */
void run_forget(struct run **rp);

#endif
