/* SPDX-License-Identifier: PostgreSQL
 * results_int.h: the query cache in the session of a followed client: results are
 * looked up before a link is asked for, kept while they go to the client, and made invalid when a
 * statement writes.
 *
 * Contract of the writes: before what may commit is sent, the cells of all that was written are
 * held; they are released when the outcome is known. So nobody hears of a commit while an older
 * result can be had. */
#ifndef PGP_RESULTS_RESULTS_INT_H
#define PGP_RESULTS_RESULTS_INT_H

#include "backend/link.h"
#include "backend/pool.h"
#include "backend/prep.h"
#include "cache/cache_far.h"
#include "cache/cache_stats.h"
#include "cache/cache_store.h"
#include "cache/cache_stream.h"
#include "event/loop.h"
#include "qcache/qcache.h"
#include "qcache/qcache_row.h"
#include "qcache/qcache_who.h"
#include "results/results.h"
#include "session/nodes.h"
#include "session/caching.h"
#include "session/session.h"

/* A database as the invalidator knows it; by a hash of its name. */
#define RESULTS_STREAMS 16
struct results_stream {
    char name[CACHE_STREAM_BYTES];
    int n;
};

/* Lines of those who wait for others' results, by hashes of keys. */
#define RESULTS_LINES 64

/* A worker's. */
struct results_worker {
    struct cache *store;
    struct cache_gens *gens;
    struct cache_streams *streams;
    struct results_stream stream[RESULTS_STREAMS]; /* used last */
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
    struct list loose;                  /* writes whose outcome nobody waits for */
    struct timer timer;                 /* looks after `loose` */
    struct list waiting[RESULTS_LINES]; /* errands that wait for another's result */
    struct list called;                 /* errands that have waited and look again */
    struct task calls;
    struct timer looks;
    /* memcached; NULL: results are in shared memory */
    struct cache_far *far;
    struct cache_far_seen *seen;
    struct list asked; /* errands that wait for its answer */
    struct list outs;  /* what it has to be told before clients hear of it */
    struct task tells;
    struct timer tick;
    struct list unseen; /* struct results_rest of clients whose writes are not seen */
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

enum results_stage { FILLING_WAITS, FILLING_SENT }; /* the statement, on a link */

/* Whom the query was sent to. */
enum results_source {
    SOURCE_OLD, /* may not have what was written last: what it answers is not kept */
    SOURCE_PRIMARY,
    SOURCE_STANDBY /* is known to have it */
};

enum results_asking {
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
#define RESULTS_SEVERAL 16

/* What is kept with a client beyond its errands. */
struct results_rest {
    struct list node; /* of the worker's `unseen` */
    struct results_cells
        unseen; /* what it writes is not seen here, and so is not cached; or none */
    struct results_telling *out; /* a commit is told to memcached before it hears of it */
};

/* A client's, while it has an errand and there is something of it. */
struct results {
    /* What is kept of the exchange under way: `first`, when there is something, then `more`. */
    struct results_filling first;
    struct results_filling *more;
    uint8_t nmore;
    uint8_t nstatements;     /* up to its Sync */
    struct buf seen;         /* what the client was told */
    struct results_far *far; /* what is looked up in memcached */
    uint8_t far_wait;        /* enum far_wait */
    int64_t since_us;
    uint8_t filling;              /* enum results_stage */
    uint8_t source;               /* enum results_source */
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
    uint8_t asking; /* enum results_asking */
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
struct results *results_of(struct client *c);
/* Frees it when nothing is in it. */
void results_trim(struct client *c);
/* results_ops.end. */
void results_free(struct client *c);
/* What there is of it beyond errands, made when there is none; frees that when nothing is in it. */
struct results_rest *results_rest_of(struct client *c);
void results_rest_trim(struct client *c);
static inline struct results_worker *worker_of(const struct client *c)
{
    return client_sessions(c)->results_worker;
}
/* Results of the client's database may be used and kept now. */
bool results_are_good(struct client *c);
/* Results of it go by what its WAL says, too, and changes of its catalogue are noticed. */
bool results_are_followed(struct client *c);
/* The client's link leads to another database than the settings name, which has no cells. */
bool results_are_elsewhere(const struct client *c);
/* The number of its link, if that is so, or it has settings of its role or database as they were:
 * nobody else has such results, and names may lead elsewhere, which holds for it alone. Else 0. */
uint64_t results_own_names(const struct client *c);
/* Valid until it is called for another client. */
static inline const struct qcache_who *results_who(const struct client *c)
{
    return qcache_who_find(&worker_of(c)->whos, client_pool(c), client_settings(c));
}
/* results_ask.c */
/* The names of the statements as `facts` have them, and who asks: in the worker's `scope`. -1: too
 * many. */
int results_scope(struct client *c, const struct sql_facts *facts);
/* What is known of that; NULL: nothing. */
const struct qcache_judgement *results_judged(struct client *c);
/* What is known of the statement that is looked at now is remembered until it is sent, or another
 * is looked at. `sql`: the text of which `facts` are. */
void results_note_judged(struct client *c, const struct sql_facts *facts, struct slice sql,
    const struct qcache_judgement *j);
/* The judgement that is kept, when it is this client's and still holds; NULL: it has to be found
 * again. */
const struct qcache_judgement *results_judged_now(
    struct client *c, const struct sql_facts *facts, struct slice sql);
/* Asks for it, when that can be done now. FEED_AGAIN: it cannot be. */
enum feed_step results_ask(struct client *c);
/* The client's link is lost: true when a question was under way on it. */
bool results_ask_lost(struct client *c);
/* results_ops. */
bool results_ask_owed(struct client *c);
bool results_ask_behind(struct client *c);
bool results_on_row(struct client *c, struct slice body);
bool results_asked(struct client *c);
/* What has to be asked is asked when the transaction is over. */
void results_ask_after(struct client *c);

/* results_write.c */
/* A statement, and the parameters that it has. */
struct results_said {
    const struct sql_facts *facts;
    struct slice sql;
    struct qcache_params params;
};
/* Statements are about to be sent: what they write is added to what the transaction has written,
 * and held if it may be committed by them. */
void results_note_writes(struct client *c, const struct results_said *said);
/* results_note_writes for what nobody has looked at. */
void results_note_unread(struct client *c);
/* The errand ends with writes whose outcome is not known: `link` may still do them. */
/* Writes are let loose for so long at most. */
#define LOOSE_MAX_US INT64_C(600000000)
void results_let_loose(struct client *c, const struct link *link);
/* Lets writes of `cells` loose, as results_let_loose does; *cells is emptied. */
void results_add_loose(struct client *c, struct results_cells *cells, bool writes_all,
    const struct cache_deps *judged, uint64_t link_id, int64_t for_us);
void results_loose_init(struct results_worker *w);
void results_loose_fini(struct results_worker *w);
/* What memcached is owed it is told, before the client hears more. */
void results_tell_far(struct client *c);
/* The exchange is over: outcomes are known. */
void results_settle_writes(struct client *c);
/* results_ops. */
void results_unseen(struct client *c);
void results_gone(struct client *c, uint64_t link_id);

/* results_wait.c */
/* Nothing at a server is his, that others might be waiting for, and it has not waited yet. */
bool results_may_wait(const struct client *c);
/* The client is fed again when whoever asks for the key with this hash has its result, or will not.
 * The caller parks it. `took_us`: what that took the last time; 0: not known. */
void results_line_up(struct client *c, struct results *sc, uint64_t hash, uint32_t took_us);
void results_wait_init(struct results_worker *w);
void results_wait_fini(struct results_worker *w);

/* results_deps.c */
/* Adds a cell, once. */
void results_cells_add(struct results_cells *s, cache_cell cell);
/* The cells of a result. Returns how many; more than CACHE_DEPS_MAX: there are too many. */
uint32_t results_depend_on(struct client *c, const struct qcache_judgement *j,
    const struct results_said *said, cache_cell cell[CACHE_DEPS_MAX]);
/* Where the look-up of this statement is, or would be, in the list. */
struct results_far **results_far_at(struct results *sc, unsigned number);
void results_far_drop(struct results_far **at);
void results_far_forget(struct results *sc);
/* A standby has what was written by other pgpools, too. */
bool results_far_standby(struct client *c, const struct cache_standby *is);
void results_far_watched(cache_cell db, struct cache_far_deps *deps);

/* results_far.c */
/* FEED_PARK: it is asked, and results_far_wait is to be called; FEED_LOCAL: the result is behind
 * what is in the worker's `room`, `hit` knows of it; FEED_PASS: it is not there, and may be kept;
 * FEED_AGAIN: nobody knows, keep nothing. */
enum feed_step results_far_look(struct client *c, const struct cache_key *key, unsigned number,
    const struct qcache_judgement *j, const struct results_said *said, struct cache_hit *hit);
/* The client is fed again when all is answered. */
enum feed_step results_far_wait(struct client *c);
/* Has memcached told that writes of this client are not seen. */
void results_far_unseen(struct client *c);
bool results_far_init(struct results_worker *w);
void results_far_fini(struct results_worker *w);

/* results_tell.c */
/* What its servers say now may tell of a commit: it waits until memcached knows. */
void results_tell_see(struct client *c);
/* Writes whose outcome is known; their cells are held, and released then. Empties *cells. `all`:
 * everything is invalid. */
void results_tell_add(struct client *c, struct results_cells *cells, bool all, uint64_t watch);
/* The client goes. */
void results_tell_leave(struct client *c);
/* results_tell_add of writes that no client waits for: everything in the database is invalid. */
void results_tell_alone(
    struct results_worker *w, struct results_cells *cells, bool all, cache_cell db);
void results_tell_init(struct results_worker *w);
void results_tell_fini(struct results_worker *w);

/* results_look.c: results_ops. */
enum feed_step results_query(struct client *c, struct slice sql, const struct sql_facts *facts);
enum feed_step results_batch(struct client *c, const char *p, const char *end, const char **whole);
/* What becomes of this statement. */
const char *results_explain(struct client *c, struct slice sql, const struct sql_facts *facts);
/* As admin_cache_delete_fn: all results of this text, with whatever settings and parameters. */
bool results_delete(void *ctx, struct slice sql, struct slice user, struct slice database);

/* results_fill.c */
/* A miss: the result of statement `number` of a sequence is kept if nothing speaks against that;
 * `has_shape`: its columns are told in front of the rows. WAIT: another one's result is kept. */
void results_fill_begin(struct client *c, const struct qcache_judgement *j,
    const struct cache_key *key, const struct results_said *said, enum cache_turn turn,
    unsigned number, bool has_shape);
/* How many statements are sent together. */
void results_fill_count(struct client *c, unsigned nstatements);
/* What was begun is not sent, or is not alone. */
void results_fill_drop(struct client *c);
/* results.c: what is gathered is thrown away. */
void results_fill_free(struct results *sc);
/* The query is sent, on client_link(c). */
void results_fill_sent(struct client *c);
void results_fill_end(struct client *c, bool worked);

/* results_ops. */
void results_fed(struct client *c);
void results_see(struct client *c, const char *p, size_t n);
#endif
