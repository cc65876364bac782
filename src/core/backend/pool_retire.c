/* SPDX-License-Identifier: PostgreSQL
 * pool_retire.c: links that were opened for a role or a database as it was before somebody changed
 * it: a new session on one would have the old one's settings, or be the old role.
 * Runs in: workers. Must never: end what runs; a session that is there keeps what it has, as on a
 * server. */
#include "config.h"

#include <string.h>

#include "auth/auth_book.h"
#include "backend/retire.h"
#include "base/log.h"

#include "link_int.h"
#include "pool_int.h"

/* Forgets a role that was made anew: nobody has said yet that it may log in. */
static void forget(struct link *link, const struct link_retire *what)
{
    struct pool *pool = link->pool;

    pool->role_seen_us = 0;
    pool_said_free(pool);
    if (what->is_gone != 0 && link->be->book != NULL)
        auth_book_forget(link->be->book, pool_book_name(pool));
}

static void forget_name(struct backend *be, const struct link_retire *what, struct slice name)
{
    if (what->is_gone != 0)
        auth_book_forget(be->book, name);
    else
        auth_book_drop_answer(be->book, name);
}

static void forget_ours(struct backend *be, const struct link_retire *what)
{
    const struct pool *pool;
    struct hash_node *n;
    uint32_t i;

    if (be->book == NULL || *what->user == '\0' || what->place != RETIRE_OUR_SERVERS)
        return;
    forget_name(be, what, slice_of_str(what->user));
    for (i = 0; be->pools.count > 0 && i <= be->pools.mask; i++)
        for (n = be->pools.bucket[i]; n != NULL; n = n->next) {
            pool = LIST_ENTRY(n, struct pool, node);
            if (pool->has_own_book && slice_eq_str(pool_user(pool), what->user))
                forget_name(be, what, pool_book_name(pool));
        }
}

void backend_retire(struct backend *be, const struct link_retire *what)
{
    struct link_retired *kept = &be->retired[be->nretired++ % RETIRE_KEPT];
    unsigned nclosed = 0;
    struct link *link;
    struct list *n;
    struct list *tmp;

    kept->what = *what;
    kept->at_us = loop_now_us(be->loop);
    forget_ours(be, what);
    LIST_FOREACH(n, &be->links)
    {
        link = LIST_ENTRY(n, struct link, be_node);
        if (!pool_is_meant(link, what))
            continue;
        forget(link, what);
        link->is_retired = true;
        if (what->sets != 0)
            link->pool->sets_since_us = kept->at_us;
        nclosed++;
    }
    LIST_FOREACH_SAFE(n, tmp, &be->idle_lru)
    {
        link = LIST_ENTRY(n, struct link, be_node);
        if (!pool_is_meant(link, what))
            continue;
        forget(link, what);
        link_close(link);
        nclosed++;
    }
    log_at(LVL_DEBUG1,
        "%u server connections of role \"%s\" and database \"%s\" are not used again", nclosed,
        what->user, what->database);
}

void backend_on_retire(struct backend *be, const void *body, size_t len)
{
    struct link_retire what;

    if (len != sizeof what)
        return;
    memcpy(&what, body, sizeof what);
    what.user[sizeof what.user - 1] = '\0';
    what.database[sizeof what.database - 1] = '\0';
    backend_retire(be, &what);
    backend_post_retry(be);
}
