/* SPDX-License-Identifier: PostgreSQL
 * login_learn.c: what opens standbys for a user whom a server has judged (auth_learn_keys): from
 * the SCRAM exchange that was passed on and the verifier, which is looked up behind the login.
 * Runs in: workers. Nobody waits for it, and nothing that fails here changes a login. Must never:
 * learn from one whom no server has let in; learn what can be read, or an md5. */
#include "config.h"

#include <string.h>

#include "base/mem.h"
#include "config/conf.h"
#include "login/login_auth.h"

#include "client_auth_int.h"

/* Nobody is asked for so long behind a failure; and who may not read it. */
#define LEARN_PAUSE_US  INT64_C(60000000)
#define LEARN_DENIED_US INT64_C(3600000000)

struct learner {
    struct auth_wait wait;
    struct list node; /* login_auth.learners */
    struct login_auth *sa;
    struct scram_watch watch;
    uint32_t user_len;
    char user[];
};

static void learner_free(struct learner *l)
{
    auth_lookup_cancel(&l->wait);
    list_remove(&l->node);
    scram_watch_fini(&l->watch);
    mem_free_secret(l);
}

static bool is_wanted(const struct conf *conf)
{
    if (conf->nnodes < 2 || !conf->load_balance_mode || conf_writes_everywhere(conf))
        return false; /* no read leaves */
    return conf->auth_learn_keys == CONF_LEARN_ON ||
           (conf->auth_learn_keys == CONF_LEARN_AUTO && conf->auth_relay != CONF_RELAY_ON);
}

/* ---- while it is passed on ---- */

void client_auth_watch_client(struct client_auth *a, struct slice body)
{
    const struct login_auth *sa = a->sa;
    const struct pool *pool = a->who.req->pool;
    struct auth_way way = login_auth_find_role_way(sa->be->conf);

    if (a->watch == NULL) {
        if (!is_wanted(sa->be->conf) || loop_now_us(sa->be->loop) < sa->learn_after_us ||
            pool_book_name(pool).n > pool_user(pool).n || /* of another cluster */
            !auth_way_is_there(&way))
            return;
        a->watch = mem_alloc_secret(sizeof *a->watch);
    }
    scram_watch_client(a->watch, body);
}

void client_auth_watch_server(struct client_auth *a, struct slice body)
{
    if (a->watch != NULL)
        scram_watch_server(a->watch, body);
}

void client_auth_watch_free(struct client_auth *a)
{
    if (a->watch == NULL)
        return;
    scram_watch_fini(a->watch);
    mem_free_secret(a->watch);
    a->watch = NULL;
}

/* ---- the server has let it in ---- */

static bool is_known(struct client_auth *a)
{
    const struct auth_login *login = auth_book_login(a->sa->book, pool_user(a->who.req->pool));
    struct scram_keys keys;
    bool fits;

    if (login == NULL || (login->hold & AUTH_HOLD_KEYS) == 0)
        return login != NULL && (login->hold & AUTH_HOLD_PASSWORD) != 0;
    fits = scram_watch_keys(a->watch, &login->keys.verifier, &keys);
    mem_wipe(&keys, sizeof keys);
    return fits;
}

static void learner_done(struct auth_wait *w, const struct err *err)
{
    struct learner *l = LIST_ENTRY(w, struct learner, wait);
    bool is_denied = err != NULL && strcmp(err->sqlstate, "42501") == 0;

    if (err != NULL)
        l->sa->learn_after_us =
            loop_now_us(l->sa->be->loop) + (is_denied ? LEARN_DENIED_US : LEARN_PAUSE_US);
    learner_free(l);
}

void client_auth_learn_keys(struct client_auth *a)
{
    struct login_auth *sa = a->sa;
    struct slice user = pool_user(a->who.req->pool);
    struct auth_way way = login_auth_find_role_way(sa->be->conf);
    struct learner *l;

    if (a->watch == NULL || !scram_watch_is_whole(a->watch) || is_known(a) ||
        login_auth_told(sa, AUTH_LOOKUP_KEYS, user, slice_of("", 0)) != AUTH_TOLD_NOTHING)
        return;
    login_auth_put_told(sa, AUTH_LOOKUP_KEYS, user, slice_of("", 0), AUTH_TOLD_YES);
    l = mem_alloc_secret(sizeof *l + user.n);
    l->sa = sa;
    l->watch = *a->watch;
    memset(a->watch, 0, sizeof *a->watch);
    l->user_len = (uint32_t)user.n;
    memcpy(l->user, user.p, user.n);
    list_push_back(&sa->learners, &l->node);
    l->wait.done = learner_done;
    auth_lookup_start(sa, AUTH_LOOKUP_KEYS, &way, user, slice_of("", 0), user, &l->wait);
}

/* ---- what was looked up ---- */

void login_learn_take(
    struct login_auth *sa, struct slice user, const struct list *waiters, struct slice secret)
{
    struct scram_verifier v;
    struct scram_keys keys;
    const struct learner *l;
    const struct list *n;

    if (scram_verifier_parse(secret, &v) == 0)
        for (n = waiters->next; n != waiters; n = n->next) {
            l = LIST_ENTRY(LIST_ENTRY(n, struct auth_wait, node), struct learner, wait);
            if (scram_watch_keys(&l->watch, &v, &keys))
                auth_book_learn_keys(sa->book, user, &keys);
            mem_wipe(&keys, sizeof keys);
        }
    mem_wipe(&v, sizeof v);
}

bool login_auth_is_learning(const struct login_auth *sa, struct slice user)
{
    const struct learner *l;
    const struct list *n;

    for (n = sa->learners.next; n != &sa->learners; n = n->next) {
        l = LIST_ENTRY(n, struct learner, node);
        if (slice_eq(slice_of(l->user, l->user_len), user))
            return true;
    }
    return false;
}

void login_learners_close(struct login_auth *sa)
{
    struct list *n;

    while ((n = list_first(&sa->learners)) != NULL)
        learner_free(LIST_ENTRY(n, struct learner, node));
}
