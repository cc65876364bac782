/* SPDX-License-Identifier: PostgreSQL
 * client_note.c: what a client does is told to its accounts (src/core/account): its row, its
 * counters and clocks, its statements. Called per statement: no system calls. */
#include "config.h"

#include "base/hot.h"
#include "net/tls.h"
#include "wire/writer.h"

#include "client/client_watch_int.h"
#include "sstate_int.h"

/* ---- its row ---- */

HOT static inline struct row_at row_of(const struct client *c)
{
    return (struct row_at){c->row, c->ss->client_rows, c->ss->client_row_alloc, c->row_index};
}

static struct row_whose whose_of(const struct client *c, struct slice application)
{
    return (struct row_whose){pool_user(c->pool), pool_database(c->pool), application};
}

static void take_row(struct client *c)
{
    struct row_at at = row_take(c->ss->client_rows, c->ss->client_row_alloc);

    c->row_index = at.index;
    c->row = at.row;
}

void client_row_open(struct client *c, const struct session_peer *peer)
{
    struct sessions *ss = c->ss;
    struct row_birth b = {.ordinal = ss->env->ordinal,
        .addr = peer->addr,
        .addr_kind = peer->addr_kind,
        .port = peer->port};

    take_row(c);
    if (c->row == NULL)
        return;
    b.id = session_next_client_id(ss->shared, ss->env->ordinal);
    row_open(c->row, &b, backend_wall_us(&ss->be));
}

void client_row_adopt(struct client *c, const struct client_row *from, struct slice application,
    struct slice statement)
{
    struct row_whose whose = whose_of(c, application);
    struct row_at at;

    take_row(c);
    at = row_of(c);
    row_adopt(&at, from, c->ss->env->ordinal, &whose, statement);
}

/* `params`: of its login. */
static void note_login(struct client *c, struct row_login *l, const struct paramset *params)
{
    struct row_at at = row_of(c);

    if (c->row == NULL)
        return;
    l->whose = whose_of(c, paramset_get(params, slice_of_str("application_name")));
    l->protocol = c->login->version;
    l->secret_len = client_make_secret(c->ss, l->secret, l->protocol);
    l->tls_version = (uint8_t)stream_tls_version_no(&c->stream);
    l->tls_cipher = (uint16_t)stream_tls_cipher_no(&c->stream);
    l->tls_kernel = (uint8_t)stream_tls_kernel(&c->stream);
    row_login(&at, l);
    client_row_state(c, CLIENT_STATE_IDLE, WAIT_REASON_NONE);
}

void client_row_console(struct client *c, bool is_superuser)
{
    struct row_login l = {.is_superuser = is_superuser, .node = ROWS_NO_NODE};

    note_login(c, &l, &c->login->params);
}

/* The login is over. */
void client_row_login(struct client *c)
{
    struct row_login l = {.is_superuser = pool_is_superuser(c->pool),
        .link = c->link,
        .node = (int16_t)c->pool->cluster_node,
        .pool_mode = (uint8_t)c->kind->pool_mode(c)};

    if (c->row == NULL)
        return;
    l.keeps_link = c->link != NULL && l.pool_mode == CONF_POOL_SESSION;
    note_login(c, &l, client_login_parameters(c));
    client_row_pin(c, l.pool_mode == CONF_POOL_SESSION ? ROWS_PIN(PIN_REASON_SESSION_MODE) : 0);
    if (c->link != NULL)
        link_row_update(c->link, c->row_index);
    if (c->ss->nclients == 1)
        task_post(c->ss->loop, &c->ss->publish); /* the title names it */
}

void client_row_put_key(const struct client *c, struct buf *out)
{
    const struct client_row *row = c->row;

    wire_put_key_data(out, row == NULL ? 0 : row->told_pid,
        row == NULL ? slice_of("\0\0\0\0", 4)
                    : slice_of((const char *)row->secret, row->secret_len));
}

void client_row_application(struct client *c, struct slice application)
{
    struct row_at at = row_of(c);

    row_set_application(&at, application);
}

const struct row_names *client_row_names(const struct client *c)
{
    return row_names(c->ss->client_rows, c->row);
}

struct slice client_row_statement(const struct client *c)
{
    struct row_at at = row_of(c);

    return row_statement(&at, c->ss->be.link_rows);
}

HOT void client_row_link(struct client *c)
{
    link_row_note_lent(c->link, c->row_index);
    row_set_link(c->row, c->link);
}

HOT void client_row_unlink(struct client *c)
{
    row_set_kept(c->row, c->kind->kept(c));
}

void client_row_pin(struct client *c, unsigned pins)
{
    stats_on_pins(&c->stats, row_set_pins(c->row, pins));
}

void client_row_state(struct client *c, enum client_state state, enum wait_reason reason)
{
    struct row_state s = {.state = state, .reason = reason, .node = ROWS_NO_NODE};
    struct row_at at = row_of(c);

    if (state == CLIENT_STATE_WAITING) {
        stats_on_wait_begin(&c->stats, loop_now_us(c->ss->loop));
        client_limits_on_busy(c);
    }
    if (c->row == NULL)
        return;
    if (c->target != NULL)
        s.tx_status = c->kind->tx_status(c);
    if (state == CLIENT_STATE_WAITING && c->pool != NULL) {
        s.node = (int16_t)c->pool->cluster_node;
        s.whose = whose_of(c, slice_of("", 0));
    }
    row_set_state(&at, &s, backend_wall_us(&c->ss->be));
}

/* ---- its statements, with track_statements ---- */

void session_stmts_set(struct sessions *ss)
{
    const struct stmts_worker of = {.shm = ss->env->shm,
        .sql_cache = ss->sql_cache,
        .scratch = ss->scratch,
        .range = rows_worker(ss->client_rows, (uint32_t)ss->env->ordinal),
        .ordinal = ss->env->ordinal};

    if (!ss->conf->track_statements) {
        ss->stmts = NULL;
        return;
    }
    if (ss->stmts != NULL)
        return;
    /* The book that was used before is used on: handles out of it are noted beside texts. */
    if (ss->stmts_kept == NULL)
        ss->stmts_kept = stmts_new(&of);
    if (ss->stmts_kept != NULL)
        stmts_begin(ss->stmts_kept);
    ss->stmts = ss->stmts_kept;
}

/* NULL: it is not counted. */
HOT static inline struct client_stmt *stmt_of(const struct client *c)
{
    return c->ss->stmts == NULL || c->row == NULL ? NULL : stmts_of(c->ss->stmts, c->row_index);
}

HOT static inline struct stmts_place stmts_at(const struct client *c, const struct pool *pool)
{
    return (struct stmts_place){c->stats.row, pool};
}

HOT static void stmts_on_text(struct client *c, struct slice sql)
{
    struct client_stmt *st = stmt_of(c);

    if (st != NULL && c->target != NULL)
        stmts_text(c->ss->stmts, st, stmts_at(c, c->target->pool), sql);
}

HOT bool client_stmts_is_known(struct client *c, stmtstats_handle known)
{
    struct client_stmt *st = stmt_of(c);

    if (st == NULL)
        return true; /* nobody asks */
    return c->target != NULL &&
           stmts_is_known(c->ss->stmts, st, stmts_at(c, c->target->pool), known);
}

stmtstats_handle client_stmts_bound(struct client *c, struct slice sql)
{
    const struct client_stmt *st = stmt_of(c);

    stmts_on_text(c, sql);
    return st == NULL ? 0 : st->handle;
}

bool client_stmts_fingerprint(const struct client *c, uint64_t *fingerprint)
{
    const struct client_stmt *st = stmt_of(c);

    return st != NULL && stmtstats_fingerprint(c->ss->stmts->book, st->handle, fingerprint);
}

void client_stmts_unknown(struct client *c)
{
    struct client_stmt *st = stmt_of(c);

    if (st != NULL)
        st->handle = 0;
}

HOT void client_stmts_rows(struct client *c)
{
    struct client_stmt *st = stmt_of(c);

    if (st != NULL)
        st->use.nrows += c->ss->be.nrows;
    c->ss->be.nrows = 0;
}

void client_stmts_error(struct client *c)
{
    struct client_stmt *st = stmt_of(c);

    if (st != NULL)
        st->use.nerrors++;
}

void client_stmts_hit(struct client *c, struct slice sql)
{
    if (stmt_of(c) != NULL)
        stmts_hit(c->ss->stmts, stmts_at(c, c->pool), sql);
}

HOT static inline void stmts_on_end(struct client *c, int64_t took_us)
{
    struct client_stmt *st = stmt_of(c);

    if (st != NULL)
        stmts_end(c->ss->stmts, st, took_us);
}

/* ---- an exchange ---- */

HOT void client_stats_on_queries(struct client *c, unsigned n)
{
    struct client_stmt *st = stmt_of(c);

    stats_on_queries(&c->stats, n, loop_now_us(c->ss->loop));
    if (st != NULL)
        st->use.calls += n;
}

void client_note_local(struct client *c, struct slice sql)
{
    struct row_at at = row_of(c);

    row_set_statement(&at, sql, false, backend_wall_us(&c->ss->be));
}

void client_note_statement(struct client *c, struct slice sql)
{
    client_watch_statement(c, sql);
    client_note_sent(c, sql);
}

/* With jsonlog: what the comment of a statement that is sent says of whose request it is, until
 * the exchange is over. */
COLD static void note_comment(struct client *c, struct slice sql)
{
    struct sql_trace found;

    if (sqlcomment_trace(sql, &found) || c->rare != NULL)
        client_rare(c)->comment = found;
}

HOT static inline void note_text(struct client *c, struct slice sql)
{
    stats_on_sent(&c->stats, loop_now_us(c->ss->loop));
    if (sql.p != NULL && c->ss->stmts != NULL)
        stmts_on_text(c, sql);
    if (sql.p != NULL && log_has_jsonlog())
        note_comment(c, sql);
    client_limits_on_busy(c);
}

HOT void client_note_sent(struct client *c, struct slice sql)
{
    struct row_at at = row_of(c);

    note_text(c, sql);
    if (c->target != NULL)
        link_row_note_sent(c->target, sql);
    row_set_statement(&at, sql, c->kind->tells_by_link(c), backend_wall_us(&c->ss->be));
}

HOT void client_note_begun(struct client *c, struct slice sql)
{
    struct row_at at = row_of(c);

    note_text(c, sql);
    link_row_note_begun(c->link, c->row_index, sql);
    row_begin(&at, c->link, sql, backend_wall_us(&c->ss->be));
}

HOT static inline void note_end(struct client *c)
{
    const struct conf *conf = c->ss->conf;

    c->last_active_us = loop_now_us(c->ss->loop);
    /* -1 says no; of two of them that leaves a negative number. */
    if ((conf->log_min_duration_statement_ms & conf->log_min_duration_sample_ms) >= 0)
        client_log_duration(c); /* while the clocks of the exchange still run */
    stmts_on_end(c, stats_on_quiet(&c->stats, c->last_active_us, c->target));
    if (c->rare != NULL)
        c->rare->comment.trace_id[0] = '\0';
}

HOT void client_note_done(struct client *c)
{
    note_end(c);
    row_end(c->row, c->sstate->kept, backend_wall_us(&c->ss->be));
    client_limits_on_quiet(c);
    if (c->drops_database)
        client_watch_on_quiet(c, false);
}

HOT void client_note_idle(struct client *c)
{
    char tx = c->kind->tx_status(c);

    note_end(c);
    if (c->target != NULL)
        link_row_note_quiet(c->target);
    row_set_idle(c->row, tx, backend_wall_us(&c->ss->be));
    client_limits_on_quiet(c);
    if (c->drops_database)
        client_watch_on_quiet(c, tx != 'I');
}
