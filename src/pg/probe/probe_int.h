/* SPDX-License-Identifier: PostgreSQL
 * probe_int.h: between the probe's connection, its query and its reading of refusals. */
#ifndef PGP_PROBE_INT_H
#define PGP_PROBE_INT_H

#include <libpq-fe.h>

#include "probe/probe.h"

/* probe_query.c: the one question, and its answer taken apart. */
extern const char probe_query_text[];
/* Fills *f from the result; 0, or -1 when it is not what was asked for. */
int probe_query_read(const PGresult *res, struct probe_facts *f);

/* probe_class.c: what a failure says about the server. */
/* What a refusal with this SQLSTATE says. */
enum probe_answer probe_class_of_sqlstate(const char *sqlstate);
/* Fills answer, sqlstate and message of *r from a connection that could not be opened. */
void probe_class_of_conn(const PGconn *conn, struct probe_report *r);
/* Copies the first line of `from`, without SQLSTATE, cut to the room. */
void probe_class_copy_line(const char *from, char *to, size_t room);

/* probe_tls.c */
/* True when TLS that did not come about failed without a certificate or a file being to blame. */
bool probe_tls_failed_harmlessly(const char *message);

#endif
