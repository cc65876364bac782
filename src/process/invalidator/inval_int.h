/* SPDX-License-Identifier: PostgreSQL
 * inval_int.h: the invalidator's root struct, and the stream of one database. */
#ifndef PGP_INVAL_INT_H
#define PGP_INVAL_INT_H

#include <libpq-fe.h>

#include "base/buf.h"
#include "base/histogram.h"
#include "base/list.h"
#include "cache/cache_far.h"
#include "cache/cache_gen.h"
#include "cache/cache_stream.h"
#include "cluster/view.h"
#include "crypto/secret.h"
#include "process/common/role_loop.h"
#include "process/common/server_conn.h"

#include "inval_cells.h"
#include "inval_map.h"
#include "inval_snapshot.h"

struct conf;

/* What the ordinary connection of a stream is asked, one thing at a time. */
enum inval_ask {
    ASK_NOTHING,
    ASK_FACTS,   /* whether there can be a stream */
    ASK_RUNNING, /* which transactions run at its beginning */
    ASK_DIGEST,  /* of the catalogue */
    ASK_TABLES,
    ASK_ABOVE,  /* inheritance */
    ASK_SAMPLE, /* how far the WAL is */
    ASK_VISIBLE /* which transactions are visible */
};

/* A transaction whose COMMIT has been read and that is not known to be visible. */
struct inval_txn {
    struct list node;
    uint32_t xid;
    uint64_t lsn;
    struct inval_cells cells; /* held */
};

/* A transaction that ran when the stream began: its COMMIT may stand in front of that. */
struct inval_ghost {
    uint32_t xid;
    bool has_ended;
};

enum inval_stage {
    STREAM_OFF,     /* as it has been left: see `row` */
    STREAM_LOOK,    /* can there be one? */
    STREAM_SLOT,    /* the slot is being made */
    STREAM_CATALOG, /* the catalogue is being read */
    STREAM_OPEN
};

struct inval_stream {
    struct invalidator *inv;
    int number; /* in the region */
    char database[CACHE_STREAM_BYTES];
    cache_cell cell; /* of the database */
    enum inval_stage stage;
    struct server_conn *sql;
    struct server_conn *repl;
    struct timer look;
    struct timer retry;
    int64_t backoff_ms;
    bool was_good; /* results were kept: by `statement`, or by a stream that is whole */

    enum inval_ask asking;
    PGresult *answer; /* as far as it has come */
    bool wants_sample;
    bool wants_visible;
    bool wants_digest;
    bool wants_map;
    int64_t asked_us;

    struct inval_map *map;
    char digest[1024];
    int64_t digest_due_us; /* not before */
    uint64_t digest_lsn;   /* how far the stream was when it was taken */
    int64_t digest_us;     /* and when that was */

    uint64_t lsn;             /* how far the stream is */
    struct inval_cells cells; /* of the transaction that is being read; held */
    struct buf tables;        /* of it: uint16_t, numbers of those that the cache counts */
    bool is_by_table;         /* a table as a whole is among its changes */
    struct list txns;         /* committed, not visible: struct inval_txn */
    int nvisible_tries;
    struct timer visible_later;
    struct inval_snapshot snapshot;
    struct inval_ghost *ghost;
    uint32_t nghosts;

    bool has_sample; /* the stream is waited for to come this far: */
    uint64_t sample_lsn;
    int64_t sample_us;
    int64_t good_until_us; /* the lease */

    struct cache_stream_row row;
    struct histogram lag;
};

struct invalidator {
    struct role_loop role;
    struct cache_streams *streams;
    struct cache_gens *gens;
    struct cache *cache;
    struct cache_far *far; /* memcached; NULL: results are in shared memory */
    struct jobs *jobs;     /* threads that ask memcached */
    struct timer tick;
    struct view view;
    int node; /* the primary that is followed; VIEW_NO_NODE: there is none */
    uint64_t epoch;
    struct secret password;
    struct inval_stream *stream[CACHE_STREAM_MAX]; /* NULL: not asked for yet */
};

/* invalidator.c */
const struct conf *inval_conf(const struct invalidator *inv);
/* The role that it logs in as. */
const char *inval_user(const struct invalidator *inv);

/* inval_stream.c: the life of one */
struct inval_stream *inval_stream_new(struct invalidator *inv, int number, const char *database);
void inval_stream_free(struct inval_stream **sp);
/* Begins anew: the settings or the primary changed, or it was idle. */
void inval_stream_start(struct inval_stream *s);
/* Ends it, as `state` and `why` say; nothing of the database is good any more. */
void inval_stream_stop(struct inval_stream *s, enum cache_stream_state state, const char *why);
/* The stream's connection is of no use; it will be tried again. */
void inval_stream_break(struct inval_stream *s, const char *why);
/* There cannot be a stream as things are: what the settings say holds instead. */
void inval_stream_refuse(struct inval_stream *s, const char *why);
/* Writes what is told about it. */
void inval_stream_tell(struct inval_stream *s, enum cache_stream_state state, const char *why);
/* The catalogue is read: the stream itself begins. */
void inval_stream_go(struct inval_stream *s);
/* The facts are good: the slot is made. */
void inval_stream_make_slot(struct inval_stream *s);

/* inval_ask.c: what is asked on the ordinary connection */
void inval_ask_open(struct server_conn *c);
void inval_ask_ready(struct server_conn *c);
/* The slot is there: the first question of those that lead to inval_stream_go. */
void inval_ask_running(struct inval_stream *s);
/* The connection is closed: nothing is asked or wanted. */
void inval_ask_forget(struct inval_stream *s);
/* Asks the most urgent of what is wanted, unless something is being asked. */
void inval_ask_next(struct inval_stream *s);

/* inval_catalog.c: statements about the catalogue, and what they answer */
const char *inval_catalog_sql(enum inval_ask ask, int version);
/* The server's facts say whether it is a standby, which may be about to become the primary. */
bool inval_catalog_in_recovery(const PGresult *res);
/* 0, or -1 and why there can be no stream. */
int inval_catalog_judge(const PGresult *res, char why[CACHE_STREAM_WHY_BYTES]);
void inval_catalog_tables(struct inval_map *m, const PGresult *res);
void inval_catalog_above(struct inval_map *m, const PGresult *res);

/* inval_read.c: what the stream says */
void inval_read_ready(struct server_conn *c);
/* Lets go of what is held. */
void inval_read_drop(struct inval_stream *s);
/* A snapshot was taken: who is visible is released. */
void inval_read_visible(struct inval_stream *s);
/* Remembers who runs, and who does not any more. */
void inval_read_ghosts(struct inval_stream *s, bool is_first);
/* The stream may have come as far as the sample. */
void inval_read_progress(struct inval_stream *s, bool is_waiting);
/* All results of the database are invalid. */
void inval_read_empty(struct inval_stream *s);
/* Tells the server how far we are, and asks how far it is. */
void inval_read_ping(struct inval_stream *s);

#endif
