/* SPDX-License-Identifier: PostgreSQL
 * worker.c: the process that serves clients: an event loop with many clients, and the links to
 * servers they share. One slow client delays nobody; a crash takes this worker's clients and
 * nothing else. */
#include "config.h"

#include "process/worker/worker.h"

#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "base/mem.h"
#include "config/conf.h"
#include "ipc/hold.h"
#include "login/login_auth.h"
#include "native/native.h"
#include "results/results.h"
#include "net/stream.h"
#include "console/console.h"

#include "worker_int.h"

/* Who retires, or stops when all have gone, waits so long for clients that others handed to it
 * before they knew. */
#define RETIRE_MS      20
#define LEAVE_LIMIT_MS 2000
/* For a COMMIT that a client of native replication has left behind: less than the supervisor waits
 * before it kills. */
#define REST_LIMIT_MS 20000

/* Takes no more clients, and leaves with the last one. */
static void worker_retire(struct worker *w)
{
    if (!w->is_retiring)
        log_at(LVL_LOG, "child exiting, %d connections reached",
            w->sessions.conf->child_max_connections);
    w->is_retiring = true;
    acceptors_stop(&w->acceptors);
    atomic_store(&proc_row(w->role.env->shm, w->role.env->slot)->is_leaving, 1);
    if (w->sessions.nclients == 0)
        timer_start(&w->role.loop, &w->leave, RETIRE_MS);
}

/* Has child_max_connections been reached? */
static bool worker_has_served(const struct worker *w)
{
    int limit = w->sessions.conf->child_max_connections;

    return limit > 0 && w->sessions.served >= (uint64_t)limit &&
           w->sessions.stop == SESSION_RUNNING;
}

/* A worker that always has clients would never be replaced: its successor starts first. Until it
 * does, which needs a place, this one goes on, and asks again at the next client. */
void worker_on_added(struct worker *w)
{
    struct proc_env *env = w->role.env;
    char body[1 + sizeof(int32_t)] = {'w'};
    int32_t pid;

    if (w->is_retiring || w->sessions.nclients == 0 || !worker_has_served(w))
        return;
    pid = (int32_t)getpid();
    memcpy(body + 1, &pid, sizeof pid);
    (void)mailbox_post(env->boxes, PROC_SLOT_SUPERVISOR, MAIL_REQUEST, body, sizeof body, -1);
}

static void worker_on_mail(struct role_loop *rl, struct mail *mail)
{
    struct worker *w = LIST_ENTRY(rl, struct worker, role);

    switch (mail->type) {
    case MAIL_CLIENT:
        accept_on_mail(w, mail);
        return;
    case MAIL_SESSION:
        sessions_on_travel(&w->sessions, mail->body, mail->len, mail->fd);
        return;
    case MAIL_CANCEL:
        sessions_on_cancel(&w->sessions, mail->body, mail->len, mail->fd);
        return;
    case MAIL_LINK_WANTED:
        backend_on_wanted(&w->sessions.be, mail->body, mail->len);
        break;
    case MAIL_CLIENT_WANTED:
        backend_on_called(&w->sessions.be, mail->body, mail->len);
        break;
    case MAIL_LINK_PLACE:
        backend_on_place(&w->sessions.be, mail->body, mail->len);
        break;
    case MAIL_LINKS_RETIRE:
        sessions_on_retire(&w->sessions, mail->body, mail->len);
        break;
    case MAIL_ORDER:
        sessions_on_order(&w->sessions, mail->body, mail->len);
        break;
    case MAIL_LINK_OFFER:
        backend_on_offer(&w->sessions.be, mail->body, mail->len, mail->fd);
        return;
    case MAIL_RETIRE:
        if (w->sessions.stop == SESSION_RUNNING)
            worker_retire(w);
        break;
    case MAIL_CLUSTER_CHANGED:
        sessions_on_cluster(&w->sessions);
        break;
    case MAIL_CACHE_DONE:
        results_on_done(&w->sessions, mail->body, mail->len);
        break;
    case MAIL_GATE_OPEN:
        native_on_gate(&w->sessions);
        break;
    case MAIL_WORKER_GONE: /* perhaps before it could tell who was let in */
        native_on_gate(&w->sessions);
        backend_post_retry(&w->sessions.be);
        break;
    case MAIL_PLACE_TAKEN:
        (void)login_auth_make_room(w->sessions.auth);
        break;
    case MAIL_QUOTA_FREED:
        backend_post_retry(&w->sessions.be);
        break;
    default:
        log_at_detail(LVL_WARNING, NULL, LOG_HINT_MISFIT,
            "worker got a message it does not know: %d", (int)mail->type);
        break;
    }
    if (mail->fd != -1)
        close(mail->fd);
}

static void worker_on_reload(struct role_loop *rl)
{
    struct worker *w = LIST_ENTRY(rl, struct worker, role);

    sessions_set_conf(&w->sessions, role_loop_gen(rl));
    accept_on_reload(w);
}

/* Smart: no new clients, end with the last one. Fast: everybody is told to go, and has a moment to
 * read it. Immediate: now. */
static bool worker_on_stop(struct role_loop *rl)
{
    struct worker *w = LIST_ENTRY(rl, struct worker, role);

    acceptors_stop(&w->acceptors);
    if (rl->stop_mode == 'i')
        return false;
    sessions_stop(&w->sessions, rl->stop_mode == 's' ? SESSION_STOP_SMART : SESSION_STOP_FAST);
    return true;
}

/* The statements of clients that were sent home are being cancelled: a worker that left before its
 * requests are out would leave them running on the servers. Where it left amid a COMMIT on several
 * nodes it would count as one that died, and all of them but one would be detached. */
static bool worker_may_leave(struct worker *w)
{
    const struct sessions *ss = &w->sessions;
    int64_t now_us = loop_now_us(&w->role.loop);
    int64_t limit_ms = ss->be.ncancels > 0 ? LEAVE_LIMIT_MS : 0;

    if (hold_is_inside(w->role.env->shm, w->role.env->ordinal)) {
        if (ss->stop != SESSION_STOP_FAST)
            return false;
        limit_ms = REST_LIMIT_MS;
    }
    if (w->leaves_since_us == 0)
        w->leaves_since_us = now_us;
    return now_us - w->leaves_since_us >= limit_ms * 1000;
}

static void worker_leave(struct worker *w)
{
    if (worker_may_leave(w))
        role_loop_end(&w->role);
    else
        timer_start(&w->role.loop, &w->leave, LOOP_TICK_MS);
}

static void worker_on_leave(struct timer *t)
{
    struct worker *w = LIST_ENTRY(t, struct worker, leave);

    if (w->sessions.nclients > 0 && w->sessions.stop != SESSION_STOP_FAST)
        return; /* one has come on the way, and ends the wait when it goes */
    worker_leave(w);
}

static void worker_on_empty(struct sessions *ss)
{
    struct worker *w = LIST_ENTRY(ss, struct worker, sessions);

    if (worker_has_served(w))
        worker_retire(w);
    if (ss->stop == SESSION_STOP_SMART)
        timer_start(&w->role.loop, &w->leave, RETIRE_MS);
    else if (ss->stop != SESSION_RUNNING)
        worker_leave(w);
}

int worker_main(struct proc_env *env)
{
    struct worker *w = mem_alloc_zero(sizeof *w);
    int status;

    w->role.on_mail = worker_on_mail;
    w->role.on_reload = worker_on_reload;
    w->role.on_stop = worker_on_stop;
    timer_init(&w->leave, worker_on_leave);
    role_loop_init(&w->role, env);
    stream_later_init(&w->role.loop);
    sessions_init(&w->sessions, &w->role.loop, env);
    w->sessions.on_empty = worker_on_empty;
    console_offer(&w->sessions);
    native_offer(&w->sessions);
    results_offer(&w->sessions);
    accept_init(w);
    gather_init(w);
    acceptors_start(&w->acceptors);
    status = role_loop_run(&w->role);
    if (w->role.stop_mode == 'i')
        _exit(status); /* ban: at once, and the clients with it: nobody is left to return to */
    accept_fini(w);
    gather_fini(w);
    results_withdraw(&w->sessions);
    native_withdraw(&w->sessions);
    sessions_fini(&w->sessions);
    stream_later_fini(&w->role.loop);
    role_loop_fini(&w->role);
    mem_free(w);
    return status;
}
