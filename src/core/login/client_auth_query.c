/* SPDX-License-Identifier: PostgreSQL
 * client_auth_query.c: looks up secrets (auth_query) and memberships on a link of its own.
 * Runs in: workers. One prober per data base asks one question after the other; clients with the
 * same question wait for the same answer; the link goes back to the pool when nothing is left to
 * ask. Must never: put a client's text into a statement (it goes as a parameter), believe an answer
 * about another user than asked for. */
#include "config.h"

#include <string.h>

#include "auth/passwd.h"
#include "base/log.h"
#include "base/mem.h"
#include "cluster/view.h"
#include "config/conf.h"
#include "login/login_auth.h"
#include "wire/message.h"
#include "wire/reader.h"
#include "wire/writer.h"

#include "client_auth_int.h"
#include "client_auth_lookup_int.h"

/* A server that does not answer is given up after this. */
#define LOOKUP_TIMEOUT_MS 5000
/* In place of a server that was lost another one is asked, when all have been looked at since. */
#define LOST_LOOK_MS     50
#define LOST_PATIENCE_US INT64_C(2000000)
/* Keeps our statements apart from equal ones of clients, of whom more is known. */
#define LOOKUP_PATH_HASH UINT64_C(0x6c6f6f6b2d757021)

enum prober_phase {
    PROBER_NEW,
    PROBER_WAITING,
    PROBER_OPENING,
    PROBER_READY,
    PROBER_ASKING,
    PROBER_LOST /* its server: another one, perhaps */
};

struct prober {
    struct list node_in_list; /* login_auth.probers */
    struct login_auth *sa;
    struct list queue; /* the first one is being asked in PROBER_ASKING */
    enum prober_phase phase;
    struct pool *pool;
    struct link *link;
    struct pool_request req;
    struct link_startup startup;
    struct paramset params;
    struct timer timer;
    int64_t began_us;   /* to wait for a link, or for an answer */
    int64_t lost_us;    /* when the server was lost, in PROBER_LOST */
    int lost;           /* that one; VIEW_NO_NODE */
    int64_t give_up_us; /* what is lost by then is not asked for elsewhere; 0: nothing was lost */
    struct job *opener; /* of the entry in pool_passwd that logs it in */
    struct task start;  /* never from within the caller of auth_lookup_start */
    struct err err;     /* what the server said */
    char *user;
    char *database;
    char *query;            /* empty: the default */
    int node;               /* of pools.conf, or VIEW_NO_NODE: one that takes writes */
    struct buf key;         /* of its answers, see auth_lookup_put_key */
    struct prep *statement; /* the last one asked */
    bool is_known;          /* and the link had it under its name */
};

static void prober_step(struct prober *p);

/* Tells everybody who waits. They may start other look-ups, or end their clients. */
static void lookup_finish(struct lookup *l, const struct err *err)
{
    struct auth_wait *w;
    struct list *n;

    while ((n = list_first(&l->waiters)) != NULL) {
        w = LIST_ENTRY(n, struct auth_wait, node);
        list_remove(n);
        w->done(w, err);
    }
    lookup_free(l);
}

static void prober_drop_link(struct prober *p, bool is_quiet)
{
    struct link *link = p->link;

    pool_request_cancel(&p->req);
    timer_stop(p->sa->be->loop, &p->timer);
    p->link = NULL;
    p->phase = PROBER_NEW;
    if (link == NULL)
        return;
    if (is_quiet)
        link_return(link);
    else
        link_close(link);
}

static void prober_free(struct prober *p)
{
    struct list *n;

    prober_drop_link(p, p->phase == PROBER_READY);
    while ((n = list_first(&p->queue)) != NULL)
        lookup_free(LIST_ENTRY(n, struct lookup, node));
    task_cancel(&p->start);
    job_leave(&p->opener);
    prep_unref(&p->sa->last_lookup);
    p->sa->last_lookup = p->statement;
    list_remove(&p->node_in_list);
    if (p->pool != NULL)
        pool_detach(p->pool);
    paramset_free(&p->params);
    mem_free(p->user);
    mem_free(p->database);
    mem_free(p->query);
    buf_free(&p->key);
    mem_free(p);
}

/* Who can do without is not kept waiting for the next failure for this long. It says nothing about
 * other data bases: their owners, and clients who name one that is not there, can make it fail. */
static void note_failure(struct login_auth *sa, struct slice key, int64_t span_us)
{
    buf_clear(&sa->failed_key);
    buf_put(&sa->failed_key, key.p, key.n);
    sa->failed_until_us = loop_now_us(sa->be->loop) + span_us;
}

static bool is_failing(const struct login_auth *sa, struct slice key)
{
    return loop_now_us(sa->be->loop) < sa->failed_until_us &&
           slice_eq(key, buf_slice(&sa->failed_key));
}

/* What was asked up to now fails; what the failures bring about is asked anew. */
static void prober_fail(struct prober *p, const struct err *err)
{
    struct list failed;
    struct list *n;

    if (!is_failing(p->sa, buf_slice(&p->key))) /* for as long as this one took */
        note_failure(p->sa, buf_slice(&p->key), loop_now_us(p->sa->be->loop) - p->began_us);
    prober_drop_link(p, false);
    p->give_up_us = 0;
    p->lost = VIEW_NO_NODE;
    list_init(&failed);
    while ((n = list_first(&p->queue)) != NULL) {
        list_remove(n);
        list_push_back(&failed, n);
    }
    log_caused(LVL_LOG, "looking up users as \"%s\" in database \"%s\" failed: %s", p->user,
        p->database, err->msg);
    while ((n = list_first(&failed)) != NULL)
        lookup_finish(LIST_ENTRY(n, struct lookup, node), err);
    task_post(p->sa->be->loop, &p->start);
}

/* The server that was lost may be replaced, and what it was asked is asked elsewhere. */
static void prober_look_elsewhere(struct prober *p)
{
    const struct login_worker *worker = &p->sa->worker;
    int64_t now_us = loop_now_us(p->sa->be->loop);
    struct err err = p->err;

    if (worker->ask_node(worker->ctx, p->lost) != p->lost) {
        p->phase = PROBER_NEW;
        prober_step(p);
    } else if (!worker->all_asked_since(worker->ctx, p->lost_us) &&
               now_us - p->lost_us < LOST_PATIENCE_US) {
        timer_start(p->sa->be->loop, &p->timer, LOST_LOOK_MS);
    } else {
        prober_fail(p, &err);
    }
}

static void prober_on_timer(struct timer *t)
{
    struct prober *p = LIST_ENTRY(t, struct prober, timer);
    struct err err = {0};

    if (p->phase == PROBER_LOST) {
        prober_look_elsewhere(p);
        return;
    }
    err_set(&err, "57P03", "the server did not answer in time");
    err_hint(&err, "The load of that server and its log; connect_timeout.");
    prober_fail(p, &err);
}

/* ---- asking ---- */

/* The default function is not there, as was seen before. */
static bool falls_back(const struct login_auth *sa, int node)
{
    if (node == VIEW_NO_NODE)
        return sa->use_fallback;
    return (sa->fallback_targets >> (node - POOLS_FIRST_TARGET) & 1) != 0;
}

static bool prober_falls_back(const struct prober *p)
{
    return falls_back(p->sa, p->node);
}

static void prober_fall_back(struct prober *p)
{
    if (p->node == VIEW_NO_NODE)
        p->sa->use_fallback = true;
    else
        p->sa->fallback_targets |= UINT64_C(1) << (p->node - POOLS_FIRST_TARGET);
}

static const char *prober_sql(const struct prober *p, const struct lookup *l)
{
    if (l->kind != AUTH_LOOKUP_SECRET)
        return login_auth_sql(l->kind);
    if (*p->query != '\0')
        return p->query;
    return login_auth_sql(prober_falls_back(p) ? AUTH_LOOKUP_CATALOGUE : AUTH_LOOKUP_SECRET);
}

static void put_parameter(struct buf *out, const char *value)
{
    size_t n = strlen(value);

    buf_put_u32(out, (uint32_t)n);
    buf_put(out, value, n);
}

/* The text, kept by content: the last one outlives the prober, for the next login. */
static void prober_take_statement(struct prober *p, const char *sql)
{
    struct buf body = {0};
    bool is_new;

    buf_put(&body, sql, strlen(sql) + 1);
    buf_put_u16(&body, 0); /* the server knows the types */
    prep_unref(&p->statement);
    p->statement = prep_get(p->sa->worker.preps, buf_slice(&body), LOOKUP_PATH_HASH, &is_new);
    prep_need_name(p->statement);
    buf_free(&body);
}

/* The statement stays on the link under a name, as those of clients do: the server need not analyse
 * it at each login. Unless it is switched off, for servers that are poolers themselves. */
static bool prober_may_prepare(const struct prober *p)
{
    return p->sa->be->conf->max_prepared_statements > 0;
}

static void prober_put_parse(struct prober *p, struct buf *out)
{
    struct slice name = prober_may_prepare(p) ? prep_name(p->statement) : slice_of("", 0);

    p->is_known = name.n > 0 && prepset_touch(&p->link->preps, p->statement->id);
    if (p->is_known)
        return;
    if (name.n > 0) { /* a failure may have left it there */
        wire_put_close(out, 'S', name);
        link_expect(p->link, OP_CLOSE | OP_SWALLOW);
    }
    prep_put_parse(out, p->statement, name);
    link_expect(p->link, OP_PARSE | OP_SWALLOW);
}

static void prober_put_bind(struct prober *p, const struct lookup *l, struct buf *out)
{
    uint32_t at = wire_begin(out, FE_BIND);

    buf_put_byte(out, '\0'); /* a portal without a name */
    if (prober_may_prepare(p))
        buf_put(out, p->statement->name, PREP_NAME_BYTES);
    buf_put_byte(out, '\0');
    buf_put_u16(out, 0);
    buf_put_u16(out, l->role != NULL ? 2 : 1);
    put_parameter(out, l->user);
    if (l->role != NULL)
        put_parameter(out, l->role);
    buf_put_u16(out, 0);
    wire_end(out, at);
    link_expect(p->link, OP_BIND | OP_SWALLOW);
}

/* Parse where it is needed, Bind, Execute and Sync of one statement with one or two parameters in
 * text form. */
static void prober_ask(struct prober *p, struct lookup *l)
{
    struct buf out = {0};
    uint32_t at;

    l->row = LOOKUP_NO_ROW; /* of a server that was lost */
    prober_take_statement(p, prober_sql(p, l));
    prober_put_parse(p, &out);
    prober_put_bind(p, l, &out);
    at = wire_begin(&out, FE_EXECUTE);
    buf_put_byte(&out, '\0');
    buf_put_u32(&out, 0);
    wire_end(&out, at);
    wire_put_empty(&out, FE_SYNC);
    link_expect(p->link, OP_EXECUTE | OP_SWALLOW | OP_ROWS);
    link_expect(p->link, OP_SYNC | OP_SWALLOW);
    link_forget_failure(p->link);
    err_clear(&p->err);
    p->phase = PROBER_ASKING;
    if (p->give_up_us == 0)
        p->began_us = loop_now_us(p->sa->be->loop);
    timer_start(p->sa->be->loop, &p->timer, LOOKUP_TIMEOUT_MS);
    (void)link_send(p->link, out.data, out.len);
    buf_free(&out);
}

/* True when it is to be asked again: the name may mean something else by now, or nothing. */
static bool prober_note_statement(struct prober *p)
{
    if (!link_own_failed(p->link)) {
        if (!p->is_known && prober_may_prepare(p))
            prepset_add(&p->link->preps, p->statement->id);
        return false;
    }
    if (p->is_known)
        prepset_remove(&p->link->preps, p->statement->id);
    return p->is_known;
}

static void prober_on_row(void *owner, struct link *link, struct slice body)
{
    struct prober *p = owner;
    struct list *n = list_first(&p->queue);

    (void)link;
    if (n != NULL && p->phase == PROBER_ASKING)
        lookup_take_row(LIST_ENTRY(n, struct lookup, node), body);
}

/* The catalogue of a PostgreSQL server cannot say such a thing: nothing is known of the role, and
 * the server judges at its login. */
static void refuse_answer(const struct prober *p, struct lookup *l)
{
    struct err err = {0};

    err_set(&err, "08P01", "node %d answered something else than was asked about role \"%s\"",
        p->link->pool->cluster_node, l->user);
    err_hint(&err, "Something that is no PostgreSQL server may stand there.");
    log_caused_detail(LVL_WARNING, NULL, err.hint, "%s", err.msg);
    lookup_finish(l, &err);
}

static const char *hint_denied(const struct prober *p, enum auth_lookup_kind kind)
{
    if (kind == AUTH_LOOKUP_SECRET && *p->query != '\0')
        return "That role may not do what auth_query says: have auth_query call a function that is "
               "SECURITY DEFINER, as pgpool_user_lookup in the manual is, or grant what it reads.";
    if (kind == AUTH_LOOKUP_KEYS)
        return "Reads of users with passwords stay on the primary. Let it read pg_authid, or set "
               "auth_user; with auth_learn_keys = off it is not tried.";
    return "Create the function pgpool_user_lookup, see the manual, or set auth_query.";
}

/* True when the default function is not there, and the catalogue shall be tried instead. */
static bool prober_may_fall_back(const struct prober *p, const struct lookup *l)
{
    return l->kind == AUTH_LOOKUP_SECRET && *p->query == '\0' && !prober_falls_back(p) &&
           strcmp(p->err.sqlstate, "42883") == 0;
}

static void prober_on_answer(struct prober *p)
{
    struct lookup *l = LIST_ENTRY(list_first(&p->queue), struct lookup, node);
    struct err err = p->err;

    timer_stop(p->sa->be->loop, &p->timer);
    p->phase = PROBER_READY;
    p->give_up_us = 0;
    p->lost = VIEW_NO_NODE;
    if (prober_note_statement(p)) {
        prober_step(p);
        return;
    }
    if (link_own_failed(p->link) && prober_may_fall_back(p, l)) {
        prober_fall_back(p);
        prober_step(p);
        return;
    }
    list_remove(&l->node);
    task_post(p->sa->be->loop, &p->start);
    /* 22021: a name that is none in the database's encoding; nobody there is called so. */
    if (link_own_failed(p->link) && strcmp(err.sqlstate, "22021") != 0) {
        if (!err_is_set(&err)) {
            err_set(&err, "XX000", "the query failed");
            err_hint(&err, "Run auth_query by hand as auth_user.");
        }
        log_caused_detail(LVL_LOG, err.detail[0] != '\0' ? err.detail : NULL,
            strcmp(err.sqlstate, "42501") == 0 ? hint_denied(p, l->kind) : NULL,
            "looking up users as \"%s\" failed: %s", p->user, err.msg);
        lookup_finish(l, &err);
        return;
    }
    if (is_failing(p->sa, buf_slice(&p->key)))
        p->sa->failed_until_us = 0;
    if (l->row == LOOKUP_WRONG_ROW &&
        (l->kind == AUTH_LOOKUP_LOGIN || l->kind == AUTH_LOOKUP_KEYS)) {
        refuse_answer(p, l);
        return;
    }
    lookup_keep(p->sa, l, buf_slice(&p->key), p->link->pool->cluster_node);
    lookup_finish(l, NULL);
}

/* ---- the link ---- */

static void prober_on_auth(void *owner, struct link *link, const char *msg, size_t n)
{
    struct prober *p = owner;
    struct err err = {0};

    if (message_is_auth_ok(msg, n))
        return;
    err_set(&err, "28P01",
        "node %d asks \"%s\" for a password, and nothing in pool_passwd answers it",
        link->pool->cluster_node, p->user);
    err_hint(&err,
        "Store its password with pg_enc, or set auth_user to a user that may log in without.");
    prober_fail(p, &err);
}

static void prober_on_login_done(void *owner, struct link *link)
{
    struct prober *p = owner;

    (void)link;
    timer_stop(p->sa->be->loop, &p->timer);
    p->phase = PROBER_READY;
    prober_step(p);
}

static void prober_on_quiet(void *owner, struct link *link)
{
    struct prober *p = owner;

    (void)link;
    if (p->phase == PROBER_ASKING)
        prober_on_answer(p);
}

static bool prober_on_error(void *owner, struct link *link, const struct errmsg *m)
{
    struct prober *p = owner;

    (void)link;
    errmsg_to_err(m, &p->err);
    return true;
}

static void prober_on_lost(void *owner, struct link *link, const struct err *err, bool told)
{
    struct prober *p = owner;
    int64_t now_us = loop_now_us(p->sa->be->loop);

    (void)told;
    p->link = NULL;
    if (strncmp(err->sqlstate, "08", 2) != 0 && strncmp(err->sqlstate, "57P", 3) != 0) {
        prober_fail(p, err);
        return;
    }
    p->sa->worker.suspect(p->sa->worker.ctx, link->pool->cluster_node);
    if (p->node != VIEW_NO_NODE || (p->give_up_us != 0 && now_us >= p->give_up_us)) {
        prober_fail(p, err);
        return;
    }
    if (p->give_up_us == 0)
        p->give_up_us = now_us + INT64_C(1000) * LOOKUP_TIMEOUT_MS;
    p->err = *err;
    prober_drop_link(p, false);
    p->phase = PROBER_LOST;
    p->lost_us = now_us;
    p->lost = p->pool->cluster_node;
    timer_start(p->sa->be->loop, &p->timer, LOST_LOOK_MS);
}

static const struct link_owner_ops prober_ops = {
    .on_auth = prober_on_auth,
    .on_login_done = prober_on_login_done,
    .on_bytes = link_ignore_bytes, /* notices; of a refused login: prober_on_lost */
    .on_quiet = prober_on_quiet,
    .on_settled = link_ignore,
    .on_error = prober_on_error,
    .on_own_row = prober_on_row,
    .on_drained = link_ignore,
    .on_lost = prober_on_lost,
};

static void prober_on_opened(void *owner)
{
    prober_step(owner);
}

/* sr_check_password, when it is not in pool_passwd. */
static void prober_learn(const struct prober *p)
{
    const struct conf *conf = p->sa->be->conf;
    struct passwd_value v = passwd_value_of(slice_of_str(conf->sr_check_password));
    struct cred cred = {0};

    if (v.text.n > 0 && strcmp(p->user, conf->sr_check_user) == 0 &&
        passwd_open_value(&v, NULL, &cred, NULL) == 0)
        auth_book_learn_cred(p->sa->book, pool_book_name(p->pool), &cred);
    cred_free(&cred);
}

static void prober_acquire(struct prober *p)
{
    int node =
        p->node != VIEW_NO_NODE ? p->node : p->sa->worker.ask_node(p->sa->worker.ctx, p->lost);
    struct err err = {0};

    if (p->give_up_us == 0)
        p->began_us = loop_now_us(p->sa->be->loop);
    if (node == VIEW_NO_NODE) {
        err_set(&err, "57P03", "no server can be asked at the moment");
        err_hint(&err, "SHOW POOL_NODES: a server has to be up.");
        prober_fail(p, &err);
        return;
    }
    if (p->pool == NULL || p->pool->cluster_node != node) {
        pool_request_cancel(&p->req);
        if (p->pool != NULL)
            pool_detach(p->pool);
        p->pool = pool_attach(p->sa->be, slice_of_str(p->user), slice_of_str(p->database), node);
        p->req.pool = p->pool;
        if (p->node == VIEW_NO_NODE)
            prober_learn(p);
    }
    p->phase = PROBER_WAITING;
    timer_start(p->sa->be->loop, &p->timer, LOOKUP_TIMEOUT_MS);
    switch (pool_acquire(&p->req)) {
    case ACQUIRE_GRANTED:
        p->link = p->req.link;
        p->phase = PROBER_READY;
        prober_step(p);
        break;
    case ACQUIRE_OPENING:
        p->link = p->req.link;
        p->phase = PROBER_OPENING;
        break;
    case ACQUIRE_WAITING:
        break;
    }
}

static void prober_on_turn(struct pool_request *req)
{
    prober_acquire(req->owner);
}

/* Asks the next question; without one the link goes back and the prober ends. */
static void prober_step(struct prober *p)
{
    struct list *n;

    while ((n = list_first(&p->queue)) != NULL &&
           list_is_empty(&LIST_ENTRY(n, struct lookup, node)->waiters) && p->phase != PROBER_ASKING)
        lookup_free(LIST_ENTRY(n, struct lookup, node)); /* those who asked have gone */
    if (n == NULL && (p->phase == PROBER_READY || p->phase == PROBER_NEW))
        prober_free(p);
    else if (n != NULL && p->phase == PROBER_NEW && p->opener == NULL &&
             !auth_open_start(p->sa, slice_of_str(p->user), &p->opener, p, prober_on_opened))
        prober_acquire(p);
    else if (n != NULL && p->phase == PROBER_READY)
        prober_ask(p, LIST_ENTRY(n, struct lookup, node));
}

static void prober_on_start(struct task *t)
{
    prober_step(LIST_ENTRY(t, struct prober, start));
}

/* ---- for clients ---- */

bool auth_lookup_tells_role(const struct login_auth *sa, const struct auth_way *way)
{
    return *way->query == '\0' && falls_back(sa, way->node);
}

bool auth_lookup_is_hopeless(const struct login_auth *sa, const struct auth_way *way)
{
    struct buf key = {0};
    bool is_hopeless;

    auth_way_put_key(way, &key);
    is_hopeless = is_failing(sa, buf_slice(&key));
    buf_free(&key);
    return is_hopeless;
}

void auth_lookup_give_up(struct login_auth *sa, const struct auth_way *way)
{
    struct buf key = {0};

    auth_way_put_key(way, &key);
    note_failure(sa, buf_slice(&key), INT64_C(1000) * LOOKUP_TIMEOUT_MS);
    buf_free(&key);
}

static struct prober *prober_new(struct login_auth *sa, const struct auth_way *way)
{
    struct prober *p = mem_alloc_zero(sizeof *p);

    p->sa = sa;
    p->user = mem_strdup(way->user);
    p->database = mem_strndup(way->database.p, way->database.n);
    p->query = mem_strdup(way->query);
    p->node = way->node;
    p->lost = VIEW_NO_NODE;
    auth_way_put_key(way, &p->key);
    list_init(&p->node_in_list);
    list_init(&p->queue);
    list_push_back(&sa->probers, &p->node_in_list);
    timer_init(&p->timer, prober_on_timer);
    task_init(&p->start, prober_on_start);
    pool_request_init(&p->req);
    p->startup.version = PROTO_3_0;
    p->startup.user = slice_of_str(p->user);
    p->startup.database = slice_of_str(p->database);
    p->startup.params = &p->params;
    p->req.startup = &p->startup;
    p->req.may_reuse = true;
    p->req.answers = LINK_ANSWERS_ALL; /* it is we */
    p->req.no_patch = true;
    p->req.allows_names = true;
    p->req.on_turn = prober_on_turn;
    p->req.owner = p;
    p->req.ops = &prober_ops;
    return p;
}

static struct prober *prober_find(struct login_auth *sa, const struct auth_way *way)
{
    struct buf key = {0};
    struct prober *p = NULL;
    struct prober *it;
    struct list *n;

    auth_way_put_key(way, &key);
    LIST_FOREACH(n, &sa->probers)
    {
        it = LIST_ENTRY(n, struct prober, node_in_list);
        if (slice_eq(buf_slice(&it->key), buf_slice(&key)))
            p = it;
    }
    buf_free(&key);
    return p != NULL ? p : prober_new(sa, way);
}

static struct lookup *lookup_find(struct prober *p, enum auth_lookup_kind kind, struct slice user,
    struct slice role, struct slice book_name)
{
    struct lookup *l;
    struct list *n;

    LIST_FOREACH(n, &p->queue)
    {
        l = LIST_ENTRY(n, struct lookup, node);
        if (l->kind == kind && slice_eq_str(user, l->user) &&
            slice_eq_str(role, l->role == NULL ? "" : l->role) &&
            slice_eq(book_name, buf_slice(&l->book_name)))
            return l;
    }
    l = mem_alloc_zero(sizeof *l);
    l->kind = kind;
    l->user = mem_strndup(user.p, user.n);
    buf_put(&l->book_name, book_name.p, book_name.n);
    if (kind == AUTH_LOOKUP_ROLE)
        l->role = mem_strndup(role.p, role.n);
    list_init(&l->waiters);
    list_push_back(&p->queue, &l->node);
    return l;
}

void auth_lookup_start(struct login_auth *sa, enum auth_lookup_kind kind,
    const struct auth_way *way, struct slice user, struct slice role, struct slice book_name,
    struct auth_wait *w)
{
    struct prober *p = prober_find(sa, way);

    list_push_back(&lookup_find(p, kind, user, role, book_name)->waiters, &w->node);
    task_post(sa->be->loop, &p->start);
}

void auth_lookup_cancel(struct auth_wait *w)
{
    list_remove(&w->node);
}

void auth_probers_close(struct login_auth *sa)
{
    struct list *n;

    while ((n = list_first(&sa->probers)) != NULL)
        prober_free(LIST_ENTRY(n, struct prober, node_in_list));
}
