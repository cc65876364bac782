/* SPDX-License-Identifier: PostgreSQL
 * roles.h: the kinds of process, made from ipc/roles.def. */
#ifndef PGP_IPC_ROLES_H
#define PGP_IPC_ROLES_H

enum proc_role {
#define PROC_ROLE(sym, name, app_name, title) ROLE_##sym,
#include "ipc/roles.def"
#undef PROC_ROLE
    ROLE_COUNT
};

/* "worker", ... as used in log lines of ours. */
const char *proc_role_name(enum proc_role role);
/* %a of log_line_prefix as pgpool-II names it ("main", "child", "pcp_main", ...). */
const char *proc_role_app_name(enum proc_role role);
/* The title a process has after its start ("wait for connection request", ...). */
const char *proc_role_title(enum proc_role role);

#endif
