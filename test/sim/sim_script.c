/* SPDX-License-Identifier: PostgreSQL
 * sim_script.c: what simulated clients ask: every text carries who asked and when; statements of
 * all clients have the same few names, and settings the same few values. */
#include "config.h"

#include "sim_world.h"

#include <stdio.h>
#include <string.h>

#include "wire/proto.h"
#include "wire/writer.h"

static const char *const names[] = {"s1", "s2", "s3", "s4"};
/* The server's own values of two settings are among them. */
static const char *const values[] = {"red", "green", "blue", "'it''s'", "7", "'UTC'", "'postgres'"};

static const char *some_name(void)
{
    return names[sim_below(sizeof names / sizeof names[0])];
}

static const char *some_value(void)
{
    return values[sim_below(sizeof values / sizeof values[0])];
}

static const char *some_var(void)
{
    return pg_var_names[sim_below(PG_NSETTINGS)];
}

static bool may_begin(void)
{
    return world.opts.mode != WORLD_STATEMENT;
}

/* A row that has not been inserted yet. */
int script_new_tag(struct script *s)
{
    if (world.tags.n == WORLD_MAX_TAGS || s->ntags == (int)(sizeof s->tags / sizeof s->tags[0]))
        return -1;
    s->tags[s->ntags++] = world.tags.n;
    return world.tags.n++;
}

/* ---- messages ---- */

static void put_query(struct buf *out, const char *sql)
{
    wire_put_query(out, slice_of_str(sql));
}

static void put_parse(struct buf *out, const char *name, const char *sql)
{
    wire_put_parse(out, slice_of_str(name), slice_of_str(sql));
}

void script_put_bind(struct buf *out, const char *portal, const char *name, const char *arg)
{
    uint32_t start = wire_begin(out, FE_BIND);

    buf_put_cstr(out, portal);
    buf_put_cstr(out, name);
    buf_put_u16(out, 0);
    buf_put_u16(out, arg == NULL ? 0 : 1);
    if (arg != NULL) {
        buf_put_u32(out, (uint32_t)strlen(arg));
        buf_put(out, arg, strlen(arg));
    }
    buf_put_u16(out, 0);
    wire_end(out, start);
}

void script_put_describe(struct buf *out, char what, const char *name)
{
    uint32_t start = wire_begin(out, FE_DESCRIBE);

    buf_put_byte(out, what);
    buf_put_cstr(out, name);
    wire_end(out, start);
}

void script_put_close(struct buf *out, char what, const char *name)
{
    uint32_t start = wire_begin(out, FE_CLOSE);

    buf_put_byte(out, what);
    buf_put_cstr(out, name);
    wire_end(out, start);
}

static void put_execute_rows(struct buf *out, const char *portal, uint32_t limit)
{
    uint32_t start = wire_begin(out, FE_EXECUTE);

    buf_put_cstr(out, portal);
    buf_put_u32(out, limit);
    wire_end(out, start);
}

void script_put_execute(struct buf *out, const char *portal)
{
    put_execute_rows(out, portal, 0);
}

/* A few rows at a time, now and then. */
static void put_executes(struct buf *out, const char *portal)
{
    int n = sim_one_in(4) ? 1 + (int)sim_below(4) : 0;

    if (n == 0)
        script_put_execute(out, portal);
    for (; n > 0; n--) {
        put_execute_rows(out, portal, sim_below(3));
        if (sim_one_in(4))
            wire_put_empty(out, FE_FLUSH);
    }
}

static void put_sync(struct buf *out)
{
    wire_put_empty(out, FE_SYNC);
}

/* ---- texts ---- */

/* A statement that changes nothing but settings and rows; good in strings of several. What a RESET
 * does to a start-up parameter is put right behind the request: within it the difference shows. */
static void some_text(struct script *s, char *sql, size_t size, bool is_alone)
{
    int tag;

    switch (sim_below(world.opts.nnodes > 1 ? 14 : 9)) {
    case 0:
        snprintf(sql, size, "set %s to %s", some_var(), some_value());
        break;
    case 1:
        snprintf(sql, size, "show %s", some_var());
        break;
    case 2:
        snprintf(sql, size, is_alone || !s->has_params ? "reset %s" : "show %s", some_var());
        break;
    case 3:
        /* What is wild executes once more what was left without a name. */
        tag = world.opts.wild && !is_alone ? -1 : script_new_tag(s);
        if (tag != -1) {
            snprintf(sql, size, "insert into t values (%d)", tag);
            break;
        }
        snprintf(sql, size, "select 'c%d-%d', 'full'", s->client, s->n);
        break;
    case 4:
        s->is_opaque = true;
        snprintf(sql, size, "select set_config('%s', 'c%d', false), 'c%d-%d'", some_var(),
            (int)sim_below(3), s->client, s->n);
        break;
    case 5:
        snprintf(sql, size, "select fail('c%d-%d')", s->client, s->n);
        break;
    case 6:
        snprintf(sql, size, "select current_setting('%s'), 'c%d-%d'", some_var(), s->client, s->n);
        break;
    case 9:
    case 10:
        snprintf(sql, size, "select pos, mine, 'c%d-%d' from three", s->client, s->n);
        break;
    case 11:
        snprintf(sql, size, "select 'c%d-%d', pos, mine%s", s->client, s->n,
            sim_one_in(4) ? ", slow() from three" : "");
        break;
    default:
        snprintf(sql, size, "select 'c%d-%d'", s->client, s->n);
        break;
    }
}

static void write_text(struct script *s, struct buf *out)
{
    char sql[PG_SQL_BYTES];

    some_text(s, sql, sizeof sql, true);
    put_query(out, sql);
    s->is_write = strncmp(sql, "insert", 6) == 0;
    s->is_read = strncmp(sql, "select pos", 10) == 0 ||
                 (strncmp(sql, "select 'c", 9) == 0 && strstr(sql, "full") == NULL &&
                     strstr(sql, "slow") == NULL);
}

static void write_string(struct script *s, struct buf *out)
{
    char sql[4 * PG_SQL_BYTES] = "";
    int n = 2 + (int)sim_below(2);
    size_t len = 0;

    while (n-- > 0) {
        some_text(s, sql + len, PG_SQL_BYTES, false);
        len += strlen(sql + len);
        sql[len++] = ';';
        sql[len] = '\0';
    }
    put_query(out, sql);
}

static void write_transaction(struct script *s, struct buf *out)
{
    static const char *const inside[] = {"commit", "rollback", "savepoint a", "savepoint b",
        "rollback to a", "release b", "set local work_mem to 9", "set local my.own to loc",
        "set application_name to in_tx", "commit", "end", "abort"};
    static const char *const begin[] = {"start transaction", "begin", "begin", "begin",
        "begin read only", "begin isolation level repeatable read", "start transaction read only",
        "begin isolation level read committed"};
    const char *sql = inside[sim_below(sizeof inside / sizeof inside[0])];

    if (s->tx == 'I') {
        put_query(out, begin[sim_below(world.opts.nnodes > 1 && !world.opts.wild ? 8 : 4)]);
        s->tx = 'T';
        return;
    }
    put_query(out, sql);
    if (strcmp(sql, "commit") == 0 || strcmp(sql, "rollback") == 0 || sql[0] == 'e' ||
        strcmp(sql, "abort") == 0)
        s->tx = 'I';
}

static void write_odd(struct script *s, struct buf *out)
{
    char sql[PG_SQL_BYTES];

    switch (sim_below(6)) {
    case 0:
        put_query(out, sim_one_in(2) ? "" : " ; ");
        break;
    case 1:
        put_query(out, "selekt 1");
        break;
    case 2:
        if (s->tx == 'I')
            put_query(out, sim_one_in(2) ? "discard all" : "reset all");
        else
            put_query(out, "reset all");
        s->holds_lock = s->holds_lock && s->tx != 'I';
        break;
    case 3:
        snprintf(sql, sizeof sql, "set %s to bad%d", some_var(), s->n);
        put_query(out, sql);
        break;
    case 4:
        snprintf(sql, sizeof sql, "select nobody('c%d-%d')", s->client, s->n);
        put_query(out, sql);
        break;
    default:
        if (world.opts.nnodes > 1 && (s->tx != 'I' || world.opts.wild))
            break; /* a transaction that only reads may be on a standby, which has its own locks */
        if (world.opts.may_pin) {
            put_query(out,
                s->holds_lock ? "select pg_advisory_unlock_all()" : "select pg_advisory_lock(7)");
            s->holds_lock = !s->holds_lock;
        }
        put_query(out, "select held_locks(), 'l'");
        s->is_opaque = s->is_opaque || world.opts.mode == WORLD_SESSION; /* it is volatile */
        break;
    }
}

static void write_slow(struct script *s, struct buf *out)
{
    char sql[PG_SQL_BYTES];
    int tag = sim_one_in(3) ? script_new_tag(s) : -1;

    if (tag != -1)
        snprintf(sql, sizeof sql, "select 'slow', pg_sleep(1); insert into t values (%d)", tag);
    else
        snprintf(sql, sizeof sql, "select 'c%d-%d', pg_sleep(1)", s->client, s->n);
    put_query(out, sql);
    s->asked_sleep = true;
}

/* PREPARE and the like. */
static void write_sql_names(struct script *s, struct buf *out)
{
    char sql[PG_SQL_BYTES];
    const char *name = sim_one_in(4) ? some_name() : sim_one_in(2) ? "q1" : "q2";

    switch (sim_below(5)) {
    case 0:
    case 1:
        snprintf(sql, sizeof sql, "prepare %s as select 'c%d-%d', $1", name, s->client, s->n);
        break;
    case 2:
        snprintf(sql, sizeof sql, "deallocate %s", sim_one_in(4) ? "all" : name);
        break;
    default:
        snprintf(sql, sizeof sql, "execute %s('c%d')", name, s->client);
        break;
    }
    put_query(out, sql);
}

/* ---- the extended protocol ---- */

static void put_unnamed(struct script *s, struct buf *out)
{
    char sql[PG_SQL_BYTES];
    char arg[PG_VALUE_BYTES];
    int tag = sim_one_in(3) ? script_new_tag(s) : -1;

    if (tag != -1) {
        put_parse(out, "", "insert into t values ($1)");
        snprintf(arg, sizeof arg, "%d", tag);
    } else {
        snprintf(sql, sizeof sql, "select 'c%d-%d', $1%s", s->client, s->n,
            sim_one_in(2) ? " from three" : "");
        put_parse(out, "", sql);
        snprintf(arg, sizeof arg, "a%d", s->n);
    }
    if (sim_one_in(3))
        script_put_describe(out, 'S', "");
    script_put_bind(out, "", "", arg);
    if (sim_one_in(2))
        script_put_describe(out, 'P', "");
    if (tag == -1)
        put_executes(out, "");
    else
        script_put_execute(out, "");
}

static void put_text(struct script *s, struct buf *out)
{
    char sql[PG_SQL_BYTES];

    some_text(s, sql, sizeof sql, false);
    put_parse(out, "", sql);
    script_put_bind(out, "", "", NULL);
    if (sim_one_in(2))
        script_put_describe(out, 'P', "");
    script_put_execute(out, "");
}

static void put_named(struct script *s, struct buf *out)
{
    const char *name = some_name();
    char sql[PG_SQL_BYTES];
    char arg[PG_VALUE_BYTES];

    snprintf(arg, sizeof arg, "c%d-a%d", s->client, s->n);
    switch (sim_below(6)) {
    case 0:
    case 1:
        if (sim_one_in(2))
            snprintf(sql, sizeof sql, "select 'c%d-%d', $1", s->client, s->n);
        else
            snprintf(sql, sizeof sql, "select 'same for all %d', $1%s", (int)sim_below(20),
                sim_one_in(2) ? " from three" : "");
        if (sim_one_in(2))
            script_put_close(out, 'S', name);
        put_parse(out, name, sql);
        if (sim_one_in(2))
            return;
        break;
    case 2:
        script_put_describe(out, 'S', name);
        return;
    default:
        break;
    }
    script_put_bind(out, sim_one_in(6) ? "p1" : "", name, arg);
    put_executes(out, sim_one_in(12) ? "p1" : "");
}

/* ---- with --wide: names that are closed and made anew all the time, as reads and as writes ----
 */

static const char *wide_name(void)
{
    return sim_one_in(2) ? "w1" : "w2";
}

static void wide_text(struct script *s, char *sql, size_t size)
{
    if (sim_one_in(3))
        snprintf(sql, size, "insert into t values ($1)");
    else
        snprintf(sql, size, "select 'c%d-%d', $1%s", s->client, s->n,
            sim_one_in(2) ? " from three" : "");
}

/* A row, should the statement insert it. */
static void wide_arg(struct script *s, char *arg, size_t size)
{
    snprintf(arg, size, "%d", script_new_tag(s));
}

static bool wide_sql(struct script *s, char *sql, size_t size)
{
    char text[PG_SQL_BYTES / 2];
    char arg[PG_VALUE_BYTES];

    switch (sim_below(5)) {
    case 0:
        snprintf(sql, size, "deallocate %s", sim_one_in(3) ? "all" : wide_name());
        return true;
    case 1:
    case 2:
        wide_text(s, text, sizeof text);
        snprintf(sql, size, "prepare %s as %s", wide_name(), text);
        return true;
    default:
        if (s->ntags == (int)(sizeof s->tags / sizeof s->tags[0]))
            return false;
        wide_arg(s, arg, sizeof arg);
        snprintf(sql, size, "execute %s('%s')", wide_name(), arg);
        return true;
    }
}

static void put_wide(struct script *s, struct buf *out)
{
    char sql[PG_SQL_BYTES];
    char arg[PG_VALUE_BYTES];

    switch (sim_below(7)) {
    case 0:
        script_put_close(out, 'S', wide_name());
        break;
    case 1:
        script_put_close(out, 'P', sim_one_in(2) ? "p1" : "");
        break;
    case 2:
    case 3:
        if (sim_one_in(2))
            script_put_close(out, 'S', wide_name());
        wide_text(s, sql, sizeof sql);
        put_parse(out, wide_name(), sql);
        break;
    case 4:
        script_put_describe(out, 'S', wide_name());
        break;
    default:
        if (s->ntags == (int)(sizeof s->tags / sizeof s->tags[0]))
            break;
        wide_arg(s, arg, sizeof arg);
        script_put_bind(
            out, sim_one_in(6) ? "p1" : "", sim_one_in(6) ? "nobody" : wide_name(), arg);
        script_put_execute(out, sim_one_in(6) ? "p1" : "");
        break;
    }
}

static void write_wide(struct script *s, struct buf *out)
{
    char sql[PG_SQL_BYTES];
    int n = 1 + (int)sim_below(3);

    if (sim_one_in(3)) {
        if (!wide_sql(s, sql, sizeof sql))
            snprintf(sql, sizeof sql, "select 'c%d-%d'", s->client, s->n);
        if (sim_one_in(3)) {
            put_query(out, sql);
            return;
        }
        put_parse(out, "", sql);
        script_put_bind(out, "", "", NULL);
        script_put_execute(out, "");
        n = sql[0] == 'p' ? 0 : n - 1; /* should more fail behind a PREPARE it is in doubt */
    }
    while (n-- > 0)
        put_wide(s, out);
    put_sync(out);
}

/* COPY: data goes behind it without waiting, and perhaps behind an error. */
static void write_copy(struct script *s, struct buf *out)
{
    bool extended = sim_one_in(3) && !world.opts.wild; /* what is wild would execute it once more */
    int n = (int)sim_below(4);
    char sql[PG_SQL_BYTES];
    char line[16];
    uint32_t start;
    int tag;

    if (sim_one_in(4)) {
        snprintf(sql, sizeof sql, "copy (select 'c%d-%d') to stdout", s->client, s->n);
        n = -1;
    } else if (sim_one_in(3) && !extended) {
        snprintf(sql, sizeof sql, "set %s to %s; copy t from stdin", some_var(), some_value());
    } else {
        snprintf(sql, sizeof sql, "copy %s from stdin", sim_one_in(6) ? "t (a)" : "t");
    }
    if (extended) {
        put_parse(out, "", sql);
        script_put_bind(out, "", "", NULL);
        script_put_execute(out, "");
    } else {
        put_query(out, sql);
    }
    if (n >= 0 && sim_one_in(extended ? 2 : 6))
        put_sync(out); /* drivers send it with the Execute; the COPY ignores it */
    for (; n > 0 && (tag = script_new_tag(s)) != -1; n--) {
        snprintf(line, sizeof line, "%d\n", tag);
        start = wire_begin(out, FE_COPY_DATA);
        buf_put(out, line, strlen(line));
        wire_end(out, start);
        if (sim_one_in(8))
            put_sync(out);
    }
    if (n >= 0 && sim_one_in(3)) {
        start = wire_begin(out, FE_COPY_FAIL);
        buf_put_cstr(out, "changed my mind");
        wire_end(out, start);
    } else if (n >= 0) {
        wire_put_empty(out, FE_COPY_DONE);
    }
    if (extended)
        put_sync(out);
}

static void put_tx_words(struct script *s, struct buf *out)
{
    if (!may_begin())
        return;
    put_parse(out, "", s->tx == 'I' ? "begin" : sim_one_in(3) ? "rollback" : "commit");
    script_put_bind(out, "", "", NULL);
    script_put_execute(out, "");
    s->tx = s->tx == 'I' ? 'T' : 'I';
}

/* As drivers do that want to know the columns first. */
static void put_prepare(struct script *s, struct buf *out)
{
    const char *name = sim_one_in(3) ? "" : some_name();
    char sql[PG_SQL_BYTES];

    if (sim_one_in(6))
        snprintf(sql, sizeof sql, "select fail('c%d-%d'), $1", s->client, s->n);
    else
        snprintf(sql, sizeof sql, "select 'c%d-%d', $1%s", s->client, s->n,
            sim_one_in(2) ? " from three" : "");
    put_parse(out, name, sql);
    script_put_describe(out, 'S', name);
    wire_put_empty(out, FE_FLUSH);
    s->flush_at = out->len;
}

static void write_extended(struct script *s, struct buf *out)
{
    int n = sim_one_in(3) ? 1 + (int)sim_below(4) : 1;
    bool only_words = sim_one_in(8);

    if (only_words)
        put_tx_words(s, out);
    else if (sim_one_in(4))
        put_prepare(s, out);
    while (!only_words && n-- > 0) {
        if (sim_one_in(3))
            put_unnamed(s, out);
        else if (sim_one_in(3))
            put_text(s, out);
        else
            put_named(s, out);
        if (sim_one_in(4))
            wire_put_empty(out, FE_FLUSH);
        if (s->flush_at == 0 && sim_one_in(6)) {
            wire_put_empty(out, FE_FLUSH);
            s->flush_at = out->len; /* what was executed so far is not committed yet */
        }
    }
    put_sync(out);
}

void script_write(struct script *s, struct buf *out)
{
    s->n++;
    s->asked_sleep = s->is_read = s->is_write = false;
    if (world.opts.wide && sim_one_in(3)) {
        write_wide(s, out);
        return;
    }
    if (world.opts.wild && sim_one_in(2)) {
        wild_write(s, out);
        return;
    }
    switch (sim_below(16)) {
    case 0:
    case 1:
    case 2:
    case 3:
        write_text(s, out);
        break;
    case 4:
        write_string(s, out);
        break;
    case 5:
    case 6:
    case 7:
        if (may_begin())
            write_transaction(s, out);
        else
            write_text(s, out);
        break;
    case 8:
        write_odd(s, out);
        if (out->len == 0)
            write_text(s, out);
        break;
    case 9:
        write_slow(s, out);
        break;
    case 10:
        write_sql_names(s, out);
        break;
    case 11:
        write_copy(s, out);
        break;
    default:
        write_extended(s, out);
        break;
    }
}

bool script_write_end(struct script *s, struct buf *out)
{
    if (s->tx != 'I') {
        put_query(out, "rollback");
        s->tx = 'I';
        return true;
    }
    if (s->holds_lock) {
        put_query(out, "select pg_advisory_unlock_all()");
        s->holds_lock = false;
        return true;
    }
    return false;
}

uint32_t script_count(const struct buf *msgs, const char *types)
{
    const char *p = msgs->data;
    uint32_t n = 0;

    for (; p < msgs->data + msgs->len; p += proto_get_u32(p + 1) + 1U)
        n += types[0] == '\0' || strchr(types, p[0]) != NULL;
    return n;
}
