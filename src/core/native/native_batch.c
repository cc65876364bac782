/* SPDX-License-Identifier: PostgreSQL
 * native_batch.c: sequences of the extended protocol in native replication. Runs in: workers.
 *
 * The client's messages go as they are. What is bound and would not do the same on every node is
 * parsed once more in front of its Bind, rewritten, under a name of ours, and the Bind names that:
 * so the client's own statement is described as it wrote it. A lock of a table goes there, too.
 * COPY FROM is parsed, bound and described as it is, and executed by a Query. */
#include "config.h"

#include <string.h>

#include "base/arena.h"
#include "base/log.h"
#include "base/mem.h"
#include "config/conf.h"
#include "replicate/locks.h"
#include "route/route.h"
#include "wire/batch.h"
#include "wire/writer.h"

#include "native_int.h"

#define OUR_NAME "pgpool_native"
#define OUR_LOCK "pgpool_native_lock"

/* What a sequence is made of. */
#define LOOK_PARSES            0x001u
#define LOOK_CHANGES_NAMED     0x002u /* parses or closes it: all nodes do */
#define LOOK_BINDS             0x004u
#define LOOK_BINDS_NAMED       0x008u /* to a named portal */
#define LOOK_PARSED_UNNAMED    0x010u
#define LOOK_USES_UNNAMED      0x020u /* which was parsed before */
#define LOOK_EXECUTES          0x040u
#define LOOK_DESCRIBES_UNNAMED 0x080u
#define LOOK_BEGINS            0x100u
#define LOOK_ENDS              0x200u /* COMMIT, ROLLBACK */
#define LOOK_ENDS_TO           0x400u /* ROLLBACK TO */
#define LOOK_ENDS_LATER        0x800u /* what ends it is bound, and not executed as the last one */

struct look {
    unsigned has; /* LOOK_* */
    unsigned nbinds;
    struct slice ends; /* LOOK_ENDS: the portal of that */
};

/* What becomes of one Bind. */
struct bound {
    struct slice sql;
    struct slice types; /* as in its Parse */
    struct sql_facts facts;
    struct repl_plan plan;
    uint32_t first; /* of its values */
    bool locks;     /* first what native_lock_sql says */
    bool by_sql;    /* prepared by SQL */
};

/* What is sent as one: its messages, and what becomes of their Binds. Read anew behind each
 * question of ours, as the client's bytes may lie elsewhere then. */
struct part {
    struct look look;
    struct batch_msg *msg;
    unsigned nmsgs;
    struct bound *bounds;
};

static void cut(struct native *n, const char *at)
{
    n->scanned = (uint32_t)(at - n->in.data);
    n->ex.ends_in_sync = false;
}

static bool has(const struct look *look, unsigned what)
{
    return (look->has & what) != 0;
}

/* ---- where it goes ---- */

/* In a failed transaction only what ends it matters. */
static void judge_failed(struct native *n, const struct sql_stmt *s, struct look *look)
{
    if (s->tx.op == SQL_TX_COMMIT || s->tx.op == SQL_TX_ROLLBACK)
        look->has |= LOOK_ENDS | LOOK_ENDS_LATER;
    if (s->tx.op == SQL_TX_ROLLBACK_TO)
        look->has |= LOOK_ENDS_TO;
    native_note_failed(n, s->tx.op);
    n->ex.is_commit = n->ex.is_commit || s->tx.op == SQL_TX_COMMIT;
}

/* What is bound. */
static void read_bound(struct native *n, struct slice name, struct bound *b)
{
    const struct native_change *st = native_prepared_find(n, name);

    if (st == NULL)
        return; /* the server knows none, either */
    b->sql = st->sql;
    b->types = st->types;
    b->by_sql = st->head != NULL;
    native_parse(n, b->sql, &b->facts);
}

static const char *unsupported(const struct batch_msg *m, const struct bound *b)
{
    const struct sql_stmt *s = &b->facts.stmts[0];

    if (s->kind == SQL_COPY_FROM && m->portal.n > 0)
        return "COPY FROM by a named portal";
    if (s->kind == SQL_PREPARE)
        return "PREPARE (SQL) by the extended protocol";
    if (s->kind == SQL_EXECUTE || s->inner == SQL_EXECUTE)
        return "EXECUTE (SQL) by the extended protocol";
    return NULL;
}

/* Each node would read it by its own clock. */
static enum native_verdict judge_values(
    struct native *n, const struct batch_msg *m, struct bound *b)
{
    uint32_t i = n->place.everywhere ? repl_bind_moves(m->rest, b->types) : 0;

    if (i == 0)
        return NATIVE_GO;
    n->place.differs = true;
    b->plan.differs = slice_of_str(arena_printf(n->arena, "$%u", i));
    return native_says_that_it_differs(n, &b->plan) ? NATIVE_REFUSED : NATIVE_GO;
}

static bool is_copy(const struct bound *b)
{
    return b->facts.nstmts > 0 && b->facts.stmts[0].kind == SQL_COPY_FROM;
}

/* What is bound to the unnamed portal behind that Bind: a COPY FROM, or `before`. */
static struct slice copy_behind(
    const struct batch_msg *m, const struct bound *b, struct slice before)
{
    if (m->portal.n > 0)
        return before;
    return is_copy(b) ? b->sql : slice_of("", 0);
}

bool native_batch_copies(struct native *n)
{
    const char *p = n->in.data;
    struct batch_msg m;

    if (n->copy_sql.len == 0 || n->skips || n->failed >= 0 ||
        !batch_next(&p, n->in.data + n->scanned, &m) || m.type != FE_EXECUTE || m.portal.n > 0)
        return false;
    cut(n, p);
    n->text = slice_of(arena_strndup(n->arena, n->copy_sql.data, n->copy_sql.len), n->copy_sql.len);
    buf_clear(&n->copy_sql);
    return true;
}

static enum native_verdict judge_bind(
    struct native *n, struct look *look, const struct batch_msg *m, struct bound *b)
{
    const struct sql_stmt *s;
    enum native_verdict v;
    struct slice sql = b->sql;

    if (sql.p == NULL) {
        n->place.everywhere = true;
        n->place.writes = true;
        return NATIVE_GO;
    }
    if (n->failed >= 0) {
        if (b->facts.nstmts > 0)
            judge_failed(n, &b->facts.stmts[0], look);
        return NATIVE_GO;
    }
    if (b->facts.nstmts > 0 && unsupported(m, b) != NULL) {
        native_refuse(n, "0A000", "native replication does not support %s", unsupported(m, b));
        return NATIVE_REFUSED;
    }
    n->place.known = 0;
    v = native_judge(n, sql, &b->facts, 0, &n->place);
    if (v != NATIVE_GO || b->facts.nstmts == 0 || is_copy(b))
        return v;
    s = &b->facts.stmts[0];
    if (s->tx.op == SQL_TX_BEGIN)
        look->has |= LOOK_BEGINS;
    if (s->tx.op == SQL_TX_COMMIT || s->tx.op == SQL_TX_ROLLBACK)
        look->has |= LOOK_ENDS | LOOK_ENDS_LATER;
    n->ex.is_commit = n->ex.is_commit || s->tx.op == SQL_TX_COMMIT;
    v = native_rewrite(n, sql, s, &b->plan);
    if (v == NATIVE_GO && s->kind == SQL_SELECT && s->flags == SQL_F_READ_ONLY &&
        b->plan.verdict != REPL_REWRITE)
        native_prepared_judged(n, m->name, sql, n->place.known);
    b->locks = v == NATIVE_GO;
    if (v == NATIVE_GO && b->by_sql && b->plan.verdict == REPL_REWRITE) {
        native_refuse(n, "0A000",
            "native replication does not support Bind of what was prepared by SQL and has to be "
            "rewritten");
        return NATIVE_REFUSED;
    }
    return v == NATIVE_GO ? judge_values(n, m, b) : v;
}

static void look_at(const struct batch_msg *m, struct look *look)
{
    switch (m->type) {
    case FE_PARSE:
        look->has |= LOOK_PARSES;
        look->has |= m->name.n > 0 ? LOOK_CHANGES_NAMED : LOOK_PARSED_UNNAMED;
        break;
    case FE_CLOSE:
        if (m->name.n > 0 || m->portal.n > 0)
            look->has |= LOOK_CHANGES_NAMED;
        break;
    case FE_BIND:
        look->has |= LOOK_BINDS;
        if (m->portal.n > 0)
            look->has |= LOOK_BINDS_NAMED;
        if (!has(look, LOOK_ENDS))
            look->ends = m->portal;
        if ((m->name.n == 0 && !has(look, LOOK_PARSED_UNNAMED)))
            look->has |= LOOK_USES_UNNAMED;
        look->nbinds++;
        break;
    case FE_EXECUTE:
        look->has |= LOOK_EXECUTES;
        if (has(look, LOOK_ENDS) && !has(look, LOOK_ENDS_LATER))
            look->has |= LOOK_ENDS_LATER;
        else if (has(look, LOOK_ENDS) && slice_eq(m->portal, look->ends))
            look->has &= ~LOOK_ENDS_LATER;
        break;
    case FE_DESCRIBE:
        if ((m->what == 'S' && m->name.n == 0 && !has(look, LOOK_PARSED_UNNAMED)))
            look->has |= LOOK_DESCRIBES_UNNAMED;
        break;
    default:
        break;
    }
}

/* A sequence that only reads goes to one node, if all that it names is there. */
static void place_batch(struct native *n, const struct look *look)
{
    bool is_whole = n->ex.ends_in_sync && !n->is_open;

    if (has(look, LOOK_BINDS) && !n->place.everywhere) {
        bool one = is_whole && !has(look, LOOK_BINDS_NAMED) && !has(look, LOOK_CHANGES_NAMED);

        n->portal = NATIVE_ALL;
        if (one && has(look, LOOK_USES_UNNAMED) && n->unnamed >= 0)
            n->portal = n->unnamed;
        n->place.everywhere = !one;
        n->place.wraps =
            !n->ex.ends_in_sync && !has(look, LOOK_USES_UNNAMED); /* portals live on in it */
    } else if (!has(look, LOOK_BINDS) && has(look, LOOK_EXECUTES)) {
        n->place.everywhere = n->portal == NATIVE_ALL;
    } else if (!has(look, LOOK_BINDS)) {
        n->place.everywhere =
            !(has(look, LOOK_DESCRIBES_UNNAMED) && !has(look, LOOK_PARSES) && n->unnamed >= 0);
        n->portal = n->place.everywhere ? NATIVE_ALL : n->unnamed;
    } else {
        n->portal = NATIVE_ALL;
        n->place.wraps = n->place.wraps && !has(look, LOOK_BEGINS | LOOK_ENDS);
    }
}

/* A question of ours, or a BEGIN, may have taken the unnamed statement away: it is parsed once more
 * in front of all. NULL: nothing needs it, or it is not known. */
static const struct native_change *parse_again(struct native *n, struct look *look)
{
    const unsigned uses = LOOK_USES_UNNAMED | LOOK_DESCRIBES_UNNAMED;
    const struct native_change *st = NULL;

    if (has(look, uses) && !has(look, LOOK_PARSED_UNNAMED))
        st = native_prepared_find(n, slice_of("", 0));
    if (st == NULL)
        return NULL;
    look->has &= ~uses;
    look->has |= LOOK_PARSED_UNNAMED | LOOK_PARSES;
    return st;
}

/* ---- what is sent ---- */

static void put_op(struct native *n, const struct batch_msg *m, unsigned op)
{
    buf_put(&n->out, m->whole.p, m->whole.n);
    if (op != 0)
        buf_put_byte(&n->ops, (char)op);
}

static void put_bind(struct native *n, const struct batch_msg *m, const struct bound *b)
{
    struct buf sql = {0};
    uint32_t start;

    if (b->plan.verdict != REPL_REWRITE && !n->commit.is_clients) {
        put_op(n, m, OP_BIND);
        return;
    }
    if (n->commit.is_clients)
        n->commit.ops->put(n, &sql);
    else
        repl_rewrite_text(&b->plan, b->sql, &b->facts.stmts[0], n->values + b->first, &sql);
    native_put_parse(&n->out, &n->ops, OUR_NAME, buf_slice(&sql), b->types);
    buf_free(&sql);
    start = wire_begin(&n->out, FE_BIND);
    buf_put(&n->out, m->portal.p, m->portal.n);
    buf_put_byte(&n->out, '\0');
    buf_put_cstr(&n->out, OUR_NAME);
    buf_put(&n->out, m->rest.p, m->rest.n);
    wire_end(&n->out, start);
    buf_put_byte(&n->ops, OP_BIND);
}

/* Locks go in front of all: a Parse of an INSERT has locked its table, and two who had would wait
 * for each other. */
static void put_locks(struct native *n, const struct bound *bounds, unsigned count)
{
    struct buf sql = {0};
    uint32_t known = 0;

    for (unsigned k = 0; k < count; k++) {
        const struct bound *b = &bounds[k];

        for (unsigned i = 0;
             b->locks && native_lock_sql(n, b->sql, &b->facts.stmts[0], &b->plan, i, &sql); i++) {
            native_put_own(&n->out, &n->ops, OUR_LOCK, buf_slice(&sql));
            if (n->numbers.n > known)
                n->ops.data[n->ops.len - 1] |= (char)OP_NOTE; /* its row is taken */
            known = n->numbers.n;
            buf_clear(&sql);
        }
    }
    buf_free(&sql);
}

static void put_batch(struct native *n, const struct part *part, const struct native_change *again)
{
    unsigned bound = 0;

    buf_clear(&n->out);
    buf_clear(&n->ops);
    put_locks(n, part->bounds, part->look.nbinds);
    if (again != NULL)
        native_put_parse(&n->out, &n->ops, "", again->sql, again->types);
    for (unsigned i = 0; i < part->nmsgs; i++) {
        const struct batch_msg *m = &part->msg[i];

        if (n->skips && m->type != FE_SYNC)
            continue;
        if (m->type == FE_BIND)
            put_bind(n, m, &part->bounds[bound++]);
        else if (strchr("PDECS", m->type) != NULL)
            put_op(n, m, expect_op_of(m->type));
    }
    if (!n->ex.ends_in_sync && n->ops.len > 0) {
        wire_put_empty(&n->out, FE_SYNC);
        buf_put_byte(&n->ops, OP_SYNC);
    }
}

/* ---- values ---- */

/* All values of a sequence are asked for at once, and its plan is one, as far as that matters
 * behind it. True: the question is under way. */
static bool ask_values(struct native *n, struct bound *bounds, unsigned count)
{
    struct buf sql = {0};
    uint32_t nasks = 0;

    for (unsigned i = 0; i < count; i++) {
        const struct repl_plan *plan = &bounds[i].plan;

        bounds[i].first = nasks;
        repl_rewrite_asks(plan, nasks, &sql);
        nasks += plan->nasks;
        n->plan.serial = plan->serial == NULL ? n->plan.serial : plan->serial;
        n->plan.nsequences += plan->nsequences;
    }
    n->plan.nasks = nasks;
    if (native_counts_commits(n) && !n->place.wraps)
        repl_which_sql(&sql);
    if (n->values != NULL || sql.len == 0) {
        buf_free(&sql);
        return false;
    }
    n->values = arena_alloc_zero(n->arena, (nasks + 1) * sizeof *n->values);
    native_round(n, STEP_VALUES, true, -1);
    native_put_query(n, buf_slice(&sql));
    native_send(n, &n->leg[n->main], false); /* the time is that of the client's transaction */
    buf_free(&sql);
    return true;
}

/* ---- parts ----
 *
 * A sequence is run in parts, each of which ends with a Sync: the client's, or one of ours in place
 * of a Flush, or behind a statement after which the next ones mean something else (BEGIN,
 * SAVEPOINT, SET, DDL), and around the end of a transaction, of prepared statements. Outside of a
 * transaction our own one goes on over the parts, so that the sequence is one, as on a server. */

enum breaks { BREAKS_NOT, BREAKS_BEHIND, BREAKS_AROUND };

static enum breaks breaks(const struct bound *b)
{
    const struct sql_stmt *s = b->facts.nstmts == 0 ? NULL : &b->facts.stmts[0];

    if (s == NULL)
        return BREAKS_NOT;
    if (s->tx.op == SQL_TX_COMMIT || s->tx.op == SQL_TX_ROLLBACK || s->kind == SQL_DEALLOCATE ||
        s->verb == SQL_VERB_DISCARD)
        return BREAKS_AROUND;
    /* What fails behind it would keep a savepoint, or where a cursor stands, from the others. */
    if (s->tx.op == SQL_TX_BEGIN || s->kind == SQL_SAVEPOINT || s->kind == SQL_FETCH ||
        s->kind == SQL_SET || s->kind == SQL_RESET || s->kind == SQL_OTHER ||
        route_changes_schema(s))
        return BREAKS_BEHIND;
    return BREAKS_NOT;
}

struct end {
    unsigned start;     /* of what belongs to the Execute that comes: a message's number */
    unsigned nbinds;    /* in front of that */
    char last;          /* the message before */
    enum breaks breaks; /* the worst of the part */
};

/* Whether the part ends in front of message number `i`. */
static bool is_over(struct end *e, char type, unsigned i)
{
    if (e->last == FE_EXECUTE && type != FE_EXECUTE && type != FE_SYNC && type != FE_FLUSH) {
        if (e->breaks != BREAKS_NOT)
            return true;
        e->start = i;
    }
    e->last = type;
    return false;
}

/* Reads what is bound, up to where the part ends: how many messages belong to it. */
static unsigned find_end(struct native *n, const struct part *part)
{
    struct end e = {0};
    struct slice copy = buf_slice(&n->copy_sql);
    unsigned count = 0;

    for (unsigned i = 0; i < part->nmsgs; i++) {
        const struct batch_msg *m = &part->msg[i];
        struct bound *b = &part->bounds[count];

        if (is_over(&e, m->type, i))
            return i;
        if (m->type == FE_PARSE || m->type == FE_CLOSE)
            native_prepared_note(n, m);
        if (m->type == FE_EXECUTE && m->portal.n == 0 && copy.n > 0 && n->failed < 0)
            return i;
        if (m->type != FE_BIND)
            continue;
        read_bound(n, m->name, b);
        copy = copy_behind(m, b, copy);
        if (breaks(b) == BREAKS_AROUND && e.nbinds > 0 && e.start > 0)
            return e.start;
        if (breaks(b) > e.breaks)
            e.breaks = breaks(b);
        count++;
        e.nbinds++;
    }
    return part->nmsgs;
}

/* A COMMIT executed in another part is refused: what makes it one on all nodes would miss it. */
static bool ends_later(struct native *n, const struct look *look)
{
    if (!has(look, LOOK_ENDS_LATER))
        return false;
    native_refuse(n, "0A000",
        "COMMIT or ROLLBACK that is executed behind another Flush or Sync than the one it was "
        "bound in front of is not supported in native replication");
    return true;
}

/* False: the client is ended, as one of them cannot be read. */
static bool read_messages(struct native *n, struct part *part)
{
    const char *p = n->in.data;
    const char *end = p + n->scanned;
    struct message raw;
    unsigned nbinds = 0;
    unsigned nmsgs = 0;

    for (; message_next(&p, end, &raw); nmsgs++)
        nbinds += raw.type == FE_BIND;
    part->msg = arena_alloc(n->arena, (nmsgs + 1) * sizeof *part->msg);
    part->bounds = arena_alloc_zero(n->arena, (nbinds + 1) * sizeof *part->bounds);
    for (p = n->in.data; batch_next(&p, end, &part->msg[part->nmsgs]); part->nmsgs++) {
        const struct batch_msg *m = &part->msg[part->nmsgs];

        if (m->is_bad) {
            client_end_text(n->c, "08P01", "invalid message of type %c", m->type);
            return false;
        }
        n->ex.ends_in_sync = m->type == FE_SYNC;
    }
    return true;
}

/* What was noted of a Parse behind the cut is not the part's: it is looked at once more. */
static enum native_verdict look_through(struct native *n, struct part *part)
{
    struct look *look = &part->look;
    unsigned count = 0;
    unsigned end;
    enum native_verdict v = NATIVE_GO;

    if (!read_messages(n, part))
        return NATIVE_REFUSED;
    native_prepared_begin(n);
    if (n->skips)
        return NATIVE_GO;
    end = find_end(n, part);
    if (end < part->nmsgs) {
        cut(n, part->msg[end].whole.p);
        part->nmsgs = end;
    }
    native_prepared_begin(n);
    for (unsigned i = 0; v == NATIVE_GO && i < part->nmsgs; i++) {
        const struct batch_msg *m = &part->msg[i];

        look_at(m, look);
        if (m->type == FE_PARSE || m->type == FE_CLOSE)
            native_prepared_note(n, m);
        if (m->type == FE_PARSE)
            n->text = slice_of(arena_strndup(n->arena, m->sql.p, m->sql.n), m->sql.n);
        if (m->type == FE_BIND)
            v = judge_bind(n, look, m, &part->bounds[count++]);
    }
    return v == NATIVE_GO && ends_later(n, look) ? NATIVE_REFUSED : v;
}

/* The client begins or ends a transaction in the middle of a sequence: ours becomes its own. */
static void adopt(struct native *n)
{
    n->wrapped = false;
    for (unsigned i = 0; i < n->nlegs; i++)
        n->leg[i].begun = false;
}

/* A COMMIT may become one of two phases. */
static enum native_verdict choose_commit(struct native *n, const struct part *part)
{
    const unsigned nbinds = part->look.nbinds;

    for (unsigned i = 0; i < nbinds; i++) {
        const struct sql_facts *facts = &part->bounds[i].facts;

        if (facts->nstmts > 0 &&
            n->commit.ops->choose(n, &facts->stmts[0], nbinds == 1) != NATIVE_GO)
            return NATIVE_REFUSED;
    }
    return NATIVE_GO;
}

/* The part runs: only now is it bound, for a part is looked through again behind each question. */
static void note_copy(struct native *n, const struct part *part)
{
    const struct bound *b = part->bounds;
    struct slice copy = buf_slice(&n->copy_sql);

    for (unsigned i = 0; i < part->nmsgs; i++) {
        if (part->msg[i].type == FE_BIND)
            copy = copy_behind(&part->msg[i], b++, copy);
    }
    if (copy.p == n->copy_sql.data)
        return;
    buf_clear(&n->copy_sql);
    buf_put(&n->copy_sql, copy.p, copy.n);
}

static void note_bound(struct native *n, const struct part *part)
{
    for (unsigned i = 0; i < part->look.nbinds; i++) {
        const struct bound *b = &part->bounds[i];

        if (b->sql.p != NULL && b->facts.nstmts > 0)
            native_note(n, b->sql, &b->facts.stmts[0]);
        else if (b->sql.p != NULL && b->facts.status != SQL_OK)
            native_note_schema(n, b->sql, NULL);
    }
}

/* NATIVE_REFUSED: it was a BEGIN, and is answered. */
static enum native_verdict plan_begin(struct native *n, const struct part *part)
{
    const struct look *look = &part->look;
    const struct bound *b = part->bounds;

    if (look->nbinds == 1 && has(look, LOOK_BEGINS) &&
        native_begin_answers_batch(n, b->sql, &b->facts.stmts[0])) {
        native_prepared_settle(n, n->nchanges, true);
        note_copy(n, part);
        n->portal = n->unnamed = NATIVE_ALL;
        native_finish(n);
        return NATIVE_REFUSED;
    }
    if (!native_begin_must_go(n, has(look, LOOK_BEGINS | LOOK_ENDS | LOOK_ENDS_TO)))
        return NATIVE_GO;
    native_begin_all(n);
    return NATIVE_ASK;
}

enum native_verdict native_batch_plan(struct native *n)
{
    struct part part = {0};
    struct look *look = &part.look;
    const struct native_change *again;
    enum native_verdict v;
    bool holds;

    n->place = (struct native_place){0};
    n->plan = (struct repl_plan){0};
    n->numbers = (struct repl_numbers){0};
    n->ex.is_commit = false;
    n->ex.forgets = NULL;
    native_follow_schema(n);
    v = look_through(n, &part);
    if (v != NATIVE_GO)
        return v;
    if (n->skips || n->failed >= 0) {
        again = n->skips ? NULL : parse_again(n, look);
        n->place = (struct native_place){
            .everywhere =
                n->skips || has(look, LOOK_ENDS | LOOK_ENDS_TO | LOOK_PARSES | LOOK_CHANGES_NAMED)};
        n->portal = NATIVE_ALL;
        put_batch(n, &part, again);
        return NATIVE_GO;
    }
    v = plan_begin(n, &part);
    if (v != NATIVE_GO)
        return v;
    again = parse_again(n, look);
    if (n->wrapped && has(look, LOOK_BEGINS | LOOK_ENDS))
        adopt(n);
    place_batch(n, look);
    /* Where nothing wraps it, there is no transaction that would hold a lock. */
    holds = native_tx(n) == 'T' || n->place.wraps || n->wrapped;
    for (unsigned i = 0; i < look->nbinds; i++)
        part.bounds[i].locks = part.bounds[i].locks && holds;
    if (n->place.everywhere && ask_values(n, part.bounds, look->nbinds))
        return NATIVE_ASK;
    if (choose_commit(n, &part) != NATIVE_GO)
        return NATIVE_REFUSED;
    if (has(look, LOOK_PARSED_UNNAMED))
        n->unnamed = n->place.everywhere ? NATIVE_ALL : NATIVE_HERE;
    note_bound(n, &part);
    note_copy(n, &part);
    put_batch(n, &part, again);
    return NATIVE_GO;
}
