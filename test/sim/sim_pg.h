/* SPDX-License-Identifier: PostgreSQL
 * sim_pg.h: a session of a PostgreSQL server, as far as the protocol shows it: transactions,
 * settings, prepared statements, portals, and a handful of statements. Pure: a message goes in,
 * bytes come out.
 *
 * It is used twice. A simulated server process runs one per connection. And every simulated client
 * runs one beside itself, as if it were alone on a server of its own: what pgpool gives it must be
 * what that one says. */
#ifndef PGP_TEST_SIM_PG_H
#define PGP_TEST_SIM_PG_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/slice.h"

#define PG_MAX_STATEMENTS 64
#define PG_MAX_PORTALS    8
#define PG_MAX_SAVEPOINTS 8
#define PG_MAX_WRITES     32
#define PG_MAX_COLUMNS    6
#define PG_MAX_ARGS       2
#define PG_NAME_BYTES     64 /* names of more are cut off */
#define PG_SQL_BYTES      120
#define PG_VALUE_BYTES    48

enum pg_var {
    PG_APPLICATION_NAME, /* these three are reported */
    PG_TIMEZONE,
    PG_INTERVALSTYLE,
    PG_WORK_MEM,
    PG_SEARCH_PATH,
    PG_MY_OWN,
    PG_ROLE, /* RESET ALL leaves it */
    PG_NVARS
};
#define PG_NSETTINGS PG_ROLE
#define PG_NREPORTED PG_WORK_MEM

struct pg_values {
    char v[PG_NVARS][PG_VALUE_BYTES];
};

struct pg_vars {
    struct pg_values now;
    struct pg_values session; /* what is left of it after COMMIT */
};

struct pg_statement {
    bool used;
    char name[PG_NAME_BYTES];
    char sql[PG_SQL_BYTES];
};

struct pg_portal {
    bool used;
    bool is_done;   /* it was executed */
    bool has_rows;  /* it returns some */
    bool is_failed; /* its subtransaction has */
    int level;      /* so many savepoints are around it */
    int rows_left;
    char name[16];
    char sql[PG_SQL_BYTES];
    int nargs;
    char arg[PG_MAX_ARGS][PG_VALUE_BYTES];
};

struct pg_savepoint {
    char name[16];
    struct pg_vars vars;
    int nwrites;
};

/* Where a session runs. */
struct pg_place {
    bool is_standby;
    bool is_fenced;   /* new transactions only read */
    int64_t position; /* rows of the log that are seen here */
};

/* Called when a row that was inserted is there for good. */
typedef void pg_commit_fn(void *ctx, int tag);

struct pg_session {
    char tx;       /* I, T, E */
    bool skipping; /* up to Sync */
    bool failed;   /* the last message */
    struct pg_values base;
    struct pg_values told;
    struct pg_vars vars;
    struct pg_vars mark;          /* before the transaction that no BEGIN began */
    struct pg_vars tx_vars;       /* before the one that BEGIN began */
    const struct pg_place *place; /* NULL: in a client's head */
    bool tx_read_only;            /* it was begun so */
    bool tx_is_fenced;            /* its server has made it read-only */
    bool tx_one_snapshot;
    uint32_t tx_number;
    int64_t snapshot;   /* what it sees; -1: not taken */
    bool wrote_in_vain; /* asked a standby to write, in a transaction that did not say it reads */
    int nlocks;         /* advisory, of the session */
    bool in_query;      /* a simple one */
    bool in_string;     /* a simple one of several statements */
    bool is_pipeline;   /* something was executed since the last transaction, by the protocol */
    char copying;       /* from the client: 'Q' in a simple query, 'E' in Execute; 0: not */
    int ncopied;
    uint32_t row_limit; /* of the present Execute; 0: none */
    bool is_suspended;  /* the present Execute has reached its limit */
    int rows_left;      /* of its portal; 0: all, or not begun */
    int nsavepoints;
    struct pg_savepoint savepoint[PG_MAX_SAVEPOINTS];
    struct pg_statement statement[PG_MAX_STATEMENTS];
    struct pg_portal portal[PG_MAX_PORTALS];
    int nwrites;
    int write[PG_MAX_WRITES];
    pg_commit_fn *on_commit;
    void *ctx;
};

extern const char *const pg_var_names[PG_NVARS];

/* A fresh session; `params` are those of the start-up packet: name NUL value NUL ... */
void pg_session_init(struct pg_session *s, const char *params, size_t n);
/* Parameters, as at the end of the login. */
void pg_put_parameters(struct pg_session *s, struct buf *out);
/* One message of the client and what the server says to it. */
void pg_message(struct pg_session *s, char type, struct slice body, struct buf *out);
/* An error in place of what a message would do; with `type` Q the end of the query, too. */
void pg_refuse(
    struct pg_session *s, char type, const char *sqlstate, const char *text, struct buf *out);
/* Does to the session what an error does, without a word. */
void pg_fail(struct pg_session *s, bool is_query);

/* NULL: it has none of that name. */
struct pg_statement *pg_find_statement(struct pg_session *s, struct slice name);
struct pg_portal *pg_find_portal(struct pg_session *s, struct slice name);

/* ---- between sim_pg.c and sim_sql.c ---- */

void pg_error(struct pg_session *s, struct buf *out, const char *sqlstate, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));
/* False: the name is taken, or there is no room (an error was said). */
bool pg_add_statement(struct pg_session *s, struct slice name, struct slice sql, struct buf *out);
/* Arguments of a statement. */
struct pg_args {
    int n;
    const char (*arg)[PG_VALUE_BYTES];
};

/* True when an error was said: it must not write. */
bool pg_may_not_write(struct pg_session *s, const char *what, struct buf *out);

/* sim_own.c: what pgpool asks by itself. True when `sql` is that, and was answered or refused
 * (then *ok is false). */
bool pg_run_own(struct pg_session *s, struct slice sql, struct buf *out, bool *ok);
/* A column that stands for the position of the log in a model: the server's is as wide. */
#define PG_POSITION_MASK  "@@@@@@@@@@"
#define PG_POSITION_WIDTH 10
/* The log's position as an LSN. */
int64_t pg_lsn(int64_t position);

/* Runs one statement at *sql and moves it behind; false after an error. `describe`: its rows are
 * preceded by their description. */
bool pg_run(struct pg_session *s, struct slice *sql, const struct pg_args *args, bool describe,
    struct buf *out);
/* Number of columns of its result; 0: none; -1: not understood. */
int pg_columns(struct pg_session *s, struct slice sql);
/* Number of parameters. */
int pg_nargs(struct slice sql);
/* True when it ends a transaction: allowed in a failed one. */
bool pg_ends_transaction(struct slice sql);
bool pg_is_discard(struct slice sql);
bool pg_is_transaction(struct slice sql);
/* True when more than one statement is in it. */
bool pg_is_string(struct slice sql);
bool pg_is_blank(struct slice sql);
void pg_put_columns(struct buf *out, int n);

/* ---- sim_tx.c: transactions; false: an error was said ---- */

bool pg_begin(
    struct pg_session *s, const char *tag, bool read_only, bool one_snapshot, struct buf *out);
bool pg_end(struct pg_session *s, bool commit, bool chain, struct buf *out);
bool pg_savepoint(struct pg_session *s, const char *name, struct buf *out);
/* RELEASE, or with `back` ROLLBACK TO. */
bool pg_to_savepoint(struct pg_session *s, const char *name, bool back, struct buf *out);
/* The end of a transaction that no BEGIN began. */
void pg_end_implicit(struct pg_session *s);
/* What an error does. */
void pg_abort_work(struct pg_session *s);
void pg_drop_portals(struct pg_session *s);
/* The rows of the open transaction are there for good. */
void pg_commit_writes(struct pg_session *s);

#endif
