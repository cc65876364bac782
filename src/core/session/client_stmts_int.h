/* SPDX-License-Identifier: PostgreSQL
 * client_stmts_int.h: what each statement does (ipc/stmtstats.h), as clients run them. Runs in:
 * workers.
 *
 * An exchange is counted for one statement: the one whose text was sent or bound last in it, with
 * the number of Queries and Executes in the exchange as its calls. Clients hand over texts where
 * they note what is sent (client_note_sent and its like), and where a statement that is known is
 * bound. Must never: cost anything while track_statements is off. */
#ifndef PGP_SESSION_CLIENT_STMTS_INT_H
#define PGP_SESSION_CLIENT_STMTS_INT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/slice.h"
#include "ipc/stmtstats.h"

struct client;
struct sessions;

/* Of one client, while something is under way. */
struct client_stmt {
    stmtstats_handle handle;  /* what was sent or bound last; stays, for it may be bound unnamed */
    struct stmtstats_use use; /* so far; took_us is not told before the end */
};

/* Of a worker. */
struct session_stmts {
    struct stmtstats_book *book;
    uint32_t first_row; /* of the worker's clients */
    struct client_stmt of_row[];
};

/* As the settings are. */
void session_stmts_set(struct sessions *ss);
void session_stmts_fini(struct sessions *ss);

/* Of what it runs, as SHOW POOL_STATEMENTS has it; false: that is not known. */
bool client_stmts_fingerprint(const struct client *c, uint64_t *fingerprint);
/* A text is sent. */
void client_stmts_text(struct client *c, struct slice sql);
/* One that is known is bound; *known is kept with it. False: as far as *known goes it is not known:
 * client_stmts_bound is to be told its text. */
bool client_stmts_is_known(struct client *c, stmtstats_handle known);
stmtstats_handle client_stmts_bound(struct client *c, struct slice sql);
/* One is bound of which nothing is known. */
void client_stmts_unknown(struct client *c);
/* So many Queries and Executes of the client are on their way. */
void client_stmts_calls(struct client *c, unsigned n);
/* Its server has told of rows (backend.nrows). */
void client_stmts_rows(struct client *c);
/* Its server has told an error. */
void client_stmts_error(struct client *c);
/* It was answered from the query cache. */
void client_stmts_hit(struct client *c, struct slice sql);
/* All is answered; took_us < 0: by ourselves. */
void client_stmts_end(struct client *c, int64_t took_us);

#endif
