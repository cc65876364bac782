/* SPDX-License-Identifier: PostgreSQL
 * oracle_kind.h: what kind of statement a node of libpg_query's tree is.
 * Runs in: the test program oracle_dump only. */
#ifndef PGP_ORACLE_KIND_H
#define PGP_ORACLE_KIND_H

#include <stdbool.h>

struct oracle_json;

/* Returns the kind (a literal) of the node `type` with members `body`. */
const char *oracle_kind(const char *type, const struct oracle_json *body);
/* Says whether statements of this form only read, leaving aside INTO, locking and
 * data-modifying WITH, which the walk finds. */
bool oracle_kind_read_only(const char *type, const struct oracle_json *body);
/* Says whether it is an EXPLAIN that runs nothing. */
bool oracle_kind_is_plain_explain(const char *type, const struct oracle_json *body);

#endif
