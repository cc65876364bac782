/* SPDX-License-Identifier: PostgreSQL
 * pgpool_auth.h: what the command line says about authentication.
 * Runs in: the command line. */
#ifndef PGP_BIN_PGPOOL_AUTH_H
#define PGP_BIN_PGPOOL_AUTH_H

struct conf_gen;
struct conf_report;
struct pgpool_opts;

/* Adds the lines of pool_passwd that a worker would pass over, as warnings. */
void pgpool_auth_check_passwd(const struct conf_gen *gen, struct conf_report *report);
/* Adds what of pcp.conf no log-in would find, as warnings; that there is none, as a note. */
void pgpool_auth_check_pcp(
    const struct pgpool_opts *opts, const struct conf_gen *gen, struct conf_report *report);
/* pgpool --check-auth: says for each way in and each server what would be asked, what would answer
 * it, and what would fail. Returns the exit status. */
int pgpool_auth_check_user(const struct pgpool_opts *opts, const struct conf_gen *gen);

#endif
