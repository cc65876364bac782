/* SPDX-License-Identifier: PostgreSQL
 * results_int.h: the query cache in the session of a followed client: results are
 * looked up before a link is asked for, kept while they go to the client, and made invalid when a
 * statement writes. One call stands in each place where a statement begins, is sent, and ends;
 * where there is no cache, sessions.cache is NULL, and that is all that is looked at.
 *
 * Contract of the writes: before what may commit is sent, the cells of all that was written are
 * held; they are released when the outcome is known. So nobody hears of a commit while an older
 * result can be had. */
#ifndef PGP_SESSION_RESULTS_INT_H
#define PGP_SESSION_RESULTS_INT_H

#include "cache/cache_far.h"
#include "cache/cache_stats.h"
#include "cache/cache_store.h"
#include "cache/cache_stream.h"
#include "event/loop.h"
#include "qcache/qcache.h"
#include "qcache/qcache_row.h"
#include "qcache/qcache_who.h"

#include "session/sstate_int.h"

/* A database as the invalidator knows it; by a hash of its name. */
#define CACHED_STREAMS 16
struct cached_stream {
    char name[CACHE_STREAM_BYTES];
    int n;
};

/* Who waits for others' results, by hashes of keys. */
#define CACHED_LINES 64

/* A worker's. */
struct cached_worker {
    struct cache *store;
    struct cache_gens *gens;
    struct cache_streams *streams;
    struct cached_stream stream[CACHED_STREAMS]; /* used last */
    struct qcache_book *book;
    struct qcache_rules *rules; /* NULL: a list is wrong; nothing is kept */
    struct qcache_whos whos;
    struct buf key;       /* of the statement at hand */
    uint64_t key_hash;    /* of `key`, when that is whole */
    struct buf scope;     /* who asks, and the names in the statement at hand */
    uint32_t question_at; /* where the names begin in `scope` */
    struct buf room;      /* an answer on its way to a client */
    struct arena *arena;  /* of one call */
    /* The statement that was looked at last, held, and its facts. */
    struct prep *looked;
    struct plan_found looked_found;
    struct list loose;                 /* writes whose outcome nobody waits for */
    struct timer timer;                /* looks after `loose` */
    struct list waiting[CACHED_LINES]; /* errands that wait for another's result */
    struct list called;                /* errands that have waited and look again */
    struct task calls;
    struct timer looks;
    /* memcached; NULL: results are in shared memory */
    struct cache_far *far;
    struct cache_far_seen *seen;
    struct list asked; /* errands that wait for its answer */
    struct list outs;  /* what it has to be told before clients hear of it */
    struct task tells;
    struct timer tick;
    bool has_unseen; /* once there was a client whose writes are not seen */
    struct sessions *ss;
    uint64_t hits;
    uint64_t misses;
};

/* A set of cells. */
struct results_cells {
    cache_cell *p;
    uint32_t n;
    uint32_t cap;
};

enum cached_filling { FILLING_WAITS, FILLING_SENT }; /* the statement, on a link */

/* Whom it was sent to. */
enum cached_source {
    SOURCE_OLD, /* may not have what was written last: what it answers is not kept */
    SOURCE_PRIMARY,
    SOURCE_STANDBY /* is known to have it */
};

enum cached_asking {
    ASKS_NOTHING,
    ASKS_OWED, /* settings are under way in front of the question */
    ASKS_NOW,
    ASKS_AFTER /* the question is kept until the transaction is over */
};

/* A look-up in memcached. */
struct results_far {
    struct results_far *next;
    struct client *client;
    struct cache_far_call *call; /* NULL: it is answered */
    struct buf key;
    struct buf result;
    struct cache_far_deps deps;
    uint32_t took_us;
    uint8_t number; /* of its statement in the sequence */
    uint8_t found;  /* enum cache_far_found */
};

/* Whether it waits for them; ASIDE: with the link of its transaction set aside. */
enum far_wait { FAR_WAIT_NOT, FAR_WAIT_HERE, FAR_WAIT_ASIDE };

/* A result that is kept of the exchange under way. */
struct results_filling {
    struct cache_fill *fill;
    uint8_t number; /* of its statement in the sequence */
    bool has_shape; /* columns are told in front of the rows */
    uint32_t ntables;
    uint16_t table[CACHE_ENTRY_TABLES]; /* numbers, for counters */
};
/* Sequences of more statements are not looked at. */
#define CACHED_SEVERAL 16

/* A client's, while it has an errand and there is something of it. */
struct cached {
    /* What is kept of the exchange under way: `first`, when there is something, then `more`. */
    struct results_filling first;
    struct results_filling *more;
    uint8_t nmore;
    uint8_t nstatements;     /* up to its Sync */
    struct buf seen;         /* what the client was told */
    struct results_far *far; /* what is looked up in memcached */
    uint8_t far_wait;        /* enum far_wait */
    int64_t since_us;
    uint8_t filling;              /* enum cached_filling */
    uint8_t source;               /* enum cached_source */
    uint64_t place;               /* the database that its key names: pool_place */
    uint64_t link_id;             /* where it was sent */
    struct cache_deps fill_known; /* of the catalogue, when it was judged what is read */
    /* Another client asks for its result. */
    uint64_t awaited;      /* the hash of the key */
    int64_t wait_until_us; /* 0: the statement at hand has not waited; once is enough */
    /* A question about the catalogue. */
    struct qcache_judge *judge;
    struct buf asked; /* scope and question */
    uint32_t scope_len;
    uint64_t asked_own; /* the link that it is about alone; 0: it is for all with that user */
    struct cache_deps asked_deps;
    bool is_firm; /* nobody was changing the catalogue then */
    bool ask_failed;
    uint8_t asking; /* enum cached_asking */
    uint8_t nasked;
    /* What the open transaction has written. */
    struct results_cells cells;
    struct cache_gens *gens;
    int proc;
    bool has_done_more; /* than plain reads: results are not looked up until it ends */
    bool is_held;       /* its cells are */
    bool owes_word;     /* memcached has to be told, when their outcome is known */
    bool commits_sent;  /* what may end it was, in the present exchange */
    uint64_t watch;     /* what memcached said of the catalogue when its first write was judged */
    struct cache_deps judged; /* what its first write was judged by, for qcache_settle_judged */
    uint32_t traits; /* QCACHE_W_TABLES: a table as a whole is among its cells; QCACHE_W_ALL: so is
                        what no cell stands for, roles and databases; QCACHE_W_NAMES: SET LOCAL
                        search_path, DDL or the like was sent; QCACHE_W_COMMITS: so was what may end
                        it, and it has not */
};

/* results_worker.c, results.c */
/* The errand's, made when there is none. */
struct cached *results_of(struct client *c);
/* Frees it when nothing is in it. */
void results_trim(struct client *c);
/* Results of the client's database may be used and kept now. */
bool results_are_good(struct client *c);
/* Results of it go by what its WAL says, too, and changes of its catalogue are noticed. */
bool results_are_followed(struct client *c);
/* Its link leads to another database than the settings name by now, which has no cells. */
bool results_are_elsewhere(const struct client *c);
/* The number of its link, if that is so, or it has settings of its role or database as they were:
 * nobody else has such results, and names may lead elsewhere, which holds for it alone. Else 0. */
uint64_t results_own_names(const struct client *c);
/* Valid until it is called for another client. */
static inline const struct qcache_who *cached_who(const struct client *c)
{
    return qcache_who_find(&c->ss->cache->whos, c->pool, c->sstate->vars.client);
}
/* results_ask.c */
/* The names of the statements as `facts` have them, and who asks: in ss->cache->scope. -1: too
 * many. */
int cached_scope(struct client *c, const struct sql_facts *facts);
/* What is known of that; NULL: nothing. */
const struct qcache_judgement *cached_judged(struct client *c);
/* What is known of the statement that is looked at now is remembered until it is sent, or another
 * is looked at. `sql`: the text of which `facts` are. */
void cached_note_judged(struct client *c, const struct sql_facts *facts, struct slice sql,
    const struct qcache_judgement *j);
/* It, when it is this client's and still holds; NULL: it has to be found again. */
const struct qcache_judgement *cached_judged_now(
    struct client *c, const struct sql_facts *facts, struct slice sql);
/* Asks for it, when that can be done now. FEED_AGAIN: it cannot be. */
enum feed_step cached_ask(struct client *c);
/* client_kind.may_ask. */
bool cached_has_link(struct client *c);
/* Its link is lost: true when it was under way. */
bool cached_ask_lost(struct client *c);
/* It is asked when the transaction is over. */
void cached_ask_after(struct client *c);

/* Nothing is under way on the link that the session is tied to, not even a transaction. */
bool cached_own_is_quiet(const struct client *c);
/* The client is in a transaction whose statements see what is committed when they begin: also while
 * its link is set aside. What it has run is not looked at here. */
bool cached_sees_commits(const struct client *c);
/* Nothing ties the session that results depend on. */
bool cached_knows_session(const struct sstate *s);

/* results_write.c */
/* A statement, and the parameters that it has. */
struct cached_said {
    const struct sql_facts *facts;
    struct slice sql;
    struct qcache_params params;
};
/* These statements are about to be sent: what they write is added to what the transaction has
 * written, and held if it may be committed by it. */
void cached_note_writes(struct client *c, const struct cached_said *said);
/* cached_note_writes for what nobody has looked at. */
void cached_note_unread(struct client *c);
/* The errand ends with writes whose outcome is not known: `link` may still do them. */
/* Writes are let loose for so long at most. */
#define LOOSE_MAX_US INT64_C(600000000)
void results_let_loose(struct client *c, const struct link *link);
/* Lets writes of `cells` loose, as results_let_loose does; *cells is emptied. */
void results_add_loose(struct client *c, struct results_cells *cells, bool writes_all,
    const struct cache_deps *judged, uint64_t link_id, int64_t for_us);
void results_loose_init(struct cached_worker *w);
void results_loose_fini(struct cached_worker *w);
/* What memcached is owed it is told, before the client hears more. */
void cached_tell_far(struct client *c);
/* The exchange is over: outcomes are known. */
void cached_settle_writes(struct client *c);

/* results_wait.c */
/* Nothing at a server is his, that others might be waiting for, and it has not waited yet. */
bool results_may_wait(const struct client *c);
/* It is fed again when whoever asks for the key with this hash has its result, or will not. The
 * caller parks it. `took_us`: what that took the last time; 0: not known. */
void results_line_up(struct client *c, struct cached *sc, uint64_t hash, uint32_t took_us);
/* It stands in a line, and waits for a result. */
void results_parked(struct client *c);
void results_wait_init(struct cached_worker *w);
void results_wait_fini(struct cached_worker *w);

/* results_deps.c */
/* Adds a cell, once. */
void results_cells_add(struct results_cells *s, cache_cell cell);
/* The cells of a result. Returns how many; more than CACHE_DEPS_MAX: there are too many. */
uint32_t results_depend_on(struct client *c, const struct qcache_judgement *j,
    const struct cached_said *said, cache_cell cell[CACHE_DEPS_MAX]);
/* Where the look-up of this statement is, or would be, in the list. */
struct results_far **results_far_at(struct cached *sc, unsigned number);
void results_far_drop(struct results_far **at);
void results_far_forget(struct cached *sc);
/* A standby has what was written by other pgpools, too. */
bool results_far_standby(struct client *c, const struct cache_standby *is);
void results_far_watched(cache_cell db, struct cache_far_deps *deps);

/* results_far.c */
/* FEED_PARK: it is asked, and cached_far_wait is to be called; FEED_LOCAL: the result is behind
 * what is in ss->cache->room, `hit` knows of it; FEED_PASS: it is not there, and may be kept;
 * FEED_AGAIN: nobody knows, keep nothing. */
enum feed_step cached_far_look(struct client *c, const struct cache_key *key, unsigned number,
    const struct qcache_judgement *j, const struct cached_said *said, struct cache_hit *hit);
/* It is fed again when all is answered. */
enum feed_step cached_far_wait(struct client *c);
/* c->rare->unseen is new. */
void cached_far_unseen(struct client *c);
bool cached_far_init(struct cached_worker *w);
void cached_far_fini(struct cached_worker *w);

/* results_tell.c */
/* What its servers say now may tell of a commit: it waits until memcached knows. */
void results_tell_see(struct client *c);
/* Writes whose outcome is known; their cells are held, and released then. Empties *cells. `all`:
 * everything is invalid. */
void results_tell_add(struct client *c, struct results_cells *cells, bool all, uint64_t watch);
/* results_tell_add of writes that no client waits for: everything in the database is invalid. */
void results_tell_alone(
    struct cached_worker *w, struct results_cells *cells, bool all, cache_cell db);
void results_tell_init(struct cached_worker *w);
void results_tell_fini(struct cached_worker *w);

/* results_look.c, for PGPOOL EXPLAIN and PGPOOL SET CACHE DELETE */
/* What becomes of this statement; "": there is no cache. */
const char *cached_explain(struct client *c, struct slice sql, const struct sql_facts *facts);
/* As admin_cache_delete_fn: all results of this text, with whatever settings and parameters. */
bool cached_delete(void *ctx, struct slice sql, struct slice user, struct slice database);

/* results_fill.c */
/* A miss: the result of statement `number` of a sequence is kept if nothing speaks against that;
 * `has_shape`: its columns are told in front of the rows. WAIT: another one's result is kept. */
void results_fill_begin(struct client *c, const struct qcache_judgement *j,
    const struct cache_key *key, const struct cached_said *said, enum cache_turn turn,
    unsigned number, bool has_shape);
/* So many statements are sent together. */
void results_fill_count(struct client *c, unsigned nstatements);
/* What was begun is not sent, or is not alone. */
void results_fill_drop(struct client *c);
/* results.c: what is gathered is thrown away. */
void results_fill_free(struct cached *sc);
/* It is sent, on c->link. */
void results_fill_sent(struct client *c);
void results_fill_end(struct client *c);

/* All that came from the client was looked at: what is not under way by now is parked. */
void results_fed(struct client *c);
static inline void cached_after_feed(struct client *c)
{
    const struct errand *t = c->kind->errand(c);

    if (t != NULL && t->cache != NULL)
        results_fed(c);
}

#endif
