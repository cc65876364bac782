/* SPDX-License-Identifier: PostgreSQL
 * oracle_json.h: a reader of the JSON trees that libpg_query prints.
 * Runs in: the test program oracle_dump only. Values live in the caller's arena. */
#ifndef PGP_ORACLE_JSON_H
#define PGP_ORACLE_JSON_H

#include <stdbool.h>
#include <stddef.h>

struct arena;

enum oracle_json_type {
    ORACLE_JSON_NULL,
    ORACLE_JSON_BOOL,
    ORACLE_JSON_NUMBER,
    ORACLE_JSON_STRING,
    ORACLE_JSON_ARRAY,
    ORACLE_JSON_OBJECT
};

/* One value. Members of an array or object hang on `child` and are chained by `next`. */
struct oracle_json {
    enum oracle_json_type type;
    const char *key;  /* of an object's member, else NULL */
    const char *text; /* of a string, NUL-ended */
    long number;      /* of a number (whole ones only) or bool */
    struct oracle_json *child;
    struct oracle_json *next;
};

/* Reads `text` whole; returns NULL when it is not JSON. Strings are unescaped to UTF-8. */
struct oracle_json *oracle_json_parse(struct arena *a, const char *text);
/* Returns the member `key` of an object, or NULL; `v` may be NULL. */
const struct oracle_json *oracle_json_get(const struct oracle_json *v, const char *key);
/* Returns the text of the string member `key`, or "" when there is none. */
const char *oracle_json_str(const struct oracle_json *v, const char *key);
/* Returns the number or bool member `key`, 0 when there is none (the printer leaves zeros out). */
long oracle_json_int(const struct oracle_json *v, const char *key);

#endif
