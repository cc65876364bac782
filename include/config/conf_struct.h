/* SPDX-License-Identifier: PostgreSQL
 * conf_struct.h: struct conf and its parts, made by the preprocessor from config/params (see
 * params/all.def). Runs in: every process. A field is called like its parameter. Times are kept in
 * milliseconds whatever unit the file uses, and are called <name>_ms; sizes in bytes, <name>_bytes.
 * Strings are never NULL. */
#ifndef PGP_CONFIG_CONF_STRUCT_H
#define PGP_CONFIG_CONF_STRUCT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/log.h"

#define CONF_MAX_NODES      128
#define CONF_MAX_WD_NODES   128
#define CONF_MAX_HEARTBEATS 256

#define CONF_ENUM_BEGIN(tag)                                                                       \
    enum conf_##tag                                                                                \
    {
#define CONF_ENUM_VALUE(sym, text, number, feature) sym = number,
#define CONF_ENUM_ALIAS(sym, text)
#define CONF_ENUM_END(tag)                                                                         \
    }                                                                                              \
    ;
#include "config/conf_enum.def"
#undef CONF_ENUM_BEGIN
#undef CONF_ENUM_VALUE
#undef CONF_ENUM_ALIAS
#undef CONF_ENUM_END

/* backend_require_auth: of a method its negation, and all bits of one kind. */
#define CONF_REQUIRE_NOT     128
#define CONF_REQUIRE_NAMED   0x7E
#define CONF_REQUIRE_NEGATED 0x3F00

/* A list parameter: the text as given, and its items without the blanks around them. */
struct conf_list {
    int n;
    const char **item;
    const char *text;
};

#define P_BOOL(name, def, ctx, group, feature, flags, brief, text)         bool name;
#define P_INT(name, base, def, lo, hi, ctx, group, feature, flags, b, t)   int name;
#define P_TIME(name, unit, def, lo, hi, ctx, group, feature, flags, b, t)  int64_t name##_ms;
#define P_SIZE(name, unit, def, lo, hi, ctx, group, feature, flags, b, t)  int64_t name##_bytes;
#define P_REAL(name, def, lo, hi, ctx, group, feature, flags, brief, text) double name;
#define P_STRING(name, def, ctx, group, feature, flags, brief, text)       const char *name;
#define P_ENUM(name, tag, def, ctx, group, feature, flags, brief, text)    enum conf_##tag name;
#define P_LEVEL(name, def, ctx, group, feature, flags, brief, text)        enum log_level name;
#define P_FLAGS(name, tag, sep, def, ctx, group, feature, flags, brief, t) unsigned name;
#define P_LIST(name, sep, def, ctx, group, feature, flags, brief, text)    struct conf_list name;

/* What may differ from server to server. A server exists when backend_port is not 0. Parameters
 * that also exist without a number (health_check_*) hold their final value here: the server's own,
 * or else the common one. */
struct conf_node {
#include "config/params/backend_each.def"
#include "config/params/health_each.def"
};

/* One pgpool of the watchdog; it exists when wd_port is not 0. */
struct conf_wd_node {
#include "config/params/watchdog_each.def"
};

/* One heartbeat address; it exists when heartbeat_port is not 0. */
struct conf_heartbeat {
#include "config/params/heartbeat_each.def"
};

struct pools_conf;

struct conf {
#include "config/params/scalars.def"
    int nnodes;               /* highest used number + 1; numbers below may be unused */
    int nwd_nodes;            /* highest used number of a pgpool + 1 */
    int nheartbeats;          /* highest used number of a heartbeat + 1 */
    struct pools_conf *pools; /* pools.conf, see pools_conf.h */
    struct conf_node nodes[CONF_MAX_NODES];
    struct conf_wd_node wd_nodes[CONF_MAX_WD_NODES];
    struct conf_heartbeat heartbeats[CONF_MAX_HEARTBEATS];
};

#undef P_BOOL
#undef P_INT
#undef P_TIME
#undef P_SIZE
#undef P_REAL
#undef P_STRING
#undef P_ENUM
#undef P_LEVEL
#undef P_FLAGS
#undef P_LIST

/* The parameters that PGPOOL SET may change for one session; all others are not in here. */
#define CONF_IN_STARTUP(decl)
#define CONF_IN_RELOAD(decl)
#define CONF_IN_SESSION(decl)                                            decl;
#define P_BOOL(name, def, ctx, group, feature, flags, brief, text)       CONF_IN_##ctx(bool name)
#define P_INT(name, base, def, lo, hi, ctx, group, feature, flags, b, t) CONF_IN_##ctx(int name)
#define P_TIME(name, unit, def, lo, hi, ctx, group, feature, flags, b, t)                          \
    CONF_IN_##ctx(int64_t name##_ms)
#define P_SIZE(name, unit, def, lo, hi, ctx, group, feature, flags, b, t)                          \
    CONF_IN_##ctx(int64_t name##_bytes)
#define P_REAL(name, def, lo, hi, ctx, group, feature, flags, brief, text)                         \
    CONF_IN_##ctx(double name)
#define P_STRING(name, def, ctx, group, feature, flags, brief, text) CONF_IN_##ctx(const char *name)
#define P_ENUM(name, tag, def, ctx, group, feature, flags, brief, text)                            \
    CONF_IN_##ctx(enum conf_##tag name)
#define P_LEVEL(name, def, ctx, group, feature, flags, brief, text)                                \
    CONF_IN_##ctx(enum log_level name)
#define P_FLAGS(name, tag, sep, def, ctx, group, feature, flags, brief, t)                         \
    CONF_IN_##ctx(unsigned name)
#define P_LIST(name, sep, def, ctx, group, feature, flags, brief, text)                            \
    CONF_IN_##ctx(struct conf_list name)

struct conf_session {
#include "config/params/scalars.def"
};

#undef P_BOOL
#undef P_INT
#undef P_TIME
#undef P_SIZE
#undef P_REAL
#undef P_STRING
#undef P_ENUM
#undef P_LEVEL
#undef P_FLAGS
#undef P_LIST
#undef CONF_IN_STARTUP
#undef CONF_IN_RELOAD
#undef CONF_IN_SESSION

#endif
