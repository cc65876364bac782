/* SPDX-License-Identifier: PostgreSQL
 * conf_lex.h: the lines of a file of settings.
 * Runs in: every process, while a file is read. Pure: works on bytes in memory, reads nothing else.
 */
#ifndef PGP_CONFIG_CONF_LEX_H
#define PGP_CONFIG_CONF_LEX_H

#include "base/err.h"
#include "base/slice.h"

struct arena;

struct conf_lex {
    const char *p; /* next byte */
    const char *end;
    int line; /* of the item just returned, from 1 */
    int next_line;
};

/* One setting: name and value are NUL-ended copies. */
struct conf_item {
    const char *name;
    const char *value;
};

/* Begins at the first line of `text`, which must stay. */
void conf_lex_init(struct conf_lex *lx, struct slice text);
/* Reads on to the next setting. Returns 1 with *item in `a`; 0 at the end; -1 for a line that is no
 * setting, with err filled, and may be called again for the lines after it. lx->line says where. */
int conf_lex_next(struct conf_lex *lx, struct arena *a, struct conf_item *item, struct err *err);

#endif
