/* SPDX-License-Identifier: PostgreSQL
 * results_ask.c: what the catalogue says of the names in a statement, for the query cache.
 * Asked in front of the statement, on a link that is borrowed for it; in a transaction, where that
 * could disturb it, behind its end. Runs in: workers. */
#include "config.h"

#include "wire/reader.h"

#include "results_int.h"

/* Questions for one exchange; it may change faster than it can be asked. */
#define ASK_MAX 8
/* In a scope: the number of a link follows. No question begins so. */
#define OF_ONE_LINK '\xff'

int results_scope(struct client *c, const struct sql_facts *facts)
{
    struct buf *out = &worker_of(c)->scope;
    const struct qcache_who *who = results_who(c);
    uint64_t own = results_own_names(c);

    buf_clear(out);
    buf_put(out, who->asks.data, who->asks.len);
    if (own != 0) {
        buf_put_byte(out, OF_ONE_LINK);
        buf_put(out, &own, sizeof own);
    }
    worker_of(c)->question_at = out->len;
    return qcache_question(facts, out);
}

const struct qcache_judgement *results_judged(struct client *c)
{
    struct results_worker *w = worker_of(c);

    return qcache_book_find(
        w->book, w->gens, buf_slice(&w->scope), loop_now_us(client_sessions(c)->loop));
}

static struct qcache_asked asked_by(
    const struct client *c, const struct sql_facts *facts, struct slice sql)
{
    return (struct qcache_asked){c, client_settings(c), facts, sql.p};
}

void results_note_judged(struct client *c, const struct sql_facts *facts, struct slice sql,
    const struct qcache_judgement *j)
{
    struct qcache_asked asked = asked_by(c, facts, sql);

    qcache_book_note(worker_of(c)->book, &asked, j);
}

const struct qcache_judgement *results_judged_now(
    struct client *c, const struct sql_facts *facts, struct slice sql)
{
    const struct results_worker *w = worker_of(c);
    struct qcache_asked asked = asked_by(c, facts, sql);

    return qcache_book_noted(w->book, &asked, w->gens, loop_now_us(client_sessions(c)->loop));
}

/* What is asked now is only believed if nobody changes the catalogue from here on. False: somebody
 * does. */
static bool note_deps(struct client *c, struct results *sc)
{
    cache_cell db = cache_cell_database(pool_database_there(client_pool(c)));

    cache_deps_init(&sc->asked_deps);
    cache_deps_add(&sc->asked_deps, sc->gens, db);
    cache_deps_add(&sc->asked_deps, sc->gens, cache_cell_table(db, QCACHE_OID_NONE));
    return cache_deps_read(&sc->asked_deps, sc->gens, loop_now_us(client_sessions(c)->loop)) ==
           CACHE_FILL_OK;
}

static void send_question(struct client *c, struct results *sc)
{
    struct slice all = buf_slice(&sc->asked);
    struct slice question = slice_of(all.p + sc->scope_len, all.n - sc->scope_len);
    struct buf sql = {0};

    sc->is_firm =
        note_deps(c, sc) && !results_are_elsewhere(c) && sc->asked_own == results_own_names(c);
    sc->nasked++;
    qcache_judge_free(&sc->judge);
    sc->judge = qcache_judge_new(question, worker_of(c)->rules);
    sc->asking = ASKS_NOW;
    qcache_question_sql(question, &sql);
    client_send_question(c, buf_slice(&sql));
    buf_free(&sql);
}

static void keep_question(struct client *c, struct results *sc)
{
    struct slice scope = buf_slice(&worker_of(c)->scope);

    buf_clear(&sc->asked);
    buf_put(&sc->asked, scope.p, scope.n);
    sc->scope_len = worker_of(c)->question_at;
    sc->asked_own = results_own_names(c);
}

/* Who has asked, and has to again, as the catalogue has changed since, does not stand in a line for
 * that once more. */
enum feed_step results_ask(struct client *c)
{
    struct results *sc = client_results(c);
    enum feed_step step;

    if (worker_of(c)->rules == NULL || results_are_elsewhere(c) || (sc != NULL && sc->ask_failed))
        return FEED_AGAIN;
    step = client_ask_link(c, sc != NULL && sc->nasked > 0);
    if (step != FEED_PASS)
        return step;
    sc = results_of(c);
    keep_question(c, sc);
    step = client_ask_ready(c);
    if (step != FEED_PASS) {
        sc->asking = ASKS_OWED;
        return step;
    }
    send_question(c, sc);
    return FEED_PARK;
}

void results_ask_after(struct client *c)
{
    struct results *sc = results_of(c);

    if (sc->asking != ASKS_NOTHING || worker_of(c)->rules == NULL || results_are_elsewhere(c))
        return; /* one at a time: the other one's turn comes when it is sent again */
    keep_question(c, sc);
    sc->asking = ASKS_AFTER;
}

bool results_ask_behind(struct client *c)
{
    struct results *sc = client_results(c);

    if (sc->asking != ASKS_AFTER || !client_ask_behind(c))
        return false;
    send_question(c, sc);
    return true;
}

bool results_ask_owed(struct client *c)
{
    struct results *sc = client_results(c);

    if (sc->asking != ASKS_OWED)
        return false;
    send_question(c, sc);
    return true;
}

bool results_on_row(struct client *c, struct slice body)
{
    struct results *sc = client_results(c);
    struct slice value[QCACHE_COLUMNS];

    if (sc->asking != ASKS_NOW)
        return false;
    if (wire_row_values(body, value, QCACHE_COLUMNS))
        qcache_judge_row(sc->judge, value);
    return true;
}

bool results_asked(struct client *c)
{
    struct results *sc = client_results(c);
    struct link *link = client_link(c);
    struct qcache_judgement *j;

    if (sc->asking != ASKS_NOW)
        return false;
    if (link_own_failed(link) || !sc->is_firm) {
        qcache_judge_free(&sc->judge);
        sc->ask_failed = true; /* this statement goes its way unjudged */
        link_forget_failure(link);
    } else {
        j = qcache_judge_end(&sc->judge, buf_slice(&sc->asked));
        j->known = sc->asked_deps;
        qcache_book_put(worker_of(c)->book, j, loop_now_us(client_sessions(c)->loop));
        sc->ask_failed = sc->nasked >= ASK_MAX;
    }
    buf_free(&sc->asked);
    sc->asking = ASKS_NOTHING;
    results_trim(c);
    return true;
}

bool results_ask_lost(struct client *c)
{
    struct results *sc = client_results(c);
    bool was_asking = sc->asking == ASKS_NOW;

    sc->asking = ASKS_NOTHING;
    qcache_judge_free(&sc->judge);
    buf_free(&sc->asked);
    return was_asking;
}
