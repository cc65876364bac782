/* SPDX-License-Identifier: PostgreSQL
 * wd_id.h: which of the pgpools of a watchdog cluster this one is: the file pgpool_node_id beside
 * pgpool.conf. Runs in: supervisor (before the start), watchdog, control. */
#ifndef PGP_CONFIG_WD_ID_H
#define PGP_CONFIG_WD_ID_H

#include "base/err.h"
#include "config/conf.h"

/* Reads it; -1 with *err when there is none, or it names no pgpool of the settings. */
int wd_id_read(const struct conf_gen *gen, int *id, struct err *err);

#endif
