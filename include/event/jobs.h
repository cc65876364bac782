/* SPDX-License-Identifier: PostgreSQL
 * jobs.h: work that may block or compute for long, each piece on a thread of its own.
 * Runs in: workers. A thread touches its job alone; the loop goes on meanwhile. */
#ifndef PGP_EVENT_JOBS_H
#define PGP_EVENT_JOBS_H

#include <stdbool.h>

#include "base/list.h"

struct jobs; /* of one worker */
struct loop;

/* The first member of a job, which is made by mem_alloc_secret. `work` runs on a thread and touches
 * the job alone; `done` runs on the loop, unless the owner has let go; `wipe` (may be NULL) frees
 * what the job holds. */
struct job {
    struct list node;
    struct jobs *jobs;
    void *owner;   /* NULL: nobody waits for the result */
    bool computes; /* asks nobody outside, so it ends soon: has threads apart from those who do */
    void (*work)(struct job *job);
    void (*done)(struct job *job);
    void (*wipe)(struct job *job);
};

/* Makes what the jobs of a process share. */
struct jobs *jobs_new(struct loop *loop);
/* Jobs that still run end by themselves, unseen. */
void jobs_free(struct jobs **jp);
/* Starts it, or queues it when too many run. The job belongs to the jobs from now on. */
void job_start(struct jobs *jobs, struct job *job);
/* The owner goes: `done` will not be called. */
void job_leave(struct job **jp);

#endif
