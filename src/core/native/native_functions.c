/* SPDX-License-Identifier: PostgreSQL
 * native_functions.c: functions and triggers that were there before pgpool was, and do another
 * thing on each node. Runs in: workers.
 *
 * What is made through pgpool is named when it is made (rewrite_body.c). For the rest the first
 * session of a database asks the catalogue, and the log names them. With
 * replication_nondeterministic = error a statement that calls one by its name, or writes to a table
 * with such a trigger, is refused; the catalogue is asked again then when the schema has changed.
 */
#include "config.h"

#include <string.h>

#include "base/arena.h"
#include "base/log.h"
#include "base/mem.h"
#include "config/conf.h"

#include "native_int.h"

/* More are not looked at; so many are named. */
#define FUNCTIONS_MAX   1000
#define FUNCTIONS_NAMED 20

struct native_function {
    bool is_table;
    struct slice name; /* without its schema */
};

/* What a worker keeps of the functions of one database. */
struct native_functions {
    struct native_functions *next;
    struct arena *arena;
    char *database;
    struct native_function *all;
    uint32_t n;
    uint64_t changes; /* of the schema, as it was asked */
};

static struct native_functions *find(const struct native *n)
{
    struct native_functions *f = n->ss->native_functions;

    while (f != NULL && strcmp(f->database, pool_database(client_pool(n->c)).p) != 0)
        f = f->next;
    return f;
}

static bool refuses(const struct native *n)
{
    return n->ss->conf->replication_nondeterministic == CONF_NONDET_ERROR;
}

bool native_functions_are_known(struct native *n)
{
    if (n->functions == NULL)
        n->functions = find(n);
    if (n->functions == NULL || (refuses(n) && n->functions->changes != known_change(n->ss->known)))
        return n->ss->conf->replication_nondeterministic == CONF_NONDET_ALLOW;
    return true;
}

void native_functions_sql(struct buf *sql)
{
    /* Whoever has a short time-out would never know what to refuse. */
    buf_printf(sql, "SET LOCAL statement_timeout TO 0;");
    repl_functions_sql(FUNCTIONS_MAX, sql);
}

static struct native_functions *begin(struct native *n)
{
    struct native_functions *f = find(n);
    struct slice database = pool_database(client_pool(n->c));

    if (f == NULL) {
        f = mem_alloc_zero(sizeof *f);
        f->database = mem_strdup(database.p);
        f->next = n->ss->native_functions;
        n->ss->native_functions = f;
    } else {
        arena_free(&f->arena);
    }
    f->arena = arena_new("functions", 0);
    f->all = arena_alloc_zero(f->arena, FUNCTIONS_MAX * sizeof *f->all);
    f->n = 0;
    f->changes = known_change(n->ss->known);
    return f;
}

static void tell(struct native *n, const struct native_functions *f, struct slice names)
{
    struct buf key = {0};
    bool tells;

    buf_printf(&key, "functions of %s", f->database); /* a user may have the database's name */
    tells = session_tells_again(n->ss->shared, buf_slice(&key), backend_wall_us(&n->ss->be));
    buf_free(&key);
    if (!tells)
        return;
    log_at_detail(LVL_WARNING, NULL,
        "What they write is equal on all nodes only if it does not depend on that: see "
        "replication_nondeterministic.",
        "functions of database \"%s\" tell the time, are random or take numbers of a sequence, "
        "each node by itself: %.*s%s",
        f->database, (int)names.n, names.p, f->n > FUNCTIONS_NAMED ? ", ..." : "");
}

void native_functions_take(struct native *n)
{
    static const struct native_functions none = {.changes = UINT64_MAX};
    struct native_functions *f;
    struct slice *value;
    struct buf names = {0};

    if (n->leg[n->main].kind == 'E') { /* a cancel, a time-out: another session asks */
        n->functions = &none;
        return;
    }
    f = begin(n);
    value = arena_alloc_zero(f->arena, 3 * (FUNCTIONS_MAX + 1) * sizeof *value);
    repl_take_values(f->arena, buf_slice(&n->rows), value, 3 * FUNCTIONS_MAX);
    for (; value[2].p != NULL; value += 3) {
        f->all[f->n].is_table = value[0].n > 0 && value[0].p[0] == 't';
        f->all[f->n].name = value[1];
        if (f->n++ < FUNCTIONS_NAMED)
            buf_printf(&names, "%s%.*s", f->n == 1 ? "" : ", ", (int)value[2].n, value[2].p);
    }
    n->functions = f;
    if (f->n > 0)
        tell(n, f, buf_slice(&names));
    buf_free(&names);
}

static bool is_among(const struct native_functions *f, bool is_table, struct slice name)
{
    for (uint32_t i = 0; i < f->n; i++) {
        if (f->all[i].is_table == is_table && slice_eq(f->all[i].name, name))
            return true;
    }
    return false;
}

struct slice native_functions_used(const struct native *n, const struct sql_stmt *s)
{
    if (n->functions == NULL || n->functions->n == 0 || !refuses(n) || !n->place.everywhere)
        return slice_of("", 0);
    for (uint32_t i = 0; i < s->nfuncs; i++) {
        if (is_among(n->functions, false, s->funcs[i].name))
            return s->funcs[i].name;
    }
    for (uint32_t i = 0; i < s->ntables; i++) {
        if ((s->tables[i].flags & SQL_TABLE_TARGET) != 0 &&
            is_among(n->functions, true, s->tables[i].name))
            return s->tables[i].name;
    }
    return slice_of("", 0);
}

void native_functions_free(struct sessions *ss)
{
    struct native_functions *f;

    while ((f = ss->native_functions) != NULL) {
        ss->native_functions = f->next;
        arena_free(&f->arena);
        mem_free(f->database);
        mem_free(f);
    }
}
