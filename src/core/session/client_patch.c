/* SPDX-License-Identifier: PostgreSQL
 * client_patch.c: a cached link that was opened with other start-up parameters is brought up to
 * date by SET. What the client must not notice: a parameter of the startup packet is what RESET
 * goes back to, a SET is not. So after a RESET or DISCARD ALL that fell back to the link's own
 * values, the client's are set again. Only settings that the server reports are treated so, for
 * only with them it is known. */
#include "config.h"

#include <string.h>

#include "base/mem.h"
#include "wire/writer.h"

#include "session_int.h"

struct client_patch {
    struct paramset wants;  /* name, value as the client gave it: what was SET */
    struct paramset base;   /* name, value reported before: what RESET goes back to */
    struct paramset undone; /* names that fell back during the present statement */
    bool saw_reset;
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

/* SET statements, one Query. standard_conforming_strings may be off: a value with a backslash is
 * not patched at all (client_patch_start). */
static void patch_send(struct client *c, const struct paramset *what, const struct paramset *names)
{
    struct buf sql = {0};
    struct buf out = {0};
    struct slice name;
    struct slice value;
    uint32_t at = 0;

    while (paramset_next(what, &at, &name, &value)) {
        if (names != NULL && paramset_get(names, name).p == NULL)
            continue;
        buf_printf(&sql, "SET %.*s TO ", (int)name.n, name.p);
        put_quoted(&sql, value);
        buf_put_byte(&sql, ';');
    }
    wire_put_query(&out, buf_slice(&sql));
    link_expect(c->link, OP_QUERY | OP_SWALLOW);
    (void)link_send(c->link, out.data, out.len);
    buf_free(&sql);
    buf_free(&out);
}

void client_patch_start(struct client *c, const struct paramset *wants)
{
    struct client_patch *p = mem_alloc_zero(sizeof *p);
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
    }
    link_forget_failure(c->link);
    patch_send(c, &p->wants, NULL);
}

int client_patch_finish(struct client *c)
{
    if (link_own_failed(c->link) || c->link->tx_status != 'I')
        return -1;
    c->link->tells = LINK_TELLS_ALL;
    return 0;
}

void client_patch_on_parameter(struct client *c, struct slice name, struct slice value)
{
    struct client_patch *p = client_patch(c);
    struct slice base = paramset_get(&p->base, name);

    if (base.p != NULL && slice_eq(base, value))
        (void)paramset_set(&p->undone, name, value);
}

void client_patch_on_tag(struct client *c, struct slice tag)
{
    if (slice_eq_str(tag, "RESET") || slice_eq_str(tag, "DISCARD ALL"))
        client_patch(c)->saw_reset = true;
}

bool client_patch_repair(struct client *c)
{
    struct client_patch *p = client_patch(c);
    bool repair = p->saw_reset && !paramset_is_empty(&p->undone) && c->link->tx_status != 'E';

    if (repair)
        patch_send(c, &p->wants, &p->undone);
    paramset_free(&p->undone);
    p->saw_reset = false;
    return repair;
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
    paramset_free(&p->undone);
    mem_free(p);
    client_rare_trim(c);
}
