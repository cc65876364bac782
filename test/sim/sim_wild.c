/* SPDX-License-Identifier: PostgreSQL
 * sim_wild.c: with --wild, what no driver would ask: words of transactions, settings, roles and
 * DISCARD ALL as members of sequences, errors in front of them and behind, statements and portals
 * that are left over or were never made, names that are too long, malformed messages. */
#include "config.h"

#include "sim_world.h"

#include <stdio.h>
#include <string.h>

#include "wire/proto.h"
#include "wire/writer.h"

#define N63 "nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn"

/* The second and third are one to a server. */
static const char *const names[] = {"", "", "w2", "w3", N63, N63 "x", N63 "and much more"};
#define WITH_ARG "w1" /* the only one whose statements have a parameter */

static const char *some_name(void)
{
    return sim_one_in(4) ? WITH_ARG : names[sim_below(sizeof names / sizeof names[0])];
}

static const char *some_portal(void)
{
    static const char *const portals[] = {"", "", "", "p", "q"};

    if (world.opts.nnodes > 1)
        return ""; /* one that was executed elsewhere is not known on the own link */
    return portals[sim_below(sizeof portals / sizeof portals[0])];
}

/* ---- texts ---- */

static const char *some_word(void)
{
    static const char *const words[] = {"begin", "begin", "begin", "start transaction", "commit",
        "commit", "end", "rollback", "rollback", "abort", "savepoint a", "savepoint a",
        "savepoint b", "rollback to a", "rollback to a", "rollback to savepoint b", "release a",
        "release b", "commit and chain", "rollback and chain"};

    return words[sim_below(sizeof words / sizeof words[0])];
}

static const char *some_change(void)
{
    static const char *const changes[] = {"set role other", "set role other", "set role third",
        "reset role", "set local role other", "set role none", "set work_mem to '5MB'",
        "set work_mem to '6MB'", "set local work_mem to '9MB'", "reset work_mem",
        "set my.own to mine", "set local my.own to loc", "set application_name to wild",
        "set local timezone to 'Asia/Tokyo'", "select set_config('my.own', 'called', false)",
        "select set_config('work_mem', '7MB', true)", "select set_config('role', 'third', false)",
        "set work_mem to bad", "reset all", "discard all", "discard all", "deallocate all",
        "deallocate w2", "deallocate w1"};

    return changes[sim_below(sizeof changes / sizeof changes[0])];
}

static void look_at_all(struct script *s, char *sql, size_t size)
{
    snprintf(sql, size,
        "select current_setting('role'), current_setting('work_mem'), current_setting('my.own'), "
        "'c%d-%d'",
        s->client, s->n);
}

static void some_text(struct script *s, char *sql, size_t size)
{
    switch (sim_below(10)) {
    case 0:
    case 1:
    case 2:
        if (world.opts.mode != WORLD_STATEMENT) {
            snprintf(sql, size, "%s", some_word());
            break;
        } /* fall through */
    case 3:
    case 4:
        snprintf(sql, size, "%s", some_change());
        break;
    case 5:
        snprintf(sql, size, "select current_setting('role'), 'c%d-%d'", s->client, s->n);
        break;
    case 6:
        snprintf(sql, size, "select fail('c%d-%d')", s->client, s->n);
        break;
    case 7:
        if (world.opts.nnodes > 1) {
            snprintf(sql, size, "select pos, mine, 'c%d-%d' from three", s->client, s->n);
            break;
        } /* fall through */
    default:
        snprintf(sql, size, "select 'c%d-%d'", s->client, s->n);
        break;
    }
}

/* ---- messages ---- */

static void put_parse(struct script *s, struct buf *out, const char *name)
{
    char sql[PG_SQL_BYTES];

    if (strcmp(name, WITH_ARG) != 0)
        some_text(s, sql, sizeof sql);
    else if (sim_one_in(3))
        snprintf(sql, sizeof sql, "insert into t values ($1)");
    else
        snprintf(sql, sizeof sql, "select 'c%d-%d', $1", s->client, s->n);
    wire_put_parse(out, slice_of_str(name), slice_of_str(sql));
}

static void put_bind(struct script *s, struct buf *out, const char *portal, const char *name)
{
    int tag = strcmp(name, WITH_ARG) == 0 ? script_new_tag(s) : -1;
    char arg[PG_VALUE_BYTES];

    snprintf(arg, sizeof arg, "%d", tag);
    script_put_bind(out, portal, name, tag == -1 ? NULL : arg);
}

static void put_whole(struct script *s, struct buf *out)
{
    const char *portal = some_portal();
    const char *name = some_name();

    if (name[0] != '\0' && !sim_one_in(4))
        script_put_close(out, 'S', name);
    put_parse(s, out, name);
    if (portal[0] != '\0' && sim_one_in(2))
        script_put_close(out, 'P', portal);
    put_bind(s, out, portal, name);
    if (sim_one_in(4))
        script_put_describe(out, 'P', portal);
    script_put_execute(out, portal);
}

static void put_malformed(struct buf *out)
{
    static const char parse[] = "\0select 'malformed'\0\0\0more";
    static const char close[] = "S\0more";
    static const char query[] = "select 'malformed'\0more";
    uint32_t start;

    switch (sim_below(3)) {
    case 0:
        start = wire_begin(out, FE_PARSE);
        buf_put(out, parse, sizeof parse);
        break;
    case 1:
        start = wire_begin(out, FE_CLOSE);
        buf_put(out, close, sizeof close);
        break;
    default:
        start = wire_begin(out, FE_QUERY);
        buf_put(out, query, sizeof query);
        break;
    }
    wire_end(out, start);
}

static void put_part(struct script *s, struct buf *out)
{
    const char *portal = some_portal();
    const char *name = some_name();

    switch (sim_below(14)) {
    case 0:
        put_parse(s, out, name);
        break;
    case 1:
        put_bind(s, out, portal, name);
        break;
    case 2:
        script_put_execute(out, portal);
        break;
    case 3:
        script_put_close(out, 'S', name);
        break;
    case 4:
        script_put_close(out, 'P', portal);
        break;
    case 5:
        script_put_describe(out, sim_one_in(3) ? 'P' : 'S', sim_one_in(3) ? portal : name);
        break;
    case 6:
        script_put_describe(out, 'S', "no_such");
        break;
    case 7:
        if (sim_one_in(2))
            put_malformed(out);
        else
            wire_put_empty(out, FE_FLUSH);
        break;
    default:
        put_bind(s, out, portal, name);
        script_put_execute(out, portal);
        break;
    }
}

static void put_query(struct script *s, struct buf *out)
{
    char sql[4 * PG_SQL_BYTES] = "";
    int n = sim_one_in(2) ? 1 : 2 + (int)sim_below(3);
    size_t len = 0;

    for (; n > 0; n--) {
        do /* in a failed transaction a statement cannot be brought to the link, to be dropped there
            */
            some_text(s, sql + len, PG_SQL_BYTES - 1);
        while (len > 0 && strncmp(sql + len, "deallocate w", 12) == 0);
        len += strlen(sql + len);
        if (n > 1)
            len += (size_t)snprintf(sql + len, 3, "; ");
    }
    wire_put_query(out, slice_of_str(sql));
}

void wild_write(struct script *s, struct buf *out)
{
    char sql[PG_SQL_BYTES];
    int n = 1 + (int)sim_below(6);

    s->is_opaque = true;
    if (sim_one_in(4)) {
        put_query(s, out);
        return;
    }
    if (sim_one_in(4)) {
        look_at_all(s, sql, sizeof sql);
        wire_put_query(out, slice_of_str(sql));
        return;
    }
    while (n-- > 0) {
        if (sim_one_in(2))
            put_whole(s, out);
        else
            put_part(s, out);
        if (sim_one_in(16))
            put_query(s, out);
        if (sim_one_in(12))
            wire_put_empty(out, FE_SYNC);
    }
    wire_put_empty(out, FE_SYNC);
}

/* The text that a message is about, whichever it executes; empty: none. */
static struct slice text_of(struct pg_session *model, const char *msg, uint32_t len)
{
    const char *body = msg + PROTO_HEADER_BYTES;
    const struct pg_statement *st = NULL;
    const struct pg_portal *p = NULL;

    if (msg[0] == FE_QUERY || msg[0] == FE_PARSE)
        return slice_of(body, len - 4);
    if (msg[0] == FE_BIND)
        st = pg_find_statement(model, slice_of_str(body + strlen(body) + 1));
    else if (msg[0] == FE_EXECUTE)
        p = pg_find_portal(model, slice_of_str(body));
    return slice_of_str(st != NULL ? st->sql : p != NULL ? p->sql : "");
}

bool wild_is_vague(struct pg_session *model, const char *msg, uint32_t len, bool *is_tx)
{
    static const char *const words[] = {
        "begin", "start tr", "commit", "rollback", "end", "abort", "discard", "deallocate"};
    struct slice sql = text_of(model, msg, len);
    bool is_vague = msg[0] == FE_QUERY && pg_find_statement(model, slice_of("", 0)) != NULL;
    size_t i;

    for (i = 0; i < sizeof words / sizeof words[0]; i++)
        if (memmem(sql.p, sql.n, words[i], strlen(words[i])) != NULL) {
            is_vague = true;
            *is_tx = *is_tx || i < 6;
        }
    return is_vague;
}
