/* SPDX-License-Identifier: PostgreSQL
 * conf_describe.h: the table of parameters as documents: pgpool --describe=sample|man|roff|json.
 * Runs in: the pgpool command. The checked-in pgpool.conf.sample, doc/user/reference-settings.md
 * and doc/man/pgpool.conf.5 are this text; a test compares them. */
#ifndef PGP_CONFIG_CONF_DESCRIBE_H
#define PGP_CONFIG_CONF_DESCRIBE_H

#include "base/buf.h"
#include "base/err.h"

/* Appends the sample file. */
void conf_describe_sample(struct buf *out);
/* Appends the reference for the manual, in Markdown. */
void conf_describe_man(struct buf *out);
/* Appends the man page pgpool.conf(5). */
void conf_describe_roff(struct buf *out);
/* Appends an array of objects, one per parameter. */
void conf_describe_json(struct buf *out);
/* Does the one called `what`: "sample", "man", "roff" or "json". Returns 0, or -1 when it is none
 * of them. */
int conf_describe(const char *what, struct buf *out, struct err *err);

#endif
