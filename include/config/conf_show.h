/* SPDX-License-Identifier: PostgreSQL
 * conf_show.h: the rows of SHOW POOL_STATUS and PGPOOL SHOW.
 * Runs in: whoever answers administrators (workers, control, web). Secrets are printed as *****. */
#ifndef PGP_CONFIG_CONF_SHOW_H
#define PGP_CONFIG_CONF_SHOW_H

#include "base/buf.h"
#include "base/err.h"

struct conf_gen;
struct conf_override;

/* Receives one row; the strings are valid during the call. */
typedef void conf_row_fn(void *ctx, const char *item, const char *value, const char *description);

/* Facts of SHOW POOL_STATUS that are not settings. */
enum conf_fact {
    CONF_FACT_BACKEND_STATUS,   /* backend_statusN: up, down, waiting, unused, quarantine */
    CONF_FACT_STANDBY_DELAY,    /* standby_delayN */
    CONF_FACT_BACKEND_WEIGHT,   /* backend_weightN, as a share of 1; when the caller appends nothing
                                   the share is   computed from the settings */
    CONF_FACT_CACHE_START_TIME, /* memqcache_stats_start_time */
    CONF_FACT_CACHE_MISSES,     /* memqcache_no_cache_hits */
    CONF_FACT_CACHE_HITS        /* memqcache_cache_hits */
};
/* Appends the text of a fact; `node` is the server's number or -1. */
typedef void conf_fact_fn(void *ctx, enum conf_fact fact, int node, struct buf *out);

/* What a SHOW is answered from. `ov`, `fact` may be NULL. */
struct conf_show {
    const struct conf_gen *gen;
    const struct conf_override *ov;
    conf_fact_fn *fact;
    void *fact_ctx;
    conf_row_fn *row;
    void *row_ctx;
};

/* SHOW POOL_STATUS: calls row for each setting in pgpool-II's order. Ours are not in it. */
void conf_show_status(const struct conf_show *show);
/* PGPOOL SHOW ALL: all settings, groups first. */
void conf_show_all(const struct conf_show *show);

/* How many columns PGPOOL SHOW `name` has: 3 (item, value, description) for ALL, for the groups
 * backend, watchdog, heartbeat and health_check and for a list named without number; 1, named as
 * typed, for a single value. -1 with pgpool-II's error text for an unknown name. */
int conf_show_columns(const char *name, struct err *err);
/* PGPOOL SHOW `name`: calls row for each row; with one column only the argument `value` counts.
 * Returns the number of columns, or -1. */
int conf_show_one(const struct conf_show *show, const char *name, struct err *err);

#endif
