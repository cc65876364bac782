/* SPDX-License-Identifier: PostgreSQL
 * conf_pattern.h: the syntax of the items in the lists of patterns and preferences. One place for
 * who checks a file and for who uses the lists. Runs in: every process. */
#ifndef PGP_CONFIG_CONF_PATTERN_H
#define PGP_CONFIG_CONF_PATTERN_H

#include <regex.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/slice.h"

enum conf_prefer { CONF_PREFER_PRIMARY, CONF_PREFER_STANDBY, CONF_PREFER_NODE };

/* name:node(ratio) of the redirect preference lists; `name` points into the item. */
struct conf_preference {
    struct slice name;
    enum conf_prefer what;
    int node;
    double ratio;
};

/* table:table or function():table; both point into the item. */
struct conf_relation {
    struct slice from;
    struct slice to;
    bool from_function;
};

/* table:seconds of memqcache_expire_list; `name` points into the item. */
struct conf_expiry {
    struct slice name;
    int64_t seconds;
};

/* Compiles a POSIX extended regular expression that stands for the whole name or text: case does
 * not matter, and it is anchored at both ends unless it says so itself. The caller frees *re with
 * regfree. Returns -1 when it is none. */
int conf_pattern_compile(regex_t *re, struct slice pattern, struct err *err);
/* Returns -1 when the item is none. */
int conf_preference_parse(const char *item, struct conf_preference *out, struct err *err);
int conf_relation_parse(const char *item, struct conf_relation *out, struct err *err);
int conf_expiry_parse(const char *item, struct conf_expiry *out, struct err *err);
/* Splits at the last `ch`, without blanks around the parts; false when there is none. */
bool conf_split_last(struct slice s, char ch, struct slice *left, struct slice *right);

#endif
