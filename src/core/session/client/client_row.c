/* SPDX-License-Identifier: PostgreSQL
 * client_row.c: keeps a client's row in shared memory. Called per statement: no system calls. */
#include "config.h"

#include <string.h>

#include "backend/row_alloc.h"
#include "base/hot.h"
#include "net/tls.h"
#include "wire/writer.h"

#include "client/client_orders_int.h"
#include "sstate_int.h"

void client_row_open(struct client *c, const struct session_peer *peer)
{
    struct sessions *ss = c->ss;
    struct client_row *row;

    c->row_index = row_alloc_take(ss->client_row_alloc);
    c->row = client_row_at(ss->client_rows, c->row_index);
    if (c->row == NULL)
        return;
    row = c->row;
    shm_write_begin(&row->seq);
    memset((char *)row + sizeof row->seq, 0, sizeof *row - sizeof row->seq);
    row->state = CLIENT_STATE_LOGIN;
    row->tx_status = 'I';
    row->node = ROWS_NO_NODE;
    row->balance_node = ROWS_NO_NODE;
    row->link_row = ROWS_NO_ROW;
    row->id = session_next_client_id(ss->shared, ss->env->ordinal); /* KILL CLIENT goes by it */
    row->worker = (uint16_t)ss->env->ordinal;
    row->connected_us = backend_wall_us(&ss->be);
    row->state_since_us = row->connected_us;
    memcpy(row->addr, peer->addr, sizeof row->addr);
    row->addr_kind = peer->addr_kind & 3;
    row->port = peer->port;
    shm_write_end(&row->seq);
}

void client_row_adopt(struct client *c, const struct client_row *from, struct slice application,
    struct slice statement)
{
    struct sessions *ss = c->ss;
    struct client_row *row;

    c->row_index = row_alloc_take(ss->client_row_alloc);
    c->row = row = client_row_at(ss->client_rows, c->row_index);
    if (row == NULL)
        return;
    shm_write_begin(&row->seq);
    memcpy((char *)row + offsetof(struct client_row, state),
        (const char *)from + offsetof(struct client_row, state),
        sizeof *row - offsetof(struct client_row, state));
    row->worker = (uint16_t)ss->env->ordinal;
    row->link_row = ROWS_NO_ROW;
    row->statement = statement.n == 0 ? ROW_STATEMENT_NONE : ROW_STATEMENT_OWN;
    if (statement.n > 0)
        rows_set_statement(ss->client_rows, c->row_index, statement);
    row_alloc_name(ss->client_row_alloc, c->row_index, pool_user(c->pool), pool_database(c->pool),
        application);
    shm_write_end(&row->seq);
}

/* Within shm_write_begin and shm_write_end: whose session it is. `params`: of its login. */
static void row_let_in(struct client *c, bool is_superuser, const struct paramset *params)
{
    struct client_row *row = c->row;
    uint32_t version = c->login->version;
    uint8_t secret[ROWS_SECRET_BYTES];

    row->secret_len = (uint8_t)client_make_secret(c->ss, secret, version);
    memcpy(row->secret, secret, sizeof secret);
    /* The row of a client that travels is another's afterwards, its id is not. */
    row->told_pid = c->link == NULL || c->kind->pool_mode(c) != CONF_POOL_SESSION
                        ? (int32_t)(ROWS_FIRST_TOLD_PID + row->id % ROWS_FIRST_TOLD_PID)
                        : c->link->server_pid;
    row->protocol = version;
    row->is_superuser = is_superuser;
    row->tls_version = (uint8_t)stream_tls_version_no(&c->stream);
    row->tls_cipher = (uint16_t)stream_tls_cipher_no(&c->stream);
    row->tls_kernel = (uint8_t)stream_tls_kernel(&c->stream);
    row_alloc_name(c->ss->client_row_alloc, c->row_index, pool_user(c->pool),
        pool_database(c->pool), paramset_get(params, slice_of_str("application_name")));
}

void client_row_console(struct client *c, bool is_superuser)
{
    if (c->row == NULL)
        return;
    shm_write_begin(&c->row->seq);
    row_let_in(c, is_superuser, &c->login->params);
    shm_write_end(&c->row->seq);
    client_row_state(c, CLIENT_STATE_IDLE, WAIT_REASON_NONE);
}

void client_row_put_key(const struct client *c, struct buf *out)
{
    const struct client_row *row = c->row;

    wire_put_key_data(out, row == NULL ? 0 : row->told_pid,
        row == NULL ? slice_of("\0\0\0\0", 4)
                    : slice_of((const char *)row->secret, row->secret_len));
}

/* The login is over: whose session it is, on which link. */
void client_row_login(struct client *c)
{
    struct client_row *row = c->row;

    if (row == NULL)
        return;
    shm_write_begin(&row->seq);
    row_let_in(c, pool_is_superuser(c->pool), client_login_parameters(c));
    row->server_pid = c->link == NULL ? 0 : c->link->server_pid;
    row->node = (int16_t)c->pool->cluster_node;
    row->balance_node = row->node;
    row->link_row = c->link == NULL ? ROWS_NO_ROW : c->link->row;
    row->pool_mode = (uint8_t)c->kind->pool_mode(c) & 3;
    shm_write_end(&row->seq);
    client_row_state(c, CLIENT_STATE_IDLE, WAIT_REASON_NONE);
    client_row_pin(
        c, c->kind->pool_mode(c) == CONF_POOL_SESSION ? ROWS_PIN(PIN_REASON_SESSION_MODE) : 0);
    if (c->link != NULL)
        link_row_update(c->link, c->row_index);
    if (c->ss->nclients == 1)
        task_post(c->ss->loop, &c->ss->publish); /* the title names it */
}

void client_row_application(struct client *c, struct slice application)
{
    const struct row_names *names = client_row_names(c);

    if (c->row == NULL)
        return;
    shm_write_begin(&c->row->seq);
    row_alloc_name(
        c->ss->client_row_alloc, c->row_index, row_user(names), row_database(names), application);
    shm_write_end(&c->row->seq);
}

HOT void client_row_link(struct client *c)
{
    struct client_row *row = c->row;

    link_row_note_lent(c->link, c->row_index);
    if (row == NULL)
        return;
    shm_write_begin(&row->seq);
    if (row->statement == ROW_STATEMENT_LINK)
        row->statement = ROW_STATEMENT_NONE; /* the new link's is that of whoever had it before */
    row->link_row = c->link->row;
    row->server_pid = c->link->server_pid;
    row->node = (int16_t)c->link->pool->cluster_node;
    shm_write_end(&row->seq);
}

HOT void client_row_unlink(struct client *c)
{
    const struct link *kept = c->kind->kept(c);
    int32_t link_row = kept == NULL ? ROWS_NO_ROW : kept->row;
    int32_t pid = kept == NULL ? 0 : kept->server_pid;
    struct client_row *row = c->row;

    if (row == NULL || (row->link_row == link_row && row->server_pid == pid))
        return;
    shm_write_begin(&row->seq);
    row->link_row = link_row;
    row->server_pid = pid;
    if (kept != NULL)
        row->node = (int16_t)kept->pool->cluster_node;
    shm_write_end(&row->seq);
}

void client_row_pin(struct client *c, unsigned pins)
{
    struct client_row *row = c->row;
    unsigned added;
    int i;

    if (row == NULL || row->pins == pins)
        return;
    added = pins & ~(unsigned)row->pins;
    shm_write_begin(&row->seq);
    row->pins = (uint16_t)pins;
    shm_write_end(&row->seq);
    for (i = 0; c->stats.row != NULL && i < PIN_REASON_COUNT; i++)
        if ((added & ROWS_PIN(i)) != 0)
            dbstats_add(&c->stats.row->npins[i], 1);
}

void client_row_state(struct client *c, enum client_state state, enum wait_reason reason)
{
    struct client_row *row = c->row;

    if (state == CLIENT_STATE_WAITING) {
        client_stats_on_wait_begin(c);
        client_limits_on_busy(c);
    }
    if (row == NULL)
        return;
    shm_write_begin(&row->seq);
    /* Who waits tries again now and then, and still waits since the beginning. */
    if (row->state != CLIENT_STATE_WAITING || state != CLIENT_STATE_WAITING)
        row->state_since_us = backend_wall_us(&c->ss->be);
    row->state = (uint8_t)state;
    row->wait_reason = (uint8_t)reason;
    if (c->target != NULL)
        row->tx_status = c->kind->tx_status(c);
    if (state == CLIENT_STATE_WAITING && c->pool != NULL)
        row->node = (int16_t)c->pool->cluster_node;
    if (state == CLIENT_STATE_WAITING && c->pool != NULL && row_user(client_row_names(c)).n == 0)
        row_alloc_name(c->ss->client_row_alloc, c->row_index, pool_user(c->pool),
            pool_database(c->pool), slice_of("", 0));
    shm_write_end(&row->seq);
}

/* Within shm_write_begin and shm_write_end. */
static inline void row_set_active(struct client_row *row, int64_t now_us)
{
    row->state = CLIENT_STATE_ACTIVE;
    row->query_start_us = now_us;
    row->state_since_us = now_us;
}

/* `sql` with p == NULL: the statement is the one before. `on_own_link`: its row has the text. */
HOT static void row_note_statement(struct client *c, struct slice sql, bool on_own_link)
{
    struct client_row *row = c->row;

    if (row == NULL)
        return;
    shm_write_begin(&row->seq);
    row_set_active(row, backend_wall_us(&c->ss->be));
    if (sql.p != NULL && on_own_link) {
        row->statement = ROW_STATEMENT_LINK;
    } else if (sql.p != NULL) {
        rows_set_statement(c->ss->client_rows, c->row_index, sql);
        row->statement = ROW_STATEMENT_OWN;
    }
    shm_write_end(&row->seq);
}

void client_note_local(struct client *c, struct slice sql)
{
    row_note_statement(c, sql, false);
}

void client_note_statement(struct client *c, struct slice sql)
{
    client_orders_on_statement(c, sql);
    client_note_sent(c, sql);
}

HOT static inline void note_text(struct client *c, struct slice sql)
{
    client_stats_on_sent(c);
    if (sql.p != NULL && c->ss->stmts != NULL)
        client_stmts_text(c, sql);
    if (sql.p != NULL && log_has_jsonlog())
        client_trace_comment(c, sql);
    client_limits_on_busy(c);
}

HOT void client_note_sent(struct client *c, struct slice sql)
{
    note_text(c, sql);
    if (c->target != NULL)
        link_row_note_sent(c->target, sql);
    row_note_statement(c, sql, c->kind->tells_by_link(c));
}

HOT void client_note_begun(struct client *c, struct slice sql)
{
    struct client_row *row = c->row;

    note_text(c, sql);
    link_row_note_begun(c->link, c->row_index, sql);
    if (row == NULL)
        return;
    shm_write_begin(&row->seq);
    row_set_active(row, backend_wall_us(&c->ss->be));
    row->link_row = c->link->row;
    row->server_pid = c->link->server_pid;
    row->node = (int16_t)c->link->pool->cluster_node;
    if (sql.p != NULL) {
        rows_set_statement(c->ss->client_rows, c->row_index, sql);
        row->statement = ROW_STATEMENT_OWN;
    } else if (row->statement == ROW_STATEMENT_LINK) {
        row->statement = ROW_STATEMENT_NONE;
    }
    shm_write_end(&row->seq);
}

static void row_note_idle(struct client_row *row, char tx, int64_t now_us)
{
    shm_write_begin(&row->seq);
    row->state = tx == 'I'   ? CLIENT_STATE_IDLE
                 : tx == 'T' ? CLIENT_STATE_IDLE_TX
                             : CLIENT_STATE_FAILED_TX;
    row->tx_status = tx;
    row->state_since_us = now_us;
    shm_write_end(&row->seq);
}

/* While the clocks of the exchange still run. */
COLD static void tell_duration(struct client *c)
{
    const struct client_stats *s = &c->stats;

    if (s->sent_us != 0 && c->target != NULL)
        client_log_duration(c, s->taken_us == 0 ? 0 : s->sent_us - s->taken_us,
            loop_now_us(c->ss->loop) - s->sent_us);
}

HOT static inline void note_end(struct client *c)
{
    const struct conf *conf = c->ss->conf;

    c->last_active_us = loop_now_us(c->ss->loop);
    /* -1 says no; of two of them that leaves a negative number. */
    if ((conf->log_min_duration_statement_ms & conf->log_min_duration_sample_ms) >= 0)
        tell_duration(c);
    client_stats_on_quiet(c);
    if (c->rare != NULL)
        c->rare->comment.trace_id[0] = '\0';
}

HOT void client_note_done(struct client *c)
{
    const struct link *kept = c->sstate->kept;
    struct client_row *row = c->row;

    note_end(c);
    if (row != NULL) {
        shm_write_begin(&row->seq);
        row->state = CLIENT_STATE_IDLE;
        row->tx_status = 'I';
        row->state_since_us = backend_wall_us(&c->ss->be);
        row->link_row = kept == NULL ? ROWS_NO_ROW : kept->row;
        row->server_pid = kept == NULL ? 0 : kept->server_pid;
        if (kept != NULL)
            row->node = (int16_t)kept->pool->cluster_node;
        shm_write_end(&row->seq);
    }
    client_limits_on_quiet(c);
    if (c->drops_database)
        client_orders_on_quiet(c, false);
}

HOT void client_note_idle(struct client *c)
{
    note_end(c);
    if (c->target != NULL)
        link_row_note_quiet(c->target);
    if (c->row != NULL)
        row_note_idle(c->row, c->kind->tx_status(c), backend_wall_us(&c->ss->be));
    client_limits_on_quiet(c);
    if (c->drops_database)
        client_orders_on_quiet(c, c->kind->tx_status(c) != 'I');
}
