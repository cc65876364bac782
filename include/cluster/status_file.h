/* SPDX-License-Identifier: PostgreSQL
 * status_file.h: what operators decided about servers, kept over a restart.
 * Runs in: monitor; supervisor (discarding). Two files in work_dir: pgpool_status has one word per
 * server (up, down, unused), as pgpool-II writes and reads it; pgpool_status.held says who holds a
 * server down, since when, and why. Only what is held is taken back from them: everything else is
 * probed before it is believed.
 */
#ifndef PGP_CLUSTER_STATUS_FILE_H
#define PGP_CLUSTER_STATUS_FILE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/slice.h"
#include "cluster/view.h"

/* One server that an operator holds down. */
struct status_hold {
    int node;
    int64_t since_us; /* wall clock */
    char by[VIEW_WHO_BYTES];
    char why[VIEW_WHY_BYTES];
};

/* Appends the content of the two files. Pure. */
void status_file_format(const struct view *v, struct buf *words, struct buf *holds);
/* Reads the next line of pgpool_status.held and moves *text behind it. Returns 1 got one, 0 the
 * end; lines that make no sense are left out, and counted in *nbad. Pure. */
int status_file_parse(struct slice *text, struct status_hold *out, int *nbad);

/* Writes both files into folder `dir`, each as a whole. 0, or -1 with *err. */
int status_file_save(const char *dir, const struct view *v, struct err *err);
/* Reads what is held: up to `max` entries; returns how many. A missing file holds nothing. What
 * cannot be read, or is somebody else's, holds nothing either, and is told in *err beside the
 * entries. */
int status_file_load(const char *dir, struct status_hold *out, int max, struct err *err);
/* Removes both files. */
void status_file_discard(const char *dir);

#endif
