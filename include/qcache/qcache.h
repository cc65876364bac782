/* SPDX-License-Identifier: PostgreSQL
 * qcache.h: the query cache's judgement: may the result of a statement be kept, on which tables
 * does it depend, and what does a statement write? By the parser's facts, and by answers of the
 * catalogue, which are kept per worker. Runs in: workers. Sends nothing: the session asks. */
#ifndef PGP_QCACHE_QCACHE_H
#define PGP_QCACHE_QCACHE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/hash.h"
#include "base/list.h"
#include "base/slice.h"
#include "cache/cache_gen.h"
#include "cache/cache_store.h"
#include "parser/parser.h"

struct conf;
struct err;

enum qcache_reason {
#define QCACHE_REASON(sym, text) QCACHE_R_##sym,
#include "qcache/qcache_reasons.def"
#undef QCACHE_REASON
    QCACHE_REASON_COUNT
};
/* The words of PGPOOL EXPLAIN for a reason. */
const char *qcache_reason_text(enum qcache_reason r);

/* --- qcache_text.c: what the text says --- */

/* Longer texts are not kept. */
#define QCACHE_TEXT_MAX 16384

/* NONE: the catalogue decides. *is_forced: FORCE QUERY CACHE stands in front of it. */
enum qcache_reason qcache_text_reason(
    const struct sql_facts *facts, struct slice text, bool *is_forced);
/* For a text that is asked about again: `kept`, 0 at first, is what was found. */
enum qcache_reason qcache_text_reason_once(
    uint8_t *kept, const struct sql_facts *facts, struct slice text, bool *is_forced);
/* A text without what may stand behind a statement. */
struct slice qcache_text_bare(struct slice text);
/* True when a parameter's value may stand for the time: 'now', 'today', ... `binds` is what follows
 * the names in a Bind: formats and values. Also true when it cannot be read. */
bool qcache_values_may_be_time(struct slice binds);

/* --- qcache_writes.c: what a statement changes --- */

#define QCACHE_W_TABLES    0x01u /* those that the question marks as written */
#define QCACHE_W_FUNCTIONS 0x02u /* what the functions write that it calls, if one of them does */
#define QCACHE_W_CATALOG   0x04u /* what names mean, and what is known of them */
#define QCACHE_W_DATABASE  0x08u /* anything in its database */
#define QCACHE_W_ALL       0x10u /* anything anywhere: roles, databases */
#define QCACHE_W_COMMITS   0x20u /* the open transaction may be committed by it */
#define QCACHE_W_ENDS      0x40u /* it is rolled back: what follows is not in it any more */
#define QCACHE_W_NAMES     0x80u /* names may lead elsewhere until the transaction is over */
uint32_t qcache_writes(const struct sql_facts *facts, struct slice text);
/* What follows in its transaction is as it would be by itself: the statement takes no lock that
 * others wait for, writes nothing and changes no setting. `j`: the judgement about it, or NULL. */
struct qcache_judgement;
bool qcache_leaves_no_trace(const struct sql_facts *facts, const struct qcache_judgement *j);
/* What one writes that is not looked at. */
#define QCACHE_W_UNREAD (QCACHE_W_TABLES | QCACHE_W_CATALOG | QCACHE_W_DATABASE | QCACHE_W_COMMITS)
/* With what the catalogue says: does it write more than it names, and less than it might? `j` NULL:
 * nothing is known. Without QCACHE_W_FUNCTIONS. */
uint32_t qcache_judged(uint32_t writes, const struct qcache_judgement *j);
/* Whether code may run that leaves settings or temporary tables behind: in a session that is tied
 * nobody knows of them. */
bool qcache_may_run_code(
    const struct sql_facts *facts, uint32_t writes, const struct qcache_judgement *j);
/* Behind one of these in its transaction the catalogue's answer from outside of it may be wrong: a
 * name leads to another table, or the table has a trigger or a cascade more. */
#define QCACHE_W_MOVES (QCACHE_W_NAMES | QCACHE_W_CATALOG)
/* True when the catalogue's answer about statements that write `writes` may be wrong, as one of
 * them or one before them in the transaction writes QCACHE_W_MOVES. *traits, of the transaction,
 * has QCACHE_W_NAMES from then on when they do. */
bool qcache_is_behind(uint32_t *traits, uint32_t writes, uint32_t nstatements);
/* The first of what a transaction writes was judged by `j`, which may be NULL. */
void qcache_note_judged(
    struct cache_deps *judged, uint32_t writes, const struct qcache_judgement *j);
/* The outcome of the transaction is known, `at` that time. The catalogue may have changed since it
 * was judged: a statement that waited for another's lock has met triggers and cascades of which
 * nobody knew; everything in the database counts as written then. */
void qcache_settle_judged(const struct cache_deps *judged, struct cache_gens *gens,
    cache_cell database, struct cache_written at);

/* What texts have in common that differ in values alone; 0: nothing is known of that. */
struct sql_cache;
uint64_t qcache_kind(struct sql_cache *known, struct slice sql);

/* --- qcache_result.c: the answer --- */

/* Of the reply to so many statements the messages that are the result of one of them: [columns]
 * rows tag. p == NULL: they are something else, or those of another statement are, or it has
 * columns where it should have none, or the other way round, or columns of a type whose values
 * change without a write of their table. */
struct slice qcache_result_in(
    struct slice in, unsigned number, unsigned nstatements, bool has_shape);

/* --- qcache_oracle.c: the question --- */

/* More names than this are not asked about. */
#define QCACHE_MAX_NAMES 48

/* Appends what is to be asked about the tables and functions of the statements: bytes that are the
 * same for statements with the same names. Returns -1 when there are too many. */
int qcache_question(const struct sql_facts *facts, struct buf *out);
/* Appends the SELECT that answers it: rows of QCACHE_COLUMNS values, all text. It depends on no
 * setting but search_path, and what does not exist is an answer. */
#define QCACHE_COLUMNS 5
void qcache_question_sql(struct slice question, struct buf *out);

/* --- qcache_rules.c: lists of the settings, compiled --- */

struct qcache_rules;
/* NULL when an item is no regular expression; the error names the setting. `conf` must live as
 * long. */
struct qcache_rules *qcache_rules_new(const struct conf *conf, struct err *err);
void qcache_rules_free(struct qcache_rules **rp);
/* `name` with its schema, schema.name; lists may have either. */
bool qcache_rules_table_is_safe(const struct qcache_rules *r, struct slice name);
bool qcache_rules_table_is_unsafe(const struct qcache_rules *r, struct slice name);
/* Seconds that results of a table are kept; 0: until it changes. */
int64_t qcache_rules_expire_s(const struct qcache_rules *r, struct slice name);
/* A function that is immutable and really so, or stable and depends on settings and arguments
 * alone, or is listed. One that users made is not the server's own of its name. */
bool qcache_rules_function_is_safe(
    const struct qcache_rules *r, struct slice name, bool is_immutable, bool is_of_user);

/* What a session has SET may change results. */
bool qcache_setting_matters(struct slice name);
/* What tells a server apart of which nothing but its address is known, as this machine sees it.
 * False: nothing does. */
bool qcache_put_address(struct buf *key, const char *machine, const char *host, int port);

/* --- qcache_judge.c: what the answer says --- */

/* A table that results depend on, for counters. */
struct qcache_table {
    uint32_t oid;
    uint16_t number; /* of its counters, once it is known; 0: not yet, or it has none */
    uint8_t schema_len;
    uint8_t name_len;
    char text[126]; /* schema, name */
};

/* A column of a table whose values have keys, see cache_value.h. */
struct qcache_column {
    uint32_t type;
    int16_t attnum;
    uint8_t table; /* which of those that the statement names */
    uint8_t name_len;
    char name[64];
};
/* With more of them in one table its rows are not told apart. */
#define QCACHE_COLUMNS_MAX 32

/* A table that a statement names, by its place in it. */
struct qcache_named {
    uint32_t oid;
    bool has_triggers;   /* what is written may not be what the statement says */
    bool is_partitioned; /* its rows are those of its partitions */
    bool has_heirs;      /* it has rows of others, and is no partitioned table */
};
/* With more of them in one statement no rows are told apart. */
#define QCACHE_ROW_TABLES 6

struct qcache_judgement {
    struct hash_node node;
    struct list lru;
    struct cache_deps known; /* it holds as long as these do */
    int64_t until_us;
    uint8_t reason;        /* enum qcache_reason: why results are not kept; NONE: they are */
    uint8_t forced_reason; /* why results are not kept with FORCE QUERY CACHE; NONE: they are */
    bool writes_more;      /* by triggers, rules, defaults: more than is known */
    bool runs_code;        /* calls functions of users that are volatile: they may write */
    bool repeats_reads;    /* transactions are not read committed by default */
    uint16_t nreads;       /* tables that results depend on, by oid, ascending */
    uint16_t nwrites;      /* tables that are written with those that the statement names */
    uint32_t *reads;
    uint32_t *writes;
    int64_t expire_s;            /* the shortest time of the tables; 0: until one changes */
    uint16_t ntables;            /* that are known by name: the first ones */
    struct qcache_table *tables; /* NULL: none */
    uint8_t nnamed;              /* tables, when rows of each can be told apart; else 0 */
    uint16_t ncolumns;           /* all of these that can tell them */
    struct qcache_named named[QCACHE_ROW_TABLES];
    struct qcache_column *columns; /* NULL: none */
    uint32_t key_len;
    char key[]; /* scope and question */
};

/* Numbers of its tables, for the counters of the cache; returns how many. */
uint32_t qcache_number_tables(const struct qcache_judgement *j, struct cache *c,
    struct slice database, uint16_t table[CACHE_ENTRY_TABLES]);

struct qcache_judge;
/* Begins to read the answer to a question (which must live as long). */
struct qcache_judge *qcache_judge_new(struct slice question, const struct qcache_rules *rules);
/* One row; a malformed one makes everything unknown. */
void qcache_judge_row(struct qcache_judge *j, const struct slice value[QCACHE_COLUMNS]);
/* The end: a judgement for the book under `key`, and the judge is freed. */
struct qcache_judgement *qcache_judge_end(struct qcache_judge **jp, struct slice key);
/* Gives up; *jp may be NULL. */
void qcache_judge_free(struct qcache_judge **jp);

/* --- qcache_book.c: judgements of a worker --- */

struct qcache_book;
/* `size` judgements at most, each for `expire_ms` (0: for ever). */
struct qcache_book *qcache_book_new(uint32_t size, int64_t expire_ms);
void qcache_book_free(struct qcache_book **bp);
/* NULL: it has to be asked for. Valid until the next call that changes the book. */
const struct qcache_judgement *qcache_book_find(
    struct qcache_book *b, const struct cache_gens *gens, struct slice key, int64_t now_us);
/* Who asked about which text, by addresses: it is sent in the same step, mostly. */
struct qcache_asked {
    const void *client;
    const void *vars; /* settings */
    const struct sql_facts *facts;
    const char *sql;
};
/* Remembers `j`, which was found for it, until another one is remembered; NULL: nothing is. The
 * caller sees to it that what the addresses lead to is what it was as long as they are the same. */
void qcache_book_note(
    struct qcache_book *b, const struct qcache_asked *asked, const struct qcache_judgement *j);
/* What is remembered for it, and still holds, or NULL. */
const struct qcache_judgement *qcache_book_noted(const struct qcache_book *b,
    const struct qcache_asked *asked, const struct cache_gens *gens, int64_t now_us);
/* Takes the judgement over; what has that key goes. */
void qcache_book_put(struct qcache_book *b, struct qcache_judgement *j, int64_t now_us);
void qcache_book_clear(struct qcache_book *b);

#endif
