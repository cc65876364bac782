/* SPDX-License-Identifier: PostgreSQL
 * route_trace.h: what one session has written in its transaction (dml_adaptive) and which temporary
 * tables and types it has made (check_temp_table). Most sessions have none: the pointer stays NULL
 * until there is something to remember. Runs in: workers. */
#ifndef PGP_ROUTE_ROUTE_TRACE_H
#define PGP_ROUTE_ROUTE_TRACE_H

#include <stdbool.h>

#include "base/slice.h"
#include "parser/parser.h"

struct route_rules;
struct route_trace;

/* Notes a statement that was sent to a server; `in_tx` when it ran in a transaction block. `text`
 * is the text of the statement alone (read for DROP only). Relations of
 * dml_adaptive_object_relationship_list are followed through `rules`, which may be NULL. */
void route_trace_note(struct route_trace **tp, const struct route_rules *rules, struct slice text,
    const struct sql_stmt *stmt, bool in_tx);
/* Tables were written that are not named: until the transaction ends every table counts as written.
 */
void route_trace_note_unnamed(struct route_trace **tp);
/* The transaction has ended, or was rolled back to a savepoint. `t` may be NULL. */
void route_trace_on_commit(struct route_trace *t);
void route_trace_on_rollback(struct route_trace *t);
void route_trace_on_rollback_to(struct route_trace *t);
/* DISCARD TEMP or ALL. */
void route_trace_on_discard(struct route_trace *t);
/* Was the table written in this transaction? A name without schema is equal to one with any. */
bool route_trace_wrote(const struct route_trace *t, struct slice schema, struct slice name);
/* Is the name one of a temporary table of this session? */
bool route_trace_is_temp(const struct route_trace *t, struct slice schema, struct slice name);
/* Does the text name, as a type perhaps, what is one of them? */
bool route_trace_names_temp(const struct route_trace *t, struct slice text);
bool route_trace_has_temp(const struct route_trace *t);
/* Frees it and clears *tp; *tp may be NULL. */
void route_trace_free(struct route_trace **tp);

#endif
