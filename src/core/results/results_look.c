/* SPDX-License-Identifier: PostgreSQL
 * results_look.c: may a client have a result that is kept, and which? Runs in: workers. The key
 * of a result is all that decides about it, byte by byte: the database, the user, what the session
 * has set, the server, the tables that the names lead to, the text, and of the extended protocol
 * types, values and formats. */
#include "config.h"

#include <string.h>

#include "base/hot.h"
#include "base/log.h"
#include "config/conf.h"
#include "config/conf_param.h"
#include "config/pools_conf.h"
#include "names/names.h"
#include "wire/batch.h"

#include "results_int.h"

/* The kind of a key. */
#define KEY_QUERY     'Q'
#define KEY_DESCRIBED 'P' /* of the extended protocol, with the columns of its portal */
#define KEY_ROWS      'R' /* of the extended protocol, without the columns of its portal */

/* What is asked now is of a session whose every trait is known, and it has not written. */
static bool is_eligible(const struct client *c)
{
    const struct results *sc = client_results(c);
    const struct results_rest *rest = client_results_rest(c);

    return client_may_be_told(c) && results_own_names(c) == 0 &&
           (sc == NULL || !sc->has_done_more) && (rest == NULL || rest->out == NULL) &&
           !results_who(c)->says_isolation;
}

/* False: no server is known to take writes, or nothing tells it apart. In memcached a node's number
 * says nothing: another pgpool may have given it to another server; `key` gets its address then. */
static bool head_of(
    struct client *c, char kind, uint16_t nreads, struct qcache_key_head *head, struct buf *key)
{
    int node = client_node_of_writes(c);
    const char *host;
    int64_t timeout_ms;
    int port;

    if (node == VIEW_NO_NODE)
        return false;
    *head = (struct qcache_key_head){.node = (uint32_t)node, .nreads = nreads, .kind = kind};
    if (node < client_sessions(c)->view.nnodes) {
        head->timeline = client_sessions(c)->view.node[node].timeline;
        head->version = client_sessions(c)->view.node[node].server_version / 10000;
        head->system = client_sessions(c)->view.node[node].system_id;
    }
    if (worker_of(c)->far == NULL || head->system != 0)
        return true;
    return pools_conf_address(client_sessions(c)->conf, node, &host, &port, &timeout_ms) &&
           qcache_put_address(key, cache_far_machine(worker_of(c)->far), host, port);
}

/* What a key is made of but for settings and the like. */
struct look {
    char kind; /* KEY_... */
    struct slice sql;
    struct slice types;  /* of the Parse */
    struct slice values; /* of the Bind, with formats */
    uint64_t told;       /* columns that the client goes by and does not ask for; 0: none */
};

static bool make_key(struct client *c, const struct look *l, const struct qcache_judgement *j)
{
    struct results_worker *w = worker_of(c);
    const struct qcache_who *who = results_who(c);
    struct buf *key = &w->key;
    struct qcache_key_head head;

    buf_clear(key);
    buf_put(key, who->key.data, who->key.len);
    if (!head_of(c, l->kind, j->nreads, &head, key))
        return false;
    buf_put(key, &head, sizeof head);
    buf_put(key, j->reads, j->nreads * sizeof j->reads[0]);
    buf_put_u32(key, (uint32_t)l->sql.n);
    buf_put(key, l->sql.p, l->sql.n);
    if (l->kind != KEY_QUERY) {
        buf_put_u32(key, (uint32_t)l->types.n);
        buf_put(key, l->types.p, l->types.n);
        buf_put(key, &l->told, sizeof l->told);
        buf_put(key, l->values.p, l->values.n);
    }
    w->key_hash = hash_bytes(key->data + who->key.len, key->len - who->key.len, who->hash);
    return key->len <= CACHE_KEY_MAX;
}

/* The key that make_key has made. */
static struct cache_key key_of(const struct results_worker *w)
{
    return (struct cache_key){buf_slice(&w->key), w->key_hash};
}

struct wanted {
    struct slice sql;
    struct slice user;
    struct slice database;
};

static bool is_wanted(void *ctx, struct slice key)
{
    const struct wanted *w = ctx;
    struct slice sql = qcache_key_text(key, w->database, w->user);

    return sql.p != NULL && slice_eq(qcache_text_bare(sql), w->sql);
}

/* Nobody can list what is there. */
static void delete_far(struct client *c, const struct wanted *w)
{
    struct results_cells cells = {0};

    results_cells_add(
        &cells, qcache_cell_text(
                    cache_cell_database(pool_database_there(client_pool(c))), w->user, w->sql));
    cache_gens_hold(worker_of(c)->gens, client_sessions(c)->env->slot, cells.p, cells.n);
    results_tell_add(c, &cells, false, cache_far_watch(worker_of(c)->seen, cells.p[0]));
}

bool results_delete(void *ctx, struct slice sql, struct slice user, struct slice database)
{
    struct client *c = ctx;
    struct wanted w = {qcache_text_bare(sql), user, database};

    if (worker_of(c)->far != NULL) {
        delete_far(c, &w);
        return true;
    }
    return cache_delete_all(worker_of(c)->store, is_wanted, &w) > 0;
}

/* --- the answer --- */

COLD static void log_hit(struct client *c, struct slice sql)
{
    struct client_log_scope scope;
    struct buf detail = {0};

    client_log_statement(c, "", sql);
    if (!client_conf(c)->log_per_node_statement)
        return;
    client_log_enter(&scope, c);
    buf_printf(&detail, "query result fetched from cache. statement: %.*s", (int)sql.n, sql.p);
    buf_put_byte(&detail, '\0');
    log_at_detail(LVL_LOG, detail.data, NULL, "fetch from memory cache");
    buf_free(&detail);
    client_log_leave(&scope);
}

/* FEED_LOCAL: the result was put behind what is in the worker's room. FEED_PASS: it is not kept,
 * and may be. FEED_PARK: it is asked for. */
static enum feed_step find_one(struct client *c, unsigned number, const struct qcache_judgement *j,
    const struct results_said *said, struct cache_hit *hit)
{
    struct results_worker *w = worker_of(c);
    struct cache_key key = key_of(w);

    hit->took_us = 0;
    if (w->far != NULL)
        return results_far_look(c, &key, number, j, said, hit);
    if (!cache_find(w->store, &key, loop_now_us(client_sessions(c)->loop), hit) ||
        !cache_copy(w->store, hit, 0, hit->len, buf_reserve(&w->room, hit->len)))
        return FEED_PASS;
    buf_advance(&w->room, hit->len);
    return FEED_LOCAL;
}

static void put_ready(struct client *c)
{
    char ready[] = {BE_READY, 0, 0, 0, 5, sstate_tx_status(c)};

    buf_put(&worker_of(c)->room, ready, sizeof ready);
}

/* FEED_LOCAL: the answer is in the worker's room. FEED_PASS: the result is not kept, and may be. */
static enum feed_step find(struct client *c, struct slice head, const struct qcache_judgement *j,
    const struct results_said *said, struct cache_hit *hit)
{
    struct results_worker *w = worker_of(c);
    enum feed_step step;

    buf_clear(&w->room);
    buf_put(&w->room, head.p, head.n);
    step = find_one(c, 0, j, said, hit);
    if (step == FEED_LOCAL)
        put_ready(c);
    return step == FEED_PARK ? results_far_wait(c) : step;
}

/* Notes one statement that is answered. */
HOT static void note_hit(struct client *c, const struct cache_hit *hit, struct slice sql)
{
    struct results_worker *w = worker_of(c);

    client_note_hit(c, sql);
    w->hits++;
    cache_note_hit(w->store, hit, hash_bytes(sql.p, sql.n, 0), sql);
    if (client_log_statements(c))
        log_hit(c, sql);
    client_note_local(c, sql);
}

/* What is in the worker's `room` is all that it waits for. */
HOT static void tell_room(struct client *c)
{
    struct results_worker *w = worker_of(c);
    struct results *sc = client_results(c);

    if (sc != NULL)
        sc->wait_until_us = sc->nasked = 0;
    client_answer(c, buf_slice(&w->room));
    if (w->room.cap > BUF_SMALL_BYTES)
        buf_free(&w->room);
}

HOT static void tell(struct client *c, const struct cache_hit *hit, struct slice sql)
{
    client_answer_comes(c);
    note_hit(c, hit, sql);
    tell_room(c);
}

/* the worker's key is its key. Asks for it, or waits for another client who does. */
static enum feed_step miss(struct client *c, const struct qcache_judgement *j,
    const struct results_said *said, const struct look *l, uint32_t took_us)
{
    struct results_worker *w = worker_of(c);
    struct cache_key key = key_of(w);
    enum cache_turn turn =
        cache_flight_enter(w->store, &key, loop_now_us(client_sessions(c)->loop));

    if (turn != CACHE_TURN_WAIT || !results_may_wait(c)) {
        results_fill_begin(c, j, &key, said, turn, 0, l->kind != KEY_ROWS);
        return FEED_AGAIN;
    }
    lent_stop_asking(c); /* it may have stood in a queue */
    results_line_up(c, results_of(c), key.hash, took_us);
    return FEED_PARK;
}

/* --- simple queries --- */

/* The judgement about it, asked for when it is not known. NULL, and *step says whether to wait:
 * there is none. */
static const struct qcache_judgement *judge(
    struct client *c, const struct sql_facts *facts, enum feed_step *step)
{
    const struct qcache_judgement *j = NULL;

    *step = FEED_AGAIN;
    if (facts->status != SQL_OK || results_scope(c, facts) == -1 ||
        worker_of(c)->scope.len == worker_of(c)->question_at)
        return NULL; /* not known, or it names nothing */
    j = results_judged(c);
    if (j == NULL && results_are_good(c))
        *step = results_ask(c);
    return j;
}

static enum qcache_reason reason_of(const struct qcache_judgement *j, bool is_forced)
{
    enum qcache_reason r = (enum qcache_reason)(is_forced ? j->forced_reason : j->reason);

    return r == QCACHE_R_NONE && j->repeats_reads ? QCACHE_R_ISOLATION : r;
}

/* Whether the catalogue has to be asked about what it does: it names something, and may have to do
 * with results that are kept. */
static bool is_of_interest(const struct sql_facts *facts, struct slice sql)
{
    return (qcache_writes(facts, sql) & (QCACHE_W_TABLES | QCACHE_W_FUNCTIONS)) != 0;
}

/* Nothing is left of what was looked at before. Who is fed again before memcached has answered is
 * where his transaction is: its link was not set aside for a read that may leave it. */
static void begin_look(struct client *c)
{
    struct results *sc = client_results(c);

    results_fill_drop(c);
    if (sc != NULL && sc->far_wait == FAR_WAIT_ASIDE)
        client_come_back(c);
    if (sc != NULL)
        sc->far_wait = FAR_WAIT_NOT;
    results_note_judged(c, NULL, slice_of(NULL, 0), NULL);
}

/* PASS: it may be kept, whose text speaks for that unless there is a reason. */
static enum feed_step judge_text(struct client *c, const struct sql_facts *facts, struct slice sql,
    enum qcache_reason r, bool is_forced, const struct qcache_judgement **j)
{
    enum feed_step step;

    if (r != QCACHE_R_NONE && !is_of_interest(facts, sql))
        return FEED_AGAIN;
    *j = judge(c, facts, &step);
    if (*j == NULL)
        return step == FEED_PASS ? FEED_AGAIN : step;
    results_note_judged(c, facts, sql, *j);
    return r != QCACHE_R_NONE || reason_of(*j, is_forced) != QCACHE_R_NONE || !is_eligible(c)
               ? FEED_AGAIN
               : FEED_PASS;
}

enum feed_step results_query(struct client *c, struct slice sql, const struct sql_facts *facts)
{
    struct look l = {.kind = KEY_QUERY, .sql = sql};
    const struct qcache_judgement *j;
    struct results_said said;
    enum qcache_reason r;
    struct cache_hit hit;
    enum feed_step step;
    bool is_forced;

    begin_look(c);
    r = qcache_text_reason(facts, sql, &is_forced);
    step = judge_text(c, facts, sql, r, is_forced, &j);
    if (step != FEED_PASS)
        return step;
    if (!make_key(c, &l, j) || !results_are_good(c))
        return FEED_AGAIN;
    said = (struct results_said){.facts = facts, .sql = sql};
    step = find(c, slice_of("", 0), j, &said, &hit);
    if (step == FEED_PASS)
        return miss(c, j, &said, &l, hit.took_us);
    if (step != FEED_LOCAL)
        return step;
    client_set_unnamed(c, NULL); /* as any simple query does */
    tell(c, &hit, sql);
    return FEED_LOCAL;
}

/* --- the extended protocol --- */

/* The statement of a lone sequence, counted for the caller; `unnamed` is that in front of it. */
static struct prep *prep_of(
    struct client *c, const struct batch_lone *sent, struct prep *unnamed, struct names_entry **n)
{
    *n = NULL;
    if (sent->parse.p != NULL)
        return sent->name.n == 0 &&
                       names_have_room(client_statements(c),
                           client_sessions(c)->conf->client_prepared_memory_bytes, sent->sql.n)
                   ? follow_prep_of(c, batch_lone_statement(sent))
                   : NULL;
    if (sent->name.n == 0)
        return unnamed == NULL ? NULL : prep_ref(unnamed);
    *n = names_find(client_statements(c), sent->name);
    return *n == NULL || (*n)->prep == NULL ? NULL : prep_ref((*n)->prep);
}

/* All rows are asked for. */
static bool asks_all(const struct batch_lone *sent)
{
    static const char all[4] = {0};
    const char *end = sent->end - (sent->syncs ? PROTO_HEADER_BYTES : 0); /* of the Execute */

    return memcmp(end - sizeof all, all, sizeof all) == 0;
}

/* The client has the statement from here on, and no link is told. */
static void note_answered(
    struct client *c, const struct batch_lone *sent, struct prep *p, struct names_entry *n)
{
    if (sent->parse.p != NULL)
        client_set_unnamed(c, p);
    if (n != NULL)
        n->is_described = n->is_described || sent->describes;
}

/* One statement of a sequence, while it is looked at. */
struct lone {
    struct batch_lone sent;
    struct prep *prep;
    struct names_entry *n;
    struct look l;
    struct results_said said;
    const struct qcache_judgement *j;
    struct cache_hit hit;
};

static struct slice head_of_answer(const struct batch_lone *sent)
{
    static const char heads[] = {BE_PARSE_COMPLETE, 0, 0, 0, 4, BE_BIND_COMPLETE, 0, 0, 0, 4};

    return sent->parse.p != NULL ? slice_of(heads, 10) : slice_of(heads + 5, 5);
}

/* Keeps the facts of a prepared statement, which are at hand when it is bound. */
HOT static void note_looked(struct client *c, struct prep *p, const struct sql_facts *facts)
{
    struct results_worker *w = worker_of(c);

    if (w->looked != p) {
        prep_unref(&w->looked);
        w->looked = prep_ref(p);
    }
    w->looked_found = plan_found_of(client_sessions(c), facts);
}

/* PASS: its key is in the worker's key. What it tells is valid until another one is looked at. */
static enum feed_step make_lone(struct client *c, struct lone *o)
{
    const struct batch_lone *sent = &o->sent;
    const struct sql_facts *facts;
    enum qcache_reason r;
    enum feed_step step;
    bool is_forced;

    o->l = (struct look){.kind = sent->describes ? KEY_DESCRIBED : KEY_ROWS,
        .sql = prep_sql(o->prep),
        .types = prep_types(o->prep),
        .values = batch_lone_values(sent)};
    facts = plan_facts(client_sessions(c), o->l.sql);
    note_looked(c, o->prep, facts);
    r = qcache_text_reason_once(&o->prep->kept, facts, o->l.sql, &is_forced);
    if (r == QCACHE_R_NONE && !is_forced && qcache_values_may_be_time(o->l.values))
        r = QCACHE_R_WORD;
    step = judge_text(c, facts, o->l.sql, r, is_forced, &o->j);
    if (step != FEED_PASS)
        return step;
    if (o->n != NULL && !sent->describes)
        o->l.told = o->n->told;
    /* Who asks for no description has one; without it nobody knows whether a result fits. */
    if ((o->n != NULL && !sent->describes && o->n->told == 0) || !make_key(c, &o->l, o->j) ||
        !results_are_good(c))
        return FEED_AGAIN;
    o->said =
        (struct results_said){.facts = facts, .sql = o->l.sql, .params = {o->l.types, o->l.values}};
    return FEED_PASS;
}

static enum feed_step look_at_lone(struct client *c, struct lone *o)
{
    enum feed_step step = make_lone(c, o);

    if (step != FEED_PASS)
        return step;
    step = find(c, head_of_answer(&o->sent), o->j, &o->said, &o->hit);
    if (step == FEED_PASS)
        return miss(c, o->j, &o->said, &o->l, o->hit.took_us);
    if (step != FEED_LOCAL)
        return step;
    note_answered(c, &o->sent, o->prep, o->n);
    tell(c, &o->hit, o->l.sql);
    return FEED_LOCAL;
}

/* --- several statements up to one Sync --- */

struct several {
    unsigned n;
    struct lone one[RESULTS_SEVERAL];
};

/* All of them as drivers send one each. */
static bool read_several(struct client *c, const char *p, const char *end, struct several *s)
{
    struct prep *unnamed = client_statements(c)->unnamed;
    bool is_over = false;

    s->n = 0;
    while (!is_over && s->n < RESULTS_SEVERAL) {
        struct lone *o = &s->one[s->n];

        if (!batch_lone_read(&o->sent, p, end) || !asks_all(&o->sent))
            return false;
        o->prep = prep_of(c, &o->sent, unnamed, &o->n);
        if (o->prep == NULL)
            return false;
        s->n++;
        if (o->sent.name.n == 0)
            unnamed = o->prep;
        is_over = o->sent.syncs;
        p = o->sent.end;
    }
    return is_over;
}

/* LOCAL: their answers are in ss->results_worker->room. Else those that are not kept will be: they
 * go to a server together, and nobody is waited for. In memcached all are asked for at once, and
 * once. */
static enum feed_step find_several(struct client *c, struct several *s)
{
    struct results_worker *w = worker_of(c);
    const struct results *sc = client_results(c);
    bool may_ask = sc == NULL || sc->far == NULL;
    enum feed_step all = FEED_LOCAL;
    enum feed_step step = FEED_LOCAL;
    unsigned i;

    buf_clear(&w->room);
    for (i = 0; i < s->n && step != FEED_AGAIN; i++) {
        struct lone *o = &s->one[i];
        struct slice head = head_of_answer(&o->sent);
        struct cache_key key;

        step = make_lone(c, o);
        if (step == FEED_PARK)
            return step;
        buf_put(&w->room, head.p, head.n);
        key = key_of(w);
        if (step == FEED_PASS)
            step = find_one(c, i, o->j, &o->said, &o->hit);
        if (step == FEED_PASS)
            results_fill_begin(c, o->j, &key, &o->said,
                cache_flight_enter(w->store, &key, loop_now_us(client_sessions(c)->loop)), i,
                o->l.kind != KEY_ROWS);
        if (step == FEED_PARK && !may_ask)
            step = FEED_AGAIN;
        if (step != FEED_LOCAL && all != FEED_PARK)
            all = step;
    }
    results_fill_count(c, s->n);
    if (step == FEED_AGAIN || all != FEED_PASS)
        results_fill_drop(c);
    if (step == FEED_AGAIN || all == FEED_LOCAL)
        return step;
    return all == FEED_PARK ? results_far_wait(c) : FEED_AGAIN;
}

static void tell_several(struct client *c, struct several *s)
{
    unsigned i;

    client_answer_comes(c);
    for (i = 0; i < s->n; i++) {
        note_answered(c, &s->one[i].sent, s->one[i].prep, s->one[i].n);
        note_hit(c, &s->one[i].hit, s->one[i].l.sql);
    }
    put_ready(c);
    tell_room(c);
}

static enum feed_step look_at_several(
    struct client *c, const char *p, const char *end, const char **whole)
{
    enum feed_step step = FEED_AGAIN;
    struct several s;
    unsigned i;

    if (read_several(c, p, end, &s))
        step = find_several(c, &s);
    if (step == FEED_LOCAL) {
        tell_several(c, &s);
        *whole = s.one[s.n - 1].sent.end;
    }
    for (i = 0; i < s.n; i++)
        prep_unref(&s.one[i].prep);
    return step;
}

/* Judgements about all that a sequence runs, as far as that can be asked for before. */
static enum feed_step look_ahead(struct client *c, const char *p, const char *end)
{
    struct batch_msg m;
    int n;

    for (n = 0; n < NAMES_MAX_PENDING && batch_next(&p, end, &m) && !m.is_bad; n++) {
        const struct prep *prep = m.type == FE_BIND ? follow_bound_prep(c, m.body) : NULL;
        struct slice sql = m.type == FE_PARSE ? m.sql : slice_of(NULL, 0);
        const struct sql_facts *facts;
        enum feed_step step;

        if (m.type == FE_SYNC)
            break;
        if (prep != NULL && m.name.n > 0)
            sql = prep_sql(prep);
        if (sql.p == NULL)
            continue;
        facts = plan_facts(client_sessions(c), sql);
        if (is_of_interest(facts, sql) && judge(c, facts, &step) == NULL && step == FEED_PARK)
            return FEED_PARK;
    }
    return FEED_AGAIN;
}

enum feed_step results_batch(struct client *c, const char *p, const char *end, const char **whole)
{
    enum feed_step step = FEED_AGAIN;
    struct lone o;

    begin_look(c);
    *whole = NULL;
    if (!batch_lone_read(&o.sent, p, end) || !asks_all(&o.sent))
        return look_ahead(c, p, end);
    if (!o.sent.syncs) {
        step = look_at_several(c, p, end, whole);
        return step == FEED_AGAIN ? look_ahead(c, p, end) : step;
    }
    o.prep = prep_of(c, &o.sent, client_statements(c)->unnamed, &o.n);
    if (o.prep == NULL)
        return look_ahead(c, p, end);
    step = look_at_lone(c, &o);
    prep_unref(&o.prep);
    if (step == FEED_LOCAL)
        *whole = o.sent.end;
    return step;
}

/* --- what PGPOOL EXPLAIN says --- */

static const char *explain_key(
    struct client *c, const struct look *l, const struct qcache_judgement *j)
{
    struct cache_hit hit;
    struct cache_key key;

    if (!is_eligible(c))
        return "not now: the session, or its transaction, has written or has what results may "
               "depend on";
    if (!results_are_good(c))
        return "not now: SHOW POOL_CACHE_STREAMS says why";
    if (!make_key(c, l, j))
        return qcache_reason_text(QCACHE_R_LONG);
    if (worker_of(c)->far != NULL)
        return "asked for in memcached, and kept when it is not there";
    key = key_of(worker_of(c));
    return cache_find(worker_of(c)->store, &key, loop_now_us(client_sessions(c)->loop), &hit)
               ? "answered from the cache"
               : "kept when it is asked for";
}

const char *results_explain(struct client *c, struct slice sql, const struct sql_facts *facts)
{
    struct look l = {.kind = KEY_QUERY, .sql = sql};
    const struct qcache_judgement *j;
    enum qcache_reason r;
    bool is_forced;

    r = qcache_text_reason(facts, sql, &is_forced);
    if (r != QCACHE_R_NONE)
        return qcache_reason_text(r);
    if (results_scope(c, facts) == -1)
        return qcache_reason_text(QCACHE_R_LONG);
    j = results_judged(c);
    if (j == NULL)
        return qcache_reason_text(QCACHE_R_UNKNOWN);
    r = reason_of(j, is_forced);
    return r != QCACHE_R_NONE ? qcache_reason_text(r) : explain_key(c, &l, j);
}
