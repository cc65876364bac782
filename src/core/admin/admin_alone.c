/* SPDX-License-Identifier: PostgreSQL
 * admin_alone.c: statements that come where no server stands behind pgpool, in its virtual
 * database: what drivers say by themselves is answered plainly, and everything else is an error
 * that names what can be asked. Orders need no PGPOOL in front of them there, and PgBouncer's
 * reports (admin_bouncer.c) are known. Pure. */
#include "config.h"

#include <string.h>
#include <strings.h>

#include "wire/writer.h"

#include "admin_int.h"

#define COUNT_OF(a) (sizeof(a) / sizeof(a)[0])

static const struct admin_parameter parameters[] = {
    {"server_version", PACKAGE_VERSION "/pgpool", true},
    {"server_encoding", "UTF8", true},
    {"client_encoding", "UTF8", true},
    {"DateStyle", "ISO, MDY", true},
    {"IntervalStyle", "postgres", true},
    {"TimeZone", "UTC", true},
    {"integer_datetimes", "on", true},
    {"standard_conforming_strings", "on", true},
    {"default_transaction_read_only", "off", true},
    {"in_hot_standby", "off", true},
    {"transaction_isolation", "read committed", false},
    {"transaction_read_only", "off", false},
};

const struct admin_parameter *admin_alone_parameters(unsigned *n)
{
    *n = COUNT_OF(parameters);
    return parameters;
}

bool admin_is_alone(enum admin_kind kind)
{
    return kind >= ADMIN_KIND_EMPTY && kind <= ADMIN_KIND_FOREIGN;
}

/* ---- recognising ---- */

/* Is there no second statement behind a ';'? */
static bool is_single(struct slice rest)
{
    struct admin_token t = admin_lex(&rest);
    bool ended = false;

    for (; t.kind != ADMIN_TOKEN_END; t = admin_lex(&rest)) {
        if (t.kind == ADMIN_TOKEN_BAD || (ended && !admin_token_is_symbol(&t, ';')))
            return false;
        ended = ended || admin_token_is_symbol(&t, ';');
    }
    return true;
}

static struct admin_token peek(struct slice rest)
{
    return admin_lex(&rest);
}

static bool is_end(const struct admin_token *t)
{
    return t->kind == ADMIN_TOKEN_END || admin_token_is_symbol(t, ';');
}

/* ROLLBACK TO a savepoint and COMMIT PREPARED are something else. */
static bool ends_transaction(struct slice rest)
{
    struct admin_token t = peek(rest);

    return is_end(&t) || admin_token_is_word(&t, "work") || admin_token_is_word(&t, "transaction");
}

/* The names of SHOW with blanks in them. */
static const char *parameter_name(struct slice rest, char *room, size_t size)
{
    struct admin_token t = admin_lex(&rest);
    struct admin_token next = peek(rest);

    if (admin_token_is_word(&t, "transaction") && admin_token_is_word(&next, "isolation"))
        return "transaction_isolation";
    if (admin_token_is_word(&t, "time") && admin_token_is_word(&next, "zone"))
        return "TimeZone";
    return admin_token_name(&t, room, size) > 0 && is_end(&next) ? room : "";
}

static const struct admin_parameter *parameter_find(const char *name)
{
    size_t i;

    for (i = 0; i < COUNT_OF(parameters); i++)
        if (strcasecmp(name, parameters[i].name) == 0)
            return &parameters[i];
    return NULL;
}

static enum admin_kind recognise_show(struct slice rest, struct admin_cmd *cmd)
{
    char room[ADMIN_NAME_BYTES];
    const char *name = parameter_name(rest, room, sizeof room);
    const struct admin_parameter *p = parameter_find(name);

    if (p == NULL && admin_bouncer_has(name)) {
        memcpy(cmd->name, name, strlen(name) + 1);
        return ADMIN_KIND_BOUNCER;
    }
    if (p == NULL)
        return ADMIN_KIND_FOREIGN;
    cmd->value = slice_of_str(p->value);
    memcpy(cmd->name, p->name, strlen(p->name) + 1);
    return ADMIN_KIND_PARAMETER;
}

/* SELECT 1, by which pools of drivers see whether a connection lives. */
static enum admin_kind recognise_select(struct slice rest, struct admin_cmd *cmd)
{
    struct admin_token t = admin_lex(&rest);
    struct admin_token next = peek(rest);

    if (t.kind != ADMIN_TOKEN_NUMBER || !is_end(&next))
        return ADMIN_KIND_FOREIGN;
    cmd->value = t.raw;
    memcpy(cmd->name, "?column?", sizeof "?column?");
    return ADMIN_KIND_PARAMETER;
}

static bool is_bouncer_setting(const struct admin_token *name)
{
    static const char *const names[] = {
#define BOUNCER_SETTING(theirs, ours) theirs,
#include "admin_bouncer_config.def"
#undef BOUNCER_SETTING
    };
    size_t i;

    for (i = 0; i < COUNT_OF(names); i++)
        if (admin_token_is_word(name, names[i]))
            return true;
    return false;
}

static enum admin_kind recognise_ignored(
    const struct admin_token *first, struct slice rest, struct admin_cmd *cmd)
{
    static const char *const words[] = {"set", "reset", "discard", "deallocate", "unlisten"};
    static const char *const tags[] = {"SET", "RESET", "DISCARD", "DEALLOCATE", "UNLISTEN"};
    struct admin_token next = peek(rest);
    bool is_all = admin_token_is_word(&next, "all");
    size_t i;

    for (i = 0; i < COUNT_OF(words); i++) {
        if (!admin_token_is_word(first, words[i]))
            continue;
        memcpy(cmd->name, tags[i], strlen(tags[i]) + 1);
        if (is_all && (i == 2 || i == 3))
            memcpy(cmd->name + strlen(tags[i]), " ALL", sizeof " ALL");
        if (i == 0 && is_bouncer_setting(&next))
            cmd->value = next.raw; /* somebody who means pgpool, not a driver */
        return i == 0 ? ADMIN_KIND_SET_NOTHING : ADMIN_KIND_IGNORED;
    }
    return ADMIN_KIND_FOREIGN;
}

static enum admin_kind recognise_first(
    const struct admin_token *t, struct slice rest, struct admin_cmd *cmd)
{
    if (admin_token_is_word(t, "begin") || admin_token_is_word(t, "start"))
        return ADMIN_KIND_BEGIN;
    if (admin_token_is_word(t, "commit") || admin_token_is_word(t, "end"))
        return ends_transaction(rest) ? ADMIN_KIND_COMMIT : ADMIN_KIND_FOREIGN;
    if (admin_token_is_word(t, "rollback") || admin_token_is_word(t, "abort"))
        return ends_transaction(rest) ? ADMIN_KIND_ROLLBACK : ADMIN_KIND_FOREIGN;
    if (admin_token_is_word(t, "show"))
        return recognise_show(rest, cmd);
    if (admin_token_is_word(t, "select"))
        return recognise_select(rest, cmd);
    return recognise_ignored(t, rest, cmd);
}

void admin_recognise_alone(struct slice sql, struct admin_cmd *cmd)
{
    struct slice rest = sql;
    struct admin_token t;

    if (admin_recognise(sql, cmd))
        return;
    memset(cmd, 0, sizeof *cmd);
    cmd->kind = ADMIN_KIND_FOREIGN;
    cmd->value = cmd->bad_at = slice_of("", 0);
    t = admin_lex(&rest);
    if (is_end(&t)) {
        if (is_single(sql))
            cmd->kind = ADMIN_KIND_EMPTY;
        return;
    }
    if (t.kind != ADMIN_TOKEN_WORD)
        return;
    if (admin_recognise_order(sql, cmd) || !is_single(rest))
        return;
    cmd->kind = recognise_first(&t, rest, cmd);
}

/* ---- answering ---- */

static int refuse_foreign(struct err *err)
{
    err_set(err, "0A000", "this is pgpool's own database, which answers SHOW and PGPOOL alone");
    err_detail(err, "No server stands behind it: it has no tables and runs no SQL.");
    err_hint(err,
        "SHOW POOL_NODES, POOL_POOLS, POOL_CLIENTS, POOL_QUEUE and POOL_LIMITS say how things "
        "stand, each in a statement of its own; for SQL connect to another database.");
    return -1;
}

static int put_parameter(const struct admin_cmd *cmd, struct admin_result *res, struct err *err)
{
    const char **columns = arena_alloc(res->arena, sizeof *columns);
    struct admin_rows rows;

    columns[0] = arena_strdup(res->arena, cmd->name);
    res->columns = columns;
    res->ncolumns = 1;
    admin_rows_init(&rows, res);
    admin_row_begin(&rows);
    admin_put(&rows, cmd->value);
    admin_rows_end(&rows);
    if (rows.full)
        err_set(err, "53200", "the answer is too long");
    return rows.full ? -1 : 0;
}

/* Whoever sets something by hand shall not believe that it was done. */
static int tell_nothing_set(struct admin_result *res)
{
    struct admin_notice *notice = arena_alloc_zero(res->arena, sizeof *notice);

    notice->severity = "NOTICE";
    notice->sqlstate = "00000";
    notice->msg = "nothing was set: settings of a session mean nothing in pgpool's own database "
                  "(PGPOOL SET is for pgpool's)";
    res->notices = notice;
    return 0;
}

static int refuse_setting(const struct admin_cmd *cmd, struct err *err)
{
    err_set(err, "0A000", "\"%.*s\" cannot be set here", (int)cmd->value.n, cmd->value.p);
    err_hint(err, "Change pgpool.conf, and say RELOAD; SHOW CONFIG shows what is in use.");
    return -1;
}

int admin_alone_run(const struct admin_cmd *cmd, struct admin_result *res, struct err *err)
{
    switch (cmd->kind) {
    case ADMIN_KIND_BEGIN:
        res->tag = "BEGIN";
        return 0;
    case ADMIN_KIND_COMMIT:
        res->tag = "COMMIT";
        return 0;
    case ADMIN_KIND_ROLLBACK:
        res->tag = "ROLLBACK";
        return 0;
    case ADMIN_KIND_SET_NOTHING:
    case ADMIN_KIND_IGNORED:
        res->tag = arena_strdup(res->arena, cmd->name);
        if (cmd->value.n > 0)
            return refuse_setting(cmd, err);
        return cmd->kind == ADMIN_KIND_IGNORED ? 0 : tell_nothing_set(res);
    case ADMIN_KIND_PARAMETER:
        return put_parameter(cmd, res, err);
    case ADMIN_KIND_EMPTY:
        return 0; /* no tag, no columns */
    default:
        return refuse_foreign(err);
    }
}

int admin_alone_describe(const struct admin_cmd *cmd, struct buf *out, struct err *err)
{
    const char *name = cmd->name;
    const char *const *columns;
    unsigned n;

    if (cmd->kind == ADMIN_KIND_FOREIGN)
        return refuse_foreign(err);
    if (cmd->kind == ADMIN_KIND_BOUNCER) {
        columns = admin_bouncer_columns(name, &n);
        wire_put_row_description(out, columns, n, ADMIN_TEXT_OID);
    } else if (cmd->kind == ADMIN_KIND_PARAMETER) {
        wire_put_row_description(out, &name, 1, ADMIN_TEXT_OID);
    } else {
        wire_put_empty(out, BE_NO_DATA);
    }
    return 0;
}
