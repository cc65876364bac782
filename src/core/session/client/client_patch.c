/* SPDX-License-Identifier: PostgreSQL
 * client_patch.c: a cached link that was opened with other start-up parameters is brought up to
 * date by SET. What the client must not notice: a parameter of the startup packet is what RESET
 * goes back to, a SET is not. So where a setting has the link's own value again, and nobody has SET
 * it to that, the client's is set again. Who has SET it, the server knows, whatever did it: RESET,
 * SET TO DEFAULT, set_config(), code. Only settings that the server reports are treated so. What
 * the client sends behind a text that may reset one waits until that is put right. */
#include "config.h"

#include <string.h>
#include <strings.h>

#include "base/mem.h"
#include "wire/writer.h"

#include "client_int.h"

struct client_patch {
    struct paramset wants; /* name, value as the client gave it: what was SET */
    struct paramset base;  /* name, value reported before: what RESET goes back to */
    bool may_reset;        /* what runs, by its text */
    bool is_local;         /* what runs sets until its transaction ends */
    bool is_due;           /* something may have gone back to its base */
};

static void put_quoted(struct buf *out, struct slice value)
{
    size_t i;

    buf_put_byte(out, '\'');
    for (i = 0; i < value.n; i++) {
        if (value.p[i] == '\'')
            buf_put_byte(out, '\'');
        buf_put_byte(out, value.p[i]);
    }
    buf_put_byte(out, '\'');
}

static void patch_send(struct client *c, const struct buf *sql)
{
    struct buf out = {0};

    wire_put_query(&out, buf_slice(sql));
    link_expect(c->link, OP_QUERY | OP_SWALLOW);
    (void)link_send(c->link, out.data, out.len);
    buf_free(&out);
}

/* standard_conforming_strings may be off: a value with a backslash is not patched (pool.c). */
static void put_set(struct buf *sql, struct slice name, struct slice value)
{
    buf_printf(sql, "SET %.*s TO ", (int)name.n, name.p);
    put_quoted(sql, value);
    buf_put_byte(sql, ';');
}

/* What was reset by SET LOCAL is what it was before, when its transaction ends. */
static void put_set_unless_set(
    struct buf *sql, struct slice name, struct slice value, bool is_local)
{
    buf_printf(sql, "SELECT pg_catalog.set_config(name, ");
    put_quoted(sql, value);
    buf_printf(sql,
        ", %s) FROM pg_catalog.pg_settings WHERE pg_catalog.lower(name)"
        " OPERATOR(pg_catalog.=) pg_catalog.lower('%.*s')"
        " AND source OPERATOR(pg_catalog.<>) 'session';",
        is_local ? "true" : "false", (int)name.n, name.p);
}

void client_patch_start(struct client *c, const struct paramset *wants)
{
    struct client_patch *p = mem_alloc_zero(sizeof *p);
    struct buf sql = {0};
    struct slice name;
    struct slice value;
    struct slice has;
    uint32_t at = 0;

    client_rare(c)->patch = p;
    while (paramset_next(wants, &at, &name, &value)) {
        has = paramset_get(&c->link->startup, name);
        if (has.p != NULL && slice_eq(has, value))
            continue;
        (void)paramset_set(&p->wants, name, value);
        has = paramset_get(&c->link->reported, name);
        (void)paramset_set(&p->base, name, has.p == NULL ? slice_of("", 0) : has);
        put_set(&sql, name, value);
    }
    link_forget_failure(c->link);
    patch_send(c, &sql);
    buf_free(&sql);
}

int client_patch_finish(struct client *c)
{
    if (link_own_failed(c->link) || c->link->tx_status != 'I')
        return -1;
    c->link->loan.tells = LINK_TELLS_ALL;
    client_patch(c)->is_due = false; /* by our own words */
    return 0;
}

static bool begins_with(struct slice text, size_t at, const char *word)
{
    size_t n = strlen(word);

    return text.n - at >= n && strncasecmp(text.p + at, word, n) == 0;
}

bool client_patch_minds(struct slice sql)
{
    bool minds = false;
    size_t i;

    for (i = 0; i < sql.n && !minds; i++)
        switch (sql.p[i] | 0x20) {
        case 'd':
            minds = begins_with(sql, i, "discard") || begins_with(sql, i, "default");
            break;
        case 'l':
            minds = begins_with(sql, i, "local");
            break;
        case 'r':
            minds = begins_with(sql, i, "reset");
            break;
        case 's':
            minds = begins_with(sql, i, "set_config");
            break;
        default:
            break;
        }
    return minds;
}

static bool says_local(struct slice sql)
{
    size_t i;

    for (i = 0; i < sql.n; i++)
        if (begins_with(sql, i, "set local"))
            return true;
    return false;
}

void client_patch_note(struct client *c, struct slice sql)
{
    struct client_patch *p = client_patch(c);

    p->may_reset = p->may_reset || client_patch_minds(sql);
    p->is_local = p->is_local || (p->may_reset && says_local(sql));
}

bool client_patch_is_behind(const struct client *c)
{
    return client_patch(c)->may_reset;
}

bool client_patch_holds(const struct client *c, char type)
{
    return client_patch(c)->may_reset && c->link != NULL && !c->server_batch &&
           !expect_is_quiet(&c->link->expect) && !expect_is_copying(&c->link->expect) &&
           !c->link->expect.lost && type != '\0' && strchr("QFPBDEC", type) != NULL;
}

void client_patch_on_parameter(struct client *c, struct slice name, struct slice value)
{
    struct client_patch *p = client_patch(c);
    struct slice base = paramset_get(&p->base, name);

    p->is_due = p->is_due || (base.p != NULL && slice_eq(base, value));
}

void client_patch_on_tag(struct client *c, struct slice tag)
{
    struct client_patch *p = client_patch(c);

    p->is_due = p->is_due || slice_eq_str(tag, "RESET") || slice_eq_str(tag, "SET") ||
                slice_eq_str(tag, "DISCARD ALL");
}

bool client_patch_repair(struct client *c)
{
    struct client_patch *p = client_patch(c);
    struct buf sql = {0};
    struct slice name;
    struct slice value;
    bool is_local = p->is_local && c->link->tx_status == 'T';
    bool is_any;
    uint32_t at = 0;

    p->is_due = p->is_due || p->may_reset; /* to what the client itself has SET: not reported */
    p->may_reset = p->is_local = false;
    if (!p->is_due || c->link->tx_status == 'E')
        return false;
    p->is_due = false;
    while (paramset_next(&p->wants, &at, &name, &value))
        if (slice_eq(paramset_get(&c->link->reported, name), paramset_get(&p->base, name)))
            put_set_unless_set(&sql, name, value, is_local);
    is_any = sql.len > 0;
    if (is_any)
        patch_send(c, &sql);
    buf_free(&sql);
    return is_any;
}

void client_patch_params(const struct client *c, struct paramset *params)
{
    const struct client_patch *p = client_patch(c);
    struct slice name;
    struct slice value;
    uint32_t at = 0;

    while (p != NULL && paramset_next(&p->wants, &at, &name, &value))
        (void)paramset_set(params, name, value);
}

void client_patch_free(struct client *c)
{
    struct client_patch *p = client_patch(c);

    if (p == NULL)
        return;
    c->rare->patch = NULL;
    paramset_free(&p->wants);
    paramset_free(&p->base);
    mem_free(p);
    client_rare_trim(c);
}
