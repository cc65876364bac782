/* SPDX-License-Identifier: PostgreSQL
 * admin.h: the questions of administrators (SHOW POOL_*, PGPOOL SHOW, SET, RESET) and their
 * answers. Runs in: worker (SQL is the first skin); PCP and HTTP are further skins on the same
 * functions. Recognition is pure; a run reads settings and shared memory and never waits. */
#ifndef PGP_ADMIN_ADMIN_H
#define PGP_ADMIN_ADMIN_H

#include <stdbool.h>
#include <stdint.h>

#include "admin/sources.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/slice.h"

struct arena;

#define ADMIN_NAME_BYTES 128
#define ADMIN_TEXT_OID   25 /* type of all columns: text, but for PgBouncer's reports */

enum admin_report {
#define REPORT_BEGIN(SYM, sym, name, privilege, text) ADMIN_REPORT_##SYM,
#define COLUMN(name, text)
#define REPORT_END
#include "admin/reports.def"
#undef REPORT_BEGIN
#undef COLUMN
#undef REPORT_END
    ADMIN_REPORT_COUNT
};

enum admin_kind {
    ADMIN_KIND_NONE,   /* not for us */
    ADMIN_KIND_BAD,    /* begins with PGPOOL, but cannot be understood: admin_run says why */
    ADMIN_KIND_REPORT, /* SHOW POOL_... */
    /* SHOW, SET and RESET pool_mode: the session's own */
    ADMIN_KIND_MODE_SHOW,
    ADMIN_KIND_MODE_SET,
    ADMIN_KIND_MODE_RESET,
    /* Where no server stands behind: admin_recognise_alone. */
    ADMIN_KIND_EMPTY,
    ADMIN_KIND_BEGIN,
    ADMIN_KIND_COMMIT,
    ADMIN_KIND_ROLLBACK,
    ADMIN_KIND_SET_NOTHING,
    ADMIN_KIND_IGNORED,   /* `name` is its tag */
    ADMIN_KIND_PARAMETER, /* answered with the one value `value` under `name` */
    ADMIN_KIND_BOUNCER,   /* a report of PgBouncer: `name` */
    ADMIN_KIND_FOREIGN,   /* nothing for us: admin_run says what is */
#define ADMIN_COMMAND(SYM, sym, words, arguments, privilege, tag) ADMIN_KIND_##SYM,
#include "admin/commands.def"
#undef ADMIN_COMMAND
    ADMIN_KIND_COUNT
};

/* What was asked. The slices are views into the statement: valid as long as that. */
struct admin_cmd {
    enum admin_kind kind;
    enum admin_report report;    /* KIND_REPORT */
    char name[ADMIN_NAME_BYTES]; /* folded: of a setting, "all"; of a database, "" for all */
    struct slice value;          /* the value or number as written, with its quotes */
    bool is_default;             /* the value is the word DEFAULT */
    struct slice bad_at;         /* KIND_BAD: where; empty at the end of the statement */
};

/* Recognises a statement that pgpool answers itself. Returns false, quickly, for all others; then
 * cmd->kind is ADMIN_KIND_NONE. Blanks and comments around it and one or more ';' behind it are
 * skipped; with another statement behind it a SHOW is not recognised, and a PGPOOL command is
 * ADMIN_KIND_BAD. Names fold as identifiers do: SHOW "pool_nodes" is recognised, SHOW "POOL_NODES"
 * is not. Pure. */
bool admin_recognise(struct slice sql, struct admin_cmd *cmd);
/* Recognises a statement where no server stands behind: everything is ours, what drivers send by
 * themselves is answered, and orders stand without PGPOOL, too. Pure. */
void admin_recognise_alone(struct slice sql, struct admin_cmd *cmd);

/* What a session without a server knows of settings. */
struct admin_parameter {
    const char *name;
    const char *value;
    bool is_reported; /* at the login */
};
/* All of them; constants. */
const struct admin_parameter *admin_alone_parameters(unsigned *n);

/* Who may use a report or command. */
enum admin_privilege { ADMIN_MAY_ANYONE, ADMIN_MAY_OPERATOR };

/* One report, for skins and documents. */
struct admin_report_info {
    const char *name;
    const char *text;
    enum admin_privilege privilege;
    const char *const *columns;
    const char *const *column_texts;
    unsigned ncolumns;
};
const struct admin_report_info *admin_report_info(enum admin_report report);

/* One row: as many cells as there are columns, all text, never NULL. */
struct admin_row {
    struct admin_row *next;
    struct slice cell[];
};

struct admin_notice {
    struct admin_notice *next;
    const char *severity;
    const char *sqlstate;
    const char *msg;
};

/* An answer. A zeroed struct is an empty one. */
struct admin_result {
    struct arena *arena;        /* holds all of it */
    const char *const *columns; /* NULL: an answer without rows */
    unsigned ncolumns;
    const char *types; /* a letter for each column: text, int4, q int8, numeric; NULL: all text */
    struct admin_row *rows;
    uint32_t nrows;
    const char *tag; /* of an answer without rows */
    struct admin_notice *notices;
    bool is_waiting; /* no answer yet: run the same command again, a little later */
};

/* Answers `cmd`. Returns 0 and fills *res, which the caller gives back with admin_result_fini; or
 * -1 and *err: 42601 syntax, 42704 unknown setting, 22023 bad value, 42501 not allowed, 0A000 not
 * possible for this skin, 53200 the answer is too long. Nothing to give back then. Callers check
 * the state of the transaction before (errmsg_refuse_aborted). */
int admin_run(const struct admin_cmd *cmd, const struct admin_sources *src,
    struct admin_result *res, struct err *err);
/* Runs a report by its number, without SQL. As admin_run. */
int admin_run_report(enum admin_report report, const struct admin_sources *src,
    struct admin_result *res, struct err *err);
/* Frees the answer; may be called twice. */
void admin_result_fini(struct admin_result *res);

/* Simple protocol: NoticeResponse*, then RowDescription DataRow* CommandComplete "SELECT n", or
 * CommandComplete alone. The caller adds ReadyForQuery. Columns have their types here alone: by the
 * extended protocol a client may ask for binary, which of text is the same bytes. */
void admin_encode(const struct admin_result *res, struct buf *out);

/* Extended protocol, Describe: RowDescription, or NoData for a command without rows. Needs no run.
 * Returns 0, or -1 and *err with nothing written. */
int admin_encode_describe(const struct admin_cmd *cmd, struct buf *out, struct err *err);

/* Where a portal stands in its answer. Starts as {res->rows}. */
struct admin_cursor {
    const struct admin_row *next;
    bool told; /* notices are sent */
};

/* Extended protocol, Execute: notices at the first call, then up to `max_rows` rows (0: all), then
 * PortalSuspended, or CommandComplete with the number of rows of this call. As in PostgreSQL a
 * portal is suspended when max_rows were sent, even if no row is left. */
void admin_encode_execute(
    const struct admin_result *res, struct admin_cursor *cur, uint32_t max_rows, struct buf *out);

#endif
