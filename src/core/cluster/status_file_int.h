/* SPDX-License-Identifier: PostgreSQL
 * status_file_int.h: reading and writing small files of our own in work_dir. */
#ifndef PGP_STATUS_FILE_INT_H
#define PGP_STATUS_FILE_INT_H

#include "base/buf.h"
#include "base/err.h"

/* Writes the file as a whole, so that it is the old one or the new one whatever happens. */
int status_file_write(const char *dir, const char *name, const struct buf *text, struct err *err);
/* Appends what it holds; nothing when there is none. Nothing and *err when it cannot be read, or is
 * somebody else's. */
void status_file_read(const char *dir, const char *name, struct buf *out, struct err *err);
/* Removes it; that there was none is no error. */
int status_file_remove(const char *dir, const char *name, struct err *err);

#endif
