/* SPDX-License-Identifier: PostgreSQL
 * ident.h: pg_ident.conf: which outside names (of certificates, of the operating system) may log in
 * as which database user. Grammar of PostgreSQL 16.
 * Runs in: workers, supervisor (checking). Immutable once loaded; one error refuses the file. */
#ifndef PGP_AUTH_IDENT_H
#define PGP_AUTH_IDENT_H

#include "auth/hba.h"

struct ident;

/* Reads the file; NULL when anything is wrong. `flags` may be HBA_NO_FILES. An empty file is fine.
 */
struct ident *ident_load(const char *path, unsigned flags, hba_report_fn *report, void *ctx);
struct ident *ident_parse(
    const char *name, struct slice text, unsigned flags, hba_report_fn *report, void *ctx);
void ident_free(struct ident **ip);
/* May `system_user` log in as `db_user` by `map`? Without a map (NULL or empty) the two have to be
 * equal; `ignore_case` loosens that comparison and those of plain names in the map. `id` may be
 * NULL (no file: no map matches). HBA_FAIL sets *err. */
enum hba_answer ident_check(const struct ident *id, const char *map, struct slice system_user,
    struct slice db_user, bool ignore_case, const struct hba_oracle *oracle, struct err *err);

#endif
