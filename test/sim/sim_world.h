/* SPDX-License-Identifier: PostgreSQL
 * sim_world.h: who lives in the simulation: servers, clients, workers; and what is put in their
 * way.
 */
#ifndef PGP_TEST_SIM_WORLD_H
#define PGP_TEST_SIM_WORLD_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"

#include "sim.h"
#include "sim_pg.h"

#define WORLD_PORT        5001
#define WORLD_MAX_WORKERS 3
#define WORLD_MAX_CLIENTS 24
#define WORLD_MAX_TAGS    8192

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
    bool outages; /* the server is gone for a while, now and then */
};

/* What is known of a row that a client inserted. */
enum tag_state { TAG_UNKNOWN, TAG_ACKED, TAG_NOT };

struct world_tags {
    int n;
    uint8_t state[WORLD_MAX_TAGS];
    uint8_t count[WORLD_MAX_TAGS]; /* how often it is there */
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
};
extern struct world world;

/* ---- sim_server.c: one PostgreSQL server ---- */

void server_start(void);
void server_end(void);
bool server_is_ready(void);
void server_step(void);
/* When something will be done that is waited for; INT64_MAX: nothing. */
int64_t server_next_us(void);
/* Ends one process, or breaks its connection. */
void server_kill_one(void);
/* Nobody can connect, and everybody is sent away. */
void server_set_down(bool is_down);
/* Server processes of clients (not of cancel requests). */
int server_nprocesses(void);
/* The process that runs for that key cancels what it does. */
void server_forget_faults(void);

/* ---- sim_client.c: clients that check what they get ---- */

void clients_start(void);
void clients_end(void);
bool clients_are_ready(void);
void clients_step(void);
int64_t clients_next_us(void);
bool clients_are_done(void);
/* Fails the run when one waits for too long. */
void clients_check_patience(void);

/* ---- sim_script.c: what clients ask ---- */

/* What the writer of requests has to know of its client. */
struct script {
    int client;
    int n;   /* requests written */
    char tx; /* as the client believes it will be */
    bool holds_lock;
    bool has_params; /* in its start-up packet */
    int tags[64];    /* inserted, and not known to be there or not */
    int ntags;
    bool asked_sleep; /* the last request takes long: it may be cancelled */
};

/* Appends one request (a query, or messages up to Sync) to `out`. */
void script_write(struct script *s, struct buf *out);
/* The same: ROLLBACK, and what unties the session. False: there is nothing to be ended. */
bool script_write_end(struct script *s, struct buf *out);

/* ---- sim_worker.c: the worker processes ---- */

void workers_start(void);
void workers_end(void);
bool workers_are_ready(void);
void workers_step(void);
int64_t workers_next_us(void);
/* Gives a connected client to a worker. */
void workers_add_client(int fd);
/* Nothing is under way and everything counted is true; else the run fails. */
void workers_check_idle(void);

#endif
