/* SPDX-License-Identifier: PostgreSQL
 * leading.h: the words that the statements of a text begin with, told without parsing it. Pure. */
#ifndef PGP_PARSER_LEADING_H
#define PGP_PARSER_LEADING_H

#include <stdbool.h>

#include "base/slice.h"

/* True when some statement of the text may begin with one of `words`, which are in lower case and
 * end with NULL; "create database" is two words with any blanks and comments between them. What
 * stands behind a semicolon within a string counts, too: it is for choosing what is parsed. */
bool sql_leads_with(struct slice sql, const char *const words[]);

#endif
