/* SPDX-License-Identifier: PostgreSQL
 * conf_param.h: parameters by name: finding, formatting, and values changed for one session (PGPOOL
 * SET). Runs in: every process. */
#ifndef PGP_CONFIG_CONF_PARAM_H
#define PGP_CONFIG_CONF_PARAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"

#include "config/conf_struct.h"

#define CONF_INT_MAX   INT32_MAX
#define CONF_INT64_MAX INT64_MAX

struct conf_gen;

enum conf_type {
    CONF_BOOL,
    CONF_INT,
    CONF_TIME, /* int64_t milliseconds */
    CONF_SIZE, /* int64_t bytes */
    CONF_REAL,
    CONF_STRING,
    CONF_ENUM,
    CONF_FLAGS,
    CONF_LIST
};

/* The unit in which a number without a unit counts; INT also has the base in which it is shown. */
enum conf_unit {
    CONF_UNIT_NONE,
    CONF_UNIT_DECIMAL,
    CONF_UNIT_OCTAL,
    CONF_UNIT_MS,
    CONF_UNIT_S,
    CONF_UNIT_MIN,
    CONF_UNIT_B,
    CONF_UNIT_KB
};

enum conf_context { CONF_CONTEXT_STARTUP, CONF_CONTEXT_RELOAD, CONF_CONTEXT_SESSION };

/* Which list a parameter's number belongs to. */
enum conf_scope { CONF_SCOPE_GLOBAL, CONF_SCOPE_NODE, CONF_SCOPE_WD_NODE, CONF_SCOPE_HEARTBEAT };

enum conf_group {
#define CONF_GROUP(sym, title, text) CONF_GROUP_##sym,
#include "config/conf_group.def"
#undef CONF_GROUP
    CONF_GROUP_COUNT
};

enum conf_feature {
#define CONF_FEATURE(sym, letter, state, switch_name, text) CONF_FEATURE_##sym,
#include "config/conf_feature.def"
#undef CONF_FEATURE
    CONF_FEATURE_COUNT
};

enum conf_param_flag {
    CONF_SECRET = 1,  /* printed as ***** */
    CONF_NO_SHOW = 2, /* left out of lists and of the sample: kept for old files */
    CONF_PATH = 4,    /* a file name; see conf_path */
    CONF_COMMAND = 8, /* a shell command */
    CONF_OURS = 16    /* unknown to pgpool-II */
};

struct conf_enum_value {
    const char *text;
    int value;  /* in struct conf */
    int number; /* in SHOW POOL_STATUS */
    bool hidden;
    enum conf_feature feature;
};

/* One record of the table. */
struct conf_param {
    const char *name;
    enum conf_type type;
    enum conf_unit unit;
    enum conf_scope scope;
    enum conf_context context;
    enum conf_group group;
    enum conf_feature feature;
    unsigned flags;
    size_t offset;         /* in struct conf, conf_node, conf_wd_node or conf_heartbeat */
    size_t session_offset; /* in struct conf_session; only with CONF_CONTEXT_SESSION */
    int64_t def_int;       /* in `unit`; also bool and enum */
    double def_real;
    const char *def_text; /* string, list and flags */
    int64_t min;          /* in `unit` */
    int64_t max;
    double real_min;
    double real_max;
    const struct conf_enum_value *values; /* enum and flags; ends with text NULL */
    char separator;                       /* list and flags */
    const char *brief;
    const char *text;
};

/* A parameter, and which of its values: `index` is the number, or -1 when the name has none. */
struct conf_ref {
    const struct conf_param *param;
    int index;
};

/* All records in the order of the sample. */
const struct conf_param *conf_param_table(int *n);
/* Finds a name as it stands in a file: "port", "backend_port0", or an old name. A list named
 * without number gives index -1 ("backend_port"). Returns 0, or -1 when the name is unknown or its
 * number too large (the error says so). */
int conf_param_find(const char *name, struct conf_ref *ref, struct err *err);
/* Where the value of `ref` was found, as "FILE:LINE" or "command line"; NULL: nowhere, the default
 * holds, or the generation was not read from files. */
const char *conf_where(const struct conf_gen *gen, const struct conf_ref *ref);
/* False when setting the parameter has no effect yet; *why then says which feature is missing. */
bool conf_param_is_built(const struct conf_param *param, const char **why);

/* How a value is written. */
enum conf_style {
    CONF_STYLE_STATUS, /* SHOW POOL_STATUS: numbers bare, enums as numbers, booleans 0 and 1 */
    CONF_STYLE_SHOW,   /* PGPOOL SHOW: with the largest unit that divides it, enums by name, on and
                          off */
    CONF_STYLE_CANONICAL /* for a file, without quotes; secrets in clear */
};

/* A session's own values. Most clients have none: the pointer stays NULL until the first PGPOOL
 * SET. */
struct conf_override;

/* Appends the value of `ref` as this session sees it; `ov` may be NULL. */
void conf_format_value(const struct conf_gen *gen, const struct conf_override *ov,
    const struct conf_ref *ref, enum conf_style style, struct buf *out);

/* Checks that `name` may be set to `value` in `context` (SESSION for PGPOOL SET). Returns 0, or -1
 * with pgpool-II's error texts. */
int conf_set_check(const char *name, const char *value, enum conf_context context, struct err *err);

/* True when work_dir is emptied as the machine starts, and with it what replication_commit =
 * two_phase has decided. */
bool conf_forgets_commits(const struct conf *conf);

/* PGPOOL SET: changes one value of one session; allocates *ov at the first call. Returns 0 or -1.
 */
int conf_override_set(
    struct conf_override **ov, const char *name, const char *value, struct err *err);
/* PGPOOL RESET name; "ALL" (any case) resets all. Returns 0, or -1 for a name that PGPOOL SET would
 * refuse too. */
int conf_override_reset(struct conf_override **ov, const char *name, struct err *err);
/* Frees and clears *ov; *ov may be NULL. */
void conf_override_free(struct conf_override **ov);
/* The values that PGPOOL SET can change, as this session sees them under generation `gen`. `ov` may
 * be NULL. The result lives until the generation ends or the override changes. Cheap enough for
 * every statement. */
const struct conf_session *conf_session_of(const struct conf_gen *gen, struct conf_override *ov);

#endif
