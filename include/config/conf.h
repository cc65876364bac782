/* SPDX-License-Identifier: PostgreSQL
 * conf.h: the settings: loading and checking a file into an immutable, numbered generation.
 * Runs in: every process. Functions get `const struct conf *`, nobody reads a global. A file is
 * checked whole: all its errors are collected with file:line, and one error refuses the generation.
 * The parameters themselves are records in config/params (see params/all.def), and struct conf is
 * made from them. */
#ifndef PGP_CONFIG_CONF_H
#define PGP_CONFIG_CONF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/slice.h"

#include "config/conf_struct.h"

struct arena;
struct conf_gen; /* a generation: its number, struct conf, where each value came from */

/* How bad an issue is. One CONF_ERROR refuses the generation. */
enum conf_severity { CONF_NOTE, CONF_WARNING, CONF_ERROR };

/* One finding. Strings belong to the report. */
struct conf_issue {
    enum conf_severity severity;
    const char *file; /* NULL when it is about the settings as a whole */
    int line;         /* 0 when it is about the file as a whole */
    const char *text; /* primary message */
    const char *hint; /* next step, or NULL */
    int rank;         /* of the file, for sorting */
    int seq;          /* order of finding */
    bool is_kept;     /* a setting that the next start takes from the file, not this reload */
};

#define CONF_MAX_ISSUES 1000

/* All findings of one load, in the order of the files and their lines; those after CONF_MAX_ISSUES
 * are only counted. */
struct conf_report {
    struct arena *arena;
    struct conf_issue *issue;
    int n;
    int cap;
    int nerrors;
    int nwarnings;
    int nleft_out; /* findings after CONF_MAX_ISSUES */
};

/* Makes an empty report, and frees what it holds. */
void conf_report_init(struct conf_report *report);
void conf_report_fini(struct conf_report *report);
/* Adds a finding behind the others; `file` and `hint` may be NULL, `line` 0. */
void conf_report_add(struct conf_report *report, enum conf_severity severity, const char *file,
    int line, const char *hint, const char *fmt, ...) __attribute__((format(printf, 6, 7)));
/* Adds a finding with message, detail and hint of `err`. */
void conf_report_err(struct conf_report *report, enum conf_severity severity, const char *file,
    int line, const struct err *err);
/* Appends "file:line: error: text" and, when there is one, "\n  hint: ..." without a newline at the
 * end. */
void conf_issue_format(const struct conf_issue *issue, struct buf *out);
/* Appends all findings, one per line, and a last line that counts them ("2 errors, 1 warning"). */
void conf_report_format(const struct conf_report *report, struct buf *out);

/* Loads the file at `path` and what it includes. `command_line` is NULL or the text of further
 * settings that win over the file (options of the command line); it is kept and used again at
 * reload. Returns generation number 1, owned by the caller, or NULL when the report has an error.
 */
struct conf_gen *conf_load(const char *path, const char *command_line, struct conf_report *report);
/* Loads a text as conf_load does a file. It may hold NULs (an error); `name` is what the report
 * calls it, and the folder of `name` is where relative names of files begin. */
struct conf_gen *conf_load_text(const char *name, struct slice text, struct conf_report *report);
/* Loads `path` again with the command line of `old`. Parameters that are read only at the start,
 * and host and port of servers that exist, keep their old values, with a warning each. Returns a
 * new generation with the next number, or NULL when the report has an error; `old` stays valid and
 * belongs to the caller as before. */
struct conf_gen *conf_reload(
    const struct conf_gen *old, const char *path, struct conf_report *report);
/* Frees the generation and clears *gp; *gp may be NULL. */
void conf_gen_free(struct conf_gen **gp);

/* The settings; they live as long as the generation. */
const struct conf *conf_of(const struct conf_gen *gen);
/* Number of the generation: 1 for the first, one more at each reload. */
uint64_t conf_number(const struct conf_gen *gen);
/* Absolute name of the file, and its folder. They live as long as the generation. */
const char *conf_file(const struct conf_gen *gen);
const char *conf_base_dir(const struct conf_gen *gen);
/* True when server `i` exists. */
static inline bool conf_has_node(const struct conf *conf, int i)
{
    return i >= 0 && i < conf->nnodes && conf->nodes[i].backend_port != 0;
}

/* What writes runs on every node, and none is a standby of another. */
static inline bool conf_writes_everywhere(const struct conf *conf)
{
    return conf->backend_clustering_mode == CONF_CLUSTER_NATIVE ||
           conf->backend_clustering_mode == CONF_CLUSTER_SNAPSHOT;
}
/* Writes into `out` where the file that a setting calls `name` is: relative names begin at the
 * folder of pgpool.conf. Returns 0, or -1 when it does not fit. */
int conf_path(
    const struct conf_gen *gen, const char *name, char *out, size_t out_size, struct err *err);

/* Appends the whole generation as text: number, file and every setting, in the grammar of the file.
 * conf_load_canonical makes an equal generation from it in another process (secrets are in clear:
 * hand it over in memory only). */
void conf_dump_canonical(const struct conf_gen *gen, struct buf *out);
struct conf_gen *conf_load_canonical(struct slice text, struct conf_report *report);

/* True when every setting of both is equal. */
bool conf_equal(const struct conf_gen *a, const struct conf_gen *b);
/* True when all that pools.conf says is equal. */
bool conf_equal_pools(const struct conf_gen *a, const struct conf_gen *b);
/* Calls `fn` for each setting of pgpool.conf that has another value in `to`, with the value as SHOW
 * writes it (secrets as *****). */
typedef void conf_change_fn(void *ctx, const char *name, const char *value);
void conf_each_change(
    const struct conf_gen *from, const struct conf_gen *to, conf_change_fn *fn, void *ctx);

#endif
