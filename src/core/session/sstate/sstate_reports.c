/* SPDX-License-Identifier: PostgreSQL
 * sstate_reports.c: what a client was told of its settings, and what it has to be told when it gets
 * another link. Runs in: workers. */
#include "config.h"

#include "base/hot.h"
#include "wire/writer.h"

#include "sstate_int.h"

void sstate_remember_told(struct sstate *s, struct slice name, struct slice value)
{
    if (paramset_get(&s->errand->told, name).p == NULL)
        (void)paramset_set(&s->errand->told, name, value.p == NULL ? slice_of("", 0) : value);
}

static bool has_other_role(const struct link *link)
{
    return varset_get(link->vars, slice_of_str("role")).p != NULL ||
           varset_get(link->vars, slice_of_str("session_authorization")).p != NULL;
}

/* Clients of the pool were let in by a greeting that is too old to tell their role: the link tells
 * it. */
static void learn_role(const struct link *link)
{
    struct slice super = paramset_get(&link->reported, slice_of_str("is_superuser"));

    if (!pool_is_role_known(link->pool) && super.p != NULL && !has_other_role(link))
        pool_note_role(link->pool, super);
}

/* What the link reports of settings that nobody has SET: when that is not what others of its pool
 * have reported, a server was reloaded, and all clients have to be told. */
static void look_at_defaults(struct client *c, struct link *link)
{
    struct paramset *defaults = &link->pool->defaults;
    struct slice name;
    struct slice value;
    struct slice before;
    bool changed = false;
    uint32_t at = 0;

    link->defaults_known = true;
    learn_role(link);
    while (paramset_next(&link->reported, &at, &name, &value)) {
        before = paramset_get(defaults, name);
        if (greeting_is_of_user(name) || greeting_is_set(link->vars, name) ||
            (before.p != NULL && slice_eq(before, value)))
            continue;
        changed = changed || before.p != NULL;
        (void)paramset_set(defaults, name, value);
    }
    if (changed)
        c->ss->defaults_serial++;
}

/* True for a value that other links of the client\'s pool do not report. */
static bool is_news(const struct client *c, struct slice name, struct slice value)
{
    struct slice before = paramset_get(&c->pool->defaults, name);

    return before.p != NULL && !slice_eq(before, value) && !greeting_is_of_user(name);
}

void sstate_correct_client(struct client *c, const struct link *link)
{
    struct buf out = {0};
    struct slice name;
    struct slice value;
    uint32_t at = 0;

    while (paramset_next(&link->reported, &at, &name, &value)) {
        if (greeting_is_set(link->vars, name) ||
            (greeting_is_of_user(name) && has_other_role(link)))
            value = slice_of("", 0); /* of who had the link before: nothing that others may see */
        else
            wire_put_parameter_status(&out, name, value);
        (void)paramset_set(&c->sstate->errand->told, name, value);
    }
    c->sstate->parameters = PARAMETERS_OWED; /* what is the client's own is told with the answer */
    client_send(c, &out);
}

HOT void sstate_look_at_defaults(struct client *c, struct link *link)
{
    struct sstate *s = c->sstate;
    struct slice name;
    struct slice value;
    uint32_t at = 0;
    bool is_late = false; /* it has not heard of the reload itself */

    if (!link->defaults_known)
        look_at_defaults(c, link);
    if (s->defaults_seen == c->ss->defaults_serial)
        return;
    while (paramset_next(&link->reported, &at, &name, &value)) {
        if (greeting_is_of_user(name) || greeting_is_set(s->vars.client, name))
            continue;
        sstate_remember_told(s, name, slice_of("", 0));
        is_late = is_late || (!greeting_is_set(link->vars, name) && is_news(c, name, value));
    }
    if (!is_late)
        s->defaults_seen = c->ss->defaults_serial;
    sstate_owe_parameters(s);
}

/* What the server tells while we put settings is a reload's, and not ours: nobody has it as a
 * default yet, and neither the session nor its link had set it before this exchange. */
static bool is_of_reload(const struct client *c, struct slice name, struct slice value)
{
    const struct sstate_vars *before = &c->sstate->errand->mark;

    return is_news(c, name, value) &&
           (before->client == NULL || !greeting_is_set(before->client, name)) &&
           (before->link == NULL || !greeting_is_set(before->link, name));
}

/* A setting that this client has not SET: changed for its transaction, or for all by a reload,
 * which the server may tell with the answer to something of ours. */
static void tell_default(struct client *c, struct link *link, struct slice name, struct slice value)
{
    struct buf out = {0};

    link->defaults_known = false;
    if (!expect_head_is_ours(&link->expect) || link->loan.tells != LINK_TELLS_HIS ||
        c->phase != CL_ACTIVE || link->pool->cluster_node != c->pool->cluster_node ||
        (c->sstate->loan.has_put_settings && !is_of_reload(c, name, value)))
        return; /* what we put back is what all have been told */
    wire_put_parameter_status(&out, name, value);
    client_send(c, &out);
}

void sstate_on_parameter(void *owner, struct link *link, struct slice name, struct slice value)
{
    struct client *c = owner;

    /* What brings the link up to date is not heard of; what the client does, and what puts that
     * right, would be. */
    if (link->loan.tells == LINK_TELLS_NOTHING &&
        (phase_is_repairing((enum phase)c->sstate->phase) || !expect_head_is_ours(&link->expect)))
        sstate_remember_told(c->sstate, name, paramset_get(&link->reported, name));
    if (!greeting_is_set(c->sstate->vars.client, name))
        tell_default(c, link, name, value);
    /* Another user, and nothing that was read says why: code did it. Not for the next client. */
    if ((slice_eq_str(name, "session_authorization") || slice_eq_str(name, "is_superuser")) &&
        !expect_head_is_ours(&link->expect) &&
        (c->sstate->errand == NULL || !errand_has_set(c->sstate->errand)))
        link->must_clean = true;
    if (c->row == NULL || !slice_ieq_str(name, "application_name") ||
        expect_head_is_ours(&link->expect))
        return;
    client_row_application(c, value);
}
