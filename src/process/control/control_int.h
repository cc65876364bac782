/* SPDX-License-Identifier: PostgreSQL
 * control_int.h: what the files of the control process share. */
#ifndef PGP_PROCESS_CONTROL_INT_H
#define PGP_PROCESS_CONTROL_INT_H

#include "admin/pcp.h"
#include "admin/sources.h"
#include "base/list.h"
#include "cluster/command.h"
#include "cluster/view.h"
#include "net/stream.h"

#include "process/common/role_loop.h"

#define PCP_PEER_BYTES 64

struct control;

struct pcp_listener {
    struct io io;
    struct control *ctl;
    int fd;
    bool is_unix;
};

/* The process's root. */
struct control {
    struct role_loop role;
    struct pcp_listener listeners[PROC_MAX_LISTEN];
    int nlisteners;
    struct timer retry; /* accepting again after an error */
    struct list conns;
    int nconns;
    int nstrangers; /* those that have not logged in */
    struct view view;
    struct pcp_tls *tls;           /* NULL: `ssl` is off */
    struct recovery_job *recovery; /* NULL: none runs */
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
    PCP_WAIT_RECOVERY,
    PCP_WAIT_RELOAD
};

struct pcp_conn {
    struct stream stream;
    struct list node;
    struct control *ctl;
    struct timer limit; /* log-in, idle, delay after a failed log-in, end */
    struct timer poll;  /* while a command waits */
    struct buf in;
    enum pcp_state state;
    bool has_begun; /* its first bytes have come */
    bool has_salt;
    bool is_logged_in;
    bool tells_debug; /* asked for notices about what is done */
    uint8_t salt[PCP_SALT_BYTES];
    char user[PCP_USER_BYTES + 1];
    char peer[PCP_PEER_BYTES];
    /* A command that waits. */
    enum pcp_wait wait;
    char answer; /* type of its answer */
    int wait_node;
    int64_t began_us; /* wall clock */
    int64_t give_up_us;
    uint64_t old_generation;
    uint64_t nended; /* switchovers that had ended before, and that had been refused */
    uint64_t nrefused;
    uint64_t recovery; /* its number */
    int recovery_step; /* the last one told; -1: none */
};

/* --- control.c --- */
/* Asks the monitor to do something about a node; `who` is told to the log. False with *err. */
bool control_ask_monitor(
    struct control *ctl, enum node_order order, int node, const char *who, struct err *err);

/* --- pcp_server.c --- */
void pcp_server_start(struct control *ctl);
void pcp_server_stop(struct control *ctl);

/* --- pcp_conn.c --- */
/* Takes over accepted, non-blocking `fd`. */
void pcp_conn_open(struct control *ctl, int fd, const char *peer);
/* Ends a connection at once. */
void pcp_conn_close(struct pcp_conn *c);
/* Sends what `out` holds. */
void pcp_conn_send(struct pcp_conn *c, const struct buf *out);
/* Sends an error; with `fatal` the connection ends. */
void pcp_conn_refuse(struct pcp_conn *c, const struct err *err, bool fatal);
/* A command that waited is over: takes the next ones. */
void pcp_conn_resume(struct pcp_conn *c);

/* --- pcp_tls.c --- */
/* Takes over what the settings say of TLS: at the start and after a reload. */
void pcp_tls_set_conf(struct control *ctl);
/* After the last connection. */
void pcp_tls_fini(struct control *ctl);
/* Begins TLS when `bytes`, the first of a connection, are a handshake and TLS is on. */
bool pcp_tls_begin(struct control *ctl, struct stream *s, struct slice bytes);

/* --- pcp_login.c --- */
/* Looks up user and password in pcp.conf: true when `answer` fits the connection's salt. */
bool pcp_login_check(
    const struct pcp_conn *c, struct slice user, struct slice answer, struct err *err);

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

/* How many clients have a connection to the node; -1 when that cannot be told. */
int pcp_show_users_of(struct control *ctl, int node);

/* --- pcp_wait.c --- */
void pcp_wait_init(struct pcp_conn *c);
/* Waits for the effect of a command, then sends the answer or an error. */
void pcp_wait_start(struct pcp_conn *c, enum pcp_wait wait, int node, char answer);

#endif
