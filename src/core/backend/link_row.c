/* SPDX-License-Identifier: PostgreSQL
 * link_row.c: what shared memory says of a link, for SHOW. Runs in: workers. */
#include "config.h"

#include "backend/pool.h"
#include "backend/row_alloc.h"
#include "base/hot.h"
#include "ipc/rows.h"
#include "net/tls.h"

#include "link_int.h"

static enum link_state link_state_of_phase(const struct link *link)
{
    switch ((enum link_phase)link->phase) {
    case LINK_DIALING:
    case LINK_LOGIN:
        return LINK_STATE_CONNECTING;
    case LINK_LENT:
        return LINK_STATE_LENT;
    case LINK_CLEANING:
        return LINK_STATE_CLEANING;
    case LINK_IDLE:
        return LINK_STATE_IDLE;
    case LINK_CLOSED:
        break;
    }
    return LINK_STATE_FREE;
}

void link_row_update(struct link *link, int client_row)
{
    struct link_row *row = link_row_at(link->be->link_rows, link->row);
    int64_t now = backend_wall_us(link->be);

    if (row == NULL)
        return;
    shm_write_begin(&row->seq);
    if (row->state == LINK_STATE_FREE) {
        row_alloc_name(link->be->row_alloc, link->row, pool_user(link->pool),
            pool_database(link->pool), slice_of("", 0));
        row->worker = (uint16_t)link->be->ordinal;
        row->created_us = now;
        row->released_us = 0;
        row->has_statement = false;
    }
    row->state = (uint8_t)link_state_of_phase(link);
    row->tx_status = link->tx_status;
    row->is_tls = stream_is_secured(&link->stream);
    row->tls_kernel = (uint8_t)stream_tls_kernel(&link->stream) & 3;
    row->server_pid = link->server_pid;
    row->node = (int16_t)link->pool->cluster_node;
    row->uses = link->uses;
    row->protocol = link->version;
    if (link->phase == LINK_LENT && client_row != ROWS_NO_ROW)
        row->acquired_us = now;
    else if (link->phase == LINK_IDLE)
        row->released_us = now;
    row->client_row = client_row;
    shm_write_end(&row->seq);
}

/* Whose server it is stands in the row. */
static bool row_is_known(const struct link_row *row)
{
    return row != NULL && row->state != LINK_STATE_FREE && row->state != LINK_STATE_CONNECTING;
}

int32_t link_row_told_pid(const struct link *link)
{
    const struct link_row *row = link_row_at(link->be->link_rows, link->row);
    const struct client_row *client;

    if (row == NULL || row->client_row == ROWS_NO_ROW)
        return 0;
    client = client_row_at(shm_get(link->be->shm, SHM_CLIENTS), row->client_row);
    return client == NULL ? 0 : client->told_pid;
}

HOT void link_row_note_lent(struct link *link, int client_row)
{
    struct link_row *row = link_row_at(link->be->link_rows, link->row);

    if (!row_is_known(row)) {
        link_row_update(link, client_row);
        return;
    }
    shm_write_begin(&row->seq);
    row->state = LINK_STATE_LENT;
    row->uses = link->uses;
    row->acquired_us = backend_wall_us(link->be);
    row->client_row = client_row;
    shm_write_end(&row->seq);
}

HOT void link_row_note_free(struct link *link)
{
    struct link_row *row = link_row_at(link->be->link_rows, link->row);

    if (!row_is_known(row)) {
        link_row_update(link, ROWS_NO_ROW);
        return;
    }
    shm_write_begin(&row->seq);
    row->state = LINK_STATE_IDLE;
    row->tx_status = link->tx_status;
    row->released_us = backend_wall_us(link->be);
    row->client_row = ROWS_NO_ROW;
    shm_write_end(&row->seq);
}

HOT void link_row_note_begun(struct link *link, int client_row, struct slice sql)
{
    struct link_row *row = link_row_at(link->be->link_rows, link->row);

    if (!row_is_known(row)) {
        link_row_update(link, client_row);
        link_row_note_sent(link, sql);
        return;
    }
    shm_write_begin(&row->seq);
    row->state = LINK_STATE_ACTIVE;
    row->uses = link->uses;
    row->acquired_us = backend_wall_us(link->be);
    row->client_row = client_row;
    if (sql.p != NULL) {
        rows_set_statement(link->be->link_rows, link->row, sql);
        row->has_statement = true;
    }
    shm_write_end(&row->seq);
}

HOT void link_row_note_sent(struct link *link, struct slice sql)
{
    struct link_row *row = link_row_at(link->be->link_rows, link->row);

    if (row == NULL)
        return;
    shm_write_begin(&row->seq);
    row->state = LINK_STATE_ACTIVE;
    if (sql.p != NULL) {
        rows_set_statement(link->be->link_rows, link->row, sql);
        row->has_statement = true;
    }
    shm_write_end(&row->seq);
}

HOT void link_row_note_quiet(struct link *link)
{
    struct link_row *row = link_row_at(link->be->link_rows, link->row);

    if (row == NULL)
        return;
    shm_write_begin(&row->seq);
    row->state = link->tx_status == 'I' ? LINK_STATE_LENT : LINK_STATE_IDLE_TX;
    row->tx_status = link->tx_status;
    shm_write_end(&row->seq);
}
