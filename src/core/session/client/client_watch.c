/* SPDX-License-Identifier: PostgreSQL
 * client_watch.c: what clients send is looked through for what the connections of all workers have
 * to know of: databases that are dropped, roles that change, and of relayed clients, types and
 * names. Runs in: workers. */
#include "config.h"

#include <string.h>

#include "base/arena.h"
#include "base/hot.h"
#include "base/log.h"
#include "cache/cache_stream.h"
#include "config/pools_conf.h"
#include "ipc/mailbox.h"
#include "ipc/orders.h"
#include "login/login_auth.h"
#include "parser/leading.h"
#include "parser/parser.h"

#include "client/client_ddl_int.h"
#include "client/client_watch_int.h"
#include "client_int.h"

static void note_ddl(struct client *c, const struct sql_stmt *st)
{
    struct client_ddl *d = client_ddl(c);
    int node = c->pool->cluster_node;

    if (!client_ddl_note(
            &d, st, node < POOLS_FIRST_TARGET ? RETIRE_OUR_SERVERS : node, pool_user(c->pool)))
        return;
    client_rare(c)->ddl = d;
    c->drops_database = true;
}

/* Clients that share statements are not given one that was parsed before (follow_types.c). */
static void note_types(struct client *c, unsigned types)
{
    if (types == 0)
        return;
    client_ddl_note_types(&client_rare(c)->ddl, types);
    c->drops_database = true;
}

/* The database that nobody may be connected to while the server does `st`. */
static struct slice needs_alone(const struct sql_stmt *st)
{
    struct slice name = st->name;
    const char *end = name.n == 0 ? NULL : memchr(name.p, '\0', name.n);

    if (end != NULL)
        return slice_of(end + 1, name.n - (size_t)(end + 1 - name.p));
    return st->verb == SQL_VERB_CREATE_DATABASE ? slice_of_str("template1") : name;
}

static void close_free_everywhere(struct client *c, const struct sql_stmt *st)
{
    struct order_mail m = {.kind = ORDER_CLOSE_FREE, .client_id = c->row == NULL ? 0 : c->row->id};
    struct slice database = needs_alone(st);
    int i;

    if (database.n >= sizeof m.database)
        return;
    memcpy(m.database, database.p, database.n);
    c->drops_database = true;
    cache_stream_let_go(cache_streams_of(c->ss->env->shm), database, loop_now_us(c->ss->loop));
    for (i = 0; i < c->ss->env->nworkers; i++)
        orders_tell_worker(c->ss->env, i, &m);
}

static void tell_of_ddl_in(struct client *c, struct slice sql, bool is_relayed)
{
    struct sql_facts facts;
    struct arena *arena;
    uint32_t k;

    /* An arena of its own: others may hold facts of theirs. */
    arena = arena_new("drop database", 1 << 20);
    (void)sql_parse(arena, sql, &facts);
    if (is_relayed && facts.status != SQL_OK) /* perhaps not all of it is here */
        note_types(c, ROUTE_DDL_TYPES | ROUTE_DDL_NAMES);
    for (k = 0; k < facts.nstmts; k++) {
        note_ddl(c, &facts.stmts[k]);
        if (is_relayed)
            note_types(c, route_ddl_of(&facts.stmts[k], sql, false));
        if ((facts.stmts[k].flags & SQL_F_ALONE) != 0)
            close_free_everywhere(c, &facts.stmts[k]);
    }
    arena_free(&arena);
}

HOT void client_watch_statement(struct client *c, struct slice sql)
{
    static const char *const words[] = {"drop", "alter", "create database", NULL};

    if (sql_leads_with(sql, words))
        tell_of_ddl_in(c, sql, false);
}

HOT void client_watch_relayed(struct client *c, struct slice sql)
{
    static const char *const words[] = {"drop", "alter", "create", "do", "commit prepared", NULL};

    if (sql_leads_with(sql, words))
        tell_of_ddl_in(c, sql, true);
}

/* Tells this worker at once: its next client may be here before its mail. What was parsed and never
 * run counts, too, so that of a role whose links are meant nothing is forgotten on the word of
 * those who may not drop it. */
static void tell_of_ddl(void *ctx, const struct link_retire *told)
{
    struct client *c = ctx;
    const struct proc_env *env = c->ss->env;
    struct link_retire now = *told;
    const struct link_retire *what = &now;
    int slot;
    int i;

    now.is_gone = now.is_gone != 0 && pool_is_superuser(c->pool);
    for (i = 0; i < env->nworkers; i++) {
        slot = env->first_worker_slot + i;
        if (i == env->ordinal || proc_row(env->shm, slot)->pid == 0)
            continue;
        if (mailbox_post(env->boxes, slot, MAIL_LINKS_RETIRE, what, sizeof *what, -1) == -1)
            log_at_detail(LVL_WARNING, NULL,
                "Links of the role as it was may be used there: PGPOOL RECONNECT replaces them.",
                "worker %d could not be told that a role has changed: its mailbox is full", i);
    }
    client_watch_retire(c->ss, what, sizeof *what);
}

/* When it was done, the server saw nobody else there: what is lent to that database now, if a new
 * one of its name exists, may live. */
void client_watch_on_quiet(struct client *c, bool is_in_tx)
{
    struct order_mail m = {.kind = ORDER_KEEP, .client_id = c->row == NULL ? 0 : c->row->id};
    int i;

    if (client_ddl(c) != NULL) {
        session_ddl_done(
            c->ss->shared, client_ddl_on_quiet(&c->rare->ddl, is_in_tx, tell_of_ddl, c));
        client_rare_trim(c);
    }
    c->drops_database = client_ddl(c) != NULL;
    if (is_in_tx)
        return; /* no database is dropped there */
    for (i = 0; i < c->ss->env->nworkers; i++)
        orders_tell_worker(c->ss->env, i, &m);
}

void client_watch_retire(struct sessions *ss, const void *body, size_t len)
{
    backend_on_retire(&ss->be, body, len);
    greetings_forget(ss->greetings);
    login_auth_forget_roles(ss->auth);
}

void client_watch_on_leave(struct client *c)
{
    client_ddl_on_error(client_ddl(c)); /* anybody may ask for anything and hang up */
    client_watch_on_quiet(c, false);
}
