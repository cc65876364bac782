/* SPDX-License-Identifier: PostgreSQL
 * hba.h: pool_hba.conf: who may connect from where to what, and how it has to be proved. The
 * grammar is that of pg_hba.conf of PostgreSQL 16; files of pgpool-II are a part of it. Runs in:
 * workers (matching), supervisor (checking). A loaded file is immutable. A file with one error is
 * refused whole, and every error is reported with its line. What cannot be known from the file
 * (membership of roles, names of hosts) is asked through an oracle that may say "ask": the caller
 * finds out and matches again. An answer that cannot be had refuses the client: a line that is
 * skipped by mistake may be the one that rejects. */
#ifndef PGP_AUTH_HBA_H
#define PGP_AUTH_HBA_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/slice.h"

struct sockaddr;
struct hba;

/* What this build can do: a method or a line type that it cannot is an error in the file. */
#define HBA_WITH_TLS  1U
#define HBA_WITH_PAM  2U
#define HBA_WITH_LDAP 4U
/* Refuse @file and include lines (for texts that did not come from a file of the administrator). */
#define HBA_NO_FILES 8U

enum hba_method {
    HBA_REJECT,
    HBA_TRUST,
    HBA_PASSWORD,
    HBA_MD5,
    HBA_SCRAM,
    HBA_CERT,
    HBA_PAM,
    HBA_LDAP,
    HBA_PEER
};

enum hba_conn {
    HBA_CONN_LOCAL,
    HBA_CONN_HOST,
    HBA_CONN_HOSTSSL,
    HBA_CONN_HOSTNOSSL,
    HBA_CONN_HOSTGSSENC,
    HBA_CONN_HOSTNOGSSENC
};

enum hba_clientcert {
    HBA_CERT_OFF,
    HBA_CERT_VERIFY_CA,  /* a certificate of a known authority is needed too */
    HBA_CERT_VERIFY_FULL /* and its name is the user's (or maps to it) */
};

struct hba_ldap {
    const char *server; /* one or more names, blank separated */
    const char *scheme; /* "ldap" or "ldaps" */
    const char *prefix; /* simple bind: prefix, user, suffix */
    const char *suffix;
    const char *base_dn; /* search and bind; NULL: simple bind */
    const char *bind_dn;
    const char *bind_password; /* never shown */
    const char *search_attribute;
    const char *search_filter;
    int port;
    int scope; /* of the search, as LDAP numbers it: 0 base, 1 one, 2 sub */
    bool start_tls;
    bool use_password_for_server; /* backend_use_passwd of pgpool-II */
};

/* The part of a line that its user acts upon. Strings live as long as the file. */
struct hba_rule {
    const char *file;
    unsigned line;
    enum hba_conn conn;
    enum hba_method method;
    enum hba_clientcert clientcert;
    bool clientname_is_dn;   /* compare the distinguished name, not the common name */
    const char *map;         /* of pg_ident.conf, or NULL */
    const char *pam_service; /* NULL: the default */
    bool pam_use_hostname;
    struct hba_ldap ldap;
};

/* An IP address: 4 or 16 bytes; 0 bytes: none (a Unix socket). */
struct hba_addr {
    uint8_t n;
    uint8_t bytes[16];
};

enum hba_answer { HBA_NO, HBA_YES, HBA_ASK, HBA_FAIL };

/* A NULL function answers HBA_FAIL. */
struct hba_oracle {
    void *ctx;
    /* Is `user` a direct or indirect member of `role`? Superusers count only when really members.
     */
    enum hba_answer (*in_role)(void *ctx, struct slice user, struct slice role);
    /* Does `addr` belong to host `name`, found by its reverse name and checked forwards? A name
     * that begins with a dot is a suffix. "Not found" is HBA_NO, as in PostgreSQL. */
    enum hba_answer (*has_host)(void *ctx, const struct hba_addr *addr, const char *name);
    /* Is `addr` one of this machine's addresses, or (net) in one of its networks? */
    enum hba_answer (*is_same)(void *ctx, const struct hba_addr *addr, bool net);
};

struct hba_query {
    struct hba_addr addr; /* n == 0: a Unix socket */
    bool tls;
    bool replication; /* a physical replication connection */
    struct slice user;
    struct slice database;
    const char *host; /* for messages: name or address of the client, NULL for "[local]" */
};

enum hba_verdict {
    HBA_MATCHED, /* *rule is the line */
    HBA_NOBODY,  /* no line matched: refuse with *err */
    HBA_PENDING, /* the oracle has to find something out; match again afterwards */
    HBA_REFUSED  /* the oracle could not find out: refuse with *err */
};

/* Is told every error of a file. */
typedef void hba_report_fn(const char *file, unsigned line, const char *text, void *ctx);

/* Reads the file and what it includes; NULL when anything is wrong (told to `report`, may be
 * NULL). */
struct hba *hba_load(const char *path, unsigned flags, hba_report_fn *report, void *ctx);
/* Reads a text called `name` as hba_load does a file. */
struct hba *hba_parse(
    const char *name, struct slice text, unsigned flags, hba_report_fn *report, void *ctx);
void hba_free(struct hba **hp);
/* Number of lines that can match. */
unsigned hba_count(const struct hba *h);
/* Finds the first line that fits the query. */
enum hba_verdict hba_match(const struct hba *h, const struct hba_query *q,
    const struct hba_oracle *oracle, const struct hba_rule **rule, struct err *err);

/* Takes the address out of a socket address; IPv4 in IPv6 becomes IPv4. Anything else gives n == 0.
 */
struct hba_addr hba_addr_of(const struct sockaddr *sa);
/* An oracle's is_same that asks the system for its interfaces; `ctx` is not used. */
enum hba_answer hba_ask_interfaces(void *ctx, const struct hba_addr *addr, bool net);
/* "scram-sha-256" and so on. */
const char *hba_method_text(enum hba_method method);

#endif
