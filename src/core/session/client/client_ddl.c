/* SPDX-License-Identifier: PostgreSQL
 * client_ddl.c: a client changes roles or the settings of a database: which, and when others have
 * to know.
 * Runs in: workers. An error anywhere in the exchange counts as one of the DDL's: who may not
 * change a role must not be able to have its connections closed. What a function or DO does is not
 * seen. */
#include "config.h"

#include "client/client_ddl_int.h"

#include <string.h>

#include "base/mem.h"

/* With more than so many in one transaction all links are meant. */
#define DDL_MAX 32

struct client_ddl {
    unsigned ntold; /* of what[]: in an exchange before this one */
    unsigned n;
    unsigned types;
    bool is_full;
    int32_t place;
    struct link_retire what[DDL_MAX];
};

static void put_name(char to[ROWS_NAME_BYTES], struct slice name)
{
    size_t n = name.n < ROWS_NAME_BYTES ? name.n : ROWS_NAME_BYTES - 1;

    if (n > 0)
        memcpy(to, name.p, n);
    to[n] = '\0';
}

static struct link_retire *ddl_add(struct client_ddl **dp, struct slice user, struct slice database)
{
    struct client_ddl *d = *dp;
    struct link_retire *w;

    d->is_full = d->is_full || d->n == DDL_MAX;
    if (d->is_full)
        d->ntold = d->n = 0;
    w = &d->what[d->n++];
    memset(w, 0, sizeof *w);
    w->place = d->place;
    w->sets = 1; /* also of a role: its sessions go on as the one it was, whoever has its name */
    if (d->is_full)
        return w;
    put_name(w->user, user);
    put_name(w->database, database);
    return w;
}

/* SET ROLE may have made CURRENT_USER another one; whoever asks for that is not seen here. */
static struct slice real_name(struct slice name, struct slice self)
{
    bool is_self = slice_eq_str(name, "current_user") || slice_eq_str(name, "session_user") ||
                   slice_eq_str(name, "current_role");

    return is_self ? self : name;
}

bool client_ddl_note(
    struct client_ddl **dp, const struct sql_stmt *st, int32_t place, struct slice self)
{
    struct slice none = slice_of("", 0);
    struct slice left = st->name;
    struct link_retire *w;
    const char *end;
    size_t n;

    if (st->verb != SQL_VERB_ALTER_DATABASE && st->verb != SQL_VERB_ALTER_ROLE &&
        st->verb != SQL_VERB_ALTER_ROLE_SET && st->verb != SQL_VERB_RENAME_ROLE &&
        st->verb != SQL_VERB_DROP_ROLE)
        return false;
    if (*dp == NULL)
        *dp = mem_alloc_zero(sizeof **dp);
    (*dp)->place = place;
    if (st->verb == SQL_VERB_ALTER_DATABASE) {
        ddl_add(dp, none, st->name);
        return true;
    }
    if (st->verb == SQL_VERB_ALTER_ROLE || st->verb == SQL_VERB_ALTER_ROLE_SET) {
        w = ddl_add(dp, (st->flags & SQL_F_ALL) != 0 ? none : real_name(st->name, self), none);
        w->sets = (*dp)->is_full || st->verb == SQL_VERB_ALTER_ROLE_SET;
        return true;
    }
    while (left.n > 0) {
        end = memchr(left.p, '\0', left.n);
        n = end == NULL ? left.n : (size_t)(end - left.p);
        w = ddl_add(dp, real_name(slice_of(left.p, n), self), none);
        w->is_gone = !(*dp)->is_full;
        n += end == NULL ? 0 : 1;
        left = slice_of(left.p + n, left.n - n);
    }
    return true;
}

void client_ddl_note_types(struct client_ddl **dp, unsigned types)
{
    if (*dp == NULL)
        *dp = mem_alloc_zero(sizeof **dp);
    (*dp)->types |= types;
}

void client_ddl_on_error(struct client_ddl *d)
{
    if (d != NULL)
        d->n = d->ntold;
}

/* A transaction that may be rolled back has taken nothing away yet, and afterwards it is not known
 * whether it was: what opens servers for a role is forgotten when that is sure. */
unsigned client_ddl_on_quiet(struct client_ddl **dp, bool is_in_tx,
    void (*tell)(void *ctx, const struct link_retire *what), void *ctx)
{
    struct client_ddl *d = *dp;
    unsigned types;
    unsigned i;

    if (d == NULL)
        return 0;
    for (i = is_in_tx ? d->ntold : 0; i < d->n; i++) {
        if (is_in_tx)
            d->what[i].is_gone = 0;
        tell(ctx, &d->what[i]);
    }
    d->ntold = d->n;
    if (is_in_tx && (d->n > 0 || d->types != 0))
        return 0;
    types = d->types;
    *dp = NULL;
    mem_free(d);
    return types;
}
