/* SPDX-License-Identifier: PostgreSQL
 * charts.h: the last hour in seconds and the last day in minutes, for the charts of the console, in
 * the region CHARTS of shared memory: a web process that is started anew goes on with them.
 * Written by: web. */
#ifndef PGP_IPC_CHARTS_H
#define PGP_IPC_CHARTS_H

#include <stdint.h>

#define CHARTS_SECONDS 3600
#define CHARTS_MINUTES 1440
#define CHARTS_NODES   16

/* Counters are as they are, from the start of pgpool on. */
struct chart_sample {
    int64_t at_s; /* wall clock; 0: none */
    int64_t clients;
    int64_t waiting;
    int64_t links;
    uint64_t queries;
    uint64_t transactions;
    uint64_t query_us;
    uint64_t assignments;
    uint64_t wait_us;
    uint64_t bytes;
    int64_t lag_bytes[CHARTS_NODES];
    uint64_t statements[CHARTS_NODES];
    uint64_t node_requests[CHARTS_NODES]; /* that were answered there, */
    uint64_t node_us[CHARTS_NODES];       /* and how long that took */
};

/* A sample is written before it is counted. */
struct charts {
    int64_t nseconds; /* taken so far; the last is at (nseconds - 1) % CHARTS_SECONDS */
    int64_t nminutes;
    struct chart_sample second[CHARTS_SECONDS];
    struct chart_sample minute[CHARTS_MINUTES];
};

#endif
