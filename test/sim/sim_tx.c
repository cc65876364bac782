/* SPDX-License-Identifier: PostgreSQL
 * sim_tx.c: transactions of a modelled PostgreSQL session: what their words do, what an error does
 * to them, and which portals are left then. */
#include "config.h"

#include "sim_pg.h"

#include <stdio.h>
#include <string.h>

#include "wire/writer.h"

void pg_drop_portals(struct pg_session *s)
{
    memset(s->portal, 0, sizeof s->portal);
}

void pg_commit_writes(struct pg_session *s)
{
    int i;

    for (i = 0; i < s->nwrites && s->on_commit != NULL; i++)
        s->on_commit(s->ctx, s->write[i]);
    s->nwrites = 0;
}

/* Those of the innermost subtransaction, and of all that is within. They are there until it is
 * rolled back, but nothing can be had of them. */
static void fail_portals(struct pg_session *s)
{
    int i;

    for (i = 0; i < PG_MAX_PORTALS; i++)
        if (s->portal[i].level >= s->nsavepoints)
            s->portal[i].is_failed = true;
}

void pg_abort_work(struct pg_session *s)
{
    struct pg_savepoint *sp = s->nsavepoints > 0 ? &s->savepoint[s->nsavepoints - 1] : NULL;

    if (s->tx == 'I') {
        pg_drop_portals(s);
        s->vars = s->mark;
        s->nwrites = 0;
        s->is_pipeline = false;
    } else if (s->tx == 'T') {
        s->tx = 'E';
        s->vars = sp == NULL ? s->tx_vars : sp->vars;
        s->nwrites = sp == NULL ? 0 : sp->nwrites;
        fail_portals(s);
    }
}

void pg_end_implicit(struct pg_session *s)
{
    if (s->tx != 'I')
        return;
    pg_commit_writes(s);
    pg_drop_portals(s);
    s->vars.now = s->vars.session;
    s->mark = s->vars;
    s->is_pipeline = false;
}

static void warn(struct buf *out, const char *sqlstate, const char *text)
{
    wire_put_notice(out, "WARNING", sqlstate, text);
}

/* What stands in front of it in its string or sequence is part of it. */
static void begin_block(struct pg_session *s)
{
    s->tx = 'T';
    s->tx_number++;
    s->tx_vars = s->mark;
    s->nsavepoints = 0;
    s->tx_is_fenced = s->place != NULL && s->place->is_fenced;
    s->snapshot = -1;
}

bool pg_begin(
    struct pg_session *s, const char *tag, bool read_only, bool one_snapshot, struct buf *out)
{
    if (s->tx == 'T') {
        warn(out, "25001", "there is already a transaction in progress");
    } else {
        begin_block(s);
        s->tx_read_only = read_only;
        s->tx_one_snapshot = one_snapshot;
    }
    wire_put_command_complete(out, tag);
    return true;
}

bool pg_end(struct pg_session *s, bool commit, bool chain, struct buf *out)
{
    if (s->tx == 'I' && chain) {
        pg_error(s, out, "25P01", "%s AND CHAIN can only be used in transaction blocks",
            commit ? "COMMIT" : "ROLLBACK");
        return false;
    }
    if (s->tx == 'I')
        warn(out, "25P01", "there is no transaction in progress");
    commit = commit && s->tx != 'E';
    if (commit) {
        pg_commit_writes(s);
        s->vars.now = s->vars.session;
    } else {
        s->nwrites = 0;
        s->vars = s->tx == 'I' ? s->mark : s->tx_vars;
    }
    s->mark = s->vars;
    s->tx = 'I';
    s->nsavepoints = 0;
    s->is_pipeline = false;
    pg_drop_portals(s);
    if (chain)
        begin_block(s);
    else
        s->tx_read_only = s->tx_one_snapshot = false;
    wire_put_command_complete(out, commit ? "COMMIT" : "ROLLBACK");
    return true;
}

static int find_savepoint(const struct pg_session *s, const char *name)
{
    int i;

    for (i = s->nsavepoints - 1; i >= 0; i--)
        if (strcmp(s->savepoint[i].name, name) == 0)
            return i;
    return -1;
}

bool pg_savepoint(struct pg_session *s, const char *name, struct buf *out)
{
    struct pg_savepoint *sp;

    if (s->tx == 'I') {
        pg_error(s, out, "25P01", "SAVEPOINT can only be used in transaction blocks");
        return false;
    }
    if (s->nsavepoints == PG_MAX_SAVEPOINTS) {
        pg_error(s, out, "54000", "the model has no room");
        return false;
    }
    sp = &s->savepoint[s->nsavepoints++];
    snprintf(sp->name, sizeof sp->name, "%.15s", name);
    sp->vars = s->vars;
    sp->nwrites = s->nwrites;
    wire_put_command_complete(out, "SAVEPOINT");
    return true;
}

/* Portals of subtransactions behind the `n` outer ones belong to the outer ones, or go. */
static void cut_portals(struct pg_session *s, int n, bool drop)
{
    struct pg_portal *p;

    for (p = s->portal; p < s->portal + PG_MAX_PORTALS; p++) {
        if (p->level <= n)
            continue;
        p->level = n;
        p->used = p->used && !drop;
    }
}

bool pg_to_savepoint(struct pg_session *s, const char *name, bool back, struct buf *out)
{
    int i = find_savepoint(s, name);

    if (s->tx == 'I') {
        pg_error(s, out, "25P01", "%s can only be used in transaction blocks",
            back ? "ROLLBACK TO SAVEPOINT" : "RELEASE SAVEPOINT");
        return false;
    }
    if (i == -1) {
        pg_error(s, out, "3B001", "savepoint \"%s\" does not exist", name);
        return false;
    }
    cut_portals(s, i, back);
    s->nsavepoints = back ? i + 1 : i;
    if (back) {
        s->tx = 'T';
        s->vars = s->savepoint[i].vars;
        s->nwrites = s->savepoint[i].nwrites;
    }
    wire_put_command_complete(out, back ? "ROLLBACK" : "RELEASE");
    return true;
}
