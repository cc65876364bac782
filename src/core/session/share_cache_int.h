/* SPDX-License-Identifier: PostgreSQL
 * share_cache_int.h: the query cache in the session of a client that shares links: results are
 * looked up before a link is asked for, kept while they go to the client, and made invalid when a
 * statement writes. One call stands in each place where a statement begins, is sent, and ends;
 * where there is no cache, sessions.cache is NULL, and that is all that is looked at.
 *
 *   share_cache.c        a worker's handle; what a turn has of it
 *   share_cache_look.c   may this client have a kept result? its key; the answer
 *   share_cache_fill.c   what a server answers is gathered, and kept at the end
 *   share_cache_ask.c    judgements, asked of the server in front of the statement or behind it
 *   share_cache_write.c  what the transaction has written, and when that holds
 *
 * Contract of the writes: before what may commit is sent, the cells of all that was written are
 * held; they are released when the outcome is known. So nobody hears of a commit while an older
 * result can be had. */
#ifndef PGP_SESSION_SHARE_CACHE_INT_H
#define PGP_SESSION_SHARE_CACHE_INT_H

#include "cache/cache_stats.h"
#include "cache/cache_store.h"
#include "cache/cache_stream.h"
#include "event/loop.h"
#include "qcache/qcache.h"

#include "share_int.h"

/* A database as the invalidator knows it; by a hash of its name. */
#define SHARE_CACHE_STREAMS 16
struct share_cache_stream {
    char name[CACHE_STREAM_BYTES];
    int n;
};

/* A worker's. */
struct share_cache_worker {
    struct cache *store;
    struct cache_gens *gens;
    struct cache_streams *streams;
    struct share_cache_stream stream[SHARE_CACHE_STREAMS]; /* used last */
    struct qcache_book *book;
    struct qcache_rules *rules; /* NULL: a list is wrong; nothing is kept */
    struct buf key;             /* of the statement at hand */
    struct buf scope;           /* who asks, and the names in the statement at hand ... */
    uint32_t question_at;       /* ... which begin here */
    struct buf room;            /* an answer on its way to a client */
    struct list loose;          /* writes whose outcome nobody waits for */
    struct timer timer;         /* ... looks after them */
    struct sessions *ss;
    uint64_t hits;
    uint64_t misses;
};

/* A set of cells. */
struct share_cells {
    cache_cell *p;
    uint32_t n;
    uint32_t cap;
};

enum share_cache_filling { FILLING_WAITS, FILLING_SENT }; /* the statement, on a link */

enum share_cache_asking {
    ASKS_NOTHING,
    ASKS_OWED, /* settings are under way in front of the question */
    ASKS_NOW,
    ASKS_AFTER /* the question is kept until the transaction is over */
};

/* A client's, while it has a turn and there is something of it. */
struct share_cache {
    /* What is kept of the exchange under way. */
    struct cache_fill *fill;
    struct buf seen; /* what the client was told */
    int64_t since_us;
    uint8_t filling; /* enum share_cache_filling */
    bool has_shape;  /* columns are told in front of the rows */
    uint32_t ntables;
    uint16_t table[CACHE_ENTRY_TABLES]; /* numbers, for counters */
    /* A question about the catalogue. */
    struct qcache_judge *judge;
    struct buf asked; /* scope and question */
    uint32_t scope_len;
    struct cache_deps asked_deps;
    bool is_firm; /* nobody was changing the catalogue then */
    bool ask_failed;
    uint8_t asking; /* enum share_cache_asking */
    uint8_t nasked;
    /* What the open transaction has written. */
    struct share_cells cells;
    struct cache_gens *gens;
    int proc;
    bool writes_all;   /* ... among it what no cell stands for: roles, databases */
    bool has_written;  /* results are not looked up until it ends */
    bool is_held;      /* its cells are */
    bool commits_sent; /* what may end it was, in the present exchange */
    uint32_t traits;   /* QCACHE_W_NAMES: it was sent, in SET LOCAL search_path and the like;
                          QCACHE_W_COMMITS: something that may end it was, and has not */
};

/* share_cache.c */
/* The turn's, made when there is none. */
struct share_cache *share_cache_of(struct client *c);
/* Frees it when nothing is in it. */
void share_cache_trim(struct client *c);
/* Results of the client's database may be used and kept now. */
bool share_cache_is_good(struct client *c);
/* Adds a cell, once. */
void share_cells_add(struct share_cells *s, cache_cell cell);

/* share_cache_ask.c */
/* The names of the statements as `facts` have them, and who asks: in ss->cache->scope. -1: too
 * many. */
int share_cache_scope(struct client *c, const struct sql_facts *facts);
/* What is known of that; NULL: nothing. */
const struct qcache_judgement *share_cache_judged(struct client *c);
/* Asks for it, when that can be done now. FEED_AGAIN: it cannot be. */
enum feed_step share_cache_ask(struct client *c);
/* Its link is lost: true when it was under way. */
bool share_cache_ask_lost(struct client *c);
/* It is asked when the transaction is over. */
void share_cache_ask_after(struct client *c);

/* Nothing is under way on the link that the session is tied to, and no transaction is open on it.
 */
bool share_cache_own_is_quiet(const struct client *c);
/* Nothing ties the session that results depend on. */
bool share_cache_knows_session(const struct share *s);

/* share_cache_write.c */
/* These statements are about to be sent: what they write is added to what the transaction has
 * written, and held if it may be committed by it. */
void share_cache_note_writes(struct client *c, struct slice sql, const struct sql_facts *facts);
/* The same of what nobody has looked at. */
void share_cache_note_unread(struct client *c);
/* The turn ends with writes whose outcome is not known: `link` may still do them. */
void share_cache_let_loose(struct client *c, const struct link *link);
void share_cache_loose_init(struct share_cache_worker *w);
void share_cache_loose_fini(struct share_cache_worker *w);
/* The exchange is over: outcomes are known. */
void share_cache_settle_writes(struct client *c);

/* share_cache_fill.c */
/* A miss: its result is kept if nothing speaks against that. ss->cache->key is its key. */
void share_cache_fill_begin(
    struct client *c, const struct qcache_judgement *j, bool has_shape, struct slice sql);
/* What was begun is not sent, or is not alone. */
void share_cache_fill_drop(struct client *c);
void share_cache_fill_end(struct client *c);

#endif
