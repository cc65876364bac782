/* SPDX-License-Identifier: PostgreSQL
 * follow_travel.c: what makes the session of a followed client, as bytes for another
 * worker: its settings, its prepared statements by the protocol, what it was told. Runs in:
 * workers. Who is tied to a link, or amidst anything, does not travel. */
#include "config.h"

#include "base/mem.h"

#include "client/client_travel_int.h"
#include "sstate_int.h"
#include "sstate/phase_int.h"

/* Above this the names of a client are not looked at: they would not fit into a message. */
#define TRAVEL_NAMES_BYTES 49152

/* What of struct sstate goes as it is. */
struct travel_mail {
    uint8_t mode;
    bool tells_all;   /* what it was told of settings is not what the pool's servers say */
    bool same_client; /* the settings are those of the start-up packet */
    bool same_link;
    int16_t avoid_node;
    uint16_t nnames;
    uint32_t version;
    int64_t avoid_until_us;
};

struct name_mail {
    uint64_t path_hash;
    uint64_t told;
    bool is_described;
};

static bool is_free(const struct sstate *s)
{
    if (s->pins != 0 || lent_keeps(s) || names_nsql(&s->names) > 0 ||
        (s->names.set != NULL && s->names.set->bytes > TRAVEL_NAMES_BYTES))
        return false;
    return !sstate_tx_is_lost(s) && s->tx != SSTATE_TX_UNTOLD && s->parameters == PARAMETERS_TOLD &&
           !s->look_at_pins;
}

bool follow_can_travel(const struct client *c)
{
    const struct sstate *s = c->sstate;

    return s->errand == NULL && s->phase == PHASE_DETACHED && s->tx != SSTATE_TX_VIRTUAL &&
           is_free(s);
}

/* Nothing is left in it of an exchange before, and the present one has not been with a server. */
static bool is_first_try(const struct errand *t)
{
    return t->way.npending == 0 && t->savepoints.newest == NULL && t->ends == NULL &&
           t->ended == NULL && t->portals == NULL && t->way.words == NULL && t->home == NULL &&
           t->early.len == 0 && t->refusal == NULL && t->last_words == NULL &&
           paramset_is_empty(&t->told) && t->nresent == 0 && t->nunfit == 0 && t->nskip == 0 &&
           t->refused_us == 0 && t->not_before_us == 0 && t->homeless_until_us == 0;
}

/* False when something has happened in a transaction whose BEGIN no server has seen. */
static bool has_just_begun(const struct sstate *s)
{
    const struct errand *t = s->errand;

    return s->tx != SSTATE_TX_VIRTUAL ||
           (t->leave.snapshot == PLAN_SNAPSHOT_NONE && t->tx.client == s->vars.client &&
               t->tx.link == s->vars.link);
}

bool follow_waiter_can_travel(const struct client *c)
{
    const struct sstate *s = c->sstate;

    return c->kind->errand(c) != NULL && s->phase == PHASE_WAITING && s->errand->wait != NULL &&
           is_free(s) && is_first_try(s->errand) && has_just_begun(s);
}

/* `n`: the name that it has; NULL: none. */
static void pack_prep(struct buf *out, const struct prep *p, const struct names_entry *n)
{
    struct name_mail m;

    memset(&m, 0, sizeof m); /* no byte leaves that nobody wrote */
    m.path_hash = p->path_hash;
    m.told = n == NULL ? 0 : n->told;
    m.is_described = n != NULL && n->is_described;
    travel_put(out, &m, sizeof m);
    travel_put(out, p->body, p->body_len);
}

static void pack_names(const struct sstate *s, struct buf *out)
{
    const struct names_entry *n = NULL;

    while ((n = names_next(s->names.set, n)) != NULL) {
        travel_put(out, n->name, n->len);
        pack_prep(out, n->prep, n);
    }
}

void follow_pack(const struct client *c, struct buf *out)
{
    const struct sstate *s = c->sstate;
    struct slice defaults = paramset_bytes(&c->pool->defaults);
    struct travel_mail m;

    memset(&m, 0, sizeof m);
    m.mode = s->mode;
    m.tells_all = s->defaults_seen != c->ss->defaults_serial;
    m.same_client = s->vars.client == s->base;
    m.same_link = s->vars.link == s->base;
    m.avoid_node = s->avoid_node;
    m.nnames = s->names.set == NULL ? 0 : (uint16_t)s->names.set->table.count;
    m.version = s->version;
    m.avoid_until_us = s->avoid_until_us;
    travel_put(out, &m, sizeof m);
    travel_put(out, defaults.p, defaults.n);
    travel_put(out, s->base->data, s->base->len);
    if (!m.same_client)
        travel_put(out, s->vars.client->data, s->vars.client->len);
    if (!m.same_link)
        travel_put(out, s->vars.link->data, s->vars.link->len);
    if (s->names.unnamed != NULL)
        pack_prep(out, s->names.unnamed, NULL);
    else
        travel_put(out, "", 0);
    if (m.nnames > 0)
        pack_names(s, out);
}

/* Settings that nobody has SET, as the other worker's links reported them: ours from now on, where
 * we had none. False when ours say otherwise: a server was reloaded, and one of us has not seen it
 * yet. */
static bool learn_defaults(struct paramset *ours, struct slice bytes)
{
    struct paramset theirs = {0};
    struct slice name;
    struct slice value;
    struct slice known;
    uint32_t at = 0;
    bool is_same = true;

    if (bytes.n > 0)
        paramset_set_bytes(&theirs, bytes);
    while (paramset_next(&theirs, &at, &name, &value)) {
        known = paramset_get(ours, name);
        if (known.p == NULL)
            (void)paramset_set(ours, name, value);
        else
            is_same = is_same && slice_eq(known, value);
    }
    paramset_free(&theirs);
    return is_same;
}

static struct varset *unpack_vars(struct client *c, struct travel_bag *bag, bool is_base)
{
    struct slice data;

    if (is_base)
        return varset_ref(c->sstate->base);
    data = travel_take(bag);
    return varset_of_bytes(&c->ss->be.varsets, data.p, (uint32_t)data.n);
}

/* NULL: there is none. */
static struct prep *unpack_prep(struct client *c, struct travel_bag *bag, struct name_mail *m)
{
    struct slice head = travel_take(bag);
    struct slice body;

    if (head.n == 0)
        return NULL;
    bag->bad = bag->bad || head.n != sizeof *m;
    body = travel_take(bag);
    if (bag->bad)
        return NULL;
    memcpy(m, head.p, sizeof *m);
    return follow_prep_with(c, body, m->path_hash);
}

static void unpack_names(struct client *c, struct travel_bag *bag, unsigned nnames)
{
    struct names_entry *n;
    struct slice name;
    struct prep *p;
    struct name_mail m;

    for (; nnames > 0 && !bag->bad; nnames--) {
        name = travel_take(bag);
        p = unpack_prep(c, bag, &m);
        if (p == NULL) {
            bag->bad = true;
            return;
        }
        n = follow_names_of_prep(name, p);
        n->told = m.told;
        n->is_described = m.is_described;
        names_put(&c->sstate->names, n);
        prep_unref(&p);
    }
}

bool follow_unpack(struct client *c, struct travel_bag *bag)
{
    struct sstate *s;
    struct travel_mail m;
    struct slice defaults;
    struct slice base;
    struct name_mail ignored;

    travel_take_struct(bag, &m, sizeof m);
    defaults = travel_take(bag);
    base = travel_take(bag);
    if (bag->bad)
        return false;
    s = c->sstate = mem_alloc_zero(sizeof *s);
    c->kind = &c->ss->kinds->followed;
    phase_goto(c, PHASE_DETACHED);
    s->mode = m.mode;
    s->version = m.version;
    s->avoid_node = m.avoid_node;
    s->avoid_until_us = m.avoid_until_us;
    s->base = varset_of_bytes(&c->ss->be.varsets, base.p, (uint32_t)base.n);
    s->vars.client = unpack_vars(c, bag, m.same_client);
    s->vars.link = unpack_vars(c, bag, m.same_link);
    s->defaults_seen = c->ss->defaults_serial;
    if (!learn_defaults(&c->pool->defaults, defaults) || m.tells_all)
        s->defaults_seen--;
    s->names.unnamed = unpack_prep(c, bag, &ignored);
    unpack_names(c, bag, m.nnames);
    return !bag->bad;
}
