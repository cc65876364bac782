/* SPDX-License-Identifier: PostgreSQL
 * native_prepared.c: prepared statements of a session of native replication, by the protocol and by
 * SQL: their texts, which are rewritten for each execution. Runs in: workers.
 *
 * A name that is known wrongly would write another row on every node than the client meant; so what
 * an exchange prepares or closes counts only as far as the main node has done it, and the others,
 * who do not see an exchange that fails there, are told that much of it. */
#include "config.h"

#include <string.h>

#include "backend/prep.h"
#include "base/arena.h"
#include "base/hot.h"
#include "base/mem.h"
#include "parser/tokens.h"
#include "wire/batch.h"
#include "wire/writer.h"

#include "native_int.h"

/* What is executed in place of the client's statement. */
#define OUR_NAME "pgpool_native"

/* ---- what is known ---- */

static struct native_prepared *known(struct native *n, struct slice name)
{
    struct list *node;

    LIST_FOREACH(node, &n->prepared)
    {
        struct native_prepared *st = LIST_ENTRY(node, struct native_prepared, node);

        if (prep_is_same_name(name, slice_of_str(st->name)))
            return st;
    }
    return NULL;
}

static void prepared_free(struct native_prepared *st)
{
    list_remove(&st->node);
    buf_free(&st->types);
    mem_free(st->name);
    mem_free(st->sql);
    mem_free(st->head);
    mem_free(st);
}

void native_prepared_clear(struct native *n)
{
    struct list *node;

    while ((node = list_first(&n->prepared)) != NULL)
        prepared_free(LIST_ENTRY(node, struct native_prepared, node));
}

static void drop(struct native *n, struct slice name)
{
    struct native_prepared *st = known(n, name);

    if (st != NULL)
        prepared_free(st);
}

static struct slice in_arena(struct native *n, struct slice s)
{
    return slice_of(arena_strndup(n->arena, s.n > 0 ? s.p : "", s.n), s.n);
}

const struct native_change *native_prepared_find(struct native *n, struct slice name)
{
    const struct native_prepared *st;
    struct native_change *found;

    for (uint32_t i = n->nchanges; i-- > 0;) {
        if (n->changes_made[i].name.p != NULL && prep_is_same_name(n->changes_made[i].name, name))
            return n->changes_made[i].sql.p == NULL ? NULL : &n->changes_made[i];
    }
    st = known(n, name);
    if (st == NULL)
        return NULL;
    found = arena_alloc_zero(n->arena, sizeof *found);
    found->name = name;
    found->sql = in_arena(n, slice_of_str(st->sql));
    found->types = in_arena(n, buf_slice(&st->types));
    found->head = st->head == NULL ? NULL : arena_strdup(n->arena, st->head);
    return found;
}

/* ---- what an exchange does ---- */

void native_prepared_begin(struct native *n)
{
    n->changes_made = NULL;
    n->nchanges = 0;
}

static void add(struct native *n, struct native_change change)
{
    if (n->nchanges % 16 == 0) {
        struct native_change *more = arena_alloc_zero(n->arena, (n->nchanges + 16) * sizeof *more);

        if (n->nchanges > 0)
            memcpy(more, n->changes_made, n->nchanges * sizeof *more);
        n->changes_made = more;
    }
    n->changes_made[n->nchanges++] = change;
}

/* What came may move while the exchange runs. */
void native_prepared_note(struct native *n, const struct batch_msg *m)
{
    struct native_change c = {.whole = in_arena(n, m->whole)};

    if (m->type == FE_PARSE) {
        c.name = in_arena(n, m->name);
        c.sql = in_arena(n, m->sql);
        c.types = in_arena(n, m->rest);
    } else if (m->what == 'S') {
        c.name = in_arena(n, m->name);
    }
    add(n, c);
}

void native_prepared_note_lone(struct native *n, const struct batch_lone *l)
{
    struct slice said = batch_lone_statement(l);

    add(n, (struct native_change){.name = slice_of("", 0),
               .sql = in_arena(n, l->sql),
               .types = in_arena(n, slice_of(said.p + l->sql.n + 1, said.n - l->sql.n - 1))});
}

void native_prepared_judged(
    struct native *n, struct slice name, struct slice sql, uint64_t known_by)
{
    struct native_prepared *st = known_by == 0 ? NULL : known(n, name);

    if (st != NULL && slice_eq_str(sql, st->sql))
        st->known = known_by;
}

HOT uint64_t native_prepared_known(struct native *n, struct slice name)
{
    const struct native_prepared *st = known(n, name);

    return st == NULL ? 0 : st->known;
}

void native_prepared_add_sql(struct native *n, struct slice text, const struct sql_stmt *stmt)
{
    struct slice body = slice_of(text.p + stmt->body.offset, stmt->body.len);
    const struct sql_token *tok;
    uint32_t ntokens;
    uint32_t i = 0;
    uint32_t from;

    if (stmt->body.len == 0 || sql_tokens(n->arena, text, &tok, &ntokens) == -1)
        return;
    while (i < ntokens && tok[i].offset < stmt->offset)
        i++;
    if (i + 1 >= ntokens)
        return;
    from = tok[i + 1].offset + tok[i + 1].len; /* behind its name */
    add(n, (struct native_change){.name = in_arena(n, stmt->name),
               .sql = in_arena(n, body),
               .head = arena_strndup(n->arena, text.p + from, stmt->body.offset - from)});
}

static void settle_one(struct native *n, const struct native_change *c)
{
    struct native_prepared *st;

    if (c->name.p == NULL)
        return; /* a portal */
    st = known(n, c->name);
    if (st != NULL && c->sql.p != NULL && c->head == NULL && st->head == NULL &&
        slice_eq_str(c->sql, st->sql) && slice_eq(c->types, buf_slice(&st->types)))
        return; /* it is there */
    drop(n, c->name);
    if (c->sql.p == NULL)
        return;
    st = mem_alloc_zero(sizeof *st);
    st->name = mem_strndup(c->name.p, c->name.n);
    st->sql = mem_strndup(c->sql.p, c->sql.n);
    st->head = c->head == NULL ? NULL : mem_strdup(c->head);
    buf_put(&st->types, c->types.p, c->types.n);
    list_push_front(&n->prepared, &st->node);
    n->has_state = n->has_state || c->name.n > 0;
}

/* DEALLOCATE, DISCARD: behind what is prepared with it, for nothing follows it in its part. */
static void forget(struct native *n, const struct sql_stmt *s)
{
    bool is_discard = s->kind != SQL_DEALLOCATE;

    if (is_discard ? slice_eq_str(s->name, "all") : (s->flags & SQL_F_ALL) != 0)
        native_prepared_clear(n);
    else if (!is_discard)
        drop(n, s->name);
}

void native_prepared_settle(struct native *n, uint32_t ndone, bool is_done)
{
    for (uint32_t i = 0; i < ndone && i < n->nchanges; i++)
        settle_one(n, &n->changes_made[i]);
    if (is_done && n->ex.forgets != NULL)
        forget(n, n->ex.forgets);
}

HOT void native_prepared_settle_lone(struct native *n, struct link *link)
{
    uint64_t worked = 0;

    if (n->nchanges == 0)
        return;
    (void)expect_take_notes(&link->expect, &worked);
    native_prepared_settle(n, (uint32_t)(worked & 1), false);
}

bool native_prepared_put(struct native *n, uint32_t ndone)
{
    buf_clear(&n->out);
    buf_clear(&n->ops);
    for (uint32_t i = 0; i < ndone && i < n->nchanges; i++) {
        const struct native_change *c = &n->changes_made[i];

        if (c->name.p == NULL || c->name.n == 0 || c->whole.n == 0)
            continue;
        buf_put(&n->out, c->whole.p, c->whole.n);
        buf_put_byte(&n->ops, c->sql.p == NULL ? OP_CLOSE : OP_PARSE);
    }
    if (n->ops.len == 0)
        return false;
    wire_put_empty(&n->out, FE_SYNC);
    buf_put_byte(&n->ops, OP_SYNC);
    return true;
}

/* ---- statements of ours ---- */

void native_put_parse(
    struct buf *out, struct buf *ops, const char *name, struct slice sql, struct slice types)
{
    uint32_t start;

    wire_put_close(out, 'S', slice_of_str(name));
    buf_put_byte(ops, (char)(OP_CLOSE | OP_QUIET));
    start = wire_begin(out, FE_PARSE);
    buf_put_cstr(out, name);
    buf_put(out, sql.p, sql.n);
    buf_put_byte(out, '\0');
    if (types.n > 0)
        buf_put(out, types.p, types.n);
    else
        buf_put_u16(out, 0);
    wire_end(out, start);
    buf_put_byte(ops, (char)(OP_PARSE | OP_QUIET));
}

void native_put_own(struct buf *out, struct buf *ops, const char *name, struct slice sql)
{
    uint32_t start;

    native_put_parse(out, ops, name, sql, slice_of("", 0));
    wire_put_close(out, 'P', slice_of_str(name));
    buf_put_byte(ops, (char)(OP_CLOSE | OP_QUIET));
    start = wire_begin(out, FE_BIND);
    buf_put_cstr(out, name);
    buf_put_cstr(out, name);
    buf_put_u16(out, 0);
    buf_put_u16(out, 0);
    buf_put_u16(out, 0);
    wire_end(out, start);
    buf_put_byte(ops, (char)(OP_BIND | OP_QUIET));
    start = wire_begin(out, FE_EXECUTE);
    buf_put_cstr(out, name);
    buf_put_u32(out, 0);
    wire_end(out, start);
    buf_put_byte(ops, (char)(OP_EXECUTE | OP_QUIET));
}

/* ---- EXECUTE ---- */

/* What stands behind the name in EXECUTE name (...). */
static struct slice arguments(struct native *n, const struct sql_stmt *s)
{
    struct slice all = slice_of(n->text.p + s->offset, s->len);
    const struct sql_token *tok;
    uint32_t ntokens;
    uint32_t from;

    if (sql_tokens(n->arena, all, &tok, &ntokens) == -1 || ntokens < 2)
        return slice_of("", 0);
    from = tok[1].offset + tok[1].len;
    return slice_of(all.p + from, all.n - from);
}

void native_execute_put(struct native *n, const struct sql_stmt *s)
{
    const struct native_change *st = native_prepared_find(n, s->name);
    struct slice args = arguments(n, s);
    struct buf sql = {0};

    buf_clear(&n->out);
    buf_clear(&n->ops);
    wire_put_close(&n->out, 'S', slice_of_str(OUR_NAME));
    buf_put_byte(&n->ops, (char)(OP_CLOSE | OP_SWALLOW));
    wire_put_empty(&n->out, FE_SYNC);
    buf_put_byte(&n->ops, (char)(OP_SYNC | OP_SWALLOW));
    buf_printf(&sql, "PREPARE " OUR_NAME "%s ", st->head);
    repl_rewrite_text(&n->plan, n->planned, n->planned_stmt, n->values, &sql);
    wire_put_query(&n->out, buf_slice(&sql));
    buf_put_byte(&n->ops, (char)(OP_QUERY | OP_QUIET));
    buf_clear(&sql);
    buf_printf(&sql, "EXECUTE " OUR_NAME "%.*s", (int)args.n, args.p);
    wire_put_query(&n->out, buf_slice(&sql));
    buf_put_byte(&n->ops, OP_QUERY);
    buf_free(&sql);
}
