/* SPDX-License-Identifier: PostgreSQL
 * client_doubt.c: a COPY of the client has failed with a Sync in it, and nobody knows how many
 * ReadyForQuery are owed: the server is asked (decisions/0001). Runs in: workers. What the client
 * asks next waits for that: it would share the fate of the link, while it runs alone behind it. */
#include "config.h"

#include <string.h>

#include "base/hot.h"

#include "feed_int.h"

/* Within a message of the client's it would be taken for a part of that. */
void client_on_doubt(void *owner, struct link *link)
{
    struct client *c = owner;

    if (c->body_left == 0 && c->target == link)
        link_ask(link);
}

/* A Sync was parked behind a string that sets something and copies: its data would wait with it. Or
 * the question is of no use any more. */
void client_on_no_wait(void *owner, struct link *link)
{
    struct client *c = owner;

    client_goodbye_on_no_wait(c, link);
    if (c->is_parked && c->target == link &&
        (expect_is_copying(&link->expect) || link->expect.lost))
        client_unpark(c);
}

HOT bool client_waits_for_answer(const struct client *c, char type)
{
    return c->target != NULL && expect_is_asked(&c->target->expect) && !c->server_batch &&
           type != '\0' && strchr("QFPBDEC", type) != NULL;
}
