/* SPDX-License-Identifier: PostgreSQL
 * web_int.h: what the files of the web process share. Runs in: web. Everything here happens on the
 * one loop of the process: a request is read whole, answered from shared memory at once, and sent.
 */
#ifndef PGP_PROCESS_WEB_INT_H
#define PGP_PROCESS_WEB_INT_H

#include <stdbool.h>
#include <sys/socket.h>

#include "admin/sources.h"
#include "base/buf.h"
#include "cluster/view.h"
#include "config/conf.h"
#include "ipc/rows.h"
#include "net/accept.h"
#include "process/common/cert_dates.h"
#include "process/common/role_loop.h"

#define WEB_BODY_MAX_BYTES 65536 /* of a request */
#define WEB_TROUBLES_MAX   32
#define WEB_SENTENCE_BYTES 512
#define WEB_CAUSE_BYTES    120 /* of what the system said about a server: the beginning */
#define WEB_TYPE_TEXT      "text/plain; charset=utf-8"

struct web;
struct web_http;
struct web_login;
struct web_ring;
struct web_tls;
struct web_waits;
struct web_who;

/* Answers a request. */
struct web_request;
struct web_answer;
typedef void web_route_fn(struct web_request *r, struct web_answer *a);

struct web {
    struct role_loop role;
    struct acceptors acceptors;
    struct web_http *http; /* NULL: the certificate cannot be used */
    struct web_tls *tls;   /* NULL: http_ssl is off */
    struct cert_dates certs;
    struct web_login *login;
    web_route_fn *route; /* web_http.c knows none of those who answer */
    struct web_ring *ring;
    struct web_waits *waits; /* orders whose end is to be told */
    struct view view;
};

/* --- web_http.c: libmicrohttpd; no other file knows it --- */

/* One request. The strings live until it is answered. */
struct web_request {
    struct web *web;
    const char *method; /* GET for HEAD, too */
    const char *path;
    struct slice body;
    const struct sockaddr *from;
    const struct web_who *who; /* who asks, since it is known that he may */
    bool is_known;             /* a user of pcp.conf asks */
    void *handle;              /* web_http.c's own */
};

/* An answer, to be filled in; zeroed it is 200 without a body. */
struct web_answer {
    unsigned status;
    const char *type; /* of the body */
    struct buf body;
    const char *header_name; /* one more header; NULL: none */
    char header_value[256];
};

/* A header of the request; NULL when it has none of that name. */
const char *web_request_header(const struct web_request *r, const char *name);
/* An argument behind the ? of the address, decoded; NULL when there is none of that name. */
const char *web_request_argument(const struct web_request *r, const char *name);
/* Starts answering; with `tls` only HTTPS. NULL with *err when the library refuses. */
struct web_http *web_http_open(struct web *w, const struct web_tls *tls, struct err *err);
/* Closes all connections. *hp may be NULL. */
void web_http_close(struct web_http **hp);
/* Serves a connection that was accepted; owns `fd`, also when it fails. */
void web_http_take(struct web_http *h, int fd, const struct sockaddr *from, socklen_t len);

/* --- web_tls.c --- */

/* Certificate and key as they stand in their files, each with a NUL at its end. */
struct web_tls {
    char *cert;
    char *key;
    char *passphrase; /* NULL: none */
};

/* Reads the files that ssl_cert and ssl_key name. NULL with *err. */
struct web_tls *web_tls_read(const struct conf_gen *gen, struct err *err);
bool web_tls_is_same(const struct web_tls *a, const struct web_tls *b);
/* Wipes and frees; *tp may be NULL. */
void web_tls_free(struct web_tls **tp);

/* --- web_route.c --- */

/* Answers a request: finds who does, and refuses who may not ask. */
web_route_fn web_route;
/* --- web_answer.c --- */

/* Where answers of SHOW come from. Takes a new snapshot of the cluster view. */
void web_sources(struct web *w, struct admin_sources *src);
/* Sets a plain text answer. */
void web_answer_text(struct web_answer *a, unsigned status, const char *text);

typedef void web_page_fn(const struct web_request *r, struct web_answer *a);

/* --- web_health.c --- */

enum web_level { WEB_GOOD, WEB_NOTE, WEB_WARNING, WEB_ALARM };

enum web_trouble_kind {
#define WEB_TROUBLE(SYM, code, level, may_log_in, en, ja) WEB_TROUBLE_##SYM,
#include "web_troubles.def"
#undef WEB_TROUBLE
    WEB_TROUBLE_COUNT
};

/* What one sentence says is wrong. */
struct web_trouble {
    enum web_trouble_kind kind;
    char en[WEB_SENTENCE_BYTES];
    char ja[WEB_SENTENCE_BYTES];
};

/* What is to be known beside the cluster view. */
struct web_facts {
    bool is_stopping;
    unsigned orders;               /* enum order_flag, for all databases */
    char ordered[ROWS_NAME_BYTES]; /* a database that is paused or drained; "" none */
    int nworkers;                  /* that take clients */
    int nclients;
    int nwaiting;
    int64_t now_s;
    struct cert_date cert; /* that expires first; without a setting there is none */
    char cause[CONF_MAX_NODES][WEB_CAUSE_BYTES]; /* why a server was called down; "" not known */
};

/* Fills both from shared memory. */
void web_health_look(struct web *w, struct web_facts *f);
/* What is wrong, the worst first: 1 to WEB_TROUBLES_MAX entries, NONE alone when all is well. Pure.
 */
int web_health_judge(const struct web_facts *f, const struct view *v, const struct conf *conf,
    struct web_trouble out[WEB_TROUBLES_MAX]);
const char *web_trouble_code(enum web_trouble_kind kind);
enum web_level web_trouble_level(enum web_trouble_kind kind);
bool web_trouble_may_log_in(enum web_trouble_kind kind);
/* Number of nodes that may be used. */
int web_health_usable(const struct view *v);
/* True when writes go somewhere now. */
bool web_health_can_write(const struct view *v);

/* --- web_leader.c --- */

struct admin_result;

enum web_lead {
    WEB_LEAD_ALONE,  /* there is no watchdog */
    WEB_LEAD_OURS,   /* this pgpool leads, with a majority */
    WEB_LEAD_OTHERS, /* another one does, or nobody */
    WEB_LEAD_UNKNOWN
};

/* Who leads, by SHOW POOL_WATCHDOG. */
enum web_lead web_leader_look(struct web *w);
/* Who leads, from rows of SHOW POOL_WATCHDOG: columns local, status and quorum. Pure. */
enum web_lead web_leader_judge(const struct admin_result *res);

/* --- web_probes.c --- */

web_page_fn web_probe_live;
web_page_fn web_probe_ready;
web_page_fn web_probe_primary;
web_page_fn web_probe_replica;
web_page_fn web_probe_leader;

#endif
