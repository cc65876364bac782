/* SPDX-License-Identifier: PostgreSQL
 * pools_conf_read.c: reads pools.conf: sections [database D], [user U] and [database D user U], in
 * them lines as in pgpool.conf.
 * Runs in: every process, while settings are loaded. It goes on after every error, so that all of
 * them are reported at once. */
#include "config.h"

#include "base/arena.h"
#include "base/assert.h"
#include "base/list.h"

#include <stdlib.h>
#include <string.h>

#include "conf_lex.h"
#include "pools_conf_int.h"

#define POOLS_NAME_MAX 63 /* longest name of a role or database at the server */

struct reader {
    struct pools_conf *pc;
    const char *file;
    struct conf_report *report;
    struct pools_section *section; /* NULL before the first, and in one with a bad head */
    bool in_bad_section;
    int line;
};

/* Reports at the present line. */
#define COMPLAIN(rd, hint, ...)                                                                    \
    conf_report_add((rd)->report, CONF_ERROR, (rd)->file, (rd)->line, hint, __VA_ARGS__)

/* ---- heads of sections ---- */

static const char *skip_blanks(const char *p, const char *end)
{
    while (p < end && (*p == ' ' || *p == '\t' || *p == '\r'))
        p++;
    return p;
}

/* Takes a word, or a text between double quotes in which "" stands for one. NULL: there is none. */
static const char *take_name(struct reader *rd, const char **pp, const char *end)
{
    const char *p = skip_blanks(*pp, end);
    char *out = arena_alloc(rd->pc->arena, (size_t)(end - p) + 1);
    size_t n = 0;
    bool quoted = p < end && *p == '"';

    if (quoted)
        p++;
    for (; p < end; p++) {
        if (quoted && *p == '"') {
            if (p + 1 == end || p[1] != '"')
                break;
            p++;
        } else if (!quoted && (*p == ' ' || *p == '\t' || *p == ']' || *p == '"')) {
            break;
        }
        out[n++] = *p;
    }
    if (n == 0 || (quoted && p == end))
        return NULL;
    out[n] = '\0';
    *pp = quoted ? p + 1 : p;
    return out;
}

static void add_section(struct reader *rd, const char *database, const char *user)
{
    struct slice d = slice_of_str(database == NULL ? "" : database);
    struct slice u = slice_of_str(user == NULL ? "" : user);
    struct pools_section *s = pools_section_find(rd->pc, d, u, database != NULL, user != NULL);

    if (s != NULL) {
        conf_report_add(rd->report, CONF_ERROR, rd->file, rd->line,
            "Put all its lines into one section.", "this section exists already, at line %d",
            s->line);
        rd->in_bad_section = true;
        return;
    }
    if (rd->pc->nsections == POOLS_MAX_SECTIONS) {
        COMPLAIN(rd, NULL, "there are too many sections");
        rd->in_bad_section = true;
        return;
    }
    s = arena_alloc_zero(rd->pc->arena, sizeof *s);
    s->database = database;
    s->user = user;
    s->line = rd->line;
    s->target = POOLS_NO_TARGET;
    s->ssl_mode = CONF_SSL_PREFER; /* as that of a server of pgpool.conf */
    hash_table_add(
        &rd->pc->sections, &s->node, pools_section_hash(d, u, database != NULL, user != NULL));
    rd->pc->nsections++;
    rd->section = s;
}

static bool name_is_good(struct reader *rd, const char *name, bool is_pair)
{
    if (name == NULL)
        return true;
    if (strlen(name) > POOLS_NAME_MAX) {
        COMPLAIN(
            rd, "PostgreSQL knows no longer ones than 63 bytes.", "name \"%s\" is too long", name);
        return false;
    }
    if (is_pair && strcmp(name, "*") == 0) {
        COMPLAIN(rd, "Write [database D] or [user U] alone.",
            "* cannot stand in a section of a database and a user");
        return false;
    }
    return true;
}

/* [database D], [user U], [database D user U]: `p` is behind the bracket. */
static void read_head(struct reader *rd, const char *p, const char *end)
{
    const char *database = NULL;
    const char *user = NULL;
    const char *word = take_name(rd, &p, end);
    bool good = word != NULL;

    rd->section = NULL;
    rd->in_bad_section = false;
    if (good && strcmp(word, "database") == 0) {
        database = take_name(rd, &p, end);
        good = database != NULL;
        p = skip_blanks(p, end);
        word = p < end && *p != ']' ? take_name(rd, &p, end) : NULL;
    }
    if (good && word != NULL && strcmp(word, "user") == 0)
        good = (user = take_name(rd, &p, end)) != NULL;
    else if (good && word != NULL)
        good = false;
    p = skip_blanks(p, end);
    good = good && p < end && *p == ']';
    if (good) {
        p = skip_blanks(p + 1, end);
        good = p == end || *p == '#';
    }
    if (!good)
        COMPLAIN(rd,
            "Write [database NAME], [user NAME] or [database NAME user NAME]; a name with "
            "blanks or brackets stands between double quotes, * is for all that have no section.",
            "this is not the head of a section");
    if (good && name_is_good(rd, database, user != NULL) &&
        name_is_good(rd, user, database != NULL))
        add_section(rd, database, user);
    else
        rd->in_bad_section = true;
}

/* ---- lines ---- */

struct text_key {
    const char *name;
    size_t offset; /* in struct pools_section */
};

/* Where a database is, and how its users are looked up. */
static const struct text_key text_keys[] = {
    {"host", offsetof(struct pools_section, host)},
    {"dbname", offsetof(struct pools_section, dbname)},
    {"user", offsetof(struct pools_section, forced_user)},
    {"auth_user", offsetof(struct pools_section, auth_user)},
    {"auth_query", offsetof(struct pools_section, auth_query)},
    {"auth_dbname", offsetof(struct pools_section, auth_dbname)},
};

static bool is_database_section(const struct pools_section *s)
{
    return s->database != NULL && s->user == NULL;
}

static void read_ssl_mode(struct reader *rd, const struct conf_item *item)
{
    static const char *const words[] = {"disable", "allow", "prefer", "require", "verify-ca",
        "verify-full"}; /* in the order of enum conf_ssl_mode */
    int i;

    for (i = 0; i <= CONF_SSL_VERIFY_FULL; i++) {
        if (strcmp(item->value, words[i]) == 0) {
            rd->section->ssl_mode = i;
            rd->section->ssl_line = rd->line;
            return;
        }
    }
    COMPLAIN(rd, "It is disable, allow, prefer, require, verify-ca or verify-full.",
        "\"%s\" is no backend_ssl_mode", item->value);
}

/* PgBouncer's list, of which each connection takes the next; no folder of sockets. */
static bool names_hosts(const char *value)
{
    return value[0] != '/' && strchr(value, ',') != NULL;
}

/* True when the key was one of text_keys, the port or backend_ssl_mode. */
static bool read_place(struct reader *rd, const struct conf_item *item)
{
    struct pools_section *s = rd->section;
    const struct text_key *found = NULL;
    char *end;
    size_t i;

    for (i = 0; i < sizeof text_keys / sizeof text_keys[0]; i++)
        if (strcmp(item->name, text_keys[i].name) == 0)
            found = &text_keys[i];
    if (found == NULL && strcmp(item->name, "port") != 0 &&
        strcmp(item->name, "backend_ssl_mode") != 0)
        return false;
    if (!is_database_section(s)) {
        COMPLAIN(rd, "Put it into a section [database NAME].", "\"%s\" belongs to a database",
            item->name);
    } else if (item->value[0] == '\0') {
        COMPLAIN(rd, "Take the line out.", "\"%s\" is empty", item->name);
    } else if (found != NULL && strcmp(found->name, "host") == 0 && names_hosts(item->value)) {
        COMPLAIN(rd,
            "A database is on one server here. Several are named in pgpool.conf, as nodes; "
            "pgpool --import-pgbouncer does so.",
            "\"%s\" names several hosts", item->value);
    } else if (found != NULL) {
        memcpy((char *)s + found->offset, &item->value, sizeof item->value);
    } else if (strcmp(item->name, "port") != 0) {
        read_ssl_mode(rd, item);
    } else {
        long port = strtol(item->value, &end, 10);

        if (*end != '\0' || port < 1 || port > 65535)
            COMPLAIN(
                rd, "A port is a number from 1 to 65535.", "\"%s\" is not a port", item->value);
        s->port = (int)port;
        s->port_line = rd->line;
    }
    return true;
}

/* PgBouncer's and pgpool.conf's names for what is called otherwise here. */
static const char *key_alias(const char *name)
{
    if (strcmp(name, "default_pool_size") == 0)
        return "pool_size";
    if (strcmp(name, "reserve_pool") == 0)
        return "reserve_pool_size";
    return name;
}

static void read_value(struct reader *rd, int i, const struct conf_item *item)
{
    const struct pools_key *key = &pools_key_table()[i];
    const struct conf_param *param = conf_param_named(CONF_SCOPE_GLOBAL, key->param);
    struct pools_value *value = &rd->section->value[i];
    struct err err = {0};

    ASSERT(param != NULL);
    if (conf_value_parse(rd->pc->arena, param, key->name, item->value, &value->v, &err) == -1)
        conf_report_err(rd->report, CONF_ERROR, rd->file, rd->line, &err);
    else
        value->is_set = true;
}

static void read_item(struct reader *rd, const struct conf_item *item)
{
    const struct pools_key *key = pools_key_table();
    const char *name = key_alias(item->name);
    unsigned place = (rd->section->database != NULL ? POOLS_IN_DATABASE : 0U) |
                     (rd->section->user != NULL ? POOLS_IN_USER : 0U);
    int i;

    if (read_place(rd, item))
        return;
    for (i = 0; i < POOLS_KEY_COUNT; i++)
        if (strcmp(name, key[i].name) == 0)
            break;
    if (i == POOLS_KEY_COUNT)
        COMPLAIN(rd,
            "Known are host, port, backend_ssl_mode, dbname, user, auth_user, auth_query, "
            "auth_dbname, pool_mode, "
            "pool_size, and the limits and time-outs of pgpool.conf that are about pools.",
            "unknown name \"%s\"", item->name);
    else if ((key[i].place & place) == 0)
        COMPLAIN(rd,
            key[i].place == POOLS_IN_DATABASE ? "Put it into a section [database NAME]."
                                              : "Put it into a section [user NAME].",
            "\"%s\" does not belong here", item->name);
    else
        read_value(rd, i, item);
}

static void read_line(struct reader *rd, struct slice line)
{
    struct conf_lex lx;
    struct conf_item item;
    struct err err = {0};
    const char *p = skip_blanks(line.p, line.p + line.n);
    int got;

    if (p < line.p + line.n && *p == '[') {
        read_head(rd, p + 1, line.p + line.n);
        return;
    }
    conf_lex_init(&lx, line);
    got = conf_lex_next(&lx, rd->pc->arena, &item, &err);
    if (got == -1)
        conf_report_err(rd->report, CONF_ERROR, rd->file, rd->line, &err);
    else if (got == 1 && rd->section != NULL)
        read_item(rd, &item);
    else if (got == 1 && !rd->in_bad_section)
        COMPLAIN(rd,
            "Begin with [database NAME] or [user NAME]; values for all belong into "
            "pgpool.conf.",
            "\"%s\" stands before the first section", item.name);
}

/* ---- servers ---- */

static int find_target(struct pools_conf *pc, const char *host, int port, int ssl_mode)
{
    int i;

    for (i = 0; i < pc->ntargets; i++)
        if (pc->target[i].port == port && pc->target[i].ssl_mode == ssl_mode &&
            strcmp(pc->target[i].host, host) == 0)
            return i;
    return -1;
}

/* Gives the server of a section its number. */
static void place_section(struct reader *rd, struct pools_section *s)
{
    struct pools_conf *pc = rd->pc;
    int port = s->port == 0 ? 5432 : s->port;
    int i;

    rd->line = s->line;
    if (s->host == NULL) {
        rd->line = s->port_line;
        if (s->port != 0)
            COMPLAIN(rd, "Add host, or take out port.", "a port without a host");
        rd->line = s->ssl_line;
        if (s->ssl_line != 0)
            COMPLAIN(rd, "Add host, or take it out.", "backend_ssl_mode without a host");
        return;
    }
    i = find_target(pc, s->host, port, s->ssl_mode);
    if (i == -1 && pc->ntargets == POOLS_MAX_TARGETS) {
        conf_report_add(rd->report, CONF_ERROR, rd->file, s->line,
            "Servers that are no longer named count until pgpool is restarted.",
            "more than %d servers are named", POOLS_MAX_TARGETS);
        return;
    }
    if (i == -1) {
        i = pc->ntargets++;
        pc->target[i].host = s->host;
        pc->target[i].port = port;
        pc->target[i].ssl_mode = s->ssl_mode;
    }
    s->target = POOLS_FIRST_TARGET + i;
}

static void place_sections(struct reader *rd)
{
    struct hash_node *n;
    uint32_t i;

    if (rd->pc->sections.count == 0)
        return;
    for (i = 0; i <= rd->pc->sections.mask; i++)
        for (n = rd->pc->sections.bucket[i]; n != NULL; n = n->next)
            place_section(rd, LIST_ENTRY(n, struct pools_section, node));
}

void pools_conf_parse(
    struct pools_conf *pc, const char *file, struct slice text, struct conf_report *report)
{
    struct reader rd = {.pc = pc, .file = file, .report = report};
    const char *p = text.p;
    const char *end = text.p + text.n;

    if (text.n >= 3 && memcmp(p, "\xEF\xBB\xBF", 3) == 0)
        p += 3;
    while (p < end) {
        const char *eol = memchr(p, '\n', (size_t)(end - p));

        if (eol == NULL)
            eol = end;
        rd.line++;
        read_line(&rd, slice_of(p, (size_t)(eol - p)));
        p = eol < end ? eol + 1 : eol;
    }
    place_sections(&rd);
}
