/* SPDX-License-Identifier: PostgreSQL
 * list.h: circular doubly linked list with the node inside the object. */
#ifndef PGP_BASE_LIST_H
#define PGP_BASE_LIST_H

#include <stdbool.h>
#include <stddef.h>

struct list {
    struct list *next;
    struct list *prev;
};

#define LIST_ENTRY(node, type, member) ((type *)(void *)((char *)(node)-offsetof(type, member)))

static inline void list_init(struct list *l)
{
    l->next = l;
    l->prev = l;
}

static inline bool list_is_empty(const struct list *l)
{
    return l->next == l;
}

/* A node initialised by list_init and not in a list is "detached". */
static inline bool list_is_detached(const struct list *n)
{
    return n->next == n;
}

static inline void list_insert_after(struct list *at, struct list *n)
{
    n->prev = at;
    n->next = at->next;
    at->next->prev = n;
    at->next = n;
}

static inline void list_push_front(struct list *head, struct list *n)
{
    list_insert_after(head, n);
}

static inline void list_push_back(struct list *head, struct list *n)
{
    list_insert_after(head->prev, n);
}

/* Removes `n` and leaves it detached; a detached node may be removed again. */
static inline void list_remove(struct list *n)
{
    n->prev->next = n->next;
    n->next->prev = n->prev;
    list_init(n);
}

static inline struct list *list_first(struct list *head)
{
    return head->next == head ? NULL : head->next;
}

static inline struct list *list_last(struct list *head)
{
    return head->prev == head ? NULL : head->prev;
}

#define LIST_FOREACH(it, head) for ((it) = (head)->next; (it) != (head); (it) = (it)->next)
#define LIST_FOREACH_SAFE(it, tmp, head)                                                           \
    for ((it) = (head)->next, (tmp) = (it)->next; (it) != (head); (it) = (tmp), (tmp) = (it)->next)

#endif
