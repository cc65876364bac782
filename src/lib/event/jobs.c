/* SPDX-License-Identifier: PostgreSQL
 * jobs.c: what may block or takes long, off the loop: PAM, LDAP, name services, key derivations.
 * Runs in: workers. Not on libuv's pool: its few threads also resolve the names of servers, and a
 * directory that hangs would fill them. Here each job has a thread; when many hang, others still
 * start, up to a limit; beyond it they queue, and their clients' authentication_timeout runs. Jobs
 * that ask nobody have a limit of their own, so that no directory can keep them waiting. A thread
 * that has done its job stays for a while, for the next one.
 * Must never: let a thread touch anything but its job. */
#include "config.h"

#include "event/jobs.h"

#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <time.h>

#include "base/log.h"
#include "base/mem.h"

#include "event/loop.h"

/* Jobs that wait for others, and jobs that only compute: the former must not keep the latter from a
 * thread. */
enum job_class { JOB_WAITS, JOB_COMPUTES, JOB_CLASSES };
static const unsigned job_threads_max[JOB_CLASSES] = {[JOB_WAITS] = 128, [JOB_COMPUTES] = 8};
#define JOB_STACK_BYTES (512U * 1024)
/* Without a job a thread stays so long; of each class not more than so many. */
#define JOB_LINGER_S 10
#define JOB_IDLE_MAX 2U

/* Shared by the loop and the threads. The threads that still run when the worker ends keep it. */
struct jobs {
    uv_async_t async;
    struct loop *loop;
    pthread_mutex_t lock;
    struct list finished;            /* under `lock` */
    unsigned running;                /* threads; under `lock`, as is all up to is_closed */
    unsigned busy[JOB_CLASSES];      /* of `running`, with a job */
    unsigned idle[JOB_CLASSES];      /* of `running`, waiting for one, */
    struct list handed[JOB_CLASSES]; /* and are handed these: as many of them will wake up */
    pthread_cond_t wake[JOB_CLASSES];
    bool is_closed;
    struct list queued[JOB_CLASSES]; /* the loop's alone, as all below */
};

static enum job_class job_class(const struct job *job)
{
    return job->computes ? JOB_COMPUTES : JOB_WAITS;
}

static void job_free(struct job *job)
{
    if (job->wipe != NULL)
        job->wipe(job);
    mem_free_secret(job);
}

static void jobs_free_memory(struct jobs *jobs)
{
    int i;

    for (i = 0; i < JOB_CLASSES; i++)
        pthread_cond_destroy(&jobs->wake[i]);
    pthread_mutex_destroy(&jobs->lock);
    mem_free(jobs);
}

/* The thread's job is done, and belongs to the loop, or to nobody. Under the lock. */
static void job_over(struct jobs *jobs, struct job *job)
{
    if (jobs->is_closed) {
        job_free(job);
        return;
    }
    list_push_back(&jobs->finished, &job->node);
    uv_async_send(&jobs->async);
}

/* The next job for a thread; NULL: it is to end. Under the lock. */
static struct job *job_next(struct jobs *jobs, enum job_class class)
{
    struct timespec until;
    struct list *n;
    int rc = 0;

    if (jobs->idle[class] >= JOB_IDLE_MAX)
        return NULL;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += JOB_LINGER_S;
    jobs->idle[class]++;
    while (list_is_empty(&jobs->handed[class]) && !jobs->is_closed && rc == 0)
        rc = pthread_cond_timedwait(&jobs->wake[class], &jobs->lock, &until);
    n = list_first(&jobs->handed[class]);
    if (n == NULL) {
        jobs->idle[class]--;
        return NULL;
    }
    list_remove(n);
    return LIST_ENTRY(n, struct job, node);
}

static void *job_main(void *arg)
{
    struct job *job = arg;
    struct jobs *jobs = job->jobs;
    enum job_class class = job_class(job);
    bool is_last = false;

    while (job != NULL) {
        job->work(job);
        pthread_mutex_lock(&jobs->lock);
        jobs->busy[class]--;
        job_over(jobs, job);
        job = job_next(jobs, class);
        if (job == NULL)
            jobs->running--;
        is_last = job == NULL && jobs->is_closed && jobs->running == 0;
        pthread_mutex_unlock(&jobs->lock);
    }
    if (is_last)
        jobs_free_memory(jobs);
    return NULL;
}

/* A thread that takes no signals: they are the loop's. */
static int job_spawn(struct job *job)
{
    pthread_attr_t attr;
    pthread_t thread;
    sigset_t all;
    sigset_t before;
    int rc;

    sigfillset(&all);
    pthread_attr_init(&attr);
    (void)pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
    (void)pthread_attr_setstacksize(&attr, JOB_STACK_BYTES);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    rc = pthread_create(&thread, &attr, job_main, job);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attr);
    return rc;
}

enum job_place { JOB_NO_PLACE, JOB_NEW_THREAD, JOB_HANDED };

/* A thread that waits takes it at once, or it may have a new one, or it has to wait. */
static enum job_place job_take_place(struct jobs *jobs, struct job *job)
{
    enum job_class class = job_class(job);
    enum job_place place = JOB_NO_PLACE;

    pthread_mutex_lock(&jobs->lock);
    if (jobs->idle[class] > 0) {
        jobs->idle[class]--;
        list_push_back(&jobs->handed[class], &job->node);
        pthread_cond_signal(&jobs->wake[class]);
        place = JOB_HANDED;
    } else if (jobs->busy[class] < job_threads_max[class]) {
        jobs->running++;
        place = JOB_NEW_THREAD;
    }
    jobs->busy[class] += place != JOB_NO_PLACE;
    pthread_mutex_unlock(&jobs->lock);
    return place;
}

static void job_give_place(struct jobs *jobs, enum job_class class)
{
    pthread_mutex_lock(&jobs->lock);
    jobs->running--;
    jobs->busy[class]--;
    pthread_mutex_unlock(&jobs->lock);
}

/* False: it has to wait. */
static bool job_begin(struct jobs *jobs, struct job *job)
{
    enum job_place place = job_take_place(jobs, job);
    int rc;

    if (place != JOB_NEW_THREAD)
        return place == JOB_HANDED;
    rc = job_spawn(job);
    if (rc == 0)
        return true;
    job_give_place(jobs, job_class(job)); /* when another ends, or its client goes */
    log_at_detail(LVL_WARNING, NULL,
        "The limits of tasks and memory: ulimit -u, TasksMax of systemd.",
        "could not start a thread for authentication: %s", strerror(rc));
    return false;
}

/* Starts queued jobs while there is room. Those whose owners have gone are dropped. */
static void jobs_run_queue(struct jobs *jobs, enum job_class class)
{
    struct list *queued = &jobs->queued[class];
    struct list *n;

    while ((n = list_first(queued)) != NULL) {
        struct job *job = LIST_ENTRY(n, struct job, node);

        list_remove(&job->node);
        if (job->owner == NULL) {
            job_free(job);
        } else if (!job_begin(jobs, job)) {
            list_push_front(queued, &job->node);
            return;
        }
    }
}

static void jobs_on_async(uv_async_t *async)
{
    struct jobs *jobs = LIST_ENTRY(async, struct jobs, async);
    struct job *job;
    struct list *n;

    do {
        pthread_mutex_lock(&jobs->lock);
        n = list_first(&jobs->finished);
        if (n != NULL)
            list_remove(n);
        pthread_mutex_unlock(&jobs->lock);
        if (n == NULL)
            break;
        job = LIST_ENTRY(n, struct job, node);
        if (job->owner != NULL)
            job->done(job);
        job_free(job);
    } while (n != NULL);
    jobs_run_queue(jobs, JOB_WAITS);
    jobs_run_queue(jobs, JOB_COMPUTES);
}

struct jobs *jobs_new(struct loop *loop)
{
    struct jobs *jobs = mem_alloc_zero(sizeof *jobs);
    pthread_condattr_t attr;
    int i;

    pthread_mutex_init(&jobs->lock, NULL);
    pthread_condattr_init(&attr);
    (void)pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    for (i = 0; i < JOB_CLASSES; i++) {
        list_init(&jobs->queued[i]);
        list_init(&jobs->handed[i]);
        pthread_cond_init(&jobs->wake[i], &attr);
    }
    pthread_condattr_destroy(&attr);
    list_init(&jobs->finished);
    jobs->loop = loop;
    (void)uv_async_init(loop_uv(loop), &jobs->async, jobs_on_async);
    uv_unref((uv_handle_t *)&jobs->async);
    return jobs;
}

static void jobs_on_closed(uv_handle_t *handle)
{
    struct jobs *jobs = LIST_ENTRY(handle, struct jobs, async);
    bool is_idle;

    pthread_mutex_lock(&jobs->lock);
    is_idle = --jobs->running == 0;
    pthread_mutex_unlock(&jobs->lock);
    if (is_idle)
        jobs_free_memory(jobs);
}

static void jobs_drop(struct list *jobs)
{
    struct list *n;

    while ((n = list_first(jobs)) != NULL) {
        list_remove(n);
        job_free(LIST_ENTRY(n, struct job, node));
    }
}

void jobs_free(struct jobs **jp)
{
    struct jobs *jobs = *jp;
    int i;

    *jp = NULL;
    if (jobs == NULL)
        return;
    jobs_drop(&jobs->queued[JOB_WAITS]);
    jobs_drop(&jobs->queued[JOB_COMPUTES]);
    pthread_mutex_lock(&jobs->lock);
    jobs->is_closed = true; /* from now on threads free their jobs themselves */
    jobs->running++;        /* and nobody frees the memory before libuv has let go of it */
    jobs_drop(&jobs->finished);
    for (i = 0; i < JOB_CLASSES; i++)
        pthread_cond_broadcast(&jobs->wake[i]);
    pthread_mutex_unlock(&jobs->lock);
    (void)loop_uv(jobs->loop);
    uv_close((uv_handle_t *)&jobs->async, jobs_on_closed);
}

void job_start(struct jobs *jobs, struct job *job)
{
    job->jobs = jobs;
    list_init(&job->node);
    list_push_back(&jobs->queued[job_class(job)], &job->node);
    jobs_run_queue(jobs, job_class(job));
}

void job_leave(struct job **jp)
{
    struct job *job = *jp;

    *jp = NULL;
    if (job != NULL)
        job->owner = NULL;
}
