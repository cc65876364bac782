/* SPDX-License-Identifier: PostgreSQL
 * admin_fixture.h: a small cluster in shared memory, for the tests of the admin module: two
 * workers, two nodes (0 and 2), a view of them and a cache. Times are shown in local time: the
 * tests run in UTC. */
#ifndef PGP_TEST_ADMIN_FIXTURE_H
#define PGP_TEST_ADMIN_FIXTURE_H

#include "admin/admin.h"
#include "ipc/rows.h"
#include "ipc/shm.h"

#define NWORKERS    2
#define PER_WORKER  4
#define NOW_US      (1706702400LL * 1000000) /* 2024-01-31 12:00:00 UTC */
#define AGO(second) (NOW_US - (second)*1000000LL)

/* What a test works on; made afresh by fixture_setup. */
extern struct shm *shm;
extern struct conf_gen *gen;
extern struct conf_override *ov;
extern struct admin_sources src;
extern struct admin_result res;
extern struct err err;

/* Begin and end of a test. */
void fixture_setup(void);
void fixture_teardown(void);
/* Makes `gen` from the text of a file. */
void fixture_load(const char *text);
/* Takes row `i` of worker `ordinal`. */
struct client_row *fixture_put_client(
    int ordinal, int i, enum client_state state, const char *user);
/* What the client ran last. */
void fixture_say(struct client_row *row, const char *sql);
struct link_row *fixture_put_link(int ordinal, int i, enum link_state state);
/* Connects the two rows. */
void fixture_lend(struct link_row *link, struct client_row *client);
/* Run into `res`; a report must succeed. */
void fixture_run_report(enum admin_report report);
int fixture_run_sql(const char *sql);
/* All rows as text: cells joined by '|', rows ended by '\n'. Static storage. */
const char *fixture_rows_text(void);
void fixture_assert_rows(const char *expected);
/* Sources: node 0 is a standby that is down, node 2 the primary; *ctx (bool): delay in time? */
void fixture_some_node(void *ctx, int id, struct admin_node *out);
/* Instead of the workers, links and so on there is a query cache in `shm`. */
void fixture_some_cache(void);
bool fixture_delete_from_cache(
    void *ctx, struct slice sql, struct slice user, struct slice database);

#endif
