/* SPDX-License-Identifier: PostgreSQL
 * client_row.c: writes a client's row in shared memory. Called per statement: no system calls. */
#include "config.h"

#include <string.h>

#include "backend/link.h"
#include "backend/pool.h"
#include "backend/row_alloc.h"
#include "base/hot.h"

#include "account/client_row.h"

struct row_at row_take(struct rows_header *rows, struct row_alloc *alloc)
{
    int32_t index = row_alloc_take(alloc);

    return (struct row_at){client_row_at(rows, index), rows, alloc, index};
}

static void put_whose(const struct row_at *at, const struct row_whose *w)
{
    row_alloc_name(at->alloc, at->index, w->user, w->database, w->application);
}

void row_open(struct client_row *row, const struct row_birth *b, int64_t wall_us)
{
    if (row == NULL)
        return;
    shm_write_begin(&row->seq);
    memset((char *)row + sizeof row->seq, 0, sizeof *row - sizeof row->seq);
    row->state = CLIENT_STATE_LOGIN;
    row->tx_status = 'I';
    row->node = ROWS_NO_NODE;
    row->balance_node = ROWS_NO_NODE;
    row->link_row = ROWS_NO_ROW;
    row->id = b->id;
    row->worker = (uint16_t)b->ordinal;
    row->connected_us = wall_us;
    row->state_since_us = wall_us;
    memcpy(row->addr, b->addr, sizeof row->addr);
    row->addr_kind = b->addr_kind & 3;
    row->port = b->port;
    shm_write_end(&row->seq);
}

void row_adopt(const struct row_at *at, const struct client_row *from, int ordinal,
    const struct row_whose *whose, struct slice statement)
{
    struct client_row *row = at->row;

    if (row == NULL)
        return;
    shm_write_begin(&row->seq);
    memcpy((char *)row + offsetof(struct client_row, state),
        (const char *)from + offsetof(struct client_row, state),
        sizeof *row - offsetof(struct client_row, state));
    row->worker = (uint16_t)ordinal;
    row->link_row = ROWS_NO_ROW;
    row->statement = statement.n == 0 ? ROW_STATEMENT_NONE : ROW_STATEMENT_OWN;
    if (statement.n > 0)
        rows_set_statement(at->rows, at->index, statement);
    put_whose(at, whose);
    shm_write_end(&row->seq);
}

/* Within shm_write_begin and shm_write_end. */
HOT static inline void put_link(struct client_row *row, const struct link *link)
{
    row->link_row = link->row;
    row->server_pid = link->server_pid;
    row->node = (int16_t)link->pool->cluster_node;
}

HOT static inline void put_kept(struct client_row *row, const struct link *kept)
{
    if (kept != NULL) {
        put_link(row, kept);
        return;
    }
    row->link_row = ROWS_NO_ROW;
    row->server_pid = 0;
}

void row_login(const struct row_at *at, const struct row_login *l)
{
    struct client_row *row = at->row;

    if (row == NULL)
        return;
    shm_write_begin(&row->seq);
    row->secret_len = (uint8_t)l->secret_len;
    memcpy(row->secret, l->secret, sizeof row->secret);
    /* The row of a client that travels is another's afterwards, its id is not. */
    row->told_pid = l->keeps_link ? l->link->server_pid
                                  : (int32_t)(ROWS_FIRST_TOLD_PID + row->id % ROWS_FIRST_TOLD_PID);
    row->protocol = l->protocol;
    row->is_superuser = l->is_superuser;
    row->tls_version = l->tls_version;
    row->tls_cipher = l->tls_cipher;
    row->tls_kernel = l->tls_kernel;
    put_whose(at, &l->whose);
    put_kept(row, l->link);
    row->node = l->node;
    row->balance_node = l->node;
    row->pool_mode = l->pool_mode & 3;
    shm_write_end(&row->seq);
}

void row_set_application(const struct row_at *at, struct slice application)
{
    const struct row_names *names;

    if (at->row == NULL)
        return;
    names = row_names(at->rows, at->row);
    shm_write_begin(&at->row->seq);
    row_alloc_name(at->alloc, at->index, row_user(names), row_database(names), application);
    shm_write_end(&at->row->seq);
}

void row_set_state(const struct row_at *at, const struct row_state *s, int64_t wall_us)
{
    struct client_row *row = at->row;

    if (row == NULL)
        return;
    shm_write_begin(&row->seq);
    /* Who waits tries again now and then, and still waits since the beginning. */
    if (row->state != CLIENT_STATE_WAITING || s->state != CLIENT_STATE_WAITING)
        row->state_since_us = wall_us;
    row->state = (uint8_t)s->state;
    row->wait_reason = (uint8_t)s->reason;
    if (s->tx_status != 0)
        row->tx_status = s->tx_status;
    if (s->node != ROWS_NO_NODE)
        row->node = s->node;
    if (s->whose.user.p != NULL && row_user(row_names(at->rows, row)).n == 0)
        put_whose(at, &s->whose);
    shm_write_end(&row->seq);
}

unsigned row_set_pins(struct client_row *row, unsigned pins)
{
    unsigned added;

    if (row == NULL || row->pins == pins)
        return 0;
    added = pins & ~(unsigned)row->pins;
    shm_write_begin(&row->seq);
    row->pins = (uint16_t)pins;
    shm_write_end(&row->seq);
    return added;
}

const struct row_names *row_names(const struct rows_header *rows, const struct client_row *row)
{
    return rows_names(rows, row == NULL ? ROWS_NO_NAMES : row->names);
}

struct slice row_statement(const struct row_at *at, const struct rows_header *links)
{
    switch ((enum row_statement)at->row->statement) {
    case ROW_STATEMENT_OWN:
        return rows_statement(at->rows, at->index);
    case ROW_STATEMENT_LINK:
        return rows_statement(links, at->row->link_row);
    case ROW_STATEMENT_NONE:
        break;
    }
    return slice_of("", 0);
}

HOT void row_set_link(struct client_row *row, const struct link *link)
{
    if (row == NULL)
        return;
    shm_write_begin(&row->seq);
    if (row->statement == ROW_STATEMENT_LINK)
        row->statement = ROW_STATEMENT_NONE; /* the new link's is that of whoever had it before */
    put_link(row, link);
    shm_write_end(&row->seq);
}

HOT void row_set_kept(struct client_row *row, const struct link *kept)
{
    if (row == NULL || (row->link_row == (kept == NULL ? ROWS_NO_ROW : kept->row) &&
                           row->server_pid == (kept == NULL ? 0 : kept->server_pid)))
        return;
    shm_write_begin(&row->seq);
    put_kept(row, kept);
    shm_write_end(&row->seq);
}

/* Within shm_write_begin and shm_write_end. */
HOT static inline void put_active(struct client_row *row, int64_t wall_us)
{
    row->state = CLIENT_STATE_ACTIVE;
    row->query_start_us = wall_us;
    row->state_since_us = wall_us;
}

HOT static inline void put_own_statement(const struct row_at *at, struct slice sql)
{
    rows_set_statement(at->rows, at->index, sql);
    at->row->statement = ROW_STATEMENT_OWN;
}

HOT void row_set_statement(
    const struct row_at *at, struct slice sql, bool on_own_link, int64_t wall_us)
{
    struct client_row *row = at->row;

    if (row == NULL)
        return;
    shm_write_begin(&row->seq);
    put_active(row, wall_us);
    if (sql.p != NULL && on_own_link)
        row->statement = ROW_STATEMENT_LINK;
    else if (sql.p != NULL)
        put_own_statement(at, sql);
    shm_write_end(&row->seq);
}

HOT void row_begin(
    const struct row_at *at, const struct link *link, struct slice sql, int64_t wall_us)
{
    struct client_row *row = at->row;

    if (row == NULL)
        return;
    shm_write_begin(&row->seq);
    put_active(row, wall_us);
    put_link(row, link);
    if (sql.p != NULL)
        put_own_statement(at, sql);
    else if (row->statement == ROW_STATEMENT_LINK)
        row->statement = ROW_STATEMENT_NONE;
    shm_write_end(&row->seq);
}

HOT void row_set_idle(struct client_row *row, char tx, int64_t wall_us)
{
    if (row == NULL)
        return;
    shm_write_begin(&row->seq);
    row->state = tx == 'I'   ? CLIENT_STATE_IDLE
                 : tx == 'T' ? CLIENT_STATE_IDLE_TX
                             : CLIENT_STATE_FAILED_TX;
    row->tx_status = tx;
    row->state_since_us = wall_us;
    shm_write_end(&row->seq);
}

HOT void row_end(struct client_row *row, const struct link *kept, int64_t wall_us)
{
    if (row == NULL)
        return;
    shm_write_begin(&row->seq);
    row->state = CLIENT_STATE_IDLE;
    row->tx_status = 'I';
    row->state_since_us = wall_us;
    put_kept(row, kept);
    shm_write_end(&row->seq);
}
