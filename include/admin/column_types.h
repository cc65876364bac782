/* SPDX-License-Identifier: PostgreSQL
 * column_types.h: what the texts of a column of SHOW are. Runs in: whoever shows them in another
 * form. Pure. */
#ifndef PGP_ADMIN_COLUMN_TYPES_H
#define PGP_ADMIN_COLUMN_TYPES_H

enum admin_column_type {
    ADMIN_COLUMN_TEXT,
    ADMIN_COLUMN_INTEGER,
    ADMIN_COLUMN_REAL,
    ADMIN_COLUMN_BOOLEAN, /* true, false */
    ADMIN_COLUMN_TIME     /* local time, "2026-01-31 23:59:59" */
};

/* The type of the columns of that name. A cell of it may be empty all the same, and one that is not
 * what its type says is to be shown as text. */
enum admin_column_type admin_column_type(const char *column);
/* "text", "integer", "real", "boolean", "time". */
const char *admin_column_type_name(enum admin_column_type type);

#endif
