/* SPDX-License-Identifier: PostgreSQL
 * pools_conf_int.h: what the files about pools.conf share among themselves.
 * Runs in: every process. */
#ifndef PGP_CONFIG_POOLS_CONF_INT_H
#define PGP_CONFIG_POOLS_CONF_INT_H

#include "base/hash.h"
#include "config/pools_conf.h"

#include "conf_int.h"

#define POOLS_MAX_SECTIONS 100000
#define POOLS_KEY_COUNT    17 /* rows of pools_key_table */

/* In which sections a key may stand. */
enum pools_place { POOLS_IN_DATABASE = 1, POOLS_IN_USER = 2 };

/* A value that pgpool.conf gives for all, and a section for some. */
struct pools_key {
    const char *name;  /* in pools.conf */
    const char *param; /* in pgpool.conf */
    size_t offset;     /* in struct pool_settings */
    unsigned place;    /* of enum pools_place */
};

struct pools_value {
    bool is_set;
    union {
        int i; /* also enum */
        int64_t t;
    } v;
};

/* One [database D], [user U] or [database D user U]. */
struct pools_section {
    struct hash_node node;
    const char *database; /* NULL: any */
    const char *user;     /* NULL: any */
    int line;
    int target;
    struct pools_value value[POOLS_KEY_COUNT];
    const char *host;
    int port;
    int port_line;
    int ssl_mode;
    int ssl_line; /* 0: not said */
    const char *dbname;
    const char *forced_user;
    const char *auth_user;
    const char *auth_query;
    const char *auth_dbname;
};

/* Which sections make the settings of a pair, and the settings. */
struct pools_memo {
    struct hash_node node;
    const struct pools_section *part[3]; /* database, user, pair: each may be NULL */
    struct pool_settings settings;
};

struct pools_conf {
    struct arena *arena;
    const char *file;
    const char *text; /* as read: it goes to the other processes */
    size_t text_len;
    int nsections;
    struct hash_table sections;
    struct hash_table memos;
    int ntargets;
    struct pools_target target[POOLS_MAX_TARGETS];
};

/* pools_conf.c: all keys with a value in pgpool.conf. */
const struct pools_key *pools_key_table(void);
/* Hash of a section's names; either may be NULL. */
uint64_t pools_section_hash(struct slice database, struct slice user, bool has_db, bool has_user);
/* The section of exactly these names. */
struct pools_section *pools_section_find(const struct pools_conf *pc, struct slice database,
    struct slice user, bool has_db, bool has_user);

/* pools_conf_read.c: reads `text` into `pc`; findings go to the report. */
void pools_conf_parse(
    struct pools_conf *pc, const char *file, struct slice text, struct conf_report *report);

#endif
