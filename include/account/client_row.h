/* SPDX-License-Identifier: PostgreSQL
 * client_row.h: writes a client's row in shared memory (ipc/rows.h), what SHOW tells of it. Runs
 * in: workers, per statement: no system calls. Where `row` is NULL the client has none, and nothing
 * happens. `wall_us`: the wall clock. */
#ifndef PGP_ACCOUNT_CLIENT_ROW_H
#define PGP_ACCOUNT_CLIENT_ROW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/slice.h"
#include "ipc/rows.h"

struct link;
struct row_alloc;

/* A client's row, and where it stands. */
struct row_at {
    struct client_row *row;
    struct rows_header *rows;
    struct row_alloc *alloc;
    int32_t index;
};

/* Takes a row of the worker's; at.row == NULL: there is none. */
struct row_at row_take(struct rows_header *rows, struct row_alloc *alloc);

struct row_birth {
    uint32_t id; /* KILL CLIENT goes by it */
    int ordinal;
    const uint8_t *addr;
    uint8_t addr_kind;
    uint16_t port;
};

struct row_whose {
    struct slice user;
    struct slice database;
    struct slice application;
};

/* The login is over: whose session it is, on which link. */
struct row_login {
    struct row_whose whose;
    const struct link *link; /* NULL: none */
    uint8_t secret[ROWS_SECRET_BYTES];
    uint32_t secret_len;
    uint32_t protocol;
    int16_t node;
    uint8_t pool_mode; /* enum conf_pool_mode */
    bool keeps_link;   /* the server's process is told to it as its own */
    bool is_superuser;
    uint8_t tls_version;
    uint16_t tls_cipher;
    uint8_t tls_kernel;
};

/* What a client does, or waits for. */
struct row_state {
    enum client_state state;
    enum wait_reason reason;
    char tx_status;         /* 0: as before */
    int16_t node;           /* that is waited for; ROWS_NO_NODE: as before */
    struct row_whose whose; /* that waits; user.p == NULL: the row knows */
};

/* A client is there: the row is its from now on. */
void row_open(struct client_row *row, const struct row_birth *b, int64_t wall_us);
/* The client came from another worker, with the row `from`. */
void row_adopt(const struct row_at *at, const struct client_row *from, int ordinal,
    const struct row_whose *whose, struct slice statement);
void row_login(const struct row_at *at, const struct row_login *l);
void row_set_application(const struct row_at *at, struct slice application);
void row_set_state(const struct row_at *at, const struct row_state *s, int64_t wall_us);
/* ROWS_PIN(reason) of each. Returns those that are new. */
unsigned row_set_pins(struct client_row *row, unsigned pins);

/* A client's names in SHOW and in the log; empty before the login. Views, until they change. */
const struct row_names *row_names(const struct rows_header *rows, const struct client_row *row);
/* The start of the last statement of a row that is there; `links`: the rows of links. */
struct slice row_statement(const struct row_at *at, const struct rows_header *links);

/* The client has `link`; it has none, or one that is at rest. */
void row_set_link(struct client_row *row, const struct link *link);
void row_set_kept(struct client_row *row, const struct link *kept);
/* A statement is sent, or answered here; sql.p == NULL: that of before. `on_own_link`: the row of
 * its link has the text. */
void row_set_statement(
    const struct row_at *at, struct slice sql, bool on_own_link, int64_t wall_us);
/* row_set_statement and row_set_link in one. */
void row_begin(const struct row_at *at, const struct link *link, struct slice sql, int64_t wall_us);
/* Nothing is owed to it any more, in that state of its transaction. */
void row_set_idle(struct client_row *row, char tx, int64_t wall_us);
/* row_set_idle between transactions, row_set_kept within one. */
void row_end(struct client_row *row, const struct link *kept, int64_t wall_us);

#endif
