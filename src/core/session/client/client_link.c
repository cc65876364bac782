/* SPDX-License-Identifier: PostgreSQL
 * client_link.c: what the link of a session that is relayed says to it. Until the login is over
 * that is for client_login.c. Runs in: workers. */
#include "config.h"

#include "base/hot.h"
#include "base/log.h"

#include "client/client_ddl_int.h"
#include "sstate_int.h"

HOT bool client_is_its_reply(struct client *c, struct link *link)
{
    if (link == c->link && link->epoch == c->epoch)
        return true;
    link->be->epoch_mismatches++;
    log_at_detail(LVL_ERROR, NULL, "This must not happen: please report it, with the lines before.",
        "a reply met another client: dropped");
    link_close(link);
    return false;
}

HOT static void relay_on_bytes(void *owner, struct link *link, const char *p, size_t n)
{
    if (client_is_its_reply(owner, link))
        client_pass_reply(owner, link, p, n);
}

WARM void client_on_link_tag(void *owner, struct link *link, struct slice tag)
{
    (void)link;
    if (client_patch(owner) != NULL)
        client_patch_on_tag(owner, tag);
}

bool client_on_link_error(void *owner, struct link *link, const struct errmsg *m)
{
    struct client *c = owner;
    enum count_kind kind = slice_eq_str(m->severity, "FATAL")   ? COUNT_FATAL
                           : slice_eq_str(m->severity, "PANIC") ? COUNT_PANIC
                                                                : COUNT_ERROR;

    count_statement(c->ss, link->pool->cluster_node, kind);
    client_stmts_error(c);
    if (c->drops_database)
        client_ddl_on_error(client_ddl(c));
    return client_failed_tell(client_refused(c), link, m);
}

HOT static void relay_on_quiet(void *owner, struct link *link)
{
    struct client *c = owner;

    (void)link;
    if (client_patch(c) != NULL && (!feed_end_ignored(c) || client_patch_repair(c)))
        return;
    client_note_idle(c);
    c->server_batch = false;
    client_after_quiet(c);
}

void client_on_link_settled(void *owner, struct link *link)
{
    struct client *c = owner;

    (void)link;
    if (c->sends == CLIENT_HAS_SENT_ALL)
        client_leave(c);
    else if (c->is_parked)
        client_unpark(c);
}

void client_on_link_parameter(void *owner, struct link *link, struct slice name, struct slice value)
{
    (void)link;
    if (client_patch(owner) != NULL)
        client_patch_on_parameter(owner, name, value);
    if (slice_ieq_str(name, "application_name"))
        client_row_application(owner, value);
}

void client_on_link_drained(void *owner, struct link *link)
{
    (void)link;
    client_read_on(owner);
}

void client_link_log_lost(struct client *c, const struct err *err)
{
    CLIENT_LOG(c, LVL_LOG, "session of user \"%s\" ends: %s", c->pool->names, err->msg);
}

static void on_lost(void *owner, struct link *link, const struct err *err, bool told)
{
    struct client *c = owner;
    /* Then the client is not told: for it the server has hung up. */
    bool in_message = c->body_left > 0 || link->body_left > 0;

    /* A server that stops says so to each session, and may stay in that state for long. */
    sessions_suspect_node(c->ss, c->pool->cluster_node);
    client_lose_link(c);
    if (!told)
        client_link_log_lost(c, err);
    client_end(c, told || in_message ? NULL : err);
}

const struct link_owner_ops client_link_ops = {
    .on_log = client_log_link,
    .on_bytes = relay_on_bytes,
    .on_quiet = relay_on_quiet,
    .on_settled = client_on_link_settled,
    .on_doubt = client_on_doubt,
    .on_no_wait = client_on_no_wait,
    .on_parameter = client_on_link_parameter,
    .on_tag = client_on_link_tag,
    .on_error = client_on_link_error,
    .on_drained = client_on_link_drained,
    .on_lost = on_lost,
};
