/* SPDX-License-Identifier: PostgreSQL
 * conf.h: the settings: one table (config/params.def), a struct made from it, loading and checking.
 * Runs in: every process. A loaded file is an immutable, numbered generation; functions get
 * `const struct conf *`, nobody reads a global. A file is checked whole: all errors are collected with
 * file:line, and one error refuses the generation. */
#ifndef PGP_CONFIG_CONF_H
#define PGP_CONFIG_CONF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"

#define CONF_MAX_NODES 128

/* Values per node. A node exists when port != 0. */
struct conf_node;

/* All settings. */
struct conf;

struct conf_gen; /* a generation: number, arena, struct conf, where each value came from */

#include "config/conf_struct.h"

#endif
