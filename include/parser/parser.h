/* SPDX-License-Identifier: PostgreSQL
 * parser.h: SQL text to facts: what kind of statement, which tables, functions, effects.
 * Runs in: workers and tools. Pure: no descriptor, no clock, no global state. A text is accepted
 * when the grammar of PostgreSQL 15 or of any newer release up to 18 accepts it; what is rejected
 * here is rejected by the server and goes to the primary, which says so itself.
 * There is no syntax tree: facts are collected while the grammar reduces. */
#ifndef PGP_PARSER_PARSER_H
#define PGP_PARSER_PARSER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/slice.h"

struct arena;

enum sql_kind {
    SQL_OTHER, /* recognised, none of the others: VACUUM, DISCARD, two-phase commands, ... */
    SQL_SELECT,
    SQL_VALUES,
    SQL_INSERT,
    SQL_UPDATE,
    SQL_DELETE,
    SQL_MERGE,
    SQL_COPY_TO,
    SQL_COPY_FROM,
    SQL_EXPLAIN,
    SQL_BEGIN,
    SQL_COMMIT,
    SQL_ROLLBACK,
    SQL_SAVEPOINT, /* SAVEPOINT, RELEASE, ROLLBACK TO */
    SQL_SET,
    SQL_RESET,
    SQL_SHOW,
    SQL_PREPARE,
    SQL_EXECUTE,
    SQL_DEALLOCATE,
    SQL_DECLARE,
    SQL_FETCH, /* FETCH, MOVE */
    SQL_CLOSE,
    SQL_LISTEN,
    SQL_NOTIFY,
    SQL_LOCK,
    SQL_TRUNCATE,
    SQL_CALL,
    SQL_DO,
    SQL_DDL,
    SQL_KIND_COUNT
};

/* Finer than the kind, where the router or the session must tell statements apart. */
enum sql_verb {
    SQL_VERB_NONE,
    SQL_VERB_UNLISTEN,
    SQL_VERB_VACUUM,
    SQL_VERB_ANALYZE,
    SQL_VERB_CLUSTER,
    SQL_VERB_REINDEX,
    SQL_VERB_CHECKPOINT,
    SQL_VERB_LOAD,
    SQL_VERB_ALTER_SYSTEM,
    SQL_VERB_DISCARD,
    SQL_VERB_CREATE,
    SQL_VERB_CREATE_AS, /* CREATE TABLE AS, CREATE MATERIALIZED VIEW */
    SQL_VERB_ALTER,
    SQL_VERB_DROP,
    SQL_VERB_GRANT, /* GRANT, REVOKE */
    SQL_VERB_COMMENT,
    SQL_VERB_REFRESH,
    SQL_VERB_CREATE_DATABASE,
    SQL_VERB_DROP_DATABASE,
    SQL_VERB_ALTER_DATABASE, /* with SET or RESET */
    SQL_VERB_ALTER_ROLE,
    SQL_VERB_ALTER_ROLE_SET, /* with SET or RESET */
    SQL_VERB_RENAME_ROLE,
    SQL_VERB_DROP_ROLE
};

/* Flags of a statement. */
#define SQL_F_READ_ONLY    0x000001u /* by syntax; function volatility left aside */
#define SQL_F_LOCKING      0x000002u /* FOR UPDATE / SHARE / ... anywhere */
#define SQL_F_INTO         0x000004u /* SELECT INTO anywhere */
#define SQL_F_DML_IN_CTE   0x000008u
#define SQL_F_TEMP         0x000010u /* creates a temporary object */
#define SQL_F_ANALYZE      0x000020u /* EXPLAIN with ANALYZE */
#define SQL_F_WITH_HOLD    0x000040u /* DECLARE ... WITH HOLD */
#define SQL_F_COPY_STDIO   0x000080u /* COPY FROM STDIN / TO STDOUT: copy messages follow */
#define SQL_F_COPY_PROGRAM 0x000100u
#define SQL_F_COPY_QUERY   0x000200u
#define SQL_F_RETURNING    0x000400u
#define SQL_F_UNLOGGED     0x000800u
#define SQL_F_CONCURRENTLY 0x001000u
#define SQL_F_ALL          0x002000u /* DEALLOCATE ALL, CLOSE ALL, RESET ALL, SHOW ALL, UNLISTEN * */
#define SQL_F_NOWAIT       0x004000u
#define SQL_F_LITERAL_DEPENDS                                                                      \
    0x008000u /* a fact depends on a literal: not cached by fingerprint                            \
               */
#define SQL_F_MOVE          0x010000u
#define SQL_F_SCROLL        0x020000u
#define SQL_F_BINARY        0x040000u
#define SQL_F_WITH_CTE      0x080000u
#define SQL_F_CHAIN         0x100000u /* COMMIT / ROLLBACK AND CHAIN */
#define SQL_F_TABLESAMPLE   0x200000u
#define SQL_F_DEFAULTS      0x400000u  /* INSERT ... DEFAULT VALUES or a DEFAULT in VALUES or SET */
#define SQL_F_INSERT_VALUES 0x800000u  /* INSERT ... VALUES */
#define SQL_F_ALONE         0x1000000u /* needs the last database of `name` to itself */

/* Table-level lock modes of LOCK. */
enum sql_lock_mode {
    SQL_LOCK_NONE,
    SQL_LOCK_ACCESS_SHARE,
    SQL_LOCK_ROW_SHARE,
    SQL_LOCK_ROW_EXCLUSIVE,
    SQL_LOCK_SHARE_UPDATE_EXCLUSIVE,
    SQL_LOCK_SHARE,
    SQL_LOCK_SHARE_ROW_EXCLUSIVE,
    SQL_LOCK_EXCLUSIVE,
    SQL_LOCK_ACCESS_EXCLUSIVE
};

enum sql_tx_op {
    SQL_TX_NONE,
    SQL_TX_BEGIN,
    SQL_TX_COMMIT,
    SQL_TX_ROLLBACK,
    SQL_TX_SAVEPOINT,
    SQL_TX_RELEASE,
    SQL_TX_ROLLBACK_TO,
    SQL_TX_PREPARE,
    SQL_TX_COMMIT_PREPARED,
    SQL_TX_ROLLBACK_PREPARED
};

enum sql_isolation {
    SQL_ISO_UNSET,
    SQL_ISO_READ_UNCOMMITTED,
    SQL_ISO_READ_COMMITTED,
    SQL_ISO_REPEATABLE_READ,
    SQL_ISO_SERIALIZABLE
};

enum sql_choice { SQL_UNSET, SQL_YES, SQL_NO };

/* Transaction effect and options: BEGIN, START, SET TRANSACTION, SET SESSION CHARACTERISTICS. */
struct sql_tx {
    enum sql_tx_op op;
    enum sql_isolation isolation;
    enum sql_choice read_only;
    enum sql_choice deferrable;
    struct slice name; /* savepoint, or the two-phase identifier without its quotes */
};

enum sql_set_scope {
    SQL_SET_NONE,
    SQL_SET_SESSION,
    SQL_SET_LOCAL,
    SQL_SET_TRANSACTION,     /* SET TRANSACTION: see tx; snapshot in value */
    SQL_SET_CHARACTERISTICS, /* SET SESSION CHARACTERISTICS AS TRANSACTION: see tx */
    SQL_SET_CONSTRAINTS
};

enum sql_set_how {
    SQL_SET_VALUE,
    SQL_SET_DEFAULT,      /* SET x TO DEFAULT, RESET x, SET ROLE NONE is a value */
    SQL_SET_FROM_CURRENT, /* SET x FROM CURRENT, in ALTER ... SET and CREATE FUNCTION */
    SQL_SET_RESET_ALL
};

/* SET, RESET, SHOW. `name` is folded; "timezone", "session_authorization", "role",
 * "search_path" (SET SCHEMA), "client_encoding" (SET NAMES), "xmloption" for the special forms.
 * `value` is the text of the value list as written, quotes included. */
struct sql_set {
    enum sql_set_scope scope;
    enum sql_set_how how;
    struct slice name;
    struct slice value;
};

#define SQL_TABLE_TARGET                                                                           \
    0x01u /* written by INSERT, UPDATE, DELETE, MERGE, TRUNCATE, COPY FROM, LOCK */
#define SQL_TABLE_CREATED 0x02u /* named by CREATE TABLE / SELECT INTO / CREATE TABLE AS ... */
#define SQL_TABLE_TEMP    0x04u /* created, and temporary by syntax */
#define SQL_TABLE_DDL     0x08u /* a relation named by another DDL statement */
#define SQL_TABLE_ONLY    0x10u /* ONLY name */

/* A relation as written. Names are folded, unquoted and cut at 63 bytes; absent parts are empty. */
struct sql_table {
    struct slice catalog;
    struct slice schema;
    struct slice name;
    uint32_t offset; /* of the name as written, in the text given to sql_parse */
    uint32_t len;
    uint32_t flags; /* SQL_TABLE_* */
};

#define SQL_FUNC_STAR     0x01u /* f(*) */
#define SQL_FUNC_DISTINCT 0x02u
#define SQL_FUNC_OVER     0x04u /* window call */
#define SQL_FUNC_CALL     0x08u /* the procedure of CALL */
#define SQL_FUNC_TIME     0x10u /* now() and its like, also listed in times */
#define SQL_FUNC_FIELD                                                                             \
    0x20u /* not written as a call: (value).name, which is a field or calls a function of one      \
             argument, and TREAT(value AS name) */

/* A function call written name(...), or what may be one (SQL_FUNC_FIELD). */
struct sql_func {
    struct slice catalog;
    struct slice schema;
    struct slice name;
    uint32_t offset;   /* of the name as written */
    uint32_t len;      /* of the name as written */
    uint32_t call_len; /* up to and with the closing parenthesis of the arguments */
    uint32_t nargs;
    uint32_t flags; /* SQL_FUNC_* */
};

struct sql_span {
    uint32_t offset;
    uint32_t len;
};

enum sql_time_kind {
    SQL_TIME_DATE,           /* CURRENT_DATE */
    SQL_TIME_TIME,           /* CURRENT_TIME [(p)] */
    SQL_TIME_TIMESTAMP,      /* CURRENT_TIMESTAMP [(p)] */
    SQL_TIME_LOCALTIME,      /* LOCALTIME [(p)] */
    SQL_TIME_LOCALTIMESTAMP, /* LOCALTIMESTAMP [(p)] */
    SQL_TIME_NOW,            /* now(), transaction_timestamp() */
    SQL_TIME_STATEMENT,      /* statement_timestamp() */
    SQL_TIME_CLOCK           /* clock_timestamp(), timeofday() */
};

/* A time function, with its precision or argument list, for rewriting. */
struct sql_time {
    enum sql_time_kind kind;
    struct sql_span span;
};

enum sql_literal_kind {
    SQL_LIT_STRING, /* any quoted string, with its prefix */
    SQL_LIT_BIT,
    SQL_LIT_INTEGER,
    SQL_LIT_NUMERIC
};

struct sql_literal {
    enum sql_literal_kind kind;
    struct sql_span span;
};

struct sql_stmt {
    enum sql_kind kind;
    enum sql_kind
        inner; /* what EXPLAIN, PREPARE, DECLARE, COPY (query) and CREATE TABLE AS contain */
    enum sql_verb verb;
    uint32_t flags;  /* SQL_F_* */
    uint32_t offset; /* of the first token */
    uint32_t len;    /* to the end of the last token */
    uint32_t max_param;
    enum sql_lock_mode lock_mode;
    struct sql_span hint; /* the first comment before the first token, len 0 when none */
    const struct sql_table *tables;
    uint32_t ntables;
    const struct sql_func *funcs;
    uint32_t nfuncs;
    const struct sql_time *times;
    uint32_t ntimes;
    const struct sql_literal *literals;
    uint32_t nliterals;
    struct sql_tx tx;
    struct sql_set set;
    /* PREPARE, EXECUTE, DEALLOCATE: the statement's name; DECLARE, FETCH, MOVE, CLOSE: the
     * cursor's; LISTEN, NOTIFY, UNLISTEN: the channel; DISCARD: "all", "plans", ...;
     * DO: the language or nothing; CREATE, DROP and ALTER DATABASE: the database; ALTER, RENAME and
     * DROP ROLE: the roles, with a NUL between them; CREATE TYPE and DOMAIN: the type, when it has
     * no schema or is made in pg_temp (SQL_F_TEMP). */
    struct slice name;
    struct sql_span body; /* PREPARE, EXPLAIN, DECLARE, COPY (query): the inner statement's text */
};

enum sql_status {
    SQL_OK,
    SQL_SYNTAX,   /* PostgreSQL's grammar rejects it too */
    SQL_TOO_DEEP, /* nested deeper than PostgreSQL's own parser stack allows */
    SQL_NO_MEMORY /* the arena's limit was reached */
};

struct sql_facts {
    enum sql_status status;
    uint32_t nstmts; /* 0 unless status is SQL_OK, or when the text is empty */
    const struct sql_stmt *stmts;
    uint32_t error_offset; /* where it was rejected */
    const char *error;     /* a literal saying why, NULL when ok */
    /* For whoever judges statements: kept beside the facts as long as they are, 0 at first. NULL:
     * they are not kept. */
    uint64_t *verdict;
    /* For whoever follows what statements do to their session: kept as `verdict` is. */
    uint32_t *traits;
    uint32_t kept_bytes; /* of what they point at, when they are kept; else 0 */
};

/* Parses `text` (up to 1 GB, any bytes, NUL rejected) and fills `out`. Everything `out` points at
 * lives in `a`, except slices of names, which live in `a` or in `text`: keep both as long as the
 * facts. Returns 0 when the text is accepted, else -1 with out->status saying why. */
int sql_parse(struct arena *a, struct slice text, struct sql_facts *out);

/* What two texts that differ only in literals, comments, white space, case, the length of their
 * lists of literals and semicolons at the end have in common. Never equal to zero for a text with
 * tokens. */
struct sql_fingerprint {
    uint64_t hi;
    uint64_t lo;
};

/* Fingerprints by the scanner alone. Works on texts the grammar rejects, too. Returns 0, or -1 for
 * a text with a broken token (unterminated string, ...) or when `a` is exhausted; `a` holds nothing
 * afterwards. */
int sql_fingerprint(struct arena *a, struct slice text, struct sql_fingerprint *out);

/* The text without values, for people: literals become parameters with numbers behind those that it
 * has, a list of literals behind IN its first one and "...", white space and comments one blank;
 * semicolons at the end are left out.
 * Stops behind `max` bytes. Returns 0, or -1 (and *out is of no use) where sql_fingerprint does. */
struct buf;
int sql_mask(struct arena *a, struct slice text, size_t max, struct buf *out);

/* "select", "copy_to", ... as parse-dump prints them. */
const char *sql_kind_text(enum sql_kind kind);

#endif
