/* SPDX-License-Identifier: PostgreSQL
 * role_rules.h: the rules of client authentication, tried before a worker has to use them.
 * Runs in: the command line, control, web. */
#ifndef PGP_PROCESS_COMMON_ROLE_RULES_H
#define PGP_PROCESS_COMMON_ROLE_RULES_H

struct conf_gen;
struct conf_report;
struct proc_paths;

/* Reads the rule files as a worker would and adds every mistake to the report. 0, or -1 when
 * enable_pool_hba is on and they cannot be used. */
int role_rules_check(
    const struct conf_gen *gen, const struct proc_paths *paths, struct conf_report *report);

#endif
