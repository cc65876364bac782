/* SPDX-License-Identifier: PostgreSQL
 * session.h: clients, from accept to goodbye: what processes may see of the session module.
 * Runs in: worker (all of it), supervisor (planning shared memory, giving back a dead worker's
 * share). */
#ifndef PGP_SESSION_SESSION_H
#define PGP_SESSION_SESSION_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "backend/backend.h"
#include "backend/paramset.h"
#include "backend/prep.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/hash.h"
#include "base/list.h"
#include "cluster/view.h"
#include "event/loop.h"
#include "ipc/proc.h"
#include "ipc/rows.h"
#include "ipc/shm.h"

struct conf;
struct conf_gen;

/* How a worker stops. */
enum session_stop {
    SESSION_RUNNING,
    SESSION_STOP_SMART, /* no new clients, wait for those that are here */
    SESSION_STOP_FAST   /* end every session with 57P01 */
};

/* Clients on their way to another worker: sessions_give.c. */
struct session_giving {
    int to;          /* ordinal */
    uint32_t left;   /* so many go; 0: nobody does */
    uint32_t nfresh; /* so many of those who stand in front of `clients` have just become idle */
    int64_t due_us;  /* who becomes idle from then on is looked at */
    int64_t look_us; /* when on_look is due */
    struct task task;
};

/* Pools that are kept without clients: sessions_warm.c. */
struct session_warm {
    struct list pools;
    struct timer timer; /* runs while there may be any */
};

/* Do writes go, or wait (view_must_hold_writes)? */
enum session_hold { WRITES_NOT_KNOWN, WRITES_GO, WRITES_WAIT };

/* Where writes go, as long as the view and the configuration are those. */
struct session_writes {
    uint64_t version; /* of the view */
    int16_t node;     /* sessions_write_node */
    uint8_t hold;     /* enum session_hold */
};

/* One per worker: everything about its clients. */
struct sessions {
    /* What every statement looks at stands together, with the same of `be`. */
    struct loop *loop;
    const struct conf *conf;
    struct rows_header *client_rows;
    struct session_shared *shared;
    struct sql_cache *sql_cache;          /* facts of recent statements */
    uint64_t nfacts;                      /* how often facts were looked for */
    struct arena *scratch;                /* reset per statement */
    const _Atomic uint64_t *view_version; /* of what the monitor has published */
    const _Atomic uint32_t *has_orders;   /* 0: operators want nothing of clients; orders_mark */
    struct session_writes writes;
    const struct client_events *events;
    const struct client_kinds *kinds;
    const struct console_ops *console;     /* what pgpool answers; NULL: nothing */
    const struct native_ops *native;       /* sessions that write to all nodes; NULL: none does */
    struct native_waiters *native_waiters; /* those that wait for each other; NULL: nobody has */
    struct native_decisions *decisions;    /* what those commit in two phases; NULL: nothing yet */
    struct native_functions *native_functions; /* what differs by node, by database */
    struct errand *spare_errands;              /* SPARE_ERRANDS at most */
    unsigned nspare_errands;
    struct stmts *stmts;      /* NULL: statements are not counted apart */
    struct stmts *stmts_kept; /* while they are not: what was counted with before */
    double log_sample; /* log_statement_sample_rate, added up: from 1 on the next one is logged */
    enum session_stop stop;
    uint16_t defaults_serial; /* counts changes of what nobody has SET, as links report it */
    bool logs_statements;     /* as configured: statements or messages are logged */
    struct session_giving giving;
    struct backend be;
    struct proc_env *env;
    const struct conf_gen *gen;
    struct session_tls *tls; /* certificate for clients; NULL: ssl is off */
    struct row_alloc *client_row_alloc;
    struct view view;             /* snapshot of the cluster, taken anew when it changes */
    int64_t suspected_us;         /* wall clock: when a server was last suspected here; 0: never */
    int64_t looked_us;            /* when the monitor was last asked to look again */
    struct hash_table said;       /* texts by client, while statements are logged */
    struct route_rules *rules;    /* of `conf`; NULL: nothing is balanced */
    struct route_cache *answers;  /* of the catalogue */
    struct known *known;          /* what workers know of each other */
    struct login_auth *auth;      /* rules, users, failed logins */
    struct prep_store preps;      /* statements of followed clients */
    struct link_wish *spare_wait; /* kept for the next client that needs one */
    struct link *asker;           /* opened for a question of the one who is unparked now */
    struct greetings *greetings;  /* what servers said at logins */
    struct paramset last_startup; /* of the client that logged in last */
    struct varset *last_base;     /* last_startup as settings; NULL: not known */
    struct list homeless;         /* clients that wait for a primary */
    struct timer homeless_timer;
    struct list queued;      /* followed clients in the queues of pools */
    uint64_t queued_version; /* of the view, as they know it */
    struct list looking;     /* logins whose server was gone */
    struct timer view_timer;
    struct list cancel_searches; /* requests whose client was on its way */
    unsigned ncancel_searches;
    struct timer title_timer; /* runs while there is one client, whom the title names */
    int64_t titled_us;        /* when the title was written */
    struct list clients;
    uint32_t nclients;
    uint64_t served;
    uint64_t wrong_edges;    /* phases of sessions that followed another as they may not: bugs */
    uint16_t wrong_told[16]; /* by phase: the wrong edges from it that the log has, a bit each */
    struct task publish;
    struct task suspect;   /* tells the monitor of the nodes in: */
    uint64_t suspected[2]; /* bit per node that has ended free links in this turn of the loop */
    /* Called when the last client has gone. */
    void (*on_empty)(struct sessions *ss);
    /* Called a few times a second while clients are at work: is anybody to go elsewhere? */
    void (*on_look)(struct sessions *ss);
    /* False when that worker takes no more clients; NULL: nobody goes anywhere. */
    bool (*may_give)(struct sessions *ss, int ordinal);
    struct session_warm warm;
    const struct results_ops *results;     /* the query cache; NULL: there is none */
    struct results_worker *results_worker; /* what that has in this worker */
    uint32_t nrandom;                      /* bytes of `random` that nobody has been given */
    uint8_t random[256];
};

/* A freshly accepted connection. */
struct session_peer {
    int fd;
    uint8_t addr[16];
    uint8_t addr_kind; /* enum row_addr */
    uint16_t port;
};

/* Makes a worker's sessions, and ends them: links are closed, clients are gone by then. */
void sessions_init(struct sessions *ss, struct loop *loop, struct proc_env *env);
void sessions_fini(struct sessions *ss);
/* The cluster has changed (MAIL_CLUSTER_CHANGED): waiters look again, links to nowhere are cut. */
void sessions_on_cluster(struct sessions *ss);
/* 0 when the certificates and keys that `gen` names are usable, for clients and for servers, with a
 * WARNING in *err when clients will not like the certificate; -1 and *err says what is not. Runs
 * ssl_passphrase_command if there is one: not for a process that serves. */
int session_check_tls(const struct conf_gen *gen, struct err *err);
/* Takes over a client. */
void sessions_add(struct sessions *ss, const struct session_peer *peer);
/* New work uses `gen` from now on. */
void sessions_set_conf(struct sessions *ss, const struct conf_gen *gen);
void sessions_stop(struct sessions *ss, enum session_stop how);
/* Another worker got a cancel request for one of our clients; `fd` is taken over. */
void sessions_on_cancel(struct sessions *ss, const void *body, size_t len, int fd);
/* An operator's command (MAIL_ORDER). */
void sessions_on_order(struct sessions *ss, const void *body, size_t len);
/* A role or a database was changed by DDL (MAIL_LINKS_RETIRE). */
void sessions_on_retire(struct sessions *ss, const void *body, size_t len);
/* A client of another worker (MAIL_SESSION). `body` is wiped: there may be a password in it. */
void sessions_on_travel(struct sessions *ss, void *body, size_t len, int fd);
/* From now on `on_look` is called, which may call sessions_give; `may_give` says whether the worker
 * of `ordinal` takes clients. */
void sessions_give_watch(struct sessions *ss, void (*on_look)(struct sessions *ss),
    bool (*may_give)(struct sessions *ss, int ordinal));
/* How many of the clients that can travel should go to the worker of `ordinal`, as they become
 * idle; 0: none. `is_busy`: because this worker has too much to do, not too little. */
void sessions_give(struct sessions *ss, int ordinal, uint32_t nclients, bool is_busy);
/* Clients that have done something since. */
uint32_t sessions_count_active(const struct sessions *ss, int64_t since_us);
/* Has what the client runs cancelled, as a cancel request with its key would. For processes that
 * are no workers. 0, or -1 with *err: 42704 there is no such client, 53000 its worker has no room.
 */
int session_cancel_client(const struct proc_env *env, uint32_t client_id, struct err *err);

#endif
