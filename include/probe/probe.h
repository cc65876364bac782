/* SPDX-License-Identifier: PostgreSQL
 * probe.h: asking one server, without ever blocking, whether it lives and what it is.
 * Runs in: monitor. One probe object per server; its connection stays open from one probe to the
 * next and is made anew when it is broken. Host names are resolved at every new connection, off the
 * loop. Never decides anything: an answer says what was seen, also when that is a refusal. */
#ifndef PGP_PROBE_PROBE_H
#define PGP_PROBE_PROBE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "event/loop.h"

#define PROBE_NAME_BYTES  64
#define PROBE_ADDR_BYTES  48
#define PROBE_STATE_BYTES 16
#define PROBE_MSG_BYTES   256
#define PROBE_MAX_SENDERS 128
#define PROBE_MAX_ORDERS  4
#define PROBE_VALUE_BYTES 1024
#define PROBE_PATH_BYTES  4096

/* What came back, from nothing to everything. */
enum probe_answer {
    PROBE_FAILED,  /* no server answers there, or not in time */
    PROBE_UNSURE,  /* we could not even ask: its name does not resolve just now */
    PROBE_BUSY,    /* it says that it cannot take connections now (57P03): starting, stopping */
    PROBE_ALIVE,   /* it answers, but refuses to tell: authentication, too many connections */
    PROBE_COMPLETE /* it told everything */
};

/* One row of pg_stat_replication: a receiver fed by this server. */
struct probe_sender {
    char name[PROBE_NAME_BYTES]; /* application_name */
    char addr[PROBE_ADDR_BYTES]; /* client_addr, empty for a Unix socket */
    char state[PROBE_STATE_BYTES];
    char sync_state[PROBE_STATE_BYTES];
    uint64_t replayed_lsn;
    int64_t replay_lag_us; /* -1: not told */
};

/* What a server tells of itself. */
struct probe_facts {
    bool in_recovery;
    bool is_receiving; /* a WAL receiver runs; its state is "streaming" as far as we may see */
    uint32_t server_version;
    uint32_t timeline;     /* the newest it writes or has received; 0: not told */
    uint64_t system_id;    /* 0: not told */
    int max_connections;   /* all of them */
    int reserved;          /* of these, for superusers and reserved roles */
    uint64_t received_lsn; /* of a primary: its insert position */
    uint64_t replayed_lsn; /* of a primary: its insert position */
    int64_t replay_age_us; /* since the last replayed transaction was committed; -1: not told */
    int64_t silence_us;    /* since its WAL receiver heard anything from its server; -1: not told */
    int64_t silence_limit_us;             /* wal_receiver_timeout; 0: none */
    int64_t loaded_us;                    /* when it read its configuration, by its own clock */
    char receiver_name[PROBE_NAME_BYTES]; /* application_name of its WAL receiver, if known */
    int nsenders;
    struct probe_sender sender[PROBE_MAX_SENDERS];
};

struct probe_report {
    enum probe_answer answer;
    bool was_late;                 /* it was waited for in vain: nobody refused */
    bool was_asked;                /* it got as far as that a statement was sent */
    int ndone;                     /* statements of an order that succeeded */
    char sqlstate[6];              /* of the refusal, empty when there is none */
    char message[PROBE_MSG_BYTES]; /* why there are no facts, one line */
    int64_t began_us;              /* clock_mono_us, before anything was asked */
    int64_t took_us;
    struct probe_facts facts; /* with PROBE_COMPLETE, of a probe */
    /* First column of the first row of each statement of probe_start_order, empty when null. */
    char value[PROBE_MAX_ORDERS][PROBE_VALUE_BYTES];
};

/* Whom to ask and how. */
struct probe_target {
    const char *host; /* a name starting with / is the folder of a socket; empty: /tmp */
    int port;
    const char *user;
    const char *password; /* empty: none of ours */
    const char *database;
    const char *sslmode;     /* libpq's words; what they mean is the links' affair */
    const char *sslrootcert; /* empty: none */
    const char *sslcrl;
    const char *sslcert;
    const char *sslkey;
    const char *ssl_min;        /* oldest version of TLS in libpq's words; empty: as libpq has it */
    int64_t connect_timeout_ms; /* for opening the connection, 0: none */
    int64_t timeout_ms;         /* for the whole probe, 0: none */
    bool keep_open;             /* keep the connection after an answer */
    char room[PROBE_PATH_BYTES]; /* for the name of a file that no setting names */
};

struct probe;

/* Told the result of a probe_start, later and not from within it. May call any function here. */
typedef void probe_done_fn(struct probe *p, const struct probe_report *report);
/* Told that the connection broke while nothing was asked. May start a probe. */
typedef void probe_lost_fn(struct probe *p);

/* Removes the environment variables that libpq would read: what a probe does follows from
 * pgpool.conf alone. Call once, before the first probe. */
void probe_forget_environment(void);
/* Makes a probe; owned by the caller. `owner` is kept for probe_owner. */
struct probe *probe_new(struct loop *lp, probe_done_fn *done, probe_lost_fn *lost, void *owner);
void *probe_owner(const struct probe *p);
/* A copy with strings of its own, and its end; *t is all zero afterwards. */
void probe_target_copy(struct probe_target *to, const struct probe_target *from);
void probe_target_free(struct probe_target *t);

/* Sets whom to ask, which is copied; closes a connection to somebody else. Ends a running probe
 * without a report. */
void probe_set_target(struct probe *p, const struct probe_target *target);
/* Asks. Does nothing when a probe runs. */
void probe_start(struct probe *p);
/* Asks on a new connection: a server that is stopping lets who is there go on, and nobody in. Does
 * nothing when a probe runs. */
void probe_start_anew(struct probe *p);
/* Has up to PROBE_MAX_ORDERS statements carried out instead, one after the other, each a
 * transaction of its own; they are copied. PROBE_COMPLETE means that all succeeded. Does nothing
 * when a probe runs. Not for an object whose connection is kept open. */
void probe_start_orders(struct probe *p, const char *const sql[], int n);
bool probe_is_running(const struct probe *p);
/* Takes apart what a standby connects to its primary with, and puts it together again for another
 * host and port. 0, or -1 when it is not understood. *same tells that it went there already. */
int probe_conninfo_move(
    const char *conninfo, const char *host, int port, bool *same, char *out, size_t room);
/* Finds the SQLSTATE in libpq's text for a refused connection (verbose: "FATAL:  28P01: ...");
 * true and out filled, or false when no server spoke. */
bool probe_class_find_sqlstate(const char *message, char out[6]);
/* Appends `text` as a literal of SQL, with its quotes. */
void probe_put_literal(struct buf *out, const char *text);
/* Ends what runs, closes the connection, clears *pp; memory goes once the loop let go of it. */
void probe_free(struct probe **pp);

#endif
