/* SPDX-License-Identifier: PostgreSQL
 * control_int.h: what the files of the control process share. */
#ifndef PGP_PROCESS_CONTROL_INT_H
#define PGP_PROCESS_CONTROL_INT_H

#include "admin/pcp.h"
#include "admin/sources.h"
#include "auth/hba.h"
#include "auth/scram.h"
#include "base/list.h"
#include "cluster/command.h"
#include "cluster/view.h"
#include "ipc/rows.h"
#include "net/stream.h"

#include "net/accept.h"
#include "process/common/role_loop.h"

#define PCP_PEER_BYTES 64

struct control;

/* The process's root. */
struct control {
    struct role_loop role;
    struct acceptors acceptors;
    struct list conns;
    struct view view;
    struct pcp_tls *tls;           /* NULL: `ssl` is off */
    struct recovery_job *recovery; /* NULL: none runs */
    struct doubt_job *doubt;       /* NULL: nothing is prepared on several servers */
    int64_t told_mode_of;          /* change time of the pcp.conf whose mode was complained of */
};

enum pcp_state {
    PCP_STATE_LOGIN,   /* until the password fits */
    PCP_STATE_DENIED,  /* it did not: the answer waits for the delay */
    PCP_STATE_READY,   /* takes commands */
    PCP_STATE_WAITING, /* a command waits for its effect */
    PCP_STATE_ENDING,  /* closes when all is sent */
    PCP_STATE_CLOSED
};

/* What a command in PCP_STATE_WAITING waits for. */
enum pcp_wait {
    PCP_WAIT_ATTACH,
    PCP_WAIT_DETACH,
    PCP_WAIT_DETACH_IDLE, /* and until no client uses the node */
    PCP_WAIT_PROMOTE,
    PCP_WAIT_SWITCHOVER,
    PCP_WAIT_FAILOVER, /* and begins a recovery then */
    PCP_WAIT_RECOVERY,
    PCP_WAIT_RELOAD,
    PCP_WAIT_PAUSE, /* no server connection is left */
    PCP_WAIT_DRAIN  /* all clients have gone */
};

struct pcp_conn {
    struct stream stream;
    struct list node;
    struct control *ctl;
    struct timer limit;                    /* log-in, idle, delay after a failed log-in, end */
    struct timer poll;                     /* while a command waits */
    void (*on_resume)(struct pcp_conn *c); /* the command is over: the next ones are taken */
    struct buf in;
    enum pcp_state state;
    bool has_begun; /* its first bytes have come */
    bool has_salt;
    unsigned nsalts; /* that it was given, before its login */
    bool has_scram;  /* `scram` is at work */
    bool is_logged_in;
    bool tells_debug; /* asked for notices about what is done */
    bool is_ours;     /* a tool of ours: those say who they are before they are asked */
    uint8_t salt[PCP_SALT_BYTES];
    char user[PCP_USER_BYTES + 1];
    char peer[PCP_PEER_BYTES];
    struct hba_addr addr; /* n == 0: a Unix socket */
    struct scram_server scram;
    /* A command that waits. */
    enum pcp_wait wait;
    char answer; /* type of its answer */
    int wait_node;
    int64_t began_us; /* wall clock */
    int64_t give_up_us;
    uint64_t old_generation;
    bool is_elsewhere; /* the switchover is another pgpool's */
    uint64_t nbegun;   /* switchovers that had begun before, that had ended, that were refused */
    uint64_t nended;
    uint64_t nrefused;
    uint64_t recovery;                    /* its number */
    int recovery_step;                    /* the last one told; -1: none */
    char order_database[ROWS_NAME_BYTES]; /* of PAUSE and DRAIN; empty: all */
    uint64_t order_ticket;                /* of PAUSE, while it is not complete */
    uint32_t told;                        /* phases of a switchover, as bits */
};

/* --- control_ask.c --- */
/* Asks the monitor to do something about a node; `who` and `why` are kept with what is done. False
 * with *err. */
bool control_ask_monitor(struct control *ctl, enum node_order order, int node, const char *who,
    const char *why, struct err *err);

/* --- pcp_server.c --- */
void pcp_server_start(struct control *ctl);
void pcp_server_stop(struct control *ctl);

/* --- pcp_conn.c --- */
/* Takes over accepted, non-blocking `fd`. */
void pcp_conn_open(struct control *ctl, int fd, const char *peer, const struct hba_addr *addr);

/* --- pcp_answer.c --- */
/* Ends a connection at once, and when everything is sent. */
void pcp_conn_close(struct pcp_conn *c);
void pcp_conn_end(struct pcp_conn *c);
/* Sends what `out` holds. */
void pcp_conn_send(struct pcp_conn *c, const struct buf *out);
/* Sends an error; with `fatal` the connection ends. */
void pcp_conn_refuse(struct pcp_conn *c, const struct err *err, bool fatal);

/* --- pcp_tls.c --- */
/* Takes over what the settings say of TLS: at the start and after a reload. */
void pcp_tls_set_conf(struct control *ctl);
/* After the last connection. */
void pcp_tls_fini(struct control *ctl);
/* Could TLS be served as `gen` says? False with *err when it could not. */
bool pcp_tls_check(struct control *ctl, const struct conf_gen *gen, struct err *err);
/* Begins TLS when `bytes`, the first of a connection, are a handshake and TLS is on. */
bool pcp_tls_begin(struct control *ctl, struct stream *s, struct slice bytes);

/* --- pcp_login.c --- */
/* How somebody proves to be a user of pcp.conf. Wipe it after use. */
struct pcp_proof {
    bool is_scram; /* else md5 */
    bool is_mock;  /* there is no such user: nobody passes */
    struct scram_verifier verifier;
};

/* Looks whether pcp.conf is there and kept secret; says in the log what is wrong. */
void pcp_login_look(struct control *ctl);
/* What the file has for `user`. A name that it does not have gets an answer, too, always the same.
 */
int pcp_login_find(
    const struct pcp_conn *c, struct slice user, struct pcp_proof *out, struct err *err);
/* Looks up user and password in pcp.conf: true when `answer` fits the connection's salt. */
bool pcp_login_check(
    const struct pcp_conn *c, struct slice user, struct slice answer, struct err *err);
/* True when too many log-ins from the address have failed. */
bool pcp_login_is_blocked(const struct pcp_conn *c);
/* Counts a failed log-in. */
void pcp_login_count_failure(const struct pcp_conn *c);

/* --- pcp_scram.c --- */
/* Puts the list of mechanisms by which `user` may log in; nothing when that is md5. */
void pcp_scram_offer(struct pcp_conn *c, struct slice user, struct buf *out);
/* One message of the exchange; what is to be sent is sent. 1: proved, 0: not yet, -1: denied. */
int pcp_scram_step(struct pcp_conn *c, struct slice body);

/* --- pcp_command.c --- */
enum pcp_outcome { PCP_DONE, PCP_LATER, PCP_FAILED };
/* Runs a request of a connection that is logged in. PCP_DONE: `out` holds the answer; PCP_LATER: it
 * comes by pcp_wait_start; PCP_FAILED: *err says why not. */
enum pcp_outcome pcp_command_run(
    struct pcp_conn *c, const struct pcp_packet *p, struct buf *out, struct err *err);

/* --- pcp_show.c: requests that ask --- */
void pcp_show_sources(struct control *ctl, struct admin_sources *src);
int pcp_show_node_count(struct pcp_conn *c, struct slice body, struct buf *out, struct err *err);
int pcp_show_node_info(struct pcp_conn *c, struct slice body, struct buf *out, struct err *err);
int pcp_show_health(struct pcp_conn *c, struct slice body, struct buf *out, struct err *err);
int pcp_show_proc_count(struct pcp_conn *c, struct slice body, struct buf *out, struct err *err);
int pcp_show_proc_info(struct pcp_conn *c, struct slice body, struct buf *out, struct err *err);
int pcp_show_status(struct pcp_conn *c, struct slice body, struct buf *out, struct err *err);
/* The recoveries of `node`; of all with -1. */
/* pcp_wd.c: the watchdog cluster. */
int pcp_wd_info(struct pcp_conn *c, struct slice body, struct buf *out, struct err *err);
/* Hands an order for all pgpools to the watchdog; this one obeys it by itself. */
bool pcp_wd_order_all(struct pcp_conn *c, char what, char mode, struct err *err);
/* True when another pgpool leads, and carries out what changes the primary. */
bool pcp_wd_is_elsewhere(const struct pcp_conn *c);
int pcp_show_recoveries(struct pcp_conn *c, int node, struct buf *out, struct err *err);

/* How many clients have a connection to the node; -1 when that cannot be told. */
int pcp_show_users_of(struct control *ctl, int node);

/* --- pcp_order.c --- */
/* Runs PAUSE, RESUME, DRAIN or RECONNECT; as pcp_command_run. */
enum pcp_outcome pcp_order_run(
    struct pcp_conn *c, const struct pcp_packet *p, struct buf *out, struct err *err);
/* How far the PAUSE or DRAIN is that the connection waits for. */
enum orders_progress pcp_order_look(struct pcp_conn *c, struct err *err);
/* True when who waits for one has gone. */
bool pcp_order_is_left(const struct pcp_conn *c);
/* The connection waits no more: a PAUSE that was not complete is taken back. */
void pcp_order_end(struct pcp_conn *c);

/* --- pcp_wait.c --- */
void pcp_wait_init(struct pcp_conn *c);
/* Begins the recovery that `c` asks for; false with *err. */
bool pcp_recovery_begin(struct pcp_conn *c, int node, struct err *err);
/* Waits for the effect of a command, then sends the answer or an error. */
void pcp_wait_start(struct pcp_conn *c, enum pcp_wait wait, int node, char answer);

#endif
