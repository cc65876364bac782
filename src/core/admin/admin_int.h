/* SPDX-License-Identifier: PostgreSQL
 * admin_int.h: what the files of the admin module share: tokens, and the builder of rows. */
#ifndef PGP_ADMIN_ADMIN_INT_H
#define PGP_ADMIN_ADMIN_INT_H

#include "admin/admin.h"
#include "base/arena.h"
#include "base/histogram.h"
#include "ipc/proc.h"
#include "ipc/rows.h"

#define ADMIN_HIDDEN_STATEMENT "<insufficient privilege>"
#define ADMIN_RESULT_MAX_BYTES (64 << 20)

/* --- where no server stands behind: admin_alone.c --- */

/* True for the kinds that admin_recognise_alone has besides. */
bool admin_is_alone(enum admin_kind kind);
/* As admin_run and admin_encode_describe, for these kinds; an answer without columns and without a
 * tag is that to an empty statement. */
int admin_alone_run(const struct admin_cmd *cmd, struct admin_result *res, struct err *err);
int admin_alone_describe(const struct admin_cmd *cmd, struct buf *out, struct err *err);
/* PgBouncer's reports: admin_bouncer.c. `name` in lower case; the columns end with NULL, and *n is
 * how many they are. admin_bouncer_run answers ADMIN_KIND_BOUNCER, as admin_run. */
bool admin_bouncer_has(const char *name);
const char *const *admin_bouncer_columns(const char *name, unsigned *n);
int admin_bouncer_run(const struct admin_cmd *cmd, const struct admin_sources *src,
    struct admin_result *res, struct err *err);
/* admin_recognise.c: an order without the word PGPOOL in front. */
bool admin_recognise_order(struct slice sql, struct admin_cmd *cmd);

/* --- tokens of a statement --- */

enum admin_token_kind {
    ADMIN_TOKEN_END,
    ADMIN_TOKEN_WORD,    /* identifier or keyword */
    ADMIN_TOKEN_QUOTED,  /* "identifier" */
    ADMIN_TOKEN_STRING,  /* 'text' */
    ADMIN_TOKEN_ESCAPED, /* E'text' */
    ADMIN_TOKEN_NUMBER,
    ADMIN_TOKEN_SYMBOL, /* one character */
    ADMIN_TOKEN_BAD     /* a literal or comment without its end */
};

struct admin_token {
    enum admin_token_kind kind;
    struct slice raw; /* as written */
};

/* Skips blanks and comments and takes the next token from *rest. */
struct admin_token admin_lex(struct slice *rest);
/* True for the unquoted word `word` (lower case) in any case. */
bool admin_token_is_word(const struct admin_token *t, const char *word);
bool admin_token_is_symbol(const struct admin_token *t, char symbol);
/* Writes the name a WORD or QUOTED token stands for, folded, with its NUL. Returns its length, or
 * -1 when it is not a name, empty or too long. */
int admin_token_name(const struct admin_token *t, char *out, size_t size);
/* The text a literal, number or word stands for, in the arena; NULL when the arena is full. */
char *admin_token_text(const struct admin_token *t, struct arena *a);

/* --- rows --- */

/* Builds rows of `res`. Out of memory is remembered, and all later calls do nothing. */
struct admin_rows {
    struct admin_result *res;
    struct admin_row **tail;
    struct admin_row *row; /* being filled */
    unsigned col;
    bool full;
};

void admin_rows_init(struct admin_rows *rows, struct admin_result *res);
/* Begins a row; the one before must have all its cells. */
void admin_row_begin(struct admin_rows *rows);
/* Put the next cell. */
void admin_put(struct admin_rows *rows, struct slice text);       /* copied */
void admin_put_static(struct admin_rows *rows, const char *text); /* not copied */
void admin_put_str(struct admin_rows *rows, const char *text);    /* copied */
void admin_put_int(struct admin_rows *rows, int64_t v);
void admin_put_uint(struct admin_rows *rows, uint64_t v);
void admin_put_real(struct admin_rows *rows, double v);      /* %f */
void admin_put_time(struct admin_rows *rows, int64_t at_us); /* local time; empty for 0 */
/* The last row is complete. */
void admin_rows_end(struct admin_rows *rows);

/* --- rows of shared memory --- */

/* Walks the used rows of a region, worker by worker. */
struct admin_walk {
    const struct rows_header *rows;
    uint32_t worker;
    uint32_t stop; /* the first worker that is not walked */
    uint32_t i;    /* in the worker's range */
};

void admin_walk_start(
    struct admin_walk *w, const struct admin_sources *src, enum shm_region region);
/* Clients of one worker. */
void admin_walk_start_worker(
    struct admin_walk *w, const struct admin_sources *src, uint32_t ordinal);
/* Copies the next row that is not free; false, or -1 instead of the row's index, at the end.
 * `words` may be NULL. */
bool admin_walk_client(struct admin_walk *w, struct client_row *out, struct row_words *words);
int64_t admin_walk_link(struct admin_walk *w, struct link_row *out, struct row_words *words);
/* The process row of a worker; zeros when there is none. */
void admin_worker_proc(const struct admin_sources *src, uint32_t ordinal, struct proc_row *out);

/* --- the query cache --- */

struct cache_totals;
/* Zeros when there is none. */
void admin_cache_get(const struct admin_sources *src, struct cache_totals *out);

/* --- cells that several reports have --- */

struct slice admin_field_text(const char *p, size_t size);
void admin_put_optional_int(struct admin_rows *out, bool is_there, int64_t v);
/* Four cells: what 50, 90, 99 and 99.9 % do not exceed. */
void admin_put_quantiles(struct admin_rows *out, const struct histogram_sum *h);
/* Reasons of pins, separated by ", ". */
void admin_put_pins(struct admin_rows *out, unsigned pins);
/* By enum conf_pool_mode, and by `tls_version` of a row; empty for what a torn row may hold. */
const char *admin_pool_mode_text(unsigned mode);
const char *admin_tls_version_text(unsigned version);
/* `tls_kernel` of a row. */
void admin_put_kernel(struct admin_rows *out, unsigned kernel);
/* The statement of a row, if who asks may see it. */
void admin_put_statement(
    const struct admin_sources *src, const struct row_words *words, struct admin_rows *out);

/* --- reports --- */

typedef void admin_rows_fn(const struct admin_sources *src, struct admin_rows *out);

#define REPORT_BEGIN(SYM, sym, name, privilege, text) admin_rows_fn admin_rows_##sym;
#define COLUMN(name, text)
#define REPORT_END
#include "admin/reports.def"
#undef REPORT_BEGIN
#undef COLUMN
#undef REPORT_END

/* Facts of SHOW POOL_STATUS that are not settings (a conf_fact_fn; ctx is the sources). */
enum conf_fact;
void admin_fact(void *ctx, enum conf_fact fact, int node, struct buf *out);
/* A conf_row_fn whose ctx is a struct admin_rows. */
void admin_setting_row(void *ctx, const char *item, const char *value, const char *description);
/* The share of node `id` in the balanced reads, 0..1. */
double admin_weight_share(const struct admin_sources *src, int id);
/* What is known about node `id`. */
void admin_node_get(const struct admin_sources *src, int id, struct admin_node *out);
const char *admin_node_status_text(enum admin_node_status status);
/* True when the statement of a client called `user` in `database` may be shown to who asks. */
bool admin_sees_statement(
    const struct admin_sources *src, struct slice user, struct slice database);

#endif
