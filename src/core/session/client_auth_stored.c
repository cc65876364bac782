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

/* So long waits for the servers who could be judged without them. */
#define STORED_PATIENCE_MS 2000

/* What the server asked lately; unknown is always safe. */
enum auth_server client_auth_remembered(const struct client_auth *a)
{
    const struct pool *pool = a->c->pool;

    if (a->c->login->req.is_private)
        return AUTH_SERVER_UNKNOWN; /* sessions have told nothing about replication */
    if (pool_is_trusted(pool))
        return AUTH_SERVER_TRUST;
    return pool->auth == LINK_AUTH_ASKED ? (enum auth_server)pool->asks : AUTH_SERVER_UNKNOWN;
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
    struct buf key = {0};
    bool found;

    auth_lookup_put_key(a->sa, a->c->login->startup.database, client_auth_user(a), &key);
    found = auth_book_find_answer(a->sa->book, client_auth_book_name(a), buf_slice(&key),
        loop_now_us(a->c->ss->loop), max_age_us, st);
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

/* Everything is known that will be: `max_age_us` < 0 when the servers could not be asked. */
static void stored_settle(struct client_auth *a, int64_t max_age_us)
{
    struct auth_stored answer = {0};
    struct auth_stored file;
    bool is_answered = max_age_us >= 0 && stored_find_answer(a, max_age_us, &answer);
    bool in_file;

    if (is_answered) {
        a->stored_age_us = answer.age_us;
        a->was_looked_up = true;
        stored_take(a, &answer);
        stored_vote(a);
    }
    in_file = auth_book_find_passwd(a->sa->book, client_auth_user(a), &file);
    if (in_file && (!is_answered || !answer.is_known)) {
        a->was_looked_up = false;
        stored_take(a, &file);
        if (!a->c->ss->conf->auth_relay)
            stored_vote(a); /* the file alone says who is known */
    } else if (in_file && stored_is_same(a, &file)) {
        stored_take(a, &file);
    }
    if (in_file)
        stored_take_map(a, &file);
    client_auth_plan(a);
}

static void stored_on_looked_up(struct auth_wait *w, const struct err *err)
{
    struct client_auth *a = LIST_ENTRY(w, struct client_auth, wait);
    struct auth_stored file;
    struct err told = {0};

    timer_stop(a->c->ss->loop, &a->patience);
    if (!client_auth_is_live(a))
        return;
    if (err == NULL) {
        stored_settle(a, INT64_MAX);
        return;
    }
    if (stored_is_for_judge(a) && !auth_book_find_passwd(a->sa->book, client_auth_user(a), &file)) {
        err_set_fatal(&told, "57P03", "could not look up the user");
        err_detail(&told, "The servers could not be asked for the user's password.");
        client_auth_stop(a, &told, err->msg);
        return;
    }
    stored_settle(a, -1);
}

void client_auth_on_patience(struct timer *t)
{
    struct client_auth *a = LIST_ENTRY(t, struct client_auth, patience);

    auth_lookup_cancel(&a->wait);
    auth_lookup_give_up(
        a->sa, AUTH_LOOKUP_SECRET, a->c->login->startup.database, client_auth_user(a));
    if (client_auth_is_live(a))
        stored_settle(a, -1);
}

/* Shall the servers be asked? Who asks them cannot be asked about if the file knows him. */
static bool stored_asks(struct client_auth *a, bool in_file)
{
    struct slice database = a->c->login->startup.database;
    struct slice user = client_auth_user(a);

    if (!stored_is_for_judge(a) && !stored_is_for_servers(a, in_file))
        return false;
    return auth_lookup_is_possible(a->sa, AUTH_LOOKUP_SECRET, database, user) &&
           !(in_file && auth_lookup_is_asker(a->sa, database, user));
}

/* While the servers are asked the client may be, too, if nothing that they say changes the
 * question. Whom the file knows as well: by the time of the question nobody shall be told from
 * others. `file` is its entry, or NULL; one that cannot be used leaves room for the server's own
 * question. */
static bool stored_may_ask_early(const struct client_auth *a, const struct auth_stored *file)
{
    return (file == NULL || file->cred->kind != CRED_NONE) && a->facts.has_rule &&
           a->facts.method == HBA_SCRAM;
}

void client_auth_find_stored(struct client_auth *a)
{
    int64_t max_age_us = a->c->ss->conf->auth_query_expire_ms * 1000;
    struct slice database = a->c->login->startup.database;
    struct slice user = client_auth_user(a);
    struct auth_stored file;
    struct auth_stored answer;
    bool is_early;
    bool in_file;

    a->step = AUTH_STEP_LOOKUP;
    session_auth_look(a->sa);
    if (client_auth_opens_entry(a))
        return;
    in_file = auth_book_find_passwd(a->sa->book, user, &file);
    if (!stored_asks(a, in_file) ||
        (in_file && auth_lookup_is_hopeless(a->sa, AUTH_LOOKUP_SECRET, database, user))) {
        stored_settle(a, -1);
    } else if (stored_find_answer(a, max_age_us, &answer)) {
        stored_settle(a, max_age_us);
    } else {
        is_early = stored_may_ask_early(a, in_file ? &file : NULL);
        a->wait.done = stored_on_looked_up;
        if (in_file)
            timer_start(a->c->ss->loop, &a->patience, STORED_PATIENCE_MS);
        auth_lookup_start(a->sa, AUTH_LOOKUP_SECRET, database, user, slice_of("", 0),
            client_auth_book_name(a), &a->wait);
        if (is_early)
            client_auth_ask_early(a);
    }
}
