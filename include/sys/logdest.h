/* SPDX-License-Identifier: PostgreSQL
 * logdest.h: where log events go: standard error or the logger process, and syslog.
 * Runs in: every process. */
#ifndef PGP_SYS_LOGDEST_H
#define PGP_SYS_LOGDEST_H

#include <stdbool.h>

struct logdest_opts {
    bool to_stderr;  /* or to the logger, when there is one */
    bool to_jsonlog; /* there too, as jsonlog; not together with to_stderr */
    bool to_syslog;
    int syslog_facility;      /* 0 to 7: LOCAL0 to LOCAL7 */
    const char *syslog_ident; /* copied */
};

/* Sets the destinations and installs the log sink. Call it again after a fork and after a reload.
 */
void logdest_configure(const struct logdest_opts *opts);
/* From now on what goes to standard error goes to the logger behind the socket `fd`, one packet per
 * event; -1 ends that. The descriptor stays the caller's. */
void logdest_set_collector(int fd);
/* Forgets the connection to syslog: before descriptors are closed in bulk. */
void logdest_forget(void);
/* Events that the logger was too slow to take, since the start of this process. */
unsigned long logdest_lost(void);

#endif
