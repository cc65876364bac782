/* SPDX-License-Identifier: PostgreSQL
 * client_auth_open.c: what of authentication costs many rounds, on threads: decrypting an entry of
 * pool_passwd, and making the verifier of a password that can be read.
 * Runs in: workers. Encrypted entries are opened behind each other when the file was read, so that
 * no login waits for it later and shows by that who has one; until they are open, the first login
 * of any name costs what opening one does. The verifier is made at the first login of a name in
 * this worker; whoever has none made spends the same time once, so that the first login is the same
 * for all names. Must never: touch the book from the thread. */
#include "config.h"

#include "auth/auth_book.h"
#include "base/mem.h"

#include "client_auth_int.h"

/* More are opened when their users come. */
#define OPEN_AHEAD_MAX 1000U

struct open_job {
    struct job job;
    struct login_auth *sa;
    struct auth_opening *opening;
    char *user;
    struct job **slot; /* the owner's */
    void (*opened)(void *owner);
};

/* ---- decrypting ---- */

static void open_work(struct job *job)
{
    auth_opening_work(LIST_ENTRY(job, struct open_job, job)->opening);
}

static void open_wipe(struct job *job)
{
    struct open_job *j = LIST_ENTRY(job, struct open_job, job);

    auth_opening_free(&j->opening);
    mem_free(j->user);
}

static void open_done(struct job *job)
{
    struct open_job *j = LIST_ENTRY(job, struct open_job, job);

    *j->slot = NULL;
    auth_book_end_opening(j->sa->book, slice_of_str(j->user), j->opening);
    j->opened(job->owner);
}

static void open_start(struct login_auth *sa, struct auth_opening *opening, struct slice user,
    struct job **slot, void *owner, void (*opened)(void *owner))
{
    struct open_job *j = mem_alloc_secret(sizeof *j);

    j->sa = sa;
    j->opening = opening;
    j->user = mem_strndup(user.p, user.n);
    j->slot = slot;
    j->opened = opened;
    j->job.owner = owner;
    j->job.computes = true;
    j->job.work = open_work;
    j->job.done = open_done;
    j->job.wipe = open_wipe;
    *slot = &j->job;
    job_start(sa->jobs, &j->job);
}

bool auth_open_start(struct login_auth *sa, struct slice user, struct job **slot, void *owner,
    void (*opened)(void *owner))
{
    struct auth_opening *opening = auth_book_begin_opening(sa->book, user);

    if (opening != NULL)
        open_start(sa, opening, user, slot, owner, opened);
    return opening != NULL;
}

static void open_client_done(void *owner)
{
    struct client_auth *a = owner;

    client_auth_note_spent(a, 0);
    if (client_auth_is_live(a))
        a->again(a);
}

bool client_auth_opens_entry(struct client_auth *a, void (*again)(struct client_auth *a))
{
    struct login_auth *sa = a->sa;
    struct slice user = client_auth_user(a);
    struct auth_opening *opening;

    if (a->spent >= AUTH_SPENT_OPENING)
        return false;
    a->spent = AUTH_SPENT_OPENING;
    opening = auth_book_begin_opening(sa->book, user);
    if (sa->open_cost > 0 && !client_auth_has_spent(a, 0)) {
        if (opening == NULL)
            opening = auth_book_begin_nothing(sa->book);
        auth_opening_make_last(opening, sa->open_cost);
    }
    a->again = again;
    if (opening != NULL)
        open_start(sa, opening, user, &a->job, a, open_client_done);
    return opening != NULL;
}

static void open_next(void *owner)
{
    struct login_auth *sa = owner;
    struct slice user;

    while (sa->nopened < OPEN_AHEAD_MAX && auth_book_next_closed(sa->book, &sa->open_at, &user)) {
        sa->nopened++;
        if (auth_open_start(sa, user, &sa->opener, sa, open_next))
            return;
    }
    if (sa->nopened < OPEN_AHEAD_MAX || !auth_book_next_closed(sa->book, &sa->open_at, &user))
        sa->open_cost = 0;
}

void login_auth_open_ahead(struct login_auth *sa)
{
    job_leave(&sa->opener);
    sa->open_at = 0;
    sa->nopened = 0;
    sa->open_cost = auth_book_slow_values(sa->book);
    open_next(sa);
}

/* ---- verifiers ---- */

struct derive_job {
    struct job job;
    struct cred cred;
    char *user;
    struct secret server_secret;
    uint32_t iterations;
    bool is_done;
    struct scram_verifier verifier;
};

static void derive_work(struct job *job)
{
    struct derive_job *j = LIST_ENTRY(job, struct derive_job, job);
    struct slice secret = secret_slice(&j->server_secret);

    if (j->cred.kind == CRED_PLAIN)
        j->is_done = cred_scram_verifier(&j->cred, slice_of_str(j->user), secret, j->iterations,
                         &j->verifier, NULL) == 0;
    else /* only the time counts */
        (void)scram_verifier_mock(
            secret, slice_of_str(j->user), j->iterations, true, &j->verifier, NULL);
}

static void derive_wipe(struct job *job)
{
    struct derive_job *j = LIST_ENTRY(job, struct derive_job, job);

    cred_free(&j->cred);
    secret_free(&j->server_secret);
    mem_free(j->user);
}

static void derive_done(struct job *job)
{
    struct derive_job *j = LIST_ENTRY(job, struct derive_job, job);
    struct client_auth *a = job->owner;

    a->job = NULL;
    client_auth_note_spent(a, j->iterations);
    if (j->is_done)
        auth_book_put_verifier(a->sa->book, client_auth_user(a), &j->cred, &j->verifier);
    if (client_auth_is_live(a))
        a->again(a);
}

bool client_auth_derives(struct client_auth *a, void (*again)(struct client_auth *a))
{
    bool is_plain = a->stored.kind == CRED_PLAIN && a->plan.proof != AUTH_PROOF_NEVER;
    uint32_t iterations = auth_guard_usual_cost(a->sa->guard);
    struct slice user = client_auth_user(a);
    struct derive_job *j;
    bool is_known = !is_plain || auth_book_has_verifier(a->sa->book, user, &a->stored, iterations);

    if (a->spent == AUTH_SPENT_DERIVING || (is_known && !auth_book_has_readable(a->sa->book)))
        return false;
    a->spent = AUTH_SPENT_DERIVING;
    if (is_known && client_auth_has_spent(a, iterations))
        return false;
    j = mem_alloc_secret(sizeof *j);
    j->user = mem_strndup(user.p, user.n);
    if (is_plain)
        cred_copy(&a->stored, &j->cred);
    secret_set(&j->server_secret, auth_guard_secret(a->sa->guard));
    j->iterations = iterations;
    j->job.owner = a;
    j->job.computes = true;
    j->job.work = derive_work;
    j->job.done = derive_done;
    j->job.wipe = derive_wipe;
    a->step = AUTH_STEP_LOOKUP;
    a->again = again;
    a->job = &j->job;
    job_start(a->sa->jobs, &j->job);
    return true;
}
