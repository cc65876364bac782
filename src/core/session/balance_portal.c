/* SPDX-License-Identifier: PostgreSQL
 * balance_portal.c: portals that the open transaction has on readers. What leaves it and may be
 * gone on with (Execute with a row limit, portals with names) is found again there: the reader is
 * its guest, so they live to its end, as they would on one server. Runs in: workers.
 *
 * Must never: let what goes on with a portal run where that is not. */
#include "config.h"

#include <string.h>

#include "base/hot.h"
#include "wire/batch.h"
#include "wire/writer.h"

#include "balance_int.h"

/* A sequence of which so much has come is not waited for. */
#define SEQUENCE_MAX 65536
/* All names of one transaction; with more they stay at home. */
#define PORTALS_MAX 512

_Static_assert(BALANCE_MAX_READERS < 127, "a reader's place and 1 is one byte that is not NUL");

static char place_of(const struct balance_own *own, const struct reader *r)
{
    unsigned i;

    for (i = 0; i < own->nreaders && own->reader[i] != r;)
        i++;
    return (char)(i + 1);
}

/* The entry of this name: the reader's place, the name, NUL. NULL: there is none. */
static char *find_entry(const struct balance_own *own, struct slice name)
{
    char *p = own->portals.data;
    char *end = p + own->portals.len;

    for (; p < end; p += strlen(p) + 1)
        if (prep_is_same_name(slice_of_str(p + 1), name))
            return p;
    return NULL;
}

static void drop_entry(struct balance_own *own, char *p)
{
    size_t n = strlen(p) + 1;
    size_t at = (size_t)(p - own->portals.data);

    memmove(p, p + n, own->portals.len - at - n);
    own->portals.len -= (uint32_t)n;
}

struct reader *balance_portal_at(const struct client *c, struct slice name)
{
    const struct balance_own *own = c->balance->own;
    struct reader *r = own->unnamed_at;
    const char *p;

    if (name.n > 0) {
        p = own->portals.len == 0 ? NULL : find_entry(own, name);
        r = p == NULL ? NULL : own->reader[*p - 1];
    }
    if (r == NULL || !r->in_tx || r->phase != READER_READY || own->home != NULL)
        return NULL;
    /* One of them failed: the home has something to say of it. Both: they say the same. */
    return r->link->tx_status == balance_tx_status(c) ? r : NULL;
}

bool balance_portal_may_leave(const struct client *c, struct slice name)
{
    const struct balance_own *own = c->balance->own;

    return !own->tx.has_savepoint && own->portals.len + name.n + 2 <= PORTALS_MAX;
}

static void forget_all(struct balance_own *own)
{
    own->has_portals = false;
    own->unnamed_at = NULL;
    buf_free(&own->portals);
}

void balance_portals_forget(struct client *c, const struct reader *r)
{
    struct balance_own *own = c->balance->own;
    uint32_t at = 0;

    if (r == NULL) {
        forget_all(own);
        return;
    }
    if (own->unnamed_at == r)
        own->unnamed_at = NULL;
    while (at < own->portals.len)
        if (own->reader[own->portals.data[at] - 1] == r)
            drop_entry(own, own->portals.data + at);
        else
            at += (uint32_t)strlen(own->portals.data + at) + 1;
}

/* It is not where it was. */
static void drop(struct balance_own *own, struct slice name)
{
    char *p;

    if (name.n == 0) {
        own->unnamed_at = NULL;
        return;
    }
    p = own->portals.len == 0 ? NULL : find_entry(own, name);
    if (p != NULL)
        drop_entry(own, p);
}

void balance_portals_note(struct client *c, char type, struct slice msg)
{
    struct balance_own *own = c->balance->own;
    struct reader *to = balance_reader_of_target(c);
    struct batch_msg m;
    struct reader *at;
    struct slice name;

    batch_read(&m, type, message_body(msg));
    name = m.portal;
    if (name.p == NULL)
        return;
    at = balance_portal_at(c, name);
    if (type == FE_CLOSE && at != NULL && at != to)
        balance_send_close(at->link, 'P', name);
    if (type == FE_CLOSE && at == NULL && to != NULL && to->in_tx)
        balance_send_close(c->link, 'P', name);
    drop(own, name);
    if (type != FE_BIND || to == NULL || !to->in_tx)
        return;
    if (name.n == 0) {
        own->unnamed_at = to;
        return;
    }
    buf_put_byte(&own->portals, place_of(own, to));
    buf_put(&own->portals, name.p, name.n);
    buf_put_byte(&own->portals, '\0');
}

WARM void balance_portals_unnamed(struct client *c, bool binds)
{
    struct balance_own *own = c->balance->own;
    struct link *home = own->home == NULL ? c->link : own->home->link;
    char tx = balance_tx_status(c);

    if (own->has_unnamed && home != NULL && c->target != home && tx == 'T')
        balance_send_close(home, 'P', slice_of("", 0));
    own->has_unnamed = binds && c->target == home && tx != 'I';
}

void balance_portals_close_all(struct client *c)
{
    struct balance_own *own = c->balance->own;
    unsigned i;

    for (i = 0; i < own->nreaders; i++)
        if (own->reader[i]->in_tx && own->reader[i]->link != c->target)
            balance_send_own_text(c, own->reader[i]->link, slice_of_str("CLOSE ALL"));
    forget_all(own);
}

struct reader *balance_portals_named(const struct client *c, const char *p, const char *end)
{
    bool has_unnamed = false;
    struct reader *r;
    struct batch_msg m;

    while (batch_next_part(&p, end, &m) && m.type != FE_SYNC && m.type != FE_QUERY) {
        if (m.portal.p == NULL)
            continue;
        if (m.portal.n == 0 && (m.type == FE_BIND || has_unnamed)) {
            has_unnamed = true;
            continue;
        }
        r = balance_portal_at(c, m.portal);
        if (r != NULL)
            return r;
    }
    return NULL;
}

bool balance_portals_wait(const char *p, const char *end)
{
    struct batch_msg m;

    if (end - p > SEQUENCE_MAX)
        return false;
    while (batch_next_part(&p, end, &m))
        if (strchr("BCDEP", m.type) == NULL)
            return false;
    return end - p < PROTO_HEADER_BYTES;
}
