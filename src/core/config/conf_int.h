/* SPDX-License-Identifier: PostgreSQL
 * conf_int.h: what the files of the config module share among themselves.
 * Runs in: every process. */
#ifndef PGP_CONFIG_CONF_INT_H
#define PGP_CONFIG_CONF_INT_H

#include "config/conf.h"
#include "config/conf_param.h"

#define CONF_MAX_INCLUDE   10   /* depth */
#define CONF_MAX_INCLUDES  1000 /* files */
#define CONF_MAX_FILE_SIZE (16 * 1024 * 1024)
#define CONF_NAME_SIZE     96 /* longest name, with its number and NUL */
#define CONF_MAX_GLOBALS   400

enum conf_feature_state {
    CONF_STATE_BUILT,
    CONF_STATE_NOT_BUILT,
    CONF_STATE_REFUSED, /* not built, and asking for it is an error */
    CONF_STATE_NO_EFFECT
};

struct conf_feature_info {
    const char *letter;
    enum conf_feature_state state;
    const char *switch_name; /* parameter that turns it on, or NULL */
    const char *text;
};

struct conf_alias {
    const char *old_name;
    const char *new_name; /* NULL: the name was removed */
    const char *hint;     /* what to do about a removed name */
};

/* A removed name that with this value chose a mode. */
struct conf_refused {
    const char *old_name;
    const char *value;
    const char *hint;
};

struct conf_gen {
    struct arena *arena;
    uint64_t number;
    const char *file;
    const char *base_dir;
    const char *command_line; /* NULL or text of settings */
    struct conf_where *where; /* what was read from a file; NULL: nothing was */
    struct conf conf;
    struct conf_session session;
};

/* A value as it was found: the last one for its parameter wins. */
struct conf_slot {
    const char *value; /* NULL: not set */
    const char *file;
    int line;
};

/* One load in progress. */
struct conf_reading {
    struct conf_gen *gen;
    struct conf_report *report;
    struct conf_slot *slot; /* one per parameter and number */
    int *slot_base;         /* first slot of each record */
    int nincludes;          /* files included so far */
    bool is_canonical;      /* every parameter is set: no notes about what is not built */
    bool is_file;           /* from a file: other files may belong to it */
    const struct conf_refused *old_mode; /* a mode that was chosen by a removed name, or NULL */
    struct conf_slot old_mode_at;
    struct slice pools_text; /* the text of pools.conf, when is_canonical */
};

/* conf_where.c */
/* Keeps with the generation where its values were found. */
void conf_where_note(struct conf_reading *load);

/* conf_table.c */
const struct conf_feature_info *conf_feature_info(enum conf_feature feature);
/* Whether this build has libmemcached (conf_build.c). */
bool conf_build_has_memcached(void);
const char *conf_group_title(enum conf_group group);
const char *conf_group_text(enum conf_group group);
const struct conf_alias *conf_alias_table(int *n);
/* How many values a record of `scope` has. */
int conf_scope_count(enum conf_scope scope);
/* Goes on to the next value that a file may give: all parameters, those with a number once for each
 * number. Begins behind {NULL, -1}; false: there is none. */
bool conf_ref_next(struct conf_ref *ref);
/* True when number `k` of `scope` exists; of those without numbers k does not matter. */
bool conf_exists(const struct conf *conf, enum conf_scope scope, int k);
/* Finds the record called `name` (which has no number) in `scope`; NULL when there is none. */
const struct conf_param *conf_param_named(enum conf_scope scope, const char *name);
/* Position of a record in the table. */
int conf_param_ordinal(const struct conf_param *param);
/* Writes "backend_port0" or "port" into `out` of CONF_NAME_SIZE bytes. */
void conf_ref_name(const struct conf_ref *ref, char *out);
/* The alias for `name`, which may carry a number; NULL when there is none. */
const struct conf_alias *conf_alias_find(const char *name);

/* The row for `name` with `value`, or NULL. */
const struct conf_refused *conf_refused_find(const char *name, const char *value);
/* True when the feature is not there, whatever that means for who asks for it. */
static inline bool conf_feature_is_missing(const struct conf_feature_info *info)
{
    return info->state == CONF_STATE_NOT_BUILT || info->state == CONF_STATE_REFUSED;
}

/* conf_near.c: the known name most like `name`, or NULL; the result is in `out`. */
const char *conf_near_name(const char *name, char *out);

/* conf_value.c */
/* Where `ref` is stored in `conf`. */
void *conf_value_at(struct conf *conf, const struct conf_ref *ref);
const void *conf_value_of(const struct conf *conf, const struct conf_ref *ref);
/* Reads `value` into `at`; strings are copied into `a`. Returns 0, or -1 with message and hint;
 * `name` is used in them. */
int conf_value_parse(struct arena *a, const struct conf_param *param, const char *name,
    const char *value, void *at, struct err *err);
/* Stores the default of `param`. */
void conf_value_default(struct arena *a, const struct conf_param *param, void *at);
/* Stores a copy of `from`. */
void conf_value_copy(struct arena *a, const struct conf_param *param, void *at, const void *from);
bool conf_value_equal(const struct conf_param *param, const void *a, const void *b);
/* True for off, 0 and empty. */
bool conf_value_is_nothing(const struct conf_param *param, const void *at);
/* Bytes of a value of this type. */
size_t conf_value_size(const struct conf_param *param);
/* conf_format.c */
void conf_value_format(
    const struct conf_param *param, const void *at, enum conf_style style, struct buf *out);
/* Appends `value` between quotes, so that the reader of files gives it back. */
void conf_quote(const char *value, struct buf *out);

/* conf_report.c */
/* Puts the findings into the order of the files and their lines. */
void conf_report_sort(struct conf_report *report);

/* conf_read.c: reads `path` and what it includes into the slots. Returns -1 when `path` itself
 * cannot be read (which is in the report). */
int conf_read_file(struct conf_reading *load, const char *path);
void conf_read_text(struct conf_reading *load, const char *name, struct slice text);
/* Reads the whole of a regular file into heap memory (mem_free). */
int conf_read_whole(const char *path, char **text, size_t *n, struct err *err);

/* conf_check.c: the rules that tie parameters to each other, and the notes about what is not built.
 */
void conf_check(struct conf_reading *load);

/* pools_conf.c: pools.conf as part of a generation. */
struct pools_conf *pools_conf_new(struct arena *arena);
void pools_conf_fini(struct pools_conf *pc);
/* Reads `file`; one that need not exist may be missing. Servers keep the numbers they have in
 * `old`, which may be NULL. Findings go to the report. */
void pools_conf_load(
    struct conf_reading *load, const struct conf *old, const char *file, bool must_exist);
bool pools_conf_equal(const struct pools_conf *a, const struct pools_conf *b);
/* For the canonical text: appends pools.conf; cuts it off the end of `text` and returns it; reads
 * what was cut off. */
void pools_conf_dump(const struct pools_conf *pc, struct buf *out);
struct slice pools_conf_split(struct slice *text);
void pools_conf_undump(struct pools_conf *pc, struct slice text, struct conf_report *report);

/* conf_load.c */
/* conf_pattern.c: the lists of patterns and preferences. */
void conf_check_lists(struct conf_reading *load, const struct conf *c);

const struct conf_slot *conf_slot_of(const struct conf_reading *load, const struct conf_ref *ref);

#endif
