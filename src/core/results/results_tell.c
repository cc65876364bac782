/* SPDX-License-Identifier: PostgreSQL
 * results_tell.c: what a client has written is told to memcached before he hears that it is
 * committed. Runs in: workers.
 *
 * What his servers say from when a COMMIT is sent until its outcome is known may tell of it: it is
 * kept back (stream_cork), nothing else of the session waits. When the exchange is over, or there
 * is more than the stream takes, memcached is told, and behind that what was kept back goes out.
 * What came meanwhile and may tell of another commit waits for another word. Whose client has gone
 * is told all the same.
 *
 * What a statement writes was judged by the catalogue as this pgpool knew it: whether another has
 * changed that is asked first, and everything in the database made invalid when it has. A dead
 * memcached does not keep a client from his answer: what could not be told turns the cache off
 * (cache_far.h). */
#include "config.h"

#include <string.h>

#include "base/mem.h"
#include "config/conf.h"

#include "results_int.h"

/* Cells that stay held until memcached knows. */
struct out_hold {
    struct list node;
    struct results_cells cells;
    uint64_t watch;
};

struct results_telling {
    struct list node; /* of the worker */
    struct results_worker *w;
    struct client *client; /* NULL: it has gone */
    struct cache_far_call *call;
    struct list due;            /* to be told */
    struct list flying;         /* being told */
    cache_cell db;              /* 0: see `also` */
    cache_cell also;            /* all results of this database are invalid, too */
    struct results_cells cells; /* that are told next, */
    uint64_t watch;             /* as judged by this catalogue */
    bool is_doubtful;           /* by several */
    bool is_due;  /* something may be told only behind a word that has not begun yet */
    bool all_due; /* what is due makes everything invalid */
};

static struct results_telling *out_new(struct results_worker *w, struct client *c)
{
    struct results_telling *o = mem_alloc_zero(sizeof *o);

    o->w = w;
    o->client = c;
    list_init(&o->due);
    list_init(&o->flying);
    list_push_back(&w->outs, &o->node);
    return o;
}

static struct results_telling *out_of(struct client *c)
{
    struct results_rest *rest = results_rest_of(c);

    if (rest->out == NULL)
        rest->out = out_new(worker_of(c), c);
    rest->out->db = cache_cell_database(pool_database_there(client_pool(c)));
    client_cork(c);
    return rest->out;
}

static void out_is_due(struct results_telling *o)
{
    o->is_due = true;
    task_post(o->w->ss->loop, &o->w->tells);
}

static void release_all(struct results_worker *w, struct list *holds)
{
    struct cache_written at = cache_written_now();
    struct list *n;

    while ((n = list_first(holds)) != NULL) {
        struct out_hold *h = LIST_ENTRY(n, struct out_hold, node);

        list_remove(n);
        cache_gens_release(w->gens, w->ss->env->slot, h->cells.p, h->cells.n, at);
        mem_free(h->cells.p);
        mem_free(h);
    }
}

/* All is told. May end the client. */
static void out_end(struct results_telling *o)
{
    struct client *c = o->client;

    list_remove(&o->node);
    mem_free(o->cells.p);
    mem_free(o);
    if (c == NULL)
        return;
    client_results_rest(c)->out = NULL;
    results_rest_trim(c);
    client_uncork(c);
}

static void tell(struct results_telling *o);

static void on_told(void *ctx, bool is_done)
{
    struct results_telling *o = ctx;

    (void)is_done;
    o->call = NULL;
    release_all(o->w, &o->flying);
    o->watch = 0;
    o->is_doubtful = false;
    if (o->is_due)
        tell(o);
    else
        out_end(o);
}

static void add_all(struct results_cells *to, const struct results_cells *from)
{
    uint32_t i;

    for (i = 0; i < from->n; i++)
        results_cells_add(to, from->p[i]);
}

static void bump(struct results_telling *o, bool all)
{
    if (o->also != 0)
        results_cells_add(&o->cells, o->also);
    if (all || o->cells.n > 0)
        o->call = cache_far_bump(o->w->far, o->cells.p, all ? 0 : o->cells.n, on_told, o);
    o->cells.n = 0;
    if (o->call == NULL)
        on_told(o, true);
}

static void on_watch(void *ctx, enum cache_far_found found, struct slice result, uint32_t took_us,
    const struct cache_far_deps *deps)
{
    struct results_telling *o = ctx;

    (void)result;
    (void)took_us;
    o->call = NULL;
    if (found != CACHE_FAR_DEAD)
        (void)cache_far_watch_moved(o->w->seen, deps);
    if (found == CACHE_FAR_DEAD || o->is_doubtful || cache_far_watch(o->w->seen, o->db) != o->watch)
        results_cells_add(&o->cells, o->db);
    bump(o, false);
}

static void note_watch(struct results_telling *o, uint64_t watch)
{
    o->is_doubtful = o->is_doubtful || watch == 0 || (o->watch != 0 && o->watch != watch);
    o->watch = watch;
}

/* A key of no result. */
#define NO_KEY "watch"

static void tell(struct results_telling *o)
{
    struct results *sc =
        o->client == NULL || !client_has_errand(o->client) ? NULL : client_results(o->client);
    struct cache_key key = cache_key_of(slice_of_str(NO_KEY));
    struct cache_far_deps deps = {.ncells = 1};
    bool all = o->all_due;
    struct list *n;

    while ((n = list_first(&o->due)) != NULL) {
        list_remove(n);
        list_push_back(&o->flying, n);
        add_all(&o->cells, &LIST_ENTRY(n, struct out_hold, node)->cells);
        note_watch(o, LIST_ENTRY(n, struct out_hold, node)->watch);
    }
    if (sc != NULL && sc->owes_word) {
        add_all(&o->cells, &sc->cells);
        note_watch(o, sc->watch);
        all = all || (sc->traits & QCACHE_W_ALL) != 0;
    }
    o->is_due = false;
    o->all_due = false;
    if (all || o->cells.n == 0 || o->db == 0) {
        bump(o, all);
        return;
    }
    results_far_watched(o->db, &deps);
    o->call = cache_far_get(o->w->far, &key, &deps, on_watch, o);
}

static void on_tells(struct task *t)
{
    struct results_worker *w = LIST_ENTRY(t, struct results_worker, tells);
    struct list all;
    struct list *n;

    /* Telling one may end its client: no walk, but one after the other from the front. */
    list_init(&all);
    while ((n = list_first(&w->outs)) != NULL) {
        list_remove(n);
        list_push_back(&all, n);
    }
    while ((n = list_first(&all)) != NULL) {
        struct results_telling *o = LIST_ENTRY(n, struct results_telling, node);

        list_remove(n);
        list_push_back(&w->outs, n);
        if (o->is_due && o->call == NULL)
            tell(o);
    }
}

static void add(struct results_telling *o, struct results_cells *cells, bool all, uint64_t watch)
{
    struct out_hold *h = mem_alloc_zero(sizeof *h);

    h->watch = watch;
    h->cells = *cells;
    memset(cells, 0, sizeof *cells);
    list_init(&h->node);
    list_push_back(&o->due, &h->node);
    o->all_due = o->all_due || all;
    out_is_due(o);
}

void results_tell_see(struct client *c)
{
    out_is_due(out_of(c));
}

void results_tell_add(struct client *c, struct results_cells *cells, bool all, uint64_t watch)
{
    struct results_telling *o = out_of(c);

    add(o, cells, all, watch);
}

void results_tell_alone(
    struct results_worker *w, struct results_cells *cells, bool all, cache_cell db)
{
    struct results_telling *o = out_new(w, NULL);

    o->also = db;
    add(o, cells, all, 0);
}

void results_tell_leave(struct client *c)
{
    struct results_rest *rest = client_results_rest(c);

    if (rest->out == NULL)
        return;
    rest->out->client = NULL;
    rest->out = NULL;
}

void results_tell_init(struct results_worker *w)
{
    list_init(&w->outs);
    task_init(&w->tells, on_tells);
}

/* What nobody could tell any more is told by those who find this process gone. */
void results_tell_fini(struct results_worker *w)
{
    struct list *n;

    task_cancel(&w->tells);
    while ((n = list_first(&w->outs)) != NULL) {
        struct results_telling *o = LIST_ENTRY(n, struct results_telling, node);

        if (o->client != NULL) {
            results_tell_leave(o->client);
            results_rest_trim(o->client);
        }
        if (o->is_due || o->call != NULL)
            cache_empty(w->store, cache_written_now().us);
        cache_far_leave(&o->call);
        release_all(w, &o->due);
        release_all(w, &o->flying);
        list_remove(n);
        mem_free(o->cells.p);
        mem_free(o);
    }
}
