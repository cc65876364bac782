/* SPDX-License-Identifier: PostgreSQL
 * web_conns.c: which HTTP connections there are, how long each may take, and who goes when there
 * are too many.
 * Runs in: web. libmicrohttpd ends who says nothing, and counts single addresses: a stranger could
 * send a byte now and then, and has 2^64 addresses with IPv6. Must never wait, or close anything
 * itself. */
#include "config.h"

#include "web_conns.h"

#include <string.h>

#include "base/mem.h"

void web_conns_init(struct web_conns *all)
{
    list_init(&all->all);
    all->n = 0;
}

struct web_conn *web_conns_add(
    struct web_conns *all, int fd, const struct hba_addr *addr, int64_t now_us)
{
    struct web_conn *c = mem_alloc_zero(sizeof *c);

    c->fd = fd;
    c->addr = *addr;
    c->since_us = now_us;
    list_push_back(&all->all, &c->node);
    all->n++;
    return c;
}

void web_conns_remove(struct web_conns *all, struct web_conn **cp)
{
    struct web_conn *c = *cp;

    *cp = NULL;
    if (c == NULL)
        return;
    list_remove(&c->node);
    all->n--;
    mem_free(c);
}

void web_conns_renew(struct web_conns *all, struct web_conn *c, int64_t now_us)
{
    c->since_us = now_us;
    list_remove(&c->node);
    list_push_back(&all->all, &c->node);
}

/* An IPv6 network of 64 bits counts as one address: it belongs to one customer. */
static bool is_same_address(const struct hba_addr *a, const struct hba_addr *b)
{
    return a->n == b->n && memcmp(a->bytes, b->bytes, a->n == 16 ? 8 : a->n) == 0;
}

/* The oldest stranger, of the address or (NULL) of all. *n is how many strangers these are. */
static struct web_conn *oldest_stranger(
    const struct web_conns *all, const struct hba_addr *addr, int *n)
{
    struct web_conn *oldest = NULL;
    const struct list *it;

    *n = 0;
    for (it = all->all.next; it != &all->all; it = it->next) {
        struct web_conn *c = LIST_ENTRY(it, struct web_conn, node);

        if (c->is_known || c->is_leaving || (addr != NULL && !is_same_address(&c->addr, addr)))
            continue;
        ++*n;
        if (oldest == NULL)
            oldest = c;
    }
    return oldest;
}

struct web_conn *web_conns_in_the_way(struct web_conns *all, const struct hba_addr *addr)
{
    int n;
    struct web_conn *oldest = oldest_stranger(all, addr, &n);

    if (n >= WEB_CONNS_OF_ONE)
        return oldest;
    return web_conns_are_full(all) ? oldest_stranger(all, NULL, &n) : NULL;
}

bool web_conns_are_full(const struct web_conns *all)
{
    return all->n >= WEB_CONNS_MAX;
}

struct web_conn *web_conns_overdue(struct web_conns *all, int64_t now_us)
{
    struct list *it;

    LIST_FOREACH(it, &all->all)
    {
        struct web_conn *c = LIST_ENTRY(it, struct web_conn, node);

        if (now_us - c->since_us < WEB_REQUEST_LIMIT_US)
            return NULL;
        if (!c->is_leaving)
            return c;
    }
    return NULL;
}
