/* SPDX-License-Identifier: PostgreSQL
 * pcp_tool.h: what the files of the program pcp share. One program has the names of all tools. */
#ifndef PGP_BIN_PCP_TOOL_H
#define PGP_BIN_PCP_TOOL_H

#include <stdbool.h>
#include <sys/types.h>

#include "admin/pcp.h"
#include "crypto/secret.h"

#define PCP_TOOL_TEXT_BYTES 256

/* What a tool's one argument is. */
enum tool_arg { ARG_NONE, ARG_NODE, ARG_PROCESS, ARG_WATCHDOG, ARG_DATABASE };

/* When the terminal is asked for the password. */
enum tool_asks { TOOL_ASKS_WITHOUT_FILE, TOOL_ASKS_ALWAYS, TOOL_ASKS_NEVER };

/* What pcp_recovery_node does. */
enum tool_recovery {
    TOOL_RECOVERY_BEGINS,
    TOOL_RECOVERY_SHOWS,  /* what is known of recoveries */
    TOOL_RECOVERY_FOLLOWS /* the last one, to its end */
};

#define TOOL_NO_ID (-1)

struct tool_options {
    const char *host;
    int port;
    const char *user;
    enum tool_asks asks;
    bool debug;
    bool verbose;
    bool json;
    bool all;
    bool gracefully;
    bool switchover;
    enum tool_recovery recovery;
    const char *database; /* of an order; NULL: all */
    const char *why;      /* the reason of an order, for SHOW POOL_EVENTS; NULL: none is given */
    int refused_status;   /* when the server answers an error: 1, or 0 as pgpool-II's tools */
    int id;               /* TOOL_NO_ID: none is given */
    char mode;            /* s f i */
    char scope;           /* l c */
    int timeout_s;
    bool tls;
    const char *tls_ca; /* NULL: the certificate is not checked */
    bool needs_scram;   /* log in by SCRAM or not at all */
};

/* All packets of one answer. */
struct tool_answer {
    struct buf bytes; /* bodies, one behind the other */
    uint32_t *end;    /* of each body in `bytes` */
    int nbodies;      /* the first may be a size, the last says that it is complete */
    int cap;
};

struct tool;
typedef bool tool_print_fn(
    const struct tool *t, const struct tool_options *o, const struct tool_answer *a);
/* Appends the body of the request. */
typedef void tool_put_fn(const struct tool *t, const struct tool_options *o, struct buf *out);

struct tool {
    const char *name; /* without "pcp_" */
    enum pcp_type request;
    enum pcp_type variant; /* in its place: gracefully, or for the whole watchdog cluster */
    tool_put_fn *put;
    enum tool_arg arg;
    bool needs_arg;
    const char *letters; /* of the options that only some tools have */
    tool_print_fn *print;
    const char *summary;
};

/* --- pcp_tools.c --- */
/* The tool of that name, with or without "pcp_"; NULL when there is none. */
const struct tool *tool_find(const char *name);
/* All of them, ended by one without a name. */
const struct tool *tool_list(void);
/* Appends the body of what the options ask for; returns the type of the request. */
char tool_put_request(const struct tool *t, const struct tool_options *o, struct buf *out);

/* --- pcp_opts.c --- */
/* Reads the command line. 0: go on; else exit with *status. */
int tool_opts_parse(
    const struct tool *t, int argc, char **argv, struct tool_options *o, int *status);

/* --- pcp_pass.c --- */
/* Gets the password from the password file or the terminal; false after saying why not. */
bool tool_pass_get(const struct tool_options *o, struct secret *out);

/* --- pcp_link.c --- */
struct tool_link {
    int fd;
    bool debug;
    bool tells; /* notices go to standard error: they say how far the server is */
    int64_t give_up_us;
    void *tls;   /* NULL: in clear */
    short wants; /* what poll has to wait for after EAGAIN */
    struct buf in;
};
/* Connects and logs in; false after saying why not. */
bool tool_link_open(struct tool_link *l, const struct tool_options *o, struct slice password);
/* Waits for `events` of poll; false when time is up. */
bool tool_link_wait(struct tool_link *l, short events);
/* Sends one request. */
bool tool_link_send(struct tool_link *l, char type, const struct buf *body);
/* Collects the answer to a request. 1: it is whole; 0: the server answered an error, which was
 * printed; -1: the connection failed, which was said. */
int tool_link_answer(struct tool_link *l, char type, struct tool_answer *a);
void tool_link_close(struct tool_link *l);
/* The body `i`. */
struct slice tool_answer_body(const struct tool_answer *a, int i);
void tool_answer_free(struct tool_answer *a);

/* --- tool_login.c --- */
/* Proves who we are, as the server wants it; false after saying why not. */
bool tool_login(struct tool_link *l, const struct tool_options *o, struct slice password);

/* --- tool_tls.c --- */
/* Makes the connection a TLS one; false after saying why not. */
bool tool_tls_start(struct tool_link *l, const char *host, const char *ca_file);
/* As recv and send; after EAGAIN l->wants says what to wait for. */
ssize_t tool_tls_recv(struct tool_link *l, char *p, size_t n);
ssize_t tool_tls_send(struct tool_link *l, const char *p, size_t n);
/* Appends the certificate (DER) that the server showed; nothing without TLS. */
void tool_tls_server_cert(const struct tool_link *l, struct buf *der);
void tool_tls_end(struct tool_link *l);

/* --- pcp_print.c, pcp_json.c --- */
tool_print_fn tool_print_complete, tool_print_count, tool_print_node, tool_print_health,
    tool_print_pids, tool_print_processes, tool_print_settings, tool_print_watchdog,
    tool_print_recoveries;
/* Prints a text as a JSON string. */
void tool_json_text(struct slice text);
/* Prints {"key": "text", ...}; a plain number is printed as one, unless the
 * key is one of a text. */
void tool_json_object(const char *const *keys, const struct slice *values, int n);

#endif
