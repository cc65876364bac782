/* SPDX-License-Identifier: PostgreSQL
 * route_rules.h: the lists of the settings, compiled: function and query patterns, redirect
 * preferences, relations between tables. Made once per generation of the settings.
 * Runs in: workers, and who checks a file before it is used. */
#ifndef PGP_ROUTE_ROUTE_RULES_H
#define PGP_ROUTE_ROUTE_RULES_H

#include "base/err.h"

struct conf;
struct route_rules;

/* Compiles the lists of `conf`, which must live as long. Patterns are POSIX extended regular
 * expressions; case does not matter, and each matches the whole name or text. Returns NULL when a
 * pattern or an item is wrong; the error names the setting and the item. */
struct route_rules *route_rules_new(const struct conf *conf, struct err *err);
/* Frees it and clears *rp; *rp may be NULL. */
void route_rules_free(struct route_rules **rp);

#endif
