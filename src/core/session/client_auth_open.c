/* SPDX-License-Identifier: PostgreSQL
 * client_auth_open.c: decrypts the entry of one user in pool_passwd before it is needed.
 * Runs in: workers. A key that costs an attacker much costs us as much, tens of milliseconds: that
 * is a thread's work. Must never: touch the book from the thread. */
#include "config.h"

#include "base/mem.h"

#include "client_auth_int.h"

struct open_job {
    struct job job;
    struct auth_opening *opening;
};

static void open_work(struct job *job)
{
    auth_opening_work(LIST_ENTRY(job, struct open_job, job)->opening);
}

static void open_wipe(struct job *job)
{
    auth_opening_free(&LIST_ENTRY(job, struct open_job, job)->opening);
}

static void open_done(struct job *job)
{
    struct open_job *j = LIST_ENTRY(job, struct open_job, job);
    struct client_auth *a = job->owner;

    a->job = NULL;
    auth_book_end_opening(a->sa->book, client_auth_user(a), j->opening);
    if (client_auth_is_live(a))
        client_auth_find_stored(a);
}

bool client_auth_opens_entry(struct client_auth *a)
{
    struct auth_opening *opening = auth_book_begin_opening(a->sa->book, client_auth_user(a));
    struct open_job *j;

    if (opening == NULL)
        return false;
    j = mem_alloc_secret(sizeof *j);
    j->opening = opening;
    j->job.owner = a;
    j->job.computes = true;
    j->job.work = open_work;
    j->job.done = open_done;
    j->job.wipe = open_wipe;
    a->job = &j->job;
    job_start(a->sa->jobs, &j->job);
    return true;
}
