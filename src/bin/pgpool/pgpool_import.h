/* SPDX-License-Identifier: PostgreSQL
 * pgpool_import.h: pgpool --import-pgbouncer: what its parts share.
 * Runs in: the command line. */
#ifndef PGP_BIN_PGPOOL_IMPORT_H
#define PGP_BIN_PGPOOL_IMPORT_H

#include <stdbool.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"

/* One line of the file that is read, or of one that it includes. */
struct imp_item {
    struct imp_item *next;
    const char *file;
    int line;
    const char *section;
    const char *key;
    const char *value;
    bool is_left; /* a database that pgpool cannot reach: nobody is to get into another of its name
                   */
};

/* One key=value of a line about a database or a user. */
struct imp_pair {
    struct imp_pair *next;
    const char *key;
    const char *value;
};

/* A setting that is written for each server when it is known which there are. */
struct imp_server_tls {
    const char *mode;
    const char *ca;
    const char *cert;
    const char *key;
    const char *ciphers;
};

/* Strings belong to the arena, whose memory is hidden: there are passwords among them. */
struct imp {
    struct arena *arena;
    struct imp_item *first;
    struct imp_item **end;
    const char *folder; /* of the file that is read */
    struct buf conf;
    struct buf pools;
    struct buf hba;
    struct buf ident;
    struct buf passwd;
    struct buf users; /* of the users' file, as pool_hba.conf has them */
    struct buf said;  /* what is printed */
    struct imp_server_tls tls;
    const char *socket_dir; /* where PgBouncer looks for a server without host */
    bool client_tls_required;
};

/* Reads `path`, and what it includes, into the list of items. */
int imp_read(struct imp *imp, const char *path, struct err *err);
/* Reads a whole file into *out, which the caller frees. */
int imp_slurp(const char *path, struct buf *out, struct err *err);
/* Splits `key=value key='value' ...`; returns -1 when that is not what stands there. */
int imp_split(struct imp *imp, const char *text, struct imp_pair **out);
/* The last line of [section] with that key, or NULL. */
const struct imp_item *imp_find(const struct imp *imp, const char *section, const char *key);
/* True when a later line of the section has the same key and so replaces this one. */
bool imp_is_replaced(const struct imp_item *item);
/* `path` as an absolute one; a relative one counts from the folder of the file that is read. */
const char *imp_path(struct imp *imp, const char *path);

/* Notes what was taken over as what, and what was not and why. `key` NULL: that of the item. */
void imp_took(struct imp *imp, const struct imp_item *item, const char *key, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));
void imp_left(struct imp *imp, const struct imp_item *item, const char *key, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));
/* Puts a line `name = 'value'` into a file of settings. Returns -1, and puts nothing, when no line
 * can hold it. */
int imp_put_text(struct buf *out, const char *name, const char *value);
/* The value with a unit for seconds, or NULL when it is no time. */
const char *imp_time(struct imp *imp, const char *value);
bool imp_is_number(const char *value);
/* One of the three that there are. */
bool imp_is_pool_mode(const char *value);
bool imp_is_on(const char *value);

/* [pgbouncer] but for what says who may come in. */
void imp_settings(struct imp *imp);
/* [databases], [users], [peers]; -1 when no server is named. */
int imp_databases(struct imp *imp, struct err *err);
/* How clients prove who they are: pool_hba.conf, pg_ident.conf and pool_passwd. */
int imp_auth(struct imp *imp, struct err *err);
/* True for the settings that imp_auth looks at. */
bool imp_is_about_auth(const char *key);

/* The command: reads `file`, writes into `folder`. Returns the program's exit status. */
int pgpool_import(const char *file, const char *folder);

#endif
