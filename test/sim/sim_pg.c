/* SPDX-License-Identifier: PostgreSQL
 * sim_pg.c: the protocol side of a modelled PostgreSQL session. */
#include "config.h"

#include "sim_pg.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "wire/reader.h"
#include "wire/writer.h"

const char *const pg_var_names[PG_NVARS] = {
    "application_name", "timezone", "intervalstyle", "work_mem", "search_path", "my.own", "role"};

static const char *const reported_names[PG_NREPORTED] = {
    "application_name", "TimeZone", "IntervalStyle"};

static void copy_text(char *to, size_t size, struct slice from)
{
    size_t n = from.n < size - 1 ? from.n : size - 1;

    if (n > 0)
        memcpy(to, from.p, n);
    to[n] = '\0';
}

void pg_session_init(struct pg_session *s, const char *params, size_t n)
{
    static const char *const boot[PG_NVARS] = {"", "UTC", "postgres", "4MB", "public", "", "none"};
    const char *end = params + n;
    const char *value;
    int i;

    memset(s, 0, sizeof *s);
    s->tx = 'I';
    for (i = 0; i < PG_NVARS; i++)
        copy_text(s->base.v[i], PG_VALUE_BYTES, slice_of_str(boot[i]));
    while (params < end && *params != '\0') {
        value = params + strlen(params) + 1;
        for (i = 0; i < PG_NVARS; i++)
            if (strcasecmp(params, pg_var_names[i]) == 0)
                copy_text(s->base.v[i], PG_VALUE_BYTES, slice_of_str(value));
        params = value + strlen(value) + 1;
    }
    s->vars.now = s->base;
    s->vars.session = s->base;
    s->mark = s->vars;
    s->tx_vars = s->vars;
    s->told = s->base;
}

void pg_put_parameters(struct pg_session *s, struct buf *out)
{
    static const char *const fixed[][2] = {{"server_version", "15.1"}, {"server_encoding", "UTF8"},
        {"client_encoding", "UTF8"}, {"is_superuser", "off"}, {"session_authorization", "u"},
        {"DateStyle", "ISO, MDY"}, {"integer_datetimes", "on"},
        {"standard_conforming_strings", "on"}};
    size_t i;

    for (i = 0; i < sizeof fixed / sizeof fixed[0]; i++)
        wire_put_parameter_status(out, slice_of_str(fixed[i][0]), slice_of_str(fixed[i][1]));
    for (i = 0; i < PG_NREPORTED; i++)
        wire_put_parameter_status(
            out, slice_of_str(reported_names[i]), slice_of_str(s->vars.now.v[i]));
    s->told = s->vars.now;
}

static void put_ready(struct pg_session *s, struct buf *out)
{
    int i;

    for (i = 0; i < PG_NREPORTED; i++)
        if (strcmp(s->vars.now.v[i], s->told.v[i]) != 0)
            wire_put_parameter_status(
                out, slice_of_str(reported_names[i]), slice_of_str(s->vars.now.v[i]));
    s->told = s->vars.now;
    wire_put_ready(out, s->tx);
}

/* ---- errors and ends ---- */

static void put_error(struct buf *out, const char *sqlstate, const char *text)
{
    struct err err;

    err_clear(&err);
    err_set(&err, sqlstate, "%s", text);
    wire_put_err(out, &err);
}

void pg_error(struct pg_session *s, struct buf *out, const char *sqlstate, const char *fmt, ...)
{
    char text[256];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    put_error(out, sqlstate, text);
    s->failed = true;
    pg_abort_work(s);
}

void pg_fail(struct pg_session *s, bool is_query)
{
    s->copying = 0;
    pg_abort_work(s);
    s->skipping = !is_query;
}

static void drop_unnamed(struct pg_session *s)
{
    struct pg_statement *unnamed = pg_find_statement(s, slice_of("", 0));

    if (unnamed != NULL)
        unnamed->used = false;
}

void pg_refuse(
    struct pg_session *s, char type, const char *sqlstate, const char *text, struct buf *out)
{
    if (s->copying != 0)
        type = s->copying == 'Q' ? FE_QUERY : FE_EXECUTE;
    s->copying = 0;
    if (type == FE_QUERY)
        drop_unnamed(s);
    pg_error(s, out, sqlstate, "%s", text);
    if (type == FE_QUERY)
        put_ready(s, out);
    else
        s->skipping = true;
}

/* ---- statements and portals ---- */

static struct slice known_name(struct slice name)
{
    return slice_of(name.p, name.n < PG_NAME_BYTES ? name.n : PG_NAME_BYTES - 1);
}

struct pg_statement *pg_find_statement(struct pg_session *s, struct slice name)
{
    int i;

    name = known_name(name);
    for (i = 0; i < PG_MAX_STATEMENTS; i++)
        if (s->statement[i].used && slice_eq_str(name, s->statement[i].name))
            return &s->statement[i];
    return NULL;
}

bool pg_add_statement(struct pg_session *s, struct slice name, struct slice sql, struct buf *out)
{
    struct pg_statement *st = pg_find_statement(s, name);
    int i;

    if (st != NULL && name.n > 0) {
        pg_error(
            s, out, "42P05", "prepared statement \"%.*s\" already exists", (int)name.n, name.p);
        return false;
    }
    for (i = 0; i < PG_MAX_STATEMENTS && st == NULL; i++)
        if (!s->statement[i].used)
            st = &s->statement[i];
    if (st == NULL || sql.n >= PG_SQL_BYTES) {
        pg_error(s, out, "54000", "the model has no room");
        return false;
    }
    st->used = true;
    copy_text(st->name, sizeof st->name, name);
    copy_text(st->sql, sizeof st->sql, sql);
    return true;
}

struct pg_portal *pg_find_portal(struct pg_session *s, struct slice name)
{
    int i;

    for (i = 0; i < PG_MAX_PORTALS; i++)
        if (s->portal[i].used && slice_eq_str(name, s->portal[i].name))
            return &s->portal[i];
    return NULL;
}

static struct pg_portal *new_portal(struct pg_session *s, struct slice name)
{
    struct pg_portal *p = pg_find_portal(s, name);
    int i;

    for (i = 0; i < PG_MAX_PORTALS && p == NULL; i++)
        if (!s->portal[i].used)
            p = &s->portal[i];
    if (p == NULL)
        return NULL;
    memset(p, 0, sizeof *p);
    p->used = true;
    p->level = s->nsavepoints;
    copy_text(p->name, sizeof p->name, name);
    return p;
}

/* ---- messages ---- */

static bool is_aborted(struct pg_session *s, struct slice sql, struct buf *out)
{
    if (s->tx != 'E' || pg_ends_transaction(sql))
        return false;
    pg_error(s, out, "25P02",
        "current transaction is aborted, commands ignored until end of transaction block");
    return true;
}

/* A message that a server refuses before it does anything. */
static bool is_malformed(struct pg_session *s, struct wire_reader *r, struct buf *out)
{
    if (!r->bad && r->p == r->end)
        return false;
    pg_error(s, out, "08P01", "invalid message format");
    return true;
}

/* Each statement runs in a portal without a name, which an error leaves behind. */
static void run_all(struct pg_session *s, struct slice sql, struct buf *out)
{
    struct pg_args none = {0};
    struct pg_portal *portal;
    bool is_over = false;

    while (!is_over && !pg_is_blank(sql) && !is_aborted(s, sql, out)) {
        portal = new_portal(s, slice_of("", 0));
        if (portal != NULL)
            copy_text(portal->sql, sizeof portal->sql, sql);
        is_over = !pg_run(s, &sql, &none, true, out) || s->copying != 0;
        portal = pg_find_portal(s, slice_of("", 0));
        if (portal != NULL) {
            portal->is_failed = s->failed;
            portal->used = s->failed;
        }
    }
}

static void on_query(struct pg_session *s, struct slice body, struct buf *out)
{
    struct wire_reader r;
    struct slice sql;

    wire_reader_init(&r, body);
    sql = wire_get_cstr(&r);
    if (is_malformed(s, &r, out)) {
        put_ready(s, out);
        return;
    }
    drop_unnamed(s);
    if (pg_is_blank(sql))
        wire_put_empty(out, BE_EMPTY_QUERY);
    s->in_query = true;
    s->in_string = pg_is_string(sql);
    run_all(s, sql, out);
    s->in_query = s->in_string = false;
    if (s->copying != 0)
        return; /* the last of its string here: the rest comes with the end of it */
    if (!s->failed)
        pg_end_implicit(s);
    put_ready(s, out);
}

static void on_parse(struct pg_session *s, struct slice body, struct buf *out)
{
    struct wire_reader r;
    struct slice name;
    struct slice sql;
    int ntypes;

    wire_reader_init(&r, body);
    name = wire_get_cstr(&r);
    sql = wire_get_cstr(&r);
    for (ntypes = wire_get_u16(&r); ntypes > 0; ntypes--)
        (void)wire_get_u32(&r);
    if (is_malformed(s, &r, out))
        return;
    if (name.n == 0)
        drop_unnamed(s);
    if (pg_columns(s, sql) == -1) {
        pg_error(s, out, "42601", "syntax error at or near \"%.*s\"", (int)sql.n, sql.p);
        return;
    }
    if (is_aborted(s, sql, out))
        return;
    if (pg_add_statement(s, name, sql, out))
        wire_put_empty(out, BE_PARSE_COMPLETE);
}

static void on_bind(struct pg_session *s, struct slice body, struct buf *out)
{
    struct pg_statement *st;
    struct pg_portal *p;
    struct wire_reader r;
    struct slice portal;
    struct slice name;
    bool is_null;
    int nformats;
    int nargs;
    int i;

    wire_reader_init(&r, body);
    portal = wire_get_cstr(&r);
    name = wire_get_cstr(&r);
    st = pg_find_statement(s, name);
    if (st == NULL) {
        pg_error(s, out, "26000",
            name.n == 0 ? "unnamed prepared statement does not exist"
                        : "prepared statement \"%.*s\" does not exist",
            (int)name.n, name.p);
        return;
    }
    for (nformats = wire_get_u16(&r); nformats > 0; nformats--)
        (void)wire_get_u16(&r);
    nargs = wire_get_u16(&r);
    if (nargs != pg_nargs(slice_of_str(st->sql)) || nargs > PG_MAX_ARGS) {
        pg_error(s, out, "08P01", "bind message supplies %d parameters", nargs);
        return;
    }
    if (is_aborted(s, slice_of_str(st->sql), out))
        return;
    if (portal.n > 0 && pg_find_portal(s, portal) != NULL) {
        pg_error(s, out, "42P03", "cursor \"%.*s\" already exists", (int)portal.n, portal.p);
        return;
    }
    p = new_portal(s, portal);
    if (p == NULL) {
        pg_error(s, out, "54000", "the model has no room");
        return;
    }
    copy_text(p->sql, sizeof p->sql, slice_of_str(st->sql));
    p->nargs = nargs;
    for (i = 0; i < nargs; i++)
        copy_text(p->arg[i], PG_VALUE_BYTES, wire_get_value(&r, &is_null));
    wire_put_empty(out, BE_BIND_COMPLETE);
}

static bool has_columns(struct pg_session *s, const char *sql)
{
    return pg_columns(s, slice_of_str(sql)) > 0;
}

static void put_description(struct pg_session *s, const char *sql, struct buf *out)
{
    int n = pg_columns(s, slice_of_str(sql));

    if (n <= 0)
        wire_put_empty(out, BE_NO_DATA);
    else
        pg_put_columns(out, n);
}

static void on_describe(struct pg_session *s, struct slice body, struct buf *out)
{
    struct slice name = slice_of(body.p + 1, body.n - 2);
    struct pg_statement *st = pg_find_statement(s, name);
    struct pg_portal *p = pg_find_portal(s, name);
    uint32_t start;
    int i;

    if (body.p[0] == 'P' && p == NULL) {
        pg_error(s, out, "34000", "portal \"%.*s\" does not exist", (int)name.n, name.p);
    } else if (body.p[0] == 'P') {
        if (!has_columns(s, p->sql) || !is_aborted(s, slice_of_str(p->sql), out))
            put_description(s, p->sql, out);
    } else if (st == NULL) {
        pg_error(s, out, "26000",
            name.n == 0 ? "unnamed prepared statement does not exist"
                        : "prepared statement \"%.*s\" does not exist",
            (int)name.n, name.p);
    } else if (!has_columns(s, st->sql) || !is_aborted(s, slice_of_str(st->sql), out)) {
        start = wire_begin(out, BE_PARAMETER_DESCRIPTION);
        buf_put_u16(out, (uint16_t)pg_nargs(slice_of_str(st->sql)));
        for (i = 0; i < pg_nargs(slice_of_str(st->sql)); i++)
            buf_put_u32(out, 25);
        wire_end(out, start);
        put_description(s, st->sql, out);
    }
}

/* What a DISCARD ALL or a transaction's word has done is done; the rest is one transaction. */
static void end_of_execute(struct pg_session *s, struct slice sql)
{
    if (s->failed)
        return;
    if (pg_is_discard(sql))
        pg_end_implicit(s);
    else if (!pg_is_transaction(sql))
        s->is_pipeline = true;
}

/* False: it is over, or nothing can be had of it, and that was said. */
static bool may_execute(struct pg_session *s, struct pg_portal *p, struct buf *out)
{
    bool goes_on = p->rows_left > 0;

    if (is_aborted(s, slice_of_str(p->sql), out))
        return false;
    p->is_done = p->is_done && !goes_on;
    if (!p->is_done) /* later, what it executes may have another name */
        p->has_rows = pg_columns(s, slice_of_str(p->sql)) > 0;
    if (p->is_done && p->has_rows && !p->is_failed) {
        wire_put_command_complete(out, "SELECT 0");
        return false;
    }
    if (p->is_done || p->is_failed) {
        pg_error(s, out, "55000", "portal \"%s\" cannot be run", p->name);
        return false;
    }
    return true;
}

static void on_execute(struct pg_session *s, struct slice body, struct buf *out)
{
    struct slice name = slice_of_str(body.p);
    struct pg_portal *p = pg_find_portal(s, name);
    struct pg_portal copy;
    struct pg_args args;
    struct slice sql;

    if (p == NULL) {
        pg_error(s, out, "34000", "portal \"%.*s\" does not exist", (int)name.n, name.p);
        return;
    }
    if (pg_is_blank(slice_of_str(p->sql))) {
        wire_put_empty(out, BE_EMPTY_QUERY);
        return;
    }
    if (!may_execute(s, p, out))
        return;
    p->is_done = true;
    copy = *p; /* the statement may drop it */
    args = (struct pg_args){copy.nargs, (const char(*)[PG_VALUE_BYTES])copy.arg};
    sql = slice_of_str(copy.sql);
    s->row_limit = proto_get_u32(body.p + name.n + 1);
    s->rows_left = copy.rows_left;
    (void)pg_run(s, &sql, &args, false, out);
    end_of_execute(s, slice_of_str(copy.sql));
    p = pg_find_portal(s, slice_of_str(copy.name));
    if (p != NULL)
        p->rows_left = s->is_suspended ? s->rows_left : 0;
    if (p != NULL && s->failed)
        p->is_failed = true;
    s->row_limit = 0;
    s->rows_left = 0;
    s->is_suspended = false;
}

/* ---- COPY FROM STDIN ---- */

static void end_copy(struct pg_session *s, struct buf *out)
{
    bool is_query = s->copying == 'Q';

    s->copying = 0;
    if (!is_query)
        return;
    if (!s->failed)
        pg_end_implicit(s);
    put_ready(s, out);
    s->failed = false; /* an error in a query skips nothing */
}

static void on_copy(struct pg_session *s, char type, struct slice body, struct buf *out)
{
    char tag[24];

    if (type == FE_COPY_DATA && s->nwrites < PG_MAX_WRITES) {
        s->write[s->nwrites++] = atoi(body.p); /* ends with a new-line */
        s->ncopied++;
    } else if (type == FE_COPY_DATA) {
        pg_error(s, out, "54000", "the model has no room");
        end_copy(s, out);
    } else if (type == FE_COPY_DONE) {
        snprintf(tag, sizeof tag, "COPY %d", s->ncopied);
        wire_put_command_complete(out, tag);
        end_copy(s, out);
    } else if (type == FE_COPY_FAIL) {
        pg_error(s, out, "57014", "COPY from stdin failed: %.*s", (int)body.n - 1, body.p);
        end_copy(s, out);
    } else if (type != FE_SYNC && type != FE_FLUSH) {
        pg_error(s, out, "08P01", "unexpected message type 0x%02X during COPY from stdin", type);
        end_copy(s, out);
    }
    s->skipping = s->failed;
}

static void on_close(struct pg_session *s, struct slice body, struct buf *out)
{
    struct pg_statement *st;
    struct wire_reader r;
    struct pg_portal *p;
    struct slice name;
    uint8_t what;

    wire_reader_init(&r, body);
    what = wire_get_u8(&r);
    name = wire_get_cstr(&r);
    if (is_malformed(s, &r, out))
        return;
    st = pg_find_statement(s, name);
    p = pg_find_portal(s, name);
    if (what == 'S' && st != NULL)
        st->used = false;
    if (what == 'P' && p != NULL)
        p->used = false;
    wire_put_empty(out, BE_CLOSE_COMPLETE);
}

void pg_message(struct pg_session *s, char type, struct slice body, struct buf *out)
{
    s->failed = false;
    if (s->copying != 0) {
        on_copy(s, type, body, out);
        return;
    }
    if (type == FE_SYNC) {
        if (!s->skipping)
            pg_end_implicit(s);
        s->skipping = false;
        put_ready(s, out);
        return;
    }
    if (s->skipping)
        return;
    switch (type) {
    case FE_QUERY:
        on_query(s, body, out);
        return; /* an error in it skips nothing */
    case FE_PARSE:
        on_parse(s, body, out);
        break;
    case FE_BIND:
        on_bind(s, body, out);
        break;
    case FE_DESCRIBE:
        on_describe(s, body, out);
        break;
    case FE_EXECUTE:
        on_execute(s, body, out);
        break;
    case FE_CLOSE:
        on_close(s, body, out);
        break;
    default:
        break;
    }
    s->skipping = s->failed;
}
