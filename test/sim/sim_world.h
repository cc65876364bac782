/* SPDX-License-Identifier: PostgreSQL
 * sim_world.h: who lives in the simulation: servers, clients, workers; and what is put in their
 * way.
 */
#ifndef PGP_TEST_SIM_WORLD_H
#define PGP_TEST_SIM_WORLD_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "ipc/shm.h"
#include "wire/errmsg.h"

#include "sim.h"
#include "sim_pg.h"

#define WORLD_PORT         5001 /* of the first server */
#define WORLD_MAX_NODES    3
#define WORLD_MONITOR_SLOT 1 /* workers have those behind it */
#define WORLD_MAX_WORKERS  3
#define WORLD_MAX_CLIENTS  24
#define WORLD_MAX_TAGS     8192

enum world_consistency { WORLD_EVENTUAL, WORLD_SEEN, WORLD_GLOBAL };

enum world_mode { WORLD_TRANSACTION, WORLD_SESSION, WORLD_STATEMENT, WORLD_NMODES };

/* What a run is like; made from its seed. */
struct world_opts {
    enum world_mode mode;
    int nworkers;
    int nclients;
    int nunits; /* requests of each client */
    int pool_size;
    int node_limit;
    bool virtual_begin;
    bool rotate;
    int prepared;         /* max_prepared_statements */
    uint32_t kill_one_in; /* a message ends its server process; 0: never */
    uint32_t refuse_one_in;
    uint32_t mail_full_one_in;
    uint32_t cancel_one_in;
    uint32_t vanish_one_in;
    bool may_pin;
    bool outages; /* a server is gone for a while, now and then */
    int nnodes;   /* one, or a primary and its standbys */
    enum world_consistency consistency;
    bool each_statement; /* a node for each, not for each session */
    int stays_home;      /* disable_load_balance_on_write */
    bool unasked;        /* servers say what nobody asked for */
    bool switches;       /* another server becomes the primary, now and then */
    bool reloads;        /* the settings change, now and then */
    bool wide;           /* clients ask for more kinds of things */
    bool wild;           /* clients ask for what nobody would */
};

/* What is known of a row that a client inserted. */
enum tag_state { TAG_UNKNOWN, TAG_ACKED, TAG_NOT };

struct world_tags {
    int n;
    uint8_t state[WORLD_MAX_TAGS];
    uint8_t count[WORLD_MAX_TAGS]; /* how often it is there */
    int64_t at[WORLD_MAX_TAGS];    /* its position in the log */
    int64_t acked;                 /* the highest that anybody was told of */
};

struct world {
    struct world_opts opts;
    struct world_tags tags;
    uint64_t nkilled; /* connections that something was done to */
    uint64_t nreplies;
    uint64_t ncancelled;
    uint64_t nfaults_seen;
    uint64_t nlost; /* clients that lost their connection */
    uint64_t nmails;
    uint64_t nswitches;
    uint64_t nfenced;
    uint64_t nseen;    /* positions that were checked */
    uint64_t nreloads; /* generations of settings that a worker took */
    uint64_t nvain;    /* writes of sessions that a read-only transaction tied to a standby */
};
extern struct world world;

/* ---- sim_server.c: PostgreSQL servers ---- */

void server_start(void);
void server_end(void);
bool server_is_ready(void);
void server_step(void);
/* When something will be done that is waited for; INT64_MAX: nothing. */
int64_t server_next_us(void);
/* Ends one process, or breaks its connection. */
void server_kill_one(void);
/* Nobody can connect to server `i`, and everybody is sent away. */
void server_set_down(int i, bool is_down);
bool server_is_down(int i);
bool server_is_standby(int i);
/* A session of a followed client is tied to what was the primary once: PostgreSQL would
 * have ended it. */
bool server_holds_session(void);
int server_primary(void);
/* How much of the log is seen there. */
int64_t server_position(int i);
/* New transactions there only read. */
void server_fence(int i, bool is_fenced);
/* It becomes the primary, with all that was committed, and the old one a standby; what had begun
 * there ends, with `all` everything. */
void server_promote(int i, bool all);
/* Server processes of clients (not of cancel requests). */
int server_nprocesses(int i);
/* From now on nothing breaks. */
void server_forget_faults(void);

/* ---- sim_monitor.c: what pgpool knows of the servers, a little later ---- */

void monitor_start(void);
bool monitor_is_ready(void);
void monitor_step(void);
int64_t monitor_next_us(void);
/* Somebody, or the monitor itself, makes another server the primary. */
void monitor_switch(void);
void monitor_end(void);

/* ---- sim_client.c: clients that check what they get ---- */

void clients_start(void);
void clients_end(void);
bool clients_are_ready(void);
void clients_step(void);
int64_t clients_next_us(void);
bool clients_are_done(void);
/* Fails the run when one waits for too long. */
void clients_check_patience(void);

/* ---- sim_cancel.c: cancel requests ---- */

void cancels_start(void);
bool cancels_are_ready(void);
void cancels_step(void);
bool cancels_are_done(void);
/* False: too many are on their way. */
bool cancels_send(int pid, uint32_t key);

/* ---- sim_errors.c: an error in place of another ---- */

/* True when both are errors with the same state and text; `alen` is the first one's length word. */
bool errors_are_same(const char *a, uint32_t alen, const char *b);
/* True when the error at hand is no worse an answer than the one that is due, with `tx` before it.
 */
bool errors_are_as_good(char tx, const char *msg, uint32_t len, const char *want);
/* With `tx` before it, in answer to this message: a failed transaction that died with its link has
 * no savepoints. */
bool errors_are_lost_savepoint(char tx, const struct errmsg *m);
/* The unnamed portal of a sequence that ran elsewhere, or of a BEGIN that was answered by pgpool,
 * executed once more by a later one. */
bool errors_are_portal_elsewhere(char tx, char message, const struct errmsg *m);
/* In a failed transaction a statement that the link lacks cannot be brought there, to be described
 * as one without columns. */
bool errors_are_not_described(char tx, char message, const struct errmsg *m);
/* It says that a connection was lost. */
bool errors_are_lost_link(const struct errmsg *m);
/* It says that something went wrong outside. */
bool errors_are_trouble(const struct errmsg *m);
/* Fails the run: `msg` came where `want` is due. */
void errors_say_mismatch(int client, const char *msg, uint32_t len, const char *want);

/* ---- sim_sight.c: how much of the log a client may see ---- */

/* What one session has seen and must see. */
struct sight {
    int64_t written;    /* the last of its own rows that it was told of */
    int64_t others;     /* of anybody's, when its oldest open request was sent */
    int64_t snapshot;   /* in a transaction that has one; -1: not known yet */
    uint32_t tx_number; /* that transaction */
};

void sight_reset(struct sight *s);
/* A request is sent, and nothing else is under way. */
void sight_on_ask(struct sight *s);
/* It was told that a row is there. */
void sight_on_ack(struct sight *s, int tag);
/* True when `got` is the row `want`, in which a position may be masked; false positions fail the
 * run. `model`: before the message. */
bool sight_is_row(
    struct sight *s, const struct pg_session *model, int client, const char *want, const char *got);

/* ---- sim_script.c: what clients ask ---- */

/* What the writer of requests has to know of its client. */
struct script {
    int client;
    int n;   /* requests written */
    char tx; /* as the client believes it will be */
    bool holds_lock;
    bool has_params; /* in its start-up packet */
    bool is_opaque;  /* it called set_config() in a way that cannot be repeated */
    int tags[64];    /* inserted, and not known to be there or not */
    int ntags;
    uint32_t flush_at; /* in the last request: where its first part ends; 0: it has none */
    bool asked_sleep;  /* the last request takes long: it may be cancelled */
    bool is_read;      /* it is one read, and nothing but that */
    bool is_write;     /* it is one row that is written */
};

/* Appends one request (a query, or messages up to Sync) to `out`. */
void script_write(struct script *s, struct buf *out);
/* Appends ROLLBACK, and what unties the session. False: there is nothing to be ended. */
bool script_write_end(struct script *s, struct buf *out);
/* For sim_wild.c. A row that has not been inserted yet; -1: there are too many. */
int script_new_tag(struct script *s);
void script_put_bind(struct buf *out, const char *portal, const char *name, const char *arg);
void script_put_describe(struct buf *out, char what, const char *name);
void script_put_close(struct buf *out, char what, const char *name);
void script_put_execute(struct buf *out, const char *portal);
/* How many messages there are of these types ("": of any). */
uint32_t script_count(const struct buf *msgs, const char *types);

/* ---- sim_wild.c: what no driver would ask ---- */

/* Appends one request, with a Sync behind it or several within. */
void wild_write(struct script *s, struct buf *out);
/* True when nobody knows what is left of the session's state, should the connection be lost with
 * this message. *is_tx is set when that may be a transaction's beginning or end. */
bool wild_is_vague(struct pg_session *model, const char *msg, uint32_t len, bool *is_tx);

/* ---- sim_worker.c: the worker processes ---- */

void workers_start(void);
void workers_end(void);
bool workers_are_ready(void);
void workers_step(void);
int64_t workers_next_us(void);
/* The shared memory, and the mailboxes as slot `slot` sees them. */
struct shm *workers_shm(void);
struct mailboxes *workers_boxes(void);
/* The session that has this server process cannot move; when it has gone, what it sent before may
 * still be run. */
bool workers_is_tied(int pid, bool was_tied);
/* The session that has this server process is tied to it by more than its pool mode. */
bool workers_is_held(int pid);
/* The settings are read again: other ones, which each worker takes when its turn comes. */
void workers_reload(void);
/* Gives a connected client to a worker. */
void workers_add_client(int fd);
/* Nothing is under way and everything counted is true; else the run fails. */
void workers_check_idle(void);

#endif
