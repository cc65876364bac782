/* SPDX-License-Identifier: PostgreSQL
 * client_auth_stored.c: which stored secret judges a client: what the servers say (auth_query)
 * before what a file says (pool_passwd), for a file is forgotten when a password is changed.
 * Runs in: workers. Must never: let the file speak about a user of whom the servers have spoken;
 * keep those out whom the file knows because the servers cannot be asked. */
#include "config.h"

#include "auth/passwd.h"
#include "base/mem.h"
#include "config/conf.h"

#include "client_auth_int.h"

/* How long a login waits for what the servers say about its user, and how long while they have not
 * answered lately. All logins do: who can be judged without the servers is not to be told from
 * others. */
#define STORED_PATIENCE_MS         5000
#define STORED_PATIENCE_FAILING_MS 200
/* However old, but not in doubt: the role was not changed since, and nobody has failed by it. */
#define STORED_LAST_WORD_US (INT64_MAX - 1)

/* An entry that is there for us alone judges nobody: its user is asked as others are. */
static bool stored_find_in_file(struct client_auth *a, struct auth_stored *st)
{
    bool in_file = auth_book_find_passwd(a->sa->book, client_auth_user(a), st);

    return in_file &&
           (client_auth_file_judges(a) || a->who.console != NULL || client_auth_asks_servers(a));
}

/* The judge needs it. With pool_hba off a server that is known to trust makes all else idle. */
static bool stored_is_for_judge(const struct client_auth *a)
{
    if (!a->facts.has_rule)
        return client_auth_remembered(a) != AUTH_SERVER_TRUST;
    return a->facts.method == HBA_PASSWORD || a->facts.method == HBA_MD5 ||
           a->facts.method == HBA_SCRAM;
}

/* Others may need it towards the servers: a plain or md5 password opens them. What the file has is
 * good enough for that: who is not judged by it can gain nothing. */
static bool stored_is_for_servers(const struct client_auth *a, bool in_file)
{
    return !in_file && a->facts.has_rule && a->facts.method != HBA_REJECT &&
           client_auth_remembered(a) != AUTH_SERVER_TRUST &&
           auth_book_login(a->sa->book, client_auth_book_name(a)) == NULL;
}

static void stored_take(struct client_auth *a, const struct auth_stored *st)
{
    cred_copy(st->cred, &a->stored);
    a->facts.stored = a->stored.kind;
}

/* Who is not known shall look like most who are. */
static void stored_vote(const struct client_auth *a)
{
    if (a->stored.kind == CRED_SCRAM)
        auth_guard_vote(a->sa->guard, a->stored.verifier.iterations);
    else if (a->stored.kind == CRED_MD5 ||
             (a->stored.kind == CRED_PLAIN && a->facts.method == HBA_MD5))
        auth_guard_vote(a->sa->guard, 0);
}

/* The servers may know the user by another name, whoever judges. */
static void stored_take_map(struct client_auth *a, const struct auth_stored *st)
{
    if (st->server_user.n == 0)
        return;
    a->server_user = mem_strndup(st->server_user.p, st->server_user.n);
    cred_copy(st->server_cred, &a->mapped);
    a->facts.maps_user = true;
    a->facts.mapped = a->mapped.kind;
}

/* The answer about this user, if it came in at most `max_age_us`. */
static bool stored_find_answer(struct client_auth *a, int64_t max_age_us, struct auth_stored *st)
{
    struct auth_way way = client_auth_way(a);
    struct buf key = {0};
    bool found;

    auth_way_put_key(&way, &key);
    found = auth_book_find_answer(a->sa->book, client_auth_book_name(a), buf_slice(&key),
        loop_now_us(a->sa->be->loop), max_age_us, st);
    buf_free(&key);
    return found;
}

/* An md5 answer is good for md5 alone; the same password, readable in the file, is good for
 * everything. That it is the same is seen. */
static bool stored_is_same(const struct client_auth *a, const struct auth_stored *file)
{
    bool match = false;

    return a->stored.kind == CRED_MD5 && file->cred->kind == CRED_PLAIN &&
           cred_check_password(&a->stored, client_auth_user(a), secret_slice(&file->cred->text),
               &match, NULL, NULL) == 0 &&
           match;
}

/* Whom the file names is who knows the file's password, whatever the owner of a database says of
 * the name there: the connections are opened with what the file has. */
static bool stored_is_files(const struct client_auth *a)
{
    return client_auth_way(a).is_clients;
}

/* Everything is known that will be: `max_age_us` < 0 when an answer is not to be had. */
static void stored_settle(struct client_auth *a, int64_t max_age_us)
{
    struct auth_stored answer = {0};
    struct auth_stored file;
    bool is_answered = max_age_us >= 0 && stored_find_answer(a, max_age_us, &answer);
    bool in_file;

    if (is_answered) {
        if (a->answer != AUTH_ANSWER_UNSURE) /* else asking anew would tell nothing */
            a->stored_age_us = answer.age_us;
        a->answer = AUTH_ANSWER_JUDGES;
        stored_take(a, &answer);
        stored_vote(a);
    }
    in_file = stored_find_in_file(a, &file);
    if (in_file && (!is_answered || !answer.is_known || stored_is_files(a))) {
        if (is_answered)
            a->answer = AUTH_ANSWER_NONE;
        stored_take(a, &file);
        if (a->answer == AUTH_ANSWER_UNSURE ||
            (!client_auth_may_relay(a) && !client_auth_asks_servers(a)))
            stored_vote(a); /* the file alone says who is known */
    } else if (in_file && stored_is_same(a, &file)) {
        stored_take(a, &file);
    }
    if (in_file)
        stored_take_map(a, &file);
    client_auth_plan(a);
}

/* The servers cannot be asked. All clients are asked for their passwords as ever: those in the file
 * may be right, and who fails is told that it could not be found out, in the file or not. The
 * virtual database is there to see what is wrong: what the servers said last counts. */
static void stored_go_on_unsure(struct client_auth *a)
{
    struct err told = {0};

    if (!stored_is_for_judge(a)) {
        stored_settle(a, -1);
        return;
    }
    a->answer = AUTH_ANSWER_UNSURE;
    if (client_auth_is_blocked(a, AUTH_GUARD_UNSURE)) {
        client_auth_unsure_refusal(&told);
        client_auth_stop(a, &told, "auth_failure_limit is reached.");
        return;
    }
    stored_settle(a, a->who.console != NULL ? STORED_LAST_WORD_US : -1);
}

/* Who asks the servers is not asked about if the file knows him: it has the last word. That would
 * be seen by the time, so it is asked about nobody instead. */
static struct slice stored_whom(const struct client_auth *a, bool in_file)
{
    struct slice user = client_auth_user(a);

    return in_file && slice_eq_str(user, client_auth_way(a).user) ? slice_of_str(AUTH_NOBODY)
                                                                  : user;
}

static void stored_look_up(struct client_auth *a, struct slice whom);

/* What another server knows is no answer: a reload has put the database elsewhere meanwhile. */
static bool stored_asks_elsewhere(struct client_auth *a)
{
    struct auth_stored file;

    if (!a->who.req->pool->is_moved || !client_auth_asks_servers(a))
        return false;
    if (a->who.ops->follow(a->who.owner))
        stored_look_up(a, stored_whom(a, stored_find_in_file(a, &file)));
    return true;
}

static void stored_on_looked_up(struct auth_wait *w, const struct err *err)
{
    struct client_auth *a = LIST_ENTRY(w, struct client_auth, wait);

    timer_stop(a->sa->be->loop, &a->patience);
    if (!client_auth_is_live(a) || stored_asks_elsewhere(a))
        return;
    if (err == NULL) /* of this turn: nothing may have been asked about the user, see stored_whom */
        stored_settle(a, 0);
    else
        stored_go_on_unsure(a);
}

static void stored_look_up(struct client_auth *a, struct slice whom)
{
    struct auth_way way = client_auth_way(a);
    bool is_failing = auth_lookup_is_hopeless(a->sa, &way);

    a->wait.done = stored_on_looked_up;
    timer_start(a->sa->be->loop, &a->patience,
        is_failing ? STORED_PATIENCE_FAILING_MS : STORED_PATIENCE_MS);
    auth_lookup_start(a->sa, AUTH_LOOKUP_SECRET, &way, whom, slice_of("", 0),
        slice_eq(whom, client_auth_user(a)) ? client_auth_book_name(a) : whom, &a->wait);
}

void client_auth_on_patience(struct timer *t)
{
    struct client_auth *a = LIST_ENTRY(t, struct client_auth, patience);
    struct auth_way way = client_auth_way(a);

    auth_lookup_cancel(&a->wait);
    auth_lookup_give_up(a->sa, &way);
    if (client_auth_is_live(a))
        stored_go_on_unsure(a);
}

/* Shall the servers be asked? */
static bool stored_asks(struct client_auth *a, bool in_file)
{
    if (!stored_is_for_judge(a) && !stored_is_for_servers(a, in_file))
        return false;
    return client_auth_asks_servers(a);
}

/* While the servers are asked the client may be, too, if nothing that they say changes the
 * question. Whom the file knows as well: by the time of the question nobody shall be told from
 * others. `file` is its entry, or NULL; one that cannot be used may leave room for the server's own
 * question. */
static bool stored_may_ask_early(const struct client_auth *a, const struct auth_stored *file)
{
    return (file == NULL || file->cred->kind != CRED_NONE || !client_auth_may_relay(a)) &&
           a->facts.has_rule && a->facts.method == HBA_SCRAM && a->who.console == NULL;
}

void client_auth_find_stored(struct client_auth *a)
{
    int64_t max_age_us = a->sa->be->conf->auth_query_expire_ms * 1000;
    struct slice user = client_auth_user(a);
    struct auth_stored file;
    struct auth_stored answer;
    struct slice whom;
    bool is_early;
    bool in_file;

    a->step = AUTH_STEP_LOOKUP;
    login_auth_look(a->sa);
    if (client_auth_opens_entry(a, client_auth_find_stored))
        return;
    in_file = stored_find_in_file(a, &file);
    whom = stored_whom(a, in_file);
    if (!stored_asks(a, in_file)) {
        stored_settle(a, -1);
    } else if (slice_eq(whom, user) && stored_find_answer(a, max_age_us, &answer)) {
        stored_settle(a, max_age_us);
    } else {
        is_early = stored_may_ask_early(a, in_file ? &file : NULL);
        stored_look_up(a, whom);
        if (is_early)
            client_auth_ask_early(a);
    }
}
